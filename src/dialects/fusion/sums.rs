//! Sums in two steps: what a group can add up while it runs along rows, and what is left to add.

use crate::diag::{Diagnostic, Result};
use crate::dialects::aten::reduce::sum;
use crate::dialects::shapes::reductions;
use crate::dialects::{Args, OpDef, Outputs, one, reduce};
use crate::kernels::index::place::concat;
use crate::tensor::{Tensor, numel, view};

/// Sums of blocks of rows.
pub const BLOCK_SUMS: &str = "fusion::block_sums";

/// The rows.
pub static OPS: &[OpDef] = &[reduce("fusion::block_sums(Tensor self, int dims, int rows) -> Tensor", block_sums)
    .infer(reductions::block_sums)
    .grad("self: torch.repeat_interleave(grad, rows, 0)[:self.numel() // max(grad[0].numel(), 1)].reshape(self.size())")
    .doc("The first `dims` dimensions seen as one: the sums of each `rows` of its places that follow each other, the last block being what is left.")];

fn block_sums(args: &Args<'_>) -> Result<Outputs> {
    one(sums(args.tensor(0)?, args.int(1)?, args.int(2)?)?)
}

fn sums(tensor: &Tensor, dims: i64, block: i64) -> Result<Tensor> {
    let sizes = tensor.sizes();
    let dims = usize::try_from(dims).ok().filter(|dims| (1..=sizes.len()).contains(dims));
    let (Some(dims), true) = (dims, block >= 1) else {
        return Err(Diagnostic::verify("fusion::block_sums needs at least one dimension and one row"));
    };
    let (count, rest) = (numel(&sizes[..dims]) as i64, &sizes[dims..]);
    let rows = tensor.reshaped(&[&[count], rest].concat())?;
    let whole = count - count % block;
    let full = rows.look(|l| view::narrow(l, 0, 0, whole))?;
    let full = sum(&full.reshaped(&[&[whole / block, block], rest].concat())?, Some(vec![1]), false, None)?;
    if whole == count {
        return Ok(full);
    }
    let left = rows.look(|l| view::narrow(l, 0, whole, count - whole))?;
    concat(&[full, sum(&left, Some(vec![0]), true, None)?], 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_is_what_is_left() {
        let all: Vec<f32> = (0..10).map(|n| n as f32).collect();
        let tensor = Tensor::from_vec(&all, &[5, 2]).expect("valid");
        let found = sums(&tensor, 1, 2).expect("fits");
        assert_eq!(found.sizes()[..], [3, 2]);
        assert_eq!(found.to_vec::<f32>().expect("f32"), [2.0, 4.0, 10.0, 12.0, 8.0, 9.0]);
        let found = sums(&tensor, 2, 4).expect("fits");
        assert_eq!(found.to_vec::<f32>().expect("f32"), [6.0, 22.0, 17.0]);
        assert!(sums(&tensor, 0, 2).is_err() && sums(&tensor, 3, 2).is_err() && sums(&tensor, 1, 0).is_err());
    }
}
