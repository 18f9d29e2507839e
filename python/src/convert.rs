//! Values of programs and objects of Python, in both directions. Answers come in the kind of arrays that the caller works
//! with: NumPy's where arguments were NumPy's, PyTorch's where they were PyTorch's, tensors of ours else.

use crate::buffer;
use crate::dtype::{PyDType, PyDevice, dtype_from};
use crate::errors;
use crate::generator;
use crate::program::{Core, PyProgram};
use crate::runs;
use crate::shared::PyShared;
use crate::tensor::PyTensor;
use flambeau::diag::Diagnostic;
use flambeau::ir::{Symbol, Type};
use flambeau::tensor::guest::Described;
use flambeau::tensor::{DType, Storage, Tensor};
use flambeau::value::{Dict, EnumValue, Future, SharedGenerator, Tuple, Value};
use num_complex::Complex64;
use pyo3::exceptions::{PyOverflowError, PyRecursionError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use pyo3::{IntoPyObjectExt, intern};
use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

/// Values nested deeper than this are refused.
const MAX_DEPTH: usize = 100;

/// Whose arrays a caller works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Own,
    NumPy,
    Torch,
}

impl Kind {
    pub(crate) fn by_name(name: &str) -> Option<Kind> {
        match name {
            "flambeau" => Some(Kind::Own),
            "numpy" => Some(Kind::NumPy),
            "torch" => Some(Kind::Torch),
            _ => None,
        }
    }
}

/// One call: what went in, so that the same object comes out again, and one storage a piece of memory.
#[derive(Default)]
pub(crate) struct Call<'py> {
    pub kind: Option<Kind>,
    /// The programs of objects that came in, with the objects' classes.
    pub programs: Vec<(Arc<Core>, Symbol)>,
    seen: Vec<(Tensor, Bound<'py, PyAny>)>,
    generators: Vec<(SharedGenerator, Bound<'py, PyAny>)>,
    /// Tensors of PyTorch that require gradients, with leaves of ours that stand for them.
    leaves: Vec<(Tensor, Bound<'py, PyAny>)>,
    /// Tensors of PyTorch, with the version of ours when they came in.
    versions: Vec<(Tensor, Bound<'py, PyAny>, u64)>,
    /// Tensors over copies of what PyTorch has only marked as conjugated or negated: the version that came in, the object, and
    /// the copy of it.
    copies: Vec<(Tensor, u64, Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    ranges: Vec<(usize, usize, Storage)>,
    /// Results in the memory of a tensor of PyTorch that came in, each with that and the element of it where it begins: kept
    /// where results are given as tensors of ours, to become views later.
    shown: RefCell<Vec<Shown<'py>>>,
}

/// A result of ours, the object whose memory it shows, and how many elements after that it begins.
pub(crate) type Shown<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, isize);

impl<'py> Call<'py> {
    /// Writes to the objects of copies what the call wrote to these, whether it ended well or not.
    pub(crate) fn carry_back(&self, py: Python<'py>) -> PyResult<()> {
        for (tensor, version, object, copy) in &self.copies {
            if tensor.version() != *version {
                object.call_method0(intern!(py, "detach"))?.call_method1("copy_", (copy,))?;
            }
        }
        Ok(())
    }

    /// Whether a tensor that came in requires a gradient.
    pub(crate) fn requires_grad(&self) -> bool {
        self.seen.iter().any(|(t, _)| t.requires_grad())
    }

    /// The tensors that came in and require a gradient, each with the object that it came from.
    pub(crate) fn tracked(&self) -> Vec<(Bound<'py, PyAny>, PyTensor)> {
        self.leaves.iter().map(|(t, object)| (object.clone(), PyTensor::new(t.clone()))).collect()
    }

    /// The tensors of PyTorch that came in and require no gradient, with those that stood for them.
    pub(crate) fn untracked(&self) -> Vec<(Bound<'py, PyAny>, PyTensor)> {
        let is_leaf = |object: &Bound<'py, PyAny>| self.leaves.iter().any(|(_, known)| known.is(object));
        let untracked = self.versions.iter().filter(|(_, object, _)| !is_leaf(object));
        untracked.map(|(t, object, _)| (object.clone(), PyTensor::new(t.clone()))).collect()
    }

    /// Tensors of PyTorch that the call wrote to, with those that stood for them.
    pub(crate) fn written(&self) -> Vec<(Bound<'py, PyAny>, PyTensor)> {
        let written = self.versions.iter().filter(|(t, _, version)| t.version() != *version);
        written.map(|(t, object, _)| (object.clone(), PyTensor::new(t.clone()))).collect()
    }

    /// Results that are views of tensors of PyTorch, of those that were given as tensors of ours.
    pub(crate) fn shown(&self) -> Vec<Shown<'py>> {
        self.shown.take()
    }

    /// An object of Python as a value.
    pub(crate) fn value(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Value> {
        self.value_at(object, 0)
    }

    fn value_at(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> PyResult<Value> {
        if depth > MAX_DEPTH {
            return Err(PyRecursionError::new_err("a value is nested too deeply"));
        }
        if (crate::numpy::is_known_array(object) || is_known_torch(object))
            && let Some(tensor) = self.array(object)?
        {
            return Ok(Value::Tensor(tensor));
        }
        if let Ok(own) = object.cast::<PyTensor>() {
            self.kind = Some(Kind::Own);
            let tensor = own.get().tensor().clone();
            self.seen.push((tensor.clone(), object.clone()));
            return Ok(Value::Tensor(tensor));
        }
        if object.is_none() {
            return Ok(Value::None);
        }
        if let Ok(truth) = object.cast::<PyBool>() {
            return Ok(Value::Bool(truth.is_true()));
        }
        if object.is_instance_of::<PyInt>() && !is_enum(object)? {
            let number = object.extract::<i64>();
            return number
                .map(Value::Int)
                .map_err(|_| PyOverflowError::new_err("an int takes more than 64 bits"));
        }
        if object.is_instance_of::<PyFloat>() && !is_enum(object)? {
            return object.extract().map(Value::Float);
        }
        if object.is_instance_of::<PyString>() && !is_enum(object)? {
            return Ok(Value::str(object.extract::<String>()?));
        }
        if let Ok(number) = object.cast::<PyComplex>() {
            return Ok(Value::Complex(number.extract::<Complex64>()?));
        }
        if let Some(tensor) = self.array(object)? {
            return Ok(Value::Tensor(tensor));
        }
        if let Ok(list) = object.cast::<PyList>() {
            let items = list.iter().map(|x| self.value_at(&x, depth + 1)).collect::<PyResult<Vec<_>>>()?;
            let element = items.first().map_or_else(Type::tensor, Value::ty);
            return Ok(Value::list(element, items));
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            let items = tuple.iter().map(|x| self.value_at(&x, depth + 1)).collect::<PyResult<Vec<_>>>()?;
            return Ok(Value::tuple(items));
        }
        if let Ok(dict) = object.cast::<PyDict>() {
            return self.dict(dict, depth);
        }
        self.other(object, depth)
    }

    fn dict(&mut self, dict: &Bound<'py, PyDict>, depth: usize) -> PyResult<Value> {
        let mut entries = Vec::with_capacity(dict.len());
        for (key, value) in dict.iter() {
            entries.push((self.value_at(&key, depth + 1)?, self.value_at(&value, depth + 1)?));
        }
        let (key, value) = match entries.first() {
            Some((key, value)) => (key.ty(), value.ty()),
            None => (Type::str(), Type::tensor()),
        };
        let out = Dict::new(key, value);
        for (key, value) in entries {
            out.insert(&key, value).map_err(errors::plain)?;
        }
        Ok(Value::Dict(out))
    }

    fn object(&mut self, program: &PyProgram) -> PyResult<Value> {
        let value = program.as_value()?;
        if let Value::Object(object) = &value {
            self.programs.push((Arc::clone(&program.core), object.class()));
        }
        Ok(value)
    }

    fn other(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> PyResult<Value> {
        if let Some(dtype) = dtype_from(object)? {
            return Ok(Value::Int(dtype.code()));
        }
        let py = object.py();
        if let Ok(core) = object.cast::<PyProgram>() {
            return self.object(core.get());
        }
        if let Ok(shared) = object.cast::<PyShared>() {
            return Ok(shared.get().value.clone());
        }
        if let Ok(future) = object.cast::<PyFuture>() {
            return Ok(Value::Future(future.get().future.clone()));
        }
        if let Ok(core) = object.getattr(intern!(py, "_c")) {
            if let Ok(core) = core.cast::<PyProgram>() {
                return self.object(core.get());
            }
            if let Ok(shared) = core.cast::<PyShared>() {
                return Ok(shared.get().value.clone());
            }
        }
        let class = object.get_type();
        let class = class.name()?;
        match class.to_str()? {
            "device" => {
                if let Ok(device) = object.str()?.to_str()?.parse() {
                    return Ok(Value::Device(Arc::new(device)));
                }
            }
            "Generator" => {
                let value = generator::value(object)?;
                if let Value::Generator(generator) = &value {
                    self.generators.push((generator.clone(), object.clone()));
                }
                return Ok(value);
            }
            "memory_format" | "layout" => {
                let named = [
                    "torch.contiguous_format",
                    "torch.preserve_format",
                    "torch.channels_last",
                    "torch.channels_last_3d",
                ];
                let text = object.str()?;
                let text = text.to_str()?;
                let at = named.iter().position(|n| *n == text);
                return Ok(Value::Int(at.unwrap_or(usize::from(text == "torch.sparse_coo")) as i64));
            }
            _ => {}
        }
        if is_enum(object)? {
            return self.enum_member(object, depth);
        }
        static AS_OBJECT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let found = errors::imported(py, &AS_OBJECT, "flambeau._names", "object_core")?.call1((object,))?;
        if let Ok(core) = found.cast::<PyProgram>() {
            return self.object(core.get());
        }
        if let Ok(number) = object.call_method0(intern!(py, "item")) {
            return self.value_at(&number, depth + 1);
        }
        if let Ok(index) = object.call_method0(intern!(py, "__index__")) {
            return self.value_at(&index, depth + 1);
        }
        Err(PyTypeError::new_err(format!(
            "objects of Python's type '{class}' cannot be given to a program: give tensors, arrays, numbers, text, lists, \
             tuples, dictionaries or scripted objects"
        )))
    }

    fn enum_member(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> PyResult<Value> {
        static NAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = object.py();
        let name = errors::imported(py, &NAME, "flambeau._names", "enum_name")?;
        let class: String = name.call1((object.get_type(),))?.extract()?;
        let member: String = object.getattr(intern!(py, "name"))?.extract()?;
        let value = self.value_at(&object.getattr(intern!(py, "value"))?, depth + 1)?;
        let (class, name) = (Symbol::new(&class), Symbol::new(&member));
        Ok(Value::Enum(Arc::new(EnumValue { class, name, value })))
    }

    /// An array of another library as a tensor over its memory; None for what is not an array. What tensors cannot read as it
    /// is (strides that run backward, foreign byte order) is copied.
    fn array(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Option<Tensor>> {
        let py = object.py();
        if is_known_torch(object) {
            return self.taken_by_dlpack(object);
        }
        let class = match crate::numpy::is_known_array(object) {
            true => intern!(py, "ndarray").clone(),
            false => object.get_type().name()?,
        };
        let is_numpy = class.to_str()? == "ndarray";
        let found = if is_numpy {
            match crate::numpy::describe(object) {
                Some((described, held)) => Some(self.over(&described, held)),
                None => buffer::describe(object)?.map(|(described, held)| self.over(&described, held)),
            }
        } else if object.hasattr(intern!(py, "__dlpack__"))? {
            return self.taken_by_dlpack(object);
        } else if object.is_instance_of::<pyo3::types::PyByteArray>()
            || class.to_str()? == "memoryview"
            || class.to_str()? == "array"
        {
            buffer::describe(object)?.map(|(described, held)| self.over(&described, held))
        } else if class.to_str()? != "str"
            && object.hasattr(intern!(py, "__array_interface__"))?
            && object.hasattr(intern!(py, "shape"))?
            && !object.hasattr(intern!(py, "dtype"))?
        {
            None
        } else {
            return Ok(None);
        };
        if is_numpy && self.kind.is_none() {
            self.kind = Some(Kind::NumPy);
        }
        let tensor = match found.flatten() {
            Some(tensor) => tensor,
            None => {
                let copied = self.dense(object)?;
                let Some((described, held)) = buffer::describe(&copied)? else {
                    return Err(PyTypeError::new_err(format!(
                        "can't convert {} of type {}. The only supported types are: float64, float32, float16, complex64, \
                         complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
                        "np.ndarray",
                        object
                            .getattr("dtype")
                            .and_then(|d| d.str().map(|s| format!("numpy.{s}")))
                            .unwrap_or_default()
                    )));
                };
                let tensor = self.over(&described, held);
                tensor.ok_or_else(|| PyTypeError::new_err("the array cannot become a tensor"))?
            }
        };
        self.seen.push((tensor.clone(), object.clone()));
        Ok(Some(tensor))
    }

    fn taken_by_dlpack(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Option<Tensor>> {
        let py = object.py();
        // What is given twice is one tensor.
        if let Some((known, _, _)) = self.versions.iter().find(|(_, given, _)| given.is(object)) {
            return Ok(Some(known.clone()));
        }
        if let Some((known, ..)) = self.copies.iter().find(|(_, _, given, _)| given.is(object)) {
            return Ok(Some(known.clone()));
        }
        let is_torch = is_known_torch(object) || is_torch(object);
        let mut source = object.clone();
        let mut tracked = false;
        if is_torch {
            self.kind = match self.kind {
                Some(Kind::Own) => Some(Kind::Own),
                _ => Some(Kind::Torch),
            };
            if object.getattr(intern!(py, "requires_grad"))?.is_truthy()? {
                tracked = true;
                source = object.call_method0(intern!(py, "detach"))?;
            }
        }
        let resolved = if is_torch { resolved(&source)? } else { None };
        let Some(imported) = crate::dlpack::import(resolved.as_ref().unwrap_or(&source))? else {
            return Ok(None);
        };
        let described = imported.described().cloned();
        let tensor = described.and_then(|described| self.over(&described, imported));
        let Some(tensor) = tensor else {
            return Err(PyTypeError::new_err(
                "the array has strides that tensors do not have; copy it first",
            ));
        };
        let tensor = if tracked && tensor.dtype().is_floating() {
            tensor.set_requires_grad(true).map_err(errors::plain)?;
            self.leaves.push((tensor.clone(), object.clone()));
            let is_leaf = object.getattr(intern!(py, "is_leaf"))?.is_truthy()?;
            // What PyTorch computed may be written to, as what is computed here.
            if is_leaf { tensor } else { crate::eager::alias(py, tensor)? }
        } else {
            tensor
        };
        match resolved {
            Some(copy) => self.copies.push((tensor.clone(), tensor.version(), object.clone(), copy)),
            None if is_torch => self.versions.push((tensor.clone(), object.clone(), tensor.version())),
            None => {}
        }
        self.seen.push((tensor.clone(), object.clone()));
        Ok(Some(tensor))
    }

    /// A copy of a NumPy array in row-major order, native byte order and aligned.
    fn dense(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let numpy = object.py().import("numpy")?;
        let dtype = object.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
        numpy.call_method1("array", (object, dtype))
    }

    /// A tensor over described memory, over one storage with others of this call that lie in it.
    fn over(&mut self, described: &Described, owner: impl Send + Sync + 'static) -> Option<Tensor> {
        let nbytes = described.extent()?;
        let (from, to) = (described.address, described.address.checked_add(nbytes)?);
        let size = described.dtype.size();
        let whole = self.ranges.iter().find(|(f, t, _)| *f <= from && to <= *t && (from - *f) % size == 0);
        if let (Some((start, _, storage)), false) = (whole, described.readonly || nbytes == 0) {
            return described.tensor(storage.clone(), (from - *start) / size);
        }
        // SAFETY: the owner keeps the memory at its place: the description came with it from Python's or DLPack's interface.
        // Python code that writes to an array while a program runs on it races with it, as it races with NumPy's own
        // functions: documented in docs/python.md.
        #[allow(unsafe_code, reason = "memory of Python's objects is known by its address")]
        let storage = unsafe { described.storage(nbytes, owner) };
        if !described.readonly {
            self.ranges.push((from, to, storage.clone()));
        }
        described.tensor(storage, 0)
    }

    /// A value as an object of Python. `core` is the program that it came from, for objects of its classes.
    pub(crate) fn give(
        &self,
        py: Python<'py>,
        value: &Value,
        core: Option<&Arc<Core>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match value {
            Value::None | Value::Uninitialized => Ok(py.None().into_bound(py)),
            Value::Tensor(tensor) => self.give_tensor(py, tensor),
            Value::Int(x) => x.into_bound_py_any(py),
            Value::Float(x) => x.into_bound_py_any(py),
            Value::Complex(x) => x.into_bound_py_any(py),
            Value::Bool(x) => x.into_bound_py_any(py),
            Value::Str(x) => String::from_utf8_lossy(&flambeau::value::bytes::bytes(x)).into_bound_py_any(py),
            Value::List(list) => {
                let items = list.to_vec();
                let items = items.iter().map(|x| self.give(py, x, core)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyList::new(py, items)?.into_any())
            }
            Value::Dict(dict) => {
                let out = PyDict::new(py);
                let entries: Vec<(Value, Value)> =
                    dict.entries().iter().map(|(k, v)| (k.to_value(), v.clone())).collect();
                for (key, value) in &entries {
                    out.set_item(self.give(py, key, core)?, self.give(py, value, core)?)?;
                }
                Ok(out.into_any())
            }
            Value::Tuple(tuple) => self.give_tuple(py, tuple, core),
            Value::Object(object) => {
                static WRAP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
                let Some(core) = core else {
                    return Err(PyTypeError::new_err(format!(
                        "an object of {} has no program",
                        object.class()
                    )));
                };
                let wrap = errors::imported(py, &WRAP, "flambeau._modules", "wrap")?;
                wrap.call1((PyProgram::new(Arc::clone(core), Some(object.clone())),))
            }
            Value::Enum(member) => {
                static MEMBER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
                let find = errors::imported(py, &MEMBER, "flambeau._names", "enum_member")?;
                find.call1((member.class.as_str(), member.name.as_str(), self.give(py, &member.value, core)?))
            }
            Value::Device(device) => match self.kind {
                Some(Kind::Torch) => py.import("torch")?.getattr("device")?.call1((device.to_string(),)),
                _ => PyDevice((**device).clone()).into_bound_py_any(py),
            },
            Value::Generator(own) => match self.generators.iter().find(|(given, _)| given.same(own)) {
                Some((_, object)) => Ok(object.clone()),
                None => generator::give(py, own),
            },
            Value::Future(future) => {
                PyFuture { future: future.clone(), core: core.cloned(), kind: self.kind }
                    .into_bound_py_any(py)
            }
            Value::Function(name) => name.as_str().into_bound_py_any(py),
        }
    }

    fn give_tuple(
        &self,
        py: Python<'py>,
        tuple: &Tuple,
        core: Option<&Arc<Core>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let items = tuple.items().iter().map(|x| self.give(py, x, core)).collect::<PyResult<Vec<_>>>()?;
        let items = PyTuple::new(py, items)?;
        let Some(names) = tuple.names() else { return Ok(items.into_any()) };
        let fields: Vec<&str> = names.fields.iter().map(|name| name.as_str()).collect();
        let class = errors::imported(py, &CLASS, "flambeau._names", "named_tuple")?;
        class.call1((names.name.as_str(), fields))?.call1(items)
    }

    fn give_tensor(&self, py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
        if let Some((own, object)) = self.seen.iter().find(|(t, _)| t.same(tensor)) {
            // What was read-only was copied where a program wrote to it.
            let is_as_it_was =
                object.is_instance_of::<PyTensor>() || own.version() == 0 || own.storage().is_foreign();
            if is_as_it_was {
                return Ok(object.clone());
            }
        }
        let base = self.base_of(tensor);
        match (self.kind, base) {
            (Some(Kind::NumPy), _) if buffer_can(tensor) => numpy_of(py, tensor),
            (Some(Kind::Torch), Some((base, offset))) => view_of(base, tensor, offset),
            (Some(Kind::Torch), None) if tensor.is_plain() => match to_torch(py, tensor)? {
                Some(object) => Ok(object),
                None => own(py, tensor),
            },
            (_, Some((base, offset))) => {
                let given = own(py, tensor)?;
                self.shown.borrow_mut().push((given.clone(), base.clone(), offset));
                Ok(given)
            }
            _ => own(py, tensor),
        }
    }

    /// The tensor of PyTorch whose memory a result shows, and how many elements after its first one that begins.
    fn base_of(&self, tensor: &Tensor) -> Option<(&Bound<'py, PyAny>, isize)> {
        let storage = tensor.storage();
        if !storage.is_foreign() || !tensor.is_plain() {
            return None;
        }
        let is_base = |own: &Tensor| own.dtype() == tensor.dtype() && own.storage().same(&storage);
        let (own, object, _) = self.versions.iter().find(|(own, ..)| is_base(own))?;
        let offset = |t: &Tensor| isize::try_from(t.layout().offset).ok();
        Some((object, offset(tensor)? - offset(own)?))
    }
}

/// A result as the view of a tensor of PyTorch that it is, so that PyTorch counts writes to either on both. It has no gradient:
/// nothing was recorded.
fn view_of<'py>(base: &Bound<'py, PyAny>, tensor: &Tensor, offset: isize) -> PyResult<Bound<'py, PyAny>> {
    let py = base.py();
    let base = match base.getattr(intern!(py, "requires_grad"))?.is_truthy()? {
        true => &base.call_method0(intern!(py, "detach"))?,
        false => base,
    };
    let first = base.call_method0(intern!(py, "storage_offset"))?.extract::<isize>()?;
    let (sizes, strides) = (tensor.sizes().to_vec(), tensor.strides().to_vec());
    base.call_method1(intern!(py, "as_strided"), (sizes, strides, first + offset))
}

/// A copy of a PyTorch tensor with its pending conjugation and negation carried out, which DLPack does not describe; None where
/// there are none.
fn resolved<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = tensor.py();
    let is = |name| tensor.call_method0(name)?.is_truthy();
    if !is(intern!(py, "is_neg"))? && !is(intern!(py, "is_conj"))? {
        return Ok(None);
    }
    tensor.call_method0("resolve_conj")?.call_method0("resolve_neg").map(Some)
}

fn own<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    PyTensor::new(tensor.clone()).into_bound_py_any(py)
}

/// Whether NumPy has the dtype.
fn buffer_can(tensor: &Tensor) -> bool {
    let dtype = tensor.dtype();
    tensor.is_plain() && dtype != DType::BF16 && dtype != DType::C32 && !dtype.is_float8()
}

/// A NumPy array over a tensor's memory.
pub(crate) fn numpy_of<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if !buffer_can(tensor) {
        let name = tensor.dtype().type_name();
        return Err(PyTypeError::new_err(format!("Got unsupported ScalarType {name}")));
    }
    let by_buffer = errors::imported(py, &ASARRAY, "numpy", "asarray")?;
    match crate::numpy::array_over(py, tensor)? {
        Some(array) => Ok(array),
        None => by_buffer.call1((PyTensor::new(tensor.clone()),)),
    }
}

/// A tensor of PyTorch over a tensor's memory; None for dtypes that DLPack has not.
pub(crate) fn to_torch<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Option<Bound<'py, PyAny>>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static FROM: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = errors::imported(py, &CLASS, "torch", "Tensor")?;
    let class = class.cast::<PyType>()?;
    if let Some(object) = crate::dlpack::hand_over(tensor, class)? {
        return Ok(Some(object));
    }
    let from = errors::imported(py, &FROM, "torch.utils.dlpack", "from_dlpack")?;
    from.call1((PyTensor::new(tensor.clone()),)).map(Some)
}

/// PyTorch's class of tensors, once one came in.
static TENSOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Whether an object is of that class itself.
fn is_known_torch(object: &Bound<'_, PyAny>) -> bool {
    TENSOR.get(object.py()).is_some_and(|class| object.get_type().is(class))
}

/// Whether an object is a tensor of PyTorch, by the module of its class.
fn is_torch(object: &Bound<'_, PyAny>) -> bool {
    let class = object.get_type();
    let is = |name: PyResult<Bound<'_, PyString>>, wanted: fn(&str) -> bool| {
        name.is_ok_and(|name| name.to_str().is_ok_and(wanted))
    };
    let found = is(class.module(), |module| module.starts_with("torch"));
    if found && is(class.module(), |module| module == "torch") && is(class.name(), |name| name == "Tensor") {
        let _ = TENSOR.set(object.py(), class.unbind());
    }
    found
}

fn is_enum(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static ENUM: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = object.get_type();
    // Plain numbers and text, the most common, need no check of their bases.
    if class.is(object.py().get_type::<PyInt>())
        || class.is(object.py().get_type::<PyFloat>())
        || class.is(object.py().get_type::<PyString>())
    {
        return Ok(false);
    }
    object.is_instance(&errors::imported(object.py(), &ENUM, "enum", "Enum")?)
}

/// A result that a program works on: what `fork` gives.
#[pyclass(name = "Future", module = "flambeau", frozen)]
pub(crate) struct PyFuture {
    pub future: Future,
    core: Option<Arc<Core>>,
    kind: Option<Kind>,
}

#[pymethods]
impl PyFuture {
    /// Waits, and gives the result.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let future = self.future.clone();
        let value = runs::outside(py, move || future.wait())?.map_err(errors::of_program)?;
        Call { kind: self.kind, ..Call::default() }.give(py, &value, self.core.as_ref())
    }

    /// The result, waited for.
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.wait(py)
    }

    /// Whether the result is there.
    fn done(&self) -> bool {
        self.future.is_done()
    }
}

/// What an op that calls Python gives: the function of that number, called. Its result must become one of the declared type.
pub(crate) fn call_python(
    number: i64,
    arguments: &Value,
    declared: Option<&Type>,
) -> flambeau::diag::Result<Value> {
    static FUNCTIONS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    Python::attach(|py| {
        let work = || -> PyResult<flambeau::diag::Result<Value>> {
            let call = errors::imported(py, &FUNCTIONS, "flambeau._names", "call_ignored")?;
            let out = Call::default();
            let items = match arguments {
                Value::Tuple(tuple) => tuple.items().to_vec(),
                other => vec![other.clone()],
            };
            let items = items.iter().map(|x| out.give(py, x, None)).collect::<PyResult<Vec<_>>>()?;
            let result = call.call1((number, PyTuple::new(py, items)?))?;
            let given = Call::default().value(&result)?;
            Ok(match declared {
                Some(ty) => returned(&result, &given, ty),
                None => Ok(given),
            })
        };
        work().map_err(|error| errors::from_python(py, error))?
    })
}

/// What a function of Python gave as a value of the type that its annotation says, with PyTorch's wording where it is none.
fn returned(object: &Bound<'_, PyAny>, given: &Value, ty: &Type) -> flambeau::diag::Result<Value> {
    static NOTHING: LazyLock<flambeau::ir::Module> = LazyLock::new(Default::default);
    flambeau::runtime::converted(given, ty, &NOTHING).map_err(|error| {
        let (class, text) = (object.get_type().name(), object.repr());
        let (class, text) = (class.map(|c| c.to_string()), text.map(|t| t.to_string()));
        Diagnostic::runtime(format!(
            " expected value of type {ty} for return value but instead got value of type {}.\nValue: {}\nCast error details: {}",
            class.unwrap_or_default(),
            text.unwrap_or_default(),
            error.message(),
        ))
    })
}

/// A dtype of ours for an object of Python.
pub(crate) fn dtype_argument(object: Option<&Bound<'_, PyAny>>) -> PyResult<Option<DType>> {
    match object {
        None => Ok(None),
        Some(object) if object.is_none() => Ok(None),
        Some(object) => match dtype_from(object)? {
            Some(dtype) => Ok(Some(dtype)),
            None => Err(PyTypeError::new_err(format!("{object} is not a dtype"))),
        },
    }
}

/// The Python object of a dtype.
pub(crate) fn give_dtype(dtype: DType) -> PyDType {
    PyDType(dtype)
}
