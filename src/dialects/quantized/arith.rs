//! Sums and products of quantized tensors, with each other and with numbers, and their concatenation.

use super::ints::{
    Params, Quant, Rounder, dense, dispatch_quant, from_memory, in_memory, map, not_supported,
};
use super::stage::Epilogue;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Kernel, OpDef, Outputs, Quantized, one, opaque};
use crate::kernels::matrix::product as matrices;
use crate::resources::{Collect, Scratch, memory};
use crate::tensor::{Tensor, broadcast_sizes, view};

const fn own(schema: &'static str, eval: Kernel) -> OpDef {
    opaque(schema, eval).quantized(Quantized::Own)
}

macro_rules! pair {
    ($name:literal, $rule:expr, $epilogue:expr) => {
        own(concat!($name, "(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc"), |a| {
            let out = Params { scale: a.float(2)?, zero_point: a.int(3)? };
            one(pair(a.tensor(0)?, a.tensor(1)?, out, $rule, $epilogue)?)
        })
    };
}

macro_rules! pair_out {
    ($name:literal, $returns:literal, $rule:expr, $epilogue:expr) => {
        own(concat!($name, "(Tensor qa, Tensor qb, Tensor(a!) out) -> ", $returns), |a| {
            let target = a.tensor(2)?;
            let result = pair(a.tensor(0)?, a.tensor(1)?, Params::of(target)?, $rule, $epilogue)?;
            write(target, &result)
        })
    };
}

macro_rules! product {
    ($name:literal, $epilogue:expr) => {
        own(concat!($name, "(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc"), |a| {
            let out = Params { scale: a.float(2)?, zero_point: a.int(3)? };
            one(product(a.tensor(0)?, a.tensor(1)?, out, $epilogue)?)
        })
    };
}

macro_rules! product_out {
    ($name:literal, $returns:literal, $epilogue:expr) => {
        own(concat!($name, "(Tensor qa, Tensor qb, Tensor(a!) out) -> ", $returns), |a| {
            let target = a.tensor(2)?;
            write(target, &product(a.tensor(0)?, a.tensor(1)?, Params::of(target)?, $epilogue)?)
        })
    };
}

macro_rules! number {
    ($name:literal, $rule:expr, $epilogue:expr) => {
        own(concat!($name, "(Tensor qa, Scalar b) -> Tensor qc"), |a| {
            one($rule(a.tensor(0)?, a.scalar(1)?.to_f64(), $epilogue)?)
        })
    };
}

macro_rules! number_tensor {
    ($name:literal, $rule:expr, $epilogue:expr) => {
        own(concat!($name, "(Tensor qa, Tensor b) -> Tensor qc"), |a| {
            one($rule(a.tensor(0)?, a.tensor(1)?.item()?.to_f64(), $epilogue)?)
        })
    };
}

macro_rules! number_first {
    ($name:literal, $rule:expr, $epilogue:expr) => {
        own(concat!($name, "(Scalar b, Tensor qa) -> Tensor qc"), |a| {
            one($rule(a.tensor(1)?, a.scalar(0)?.to_f64(), $epilogue)?)
        })
    };
}

macro_rules! number_out {
    ($name:literal, $rule:expr, $epilogue:expr) => {
        own(concat!($name, "(Tensor qa, Scalar b, Tensor(a!) out) -> Tensor(a!) out"), |a| {
            let result = $rule(a.tensor(0)?, a.scalar(1)?.to_f64(), $epilogue)?;
            write(a.tensor(2)?, &result)
        })
    };
}

macro_rules! number_tensor_out {
    ($name:literal, $rule:expr, $epilogue:expr) => {
        own(concat!($name, "(Tensor qa, Tensor b, Tensor(a!) out) -> Tensor(a!) out"), |a| {
            let result = $rule(a.tensor(0)?, a.tensor(1)?.item()?.to_f64(), $epilogue)?;
            write(a.tensor(2)?, &result)
        })
    };
}

use Epilogue::{None as Plain, Relu};

fn sum(a: f32, b: f32) -> f32 {
    a + b
}

/// The rows.
#[rustfmt::skip] // one line an op
pub static OPS: &[OpDef] = &[
    pair!("quantized::add", sum, Plain).doc("sum of two quantized tensors, rounded to the output's scale"),
    pair!("quantized::add_relu", sum, Relu),
    product!("quantized::mul", Plain),
    product!("quantized::mul_relu", Relu),
    pair!("_quantized::add", sum, Plain),
    pair_out!("quantized::add.out", "Tensor(a!) out", sum, Plain),
    pair_out!("quantized::add_relu.out", "Tensor(a!) out", sum, Relu),
    product_out!("quantized::mul.out", "Tensor(a!) out", Plain),
    product_out!("quantized::mul_relu.out", "Tensor(a!) out", Relu),
    pair_out!("quantized::add_out", "Tensor(a!) out", sum, Plain),
    pair_out!("quantized::add_relu_out", "Tensor(a!) out", sum, Relu),
    product_out!("quantized::mul_out", "Tensor(a!) out", Plain),
    product_out!("quantized::mul_relu_out", "Tensor(a!) out", Relu),
    number!("quantized::add.Scalar", add_number, Plain),
    number!("quantized::add_relu.Scalar", add_number, Relu),
    number!("quantized::mul.Scalar", mul_number, Plain),
    number!("quantized::mul_relu.Scalar", mul_number, Relu),
    number_first!("quantized::add.Scalar2", add_number, Plain),
    number_first!("quantized::add_relu.Scalar2", add_number, Relu),
    number_first!("quantized::mul.Scalar2", mul_number, Plain),
    number_first!("quantized::mul_relu.Scalar2", mul_number, Relu),
    number!("quantized::add_scalar", add_number, Plain),
    number!("quantized::add_scalar_relu", add_number, Relu),
    number!("quantized::mul_scalar", mul_number, Plain),
    number!("quantized::mul_scalar_relu", mul_number, Relu),
    number_tensor!("quantized::add_scalar.Tensor", add_number, Plain),
    number_tensor!("quantized::add_scalar_relu.Tensor", add_number, Relu),
    number_tensor!("quantized::mul_scalar.Tensor", mul_number, Plain),
    number_tensor!("quantized::mul_scalar_relu.Tensor", mul_number, Relu),
    number_out!("quantized::add.Scalar_out", add_number, Plain),
    number_out!("quantized::add_relu.Scalar_out", add_number, Relu),
    number_out!("quantized::mul.Scalar_out", mul_number, Plain),
    number_out!("quantized::mul_relu.Scalar_out", mul_number, Relu),
    number_out!("quantized::add_scalar_out", add_number, Plain),
    number_out!("quantized::add_scalar_relu_out", add_number, Relu),
    number_out!("quantized::mul_scalar_out", mul_number, Plain),
    number_out!("quantized::mul_scalar_relu_out", mul_number, Relu),
    number_tensor_out!("quantized::add_scalar_out.Tensor", add_number, Plain),
    number_tensor_out!("quantized::add_scalar_relu_out.Tensor", add_number, Relu),
    number_tensor_out!("quantized::mul_scalar_out.Tensor", mul_number, Plain),
    number_tensor_out!("quantized::mul_scalar_relu_out.Tensor", mul_number, Relu),
    own("quantized::matmul(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc", matmul),
    own("quantized::cat(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor", |a| cat_row(a, Plain)),
    own("quantized::cat_relu(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor", |a| cat_row(a, Relu)),
    own("quantized::cat_out(Tensor[] qx, int dim, Tensor(a!) out) -> Tensor(a!)", |a| cat_out(a, Plain)),
    own("quantized::cat_relu_out(Tensor[] qx, int dim, Tensor(a!) out) -> Tensor(a!)", |a| cat_out(a, Relu)),
];

/// Writes a result to an `out` tensor, whose scale it has.
fn write(target: &Tensor, result: &Tensor) -> Result<Outputs> {
    if target.dtype() != result.dtype() {
        return Err(Diagnostic::runtime("out must have the operands' dtype"));
    }
    target.give_sizes(&result.sizes())?;
    target.copy_from(result)?;
    if let Some(quantizer) = result.quantizer() {
        target.set_quantizer(quantizer)?;
    }
    one(target.clone())
}

/// Elements of 8 bits that PyTorch handles at once; what is left over is computed one by one, without fused steps.
pub const LANES: usize = 64;

/// A rule over the real numbers of two tensors.
pub fn pair(
    a: &Tensor,
    b: &Tensor,
    out: Params,
    rule: impl Fn(f32, f32) -> f32 + Copy,
    epilogue: Epilogue,
) -> Result<Tensor> {
    if a.dtype() != b.dtype() {
        return Err(Diagnostic::runtime("Add operands should have same data type."));
    }
    let (pa, pb) = (Params::of(a)?, Params::of(b)?);
    let sizes = broadcast_sizes(&a.sizes(), &b.sizes())?;
    let (a, b) = lying_alike(a, b, &sizes)?;
    let rounder = out.rounder(a.dtype());
    let dtype = a.dtype();
    dispatch_quant!(dtype, T => {
        let results = in_memory::<T, _>(&a, |xs| in_memory::<T, _>(&b, |ys| {
            if size_of::<T>() == 1 {
                bytes(xs, ys, pa, pb, rounder, rule, epilogue)
            } else {
                let each = xs.iter().zip(ys);
                each.map(|(x, y)| finish(rule(pa.real(x.wide()), pb.real(y.wide())), rounder, epilogue)).scratch()
            }
        }))???;
        from_memory(&a, &results, dtype, out.quantizer())
    })
}

/// The product of two quantized tensors: that of the integers, exactly, times one float of all three scales, as PyTorch has it.
fn product(a: &Tensor, b: &Tensor, out: Params, epilogue: Epilogue) -> Result<Tensor> {
    if a.dtype() != b.dtype() {
        return Err(Diagnostic::runtime("Mul operands should have same data type."));
    }
    let (pa, pb) = (Params::of(a)?, Params::of(b)?);
    let sizes = broadcast_sizes(&a.sizes(), &b.sizes())?;
    let (a, b) = lying_alike(a, b, &sizes)?;
    let factor = pa.scale as f32 * pb.scale as f32 * (1.0 / out.scale as f32);
    let dtype = a.dtype();
    let (low, high) = dtype.quantized_range().unwrap_or((0, 0));
    let low = if epilogue == Epilogue::Relu { low.max(out.zero_point) } else { low };
    dispatch_quant!(dtype, T => {
        let results = in_memory::<T, _>(&a, |xs| in_memory::<T, _>(&b, |ys| {
            let each = xs.iter().zip(ys).map(|(x, y)| {
                let both = (i64::from(x.wide()) - pa.zero_point).wrapping_mul(i64::from(y.wide()) - pb.zero_point);
                let rounded = (both as f32 * factor).round_ties_even() as i64;
                T::narrow(rounded.saturating_add(out.zero_point).min(high).max(low))
            });
            each.scratch()
        }))???;
        from_memory(&a, &results, dtype, out.quantizer())
    })
}

fn finish<T: Quant>(real: f32, rounder: Rounder, epilogue: Epilogue) -> T {
    T::narrow(rounder.integer(if epilogue == Epilogue::Relu { real.max(0.0) } else { real }))
}

/// Of bytes the real numbers are looked up.
fn bytes<T: Quant>(
    xs: &[T],
    ys: &[T],
    pa: Params,
    pb: Params,
    rounder: Rounder,
    rule: impl Fn(f32, f32) -> f32,
    epilogue: Epilogue,
) -> Result<Scratch<T>> {
    let table = |params: Params, fused: bool| -> Vec<f32> {
        let real = |byte: u8| {
            let integer = T::of_byte(byte).wide();
            if fused { params.real_fused(integer) } else { params.real(integer) }
        };
        (0..=255).map(real).collect()
    };
    let whole = xs.len() - xs.len() % LANES;
    let mut results = memory::reserved(xs.len())?;
    for (range, fused) in [(0..whole, true), (whole..xs.len(), false)] {
        let (ta, tb) = (table(pa, fused), table(pb, fused));
        let each = xs[range.clone()].iter().zip(&ys[range]);
        results.extend(each.map(|(x, y)| {
            let (x, y) = (x.wide() as u8, y.wide() as u8);
            finish::<T>(rule(ta[usize::from(x)], tb[usize::from(y)]), rounder, epilogue)
        }))?;
    }
    Ok(results)
}

/// Both operands broadcast, dense, and lying in memory in one order: the first one's.
fn lying_alike(a: &Tensor, b: &Tensor, sizes: &[i64]) -> Result<(Tensor, Tensor)> {
    let wide = |t: &Tensor| if t.sizes().as_slice() == sizes { Ok(t.clone()) } else { t.broadcast_to(sizes) };
    let (a, b) = (dense(&wide(a)?)?, wide(b)?);
    let wanted = a.layout();
    let own = b.layout();
    if own.strides == wanted.strides {
        return Ok((a, b));
    }
    let copy =
        crate::kernels::create::fill::strided(&wanted.sizes, &wanted.strides, b.dtype().integer_repr())?;
    copy.copy_from(&b.integers())?;
    let quantizer = super::ints::quantizer(&b)?;
    Ok((a, Tensor::quantized(&copy, b.dtype(), quantizer)?))
}

/// A number added moves the zero point where that fits the range; the scale grows where it does not.
fn add_number(tensor: &Tensor, number: f64, epilogue: Epilogue) -> Result<Tensor> {
    let own = Params::of(tensor)?;
    let (low, high) = tensor.dtype().quantized_range().ok_or_else(|| not_supported(tensor.dtype()))?;
    let (scale, zero) = (own.scale, own.zero_point);
    let moved = (number / scale).round_ties_even() as i64;
    let relu = |out: Params| if epilogue == Epilogue::Relu { out.zero_point } else { i64::MIN };
    if low > zero.saturating_sub(moved) {
        let wider = (high.saturating_sub(zero.saturating_sub(moved))) as f64 / (high - low) as f64 * scale;
        let out = Params { scale: wider, zero_point: low };
        requantized(tensor, out, zero.saturating_sub(moved), relu(out))
    } else if high < zero.saturating_sub(moved) {
        let wider = (zero.saturating_sub(moved).saturating_sub(low)) as f64 / (high - low) as f64 * scale;
        let out = Params { scale: wider, zero_point: high };
        requantized(tensor, out, zero.saturating_sub(moved), relu(out))
    } else {
        let out = Params { scale, zero_point: zero.saturating_sub(moved) };
        map(tensor, out, |x| i64::from(x).max(relu(out)))
    }
}

/// The integers rounded to another scale, seen with another zero point; at least `least`.
fn requantized(tensor: &Tensor, out: Params, zero_point: i64, least: i64) -> Result<Tensor> {
    let own = Params { scale: Params::of(tensor)?.scale, zero_point };
    let rounder = out.rounder(tensor.dtype());
    map(tensor, out, move |x| rounder.integer(own.real(x)).max(least))
}

/// A number multiplied changes the scale; a negative one negates the integers, 0 gives 0.
fn mul_number(tensor: &Tensor, number: f64, epilogue: Epilogue) -> Result<Tensor> {
    let own = Params::of(tensor)?;
    let (low, high) = tensor.dtype().quantized_range().ok_or_else(|| not_supported(tensor.dtype()))?;
    let relu = epilogue == Epilogue::Relu;
    if number > 0.0 {
        let out = Params { scale: number * own.scale, zero_point: own.zero_point };
        return map(tensor, out, |x| if relu { i64::from(x).max(own.zero_point) } else { x.into() });
    }
    if number == 0.0 {
        let out = Params { scale: 0.1, zero_point: 0 };
        return map(tensor, out, |_| 0);
    }
    let out = Params { scale: number.abs() * own.scale, zero_point: high - (own.zero_point - low) };
    map(tensor, out, |x| {
        let turned = high + low - i64::from(x);
        if relu { turned.max(out.zero_point) } else { turned }
    })
}

/// A product of matrices, through real numbers.
fn matmul(a: &Args<'_>) -> Result<Outputs> {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    let out = Params { scale: a.float(2)?, zero_point: a.int(3)? };
    if x.rank() < 2 || y.rank() < 2 {
        return Err(Diagnostic::runtime(
            "Quantized Matmul currently only suports operands which are at least 2-dimensional.",
        ));
    }
    let (rows, columns) = (x.rank() - 2, y.rank() - 2);
    let fits = x.sizes()[rows + 1] == y.sizes()[columns] && x.sizes()[..rows] == y.sizes()[..columns];
    if !fits || x.dtype() != y.dtype() {
        return Err(Diagnostic::runtime("Quantized Matmul expects operands of fitting sizes and one dtype."));
    }
    let (x_reals, y_reals) = (super::convert::dequantize(x)?, super::convert::dequantize(y)?);
    let product = matrices::product("bmm", &x_reals, &y_reals, None)?;
    one(super::convert::quantize(&product, out, x.dtype())?)
}

fn cat_row(a: &Args<'_>, epilogue: Epilogue) -> Result<Outputs> {
    let tensors = a.tensors(0)?;
    let Some(first) = tensors.first() else {
        return Err(Diagnostic::runtime("Only per-tensor quantization is supported in 'cat'!"));
    };
    let own = Params::of(first)?;
    let out = Params {
        scale: a.opt_float(2)?.unwrap_or(own.scale),
        zero_point: a.opt_int(3)?.unwrap_or(own.zero_point),
    };
    one(cat(&tensors, a.int(1)?, out, epilogue)?)
}

fn cat_out(a: &Args<'_>, epilogue: Epilogue) -> Result<Outputs> {
    let target = a.tensor(2)?;
    let result = cat(&a.tensors(0)?, a.int(1)?, Params::of(target)?, epilogue)?;
    write(target, &result)
}

/// `aten::cat` of quantized tensors: in the first one's scale.
pub fn aten_cat(a: &Args<'_>) -> Result<Outputs> {
    let tensors = a.tensors(0)?;
    let out = tensors.first().map(Params::of).transpose()?.unwrap_or(Params { scale: 1.0, zero_point: 0 });
    one(cat(&tensors, a.int(1)?, out, Epilogue::None)?)
}

/// `aten::stack` of quantized tensors: in the first one's scale.
pub fn aten_stack(a: &Args<'_>) -> Result<Outputs> {
    let (tensors, dim) = (a.tensors(0)?, a.int(1)?);
    let out = tensors.first().map(Params::of).transpose()?.unwrap_or(Params { scale: 1.0, zero_point: 0 });
    let raised: Vec<Tensor> =
        tensors.iter().map(|t| t.look(|l| view::unsqueeze(l, dim))).collect::<Result<_>>()?;
    one(cat(&raised, dim, out, Epilogue::None)?)
}

/// Tensors beside each other along a dimension, those of other scales rounded to `out`.
fn cat(tensors: &[Tensor], dim: i64, out: Params, epilogue: Epilogue) -> Result<Tensor> {
    let Some(first) = tensors.first() else {
        return Err(Diagnostic::runtime("torch.cat(): expected a non-empty list of Tensors"));
    };
    let d = crate::tensor::wrap_dim(dim, first.rank())?;
    let mut sizes = first.sizes();
    let mut total = 0i64;
    let mut parts = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let own = tensor.sizes();
        let fits = own.len() == sizes.len() && (0..own.len()).all(|i| i == d || own[i] == sizes[i]);
        if !fits || tensor.dtype() != first.dtype() {
            return Err(Diagnostic::runtime(
                "All dtypes and sizes, except in the dimension of concatenation, must be the same.",
            ));
        }
        total = total.saturating_add(own[d]);
        parts.push(rescaled(tensor, out, epilogue)?);
    }
    sizes[d] = total;
    // Channels stay last where all have them so.
    let last = |t: &Tensor| {
        let l = t.layout();
        view::in_format(&l, 2).is_ok_and(|wanted| wanted.strides == l.strides) && !l.is_contiguous()
    };
    let plain = Tensor::zeros(first.dtype().integer_repr(), &sizes)?;
    let integers = if first.rank() == 4 && tensors.iter().all(last) {
        plain.look(|l| view::in_format(l, 2))?
    } else {
        plain
    };
    let mut start = 0;
    for part in &parts {
        let length = part.sizes()[d];
        integers.look(|l| view::narrow(l, d as i64, start, length))?.copy_from(&part.integers())?;
        start += length;
    }
    Tensor::quantized(&integers, first.dtype(), out.quantizer())
}

fn rescaled(tensor: &Tensor, out: Params, epilogue: Epilogue) -> Result<Tensor> {
    let own = Params::of(tensor)?;
    if own == out && epilogue == Epilogue::None {
        return Ok(tensor.clone());
    }
    let rounder = out.rounder(tensor.dtype());
    map(tensor, out, move |x| {
        let real = own.real(x);
        rounder.integer(if epilogue == Epilogue::Relu { real.max(0.0) } else { real })
    })
}
