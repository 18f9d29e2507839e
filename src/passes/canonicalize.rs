//! Numbers the values of a graph in order of appearance and drops their names, so that graphs that differ in names
//! alone print the same. Inputs keep their names.

use super::Context;
use crate::diag::Result;
use crate::ir::{Graph, ValueId};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    // Inputs count, named or not, as PyTorch counts them.
    let mut values: Vec<Option<ValueId>> =
        graph.inputs().iter().map(|input| Some(*input).filter(|v| graph.name(*v).is_none())).collect();
    for op in graph.all_ops() {
        values.extend(graph.results(op).into_iter().map(Some));
        for block in graph.nested_blocks(op) {
            values.extend(graph.params(*block).iter().copied().map(Some));
        }
    }
    let other = |(number, value): (usize, &Option<ValueId>)| {
        value.is_some_and(|value| graph.number(value) != Some(number as u32))
    };
    // Half of the numbers would not be a numbering, so that all of them are one step.
    if !values.iter().enumerate().any(other) || !context.step(|| "numbers the values".to_string()) {
        return Ok(false);
    }
    for (number, value) in values.into_iter().enumerate() {
        if let Some(value) = value {
            graph.set_number(value, number as u32);
        }
    }
    Ok(true)
}
