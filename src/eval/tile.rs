//! Runs scalar programs over whole tensors, a tile of elements at a time.
//!
//! This is the meaning of every primitive, and an engine by itself: operands of any layout are read in the order
//! of the result's memory, long work is shared among threads, results do not depend on their number.

use super::register::{Lane, Slot, Tile, mismatch, step};
use crate::diag::{Diagnostic, Result};
use crate::dialects::scalar::{Inst, Program, Sv};
use crate::resources::pool;
use crate::tensor::pointwise::{PARALLEL_THRESHOLD, Walk, gather, side_by_side};
use crate::tensor::{
    Bool, DType, E4m3fn, E4m3fnuz, E5m2, E5m2fnuz, E8m0fnu, Element, Layout, Scalar, Snapshot, Storage,
    Tensor,
};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use num_complex::{Complex, Complex64};

/// Elements of a tile: registers of a short program stay in the first-level cache.
const TILE: usize = 1024;
/// Elements of a unit of parallel work.
const CHUNK: usize = 1 << 15;

/// An operand of a run.
#[derive(Clone, Debug)]
pub enum Input {
    /// A tensor as it was when the operand was made, broadcast against the others. What other threads do to the tensor
    /// afterwards does not matter: walk and reading see the same layout over the same memory.
    Tensor(Snapshot),
    /// The same number everywhere.
    Number(Scalar),
}

/// Runs a program whose parameters are `inputs` over elements of `sizes`, to which the inputs broadcast.
/// Results are one contiguous tensor for each of `outputs`.
pub fn run_program(
    program: &Program,
    outputs: &[Sv],
    inputs: &[Input],
    sizes: &[i64],
) -> Result<Vec<Tensor>> {
    let anchor = Layout::contiguous(sizes)?;
    let mut layouts = vec![anchor.clone()];
    layouts.extend(inputs.iter().filter_map(Input::layout).cloned());
    let mut walk = Walk::new(&layouts)?;
    if walk.result.sizes != anchor.sizes {
        return Err(Diagnostic::internal(format!("operands do not broadcast to {sizes:?}")));
    }
    walk.operands.remove(0);
    run_walk(program, outputs, inputs, &walk)
}

impl Input {
    /// Where a tensor's elements are; None for a number.
    pub fn layout(&self) -> Option<&Layout> {
        match self {
            Input::Tensor(t) => Some(&t.layout),
            Input::Number(_) => None,
        }
    }

    fn storage(&self) -> Option<&Storage> {
        match self {
            Input::Tensor(t) => Some(&t.storage),
            Input::Number(_) => None,
        }
    }
}

/// Runs a program over a walk whose operands are the tensors among `inputs`, in order. Results have the
/// walk's layout.
pub fn run_walk(program: &Program, outputs: &[Sv], inputs: &[Input], walk: &Walk) -> Result<Vec<Tensor>> {
    let results = outputs.iter().map(|o| walk.allocate(program.dtype(*o))).collect::<Result<Vec<_>>>()?;
    if walk.numel == 0 {
        return Ok(results);
    }
    let guards = inputs.iter().filter_map(Input::storage).map(Storage::read).collect::<Result<Vec<_>>>()?;
    let mut views = guards.iter().zip(&walk.operands);
    let sources: Vec<Source<'_>> = inputs
        .iter()
        .map(|input| match input {
            Input::Number(x) => Ok(Source::Number(*x)),
            Input::Tensor(t) => {
                let (bytes, layout) =
                    views.next().ok_or_else(|| Diagnostic::internal("a walk lacks operands"))?;
                Ok(Source::Tensor { dtype: t.dtype, bytes, layout })
            }
        })
        .collect::<Result<_>>()?;
    let out_storages: Vec<Storage> = results.iter().map(Tensor::storage).collect();
    let mut out_guards = out_storages.iter().map(Storage::write).collect::<Result<Vec<_>>>()?;
    let mut jobs: Vec<Job<'_>> = (0..walk.numel)
        .step_by(CHUNK)
        .map(|start| Job {
            start,
            len: CHUNK.min(walk.numel - start),
            out: Vec::with_capacity(outputs.len()),
        })
        .collect();
    for (guard, output) in out_guards.iter_mut().zip(outputs) {
        let chunks = guard.chunks_mut(CHUNK * program.dtype(*output).size());
        jobs.iter_mut().zip(chunks).for_each(|(job, chunk)| job.out.push(chunk));
    }
    if walk.numel >= PARALLEL_THRESHOLD {
        pool::try_each(jobs, |job| run_job(program, outputs, &sources, job))?;
    } else {
        jobs.into_iter().try_for_each(|job| run_job(program, outputs, &sources, job))?;
    }
    drop(out_guards);
    Ok(results)
}

/// Runs a program over a walk and writes its result to `target`, without a tensor between. False, with nothing done,
/// where that cannot be: `target` must have the result's dtype and layout, and an input in its storage must be `target`
/// itself.
pub fn run_in_place(
    program: &Program,
    output: Sv,
    inputs: &[Input],
    walk: &Walk,
    target: &Tensor,
) -> Result<bool> {
    let Snapshot { layout, storage, dtype, .. } = target.snapshot();
    let fits = dtype == program.dtype(output)
        && layout.sizes == walk.result.sizes
        && layout.strides == walk.result.strides;
    let own = |t: &Snapshot| t.storage.same(&storage);
    let apart = |input: &Input| match input {
        Input::Tensor(t) => !own(t) || (t.layout == layout && t.dtype == dtype),
        Input::Number(_) => true,
    };
    if !fits || walk.numel == 0 || !inputs.iter().all(apart) {
        return Ok(false);
    }
    let storages: Vec<Option<&Storage>> = inputs
        .iter()
        .filter_map(|input| match input {
            Input::Tensor(t) => Some((!own(t)).then_some(&t.storage)),
            Input::Number(_) => None,
        })
        .collect();
    let guards = storages.iter().map(|s| s.map(|s| s.read_beside(&storage)).transpose());
    let guards = guards.collect::<Result<Vec<_>>>()?;
    let mut views = guards.iter().zip(&walk.operands);
    let sources: Vec<Source<'_>> = inputs
        .iter()
        .map(|input| match input {
            Input::Number(x) => Ok(Source::Number(*x)),
            Input::Tensor(t) => match views.next() {
                Some((Some(bytes), layout)) => Ok(Source::Tensor { dtype: t.dtype, bytes, layout }),
                Some((None, _)) => Ok(Source::Target),
                None => Err(Diagnostic::internal("a walk lacks operands")),
            },
        })
        .collect::<Result<_>>()?;
    let size = dtype.size();
    let start = layout.offset * size;
    let mut bytes = storage.write()?;
    let Some(bytes) = bytes.get_mut(start..start + walk.numel * size) else {
        return Err(Diagnostic::internal("a tensor that reaches beyond its storage"));
    };
    let run = |at: usize, out: &mut [u8]| {
        let len = out.len() / size;
        run_job(program, &[output], &sources, Job { start: at * CHUNK, len, out: vec![out] })
    };
    if walk.numel >= PARALLEL_THRESHOLD {
        pool::try_chunks(bytes, CHUNK * size, run)?;
    } else {
        bytes.chunks_mut(CHUNK * size).enumerate().try_for_each(|(at, out)| run(at, out))?;
    }
    Ok(true)
}

/// Runs a program on one element: constant folding.
pub fn fold_scalar(program: &Program, output: Sv, inputs: &[Scalar]) -> Result<Scalar> {
    let inputs: Vec<Input> = inputs.iter().map(|x| Input::Number(*x)).collect();
    let walk = Walk::new(&[])?;
    let results = run_walk(program, &[output], &inputs, &walk)?;
    results.first().ok_or_else(|| Diagnostic::internal("a program without result"))?.item()
}

enum Source<'a> {
    Tensor {
        dtype: DType,
        bytes: &'a [u8],
        layout: &'a Layout,
    },
    Number(Scalar),
    /// What the result is written over.
    Target,
}

struct Job<'a> {
    start: usize,
    len: usize,
    out: Vec<&'a mut [u8]>,
}

fn run_job<'a>(program: &Program, outputs: &[Sv], sources: &'a [Source<'a>], mut job: Job<'a>) -> Result<()> {
    let width = TILE.min(job.len);
    let mut regs: Vec<Tile<'a>> =
        program.insts().iter().map(|(_, d)| Tile::new(*d, width)).collect::<Result<_>>()?;
    let same = same_everywhere(program, sources);
    let direct = written_in_place(program, outputs, sources, &same);
    let mut done = 0;
    while done < job.len {
        let n = width.min(job.len - done);
        let mut pieces: Vec<&'a mut [u8]> = Vec::with_capacity(outputs.len());
        for (output, bytes) in outputs.iter().zip(&mut job.out) {
            let (piece, rest) = std::mem::take(bytes).split_at_mut(n * program.dtype(*output).size());
            pieces.push(piece);
            *bytes = rest;
        }
        for (i, (inst, dtype)) in program.insts().iter().enumerate() {
            let first = done == 0;
            // What is the same in every tile stands from the first one on.
            if same[i] && !first {
                continue;
            }
            let mut out = std::mem::replace(&mut regs[i], Tile::Bool(Slot::Own(Vec::new())));
            if let Some(piece) = direct[i].and_then(|k| pieces.get_mut(k)) {
                out = Tile::result(*dtype, std::mem::take(piece)).map_err(|_| mismatch())?;
            }
            match inst {
                Inst::Param(p) => match sources.get(*p as usize) {
                    Some(Source::Tensor { dtype, bytes, layout }) => {
                        let start = job.start + done;
                        match piece_of(*dtype, bytes, layout, start, n) {
                            Some(piece) => out = piece,
                            None => {
                                own(&mut out, *dtype, width)?;
                                load(&mut out, *dtype, bytes, layout, start, n)?;
                            }
                        }
                    }
                    Some(Source::Target) => {
                        let old: &[u8] = pieces.first().map_or(&[], |piece| piece);
                        load(&mut out, *dtype, old, &Layout::contiguous(&[n as i64])?, 0, n)?;
                    }
                    Some(Source::Number(x)) => out.fill(*x, *dtype),
                    None => return Err(Diagnostic::internal("a program was run with too few operands")),
                },
                Inst::Const(x) => out.fill(*x, *dtype),
                _ => step(*inst, *dtype, program, &regs, &mut out)?,
            }
            regs[i] = out;
        }
        for (output, piece) in outputs.iter().zip(&mut pieces) {
            // What was written in place has left its piece empty.
            if !piece.is_empty() {
                store(&regs[output.index()], program.dtype(*output), piece)?;
            }
        }
        done += n;
    }
    Ok(())
}

/// Which values are written to which output as they are computed, without a register between.
fn written_in_place(
    program: &Program,
    outputs: &[Sv],
    sources: &[Source<'_>],
    same: &[bool],
) -> Vec<Option<usize>> {
    let mut direct = vec![None; program.insts().len()];
    // What the results are written over must have been read.
    let is_target = |inst: &Inst| matches!(inst, Inst::Param(p) if matches!(sources.get(*p as usize), Some(Source::Target)));
    let read = program.insts().iter().rposition(|(inst, _)| is_target(inst)).map_or(0, |last| last + 1);
    for (k, output) in outputs.iter().enumerate() {
        let (i, (inst, dtype)) = (output.index(), program.insts()[output.index()]);
        let computed = !matches!(inst, Inst::Param(_) | Inst::Const(_)) && !same[i];
        if computed && i >= read && direct[i].is_none() && Tile::lies_in_memory(dtype) {
            direct[i] = Some(k);
        }
    }
    direct
}

/// Elements of an operand that lie side by side, as they lie in memory.
fn piece_of<'a>(dtype: DType, bytes: &'a [u8], layout: &Layout, start: usize, n: usize) -> Option<Tile<'a>> {
    let at = side_by_side(layout, start, n)?;
    Tile::operand(dtype, bytes.get(at * dtype.size()..(at + n) * dtype.size())?)
}

/// Gives a register memory of its own, where it was a piece of an operand.
fn own(tile: &mut Tile<'_>, dtype: DType, n: usize) -> Result<()> {
    if tile.is_operand() {
        *tile = Tile::new(dtype, n)?;
    }
    Ok(())
}

/// Which values of a program are one number for all elements: constants, numbers, and what is computed of these alone.
fn same_everywhere(program: &Program, sources: &[Source<'_>]) -> Vec<bool> {
    let mut same: Vec<bool> = Vec::with_capacity(program.insts().len());
    for (inst, _) in program.insts() {
        let is = |x: &Sv| same[x.index()];
        let value = match inst {
            Inst::Param(p) => matches!(sources.get(*p as usize), Some(Source::Number(_))),
            Inst::Const(_) => true,
            Inst::Unary(_, x) | Inst::Convert(x) => is(x),
            Inst::Binary(_, x, y) | Inst::Compare(_, x, y) => is(x) && is(y),
            Inst::Select(x, y, z) | Inst::Fma(x, y, z) => is(x) && is(y) && is(z),
        };
        same.push(value);
    }
    same
}

fn load(
    out: &mut Tile<'_>,
    dtype: DType,
    bytes: &[u8],
    layout: &Layout,
    start: usize,
    n: usize,
) -> Result<()> {
    fn plain<T: Lane + Element>(
        out: &mut Tile<'_>,
        bytes: &[u8],
        layout: &Layout,
        start: usize,
        n: usize,
    ) -> Result<()> {
        let out = T::of_mut(out).ok_or_else(mismatch)?;
        gather(typed::<T>(bytes), layout, start, &mut out[..n], |x| x);
        Ok(())
    }
    fn small<T: Element>(
        out: &mut Tile<'_>,
        bytes: &[u8],
        layout: &Layout,
        start: usize,
        n: usize,
        number: impl Fn(T) -> f32,
    ) -> Result<()> {
        let out = f32::of_mut(out).ok_or_else(mismatch)?;
        gather(typed::<T>(bytes), layout, start, &mut out[..n], number);
        Ok(())
    }
    match dtype {
        DType::U8 => plain::<u8>(out, bytes, layout, start, n),
        DType::I8 => plain::<i8>(out, bytes, layout, start, n),
        DType::I16 => plain::<i16>(out, bytes, layout, start, n),
        DType::I32 => plain::<i32>(out, bytes, layout, start, n),
        DType::I64 => plain::<i64>(out, bytes, layout, start, n),
        DType::U16 => plain::<u16>(out, bytes, layout, start, n),
        DType::U32 => plain::<u32>(out, bytes, layout, start, n),
        DType::U64 => plain::<u64>(out, bytes, layout, start, n),
        DType::F8E4m3fn => small::<E4m3fn>(out, bytes, layout, start, n, E4m3fn::to_f32),
        DType::F8E5m2 => small::<E5m2>(out, bytes, layout, start, n, E5m2::to_f32),
        DType::F8E4m3fnuz => small::<E4m3fnuz>(out, bytes, layout, start, n, E4m3fnuz::to_f32),
        DType::F8E5m2fnuz => small::<E5m2fnuz>(out, bytes, layout, start, n, E5m2fnuz::to_f32),
        DType::F8E8m0fnu => small::<E8m0fnu>(out, bytes, layout, start, n, E8m0fnu::to_f32),
        DType::F32 => plain::<f32>(out, bytes, layout, start, n),
        DType::F64 => plain::<f64>(out, bytes, layout, start, n),
        DType::C64 => plain::<Complex<f32>>(out, bytes, layout, start, n),
        DType::C128 => plain::<Complex64>(out, bytes, layout, start, n),
        DType::Bool => {
            let out = bool::of_mut(out).ok_or_else(mismatch)?;
            gather(typed::<Bool>(bytes), layout, start, &mut out[..n], Bool::get);
            Ok(())
        }
        DType::F16 => {
            let mut halves = [f16::ZERO; TILE];
            gather(typed::<f16>(bytes), layout, start, &mut halves[..n], |x| x);
            halves[..n].convert_to_f32_slice(&mut f32::of_mut(out).ok_or_else(mismatch)?[..n]);
            Ok(())
        }
        DType::BF16 => {
            let out = f32::of_mut(out).ok_or_else(mismatch)?;
            gather(typed::<bf16>(bytes), layout, start, &mut out[..n], bf16::to_f32);
            Ok(())
        }
        _ => Err(mismatch()),
    }
}

/// Whole elements of bytes; storages are aligned for every dtype.
fn typed<T: Element>(bytes: &[u8]) -> &[T] {
    bytemuck::cast_slice(&bytes[..bytes.len() / size_of::<T>() * size_of::<T>()])
}

fn store(tile: &Tile<'_>, dtype: DType, out: &mut [u8]) -> Result<()> {
    let n = out.len() / dtype.size();
    match (tile, dtype) {
        (Tile::F32(x), DType::F16) => bytemuck::cast_slice_mut::<_, f16>(out).convert_from_f32_slice(&x[..n]),
        (Tile::F32(x), DType::BF16) => {
            bytemuck::cast_slice_mut::<_, bf16>(out).convert_from_f32_slice(&x[..n])
        }
        (Tile::F32(x), dtype) if dtype.is_float8() => {
            crate::dispatch_dtype!(dtype, T => {
                let small: &mut [T] = bytemuck::cast_slice_mut(out);
                small.iter_mut().zip(x.iter()).for_each(|(o, x)| *o = T::from_scalar(Scalar::Float((*x).into())));
                Ok(())
            })?;
        }
        (Tile::U16(x), _) => out.copy_from_slice(bytemuck::cast_slice(&x[..n])),
        (Tile::U32(x), _) => out.copy_from_slice(bytemuck::cast_slice(&x[..n])),
        (Tile::U64(x), _) => out.copy_from_slice(bytemuck::cast_slice(&x[..n])),
        (Tile::Bool(x), _) => out.iter_mut().zip(x.iter()).for_each(|(o, x)| *o = u8::from(*x)),
        (Tile::U8(x), _) => out.copy_from_slice(&x[..n]),
        (Tile::I8(x), _) => out.copy_from_slice(bytemuck::cast_slice(&x[..n])),
        (Tile::I16(x), _) => out.copy_from_slice(bytemuck::cast_slice(&x[..n])),
        (Tile::I32(x), _) => out.copy_from_slice(bytemuck::cast_slice(&x[..n])),
        (Tile::I64(x), _) => out.copy_from_slice(bytemuck::cast_slice(&x[..n])),
        (Tile::F32(x), _) => out.copy_from_slice(bytemuck::cast_slice(&x[..n])),
        (Tile::F64(x), _) => out.copy_from_slice(bytemuck::cast_slice(&x[..n])),
        (Tile::C64(x), _) => out.copy_from_slice(bytemuck::cast_slice(&x[..n])),
        (Tile::C128(x), _) => out.copy_from_slice(bytemuck::cast_slice(&x[..n])),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// relu(x) * 2 and whether x is above zero, over a transposed tensor and a broadcast row.
    #[test]
    fn runs_over_any_layout_with_several_outputs() {
        let mut p = Program::new();
        let (x, y) = (p.param(DType::F32), p.param(DType::F32));
        let zero = p.constant_like(x, 0.0);
        let relu = p.max(x, zero);
        let product = p.mul(relu, y);
        let positive = p.gt(x, zero);
        let base = Tensor::from_vec(&[-1f32, 2.0, 3.0, -4.0, 5.0, -6.0], &[3, 2]).expect("valid");
        let x = base.with_layout(Layout::strided(&[2, 3], &[1, 2], 0).expect("valid")).expect("inside");
        let row = Tensor::from_vec(&[1f32, 10.0, 100.0], &[3]).expect("valid");
        let inputs = [Input::Tensor(x.snapshot()), Input::Tensor(row.snapshot())];
        let results = run_program(&p, &[product, positive], &inputs, &[2, 3]).expect("runs");
        assert_eq!(results[0].to_vec::<f32>().expect("f32"), [0.0, 30.0, 500.0, 2.0, 0.0, 0.0]);
        let truth: Vec<bool> = results[1].to_vec::<Bool>().expect("bool").iter().map(|b| b.get()).collect();
        assert_eq!(truth, [false, true, true, true, false, false]);
    }

    #[test]
    fn large_work_is_the_same_in_parallel() {
        let n = 3 * PARALLEL_THRESHOLD + 17;
        let data: Vec<i64> = (0..n as i64).collect();
        let mut p = Program::new();
        let x = p.param(DType::I64);
        let square = p.mul(x, x);
        let input = Input::Tensor(Tensor::from_vec(&data, &[n as i64]).expect("valid").snapshot());
        let results = run_program(&p, &[square], &[input], &[n as i64]).expect("runs");
        let expected: Vec<i64> = data.iter().map(|x| x * x).collect();
        assert!(results[0].to_vec::<i64>().expect("i64") == expected);
    }

    #[test]
    fn sixteen_bits_round_after_each_instruction() {
        let mut p = Program::new();
        let x = p.param(DType::F16);
        let one = p.constant_like(x, 1.0);
        let sum = p.add(x, one);
        let back = p.sub(sum, one);
        // 2^-12 is lost in the sum.
        assert_eq!(fold_scalar(&p, back, &[Scalar::Float(1.0 / 4096.0)]).expect("folds"), Scalar::Float(0.0));
    }

    #[test]
    fn floats_truncate_to_integers_as_the_machine_does() {
        let cases = [(DType::U8, -1.5, 255), (DType::I8, 300.0, 44), (DType::I32, 3e9, i64::from(i32::MIN))];
        for (dtype, x, expected) in cases {
            let mut p = Program::new();
            let param = p.param(DType::F32);
            let converted = p.convert(param, dtype);
            let folded = fold_scalar(&p, converted, &[Scalar::Float(x)]).expect("folds");
            assert_eq!(folded, Scalar::Int(expected), "{x} as {dtype:?}");
        }
    }
}
