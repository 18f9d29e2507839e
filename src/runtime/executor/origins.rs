//! Where the memory of a value comes from: through views, branches, loops, and lists that nothing writes to, back to what makes it.
//! More exact than the alias analysis, to which whatever was put into a list may be anything; it does not read writes.

use crate::analysis::facts;
use crate::dialects::{Family, Registry};
use crate::ir::{Graph, OpId, Type, TypeKind, ValueDef, ValueId};
use hashbrown::HashSet;

/// The inputs, constants and results of ops that a value may be, or show; None where unknown.
pub(super) fn origins(graph: &Graph, registry: &Registry, value: ValueId) -> Option<HashSet<ValueId>> {
    let mut found = HashSet::new();
    let mut seen = HashSet::new();
    let mut work = vec![value];
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        match graph.def(value) {
            ValueDef::Param(block, n) => match graph.owner(block) {
                None => drop(found.insert(value)),
                Some(op) => work.extend(carried(graph, op, n.checked_sub(1)?)?),
            },
            ValueDef::Result(op, n) => match graph.kind(op).as_str() {
                "prim::If" => {
                    for block in graph.nested_blocks(op) {
                        work.push(*graph.block_results(*block).get(n)?);
                    }
                }
                "prim::Loop" => work.extend(carried(graph, op, n)?),
                _ if !passes_on(graph, registry, op)? => drop(found.insert(value)),
                _ => work.extend(graph.operands(op).iter().filter(|v| holds_memory(graph.ty(**v)))),
            },
        }
    }
    Some(found)
}

/// What a loop begins with and what its iterations leave.
fn carried(graph: &Graph, op: OpId, n: usize) -> Option<[ValueId; 2]> {
    let body = graph.nested_blocks(op).first()?;
    Some([graph.operand(op, n + 2)?, *graph.block_results(*body).get(n + 1)?])
}

/// Whether an op gives its operands on, or what is in them, or views of that; None where unknown.
fn passes_on(graph: &Graph, registry: &Registry, op: OpId) -> Option<bool> {
    if !graph.nested_blocks(op).is_empty() {
        return None;
    }
    let facts = facts(registry, graph, op);
    let row = facts.op.as_ref().filter(|_| !facts.writes)?;
    let shows = row.marked_schema().ok()?.returns.iter().any(|result| result.alias.is_some());
    match row.def().family {
        Family::Control => None,
        Family::Container | Family::Host => Some(true),
        Family::View => Some(true),
        _ => Some(shows),
    }
}

/// Whether values of a type are, or may hold, tensors.
fn holds_memory(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::Int
        | TypeKind::Float
        | TypeKind::Bool
        | TypeKind::Str
        | TypeKind::Complex
        | TypeKind::None => false,
        TypeKind::Optional(inner) | TypeKind::List(inner) => holds_memory(inner),
        _ => true,
    }
}
