//! Pooling of float32 images that lie with their channels innermost. Knows tensors and kernels, no ops.

use crate::diag::Result;
use crate::dialects::floats::Floats;
use crate::kernels::float::{Images, PoolKind, Pooling};
use crate::tensor::{DType, Layout, Storage, Tensor, channels_last_strides};

/// float32 images with their channels innermost, pooled a vector of channels at a time. None for all others.
pub(super) fn pooled_in_vectors(t: &Tensor, pooling: &Pooling) -> Result<Option<Tensor>> {
    let sizes = t.sizes();
    let &[batch, channels, height, width] = sizes.as_slice() else { return Ok(None) };
    if t.dtype() != DType::F32 || t.numel() == 0 || !t.layout().suggests_channels_last() {
        return Ok(None);
    }
    let plane = [height as usize, width as usize];
    let Some([rows, columns]) = pooling.result(plane) else { return Ok(None) };
    let sizes = [batch, channels, rows as i64, columns as i64];
    let input = Floats::images(t)?;
    let values = input.values()?;
    let images = Images { values: values.get(), batch: batch as usize, sizes: plane, pitch: input.pitch };
    let layout = Layout::strided(&sizes, &channels_last_strides(&sizes), 0)?;
    let storage = Storage::for_writing(layout.numel().saturating_mul(size_of::<f32>()))?;
    let result = Tensor::from_storage(storage, DType::F32, layout)?;
    let channels = channels as usize;
    result.write::<f32, _>(|out, _| pooling.run(images, channels, out, channels))??;
    Ok(Some(result))
}

/// Windows of images whose sizes, steps, padding and distances are given. None where these are not two each.
pub(super) fn windows(kind: PoolKind, numbers: [&[i64]; 4], ceil: bool) -> Option<Pooling> {
    let pair = |numbers: &[i64]| match *numbers {
        [a, b] => Some([usize::try_from(a).ok()?, usize::try_from(b).ok()?]),
        _ => None,
    };
    let [kernel, stride, padding, dilation] = numbers.map(pair);
    Some(Pooling::Windows {
        kind,
        kernel: kernel?,
        stride: stride?,
        padding: padding?,
        dilation: dilation?,
        ceil,
    })
}
