//! Reading and writing elements: typed slices, copies, fills, conversions.

use super::strided_copy::StridedCopy;
use super::{Bool, DType, Element, Layout, Scalar, Snapshot, Tensor};
use crate::diag::{Diagnostic, Result};
use crate::resources::{Scratch, memory};
use bytemuck::Pod;
use half::f16;
use half::slice::HalfFloatSliceExt;
use std::ops::{Deref, DerefMut};

/// A typed view of a tensor's storage together with the layout that says which elements belong to it.
pub struct Strided<'a, T> {
    /// The whole storage as elements.
    pub storage: &'a [T],
    /// Which of them are the tensor's.
    pub layout: &'a Layout,
}

impl<T: Element> Strided<'_, T> {
    /// The tensor's elements in logical order; borrowed where they lie so already. A view may have far more elements than
    /// its storage, so that there may be no memory for a copy.
    pub fn to_dense(&self) -> Result<InOrder<'_, T>> {
        let n = self.layout.numel();
        if self.layout.is_contiguous() {
            let start = if n == 0 { 0 } else { self.layout.offset };
            return Ok(InOrder::Borrowed(&self.storage[start..start + n]));
        }
        self.gathered().map(InOrder::Gathered)
    }

    /// A copy of the elements in logical order.
    fn gathered(&self) -> Result<Scratch<T>> {
        let dense = Layout::contiguous(&self.layout.sizes)?;
        match StridedCopy::new(&dense, dense.numel(), self.layout, self.storage.len()) {
            Some(copy) if !self.layout.is_contiguous() => {
                let mut out = memory::filled(dense.numel(), T::zeroed())?;
                copy.run(&mut out[..], self.storage);
                Ok(out)
            }
            _ => self.converted(|x| x),
        }
    }

    /// What `convert` makes of each element, in logical order.
    fn converted<R>(&self, mut convert: impl FnMut(T) -> R) -> Result<Scratch<R>> {
        let n = self.layout.numel();
        memory::built(n, |out| {
            if self.layout.is_contiguous() {
                let start = if n == 0 { 0 } else { self.layout.offset };
                out.extend(self.storage[start..start + n].iter().map(|x| convert(*x)));
            } else {
                self.layout.for_each_index(|i| out.push(convert(self.storage[i])));
            }
        })
    }
}

/// Elements in logical order: where they lie, or gathered.
pub enum InOrder<'a, T> {
    /// Where they lie.
    Borrowed(&'a [T]),
    /// A copy.
    Gathered(Scratch<T>),
}

impl<T> Deref for InOrder<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            InOrder::Borrowed(elements) => elements,
            InOrder::Gathered(elements) => elements,
        }
    }
}

/// Runs `$body` with `$T` bound to the element type of a computable dtype; other dtypes are a named error.
#[macro_export]
macro_rules! dispatch_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::tensor::DType;
        match $dtype {
            DType::U8 => {
                type $T = u8;
                $body
            }
            DType::I8 => {
                type $T = i8;
                $body
            }
            DType::I16 => {
                type $T = i16;
                $body
            }
            DType::I32 => {
                type $T = i32;
                $body
            }
            DType::I64 => {
                type $T = i64;
                $body
            }
            DType::F16 => {
                type $T = $crate::tensor::half::f16;
                $body
            }
            DType::BF16 => {
                type $T = $crate::tensor::half::bf16;
                $body
            }
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::C64 => {
                type $T = $crate::tensor::num_complex::Complex<f32>;
                $body
            }
            DType::C128 => {
                type $T = $crate::tensor::num_complex::Complex<f64>;
                $body
            }
            DType::Bool => {
                type $T = $crate::tensor::Bool;
                $body
            }
            DType::U16 => {
                type $T = u16;
                $body
            }
            DType::U32 => {
                type $T = u32;
                $body
            }
            DType::U64 => {
                type $T = u64;
                $body
            }
            DType::F8E4m3fn => {
                type $T = $crate::tensor::E4m3fn;
                $body
            }
            DType::F8E5m2 => {
                type $T = $crate::tensor::E5m2;
                $body
            }
            DType::F8E4m3fnuz => {
                type $T = $crate::tensor::E4m3fnuz;
                $body
            }
            DType::F8E5m2fnuz => {
                type $T = $crate::tensor::E5m2fnuz;
                $body
            }
            DType::F8E8m0fnu => {
                type $T = $crate::tensor::E8m0fnu;
                $body
            }
            other => Err($crate::diag::Diagnostic::unsupported(format!(
                "tensors of dtype {} are not supported",
                other.name()
            ))),
        }
    }};
}

impl Snapshot {
    /// Opens the memory for reading as elements `T`; fails if the dtype is another.
    pub fn read<T: Element, R>(&self, run: impl FnOnce(Strided<'_, T>) -> R) -> Result<R> {
        let bytes = self.opened(T::DTYPE)?;
        Ok(run(Strided { storage: elements_of(&bytes), layout: &self.layout }))
    }

    /// The bytes, of elements of a dtype. Apart from [`Snapshot::read`], which is compiled for each work.
    fn opened(&self, dtype: DType) -> Result<impl Deref<Target = [u8]>> {
        expect_dtype(self.dtype, dtype)?;
        self.storage.read()
    }

    /// The same for writing.
    fn opened_for_writing(&self, dtype: DType) -> Result<impl DerefMut<Target = [u8]>> {
        expect_dtype(self.dtype, dtype)?;
        self.storage.write()
    }
}

/// Converts as many elements as both slices have, of one length. Of all that converts, this alone is compiled for each pair of types.
pub fn cast_row<S: Element, T: Element>(from: &[S], to: &mut [T]) {
    let types = (S::DTYPE, T::DTYPE);
    if from.len() != to.len() || !cast_bytes(types, bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to))
    {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = T::from_scalar(from.to_scalar()));
    }
}

/// Converts elements of the first type to the second, as many of each, where that is faster than by way of a scalar, which takes a
/// branch for each element: by the widest vectors, and half precision by the machine's own instructions. Compiled once, and not for
/// each pair of types.
fn cast_bytes(types: (DType, DType), from: &[u8], to: &mut [u8]) -> bool {
    match types {
        (DType::F32, DType::F16) => {
            let to: &mut [f16] = bytemuck::cast_slice_mut(to);
            to.convert_from_f32_slice(bytemuck::cast_slice(from));
        }
        (DType::F16, DType::F32) => {
            let from: &[f16] = bytemuck::cast_slice(from);
            from.convert_to_f32_slice(bytemuck::cast_slice_mut(to));
        }
        (DType::BF16, DType::F32) => each(from, to, |x: u16| f32::from_bits(u32::from(x) << 16)),
        (DType::F32, DType::BF16) => each(from, to, to_bf16),
        (DType::F32, DType::I32) => truncate::<f32, i32>(from, to, |x| x),
        (DType::F32, DType::I64) => truncate::<f32, i64>(from, to, i64::from),
        (DType::F32, DType::U8) => truncate::<f32, u8>(from, to, |x| x as u8),
        (DType::F64, DType::I32) => truncate::<f64, i32>(from, to, |x| x),
        (DType::F64, DType::I64) => truncate::<f64, i64>(from, to, i64::from),
        (DType::F64, DType::U8) => truncate::<f64, u8>(from, to, |x| x as u8),
        (DType::F32, DType::F64) => each(from, to, |x: f32| f64::from(x)),
        (DType::F64, DType::F32) => each(from, to, |x: f64| x as f32),
        (DType::I32, DType::F32) => each(from, to, |x: i32| x as f32),
        (DType::I64, DType::F32) => each(from, to, |x: i64| x as f32),
        (DType::U8, DType::F32) => each(from, to, |x: u8| f32::from(x)),
        (DType::U8, DType::F64) => each(from, to, |x: u8| f64::from(x)),
        (DType::I32, DType::I64) => each(from, to, |x: i32| i64::from(x)),
        (DType::I64, DType::I32) => each(from, to, |x: i64| x as i32),
        (DType::I64, DType::U8) => each(from, to, |x: i64| x as u8),
        (DType::U8, DType::I32) => each(from, to, |x: u8| i32::from(x)),
        (DType::U8, DType::I64) => each(from, to, |x: u8| i64::from(x)),
        (DType::F32, DType::Bool) => each(from, to, |x: f32| u8::from(x != 0.0)),
        (DType::F64, DType::Bool) => each(from, to, |x: f64| u8::from(x != 0.0)),
        (DType::I32, DType::Bool) => each(from, to, |x: i32| u8::from(x != 0)),
        (DType::I64, DType::Bool) => each(from, to, |x: i64| u8::from(x != 0)),
        (DType::U8, DType::Bool) => each(from, to, |x: u8| u8::from(x != 0)),
        (DType::Bool, DType::F32) => each(from, to, |x: u8| f32::from(u8::from(x != 0))),
        (DType::Bool, DType::F64) => each(from, to, |x: u8| f64::from(u8::from(x != 0))),
        (DType::Bool, DType::I32) => each(from, to, |x: u8| i32::from(x != 0)),
        (DType::Bool, DType::I64) => each(from, to, |x: u8| i64::from(x != 0)),
        (DType::F16 | DType::BF16, _) | (_, DType::F16 | DType::BF16) => return by_f32(types, from, to),
        _ => return false,
    }
    true
}

/// Converts elements that are these numbers in memory.
fn each<A: Pod, B: Pod>(from: &[u8], to: &mut [u8], convert: impl Fn(A) -> B) {
    let (from, to): (&[A], &mut [B]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || to.iter_mut().zip(from).for_each(|(to, from)| *to = convert(*from)),
    );
}

/// Half precision has float32 for a way, as its scalars do: some elements at a time.
fn by_f32((s, t): (DType, DType), from: &[u8], to: &mut [u8]) -> bool {
    const SOME: usize = 512;
    let mut floats = [0f32; SOME];
    let mut parts = from.chunks(SOME * s.size()).zip(to.chunks_mut(SOME * t.size()));
    parts.all(|(from, to)| {
        let floats = &mut floats[..from.len() / s.size()];
        cast_bytes((s, DType::F32), from, bytemuck::cast_slice_mut(floats))
            && cast_bytes((DType::F32, t), bytemuck::cast_slice(floats), to)
    })
}

/// The upper half, rounded to the nearest, ties to even.
fn to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7FFF + ((bits >> 16) & 1));
    let quiet = bits | 0x0040_0000;
    ((if x.is_nan() { quiet } else { rounded }) >> 16) as u16
}

/// Elements that are examined together.
const TOGETHER: usize = 64;

/// A float that an addition truncates to an integer, if it is small.
trait Truncated: Element {
    fn is_small(self) -> bool;
    /// The integer of a small one: it stands in the low bits once 1.5 * 2^23, or 2^52, is added.
    fn small(self) -> i32;
}

impl Truncated for f32 {
    fn is_small(self) -> bool {
        self.abs() < 4_194_304.0
    }
    fn small(self) -> i32 {
        const MAGIC: f32 = 12_582_912.0;
        (self.trunc() + MAGIC).to_bits().wrapping_sub(MAGIC.to_bits()) as i32
    }
}

impl Truncated for f64 {
    fn is_small(self) -> bool {
        self.abs() < 2_147_483_648.0
    }
    fn small(self) -> i32 {
        const MAGIC: f64 = 6_755_399_441_055_744.0;
        (self.trunc() + MAGIC).to_bits() as i32
    }
}

/// Converts floats to integers as scalars do: where all of some are small, by vectors. Conversions that say what becomes of numbers
/// that do not fit are done one by one.
fn truncate<A: Truncated, B: Element>(from: &[u8], to: &mut [u8], of_small: impl Fn(i32) -> B) {
    let (from, to): (&[A], &mut [B]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for (to, from) in to.chunks_mut(TOGETHER).zip(from.chunks(TOGETHER)) {
                // No NaN is small.
                if from.iter().fold(true, |all, x| all & x.is_small()) {
                    to.iter_mut().zip(from).for_each(|(to, x)| *to = of_small(x.small()));
                } else {
                    to.iter_mut().zip(from).for_each(|(to, x)| *to = B::from_scalar(x.to_scalar()));
                }
            }
        },
    );
}

fn elements_of<T: Element>(bytes: &[u8]) -> &[T] {
    let whole = bytes.len() / size_of::<T>() * size_of::<T>();
    bytemuck::cast_slice(&bytes[..whole])
}

fn elements_of_mut<T: Element>(bytes: &mut [u8]) -> &mut [T] {
    let whole = bytes.len() / size_of::<T>() * size_of::<T>();
    bytemuck::cast_slice_mut(&mut bytes[..whole])
}

impl Tensor {
    /// Opens the tensor for reading as its own element type `T`; fails if the dtype is another.
    pub fn read<T: Element, R>(&self, run: impl FnOnce(Strided<'_, T>) -> R) -> Result<R> {
        self.snapshot().read(run)
    }

    /// Opens the storage for writing as elements `T`. The storage must not be open for reading in this thread.
    pub fn write<T: Element, R>(&self, run: impl FnOnce(&mut [T], &Layout) -> R) -> Result<R> {
        let meta = self.snapshot();
        let mut bytes = meta.opened_for_writing(T::DTYPE)?;
        Ok(run(elements_of_mut(&mut bytes), &meta.layout))
    }

    /// Opens the storage for writing as bytes.
    pub(super) fn write_bytes(&self, run: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let meta = self.snapshot();
        run(&mut meta.opened_for_writing(meta.dtype)?);
        Ok(())
    }

    /// The elements in logical order, which must be of type `T`.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.elements().map(Scratch::into_vec)
    }

    /// The elements in logical order, converted to `T` (as `.to(dtype)` would).
    pub fn to_vec_as<T: Element>(&self) -> Result<Vec<T>> {
        self.elements_as().map(Scratch::into_vec)
    }

    /// The elements in logical order, which must be of type `T`, for work of this run.
    pub fn elements<T: Element>(&self) -> Result<Scratch<T>> {
        self.read::<T, _>(|view| view.gathered())?
    }

    /// The elements in logical order, converted to `T` (as `.to(dtype)` would), for work of this run.
    pub fn elements_as<T: Element>(&self) -> Result<Scratch<T>> {
        if self.dtype() == T::DTYPE {
            return self.elements();
        }
        if self.dtype() == DType::U64 && !T::DTYPE.is_integral() {
            return self
                .read::<u64, _>(|view| view.converted(|x| T::from_scalar(Scalar::Float(x as f64))))?;
        }
        let mut out = memory::filled(self.numel(), T::zeroed())?;
        dispatch_dtype!(self.dtype(), S => self.in_order::<S>(&mut |from| cast_row(from, &mut out)))?;
        Ok(out)
    }

    /// Shows the elements in logical order.
    fn in_order<T: Element>(&self, show: &mut dyn FnMut(&[T])) -> Result<()> {
        self.read::<T, _>(|view| view.to_dense().map(|elements| show(&elements)))?
    }

    /// The elements in logical order as scalars of the widest type of their kind.
    pub fn to_scalars(&self) -> Result<Vec<Scalar>> {
        self.scalars().map(Scratch::into_vec)
    }

    /// The same for work of this run.
    pub fn scalars(&self) -> Result<Scratch<Scalar>> {
        dispatch_dtype!(self.dtype(), S => {
            self.read::<S, _>(|view| view.converted(|x| x.to_scalar()))?
        })
    }

    /// The only element; fails as PyTorch's `.item()` does on tensors with another number of elements.
    pub fn item(&self) -> Result<Scalar> {
        if self.numel() != 1 {
            return Err(Diagnostic::runtime(format!(
                "a Tensor with {} elements cannot be converted to Scalar",
                self.numel()
            )));
        }
        let now = self.snapshot();
        let value: Scalar = dispatch_dtype!(now.dtype, S => now.read::<S, _>(|view| view.storage[view.layout.offset].to_scalar()))?;
        match value {
            Scalar::Int(x) if now.dtype == DType::U64 && x < 0 => {
                Err(Diagnostic::runtime("value cannot be converted to type int64_t without overflow"))
            }
            value => Ok(value),
        }
    }

    /// The elements as little-endian bytes in logical order.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        if self.is_quantized() {
            return self.integers().to_bytes();
        }
        dispatch_dtype!(self.dtype(), S => {
            self.read::<S, _>(|view| {
                let dense = view.to_dense()?;
                let bytes: &[u8] = bytemuck::cast_slice(&dense);
                memory::copied(bytes).map(Scratch::into_vec)
            })?
        })
    }

    /// A dense copy, or the tensor itself if it is dense.
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.copy() }
    }

    /// A dense copy in new storage.
    pub fn copy(&self) -> Result<Tensor> {
        if let Some(quantizer) = self.quantizer() {
            return Tensor::quantized(&self.integers().copy()?, self.dtype(), quantizer);
        }
        let now = self.snapshot();
        let copy = Tensor::for_writing(now.dtype, &now.layout.sizes)?;
        if now.layout.numel() > 0 && !dispatch_dtype!(now.dtype, S => copy.copy_strided::<S>(&now))? {
            return dispatch_dtype!(now.dtype, S => {
                now.read::<S, _>(|view| Tensor::from_vec::<S>(&view.to_dense()?, &view.layout.sizes))?
            });
        }
        Ok(copy)
    }

    /// A dense copy converted to a dtype; the tensor itself if it has that dtype.
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        let now = self.detach();
        dispatch_dtype!(dtype, T => Tensor::from_vec::<T>(&now.elements_as::<T>()?, &now.sizes()))
    }

    /// Writes `value`, converted, to every element.
    pub fn fill(&self, value: Scalar) -> Result<()> {
        let own = self.layout();
        let target = self.with_layout(last_of_repeated(&own, &own).0)?;
        dispatch_dtype!(self.dtype(), T => {
            let value = <T as Element>::from_scalar(value);
            target.write::<T, _>(|storage, layout| match layout.is_contiguous() {
                true => storage[layout.offset..][..layout.numel()].fill(value),
                false => layout.for_each_index(|i| storage[i] = value),
            })
        })
    }

    /// Writes elements given in logical order; their number must match.
    pub fn write_dense<T: Element>(&self, elements: &[T]) -> Result<()> {
        if elements.len() != self.numel() {
            return Err(Diagnostic::internal(format!("{} elements for {:?}", elements.len(), self)));
        }
        self.write::<T, _>(|storage, layout| {
            let mut next = elements.iter();
            layout.for_each_index(|i| {
                if let Some(x) = next.next() {
                    storage[i] = *x;
                }
            });
        })
    }

    /// Copies the elements of `source`, broadcast and converted, through this tensor's layout (`copy_`).
    ///
    /// Of two quantized tensors of one dtype the integers are copied as they are; other pairs with a quantized tensor
    /// are the caller's to convert.
    pub fn copy_from(&self, source: &Tensor) -> Result<()> {
        if self.is_quantized() && self.dtype() == source.dtype() {
            return self.integers().copy_from(&source.integers());
        }
        let sizes = self.sizes();
        let layout = source.layout().broadcast_to(&sizes).ok_or_else(|| {
            Diagnostic::runtime(format!(
                "output with shape {:?} doesn't match the broadcast shape of {:?}",
                sizes.as_slice(),
                source.sizes().as_slice()
            ))
        })?;
        if self.numel() == 0 {
            return Ok(());
        }
        let dense = self.is_contiguous() && layout.is_contiguous();
        if dense && self.dtype() == source.dtype() && !self.storage().same(&source.storage()) {
            return self.copy_bytes(source);
        }
        if self.dtype() == source.dtype() && !self.storage().same(&source.storage()) {
            let from = Snapshot { layout: layout.clone(), ..source.snapshot() };
            if dispatch_dtype!(self.dtype(), T => self.copy_strided::<T>(&from))? {
                return Ok(());
            }
        }
        // Along dimensions in which this tensor repeats itself, the last element stays: the others need not be written.
        let (own, layout) = last_of_repeated(&self.layout(), &layout);
        let (target, source) = (self.with_layout(own)?, source.with_layout(layout)?);
        dispatch_dtype!(self.dtype(), T => target.write_dense::<T>(&source.elements_as::<T>()?))
    }

    /// Copies elements of the same type and sizes from another storage. False, with nothing written, where that must be done
    /// one by one.
    fn copy_strided<T: Element>(&self, from: &Snapshot) -> Result<bool> {
        let to = self.snapshot();
        expect_dtype(from.dtype, T::DTYPE)?;
        let size = size_of::<T>();
        let (to_len, from_len) = (to.storage.nbytes() / size, from.storage.nbytes() / size);
        let Some(copy) = StridedCopy::new(&to.layout, to_len, &from.layout, from_len) else {
            return Ok(false);
        };
        let source = from.storage.read_beside(&to.storage)?;
        let mut target = to.storage.write()?;
        let fits = target.len() >= to_len * size && source.len() >= from_len * size;
        if fits {
            let target: &mut [T] = bytemuck::cast_slice_mut(&mut target[..to_len * size]);
            copy.run(target, bytemuck::cast_slice(&source[..from_len * size]));
        }
        Ok(fits)
    }

    /// Copies the bytes of a tensor of the same dtype and number of elements in another storage, both dense.
    fn copy_bytes(&self, source: &Tensor) -> Result<()> {
        let size = self.dtype().size();
        let span = |t: &Tensor| {
            let start = if t.numel() == 0 { 0 } else { t.layout().offset * size };
            start..start + t.numel() * size
        };
        let (from, to) = (source.storage(), self.storage());
        let bytes = from.read_beside(&to)?;
        to.write()?[span(self)].copy_from_slice(&bytes[span(source)]);
        Ok(())
    }
}

/// Both layouts at the last index of each dimension in which the first one has stride 0: what is written there last.
fn last_of_repeated(to: &Layout, from: &Layout) -> (Layout, Layout) {
    let (mut to, mut from) = (to.clone(), from.clone());
    for d in 0..to.rank().min(from.rank()) {
        let last = to.sizes[d] - 1;
        if to.strides[d] == 0 && last > 0 {
            from.offset = (from.offset as i64 + last * from.strides[d]) as usize;
            (to.sizes[d], from.sizes[d]) = (1, 1);
        }
    }
    (to, from)
}

fn expect_dtype(dtype: DType, expected: DType) -> Result<()> {
    if dtype != expected {
        return Err(Diagnostic::runtime(format!(
            "expected scalar type {} but found {}",
            expected.type_name(),
            dtype.type_name()
        )));
    }
    Ok(())
}

/// Shorthand for a bool element.
impl From<bool> for Bool {
    fn from(value: bool) -> Bool {
        Bool::new(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::bf16;

    #[test]
    fn floats_become_integers_as_their_scalars_do() {
        let floats =
            [3e9f32, -3e9, 2147483648.0, 2147483520.0, -2147483648.0, f32::NAN, f32::INFINITY, -1.5, 1.5];
        let mut found = [0i32; 9];
        cast_row(&floats, &mut found);
        assert_eq!(found, floats.map(|x| Scalar::Float(f64::from(x)).to_i32()));
    }

    /// Elements of a dtype that begin and end with numbers that other dtypes do not have, as many as fill some vectors and a part.
    fn odd<S: Element>() -> Vec<S> {
        let special = [
            0.0,
            -0.0,
            0.5,
            -0.5,
            1.0,
            -1.9,
            255.0,
            4_194_303.5,
            4_194_304.0,
            1e10,
            -1e10,
            f64::NAN,
            f64::INFINITY,
        ];
        let many = (0..150).map(|n| f64::from(n * 37 % 101) - 50.25);
        let numbers = special.into_iter().chain(many).chain(special).map(Scalar::Float);
        let large = [i64::MAX, i64::MIN, (1 << 40) + 3, -7].map(Scalar::Int);
        numbers.chain(large).map(S::from_scalar).collect()
    }

    fn all_rows<S: Element, T: Element>() {
        let from = odd::<S>();
        let mut found = vec![T::zeroed(); from.len()];
        cast_row(&from, &mut found);
        let expected: Vec<T> = from.iter().map(|x| T::from_scalar(x.to_scalar())).collect();
        let bytes = |all: &[T]| bytemuck::cast_slice::<T, u8>(all).to_vec();
        assert_eq!(bytes(&found), bytes(&expected), "{:?} to {:?}", S::DTYPE, T::DTYPE);
    }

    #[test]
    fn rows_become_what_their_scalars_do() {
        fn to_all<S: Element>() {
            all_rows::<S, f32>();
            all_rows::<S, f64>();
            all_rows::<S, i32>();
            all_rows::<S, i64>();
            all_rows::<S, u8>();
            all_rows::<S, Bool>();
            all_rows::<S, f16>();
            all_rows::<S, bf16>();
            all_rows::<S, i16>();
        }
        to_all::<f32>();
        to_all::<f64>();
        to_all::<i32>();
        to_all::<i64>();
        to_all::<u8>();
        to_all::<Bool>();
        to_all::<f16>();
        to_all::<bf16>();
        to_all::<num_complex::Complex<f32>>();
    }

    /// Each bfloat16, and float32 on both sides of each middle of two.
    #[test]
    fn bfloat16_is_the_upper_half_of_float32() {
        let all: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).collect();
        let mut floats = vec![0f32; all.len()];
        cast_row(&all, &mut floats);
        let same = |x: f32, y: f32| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
        assert!(all.iter().zip(&floats).all(|(x, y)| same(x.to_f32(), *y)));
        for low in [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF] {
            let wide: Vec<f32> = floats.iter().map(|x| f32::from_bits(x.to_bits() | low)).collect();
            let mut back = vec![bf16::ZERO; wide.len()];
            cast_row(&wide, &mut back);
            assert!(
                wide.iter().zip(&back).all(|(x, y)| bf16::from_f32(*x).to_bits() == y.to_bits()),
                "{low}"
            );
        }
    }

    #[test]
    fn one_element_copied_to_none_is_nothing() {
        let empty = Tensor::from_vec::<f32>(&[], &[0, 3]).expect("valid");
        let one = Tensor::from_vec(&[1f32], &[1]).expect("valid");
        empty.copy_from(&one).expect("broadcasts");
    }

    #[test]
    fn views_of_more_elements_than_any_memory_holds_are_errors_or_written_once() {
        let one = Tensor::from_vec(&[1f32], &[1]).expect("valid");
        let wide = one.broadcast_to(&[1 << 44]).expect("a view");
        assert!(wide.to_vec::<f32>().is_err() && wide.to_vec_as::<f64>().is_err() && wide.copy().is_err());
        assert!(wide.to_scalars().is_err() && wide.to_bytes().is_err() && wide.to_dtype(DType::F64).is_err());
        wide.fill(Scalar::Int(3)).expect("one element");
        assert_eq!(one.to_vec::<f32>().expect("f32"), [3.0]);
        wide.copy_from(&Tensor::from_vec(&[5f32], &[1]).expect("valid")).expect("one element");
        assert_eq!(one.to_vec::<f32>().expect("f32"), [5.0]);
        let pair = Tensor::from_vec(&[0f32; 2], &[2, 1]).expect("valid");
        let rows = pair.broadcast_to(&[2, 3]).expect("a view");
        let numbers: Vec<f32> = (0..6).map(|n| n as f32).collect();
        rows.copy_from(&Tensor::from_vec(&numbers, &[2, 3]).expect("valid")).expect("fits");
        assert_eq!(pair.to_vec::<f32>().expect("f32"), [2.0, 5.0]);
    }

    #[test]
    fn writes_go_through_views() {
        let t = Tensor::from_vec(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).expect("valid");
        let column = t.with_layout(Layout::strided(&[2], &[3], 1).expect("valid")).expect("inside");
        column.fill(Scalar::Int(9)).expect("writes");
        assert_eq!(t.to_vec::<f32>().expect("f32"), [1.0, 9.0, 3.0, 4.0, 9.0, 6.0]);
        assert_eq!(t.version(), column.version());
    }

    #[test]
    fn integers_become_floats_by_one_rounding() {
        // Beyond the middle of two float32 by one: as a float64 it would lie in the middle, and go to the even one.
        let t = Tensor::from_vec(&[(1i64 << 60) + (1 << 36) + 1], &[1]).expect("valid");
        let up = ((1i64 << 60) + (1 << 37)) as f32;
        assert_eq!(t.to_vec_as::<f32>().expect("converts"), [up]);
        let target = Tensor::zeros(DType::C64, &[1]).expect("small");
        target.copy_from(&t).expect("converts");
        assert_eq!(target.to_scalars().expect("complex"), [Scalar::Complex(f64::from(up).into())]);
    }

    #[test]
    fn copy_from_broadcasts_and_converts() {
        let t = Tensor::zeros(DType::I32, &[2, 2]).expect("small");
        t.copy_from(&Tensor::from_vec(&[1.9f64, -2.9], &[2]).expect("valid")).expect("copies");
        assert_eq!(t.to_vec::<i32>().expect("i32"), [1, -2, 1, -2]);
    }
}
