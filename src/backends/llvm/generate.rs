//! From a kernel to a clean module, and from that to an object or text. Keeps nothing.

use super::emit;
use super::machine::Machine;
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::Kernel;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::FileType;

/// Cleaning before code generation. The emitter writes vector code itself, so that no loop pass is needed;
/// measured against `default<O3>` it gives the same code in a fraction of the time.
const PASSES: &str =
    "function(early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm),simplifycfg,early-cse)";

/// For kernels that may run long one iteration at a time: what programs of numbers become.
const SCALAR_PASSES: &str = "default<O2>";

/// Emits and cleans a module.
pub(super) fn module<'c>(
    context: &'c Context,
    kernel: &Kernel,
    machine: &Machine,
    name: &str,
) -> Result<Module<'c>> {
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

/// What LLVM generates of a kernel: an object or assembly.
pub(super) fn generate(kernel: &Kernel, machine: &Machine, name: &str, what: FileType) -> Result<Vec<u8>> {
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
