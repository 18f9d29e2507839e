//! Ops that compute each element from those at its place: operands are converted to one dtype, the numbers are computed in 64
//! bits and rounded once. No knowledge of how vectors of them are computed.

use crate::array::{Array, broadcast, complex, float, rounded, truth};
use crate::promote::{Operand, common, floating};
use crate::scalar::{
    between, bits, bounded, bounded_but_for_nan, compared, divided, divisor, function, kind_of, negative,
    of_pair, power, product, quotient, remainder, signum, sum, whole,
};
use crate::{Answer, Outside, refused};
use flambeau_base::tensor::{DType, Scalar};
use std::cmp::Ordering;

/// Which dtype the result has.
#[derive(Clone, Copy, PartialEq)]
enum Gives {
    /// That which the operands have in common.
    Common,
    /// The same, or float32 where that holds no floats: the operands are converted to it first.
    Float,
    /// bool
    Truth,
}

/// Functions of one number with results that are floats.
const FUNCTIONS: &[&str] = &[
    "exp",
    "expm1",
    "log",
    "log1p",
    "sqrt",
    "rsqrt",
    "sigmoid",
    "reciprocal",
    "log_sigmoid",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "exp2",
    "log2",
    "log10",
    "sinc",
    "deg2rad",
    "rad2deg",
];

/// PyTorch refuses some such bounds, and takes others for the end of the dtype.
const NO_BOUND: Outside = Outside::Open("a bound that no element can have");

/// An elementwise op by its name, of operands that broadcast; None for one that is unknown.
pub(crate) fn call(name: &str, operands: &[Operand]) -> Option<Answer<Array>> {
    let name = plain_name(name);
    match operands.len() {
        1 => of_one(name, operands),
        2 => of_two(name, operands),
        _ => of_more(name, operands),
    }
}

fn of_one(name: &str, operands: &[Operand]) -> Option<Answer<Array>> {
    use Gives::{Common, Float, Truth};
    Some(match name {
        "neg" => each(Common, operands, |x| negative(x[0])),
        "abs" => magnitude(operands),
        "positive" | "conj" | "real" | "conj_physical" | "_conj_physical" => same(name, operands),
        "floor" | "ceil" | "trunc" | "round" => each(Common, operands, |x| whole(name, x[0])),
        "square" => {
            let two = Operand::Number(Scalar::Int(2));
            each(Common, &[operands[0].clone(), two], |x| power(x[0], x[1]))
        }
        "relu" => each(Common, operands, |x| bounded(x[0], Scalar::Int(0), Ordering::Greater)),
        "relu6" => each(Common, operands, |x| between(&[x[0], Scalar::Int(0), Scalar::Int(6)])),
        "bitwise_not" => each(Common, operands, |x| match x[0] {
            Scalar::Bool(x) => Ok(Scalar::Bool(!x)),
            Scalar::Int(x) => Ok(Scalar::Int(!x)),
            _ => refused("floats have no bits"),
        }),
        "logical_not" => each(Truth, operands, |x| Ok(Scalar::Bool(!truth(x[0])))),
        "isnan" | "isinf" | "isfinite" => each(Truth, operands, |x| kind_of(name, x[0])),
        "sign" | "sgn" => each(Common, operands, |x| signum(x[0])),
        "frac" => each(Common, operands, |x| match x[0] {
            Scalar::Float(x) => Ok(Scalar::Float(x - x.trunc())),
            _ => Err(Outside::Unknown),
        }),
        "silu" => each(Common, operands, |x| product(x[0], function("sigmoid", x[0])?)),
        _ if FUNCTIONS.contains(&name) => each(Float, operands, |x| function(name, x[0])),
        _ => return None,
    })
}

fn of_two(name: &str, operands: &[Operand]) -> Option<Answer<Array>> {
    use Gives::{Common, Float, Truth};
    Some(match name {
        "div" => each(Float, operands, |x| quotient(x[0], x[1])),
        "div_trunc" | "div_floor" => each(Common, operands, |x| divided(name, x[0], x[1])),
        "mul" => each(Common, operands, |x| product(x[0], x[1])),
        "atan2" => each(Float, operands, |x| Ok(Scalar::Float(float(x[0]).atan2(float(x[1]))))),
        "hypot" | "logaddexp" | "logaddexp2" => each(Common, operands, |x| of_pair(name, x[0], x[1])),
        "gcd" | "lcm" => each(Common, operands, |x| divisor(name, x[0], x[1])),
        // A number among its operands is of the tensor's dtype.
        "pow" => common(operands).and_then(|dtype| {
            each_of(Common, dtype, operands, |x| power(rounded(x[0], dtype)?, rounded(x[1], dtype)?))
        }),
        "remainder" => each(Common, operands, |x| remainder(x[0], x[1])),
        "clamp_min" | "clamp_max" if is_beyond(operands, operands) => Err(NO_BOUND),
        "maximum" | "clamp_min" => each(Common, operands, |x| bounded(x[0], x[1], Ordering::Greater)),
        "minimum" | "clamp_max" => each(Common, operands, |x| bounded(x[0], x[1], Ordering::Less)),
        "fmax" => each(Common, operands, |x| bounded_but_for_nan(x[0], x[1], Ordering::Greater)),
        "fmin" => each(Common, operands, |x| bounded_but_for_nan(x[0], x[1], Ordering::Less)),
        "eq" | "ne" | "lt" | "le" | "gt" | "ge" => {
            each(Truth, operands, |x| Ok(Scalar::Bool(compared(name, x[0], x[1])?)))
        }
        "bitwise_and" | "__and__" | "bitwise_or" | "__or__" | "bitwise_xor" | "__xor__" => {
            each(Common, operands, |x| bits(name, x[0], x[1]))
        }
        "logical_and" | "logical_or" | "logical_xor" => logical(name, operands),
        _ => return None,
    })
}

fn of_more(name: &str, operands: &[Operand]) -> Option<Answer<Array>> {
    Some(match (name, operands.len()) {
        ("where", 3) => choice(operands),
        ("clamp", 3) if is_beyond(operands, operands) => Err(NO_BOUND),
        ("clamp", 3) => each(Gives::Common, operands, between),
        // The bounds do not take part in promotion.
        ("hardtanh", 3) if is_beyond(&operands[..1], operands) => Err(NO_BOUND),
        ("hardtanh", 3) => {
            common(&operands[..1]).and_then(|dtype| each_of(Gives::Common, dtype, operands, between))
        }
        ("add" | "sub" | "rsub", 3) => scaled(operands, |x, dtype| {
            let (a, b) = if name == "rsub" { (x[1], x[0]) } else { (x[0], x[1]) };
            let scaled = product(x[2], b)?;
            let overflows = float(scaled).is_finite() && !float(rounded(scaled, dtype)?).is_finite();
            if overflows {
                return Err(Outside::Open(
                    "whether a product that is too large is rounded before it is added",
                ));
            }
            sum(name != "add", a, scaled)
        }),
        ("addcmul", 4) => scaled(operands, |x, dtype| {
            let first = inside(product(x[3], x[1])?, dtype)?;
            sum(false, x[0], inside(product(first, x[2])?, dtype)?)
        }),
        ("addcdiv", 4) => scaled(operands, |x, dtype| match x[1] {
            Scalar::Int(_) | Scalar::Bool(_) => refused("integers are not divided"),
            _ => {
                let first = inside(product(x[3], x[1])?, dtype)?;
                sum(false, x[0], inside(quotient(first, x[2])?, dtype)?)
            }
        }),
        _ => return None,
    })
}

/// The name that an op has besides another.
fn plain_name(name: &str) -> &str {
    match name {
        "multiply" => "mul",
        "divide" | "true_divide" => "div",
        "negative" => "neg",
        "absolute" => "abs",
        "subtract" => "sub",
        "not_equal" => "ne",
        "less" => "lt",
        "less_equal" => "le",
        "greater" => "gt",
        "greater_equal" => "ge",
        "fix" => "trunc",
        "clip" => "clamp",
        "special_sinc" => "sinc",
        "special_erf" => "erf",
        "special_expit" => "sigmoid",
        "special_expm1" => "expm1",
        "special_log1p" => "log1p",
        "special_exp2" => "exp2",
        other => other.strip_prefix("arc").map_or(other, arc_name),
    }
}

/// asin for arcsin, and so on.
fn arc_name(function: &str) -> &str {
    match function {
        "sin" => "asin",
        "cos" => "acos",
        "tan" => "atan",
        "sinh" => "asinh",
        "cosh" => "acosh",
        "tanh" => "atanh",
        "tan2" => "atan2",
        other => other,
    }
}

/// Each element from the operands' elements at its place, all of one dtype. Of floats of 16 bits numbers that stand beside
/// tensors keep what float32 holds of them, but where they are compared.
fn each(gives: Gives, operands: &[Operand], element: impl Fn(&[Scalar]) -> Answer<Scalar>) -> Answer<Array> {
    each_of(gives, common(operands)?, operands, element)
}

/// The same where some operands are factors that do not take part in promotion.
fn each_of(
    gives: Gives,
    common: DType,
    operands: &[Operand],
    element: impl Fn(&[Scalar]) -> Answer<Scalar>,
) -> Answer<Array> {
    let dtype = if gives == Gives::Float { floating(common) } else { common };
    let of_numbers = match dtype {
        DType::F16 | DType::BF16 if gives != Gives::Truth => DType::F32,
        other => other,
    };
    let tensors = operands.iter().filter_map(|operand| match operand {
        Operand::Tensor(a) => Some(a.sizes.as_slice()),
        Operand::Number(_) => None,
    });
    let sizes = broadcast(tensors)?;
    let result = if gives == Gives::Truth { DType::Bool } else { dtype };
    Array::of(result, &sizes, |index| {
        let x: Vec<Scalar> = operands
            .iter()
            .map(|operand| match operand {
                Operand::Tensor(a) => rounded(a.repeated_at(index), dtype),
                Operand::Number(x) => rounded(*x, of_numbers),
            })
            .collect::<Answer<_>>()?;
        element(&x)
    })
}

/// The same with a last operand that is a factor: it is converted to the dtype that the others have in common, which the
/// element is given.
fn scaled(operands: &[Operand], element: impl Fn(&[Scalar], DType) -> Answer<Scalar>) -> Answer<Array> {
    let dtype = common(&operands[..operands.len() - 1])?;
    each_of(Gives::Common, dtype, operands, |x| element(x, dtype))
}

/// A number between two steps, of which floats of 16 bits are float32.
fn inside(x: Scalar, dtype: DType) -> Answer<Scalar> {
    rounded(x, if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype })
}

/// Whether an operand is an integer that the dtype which some have in common does not hold.
fn is_beyond(promoting: &[Operand], operands: &[Operand]) -> bool {
    let Ok(dtype) = common(promoting) else { return false };
    operands.iter().any(|operand| match operand {
        Operand::Number(Scalar::Int(x)) if dtype.is_integral() => {
            rounded(Scalar::Int(*x), dtype) != Ok(Scalar::Int(*x))
        }
        _ => false,
    })
}

/// The absolute value; of complex numbers a real one.
fn magnitude(operands: &[Operand]) -> Answer<Array> {
    match operands {
        [Operand::Tensor(a)] if a.dtype.is_complex() => {
            let dtype = if a.dtype == DType::C64 { DType::F32 } else { DType::F64 };
            Array::of(dtype, &a.sizes, |index| Ok(Scalar::Float(complex(a.at(index)).norm())))
        }
        _ => each(Gives::Common, operands, |x| match x[0] {
            Scalar::Int(x) => Ok(Scalar::Int(x.wrapping_abs())),
            Scalar::Float(x) => Ok(Scalar::Float(x.abs())),
            _ => refused("truth values have no magnitude"),
        }),
    }
}

fn same(name: &str, operands: &[Operand]) -> Answer<Array> {
    match operands {
        [Operand::Tensor(a)] if !a.dtype.is_complex() && (name != "positive" || a.dtype != DType::Bool) => {
            Ok(a.clone())
        }
        _ => Err(Outside::Unknown),
    }
}

fn logical(name: &str, operands: &[Operand]) -> Answer<Array> {
    let [Operand::Tensor(a), Operand::Tensor(b)] = operands else { return Err(Outside::Unknown) };
    Array::of(DType::Bool, &broadcast([a.sizes.as_slice(), b.sizes.as_slice()])?, |index| {
        let (a, b) = (truth(a.repeated_at(index)), truth(b.repeated_at(index)));
        Ok(Scalar::Bool(match name {
            "logical_and" => a && b,
            "logical_or" => a || b,
            _ => a != b,
        }))
    })
}

fn choice(operands: &[Operand]) -> Answer<Array> {
    let [Operand::Tensor(condition), others @ ..] = operands else { return Err(Outside::Unknown) };
    if condition.dtype != DType::Bool {
        return Err(Outside::Unknown);
    }
    let dtype = common(others)?;
    let sizes = broadcast(operands.iter().filter_map(|operand| match operand {
        Operand::Tensor(a) => Some(a.sizes.as_slice()),
        Operand::Number(_) => None,
    }))?;
    Array::of(dtype, &sizes, |index| {
        Ok(match &others[usize::from(!truth(condition.repeated_at(index)))] {
            Operand::Tensor(a) => a.repeated_at(index),
            Operand::Number(x) => *x,
        })
    })
}
