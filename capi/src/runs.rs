//! What calls of a thread share: its run, with random numbers of its own. Warnings go to standard error, as libtorch's do.

use engine::diag::Result;
use engine::dialects::{Registry, Run};
use engine::resources::{Budget, Limits, budget};
use engine::runtime;
use engine::toolkit::Toolkit;
use std::cell::OnceCell;
use std::sync::{Arc, LazyLock};

static TOOLKIT: LazyLock<Toolkit> = LazyLock::new(Toolkit::default);

thread_local! {
    static RUN: OnceCell<Run> = const { OnceCell::new() };
}

/// The built-in toolkit.
pub(crate) fn toolkit() -> Result<&'static Toolkit> {
    TOOLKIT.check()?;
    Ok(&TOOLKIT)
}

/// The ops that are known.
pub(crate) fn registry() -> Result<&'static Arc<Registry>> {
    Ok(toolkit()?.registry())
}

/// Works in this thread's run, which records no gradients, under the thread's limits.
pub(crate) fn with_run<T>(work: impl FnOnce(&Run) -> Result<T>) -> Result<T> {
    let registry = registry()?;
    RUN.with(|run| {
        let run = run.get_or_init(|| {
            // It is the thread's for longer than the limits of the moment.
            let run = Run::default().within(Arc::default());
            run.set_grad_enabled(false);
            runtime::prepare(&run, registry);
            run
        });
        let result = match budget::current() {
            // A run of its own: what it reaches does not end what comes after it.
            Some(limits) => work(&run.within(Arc::new(Budget::within(Limits::default(), Some(limits))))),
            None => work(run),
        };
        for warning in run.take_warnings() {
            eprintln!("warning: {warning}");
        }
        result
    })
}
