//! Convolutions, plain and transposed, with all their names.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{layouts, products};
use crate::dialects::{Args, LayerPart, OpDef, Outputs, composite, contraction, one};
use crate::kernels::compute::{Dense, build, build_whole, compute_dtype, rounding};
use crate::kernels::conv::weight_gradient as weight_sums;
use crate::kernels::conv::{Geometry, forward, transposed};
use crate::kernels::create::range::not_implemented;
use crate::kernels::matrix::gemm::{Matrix, Onto, matmul};
use crate::kernels::strided::with_strides;
use crate::tensor::{DType, Element, Scalar, Tensor, view};

/// The rows.
pub static OPS: &[OpDef] = &[
    contraction(
        "aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
        |a| plain(a, 1),
    ).part(LayerPart::Convolution).infer(products::convolution),
    contraction(
        "aten::conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str padding=\"valid\", SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
        |a| named_padding(a, Some(1)),
    ).infer(products::convolution),
    contraction(
        "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
        |a| plain(a, 2),
    ).part(LayerPart::Convolution).infer(products::convolution),
    contraction(
        "aten::conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str padding=\"valid\", SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
        |a| named_padding(a, Some(2)),
    ).infer(products::convolution),
    contraction(
        "aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
        |a| plain(a, 3),
    ).infer(products::convolution),
    contraction(
        "aten::conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str padding=\"valid\", SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
        |a| named_padding(a, Some(3)),
    ).infer(products::convolution),
    contraction(
        "aten::conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor",
        |a| turned(a, 1),
    ).infer(products::convolution),
    contraction(
        "aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, SymInt[2] dilation=[1, 1]) -> Tensor",
        |a| turned(a, 2),
    ).infer(products::convolution),
    contraction(
        "aten::conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt groups=1, SymInt[3] dilation=[1, 1, 1]) -> Tensor",
        |a| turned(a, 3),
    ).infer(products::convolution),
    contraction(
        "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
        general,
    ).infer(products::convolution)
    .out("out"),
    contraction(
        "aten::_convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, int[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled) -> Tensor",
        general,
    ).infer(products::convolution),
    contraction(
        "aten::_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor",
        general,
    ).part(LayerPart::Convolution).infer(products::convolution)
    .out("out"),
    contraction(
        "aten::_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, SymInt[] dilation, SymInt groups) -> Tensor",
        |a| named_padding(a, None),
    ).infer(products::convolution),
    composite(
        "aten::conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
        "def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor:
    return torch.conv1d(self.permute([1, 2, 0]), weight.permute([2, 1, 0]), bias, [1], [pad], [1], 1).permute([2, 0, 1])
",
    )
    .out("out"),
];

/// A call: the arguments that all names share.
pub(in crate::dialects) struct Call<'a> {
    pub input: &'a Tensor,
    pub weight: &'a Tensor,
    pub bias: Option<&'a Tensor>,
    pub stride: Vec<i64>,
    /// Zeros in front and after.
    pub padding: (Vec<i64>, Vec<i64>),
    pub dilation: Vec<i64>,
    /// Of a transposed convolution.
    pub output_padding: Option<Vec<i64>>,
    pub groups: i64,
}

fn plain(a: &Args<'_>, dims: usize) -> Result<Outputs> {
    let padding = a.ints(4)?;
    let call = Call {
        input: a.tensor(0)?,
        weight: a.tensor(1)?,
        bias: a.opt_tensor(2)?,
        stride: a.ints(3)?,
        padding: (padding.clone(), padding),
        dilation: a.ints(5)?,
        output_padding: None,
        groups: a.int(6)?,
    };
    batched(call, dims, &format!("conv{dims}d"))
}

fn turned(a: &Args<'_>, dims: usize) -> Result<Outputs> {
    let padding = a.ints(4)?;
    let call = Call {
        input: a.tensor(0)?,
        weight: a.tensor(1)?,
        bias: a.opt_tensor(2)?,
        stride: a.ints(3)?,
        padding: (padding.clone(), padding),
        dilation: a.ints(7)?,
        output_padding: Some(a.ints(5)?),
        groups: a.int(6)?,
    };
    batched(call, dims, &format!("conv_transpose{dims}d"))
}

fn general(a: &Args<'_>) -> Result<Outputs> {
    let padding = a.ints(4)?;
    let call = Call {
        input: a.tensor(0)?,
        weight: a.tensor(1)?,
        bias: a.opt_tensor(2)?,
        stride: a.ints(3)?,
        padding: (padding.clone(), padding),
        dilation: a.ints(5)?,
        output_padding: if a.bool(6)? { Some(a.ints(7)?) } else { None },
        groups: a.int(8)?,
    };
    one(convolve(call)?)
}

/// `padding` is "valid" or "same".
fn named_padding(a: &Args<'_>, dims: Option<usize>) -> Result<Outputs> {
    let weight = a.tensor(1)?;
    let spatial = weight.rank().saturating_sub(2);
    if dims.is_some_and(|dims| dims != spatial) && a.str(4)? == "same" {
        return Err(other_rank(a.tensor(0)?, weight, ""));
    }
    let (stride, dilation) = (a.ints(3)?, expand(a.ints(5)?, spatial, "dilation")?);
    let padding = match a.str(4)? {
        "valid" => (vec![0; spatial], vec![0; spatial]),
        "same" => {
            if stride.iter().any(|s| *s != 1) {
                return Err(Diagnostic::runtime("padding='same' is not supported for strided convolutions"));
            }
            let total: Vec<i64> =
                weight.sizes().iter().skip(2).zip(&dilation).map(|(k, d)| d.saturating_mul(k - 1)).collect();
            let before: Vec<i64> = total.iter().map(|t| t / 2).collect();
            let after = total.iter().zip(&before).map(|(t, b)| t - b).collect();
            (before, after)
        }
        other => return Err(Diagnostic::runtime(format!("Invalid padding string: '{other}'"))),
    };
    let call = Call {
        input: a.tensor(0)?,
        weight,
        bias: a.opt_tensor(2)?,
        stride,
        padding,
        dilation,
        output_padding: None,
        groups: a.int(6)?,
    };
    match dims {
        Some(dims) => batched(call, dims, &format!("conv{dims}d")),
        None => one(convolve(call)?),
    }
}

/// Takes one image or a batch of them.
fn batched(call: Call<'_>, dims: usize, name: &str) -> Result<Outputs> {
    let sizes = call.input.sizes();
    if sizes.len() == dims + 2 {
        return one(convolve(call)?);
    }
    if sizes.len() != dims + 1 {
        return Err(Diagnostic::runtime(format!(
            "Expected {}D (unbatched) or {}D (batched) input to {name}, but got input of size: {:?}",
            dims + 1,
            dims + 2,
            sizes.as_slice()
        )));
    }
    let image: Vec<i64> = std::iter::once(1).chain(sizes).collect();
    let input = call.input.reshaped(&image)?;
    let result = convolve(Call { input: &input, ..call })?;
    let sizes = result.sizes();
    one(result.reshaped(&sizes[1..])?)
}

/// One number stands for all dimensions.
fn expand(ints: Vec<i64>, dims: usize, name: &str) -> Result<Vec<i64>> {
    match ints.len() {
        n if n == dims => Ok(ints),
        1 => Ok(vec![ints[0]; dims]),
        _ => Err(Diagnostic::runtime(format!(
            "expected {name} to be a single integer value or a list of {dims} values to match the convolution dimensions, \
             but got {name}={ints:?}"
        ))),
    }
}

/// A convolution of a batch.
pub(in crate::dialects) fn convolve(call: Call<'_>) -> Result<Tensor> {
    let (input, weight) = (call.input, call.weight);
    let result = convolved(call)?;
    let strides = layouts::convolution(&input.layout(), &weight.layout(), &result.sizes())?;
    with_strides(result, &strides)
}

/// The derivative of a convolution by its weight: of its result's gradient, its input and the weight, whose elements do not
/// matter; stride, padding, dilation, groups.
pub(in crate::dialects) fn weight_gradient(a: &Args<'_>) -> Result<Outputs> {
    let (grad, weight) = (a.tensor(0)?, a.tensor(2)?);
    let dims = weight.rank().saturating_sub(2);
    let padding = expand(a.ints(4)?, dims, "padding")?;
    let call = Call {
        input: a.tensor(1)?,
        weight,
        bias: None,
        stride: expand(a.ints(3)?, dims, "stride")?,
        padding: (padding.clone(), padding),
        dilation: expand(a.ints(5)?, dims, "dilation")?,
        output_padding: None,
        groups: a.int(6)?,
    };
    if dims == 0 {
        return Err(Diagnostic::runtime("weight should have at least three dimensions"));
    }
    check_numbers(&call)?;
    check_sizes(&call)?;
    check_dtypes(&call)?;
    let (output, geometry) = geometry(&call, dims)?;
    if *grad.sizes() != output[..] || grad.dtype() != weight.dtype() {
        return Err(Diagnostic::runtime(format!(
            "the gradient of a convolution has sizes {output:?} and its dtype, not {:?} of {}",
            grad.sizes().as_slice(),
            grad.dtype().name()
        )));
    }
    let dtype = weight.dtype();
    crate::dispatch_number!(compute_dtype(dtype), "convolution_backward", T => {
        let (x, dy) = (Dense::<T>::new(call.input)?, Dense::<T>::new(grad)?);
        let (x, dy) = (x.open()?, dy.open()?);
        let sums = build_whole::<T>(&weight.sizes(), dtype, |out| weight_sums::<T>(&x, &dy, &geometry, out))?;
        one(sums)
    })
}

fn convolved(mut call: Call<'_>) -> Result<Tensor> {
    let dims = call.weight.rank().saturating_sub(2);
    if dims == 0 {
        return Err(Diagnostic::runtime("weight should have at least three dimensions"));
    }
    call.stride = expand(call.stride, dims, "stride")?;
    call.padding = (expand(call.padding.0, dims, "padding")?, expand(call.padding.1, dims, "padding")?);
    call.dilation = expand(call.dilation, dims, "dilation")?;
    call.output_padding = call.output_padding.map(|p| expand(p, dims, "output_padding")).transpose()?;
    check_numbers(&call)?;
    check_sizes(&call)?;
    check_dtypes(&call)?;
    let (output, geometry) = geometry(&call, dims)?;
    let dtype = call.input.dtype();
    let is_transposed = call.output_padding.is_some();
    let name = if is_transposed { "slow_conv_transpose2d_out_cpu" } else { "slow_conv2d_cpu" };
    if dtype == DType::Bool {
        return Err(not_implemented(name, dtype));
    }
    if is_transposed && dtype == DType::F32 && spreads(&call) {
        return spread(&call, &geometry);
    }
    crate::dispatch_number!(compute_dtype(dtype), name, T => {
        let (x, w) = (Dense::<T>::new(call.input)?, Dense::<T>::new(call.weight)?);
        let bias = call.bias.map(Dense::<T>::new).transpose()?;
        let (x, w, bias) = (x.open()?, w.open()?, bias.as_ref().map(Dense::open).transpose()?);
        if is_transposed {
            let round = stepwise(&call).map(|round| move |x: T| T::from_scalar(Scalar::Float(round(x.to_scalar().to_f64()))));
            build::<T>(&output, dtype, |out| transposed::<T>(&x, &w, bias.as_deref(), &geometry, round.as_ref().map(|f| f as &(dyn Fn(T) -> T + Sync)), out))
        } else {
            build_whole::<T>(&output, dtype, |out| forward::<T>(&x, &w, bias.as_deref(), &geometry, out))
        }
    })
}

/// Whether each pixel of images whose channels lie innermost becomes a window of its own, beside those of other pixels.
fn spreads(call: &Call<'_>) -> bool {
    let layout = call.input.layout();
    let zero = |numbers: &[i64]| numbers.iter().all(|n| *n == 0);
    let fits = call.weight.sizes()[2..] == call.stride[..] && call.dilation.iter().all(|d| *d == 1);
    let edges = [&call.padding.0[..], &call.padding.1[..], call.output_padding.as_deref().unwrap_or(&[])];
    let lies = layout.rank() == 4 && !layout.is_contiguous() && layout.is_channels_last();
    fits && lies && call.groups == 1 && edges.into_iter().all(zero)
}

/// Such a transposed convolution in float32: one product, of pixels and of weights whose output channels lie innermost, and a copy of
/// windows to their places.
fn spread(call: &Call<'_>, g: &Geometry) -> Result<Tensor> {
    let x = Dense::<f32>::new(&call.input.look(|l| view::movedim(l, &[1], &[3]))?)?;
    let w = Dense::<f32>::new(&call.weight.look(|l| view::movedim(l, &[1], &[3]))?)?;
    let bias = call.bias.map(Dense::<f32>::new).transpose()?;
    let (x, w, bias) = (x.open()?, w.open()?, bias.as_ref().map(Dense::open).transpose()?);
    let [_, height, width] = g.output.map(|n| n as i64);
    let [_, kh, kw] = g.kernel.map(|n| n as i64);
    let (batch, outputs) = (g.batch as i64, g.channels_in as i64);
    let columns = g.channels_in * g.kernel.iter().product::<usize>();
    let rows = g.batch * g.output.iter().product::<usize>();
    let windows = build_whole::<f32>(&[batch, height, width, kh, kw, outputs], DType::F32, |out| {
        if let Some(bias) = &bias {
            out.chunks_exact_mut(g.channels_in.max(1)).for_each(|pixel| pixel.copy_from_slice(bias));
        }
        let (x, w) = (Matrix::dense(&x, rows, g.channels_out), Matrix::dense(&w, g.channels_out, columns));
        matmul(x, w, out, columns, if bias.is_some() { Onto::Existing } else { Onto::Nothing })
    })?;
    let placed = windows.look(|l| Ok(view::reorder(l, &[0, 1, 3, 2, 4, 5])))?.contiguous()?;
    placed.reshaped(&[batch, height * kh, width * kw, outputs])?.look(|l| view::movedim(l, &[3], &[1]))
}

/// How a transposed convolution of 16 bits is rounded on its way, where PyTorch runs its own kernel, which keeps the
/// windows and their sums in the dtype. Its library takes bfloat16, unless the result is padded by a stride or more.
fn stepwise(call: &Call<'_>) -> Option<fn(f64) -> f64> {
    let extra = call.output_padding.as_deref()?;
    let is_padded = extra.iter().zip(&call.stride).any(|(p, s)| p >= s);
    match call.input.dtype() {
        DType::F16 => Some(rounding(DType::F16)),
        DType::BF16 if is_padded => Some(rounding(DType::BF16)),
        _ => None,
    }
}

fn check_numbers(call: &Call<'_>) -> Result<()> {
    let fail = |text: String| Err(Diagnostic::runtime(text));
    let negative = |numbers: &[i64]| numbers.iter().any(|x| *x < 0);
    if negative(&call.padding.0) || negative(&call.padding.1) {
        return fail("negative padding is not supported".into());
    }
    if call.output_padding.as_deref().is_some_and(negative) {
        return fail("negative output_padding is not supported".into());
    }
    if call.stride.iter().any(|s| *s <= 0) {
        return fail("non-positive stride is not supported".into());
    }
    if call.dilation.iter().any(|d| *d <= 0) {
        return fail("dilation should be greater than zero".into());
    }
    if call.groups <= 0 {
        return fail("non-positive groups is not supported".into());
    }
    Ok(())
}

/// The error for an input and a weight of different rank; `gap` separates the text and the weight's sizes.
fn other_rank(input: &Tensor, weight: &Tensor, gap: &str) -> Diagnostic {
    Diagnostic::runtime(format!(
        "Expected {}-dimensional input for {}-dimensional weight{gap}{:?}, but got {}-dimensional input of size {:?} instead",
        weight.rank(),
        weight.rank(),
        weight.sizes().as_slice(),
        input.rank(),
        input.sizes().as_slice()
    ))
}

fn check_sizes(call: &Call<'_>) -> Result<()> {
    let (x, w) = (call.input.sizes(), call.weight.sizes());
    let (x, w) = (x.as_slice(), w.as_slice());
    let groups = call.groups;
    let fail = |text: String| Err(Diagnostic::runtime(text));
    if x.len() != w.len() {
        return Err(other_rank(call.input, call.weight, " "));
    }
    let is_transposed = call.output_padding.is_some();
    if w[0] < groups {
        return fail(format!(
            "Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {w:?} instead"
        ));
    }
    if w[0] % groups != 0 {
        return fail(format!(
            "Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size [{w:?}] \
             instead"
        ));
    }
    let wanted = if is_transposed { w[0] } else { w[1].saturating_mul(groups) };
    let given =
        if is_transposed { "Given transposed=1".to_string() } else { format!("Given groups={groups}") };
    if x[1] != wanted {
        return fail(format!(
            "{given}, weight of size {w:?}, expected input{x:?} to have {wanted} channels, but got {} channels instead",
            x[1]
        ));
    }
    let outputs = if is_transposed { w[1].saturating_mul(groups) } else { w[0] };
    if let Some(bias) = call.bias.filter(|b| b.sizes().as_slice() != [outputs]) {
        let given = if is_transposed { "Given transposed=1, weight" } else { "Given weight" };
        return fail(format!(
            "{given} of size {w:?}, expected bias to be 1-dimensional with {outputs} elements, but got bias of size {:?} instead",
            bias.sizes().as_slice()
        ));
    }
    Ok(())
}

fn check_dtypes(call: &Call<'_>) -> Result<()> {
    let (x, w) = (call.input.dtype(), call.weight.dtype());
    if let Some(bias) = call.bias.filter(|b| b.dtype() != x) {
        return Err(Diagnostic::runtime(format!(
            "Input type ({}) and bias type ({}) should be the same",
            x.cpp_name(),
            bias.dtype().cpp_name()
        )));
    }
    if x != w {
        return Err(Diagnostic::runtime(format!(
            "expected scalar type {} but found {}",
            x.type_name(),
            w.type_name()
        )));
    }
    Ok(())
}

fn join(sizes: &[i64]) -> String {
    sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(" x ")
}

/// The result's sizes and the numbers for the kernel.
fn geometry(call: &Call<'_>, dims: usize) -> Result<(Vec<i64>, Geometry)> {
    if dims > 3 {
        return Err(Diagnostic::unsupported(format!("convolutions of {dims} spatial dimensions")));
    }
    let (x, w) = (call.input.sizes(), call.weight.sizes());
    let reach = |d: usize| call.dilation[d].saturating_mul(w[d + 2] - 1).saturating_add(1);
    let padded = |d: usize| x[d + 2].saturating_add(call.padding.0[d]).saturating_add(call.padding.1[d]);
    let mut output = Vec::with_capacity(dims);
    for d in 0..dims {
        output.push(match &call.output_padding {
            None => (padded(d).saturating_sub(reach(d))).div_euclid(call.stride[d]) + 1,
            Some(extra) => (x[d + 2] - 1)
                .saturating_mul(call.stride[d])
                .saturating_sub(call.padding.0[d].saturating_mul(2))
                .saturating_add(reach(d))
                .saturating_add(extra[d]),
        });
    }
    if call.output_padding.is_none() {
        if (0..dims).any(|d| padded(d) < reach(d)) {
            return Err(Diagnostic::runtime(format!(
                "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual \
                 input size",
                join(&(0..dims).map(padded).collect::<Vec<_>>()),
                join(&(0..dims).map(reach).collect::<Vec<_>>())
            )));
        }
    } else {
        check_transposed(call, &x[2..], &output)?;
    }
    let three = |values: &dyn Fn(usize) -> i64, missing: usize| -> [usize; 3] {
        std::array::from_fn(|d| match (d + dims).checked_sub(3) {
            Some(d) => values(d).max(0) as usize,
            None => missing,
        })
    };
    let image = three(&|d| x[d + 2], 1);
    let result = three(&|d| output[d], 1);
    let is_transposed = call.output_padding.is_some();
    let outputs = if is_transposed { w[1].saturating_mul(call.groups) } else { w[0] };
    let (channels_in, channels_out) = if is_transposed { (outputs, x[1]) } else { (x[1], outputs) };
    let mut sizes = vec![x[0], outputs];
    sizes.extend(&output);
    // Proves that sizes can be multiplied.
    crate::tensor::Layout::contiguous(&sizes)?;
    let geometry = Geometry {
        batch: x[0] as usize,
        groups: call.groups as usize,
        channels_in: channels_in as usize,
        channels_out: channels_out as usize,
        input: if is_transposed { result } else { image },
        output: if is_transposed { image } else { result },
        kernel: three(&|d| w[d + 2], 1),
        stride: three(&|d| call.stride[d], 1),
        dilation: three(&|d| call.dilation[d], 1),
        before: three(&|d| call.padding.0[d], 0),
    };
    Ok((sizes, geometry))
}

fn check_transposed(call: &Call<'_>, input: &[i64], output: &[i64]) -> Result<()> {
    let extra = call.output_padding.as_deref().unwrap_or(&[]);
    let too_much = (0..input.len()).any(|d| extra[d] >= call.stride[d] && extra[d] >= call.dilation[d]);
    if too_much {
        let names: &[&str] =
            if input.len() == 3 { &["depth", "height", "width"] } else { &["height", "width"] };
        let wide = |values: &[i64], missing: i64| -> Vec<i64> {
            std::iter::repeat_n(missing, names.len() - values.len()).chain(values.iter().copied()).collect()
        };
        let show = |what: &str, values: Vec<i64>| {
            names.iter().zip(values).map(|(n, v)| format!("{what}_{n}: {v}")).collect::<Vec<_>>().join(" ")
        };
        return Err(Diagnostic::runtime(format!(
            "output padding must be smaller than either stride or dilation, but got {} {} {}",
            show("output_padding", wide(extra, 0)),
            show("stride", wide(&call.stride, 1)),
            show("dilation", wide(&call.dilation, 1))
        )));
    }
    if output.iter().any(|s| *s < 0) {
        return Err(Diagnostic::runtime(format!(
            "Given input size per channel: ({}). Calculated output size per channel: ({}). Output size is too small",
            join(input),
            join(output)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every window element at its place, channels that stand alone: strides, dilation, padding, more outputs than inputs.
    #[test]
    fn channels_that_stand_alone_agree_with_the_definition() {
        for (stride, pad, dilation, [h, w], kernel) in [
            (1, 1, 1, [9, 70], [3, 3]),
            (2, 1, 1, [8, 7], [3, 3]),
            (2, 3, 2, [11, 13], [2, 5]),
            (3, 0, 1, [10, 10], [1, 2]),
            (1, 2, 1, [5, 5], [5, 5]),
        ] {
            let x: Vec<f64> = (0..2 * 3 * h * w).map(|i| (i * 7 % 11) as f64).collect();
            let weights: Vec<f64> =
                (0..6 * kernel[0] * kernel[1]).map(|i| (i * 5 % 7) as f64 - 3.0).collect();
            let (sh, sw, kh, kw) = (h as i64, w as i64, kernel[0] as i64, kernel[1] as i64);
            let input = Tensor::from_vec(&x, &[2, 3, sh, sw]).expect("valid");
            let weight = Tensor::from_vec(&weights, &[6, 1, kh, kw]).expect("valid");
            let bias = Tensor::from_vec(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0f64], &[6]).expect("valid");
            let call = Call {
                input: &input,
                weight: &weight,
                bias: Some(&bias),
                stride: vec![stride; 2],
                padding: (vec![pad; 2], vec![pad; 2]),
                dilation: vec![dilation; 2],
                output_padding: None,
                groups: 3,
            };
            let result = convolve(call).expect("valid");
            let (oh, ow) = (result.sizes()[2], result.sizes()[3]);
            for (at, got) in result.to_vec::<f64>().expect("f64").iter().enumerate() {
                let at = at as i64;
                let (n, o, y, z) = (at / (6 * oh * ow), at / (oh * ow) % 6, at / ow % oh, at % ow);
                let mut sum = (o + 1) as f64;
                for (ky, kx) in (0..kh).flat_map(|i| (0..kw).map(move |j| (i, j))) {
                    let (iy, ix) = (y * stride + ky * dilation - pad, z * stride + kx * dilation - pad);
                    if (0..sh).contains(&iy) && (0..sw).contains(&ix) {
                        let pixel = x[(((n * 3 + o / 2) * sh + iy) * sw + ix) as usize];
                        sum += pixel * weights[((o * kh + ky) * kw + kx) as usize];
                    }
                }
                assert_eq!(*got, sum, "at {at} with stride {stride}, kernel {kernel:?}");
            }
        }
    }

    /// Compares with sums taken straight from the definition.
    #[test]
    fn agrees_with_the_definition() {
        let x: Vec<f64> = (0..2 * 4 * 5 * 6).map(|i| (i * 7 % 11) as f64).collect();
        let w: Vec<f64> = (0..6 * 2 * 3 * 2).map(|i| (i * 5 % 7) as f64 - 3.0).collect();
        let (input, weight) = (
            Tensor::from_vec(&x, &[2, 4, 5, 6]).expect("valid"),
            Tensor::from_vec(&w, &[6, 2, 3, 2]).expect("valid"),
        );
        let call = Call {
            input: &input,
            weight: &weight,
            bias: None,
            stride: vec![2, 1],
            padding: (vec![1, 1], vec![1, 1]),
            dilation: vec![1, 2],
            output_padding: None,
            groups: 2,
        };
        let result = convolve(call).expect("valid");
        assert_eq!(result.sizes().as_slice(), [2, 6, 3, 6]);
        let got = result.to_vec::<f64>().expect("f64");
        for (at, value) in got.iter().enumerate() {
            let (n, o, y, z) = (at / 108, at / 18 % 6, at / 6 % 3, at % 6);
            let mut sum = 0.0;
            for c in 0..2 {
                for (ky, kx) in (0..3).flat_map(|i| (0..2).map(move |j| (i, j))) {
                    let (iy, ix) = ((y * 2 + ky) as i64 - 1, (z + kx * 2) as i64 - 1);
                    if (0..5).contains(&iy) && (0..6).contains(&ix) {
                        let channel = o / 3 * 2 + c;
                        let pixel = x[((n * 4 + channel) * 5 + iy as usize) * 6 + ix as usize];
                        sum += pixel * w[((o * 2 + c) * 3 + ky) * 2 + kx];
                    }
                }
            }
            assert_eq!(*value, sum, "at {at}");
        }
    }
}
