//! Special functions of tensors: Bessel, gamma and error functions, orthogonal polynomials, and the functions of
//! integers that are loops.
//!
//! Functions of one or two numbers are computed in float64 and rounded; polynomials in their own precision.

use super::convert::copy_as;
use crate::diag::{Diagnostic, Result};
use crate::dialects::scalar::{Program, Sv};
use crate::dialects::shapes::trial;
use crate::dialects::{Alias, Args, Fact, OpDef, Outputs, Promote, Tolerance, elementwise, one, opaque};
use crate::dispatch_dtype;
use crate::kernels::special::polynomial;
use crate::kernels::special::polynomial::Family;
use crate::kernels::special::{Rounding, bessel, cylinder, error, gamma};
use crate::tensor::pointwise::{map1, map2};
use crate::tensor::{DType, Element, Operand, Scalar, Tensor, result_type};
use crate::value::Value;
use half::{bf16, f16};
use std::f64::consts::FRAC_1_SQRT_2;

/// The rows.
pub static OPS: &[OpDef] = &[
    elementwise("aten::erfinv(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| unary(a, 0, error::erfinv))
        .accepts("f", "erfinv_vml_cpu")
        .tolerance(Tolerance::Rounding)
        .grad("self: 0.8862269254527579 * torch.exp(result * result) * grad")
        .inplace()
        .out("out")
        .aliases(&[Alias::new("special_erfinv").functional()]),
    elementwise("aten::digamma(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| unary(a, 0, gamma::digamma))
        .accepts("f", "digamma")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out")
        .aliases(&[Alias::new("special_digamma").functional(), Alias::new("special_psi").functional()]),
    elementwise("aten::i0(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| stepped(a, bessel::i0))
        .accepts("f", "i0_vml_cpu")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out")
        .aliases(&[Alias::new("special_i0").functional()]),
    elementwise("aten::special_i0e(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| unary(a, 0, bessel::i0e))
        .accepts("f", "i0e_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_i1(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| stepped(a, bessel::i1))
        .accepts("f", "i1_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_i1e(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| unary(a, 0, bessel::i1e))
        .accepts("f", "i1e_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_airy_ai(Tensor x) -> Tensor", Promote::Float)
        .eval(|a| stepped(a, bessel::airy_ai))
        .accepts("w", "airy_ai_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_bessel_j0(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| stepped(a, cylinder::j0))
        .accepts("w", "bessel_j0_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_bessel_j1(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| stepped(a, cylinder::j1))
        .accepts("w", "bessel_j1_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_bessel_y0(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| stepped(a, cylinder::y0))
        .accepts("w", "bessel_y0_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_bessel_y1(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| stepped(a, cylinder::y1))
        .accepts("w", "bessel_y1_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_modified_bessel_i0(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| stepped(a, bessel::i0))
        .accepts("w", "modified_bessel_i0_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_modified_bessel_i1(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| stepped(a, bessel::i1))
        .accepts("w", "modified_bessel_i1_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_modified_bessel_k0(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| unary(a, 0, bessel::k0))
        .accepts("w", "modified_bessel_k0_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_modified_bessel_k1(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| unary(a, 0, bessel::k1))
        .accepts("w", "modified_bessel_k1_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_scaled_modified_bessel_k0(Tensor x) -> Tensor", Promote::Float)
        .eval(|a| unary(a, 0, bessel::k0_scaled))
        .accepts("w", "scaled_modified_bessel_k0_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_scaled_modified_bessel_k1(Tensor x) -> Tensor", Promote::Float)
        .eval(|a| unary(a, 0, bessel::k1_scaled))
        .accepts("w", "scaled_modified_bessel_k1_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_spherical_bessel_j0(Tensor x) -> Tensor", Promote::Float)
        .eval(|a| unary(a, 0, bessel::spherical_j0))
        .accepts("w", "spherical_bessel_j0_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_erfcx(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| stepped(a, error::erfcx))
        .accepts("w", "erfcx_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_log_ndtr(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| unary(a, 0, error::log_ndtr))
        .accepts("w", "log_ndtr_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_ndtri(Tensor self) -> Tensor", Promote::Float)
        .eval(|a| unary(a, 0, error::ndtri))
        .accepts("w", "ndtri_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_ndtr(Tensor self) -> Tensor", Promote::Float)
        .scalar(ndtr)
        .accepts("f", "erf_vml_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::special_entr(Tensor self) -> Tensor", Promote::Float)
        .scalar(entr)
        .accepts("f", "entr_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::polygamma(int n, Tensor self) -> Tensor", Promote::Float)
        .eval(polygamma)
        .accepts("f", "polygamma")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .aliases(&[Alias::new("special_polygamma")]),
    elementwise("aten::polygamma_(Tensor(a!) self, int n) -> Tensor(a!)", Promote::Float)
        .eval(polygamma_)
        .accepts("f", "polygamma")
        .tolerance(Tolerance::Rounding),
    elementwise("aten::igamma(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .eval(|a| binary(a, gamma::igamma))
        .accepts("f", "igamma_cpu")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out")
        .aliases(&[Alias::new("special_gammainc").functional()]),
    elementwise("aten::igammac(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .eval(|a| binary(a, gamma::igammac))
        .accepts("f", "igammac_cpu")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out")
        .aliases(&[Alias::new("special_gammaincc").functional()]),
    elementwise("aten::special_zeta(Tensor self, Tensor other) -> Tensor", Promote::Float)
        .eval(|a| binary(a, gamma::zeta))
        .accepts("w", "zeta_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .overloads(&[
            "other_scalar(Tensor self, Scalar other) -> Tensor",
            "self_scalar(Scalar self, Tensor other) -> Tensor",
        ]),
    elementwise("aten::special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor", Promote::Float)
        .eval(|a| polynomial(a, Family::ChebyshevT, false))
        .accepts("w", "chebyshev_polynomial_t_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .overloads(&["x_scalar(Scalar x, Tensor n) -> Tensor", "n_scalar(Tensor x, Scalar n) -> Tensor"]),
    elementwise("aten::special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor", Promote::Float)
        .eval(|a| polynomial(a, Family::ChebyshevU, false))
        .accepts("w", "chebyshev_polynomial_u_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .overloads(&["x_scalar(Scalar x, Tensor n) -> Tensor", "n_scalar(Tensor x, Scalar n) -> Tensor"]),
    elementwise("aten::special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor", Promote::Float)
        .eval(|a| polynomial(a, Family::ChebyshevV, false))
        .accepts("w", "chebyshev_polynomial_v_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .overloads(&["x_scalar(Scalar x, Tensor n) -> Tensor", "n_scalar(Tensor x, Scalar n) -> Tensor"]),
    elementwise("aten::special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor", Promote::Float)
        .eval(|a| polynomial(a, Family::ChebyshevW, false))
        .accepts("w", "chebyshev_polynomial_w_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .overloads(&["x_scalar(Scalar x, Tensor n) -> Tensor", "n_scalar(Tensor x, Scalar n) -> Tensor"]),
    elementwise("aten::special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor", Promote::Float)
        .eval(|a| polynomial(a, Family::ChebyshevT, true))
        .accepts("w", "shifted_chebyshev_polynomial_t_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .overloads(&["x_scalar(Scalar x, Tensor n) -> Tensor", "n_scalar(Tensor x, Scalar n) -> Tensor"]),
    elementwise("aten::special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor", Promote::Float)
        .eval(|a| polynomial(a, Family::ChebyshevU, true))
        .accepts("w", "shifted_chebyshev_polynomial_u_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .overloads(&["x_scalar(Scalar x, Tensor n) -> Tensor", "n_scalar(Tensor x, Scalar n) -> Tensor"]),
    elementwise("aten::special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor", Promote::Float)
        .eval(|a| polynomial(a, Family::ChebyshevV, true))
        .accepts("w", "shifted_chebyshev_polynomial_v_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .overloads(&["x_scalar(Scalar x, Tensor n) -> Tensor", "n_scalar(Tensor x, Scalar n) -> Tensor"]),
    elementwise("aten::special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor", Promote::Float)
        .eval(|a| polynomial(a, Family::ChebyshevW, true))
        .accepts("w", "shifted_chebyshev_polynomial_w_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .overloads(&["x_scalar(Scalar x, Tensor n) -> Tensor", "n_scalar(Tensor x, Scalar n) -> Tensor"]),
    elementwise("aten::special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor", Promote::Float)
        .eval(|a| polynomial(a, Family::HermiteH, false))
        .accepts("w", "hermite_polynomial_h_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .overloads(&["x_scalar(Scalar x, Tensor n) -> Tensor", "n_scalar(Tensor x, Scalar n) -> Tensor"]),
    elementwise("aten::special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor", Promote::Float)
        .eval(|a| polynomial(a, Family::HermiteHe, false))
        .accepts("w", "hermite_polynomial_he_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .overloads(&["x_scalar(Scalar x, Tensor n) -> Tensor", "n_scalar(Tensor x, Scalar n) -> Tensor"]),
    elementwise("aten::special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor", Promote::Float)
        .eval(|a| polynomial(a, Family::LaguerreL, false))
        .accepts("w", "laguerre_polynomial_l_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .overloads(&["x_scalar(Scalar x, Tensor n) -> Tensor", "n_scalar(Tensor x, Scalar n) -> Tensor"]),
    elementwise("aten::special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor", Promote::Float)
        .eval(|a| polynomial(a, Family::LegendreP, false))
        .accepts("w", "legendre_polynomial_p_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .overloads(&["x_scalar(Scalar x, Tensor n) -> Tensor", "n_scalar(Tensor x, Scalar n) -> Tensor"]),
    elementwise("aten::gcd(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .eval(|a| integers(a, false))
        .accepts("i", "gcd_cpu")
        .facts(&[Fact::Commutative])
        .inplace()
        .out("out"),
    elementwise("aten::lcm(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .eval(|a| integers(a, true))
        .accepts("i", "lcm_cpu")
        .facts(&[Fact::Commutative])
        .inplace()
        .out("out"),
    opaque("aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", frexp)
        .infer(trial::stand_ins),
    opaque(
        "aten::frexp.Tensor_out(Tensor self, *, Tensor(a!) mantissa, Tensor(b!) exponent) -> (Tensor(a!) mantissa, \
         Tensor(b!) exponent)",
        frexp_out,
    ),
];

/// Converts to the dtype of computation, in the order in which elements lie, or refuses as the row says.
fn prepared(args: &Args<'_>, tensor: &Tensor, dtype: DType) -> Result<Tensor> {
    let accepts = args.op.def().accepts;
    if !accepts.contains(dtype) {
        let message = format!("\"{}\" not implemented for '{}'", accepts.kernel, dtype.type_name());
        return Err(Diagnostic::raised("NotImplementedError", message));
    }
    if tensor.dtype() == dtype { Ok(tensor.clone()) } else { copy_as(tensor, Some(dtype), None) }
}

/// Integers and bools become the default float.
fn float_dtype(dtype: DType) -> DType {
    if dtype.is_floating() || dtype.is_complex() { dtype } else { DType::F32 }
}

/// Applies a function of float64 to the n-th argument.
fn unary(args: &Args<'_>, n: usize, f: impl Fn(f64) -> f64 + Sync) -> Result<Outputs> {
    let tensor = args.tensor(n)?;
    let x = prepared(args, tensor, float_dtype(tensor.dtype()))?;
    one(match x.dtype() {
        DType::F16 => map1::<f16, _>(&x, |x| f16::from_f64(f(x.to_f64())))?,
        DType::BF16 => map1::<bf16, _>(&x, |x| bf16::from_f64(f(x.to_f64())))?,
        DType::F64 => map1::<f64, _>(&x, f)?,
        _ => map1::<f32, _>(&x, |x| f(x.into()) as f32)?,
    })
}

/// A function of one number that rounds some of its steps to the precision of PyTorch's kernel, where they decide.
fn stepped(args: &Args<'_>, f: fn(f64, Rounding) -> f64) -> Result<Outputs> {
    let is_double = float_dtype(args.tensor(0)?.dtype()) == DType::F64;
    let round: Rounding = if is_double { |x| x } else { |x| f64::from(x as f32) };
    unary(args, 0, move |x| f(x, round))
}

/// The first two arguments, tensors or numbers, as tensors of their common dtype.
fn pair(args: &Args<'_>) -> Result<(Tensor, Tensor)> {
    let operand = |n| match args.value(n)? {
        Value::Tensor(t) => Ok(Operand::Tensor(t.clone())),
        _ => args.scalar(n).map(Operand::Number),
    };
    let operands = [operand(0)?, operand(1)?];
    let common = result_type(&operands).ok_or_else(|| Diagnostic::internal("a function of two operands"))?;
    let dtype = if args.op.def().promote == Promote::Float { float_dtype(common) } else { common };
    let [x, y] = operands.map(|operand| match operand {
        Operand::Tensor(t) => prepared(args, &t, dtype),
        Operand::Number(s) => prepared(args, &Tensor::from_scalar(s, dtype)?, dtype),
    });
    Ok((x?, y?))
}

/// Applies a function of two float64 to the first two arguments.
fn binary(args: &Args<'_>, f: fn(f64, f64) -> f64) -> Result<Outputs> {
    let (x, y) = pair(args)?;
    one(match x.dtype() {
        DType::F16 => map2::<f16, _>(&x, &y, |x, y| f16::from_f64(f(x.to_f64(), y.to_f64())))?,
        DType::BF16 => map2::<bf16, _>(&x, &y, |x, y| bf16::from_f64(f(x.to_f64(), y.to_f64())))?,
        DType::F64 => map2::<f64, _>(&x, &y, f)?,
        _ => map2::<f32, _>(&x, &y, |x, y| f(x.into(), y.into()) as f32)?,
    })
}

fn polynomial(args: &Args<'_>, family: Family, shifted: bool) -> Result<Outputs> {
    let (x, n) = pair(args)?;
    // What does not fit an int becomes the smallest one, a negative degree.
    let degrees = n.elements_as::<f64>()?.into_iter().filter(|n| *n < 9e18);
    let largest = degrees.fold(0.0, f64::max);
    if largest > polynomial::MAX_DEGREE as f64 {
        return Err(Diagnostic::unsupported(format!(
            "{} of a degree above {}",
            args.op.name(),
            polynomial::MAX_DEGREE
        )));
    }
    one(if x.dtype() == DType::F64 {
        map2::<f64, _>(&x, &n, |x, n| {
            polynomial::double::value(family, shifted, x, Scalar::Float(n).to_i64())
        })?
    } else {
        map2::<f32, _>(&x, &n, |x, n| {
            polynomial::single::value(family, shifted, x, Scalar::Float(n.into()).to_i64())
        })?
    })
}

fn polygamma(args: &Args<'_>) -> Result<Outputs> {
    polygamma_of(args, args.int(0)?, 1)
}

fn polygamma_(args: &Args<'_>) -> Result<Outputs> {
    let result = polygamma_of(args, args.int(1)?, 0)?;
    let target = args.tensor(0)?;
    if !target.dtype().is_floating() {
        return Err(Diagnostic::runtime(format!(
            "result type Float can't be cast to the desired output type {}",
            target.dtype().type_name()
        )));
    }
    if let Some(Value::Tensor(result)) = result.first() {
        target.copy_from(result)?;
    }
    one(target.clone())
}

/// The n-th polygamma function of an argument.
fn polygamma_of(args: &Args<'_>, n: i64, argument: usize) -> Result<Outputs> {
    if n < 0 {
        return Err(Diagnostic::runtime("polygamma(n, x) does not support negative n."));
    }
    if n == 1 && args.tensor(argument)?.dtype() != DType::F64 {
        return unary(args, argument, |x| gamma::trigamma_single(x as f32).into());
    }
    unary(args, argument, move |x| gamma::polygamma(n, x))
}

/// The normal distribution: (1 + erf(x / √2)) / 2
fn ndtr(p: &mut Program, x: &[Sv]) -> Sv {
    let (scale, one) = (p.constant_like(x[0], FRAC_1_SQRT_2), p.constant_like(x[0], 1.0));
    let half = p.constant_like(x[0], 0.5);
    let scaled = p.mul(x[0], scale);
    let scaled = p.stepped(scaled, x[0]);
    let erf = p.erf(scaled);
    let erf = p.stepped(erf, x[0]);
    let sum = p.add(one, erf);
    let sum = p.stepped(sum, x[0]);
    p.mul(sum, half)
}

/// -x ln x above 0, 0 at 0, -inf below.
fn entr(p: &mut Program, x: &[Sv]) -> Sv {
    let zero = p.constant_like(x[0], 0.0);
    let lowest = p.constant_like(x[0], f64::NEG_INFINITY);
    let log = p.log(x[0]);
    let negative = p.neg(x[0]);
    let product = p.mul(negative, log);
    let at_zero = p.eq(x[0], zero);
    let below = p.lt(x[0], zero);
    let value = p.select(at_zero, zero, product);
    p.select(below, lowest, value)
}

/// Applies a function to the elements of two integer tensors.
fn integers(args: &Args<'_>, is_lcm: bool) -> Result<Outputs> {
    fn run<T: Element>(x: &Tensor, y: &Tensor, is_lcm: bool) -> Result<Tensor> {
        let f = if is_lcm { lcm::<T> } else { gcd::<T> };
        let int = |x: T| x.to_scalar().to_i64();
        map2::<T, T>(x, y, |x, y| T::from_scalar(Scalar::Int(f(int(x), int(y)))))
    }
    let (x, y) = pair(args)?;
    one(dispatch_dtype!(x.dtype(), T => run::<T>(&x, &y, is_lcm))?)
}

/// A number as a dtype keeps it.
fn kept<T: Element>(x: i64) -> i64 {
    T::from_scalar(Scalar::Int(x)).to_scalar().to_i64()
}

/// The magnitude of the smallest integer is itself, and remainders have the sign of what is divided: so PyTorch's.
fn gcd<T: Element>(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (kept::<T>(a.wrapping_abs()), kept::<T>(b.wrapping_abs()));
    while a != 0 {
        (a, b) = (b.wrapping_rem(a), a);
    }
    b
}

/// Dtypes of less than 32 bits are computed in 32 and cut at the end; others wrap before their sign is dropped.
fn lcm<T: Element>(a: i64, b: i64) -> i64 {
    match gcd::<T>(a, b) {
        0 => 0,
        divisor => {
            let product = a.wrapping_div(divisor).wrapping_mul(b);
            let product = if T::DTYPE.size() < 4 { product } else { kept::<T>(product) };
            product.wrapping_abs()
        }
    }
}

/// Mantissas in [0.5, 1) and int32 exponents.
fn frexp(args: &Args<'_>) -> Result<Outputs> {
    fn run<T: Element>(x: &Tensor) -> Result<Outputs> {
        let parts = |x: T| libm::frexp(x.to_scalar().to_f64());
        let mantissa = map1::<T, T>(x, |x| T::from_scalar(Scalar::Float(parts(x).0)))?;
        let exponent = map1::<T, i32>(x, |x| {
            let (mantissa, exponent) = parts(x);
            if mantissa.is_finite() { exponent } else { 0 }
        })?;
        Ok(smallvec::smallvec![mantissa.into(), exponent.into()])
    }
    let x = args.tensor(0)?;
    if !x.dtype().is_floating() {
        return Err(Diagnostic::runtime("torch.frexp() only supports floating-point dtypes"));
    }
    dispatch_dtype!(x.dtype(), T => run::<T>(x))
}

fn frexp_out(args: &Args<'_>) -> Result<Outputs> {
    let results = frexp(args)?;
    let targets = [args.tensor(1)?, args.tensor(2)?];
    for (target, result) in targets.iter().zip(&results) {
        let result = result.to_tensor()?;
        target.give_sizes(&result.sizes())?;
        target.copy_from(result)?;
    }
    Ok(targets.iter().map(|t| Value::Tensor((*t).clone())).collect())
}
