//! An emulated device with memory of its own: kernels are interpreted, and what libraries compute is computed by plain
//! loops. It shows without a GPU what a GPU is asked for, in tests and to authors of backends; slow, and right.

mod kernels;
mod loops;
mod memory;

use super::library::{self, Machine};
use super::{Backend, Executable, LibraryOp, Recorded, RecordedWork};
use crate::diag::Result;
use crate::dialects::Op;
use crate::dialects::loops::Kernel;
use crate::lowering::Target;
use crate::tensor::DeviceMemory;
use kernels::interpreted;
use loops::Loops;
use std::sync::Arc;

/// The device, which counts what crosses its border.
#[derive(Default)]
pub struct Apart {
    machine: Arc<Loops>,
}

impl Apart {
    /// How many pieces of memory were copied to the device and back so far.
    pub fn copies(&self) -> [u64; 2] {
        self.machine.memory.copies()
    }
}

impl Backend for Apart {
    fn name(&self) -> &'static str {
        "apart"
    }

    fn target(&self) -> Target {
        Target::Gpu
    }

    fn memory(&self) -> Option<Arc<dyn DeviceMemory>> {
        Some(Arc::new(self.machine.memory.clone()))
    }

    fn library(&self, op: &Op) -> Option<Arc<dyn LibraryOp>> {
        let machine = Arc::clone(&self.machine) as Arc<dyn Machine>;
        library::for_op(&machine, op)
    }

    fn record(
        &self,
        inputs: &[usize],
        work: &mut RecordedWork<'_>,
    ) -> Result<Result<Arc<dyn Recorded>, String>> {
        self.machine.memory.record(inputs, work)
    }

    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Executable>> {
        interpreted(&self.machine.memory, kernel)
    }
}
