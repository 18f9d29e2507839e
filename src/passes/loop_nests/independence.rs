//! Whether iterations of a loop meet in memory.
//!
//! They do not if the loop carries nothing, reads nothing that it writes, and writes each buffer in one place whose index
//! differs from iteration to iteration. Buffers of a kernel do not overlap; that is their callers' promise.

use crate::dialects::loops::nest::{Loop, Touch, alloc_size, binary_parts, constant_index, touch};
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
    // Each iteration has its own of a buffer that is made in it.
    let is_own = |buffer: &ValueId| alloc_size(graph, *buffer).is_some() && !graph.is_visible(*buffer, l.op);
    while let Some(op) = work.pop() {
        if let Some(inner) = Loop::of(graph, op) {
            work.extend(graph.block_ops(inner.block));
            continue;
        }
        match touch(graph, op) {
            Touch::Reads(buffer, _) | Touch::Writes(buffer, _) | Touch::Combines(buffer, _)
                if is_own(&buffer) => {}
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
/// runs from 0 to n, and with more digits `(i * m + k) * n + j`.
pub(super) fn differs(graph: &Graph, l: Loop, index: ValueId) -> bool {
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
        (factors, inner) => digits(graph, inner).is_some_and(|width| is_same(&width, factors)),
    }
}

/// What is greater than the sum of these terms, as a product: each is an index of a loop from 0, times the bounds of those
/// before it. None where they are no such digits.
fn digits(graph: &Graph, terms: &[&Vec<ValueId>]) -> Option<Vec<ValueId>> {
    let mut terms = terms.to_vec();
    terms.sort_by_key(|term| term.len());
    let mut width: Vec<ValueId> = Vec::new();
    for term in terms {
        let bound = term.iter().enumerate().find_map(|(n, value)| {
            let bound = bound_from_zero(graph, *value)?;
            let rest = [&term[..n], &term[n + 1..]].concat();
            is_same(&rest, &width).then_some(bound)
        });
        width.push(bound?);
    }
    (!width.is_empty()).then_some(width)
}

/// Whether two products have the same factors.
fn is_same(a: &[ValueId], b: &[ValueId]) -> bool {
    let sorted = |factors: &[ValueId]| {
        let mut factors = factors.to_vec();
        factors.sort_unstable_by_key(|value| value.index());
        factors
    };
    sorted(a) == sorted(b)
}

/// An index as a sum of products, alike for two loops whose iterations touch the same element; None where it depends on more
/// than the loop's index and what is the same in all iterations.
pub(super) fn index_form(graph: &Graph, l: Loop, index: ValueId) -> Option<Vec<Vec<(u8, i64)>>> {
    let factor = |value: &ValueId| {
        if *value == l.iv {
            return Some((0, 0));
        }
        match constant_index(graph, *value) {
            Some(n) => Some((1, n)),
            None => graph.is_visible(*value, l.op).then_some((2, value.index() as i64)),
        }
    };
    let mut all = Vec::new();
    for term in terms(graph, index)? {
        let mut factors = term.iter().map(factor).collect::<Option<Vec<_>>>()?;
        factors.sort_unstable();
        all.push(factors);
    }
    all.sort_unstable();
    Some(all)
}

/// The bound of the loop from 0 that a value is the index of.
fn bound_from_zero(graph: &Graph, value: ValueId) -> Option<ValueId> {
    let inner = graph.def_block(value).and_then(|block| graph.owner(block))?;
    let inner = Loop::of(graph, inner)?;
    (inner.iv == value && constant_index(graph, inner.begin) == Some(0)).then_some(inner.end)
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
