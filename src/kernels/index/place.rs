//! Rearranging by place: each dimension of the result names the index it takes from the source.

use crate::diag::{Diagnostic, Result};
use crate::resources::{Scratch, memory};
use crate::tensor::DType;
use crate::tensor::{
    Blocks, Dims, Layout, Operand, Tensor, channels_last_strides, contiguous_strides, numel, promote_types,
    result_type, view, wrap_dim,
};

/// Element `(i, j, …)` of the result is the source's element `(maps[0][i], maps[1][j], …)`. One map a dimension;
/// the indices are within the source.
pub fn remap(source: &Tensor, maps: &[Scratch<usize>]) -> Result<Tensor> {
    let sizes: Dims = maps.iter().map(|m| m.len() as i64).collect();
    if numel(&sizes) == 0 {
        return Tensor::zeros(source.dtype(), &sizes);
    }
    let own = source.sizes();
    // Whole dimensions at the end are copied side by side.
    let is_whole =
        |d: usize| maps[d].len() == own[d] as usize && maps[d].iter().enumerate().all(|(n, at)| n == *at);
    let end = (0..maps.len()).rev().find(|d| !is_whole(*d)).map_or(0, |d| d + 1);
    let length = own[end..].iter().product::<i64>() as usize;
    let strides = contiguous_strides(&own);
    let Some(last) = end.checked_sub(1) else { return source.copy() };
    let inner = memory::collected(maps[last].iter().map(|at| at * strides[last] as usize))?;
    let outer = places(&strides[..last], &maps[..last])?;
    source.take_blocks(&Blocks { outer: &outer, inner: &inner, length }, &sizes)
}

/// [`remap`], with the result's dimensions in the order in memory in which the source has them where it leaves no gaps: what keeps
/// memory formats copies lines as they lie.
pub fn remap_as_it_lies(source: &Tensor, maps: &[Scratch<usize>]) -> Result<Tensor> {
    let layout = source.layout();
    let mut order: Vec<usize> = (0..layout.rank()).collect();
    order.sort_by_key(|d| std::cmp::Reverse(layout.strides[*d]));
    let turned = source.look(|l| Ok(view::reorder(l, &order)))?;
    if order.is_sorted() || !turned.is_contiguous() {
        return remap(source, maps);
    }
    let maps = order.iter().map(|d| memory::copied(&maps[*d])).collect::<Result<Vec<_>>>()?;
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, d)| back[*d] = at);
    remap(&turned, &maps)?.look(|l| Ok(view::reorder(l, &back)))
}

/// The positions, in a dense tensor of `sizes`, of the elements that the maps name, one map a dimension.
pub fn positions(sizes: &[i64], maps: &[Scratch<usize>]) -> Result<Scratch<usize>> {
    places(&contiguous_strides(sizes), maps)
}

/// The same for dimensions whose elements lie `strides` apart.
fn places(strides: &[i64], maps: &[Scratch<usize>]) -> Result<Scratch<usize>> {
    let mut positions = memory::filled(1, 0usize)?;
    for (map, stride) in maps.iter().zip(strides) {
        positions = memory::built(positions.len().saturating_mul(map.len()), |next| {
            positions.iter().for_each(|p| next.extend(map.iter().map(|i| p + i * *stride as usize)));
        })?;
    }
    Ok(positions)
}

/// The identity map of each dimension.
pub fn identity(sizes: &[i64]) -> Result<Vec<Scratch<usize>>> {
    sizes.iter().map(|s| memory::collected(0..*s as usize)).collect()
}

/// The given indices of one dimension (of a tensor that has dimensions).
pub fn pick(source: &Tensor, dim: usize, indices: &[usize]) -> Result<Tensor> {
    let mut maps = identity(&source.sizes())?;
    maps[dim] = memory::copied(indices)?;
    remap(source, &maps)
}

/// The common dtype of several tensors.
pub fn common_dtype(tensors: &[Tensor]) -> DType {
    let operands: Vec<Operand> = tensors.iter().cloned().map(Operand::from).collect();
    result_type(&operands).unwrap_or(DType::F32)
}

/// The common dtype of two tensors, ranks left out.
pub fn common(a: &Tensor, b: &Tensor) -> DType {
    promote_types(a.dtype(), b.dtype())
}

/// A vector of no elements: concatenation skips it whatever the others' ranks are.
fn is_skipped(tensor: &Tensor) -> bool {
    tensor.rank() == 1 && tensor.numel() == 0
}

/// Joins tensors along a dimension, in row-major memory.
pub fn concat(tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    joined(tensors, dim, false)
}

/// Joins tensors along a dimension, as `torch.cat` does: in memory whose channels lie innermost where those of all the tensors do.
pub fn concat_in_format(tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    let are_last = tensors.iter().all(|tensor| tensor.with_meta(|meta| meta.layout.suggests_channels_last()));
    joined(tensors, dim, are_last)
}

/// [`Tensor::for_writing`], in memory whose channels lie innermost where that is wanted.
pub fn for_writing(dtype: DType, sizes: &[i64], channels_last: bool) -> Result<Tensor> {
    let result = Tensor::for_writing(dtype, sizes)?;
    if !channels_last {
        return Ok(result);
    }
    result.with_layout(Layout::strided(sizes, &channels_last_strides(sizes), 0)?)
}

fn joined(tensors: &[Tensor], dim: i64, channels_last: bool) -> Result<Tensor> {
    if tensors.is_empty() {
        return Err(Diagnostic::raised("ValueError", "torch.cat(): expected a non-empty list of Tensors"));
    }
    if let Some(at) = tensors.iter().position(|t| t.rank() == 0) {
        return Err(Diagnostic::runtime(format!(
            "zero-dimensional tensor (at position {at}) cannot be concatenated"
        )));
    }
    let dtype = common_dtype(tensors);
    let Some(first) = tensors.iter().find(|t| !is_skipped(t)) else {
        return Tensor::zeros(dtype, &[0]);
    };
    let d = wrap_dim(dim, first.rank())?;
    let mut sizes = first.sizes();
    sizes[d] = 0;
    for (n, tensor) in tensors.iter().enumerate().filter(|(_, t)| !is_skipped(t)) {
        let own = tensor.sizes();
        if own.len() != sizes.len() {
            return Err(Diagnostic::runtime(format!(
                "Tensors must have same number of dimensions: got {} and {}",
                sizes.len(),
                own.len()
            )));
        }
        if let Some(i) = (0..own.len()).find(|i| *i != d && own[*i] != sizes[*i]) {
            return Err(Diagnostic::runtime(format!(
                "Sizes of tensors must match except in dimension {d}. Expected size {} but got size {} for tensor number \
                 {n} in the list.",
                sizes[i], own[i]
            )));
        }
        sizes[d] = sizes[d].saturating_add(own[d]);
    }
    // Each element is written below.
    let result = for_writing(dtype, &sizes, channels_last)?;
    let mut start = 0;
    for tensor in tensors.iter().filter(|t| !is_skipped(t)) {
        let length = tensor.sizes()[d];
        result.look(|l| view::narrow(l, d as i64, start, length))?.copy_from(tensor)?;
        start += length;
    }
    // Another thread may have resized one meanwhile: unwritten memory is of freed tensors.
    if start != sizes[d] {
        return Err(Diagnostic::runtime("a tensor changed its size while it was concatenated"));
    }
    Ok(result)
}

/// Each tensor with dimensions of size 1 in front until it has `rank` of them.
pub fn pad_rank(sizes: &[i64], rank: usize) -> Dims {
    let mut out: Dims = std::iter::repeat_n(1, rank.saturating_sub(sizes.len())).collect();
    out.extend_from_slice(sizes);
    out
}

/// Repeats the tensor along each dimension, new ones in front included.
pub fn repeat(tensor: &Tensor, repeats: &[i64]) -> Result<Tensor> {
    let own = tensor.sizes();
    if repeats.len() < own.len() {
        return Err(Diagnostic::runtime(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
        ));
    }
    let sizes = pad_rank(&own, repeats.len());
    let result: Vec<i64> = sizes.iter().zip(repeats).map(|(s, r)| s.saturating_mul(*r)).collect();
    if numel(&result) == 0 || result.iter().any(|s| *s < 0) {
        return Tensor::zeros(tensor.dtype(), &result);
    }
    // Each dimension as two, of which the outer one goes over the same elements again and again.
    let padded = tensor.reshaped(&sizes)?;
    let layout = padded.layout();
    let pairs = |own: &[i64], others: &[i64]| -> Dims {
        others.iter().zip(own).flat_map(|(outer, inner)| [*outer, *inner]).collect()
    };
    let again: Dims = std::iter::repeat_n(0, sizes.len()).collect();
    let from = Layout {
        sizes: pairs(&sizes, repeats),
        strides: pairs(&layout.strides, &again),
        offset: layout.offset,
    };
    let out = Tensor::for_writing(tensor.dtype(), &result)?;
    out.reshaped(&from.sizes)?.copy_from(&padded.with_layout(from)?)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_go_over_the_same_elements() {
        let t = Tensor::from_vec(&[1i32, 2, 3, 4], &[2, 2]).expect("valid");
        let turned = t.look(|l| view::transpose(l, 0, 1)).expect("a matrix");
        let all = repeat(&turned, &[2, 1, 2]).expect("fits");
        assert_eq!(all.sizes()[..], [2, 2, 4]);
        assert!(all.is_contiguous());
        assert_eq!(all.to_vec::<i32>().expect("i32"), [1, 3, 1, 3, 2, 4, 2, 4].repeat(2));
        assert_eq!(repeat(&t, &[0, 3]).expect("empty").sizes()[..], [0, 6]);
    }

    #[test]
    fn what_lies_in_another_order_is_rearranged_as_it_lies() {
        let numbers: Vec<i32> = (0..2 * 3 * 4 * 5).collect();
        let t = Tensor::from_vec(&numbers, &[2, 3, 4, 5]).expect("valid");
        let images = t.look(|l| Ok(view::reorder(l, &[0, 3, 1, 2]))).expect("a view");
        let map = |indices: &[usize]| memory::copied(indices).expect("small");
        let maps = [map(&[1, 0]), map(&[4, 0, 0]), map(&[2, 1, 0]), map(&[1])];
        let (plain, as_it_lies) = (remap(&images, &maps), remap_as_it_lies(&images, &maps));
        let (plain, as_it_lies) = (plain.expect("inside"), as_it_lies.expect("inside"));
        assert_eq!(as_it_lies.to_vec::<i32>().expect("i32"), plain.to_vec::<i32>().expect("i32"));
        assert!(plain.is_contiguous() && as_it_lies.layout().is_channels_last());
        // Where there are gaps it is made row-major.
        let gaps = images.look(|l| view::narrow(l, 1, 0, 4)).expect("a view");
        let same: Vec<_> =
            gaps.sizes().iter().map(|size| map(&(0..*size as usize).collect::<Vec<_>>())).collect();
        assert!(remap_as_it_lies(&gaps, &same).expect("inside").is_contiguous());
    }

    #[test]
    fn empty_vectors_do_not_count_and_dtypes_promote() {
        let a = Tensor::from_vec(&[1i32, 2], &[1, 2]).expect("valid");
        let none = Tensor::zeros(DType::F32, &[0]).expect("small");
        let joined = concat(&[none, a.clone(), a.clone()], 0).expect("fits");
        assert_eq!((joined.dtype(), joined.sizes().to_vec()), (DType::F32, vec![2, 2]));
        let other = Tensor::zeros(DType::I32, &[1, 3]).expect("small");
        let error = concat(&[a, other], 0).expect_err("sizes differ");
        assert!(
            error.message().starts_with("Sizes of tensors must match except in dimension 0. Expected size 2")
        );
    }
}
