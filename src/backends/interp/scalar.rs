//! What each primitive means, on one number. Floats of 16 and 32 bits compute in f32.

use crate::backends::Arg;
use crate::dialects::loops::Elem;
use crate::dialects::scalar::{Binary, Compare, Unary};
use crate::tensor::Scalar;
use half::{bf16, f16};

/// A number in a register: integers are kept wrapped to their width.
#[derive(Clone, Copy, Debug)]
pub(super) enum Num {
    B(bool),
    I(i64),
    F(f32),
    D(f64),
}

/// An integer as its type holds it.
fn wrap(x: i64, elem: Elem) -> i64 {
    match elem {
        Elem::U8 => i64::from(x as u8),
        Elem::I8 => i64::from(x as i8),
        Elem::I16 => i64::from(x as i16),
        Elem::I32 => i64::from(x as i32),
        _ => x,
    }
}

/// Number of bits of an integer type.
fn width(elem: Elem) -> i64 {
    elem.size() as i64 * 8
}

/// Rounds to the storage type, for floats of 16 bits.
fn round_to(x: f32, elem: Elem) -> f32 {
    match elem {
        Elem::F16 => f16::from_f32(x).to_f32(),
        Elem::BF16 => bf16::from_f32(x).to_f32(),
        _ => x,
    }
}

impl Num {
    pub(super) fn of_scalar(value: Scalar, elem: Elem) -> Num {
        match elem {
            Elem::Bool => Num::B(value.to_bool()),
            Elem::F64 => Num::D(value.to_f64()),
            Elem::F32 | Elem::F16 | Elem::BF16 => Num::F(round_to(value.to_f64() as f32, elem)),
            _ => Num::I(wrap(value.to_i64(), elem)),
        }
    }

    pub(super) fn of_arg(arg: Arg, elem: Elem) -> Num {
        match arg {
            Arg::Int(x) => Num::of_scalar(Scalar::Int(x), elem),
            Arg::Float(x) => Num::of_scalar(Scalar::Float(x), elem),
            Arg::Bool(x) => Num::B(x),
            Arg::Buffer(..) => Num::I(0),
        }
    }

    pub(super) fn from_bytes(bytes: &[u8], elem: Elem) -> Num {
        let mut raw = [0u8; 8];
        raw[..elem.size().min(bytes.len())].copy_from_slice(&bytes[..elem.size().min(bytes.len())]);
        let bits = u64::from_le_bytes(raw);
        match elem {
            Elem::Bool => Num::B(bits != 0),
            Elem::F16 => Num::F(f16::from_bits(bits as u16).to_f32()),
            Elem::BF16 => Num::F(bf16::from_bits(bits as u16).to_f32()),
            Elem::F32 => Num::F(f32::from_bits(bits as u32)),
            Elem::F64 => Num::D(f64::from_bits(bits)),
            _ => Num::I(wrap(bits as i64, elem)),
        }
    }

    pub(super) fn to_bytes(self, elem: Elem, out: &mut [u8]) {
        let bits = match elem {
            Elem::Bool => u64::from(self.to_bool()),
            Elem::F16 => u64::from(f16::from_f32(self.to_f32()).to_bits()),
            Elem::BF16 => u64::from(bf16::from_f32(self.to_f32()).to_bits()),
            Elem::F32 => u64::from(self.to_f32().to_bits()),
            Elem::F64 => self.to_f64().to_bits(),
            _ => self.to_i64() as u64,
        };
        out.copy_from_slice(&bits.to_le_bytes()[..out.len()]);
    }

    pub(super) fn to_bool(self) -> bool {
        self.scalar().to_bool()
    }

    pub(super) fn to_i64(self) -> i64 {
        self.scalar().to_i64()
    }

    fn to_f64(self) -> f64 {
        self.scalar().to_f64()
    }

    fn to_f32(self) -> f32 {
        match self {
            Num::F(x) => x,
            Num::I(x) => x as f32,
            other => other.to_f64() as f32,
        }
    }

    fn scalar(self) -> Scalar {
        match self {
            Num::B(x) => Scalar::Bool(x),
            Num::I(x) => Scalar::Int(x),
            Num::F(x) => Scalar::Float(x.into()),
            Num::D(x) => Scalar::Float(x),
        }
    }
}

pub(super) fn convert(x: Num, elem: Elem) -> Num {
    match (x, elem) {
        (Num::I(x), Elem::F32) => Num::F(x as f32),
        (Num::I(x), Elem::F16 | Elem::BF16) => Num::F(round_to(x as f32, elem)),
        (x, elem) => Num::of_scalar(x.scalar(), elem),
    }
}

pub(super) fn bitcast(x: Num, from: Elem, to: Elem) -> Num {
    let mut bytes = [0u8; 8];
    x.to_bytes(from, &mut bytes[..from.size()]);
    Num::from_bytes(&bytes, to)
}

pub(super) fn fma(x: Num, y: Num, z: Num) -> Num {
    match (x, y, z) {
        (Num::F(x), Num::F(y), Num::F(z)) => Num::F(x.mul_add(y, z)),
        _ => Num::D(x.to_f64().mul_add(y.to_f64(), z.to_f64())),
    }
}

pub(super) fn compare(op: Compare, x: Num, y: Num) -> bool {
    fn holds<T: PartialOrd>(op: Compare, x: T, y: T) -> bool {
        match op {
            Compare::Eq => x == y,
            Compare::Ne => x != y,
            Compare::Lt => x < y,
            Compare::Le => x <= y,
            Compare::Gt => x > y,
            Compare::Ge => x >= y,
        }
    }
    match (x, y) {
        (Num::F(x), Num::F(y)) => holds(op, x, y),
        (Num::D(x), Num::D(y)) => holds(op, x, y),
        _ => holds(op, x.to_i64(), y.to_i64()),
    }
}

pub(super) fn unary(op: Unary, elem: Elem, x: Num) -> Num {
    match x {
        Num::B(x) => Num::B(if op == Unary::Not { !x } else { x }),
        Num::I(x) => Num::I(wrap(unary_int(op, x), elem)),
        Num::F(x) => Num::F(round_to(unary_f32(op, x), elem)),
        Num::D(x) => Num::D(unary_f64(op, x)),
    }
}

fn unary_int(op: Unary, x: i64) -> i64 {
    match op {
        Unary::Neg => x.wrapping_neg(),
        Unary::Abs => x.wrapping_abs(),
        Unary::Not => !x,
        // Decoding has refused the others.
        _ => x,
    }
}

/// Functions of f32 are computed in f64 and rounded: the reference is as good as it can be.
fn unary_f32(op: Unary, x: f32) -> f32 {
    match op {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        _ => unary_f64(op, x.into()) as f32,
    }
}

fn unary_f64(op: Unary, x: f64) -> f64 {
    match op {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Exp => x.exp(),
        Unary::Exp2 => x.exp2(),
        Unary::Expm1 => x.exp_m1(),
        Unary::Log => x.ln(),
        Unary::Log2 => x.log2(),
        Unary::Log10 => x.log10(),
        Unary::Log1p => x.ln_1p(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tan => x.tan(),
        Unary::Asin => x.asin(),
        Unary::Acos => x.acos(),
        Unary::Atan => x.atan(),
        Unary::Sinh => x.sinh(),
        Unary::Cosh => x.cosh(),
        Unary::Tanh => x.tanh(),
        Unary::Asinh => libm::asinh(x),
        // libm's takes a far negative number for its square.
        Unary::Acosh if x < 1.0 => f64::NAN,
        Unary::Acosh => libm::acosh(x),
        Unary::Atanh => libm::atanh(x),
        Unary::Sqrt => x.sqrt(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Erf => libm::erf(x),
        Unary::Erfc => libm::erfc(x),
        Unary::Lgamma => libm::lgamma(x),
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => x.round_ties_even(),
        Unary::Trunc => x.trunc(),
        // Defined on bools, integers and complex numbers only; decoding has refused them here.
        Unary::Not | Unary::Real | Unary::Imag | Unary::Conj => x,
    }
}

pub(super) fn binary(op: Binary, elem: Elem, x: Num, y: Num) -> Num {
    match (x, y) {
        (Num::B(x), Num::B(y)) => Num::B(binary_bool(op, x, y)),
        (Num::I(x), Num::I(y)) => Num::I(wrap(binary_int(op, elem, x, y), elem)),
        (Num::F(x), Num::F(y)) => Num::F(round_to(binary_f32(op, x, y), elem)),
        (x, y) => Num::D(binary_f64(op, x.to_f64(), y.to_f64())),
    }
}

/// Bools as the numbers 0 and 1, a result other than 0 being true.
fn binary_bool(op: Binary, x: bool, y: bool) -> bool {
    match op {
        Binary::Add | Binary::Or | Binary::Max => x | y,
        Binary::Sub | Binary::Xor => x ^ y,
        Binary::Mul | Binary::And | Binary::Min => x & y,
        _ => x,
    }
}

fn binary_int(op: Binary, elem: Elem, x: i64, y: i64) -> i64 {
    let in_width = (0..width(elem)).contains(&y);
    match op {
        Binary::Add => x.wrapping_add(y),
        Binary::Sub => x.wrapping_sub(y),
        Binary::Mul => x.wrapping_mul(y),
        Binary::Div => {
            if y == 0 {
                0
            } else {
                x.wrapping_div(y)
            }
        }
        Binary::Rem => {
            if y == 0 {
                0
            } else {
                x.wrapping_rem(y)
            }
        }
        Binary::Pow => int_pow(x, y),
        Binary::Min => x.min(y),
        Binary::Max => x.max(y),
        Binary::And => x & y,
        Binary::Or => x | y,
        Binary::Xor => x ^ y,
        Binary::Shl => {
            if in_width {
                x << y
            } else {
                0
            }
        }
        Binary::Shr => x >> if in_width { y } else { width(elem) - 1 },
        // Defined on floats only; decoding has refused them here.
        Binary::Atan2 | Binary::CopySign | Binary::Hypot | Binary::NextAfter => x,
    }
}

/// Wrapping power; a negative exponent gives 0 unless the base is 1 or -1.
pub(super) fn int_pow(base: i64, exponent: i64) -> i64 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 => {
                if exponent % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        };
    }
    let (mut result, mut square, mut rest) = (1i64, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest >>= 1;
    }
    result
}

fn binary_f32(op: Binary, x: f32, y: f32) -> f32 {
    match op {
        Binary::Add => x + y,
        Binary::Sub => x - y,
        Binary::Mul => x * y,
        Binary::Div => x / y,
        Binary::Rem => x % y,
        Binary::NextAfter => libm::nextafterf(x, y),
        _ => binary_f64(op, x.into(), y.into()) as f32,
    }
}

fn binary_f64(op: Binary, x: f64, y: f64) -> f64 {
    match op {
        Binary::Add => x + y,
        Binary::Sub => x - y,
        Binary::Mul => x * y,
        Binary::Div => x / y,
        Binary::Rem => x % y,
        Binary::Pow => x.powf(y),
        Binary::Atan2 => x.atan2(y),
        Binary::Min => {
            if x.is_nan() || x <= y {
                x
            } else {
                y
            }
        }
        Binary::Max => {
            if x.is_nan() || x >= y {
                x
            } else {
                y
            }
        }
        Binary::CopySign => x.copysign(y),
        Binary::Hypot => x.hypot(y),
        Binary::NextAfter => libm::nextafter(x, y),
        // Defined on integers and bools only; decoding has refused them here.
        Binary::And | Binary::Or | Binary::Xor | Binary::Shl | Binary::Shr => x,
    }
}
