//! What a backend is: it makes kernels runnable, and says what its device has. Names none.

use super::executable::Executable;
use crate::diag::Result;
use crate::dialects::loops::Kernel;
use crate::dialects::{Args, Op, Outputs};
use crate::lowering::Target;
use crate::tensor::{DeviceBuffer, DeviceMemory};
use std::sync::Arc;

/// Makes kernels runnable.
pub trait Backend: Send + Sync {
    /// For messages and `--backend`: `llvm`, `interp`, `cuda`.
    fn name(&self) -> &'static str;
    /// For which kind of machine loops are to be arranged.
    fn target(&self) -> Target;
    /// Whether its kernels are machine code, faster than evaluating an op.
    fn compiles(&self) -> bool {
        true
    }
    /// The memory of its device, where that is not the host's: its kernels take and give [`super::Memory::Device`] then.
    fn memory(&self) -> Option<Arc<dyn DeviceMemory>> {
        None
    }
    /// What computes an op on the device, where the backend has a library that does.
    fn library(&self, op: &Op) -> Option<Arc<dyn LibraryOp>> {
        let _ = op;
        None
    }
    /// Records work that always asks the device for the same, so that it runs again as a whole. `inputs` are the sizes in bytes
    /// of what a call gives. The inner error says why it cannot be recorded; nothing of it has run then.
    fn record(
        &self,
        inputs: &[usize],
        work: &mut RecordedWork<'_>,
    ) -> Result<Result<Arc<dyn Recorded>, String>> {
        let _ = (inputs, work);
        Ok(Err("the device records nothing".to_string()))
    }
    /// Compiles a kernel; what it cannot do is refused with `Unsupported`.
    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Executable>>;
    /// How many pieces of machine code it has made so far. A kernel has further forms, which are made when a call first needs
    /// one.
    fn compilations(&self) -> u64 {
        0
    }
}

/// Work to be recorded: it is given buffers to read instead of those of the call, and gives those that it wrote.
pub type RecordedWork<'a> = dyn FnMut(&[Arc<dyn DeviceBuffer>]) -> Result<Vec<Arc<dyn DeviceBuffer>>> + 'a;

/// Work of a device that was recorded once and runs again as a whole.
pub trait Recorded: Send + Sync {
    /// Runs it on the content of `inputs`; gives new buffers with what it writes.
    fn replay(&self, inputs: &[Arc<dyn DeviceBuffer>]) -> Result<Vec<Arc<dyn DeviceBuffer>>>;
}

/// An op that a device computes by a library, where it keeps the tensors.
pub trait LibraryOp: Send + Sync {
    /// The results of the op, as its row would give them. None: the row gives a view and computes nothing. `Unsupported`, with
    /// nothing computed: the row computes them on the host instead.
    fn run(&self, args: &Args<'_>) -> Result<Option<Outputs>>;
}
