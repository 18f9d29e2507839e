//! What ops do to a list or dictionary that they are given, as `functionalize-containers` asks it; no pass itself.

use super::variables::{Fresh, is_passed_on, is_past};
use super::{constants, fold_dicts, variables};
use crate::analysis::facts;
use crate::dialects::fusion::items::{DROP_ITEM, REVERSED, SET_ITEM};
use crate::dialects::prim::list::UNPACK;
use crate::dialects::{Family, Registry};
use crate::ir::{Graph, OpId, Type, TypeKind, ValueId};
use crate::value::DictKey;
use std::cmp::Ordering;

/// What an op does to a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// It reads it, or copies it.
    Read,
    /// It asks for the item under a key.
    Get { key: ValueId },
    /// It asks whether there is a key.
    Has { key: ValueId },
    /// It asks how many items there are.
    Len,
    /// It sets the item under a key, its third operand.
    Set { key: ValueId },
    /// It adds an item at the end, its second operand.
    Append,
    /// It adds the items of a list, its second operand.
    Extend,
    /// It puts an item, its third operand, before the place that is its second.
    Insert,
    /// It takes an item out and gives it.
    Pop,
    /// It reverses the order of its items.
    Reverse,
    /// It removes all items.
    Clear,
}

impl Access {
    pub(super) fn writes(&self) -> bool {
        !matches!(self, Access::Read | Access::Get { .. } | Access::Has { .. } | Access::Len)
    }
}

/// All that is done to a container, in no order; None where something may keep it, or does what is not understood.
pub(super) fn accesses(
    graph: &Graph,
    registry: &Registry,
    fresh: &mut Fresh,
    made: ValueId,
) -> Option<Vec<(OpId, Access)>> {
    if !is_fresh(graph, registry, fresh, made) {
        return None;
    }
    let home = graph.def_block(made)?;
    let mut found = Vec::new();
    let mut held = Vec::new();
    for used in graph.uses(made) {
        let is_held = is_held_by_output(graph, used.op);
        if is_held {
            held.push(used.op);
        }
        let is_read = is_held || is_moved(graph, made, used.op);
        let access = if is_read { Access::Read } else { access(graph, registry, used.op, used.index)? };
        let mut block = graph.terminated_block(used.op).or_else(|| graph.parent(used.op))?;
        while block != home {
            let around = graph.owner(block)?;
            if !matches!(graph.kind(around).as_str(), "prim::If" | "prim::Loop") {
                return None;
            }
            block = graph.parent(around)?;
        }
        found.push((used.op, access));
    }
    // What holds it sees no write after it.
    let is_written_behind = |holder: &OpId| {
        found.iter().filter(|(_, access)| access.writes()).any(|(op, _)| !stands_before(graph, *op, *holder))
    };
    if held.iter().any(is_written_behind) {
        return None;
    }
    // An op that reads what it writes reads first.
    found.sort_by_key(|(_, access)| access.writes());
    Some(found)
}

/// Whether an op makes a tuple that the graph gives, and that nothing else sees.
fn is_held_by_output(graph: &Graph, op: OpId) -> bool {
    let end = graph.terminator(graph.root());
    graph.kind(op) == "prim::TupleConstruct"
        && graph.parent(op) == Some(graph.root())
        && graph.results(op).iter().all(|result| graph.uses(*result).all(|used| used.op == end))
}

/// Whether an op, or the op of the outermost block that it stands in, stands before one of that block.
fn stands_before(graph: &Graph, mut op: OpId, other: OpId) -> bool {
    while let Some(block) = graph.parent(op).filter(|block| *block != graph.root()) {
        let Some(around) = graph.owner(block) else { return false };
        op = around;
    }
    graph.is_before(op, other)
}

/// Whether a container has another name after the end of a block, or in a loop and after it, and this one is used no more. It
/// may have been made outside of the branches that it leaves.
fn is_moved(graph: &Graph, made: ValueId, op: OpId) -> bool {
    if !is_passed_on(graph, made, op) {
        return false;
    }
    let others: Vec<OpId> = graph.uses(made).map(|used| used.op).filter(|other| *other != op).collect();
    graph.def_block(made).is_some_and(|home| is_past(graph, op, home, &others, false))
}

/// Whether an op makes the container, so that nothing else can have it; or it comes from such containers.
fn is_fresh(graph: &Graph, registry: &Registry, fresh: &mut Fresh, made: ValueId) -> bool {
    let makes = |maker: OpId, value: ValueId| makes(graph, registry, maker, value);
    variables::is_fresh(graph, fresh, made, &makes, &|origin, at| is_moved(graph, origin, at))
}

fn makes(graph: &Graph, registry: &Registry, maker: OpId, made: ValueId) -> bool {
    match graph.kind(maker).as_str() {
        "prim::ListConstruct" | "prim::DictConstruct" => true,
        _ => {
            copies_lists(graph, maker)
                || is_list(graph.ty(made)) && makes_lists_of_tensors(graph, registry, maker)
        }
    }
}

/// Whether an op computes tensors, which it gives in a list.
fn makes_lists_of_tensors(graph: &Graph, registry: &Registry, op: OpId) -> bool {
    let row = facts(registry, graph, op).op;
    row.is_some_and(|row| {
        !matches!(row.def().family, Family::Container | Family::Control | Family::Host)
            && graph.kind(op).namespace() == "aten"
            && graph.operands(op).iter().all(|operand| !is_container(graph.ty(*operand)))
    })
}

/// Whether an op gives a new list of what is in others.
fn copies_lists(graph: &Graph, op: OpId) -> bool {
    matches!(
        graph.kind(op).as_str(),
        "aten::add"
            | "aten::slice"
            | "aten::list"
            | "aten::copy"
            | "aten::mul"
            | "aten::keys"
            | "aten::values"
            | "aten::items"
            | SET_ITEM
            | DROP_ITEM
            | REVERSED
    ) && graph.results(op).iter().all(|result| is_list(graph.ty(*result)))
}

fn access(graph: &Graph, registry: &Registry, op: OpId, index: usize) -> Option<Access> {
    if let Some(block) = graph.terminated_block(op) {
        return (block == graph.root()).then_some(Access::Read);
    }
    let operand = |n: usize| graph.operand(op, n);
    let kind = graph.kind(op);
    if !graph.nested_blocks(op).is_empty() {
        return None;
    }
    let gives_nothing_used = graph.results(op).iter().all(|result| !graph.has_uses(*result));
    let is_of_list = operand(0).is_some_and(|first| is_list(graph.ty(first)));
    let known = match (kind.as_str(), index) {
        ("aten::_set_item", 0) => Some(Access::Set { key: operand(1)? }),
        ("aten::append", 0) => Some(Access::Append),
        ("aten::extend" | "aten::add_", 0) if is_of_list => Some(Access::Extend),
        ("aten::insert", 0) => Some(Access::Insert),
        ("aten::clear", 0) => Some(Access::Clear),
        ("aten::reverse", 0) => Some(Access::Reverse),
        ("aten::pop", 0) if is_of_list => return Some(Access::Pop),
        _ => None,
    };
    if let Some(known) = known {
        return gives_nothing_used.then_some(known);
    }
    let facts = facts(registry, graph, op);
    let row = facts.op?;
    let is_extended = matches!(kind.as_str(), "aten::extend" | "aten::add_") && index == 1 && is_of_list;
    if facts.writes && !is_extended || matches!(row.def().family, Family::Control) {
        return None;
    }
    // What gives a container might give this one, or hold it.
    let gives_others = copies_lists(graph, op) || is_extended;
    if !gives_others && graph.results(op).iter().any(|result| !is_plain(graph.ty(*result))) {
        return None;
    }
    Some(match (kind.as_str(), index) {
        ("aten::__getitem__", 0) => Access::Get { key: operand(1)? },
        ("aten::__contains__", 0) => Access::Has { key: operand(1)? },
        ("aten::len", 0) => Access::Len,
        (UNPACK | "prim::Print", _) => Access::Read,
        (name, _) if name.starts_with("aten::") => Access::Read,
        _ => return None,
    })
}

/// Whether an op gives the list that is its first operand.
pub(super) fn is_same_object(graph: &Graph, op: OpId) -> bool {
    let is_of_list = graph.operand(op, 0).is_some_and(|first| is_list(graph.ty(first)));
    is_of_list && matches!(graph.kind(op).as_str(), "aten::append" | "aten::add_" | "aten::_set_item")
}

pub(super) fn is_container(ty: &Type) -> bool {
    matches!(ty.kind(), TypeKind::List(_) | TypeKind::Dict(..))
}

fn is_list(ty: &Type) -> bool {
    matches!(ty.kind(), TypeKind::List(_))
}

/// Whether values of a type hold no containers.
fn is_plain(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::Tensor(_)
        | TypeKind::Int
        | TypeKind::Float
        | TypeKind::Bool
        | TypeKind::Str
        | TypeKind::Complex
        | TypeKind::Number
        | TypeKind::Device
        | TypeKind::None => true,
        TypeKind::Optional(inner) => is_plain(inner),
        TypeKind::Tuple(items, _) => items.iter().all(is_plain),
        _ => false,
    }
}

/// The place of a list or dictionary with known keys that a key names.
pub(super) fn place(graph: &Graph, keys: &Keys, key: ValueId) -> Option<usize> {
    match keys {
        Keys::List(len) => {
            let at = constants::int_of(graph, key)?;
            let at = if at < 0 { at.checked_add(i64::try_from(*len).ok()?)? } else { at };
            usize::try_from(at).ok().filter(|at| at < len)
        }
        Keys::Dict(all) => {
            let key = fold_dicts::key_of(graph, key)?;
            all.iter().position(|(known, _)| *known == key)
        }
    }
}

/// The keys of a container whose writes all set items under keys that are known.
pub(super) enum Keys {
    /// How many items a list has.
    List(usize),
    /// The keys of a dictionary, in the order in which they come in.
    Dict(Vec<(DictKey, ValueId)>),
}

impl Keys {
    /// Those of a container to which this is done.
    pub(super) fn of(graph: &Graph, made: ValueId, uses: &[(OpId, Access)]) -> Option<Keys> {
        let maker = graph.def_op(made)?;
        let mut keys = match graph.kind(maker).as_str() {
            "prim::ListConstruct" => Keys::List(graph.operands(maker).len()),
            "prim::DictConstruct" => {
                let mut keys: Vec<(DictKey, ValueId)> = Vec::new();
                for pair in graph.operands(maker).chunks_exact(2) {
                    let key = fold_dicts::key_of(graph, pair[0])?;
                    if keys.iter().any(|(known, _)| *known == key) {
                        return None;
                    }
                    keys.push((key, pair[0]));
                }
                Keys::Dict(keys)
            }
            _ => return None,
        };
        let mut sets: Vec<(OpId, ValueId)> = Vec::new();
        for (op, access) in uses.iter().filter(|(_, access)| access.writes()) {
            let Access::Set { key } = access else { return None };
            sets.push((*op, *key));
        }
        // A key that is set where the dictionary is made is there from then on; one that is set further inside may be.
        let home = graph.parent(maker);
        let (mut here, inside): (Vec<_>, Vec<_>) =
            sets.into_iter().partition(|(op, _)| graph.parent(*op) == home);
        if inside.iter().any(|(_, key)| place(graph, &keys, *key).is_none()) {
            return None;
        }
        here.sort_by(|(a, _), (b, _)| match graph.is_before(*a, *b) {
            true => Ordering::Less,
            false if a == b => Ordering::Equal,
            false => Ordering::Greater,
        });
        for (_, key) in here {
            if place(graph, &keys, key).is_some() {
                continue;
            }
            let Keys::Dict(all) = &mut keys else { return None };
            all.push((fold_dicts::key_of(graph, key)?, key));
        }
        Some(keys)
    }
}
