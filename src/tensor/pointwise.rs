//! How elementwise work walks its operands: broadcasting, the layout of the result, and reading any layout
//! in the order of the result's memory.
//!
//! The result's layout is PyTorch's: dense, its dimensions ordered as those of the operands. All operands are
//! then seen through the result's memory order with neighbouring dimensions merged, so that most work is
//! over one long dimension.

use super::{
    DType, Dims, Element, Layout, Storage, Tensor, broadcast_sizes, channels_last_strides, contiguous_strides,
};
use crate::diag::Result;
use crate::resources::pool;
use smallvec::SmallVec;

/// Elements below which elementwise work is not shared among threads.
pub const PARALLEL_THRESHOLD: usize = 1 << 16;

/// A walk over the elements of a result and its operands.
#[derive(Clone, Debug)]
pub struct Walk {
    /// Sizes and strides of the result; it is dense.
    pub result: Layout,
    /// The operands, element k of each is the k-th in the result's memory.
    pub operands: Vec<Layout>,
    /// Number of elements.
    pub numel: usize,
}

impl Walk {
    /// Broadcasts operands and orders the result's memory. Fails with PyTorch's error where sizes disagree.
    pub fn new(operands: &[Layout]) -> Result<Walk> {
        Walk::beside_number(operands, false)
    }

    /// As [`Walk::new`]; `number` says that a number stands among the operands in the place of a tensor (`x + 1`), whose
    /// sizes then are not those of all operands.
    pub fn beside_number(operands: &[Layout], number: bool) -> Result<Walk> {
        let mut sizes = Dims::new();
        for operand in operands {
            if operand.sizes != sizes {
                sizes = broadcast_sizes(&sizes, &operand.sizes)?;
            }
        }
        let numel = Layout::contiguous(&sizes)?.numel();
        if operands.iter().all(|o| o.sizes == sizes)
            && let Some(strides) = common_strides(&sizes, operands, number)
        {
            let flat = |o: &Layout| Layout { sizes: one(numel as i64), strides: one(1), offset: o.offset };
            let result = Layout { strides, sizes, offset: 0 };
            return Ok(Walk { result, operands: operands.iter().map(flat).collect(), numel });
        }
        let wide: Vec<Layout> = operands.iter().filter_map(|o| o.broadcast_to(&sizes)).collect();
        let order = memory_order(&sizes, &wide);
        let result = Layout { strides: strides_in_order(&sizes, &order), sizes, offset: 0 };
        let operands = coalesce(&result.sizes, &wide, &order);
        Ok(Walk { result, operands, numel })
    }

    /// A walk with a result of the layout that `choose` makes of the sizes to which the operands broadcast; it is dense.
    pub fn with_result(operands: &[Layout], choose: impl FnOnce(&[i64]) -> Result<Layout>) -> Result<Walk> {
        let mut sizes = Dims::new();
        for operand in operands {
            sizes = broadcast_sizes(&sizes, &operand.sizes)?;
        }
        let numel = Layout::contiguous(&sizes)?.numel();
        let result = Layout { offset: 0, ..choose(&sizes)? };
        let wide: Vec<Layout> = operands.iter().filter_map(|o| o.broadcast_to(&sizes)).collect();
        let order = memory_order(&sizes, std::slice::from_ref(&result));
        let operands = coalesce(&sizes, &wide, &order);
        Ok(Walk { result, operands, numel })
    }

    /// The elements of a layout in the order in which work that only writes visits them: as they lie in memory.
    pub fn writing(layout: &Layout) -> Layout {
        let order = memory_order(&layout.sizes, std::slice::from_ref(layout));
        coalesce(&layout.sizes, std::slice::from_ref(layout), &order).swap_remove(0)
    }

    /// A new tensor with the result's layout, which the caller is about to overwrite whole.
    pub fn allocate(&self, dtype: DType) -> Result<Tensor> {
        let storage = Storage::for_writing(self.numel.saturating_mul(dtype.size()))?;
        Tensor::from_storage(storage, dtype, self.result.clone())
    }
}

/// Strides of the result where all operands of its sizes lie densely in the same way, so that all are one stretch of
/// memory: row-major, with channels last, or with whatever strides they share.
fn common_strides(sizes: &Dims, operands: &[Layout], number: bool) -> Option<Dims> {
    let row_major = contiguous_strides(sizes);
    if operands.iter().all(Layout::is_contiguous) {
        // Beside a number the strides of dimensions of size 1 order the result's.
        let plain = !number || operands.iter().all(|o| o.strides == row_major);
        return plain.then_some(row_major);
    }
    if number {
        return None;
    }
    if sizes.len() == 4 && operands.iter().all(Layout::is_channels_last) {
        return Some(channels_last_strides(sizes));
    }
    let first = operands.first()?;
    (is_dense(first) && operands.iter().all(|o| o.strides == first.strides)).then(|| first.strides.clone())
}

fn one(x: i64) -> Dims {
    SmallVec::from_slice(&[x])
}

/// Whether the elements fill a stretch of memory without gap or overlap, in whatever order of dimensions.
pub fn is_dense(layout: &Layout) -> bool {
    let mut dims: SmallVec<[(i64, i64); 6]> = layout
        .strides
        .iter()
        .copied()
        .zip(layout.sizes.iter().copied())
        .filter(|(_, size)| *size != 1)
        .collect();
    dims.sort_unstable();
    let mut expected = 1;
    dims.iter().all(|(stride, size)| {
        let fits = *stride == expected;
        expected = expected.saturating_mul(*size);
        fits
    })
}

/// The dimensions from innermost to outermost as the operands' strides order them; ties and broadcast
/// dimensions keep the row-major order. This is PyTorch's insertion sort with undecided comparisons.
fn memory_order(sizes: &[i64], operands: &[Layout]) -> SmallVec<[usize; 6]> {
    let mut order: SmallVec<[usize; 6]> = (0..sizes.len()).rev().collect();
    for i in 1..order.len() {
        let mut moving = i;
        for other in (0..i).rev() {
            match inner_to_outer(sizes, operands, order[other], order[moving]) {
                Some(true) => {
                    order.swap(other, moving);
                    moving = other;
                }
                Some(false) => break,
                None => {}
            }
        }
    }
    order
}

/// Whether dimension `a`, now inside of `b`, must go outside. None: the operands do not say.
fn inner_to_outer(sizes: &[i64], operands: &[Layout], a: usize, b: usize) -> Option<bool> {
    for operand in operands {
        let (x, y) = (operand.strides[a], operand.strides[b]);
        if x == 0 || y == 0 {
            continue;
        }
        if x != y {
            return Some(x > y);
        }
        if sizes[a] > sizes[b] {
            return Some(true);
        }
    }
    None
}

/// Dense strides with the dimensions nested in `order`, innermost first.
fn strides_in_order(sizes: &[i64], order: &[usize]) -> Dims {
    let mut strides: Dims = SmallVec::from_elem(1, sizes.len());
    let mut step = 1i64;
    for dim in order {
        strides[*dim] = step;
        step = step.saturating_mul(sizes[*dim].max(1));
    }
    strides
}

/// The operands with dimensions in memory order, outermost first, those merged that lie densely in all.
fn coalesce(sizes: &[i64], operands: &[Layout], order: &[usize]) -> Vec<Layout> {
    let mut merged: Dims = Dims::new();
    let mut strides: Vec<Dims> = vec![Dims::new(); operands.len()];
    // Innermost first; reversed at the end.
    for dim in order {
        let size = sizes[*dim];
        if size == 1 {
            continue;
        }
        let fits = merged.last().is_some_and(|inner| {
            operands.iter().zip(&strides).all(|(operand, done)| {
                done.last().is_some_and(|stride| operand.strides[*dim] == stride.saturating_mul(*inner))
            })
        });
        match merged.last_mut() {
            // Sizes of a tensor without elements may be of any product.
            Some(inner) if fits => *inner = inner.saturating_mul(size),
            _ => {
                merged.push(size);
                for (operand, done) in operands.iter().zip(&mut strides) {
                    done.push(operand.strides[*dim]);
                }
            }
        }
    }
    if merged.is_empty() {
        merged.push(1);
        strides.iter_mut().for_each(|s| s.push(1));
    }
    merged.reverse();
    operands
        .iter()
        .zip(strides)
        .map(|(operand, mut strides)| {
            strides.reverse();
            Layout { sizes: merged.clone(), strides, offset: operand.offset }
        })
        .collect()
}

/// Reads elements `start..start + out.len()` of a layout (in its logical order) into `out`, each converted by
/// `convert`. The layout has at least one dimension and lies within `storage`.
pub fn gather<S: Copy, T>(
    storage: &[S],
    layout: &Layout,
    start: usize,
    out: &mut [T],
    convert: impl Fn(S) -> T,
) {
    let rank = layout.rank();
    let inner_size = layout.sizes[rank - 1].max(1) as usize;
    let inner_stride = layout.strides[rank - 1];
    let mut done = 0;
    while done < out.len() {
        let linear = start + done;
        let (mut rest, column) = (linear / inner_size, linear % inner_size);
        let mut at = layout.offset as i64 + column as i64 * inner_stride;
        for dim in (0..rank - 1).rev() {
            let size = layout.sizes[dim].max(1) as usize;
            at += (rest % size) as i64 * layout.strides[dim];
            rest /= size;
        }
        let n = (inner_size - column).min(out.len() - done);
        let row = &mut out[done..done + n];
        match inner_stride {
            1 => row.iter_mut().zip(&storage[at as usize..]).for_each(|(o, x)| *o = convert(*x)),
            0 => row.iter_mut().for_each(|o| *o = convert(storage[at as usize])),
            _ => {
                for o in row {
                    *o = convert(storage[at as usize]);
                    at += inner_stride;
                }
            }
        }
        done += n;
    }
}

/// Where elements `start..start + count` of a layout (in its logical order) begin, if they lie side by side within a line.
pub fn side_by_side(layout: &Layout, start: usize, count: usize) -> Option<usize> {
    let (size, outer) = layout.sizes.split_last()?;
    let size = (*size).max(1) as usize;
    let (mut rest, column) = (start / size, start % size);
    if layout.strides.last() != Some(&1) || column + count > size {
        return None;
    }
    let mut at = layout.offset as i64 + column as i64;
    for (size, stride) in outer.iter().zip(&layout.strides).rev() {
        let size = (*size).max(1) as usize;
        at += (rest % size) as i64 * stride;
        rest /= size;
    }
    usize::try_from(at).ok()
}

/// Applies a function to each element; the result has the layout that elementwise ops give.
pub fn map1<S: Element, T: Element>(x: &Tensor, f: impl Fn(S) -> T + Sync) -> Result<Tensor> {
    map_rows(x, T::DTYPE, &|row: &[S], out| {
        let out: &mut [T] = bytemuck::cast_slice_mut(out);
        out.iter_mut().zip(row).for_each(|(o, x)| *o = f(*x));
    })
}

/// As [`map1`], by rows of elements and of the bytes of as many results of a dtype. Compiled once for each type of elements, however
/// many functions there are: `apply` has the loop alone.
pub fn map_rows<S: Element>(
    x: &Tensor,
    dtype: DType,
    apply: &(dyn Fn(&[S], &mut [u8]) + Sync),
) -> Result<Tensor> {
    let x = x.snapshot();
    let walk = Walk::new(std::slice::from_ref(&x.layout))?;
    let result = walk.allocate(dtype)?;
    let (operand, size) = (&walk.operands[0], dtype.size());
    x.read::<S, _>(|x| {
        let work = |start: usize, out: &mut [u8]| {
            let count = out.len() / size;
            if let Some(at) = side_by_side(operand, start, count) {
                return apply(&x.storage[at..at + count], out);
            }
            let mut row = [S::zeroed(); ROW];
            for (n, out) in out.chunks_mut(ROW * size).enumerate() {
                let row = &mut row[..out.len() / size];
                gather(x.storage, operand, start + n * ROW, row, std::convert::identity);
                apply(row, out);
            }
        };
        result.write_bytes(&mut |out| each_chunk_of(size, &mut out[..walk.numel * size], &work))
    })??;
    Ok(result)
}

/// Elements that are gathered at a time.
const ROW: usize = 256;

/// Applies a function to each pair of elements of two tensors of one dtype, broadcast.
pub fn map2<S: Element, T: Element>(x: &Tensor, y: &Tensor, f: impl Fn(S, S) -> T + Sync) -> Result<Tensor> {
    let (x, y) = (x.snapshot(), y.snapshot());
    let walk = Walk::new(&[x.layout.clone(), y.layout.clone()])?;
    let result = walk.allocate(T::DTYPE)?;
    x.read::<S, _>(|x| {
        y.read::<S, _>(|y| {
            result.write::<T, _>(|out, _| {
                each_chunk(&mut out[..walk.numel], |start, out| {
                    let mut left = vec![S::zeroed(); out.len()];
                    let mut right = vec![S::zeroed(); out.len()];
                    gather(x.storage, &walk.operands[0], start, &mut left, std::convert::identity);
                    gather(y.storage, &walk.operands[1], start, &mut right, std::convert::identity);
                    out.iter_mut().zip(left.iter().zip(&right)).for_each(|(o, (x, y))| *o = f(*x, *y));
                });
            })
        })
    })???;
    Ok(result)
}

/// Calls `work` with stretches of a slice and where they start, on several threads if it is long.
fn each_chunk<T: Send>(out: &mut [T], work: impl Fn(usize, &mut [T]) + Sync) {
    each_chunk_of(1, out, &work);
}

/// The same for elements that are several of a slice each.
fn each_chunk_of<T: Send>(size: usize, out: &mut [T], work: &(dyn Fn(usize, &mut [T]) + Sync)) {
    const CHUNK: usize = 1 << 13;
    let chunk = CHUNK * size;
    if out.len() >= PARALLEL_THRESHOLD * size {
        pool::chunks(out, chunk, |i, out| work(i * CHUNK, out));
    } else {
        out.chunks_mut(chunk).enumerate().for_each(|(i, out)| work(i * CHUNK, out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(sizes: &[i64], strides: &[i64]) -> Layout {
        Layout::strided(sizes, strides, 0).expect("valid")
    }

    /// Strides that PyTorch gives to the sum of two tensors of these layouts.
    #[test]
    fn result_strides_are_pytorchs() {
        let channels_last = layout(&[2, 3, 4, 5], &[60, 1, 15, 3]);
        let dense = layout(&[2, 3, 4, 5], &[60, 20, 5, 1]);
        let row = layout(&[5], &[1]);
        let bias = layout(&[3, 1, 1], &[1, 1, 1]);
        let cases: &[(&[&Layout], &[i64])] = &[
            (&[&channels_last, &channels_last], &[60, 1, 15, 3]),
            (&[&channels_last, &dense], &[60, 1, 15, 3]),
            (&[&dense, &channels_last], &[60, 20, 5, 1]),
            (&[&channels_last, &row], &[60, 1, 15, 3]),
            (&[&channels_last, &bias], &[60, 1, 15, 3]),
            (&[&layout(&[3, 4], &[1, 3])], &[1, 3]),
            (&[&layout(&[3, 4], &[8, 2])], &[4, 1]),
        ];
        for (operands, strides) in cases {
            let operands: Vec<Layout> = operands.iter().map(|l| (*l).clone()).collect();
            let walk = Walk::new(&operands).expect("broadcasts");
            assert_eq!(walk.result.strides.as_slice(), *strides, "{operands:?}");
        }
    }

    /// Strides that PyTorch gives where dimensions have size 1: `x + x`, `x + 1`, `x + ones`, `ones + x`.
    #[test]
    fn dimensions_of_size_one_have_pytorchs_strides() {
        let sizes = &[1, 8, 16, 16];
        let odd = layout(sizes, &[8, 1, 128, 8]);
        let dense = layout(sizes, &[2048, 256, 16, 1]);
        let loose = layout(sizes, &[5, 256, 16, 1]);
        let strides = |operands: &[&Layout], number| {
            let operands: Vec<Layout> = operands.iter().map(|l| (*l).clone()).collect();
            Walk::beside_number(&operands, number).expect("broadcasts").result.strides.to_vec()
        };
        assert_eq!(strides(&[&odd, &odd], false), [2048, 1, 128, 8]);
        assert_eq!(strides(&[&odd], true), [8, 1, 128, 8]);
        assert_eq!(strides(&[&loose], false), [2048, 256, 16, 1]);
        assert_eq!(strides(&[&loose], true), [16, 256, 16, 1]);
        assert_eq!(strides(&[&dense, &odd], false), [2048, 256, 16, 1]);
        assert_eq!(strides(&[&odd, &dense], false), [8, 1, 128, 8]);
    }

    #[test]
    fn gathers_in_order_from_any_start() {
        let storage: Vec<i32> = (0..12).collect();
        let transposed = layout(&[4, 3], &[1, 4]);
        let mut all = [0; 12];
        gather(&storage, &transposed, 0, &mut all, |x| x);
        assert_eq!(all, [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
        let mut some = [0; 5];
        gather(&storage, &transposed, 4, &mut some, |x| x);
        assert_eq!(some, all[4..9]);
    }
}
