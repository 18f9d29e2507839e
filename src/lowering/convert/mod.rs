//! Conversion: ops to kernels of the `loop` dialect and the host code that calls them.
//!
//! A [`Lowering`] says how one op, or a family of them, becomes kernels; built-in ones and those of dialects are found through
//! the table of ops ([`Lowerings`]). [`convert`] applies them where a [`ConversionTarget`] does not call an op legal, and says
//! of each op that is left why each lowering refused it. Nothing here knows how kernels become machine code.

mod call;
mod driver;
mod ops;
pub mod pass;
mod rewriter;
mod target;
mod text;

pub use call::OpCall;
pub(in crate::lowering) use call::is_row_major;
pub use driver::convert;
pub use ops::Ops;
pub use rewriter::Rewriter;
pub use target::{ConversionTarget, Legality};
pub use text::TextLowering;

use super::built_in;
use crate::diag::{Diagnostic, Result, nearest};
use crate::dialects::{Op, Registry};
use crate::ir::ValueId;
use std::sync::Arc;

/// How ops become kernels.
///
/// A lowering reads what is known of a call ([`OpCall`]), writes the host code that the kernels need around them
/// (allocation, sizes, contiguous operands) and launches them ([`Rewriter::launch`]). It refuses what it does not handle with
/// an error: then what it wrote is taken back, the next lowering is asked, and the reason is kept.
pub trait Lowering: Send + Sync {
    /// What refusals call it: `bincount-by-accumulate`.
    fn name(&self) -> &str;

    /// The ops that it handles.
    fn ops(&self) -> Ops;

    /// Of several that handle an op, the one with the greatest benefit is asked first; among equals, the one that was added
    /// last. Built-in ones have 1.
    fn benefit(&self) -> u32 {
        1
    }

    /// Writes what the op becomes; gives one value for each of its results.
    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>>;
}

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
