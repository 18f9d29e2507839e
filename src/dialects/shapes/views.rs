//! Other views of one storage, and their copies.

use super::{Known, Operands, PRESERVE, Results, layouts, one, product, wrap};
use crate::dialects::Fact;
use crate::ir::{Dim, TensorType};
use crate::tensor::{DType, Layout, view};

/// The result has the sizes that a rule finds from those of the first argument, and an unknown layout.
fn with_sizes(operands: &Operands<'_>, rule: impl Fn(&[Dim]) -> Option<Vec<Dim>>) -> Results {
    let first = operands.first()?;
    let sizes = first.sizes.as_deref().and_then(rule);
    one(operands.looking(first, sizes))
}

/// The same, and the layout that `moves` makes of the first argument's where all of that is known.
fn with_layout(
    operands: &Operands<'_>,
    rule: impl Fn(&[Dim]) -> Option<Vec<Dim>>,
    moves: impl Fn(&Layout) -> Option<Layout>,
) -> Results {
    let first = operands.first()?;
    let sizes = first.sizes.as_deref().and_then(rule);
    let moved = layouts::of_type(first).and_then(|layout| moves(&layout));
    let strides =
        moved.filter(|moved| fits(sizes.as_deref(), moved)).map(|moved| layouts::strides(&moved.strides));
    one(TensorType { strides, ..operands.looking(first, sizes) })
}

fn fits(sizes: Option<&[Dim]>, layout: &Layout) -> bool {
    sizes.is_some_and(|sizes| sizes.iter().map(|d| d.known()).eq(layout.sizes.iter().map(|n| Some(*n))))
}

/// A view of a layout in other sizes; row-major where the op copies what it cannot view.
fn in_sizes(operands: &Operands<'_>, layout: &Layout, sizes: &[Dim]) -> Option<Layout> {
    let sizes: Vec<i64> = sizes.iter().map(|d| d.known().filter(|n| *n >= 0)).collect::<Option<_>>()?;
    let count = sizes.iter().try_fold(1i64, |n, size| n.checked_mul(*size))?;
    if usize::try_from(count).ok()? != layout.numel() {
        return None;
    }
    let copies = operands.op.def().facts.contains(&Fact::MayCopy);
    view::try_view(layout, &sizes).or_else(|| copies.then(|| Layout::contiguous(&sizes).ok())?)
}

/// Strides go the way of the sizes.
fn with_order(operands: &Operands<'_>, order: impl Fn(usize) -> Option<Vec<usize>>) -> Results {
    let first = operands.first()?;
    let Some(sizes) = first.sizes.as_deref() else { return one(operands.looking(first, None)) };
    let Some(order) = order(sizes.len()) else { return one(operands.looking(first, None)) };
    let moved = order.iter().map(|n| sizes.get(*n).copied()).collect::<Option<Vec<Dim>>>()?;
    let strides = first.strides.as_ref().and_then(|s| order.iter().map(|n| s.get(*n).cloned()).collect());
    one(TensorType { strides, ..operands.looking(first, Some(moved)) })
}

/// The first argument with its elements in order of rows: itself where they lie so already, whatever strides say of
/// dimensions of one element. Of other formats the layout is not known.
pub fn contiguous(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let sizes = first.sizes.as_deref();
    let dense = sizes.and_then(super::dense).filter(|_| operands.int("memory_format") == Some(0));
    let is_small = |n: &Dim| matches!(n, Dim::Known(0 | 1));
    let strides = match (&first.strides, dense) {
        (Some(own), Some(dense)) => {
            let sizes = sizes.unwrap_or_default();
            let in_order = sizes.contains(&Dim::Known(0))
                || sizes.iter().zip(own.iter().zip(dense.iter())).all(|(n, (a, b))| is_small(n) || a == b);
            Some(if in_order { own.clone() } else { dense })
        }
        (None, Some(dense)) if !sizes.unwrap_or_default().iter().any(is_small) => Some(dense),
        _ => None,
    };
    one(TensorType { strides, ..first.clone() })
}

/// Two dimensions change places.
pub fn transpose(operands: &Operands<'_>) -> Results {
    let dim = |a: &str, b: &str| operands.int(a).or_else(|| operands.int(b));
    with_order(operands, |rank| {
        let a = wrap(dim("dim0", "axis0")?, rank)?;
        let b = wrap(dim("dim1", "axis1")?, rank)?;
        let mut order: Vec<usize> = (0..rank).collect();
        if rank > 0 {
            order.swap(a, b);
        }
        Some(order)
    })
}

/// A matrix is turned; fewer dimensions stay.
pub fn t(operands: &Operands<'_>) -> Results {
    with_order(operands, |rank| match rank {
        0 | 1 => Some((0..rank).collect()),
        2 => Some(vec![1, 0]),
        _ => None,
    })
}

/// The last two dimensions change places.
pub fn last_two(operands: &Operands<'_>) -> Results {
    with_order(operands, |rank| {
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank.checked_sub(2)?, rank - 1);
        Some(order)
    })
}

/// The dimensions in the order that is asked for.
pub fn permute(operands: &Operands<'_>) -> Results {
    with_order(operands, |rank| operands.ints("dims")?.into_iter().map(|d| wrap(d, rank)).collect())
}

/// The sizes that are asked for; one -1 is what remains.
pub fn reshape(operands: &Operands<'_>) -> Results {
    let wanted = operands.dims("size").or_else(|| operands.dims("shape"));
    let first = operands.first()?;
    let Some(wanted) = wanted else { return one(operands.looking(first, None)) };
    let sizes = first.sizes.as_deref();
    let rest = remaining(operands, sizes, &wanted);
    let sizes: Vec<Dim> = wanted.iter().map(|d| if *d == Dim::Known(-1) { rest } else { *d }).collect();
    let is_dense =
        first.sizes.as_deref().and_then(super::dense).is_some_and(|s| first.strides.as_ref() == Some(&s));
    let strides = match is_dense {
        true => super::dense(&sizes),
        // Requested strides do not affect sizes.
        false if operands.get("stride").is_some() => None,
        false => layouts::of_type(first)
            .and_then(|layout| in_sizes(operands, &layout, &sizes))
            .map(|layout| layouts::strides(&layout.strides)),
    };
    one(TensorType { strides, ..operands.looking(first, Some(sizes)) })
}

fn remaining(operands: &Operands<'_>, sizes: Option<&[Dim]>, wanted: &[Dim]) -> Dim {
    let given: Vec<Dim> = wanted.iter().copied().filter(|d| *d != Dim::Known(-1)).collect();
    let known = sizes.and_then(product).zip(product(&given));
    if let Some((whole, part)) = known {
        return if part > 0 && whole % part == 0 { Dim::Known(whole / part) } else { Dim::Unknown };
    }
    // Equal symbols cancel.
    if let Some(sizes) = sizes {
        let mut left = sizes.to_vec();
        let all_cancel =
            given.iter().all(|d| match left.iter().position(|l| l == d && !matches!(d, Dim::Unknown)) {
                Some(at) => {
                    left.remove(at);
                    true
                }
                None => *d == Dim::Known(1),
            });
        left.retain(|d| *d != Dim::Known(1));
        if let (true, [only]) = (all_cancel, left.as_slice()) {
            return *only;
        }
    }
    operands.fresh()
}

/// The sizes of another tensor.
pub fn as_other(operands: &Operands<'_>) -> Results {
    let other = operands.tensor("other")?;
    with_layout(
        operands,
        |_| other.sizes.as_ref().map(|s| s.to_vec()),
        |layout| match operands.op.def().facts.contains(&Fact::Broadcasts) {
            true => spread(layout, other.sizes.as_deref()?),
            false => in_sizes(operands, layout, other.sizes.as_deref()?),
        },
    )
}

/// A layout whose sizes 1 grow.
fn spread(layout: &Layout, sizes: &[Dim]) -> Option<Layout> {
    let sizes: Vec<i64> = sizes.iter().map(|d| d.known()).collect::<Option<_>>()?;
    // The dtype is named by errors alone.
    view::expand(layout, &sizes, DType::F32).ok()
}

/// Sizes 1 grow; -1 keeps what is there.
pub fn expand(operands: &Operands<'_>) -> Results {
    let wanted = operands.dims("size");
    let sizes = |sizes: &[Dim]| {
        let wanted = wanted.as_ref()?;
        let skip = wanted.len().checked_sub(sizes.len())?;
        let one = |(n, d): (usize, &Dim)| match (*d, n.checked_sub(skip)) {
            (Dim::Known(-1), Some(at)) => sizes[at],
            (Dim::Unknown | Dim::Symbol(_), Some(at)) if !matches!(sizes[at], Dim::Known(1)) => Dim::Unknown,
            (dim, _) => dim,
        };
        Some(wanted.iter().enumerate().map(one).collect())
    };
    with_layout(operands, sizes, |layout| spread(layout, wanted.as_deref()?))
}

/// Dimensions of size 1 go: all, or those that are named.
pub fn squeeze(operands: &Operands<'_>) -> Results {
    let dims = operands.ints("dim");
    let all = operands.op.schema().is_ok_and(|s| s.argument_index("dim").is_none());
    let sizes = |sizes: &[Dim]| {
        let named = match (&dims, all) {
            (_, true) => None,
            (Some(dims), _) => Some(dims.iter().map(|d| wrap(*d, sizes.len())).collect::<Option<Vec<_>>>()?),
            (None, _) => return None,
        };
        let mut out = Vec::new();
        for (n, size) in sizes.iter().enumerate() {
            let may_go = named.as_ref().is_none_or(|named| named.contains(&n));
            match size {
                Dim::Known(1) if may_go => {}
                Dim::Known(_) => out.push(*size),
                _ if may_go => return None,
                _ => out.push(*size),
            }
        }
        Some(out)
    };
    with_layout(operands, sizes, |layout| match (&dims, all) {
        (_, true) => view::squeeze(layout, None).ok(),
        (Some(dims), _) => view::squeeze(layout, Some(dims)).ok(),
        (None, _) => None,
    })
}

/// A dimension of size 1 comes in.
pub fn unsqueeze(operands: &Operands<'_>) -> Results {
    let dim = operands.int("dim");
    let sizes = |sizes: &[Dim]| {
        let mut sizes = sizes.to_vec();
        sizes.insert(wrap(dim?, sizes.len() + 1)?, Dim::Known(1));
        Some(sizes)
    };
    with_layout(operands, sizes, |layout| view::unsqueeze(layout, dim?).ok())
}

/// One dimension goes.
pub fn select(operands: &Operands<'_>) -> Results {
    let dim = operands.int("dim");
    let sizes = |sizes: &[Dim]| {
        let mut sizes = sizes.to_vec();
        sizes.remove(wrap(dim?, sizes.len()).filter(|dim| *dim < sizes.len())?);
        Some(sizes)
    };
    // Strides are the same whichever is selected.
    with_layout(operands, sizes, |layout| view::select(layout, dim?, 0).ok())
}

/// A part of one dimension.
pub fn slice(operands: &Operands<'_>) -> Results {
    let bound = |name: &str, default: i64| match operands.get(name) {
        Some(Known::None) => Some(default),
        _ => operands.int(name),
    };
    let (start, end) = (bound("start", 0), bound("end", i64::MAX));
    let step = operands.int("step");
    let sizes = |sizes: &[Dim]| {
        let mut sizes = sizes.to_vec();
        let at = wrap(operands.int("dim")?, sizes.len())?;
        let size = sizes.get_mut(at)?;
        *size = match (*size, start, end, step) {
            (dim, Some(0), Some(i64::MAX), Some(1)) => dim,
            (Dim::Known(n), Some(start), Some(end), Some(step)) if step > 0 && n >= 0 => {
                let clamp = |x: i64| (if x < 0 { x.saturating_add(n) } else { x }).clamp(0, n);
                let length = (clamp(end) - clamp(start)).max(0);
                Dim::Known(length / step + i64::from(length % step != 0))
            }
            _ => operands.fresh(),
        };
        Some(sizes)
    };
    with_layout(operands, sizes, |layout| {
        view::slice(layout, operands.int("dim")?, Some(start?), Some(end?), step?).ok()
    })
}

/// A part of one dimension, by start and length.
pub fn narrow(operands: &Operands<'_>) -> Results {
    let sizes = |sizes: &[Dim]| {
        let mut sizes = sizes.to_vec();
        let at = wrap(operands.int("dim")?, sizes.len())?;
        *sizes.get_mut(at)? = operands.dim("length");
        Some(sizes)
    };
    with_layout(operands, sizes, |layout| {
        view::narrow(layout, operands.int("dim")?, 0, operands.int("length")?).ok()
    })
}

/// Neighbouring dimensions become one.
pub fn flatten(operands: &Operands<'_>) -> Results {
    let sizes = |sizes: &[Dim]| {
        if sizes.is_empty() {
            return Some(vec![Dim::Known(1)]);
        }
        let start = wrap(operands.int("start_dim")?, sizes.len())?;
        let end = wrap(operands.int("end_dim")?, sizes.len())?;
        let group = sizes.get(start..=end)?;
        let merged = match group {
            [only] => *only,
            many => product(many).map_or_else(|| operands.fresh(), Dim::Known),
        };
        Some([&sizes[..start], &[merged], &sizes[end + 1..]].concat())
    };
    with_layout(operands, sizes, |layout| {
        let flat = view::flatten_sizes(&layout.sizes, operands.int("start_dim")?, operands.int("end_dim")?);
        in_sizes(operands, layout, &flat.ok()?.iter().map(|n| Dim::Known(*n)).collect::<Vec<_>>())
    })
}

/// All elements in one dimension.
pub fn ravel(operands: &Operands<'_>) -> Results {
    with_sizes(operands, |sizes| Some(vec![product(sizes).map_or_else(|| operands.fresh(), Dim::Known)]))
}

/// Sizes and strides as they are asked for.
pub fn as_strided(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let strides = operands.ints("stride").map(|s| layouts::strides(&s));
    one(TensorType { strides, ..operands.looking(first, operands.dims("size")) })
}

/// A conversion: the dtype that is asked for, the same sizes.
pub fn to(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let dtype = match operands.dtype("dtype") {
        Ok(asked) => asked.or(first.dtype),
        Err(_) => None,
    };
    let device = match operands.get("device") {
        Some(Known::Device(device)) => Some(device.clone()),
        Some(Known::None) | None => first.device.clone(),
        Some(_) => None,
    };
    let sizes = first.sizes.as_ref().map(|s| s.to_vec());
    one(TensorType { device, strides: converted(operands, dtype), ..operands.result(first, dtype, sizes) })
}

/// How a conversion lies: as the tensor where it is the tensor itself, which has the dtype and the memory format that are
/// asked for; else as a copy does.
fn converted(operands: &Operands<'_>, dtype: Option<crate::tensor::DType>) -> Option<super::Strides> {
    let first = operands.first()?;
    let (format, copy) = (operands.memory_format()?, operands.bool("copy"));
    let fits = match (format, layouts::of_type(first)) {
        (PRESERVE, _) => Some(true),
        (format, Some(layout)) => Some(layout.suggests_channels_last() == (format != 0)),
        _ => None,
    };
    let same_dtype = dtype.zip(first.dtype).map(|(asked, own)| asked == own);
    let own = first.strides.clone();
    match (same_dtype, copy, fits) {
        (Some(true), Some(false), Some(true)) => own,
        (Some(false), _, _) | (_, Some(true), _) | (_, _, Some(false)) => operands.preserved(),
        // One or the other.
        _ => operands.preserved().filter(|strides| Some(strides) == own.as_ref()),
    }
}

/// A conversion to the dtype of another tensor.
pub fn to_other(operands: &Operands<'_>) -> Results {
    let (first, other) = (operands.first()?, operands.tensor("other")?);
    let sizes = first.sizes.as_ref().map(|s| s.to_vec());
    let result = operands.result(first, other.dtype, sizes);
    one(TensorType { device: other.device.clone(), strides: operands.preserved(), ..result })
}

/// Pieces along one dimension, each of a size except perhaps the last.
pub fn split(operands: &Operands<'_>) -> Results {
    pieces(operands, |size| {
        let step = operands.int("split_size").filter(|s| *s > 0)?;
        of_size(size, step)
    })
}

/// A number of pieces along one dimension.
pub fn chunk(operands: &Operands<'_>) -> Results {
    pieces(operands, |size| {
        let chunks = operands.int("chunks").filter(|c| *c > 0)?;
        if size == 0 {
            return None;
        }
        of_size(size, (size / chunks + i64::from(size % chunks != 0)).max(1))
    })
}

/// The lengths of pieces of a size, if they are not too many.
fn of_size(size: i64, step: i64) -> Option<Vec<i64>> {
    let count = (size / step + i64::from(size % step != 0)).max(1);
    let count = Some(count).filter(|n| *n <= MAX_PIECES as i64)?;
    Some((0..count).map(|n| (size - n * step).min(step)).collect())
}

/// Pieces of given sizes.
pub fn split_with_sizes(operands: &Operands<'_>) -> Results {
    let sizes = operands.ints("split_sizes").or_else(|| operands.ints("split_size"));
    pieces(operands, |_| sizes.clone())
}

/// One piece for each place of a dimension.
pub fn unbind(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let sizes = first.sizes.as_deref()?;
    let dim = wrap(operands.int("dim")?, sizes.len())?;
    let count = usize::try_from(sizes.get(dim)?.known()?).ok().filter(|n| *n <= MAX_PIECES)?;
    let mut left = sizes.to_vec();
    left.remove(dim);
    let piece = Known::Tensor(operands.looking(first, Some(left)));
    Some(vec![Known::Items(vec![piece; count])])
}

/// More pieces are not tracked one by one.
const MAX_PIECES: usize = 1024;

fn pieces(operands: &Operands<'_>, lengths: impl Fn(i64) -> Option<Vec<i64>>) -> Results {
    let first = operands.first()?;
    let sizes = first.sizes.as_deref()?;
    let dim = wrap(operands.int("dim")?, sizes.len())?;
    let lengths = lengths(sizes.get(dim)?.known()?).filter(|l| l.len() <= MAX_PIECES)?;
    let piece = |length: i64| {
        let mut sizes = sizes.to_vec();
        sizes[dim] = Dim::Known(length);
        Known::Tensor(operands.looking(first, Some(sizes)))
    };
    Some(vec![Known::Items(lengths.into_iter().map(piece).collect())])
}

/// Unknown: the sizes depend on more than the operands' types, or there is no rule.
pub fn nothing(_: &Operands<'_>) -> Results {
    None
}

/// What a program asks of a tensor: its sizes.
pub fn sizes(operands: &Operands<'_>) -> Results {
    let sizes = operands.first()?.sizes.as_deref()?;
    match operands.int("dim") {
        Some(dim) => Some(vec![Known::Int(*sizes.get(wrap(dim, sizes.len())?)?)]),
        None if operands.get("dim").is_some() => None,
        None => Some(vec![Known::Ints(sizes.to_vec())]),
    }
}

/// What a program asks of a tensor: its strides, or one of them.
pub fn strides(operands: &Operands<'_>) -> Results {
    let strides = operands.first()?.strides.as_deref()?;
    let strides = strides.iter().map(|stride| stride.known().map(Dim::Known)).collect::<Option<Vec<_>>>()?;
    match operands.int("dim") {
        Some(dim) => Some(vec![Known::Int(*strides.get(wrap(dim, strides.len())?)?)]),
        None if operands.get("dim").is_some() => None,
        None => Some(vec![Known::Ints(strides)]),
    }
}

/// What a program asks of a tensor: how many dimensions it has.
pub fn rank(operands: &Operands<'_>) -> Results {
    Some(vec![Known::Int(Dim::Known(operands.first()?.sizes.as_ref()?.len() as i64))])
}

/// What a program asks of a tensor: whether its elements are floats.
pub fn is_floating_point(operands: &Operands<'_>) -> Results {
    let dtype = operands.first()?.dtype?;
    Some(vec![Known::Bool(dtype.is_floating() || dtype.is_float8())])
}

/// What a program asks of a tensor: whether its elements are complex numbers.
pub fn is_complex(operands: &Operands<'_>) -> Results {
    Some(vec![Known::Bool(operands.first()?.dtype?.is_complex())])
}

/// What a program asks of a tensor: how many elements it has.
pub fn numel(operands: &Operands<'_>) -> Results {
    let count = product(operands.first()?.sizes.as_deref()?);
    Some(vec![Known::Int(count.map_or(Dim::Unknown, Dim::Known))])
}
