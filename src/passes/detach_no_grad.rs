//! Stretches without gradients (`with torch.no_grad():`) become straight work whose results are detached: what is computed between
//! turning recording off and on again, and used after, is used through `aten::detach`. The graph is one that is recorded: recording
//! is on when it begins. It does not know who differentiates it.
//!
//! The condition: recording is turned on again in the same block, nothing in between writes or speaks with autograd, and nothing
//! but tensors and plain values leaves the stretch.

use super::{Context, constants, remove_mutation};
use crate::analysis::facts;
use crate::diag::Result;
use crate::dialects::{Effects, Fact};
use crate::ir::{BlockId, Graph, OpId, Symbol, Type, TypeKind, ValueId};

const SET: &str = "aten::set_grad_enabled";
const ASK: &str = "aten::is_grad_enabled";

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        let Some(stretch) = Stretch::from(graph, context, op) else { continue };
        if !context.step(|| format!("detaches what follows {}", graph.op_line(op).trim())) {
            break;
        }
        stretch.detach(graph);
        changed = true;
    }
    Ok(changed)
}

/// What stands between turning recording off and on.
struct Stretch {
    off: OpId,
    on: OpId,
    /// Tensors that are made in it and used after.
    leaving: Vec<ValueId>,
}

impl Stretch {
    fn from(graph: &Graph, context: &Context<'_>, off: OpId) -> Option<Stretch> {
        let is_off = graph.is_live(off)
            && graph.kind(off) == SET
            && graph.operand(off, 0).and_then(|value| constants::bool_of(graph, value)) == Some(false);
        if !is_off || is_within(graph, off) {
            return None;
        }
        let home = graph.parent(off)?;
        let mut inside = Vec::new();
        let mut at = graph.next(off);
        let on = loop {
            let op = at?;
            if graph.kind(op) == SET {
                break op;
            }
            inside.push(op);
            at = graph.next(op);
        };
        let turned = graph.operand(on, 0)?;
        let asked = graph.def_op(turned).filter(|op| graph.kind(*op) == ASK);
        let turns_on = constants::bool_of(graph, turned) == Some(true)
            || asked.is_some_and(|op| graph.parent(op) == Some(home) && graph.is_before(op, off));
        let is_calm = |op: &OpId| {
            let facts = facts(context.registry, graph, *op);
            let speaks = facts.op.as_ref().is_some_and(|row| row.def().facts.contains(&Fact::Autograd));
            facts.op.is_some() && !facts.writes && !speaks && !facts.effects.intersects(Effects::WRITES_WORLD)
        };
        let nested = inside.iter().flat_map(|op| graph.nested_ops(*op));
        if !turns_on || !inside.iter().copied().chain(nested).all(|op| is_calm(&op)) {
            return None;
        }
        let mut leaving = Vec::new();
        for value in inside.iter().flat_map(|op| graph.results(*op)) {
            if !is_used_behind(graph, home, value, on) {
                continue;
            }
            match graph.ty(value).kind() {
                TypeKind::Tensor(_) => leaving.push(value),
                TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Str | TypeKind::None => {}
                _ => return None,
            }
        }
        Some(Stretch { off, on, leaving })
    }

    fn detach(self, graph: &mut Graph) {
        for value in self.leaving {
            let ty = without_grad(graph.ty(value));
            let detach = graph.create(Symbol::new("aten::detach"), &[value], &[ty]);
            graph.set_location_id(detach, graph.location_id(self.on));
            graph.insert_before(detach, self.on);
            let detached = graph.results(detach)[0];
            remove_mutation::replace_uses_behind(graph, value, detached, self.on);
        }
        let asked = graph.operand(self.on, 0).and_then(|turned| graph.def_op(turned));
        graph.erase(self.off);
        graph.erase(self.on);
        // How it was before is asked for this alone.
        let asked = asked.filter(|op| graph.kind(*op) == ASK && !graph.has_uses(graph.results(*op)[0]));
        if let Some(asked) = asked {
            graph.erase(asked);
        }
    }
}

/// Whether recording may be off already where an op stands: another stretch begins before it, here or around.
fn is_within(graph: &Graph, op: OpId) -> bool {
    let mut at = Some(op);
    while let Some(op) = at {
        let mut before = graph.prev(op);
        while let Some(other) = before {
            // Off, or who knows what.
            let sets = |op: &OpId| graph.kind(*op) == SET;
            if sets(&other) || graph.nested_ops(other).iter().any(sets) {
                return true;
            }
            before = graph.prev(other);
        }
        at = graph.parent(op).and_then(|block| graph.owner(block));
    }
    false
}

/// Whether a value is used after an op of the block in which it is made.
fn is_used_behind(graph: &Graph, home: BlockId, value: ValueId, on: OpId) -> bool {
    graph.uses(value).any(|used| match graph.ancestor_in(used.op, home) {
        Some(at) => graph.terminated_block(at).is_some() || graph.is_before(on, at),
        None => true,
    })
}

fn without_grad(ty: &Type) -> Type {
    let Some(tensor) = ty.as_tensor() else { return ty.clone() };
    let tensor = crate::ir::TensorType { requires_grad: Some(false), ..tensor.clone() };
    Type::new(TypeKind::Tensor(tensor))
}
