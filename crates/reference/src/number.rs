//! Ops over numbers, text, lists and dictionaries, as Python defines them. They know no tensors.

use crate::array::{dimension, float, truth};
use crate::scalar::{bits, compared, function, negative, power, product, quotient, remainder, sum};
use crate::shape::part;
use crate::{Answer, Outside, refused};
use flambeau_base::tensor::Scalar;
use flambeau_base::value::{Dict, Value};

/// An op of a dialect over values that are not tensors; None for one that is unknown.
pub(crate) fn call(name: &str, arguments: &[Value]) -> Option<Answer<Value>> {
    if let [Value::List(list), others @ ..] = arguments {
        return of_list(name, &list.to_vec(), list.element_type(), others);
    }
    if let [Value::Dict(dict), others @ ..] = arguments {
        return of_dict(name, dict, others);
    }
    if let [Value::Str(a), Value::Str(b)] = arguments {
        return Some(Ok(match name {
            "add" => Value::str(format!("{}{}", &**a, &**b)),
            "eq" => Value::Bool(**a == **b),
            "ne" => Value::Bool(**a != **b),
            // By code points.
            "lt" => Value::Bool(a.chars().lt(b.chars())),
            "le" => Value::Bool(a.chars().le(b.chars())),
            "gt" => Value::Bool(a.chars().gt(b.chars())),
            "ge" => Value::Bool(a.chars().ge(b.chars())),
            "__is__" | "__isnot__" => return None,
            _ => return None,
        }));
    }
    let numbers: Vec<Scalar> = arguments.iter().map(number).collect::<Option<_>>()?;
    match numbers.as_slice() {
        [x] => of_one(name, *x),
        [a, b] => of_two(name, *a, *b),
        _ => None,
    }
}

fn number(value: &Value) -> Option<Scalar> {
    Some(match value {
        Value::Int(x) => Scalar::Int(*x),
        Value::Float(x) => Scalar::Float(*x),
        Value::Bool(x) => Scalar::Bool(*x),
        Value::Complex(x) => Scalar::Complex(*x),
        _ => return None,
    })
}

/// A whole number that is left of a float.
fn to_int(x: f64) -> Answer<Scalar> {
    let limit = 2f64.powi(63);
    if -limit <= x && x < limit {
        Ok(Scalar::Int(x as i64))
    } else {
        Err(Outside::Open("a float that is not an int"))
    }
}

fn of_one(name: &str, x: Scalar) -> Option<Answer<Value>> {
    let found = match (name, x) {
        ("__not__", Scalar::Bool(x)) => Ok(Scalar::Bool(!x)),
        ("Bool", x) => Ok(Scalar::Bool(truth(x))),
        ("Int", Scalar::Float(x)) => to_int(x.trunc()),
        ("Int", Scalar::Bool(x)) => Ok(Scalar::Int(i64::from(x))),
        ("Int", Scalar::Int(x)) => Ok(Scalar::Int(x)),
        ("Float", Scalar::Int(_) | Scalar::Bool(_) | Scalar::Float(_)) => Ok(Scalar::Float(float(x))),
        ("neg", x) => negative(x),
        ("ceil", Scalar::Int(x)) => Ok(Scalar::Int(x)),
        ("floor", Scalar::Int(x)) if x.unsigned_abs() <= 1 << 53 => Ok(Scalar::Int(x)),
        ("ceil", Scalar::Float(x)) => to_int(x.ceil()),
        ("floor", Scalar::Float(x)) => to_int(x.floor()),
        ("exp" | "expm1" | "sqrt", Scalar::Int(_) | Scalar::Float(_)) => function(name, x),
        _ => return None,
    };
    Some(found.map(Value::from))
}

fn of_two(name: &str, a: Scalar, b: Scalar) -> Option<Answer<Value>> {
    // Numbers of two kinds meet in the one that holds more.
    let (a, b) = match (a, b) {
        (Scalar::Float(_), Scalar::Int(_)) | (Scalar::Int(_), Scalar::Float(_))
            if !matches!(name, "eq" | "ne" | "lt" | "le" | "gt" | "ge") =>
        {
            (Scalar::Float(float(a)), Scalar::Float(float(b)))
        }
        pair => pair,
    };
    let found = match (name, a, b) {
        ("add", ..) => sum(false, a, b),
        ("sub", ..) => sum(true, a, b),
        ("mul", ..) => product(a, b),
        // TorchScript divides ints and floats by zero as floats are divided.
        ("div", Scalar::Complex(_), _) | ("div", _, Scalar::Complex(_)) if !truth(b) => return None,
        ("div", ..) => quotient(a, b),
        ("remainder", Scalar::Int(_), Scalar::Int(_)) => remainder(a, b),
        ("floordiv", Scalar::Int(_), Scalar::Int(0)) => refused("division by zero"),
        ("floordiv", Scalar::Int(a), Scalar::Int(b)) => {
            let towards_zero = a.wrapping_div(b);
            let is_below = a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
            Ok(Scalar::Int(if is_below { towards_zero - 1 } else { towards_zero }))
        }
        ("pow", Scalar::Float(_), Scalar::Float(_)) => power(a, b),
        ("eq" | "ne" | "lt" | "le" | "gt" | "ge", ..) => compared(name, a, b).map(Scalar::Bool),
        ("__and__" | "__or__" | "__xor__", ..) => bits(name, a, b),
        ("__is__", ..) => return None,
        // Python keeps the first of two that are as large.
        ("max", ..) => compared("gt", b, a).map(|is_larger| if is_larger { b } else { a }),
        ("min", ..) => compared("lt", b, a).map(|is_smaller| if is_smaller { b } else { a }),
        _ => return None,
    };
    Some(found.map(Value::from))
}

fn of_list(
    name: &str,
    items: &[Value],
    element: &flambeau_base::ir::Type,
    others: &[Value],
) -> Option<Answer<Value>> {
    let list = |items: Vec<Value>| Ok(Value::list(element.clone(), items));
    let bound = |value: &Value| match value {
        Value::None => Some(None),
        Value::Int(x) => Some(Some(*x)),
        _ => None,
    };
    Some(match (name, others) {
        ("len", []) => Ok(Value::Int(items.len() as i64)),
        ("add", [Value::List(more)]) => list([items, &more.to_vec()].concat()),
        ("__getitem__", [Value::Int(at)]) => dimension(*at, items.len()).map(|at| items[at].clone()),
        ("eq" | "ne", [Value::List(other)]) => {
            let other = other.to_vec();
            let mut is_equal = items.len() == other.len();
            for (a, b) in items.iter().zip(&other) {
                is_equal &= match (a, b) {
                    (Value::Str(a), Value::Str(b)) => **a == **b,
                    _ => compared("eq", number(a)?, number(b)?).ok()?,
                };
            }
            Ok(Value::Bool(is_equal == (name == "eq")))
        }
        ("slice", [_, _, Value::Int(step)]) if *step < 0 => return None,
        ("slice", [start, end, Value::Int(step)]) => part(items.len(), bound(start)?, bound(end)?, *step)
            .and_then(|(start, count)| {
                let at = |n: usize| items[start + n.saturating_mul(*step as usize)].clone();
                list((0..count).map(at).collect())
            }),
        _ => return None,
    })
}

fn of_dict(name: &str, dict: &Dict, others: &[Value]) -> Option<Answer<Value>> {
    let entries: Vec<(Value, Value)> =
        dict.entries().iter().map(|(key, value)| (key.to_value(), value.clone())).collect();
    match (name, others) {
        ("len", []) => Some(Ok(Value::Int(entries.len() as i64))),
        ("__getitem__", [wanted]) => {
            let is_wanted = |key: &Value| match (key, wanted) {
                (Value::Str(a), Value::Str(b)) => **a == **b,
                (a, b) => a.is_same(b),
            };
            let found = entries.into_iter().find(|(key, _)| is_wanted(key));
            Some(found.map_or(refused("there is no such key"), |(_, value)| Ok(value)))
        }
        _ => None,
    }
}
