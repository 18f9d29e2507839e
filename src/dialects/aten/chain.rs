//! Products of several matrices, in the order that takes the fewest multiplications.

use super::multiply::mm;
use crate::diag::{Diagnostic, Result};
use crate::tensor::Tensor;

/// The product of several matrices in the cheapest order; the first and the last may be vectors.
pub(super) fn chain(name: &str, tensors: &[Tensor]) -> Result<Tensor> {
    let last = tensors.len().saturating_sub(1);
    if name == "multi_dot" && tensors.len() < 2 {
        return Err(Diagnostic::runtime(format!(
            "multi_dot(): expected at least 2 tensors but got {}",
            tensors.len()
        )));
    }
    if tensors.is_empty() {
        return Err(Diagnostic::runtime("chain_matmul(): Expected one or more matrices"));
    }
    let mut matrices = tensors.to_vec();
    for (at, t) in tensors.iter().enumerate() {
        let may_be_vector = name == "multi_dot" && (at == 0 || at == last);
        match t.rank() {
            1 if may_be_vector => {
                let sizes = if at == 0 { [1, t.sizes()[0]] } else { [t.sizes()[0], 1] };
                matrices[at] = t.reshaped(&sizes)?;
            }
            2 => {}
            rank if may_be_vector => {
                return Err(Diagnostic::runtime(format!(
                    "multi_dot(): the {} tensor must be 1D or 2D but got {rank}D",
                    if at == 0 { "first" } else { "last" }
                )));
            }
            rank if name == "chain_matmul" => {
                let text = format!("Tensor dimension is {rank}, expected 2 instead.");
                return Err(Diagnostic::runtime(text));
            }
            rank => {
                return Err(Diagnostic::runtime(format!("{name}(): tensor {at} must be 2D but got {rank}D")));
            }
        }
        if t.dtype() != tensors[0].dtype() {
            return Err(Diagnostic::runtime(format!(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is {} and tensor {at} {}",
                tensors[0].dtype().cpp_name(),
                t.dtype().cpp_name()
            )));
        }
    }
    for at in 0..last {
        if matrices[at].sizes()[1] != matrices[at + 1].sizes()[0] {
            let (x, y) = (tensors[at].sizes(), tensors[at + 1].sizes());
            return Err(Diagnostic::runtime(format!(
                "multi_dot(): tensors {at} and {} with shapes {:?} and {:?} cannot be multiplied",
                at + 1,
                x.as_slice(),
                y.as_slice()
            )));
        }
    }
    if let [only] = tensors {
        return only.copy();
    }
    let result = cheapest(&matrices)?;
    let mut sizes = result.sizes();
    if tensors[last].rank() == 1 {
        sizes.pop();
    }
    if tensors[0].rank() == 1 {
        sizes.remove(0);
    }
    result.reshaped(&sizes)
}

/// Multiplies in the order with the fewest multiplications.
fn cheapest(matrices: &[Tensor]) -> Result<Tensor> {
    let n = matrices.len();
    if n > 512 {
        return Err(Diagnostic::unsupported(format!("a product of {n} matrices")));
    }
    let size = |i: usize| {
        if i < n { matrices[i].sizes()[0] as f64 } else { matrices[n - 1].sizes()[1] as f64 }
    };
    let (mut cost, mut split) = (vec![vec![0f64; n]; n], vec![vec![0usize; n]; n]);
    for length in 2..=n {
        for i in 0..=n - length {
            let j = i + length - 1;
            cost[i][j] = f64::INFINITY;
            for s in i..j {
                let total = cost[i][s] + cost[s + 1][j] + size(i) * size(s + 1) * size(j + 1);
                if total < cost[i][j] {
                    (cost[i][j], split[i][j]) = (total, s);
                }
            }
        }
    }
    // Depth is bounded by the number of matrices, checked above.
    fn multiply(matrices: &[Tensor], split: &[Vec<usize>], i: usize, j: usize) -> Result<Tensor> {
        if i == j {
            return Ok(matrices[i].clone());
        }
        let s = split[i][j];
        let (a, b) = (multiply(matrices, split, i, s)?, multiply(matrices, split, s + 1, j)?);
        mm("mm", &a, &b, None)
    }
    multiply(matrices, &split, 0, n - 1)
}
