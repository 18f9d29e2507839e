//! The ways to make a module and a pipeline smaller. Large cuts are tried before small ones, all of them again until none helps.

use super::Best;
use crate::diag::Result;
use crate::ir::{Attr, Graph, LocationId, Module, OpId, Symbol, Type, TypeKind, ValueId};
use crate::passes::Pipeline;
use crate::passes::manager::{Nest, Step};

/// Applies every way until none makes it smaller.
pub(super) fn all(best: &mut Best<'_, '_>) -> Result<()> {
    loop {
        let mut smaller = passes(best)?;
        smaller |= functions(best)?;
        smaller |= ops(best)?;
        smaller |= blocks(best)?;
        smaller |= outputs(best)?;
        if !best.has_arguments() {
            smaller |= inputs(best)?;
        }
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

// --- ops ---

/// Leaves out ops: halves, quarters and so on, down to single ones, from the end to the start.
fn ops(best: &mut Best<'_, '_>) -> Result<bool> {
    let mut smaller = false;
    for name in best.module.functions.keys().copied().collect::<Vec<_>>() {
        let mut chunk = graph_of(&best.module, name).map_or(0, |g| g.op_count().div_ceil(2));
        while chunk > 0 && !best.is_over() {
            let mut end = graph_of(&best.module, name).map_or(0, |g| g.all_ops().len());
            while end > 0 {
                let start = end.saturating_sub(chunk);
                let mut module = best.module.clone();
                if let Some(function) = module.functions.get_mut(&name) {
                    let ops = function.graph.all_ops();
                    let cut: Vec<OpId> = ops.get(start..end.min(ops.len())).unwrap_or(&[]).to_vec();
                    let may_add = !best.has_arguments();
                    for op in cut.into_iter().rev() {
                        remove(&mut function.graph, op, may_add);
                    }
                    if function.graph.op_count() < ops.len() && best.offer_module(module)? {
                        smaller = true;
                    }
                }
                end = start;
            }
            chunk /= 2;
        }
    }
    Ok(smaller)
}

fn graph_of(module: &Module, name: Symbol) -> Option<&Graph> {
    module.functions.get(&name).map(|f| &f.graph)
}

/// Removes an op; what used its results gets an operand of the same type, a graph input, or a constant.
fn remove(graph: &mut Graph, op: OpId, may_add: bool) {
    if !graph.is_live(op) {
        return;
    }
    let mut with = Vec::new();
    for result in graph.results(op) {
        if !graph.has_uses(result) {
            // Anything does: nobody looks.
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

/// Replaces ops that have blocks by what one of the blocks does.
fn blocks(best: &mut Best<'_, '_>) -> Result<bool> {
    let mut smaller = false;
    for name in best.module.functions.keys().copied().collect::<Vec<_>>() {
        let mut n = 0;
        while let Some((op, count)) = graph_of(&best.module, name).and_then(|g| nth_with_blocks(g, n)) {
            let mut taken = false;
            for block in 0..count {
                let mut module = best.module.clone();
                let Some(function) = module.functions.get_mut(&name) else { break };
                if unwrap(&mut function.graph, op, block) && best.offer_module(module)? {
                    (smaller, taken) = (true, true);
                    break;
                }
            }
            n += usize::from(!taken);
        }
    }
    Ok(smaller)
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
    let mut smaller = false;
    for name in best.module.functions.keys().copied().collect::<Vec<_>>() {
        let mut n = graph_of(&best.module, name).map_or(0, |g| g.outputs().len());
        while n > 0 {
            n -= 1;
            let mut module = best.module.clone();
            let Some(function) = module.functions.get_mut(&name) else { break };
            let root = function.graph.root();
            function.graph.remove_block_result(root, n);
            if n < function.schema.returns.len() {
                function.schema.returns.remove(n);
            }
            smaller |= best.offer_module(module)?;
        }
    }
    Ok(smaller)
}

/// Leaves out inputs that nobody uses.
fn inputs(best: &mut Best<'_, '_>) -> Result<bool> {
    let mut smaller = false;
    for name in best.module.functions.keys().copied().collect::<Vec<_>>() {
        let mut n = graph_of(&best.module, name).map_or(0, |g| g.inputs().len());
        while n > 0 {
            n -= 1;
            let mut module = best.module.clone();
            let Some(function) = module.functions.get_mut(&name) else { break };
            let Some(input) = function.graph.inputs().get(n).copied() else { continue };
            if function.graph.has_uses(input) {
                continue;
            }
            let root = function.graph.root();
            function.graph.remove_param(root, n);
            if n < function.schema.arguments.len() {
                function.schema.arguments.remove(n);
            }
            smaller |= best.offer_module(module)?;
        }
    }
    Ok(smaller)
}

// --- details ---

/// Leaves out locations, attributes, and what is known of tensors.
fn details(best: &mut Best<'_, '_>) -> Result<bool> {
    let mut smaller = false;
    let located = |g: &Graph| g.all_ops().iter().any(|op| !g.location_id(*op).is_unknown());
    if best.module.functions.values().any(|f| located(&f.graph)) {
        let mut module = best.module.clone();
        for function in module.functions.values_mut() {
            for op in function.graph.all_ops() {
                function.graph.set_location_id(op, LocationId::UNKNOWN);
            }
        }
        smaller |= best.offer_module(module)?;
    }
    let is_known = |ty: &Type| matches!(ty.kind(), TypeKind::Tensor(t) if *t != Default::default());
    let knows = |g: &Graph| {
        let results = g.all_ops().into_iter().flat_map(|op| g.results(op));
        results.chain(g.inputs().iter().copied()).any(|v| is_known(g.ty(v)))
    };
    if best.module.functions.values().any(|f| knows(&f.graph)) {
        let mut module = best.module.clone();
        for function in module.functions.values_mut() {
            function.graph.map_types(&mut |ty| if is_known(ty) { Type::tensor() } else { ty.clone() });
        }
        smaller |= best.offer_module(module)?;
    }
    for name in best.module.functions.keys().copied().collect::<Vec<_>>() {
        let ops = graph_of(&best.module, name).map(Graph::all_ops).unwrap_or_default();
        for op in ops {
            let names = |best: &Best<'_, '_>| -> Vec<Symbol> {
                graph_of(&best.module, name)
                    .filter(|g| g.is_live(op) && g.kind(op) != "prim::Constant")
                    .map_or(Vec::new(), |g| g.attrs(op).iter().map(|(n, _)| *n).collect())
            };
            for attr in names(best) {
                let mut module = best.module.clone();
                if let Some(function) = module.functions.get_mut(&name) {
                    function.graph.remove_attr(op, attr.as_str());
                    smaller |= best.offer_module(module)?;
                }
            }
        }
    }
    Ok(smaller)
}
