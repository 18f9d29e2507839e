//! Makes a `prim::Guard` of every profile that saw something: beyond it the value is known to have the type that was seen. Uses
//! that no run reached are left without.

use super::{Context, remove_profiling};
use crate::diag::Result;
use crate::dialects::prim::profiling::GUARD;
use crate::ir::{Graph, Symbol, Type};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        let Some(seen) = remove_profiling::profiled_type(graph, op) else { continue };
        let Some(value) = graph.operand(op, 0) else { continue };
        if seen == Type::tensor() {
            continue;
        }
        if !context.step(|| format!("guards {}", graph.op_line(op))) {
            return Ok(changed);
        }
        let guard = graph.create(Symbol::new(GUARD), &[value], &[seen]);
        graph.set_location_id(guard, graph.location_id(op));
        graph.insert_before(guard, op);
        let results = graph.results(guard);
        graph.replace_op(op, &results);
        context.count("guards", 1);
        changed = true;
    }
    Ok(remove_profiling::nodes(graph, context) || changed)
}
