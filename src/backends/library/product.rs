//! Matrix products: which strides a library takes as they are, how batches become few calls, and attention by two products and
//! a softmax between them.

use super::calls::{Matrix, Piece, Product, unsupported};
use super::machine::Machine;
use super::operand::{dense, empty, floating, piece, results, with_strides};
use crate::diag::Result;
use crate::dialects::{Args, Outputs};
use crate::tensor::{Layout, Tensor, broadcast_sizes, view};
use smallvec::SmallVec;

/// Calls that one op becomes at most.
const MAX_CALLS: i64 = 1 << 10;

/// A factor: a tensor of rank 2 or more, with layout of its own for its last two dimensions.
struct Factor {
    tensor: Tensor,
    layout: Layout,
    matrix: Matrix,
}

impl Factor {
    fn of(machine: &dyn Machine, tensor: &Tensor) -> Result<Factor> {
        let layout = tensor.layout();
        if let Some(matrix) = matrix_of(&layout) {
            return Ok(Factor { tensor: tensor.clone(), layout, matrix });
        }
        let tensor = dense(machine, tensor)?;
        let layout = tensor.layout();
        let matrix = matrix_of(&layout).ok_or_else(|| unsupported("factors of such strides"))?;
        Ok(Factor { tensor, layout, matrix })
    }

    /// Strides of the dimensions before the last two as they are for a broadcast batch.
    fn batch_strides(&self, batch: &[i64]) -> Result<SmallVec<[i64; 4]>> {
        let own = self.layout.rank() - 2;
        let lead = Layout {
            sizes: self.layout.sizes[..own].into(),
            strides: self.layout.strides[..own].into(),
            offset: 0,
        };
        let wide = lead.broadcast_to(batch).ok_or_else(|| unsupported("factors of such sizes"))?;
        if wide.strides.iter().any(|stride| *stride < 0) {
            return Err(unsupported("factors of such strides"));
        }
        Ok(wide.strides.iter().copied().collect())
    }
}

fn matrix_of(layout: &Layout) -> Option<Matrix> {
    let at = layout.rank().checked_sub(2)?;
    let (sizes, strides) = (&layout.sizes[at..], &layout.strides[at..]);
    Matrix::of([sizes[0], sizes[1]], [strides[0], strides[1]])
}

/// `aten::mm`, `aten::bmm`, `aten::matmul` of factors of rank 2 or more.
pub(super) fn matmul(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    results(multiplied(machine, a.tensor(0)?, a.tensor(1)?, None, 1.0)?)
}

/// `aten::linear`
pub(super) fn linear(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    let weight = a.tensor(1)?;
    if weight.rank() != 2 {
        return Err(unsupported("weights of such a rank"));
    }
    let transposed = weight.with_layout(view::transpose(&weight.layout(), 0, 1)?)?;
    results(multiplied(machine, a.tensor(0)?, &transposed, a.opt_tensor(2)?, 1.0)?)
}

/// `aten::addmm` of a row.
pub(super) fn addmm(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    if a.scalar(3)?.to_f64() != 1.0 || a.scalar(4)?.to_f64() != 1.0 {
        return Err(unsupported("factors of a sum"));
    }
    results(multiplied(machine, a.tensor(1)?, a.tensor(2)?, Some(a.tensor(0)?), 1.0)?)
}

/// `alpha * a @ b + bias`
fn multiplied(
    machine: &dyn Machine,
    a: &Tensor,
    b: &Tensor,
    bias: Option<&Tensor>,
    alpha: f64,
) -> Result<Tensor> {
    let (a, b) = (floating(a)?, floating(b)?);
    if a.rank() < 2 || b.rank() < 2 || a.dtype() != b.dtype() {
        return Err(unsupported("vectors and mixed dtypes"));
    }
    let (a, b) = (rows_together(machine, a, b)?, b);
    let (left, right) = (Factor::of(machine, &a.tensor)?, Factor::of(machine, b)?);
    let size = |factor: &Factor, from_end: usize| factor.layout.sizes[factor.layout.rank() - from_end];
    let (m, k, n) = (size(&left, 2), size(&left, 1), size(&right, 1));
    if k != size(&right, 2) {
        return Err(unsupported("factors that do not fit"));
    }
    let bias = match bias {
        Some(bias) if bias.sizes().as_slice() == [n] && bias.dtype() == b.dtype() => {
            Some(piece(machine, &dense(machine, floating(bias)?)?)?)
        }
        Some(_) => return Err(unsupported("bias of such sizes")),
        None => None,
    };
    let lead = |factor: &Factor| factor.layout.sizes[..factor.layout.rank() - 2].to_vec();
    let batch = broadcast_sizes(&lead(&left), &lead(&right))?;
    let sizes: Vec<i64> = batch.iter().copied().chain([m, n]).collect();
    let out = empty(machine, b.dtype(), &sizes)?;
    let strides = [left.batch_strides(&batch)?, right.batch_strides(&batch)?];
    let product = Product {
        dtype: b.dtype(),
        m: m as usize,
        n: n as usize,
        k: k as usize,
        batch: 1,
        a: left.matrix,
        b: right.matrix,
        out_stride: 0,
        alpha,
    };
    let pieces = [piece(machine, &left.tensor)?, piece(machine, &right.tensor)?, piece(machine, &out)?];
    each_batch(machine, product, &batch, &strides, &pieces, bias.as_ref())?;
    match a.sizes {
        Some(lead) => {
            let sizes: Vec<i64> = lead.iter().copied().chain([n]).collect();
            out.with_layout(Layout::contiguous(&sizes)?)
        }
        None => Ok(out),
    }
}

/// A left factor, whose leading dimensions may be rows of one matrix, and then their sizes.
struct Rows {
    tensor: Tensor,
    sizes: Option<Vec<i64>>,
}

/// Makes rows of the batch of `a` where `b` is one matrix: one product instead of many.
fn rows_together(machine: &dyn Machine, a: &Tensor, b: &Tensor) -> Result<Rows> {
    if b.rank() != 2 || a.rank() == 2 {
        return Ok(Rows { tensor: a.clone(), sizes: None });
    }
    let sizes = a.sizes();
    let (lead, columns) = (&sizes[..sizes.len() - 1], sizes[sizes.len() - 1]);
    let flat = [lead.iter().product::<i64>(), columns];
    let layout = match view::try_view(&a.layout(), &flat) {
        Some(layout) => a.with_layout(layout)?,
        None => dense(machine, a)?.with_layout(Layout::contiguous(&flat)?)?,
    };
    Ok(Rows { tensor: layout, sizes: Some(lead.to_vec()) })
}

/// Calls the machine for all matrices of a batch: the longest dimension that the results have is one call, the others are walked.
fn each_batch(
    machine: &dyn Machine,
    product: Product,
    batch: &[i64],
    [left, right]: &[SmallVec<[i64; 4]>; 2],
    [a, b, out]: &[Piece; 3],
    bias: Option<&Piece>,
) -> Result<()> {
    // Sizes with the strides of both factors and of the result; neighbours that walk as one are one.
    let mut dims: SmallVec<[(i64, [i64; 3]); 4]> = SmallVec::new();
    let mut stride = (product.m * product.n) as i64;
    for (n, size) in batch.iter().enumerate().rev() {
        if *size != 1 {
            let steps = [left[n], right[n], stride];
            match dims.last_mut() {
                Some((inner, own)) if (0..3).all(|i| own[i] * *inner == steps[i]) => *inner *= size,
                _ => dims.push((*size, steps)),
            }
        }
        stride *= size;
    }
    let longest = (0..dims.len()).max_by_key(|n| dims[*n].0);
    let (count, [x, y, z]) = longest.map_or((1, [0; 3]), |n| dims.remove(n));
    let calls = dims.iter().try_fold(1i64, |calls, (size, _)| calls.checked_mul(*size));
    if calls.is_none_or(|calls| calls > MAX_CALLS) {
        return Err(unsupported("batches of such strides"));
    }
    let product = Product {
        batch: count as usize,
        a: Matrix { stride: x as usize, ..product.a },
        b: Matrix { stride: y as usize, ..product.b },
        out_stride: z as usize,
        ..product
    };
    for call in 0..calls.unwrap_or(1) {
        let (mut rest, mut at) = (call, [0i64; 3]);
        for (size, steps) in &dims {
            let index = rest % size;
            rest /= size;
            (0..3).for_each(|i| at[i] += index * steps[i]);
        }
        machine.product(&product, [&a.at(at[0])?, &b.at(at[1])?], bias, &out.at(at[2])?)?;
    }
    Ok(())
}

/// `aten::scaled_dot_product_attention` without mask and dropout: a product, a softmax over rows, a product.
pub(super) fn attention(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    let [query, key, value] = [a.tensor(0)?, a.tensor(1)?, a.tensor(2)?];
    let plain = a.opt_tensor(3)?.is_none() && a.float(4)? == 0.0 && !a.bool(5)? && !a.bool(7)?;
    if !plain || query.rank() < 2 || key.rank() < 2 {
        return Err(unsupported("masks and dropout of attention"));
    }
    let width = query.sizes().last().copied().unwrap_or(1);
    let scale = a.opt_float(6)?.unwrap_or_else(|| 1.0 / (width as f64).sqrt());
    let transposed = key.with_layout(view::transpose(&key.layout(), -2, -1)?)?;
    let scores = multiplied(machine, query, &transposed, None, scale)?;
    let weights = empty(machine, scores.dtype(), &scores.sizes())?;
    let columns = scores.sizes().last().copied().unwrap_or(1).max(1) as usize;
    let rows = scores.numel() / columns;
    machine.softmax(rows, columns, &piece(machine, &scores)?, &piece(machine, &weights)?)?;
    let out = multiplied(machine, &weights, value, None, 1.0)?;
    let last_dense = |tensor: &&Tensor| tensor.strides().last() == Some(&1);
    if out.rank() != 4 || out.sizes() != query.sizes() || ![query, key, value].iter().all(last_dense) {
        return results(out);
    }
    results(with_strides(machine, out, &view::dense_like(&query.layout()).strides)?)
}
