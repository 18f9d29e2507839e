//! The backend `abacus`: hands kernels to the reference interpreter of loops, and refuses those that are long. A real one would
//! match on the statements of the kernel and emit code.

use flambeau::backends::interp::Interp;
use flambeau::dialects::loops::Kernel;
use flambeau::lowering::Target;
use flambeau::prelude::*;
use std::sync::Arc;

/// Kernels with more parameters do not fit on an abacus.
const MAX_PARAMETERS: usize = 16;

pub(crate) struct Abacus;

impl Backend for Abacus {
    fn name(&self) -> &'static str {
        "abacus"
    }

    fn target(&self) -> Target {
        Target::Cpu
    }

    fn compiles(&self) -> bool {
        false
    }

    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Executable>> {
        if kernel.params.len() > MAX_PARAMETERS {
            return Err(Diagnostic::unsupported(format!("a kernel of {} parameters", kernel.params.len())));
        }
        Interp.compile(kernel)
    }
}
