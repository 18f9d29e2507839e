//! From text to a module of graphs.

use super::emit::Compiler;
pub use super::emit::Library;
use super::host::{Host, Meaning};
use crate::diag::{Diagnostic, Result, Source, Span};
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

/// Compiles a thing of the host with all that it needs; its qualified name is `wanted`.
pub fn compile_hosted(registry: &Arc<Registry>, host: Box<dyn Host>, wanted: Vec<Meaning>) -> Result<Module> {
    names::check()?;
    on_deep_stack(move || {
        let mut compiler = Compiler::new(Arc::clone(registry)).with_host(Rc::from(host));
        let place = Span::new(&Source::new("<host>", ""), 0, 0);
        for meaning in wanted {
            compiler.declare_hosted(meaning, &place)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::script::{FunctionText, Member};

    /// A program that has `scale`, `twice`, `alias` and a container of two modules.
    struct Fixed(Arc<Source>);

    impl Host for Fixed {
        fn knows(&self, source: &Arc<Source>) -> bool {
            Arc::ptr_eq(source, &self.0)
        }

        fn same_names(&self, _: &Arc<Source>, _: &Arc<Source>) {}

        fn name(&self, name: &str, _: &Span) -> Result<Option<Meaning>> {
            Ok(match name {
                "scale" => Some(Meaning::Constant(Type::int(), Attr::Int(3))),
                "np" => Some(Meaning::Path("torch".to_string())),
                "Numbers" => Some(Meaning::Type("List[int]".to_string())),
                "twice" => Some(Meaning::Function(FunctionText {
                    name: Symbol::new("__torch__.m.twice"),
                    source: Source::starting_at("m.py", "def twice(x):\n    return x * 2\n", 40),
                })),
                "broken" => return Err(Diagnostic::compile("no such thing")),
                _ => None,
            })
        }

        fn attribute(&self, _: u64, _: &str, _: &Span) -> Result<Option<Meaning>> {
            Ok(None)
        }

        fn numbered(&self, _: u64) -> Result<Meaning> {
            Err(Diagnostic::internal("nothing is numbered"))
        }

        fn member(&self, _: Symbol, _: &str, _: &Span) -> Result<Option<Member>> {
            Ok(None)
        }
    }

    fn compile(text: &str) -> Result<Module> {
        let source = Source::starting_at("program.py", text, 7);
        let wanted = FunctionText { name: Symbol::new("__torch__.f"), source: Arc::clone(&source) };
        compile_hosted(&Registry::builtin(), Box::new(Fixed(source)), vec![Meaning::Function(wanted)])
    }

    #[test]
    fn names_mean_what_the_host_says() {
        let text = "def f(x, n: Numbers):\n    return np.relu(twice(x)) * scale + len(n)\n";
        let module = compile(text).expect("compiles");
        let names: Vec<&str> = module.functions.keys().map(|name| name.as_str()).collect();
        assert_eq!(names, ["__torch__.m.twice", "__torch__.f"]);
        let graph = module.function("__torch__.f").expect("is there").graph.to_string();
        assert!(graph.contains("%n : int[]") && graph.contains("prim::Constant[value=3]"), "{graph}");
        assert!(graph.contains("aten::relu") && graph.contains("program.py:8"), "{graph}");
    }

    #[test]
    fn what_the_host_has_not_is_undefined() {
        let error = compile("def f(x):\n    return x + nothing\n").expect_err("is not there");
        assert!(error.message().contains("undefined value nothing"), "{error}");
        assert_eq!(error.report().span.as_ref().map(|span| span.line_column().0), Some(8));
    }

    #[test]
    fn the_hosts_own_errors_end_the_compilation() {
        let error = compile("def f(x):\n    return broken(x)\n").expect_err("is refused");
        assert!(error.message().contains("no such thing"), "{error}");
    }
}
