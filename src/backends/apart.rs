//! A device with memory of its own that is none: kernels are interpreted, and what libraries compute is computed by plain
//! loops. It shows without a GPU what a GPU is asked for, in tests and to authors of backends; slow, and right.

use super::interp::Interp;
use super::library::{self, Convolution, Copy, Machine, Matrix, Piece, Pool, Product};
use super::{Backend, Executable, Launch, LibraryOp, Memory};
use crate::diag::{Diagnostic, Result};
use crate::dialects::Op;
use crate::dialects::loops::Kernel;
use crate::lowering::Target;
use crate::resources::memory;
use crate::tensor::{DType, DeviceBuffer, DeviceMemory};
use half::{bf16, f16};
use parking_lot::RwLock;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The device, which counts what crosses its border.
#[derive(Default)]
pub struct Apart {
    machine: Arc<Loops>,
}

impl Apart {
    /// How many pieces of memory were copied to the device and back so far.
    pub fn copies(&self) -> [u64; 2] {
        let traffic = &self.machine.memory.traffic;
        [&traffic.up, &traffic.down].map(|n| n.load(Ordering::Relaxed))
    }
}

impl Backend for Apart {
    fn name(&self) -> &'static str {
        "apart"
    }

    fn target(&self) -> Target {
        Target::Gpu
    }

    fn memory(&self) -> Option<Arc<dyn DeviceMemory>> {
        Some(Arc::clone(&self.machine.memory) as Arc<dyn DeviceMemory>)
    }

    fn library(&self, op: &Op) -> Option<Arc<dyn LibraryOp>> {
        let machine = Arc::clone(&self.machine) as Arc<dyn Machine>;
        library::for_op(&machine, op)
    }

    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(Interpreted(Interp.compile(kernel)?)))
    }
}

/// How often memory was copied.
#[derive(Default)]
struct Traffic {
    up: AtomicU64,
    down: AtomicU64,
}

#[derive(Default)]
struct OwnMemory {
    traffic: Arc<Traffic>,
}

struct OwnBuffer {
    bytes: RwLock<Vec<u8>>,
    nbytes: usize,
    traffic: Arc<Traffic>,
}

impl OwnMemory {
    fn buffer(&self, nbytes: usize) -> Result<OwnBuffer> {
        let bytes = memory::filled(nbytes, 0xcd)?;
        Ok(OwnBuffer { bytes: RwLock::new(bytes.into_vec()), nbytes, traffic: Arc::clone(&self.traffic) })
    }
}

impl DeviceMemory for OwnMemory {
    fn allocate(&self, nbytes: usize) -> Result<Arc<dyn DeviceBuffer>> {
        Ok(Arc::new(self.buffer(nbytes)?))
    }

    fn upload(&self, bytes: &[u8]) -> Result<Arc<dyn DeviceBuffer>> {
        let buffer = self.buffer(bytes.len())?;
        buffer.bytes.write().copy_from_slice(bytes);
        self.traffic.up.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(buffer))
    }

    fn owns(&self, buffer: &dyn DeviceBuffer) -> bool {
        own(buffer).is_ok_and(|buffer| Arc::ptr_eq(&buffer.traffic, &self.traffic))
    }
}

impl DeviceBuffer for OwnBuffer {
    fn nbytes(&self) -> usize {
        self.nbytes
    }

    fn download(&self, bytes: &mut [u8]) -> Result<()> {
        bytes.copy_from_slice(&self.bytes.read());
        self.traffic.down.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn own(buffer: &dyn DeviceBuffer) -> Result<&OwnBuffer> {
    let found = (buffer as &dyn Any).downcast_ref::<OwnBuffer>();
    found.ok_or_else(|| Diagnostic::internal("a kernel is given memory of another device"))
}

struct Interpreted(Arc<dyn Executable>);

/// Memory of a launch that is open.
enum Open<'a> {
    Read(parking_lot::RwLockReadGuard<'a, Vec<u8>>),
    Write(parking_lot::RwLockWriteGuard<'a, Vec<u8>>),
}

impl Executable for Interpreted {
    #[allow(unsafe_code, reason = "hands on what it is given")]
    unsafe fn run(&self, launch: &mut Launch<'_>) -> Result<()> {
        if !launch.memory.iter().any(|memory| matches!(memory, Memory::Device(..))) {
            // SAFETY: the caller's promise.
            return unsafe { self.0.run(launch) };
        }
        let mut open = Vec::with_capacity(launch.memory.len());
        for memory in &launch.memory {
            open.push(match memory {
                Memory::Device(buffer, true) => Open::Write(own(&***buffer)?.bytes.write()),
                Memory::Device(buffer, false) => Open::Read(own(&***buffer)?.bytes.read_recursive()),
                _ => return Err(Diagnostic::internal("memory of a device beside memory of the host")),
            });
        }
        let memory = open.iter_mut().map(|open| match open {
            Open::Read(bytes) => Memory::Read(bytes),
            Open::Write(bytes) => Memory::Write(bytes),
        });
        let mut inner = Launch { memory: memory.collect(), args: launch.args.clone(), grain: launch.grain };
        // SAFETY: the caller's promise, of the same arguments over the memory that they stand for.
        unsafe { self.0.run(&mut inner) }
    }
}

/// What libraries compute, by loops over float64.
#[derive(Default)]
struct Loops {
    memory: Arc<OwnMemory>,
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
        &*self.memory
    }

    fn product(
        &self,
        product: &Product,
        factors: [&Piece; 2],
        bias: Option<&Piece>,
        out: &Piece,
    ) -> Result<()> {
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

    fn convolution(
        &self,
        layer: &Convolution,
        operands: [&Piece; 2],
        bias: Option<&Piece>,
        out: &Piece,
    ) -> Result<()> {
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

    fn pool(&self, layer: &Pool, input: &Piece, out: &Piece) -> Result<()> {
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

    fn softmax(&self, rows: usize, columns: usize, input: &Piece, out: &Piece) -> Result<()> {
        let mut elements = load(input, rows * columns)?;
        for row in elements.chunks_exact_mut(columns) {
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|x| *x = (*x - top).exp());
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|x| *x /= sum);
        }
        store(out, &elements, |index| index)
    }

    fn copy(&self, copy: &Copy, input: &Piece, out: &Piece) -> Result<()> {
        copy.check(input, out)?;
        let elements = load(input, copy.reach(0))?;
        let sizes: Vec<usize> = copy.dims.iter().map(|(size, _)| *size as usize).collect();
        let at = |index: usize, side: usize| {
            let place = split(index, &sizes);
            place.iter().zip(&copy.dims).map(|(n, (_, steps))| n * steps[side] as usize).sum::<usize>()
        };
        let copied: Vec<f64> = (0..copy.numel()).map(|index| elements[at(index, 0)]).collect();
        store(out, &copied, |index| at(index, 1))
    }
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
