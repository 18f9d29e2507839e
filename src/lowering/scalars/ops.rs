//! Ops on numbers as ops of the `loop` dialect, bit by bit what their rows say; a test compares the two. Where a row raises, the
//! kernel ends by a `loop::require`.

use crate::dialects::loops::{Builder, Elem};
use crate::dialects::scalar::{Binary, Compare, Unary};
use crate::ir::ValueId;
use crate::tensor::Scalar;

/// What ends the kernel where an op raises or where its row takes a way of its own.
const RAISES: &str = "an op on numbers raises";

/// Integers beyond these may wrap within an op whose row does not.
const FAR: i64 = 1 << 61;

/// The result of an op by its schema, None for other ops than those on numbers. `constants` are operands that are the same in
/// every run.
pub(super) fn number(
    b: &mut Builder,
    schema: &str,
    x: &[ValueId],
    constants: &[Option<Scalar>],
) -> Option<ValueId> {
    let (name, arguments) = schema.split_once('(')?;
    if schema.starts_with("aten::Float.Scalar(") {
        return x.first().map(|x| float(b, *x));
    }
    // Other ops compute numbers of unknown kind otherwise.
    if arguments.contains("Scalar ") {
        return None;
    }
    let name = name.split('.').next()?;
    match *x {
        [a] => unary(b, name, schema, a),
        // A power of ints that is an int is one of floats.
        [a, c] if schema.starts_with("aten::pow.int_to_int") => {
            let [x, y] = [float(b, a), float(b, c)];
            let power = b.binary(Binary::Pow, x, y);
            Some(b.convert(power, Elem::I64))
        }
        [a, c] => binary(b, name, [a, c], constants.get(1).copied().flatten()),
        [a, c, d] => ternary(b, name, [a, c, d], constants.get(2).copied().flatten()),
        _ => None,
    }
}

fn elem(b: &Builder, x: ValueId) -> Elem {
    b.elem(x).unwrap_or(Elem::I64)
}

fn float(b: &mut Builder, x: ValueId) -> ValueId {
    b.convert(x, Elem::F64)
}

fn same(b: &Builder, x: [ValueId; 2], wanted: Elem) -> bool {
    x.iter().all(|x| elem(b, *x) == wanted)
}

fn unary(b: &mut Builder, name: &str, schema: &str, x: ValueId) -> Option<ValueId> {
    let of = elem(b, x);
    let is_number = of != Elem::Bool;
    Some(match name {
        "aten::neg" if is_number => b.unary(Unary::Neg, x),
        "prim::abs" if is_number => b.unary(Unary::Abs, x),
        "aten::__not__" if of == Elem::Bool => b.unary(Unary::Not, x),
        "aten::Int" => b.convert(x, Elem::I64),
        "aten::Float" => float(b, x),
        "aten::Bool" => b.convert(x, Elem::Bool),
        "aten::floor" | "aten::ceil" if of == Elem::F64 => {
            let whole = b.unary(if name == "aten::floor" { Unary::Floor } else { Unary::Ceil }, x);
            let limit = b.constant(Scalar::Float(FAR as f64), Elem::F64);
            let size = b.unary(Unary::Abs, whole);
            let fits = b.compare(Compare::Lt, size, limit);
            b.require(fits, RAISES);
            b.convert(whole, Elem::I64)
        }
        "aten::isnan" if of == Elem::F64 => b.compare(Compare::Ne, x, x),
        "aten::isinf" | "aten::isfinite" if of == Elem::F64 => {
            let (size, infinite) =
                (b.unary(Unary::Abs, x), b.constant(Scalar::Float(f64::INFINITY), Elem::F64));
            let how = if name == "aten::isinf" { Compare::Eq } else { Compare::Lt };
            b.compare(how, size, infinite)
        }
        _ if is_number && schema.ends_with("-> float") => {
            let function = function(name)?;
            let x = float(b, x);
            b.unary(function, x)
        }
        _ => return None,
    })
}

/// Functions of floats whose rows call what kernels call.
fn function(name: &str) -> Option<Unary> {
    Some(match name {
        "aten::sqrt" => Unary::Sqrt,
        "aten::exp" => Unary::Exp,
        "aten::expm1" => Unary::Expm1,
        "aten::log" => Unary::Log,
        "aten::log10" => Unary::Log10,
        "aten::log1p" => Unary::Log1p,
        "aten::sin" => Unary::Sin,
        "aten::cos" => Unary::Cos,
        "aten::tan" => Unary::Tan,
        "aten::asin" => Unary::Asin,
        "aten::acos" => Unary::Acos,
        "aten::atan" => Unary::Atan,
        "aten::sinh" => Unary::Sinh,
        "aten::cosh" => Unary::Cosh,
        "aten::tanh" => Unary::Tanh,
        "aten::fabs" => Unary::Abs,
        "aten::round" => Unary::Round,
        _ => return None,
    })
}

fn comparison(name: &str) -> Option<Compare> {
    Some(match name {
        "aten::eq" => Compare::Eq,
        "aten::ne" => Compare::Ne,
        "aten::lt" => Compare::Lt,
        "aten::le" => Compare::Le,
        "aten::gt" => Compare::Gt,
        "aten::ge" => Compare::Ge,
        _ => return None,
    })
}

/// Both as ints, or both as floats.
fn together(b: &mut Builder, [x, y]: [ValueId; 2]) -> [ValueId; 2] {
    if same(b, [x, y], Elem::I64) { [x, y] } else { [float(b, x), float(b, y)] }
}

fn binary(b: &mut Builder, name: &str, x: [ValueId; 2], second: Option<Scalar>) -> Option<ValueId> {
    if x.iter().any(|x| elem(b, *x) == Elem::Bool) {
        return bools(b, name, x);
    }
    if let Some(how) = comparison(name) {
        let [x, y] = together(b, x);
        return Some(b.compare(how, x, y));
    }
    let ints = same(b, x, Elem::I64);
    let plain = match name {
        "aten::add" => Some(Binary::Add),
        "aten::sub" => Some(Binary::Sub),
        "aten::mul" => Some(Binary::Mul),
        "aten::__and__" if ints => Some(Binary::And),
        "aten::__or__" if ints => Some(Binary::Or),
        "aten::__xor__" if ints => Some(Binary::Xor),
        "prim::max" if ints => Some(Binary::Max),
        "prim::min" if ints => Some(Binary::Min),
        _ => None,
    };
    if let Some(op) = plain {
        let [x, y] = together(b, x);
        return Some(b.binary(op, x, y));
    }
    match name {
        "aten::floordiv" | "aten::remainder" | "aten::__round_to_zero_floordiv" if ints => {
            Some(int_division(b, name, x, second))
        }
        "aten::__lshift__" | "aten::__rshift__" if ints => {
            // The distance counts modulo 64.
            let mask = b.index(63);
            let distance = b.binary(Binary::And, x[1], mask);
            let op = if name == "aten::__lshift__" { Binary::Shl } else { Binary::Shr };
            Some(b.binary(op, x[0], distance))
        }
        _ => floats(b, name, x),
    }
}

fn bools(b: &mut Builder, name: &str, [x, y]: [ValueId; 2]) -> Option<ValueId> {
    if !same(b, [x, y], Elem::Bool) {
        return None;
    }
    Some(match name {
        "aten::__and__" => b.binary(Binary::And, x, y),
        "aten::__or__" => b.binary(Binary::Or, x, y),
        "aten::__xor__" | "aten::ne" => b.binary(Binary::Xor, x, y),
        "aten::eq" => {
            let differ = b.binary(Binary::Xor, x, y);
            b.unary(Unary::Not, differ)
        }
        _ => return None,
    })
}

/// Quotients and remainders that round down, of a divisor that is not zero.
fn int_division(b: &mut Builder, name: &str, [x, y]: [ValueId; 2], divisor: Option<Scalar>) -> ValueId {
    let zero = b.index(0);
    let known = match divisor {
        Some(Scalar::Int(n)) if n != 0 => Some(n),
        _ => None,
    };
    if known.is_none() {
        let some = b.compare(Compare::Ne, y, zero);
        b.require(some, RAISES);
    }
    if name == "aten::__round_to_zero_floordiv" {
        return b.binary(Binary::Div, x, y);
    }
    let rest = b.binary(Binary::Rem, x, y);
    let is_exact = b.compare(Compare::Eq, rest, zero);
    let (below, above) = (b.compare(Compare::Lt, rest, zero), b.compare(Compare::Lt, y, zero));
    let differ = b.binary(Binary::Xor, below, above);
    let inexact = b.unary(Unary::Not, is_exact);
    let crosses = b.binary(Binary::And, inexact, differ);
    if name == "aten::floordiv" {
        let (quotient, one) = (b.binary(Binary::Div, x, y), b.index(1));
        let lower = b.binary(Binary::Sub, quotient, one);
        return b.select(crosses, lower, quotient);
    }
    if known.is_none_or(|n| n.unsigned_abs() > FAR.unsigned_abs()) {
        // The row adds before it divides again; where that wraps around, it is asked.
        let (low, high) = (b.index(-FAR), b.index(FAR));
        let (ge, le) = (b.compare(Compare::Ge, y, low), b.compare(Compare::Le, y, high));
        let near = b.binary(Binary::And, ge, le);
        b.require(near, RAISES);
    }
    let other = b.binary(Binary::Add, rest, y);
    b.select(crosses, other, rest)
}

/// Ops that convert ints to floats.
fn floats(b: &mut Builder, name: &str, x: [ValueId; 2]) -> Option<ValueId> {
    let [x, y] = [float(b, x[0]), float(b, x[1])];
    Some(match name {
        "aten::div" => b.binary(Binary::Div, x, y),
        "aten::fmod" => b.binary(Binary::Rem, x, y),
        "aten::atan2" => b.binary(Binary::Atan2, x, y),
        "aten::copysign" => b.binary(Binary::CopySign, x, y),
        "aten::floordiv" => {
            let quotient = b.binary(Binary::Div, x, y);
            b.unary(Unary::Floor, quotient)
        }
        "aten::remainder" => {
            let rest = b.binary(Binary::Rem, x, y);
            let sum = b.binary(Binary::Add, y, rest);
            b.binary(Binary::Rem, sum, y)
        }
        // The later operand wins a tie or stands beside a NaN.
        "prim::max" | "prim::min" => {
            let how = if name == "prim::max" { Compare::Gt } else { Compare::Lt };
            let first = b.compare(how, x, y);
            b.select(first, x, y)
        }
        "aten::pow" => {
            let zero = b.constant(Scalar::Float(0.0), Elem::F64);
            let (differs, not_below) = (b.compare(Compare::Ne, x, zero), b.compare(Compare::Lt, y, zero));
            let not_below = b.unary(Unary::Not, not_below);
            let holds = b.binary(Binary::Or, differs, not_below);
            b.require(holds, RAISES);
            b.binary(Binary::Pow, x, y)
        }
        _ => return None,
    })
}

fn ternary(b: &mut Builder, name: &str, x: [ValueId; 3], third: Option<Scalar>) -> Option<ValueId> {
    if x.iter().any(|x| elem(b, *x) != Elem::I64) {
        return None;
    }
    let [first, second, step] = x;
    match name {
        // The index of an iteration, where ranges begin, and their step.
        "aten::__derive_index" => {
            let distance = b.binary(Binary::Mul, first, step);
            Some(b.binary(Binary::Add, second, distance))
        }
        "aten::__range_length" => range_length(b, [first, second, step], third),
        _ => None,
    }
}

/// The numbers from `low` to `high` by a step that every run knows.
fn range_length(b: &mut Builder, [low, high, step]: [ValueId; 3], known: Option<Scalar>) -> Option<ValueId> {
    let Some(Scalar::Int(n)) = known.filter(|n| *n != Scalar::Int(0)) else { return None };
    if n.unsigned_abs() > FAR.unsigned_abs() {
        return None;
    }
    let limits = [b.index(-FAR), b.index(FAR)];
    for bound in [low, high] {
        let (ge, le) = (b.compare(Compare::Ge, bound, limits[0]), b.compare(Compare::Le, bound, limits[1]));
        let near = b.binary(Binary::And, ge, le);
        b.require(near, RAISES);
    }
    let (one, zero) = (b.index(1), b.index(0));
    // By a step below zero the range is the one backwards.
    let (from, to) = if n > 0 { (low, high) } else { (high, low) };
    let size = if n > 0 { step } else { b.unary(Unary::Neg, step) };
    let is_some = b.compare(Compare::Lt, from, to);
    let distance = b.binary(Binary::Sub, to, from);
    let distance = b.binary(Binary::Sub, distance, one);
    let whole = b.binary(Binary::Div, distance, size);
    let length = b.binary(Binary::Add, whole, one);
    Some(b.select(is_some, length, zero))
}
