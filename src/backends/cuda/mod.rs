//! CUDA: kernels as PTX, launched through the driver that is found at run time, and products, convolutions and pooling by
//! cuBLASLt and cuDNN where they are found.
//!
//! Tensors stay on the device from kernel to kernel. PTX comes from the LLVM backend.

mod blas;
mod dnn;
mod driver;
mod operands;
mod record;

use super::library::{self, Convolution, Copies, Copy, Machine, Piece, Pool, Product};
use super::{Arg, Backend, Executable, Launch, LibraryOp, Memory, Recorded, RecordedWork, check_args, ptx};
use crate::diag::{Diagnostic, Result};
use crate::dialects::Op;
use crate::dialects::loops::{Kernel, Ty};
use crate::lowering::Target;
use crate::tensor::{DeviceBuffer, DeviceMemory};
use blas::Blas;
use dnn::Dnn;
use driver::{Buffer, Context, Function, Parameter, own};
pub use operands::Precision;
use parking_lot::Mutex;
use std::sync::Arc;

/// Threads of a workgroup, whole warps.
const GROUP: u32 = 256;
/// The same where there are few, so that more of the device's processors get some.
const SMALL_GROUP: u32 = 64;
/// Threads that are few.
const FEW: u64 = 1 << 16;
/// Workgroups of a launch at most; threads stride over what is left.
const MAX_GROUPS: u64 = 1 << 16;

/// The CUDA backend on one device.
pub struct Cuda {
    context: Arc<Context>,
    memory: Arc<OnDevice>,
    machine: Arc<dyn Machine>,
}

impl Cuda {
    /// Opens a device. Fails with a clear error where there is no driver or no such device.
    pub fn device(ordinal: usize, precision: Precision) -> Result<Cuda> {
        let context = Context::open(ordinal)?;
        let memory = Arc::new(OnDevice(Arc::clone(&context)));
        let (blas, dnn) = (Blas::open(&context, precision)?, Dnn::open(&context, precision)?);
        let machine = Libraries {
            memory: Arc::clone(&memory),
            blas: Mutex::new(blas),
            dnn: Mutex::new(dnn),
            copies: Copies::default(),
        };
        Ok(Cuda { context, memory, machine: Arc::new(machine) })
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

    fn memory(&self) -> Option<Arc<dyn DeviceMemory>> {
        Some(Arc::clone(&self.memory) as Arc<dyn DeviceMemory>)
    }

    fn library(&self, op: &Op) -> Option<Arc<dyn LibraryOp>> {
        library::for_op(&self.machine, op)
    }

    fn record(
        &self,
        inputs: &[usize],
        work: &mut RecordedWork<'_>,
    ) -> Result<Result<Arc<dyn Recorded>, String>> {
        record::record(&self.context, inputs, work)
    }

    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Executable>> {
        compiled(&self.context, kernel)
    }
}

fn compiled(context: &Arc<Context>, kernel: &Kernel) -> Result<Arc<dyn Executable>> {
    let text = ptx::for_kernel(kernel, &context.arch()?)?;
    let function = context.load(&text, ptx::ENTRY)?;
    Ok(Arc::new(Compiled { kernel: kernel.clone(), function: Arc::new(function) }))
}

/// The memory of a device.
struct OnDevice(Arc<Context>);

impl DeviceMemory for OnDevice {
    fn allocate(&self, nbytes: usize) -> Result<Arc<dyn DeviceBuffer>> {
        Ok(Arc::new(self.0.allocate(nbytes)?))
    }

    fn upload(&self, bytes: &[u8]) -> Result<Arc<dyn DeviceBuffer>> {
        Ok(Arc::new(self.0.upload(bytes)?))
    }

    fn owns(&self, buffer: &dyn DeviceBuffer) -> bool {
        own(buffer).is_ok_and(|buffer| Arc::ptr_eq(buffer.context(), &self.0))
    }
}

/// cuBLASLt and cuDNN, each with the workspace that its calls take one after the other.
struct Libraries {
    memory: Arc<OnDevice>,
    blas: Mutex<Option<Blas>>,
    dnn: Mutex<Option<Dnn>>,
    copies: Copies,
}

fn missing(library: &str) -> Diagnostic {
    Diagnostic::unsupported(format!("{library} was not found"))
}

impl Machine for Libraries {
    fn memory(&self) -> &dyn DeviceMemory {
        &*self.memory
    }

    fn product(
        &self,
        product: &Product,
        factors: [&Piece; 2],
        bias: Option<&Piece>,
        out: &Piece,
    ) -> Result<()> {
        product.check(factors, bias, out)?;
        let mut blas = self.blas.lock();
        blas.as_mut().ok_or_else(|| missing("cuBLASLt"))?.product(product, factors, bias, out)
    }

    fn convolution(
        &self,
        layer: &Convolution,
        operands: [&Piece; 2],
        bias: Option<&Piece>,
        out: &Piece,
    ) -> Result<()> {
        layer.check(operands, bias, out)?;
        let mut dnn = self.dnn.lock();
        dnn.as_mut().ok_or_else(|| missing("cuDNN"))?.convolution(layer, operands, bias, out)
    }

    fn pool(&self, layer: &Pool, input: &Piece, out: &Piece) -> Result<()> {
        layer.check(input, out)?;
        self.dnn.lock().as_mut().ok_or_else(|| missing("cuDNN"))?.pool(layer, input, out)
    }

    fn softmax(&self, rows: usize, columns: usize, input: &Piece, out: &Piece) -> Result<()> {
        input.check(rows * columns)?;
        out.check(rows * columns)?;
        self.dnn.lock().as_mut().ok_or_else(|| missing("cuDNN"))?.softmax(rows, columns, input, out)
    }

    fn copy(&self, copy: &Copy, input: &Piece, out: &Piece) -> Result<()> {
        self.copies.run(copy, [input, out], &|kernel| compiled(&self.memory.0, kernel))
    }
}

struct Compiled {
    kernel: Kernel,
    function: Arc<Function>,
}

/// Memory of a launch on the device.
enum Held<'a> {
    /// Where it is.
    There(&'a Buffer),
    /// A copy of the host's for this launch.
    Copied(Buffer),
}

impl Held<'_> {
    fn buffer(&self) -> &Buffer {
        match self {
            Held::There(buffer) => buffer,
            Held::Copied(buffer) => buffer,
        }
    }
}

impl Executable for Compiled {
    #[allow(unsafe_code, reason = "launches GPU code")]
    unsafe fn run(&self, launch: &mut Launch<'_>) -> Result<()> {
        let context = self.function.context();
        let arguments = check_args(&self.kernel, &launch.memory, &launch.args)?;
        let mut buffers = Vec::with_capacity(launch.memory.len());
        for memory in &launch.memory {
            buffers.push(match memory {
                Memory::Device(buffer, _) => {
                    context.keep(buffer);
                    Held::There(own(&***buffer)?)
                }
                host => Held::Copied(context.upload(host.bytes())?),
            });
        }
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
                    Parameter::address(buffers[buffer.memory].buffer(), start)
                }
                _ => return Err(Diagnostic::internal("a kernel argument of the wrong kind")),
            });
        }
        if threads > 0 {
            let threads = threads.saturating_mul(ptx::threads(&self.kernel).into());
            let group = if threads < FEW { SMALL_GROUP } else { GROUP };
            let groups = threads.div_ceil(group.into()).clamp(1, MAX_GROUPS) as u32;
            // SAFETY: parameters are in the order and of the types of the kernel's function, which was emitted from
            // the same kernel; spans were checked against the memory, and the caller promises that the kernel stays within
            // them; buffers are freed on the stream, after the launch.
            unsafe {
                self.function.launch(groups, group, &mut parameters)?;
            }
        }
        let buffers: Vec<Option<Buffer>> = buffers
            .into_iter()
            .map(|held| match held {
                Held::There(_) => None,
                Held::Copied(buffer) => Some(buffer),
            })
            .collect();
        for (memory, buffer) in launch.memory.iter_mut().zip(&buffers) {
            if let (Memory::Write(bytes), Some(buffer)) = (memory, buffer) {
                buffer.download(bytes)?;
            }
        }
        Ok(())
    }
}
