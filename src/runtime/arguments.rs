//! Arguments of a call from outside: checked and converted as PyTorch does for callers in Python. Numbers
//! convert, lists and tuples stand for each other, containers are copied; tensors and objects are shared.

use super::constants::Constants;
use super::python_repr::{class_name, repr};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::Elem;
use crate::dialects::prim::instance::is_instance;
use crate::ir::subtype::why_not_subtype;
use crate::ir::{Argument, Dim, Function, Module, Schema, Symbol, TensorType, Type, TypeKind};
use crate::tensor::{DType, Tensor, view};
use crate::value::{Dict, List, Object, Tuple, Value};
use num_complex::Complex64;
use std::sync::Arc;

/// Values nested deeper than this are refused.
const MAX_DEPTH: usize = 100;

/// Why a value cannot become one of a type, in PyTorch's wording.
type Conversion = std::result::Result<Value, String>;

/// What a caller gives.
pub(super) struct Given {
    pub(super) positional: Vec<Value>,
    pub(super) named: Vec<(String, Value)>,
}

/// Arguments in schema order, `receiver` first where the schema is a method's.
pub(super) fn bind(
    schema: &Schema,
    receiver: Option<&Object>,
    arguments: Given,
    module: &Module,
    constants: &Constants,
) -> Result<Vec<Value>> {
    let mut given: Vec<Value> = receiver.map(|o| Value::Object(o.clone())).into_iter().collect();
    given.extend(arguments.positional);
    check_count(schema, given.len())?;
    let mut named = arguments.named;
    check_names(schema, given.len(), &named)?;
    let mut bound = Vec::with_capacity(schema.arguments.len());
    let mut given = given.into_iter();
    for (position, argument) in schema.arguments.iter().enumerate() {
        let by_name = named.iter().position(|(name, _)| argument.name == name.as_str());
        let by_name = by_name.map(|at| named.swap_remove(at).1);
        let value = if argument.keyword_only { by_name } else { given.next().or(by_name) };
        bound.push(match (value, &argument.default) {
            (Some(value), _) => convert(&spread(value.clone(), argument), &argument.ty, module, 0)
                .map_err(|details| mismatch(schema, argument, position, &value, &details))?,
            (None, Some(default)) => {
                constants.value(&[(Symbol::new("value"), default.clone())], Some(&argument.ty))?
            }
            (None, None) => {
                return Err(Diagnostic::runtime(format!(
                    "{}() is missing value for argument '{}'. Declaration: {}",
                    short_name(schema),
                    argument.name,
                    declaration(schema)
                )));
            }
        });
    }
    Ok(bound)
}

/// A value as one of a type, converted as arguments are. Fails, in PyTorch's wording, where it cannot become one.
pub fn converted(value: &Value, ty: &Type, module: &Module) -> Result<Value> {
    convert(value, ty, module, 0).map_err(Diagnostic::runtime)
}

/// One number stands for all elements of a list of fixed length.
fn spread(value: Value, argument: &Argument) -> Value {
    match (&value, argument.fixed_length) {
        (Value::Int(_) | Value::Float(_), Some(n)) => {
            let element = argument.ty.element().cloned().unwrap_or_else(|| value.ty());
            Value::list(element, vec![value; n])
        }
        _ => value,
    }
}

/// Names must be those of arguments that no position gives.
fn check_names(schema: &Schema, positional: usize, named: &[(String, Value)]) -> Result<()> {
    for (name, _) in named {
        match schema.arguments.iter().position(|a| a.name == name.as_str()) {
            None => {
                return Err(Diagnostic::runtime(format!(
                    "Unknown keyword argument '{name}' for operator '{}'. Schema: {}",
                    short_name(schema),
                    declaration(schema)
                )));
            }
            Some(at) if at < positional && !schema.arguments[at].keyword_only => {
                return Err(Diagnostic::runtime(format!(
                    "Argument '{name}' specified both as positional and keyword argument. Schema: {}",
                    declaration(schema)
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn check_count(schema: &Schema, given: usize) -> Result<()> {
    let positional = schema.arguments.iter().filter(|a| !a.keyword_only).count();
    if given <= positional || schema.is_vararg {
        return Ok(());
    }
    let (name, declaration) = (short_name(schema), declaration(schema));
    if positional < schema.arguments.len() {
        return Err(Diagnostic::runtime(format!(
            "{name}() takes {positional} positional argument(s) but {given} was/were given.  Declaration: {declaration}"
        )));
    }
    Err(Diagnostic::runtime(format!(
        "{name}() expected at most {positional} argument(s) but received {given} argument(s). Declaration: {declaration}"
    )))
}

fn mismatch(
    schema: &Schema,
    argument: &Argument,
    position: usize,
    value: &Value,
    details: &str,
) -> Diagnostic {
    let of_device = matches!((argument.ty.kind(), value), (TypeKind::Device, Value::Str(_)));
    if of_device || details.starts_with("Tracer cannot infer") {
        return Diagnostic::runtime(details);
    }
    let inferred = argument.ty.as_tensor().is_some_and(|t| t.inferred);
    let (expected, note) = if inferred {
        let name = argument.name;
        (
            "Tensor (inferred)".to_string(),
            format!(
                "Inferred '{name}' to be of type 'Tensor' because it was not annotated with an explicit type.\n"
            ),
        )
    } else {
        (argument.ty.annotation(), String::new())
    };
    Diagnostic::runtime(format!(
        "{}() Expected a value of type '{expected}' for argument '{}' but instead found type '{}'.\n{note}Position: \
         {position}\nValue: {}\nDeclaration: {}\n{}{details}",
        short_name(schema),
        argument.name,
        class_name(value).rsplit('.').next().unwrap_or_default(),
        repr(value),
        declaration(schema),
        if details.starts_with(PYTHON_DETAILS) { "" } else { "Cast error details: " },
    ))
}

/// Last component of a function's qualified name.
fn short_name(schema: &Schema) -> &'static str {
    let name = schema.name.as_str();
    name.rsplit('.').next().unwrap_or(name)
}

/// The schema as error messages show it, under the function's short name.
fn declaration(schema: &Schema) -> String {
    let mut shown = schema.clone();
    shown.name = Symbol::new(short_name(schema));
    shown.to_string()
}

/// How the details of an error begin that Python itself raises while it takes a value apart.
const PYTHON_DETAILS: &str = " Python error details: ";

fn python_error(class: &str, message: &str) -> String {
    format!("{PYTHON_DETAILS}{class}: {message}")
}

/// A value as Python's `str` shows it.
fn text(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        Value::Device(device) => device.to_string(),
        _ => repr(value),
    }
}

fn cast_error(value: &Value) -> String {
    format!(
        "Unable to cast Python instance of type <class '{}'> to C++ type '?' (#define \
         PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)",
        class_name(value)
    )
}

/// Makes a value of a type out of what a caller gave.
fn convert(value: &Value, ty: &Type, module: &Module, depth: usize) -> Conversion {
    use TypeKind as K;
    if depth > MAX_DEPTH {
        return Err(format!("values nested more than {MAX_DEPTH} deep"));
    }
    let refused = || Err(cast_error(value));
    match (ty.kind(), value) {
        (K::Any | K::Var(_), _) => infer(value, depth),
        // None is a tensor that is not defined.
        (K::Tensor(_), Value::Tensor(_) | Value::None) => Ok(value.clone()),
        (K::Tensor(_), _) => Err(format!("Unable to cast {} to Tensor", text(value))),
        (K::Int | K::ScalarType | K::Layout | K::MemoryFormat | K::SymInt, _) => match value {
            Value::Int(_) => Ok(value.clone()),
            Value::Bool(b) => Ok(Value::Int(i64::from(*b))),
            Value::Tensor(t) if t.numel() == 1 => {
                t.item().map(|s| Value::Int(s.to_i64())).map_err(|d| d.message().to_string())
            }
            _ => refused(),
        },
        (K::Float | K::SymFloat, _) => match value {
            Value::Float(_) => Ok(value.clone()),
            Value::Int(x) => Ok(Value::Float(*x as f64)),
            Value::Bool(b) => Ok(Value::Float(f64::from(u8::from(*b)))),
            Value::Tensor(t) if t.numel() == 1 => {
                t.item().map(|s| Value::Float(s.to_f64())).map_err(|d| d.message().to_string())
            }
            _ => refused(),
        },
        (K::Complex, _) => match value {
            Value::Complex(_) => Ok(value.clone()),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => {
                let number = value.to_scalar().map_err(|d| d.message().to_string())?;
                Ok(Value::Complex(Complex64::new(number.to_f64(), 0.0)))
            }
            Value::Tensor(t) if t.numel() == 1 => {
                t.item().map(|s| Value::Complex(s.to_complex())).map_err(|d| d.message().to_string())
            }
            _ => refused(),
        },
        (K::Bool | K::SymBool, _) => match value {
            Value::Bool(_) => Ok(value.clone()),
            Value::None => Ok(Value::Bool(false)),
            Value::Int(_) | Value::Float(_) | Value::Complex(_) => {
                value.to_scalar().map(|s| Value::Bool(s.to_bool())).map_err(|d| d.message().to_string())
            }
            Value::Tensor(t) if t.numel() == 1 => {
                t.item().map(|s| Value::Bool(s.to_bool())).map_err(|d| d.message().to_string())
            }
            _ => refused(),
        },
        (K::Number, _) => match value {
            Value::Int(_) | Value::Float(_) | Value::Complex(_) => Ok(value.clone()),
            Value::Bool(b) => Ok(Value::Int(i64::from(*b))),
            Value::Tensor(t) if t.numel() == 1 => {
                t.item().map(Value::from).map_err(|d| d.message().to_string())
            }
            _ => refused(),
        },
        (K::Str, Value::Str(_)) | (K::None, Value::None) | (K::Device, Value::Device(_)) => Ok(value.clone()),
        (K::Generator, Value::Generator(_)) => Ok(value.clone()),
        (K::None, _) => Err(format!("Cannot cast {} to None", text(value))),
        (K::Device, Value::Str(text)) => text.parse().map(|d| Value::Device(Arc::new(d))),
        (K::Optional(_), Value::None) => Ok(Value::None),
        (K::Optional(t), _) => convert(value, t, module, depth + 1),
        (K::Union(_), _) => convert_union(value, ty, module, depth),
        (K::List(t), Value::List(list)) if list.is_shared_with_calls() && list.element_type() == t => {
            Ok(value.clone())
        }
        (K::List(t), _) => convert_list(value, t, module, depth),
        (K::Dict(k, v), Value::Dict(dict))
            if dict.is_shared_with_calls() && dict.key_type() == k && dict.value_type() == v =>
        {
            Ok(value.clone())
        }
        (K::Dict(k, v), _) => {
            let out = Dict::new(k.clone(), v.clone());
            for (key, item) in pairs(value)? {
                let key = convert(&key, k, module, depth + 1)?;
                let item = convert(&item, v, module, depth + 1)?;
                out.insert(&key, item).map_err(|d| d.message().to_string())?;
            }
            Ok(Value::Dict(out))
        }
        (K::Tuple(types, names), _) => {
            let items = iterated(value)?;
            if items.len() != types.len() {
                return Err(format!(
                    "Object {} had a different number of elements than type {}",
                    repr(value),
                    ty.annotation()
                ));
            }
            let items = items.iter().zip(types.iter()).map(|(v, t)| convert(v, t, module, depth + 1));
            let items = items.collect::<std::result::Result<Vec<_>, _>>()?;
            Ok(Value::Tuple(match names {
                Some(names) => Tuple::named(Arc::clone(names), items),
                None => Tuple::new(items),
            }))
        }
        (K::Future(_) | K::Await(_), Value::Future(_)) | (K::Function(_), Value::Function(_)) => {
            Ok(value.clone())
        }
        (K::Dialect(..), _) if let Some(ty) = Elem::caller_type(ty) => convert(value, &ty, module, depth + 1),
        (K::Interface(interface), Value::Object(object)) => {
            let class = Type::class(object.class());
            why_not_subtype(&class, ty, module).map(|()| value.clone()).map_err(|why| {
                format!(
                    "Object of type {} is not compatible with interface {interface}\n{}",
                    object.class(),
                    why.trim_end()
                )
            })
        }
        (K::Class(_) | K::Enum(..) | K::Dialect(..), _) if is_instance(value, ty, module) => {
            Ok(value.clone())
        }
        (K::AnyList | K::AnyTuple | K::AnyClass | K::AnyEnum, _) if is_instance(value, ty, module) => {
            Ok(value.clone())
        }
        _ => refused(),
    }
}

fn convert_list(value: &Value, element: &Type, module: &Module, depth: usize) -> Conversion {
    // Lists of numbers and tensors are cast as a whole, so that the error names the list and not the element.
    let as_a_whole = matches!(
        element.kind(),
        TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Complex | TypeKind::Tensor(_)
    );
    let items = if as_a_whole {
        let Some(items) = sequence(value) else { return Err(cast_error(value)) };
        items
    } else {
        iterated(value)?
    };
    let mut out = Vec::with_capacity(items.len());
    for item in &items {
        match convert(item, element, module, depth + 1) {
            Ok(item) => out.push(item),
            Err(_) if as_a_whole => return Err(cast_error(value)),
            Err(details) => return Err(details),
        }
    }
    Ok(Value::List(List::new(element.clone(), out)))
}

fn convert_union(value: &Value, ty: &Type, module: &Module, depth: usize) -> Conversion {
    let inferred = infer(value, depth + 1)?;
    if is_instance(&inferred, ty, module) {
        return Ok(inferred);
    }
    // An empty or tuple-like container determines too little: take the first member that it can become.
    if let (TypeKind::Union(members), Value::List(_) | Value::Dict(_) | Value::Tuple(_)) = (ty.kind(), value)
    {
        for member in members.iter() {
            if let Ok(converted) = convert(value, member, module, depth + 1) {
                return Ok(converted);
            }
        }
    }
    Err(format!(
        "Expected a member of {} but instead found type {}",
        ty.annotation(),
        inferred.ty().annotation()
    ))
}

/// What Python's iteration over a value gives.
fn iterated(value: &Value) -> std::result::Result<Vec<Value>, String> {
    match value {
        Value::Dict(dict) => Ok(dict.entries().iter().map(|(key, _)| key.to_value()).collect()),
        Value::Tensor(t) if !t.sizes().is_empty() => {
            let part = |n| view::select(&t.layout(), 0, n).and_then(|layout| t.with_layout(layout));
            let parts = (0..t.sizes()[0]).map(|n| part(n).map(Value::Tensor)).collect::<Result<Vec<_>>>();
            parts.map_err(|d| d.message().to_string())
        }
        Value::Tensor(_) => Err(python_error("TypeError", "iteration over a 0-d tensor")),
        _ => sequence(value).ok_or_else(|| {
            python_error("TypeError", &format!("'{}' object is not iterable", class_name(value)))
        }),
    }
}

/// What Python's `dict` makes of a value.
fn pairs(value: &Value) -> std::result::Result<Vec<(Value, Value)>, String> {
    if let Value::Dict(dict) = value {
        return Ok(dict.entries().iter().map(|(key, item)| (key.to_value(), item.clone())).collect());
    }
    let pair = |(n, item): (usize, Value)| match iterated(&item).ok().as_deref() {
        Some([key, value]) => Ok((key.clone(), value.clone())),
        Some(parts) => Err(python_error(
            "ValueError",
            &format!("dictionary update sequence element #{n} has length {}; 2 is required", parts.len()),
        )),
        None => Err(python_error(
            "TypeError",
            &format!("cannot convert dictionary update sequence element #{n} to a sequence"),
        )),
    };
    iterated(value)?.into_iter().enumerate().map(pair).collect()
}

/// The elements of a list, tuple or text.
fn sequence(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::List(list) => Some(list.to_vec()),
        Value::Tuple(tuple) => Some(tuple.items().to_vec()),
        Value::Str(text) => Some(text.chars().map(|c| Value::str(c.to_string())).collect()),
        _ => None,
    }
}

/// A value for a parameter of type `Any`: containers take their element type from what is in them.
fn infer(value: &Value, depth: usize) -> Conversion {
    if depth > MAX_DEPTH {
        return Err(format!("values nested more than {MAX_DEPTH} deep"));
    }
    match value {
        Value::List(list) => {
            let items = list
                .items()
                .iter()
                .map(|v| infer(v, depth + 1))
                .collect::<std::result::Result<Vec<_>, _>>()?;
            let Some(first) = items.first() else {
                return Err(
                    "Tracer cannot infer type of []\n:List trace inputs must have elements".to_string()
                );
            };
            let element = first.ty();
            if let Some(other) = items.iter().find(|v| v.ty() != element) {
                return Err(format!(
                    "Tracer cannot infer type of {}\n:List inputs to traced functions must have consistent element \
                     type. Found {} and {}",
                    repr(value),
                    element.annotation(),
                    other.ty().annotation()
                ));
            }
            Ok(Value::list(element, items))
        }
        Value::Tuple(tuple) => {
            let items = tuple.items().iter().map(|v| infer(v, depth + 1));
            let items = items.collect::<std::result::Result<Vec<_>, _>>()?;
            Ok(Value::Tuple(match tuple.names() {
                Some(names) => Tuple::named(Arc::clone(names), items),
                None => Tuple::new(items),
            }))
        }
        Value::Dict(dict) => {
            let mut out: Option<Dict> = None;
            for (key, item) in dict.entries().iter() {
                let (key, item) = (key.to_value(), infer(item, depth + 1)?);
                let out = out.get_or_insert_with(|| Dict::new(key.ty(), item.ty()));
                out.insert(&key, item).map_err(|d| d.message().to_string())?;
            }
            out.map(Value::Dict).ok_or_else(|| {
                "Tracer cannot infer type of {}\n:Dictionary inputs must have entries".to_string()
            })
        }
        other => Ok(other.clone()),
    }
}

/// Dtypes are ints to programs: the code of a dtype as an argument.
pub fn dtype_argument(dtype: DType) -> Value {
    Value::Int(dtype.code())
}
/// That tensors are what the types of a function's graph say of them, which the passes before plans have relied on. Types of source say nothing but
/// `Tensor`; those of graph text may say dtype and sizes.
pub(super) fn have_their_types(function: &Function, values: &[Value]) -> Result<()> {
    let graph = &function.graph;
    for (input, value) in graph.inputs().iter().zip(values) {
        let (TypeKind::Tensor(ty), Value::Tensor(tensor)) = (graph.ty(*input).kind(), value) else {
            continue;
        };
        let says_something = ty.dtype.is_some() || ty.sizes.is_some();
        if says_something && !is_of(ty, tensor) {
            let (name, dtype) = (graph.display_name(*input), tensor.dtype().name());
            let (sizes, ty) = (tensor.sizes(), graph.ty(*input));
            let message =
                format!("%{name} is a {dtype} of sizes {:?}, and its type says {ty}", sizes.as_slice());
            let hint = "the default passes rely on types: give what the type describes, or run others \
                        (--passes '', or erase-shape-information,default)";
            return Err(Diagnostic::input(message).hint(hint));
        }
    }
    Ok(())
}

/// Strides are left out: what is saved of a tensor may lie in another order than the tensor did.
fn is_of(ty: &TensorType, tensor: &Tensor) -> bool {
    let sizes = tensor.sizes();
    let same_dims = |dims: &[Dim]| {
        dims.len() == sizes.len()
            && dims.iter().zip(&sizes).all(|(dim, size)| dim.known().is_none_or(|dim| dim == *size))
    };
    ty.dtype.is_none_or(|dtype| dtype == tensor.dtype()) && ty.sizes.as_deref().is_none_or(same_dims)
}
