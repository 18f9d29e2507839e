//! Reductions: dimensions go, or stay with size 1.

use super::{Known, Operands, Results, one, product, wrap};
use crate::ir::{Dim, TensorType, TypeKind};
use crate::tensor::DType;

/// How many blocks some rows make.
pub fn blocks(rows: i64, block: i64) -> i64 {
    rows / block + i64::from(rows % block != 0)
}

/// The rule of the reduction family, from the arguments `dim`, `keepdim` and `dtype`. It speaks of ops with one
/// result, whose dtype is that of the operand.
pub fn reduce(operands: &Operands<'_>) -> Results {
    one(reduced(operands, |d| d)?)
}

/// A reduction that adds up: integers become int64.
pub fn sum(operands: &Operands<'_>) -> Results {
    one(reduced(operands, |d| if d.is_integral() || d == DType::Bool { DType::I64 } else { d })?)
}

/// A sum of what broadcasting repeated: the sizes are given. Sums of ints may be ints or longer ones.
pub fn to_size(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let found = operands.looking(first, operands.dims("size"));
    let dtype = found.dtype.filter(|dtype| dtype.is_floating() || dtype.is_complex());
    one(TensorType { dtype, ..found })
}

/// A reduction whose result is bool.
pub fn truth(operands: &Operands<'_>) -> Results {
    one(reduced(operands, |d| if d == DType::U8 { DType::U8 } else { DType::Bool })?)
}

/// A reduction whose result is an index or a count.
pub fn index(operands: &Operands<'_>) -> Results {
    one(reduced(operands, |_| DType::I64)?)
}

/// A reduction that joins the bits of elements.
pub fn bits(operands: &Operands<'_>) -> Results {
    one(reduced(operands, |_| DType::U64)?)
}

/// A reduction that gives a magnitude: complex becomes real.
pub fn magnitude(operands: &Operands<'_>) -> Results {
    let found = reduced(operands, DType::to_real)?;
    // A dtype that is asked for may be complex, too.
    one(TensorType { dtype: found.dtype.map(DType::to_real), ..found })
}

/// Values and their indices.
pub fn with_index(operands: &Operands<'_>) -> Results {
    let values = reduced(operands, |d| d)?;
    let indices = TensorType { dtype: Some(DType::I64), requires_grad: Some(false), ..values.clone() };
    Some(vec![Known::Tensor(values), Known::Tensor(indices)])
}

/// Two results of the operand's dtype; complex becomes real in the first.
pub fn pair(operands: &Operands<'_>) -> Results {
    let mean = reduced(operands, |d| d)?;
    let spread = reduced(operands, DType::to_real)?;
    Some(vec![Known::Tensor(spread), Known::Tensor(mean)])
}

/// The least and the greatest.
pub fn twice(operands: &Operands<'_>) -> Results {
    let one = reduced(operands, |d| d)?;
    Some(vec![Known::Tensor(one.clone()), Known::Tensor(one)])
}

/// A scan keeps the sizes; `grows` says that integers become int64.
fn scanned(operands: &Operands<'_>, change: fn(DType) -> DType) -> Option<TensorType> {
    let first = operands.first()?;
    let dtype = match operands.dtype("dtype") {
        Ok(asked) => asked.or(first.dtype.map(change)),
        Err(_) => None,
    };
    Some(operands.result(first, dtype, first.sizes.as_ref().map(|s| s.to_vec())))
}

/// The same of kernels whose results lie as the argument does.
fn sorted(operands: &Operands<'_>, change: fn(DType) -> DType) -> Option<TensorType> {
    let found = scanned(operands, change)?;
    let sizes = found.sizes.as_ref().map(|s| s.to_vec());
    Some(operands.following(&found, found.dtype, sizes))
}

/// A running sum or product.
pub fn scan(operands: &Operands<'_>) -> Results {
    one(scanned(operands, |d| if d.is_integral() || d == DType::Bool { DType::I64 } else { d })?)
}

/// A running extreme with its index, a sorted tensor with its order.
pub fn scan_with_index(operands: &Operands<'_>) -> Results {
    let values = sorted(operands, |d| d)?;
    let indices = TensorType { dtype: Some(DType::I64), requires_grad: Some(false), ..values.clone() };
    Some(vec![Known::Tensor(values), Known::Tensor(indices)])
}

/// The order of the elements.
pub fn order(operands: &Operands<'_>) -> Results {
    one(sorted(operands, |_| DType::I64)?)
}

/// The sizes stay, the dtype becomes float.
pub fn normalized(operands: &Operands<'_>) -> Results {
    one(scanned(operands, |d| if d.is_integral() || d == DType::Bool { DType::F32 } else { d })?)
}

/// The k greatest with their indices.
pub fn topk(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let sizes = first.sizes.as_deref().and_then(|sizes| {
        let dim = wrap(operands.int("dim")?, sizes.len())?;
        let mut sizes = sizes.to_vec();
        *sizes.get_mut(dim)? = operands.dim("k");
        Some(sizes)
    });
    let values = operands.result(first, first.dtype, sizes);
    let indices = TensorType { dtype: Some(DType::I64), requires_grad: Some(false), ..values.clone() };
    Some(vec![Known::Tensor(values), Known::Tensor(indices)])
}

/// Sums of blocks of what the first dimensions hold.
pub fn block_sums(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let sizes = first.sizes.as_deref().and_then(|sizes| {
        let dims = usize::try_from(operands.int("dims")?).ok().filter(|dims| *dims <= sizes.len())?;
        let rows = operands.int("rows").filter(|rows| *rows >= 1)?;
        let blocks = product(&sizes[..dims]).map_or(Dim::Unknown, |n| Dim::Known(blocks(n, rows)));
        Some([&[blocks], &sizes[dims..]].concat())
    });
    one(operands.result(first, first.dtype, sizes))
}

fn reduced(operands: &Operands<'_>, change: fn(DType) -> DType) -> Option<TensorType> {
    let first = operands.first()?;
    let dtype = match operands.dtype("dtype") {
        Ok(asked) => asked.or(first.dtype.map(change)),
        Err(_) => None,
    };
    let sizes = first.sizes.as_deref().and_then(|sizes| sizes_left(operands, sizes));
    Some(operands.result(first, dtype, sizes))
}

/// The sizes that a reduction leaves.
fn sizes_left(operands: &Operands<'_>, sizes: &[Dim]) -> Option<Vec<Dim>> {
    let schema = operands.op.schema().ok()?;
    let dim = ["dim", "dims"].into_iter().find(|name| schema.argument_index(name).is_some());
    let keeps = match schema.argument_index("keepdim") {
        Some(_) => operands.bool("keepdim")?,
        None => false,
    };
    let all = || (0..sizes.len()).collect::<Vec<usize>>();
    let gone = match dim.map(|name| (name, operands.get(name))) {
        None | Some((_, Some(Known::None))) => all(),
        Some((name, Some(_))) => {
            let dims = operands.ints(name)?;
            let takes_list = schema
                .argument_index(name)
                .and_then(|n| schema.arguments.get(n))
                .is_some_and(|a| matches!(a.ty.without_none().kind(), TypeKind::List(_)));
            // No dimension at all means every dimension, as PyTorch has it; but not everywhere.
            if dims.is_empty() && takes_list {
                return None;
            }
            dims.into_iter().map(|d| wrap(d, sizes.len())).collect::<Option<Vec<usize>>>()?
        }
        Some((_, None)) => return None,
    };
    let kept = sizes.iter().enumerate();
    let kept = kept.filter_map(|(n, size)| match (gone.contains(&n), keeps) {
        (false, _) => Some(*size),
        (true, true) => Some(Dim::Known(1)),
        (true, false) => None,
    });
    Some(kept.collect())
}
