//! Diagnostics as Python's exceptions, in PyTorch's wording: messages, places and hints are attributes besides.

use flambeau::diag::{Diagnostic, ErrorKind, Span, torch};
use flambeau::runtime::traceback;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// Longer values in messages are cut: a tensor of a million numbers is unreadable.
const MAX_VALUE: usize = 1200;

pyo3::create_exception!(
    _flambeau,
    Error,
    PyRuntimeError,
    "An error of a running program: what torch.jit.Error is to PyTorch."
);
pyo3::create_exception!(
    _flambeau,
    CompileError,
    PyRuntimeError,
    "A program that cannot be compiled: PyTorch's message with the place; `hints` and `notes` say more."
);

pyo3::create_exception!(
    _flambeau,
    LimitError,
    PyRuntimeError,
    "A limit that was reached, or a run that was cancelled: `limit` is its name as flambeau.Limits has it, or 'cancel'; `place` is the file, line and column of the program."
);

/// Adds the exception classes.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let limit = py.get_type::<LimitError>();
    limit.setattr("limit", "")?;
    limit.setattr("place", py.None())?;
    module.add("LimitError", limit)?;
    module.add("Error", py.get_type::<Error>())?;
    module.add("CompileError", py.get_type::<CompileError>())
}

/// The error of an operation that Python itself called: no traceback of TorchScript.
pub(crate) fn plain(error: Diagnostic) -> PyErr {
    raise(&error, error.report().class.as_deref().unwrap_or("RuntimeError"), error.message().to_string())
}

/// The error of a program.
pub(crate) fn of_program(error: Diagnostic) -> PyErr {
    let kind = error.kind();
    if kind == ErrorKind::Syntax || kind == ErrorKind::Compile {
        return of_compiler(error);
    }
    let (class, message) = traceback::python(&error);
    raise(&error, &class, message)
}

/// The error of the compiler.
pub(crate) fn of_compiler(error: Diagnostic) -> PyErr {
    Python::attach(|py| {
        if let Some(own) = python_error(&error, py) {
            return own;
        }
        if error.report().limit.is_some() {
            return raise(&error, "RuntimeError", traceback::python(&error).1);
        }
        decorated(py, CompileError::new_err(torch::render(&error)), &error)
    })
}

fn raise(error: &Diagnostic, class: &str, message: String) -> PyErr {
    Python::attach(|py| {
        if let Some(own) = python_error(error, py) {
            return own;
        }
        let message = cut(message);
        let short = class.rsplit('.').next().unwrap_or(class);
        let made = match (error.kind(), short) {
            _ if error.report().limit.is_some() => LimitError::new_err(message),
            (ErrorKind::Input, _) => PyRuntimeError::new_err(message),
            (_, "Error") => Error::new_err(message),
            _ => match builtin(py, short) {
                Some(class) => PyErr::from_type(class, message),
                None => PyRuntimeError::new_err(message),
            },
        };
        decorated(py, made, error)
    })
}

fn builtin<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyType>> {
    let class = py.import("builtins").ok()?.getattr(name).ok()?.cast_into::<PyType>().ok()?;
    class.is_subclass_of::<pyo3::exceptions::PyException>().ok()?.then_some(class)
}

/// Adds what the error knows besides its message.
fn decorated(py: Python<'_>, raised: PyErr, error: &Diagnostic) -> PyErr {
    let report = error.report();
    let value = raised.value(py);
    let place = report.span.as_ref().map(|span: &Span| {
        let (line, column) = span.line_column();
        (span.source().name().to_string(), line, column + 1)
    });
    // An exception class of the user's may refuse attributes; the message is all the same.
    let _ = value.setattr("place", place);
    // Hints name the options of the command line; here limits have their names of Python.
    let hints = match report.limit {
        None => report.hints.clone(),
        Some("cancel") => Vec::new(),
        Some("names") => vec!["names live as long as the process; a new one begins anew".to_string()],
        Some(name) => vec![format!("flambeau.Limits({name}=...) sets it")],
    };
    if let Some(limit) = report.limit {
        let _ = value.setattr("limit", limit);
    }
    let _ = value.setattr("hints", hints.clone());
    let _ = value.setattr("notes", report.notes.clone());
    for hint in &hints {
        let _ = value.call_method1("add_note", (format!("hint: {hint}"),));
    }
    raised
}

fn cut(message: String) -> String {
    let cut_line = |line: &str| {
        if line.len() <= MAX_VALUE {
            return line.to_string();
        }
        let end = (0..=MAX_VALUE).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
        format!("{}... ({} characters more)", &line[..end], line.len() - end)
    };
    // The value that a message quotes stands between "Value: " and "Declaration: ".
    match (message.find("Value: "), message.rfind("\nDeclaration: ")) {
        (Some(from), Some(to)) if to > from => {
            format!("{}{}{}", &message[..from], cut_line(&message[from..to]), &message[to..])
        }
        _ => message,
    }
}

/// Python's own exceptions travel through the compiler and the interpreter by number.
static KEPT: parking_lot::Mutex<Vec<(u64, PyErr)>> = parking_lot::Mutex::new(Vec::new());
static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
/// Maximum number that are kept: each is taken by the call that it ends, all but those that a program catches.
const MAX_KEPT: usize = 64;
const MARK: &str = "python exception ";

/// An exception of Python as a diagnostic, which becomes the exception again.
pub(crate) fn from_python(py: Python<'_>, raised: PyErr) -> Diagnostic {
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let text = raised.value(py).to_string();
    let class = raised.get_type(py).name().map(|n| n.to_string()).unwrap_or_default();
    let mut kept = KEPT.lock();
    if kept.len() >= MAX_KEPT {
        kept.remove(0);
    }
    kept.push((number, raised));
    Diagnostic::compile(text.clone()).note(format!("{MARK}{number}: {class}: {text}"))
}

/// The exception of Python that a diagnostic stands for.
fn python_error(error: &Diagnostic, py: Python<'_>) -> Option<PyErr> {
    let notes = &error.report().notes;
    let number = notes.iter().find_map(|n| n.strip_prefix(MARK)?.split(':').next()?.parse::<u64>().ok())?;
    let mut kept = KEPT.lock();
    let at = kept.iter().position(|(n, _)| *n == number)?;
    let (_, own) = kept.remove(at);
    drop(kept);
    let _ = py;
    Some(own)
}

/// Imports something once.
pub(crate) fn imported<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    module: &str,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let found = cell.get_or_try_init(py, || py.import(module)?.getattr(name).map(Bound::unbind))?;
    Ok(found.bind(py).clone())
}
