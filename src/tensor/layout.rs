//! Sizes, strides and offset: where the elements of a tensor lie in its storage. All counted in elements.

use super::DType;
use crate::diag::{Diagnostic, Result};
use smallvec::SmallVec;

/// A short list of sizes or strides.
pub type Dims = SmallVec<[i64; 6]>;

/// Rank that no tensor exceeds.
const MAX_RANK: usize = 4096;

/// Where each element lies: element `(i0, i1, …)` at `offset + i0 * strides[0] + i1 * strides[1] + …`.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// Size of each dimension, never negative.
    pub sizes: Dims,
    /// Stride of each dimension.
    pub strides: Dims,
    /// Index of the first element in the storage.
    pub offset: usize,
}

/// By hand, as the derived one clones number by number, and layouts are cloned with each access to a tensor.
impl Clone for Layout {
    fn clone(&self) -> Layout {
        Layout {
            sizes: Dims::from_slice(&self.sizes),
            strides: Dims::from_slice(&self.strides),
            offset: self.offset,
        }
    }
}

impl Layout {
    /// Dense row-major order. Fails on negative sizes and on overflow.
    pub fn contiguous(sizes: &[i64]) -> Result<Layout> {
        checked_numel(sizes)?;
        Ok(Layout { sizes: Dims::from_slice(sizes), strides: contiguous_strides(sizes), offset: 0 })
    }

    /// Any strides; sizes and strides must have the same length.
    pub fn strided(sizes: &[i64], strides: &[i64], offset: usize) -> Result<Layout> {
        checked_numel(sizes)?;
        if sizes.len() != strides.len() {
            return Err(Diagnostic::runtime(format!(
                "mismatch in length of strides and shape: {} and {}",
                strides.len(),
                sizes.len()
            )));
        }
        Ok(Layout { sizes: Dims::from_slice(sizes), strides: Dims::from_slice(strides), offset })
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        numel(&self.sizes)
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// Whether elements lie densely in logical order (dimensions of size 1 do not count; empty tensors are).
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        if self.numel() == 0 {
            return true;
        }
        for (size, stride) in self.sizes.iter().zip(&self.strides).rev() {
            if *size != 1 {
                if *stride != expected {
                    return false;
                }
                expected *= size;
            }
        }
        true
    }

    /// Whether images (rank 4) or volumes (rank 5) lie densely with their channels innermost. Dimensions of size 1 do not
    /// count: `is_contiguous(memory_format=torch.channels_last)`.
    pub fn is_channels_last(&self) -> bool {
        let Some(order) = channels_last_order(self.rank()) else { return false };
        let mut expected = 1i64;
        for d in order {
            if self.sizes[*d] != 1 {
                if self.strides[*d] != expected {
                    return false;
                }
                expected = expected.saturating_mul(self.sizes[*d]);
            }
        }
        true
    }

    /// Whether results computed from this layout get their channels last (`suggest_memory_format`). The strides alone
    /// decide, those of dimensions of size 1 included; what is ambiguous is row-major.
    pub fn suggests_channels_last(&self) -> bool {
        let Some(order) = channels_last_order(self.rank()) else { return false };
        if self.strides[1] == 0 {
            return false;
        }
        let mut least = 0i64;
        for d in order {
            let (size, stride) = (self.sizes[*d], self.strides[*d]);
            if size == 0 || stride < least || (*d == 0 && least == self.strides[1]) {
                return false;
            }
            least = stride.saturating_mul(size.max(1));
        }
        true
    }

    /// Whether two different indices can mean the same element, judged as PyTorch does for writes (a stride of 0).
    pub fn has_internal_overlap(&self) -> bool {
        self.sizes.iter().zip(&self.strides).any(|(size, stride)| *size > 1 && *stride == 0)
    }

    /// Fails, with PyTorch's error, if writing through the layout would write one element twice.
    pub fn refuse_overlap(&self) -> Result<()> {
        if self.has_internal_overlap() {
            return Err(Diagnostic::runtime(
                "unsupported operation: more than one element of the written-to tensor refers to a single memory \
                 location. Please clone() the tensor before performing the operation.",
            ));
        }
        Ok(())
    }

    /// Fails unless there is a stride for each size, no size is negative, and every element lies within a storage of
    /// `capacity` elements.
    pub fn check_within(&self, capacity: usize) -> Result<()> {
        if self.sizes.len() != self.strides.len() || self.sizes.iter().any(|size| *size < 0) {
            return Err(Diagnostic::runtime(format!(
                "setStorage: sizes {:?} with strides {:?} are not a layout",
                self.sizes.as_slice(),
                self.strides.as_slice()
            )));
        }
        if self.numel() == 0 {
            return Ok(());
        }
        let (mut low, mut high) = (self.offset as i128, self.offset as i128);
        for (size, stride) in self.sizes.iter().zip(&self.strides) {
            let reach = (*size as i128 - 1) * *stride as i128;
            if reach < 0 { low += reach } else { high += reach }
        }
        if low < 0 || high >= capacity as i128 {
            return Err(Diagnostic::runtime(format!(
                "setStorage: sizes {:?}, strides {:?}, storage offset {} reach outside of a storage of {capacity} elements",
                self.sizes.as_slice(),
                self.strides.as_slice(),
                self.offset
            )));
        }
        Ok(())
    }

    /// The same elements with another broadcastable size in front and in place of ones (`expand`).
    pub fn broadcast_to(&self, sizes: &[i64]) -> Option<Layout> {
        let extra = sizes.len().checked_sub(self.rank())?;
        let mut strides: Dims = SmallVec::from_elem(0, extra);
        for (i, (size, stride)) in self.sizes.iter().zip(&self.strides).enumerate() {
            match (*size, sizes[extra + i]) {
                (a, b) if a == b => strides.push(*stride),
                (1, _) => strides.push(0),
                _ => return None,
            }
        }
        Some(Layout { sizes: Dims::from_slice(sizes), strides, offset: self.offset })
    }

    /// Calls `visit` with the storage index of each element in logical order.
    pub fn for_each_index(&self, mut visit: impl FnMut(usize)) {
        let total = self.numel();
        if total == 0 {
            return;
        }
        let rank = self.rank();
        if rank == 0 {
            visit(self.offset);
            return;
        }
        let (inner_size, inner_stride) = (self.sizes[rank - 1], self.strides[rank - 1]);
        let mut counter: Dims = SmallVec::from_elem(0, rank - 1);
        let mut base = self.offset as i64;
        loop {
            let mut at = base;
            for _ in 0..inner_size {
                visit(at as usize);
                at = at.wrapping_add(inner_stride);
            }
            // Advance the outer dimensions like an odometer.
            let mut dim = rank - 1;
            loop {
                if dim == 0 {
                    return;
                }
                dim -= 1;
                counter[dim] += 1;
                // A dimension of size 1 may have any stride: what is added goes again.
                base = base.wrapping_add(self.strides[dim]);
                if counter[dim] < self.sizes[dim] {
                    break;
                }
                base = base.wrapping_sub(self.strides[dim].wrapping_mul(self.sizes[dim]));
                counter[dim] = 0;
            }
        }
    }
}

/// The dimensions of images or volumes with channels last, innermost first; None for other ranks.
fn channels_last_order(rank: usize) -> Option<&'static [usize]> {
    match rank {
        4 => Some(&[1, 3, 2, 0]),
        5 => Some(&[1, 4, 3, 2, 0]),
        _ => None,
    }
}

/// Dense strides of images (rank 4) or volumes (rank 5) with their channels innermost; row-major for other ranks.
pub fn channels_last_strides(sizes: &[i64]) -> Dims {
    let Some(order) = channels_last_order(sizes.len()) else { return contiguous_strides(sizes) };
    let mut strides: Dims = SmallVec::from_elem(1, sizes.len());
    let mut step: i64 = 1;
    for d in order {
        strides[*d] = step;
        step = step.saturating_mul(sizes[*d].max(1));
    }
    strides
}

/// Product of sizes; callers have checked them.
pub fn numel(sizes: &[i64]) -> usize {
    sizes.iter().map(|s| (*s).max(0) as usize).fold(1, usize::saturating_mul)
}

/// Product of sizes, or the error for a negative or an enormous one.
pub fn checked_numel(sizes: &[i64]) -> Result<usize> {
    if sizes.len() > MAX_RANK {
        return Err(Diagnostic::runtime(format!(
            "tensors have at most {MAX_RANK} dimensions, got {}",
            sizes.len()
        )));
    }
    if let Some(size) = sizes.iter().find(|s| **s < 0) {
        return Err(Diagnostic::runtime(format!(
            "Trying to create tensor with negative dimension {size}: {sizes:?}"
        )));
    }
    // Of sizes other than 0 each product is one that can be computed, whichever of them a kernel multiplies.
    let product = sizes.iter().try_fold(1usize, |n, s| n.checked_mul((*s).max(1) as usize));
    let count = product.filter(|n| *n <= isize::MAX as usize / 16).ok_or_else(|| {
        Diagnostic::runtime("numel: integer multiplication overflow").note(format!("the sizes are {sizes:?}"))
    })?;
    Ok(if sizes.contains(&0) { 0 } else { count })
}

/// Bytes of a dense tensor.
pub(super) fn byte_size(sizes: &[i64], dtype: DType) -> Result<usize> {
    Ok(checked_numel(sizes)? * dtype.size())
}

/// Strides of dense row-major order; sizes of 0 count as 1, as in PyTorch.
pub fn contiguous_strides(sizes: &[i64]) -> Dims {
    let mut strides: Dims = SmallVec::from_elem(1, sizes.len());
    let mut step: i64 = 1;
    for i in (0..sizes.len()).rev() {
        strides[i] = step;
        step = step.saturating_mul(sizes[i].max(1));
    }
    strides
}

/// The sizes that several sizes broadcast to, or PyTorch's error.
pub fn broadcast_sizes(a: &[i64], b: &[i64]) -> Result<Dims> {
    let rank = a.len().max(b.len());
    let mut out: Dims = SmallVec::from_elem(1, rank);
    // From the back, as errors name the first mismatch that PyTorch meets.
    for i in (0..rank).rev() {
        let x = (i + a.len()).checked_sub(rank).map_or(1, |j| a[j]);
        let y = (i + b.len()).checked_sub(rank).map_or(1, |j| b[j]);
        out[i] = match (x, y) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            (x, y) => {
                return Err(Diagnostic::runtime(format!(
                    "The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {i}"
                )));
            }
        };
    }
    Ok(out)
}

/// A dimension counted from the front; negative ones count from the back, rank 0 takes 0 and -1.
pub fn wrap_dim(dim: i64, rank: usize) -> Result<usize> {
    let n = rank.max(1) as i64;
    if dim < -n || dim >= n {
        return Err(Diagnostic::raised(
            "IndexError",
            format!("Dimension out of range (expected to be in range of [{}, {}], but got {dim})", -n, n - 1),
        ));
    }
    Ok(if dim < 0 { dim + n } else { dim } as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_elements_in_logical_order() {
        let layout = Layout::strided(&[2, 3], &[1, 2], 1).expect("valid");
        let mut seen = Vec::new();
        layout.for_each_index(|i| seen.push(i));
        assert_eq!(seen, [1, 3, 5, 2, 4, 6]);
    }

    /// What PyTorch's `suggest_memory_format` says of layouts with dimensions of size 1.
    #[test]
    fn strides_of_size_one_decide_formats() {
        let cases: &[(&[i64], &[i64], bool, bool)] = &[
            (&[2, 3, 4, 5], &[60, 1, 15, 3], true, true),
            (&[2, 3, 4, 5], &[60, 20, 5, 1], false, false),
            (&[1, 8, 16, 16], &[8, 1, 128, 8], true, false),
            (&[1, 8, 16, 16], &[2048, 1, 128, 8], true, true),
            (&[4, 1, 1, 1], &[1, 1, 1, 1], true, false),
            (&[1, 1, 4, 4], &[16, 16, 4, 1], true, false),
            (&[2, 0, 4, 5], &[0, 1, 0, 0], true, false),
            (&[2, 3, 4, 5, 6], &[360, 1, 90, 18, 3], true, true),
        ];
        for (sizes, strides, dense, suggested) in cases {
            let layout = Layout::strided(sizes, strides, 0).expect("valid");
            let found = (layout.is_channels_last(), layout.suggests_channels_last());
            assert_eq!(found, (*dense, *suggested), "{sizes:?} {strides:?}");
        }
        assert_eq!(channels_last_strides(&[2, 3, 4, 5]).as_slice(), [60, 1, 15, 3]);
    }

    #[test]
    fn refuses_layouts_outside_the_storage() {
        assert!(Layout::strided(&[2, 3], &[3, 1], 1).and_then(|l| l.check_within(6)).is_err());
        assert!(Layout::strided(&[i64::MAX, 3], &[3, 1], 0).is_err());
        assert!(Layout::contiguous(&[-1]).is_err());
    }

    #[test]
    fn broadcasts_like_pytorch() {
        assert_eq!(broadcast_sizes(&[3, 1], &[4]).expect("valid").as_slice(), &[3, 4]);
        assert!(broadcast_sizes(&[3], &[4]).is_err());
    }
}
