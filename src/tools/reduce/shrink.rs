//! The ways to make a module and a pipeline smaller. Large cuts are tried before small ones, all of them again until none helps.

use super::best::Best;
use crate::diag::Result;
use crate::ir::{Attr, Graph, LocationId, Module, OpId, Symbol, Type, TypeKind, ValueId};
use crate::passes::Pipeline;
use crate::passes::manager::{Nest, Step};
use hashbrown::HashMap;
use std::sync::Arc;

/// Applies every way until none makes it smaller.
pub(super) fn all(best: &mut Best<'_, '_>) -> Result<()> {
    loop {
        let mut smaller = passes(best)?;
        smaller |= functions(best)?;
        smaller |= ops(best)?;
        smaller |= blocks(best)?;
        smaller |= outputs(best)?;
        smaller |= inputs(best)?;
        smaller |= details(best)?;
        if !smaller || best.is_over() {
            return Ok(());
        }
    }
}

// --- pipeline ---

/// Leaves out passes, takes nests apart.
fn passes(best: &mut Best<'_, '_>) -> Result<bool> {
    let mut smaller = false;
    'again: loop {
        for candidate in shorter(&best.pipeline.steps) {
            let module = best.module.clone();
            if best.offer(module, Pipeline { steps: candidate })? {
                smaller = true;
                continue 'again;
            }
        }
        return Ok(smaller);
    }
}

/// All lists that have one step less, or a nest less.
fn shorter(steps: &[Step]) -> Vec<Vec<Step>> {
    let mut all = Vec::new();
    for n in 0..steps.len() {
        let with = |middle: &[Step]| [&steps[..n], middle, &steps[n + 1..]].concat();
        all.push(with(&[]));
        if let Step::Nest(nest, inner) = &steps[n] {
            if matches!(nest, Nest::Repeat(_)) {
                all.push(with(inner));
            }
            all.extend(shorter(inner).into_iter().map(|inner| with(&[Step::Nest(nest.clone(), inner)])));
        }
    }
    all
}

// --- functions ---

/// Leaves out functions.
fn functions(best: &mut Best<'_, '_>) -> Result<bool> {
    let mut smaller = false;
    for name in best.module.functions.keys().copied().collect::<Vec<_>>() {
        if best.module.functions.len() < 2 {
            break;
        }
        let mut module = best.module.clone();
        module.functions.shift_remove(&name);
        smaller |= best.offer_module(module)?;
    }
    Ok(smaller)
}

// --- graphs ---

/// Deeper nests of subgraphs are left alone.
const MAX_DEPTH: usize = 32;

/// Where a graph is: a function's own, or that of an attribute of the n-th op of the graph around it.
#[derive(Clone, Debug, PartialEq)]
struct Spot {
    function: Symbol,
    path: Vec<(usize, Symbol)>,
}

impl Spot {
    fn is_nested(&self) -> bool {
        !self.path.is_empty()
    }
}

/// All graphs of a module, outer ones first.
fn spots(module: &Module) -> Vec<Spot> {
    let mut found = Vec::new();
    for (name, function) in &module.functions {
        let mut work = vec![(Spot { function: *name, path: Vec::new() }, &function.graph)];
        while let Some((spot, graph)) = work.pop() {
            for (n, op) in graph.all_ops().into_iter().enumerate().filter(|_| spot.path.len() < MAX_DEPTH) {
                for (attr, inner) in graph.attrs(op) {
                    if let Some(inner) = inner.as_graph() {
                        let path = [spot.path.as_slice(), &[(n, *attr)]].concat();
                        work.push((Spot { function: spot.function, path }, inner));
                    }
                }
            }
            found.push(spot);
        }
    }
    found
}

fn graph_at<'m>(module: &'m Module, spot: &Spot) -> Option<&'m Graph> {
    let mut graph = &module.functions.get(&spot.function)?.graph;
    for (n, attr) in &spot.path {
        let op = *graph.all_ops().get(*n)?;
        graph = graph.attr(op, attr.as_str())?.as_graph()?;
    }
    Some(graph)
}

/// The module with one of its graphs changed; none where the change does not apply.
fn changed(module: &Module, spot: &Spot, change: &mut dyn FnMut(&mut Graph) -> Option<()>) -> Option<Module> {
    let mut module = module.clone();
    let function = module.functions.get_mut(&spot.function)?;
    change_at(&mut function.graph, &spot.path, change)?;
    Some(module)
}

fn change_at(
    graph: &mut Graph,
    path: &[(usize, Symbol)],
    change: &mut dyn FnMut(&mut Graph) -> Option<()>,
) -> Option<()> {
    let Some(((n, attr), rest)) = path.split_first() else { return change(graph) };
    let op = *graph.all_ops().get(*n)?;
    let mut inner = Graph::clone(graph.attr(op, attr.as_str())?.as_graph()?);
    change_at(&mut inner, rest, change)?;
    graph.set_attr(op, *attr, Attr::Graph(Arc::new(inner)));
    Some(())
}

/// Changes the op that holds a graph together with the graph: what it takes and gives must correspond.
fn changed_with_owner(
    module: &Module,
    spot: &Spot,
    change: &mut dyn FnMut(&mut Graph, OpId, &mut Graph) -> Option<()>,
) -> Option<Module> {
    let ((n, attr), around) = spot.path.split_last()?;
    let outer = Spot { function: spot.function, path: around.to_vec() };
    changed(module, &outer, &mut |graph| {
        let op = *graph.all_ops().get(*n)?;
        let mut inner = Graph::clone(graph.attr(op, attr.as_str())?.as_graph()?);
        change(graph, op, &mut inner)?;
        if graph.is_live(op) {
            graph.set_attr(op, *attr, Attr::Graph(Arc::new(inner)));
        }
        Some(())
    })
}

/// Does something for each graph. What it does in a graph leaves the places of the others as they are.
fn each(
    best: &mut Best<'_, '_>,
    mut work: impl FnMut(&mut Best<'_, '_>, &Spot) -> Result<bool>,
) -> Result<bool> {
    let mut smaller = false;
    let mut n = 0;
    while let Some(spot) = spots(&best.module).get(n).cloned() {
        smaller |= work(best, &spot)?;
        n += 1;
    }
    Ok(smaller)
}

// --- ops ---

/// Leaves out ops: halves, quarters and so on, down to single ones, from the end to the start.
fn ops(best: &mut Best<'_, '_>) -> Result<bool> {
    each(best, |best, spot| {
        let mut smaller = false;
        let count = |best: &Best<'_, '_>| graph_at(&best.module, spot).map_or(0, |g| g.all_ops().len());
        let mut chunk = count(best).div_ceil(2);
        // A new input of a nested graph would be an operand that the op around it does not have.
        let may_add = !best.has_arguments() && !spot.is_nested();
        while chunk > 0 && !best.is_over() {
            let mut end = count(best);
            while end > 0 {
                let start = end.saturating_sub(chunk);
                let candidate = changed(&best.module, spot, &mut |graph| {
                    let ops = graph.all_ops();
                    for op in ops.get(start..end.min(ops.len()))?.iter().rev() {
                        remove(graph, *op, may_add);
                    }
                    (graph.all_ops().len() < ops.len()).then_some(())
                });
                if let Some(module) = candidate {
                    smaller |= best.offer_module(module)?;
                }
                end = start;
            }
            chunk /= 2;
        }
        Ok(smaller)
    })
}

/// Removes an op; what used its results gets an operand of the same type, a graph input, or a constant.
fn remove(graph: &mut Graph, op: OpId, may_add: bool) {
    if !graph.is_live(op) {
        return;
    }
    let mut with = Vec::new();
    for result in graph.results(op) {
        if !graph.has_uses(result) {
            // Any value works, as it is unused.
            with.push(result);
            continue;
        }
        let ty = graph.ty(result).clone();
        let like =
            |graph: &Graph, values: &[ValueId]| values.iter().copied().find(|v| same(graph.ty(*v), &ty));
        let found = like(graph, graph.operands(op)).or_else(|| like(graph, graph.inputs()));
        let found = found.or_else(|| constant(graph, op, &ty));
        match found {
            Some(value) => with.push(value),
            None if may_add => {
                let input = graph.add_input(ty);
                with.push(input);
            }
            None => return,
        }
    }
    let results: Vec<ValueId> = graph.results(op).to_vec();
    for (old, new) in results.iter().zip(&with) {
        if old != new {
            graph.replace_all_uses(*old, *new);
        }
    }
    graph.erase(op);
}

fn same(a: &Type, b: &Type) -> bool {
    a == b || matches!((a.kind(), b.kind()), (TypeKind::Tensor(_), TypeKind::Tensor(_)))
}

fn constant(graph: &mut Graph, before: OpId, ty: &Type) -> Option<ValueId> {
    let value = match ty.kind() {
        TypeKind::Int => Attr::Int(1),
        TypeKind::Float => Attr::Float(1.0),
        TypeKind::Bool => Attr::Bool(true),
        TypeKind::Str => Attr::Str("".into()),
        TypeKind::None | TypeKind::Optional(_) => Attr::None,
        _ => return None,
    };
    let op = graph.create("prim::Constant".into(), &[], std::slice::from_ref(ty));
    if !matches!(value, Attr::None) {
        graph.set_attr(op, "value", value);
    }
    graph.insert_before(op, before);
    graph.result(op, 0)
}

// --- blocks ---

/// Replaces ops that have blocks or subgraphs by what one of these does.
fn blocks(best: &mut Best<'_, '_>) -> Result<bool> {
    let mut smaller = each(best, |best, spot| {
        let mut smaller = false;
        let mut n = 0;
        while let Some((op, count)) = graph_at(&best.module, spot).and_then(|g| nth_with_blocks(g, n)) {
            let mut taken = false;
            for block in 0..count {
                let candidate =
                    changed(&best.module, spot, &mut |graph| unwrap(graph, op, block).then_some(()));
                if let Some(module) = candidate
                    && best.offer_module(module)?
                {
                    (smaller, taken) = (true, true);
                    break;
                }
            }
            n += usize::from(!taken);
        }
        Ok(smaller)
    })?;
    // From the inside out: a graph that goes takes its own subgraphs along.
    for spot in spots(&best.module).into_iter().rev().filter(Spot::is_nested) {
        if let Some(module) = changed_with_owner(&best.module, &spot, &mut unwrap_subgraph) {
            smaller |= best.offer_module(module)?;
        }
    }
    Ok(smaller)
}

/// Puts the ops of a subgraph in the place of the op that holds it, where operands and results correspond.
fn unwrap_subgraph(graph: &mut Graph, op: OpId, inner: &mut Graph) -> Option<()> {
    let operands = graph.operands(op).to_vec();
    if inner.inputs().len() != operands.len() || inner.outputs().len() != graph.result_count(op) {
        return None;
    }
    let mut map: HashMap<ValueId, ValueId> = inner.inputs().iter().copied().zip(operands).collect();
    for each in inner.block_ops(inner.root()).collect::<Vec<_>>() {
        let copy = graph.copy_op(inner, each, &mut map);
        graph.insert_before(copy, op);
    }
    let results: Vec<ValueId> =
        inner.outputs().iter().map(|value| map.get(value).copied()).collect::<Option<_>>()?;
    graph.replace_op(op, &results);
    Some(())
}

fn nth_with_blocks(graph: &Graph, n: usize) -> Option<(OpId, usize)> {
    let ops = graph.all_ops().into_iter().filter(|op| !graph.nested_blocks(*op).is_empty());
    ops.map(|op| (op, graph.nested_blocks(op).len())).nth(n)
}

/// Puts the ops of a block in place of its owner; false if results or parameters do not correspond.
fn unwrap(graph: &mut Graph, op: OpId, block: usize) -> bool {
    let Some(block) = graph.nested_blocks(op).get(block).copied() else { return false };
    let (operands, params) = (graph.operands(op).to_vec(), graph.params(block).to_vec());
    let inner = graph.block_results(block).to_vec();
    let wanted = graph.result_count(op);
    // A loop's block has its trip count first and says first whether to go on.
    let (arguments, results) = match (params.len(), inner.len()) {
        (0, n) if n == wanted => (Vec::new(), inner),
        (p, n) if n == wanted + 1 && operands.len() == p + 1 => {
            let arguments = operands.iter().take(1).chain(operands.iter().skip(2)).copied().collect();
            (arguments, inner[1..].to_vec())
        }
        _ => return false,
    };
    if params.len() != arguments.len() {
        return false;
    }
    let mut results = results;
    for (param, argument) in params.iter().zip(&arguments) {
        for result in results.iter_mut().filter(|r| *r == param) {
            *result = *argument;
        }
        graph.replace_all_uses(*param, *argument);
    }
    graph.splice_before(block, op);
    graph.replace_op(op, &results);
    true
}

// --- borders ---

/// Leaves out outputs of graphs.
fn outputs(best: &mut Best<'_, '_>) -> Result<bool> {
    each(best, |best, spot| {
        let mut smaller = false;
        let mut n = graph_at(&best.module, spot).map_or(0, |g| g.outputs().len());
        while n > 0 {
            n -= 1;
            let candidate = if spot.is_nested() {
                changed_with_owner(&best.module, spot, &mut |graph, op, inner| {
                    let unused = graph.result_count(op) == inner.outputs().len()
                        && !graph.has_uses(graph.result(op, n)?);
                    unused.then(|| {
                        graph.remove_result(op, n);
                        inner.remove_block_result(inner.root(), n);
                    })
                })
            } else {
                without_output(&best.module, spot.function, n)
            };
            if let Some(module) = candidate {
                smaller |= best.offer_module(module)?;
            }
        }
        Ok(smaller)
    })
}

fn without_output(module: &Module, name: Symbol, n: usize) -> Option<Module> {
    let mut module = module.clone();
    let function = module.functions.get_mut(&name)?;
    let root = function.graph.root();
    function.graph.remove_block_result(root, n);
    if n < function.schema.returns.len() {
        function.schema.returns.remove(n);
    }
    Some(module)
}

/// Drops unused inputs; those of a subgraph with the operands of the op around it.
fn inputs(best: &mut Best<'_, '_>) -> Result<bool> {
    let keep = best.has_arguments();
    each(best, |best, spot| {
        let mut smaller = false;
        let mut n = graph_at(&best.module, spot).map_or(0, |g| g.inputs().len());
        while n > 0 {
            n -= 1;
            let unused = |graph: &Graph| graph.inputs().get(n).is_some_and(|input| !graph.has_uses(*input));
            let candidate = if spot.is_nested() {
                changed_with_owner(&best.module, spot, &mut |graph, op, inner| {
                    let fits = graph.operands(op).len() == inner.inputs().len() && unused(inner);
                    fits.then(|| {
                        graph.remove_operand(op, n);
                        inner.remove_param(inner.root(), n);
                    })
                })
            } else if !keep && graph_at(&best.module, spot).is_some_and(unused) {
                without_input(&best.module, spot.function, n)
            } else {
                None
            };
            if let Some(module) = candidate {
                smaller |= best.offer_module(module)?;
            }
        }
        Ok(smaller)
    })
}

fn without_input(module: &Module, name: Symbol, n: usize) -> Option<Module> {
    let mut module = module.clone();
    let function = module.functions.get_mut(&name)?;
    let root = function.graph.root();
    function.graph.remove_param(root, n);
    if n < function.schema.arguments.len() {
        function.schema.arguments.remove(n);
    }
    Some(module)
}

// --- details ---

/// Leaves out locations, attributes, and what is known of tensors.
fn details(best: &mut Best<'_, '_>) -> Result<bool> {
    let mut smaller = false;
    let located = |g: &Graph| g.all_ops().iter().any(|op| !g.location_id(*op).is_unknown());
    smaller |= simpler(best, &located, &|graph| {
        for op in graph.all_ops() {
            graph.set_location_id(op, LocationId::UNKNOWN);
        }
    })?;
    let is_known = |ty: &Type| matches!(ty.kind(), TypeKind::Tensor(t) if *t != Default::default());
    let knows = |g: &Graph| {
        let results = g.all_ops().into_iter().flat_map(|op| g.results(op));
        results.chain(g.inputs().iter().copied()).any(|v| is_known(g.ty(v)))
    };
    smaller |= simpler(best, &knows, &|graph| {
        graph.map_types(&mut |ty| if is_known(ty) { Type::tensor() } else { ty.clone() });
    })?;
    smaller |= each(best, attributes)?;
    Ok(smaller)
}

/// Makes all graphs simpler at once, those that need it.
fn simpler(
    best: &mut Best<'_, '_>,
    needs: &dyn Fn(&Graph) -> bool,
    make: &dyn Fn(&mut Graph),
) -> Result<bool> {
    let mut candidate: Option<Module> = None;
    for spot in spots(&best.module) {
        let module = candidate.as_ref().unwrap_or(&best.module);
        if graph_at(module, &spot).is_some_and(needs) {
            candidate = changed(module, &spot, &mut |graph| {
                make(graph);
                Some(())
            });
        }
    }
    match candidate {
        Some(module) => best.offer_module(module),
        None => Ok(false),
    }
}

/// Leaves out attributes, subgraphs aside.
fn attributes(best: &mut Best<'_, '_>, spot: &Spot) -> Result<bool> {
    let mut smaller = false;
    for op in graph_at(&best.module, spot).map(Graph::all_ops).unwrap_or_default() {
        let names: Vec<Symbol> = graph_at(&best.module, spot)
            .filter(|g| g.is_live(op) && g.kind(op) != "prim::Constant")
            .map_or(Vec::new(), |g| {
                g.attrs(op).iter().filter(|(_, a)| a.as_graph().is_none()).map(|(n, _)| *n).collect()
            });
        for attr in names {
            let candidate = changed(&best.module, spot, &mut |graph| {
                graph.remove_attr(op, attr.as_str());
                Some(())
            });
            if let Some(module) = candidate {
                smaller |= best.offer_module(module)?;
            }
        }
    }
    Ok(smaller)
}
