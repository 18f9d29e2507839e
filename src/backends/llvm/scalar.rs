//! Each scalar primitive as LLVM instructions, for scalars and vectors alike.

use super::ir::{Ir, Opcode, T, V};
use super::machine::Machine;
use super::math::Math;
use super::trig::Turn;
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Elem, Prim, unary_name};
use crate::dialects::scalar::{Binary, Compare, Unary};
use crate::tensor::Scalar;
use inkwell::{FloatPredicate as F, IntPredicate as I};

/// Emits primitives.
pub(super) struct Scalars<'a, 'c> {
    pub(super) ir: &'a Ir<'c>,
    pub(super) machine: &'a Machine,
}

impl<'c> Scalars<'_, 'c> {
    /// A number as a scalar.
    pub(super) fn constant(&self, c: Scalar, elem: Elem, lane: T<'c>) -> Result<V<'c>> {
        Ok(match (c, lane) {
            (c, T::FloatType(t)) if elem.is_float() => t.const_float(c.to_f64()).into(),
            (Scalar::Bool(b), T::IntType(t)) => t.const_int(b.into(), false).into(),
            (c, T::IntType(t)) => t.const_int(c.to_i64() as u64, true).into(),
            _ => return Err(Diagnostic::internal("a constant of an unexpected type")),
        })
    }

    /// A primitive other than a constant. `from` is the type of its operands, `elem` and `lane` of its result.
    pub(super) fn primitive(
        &self,
        prim: &Prim,
        values: &[V<'c>],
        from: Elem,
        elem: Elem,
        lane: T<'c>,
    ) -> Result<V<'c>> {
        let is_arithmetic = matches!(prim, Prim::Unary(..) | Prim::Binary(..) | Prim::Fma(..));
        if is_arithmetic && elem == Elem::BF16 && !self.machine.is_gpu() {
            let single: T<'c> = self.ir.f32().into();
            let wide = values.iter().map(|x| self.ir.cast(Opcode::FPExt, *x, single));
            let wide = wide.collect::<Result<Vec<V<'c>>>>()?;
            return self.to_bf16(self.primitive(prim, &wide, Elem::F32, Elem::F32, single)?, lane);
        }
        match (prim, values) {
            (Prim::Unary(op, _), [x]) => self.unary(*op, *x, elem, lane),
            (Prim::Binary(op, ..), [x, y]) => self.binary(*op, *x, *y, elem, lane),
            (Prim::Fma(..), [x, y, z]) => self.ir.fma(*x, *y, *z),
            (Prim::Compare(op, ..), [x, y]) => self.compare(*op, *x, *y, from),
            (Prim::Select(..), [c, x, y]) => self.ir.select(*c, *x, *y),
            (Prim::Convert(_), [x]) => self.convert(*x, from, elem, lane),
            (Prim::Bitcast(_), [x]) => self.ir.cast(Opcode::BitCast, *x, lane),
            _ => Err(Diagnostic::internal("a primitive with the wrong number of operands")),
        }
    }

    fn unary(&self, op: Unary, x: V<'c>, elem: Elem, lane: T<'c>) -> Result<V<'c>> {
        let ir = self.ir;
        match op {
            Unary::Neg if elem.is_float() => return ir.fneg(x),
            Unary::Neg => return ir.sub(ir.iconst(x, lane, 0), x),
            Unary::Abs if elem.is_float() => return ir.intrinsic("llvm.fabs", &[x.get_type()], &[x]),
            Unary::Abs if elem.is_signed() => {
                let defined: V<'c> = ir.ctx.bool_type().const_zero().into();
                return ir.intrinsic("llvm.abs", &[x.get_type()], &[x, defined]);
            }
            Unary::Abs => return Ok(x),
            Unary::Not => return ir.op(Opcode::Xor, x, ir.iconst(x, lane, -1)),
            _ => {}
        }
        if matches!(elem, Elem::F16 | Elem::BF16) {
            let wide = ir.cast(Opcode::FPExt, x, ir.f32().into())?;
            let y = self.unary(op, wide, Elem::F32, ir.f32().into())?;
            return ir.cast(Opcode::FPTrunc, y, lane);
        }
        let direct = |name: &str| ir.intrinsic(name, &[x.get_type()], &[x]);
        match op {
            Unary::Sqrt => return direct("llvm.sqrt"),
            Unary::Rsqrt => return ir.fdiv(ir.fconst(x, 1.0), direct("llvm.sqrt")?),
            Unary::Floor => return direct("llvm.floor"),
            Unary::Ceil => return direct("llvm.ceil"),
            Unary::Round => return direct("llvm.roundeven"),
            Unary::Trunc => return direct("llvm.trunc"),
            _ => {}
        }
        if elem == Elem::F32
            && let Some(y) = self.polynomial(op, x)?
        {
            return Ok(y);
        }
        self.library(c_name(op), elem, &[x])
    }

    /// Functions of f32 that have their own polynomial.
    fn polynomial(&self, op: Unary, x: V<'c>) -> Result<Option<V<'c>>> {
        let math = Math { ir: self.ir };
        let native = self.machine.scales_natively();
        Ok(Some(match op {
            Unary::Exp => math.exp(x, native)?,
            Unary::Exp2 => math.exp2(x, native)?,
            Unary::Expm1 => math.expm1(x)?,
            Unary::Log => math.log(x)?,
            Unary::Log2 => math.log_base(x, std::f64::consts::LOG2_E, 1.0)?,
            Unary::Log10 => math.log_base(x, std::f64::consts::LOG10_E, std::f64::consts::LOG10_2)?,
            Unary::Log1p => math.log1p(x)?,
            Unary::Tanh => math.tanh(x)?,
            Unary::Erf => math.erf(x)?,
            Unary::Sin => math.sine(x, Turn::Sine)?,
            Unary::Cos => math.sine(x, Turn::Cosine)?,
            Unary::Tan => math.tan(x)?,
            Unary::Asin => math.asin(x)?,
            Unary::Acos => math.acos(x)?,
            Unary::Atan => math.atan(x)?,
            _ => return Ok(None),
        }))
    }

    /// A function of the C library; a GPU has none.
    fn library(&self, name: &str, elem: Elem, args: &[V<'c>]) -> Result<V<'c>> {
        if !self.machine.has_libm() {
            return Err(Diagnostic::unsupported(format!("{name} of {} on a GPU", elem.name())));
        }
        let name = if elem == Elem::F32 { format!("{name}f") } else { name.to_string() };
        self.ir.libm(&name, args)
    }

    fn binary(&self, op: Binary, x: V<'c>, y: V<'c>, elem: Elem, lane: T<'c>) -> Result<V<'c>> {
        if elem == Elem::Bool {
            return self.binary_bool(op, x, y);
        }
        if matches!(elem, Elem::F16 | Elem::BF16) {
            let f32: T<'c> = self.ir.f32().into();
            let (x, y) = (self.ir.cast(Opcode::FPExt, x, f32)?, self.ir.cast(Opcode::FPExt, y, f32)?);
            let z = self.binary(op, x, y, Elem::F32, f32)?;
            return self.ir.cast(Opcode::FPTrunc, z, lane);
        }
        if elem.is_float() {
            self.binary_float(op, x, y, elem)
        } else {
            self.binary_int(op, x, y, elem, lane)
        }
    }

    fn binary_float(&self, op: Binary, x: V<'c>, y: V<'c>, elem: Elem) -> Result<V<'c>> {
        let ir = self.ir;
        match op {
            Binary::Add => ir.add(x, y),
            Binary::Sub => ir.sub(x, y),
            Binary::Mul => ir.mul(x, y),
            Binary::Div => ir.fdiv(x, y),
            Binary::Min | Binary::Max => {
                let how = if op == Binary::Min { F::OLT } else { F::OGT };
                // Of equal ones the left, as zeros differ in sign: relu(-0) is -0.
                let picked = ir.select(ir.fcmp(how, y, x)?, y, x)?;
                // A NaN on the left came through the false comparison; one on the right is put back.
                ir.select(ir.fcmp(F::UNO, y, y)?, y, picked)
            }
            Binary::CopySign => ir.intrinsic("llvm.copysign", &[x.get_type()], &[x, y]),
            Binary::Rem => {
                let digits = if elem == Elem::F32 { f32::MANTISSA_DIGITS } else { f64::MANTISSA_DIGITS };
                Math { ir }.remainder((x, y), digits as i32, || self.library("fmod", elem, &[x, y]))
            }
            Binary::Pow if elem == Elem::F32 => Math { ir }.pow(x, y),
            Binary::Pow => self.library("pow", elem, &[x, y]),
            Binary::Atan2 if elem == Elem::F32 => Math { ir }.atan2(x, y),
            Binary::Atan2 => self.library("atan2", elem, &[x, y]),
            Binary::Hypot if elem == Elem::F32 => Math { ir }.hypotenuse(x, y),
            Binary::Hypot => self.library("hypot", elem, &[x, y]),
            Binary::NextAfter => {
                let lane: T<'c> = if elem == Elem::F32 { ir.i32() } else { ir.i64().into() };
                Math { ir }.next_after(x, y, lane)
            }
            Binary::And | Binary::Or | Binary::Xor | Binary::Shl | Binary::Shr => {
                Err(Diagnostic::internal("a bit operation on floats"))
            }
        }
    }

    /// Bools as the numbers 0 and 1, a result other than 0 being true.
    fn binary_bool(&self, op: Binary, x: V<'c>, y: V<'c>) -> Result<V<'c>> {
        match op {
            Binary::Add | Binary::Or | Binary::Max => self.ir.op(Opcode::Or, x, y),
            Binary::Sub | Binary::Xor => self.ir.op(Opcode::Xor, x, y),
            Binary::Mul | Binary::And | Binary::Min => self.ir.op(Opcode::And, x, y),
            _ => Err(Diagnostic::internal("an operation that bools do not have")),
        }
    }

    fn binary_int(&self, op: Binary, x: V<'c>, y: V<'c>, elem: Elem, lane: T<'c>) -> Result<V<'c>> {
        let ir = self.ir;
        let signed = elem.is_signed();
        let zero = ir.iconst(x, lane, 0);
        match op {
            Binary::Add => ir.add(x, y),
            Binary::Sub => ir.sub(x, y),
            Binary::Mul => ir.mul(x, y),
            Binary::Div | Binary::Rem => self.divide(op, x, y, elem, lane),
            Binary::Min | Binary::Max => {
                let name = match (op, signed) {
                    (Binary::Min, true) => "llvm.smin",
                    (Binary::Min, false) => "llvm.umin",
                    (_, true) => "llvm.smax",
                    (_, false) => "llvm.umax",
                };
                ir.intrinsic(name, &[x.get_type()], &[x, y])
            }
            Binary::And => ir.op(Opcode::And, x, y),
            Binary::Or => ir.op(Opcode::Or, x, y),
            Binary::Xor => ir.op(Opcode::Xor, x, y),
            Binary::Shl | Binary::Shr => {
                let width = elem.size() as i64 * 8;
                let inside = ir.icmp(I::ULT, y, ir.iconst(y, lane, width))?;
                if op == Binary::Shl {
                    let amount = ir.select(inside, y, zero)?;
                    return ir.select(inside, ir.op(Opcode::Shl, x, amount)?, zero);
                }
                let amount = ir.select(inside, y, ir.iconst(y, lane, width - 1))?;
                ir.op(if signed { Opcode::AShr } else { Opcode::LShr }, x, amount)
            }
            Binary::Pow => Err(Diagnostic::unsupported("powers of integers in compiled kernels")),
            Binary::Atan2 | Binary::CopySign | Binary::Hypot | Binary::NextAfter => {
                Err(Diagnostic::internal("a float operation on integers"))
            }
        }
    }

    /// Quotient or remainder towards zero; 0 where the divisor is 0, wrapping for the smallest number by -1.
    fn divide(&self, op: Binary, x: V<'c>, y: V<'c>, elem: Elem, lane: T<'c>) -> Result<V<'c>> {
        let ir = self.ir;
        let (zero, one) = (ir.iconst(x, lane, 0), ir.iconst(x, lane, 1));
        let by_zero = ir.icmp(I::EQ, y, zero)?;
        let safe = ir.select(by_zero, one, y)?;
        let (result, by_minus_one) = if elem.is_signed() {
            let minus_one = ir.icmp(I::EQ, y, ir.iconst(x, lane, -1))?;
            let safe = ir.select(minus_one, one, safe)?;
            let op = if op == Binary::Div { Opcode::SDiv } else { Opcode::SRem };
            (ir.op(op, x, safe)?, Some(minus_one))
        } else {
            (ir.op(if op == Binary::Div { Opcode::UDiv } else { Opcode::URem }, x, safe)?, None)
        };
        let result = match by_minus_one {
            Some(is) if op == Binary::Div => ir.select(is, ir.sub(zero, x)?, result)?,
            _ => result,
        };
        ir.select(by_zero, zero, result)
    }

    fn compare(&self, op: Compare, x: V<'c>, y: V<'c>, from: Elem) -> Result<V<'c>> {
        if from.is_float() {
            let how = match op {
                Compare::Eq => F::OEQ,
                Compare::Ne => F::UNE,
                Compare::Lt => F::OLT,
                Compare::Le => F::OLE,
                Compare::Gt => F::OGT,
                Compare::Ge => F::OGE,
            };
            return self.ir.fcmp(how, x, y);
        }
        let signed = from.is_signed();
        let how = match op {
            Compare::Eq => I::EQ,
            Compare::Ne => I::NE,
            Compare::Lt => {
                if signed {
                    I::SLT
                } else {
                    I::ULT
                }
            }
            Compare::Le => {
                if signed {
                    I::SLE
                } else {
                    I::ULE
                }
            }
            Compare::Gt => {
                if signed {
                    I::SGT
                } else {
                    I::UGT
                }
            }
            Compare::Ge => {
                if signed {
                    I::SGE
                } else {
                    I::UGE
                }
            }
        };
        self.ir.icmp(how, x, y)
    }

    fn convert(&self, x: V<'c>, from: Elem, to: Elem, lane: T<'c>) -> Result<V<'c>> {
        let ir = self.ir;
        if from == to {
            return Ok(x);
        }
        match (from.is_float(), to.is_float()) {
            (_, true) if to == Elem::BF16 && !self.machine.is_gpu() => {
                let single = ir.f32().into();
                self.to_bf16(self.convert(x, from, Elem::F32, single)?, lane)
            }
            (true, true) if from.size() < to.size() => ir.cast(Opcode::FPExt, x, lane),
            (true, true) if from.size() > to.size() => ir.cast(Opcode::FPTrunc, x, lane),
            (true, true) => {
                // Half and bfloat16: by way of f32.
                let wide = ir.cast(Opcode::FPExt, x, ir.f32().into())?;
                ir.cast(Opcode::FPTrunc, wide, lane)
            }
            (true, false) if to == Elem::Bool => ir.fcmp(F::UNE, x, ir.fconst(x, 0.0)),
            (true, false) => self.float_to_int(x, to, lane),
            (false, true) => {
                let op = if from.is_signed() { Opcode::SIToFP } else { Opcode::UIToFP };
                ir.cast(op, x, lane)
            }
            (false, false) if to == Elem::Bool => {
                ir.icmp(I::NE, x, ir.iconst(x, super::ir::lane_type(x.get_type()), 0))
            }
            (false, false) if from.size() > to.size() => ir.cast(Opcode::Trunc, x, lane),
            (false, false) if from == Elem::Bool => ir.cast(Opcode::ZExt, x, lane),
            (false, false) if from.size() == to.size() => Ok(x),
            (false, false) => ir.cast(if from.is_signed() { Opcode::SExt } else { Opcode::ZExt }, x, lane),
        }
    }

    /// The upper half of a float32, rounded to the nearest, ties to even. LLVM would call a function that C libraries before GCC 13
    /// do not have, or, where the CPU has an instruction for it, flush what is below the smallest normal number.
    fn to_bf16(&self, x: V<'c>, lane: T<'c>) -> Result<V<'c>> {
        let (ir, int) = (self.ir, self.ir.i32());
        let number = |value| ir.iconst(x, int, value);
        let bits = ir.cast(Opcode::BitCast, x, int)?;
        let odd = ir.op(Opcode::And, ir.op(Opcode::LShr, bits, number(16))?, number(1))?;
        let rounded = ir.add(bits, ir.add(odd, number(0x7FFF))?)?;
        let quiet = ir.op(Opcode::Or, bits, number(0x0040_0000))?;
        let bits = ir.select(ir.fcmp(F::UNO, x, x)?, quiet, rounded)?;
        let upper =
            ir.cast(Opcode::Trunc, ir.op(Opcode::LShr, bits, number(16))?, ir.ctx.i16_type().into())?;
        ir.cast(Opcode::BitCast, upper, lane)
    }

    /// As x86-64 truncates to 64 bits: NaN and what does not fit give the smallest integer; then wraps.
    fn float_to_int(&self, x: V<'c>, to: Elem, lane: T<'c>) -> Result<V<'c>> {
        let ir = self.ir;
        let i64: T<'c> = ir.i64().into();
        let limit = 9_223_372_036_854_775_808.0;
        let low = ir.fcmp(F::OGE, x, ir.fconst(x, -limit))?;
        let high = ir.fcmp(F::OLT, x, ir.fconst(x, limit))?;
        let fits = ir.op(Opcode::And, low, high)?;
        let whole = ir.cast(Opcode::FPToSI, x, i64)?;
        let whole = ir.select(fits, whole, ir.iconst(x, i64, i64::MIN))?;
        if to == Elem::I64 { Ok(whole) } else { ir.cast(Opcode::Trunc, whole, lane) }
    }
}

/// The name in the C library, for doubles.
fn c_name(op: Unary) -> &'static str {
    match op {
        // glibc's gamma function of this name is the reentrant one's front.
        Unary::Lgamma => "lgamma",
        other => unary_name(other),
    }
}
