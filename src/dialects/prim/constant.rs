//! Constants: an attribute and a type make a value, and a value makes an attribute.

use crate::diag::{Diagnostic, Result};
use crate::dialects::constraint::Law;
use crate::dialects::structure::Structure;
use crate::dialects::{Args, OpDef, Outputs, host, one};
use crate::ir::{Attr, Held, Symbol, Type, TypeKind};
use crate::tensor::Scalar;
use crate::value::{Dict, EnumValue, List, Object, Tuple, Value};
use std::sync::Arc;

/// Attributes nested deeper than this are refused.
const MAX_DEPTH: usize = 200;

/// The rows.
pub static OPS: &[OpDef] = &[
    host("prim::Constant() -> Any", constant)
        .laws(&[Law::Structure(Structure::Leaf)])
        .doc("a value that the program text gives"),
    host("prim::Uninitialized() -> Any", uninitialized).doc("the value of a variable that is never read"),
];

fn constant(args: &Args<'_>) -> Result<Outputs> {
    one(value(args.node.attrs, args.result_type(0))?)
}

fn uninitialized(_: &Args<'_>) -> Result<Outputs> {
    one(Value::Uninitialized)
}

/// The value of a constant, from its attributes (`value`, or `name` for a function) and its type. Ints stand for
/// bools and text for devices where the type says so.
pub fn value(attrs: &[(Symbol, Attr)], ty: Option<&Type>) -> Result<Value> {
    let find = |name: &str| attrs.iter().find(|(n, _)| *n == name).map(|(_, a)| a);
    if let Some(attr) = find("value") {
        return from_attr(attr, ty, 0);
    }
    match (ty.map(Type::kind), find("name").and_then(Attr::as_str)) {
        (Some(TypeKind::Function(name)), None) => Ok(Value::Function(*name)),
        (Some(TypeKind::Function(known)), Some(name)) => {
            // Graph text knows only the last component; a frontend knows the qualified name.
            let qualified = known.as_str().ends_with(name);
            Ok(Value::Function(if qualified { *known } else { Symbol::new(name) }))
        }
        (_, Some(name)) => Ok(Value::Function(Symbol::new(name))),
        (_, None) => Ok(Value::None),
    }
}

/// Attribute of constants without dimensions that a pass has computed: these are tensors, see [`number`].
pub const COMPUTED: &str = "computed";

/// The number that a constant tensor without dimensions stands for: traces record a program's numbers as such tensors. None for
/// other constants, and for tensors that a pass has computed.
pub fn number(attrs: &[(Symbol, Attr)], ty: Option<&Type>) -> Option<Scalar> {
    match attrs.iter().find(|(name, _)| *name == "value")?.1 {
        Attr::Tensor(_) if attrs.iter().all(|(name, _)| *name != COMPUTED) => {}
        _ => return None,
    }
    match value(attrs, ty) {
        Ok(Value::Tensor(tensor)) if tensor.rank() == 0 => tensor.item().ok(),
        _ => None,
    }
}

fn from_attr(attr: &Attr, ty: Option<&Type>, depth: usize) -> Result<Value> {
    if depth > MAX_DEPTH {
        return Err(Diagnostic::unsupported(format!("constants nested more than {MAX_DEPTH} deep")));
    }
    let kind = ty.map(Type::kind);
    if let Some(TypeKind::Optional(inner)) = kind
        && !matches!(attr, Attr::None)
    {
        return from_attr(attr, Some(inner), depth + 1);
    }
    Ok(match attr {
        Attr::None => Value::None,
        Attr::Int(x) => match kind {
            Some(TypeKind::Bool) => Value::Bool(*x != 0),
            Some(TypeKind::Float) => Value::Float(*x as f64),
            _ => Value::Int(*x),
        },
        Attr::Bool(x) => match kind {
            Some(TypeKind::Int) => Value::Int(i64::from(*x)),
            _ => Value::Bool(*x),
        },
        Attr::Float(x) => Value::Float(*x),
        Attr::Complex(x) => Value::Complex(*x),
        Attr::Str(x) => match kind {
            Some(TypeKind::Device) => device(x)?,
            _ => Value::str(Arc::clone(x)),
        },
        Attr::Device(x) => Value::Device(Arc::new(x.clone())),
        Attr::Tensor(x) => Value::Tensor(x.clone()),
        Attr::Ints(items) => match element(ty) {
            Some(t) if matches!(t.kind(), TypeKind::Bool) => {
                Value::list(Type::bool(), items.iter().map(|x| Value::Bool(*x != 0)).collect())
            }
            Some(t) if matches!(t.kind(), TypeKind::Float) => {
                Value::list(Type::float(), items.iter().map(|x| Value::Float(*x as f64)).collect())
            }
            _ => Value::ints(items.iter().copied()),
        },
        Attr::Floats(items) => Value::list(Type::float(), items.iter().copied().map(Value::Float).collect()),
        Attr::Complexes(items) => {
            Value::list(Type::complex(), items.iter().copied().map(Value::Complex).collect())
        }
        Attr::Strs(items) => {
            Value::list(Type::str(), items.iter().map(|x| Value::str(Arc::clone(x))).collect())
        }
        Attr::Tensors(items) => Value::tensors(items.iter().cloned()),
        Attr::List(items) => list(items, ty, depth)?,
        Attr::Tuple(items) => tuple(items, ty, depth)?,
        Attr::Dict(entries) => dict(entries, ty, depth)?,
        Attr::Enum(member) => {
            let (class, name, value) = &**member;
            Value::Enum(Arc::new(EnumValue {
                class: Symbol::new(class),
                name: Symbol::new(name),
                value: from_attr(value, None, depth + 1)?,
            }))
        }
        Attr::Object(held) => Value::Object(Object::with_native(held.class, Arc::clone(&held.content))),
        Attr::Raw(text) => {
            return Err(Diagnostic::unsupported(format!("a constant whose text is not understood: {text}")));
        }
        Attr::Graph(_) | Attr::Graphs(_) | Attr::Type(_) | Attr::Types(_) => {
            return Err(Diagnostic::verify("a graph or type cannot be the value of a constant"));
        }
    })
}

fn device(text: &str) -> Result<Value> {
    text.parse().map(|d| Value::Device(Arc::new(d))).map_err(Diagnostic::runtime)
}

fn element(ty: Option<&Type>) -> Option<&Type> {
    ty.and_then(Type::element)
}

fn list(items: &[Attr], ty: Option<&Type>, depth: usize) -> Result<Value> {
    let known = element(ty);
    let values: Vec<Value> = items.iter().map(|a| from_attr(a, known, depth + 1)).collect::<Result<_>>()?;
    let element = known.cloned().or_else(|| values.first().map(Value::ty)).unwrap_or_else(Type::tensor);
    Ok(Value::list(element, values))
}

fn tuple(items: &[Attr], ty: Option<&Type>, depth: usize) -> Result<Value> {
    let types = ty.and_then(Type::tuple_elements);
    let item = |(n, a): (usize, &Attr)| from_attr(a, types.and_then(|t| t.get(n)), depth + 1);
    let values = items.iter().enumerate().map(item).collect::<Result<Vec<_>>>()?;
    Ok(Value::Tuple(match ty.map(Type::kind) {
        Some(TypeKind::Tuple(_, Some(names))) => Tuple::named(Arc::clone(names), values),
        _ => Tuple::new(values),
    }))
}

fn dict(entries: &[(Attr, Attr)], ty: Option<&Type>, depth: usize) -> Result<Value> {
    let types = match ty.map(Type::kind) {
        Some(TypeKind::Dict(k, v)) => Some((k, v)),
        _ => None,
    };
    let mut values = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let key = from_attr(key, types.map(|t| t.0), depth + 1)?;
        values.push((key, from_attr(value, types.map(|t| t.1), depth + 1)?));
    }
    let (key, value) = match (types, values.first()) {
        (Some((k, v)), _) => (k.clone(), v.clone()),
        (None, Some((k, v))) => (k.ty(), v.ty()),
        (None, None) => (Type::str(), Type::tensor()),
    };
    let out = Dict::new(key, value);
    for (key, value) in values {
        out.insert(&key, value)?;
    }
    Ok(Value::Dict(out))
}

/// The attribute that stands for a value in a constant. None for what cannot be a constant: objects with attributes, futures,
/// and containers that hold them.
pub fn attr(value: &Value) -> Option<Attr> {
    attr_at(value, 0)
}

fn attr_at(value: &Value, depth: usize) -> Option<Attr> {
    if depth > MAX_DEPTH {
        return None;
    }
    let all = |items: &[Value]| items.iter().map(|v| attr_at(v, depth + 1)).collect::<Option<Vec<Attr>>>();
    Some(match value {
        Value::None => Attr::None,
        Value::Tensor(x) => Attr::Tensor(x.clone()),
        Value::Int(x) => Attr::Int(*x),
        Value::Float(x) => Attr::Float(*x),
        Value::Complex(x) => Attr::Complex(*x),
        Value::Bool(x) => Attr::Bool(*x),
        Value::Str(x) => Attr::Str(x.shared()),
        Value::Device(x) => Attr::Device((**x).clone()),
        Value::Tuple(x) => Attr::Tuple(all(x.items())?.into()),
        Value::List(x) => flat_list(x).or_else(|| Some(Attr::List(all(&x.to_vec())?.into())))?,
        Value::Dict(x) => {
            let entries = x.entries();
            let entry = |(k, v): (&crate::value::DictKey, &Value)| {
                Some((attr_at(&k.to_value(), depth + 1)?, attr_at(v, depth + 1)?))
            };
            Attr::Dict(entries.iter().map(entry).collect::<Option<Vec<_>>>()?.into())
        }
        Value::Enum(x) => {
            let value = attr_at(&x.value, depth + 1)?;
            Attr::Enum(Arc::new((x.class.to_string(), x.name.to_string(), value)))
        }
        Value::Object(x) => {
            let content = Arc::clone(x.content()?);
            Attr::Object(Held { class: x.class(), content })
        }
        Value::Generator(_) | Value::Future(_) | Value::Function(_) | Value::Uninitialized => return None,
    })
}

/// TorchScript's own flat lists.
fn flat_list(list: &List) -> Option<Attr> {
    let items = list.items();
    Some(match list.element_type().kind() {
        TypeKind::Int => {
            Attr::Ints(items.iter().map(|v| v.to_int().ok()).collect::<Option<Vec<_>>>()?.into())
        }
        TypeKind::Float => {
            Attr::Floats(items.iter().map(|v| v.to_float().ok()).collect::<Option<Vec<_>>>()?.into())
        }
        TypeKind::Str => Attr::Strs(
            items.iter().map(|v| v.to_str().ok().map(Arc::from)).collect::<Option<Vec<_>>>()?.into(),
        ),
        TypeKind::Tensor(_) => Attr::Tensors(
            items.iter().map(|v| v.to_tensor().ok().cloned()).collect::<Option<Vec<_>>>()?.into(),
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_decide_what_a_number_means() {
        let of = |attr: Attr, ty: Type| value(&[(Symbol::new("value"), attr)], Some(&ty));
        assert!(matches!(of(Attr::Int(1), Type::bool()), Ok(Value::Bool(true))));
        assert!(matches!(of(Attr::Int(1), Type::int()), Ok(Value::Int(1))));
        assert!(matches!(of(Attr::Str("cpu".into()), Type::device()), Ok(Value::Device(_))));
        assert!(matches!(value(&[], Some(&Type::none())), Ok(Value::None)));
    }

    #[test]
    fn values_survive_as_attributes() {
        let value_in = Value::tuple(vec![Value::ints([1, 2]), Value::str("a"), Value::Float(0.5)]);
        let ty = value_in.ty();
        let back = attr(&value_in).and_then(|a| value(&[(Symbol::new("value"), a)], Some(&ty)).ok());
        assert_eq!(format!("{:?}", back.expect("a constant")), format!("{value_in:?}"));
    }
}
