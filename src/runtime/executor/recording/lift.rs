//! What a recorded call reads and writes besides its arguments: constant tensors become inputs of the graph, parameters first, then
//! buffers. It does not know how the graph is differentiated, and knows no op by name.

use crate::analysis::{AliasDb, facts};
use crate::dialects::{Family, Registry};
use crate::ir::{Attr, Graph, OpId, Type, ValueId};
use crate::runtime::derivatives::detached;
use crate::runtime::spec;
use crate::tensor::Tensor;
use crate::value::Value;

/// Elements of a buffer up to which it is copied at each call.
const MOST_COPIED: usize = 1 << 16;

/// Makes inputs of constant tensors that are wanted; gives these.
pub(super) fn lift(graph: &mut Graph, is_wanted: impl Fn(&Tensor) -> bool) -> Vec<Tensor> {
    let mut lifted: Vec<(Tensor, ValueId)> = Vec::new();
    for op in graph.all_ops() {
        let Some(tensor) = tensor_of(graph, op).filter(|tensor| is_wanted(tensor)).cloned() else { continue };
        let known = lifted.iter().find(|(other, _)| other.same(&tensor)).map(|(_, input)| *input);
        let input = known.unwrap_or_else(|| {
            let declared = Type::tensor();
            let ty = detached(spec::refined(&declared, &Value::Tensor(tensor.clone())));
            let input = graph.add_input(ty);
            lifted.push((tensor.clone(), input));
            input
        });
        graph.replace_op(op, &[input]);
    }
    lifted.into_iter().map(|(tensor, _)| tensor).collect()
}

/// Types that say nothing of gradients: none are recorded while the graphs run.
pub(super) fn forget_requires_grad(graph: &mut Graph) {
    for value in graph.inputs().to_vec() {
        let ty = detached(graph.ty(value).clone());
        graph.set_type(value, ty);
    }
}

/// The constants that ops write to, also through views; None where it is unknown what is written.
pub(super) fn written(graph: &Graph, registry: &Registry) -> Option<Vec<Tensor>> {
    let mut found = Vec::new();
    let mut aliases = None;
    for op in graph.all_ops() {
        let facts = facts(registry, graph, op);
        let Some(schema) =
            facts.op.as_ref().filter(|_| facts.writes).and_then(|row| row.marked_schema().ok())
        else {
            continue;
        };
        for (argument, operand) in schema.arguments.iter().zip(graph.operands(op)) {
            let is_written = argument.alias.as_ref().is_some_and(|marks| marks.is_write);
            if !is_written || !graph.ty(*operand).is_tensor() {
                continue;
            }
            match origin(graph, registry, *operand) {
                Origin::Constant(op) => found.extend(tensor_of(graph, op).cloned()),
                Origin::Other => {}
                Origin::Unknown => {
                    let db = aliases.get_or_insert_with(|| AliasDb::new(registry, None, graph));
                    let mut constants =
                        graph.all_ops().into_iter().filter(|op| tensor_of(graph, *op).is_some());
                    if constants.any(|op| db.may_contain_alias(graph.results(op)[0], *operand)) {
                        return None;
                    }
                }
            }
        }
    }
    Some(found)
}

/// Where memory that is written comes from.
enum Origin {
    Constant(OpId),
    /// An argument, or what an op makes.
    Other,
    /// A branch, a loop or a container.
    Unknown,
}

fn origin(graph: &Graph, registry: &Registry, mut value: ValueId) -> Origin {
    loop {
        let Some(op) = graph.def_op(value) else {
            return if graph.inputs().contains(&value) { Origin::Other } else { Origin::Unknown };
        };
        if tensor_of(graph, op).is_some() {
            return Origin::Constant(op);
        }
        let facts = facts(registry, graph, op);
        let Some(row) = facts.op.as_ref().filter(|_| graph.nested_blocks(op).is_empty()) else {
            return Origin::Unknown;
        };
        let family = row.def().family;
        if matches!(family, Family::Container | Family::Control | Family::Host) {
            return Origin::Unknown;
        }
        let shows = row.marked_schema().is_ok_and(|schema| schema.returns.iter().any(|r| r.alias.is_some()));
        match graph.operand(op, 0).filter(|_| shows || family == Family::View) {
            Some(operand) => value = operand,
            None => return Origin::Other,
        }
    }
}

/// Why buffers cannot be operands, if so.
pub(super) fn refused_buffers(
    graph: &Graph,
    buffers: &[Tensor],
    parameters: &[Tensor],
) -> Option<&'static str> {
    if buffers.iter().any(|buffer| buffer.numel() > MOST_COPIED) {
        return Some("a call that records gradients writes to a large buffer");
    }
    let constants = graph.all_ops().into_iter().filter_map(|op| tensor_of(graph, op));
    for (n, buffer) in buffers.iter().enumerate() {
        let storage = buffer.storage();
        let mut others = parameters.iter().chain(&buffers[..n]).chain(constants.clone());
        if others.any(|other| other.storage().overlaps(&storage)) {
            return Some("a call that records gradients writes to memory that several tensors share");
        }
    }
    None
}

/// The tensor that an op is the constant of.
fn tensor_of(graph: &Graph, op: OpId) -> Option<&Tensor> {
    match graph.attr(op, "value") {
        Some(Attr::Tensor(tensor)) if graph.kind(op) == "prim::Constant" => Some(tensor),
        _ => None,
    }
}
