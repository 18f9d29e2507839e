//! Arrays of other libraries as tensors over their memory: by a description and an owner. It knows no library and no protocol.

#![allow(unsafe_code, reason = "memory of others is known by its address; each block says why it is sound")]

use super::{DType, Foreign, HostBytes, Layout, Storage, Tensor};
use std::sync::Arc;

/// Where the elements of an array are.
#[derive(Clone, Debug)]
pub struct Described {
    /// Of the element with all indices 0.
    pub address: usize,
    /// What the elements are.
    pub dtype: DType,
    /// Elements of each dimension.
    pub sizes: Vec<i64>,
    /// In elements.
    pub strides: Vec<i64>,
    /// Memory that is not to be written; the first write of a program copies it.
    pub readonly: bool,
}

impl Described {
    /// Bytes from the first to after the last element; None where strides run backward, sizes are negative, or the number
    /// does not fit.
    pub fn extent(&self) -> Option<usize> {
        if self.sizes.len() != self.strides.len() || self.sizes.iter().any(|n| *n < 0) {
            return None;
        }
        if self.sizes.contains(&0) {
            return Some(0);
        }
        let mut last = 0i64;
        for (size, stride) in self.sizes.iter().zip(&self.strides) {
            if *stride < 0 {
                return None;
            }
            last = last.checked_add((size - 1).checked_mul(*stride)?)?;
        }
        usize::try_from(last.checked_add(1)?).ok()?.checked_mul(self.dtype.size())
    }

    /// A storage over the memory, `nbytes` bytes of it, that `owner` keeps.
    ///
    /// # Safety
    /// Until `owner` is dropped the memory must match its description and stay in place; it must not be written while an
    /// operation runs on a tensor over it, nor read it while one writes.
    pub unsafe fn storage(&self, nbytes: usize, owner: impl Send + Sync + 'static) -> Storage {
        if self.readonly {
            return Storage::borrowed(Arc::new(ReadOnly { address: self.address, nbytes, _owner: owner }));
        }
        // SAFETY: the caller's promise.
        Storage::foreign(unsafe { Foreign::new(self.address as *mut u8, nbytes, Box::new(owner)) })
    }

    /// A tensor of these sizes and strides whose first element is element `offset` of a storage; None where tensors cannot
    /// share the array in place: its address is not a multiple of an element's size (8 at most), or strides run backward.
    pub fn tensor(&self, storage: Storage, offset: usize) -> Option<Tensor> {
        let is_aligned = self.address.is_multiple_of(self.dtype.size().clamp(1, 8));
        if !is_aligned && !self.sizes.contains(&0) {
            return None;
        }
        let layout = Layout::strided(&self.sizes, &self.strides, offset).ok()?;
        Tensor::from_storage(storage, self.dtype, layout).ok()
    }

    /// A tensor over the memory; None where tensors cannot share the array in place, `owner` being dropped.
    ///
    /// # Safety
    /// As [`Described::storage`] says.
    pub unsafe fn over(&self, owner: impl Send + Sync + 'static) -> Option<Tensor> {
        let nbytes = self.extent()?;
        // SAFETY: the caller's promise; `extent` are the bytes that the description reaches.
        let storage = unsafe { self.storage(nbytes, owner) };
        self.tensor(storage, 0)
    }
}

/// Memory that is not to be written.
struct ReadOnly<O> {
    address: usize,
    nbytes: usize,
    _owner: O,
}

impl<O: Send + Sync> HostBytes for ReadOnly<O> {
    fn bytes(&self) -> &[u8] {
        if self.nbytes == 0 {
            return &[];
        }
        // SAFETY: the creator of the storage promised that the owner keeps these bytes.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.nbytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(sizes: &[i64], strides: &[i64], address: usize) -> Described {
        Described {
            address,
            dtype: DType::F32,
            sizes: sizes.to_vec(),
            strides: strides.to_vec(),
            readonly: false,
        }
    }

    #[test]
    fn an_extent_ends_behind_the_last_element_or_is_refused() {
        assert_eq!(described(&[2, 3], &[1, 4], 0).extent(), Some((1 + 2 * 4 + 1) * 4));
        assert_eq!(described(&[2, 0], &[-1, 1], 0).extent(), Some(0));
        assert_eq!(described(&[2], &[-1], 0).extent(), None);
        assert_eq!(described(&[-2], &[1], 0).extent(), None);
        assert_eq!(described(&[2], &[], 0).extent(), None);
        assert_eq!(described(&[i64::MAX, 3], &[2, i64::MAX], 0).extent(), None);
        assert_eq!(described(&[2], &[i64::MAX], 0).extent(), None);
    }

    #[test]
    fn memory_is_shared_until_the_owner_goes() {
        let memory = Arc::new([1.0f32, 2.0, 3.0, 4.0]);
        let mut array = described(&[2, 2], &[1, 2], memory.as_ptr() as usize);
        array.readonly = true;
        // SAFETY: the owner is the memory.
        let tensor = unsafe { array.over(Arc::clone(&memory)) }.expect("a plain array");
        assert_eq!(Arc::strong_count(&memory), 2);
        assert_eq!(tensor.to_vec::<f32>().expect("floats"), [1.0, 3.0, 2.0, 4.0]);
        drop(tensor);
        assert_eq!(Arc::strong_count(&memory), 1);
    }

    #[test]
    fn unaligned_memory_is_no_tensor() {
        let memory = [0u8; 16];
        let odd = memory.as_ptr() as usize | 1;
        // SAFETY: nothing reads it.
        assert!(unsafe { described(&[1], &[1], odd).over(()) }.is_none());
    }
}
