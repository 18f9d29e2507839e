//! CUDA: kernels as PTX, launched through the driver that is found at run time.
//!
//! Inputs are uploaded and results downloaded around each launch. PTX comes from the LLVM backend.

mod driver;

use super::{Arg, Backend, Executable, Launch, Memory, check_args, ptx};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Kernel, Ty};
use crate::lowering::Target;
use driver::{Context, Function, Parameter};
use std::sync::Arc;

/// Threads of a workgroup.
const GROUP: u32 = 256;
/// Workgroups of a launch at most; threads stride over what is left.
const MAX_GROUPS: u64 = 1 << 16;

/// The CUDA backend on one device.
pub struct Cuda {
    context: Arc<Context>,
}

impl Cuda {
    /// Opens a device. Fails with a clear error where there is no driver or no such device.
    pub fn device(ordinal: usize) -> Result<Cuda> {
        Ok(Cuda { context: Context::open(ordinal)? })
    }

    /// The device's own name.
    pub fn device_name(&self) -> Result<String> {
        self.context.name()
    }
}

impl Backend for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn target(&self) -> Target {
        Target::Gpu
    }

    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Executable>> {
        let text = ptx::for_kernel(kernel, &self.context.arch()?)?;
        let function = self.context.load(&text, ptx::ENTRY)?;
        Ok(Arc::new(Compiled { kernel: kernel.clone(), function }))
    }
}

struct Compiled {
    kernel: Kernel,
    function: Function,
}

impl Executable for Compiled {
    #[allow(unsafe_code, reason = "launches GPU code")]
    unsafe fn run(&self, launch: &mut Launch<'_>) -> Result<()> {
        let context = self.function.context();
        let arguments = check_args(&self.kernel, &launch.memory, &launch.args)?;
        let buffers = launch.memory.iter().map(|m| context.upload(m.bytes())).collect::<Result<Vec<_>>>()?;
        let mut parameters = Vec::new();
        let mut threads = 1u64;
        for (n, (param, arg)) in arguments.enumerate() {
            if let (Some(e), Arg::Int(value)) = (self.kernel.extent, arg)
                && e == n
            {
                threads = value.max(0).unsigned_abs();
            }
            parameters.push(match (param.ty, arg) {
                (Ty::Scalar(elem), arg) => Parameter::of(arg, elem),
                (_, Arg::Buffer(buffer)) => {
                    // Inside of the memory, as was checked above.
                    let start = buffer.first * self.kernel.elem(param.reg).size();
                    Parameter::address(&buffers[buffer.memory], start)
                }
                _ => return Err(Diagnostic::internal("a kernel argument of the wrong kind")),
            });
        }
        if threads > 0 {
            let groups = threads.div_ceil(u64::from(GROUP)).clamp(1, MAX_GROUPS) as u32;
            // SAFETY: parameters are in the order and of the types of the kernel's function, which was emitted from
            // the same kernel; spans were checked against the memory, whose copies the buffers are, and the caller promises
            // that the kernel stays within them; the buffers live until the download below has waited for the launch.
            unsafe {
                self.function.launch(groups, GROUP, &mut parameters)?;
            }
        }
        for (memory, buffer) in launch.memory.iter_mut().zip(&buffers) {
            if let Memory::Write(bytes) = memory {
                context.download(buffer, bytes)?;
            }
        }
        Ok(())
    }
}
