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
pub(super) const FIT: &str = include_str!("fit.py");
pub(super) const SUM: &str = "def sum(a: Tensor, b: Tensor):\n    return a + b\n";
/// Sums where one or both may be left out.
pub(super) const SUM_MAYBE: &str = "def sum(a: Tensor, b: Optional[Tensor]) -> Tensor:
    total = a
    if b is not None:
        total = a + b
    return total
";
pub(super) const SUM_BOTH: &str = include_str!("sum.py");
/// A gradient that may be left out, as zeros where it is.
pub(super) const DEFINITE: &str = "def definite(g: Optional[Tensor], like: Tensor) -> Tensor:
    return torch.zeros_like(like) if g is None else g
";
/// A gradient that exists in iteration 0 only.
pub(super) fn at(is_maybe: bool) -> String {
    let text = "def at(g: Item, iteration: int) -> Optional[Tensor]:
    one: Optional[Tensor] = None
    if iteration == 0:
        one = g
    return one
";
    text.replace("Item", item_type(is_maybe))
}
/// The same of a list.
pub(super) fn items_at(is_maybe: bool) -> String {
    let text = "def at(g: List[Item], iteration: int) -> List[Optional[Tensor]]:
    none: List[Optional[Tensor]] = []
    if iteration == 0:
        none = torch.ops.fusion.optional_items(g)
    return none
";
    text.replace("Item", item_type(is_maybe))
}
pub(super) const OPTIONAL_ITEMS: &str = "def maybe(g: List[Tensor]) -> List[Optional[Tensor]]:
    return torch.ops.fusion.optional_items(g)
";
/// A list of tensors that are like those of another, without their elements.
pub(super) const HOLLOW: &str = "def hollow(items: List[Tensor]) -> List[Tensor]:
    return [item.new_zeros([]).expand(item.size()) for item in items]
";
pub(super) const SIZES: &str =
    "def sizes(items: List[Tensor]) -> List[List[int]]:\n    return [item.size() for item in items]\n";
/// A list's gradient so far, with a place for each element.
pub(super) fn full() -> String {
    format!(
        "{FILL}def full(former: List[Optional[Tensor]], items: List[Tensor]) -> List[Optional[Tensor]]:
    return filled(former, len(items))
"
    )
}
pub(super) const DEFINITE_ITEMS: &str = include_str!("definite.py");
/// Whether one of two values requires grad.
pub(super) const EITHER: &str = "def either(a: bool, b: bool) -> bool:\n    return a or b\n";
/// The iteration that the backward runs.
pub(super) const NEXT: &str = "def next(n: int) -> int:\n    return n + 1\n";
pub(super) const ITERATION: &str = "def iteration(n: int, back: int) -> int:\n    return n - 1 - back\n";
/// The gradient of a result that nothing used, beside others that something used.
pub(super) const ZEROS: &str = "def zeros(like: Tensor):\n    return torch.zeros_like(like)\n";
pub(super) const NONE: &str = "def none():\n    return None\n";
pub(super) const ITEM: &str = "def item(grad: List[Tensor], idx: int) -> Tensor:\n    return grad[idx]\n";
const MAYBE_ITEM: &str = "def item(grad: List[Optional[Tensor]], idx: int) -> Optional[Tensor]:
    one: Optional[Tensor] = None
    if len(grad) > 0:
        one = grad[idx]
    return one
";
/// A list's gradient with a place for each element, where it is known to have them, and where not.
const FILLED: &str =
    "def filled(former: List[Optional[Tensor]], n: int) -> List[Optional[Tensor]]:\n    return former\n";
const FILL: &str = "def filled(former: List[Optional[Tensor]], n: int) -> List[Optional[Tensor]]:
    all = former
    if len(former) == 0:
        none: Optional[Tensor] = None
        all = [none] * n
    return all
";
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

/// A function that says whether one of as many gradients is there; says which are gradients of lists.
pub(super) fn some_of(are_lists: &[bool]) -> String {
    let ty = |is_list: &bool| if *is_list { "List[Optional[Tensor]]" } else { "Optional[Tensor]" };
    let parameters: Vec<String> =
        are_lists.iter().enumerate().map(|(n, list)| format!("a{n}: {}", ty(list))).collect();
    let test = |(n, list): (usize, &bool)| match list {
        true => format!("has(a{n})"),
        false => format!("a{n} is not None"),
    };
    let tests: Vec<String> = are_lists.iter().enumerate().map(test).collect();
    format!("{HAS}def some({}) -> bool:\n    return {}\n", parameters.join(", "), tests.join(" or "))
}

const HAS: &str = "def has(items: List[Optional[Tensor]]) -> bool:
    found = False
    for item in items:
        if item is not None:
            found = True
    return found
";

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

/// The type of the gradient of a list's element.
fn item_type(is_maybe: bool) -> &'static str {
    if is_maybe { "Optional[Tensor]" } else { "Tensor" }
}

/// A function that takes the gradient of an element out of those of a list.
pub(super) fn item_of(is_maybe: bool) -> &'static str {
    if is_maybe { MAYBE_ITEM } else { ITEM }
}

/// The text of an entry of an op on lists: whether an element may have no gradient, and whether the former gradient has a place
/// for each element.
pub(super) fn of_items(text: &str, is_maybe: bool, is_full: bool) -> String {
    let filled = if is_full { FILLED } else { FILL };
    format!("{}{filled}{}", item_of(is_maybe), text.replace("Item", item_type(is_maybe)))
}

/// A function that fits the gradients of elements to these; see [`FIT`].
pub(super) fn fitted_items(is_maybe: bool) -> String {
    let text = match is_maybe {
        false => {
            "def fitted(g: List[Tensor], like: List[Tensor]) -> List[Tensor]:
    return [fit(g[n], like[n]) for n in range(len(g))]
"
        }
        true => {
            include_str!("fitted.py")
        }
    };
    format!("{FIT}{text}")
}

/// A function that adds the gradients of elements; says which of the lists is one whose elements may have none.
pub(super) fn sum_of_items(first: bool, second: bool) -> String {
    if !first && !second {
        return "def sum(a: List[Tensor], b: List[Tensor]) -> List[Tensor]:
    return [a[n] + b[n] for n in range(len(a))]
"
        .to_string();
    }
    let (a, b) = (item_type(first), item_type(second));
    format!(
        "{SUM_BOTH}def sums(a: List[{a}], b: List[{b}]) -> List[Optional[Tensor]]:
    all = torch.ops.fusion.optional_items(a)
    if len(a) == 0:
        all = torch.ops.fusion.optional_items(b)
    elif len(b) > 0:
        all = [sum(a[n], b[n]) for n in range(len(a))]
    return all
"
    )
}
