//! Products of groups of rows with a matrix each, as mixtures of experts compute them.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, contraction, one};
use crate::kernels::matrix::product::product;
use crate::tensor::{DType, Dims, Layout, Tensor, view};

/// The rows.
pub static OPS: &[OpDef] = &[contraction(
    "aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor",
    grouped_mm,
)
.grad(
    "self: torch._grouped_mm(grad, mat2.transpose(-2, -1), offs)\n\
     mat2: torch._grouped_mm(self.transpose(-2, -1), grad, offs)",
)
.doc("One product a group; `offs` says where each group of the dimension that a matrix lacks ends")];

fn fail<T>(text: impl Into<String>) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

/// Groups lie along rows (matrix and batch), columns (batch and matrix), the contracted dimension (two matrices: a
/// result a group), or are the batch itself. Elements outside of all groups are 0.
fn grouped_mm(args: &Args<'_>) -> Result<Outputs> {
    let (a, b, ends) = (args.tensor(0)?, args.tensor(1)?, args.opt_tensor(2)?);
    let (la, lb) = (a.layout(), b.layout());
    check(args, a, b)?;
    let (flat_a, flat_b) = (la.rank() == 2, lb.rank() == 2);
    let Some(ends) = ends else {
        let sizes = [la.sizes[0], la.sizes[1], lb.sizes[2]];
        let result = padded(a.dtype(), &sizes)?;
        result.copy_from(&product("bmm", a, b, None)?)?;
        return one(result);
    };
    let ends: Vec<i64> = ends.elements::<i32>()?.into_iter().map(i64::from).collect();
    let (rows, columns) = (la.sizes[la.rank() - 2], lb.sizes[lb.rank() - 1]);
    let sizes: Dims = match (flat_a, flat_b) {
        (true, true) => [ends.len() as i64, rows, columns].into_iter().collect(),
        _ => [rows, columns].into_iter().collect(),
    };
    let split = match (flat_a, flat_b) {
        (true, true) => la.sizes[1],
        (true, false) => rows,
        _ => columns,
    };
    let result = padded(a.dtype(), &sizes)?;
    let whole = result.layout();
    let mut start = 0;
    for (group, end) in ends.into_iter().enumerate() {
        if end < 0 || end > split {
            return fail(format!("group {group} ends at {end}, outside of a dimension of size {split}"));
        }
        let (from, length) = (start, (end - start).max(0));
        start = end;
        let group = group as i64;
        let (x, y, to) = match (flat_a, flat_b) {
            (true, true) => (
                view::narrow(&la, 1, from, length)?,
                view::narrow(&lb, 0, from, length)?,
                view::select(&whole, 0, group)?,
            ),
            (true, false) => (
                view::narrow(&la, 0, from, length)?,
                view::select(&lb, 0, group)?,
                view::narrow(&whole, 0, from, length)?,
            ),
            _ => (
                view::select(&la, 0, group)?,
                view::narrow(&lb, 1, from, length)?,
                view::narrow(&whole, 1, from, length)?,
            ),
        };
        let part = product("mm", &a.with_layout(x)?, &b.with_layout(y)?, None)?;
        result.with_layout(to)?.copy_from(&part)?;
    }
    one(result)
}

fn check(args: &Args<'_>, a: &Tensor, b: &Tensor) -> Result<()> {
    for (name, t) in [("mat_a", a), ("mat_b", b)] {
        if !matches!(t.dtype(), DType::F32 | DType::BF16 | DType::F16) {
            let got = t.dtype().type_name();
            return fail(format!("Expected {name} to be Float32, BFloat16 or Float16 matrix, got {got}"));
        }
    }
    if a.dtype() != b.dtype() {
        let (x, y) = (a.dtype().type_name(), b.dtype().type_name());
        return fail(format!("Expected mat_a and mat_b to have the same dtype, got {x} and {y}"));
    }
    let (la, lb) = (a.layout(), b.layout());
    for (name, layout) in [("mat_a", &la), ("mat_b", &lb)] {
        if !matches!(layout.rank(), 2 | 3) {
            return fail(format!("{name} has to be 2 or 3d"));
        }
    }
    let (flat_a, flat_b) = (la.rank() == 2, lb.rank() == 2);
    if la.sizes[la.rank() - 1] != lb.sizes[lb.rank() - 2] {
        return fail("contraction dimension of mat_a and mat_b must match");
    }
    if !aligned(&la, a.dtype()) || !aligned(&lb, b.dtype()) {
        return fail("strides should be multiple of 16 bytes");
    }
    let ends = args.opt_tensor(2)?;
    if ends.is_some() != (flat_a || flat_b) {
        return fail("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d");
    }
    if let Some(ends) = ends {
        if ends.rank() != 1 {
            return fail("offs has to be 1D");
        }
        if ends.dtype() != DType::I32 {
            return fail("Offsets have to be int32");
        }
        let groups = ends.sizes()[0];
        let batches = [(flat_a, &la), (flat_b, &lb)];
        if batches.iter().any(|(flat, layout)| !flat && layout.sizes[0] != groups) {
            return fail("matrix batch sizes have to match");
        }
    } else if la.sizes[0] != lb.sizes[0] {
        return fail("batched dimension has to match");
    }
    if args.opt_tensor(3)?.is_some() {
        return fail("Bias not supported yet");
    }
    match args.opt_dtype(4)? {
        Some(dtype) if dtype != a.dtype() => fail("Grouped gemm output dtype must match `mat_a` dtype"),
        _ => Ok(()),
    }
}

/// Do rows, or columns, begin at multiples of 16 bytes?
fn aligned(layout: &Layout, dtype: DType) -> bool {
    let (size, rank) = (dtype.size() as i64, layout.rank());
    let (outer, inner) = (layout.strides[rank - 2], layout.strides[rank - 1]);
    let (rows, columns) = (layout.sizes[rank - 2], layout.sizes[rank - 1]);
    let step = if inner == 1 && outer >= columns.max(1) {
        outer
    } else if outer == 1 && inner >= rows.max(1) {
        inner
    } else {
        return false;
    };
    step * size % 16 == 0
}

/// Zeros whose rows begin at multiples of 16 bytes.
fn padded(dtype: DType, sizes: &[i64]) -> Result<Tensor> {
    let mut wide: Dims = sizes.iter().copied().collect();
    let Some(last) = wide.last_mut() else { return fail("a product has two dimensions") };
    let (columns, unit) = (*last, 16 / dtype.size() as i64);
    *last = (columns + unit - 1) / unit * unit;
    let room = Tensor::zeros(dtype, &wide)?;
    room.with_layout(view::narrow(&room.layout(), -1, 0, columns)?)
}
