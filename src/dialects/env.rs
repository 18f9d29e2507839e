//! The world that ops may read and write: standard output, warnings, grad mode.

use parking_lot::Mutex;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// What one run of a program shares with its surroundings.
pub struct Env {
    stdout: Mutex<Box<dyn Write + Send>>,
    warnings: Mutex<Vec<String>>,
    grad_enabled: AtomicBool,
}

impl Default for Env {
    fn default() -> Env {
        Env::new(Box::new(std::io::stdout()))
    }
}

impl Env {
    /// A world whose programs print to `stdout`. Gradients are recorded until somebody turns them off.
    pub fn new(stdout: Box<dyn Write + Send>) -> Env {
        Env { stdout: Mutex::new(stdout), warnings: Mutex::default(), grad_enabled: AtomicBool::new(true) }
    }

    /// Prints text as `print` does. A closed pipe is not the program's fault and is ignored.
    pub fn print(&self, text: &str) {
        let _ = self.stdout.lock().write_all(text.as_bytes());
    }

    /// Records a warning of the program.
    pub fn warn(&self, text: String) {
        self.warnings.lock().push(text);
    }

    /// Takes the warnings recorded so far.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock())
    }

    /// Whether gradients are recorded.
    pub fn grad_enabled(&self) -> bool {
        self.grad_enabled.load(Ordering::Relaxed)
    }

    /// Turns recording of gradients on or off and gives the former state.
    pub fn set_grad_enabled(&self, on: bool) -> bool {
        self.grad_enabled.swap(on, Ordering::Relaxed)
    }
}
