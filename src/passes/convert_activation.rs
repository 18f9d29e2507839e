//! Activations that write and those that do not. `relu_` becomes `relu` where this is unobservable (the mutation removal's
//! conditions); `relu` becomes `relu_` where its input is dead afterwards.
//!
//! These are not groups of rules: rules equate values, and whether an op may write is a question about all that may see its
//! operand, before and after it.

use super::{Context, remove_mutation};
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::dialects::resolve;
use crate::ir::{Graph, OpId, Symbol};
use crate::tensor::DType;

/// Activations that have an in-place form, and whether they convert other dtypes to floats.
const ACTIVATIONS: &[(&str, bool)] = &[
    ("aten::celu", false),
    ("aten::elu", false),
    ("aten::hardsigmoid", false),
    ("aten::hardswish", false),
    ("aten::hardtanh", false),
    ("aten::leaky_relu", false),
    ("aten::relu", false),
    ("aten::relu6", false),
    ("aten::rrelu", false),
    ("aten::selu", false),
    ("aten::sigmoid", true),
    ("aten::silu", false),
    ("aten::tanh", true),
];

fn promotes(kind: &str) -> Option<bool> {
    ACTIVATIONS.iter().find(|(name, _)| *name == kind).map(|(_, promotes)| *promotes)
}

/// `relu_` becomes `relu`.
pub(super) fn inplace_to_functional(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let is_wanted = |kind: &str| kind.strip_suffix('_').is_some_and(|name| promotes(name).is_some());
    Ok(remove_mutation::tensors_where(graph, context, &is_wanted))
}

/// `relu` becomes `relu_`.
pub(super) fn functional_to_inplace(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let db = context.analysis::<AliasDb>(graph);
    let mut changed = false;
    for op in graph.all_ops() {
        if may_write(graph, context, &db, op) && context.step(|| format!("writes: {}", graph.op_line(op))) {
            write(graph, op);
            changed = true;
        }
    }
    Ok(changed)
}

/// Whether the op's input is made in the graph for the op alone.
fn may_write(graph: &Graph, context: &Context<'_>, db: &AliasDb, op: OpId) -> bool {
    let kind = graph.kind(op);
    let Some(promotes) = promotes(kind.as_str()) else { return false };
    let (Some(input), Some(output)) = (graph.operand(op, 0), graph.result(op, 0)) else { return false };
    let Some(maker) = graph.def_op(input).filter(|_| graph.has_one_use(input)) else { return false };
    let dtype = |value| graph.ty(value).as_tensor().and_then(|t| t.dtype);
    let keeps_dtype =
        !promotes || dtype(input).is_some_and(DType::is_floating) && dtype(input) == dtype(output);
    // What shows the memory of another, and constants, are not the op's own.
    let own = graph.kind(maker) != "prim::Constant"
        && graph.nested_blocks(maker).is_empty()
        && resolve(context.registry, graph, maker).is_ok()
        && !db.is_wildcard(input)
        && !graph.operands(maker).iter().any(|v| db.may_contain_alias(*v, input));
    keeps_dtype && own && runs_once_after(graph, maker, op) && !db.has_writers(input)
}

/// Whether an op runs at most once for each time that `maker` does: no loop stands around it that does not stand around
/// its maker.
fn runs_once_after(graph: &Graph, maker: OpId, op: OpId) -> bool {
    let mut block = graph.parent(op);
    while block.is_some() && block != graph.parent(maker) {
        let owner =
            block.and_then(|block| graph.owner(block)).filter(|owner| graph.kind(*owner) == "prim::If");
        block = owner.and_then(|owner| graph.parent(owner));
    }
    block.is_some()
}

fn write(graph: &mut Graph, op: OpId) {
    let operands = graph.operands(op).to_vec();
    let types: Vec<_> = graph.results(op).iter().map(|v| graph.ty(*v).clone()).collect();
    let new = graph.create(Symbol::new(&format!("{}_", graph.kind(op))), &operands, &types);
    graph.set_location_id(new, graph.location_id(op));
    graph.insert_before(new, op);
    graph.replace_op(op, &operands[..1]);
}
