//! Whether a run-time value has a type.

use crate::ir::{Module, Type, TypeKind, is_subtype_of};
use crate::value::Value;

/// Types nested deeper than this are not looked into.
const MAX_DEPTH: usize = 64;

/// Whether a value is an instance of a type, as TorchScript's `isinstance` judges: no conversions, containers by
/// the element type they were made with, interfaces by the methods of the value's class and their schemas.
pub fn is_instance(value: &Value, ty: &Type, module: &Module) -> bool {
    check(value, ty, module, 0)
}

fn check(value: &Value, ty: &Type, module: &Module, depth: usize) -> bool {
    use TypeKind as K;
    if depth > MAX_DEPTH {
        return false;
    }
    match (ty.kind(), value) {
        (K::Any, _) => true,
        (K::Optional(_), Value::None) => true,
        (K::Optional(t), _) => check(value, t, module, depth + 1),
        (K::Union(members), _) => members.iter().any(|t| check(value, t, module, depth + 1)),
        (K::Tensor(_), Value::Tensor(_)) => true,
        (K::Int, Value::Int(_)) | (K::Float, Value::Float(_)) | (K::Complex, Value::Complex(_)) => true,
        (K::Number, Value::Int(_) | Value::Float(_) | Value::Complex(_)) => true,
        (K::Bool, Value::Bool(_)) | (K::Str, Value::Str(_)) | (K::None, Value::None) => true,
        (K::Device, Value::Device(_)) | (K::Generator, Value::Generator(_)) => true,
        (K::ScalarType | K::Layout | K::MemoryFormat, Value::Int(_)) => true,
        (K::AnyList, Value::List(_)) | (K::AnyTuple, Value::Tuple(_)) => true,
        (K::AnyEnum, Value::Enum(_)) | (K::AnyClass, Value::Object(_)) => true,
        (K::List(t), Value::List(list)) => same_element(list.element_type(), t),
        (K::Dict(k, v), Value::Dict(dict)) => {
            same_element(dict.key_type(), k) && same_element(dict.value_type(), v)
        }
        (K::Tuple(elements, _), Value::Tuple(tuple)) => {
            let items = tuple.items();
            items.len() == elements.len()
                && items.iter().zip(elements.iter()).all(|(v, t)| check(v, t, module, depth + 1))
        }
        (K::Future(t), Value::Future(f)) | (K::Await(t), Value::Future(f)) => {
            same_element(f.element_type(), t)
        }
        (K::Class(name), Value::Object(object)) => object.class() == *name,
        // A dialect's own value: an object whose class is the name of the type.
        (K::Dialect(dialect, name, _), Value::Object(object)) => {
            object.is_native()
                && object.class().as_str().split_once('.') == Some((dialect.as_str(), name.as_str()))
        }
        (K::Interface(_), Value::Object(object)) => is_subtype_of(&Type::class(object.class()), ty, module),
        (K::Enum(name, _), Value::Enum(member)) => member.class == *name,
        (K::Function(_), Value::Function(_)) => true,
        _ => false,
    }
}

/// Whether a container made for elements of one type counts as one of another: refinements of tensors do not matter.
fn same_element(actual: &Type, wanted: &Type) -> bool {
    actual == wanted || (actual.is_tensor() && wanted.is_tensor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bools_are_no_ints_and_lists_are_invariant() {
        let module = Module::default();
        assert!(!is_instance(&Value::Bool(true), &Type::int(), &module));
        assert!(is_instance(&Value::None, &Type::optional(Type::int()), &module));
        let ints = Value::ints([1]);
        assert!(is_instance(&ints, &Type::list(Type::int()), &module));
        assert!(!is_instance(&ints, &Type::list(Type::float()), &module));
    }
}
