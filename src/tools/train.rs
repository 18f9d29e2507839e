//! `flambeau train`: trains a saved model on arrays, and saves it so that PyTorch loads it.

use super::cache::CacheOptions;
use super::curve::Curve;
use super::inputs::{self, named_options};
use super::io::Io;
use super::outputs::write_file;
use super::prepare::{GradientOptions, KeptOptions, PlanOptions};
use super::progress::Progress;
use super::save::Opened;
use super::threads::ThreadOptions;
use crate::autodiff::Optimizer;
use crate::diag::{Diagnostic, Result, files};
use crate::dialects::{Registry, Run};
use crate::runtime::Program;
use crate::tools::limits::LimitOptions;
use crate::training::{Batches, Clip, Loss, Modes, Schedule, Step, Trainer, load_values, save_values};
use crate::value::Value;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Options of `flambeau train`.
#[derive(Args, Debug)]
pub struct Options {
    /// A .pt archive
    file: PathBuf,
    /// Arrays with one sample for each first index: .npz, .npy, .safetensors or .json; those named like arguments of the model
    /// are its inputs, the others the targets of the loss
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    data: Vec<PathBuf>,
    /// What to minimize: a loss of torch.nn.functional with options, 'cross_entropy(label_smoothing=0.1)'; FILE.py or
    /// FILE.py:NAME, a function of answer and targets; 'answer', where the model gives the loss itself
    #[arg(long, value_name = "LOSS")]
    loss: String,
    /// An optimizer of torch.optim with options: 'adamw(lr=1e-3, betas=(0.9, 0.99))'
    #[arg(long, value_name = "OPTIMIZER", default_value = "adamw")]
    optimizer: String,
    /// Other options for parameters whose names match a pattern: 'head.*(lr=1e-2)'
    #[arg(long, value_name = "PATTERN(OPTIONS)")]
    group: Vec<String>,
    /// Do not train parameters whose names match a pattern: 'features.*'
    #[arg(long, value_name = "PATTERN")]
    freeze: Vec<String>,
    /// Train parameters that were frozen when the model was saved
    #[arg(long, value_name = "PATTERN")]
    unfreeze: Vec<String>,
    /// Learning rate schedule: 'cosine(T_max=100)', or 'linear(total_iters=10) until 10 then cosine(T_max=90)'
    #[arg(long, value_name = "SCHEDULE")]
    schedule: Option<String>,
    /// When the learning rate changes
    #[arg(long, value_name = "WHEN", default_value = "step")]
    schedule_by: When,
    /// Bound the norm of all gradients together
    #[arg(long, value_name = "NORM", conflicts_with = "clip_value")]
    clip_norm: Option<f64>,
    /// Bound each element of the gradients
    #[arg(long, value_name = "X")]
    clip_value: Option<f64>,
    /// Steps in all, including those before a checkpoint [default: one epoch]
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Number of passes over all samples
    #[arg(long, value_name = "N", conflicts_with = "steps")]
    epochs: Option<u64>,
    /// Samples per step
    #[arg(long, value_name = "N", default_value_t = 32)]
    batch: usize,
    /// Take samples in the order of PyTorch's DataLoader(shuffle=True) under the same seed
    #[arg(long)]
    shuffle: bool,
    /// Seed of the random generator: dropout, the order of samples
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Arrays that the loss is computed of, in evaluation mode, whenever a line is printed
    #[arg(long, value_name = "FILE", num_args = 1..)]
    valid: Vec<PathBuf>,
    /// Steps from one printed line to the next [default: a tenth of all]
    #[arg(long, value_name = "N")]
    every: Option<u64>,
    /// Write the trained model: an archive that PyTorch loads
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write a picture of the loss: .svg or .txt
    #[arg(long, value_name = "FILE")]
    curve: Option<PathBuf>,
    /// Write everything that the next step needs, for --resume and for torch.load
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Steps from one checkpoint to the next [default: one at the end]
    #[arg(long, value_name = "N", requires = "checkpoint")]
    checkpoint_every: Option<u64>,
    /// Resume from a checkpoint
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// The method to call
    #[arg(long, value_name = "NAME", default_value = "forward")]
    entry: String,
    /// Keep the saved modes of modules; otherwise all are set to training mode, and are saved in their original modes
    #[arg(long)]
    keep_modes: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    first: GradientOptions,
    #[command(flatten)]
    plans: PlanOptions,
    #[command(flatten)]
    kept: KeptOptions,
    #[command(flatten)]
    cache: CacheOptions,
    #[command(flatten)]
    threads: ThreadOptions,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
}

/// When the learning rate changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum When {
    /// After each step
    Step,
    /// After each epoch
    Epoch,
}

/// Arrays by what they are for.
struct Data {
    inputs: Vec<Value>,
    targets: Vec<Value>,
    samples: usize,
}

/// Runs the command.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    for file in options.curve.iter() {
        Curve::check_name(file)?;
    }
    options.threads.set();
    options.cache.set(io);
    let (stdout, printed) = io.program_output();
    let run = Run::new(stdout);
    run.seed(options.seed);
    let toolkit = io.toolkit_with(&options.first.dialect)?;
    let registry = toolkit.registry();
    let opened = Opened::open(registry, &io.path(&options.file))?;
    let program = opened.program(registry, &run)?;
    let mut trainer = trainer(options, &program, io)?;
    let (data, valid) = (read(options, &options.data, &trainer, io)?, &options.valid);
    let valid = if valid.is_empty() { None } else { Some(read(options, valid, &trainer, io)?) };
    let mut batches = Batches::new(registry, data.samples, options.batch, options.shuffle)?;
    let mut losses = Vec::new();
    if let Some(file) = &options.resume {
        losses = resume(&mut trainer, &mut batches, &io.path(file), &run)?;
    }
    let modes = (!options.keep_modes).then(|| trainer.train_mode());
    if opened.is_traced() && modes.as_ref().is_some_and(Modes::any) {
        io.message(
            "note: the model was traced: its layers behave in training as they did when it was traced\n",
        );
    }
    let begin = Instant::now();
    let mut work = Work { options, trainer, data, valid, batches, curve: Curve::new(losses), run };
    let done = work.train(io);
    io.print_kept(&printed);
    for warning in work.run.take_warnings() {
        io.message(&format!("warning: {warning}\n"));
    }
    if let Some(modes) = &modes {
        modes.restore();
    }
    done?;
    work.finish(&opened, registry, begin, io)?;
    Ok(true)
}

/// The trainer that the options describe.
fn trainer(options: &Options, program: &Program, io: &mut Io<'_>) -> Result<Trainer> {
    let program = options.first.planned(program, options.plans, &options.file, io)?;
    let program = options.kept.apply(program);
    let (optimizer, given) = named_options("--optimizer", &options.optimizer)?;
    let optimizer = Optimizer::new(&optimizer, &given)?;
    let program_registry = &Arc::clone(program.registry());
    let mut trainer =
        Trainer::new(program, &options.entry, loss(&options.loss, program_registry, io)?, optimizer)?;
    trainer.freeze(&options.freeze)?;
    trainer.unfreeze(&options.unfreeze)?;
    for group in &options.group {
        let (pattern, given) = named_options("--group", group)?;
        trainer.group(&pattern, given)?;
    }
    if let Some(text) = &options.schedule {
        trainer.set_schedule(schedule(text)?);
    }
    match (options.clip_norm, options.clip_value) {
        (Some(most), _) => trainer.set_clip(Clip::Norm { most, order: 2.0 }),
        (None, Some(most)) => trainer.set_clip(Clip::Value(most)),
        (None, None) => {}
    }
    trainer.prepare()?;
    Ok(trainer)
}

/// A built-in loss, a function of a file, or the answer itself.
fn loss(text: &str, registry: &Arc<Registry>, io: &Io<'_>) -> Result<Loss> {
    let (name, given) = named_options("--loss", text)?;
    if name == "answer" {
        return Ok(Loss::answer());
    }
    let (file, function) = match name.split_once(".py:") {
        Some((file, function)) => (format!("{file}.py"), Some(function)),
        None => (name.clone(), None),
    };
    if !file.ends_with(".py") {
        return Loss::named(registry, &name, given);
    }
    let text = files::read_text(&io.path(Path::new(&file)));
    let text = text.map_err(|e| Diagnostic::input(format!("{file}: {e}")))?;
    Loss::source(registry, (&file, &text), function, given)
}

/// `A until 5 then B until 50 then C`.
fn schedule(text: &str) -> Result<Schedule> {
    let mut stages = Vec::new();
    for part in text.split(" then ") {
        let (rule, until) = match part.split_once(" until ") {
            Some((rule, until)) => {
                let count = until.trim().parse::<i64>();
                let count = count.map_err(|_| {
                    Diagnostic::usage(format!("--schedule: '{until}' is not a number of steps"))
                })?;
                (rule, Some(count))
            }
            None => (part, None),
        };
        let (name, given) = named_options("--schedule", rule.trim())?;
        stages.push((name, given, until));
    }
    Schedule::new(&stages)
}

/// Reads arrays and separates inputs from targets: by the names of the model's arguments, else in order.
fn read(options: &Options, files: &[PathBuf], trainer: &Trainer, io: &Io<'_>) -> Result<Data> {
    let mut all = Vec::new();
    for file in files {
        all.extend(inputs::read_all(&io.path(file))?);
    }
    let parameters = trainer.program().parameters(&options.entry)?;
    let needed: Vec<&str> =
        parameters.iter().filter(|p| p.default.is_none()).map(|p| p.name.as_str()).collect();
    let named = |name: &str| all.iter().position(|(known, _)| known.as_deref() == Some(name));
    let places: Option<Vec<usize>> = needed.iter().map(|name| named(name)).collect();
    let places = places.unwrap_or_else(|| (0..needed.len().min(all.len())).collect());
    if places.len() < needed.len() {
        return Err(Diagnostic::input(format!(
            "{} takes {} ({}), and the data have {} arrays",
            options.entry,
            needed.len(),
            needed.join(", "),
            all.len()
        )));
    }
    let samples = all.first().map(|(_, value)| length(value)).transpose()?.unwrap_or(0);
    for (n, (name, value)) in all.iter().enumerate() {
        let name = name.clone().unwrap_or_else(|| n.to_string());
        let own = length(value).map_err(|error| error.note(format!("in array '{name}'")))?;
        if own != samples {
            return Err(Diagnostic::input(format!(
                "array '{name}' has {own} samples, and the first {samples}"
            )));
        }
    }
    let inputs = places.iter().map(|n| all[*n].1.clone()).collect();
    let rest = all.iter().enumerate().filter(|(n, _)| !places.contains(n));
    let targets: Vec<Value> = rest.map(|(_, (_, value))| value.clone()).collect();
    let takes = trainer.takes_targets();
    if takes == targets.is_empty() {
        let has = if takes { "has none for the loss" } else { "has more, and the loss takes none" };
        return Err(Diagnostic::input(format!(
            "the model takes the arrays {}, and the data {has}",
            needed.join(", ")
        )));
    }
    Ok(Data { inputs, targets, samples })
}

fn length(value: &Value) -> Result<usize> {
    match value {
        Value::Tensor(t) if t.rank() > 0 => Ok(t.sizes()[0] as usize),
        other => Err(Diagnostic::input(format!("data are arrays of samples, not a {}", other.kind_name()))),
    }
}

fn resume(trainer: &mut Trainer, batches: &mut Batches, file: &Path, run: &Run) -> Result<Vec<f64>> {
    let named = |mut error: Diagnostic| {
        let message = format!("{}: {}", file.display(), error.message());
        error.report_mut().message = message;
        error
    };
    let bytes = files::read(file, 64 << 30).map_err(|e| named(Diagnostic::input(e.to_string())))?;
    let value = load_values(trainer.program().registry(), bytes).map_err(named)?;
    trainer.resume(&value, batches, run).map_err(named)
}

/// A training run of the command.
struct Work<'a> {
    options: &'a Options,
    trainer: Trainer,
    data: Data,
    valid: Option<Data>,
    batches: Batches,
    curve: Curve,
    run: Run,
}

impl Work<'_> {
    fn train(&mut self, io: &mut Io<'_>) -> Result<()> {
        let options = self.options;
        let epoch = self.data.samples.div_ceil(options.batch.max(1)) as u64;
        let total = options.steps.unwrap_or(epoch.saturating_mul(options.epochs.unwrap_or(1)));
        let every = options.every.unwrap_or(total / 10).max(1);
        let before = self.trainer.steps();
        let progress = Progress::new("training", total.saturating_sub(before) as usize, io);
        let mut begin = Instant::now();
        while self.trainer.steps() < total {
            let step = self.step()?;
            let number = self.trainer.steps();
            self.curve.push(step.loss);
            if !step.loss.is_finite() {
                let error = Diagnostic::runtime(format!("the loss of step {number} is {}", step.loss));
                return Err(error.hint("a smaller learning rate or --clip-norm may help; nothing was saved"));
            }
            if options.schedule_by == When::Step || self.batches.ends() {
                self.trainer.advance()?;
            }
            if number.is_multiple_of(every) || number == total {
                let valid = self.validate()?;
                let since = (number - 1) % every + 1;
                let time = begin.elapsed().as_secs_f64() / since.min(number - before) as f64;
                let line = self.line(&step, (number, total), valid, time);
                progress.hidden(|| io.print(&line));
                begin = Instant::now();
            }
            if options.checkpoint_every.is_some_and(|every| number.is_multiple_of(every.max(1))) {
                self.checkpoint(io)?;
            }
            progress.step();
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        let (samples, _) = self.batches.next(&self.run)?;
        let inputs = self.batches.take(&self.data.inputs, &samples, &self.run)?;
        let targets = self.batches.take(&self.data.targets, &samples, &self.run)?;
        self.trainer.step(&inputs, &targets, &self.run)
    }

    /// The mean loss of the data to compare with, batch by batch.
    fn validate(&mut self) -> Result<Option<f64>> {
        let Some(data) = &self.valid else { return Ok(None) };
        let registry = self.trainer.program().registry();
        let mut batches = Batches::new(registry, data.samples, self.options.batch, false)?;
        let mut sum = 0.0;
        loop {
            let (samples, _) = batches.next(&self.run)?;
            let inputs = batches.take(&data.inputs, &samples, &self.run)?;
            let targets = batches.take(&data.targets, &samples, &self.run)?;
            sum += self.trainer.evaluate(&inputs, &targets, &self.run)? * samples.len() as f64;
            if batches.ends() {
                break;
            }
        }
        let mean = sum / data.samples as f64;
        self.curve.mark(mean);
        Ok(Some(mean))
    }

    fn line(&self, step: &Step, (number, total): (u64, u64), valid: Option<f64>, time: f64) -> String {
        if self.options.json {
            let line = json!({"step": number, "loss": step.loss, "rate": step.rate, "norm": step.norm,
                "valid": valid, "seconds_a_step": time});
            return format!("{line}\n");
        }
        let width = total.to_string().len();
        let mut line =
            format!("step {number:>width$}/{total}  loss {:<10.6}  lr {:<8}", step.loss, step.rate);
        if let Some(norm) = step.norm {
            line += &format!("  norm {norm:<9.4}");
        }
        if let Some(valid) = valid {
            line += &format!("  valid {valid:<10.6}");
        }
        line + &format!("  {:.2} ms a step\n", time * 1e3)
    }

    fn checkpoint(&self, io: &Io<'_>) -> Result<()> {
        let Some(file) = &self.options.checkpoint else { return Ok(()) };
        let value = self.trainer.checkpoint(&self.batches, self.curve.losses(), &self.run)?;
        write_file(&io.path(file), &save_values(self.trainer.program().registry(), &value, Vec::new())?)
    }

    /// Writes what was asked for.
    fn finish(&self, opened: &Opened, registry: &Registry, begin: Instant, io: &mut Io<'_>) -> Result<()> {
        let options = self.options;
        self.checkpoint(io)?;
        if let Some(out) = &options.out {
            write_file(&io.path(out), &opened.write(registry, Vec::new())?)?;
        }
        if let Some(file) = &options.curve {
            write_file(&io.path(file), self.curve.picture(file).as_bytes())?;
        }
        if options.json {
            return Ok(());
        }
        if io.terminal.out && options.curve.is_none() {
            io.print(&self.curve.text());
        }
        let losses = self.curve.losses();
        let ends = match (losses.first(), losses.last()) {
            (Some(first), Some(last)) => format!(", loss {first:.6} to {last:.6}"),
            _ => String::new(),
        };
        let saved = options.out.as_ref().map(|out| format!(", saved as {}", out.display()));
        io.print(&format!(
            "{} steps, {:.1} s{ends}{}\n",
            self.trainer.steps(),
            begin.elapsed().as_secs_f64(),
            saved.unwrap_or_default()
        ));
        Ok(())
    }
}
