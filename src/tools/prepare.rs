//! What every command does with a program before it runs: graph text is verified, then passes run over it. A pass that
//! panics, or that leaves an invalid module behind, becomes an error with a reproducer. Builds with debug assertions verify
//! after each pass that changed something.

use super::io::Io;
use super::numerics::Numerics;
use super::opt::reproducer;
use crate::backends::Backend;
use crate::diag::log::LogSpec;
use crate::diag::{Diagnostic, ErrorKind, Result, files, nearest};
use crate::dialects::{Registry, Strictness};
use crate::ir::Module;
use crate::passes::manager::{Limits, Runner, Settings};
use crate::passes::{PassSet, Pipeline};
use crate::runtime::Program;
use crate::toolkit;
pub use crate::toolkit::verify;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Settings for passes over what a call of `entry` comes to. Where the program has no such function, over all.
pub fn called(program: &Program, entry: &str) -> Settings {
    Settings { roots: program.function(entry).map(|f| f.name).into_iter().collect(), ..Settings::default() }
}

/// The program with the passes on. `name` is what a reproducer says it was made from; logs of passes go to `out`.
pub fn transformed(
    program: &Program,
    pipeline: &Pipeline,
    settings: Settings,
    name: &str,
    out: &mut dyn Write,
) -> Result<Program> {
    let settings = toolkit::over(program, settings);
    let passed = program.passed((pipeline, &settings.clone()), |module, registry| {
        run_passes(module, registry, pipeline, settings, name, out)
    })?;
    Ok(passed.under(pipeline.contract()))
}

/// What a command that wants gradients does with a program first.
#[derive(Args, Debug)]
pub struct GradientOptions {
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    pub dialect: Vec<PathBuf>,
    /// Passes to run first [default: none]
    #[arg(long, value_name = "PIPELINE", default_value = "", hide_default_value = true)]
    passes: String,
    #[command(flatten)]
    numerics: Numerics,
}

impl GradientOptions {
    /// The program with the passes on; `file` is what it was read from.
    pub fn transformed(&self, program: &Program, file: &Path, io: &mut Io<'_>) -> Result<Program> {
        let pipeline = self.numerics.checked_pipeline(&self.passes, io)?;
        transformed(program, &pipeline, Settings::default(), &file.display().to_string(), io.err)
    }

    /// The same with plans, which compile forward and backward, after the default passes; as [`GradientOptions::transformed`]
    /// where passes are named or plans are not wanted.
    pub fn planned(
        &self,
        program: &Program,
        plans: PlanOptions,
        file: &Path,
        io: &mut Io<'_>,
    ) -> Result<Program> {
        if plans.no_plans || !self.passes.is_empty() {
            return self.transformed(program, file, io);
        }
        let pipeline = self.numerics.checked_pipeline(DEFAULT, io)?;
        let name = file.display().to_string();
        Ok(plans.strategy.planned(transformed(program, &pipeline, Settings::default(), &name, io.err)?))
    }
}

/// How a command runs programs: with plans, unless its user says otherwise or runs passes of their own.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct PlanOptions {
    /// Make no plans: run every call as the passes leave the program, whatever its arguments are. Plans are made under the
    /// default passes only
    #[arg(long)]
    no_plans: bool,
    #[command(flatten)]
    strategy: StrategyOptions,
}

/// Which sizes plans are made for.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct StrategyOptions {
    /// How many kinds of arguments that differ in sizes alone have plans of their own, and how many plans are kept: 'static:2,dynamic:10'
    /// makes two, then one that leaves sizes open; 'dynamic:10' leaves them open from the first; 'static:32' never does
    #[arg(long, value_name = "STRATEGY", value_parser = strategy)]
    fusion_strategy: Option<Strategy>,
}

/// A fusion strategy, as PyTorch has it.
#[derive(Clone, Copy, Debug)]
struct Strategy {
    /// Plans for kinds of arguments that differ in sizes alone.
    own: usize,
    /// Plans of a function that are kept.
    kept: usize,
}

fn strategy(text: &str) -> Result<Strategy, String> {
    let wrong = || format!("'{text}' is not a strategy: write 'static:2,dynamic:10', or one of the two");
    let (mut own, mut kept, mut opens) = (0usize, 0usize, false);
    for part in text.split(',') {
        let (name, depth) = part.trim().split_once(':').ok_or_else(wrong)?;
        let depth: usize = depth.trim().parse().map_err(|_| wrong())?;
        match name.trim() {
            "static" if opens => return Err("plans that leave sizes open come last".to_string()),
            "static" => own = own.saturating_add(depth),
            "dynamic" => opens |= depth > 0,
            _ => return Err(wrong()),
        }
        kept = kept.saturating_add(depth);
    }
    Ok(Strategy { own: if opens { own } else { usize::MAX }, kept })
}

impl PlanOptions {
    /// The program as the command runs it after passes of this name.
    pub fn apply(self, program: Program, passes: &str) -> Program {
        match self.strategy(passes) {
            Some(strategy) => strategy.planned(program),
            None => program,
        }
    }

    /// Which plans are made after passes of this name; None for none.
    pub fn strategy(self, passes: &str) -> Option<StrategyOptions> {
        (!self.no_plans && passes == DEFAULT).then_some(self.strategy)
    }
}

impl StrategyOptions {
    /// The program with plans.
    pub fn planned(self, program: Program) -> Program {
        match self.fusion_strategy {
            Some(Strategy { own, kept }) => program.planned_for(kept).with_static_plans(own),
            None => program.planned(),
        }
    }
}

/// What a command that runs backwards lets calls keep for them.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct KeptOptions {
    /// Memory that a call may save for its backward besides its arguments: '20M'. Beyond it, values are recomputed, cheapest first
    /// [default: values that are expensive to compute are saved]
    #[arg(long, value_name = "SIZE", value_parser = super::limits::bytes)]
    max_kept: Option<u64>,
}

impl KeptOptions {
    /// The program, whose plans keep no more.
    pub fn apply(self, program: Program) -> Program {
        match self.max_kept {
            Some(bytes) => program.keeping_at_most(bytes),
            None => program,
        }
    }
}

/// What runs fusion groups and kernels.
#[derive(Args, Clone, Debug)]
pub struct DeviceOptions {
    /// What runs fusion groups and kernels: cpu, cuda (the first GPU; cuda-tf32: products and convolutions of float32 with
    /// factors rounded to TF32), interp (the reference interpreter of loops), apart (the same with memory of its own, as a GPU
    /// has), llvm (machine code or an error) or a backend of the program; other ops run on the CPU
    #[arg(long, value_name = "DEVICE", default_value = "cpu", visible_alias = "backend")]
    device: String,
}

impl DeviceOptions {
    /// The backend; None for the processor. Fails where this machine or build lacks the device.
    pub fn open(&self, io: &Io<'_>) -> Result<Option<Arc<dyn Backend>>> {
        io.toolkit.device(&self.device)
    }
}

/// The program on a device that was opened.
pub fn placed(program: Program, device: Option<&Arc<dyn Backend>>) -> Program {
    match device {
        Some(backend) => program.on(Arc::clone(backend)),
        None => program,
    }
}

/// What a command asks of calls beside their answers.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct GuardOptions {
    /// Make the guard with this number fail whenever it is checked, although it holds: the answer is the same. `explain` lists
    /// the guards of plans; those of a function that runs without a plan are numbered from 0 too
    #[arg(long, value_name = "N")]
    fail_guard: Option<usize>,
    /// Fail if an op is in no fusion group and no layer: each such op is named, with the reason. Within torch.jit.strict_fusion
    /// programs fail in any case
    #[arg(long)]
    strict_fusion: bool,
}

impl GuardOptions {
    /// As if the user had named this guard.
    pub fn failing(number: usize) -> GuardOptions {
        GuardOptions { fail_guard: Some(number), ..GuardOptions::default() }
    }

    /// The program with the guard that misses, or strictly fused.
    pub fn apply(self, program: Program) -> Program {
        let program = if self.strict_fusion { program.strictly_fused() } else { program };
        match self.fail_guard {
            Some(number) => program.failing_guard(number),
            None => program,
        }
    }

    /// The number of the guard.
    pub fn number(self) -> Option<usize> {
        self.fail_guard
    }

    /// Fails where a guard was to miss and none of that number was asked.
    pub fn check(self, program: &Program) -> Result<()> {
        let Some(number) = self.fail_guard.filter(|_| program.plan_report().forced_misses == 0) else {
            return Ok(());
        };
        let error = Diagnostic::usage(format!("no guard {number} was asked"));
        Err(match program.guards().iter().map(|guard| guard.number).max() {
            Some(last) => {
                error.hint(format!("guards have the numbers 0 to {last}; `flambeau explain` lists them"))
            }
            None => error.hint("the calls asked no guard at all"),
        })
    }
}

/// The passes that run where a user names none.
pub const DEFAULT: &str = "default";

/// Runs passes over a module; see [`transformed`].
pub fn run_passes(
    module: &mut Module,
    registry: &Registry,
    pipeline: &Pipeline,
    mut settings: Settings,
    name: &str,
    out: &mut dyn Write,
) -> Result<()> {
    if cfg!(debug_assertions) && settings.verify.is_none() {
        settings.verify = Some(Strictness::Carry);
    }
    let before = module.clone();
    let result = Runner::new(registry, settings, out).run(pipeline, module).map(|_| ());
    result.map_err(|error| match error.kind() {
        // Other errors are refusals of the pass and name what they refuse.
        ErrorKind::Panic | ErrorKind::Verify | ErrorKind::Internal => {
            let case = reproducer::Case::of(&before, pipeline.to_text(), name, &error);
            let text = reproducer::write(&case);
            match files::create_in(&std::env::temp_dir(), "flambeau-reproducer", "ir", text.as_bytes()) {
                Ok(file) => {
                    error.hint(format!("`flambeau opt --run-reproducer {}` replays it", file.display()))
                }
                Err(why) => error.note(format!("no reproducer was written: {why}")),
            }
        }
        _ => error,
    })
}

/// How many changes passes may make, those that make plans among them: a bad change is found by halving the number.
#[derive(Args, Clone, Debug, Default)]
pub struct ChangeOptions {
    /// Limit the changes of passes, including those that make plans: 'simplify=17:fuse-layers=3'; may be given several times
    /// [default: FLAMBEAU_OPT_LIMIT]
    #[arg(long, value_name = "SPEC")]
    opt_limit: Vec<String>,
}

impl ChangeOptions {
    /// The limits; passes of that name must exist.
    pub fn limits(&self, set: &PassSet) -> Result<Limits> {
        let text = match self.opt_limit.as_slice() {
            [] => std::env::var("FLAMBEAU_OPT_LIMIT").unwrap_or_default(),
            limits => limits.join(":"),
        };
        let limits = Limits::parse(&text)?;
        let names = || set.passes().iter().map(|pass| pass.name);
        for name in limits.names() {
            if !names().any(|known| known == name) {
                let error = Diagnostic::usage(format!("there is no pass '{name}'"));
                return Err(match nearest(&name, names()) {
                    Some(near) => error.hint(format!("did you mean '{near}'?")),
                    None => error.hint("`flambeau opt --help-passes` lists them"),
                });
            }
        }
        Ok(limits)
    }
}

/// What is logged, from a command's option or else from `FLAMBEAU_LOG`: topics are passes, those that make plans
/// among them, and `fusion` for what becomes of fusion groups at run time. Both must name what exists.
pub fn log_spec(option: Option<&str>, set: &PassSet) -> Result<LogSpec> {
    let variable = std::env::var("FLAMBEAU_LOG").unwrap_or_default();
    let spec = LogSpec::parse(option.unwrap_or(&variable))?;
    let topics = || set.passes().iter().map(|pass| pass.name).chain(["fusion"]);
    for name in spec.names().filter(|name| *name != "*") {
        if !topics().any(|topic| topic == name) {
            let error = Diagnostic::usage(format!("unknown log topic '{name}'"));
            return Err(match nearest(name, topics()) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error.hint("topics are passes (`flambeau opt --help-passes`) and fusion"),
            });
        }
    }
    Ok(spec)
}
