//! Tensors from arrays of the host program, and back, with no copy of elements where none is needed. This module knows the crate
//! `ndarray` and nothing of what tensors are computed with.

use super::{Element, Foreign, Layout, Storage, Tensor};
use crate::diag::{Diagnostic, Result};
use ndarray::{Array, ArrayView, ArrayViewD, Dimension, IxDyn, ShapeBuilder};

impl Tensor {
    /// A contiguous tensor that takes the elements of a vector as they lie: nothing is copied. Fails where their number does not
    /// match the sizes. The tensor's storage cannot be resized.
    pub fn from_owned<T: Element>(elements: Vec<T>, sizes: &[i64]) -> Result<Tensor> {
        let layout = Layout::contiguous(sizes)?;
        if elements.len() != layout.numel() {
            let message = format!("{} elements given for sizes {sizes:?}", elements.len());
            return Err(Diagnostic::input(message));
        }
        Tensor::from_storage(Storage::foreign(Foreign::of_vec(elements)), T::DTYPE, layout)
    }

    /// A tensor that takes an array's elements as they lie, its strides with them; one with negative strides is copied into
    /// row-major order.
    pub fn from_array<T: Element, D: Dimension>(array: Array<T, D>) -> Result<Tensor> {
        if array.strides().iter().any(|stride| *stride < 0) {
            return Tensor::from_view(array.view());
        }
        let sizes: Vec<i64> = array.shape().iter().map(|n| *n as i64).collect();
        let strides: Vec<i64> = array.strides().iter().map(|n| *n as i64).collect();
        let (elements, offset) = array.into_raw_vec_and_offset();
        let layout = Layout::strided(&sizes, &strides, offset.unwrap_or(0))?;
        Tensor::from_storage(Storage::foreign(Foreign::of_vec(elements)), T::DTYPE, layout)
    }

    /// A contiguous copy of what an array view shows. A view may end before the tensor does, hence the copy.
    pub fn from_view<T: Element, D: Dimension>(view: ArrayView<'_, T, D>) -> Result<Tensor> {
        let sizes: Vec<i64> = view.shape().iter().map(|n| *n as i64).collect();
        Tensor::from_owned(view.iter().copied().collect(), &sizes)
    }

    /// Shows the elements as an array view, where they lie; its dtype must be that of `T`. The tensor cannot be written
    /// meanwhile.
    pub fn with_array<T: Element, R>(&self, run: impl FnOnce(ArrayViewD<'_, T>) -> R) -> Result<R> {
        self.read::<T, _>(|strided| {
            let layout = strided.layout;
            let number = |n: &i64| usize::try_from(*n).unwrap_or(0);
            let sizes: Vec<usize> = layout.sizes.iter().map(number).collect();
            let strides: Vec<usize> = layout.strides.iter().map(number).collect();
            let shape = IxDyn(&sizes).strides(IxDyn(&strides));
            let elements = strided.storage.get(layout.offset..).unwrap_or_default();
            let view = ArrayViewD::from_shape(shape, elements);
            let view = view.map_err(|e| Diagnostic::input(format!("the tensor is not an array: {e}")))?;
            Ok(run(view))
        })?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array, s};

    fn address(tensor: &Tensor) -> usize {
        tensor.storage().read().expect("readable").as_ptr() as usize
    }

    #[test]
    fn owned_elements_stay_where_they_are() {
        let elements = vec![1.5f32, 2.5, 3.5];
        let before = elements.as_ptr() as usize;
        let tensor = Tensor::from_owned(elements, &[3]).expect("fits");
        assert_eq!(address(&tensor), before);
        assert_eq!(tensor.to_vec::<f32>().expect("floats"), [1.5, 2.5, 3.5]);
        assert!(
            Tensor::from_owned(vec![1i64], &[2]).is_err() && Tensor::from_owned(vec![1i64], &[-1]).is_err()
        );
        assert_eq!(Tensor::from_owned(Vec::<f64>::new(), &[0, 3]).expect("empty").numel(), 0);
    }

    #[test]
    fn arrays_keep_their_strides_and_their_place() {
        let transposed = array![[1i64, 2, 3], [4, 5, 6]].reversed_axes();
        let before = transposed.as_ptr() as usize;
        let tensor = Tensor::from_array(transposed).expect("fits");
        assert_eq!((address(&tensor), tensor.strides().as_slice()), (before, &[1, 3][..]));
        assert_eq!(tensor.to_vec::<i64>().expect("ints"), [1, 4, 2, 5, 3, 6]);
        let mut backward = array![1.0f64, 2.0, 3.0];
        backward.invert_axis(ndarray::Axis(0));
        assert_eq!(
            Tensor::from_array(backward).expect("is copied").to_vec::<f64>().expect("floats"),
            [3.0, 2.0, 1.0]
        );
        let sliced = array![[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]].slice_move(s![1.., ..]);
        let tensor = Tensor::from_array(sliced).expect("fits");
        assert_eq!(tensor.to_vec::<f32>().expect("floats"), [3.0, 4.0, 5.0, 6.0]);
    }

    #[test]
    fn tensors_are_shown_where_they_lie() {
        let tensor = Tensor::from_array(array![[1.0f32, 2.0], [3.0, 4.0]].reversed_axes()).expect("fits");
        let seen = tensor.with_array::<f32, _>(|view| (view.as_ptr() as usize, view[[0, 1]], view.sum()));
        assert_eq!(seen.expect("floats"), (address(&tensor), 3.0, 10.0));
        assert!(tensor.with_array::<f64, _>(|_| ()).is_err(), "another dtype");
        let grid = Array2::<f32>::zeros((2, 2));
        assert_eq!(Tensor::from_view(grid.slice(s![.., 0])).expect("copies").sizes().as_slice(), [2]);
    }
}
