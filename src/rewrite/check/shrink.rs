//! Makes a counterexample smaller: fewer elements, lower rank, plainer numbers, as long as the rule still lies.

use super::steps::Bindings;
use super::verdict::Counterexample;
use crate::ir::TypeKind;
use crate::tensor::{DType, Layout, Scalar, Tensor};
use crate::value::Value;
use std::sync::Arc;

/// Tries, at most.
const MAX_TRIES: usize = 1_500;

type Refutes<'a> = dyn FnMut(&Bindings) -> Option<Box<Counterexample>> + 'a;

/// The smallest counterexample that plain steps reach.
pub fn shrink(found: Box<Counterexample>, refutes: &mut Refutes<'_>) -> Box<Counterexample> {
    let mut best = found;
    let mut tries = 0;
    'again: loop {
        for candidate in candidates(&best.variables) {
            tries += 1;
            if tries > MAX_TRIES {
                return best;
            }
            if let Some(smaller) = refutes(&candidate) {
                best = smaller;
                continue 'again;
            }
        }
        return best;
    }
}

/// Simpler values of variables, the boldest changes first.
pub fn candidates(variables: &[(Arc<str>, Value)]) -> Vec<Bindings> {
    let now: Bindings = variables.iter().cloned().collect();
    let mut all = Vec::new();
    let with = |changes: Vec<(Arc<str>, Value)>| {
        let mut next = now.clone();
        next.extend(changes);
        next
    };
    // Common dtypes say more than others.
    for dtype in [DType::F32, DType::I64] {
        let changed: Vec<(Arc<str>, Value)> =
            variables.iter().filter_map(|(n, v)| Some((Arc::clone(n), plainer_dtype(v, dtype)?))).collect();
        if changed.len() > 1 {
            all.push(with(changed.clone()));
        }
        all.extend(changed.into_iter().map(|change| with(vec![change])));
    }
    // The same change on all tensors, for ops that want sizes to agree.
    for change in [
        Change::DropFirst,
        Change::DropLast,
        Change::Halve(0),
        Change::Halve(1),
        Change::Halve(2),
        Change::Halve(3),
    ] {
        let changed: Vec<(Arc<str>, Value)> =
            variables.iter().filter_map(|(n, v)| Some((Arc::clone(n), change.of(v)?))).collect();
        if changed.len() > 1 {
            all.push(with(changed));
        }
    }
    for (name, value) in variables {
        all.extend(simpler(value).into_iter().map(|v| with(vec![(Arc::clone(name), v)])));
    }
    all
}

/// A tensor of a seldom dtype in a common one of its kind.
fn plainer_dtype(value: &Value, dtype: DType) -> Option<Value> {
    let Value::Tensor(t) = value else { return None };
    let own = t.dtype();
    let floats = own.is_floating() && dtype == DType::F32 && own != DType::F64;
    let ints = own.is_integral() && own != DType::Bool && dtype == DType::I64;
    if own == dtype || !(floats || ints) {
        return None;
    }
    let elements = t.to_scalars().ok()?;
    from_scalars(&elements, dtype, &t.sizes()).map(Value::Tensor)
}

#[derive(Clone, Copy)]
enum Change {
    DropFirst,
    DropLast,
    Halve(usize),
}

impl Change {
    fn of(self, value: &Value) -> Option<Value> {
        let Value::Tensor(t) = value else { return None };
        let rank = t.rank();
        match self {
            Change::DropFirst => select(t, 0),
            Change::DropLast => select(t, rank.checked_sub(1)?),
            Change::Halve(dim) => shorten(t, dim),
        }
        .map(Value::Tensor)
    }
}

/// The tensor without a dimension: what stands first along it.
fn select(t: &Tensor, dim: usize) -> Option<Tensor> {
    let mut layout = t.layout();
    if dim >= layout.sizes.len() || layout.sizes[dim] == 0 {
        return None;
    }
    layout.sizes.remove(dim);
    layout.strides.remove(dim);
    t.with_layout(layout).ok()?.copy().ok()
}

/// The first half along a dimension.
fn shorten(t: &Tensor, dim: usize) -> Option<Tensor> {
    let mut layout = t.layout();
    if dim >= layout.sizes.len() || layout.sizes[dim] < 2 {
        return None;
    }
    layout.sizes[dim] /= 2;
    t.with_layout(layout).ok()?.copy().ok()
}

fn simpler(value: &Value) -> Vec<Value> {
    match value {
        Value::Int(x) => {
            let mut all: Vec<i64> = vec![0, 1, -1, 2];
            all.extend([x / 2, x - x.signum()]);
            all.retain(|y| {
                y.unsigned_abs() < x.unsigned_abs() || (y.unsigned_abs() == x.unsigned_abs() && y > x)
            });
            all.into_iter().map(Value::Int).collect()
        }
        Value::Float(x) => plainer(*x).into_iter().map(Value::Float).collect(),
        Value::Bool(true) => vec![Value::Bool(false)],
        Value::Str(x) if !x.is_empty() => vec![Value::str("")],
        Value::Tensor(t) => simpler_tensor(t).into_iter().map(Value::Tensor).collect(),
        Value::List(list) => {
            let items = list.to_vec();
            let make = |items: Vec<Value>| Value::list(list.element_type().clone(), items);
            let mut all = Vec::new();
            for n in 0..items.len() {
                let mut fewer = items.clone();
                fewer.remove(n);
                all.push(make(fewer));
            }
            let tensors = matches!(list.element_type().kind(), TypeKind::Tensor(_));
            for n in 0..items.len() {
                for item in simpler(&items[n]).into_iter().take(if tensors { 12 } else { 4 }) {
                    let mut changed = items.clone();
                    changed[n] = item;
                    all.push(make(changed));
                }
            }
            all
        }
        _ => Vec::new(),
    }
}

/// Plainer floats than one.
fn plainer(x: f64) -> Vec<f64> {
    let weight = |x: f64| match x {
        0.0 if x.is_sign_positive() => 0,
        1.0 => 1,
        _ if x == -1.0 || x == 2.0 || x == 0.0 => 2,
        _ if x.is_nan() => 4,
        _ if x == x.round() => 3,
        _ => 5,
    };
    let mut all = vec![0.0, 1.0, -1.0, 2.0];
    if x.is_finite() {
        all.push(x.round());
    }
    all.retain(|y| weight(*y) < weight(x));
    all
}

fn simpler_tensor(t: &Tensor) -> Vec<Tensor> {
    let mut all: Vec<Option<Tensor>> = Vec::new();
    let plain = Layout::contiguous(&t.sizes());
    if plain.is_ok_and(|plain| plain.strides != t.strides()) {
        all.push(t.copy().ok());
    }
    for dim in 0..t.rank() {
        all.push(select(t, dim));
        all.push(shorten(t, dim));
        let mut layout = t.layout();
        if layout.sizes[dim] > 1 {
            layout.offset += layout.strides[dim].unsigned_abs() as usize;
            layout.sizes[dim] -= 1;
            all.push(t.with_layout(layout).and_then(|t| t.copy()).ok());
        }
    }
    if t.is_contiguous() && t.numel() <= 64 {
        let sizes = t.sizes();
        let Ok(elements) = t.to_scalars() else { return Vec::new() };
        for n in 0..elements.len() {
            for plain in plainer_element(elements[n], t.dtype()) {
                let mut changed = elements.clone();
                changed[n] = plain;
                all.push(from_scalars(&changed, t.dtype(), &sizes));
            }
        }
    }
    all.into_iter().flatten().collect()
}

fn plainer_element(x: Scalar, dtype: DType) -> Vec<Scalar> {
    match x {
        Scalar::Float(x) => plainer(x).into_iter().map(Scalar::Float).collect(),
        Scalar::Int(x) => [0, 1, -1, 2, x / 2]
            .into_iter()
            .filter(|y: &i64| y.unsigned_abs() < x.unsigned_abs() && (*y >= 0 || dtype.is_signed()))
            .map(Scalar::Int)
            .collect(),
        Scalar::Bool(true) => vec![Scalar::Bool(false)],
        Scalar::Bool(false) => Vec::new(),
        Scalar::Complex(z) => {
            let zero = num_complex::Complex64::new(0.0, 0.0);
            if z == zero {
                Vec::new()
            } else {
                vec![Scalar::Complex(zero), Scalar::Complex(num_complex::Complex64::new(z.re, 0.0))]
            }
            .into_iter()
            .filter(|s| *s != Scalar::Complex(z))
            .collect()
        }
    }
}

fn from_scalars(elements: &[Scalar], dtype: DType, sizes: &[i64]) -> Option<Tensor> {
    crate::dispatch_dtype!(dtype, T => {
        let elements: Vec<T> = elements.iter().map(|e| crate::tensor::Element::from_scalar(*e)).collect();
        Tensor::from_vec::<T>(&elements, sizes)
    })
    .ok()
}
