//! Tensors: dtypes, sizes and strides, storage, views, promotion.
//!
//! A [`Tensor`] is a shared handle: clones are the same tensor, views are other tensors over the same
//! [`Storage`]. Data sit behind a lock, so that writes through views and from `fork`ed work are sound.
//! This layer knows no operator and no TorchScript.

mod data;
mod device;
mod elements;
mod dtype;
mod layout;
pub mod pointwise;
mod pool;
mod promote;
mod scalar;
mod storage;
pub mod view;

pub use data::Strided;
pub use device::Device;
pub use dtype::{Bool, DType, Element};
pub use elements::broadcast_all;
pub use layout::{Dims, Layout, broadcast_sizes, contiguous_strides, numel, wrap_dim};
pub use promote::{Operand, promote_types, result_type};
pub use scalar::Scalar;
pub use storage::{DeviceBuffer, HostBytes, ReadBytes, Storage};

use crate::diag::{Diagnostic, Result};
use parking_lot::RwLock;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A tensor: layout over storage, plus gradient state. Clones share identity.
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

struct Inner {
    meta: RwLock<Meta>,
    grad: RwLock<GradState>,
}

/// Everything that says where a tensor's elements are; `t_()` or `resize_` change it in place.
#[derive(Clone, Debug)]
struct Meta {
    storage: Storage,
    dtype: DType,
    layout: Layout,
}

/// What autograd keeps with a tensor.
#[derive(Default)]
struct GradState {
    requires_grad: bool,
    grad: Option<Tensor>,
    node: Option<Arc<dyn Any + Send + Sync>>,
}

impl Tensor {
    /// A tensor over existing storage. Fails if an element would lie outside of it.
    pub fn from_storage(storage: Storage, dtype: DType, layout: Layout) -> Result<Tensor> {
        layout.check_within(storage.nbytes() / dtype.size().max(1))?;
        Ok(Self::assemble(storage, dtype, layout))
    }

    fn assemble(storage: Storage, dtype: DType, layout: Layout) -> Tensor {
        let meta = RwLock::new(Meta { storage, dtype, layout });
        Tensor(Arc::new(Inner { meta, grad: RwLock::new(GradState::default()) }))
    }

    /// A contiguous tensor of zeros. Fails on negative sizes and when the size overflows memory.
    pub fn zeros(dtype: DType, sizes: &[i64]) -> Result<Tensor> {
        let layout = Layout::contiguous(sizes)?;
        let storage = Storage::zeroed(layout::byte_size(sizes, dtype)?)?;
        Ok(Self::assemble(storage, dtype, layout))
    }

    /// A contiguous tensor that the caller is about to overwrite whole: its content may be that of a freed one.
    pub fn for_writing(dtype: DType, sizes: &[i64]) -> Result<Tensor> {
        let layout = Layout::contiguous(sizes)?;
        let storage = Storage::for_writing(layout::byte_size(sizes, dtype)?)?;
        Ok(Self::assemble(storage, dtype, layout))
    }

    /// A contiguous tensor with given elements in logical order; their number must match the sizes.
    pub fn from_vec<T: Element>(elements: &[T], sizes: &[i64]) -> Result<Tensor> {
        let layout = Layout::contiguous(sizes)?;
        if elements.len() != layout.numel() {
            return Err(Diagnostic::internal(format!(
                "{} elements given for sizes {sizes:?}",
                elements.len()
            )));
        }
        Ok(Self::assemble(Storage::from_bytes(bytemuck::cast_slice(elements))?, T::DTYPE, layout))
    }

    /// A contiguous tensor from little-endian bytes in logical order.
    pub fn from_bytes(dtype: DType, sizes: &[i64], bytes: &[u8]) -> Result<Tensor> {
        if layout::byte_size(sizes, dtype)? != bytes.len() {
            return Err(Diagnostic::input(format!(
                "{} bytes given for a {} tensor of sizes {sizes:?}",
                bytes.len(),
                dtype.name()
            )));
        }
        Ok(Self::assemble(Storage::from_bytes(bytes)?, dtype, Layout::contiguous(sizes)?))
    }

    /// A tensor of rank 0.
    pub fn from_scalar(value: Scalar, dtype: DType) -> Result<Tensor> {
        Self::full(dtype, &[], value)
    }

    /// A contiguous tensor whose elements all equal `value`, converted to `dtype`.
    pub fn full(dtype: DType, sizes: &[i64], value: Scalar) -> Result<Tensor> {
        let tensor = Self::zeros(dtype, sizes)?;
        tensor.fill(value)?;
        Ok(tensor)
    }

    /// Another tensor over the same storage and dtype, seen through another layout.
    pub fn with_layout(&self, layout: Layout) -> Result<Tensor> {
        let meta = self.meta();
        Self::from_storage(meta.storage, meta.dtype, layout)
    }

    /// Another tensor over the same storage, its bytes read as another dtype; offsets count elements of the new dtype.
    pub fn with_dtype_layout(&self, dtype: DType, layout: Layout) -> Result<Tensor> {
        Self::from_storage(self.storage(), dtype, layout)
    }

    fn meta(&self) -> Meta {
        self.0.meta.read().clone()
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.0.meta.read().dtype
    }

    /// Sizes, strides and offset, all counted in elements.
    pub fn layout(&self) -> Layout {
        self.0.meta.read().layout.clone()
    }

    /// The storage, shared with all views.
    pub fn storage(&self) -> Storage {
        self.0.meta.read().storage.clone()
    }

    /// Where the storage lives.
    pub fn device(&self) -> Device {
        self.0.meta.read().storage.device()
    }

    /// Size of each dimension.
    pub fn sizes(&self) -> Dims {
        self.0.meta.read().layout.sizes.clone()
    }

    /// Stride of each dimension, in elements.
    pub fn strides(&self) -> Dims {
        self.0.meta.read().layout.strides.clone()
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.meta.read().layout.sizes.len()
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.0.meta.read().layout.numel()
    }

    /// Whether the elements lie densely in logical order.
    pub fn is_contiguous(&self) -> bool {
        self.0.meta.read().layout.is_contiguous()
    }

    /// Whether two handles are the same tensor (Python's `is`).
    pub fn same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// An address that identifies the tensor while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as *const u8 as usize
    }

    /// Changes this very tensor to another layout over its storage (`t_`, `unsqueeze_`, `as_strided_`).
    pub fn set_layout(&self, layout: Layout) -> Result<()> {
        let mut meta = self.0.meta.write();
        layout.check_within(meta.storage.nbytes() / meta.dtype.size().max(1))?;
        meta.layout = layout;
        Ok(())
    }

    /// Gives this very tensor other sizes, dense, over the same storage, which grows where it is too small: other tensors
    /// over it see what is written next.
    pub fn give_sizes(&self, sizes: &[i64]) -> Result<()> {
        if *self.sizes() == *sizes {
            return Ok(());
        }
        let mut layout = Layout::contiguous(sizes)?;
        layout.offset = self.layout().offset;
        if self.set_layout(layout.clone()).is_err() {
            let needed = layout.offset.saturating_add(layout.numel()).saturating_mul(self.dtype().size());
            self.storage().grow(needed)?;
            self.set_layout(layout)?;
        }
        Ok(())
    }

    /// Makes this very tensor see what `other` sees (`set_`, `x.data = y`, `resize_` after growing).
    pub fn set_data(&self, other: &Tensor) {
        let meta = other.meta();
        *self.0.meta.write() = meta;
    }

    /// Whether autograd records operations on it.
    pub fn requires_grad(&self) -> bool {
        self.0.grad.read().requires_grad
    }

    /// Turns recording on or off; only floating point and complex tensors can require gradients.
    pub fn set_requires_grad(&self, on: bool) -> Result<()> {
        if on && !(self.dtype().is_floating() || self.dtype().is_complex()) {
            return Err(Diagnostic::runtime("only Tensors of floating point dtype can require gradients"));
        }
        self.0.grad.write().requires_grad = on;
        Ok(())
    }

    /// The accumulated gradient, if any.
    pub fn grad(&self) -> Option<Tensor> {
        self.0.grad.read().grad.clone()
    }

    /// Replaces the accumulated gradient.
    pub fn set_grad(&self, grad: Option<Tensor>) {
        self.0.grad.write().grad = grad;
    }

    /// The autograd node that made this tensor; autodiff alone knows what it is.
    pub fn grad_node(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.0.grad.read().node.clone()
    }

    /// Sets the autograd node.
    pub fn set_grad_node(&self, node: Option<Arc<dyn Any + Send + Sync>>) {
        self.0.grad.write().node = node;
    }

    /// How often the storage was written through any view; saved tensors compare it.
    pub fn version(&self) -> u64 {
        self.storage().version()
    }

    /// A new tensor over the same storage that autograd does not follow (`detach`).
    pub fn detach(&self) -> Tensor {
        let meta = self.meta();
        Self::assemble(meta.storage, meta.dtype, meta.layout)
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({}, {:?})", self.dtype().name(), self.sizes().as_slice())
    }
}
