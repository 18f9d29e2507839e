//! Counting elements by intervals, in one or more dimensions.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::trial;
use crate::dialects::{Args, OpDef, Outputs, one, opaque};
use crate::kernels::compute::rounding;
use crate::kernels::create::range::{not_implemented, spaced};
use crate::kernels::wide::store;
use crate::resources::{Collect, Scratch, memory};
use crate::tensor::{DType, Scalar, Tensor};
use crate::value::Value;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque("aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", histc).infer(trial::kernel).out("out"),
    opaque(
        "aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
        |a| flat(a, Bins::Edges(vec![a.tensor(1)?.clone()]), None, a.opt_tensor(2)?, a.bool(3)?),
    ).outs("bins_tensor_out", &["hist", "bin_edges"]),
    opaque(
        "aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
        |a| flat(a, Bins::Counts(vec![a.int(1)?]), floats(a, 2)?, a.opt_tensor(3)?, a.bool(4)?),
    ).outs("bin_ct_out", &["hist", "bin_edges"]),
    opaque(
        "aten::histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
        |a| both(a, Bins::Counts(a.ints(1)?), floats(a, 2)?, a.opt_tensor(3)?, a.bool(4)?),
    ),
    opaque(
        "aten::histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
        |a| {
            let width = a.tensor(0)?.sizes().last().copied().unwrap_or(1).clamp(0, 64) as usize;
            both(a, Bins::Counts(vec![a.int(1)?; width]), floats(a, 2)?, a.opt_tensor(3)?, a.bool(4)?)
        },
    ),
    opaque(
        "aten::histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
        |a| both(a, Bins::Edges(a.tensors(1)?), None, a.opt_tensor(3)?, a.bool(4)?),
    ),
    opaque(
        "aten::_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]",
        |a| one(Value::tensors(edges(a.tensor(0)?, Bins::Counts(a.ints(1)?), floats(a, 2)?)?.edges)),
    ),
    opaque(
        "aten::_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor",
        |a| {
            let grid = edges(a.tensor(0)?, Bins::Counts(a.ints(1)?), floats(a, 2)?)?;
            one(count(a.tensor(0)?, &grid, a.opt_tensor(3)?, a.bool(4)?)?)
        },
    )
    .out_exact("out"),
    opaque(
        "aten::_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor",
        |a| {
            let grid = edges(a.tensor(0)?, Bins::Edges(a.tensors(1)?), None)?;
            one(count(a.tensor(0)?, &grid, a.opt_tensor(2)?, a.bool(3)?)?)
        },
    )
    .out("out"),
];

/// How intervals are given: a number of the same width, or by their edges.
enum Bins {
    Counts(Vec<i64>),
    Edges(Vec<Tensor>),
}

/// Intervals of each dimension.
struct Grid {
    /// Edges, one tensor a dimension.
    edges: Vec<Tensor>,
    /// Whether the intervals of a dimension have the same width.
    uniform: bool,
}

fn floats(a: &Args<'_>, n: usize) -> Result<Option<Vec<f64>>> {
    if a.value(n)?.is_none() {
        return Ok(None);
    }
    a.list(n)?.to_vec().iter().map(Value::to_float).collect::<Result<_>>().map(Some)
}

fn fail(text: String) -> Diagnostic {
    Diagnostic::runtime(format!("torch.histogramdd: {text}"))
}

/// Smallest and largest element of each dimension of points.
fn extent(tensor: &Tensor, width: usize) -> Result<Scratch<(f64, f64)>> {
    let elements = tensor.elements_as::<f64>()?;
    if elements.is_empty() {
        return memory::filled(width, (0.0, 1.0));
    }
    let column = |d: usize| elements.iter().skip(d).step_by(width.max(1));
    let extreme = |d: usize, f: fn(f64, f64) -> f64| {
        column(d)
            .copied()
            .reduce(|m, x| if m.is_nan() || x.is_nan() { f64::NAN } else { f(m, x) })
            .unwrap_or(0.0)
    };
    (0..width).map(|d| (extreme(d, f64::min), extreme(d, f64::max))).scratch()
}

/// The intervals for points of the given tensor, whose last dimension is the points'.
fn edges(tensor: &Tensor, bins: Bins, range: Option<Vec<f64>>) -> Result<Grid> {
    if tensor.rank() < 2 {
        return Err(fail("input tensor should have at least 2 dimensions".into()));
    }
    let width = tensor.sizes().last().copied().unwrap_or(0) as usize;
    let given = match &bins {
        Bins::Counts(counts) => counts.len(),
        Bins::Edges(edges) => edges.len(),
    };
    if given != width {
        return Err(Diagnostic::runtime(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input.",
        ));
    }
    if !matches!(tensor.dtype(), DType::F32 | DType::F64) {
        return Err(not_implemented("histogramdd", tensor.dtype()));
    }
    let counts = match bins {
        Bins::Edges(edges) => {
            for (d, edge) in edges.iter().enumerate() {
                check_edges(tensor, d, edge)?;
            }
            // Copies: the edges are results.
            let edges = edges.iter().map(Tensor::copy).collect::<Result<Vec<Tensor>>>()?;
            return Ok(Grid { edges, uniform: false });
        }
        Bins::Counts(counts) => counts,
    };
    if let Some(d) = counts.iter().position(|n| *n <= 0) {
        return Err(Diagnostic::runtime(format!(
            "torch.histogram(): bins must be > 0, but got {} for dimension {d}",
            counts[d]
        )));
    }
    let ends = match range {
        Some(range) if range.len() == width * 2 => range.chunks_exact(2).map(|p| (p[0], p[1])).scratch()?,
        Some(range) => {
            return Err(fail(format!(
                "for a {width}-dimensional histogram range should have {} elements, but got {}",
                width * 2,
                range.len()
            )));
        }
        None => extent(tensor, width)?,
    };
    let mut edges = Vec::new();
    for (d, (low, high)) in ends.into_iter().enumerate() {
        if !low.is_finite() || !high.is_finite() {
            return Err(fail(format!("dimension {d}'s range [{}, {}] is not finite", show(low), show(high))));
        }
        if low > high {
            return Err(fail(format!(
                "min should not exceed max, but got min {low} max {high} for dimension {d}"
            )));
        }
        let (low, high) = if low == high { (low - 0.5, high + 0.5) } else { (low, high) };
        let steps = counts[d].saturating_add(1);
        edges.push(spaced(Scalar::Float(low), Scalar::Float(high), steps, None, tensor.dtype())?);
    }
    Ok(Grid { edges, uniform: true })
}

fn show(x: f64) -> String {
    if x.is_nan() { "nan".into() } else { x.to_string() }
}

fn check_edges(tensor: &Tensor, d: usize, edge: &Tensor) -> Result<()> {
    if edge.rank() != 1 {
        return Err(fail(format!(
            "bins tensor should have one dimension, but got {} dimensions in the bins tensor for dimension {d}",
            edge.rank()
        )));
    }
    if edge.dtype() != tensor.dtype() {
        return Err(fail(format!(
            "input tensor and bins tensors should have the same dtype, but got input with dtype {} and bins for dimension \
             {d} with dtype {}",
            tensor.dtype().name(),
            edge.dtype().name()
        )));
    }
    if edge.numel() < 2 {
        return Err(Diagnostic::runtime(format!(
            "torch.histogram(): bins must be > 0, but got 0 for dimension {d}"
        )));
    }
    Ok(())
}

/// The interval of an element: all but the last leave their upper edge to the next. Uniform intervals are found by
/// division in the dtype of the data, then corrected by the edges next to it where `search` says so.
fn interval(edges: &[f64], x: f64, uniform: bool, search: bool, dtype: DType) -> Option<usize> {
    let (low, high) = (*edges.first()?, *edges.last()?);
    let last = edges.len().checked_sub(2)?;
    if !(x >= low && x <= high) {
        return None;
    }
    let upper = |from: usize, to: usize| from + edges[from..to].partition_point(|e| *e <= x);
    if !uniform {
        return Some(upper(0, edges.len()).saturating_sub(1).min(last));
    }
    let bins = (last + 1) as f64;
    // Every step is rounded to the dtype.
    let round: fn(f64) -> f64 = if dtype == DType::F32 { |x| f64::from(x as f32) } else { rounding(dtype) };
    let at = round(round(round(round(x) - round(low)) * round(bins)) / round(round(high) - round(low)));
    let mut at = (at as usize).min(last + 1);
    if search {
        let from = at.saturating_sub(1);
        at = upper(from, (at + 2).min(edges.len())).saturating_sub(1);
    }
    Some(at.min(last))
}

/// How many points (or how much weight) each cell of the grid holds; with `density` the integral is 1.
fn count(tensor: &Tensor, grid: &Grid, weight: Option<&Tensor>, density: bool) -> Result<Tensor> {
    let dtype = tensor.dtype();
    let own = tensor.sizes();
    let (width, lead) = (grid.edges.len(), &own[..own.len().saturating_sub(1)]);
    if let Some(weight) = weight {
        if weight.sizes().as_slice() != lead {
            return Err(fail(format!(
                "if weight tensor is provided it should have the same shape as the input tensor excluding its innermost \
                 dimension, but got input with shape {:?} and weight with shape {:?}",
                own.as_slice(),
                weight.sizes().as_slice()
            )));
        }
        if weight.dtype() != dtype {
            return Err(fail(format!(
                "if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got input({}), \
                 and weight({})",
                dtype.name(),
                weight.dtype().name()
            )));
        }
    }
    let edges: Vec<Scratch<f64>> =
        grid.edges.iter().map(Tensor::elements_as::<f64>).collect::<Result<_>>()?;
    let sizes: Vec<i64> = edges.iter().map(|e| e.len() as i64 - 1).collect();
    let cells = Tensor::zeros(DType::F64, &sizes)?.numel();
    let mut hist = memory::filled(cells, 0.0)?;
    let weights = weight.map(Tensor::elements_as::<f64>).transpose()?;
    let points = tensor.elements_as::<f64>()?;
    for (n, point) in points.chunks(width.max(1)).enumerate() {
        let cell = point.iter().zip(&edges).try_fold(0, |cell, (x, e)| {
            Some(cell * (e.len() - 1) + interval(e, *x, grid.uniform, true, dtype)?)
        });
        if let Some(cell) = cell {
            hist[cell] += weights.as_ref().map_or(1.0, |w| w[n]);
        }
    }
    if density {
        let total: f64 = hist.iter().sum();
        for (i, value) in hist.iter_mut().enumerate() {
            let mut rest = i;
            let mut volume = 1.0;
            for e in edges.iter().rev() {
                let at = rest % (e.len() - 1);
                rest /= e.len() - 1;
                volume *= e[at + 1] - e[at];
            }
            *value /= total * volume;
        }
    }
    store::<f64>(&hist, &sizes, dtype)
}

fn both(
    a: &Args<'_>,
    bins: Bins,
    range: Option<Vec<f64>>,
    weight: Option<&Tensor>,
    density: bool,
) -> Result<Outputs> {
    let grid = edges(a.tensor(0)?, bins, range)?;
    let hist = count(a.tensor(0)?, &grid, weight, density)?;
    Ok([Value::Tensor(hist), Value::tensors(grid.edges)].into_iter().collect())
}

/// All elements as points of one dimension.
fn flat(
    a: &Args<'_>,
    bins: Bins,
    range: Option<Vec<f64>>,
    weight: Option<&Tensor>,
    density: bool,
) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let points = tensor.reshaped(&[tensor.numel() as i64, 1])?;
    let weight = match weight {
        Some(w) if w.sizes() == tensor.sizes() => Some(w.reshaped(&[w.numel() as i64])?),
        other => other.cloned(),
    };
    let grid = edges(&points, bins, range)?;
    let hist = count(&points, &grid, weight.as_ref(), density)?;
    let edge =
        grid.edges.into_iter().next().ok_or_else(|| Diagnostic::internal("histogram without edges"))?;
    Ok([Value::Tensor(hist), Value::Tensor(edge)].into_iter().collect())
}

fn histc(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, bins) = (a.tensor(0)?, a.int(1)?);
    let dtype = tensor.dtype();
    if !dtype.is_floating() {
        return Err(not_implemented("histogram_cpu", dtype));
    }
    if bins <= 0 {
        return Err(Diagnostic::runtime(format!(
            "torch.histogram(): bins must be > 0, but got {bins} for dimension 0"
        )));
    }
    let (mut low, mut high) = (a.scalar(2)?.to_f64(), a.scalar(3)?.to_f64());
    if low == high && tensor.numel() > 0 {
        (low, high) = extent(&tensor.reshaped(&[tensor.numel() as i64, 1])?, 1)?[0];
    }
    if low == high {
        (low, high) = (low - 1.0, high + 1.0);
    }
    if !low.is_finite() || !high.is_finite() {
        let show = |x: f64| if x.is_nan() { "-nan".to_string() } else { x.to_string() };
        return Err(Diagnostic::runtime(format!(
            "torch.histc: range of [{}, {}] is not finite",
            show(low),
            show(high)
        )));
    }
    if low >= high {
        return Err(Diagnostic::runtime("torch.histc: max must be larger than min"));
    }
    Tensor::expect(DType::F64, &[bins])?;
    let points = spaced(Scalar::Float(low), Scalar::Float(high), bins.saturating_add(1), None, DType::F64)?;
    let edges = points.elements_as::<f64>()?;
    let mut hist = memory::filled(bins as usize, 0.0)?;
    for x in tensor.elements_as::<f64>()? {
        if let Some(at) = interval(&edges, x, true, false, dtype) {
            hist[at] += 1.0;
        }
    }
    one(store::<f64>(&hist, &[bins], dtype)?)
}
