//! Reasons for ops outside of fusion groups, as text. It asks the same questions as `fuse`, of a graph that `fuse` has left.

use super::fuse::{is_fusible, stays_in_stretch};
use super::fuse_rows::row_work;
use super::{Context, constants};
use crate::analysis::{OpFacts, facts};
use crate::dialects::{Family, Op, Variant, fusion};
use crate::ir::{Graph, OpId, TypeKind, ValueId};
use hashbrown::HashSet;

/// Why an op is in no group. None for what is not work: constants, groups themselves, and layers, which have taken what is fused
/// to them.
pub fn why_outside(graph: &Graph, context: &Context<'_>, op: OpId) -> Option<String> {
    let kind = graph.kind(op);
    if kind == "prim::Constant" || fusion::is_group(kind) || kind.as_str().starts_with("fusion::") {
        return None;
    }
    if !graph.nested_blocks(op).is_empty() {
        return Some("a group holds no control flow".to_string());
    }
    let facts = facts(context.registry, graph, op);
    let Some(row) = facts.op.clone() else { return Some("the op is not known".to_string()) };
    Some(of_row(graph, context, op, &row, &facts).unwrap_or_else(|| alone(graph, context, op)))
}

/// What an op is that no group can take; None where it could be in one.
fn of_row(graph: &Graph, context: &Context<'_>, op: OpId, row: &Op, facts: &OpFacts) -> Option<String> {
    if !stays_in_stretch(facts) {
        return Some("it has side effects, and ops before it are not moved after it".to_string());
    }
    if facts.writes || row.variant() != Variant::Plain {
        return Some("it writes to a tensor in place".to_string());
    }
    if is_fusible(graph, context, op) || row_work(graph, context, op).is_some() {
        return None;
    }
    if !graph.results(op).iter().any(|value| graph.ty(*value).is_tensor()) {
        return Some("it gives no tensor".to_string());
    }
    Some(match row.def().family {
        Family::Elementwise => elementwise(graph, op),
        Family::Reduce if row.def().rows.is_some() => {
            "it combines elements along a dimension that is not known to be the last".to_string()
        }
        Family::Reduce => "it combines elements in a way that groups do not have".to_string(),
        Family::View => "it is a view of the same memory".to_string(),
        Family::Create => "it makes a tensor of sizes and numbers".to_string(),
        Family::Contraction => "it is a product or convolution, which has kernels of its own".to_string(),
        Family::Gather => "it moves elements by index".to_string(),
        Family::Composite => "it is defined in TorchScript and was not inlined".to_string(),
        Family::Opaque => "it is not elementwise work, and has a kernel of its own".to_string(),
        Family::Host | Family::Container | Family::Control => "it is not work on elements".to_string(),
    })
}

/// Why an elementwise op cannot be in a group.
fn elementwise(graph: &Graph, op: OpId) -> String {
    let taken = |value: &&ValueId| match graph.ty(**value).kind() {
        TypeKind::Tensor(_) | TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Number => true,
        _ => constants::constant_op(graph, **value).is_some(),
    };
    match graph.operands(op).iter().find(|value| !taken(value)) {
        Some(value) => format!("%{} : {} is not a constant", graph.display_name(*value), graph.ty(*value)),
        None if graph.operands(op).iter().any(|v| constants::constant_op(graph, *v).is_some()) => {
            "a constant tensor without dimensions counts as a number here".to_string()
        }
        None => "it has no meaning as a program over numbers".to_string(),
    }
}

/// Why an op that could be in a group is in none.
fn alone(graph: &Graph, context: &Context<'_>, op: OpId) -> String {
    let could = |other: OpId| {
        fusion::is_group(graph.kind(other))
            || is_fusible(graph, context, other)
            || row_work(graph, context, other).is_some()
    };
    let before = producers(graph, op).into_iter().find(|other| could(*other)).map(|other| (other, op));
    let after = || users(graph, op).into_iter().find(|other| could(*other)).map(|other| (op, other));
    match before.or_else(after) {
        Some((first, second)) => why_apart(graph, context, first, second),
        None => "no neighbour could be in a group with it, and it alone costs less than a kernel".to_string(),
    }
}

/// Why two ops or groups are not one group, the second of which uses what the first gives.
pub fn why_apart(graph: &Graph, context: &Context<'_>, first: OpId, second: OpId) -> String {
    if graph.parent(first) != graph.parent(second) {
        return "they are in different blocks".to_string();
    }
    let mut at = graph.next(first);
    while let Some(op) = at.filter(|op| *op != second) {
        if !stays_in_stretch(&facts(context.registry, graph, op)) {
            return format!("{} between them acts on the world", graph.kind(op));
        }
        at = graph.next(op);
    }
    if let Some(between) = way_around(graph, first, second) {
        return format!("{} needs the one and is needed by the other", graph.kind(between));
    }
    let ends = |op: OpId| match fusion::subgraph(graph, op) {
        Some(body) => {
            body.block_ops(body.root()).any(|op| row_work(body, context, op).is_some_and(|work| work.drops))
        }
        None => row_work(graph, context, op).is_some_and(|work| work.drops),
    };
    if ends(first) {
        return "rows end in the one, and the other needs what comes of them".to_string();
    }
    "in one group with others of its neighbours they would wait for each other".to_string()
}

/// The ops that give what an op takes, but for constants.
pub fn producers(graph: &Graph, op: OpId) -> Vec<OpId> {
    let mut found: Vec<OpId> = graph.operands(op).iter().filter_map(|value| graph.def_op(*value)).collect();
    found.retain(|def| graph.kind(*def) != "prim::Constant");
    unique(found)
}

/// The ops that take what an op gives; terminators do not count.
pub fn users(graph: &Graph, op: OpId) -> Vec<OpId> {
    let uses = graph
        .results(op)
        .into_iter()
        .flat_map(|value| graph.uses(value).map(|used| used.op).collect::<Vec<_>>());
    unique(uses.filter(|user| graph.terminated_block(*user).is_none()).collect())
}

fn unique(mut ops: Vec<OpId>) -> Vec<OpId> {
    let mut seen = HashSet::new();
    ops.retain(|op| seen.insert(*op));
    ops
}

/// An op on a way from the first to the second that is not the step from the one to the other.
fn way_around(graph: &Graph, first: OpId, second: OpId) -> Option<OpId> {
    let mut work: Vec<OpId> = producers(graph, second).into_iter().filter(|op| *op != first).collect();
    let mut seen: HashSet<OpId> = work.iter().copied().collect();
    while let Some(op) = work.pop() {
        let needed = producers(graph, op);
        if needed.contains(&first) {
            return Some(op);
        }
        work.extend(needed.into_iter().filter(|other| seen.insert(*other)));
    }
    None
}
