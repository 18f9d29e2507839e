//! Copies from one strided tensor to another as kernels: one for each pair of element types and number of dimensions, written in
//! the `loop` dialect and compiled by the device's backend. Sizes and strides are arguments. Elements that keep their dtype are
//! moved as integers, which keep all their bits; others are converted as `aten::to` converts them.

use super::operand::{Copy, Piece};
use super::unsupported;
use crate::backends::{Arg, Buffer, Executable, Launch, Memory};
use crate::diag::Result;
use crate::dialects::loops::{self, Builder, Elem, Kernel, Mark, Order};
use crate::dialects::scalar::Binary;
use crate::ir::{Graph, ValueId};
use crate::tensor::DType;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;

/// The kernels that a device has compiled so far.
#[derive(Default)]
pub struct Copies {
    /// By what is read, what is written, and the number of dimensions.
    kernels: Mutex<HashMap<(Elem, Elem, usize), Arc<dyn Executable>>>,
}

impl Copies {
    /// Runs a copy, of whose kernel `compile` makes code where it is the first of its kind. Elements that it reads and writes
    /// are checked to lie in the pieces.
    pub fn run(
        &self,
        copy: &Copy,
        [input, out]: [&Piece; 2],
        compile: &dyn Fn(&Kernel) -> Result<Arc<dyn Executable>>,
    ) -> Result<()> {
        copy.check(input, out)?;
        let elems = if copy.from == copy.to { word(copy.to).map(|word| [word; 2]) } else { numbers(copy) };
        let [from, to] = elems.ok_or_else(|| unsupported("copies of such a dtype"))?;
        let kernel = self.kernel((from, to, copy.dims.len()), compile)?;
        let buffer = |memory: usize, piece: &Piece, side: usize| {
            let end = piece.first + copy.reach(side);
            Arg::Buffer(Buffer { memory, first: piece.first, low: piece.first, end })
        };
        let mut args = vec![buffer(0, out, 1), buffer(1, input, 0), Arg::Int(copy.numel() as i64)];
        args.extend(copy.dims.iter().skip(1).map(|(size, _)| Arg::Int(*size)));
        for side in [1, 0] {
            args.extend(copy.dims.iter().map(|(_, steps)| Arg::Int(steps[side])));
        }
        let memory = vec![Memory::Device(&out.buffer, true), Memory::Device(&input.buffer, false)];
        let mut launch = Launch { memory, args: args.into(), grain: 1 };
        // SAFETY: the kernel touches for each place within the sizes the elements that the strides say, which `check` found to
        // lie in the pieces. What is written is a tensor that was made for this copy, whose elements lie apart.
        #[allow(unsafe_code, reason = "runs a kernel that was written here")]
        unsafe {
            kernel.run(&mut launch)
        }
    }

    fn kernel(
        &self,
        kind: (Elem, Elem, usize),
        compile: &dyn Fn(&Kernel) -> Result<Arc<dyn Executable>>,
    ) -> Result<Arc<dyn Executable>> {
        let mut kernels = self.kernels.lock();
        if let Some(kernel) = kernels.get(&kind) {
            return Ok(Arc::clone(kernel));
        }
        let kernel = compile(&loops::decode(&nest(kind))?)?;
        kernels.insert(kind, Arc::clone(&kernel));
        Ok(kernel)
    }
}

/// Numbers of the dtypes that a copy converts between. Floats become the integers that have instructions for it.
fn numbers(copy: &Copy) -> Option<[Elem; 2]> {
    let [from, to] = [Elem::of(copy.from)?, Elem::of(copy.to)?];
    let narrow = from.is_float() && matches!(to, Elem::U8 | Elem::I8 | Elem::I16);
    (!narrow).then_some([from, to])
}

/// An integer that is as wide as an element.
fn word(dtype: DType) -> Option<Elem> {
    match dtype.size() {
        1 => Some(Elem::U8),
        2 => Some(Elem::I16),
        4 => Some(Elem::I32),
        8 => Some(Elem::I64),
        _ => None,
    }
}

/// Copies element by element. Parameters in order: what is written, what is read, their number of elements, the size of each
/// dimension but the first, the strides of what is written, the strides of what is read.
fn nest((read, written, rank): (Elem, Elem, usize)) -> Graph {
    let mut b = Builder::new();
    let (out, input) = (b.buffer(written, "out"), b.buffer(read, "in"));
    let extent = b.scalar(Elem::I64, "n");
    let sizes: Vec<ValueId> = (1..rank).map(|d| b.scalar(Elem::I64, &format!("size{d}"))).collect();
    let to: Vec<ValueId> = (0..rank).map(|d| b.scalar(Elem::I64, &format!("to{d}"))).collect();
    let from: Vec<ValueId> = (0..rank).map(|d| b.scalar(Elem::I64, &format!("from{d}"))).collect();
    let (zero, one) = (b.index(0), b.index(1));
    let (i, _) = b.begin_loop([zero, extent, one], Mark::Parallel, Order::Sequential, &[]);
    let (mut rest, mut places) = (i, [zero, zero]);
    for dim in (0..rank).rev() {
        let index = match dim.checked_sub(1) {
            Some(inner) => b.binary(Binary::Rem, rest, sizes[inner]),
            None => rest,
        };
        for (place, strides) in places.iter_mut().zip([&to, &from]) {
            let step = b.binary(Binary::Mul, index, strides[dim]);
            *place = b.binary(Binary::Add, *place, step);
        }
        if let Some(inner) = dim.checked_sub(1) {
            rest = b.binary(Binary::Div, rest, sizes[inner]);
        }
    }
    let element = b.load(input, places[1]);
    let element = b.convert(element, written);
    b.store(out, places[0], element);
    b.end_loop(&[]);
    b.finish()
}
