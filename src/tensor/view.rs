//! Other views of the same storage: pure functions from a layout to a layout, with PyTorch's rules and errors.
//! Nothing here touches elements.

use super::DType;
use super::layout::{Dims, Layout, contiguous_strides, numel, wrap_dim};
use crate::diag::{Diagnostic, Result};
use smallvec::SmallVec;

/// Sizes as PyTorch prints them: `[2, 3]`.
fn show(sizes: &[i64]) -> String {
    format!("{sizes:?}")
}

fn index_error(message: impl Into<String>) -> Diagnostic {
    Diagnostic::raised("IndexError", message)
}

/// A dimension of something that has dimensions; rank 0 has none to name.
pub fn wrap_dim_strict(dim: i64, rank: usize) -> Result<usize> {
    if rank == 0 {
        return Err(index_error(format!("Dimension specified as {dim} but tensor has no dimensions")));
    }
    wrap_dim(dim, rank)
}

/// Distinct dimensions counted from the front; `what` is said of one given twice.
pub fn wrap_dims(dims: &[i64], rank: usize) -> Result<Vec<usize>> {
    let mut seen = Vec::with_capacity(dims.len());
    for dim in dims {
        let dim = wrap_dim(*dim, rank)?;
        if seen.contains(&dim) {
            return Err(Diagnostic::runtime(format!("dim {dim} appears multiple times in the list of dims")));
        }
        seen.push(dim);
    }
    Ok(seen)
}

/// Swaps two dimensions.
pub fn transpose(layout: &Layout, dim0: i64, dim1: i64) -> Result<Layout> {
    let (a, b) = (wrap_dim(dim0, layout.rank())?, wrap_dim(dim1, layout.rank())?);
    let mut out = layout.clone();
    if layout.rank() > 0 {
        out.sizes.swap(a, b);
        out.strides.swap(a, b);
    }
    Ok(out)
}

/// Dimensions in another order; `dims` are valid and distinct.
pub fn reorder(layout: &Layout, dims: &[usize]) -> Layout {
    Layout {
        sizes: dims.iter().map(|d| layout.sizes[*d]).collect(),
        strides: dims.iter().map(|d| layout.strides[*d]).collect(),
        offset: layout.offset,
    }
}

/// Dimensions in another order.
pub fn permute(layout: &Layout, dims: &[i64]) -> Result<Layout> {
    if dims.len() != layout.rank() {
        return Err(Diagnostic::runtime(format!(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the \
             desired ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
            layout.rank(),
            dims.len()
        )));
    }
    let mut order = Vec::with_capacity(dims.len());
    for dim in dims {
        let dim = wrap_dim(*dim, layout.rank())?;
        if order.contains(&dim) {
            return Err(Diagnostic::runtime("permute(): duplicate dims are not allowed."));
        }
        order.push(dim);
    }
    Ok(reorder(layout, &order))
}

/// Moves some dimensions to other places, the others keep their order.
pub fn movedim(layout: &Layout, source: &[i64], destination: &[i64]) -> Result<Layout> {
    if source.len() != destination.len() {
        return Err(Diagnostic::runtime(format!(
            "movedim: Invalid source or destination dims: source ({} dims) should contain the same number of dims as \
             destination ({} dims)",
            show(source),
            show(destination)
        )));
    }
    let rank = layout.rank();
    let wrap = |dims: &[i64], name: &str| -> Result<Vec<usize>> {
        let wrapped: Vec<usize> = dims.iter().map(|d| wrap_dim(*d, rank)).collect::<Result<_>>()?;
        let repeated = wrapped.iter().enumerate().any(|(i, d)| wrapped[..i].contains(d));
        if repeated {
            let dims = show(dims);
            return Err(Diagnostic::runtime(format!("movedim: repeated dim in `{name}` ({dims})")));
        }
        Ok(wrapped)
    };
    let (from, to) = (wrap(source, "source")?, wrap(destination, "destination")?);
    if rank == 0 {
        return Ok(layout.clone());
    }
    let mut order: Vec<Option<usize>> = vec![None; rank];
    for (f, t) in from.iter().zip(&to) {
        order[*t] = Some(*f);
    }
    let mut rest = (0..rank).filter(|d| !from.contains(d));
    let order: Vec<usize> = order.into_iter().filter_map(|d| d.or_else(|| rest.next())).collect();
    Ok(reorder(layout, &order))
}

/// Drops those of the given dimensions whose size is 1; all such dimensions without a list.
pub fn squeeze(layout: &Layout, dims: Option<&[i64]>) -> Result<Layout> {
    let drop: Vec<usize> = match dims {
        Some(dims) => wrap_dims(dims, layout.rank())?,
        None => (0..layout.rank()).collect(),
    };
    let keep: Vec<usize> =
        (0..layout.rank()).filter(|d| !(drop.contains(d) && layout.sizes[*d] == 1)).collect();
    Ok(reorder(layout, &keep))
}

/// Inserts a dimension of size 1.
pub fn unsqueeze(layout: &Layout, dim: i64) -> Result<Layout> {
    let at = wrap_dim(dim, layout.rank() + 1)?;
    let mut out = layout.clone();
    let stride = if at < layout.rank() { layout.sizes[at].saturating_mul(layout.strides[at]) } else { 1 };
    out.sizes.insert(at, 1);
    out.strides.insert(at, stride);
    Ok(out)
}

/// Moves the offset by `index` steps of `stride`; the caller has checked that elements are there.
fn moved(offset: usize, index: i64, stride: i64) -> usize {
    (offset as i64).saturating_add(index.saturating_mul(stride)).max(0) as usize
}

/// One index of a dimension, which goes.
pub fn select(layout: &Layout, dim: i64, index: i64) -> Result<Layout> {
    if layout.rank() == 0 {
        return Err(index_error("select() cannot be applied to a 0-dim tensor."));
    }
    let d = wrap_dim(dim, layout.rank())?;
    let size = layout.sizes[d];
    if index < -size || index >= size {
        return Err(index_error(format!(
            "select(): index {index} out of range for tensor of size {} at dimension {d}",
            show(&layout.sizes)
        )));
    }
    let mut out = layout.clone();
    out.sizes.remove(d);
    let stride = out.strides.remove(d);
    out.offset = moved(layout.offset, if index < 0 { index + size } else { index }, stride);
    Ok(out)
}

/// Start, end and number of steps of a slice of a dimension of `size`, with Python's rules for what is outside.
pub fn slice_bounds(size: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<(i64, i64)> {
    if step <= 0 {
        return Err(Diagnostic::runtime("slice step must be positive"));
    }
    let clamp = |x: i64, low: i64| (if x < 0 { x.saturating_add(size) } else { x }).clamp(low, size);
    let start = clamp(start.unwrap_or(0), 0);
    let end = clamp(end.unwrap_or(i64::MAX), start);
    let length = (end - start).checked_add(step - 1).map_or(1, |n| n / step);
    Ok((start, length))
}

/// Every `step`-th index from `start` to before `end`.
pub fn slice(layout: &Layout, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<Layout> {
    if layout.rank() == 0 {
        return Err(index_error("slice() cannot be applied to a 0-dim tensor."));
    }
    let d = wrap_dim(dim, layout.rank())?;
    let (start, length) = slice_bounds(layout.sizes[d], start, end, step)?;
    let mut out = layout.clone();
    out.sizes[d] = length;
    out.strides[d] = layout.strides[d].saturating_mul(step);
    out.offset = moved(layout.offset, start, layout.strides[d]);
    Ok(out)
}

/// `length` indices from `start`.
pub fn narrow(layout: &Layout, dim: i64, start: i64, length: i64) -> Result<Layout> {
    if layout.rank() == 0 {
        return Err(Diagnostic::runtime("narrow() cannot be applied to a 0-dim tensor."));
    }
    if length < 0 {
        return Err(Diagnostic::runtime("narrow(): length must be non-negative."));
    }
    let size = layout.sizes[wrap_dim(dim, layout.rank())?];
    if start < -size || start > size {
        return Err(index_error(format!(
            "start out of range (expected to be in range of [{}, {size}], but got {start})",
            -size
        )));
    }
    let start = if start < 0 { start + size } else { start };
    if start > size - length {
        return Err(Diagnostic::runtime(format!(
            "start ({start}) + length ({length}) exceeds dimension size ({size})."
        )));
    }
    slice(layout, dim, Some(start), Some(start + length), 1)
}

/// Repeats dimensions of size 1 and new ones in front without copying; -1 keeps a size.
pub fn expand(layout: &Layout, sizes: &[i64], dtype: DType) -> Result<Layout> {
    let Some(extra) = sizes.len().checked_sub(layout.rank()) else {
        return Err(Diagnostic::runtime(format!(
            "expand({}{{{}}}, size={}): the number of sizes provided ({}) must be greater or \
             equal to the number of dimensions in the tensor ({})",
            dtype.tensor_class(),
            show(&layout.sizes),
            show(sizes),
            sizes.len(),
            layout.rank()
        )));
    };
    let mut out = Layout { sizes: sizes.into(), strides: sizes.into(), offset: layout.offset };
    // From the last one on, as the first that does not fit is what the error is about.
    for (i, wanted) in sizes.iter().enumerate().rev() {
        let (size, stride) = match i.checked_sub(extra) {
            None if *wanted < 0 => {
                return Err(Diagnostic::runtime(format!(
                    "The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension {i}"
                )));
            }
            // As if it were put in front: PyTorch's `inferExpandGeometry`, which gives a tensor without dimensions strides of 0.
            None if *wanted == 1 && layout.rank() > 0 => {
                (1, out.sizes[i + 1].saturating_mul(out.strides[i + 1]))
            }
            None => (*wanted, 0),
            Some(d) if *wanted == -1 || *wanted == layout.sizes[d] => (layout.sizes[d], layout.strides[d]),
            Some(d) if layout.sizes[d] == 1 && *wanted >= 0 => (*wanted, 0),
            Some(d) => {
                return Err(Diagnostic::runtime(format!(
                    "The expanded size of the tensor ({wanted}) must match the existing size ({}) at non-singleton \
                     dimension {i}.  Target sizes: {}.  Tensor sizes: {}",
                    layout.sizes[d],
                    show(sizes),
                    show(&layout.sizes)
                )));
            }
        };
        (out.sizes[i], out.strides[i]) = (size, stride);
    }
    Layout::strided(&out.sizes, &out.strides, out.offset)
}

/// Fills in the one size given as -1.
pub fn infer_size(shape: &[i64], numel: usize) -> Result<Dims> {
    let mut known: i64 = 1;
    let mut hole = None;
    for (i, size) in shape.iter().enumerate() {
        match *size {
            -1 if hole.is_some() => return Err(Diagnostic::runtime("only one dimension can be inferred")),
            -1 => hole = Some(i),
            s if s < 0 => {
                return Err(Diagnostic::runtime(format!(
                    "invalid shape dimension {s} at index {i} of shape {}",
                    show(shape)
                )));
            }
            s => known = known.saturating_mul(s),
        }
    }
    let total = numel as i64;
    let mut out = Dims::from_slice(shape);
    match hole {
        Some(i) if known > 0 && total % known == 0 => out[i] = total / known,
        Some(_) if known == 0 && total == 0 => {
            return Err(Diagnostic::runtime(format!(
                "cannot reshape tensor of 0 elements into shape {} because the unspecified dimension size -1 can be \
                 any value and is ambiguous",
                show(shape)
            )));
        }
        None if known == total => {}
        _ => {
            return Err(Diagnostic::runtime(format!(
                "shape '{}' is invalid for input of size {numel}",
                show(shape)
            )));
        }
    }
    Ok(out)
}

/// The same elements in the same order with other sizes, where strides can say so; None where only a copy can.
/// `sizes` have the same number of elements.
pub fn try_view(layout: &Layout, sizes: &[i64]) -> Option<Layout> {
    let offset = layout.offset;
    if layout.numel() == 0 {
        let strides =
            if layout.sizes.as_slice() == sizes { layout.strides.clone() } else { contiguous_strides(sizes) };
        return Some(Layout { sizes: Dims::from_slice(sizes), strides, offset });
    }
    let mut strides: Dims = SmallVec::from_elem(1, sizes.len());
    let mut next = sizes.len();
    // Walk the old dimensions from the back in runs that lie densely; each run must be filled by whole new ones.
    let (mut chunk_stride, mut old_count, mut new_count) =
        (layout.strides.last().copied().unwrap_or(1), 1, 1);
    for d in (0..layout.rank()).rev() {
        old_count *= layout.sizes[d];
        let ends = d == 0
            || (layout.sizes[d - 1] != 1 && layout.strides[d - 1] != old_count.checked_mul(chunk_stride)?);
        if !ends {
            continue;
        }
        while next > 0 && (new_count < old_count || sizes[next - 1] == 1) {
            next -= 1;
            strides[next] = new_count.checked_mul(chunk_stride)?;
            new_count *= sizes[next];
        }
        if new_count != old_count {
            return None;
        }
        if d > 0 {
            chunk_stride = layout.strides[d - 1];
            (old_count, new_count) = (1, 1);
        }
    }
    (next == 0 || layout.rank() == 0).then(|| Layout { sizes: Dims::from_slice(sizes), strides, offset })
}

/// `view`: other sizes, one of which may be -1, without a copy.
pub fn view(layout: &Layout, shape: &[i64]) -> Result<Layout> {
    let sizes = infer_size(shape, layout.numel())?;
    try_view(layout, &sizes).ok_or_else(|| {
        Diagnostic::runtime(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across \
             two contiguous subspaces). Use .reshape(...) instead.",
        )
    })
}

/// Sizes after joining the dimensions from `start` to `end` into one.
pub fn flatten_sizes(sizes: &[i64], start: i64, end: i64) -> Result<Dims> {
    let (start, end) = (wrap_dim(start, sizes.len())?, wrap_dim(end, sizes.len())?);
    if start > end {
        return Err(Diagnostic::runtime("flatten() has invalid args: start_dim cannot come after end_dim"));
    }
    if sizes.is_empty() {
        return Ok(Dims::from_slice(&[1]));
    }
    let mut out = Dims::from_slice(&sizes[..start]);
    out.push(numel(&sizes[start..=end]) as i64);
    out.extend_from_slice(&sizes[end + 1..]);
    Ok(out)
}

/// Sizes after splitting a dimension into several.
pub fn unflatten_sizes(sizes: &[i64], dim: i64, parts: &[i64]) -> Result<Dims> {
    let d = wrap_dim_strict(dim, sizes.len())?;
    if parts.is_empty() {
        return Err(Diagnostic::runtime("unflatten: sizes must be non-empty"));
    }
    let inferred = infer_size(parts, sizes[d] as usize).map_err(|error| {
        if !error.message().starts_with("shape ") {
            return error;
        }
        Diagnostic::runtime(format!(
            "unflatten: Provided sizes {} don't multiply up to the size of dim {d} ({}) in the input tensor",
            show(parts),
            sizes[d]
        ))
    })?;
    let mut out = Dims::from_slice(&sizes[..d]);
    out.extend_from_slice(&inferred);
    out.extend_from_slice(&sizes[d + 1..]);
    Ok(out)
}

/// The diagonal of two dimensions as a new last dimension.
pub fn diagonal(layout: &Layout, offset: i64, dim1: i64, dim2: i64) -> Result<Layout> {
    let (a, b) = (wrap_dim(dim1, layout.rank())?, wrap_dim(dim2, layout.rank())?);
    if a == b {
        return Err(Diagnostic::runtime(format!("diagonal dimensions cannot be identical {dim1}, {dim2}")));
    }
    let (rows, columns) = (layout.sizes[a], layout.sizes[b]);
    let length = if offset >= 0 {
        rows.min(columns.saturating_sub(offset))
    } else {
        rows.saturating_add(offset).min(columns)
    }
    .max(0);
    let keep: Vec<usize> = (0..layout.rank()).filter(|d| *d != a && *d != b).collect();
    let mut out = reorder(layout, &keep);
    out.sizes.push(length);
    out.strides.push(layout.strides[a].saturating_add(layout.strides[b]));
    if length > 0 {
        let (steps, stride) =
            if offset >= 0 { (offset, layout.strides[b]) } else { (-offset, layout.strides[a]) };
        out.offset = moved(layout.offset, steps, stride);
    }
    Ok(out)
}

/// Windows of `size` every `step` along a dimension; the window is a new last dimension.
pub fn unfold(layout: &Layout, dim: i64, size: i64, step: i64) -> Result<Layout> {
    let d = wrap_dim(dim, layout.rank())?;
    let (length, stride) = if layout.rank() == 0 { (1, 1) } else { (layout.sizes[d], layout.strides[d]) };
    if size < 0 {
        return Err(Diagnostic::runtime(format!("size is {size} but must be >= 0")));
    }
    if size > length {
        return Err(Diagnostic::runtime(format!(
            "maximum size for tensor at dimension {d} is {length} but size is {size}"
        )));
    }
    if step <= 0 {
        return Err(Diagnostic::runtime(format!("step is {step} but must be > 0")));
    }
    let mut out = layout.clone();
    if layout.rank() > 0 {
        out.sizes[d] = (length - size) / step + 1;
        out.strides[d] = stride.saturating_mul(step);
    }
    out.sizes.push(size);
    out.strides.push(stride);
    Ok(out)
}

/// Sizes and strides as the program gives them; the storage's bounds are checked where the layout is used.
pub fn as_strided(layout: &Layout, sizes: &[i64], strides: &[i64], offset: Option<i64>) -> Result<Layout> {
    if sizes.len() != strides.len() {
        return Err(Diagnostic::runtime("mismatch in length of strides and shape"));
    }
    if strides.iter().any(|s| *s < 0) {
        return Err(Diagnostic::runtime(format!(
            "as_strided: Negative strides are not supported at the moment, got strides: {}",
            show(strides)
        )));
    }
    if sizes.iter().any(|s| *s < 0) {
        return Err(Diagnostic::runtime(format!(
            "Storage size calculation overflowed with sizes={} and strides={}",
            show(sizes),
            show(strides)
        )));
    }
    let offset = match offset {
        Some(n) => usize::try_from(n)
            .map_err(|_| Diagnostic::runtime(format!("Tensor: invalid storage offset {n}")))?,
        None => layout.offset,
    };
    Layout::strided(sizes, strides, offset)
}

/// A dense layout of the same sizes in a memory format by PyTorch's code: 0 row-major, 1 the order of dimensions
/// that the layout has now, 2 channels last, 3 channels last of volumes.
pub fn in_format(layout: &Layout, format: i64) -> Result<Layout> {
    let rank = layout.rank();
    let order: Vec<usize> = match (format, rank) {
        (0, _) => (0..rank).collect(),
        (1, _) => return Ok(dense_like(layout)),
        (2, 4) => vec![0, 2, 3, 1],
        (3, 5) => vec![0, 2, 3, 4, 1],
        (2, _) => return Err(Diagnostic::runtime("required rank 4 tensor to use channels_last format")),
        (3, _) => return Err(Diagnostic::runtime("required rank 5 tensor to use channels_last_3d format")),
        _ => return Err(Diagnostic::runtime(format!("unknown memory format code {format}"))),
    };
    Ok(dense_in_order(&layout.sizes, &order))
}

/// A dense layout whose dimensions lie in memory in the given order, the first outermost.
pub fn dense_in_order(sizes: &[i64], order: &[usize]) -> Layout {
    let mut strides: Dims = SmallVec::from_elem(1, sizes.len());
    let mut step: i64 = 1;
    for d in order.iter().rev() {
        strides[*d] = step;
        step = step.saturating_mul(sizes[*d].max(1));
    }
    Layout { sizes: Dims::from_slice(sizes), strides, offset: 0 }
}

/// A dense layout with dimensions in the same order in memory as the layout's; what is dense keeps its strides.
pub fn dense_like(layout: &Layout) -> Layout {
    let mut order: Vec<usize> = (0..layout.rank()).filter(|d| layout.sizes[*d] != 1).collect();
    order.sort_by_key(|d| std::cmp::Reverse(layout.strides[*d]));
    if reorder(layout, &order).is_contiguous() && layout.numel() > 0 {
        return Layout { sizes: layout.sizes.clone(), strides: layout.strides.clone(), offset: 0 };
    }
    // Not dense: insertion sort from the innermost dimension; repeated ones (stride 0) stay where they are.
    let mut order: Vec<usize> = (0..layout.rank()).collect();
    for i in (0..order.len()).rev() {
        let mut at = i;
        for j in i + 1..order.len() {
            let (x, y) = (order[at], order[j]);
            let (sx, sy) = (layout.strides[x], layout.strides[y]);
            if sx == 0 || sy == 0 {
                continue;
            }
            if sx < sy || (sx == sy && layout.sizes[x] < layout.sizes[y]) {
                order.swap(at, j);
                at = j;
            } else if sx > sy {
                break;
            }
        }
    }
    dense_in_order(&layout.sizes, &order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(sizes: &[i64], strides: &[i64], offset: usize) -> Layout {
        Layout::strided(sizes, strides, offset).expect("valid")
    }

    #[test]
    fn views_split_and_join_only_dense_runs() {
        let transposed = layout(&[4, 3], &[1, 4], 0);
        assert!(view(&transposed, &[12]).is_err());
        assert_eq!(view(&transposed, &[2, 2, -1]).expect("splits"), layout(&[2, 2, 3], &[2, 1, 4], 0));
        let every_second = layout(&[3, 4], &[8, 2], 1);
        assert_eq!(view(&every_second, &[12]).expect("one run"), layout(&[12], &[2], 1));
        let scalar = layout(&[], &[], 5);
        assert_eq!(view(&scalar, &[1, 1]).expect("ones"), layout(&[1, 1], &[1, 1], 5));
        assert!(view(&layout(&[0, 2], &[2, 1], 0), &[-1, 0]).is_err());
    }

    #[test]
    fn slices_clamp_like_python() {
        let l = layout(&[5], &[2], 1);
        assert_eq!(slice(&l, 0, Some(-100), Some(100), 2).expect("clamped"), layout(&[3], &[4], 1));
        assert_eq!(slice(&l, 0, Some(4), Some(2), 1).expect("empty").sizes[0], 0);
        assert_eq!(slice(&l, 0, Some(1), None, i64::MAX).expect("huge step").sizes[0], 1);
    }

    #[test]
    fn windows_and_diagonals() {
        let l = layout(&[3, 4], &[4, 1], 0);
        assert_eq!(unfold(&l, 1, 2, 2).expect("windows"), layout(&[3, 2, 2], &[4, 2, 1], 0));
        assert_eq!(diagonal(&l, -1, 0, 1).expect("below"), layout(&[2], &[5], 4));
        assert_eq!(diagonal(&l, 9, 0, 1).expect("outside").numel(), 0);
    }
}
