//! Panics as errors: a bug in one pass must not take the whole program down, and must say where it is.

use super::{Diagnostic, ErrorKind};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Runs `work`; a panic inside becomes an error that names `what` and the panic's message and place. Nothing is
/// written to standard error by a panic that is caught here.
pub fn catch<T>(what: &str, work: impl FnOnce() -> T) -> Result<T, Diagnostic> {
    HOOK.call_once(install);
    DEPTH.set(DEPTH.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    result.map_err(|payload| {
        let text = payload
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_string()))
            .unwrap_or_else(|| "no message".to_string());
        let error = Diagnostic::new(ErrorKind::Panic, format!("{what} panicked: {text}"));
        let error = match LAST.take() {
            Some(place) => error.note(format!("the panic was raised at {place}")),
            None => error,
        };
        error.hint("this is a bug of the program; please report it with the input that caused it")
    })
}

/// Wraps the process's panic hook: panics that are caught only leave their place behind.
fn install() {
    let outer = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if DEPTH.get() == 0 {
            outer(info);
            return;
        }
        let place = info.location().map(|l| format!("{}:{}:{}", l.file(), l.line(), l.column()));
        LAST.set(place);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_place() {
        let error = catch("pass 'x'", || panic!("index {}", 3)).expect_err("it panics");
        assert_eq!(error.message(), "pass 'x' panicked: index 3");
        assert!(error.report().notes[0].contains("panics.rs"), "{error}");
        assert_eq!(catch("y", || 1).expect("no panic"), 1);
    }
}
