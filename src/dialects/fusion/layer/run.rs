//! Runs packed layers: finds where operands lie, makes room for results, calls kernels. Results are new images with their
//! channels innermost, or a part of images that exist. Knows nothing of how layers are packed.

use super::packed::{ATTENTION_FORMAT, CHANNELS_LAST, CONV_FORMAT, GATE, Layer, NORM_FORMAT};
use crate::diag::{Diagnostic, Result};
use crate::dialects::attend::attend;
use crate::dialects::floats::{Floats, Values, pixel_pitch, pixel_strides, restored};
use crate::dialects::{Args, Outputs, one};
use crate::kernels::float::{Epilogue, Images, Layout as Order, Residual, bands, channels};
use crate::tensor::{DType, Layout, Storage, Tensor, channels_last_strides, contiguous_strides, view};

/// Where a result goes: floats from pixel to pixel in the storage of a tensor.
struct Target {
    tensor: Tensor,
    pitch: usize,
}

/// Operands of a layer that are images, opened one after the other.
struct Operands {
    input: Floats,
    residual: Option<Floats>,
}

pub(super) fn conv(a: &Args<'_>) -> Result<Outputs> {
    let (input, layer) = (a.tensor(0)?, Layer::of(a, 1)?);
    // Signals are images of one line.
    let is_signal = input.sizes().len() == 3;
    let image = |tensor: &Tensor| match is_signal {
        true => tensor.look(|layout| view::unsqueeze(layout, 2)),
        false => Ok(tensor.clone()),
    };
    let residual = a.opt_tensor(2)?.map(image).transpose()?;
    let call = Convolution::new(&image(input)?, layer, residual.as_ref())?;
    let target = Target::images(&call.sizes)?;
    call.run(layer, a.opt_tensor(GATE)?, &target)?;
    let result = target.given(a.int(CONV_FORMAT)?)?;
    one(if is_signal { result.look(|layout| view::squeeze(layout, Some(&[2])))? } else { result })
}

pub(super) fn conv_chain(a: &Args<'_>) -> Result<Outputs> {
    let (first, second) = (Layer::of(a, 1)?, Layer::of(a, 2)?);
    let call = Convolution::new(a.tensor(0)?, first, None)?;
    let shapes = [first.conv()?.shape(), second.conv()?.shape()];
    let plain = [first, second].iter().all(|layer| layer.prologue(None).is_none());
    let lasts = [first, second].iter().all(|layer| layer.order == Order::ChannelsLast);
    if !plain || !lasts || !bands::pays(shapes[0], shapes[1], call.plane) {
        // Other images than the plan was made for.
        let between = Target::images(&call.sizes)?;
        call.run(first, None, &between)?;
        let call = Convolution::new(&between.tensor, second, None)?;
        let target = Target::images(&call.sizes)?;
        call.run(second, None, &target)?;
        return one(target.given(a.int(3)?)?);
    }
    let result = shapes[1].result(call.plane).ok_or_else(too_small)?;
    let sizes = [call.sizes[0], shapes[1].out_channels as i64, result[0] as i64, result[1] as i64];
    let target = Target::images(&sizes)?;
    target.fill(&call.operands, second, |values, _, out| {
        let images =
            Images { values, batch: call.batch, sizes: call.plane, pitch: call.operands.input.pitch };
        let epilogues = [&first.epilogue(None), &second.epilogue(None)];
        bands::run([first.conv()?, second.conv()?], images, epilogues, out, target.pitch)
    })?;
    one(target.given(a.int(3)?)?)
}

pub(super) fn conv_into(a: &Args<'_>) -> Result<Outputs> {
    let (layer, room) = (Layer::of(a, 1)?, a.tensor(4)?);
    let call = Convolution::new(a.tensor(0)?, layer, a.opt_tensor(2)?)?;
    let part = part_of(room, a.int(5)?, call.sizes[1])?;
    if *part.sizes() != call.sizes {
        return Err(Diagnostic::runtime("a packed convolution does not fit the room for its result"));
    }
    let gate = a.opt_tensor(GATE)?;
    match Target::part(&part).filter(|_| !call.operands.lie_in(&room.storage())) {
        Some(target) => call.run(layer, gate, &target)?,
        // What it reads lies in what it writes.
        None => {
            let target = Target::images(&call.sizes)?;
            call.run(layer, gate, &target)?;
            part.copy_from(&target.tensor)?;
        }
    }
    one(part)
}

/// A call of a convolution.
struct Convolution {
    operands: Operands,
    plane: [usize; 2],
    batch: usize,
    /// Of the result.
    sizes: [i64; 4],
}

impl Convolution {
    fn new(input: &Tensor, layer: &Layer, residual: Option<&Tensor>) -> Result<Convolution> {
        let shape = layer.conv()?.shape();
        let [batch, channels, height, width] = image_sizes(input)?;
        if channels != shape.in_channels as i64 {
            return Err(Diagnostic::runtime("a packed convolution got images of other channels"));
        }
        let plane = [height as usize, width as usize];
        let result = shape.result(plane).ok_or_else(too_small)?;
        let sizes = [batch, shape.out_channels as i64, result[0] as i64, result[1] as i64];
        let input = match layer.order {
            Order::ChannelsFirst => Floats::row_major(input)?,
            Order::ChannelsLast => Floats::images(input)?,
        };
        let operands = Operands { input, residual: images_of(residual, &sizes)? };
        Ok(Convolution { operands, plane, batch: batch as usize, sizes })
    }

    fn run(&self, layer: &Layer, gate: Option<&Tensor>, target: &Target) -> Result<()> {
        let gate = gate.map(|gate| self.gate(gate)).transpose()?;
        let gate = gate.as_ref().map(Floats::values).transpose()?;
        let prologue = layer.prologue(gate.as_ref().map(Values::get));
        target.fill(&self.operands, layer, |values, residual, out| {
            let images =
                Images { values, batch: self.batch, sizes: self.plane, pitch: self.operands.input.pitch };
            layer.conv()?.run_after(prologue.as_ref(), images, &layer.epilogue(residual), out, target.pitch)
        })
    }

    /// A row of factors for each image.
    fn gate(&self, gate: &Tensor) -> Result<Floats> {
        let sizes = gate.sizes();
        match *sizes.as_slice() {
            [batch, _, 1, 1] if batch == self.sizes[0] => Floats::row_major(gate),
            _ => Err(Diagnostic::runtime("a gate has one factor for each channel of each image")),
        }
    }
}

pub(super) fn linear(a: &Args<'_>) -> Result<Outputs> {
    let (input, layer) = (a.tensor(0)?, Layer::of(a, 1)?);
    let shape = layer.conv()?.shape();
    let mut sizes = input.sizes();
    let Some(features) = sizes.last_mut().filter(|n| **n == shape.in_channels as i64) else {
        return Err(Diagnostic::runtime("a packed linear map got rows of another length"));
    };
    *features = shape.out_channels as i64;
    let rows: usize = sizes[..sizes.len() - 1].iter().map(|n| *n as usize).product();
    let operands =
        Operands { input: Floats::row_major(input)?, residual: rows_of(a.opt_tensor(2)?, &sizes)? };
    let tensor = Tensor::for_writing(DType::F32, &sizes)?;
    let target = Target { tensor, pitch: shape.out_channels };
    target.fill(&operands, layer, |values, residual, out| {
        // Without rows there is no image, rather than one that is smaller than the window.
        let images = Images { values, batch: rows.min(1), sizes: [1, rows.max(1)], pitch: shape.in_channels };
        layer.conv()?.run(images, &layer.epilogue(residual), out, shape.out_channels)
    })?;
    one(target.tensor)
}

pub(super) fn norm(a: &Args<'_>) -> Result<Outputs> {
    let (input, layer) = (a.tensor(0)?, Layer::of(a, 1)?);
    let sizes = image_sizes(input)?;
    let (plane, channels) = ((sizes[2] * sizes[3]) as usize, sizes[1] as usize);
    if a.int(NORM_FORMAT)? == CHANNELS_LAST {
        let operands =
            Operands { input: Floats::images(input)?, residual: images_of(a.opt_tensor(2)?, &sizes)? };
        let target = Target::images(&sizes)?;
        let pixels = sizes[0] as usize * plane;
        target.fill(&operands, layer, |values, residual, out| {
            let images = (values, operands.input.pitch);
            channels::apply(images, (pixels, channels), &layer.epilogue(residual), out, target.pitch)
        })?;
        return one(target.tensor);
    }
    let residual = rows_of(a.opt_tensor(2)?, &sizes)?;
    let operands = Operands { input: Floats::row_major(input)?, residual };
    let target = Target { tensor: Tensor::for_writing(DType::F32, &sizes)?, pitch: plane };
    target.fill(&operands, layer, |values, residual, out| {
        channels::apply_planes(values, (channels, plane), &layer.epilogue(residual), out)
    })?;
    one(target.tensor)
}

pub(super) fn room(a: &Args<'_>) -> Result<Outputs> {
    /// Pixels a multiple of this many floats apart would meet in the same lines of the cache.
    const PAGE: i64 = 256;
    let &[batch, channels, height, width] = a.ints(0)?.as_slice() else {
        return Err(Diagnostic::runtime("room for images has four sizes"));
    };
    let sizes = [batch, channels, height, width];
    let pitch = if channels % PAGE == 0 { channels.saturating_add(16) } else { channels };
    if sizes.iter().any(|n| *n < 0) {
        return Err(Diagnostic::runtime("sizes of images are not negative"));
    }
    let floats = [batch, height, width].iter().fold(pitch, |n, size| n.saturating_mul(*size));
    let bytes = usize::try_from(floats).unwrap_or(usize::MAX).saturating_mul(size_of::<f32>());
    let strides = pixel_strides(&sizes, pitch);
    let layout = Layout { sizes: sizes.as_slice().into(), strides: strides.as_slice().into(), offset: 0 };
    one(Tensor::from_storage(Storage::for_writing(bytes)?, DType::F32, layout)?)
}

pub(super) fn place(a: &Args<'_>) -> Result<Outputs> {
    let (images, room) = (a.tensor(0)?, a.tensor(1)?);
    let sizes = image_sizes(images)?;
    let part = part_of(room, a.int(2)?, sizes[1])?;
    let operands = Operands { input: Floats::images(images)?, residual: None };
    match Target::part(&part).filter(|_| *part.sizes() == sizes && !operands.lie_in(&room.storage())) {
        Some(target) => {
            let (pixels, channels) = ((sizes[0] * sizes[2] * sizes[3]) as usize, sizes[1] as usize);
            target.fill(&operands, &Layer::default(), |values, _, out| {
                let images = (values, operands.input.pitch);
                channels::apply(images, (pixels, channels), &Epilogue::default(), out, target.pitch)
            })?;
        }
        None => part.copy_from(images)?,
    }
    one(part)
}

pub(super) fn part(a: &Args<'_>) -> Result<Outputs> {
    one(part_of(a.tensor(0)?, a.int(1)?, a.int(2)?)?)
}

pub(super) fn attention(a: &Args<'_>) -> Result<Outputs> {
    let key = a.tensor(1)?.look(|layout| view::transpose(layout, -2, -1))?;
    let (query, value) = (a.tensor(0)?, a.tensor(2)?);
    let rows = image_sizes(query)?;
    let scores = [rows[0], rows[1], rows[2], image_sizes(&key)?[2]];
    let biases = a.tensors(3)?.iter().map(|bias| spread(bias, scores)).collect::<Result<Vec<Tensor>>>()?;
    let apart = a.int(ATTENTION_FORMAT)? != CHANNELS_LAST;
    one(attend([query, &key, value], &biases, a.float(4)? as f32, (false, apart))?)
}

/// A term of scores in their sizes; one of five dimensions has the batch in two.
fn spread(bias: &Tensor, [batch, heads, queries, keys]: [i64; 4]) -> Result<Tensor> {
    let sizes = bias.sizes();
    let four = match *sizes.as_slice() {
        [_, inner, a, b, c] if inner > 0 && batch % inner == 0 => {
            bias.broadcast_to(&[batch / inner, inner, a, b, c])?.reshaped(&[batch, a, b, c])?
        }
        _ => bias.clone(),
    };
    four.broadcast_to(&[batch, heads, queries, keys])
}

pub(super) fn restore(a: &Args<'_>) -> Result<Outputs> {
    one(restored(a.tensor(0)?, &a.ints(1)?)?)
}

pub(super) fn restore_format(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, sizes) = (a.tensor(0)?, a.tensor(0)?.sizes());
    let strides = match (a.int(1)?, sizes.len()) {
        (CHANNELS_LAST, 4) => channels_last_strides(&sizes),
        (CHANNELS_LAST, _) => return Err(Diagnostic::runtime("only images have channels innermost")),
        _ => contiguous_strides(&sizes),
    };
    one(restored(tensor, &strides)?)
}

fn part_of(room: &Tensor, channel: i64, channels: i64) -> Result<Tensor> {
    image_sizes(room)?;
    room.look(|layout| view::narrow(layout, 1, channel, channels))
}

fn image_sizes(images: &Tensor) -> Result<[i64; 4]> {
    let sizes = images.sizes();
    let wrong = || Diagnostic::runtime("images in batches are needed");
    <[i64; 4]>::try_from(sizes.as_slice()).map_err(|_| wrong())
}

fn images_of(residual: Option<&Tensor>, sizes: &[i64; 4]) -> Result<Option<Floats>> {
    match residual {
        Some(tensor) if tensor.sizes().as_slice() != sizes => Err(other_sizes()),
        residual => residual.map(Floats::images).transpose(),
    }
}

fn rows_of(residual: Option<&Tensor>, sizes: &[i64]) -> Result<Option<Floats>> {
    match residual {
        Some(tensor) if tensor.sizes().as_slice() != sizes => Err(other_sizes()),
        residual => residual.map(Floats::row_major).transpose(),
    }
}

fn too_small() -> Diagnostic {
    Diagnostic::runtime("an image is smaller than the window")
}

fn other_sizes() -> Diagnostic {
    Diagnostic::runtime("the residual of a packed layer has other sizes")
}

impl Operands {
    fn lie_in(&self, storage: &Storage) -> bool {
        self.input.lies_in(storage) || self.residual.as_ref().is_some_and(|r| r.lies_in(storage))
    }
}

impl Target {
    /// New images with their channels innermost.
    fn images(sizes: &[i64; 4]) -> Result<Target> {
        let strides = pixel_strides(sizes, sizes[1].max(1));
        let layout = Layout { sizes: sizes.as_slice().into(), strides: strides.as_slice().into(), offset: 0 };
        let storage = Storage::for_writing(layout.numel().saturating_mul(size_of::<f32>()))?;
        let tensor = Tensor::from_storage(storage, DType::F32, layout)?;
        Ok(Target { tensor, pitch: sizes[1] as usize })
    }

    /// The result as an op gives it, in a memory format.
    fn given(self, format: i64) -> Result<Tensor> {
        if format == CHANNELS_LAST {
            return Ok(self.tensor);
        }
        restored(&self.tensor, &contiguous_strides(&self.tensor.sizes()))
    }

    /// A part of images that exist. None where kernels cannot write to it.
    fn part(part: &Tensor) -> Option<Target> {
        let pitch = pixel_pitch(&part.layout())?;
        (part.dtype() == DType::F32).then(|| Target { tensor: part.clone(), pitch })
    }

    /// Lets `run` fill it, which is given the input, the residual and the result.
    fn fill(
        &self,
        operands: &Operands,
        layer: &Layer,
        run: impl Fn(&[f32], Option<Residual<'_>>, &mut [f32]) -> Result<()>,
    ) -> Result<()> {
        let input = operands.input.values()?;
        let values = operands.residual.as_ref().map(Floats::values).transpose()?;
        let after = layer.residual_after;
        let residual = operands.residual.as_ref().zip(values.as_ref());
        let residual = residual.map(|(r, values)| Residual { values: values.get(), pitch: r.pitch, after });
        let (storage, offset) = self.tensor.with_meta(|meta| (meta.storage.clone(), meta.layout.offset));
        let mut bytes = storage.write()?;
        let whole = bytes.len() / size_of::<f32>() * size_of::<f32>();
        let out: &mut [f32] = bytemuck::try_cast_slice_mut(&mut bytes[..whole]).unwrap_or_default();
        let out = out.get_mut(offset..).ok_or_else(|| Diagnostic::internal("a result beyond its storage"))?;
        run(input.get(), residual, out)
    }
}
