//! Makes constants of `x.requires_grad` where types say it: of arguments whose kind is known, of frozen parameters, and of
//! what is computed of tensors that do not require grad.
//!
//! The condition: nothing writes to the tensor, as a write may make it require grad, and nothing in the graph speaks with autograd
//! (`x.requires_grad_()`). Who froze a parameter checks that its flag is still the same.

use super::propagate_shapes::known_values;
use super::{Context, constants};
use crate::analysis::{AliasDb, facts};
use crate::diag::Result;
use crate::dialects::Fact;
use crate::dialects::shapes::Known;
use crate::ir::{Graph, OpId};
use crate::value::Value;

const ASK: &str = "prim::requires_grad";

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let ops = graph.all_ops();
    let asks: Vec<OpId> = ops.iter().copied().filter(|op| graph.kind(*op) == ASK).collect();
    let speaks = |op: &OpId| {
        let row = facts(context.registry, graph, *op).op;
        row.is_some_and(|row| row.def().facts.contains(&Fact::Autograd))
    };
    if asks.is_empty() || ops.iter().any(speaks) {
        return Ok(false);
    }
    let known = known_values(graph, context);
    let db = context.analysis::<AliasDb>(graph);
    let mut changed = false;
    for op in asks {
        let of = graph.operand(op, 0).filter(|_| !db.op_has_writers(graph, op));
        let Some(Known::Tensor(ty)) = of.and_then(|of| known.get(of.index())) else { continue };
        let (Some(answer), Some(result)) = (ty.requires_grad, graph.result(op, 0)) else { continue };
        if !context.step(|| format!("knows that {} is {answer}", graph.op_line(op).trim())) {
            break;
        }
        if let Some(constant) = constants::insert_before(graph, op, &Value::Bool(answer)) {
            graph.replace_all_uses(result, constant);
            graph.erase(op);
            changed = true;
        }
    }
    Ok(changed)
}
