//! From index tensors to positions of elements: advanced indexing, gathering along a dimension, combining by place.

use crate::diag::{Diagnostic, Result};
use crate::kernels::compute::Dense;
use crate::kernels::wide::{Wide, dispatch_wide, store};
use crate::resources::{Collect, Scratch, memory};
use crate::tensor::{
    Blocks, Bool, DType, Dims, Element, Layout, Tensor, broadcast_all, contiguous_strides, numel, view,
};

/// Which elements an index expression means: their positions in the dense tensor, and the sizes of the result.
pub struct Plan {
    /// Position of the first element of each block of the result.
    starts: Scratch<usize>,
    /// Elements of a block, which lie side by side: of the dimensions at the end that are taken whole.
    block: usize,
    /// Sizes of the result.
    pub sizes: Dims,
    /// The tensor, its indexed dimensions replaced by those of the indices, and the index tensors: what PyTorch's
    /// iterator walks, and so what orders the memory of the result.
    pub operands: Vec<Layout>,
}

impl Plan {
    /// Position of each result element.
    pub fn positions(&self) -> Result<Scratch<usize>> {
        sums(&self.starts, self.block, |i| i)
    }

    /// The elements of a tensor that they name.
    pub fn take(&self, tensor: &Tensor) -> Result<Tensor> {
        let blocks = Blocks { outer: &self.starts, inner: &[0], length: self.block };
        tensor.take_blocks(&blocks, &self.sizes)
    }
}

fn index_error(message: impl Into<String>) -> Diagnostic {
    Diagnostic::raised("IndexError", message)
}

/// The places of the non-zero elements, one column a dimension.
pub fn nonzero(tensor: &Tensor) -> Result<Vec<Scratch<i64>>> {
    let sizes = tensor.sizes();
    let truths = truths(tensor)?;
    let count = truths.iter().filter(|x| **x).count();
    let mut columns = sizes.iter().map(|_| memory::reserved(count)).collect::<Result<Vec<_>>>()?;
    for (i, _) in truths.iter().enumerate().filter(|(_, x)| **x) {
        let mut rest = i as i64;
        for (column, size) in columns.iter_mut().zip(&sizes).rev() {
            column.push(rest % size)?;
            rest /= size;
        }
    }
    Ok(columns)
}

/// Which elements differ from zero, in logical order.
pub fn truths(tensor: &Tensor) -> Result<Scratch<bool>> {
    if tensor.dtype() == DType::Bool {
        let bools = Dense::<Bool>::new(tensor)?;
        let bools = bools.open()?;
        return memory::built(bools.len(), |out| out.extend(bools.iter().map(|x| x.get())));
    }
    dispatch_wide!(tensor.dtype(), W => {
        tensor.elements_as::<W>()?.into_iter().map(|x| x != W::ZERO).scratch()
    })
}

/// Masks become index tensors, one for each of their dimensions.
fn expand_masks(tensor: &Tensor, indices: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
    let own = tensor.sizes();
    let mut out: Vec<Option<Tensor>> = Vec::new();
    for index in indices {
        let Some(index) = index else {
            out.push(None);
            continue;
        };
        match index.dtype() {
            DType::Bool | DType::U8 => {
                let mask = index.sizes();
                for (j, size) in mask.iter().enumerate() {
                    let at = out.len() + j;
                    if own.get(at) != Some(size) {
                        if at >= own.len() {
                            return Err(too_many(own.len(), out.len() + mask.len()));
                        }
                        return Err(index_error(format!(
                            "The shape of the mask {:?} at index {j} does not match the shape of the indexed tensor {:?} at \
                             index {at}",
                            mask.as_slice(),
                            own.as_slice()
                        )));
                    }
                }
                if mask.is_empty() {
                    return Err(too_many(own.len(), own.len() + 1));
                }
                for column in nonzero(index)? {
                    out.push(Some(Tensor::from_vec(&column, &[column.len() as i64])?));
                }
            }
            DType::I64 | DType::I32 => out.push(Some(index.clone())),
            _ => return Err(index_error("tensors used as indices must be long, int, byte or bool tensors")),
        }
    }
    if out.len() > own.len() {
        return Err(too_many(own.len(), out.len()));
    }
    Ok(out)
}

fn too_many(rank: usize, got: usize) -> Diagnostic {
    index_error(format!("too many indices for tensor of dimension {rank} (got {got})"))
}

/// What to do with an index outside of its dimension.
#[derive(Clone, Copy, PartialEq)]
pub enum Outside {
    /// Raise.
    Raise,
    /// Take the nearest one inside (negative ones count from the back).
    Clamp,
}

/// `self[indices]`: index tensors are broadcast together; their sizes stand where they stand if they are adjacent,
/// else in front.
pub fn advanced(tensor: &Tensor, indices: &[Option<Tensor>], outside: Outside) -> Result<Plan> {
    let indices = expand_masks(tensor, indices)?;
    let own = tensor.sizes();
    let given: Vec<(usize, &Tensor)> =
        indices.iter().enumerate().filter_map(|(d, t)| t.as_ref().map(|t| (d, t))).collect();
    let shape = broadcast_all(given.iter().map(|(_, t)| *t)).map_err(|_| {
        let shapes: Vec<String> = given.iter().map(|(_, t)| format!("{:?}", t.sizes().as_slice())).collect();
        index_error(format!(
            "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
            shapes.join(", ")
        ))
    })?;
    let strides = contiguous_strides(&own);
    let mut offsets = memory::filled(numel(&shape), 0usize)?;
    // Messages count index tensors: in PyTorch their dimensions come first.
    for (n, (d, index)) in given.iter().enumerate() {
        let values = index.broadcast_to(&shape)?.elements_as::<i64>()?;
        for (offset, value) in offsets.iter_mut().zip(values) {
            let at = wrap_index(value, own[*d], n, outside)?;
            *offset += at * strides[*d] as usize;
        }
    }
    let first = given.first().map_or(0, |(d, _)| *d);
    let adjacent = given.iter().enumerate().all(|(n, (d, _))| *d == first + n);
    let block_at = if adjacent { first } else { 0 };
    // The dimensions of the result in order: offsets of whole dimensions, and the block of indexed ones.
    let free: Vec<usize> = (0..own.len()).filter(|d| given.iter().all(|(g, _)| g != d)).collect();
    let lead = free.iter().filter(|d| **d < block_at).count();
    let mut sizes = Dims::new();
    sizes.extend(free[..lead].iter().map(|d| own[*d]));
    sizes.extend_from_slice(&shape);
    sizes.extend(free[lead..].iter().map(|d| own[*d]));
    // Proves that the result can be stored before its places are listed.
    Tensor::expect(tensor.dtype(), &sizes)?;
    let operands = restrided(&tensor.layout(), &free, lead, &given, &shape)?;
    if numel(&sizes) == 0 {
        return Ok(Plan { starts: Scratch::default(), block: 1, sizes, operands });
    }
    let whole = |positions: Scratch<usize>, d: &usize| -> Result<Scratch<usize>> {
        let (size, stride) = (own[*d] as usize, strides[*d] as usize);
        sums(&positions, size, |i| i * stride)
    };
    let mut starts = free[..lead].iter().try_fold(memory::filled(1, 0)?, whole)?;
    starts = sums(&starts, offsets.len(), |i| offsets[i])?;
    let last = given.last().map_or(0, |(d, _)| d + 1);
    let between = lead + free[lead..].iter().filter(|d| **d < last).count();
    starts = free[lead..between].iter().try_fold(starts, whole)?;
    let block = free[between..].iter().map(|d| own[*d] as usize).product();
    Ok(Plan { starts, block, sizes, operands })
}

/// Each of the numbers plus each of `count` others, in this order.
fn sums(numbers: &[usize], count: usize, other: impl Fn(usize) -> usize) -> Result<Scratch<usize>> {
    memory::built(numbers.len().saturating_mul(count), |out| {
        numbers.iter().for_each(|n| out.extend((0..count).map(|i| n + other(i))));
    })
}

/// See [`Plan::operands`]: `lead` of the `free` dimensions stand before those of the indices, whose sizes are `shape`.
fn restrided(
    own: &Layout,
    free: &[usize],
    lead: usize,
    given: &[(usize, &Tensor)],
    shape: &[i64],
) -> Result<Vec<Layout>> {
    let dims = |list: &[i64], block: &[i64]| -> Dims {
        let pick = |d: &usize| list[*d];
        free[..lead]
            .iter()
            .map(pick)
            .chain(block.iter().copied())
            .chain(free[lead..].iter().map(pick))
            .collect()
    };
    let nothing: Dims = shape.iter().map(|_| 0).collect();
    let source =
        Layout { sizes: dims(&own.sizes, shape), strides: dims(&own.strides, &nothing), offset: own.offset };
    let ones = Dims::from_elem(1, own.rank());
    let among = dims(&ones, shape);
    let index = |(_, index): &(usize, &Tensor)| match index.layout().broadcast_to(shape) {
        Some(wide) => view::try_view(&wide, &among).map_or_else(|| Layout::contiguous(&among), Ok),
        None => Layout::contiguous(&among),
    };
    std::iter::once(Ok(source)).chain(given.iter().map(index)).collect()
}

fn wrap_index(index: i64, size: i64, dim: usize, outside: Outside) -> Result<usize> {
    let index = if outside == Outside::Clamp && size > 0 { index.clamp(-size, size - 1) } else { index };
    if size == 0 {
        return Err(index_error("index is out of bounds for dimension with size 0"));
    }
    if index < -size || index >= size {
        return Err(index_error(format!(
            "index {index} is out of bounds for dimension {dim} with size {size}"
        )));
    }
    Ok(if index < 0 { index + size } else { index } as usize)
}

/// Sizes of a tensor whose rank 0 counts as one dimension of size 1.
pub fn at_least_1d(sizes: &[i64]) -> Dims {
    if sizes.is_empty() { Dims::from_slice(&[1]) } else { Dims::from_slice(sizes) }
}

/// For each element of `index` (sizes no larger than `sizes` except in `dim`): the position in a dense tensor of
/// `sizes` that has the element's own place in all dimensions and the element's value in `dim`. `wrap`: negative
/// values count from the back.
pub fn along(sizes: &[i64], dim: usize, index: &Tensor, wrap: bool) -> Result<Scratch<usize>> {
    let sizes = at_least_1d(sizes);
    let shape = at_least_1d(&index.sizes());
    let strides = contiguous_strides(&sizes);
    let mut bases = memory::filled(1, 0usize)?;
    for (d, size) in shape.iter().enumerate() {
        let stride = if d == dim { 0 } else { strides[d] as usize };
        bases = sums(&bases, *size as usize, |i| i * stride)?;
    }
    let (size, stride) = (sizes[dim], strides[dim] as usize);
    let values = index.elements_as::<i64>()?;
    bases
        .into_iter()
        .zip(values)
        .map(|(base, value)| {
            let value = if wrap && (-size..0).contains(&value) { value + size } else { value };
            if value < 0 || value >= size {
                return Err(Diagnostic::runtime(format!(
                    "index {value} is out of bounds for dimension {dim} with size {size}"
                )));
            }
            Ok(base + value as usize * stride)
        })
        .try_scratch()
}

/// How elements that meet at one place become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// Sum.
    Sum,
    /// Product.
    Product,
    /// Sum divided by how many.
    Mean,
    /// Largest.
    Max,
    /// Smallest.
    Min,
}

impl Combine {
    fn apply<W: Wide>(self, x: W, y: W) -> W {
        match self {
            Combine::Sum | Combine::Mean => x.plus(y),
            Combine::Product => x.times(y),
            Combine::Max => x.most(y),
            Combine::Min => x.least(y),
        }
    }

    fn start<W: Wide>(self) -> W {
        if self == Combine::Product { W::ONE } else { W::ZERO }
    }
}

/// A copy of `target` (of the same dtype as `source`) into whose element `positions[n]` the n-th element of `source` is
/// combined. Without `include_self` the first to arrive replaces what is there.
pub fn combine(
    target: &Tensor,
    positions: &[usize],
    source: &Tensor,
    how: Combine,
    include_self: bool,
) -> Result<Tensor> {
    let dtype = target.dtype();
    dispatch_wide!(dtype, W => {
        let mut elements = target.elements_as::<W>()?;
        let source = source.elements_as::<W>()?;
        let mut counts = memory::filled(elements.len(), usize::from(include_self))?;
        for (position, value) in positions.iter().zip(source) {
            let element = &mut elements[*position];
            let count = &mut counts[*position];
            let extreme = matches!(how, Combine::Max | Combine::Min);
            *element = match *count {
                0 if extreme => value,
                0 => how.apply(how.start(), value),
                _ => how.apply(*element, value),
            };
            *count += 1;
        }
        if how == Combine::Mean {
            // The sums are numbers of the dtype, as they are where they are asked for themselves.
            elements = store::<W>(&elements, &target.sizes(), dtype)?.elements_as::<W>()?;
            for (element, count) in elements.iter_mut().zip(&counts) {
                *element = mean(*element, *count);
            }
        }
        if dtype == DType::Bool {
            // Sums of bools are "or", as large counts must not wrap to false.
            let bools = elements.iter().map(|x| i64::from(*x != W::ZERO)).scratch()?;
            return store::<i64>(&bools, &target.sizes(), dtype);
        }
        store::<W>(&elements, &target.sizes(), dtype)
    })
}

/// A copy of a float32 target to whose rows along `dim` the rows of `source` are added, each sum rounded as PyTorch does it: the n-th to
/// the row `rows[n]`.
pub fn add_rows(target: &Tensor, (dim, rows): (usize, &[usize]), source: &Tensor) -> Result<Tensor> {
    let sizes = at_least_1d(&target.sizes());
    let inner: usize = sizes[dim + 1..].iter().map(|size| *size as usize).product();
    let whole = sizes[dim] as usize * inner;
    let mut elements = target.elements_as::<f32>()?;
    let source = Dense::<f32>::new(source)?;
    let source = source.open()?;
    if whole == 0 || rows.is_empty() {
        return Tensor::from_vec(&elements, &target.sizes());
    }
    for (to, from) in elements.chunks_exact_mut(whole).zip(source.chunks_exact(rows.len() * inner)) {
        for (row, from) in rows.iter().zip(from.chunks_exact(inner)) {
            let to = &mut to[row * inner..(row + 1) * inner];
            to.iter_mut().zip(from).for_each(|(sum, x)| *sum += x);
        }
    }
    Tensor::from_vec(&elements, &target.sizes())
}

/// As [`combine`], with products and means of 16 bits rounded after each step.
pub fn combine_stepwise(
    target: &Tensor,
    positions: &[usize],
    source: &Tensor,
    how: Combine,
    include_self: bool,
) -> Result<Tensor> {
    match (target.dtype(), how) {
        (DType::F16, Combine::Product | Combine::Mean) => {
            halves(target, positions, source, how, include_self, half::f16::from_f32)
        }
        (DType::BF16, Combine::Product | Combine::Mean) => {
            halves(target, positions, source, how, include_self, half::bf16::from_f32)
        }
        _ => combine(target, positions, source, how, include_self),
    }
}

fn halves<T: Element + Into<f32>>(
    target: &Tensor,
    positions: &[usize],
    source: &Tensor,
    how: Combine,
    include_self: bool,
    round: fn(f32) -> T,
) -> Result<Tensor> {
    let mut elements = target.elements_as::<T>()?;
    let mut counts = memory::filled(elements.len(), usize::from(include_self))?;
    for (position, value) in positions.iter().zip(source.elements_as::<T>()?) {
        let (element, count) = (&mut elements[*position], &mut counts[*position]);
        let so_far: f32 = if *count == 0 { how.start::<f64>() as f32 } else { (*element).into() };
        let value: f32 = value.into();
        *element = round(if how == Combine::Product { so_far * value } else { so_far + value });
        *count += 1;
    }
    if how == Combine::Mean {
        for (element, count) in elements.iter_mut().zip(&counts) {
            let (sum, count): (f32, f32) = ((*element).into(), round((*count).max(1) as f32).into());
            *element = round(sum / count);
        }
    }
    Tensor::from_vec(&elements, &target.sizes())
}

/// A copy of `target` with the n-th element of `source` added to element `positions[n]`, rounded after each one.
pub fn add_at(target: &Tensor, positions: &[usize], source: &Tensor) -> Result<Tensor> {
    fn stepped<T: Element + std::ops::Add<Output = T>>(
        target: &Tensor,
        positions: &[usize],
        source: &Tensor,
    ) -> Result<Tensor> {
        let mut elements = target.elements_as::<T>()?;
        for (position, value) in positions.iter().zip(source.elements_as::<T>()?) {
            elements[*position] = elements[*position] + value;
        }
        Tensor::from_vec(&elements, &target.sizes())
    }
    match target.dtype() {
        DType::F16 => stepped::<half::f16>(target, positions, source),
        DType::BF16 => stepped::<half::bf16>(target, positions, source),
        _ => combine(target, positions, source, Combine::Sum, true),
    }
}

/// Integers are divided towards minus infinity.
fn mean<W: Wide>(sum: W, count: usize) -> W {
    let n = W::count(count.max(1));
    let quotient = sum.over(n);
    let exact = W::DTYPE != DType::I64 || quotient.times(n) == sum;
    if exact || sum.order(W::ZERO) != std::cmp::Ordering::Less { quotient } else { quotient.minus(W::ONE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longs(elements: &[i64], sizes: &[i64]) -> Tensor {
        Tensor::from_vec(elements, sizes).expect("valid")
    }

    #[test]
    fn indexed_dimensions_stay_together_or_go_in_front() {
        let t = Tensor::zeros(DType::F32, &[2, 3, 4]).expect("small");
        let i = longs(&[0, 1], &[2]);
        let plan = |indices: &[Option<Tensor>]| advanced(&t, indices, Outside::Raise).expect("inside");
        assert_eq!(plan(&[None, Some(i.clone()), None]).sizes.as_slice(), [2, 2, 4]);
        assert_eq!(plan(&[Some(i.clone()), None, Some(i.clone())]).sizes.as_slice(), [2, 3]);
        assert_eq!(
            plan(&[Some(i.clone()), Some(longs(&[-1], &[1]))]).positions().expect("small")[..5],
            [8, 9, 10, 11, 20]
        );
        assert!(advanced(&t, &[Some(longs(&[2], &[1]))], Outside::Raise).is_err());
    }

    #[test]
    fn rows_are_added_where_they_belong() {
        let of = |values: &[f32], sizes: &[i64]| Tensor::from_vec(values, sizes).expect("valid");
        let target = of(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], &[2, 2, 2]);
        let source = of(&[10.0, 20.0, 30.0, 40.0, 50.0, 60.0], &[1, 3, 2]);
        let source = source.broadcast_to(&[2, 3, 2]).expect("fits");
        let sums = add_rows(&target, (1, &[1, 0, 1]), &source).expect("inside").to_vec::<f32>().expect("f32");
        assert_eq!(sums, [30.0, 41.0, 62.0, 83.0, 34.0, 45.0, 66.0, 87.0]);
        let none = add_rows(&target, (1, &[]), &of(&[], &[2, 0, 2])).expect("nothing to add");
        assert_eq!(none.to_vec::<f32>().expect("f32"), target.to_vec::<f32>().expect("f32"));
    }

    #[test]
    fn what_meets_is_combined() {
        let t = longs(&[10, 20, 30], &[3]);
        let source = longs(&[1, 2, 4], &[3]);
        let with = |how, include| {
            combine(&t, &[0, 0, 2], &source, how, include).expect("inside").to_vec::<i64>().expect("i64")
        };
        assert_eq!(with(Combine::Sum, true), [13, 20, 34]);
        assert_eq!(with(Combine::Product, false), [2, 20, 4]);
        assert_eq!(with(Combine::Mean, true), [4, 20, 17]);
        assert_eq!(with(Combine::Min, false), [1, 20, 4]);
    }
}
