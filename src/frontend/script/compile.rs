//! From text to a module of graphs.

use super::emit::Compiler;
pub use super::emit::Library;
use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::Registry;
use crate::ir::{Attr, Module, Symbol, Type};
use crate::resources::budget;
use crate::resources::names;
use std::rc::Rc;
use std::sync::Arc;

/// The compiler walks trees of bounded height; this is enough for the highest.
const STACK_BYTES: usize = 256 << 20;

/// Compiles TorchScript source: every function of the text, as `torch.jit.CompilationUnit` does. Errors are in
/// the form of PyTorch's compiler.
pub fn compile_source(registry: &Arc<Registry>, source: &Arc<Source>) -> Result<Module> {
    names::check()?;
    on_deep_stack(|| {
        let mut compiler = Compiler::new(Arc::clone(registry));
        compiler.declare_source(source)?;
        compiler.finish()
    })
}

/// Compiles further functions of a module, which may use what it defines; with a class, further methods of that. Fails where
/// one is there already.
pub fn compile_further(
    registry: &Arc<Registry>,
    module: &Module,
    class: Option<Symbol>,
    source: &Arc<Source>,
) -> Result<Module> {
    names::check()?;
    on_deep_stack(|| {
        let mut compiler = Compiler::new(Arc::clone(registry)).with_module(module.clone());
        compiler.declare_further(source, class)?;
        compiler.finish()
    })
}

/// What the code of an archive is compiled from.
pub struct ArchiveCode<L> {
    /// Finds sources by module.
    pub library: L,
    /// `CONSTANTS.c0` and so on.
    pub constants: Vec<(Type, Attr)>,
    /// Classes that objects of the archive have.
    pub classes: Vec<String>,
}

/// Compiles the classes that an archive's objects have, with everything that they use.
pub fn compile_archive<L: Library + Send + 'static>(
    registry: &Arc<Registry>,
    code: ArchiveCode<L>,
) -> Result<Module> {
    names::check()?;
    on_deep_stack(move || {
        let ArchiveCode { library, constants, classes } = code;
        let mut compiler = Compiler::new(Arc::clone(registry)).with_library(Rc::new(library), constants);
        for class in &classes {
            compiler.require(class)?;
        }
        compiler.finish()
    })
}

/// The type that a stated annotation means (`List[int]`), with the classes of a module.
pub fn parse_annotation(module: &Module, text: &str) -> Result<Type> {
    let expr = super::parse_type(&Source::new("<type>", text))?;
    Compiler::annotation(module, &expr)
}

/// Runs work on a thread whose stack holds the deepest tree.
pub(super) fn on_deep_stack<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    // The thread works for the requester.
    let budget = budget::current();
    let work = || {
        let _installed = budget::install(budget);
        work()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let thread = thread.map_err(|e| Diagnostic::internal(format!("cannot start the compiler: {e}")))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
