//! Attributes without names: of classes that restore themselves bytecode has neither names nor types of attributes, only
//! numbers. What `__setstate__` stores says how many there are and what they hold; they are called `slot_0`, `slot_1`
//! and so on, in the order of their numbers.

use super::{Code, classes, translate};
use crate::dialects::Registry;
use crate::ir::unify::unify_as;
use crate::ir::{ClassAttribute, Module, Symbol, Type};
use indexmap::{IndexMap, IndexSet};

/// A state may hold objects that restore themselves, whose attributes must be known first: the maximum depth of these.
const MAX_LAYERS: usize = 8;

/// Attributes of one object are no more than this.
pub(super) const MAX_SLOTS: usize = 1 << 12;

/// Values that a method stores, by class and number.
pub(super) type Stored = IndexMap<(Symbol, usize), Type>;

/// Gives classes that restore themselves their attributes. What cannot be followed is left to the translation of the
/// methods, which says what is wrong with them.
pub(super) fn define(registry: &Registry, module: &mut Module, codes: &[Code]) {
    let is_open =
        |module: &Module, class: Symbol| module.class(class).is_some_and(|def| def.attributes.is_empty());
    let mut left: Vec<(Symbol, &Code)> = codes
        .iter()
        .filter_map(|code| Some((Symbol::new(code.name.strip_suffix(".__setstate__")?), code)))
        .filter(|(class, _)| is_open(module, *class))
        .collect();
    let restored: IndexSet<Symbol> = left.iter().map(|(class, _)| *class).collect();
    for _ in 0..MAX_LAYERS {
        let before = left.len();
        left.retain(|(class, code)| match translate::stored(registry, module, code) {
            Ok(stored) => {
                add(module, *class, &stored);
                false
            }
            Err(_) => true,
        });
        if left.len() == before || left.is_empty() {
            break;
        }
    }
    let others = codes.iter().filter(|code| !code.name.ends_with(".__setstate__"));
    classes::widen_stored(module, others, &|class| restored.contains(&class));
}

/// Adds the slots of a class up to the last one that is stored; what is between and never stored holds nothing.
fn add(module: &mut Module, class: Symbol, stored: &Stored) {
    let slots = stored.keys().filter(|(owner, _)| *owner == class).map(|(_, slot)| slot + 1);
    let count = slots.max().unwrap_or(0).min(MAX_SLOTS);
    let ty = |slot| stored.get(&(class, slot)).cloned().unwrap_or_else(Type::none);
    let Some(def) = module.classes.get_mut(&class) else { return };
    let attribute =
        |slot| ClassAttribute { name: name(slot), ty: ty(slot), is_parameter: false, is_buffer: false };
    def.attributes = (0..count).map(attribute).collect();
}

/// What the attribute with a number is called.
pub(super) fn name(slot: usize) -> Symbol {
    Symbol::new(&format!("slot_{slot}"))
}

/// Notes that a method stores a value.
pub(super) fn note(stored: &mut Stored, module: &Module, place: (Symbol, usize), ty: &Type) {
    let unified = match stored.get(&place) {
        Some(known) => unify_as(known, ty, module, false, None).unwrap_or_else(Type::any),
        None => ty.clone(),
    };
    stored.insert(place, unified);
}
