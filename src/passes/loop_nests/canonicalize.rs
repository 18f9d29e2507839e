//! `loop-canonicalize`: what is known of a kernel's integers is computed, and loops that it makes needless go.
//!
//! Constants fold; sums with 0, products with 0 and 1, quotients by 1, minima and maxima of one value are replaced; a
//! loop without iterations gives what it got, one with a single iteration is its body; conditions that are known decide.

use crate::diag::Result;
use crate::dialects::loops::nest::{Loop, binary_parts, compare_parts, constant_bool, constant_index};
use crate::dialects::loops::{Elem, NAMESPACE, is_kernel};
use crate::dialects::scalar::{Binary, Compare};
use crate::ir::{Attr, Graph, OpId, Symbol, ValueId};
use crate::passes::Context;

pub(in crate::passes) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    if !is_kernel(graph) {
        return Ok(false);
    }
    let mut changed = false;
    for op in graph.all_ops() {
        // A loop that is gone took its ops along, or put them elsewhere.
        if !graph.is_live(op) {
            continue;
        }
        let Some(change) = change(graph, op) else { continue };
        if !context.step(|| format!("simplifies {}", graph.op_line(op).trim())) {
            return Ok(changed);
        }
        apply(graph, op, change);
        changed = true;
    }
    Ok(changed)
}

/// What becomes of an op.
enum Change {
    /// Its result is this integer or bool.
    Constant(Attr),
    /// Its result is another value.
    Value(ValueId),
    /// It is gone; its results are what the loop got.
    Nothing,
    /// Its body stands in its place.
    Once,
    /// One of its blocks does.
    Block(usize),
}

fn change(graph: &Graph, op: OpId) -> Option<Change> {
    if let Some(l) = Loop::of(graph, op) {
        return trips(graph, l);
    }
    let kind = graph.kind(op);
    let condition = graph.operand(op, 0).and_then(|value| constant_bool(graph, value));
    match (kind.base(), condition) {
        ("require", Some(true)) => return Some(Change::Nothing),
        ("if", Some(holds)) => return Some(Change::Block(usize::from(!holds))),
        ("select", Some(holds)) => return graph.operand(op, if holds { 1 } else { 2 }).map(Change::Value),
        _ => {}
    }
    let result = graph.result(op, 0)?;
    if let Some((how, x, y)) = compare_parts(graph, result) {
        let (x, y) = (constant_index(graph, x)?, constant_index(graph, y)?);
        let holds = match how {
            Compare::Eq => x == y,
            Compare::Ne => x != y,
            Compare::Lt => x < y,
            Compare::Le => x <= y,
            Compare::Gt => x > y,
            Compare::Ge => x >= y,
        };
        return Some(Change::Constant(Attr::Bool(holds)));
    }
    let (how, x, y) = binary_parts(graph, result)?;
    let elem = Elem::of_scalar_type(graph.ty(result))?;
    match elem {
        Elem::Bool => bools(graph, how, x, y),
        Elem::I64 => integers(graph, how, x, y),
        _ => None,
    }
}

/// Bools that are known as operands.
fn bools(graph: &Graph, how: Binary, x: ValueId, y: ValueId) -> Option<Change> {
    let (known, other) = match (constant_bool(graph, x), constant_bool(graph, y)) {
        (Some(known), _) => (known, y),
        (None, Some(known)) => (known, x),
        (None, None) => {
            return (x == y && matches!(how, Binary::And | Binary::Or)).then_some(Change::Value(x));
        }
    };
    match (how, known) {
        (Binary::And, true) | (Binary::Or, false) => Some(Change::Value(other)),
        (Binary::And, false) | (Binary::Or, true) => Some(Change::Constant(Attr::Bool(known))),
        _ => None,
    }
}

/// Indices: their arithmetic wraps, and division by 0 gives 0.
fn integers(graph: &Graph, how: Binary, x: ValueId, y: ValueId) -> Option<Change> {
    let (a, b) = (constant_index(graph, x), constant_index(graph, y));
    let folded = match (how, a, b) {
        (Binary::Add, Some(a), Some(b)) => a.wrapping_add(b),
        (Binary::Sub, Some(a), Some(b)) => a.wrapping_sub(b),
        (Binary::Mul, Some(a), Some(b)) => a.wrapping_mul(b),
        (Binary::Min, Some(a), Some(b)) => a.min(b),
        (Binary::Max, Some(a), Some(b)) => a.max(b),
        (Binary::Div, Some(a), Some(b)) if b != 0 => a.wrapping_div(b),
        (Binary::Rem, Some(a), Some(b)) if b != 0 => a.wrapping_rem(b),
        (Binary::Mul, Some(0), _) | (Binary::Mul, _, Some(0)) | (Binary::Rem, _, Some(1)) => 0,
        (Binary::Add, Some(0), _) | (Binary::Mul, Some(1), _) => return Some(Change::Value(y)),
        (Binary::Add | Binary::Sub, _, Some(0)) | (Binary::Mul | Binary::Div, _, Some(1)) => {
            return Some(Change::Value(x));
        }
        (Binary::Sub, ..) if x == y => 0,
        (Binary::Min | Binary::Max, ..) if x == y => return Some(Change::Value(x)),
        _ => return None,
    };
    Some(Change::Constant(Attr::Int(folded)))
}

/// A loop with known bounds that runs once or not at all.
fn trips(graph: &Graph, l: Loop) -> Option<Change> {
    let [begin, end, step] = [l.begin, l.end, l.step].map(|value| constant_index(graph, value));
    let step = step.filter(|step| *step > 0)?;
    if l.begin == l.end {
        return Some(Change::Nothing);
    }
    let count = i128::from(end?) - i128::from(begin?);
    match count {
        _ if count <= 0 => Some(Change::Nothing),
        // Partial results of lanes are combined; one iteration gives the same.
        _ if count <= i128::from(step) && !l.has_lanes(graph) && !l.mark(graph).is_parallel() => {
            Some(Change::Once)
        }
        _ => None,
    }
}

fn apply(graph: &mut Graph, op: OpId, change: Change) {
    let results = graph.results(op);
    let values = match change {
        Change::Constant(attr) => {
            let ty = results.first().map(|result| graph.ty(*result).clone());
            let made = graph.create(Symbol::new(&format!("{NAMESPACE}::const")), &[], ty.as_slice());
            graph.set_attr(made, "value", attr);
            graph.set_location_id(made, graph.location_id(op));
            graph.insert_before(made, op);
            graph.results(made).to_vec()
        }
        Change::Value(value) => vec![value],
        Change::Nothing => graph.operands(op).iter().skip(3).copied().collect(),
        Change::Once | Change::Block(_) => {
            let n = if let Change::Block(n) = change { n } else { 0 };
            let Some(block) = graph.nested_blocks(op).get(n).copied() else { return };
            let given = graph.operands(op).to_vec();
            for (n, param) in graph.params(block).to_vec().into_iter().enumerate() {
                // The index is the first one; what is carried comes after the bounds.
                let value = if n == 0 { given.first() } else { given.get(n + 2) };
                if let Some(value) = value {
                    graph.replace_all_uses(param, *value);
                }
            }
            let ends = graph.block_results(block).to_vec();
            graph.set_block_results(block, &[]);
            graph.splice_before(block, op);
            ends
        }
    };
    for (old, new) in results.into_iter().zip(values) {
        graph.replace_all_uses(old, new);
    }
    graph.erase(op);
}
