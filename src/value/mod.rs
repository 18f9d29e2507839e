//! Run-time values: what TorchScript calls an IValue.
//!
//! Numbers, text and tuples are immutable; tensors, lists, dictionaries, objects and futures are shared by
//! reference, so that a clone of a `Value` is the same object. This layer knows types and tensors, no op.

pub mod bytes;
mod container;
mod future;
#[cfg(test)]
mod future_tests;
pub mod generator;
mod model;
mod nested;
mod object;
pub mod python_text;
mod shared_generator;
mod string;
mod sync;
mod tensor_text;
pub mod text;
mod weak;

pub use model::{Dict, DictKey, EnumValue, Future, List, Native, Object, Tuple, Value};
pub use shared_generator::{SharedGenerator, StateKeeper, kept};
pub use string::Text;
pub use weak::WeakValue;

use crate::diag::{Diagnostic, Result, panics};
use crate::ir::{Type, TypeKind};
use crate::resources::Charge;
use crate::tensor::{Scalar, Tensor};
use std::sync::Arc;

impl Value {
    /// Text.
    pub fn str(text: impl Into<Text>) -> Value {
        Value::Str(text.into())
    }

    /// A list with a known element type.
    pub fn list(element: Type, items: Vec<Value>) -> Value {
        Value::List(List::new(element, items))
    }

    /// A list of ints.
    pub fn ints(items: impl IntoIterator<Item = i64>) -> Value {
        Value::list(Type::int(), items.into_iter().map(Value::Int).collect())
    }

    /// A list of tensors.
    pub fn tensors(items: impl IntoIterator<Item = Tensor>) -> Value {
        Value::list(Type::tensor(), items.into_iter().map(Value::Tensor).collect())
    }

    /// A plain tuple.
    pub fn tuple(items: Vec<Value>) -> Value {
        Value::Tuple(Tuple::new(items))
    }

    /// Whether it is `None`.
    pub fn is_none(&self) -> bool {
        matches!(self, Value::None)
    }

    /// The kind as text, for error messages.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Tensor(_) => "Tensor",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Complex(_) => "complex",
            Value::Bool(_) => "bool",
            Value::Str(_) => "str",
            Value::List(_) => "List",
            Value::Dict(_) => "Dict",
            Value::Tuple(_) => "Tuple",
            Value::Object(_) => "Object",
            Value::Enum(_) => "Enum",
            Value::Device(_) => "Device",
            Value::Generator(_) => "Generator",
            Value::Future(_) => "Future",
            Value::Function(_) => "Function",
            Value::Uninitialized => "Uninitialized",
        }
    }

    /// A tensor.
    pub fn to_tensor(&self) -> Result<&Tensor> {
        match self {
            Value::Tensor(t) => Ok(t),
            other => Err(other.mismatch("Tensor")),
        }
    }

    /// An integer; a bool counts as 0 or 1.
    pub fn to_int(&self) -> Result<i64> {
        match self {
            Value::Int(x) => Ok(*x),
            Value::Bool(x) => Ok(i64::from(*x)),
            other => Err(other.mismatch("int")),
        }
    }

    /// A float; an int is converted.
    pub fn to_float(&self) -> Result<f64> {
        match self {
            Value::Float(x) => Ok(*x),
            Value::Int(x) => Ok(*x as f64),
            other => Err(other.mismatch("float")),
        }
    }

    /// A truth value.
    pub fn to_bool(&self) -> Result<bool> {
        match self {
            Value::Bool(x) => Ok(*x),
            Value::Int(x) => Ok(*x != 0),
            other => Err(other.mismatch("bool")),
        }
    }

    /// A number of any kind.
    pub fn to_scalar(&self) -> Result<Scalar> {
        match self {
            Value::Int(x) => Ok(Scalar::Int(*x)),
            Value::Float(x) => Ok(Scalar::Float(*x)),
            Value::Complex(x) => Ok(Scalar::Complex(*x)),
            Value::Bool(x) => Ok(Scalar::Bool(*x)),
            Value::Tensor(t) => t.item(),
            other => Err(other.mismatch("number")),
        }
    }

    /// Text.
    pub fn to_str(&self) -> Result<&str> {
        match self {
            Value::Str(x) => Ok(x),
            other => Err(other.mismatch("str")),
        }
    }

    /// A list.
    pub fn to_list(&self) -> Result<&List> {
        match self {
            Value::List(x) => Ok(x),
            other => Err(other.mismatch("List")),
        }
    }

    /// A dictionary.
    pub fn to_dict(&self) -> Result<&Dict> {
        match self {
            Value::Dict(x) => Ok(x),
            other => Err(other.mismatch("Dict")),
        }
    }

    /// A tuple.
    pub fn to_tuple(&self) -> Result<&Tuple> {
        match self {
            Value::Tuple(x) => Ok(x),
            other => Err(other.mismatch("Tuple")),
        }
    }

    /// An object.
    pub fn to_object(&self) -> Result<&Object> {
        match self {
            Value::Object(x) => Ok(x),
            other => Err(other.mismatch("Object")),
        }
    }

    /// The ints of a list.
    pub fn to_ints(&self) -> Result<Vec<i64>> {
        self.to_list()?.items().iter().map(Value::to_int).collect()
    }

    /// The tensors of a list.
    pub fn to_tensors(&self) -> Result<Vec<Tensor>> {
        self.to_list()?.items().iter().map(|v| v.to_tensor().cloned()).collect()
    }

    fn mismatch(&self, expected: &str) -> Diagnostic {
        Diagnostic::runtime(format!("Expected a value of type '{expected}' but got {}", self.kind_name()))
    }

    /// Python's `is`: the same object for reference types, the same value for `None` and numbers. Each
    /// constant is an object of its own, members of enum classes too.
    pub fn is_same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::None, Value::None) => true,
            (Value::Tensor(a), Value::Tensor(b)) => a.same(b),
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Complex(a), Value::Complex(b)) => a == b,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Str(a), Value::Str(b)) => a.same(b),
            (Value::List(a), Value::List(b)) => a.same(b),
            (Value::Dict(a), Value::Dict(b)) => a.same(b),
            (Value::Tuple(a), Value::Tuple(b)) => a.same(b),
            (Value::Object(a), Value::Object(b)) => a.same(b),
            (Value::Enum(a), Value::Enum(b)) => Arc::ptr_eq(a, b),
            (Value::Device(a), Value::Device(b)) => a == b,
            (Value::Generator(a), Value::Generator(b)) => a.same(b),
            (Value::Future(a), Value::Future(b)) => a.same(b),
            (Value::Function(a), Value::Function(b)) => a == b,
            _ => false,
        }
    }

    /// The most precise type known from the value itself.
    pub fn ty(&self) -> Type {
        match self {
            Value::None | Value::Uninitialized => Type::none(),
            Value::Tensor(_) => Type::tensor(),
            Value::Int(_) => Type::int(),
            Value::Float(_) => Type::float(),
            Value::Complex(_) => Type::complex(),
            Value::Bool(_) => Type::bool(),
            Value::Str(_) => Type::str(),
            Value::List(x) => Type::list(x.element_type().clone()),
            Value::Dict(x) => Type::dict(x.key_type().clone(), x.value_type().clone()),
            Value::Tuple(x) => x.ty(),
            Value::Object(x) => Type::class(x.class()),
            Value::Enum(x) => Type::new(TypeKind::Enum(x.class, x.value.ty())),
            Value::Device(_) => Type::device(),
            Value::Generator(_) => Type::generator(),
            Value::Future(x) => Type::future(x.element_type().clone()),
            Value::Function(name) => Type::new(TypeKind::Function(*name)),
        }
    }
}

impl From<Tensor> for Value {
    fn from(x: Tensor) -> Value {
        Value::Tensor(x)
    }
}

impl From<i64> for Value {
    fn from(x: i64) -> Value {
        Value::Int(x)
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Value {
        Value::Float(x)
    }
}

impl From<bool> for Value {
    fn from(x: bool) -> Value {
        Value::Bool(x)
    }
}

impl From<Scalar> for Value {
    fn from(x: Scalar) -> Value {
        match x {
            Scalar::Int(x) => Value::Int(x),
            Scalar::Float(x) => Value::Float(x),
            Scalar::Complex(x) => Value::Complex(x),
            Scalar::Bool(x) => Value::Bool(x),
        }
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(x: Option<T>) -> Value {
        x.map_or(Value::None, Into::into)
    }
}
