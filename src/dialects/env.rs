//! The world that ops may read and write: standard output, warnings, grad mode.

use super::generator::Generator;
use super::{Op, Outputs};
use crate::diag::{Diagnostic, Result};
use crate::ir::Graph;
use crate::value::Value;
use parking_lot::Mutex;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs ops whose meaning is TorchScript text. A layer that has a frontend and an interpreter provides it.
pub trait Composites: Send + Sync {
    /// Runs the one function of `text` on the op's arguments.
    fn run(&self, op: &Op, text: &str, values: &[Value], env: &Env) -> Result<Outputs>;
}

/// Calls methods of script classes for ops that need them (`sort` of a list of objects).
pub trait Methods: Send + Sync {
    /// Calls `object.name(arguments…)`.
    fn call(
        &self,
        object: &crate::value::Object,
        name: &str,
        arguments: &[Value],
        env: &Env,
    ) -> Result<Value>;

    /// Whether objects of the class can be ordered: `__lt__` takes two of them and gives a bool.
    fn has_order(&self, object: &crate::value::Object) -> bool;
}

/// What one run of a program shares with its surroundings. Clones are the same world.
#[derive(Clone)]
pub struct Env(Arc<Inner>);

struct Inner {
    stdout: Mutex<Box<dyn Write + Send>>,
    warnings: Mutex<Vec<String>>,
    grad_enabled: AtomicBool,
    composites: Mutex<Option<Arc<dyn Composites>>>,
    methods: Mutex<Option<Arc<dyn Methods>>>,
    observer: Mutex<Option<GroupObserver>>,
    generator: Mutex<Option<Generator>>,
    audits: AtomicBool,
}

/// Sees each fusion group that runs, with its inputs.
pub type GroupObserver = Arc<dyn Fn(&Arc<Graph>, &[Value]) + Send + Sync>;

impl Default for Env {
    fn default() -> Env {
        Env::new(Box::new(std::io::stdout()))
    }
}

impl Env {
    /// A world whose programs print to `stdout`. Gradients are recorded until somebody turns them off.
    pub fn new(stdout: Box<dyn Write + Send>) -> Env {
        Env(Arc::new(Inner {
            stdout: Mutex::new(stdout),
            warnings: Mutex::default(),
            grad_enabled: AtomicBool::new(true),
            composites: Mutex::default(),
            methods: Mutex::default(),
            observer: Mutex::default(),
            generator: Mutex::default(),
            audits: AtomicBool::new(false),
        }))
    }

    /// Lets ops whose meaning is text run.
    pub fn with_composites(self, composites: Arc<dyn Composites>) -> Env {
        *self.0.composites.lock() = Some(composites);
        self
    }

    /// The same, unless somebody does it already.
    pub fn offer_composites(&self, composites: impl FnOnce() -> Arc<dyn Composites>) {
        self.0.composites.lock().get_or_insert_with(composites);
    }

    /// What runs ops whose meaning is text; without it such an op is a named error.
    pub fn composites(&self, op: &Op) -> Result<Arc<dyn Composites>> {
        self.0.composites.lock().clone().ok_or_else(|| {
            Diagnostic::unsupported(format!(
                "operator {} is defined in TorchScript, which cannot run here",
                op.schema_text()
            ))
        })
    }

    /// Lets somebody see the fusion groups that run; for tools that show or compile them.
    pub fn observe_groups(&self, observer: GroupObserver) {
        *self.0.observer.lock() = Some(observer);
    }

    /// Tells the observer of a group that is about to run.
    pub fn group_runs(&self, graph: &Arc<Graph>, inputs: &[Value]) {
        let observer = self.0.observer.lock().clone();
        if let Some(observer) = observer {
            observer(graph, inputs);
        }
    }

    /// Says who calls methods of the classes of the program that runs, and gives who did before.
    pub fn set_methods(&self, methods: Option<Arc<dyn Methods>>) -> Option<Arc<dyn Methods>> {
        std::mem::replace(&mut *self.0.methods.lock(), methods)
    }

    /// Who calls methods of classes; without it a call is a named error.
    pub fn methods(&self) -> Result<Arc<dyn Methods>> {
        self.0
            .methods
            .lock()
            .clone()
            .ok_or_else(|| Diagnostic::unsupported("calling methods of objects here"))
    }

    /// Asks for every op's writes and aliases to be compared with the marks of its schema.
    pub fn set_audits(&self, on: bool) {
        self.0.audits.store(on, Ordering::Relaxed);
    }

    /// Whether they are compared.
    pub fn audits(&self) -> bool {
        self.0.audits.load(Ordering::Relaxed)
    }

    /// Seeds the random generator.
    pub fn seed(&self, seed: u64) {
        *self.0.generator.lock() = Some(Generator::new(seed));
    }

    /// Runs work with the random generator; None if nobody has seeded it.
    pub fn with_generator<T>(&self, work: impl FnOnce(&mut Generator) -> T) -> Option<T> {
        self.0.generator.lock().as_mut().map(work)
    }

    /// Prints text as `print` does. A closed pipe is not the program's fault and is ignored.
    pub fn print(&self, text: &str) {
        let _ = self.0.stdout.lock().write_all(text.as_bytes());
    }

    /// Records a warning of the program.
    pub fn warn(&self, text: String) {
        self.0.warnings.lock().push(text);
    }

    /// Takes the warnings recorded so far.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.warnings.lock())
    }

    /// Whether gradients are recorded.
    pub fn grad_enabled(&self) -> bool {
        self.0.grad_enabled.load(Ordering::Relaxed)
    }

    /// Turns recording of gradients on or off and gives the former state.
    pub fn set_grad_enabled(&self, on: bool) -> bool {
        self.0.grad_enabled.swap(on, Ordering::Relaxed)
    }
}
