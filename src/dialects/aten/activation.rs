//! Activation functions of neural networks.

use super::choose::{bounds, check_clamp, saturated};
use crate::diag::{Diagnostic, Result};
use crate::dialects::scalar::{Program, Sv};
use crate::dialects::shapes::joins;
use crate::dialects::{
    Args, Effects, Fact, LayerPart, NumberAs, OpDef, Order, Outputs, Promote, Tolerance, composite,
    elementwise, one, opaque,
};
use crate::ir::text::number::general;
use crate::kernels::float::Activation;
use crate::tensor::{DType, Scalar};
use crate::value::Value;
use smallvec::smallvec;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

/// The rows.
pub static OPS: &[OpDef] = &[
    elementwise("aten::relu(Tensor self) -> Tensor", Promote::Common).part(LayerPart::Activation(|_| Some(Activation::Relu))).rare("u").quantized_kernel(crate::dialects::quantized::activation::relu)
        .scalar(relu)
        .accepts("if", "Boolean inputs not supported for relu|clamp is not supported for complex types")
        .grad("self: torch.threshold_backward(grad, result, 0)")
        .facts(&[Fact::Idempotent])
        .inplace()
        .out_exact("out"),
    elementwise("aten::relu6(Tensor self) -> Tensor", Promote::Common).part(LayerPart::Activation(|_| Some(Activation::Clamp(0.0, 6.0)))).rare("u").quantized_kernel(crate::dialects::quantized::activation::relu6)
        .scalar(relu6)
        .ordered(Order::First)
        .accepts("if", "Bool inputs not supported for hardtanh|clamp is not supported for complex types")
        .grad("self: with_zero(torch.where((self > 0) & (self < 6), grad, 0), self)")
        .facts(&[Fact::Idempotent])
        .inplace(),
    elementwise("aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", Promote::First).part(LayerPart::Activation(bounds)).rare("u").quantized_kernel(crate::dialects::quantized::activation::clamp)
        .scalar(hardtanh)
        .check(check_bounds)
        .numbers(&[("min_val", NumberAs::Wide), ("max_val", NumberAs::Wide)])
        .ordered(Order::First)
        .accepts("if", "Bool inputs not supported for hardtanh|clamp is not supported for complex types")
        .grad("self: with_zero(torch.where((self > min_val) & (self < max_val), grad, 0), self)")
        .facts(&[Fact::Idempotent])
        .inplace()
        .out_found("out"),
    elementwise(
        "aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
        Promote::First,
    )
        .scalar(elu)
        .numbers(&[("alpha", NumberAs::Compute), ("scale", NumberAs::Compute), ("input_scale", NumberAs::Compute)])
        .accepts("f", "elu_cpu")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out_found("out"),
    elementwise("aten::selu(Tensor self) -> Tensor", Promote::First)
        .scalar(selu)
        .accepts("f", "elu_cpu")
        .tolerance(Tolerance::Rounding)
        .inplace(),
    elementwise("aten::celu(Tensor self, Scalar alpha=1.) -> Tensor", Promote::First)
        .scalar(celu)
        .numbers(&[("alpha", NumberAs::Compute)])
        .accepts("f", "elu_cpu")
        .check(check_celu)
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out_exact("out"),
    elementwise("aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor", Promote::First).part(LayerPart::Activation(gelu_kind))
        .quantized(crate::dialects::Quantized::RealsBack)
        .scalar(gelu)
        .accepts("f", "GeluKernelImpl")
        .check(check_gelu)
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out_found("out"),
    elementwise("aten::silu(Tensor self) -> Tensor", Promote::First).part(LayerPart::Activation(|_| Some(Activation::Silu)))
        .scalar(silu)
        .accepts("fc", "silu_cpu")
        .grad("self: grad * (torch.sigmoid(self) * (1 + self * (1 - torch.sigmoid(self)))).conj()")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out_found("out"),
    elementwise("aten::mish(Tensor self) -> Tensor", Promote::First)
        .scalar(mish)
        .accepts("f", "mish_cpu")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out_found("out"),
    elementwise("aten::hardsigmoid(Tensor self) -> Tensor", Promote::First).part(LayerPart::Activation(|_| Some(Activation::HardSigmoid))).quantized_kernel(crate::dialects::quantized::activation::hardsigmoid)
        .scalar(hardsigmoid)
        .facts(&[Fact::Costly])
        .accepts("f", "hardsigmoid_cpu")
        .grad("self: torch.where((self > -3) & (self < 3), grad / 6, 0)")
        .inplace()
        .out_found("out"),
    elementwise("aten::hardswish(Tensor self) -> Tensor", Promote::First).part(LayerPart::Activation(|_| Some(Activation::HardSwish)))
        .scalar(hardswish)
        .facts(&[Fact::Costly])
        .accepts("f", "hardswish_cpu")
        .grad("self: torch.where(self <= -3, 0, torch.where(self >= 3, grad, grad * (self / 3 + 0.5)))")
        .inplace()
        .out_found("out"),
    elementwise("aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", Promote::First)
        .scalar(hardshrink)
        .numbers(&[("lambd", NumberAs::Element)])
        .accepts("f", "hardshrink_cpu")
        .facts(&[Fact::Costly])
        .grad("self: with_zero(torch.where((self < -lambd) | (self > lambd), grad, 0), self)")
        .out_found("out"),
    elementwise("aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", Promote::First)
        .scalar(softshrink)
        .accepts("f", "softshrink_check")
        .check(check_softshrink)
        .grad("self: with_zero(torch.where((self < -lambd) | (self > lambd), grad, 0), self)")
        .out_found("out"),
    elementwise("aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", Promote::First).part(LayerPart::Activation(slope)).quantized_kernel(crate::dialects::quantized::activation::leaky_relu)
        .scalar(|p, x| leaky(p, x[0], x[1]))
        .numbers(&[("negative_slope", NumberAs::Compute)])
        .accepts("f", "leaky_relu_cpu")
        .facts(&[Fact::Costly])
        .grad("self: with_zero(torch.where(self > 0, grad, grad * negative_slope), self)")
        .inplace()
        .out_found("out"),
    elementwise("aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", Promote::First).quantized_kernel(crate::dialects::quantized::activation::threshold)
        .scalar(threshold)
        .numbers(&[("threshold", NumberAs::Compute), ("value", NumberAs::Element)])
        .accepts("if", "threshold_cpu")
        .facts(&[Fact::Costly])
        .grad("self: torch.threshold_backward(grad, self, threshold)")
        .inplace()
        .out("out"),
    elementwise("aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor", Promote::Common)
        .scalar(threshold_backward)
        .accepts("if", "threshold_cpu")
        .grad("grad_output: torch.threshold_backward(grad, self, threshold)\nself: torch.zeros_like(self)")
        .out_exact("grad_input"),
    elementwise("aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor", Promote::First)
        .part(LayerPart::Activation(one_slope))
        .scalar(|p, x| leaky(p, x[0], x[1]))
        .accepts("f", "prelu_cpu")
        .check(check_prelu_kernel)
        .facts(&[Fact::Costly])
        .grad("self: with_zero(torch.where(self > 0, grad, grad * weight), self)\nweight: torch.where(self > 0, 0, grad * self)"),
    opaque(
        "aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor",
        crate::dialects::dropout::rrelu,
    )
        .infer(joins::same_sizes)
        .effects(Effects::RANDOM)
        .inplace(),
    elementwise("aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", Promote::First)
        .scalar(softplus)
        .numbers(&[("beta", NumberAs::Compute), ("threshold", NumberAs::Compute)])
        .accepts("f", "softplus_cpu")
        .grad("self: torch.where(self * beta > threshold, grad, grad * torch.sigmoid(self * beta))")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::log_sigmoid(Tensor self) -> Tensor", Promote::First)
        .scalar(log_sigmoid)
        .ordered(Order::RowMajor)
        .accepts("f", "log_sigmoid_cpu")
        .grad("self: grad * torch.sigmoid(-self)")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    composite(
        "aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
        "def log_sigmoid_forward(self: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.log_sigmoid(self), torch.exp(-torch.abs(self))
",
    ),
    composite(
        "aten::prelu(Tensor self, Tensor weight) -> Tensor",
        include_str!("composites/prelu.py"),
    )
    .facts(&[Fact::Layers]),
    composite(
        "aten::glu(Tensor self, int dim=-1) -> Tensor",
        include_str!("composites/glu.py"),
    )
    .facts(&[Fact::Layers])
    .out("out"),
    opaque("aten::dropout(Tensor input, float p, bool train) -> Tensor", dropout).quantized(crate::dialects::Quantized::Own).hidden_marks("aten::dropout(Tensor(a) input, float p, bool train) -> Tensor(a)").infer(joins::same_sizes).effects(Effects::RANDOM),
    opaque("aten::dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", dropout).quantized(crate::dialects::Quantized::Own).effects(Effects::RANDOM),
    opaque("aten::feature_dropout(Tensor input, float p, bool train) -> Tensor", dropout).quantized(crate::dialects::Quantized::Own).hidden_marks("aten::feature_dropout(Tensor(a) input, float p, bool train) -> Tensor(a)").infer(joins::same_sizes).effects(Effects::RANDOM),
    opaque("aten::feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", dropout).effects(Effects::RANDOM),
    opaque("aten::alpha_dropout(Tensor input, float p, bool train) -> Tensor", dropout).quantized(crate::dialects::Quantized::Own).hidden_marks("aten::alpha_dropout(Tensor(a) input, float p, bool train) -> Tensor(a)").infer(joins::same_sizes).effects(Effects::RANDOM),
    opaque("aten::alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", dropout).effects(Effects::RANDOM),
    opaque("aten::feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor", dropout).hidden_marks("aten::feature_alpha_dropout(Tensor(a) input, float p, bool train) -> Tensor(a)").infer(joins::same_sizes).effects(Effects::RANDOM),
    opaque("aten::feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", dropout).effects(Effects::RANDOM),
    composite(
        "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
        "def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:\n    \
         return grad_output * (mask.to(grad_output.dtype) * scale)\n",
    )
    .out_exact("out"),
    opaque("aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", native_dropout)
        .effects(Effects::RANDOM),
];

fn relu(p: &mut Program, x: &[Sv]) -> Sv {
    let zero = p.constant_like(x[0], 0.0);
    p.max(x[0], zero)
}

fn relu6(p: &mut Program, x: &[Sv]) -> Sv {
    let (low, high) = (p.constant_like(x[0], 0.0), p.constant_like(x[0], 6.0));
    hardtanh(p, &[x[0], low, high])
}

/// Bounds are numbers of the tensor's own kind: of integers their whole parts.
fn check_bounds(values: &[Value]) -> Result<()> {
    let is_integral = matches!(values.first(), Some(Value::Tensor(t)) if t.dtype().is_integral());
    let own = |value: &Value| match value {
        // What no int is, is refused for that.
        Value::Float(x) if is_integral && x.abs() < 2f64.powi(63) => Value::Int(*x as i64),
        other => other.clone(),
    };
    check_clamp(&values.iter().map(own).collect::<Vec<_>>())
}

fn hardtanh(p: &mut Program, x: &[Sv]) -> Sv {
    let (low, high) = (saturated(p, x[1]), saturated(p, x[2]));
    let raised = p.max(x[0], low);
    p.min(raised, high)
}

/// x * scale above 0, otherwise alpha * scale * (e^(x * input_scale) - 1)
fn elu(p: &mut Program, x: &[Sv]) -> Sv {
    let &[x, alpha, scale, input_scale] = x else { return x[0] };
    // A scale of 1 may be left out.
    let times = |p: &mut Program, x: Sv, scale: Sv| if scale.is_present() { p.mul(x, scale) } else { x };
    let input = times(p, x, input_scale);
    let curve = p.expm1(input);
    let factor = if alpha.is_present() { times(p, alpha, scale) } else { scale };
    let below = times(p, curve, factor);
    let above = times(p, x, scale);
    let zero = p.constant_like(x, 0.0);
    let negative = p.le(x, zero);
    p.select(negative, below, above)
}

fn selu(p: &mut Program, x: &[Sv]) -> Sv {
    let alpha = p.constant_like(x[0], 1.673_263_242_354_377_2);
    let scale = p.constant_like(x[0], 1.050_700_987_355_480_5);
    elu(p, &[x[0], alpha, scale, Sv::ABSENT])
}

fn celu(p: &mut Program, x: &[Sv]) -> Sv {
    if !x[1].is_present() {
        return elu(p, &[x[0], Sv::ABSENT, Sv::ABSENT, Sv::ABSENT]);
    }
    let one = p.constant_like(x[0], 1.0);
    let inverse = p.div(one, x[1]);
    elu(p, &[x[0], x[1], Sv::ABSENT, inverse])
}

fn gelu(p: &mut Program, x: &[Sv]) -> Sv {
    let x = x[0];
    let (half, one) = (p.constant_like(x, 0.5), p.constant_like(x, 1.0));
    if p.str_arg(0) == "tanh" {
        let beta = p.constant_like(x, SQRT_2 * FRAC_2_SQRT_PI * 0.5);
        let kappa = p.constant_like(x, 0.044715);
        let square = p.mul(x, x);
        let cube = p.mul(square, x);
        let bent = p.mul(kappa, cube);
        let sum = p.add(x, bent);
        let inner = p.mul(beta, sum);
        let tanh = p.tanh(inner);
        let gate = p.add(one, tanh);
        let left = p.mul(half, x);
        return p.mul(left, gate);
    }
    let scale = p.constant_like(x, FRAC_1_SQRT_2);
    let scaled = p.mul(x, scale);
    let erf = p.erf(scaled);
    let gate = p.add(one, erf);
    let left = p.mul(x, half);
    p.mul(left, gate)
}

/// x / (1 + e^-x)
fn silu(p: &mut Program, x: &[Sv]) -> Sv {
    let one = p.constant_like(x[0], 1.0);
    let negative = p.neg(x[0]);
    let exp = p.exp(negative);
    let sum = p.add(one, exp);
    p.div(x[0], sum)
}

fn mish(p: &mut Program, x: &[Sv]) -> Sv {
    let exp = p.exp(x[0]);
    let soft = p.log1p(exp);
    let tanh = p.tanh(soft);
    p.mul(x[0], tanh)
}

/// min(max(x + 3, 0), 6)
fn ramp(p: &mut Program, x: Sv) -> Sv {
    let three = p.constant_like(x, 3.0);
    let moved = p.add(x, three);
    relu6(p, &[moved])
}

fn hardsigmoid(p: &mut Program, x: &[Sv]) -> Sv {
    let ramp = ramp(p, x[0]);
    let six = p.constant_like(x[0], 6.0);
    p.div(ramp, six)
}

fn hardswish(p: &mut Program, x: &[Sv]) -> Sv {
    let ramp = ramp(p, x[0]);
    let six = p.constant_like(x[0], 6.0);
    let product = p.mul(x[0], ramp);
    p.div(product, six)
}

fn hardshrink(p: &mut Program, x: &[Sv]) -> Sv {
    let low = p.neg(x[1]);
    let (above, below) = (p.ge(x[0], low), p.le(x[0], x[1]));
    let inside = p.and(above, below);
    let zero = p.constant_like(x[0], 0.0);
    p.select(inside, zero, x[0])
}

/// Towards 0 by lambd; NaN stays.
fn softshrink(p: &mut Program, x: &[Sv]) -> Sv {
    let low = p.neg(x[1]);
    let zero = p.constant_like(x[0], 0.0);
    let (above, below) = (p.gt(x[0], x[1]), p.lt(x[0], low));
    let (down, up) = (p.sub(x[0], x[1]), p.add(x[0], x[1]));
    // NaN stays, and zeros keep their sign.
    let inner = p.mul(x[0], zero);
    let lower = p.select(below, up, inner);
    p.select(above, down, lower)
}

pub(super) fn leaky(p: &mut Program, x: Sv, slope: Sv) -> Sv {
    let zero = p.constant_like(x, 0.0);
    let positive = p.gt(x, zero);
    let scaled = p.mul(x, slope);
    p.select(positive, x, scaled)
}

fn threshold(p: &mut Program, x: &[Sv]) -> Sv {
    let below = p.le(x[0], x[1]);
    p.select(below, x[2], x[0])
}

fn threshold_backward(p: &mut Program, x: &[Sv]) -> Sv {
    let below = p.le(x[1], x[2]);
    let zero = p.constant_like(x[0], 0.0);
    p.select(below, zero, x[0])
}

fn softplus(p: &mut Program, x: &[Sv]) -> Sv {
    let scaled = p.mul(x[0], x[1]);
    let exp = p.exp(scaled);
    let log = p.log1p(exp);
    let soft = p.div(log, x[1]);
    let linear = p.gt(scaled, x[2]);
    p.select(linear, x[0], soft)
}

/// min(x, 0) - ln(1 + e^-|x|)
fn log_sigmoid(p: &mut Program, x: &[Sv]) -> Sv {
    let zero = p.constant_like(x[0], 0.0);
    let capped = p.min(x[0], zero);
    let abs = p.abs(x[0]);
    let negative = p.neg(abs);
    let exp = p.exp(negative);
    let log = p.log1p(exp);
    p.sub(capped, log)
}

fn check_celu(values: &[Value]) -> Result<()> {
    match values.get(1).map(Value::to_scalar).transpose()? {
        Some(alpha) if !alpha.to_bool() => {
            Err(Diagnostic::runtime("ZeroDivisionError: alpha cannot be 0 for CELU"))
        }
        _ => Ok(()),
    }
}

fn check_gelu(values: &[Value]) -> Result<()> {
    match values.get(1) {
        Some(Value::Str(mode)) if &**mode != "none" && &**mode != "tanh" => {
            Err(Diagnostic::runtime("approximate argument must be either none or tanh."))
        }
        _ => Ok(()),
    }
}

fn check_softshrink(values: &[Value]) -> Result<()> {
    let [x, lambd, ..] = values else { return Ok(()) };
    let (dtype, lambd) = (x.to_tensor()?.dtype(), lambd.to_scalar()?.to_f64());
    let most = match dtype {
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(half::bf16::MAX),
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    if dtype.is_floating() && !(0.0..=most).contains(&lambd) {
        return Err(Diagnostic::runtime(format!(
            "lambda must be in range [0, {}] for input dtype {}, but found {}",
            general(most),
            dtype.type_name(),
            general(lambd)
        )));
    }
    Ok(())
}

fn check_prelu_kernel(values: &[Value]) -> Result<()> {
    let [x, weight, ..] = values else { return Ok(()) };
    let (x, weight) = (x.to_tensor()?.dtype(), weight.to_tensor()?.dtype());
    if x != weight {
        return Err(Diagnostic::runtime(format!(
            "prelu: Type promoting not supported. Got {} and {}",
            x.type_name(),
            weight.type_name()
        )));
    }
    Ok(())
}

/// The input itself where nothing is dropped, zeros where all is.
fn dropout(args: &Args<'_>) -> Result<Outputs> {
    let (input, p, train) = (args.tensor(0)?, args.float(1)?, args.bool(2)?);
    if !(0.0..=1.0).contains(&p) {
        return Err(Diagnostic::runtime(format!(
            "dropout probability has to be between 0 and 1, but got {p}"
        )));
    }
    if !train || p == 0.0 || input.numel() == 0 {
        return one(input.clone());
    }
    let name = args.op.name();
    let dropped = crate::dialects::dropout::drop_out(
        args,
        input,
        p,
        name.as_str().contains("feature"),
        name.as_str().contains("alpha"),
    )?;
    if name.as_str().ends_with('_') {
        input.copy_from(&dropped)?;
        return one(input.clone());
    }
    one(dropped)
}

fn native_dropout(args: &Args<'_>) -> Result<Outputs> {
    let (input, p, train) = (args.tensor(0)?, args.float(1)?, args.opt_bool(2)?);
    if train == Some(false) || p == 0.0 || input.numel() == 0 {
        let mask = crate::dialects::draw::empty_like(input, DType::Bool)?;
        mask.fill(Scalar::Bool(true))?;
        let copy = crate::dialects::draw::empty_like(input, input.dtype())?;
        copy.copy_from(input)?;
        return Ok(smallvec![copy.into(), mask.into()]);
    }
    crate::dialects::dropout::native_dropout(args, input, p)
}

fn gelu_kind(rest: &[Value]) -> Option<Activation> {
    match rest {
        [Value::Str(text)] if &**text == "none" => Some(Activation::Gelu),
        [Value::Str(text)] if &**text == "tanh" => Some(Activation::GeluTanh),
        _ => None,
    }
}

fn slope(rest: &[Value]) -> Option<Activation> {
    match rest {
        [slope @ (Value::Int(_) | Value::Float(_))] => {
            slope.to_float().ok().map(|slope| Activation::LeakyRelu(slope as f32))
        }
        _ => None,
    }
}

/// PReLU with one slope for all channels.
fn one_slope(rest: &[Value]) -> Option<Activation> {
    match rest {
        [Value::Tensor(weight)] if weight.numel() == 1 && weight.dtype() == DType::F32 => {
            let slope = weight.elements::<f32>().ok()?;
            slope.first().map(|slope| Activation::LeakyRelu(*slope))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;

    /// As PyTorch answers: of integers the whole parts of bounds count.
    #[test]
    fn bounds_of_hardtanh_that_no_integer_keeps_are_refused() {
        let bytes = Value::Tensor(Tensor::from_vec(&[3u8], &[1]).expect("valid"));
        let bounds = |low: Value, high: Value| match check_bounds(&[bytes.clone(), low, high]) {
            Ok(()) => Ok(()),
            Err(error) => Err(error.message().to_string()),
        };
        assert_eq!(bounds(Value::Float(-0.2), Value::Int(3)), Ok(()));
        assert_eq!(bounds(Value::Int(-5), Value::Int(300)), Ok(()));
        assert_eq!(bounds(Value::Int(0), Value::Float(-1e30)), Ok(()));
        let beyond = "Clamp max value -12 is outside the representable range of Byte".to_string();
        assert_eq!(bounds(Value::Int(2), Value::Float(-12.13)), Err(beyond));
    }
}
