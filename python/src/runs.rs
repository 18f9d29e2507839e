//! What calls share: random numbers of the process, grad mode of the thread, Python's standard output.

use crate::errors;
use flambeau::dialects::{Registry, Run, StateKeeper};
use flambeau::toolkit::Toolkit;
use parking_lot::{Mutex, RwLock};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// The toolkit of the package: the built-in one, the op that calls Python, and what `extend` added.
static TOOLKIT: LazyLock<RwLock<Toolkit>> = LazyLock::new(|| RwLock::new(crate::program::toolkit()));

/// What the runs of all threads come from, so that they share random numbers.
static ROOT: LazyLock<Mutex<Run>> = LazyLock::new(|| Mutex::new(Run::new(Box::new(Stdout))));

/// How often the toolkit was set.
static GENERATION: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static RUN: RefCell<(u64, Rc<Run>)> = RefCell::new((0, Rc::new(ROOT.lock().fork())));
    static OPTIMIZED: Cell<bool> = const { Cell::new(true) };
}

/// Works in this thread's run. After additions to the toolkit it is another: what derivatives and composites mean is asked of
/// the ops that are known now.
pub(crate) fn with_run<T>(work: impl FnOnce(&Run) -> T) -> T {
    let generation = GENERATION.load(Ordering::Acquire);
    let run = RUN.with_borrow_mut(|(known, run)| {
        if *known != generation {
            let renewed = ROOT.lock().fork();
            flambeau::runtime::prepare(&renewed, current().registry());
            renewed.set_grad_enabled(run.grad_enabled());
            renewed.set_plan_limit(run.plan_limit());
            (*known, *run) = (generation, Rc::new(renewed));
        }
        Rc::clone(run)
    });
    work(&run)
}

/// Runs `work` with gradients recorded or not, then as before.
pub(crate) fn with_grad<T>(on: bool, work: impl FnOnce(&Run) -> T) -> T {
    with_run(|run| {
        let former = run.set_grad_enabled(on && run.grad_enabled());
        let result = work(run);
        run.set_grad_enabled(former);
        result
    })
}

/// Sends the warnings of programs to Python.
pub(crate) fn pass_warnings(py: Python<'_>) -> PyResult<()> {
    let warnings = with_run(Run::take_warnings);
    if warnings.is_empty() {
        return Ok(());
    }
    let warn = py.import("warnings")?.getattr("warn")?;
    for text in warnings {
        warn.call1((text,))?;
    }
    Ok(())
}

/// Python's `sys.stdout`, whatever it is at the moment.
struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let written = Python::attach(|py| -> PyResult<()> {
            py.import("sys")?.getattr("stdout")?.call_method1("write", (text.as_ref(),))?;
            Ok(())
        });
        written.map(|()| bytes.len()).map_err(|e| std::io::Error::other(e.to_string()))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A generator of Python's, whose state two functions read and set.
struct Keeper {
    state: Py<PyAny>,
    keep: Py<PyAny>,
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

/// Draws random numbers from a generator of Python's: `state` gives its state as bytes, or None for a generator of one's own;
/// `keep` takes the state after a draw.
#[pyfunction]
pub(crate) fn draw_from(state: Py<PyAny>, keep: Py<PyAny>) {
    ROOT.lock().set_state_keeper(Arc::new(Keeper { state, keep }));
}

/// Seeds the random numbers of all programs of the process.
#[pyfunction]
pub(crate) fn manual_seed(py: Python<'_>, seed: i64) {
    py.detach(|| with_run(|run| run.seed(seed as u64)));
}

/// Whether calls of this thread record gradients.
#[pyfunction]
pub(crate) fn grad_enabled() -> bool {
    with_run(Run::grad_enabled)
}

/// Lets calls of this thread record gradients or not; gives what was before.
#[pyfunction]
pub(crate) fn set_grad_enabled(on: bool) -> bool {
    with_run(|run| run.set_grad_enabled(on))
}

/// Whether calls of this thread run the program that the passes made, by plans; else they run it as it was compiled.
#[pyfunction]
pub(crate) fn optimized() -> bool {
    OPTIMIZED.get()
}

/// Sets what `optimized` gives; gives what was before.
#[pyfunction]
pub(crate) fn set_optimized(on: bool) -> bool {
    OPTIMIZED.replace(on)
}

/// How many plans of a function programs keep, each for one kind of arguments.
#[pyfunction]
pub(crate) fn set_plan_limit(plans: usize) {
    with_run(|run| run.set_plan_limit(plans));
}

/// The toolkit as it is now.
pub(crate) fn current() -> Toolkit {
    TOOLKIT.read().clone()
}

/// The ops that are known now.
pub(crate) fn registry() -> PyResult<Arc<Registry>> {
    Ok(Arc::clone(toolkit()?.registry()))
}

/// The toolkit as it is now. Fails where it could not be made.
pub(crate) fn toolkit() -> PyResult<Toolkit> {
    let toolkit = current();
    toolkit.check().map_err(errors::plain)?;
    Ok(toolkit)
}

/// Sets what `toolkit` gives. Programs keep the one that they were compiled with.
pub(crate) fn set_toolkit(toolkit: Toolkit) {
    *TOOLKIT.write() = toolkit;
    GENERATION.fetch_add(1, Ordering::Release);
}

/// How many threads share the loops of this process.
#[pyfunction]
pub(crate) fn get_num_threads() -> usize {
    flambeau::resources::pool::threads()
}

/// Sets what `get_num_threads` gives.
#[pyfunction]
pub(crate) fn set_num_threads(threads: usize) -> PyResult<()> {
    if threads == 0 {
        return Err(PyRuntimeError::new_err("set_num_threads expects a positive integer"));
    }
    flambeau::resources::pool::set_threads(threads);
    Ok(())
}
