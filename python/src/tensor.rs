//! Tensors as Python objects. What they compute stands in no method here: each is a call of an op by its name.

use crate::convert::{self, Call, dtype_argument, give_dtype};
use crate::dtype::{PyDType, PyDevice};
use crate::{buffer, dlpack, eager, errors};
use flambeau::tensor::{DType, Scalar, Tensor};
use flambeau::value::Value;
use flambeau::value::python_text::python_text;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{
    PyAttributeError, PyBufferError, PyIndexError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyList, PyTuple};
use pyo3::{IntoPyObjectExt, ffi};
use std::ffi::c_int;

/// A tensor. Methods are those of PyTorch's tensors: each op whose schema begins with `self` is one.
#[pyclass(name = "Tensor", module = "flambeau", frozen, weakref, dict, subclass)]
pub(crate) struct PyTensor {
    inner: Tensor,
}

impl PyTensor {
    pub(crate) fn new(inner: Tensor) -> PyTensor {
        PyTensor { inner }
    }

    pub(crate) fn tensor(&self) -> &Tensor {
        &self.inner
    }

    fn item_value(&self) -> PyResult<Scalar> {
        self.inner.item().map_err(errors::plain)
    }
}

use crate::operators::operator;

type Any<'py> = Bound<'py, PyAny>;

#[pymethods]
impl PyTensor {
    fn __neg__<'py>(slf: &Bound<'py, Self>) -> PyResult<Any<'py>> {
        eager::method(slf.as_any(), "neg", &[], None)
    }

    fn __pos__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    fn __abs__<'py>(slf: &Bound<'py, Self>) -> PyResult<Any<'py>> {
        eager::method(slf.as_any(), "abs", &[], None)
    }

    fn __invert__<'py>(slf: &Bound<'py, Self>) -> PyResult<Any<'py>> {
        eager::method(slf.as_any(), "bitwise_not", &[], None)
    }

    fn __richcmp__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>, op: CompareOp) -> PyResult<Any<'py>> {
        let sign = match op {
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Eq => "==",
            CompareOp::Ne => "!=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
        };
        operator(sign, slf.as_any(), other)
    }

    fn __hash__(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr() as usize >> 4
    }

    fn __repr__(&self) -> PyResult<String> {
        python_text(&Value::Tensor(self.inner.clone()), false).map_err(errors::plain)
    }

    fn __format__(&self, spec: &str) -> PyResult<String> {
        if spec.is_empty() || self.inner.rank() > 0 {
            return self.__repr__();
        }
        let item = self.item_value()?;
        Python::attach(|py| {
            let number = Call::default().give(py, &item.into(), None)?;
            number.call_method1("__format__", (spec,))?.extract()
        })
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.inner.sizes().first() {
            Some(size) => Ok(*size as usize),
            None => Err(PyTypeError::new_err("len() of a 0-d tensor")),
        }
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Any<'py>> {
        if slf.get().inner.rank() == 0 {
            return Err(PyTypeError::new_err("iteration over a 0-d tensor"));
        }
        eager::method(slf.as_any(), "unbind", &[], None)?.try_iter().map(|iter| iter.into_any())
    }

    fn __contains__<'py>(slf: &Bound<'py, Self>, item: &Any<'py>) -> PyResult<bool> {
        operator("==", slf.as_any(), item)?.call_method0("any")?.is_truthy()
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Any<'py>) -> PyResult<Any<'py>> {
        eager::get_item(slf.as_any(), index).map_err(|e| as_index_error(slf.py(), e))
    }

    fn __setitem__<'py>(slf: &Bound<'py, Self>, index: &Any<'py>, value: &Any<'py>) -> PyResult<()> {
        eager::set_item(slf.as_any(), index, value).map_err(|e| as_index_error(slf.py(), e))
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        steers(py, "boolean")?;
        match self.inner.numel() {
            0 => Err(PyRuntimeError::new_err("Boolean value of Tensor with no values is ambiguous")),
            1 => Ok(match self.item_value()? {
                Scalar::Int(x) => x != 0,
                Scalar::Float(x) => x != 0.0,
                Scalar::Complex(x) => x.re != 0.0 || x.im != 0.0,
                Scalar::Bool(x) => x,
            }),
            _ => {
                Err(PyRuntimeError::new_err("Boolean value of Tensor with more than one value is ambiguous"))
            }
        }
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Any<'py>> {
        self.number(py)?.call_method0("__int__").or_else(|_| self.number(py)?.call_method0("__trunc__"))
    }

    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Any<'py>> {
        if !self.inner.dtype().is_integral() || self.inner.numel() != 1 {
            return Err(PyTypeError::new_err(
                "only integer tensors of a single element can be converted to an index",
            ));
        }
        self.number(py)?.call_method0("__index__")
    }

    fn __float__<'py>(&self, py: Python<'py>) -> PyResult<Any<'py>> {
        self.number(py)?.call_method0("__float__")
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Any<'py>> {
        py.get_type::<PyComplex>().call1((self.number(py)?,))
    }

    /// The element of a tensor that has one, as a number of Python.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Any<'py>> {
        self.number(py)
    }

    /// The elements as nested lists of numbers.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Any<'py>> {
        steers(py, "list")?;
        if self.inner.rank() == 0 {
            return self.number(py);
        }
        let all = self.inner.to_scalars().map_err(errors::plain)?;
        nested(py, &mut all.into_iter(), &self.inner.sizes())
    }

    /// Element type.
    #[getter]
    fn dtype(&self) -> PyDType {
        give_dtype(self.inner.dtype())
    }

    /// Where the elements are.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.inner.device())
    }

    /// Size of each dimension.
    #[getter]
    fn shape<'py>(slf: &Bound<'py, Self>) -> PyResult<Any<'py>> {
        sizes_of(slf)
    }

    /// Size of each dimension, or of one.
    #[pyo3(signature = (dim=None))]
    fn size<'py>(slf: &Bound<'py, Self>, dim: Option<i64>) -> PyResult<Any<'py>> {
        let found = one_or_all(slf.py(), &slf.get().inner.sizes(), dim)?;
        match dim {
            Some(dim) if eager::tracing(slf.py())? => sizes_of(slf)?.get_item(dim),
            Some(_) => Ok(found),
            None => sizes_of(slf),
        }
    }

    /// Stride of each dimension in elements, or of one.
    #[pyo3(signature = (dim=None))]
    fn stride<'py>(&self, py: Python<'py>, dim: Option<i64>) -> PyResult<Any<'py>> {
        match dim {
            None => Ok(PyTuple::new(py, self.inner.strides().iter())?.into_any()),
            Some(_) => one_or_all(py, &self.inner.strides(), dim),
        }
    }

    /// Number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.inner.rank()
    }

    /// Number of dimensions.
    fn dim(&self) -> usize {
        self.inner.rank()
    }

    /// Number of elements.
    fn numel<'py>(slf: &Bound<'py, Self>) -> PyResult<Any<'py>> {
        static TRACED: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
        let py = slf.py();
        let count = slf.get().inner.numel().into_bound_py_any(py)?;
        match eager::tracing(py)? {
            true => errors::imported(py, &TRACED, "flambeau._trace", "traced_count")?.call1((slf, count)),
            false => Ok(count),
        }
    }

    /// Number of elements.
    fn nelement<'py>(slf: &Bound<'py, Self>) -> PyResult<Any<'py>> {
        Self::numel(slf)
    }

    /// Bytes of an element.
    fn element_size(&self) -> usize {
        self.inner.dtype().size()
    }

    /// Index of the first element in the storage.
    fn storage_offset(&self) -> usize {
        self.inner.layout().offset
    }

    /// Whether the elements lie densely in row-major order.
    #[pyo3(signature = (memory_format=None))]
    fn is_contiguous(&self, memory_format: Option<i64>) -> bool {
        match memory_format {
            Some(2 | 3) => self.inner.layout().is_channels_last(),
            _ => self.inner.is_contiguous(),
        }
    }

    /// Address of the first element. The memory stays there as long as the tensor lives.
    fn data_ptr(slf: &Bound<'_, Self>) -> PyResult<usize> {
        let meta = slf.get().inner.snapshot();
        let pin = meta.storage.pin().map_err(errors::plain)?;
        let address = pin.address() as usize + meta.layout.offset * meta.dtype.size();
        slf.setattr("_pin", Kept { _pin: pin }.into_bound_py_any(slf.py())?)?;
        Ok(address)
    }

    /// A number that identifies the tensor while it lives.
    #[getter]
    fn _id(&self) -> usize {
        self.inner.id()
    }

    /// Which version the content is: writes count.
    #[getter]
    fn _version(&self) -> u64 {
        self.inner.version()
    }

    /// Counts a write that the memory's owner made.
    fn _written_outside(&self) {
        self.inner.storage().written_outside();
    }

    /// A NumPy array over the same memory.
    #[pyo3(signature = (*, force=false))]
    fn numpy<'py>(slf: &Bound<'py, Self>, force: bool) -> PyResult<Any<'py>> {
        let tensor = &slf.get().inner;
        if tensor.requires_grad() && !force {
            return Err(PyRuntimeError::new_err(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
            ));
        }
        convert::numpy_of(slf.py(), tensor)
    }

    /// The name of the tensor's type as PyTorch has it, `torch.FloatTensor`; the tensor in another type where one is given.
    #[pyo3(name = "type", signature = (dtype=None))]
    fn type_name<'py>(slf: &Bound<'py, Self>, dtype: Option<&Any<'py>>) -> PyResult<Any<'py>> {
        if let Some(dtype) = dtype {
            return eager::method(slf.as_any(), "to", std::slice::from_ref(dtype), None);
        }
        let name = slf.get().inner.dtype().type_name();
        format!("torch.{name}Tensor").into_bound_py_any(slf.py())
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Any<'py>>,
        copy: Option<bool>,
    ) -> PyResult<Any<'py>> {
        let array = convert::numpy_of(py, &self.inner)?;
        match (dtype, copy) {
            (Some(dtype), _) if !dtype.is_none() => array.call_method1("astype", (dtype,)),
            (_, Some(true)) => array.call_method0("copy"),
            _ => Ok(array),
        }
    }

    #[allow(
        unsafe_code,
        reason = "the buffer protocol's functions are unsafe by their signature; `buffer` does the work"
    )]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        buffer::export(&slf, view, flags)
    }

    #[allow(unsafe_code, reason = "Python's signature; `buffer` frees what its own export made")]
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        buffer::release(view);
    }

    /// The tensor for another library, by DLPack.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Any<'py>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Any<'py>> {
        if self.inner.requires_grad() {
            return Err(PyBufferError::new_err(
                "Can't export tensors that require gradient, use tensor.detach()",
            ));
        }
        if stream.is_some_and(|s| !s.is_none()) {
            return Err(PyBufferError::new_err("a tensor on the cpu has no stream"));
        }
        if dl_device.is_some_and(|(kind, _)| kind != 1) {
            return Err(PyBufferError::new_err(
                "the tensor is on the cpu; copy it to the other device first",
            ));
        }
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        if copy == Some(true) {
            let copied = self.inner.copy().map_err(errors::plain)?;
            return dlpack::capsule(py, &copied, versioned);
        }
        dlpack::capsule(py, &self.inner, versioned)
    }

    /// Device type and number, as DLPack counts them.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }

    /// A tensor of PyTorch over the same memory.
    fn torch<'py>(&self, py: Python<'py>) -> PyResult<Any<'py>> {
        match convert::to_torch(py, &self.inner)? {
            Some(object) => Ok(object),
            None => Err(PyTypeError::new_err(format!("PyTorch cannot take {}", self.inner.dtype().name()))),
        }
    }

    /// Whether gradients with respect to it are wanted.
    #[getter]
    fn requires_grad(&self) -> bool {
        self.inner.requires_grad()
    }

    #[setter]
    fn set_requires_grad(&self, on: bool) -> PyResult<()> {
        self.inner.set_requires_grad(on).map_err(errors::plain)
    }

    /// The gradient that `backward` left.
    #[getter]
    fn grad(&self) -> Option<PyTensor> {
        self.inner.grad().map(PyTensor::new)
    }

    #[setter]
    fn set_grad(&self, grad: Option<&Bound<'_, PyTensor>>) {
        self.inner.set_grad(grad.map(|g| g.get().inner.clone()));
    }

    /// Whether no operation made it.
    #[getter]
    fn is_leaf(&self) -> bool {
        self.inner.grad_node().is_none()
    }

    /// The same elements, without their history.
    #[getter]
    fn data(&self) -> PyTensor {
        PyTensor::new(self.inner.detach())
    }

    /// Gives the tensor another tensor's elements.
    #[setter]
    fn set_data(slf: &Bound<'_, Self>, value: &Bound<'_, PyTensor>) -> PyResult<()> {
        let detached = PyTensor::new(slf.get().inner.detach()).into_bound_py_any(slf.py())?;
        eager::method(&detached, "set_", &[value.as_any().clone()], None).map(|_| ())
    }

    /// Makes the tensor require gradients or not.
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_<'py>(slf: Bound<'py, Self>, requires_grad: bool) -> PyResult<Bound<'py, Self>> {
        slf.get().set_requires_grad(requires_grad)?;
        Ok(slf)
    }

    /// The same tensor: it is on the cpu.
    fn cpu<'py>(slf: Bound<'py, Self>) -> Bound<'py, Self> {
        slf
    }

    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Any<'py>> {
        if eager::is_property(name) {
            return eager::property(slf.as_any(), name);
        }
        if name.starts_with("__") || !eager::is_method(name)? {
            return Err(PyAttributeError::new_err(format!("'Tensor' object has no attribute '{name}'")));
        }
        Method { receiver: slf.clone().into_any().unbind(), name: name.to_string() }
            .into_bound_py_any(slf.py())
    }

    fn __dir__(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        let mut names: Vec<String> = slf.get_type().dir()?.extract()?;
        names.extend(eager::method_names()?);
        Ok(names)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Any<'py>, Any<'py>)> {
        let py = slf.py();
        let restore = py.import("flambeau._tensors")?.getattr("restore")?;
        let inner = &slf.get().inner;
        let bytes = pyo3::types::PyBytes::new(py, &inner.to_bytes().map_err(errors::plain)?);
        let parts = (bytes, inner.dtype().name(), inner.sizes().to_vec(), inner.requires_grad());
        Ok((restore, parts.into_bound_py_any(py)?))
    }

    fn __deepcopy__(&self, memo: &Any<'_>) -> PyResult<PyTensor> {
        let _ = memo;
        let copied = self.inner.copy().map_err(errors::plain)?;
        copied.set_requires_grad(self.inner.requires_grad()).map_err(errors::plain)?;
        Ok(PyTensor::new(copied))
    }

    fn __copy__(&self) -> PyTensor {
        PyTensor::new(self.inner.clone())
    }
}

impl PyTensor {
    fn number<'py>(&self, py: Python<'py>) -> PyResult<Any<'py>> {
        steers(py, "number")?;
        let numel = self.inner.numel();
        if numel != 1 {
            return Err(PyRuntimeError::new_err(format!(
                "a Tensor with {numel} elements cannot be converted to Scalar"
            )));
        }
        Call::default().give(py, &self.item_value()?.into(), None)
    }
}

/// What keeps memory in place for an address that was given out.
#[pyclass(frozen)]
struct Kept {
    _pin: flambeau::tensor::Pin,
}

/// A method of a tensor that is an op.
#[pyclass(name = "method", module = "flambeau", frozen)]
struct Method {
    receiver: Py<PyAny>,
    name: String,
}

#[pymethods]
impl Method {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Any<'py>> {
        let given: Vec<Any<'py>> = args.iter().collect();
        eager::method(self.receiver.bind(args.py()), &self.name, &given, kwargs)
    }

    #[getter]
    fn __name__(&self) -> &str {
        &self.name
    }

    fn __repr__(&self) -> String {
        format!("<method {} of Tensor>", self.name)
    }
}

fn size<'py>(py: Python<'py>, sizes: &[i64]) -> PyResult<Any<'py>> {
    static SIZE: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
    errors::imported(py, &SIZE, "flambeau._tensors", "Size")?.call1((sizes.to_vec(),))
}

/// The sizes of a tensor, which remember where they are from while a trace is written.
fn sizes_of<'py>(tensor: &Bound<'py, PyTensor>) -> PyResult<Any<'py>> {
    static TRACED: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
    let py = tensor.py();
    let found = size(py, &tensor.get().inner.sizes())?;
    match eager::tracing(py)? {
        true => errors::imported(py, &TRACED, "flambeau._trace", "traced_sizes")?.call1((tensor, found)),
        false => Ok(found),
    }
}

/// Warns that a value of a tensor steers Python, where a trace is written.
fn steers(py: Python<'_>, what: &str) -> PyResult<()> {
    static WARN: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
    if eager::tracing(py)? {
        errors::imported(py, &WARN, "flambeau._sizes", "warn_of_value")?.call1((what, 2))?;
    }
    Ok(())
}

fn one_or_all<'py>(py: Python<'py>, all: &[i64], dim: Option<i64>) -> PyResult<Any<'py>> {
    let Some(dim) = dim else { return size(py, all) };
    let rank = all.len() as i64;
    let at = if dim < 0 { dim + rank } else { dim };
    match usize::try_from(at).ok().and_then(|at| all.get(at)) {
        Some(n) => n.into_bound_py_any(py),
        None => Err(PyIndexError::new_err(format!(
            "Dimension out of range (expected to be in range of [{}, {}], but got {dim})",
            -rank.max(1),
            rank.max(1) - 1
        ))),
    }
}

fn nested<'py>(py: Python<'py>, all: &mut impl Iterator<Item = Scalar>, sizes: &[i64]) -> PyResult<Any<'py>> {
    match sizes.split_first() {
        None => match all.next() {
            Some(number) => Call::default().give(py, &number.into(), None),
            None => Err(PyValueError::new_err("the tensor changed while it was read")),
        },
        Some((size, inner)) => {
            let items = (0..*size).map(|_| nested(py, all, inner)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
    }
}

/// Errors about indices are IndexErrors to Python, which ends loops by them.
fn as_index_error(py: Python<'_>, error: PyErr) -> PyErr {
    let text = error.value(py).to_string();
    if text.contains("out of bounds") || text.contains("out of range") || text.contains("too many indices") {
        return PyIndexError::new_err(text);
    }
    error
}

/// A tensor over an array's memory: NumPy's, PyTorch's, any with DLPack or a buffer. What cannot be shared is copied.
#[pyfunction]
pub(crate) fn from_array<'py>(object: &Any<'py>) -> PyResult<PyTensor> {
    match Call::default().value(object)? {
        Value::Tensor(tensor) => Ok(PyTensor::new(tensor)),
        _ => Err(PyTypeError::new_err(format!("expected an array, but got {}", object.get_type().name()?))),
    }
}

/// A tensor of little-endian bytes.
#[pyfunction]
pub(crate) fn tensor_from_bytes(data: &[u8], dtype: &PyDType, sizes: Vec<i64>) -> PyResult<PyTensor> {
    Tensor::from_bytes(dtype.0, &sizes, data).map(PyTensor::new).map_err(errors::plain)
}

/// A tensor of numbers in nested lists, or a copy of an array.
#[pyfunction]
#[pyo3(signature = (data, dtype=None))]
pub(crate) fn tensor_of<'py>(data: &Any<'py>, dtype: Option<&Any<'py>>) -> PyResult<PyTensor> {
    let dtype = dtype_argument(dtype)?;
    let mut found = Numbers::default();
    let is_sequence = data.is_instance_of::<PyList>() || data.is_instance_of::<PyTuple>();
    if !is_sequence && let Value::Tensor(tensor) = Call::default().value(data)? {
        let copied = match dtype {
            Some(dtype) if dtype != tensor.dtype() => tensor.to_dtype(dtype),
            _ => tensor.detach().copy(),
        };
        return copied.map(PyTensor::new).map_err(errors::plain);
    }
    found.take(data, 0)?;
    let dtype = dtype.unwrap_or(match found.kind {
        0 => DType::F32,
        1 => DType::Bool,
        2 => DType::I64,
        3 => DType::F32,
        4 => DType::C64,
        _ => found.of_tensors.unwrap_or(DType::F32),
    });
    found.tensor(dtype).map(PyTensor::new)
}

/// Numbers of nested lists.
#[derive(Default)]
struct Numbers {
    all: Vec<Scalar>,
    sizes: Vec<i64>,
    /// Whether a length is known for each depth.
    depth: Option<usize>,
    /// Nothing, bools, ints, floats, complex numbers, tensors: the largest that was met.
    kind: u8,
    of_tensors: Option<DType>,
}

impl Numbers {
    fn take(&mut self, data: &Any<'_>, depth: usize) -> PyResult<()> {
        if data.is_instance_of::<PyList>() || data.is_instance_of::<PyTuple>() {
            if depth > 64 {
                return Err(PyValueError::new_err("too many dimensions"));
            }
            let len = data.len()? as i64;
            match self.sizes.get(depth) {
                None => self.sizes.push(len),
                Some(known) if *known != len => {
                    return Err(PyValueError::new_err(format!(
                        "expected sequence of length {known} at dim {depth} (got {len})"
                    )));
                }
                Some(_) => {}
            }
            for item in data.try_iter()? {
                self.take(&item?, depth + 1)?;
            }
            return Ok(());
        }
        if *self.depth.get_or_insert(depth) != depth {
            return Err(PyTypeError::new_err("not a sequence"));
        }
        let (kind, number) = match Call::default().value(data)? {
            Value::Bool(x) => (1, Scalar::Bool(x)),
            Value::Int(x) => (2, Scalar::Int(x)),
            Value::Float(x) => (3, Scalar::Float(x)),
            Value::Complex(x) => (4, Scalar::Complex(x)),
            Value::Tensor(t) if t.numel() == 1 => {
                self.of_tensors = Some(t.dtype());
                (5, t.item().map_err(errors::plain)?)
            }
            other => {
                return Err(PyTypeError::new_err(format!(
                    "a tensor is made of numbers, not of {}",
                    other.kind_name()
                )));
            }
        };
        self.kind = self.kind.max(kind);
        if data.is_instance_of::<PyBool>() && kind != 1 {
            return Err(PyTypeError::new_err("a bool became another type"));
        }
        self.all.push(number);
        Ok(())
    }

    fn tensor(self, dtype: DType) -> PyResult<Tensor> {
        let wide = match dtype {
            _ if dtype.is_complex() => {
                let all: Vec<num_complex::Complex64> = self.all.iter().map(|x| x.to_complex()).collect();
                Tensor::from_vec(&all, &self.sizes)
            }
            _ if dtype.is_floating() => {
                Tensor::from_vec(&self.all.iter().map(|x| x.to_f64()).collect::<Vec<_>>(), &self.sizes)
            }
            _ => Tensor::from_vec(
                &self
                    .all
                    .iter()
                    .map(|x| match x {
                        Scalar::Int(x) => *x,
                        Scalar::Bool(x) => i64::from(*x),
                        other => other.to_f64() as i64,
                    })
                    .collect::<Vec<_>>(),
                &self.sizes,
            ),
        };
        wide.and_then(|wide| wide.to_dtype(dtype)).map_err(errors::plain)
    }
}
