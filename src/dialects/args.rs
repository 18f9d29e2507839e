//! Typed access to the arguments of one call of an op, that raises PyTorch's kind of error.

use super::{Args, Outputs};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Attr, Type};
use crate::tensor::{DType, Device, Scalar, Tensor};
use crate::value::{Dict, List, Value};
use smallvec::SmallVec;

impl<'a> Args<'a> {
    /// The n-th argument.
    pub fn value(&self, n: usize) -> Result<&'a Value> {
        self.values.get(n).ok_or_else(|| {
            Diagnostic::internal(format!(
                "{} was called with {} arguments",
                self.op.name(),
                self.values.len()
            ))
        })
    }

    /// Adds the op's and the argument's name to a mismatch.
    fn context<T>(&self, n: usize, result: Result<T>) -> Result<T> {
        result.map_err(|d| {
            let name = self.op.schema().ok().and_then(|s| s.arguments.get(n)).map_or("", |a| a.name.as_str());
            let message =
                format!("{}() {} for argument '{name}' (position {n})", self.op.name(), d.message());
            Diagnostic::runtime(message)
        })
    }

    /// A tensor.
    pub fn tensor(&self, n: usize) -> Result<&'a Tensor> {
        self.context(n, self.value(n)?.to_tensor())
    }

    /// A tensor or None.
    pub fn opt_tensor(&self, n: usize) -> Result<Option<&'a Tensor>> {
        if self.value(n)?.is_none() { Ok(None) } else { self.tensor(n).map(Some) }
    }

    /// An int.
    pub fn int(&self, n: usize) -> Result<i64> {
        self.context(n, self.value(n)?.to_int())
    }

    /// An int or None.
    pub fn opt_int(&self, n: usize) -> Result<Option<i64>> {
        if self.value(n)?.is_none() { Ok(None) } else { self.int(n).map(Some) }
    }

    /// A float.
    pub fn float(&self, n: usize) -> Result<f64> {
        self.context(n, self.value(n)?.to_float())
    }

    /// A float or None.
    pub fn opt_float(&self, n: usize) -> Result<Option<f64>> {
        if self.value(n)?.is_none() { Ok(None) } else { self.float(n).map(Some) }
    }

    /// A bool.
    pub fn bool(&self, n: usize) -> Result<bool> {
        self.context(n, self.value(n)?.to_bool())
    }

    /// A bool or None.
    pub fn opt_bool(&self, n: usize) -> Result<Option<bool>> {
        if self.value(n)?.is_none() { Ok(None) } else { self.bool(n).map(Some) }
    }

    /// A number.
    pub fn scalar(&self, n: usize) -> Result<Scalar> {
        self.context(n, self.value(n)?.to_scalar())
    }

    /// A number or None.
    pub fn opt_scalar(&self, n: usize) -> Result<Option<Scalar>> {
        if self.value(n)?.is_none() { Ok(None) } else { self.scalar(n).map(Some) }
    }

    /// Text.
    pub fn str(&self, n: usize) -> Result<&'a str> {
        self.context(n, self.value(n)?.to_str())
    }

    /// Text or None.
    pub fn opt_str(&self, n: usize) -> Result<Option<&'a str>> {
        if self.value(n)?.is_none() { Ok(None) } else { self.str(n).map(Some) }
    }

    /// A list.
    pub fn list(&self, n: usize) -> Result<&'a List> {
        self.context(n, self.value(n)?.to_list())
    }

    /// A dictionary.
    pub fn dict(&self, n: usize) -> Result<&'a Dict> {
        self.context(n, self.value(n)?.to_dict())
    }

    /// A list of ints; a single int counts as a list of one.
    pub fn ints(&self, n: usize) -> Result<Vec<i64>> {
        match self.value(n)? {
            Value::Int(x) => Ok(vec![*x]),
            other => self.context(n, other.to_ints()),
        }
    }

    /// A list of ints, or None.
    pub fn opt_ints(&self, n: usize) -> Result<Option<Vec<i64>>> {
        if self.value(n)?.is_none() { Ok(None) } else { self.ints(n).map(Some) }
    }

    /// A list of exactly `len` ints; a single int (or a list of one) stands for all of them.
    pub fn ints_of(&self, n: usize, len: usize) -> Result<Vec<i64>> {
        let ints = self.ints(n)?;
        if ints.len() == 1 && len != 1 { Ok(vec![ints[0]; len]) } else { Ok(ints) }
    }

    /// A list of tensors.
    pub fn tensors(&self, n: usize) -> Result<Vec<Tensor>> {
        self.context(n, self.value(n)?.to_tensors())
    }

    /// A list of tensors some of which may be None.
    pub fn opt_tensors(&self, n: usize) -> Result<Vec<Option<Tensor>>> {
        let items = self.list(n)?.to_vec();
        items
            .into_iter()
            .map(|v| if v.is_none() { Ok(None) } else { v.to_tensor().cloned().map(Some) })
            .collect()
    }

    /// A dtype given as its code, or None.
    pub fn opt_dtype(&self, n: usize) -> Result<Option<DType>> {
        let Some(code) = self.opt_int(n)? else { return Ok(None) };
        DType::from_code(code)
            .map(Some)
            .ok_or_else(|| Diagnostic::unsupported(format!("dtype code {code} in {}", self.op.name())))
    }

    /// A dtype given as its code.
    pub fn dtype(&self, n: usize) -> Result<DType> {
        self.opt_dtype(n)?
            .ok_or_else(|| Diagnostic::runtime(format!("{}() needs a dtype at position {n}", self.op.name())))
    }

    /// A device or None; text is converted.
    pub fn opt_device(&self, n: usize) -> Result<Option<Device>> {
        match self.value(n)? {
            Value::None => Ok(None),
            Value::Device(d) => Ok(Some((**d).clone())),
            Value::Str(s) => s.parse().map(Some).map_err(Diagnostic::runtime),
            other => Err(Diagnostic::runtime(format!("Expected a device but got {}", other.kind_name()))),
        }
    }

    /// An attribute of the node.
    pub fn attr(&self, name: &str) -> Option<&'a Attr> {
        self.node.attrs.iter().find(|(n, _)| *n == name).map(|(_, a)| a)
    }

    /// The declared type of the n-th result of the node, if called from one.
    pub fn result_type(&self, n: usize) -> Option<&'a Type> {
        self.node.result_types.get(n)
    }
}

/// One result.
pub fn one(value: impl Into<Value>) -> Result<Outputs> {
    Ok(SmallVec::from_iter([value.into()]))
}
