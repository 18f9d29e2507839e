//! Values that are not kept alive by their holders.

use super::Value;
use super::object::WeakObject;
use crate::tensor::WeakTensor;

/// A tensor or an object that this does not keep alive.
pub enum WeakValue {
    /// A tensor.
    Tensor(WeakTensor),
    /// An object.
    Object(WeakObject),
}

impl WeakValue {
    /// None for values of other kinds.
    pub fn of(value: &Value) -> Option<WeakValue> {
        match value {
            Value::Tensor(tensor) => Some(WeakValue::Tensor(tensor.downgrade())),
            Value::Object(object) => Some(WeakValue::Object(object.downgrade())),
            _ => None,
        }
    }

    /// The value, if it still lives.
    pub fn upgrade(&self) -> Option<Value> {
        match self {
            WeakValue::Tensor(tensor) => tensor.upgrade().map(Value::Tensor),
            WeakValue::Object(object) => object.upgrade().map(Value::Object),
        }
    }
}
