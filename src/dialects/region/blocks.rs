//! The blocks of an op as its row declares them: what each takes and gives, and how they run. No row and no op is known here.

use crate::diag::Result;
use crate::ir::{Graph, OpId, Type, ValueId};
use crate::value::Value;

/// What one block takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its parameters.
    pub takes: &'static [Slot],
    /// Its results.
    pub gives: &'static [Slot],
}

/// One or several values at the border of a block, by their types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// An int.
    Int,
    /// A bool.
    Bool,
    /// A tensor.
    Tensor,
    /// A value of the type of an operand of the op.
    Operand(usize),
    /// A value of the type of a result of the op.
    Result(usize),
    /// One value of the type of each operand from this one on.
    OperandsFrom(usize),
    /// One value of the type of each result.
    Results,
}

/// The blocks of an op that runs.
pub trait Blocks {
    /// Runs a block; one argument for each of its parameters. Fails where the block raises, and where the op has no such
    /// block.
    fn run(&self, block: usize, arguments: Vec<Value>) -> Result<Vec<Value>>;
}

/// What is wrong with the blocks of an op; None if they are as declared.
pub(in crate::dialects) fn violation(regions: &[Region], graph: &Graph, op: OpId) -> Option<String> {
    let (kind, blocks) = (graph.kind(op), graph.nested_blocks(op));
    if blocks.len() != regions.len() {
        return Some(format!("{kind} has {} blocks, not {}", regions.len(), blocks.len()));
    }
    let wrong = |n: usize| {
        let (region, block) = (regions[n], blocks[n]);
        let takes = border(region.takes, graph, op, graph.params(block), "takes");
        let gives = || border(region.gives, graph, op, graph.block_results(block), "gives");
        takes.or_else(gives).map(|why| format!("block {n} of {kind} {why}"))
    };
    (0..blocks.len()).find_map(wrong)
}

/// Compares the values at one border of a block with what is declared.
fn border(slots: &[Slot], graph: &Graph, op: OpId, values: &[ValueId], verb: &str) -> Option<String> {
    let operands = graph.operands(op);
    let type_of = |value: Option<&ValueId>| value.map(|v| graph.ty(*v).clone());
    let mut wanted: Vec<Type> = Vec::new();
    for slot in slots {
        match slot {
            Slot::Int => wanted.push(Type::int()),
            Slot::Bool => wanted.push(Type::bool()),
            Slot::Tensor => wanted.push(Type::tensor()),
            Slot::Operand(n) => wanted.extend(type_of(operands.get(*n))),
            Slot::Result(n) => wanted.extend(type_of(graph.results(op).get(*n))),
            Slot::OperandsFrom(n) => wanted.extend(operands.iter().skip(*n).map(|v| graph.ty(*v).clone())),
            Slot::Results => wanted.extend(graph.results(op).iter().map(|v| graph.ty(*v).clone())),
        }
    }
    if wanted.len() != values.len() {
        return Some(format!("{verb} {} values, not {}", wanted.len(), values.len()));
    }
    let fits = |(wanted, value): &(&Type, &ValueId)| crate::dialects::fit::takes(wanted, graph.ty(**value));
    let (n, (wanted, value)) = wanted.iter().zip(values).enumerate().find(|(_, pair)| !fits(pair))?;
    Some(format!("{verb} {wanted} as value {n}, not {}", graph.ty(*value)))
}
