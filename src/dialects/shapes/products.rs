//! Matrix products, convolutions, pooling.

use super::{Known, Operands, Results, layouts, one, pointwise};
use crate::ir::{Dim, TensorType};
use crate::tensor::view::dense_like;

fn tensor_at<'a>(operands: &Operands<'a>, n: usize) -> Option<&'a TensorType> {
    match operands.at(n)? {
        Known::Tensor(t) => Some(t),
        _ => None,
    }
}

fn result(operands: &Operands<'_>, like: &TensorType, sizes: Option<Vec<Dim>>) -> Results {
    let common = operands.common();
    one(operands.result(&common, like.dtype, sizes))
}

/// `[n, k] x [k, m]`, `[b, n, k] x [b, k, m]`, and `matmul` of any ranks.
pub fn matmul(operands: &Operands<'_>) -> Results {
    let (a, b) = (tensor_at(operands, 0)?, tensor_at(operands, 1)?);
    let sizes = a.sizes.as_deref().zip(b.sizes.as_deref()).and_then(|(a, b)| product_sizes(a, b));
    result(operands, a, sizes)
}

fn product_sizes(a: &[Dim], b: &[Dim]) -> Option<Vec<Dim>> {
    let (rows, columns) = match (a, b) {
        ([], _) | (_, []) => return None,
        ([_], [_]) => return Some(Vec::new()),
        ([_], [batch @ .., _, m]) => return Some([batch, &[*m]].concat()),
        ([batch @ .., n, _], [_]) => return Some([batch, &[*n]].concat()),
        ([.., n, _], [.., m]) => (*n, *m),
    };
    let mut sizes = pointwise::broadcast(&a[..a.len() - 2], &b[..b.len() - 2]);
    sizes.extend([rows, columns]);
    Some(sizes)
}

/// A product that is added to the first argument.
pub fn added(operands: &Operands<'_>) -> Results {
    let (own, a, b) = (operands.first()?, tensor_at(operands, 1)?, tensor_at(operands, 2)?);
    let sizes = a.sizes.as_deref().zip(b.sizes.as_deref()).and_then(|(a, b)| product_sizes(a, b));
    result(operands, own, sizes)
}

/// The same of `addmm`, which is a product and a sum where both factors are one: what is added may have another dtype and more
/// dimensions than the product then.
pub fn addmm(operands: &Operands<'_>) -> Results {
    let (own, a, b) = (operands.first()?, tensor_at(operands, 1)?, tensor_at(operands, 2)?);
    let sizes = a.sizes.as_deref().zip(b.sizes.as_deref()).and_then(|(a, b)| product_sizes(a, b))?;
    let fits = own.sizes.as_deref().is_some_and(|own| {
        let fits =
            |(own, size): (&Dim, &Dim)| own == &Dim::Known(1) || own == size && matches!(size, Dim::Known(_));
        own.len() <= sizes.len() && own.iter().rev().zip(sizes.iter().rev()).all(fits)
    });
    if fits && own.dtype.is_some() && own.dtype == a.dtype {
        result(operands, own, Some(sizes))
    } else {
        None
    }
}

/// The last dimension becomes that of the weight.
pub fn linear(operands: &Operands<'_>) -> Results {
    let (input, weight) = (operands.first()?, operands.tensor("weight")?);
    let sizes = input.sizes.as_deref().zip(weight.sizes.as_deref()).and_then(|(input, weight)| {
        let (_, before) = input.split_last()?;
        match weight {
            [out, _] => Some([before, &[*out]].concat()),
            [_] => Some(before.to_vec()),
            _ => None,
        }
    });
    result(operands, input, sizes)
}

/// Attention: a row of values' features for each row of queries. Laid out as the queries are where all lie densely, head by
/// head, and the result has their sizes.
pub fn attention(operands: &Operands<'_>) -> Results {
    let (query, value) = (operands.first()?, operands.tensor("value")?);
    let key = operands.tensor("key")?;
    let (q, v) = (query.sizes.as_deref()?, value.sizes.as_deref()?);
    let (before, features) = (q.split_last()?.1, v.last()?);
    let outer = |t: &TensorType| Some(t.sizes.as_deref()?.split_last_chunk::<2>()?.0.to_vec());
    if outer(query)? != outer(key)? || outer(query)? != outer(value)? {
        return None;
    }
    let sizes = [before, &[*features]].concat();
    let same = sizes == q;
    let found = operands.result(&operands.common(), query.dtype, Some(sizes));
    let last_dense = |t: &&TensorType| t.strides.as_deref().and_then(|s| s.last()?.known()) == Some(1);
    let dropped = operands.get("dropout_p").is_some_and(|p| *p != Known::Float(0.0));
    let known = !dropped && [query, key, value].iter().all(|t| t.strides.is_some());
    let rank4 = q.len() == 4 && [query, key, value].iter().all(last_dense);
    let strides = match (known, rank4 && same) {
        (true, true) => like(query),
        (true, false) => found.strides.clone(),
        _ => None,
    };
    one(TensorType { strides, ..found })
}

/// Attention of several heads with its projections: a row of features for each row of queries; no weights where none are needed.
pub fn multi_head(operands: &Operands<'_>) -> Results {
    let query = operands.first()?;
    let sizes = query.sizes.as_ref().map(|sizes| sizes.to_vec());
    let weights = if operands.bool("need_weights") == Some(false) { Known::None } else { Known::Nothing };
    Some(vec![Known::Tensor(operands.result(&operands.common(), query.dtype, sizes)), weights])
}

/// Strides of a new tensor that lies as another one does.
fn like(ty: &TensorType) -> Option<super::Strides> {
    Some(layouts::strides(&dense_like(&layouts::of_type(ty)?).strides))
}

/// Every element of one with every element of the other.
pub fn outer(operands: &Operands<'_>) -> Results {
    let (a, b) = (tensor_at(operands, 0)?, tensor_at(operands, 1)?);
    let sizes = match (a.sizes.as_deref(), b.sizes.as_deref()) {
        (Some([n]), Some([m])) => Some(vec![*n, *m]),
        _ => None,
    };
    one(operands.result(&operands.common(), pointwise::promote(&[a, b], &[]), sizes))
}

/// A convolution with padding as numbers; a transposed one says so or has `output_padding`.
pub fn convolution(operands: &Operands<'_>) -> Results {
    let input = operands.first()?;
    let weight = operands.tensor("weight")?;
    let sizes = input.sizes.as_deref().zip(weight.sizes.as_deref());
    let sizes = sizes.and_then(|(input, weight)| convolved(operands, input, weight));
    let mut result = operands.following(&operands.common(), input.dtype, sizes);
    let (images, kernel) = (layouts::of_type(input), layouts::of_type(weight));
    // One image without a batch is convolved as a batch of one, which is only known to be row-major.
    if let (Some(images), Some(kernel)) = (images, kernel)
        && images.rank() == kernel.rank()
        && let Some(sizes) = result.sizes.as_deref().and_then(layouts::numbers)
    {
        let strides = layouts::convolution(&images, &kernel, &sizes).ok();
        result.strides = strides.map(|s| layouts::strides(&s));
    }
    one(result)
}

fn convolved(operands: &Operands<'_>, input: &[Dim], weight: &[Dim]) -> Option<Vec<Dim>> {
    let spatial = weight.len().checked_sub(2)?;
    let batched = match input.len().checked_sub(spatial)? {
        2 => true,
        1 => false,
        _ => return None,
    };
    let schema = operands.op.schema().ok()?;
    let is_transposed = match schema.argument_index("transposed") {
        Some(_) => operands.bool("transposed")?,
        None => schema.argument_index("output_padding").is_some(),
    };
    let stride = operands.per_dim("stride", spatial)?;
    let dilation = operands.per_dim("dilation", spatial)?;
    let padding = match operands.get("padding")? {
        Known::Str(mode) if mode == "valid" => Some(vec![0; spatial]),
        Known::Str(_) => None,
        _ => Some(operands.per_dim("padding", spatial)?),
    };
    let mut out = if batched { vec![input[0]] } else { Vec::new() };
    out.push(if is_transposed {
        Dim::Known(weight[1].known()?.checked_mul(operands.int("groups")?)?)
    } else {
        weight[0]
    });
    let first = input.len() - spatial;
    for n in 0..spatial {
        let kernel = weight[n + 2].known();
        let size = match (input[first + n].known(), kernel, &padding) {
            // `same` keeps the size.
            (_, _, None) => input[first + n],
            (Some(size), Some(kernel), Some(padding)) if is_transposed => {
                let extra = operands.per_dim("output_padding", spatial)?[n];
                grown(size, kernel, stride[n], padding[n], dilation[n], extra)?
            }
            (Some(size), Some(kernel), Some(padding)) => {
                window(size, kernel, stride[n], padding[n], dilation[n], false)?
            }
            _ => operands.fresh(),
        };
        out.push(size);
    }
    Some(out)
}

/// What a transposed convolution makes of a size; sums of products of five numbers fit in 128 bits.
fn grown(size: i64, kernel: i64, stride: i64, padding: i64, dilation: i64, extra: i64) -> Option<Dim> {
    let [size, kernel, stride, padding, dilation, extra] =
        [size, kernel, stride, padding, dilation, extra].map(i128::from);
    let grown = (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1;
    i64::try_from(grown).ok().map(Dim::Known)
}

/// How often a window fits.
pub(super) fn window(
    size: i64,
    kernel: i64,
    stride: i64,
    padding: i64,
    dilation: i64,
    ceil: bool,
) -> Option<Dim> {
    let [size, kernel, stride, padding, dilation] = [size, kernel, stride, padding, dilation].map(i128::from);
    let room = size + 2 * padding - dilation * (kernel - 1) - 1;
    if room < 0 || stride < 1 {
        return None;
    }
    let mut count = if ceil { (room + stride - 1) / stride + 1 } else { room / stride + 1 };
    // The last window starts inside the input or its left padding.
    if ceil && (count - 1) * stride >= size + padding {
        count -= 1;
    }
    i64::try_from(count).ok().map(Dim::Known)
}

/// Pooling over as many dimensions as the kernel names (or `pool` says).
fn pooled(operands: &Operands<'_>, spatial: usize) -> Option<TensorType> {
    let input = operands.first()?;
    let sizes = input.sizes.as_deref().and_then(|input| {
        let first = input.len().checked_sub(spatial)?;
        let kernel = operands.per_dim("kernel_size", spatial)?;
        let stride = match operands.dims("stride") {
            Some(given) if given.is_empty() => kernel.clone(),
            _ if operands.is_none("stride")? => kernel.clone(),
            _ => operands.per_dim("stride", spatial)?,
        };
        let padding = operands.per_dim("padding", spatial)?;
        let dilation = match operands.get("dilation") {
            Some(_) => operands.per_dim("dilation", spatial)?,
            None => vec![1; spatial],
        };
        let ceil = operands.bool("ceil_mode")?;
        let mut out = input[..first].to_vec();
        for n in 0..spatial {
            out.push(match input[first + n].known() {
                Some(size) => window(size, kernel[n], stride[n], padding[n], dilation[n], ceil)?,
                None => operands.fresh(),
            });
        }
        Some(out)
    });
    Some(operands.following_image(input, input.dtype, sizes))
}

/// Pooling over one dimension.
pub fn pool1d(operands: &Operands<'_>) -> Results {
    one(pooled(operands, 1)?)
}

/// Pooling over two dimensions.
pub fn pool2d(operands: &Operands<'_>) -> Results {
    one(pooled(operands, 2)?)
}

/// Pooling over three dimensions.
pub fn pool3d(operands: &Operands<'_>) -> Results {
    one(pooled(operands, 3)?)
}

/// The last dimensions become `output_size`.
pub fn adaptive(operands: &Operands<'_>) -> Results {
    let input = operands.first()?;
    let wanted = operands.dims("output_size");
    let sizes = input.sizes.as_deref().zip(wanted).and_then(|(input, wanted)| {
        let first = input.len().checked_sub(wanted.len())?;
        // A size of None keeps what is there; it is not distinguished from an unknown one.
        wanted.iter().all(|d| *d != Dim::Unknown).then(|| [&input[..first], &wanted].concat())
    });
    one(operands.following_image(input, input.dtype, sizes))
}

/// Images at another size: the last dimensions become `output_size`, or are multiplied by `scale_factors` and rounded down. As
/// PyTorch's `upsample_*` and their `.vec` overloads.
pub fn resized(operands: &Operands<'_>) -> Results {
    let input = operands.first()?;
    let sizes = input.sizes.as_deref().and_then(|own| {
        let spatial = own.get(2..)?;
        let scaled = |factors: &Vec<Known>| -> Vec<Dim> {
            let pairs = spatial.iter().zip(factors);
            pairs
                .map(|(size, factor)| match (size.known(), factor) {
                    (Some(size), Known::Float(factor)) => Dim::Known((size as f64 * factor).floor() as i64),
                    _ => Dim::Unknown,
                })
                .collect()
        };
        let wanted = match (operands.dims("output_size"), operands.get("scale_factors")) {
            (Some(wanted), _) => wanted,
            (None, Some(Known::Items(factors))) => scaled(factors),
            _ => vec![Dim::Unknown; spatial.len()],
        };
        let known = |dim: Dim| match dim {
            Dim::Symbol(_) | Dim::Known(0..) => dim,
            _ => operands.fresh(),
        };
        let wanted = (wanted.len() == spatial.len()).then(|| wanted.into_iter().map(known));
        Some(own[..2].iter().copied().chain(wanted?).collect())
    });
    one(operands.following_image(input, input.dtype, sizes))
}

/// Rows of a table: the sizes of the indices and the table's width.
pub fn embedding(operands: &Operands<'_>) -> Results {
    let (weight, indices) = (operands.tensor("weight")?, operands.tensor("indices")?);
    let sizes = weight.sizes.as_deref().zip(indices.sizes.as_deref());
    let sizes = sizes.and_then(|(weight, indices)| Some([indices, weight.get(1..)?].concat()));
    one(operands.result(weight, weight.dtype, sizes))
}
