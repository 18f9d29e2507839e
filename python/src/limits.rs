//! Limits as an object of Python: what calls may use, a context that holds them over a block, and a switch that ends what runs
//! under them.

use flambeau::resources::limits::{self, Limits};
use flambeau::resources::scope::{Scope, Switch};
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;
use std::thread::ThreadId;

/// Limits with their switch, as programs keep them.
pub(crate) struct Bounds {
    limits: Limits,
    switch: Switch,
}

impl Bounds {
    /// Bounds what this thread does as long as the result lives.
    pub(crate) fn begin(&self) -> Scope {
        self.switch.begin(self.limits)
    }
}

/// What programs may use: memory that lives at one time, steps of the interpreter, seconds, calls nested in each other, bytes
/// printed, warnings, forked tasks that are open. In a `with` block they hold for all that the thread does with flambeau in it.
#[pyclass(name = "Limits", module = "flambeau", frozen)]
pub(crate) struct PyLimits {
    pub bounds: Arc<Bounds>,
    /// The blocks that were entered and not left, with the thread of each.
    entered: Mutex<Vec<(ThreadId, Scope)>>,
}

#[pymethods]
impl PyLimits {
    #[new]
    #[pyo3(signature = (*, memory=None, steps=None, seconds=None, depth=None, output=None, warnings=None, forks=None))]
    #[allow(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn new(
        memory: Option<&Bound<'_, PyAny>>,
        steps: Option<&Bound<'_, PyAny>>,
        seconds: Option<f64>,
        depth: Option<&Bound<'_, PyAny>>,
        output: Option<&Bound<'_, PyAny>>,
        warnings: Option<&Bound<'_, PyAny>>,
        forks: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyLimits> {
        let default = Limits::default();
        let time =
            seconds.map(|seconds| limits::seconds_of(seconds).map_err(|e| odd("seconds", e.message())));
        let limits = Limits {
            steps: count("steps", steps)?,
            bytes: size("memory", memory)?,
            time: time.transpose()?,
            depth: count("depth", depth)?.unwrap_or(default.depth),
            output: size("output", output)?,
            warnings: count("warnings", warnings)?,
            forks: count("forks", forks)?.unwrap_or(default.forks),
        };
        let bounds = Bounds { limits, switch: Switch::default() };
        Ok(PyLimits { bounds: Arc::new(bounds), entered: Mutex::default() })
    }

    /// Ends what runs under these limits, from any thread, with a LimitError; so does whatever is begun under them later.
    fn cancel(&self) {
        self.bounds.switch.cancel();
    }

    /// Whether they were cancelled.
    #[getter]
    fn cancelled(&self) -> bool {
        self.bounds.switch.is_cancelled()
    }

    /// Bytes of tensors, lists, dictionaries and text that live at one time; None without a limit.
    #[getter]
    fn memory(&self) -> Option<u64> {
        self.bounds.limits.bytes
    }

    /// Instructions that the interpreter runs; None without a limit.
    #[getter]
    fn steps(&self) -> Option<u64> {
        self.bounds.limits.steps
    }

    /// Seconds; None without a limit.
    #[getter]
    fn seconds(&self) -> Option<f64> {
        self.bounds.limits.time.map(|time| time.as_secs_f64())
    }

    /// Calls nested in each other.
    #[getter]
    fn depth(&self) -> usize {
        self.bounds.limits.depth
    }

    /// Bytes printed; None without a limit.
    #[getter]
    fn output(&self) -> Option<u64> {
        self.bounds.limits.output
    }

    /// Warnings; None without a limit.
    #[getter]
    fn warnings(&self) -> Option<usize> {
        self.bounds.limits.warnings
    }

    /// Forked tasks that have not ended.
    #[getter]
    fn forks(&self) -> usize {
        self.bounds.limits.forks
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        let this = slf.get();
        let entered = (std::thread::current().id(), this.bounds.begin());
        this.entered.lock().push(entered);
        slf
    }

    fn __exit__(
        &self,
        _class: &Bound<'_, PyAny>,
        _raised: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let (this_thread, mut entered) = (std::thread::current().id(), self.entered.lock());
        // A block that another thread leaves than the one that entered it is that one's.
        let own = entered.iter().rposition(|(thread, _)| *thread == this_thread);
        let left = own.map(|at| entered.remove(at)).or_else(|| entered.pop());
        drop(entered);
        left.map(|_| false).ok_or_else(|| PyRuntimeError::new_err("these limits were not entered"))
    }

    fn __repr__(&self) -> String {
        let (limits, default) = (&self.bounds.limits, Limits::default());
        let mut parts: Vec<String> = Vec::new();
        let mut part = |name: &str, value: Option<String>| {
            parts.extend(value.map(|value| format!("{name}={value}")));
        };
        part("memory", limits.bytes.map(|n| n.to_string()));
        part("steps", limits.steps.map(|n| n.to_string()));
        part("seconds", limits.time.map(|time| time.as_secs_f64().to_string()));
        part("depth", (limits.depth != default.depth).then(|| limits.depth.to_string()));
        part("output", limits.output.map(|n| n.to_string()));
        part("warnings", limits.warnings.map(|n| n.to_string()));
        part("forks", (limits.forks != default.forks).then(|| limits.forks.to_string()));
        format!("Limits({})", parts.join(", "))
    }
}

fn odd(name: &str, why: &str) -> PyErr {
    PyValueError::new_err(format!("{name}: {why}"))
}

fn count<'py, T: FromPyObjectOwned<'py>>(
    name: &str,
    given: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<T>> {
    let Some(given) = given else { return Ok(None) };
    given.extract::<T>().map(Some).map_err(|_| odd(name, &format!("{given} is not a whole number from 0 on")))
}

/// A number of bytes, or a text such as "1G".
fn size(name: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    match given.and_then(|given| given.extract::<String>().ok()) {
        Some(text) => limits::bytes_of(&text).map(Some).map_err(|error| odd(name, error.message())),
        None => count(name, given),
    }
}
