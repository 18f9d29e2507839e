//! The names under which a tensor and its views are known, and what ops do to them, as `functionalize-tensors` asks it; no pass
//! itself.

use super::variables::{Fresh, is_passed_on, is_past};
use super::{constants, remove_mutation, variables};
use crate::analysis::{OpFacts, facts};
use crate::dialects::{Effects, Fact, Family, Registry};
use crate::ir::{AliasInfo, Graph, OpId, Type, TypeKind, ValueId};
use hashbrown::HashSet;

/// How a name comes from another.
#[derive(Clone, Copy)]
pub(super) enum View {
    /// By an op that gives a view of its first operand.
    Op(OpId),
    /// It is the same.
    Same,
}

/// How an op writes to its first operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    /// It copies another tensor.
    Copy,
    /// It computes what the op of the same name without `_` gives.
    Compute,
}

#[derive(Default)]
pub(super) struct Names {
    /// Names, what they are views of, and how. What something is a view of comes first.
    pub(super) views: Vec<(ValueId, ValueId, View)>,
    /// Ops that write, and to which name.
    pub(super) writes: Vec<(OpId, ValueId, Write)>,
    /// Ops that give or keep it under other names, once all that writes to it has been done; and by which operand.
    pub(super) escapes: Vec<(OpId, usize)>,
}

/// Ops that write whatever is given to them in the dtype and sizes of what they write to.
const KEEPING: &[&str] = &[
    "aten::fill_",
    "aten::zero_",
    "aten::index_put_",
    "aten::index_fill_",
    "aten::index_copy_",
    "aten::index_add_",
    "aten::masked_fill_",
    "aten::masked_scatter_",
    "aten::scatter_",
    "aten::scatter_add_",
    "aten::tril_",
    "aten::triu_",
];

/// All names of a tensor that the graph makes and writes to; None where something does with it what is not understood.
pub(super) fn names(
    graph: &mut Graph,
    registry: &Registry,
    fresh: &mut Fresh,
    made: ValueId,
) -> Option<Names> {
    let makes = |maker: OpId, _: ValueId| makes(graph, registry, maker);
    let is_moved = |origin, at| is_moved(graph, registry, origin, at);
    if !graph.has_uses(made) || !variables::is_fresh(graph, fresh, made, &makes, &is_moved) {
        return None;
    }
    let found = names_within(graph, registry, made)?;
    let writes: Vec<OpId> = found.writes.iter().map(|(op, ..)| *op).collect();
    let home = graph.def_block(made)?;
    found.escapes.iter().all(|(op, _)| is_past(graph, *op, home, &writes, true)).then_some(found)
}

/// Whether a tensor has another name after the end of a block, or in a loop and after it, and neither it nor a view of it is used
/// any more under its own.
fn is_moved(graph: &Graph, registry: &Registry, made: ValueId, op: OpId) -> bool {
    if !is_passed_on(graph, made, op) {
        return false;
    }
    let (mut seen, mut work, mut others) = (HashSet::new(), vec![made], Vec::new());
    while let Some(name) = work.pop() {
        if !seen.insert(name) {
            continue;
        }
        for used in graph.uses(name).filter(|used| used.op != op || name != made) {
            others.push(used.op);
            if graph.terminated_block(used.op).is_some() {
                // Another way of a branch may give it as well, but no view of it.
                if name != made {
                    return false;
                }
                continue;
            }
            match further_names(graph, registry, used.op, used.index) {
                Some(further) => work.extend(further),
                None => return false,
            }
        }
    }
    graph.def_block(made).is_some_and(|home| is_past(graph, op, home, &others, false))
}

/// What an op gives that is one of its operands, or a view of it; None where something may keep it.
fn further_names(graph: &Graph, registry: &Registry, op: OpId, index: usize) -> Option<Vec<ValueId>> {
    let (facts, marks) = marks(graph, registry, op, index)?;
    let is_view = facts.op.is_some_and(|row| row.def().family == Family::View);
    let results = graph.results(op);
    let is_plain = results.iter().all(|result| graph.ty(*result).is_tensor());
    match marks {
        None => (!is_view).then(Vec::new),
        Some(_) => is_plain.then(|| results.to_vec()),
    }
}

/// The same of a tensor that the graph may have been given, which no op keeps.
pub(super) fn names_of_given(graph: &mut Graph, registry: &Registry, given: ValueId) -> Option<Names> {
    names_within(graph, registry, given).filter(|found| found.escapes.is_empty())
}

fn names_within(graph: &mut Graph, registry: &Registry, made: ValueId) -> Option<Names> {
    let mut found = Names::default();
    let (mut work, mut left, mut lists) = (vec![made], Vec::new(), Vec::new());
    let mut written: Vec<(OpId, ValueId)> = Vec::new();
    while let Some(name) = work.pop() {
        for used in graph.uses(name).collect::<Vec<_>>() {
            if let Some(block) = graph.terminated_block(used.op) {
                // What is made in a block leaves it at its end, and has other names from there on.
                if block == graph.root() {
                    left.push(name);
                } else if graph.def_block(made) != Some(block) {
                    found.escapes.push((used.op, used.index));
                }
                continue;
            }
            if is_list(graph, used.op) {
                lists.push((used.op, used.index));
                continue;
            }
            let Some(role) = role(graph, registry, used.op, used.index) else {
                found.escapes.push((used.op, used.index));
                continue;
            };
            match role {
                Role::Reads => {}
                Role::Views => {
                    let result = graph.result(used.op, 0)?;
                    found.views.push((result, name, View::Op(used.op)));
                    work.push(result);
                }
                Role::Writes(write) => {
                    written.push((used.op, name));
                    found.writes.push((used.op, name, write));
                    let same = graph.result(used.op, 0)?;
                    found.views.push((same, name, View::Same));
                    work.push(same);
                }
            }
            is_reached(graph, used.op, made).then_some(())?;
        }
    }
    left.dedup();
    // What is read may overlap with what is written, which is an error.
    let is_name = |value: &ValueId| *value == made || found.views.iter().any(|(name, ..)| name == value);
    let view = |value: ValueId| match found.views.iter().find(|(name, ..)| *name == value) {
        Some((_, of, View::Op(op))) => Some((*of, *op)),
        _ => None,
    };
    // Rows of one tensor are the same or apart.
    let are_rows = |a: ValueId, b: ValueId| match (view(a), view(b)) {
        (Some((of, a)), Some((other, b))) => {
            let is_row = |op: OpId| graph.kind(op) == "aten::select";
            of == other && is_row(a) && is_row(b) && graph.operand(a, 1) == graph.operand(b, 1)
        }
        _ => false,
    };
    let overlaps = |(op, name): &(OpId, ValueId)| {
        let mut others = graph.operands(*op).iter().skip(1);
        others.any(|other| other != name && is_name(other) && !are_rows(*name, *other))
    };
    if written.iter().any(overlaps) {
        return None;
    }
    let is_kept = |list: &&(OpId, usize)| !reads_before_writes(graph, registry, list.0, &found.writes);
    let kept: Vec<(OpId, usize)> = lists.iter().filter(is_kept).copied().collect();
    found.escapes.extend(kept);
    (!found.writes.is_empty() && left.len() <= 1).then_some(found)
}

/// Whether an op gives the tensor that it writes to, its first operand.
pub(super) fn gives_what_it_writes(graph: &Graph, registry: &Registry, op: OpId) -> bool {
    let facts = facts(registry, graph, op);
    let is_in_place = facts.writes && graph.kind(op).as_str().ends_with('_') && graph.result_count(op) == 1;
    let schema = facts.op.as_ref().filter(|_| is_in_place).and_then(|row| row.marked_schema().ok());
    schema.is_some_and(|schema| {
        let written = schema.arguments.first().and_then(|argument| argument.alias.as_ref());
        let given = schema.returns.first().and_then(|result| result.alias.as_ref());
        written.zip(given).is_some_and(|(written, given)| written.is_write && written.before == given.before)
    })
}

enum Role {
    Reads,
    Views,
    Writes(Write),
}

/// The facts of an op on tensors, and the alias marks of an operand, if it has any; None of ops with blocks, of containers, and of
/// those that are not known.
fn marks(graph: &Graph, registry: &Registry, op: OpId, index: usize) -> Option<(OpFacts, Option<AliasInfo>)> {
    if !graph.nested_blocks(op).is_empty() || graph.attr(op, "Subgraph").is_some() {
        return None;
    }
    let facts = facts(registry, graph, op);
    let row = facts.op.as_ref()?;
    if matches!(row.def().family, Family::Control | Family::Container) {
        return None;
    }
    let schema = row.marked_schema().ok()?;
    let marks = match schema.arguments.get(index) {
        Some(argument) => argument.alias.clone(),
        None if schema.is_vararg => None,
        None => return None,
    };
    Some((facts, marks))
}

fn role(graph: &mut Graph, registry: &Registry, op: OpId, index: usize) -> Option<Role> {
    let (facts, marks) = marks(graph, registry, op, index)?;
    let row = facts.op.as_ref()?;
    let schema = row.marked_schema().ok()?;
    let kind = graph.kind(op);
    let Some(marks) = marks else {
        // A view aliases its operands, whatever its marks say.
        return (row.def().family != Family::View).then_some(Role::Reads);
    };
    if !marks.is_write {
        let is_view = index == 0 && graph.result_count(op) == 1 && is_understood(graph, op);
        return is_view.then_some(Role::Views);
    }
    let writes =
        schema.arguments.iter().filter(|a| a.alias.as_ref().is_some_and(|marks| marks.is_write)).count();
    let is_in_place =
        index == 0 && writes == 1 && kind.as_str().ends_with('_') && graph.result_count(op) == 1;
    if !is_in_place || row.def().facts.contains(&Fact::Reshapes) || facts.effects.contains(Effects::RANDOM) {
        return None;
    }
    let name = kind.as_str().strip_suffix('_')?;
    if kind == "aten::copy_" {
        let is_tensor = graph.operand(op, 1).is_some_and(|from| graph.ty(from).is_tensor());
        return (is_tensor && graph.operands(op).len() == 3).then_some(Role::Writes(Write::Copy));
    }
    let keeps = match KEEPING.contains(&kind.as_str()) {
        true => registry.overloads(crate::ir::Symbol::new(name)).iter().any(|row| row.is_built()),
        false => {
            let new = remove_mutation::functional_of_form(graph, registry, op);
            new.and_then(|new| graph.def_op(new)).map(|maker| graph.erase(maker)).is_some()
        }
    };
    keeps.then_some(Role::Writes(Write::Compute))
}

/// Whether there is an op that puts a part back where this one takes a view of it.
fn is_understood(graph: &Graph, op: OpId) -> bool {
    let is_int = |n: usize| graph.operand(op, n).is_some_and(|v| *graph.ty(v).kind() == TypeKind::Int);
    match graph.kind(op).as_str() {
        "aten::select" => graph.operands(op).len() == 3 && is_int(1),
        "aten::slice" => graph.operands(op).len() == 5,
        "aten::diagonal" => graph.operands(op).len() == 4,
        "aten::transpose" => is_int(1) && is_int(2),
        "aten::t" | "aten::unsqueeze" => true,
        "aten::view" => graph.operand(op, 1).is_some_and(|v| matches!(graph.ty(v).kind(), TypeKind::List(_))),
        "aten::permute" => graph.operand(op, 1).is_some_and(|v| constants::ints_of(graph, v).is_some()),
        _ => false,
    }
}

/// Whether an op gives a tensor that nothing else has.
fn makes(graph: &Graph, registry: &Registry, op: OpId) -> bool {
    // Facts of an op with blocks take a walk through these.
    if !graph.nested_blocks(op).is_empty() {
        return false;
    }
    let facts = facts(registry, graph, op);
    let Some(row) = facts.op.as_ref() else { return false };
    let is_tensor_op =
        !matches!(row.def().family, Family::Control | Family::Container | Family::Host | Family::View);
    let is_new = row.marked_schema().is_ok_and(|schema| {
        let given = schema.returns.iter().all(|result| result.alias.is_none());
        given && !schema.is_varret && !facts.writes
    });
    is_tensor_op && is_new && graph.kind(op) != "prim::Constant"
}

fn is_list(graph: &Graph, op: OpId) -> bool {
    graph.kind(op) == "prim::ListConstruct"
}

/// Whether a list is only read, in its own block, before any write that follows it.
fn reads_before_writes(
    graph: &Graph,
    registry: &Registry,
    list: OpId,
    writes: &[(OpId, ValueId, Write)],
) -> bool {
    let home = graph.parent(list);
    let is_plain =
        |ty: &Type| !matches!(ty.kind(), TypeKind::List(_) | TypeKind::Tuple(..) | TypeKind::Dict(..));
    graph.results(list).iter().flat_map(|result| graph.uses(*result)).all(|used| {
        let facts = facts(registry, graph, used.op);
        let reads = facts.op.as_ref().is_some_and(|row| {
            let marks = row
                .marked_schema()
                .ok()
                .and_then(|schema| Some(schema.arguments.get(used.index)?.alias.is_none()));
            marks == Some(true) && !matches!(row.def().family, Family::Control | Family::Container)
        });
        let between = |write: OpId| {
            let at = home.and_then(|home| graph.ancestor_in(write, home));
            at.is_some_and(|at| graph.is_before(list, at) && (graph.is_before(at, used.op) || at == used.op))
        };
        reads
            && graph.parent(used.op) == home
            && graph.results(used.op).iter().all(|result| is_plain(graph.ty(*result)))
            && !writes.iter().any(|(write, ..)| between(*write))
    })
}

/// Whether only branches and loops stand between where a tensor is made and an op.
fn is_reached(graph: &Graph, op: OpId, made: ValueId) -> bool {
    let home = graph.def_block(made);
    let mut block = graph.parent(op);
    while block != home {
        let around = block.and_then(|block| graph.owner(block));
        let Some(around) = around.filter(|op| matches!(graph.kind(*op).as_str(), "prim::If" | "prim::Loop"))
        else {
            return false;
        };
        block = graph.parent(around);
    }
    true
}
