//! Makes constants of what types determine: sizes, ranks, dtypes, and numbers computed from them.
//!
//! Only numbers and truth values are made constants, as lists are objects; what takes the sizes of another tensor is given them,
//! in a list of its own. An op whose operands are written to is left alone: a write may give a tensor other sizes.

use super::layer_parts::Maker;
use super::propagate_shapes::known_values;
use super::{Context, constants};
use crate::analysis::{AliasDb, is_pure};
use crate::diag::Result;
use crate::dialects::shapes::Known;
use crate::dialects::{Fact, resolve};
use crate::ir::{Attr, Dim, Graph, OpId, Type, TypeKind, ValueId};
use crate::value::Value;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let known = known_values(graph, context);
    let db = context.analysis::<AliasDb>(graph);
    let mut changed = false;
    for op in graph.all_ops() {
        let found: Vec<(ValueId, Value)> =
            graph.results(op).iter().filter_map(|v| Some((*v, number(graph, *v, &known)?))).collect();
        if let Some(plain) = plain_reshape(graph, context, &db, op) {
            if !context.step(|| format!("knows the sizes that {} asks for", graph.op_line(op))) {
                return Ok(changed);
            }
            with_sizes(graph, op, plain);
            changed = true;
            continue;
        }
        if found.is_empty() || !may_go(graph, context, &db, op) {
            continue;
        }
        for (value, number) in found {
            if !context.step(|| format!("knows that {} is {}", graph.op_line(op), number.to_text())) {
                return Ok(changed);
            }
            if let Some(constant) = constants::insert_before(graph, op, &number) {
                graph.replace_all_uses(value, constant);
                changed = true;
            }
        }
    }
    Ok(changed)
}

/// What an op is that gives a tensor the sizes of another one, where types determine them: the op, and the sizes.
fn plain_reshape(
    graph: &Graph,
    context: &Context<'_>,
    db: &AliasDb,
    op: OpId,
) -> Option<(&'static str, Vec<i64>)> {
    let row = resolve(context.registry, graph, op).ok()?;
    let as_other = |fact: &Fact| if let Fact::AsOther(plain) = fact { Some(*plain) } else { None };
    let plain = row.def().facts.iter().find_map(as_other)?;
    let TypeKind::Tensor(ty) = graph.ty(graph.operand(op, 1)?).kind() else { return None };
    let sizes = ty.sizes.as_deref()?.iter().map(|dim| dim.known()).collect::<Option<_>>()?;
    (!db.op_has_writers(graph, op)).then_some((plain, sizes))
}

/// Replaces an op by one that takes the sizes.
fn with_sizes(graph: &mut Graph, op: OpId, (kind, sizes): (&'static str, Vec<i64>)) {
    let (Some(tensor), Some(result)) = (graph.operand(op, 0), graph.result(op, 0)) else { return };
    let ty = graph.ty(result).clone();
    let mut maker = Maker { graph, at: op, like: op };
    let sizes = maker.constant(Type::list(Type::int()), Attr::Ints(sizes.into()));
    let plain = maker.emit(kind, &[tensor, sizes], ty);
    graph.replace_op(op, &[plain]);
}

/// The number that a used value is, where the graph says that it is one.
fn number(graph: &Graph, value: ValueId, known: &[Known]) -> Option<Value> {
    if !graph.has_uses(value) {
        return None;
    }
    match (known.get(value.index())?, graph.ty(value).kind()) {
        (Known::Int(Dim::Known(n)), TypeKind::Int) => Some(Value::Int(*n)),
        (Known::Bool(b), TypeKind::Bool) => Some(Value::Bool(*b)),
        (Known::Int(Dim::Known(n)), TypeKind::Bool) => Some(Value::Bool(*n != 0)),
        (Known::Float(x), TypeKind::Float) => Some(Value::Float(*x)),
        (Known::Device(device), TypeKind::Device) => Some(Value::Device(device.clone().into())),
        (Known::Str(text), TypeKind::Str) => Some(Value::str(text.as_str())),
        _ => None,
    }
}

/// Whether nothing but the results of an op is lost without it, and what it reads stays unchanged.
fn may_go(graph: &Graph, context: &Context<'_>, db: &AliasDb, op: OpId) -> bool {
    graph.kind(op) != "prim::Constant"
        && graph.nested_blocks(op).is_empty()
        && is_pure(context.registry, graph, op)
        && !db.op_has_writers(graph, op)
}
