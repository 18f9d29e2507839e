//! Whether iterations of a loop meet in memory.
//!
//! They do not if the loop carries nothing, reads nothing that it writes, and writes each buffer in one place whose index
//! differs from iteration to iteration. Buffers of a kernel do not overlap; that is their callers' promise.

use crate::dialects::loops::nest::{Loop, Touch, binary_parts, constant_index, touch};
use crate::dialects::scalar::Binary;
use crate::ir::{Graph, OpId, ValueId};

/// Products of an index; the sum of all is the index.
type Terms = Vec<Vec<ValueId>>;

/// An index has no more products.
const MAX_TERMS: usize = 32;

/// Says why iterations might meet; `Ok` where they do not.
pub(super) fn independent(graph: &Graph, l: Loop) -> Result<(), String> {
    if !l.inits(graph).is_empty() {
        return Err("carries values from one iteration to the next".into());
    }
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    let mut work: Vec<OpId> = graph.block_ops(l.block).collect();
    while let Some(op) = work.pop() {
        if let Some(inner) = Loop::of(graph, op) {
            work.extend(graph.block_ops(inner.block));
            continue;
        }
        match touch(graph, op) {
            Touch::Reads(buffer, _) => reads.push(buffer),
            Touch::Writes(buffer, index) => writes.push((buffer, index)),
            Touch::Combines(..) | Touch::Other => {
                return Err(format!("has a {}, whose order counts", graph.kind(op)));
            }
            Touch::Nothing => {}
        }
    }
    for (n, (buffer, index)) in writes.iter().enumerate() {
        let name = graph.display_name(*buffer);
        if reads.contains(buffer) {
            return Err(format!("reads and writes %{name}"));
        }
        if writes[..n].iter().any(|(other, _)| other == buffer) {
            return Err(format!("writes to %{name} in several places"));
        }
        if !differs(graph, l, *index) {
            return Err(format!("may write to one element of %{name} in several iterations"));
        }
    }
    Ok(())
}

/// Whether an index within the loop differs between iterations: `i + c`, `i * c` with a constant `c`, or `i * n + j` where j
/// runs from 0 to n.
fn differs(graph: &Graph, l: Loop, index: ValueId) -> bool {
    let Some(terms) = terms(graph, index) else { return false };
    let varies = |value: &ValueId| !graph.is_visible(*value, l.op);
    let (own, others): (Terms, Terms) = terms.into_iter().partition(|term| term.contains(&l.iv));
    let [own] = own.as_slice() else { return false };
    let factors: Vec<ValueId> = own.iter().copied().filter(|value| *value != l.iv).collect();
    let inner: Vec<&Vec<ValueId>> = others.iter().filter(|term| term.iter().any(varies)).collect();
    match (factors.as_slice(), inner.as_slice()) {
        _ if own.len() != factors.len() + 1 => false,
        ([], []) => true,
        ([factor], []) => constant_index(graph, *factor).is_some_and(|n| n != 0),
        ([factor], [term]) => matches!(term.as_slice(), [j] if runs_below(graph, *j, *factor)),
        _ => false,
    }
}

/// Whether a value is the index of a loop from 0 to `bound`.
fn runs_below(graph: &Graph, value: ValueId, bound: ValueId) -> bool {
    let Some(inner) = graph.def_block(value).and_then(|block| graph.owner(block)) else { return false };
    Loop::of(graph, inner).is_some_and(|inner| {
        inner.iv == value && inner.end == bound && constant_index(graph, inner.begin) == Some(0)
    })
}

/// An index as a sum of products; None where it has too many.
fn terms(graph: &Graph, index: ValueId) -> Option<Terms> {
    let (mut done, mut work): (Terms, Vec<Vec<ValueId>>) = (Vec::new(), vec![vec![index]]);
    while let Some(term) = work.pop() {
        if work.len() + done.len() > MAX_TERMS || term.len() > MAX_TERMS {
            return None;
        }
        let split = term.iter().enumerate().find_map(|(n, value)| Some((n, binary_parts(graph, *value)?)));
        let with = |n: usize, new: &[ValueId]| {
            let mut made = term.clone();
            made.splice(n..=n, new.iter().copied());
            made
        };
        match split {
            Some((n, (Binary::Add, x, y))) => work.extend([with(n, &[x]), with(n, &[y])]),
            Some((n, (Binary::Mul, x, y))) => work.push(with(n, &[x, y])),
            // Another operation is a value like any other, if it is the only thing that stands in the way.
            Some(_)
                if term
                    .iter()
                    .any(|v| matches!(binary_parts(graph, *v), Some((Binary::Add | Binary::Mul, ..)))) =>
            {
                return None;
            }
            _ => done.push(term),
        }
    }
    Some(done)
}
