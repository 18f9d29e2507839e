//! Loops as passes see them: the parts of a `loop::for`, and ops of the dialect put before others.

use super::{Elem, Mark, NAMESPACE, binary_name};
use crate::dialects::scalar::{Binary, Compare};
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, ValueId};

/// The parts of a loop that is well formed.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    /// The op.
    pub op: OpId,
    /// First index.
    pub begin: ValueId,
    /// Bound of the index.
    pub end: ValueId,
    /// Distance of indices.
    pub step: ValueId,
    /// The body.
    pub block: BlockId,
    /// The index within the body.
    pub iv: ValueId,
}

impl Loop {
    /// The parts of an op; None where it is not a loop.
    pub fn of(graph: &Graph, op: OpId) -> Option<Loop> {
        let kind = graph.kind(op);
        let &[begin, end, step, ..] = graph.operands(op) else { return None };
        let &[block] = graph.nested_blocks(op) else { return None };
        let iv = *graph.params(block).first()?;
        let is_loop = kind.namespace() == NAMESPACE && kind.base() == "for";
        is_loop.then_some(Loop { op, begin, end, step, block, iv })
    }

    /// All loops of a kernel, outer before inner ones.
    pub fn all(graph: &Graph) -> Vec<Loop> {
        graph.all_ops().into_iter().filter_map(|op| Loop::of(graph, op)).collect()
    }

    /// What the first iteration gets.
    pub fn inits(&self, graph: &Graph) -> Vec<ValueId> {
        graph.operands(self.op).iter().skip(3).copied().collect()
    }

    /// How its iterations may run.
    pub fn mark(&self, graph: &Graph) -> Mark {
        let text = graph.attr(self.op, "mark").and_then(Attr::as_str);
        text.and_then(Mark::from_name).unwrap_or(Mark::Serial)
    }

    /// Changes how its iterations may run.
    pub fn set_mark(&self, graph: &mut Graph, mark: Mark) {
        graph.set_attr(self.op, "mark", Attr::Str(mark.name().into()));
    }

    /// Whether it combines partial results.
    pub fn has_lanes(&self, graph: &Graph) -> bool {
        graph.attr(self.op, "lanes").is_some()
    }
}

/// The integer of a constant index.
pub fn constant_index(graph: &Graph, value: ValueId) -> Option<i64> {
    let op = graph.def_op(value)?;
    let kind = graph.kind(op);
    let is_index = Elem::of_scalar_type(graph.ty(value)) == Some(Elem::I64);
    let found = graph.attr(op, "value").and_then(Attr::as_int).filter(|_| is_index);
    found.filter(|_| kind.namespace() == NAMESPACE && kind.base() == "const")
}

/// The number of elements of a buffer of the kernel's own.
pub fn alloc_size(graph: &Graph, buffer: ValueId) -> Option<i64> {
    let op = graph.def_op(buffer)?;
    let kind = graph.kind(op);
    let is_alloc = kind.namespace() == NAMESPACE && kind.base() == "alloc";
    graph.attr(op, "size").and_then(Attr::as_int).filter(|_| is_alloc)
}

/// The operation and the operands of a value that combines two numbers.
pub fn binary_parts(graph: &Graph, value: ValueId) -> Option<(Binary, ValueId, ValueId)> {
    let op = graph.def_op(value)?;
    let &[x, y] = graph.operands(op) else { return None };
    let kind = graph.kind(op);
    let operation = (kind.namespace() == NAMESPACE).then(|| super::names::find_binary(kind.base()))??;
    Some((operation, x, y))
}

/// The comparison and the operands of a value that compares two numbers.
pub fn compare_parts(graph: &Graph, value: ValueId) -> Option<(Compare, ValueId, ValueId)> {
    let op = graph.def_op(value)?;
    let &[x, y] = graph.operands(op) else { return None };
    let kind = graph.kind(op);
    let operation = (kind.namespace() == NAMESPACE).then(|| super::names::find_compare(kind.base()))??;
    Some((operation, x, y))
}

/// The value of a constant bool.
pub fn constant_bool(graph: &Graph, value: ValueId) -> Option<bool> {
    let op = graph.def_op(value)?;
    let kind = graph.kind(op);
    let is_constant = kind.namespace() == NAMESPACE && kind.base() == "const";
    match graph.attr(op, "value") {
        Some(Attr::Bool(x)) if is_constant && Elem::of_scalar_type(graph.ty(value)) == Some(Elem::Bool) => {
            Some(*x)
        }
        _ => None,
    }
}

/// The buffer that an op writes to or reads, and at which index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Reads an element.
    Reads(ValueId, ValueId),
    /// Writes an element.
    Writes(ValueId, ValueId),
    /// Combines an element with a number.
    Combines(ValueId, ValueId),
    /// Leads elsewhere: a branch, or the end of the kernel.
    Other,
    /// Computes.
    Nothing,
}

/// What an op that is not a loop does with memory.
pub fn touch(graph: &Graph, op: OpId) -> Touch {
    match (graph.kind(op).base(), graph.operands(op)) {
        ("load", &[buffer, index]) => Touch::Reads(buffer, index),
        ("store", &[buffer, index, _]) => Touch::Writes(buffer, index),
        ("accumulate", &[buffer, index, _]) => Touch::Combines(buffer, index),
        ("if" | "while" | "require", _) => Touch::Other,
        _ => Touch::Nothing,
    }
}

/// Whether computing an op that the program would not have reached can fail: a division of integers.
pub fn may_trap(graph: &Graph, op: OpId) -> bool {
    let of_ints =
        graph.operands(op).iter().any(|v| Elem::of_scalar_type(graph.ty(*v)).is_some_and(|e| !e.is_float()));
    of_ints && matches!(graph.kind(op).base(), "div" | "rem" | "pow")
}

/// Puts `x op y` before an op.
pub fn binary_before(graph: &mut Graph, anchor: OpId, op: Binary, x: ValueId, y: ValueId) -> ValueId {
    let ty = graph.ty(x).clone();
    let made = graph.create(Symbol::new(&format!("{NAMESPACE}::{}", binary_name(op))), &[x, y], &[ty]);
    put(graph, made, anchor)
}

/// Puts a constant index before an op.
pub fn index_before(graph: &mut Graph, anchor: OpId, value: i64) -> ValueId {
    let made = graph.create(Symbol::new(&format!("{NAMESPACE}::const")), &[], &[Elem::I64.ty()]);
    graph.set_attr(made, "value", Attr::Int(value));
    put(graph, made, anchor)
}

/// Puts an empty loop before an op: with the marks of `like`, these bounds and what the first iteration gets. Its body has
/// its parameters and ends with the values that come in.
pub fn loop_before(
    graph: &mut Graph,
    anchor: OpId,
    like: Loop,
    [begin, end, step]: [ValueId; 3],
    inits: &[ValueId],
) -> Option<Loop> {
    let mut operands = vec![begin, end, step];
    operands.extend_from_slice(inits);
    let types: Vec<_> = inits.iter().map(|v| graph.ty(*v).clone()).collect();
    let made = graph.create(graph.kind(like.op), &operands, &types);
    for (name, attr) in graph.attrs(like.op).to_vec() {
        graph.set_attr(made, name, attr);
    }
    graph.set_location_id(made, graph.location_id(like.op));
    graph.insert_before(made, anchor);
    let block = graph.add_block(made);
    graph.add_param(block, Elem::I64.ty());
    let carried: Vec<ValueId> = types.into_iter().map(|ty| graph.add_param(block, ty)).collect();
    graph.set_block_results(block, &carried);
    Loop::of(graph, made)
}

fn put(graph: &mut Graph, made: OpId, anchor: OpId) -> ValueId {
    graph.set_location_id(made, graph.location_id(anchor));
    graph.insert_before(made, anchor);
    graph.results(made)[0]
}
