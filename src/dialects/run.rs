//! One run of a program: what belongs to a call and not to the program. Grad mode, the random generator, output, warnings,
//! limits, cancellation, and who runs meanings and methods.
//!
//! A [`Run`] belongs to one task: it can be sent to another thread, not shared with one. A fork gets a child
//! ([`Run::fork`]) that begins with its parent's grad mode and then has its own, as PyTorch's threads do; output, warnings,
//! generator and limits are the same for all tasks of a run. Threads that share a program have a run each.

use super::autograd::Recorded;
use super::shared::{Account, Shared};
use super::{Autograd, Composites, GroupObserver, Methods, Op, Run, Watcher};
use crate::diag::{Diagnostic, Result, Span};
use crate::ir::Graph;
use crate::resources::budget::{self, Budget, Installed};
use crate::resources::limits::{self, KEPT_WARNINGS, Limits};
use crate::value::bytes;
use crate::value::generator::Generator;
use crate::value::{Future, StateKeeper, Value, kept};
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Default number of plans of a function that are kept.
const PLANS: usize = 32;
/// How many of them for kinds of arguments that differ in sizes alone.
const STATIC_PLANS: usize = 2;
/// Number of recorded operations that may wait for their place.
const KEPT_RECORDED: usize = 4096;

/// Maximum nesting depth of ops that run others as their meaning: an op that means itself would not terminate.
const MAX_MEANINGS: usize = 64;

impl Default for Run {
    fn default() -> Run {
        Run::new(Box::new(std::io::stdout()))
    }
}

impl Run {
    /// A run whose program prints to `stdout`, with the default limits. Where this thread works for another run, it has the
    /// limits of that one and uses its memory, time and steps. Gradients are recorded until recording is disabled.
    pub fn new(stdout: Box<dyn Write + Send>) -> Run {
        let budget = budget::current().unwrap_or_default();
        Run::assemble(stdout, budget)
    }

    /// A run that prints nothing and draws random numbers from the seed 0: for compilers and tests that run ops.
    pub fn silent() -> Run {
        let run = Run::new(Box::new(std::io::sink()));
        run.seed(0);
        run
    }

    /// A run that ends with an error where a limit is reached. Its time begins now.
    pub fn with_limits(stdout: Box<dyn Write + Send>, limits: Limits) -> Run {
        Run::assemble(stdout, Arc::new(Budget::new(limits)))
    }

    fn assemble(stdout: Box<dyn Write + Send>, budget: Arc<Budget>) -> Run {
        let shared = Shared {
            stdout: Mutex::new(stdout),
            warnings: Mutex::default(),
            observer: Mutex::default(),
            generator: Mutex::default(),
            keeper: Mutex::default(),
            audits: AtomicBool::new(false),
            plan_limit: AtomicUsize::new(PLANS),
            static_plans: AtomicUsize::new(STATIC_PLANS),
            profiled_runs: AtomicUsize::new(1),
            plans_in_background: AtomicBool::new(false),
        };
        Run {
            shared: Arc::new(shared),
            account: Account::new(budget),
            grad_enabled: Cell::new(true),
            composites: RefCell::default(),
            autograd: RefCell::default(),
            recorded: RefCell::default(),
            methods: RefCell::default(),
            watcher: RefCell::default(),
            meanings: Cell::new(0),
        }
    }

    /// The run of a task that this one forks.
    pub fn fork(&self) -> Run {
        Run {
            shared: Arc::clone(&self.shared),
            account: Arc::clone(&self.account),
            grad_enabled: self.grad_enabled.clone(),
            composites: self.composites.clone(),
            autograd: self.autograd.clone(),
            recorded: RefCell::default(),
            methods: self.methods.clone(),
            watcher: RefCell::default(),
            meanings: self.meanings.clone(),
        }
    }

    /// The same run with limits and forked tasks of its own: for hosts that call programs one after another, each call within
    /// its limits. Output, warnings and generator stay the run's.
    pub fn within(&self, budget: Arc<Budget>) -> Run {
        Run { account: Account::new(budget), ..self.fork() }
    }

    // --- who runs what ---

    /// Runs the meaning of an op, which `name` says, with room on the stack; an error where too many run within each other.
    pub fn meaning<R>(&self, name: &str, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let depth = self.meanings.get();
        if depth >= MAX_MEANINGS {
            let message = format!("{name} runs within {MAX_MEANINGS} other meanings of ops");
            let error = Diagnostic::raised("RecursionError", message).limit("depth");
            return Err(error.hint("a meaning must not come back to the op that it is of"));
        }
        self.meanings.set(depth + 1);
        let result = stacker::maybe_grow(256 << 10, 4 << 20, work);
        self.meanings.set(depth);
        result
    }

    /// Lets ops whose meaning is text run.
    pub fn with_composites(self, composites: Arc<dyn Composites>) -> Run {
        *self.composites.borrow_mut() = Some(composites);
        self
    }

    /// The same, unless this is done already.
    pub fn offer_composites(&self, composites: impl FnOnce() -> Arc<dyn Composites>) {
        self.composites.borrow_mut().get_or_insert_with(composites);
    }

    /// What runs ops whose meaning is text, where there is something that does.
    pub fn known_composites(&self) -> Option<Arc<dyn Composites>> {
        self.composites.borrow().clone()
    }

    /// What runs ops whose meaning is text; without it such an op is a named error.
    pub fn composites(&self, op: &Op) -> Result<Arc<dyn Composites>> {
        self.composites.borrow().clone().ok_or_else(|| {
            Diagnostic::unsupported(format!(
                "operator {} is defined in TorchScript, which cannot run here",
                op.schema_text()
            ))
        })
    }

    /// Runs TorchScript text that belongs to a row: the last function of `text`.
    pub fn function(&self, name: &str, text: &str, values: Vec<Value>) -> Result<Value> {
        let composites = self.composites.borrow().clone();
        match composites {
            Some(composites) => composites.function(name, text, values, self),
            None => Err(Diagnostic::unsupported(format!("{name} is TorchScript, which cannot run here"))),
        }
    }

    // --- gradients ---

    /// Records operations for gradients, unless this is done already.
    pub fn offer_autograd(&self, autograd: impl FnOnce() -> Arc<dyn Autograd>) {
        self.autograd.borrow_mut().get_or_insert_with(autograd);
    }

    /// Who records operations for gradients.
    pub fn autograd(&self) -> Option<Arc<dyn Autograd>> {
        self.autograd.borrow().clone()
    }

    /// Notes that an operation was recorded, for the one who knows its place.
    pub fn note_recorded(&self, recorded: Weak<dyn Recorded>) {
        let mut all = self.recorded.borrow_mut();
        // Where places are unknown, none are kept for long.
        if all.len() >= KEPT_RECORDED {
            all.clear();
        }
        all.push(recorded);
    }

    /// Sets the source locations of all operations recorded since the last time.
    pub fn place_recorded(&self, place: impl FnOnce() -> Option<Span>) {
        if self.recorded.borrow().is_empty() {
            return;
        }
        if let Some(span) = place() {
            let recorded = self.recorded.take();
            recorded.iter().filter_map(Weak::upgrade).for_each(|node| node.at(&span));
        }
    }

    /// Says who calls methods of the classes of the program that runs, and gives who did before.
    pub fn set_methods(&self, methods: Option<Arc<dyn Methods>>) -> Option<Arc<dyn Methods>> {
        self.methods.replace(methods)
    }

    /// Who calls methods of classes; without it a call is a named error.
    pub fn methods(&self) -> Result<Arc<dyn Methods>> {
        let methods = self.methods.borrow().clone();
        methods.ok_or_else(|| Diagnostic::unsupported("calling methods of objects here"))
    }

    /// Installs an observer of the ops that run. Programs run slower while observed.
    pub fn watch(&self, watcher: Option<Arc<dyn Watcher>>) {
        *self.watcher.borrow_mut() = watcher;
    }

    /// Who sees the ops that run.
    pub fn watcher(&self) -> Option<Arc<dyn Watcher>> {
        self.watcher.borrow().clone()
    }

    /// Installs an observer of the fusion groups that run; for tools that show or compile them.
    pub fn observe_groups(&self, observer: GroupObserver) {
        *self.shared.observer.lock() = Some(observer);
    }

    /// Shows the observer a group that is about to run.
    pub fn group_runs(&self, graph: &Arc<Graph>, inputs: &[Value]) {
        let observer = self.shared.observer.lock().clone();
        if let Some(observer) = observer {
            observer(graph, inputs);
        }
    }

    /// Asks for every op's writes and aliases to be compared with the marks of its schema.
    pub fn set_audits(&self, on: bool) {
        self.shared.audits.store(on, Ordering::Relaxed);
    }

    /// Whether they are compared.
    pub fn audits(&self) -> bool {
        self.shared.audits.load(Ordering::Relaxed)
    }

    /// How many plans of a function are kept, each for one kind of arguments; with 0 calls run without plans. PyTorch
    /// calls it the depth of the fusion strategy.
    pub fn set_plan_limit(&self, plans: usize) {
        self.shared.plan_limit.store(plans, Ordering::Relaxed);
    }

    /// See [`Run::set_plan_limit`].
    pub fn plan_limit(&self) -> usize {
        self.shared.plan_limit.load(Ordering::Relaxed)
    }

    /// How many kinds of arguments that differ in sizes alone have plans of their own, before one plan is made for all of them,
    /// which leaves open the sizes that differ; `usize::MAX` for no such plans. PyTorch calls it the static depth of the fusion strategy.
    pub fn set_static_plans(&self, plans: usize) {
        self.shared.static_plans.store(plans, Ordering::Relaxed);
    }

    /// See [`Run::set_static_plans`].
    pub fn static_plans(&self) -> usize {
        self.shared.static_plans.load(Ordering::Relaxed)
    }

    /// Lets other threads make plans: calls run without one until it is there. As they stand at first, calls make their plans themselves.
    pub fn set_plans_in_background(&self, on: bool) {
        self.shared.plans_in_background.store(on, Ordering::Relaxed);
    }

    /// See [`Run::set_plans_in_background`].
    pub fn plans_in_background(&self) -> bool {
        self.shared.plans_in_background.load(Ordering::Relaxed)
    }

    /// The call of a kind of arguments that makes the plan of its kind: the first one with 1, as it stands at first, or 0; calls
    /// before it run without. PyTorch calls it the number of profiled runs.
    pub fn set_profiled_runs(&self, calls: usize) {
        self.shared.profiled_runs.store(calls, Ordering::Relaxed);
    }

    /// See [`Run::set_profiled_runs`].
    pub fn profiled_runs(&self) -> usize {
        self.shared.profiled_runs.load(Ordering::Relaxed)
    }

    // --- limits ---

    /// What the run may use.
    pub fn limits(&self) -> &Limits {
        self.account.budget.limits()
    }

    /// Makes this thread charge what it allocates to the run, as long as the result lives. The interpreter does so by itself;
    /// loading files or running passes for a run may do it too.
    pub fn install(&self) -> Installed {
        self.account.budget.install()
    }

    /// Ends the run from any thread.
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle(Arc::clone(&self.account.budget))
    }

    /// Fails if the run was cancelled, is out of time or out of memory.
    pub fn check(&self) -> Result<()> {
        self.account.budget.check()
    }

    /// The same where the thread holds nothing that another one may wait for: its host is asked, too.
    pub fn pause(&self) -> Result<()> {
        self.account.budget.pause()
    }

    /// Asks the host alone whether the run must end, where the thread holds nothing: for work that was checked just now.
    pub fn ask_host(&self) -> Result<()> {
        self.account.budget.ask_host()
    }

    /// Takes up to `wanted` steps, at least one. Fails where the run must end.
    pub fn take_steps(&self, wanted: u32) -> Result<u32> {
        self.account.budget.take_steps(wanted)
    }

    /// Gives back steps that were taken and not used.
    pub fn give_back_steps(&self, unused: u32) {
        self.account.budget.give_back_steps(unused);
    }

    /// Bytes that the run holds now, as far as they are charged: none without a limit of memory.
    pub fn live_bytes(&self) -> u64 {
        self.account.budget.live_bytes()
    }

    // --- tasks ---

    /// Counts a forked task as one of the run. Fails where too many are open.
    pub fn open_task(&self, task: &Future) -> Result<()> {
        let mut tasks = self.account.tasks.lock();
        // Looking for ended ones each time would make many forks quadratic.
        if tasks.len() == tasks.capacity() || tasks.len() >= self.limits().forks {
            tasks.retain(|task| !task.is_done());
        }
        if tasks.len() >= self.limits().forks {
            return Err(limits::too_many_forks(self.limits().forks));
        }
        tasks.push(task.clone());
        Ok(())
    }

    /// Runs or awaits what was forked and not waited for, so that its effects have happened. What has not begun when the
    /// run must end does not begin: that is an error, although no value is awaited.
    pub fn finish_tasks(&self) -> Result<()> {
        let mut finished = Ok(());
        loop {
            let Some(task) = self.account.tasks.lock().pop() else { return finished };
            if let Err(error) = self.check() {
                task.give_up(error);
            }
            // Its error is of interest to those alone who wait for its value, but for a limit, which is the run's.
            if let Err(error) = task.wait()
                && error.report().limit.is_some()
                && finished.is_ok()
            {
                finished = Err(error);
            }
        }
    }

    // --- the generator ---

    /// Moves the random generator's state to an external owner from now on, for all tasks of the run.
    pub fn set_state_keeper(&self, keeper: Arc<dyn StateKeeper>) {
        *self.shared.keeper.lock() = Some(keeper);
    }

    fn kept_state(&self) -> Result<Option<(Arc<dyn StateKeeper>, Vec<u8>)>> {
        let keeper = self.shared.keeper.lock().clone();
        let Some(keeper) = keeper else { return Ok(None) };
        Ok(keeper.state()?.map(|state| (keeper, state)))
    }

    /// Seeds the random generator, as `torch.manual_seed` does.
    pub fn seed(&self, seed: u64) {
        let generator = Generator::new(seed);
        let mut own = self.shared.generator.lock();
        let keeper = self.shared.keeper.lock().clone();
        // A keeper that fails leaves the run its own generator, which is seeded in any case.
        if let Some(keeper) = keeper {
            let _ = keeper.keep(&generator.state());
        }
        *own = Some(generator);
    }

    /// Runs work with the random generator; one that has no seed yet takes it from the system's entropy.
    pub fn with_generator<T>(&self, work: impl FnOnce(&mut Generator) -> Result<T>) -> Result<T> {
        let mut own = self.shared.generator.lock();
        if let Some((keeper, state)) = self.kept_state()? {
            return kept(&*keeper, &state, work);
        }
        let generator = match own.as_mut() {
            Some(generator) => generator,
            None => own.insert(Generator::from_entropy()?),
        };
        work(generator)
    }

    /// Puts the random generator into a state of `torch.get_rng_state()`.
    pub fn set_generator_state(&self, state: &[u8]) -> Result<()> {
        *self.shared.generator.lock() = Some(Generator::from_state(state)?);
        Ok(())
    }

    /// The seed of the random generator; None as long as nothing has seeded it or drawn from it.
    pub fn random_seed(&self) -> Option<u64> {
        self.shared.generator.lock().as_ref().map(Generator::seed)
    }

    // --- output ---

    /// Prints text as `print` does. A closed pipe is not the program's fault and is ignored.
    pub fn print(&self, text: &str) -> Result<()> {
        self.account.budget.take_output(text.len() as u64)?;
        let _ = self.shared.stdout.lock().write_all(&bytes::bytes(text));
        Ok(())
    }

    /// Records a warning of the program.
    pub fn warn(&self, text: String) -> Result<()> {
        self.account.budget.take_warning()?;
        let mut warnings = self.shared.warnings.lock();
        if warnings.kept.len() < KEPT_WARNINGS {
            warnings.kept.push(text);
        } else {
            warnings.left_out += 1;
        }
        Ok(())
    }

    /// Takes the warnings recorded so far; the last one says how many were not kept.
    pub fn take_warnings(&self) -> Vec<String> {
        let mut warnings = std::mem::take(&mut *self.shared.warnings.lock());
        if warnings.left_out > 0 {
            warnings.kept.push(format!("{} more warnings are not shown", warnings.left_out));
        }
        warnings.kept
    }

    // --- grad mode ---

    /// Whether gradients are recorded in this task.
    pub fn grad_enabled(&self) -> bool {
        self.grad_enabled.get()
    }

    /// Turns recording of gradients on or off for this task and gives the former state.
    pub fn set_grad_enabled(&self, on: bool) -> bool {
        self.grad_enabled.replace(on)
    }
}

/// Ends a run from another thread.
#[derive(Clone, Debug)]
pub struct CancelHandle(Arc<Budget>);

impl CancelHandle {
    /// Ends the run: its next step, loop or allocation fails with an error of kind [`crate::diag::ErrorKind::Limit`].
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forks_grad_mode_is_its_own() {
        let run = Run::silent();
        run.set_grad_enabled(false);
        let child = run.fork();
        assert!(!child.grad_enabled());
        child.set_grad_enabled(true);
        assert!(!run.grad_enabled());
    }

    #[test]
    fn steps_are_counted_over_all_tasks() {
        let limits = Limits { steps: Some(10), ..Limits::default() };
        let run = Run::with_limits(Box::new(std::io::sink()), limits);
        let child = run.fork();
        assert_eq!(run.take_steps(4).expect("of ten"), 4);
        run.give_back_steps(1);
        assert_eq!(child.take_steps(100).expect("the rest"), 7);
        assert!(run.take_steps(1).expect_err("none left").message().contains("limit of 10 steps"));
    }

    #[test]
    fn output_and_warnings_are_bounded() {
        let limits = Limits { output: Some(5), warnings: Some(1), ..Limits::default() };
        let run = Run::with_limits(Box::new(std::io::sink()), limits);
        run.print("1234").expect("fits");
        assert!(run.print("56").expect_err("too much").message().contains("limit of 5 bytes"));
        run.warn("a".into()).expect("the first");
        assert!(run.fork().warn("b".into()).is_err());
        let endless = Run::silent();
        (0..KEPT_WARNINGS + 5).for_each(|n| endless.warn(n.to_string()).expect("no limit"));
        let warnings = endless.take_warnings();
        assert_eq!(warnings.len(), KEPT_WARNINGS + 1);
        assert_eq!(warnings.last().map(String::as_str), Some("5 more warnings are not shown"));
    }
}
