//! Which backends there are, by name, and which of them runs kernels on the CPU. No backend knows
//! this list.

#[cfg(feature = "cuda")]
use super::cuda;
#[cfg(feature = "llvm")]
use super::llvm;
use super::{Apart, Backend, interp};
use crate::diag::{Diagnostic, Result};
use std::sync::{Arc, LazyLock};

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
