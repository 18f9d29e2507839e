//! Registers of the tile evaluator and what each instruction does to them: one plain loop over a tile.
//!
//! Floats of 16 bits are held as float32 and rounded after every instruction of their dtype.

use super::lane::{self, Int, Real};
use crate::diag::{Diagnostic, Result};
use crate::dialects::scalar::{Binary, Compare, Inst, Program, Sv, Unary};
use crate::tensor::{DType, E4m3fn, E4m3fnuz, E5m2, E5m2fnuz, E8m0fnu, Element, Scalar};
use half::{bf16, f16};
use num_complex::{Complex, Complex64};

/// The elements of a register: its own, or a piece of an operand or of a result, where they lie as they are computed with.
pub(super) enum Slot<'a, T> {
    Own(Vec<T>),
    Operand(&'a [T]),
    Result(&'a mut [T]),
}

impl<T> Slot<'_, T> {
    /// None for what is read only.
    fn get_mut(&mut self) -> Option<&mut [T]> {
        match self {
            Slot::Own(own) => Some(own),
            Slot::Operand(_) => None,
            Slot::Result(result) => Some(result),
        }
    }
}

impl<T> std::ops::Deref for Slot<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Slot::Own(own) => own,
            Slot::Operand(operand) => operand,
            Slot::Result(result) => result,
        }
    }
}

/// A register: one value for each element of a tile.
pub(super) enum Tile<'a> {
    U8(Slot<'a, u8>),
    I8(Slot<'a, i8>),
    I16(Slot<'a, i16>),
    I32(Slot<'a, i32>),
    I64(Slot<'a, i64>),
    U16(Slot<'a, u16>),
    U32(Slot<'a, u32>),
    U64(Slot<'a, u64>),
    F32(Slot<'a, f32>),
    F64(Slot<'a, f64>),
    C64(Slot<'a, Complex<f32>>),
    C128(Slot<'a, Complex64>),
    Bool(Slot<'a, bool>),
}

/// An element of a register.
pub(super) trait Lane: Copy + Send + Sync + 'static {
    fn of<'t>(tile: &'t Tile<'_>) -> Option<&'t [Self]>;
    /// None of another dtype's register, and of an operand's.
    fn of_mut<'t>(tile: &'t mut Tile<'_>) -> Option<&'t mut [Self]>;
    fn tile(slot: Slot<'_, Self>) -> Tile<'_>;
}

macro_rules! lanes {
    ($($type:ty, $variant:ident);*) => {
        $(impl Lane for $type {
            fn of<'t>(tile: &'t Tile<'_>) -> Option<&'t [$type]> {
                if let Tile::$variant(x) = tile { Some(x) } else { None }
            }
            fn of_mut<'t>(tile: &'t mut Tile<'_>) -> Option<&'t mut [$type]> {
                if let Tile::$variant(x) = tile { x.get_mut() } else { None }
            }
            fn tile(slot: Slot<'_, $type>) -> Tile<'_> {
                Tile::$variant(slot)
            }
        })*
    };
}
lanes! { u8, U8; i8, I8; i16, I16; i32, I32; i64, I64; u16, U16; u32, U32; u64, U64; f32, F32; f64, F64; Complex<f32>, C64; Complex64, C128; bool, Bool }

/// Runs `$body` with `$T` bound to the type of a dtype's elements where registers hold these as memory does; None elsewhere.
macro_rules! as_in_memory {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::U8 => {
                type $T = u8;
                Some($body)
            }
            DType::I8 => {
                type $T = i8;
                Some($body)
            }
            DType::I16 => {
                type $T = i16;
                Some($body)
            }
            DType::I32 => {
                type $T = i32;
                Some($body)
            }
            DType::I64 => {
                type $T = i64;
                Some($body)
            }
            DType::U16 => {
                type $T = u16;
                Some($body)
            }
            DType::U32 => {
                type $T = u32;
                Some($body)
            }
            DType::U64 => {
                type $T = u64;
                Some($body)
            }
            DType::F32 => {
                type $T = f32;
                Some($body)
            }
            DType::F64 => {
                type $T = f64;
                Some($body)
            }
            DType::C64 => {
                type $T = Complex<f32>;
                Some($body)
            }
            DType::C128 => {
                type $T = Complex64;
                Some($body)
            }
            _ => None,
        }
    };
}

impl<'a> Tile<'a> {
    pub(super) fn new(dtype: DType, n: usize) -> Result<Tile<'a>> {
        let own = as_in_memory!(dtype, T => T::tile(Slot::Own(vec![T::default(); n])));
        if let Some(own) = own {
            return Ok(own);
        }
        Ok(match dtype {
            dtype if dtype.is_float8() => Tile::F32(Slot::Own(vec![0.0; n])),
            DType::F16 | DType::BF16 => Tile::F32(Slot::Own(vec![0.0; n])),
            DType::Bool => Tile::Bool(Slot::Own(vec![false; n])),
            _ => {
                return Err(Diagnostic::unsupported(format!(
                    "tensors of dtype {} are not supported",
                    dtype.name()
                )));
            }
        })
    }

    /// A piece of an operand as it lies in memory; None of a dtype that registers hold otherwise.
    pub(super) fn operand(dtype: DType, bytes: &'a [u8]) -> Option<Tile<'a>> {
        as_in_memory!(dtype, T => T::tile(Slot::Operand(bytemuck::cast_slice(bytes))))
    }

    /// A piece of a result; gives it back of a dtype that registers hold otherwise.
    pub(super) fn result(dtype: DType, bytes: &'a mut [u8]) -> Result<Tile<'a>, &'a mut [u8]> {
        if !Tile::lies_in_memory(dtype) {
            return Err(bytes);
        }
        let tile = as_in_memory!(dtype, T => T::tile(Slot::Result(bytemuck::cast_slice_mut(bytes))));
        Ok(tile.unwrap_or(Tile::Bool(Slot::Own(Vec::new()))))
    }

    /// Whether it is a piece of an operand.
    pub(super) fn is_operand(&self) -> bool {
        macro_rules! any {
            ($($variant:ident)*) => {
                match self { $(Tile::$variant(slot) => matches!(slot, Slot::Operand(_)),)* }
            };
        }
        any!(U8 I8 I16 I32 I64 U16 U32 U64 F32 F64 C64 C128 Bool)
    }

    /// Whether registers of a dtype hold its elements as memory does.
    pub(super) fn lies_in_memory(dtype: DType) -> bool {
        as_in_memory!(dtype, T => size_of::<T>()).is_some()
    }

    /// The same number everywhere. What is a piece of an operand stays.
    pub(super) fn fill(&mut self, x: Scalar, dtype: DType) {
        fn all<T: Element>(slot: &mut Slot<'_, T>, x: Scalar) {
            if let Some(slot) = slot.get_mut() {
                slot.fill(Element::from_scalar(x));
            }
        }
        match self {
            Tile::U8(t) => all(t, x),
            Tile::I8(t) => all(t, x),
            Tile::I16(t) => all(t, x),
            Tile::I32(t) => all(t, x),
            Tile::I64(t) => all(t, x),
            Tile::U16(t) => all(t, x),
            Tile::U32(t) => all(t, x),
            Tile::U64(t) => all(t, x),
            Tile::F32(t) => {
                if let Some(t) = t.get_mut() {
                    t.fill(round_to(dtype, Element::from_scalar(x)));
                }
            }
            Tile::F64(t) => all(t, x),
            Tile::C64(t) => all(t, x),
            Tile::C128(t) => all(t, x),
            Tile::Bool(t) => {
                if let Some(t) = t.get_mut() {
                    t.fill(x.to_bool());
                }
            }
        }
    }
}

/// The nearest number of a dtype of 16 or 8 bits; any other dtype leaves it alone.
fn round_to(dtype: DType, x: f32) -> f32 {
    match dtype {
        DType::F16 => f16::from_f32(x).to_f32(),
        DType::BF16 => bf16::from_f32(x).to_f32(),
        DType::F8E4m3fn => E4m3fn::from_f32(x).to_f32(),
        DType::F8E5m2 => E5m2::from_f32(x).to_f32(),
        DType::F8E4m3fnuz => E4m3fnuz::from_f32(x).to_f32(),
        DType::F8E5m2fnuz => E5m2fnuz::from_f32(x).to_f32(),
        DType::F8E8m0fnu => E8m0fnu::from_f32(x).to_f32(),
        _ => x,
    }
}

pub(super) fn mismatch() -> Diagnostic {
    Diagnostic::internal("an instruction's dtype is not its register's")
}

/// Computes one instruction for a tile.
pub(super) fn step(
    inst: Inst,
    dtype: DType,
    program: &Program,
    regs: &[Tile<'_>],
    out: &mut Tile<'_>,
) -> Result<()> {
    let reg = |x: Sv| &regs[x.index()];
    let done = match inst {
        Inst::Param(_) | Inst::Const(_) => Some(()),
        Inst::Unary(op, x) => unary(op, program.dtype(x), reg(x), out),
        Inst::Binary(op, x, y) => binary(op, reg(x), reg(y), out),
        Inst::Compare(op, x, y) => compare(op, reg(x), reg(y), out),
        Inst::Select(c, x, y) => select(reg(c), reg(x), reg(y), out),
        Inst::Fma(x, y, z) => fma(reg(x), reg(y), reg(z), out),
        Inst::Convert(x) => convert(reg(x), out),
    };
    if (matches!(dtype, DType::F16 | DType::BF16) || dtype.is_float8())
        && let Some(values) = f32::of_mut(out)
    {
        values.iter_mut().for_each(|x| *x = round_to(dtype, *x));
    }
    done.ok_or_else(|| Diagnostic::unsupported(format!("{inst:?} is not defined for {}", dtype.name())))
}

#[inline(always)]
fn map1<A: Lane, R: Lane>(x: &Tile<'_>, out: &mut Tile<'_>, f: impl Fn(A) -> R) -> Option<()> {
    let (x, out) = (A::of(x)?, R::of_mut(out)?);
    out.iter_mut().zip(x).for_each(|(o, x)| *o = f(*x));
    Some(())
}

#[inline(always)]
fn map2<A: Lane, R: Lane>(
    x: &Tile<'_>,
    y: &Tile<'_>,
    out: &mut Tile<'_>,
    f: impl Fn(A, A) -> R,
) -> Option<()> {
    let (x, y, out) = (A::of(x)?, A::of(y)?, R::of_mut(out)?);
    out.iter_mut().zip(x.iter().zip(y)).for_each(|(o, (x, y))| *o = f(*x, *y));
    Some(())
}

/// As [`map1`], compiled for the widest vectors of the machine.
#[inline(always)]
fn wide1<A: Lane, R: Lane>(x: &Tile<'_>, out: &mut Tile<'_>, f: impl Fn(A) -> R) -> Option<()> {
    let (x, out) = (A::of(x)?, R::of_mut(out)?);
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || out.iter_mut().zip(x).for_each(|(o, x)| *o = f(*x)),
    );
    Some(())
}

/// As [`map2`], compiled for the widest vectors of the machine: for the few functions that most programs are made of.
#[inline(always)]
fn wide2<A: Lane, R: Lane>(
    x: &Tile<'_>,
    y: &Tile<'_>,
    out: &mut Tile<'_>,
    f: impl Fn(A, A) -> R,
) -> Option<()> {
    let (x, y, out) = (A::of(x)?, A::of(y)?, R::of_mut(out)?);
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || out.iter_mut().zip(x.iter().zip(y)).for_each(|(o, (x, y))| *o = f(*x, *y)),
    );
    Some(())
}

/// Runs `$body` with `$T` bound to an integer register's type, and other bodies for the other kinds.
macro_rules! by_kind {
    ($tile:expr, int $T:ident => $int:expr, real $F:ident => $real:expr, complex $C:ident => $complex:expr, bool => $bool:expr) => {
        match $tile {
            Tile::U8(_) => {
                type $T = u8;
                $int
            }
            Tile::I8(_) => {
                type $T = i8;
                $int
            }
            Tile::I16(_) => {
                type $T = i16;
                $int
            }
            Tile::I32(_) => {
                type $T = i32;
                $int
            }
            Tile::I64(_) => {
                type $T = i64;
                $int
            }
            Tile::U16(_) => {
                type $T = u16;
                $int
            }
            Tile::U32(_) => {
                type $T = u32;
                $int
            }
            Tile::U64(_) => {
                type $T = u64;
                $int
            }
            Tile::F32(_) => {
                type $F = f32;
                $real
            }
            Tile::F64(_) => {
                type $F = f64;
                $real
            }
            Tile::C64(_) => {
                type $C = f32;
                $complex
            }
            Tile::C128(_) => {
                type $C = f64;
                $complex
            }
            Tile::Bool(_) => $bool,
        }
    };
}

fn widen<F: Into<f64>>(z: Complex<F>) -> Complex64 {
    Complex64::new(z.re.into(), z.im.into())
}

fn unary(op: Unary, dtype: DType, x: &Tile<'_>, out: &mut Tile<'_>) -> Option<()> {
    by_kind!(x,
        int T => match op {
            Unary::Neg => map1(x, out, |x: T| x.wrapping_neg()),
            Unary::Abs => map1(x, out, |x: T| Int::abs(x)),
            Unary::Not => map1(x, out, |x: T| !x),
            Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc | Unary::Real | Unary::Conj =>
                map1(x, out, |x: T| x),
            Unary::Imag => map1(x, out, |_: T| 0 as T),
            _ => None,
        },
        real F => unary_real::<F>(op, x, out),
        complex F => {
            let round: fn(f64) -> f64 = |x| widen(Complex::new(x as F, 0.0)).re;
            match op {
                // Squares of single precision fit into double precision.
                Unary::Abs if size_of::<F>() == size_of::<f32>() => wide1(x, out, |z: Complex<F>| {
                    let Complex64 { re, im } = widen(z);
                    let is_infinite = re.is_infinite() | im.is_infinite();
                    if is_infinite { F::INFINITY } else { (re * re + im * im).sqrt() as F }
                }),
                Unary::Abs | Unary::Real | Unary::Imag =>
                    map1(x, out, |z: Complex<F>| lane::complex_unary(op, widen(z), round).map_or(0.0, |z| z.re as F)),
                _ => {
                    lane::complex_unary(op, Complex64::new(0.0, 0.0), round)?;
                    map1(x, out, |z: Complex<F>| {
                        let z = lane::complex_unary(op, widen(z), round).unwrap_or_default();
                        Complex::new(z.re as F, z.im as F)
                    })
                }
            }
        },
        bool => match op {
            Unary::Not => map1(x, out, |x: bool| !x),
            Unary::Abs | Unary::Real | Unary::Conj => map1(x, out, |x: bool| x),
            Unary::Imag => map1(x, out, |_: bool| false),
            _ => None,
        }
    )
    .filter(|()| dtype.is_computable())
}

/// One arm for each primitive, so that each loop is compiled for its own function.
fn unary_real<F: Real + Lane>(op: Unary, x: &Tile<'_>, out: &mut Tile<'_>) -> Option<()> {
    macro_rules! arms {
        (wide: $($wide:ident)*; others: $($name:ident)*) => {
            match op {
                $(Unary::$wide => wide1(x, out, |x: F| x.unary(Unary::$wide).unwrap_or(x)),)*
                $(Unary::$name => map1(x, out, |x: F| x.unary(Unary::$name).unwrap_or(x)),)*
                Unary::Not => None,
            }
        };
    }
    arms!(wide: Neg Abs Sqrt Rsqrt Floor Ceil Round Trunc;
        others: Exp Exp2 Expm1 Log Log2 Log10 Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh
        Erf Erfc Lgamma Real Imag Conj)
}

fn binary(op: Binary, x: &Tile<'_>, y: &Tile<'_>, out: &mut Tile<'_>) -> Option<()> {
    by_kind!(x,
        int T => match op {
            Binary::Add => map2(x, y, out, |x: T, y| x.wrapping_add(y)),
            Binary::Sub => map2(x, y, out, |x: T, y| x.wrapping_sub(y)),
            Binary::Mul => map2(x, y, out, |x: T, y| x.wrapping_mul(y)),
            Binary::Div => map2(x, y, out, |x: T, y| Int::div(x, y)),
            Binary::Rem => map2(x, y, out, |x: T, y| Int::rem(x, y)),
            Binary::Pow => map2(x, y, out, |x: T, y| Int::pow(x, y)),
            Binary::Min => map2(x, y, out, |x: T, y| x.min(y)),
            Binary::Max => map2(x, y, out, |x: T, y| x.max(y)),
            Binary::And => map2(x, y, out, |x: T, y| x & y),
            Binary::Or => map2(x, y, out, |x: T, y| x | y),
            Binary::Xor => map2(x, y, out, |x: T, y| x ^ y),
            Binary::Shl => map2(x, y, out, |x: T, y| Int::shl(x, y)),
            Binary::Shr => map2(x, y, out, |x: T, y| Int::shr(x, y)),
            Binary::Atan2 | Binary::CopySign | Binary::Hypot | Binary::NextAfter => None,
        },
        real F => match op {
            Binary::Add => wide2(x, y, out, |x: F, y| x + y),
            Binary::Sub => wide2(x, y, out, |x: F, y| x - y),
            Binary::Mul => wide2(x, y, out, |x: F, y| x * y),
            Binary::Div => wide2(x, y, out, |x: F, y| x / y),
            Binary::Rem => map2(x, y, out, |x: F, y| Real::rem(x, y)),
            Binary::Pow => map2(x, y, out, |x: F, y| Real::pow(x, y)),
            Binary::Atan2 => map2(x, y, out, |x: F, y| Real::atan2(x, y)),
            Binary::Min => wide2(x, y, out, |x: F, y| x.min_nan(y)),
            Binary::Max => wide2(x, y, out, |x: F, y| x.max_nan(y)),
            Binary::CopySign => map2(x, y, out, |x: F, y| Real::copysign(x, y)),
            Binary::Hypot => map2(x, y, out, |x: F, y| Real::hypot(x, y)),
            Binary::NextAfter => map2(x, y, out, |x: F, y| Real::nextafter(x, y)),
            Binary::And | Binary::Or | Binary::Xor | Binary::Shl | Binary::Shr => None,
        },
        complex F => {
            let round: fn(f64) -> f64 = |x| widen(Complex::new(x as F, 0.0)).re;
            let apply: fn(Complex64, Complex64) -> Complex64 = match op {
                Binary::Add => |x, y| x + y,
                Binary::Sub => |x, y| x - y,
                Binary::Mul => |x, y| x * y,
                Binary::Div => lane::complex_div,
                Binary::Pow => {
                    return map2(x, y, out, |x: Complex<F>, y: Complex<F>| {
                        let z = lane::complex_pow(widen(x), widen(y), round);
                        Complex::new(z.re as F, z.im as F)
                    });
                }
                _ => return None,
            };
            map2(x, y, out, |x: Complex<F>, y: Complex<F>| {
                let z = apply(widen(x), widen(y));
                Complex::new(z.re as F, z.im as F)
            })
        },
        bool => match op {
            Binary::Add | Binary::Or | Binary::Max => map2(x, y, out, |x: bool, y| x | y),
            Binary::Mul | Binary::And | Binary::Min => map2(x, y, out, |x: bool, y| x & y),
            Binary::Sub | Binary::Xor => map2(x, y, out, |x: bool, y| x ^ y),
            Binary::Pow => map2(x, y, out, |x: bool, y: bool| x | !y),
            _ => None,
        }
    )
}

fn compare(op: Compare, x: &Tile<'_>, y: &Tile<'_>, out: &mut Tile<'_>) -> Option<()> {
    fn ordered<T: Lane + PartialOrd>(
        op: Compare,
        x: &Tile<'_>,
        y: &Tile<'_>,
        out: &mut Tile<'_>,
    ) -> Option<()> {
        match op {
            Compare::Eq => wide2(x, y, out, |x: T, y| x == y),
            Compare::Ne => wide2(x, y, out, |x: T, y| x != y),
            Compare::Lt => wide2(x, y, out, |x: T, y| x < y),
            Compare::Le => wide2(x, y, out, |x: T, y| x <= y),
            Compare::Gt => wide2(x, y, out, |x: T, y| x > y),
            Compare::Ge => wide2(x, y, out, |x: T, y| x >= y),
        }
    }
    by_kind!(x,
        int T => ordered::<T>(op, x, y, out),
        real F => ordered::<F>(op, x, y, out),
        complex F => match op {
            Compare::Eq => map2(x, y, out, |x: Complex<F>, y| x == y),
            Compare::Ne => map2(x, y, out, |x: Complex<F>, y| x != y),
            _ => None,
        },
        bool => ordered::<bool>(op, x, y, out)
    )
}

fn select(c: &Tile<'_>, x: &Tile<'_>, y: &Tile<'_>, out: &mut Tile<'_>) -> Option<()> {
    fn choose<T: Lane>(c: &Tile<'_>, x: &Tile<'_>, y: &Tile<'_>, out: &mut Tile<'_>) -> Option<()> {
        let (c, x, y, out) = (bool::of(c)?, T::of(x)?, T::of(y)?, T::of_mut(out)?);
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for (o, (c, (x, y))) in out.iter_mut().zip(c.iter().zip(x.iter().zip(y))) {
                    // Both are read whatever the condition is, so that there is no branch.
                    let (x, y) = (*x, *y);
                    *o = if *c { x } else { y };
                }
            },
        );
        Some(())
    }
    by_kind!(x,
        int T => choose::<T>(c, x, y, out),
        real F => choose::<F>(c, x, y, out),
        complex F => choose::<Complex<F>>(c, x, y, out),
        bool => choose::<bool>(c, x, y, out)
    )
}

fn fma(x: &Tile<'_>, y: &Tile<'_>, z: &Tile<'_>, out: &mut Tile<'_>) -> Option<()> {
    #[inline(always)]
    fn each<T: Lane>(
        x: &Tile<'_>,
        y: &Tile<'_>,
        z: &Tile<'_>,
        out: &mut Tile<'_>,
        f: impl Fn(T, T, T) -> T,
    ) -> Option<()> {
        let (x, y, z, out) = (T::of(x)?, T::of(y)?, T::of(z)?, T::of_mut(out)?);
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for (o, (x, (y, z))) in out.iter_mut().zip(x.iter().zip(y.iter().zip(z))) {
                    *o = f(*x, *y, *z);
                }
            },
        );
        Some(())
    }
    match x {
        Tile::F32(_) => each(x, y, z, out, f32::mul_add),
        Tile::F64(_) => each(x, y, z, out, f64::mul_add),
        _ => None,
    }
}

/// Conversion as PyTorch's on x86-64: floats truncate, what does not fit gives the smallest number of the
/// conversion instruction's width, narrow integers keep the low bits.
fn convert(x: &Tile<'_>, out: &mut Tile<'_>) -> Option<()> {
    macro_rules! to {
        ($x:ty, int) => {
            match out {
                Tile::U8(_) => map1(x, out, |x: $x| x as u8),
                Tile::I8(_) => map1(x, out, |x: $x| x as i8),
                Tile::I16(_) => map1(x, out, |x: $x| x as i16),
                Tile::I32(_) => map1(x, out, |x: $x| x as i32),
                Tile::I64(_) => map1(x, out, |x: $x| x as i64),
                Tile::U16(_) => map1(x, out, |x: $x| x as u16),
                Tile::U32(_) => map1(x, out, |x: $x| x as u32),
                Tile::U64(_) => map1(x, out, |x: $x| x as u64),
                Tile::F32(_) => wide1(x, out, |x: $x| x as f32),
                Tile::F64(_) => wide1(x, out, |x: $x| x as f64),
                Tile::C64(_) => map1(x, out, |x: $x| Complex::new(x as f32, 0.0)),
                Tile::C128(_) => map1(x, out, |x: $x| Complex::new(x as f64, 0.0)),
                Tile::Bool(_) => map1(x, out, |x: $x| x != 0),
            }
        };
        ($x:ty, real) => {
            match out {
                Tile::U8(_) => map1(x, out, |x: $x| x.to_i32() as u8),
                Tile::I8(_) => map1(x, out, |x: $x| x.to_i32() as i8),
                Tile::I16(_) => map1(x, out, |x: $x| x.to_i32() as i16),
                Tile::I32(_) => map1(x, out, |x: $x| x.to_i32()),
                Tile::I64(_) => map1(x, out, |x: $x| x.to_i64()),
                Tile::U16(_) => map1(x, out, |x: $x| x.to_i32() as u16),
                Tile::U32(_) => map1(x, out, |x: $x| x.to_i64() as u32),
                Tile::U64(_) => map1(x, out, |x: $x| Scalar::Float(x.into()).to_u64()),
                Tile::F32(_) => wide1(x, out, |x: $x| x as f32),
                Tile::F64(_) => wide1(x, out, |x: $x| x as f64),
                Tile::C64(_) => map1(x, out, |x: $x| Complex::new(x as f32, 0.0)),
                Tile::C128(_) => map1(x, out, |x: $x| Complex::new(x as f64, 0.0)),
                Tile::Bool(_) => map1(x, out, |x: $x| x != 0.0),
            }
        };
    }
    macro_rules! complex_to {
        ($f:ty) => {
            match out {
                Tile::U8(_) => map1(x, out, |x: Complex<$f>| x.re.to_i32() as u8),
                Tile::I8(_) => map1(x, out, |x: Complex<$f>| x.re.to_i32() as i8),
                Tile::I16(_) => map1(x, out, |x: Complex<$f>| x.re.to_i32() as i16),
                Tile::I32(_) => map1(x, out, |x: Complex<$f>| x.re.to_i32()),
                Tile::I64(_) => map1(x, out, |x: Complex<$f>| x.re.to_i64()),
                Tile::U16(_) => map1(x, out, |x: Complex<$f>| x.re.to_i32() as u16),
                Tile::U32(_) => map1(x, out, |x: Complex<$f>| x.re.to_i64() as u32),
                Tile::U64(_) => map1(x, out, |x: Complex<$f>| Scalar::Float(x.re.into()).to_u64()),
                Tile::F32(_) => map1(x, out, |x: Complex<$f>| x.re as f32),
                Tile::F64(_) => map1(x, out, |x: Complex<$f>| x.re as f64),
                Tile::C64(_) => map1(x, out, |x: Complex<$f>| Complex::new(x.re as f32, x.im as f32)),
                Tile::C128(_) => map1(x, out, |x: Complex<$f>| Complex::new(x.re as f64, x.im as f64)),
                Tile::Bool(_) => map1(x, out, |x: Complex<$f>| x.re != 0.0 || x.im != 0.0),
            }
        };
    }
    match x {
        Tile::U8(_) => to!(u8, int),
        Tile::I8(_) => to!(i8, int),
        Tile::I16(_) => to!(i16, int),
        Tile::I32(_) => to!(i32, int),
        Tile::I64(_) => to!(i64, int),
        Tile::U16(_) => to!(u16, int),
        Tile::U32(_) => to!(u32, int),
        Tile::U64(_) => to!(u64, int),
        Tile::F32(_) => to!(f32, real),
        Tile::F64(_) => to!(f64, real),
        Tile::C64(_) => complex_to!(f32),
        Tile::C128(_) => complex_to!(f64),
        Tile::Bool(_) => match out {
            Tile::U8(_) => map1(x, out, |x: bool| u8::from(x)),
            Tile::I8(_) => map1(x, out, |x: bool| i8::from(x)),
            Tile::I16(_) => map1(x, out, |x: bool| i16::from(x)),
            Tile::I32(_) => map1(x, out, |x: bool| i32::from(x)),
            Tile::I64(_) => map1(x, out, |x: bool| i64::from(x)),
            Tile::U16(_) => map1(x, out, |x: bool| u16::from(x)),
            Tile::U32(_) => map1(x, out, |x: bool| u32::from(x)),
            Tile::U64(_) => map1(x, out, |x: bool| u64::from(x)),
            Tile::F32(_) => wide1(x, out, |x: bool| f32::from(u8::from(x))),
            Tile::F64(_) => map1(x, out, |x: bool| f64::from(u8::from(x))),
            Tile::C64(_) => map1(x, out, |x: bool| Complex::new(f32::from(u8::from(x)), 0.0)),
            Tile::C128(_) => map1(x, out, |x: bool| Complex::new(f64::from(u8::from(x)), 0.0)),
            Tile::Bool(_) => map1(x, out, |x: bool| x),
        },
    }
}

/// Truncation as the x86-64 conversion instructions do it.
trait Truncate {
    fn to_i32(self) -> i32;
    fn to_i64(self) -> i64;
}

macro_rules! truncate {
    ($type:ty) => {
        impl Truncate for $type {
            #[inline(always)]
            fn to_i32(self) -> i32 {
                if self > -2_147_483_649.0 && self < 2_147_483_648.0 { self as i32 } else { i32::MIN }
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&self) {
                    self as i64
                } else {
                    i64::MIN
                }
            }
        }
    };
}
truncate!(f32);
truncate!(f64);
