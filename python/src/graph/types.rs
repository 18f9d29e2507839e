//! Types of values as Python sees them: objects of `flambeau._types.Type`, each with its text, kind and parts.

use crate::errors;
use flambeau::ir::{Type, TypeKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;

/// Types nested deeper than this are shown by their text alone.
const MAX_DEPTH: usize = 64;

/// The object of Python for a type.
pub(crate) fn type_object<'py>(py: Python<'py>, ty: &Type) -> PyResult<Bound<'py, PyAny>> {
    object_at(py, ty, 0)
}

fn object_at<'py>(py: Python<'py>, ty: &Type, depth: usize) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let parts = if depth < MAX_DEPTH { parts(ty) } else { Vec::new() };
    let parts = parts.into_iter().map(|part| object_at(py, part, depth + 1)).collect::<PyResult<Vec<_>>>()?;
    let class = errors::imported(py, &CLASS, "flambeau._types", "Type")?;
    class.call1((ty.to_string(), kind(ty), ty.annotation(), PyList::new(py, parts)?))
}

fn parts(ty: &Type) -> Vec<&Type> {
    match ty.kind() {
        TypeKind::List(inner)
        | TypeKind::Optional(inner)
        | TypeKind::Future(inner)
        | TypeKind::Await(inner)
        | TypeKind::RRef(inner) => vec![inner],
        TypeKind::Dict(key, value) => vec![key, value],
        TypeKind::Tuple(items, _) | TypeKind::Union(items) => items.iter().collect(),
        _ => Vec::new(),
    }
}

/// The name that PyTorch's `Type.kind()` has for it.
fn kind(ty: &Type) -> String {
    let name = match ty.kind() {
        TypeKind::Tensor(_) => "TensorType",
        TypeKind::Number => "NumberType",
        TypeKind::Int => "IntType",
        TypeKind::Float => "FloatType",
        TypeKind::Complex => "ComplexType",
        TypeKind::Bool => "BoolType",
        TypeKind::Str => "StringType",
        TypeKind::None => "NoneType",
        TypeKind::Device => "DeviceObjType",
        TypeKind::Stream => "StreamObjType",
        TypeKind::List(_) => "ListType",
        TypeKind::Dict(..) => "DictType",
        TypeKind::Tuple(..) => "TupleType",
        TypeKind::Optional(_) => "OptionalType",
        TypeKind::Union(_) => "UnionType",
        TypeKind::Future(_) => "FutureType",
        TypeKind::Await(_) => "AwaitType",
        TypeKind::RRef(_) => "RRefType",
        TypeKind::Var(_) => "VarType",
        TypeKind::Function(_) => "FunctionType",
        TypeKind::Class(_) => "ClassType",
        TypeKind::Interface(_) => "InterfaceType",
        TypeKind::Enum(..) => "EnumType",
        TypeKind::Any => "AnyType",
        TypeKind::AnyList => "AnyListType",
        TypeKind::AnyTuple => "AnyTupleType",
        TypeKind::AnyEnum => "AnyEnumType",
        TypeKind::AnyClass => "AnyClassType",
        TypeKind::Dialect(dialect, name, _) => return format!("{dialect}.{name}"),
        other => return format!("{other:?}Type"),
    };
    name.to_string()
}
