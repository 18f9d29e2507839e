//! Tensors built from the places or the combinations of elements: triangles, diagonals, grids, one-hot codes.

use super::create::asked;
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{joins, trial};
use crate::dialects::{Args, OpDef, OutRule, Outputs, composite, create, gather, one, opaque, view};
use crate::kernels::create::range::not_implemented;
use crate::kernels::strided::with_strides;
use crate::resources::{Collect, Scratch, budget, memory};
use crate::tensor::pointwise::Walk;
use crate::tensor::{DType, Element, Scalar, Tensor, broadcast_all, view as layout, wrap_dim};
use crate::value::Value;
use num_complex::Complex;

/// The rows.
pub static OPS: &[OpDef] = &[
    gather("aten::tril(Tensor self, SymInt diagonal=0) -> Tensor", |a| triangle(a, true)).infer(joins::same_sizes)
        .grad("self: grad.tril(diagonal)")
        .inplace()
        .out_exact("out"),
    gather("aten::triu(Tensor self, SymInt diagonal=0) -> Tensor", |a| triangle(a, false)).infer(joins::same_sizes)
        .grad("self: grad.triu(diagonal)")
        .inplace()
        .out_exact("out"),
    create(
        "aten::tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| indices(a, "tril_indices", true),
    ).infer(trial::kernel),
    create(
        "aten::triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| indices(a, "triu_indices", false),
    ).infer(trial::kernel),
    gather("aten::diag(Tensor self, int diagonal=0) -> Tensor", diag).rare("u8").infer(trial::kernel)
        .grad("self: grad.diag(diagonal) if self.dim() == 1 else grad.new_zeros(self.size()).diagonal_scatter(grad, diagonal)")
        .out_exact("out"),
    gather("aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", |a| {
        one(diag_embed(a.tensor(0)?, a.int(1)?, a.int(2)?, a.int(3)?)?)
    }).infer(trial::kernel)
    .grad("self: grad.diagonal(offset, dim1, dim2)")
    .out_exact("out"),
    gather("aten::diagflat(Tensor self, int offset=0) -> Tensor", |a| {
        one(diag_embed(&a.tensor(0)?.reshaped(&[a.tensor(0)?.numel() as i64])?, a.int(1)?, 0, 1)?)
    }).infer(trial::kernel)
    .grad("self: grad.diagonal(offset).reshape(self.size())"),
    view("aten::meshgrid(Tensor[] tensors) -> Tensor[]", |a| one(Value::tensors(meshgrid(&a.tensors(0)?, "ij")?)))
        .hidden_marks("aten::meshgrid(Tensor[] tensors) -> Tensor(*)[]"),
    view("aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", |a| {
        one(Value::tensors(meshgrid(&a.tensors(0)?, a.str(1)?)?))
    })
    .hidden_marks("aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor(*)[]"),
    gather("aten::cartesian_prod(Tensor[] tensors) -> Tensor", cartesian_prod).infer(trial::kernel)
        .hidden_marks("aten::cartesian_prod(Tensor[] tensors) -> Tensor(*)"),
    gather("aten::combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", combinations).infer(trial::kernel),
    composite(
        "aten::linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor",
        include_str!("composites/linalg_vander.py"),
    ),
    composite(
        "aten::vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
        include_str!("composites/vander.py"),
    ),
    create("aten::one_hot(Tensor self, int num_classes=-1) -> Tensor", one_hot).infer(joins::one_hot),
    opaque("aten::complex(Tensor real, Tensor imag) -> Tensor", |a| pair(a, |re, im| (re, im))).infer(trial::stand_ins)
        .grad("real: torch.real(grad).sum_to_size(real.size())\nimag: torch.imag(grad).sum_to_size(imag.size())")
        .out_as("out", OutRule::Argument),
    opaque("aten::polar(Tensor abs, Tensor angle) -> Tensor", |a| pair(a, |r, t| (r * t.cos(), r * t.sin()))).infer(trial::stand_ins).out_as("out", OutRule::Argument),
    opaque("aten::fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)", fill_diagonal),
];

/// A copy with zeros above a diagonal (where the lower triangle is asked for) or below it.
fn triangle(a: &Args<'_>, lower: bool) -> Result<Outputs> {
    let (tensor, k) = (a.tensor(0)?, a.int(1)?);
    let sizes = tensor.sizes();
    let [.., rows, columns] = sizes[..] else {
        let name = a.op.name().as_str().trim_start_matches("aten::").trim_end_matches('_');
        return Err(Diagnostic::runtime(format!("{name}: input tensor must have at least 2 dimensions")));
    };
    // Clamped, so that differences of indices cannot overflow; beyond the matrix nothing changes.
    let k = k.clamp(-rows - 1, columns + 1);
    let result = tensor.copy()?;
    if result.numel() == 0 {
        return one(result);
    }
    crate::dispatch_dtype!(tensor.dtype(), T => result.write::<T, _>(|elements, _| {
        for (n, row) in elements.chunks_mut(columns as usize).enumerate() {
            // What stands to the left of the diagonal, and of the next one.
            let row_number = n as i64 % rows;
            let left = |shift: i64| (row_number + k + shift).clamp(0, columns) as usize;
            let zeros = if lower { left(1)..row.len() } else { 0..left(0) };
            if let Some(zeros) = row.get_mut(zeros) {
                zeros.fill(<T as bytemuck::Zeroable>::zeroed());
            }
        }
    }))?;
    one(result)
}

/// Rows and columns of a triangle's places, in row-major order.
fn indices(a: &Args<'_>, name: &str, lower: bool) -> Result<Outputs> {
    let (rows, columns) = (a.int(0)?, a.int(1)?);
    for (size, what) in [(rows, "row"), (columns, "col")] {
        if size < 0 {
            return Err(Diagnostic::runtime(format!("{what} must be non-negative, got{size}")));
        }
    }
    let dtype = asked(a, 3)?.unwrap_or(DType::I64);
    if !matches!(dtype, DType::I64 | DType::I32) {
        return Err(not_implemented(name, dtype));
    }
    let k = a.int(2)?.clamp(-rows, columns);
    let below = |k: i128| places_below(i128::from(rows), i128::from(columns), k);
    let total = match lower {
        true => below(i128::from(k)),
        false => i128::from(rows) * i128::from(columns) - below(i128::from(k) - 1),
    };
    let edge = |row: i64| (i128::from(row) + i128::from(k)).clamp(-1, i128::from(columns)) as i64;
    let kept = |row: i64| if lower { 0..(edge(row) + 1).min(columns) } else { edge(row).max(0)..columns };
    // Rows beside the triangle are left out: there may be 2^40 of them.
    let inside = match lower {
        true => (-k).clamp(0, rows)..rows,
        false if columns == 0 => 0..0,
        false => 0..columns.saturating_sub(k).clamp(0, rows),
    };
    let inside = if total == 0 { 0..0 } else { inside };
    let numbers = memory::built(usize::try_from(2 * total).unwrap_or(usize::MAX), |numbers| {
        inside.clone().for_each(|row| numbers.extend(kept(row).map(|_| row)));
        inside.for_each(|row| numbers.extend(kept(row)));
    })?;
    one(Tensor::from_vec(&numbers, &[2, total as i64])?.to_dtype(dtype)?)
}

/// How many places of a matrix have a column of at most their row plus `k`.
fn places_below(rows: i128, columns: i128, k: i128) -> i128 {
    let first = (-k).clamp(0, rows);
    // From here on whole rows.
    let whole = (columns - 1 - k).clamp(first, rows);
    let triangle = (whole - first) * (first + whole + 2 * k + 1) / 2;
    triangle + (rows - whole) * columns
}

/// A matrix with the vector on a diagonal, or a copy of a matrix's diagonal.
fn diag(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, k) = (a.tensor(0)?, a.int(1)?);
    match tensor.rank() {
        1 => one(diag_embed(tensor, k, 0, 1)?),
        2 => one(tensor.look(|l| layout::diagonal(l, k, 0, 1))?.copy()?),
        n => Err(Diagnostic::runtime(format!("diag(): Supports 1D or 2D tensors. Got {n}D"))),
    }
}

/// Zeros with the last dimension on the diagonal of two new ones.
fn diag_embed(tensor: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
    let rank = tensor.rank() + 1;
    let (d1, d2) = (wrap_dim(dim1, rank)?, wrap_dim(dim2, rank)?);
    if d1 == d2 {
        return Err(Diagnostic::runtime(format!("diagonal dimensions cannot be identical {dim1}, {dim2}")));
    }
    let mut sizes = tensor.sizes();
    let length = sizes.pop().ok_or_else(|| Diagnostic::runtime("diag_embed needs at least one dimension"))?;
    let side = length.saturating_add(offset.saturating_abs());
    sizes.insert(d1.min(d2), side);
    sizes.insert(d1.max(d2), side);
    let result = Tensor::zeros(tensor.dtype(), &sizes)?;
    result.look(|l| layout::diagonal(l, offset, d1 as i64, d2 as i64))?.copy_from(tensor)?;
    Ok(result)
}

/// Every tensor repeated along the dimensions of all others.
fn meshgrid(tensors: &[Tensor], indexing: &str) -> Result<Vec<Tensor>> {
    let Some(first) = tensors.first() else {
        return Err(Diagnostic::runtime("meshgrid expects a non-empty TensorList"));
    };
    if let Some(t) = tensors.iter().find(|t| t.rank() > 1) {
        let shown = t.sizes();
        return Err(Diagnostic::runtime(format!(
            "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor of sizes {:?}",
            shown.as_slice()
        )));
    }
    if tensors.iter().any(|t| t.dtype() != first.dtype()) {
        return Err(Diagnostic::runtime("meshgrid expects all tensors to have the same dtype"));
    }
    let swap = match indexing {
        "ij" => false,
        "xy" => tensors.len() >= 2,
        other => {
            return Err(Diagnostic::runtime(format!(
                "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {other}"
            )));
        }
    };
    let mut tensors = tensors.to_vec();
    if swap {
        tensors.swap(0, 1);
    }
    let sizes: Vec<i64> = tensors.iter().map(|t| t.numel() as i64).collect();
    let mut grids = Vec::with_capacity(tensors.len());
    for (i, tensor) in tensors.iter().enumerate() {
        let mut own = vec![1; sizes.len()];
        own[i] = sizes[i];
        let grid = tensor.reshaped(&own)?.broadcast_to(&sizes)?;
        grids.push(grid);
    }
    if swap {
        grids.swap(0, 1);
    }
    Ok(grids)
}

fn expect_vector(tensor: &Tensor) -> Result<()> {
    if tensor.rank() != 1 {
        return Err(Diagnostic::runtime(format!(
            "Expect a 1D vector, but got shape {:?}",
            tensor.sizes().as_slice()
        )));
    }
    Ok(())
}

/// One row for each choice of one element of every vector.
fn cartesian_prod(a: &Args<'_>) -> Result<Outputs> {
    let tensors = a.tensors(0)?;
    tensors.iter().try_for_each(expect_vector)?;
    if let [only] = &tensors[..] {
        return one(only.clone());
    }
    let grids = meshgrid(&tensors, "ij")?;
    let count = grids.first().map_or(0, Tensor::numel) as i64;
    let result = Tensor::zeros(tensors[0].dtype(), &[count, grids.len() as i64])?;
    for (i, grid) in grids.iter().enumerate() {
        result.look(|l| layout::select(l, 1, i as i64))?.copy_from(&grid.reshaped(&[count])?)?;
    }
    one(result)
}

/// One row for each choice of `r` elements in order of their places.
fn combinations(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, r, repeat) = (a.tensor(0)?, a.int(1)?, a.bool(2)?);
    expect_vector(tensor)?;
    if r < 0 {
        return Err(Diagnostic::runtime(format!("Expect a non-negative number, but got {r}")));
    }
    if r == 0 {
        return one(Tensor::zeros(tensor.dtype(), &[0])?);
    }
    let n = tensor.numel();
    if n == 0 || (!repeat && r as usize > n) {
        return one(tensor.take_positions(&[], &[0, r])?);
    }
    if r > 64 {
        return Err(Diagnostic::unsupported(format!("aten::combinations of {r} elements")));
    }
    let r = r as usize;
    let mut places = Scratch::default();
    let step = usize::from(!repeat);
    let mut choice: Vec<usize> = (0..r).map(|i| i * step).collect();
    let last = |i: usize| if repeat { n } else { (n + i + 1).saturating_sub(r) };
    if choice.iter().enumerate().all(|(i, c)| *c < last(i)) {
        loop {
            places.extend(choice.iter().copied())?;
            if places.len() % (1 << 16) < r {
                budget::check()?;
            }
            if places.len() > 1 << 30 {
                return Err(Diagnostic::runtime("combinations: too many rows"));
            }
            let Some(at) = (0..r).rev().find(|i| choice[*i] + 1 < last(*i)) else { break };
            choice[at] += 1;
            for i in at + 1..r {
                choice[i] = choice[i - 1] + step;
            }
        }
    }
    one(tensor.take_positions(&places, &[(places.len() / r) as i64, r as i64])?)
}

fn one_hot(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, classes) = (a.tensor(0)?, a.int(1)?);
    if tensor.dtype() != DType::I64 {
        return Err(Diagnostic::runtime("one_hot is only applicable to index tensor of type LongTensor."));
    }
    let labels = tensor.elements::<i64>()?;
    if labels.is_empty() && classes <= 0 {
        return Err(Diagnostic::runtime("Can not infer total number of classes from empty tensor."));
    }
    if labels.iter().any(|x| *x < 0) {
        return Err(Diagnostic::runtime("Class values must be non-negative."));
    }
    let largest = labels.iter().copied().max().unwrap_or(-1);
    let classes = if classes == -1 { largest.saturating_add(1) } else { classes };
    if largest >= classes {
        return Err(Diagnostic::runtime("Class values must be smaller than num_classes."));
    }
    let mut sizes = tensor.sizes();
    sizes.push(classes);
    let result = Tensor::zeros(DType::I64, &sizes)?;
    result.write::<i64, _>(|out, _| {
        for (row, label) in labels.iter().enumerate() {
            out[row * classes as usize + *label as usize] = 1;
        }
    })?;
    one(result)
}

/// Two real tensors into one complex one.
fn pair(a: &Args<'_>, combine: fn(f64, f64) -> (f64, f64)) -> Result<Outputs> {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    let dtype = match (x.dtype(), y.dtype()) {
        (DType::F32, DType::F16 | DType::F32 | DType::F64) => DType::C64,
        (DType::F64, DType::F16 | DType::F32 | DType::F64) => DType::C128,
        (DType::F16, DType::F16) => {
            return Err(Diagnostic::unsupported(format!("{} of Half tensors", a.op.name())));
        }
        (p, q) => {
            let (p, q) = (p.type_name(), q.type_name());
            return Err(Diagnostic::raised(
                "NotImplementedError",
                format!("Expected both inputs to be Half, Float or Double tensors but got {p} and {q}"),
            ));
        }
    };
    if x.dtype() != y.dtype() {
        let (p, q) = (x.dtype().type_name(), y.dtype().type_name());
        return Err(Diagnostic::runtime(format!(
            "Expected object of scalar type {p} but got scalar type {q} for second argument"
        )));
    }
    let sizes = broadcast_all([x, y])?;
    let (xs, ys) =
        (x.broadcast_to(&sizes)?.elements_as::<f64>()?, y.broadcast_to(&sizes)?.elements_as::<f64>()?);
    fn build<T: Element>(
        xs: &[f64],
        ys: &[f64],
        sizes: &[i64],
        f: fn(f64, f64) -> (f64, f64),
    ) -> Result<Tensor> {
        let make = |(x, y): (&f64, &f64)| {
            let (re, im) = f(*x, *y);
            T::from_scalar(Scalar::Complex(Complex::new(re, im)))
        };
        Tensor::from_vec::<T>(&xs.iter().zip(ys).map(make).scratch()?, sizes)
    }
    let result = match dtype {
        DType::C64 => build::<Complex<f32>>(&xs, &ys, &sizes, combine)?,
        _ => build::<Complex<f64>>(&xs, &ys, &sizes, combine)?,
    };
    let walk = Walk::new(&[x.layout(), y.layout()])?;
    one(with_strides(result, &walk.result.strides)?)
}

/// Writes the main diagonal; with `wrap` it starts again below a gap of one row in tall matrices.
fn fill_diagonal(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, value, wrap) = (a.tensor(0)?, a.scalar(1)?, a.bool(2)?);
    let own = tensor.layout();
    if own.rank() < 2 {
        return Err(Diagnostic::runtime("dimensions must larger than 1"));
    }
    if own.rank() > 2 && own.sizes.iter().any(|s| *s != own.sizes[0]) {
        return Err(Diagnostic::runtime("all dimensions of input must be of equal length"));
    }
    let shortest = own.sizes.iter().copied().min().unwrap_or(0);
    let step: i64 = own.strides.iter().sum();
    tensor
        .with_layout(layout::as_strided(&own, &[shortest], &[step], Some(own.offset as i64))?)?
        .fill(value)?;
    if wrap && own.rank() == 2 && own.sizes[0] > own.sizes[1] + 1 {
        let (rows, columns) = (own.sizes[0], own.sizes[1]);
        for row in columns + 1..rows {
            let column = (row % (columns + 1)) as usize as i64;
            if column < columns {
                tensor.look(|l| layout::select(&layout::select(l, 0, row)?, 0, column))?.fill(value)?;
            }
        }
    }
    one(tensor.clone())
}
