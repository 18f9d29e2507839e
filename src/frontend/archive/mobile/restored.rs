//! Classes that restore themselves: which attributes they have is found by following what `__setstate__` stores. It knows
//! only the class and number of a value that is stored, and what was found, not how instructions work.

use super::code::Code;
use super::slots::{self, Stored};
use super::{classes, translate};
use crate::dialects::Registry;
use crate::ir::{ClassAttribute, Module, Symbol, Type};
use indexmap::IndexSet;

/// A state may hold objects that restore themselves, whose attributes must be known first: the maximum depth of these.
const MAX_LAYERS: usize = 8;

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
    let count = slots.max().unwrap_or(0).min(slots::MAX_SLOTS);
    let ty = |slot| stored.get(&(class, slot)).cloned().unwrap_or_else(Type::none);
    let Some(def) = module.classes.get_mut(&class) else { return };
    let attribute = |slot| ClassAttribute {
        name: slots::name(slot),
        ty: ty(slot),
        is_parameter: false,
        is_buffer: false,
    };
    def.attributes = (0..count).map(attribute).collect();
}
