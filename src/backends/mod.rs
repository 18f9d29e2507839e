//! Backends: from a [`Kernel`] to something that runs.
//!
//! A backend implements [`Backend`] and takes the closed kernel enum; docs/add-a-backend.md walks through
//! one. [`FusedGroup`] is what the runtime holds for a fusion group: it plans each call, finds or builds the
//! kernels for it and launches them. Nothing here knows how a program is interpreted.

pub mod accuracy;
mod group;
pub mod interp;
pub mod ptx;

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "llvm")]
pub mod llvm;

pub use group::{FusedGroup, ProgramRunner};

#[cfg(test)]
mod tests;

use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::Kernel;
use crate::lowering::Target;
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
    /// Compiles a kernel; what it cannot do is refused with `Unsupported`.
    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Executable>>;
}

/// A compiled kernel.
pub trait Executable: Send + Sync {
    /// Runs it. Arguments correspond to the kernel's parameters; their kinds are checked.
    fn run(&self, launch: &mut Launch<'_>) -> Result<()>;
}

/// One run of a kernel.
pub struct Launch<'a> {
    /// Memory; several arguments may look at one piece of it.
    pub memory: Vec<Memory<'a>>,
    /// One an argument of the kernel.
    pub args: Vec<Arg>,
    /// Elements that one iteration of the parallel loop computes, about; decides how work is shared among
    /// threads.
    pub grain: usize,
}

/// Host memory of a launch. The caller vouches that every element which the kernel touches lies within.
pub enum Memory<'a> {
    /// To read.
    Read(&'a [u8]),
    /// To write.
    Write(&'a mut [u8]),
}

impl Memory<'_> {
    /// Its bytes, to read.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Memory::Read(bytes) => bytes,
            Memory::Write(bytes) => bytes,
        }
    }
}

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// An index into [`Launch::memory`], and the first element in elements of the parameter's type.
    Buffer(usize, usize),
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
        #[cfg(feature = "llvm")]
        "llvm" => Ok(Arc::new(llvm::Llvm::host()?)),
        #[cfg(not(feature = "llvm"))]
        "llvm" => {
            Err(Diagnostic::unsupported("this build has no LLVM: it was built without the feature `llvm`")
                .hint("build with `cargo build --release`, which has it"))
        }
        #[cfg(feature = "cuda")]
        "cuda" => Ok(Arc::new(cuda::Cuda::device(0)?)),
        #[cfg(not(feature = "cuda"))]
        "cuda" => Err(Diagnostic::device("no CUDA device: this build was made without the feature `cuda`")
            .hint("build with `cargo build --release`, which has it")),
        other => Err(Diagnostic::unsupported(format!("there is no backend named {other}"))
            .hint("backends are interp, llvm and cuda")),
    }
}

/// The backend that runs fused groups on the CPU: LLVM where it is built in. Made once, so that all groups share
/// its kernels.
pub fn default_cpu() -> Result<Arc<dyn Backend>> {
    static SHARED: LazyLock<Result<Arc<dyn Backend>>> =
        LazyLock::new(|| by_name(if cfg!(feature = "llvm") { "llvm" } else { "interp" }));
    SHARED.clone()
}

/// Pairs arguments with parameters after checking that they fit.
pub(crate) fn check_args<'k>(
    kernel: &'k Kernel,
    args: &[Arg],
) -> Result<Vec<(&'k crate::dialects::loops::Param, Arg)>> {
    use crate::dialects::loops::{Elem, Ty};
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
    Ok(kernel.params.iter().zip(args.iter().copied()).collect())
}
