//! A plan as calls have it. Does not know how it is built.

use super::guard::Guards;
use super::making::Making;
use super::recording::Recording;
use super::replay::Replay;
use super::updates::Updates;
use crate::ir::Graph;
use crate::runtime::code::Code;
use crate::value::Value;
use std::sync::Arc;

/// What calls with equal specs run.
pub struct Plan {
    /// The graph, after the pipeline.
    pub(in crate::runtime) graph: Arc<Graph>,
    pub(in crate::runtime) code: Arc<Code>,
    pub(super) guards: Guards,
    /// How it came about.
    pub(in crate::runtime) making: Arc<Making>,
    /// How its calls are recorded, where something requires grad.
    pub(in crate::runtime) recording: Option<Arc<Recording>>,
    /// Its calls as recorded work of a device.
    pub(in crate::runtime) replay: Replay,
    /// Which arguments it writes to.
    pub(super) updates: Option<Updates>,
}

impl Plan {
    /// Whether what a call with these arguments writes to is apart from what it reads.
    pub(super) fn takes(&self, arguments: &[Value]) -> bool {
        self.recording.as_ref().is_none_or(|recording| recording.takes(arguments))
            && self.updates.as_ref().is_none_or(|updates| updates.takes(arguments))
    }
}
