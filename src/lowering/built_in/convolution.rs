//! Convolutions as nests of loops with indices, which loop passes schedule: `aten::conv1d`, `conv2d`, `conv3d`, `convolution` and
//! `_convolution`, with any stride, padding, dilation and groups.
//!
//! Zeros are put around the input before, so that the nest is without branches: each element of the result is the bias plus a
//! sum over channels and the window. Sums take their products in that order and round each once with what it is added to. The
//! kernels of the rows add in another order, and leave out the zeros: results may differ by rounding, and where a weight that is
//! infinite or NaN meets padding.

use super::walk::{Walk, extent, size_parameters};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Builder, Elem, Mark};
use crate::dialects::scalar::{Binary, Compare};
use crate::dialects::shapes::Known;
use crate::ir::{Graph, Stride, ValueId};
use crate::lowering::Target;
use crate::lowering::by_op::{Lowering, OpCall, Ops, Rewriter, is_row_major};

/// The code of channels last as a memory format.
const CHANNELS_LAST: i64 = 2;

/// One of the ops.
pub(super) struct ConvByNest {
    /// What refusals call it.
    pub(super) name: &'static str,
    /// The op.
    pub(super) op: &'static str,
}

impl Lowering for ConvByNest {
    fn name(&self) -> &str {
        self.name
    }

    fn ops(&self) -> Ops {
        Ops::named(self.op)
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let form = Form::of(call)?;
        let last = result_order(call)?;
        let image = form.padded(call, rewriter)?;
        let weight = rewriter.contiguous(call.operand("weight")?)?;
        let bias = match form.bias {
            true => Some(rewriter.contiguous(call.operand("bias")?)?),
            false => None,
        };
        let given = form.sizes(rewriter, image, weight)?;
        let out = rewriter.empty(&given.result, form.elem.dtype())?;
        let inner = form.inner(call.target());
        let mut arguments = vec![out, image, weight];
        arguments.extend(bias);
        arguments.push(match inner {
            true => extent(rewriter, &given.result, None)?,
            false => rewriter.value("aten::mul", &[given.result[0], given.result[1]])?,
        });
        arguments.extend(given.all());
        if let Some(bias) = bias {
            arguments.push(rewriter.numel(bias)?);
        }
        let name = format!("conv{}d.nest", form.dims);
        let stored = rewriter.launch(&name, form.kernel(inner), &arguments)?;
        match (last, &stored[..]) {
            (true, [result]) => {
                let format = rewriter.int(CHANNELS_LAST);
                Ok(vec![rewriter.value("aten::contiguous", &[*result, format])?])
            }
            _ => Ok(stored),
        }
    }
}

/// Whether types imply that the result lies with channels last; refuses where they do not imply how it lies.
fn result_order(call: &OpCall) -> Result<bool> {
    let Known::Tensor(result) = call.result(0) else {
        return Err(Diagnostic::unsupported("types do not imply how the result lies"));
    };
    if is_row_major(result) {
        return Ok(false);
    }
    let sizes =
        result.sizes.as_ref().and_then(|s| s.iter().map(|dim| dim.known()).collect::<Option<Vec<_>>>());
    match (sizes.as_deref(), &result.strides) {
        (Some([_, c, h, w]), Some(strides))
            if strides[..] == [h * w * c, 1, w * c, *c].map(Stride::Known) =>
        {
            Ok(true)
        }
        _ => Err(Diagnostic::unsupported(
            "types must imply that the result lies in row-major order or with channels last",
        )),
    }
}

/// What types and constants say of a call.
struct Form {
    elem: Elem,
    /// Dimensions of a window.
    dims: usize,
    bias: bool,
    stride: Vec<i64>,
    /// Zeros before and after each dimension.
    padding: Vec<[i64; 2]>,
    dilation: Vec<i64>,
    groups: i64,
}

impl Form {
    fn of(call: &OpCall) -> Result<Form> {
        let (elem, rank) = (call.elem("input")?, call.rank("weight")?);
        if call.elem("weight")? != elem || !matches!(elem, Elem::F32 | Elem::F64) {
            return Err(Diagnostic::unsupported("convolves float32, or float64"));
        }
        if !(3..=5).contains(&rank) || call.rank("input")? != rank {
            return Err(Diagnostic::unsupported("convolves a batch, of 1 to 3 dimensions"));
        }
        let bias = !call.is_none("bias")?;
        if bias && (call.elem("bias")? != elem || call.rank("bias")? != 1) {
            return Err(Diagnostic::unsupported("'bias' is a vector of the dtype of 'input'"));
        }
        let has = |name: &str| call.op().schema().is_ok_and(|schema| schema.argument_index(name).is_some());
        if has("transposed") && call.bool("transposed")? {
            return Err(Diagnostic::unsupported("a transposed convolution is another op"));
        }
        let dims = rank - 2;
        let (stride, dilation) = (per_dim(call, "stride", dims, 1)?, per_dim(call, "dilation", dims, 1)?);
        let (padding, groups) = (padding(call, &stride, &dilation)?, call.int("groups")?);
        if groups < 1 {
            return Err(Diagnostic::unsupported("'groups' is at least 1"));
        }
        Ok(Form { elem, dims, bias, stride, padding, dilation, groups })
    }

    /// Whether a single loop runs over all elements.
    fn inner(&self, target: Target) -> bool {
        target == Target::Gpu
    }

    /// The input with zeros around it, in row-major order.
    fn padded(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<ValueId> {
        let mut image = call.operand("input")?;
        if self.padding.iter().any(|around| *around != [0, 0]) {
            // The list begins with the last dimension.
            let around: Vec<i64> = self.padding.iter().rev().flatten().copied().collect();
            let (list, zero) = (rewriter.int_list(&around), rewriter.int(0));
            image = rewriter.value("aten::constant_pad_nd", &[image, list, zero])?;
        }
        rewriter.contiguous(image)
    }

    fn sizes(&self, rewriter: &mut Rewriter<'_>, image: ValueId, weight: ValueId) -> Result<Sizes> {
        let own = rewriter.sizes(image, 0..self.dims + 2)?;
        let window = rewriter.sizes(weight, 0..self.dims + 2)?;
        let mut result = vec![own[0], window[0]];
        for dim in 0..self.dims {
            result.push(self.extent(rewriter, dim, own[dim + 2], window[dim + 2])?);
        }
        Ok(Sizes { result, own: own[1..].to_vec(), window: window[1..].to_vec() })
    }

    /// How often a window fits: `(own - (dilation * (window - 1) + 1)) / stride + 1`, at least 0.
    fn extent(
        &self,
        rewriter: &mut Rewriter<'_>,
        dim: usize,
        own: ValueId,
        window: ValueId,
    ) -> Result<ValueId> {
        let [zero, one] = [0, 1].map(|n| rewriter.int(n));
        let (stride, dilation) = (rewriter.int(self.stride[dim]), rewriter.int(self.dilation[dim]));
        let gaps = rewriter.value("aten::sub", &[window, one])?;
        let reach = rewriter.value("aten::mul", &[gaps, dilation])?;
        let reach = rewriter.value("aten::add", &[reach, one])?;
        let rest = rewriter.value("aten::sub", &[own, reach])?;
        let steps = rewriter.value("aten::floordiv", &[rest, stride])?;
        let count = rewriter.value("aten::add", &[steps, one])?;
        rewriter.value("prim::max", &[count, zero])
    }
}

/// Ints for each dimension; one stands for all.
fn per_dim(call: &OpCall, name: &str, dims: usize, least: i64) -> Result<Vec<i64>> {
    let mut ints = call.ints(name)?;
    if let [one] = ints[..] {
        ints = std::iter::repeat_n(one, dims).collect();
    }
    match ints.len() == dims && ints.iter().all(|n| *n >= least) {
        true => Ok(ints),
        false => Err(Diagnostic::unsupported(format!("'{name}' is {dims} numbers of at least {least}"))),
    }
}

/// Zeros before and after each dimension: numbers, `"valid"` or `"same"`.
fn padding(call: &OpCall, stride: &[i64], dilation: &[i64]) -> Result<Vec<[i64; 2]>> {
    match call.text("padding") {
        Ok("valid") => Ok(vec![[0, 0]; stride.len()]),
        Ok("same") if stride.iter().all(|s| *s == 1) => {
            let sizes = call.tensor("weight")?.sizes.clone().unwrap_or_default();
            let window = sizes.iter().skip(2).map(|dim| dim.known()).collect::<Option<Vec<i64>>>();
            let window = window.ok_or_else(|| {
                Diagnostic::unsupported("with padding \"same\", types must imply the sizes of 'weight'")
            })?;
            let total = window.iter().zip(dilation).map(|(size, dilation)| dilation * (size - 1).max(0));
            Ok(total.map(|total| [total / 2, total - total / 2]).collect())
        }
        Ok(_) => Err(Diagnostic::unsupported("'padding' is \"valid\", or with stride 1 \"same\"")),
        Err(_) => Ok(per_dim(call, "padding", stride.len(), 0)?.into_iter().map(|n| [n, n]).collect()),
    }
}

/// Sizes that a kernel is given.
struct Sizes {
    /// Batch, channels, then each dimension.
    result: Vec<ValueId>,
    /// Channels of the padded input, then each dimension.
    own: Vec<ValueId>,
    /// Channels that a window sees, then each dimension.
    window: Vec<ValueId>,
}

impl Sizes {
    fn all(&self) -> impl Iterator<Item = ValueId> {
        self.result.iter().chain(&self.own).chain(&self.window).copied()
    }

    fn parameters(b: &mut Builder, dims: usize) -> Sizes {
        let [result, own, window] = [("size", 2), ("own", 1), ("window", 1)]
            .map(|(name, more)| size_parameters(b, name, dims + more));
        Sizes { result, own, window }
    }
}

/// A kernel that is written.
struct Nest<'a> {
    form: &'a Form,
    out: ValueId,
    x: ValueId,
    weight: ValueId,
    bias: Option<ValueId>,
    sizes: Sizes,
}

impl Form {
    /// `out[n, o, y..] = bias[o] + sum over c, k.. of x[n, g, c, y * stride + k * dilation..] * w[o, c, k..]`, where g is the group
    /// of o. `flat` has a thread for each element, otherwise there is a loop for each dimension.
    fn kernel(&self, flat: bool) -> Graph {
        let mut b = Builder::new();
        let [out, x, weight] = ["out", "image", "w"].map(|name| b.buffer(self.elem, name));
        let bias = self.bias.then(|| b.buffer(self.elem, "bias"));
        let extent = b.scalar(Elem::I64, "extent");
        let sizes = Sizes::parameters(&mut b, self.dims);
        let nest = Nest { form: self, out, x, weight, bias, sizes };
        nest.require_sizes(&mut b);
        match flat {
            true => nest.flat(&mut b, extent),
            false => nest.loops(&mut b, extent),
        }
        b.finish()
    }
}

impl Nest<'_> {
    /// Ends the kernel where sizes do not fit.
    fn require_sizes(&self, b: &mut Builder) {
        let groups = b.index(self.form.groups);
        let (channels, zero) = (self.sizes.result[1], b.index(0));
        let rest = b.binary(Binary::Rem, channels, groups);
        let even = b.compare(Compare::Eq, rest, zero);
        let enough = b.compare(Compare::Ge, channels, groups);
        let fits = b.binary(Binary::And, even, enough);
        b.require(fits, "expected the weight's size at dimension 0 to be divisible by groups");
        let taken = b.product(self.sizes.window[0], groups);
        let fits = b.compare(Compare::Eq, taken, self.sizes.own[0]);
        b.require(fits, "expected the input to have as many channels as the weight takes");
        if self.bias.is_some() {
            let length = b.scalar(Elem::I64, "length");
            let fits = b.compare(Compare::Eq, length, channels);
            b.require(
                fits,
                "expected bias to be 1-dimensional with an element for each channel of the result",
            );
        }
        for dim in 0..self.form.dims {
            let (own, window) = (self.sizes.own[dim + 1], self.sizes.window[dim + 1]);
            let (one, dilation) = (b.index(1), b.index(self.form.dilation[dim]));
            let gaps = b.binary(Binary::Sub, window, one);
            let reach = b.product(gaps, dilation);
            let fits = b.compare(Compare::Lt, reach, own);
            b.require(fits, "Kernel size can't be greater than actual input size");
        }
    }

    /// A thread for each element.
    fn flat(&self, b: &mut Builder, extent: ValueId) {
        let marks = [Mark::Parallel; 2];
        Walk { sizes: &self.sizes.result, extent, inner: None, marks }.each(b, |b, at, flat| {
            self.element(b, [at[0], at[1]], &at[2..], flat);
        });
    }

    /// A loop over the channels of all images, and one for each dimension, to be scheduled.
    fn loops(&self, b: &mut Builder, planes: ValueId) {
        b.for_each(planes, Mark::Serial, "p", |b, p| {
            let channels = self.sizes.result[1];
            let (n, o) = (b.binary(Binary::Div, p, channels), b.binary(Binary::Rem, p, channels));
            self.level(b, [n, o], &mut Vec::new(), p);
        });
    }

    fn level(&self, b: &mut Builder, plane: [ValueId; 2], at: &mut Vec<ValueId>, flat: ValueId) {
        let dim = at.len();
        if dim == self.form.dims {
            return self.element(b, plane, at, flat);
        }
        let size = self.sizes.result[dim + 2];
        b.for_each(size, Mark::Serial, ["x", "y", "z"][self.form.dims - 1 - dim], |b, i| {
            let flat = b.at(flat, size, i);
            at.push(i);
            self.level(b, plane, at, flat);
            at.pop();
        });
    }

    fn element(&self, b: &mut Builder, [n, o]: [ValueId; 2], at: &[ValueId], flat: ValueId) {
        let first = match self.bias {
            Some(bias) => b.load(bias, o),
            None => b.number(0, self.form.elem),
        };
        let per_group = self.sizes.window[0];
        let mut channel = b.product(n, self.sizes.own[0]);
        if self.form.groups > 1 {
            let groups = b.index(self.form.groups);
            let outputs = b.binary(Binary::Div, self.sizes.result[1], groups);
            let group = b.binary(Binary::Div, o, outputs);
            let start = b.product(group, per_group);
            channel = b.sum(channel, start);
        }
        let starts: Vec<ValueId> = at
            .iter()
            .zip(&self.form.stride)
            .map(|(i, stride)| {
                let stride = b.index(*stride);
                b.product(*i, stride)
            })
            .collect();
        let sum = b.fold(per_group, first, "c", |b, c, sum| {
            let (plane, window) = (b.sum(channel, c), b.at(o, per_group, c));
            self.window(b, &starts, 0, [plane, window], sum)
        });
        b.store(self.out, flat, sum);
    }

    /// The sum over the window from a dimension on; with the index into input and weight so far.
    fn window(
        &self,
        b: &mut Builder,
        starts: &[ValueId],
        dim: usize,
        [from, with]: [ValueId; 2],
        sum: ValueId,
    ) -> ValueId {
        let Some(start) = starts.get(dim) else {
            let (x, weight) = (b.load(self.x, from), b.load(self.weight, with));
            return b.fma(x, weight, sum);
        };
        let (own, size) = (self.sizes.own[dim + 1], self.sizes.window[dim + 1]);
        let name = ["kx", "ky", "kz"][self.form.dims - 1 - dim];
        b.fold(size, sum, name, |b, k, sum| {
            let dilation = b.index(self.form.dilation[dim]);
            let shift = b.product(k, dilation);
            let place = b.sum(*start, shift);
            let (from, with) = (b.at(from, own, place), b.at(with, size, k));
            self.window(b, starts, dim + 1, [from, with], sum)
        })
    }
}
