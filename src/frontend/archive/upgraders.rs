//! What operators meant in older file formats. An archive of version n is compiled against the schemas of that
//! version; a call of an operator that has changed since becomes what it meant then, in today's operators.

use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::{Registry, composite, resolve};
use crate::frontend::script::compile_source;
use crate::ir::{Attr, Graph, Module, OpId, Symbol, ValueId};
use hashbrown::HashMap;
use std::sync::{Arc, LazyLock};

/// The oldest version that is written, where no operator needs a later one.
const LEAST: u64 = 3;

/// A change of an operator.
struct Upgrade {
    /// The version that brought the new meaning.
    since: u64,
    /// Its schema before.
    schema: &'static str,
    /// What it meant: a function of today's operators.
    meaning: &'static str,
}

const fn upgrade(since: u64, schema: &'static str, meaning: &'static str) -> Upgrade {
    Upgrade { since, schema, meaning }
}

/// Every change, by family. Division of integers rounded to zero up to version 3; `full` made floats of all numbers
/// up to 4; `linspace` and `logspace` could leave out the number of steps, which was 100; `gelu` had one formula.
static UPGRADES: &[Upgrade] = &[
    upgrade(
        4,
        "aten::div.Tensor(Tensor self, Tensor other) -> Tensor",
        "def old(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode='trunc')
",
    ),
    upgrade(
        4,
        "aten::div.Scalar(Tensor self, Scalar other) -> Tensor",
        "def old(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode='trunc')
",
    ),
    upgrade(
        4,
        "aten::div.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "def old(self: Tensor, other: Tensor, out: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point() or out.is_floating_point():
        return torch.div(self, other, out=out)
    return torch.div(self, other, rounding_mode='trunc', out=out)
",
    ),
    upgrade(
        4,
        "aten::div_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "def old(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return self.div_(other)
    return self.div_(other, rounding_mode='trunc')
",
    ),
    upgrade(
        4,
        "aten::div_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "def old(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return self.div_(other)
    return self.div_(other, rounding_mode='trunc')
",
    ),
    // Division with a rounding mode did not change; PyTorch counts it from version 4 all the same.
    upgrade(4, "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", ""),
    upgrade(4, "aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", ""),
    upgrade(4, "aten::div.out_mode(Tensor self, Tensor other, *, str? rounding_mode, Tensor(a!) out) -> Tensor(a!)", ""),
    upgrade(4, "aten::div_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? rounding_mode) -> Tensor(a!)", ""),
    upgrade(4, "aten::div_.Scalar_mode(Tensor(a!) self, Scalar other, *, str? rounding_mode) -> Tensor(a!)", ""),
    upgrade(
        5,
        "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "def old(size: List[int], fill_value: number, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    if dtype is None:
        return torch.full(size, float(fill_value), dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    return torch.full(size, fill_value, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
",
    ),
    upgrade(5, "aten::full.out(SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)", ""),
    upgrade(
        8,
        "aten::linspace(Scalar start, Scalar end, int? steps=None, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "def old(start: number, end: number, steps: Optional[int], dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    n = 100 if steps is None else steps
    return torch.linspace(start, end, n, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
",
    ),
    upgrade(
        8,
        "aten::linspace.out(Scalar start, Scalar end, int? steps=None, *, Tensor(a!) out) -> Tensor(a!)",
        "def old(start: number, end: number, steps: Optional[int], out: Tensor) -> Tensor:
    n = 100 if steps is None else steps
    return torch.linspace(start, end, n, out=out)
",
    ),
    upgrade(
        9,
        "aten::logspace(Scalar start, Scalar end, int? steps=None, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "def old(start: number, end: number, steps: Optional[int], base: float, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    n = 100 if steps is None else steps
    return torch.logspace(start, end, n, base, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
",
    ),
    upgrade(
        9,
        "aten::logspace.out(Scalar start, Scalar end, int? steps=None, float base=10., *, Tensor(a!) out) -> Tensor(a!)",
        "def old(start: number, end: number, steps: Optional[int], base: float, out: Tensor) -> Tensor:
    n = 100 if steps is None else steps
    return torch.logspace(start, end, n, base, out=out)
",
    ),
    upgrade(
        10,
        "aten::gelu(Tensor self) -> Tensor",
        "def old(self: Tensor) -> Tensor:
    return torch.gelu(self, approximate='none')
",
    ),
    upgrade(
        10,
        "aten::gelu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
        "def old(self: Tensor, out: Tensor) -> Tensor:
    return torch.gelu(self, approximate='none', out=out)
",
    ),
];

/// The table of ops for the code of a version: operators that have changed since have their schemas of then.
pub(super) fn registry(registry: &Arc<Registry>, version: u64) -> Arc<Registry> {
    let older: Vec<&Upgrade> = changed_since(version).collect();
    if older.is_empty() {
        return Arc::clone(registry);
    }
    let mut versioned = Registry::clone(registry);
    for upgrade in older {
        versioned.replace(composite(upgrade.schema, upgrade.meaning));
    }
    Arc::new(versioned)
}

/// Changes with a meaning of their own.
fn changed_since(version: u64) -> impl Iterator<Item = &'static Upgrade> {
    UPGRADES.iter().filter(move |u| u.since > version && !u.meaning.is_empty())
}

/// Replaces every call of an operator that has changed by what it meant; `versioned` is the table that the module was
/// compiled against, `today` the one it will run with.
pub(super) fn apply(module: &mut Module, versioned: &Registry, today: &Arc<Registry>) -> Result<()> {
    let mut meanings = Meanings { versioned, today, compiled: HashMap::new() };
    for function in module.functions.values_mut() {
        meanings.upgrade(&mut function.graph)?;
    }
    Ok(())
}

struct Meanings<'a> {
    versioned: &'a Registry,
    today: &'a Arc<Registry>,
    /// Graphs of meanings by schema.
    compiled: HashMap<&'static str, Graph>,
}

impl Meanings<'_> {
    fn upgrade(&mut self, graph: &mut Graph) -> Result<()> {
        for op in graph.all_ops() {
            if let Some(Attr::Graph(inner)) = graph.attr(op, "Subgraph") {
                let mut inner = Graph::clone(inner);
                self.upgrade(&mut inner)?;
                graph.set_attr(op, "Subgraph", Attr::Graph(Arc::new(inner)));
            }
            if !CHANGED.contains(&graph.kind(op)) {
                continue;
            }
            let Ok(row) = resolve(self.versioned, graph, op) else { continue };
            let schema = row.def().schema;
            let Some(upgrade) = UPGRADES.iter().find(|u| u.schema == schema && !u.meaning.is_empty()) else {
                continue;
            };
            if Some(upgrade.meaning) == row.def().meaning {
                splice(graph, op, self.meaning(upgrade)?);
            }
        }
        Ok(())
    }

    fn meaning(&mut self, upgrade: &Upgrade) -> Result<&Graph> {
        if !self.compiled.contains_key(upgrade.schema) {
            let module = compile_source(self.today, &Source::new("<upgrader>", upgrade.meaning))?;
            let function = module.function("old").or_else(|| module.functions.values().next());
            let graph = function.map(|f| f.graph.clone());
            let graph = graph.ok_or_else(|| Diagnostic::internal("an upgrader without a function"))?;
            self.compiled.insert(upgrade.schema, graph);
        }
        Ok(&self.compiled[upgrade.schema])
    }
}

/// Puts a copy of a graph in the place of an op.
fn splice(graph: &mut Graph, op: OpId, body: &Graph) {
    let operands = graph.operands(op).to_vec();
    let mut map: HashMap<ValueId, ValueId> = body.inputs().iter().copied().zip(operands).collect();
    let place = graph.location_id(op);
    for inner in body.block_ops(body.root()) {
        let copy = graph.copy_op(body, inner, &mut map);
        graph.insert_before(copy, op);
        let mut copies = vec![copy];
        while let Some(copy) = copies.pop() {
            graph.set_location_id(copy, place);
            for value in graph.results(copy) {
                graph.clear_name(value);
            }
            for block in graph.nested_blocks(copy).to_vec() {
                copies.extend(graph.block_ops(block));
            }
        }
    }
    let results: Vec<ValueId> = body.outputs().iter().map(|v| map.get(v).copied().unwrap_or(*v)).collect();
    graph.replace_op(op, &results);
}

/// Names of operators that have changed.
static CHANGED: LazyLock<Vec<Symbol>> = LazyLock::new(|| {
    let names = UPGRADES.iter().map(|u| u.schema.split(['.', '(']).next().unwrap_or_default());
    names.map(Symbol::new).collect()
});

/// The oldest version in which the operators of a module mean what they mean today; it is written into archives.
pub(super) fn least_version(registry: &Registry, module: &Module) -> u64 {
    let mut version = LEAST;
    let mut graphs: Vec<&Graph> = module.functions.values().map(|f| &f.graph).collect();
    while let Some(graph) = graphs.pop() {
        for op in graph.all_ops() {
            if let Some(Attr::Graph(inner)) = graph.attr(op, "Subgraph") {
                graphs.push(inner);
            }
            if !CHANGED.contains(&graph.kind(op)) {
                continue;
            }
            let Ok(row) = resolve(registry, graph, op) else { continue };
            let of = |schema: &str| schema.split('(').next().unwrap_or_default().to_string();
            let changes = UPGRADES.iter().filter(|u| of(u.schema) == of(row.schema_text()));
            version = changes.map(|u| u.since).fold(version, u64::max);
        }
    }
    version
}

/// Code that was compiled with the operators of the archive's version, with those of today.
pub(super) fn upgraded(
    registry: &Arc<Registry>,
    mut module: Module,
    versioned: &Arc<Registry>,
) -> Result<Module> {
    if !Arc::ptr_eq(versioned, registry) {
        apply(&mut module, versioned, registry)?;
    }
    Ok(module)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::PrintOptions;

    /// The graph of a function of one line as version `version` meant it.
    fn read(version: u64, source: &str) -> String {
        let today = Registry::builtin();
        let versioned = registry(&today, version);
        let mut module = compile_source(&versioned, &Source::new("<test>", source)).expect("compiles");
        apply(&mut module, &versioned, &today).expect("upgrades");
        let graph = &module.functions.values().next().expect("a function").graph;
        graph.to_text(&PrintOptions::bare())
    }

    #[test]
    fn integers_were_divided_towards_zero() {
        let source = "def f(a, b):\n    return a / b\n";
        let text = read(3, source);
        assert!(text.contains("value=\"trunc\"") && text.contains("aten::is_floating_point"), "{text}");
        assert_eq!(read(4, source).matches("aten::div").count(), 1);
        let text = read(3, "def f(a, b: float):\n    return a.div_(b)\n");
        assert!(text.contains("aten::div_") && text.contains("prim::isinstance"), "{text}");
    }

    #[test]
    fn arguments_that_could_be_left_out() {
        let text = read(7, "def f(a: float):\n    return torch.linspace(a, 2.)\n");
        assert!(text.contains("value=100"), "{text}");
        let text = read(8, "def f(a: float):\n    return torch.logspace(a, 2., None)\n");
        assert!(text.contains("value=100"), "{text}");
        let text = read(9, "def f(a):\n    return torch.gelu(a)\n");
        assert!(text.contains("value=\"none\""), "{text}");
        let text = read(4, "def f(n: int):\n    return torch.full([n], 2)\n");
        assert!(text.contains("aten::Float"), "{text}");
    }

    #[test]
    fn every_meaning_compiles() {
        let today = Registry::builtin();
        for upgrade in UPGRADES.iter().filter(|u| !u.meaning.is_empty()) {
            let compiled = compile_source(&today, &Source::new("<upgrader>", upgrade.meaning));
            assert!(compiled.is_ok(), "{}: {:?}", upgrade.schema, compiled.err());
        }
    }

    #[test]
    fn the_version_says_what_the_operators_mean() {
        let today = Registry::builtin();
        let version = |source: &str| {
            least_version(&today, &compile_source(&today, &Source::new("<test>", source)).expect("compiles"))
        };
        assert_eq!(version("def f(a: int, b: int):\n    return a / b\n"), 3);
        assert_eq!(version("def f(a, b):\n    return a / b\n"), 4);
        assert_eq!(version("def f(a, n: int):\n    return torch.full([n], 1), a / a\n"), 5);
        assert_eq!(version("def f(a):\n    return torch.gelu(a)\n"), 10);
    }
}
