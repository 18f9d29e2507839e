//! Copies from one strided tensor to another as kernels: one for each pair of element types and number of dimensions, lowered as
//! fusion groups are and compiled by the device's backend. Sizes and strides are arguments. Elements that keep their dtype are
//! moved as integers, which keep all their bits; others are converted as `aten::to` converts them.

use super::calls::{Copy, Piece, unsupported};
use crate::backends::{Arg, Buffer, Executable, Launch, Memory};
use crate::diag::Result;
use crate::dialects::loops::{self, Elem, Kernel};
use crate::dialects::scalar::Program;
use crate::lowering::{Nest, Stride, Target, lower};
use crate::tensor::DType;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;

/// The kernels that a device has compiled so far.
#[derive(Default)]
pub struct Copies {
    /// By what is read, what is written, and the number of dimensions.
    kernels: Mutex<HashMap<(DType, DType, usize), Arc<dyn Executable>>>,
}

impl Copies {
    /// Runs a copy, of whose kernel `compile` makes code where it is the first of its kind. Fails where `check`
    /// of the copy does.
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
        // SAFETY: the kernel touches for each place within the sizes the elements that the strides say. `check` found that they
        // lie in the pieces, which are the spans; that no two places are written to one element; and that what is written is
        // another buffer than what is read.
        #[allow(
            unsafe_code,
            reason = "runs machine code of a nest made here, whose reach and stores `Copy::check` has checked"
        )]
        unsafe {
            kernel.run(&mut launch)
        }
    }

    fn kernel(
        &self,
        kind: (DType, DType, usize),
        compile: &dyn Fn(&Kernel) -> Result<Arc<dyn Executable>>,
    ) -> Result<Arc<dyn Executable>> {
        let mut kernels = self.kernels.lock();
        if let Some(kernel) = kernels.get(&kind) {
            return Ok(Arc::clone(kernel));
        }
        let kernel = compile(&loops::decode(&lower(&nest(kind), Target::Gpu)?)?)?;
        kernels.insert(kind, Arc::clone(&kernel));
        Ok(kernel)
    }
}

/// Numbers of the dtypes that a copy converts between. Floats become the integers that have instructions for it.
fn numbers(copy: &Copy) -> Option<[DType; 2]> {
    let narrow =
        Elem::of(copy.from)?.is_float() && matches!(Elem::of(copy.to)?, Elem::U8 | Elem::I8 | Elem::I16);
    (!narrow).then_some([copy.from, copy.to])
}

/// An integer that is as wide as an element.
fn word(dtype: DType) -> Option<DType> {
    match dtype.size() {
        1 => Some(DType::U8),
        2 => Some(DType::I16),
        4 => Some(DType::I32),
        8 => Some(DType::I64),
        _ => None,
    }
}

/// Elements that are stored as loaded; all sizes and strides are given in a call.
fn nest((read, written, rank): (DType, DType, usize)) -> Nest {
    let mut program = Program::new();
    let element = program.param(read);
    let strides: Vec<Stride> = std::iter::repeat_n(Stride::Dynamic, rank).collect();
    Nest {
        program,
        reductions: vec![],
        rows: None,
        results: vec![element],
        stores: vec![(written, strides.clone())],
        loads: vec![(read, strides)],
        in_place: vec![],
        scalars: vec![],
        rank,
    }
}
