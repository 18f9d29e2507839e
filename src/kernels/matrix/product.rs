//! Products of tensors: matrices in batches, and the contraction of two tensors over any dimensions.

use super::gemm::{Gemm, Matrix, Onto, matmul};
use crate::diag::{Diagnostic, Result};
use crate::kernels::compute::{Number, compute_dtype};
use crate::resources::{Collect, Scratch, budget, memory, pool};
use crate::tensor::pointwise::map2;
use crate::tensor::{DType, Dims, Element, Layout, Scalar, Tensor, broadcast_sizes, numel, view};

/// `a @ b` over the last two dimensions, the others broadcast; plus `onto`, broadcast, where given. All of one dtype
/// and of rank 2 at least; `name` is the kernel in the refusal of other dtypes.
pub fn product(name: &str, a: &Tensor, b: &Tensor, onto: Option<&Tensor>) -> Result<Tensor> {
    let dtype = a.dtype();
    let wide = compute_dtype(dtype);
    if dtype == DType::Bool && (a.numel() == 0 || b.numel() == 0) {
        return product(name, &a.to_dtype(DType::U8)?, &b.to_dtype(DType::U8)?, None)?.to_dtype(dtype);
    }
    if wide != dtype {
        let onto = onto.map(|t| t.to_dtype(wide)).transpose()?;
        return product(name, &a.to_dtype(wide)?, &b.to_dtype(wide)?, onto.as_ref())?.to_dtype(dtype);
    }
    crate::dispatch_number!(dtype, name, T => typed::<T>(a, b, onto))
}

fn typed<T: Gemm>(a: &Tensor, b: &Tensor, onto: Option<&Tensor>) -> Result<Tensor> {
    let (la, lb) = (a.layout(), b.layout());
    let ([.., m, k], [.., k2, n]) = (&la.sizes[..], &lb.sizes[..]) else {
        return Err(Diagnostic::internal("product of tensors without two dimensions"));
    };
    let (m, k, n) = (*m, *k, *n);
    if k != *k2 {
        return Err(Diagnostic::internal(format!("product of {m}x{k} and {k2}x{n} matrices")));
    }
    let mut sizes = broadcast_sizes(&la.sizes[..la.rank() - 2], &lb.sizes[..lb.rank() - 2])?;
    let batch = sizes.clone();
    sizes.extend([m, n]);
    // Everything is written, by `onto` or by the product.
    let result = Tensor::for_writing(T::DTYPE, &sizes)?;
    if let Some(onto) = onto {
        result.copy_from(onto)?;
    }
    let mode = if onto.is_some() { Onto::Existing } else { Onto::Nothing };
    let shares = lb.sizes[..lb.rank() - 2].iter().all(|s| *s == 1);
    let folded = if shares { view::try_view(&la, &[numel(&batch) as i64 * m, k]) } else { None };
    let (a_storage, b_storage) = (a.storage(), b.storage());
    let (a_bytes, b_bytes) = (a_storage.read()?, b_storage.read()?);
    let (xs, ys) = (elements::<T>(&a_bytes), elements::<T>(&b_bytes));
    result.write::<T, _>(|out, _| {
        if let Some(rows) = folded {
            let start = lb.offset;
            return matmul(matrix(xs, &rows, rows.offset)?, matrix(ys, &lb, start)?, out, n as usize, mode);
        }
        let (a_starts, b_starts) = (starts(&la, &batch)?, starts(&lb, &batch)?);
        let size = (m * n) as usize;
        let one = |at: usize, out: &mut [T]| {
            matmul(matrix(xs, &la, a_starts[at])?, matrix(ys, &lb, b_starts[at])?, out, n as usize, mode)
        };
        let small = m.saturating_mul(n).saturating_mul(k) < 1 << 20;
        if a_starts.len() > 1 && small && size.saturating_mul(a_starts.len()) > 1 << 14 {
            pool::try_chunks(out, size, one)
        } else {
            out.chunks_mut(size.max(1)).enumerate().try_for_each(|(at, out)| {
                budget::check()?;
                one(at, out)
            })
        }
    })??;
    Ok(result)
}

fn elements<T: Element>(bytes: &[u8]) -> &[T] {
    bytemuck::cast_slice(&bytes[..bytes.len() / size_of::<T>() * size_of::<T>()])
}

/// The matrix of a layout's last two dimensions that begins at `start`.
fn matrix<'a, T>(elements: &'a [T], layout: &Layout, start: usize) -> Result<Matrix<'a, T>> {
    let rank = layout.rank();
    let stride = |d: usize| {
        if layout.sizes[d] <= 1 {
            return Ok(0);
        }
        usize::try_from(layout.strides[d])
            .map_err(|_| Diagnostic::unsupported("matrix products of tensors with negative strides"))
    };
    Ok(Matrix {
        data: elements.get(start..).unwrap_or(&[]),
        rows: layout.sizes[rank - 2] as usize,
        cols: layout.sizes[rank - 1] as usize,
        row_stride: stride(rank - 2)?,
        col_stride: stride(rank - 1)?,
    })
}

/// Where the matrices of a batch begin.
fn starts(layout: &Layout, batch: &[i64]) -> Result<Scratch<usize>> {
    let own = layout.rank() - 2;
    let outer = Layout {
        sizes: Dims::from_slice(&layout.sizes[..own]),
        strides: Dims::from_slice(&layout.strides[..own]),
        offset: layout.offset,
    };
    let outer =
        outer.broadcast_to(batch).ok_or_else(|| Diagnostic::internal("batches that do not broadcast"))?;
    memory::built(outer.numel(), |starts| outer.for_each_index(|i| starts.push(i)))
}

/// Dimensions in another order.
pub fn permute(tensor: &Tensor, order: &[usize]) -> Result<Tensor> {
    let own = tensor.layout();
    tensor.with_layout(Layout {
        sizes: order.iter().map(|d| own.sizes[*d]).collect(),
        strides: order.iter().map(|d| own.strides[*d]).collect(),
        offset: own.offset,
    })
}

/// Sums over dimensions, which keep size 1.
pub fn sum_dims(name: &str, tensor: &Tensor, dims: &[usize]) -> Result<Tensor> {
    let own = tensor.sizes();
    let keep: Vec<usize> = (0..own.len()).filter(|d| !dims.contains(d)).collect();
    let mut sizes = own.clone();
    dims.iter().for_each(|d| sizes[*d] = 1);
    let terms = dims.iter().map(|d| own[*d]).product();
    let order: Vec<usize> = keep.iter().chain(dims).copied().collect();
    let rows = permute(tensor, &order)?.reshaped(&[numel(&sizes) as i64, terms])?;
    let ones = Tensor::full(tensor.dtype(), &[terms, 1], Scalar::Int(1))?;
    product(name, &rows, &ones, None)?.reshaped(&sizes)
}

/// Multiplies two tensors of the same rank elementwise, dimensions of size 1 broadcast, and sums over `sums`, which
/// keep size 1. The result lies in memory as PyTorch's: batches, what only the left has, what is summed, all other; the two
/// factors change places where every dimension of the right then comes before those of the left.
pub fn contract(name: &str, a: &Tensor, b: &Tensor, sums: &[usize]) -> Result<Tensor> {
    let (mut a, mut b) = (a.clone(), b.clone());
    // A dimension summed that only one of them has is summed there before.
    let lone = |t: &Tensor, other: &Tensor| -> Vec<usize> {
        sums.iter().copied().filter(|d| t.sizes()[*d] != 1 && other.sizes()[*d] == 1).collect()
    };
    let (in_a, in_b) = (lone(&a, &b), lone(&b, &a));
    // Sums widen integers.
    let widened = |t: &Tensor| if t.dtype().is_integral() { t.to_dtype(DType::I64) } else { Ok(t.clone()) };
    if !in_a.is_empty() {
        a = sum_dims(name, &widened(&a)?, &in_a)?;
    }
    if !in_b.is_empty() {
        b = sum_dims(name, &widened(&b)?, &in_b)?;
    }
    let (mut sa, mut sb) = (a.sizes(), b.sizes());
    let (mut batch, mut left, mut right, mut inner) = (vec![], vec![], vec![], vec![]);
    for d in 0..sa.len() {
        match (sa[d] != 1, sb[d] != 1) {
            (true, true) if sums.contains(&d) => inner.push(d),
            (true, true) => batch.push(d),
            (true, false) => left.push(d),
            (false, _) => right.push(d),
        }
    }
    if inner.is_empty() {
        if a.dtype() != b.dtype() && a.dtype().is_integral() && b.dtype().is_integral() {
            (a, b) = (widened(&a)?, widened(&b)?);
        }
        return times(name, &a, &b);
    }
    let mut out_sizes = broadcast_sizes(&sa, &sb)?;
    inner.iter().for_each(|d| out_sizes[*d] = 1);
    if left.first().zip(right.last()).is_some_and(|(l, r)| r < l) {
        (a, b, sa, sb, left, right) = (b, a, sb, sa, right, left);
    }
    let count = |sizes: &[i64], dims: &[usize]| dims.iter().map(|d| sizes[*d]).product::<i64>();
    let (p, m, n, k) = (count(&sa, &batch), count(&sa, &left), count(&sb, &right), count(&sa, &inner));
    let shaped = |t: &Tensor, parts: [&[usize]; 3], sizes: [i64; 3]| {
        permute(t, &[&batch[..], parts[0], parts[1], parts[2]].concat())?.reshaped(&sizes)
    };
    let x = shaped(&a, [&left, &inner, &right], [p, m, k])?;
    let y = shaped(&b, [&inner, &right, &left], [p, k, n])?;
    let z = product(name, &x, &y, None)?;
    let order: Vec<usize> = [&batch[..], &left, &inner, &right].concat();
    let sizes: Vec<i64> = order.iter().map(|d| out_sizes[*d]).collect();
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, d)| back[*d] = at);
    permute(&z.reshaped(&sizes)?, &back)
}

/// Elementwise products, broadcast, of two tensors of one dtype.
fn times(name: &str, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (dtype, wide) = (a.dtype(), compute_dtype(a.dtype()));
    let (a, b) = (a.to_dtype(wide)?, b.to_dtype(wide)?);
    crate::dispatch_number!(wide, name, T => map2(&a, &b, |x: T, y: T| x.times(y))?.to_dtype(dtype))
}

/// `beta * t`, in `t`'s dtype; None where beta is 0, as then not even NaN counts.
pub fn scaled(t: &Tensor, beta: Scalar) -> Result<Option<Tensor>> {
    match beta.to_complex() {
        c if c == 0.0.into() => Ok(None),
        c if c == 1.0.into() => Ok(Some(t.clone())),
        _ => times_scalar(t, beta).map(Some),
    }
}

/// Every element times a number converted to the dtype.
pub fn times_scalar(t: &Tensor, factor: Scalar) -> Result<Tensor> {
    let (dtype, wide) = (t.dtype(), compute_dtype(t.dtype()));
    let (source, sizes) = (t.to_dtype(wide)?, t.sizes());
    crate::dispatch_number!(wide, "mul_cpu", T => {
        let factor = <T as Element>::from_scalar(factor);
        let scaled = source.elements::<T>()?.into_iter().map(|x| x.times(factor)).scratch()?;
        Tensor::from_vec(&scaled, &sizes)?.to_dtype(dtype)
    })
}

/// Complex conjugates; a real tensor itself.
pub fn conjugate(t: &Tensor) -> Result<Tensor> {
    let sizes = t.sizes();
    if !t.dtype().is_complex() {
        return Ok(t.clone());
    }
    crate::dispatch_number!(t.dtype(), "conj", T => {
        let conjugates = t.elements::<T>()?.into_iter().map(Number::conjugate).scratch()?;
        Tensor::from_vec(&conjugates, &sizes)
    })
}

/// The C++ name of a dtype, as some messages spell it.
pub fn c_name(dtype: DType) -> &'static str {
    dtype.cpp_name()
}
