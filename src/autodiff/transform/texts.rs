//! TorchScript text as graphs: functions of cells compiled when first needed, their calls inlined, and kept with the table of
//! ops that they were compiled over.

use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::Registry;
use crate::frontend::script::compile_source;
use crate::ir::Graph;
use crate::passes::Pipeline;
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::sync::{Arc, LazyLock};

/// Graphs by their text.
#[derive(Default)]
pub(super) struct Texts(RwLock<HashMap<String, Arc<Graph>>>);

static INLINE: LazyLock<Result<Pipeline>> = LazyLock::new(|| crate::passes::parse("inline"));

impl Texts {
    /// Those over a table of ops.
    pub(super) fn of(registry: &Registry) -> Arc<Texts> {
        registry.derived(|_| Texts::default())
    }

    /// The last function of a text, with what it calls in it. Errors call the text `name`.
    pub(super) fn graph(&self, registry: &Arc<Registry>, name: &str, text: &str) -> Result<Arc<Graph>> {
        if let Some(graph) = self.0.read().get(text) {
            return Ok(Arc::clone(graph));
        }
        let source = Source::new(format!("<{name}>"), text);
        let mut module = compile_source(registry, &source)?;
        INLINE.as_ref().map_err(Clone::clone)?.run(&mut module, registry)?;
        let Some((_, function)) = module.functions.pop() else {
            return Err(Diagnostic::internal(format!("{name} has no function")));
        };
        let graph = Arc::new(function.graph);
        self.0.write().insert(text.to_string(), Arc::clone(&graph));
        Ok(graph)
    }
}

/// A gradient in dtype and sizes of what it belongs to; see `Engine::fitted`, which does the same on the tape.
pub(super) const FIT: &str = "def fit(g: Tensor, like: Tensor):
    if g.is_complex() and not like.is_complex():
        g = torch.real(g)
    if g.size() != like.size():
        g = g.sum_to_size(like.size())
    if g.dtype != like.dtype:
        g = g.to(like.dtype)
    return g
";
pub(super) const SUM: &str = "def sum(a: Tensor, b: Tensor):\n    return a + b\n";
/// Sums where one or both may be left out.
pub(super) const SUM_MAYBE: &str = "def sum(a: Tensor, b: Optional[Tensor]) -> Tensor:\n    if b is None:\n        return a\n    return a + b\n";
pub(super) const SUM_BOTH: &str = "def sum(a: Optional[Tensor], b: Optional[Tensor]) -> Optional[Tensor]:
    if a is None:
        return b
    if b is None:
        return a
    return a + b
";
/// A gradient that may be left out, as zeros where it is.
pub(super) const DEFINITE: &str = "def definite(g: Optional[Tensor], like: Tensor) -> Tensor:
    if g is None:
        return torch.zeros_like(like)
    return g
";
/// A gradient that is there at turn 0 only.
pub(super) const AT: &str = "def at(g: Tensor, turn: int) -> Optional[Tensor]:\n    if turn == 0:\n        return g\n    return None\n";
/// The next number of turns, and the turn that is gone through backward.
pub(super) const NEXT: &str = "def next(n: int) -> int:\n    return n + 1\n";
pub(super) const TURN: &str = "def turn(n: int, back: int) -> int:\n    return n - 1 - back\n";
/// The gradient of a result that nothing used, beside others that something used.
pub(super) const ZEROS: &str = "def zeros(like: Tensor):\n    return torch.zeros_like(like)\n";
pub(super) const NONE: &str = "def none():\n    return None\n";
pub(super) const ITEM: &str = "def item(gradients: List[Tensor], n: int):\n    return gradients[n]\n";
pub(super) const SURE: &str = "def sure(g: Optional[Tensor]):\n    assert g is not None\n    return g\n";

/// A function that makes a list of as many tensors.
pub(super) fn list_of(count: usize) -> String {
    let parameters: Vec<String> = (0..count).map(|n| format!("a{n}: Tensor")).collect();
    let items: Vec<String> = (0..count).map(|n| format!("a{n}")).collect();
    format!("def list({}) -> List[Tensor]:\n    return [{}]\n", parameters.join(", "), items.join(", "))
}

/// A function that makes a list of the sizes of as many tensors.
pub(super) fn sizes_of(count: usize) -> String {
    let parameters: Vec<String> = (0..count).map(|n| format!("a{n}: Tensor")).collect();
    let items: Vec<String> = (0..count).map(|n| format!("a{n}.size()")).collect();
    format!("def sizes({}) -> List[List[int]]:\n    return [{}]\n", parameters.join(", "), items.join(", "))
}

/// A function that says which of an entry's arguments want a gradient.
pub(super) fn needs_of(needs: &[bool]) -> String {
    let items: Vec<&str> = needs.iter().map(|need| if *need { "True" } else { "False" }).collect();
    format!("def needs():\n    return [{}]\n", items.join(", "))
}

/// A function that takes part `n` of a tuple, whose type is written `tuple`.
pub(super) fn part_of(tuple: &str, n: usize) -> String {
    format!("def part(t: {tuple}):\n    return t[{n}]\n")
}

/// A function that says whether one of as many gradients is there.
pub(super) fn some_of(count: usize) -> String {
    let parameters: Vec<String> = (0..count).map(|n| format!("a{n}: Optional[Tensor]")).collect();
    let tests: Vec<String> = (0..count).map(|n| format!("a{n} is not None")).collect();
    format!("def some({}) -> bool:\n    return {}\n", parameters.join(", "), tests.join(" or "))
}

/// Functions that make an empty list of elements of a type, a list with one more, and that take one out.
pub(super) fn empty_of(element: &str) -> String {
    format!("def empty() -> List[{element}]:\n    items: List[{element}] = []\n    return items\n")
}
pub(super) fn pushed_of(element: &str) -> String {
    format!(
        "def pushed(items: List[{element}], item: {element}) -> List[{element}]:\n    return items + [item]\n"
    )
}
pub(super) fn taken_of(element: &str) -> String {
    format!("def taken(items: List[{element}], n: int) -> {element}:\n    return items[n]\n")
}
