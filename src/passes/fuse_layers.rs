//! Puts layers together: a convolution or linear map with constant weights, and what is done to its results (batch norm
//! with given statistics, a sum with a tensor of the same sizes, a function of each element), becomes one op whose
//! weights are packed apart from it.
//!
//! What may be a part of a layer is said by rows ([`LayerPart`]). Types must say float32 on the CPU and all sizes; nothing
//! may write to what a layer reads or gives; what goes in between has one user. Batch norm stays a factor and a sum
//! behind the contraction, in PyTorch's order: weights are not changed.

use super::{Context, constants};
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::dialects::fusion::layer;
use crate::dialects::{LayerPart, Op, Variant, layer_part, resolve};
use crate::ir::{Attr, Dim, Graph, OpId, Symbol, Type, TypeKind, ValueId};
use crate::kernels::float::Activation;
use crate::tensor::DType;
use crate::value::Value;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let db = AliasDb::new(context.registry, Some(context.module), graph);
    let mut changed = false;
    // The last first: of two layers whose results are added, the later one takes the sum.
    for op in graph.all_ops().into_iter().rev() {
        if !graph.is_live(op) {
            continue;
        }
        let Some(found) = Layer::of(graph, context, &db, op) else { continue };
        if !context
            .step(|| format!("makes a layer of {} up to {}", graph.op_line(op), graph.op_line(found.last)))
        {
            break;
        }
        found.apply(graph, op);
        changed = true;
    }
    Ok(changed)
}

/// A contraction and what follows it.
struct Layer {
    kind: Kind,
    input: ValueId,
    weight: ValueId,
    bias: Option<ValueId>,
    /// Scale, shift, mean, variance, epsilon.
    norm: Option<[Option<ValueId>; 5]>,
    residual: Option<ValueId>,
    residual_after: bool,
    activation: Activation,
    /// The op whose result is the layer's.
    last: OpId,
    /// All ops but the first, in order.
    tail: Vec<OpId>,
}

enum Kind {
    Convolution(Window),
    Linear,
}

/// How the window of a convolution moves.
struct Window {
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    groups: i64,
}

impl Layer {
    fn of(graph: &Graph, context: &Context<'_>, db: &AliasDb, op: OpId) -> Option<Layer> {
        let call = Call::of(graph, context, op)?;
        let (input, weight) = (call.get("input")?, call.get("weight")?);
        let kind = match call.part {
            LayerPart::Convolution => call.convolution(input, weight)?,
            LayerPart::Linear => call.linear(input, weight)?,
            _ => return None,
        };
        let bias = call.get("bias").filter(|bias| !is_none(graph, *bias));
        let is_vector = |bias: &ValueId| is_constant_tensor(graph, *bias, 1);
        if !bias.iter().all(is_vector) || db.op_has_writers(graph, op) {
            return None;
        }
        let mut layer = Layer {
            kind,
            input,
            weight,
            bias,
            norm: None,
            residual: None,
            residual_after: false,
            activation: Activation::None,
            last: op,
            tail: Vec::new(),
        };
        while layer.extend(graph, context, db) {}
        Some(layer)
    }

    /// Takes the op that uses the result so far, if it is part of the layer.
    fn extend(&mut self, graph: &Graph, context: &Context<'_>, db: &AliasDb) -> bool {
        let Some(result) = graph.result(self.last, 0).filter(|v| graph.has_one_use(*v)) else { return false };
        let Some(user) = graph.uses(result).next().map(|u| u.op) else { return false };
        if graph.parent(user) != graph.parent(self.last) || db.op_has_writers(graph, user) {
            return false;
        }
        let Some(call) = Call::of(graph, context, user) else { return false };
        let same_sizes =
            graph.result(user, 0).is_some_and(|v| float_sizes(graph, v) == float_sizes(graph, result));
        let untouched = self.activation == Activation::None;
        let taken = same_sizes
            && match call.part {
                LayerPart::Norm if untouched && self.residual.is_none() => {
                    self.take_norm(graph, &call, result)
                }
                LayerPart::Sum if self.residual.is_none() => self.take_sum(graph, &call, result),
                LayerPart::Activation(read) if untouched && !self.residual_after => {
                    self.take_activation(graph, &call, read, result)
                }
                _ => false,
            };
        if taken {
            self.last = user;
            self.tail.push(user);
        }
        taken
    }

    fn take_norm(&mut self, graph: &Graph, call: &Call<'_>, result: ValueId) -> bool {
        let given = |name: &str| call.get(name).filter(|value| !is_none(graph, *value));
        let statistics = [given("running_mean"), given("running_var")];
        let affine = [given("weight"), given("bias")];
        let vectors = statistics.iter().chain(&affine).flatten().all(|v| is_constant_tensor(graph, *v, 1));
        let fixed = call.get("training").and_then(|v| constants::bool_of(graph, v)) == Some(false);
        let eps = call.get("eps").filter(|v| constants::constant_op(graph, *v).is_some());
        let channels_second = matches!(self.kind, Kind::Convolution(_)) || rank(graph, result) == Some(2);
        if self.norm.is_some() || !fixed || !vectors || !channels_second || call.get("input") != Some(result)
        {
            return false;
        }
        let ([Some(mean), Some(variance)], Some(eps)) = (statistics, eps) else { return false };
        self.norm = Some([affine[0], affine[1], Some(mean), Some(variance), Some(eps)]);
        true
    }

    fn take_sum(&mut self, graph: &Graph, call: &Call<'_>, result: ValueId) -> bool {
        let one = call.get("alpha").and_then(|v| constants::value_of(graph, v));
        let is_one = match one {
            Some(Value::Int(n)) => n == 1,
            Some(Value::Float(x)) => x == 1.0,
            _ => false,
        };
        let &[a, b, ..] = graph.operands(call.op) else { return false };
        let other = if a == result { b } else { a };
        // The result itself would be used twice.
        if !is_one || other == result || float_sizes(graph, other) != float_sizes(graph, result) {
            return false;
        }
        self.residual = Some(other);
        self.residual_after = self.activation != Activation::None;
        true
    }

    fn take_activation(
        &mut self,
        graph: &Graph,
        call: &Call<'_>,
        read: fn(&[Value]) -> Option<Activation>,
        result: ValueId,
    ) -> bool {
        let operands = graph.operands(call.op);
        let Some((_, rest)) = operands.split_first().filter(|(first, _)| **first == result) else {
            return false;
        };
        let rest: Option<Vec<Value>> = rest.iter().map(|v| constants::value_of(graph, *v)).collect();
        let Some(activation) = rest.and_then(|rest| read(&rest)) else { return false };
        self.activation = activation;
        true
    }

    /// Puts the layer where its last op stands: what it adds may be made after the contraction.
    fn apply(self, graph: &mut Graph, op: OpId) {
        let at = self.last;
        let mut maker = Maker { graph: &mut *graph, at, like: op };
        let none = maker.none();
        let (scale, shift) = match self.norm {
            Some([weight, bias, Some(mean), Some(variance), Some(eps)]) => {
                let scale = maker.tensor(layer::NORM_SCALE, &[weight.unwrap_or(none), variance, eps]);
                (scale, maker.tensor(layer::NORM_SHIFT, &[bias.unwrap_or(none), mean, scale]))
            }
            _ => (none, none),
        };
        let (name, numbers) = layer_part::spelled(self.activation);
        let name = maker.constant(Type::str(), Attr::Str(name.into()));
        let numbers = maker.constant(Type::list(Type::float()), Attr::Floats(numbers.into()));
        let after = maker.constant(Type::bool(), Attr::Int(i64::from(self.residual_after)));
        let rest = [scale, shift, name, numbers, after];
        let (bias, residual) = (self.bias.unwrap_or(none), self.residual.unwrap_or(none));
        let class = Type::class(layer::CLASS);
        let ty = maker.graph.result(at, 0).map_or(Type::tensor(), |v| maker.graph.ty(v).clone());
        let result = match self.kind {
            Kind::Convolution(Window { stride, padding, dilation, groups }) => {
                let moves = [stride, padding, dilation].map(|pair| maker.pair(pair));
                let groups = maker.constant(Type::int(), Attr::Int(groups));
                let operands = [self.weight, bias].into_iter().chain(moves).chain([groups]).chain(rest);
                let operands: Vec<ValueId> = operands.collect();
                let packed = maker.emit(layer::PACK_CONV, &operands, class);
                let format = maker.constant(Type::int(), Attr::Int(layer::ROW_MAJOR));
                maker.emit(layer::CONV, &[self.input, packed, residual, format], ty)
            }
            Kind::Linear => {
                let operands: Vec<ValueId> = [self.weight, bias].into_iter().chain(rest).collect();
                let packed = maker.emit(layer::PACK_LINEAR, &operands, class);
                maker.emit(layer::LINEAR, &[self.input, packed, residual], ty)
            }
        };
        graph.replace_op(at, &[result]);
        let first = std::iter::once(op).chain(self.tail);
        let rest: Vec<OpId> = first.filter(|op| *op != at).collect();
        rest.into_iter().rev().for_each(|op| graph.erase(op));
    }
}

/// A call of an op that may be part of a layer.
struct Call<'a> {
    graph: &'a Graph,
    op: OpId,
    row: Op,
    part: LayerPart,
}

impl<'a> Call<'a> {
    fn of(graph: &'a Graph, context: &Context<'_>, op: OpId) -> Option<Call<'a>> {
        let row = resolve(context.registry, graph, op).ok()?;
        let part = row.def().part.filter(|_| row.variant() == Variant::Plain)?;
        Some(Call { graph, op, row, part })
    }

    /// An argument by its name.
    fn get(&self, name: &str) -> Option<ValueId> {
        self.graph.operand(self.op, self.row.schema().ok()?.argument_index(name)?)
    }

    fn result_sizes(&self) -> Option<Vec<i64>> {
        float_sizes(self.graph, self.graph.result(self.op, 0)?)
    }

    /// A convolution of images in batches whose sizes fit each other.
    fn convolution(&self, input: ValueId, weight: ValueId) -> Option<Kind> {
        let graph = self.graph;
        if let Some(transposed) = self.get("transposed")
            && constants::bool_of(graph, transposed) != Some(false)
        {
            return None;
        }
        let names = ["stride", "padding", "dilation", "groups"];
        let [stride, padding, dilation, groups] = names.map(|name| self.get(name));
        let pair = |value: ValueId| match constants::ints_of(graph, value)?.as_slice() {
            [a, b] => Some([usize::try_from(*a).ok()?, usize::try_from(*b).ok()?]),
            [a] => Some([usize::try_from(*a).ok()?; 2]),
            _ => None,
        };
        let (stride, padding, dilation) = (pair(stride?)?, pair(padding?)?, pair(dilation?)?);
        let groups = constants::int_of(graph, groups?)?;
        let weight = is_constant_tensor(graph, weight, 4).then(|| float_sizes(graph, weight))??;
        let shape = layer::conv_shape(&weight, (stride, padding.map(|p| [p; 2]), dilation), groups)?;
        let (images, result) = (float_sizes(graph, input)?, self.result_sizes()?);
        let &[batch, channels, height, width] = images.as_slice() else { return None };
        let plane = shape.result([usize::try_from(height).ok()?, usize::try_from(width).ok()?])?;
        let expected = [batch, shape.out_channels as i64, plane[0] as i64, plane[1] as i64];
        let divides = shape.out_channels.is_multiple_of(shape.groups);
        let positive = stride.iter().chain(&dilation).chain(&shape.kernel).all(|n| *n > 0);
        let fits = channels == shape.in_channels as i64 && result == expected && divides && positive;
        fits.then_some(Kind::Convolution(Window { stride, padding, dilation, groups }))
    }

    /// A linear map of rows whose sizes fit each other.
    fn linear(&self, input: ValueId, weight: ValueId) -> Option<Kind> {
        let weight = is_constant_tensor(self.graph, weight, 2).then(|| float_sizes(self.graph, weight))??;
        let (rows, result) = (float_sizes(self.graph, input)?, self.result_sizes()?);
        let fits = rows.last() == weight.last() && result.last() == weight.first();
        (fits && rows.len() == result.len()).then_some(Kind::Linear)
    }
}

/// Makes ops before `at`, located as `like`.
struct Maker<'a> {
    graph: &'a mut Graph,
    at: OpId,
    like: OpId,
}

impl Maker<'_> {
    fn emit(&mut self, kind: &str, operands: &[ValueId], ty: Type) -> ValueId {
        let op = self.graph.create(Symbol::new(kind), operands, &[ty]);
        self.graph.set_location_id(op, self.graph.location_id(self.like));
        self.graph.insert_before(op, self.at);
        // An op made with one result type has one result.
        self.graph.results(op)[0]
    }

    fn tensor(&mut self, kind: &str, operands: &[ValueId]) -> ValueId {
        self.emit(kind, operands, Type::tensor())
    }

    fn constant(&mut self, ty: Type, attr: Attr) -> ValueId {
        let value = self.emit("prim::Constant", &[], ty);
        if let Some(op) = self.graph.def_op(value) {
            self.graph.set_attr(op, "value", attr);
        }
        value
    }

    fn pair(&mut self, pair: [usize; 2]) -> ValueId {
        let ints: Vec<i64> = pair.iter().map(|n| *n as i64).collect();
        self.constant(Type::list(Type::int()), Attr::Ints(ints.into()))
    }

    fn none(&mut self) -> ValueId {
        self.emit("prim::Constant", &[], Type::none())
    }
}

fn is_none(graph: &Graph, value: ValueId) -> bool {
    matches!(constants::value_of(graph, value), Some(Value::None))
}

/// Whether a value is a constant float32 tensor of a rank.
fn is_constant_tensor(graph: &Graph, value: ValueId, rank: usize) -> bool {
    let constant = constants::constant_op(graph, value).is_some();
    constant && float_sizes(graph, value).is_some_and(|sizes| sizes.len() == rank)
}

fn rank(graph: &Graph, value: ValueId) -> Option<usize> {
    float_sizes(graph, value).map(|sizes| sizes.len())
}

/// The sizes of a float32 tensor on the CPU, where its type says all of it.
fn float_sizes(graph: &Graph, value: ValueId) -> Option<Vec<i64>> {
    let TypeKind::Tensor(ty) = graph.ty(value).kind() else { return None };
    let plain = ty.dtype == Some(DType::F32) && ty.device.as_ref().is_some_and(|device| device.is_cpu());
    let sizes = ty.sizes.as_deref().filter(|_| plain)?;
    sizes.iter().map(|dim| Dim::known(*dim)).collect()
}
