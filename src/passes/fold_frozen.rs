//! Folds batch norm into the convolution or linear map before it, where both have constant weights.
//!
//! `bn(w x + b)` is `(s w) x + (b - mean) s + shift` with `s = scale / sqrt(var + eps)` for each channel, up to rounding.
//! The statistics must be fixed (`training` is the constant False), and intermediate values must have no other uses. The new
//! weights are written as ops on constants, which constant propagation computes.
//!
//! These patterns are not a group of rules: four layers, each with or without bias, scale and shift, are 32 left sides, and what
//! is made stands before the layer, which keeps its place and its result.

use super::{Context, constants};
use crate::diag::Result;
use crate::ir::{Attr, Graph, OpId, Symbol, Type, ValueId};
use crate::value::Value;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        if graph.kind(op) == "aten::batch_norm"
            && let Some(fold) = Fold::of(graph, op)
            && context.step(|| format!("folds {}", graph.op_line(op)))
        {
            fold.apply(graph, op);
            changed = true;
        }
    }
    Ok(changed)
}

/// A normalization and what it follows.
struct Fold {
    producer: OpId,
    weight: ValueId,
    bias: ValueId,
    /// scale, shift, mean, variance
    statistics: [ValueId; 4],
    epsilon: ValueId,
    /// Dimensions of the weight after its channels.
    inner: usize,
}

impl Fold {
    fn of(graph: &Graph, op: OpId) -> Option<Fold> {
        let &[input, scale, shift, mean, variance, training, _, epsilon, ..] = graph.operands(op) else {
            return None;
        };
        let producer = graph.def_op(input).filter(|_| graph.has_one_use(input))?;
        if graph.kind(producer) != "aten::linear" && !is_convolution(graph, producer) {
            return None;
        }
        let &[_, weight, bias, ..] = graph.operands(producer) else { return None };
        let Some(Value::Tensor(weights)) = constants::value_of(graph, weight) else { return None };
        let inner = weights.sizes().len().checked_sub(1)?;
        let is_tensor = |value: ValueId| is_tensor(graph, value);
        let Some(Value::Tensor(means)) = constants::value_of(graph, mean) else { return None };
        // Batch norm counts channels in the second dimension, a linear map gives them in the last one.
        let known =
            graph.operand(producer, 0).and_then(|x| Some(graph.ty(x).as_tensor()?.sizes.as_ref()?.len()));
        let is_matrix = graph.kind(producer) != "aten::linear" || known.is_none_or(|rank| rank == 2);
        if !is_matrix || weights.sizes().first() != means.sizes().first() {
            return None;
        }
        let plain = |value: ValueId| constants::constant_op(graph, value).is_some();
        let fixed = constants::bool_of(graph, training) == Some(false) && plain(epsilon) && plain(bias);
        let statistics = [scale, shift, mean, variance];
        (fixed && is_tensor(variance) && statistics.iter().all(|v| plain(*v))).then_some(Fold {
            producer,
            weight,
            bias,
            statistics,
            epsilon,
            inner,
        })
    }

    fn apply(&self, graph: &mut Graph, op: OpId) {
        let at = self.producer;
        let [scale, shift, mean, variance] = self.statistics;
        // The statistics may follow the producer; as constants they may stand anywhere before their uses.
        for value in self.statistics.into_iter().chain([self.epsilon]) {
            if let Some(constant) =
                constants::constant_op(graph, value).filter(|_| !graph.is_visible(value, at))
            {
                graph.move_before(constant, at);
            }
        }
        let one = constants::insert_int(graph, at, 1);
        let shifted = emit(graph, at, "aten::add", &[variance, self.epsilon, one]);
        let mut factor = emit(graph, at, "aten::rsqrt", &[shifted]);
        if is_tensor(graph, scale) {
            factor = emit(graph, at, "aten::mul", &[factor, scale]);
        }
        let sizes: Vec<i64> = std::iter::once(-1).chain(std::iter::repeat_n(1, self.inner)).collect();
        let sizes = list(graph, at, &sizes);
        let wide = emit(graph, at, "aten::reshape", &[factor, sizes]);
        let weight = emit(graph, at, "aten::mul", &[self.weight, wide]);
        let centered = if is_tensor(graph, self.bias) {
            emit(graph, at, "aten::sub", &[self.bias, mean, one])
        } else {
            emit(graph, at, "aten::neg", &[mean])
        };
        let mut bias = emit(graph, at, "aten::mul", &[centered, factor]);
        if is_tensor(graph, shift) {
            bias = emit(graph, at, "aten::add", &[bias, shift, one]);
        }
        graph.set_operand(at, 1, weight);
        graph.set_operand(at, 2, bias);
        let results = graph.results(at);
        graph.replace_op(op, &results);
    }
}

/// Whether an op is a convolution whose weights have a result's channels first: under its own name, or under the one that traces
/// have, not transposed.
pub(super) fn is_convolution(graph: &Graph, op: OpId) -> bool {
    match graph.kind(op).as_str() {
        "aten::conv1d" | "aten::conv2d" | "aten::conv3d" => true,
        "aten::_convolution" => {
            graph.operand(op, 6).and_then(|transposed| constants::bool_of(graph, transposed)) == Some(false)
        }
        _ => false,
    }
}

fn is_tensor(graph: &Graph, value: ValueId) -> bool {
    matches!(constants::value_of(graph, value), Some(Value::Tensor(_)))
}

fn emit(graph: &mut Graph, anchor: OpId, kind: &str, operands: &[ValueId]) -> ValueId {
    let op = graph.create(Symbol::new(kind), operands, &[Type::tensor()]);
    graph.insert_before(op, anchor);
    graph.results(op)[0]
}

fn list(graph: &mut Graph, anchor: OpId, items: &[i64]) -> ValueId {
    let op = graph.create(Symbol::new("prim::Constant"), &[], &[Type::list(Type::int())]);
    graph.set_attr(op, "value", Attr::Ints(items.into()));
    graph.insert_before(op, anchor);
    graph.results(op)[0]
}
