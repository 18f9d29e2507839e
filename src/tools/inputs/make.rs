//! From the text of an input to its value: numbers are drawn, files read, and what the argument's type asks for decides what
//! brackets mean.

use super::files::{self, Named};
use super::specs::{Spec, of_json};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Type, TypeKind};
use crate::resources::memory;
use crate::tensor::{DType, Scalar, Tensor};
use crate::tools::case::{self, uniform};
use crate::value::{Dict, Value};
use num_complex::Complex64;
use serde_json::json;
use std::path::Path;

/// Where files are looked for, and the state of the generator.
pub(super) struct Maker<'a> {
    pub(super) directory: &'a Path,
    pub(super) state: u64,
}

impl Maker<'_> {
    /// The value for an argument of a type.
    pub(super) fn make(&mut self, spec: &Spec, ty: Option<&Type>) -> Result<Value> {
        let kind = ty.map(Type::kind);
        if let Some(TypeKind::Optional(inner)) = kind {
            return self.make(spec, if *spec == Spec::None { None } else { Some(inner) });
        }
        if let Some(TypeKind::Tensor(wanted)) = kind
            && let Some(tensor) = literal(spec)?
        {
            let dtype = wanted.dtype.unwrap_or(tensor.dtype());
            return Ok(Value::Tensor(tensor.to_dtype(dtype)?));
        }
        Ok(match spec {
            Spec::Random { dtype, sizes, range } => Value::Tensor(self.random(*dtype, sizes, *range)?),
            Spec::File(name) => self.file(name, ty)?,
            Spec::Int(n) if matches!(kind, Some(TypeKind::Float)) => Value::Float(*n as f64),
            Spec::Int(n) => Value::Int(*n),
            Spec::Float(x) => Value::Float(*x),
            Spec::Bool(b) => Value::Bool(*b),
            Spec::Str(text) => Value::str(text.as_str()),
            Spec::None => Value::None,
            Spec::List(items) => match kind {
                Some(TypeKind::Tuple(types, _)) => Value::tuple(self.each(items, types)?),
                Some(TypeKind::List(element)) => {
                    Value::list(element.clone(), self.all(items, Some(element))?)
                }
                _ => Value::list(Type::any(), self.all(items, None)?),
            },
            Spec::Tuple(items) => match kind {
                Some(TypeKind::Tuple(types, _)) => Value::tuple(self.each(items, types)?),
                Some(TypeKind::List(element)) => {
                    Value::list(element.clone(), self.all(items, Some(element))?)
                }
                _ => Value::tuple(self.all(items, None)?),
            },
            Spec::Dict(pairs) => {
                let (key, value) = match kind {
                    Some(TypeKind::Dict(key, value)) => (key.clone(), value.clone()),
                    _ => match encoded(spec) {
                        Some(value) => return Ok(value),
                        None => (Type::any(), Type::any()),
                    },
                };
                let dict = Dict::new(key.clone(), value.clone());
                let known = |ty: &Type| (*ty != Type::any()).then(|| ty.clone());
                for (k, v) in pairs {
                    let key = self.make(k, known(&key).as_ref())?;
                    dict.insert(&key, self.make(v, known(&value).as_ref())?)?;
                }
                Value::Dict(dict)
            }
        })
    }

    fn all(&mut self, items: &[Spec], ty: Option<&Type>) -> Result<Vec<Value>> {
        items.iter().map(|item| self.make(item, ty)).collect()
    }

    fn each(&mut self, items: &[Spec], types: &[Type]) -> Result<Vec<Value>> {
        items.iter().enumerate().map(|(n, item)| self.make(item, types.get(n))).collect()
    }

    /// The values of a file of arguments, in order.
    pub(super) fn read(&mut self, file: &Path) -> Result<Vec<Named>> {
        files::read(file, &mut |json| self.make(&of_json(json), None))
    }

    /// What a file holds: one value, or all of them where the type is a container.
    fn file(&mut self, name: &str, ty: Option<&Type>) -> Result<Value> {
        let mut values = self.read(&self.directory.join(name))?;
        match ty.map(Type::kind) {
            Some(TypeKind::List(element)) if values.len() != 1 || values[0].0.is_some() => {
                Ok(Value::list(element.clone(), values.into_iter().map(|(_, value)| value).collect()))
            }
            Some(TypeKind::Tuple(..)) if values.len() > 1 => {
                Ok(Value::tuple(values.into_iter().map(|(_, value)| value).collect()))
            }
            Some(TypeKind::Dict(key, value)) if values.iter().all(|(name, _)| name.is_some()) => {
                let dict = Dict::new(key.clone(), value.clone());
                for (name, value) in values {
                    dict.insert(&Value::str(name.unwrap_or_default()), value)?;
                }
                Ok(Value::Dict(dict))
            }
            _ => match (values.len(), values.pop()) {
                (1, Some((_, value))) => Ok(value),
                (n, _) => Err(Diagnostic::input(format!("{name} holds {n} values where one is wanted"))
                    .hint(format!("give them in order with --input @{name}"))),
            },
        }
    }

    fn random(&mut self, dtype: DType, sizes: &[i64], range: Option<(f64, f64)>) -> Result<Tensor> {
        let count = sizes.iter().try_fold(1usize, |n, size| n.checked_mul(usize::try_from(*size).ok()?));
        let count =
            count.ok_or_else(|| Diagnostic::input("an input has more elements than memory can hold"))?;
        // Elements are drawn as 8 bytes each and then converted.
        memory::expect::<f64>(count)?;
        memory::expect::<u8>(count.saturating_mul(dtype.size()))?;
        if dtype.is_complex() {
            let numbers = self.drawn(count, |maker| Complex64::new(maker.normal(), maker.normal()))?;
            return Tensor::from_vec(&numbers, sizes)?.to_dtype(dtype);
        }
        if dtype.is_floating() || dtype.is_float8() {
            let numbers = match range {
                None => self.drawn(count, Maker::normal)?,
                Some((low, high)) => {
                    self.drawn(count, |maker| low + (high - low) * uniform(&mut maker.state))?
                }
            };
            return Tensor::from_vec(&numbers, sizes)?.to_dtype(dtype);
        }
        let usual = if dtype == DType::Bool { (0.0, 2.0) } else { (0.0, 10.0) };
        let (low, high) = range.unwrap_or(usual);
        let numbers =
            self.drawn(count, |maker| (low + (high - low) * uniform(&mut maker.state)).floor() as i64)?;
        Tensor::from_vec(&numbers, sizes)?.to_dtype(dtype)
    }

    fn drawn<T>(&mut self, count: usize, mut draw: impl FnMut(&mut Self) -> T) -> Result<Vec<T>> {
        let mut numbers = memory::vec_reserved(count)?;
        for _ in 0..count {
            numbers.push(draw(self));
        }
        Ok(numbers)
    }

    /// A number of the standard normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - uniform(&mut self.state)).ln()).sqrt();
        radius * (std::f64::consts::TAU * uniform(&mut self.state)).cos()
    }
}

/// A tensor written as numbers in brackets, as `torch.tensor` takes it: int64, float32 or bool.
fn literal(spec: &Spec) -> Result<Option<Tensor>> {
    let mut sizes = Vec::new();
    let mut first = spec;
    while let Spec::List(items) | Spec::Tuple(items) = first {
        sizes.push(items.len() as i64);
        match items.first() {
            Some(item) => first = item,
            None => break,
        }
    }
    let mut numbers = Vec::new();
    if !collect(spec, &sizes, &mut numbers) {
        return Ok(None);
    }
    let is = |want: fn(&Scalar) -> bool| numbers.iter().all(want);
    let dtype = match numbers.is_empty() {
        true => DType::F32,
        false if is(|x| matches!(x, Scalar::Bool(_))) => DType::Bool,
        false if is(|x| matches!(x, Scalar::Bool(_) | Scalar::Int(_))) => DType::I64,
        false => DType::F32,
    };
    if dtype == DType::I64 {
        let whole: Vec<i64> = numbers.iter().map(|x| x.to_i64()).collect();
        return Tensor::from_vec(&whole, &sizes).map(Some);
    }
    let reals: Vec<f64> = numbers.iter().map(|x| x.to_f64()).collect();
    Tensor::from_vec(&reals, &sizes)?.to_dtype(dtype).map(Some)
}

/// The numbers of nested lists that have the given sizes; false for anything else.
fn collect(spec: &Spec, sizes: &[i64], numbers: &mut Vec<Scalar>) -> bool {
    match (spec, sizes) {
        (Spec::List(items) | Spec::Tuple(items), [size, rest @ ..]) => {
            items.len() as i64 == *size && items.iter().all(|item| collect(item, rest, numbers))
        }
        (Spec::Int(n), []) => {
            numbers.push(Scalar::Int(*n));
            true
        }
        (Spec::Float(x), []) => {
            numbers.push(Scalar::Float(*x));
            true
        }
        (Spec::Bool(b), []) => {
            numbers.push(Scalar::Bool(*b));
            true
        }
        _ => false,
    }
}

/// A value as case files encode it, `{"tensor": {...}}`, where that is what braces hold.
fn encoded(spec: &Spec) -> Option<Value> {
    let Spec::Dict(pairs) = spec else { return None };
    match pairs.as_slice() {
        [(Spec::Str(_), _)] => case::decode(&plain(spec)?).ok(),
        _ => None,
    }
}

/// The same as JSON.
fn plain(spec: &Spec) -> Option<serde_json::Value> {
    Some(match spec {
        Spec::Int(n) => json!(n),
        Spec::Float(x) => json!(x),
        Spec::Bool(b) => json!(b),
        Spec::Str(text) => json!(text),
        Spec::None => json!(null),
        Spec::List(items) => json!(items.iter().map(plain).collect::<Option<Vec<_>>>()?),
        Spec::Dict(pairs) => {
            let pair = |(key, value): &(Spec, Spec)| match key {
                Spec::Str(key) => Some((key.clone(), plain(value)?)),
                _ => None,
            };
            serde_json::Value::Object(pairs.iter().map(pair).collect::<Option<_>>()?)
        }
        Spec::Random { .. } | Spec::File(_) | Spec::Tuple(_) => return None,
    })
}
