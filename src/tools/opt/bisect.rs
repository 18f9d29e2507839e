//! `opt --bisect`: finds the first pass after which something is wrong, and in it the first step, by halving.

use super::read::{Input, fold};
use super::work::Work;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Module, PrintOptions};
use crate::passes::Pipeline;
use crate::passes::manager::print_ir::difference;
use crate::passes::manager::{At, Observer, Runner, Settings, StopAt};
use crate::tools::io::Io;
use crate::tools::oracle::{Fault, Oracle};
use std::io::Write;
use std::sync::Arc;

/// Runs the search and reports what it found; returns whether no fault was found.
pub(super) fn run(work: &Work<'_>, input: &Input, io: &mut Io<'_>) -> Result<bool> {
    let module = work.read(input, input.source.as_ref())?.map_err(fold)?.module;
    let oracle = oracle(work, input, &module, io)?;
    let (_, total, _) = oracle.transform(&module, work.pipeline, None);
    if !oracle.is_bad(&module, work.pipeline, None)? {
        io.print(&format!("nothing is wrong after {total} passes\n"));
        return Ok(true);
    }
    if oracle.is_bad(&module, work.pipeline, Some(StopAt { index: 0, steps: 0 }))? {
        io.print("it is wrong before the first pass\n");
        return Ok(false);
    }
    // After `good` passes all is well, after `bad` it is not.
    let (mut good, mut bad) = (0, total);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        io.message(&format!("bisect: passes {good} to {bad}, trying {middle}\n"));
        let is_bad = oracle.is_bad(&module, work.pipeline, Some(StopAt { index: middle, steps: 0 }))?;
        *(if is_bad { &mut bad } else { &mut good }) = middle;
    }
    let index = bad - 1;
    let seen = look(&oracle, work.pipeline, &module, StopAt { index, steps: u64::MAX });
    io.print(&format!("the first bad pass is number {bad}: {}\n", seen.name));
    if seen.steps > 0 {
        steps(&oracle, work, &module, index, seen.steps, io)?;
    }
    Ok(false)
}

/// The first bad step of a pass.
fn steps(
    oracle: &Oracle,
    work: &Work<'_>,
    module: &Module,
    index: usize,
    total: u64,
    io: &mut Io<'_>,
) -> Result<()> {
    let at = |steps: u64| StopAt { index, steps };
    let (mut good, mut bad) = (0, total);
    if !oracle.is_bad(module, work.pipeline, Some(at(bad)))? {
        io.print("no number of its steps alone shows the fault\n");
        return Ok(());
    }
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        io.message(&format!("bisect: steps {good} to {bad}, trying {middle}\n"));
        let is_bad = oracle.is_bad(module, work.pipeline, Some(at(middle)))?;
        *(if is_bad { &mut bad } else { &mut good }) = middle;
    }
    let seen = look(oracle, work.pipeline, module, at(bad));
    io.print(&format!(
        "its first bad step is number {bad} of {total}: {}\n",
        seen.last_step.unwrap_or_default()
    ));
    let before = oracle.transform(module, work.pipeline, Some(at(good))).0;
    let after = oracle.transform(module, work.pipeline, Some(at(bad))).0;
    io.print(&difference(&text(&before), &text(&after)));
    Ok(())
}

fn text(module: &Module) -> String {
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = module.write_text(&mut text, &PrintOptions::default());
    String::from_utf8_lossy(&text).into_owned()
}

/// What a run saw of the pass with a number.
#[derive(Default)]
struct Seen {
    index: usize,
    name: String,
    steps: u64,
    last_step: Option<String>,
}

impl Observer for Seen {
    fn before(&mut self, at: &At<'_>, _: &Module, _: &mut dyn Write) {
        if at.index == self.index {
            self.name = format!("{}{}", at.pass.name, at.options.to_text());
        }
    }
}

fn look(oracle: &Oracle, pipeline: &Pipeline, module: &Module, stop: StopAt) -> Seen {
    let mut seen = Seen { index: stop.index, ..Seen::default() };
    let mut sink = std::io::sink();
    let settings = Settings { stop: Some(stop), record_steps: true, verify: None, ..oracle.settings.clone() };
    let mut runner = Runner::new(&oracle.registry, settings, &mut sink);
    runner.observe(&mut seen);
    // A failing pass is what is looked for.
    let _ = runner.run(pipeline, &mut module.clone());
    let report = runner.last_report().clone();
    drop(runner);
    (seen.steps, seen.last_step) = (report.steps, report.last_step);
    seen
}

fn oracle(work: &Work<'_>, input: &Input, module: &Module, io: &mut Io<'_>) -> Result<Oracle> {
    let options = work.options;
    let fault = match options.bisect.as_deref().unwrap_or("verify") {
        "verify" => Fault::Fails(String::new()),
        "answer" => {
            let (entry, arguments) = work.arguments(input, module, io)?;
            Oracle::answer(&entry, &arguments)?
        }
        "" => return Err(Diagnostic::usage("--bisect= needs a check")),
        command => Fault::Command { text: command.to_string(), success_is_bad: false },
    };
    let settings = Settings { log: Default::default(), ..options.settings()? };
    Ok(Oracle { registry: Arc::clone(work.registry), strictness: options.strictness(), fault, settings })
}
