//! What a plan is built of. Builds none.

use super::counters::PlanCounters;
use super::guard::Guards;
use super::open::OpenSpec;
use crate::backends::cache::DiskCache;
use crate::ir::{Function, Module};
use crate::passes::Extras;
use crate::runtime::code;
use crate::runtime::packed::Packed;
use crate::value::{Object, Value};
use std::sync::Arc;

/// What a plan is built of.
pub(super) struct Subject<'a> {
    pub(super) module: &'a Module,
    pub(super) function: &'a Function,
    /// The receiver, where the function is a method.
    pub(super) instance: Option<&'a Object>,
    pub(super) arguments: &'a [Value],
    pub(super) context: code::Context<'a>,
    /// What other plans have packed.
    pub(super) packed: &'a Packed,
    /// Bytes that a call may keep for its backward.
    pub(super) max_kept: Option<u64>,
    /// Which sizes are open, where some are.
    pub(super) open: Option<&'a OpenSpec>,
    pub(super) counters: &'a PlanCounters,
    /// Where plans are kept on disk.
    pub(super) disk: Option<Arc<DiskCache>>,
}

impl<'a> Subject<'a> {
    /// What passes are to know: the open sizes.
    pub(super) fn extras(&self) -> Extras {
        let mut extras = Extras::default();
        if let Some(open) = self.open {
            extras.set(Arc::clone(&open.sizes));
        }
        extras
    }

    /// What the plan's code is made for, whose guards are numbered after those of the plan.
    pub(super) fn context_behind(&self, guards: &Guards) -> code::Context<'a> {
        let forced = self.context.forced.map(|forced| forced.behind(guards.len()));
        code::Context { packs: Some(self.packed), forced, ..self.context }
    }
}
