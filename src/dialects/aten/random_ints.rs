//! Which whole numbers are drawn for a dtype, and between which bounds: floats take those that they hold, ints refuse bounds
//! that they do not. Knows no tensors.

use crate::diag::Result;
use crate::dialects::draw::{fail, rounded_to};
use crate::tensor::DType;
use crate::value::generator::Generator;

/// Draws whole numbers.
pub(super) type Whole = Box<dyn Fn(&mut Generator, DType) -> i64>;

/// From `low` on, below `high`; of floats, between the nearest ones inside of these bounds.
pub(super) fn between(dtype: DType, low: i64, high: i64) -> Result<Whole> {
    if low >= high {
        return fail(format!("random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"));
    }
    let (mut from, mut to) = (low, high);
    if let Some(digits) = mantissa(dtype) {
        (from, to) = (at_least(dtype, digits, low), below(dtype, digits, high));
        if from >= to {
            return fail(format!(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from={from} >= to={to}"
            ));
        }
    }
    expect_inside(dtype, "check_random_bounds", from, to - 1)?;
    let range = to.wrapping_sub(from) as u64;
    Ok(Box::new(move |g, _| from.wrapping_add(g.below(range) as i64)))
}

/// From `low` to the largest whole number up to which the dtype holds all of them; from the least int on, any 64 bits.
pub(super) fn onwards(dtype: DType, low: i64) -> Result<Whole> {
    if low == i64::MIN {
        return match dtype {
            DType::I64 | DType::F64 | DType::F32 | DType::BF16 => Ok(Box::new(|g, _| g.bits64() as i64)),
            _ => fail(
                "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16"
                    .to_string(),
            ),
        };
    }
    let (from, last) = match mantissa(dtype) {
        Some(digits) => (at_least(dtype, digits, low), 1 << digits),
        None => (low, limits(dtype, "random_from_to_impl")?.1),
    };
    if mantissa(dtype).is_some() && from > last {
        return fail(format!(
            "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got from={from} > \
             to_inc={last}"
        ));
    }
    expect_inside(dtype, "random_from_to_impl", from, last)?;
    let range = (last.wrapping_sub(from) as u64).wrapping_add(1);
    Ok(Box::new(move |g, _| from.wrapping_add(g.below(range) as i64)))
}

/// Bits of a float's mantissa, the leading one with them; None for other dtypes.
pub(super) fn mantissa(dtype: DType) -> Option<u32> {
    match dtype {
        DType::F64 => Some(f64::MANTISSA_DIGITS),
        DType::F32 => Some(f32::MANTISSA_DIGITS),
        DType::F16 => Some(half::f16::MANTISSA_DIGITS),
        DType::BF16 => Some(half::bf16::MANTISSA_DIGITS),
        _ => None,
    }
}

/// The distance of floats of such a size.
fn spacing(n: i64, digits: u32) -> i64 {
    let power = n.saturating_abs().max(1).ilog2() + 1;
    1i64.checked_shl(power.saturating_sub(digits)).unwrap_or(i64::MAX)
}

/// The least float that is not below an int.
fn at_least(dtype: DType, digits: u32, n: i64) -> i64 {
    let next = rounded_to(dtype)(n.saturating_add(1) as f64) as i64;
    if next < n { next.saturating_add(spacing(n.saturating_add(1), digits)) } else { n }
}

/// The bound below which floats are below an int.
fn below(dtype: DType, digits: u32, n: i64) -> i64 {
    let last = rounded_to(dtype)(n.saturating_sub(1) as f64) as i64;
    if last >= n { last.saturating_sub(spacing(n.saturating_sub(1), digits)) } else { n }
}

/// The least and the largest int that a dtype holds.
pub(super) fn limits(dtype: DType, kernel: &str) -> Result<(i64, i64)> {
    Ok(match dtype {
        DType::Bool => (0, 1),
        DType::U8 => (0, 255),
        DType::I8 => (-128, 127),
        DType::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DType::U16 => (0, i64::from(u16::MAX)),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DType::U32 => (0, i64::from(u32::MAX)),
        DType::U64 => (0, i64::MAX),
        DType::F16 => (-65504, 65504),
        dtype if dtype.is_complex() => {
            return fail(format!("{kernel} handles only integral, floating-point and boolean types"));
        }
        _ => (i64::MIN, i64::MAX),
    })
}

/// Refuses bounds that a dtype does not hold.
fn expect_inside(dtype: DType, kernel: &str, from: i64, last: i64) -> Result<()> {
    let (least, most) = limits(dtype, kernel)?;
    for (name, n) in [("from", from), ("to - 1", last)] {
        if !(least..=most).contains(&n) {
            return fail(format!("{name} is out of bounds for {}", dtype.cpp_name()));
        }
    }
    Ok(())
}

/// Any whole number that the dtype holds exactly.
pub(super) fn any_number(g: &mut Generator, dtype: DType) -> i64 {
    match dtype {
        DType::F64 => (g.bits64() % ((1 << 53) + 1)) as i64,
        DType::I64 => (g.bits64() & i64::MAX as u64) as i64,
        DType::Bool => i64::from(g.bits32() & 1),
        DType::F32 => i64::from(g.bits32() % ((1 << 24) + 1)),
        DType::F16 => i64::from(g.bits32() % ((1 << 11) + 1)),
        DType::BF16 => i64::from(g.bits32() % ((1 << 8) + 1)),
        DType::I32 => i64::from(g.bits32() & 0x7fff_ffff),
        DType::I16 => i64::from(g.bits32() & 0x7fff),
        DType::I8 => i64::from(g.bits32() & 0x7f),
        _ => i64::from(g.bits32() & 0xff),
    }
}
