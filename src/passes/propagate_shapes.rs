//! Shape propagation: writes what is known of each tensor (dtype, sizes, layout, device) into the types of values, from
//! the types of the graph's inputs and the rows of ops. What a type says already stays.

use super::Context;
use crate::analysis::shapes::{merge, propagate};
use crate::diag::{Result, Source};
use crate::dialects::Op;
use crate::dialects::shapes::Known;
use crate::dialects::shapes::open::OpenSizes;
use crate::frontend::dialect;
use crate::ir::{Dim, Graph, TensorType, Type, TypeKind, ValueId};
use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// What is known of every value of a graph, by value, from the types of its inputs.
pub fn known_values(graph: &Graph, context: &Context<'_>) -> Vec<Known> {
    known_of(graph, context, false)
}

/// The type of a value, with what [`known_values`] found.
pub fn inferred_type(graph: &Graph, known: &[Known], value: ValueId) -> Type {
    let declared = graph.ty(value);
    match (known.get(value.index()), declared.kind()) {
        (Some(Known::Tensor(found)), TypeKind::Tensor(t)) => Type::new(TypeKind::Tensor(merge(found, t))),
        _ => declared.clone(),
    }
}

/// The same, with a symbol for each size of an input that is not known: what follows from it is found by the symbol.
pub fn known_by_symbols(graph: &Graph, context: &Context<'_>) -> Vec<Known> {
    known_of(graph, context, true)
}

fn known_of(graph: &Graph, context: &Context<'_>, named: bool) -> Vec<Known> {
    let symbols = Cell::new(lowest_symbol(graph));
    let mut inputs: Vec<Known> = graph.inputs().iter().map(|v| Known::of_type(graph.ty(*v))).collect();
    let tensors = inputs.iter_mut().filter_map(|k| if let Known::Tensor(t) = k { Some(t) } else { None });
    for tensor in tensors.filter(|_| named) {
        let Some(sizes) = &mut tensor.sizes else { continue };
        let name = |dim: &Dim| {
            if *dim != Dim::Unknown {
                return *dim;
            }
            symbols.set(symbols.get() - 1);
            Dim::Symbol(symbols.get())
        };
        *sizes = sizes.iter().map(name).collect();
    }
    let meanings = Compiled { context, graphs: RefCell::default() };
    let own = if context.extra::<OpenSizes>().is_none() { own_open_sizes(graph) } else { None };
    let open = context.extra::<OpenSizes>().or(own.as_ref());
    propagate(context.registry, graph, &inputs, &symbols, open, &|op| meanings.get(op))
}

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let known = known_values(graph, context);
    let mut changed = false;
    for op in graph.all_ops() {
        let blocks = graph.nested_blocks(op).to_vec();
        let params = blocks.iter().flat_map(|b| graph.params(*b).to_vec());
        for value in graph.results(op).into_iter().chain(params.collect::<Vec<ValueId>>()) {
            changed |= refine(graph, context, value, &known[value.index()]);
        }
    }
    Ok(changed)
}

/// Writes what is known of a tensor into its type.
fn refine(graph: &mut Graph, context: &Context<'_>, value: ValueId, known: &Known) -> bool {
    let (Known::Tensor(found), TypeKind::Tensor(declared)) = (known, graph.ty(value).kind()) else {
        return false;
    };
    let merged = merge(found, declared);
    if merged == *declared || merged == TensorType::default() {
        return false;
    }
    let ty = Type::new(TypeKind::Tensor(merged));
    let maker = |graph: &Graph| graph.def_op(value).map(|op| graph.op_line(op)).unwrap_or_default();
    if !context.step(|| format!("finds {ty}: {}", maker(graph))) {
        return false;
    }
    graph.set_type(value, ty);
    true
}

/// The largest of open sizes in graphs that are not those of plans.
const LARGEST: i64 = 1 << 14;

/// Open sizes of a graph that was written with some: nothing is known of how they were made.
fn own_open_sizes(graph: &Graph) -> Option<OpenSizes> {
    let results = graph.all_ops().into_iter().flat_map(|op| graph.results(op));
    let values = graph.inputs().to_vec().into_iter().chain(results);
    let last = values.filter_map(|value| {
        let sizes = graph.ty(value).as_tensor()?.sizes.as_deref()?;
        sizes.iter().filter_map(|dim| if let Dim::Open(n) = dim { Some(*n) } else { None }).max()
    });
    last.max().map(|last| OpenSizes::new(last as usize + 1, LARGEST))
}

/// Fresh symbols are below all that stand in the graph. PyTorch's first one is -2.
fn lowest_symbol(graph: &Graph) -> i64 {
    let mut lowest = -1;
    for value in graph.inputs() {
        let sizes = graph.ty(*value).as_tensor().and_then(|t| t.sizes.clone());
        for dim in sizes.iter().flat_map(|s| s.iter()) {
            if let Dim::Symbol(n) = dim {
                lowest = lowest.min(*n);
            }
        }
    }
    lowest
}

/// Meanings of composite ops, compiled when first asked for.
struct Compiled<'a> {
    context: &'a Context<'a>,
    graphs: RefCell<HashMap<usize, Option<Arc<Graph>>>>,
}

impl Compiled<'_> {
    fn get(&self, op: &Op) -> Option<Arc<Graph>> {
        if let Some(known) = self.graphs.borrow().get(&op.id()) {
            return known.clone();
        }
        let graph = self.compile(op);
        self.graphs.borrow_mut().insert(op.id(), graph.clone());
        graph
    }

    fn compile(&self, op: &Op) -> Option<Arc<Graph>> {
        let text = op.def().meaning?;
        let registry = Arc::new(self.context.registry.clone());
        let name = format!("<meaning of {}>", op.name());
        dialect::meaning(&registry, &Source::new(name, text)).ok().map(|function| Arc::new(function.graph))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Registry;
    use crate::frontend::archive::{Archive, load};
    use crate::ir::{Module, Symbol, parse_graph};
    use base64::Engine;
    use serde_json::Value as Json;

    fn shown(text: &str) -> String {
        let registry = Registry::builtin();
        let module = Module::default();
        let mut graph = parse_graph(text).expect("a graph");
        run(&mut graph, &Context::new(&registry, &module)).expect("runs");
        graph.to_text(&crate::ir::PrintOptions::bare())
    }

    #[test]
    fn symbols_flow_and_fresh_ones_count_down() {
        let text = shown(
            "graph(%x : Float(SS(-2), 3), %y : Float(3, 4)):\n  %1 : Tensor = aten::mm(%x, %y)\n  %2 : int = prim::Constant[value=1]()\n  %3 : int = prim::Constant[value=0]()\n  %4 : Tensor[] = prim::ListConstruct(%1, %1)\n  %5 : Tensor = aten::cat(%4, %3)\n  %6 : Tensor = aten::unsqueeze(%5, %2)\n  return (%6)\n",
        );
        assert!(text.contains("%1 : Float(SS(-2), 4) = aten::mm"), "{text}");
        assert!(text.contains("%6 : Float(SS(-3), 1, 4) = aten::unsqueeze"), "{text}");
    }

    #[test]
    fn control_flow_says_what_its_ways_share() {
        let text = shown(
            "graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), %c : bool):\n  %1 : Tensor = prim::If(%c)\n    block0():\n      %2 : Tensor = aten::relu(%x)\n      -> (%2)\n    block1():\n      %3 : Tensor = aten::t(%x)\n      -> (%3)\n  return (%1)\n",
        );
        assert!(text.contains("%1 : Float(*, *, requires_grad=0, device=cpu) = prim::If"), "{text}");
        assert!(text.contains("%3 : Float(3, 2, strides=[1, 3], requires_grad=0, device=cpu)"), "{text}");
    }

    #[test]
    fn recorded_results_are_never_contradicted() {
        let folder = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
        never_contradicted(&folder.join("ops.jsonl"));
    }

    #[test]
    #[ignore = "reads the shared recorded cases; scripts/conformance.sh runs it"]
    fn shared_results_are_never_contradicted() {
        let folder = std::env::var_os("FLAMBEAU_CONFORMANCE").expect("FLAMBEAU_CONFORMANCE names a folder");
        never_contradicted(&std::path::PathBuf::from(folder).join("ops.jsonl"));
    }

    /// Each recorded sample of an operator: what is inferred never contradicts what PyTorch gave.
    fn never_contradicted(path: &std::path::Path) {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let (mut checked, mut with_dtype, mut with_sizes, mut wrong) = (0, 0, 0, Vec::new());
        let mut open: std::collections::BTreeMap<String, usize> = Default::default();
        for line in text.lines() {
            let case: Json = serde_json::from_str(line).expect("a case is JSON");
            let Some(known) = inferred(&case) else { continue };
            let (expected, name) = (&case["returns"], case["name"].as_str().unwrap_or_default());
            let mut pairs = Vec::new();
            pair_up(expected, &known, &mut pairs);
            for (expected, known) in pairs {
                checked += 1;
                let Known::Tensor(t) = known else {
                    *open.entry(op_of(&case)).or_default() += 1;
                    continue;
                };
                let dtype = expected["dtype"].as_str().unwrap_or_default();
                let sizes: Vec<i64> = serde_json::from_value(expected["shape"].clone()).unwrap_or_default();
                if t.dtype.is_some_and(|d| d.name() != dtype) {
                    wrong.push(format!("{name}: {:?} for {dtype}", t.dtype));
                }
                let fits = t.sizes.as_ref().is_none_or(|found| {
                    let one = |(d, n): (&Dim, &i64)| d.known().is_none_or(|d| d == *n);
                    found.len() == sizes.len() && found.iter().zip(&sizes).all(one)
                });
                if !fits {
                    wrong.push(format!("{name}: {:?} for {sizes:?}", t.sizes));
                }
                with_dtype += usize::from(t.dtype.is_some());
                let complete = t.sizes.as_ref().is_some_and(|s| s.iter().all(|d| d.known().is_some()));
                with_sizes += usize::from(complete);
                if t.dtype.is_none() || !complete {
                    *open.entry(op_of(&case)).or_default() += 1;
                }
            }
        }
        eprintln!("{checked} results: dtype of {with_dtype}, all sizes of {with_sizes}; open: {open:?}");
        assert!(wrong.is_empty(), "{} contradictions:\n{}", wrong.len(), wrong.join("\n"));
        assert!(with_sizes * 10 > checked * 6, "sizes of only {with_sizes} of {checked} results");
    }

    fn op_of(case: &Json) -> String {
        let name = || case["name"].as_str()?.split('.').next();
        case["op"].as_str().or_else(name).unwrap_or_default().to_owned()
    }

    /// Tensors of a recorded answer beside what is known of them.
    fn pair_up(expected: &Json, known: &Known, out: &mut Vec<(Json, Known)>) {
        if let Some(tensor) = expected.get("tensor") {
            out.push((tensor.clone(), known.clone()));
        }
        for key in ["list", "tuple"] {
            let Some(items) = expected.get(key).and_then(Json::as_array) else { continue };
            for (n, item) in items.iter().enumerate() {
                let known = match known {
                    Known::Items(known) => known.get(n).cloned().unwrap_or_default(),
                    _ => Known::Nothing,
                };
                pair_up(item, &known, out);
            }
        }
    }

    /// What is inferred of the result of a recorded case from the types of its arguments.
    fn inferred(case: &Json) -> Option<Known> {
        let registry = Registry::builtin();
        if case["pt"].is_null() {
            let graph = parse_graph(case["graph"].as_str()?).expect("a recorded graph is read");
            let inputs: Vec<Known> = case["args"].as_array()?.iter().map(argument).collect();
            let module = Module::default();
            let context = Context::new(&registry, &module);
            return first_output(&graph, &inputs, &context);
        }
        let bytes = base64::engine::general_purpose::STANDARD.decode(case["pt"].as_str()?).ok()?;
        let model = load(&registry, Archive::from_bytes(bytes).ok()?).ok()?;
        let class = model.module.class(match &model.root {
            crate::value::Value::Object(object) => object.class(),
            _ => return None,
        })?;
        let forward = class.methods.get(&Symbol::new("forward"))?;
        let mut graph = model.module.functions.get(forward)?.graph.clone();
        let context = Context::new(&registry, &model.module);
        super::super::inline::run(&mut graph, &context).ok()?;
        let mut inputs = vec![Known::Nothing];
        inputs.extend(case["args"].as_array()?.iter().map(argument));
        first_output(&graph, &inputs, &context)
    }

    fn first_output(graph: &Graph, inputs: &[Known], context: &Context<'_>) -> Option<Known> {
        let meanings = Compiled { context, graphs: RefCell::default() };
        let known = propagate(context.registry, graph, inputs, &Cell::new(-1), None, &|op| meanings.get(op));
        graph.outputs().first().map(|v| known[v.index()].clone())
    }

    fn argument(value: &Json) -> Known {
        if let Some(tensor) = value.get("tensor") {
            let sizes: Vec<i64> = serde_json::from_value(tensor["shape"].clone()).unwrap_or_default();
            let sizes: Vec<Dim> = sizes.into_iter().map(Dim::Known).collect();
            return Known::Tensor(TensorType {
                dtype: tensor["dtype"].as_str().and_then(crate::tensor::DType::from_name),
                strides: crate::dialects::shapes::dense(&sizes),
                sizes: Some(sizes.into()),
                ..TensorType::default()
            });
        }
        match value.get("list").or_else(|| value.get("tuple")).and_then(Json::as_array) {
            Some(items) => Known::Items(items.iter().map(argument).collect()),
            None => Known::Nothing,
        }
    }
}
