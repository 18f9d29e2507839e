//! Folds a sum or product with a constant for each channel into the convolution before it.
//!
//! `conv(x, w, b) + c` is `conv(x, w, b + c)` and `conv(x, w, b) * c` is `conv(x, w c, b c)`, up to rounding; differences
//! and quotients alike. All parameters must be constants, floating weights must keep their dtype, and nothing else may
//! use what goes in between. The new parameters are written as ops on constants, which constant propagation computes.
//!
//! These patterns are not a group of rules: whether a constant fits depends on its sizes beside those of the weight, counted
//! from the back, and a bias that is missing becomes zeros of the weight's dtype; conditions and terms of rules say neither.

use super::fold_frozen::is_convolution;
use super::{Context, constant_propagation, constants, dce};
use crate::diag::Result;
use crate::ir::{Attr, Graph, OpId, Symbol, Type, ValueId};
use crate::tensor::{Tensor, promote_types};
use crate::value::Value;

/// `conv(x) + c` and `conv(x) - c`.
pub(super) fn add_or_sub(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    fold(graph, context, &["aten::add", "aten::sub"], 3, |graph, at, op, conv| {
        let bias = bias_of(graph, at, conv, op);
        let shifted = emit(graph, at, graph.kind(op), &bias, graph.operands(op)[2..].to_vec());
        graph.set_operand(conv, 2, shifted);
    })
}

/// `conv(x) * c` and `conv(x) / c`.
pub(super) fn mul_or_div(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    fold(graph, context, &["aten::mul", "aten::div"], 2, |graph, at, op, conv| {
        let kind = graph.kind(op);
        let &[_, weight, bias, ..] = graph.operands(conv) else { return };
        let rank = tensor_of(graph, weight).map_or(1, |t| t.sizes().len());
        let factor = resized(graph, at, op, rank);
        let scaled = emit(graph, at, kind, &[weight, factor], Vec::new());
        graph.set_operand(conv, 1, scaled);
        if tensor_of(graph, bias).is_some() {
            let factor = resized(graph, at, op, 1);
            let scaled = emit(graph, at, kind, &[bias, factor], Vec::new());
            graph.set_operand(conv, 2, scaled);
        }
    })
}

fn fold(
    graph: &mut Graph,
    context: &Context<'_>,
    kinds: &[&str],
    count: usize,
    apply: fn(&mut Graph, OpId, OpId, OpId),
) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        if kinds.contains(&graph.kind(op).as_str())
            && graph.operands(op).len() == count
            && let Some(conv) = foldable(graph, op)
            && context.step(|| format!("folds {}", graph.op_line(op)))
        {
            apply(graph, conv, op, conv);
            let results = graph.results(conv);
            graph.replace_op(op, &results);
            changed = true;
        }
    }
    if changed {
        context.changed();
        constant_propagation::run(graph, context)?;
        context.changed();
        dce::run(graph, context)?;
    }
    Ok(changed)
}

/// The convolution whose result goes into the op alone, where both have constant parameters that fit.
fn foldable(graph: &Graph, op: OpId) -> Option<OpId> {
    let &[input, other, ref rest @ ..] = graph.operands(op) else { return None };
    let conv = graph.def_op(input).filter(|_| graph.has_one_use(input))?;
    if graph.parent(conv) != graph.parent(op) {
        return None;
    }
    let plain = |value: &ValueId| constants::constant_op(graph, *value).is_some();
    let (_, parameters) = graph.operands(conv).split_first()?;
    if !is_convolution(graph, conv)
        || !graph.operands(conv)[1..3].iter().all(plain)
        || !rest.iter().all(plain)
    {
        return None;
    }
    let weight = tensor_of(graph, *parameters.first()?)?;
    let fits = match constants::value_of(graph, other)? {
        Value::Int(_) => true,
        Value::Float(_) => true,
        Value::Tensor(t) => {
            let rank =
                graph.operand(conv, 0).and_then(|x| graph.ty(x).as_tensor()?.sizes.as_ref().map(|s| s.len()));
            // Of an input without a batch the result has fewer dimensions than the weight.
            let is_batch = rank == Some(weight.sizes().len());
            by_channel(&t, &weight) && (is_batch || t.sizes().len() < weight.sizes().len())
        }
        _ => false,
    };
    (weight.dtype().is_floating() && fits).then_some(conv)
}

/// Whether a tensor is one number, or one for each channel of what a convolution gives, and changes no dtype.
fn by_channel(tensor: &Tensor, weight: &Tensor) -> bool {
    let (sizes, shape) = (tensor.sizes(), weight.sizes());
    let channels = shape.first().copied().unwrap_or(1);
    let rank = shape.len();
    // The channels of the result are its second dimension, counted from the back with the tensor's own rank.
    let fits =
        sizes.iter().rev().enumerate().all(|(n, size)| *size == 1 || n + 2 == rank && *size == channels);
    sizes.len() <= rank && fits && promote_types(tensor.dtype(), weight.dtype()) == weight.dtype()
}

fn tensor_of(graph: &Graph, value: ValueId) -> Option<Tensor> {
    match constants::value_of(graph, value)? {
        Value::Tensor(t) => Some(t),
        _ => None,
    }
}

/// The bias, zeros where there is none, and what is added to it.
fn bias_of(graph: &mut Graph, at: OpId, conv: OpId, op: OpId) -> Vec<ValueId> {
    let &[_, weight, bias, ..] = graph.operands(conv) else { return Vec::new() };
    let added = resized(graph, at, op, 1);
    if tensor_of(graph, bias).is_some() {
        return vec![bias, added];
    }
    // Zeros of the weight's dtype, one for each channel.
    let Some(shape) = tensor_of(graph, weight) else { return Vec::new() };
    let Ok(zeros) = Tensor::zeros(shape.dtype(), &shape.sizes()[..1]) else { return Vec::new() };
    match constants::insert_before(graph, at, &Value::Tensor(zeros)) {
        Some(zeros) => vec![zeros, added],
        None => Vec::new(),
    }
}

/// The op's second operand with the channels first and `rank` dimensions; numbers stay.
fn resized(graph: &mut Graph, at: OpId, op: OpId, rank: usize) -> ValueId {
    let other = graph.operands(op)[1];
    if tensor_of(graph, other).is_none() {
        return other;
    }
    let sizes: Vec<i64> = std::iter::once(-1).chain(std::iter::repeat_n(1, rank - 1)).collect();
    let list = graph.create(Symbol::new("prim::Constant"), &[], &[Type::list(Type::int())]);
    graph.set_attr(list, "value", Attr::Ints(sizes.into()));
    graph.insert_before(list, at);
    let list = graph.results(list)[0];
    emit(graph, at, Symbol::new("aten::reshape"), &[other, list], Vec::new())
}

fn emit(graph: &mut Graph, at: OpId, kind: Symbol, operands: &[ValueId], rest: Vec<ValueId>) -> ValueId {
    let operands: Vec<ValueId> = operands.iter().copied().chain(rest).collect();
    let op = graph.create(kind, &operands, &[Type::tensor()]);
    graph.insert_before(op, at);
    graph.results(op)[0]
}
