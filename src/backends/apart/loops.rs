//! What libraries compute, by plain loops over float64.

use super::kernels::interpreted;
use super::memory::{OwnMemory, own};
use crate::backends::library::{Convolution, Copies, Copy, Machine, Matrix, Piece, Pool, Product};
use crate::diag::Result;
use crate::resources::memory;
use crate::tensor::{DType, DeviceMemory};
use half::{bf16, f16};

/// A call of a library, with what it is given.
#[derive(Clone)]
enum Call {
    Product(Product, [Piece; 2], Option<Piece>, Piece),
    Convolution(Convolution, [Piece; 2], Option<Piece>, Piece),
    Pool(Pool, Piece, Piece),
    Softmax([usize; 2], Piece, Piece),
}

/// What libraries compute.
#[derive(Default)]
pub(super) struct Loops {
    pub(super) memory: OwnMemory,
    copies: Copies,
}

/// The elements of a piece from its first on, as float64.
fn load(piece: &Piece, count: usize) -> Result<Vec<f64>> {
    piece.check(count)?;
    let bytes = own(&*piece.buffer)?.bytes.read_recursive();
    let size = piece.dtype.size();
    let bytes = &bytes[piece.first * size..(piece.first + count) * size];
    let element = |bytes: &[u8]| match piece.dtype {
        DType::F32 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap_or_default())),
        DType::F16 => f64::from(f16::from_le_bytes(bytes.try_into().unwrap_or_default())),
        DType::BF16 => f64::from(bf16::from_le_bytes(bytes.try_into().unwrap_or_default())),
        _ => f64::from_le_bytes(bytes.try_into().unwrap_or_default()),
    };
    Ok(bytes.chunks_exact(size).map(element).collect())
}

/// Writes elements to a piece, the n-th to the place that `place` gives.
fn store(piece: &Piece, elements: &[f64], place: impl Fn(usize) -> usize) -> Result<()> {
    let reach = (0..elements.len()).map(&place).max().map_or(0, |last| last + 1);
    piece.check(reach)?;
    let mut bytes = own(&*piece.buffer)?.bytes.write();
    let size = piece.dtype.size();
    for (n, x) in elements.iter().enumerate() {
        let at = (piece.first + place(n)) * size;
        let out = &mut bytes[at..at + size];
        match piece.dtype {
            DType::F32 => out.copy_from_slice(&(*x as f32).to_le_bytes()),
            DType::F16 => out.copy_from_slice(&f16::from_f64(*x).to_le_bytes()),
            DType::BF16 => out.copy_from_slice(&bf16::from_f64(*x).to_le_bytes()),
            _ => out.copy_from_slice(&x.to_le_bytes()),
        }
    }
    Ok(())
}

/// Where an element of a matrix lies.
fn at(matrix: &Matrix, batch: usize, row: usize, column: usize) -> usize {
    let (line, place) = if matrix.transposed { (column, row) } else { (row, column) };
    batch * matrix.stride + line * matrix.leading + place
}

impl Machine for Loops {
    fn memory(&self) -> &dyn DeviceMemory {
        &self.memory
    }

    fn product(
        &self,
        product: &Product,
        factors: [&Piece; 2],
        bias: Option<&Piece>,
        out: &Piece,
    ) -> Result<()> {
        self.call(Call::Product(product.clone(), factors.map(Piece::clone), bias.cloned(), out.clone()))
    }

    fn convolution(
        &self,
        layer: &Convolution,
        operands: [&Piece; 2],
        bias: Option<&Piece>,
        out: &Piece,
    ) -> Result<()> {
        self.call(Call::Convolution(layer.clone(), operands.map(Piece::clone), bias.cloned(), out.clone()))
    }

    fn pool(&self, layer: &Pool, input: &Piece, out: &Piece) -> Result<()> {
        self.call(Call::Pool(layer.clone(), input.clone(), out.clone()))
    }

    fn softmax(&self, rows: usize, columns: usize, input: &Piece, out: &Piece) -> Result<()> {
        self.call(Call::Softmax([rows, columns], input.clone(), out.clone()))
    }

    fn copy(&self, copy: &Copy, input: &Piece, out: &Piece) -> Result<()> {
        self.copies.run(copy, [input, out], &|kernel| interpreted(&self.memory, kernel))
    }
}

impl Loops {
    fn call(&self, call: Call) -> Result<()> {
        call.run()?;
        self.memory.step(move || call.run());
        Ok(())
    }
}

impl Call {
    fn run(&self) -> Result<()> {
        match self {
            Call::Product(product, [a, b], bias, out) => multiply(product, [a, b], bias.as_ref(), out),
            Call::Convolution(layer, [input, weight], bias, out) => {
                convolve(layer, [input, weight], bias.as_ref(), out)
            }
            Call::Pool(layer, input, out) => pool(layer, input, out),
            Call::Softmax([rows, columns], input, out) => softmax(*rows, *columns, input, out),
        }
    }
}

fn multiply(product: &Product, factors: [&Piece; 2], bias: Option<&Piece>, out: &Piece) -> Result<()> {
    product.check(factors, bias, out)?;
    let Product { m, n, k, batch, .. } = *product;
    let [a, b] = [load(factors[0], product.reach(0))?, load(factors[1], product.reach(1))?];
    let bias = bias.map(|bias| load(bias, n)).transpose()?;
    let mut sums = memory::vec_reserved(batch * m * n)?;
    for index in 0..batch * m * n {
        let (matrix, row, column) = (index / (m * n), index / n % m, index % n);
        let term = |i: usize| a[at(&product.a, matrix, row, i)] * b[at(&product.b, matrix, i, column)];
        let sum = (0..k).map(term).sum::<f64>() * product.alpha;
        sums.push(sum + bias.as_ref().map_or(0.0, |bias| bias[column]));
    }
    store(out, &sums, |index| index / (m * n) * product.out_stride + index % (m * n))
}

fn convolve(layer: &Convolution, operands: [&Piece; 2], bias: Option<&Piece>, out: &Piece) -> Result<()> {
    layer.check(operands, bias, out)?;
    let dims = layer.stride.len();
    let input = load(operands[0], layer.input.iter().product())?;
    let weight = load(operands[1], layer.weight.iter().product())?;
    let bias = bias.map(|bias| load(bias, layer.output[1])).transpose()?;
    let (window, plane): (usize, usize) =
        (layer.weight[2..].iter().product(), layer.input[2..].iter().product());
    let (within, own) = (layer.weight[1], layer.output[1] / layer.groups);
    let results: usize = layer.output.iter().product();
    let mut sums = memory::vec_reserved(results)?;
    for index in 0..results {
        let place = split(index, &layer.output);
        let (sample, channel) = (place[0], place[1]);
        let mut sum = bias.as_ref().map_or(0.0, |bias| bias[channel]);
        for tap in 0..window {
            let offsets = split(tap, &layer.weight[2..]);
            let inside = (0..dims).try_fold(0, |found, dim| {
                let from = place[2 + dim] * layer.stride[dim] + offsets[dim] * layer.dilation[dim];
                let from = from.checked_sub(layer.padding[dim]).filter(|n| *n < layer.input[2 + dim])?;
                Some(found * layer.input[2 + dim] + from)
            });
            let Some(inside) = inside else { continue };
            for c in 0..within {
                let from = sample * layer.input[1] + channel / own * within + c;
                sum += input[from * plane + inside] * weight[(channel * within + c) * window + tap];
            }
        }
        sums.push(sum);
    }
    store(out, &sums, |index| index)
}

fn pool(layer: &Pool, input: &Piece, out: &Piece) -> Result<()> {
    layer.check(input, out)?;
    let elements = load(input, layer.input.iter().product())?;
    let [samples, channels, height, width] = layer.input;
    let [rows, columns] = layer.output;
    let mut results = memory::vec_reserved(samples * channels * rows * columns)?;
    for index in 0..samples * channels * rows * columns {
        let place = split(index, &[samples * channels, rows, columns]);
        let along = |dim: usize, size: usize| {
            let begin = (place[1 + dim] * layer.stride[dim]) as i64 - layer.padding[dim] as i64;
            (begin..begin + layer.window[dim] as i64).filter(move |n| (0..size as i64).contains(n))
        };
        let mut seen = Vec::new();
        for y in along(0, height) {
            for x in along(1, width) {
                seen.push(elements[(place[0] * height + y as usize) * width + x as usize]);
            }
        }
        let whole = layer.window[0] * layer.window[1];
        let count = if layer.counts_padding { whole } else { seen.len() };
        results.push(match layer.max {
            true => seen.iter().fold(f64::NEG_INFINITY, |a, b| if a.is_nan() || a > *b { a } else { *b }),
            false => seen.iter().sum::<f64>() / count as f64,
        });
    }
    store(out, &results, |index| index)
}

fn softmax(rows: usize, columns: usize, input: &Piece, out: &Piece) -> Result<()> {
    let mut elements = load(input, rows * columns)?;
    for row in elements.chunks_exact_mut(columns) {
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|x| *x = (*x - top).exp());
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= sum);
    }
    store(out, &elements, |index| index)
}

/// The place of the n-th element of a dense tensor.
fn split(mut index: usize, sizes: &[usize]) -> Vec<usize> {
    let mut place = vec![0; sizes.len()];
    for (n, size) in sizes.iter().enumerate().rev() {
        place[n] = index % size;
        index /= size;
    }
    place
}
