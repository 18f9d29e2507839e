//! What code is made for: ops, functions, constants, and what runs groups. Makes none.

use crate::backends::{self, Backend, FusionCounters};
use crate::diag::Result;
use crate::dialects::Registry;
use crate::ir::Module;
use crate::passes::manager::Limits;
use crate::runtime::checks::ForcedFrom;
use crate::runtime::constants::Constants;
use crate::runtime::packed::Packed;
use std::sync::Arc;

/// What code is made for.
#[derive(Clone, Copy)]
pub(in crate::runtime) struct Context<'a> {
    pub(in crate::runtime) registry: &'a Registry,
    /// Where the functions are that ops name.
    pub(in crate::runtime) module: &'a Module,
    pub(in crate::runtime) constants: &'a Constants,
    /// What runs fusion groups; without one, the CPU does.
    pub(in crate::runtime) backend: Option<&'a Arc<dyn Backend>>,
    /// Where fusion groups count what becomes of them.
    pub(in crate::runtime) fusion: &'a Arc<FusionCounters>,
    /// Where ops that prepare constants for others run now, once for all runs of the code; None: they run when it does.
    pub(in crate::runtime) packs: Option<&'a Packed>,
    /// Whether graphs are asked for work that is not fused, and then whether all of their work counts.
    pub(in crate::runtime) strict_fusion: Option<bool>,
    /// How many changes the passes that make plans may make.
    pub(in crate::runtime) limits: &'a Limits,
    /// The guard that is to miss.
    pub(in crate::runtime) forced: Option<ForcedFrom<'a>>,
}

impl Context<'_> {
    pub(in crate::runtime) fn backend(&self) -> Result<Arc<dyn Backend>> {
        self.backend.map_or_else(backends::default_cpu, |backend| Ok(Arc::clone(backend)))
    }
}
