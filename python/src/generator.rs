//! Random generators of Python's: Flambeau's own, and PyTorch's, whose state stays theirs.

use crate::errors;
use flambeau::value::generator::Generator;
use flambeau::value::{SharedGenerator, StateKeeper, Value};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// What `flambeau.Generator` draws from, shared with the programs that it is given to.
#[pyclass(name = "GeneratorState", module = "flambeau._flambeau", frozen)]
pub(crate) struct PyGeneratorState {
    pub generator: SharedGenerator,
}

#[pymethods]
impl PyGeneratorState {
    /// A generator with the seed that PyTorch gives one.
    #[new]
    fn new() -> PyGeneratorState {
        PyGeneratorState { generator: SharedGenerator::new(Generator::new(Generator::DEFAULT_SEED)) }
    }

    /// Seeds it.
    fn manual_seed(&self, py: Python<'_>, seed: u64) -> PyResult<()> {
        self.become_one(py, Generator::new(seed))
    }

    /// Seeds it from the system's entropy; the seed.
    fn seed(&self, py: Python<'_>) -> PyResult<u64> {
        let generator = Generator::from_entropy().map_err(errors::plain)?;
        let seed = generator.seed();
        self.become_one(py, generator)?;
        Ok(seed)
    }

    /// What it was seeded with.
    fn initial_seed(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.generator.with(|g| Ok(g.seed()))).map_err(errors::plain)
    }

    /// Its state, as `torch.get_rng_state()` gives it.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let state = py.detach(|| self.generator.with(|g| Ok(g.state()))).map_err(errors::plain)?;
        Ok(PyBytes::new(py, &state))
    }

    /// Takes a state that `state` gave.
    fn set_state(&self, py: Python<'_>, state: &[u8]) -> PyResult<()> {
        self.become_one(py, Generator::from_state(state).map_err(errors::plain)?)
    }
}

impl PyGeneratorState {
    fn become_one(&self, py: Python<'_>, generator: Generator) -> PyResult<()> {
        let set = |own: &mut Generator| {
            *own = generator;
            Ok(())
        };
        py.detach(|| self.generator.with(set)).map_err(errors::plain)
    }
}

/// A generator of Python's, whose state two functions read and set.
pub(crate) struct Keeper {
    pub state: Py<PyAny>,
    pub keep: Py<PyAny>,
}

impl StateKeeper for Keeper {
    fn state(&self) -> flambeau::diag::Result<Option<Vec<u8>>> {
        Python::attach(|py| {
            let state = self.state.call0(py).and_then(|state| state.extract(py));
            state.map_err(|error| errors::from_python(py, error))
        })
    }

    fn keep(&self, state: &[u8]) -> flambeau::diag::Result<()> {
        Python::attach(|py| {
            let kept = self.keep.call1(py, (PyBytes::new(py, state),));
            kept.map(drop).map_err(|error| errors::from_python(py, error))
        })
    }
}

/// A `Generator` of Flambeau's or of PyTorch's as a value.
pub(crate) fn value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    let py = object.py();
    if let Ok(state) = object.getattr("_c")
        && let Ok(state) = state.cast::<PyGeneratorState>()
    {
        return Ok(Value::Generator(state.get().generator.clone()));
    }
    static FUNCTIONS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let functions = errors::imported(py, &FUNCTIONS, "flambeau._random", "functions_of")?;
    let (state, keep) = functions.call1((object,))?.extract()?;
    Ok(Value::Generator(SharedGenerator::kept_by(Arc::new(Keeper { state, keep }))))
}

/// A generator that a program made as a `flambeau.Generator`.
pub(crate) fn give<'py>(py: Python<'py>, generator: &SharedGenerator) -> PyResult<Bound<'py, PyAny>> {
    static WRAP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let wrap = errors::imported(py, &WRAP, "flambeau._random", "wrapped")?;
    wrap.call1((PyGeneratorState { generator: generator.clone() },))
}
