//! Order along a dimension: sorting, the k largest, medians, quantiles, the most frequent. NaN is the largest.

use super::rule::into;
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{reductions, trial};
use crate::dialects::{Args, OpDef, Outputs, gather, one};
use crate::kernels::create::range::not_implemented;
use crate::kernels::index::select::{intro_sort, mode_place, nth_place, top_places};
use crate::kernels::rows::{Rows, non_empty_dim};
use crate::kernels::strided::laid_out_as;
use crate::kernels::wide::{Wide, dispatch_wide, store};
use crate::resources::Collect;
use crate::tensor::{DType, Scalar, Tensor, wrap_dim};
use crate::value::Value;
use std::cmp::Ordering;

/// The rows.
pub static OPS: &[OpDef] = &[
    gather("aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", |a| {
        sort(a.tensor(0)?, a.int(1)?, a.bool(2)?, false)
    }).rare("u").quantized(crate::dialects::Quantized::Integers).infer(reductions::scan_with_index),
    gather(
        "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
        |a| sort(a.tensor(0)?, a.int(2)?, a.bool(3)?, a.opt_bool(1)?.unwrap_or(false)),
    ).rare("u").quantized(crate::dialects::Quantized::Integers).infer(reductions::scan_with_index),
    gather("aten::sort.values_stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)", |a| into(a, 4, |a| sort(a.tensor(0)?, a.int(2)?, a.bool(3)?, a.opt_bool(1)?.unwrap_or(false)))),
    gather("aten::sort.values(Tensor self, int dim=-1, bool descending=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)", |a| into(a, 3, |a| sort(a.tensor(0)?, a.int(1)?, a.bool(2)?, false))),
    gather("aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", |a| {
        second(sort(a.tensor(0)?, a.int(1)?, a.bool(2)?, false)?)
    }).rare("u").infer(reductions::order),
    gather("aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor", |a| {
        second(sort(a.tensor(0)?, a.int(2)?, a.bool(3)?, a.opt_bool(1)?.unwrap_or(false))?)
    }).rare("u").infer(reductions::order)
    .out_exact("stable_out"),
    gather("aten::msort(Tensor self) -> Tensor", |a| {
        let mut out = sort(a.tensor(0)?, 0, false, false)?;
        out.truncate(1);
        Ok(out)
    }).rare("u").infer(trial::stand_ins)
    .out_exact("out"),
    gather(
        "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
        topk,
    ).quantized(crate::dialects::Quantized::Integers).infer(reductions::topk),
    gather("aten::topk.values(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)", |a| into(a, 5, topk)),
    gather("aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", kthvalue).infer(reductions::with_index),
    gather("aten::kthvalue.values(Tensor self, SymInt k, int dim=-1, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)", |a| into(a, 4, kthvalue)),
    gather("aten::median(Tensor self) -> Tensor", |a| median_all(a, false)).infer(reductions::reduce).out_exact("out"),
    gather("aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", |a| {
        median_dim(a, false)
    }).infer(reductions::with_index),
    gather("aten::median.dim_values(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)", |a| into(a, 3, |a| median_dim(a, false))),
    gather("aten::nanmedian(Tensor self) -> Tensor", |a| median_all(a, true)).infer(reductions::reduce).out_exact("out"),
    gather("aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", |a| {
        median_dim(a, true)
    }).infer(reductions::with_index),
    gather("aten::nanmedian.dim_values(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)", |a| into(a, 3, |a| median_dim(a, true))),
    gather("aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", mode).infer(reductions::with_index),
    gather("aten::mode.values(Tensor self, int dim=-1, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)", |a| into(a, 3, mode)),
    gather("aten::quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor", |a| {
        quantile(a, false)
    }).infer(trial::stand_ins)
    .out("out"),
    gather("aten::quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor", |a| {
        quantile(a, false)
    }).infer(trial::stand_ins)
    .out("scalar_out"),
    gather("aten::nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor", |a| {
        quantile(a, true)
    }).infer(trial::stand_ins)
    .out("out"),
    gather("aten::nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor", |a| {
        quantile(a, true)
    }).infer(trial::stand_ins)
    .out("scalar_out"),
];

fn two(values: Tensor, places: Tensor) -> Result<Outputs> {
    Ok([Value::Tensor(values), Value::Tensor(places)].into_iter().collect())
}

fn second(outputs: Outputs) -> Result<Outputs> {
    Ok(outputs.into_iter().skip(1).collect())
}

fn no_complex(tensor: &Tensor, message: &str) -> Result<()> {
    if tensor.dtype().is_complex() {
        return Err(Diagnostic::raised("TypeError", message));
    }
    Ok(())
}

/// A stable sort keeps equal elements in their order, in descending order too.
fn sort(tensor: &Tensor, dim: i64, descending: bool, stable: bool) -> Result<Outputs> {
    no_complex(tensor, " Sort does not support complex dtypes on CPU")?;
    let dim = wrap_dim(dim, tensor.rank())?;
    if tensor.numel() == 0 {
        return two(
            Tensor::zeros(tensor.dtype(), &tensor.sizes())?,
            Tensor::zeros(DType::I64, &tensor.sizes())?,
        );
    }
    let rows = Rows::along(tensor, dim)?;
    let places = dispatch_wide!(tensor.dtype(), W => rows.map_wide::<W, i64>(rows.length, |row, places| {
        let compare = |x: usize, y: usize| {
            let (x, y) = (row[x], row[y]);
            if descending { y.order(x) } else { x.order(y) }
        };
        let mut order = (0..row.len()).scratch()?;
        if stable {
            order.sort_by(|x, y| compare(*x, *y));
        } else {
            intro_sort(&mut order, &|x, y| compare(x, y) == Ordering::Less);
        }
        places.iter_mut().zip(order).for_each(|(place, i)| *place = i as i64);
        Ok(())
    })?);
    two(
        laid_out_as(rows.pick(&places, rows.length, tensor.dtype())?, tensor)?,
        laid_out_as(rows.restore::<i64>(&places, rows.length, DType::I64)?, tensor)?,
    )
}

fn topk(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, k, largest, sorted) = (a.tensor(0)?, a.int(1)?, a.bool(3)?, a.bool(4)?);
    let dim = wrap_dim(a.int(2)?, tensor.rank())?;
    let rows = Rows::along(tensor, dim)?;
    if k < 0 || k as usize > rows.length {
        return Err(Diagnostic::runtime("selected index k out of range"));
    }
    no_complex(tensor, " topk does not support complex dtypes on CPU")?;
    if tensor.dtype() == DType::Bool {
        return Err(Diagnostic::raised("NotImplementedError", "topk does not support bool dtypes on CPU"));
    }
    let k = k as usize;
    if tensor.rank() == 0 {
        // None of one number is that number, too.
        return two(tensor.copy()?, Tensor::zeros(DType::I64, &[])?);
    }
    let places = dispatch_wide!(tensor.dtype(), W => rows.map_wide::<W, i64>(k, |row, places| {
        let top = top_places(row, k, largest, sorted)?;
        places.iter_mut().zip(top).for_each(|(place, i)| *place = i as i64);
        Ok(())
    })?);
    two(rows.pick(&places, k, tensor.dtype())?, rows.restore::<i64>(&places, k, DType::I64)?)
}

/// One element of each row by its place.
fn by_place<W: Wide>(
    tensor: &Tensor,
    dim: usize,
    keepdim: bool,
    place: impl Fn(&[W]) -> usize + Send + Sync,
) -> Result<Outputs> {
    let rows = Rows::distinct(tensor, if tensor.rank() == 0 { &[] } else { std::slice::from_ref(&dim) })?;
    let found = rows.map::<W, (W, i64)>(|row| {
        let place = place(row);
        (row[place], place as i64)
    })?;
    let (values, places): (Vec<W>, Vec<i64>) = found.into_iter().unzip();
    let sizes = rows.result_sizes(keepdim);
    two(store::<W>(&values, sizes, tensor.dtype())?, Tensor::from_vec(&places, sizes)?)
}

fn kthvalue(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, k) = (a.tensor(0)?, a.int(1)?);
    let dim = non_empty_dim(tensor, a.int(2)?, "kthvalue")?;
    let length = tensor.sizes().get(dim).copied().unwrap_or(1);
    if k < 1 || k > length {
        return Err(Diagnostic::runtime(format!(
            "kthvalue(): selected number k out of range for dimension {dim}"
        )));
    }
    if tensor.dtype().is_complex() || tensor.dtype() == DType::Bool {
        return Err(not_implemented("kthvalue_cpu", tensor.dtype()));
    }
    dispatch_wide!(tensor.dtype(), W => {
        by_place::<W>(tensor, dim, a.bool(3)?, |row| crate::kernels::index::select::kth_place(row, k as usize - 1))
    })
}

/// The place of the lower median; of the first NaN, unless they are left out.
fn median_place<W: Wide>(row: &[W], skip_nan: bool) -> usize {
    let nans = row.iter().filter(|x| x.is_nan()).count();
    if nans == row.len() || (nans > 0 && !skip_nan) {
        return row.iter().position(|x| x.is_nan()).unwrap_or(0);
    }
    nth_place(row, (row.len() - nans - 1) / 2)
}

fn expect_ordered(tensor: &Tensor, kernel: &str) -> Result<()> {
    if tensor.dtype().is_complex() || tensor.dtype() == DType::Bool {
        return Err(not_implemented(kernel, tensor.dtype()));
    }
    Ok(())
}

fn median_dim(a: &Args<'_>, skip_nan: bool) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let dim = non_empty_dim(tensor, a.int(1)?, "median")?;
    expect_ordered(tensor, "median_out")?;
    dispatch_wide!(tensor.dtype(), W => by_place::<W>(tensor, dim, a.bool(2)?, |row| median_place(row, skip_nan)))
}

fn median_all(a: &Args<'_>, skip_nan: bool) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    expect_ordered(tensor, "median_cpu")?;
    if tensor.numel() == 0 {
        let empty =
            if tensor.dtype().is_floating() { Scalar::Float(f64::NAN) } else { Scalar::Int(i64::MIN) };
        let empty = if tensor.dtype() == DType::I32 { Scalar::Int(i64::from(i32::MIN)) } else { empty };
        return one(Tensor::from_scalar(empty, tensor.dtype())?);
    }
    // Elements that are repeated are all repeated as often: the median of one of each is that of all.
    let (rows, _) = Rows::once_each(tensor, &(0..tensor.rank()).collect::<Vec<usize>>())?;
    one(dispatch_wide!(tensor.dtype(), W => {
        rows.reduce::<W>(false, tensor.dtype(), |row| row[median_place(row, skip_nan)])?
    }))
}

fn mode(a: &Args<'_>) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let dim = non_empty_dim(tensor, a.int(1)?, "mode")?;
    if tensor.dtype().is_complex() {
        return Err(not_implemented("mode_cpu", tensor.dtype()));
    }
    dispatch_wide!(tensor.dtype(), W => by_place::<W>(tensor, dim, a.bool(2)?, mode_place))
}

/// How a quantile between two elements is found.
#[derive(Clone, Copy, PartialEq)]
enum Between {
    Linear,
    Lower,
    Higher,
    Midpoint,
    Nearest,
}

fn quantile(a: &Args<'_>, skip_nan: bool) -> Result<Outputs> {
    let (tensor, keepdim) = (a.tensor(0)?, a.bool(3)?);
    let dtype = tensor.dtype();
    let fail = |text: String| Err(Diagnostic::runtime(format!("quantile() {text}")));
    let scalar_q = !matches!(a.value(1)?, Value::Tensor(_));
    if scalar_q && !(0.0..=1.0).contains(&a.float(1)?) {
        return fail(format!("q must be in the range [0, 1] but got {}", a.float(1)?));
    }
    if tensor.numel() == 0 {
        return fail("input tensor must be non-empty".into());
    }
    if !matches!(dtype, DType::F32 | DType::F64) {
        return fail("input tensor must be either float or double dtype".into());
    }
    let q = if scalar_q { Tensor::from_scalar(a.scalar(1)?, dtype)? } else { a.tensor(1)?.clone() };
    if q.rank() > 1 {
        return fail("q must be a scalar or 1D tensor".into());
    }
    if q.dtype() != dtype {
        return fail("q tensor must be same dtype as the input tensor".into());
    }
    let between = match a.str(4)? {
        "linear" => Between::Linear,
        "lower" => Between::Lower,
        "higher" => Between::Higher,
        "midpoint" => Between::Midpoint,
        "nearest" => Between::Nearest,
        other => {
            return fail(format!(
                "interpolation must be one of linear, lower, higher, midpoint or nearest, but got {other}"
            ));
        }
    };
    let qs = q.elements_as::<f64>()?;
    if qs.iter().any(|q| !(0.0..=1.0).contains(q)) {
        return fail("q values must be in the range [0, 1]".into());
    }
    let dims: Vec<usize> = match a.opt_int(2)? {
        Some(dim) if tensor.rank() > 0 => vec![wrap_dim(dim, tensor.rank())?],
        Some(dim) => {
            wrap_dim(dim, 0)?;
            Vec::new()
        }
        None => (0..tensor.rank()).collect(),
    };
    let rows = Rows::distinct(tensor, &dims)?;
    let results = rows.map::<f64, Vec<f64>>(|row| quantiles(row, &qs, between, skip_nan))?;
    // One result after another for each q.
    let values: Vec<f64> = (0..qs.len()).flat_map(|n| results.iter().map(move |r| r[n])).collect();
    let mut sizes = q.sizes();
    sizes.extend_from_slice(rows.result_sizes(keepdim));
    one(store::<f64>(&values, &sizes, dtype)?)
}

/// The fractions are those of the data's dtype, the ranks are computed in double precision, which decides between neighbours.
fn quantiles(row: &[f64], qs: &[f64], between: Between, skip_nan: bool) -> Vec<f64> {
    let mut sorted = row.to_vec();
    sorted.sort_by(|x, y| x.order(*y));
    let numbers = sorted.iter().filter(|x| !x.is_nan()).count();
    if numbers == 0 || (numbers < sorted.len() && !skip_nan) {
        return vec![f64::NAN; qs.len()];
    }
    let last = (numbers - 1) as f64;
    let rank = |q: f64| q * last;
    qs.iter()
        .map(|q| {
            let rank = match between {
                Between::Lower => rank(*q).floor(),
                Between::Higher => rank(*q).ceil(),
                Between::Nearest => rank(*q).round_ties_even(),
                _ => rank(*q),
            };
            let (low, high) =
                (sorted[rank.floor() as usize], sorted[(rank.ceil() as usize).min(numbers - 1)]);
            let weight = if between == Between::Midpoint { 0.5 } else { rank - rank.floor() };
            // As in PyTorch infinite neighbours are not numbers where there is anything to interpolate.
            if !matches!(between, Between::Linear | Between::Midpoint) {
                low
            } else if weight < 0.5 {
                low + weight * (high - low)
            } else {
                high - (high - low) * (1.0 - weight)
            }
        })
        .collect()
}
