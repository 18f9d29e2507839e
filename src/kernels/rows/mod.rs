//! A tensor as rows along some of its dimensions: the frame of reductions, scans and sorts.

pub mod beside;
pub mod vector;

use super::compute::{Dense, build_whole};
use super::wide::{Wide, store};
use crate::diag::{Diagnostic, Result};
use crate::kernels::strided::row_major;
use crate::resources::{Scratch, memory, pool};
use crate::tensor::{DType, Dims, Element, Layout, Tensor, numel, view, wrap_dim};

/// Work below this many elements stays on one thread.
const PARALLEL_FROM: usize = 1 << 16;

/// Tensors of fewer elements are computed with as they are.
const MANY: usize = 1 << 24;

/// A tensor seen as rows: the chosen dimensions joined make the rows' elements, the others number the rows.
pub struct Rows {
    /// The elements, row after row; of equal rows the first where `repeats` says so.
    pub dense: Tensor,
    /// Elements of one row.
    pub length: usize,
    /// How many rows.
    pub count: usize,
    /// Which of the rows of `dense` each row is: None where they are the same.
    repeats: Option<Layout>,
    /// Sizes of the dimensions that number the rows.
    pub kept: Dims,
    /// The same with ones in place of the others.
    pub kept_ones: Dims,
    /// For the way back: the order in which the dimensions stand in `dense`.
    order: Vec<usize>,
    /// The sizes of the tensor.
    sizes: Dims,
}

impl Rows {
    /// Looks at `dims` (valid and distinct) as rows.
    pub fn new(tensor: &Tensor, dims: &[usize]) -> Result<Rows> {
        let sizes = tensor.sizes();
        let inside = |d: &usize| dims.contains(d);
        let mut order: Vec<usize> = (0..sizes.len()).filter(|d| !inside(d)).collect();
        let kept: Dims = order.iter().map(|d| sizes[*d]).collect();
        order.extend((0..sizes.len()).filter(inside));
        let kept_ones: Dims = (0..sizes.len()).map(|d| if inside(&d) { 1 } else { sizes[d] }).collect();
        let reduced: Dims = (0..sizes.len()).filter(inside).map(|d| sizes[d]).collect();
        let dense = tensor.look(|l| Ok(view::reorder(l, &order)))?.contiguous()?;
        let (length, count) = (numel(&reduced), numel(&kept));
        Ok(Rows { dense, length, count, repeats: None, kept, kept_ones, order, sizes })
    }

    /// [`Rows::new`] for work that gives values for rows and has no need of equal rows side by side: of a large view that
    /// repeats rows it keeps one of each, as there may be more of them than any memory holds.
    pub fn distinct(tensor: &Tensor, dims: &[usize]) -> Result<Rows> {
        let layout = tensor.layout();
        let is_repeated = |d: &usize| layout.strides[*d] == 0 && layout.sizes[*d] > 1 && !dims.contains(d);
        if tensor.numel() < MANY || !(0..layout.rank()).any(|d| is_repeated(&d)) {
            return Rows::new(tensor, dims);
        }
        let (narrow, _) = once(tensor, is_repeated)?;
        let rows = Rows::new(&narrow, dims)?;
        let mut repeats = Layout::contiguous(&rows.kept)?;
        let kept = sizes_without(&layout.sizes, dims, false);
        for (d, size) in kept.iter().enumerate().filter(|(d, size)| rows.kept[*d] != **size) {
            (repeats.sizes[d], repeats.strides[d]) = (*size, 0);
        }
        let kept_ones = sizes_without(&layout.sizes, dims, true);
        Ok(Rows { count: numel(&kept), repeats: Some(repeats), kept, kept_ones, ..rows })
    }

    /// Along one dimension; rank 0 counts as one dimension of size 1.
    pub fn along(tensor: &Tensor, dim: usize) -> Result<Rows> {
        Rows::new(tensor, if tensor.rank() == 0 { &[] } else { std::slice::from_ref(&dim) })
    }

    /// Sizes of a result with one element a row.
    pub fn result_sizes(&self, keepdim: bool) -> &[i64] {
        if keepdim { &self.kept_ones } else { &self.kept }
    }

    /// [`Rows::distinct`] for work that needs each element of a row once: also says how often each stands in its row.
    pub fn once_each(tensor: &Tensor, dims: &[usize]) -> Result<(Rows, usize)> {
        if tensor.numel() < MANY {
            return Ok((Rows::new(tensor, dims)?, 1));
        }
        let strides = tensor.layout().strides;
        let (narrow, times) = once(tensor, |d| dims.contains(d) && strides[*d] == 0)?;
        Ok((Rows::distinct(&narrow, dims)?, times))
    }

    /// One value for each row.
    pub fn map<W: Element, R: Clone + Send>(
        &self,
        f: impl Fn(&[W]) -> R + Send + Sync,
    ) -> Result<Scratch<R>> {
        let elements = self.dense.elements_as::<W>()?;
        // Rows without elements take no memory, however many there are; what is made of them does.
        if self.length == 0 {
            return memory::collected((0..self.count).map(|_| f(&[])));
        }
        if elements.len() < PARALLEL_FROM {
            return self.repeated(memory::collected(elements.chunks_exact(self.length).map(f))?);
        }
        let row = |at: usize| f(&elements[at * self.length..(at + 1) * self.length]);
        self.repeated(self.map_rows(elements.len() / self.length, row)?)
    }

    /// What is made of each of `count` rows, on several threads.
    fn map_rows<R: Send>(&self, count: usize, row: impl Fn(usize) -> R + Send + Sync) -> Result<Scratch<R>> {
        let each = self.rows_of_piece(self.length);
        let piece = |n: usize| (n * each..count.min((n + 1) * each)).map(&row).collect::<Vec<R>>();
        let pieces = pool::map(count.div_ceil(each), piece)?;
        memory::built(count, |all| pieces.into_iter().for_each(|piece| all.extend(piece)))
    }

    /// Rows that a thread takes at a time, which cost about as much as `width` elements each: taking one costs as much as some
    /// hundred elements.
    fn rows_of_piece(&self, width: usize) -> usize {
        (PIECE / width.max(self.length).max(1)).max(1)
    }

    /// The values of all rows from those of the rows of `dense`.
    fn repeated<R: Clone>(&self, values: Scratch<R>) -> Result<Scratch<R>> {
        let Some(layout) = &self.repeats else { return Ok(values) };
        memory::built(self.count, |all| layout.for_each_index(|at| all.push(values[at].clone())))
    }

    /// `width` values for each row, one row after the other. Not for rows that are [`Rows::distinct`].
    pub fn map_wide<W: Element, R: Element>(
        &self,
        width: usize,
        f: impl Fn(&[W], &mut [R]) -> Result<()> + Sync,
    ) -> Result<Scratch<R>> {
        let elements = self.dense.elements_as::<W>()?;
        let mut out = memory::filled(self.count.saturating_mul(width), R::zeroed())?;
        let row = |at: usize, out: &mut [R]| f(&elements[at * self.length..(at + 1) * self.length], out);
        if elements.len() < PARALLEL_FROM {
            out.chunks_mut(width.max(1)).enumerate().try_for_each(|(at, out)| row(at, out))?;
        } else {
            let each = self.rows_of_piece(width);
            pool::try_chunks(&mut out, (width * each).max(1), |n, out| {
                out.chunks_mut(width.max(1)).enumerate().try_for_each(|(at, out)| row(n * each + at, out))
            })?;
        }
        Ok(out)
    }

    /// One value for each row of float32, read where it lies.
    pub fn map_f32<R: Clone + Send>(&self, f: impl Fn(&[f32]) -> R + Send + Sync) -> Result<Scratch<R>> {
        let elements = Dense::<f32>::new(&self.dense)?;
        let elements = elements.open()?;
        let row = |at: usize| f(&elements[at * self.length..(at + 1) * self.length]);
        let count = if self.repeats.is_some() { elements.len() / self.length.max(1) } else { self.count };
        if elements.len() < PARALLEL_FROM || count == 1 {
            return self.repeated(memory::collected((0..count).map(row))?);
        }
        self.repeated(self.map_rows(count, row)?)
    }

    /// One value for each row of float32, read where it lies: `f` is given some rows, one after the other, how long they are, and room
    /// for their values.
    pub fn fold_f32<R: Copy + Default + Send>(
        &self,
        f: impl Fn(&[f32], usize, &mut [R]) + Sync,
    ) -> Result<Scratch<R>> {
        let elements = Dense::<f32>::new(&self.dense)?;
        let elements = elements.open()?;
        let count = if self.repeats.is_some() { elements.len() / self.length.max(1) } else { self.count };
        let mut values = memory::filled(count, R::default())?;
        let some = |at: usize, values: &mut [R]| {
            let rows = &elements[at * self.length..(at + values.len()) * self.length];
            f(rows, self.length, values);
        };
        if elements.len() < PARALLEL_FROM || count == 1 {
            some(0, &mut values);
        } else {
            let each = self.rows_of_piece(self.length).next_multiple_of(beside::ROWS);
            pool::chunks(&mut values, each, |n, values| some(n * each, values));
        }
        self.repeated(values)
    }

    /// The sum of each row of float32, in double precision.
    pub fn sums(&self) -> Result<Scratch<f64>> {
        self.fold_f32(beside::sums)
    }

    /// A tensor with one element for each row.
    pub fn reduce<W: Wide>(
        &self,
        keepdim: bool,
        dtype: DType,
        f: impl Fn(&[W]) -> W + Send + Sync,
    ) -> Result<Tensor> {
        store::<W>(&self.map::<W, W>(f)?, self.result_sizes(keepdim), dtype)
    }

    /// Rows of a new length (one dimension was chosen), back in the tensor's order of dimensions.
    pub fn restore<W: Wide>(&self, rows: &[W], length: usize, dtype: DType) -> Result<Tensor> {
        let mut sizes = self.kept.clone();
        let mut order = self.order.clone();
        if self.sizes.is_empty() {
            return store::<W>(rows, &[], dtype);
        }
        sizes.push(length as i64);
        let dense = store::<W>(rows, &sizes, dtype)?;
        let mut back = vec![0; order.len()];
        for (at, d) in order.drain(..).enumerate() {
            back[d] = at;
        }
        row_major(dense.look(|l| Ok(view::reorder(l, &back)))?)
    }

    /// A tensor of rows like [`Rows::dense`], back in the tensor's order of dimensions.
    pub fn back(&self, dense: &Tensor) -> Result<Tensor> {
        let mut back = vec![0; self.order.len()];
        for (at, d) in self.order.iter().enumerate() {
            back[*d] = at;
        }
        row_major(dense.look(|l| Ok(view::reorder(l, &back)))?)
    }

    /// For each row, elements at places within the row, back in the tensor's order of dimensions.
    pub fn pick(&self, places: &[i64], length: usize, dtype: DType) -> Result<Tensor> {
        let within = |(n, place): (usize, &i64)| n / length.max(1) * self.length + *place as usize;
        let positions = memory::collected(places.iter().enumerate().map(within))?;
        let taken = self.dense.take_positions(&positions, &[positions.len() as i64])?;
        debug_assert_eq!(taken.dtype(), dtype);
        if self.sizes.is_empty() {
            return taken.reshaped(&[]);
        }
        let mut sizes = self.kept.clone();
        sizes.push(length as i64);
        let mut back = vec![0; self.order.len()];
        for (at, d) in self.order.iter().enumerate() {
            back[*d] = at;
        }
        row_major(taken.reshaped(&sizes)?.look(|l| Ok(view::reorder(l, &back)))?)
    }
}

/// Elements of rows that one thread takes at a time, at least.
const PIECE: usize = 1 << 12;

/// Columns that one thread sums: their sums stay in the first-level cache.
const COLUMNS: usize = 256;

/// A tensor without its repetitions along some dimensions, and how often what is left of it stood there.
fn once(tensor: &Tensor, is_repeated: impl Fn(&usize) -> bool) -> Result<(Tensor, usize)> {
    let mut times = 1usize;
    let narrow = tensor.look(|layout| {
        let mut narrow = layout.clone();
        for d in (0..layout.rank()).filter(is_repeated) {
            times = times.saturating_mul(layout.sizes[d] as usize);
            narrow.sizes[d] = 1;
        }
        Ok(narrow)
    })?;
    Ok((narrow, times))
}

/// What `number` makes of the sums of a float32 tensor over dimensions that others lie within, in double precision, read where it lies:
/// what gradients of biases and of broadcast operands are, and means of images whose channels lie innermost. None for other tensors and
/// dimensions, and where columns are too few to be read as lines.
pub fn column_sums(
    tensor: &Tensor,
    dims: &[usize],
    number: impl Fn(f64) -> f32 + Sync,
) -> Result<Option<ColumnValues>> {
    fold_columns(tensor, dims, 0.0, vector::add_columns, number)
}

/// The largest or smallest elements of such columns, NaN where there is one.
pub fn column_extremes(tensor: &Tensor, dims: &[usize], smallest: bool) -> Result<Option<ColumnValues>> {
    match smallest {
        true => fold_columns(tensor, dims, f32::INFINITY, vector::least_of_columns, |x| x),
        false => fold_columns(tensor, dims, f32::NEG_INFINITY, vector::most_of_columns, |x| x),
    }
}

/// What `number` makes of what a tensor's columns become that are folded into `start`: `fold` takes rows, how many columns these have, and
/// from which on it folds as many as it is given.
fn fold_columns<T: Copy + Send + Sync>(
    tensor: &Tensor,
    dims: &[usize],
    start: T,
    fold: impl Fn(&[f32], usize, usize, &mut [T]) + Sync,
    number: impl Fn(T) -> f32 + Sync,
) -> Result<Option<ColumnValues>> {
    let found = tensor.with_meta(|meta| match meta.dtype {
        DType::F32 => Columns::of(&meta.layout, dims),
        _ => None,
    });
    let Some(Columns { order, kept, columns, length }) = found else { return Ok(None) };
    let dense = tensor.look(|l| Ok(view::reorder(l, &order)))?;
    let elements = Dense::<f32>::new(&dense)?;
    let elements = elements.open()?;
    let block = |at: usize| &elements[at * length * columns..(at + 1) * length * columns];
    let some = |at: usize, out: &mut [f32]| {
        let mut few = [start; COLUMNS];
        let mut many;
        let values = match few.get_mut(..out.len()) {
            Some(few) => few,
            None => {
                many = memory::filled(out.len(), start)?;
                &mut many[..]
            }
        };
        fold(block(at / columns), columns, at % columns, values);
        out.iter_mut().zip(&*values).for_each(|(y, x)| *y = number(*x));
        Ok(())
    };
    let width = (16..=COLUMNS).rev().find(|width| columns.is_multiple_of(*width)).unwrap_or(columns);
    let values = build_whole::<f32>(&[(elements.len() / length) as i64], DType::F32, |out| {
        if elements.len() < PARALLEL_FROM {
            return out.chunks_mut(width).enumerate().try_for_each(|(at, out)| some(at * width, out));
        }
        pool::try_chunks(out, width, |at, out| some(at * width, out))
    })?;
    Ok(Some(ColumnValues { values, kept }))
}

/// One value for each column.
pub struct ColumnValues {
    /// One dimension, as the columns lie in memory.
    values: Tensor,
    /// The dimensions that stay and are longer than 1, the outermost of the values first.
    kept: Vec<usize>,
}

impl ColumnValues {
    /// The values of a tensor of some sizes that was reduced over `dims`, in row-major memory.
    pub fn tensor(self, (sizes, dims): (&[i64], &[usize]), keepdim: bool) -> Result<Tensor> {
        let result = sizes_without(sizes, dims, keepdim);
        if self.kept.is_sorted() {
            return self.values.reshaped(&result);
        }
        let inner: Dims = self.kept.iter().map(|d| sizes[*d]).collect();
        let mut order: Vec<usize> = (0..inner.len()).collect();
        order.sort_by_key(|at| self.kept[*at]);
        let values = self.values.reshaped(&inner)?;
        row_major(values.look(|l| Ok(view::reorder(l, &order)))?)?.reshaped(&result)
    }
}

/// Columns that are reduced: in memory some dimensions that stay, then those that are reduced, then others that stay.
struct Columns {
    /// The dimensions as they lie in memory, the outermost first.
    order: Vec<usize>,
    /// Those of them that stay and are longer than 1.
    kept: Vec<usize>,
    /// Elements of the innermost that stay.
    columns: usize,
    /// Terms of each sum.
    length: usize,
}

impl Columns {
    /// None where dimensions lie otherwise or have gaps.
    fn of(layout: &Layout, dims: &[usize]) -> Option<Columns> {
        let is_summed = |d: &usize| dims.contains(d);
        let mut order: Vec<usize> = (0..layout.rank()).collect();
        order.sort_by_key(|d| std::cmp::Reverse(layout.strides[*d]));
        // Where a dimension of size 1 lies means nothing.
        let (ones, long): (Vec<usize>, Vec<usize>) = order.iter().partition(|d| layout.sizes[**d] == 1);
        let first = long.iter().position(is_summed)?;
        let inner = first + long[first..].iter().take_while(|d| is_summed(d)).count();
        let mut step = 1i64;
        for d in long.iter().rev() {
            if layout.strides[*d] != step || layout.sizes[*d] < 1 {
                return None;
            }
            step = step.checked_mul(layout.sizes[*d])?;
        }
        let kept = long.iter().copied().filter(|d| !is_summed(d)).collect();
        let size = |dims: &[usize]| dims.iter().map(|d| layout.sizes[*d] as usize).product::<usize>();
        let (columns, length) = (size(&long[inner..]), size(&long[first..inner]));
        let fits = !long[inner..].iter().any(is_summed) && columns >= 16 && length > 1;
        let order = ones.into_iter().chain(long).collect();
        fits.then_some(Columns { order, kept, columns, length })
    }
}

/// Sizes of a tensor of which some dimensions are summed.
pub fn sizes_without(sizes: &[i64], dims: &[usize], keepdim: bool) -> Dims {
    let of = |(d, size): (usize, &i64)| match dims.contains(&d) {
        true => keepdim.then_some(1),
        false => Some(*size),
    };
    sizes.iter().enumerate().filter_map(of).collect()
}

/// The dimensions of a reduction: all of them without a list or with an empty one.
pub fn reduced_dims(dims: Option<Vec<i64>>, rank: usize) -> Result<Vec<usize>> {
    match dims {
        Some(dims) if !dims.is_empty() => {
            let dims = view::wrap_dims(&dims, rank)?;
            Ok(if rank == 0 { Vec::new() } else { dims })
        }
        _ => Ok((0..rank).collect()),
    }
}

/// One dimension of a reduction, checked to have elements where the result needs one.
pub fn non_empty_dim(tensor: &Tensor, dim: i64, name: &str) -> Result<usize> {
    let dim = wrap_dim(dim, tensor.rank())?;
    if tensor.numel() == 0 && tensor.sizes().get(dim) == Some(&0) {
        return Err(Diagnostic::raised(
            "IndexError",
            format!("{name}(): Expected reduction dim {dim} to have non-zero size."),
        ));
    }
    Ok(dim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_sums(tensor: &Tensor, dims: &[usize]) -> Vec<f32> {
        let sums = Rows::new(tensor, dims).and_then(|rows| rows.sums()).expect("host");
        sums.iter().map(|sum| *sum as f32).collect()
    }

    /// Sums over the first dimensions, beside those of rows that were copied.
    #[test]
    fn columns_are_summed_as_rows_are() {
        for (sizes, dims) in [
            (vec![7, 300], vec![0]),
            (vec![3, 5, 40], vec![0, 1]),
            (vec![3, 5, 40], vec![0]),
            (vec![90, 1000], vec![0]),
            (vec![4, 90, 320], vec![1]),
            (vec![2, 1, 9, 1, 17], vec![1, 2]),
            (vec![1, 3, 4, 5, 32], vec![0, 2, 3]),
        ] {
            let count: i64 = sizes.iter().product();
            let values: Vec<f32> = (0..count).map(|n| (n * 37 % 101) as f32 * 0.125 - 6.0).collect();
            let tensor = Tensor::from_vec(&values, &sizes).expect("small");
            let columns =
                column_sums(&tensor, &dims, |sum| sum as f32).expect("host").expect("row-major float32");
            assert_eq!(
                columns.values.to_vec::<f32>().expect("float32"),
                row_sums(&tensor, &dims),
                "{sizes:?} over {dims:?}"
            );
        }
        // Images whose channels lie innermost.
        let values: Vec<f32> = (0..2 * 5 * 3 * 48).map(|n| (n * 37 % 101) as f32 * 0.125).collect();
        let images = Tensor::from_vec(&values, &[2, 5, 3, 48]).expect("small");
        let images = images.look(|l| Ok(view::reorder(l, &[0, 3, 1, 2]))).expect("a view");
        let columns =
            column_sums(&images, &[2, 3], |sum| sum as f32).expect("host").expect("channels are columns");
        assert_eq!(columns.values.to_vec::<f32>().expect("float32"), row_sums(&images, &[2, 3]));
    }

    /// Over the first dimension of images whose channels lie innermost, others come in the order of memory.
    #[test]
    fn sums_that_lie_in_another_order_are_put_in_that_of_the_dimensions() {
        let values: Vec<f32> = (0..2 * 5 * 3 * 48).map(|n| (n * 37 % 101) as f32 * 0.125).collect();
        let images = Tensor::from_vec(&values, &[2, 5, 3, 48]).expect("small");
        let images = images.look(|l| Ok(view::reorder(l, &[0, 3, 1, 2]))).expect("a view");
        let columns =
            column_sums(&images, &[0], |sum| sum as f32).expect("host").expect("all others are columns");
        let sums = columns.tensor((&images.sizes(), &[0]), true).expect("small");
        let rows = row_sums(&images, &[0]);
        assert_eq!(sums.sizes().as_slice(), [1, 48, 5, 3]);
        assert_eq!((sums.to_vec::<f32>().expect("float32"), sums.is_contiguous()), (rows, true));
    }

    #[test]
    fn extremes_of_columns_are_those_of_rows() {
        let mut values: Vec<f32> = (0..6 * 5 * 40).map(|n| (n * 37 % 101) as f32 * 0.125 - 6.0).collect();
        (values[3], values[47], values[88]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
        let tensor = Tensor::from_vec(&values, &[6, 5, 40]).expect("small");
        for (dims, smallest) in [(vec![0], false), (vec![1], true), (vec![0, 1], false), (vec![0, 1], true)] {
            let columns = column_extremes(&tensor, &dims, smallest).expect("host").expect("row-major");
            let rows = Rows::new(&tensor, &dims).expect("host");
            let rows = rows.map_f32(|row| vector::extreme_of(row, smallest)).expect("host");
            let bits = |values: &[f32]| -> Vec<u32> {
                values.iter().map(|x| if x.is_nan() { 0 } else { x.to_bits() }).collect()
            };
            let columns = columns.values.to_vec::<f32>().expect("float32");
            assert_eq!(bits(&columns), bits(&rows), "{dims:?}");
        }
    }

    #[test]
    fn other_tensors_and_dimensions_are_left_to_rows() {
        let tensor = Tensor::zeros(DType::F32, &[4, 32]).expect("small");
        let is_none = |tensor: &Tensor, dims: &[usize]| {
            column_sums(tensor, dims, |sum| sum as f32).expect("host").is_none()
        };
        assert!(is_none(&tensor, &[1]) && is_none(&tensor, &[0, 1]));
        assert!(is_none(&tensor.to_dtype(DType::F64).expect("floats"), &[0]));
        assert!(is_none(&tensor.look(|l| Ok(view::reorder(l, &[1, 0]))).expect("a view"), &[0]));
        assert!(is_none(&Tensor::zeros(DType::F32, &[0, 32]).expect("small"), &[0]));
        assert_eq!(sizes_without(&[4, 32], &[0], true).as_slice(), [1, 32]);
        assert_eq!(sizes_without(&[4, 32], &[0], false).as_slice(), [32]);
    }
}
