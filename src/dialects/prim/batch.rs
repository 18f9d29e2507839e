//! What batching and variadic passes make: products that are joined, and `cat` and `stack` without a list.

use crate::diag::{Diagnostic, Result};
use crate::dialects::aten::contraction::any_rank;
use crate::dialects::{Args, OpDef, Outputs, contraction, gather, one};
use crate::ir::Attr;
use crate::kernels::index::place::concat;
use crate::tensor::{Layout, Tensor, view, wrap_dim};
use crate::value::Value;

/// The rows.
pub static OPS: &[OpDef] = &[
    contraction("prim::MMTreeReduce(...) -> Tensor", tree_reduce)
        .doc("the sum of matrix products: left sides first, then right sides"),
    contraction("prim::MMBatchSide(...) -> ...", batch_side)
        .doc("products with a common side, which comes first; `side` 0: it is on the left"),
    gather("prim::VarConcat(...) -> Tensor", var_concat)
        .doc("tensors joined along a dimension, which comes last"),
    gather("prim::VarStack(...) -> Tensor", var_stack)
        .doc("tensors stacked along a new dimension, which comes last"),
];

fn tensors(values: &[Value]) -> Result<Vec<Tensor>> {
    values.iter().map(|value| value.to_tensor().cloned()).collect()
}

/// `a b + c d` is `[a c] [b; d]`.
fn tree_reduce(args: &Args<'_>) -> Result<Outputs> {
    let all = tensors(args.values)?;
    let (left, right) = all.split_at(all.len() / 2);
    if left.len() != right.len() || left.is_empty() {
        return Err(Diagnostic::verify("prim::MMTreeReduce needs as many left sides as right sides"));
    }
    one(any_rank(&joined(left, 1)?, &joined(right, 0)?)?)
}

/// Matrices joined along a dimension. Where the transposes are dense they are joined instead, as a derivative's are: rows are
/// copied then, and a product takes its sides either way.
fn joined(sides: &[Tensor], dim: i64) -> Result<Tensor> {
    let turned = |t: &Tensor| -> Result<Tensor> { t.look(|l| view::transpose(l, 0, 1)) };
    let lies_turned = |t: &Tensor| {
        t.rank() == 2 && !t.layout().is_contiguous() && turned(t).is_ok_and(|t| t.layout().is_contiguous())
    };
    if !sides.iter().all(lies_turned) {
        return concat(sides, dim);
    }
    let all = sides.iter().map(turned).collect::<Result<Vec<_>>>()?;
    turned(&concat(&all, 1 - dim)?)
}

fn batch_side(args: &Args<'_>) -> Result<Outputs> {
    let all = tensors(args.values)?;
    let Some((common, others)) = all.split_first() else {
        return Err(Diagnostic::verify("prim::MMBatchSide needs a common side"));
    };
    let on_the_left = args.attr("side").and_then(Attr::as_int).unwrap_or(0) == 0;
    if !on_the_left && let Some(results) = one_product(others, common)? {
        return Ok(results);
    }
    others
        .iter()
        .map(|other| {
            let (a, b) = if on_the_left { (common, other) } else { (other, common) };
            Ok(Value::Tensor(any_rank(a, b)?))
        })
        .collect()
}

/// The products as one, of matrices of the same sizes, one below the other: what is made of the common side for a product is
/// made once. Results are parts of one tensor, as PyTorch's are.
fn one_product(others: &[Tensor], common: &Tensor) -> Result<Option<Outputs>> {
    let [first, .., last] = others else { return Ok(None) };
    let (layout, sizes) = (first.layout(), first.sizes());
    let alike = |t: &Tensor| t.sizes() == sizes && t.dtype() == first.dtype();
    let [rows, columns] = sizes[..] else { return Ok(None) };
    if common.rank() != 2 || rows * columns == 0 || !others.iter().all(alike) {
        return Ok(None);
    }
    // Parts of one tensor that follow each other need not be joined.
    let numel = (rows * columns) as usize;
    let follows = |(n, t): (usize, &Tensor)| {
        t.storage().same(&first.storage())
            && t.layout().is_contiguous()
            && t.layout().offset == layout.offset + n * numel
    };
    let all = match others.iter().enumerate().all(follows) && last.is_plain() && first.is_plain() {
        true => first.with_layout(Layout {
            offset: layout.offset,
            ..Layout::contiguous(&[rows * others.len() as i64, columns])?
        })?,
        false => concat(others, 0)?,
    };
    let product = any_rank(&all, common)?;
    let part = |n: usize| {
        let layout = view::narrow(&product.layout(), 0, n as i64 * rows, rows)?;
        Ok(Value::Tensor(product.with_layout(layout)?))
    };
    (0..others.len()).map(part).collect::<Result<Outputs>>().map(Some)
}

/// The tensors and the dimension of a variadic op.
fn split(args: &Args<'_>) -> Result<(Vec<Tensor>, i64)> {
    match args.values.split_last() {
        Some((dim, rest)) if !rest.is_empty() => Ok((tensors(rest)?, dim.to_int()?)),
        _ => Err(Diagnostic::runtime("expected a non-empty list of Tensors")),
    }
}

fn var_concat(args: &Args<'_>) -> Result<Outputs> {
    let (tensors, dim) = split(args)?;
    one(concat(&tensors, dim)?)
}

fn var_stack(args: &Args<'_>) -> Result<Outputs> {
    let (tensors, dim) = split(args)?;
    let rank = tensors.first().map_or(0, Tensor::rank);
    if tensors.iter().any(|t| t.sizes() != tensors[0].sizes()) {
        return Err(Diagnostic::runtime("stack expects each tensor to be equal size"));
    }
    let dim = wrap_dim(dim, rank + 1)?;
    let wide: Vec<Tensor> = tensors
        .iter()
        .map(|t| t.with_layout(view::unsqueeze(&t.layout(), dim as i64)?))
        .collect::<Result<_>>()?;
    one(concat(&wide, dim as i64)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposed_sides_are_joined_as_rows() {
        let rows = Tensor::from_vec(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2]).expect("valid");
        let side = rows.look(|l| view::transpose(l, 0, 1)).expect("a matrix");
        for dim in [0, 1] {
            let sides = [side.clone(), side.clone()];
            let (all, plain) = (joined(&sides, dim).expect("fits"), concat(&sides, dim).expect("fits"));
            assert_eq!(all.sizes(), plain.sizes());
            assert_eq!(all.to_vec::<f32>().expect("f32"), plain.to_vec::<f32>().expect("f32"));
            assert!(!all.is_contiguous(), "the transpose is");
        }
    }
}
