//! What is known of the items of lists and dictionaries that are written to: for all names of one together, over the whole program,
//! so that the order of writes does not count. It does not know what is known of the lists that are only read.

use super::State;
use super::containers::{Standing, Write, is_container, write};
use crate::dialects::shapes::Known;
use crate::ir::{Dim, OpId, TensorType, ValueId};

/// All of a graph is looked into so often until what is known of the items of lists and dictionaries that are written to does
/// not change any more. If it still does, nothing is known of them.
const MAX_ROUNDS: usize = 4;

/// Items of a sum of lists up to which each is known by itself.
const MAX_JOINED: usize = 64;

/// What is known of the items of a list or dictionary that is written to, over the whole program.
#[derive(Default)]
pub(super) struct Items {
    /// None: it has none.
    each: Option<Known>,
    /// Whether an op has read them in this round, and whether they have grown since.
    is_read: bool,
    has_grown: bool,
}

impl State<'_> {
    /// What is known of the items of the list or dictionary of a number, for an op that reads them; None where it has none.
    pub(super) fn read(&mut self, class: usize) -> Option<Known> {
        let items = self.items.entry(class).or_default();
        items.is_read = true;
        items.each.clone()
    }

    /// Lets what is written to the list or dictionary of a number be known of its items; `Nothing` too says something of them.
    fn put(&mut self, class: usize, each: &Known) {
        let each = self.without_symbols(each);
        let items = self.items.entry(class).or_default();
        let joined = items.each.as_ref().map_or_else(|| each.clone(), |known| known.join(&each));
        if items.each.as_ref() != Some(&joined) {
            items.each = Some(joined);
            items.has_grown |= items.is_read;
        }
    }

    /// A symbol of an op in a loop is another size each time.
    fn without_symbols(&self, known: &Known) -> Known {
        let size = |dim: &Dim| match dim {
            Dim::Symbol(n) if *n < self.first_symbol => Dim::Unknown,
            dim => *dim,
        };
        match known {
            Known::Tensor(t) => {
                let sizes = t.sizes.as_deref().map(|sizes| sizes.iter().map(size).collect());
                Known::Tensor(TensorType { sizes, ..t.clone() })
            }
            Known::Int(dim) => Known::Int(size(dim)),
            Known::Ints(_) | Known::Items(_) | Known::Each(_) => Known::Nothing,
            other => other.clone(),
        }
    }

    /// What is known of the items of an operand; None where it has none.
    fn items_of(&mut self, value: ValueId) -> Option<Known> {
        if let Standing::Written(class) = self.containers.standing(value) {
            return self.read(class);
        }
        match self.of(value) {
            Known::Items(items) if items.is_empty() => None,
            Known::Ints(dims) if dims.is_empty() => None,
            known => Some(known.each().unwrap_or_default()),
        }
    }

    /// Whether all must be looked into once more, as items were read that are known better now.
    pub(super) fn begin_again(&mut self, round: usize) -> bool {
        let again = self.items.values().any(|items| items.has_grown);
        for items in self.items.values_mut() {
            if again && round >= MAX_ROUNDS {
                items.each = Some(Known::Nothing);
            }
            (items.is_read, items.has_grown) = (false, false);
        }
        if again {
            self.symbols.set(self.first_symbol);
            self.never.clear();
            self.numbers.clear();
        }
        again
    }

    /// What is known of all values, lists that are written to included.
    pub(super) fn told(self) -> Vec<Known> {
        let mut known = self.known;
        for (n, class) in self.containers.written() {
            if let Some(known) = known.get_mut(n) {
                *known = Known::each_of(self.items.get(&class).and_then(|items| items.each.clone()));
            }
        }
        known
    }

    /// The items that a list has when it is made.
    pub(super) fn fill(&mut self, class: usize, made: &Known) {
        match made {
            Known::Items(items) => items.iter().for_each(|item| self.put(class, item)),
            Known::Ints(dims) => dims.iter().for_each(|dim| self.put(class, &Known::Int(*dim))),
            Known::Each(each) => self.put(class, each),
            _ => self.put(class, &Known::Nothing),
        }
    }

    /// An op that writes to a list or dictionary.
    pub(super) fn write(&mut self, op: OpId) -> bool {
        let graph = self.graph;
        let Some(written) = graph.operand(op, 0).zip(write(graph, op)) else { return false };
        let (Standing::Written(class), how) = (self.containers.standing(written.0), written.1) else {
            return false;
        };
        let operand = |n: usize| graph.operand(op, n);
        match how {
            Write::Item(n) => match operand(n) {
                Some(item) if self.never.contains(&item) => {}
                Some(item) => {
                    let known = self.of(item);
                    self.put(class, &known);
                }
                None => self.put(class, &Known::Nothing),
            },
            Write::Items(n) => {
                let given =
                    operand(n).filter(|given| self.containers.standing(*given) != Standing::Written(class));
                if let Some(each) = given.and_then(|given| self.items_of(given)) {
                    self.put(class, &each);
                }
            }
            Write::Nothing => {}
        }
        // What it gives is the list itself, or an item of it.
        let results: Vec<ValueId> =
            graph.results(op).into_iter().filter(|result| !is_container(graph.ty(*result))).collect();
        if !results.is_empty() {
            match self.items_of(written.0) {
                Some(each) => results.iter().for_each(|result| self.set(*result, each.clone())),
                None => self.set_never(op),
            }
        }
        true
    }

    /// What ops on lists and dictionaries give whose items are known together.
    pub(super) fn of_container(&mut self, op: OpId, kind: &str) -> Option<Vec<Known>> {
        let graph = self.graph;
        let of = graph.operand(op, 0).filter(|v| is_container(graph.ty(*v)))?;
        let both = |state: &mut Self, with: Option<Known>| {
            let parts = [state.items_of(of), with];
            Some(vec![Known::each_of(parts.into_iter().flatten())])
        };
        match kind {
            "aten::__getitem__" => {
                let each = self.items_of(of);
                if each.is_none() {
                    self.never.extend(graph.results(op));
                }
                each.map(|each| vec![each])
            }
            "aten::add" => {
                let other = graph.operand(op, 1)?;
                match (self.of(of), self.of(other)) {
                    (Known::Items(a), Known::Items(b)) if a.len() + b.len() <= MAX_JOINED => {
                        Some(vec![Known::items([a, b].concat())])
                    }
                    (Known::Ints(a), Known::Ints(b)) if a.len() + b.len() <= MAX_JOINED => {
                        Some(vec![Known::Ints([a, b].concat())])
                    }
                    _ => {
                        let with = self.items_of(other);
                        both(self, with)
                    }
                }
            }
            "fusion::set_item" => {
                let with = graph.operand(op, 2).map(|v| self.of(v));
                both(self, with)
            }
            "aten::list" | "aten::copy" if matches!(self.of(of), Known::Items(_)) => Some(vec![self.of(of)]),
            "aten::list" | "aten::copy" | "aten::slice" | "aten::mul" | "aten::values"
            | "fusion::drop_item" | "fusion::reversed" => both(self, None),
            _ => None,
        }
    }
}
