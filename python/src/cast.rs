//! Autocasting around a call, as PyTorch's contexts set it.

use crate::errors;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The dtype of a context of autocasting.
#[derive(Clone, Copy)]
pub(crate) enum Cast {
    BFloat16,
    Float16,
}

impl Cast {
    /// That of PyTorch, for the CPU.
    pub(crate) fn of_torch(py: Python<'_>) -> PyResult<Option<Cast>> {
        static ENABLED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let enabled = errors::imported(py, &ENABLED, "torch", "is_autocast_enabled")?;
        if !enabled.call1((intern!(py, "cpu"),))?.is_truthy()? {
            return Ok(None);
        }
        let dtype = py.import("torch")?.call_method1("get_autocast_dtype", ("cpu",))?.str()?.to_string();
        Ok(Some(if dtype == "torch.float16" { Cast::Float16 } else { Cast::BFloat16 }))
    }
}
