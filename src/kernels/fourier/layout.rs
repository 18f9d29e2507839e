//! How PyTorch lays out the results of Fourier transforms: the transformed dimensions are innermost, the others keep the
//! order in which they lie in the input.

use crate::diag::Result;
use crate::tensor::{Dims, Layout, channels_last_strides, contiguous_strides};

/// The strides of an input that was cropped or filled up with zeros to `lengths` along `dims`.
pub fn resized(layout: &Layout, dims: &[usize], lengths: &[i64]) -> Result<Dims> {
    let grows = dims.iter().zip(lengths).any(|(d, n)| layout.sizes[*d] < *n);
    if !grows {
        return Ok(layout.strides.clone());
    }
    let mut sizes = layout.sizes.clone();
    dims.iter().zip(lengths).for_each(|(d, n)| sizes[*d] = *n);
    let is_last = layout.suggests_channels_last();
    Ok(if is_last { channels_last_strides(&sizes) } else { contiguous_strides(&sizes) })
}

/// Transformed dimensions from the outermost in memory to the innermost; `last` of them stay where they are.
pub fn sorted(strides: &[i64], dims: &[usize], last: usize) -> Vec<usize> {
    let mut out = dims.to_vec();
    let end = out.len().saturating_sub(last);
    out[..end].sort_by_key(|d| std::cmp::Reverse(strides[*d]));
    out
}

/// The strides of a result of `sizes`, transformed along `dims` from an input with the given strides.
pub fn transformed(strides: &[i64], sizes: &[i64], dims: &[usize]) -> Dims {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    let batch = partition(&mut order, |d| !dims.contains(&d));
    order[..batch].sort_by_key(|d| std::cmp::Reverse(strides[*d]));
    order.truncate(batch);
    order.extend_from_slice(dims);
    let mut out = contiguous_strides(sizes);
    let mut step = 1i64;
    for d in order.iter().rev() {
        out[*d] = step;
        step = step.saturating_mul(sizes[*d].max(1));
    }
    out
}

/// Brings those that hold to the front by swaps from both ends, in the order that C++ libraries give; says how many.
fn partition(items: &mut [usize], holds: impl Fn(usize) -> bool) -> usize {
    let (mut first, mut last) = (0, items.len());
    loop {
        while first < last && holds(items[first]) {
            first += 1;
        }
        while first < last && !holds(items[last - 1]) {
            last -= 1;
        }
        if first >= last {
            return first;
        }
        items.swap(first, last - 1);
        first += 1;
        last -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strides that PyTorch gives.
    #[test]
    fn transformed_dimensions_are_innermost() {
        assert_eq!(transformed(&[12, 4, 1], &[2, 3, 4], &[0])[..], [1, 8, 2]);
        assert_eq!(transformed(&[5, 1, 12, 2, 36], &[2, 2, 3, 2, 3], &[4])[..], [12, 3, 24, 6, 1]);
        assert_eq!(transformed(&[1, 3], &[3, 4], &sorted(&[1, 3], &[0, 1], 0))[..], [1, 3]);
    }
}
