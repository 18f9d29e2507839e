//! Finding and counting values: binary search, membership, unique elements, counts of small integers.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{joins, trial};
use crate::dialects::{Args, OpDef, OutRule, Outputs, one, opaque};
use crate::kernels::create::range::not_implemented;
use crate::kernels::wide::{Wide, dispatch_wide, store};
use crate::resources::{Collect, memory};
use crate::tensor::{DType, Operand, Tensor, result_type, view, wrap_dim};
use crate::value::Value;
use std::cmp::Ordering;

/// Places are of the dtype that is asked for.
const PLACES: OutRule = OutRule::Says(
    "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on whether out_int32 \
     flag is True, but we got output tensor's dtype {to} and out_int32 flag is {narrow}",
);

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque(
        "aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
        searchsorted,
    ).infer(trial::stand_ins)
    .out_as("Tensor_out", PLACES)
        .overloads(&["Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor"]),
    opaque(
        "aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        bucketize,
    ).infer(trial::stand_ins)
    .out_as("Tensor_out", PLACES),
    opaque(
        "aten::bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        bucketize,
    ).infer(trial::stand_ins)
    .out_exact("Scalar_out"),
    opaque(
        "aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
        isin,
    ).infer(trial::stand_ins)
    .out_exact("Tensor_Tensor_out"),
    opaque(
        "aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor",
        isin,
    ).infer(trial::stand_ins)
    .out_exact("Tensor_Scalar_out")
        .overloads(&["Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor"]),
    opaque("aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)", |a| {
        let mut all = unique_flat(a.tensor(0)?, a.bool(2)?, false)?;
        all.truncate(2);
        outputs(all)
    }),
    opaque(
        "aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        |a| outputs(unique_flat(a.tensor(0)?, a.bool(2)?, a.bool(3)?)?),
    ).rare("u").infer(joins::unique),
    opaque(
        "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        |a| outputs(unique_slices(a.tensor(0)?, a.int(1)?, true)?),
    ).rare("u"),
    opaque(
        "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
        |a| match a.opt_int(3)? {
            Some(dim) => outputs(unique_slices(a.tensor(0)?, dim, false)?),
            None => outputs(consecutive_flat(a.tensor(0)?, a.bool(1)?, a.bool(2)?)?),
        },
    ).rare("u").infer(joins::unique),
    opaque(
        "aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        |a| outputs(unique_slices(a.tensor(0)?, a.int(1)?, false)?),
    ),
    opaque("aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", bincount).out("out"),
];

fn outputs(tensors: Vec<Tensor>) -> Result<Outputs> {
    Ok(tensors.into_iter().map(Value::Tensor).collect())
}

/// A tensor or number argument as a tensor, numbers in the dtype that they take beside `other`.
fn as_tensor(a: &Args<'_>, n: usize, other: &Tensor) -> Result<Tensor> {
    match a.value(n)? {
        Value::Tensor(t) => Ok(t.clone()),
        _ => {
            let number = a.scalar(n)?;
            let dtype =
                result_type(&[Operand::Tensor(other.clone()), Operand::Number(number)]).unwrap_or(DType::F32);
            Tensor::from_scalar(number, dtype)
        }
    }
}

fn search_error(message: String) -> Diagnostic {
    Diagnostic::runtime(format!("torch.searchsorted(): {message}"))
}

fn bucketize(a: &Args<'_>) -> Result<Outputs> {
    let boundaries = a.tensor(1)?;
    if boundaries.rank() != 1 {
        return Err(Diagnostic::runtime(format!(
            "boundaries tensor must be 1 dimension, but got dim({})",
            boundaries.rank()
        )));
    }
    one(search(boundaries, &as_tensor(a, 0, boundaries)?, a.bool(2)?, a.bool(3)?, None)?)
}

fn searchsorted(a: &Args<'_>) -> Result<Outputs> {
    let (sorted, sorter) = (a.tensor(0)?, a.opt_tensor(5)?);
    let values = as_tensor(a, 1, sorted)?;
    let mut right = a.bool(3)?;
    match a.opt_str(4)? {
        Some("right") => right = true,
        Some("left") if right => {
            return Err(search_error(
                "side and right can't be set to opposites, got side of left while right was True".into(),
            ));
        }
        Some("left") | None => {}
        Some(other) => {
            return Err(search_error(format!("side can only be 'left' or 'right' but got {other}")));
        }
    }
    let (bounds, shape) = (sorted.sizes(), values.sizes());
    if values.rank() == 0 && sorted.rank() > 1 {
        return Err(search_error(format!(
            "input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor dim({}) \
             and input value's dim(0) numel(1)",
            sorted.rank()
        )));
    }
    if bounds.is_empty() {
        return Err(search_error(
            "boundaries tensor should have positive dimension, but got 0 dimension".into(),
        ));
    }
    let lead = bounds.len() - 1;
    if lead > 0 && (shape.len() != bounds.len() || shape[..lead] != bounds[..lead]) {
        return Err(search_error(format!(
            "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor \
             must match, but we got boundaries tensor {:?} and input value tensor {:?}",
            bounds.as_slice(),
            shape.as_slice()
        )));
    }
    if let Some(sorter) = sorter {
        if sorter.sizes() != bounds {
            return Err(search_error(format!(
                "boundary and sorter must have the same size, but got boundary tensor {:?}and got sorter tensor {:?}",
                bounds.as_slice(),
                sorter.sizes().as_slice()
            )));
        }
        if sorter.dtype() != DType::I64 {
            return Err(search_error(format!(
                "sorter must be a tensor of long dtype but got dtype {}",
                sorter.dtype().type_name()
            )));
        }
    }
    one(search(sorted, &values, a.bool(2)?, right, sorter)?)
}

/// For each value the place where it would be inserted in its row of boundaries.
fn search(
    sorted: &Tensor,
    values: &Tensor,
    int32: bool,
    right: bool,
    sorter: Option<&Tensor>,
) -> Result<Tensor> {
    let dtype = result_type(&[sorted.clone().into(), values.clone().into()]).unwrap_or(DType::F32);
    if dtype == DType::Bool || dtype.is_complex() {
        return Err(not_implemented("searchsorted_out_cpu", dtype));
    }
    let length = sorted.sizes().last().copied().unwrap_or(0) as usize;
    let order = sorter.map(Tensor::elements::<i64>).transpose()?;
    if order.iter().flatten().any(|i| *i < 0 || *i >= length as i64) {
        return Err(search_error("sorter index out of range".into()));
    }
    let one_row = sorted.rank() == 1;
    let per_row = if one_row { values.numel() } else { values.sizes().last().copied().unwrap_or(1) as usize };
    let found = dispatch_wide!(dtype, W => {
        let (bounds, values) = (sorted.elements_as::<W>()?, values.elements_as::<W>()?);
        let find = |(n, value): (usize, &W)| {
            let start = if one_row { 0 } else { n / per_row.max(1) * length };
            let at = |i: usize| match &order {
                Some(order) => bounds[start + order[start + i] as usize],
                None => bounds[start + i],
            };
            // Comparisons with NaN are false, which sends a NaN to the end.
            let goes_right = |bound: W| match bound.is_nan() || value.is_nan() {
                true => true,
                false => match bound.order(*value) {
                    Ordering::Less => true,
                    Ordering::Equal => right,
                    Ordering::Greater => false,
                },
            };
            let (mut low, mut high) = (0, length);
            while low < high {
                let middle = low + (high - low) / 2;
                if goes_right(at(middle)) { low = middle + 1 } else { high = middle }
            }
            low as i64
        };
        values.iter().enumerate().map(find).scratch()?
    });
    Tensor::from_vec(&found, &values.sizes())?.to_dtype(if int32 { DType::I32 } else { DType::I64 })
}

fn isin(a: &Args<'_>) -> Result<Outputs> {
    let number = Tensor::zeros(DType::I64, &[])?;
    let elements = as_tensor(a, 0, a.value(1)?.to_tensor().unwrap_or(&number))?;
    let tests = as_tensor(a, 1, &elements)?;
    for tensor in [&elements, &tests] {
        if tensor.dtype() == DType::Bool || tensor.dtype().is_complex() {
            return Err(Diagnostic::raised(
                "NotImplementedError",
                format!("Unsupported input type encountered for isin(): {}", tensor.dtype().type_name()),
            ));
        }
    }
    let invert = a.bool(3)?;
    let dtype = result_type(&[elements.clone().into(), tests.clone().into()]).unwrap_or(DType::F32);
    let found = dispatch_wide!(dtype, W => {
        let mut tests = tests.to_dtype(dtype)?.elements_as::<W>()?;
        tests.retain(|x| !x.is_nan());
        tests.sort_by(|x, y| x.order(*y));
        let elements = elements.to_dtype(dtype)?.elements_as::<W>()?;
        elements.iter().map(|x| i64::from(tests.binary_search_by(|t| t.order(*x)).is_ok() != invert)).scratch()?
    });
    one(store::<i64>(&found, &elements.sizes(), DType::Bool)?)
}

/// The distinct elements in order; for each element the place of its like; how many of each. NaN is like nothing.
fn unique_flat(tensor: &Tensor, inverse: bool, counts: bool) -> Result<Vec<Tensor>> {
    if tensor.dtype().is_complex() {
        return Err(not_implemented("unique", tensor.dtype()));
    }
    let (order, starts) = dispatch_wide!(tensor.dtype(), W => {
        let elements = tensor.elements_as::<W>()?;
        let mut order = (0..elements.len()).scratch()?;
        order.sort_by(|x, y| elements[*x].order(elements[*y]));
        let starts = (0..order.len())
            .filter(|i| *i == 0 || elements[order[*i]] != elements[order[*i - 1]])
            .scratch()?;
        (order, starts)
    });
    let firsts = starts.iter().map(|s| order[*s]).scratch()?;
    let values = tensor.take_positions(&firsts, &[firsts.len() as i64])?;
    groups(values, &order, &starts, &tensor.sizes(), inverse, counts)
}

/// The places and sizes of groups: group g holds `order[starts[g]..starts[g + 1]]`.
fn groups(
    values: Tensor,
    order: &[usize],
    starts: &[usize],
    sizes: &[i64],
    inverse: bool,
    counts: bool,
) -> Result<Vec<Tensor>> {
    let ends = starts.iter().skip(1).copied().chain([order.len()]);
    let mut places = memory::filled(order.len(), 0i64)?;
    let mut lengths = memory::reserved(starts.len())?;
    for (group, (start, end)) in starts.iter().zip(ends).enumerate() {
        order[*start..end].iter().for_each(|i| places[*i] = group as i64);
        lengths.push((end - start) as i64)?;
    }
    let empty = || Tensor::zeros(DType::I64, &[0]);
    let places = if inverse { Tensor::from_vec(&places, sizes)? } else { empty()? };
    let lengths = if counts { Tensor::from_vec(&lengths, &[lengths.len() as i64])? } else { empty()? };
    Ok(vec![values, places, lengths])
}

fn consecutive_flat(tensor: &Tensor, inverse: bool, counts: bool) -> Result<Vec<Tensor>> {
    if tensor.dtype().is_complex() {
        return Err(not_implemented("unique", tensor.dtype()));
    }
    let starts = dispatch_wide!(tensor.dtype(), W => {
        let elements = tensor.elements_as::<W>()?;
        (0..elements.len()).filter(|i| *i == 0 || elements[*i] != elements[*i - 1]).scratch()?
    });
    let order = (0..tensor.numel()).scratch()?;
    let values = tensor.take_positions(&starts, &[starts.len() as i64])?;
    groups(values, &order, &starts, &tensor.sizes(), inverse, counts)
}

/// Distinct slices along a dimension, sorted or only merged with their neighbours.
fn unique_slices(tensor: &Tensor, dim: i64, sort: bool) -> Result<Vec<Tensor>> {
    let own = tensor.sizes();
    let dim = view::wrap_dim_strict(dim, own.len())?;
    wrap_dim(dim as i64, own.len())?;
    if tensor.dtype().is_complex() {
        return Err(not_implemented("unique_dim", tensor.dtype()));
    }
    let count = own[dim] as usize;
    let empty = Tensor::zeros(DType::I64, &[0])?;
    if tensor.numel() == 0 {
        let zero_sized = own.iter().enumerate().any(|(d, s)| d != dim && *s == 0);
        if own[dim] != 0 || zero_sized {
            return Err(Diagnostic::runtime(
                "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied",
            ));
        }
        return Ok(vec![tensor.copy()?, empty.clone(), empty]);
    }
    // Slices as rows.
    let rows = tensor.look(|l| view::movedim(l, &[dim as i64], &[0]))?.contiguous()?;
    let width = tensor.numel() / count.max(1);
    let (order, starts) = dispatch_wide!(tensor.dtype(), W => {
        let elements = rows.elements_as::<W>()?;
        let row = |i: usize| &elements[i * width..(i + 1) * width];
        let compare = |x: &usize, y: &usize| {
            let differing = row(*x).iter().zip(row(*y)).map(|(p, q)| p.order(*q)).find(|o| *o != Ordering::Equal);
            differing.unwrap_or(Ordering::Equal)
        };
        let mut order = (0..count).scratch()?;
        if sort {
            order.sort_by(compare);
        }
        let starts = (0..count).filter(|i| *i == 0 || row(order[*i]) != row(order[*i - 1])).scratch()?;
        (order, starts)
    });
    let kept = starts.iter().map(|s| order[*s]).scratch()?;
    let values = crate::kernels::index::place::pick(tensor, dim, &kept)?;
    // Slices were compared, and are kept, as rows.
    let order_in_memory: Vec<usize> =
        std::iter::once(dim).chain((0..own.len()).filter(|d| *d != dim)).collect();
    let values = crate::kernels::strided::in_memory_order(values, &order_in_memory)?;
    groups(values, &order, &starts, &[count as i64], true, true)
}

fn bincount(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, weights, minlength) = (a.tensor(0)?, a.opt_tensor(1)?, a.int(2)?);
    if !tensor.dtype().is_integral() {
        return Err(not_implemented("bincount_cpu", tensor.dtype()));
    }
    if minlength < 0 {
        return Err(Diagnostic::runtime("minlength should be >= 0"));
    }
    if tensor.rank() == 1 && tensor.numel() == 0 {
        return one(Tensor::zeros(DType::I64, &[minlength])?);
    }
    let values = tensor.elements_as::<i64>()?;
    if tensor.rank() != 1 || values.iter().any(|x| *x < 0) {
        return Err(Diagnostic::runtime("bincount only supports 1-d non-negative integral inputs."));
    }
    if weights.is_some_and(|w| w.rank() != 1 || w.numel() != values.len()) {
        return Err(Diagnostic::runtime("weights should be 1-d and have the same length as input"));
    }
    let length = values.iter().copied().max().map_or(0, |m| m.saturating_add(1)).max(minlength);
    let Some(weights) = weights else {
        let result = Tensor::zeros(DType::I64, &[length])?;
        result.write::<i64, _>(|out, _| values.iter().for_each(|x| out[*x as usize] += 1))?;
        return one(result);
    };
    let dtype = if weights.dtype() == DType::F32 { DType::F32 } else { DType::F64 };
    Tensor::expect(DType::F64, &[length])?;
    let mut sums = memory::filled(length as usize, 0.0)?;
    for (x, weight) in values.iter().zip(weights.elements_as::<f64>()?) {
        sums[*x as usize] += weight;
    }
    one(store::<f64>(&sums, &[length], dtype)?)
}
