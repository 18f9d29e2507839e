//! What calls share: random numbers of the process, grad mode of the thread, Python's standard output.

use crate::errors;
use crate::generator::Keeper;
use flambeau::diag::log::LogSpec;
use flambeau::dialects::{Registry, Run};
use flambeau::resources::{Budget, Limits, budget, host};
use flambeau::toolkit::Toolkit;
use parking_lot::{Mutex, RwLock};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// The toolkit of the package: the built-in one, the op that calls Python, and what `extend` added.
static TOOLKIT: LazyLock<RwLock<Toolkit>> = LazyLock::new(|| RwLock::new(crate::program::toolkit()));

/// What the runs of all threads come from, so that they share random numbers.
static ROOT: LazyLock<Mutex<Run>> = LazyLock::new(|| Mutex::new(Run::new(Box::new(Stdout))));

/// How often the toolkit was set.
static GENERATION: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static RUN: RefCell<(Option<u64>, Rc<Run>)> = RefCell::new((None, Rc::new(ROOT.lock().fork())));
    static OPTIMIZED: Cell<bool> = const { Cell::new(true) };
}

/// Works in this thread's run, under the limits of the thread.
pub(crate) fn with_run<T>(work: impl FnOnce(&Run) -> T) -> T {
    let run = thread_run();
    let limited = run.within(budget::current().unwrap_or_default());
    let result = work(&limited);
    // Programs may change the mode.
    run.set_grad_enabled(limited.grad_enabled());
    result
}

/// The run that calls of this thread come from. After additions to the toolkit it is another: what derivatives and composites mean
/// is asked of the ops that are known now.
fn thread_run() -> Rc<Run> {
    let generation = GENERATION.load(Ordering::Acquire);
    RUN.with_borrow_mut(|(known, run)| {
        if *known != Some(generation) {
            let renewed = ROOT.lock().fork();
            flambeau::runtime::prepare(&renewed, current().registry());
            renewed.set_grad_enabled(run.grad_enabled());
            renewed.set_plan_limit(run.plan_limit());
            renewed.set_static_plans(run.static_plans());
            renewed.set_profiled_runs(run.profiled_runs());
            renewed.set_plans_in_background(run.plans_in_background());
            (*known, *run) = (Some(generation), Rc::new(renewed));
        }
        Rc::clone(run)
    })
}

thread_local! {
    /// What a handler of a signal raised while this thread worked.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// Whether this is the thread that handles signals, and of which process.
    static HANDLES: Cell<Option<(u32, bool)>> = const { Cell::new(None) };
}

/// Lets other threads of Python go on while `work` runs. It is a run of its own under the limits of the thread; Ctrl-C ends it with
/// KeyboardInterrupt, as does whatever else a handler of signals raises.
pub(crate) fn outside<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let budget = Arc::new(Budget::within(Limits::default(), budget::current()));
    budget.check().map_err(errors::plain)?;
    let result = py.detach(|| {
        let _installed = budget.install();
        let _asked = host::ask(is_interrupted);
        work()
    });
    match RAISED.take() {
        Some(raised) => Err(raised),
        None => Ok(result),
    }
}

/// Runs handlers of signals that came meanwhile; says whether one raised.
fn is_interrupted() -> bool {
    if RAISED.with_borrow(Option::is_some) {
        return true;
    }
    let process = std::process::id();
    if HANDLES.get().is_some_and(|(known, handles)| known == process && !handles) {
        return false;
    }
    Python::attach(|py| {
        // Whatever runs Python may run handlers, too, and so raise what they do.
        match py.check_signals().and_then(|()| handles_signals(py)) {
            Ok(handles) => {
                HANDLES.set(Some((process, handles)));
                false
            }
            Err(raised) => {
                RAISED.set(Some(raised));
                true
            }
        }
    })
}

fn handles_signals(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    main.eq(threading.call_method0("get_ident")?)
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
    let warnings = thread_run().take_warnings();
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

/// Draws random numbers from a generator of Python's: `state` gives its state as bytes, or None for a generator of one's own;
/// `keep` takes the state after a draw.
#[pyfunction]
pub(crate) fn draw_from(state: Py<PyAny>, keep: Py<PyAny>) {
    ROOT.lock().set_state_keeper(Arc::new(Keeper { state, keep }));
}

/// Seeds the random numbers of all programs of the process.
#[pyfunction]
pub(crate) fn manual_seed(py: Python<'_>, seed: i64) {
    py.detach(|| thread_run().seed(seed as u64));
}

/// Whether calls of this thread record gradients.
#[pyfunction]
pub(crate) fn grad_enabled() -> bool {
    thread_run().grad_enabled()
}

/// Lets calls of this thread record gradients or not; gives what was before.
#[pyfunction]
pub(crate) fn set_grad_enabled(on: bool) -> bool {
    thread_run().set_grad_enabled(on)
}

/// Whether calls of this thread run the program that the passes made, by plans; else they run it as compiled.
#[pyfunction]
pub(crate) fn optimized() -> bool {
    OPTIMIZED.get()
}

/// Sets what `optimized` gives; gives what was before.
#[pyfunction]
pub(crate) fn set_optimized(on: bool) -> bool {
    OPTIMIZED.replace(on)
}

/// How many plans of a function programs keep, each for one kind of arguments, and how many kinds that differ in sizes alone have
/// plans of their own before one leaves the sizes open; None for all.
#[pyfunction]
#[pyo3(signature = (plans, own=None))]
pub(crate) fn set_plan_limit(plans: usize, own: Option<usize>) {
    let run = thread_run();
    run.set_plan_limit(plans);
    run.set_static_plans(own.unwrap_or(usize::MAX));
}

/// Whether calls of this thread may have plans.
pub(crate) fn plans() -> bool {
    optimized() && thread_run().plan_limit() > 0
}

/// Sets which call of a kind of arguments makes the plan of its kind; gives what was before.
#[pyfunction]
pub(crate) fn set_profiled_runs(calls: usize) -> usize {
    let run = thread_run();
    let former = run.profiled_runs();
    run.set_profiled_runs(calls);
    former
}

/// Lets other threads make the plans of this thread's calls, or the calls themselves; gives what was before.
#[pyfunction]
pub(crate) fn set_plans_in_background(on: bool) -> bool {
    let run = thread_run();
    let former = run.plans_in_background();
    run.set_plans_in_background(on);
    former
}

/// What programs log that are compiled from now on: the text that says so, what it means, and whether it goes to standard output.
static LOGGING: LazyLock<RwLock<(String, LogSpec, bool)>> = LazyLock::new(RwLock::default);
/// Whether anything was ever to be logged: calls ask that alone.
static LOGS: AtomicBool = AtomicBool::new(false);

/// Sets what is logged of programs that are compiled from now on: `cse:>simplify`, names of passes and `fusion`.
#[pyfunction]
pub(crate) fn set_logging_option(option: &str) -> PyResult<()> {
    let toolkit = current();
    let spec = flambeau::tools::prepare::log_spec(Some(option), toolkit.passes()).map_err(errors::plain)?;
    LOGS.fetch_or(!spec.is_empty(), Ordering::Relaxed);
    let mut logging = LOGGING.write();
    (logging.0, logging.1) = (option.to_string(), spec);
    Ok(())
}

/// What `set_logging_option` was given last.
#[pyfunction]
pub(crate) fn logging_option() -> String {
    LOGGING.read().0.clone()
}

/// Sets whether logs go to `sys.stdout`; else to `sys.stderr`.
#[pyfunction]
pub(crate) fn set_logging_to_stdout(on: bool) {
    LOGGING.write().2 = on;
}

/// What is logged now.
pub(crate) fn log_spec() -> LogSpec {
    LOGGING.read().1.clone()
}

/// Shows what passes logged, which `logged` gives.
pub(crate) fn show_logs(py: Python<'_>, logged: impl FnOnce() -> String) -> PyResult<()> {
    if !LOGS.load(Ordering::Relaxed) {
        return Ok(());
    }
    let text = logged();
    if text.is_empty() {
        return Ok(());
    }
    let stream = if LOGGING.read().2 { "stdout" } else { "stderr" };
    py.import("sys")?.getattr(stream)?.call_method1("write", (text,))?;
    Ok(())
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
