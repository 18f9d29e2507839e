//! Products of two matrices, alone or in batches, and what is refused of them in PyTorch's words. No row is known here.

use crate::diag::{Diagnostic, Result};
use crate::kernels::matrix::product::product;
use crate::tensor::Tensor;

/// `"2x3"`
pub(super) fn shape(t: &Tensor) -> String {
    t.sizes().iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}

/// The product of two matrices, onto something broadcast to its sizes; `name` stands in front of errors.
pub(super) fn mm(name: &str, a: &Tensor, b: &Tensor, onto: Option<&Tensor>) -> Result<Tensor> {
    check_mm(name, a, b)?;
    product("addmm_impl_cpu_", a, b, onto)
}

/// Fails where two tensors are not matrices that can be multiplied.
pub(super) fn check_mm(name: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    let names = if name == "mm" { ["self", "mat2"] } else { ["mat1", "mat2"] };
    for (t, operand) in [a, b].into_iter().zip(names) {
        if t.rank() != 2 {
            return Err(Diagnostic::runtime(format!(
                "{name}: {operand} must be a matrix, got {}-D tensor",
                t.rank()
            )));
        }
    }
    if a.sizes()[1] != b.sizes()[0] {
        return Err(Diagnostic::runtime(format!(
            "{name}: mat1 and mat2 shapes cannot be multiplied ({} and {})",
            shape(a),
            shape(b)
        )));
    }
    if a.dtype() != b.dtype() {
        return Err(Diagnostic::runtime(format!(
            "expected m1 and m2 to have the same dtype, but got: {} != {}",
            a.dtype().cpp_name(),
            b.dtype().cpp_name()
        )));
    }
    Ok(())
}

pub(super) fn bmm(name: &str, a: &Tensor, b: &Tensor, onto: Option<&Tensor>) -> Result<Tensor> {
    for (t, which) in [(a, 1), (b, 2)] {
        if t.rank() != 3 {
            return Err(Diagnostic::runtime(format!("batch{which} must be a 3D tensor")));
        }
    }
    let (sa, sb) = (a.sizes(), b.sizes());
    if sa[0] != sb[0] || sa[2] != sb[1] {
        return Err(Diagnostic::runtime(format!(
            "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
            sa[0], sa[2], sb[0], sb[1]
        )));
    }
    expect_same(a, b)?;
    product(name, a, b, onto)
}

/// One dtype of what is added to and of both factors.
pub(super) fn expect_alike(t: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    for (name, x) in [("self", t), ("mat1", a)] {
        if x.dtype() != b.dtype() {
            return Err(Diagnostic::runtime(format!(
                "{name} and mat2 must have the same dtype, but got {} and {}",
                x.dtype().type_name(),
                b.dtype().type_name()
            )));
        }
    }
    Ok(())
}

pub(super) fn expect_same(a: &Tensor, b: &Tensor) -> Result<()> {
    if a.dtype() != b.dtype() {
        return Err(Diagnostic::runtime(format!(
            "expected scalar type {} but found {}",
            a.dtype().type_name(),
            b.dtype().type_name()
        )));
    }
    Ok(())
}
