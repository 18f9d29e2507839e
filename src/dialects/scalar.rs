//! Scalar programs: the meaning of elementwise ops, written once and recorded as data.
//!
//! An op's `scalar` function runs once per combination of dtypes and records a [`Program`] of primitives. The
//! evaluator runs it over tiles of elements, the constant folder over one element, the lowering
//! splices it into a loop nest. The set of primitives is closed: every consumer matches it exhaustively, so
//! that rustc says when a backend is not finished.
//!
//! Floats of 16 bits are computed as float32 and rounded when stored. Integers wrap.

use crate::tensor::{DType, Scalar, promote_types};
use smallvec::SmallVec;
use std::sync::Arc;

/// A value of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sv(u32);

impl Sv {
    /// Stands for an optional operand that the call leaves out (`clamp` without `min`).
    pub const ABSENT: Sv = Sv(u32::MAX);

    /// Whether it is an operand that the call gives.
    pub fn is_present(self) -> bool {
        self != Sv::ABSENT
    }

    /// Its place among the instructions.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One operand: float → float, int → int unless said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// -x
    Neg,
    /// |x|; of a complex number its real magnitude
    Abs,
    /// ~x, and the logical not of a bool
    Not,
    /// e^x
    Exp,
    /// 2^x
    Exp2,
    /// e^x - 1
    Expm1,
    /// natural logarithm
    Log,
    /// base 2
    Log2,
    /// base 10
    Log10,
    /// ln(1 + x)
    Log1p,
    /// sine
    Sin,
    /// cosine
    Cos,
    /// tangent
    Tan,
    /// inverse sine
    Asin,
    /// inverse cosine
    Acos,
    /// inverse tangent
    Atan,
    /// hyperbolic sine
    Sinh,
    /// hyperbolic cosine
    Cosh,
    /// hyperbolic tangent
    Tanh,
    /// inverse hyperbolic sine
    Asinh,
    /// inverse hyperbolic cosine
    Acosh,
    /// inverse hyperbolic tangent
    Atanh,
    /// square root
    Sqrt,
    /// 1 / sqrt(x)
    Rsqrt,
    /// error function
    Erf,
    /// 1 - erf(x)
    Erfc,
    /// ln |gamma(x)|
    Lgamma,
    /// towards -inf
    Floor,
    /// towards +inf
    Ceil,
    /// to nearest, ties to even
    Round,
    /// towards zero
    Trunc,
    /// real part of a complex number
    Real,
    /// imaginary part
    Imag,
    /// complex conjugate
    Conj,
}

/// Two operands of one dtype, result of the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// x + y
    Add,
    /// x - y
    Sub,
    /// x * y
    Mul,
    /// x / y; integers towards zero, and 0 where y is 0
    Div,
    /// remainder with the sign of x (C's fmod and %); integers 0 where y is 0
    Rem,
    /// x^y; an integer with a negative exponent gives 0 unless x is 1 or -1
    Pow,
    /// atan(x / y) in the right quadrant
    Atan2,
    /// the smaller; NaN if either is
    Min,
    /// the larger; NaN if either is
    Max,
    /// x & y; logical and of bools
    And,
    /// x | y
    Or,
    /// x ^ y
    Xor,
    /// x << y; 0 where y is negative or not below the width
    Shl,
    /// x >> y, arithmetic; where y is negative or not below the width: the sign in all bits
    Shr,
    /// magnitude of x, sign of y
    CopySign,
    /// sqrt(x² + y²) without overflow
    Hypot,
    /// the next float after x towards y
    NextAfter,
}

/// Comparison of two operands of one dtype; the result is a bool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// x = y
    Eq,
    /// x ≠ y
    Ne,
    /// x < y
    Lt,
    /// x ≤ y
    Le,
    /// x > y
    Gt,
    /// x ≥ y
    Ge,
}

/// An instruction. Its operands stand before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Inst {
    /// The n-th operand's element.
    Param(u32),
    /// A number.
    Const(Scalar),
    /// One operand.
    Unary(Unary, Sv),
    /// Two operands.
    Binary(Binary, Sv, Sv),
    /// A comparison.
    Compare(Compare, Sv, Sv),
    /// `condition ? x : y`, condition a bool.
    Select(Sv, Sv, Sv),
    /// `x * y + z`, rounded once.
    Fma(Sv, Sv, Sv),
    /// Converts to the instruction's dtype, as `.to(dtype)` does.
    Convert(Sv),
}

impl Inst {
    /// The values that it reads.
    pub fn operands(self) -> impl Iterator<Item = Sv> {
        let (a, b, c) = match self {
            Inst::Param(_) | Inst::Const(_) => (None, None, None),
            Inst::Unary(_, x) | Inst::Convert(x) => (Some(x), None, None),
            Inst::Binary(_, x, y) | Inst::Compare(_, x, y) => (Some(x), Some(y), None),
            Inst::Select(x, y, z) | Inst::Fma(x, y, z) => (Some(x), Some(y), Some(z)),
        };
        [a, b, c].into_iter().flatten()
    }

    /// The same instruction on other values.
    pub fn map_operands(self, at: impl Fn(Sv) -> Sv) -> Inst {
        match self {
            Inst::Param(_) | Inst::Const(_) => self,
            Inst::Unary(op, x) => Inst::Unary(op, at(x)),
            Inst::Binary(op, x, y) => Inst::Binary(op, at(x), at(y)),
            Inst::Compare(op, x, y) => Inst::Compare(op, at(x), at(y)),
            Inst::Select(c, x, y) => Inst::Select(at(c), at(x), at(y)),
            Inst::Fma(x, y, z) => Inst::Fma(at(x), at(y), at(z)),
            Inst::Convert(x) => Inst::Convert(at(x)),
        }
    }
}

/// An argument that is neither tensor nor `Scalar` (a rounding mode, a number of decimals): the program is
/// built for its value.
#[derive(Clone, Debug, PartialEq)]
pub enum Static {
    /// Left out.
    None,
    /// `int`
    Int(i64),
    /// `float`
    Float(f64),
    /// `bool`
    Bool(bool),
    /// `str`
    Str(Arc<str>),
}

/// A recorded program: instructions with their dtypes, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    insts: Vec<(Inst, DType)>,
    params: u32,
    statics: Vec<Static>,
    /// The common dtype of the operands of the op that is being added.
    common: Option<DType>,
    /// Its operands that are tensors with dimensions, in their common dtype: no kernel takes these as they were before.
    rounded: SmallVec<[Sv; 4]>,
}

impl Program {
    /// An empty program.
    pub fn new() -> Program {
        Program::default()
    }

    /// Sets the static arguments, in schema order, of the op whose meaning is recorded next.
    pub fn set_statics(&mut self, statics: Vec<Static>) {
        self.statics = statics;
    }

    /// The n-th static argument as a float; None if left out.
    pub fn float_arg(&self, n: usize) -> Option<f64> {
        match self.statics.get(n) {
            Some(Static::Float(x)) => Some(*x),
            Some(Static::Int(x)) => Some(*x as f64),
            _ => None,
        }
    }

    /// The n-th static argument as an int; None if left out.
    pub fn int_arg(&self, n: usize) -> Option<i64> {
        match self.statics.get(n) {
            Some(Static::Int(x)) => Some(*x),
            _ => None,
        }
    }

    /// The n-th static argument as a bool; false if left out.
    pub fn bool_arg(&self, n: usize) -> bool {
        matches!(self.statics.get(n), Some(Static::Bool(true)))
    }

    /// The n-th static argument as text; empty if left out.
    pub fn str_arg(&self, n: usize) -> &str {
        match self.statics.get(n) {
            Some(Static::Str(x)) => x,
            _ => "",
        }
    }

    /// Sets the common dtype of the operands of the op that is added next.
    pub fn set_common(&mut self, common: DType) {
        self.common = Some(common);
    }

    /// Sets which operands of the op that is added next are tensors with dimensions, in their common dtype.
    pub fn set_rounded(&mut self, rounded: SmallVec<[Sv; 4]>) {
        self.rounded = rounded;
    }

    /// The dtype that operands had before they were converted to the dtype of computation: their common one.
    pub fn source_dtype(&self, value: Sv) -> DType {
        if let Some(common) = self.common {
            return common;
        }
        match self.insts[value.index()].0 {
            Inst::Convert(x) => self.dtype(x),
            _ => self.dtype(value),
        }
    }

    /// The value of a dtype that `value` is the conversion of, if it is one.
    pub fn converted_from(&self, value: Sv, dtype: DType) -> Option<Sv> {
        match self.insts[value.index()].0 {
            Inst::Convert(x) if self.dtype(x) == dtype => Some(x),
            _ => None,
        }
    }

    /// All instructions with the dtype of their value.
    pub fn insts(&self) -> &[(Inst, DType)] {
        &self.insts
    }

    /// Number of parameters.
    pub fn param_count(&self) -> usize {
        self.params as usize
    }

    /// The dtype of a value.
    pub fn dtype(&self, value: Sv) -> DType {
        self.insts[value.index()].1
    }

    /// Adds an instruction as it is; equal instructions are shared.
    pub fn push(&mut self, inst: Inst, dtype: DType) -> Sv {
        let same = |(i, d): &(Inst, DType)| *d == dtype && bitwise_equal(i, &inst);
        if let Some(at) = self.insts.iter().position(same) {
            return Sv(at as u32);
        }
        self.insts.push((inst, dtype));
        Sv(self.insts.len() as u32 - 1)
    }

    /// Adds a parameter.
    pub fn param(&mut self, dtype: DType) -> Sv {
        let n = self.params;
        self.params += 1;
        self.push(Inst::Param(n), dtype)
    }

    /// A number of the dtype of `like`.
    pub fn constant_like(&mut self, like: Sv, value: f64) -> Sv {
        let dtype = self.dtype(like);
        self.constant(Scalar::Float(value), dtype)
    }

    /// A number.
    pub fn constant(&mut self, value: Scalar, dtype: DType) -> Sv {
        let value = if dtype == DType::Bool {
            Scalar::Bool(value.to_bool())
        } else if dtype.is_integral() {
            Scalar::Int(value.to_i64())
        } else if dtype.is_complex() {
            Scalar::Complex(value.to_complex())
        } else {
            Scalar::Float(value.to_f64())
        };
        self.push(Inst::Const(value), dtype)
    }

    /// Applies a unary primitive.
    pub fn unary(&mut self, op: Unary, x: Sv) -> Sv {
        let dtype = self.dtype(x);
        if matches!(op, Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc) && dtype.is_integral() {
            return x;
        }
        // Kernels have no such primitive: what is real is its own real part and conjugate.
        if matches!(op, Unary::Real | Unary::Conj) && !dtype.is_complex() {
            return x;
        }
        let result = match op {
            Unary::Abs | Unary::Real | Unary::Imag => dtype.to_real(),
            _ => dtype,
        };
        self.push(Inst::Unary(op, x), result)
    }

    /// Applies a binary primitive; operands of two dtypes are converted to their common one.
    pub fn binary(&mut self, op: Binary, x: Sv, y: Sv) -> Sv {
        let (x, y) = self.common(x, y);
        let dtype = self.dtype(x);
        self.push(Inst::Binary(op, x, y), dtype)
    }

    /// Compares; operands of two dtypes are converted to their common one.
    pub fn compare(&mut self, op: Compare, x: Sv, y: Sv) -> Sv {
        let (x, y) = self.common(x, y);
        self.push(Inst::Compare(op, x, y), DType::Bool)
    }

    /// `condition ? x : y`
    pub fn select(&mut self, condition: Sv, x: Sv, y: Sv) -> Sv {
        let condition = self.convert(condition, DType::Bool);
        let (x, y) = self.common(x, y);
        let dtype = self.dtype(x);
        self.push(Inst::Select(condition, x, y), dtype)
    }

    /// `x * y + z`, rounded once where it is float32 or float64; other dtypes round twice.
    pub fn fma(&mut self, x: Sv, y: Sv, z: Sv) -> Sv {
        let (x, y) = self.common(x, y);
        let (x, z) = self.common(x, z);
        let dtype = self.dtype(x);
        let y = self.convert(y, dtype);
        if !matches!(dtype, DType::F32 | DType::F64) {
            let product = self.mul(x, y);
            return self.add(z, product);
        }
        self.push(Inst::Fma(x, y, z), dtype)
    }

    /// Whether a value equals zero.
    pub fn is_zero(&mut self, x: Sv) -> Sv {
        let zero = self.constant_like(x, 0.0);
        self.compare(Compare::Eq, x, zero)
    }

    /// Converts to a dtype. A bool that was converted comes back as it was; numbers
    /// become floats at once.
    pub fn convert(&mut self, x: Sv, dtype: DType) -> Sv {
        if self.dtype(x) == dtype {
            return x;
        }
        match self.insts[x.index()].0 {
            Inst::Convert(y) if dtype == DType::Bool && self.dtype(y) == DType::Bool => y,
            Inst::Const(c) if !self.dtype(x).is_complex() && dtype == DType::F64 => {
                self.constant(Scalar::Float(c.to_f64()), dtype)
            }
            Inst::Const(c) if !self.dtype(x).is_complex() && dtype == DType::F32 => {
                let rounded = match c {
                    Scalar::Int(i) => i as f32,
                    c => c.to_f64() as f32,
                };
                self.constant(Scalar::Float(rounded.into()), dtype)
            }
            _ => self.push(Inst::Convert(x), dtype),
        }
    }

    /// The value as a float of 16 bits would hold it, where `like` was one before its conversion to the dtype of
    /// computation: for functions whose PyTorch kernel rounds after each step.
    pub fn stepped(&mut self, x: Sv, like: Sv) -> Sv {
        let (narrow, wide) = (self.source_dtype(like), self.dtype(x));
        if !matches!(narrow, DType::F16 | DType::BF16) || narrow == wide {
            return x;
        }
        let rounded = self.push(Inst::Convert(x), narrow);
        self.push(Inst::Convert(rounded), wide)
    }

    /// The operand before it was rounded to a dtype of 16 bits on its way to the dtype of computation: for functions
    /// whose PyTorch kernel takes a number, or a tensor of rank 0, as it is.
    pub fn whole(&mut self, x: Sv) -> Sv {
        let dtype = self.dtype(x);
        let Inst::Convert(narrow) = self.insts[x.index()].0 else { return x };
        let Inst::Convert(source) = self.insts[narrow.index()].0 else { return x };
        if self.rounded.contains(&narrow) {
            return x;
        }
        if matches!(self.dtype(narrow), DType::F16 | DType::BF16) { self.convert(source, dtype) } else { x }
    }

    /// The same program without the instructions that `outputs` do not need, and where the outputs are in it.
    /// Parameters keep their numbers.
    pub fn pruned(&self, outputs: &[Sv]) -> (Program, Vec<Sv>) {
        let mut needed = vec![false; self.insts.len()];
        for output in outputs {
            needed[output.index()] = true;
        }
        for i in (0..self.insts.len()).rev() {
            if needed[i] {
                self.insts[i].0.operands().for_each(|x| needed[x.index()] = true);
            }
        }
        let mut result = Program { params: self.params, ..Program::default() };
        let mut map = vec![Sv::ABSENT; self.insts.len()];
        for (i, (inst, dtype)) in self.insts.iter().enumerate() {
            if needed[i] {
                map[i] = result.push(inst.map_operands(|x| map[x.index()]), *dtype);
            }
        }
        let outputs = outputs.iter().map(|x| map[x.index()]).collect();
        (result, outputs)
    }

    fn common(&mut self, x: Sv, y: Sv) -> (Sv, Sv) {
        let dtype = promote_types(self.dtype(x), self.dtype(y));
        (self.convert(x, dtype), self.convert(y, dtype))
    }

    /// Copies another program into this one, its parameters replaced by values of this one.
    pub fn splice(&mut self, other: &Program, params: &[Sv], result: Sv) -> Sv {
        let mut map: Vec<Sv> = Vec::with_capacity(other.insts.len());
        for (inst, dtype) in &other.insts {
            if let Inst::Param(n) = inst {
                map.push(params[*n as usize]);
                continue;
            }
            let inst = inst.map_operands(|x| map[x.index()]);
            let value = self.push(inst, *dtype);
            map.push(value);
        }
        map[result.index()]
    }
}

/// Constants are equal only if their bits are: 0.0 and -0.0 differ, NaN equals itself.
fn bitwise_equal(a: &Inst, b: &Inst) -> bool {
    match (a, b) {
        (Inst::Const(Scalar::Float(x)), Inst::Const(Scalar::Float(y))) => x.to_bits() == y.to_bits(),
        (Inst::Const(Scalar::Complex(x)), Inst::Const(Scalar::Complex(y))) => {
            x.re.to_bits() == y.re.to_bits() && x.im.to_bits() == y.im.to_bits()
        }
        _ => a == b,
    }
}

macro_rules! shorthands {
    (unary: $($u:ident $U:ident),*; binary: $($b:ident $B:ident),*; compare: $($c:ident $C:ident),*) => {
        /// Short names of the primitives, for rows.
        #[allow(missing_docs, reason = "each is the primitive of its name")]
        impl Program {
            $(pub fn $u(&mut self, x: Sv) -> Sv { self.unary(Unary::$U, x) })*
            $(pub fn $b(&mut self, x: Sv, y: Sv) -> Sv { self.binary(Binary::$B, x, y) })*
            $(pub fn $c(&mut self, x: Sv, y: Sv) -> Sv { self.compare(Compare::$C, x, y) })*
        }
    };
}

shorthands! {
    unary: neg Neg, abs Abs, not Not, exp Exp, exp2 Exp2, expm1 Expm1, log Log, log2 Log2, log10 Log10, log1p Log1p,
        sin Sin, cos Cos, tan Tan, asin Asin, acos Acos, atan Atan, sinh Sinh, cosh Cosh, tanh Tanh, asinh Asinh,
        acosh Acosh, atanh Atanh, sqrt Sqrt, rsqrt Rsqrt, erf Erf, erfc Erfc, lgamma Lgamma, floor Floor, ceil Ceil,
        round Round, trunc Trunc, real Real, imag Imag, conj Conj;
    binary: add Add, sub Sub, mul Mul, div Div, rem Rem, pow Pow, atan2 Atan2, min Min, max Max, and And, or Or,
        xor Xor, shl Shl, shr Shr, copysign CopySign, hypot Hypot, nextafter NextAfter;
    compare: eq Eq, ne Ne, lt Lt, le Le, gt Gt, ge Ge
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_instructions_are_shared_and_dtypes_follow() {
        let mut p = Program::new();
        let x = p.param(DType::I32);
        let y = p.param(DType::F32);
        let a = p.add(x, y);
        let b = p.add(x, y);
        assert_eq!(a, b);
        assert_eq!(p.dtype(a), DType::F32);
        let less = p.lt(a, y);
        assert_eq!(p.dtype(less), DType::Bool);
        assert_eq!((p.conj(x), p.real(y)), (x, y));
    }
}
