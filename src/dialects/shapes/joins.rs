//! Making tensors and putting them together.

use super::{Known, Operands, Results, layouts, one, pointwise, wrap};
use crate::ir::{Dim, Stride, TensorType};
use crate::tensor::{DType, Device, channels_last_strides, contiguous_strides};

/// A tensor of the sizes and dtype that are asked for; float32 where none is.
pub fn create(operands: &Operands<'_>) -> Results {
    one(made(operands, Some(DType::F32), operands.dims("size"))?)
}

/// A tensor filled with a number, whose kind decides the dtype where none is asked for.
pub fn full(operands: &Operands<'_>) -> Results {
    let of_value = match operands.get("fill_value") {
        Some(Known::Number(DType::C128)) => Some(DType::C64),
        Some(Known::Number(_) | Known::Float(_)) => Some(DType::F32),
        Some(Known::Int(_)) => Some(DType::I64),
        Some(Known::Bool(_)) => Some(DType::Bool),
        _ => None,
    };
    one(made(operands, of_value, operands.dims("size"))?)
}

/// A tensor like the first argument, with another dtype or device where one is asked for.
pub fn like(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let result = made(operands, first.dtype, first.sizes.as_ref().map(|s| s.to_vec()))?;
    let strides = operands.memory_format().and_then(|format| layouts::like(first, format));
    one(TensorType { strides, ..result })
}

/// A tensor of other sizes on the device of the first argument.
pub fn new(operands: &Operands<'_>) -> Results {
    one(made(operands, operands.first()?.dtype, operands.dims("size"))?)
}

fn made(operands: &Operands<'_>, default: Option<DType>, sizes: Option<Vec<Dim>>) -> Option<TensorType> {
    let dtype = match operands.dtype("dtype") {
        Ok(asked) => asked.or(default),
        Err(_) => None,
    };
    let like = operands.at(0);
    let inherited = match like {
        Some(Known::Tensor(t)) => t.device.clone(),
        _ => Some(Device::CPU),
    };
    let device = match operands.get("device") {
        Some(Known::Device(device)) => Some(device.clone()),
        Some(Known::None) | None => inherited,
        Some(_) => None,
    };
    let mut result = operands.result(&TensorType { device, ..TensorType::default() }, dtype, sizes);
    result.requires_grad = Some(false);
    Some(result)
}

/// A range of numbers.
pub fn arange(operands: &Operands<'_>) -> Results {
    let number = |name: &str, default: Option<i64>| match operands.get(name) {
        None => default.map(|n| (Some(n), DType::I64)),
        Some(Known::Int(dim)) => Some((dim.known(), DType::I64)),
        Some(Known::Number(_) | Known::Float(_)) => Some((None, DType::F32)),
        _ => None,
    };
    let (start, end, step) = (number("start", Some(0))?, number("end", None)?, number("step", Some(1))?);
    let all_ints = [start.1, end.1, step.1].iter().all(|d| *d == DType::I64);
    let size = match (start.0, end.0, step.0) {
        (Some(a), Some(b), Some(s)) if s != 0 => {
            let (length, step) = (i128::from(b) - i128::from(a), i128::from(s));
            let count = if step > 0 {
                (length + step - 1).div_euclid(step)
            } else {
                (-length - step - 1).div_euclid(-step)
            };
            let count = i64::try_from(count).ok()?;
            Dim::Known(count.max(0))
        }
        _ => operands.fresh(),
    };
    let default = if all_ints { DType::I64 } else { DType::F32 };
    one(made(operands, Some(default), Some(vec![size]))?)
}

/// Tensors one after the other.
pub fn cat(operands: &Operands<'_>) -> Results {
    if let Some(part) = operands.each_tensor("tensors") {
        let dim = operands.int("dim");
        let sizes = part.sizes.as_deref().zip(dim).and_then(|(sizes, dim)| {
            let mut sizes = sizes.to_vec();
            let dim = wrap(dim, sizes.len())?;
            *sizes.get_mut(dim)? = operands.fresh();
            Some(sizes)
        });
        return one(operands.looking(part, sizes));
    }
    let tensors = operands.tensors("tensors")?;
    let dtype = pointwise::promote(&tensors, &[]);
    let sizes = joined(operands, &tensors);
    let mut result = operands.result(&operands.common(), dtype, sizes);
    result.strides = layouts::images(&tensors, result.sizes.as_deref());
    one(result)
}

fn joined(operands: &Operands<'_>, tensors: &[&TensorType]) -> Option<Vec<Dim>> {
    let all = tensors.iter().map(|t| t.sizes.as_deref()).collect::<Option<Vec<&[Dim]>>>()?;
    // A tensor of sizes [0] joins anything.
    let real: Vec<&[Dim]> = all.into_iter().filter(|s| *s != [Dim::Known(0)]).collect();
    let mut out = real.first()?.to_vec();
    let dim = wrap(operands.int("dim")?, out.len())?;
    if real.iter().any(|s| s.len() != out.len()) {
        return None;
    }
    let total = real.iter().try_fold(0i64, |sum, s| sum.checked_add(s.get(dim)?.known()?));
    for (n, size) in out.iter_mut().enumerate() {
        let known = real.iter().find_map(|s| s[n].known());
        *size = match n == dim {
            true => total.map_or_else(|| operands.fresh(), Dim::Known),
            false => known.map_or(*size, Dim::Known),
        };
    }
    Some(out)
}

/// Tensors along a new dimension.
pub fn stack(operands: &Operands<'_>) -> Results {
    if let Some(part) = operands.each_tensor("tensors") {
        let sizes = part.sizes.as_deref().zip(operands.int("dim")).and_then(|(own, dim)| {
            let mut sizes = own.to_vec();
            sizes.insert(wrap(dim, own.len() + 1)?, operands.fresh());
            Some(sizes)
        });
        return one(operands.looking(part, sizes));
    }
    let tensors = operands.tensors("tensors")?;
    let own = tensors.first()?.sizes.as_deref();
    let at = own.and_then(|own| wrap(operands.int("dim")?, own.len() + 1));
    let (count, dtype) = (tensors.len() as i64, pointwise::promote(&tensors, &[]));
    let sizes = own.zip(at).map(|(own, at)| {
        let mut sizes = own.to_vec();
        sizes.insert(at, Dim::Known(count));
        sizes
    });
    let mut result = operands.result(&operands.common(), dtype, sizes);
    // But for a new last dimension, they are joined along the one that the new one stands before.
    if let Some((own, at)) = own.zip(at).filter(|(own, at)| *at < own.len()) {
        let mut joined = own.to_vec();
        let length = joined[at].known();
        joined[at] = length.and_then(|n| n.checked_mul(count)).map_or(Dim::Unknown, Dim::Known);
        result.strides = layouts::images(&tensors, Some(&joined)).map(|strides| {
            let mut all = strides.to_vec();
            let whole = length.zip(strides[at].known()).map(|(n, stride)| n.saturating_mul(stride));
            all.insert(at, whole.map_or(Stride::Unknown, Stride::Known));
            all.into_iter().collect()
        });
    }
    one(result)
}

/// The sizes and dtype of the first argument: channels last where they are in it, else row-major; what has no elements lies as it
/// did.
pub fn roll(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let sizes = first.sizes.as_ref().map(|s| s.to_vec());
    let is_flat = operands.ints("dims").is_some_and(|dims| dims.is_empty());
    let is_full = sizes.as_ref().is_some_and(|s| s.iter().all(|d| d.known().is_some_and(|n| n > 0)));
    let mut result = operands.result(&operands.common(), first.dtype, sizes);
    if !is_flat {
        let strides = layouts::images(&[first], result.sizes.as_deref());
        result.strides = strides.filter(|_| is_full);
    }
    one(result)
}

/// The sizes and dtype of the first argument.
pub fn same_sizes(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let sizes = first.sizes.as_ref().map(|s| s.to_vec());
    one(operands.following(&operands.common(), first.dtype, sizes))
}

/// The same, row-major however the arguments lie.
pub fn row_major(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let sizes = first.sizes.as_ref().map(|s| s.to_vec());
    one(operands.result(&operands.common(), first.dtype, sizes))
}

/// The same of images that are taken as a group: channels are last where they are in the first argument.
pub fn same_images(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let sizes = first.sizes.as_ref().map(|s| s.to_vec());
    one(operands.following_image(&operands.common(), first.dtype, sizes))
}

/// The same of a batch norm: images that lie densely with their channels last stay so, whatever strides dimensions of size 1
/// have; all else is made in order of rows.
pub fn normed(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let sizes = first.sizes.as_ref().map(|s| s.to_vec());
    let mut result = operands.result(&operands.common(), first.dtype, sizes);
    result.strides = layouts::of_type(first).map(|layout| {
        let last = !layout.is_contiguous() && layout.is_channels_last();
        let sizes = &layout.sizes;
        layouts::strides(&if last { channels_last_strides(sizes) } else { contiguous_strides(sizes) })
    });
    one(result)
}

/// The dtype of the first argument and the sizes of the index.
pub fn gather(operands: &Operands<'_>) -> Results {
    let (first, index) = (operands.first()?, operands.tensor("index")?);
    one(operands.result(&operands.common(), first.dtype, index.sizes.as_ref().map(|s| s.to_vec())))
}

/// One dimension becomes as long as the index.
pub fn index_select(operands: &Operands<'_>) -> Results {
    let (first, index) = (operands.first()?, operands.tensor("index")?);
    let sizes = first.sizes.as_deref().zip(index.sizes.as_deref()).and_then(|(sizes, index)| {
        let mut sizes = sizes.to_vec();
        let length = match index {
            [] => Dim::Known(1),
            [only] => *only,
            _ => return None,
        };
        if !sizes.is_empty() {
            let at = wrap(operands.int("dim")?, sizes.len())?;
            *sizes.get_mut(at)? = length;
        }
        Some(sizes)
    });
    one(operands.result(&operands.common(), first.dtype, sizes))
}

/// One of two by a condition.
pub fn choose(operands: &Operands<'_>) -> Results {
    let (condition, a, b) = (operands.tensor("condition")?, operands.get("self")?, operands.get("other")?);
    let (Known::Tensor(a), Known::Tensor(b)) = (a, b) else { return None };
    let sizes = pointwise::broadcast_all(&[condition, a, b]);
    let strides = layouts::elementwise(operands, &[condition, a, b]);
    one(TensorType {
        strides,
        ..operands.result(&operands.common(), pointwise::promote(&[a, b], &[]), sizes)
    })
}

/// Copies along each dimension.
pub fn repeat(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let times = operands.ints("repeats");
    let sizes = first.sizes.as_deref().zip(times).and_then(|(sizes, times)| {
        let skip = times.len().checked_sub(sizes.len())?;
        let one = |(n, times): (usize, &i64)| match n.checked_sub(skip).map(|at| sizes[at]) {
            None => Dim::Known(*times),
            Some(dim) if *times == 1 => dim,
            Some(dim) => {
                let size = dim.known().and_then(|size| size.checked_mul(*times));
                size.map_or_else(|| operands.fresh(), Dim::Known)
            }
        };
        Some(times.iter().enumerate().map(one).collect())
    });
    one(operands.result(first, first.dtype, sizes))
}

/// The places of elements: how many there are depends on the elements, how many numbers each has on the rank.
pub fn places(operands: &Operands<'_>) -> Results {
    let rank = operands.first()?.sizes.as_ref().map(|s| s.len() as i64);
    let sizes = rank.map(|rank| vec![operands.fresh(), Dim::Known(rank)]);
    one(operands.result(operands.first()?, Some(DType::I64), sizes))
}

/// Some of the elements in a row.
pub fn picked(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    one(operands.result(first, first.dtype, Some(vec![operands.fresh()])))
}

/// Elements by index tensors; truth values pick as many as are true.
pub fn indexed(operands: &Operands<'_>) -> Results {
    let Some(Known::Items(indices)) = operands.get("indices") else { return None };
    let counts = |k: &Known| match k {
        Known::Tensor(t) => t.dtype.is_some_and(|d| !matches!(d, DType::Bool | DType::U8)),
        other => *other == Known::None,
    };
    if indices.iter().all(counts) {
        return super::trial::kernel(operands);
    }
    let first = operands.first()?;
    one(operands.looking(first, None))
}

/// One of a known number of classes.
pub fn one_hot(operands: &Operands<'_>) -> Results {
    let classes = operands.int("num_classes").filter(|n| *n > 0)?;
    let first = operands.first()?;
    let sizes = first.sizes.as_deref().map(|s| [s, &[Dim::Known(classes)]].concat());
    one(operands.result(first, Some(DType::I64), sizes))
}

/// The different elements, where each stands among them, how often each is there.
pub fn unique(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let is_flat = operands.is_none("dim") == Some(true);
    let values = operands.result(first, first.dtype, is_flat.then(|| vec![operands.fresh()]));
    let numbers = Known::Tensor(operands.result(first, Some(DType::I64), None));
    Some(vec![Known::Tensor(values), numbers.clone(), numbers])
}
