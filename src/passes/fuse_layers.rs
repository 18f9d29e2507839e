//! Puts layers together: a convolution or linear map with constant weights, and what is done to its results (batch norm
//! with given statistics, a sum with a tensor of the same sizes, a function of each element), becomes one op whose
//! weights are packed apart from it. What is done to a convolution's images alone (batch norm, a function, factors of
//! channels) becomes part of it too; other batch norms become layers of their own.
//!
//! A signal, which `conv1d` takes, is an image of one line.
//!
//! What may be a part of a layer is said by rows ([`LayerPart`]). Types must say float32 on the CPU and all sizes; nothing
//! may write to what a layer reads or gives; what goes in between has one user. Batch norm stays a factor and a sum
//! after the contraction, in PyTorch's order: weights are not changed.
//!
//! A layer's result has the layout of the program: types must determine its strides, and they must be those of rows or, of
//! images, those of channels that lie innermost. Sums with a linear map may have any without gaps: the layer gives rows, and an
//! op after it the strides, which `assign-layouts` takes away where they are not seen. Rows of a linear map may be given other
//! sizes before what is done to them.

use super::layer_parts::{
    Call, Maker, float_dims, float_sizes, format_of, is_constant_tensor, is_none, open_sizes, rank, restored,
    with_strides,
};
use super::{Context, constants};
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::dialects::fusion::layer;
use crate::dialects::{Family, LayerPart, layer_part, resolve};
use crate::ir::{Attr, Dim, Graph, OpId, Type, ValueId};
use crate::kernels::float::Activation;
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
        found.apply(graph, context, op);
        changed = true;
    }
    Ok(changed)
}

/// A contraction or a batch norm, what stands before it and what follows it.
struct Layer {
    kind: Kind,
    /// How its result lies.
    format: i64,
    before: Before,
    bias: Option<ValueId>,
    norm: Option<Norm>,
    residual: Option<ValueId>,
    residual_after: bool,
    activation: Activation,
    /// The contraction's own result, or the batch norm's.
    made: ValueId,
    /// The op whose result is the layer's.
    last: OpId,
    /// All ops but the first, in order.
    tail: Vec<OpId>,
    /// Those of them that give rows other sizes.
    reshapes: Vec<OpId>,
}

enum Kind {
    Convolution(Window),
    Linear(ValueId),
    Norm,
}

impl Kind {
    /// Whether results are images, whose channels may lie innermost.
    fn makes_images(&self) -> bool {
        !matches!(self, Kind::Linear(_))
    }
}

/// How a value lies, where a layer can give it so.
fn format(graph: &Graph, context: &Context<'_>, value: ValueId, images: bool) -> Option<i64> {
    format_of(graph, context, value).filter(|format| images || *format == layer::ROW_MAJOR)
}

/// How the window of a convolution moves, and its weights.
struct Window {
    weight: ValueId,
    stride: [usize; 2],
    /// Before and after, of lines and of columns.
    padding: [[usize; 2]; 2],
    dilation: [usize; 2],
    groups: i64,
}

/// A batch norm by statistics that are constants.
#[derive(Clone, Copy)]
struct Norm {
    weight: Option<ValueId>,
    bias: Option<ValueId>,
    mean: ValueId,
    variance: ValueId,
    eps: ValueId,
}

/// The images that a layer reads, and what is done to them first.
struct Before {
    images: ValueId,
    norm: Option<(Norm, Activation)>,
    gate: Option<ValueId>,
    /// The ops, the last first.
    ops: Vec<OpId>,
}

impl Layer {
    fn of(graph: &Graph, context: &Context<'_>, db: &AliasDb, op: OpId) -> Option<Layer> {
        let call = Call::of(graph, context, op)?;
        let input = call.get("input")?;
        let kind = match call.part {
            LayerPart::Convolution => call.convolution(input, call.get("weight")?)?,
            LayerPart::Linear => call.linear(input, call.get("weight")?)?,
            LayerPart::Norm if !follows_convolution(graph, context, input) => Kind::Norm,
            _ => return None,
        };
        let norm = match kind {
            Kind::Norm => Some(call.norm(input).filter(|_| rank(graph, input) == Some(4))?),
            _ => None,
        };
        let bias = if norm.is_some() { None } else { call.get("bias") };
        let bias = bias.filter(|bias| !is_none(graph, *bias));
        let is_vector = |bias: &ValueId| is_constant_tensor(graph, *bias, 1);
        if !bias.iter().all(is_vector) || db.op_has_writers(graph, op) {
            return None;
        }
        let made = graph.result(op, 0)?;
        let format = format(graph, context, made, kind.makes_images())?;
        let mut layer = Layer {
            kind,
            format,
            before: Before::nothing(input),
            bias,
            norm,
            residual: None,
            residual_after: false,
            activation: Activation::None,
            made,
            last: op,
            tail: Vec::new(),
            reshapes: Vec::new(),
        };
        while layer.extend(graph, context, db) {}
        // Other sizes are taken in for what follows alone.
        while layer.tail.pop_if(|last| layer.reshapes.contains(last)).is_some() {
            layer.last = layer.tail.last().copied().unwrap_or(op);
        }
        if let Kind::Convolution(window) = &mut layer.kind {
            layer.before = Before::of(graph, context, db, op, (input, window));
        }
        Some(layer)
    }

    /// Takes the op that uses the result so far, if it is part of the layer.
    fn extend(&mut self, graph: &Graph, context: &Context<'_>, db: &AliasDb) -> bool {
        let Some(result) = graph.result(self.last, 0).filter(|v| graph.has_one_use(*v)) else { return false };
        let Some(user) = graph.uses(result).next().map(|u| u.op) else { return false };
        if graph.parent(user) != graph.parent(self.last) || db.op_has_writers(graph, user) {
            return false;
        }
        if self.is_reshape(graph, context, user, result) {
            self.last = user;
            self.tail.push(user);
            self.reshapes.push(user);
            return true;
        }
        let Some(call) = Call::of(graph, context, user) else { return false };
        let same_sizes =
            graph.result(user, 0).is_some_and(|v| float_dims(graph, v) == float_dims(graph, result));
        let untouched = self.activation == Activation::None;
        let Some(format) = graph.result(user, 0).and_then(|v| self.format_of(graph, context, v)) else {
            return false;
        };
        let taken = same_sizes
            && match call.part {
                LayerPart::Norm if untouched && self.residual.is_none() => {
                    self.take_norm(graph, &call, result)
                }
                LayerPart::Sum if self.residual.is_none() => self.take_sum(graph, &call, result),
                LayerPart::Activation(read) if untouched && !self.residual_after => {
                    self.take_activation(&call, read, result)
                }
                _ => false,
            };
        if taken {
            self.format = format;
            self.last = user;
            self.tail.push(user);
        }
        taken
    }

    /// Whether an op gives rows of a linear map other sizes, and keeps the last one: a batch norm of features wants a matrix.
    fn is_reshape(&self, graph: &Graph, context: &Context<'_>, op: OpId, value: ValueId) -> bool {
        let is_view =
            || resolve(context.registry, graph, op).is_ok_and(|row| row.def().family == Family::View);
        let Some(result) = graph.result(op, 0) else { return false };
        if !matches!(self.kind, Kind::Linear(_)) || graph.operand(op, 0) != Some(value) || !is_view() {
            return false;
        }
        // What lies in rows before and after has its elements in the same order.
        let in_rows = [value, result].iter().all(|v| format(graph, context, *v, false).is_some());
        let (Some(before), Some(after)) = (float_sizes(graph, value), float_sizes(graph, result)) else {
            return false;
        };
        let count = |sizes: &[i64]| sizes.iter().try_fold(1i64, |all, n| all.checked_mul(*n));
        let same = before.last() == after.last() && count(&before) == count(&after);
        in_rows && same && !before.contains(&0)
    }

    /// How the layer gives a result that shall lie as a value does. Rows of linear maps get strides that are others after it.
    fn format_of(&self, graph: &Graph, context: &Context<'_>, value: ValueId) -> Option<i64> {
        let images = self.kind.makes_images();
        let restored = || (!images && restored(graph, context, value).is_some()).then_some(layer::ROW_MAJOR);
        format(graph, context, value, images).or_else(restored)
    }

    fn take_norm(&mut self, graph: &Graph, call: &Call<'_>, result: ValueId) -> bool {
        let channels_second = matches!(self.kind, Kind::Convolution(_)) || rank(graph, result) == Some(2);
        if self.norm.is_none() && channels_second {
            self.norm = call.norm(result);
            return self.norm.is_some();
        }
        false
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
        // The result itself would be used twice. The kernel adds rows of its own sizes.
        let own = float_dims(graph, self.made);
        if !is_one || other == result || [other, result].iter().any(|v| float_dims(graph, *v) != own) {
            return false;
        }
        self.residual = Some(other);
        self.residual_after = self.activation != Activation::None;
        true
    }

    fn take_activation(
        &mut self,
        call: &Call<'_>,
        read: fn(&[Value]) -> Option<Activation>,
        result: ValueId,
    ) -> bool {
        let Some(activation) = call.activation(read, result) else { return false };
        self.activation = activation;
        true
    }

    /// Puts the layer where its last op stands: what it adds may be made after the contraction.
    fn apply(self, graph: &mut Graph, context: &Context<'_>, op: OpId) {
        let at = self.last;
        let mut maker = Maker { graph: &mut *graph, at, like: op };
        let none = maker.none();
        let (scale, shift) = self.norm.map_or((none, none), |norm| norm.emit(&mut maker, none));
        let [name, numbers] = spelled(&mut maker, self.activation);
        let after = maker.constant(Type::bool(), Attr::Int(i64::from(self.residual_after)));
        let rest = [scale, shift, name, numbers, after];
        let (bias, residual) = (self.bias.unwrap_or(none), self.residual.unwrap_or(none));
        let images = self.before.images;
        let class = Type::class(layer::CLASS);
        let ty = maker.graph.result(at, 0).map_or(Type::tensor(), |v| maker.graph.ty(v).clone());
        let result = match self.kind {
            Kind::Convolution(Window { weight, stride, padding, dilation, groups }) => {
                let padding = match padding {
                    [[top, bottom], [left, right]] if top == bottom && left == right => {
                        maker.sizes(&[top, left])
                    }
                    [[top, bottom], [left, right]] => maker.sizes(&[top, bottom, left, right]),
                };
                let moves = [maker.sizes(&stride), padding, maker.sizes(&dilation)];
                let groups = maker.constant(Type::int(), Attr::Int(groups));
                let operands = [weight, bias].into_iter().chain(moves).chain([groups]).chain(rest);
                let operands: Vec<ValueId> = operands.collect();
                let mut packed = maker.emit(layer::PACK_CONV, &operands, class.clone());
                if let Some((norm, activation)) = self.before.norm {
                    let (scale, shift) = norm.emit(&mut maker, none);
                    let [name, numbers] = spelled(&mut maker, activation);
                    let operands = [packed, scale, shift, name, numbers];
                    packed = maker.emit(layer::PACK_PROLOGUE, &operands, class);
                }
                let gate = self.before.gate.unwrap_or(none);
                let format = maker.constant(Type::int(), Attr::Int(self.format));
                maker.emit(layer::CONV, &[images, packed, residual, gate, format], ty)
            }
            Kind::Linear(weight) => {
                let operands: Vec<ValueId> = [weight, bias].into_iter().chain(rest).collect();
                let packed = maker.emit(layer::PACK_LINEAR, &operands, class);
                linear(&mut maker, context, &[images, packed, residual], (self.made, ty))
            }
            Kind::Norm => {
                let packed = maker.emit(layer::PACK_NORM, &rest, class);
                let format = maker.constant(Type::int(), Attr::Int(self.format));
                maker.emit(layer::NORM, &[images, packed, residual, format], ty)
            }
        };
        graph.replace_op(at, &[result]);
        let first = std::iter::once(op).chain(self.tail);
        let rest: Vec<OpId> = first.filter(|op| *op != at).collect();
        rest.into_iter().rev().chain(self.before.ops).for_each(|op| graph.erase(op));
    }
}

impl Before {
    fn nothing(images: ValueId) -> Before {
        Before { images, norm: None, gate: None, ops: Vec::new() }
    }

    /// What is done to a convolution's images and seen by nothing else: a batch norm, an activation, a gate of channels, zeros
    /// around them, which the window takes over.
    fn of(
        graph: &Graph,
        context: &Context<'_>,
        db: &AliasDb,
        op: OpId,
        (images, window): (ValueId, &mut Window),
    ) -> Before {
        let mut before = Before::nothing(images);
        let maker = |value: ValueId| {
            let made = graph.def_op(value).filter(|_| graph.has_one_use(value))?;
            let plain = graph.parent(made) == graph.parent(op) && !db.op_has_writers(graph, made);
            plain.then(|| Call::of(graph, context, made))?
        };
        if let Some(call) = maker(before.images)
            && let Some((images, added)) = call.padding()
            && let Some(padding) = window.padded(added)
        {
            (before.images, window.padding) = (images, padding);
            before.ops.push(call.op);
        }
        if !window.takes_channels(graph) {
            return before;
        }
        if let Some(call) = maker(before.images)
            && let Some((images, gate)) = call.gate()
        {
            (before.images, before.gate) = (images, Some(gate));
            before.ops.push(call.op);
        }
        let (mut at, mut activation, mut ops) = (before.images, Activation::None, Vec::new());
        if let Some(call) = maker(at)
            && let (LayerPart::Activation(read), Some(first)) = (call.part, graph.operand(call.op, 0))
            && let Some(found) = call.activation(read, first)
        {
            (at, activation) = (first, found);
            ops.push(call.op);
        }
        if let Some(call) = maker(at)
            && let (LayerPart::Norm, Some(input)) = (call.part, call.get("input"))
            && let Some(norm) = call.norm(input).filter(|_| !follows_convolution(graph, context, input))
            && float_dims(graph, input) == float_dims(graph, before.images)
        {
            (before.images, before.norm) = (input, Some((norm, activation)));
            before.ops.extend(ops);
            before.ops.push(call.op);
        }
        before
    }
}

impl Norm {
    /// Makes its factor and what it adds.
    fn emit(&self, maker: &mut Maker<'_>, none: ValueId) -> (ValueId, ValueId) {
        let factor = [self.weight.unwrap_or(none), self.variance, self.eps];
        let scale = maker.tensor(layer::NORM_SCALE, &factor);
        (scale, maker.tensor(layer::NORM_SHIFT, &[self.bias.unwrap_or(none), self.mean, scale]))
    }
}

/// Makes a linear map like the one that made a value, whose result has a type: it is row-major; other sizes and strides that the
/// type says are given by another op.
fn linear(
    maker: &mut Maker<'_>,
    context: &Context<'_>,
    operands: &[ValueId],
    (made, ty): (ValueId, Type),
) -> ValueId {
    let Some(last) = maker.graph.result(maker.at, 0) else { return maker.emit(layer::LINEAR, operands, ty) };
    if float_dims(maker.graph, made) != float_dims(maker.graph, last) {
        let sizes = float_sizes(maker.graph, last).unwrap_or_default();
        let like = maker.graph.ty(made).clone();
        let result = maker.emit(layer::LINEAR, operands, like);
        let sizes = maker.constant(Type::list(Type::int()), Attr::Ints(sizes.into()));
        return maker.emit("aten::reshape", &[result, sizes], ty);
    }
    let given = restored(maker.graph, context, last);
    let (Some(given), None) = (given, format(maker.graph, context, last, false)) else {
        return maker.emit(layer::LINEAR, operands, ty);
    };
    let rows = float_dims(maker.graph, last).and_then(|dims| open_sizes(context).row_major(dims));
    let result = maker.emit(layer::LINEAR, operands, with_strides(&ty, rows));
    maker.restore(result, given, ty)
}

/// Makes an activation's name and numbers.
fn spelled(maker: &mut Maker<'_>, activation: Activation) -> [ValueId; 2] {
    let (name, numbers) = layer_part::spelled(activation);
    let name = maker.constant(Type::str(), Attr::Str(name.into()));
    [name, maker.constant(Type::list(Type::float()), Attr::Floats(numbers.into()))]
}

/// Whether a value is the result of a convolution that takes what follows it.
fn follows_convolution(graph: &Graph, context: &Context<'_>, value: ValueId) -> bool {
    let Some(made) = graph.def_op(value).filter(|_| graph.has_one_use(value)) else { return false };
    let call = Call::of(graph, context, made).filter(|call| matches!(call.part, LayerPart::Convolution));
    let weight = call.as_ref().and_then(|call| call.get("weight"));
    weight.is_some_and(|weight| (3..=4).any(|rank| is_constant_tensor(graph, weight, rank)))
}

/// The sizes of images in batches; a signal is an image of one line.
fn as_images(dims: &[Dim]) -> Option<[Dim; 4]> {
    match *dims {
        [batch, channels, width] => Some([batch, channels, Dim::Known(1), width]),
        [batch, channels, height, width] => Some([batch, channels, height, width]),
        _ => None,
    }
}

impl Window {
    /// Its padding with more around it.
    fn padded(&self, added: [[usize; 2]; 2]) -> Option<[[usize; 2]; 2]> {
        let [[top, bottom], [left, right]] = added;
        let [lines, columns] = self.padding;
        Some([
            [lines[0].checked_add(top)?, lines[1].checked_add(bottom)?],
            [columns[0].checked_add(left)?, columns[1].checked_add(right)?],
        ])
    }

    /// Whether the images' channels are innermost, as they must be where something is done to them first.
    fn takes_channels(&self, graph: &Graph) -> bool {
        let width = float_sizes(graph, self.weight).and_then(|sizes| sizes.get(1).copied());
        self.groups > 1 || width.is_some_and(|n| n > layer::FEW_CHANNELS as i64)
    }
}

impl Call<'_> {
    /// Images, and how many lines and columns of zeros are put before and after them.
    fn padding(&self) -> Option<(ValueId, [[usize; 2]; 2])> {
        let graph = self.graph;
        let images = self.get("self").filter(|_| matches!(self.part, LayerPart::Pad))?;
        let is_constant = match self.get("mode") {
            Some(mode) => constants::value_of(graph, mode)?.to_str().is_ok_and(|mode| mode == "constant"),
            None => true,
        };
        let is_zero = self.get("value").is_none_or(|value| match constants::value_of(graph, value) {
            Some(Value::None | Value::Int(0)) => true,
            Some(Value::Float(x)) => x == 0.0 && x.is_sign_positive(),
            _ => false,
        });
        let pad = constants::ints_of(graph, self.get("pad")?)?;
        let pad: Vec<usize> = pad.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<_>>()?;
        let [left, right, ref lines @ ..] = *pad.as_slice() else { return None };
        let lines = match (rank(graph, images)?, lines) {
            (3 | 4, []) => [0; 2],
            (4, &[top, bottom]) => [top, bottom],
            _ => return None,
        };
        (is_constant && is_zero).then_some((images, [lines, [left, right]]))
    }

    /// A convolution of images in batches whose sizes fit each other, or of signals, which are images of one line.
    fn convolution(&self, input: ValueId, given: ValueId) -> Option<Kind> {
        let graph = self.graph;
        if let Some(transposed) = self.get("transposed")
            && constants::bool_of(graph, transposed) != Some(false)
        {
            return None;
        }
        constants::constant_op(graph, given)?;
        let weight = float_sizes(graph, given)?;
        let is_signal = weight.len() == 3;
        let pair = |name: &str, of_lines: usize| {
            let ints = constants::ints_of(graph, self.get(name)?)?;
            let ints: Vec<usize> = ints.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<_>>()?;
            match *ints.as_slice() {
                [a] if is_signal => Some([of_lines, a]),
                [a] => Some([a; 2]),
                [a, b] if !is_signal => Some([a, b]),
                _ => None,
            }
        };
        let (stride, padding, dilation) = (pair("stride", 1)?, pair("padding", 0)?, pair("dilation", 1)?);
        let padding = padding.map(|n| [n; 2]);
        let groups = constants::int_of(graph, self.get("groups")?)?;
        let shape = layer::conv_shape(&weight, (stride, padding, dilation), groups)?;
        let (images, result) = (float_dims(graph, input)?, self.result_dims()?);
        if [images, result].iter().any(|dims| dims.len() != weight.len()) {
            return None;
        }
        let ([batch, channels, height, width], result) = (as_images(images)?, as_images(result)?);
        // Where a size is open, so is that of the result, which is 2 or more: the window fits, as it does into a large image.
        let known = |dim: Dim| usize::try_from(dim.known().unwrap_or(i64::from(u16::MAX))).ok();
        let plane = shape.result([known(height)?, known(width)?])?;
        let made = |n: usize, from: Dim| match from {
            Dim::Known(_) => Dim::Known(plane[n] as i64),
            _ => result[n + 2],
        };
        let expected = [batch, Dim::Known(shape.out_channels as i64), made(0, height), made(1, width)];
        let divides = shape.out_channels.is_multiple_of(shape.groups);
        let positive = stride.iter().chain(&dilation).chain(&shape.kernel).all(|n| *n > 0);
        let fits =
            channels == Dim::Known(shape.in_channels as i64) && result == expected && divides && positive;
        fits.then_some(Kind::Convolution(Window { weight: given, stride, padding, dilation, groups }))
    }

    /// A linear map of rows whose sizes fit each other.
    fn linear(&self, input: ValueId, given: ValueId) -> Option<Kind> {
        let weight = is_constant_tensor(self.graph, given, 2).then(|| float_sizes(self.graph, given))??;
        let (rows, result) = (float_dims(self.graph, input)?, self.result_dims()?);
        let is = |dim: Option<&Dim>, size: Option<&i64>| dim.and_then(|dim| dim.known()) == size.copied();
        let fits = is(rows.last(), weight.last()) && is(result.last(), weight.first());
        (fits && rows.len() == result.len()).then_some(Kind::Linear(given))
    }

    /// A batch norm of `input` by constants, not in training.
    fn norm(&self, input: ValueId) -> Option<Norm> {
        let graph = self.graph;
        let given = |name: &str| self.get(name).filter(|value| !is_none(graph, *value));
        let (mean, variance) = (given("running_mean")?, given("running_var")?);
        let (weight, bias) = (given("weight"), given("bias"));
        let vectors = [Some(mean), Some(variance), weight, bias];
        let constant = vectors.into_iter().flatten().all(|v| is_constant_tensor(graph, v, 1));
        let fixed = self.get("training").and_then(|v| constants::bool_of(graph, v)) == Some(false);
        let eps = self.get("eps").filter(|v| constants::constant_op(graph, *v).is_some())?;
        let fits = constant && fixed && self.get("input") == Some(input);
        fits.then_some(Norm { weight, bias, mean, variance, eps })
    }

    /// The function that an activation of `input` is.
    fn activation(&self, read: fn(&[Value]) -> Option<Activation>, input: ValueId) -> Option<Activation> {
        let (first, rest) = self.graph.operands(self.op).split_first()?;
        let rest: Option<Vec<Value>> = rest.iter().map(|v| constants::value_of(self.graph, *v)).collect();
        if *first == input { read(&rest?) } else { None }
    }

    /// Images and the factors of their channels, where the op multiplies them.
    fn gate(&self) -> Option<(ValueId, ValueId)> {
        let graph = self.graph;
        let (LayerPart::Product, &[a, b]) = (self.part, graph.operands(self.op)) else { return None };
        let (a_sizes, b_sizes) = (float_dims(graph, a)?, float_dims(graph, b)?);
        let one = Dim::Known(1);
        let gates = |images: &[Dim], gate: &[Dim]| {
            let &[batch, channels, height, width] = images else { return false };
            let empty = [height, width].contains(&Dim::Known(0));
            gate == [batch, channels, one, one] && !empty && [height, width] != [one; 2]
        };
        if gates(a_sizes, b_sizes) {
            return Some((a, b));
        }
        gates(b_sizes, a_sizes).then_some((b, a))
    }
}
