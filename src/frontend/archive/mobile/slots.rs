//! Attributes without names: of classes that restore themselves bytecode has neither names nor types of attributes, only
//! numbers. What `__setstate__` stores says how many there are and what they hold; they are called `slot_0`, `slot_1`
//! and so on, in the order of their numbers.

use crate::ir::unify::unify_as;
use crate::ir::{Module, Symbol, Type};
use indexmap::IndexMap;

/// Attributes of one object are no more than this.
pub(super) const MAX_SLOTS: usize = 1 << 12;

/// Values that a method stores, by class and number.
pub(super) type Stored = IndexMap<(Symbol, usize), Type>;

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
