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
mod ir;
mod machine;
mod math;
mod orc;
mod power;
mod scalar;
mod symbol;
mod trig;
mod warp;

use super::cache::{self, DiskCache, Key, Kind};
use super::{Backend, Executable};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::Kernel;
use crate::lowering::Target;
use call::Compiled;
use ending::Compiling;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::FileType;
use machine::Machine;
pub use machine::register_by;
use orc::{Code, Jit};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cleaning before code generation. The emitter writes vector code itself, so that no loop pass is needed;
/// measured against `default<O3>` it gives the same code in a fraction of the time.
const PASSES: &str =
    "function(early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm),simplifycfg,early-cse)";

/// For kernels that may run long one iteration at a time: what programs of numbers become.
const SCALAR_PASSES: &str = "default<O2>";

/// Compiled kernels that are kept in memory.
const KEPT: usize = 256;

/// The LLVM backend for this computer.
pub struct Llvm {
    shared: Arc<Shared>,
    /// Kernels by content; the oldest goes first.
    kept: Mutex<Vec<(Key, Arc<Compiled>)>>,
}

/// What compiled kernels keep using.
pub(super) struct Shared {
    machine: Machine,
    jit: Arc<Jit>,
    /// Instead of the cache that is set for the process.
    own: Option<Arc<DiskCache>>,
    /// Kernels that were compiled, both forms of them.
    compiled: AtomicU64,
}

/// Linked code, and whether it came from the cache on disk.
struct Linked {
    code: Code,
    cached: bool,
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

impl Shared {
    /// Compiles and links a kernel, or takes its code from the cache on disk.
    fn plain(&self, kernel: &Kernel, key: &Key) -> Result<Linked> {
        self.link(kernel, &self.machine, key)
    }

    /// The same with stores that bypass the processor's caches.
    fn streaming(&self, kernel: &Kernel) -> Result<Linked> {
        let machine = self.machine.streaming();
        self.link(kernel, &machine, &machine.key(kernel))
    }

    fn link(&self, kernel: &Kernel, machine: &Machine, key: &Key) -> Result<Linked> {
        let cache = self.own.clone().or_else(|| cache::installed(Kind::Kernels));
        if let Some(cache) = &cache
            && let Some(object) = cache.get(key)
        {
            match self.linked(object, key) {
                Ok(code) => return Ok(Linked { code, cached: true }),
                Err(_) => cache.spoiled(),
            }
        }
        let _compiling = Compiling::begin()?;
        let object = generate(kernel, machine, &symbol::of(key), FileType::Object)?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        let code = self.linked(object.clone(), key)?;
        if let Some(cache) = &cache {
            cache.put(key, &cache::describe(kernel), &object);
        }
        Ok(Linked { code, cached: false })
    }

    fn linked(&self, object: Vec<u8>, key: &Key) -> Result<Code> {
        let (object, name) = symbol::instance(object, key)?;
        self.jit.link(&object, &name)
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

/// Emits and cleans a module.
fn module<'c>(context: &'c Context, kernel: &Kernel, machine: &Machine, name: &str) -> Result<Module<'c>> {
    let target = machine.target_machine()?;
    let module = emit::emit(context, kernel, machine, name)?;
    module.set_triple(&target.get_triple());
    module.set_data_layout(&target.get_target_data().get_data_layout());
    module
        .run_passes(
            if kernel.takes_steps() { SCALAR_PASSES } else { PASSES },
            &target,
            PassBuilderOptions::create(),
        )
        .map_err(|m| Diagnostic::internal(format!("LLVM passes: {m}")))?;
    Ok(module)
}

fn generate(kernel: &Kernel, machine: &Machine, name: &str, what: FileType) -> Result<Vec<u8>> {
    let context = Context::create();
    let module = module(&context, kernel, machine, name)?;
    let buffer = machine
        .target_machine()?
        .write_to_memory_buffer(&module, what)
        .map_err(|m| Diagnostic::internal(format!("LLVM code generation: {m}")))?;
    let mut bytes = buffer.as_slice().to_vec();
    // LLVM ends a buffer with a zero byte that is not part of the text.
    if matches!(what, FileType::Assembly) && bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
