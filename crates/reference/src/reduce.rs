//! Ops along dimensions: sums, means, extremes and their places, truth of all and of some, softmax, normalization. Each takes
//! the elements of one row after the other.

use crate::array::{Array, float, rounded, truth};
use crate::scalar::{order, quotient, sum};
use crate::{Answer, Outside, refused};
use flambeau_base::tensor::{DType, Scalar};
use std::cmp::Ordering;

/// Results of each row along some dimensions: all of them where none is named.
pub(crate) fn rows(
    a: &Array,
    dims: &[i64],
    keep: bool,
    dtype: DType,
    of: impl Fn(&[Scalar]) -> Answer<Scalar>,
) -> Answer<Array> {
    let named: Vec<usize> = dims.iter().map(|d| a.dim(*d)).collect::<Answer<_>>()?;
    if named.iter().enumerate().any(|(n, d)| named[..n].contains(d)) {
        return refused("a dimension is named twice");
    }
    let is_gone = |d: usize| dims.is_empty() || named.contains(&d);
    let kept: Vec<usize> = (0..a.rank()).filter(|d| !is_gone(*d)).collect();
    let inner: Vec<usize> = (0..a.rank()).filter(|d| is_gone(*d)).collect();
    let inner_sizes: Vec<usize> = inner.iter().map(|d| a.sizes[*d]).collect();
    let outer_sizes: Vec<usize> = kept.iter().map(|d| a.sizes[*d]).collect();
    let found = Array::of(dtype, &outer_sizes, |outer| {
        let mut place: Vec<usize> = a.sizes.iter().map(|_| 0).collect();
        kept.iter().zip(outer).for_each(|(d, i)| place[*d] = *i);
        let row: Vec<Scalar> = crate::array::indices(&inner_sizes)
            .map(|index| {
                inner.iter().zip(index).for_each(|(d, i)| place[*d] = i);
                a.at(&place)
            })
            .collect();
        of(&row)
    })?;
    if !keep {
        return Ok(found);
    }
    found.sized((0..a.rank()).map(|d| if is_gone(d) { 1 } else { a.sizes[d] }).collect())
}

/// The sum of numbers that are converted to a dtype first: int64 for integers where none is said.
pub(crate) fn total(a: &Array, dims: &[i64], keep: bool, dtype: Option<DType>) -> Answer<Array> {
    let dtype =
        dtype.unwrap_or(if a.dtype.is_integral() || a.dtype == DType::Bool { DType::I64 } else { a.dtype });
    if dtype == DType::Bool {
        return Err(Outside::Unknown);
    }
    rows(a, dims, keep, dtype, |row| all(row, dtype))
}

/// The sum of some numbers in 64 bits.
fn all(row: &[Scalar], dtype: DType) -> Answer<Scalar> {
    let zero = rounded(Scalar::Int(0), dtype)?;
    row.iter().try_fold(zero, |so_far, x| sum(false, so_far, rounded(*x, dtype)?))
}

pub(crate) fn mean(a: &Array, dims: &[i64], keep: bool, dtype: Option<DType>) -> Answer<Array> {
    let dtype = dtype.unwrap_or(a.dtype);
    if !dtype.is_floating() && !dtype.is_complex() {
        return refused("a mean is a float");
    }
    rows(a, dims, keep, dtype, |row| quotient(all(row, dtype)?, Scalar::Float(row.len() as f64)))
}

/// The place of the largest or smallest of a row: the first of several, and the first NaN before all.
fn place(row: &[Scalar], wanted: Ordering) -> Answer<usize> {
    let mut best = 0;
    for (n, x) in row.iter().enumerate() {
        match order(*x, *row.get(best).unwrap_or(x))? {
            None if !float(row[best]).is_nan() => best = n,
            Some(found) if found == wanted => best = n,
            _ => {}
        }
    }
    if row.is_empty() { refused("nothing is the largest of no elements") } else { Ok(best) }
}

/// The largest or smallest elements of rows.
pub(crate) fn extremes(a: &Array, dims: &[i64], keep: bool, wanted: Ordering) -> Answer<Array> {
    rows(a, dims, keep, a.dtype, |row| Ok(row[place(row, wanted)?]))
}

/// Where in their rows they stand.
pub(crate) fn places(a: &Array, dims: &[i64], keep: bool, wanted: Ordering) -> Answer<Array> {
    rows(a, dims, keep, DType::I64, |row| Ok(Scalar::Int(place(row, wanted)? as i64)))
}

/// Whether all or some elements of rows differ from zero; uint8 stays what it is.
pub(crate) fn truths(a: &Array, dims: &[i64], keep: bool, of_all: bool) -> Answer<Array> {
    let dtype = if a.dtype == DType::U8 { DType::U8 } else { DType::Bool };
    rows(a, dims, keep, dtype, |row| {
        let found = if of_all { row.iter().all(|x| truth(*x)) } else { row.iter().any(|x| truth(*x)) };
        Ok(Scalar::Bool(found))
    })
}

/// exp(x) / the sum of them along a dimension, or the logarithm of that.
pub(crate) fn softmax(a: &Array, dim: i64, dtype: Option<DType>, is_log: bool) -> Answer<Array> {
    let a = &match dtype {
        Some(dtype) => a.to(dtype)?,
        None => a.clone(),
    };
    if !a.dtype.is_floating() && a.numel() > 0 {
        return refused("softmax is of floats");
    }
    let dim = a.dim(dim)?;
    let size = a.sizes.get(dim).copied().unwrap_or(1);
    Array::of(a.dtype, &a.sizes, |index| {
        let row: Vec<f64> = (0..size)
            .map(|i| {
                let mut place = index.to_vec();
                if let Some(own) = place.get_mut(dim) {
                    *own = i;
                }
                float(a.at(&place))
            })
            .collect();
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, |a, b| if b > a { b } else { a });
        let sum: f64 = row.iter().map(|x| (x - largest).exp()).sum();
        let own = float(a.at(index)) - largest;
        Ok(Scalar::Float(if is_log { own - sum.ln() } else { own.exp() / sum }))
    })
}

/// (x - mean) / sqrt(variance + eps) over the last dimensions, scaled and moved.
pub(crate) fn layer_norm(
    a: &Array,
    sizes: &[i64],
    [weight, bias]: [Option<&Array>; 2],
    eps: f64,
) -> Answer<Array> {
    let inner: Vec<usize> = sizes.iter().map(|n| *n as usize).collect();
    if inner.is_empty() || !a.sizes.ends_with(&inner) || !a.dtype.is_floating() {
        return refused("rows of other sizes are normalized");
    }
    let outer = a.rank() - inner.len();
    let row = |index: &[usize]| -> Vec<f64> {
        let places = crate::array::indices(&inner);
        places.map(|last| float(a.at(&[&index[..outer], &last].concat()))).collect()
    };
    Array::of(a.dtype, &a.sizes, |index| {
        let (mean, variance) = moments(&row(index));
        let scale = weight.map_or(1.0, |w| float(w.at(&index[outer..])));
        let shift = bias.map_or(0.0, |b| float(b.at(&index[outer..])));
        Ok(Scalar::Float((float(a.at(index)) - mean) / (variance + eps).sqrt() * scale + shift))
    })
}

/// Mean and variance of numbers that are all there are.
fn moments(row: &[f64]) -> (f64, f64) {
    let count = row.len() as f64;
    let mean = row.iter().sum::<f64>() / count;
    (mean, row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count)
}

/// The same over all but dimension 1, with given means and variances where it does not learn.
pub(crate) fn batch_norm(
    a: &Array,
    [weight, bias, mean, variance]: [Option<&Array>; 4],
    training: bool,
    eps: f64,
) -> Answer<Array> {
    if a.rank() < 2 || !a.dtype.is_floating() || training && (mean.is_some() || variance.is_some()) {
        return Err(Outside::Unknown);
    }
    let of_channel = |channel: usize| -> Answer<(f64, f64)> {
        match (mean, variance) {
            (Some(mean), Some(variance)) => Ok((float(mean.at(&[channel])), float(variance.at(&[channel])))),
            _ if training => {
                let places = crate::array::indices(&a.sizes).filter(|index| index[1] == channel);
                Ok(moments(&places.map(|index| float(a.at(&index))).collect::<Vec<f64>>()))
            }
            _ => refused("there are no statistics"),
        }
    };
    Array::of(a.dtype, &a.sizes, |index| {
        let channel = index[1];
        let (mean, variance) = of_channel(channel)?;
        if float(rounded(Scalar::Float(variance + eps), a.dtype)?) == 0.0 {
            return Err(Outside::Open("what a division by zero gives"));
        }
        let scale = weight.map_or(1.0, |w| float(w.at(&[channel])));
        let shift = bias.map_or(0.0, |b| float(b.at(&[channel])));
        Ok(Scalar::Float((float(a.at(index)) - mean) / (variance + eps).sqrt() * scale + shift))
    })
}
