//! Plans of calls that write to their arguments: an optimizer's step, a running mean. The plan computes what the arguments become,
//! and writes it at its end, which fusion makes one of with the computing (`functionalize`, `fuse-copies`). So where such a call raises, it
//! has written nothing.
//!
//! That is what the program does only where no other argument looks at the memory of one that is written to: each call asks.

use super::Subject;
use crate::analysis::facts;
use crate::dialects::fusion;
use crate::ir::{Graph, OpId, ValueDef, ValueId};
use crate::tensor::{Storage, Tensor};
use crate::value::Value;

/// The name of the pipeline of such plans.
pub(super) const PIPELINE: &str = "update-plan";

/// Which arguments a plan writes to, and what else it reads.
#[derive(Default)]
pub(in crate::runtime) struct Updates {
    /// By place.
    written: Vec<usize>,
    /// Tensors with dimensions that the graph has as constants.
    constants: Vec<Tensor>,
}

/// Whether a call may be planned so: its arguments tell all that they share, and something may write to one of them.
pub(super) fn may_update(subject: &Subject<'_>) -> bool {
    let plain = |value: &Value| match value {
        Value::Tensor(tensor) => tensor.is_plain(),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Str(_) | Value::None => true,
        _ => false,
    };
    let (registry, graph) = (subject.context.registry, &subject.function.graph);
    subject.instance.is_none()
        && subject.arguments.iter().all(plain)
        && graph.all_ops().into_iter().any(|op| facts(registry, graph, op).writes)
}

/// What an op copies to.
fn copied_to(graph: &Graph, op: OpId) -> Vec<ValueId> {
    if graph.kind(op) == fusion::COPY {
        return graph.operand(op, 0).into_iter().collect();
    }
    let Some(body) = fusion::subgraph(graph, op) else { return Vec::new() };
    let copies = body.block_ops(body.root()).filter(|inner| body.kind(*inner) == fusion::COPY);
    let input = |inner: OpId| {
        let target = body.operand(inner, 0)?;
        let place = body.inputs().iter().position(|input| *input == target)?;
        graph.operand(op, place)
    };
    copies.filter_map(input).collect()
}

impl Updates {
    /// The arguments that a plan's graph copies results to, itself or in a group; `constants` are the tensors that it has besides.
    pub(super) fn of(graph: &Graph, constants: Vec<Tensor>) -> Updates {
        let argument = |value: ValueId| match graph.def(value) {
            ValueDef::Param(block, n) if block == graph.root() => Some(n),
            _ => None,
        };
        let copies = graph.block_ops(graph.root()).flat_map(|op| copied_to(graph, op));
        let mut written: Vec<usize> = copies.filter_map(argument).collect();
        written.sort_unstable();
        written.dedup();
        let constants = constants.into_iter().filter(|tensor| tensor.rank() > 0).collect();
        Updates { written, constants }
    }

    /// Whether what a call writes to shares memory with nothing else that it reads.
    pub(super) fn takes(&self, arguments: &[Value]) -> bool {
        let storage = |value: &Value| match value {
            Value::Tensor(tensor) => Some(tensor.storage()),
            _ => None,
        };
        self.written.iter().all(|n| {
            let Some(own) = arguments.get(*n).and_then(storage) else { return true };
            let shares = |other: &Storage| other.same(&own);
            let others = arguments.iter().enumerate().filter(|(m, _)| m != n);
            !others.filter_map(|(_, value)| storage(value)).any(|other| shares(&other))
                && !self.constants.iter().any(|tensor| shares(&tensor.storage()))
        })
    }
}
