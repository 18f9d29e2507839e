//! What is timed: a model with inputs, or a case; loaded, changed by passes and ready to be called.

use super::options::Options;
use crate::diag::{Diagnostic, Result, render};
use crate::dialects::Run;
use crate::passes::Pipeline;
use crate::runtime::Program;
use crate::tools::case::{self, Case};
use crate::tools::gradients;
use crate::tools::inputs::{self, InputOptions};
use crate::tools::io::Io;
use crate::tools::load::{self, Loaded};
use crate::tools::prepare;
use crate::training::Trainer;
use crate::value::Value;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How a program is called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// Threads; 0 is the default.
    pub(super) threads: usize,
    /// The first size of inputs that are given by their sizes.
    pub(super) batch: Option<i64>,
}

/// What is timed.
pub(super) struct Subject {
    /// As reports show it.
    pub(super) name: String,
    what: What,
    /// The note on its inputs that was last shown: settings that call it alike say so once.
    noted: RefCell<Option<String>>,
}

enum What {
    Model(PathBuf),
    Case(Box<Case>),
}

/// A program that can be called.
pub(super) struct Ready {
    pub(super) program: Program,
    pub(super) entry: String,
    pub(super) arguments: Vec<Value>,
    /// Those of further calls, in turn with these; and the calls so far.
    others: Vec<Vec<Value>>,
    calls: Cell<usize>,
    /// Inputs given by options, or taken from records.
    pub(super) described: Vec<String>,
    /// The passes that ran.
    pub(super) passes: String,
    /// What loading and passes took.
    pub(super) load: Duration,
    /// For a case that trains: a call is a step with the next batch.
    training: Option<RefCell<Training>>,
}

/// A training run under way.
struct Training {
    trainer: Trainer,
    batches: Vec<Vec<Value>>,
}

/// The models and cases that the options name.
pub(super) fn all(options: &Options, io: &Io<'_>) -> Result<Vec<Subject>> {
    let mut out = Vec::new();
    for file in &options.files {
        let path = io.path(file);
        if load::is_model(&path) {
            out.push(Subject::new(file.display().to_string(), What::Model(path)));
            continue;
        }
        let wanted = |case: &Case| options.filter.as_ref().is_none_or(|f| case.name.contains(f.as_str()));
        for case in Case::read_all(&path)?.into_iter().filter(wanted) {
            out.push(Subject::new(case.name.clone(), What::Case(Box::new(case))));
        }
    }
    Ok(out)
}

impl Subject {
    fn new(name: String, what: What) -> Subject {
        Subject { name, what, noted: RefCell::new(None) }
    }

    /// Loads the program, runs the passes, which go by a name where they have one, and makes the arguments.
    pub(super) fn prepare(
        &self,
        options: &Options,
        pipeline: &Pipeline,
        (setting, passes): (Setting, &str),
        run: &Run,
        io: &mut Io<'_>,
    ) -> Result<Ready> {
        let toolkit = io.toolkit_with(&options.dialect)?;
        let registry = toolkit.registry();
        let start = Instant::now();
        let (loaded, entry) = match &self.what {
            What::Model(path) => {
                let loaded = load::load_shown(path, run, registry, io)?;
                let entry = inputs::entry(&options.entry, &loaded.program).to_string();
                (loaded, entry)
            }
            What::Case(case) => {
                let program = load::load_case(case, run, registry)?;
                (Loaded::from(program), case.entry.clone())
            }
        };
        let program = prepare::transformed(
            &loaded.program,
            pipeline,
            prepare::called(&loaded.program, &entry),
            &self.name,
            io.err,
        )?;
        let program = prepare::placed(program, options.device.open(io)?.as_ref());
        let program = options.kept.apply(options.plans.apply(program, passes));
        let load = start.elapsed();
        let training = match &self.what {
            What::Case(case) if case.train.is_some() => {
                let (trainer, batches) = gradients::trainer(case, &program)?;
                Some(RefCell::new(Training { trainer, batches }))
            }
            _ => None,
        };
        let (arguments, described) = match training {
            Some(_) => (Vec::new(), Vec::new()),
            None => self.arguments(options, &loaded, &entry, setting, io)?,
        };
        if training.is_some() && !options.also.is_empty() {
            return Err(Diagnostic::usage(
                "--also is for inputs, and a case that trains has batches of its own",
            ));
        }
        let other = |words: &String| {
            let given = InputOptions { input: vec![words.clone()], args: Vec::new() };
            given.resolve(&loaded, &entry, io)?.values(options.seed, io.directory)
        };
        let others = options.also.iter().map(other).collect::<Result<Vec<_>>>()?;
        let passes = pipeline.to_text();
        Ok(Ready {
            program,
            entry,
            arguments,
            others,
            calls: Cell::new(0),
            described,
            passes,
            load,
            training,
        })
    }

    fn arguments(
        &self,
        options: &Options,
        loaded: &Loaded,
        entry: &str,
        setting: Setting,
        io: &mut Io<'_>,
    ) -> Result<(Vec<Value>, Vec<String>)> {
        if let What::Case(case) = &self.what
            && !options.inputs.any()
        {
            if setting.batch.is_some() {
                let error = Diagnostic::usage("--batch is for inputs that are given by their sizes");
                return Err(error.hint("a case has inputs of its own; give others with --input"));
            }
            return Ok((case.args.iter().map(case::decode).collect::<Result<_>>()?, Vec::new()));
        }
        let mut given = options.inputs.resolve(loaded, entry, io)?;
        if let Some(batch) = setting.batch {
            given = given.with_batch(batch)?;
        }
        let note = given.note();
        if !options.json && *self.noted.borrow() != note {
            io.message(note.as_deref().unwrap_or_default());
            self.noted.replace(note);
        }
        Ok((given.values(options.seed, io.directory)?, given.described()))
    }

    /// The program that this one is compared with: another file, or the same one under other passes.
    pub(super) fn baseline(
        &self,
        options: &Options,
        baseline: &str,
        setting: Setting,
        run: &Run,
        io: &mut Io<'_>,
    ) -> Result<Ready> {
        let file = io.path(Path::new(baseline));
        if file.is_file() {
            let other = Subject::new(baseline.to_string(), What::Model(file));
            let pipeline = options.numerics.pipeline(&options.passes, io.toolkit)?;
            return other.prepare(options, &pipeline, (setting, &options.passes), run, io);
        }
        let text = if baseline == "none" { "" } else { baseline };
        let pipeline = options.numerics.pipeline(text, io.toolkit).map_err(|error| {
            Diagnostic::usage(format!("--baseline {baseline}: there is no such file, and no such pipeline"))
                .note(render::human(&error).trim().to_string())
        })?;
        self.prepare(options, &pipeline, (setting, text), run, io)
    }
}

impl Ready {
    /// Calls the program; gives how long that took. The answer is given back outside of the measured time, as peers do.
    pub(super) fn call(&self, run: &Run) -> Result<Duration> {
        if let Some(training) = &self.training {
            let mut training = training.borrow_mut();
            let Training { trainer, batches } = &mut *training;
            let batch = batches.get(trainer.steps() as usize % batches.len().max(1));
            let batch = batch.ok_or_else(|| Diagnostic::input("a case that trains has batches"))?;
            let start = Instant::now();
            trainer.step(batch, &[], run)?;
            return Ok(start.elapsed());
        }
        let turn = self.calls.replace(self.calls.get() + 1) % (self.others.len() + 1);
        let arguments = turn.checked_sub(1).map_or(&self.arguments, |other| &self.others[other]);
        let start = Instant::now();
        let answer = self.program.run(&self.entry, arguments.clone(), run)?;
        bring_home(&answer)?;
        Ok(start.elapsed())
    }
}

/// Waits for an answer that a device still computes, and copies it to the host.
fn bring_home(answer: &Value) -> Result<()> {
    let mut rest = vec![answer.clone()];
    while let Some(value) = rest.pop() {
        match value {
            Value::Tensor(tensor) => {
                tensor.storage().read()?;
            }
            Value::Tuple(tuple) => rest.extend(tuple.items().iter().cloned()),
            Value::List(list) => rest.extend(list.to_vec()),
            _ => {}
        }
    }
    Ok(())
}
