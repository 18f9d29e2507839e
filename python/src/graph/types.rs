//! Types of values as Python sees them: objects of `flambeau._types.Type`, each with its text, kind and parts.

use crate::errors;
use flambeau::ir::{Stride, Type, TypeKind, parse_type};
use pyo3::BoundObject;
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
    class.call1((ty.to_string(), kind(ty), ty.annotation(), PyList::new(py, parts)?, tensor(ty)))
}

/// What is known of a tensor: PyTorch's name of the dtype, sizes (None for one that is open), strides, device.
type TensorFacts = (Option<&'static str>, Option<Vec<Option<i64>>>, Option<Vec<Option<i64>>>, Option<String>);

fn tensor(ty: &Type) -> Option<TensorFacts> {
    let tensor = ty.as_tensor()?;
    Some((
        tensor.dtype.map(|dtype| dtype.type_name()),
        tensor.sizes.as_ref().map(|sizes| sizes.iter().map(|dim| dim.known()).collect()),
        tensor.strides.as_ref().map(|strides| strides.iter().map(Stride::known).collect()),
        tensor.device.as_ref().map(|device| device.to_string()),
    ))
}

/// Whether one type, as graphs print it, is a subtype of another.
#[pyfunction]
pub(crate) fn is_subtype(sub: &str, sup: &str) -> PyResult<bool> {
    let sub = parse_type(sub).map_err(errors::plain)?;
    Ok(sub.is_subtype_of(&parse_type(sup).map_err(errors::plain)?))
}

/// What a graph, a block or a node has several of: for Python a list that `next` reads as well.
pub(crate) struct Parts<T>(pub Vec<T>);

impl<'py, T: IntoPyObject<'py>> IntoPyObject<'py> for Parts<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let items = self.0.into_iter().map(|item| item.into_pyobject(py).map(BoundObject::into_any));
        let items = items.map(|item| item.map(BoundObject::into_bound).map_err(Into::into));
        let items = items.collect::<PyResult<Vec<_>>>()?;
        errors::imported(py, &CLASS, "flambeau._types", "Parts")?.call1((PyList::new(py, items)?,))
    }
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
