//! What rules ask of the operands of an op, and the results that they make of them. No rule is known here.

use super::known::as_tensor;
use super::{Known, Operands, PRESERVE, Strides, Trials, Unknown, layouts};
use crate::dialects::Op;
use crate::ir::{Dim, TensorType};
use crate::tensor::DType;
use std::cell::Cell;

impl<'a> Operands<'a> {
    /// Operands of which little is tried.
    pub fn new(op: &'a Op, values: &'a [Known], symbols: &'a Cell<i64>) -> Operands<'a> {
        Operands { op, values, symbols, trials: Trials::Small, open: None }
    }

    /// An argument by its name in the schema.
    pub fn get(&self, name: &str) -> Option<&'a Known> {
        let n = self.op.schema().ok()?.argument_index(name)?;
        self.values.get(n)
    }

    /// The n-th argument.
    pub fn at(&self, n: usize) -> Option<&'a Known> {
        self.values.get(n)
    }

    /// A tensor by name.
    pub fn tensor(&self, name: &str) -> Option<&'a TensorType> {
        as_tensor(self.get(name)?)
    }

    /// The first argument, which is a tensor in most schemas.
    pub fn first(&self) -> Option<&'a TensorType> {
        as_tensor(self.at(0)?)
    }

    /// The sizes of a tensor of known rank.
    pub fn sizes(&self, name: &str) -> Option<&'a [Dim]> {
        self.tensor(name)?.sizes.as_deref()
    }

    /// A constant int.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Known::Int(dim) => dim.known(),
            _ => None,
        }
    }

    /// An int that may be a symbol; Unknown where nothing is known of it.
    pub fn dim(&self, name: &str) -> Dim {
        match self.get(name) {
            Some(Known::Int(dim)) => *dim,
            _ => Dim::Unknown,
        }
    }

    /// A constant truth value.
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Known::Bool(x) => Some(*x),
            Known::Int(Dim::Known(x)) => Some(*x != 0),
            _ => None,
        }
    }

    /// A list of ints of known length, or one int as a list of one.
    pub fn dims(&self, name: &str) -> Option<Vec<Dim>> {
        match self.get(name)? {
            Known::Ints(dims) => Some(dims.clone()),
            Known::Int(dim) => Some(vec![*dim]),
            Known::Items(items) => {
                items.iter().map(|k| if let Known::Int(d) = k { Some(*d) } else { None }).collect()
            }
            _ => None,
        }
    }

    /// A list of constant ints.
    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        self.dims(name)?.into_iter().map(Dim::known).collect()
    }

    /// Constant ints for `n` dimensions: one int stands for all.
    pub fn per_dim(&self, name: &str, n: usize) -> Option<Vec<i64>> {
        let ints = self.ints(name)?;
        match ints.len() {
            len if len == n => Some(ints),
            1 => Some(vec![ints[0]; n]),
            _ => None,
        }
    }

    /// Whether an argument is `None`, if that is known.
    pub fn is_none(&self, name: &str) -> Option<bool> {
        match self.get(name) {
            Some(Known::None) | None => Some(true),
            Some(Known::Nothing) => None,
            Some(_) => Some(false),
        }
    }

    /// The dtype that an argument asks for: `Ok(None)` where it is `None`, `Err` where it is unknown.
    pub fn dtype(&self, name: &str) -> Result<Option<DType>, Unknown> {
        match self.get(name) {
            Some(Known::None) | None => Ok(None),
            Some(Known::Int(Dim::Known(code))) => DType::from_code(*code).map(Some).ok_or(Unknown),
            Some(_) => Err(Unknown),
        }
    }

    /// The tensors of a list.
    pub fn tensors(&self, name: &str) -> Option<Vec<&'a TensorType>> {
        match self.get(name)? {
            Known::Items(items) => items.iter().map(as_tensor).collect(),
            _ => None,
        }
    }

    /// What all tensors of a list have in common whose length is not known.
    pub fn each_tensor(&self, name: &str) -> Option<&'a TensorType> {
        match self.get(name)? {
            Known::Each(part) => as_tensor(part),
            _ => None,
        }
    }

    /// A fresh symbol.
    pub fn fresh(&self) -> Dim {
        self.symbols.set(self.symbols.get() - 1);
        Dim::Symbol(self.symbols.get())
    }

    /// A result like `like` with other sizes, laid out densely where the sizes are numbers.
    pub fn result(&self, like: &TensorType, dtype: Option<DType>, sizes: Option<Vec<Dim>>) -> TensorType {
        let grad = dtype.is_some_and(|d| !d.is_floating() && !d.is_complex());
        TensorType {
            dtype,
            device: like.device.clone(),
            strides: sizes.as_deref().and_then(layouts::dense),
            sizes: sizes.map(Into::into),
            requires_grad: if grad || like.requires_grad == Some(false) { Some(false) } else { None },
            ..TensorType::default()
        }
    }

    /// A result of a kernel whose results lie as its arguments do: dense where all of these are. Else its layout is not
    /// known.
    pub fn following(&self, like: &TensorType, dtype: Option<DType>, sizes: Option<Vec<Dim>>) -> TensorType {
        let mut result = self.result(like, dtype, sizes);
        if !self.tensors_of_call().iter().all(|t| layouts::is_dense(t)) {
            result.strides = None;
        }
        result
    }

    /// The same of a kernel on images: channels are innermost where they are in the first argument.
    pub fn following_image(
        &self,
        like: &TensorType,
        dtype: Option<DType>,
        sizes: Option<Vec<Dim>>,
    ) -> TensorType {
        let mut result = self.following(like, dtype, sizes);
        if let (Some(first), Some([_, _, _, _])) = (self.first(), result.sizes.as_deref()) {
            result.strides = layouts::images(&[first], result.sizes.as_deref());
        }
        result
    }

    /// The memory format that is asked for, [`PRESERVE`] where none is; None where it is unknown.
    pub fn memory_format(&self) -> Option<i64> {
        match self.get("memory_format") {
            Some(Known::Int(dim)) => dim.known(),
            Some(Known::None) | None => Some(PRESERVE),
            Some(_) => None,
        }
    }

    /// The strides of a copy of the first argument in the memory format that is asked for, where they are known.
    pub fn preserved(&self) -> Option<Strides> {
        let first = self.first()?;
        match self.memory_format()? {
            PRESERVE => {
                let strides = first.strides.as_ref()?;
                layouts::is_packed(first.sizes.as_deref()?, strides).then(|| strides.clone())
            }
            format => layouts::like(first, format),
        }
    }

    /// All tensors among the arguments.
    pub(super) fn tensors_of_call(&self) -> Vec<&'a TensorType> {
        let mut tensors = Vec::new();
        let mut work: Vec<&Known> = self.values.iter().collect();
        while let Some(known) = work.pop() {
            match known {
                Known::Tensor(t) => tensors.push(t),
                Known::Items(items) => work.extend(items),
                Known::Each(part) => work.push(part),
                _ => {}
            }
        }
        tensors
    }

    /// A result like `like` whose layout is not known.
    pub fn looking(&self, like: &TensorType, sizes: Option<Vec<Dim>>) -> TensorType {
        TensorType { strides: None, ..self.result(like, like.dtype, sizes) }
    }

    /// What all tensors among the operands have in common besides dtype and sizes.
    pub fn common(&self) -> TensorType {
        let tensors = self.tensors_of_call();
        let device = tensors.first().and_then(|t| t.device.clone());
        let device = device.filter(|d| tensors.iter().all(|t| t.device.as_ref() == Some(d)));
        let no_grad = !tensors.is_empty() && tensors.iter().all(|t| t.requires_grad == Some(false));
        TensorType { device, requires_grad: no_grad.then_some(false), ..TensorType::default() }
    }
}
