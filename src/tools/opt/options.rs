//! The options of `flambeau opt`.

use super::reproducer::Case;
use crate::analysis::{AliasDb, Analysis};
use crate::diag::log::LogSpec;
use crate::diag::render::Form;
use crate::diag::{Diagnostic, Result, Source, files, nearest};
use crate::dialects::Strictness;
use crate::passes::Pipeline;
use crate::passes::manager::print_ir::PrintIr;
use crate::passes::manager::{Limits, Settings};
use crate::rewrite::{self, Questions};
use crate::toolkit::Toolkit;
use crate::tools::inputs::InputOptions;
use crate::tools::limits::LimitOptions;
use crate::tools::numerics::Numerics;
use crate::tools::threads::ThreadOptions;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Options of `flambeau opt`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Graph text, TorchScript source or a .pt archive; `-` is standard input
    #[arg(default_value = "-")]
    pub(super) file: PathBuf,
    /// Passes in order, with options, nests and named pipelines: 'inline,simplify{nodes=20000},repeat(cse,dce)'
    #[arg(long, value_name = "PIPELINE", default_value = "")]
    pub(super) passes: String,
    /// Rules in addition to the built-in ones for every `simplify` of the pipeline; each is checked first
    #[arg(long, value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,
    #[command(flatten)]
    pub(super) inputs: InputOptions,
    #[command(flatten)]
    pub(super) numerics: Numerics,
    /// List the passes, their options, nests and named pipelines
    #[arg(long)]
    pub(super) help_passes: bool,
    /// Print the pipeline with every option to standard error
    #[arg(long)]
    pub(super) dump_pipeline: bool,
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    pub(super) dialect: Vec<PathBuf>,
    /// Allow ops of unregistered dialects (treated as opaque)
    #[arg(long)]
    pub(super) allow_unregistered_dialect: bool,
    /// Reject ops that do not exist or do not accept their operands, including built-in ones
    #[arg(long)]
    pub(super) strict: bool,
    /// The form in which the module is printed
    #[arg(long, value_enum, value_name = "FORM", default_value = "ir")]
    pub(super) to: OutputForm,
    /// Leave out source locations
    #[arg(long)]
    pub(super) no_locations: bool,
    /// Print symbolic sizes as `SS(-1)` also for a graph that is read as PyTorch's parser reads it, which prints `*`
    #[arg(long)]
    pub(super) symbols: bool,
    /// Verify after each pass that changed something (the default)
    #[arg(long, overrides_with = "no_verify_each")]
    pub(super) verify_each: bool,
    /// Do not verify between passes
    #[arg(long)]
    pub(super) no_verify_each: bool,
    /// Call each function that a pass changed before and after it, N times with values drawn for its types and with --input or
    /// --args, and reject a different answer
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "8", require_equals = true)]
    pub(super) validate_each: Option<usize>,
    /// Print nothing but diagnostics
    #[arg(long)]
    pub(super) no_output: bool,
    /// Replay a reproducer: its module, passes and options
    #[arg(long, value_name = "FILE")]
    pub(super) run_reproducer: Option<PathBuf>,
    /// Where to write the result
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(super) output: PathBuf,
    #[command(flatten)]
    pub(super) threads: ThreadOptions,
    #[command(flatten)]
    pub(super) look: Look,
    #[command(flatten)]
    pub(super) trouble: Trouble,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
    /// Find the first bad pass and step: 'verify' (a failing pass or verifier), 'answer' (another answer than without passes, with
    /// --input or --args), or a command that fails for bad IR (%s stands for a file with it, else it is standard input)
    #[arg(long, value_name = "CHECK", num_args = 0..=1, default_missing_value = "verify", require_equals = true)]
    pub(super) bisect: Option<String>,
    /// The function that inputs are for: their dtypes and sizes go into its types, and --bisect=answer calls it
    #[arg(long, value_name = "NAME", default_value = "forward")]
    pub(super) entry: String,
    /// Process the parts between `// -----` or `# -----` lines independently
    #[arg(long)]
    pub(super) split_input_file: bool,
    /// Compare diagnostics with the comments `expected-error@+1 {{text}}` of the input
    #[arg(long)]
    pub(super) verify_diagnostics: bool,
    /// How diagnostics are shown
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    pub(super) diagnostics: DiagnosticForm,
}

/// The form of `opt`'s output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputForm {
    /// Graph text as PyTorch prints it
    #[default]
    Ir,
    /// MLIR's generic form, for mlir-opt and xdsl-opt with --allow-unregistered-dialect
    Mlir,
    /// A page for the browser: pass by pass, texts and graphs side by side, rules explained
    Html,
}

/// What is shown of the passes at work.
#[derive(Args, Clone, Debug)]
pub(super) struct Look {
    /// Print the IR before a pass (several: repeat, or separate by commas)
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    print_ir_before: Vec<String>,
    /// Print the IR after a pass
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    print_ir_after: Vec<String>,
    /// Print the IR before every pass
    #[arg(long)]
    print_ir_before_all: bool,
    /// Print the IR after every pass
    #[arg(long)]
    print_ir_after_all: bool,
    /// Print the IR after passes that changed it
    #[arg(long)]
    print_ir_after_change: bool,
    /// Print the IR after a pass that failed
    #[arg(long)]
    print_ir_after_failure: bool,
    /// Print what each pass changed
    #[arg(long)]
    print_ir_diff: bool,
    /// Report where time is spent: `tree`, or `chrome:FILE` for a trace (`--timing=chrome FILE` also works)
    #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "tree", require_equals = true)]
    pub(super) timing: Option<String>,
    /// Print the statistics of the passes
    #[arg(long)]
    pub(super) pass_statistics: bool,
    /// Report, for each op that a rule replaced, the chain of rules, places, before and after, and costs: `text` or `json`; on
    /// standard output if the module does not go there, otherwise on standard error
    #[arg(long, value_enum, value_name = "FORM", num_args = 0..=1, default_missing_value = "text", require_equals = true)]
    pub(super) explain: Option<ExplainForm>,
    /// Report where the rule was not applied, and why
    #[arg(long, value_name = "RULE")]
    pub(super) why_not: Option<String>,
    /// Log passes and analyses: 'dce:>alias' [default: FLAMBEAU_LOG]
    #[arg(long, value_name = "SPEC")]
    log: Option<String>,
    /// Limit the changes of passes: 'simplify=17:dce=3'; may be given several times [default: FLAMBEAU_OPT_LIMIT]
    #[arg(long, value_name = "SPEC")]
    opt_limit: Vec<String>,
}

/// How explanations are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainForm {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// What happens when something breaks.
#[derive(Args, Clone, Debug)]
pub(super) struct Trouble {
    /// Where a reproducer goes when a pass or the verifier fails [default: a new file in the temporary folder]
    #[arg(long, value_name = "FILE")]
    pub(super) reproducer: Option<PathBuf>,
    /// The folder for new reproducers, instead of the temporary folder
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub(super) reproducer_folder: Option<PathBuf>,
    /// Write no reproducer
    #[arg(long)]
    pub(super) no_reproducer: bool,
}

/// How diagnostics are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DiagnosticForm {
    /// For people
    #[default]
    Text,
    /// In PyTorch's format
    Torch,
    /// One JSON object a line
    Json,
}

impl DiagnosticForm {
    /// The renderer's form.
    pub fn form(self) -> Form {
        match self {
            DiagnosticForm::Text => Form::Text,
            DiagnosticForm::Torch => Form::Torch,
            DiagnosticForm::Json => Form::Json,
        }
    }
}

impl Options {
    /// How much the verifier demands.
    pub(super) fn strictness(&self) -> Strictness {
        match (self.strict, self.allow_unregistered_dialect) {
            (true, _) => Strictness::Ops,
            (_, true) => Strictness::Carry,
            _ => Strictness::Dialects,
        }
    }

    /// How the passes are run.
    pub(super) fn settings(&self) -> Result<Settings> {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let log = self.look.log.clone().unwrap_or_else(|| variable("FLAMBEAU_LOG"));
        let limits = self.limits_text().unwrap_or_default();
        let threads = if self.questions().any() { 1 } else { self.threads.threads };
        Ok(Settings {
            threads,
            log: LogSpec::parse(&log)?,
            limits: Limits::parse(&limits)?,
            verify: (!self.no_verify_each).then(|| self.strictness()),
            ..Settings::default()
        })
    }

    /// What is asked about rules. Explanations come in the order of the work, so that work on one thread is asked for.
    pub(super) fn questions(&self) -> Questions {
        Questions {
            explain: self.look.explain.is_some() || self.to == OutputForm::Html,
            why_not: self.look.why_not.as_deref().map(Into::into),
        }
    }

    /// What is printed around passes.
    pub(super) fn print_ir(&self) -> PrintIr {
        let names = |all: bool, names: &[String]| if all { vec!["*".to_string()] } else { names.to_vec() };
        PrintIr {
            before: names(self.look.print_ir_before_all, &self.look.print_ir_before),
            after: names(self.look.print_ir_after_all, &self.look.print_ir_after),
            after_change: self.look.print_ir_after_change,
            after_failure: self.look.print_ir_after_failure,
            diff: self.look.print_ir_diff,
            bare: self.no_locations,
            ..PrintIr::default()
        }
    }

    /// Names of passes outside of the pipeline must exist, or the options would silently do nothing.
    pub(super) fn check_names(&self, pipeline: &Pipeline, toolkit: &Toolkit) -> Result<()> {
        let print = self.print_ir();
        let settings = self.settings()?;
        let known = |name: &str| {
            let name = name.replace('_', "-");
            name == "*" || pipeline.names().contains(&name.as_str()) || toolkit.passes().pass(&name).is_some()
        };
        let limited = settings.limits.names();
        for name in print.names().chain(limited.iter().map(String::as_str)) {
            if !known(name) {
                let error = Diagnostic::usage(format!("there is no pass '{name}'"));
                return Err(match nearest(name, toolkit.passes().passes().iter().map(|p| p.name)) {
                    Some(near) => error.hint(format!("did you mean '{near}'?")),
                    None => error.hint("`flambeau opt --help-passes` lists them"),
                });
            }
        }
        let logs = |name: &str| known(name) || name == <AliasDb as Analysis>::NAME;
        if let Some(name) = settings.log.names().find(|name| !logs(name)) {
            let error = Diagnostic::usage(format!("unknown log topic '{name}'"));
            return Err(error.hint("topics are passes (`flambeau opt --help-passes`) and alias"));
        }
        self.check_rule(pipeline, toolkit)
    }

    /// A question about an unknown rule is a typo.
    fn check_rule(&self, pipeline: &Pipeline, toolkit: &Toolkit) -> Result<()> {
        let Some(wanted) = self.look.why_not.as_deref() else { return Ok(()) };
        let mut rules = rewrite::written(toolkit.registry())?;
        for file in pipeline.option_texts("rules").into_iter().filter(|file| !file.is_empty()) {
            let text = files::text(Path::new(&file))?;
            rules.extend(rewrite::parse(&Source::new(file, text))?);
        }
        // The way back of a rule that holds both ways has a name of its own.
        let name = wanted.strip_suffix("/back").unwrap_or(wanted);
        if rules.iter().any(|rule| rule.name == name) {
            return Ok(());
        }
        let error = Diagnostic::usage(format!("there is no rule '{wanted}'"));
        Err(match nearest(wanted, rules.iter().map(|rule| rule.name.as_str())) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error.hint("rules are defined in src/rewrite/rules and in the files of --rules"),
        })
    }

    /// The same options with the passes and options of a reproducer.
    pub(super) fn replaying(&self, case: &Case) -> Options {
        let mut options = self.clone();
        options.passes.clone_from(&case.pipeline);
        options.allow_unregistered_dialect |= case.carries;
        options.strict |= case.strict;
        options.no_verify_each |= case.unverified;
        if options.look.opt_limit.is_empty() {
            options.look.opt_limit.extend(case.limits.clone());
        }
        options.trouble.no_reproducer = true;
        options.split_input_file = false;
        options
    }

    /// The limits as text.
    pub(super) fn limits_text(&self) -> Option<String> {
        match self.look.opt_limit.as_slice() {
            [] => std::env::var("FLAMBEAU_OPT_LIMIT").ok(),
            limits => Some(limits.join(":")),
        }
    }
}

/// Joins `--timing=chrome FILE` to one argument, as the parser expects.
pub fn join_timing(args: Vec<std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    let mut out: Vec<std::ffi::OsString> = Vec::with_capacity(args.len());
    for arg in args {
        match out.last_mut() {
            Some(last) if last == "--timing=chrome" => {
                last.push(":");
                last.push(arg);
            }
            _ => out.push(arg),
        }
    }
    out
}
