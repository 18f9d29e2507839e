//! Tensors: dtypes, sizes and strides, storage, views, promotion.
//!
//! A [`Tensor`] is a shared handle: clones are the same tensor, views are other tensors over the same
//! [`Storage`]. Data sit behind a lock, so that writes through views and from `fork`ed work are sound.
//! This layer knows no operator and no TorchScript.

mod data;
mod device;
mod dtype;
mod element;
mod elements;
mod fill;
mod float8;
mod array;
mod block;
pub mod dlpack;
pub mod guest;
mod foreign;
mod layout;
pub mod overlap;
pub mod pointwise;
mod pool;
mod promote;
mod quantizer;
mod reads;
mod resident;
mod scalar;
mod shared;
mod storage;
mod strided_copy;
mod sync;
pub mod view;

pub use data::{InOrder, Strided, cast_row};
pub use device::Device;
pub use dtype::{Bool, DType};
pub use element::Element;
pub use elements::{Blocks, broadcast_all};
pub use fill::check_fill;
pub use float8::{E4m3fn, E4m3fnuz, E5m2, E5m2fnuz, E8m0fnu};
pub use foreign::Foreign;
pub use layout::{
    Dims, Layout, broadcast_sizes, channels_last_strides, checked_numel, contiguous_strides, numel, wrap_dim,
};
pub use pool::{keep_freed, kept_bytes};
pub use promote::{
    Operand, Rank, check_promotion, check_promotions, common_dtype, promote_types, result_type,
};
pub use quantizer::Quantizer;
pub use reads::Moment;
pub use resident::{DeviceBuffer, DeviceMemory, impatiently};
pub use scalar::Scalar;
pub use storage::{HostBytes, Pin, ReadBytes, Storage, WriteBytes};
#[doc(hidden)]
pub use {half, num_complex}; // for `dispatch_dtype!`, wherever it is used

use crate::diag::{Diagnostic, Result};
use crate::resources::Charge;
use parking_lot::{RwLock, RwLockWriteGuard};
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// A tensor: layout over storage, plus gradient state. Clones share identity.
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

/// A tensor that this does not keep alive.
pub struct WeakTensor(Weak<Inner>);

impl WeakTensor {
    /// The tensor, if it still lives.
    pub fn upgrade(&self) -> Option<Tensor> {
        self.0.upgrade().map(Tensor)
    }
}

struct Inner {
    meta: RwLock<Snapshot>,
    /// How often `meta` was changed.
    changes: AtomicU64,
    grad: RwLock<GradState>,
    _charge: Charge,
}

/// Bytes that a tensor takes besides its elements: layout, gradient state, a small storage.
const TENSOR_BYTES: usize = 512;

/// Everything that says where a tensor's elements are, at one moment: `t_()`, `set_` or `resize_` change it in place,
/// from other threads too. Work that reads elements takes one of these and asks the tensor nothing afterwards.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The memory.
    pub storage: Storage,
    /// Element type.
    pub dtype: DType,
    /// Sizes, strides and offset, all counted in elements. They lie within the storage, which never shrinks.
    pub layout: Layout,
    /// How integers stand for numbers: of a quantized dtype, and of no other.
    pub quantizer: Option<Arc<Quantizer>>,
    /// Of a nested tensor, how many entries of the second dimension each entry of the first has; what follows them
    /// is padding.
    pub lengths: Option<Arc<[i64]>>,
}

/// What autograd keeps with a tensor.
#[derive(Default)]
struct GradState {
    requires_grad: bool,
    grad: Option<Tensor>,
    node: Option<Arc<dyn Any + Send + Sync>>,
    /// Of a view: the tensor that is not a view itself and whose elements it shows.
    base: Option<Tensor>,
}

impl Tensor {
    /// A tensor over existing storage. Fails if an element would lie outside of it, or where its elements are not aligned.
    pub fn from_storage(storage: Storage, dtype: DType, layout: Layout) -> Result<Tensor> {
        if storage.alignment() < dtype.size().min(8) {
            return Err(Diagnostic::runtime(format!(
                "memory at a multiple of {} bytes cannot hold {} elements",
                storage.alignment(),
                dtype.name()
            ))
            .hint("copy the bytes to memory that is aligned for the dtype"));
        }
        layout.check_within(storage.nbytes() / dtype.size().max(1))?;
        Ok(Self::assemble(storage, dtype, layout))
    }

    fn assemble(storage: Storage, dtype: DType, layout: Layout) -> Tensor {
        Self::assemble_meta(Snapshot { storage, dtype, layout, quantizer: None, lengths: None })
    }

    fn assemble_meta(meta: Snapshot) -> Tensor {
        let meta = RwLock::new(meta);
        let grad = RwLock::new(GradState::default());
        Tensor(Arc::new(Inner {
            meta,
            changes: AtomicU64::new(0),
            grad,
            _charge: Charge::taken(TENSOR_BYTES),
        }))
    }

    /// A contiguous tensor of zeros. Fails on negative sizes and when the size overflows memory.
    pub fn zeros(dtype: DType, sizes: &[i64]) -> Result<Tensor> {
        let layout = Layout::contiguous(sizes)?;
        let storage = Storage::zeroed(layout::byte_size(sizes, dtype)?)?;
        Ok(Self::assemble(storage, dtype, layout))
    }

    /// Whether no other tensor and nothing else has this tensor or its memory, which it fills from the first byte to the last in
    /// row-major order: the caller may return it as new. Never of memory that is not ours.
    pub fn is_sole(&self) -> bool {
        let meta = self.0.meta.read();
        let whole = meta.layout.offset == 0
            && meta.layout.is_contiguous()
            && meta.storage.nbytes() == meta.layout.numel() * meta.dtype.size();
        whole && Arc::strong_count(&self.0) == 1 && meta.storage.is_sole()
    }

    /// A contiguous tensor that the caller is about to overwrite whole: its content may be that of a freed one.
    pub fn for_writing(dtype: DType, sizes: &[i64]) -> Result<Tensor> {
        let layout = Layout::contiguous(sizes)?;
        let storage = Storage::for_writing(layout::byte_size(sizes, dtype)?)?;
        Ok(Self::assemble(storage, dtype, layout))
    }

    /// Fails where a tensor of these sizes cannot be stored now: for work that lists its places before it is made.
    pub fn expect(dtype: DType, sizes: &[i64]) -> Result<()> {
        Tensor::for_writing(dtype, sizes).map(drop)
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
        let tensor = Self::for_writing(dtype, sizes)?;
        tensor.fill(value)?;
        Ok(tensor)
    }

    /// Another tensor over the same storage and dtype, seen through another layout.
    pub fn with_layout(&self, layout: Layout) -> Result<Tensor> {
        let mut meta = self.meta();
        layout.check_within(meta.storage.nbytes() / meta.dtype.size().max(1))?;
        if let Some(quantizer) = &meta.quantizer {
            quantizer.check(&layout.sizes)?;
        }
        meta.layout = layout;
        Ok(Self::assemble_meta(meta))
    }

    /// Another tensor over the same storage, its bytes read as another dtype; offsets count elements of the new dtype.
    pub fn with_dtype_layout(&self, dtype: DType, layout: Layout) -> Result<Tensor> {
        Self::from_storage(self.storage(), dtype, layout)
    }

    /// The same elements as a quantized tensor: `integers` has the integer type of `dtype` (int8 of qint8), and is
    /// shared, not copied. Fails where the dtypes or the channels do not fit.
    pub fn quantized(integers: &Tensor, dtype: DType, quantizer: Arc<Quantizer>) -> Result<Tensor> {
        let mut meta = integers.meta();
        if !dtype.is_quantized() || dtype.integer_repr() != meta.dtype.integer_repr() {
            return Err(Diagnostic::internal(format!("{} as {}", meta.dtype.name(), dtype.name())));
        }
        quantizer.check(&meta.layout.sizes)?;
        meta.dtype = dtype;
        meta.quantizer = Some(quantizer);
        Ok(Self::assemble_meta(meta))
    }

    /// The integers of a quantized tensor over the same storage; the tensor itself where it is not quantized.
    pub fn integers(&self) -> Tensor {
        let mut meta = self.meta();
        if !meta.dtype.is_quantized() {
            return self.clone();
        }
        meta.dtype = meta.dtype.integer_repr();
        meta.quantizer = None;
        Self::assemble_meta(meta)
    }

    /// How the integers of a quantized tensor stand for numbers; None for other tensors.
    pub fn quantizer(&self) -> Option<Arc<Quantizer>> {
        self.0.meta.read().quantizer.clone()
    }

    /// Whether it is quantized.
    pub fn is_quantized(&self) -> bool {
        self.0.meta.read().dtype.is_quantized()
    }

    /// A nested tensor over the same storage: entry `n` of the first dimension has `lengths[n]` entries of the second, the
    /// others are padding. Fails unless there is one length an entry, none above the second size.
    pub fn nested(padded: &Tensor, lengths: Arc<[i64]>) -> Result<Tensor> {
        let mut meta = padded.meta();
        let sizes = &meta.layout.sizes;
        let fits = sizes.len() >= 2
            && lengths.len() as i64 == sizes[0]
            && lengths.iter().all(|n| (0..=sizes[1]).contains(n));
        if !fits || meta.quantizer.is_some() {
            return Err(Diagnostic::internal(format!("lengths {lengths:?} for sizes {sizes:?}")));
        }
        meta.lengths = Some(lengths);
        Ok(Self::assemble_meta(meta))
    }

    /// How long the entries of a nested tensor are; None for other tensors.
    pub fn lengths(&self) -> Option<Arc<[i64]>> {
        self.0.meta.read().lengths.clone()
    }

    /// The storage of a nested tensor with its padding; the tensor itself where it is not nested.
    pub fn padded(&self) -> Tensor {
        let mut meta = self.meta();
        if meta.lengths.take().is_none() {
            return self.clone();
        }
        Self::assemble_meta(meta)
    }

    /// Whether its elements are what they seem: neither quantized nor nested.
    pub fn is_plain(&self) -> bool {
        let meta = self.0.meta.read();
        !meta.dtype.is_quantized() && meta.lengths.is_none()
    }

    /// Gives this very tensor other scales (`set_`, `copy_` of one quantized tensor to another).
    pub fn set_quantizer(&self, quantizer: Arc<Quantizer>) -> Result<()> {
        let mut meta = self.change_meta();
        quantizer.check(&meta.layout.sizes)?;
        if !meta.dtype.is_quantized() {
            return Err(Diagnostic::internal("scales for a tensor that is not quantized"));
        }
        meta.quantizer = Some(quantizer);
        Ok(())
    }

    #[inline]
    fn meta(&self) -> Snapshot {
        self.0.meta.read().clone()
    }

    /// The metadata, about to be changed: version counters see a change.
    fn change_meta(&self) -> RwLockWriteGuard<'_, Snapshot> {
        let meta = self.0.meta.write();
        self.0.changes.fetch_add(1, Ordering::Release);
        meta
    }

    /// How often this very tensor was given another layout, dtype, quantizer or storage.
    pub fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Acquire)
    }

    /// Looks at storage, dtype and layout as they are now. `look` must not ask for the lock of another tensor.
    #[inline]
    pub fn with_meta<T>(&self, look: impl FnOnce(&Snapshot) -> T) -> T {
        look(&self.0.meta.read())
    }

    /// Storage, dtype and layout as they are now, all of the same moment.
    pub fn snapshot(&self) -> Snapshot {
        self.meta()
    }

    /// Element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.0.meta.read().dtype
    }

    /// Sizes, strides and offset, all counted in elements.
    #[inline]
    pub fn layout(&self) -> Layout {
        self.0.meta.read().layout.clone()
    }

    /// The storage, shared with all views.
    #[inline]
    pub fn storage(&self) -> Storage {
        self.0.meta.read().storage.clone()
    }

    /// The device that programs see: the host, also while a backend keeps the content in memory of its own.
    pub fn device(&self) -> Device {
        Device::CPU
    }

    /// Size of each dimension.
    pub fn sizes(&self) -> Dims {
        Dims::from_slice(&self.0.meta.read().layout.sizes)
    }

    /// Stride of each dimension, in elements.
    pub fn strides(&self) -> Dims {
        Dims::from_slice(&self.0.meta.read().layout.strides)
    }

    /// Number of dimensions.
    #[inline]
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
    #[inline]
    pub fn same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The tensor without keeping it alive.
    pub fn downgrade(&self) -> WeakTensor {
        WeakTensor(Arc::downgrade(&self.0))
    }

    /// An address that identifies the tensor while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as *const u8 as usize
    }

    /// Changes this very tensor to another layout over its storage (`t_`, `unsqueeze_`, `as_strided_`).
    pub fn set_layout(&self, layout: Layout) -> Result<()> {
        let mut meta = self.change_meta();
        layout.check_within(meta.storage.nbytes() / meta.dtype.size().max(1))?;
        if let Some(quantizer) = &meta.quantizer {
            quantizer.check(&layout.sizes)?;
        }
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
        *self.change_meta() = meta;
    }

    /// Whether autograd records operations on it.
    pub fn requires_grad(&self) -> bool {
        let state = self.0.grad.read();
        // What is written to a base later shows in its views. A base is not a view, so this ends.
        state.requires_grad || state.base.as_ref().is_some_and(|base| base.0.grad.read().requires_grad)
    }

    /// Turns recording on or off; only floating point and complex tensors can require gradients.
    pub fn set_requires_grad(&self, on: bool) -> Result<()> {
        if on && !(self.dtype().is_floating() || self.dtype().is_complex()) {
            return Err(Diagnostic::runtime(
                "Only Tensors of floating point and complex dtype can require gradients",
            ));
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

    /// Of a view that autograd follows: the tensor that is not a view itself and whose elements it shows.
    pub fn base(&self) -> Option<Tensor> {
        self.0.grad.read().base.clone()
    }

    /// Makes it a view of `base`, which must not be a view itself, and must be another tensor over the same storage.
    pub fn set_base(&self, base: Option<Tensor>) {
        let base = base.filter(|base| !base.same(self) && base.0.grad.read().base.is_none());
        self.0.grad.write().base = base;
    }

    /// How often the storage was written through any view; saved tensors compare it.
    pub fn version(&self) -> u64 {
        self.storage().version()
    }

    /// A new tensor over the same storage that autograd does not follow (`detach`).
    pub fn detach(&self) -> Tensor {
        Self::assemble_meta(self.meta())
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({}, {:?})", self.dtype().name(), self.sizes().as_slice())
    }
}
