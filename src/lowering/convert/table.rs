//! The lowerings of a table of ops: the built-in ones and those that were added, by name and by op. Applies none.

use crate::diag::{Diagnostic, Result, nearest};
use crate::dialects::{Op, Registry};
use crate::lowering::built_in;
use crate::lowering::by_op::Lowering;
use std::sync::Arc;

/// The lowerings that were added to a table of ops, in order.
#[derive(Clone, Default)]
pub struct Lowerings(Vec<Arc<dyn Lowering>>);

impl Lowerings {
    /// A copy of a table with further lowerings.
    pub fn added(registry: &Registry, new: impl IntoIterator<Item = Arc<dyn Lowering>>) -> Registry {
        let mut all = registry.part::<Lowerings>().cloned().unwrap_or_default();
        all.0.extend(new);
        let mut registry = registry.clone();
        registry.set_part(all);
        registry
    }

    /// All of a table, the built-in ones first.
    fn all(registry: &Registry) -> impl DoubleEndedIterator<Item = &Arc<dyn Lowering>> {
        let added = registry.part::<Lowerings>().map_or(&[][..], |all| &all.0);
        built_in::LOWERINGS.iter().chain(added)
    }

    /// Fails, with the nearest name, where there is no lowering of that name.
    pub fn find(registry: &Registry, name: &str) -> Result<()> {
        if Lowerings::all(registry).any(|lowering| lowering.name() == name) {
            return Ok(());
        }
        let error = Diagnostic::input(format!("there is no lowering '{name}'"));
        Err(match nearest(name, Lowerings::all(registry).map(|lowering| lowering.name())) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error,
        })
    }

    /// Those that handle an op, in the order in which they are asked.
    pub fn of(registry: &Registry, op: &Op) -> Vec<Arc<dyn Lowering>> {
        let all = Lowerings::all(registry).rev();
        let mut found: Vec<Arc<dyn Lowering>> =
            all.filter(|lowering| lowering.ops().contains(op)).cloned().collect();
        found.sort_by_key(|lowering| std::cmp::Reverse(lowering.benefit()));
        found
    }
}
