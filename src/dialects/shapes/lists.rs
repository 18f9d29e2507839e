//! Lists and dictionaries that ops make of others.

use super::{Known, Operands, Results};
use crate::ir::Dim;

/// Items of a sum of lists up to which each is known by itself.
const MAX_JOINED: usize = 64;

/// A list of the same items in the same order.
pub fn same(operands: &Operands<'_>) -> Results {
    Some(vec![operands.at(0)?.clone()])
}

/// A list of some of the items, in any order and number.
pub fn some(operands: &Operands<'_>) -> Results {
    let list = operands.values.iter().find(|known| known.each().is_some() || is_empty(known))?;
    Some(vec![parts_of([list])])
}

/// The items of two lists, one after the other.
pub fn joined(operands: &Operands<'_>) -> Results {
    let (first, second) = (operands.at(0)?, operands.at(1)?);
    Some(vec![match (first, second) {
        (Known::Items(a), Known::Items(b)) if a.len() + b.len() <= MAX_JOINED => {
            Known::items([a.as_slice(), b].concat())
        }
        (Known::Ints(a), Known::Ints(b)) if a.len() + b.len() <= MAX_JOINED => {
            Known::Ints([a.as_slice(), b].concat())
        }
        _ => parts_of([first, second]),
    }])
}

/// Whether some truth value of a list is True, where one is or none is.
pub fn any(operands: &Operands<'_>) -> Results {
    decided(operands, true)
}

/// Whether all truth values of a list are True, where they are or one is not.
pub fn all(operands: &Operands<'_>) -> Results {
    decided(operands, false)
}

/// An element that is `decisive` is the answer; where all are the other truth value, that is.
fn decided(operands: &Operands<'_>, decisive: bool) -> Results {
    let Known::Items(items) = operands.at(0)? else { return None };
    let is = |item: &Known, truth: bool| match item {
        Known::Bool(b) => *b == truth,
        Known::Int(Dim::Known(n)) => (*n != 0) == truth,
        _ => false,
    };
    if items.iter().any(|item| is(item, decisive)) {
        return Some(vec![Known::Bool(decisive)]);
    }
    items.iter().all(|item| is(item, !decisive)).then(|| vec![Known::Bool(!decisive)])
}

/// A list with the argument `el` in the place of an item.
pub fn replaced(operands: &Operands<'_>) -> Results {
    if let Some(exactly) = replaced_at(operands) {
        return Some(vec![exactly]);
    }
    let items = operands.get("el").map_or(Known::Nothing, |el| Known::Items(vec![el.clone()]));
    Some(vec![parts_of([operands.at(0)?, &items])])
}

/// The same where length and place are known.
fn replaced_at(operands: &Operands<'_>) -> Option<Known> {
    let (Known::Int(Dim::Known(n)), el) = (operands.get("idx")?, operands.get("el")?) else { return None };
    let place = |len: usize| usize::try_from(if *n < 0 { n + len as i64 } else { *n }).ok();
    match (operands.at(0)?, el) {
        (Known::Ints(dims), Known::Int(dim)) => {
            let mut dims = dims.clone();
            let at = place(dims.len())?;
            *dims.get_mut(at)? = *dim;
            Some(Known::Ints(dims))
        }
        (Known::Items(items), el) => {
            let mut items = items.clone();
            let at = place(items.len())?;
            *items.get_mut(at)? = el.clone();
            Some(Known::items(items))
        }
        _ => None,
    }
}

/// A list of items of which it is only known that they are among those of the others.
fn parts_of<'a>(lists: impl IntoIterator<Item = &'a Known>) -> Known {
    let lists = lists.into_iter().filter(|list| !is_empty(list));
    let parts: Vec<Known> = lists.map(|list| list.each().unwrap_or_default()).collect();
    if parts.is_empty() { Known::Items(Vec::new()) } else { Known::each_of(parts) }
}

fn is_empty(known: &Known) -> bool {
    match known {
        Known::Items(items) => items.is_empty(),
        Known::Ints(dims) => dims.is_empty(),
        _ => false,
    }
}
