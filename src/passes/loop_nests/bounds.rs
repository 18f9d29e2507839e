//! `loop-check-bounds`: a kernel that ends with an error instead of reaching outside of its buffers.
//!
//! It gets the number of elements of each buffer as a further parameter, after its own. Before each load, store and
//! accumulation it asks whether the index lies below that number, and before each loop whether the loop ends. Backends need
//! no checks of their own: machine code of such a kernel is safe for any arguments.

use crate::diag::Result;
use crate::dialects::loops::nest::{
    Loop, Touch, alloc_size, binary_before, constant_index, index_before, touch,
};
use crate::dialects::loops::reach::FARTHEST;
use crate::dialects::loops::{Elem, NAMESPACE, compare_name, is_kernel};
use crate::dialects::scalar::{Binary, Compare};
use crate::ir::{Attr, Graph, OpId, Symbol, ValueId};
use crate::passes::Context;
use hashbrown::HashMap;

pub(in crate::passes) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    if !is_kernel(graph) || !context.step(|| "checks every index and every loop".into()) {
        return Ok(false);
    }
    check_bounds(graph);
    Ok(true)
}

/// Adds the checks. The parameters that a kernel gets are `i64`, one for each of its buffers in order.
pub fn check_bounds(graph: &mut Graph) {
    let buffers: Vec<ValueId> =
        graph.inputs().iter().copied().filter(|v| Elem::of_buffer_type(graph.ty(*v)).is_some()).collect();
    let mut lengths: HashMap<ValueId, ValueId> = HashMap::new();
    for buffer in buffers {
        let name = format!("{}_length", graph.display_name(buffer));
        let length = graph.add_input(Elem::I64.ty());
        graph.set_unique_name(length, &name);
        lengths.insert(buffer, length);
    }
    for op in graph.all_ops() {
        if let Some(l) = Loop::of(graph, op) {
            check_loop(graph, l);
            continue;
        }
        let (Touch::Reads(buffer, index) | Touch::Writes(buffer, index) | Touch::Combines(buffer, index)) =
            touch(graph, op)
        else {
            continue;
        };
        let zero = index_before(graph, op, 0);
        let length = match lengths.get(&buffer) {
            Some(length) => *length,
            // What is neither a parameter nor of the kernel's own has no elements.
            None => index_before(graph, op, alloc_size(graph, buffer).unwrap_or(0)),
        };
        let low = compare_before(graph, op, Compare::Ge, index, zero);
        let high = compare_before(graph, op, Compare::Lt, index, length);
        let message = format!("a kernel reaches outside of its buffer %{}", graph.display_name(buffer));
        require_before(graph, op, &[low, high], &message);
    }
}

/// A loop ends if its step is positive and its bounds are not at the end of all numbers.
fn check_loop(graph: &mut Graph, l: Loop) {
    let mut conditions = Vec::new();
    for bound in [l.begin, l.end, l.step] {
        let known = constant_index(graph, bound);
        if known.is_none_or(|n| n > FARTHEST) {
            let most = index_before(graph, l.op, FARTHEST);
            conditions.push(compare_before(graph, l.op, Compare::Le, bound, most));
        }
        let least = if bound == l.step { 1 } else { -FARTHEST };
        if known.is_none_or(|n| n < least) {
            let least = index_before(graph, l.op, least);
            conditions.push(compare_before(graph, l.op, Compare::Ge, bound, least));
        }
    }
    if !conditions.is_empty() {
        let message =
            format!("the loop over %{} has bounds or a step that do not end it", graph.display_name(l.iv));
        require_before(graph, l.op, &conditions, &message);
    }
}

fn compare_before(graph: &mut Graph, anchor: OpId, op: Compare, x: ValueId, y: ValueId) -> ValueId {
    let kind = Symbol::new(&format!("{NAMESPACE}::{}", compare_name(op)));
    let made = graph.create(kind, &[x, y], &[Elem::Bool.ty()]);
    graph.set_location_id(made, graph.location_id(anchor));
    graph.insert_before(made, anchor);
    graph.results(made)[0]
}

/// Puts one question before an op: whether all conditions hold.
fn require_before(graph: &mut Graph, anchor: OpId, conditions: &[ValueId], message: &str) {
    let Some((first, others)) = conditions.split_first() else { return };
    let all = others
        .iter()
        .fold(*first, |all, condition| binary_before(graph, anchor, Binary::And, all, *condition));
    let made = graph.create(Symbol::new(&format!("{NAMESPACE}::require")), &[all], &[]);
    graph.set_attr(made, "message", Attr::Str(message.into()));
    graph.set_location_id(made, graph.location_id(anchor));
    graph.insert_before(made, anchor);
}
