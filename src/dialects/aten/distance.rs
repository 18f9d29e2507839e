//! Distances between vectors, norms held below a bound, reductions over segments.

use super::reduce::sum_row;
use super::stats::vector_norm;
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::views;
use crate::dialects::{Args, OpDef, Outputs, one, reduce};
use crate::kernels::compute::Dense;
use crate::kernels::compute::rounding;
use crate::kernels::create::range::not_implemented;
use crate::kernels::rows::{Rows, vector};
use crate::kernels::wide::{Wide, dispatch_wide, store};
use crate::resources::{Collect, memory, pool};
use crate::tensor::{
    DType, Dims, Operand, Scalar, Tensor, broadcast_all, broadcast_sizes, numel, result_type, wrap_dim,
};

/// The rows.
pub static OPS: &[OpDef] = &[
    reduce("aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", |a| {
        let (x, y) = (a.tensor(0)?, a.tensor(1)?);
        let difference = difference(x, y, 0.0)?;
        if !(difference.dtype().is_floating() || difference.dtype().is_complex()) {
            return Err(Diagnostic::raised(
                "NotImplementedError",
                format!(
                    "norm(): input dtype should be either floating point or complex. Got {} instead.",
                    difference.dtype().type_name()
                ),
            ));
        }
        one(vector_norm(&difference, a.scalar(2)?.to_f64(), Vec::new(), false, None)?)
    }).infer(views::nothing)
    .out_exact("out"),
    reduce(
        "aten::pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool keepdim=False) -> Tensor",
        |a| {
            let difference = difference(a.tensor(0)?, a.tensor(1)?, a.float(3)?)?;
            one(vector_norm(&difference, a.float(2)?, vec![-1], a.bool(4)?, None)?)
        },
    ).infer(views::nothing),
    reduce("aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor", cdist).infer(views::nothing),
    reduce("aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor", cdist).infer(views::nothing).out_exact("out"),
    reduce("aten::pdist(Tensor self, float p=2.) -> Tensor", pdist).infer(views::nothing),
    reduce("aten::_pdist_forward(Tensor self, float p=2.) -> Tensor", pdist).infer(views::nothing).out_exact("out"),
    reduce("aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", renorm).infer(views::nothing).inplace().out_exact("out"),
    reduce(
        "aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
        segment_reduce,
    ).infer(views::nothing)
    .out("out"),
];

const NO_TWO_BOOLS: &str = "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or \
                            `logical_xor()` operator instead.";
const NO_BOOL: &str = "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a \
                        mask, use the `~` or `logical_not()` operator instead.";

/// x - y + eps, broadcast, in the common dtype.
fn difference(x: &Tensor, y: &Tensor, eps: f64) -> Result<Tensor> {
    // The difference is rounded (or wraps) in the dtype of the operands before the number is added.
    let own = result_type(&[Operand::Tensor(x.clone()), Operand::Tensor(y.clone())]).unwrap_or(DType::F32);
    let message = match (x.dtype() == DType::Bool, y.dtype() == DType::Bool) {
        (true, true) => Some(NO_TWO_BOOLS),
        (false, false) => None,
        _ => Some(NO_BOOL),
    };
    if let Some(message) = message {
        return Err(Diagnostic::raised("NotImplementedError", message));
    }
    let sizes = broadcast_all([x, y])?;
    let (x, y) = (x.to_dtype(own)?.broadcast_to(&sizes)?, y.to_dtype(own)?.broadcast_to(&sizes)?);
    let difference = dispatch_wide!(own, W => {
        let (xs, ys) = (x.elements_as::<W>()?, y.elements_as::<W>()?);
        store::<W>(&xs.iter().zip(ys).map(|(x, y)| x.minus(y)).scratch()?, &sizes, own)
    })?;
    if eps == 0.0 {
        return Ok(difference);
    }
    let operands = [Operand::Tensor(difference.clone()), Operand::Number(Scalar::Float(eps))];
    let dtype = result_type(&operands).unwrap_or(DType::F32);
    dispatch_wide!(dtype, W => {
        let eps = crate::kernels::wide::wide::<W>(Scalar::Float(eps));
        let moved = difference.elements_as::<W>()?.into_iter().map(|x| x.plus(eps)).scratch()?;
        store::<W>(&moved, &sizes, dtype)
    })
}

/// The p-norm of x - y.
fn distance(x: &[f64], y: &[f64], p: f64) -> f64 {
    let terms = x.iter().zip(y).map(|(x, y)| (x - y).abs());
    match p {
        0.0 => terms.filter(|t| *t != 0.0).count() as f64,
        1.0 => sum_row(&terms.collect::<Vec<f64>>()),
        2.0 => sum_row(&terms.map(|t| t * t).collect::<Vec<f64>>()).sqrt(),
        f64::INFINITY => terms.fold(0.0, |m: f64, t| m.most(t)),
        p => sum_row(&terms.map(|t| t.powf(p)).collect::<Vec<f64>>()).powf(1.0 / p),
    }
}

/// The largest |x - y| that is a number: `cdist` skips NaN here, `pdist` does not.
fn largest_known(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y).abs()).fold(0.0, |most, term| if term > most { term } else { most })
}

fn cdist(a: &Args<'_>) -> Result<Outputs> {
    let (x, y, p) = (a.tensor(0)?, a.tensor(1)?, a.float(2)?);
    for (tensor, name) in [(x, "X1"), (y, "X2")] {
        if tensor.rank() < 2 {
            let rank = tensor.rank();
            return Err(Diagnostic::runtime(format!(
                "cdist only supports at least 2D tensors, {name} got: {rank}D"
            )));
        }
    }
    let (xs, ys) = (x.sizes(), y.sizes());
    let ([x_lead @ .., rows, width], [y_lead @ .., columns, other]) = (&xs[..], &ys[..]) else {
        return Err(Diagnostic::runtime("cdist only supports at least 2D tensors"));
    };
    if width != other {
        return Err(Diagnostic::runtime(format!(
            "X1 and X2 must have the same number of columns. X1: {width} X2: {other}"
        )));
    }
    for (tensor, name) in [(x, "X1"), (y, "X2")] {
        if !tensor.dtype().is_floating() {
            return Err(Diagnostic::runtime(format!(
                "cdist only supports floating-point dtypes, {name} got: {}",
                tensor.dtype().type_name()
            )));
        }
    }
    if p.is_nan() || p < 0.0 {
        return Err(Diagnostic::runtime("cdist only supports non-negative p values"));
    }
    if x.dtype() != y.dtype() {
        return Err(Diagnostic::runtime(format!(
            "expected scalar type {} but found {}",
            x.dtype().type_name(),
            y.dtype().type_name()
        )));
    }
    if !matches!(x.dtype(), DType::F32 | DType::F64) && x.numel() > 0 && y.numel() > 0 {
        return Err(not_implemented("cdist", x.dtype()));
    }
    let lead = broadcast_sizes(x_lead, y_lead)?;
    let with = |tail: [i64; 2]| -> Dims { lead.iter().copied().chain(tail).collect() };
    let result_sizes = with([*rows, *columns]);
    Tensor::expect(x.dtype(), &result_sizes)?;
    if x.dtype() == DType::F32 && p == 2.0 {
        let (x, y) = (x.broadcast_to(&with([*rows, *width]))?, y.broadcast_to(&with([*columns, *width]))?);
        return one(euclidean(&x, &y, &result_sizes)?);
    }
    let points_x = x.broadcast_to(&with([*rows, *width]))?.elements_as::<f64>()?;
    let points_y = y.broadcast_to(&with([*columns, *width]))?.elements_as::<f64>()?;
    let (rows, columns, width) = (*rows as usize, *columns as usize, *width as usize);
    let mut distances = memory::filled(numel(&result_sizes), 0f64)?;
    pool::chunks(&mut distances, columns, |n, out| {
        let (batch, x) = (n / rows.max(1), &points_x[n * width..(n + 1) * width]);
        for (j, distance_to) in out.iter_mut().enumerate() {
            let at = (batch * columns + j) * width;
            let y = &points_y[at..at + width];
            *distance_to = if p == f64::INFINITY { largest_known(x, y) } else { distance(x, y, p) };
        }
    });
    one(store::<f64>(&distances, &result_sizes, x.dtype())?)
}

/// Points that distances are measured from at once.
const BESIDE: usize = 8;

/// Euclidean distances in float32, as PyTorch computes them: of points in matrices (or batches of these) of result sizes' rows and columns.
fn euclidean(x: &Tensor, y: &Tensor, result_sizes: &[i64]) -> Result<Tensor> {
    let &[.., rows, columns] = result_sizes else { return Tensor::zeros(DType::F32, result_sizes) };
    let (rows, columns) = (rows as usize, columns as usize);
    let width = x.sizes().last().map_or(0, |width| *width as usize);
    let (x, y) = (Dense::<f32>::new(x)?, Dense::<f32>::new(y)?);
    let (x, y) = (x.open()?, y.open()?);
    let mut distances = memory::filled(numel(result_sizes), 0f32)?;
    // Some points are measured from at once, so that the others are read less often.
    pool::chunks(&mut distances, (columns * BESIDE).max(1), |n, out| {
        let first = n * BESIDE;
        let point = |at: usize| &x[at * width..(at + 1) * width];
        let other = |batch: usize, at: usize| &y[(batch * columns + at) * width..][..width];
        if out.len() == columns * BESIDE && first / rows == (first + BESIDE - 1) / rows {
            for at in 0..columns {
                let points: [&[f32]; BESIDE] = std::array::from_fn(|n| point(first + n));
                let squares = vector::squared_distances(points, other(first / rows, at));
                for (n, square) in squares.into_iter().enumerate() {
                    out[n * columns + at] = square.sqrt();
                }
            }
            return;
        }
        for (n, out) in out.chunks_exact_mut(columns).enumerate() {
            for (at, distance) in out.iter_mut().enumerate() {
                let [square] = vector::squared_distances([point(first + n)], other((first + n) / rows, at));
                *distance = square.sqrt();
            }
        }
    });
    Tensor::from_vec(&distances, result_sizes)
}

/// Distances of all pairs of rows, each pair once.
fn pdist(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, p) = (a.tensor(0)?, a.float(1)?);
    let [rows, width] = tensor.sizes()[..] else {
        return Err(Diagnostic::runtime(format!("pdist only supports 2D tensors, got: {}D", tensor.rank())));
    };
    if !tensor.dtype().is_floating() {
        return Err(Diagnostic::runtime("pdist only supports floating-point dtypes"));
    }
    if p.is_nan() || p < 0.0 {
        return Err(Diagnostic::runtime("pdist only supports non-negative p values"));
    }
    if !matches!(tensor.dtype(), DType::F32 | DType::F64) && rows > 1 && width > 0 {
        return Err(not_implemented("pdist", tensor.dtype()));
    }
    let points = tensor.elements_as::<f64>()?;
    let (rows, width) = (rows as usize, width as usize);
    let point = |i: usize| &points[i * width..(i + 1) * width];
    let pairs = rows.saturating_mul(rows.saturating_sub(1)) / 2;
    Tensor::expect(tensor.dtype(), &[pairs as i64])?;
    let distances = (0..rows)
        .flat_map(|i| (i + 1..rows).map(move |j| (i, j)))
        .map(|(i, j)| distance(point(i), point(j), p))
        .scratch()?;
    one(store::<f64>(&distances, &[pairs as i64], tensor.dtype())?)
}

/// Slices whose norm exceeds the bound are scaled down to it.
fn renorm(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, p, bound) = (a.tensor(0)?, a.scalar(1)?.to_f64(), a.scalar(3)?.to_f64());
    if p <= 0.0 {
        return Err(Diagnostic::runtime("renorm: non-positive-norm not supported"));
    }
    if bound < 0.0 {
        return Err(Diagnostic::runtime(format!("renorm: expected maxnorm to be >= 0 but got {bound}")));
    }
    let rank = tensor.rank();
    if rank < 2 {
        return Err(Diagnostic::runtime(format!(
            "renorm: input needs at least 2 dimensions, got {rank} dimensions"
        )));
    }
    let dim = wrap_dim(a.int(2)?, rank)?;
    let others: Vec<i64> = (0..rank).filter(|d| *d != dim).map(|d| d as i64).collect();
    // Norms of halves are not halves, which they may be too large for.
    let wide = matches!(tensor.dtype(), DType::F16 | DType::BF16).then_some(DType::F32);
    let norms = vector_norm(tensor, p, others, false, wide)?.elements_as::<f64>()?;
    let factors = norms.iter().map(|n| if *n > bound { bound / (n + 1e-7) } else { 1.0 }).scratch()?;
    let block = tensor.sizes()[dim + 1..].iter().fold(1i64, |n, s| n.saturating_mul(*s)).max(1) as usize;
    let dtype = tensor.dtype();
    one(dispatch_wide!(dtype, W => {
        let mut elements = tensor.elements_as::<W>()?;
        for (i, x) in elements.iter_mut().enumerate() {
            *x = x.times(crate::kernels::wide::wide::<W>(Scalar::Float(factors[i / block % factors.len()])));
        }
        store::<W>(&elements, &tensor.sizes(), dtype)?
    }))
}

/// One number for each run of elements along an axis; runs are given by lengths or by offsets.
fn segment_reduce(a: &Args<'_>) -> Result<Outputs> {
    let (data, how) = (a.tensor(0)?, a.str(1)?);
    let initial = a.opt_scalar(7)?.map(Scalar::to_f64);
    let fail = |text: &str| Diagnostic::runtime(format!("segment_reduce(): {text}"));
    if !matches!(how, "sum" | "mean" | "max" | "min" | "prod" | "amax" | "amin") {
        return Err(Diagnostic::runtime(format!(
            "reduce argument must be either sum, prod, mean, amax or amin, got {how}"
        )));
    }
    if a.opt_tensor(3)?.is_some() {
        return Err(fail("indices based reduction is not supported yet."));
    }
    let axis = wrap_dim(a.int(5)?, data.rank())?;
    if data.numel() == 0 {
        return Err(fail("Expected data.numel() > 0"));
    }
    let (bounds, offsets) = match (a.opt_tensor(4)?, a.opt_tensor(2)?) {
        (Some(offsets), _) => (offsets, true),
        (None, Some(lengths)) => (lengths, false),
        (None, None) => return Err(fail("Either lengths or offsets must be defined.")),
    };
    if bounds.rank() != axis + 1 {
        let what = if offsets { "offsets" } else { "lengths" };
        return Err(fail(&format!("Expected axis to be the last dimension of {what} but got {axis}.")));
    }
    if bounds.dtype().is_complex() {
        return Err(not_implemented("min_all", bounds.dtype()));
    }
    if offsets && !matches!(bounds.dtype(), DType::I32 | DType::I64) {
        return Err(not_implemented("_segment_reduce_offsets_cpu_kernel1", bounds.dtype()));
    }
    let size = data.sizes()[axis];
    let segments = bounds.sizes()[axis] - i64::from(offsets);
    if segments < 0 || bounds.sizes()[..axis] != data.sizes()[..axis] {
        return Err(fail("Expected the leading sizes of data and of its segments to agree"));
    }
    let numbers = bounds.elements_as::<i64>()?;
    let per_row = bounds.sizes()[axis].max(1) as usize;
    let mut ranges = Vec::new();
    for row in numbers.chunks(per_row) {
        let ends: Vec<i64> = if offsets {
            row.to_vec()
        } else {
            if row.iter().any(|n| *n < 0) {
                return Err(Diagnostic::runtime("lengths contains negative value!"));
            }
            let sums = row.iter().scan(0i64, |total, n| {
                *total = total.saturating_add(*n);
                Some(*total)
            });
            std::iter::once(0).chain(sums).collect()
        };
        if !offsets && !a.bool(6)? && ends.last() != Some(&size) {
            return Err(fail(
                "Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.",
            ));
        }
        for pair in ends.windows(2) {
            if pair[0] < 0 || pair[0] > pair[1] || pair[1] > size {
                return Err(fail("segments must be consecutive within data"));
            }
            ranges.push((pair[0] as usize, pair[1] as usize));
        }
    }
    if !data.dtype().is_floating() {
        return Err(not_implemented("_segment_reduce_cpu", data.dtype()));
    }
    reduce_segments(data, axis, &ranges, segments, how, initial)
}

fn reduce_segments(
    data: &Tensor,
    axis: usize,
    ranges: &[(usize, usize)],
    segments: i64,
    how: &str,
    initial: Option<f64>,
) -> Result<Outputs> {
    // Rows run along the axis; leading dimensions vary slowest, so that a row's index determines its ranges.
    let rows = Rows::along(data, axis)?;
    let inner = numel(&data.sizes()[axis + 1..]).max(1);
    let elements = rows.dense.elements_as::<f64>()?;
    let count = segments as usize;
    let round = rounding(data.dtype());
    let mut results = memory::reserved(rows.count.saturating_mul(count))?;
    for row in 0..rows.count {
        let outer = row / inner;
        for (start, end) in &ranges[outer * count..(outer + 1) * count] {
            let part = &elements[row * rows.length + start..row * rows.length + end];
            results.push(reduce_part(part, how, initial, round))?;
        }
    }
    one(rows.restore::<f64>(&results, count, data.dtype())?)
}

/// The reduction of one run; sums are rounded as they grow.
fn reduce_part(part: &[f64], how: &str, initial: Option<f64>, round: fn(f64) -> f64) -> f64 {
    let sum = |start: f64| part.iter().fold(start, |sum, x| round(sum + x));
    let n = part.len() as f64;
    match how {
        "max" | "amax" => part.iter().fold(initial.unwrap_or(f64::NEG_INFINITY), |m, x| m.most(*x)),
        "min" | "amin" => part.iter().fold(initial.unwrap_or(f64::INFINITY), |m, x| m.least(*x)),
        "prod" => part.iter().fold(initial.unwrap_or(1.0), |p, x| round(p * x)),
        "mean" if part.is_empty() => initial.unwrap_or(f64::NAN),
        "mean" => sum(initial.unwrap_or(0.0)) / n,
        _ => sum(initial.unwrap_or(0.0)),
    }
}
