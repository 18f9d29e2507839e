//! Ops that take elements from other places: other orders and sizes of dimensions, parts, repetitions, joins. Each says which
//! element stands at an index of its result; that some of them copy nothing is not known here.

use crate::array::{Array, broadcast, dimension, float, rounded};
use crate::promote::pair;
use crate::{Answer, Outside, refused};
use flambeau_base::tensor::{DType, Scalar};

/// The dimensions in another order.
pub(crate) fn permute(a: &Array, dims: &[i64]) -> Answer<Array> {
    let dims: Vec<usize> = dims.iter().map(|d| dimension(*d, a.rank())).collect::<Answer<_>>()?;
    if dims.len() != a.rank() || (0..a.rank()).any(|d| !dims.contains(&d)) {
        return refused("not an order of all dimensions");
    }
    let sizes: Vec<usize> = dims.iter().map(|d| a.sizes[*d]).collect();
    a.look(&sizes, |index| {
        let mut place = vec![0; index.len()];
        dims.iter().zip(index).for_each(|(d, i)| place[*d] = *i);
        place
    })
}

pub(crate) fn transpose(a: &Array, one: i64, other: i64) -> Answer<Array> {
    let (one, other) = (a.dim(one)?, a.dim(other)?);
    let mut dims: Vec<i64> = (0..a.rank() as i64).collect();
    if !dims.is_empty() {
        dims.swap(one, other);
    }
    permute(a, &dims)
}

/// Other sizes, one of which may be -1: what the others leave.
pub(crate) fn reshape(a: &Array, sizes: &[i64]) -> Answer<Array> {
    let known: i64 = sizes.iter().filter(|n| **n != -1).product();
    let unknown = sizes.iter().filter(|n| **n == -1).count();
    if unknown > 1 || unknown == 1 && known == 0 || sizes.iter().any(|n| *n < -1) {
        return refused("these are not sizes");
    }
    let left = a.numel() as i64 / known.max(1);
    a.sized(sizes.iter().map(|n| if *n == -1 { left } else { *n } as usize).collect())
}

/// Neighbouring dimensions as one; a number has one dimension afterwards.
pub(crate) fn flatten(a: &Array, first: i64, last: i64) -> Answer<Array> {
    let (first, last) = (a.dim(first)?, a.dim(last)?);
    if a.rank() == 0 {
        return a.sized(vec![1]);
    }
    if first > last {
        return refused("the first dimension stands behind the last");
    }
    let mut sizes = a.sizes[..first].to_vec();
    sizes.push(a.sizes[first..=last].iter().product());
    sizes.extend(&a.sizes[last + 1..]);
    a.sized(sizes)
}

pub(crate) fn unsqueeze(a: &Array, dim: i64) -> Answer<Array> {
    let mut sizes = a.sizes.clone();
    sizes.insert(dimension(dim, a.rank() + 1)?, 1);
    a.sized(sizes)
}

/// Without those of the given dimensions that have size 1.
pub(crate) fn squeeze(a: &Array, dims: &[i64]) -> Answer<Array> {
    let dims: Vec<usize> = dims.iter().map(|d| a.dim(*d)).collect::<Answer<_>>()?;
    let kept = |(d, n): (usize, &usize)| (*n != 1 || !dims.contains(&d)).then_some(*n);
    a.sized(a.sizes.iter().enumerate().filter_map(kept).collect())
}

pub(crate) fn select(a: &Array, dim: i64, at: i64) -> Answer<Array> {
    let dim = dimension(dim, a.rank())?;
    let at = dimension(at, a.sizes[dim])?;
    let sizes = [&a.sizes[..dim], &a.sizes[dim + 1..]].concat();
    a.look(&sizes, |index| [&index[..dim], &[at], &index[dim..]].concat())
}

/// What Python's slice of a list of `size` items gives: where it starts, and how many there are.
pub(crate) fn part(size: usize, start: Option<i64>, end: Option<i64>, step: i64) -> Answer<(usize, usize)> {
    if step <= 0 {
        return refused("a step is positive");
    }
    let size = size as i64;
    let wrapped = |x: i64| if x < 0 { x.saturating_add(size) } else { x }.clamp(0, size);
    let start = wrapped(start.unwrap_or(0));
    let length = wrapped(end.unwrap_or(size)) - start;
    let count = if length > 0 { (length - 1) / step + 1 } else { 0 };
    Ok((start as usize, count as usize))
}

pub(crate) fn slice(a: &Array, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Answer<Array> {
    let dim = dimension(dim, a.rank())?;
    let (start, count) = part(a.sizes[dim], start, end, step)?;
    strided(a, dim, start, count, step)
}

fn strided(a: &Array, dim: usize, start: usize, count: usize, step: i64) -> Answer<Array> {
    let mut sizes = a.sizes.clone();
    sizes[dim] = count;
    a.look(&sizes, |index| {
        let mut place = index.to_vec();
        // With one element a step may be as large as it likes.
        place[dim] = start + index[dim].saturating_mul(step as usize);
        place
    })
}

/// Repeated to sizes, of which -1 is that which is there.
pub(crate) fn expand(a: &Array, sizes: &[i64]) -> Answer<Array> {
    let Some(more) = sizes.len().checked_sub(a.rank()) else { return refused("fewer dimensions") };
    let mut wanted = Vec::new();
    for (d, n) in sizes.iter().enumerate() {
        let own = d.checked_sub(more).map(|d| a.sizes[d]);
        wanted.push(match (*n, own) {
            (-1, Some(own)) => own,
            (n, None | Some(1)) if n >= 0 => n as usize,
            (n, Some(own)) if n == own as i64 => own,
            _ => return refused("a size does not repeat"),
        });
    }
    Array::of(a.dtype, &wanted, |index| Ok(a.repeated_at(index)))
}

/// Each dimension repeated; more numbers than dimensions add some in front.
pub(crate) fn repeat(a: &Array, times: &[i64]) -> Answer<Array> {
    let Some(more) = times.len().checked_sub(a.rank()) else { return refused("fewer dimensions") };
    let own = |d: usize| d.checked_sub(more).map_or(1, |d| a.sizes[d]);
    let wanted = times.iter().enumerate().map(|(d, n)| usize::try_from(own(d) as i64 * n));
    let Ok(sizes) = wanted.collect::<Result<Vec<usize>, _>>() else { return refused("a negative size") };
    a.look(&sizes, |index| (more..index.len()).map(|d| index[d] % own(d)).collect())
}

pub(crate) fn flip(a: &Array, dims: &[i64]) -> Answer<Array> {
    let dims: Vec<usize> = dims.iter().map(|d| a.dim(*d)).collect::<Answer<_>>()?;
    if dims.iter().enumerate().any(|(n, d)| dims[..n].contains(d)) {
        return refused("a dimension is named twice");
    }
    let turned = |d: usize, i: usize| if dims.contains(&d) { a.sizes[d] - 1 - i } else { i };
    a.look(&a.sizes, |index| index.iter().enumerate().map(|(d, i)| turned(d, *i)).collect())
}

/// Elements move up by the shift and come in again at the beginning; without dimensions they do so in row-major order.
pub(crate) fn roll(a: &Array, shifts: &[i64], dims: &[i64]) -> Answer<Array> {
    if dims.is_empty() {
        let &[shift] = shifts else { return refused("one shift of all elements") };
        let flat = Array { dtype: a.dtype, sizes: vec![a.numel()], items: a.items.clone() };
        return roll(&flat, &[shift], &[0])?.sized(a.sizes.clone());
    }
    if shifts.len() != dims.len() {
        return refused("as many shifts as dimensions");
    }
    let mut rolled = a.clone();
    for (shift, dim) in shifts.iter().zip(dims) {
        let dim = dimension(*dim, a.rank())?;
        let size = a.sizes[dim] as i64;
        rolled = rolled.look(&a.sizes, |index| {
            let mut place = index.to_vec();
            place[dim] = (index[dim] as i64 - shift % size).rem_euclid(size) as usize;
            place
        })?;
    }
    Ok(rolled)
}

/// Parts of given sizes along a dimension.
pub(crate) fn split(a: &Array, sizes: &[i64], dim: i64) -> Answer<Vec<Array>> {
    let dim = dimension(dim, a.rank())?;
    if sizes.iter().any(|n| *n < 0) || sizes.iter().sum::<i64>() != a.sizes[dim] as i64 {
        return refused("the parts are not the whole");
    }
    let mut start = 0;
    let mut parts = Vec::new();
    for size in sizes {
        parts.push(strided(a, dim, start, *size as usize, 1)?);
        start += *size as usize;
    }
    Ok(parts)
}

/// Parts of one size, the last of which may be smaller; of nothing there is one empty part.
pub(crate) fn split_evenly(a: &Array, size: i64, dim: i64) -> Answer<Vec<Array>> {
    let whole = a.sizes[dimension(dim, a.rank())?] as i64;
    if size < 0 || size == 0 && whole > 0 {
        return refused("parts of no size");
    }
    let mut sizes = Vec::new();
    let mut left = whole;
    while left > 0 || sizes.is_empty() {
        sizes.push(size.min(left));
        left -= size.min(left);
    }
    split(a, &sizes, dim)
}

/// At most `n` parts, all of one size but the last. Of no elements there are as many parts as asked for.
pub(crate) fn chunk(a: &Array, chunks: i64, dim: i64) -> Answer<Vec<Array>> {
    let whole = a.sizes[dimension(dim, a.rank())?] as i64;
    if chunks <= 0 {
        return refused("no parts");
    }
    if whole == 0 {
        return split(a, &(0..chunks).map(|_| 0).collect::<Vec<i64>>(), dim);
    }
    split_evenly(a, (whole - 1) / chunks + 1, dim)
}

pub(crate) fn unbind(a: &Array, dim: i64) -> Answer<Vec<Array>> {
    let size = a.sizes[dimension(dim, a.rank())?];
    (0..size).map(|at| select(a, dim, at as i64)).collect()
}

/// One behind the other along a dimension. A vector without elements joins anything.
pub(crate) fn cat(parts: &[Array], dim: i64) -> Answer<Array> {
    let Some(first) = parts.first() else { return refused("nothing to join") };
    let mut dtype = first.dtype;
    for part in parts {
        dtype = pair(dtype, part.dtype)?;
    }
    let joined: Vec<&Array> = parts.iter().filter(|part| part.sizes != [0]).collect();
    let Some(model) = joined.first() else { return first.to(dtype) };
    let dim = dimension(dim, model.rank())?;
    let fits = |part: &&&Array| {
        part.rank() == model.rank() && (0..model.rank()).all(|d| d == dim || part.sizes[d] == model.sizes[d])
    };
    if joined.iter().filter(fits).count() < joined.len() {
        return refused("sizes differ in another dimension");
    }
    let mut sizes = model.sizes.clone();
    sizes[dim] = joined.iter().map(|part| part.sizes[dim]).sum();
    Array::of(dtype, &sizes, |index| {
        let mut place = index.to_vec();
        for part in &joined {
            if place[dim] < part.sizes[dim] {
                return Ok(part.at(&place));
            }
            place[dim] -= part.sizes[dim];
        }
        refused("an index behind the end")
    })
}

pub(crate) fn stack(parts: &[Array], dim: i64) -> Answer<Array> {
    if parts.iter().any(|part| part.sizes != parts[0].sizes) {
        return refused("sizes differ");
    }
    let dim = dimension(dim, parts.first().map_or(0, Array::rank) + 1)? as i64;
    let layers: Vec<Array> = parts.iter().map(|part| unsqueeze(part, dim)).collect::<Answer<_>>()?;
    cat(&layers, dim)
}

/// The part of matrices on one side of a diagonal, zero on the other.
pub(crate) fn triangle(a: &Array, diagonal: i64, is_lower: bool) -> Answer<Array> {
    let Some(row) = a.rank().checked_sub(2) else { return refused("a matrix is wanted") };
    Array::of(a.dtype, &a.sizes, |index| {
        let above = index[row + 1] as i64 - index[row] as i64;
        let is_kept = if is_lower { above <= diagonal } else { above >= diagonal };
        Ok(if is_kept { a.at(index) } else { Scalar::Int(0) })
    })
}

/// Borders of one value around the last dimensions, that of the last first; negative ones take away.
pub(crate) fn pad(a: &Array, widths: &[i64], value: f64) -> Answer<Array> {
    if !widths.len().is_multiple_of(2) || widths.len() / 2 > a.rank() {
        return refused("two borders for each dimension");
    }
    let before = |d: usize| widths.get((a.rank() - 1 - d) * 2).copied().unwrap_or(0);
    let after = |d: usize| widths.get((a.rank() - 1 - d) * 2 + 1).copied().unwrap_or(0);
    let wanted = (0..a.rank()).map(|d| usize::try_from(a.sizes[d] as i64 + before(d) + after(d)));
    let Ok(sizes) = wanted.collect::<Result<Vec<usize>, _>>() else {
        return refused("less than nothing is left");
    };
    Array::of(a.dtype, &sizes, |index| {
        let moved: Vec<i64> = index.iter().enumerate().map(|(d, i)| *i as i64 - before(d)).collect();
        let is_inside = moved.iter().zip(&a.sizes).all(|(i, n)| (0..*n as i64).contains(i));
        let place: Vec<usize> = moved.iter().map(|i| *i as usize).collect();
        if is_inside { Ok(a.at(&place)) } else { Ok(Scalar::Float(value)) }
    })
}

/// One value where a mask holds.
pub(crate) fn masked_fill(a: &Array, mask: &Array, value: Scalar) -> Answer<Array> {
    if mask.dtype != DType::Bool {
        return Err(Outside::Unknown);
    }
    // A number that the dtype does not hold is refused or wraps; which of them, is said of few dtypes.
    let own = rounded(value, a.dtype)?;
    if !float(value).is_nan() && a.dtype.is_integral() && float(own) != float(value) {
        return Err(Outside::Open("a value that is not of the dtype"));
    }
    let sizes = broadcast([a.sizes.as_slice(), mask.sizes.as_slice()])?;
    Array::of(a.dtype, &sizes, |index| {
        Ok(if mask.repeated_at(index) == Scalar::Bool(true) { value } else { a.repeated_at(index) })
    })
}
