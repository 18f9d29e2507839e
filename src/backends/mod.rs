//! Backends: from a [`Kernel`] to something that runs.
//!
//! A backend implements [`Backend`] and takes the closed kernel enum; docs/add-a-backend.md walks through
//! one. [`FusedGroup`] is what the runtime holds for a fusion group: it plans each call, finds or builds the
//! kernels for it and launches them. Nothing here knows how a program is interpreted.

mod apart;
mod ahead;
pub mod cache;
mod counters;
mod function;
mod group;
mod inputs;
pub mod interp;
mod library;
mod launch;
mod lowered;
pub mod ptx;
mod scalars;
mod warps;

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "llvm")]
pub mod llvm;

pub use ahead::{Foreseen, compile_ahead};
pub use apart::Apart;
pub(crate) use counters::add_reasons;
pub use counters::{DeviceReport, FusionCounters, FusionReport, LoopReport, Reasons};
pub use function::KernelFunction;
pub use group::{FusedGroup, Prepared, ProgramRunner};
pub use scalars::{RemainingLoop, ScalarKernel};

#[cfg(test)]
mod tests;

use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Elem, Kernel, Param, Ty};
use crate::dialects::{Args, Op, Outputs};
use crate::lowering::Target;
use crate::tensor::{DeviceBuffer, DeviceMemory};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

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
    /// The memory of its device, where that is not the host's: its kernels take and give [`Memory::Device`] then.
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

/// A compiled kernel.
pub trait Executable: Send + Sync {
    /// Whether its code was not compiled by this process but came from a cache on disk.
    fn is_cached(&self) -> bool {
        false
    }
    /// Runs it. A condition that the kernel requires and that does not hold is a `Runtime` error. Arguments correspond to the kernel's parameters. Their kinds are checked, and that both ends of each
    /// buffer's span lie within its memory; an argument that does not fit is an `Internal` error, with nothing run.
    ///
    /// # Safety
    /// What the kernel does with its buffers is not checked again. The caller promises, for these very arguments:
    /// every element that the kernel loads or stores through a buffer lies in the span that its argument gives;
    /// iterations of a parallel loop store to different elements; and an element that is stored through one argument
    /// is not read or stored through another.
    #[allow(
        unsafe_code,
        reason = "machine code does what its arguments say; safe callers go through `FusedGroup`"
    )]
    unsafe fn run(&self, launch: &mut Launch<'_>) -> Result<()>;
}

/// One run of a kernel.
pub struct Launch<'a> {
    /// Memory; several arguments may share one piece of it.
    pub memory: Vec<Memory<'a>>,
    /// One an argument of the kernel.
    pub args: Cow<'a, [Arg]>,
    /// Elements that one iteration of the parallel loop computes, about; decides how work is shared among
    /// threads.
    pub grain: usize,
}

/// Memory of a launch.
pub enum Memory<'a> {
    /// Of the host, to read.
    Read(&'a [u8]),
    /// Of the host, to write.
    Write(&'a mut [u8]),
    /// Of the backend's device, and whether it may be written.
    Device(&'a Arc<dyn DeviceBuffer>, bool),
}

impl Memory<'_> {
    /// Its bytes, to read; none of a device.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Memory::Read(bytes) => bytes,
            Memory::Write(bytes) => bytes,
            Memory::Device(..) => &[],
        }
    }

    /// How many bytes there are.
    pub fn nbytes(&self) -> usize {
        match self {
            Memory::Device(buffer, _) => buffer.nbytes(),
            _ => self.bytes().len(),
        }
    }

    fn is_writable(&self) -> bool {
        matches!(self, Memory::Write(_) | Memory::Device(_, true))
    }

    /// Whether it begins at a multiple of a size. Memory of a device does.
    fn is_aligned(&self, size: usize) -> bool {
        match self {
            Memory::Device(..) => true,
            _ => (self.bytes().as_ptr() as usize).is_multiple_of(size),
        }
    }
}

/// A buffer of a launch, counted in elements of the parameter's type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Buffer {
    /// An index into [`Launch::memory`].
    pub memory: usize,
    /// The element that the kernel calls element 0.
    pub first: usize,
    /// The lowest element that the kernel touches.
    pub low: usize,
    /// One more than the highest element that it touches.
    pub end: usize,
}

impl Buffer {
    /// The first `count` elements of a piece of memory.
    pub fn whole(memory: usize, count: usize) -> Buffer {
        Buffer { memory, first: 0, low: 0, end: count }
    }
}

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// For buffers.
    Buffer(Buffer),
    /// For `i64` and the smaller integers.
    Int(i64),
    /// For `f64` and the smaller floats.
    Float(f64),
    /// For `bool`.
    Bool(bool),
}

/// A backend by name; an error says which features the build lacks.
pub fn by_name(name: &str) -> Result<Arc<dyn Backend>> {
    match name {
        "interp" => Ok(Arc::new(interp::Interp)),
        "apart" => Ok(Arc::new(Apart::default())),
        #[cfg(feature = "llvm")]
        "llvm" => Ok(Arc::new(llvm::Llvm::host()?)),
        #[cfg(not(feature = "llvm"))]
        "llvm" => {
            Err(Diagnostic::unsupported("this build has no LLVM: it was built without the feature `llvm`")
                .hint("build with `cargo build --release`, which has it"))
        }
        #[cfg(feature = "cuda")]
        "cuda" => Ok(Arc::new(cuda::Cuda::device(0, cuda::Precision::Float32)?)),
        #[cfg(feature = "cuda")]
        "cuda-tf32" => Ok(Arc::new(cuda::Cuda::device(0, cuda::Precision::Tf32)?)),
        #[cfg(not(feature = "cuda"))]
        "cuda" | "cuda-tf32" => {
            Err(Diagnostic::device("no CUDA device: this build was made without the feature `cuda`")
                .hint("build with `cargo build --release`, which has it"))
        }
        other => Err(Diagnostic::unsupported(format!("there is no backend named {other}"))
            .hint("backends are interp, apart, llvm, cuda and cuda-tf32")),
    }
}

/// The error of a kernel that requires what does not hold.
pub(crate) fn not_met(kernel: &Kernel, message: usize) -> Diagnostic {
    let text = kernel.messages.get(message).map_or("a kernel requires what does not hold", String::as_str);
    Diagnostic::runtime(text)
}

/// The backend that runs fused groups on the CPU: LLVM where it is built in. Made once, so that all groups share
/// its kernels.
pub fn default_cpu() -> Result<Arc<dyn Backend>> {
    static INTERP: LazyLock<Arc<dyn Backend>> = LazyLock::new(|| Arc::new(interp::Interp));
    if cfg!(feature = "llvm") { default_llvm() } else { Ok(Arc::clone(&INTERP)) }
}

/// Whether the backend that runs kernels on the CPU makes machine code.
pub fn compiles() -> bool {
    cfg!(feature = "llvm")
}

/// LLVM, made once; an error where it is not built in.
pub fn default_llvm() -> Result<Arc<dyn Backend>> {
    static SHARED: LazyLock<Result<Arc<dyn Backend>>> = LazyLock::new(|| by_name("llvm"));
    SHARED.clone()
}

/// Pairs arguments with parameters after checking that they fit: in kind, and each buffer in its memory, whose start
/// must be aligned for the elements.
pub(crate) fn check_args<'k>(
    kernel: &'k Kernel,
    memory: &[Memory<'_>],
    args: &'k [Arg],
) -> Result<impl Iterator<Item = (&'k Param, Arg)> + use<'k>> {
    let fits = |ty: Ty, arg: &Arg| match (ty, arg) {
        (Ty::Buffer(_), Arg::Buffer(..)) => true,
        (Ty::Scalar(Elem::Bool), Arg::Bool(_)) => true,
        (Ty::Scalar(e), Arg::Int(_)) => e.is_int(),
        (Ty::Scalar(e), Arg::Float(_)) => e.is_float(),
        _ => false,
    };
    let paired = kernel.params.len() == args.len();
    if !paired || !kernel.params.iter().zip(args).all(|(p, a)| fits(p.ty, a)) {
        return Err(Diagnostic::internal("kernel arguments that do not fit its parameters"));
    }
    for (param, arg) in kernel.params.iter().zip(args) {
        let Arg::Buffer(buffer) = arg else { continue };
        let Some(memory) = memory.get(buffer.memory) else {
            return Err(Diagnostic::internal("a kernel argument without memory"));
        };
        if param.written && !memory.is_writable() {
            return Err(Diagnostic::internal("a kernel that writes to memory given for reading"));
        }
        let (nbytes, size) = (memory.nbytes(), kernel.elem(param.reg).size());
        let within = |element: usize| element.checked_mul(size).is_some_and(|at| at <= nbytes);
        let inside = buffer.low <= buffer.end && within(buffer.end) && within(buffer.first);
        if !inside || !memory.is_aligned(size) {
            return Err(Diagnostic::internal(format!(
                "a kernel argument that reaches from element {} to {} of {} bytes",
                buffer.low, buffer.end, nbytes
            )));
        }
    }
    Ok(kernel.params.iter().zip(args.iter().copied()))
}
