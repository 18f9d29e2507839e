//! Dtypes and devices as Python objects.

use flambeau::tensor::{DType, Device};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// An element type: `flambeau.float32`. Equal to PyTorch's dtype of the same name.
#[pyclass(name = "dtype", module = "flambeau", frozen, from_py_object)]
#[derive(Clone, Copy)]
pub(crate) struct PyDType(pub(crate) DType);

#[pymethods]
impl PyDType {
    fn __repr__(&self) -> String {
        format!("torch.{}", self.0.name())
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<(Py<PyAny>, (String,))> {
        let find = slf.py().import("flambeau")?.getattr("_dtype_of")?;
        Ok((find.unbind(), (slf.get().0.name().to_string(),)))
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let same = dtype_from(other)?.is_some_and(|dtype| dtype == self.0);
        match op {
            CompareOp::Eq => Ok(same.into_pyobject(py)?.to_owned().into_any().unbind()),
            CompareOp::Ne => Ok((!same).into_pyobject(py)?.to_owned().into_any().unbind()),
            _ => Ok(py.NotImplemented()),
        }
    }

    fn __hash__(&self) -> u64 {
        self.0.code() as u64 + 1000
    }

    /// The number that scripts know it by.
    #[getter]
    fn code(&self) -> i64 {
        self.0.code()
    }

    /// Bytes of an element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    /// Whether elements are floats.
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_floating()
    }

    /// Whether elements are complex numbers.
    #[getter]
    fn is_complex(&self) -> bool {
        self.0.is_complex()
    }

    /// Whether elements have a sign.
    #[getter]
    fn is_signed(&self) -> bool {
        self.0.is_signed()
    }
}

/// Every dtype that programs can name, with its name.
#[pyfunction]
pub(crate) fn all_dtypes() -> Vec<(String, PyDType)> {
    let codes = (0..64).filter_map(DType::from_code);
    codes
        .filter(|d| DType::from_name(d.name()) == Some(*d))
        .map(|d| (d.name().to_string(), PyDType(d)))
        .collect()
}

/// The dtype that an object of Python is: ours, PyTorch's, NumPy's, `float`.
pub(crate) fn dtype_from(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    if let Ok(own) = object.cast::<PyDType>() {
        return Ok(Some(own.get().0));
    }
    let kind = object.get_type();
    let kind = kind.name()?;
    match kind.to_str()? {
        "dtype" => Ok(object.str()?.to_str()?.strip_prefix("torch.").and_then(DType::from_name)),
        _ => Ok(None),
    }
}

/// A device: `flambeau.device("cpu")`.
#[pyclass(name = "device", module = "flambeau", frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct PyDevice(pub(crate) Device);

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (r#type, index=None))]
    fn new(r#type: &Bound<'_, PyAny>, index: Option<u32>) -> PyResult<PyDevice> {
        let text = r#type.str()?.to_string();
        let text = index.map_or(text.clone(), |index| format!("{text}:{index}"));
        text.parse().map(PyDevice).map_err(PyRuntimeError::new_err)
    }

    fn __repr__(&self) -> String {
        match self.0.index() {
            Some(index) => format!("device(type='{}', index={index})", self.0.kind_name()),
            None => format!("device(type='{}')", self.0.kind_name()),
        }
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let kind = other.get_type();
        Ok(kind.name()?.to_str()? == "device" && other.str()?.to_str()? == self.0.to_string())
    }

    fn __hash__(&self) -> u64 {
        self.0.to_string().bytes().fold(7, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)))
    }

    /// `cpu`, `cuda`, ...
    #[getter]
    fn r#type(&self) -> &'static str {
        self.0.kind_name()
    }

    /// Which of them.
    #[getter]
    fn index(&self) -> Option<u32> {
        self.0.index()
    }
}
