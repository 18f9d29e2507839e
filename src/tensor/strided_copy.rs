//! Copies elements from one layout to another: neighbouring dimensions are merged, stretches that lie side by side are
//! copied whole, and two dimensions that change places are copied block by block. Elements are bits of some size. Knows
//! slices and layouts, no tensors.

use super::Layout;
use super::pointwise::PARALLEL_THRESHOLD;
use crate::resources::pool;
use bytemuck::Pod;
use smallvec::SmallVec;

/// Rows of a transposition that are copied before others: the lines that they are read from stay in the first cache.
const SIDE: usize = 16;
/// Rows and columns of a block that is copied at once.
const WIDTH: usize = 8;
/// The same of blocks of what is left where there are fewer.
const NARROW: usize = 4;

/// A dimension: how many elements, and from one to the next in both slices.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Dim {
    size: usize,
    to: usize,
    from: usize,
}

/// A copy: what is outermost in the target first.
#[derive(Debug, PartialEq)]
pub(super) struct StridedCopy {
    dims: SmallVec<[Dim; 6]>,
    /// Where both begin.
    to: usize,
    from: usize,
}

impl StridedCopy {
    /// A copy between layouts of equal sizes, the second one of at least one element. None where elements of the target share
    /// a place, or where a layout goes backwards or beyond `to_len` and `from_len` elements.
    pub fn new(to: &Layout, to_len: usize, from: &Layout, from_len: usize) -> Option<StridedCopy> {
        if to.sizes != from.sizes {
            return None;
        }
        let number = |n: i64| usize::try_from(n).ok();
        let mut dims: SmallVec<[Dim; 6]> = SmallVec::new();
        for ((size, to), from) in to.sizes.iter().zip(&to.strides).zip(&from.strides) {
            match number(*size)? {
                0 => return None,
                1 => {}
                size => dims.push(Dim { size, to: number(*to)?, from: number(*from)? }),
            }
        }
        dims.sort_by_key(|dim| std::cmp::Reverse(dim.to));
        let end = |stride: fn(&Dim) -> usize| {
            dims.iter().try_fold(1usize, |end, dim| end.checked_add((dim.size - 1).checked_mul(stride(dim))?))
        };
        let fits = to.offset.checked_add(end(|dim| dim.to)?)? <= to_len
            && from.offset.checked_add(end(|dim| dim.from)?)? <= from_len;
        let mut span = 1;
        for dim in dims.iter().rev() {
            if dim.to < span {
                return None;
            }
            span += (dim.size - 1) * dim.to;
        }
        let mut merged: SmallVec<[Dim; 6]> = SmallVec::new();
        for dim in dims {
            match merged.last_mut() {
                Some(outer) if outer.to == dim.size * dim.to && outer.from == dim.size * dim.from => {
                    *outer = Dim { size: outer.size * dim.size, ..dim };
                }
                _ => merged.push(dim),
            }
        }
        fits.then_some(StridedCopy { dims: merged, to: to.offset, from: from.offset })
    }

    /// Does it; the slices must have the lengths given to `new`. Much is shared among threads.
    pub fn run<T: Pod + Send + Sync>(&self, to: &mut [T], from: &[T]) {
        // What elements are does not matter: fewer kinds of them are less code.
        match size_of::<T>() {
            1 => self.share::<u8>(bytemuck::cast_slice_mut(to), bytemuck::cast_slice(from)),
            2 => self.share::<u16>(bytemuck::cast_slice_mut(to), bytemuck::cast_slice(from)),
            4 => self.share::<u32>(bytemuck::cast_slice_mut(to), bytemuck::cast_slice(from)),
            8 => self.share::<[u32; 2]>(bytemuck::cast_slice_mut(to), bytemuck::cast_slice(from)),
            16 => self.share::<[u32; 4]>(bytemuck::cast_slice_mut(to), bytemuck::cast_slice(from)),
            _ => self.share(to, from),
        }
    }

    fn share<T: Pod + Send + Sync>(&self, to: &mut [T], from: &[T]) {
        let (to, from) = (&mut to[self.to..], &from[self.from..]);
        let elements: usize = self.dims.iter().map(|dim| dim.size).product();
        let Some((outer, rest)) = self.dims.split_first() else {
            to[0] = from[0];
            return;
        };
        if elements < PARALLEL_THRESHOLD || pool::threads() < 2 {
            return copy(to, from, &self.dims);
        }
        let each = outer.size.div_ceil(pool::threads() * 4);
        let span = rest.iter().map(|dim| (dim.size - 1) * dim.to).sum::<usize>() + 1;
        let end = (outer.size - 1) * outer.to + span;
        pool::chunks(&mut to[..end], each * outer.to, |n, to| {
            let size = each.min(outer.size - n * each);
            let mut dims = self.dims.clone();
            dims[0] = Dim { size, ..*outer };
            copy(to, &from[n * each * outer.from..], &dims);
        });
    }
}

/// Copies elements that begin at the begin of both slices.
fn copy<T: Copy>(to: &mut [T], from: &[T], dims: &[Dim]) {
    let Some((inner, outer)) = dims.split_last() else { return to[0] = from[0] };
    // A dimension along which inputs lie side by side changes places with the last one.
    let turned = outer.iter().rposition(|dim| dim.from == 1).filter(|_| inner.to == 1 && inner.from != 1);
    match turned {
        Some(at) => {
            let rest: SmallVec<[Dim; 6]> =
                outer.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, dim)| *dim).collect();
            each(&rest, |t, f| turn(&mut to[t..], &from[f..], outer[at], *inner));
        }
        None if inner.to == 1 && inner.from == 1 => {
            each(outer, |t, f| to[t..t + inner.size].copy_from_slice(&from[f..f + inner.size]));
        }
        None if inner.from == 0 && inner.to == 1 => {
            each(outer, |t, f| to[t..t + inner.size].fill(from[f]));
        }
        None => each(outer, |t, f| {
            let to = to[t..].iter_mut().step_by(inner.to.max(1)).take(inner.size);
            for (n, to) in to.enumerate() {
                *to = from[f + n * inner.from];
            }
        }),
    }
}

/// Calls `work` with the places of each index of dimensions.
fn each(dims: &[Dim], mut work: impl FnMut(usize, usize)) {
    let mut counter: SmallVec<[usize; 6]> = SmallVec::from_elem(0, dims.len());
    let (mut to, mut from) = (0, 0);
    loop {
        work(to, from);
        let mut at = dims.len();
        loop {
            let Some(dim) = at.checked_sub(1).map(|at| dims[at]) else { return };
            at -= 1;
            counter[at] += 1;
            (to, from) = (to + dim.to, from + dim.from);
            if counter[at] < dim.size {
                break;
            }
            (to, from) = (to - dim.size * dim.to, from - dim.size * dim.from);
            counter[at] = 0;
        }
    }
}

/// Copies rows whose elements lie side by side in the target from columns that do so in the source.
fn turn<T: Copy>(to: &mut [T], from: &[T], rows: Dim, columns: Dim) {
    for row in (0..rows.size).step_by(SIDE) {
        let row_end = rows.size.min(row + SIDE);
        let mut column = 0;
        while column < columns.size {
            let left = columns.size - column;
            let count = if left >= WIDTH { WIDTH } else { left.min(NARROW) };
            let mut r = row;
            while r < row_end {
                let (to, from) = (&mut to[r * rows.to + column..], &from[column * columns.from + r..]);
                let block = match (count, row_end - r) {
                    (WIDTH, WIDTH..) => turn_block::<T, WIDTH>(to, rows.to, from, columns.from),
                    (NARROW, NARROW..) => turn_block::<T, NARROW>(to, rows.to, from, columns.from),
                    _ => false,
                };
                if block {
                    r += count;
                    continue;
                }
                for (n, to) in to[..count].iter_mut().enumerate() {
                    *to = from[n * columns.from];
                }
                r += 1;
            }
            column += count;
        }
    }
}

/// Copies as many rows as columns, which are read and written whole. False where they are not there.
#[inline(always)]
fn turn_block<T: Copy, const N: usize>(to: &mut [T], to_step: usize, from: &[T], from_step: usize) -> bool {
    let mut columns = [None; N];
    for (n, column) in columns.iter_mut().enumerate() {
        *column = from.get(n * from_step..).and_then(|from| from.first_chunk::<N>());
    }
    if columns.iter().any(Option::is_none) || to.len() < (N - 1) * to_step + N {
        return false;
    }
    for r in 0..N {
        let Some(row) = to.get_mut(r * to_step..).and_then(|to| to.first_chunk_mut::<N>()) else {
            return false;
        };
        for (to, column) in row.iter_mut().zip(&columns) {
            if let Some(column) = column {
                *to = column[r];
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A layout whose dimensions lie in memory in a given order, with gaps.
    fn layout(sizes: &[i64], order: &[usize], gap: i64) -> Layout {
        let mut strides = vec![0i64; sizes.len()];
        let mut step = 1;
        for d in order {
            strides[*d] = step;
            step = step * sizes[*d] + gap;
        }
        Layout { sizes: sizes.into(), strides: strides.as_slice().into(), offset: 3 }
    }

    fn places(layout: &Layout) -> Vec<usize> {
        let mut all = Vec::new();
        layout.for_each_index(|at| all.push(at));
        all
    }

    #[test]
    fn every_order_of_dimensions_is_copied() {
        let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 2, 0], [2, 0, 3, 1], [1, 0, 3, 2]];
        for sizes in [[2, 3, 4, 5], [1, 20, 33, 17], [2, 1, 40, 70], [1, 1, 1, 1]] {
            for (to, gap) in orders.iter().zip([0, 0, 1, 2, 5]) {
                for from in &orders {
                    let (to, from) = (layout(&sizes, to, gap), layout(&sizes, from, 1));
                    let (to_places, from_places) = (places(&to), places(&from));
                    let len = |places: &[usize]| places.iter().max().map_or(0, |n| n + 1);
                    let source: Vec<u32> = (0..len(&from_places) as u32).collect();
                    let mut target = vec![u32::MAX; len(&to_places)];
                    let copy = StridedCopy::new(&to, target.len(), &from, source.len()).expect("it fits");
                    copy.run(&mut target, &source);
                    let written = to_places.iter().zip(&from_places).all(|(t, f)| target[*t] as usize == *f);
                    assert!(written, "{to:?} {from:?}");
                    let other = target.iter().filter(|x| **x != u32::MAX).count();
                    assert_eq!(other, to_places.len(), "{to:?} {from:?}");
                    assert!(StridedCopy::new(&to, target.len() - 1, &from, source.len()).is_none());
                }
            }
        }
    }

    #[test]
    fn what_repeats_is_read_and_not_written() {
        let plain = Layout::contiguous(&[3, 4]).expect("small");
        let repeated = Layout { strides: [0, 1].as_slice().into(), ..plain.clone() };
        let mut target = [0u64; 12];
        let copy = StridedCopy::new(&plain, 12, &repeated, 4).expect("it fits");
        copy.run(&mut target, &[1, 2, 3, 4]);
        assert_eq!(target, [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]);
        assert_eq!(StridedCopy::new(&repeated, 12, &plain, 12), None);
        let other = Layout::contiguous(&[4, 3]).expect("small");
        assert_eq!(StridedCopy::new(&plain, 12, &other, 12), None);
    }
}
