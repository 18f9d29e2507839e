//! LLVM: kernels to machine code of this computer, and to PTX.
//!
//! [`emit`] writes the module, a short list of passes cleans it, LLVM's code generator makes an object and
//! [`orc`] links it into memory. Kernels are kept by their content, so that equal kernels are compiled once; where there is a
//! cache on disk, once for all processes.

mod call;
mod control;
mod emit;
mod ending;
mod exact;
mod generate;
mod ir;
mod machine;
mod math;
mod orc;
mod power;
mod scalar;
mod shared;
mod symbol;
mod trig;
mod values;
mod warp;

use super::cache::{DiskCache, Key};
use super::{Backend, Executable};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::Kernel;
use crate::lowering::Target;
use call::Compiled;
use generate::{generate, module};
use inkwell::context::Context;
use inkwell::targets::FileType;
use machine::Machine;
pub use machine::register_by;
use orc::Jit;
use parking_lot::Mutex;
use shared::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Compiled kernels that are kept in memory.
const KEPT: usize = 256;

/// The LLVM backend for this computer.
pub struct Llvm {
    shared: Arc<Shared>,
    /// Kernels by content; the oldest goes first.
    kept: Mutex<Vec<(Key, Arc<Compiled>)>>,
}

impl Llvm {
    /// For this computer, with the cache of kernels on disk that is set for the process ([`cache::install`]), if there is one.
    pub fn host() -> Result<Llvm> {
        Llvm::with(None)
    }

    /// For this computer, with a cache of its own.
    pub fn cached(cache: Arc<DiskCache>) -> Result<Llvm> {
        Llvm::with(Some(cache))
    }

    fn with(own: Option<Arc<DiskCache>>) -> Result<Llvm> {
        let compiled = AtomicU64::new(0);
        let shared = Shared { machine: Machine::host(), jit: Jit::new()?, own, compiled };
        Ok(Llvm { shared: Arc::new(shared), kept: Mutex::default() })
    }
}

impl Backend for Llvm {
    fn name(&self) -> &'static str {
        "llvm"
    }

    fn target(&self) -> Target {
        Target::Cpu
    }

    fn compilations(&self) -> u64 {
        self.shared.compiled.load(Ordering::Relaxed)
    }

    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Executable>> {
        let key = self.shared.machine.key(kernel);
        let known = self.kept.lock().iter().find(|(k, _)| *k == key).map(|(_, c)| Arc::clone(c));
        if let Some(compiled) = known {
            return Ok(compiled);
        }
        let compiled = Arc::new(Compiled::new(kernel.clone(), &key, Arc::clone(&self.shared))?);
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((key, Arc::clone(&compiled)));
        Ok(compiled)
    }
}

/// The kernel as LLVM IR for this computer, after cleaning.
pub fn llvm_ir(kernel: &Kernel, name: &str) -> Result<String> {
    let machine = Machine::host();
    let context = Context::create();
    let module = module(&context, kernel, &machine, name)?;
    Ok(module.print_to_string().to_string())
}

/// The kernel as assembly of this computer.
pub fn assembly(kernel: &Kernel, name: &str) -> Result<String> {
    text(generate(kernel, &Machine::host(), name, FileType::Assembly)?)
}

/// The kernel as PTX for an architecture such as `sm_90`. Lower it for [`Target::Gpu`].
pub fn ptx(kernel: &Kernel, name: &str, arch: &str) -> Result<String> {
    let known =
        arch.strip_prefix("sm_").is_some_and(|n| n.chars().next().is_some_and(|c| c.is_ascii_digit()));
    if !known {
        return Err(Diagnostic::unsupported(format!("GPU architecture {arch}")).hint("name one like sm_90"));
    }
    text(generate(kernel, &Machine::ptx(arch), name, FileType::Assembly)?)
}

fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Diagnostic::internal("assembly that is not text"))
}

#[cfg(test)]
mod tests;
