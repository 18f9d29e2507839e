//! Foreign memory that tensors may write to: an array of the host program that keeps it.

#![allow(
    unsafe_code,
    reason = "reads and writes memory by its address; the promise of `Foreign::new` makes it sound"
)]

use std::any::Any;
use std::fmt;

/// Writable memory with what keeps it.
pub struct Foreign {
    address: *mut u8,
    nbytes: usize,
    /// Dropped when no tensor needs the memory any more.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the address is used for the memory alone, which belongs to no thread; a storage's lock orders all access.
unsafe impl Send for Foreign {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for Foreign {}

impl Foreign {
    /// Memory of `nbytes` bytes at `address`, kept by `owner`.
    ///
    /// # Safety
    /// Until `owner` is dropped the memory must stay in place, be initialized and writable, and must not be written
    /// while an operation runs on a tensor over it, nor read it while one writes.
    pub unsafe fn new(address: *mut u8, nbytes: usize, owner: Box<dyn Any + Send + Sync>) -> Foreign {
        // Nothing is read from a place that may be null.
        let address =
            if nbytes == 0 { std::ptr::NonNull::<u64>::dangling().as_ptr().cast() } else { address };
        Foreign { address, nbytes, _owner: owner }
    }

    /// The elements of a vector, where they lie.
    pub fn of_vec<T: super::Element>(mut elements: Vec<T>) -> Foreign {
        let (address, nbytes) =
            (elements.as_mut_ptr().cast::<u8>(), std::mem::size_of_val(elements.as_slice()));
        // SAFETY: the vector's memory stays in place as long as the vector, which is not shared, and holds plain numbers.
        unsafe { Foreign::new(address, nbytes, Box::new(elements)) }
    }

    /// The first `nbytes` bytes of memory that a storage owned, where they lie.
    pub(super) fn of_block(mut block: super::block::Block, nbytes: usize) -> Foreign {
        let address = block.bytes_mut().as_mut_ptr();
        // SAFETY: the block's memory stays in place as long as the block, which is not shared, and is longer.
        unsafe { Foreign::new(address, nbytes, Box::new(block)) }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `new` was promised initialized memory of this size; `&self` keeps its owner.
        unsafe { std::slice::from_raw_parts(self.address, self.nbytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and it is writable; `&mut self` says that no other slice of it is in use.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.nbytes) }
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Foreign({} bytes)", self.nbytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{DType, Layout, Storage, Tensor};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Numbers of the host, and how many owners of them were dropped.
    struct Owner {
        numbers: Box<[f32]>,
        dropped: Arc<AtomicUsize>,
    }

    impl Drop for Owner {
        fn drop(&mut self) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A vector over numbers that the host keeps, and the count of owners that went.
    fn vector(numbers: &[f32]) -> (Tensor, Arc<AtomicUsize>) {
        let dropped = Arc::new(AtomicUsize::new(0));
        let mut owner = Owner { numbers: numbers.into(), dropped: Arc::clone(&dropped) };
        let (address, nbytes) = (owner.numbers.as_mut_ptr().cast::<u8>(), numbers.len() * 4);
        // SAFETY: the box stays at its place until the owner is dropped, and no other op uses it.
        let memory = unsafe { Foreign::new(address, nbytes, Box::new(owner)) };
        let layout = Layout::contiguous(&[numbers.len() as i64]).expect("small");
        (Tensor::from_storage(Storage::foreign(memory), DType::F32, layout).expect("it fits"), dropped)
    }

    #[test]
    fn the_owner_goes_with_the_last_tensor() {
        let (tensor, dropped) = vector(&[1.0, 2.0, 3.0]);
        let view = tensor.clone();
        drop(tensor);
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
        assert_eq!(view.to_vec::<f32>().expect("readable"), [1.0, 2.0, 3.0]);
        drop(view);
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn writes_go_to_the_memory_of_the_host() {
        let (tensor, _dropped) = vector(&[1.0, 2.0]);
        let before = tensor.storage().read().expect("readable").as_ptr();
        tensor.storage().write().expect("writable")[..4].copy_from_slice(&5f32.to_ne_bytes());
        assert_eq!(tensor.storage().read().expect("readable").as_ptr(), before, "it is not copied away");
        assert_eq!(tensor.to_vec::<f32>().expect("readable"), [5.0, 2.0]);
    }

    #[test]
    fn memory_that_was_lent_twice_overlaps() {
        let own = Tensor::from_vec(&[1f32, 2.0, 3.0, 4.0], &[4]).expect("small").storage();
        let pin = own.pin().expect("host memory");
        let (begin, middle, end) =
            (pin.address(), pin.address().wrapping_add(8), pin.address().wrapping_add(16));
        let pin = Arc::new(pin);
        let over = |address, nbytes| {
            // SAFETY: the pin keeps the memory at its place, and no other thread uses it.
            Storage::foreign(unsafe { Foreign::new(address, nbytes, Box::new(Arc::clone(&pin))) })
        };
        let (first, second) = (over(begin, 8), over(middle, 8));
        assert!(own.overlaps(&own) && own.overlaps(&first) && second.overlaps(&own));
        assert!(!first.overlaps(&second) && !own.overlaps(&over(end, 0)));
        assert!(!Tensor::from_vec(&[1f32], &[1]).expect("small").storage().overlaps(&own));
    }

    #[test]
    fn it_never_grows() {
        let (tensor, _dropped) = vector(&[1.0]);
        tensor.storage().grow(4).expect("it has that many");
        let error = tensor.storage().grow(5).expect_err("the host knows its size");
        assert!(error.message().contains("not resizable"), "{error}");
    }

    #[test]
    fn nothing_at_no_place_is_empty() {
        // SAFETY: no byte is ever used.
        let memory = unsafe { Foreign::new(std::ptr::null_mut(), 0, Box::new(())) };
        assert!(memory.bytes().is_empty());
        let storage = Storage::foreign(memory);
        let layout = Layout::contiguous(&[0, 3]).expect("small");
        let tensor = Tensor::from_storage(storage, DType::F32, layout).expect("it needs no byte");
        assert!(tensor.to_vec::<f32>().expect("empty").is_empty());
    }

    #[test]
    fn threads_take_turns() {
        let (tensor, _dropped) = vector(&[0.0; 1024]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let storage = tensor.storage();
                        let mut bytes = storage.write().expect("the lock is granted");
                        let numbers: &mut [f32] = bytemuck::cast_slice_mut(&mut bytes);
                        // A writer that is alone sees one number everywhere.
                        assert!(numbers.iter().all(|x| *x == numbers[0]));
                        numbers.iter_mut().for_each(|x| *x += 1.0);
                    }
                });
            }
        });
        assert_eq!(tensor.to_vec::<f32>().expect("readable"), [800.0; 1024]);
    }
}
