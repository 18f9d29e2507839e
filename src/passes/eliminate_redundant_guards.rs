//! Takes away guards that say nothing new. Guards move to the definitions of what they guard, where effects allow it; of guards
//! of one value that follow each other one is kept; a guard that another one dominates goes, if the value is not written; and
//! so does one whose type follows, by the rows of ops, from what is guarded already.
//!
//! PyTorch has a list of 90 ops for the last step. Here types follow by the rules of `propagate-shapes`, and must say all that
//! the guard says. Where an op gives tensors other sizes in place nothing follows.

use super::Context;
use crate::analysis::{AliasDb, Side, shapes};
use crate::diag::Result;
use crate::dialects::prim::profiling::GUARD;
use crate::dialects::shapes::Known;
use crate::dialects::{Fact, Op, resolve};
use crate::ir::{BlockId, Dim, Graph, OpId, TensorType, Type, ValueId};
use hashbrown::HashMap;
use std::cell::Cell;
use std::sync::Arc;

/// Moving guards may let others move; more rounds do not pay.
const ROUNDS: usize = 5;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    if guards(graph).is_empty() {
        return Ok(false);
    }
    let mut changed = false;
    for _ in 0..ROUNDS {
        if !move_to_definitions(graph, context) {
            break;
        }
        changed = true;
    }
    changed |= coalesce(graph, context);
    changed |= drop_dominated(graph, context);
    Ok(drop_following(graph, context) || changed)
}

fn guards(graph: &Graph) -> Vec<OpId> {
    graph.all_ops().into_iter().filter(|op| graph.kind(*op) == GUARD).collect()
}

/// The guarded value, what the guard gives, and the type that it guarantees.
fn parts(graph: &Graph, guard: OpId) -> Option<(ValueId, ValueId, Type)> {
    let result = graph.result(guard, 0)?;
    Some((graph.operand(guard, 0)?, result, graph.ty(result).clone()))
}

/// Whether what is true of one type is true of the other.
fn implies(special: &Type, general: &Type) -> bool {
    special.is_subtype_of(general)
}

fn move_to_definitions(graph: &mut Graph, context: &Context<'_>) -> bool {
    let db = AliasDb::new(context.registry, Some(context.module), graph);
    let mut moved = false;
    for guard in guards(graph) {
        let Some(block) = graph.parent(guard) else { continue };
        let Some(value) = graph.operand(guard, 0) else { continue };
        let anchor = match graph.def_op(value).filter(|def| graph.parent(*def) == Some(block)) {
            Some(def) => (def, Side::After),
            None => match first_that_is_no_guard(graph, block) {
                Some(first) => (first, Side::Before),
                None => continue,
            },
        };
        if is_there(graph, guard, anchor) || !db.can_move(graph, context.registry, guard, anchor.1, anchor.0)
        {
            continue;
        }
        if !context.step(|| format!("moves {} to its definition", graph.op_line(guard))) {
            return moved;
        }
        moved |= db.move_if_valid(graph, context.registry, guard, anchor.1, anchor.0);
    }
    if moved {
        context.changed();
    }
    moved
}

fn first_that_is_no_guard(graph: &Graph, block: BlockId) -> Option<OpId> {
    graph.block_ops(block).find(|op| graph.kind(*op) != GUARD)
}

/// Whether only guards stand between a guard and the place that it should have.
fn is_there(graph: &Graph, guard: OpId, (anchor, side): (OpId, Side)) -> bool {
    match side {
        Side::Before => graph.is_before(guard, anchor),
        Side::After => {
            let mut at = graph.prev(guard);
            while let Some(op) = at.filter(|op| graph.kind(*op) == GUARD) {
                at = graph.prev(op);
            }
            at == Some(anchor)
        }
    }
}

/// Keeps one of guards of a value that follow each other: the one that comes first, with the type that says more.
fn coalesce(graph: &mut Graph, context: &Context<'_>) -> bool {
    let mut first: HashMap<ValueId, OpId> = HashMap::new();
    let mut changed = false;
    let mut block = None;
    for op in graph.all_ops() {
        let stands_in = graph.parent(op);
        if graph.kind(op) != GUARD || stands_in != block {
            if graph.kind(op) != "prim::Constant" || stands_in != block {
                first.clear();
            }
            block = stands_in;
        }
        let Some((value, result, ty)) = parts(graph, op).filter(|_| graph.kind(op) == GUARD) else {
            continue;
        };
        let Some((kept, known)) =
            first.get(&value).and_then(|kept| Some((parts(graph, *kept)?.1, parts(graph, *kept)?.2)))
        else {
            first.insert(value, op);
            continue;
        };
        let more = implies(&ty, &known);
        if !(more || implies(&known, &ty)) {
            continue;
        }
        if !context.step(|| format!("joins {} with a guard before it", graph.op_line(op))) {
            return changed;
        }
        if more {
            graph.set_type(kept, ty);
        }
        graph.replace_all_uses(result, kept);
        graph.erase(op);
        context.count("guards joined", 1);
        changed = true;
    }
    changed
}

/// Drops guards of a value that another guard of it dominates, if the value is not written.
fn drop_dominated(graph: &mut Graph, context: &Context<'_>) -> bool {
    let db = AliasDb::new(context.registry, Some(context.module), graph);
    let mut seen: HashMap<ValueId, Vec<OpId>> = HashMap::new();
    let mut changed = false;
    for op in guards(graph) {
        let Some((value, result, ty)) = parts(graph, op) else { continue };
        if db.has_writers(value) {
            continue;
        }
        let before = seen.entry(value).or_default();
        let other = before
            .iter()
            .filter_map(|other| parts(graph, *other))
            .find(|(_, given, known)| implies(known, &ty) && graph.is_visible(*given, op));
        let Some((_, given, _)) = other else {
            before.push(op);
            continue;
        };
        if !context.step(|| format!("drops {}, which another guard dominates", graph.op_line(op))) {
            return changed;
        }
        graph.replace_all_uses(result, given);
        graph.erase(op);
        context.count("guards dominated", 1);
        changed = true;
    }
    changed
}

/// Drops guards whose types follow from those of other values.
fn drop_following(graph: &mut Graph, context: &Context<'_>) -> bool {
    let reshapes = |op: OpId| {
        resolve(context.registry, graph, op).is_ok_and(|row| row.def().facts.contains(&Fact::Reshapes))
    };
    if graph.all_ops().into_iter().any(reshapes) {
        return false;
    }
    let db = AliasDb::new(context.registry, Some(context.module), graph);
    let inputs: Vec<Known> = graph.inputs().iter().map(|value| Known::of_type(graph.ty(*value))).collect();
    let no_meanings = |_: &Op| -> Option<Arc<Graph>> { None };
    let known = shapes::propagate(context.registry, graph, &inputs, &Cell::new(0), None, &no_meanings);
    let mut changed = false;
    for op in guards(graph) {
        let Some((value, result, ty)) = parts(graph, op) else { continue };
        let Some(Known::Tensor(found)) = known.get(value.index()) else { continue };
        if db.has_writers(value) || !ty.as_tensor().is_some_and(|wanted| covers(found, wanted)) {
            continue;
        }
        if !context.step(|| format!("drops {}, which follows from others", graph.op_line(op))) {
            return changed;
        }
        if *graph.ty(value) == Type::tensor() && graph.def_op(value).is_some() {
            graph.set_type(value, ty);
        }
        graph.replace_all_uses(result, value);
        graph.erase(op);
        context.count("guards that follow", 1);
        changed = true;
    }
    changed
}

/// Whether what is found says all that is wanted.
fn covers(found: &TensorType, wanted: &TensorType) -> bool {
    fn says<T: PartialEq>(found: &Option<T>, wanted: &Option<T>) -> bool {
        wanted.is_none() || found == wanted
    }
    let sizes = match (&found.sizes, &wanted.sizes) {
        (_, None) => true,
        (Some(found), Some(wanted)) => {
            found.len() == wanted.len()
                && found
                    .iter()
                    .zip(wanted.iter())
                    .all(|(f, w)| matches!(w, Dim::Symbol(_) | Dim::Unknown) || f == w)
        }
        (None, Some(_)) => false,
    };
    sizes
        && says(&found.dtype, &wanted.dtype)
        && says(&found.device, &wanted.device)
        && says(&found.strides, &wanted.strides)
        && says(&found.requires_grad, &wanted.requires_grad)
        && wanted.undefined != Some(true)
}
