//! float32 tensors as kernels read them: where their elements lie in memory, and copies where these lie otherwise. Knows no
//! ops.

use crate::diag::{Diagnostic, Result};
use crate::tensor::pointwise::is_dense;
use crate::tensor::{
    DType, Layout, ReadBytes, Snapshot, Storage, Tensor, channels_last_strides, contiguous_strides,
};

/// A float32 tensor whose elements lie densely in some order, or images whose pixels may lie apart.
pub(in crate::dialects) struct Floats {
    tensor: Snapshot,
    /// Floats from the first element to after the last one.
    span: usize,
    /// Floats from pixel to pixel of images with their channels innermost, or from row to row.
    pub pitch: usize,
}

/// Its elements, open for reading.
pub(in crate::dialects) struct Values {
    bytes: ReadBytes,
    from: usize,
    count: usize,
}

impl Floats {
    pub fn row_major(tensor: &Tensor) -> Result<Floats> {
        let sizes = tensor.sizes();
        let dense = Floats::with_strides(tensor, &contiguous_strides(&sizes))?;
        Ok(Floats { pitch: sizes.last().map_or(1, |n| *n as usize), ..dense })
    }

    /// The tensor, copied where its elements do not lie with such strides.
    pub fn with_strides(tensor: &Tensor, strides: &[i64]) -> Result<Floats> {
        expect_floats(tensor)?;
        restored(tensor, strides).map(|tensor| {
            let (tensor, pitch) = (tensor.snapshot(), 0);
            Floats { span: tensor.layout.numel(), tensor, pitch }
        })
    }

    /// Images with their channels innermost, copied where these lie otherwise; pixels may have room between them.
    pub fn images(tensor: &Tensor) -> Result<Floats> {
        expect_floats(tensor)?;
        let own = tensor.snapshot();
        if let Some(pitch) = pixel_pitch(&own.layout) {
            let channels = own.layout.sizes[1] as usize;
            let pixels = own.layout.numel() / channels.max(1);
            let span = pixels.saturating_sub(1).saturating_mul(pitch).saturating_add(channels);
            return Ok(Floats { span: if pixels == 0 { 0 } else { span }, tensor: own, pitch });
        }
        let sizes = tensor.sizes();
        let channels = sizes.get(1).copied().unwrap_or(0) as usize;
        let dense = Floats::with_strides(tensor, &channels_last_strides(&sizes))?;
        Ok(Floats { pitch: channels, ..dense })
    }

    pub fn values(&self) -> Result<Values> {
        let bytes = self.tensor.storage.read()?;
        Ok(Values { bytes, from: self.tensor.layout.offset, count: self.span })
    }

    /// Whether it lies in a storage.
    pub fn lies_in(&self, storage: &Storage) -> bool {
        self.tensor.storage.same(storage)
    }
}

impl Values {
    pub fn get(&self) -> &[f32] {
        let whole = self.bytes.len() / size_of::<f32>() * size_of::<f32>();
        // Storage that tensors of float32 lie in is aligned for them.
        let all: &[f32] = bytemuck::try_cast_slice(&self.bytes[..whole]).unwrap_or_default();
        all.get(self.from..self.from.saturating_add(self.count)).unwrap_or_default()
    }
}

fn expect_floats(tensor: &Tensor) -> Result<()> {
    if tensor.dtype() == DType::F32 && tensor.is_plain() {
        return Ok(());
    }
    Err(Diagnostic::runtime("packed layers take float32 tensors"))
}

/// Floats from pixel to pixel of images with their channels innermost. None for other layouts.
pub(in crate::dialects) fn pixel_pitch(layout: &Layout) -> Option<usize> {
    let (&[batch, channels, height, width], &[s0, s1, s2, s3]) =
        (layout.sizes.as_slice(), layout.strides.as_slice())
    else {
        return None;
    };
    let pitch = match (width > 1, height > 1, batch > 1) {
        (true, _, _) => s3,
        (_, true, _) => s2,
        (_, _, true) => s0,
        _ => channels,
    };
    let steps = [(channels, s1, 1), (width, s3, pitch), (height, s2, pitch.checked_mul(width)?)];
    let image = pitch.checked_mul(width)?.checked_mul(height)?;
    let fits = |(size, stride, wanted): (i64, i64, i64)| size <= 1 || stride == wanted;
    let lies = steps.into_iter().chain([(batch, s0, image)]).all(fits);
    (lies && pitch >= channels).then(|| usize::try_from(pitch).ok())?
}

/// Strides of images whose pixels lie `pitch` floats apart.
pub(in crate::dialects) fn pixel_strides(sizes: &[i64; 4], pitch: i64) -> [i64; 4] {
    let line = sizes[3].saturating_mul(pitch);
    [sizes[2].saturating_mul(line), 1, line, pitch]
}

/// The tensor with dense strides: another view of it where elements lie so already, else a copy.
pub(in crate::dialects) fn restored(tensor: &Tensor, strides: &[i64]) -> Result<Tensor> {
    let layout = tensor.layout();
    if layout.strides.as_slice() == strides {
        return Ok(tensor.clone());
    }
    let wanted = Layout { sizes: layout.sizes.clone(), strides: strides.into(), offset: layout.offset };
    let fits = strides.len() == layout.rank() && strides.iter().all(|s| *s >= 0);
    if !fits || !(layout.numel() == 0 || is_dense(&wanted)) {
        return Err(Diagnostic::runtime(format!("strides {strides:?} leave gaps or overlap")));
    }
    let matters = |d: &usize| layout.sizes[*d] > 1;
    let rank = layout.rank();
    if layout.numel() == 0 || (0..rank).filter(matters).all(|d| layout.strides.get(d) == strides.get(d)) {
        return tensor.with_layout(wanted);
    }
    let wanted = Layout { offset: 0, ..wanted };
    let storage = Storage::for_writing(wanted.numel().saturating_mul(tensor.dtype().size()))?;
    let copy = Tensor::from_storage(storage, tensor.dtype(), wanted)?;
    copy.copy_from(tensor)?;
    Ok(copy)
}
