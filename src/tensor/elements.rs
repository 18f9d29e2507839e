//! Moving elements without reading them: gathers by position, for any dtype, by size of the element only.

use super::{Dims, Layout, Tensor};
use crate::diag::{Diagnostic, Result};
use crate::resources::pool;
use bytemuck::Pod;

/// Runs `$body` with `$P` bound to plain bytes of the size of an element.
macro_rules! by_size {
    ($size:expr, $P:ident => $body:expr) => {
        match $size {
            1 => {
                type $P = u8;
                $body
            }
            2 => {
                type $P = u16;
                $body
            }
            4 => {
                type $P = u32;
                $body
            }
            8 => {
                type $P = u64;
                $body
            }
            _ => {
                type $P = [u64; 2];
                $body
            }
        }
    };
}

impl Tensor {
    /// A new dense tensor of `sizes` whose n-th element is this tensor's element at logical position
    /// `positions[n]`. Fails if a position is outside.
    pub fn take_positions(&self, positions: &[usize], sizes: &[i64]) -> Result<Tensor> {
        self.take_blocks(&Blocks { outer: positions, inner: &[0], length: 1 }, sizes)
    }

    /// A new dense tensor of `sizes` of this tensor's elements in the places that the blocks name. Fails if one is outside. Several
    /// threads copy.
    pub fn take_blocks(&self, blocks: &Blocks<'_>, sizes: &[i64]) -> Result<Tensor> {
        if let Some(quantizer) = self.quantizer().filter(|q| q.is_uniform()) {
            let taken = self.integers().take_blocks(blocks, sizes)?;
            return Tensor::quantized(&taken, self.dtype(), quantizer);
        }
        let row = blocks.inner.len().saturating_mul(blocks.length);
        if blocks.outer.len().saturating_mul(row) != super::numel(sizes) {
            return Err(Diagnostic::internal("blocks of elements do not fit the sizes of the result"));
        }
        let dense = self.contiguous()?;
        let layout = dense.layout();
        let storage = dense.storage();
        let bytes = storage.read()?;
        let size = self.dtype().size();
        let bytes = &bytes[layout.offset.min(bytes.len() / size) * size..];
        // Each element is written below.
        let result = Tensor::for_writing(self.dtype(), sizes)?;
        let to = result.storage();
        let mut to = to.write()?;
        by_size!(size, P => take::<P>(bytes, layout.numel(), blocks, &mut to)?);
        drop(to);
        Ok(result)
    }

    /// Writes `source`'s n-th element (of the same dtype, in logical order) to this dense tensor's logical position
    /// `positions[n]`, one after the other: the last one wins.
    pub fn put_positions(&self, positions: &[usize], source: &Tensor) -> Result<()> {
        if !self.is_contiguous() || self.dtype() != source.dtype() || source.numel() != positions.len() {
            return Err(Diagnostic::internal(format!(
                "put_positions: {} positions from {source:?} into {self:?}",
                positions.len()
            )));
        }
        let source =
            if source.storage().same(&self.storage()) { source.copy()? } else { source.contiguous()? };
        let size = self.dtype().size();
        let (to, from) = (self.layout(), source.layout());
        let (to_storage, from_storage) = (self.storage(), source.storage());
        let from_bytes = from_storage.read_beside(&to_storage)?;
        let from_bytes = &from_bytes[from.offset.min(from_bytes.len() / size) * size..];
        let mut to_bytes = to_storage.write()?;
        let start = to.offset.min(to_bytes.len() / size) * size;
        by_size!(size, P => put::<P>(&mut to_bytes[start..], to.numel(), positions, from_bytes))
    }

    /// The same storage through another layout made from the present one.
    pub fn look(&self, rule: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Tensor> {
        self.with_layout(rule(&self.layout())?)
    }

    /// The elements as a dense tensor of other sizes with as many elements.
    pub fn reshaped(&self, sizes: &[i64]) -> Result<Tensor> {
        let layout = self.layout();
        match super::view::try_view(&layout, sizes) {
            Some(layout) => self.with_layout(layout),
            None => {
                let copy = self.copy()?;
                copy.with_layout(Layout::contiguous(sizes)?)
            }
        }
    }

    /// Repeated to `sizes` without a copy; sizes must be broadcastable.
    pub fn broadcast_to(&self, sizes: &[i64]) -> Result<Tensor> {
        self.look(|layout| super::view::expand(layout, sizes, self.dtype()))
    }
}

fn outside(position: usize, count: usize) -> Diagnostic {
    Diagnostic::internal(format!("position {position} in a tensor of {count} elements"))
}

/// Elements by their logical positions: for each of `outer`, for each of `inner`, as many as `length` says from their sum on.
pub struct Blocks<'a> {
    /// Of rows of the result.
    pub outer: &'a [usize],
    /// Of blocks of a row, from the row's on.
    pub inner: &'a [usize],
    /// Elements of a block, which lie side by side.
    pub length: usize,
}

/// Elements of the result that one piece of work copies, at least.
const PIECE: usize = 1 << 14;

fn take<P: Pod + Send + Sync>(bytes: &[u8], count: usize, blocks: &Blocks<'_>, to: &mut [u8]) -> Result<()> {
    let elements: &[P] = bytemuck::cast_slice(&bytes[..count * size_of::<P>()]);
    let &Blocks { outer, inner, length } = blocks;
    let row = inner.len() * length;
    if row == 0 {
        return Ok(());
    }
    let to: &mut [P] = bytemuck::cast_slice_mut(&mut to[..outer.len() * row * size_of::<P>()]);
    let rows = PIECE.div_ceil(row);
    let runs = if length == 1 { Run::all(inner) } else { None };
    pool::try_chunks(to, rows * row, |n, to| {
        for (to, start) in to.chunks_exact_mut(row).zip(&outer[n * rows..]) {
            if let Some(runs) = &runs {
                let mut to = to;
                for run in runs {
                    let (part, rest) = to.split_at_mut(run.count);
                    run.copy(elements, *start, part)?;
                    to = rest;
                }
                continue;
            }
            if length == 1 {
                for (to, at) in to.iter_mut().zip(inner) {
                    let at = start.wrapping_add(*at);
                    *to = *elements.get(at).ok_or_else(|| outside(at, count))?;
                }
                continue;
            }
            for (to, at) in to.chunks_exact_mut(length).zip(inner) {
                let at = start.wrapping_add(*at);
                let end = at.saturating_add(length);
                to.copy_from_slice(elements.get(at..end).ok_or_else(|| outside(at, count))?);
            }
        }
        Ok(())
    })
}

/// Elements that lie side by side, taken forwards or backwards.
struct Run {
    /// The first in memory.
    first: usize,
    count: usize,
    backwards: bool,
}

impl Run {
    /// Positions as runs. None where these are too short to be worth it.
    fn all(positions: &[usize]) -> Option<Vec<Run>> {
        /// Elements of a run, on average.
        const LONG: usize = 8;
        if positions.len() < LONG {
            return None;
        }
        let mut runs: Vec<Run> = Vec::new();
        for at in positions {
            if runs.len() > positions.len() / LONG {
                return None;
            }
            match runs.last_mut() {
                Some(run) if run.count == 1 && at.checked_add(1) == Some(run.first) => {
                    *run = Run { first: *at, count: 2, backwards: true };
                }
                Some(run) if run.backwards && at.checked_add(1) == Some(run.first) => {
                    (run.first, run.count) = (*at, run.count + 1);
                }
                Some(run) if !run.backwards && run.first.checked_add(run.count) == Some(*at) => {
                    run.count += 1;
                }
                _ => runs.push(Run { first: *at, count: 1, backwards: false }),
            }
        }
        Some(runs)
    }

    fn copy<P: Copy>(&self, elements: &[P], start: usize, to: &mut [P]) -> Result<()> {
        let first = start.wrapping_add(self.first);
        let from = elements.get(first..first.saturating_add(self.count));
        let from = from.ok_or_else(|| outside(first, elements.len()))?;
        match self.backwards {
            true => to.iter_mut().zip(from.iter().rev()).for_each(|(to, from)| *to = *from),
            false => to.copy_from_slice(from),
        }
        Ok(())
    }
}

fn put<P: Pod>(to: &mut [u8], count: usize, positions: &[usize], from: &[u8]) -> Result<()> {
    let to: &mut [P] = bytemuck::cast_slice_mut(&mut to[..count * size_of::<P>()]);
    let from: &[P] = bytemuck::cast_slice(&from[..positions.len() * size_of::<P>()]);
    for (position, element) in positions.iter().zip(from) {
        *to.get_mut(*position).ok_or_else(|| outside(*position, count))? = *element;
    }
    Ok(())
}

/// Sizes that several tensors broadcast to.
pub fn broadcast_all<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<Dims> {
    tensors.into_iter().try_fold(Dims::new(), |sizes, t| super::broadcast_sizes(&sizes, &t.sizes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::DType;

    #[test]
    fn blocks_are_copied_whole_and_from_inside_alone() {
        let count = 3 * (PIECE + 7);
        let all: Vec<i32> = (0..count as i32).collect();
        let t = Tensor::from_vec(&all, &[count as i64]).expect("valid");
        let take = |outer: &[usize], inner: &[usize], length: usize| {
            let sizes = [(outer.len() * inner.len() * length) as i64];
            t.take_blocks(&Blocks { outer, inner, length }, &sizes).and_then(|taken| taken.to_vec::<i32>())
        };
        assert_eq!(take(&[10, 0], &[5, 1], 2).expect("inside"), [15, 16, 11, 12, 5, 6, 1, 2]);
        assert_eq!(take(&[10, 0], &[5, 1], 1).expect("inside"), [15, 11, 5, 1]);
        // Runs of elements, forwards and backwards.
        let inner = [4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 13, 12, 11, 10, 9];
        let taken = take(&[7, 0], &inner, 1).expect("inside");
        let wanted = [7, 0].iter().flat_map(|start| inner.iter().map(move |at| (start + at) as i32));
        assert_eq!(taken, wanted.collect::<Vec<i32>>());
        assert!(take(&[count - 14], &inner, 1).is_err() && take(&[usize::MAX - 2], &inner, 1).is_err());
        // More than one piece of work.
        let outer: Vec<usize> = (0..count).rev().collect();
        assert!(take(&outer, &[0], 1).expect("inside").iter().zip(&outer).all(|(x, at)| *x == *at as i32));
        let third = count / 3;
        assert_eq!(take(&[2 * third, 0, third], &[0], third).expect("inside")[third], 0);
        for outside in [take(&[count - 1], &[0], 2), take(&[count], &[0], 1), take(&[usize::MAX], &[0], 2)] {
            assert!(outside.is_err());
        }
        assert!(t.take_blocks(&Blocks { outer: &[0], inner: &[0], length: 2 }, &[3]).is_err(), "3 are 2");
        assert!(take(&[], &[0], 4).expect("none").is_empty());
    }

    #[test]
    fn elements_move_by_logical_position() {
        let t = Tensor::from_vec(&[1i16, 2, 3, 4, 5, 6], &[2, 3]).expect("valid");
        let transposed = t.look(|l| super::super::view::transpose(l, 0, 1)).expect("view");
        let taken = transposed.take_positions(&[1, 0, 5], &[3]).expect("inside");
        assert_eq!(taken.to_vec::<i16>().expect("i16"), [4, 1, 6]);
        assert!(t.take_positions(&[6], &[1]).is_err());
        let target = Tensor::zeros(DType::I16, &[3]).expect("small");
        target.put_positions(&[2, 2, 0], &taken).expect("inside");
        assert_eq!(target.to_vec::<i16>().expect("i16"), [6, 0, 1]);
    }
}
