//! What ops mean, one element at a time: the oracle of kernels and rules, for tests alone.
//!
//! Written from what PyTorch documents, in plain loops over 64-bit numbers: slow, and with nothing in common with the kernels
//! that programs run. Of the engine it knows dtypes, values and how a tensor lies in memory; it knows no op row, no kernel, no
//! evaluator and none of the engine's views and promotion, so that a fault in one of these is not here too.
//!
//! An op that it knows need not be known for all arguments: [`Outside`] says why there is no answer.

mod array;
mod contract;
mod elementwise;
mod number;
mod promote;
mod reduce;
mod scalar;
mod shape;
mod tensors;
#[cfg(test)]
mod tests;

use flambeau_base::value::{Dict, Value};

/// Why the interpreter gives no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outside {
    /// It does not know the op, or not with such arguments.
    Unknown,
    /// The definition has no result for these arguments: running the op must raise.
    Refused(String),
    /// The definition leaves open what the result is.
    Open(&'static str),
}

type Answer<T> = Result<T, Outside>;

fn refused<T>(why: &str) -> Answer<T> {
    Err(Outside::Refused(why.to_string()))
}

/// The results of an op, as `aten::add` with its overload `Tensor`, on arguments in the order of its schema with defaults filled
/// in, attributes behind them. Arguments are not changed, and tensors that are computed share no memory with them.
pub fn call(name: &str, overload: &str, arguments: &[Value]) -> Result<Vec<Value>, Outside> {
    let one = |value| Ok(vec![value]);
    match (name, arguments) {
        ("prim::DictConstruct", _) => one(dictionary(arguments)?),
        ("prim::ListUnpack", [Value::List(list)]) => Ok(list.to_vec()),
        ("prim::unchecked_cast" | "prim::unchecked_unwrap_optional", [value]) => one(value.clone()),
        ("aten::_unwrap_optional", [Value::None]) => refused("None is not a value"),
        ("aten::_unwrap_optional", [value]) => one(value.clone()),
        ("aten::__is__", [a, b]) => one(Value::Bool(is_same(a, b)?)),
        ("aten::__isnot__", [a, b]) => one(Value::Bool(!is_same(a, b)?)),
        _ => match name.split_once("::") {
            Some(("aten" | "prim", own)) => of_names(own, overload, arguments),
            _ => Err(Outside::Unknown),
        },
    }
}

fn of_names(name: &str, overload: &str, arguments: &[Value]) -> Result<Vec<Value>, Outside> {
    let of_tensors = arguments.iter().any(|value| match value {
        Value::Tensor(_) => true,
        Value::List(list) => list.element_type().is_tensor(),
        _ => false,
    });
    if of_tensors && let Some(found) = tensors::call(name, overload, arguments) {
        return found;
    }
    if name == "NumToTensor" {
        return Ok(vec![tensors::of_number(arguments)?]);
    }
    // One number of a kind that is not known: such ops keep 32 bits, which nothing says.
    if overload == "Scalar" && arguments.len() == 1 && name != "Int" && name != "Float" {
        return Err(Outside::Unknown);
    }
    number::call(name, arguments).unwrap_or(Err(Outside::Unknown)).map(|value| vec![value])
}

/// Keys and values by turns.
fn dictionary(arguments: &[Value]) -> Answer<Value> {
    let [key, value, ..] = arguments else { return Err(Outside::Unknown) };
    let dict = Dict::new(key.ty(), value.ty());
    for entry in arguments.chunks_exact(2) {
        dict.insert(&entry[0], entry[1].clone()).map_err(|e| Outside::Refused(e.message().to_string()))?;
    }
    Ok(Value::Dict(dict))
}

/// Python's `is`, of values of which it is said what they are.
fn is_same(a: &Value, b: &Value) -> Answer<bool> {
    match (a, b) {
        (Value::None, Value::None) => Ok(true),
        (Value::None, _) | (_, Value::None) => Ok(false),
        (Value::Int(a), Value::Int(b)) => Ok(a == b),
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        _ => Err(Outside::Open("whether two objects are one")),
    }
}

/// Whether an op has steps of which it is open whether each is rounded: a result near zero is as exact as they are.
pub fn leaves_rounding_open(name: &str) -> bool {
    let own = name.trim_start_matches("aten::").trim_start_matches("special_");
    matches!(
        own,
        "add" | "sub" | "subtract" | "rsub" | "addcmul" | "addcdiv" | "sinc" | "logaddexp" | "logaddexp2"
    )
}

/// Whether an op may give either zero where both signs meet: of two zeros none is the larger.
pub fn leaves_sign_of_zero_open(name: &str) -> bool {
    let own = name.trim_start_matches("aten::");
    matches!(
        own,
        "max"
            | "min"
            | "amax"
            | "amin"
            | "maximum"
            | "minimum"
            | "fmax"
            | "fmin"
            | "relu"
            | "relu6"
            | "clamp_min"
            | "clamp_max"
            | "clamp"
            | "clip"
            | "hardtanh"
    )
}
