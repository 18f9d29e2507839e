//! Lists and dictionaries that Python and programs share: what one of them changes, the other sees.

use crate::convert::{Call, Kind};
use crate::errors;
use flambeau::value::Value;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A list or dictionary of a program, held by Python.
#[pyclass(name = "Shared", module = "flambeau._flambeau", frozen)]
pub(crate) struct PyShared {
    pub value: Value,
}

#[pymethods]
impl PyShared {
    /// Takes what a list or dictionary of Python holds.
    #[new]
    fn new(object: &Bound<'_, PyAny>) -> PyResult<PyShared> {
        let value = Call::default().value(object)?;
        let ty = value.ty();
        let is_uniform = match &value {
            Value::List(list) => list.items().iter().all(|item| item.ty() == *list.element_type()),
            Value::Dict(dict) => dict.entries().iter().all(|(_, item)| item.ty() == *dict.value_type()),
            _ => return Err(PyTypeError::new_err("only lists and dictionaries are shared")),
        };
        if !is_uniform {
            return Err(PyTypeError::new_err(format!(
                "the items are not all of one type: the first makes {ty}"
            )));
        }
        match &value {
            Value::List(list) => list.share_with_calls(),
            Value::Dict(dict) => dict.share_with_calls(),
            _ => {}
        }
        Ok(PyShared { value })
    }

    /// Its type as an annotation.
    fn annotation(&self) -> String {
        self.value.ty().annotation()
    }

    /// What it holds now, as a list or dictionary of Python; `kind` says whose arrays.
    #[pyo3(signature = (kind=None))]
    fn copied<'py>(&self, py: Python<'py>, kind: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let mut call = Call::default();
        call.kind = kind.and_then(Kind::by_name);
        call.give(py, &self.value, None)
    }

    /// Takes what another list or dictionary of its type holds instead.
    fn replace(&self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let given = Call::default().value(object)?;
        let module = flambeau::ir::Module::default();
        let given = flambeau::runtime::converted(&given, &self.value.ty(), &module).map_err(errors::plain)?;
        match (&self.value, &given) {
            (Value::List(own), Value::List(other)) => {
                let items = other.to_vec();
                *own.items_mut() = items;
                Ok(())
            }
            (Value::Dict(own), Value::Dict(other)) => {
                let entries: Vec<(Value, Value)> =
                    other.entries().iter().map(|(k, v)| (k.to_value(), v.clone())).collect();
                own.entries_mut().clear();
                entries.into_iter().try_for_each(|(k, v)| own.insert(&k, v)).map_err(errors::plain)
            }
            _ => Err(PyTypeError::new_err("a list cannot become a dictionary, nor the reverse")),
        }
    }
}
