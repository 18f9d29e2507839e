//! The command line: options in, exit status out. 0 success, 1 bad input or failure, 2 wrong usage.

use super::io::{Io, Terminal};
use super::limits::LimitOptions;
use super::{
    bench, cache, check, demo, dialect, docs, explain, filecheck, grad, inspect, lit, lsp, opt, profile,
    reduce, rules, run, save, threads, train, translate, warm,
};
use crate::diag::{Diagnostic, ErrorKind, Result, render};
use crate::toolkit::Toolkit;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Runs and inspects saved TorchScript models without libtorch.
#[derive(Parser, Debug)]
#[command(name = "flambeau", version, about, long_about = LONG, after_long_help = MORE, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    limits: LimitOptions,
}

const LONG: &str = "\
Runs and inspects saved TorchScript models without libtorch.

A FILE is a .pt archive of torch.jit.save, TorchScript source, or the text of a graph as PyTorch prints it; \
flambeau detects which from the content. Messages go to standard error; standard output holds only the requested \
output. Exit status: 0 success, 1 bad input or failure, 2 wrong usage.";

const MORE: &str = "\
Examples:
  flambeau run model.pt --input x=float32[1,3,224,224]   load a model, call it, print the answer
  flambeau bench model.pt --input x=float32[1,3,224,224]   time it
  flambeau check model.pt --input x=float32[1,3,224,224]   compare its answer with and without passes
  flambeau opt graph.ir --passes inline,cse,dce        run passes over graph text
  flambeau translate model.pt --to html > model.html   a page that shows the graph in a browser
  flambeau translate model.pt --to llvm --args x.npz   what is compiled
  flambeau opt a.ir | flambeau filecheck a.ir          does it print what the CHECK lines of a.ir say?
  flambeau lit tests/filecheck                         run the tests of a folder
  flambeau completions bash > /etc/bash_completion.d/flambeau

Environment:
  FILECHECK_OPTS   options that filecheck reads before its own
  LIT_OPTS, LIT_FILTER, LIT_FILTER_OUT, LIT_NUM_SHARDS, LIT_RUN_SHARD   the same for lit
  FLAMBEAU_NUM_THREADS   threads of every command that computes, unless --threads is given; default: all cores
  FLAMBEAU_CACHE   the folder of compiled kernels, plans and modules, or off; see docs/cache.md
  FLAMBEAU_LOG, FLAMBEAU_OPT_LIMIT   what is logged, and a limit on changes by passes; see docs/environment.md

A link to the program named FileCheck or lit runs that tool.
The manual is the folder docs of the source.";

/// What a picture is made for, shown by `translate --help`.
const TRANSLATE: &str = "\
The forms:
  ir      graph text, as PyTorch prints it
  python  TorchScript source
  loops   the loops of each fusion group; backward: the graph of its gradients
  llvm    LLVM IR of each fusion group; asm: this computer's assembly; ptx: that of NVIDIA GPUs
  html    one page for the browser: search, blocks that open and close, types on edges, details of each op;
          it fetches nothing and works without a network (docs/view.md)
          with --input it shows sizes, with --profile the time of each op
  svg     the same picture for documents
  dot     for Graphviz: flambeau translate g.ir --to dot | dot -Tpdf > g.pdf
  json    the graph as tables for other programs (docs/view.md)

Examples:
  flambeau translate model.pt --to html --passes default > fused.html
  flambeau translate graph.ir --to ptx --arch sm_80";

const LSP: &str = "\
An editor starts it as `flambeau lsp` and speaks the Language Server Protocol over its standard input and \
output. It serves graph text (.ir), rules (.rules), dialects (.dialect), TorchScript source (.py) and files with \
CHECK lines. A file flambeau.toml in the project's folder names the dialects that its files use: \
dialects = [\"dialects/*.dialect\"]. docs/lsp.md shows how editors are set up.";

/// How inputs are written, shown by `run --help`.
const INPUTS: &str = "\
Inputs:
  x=float32[1,3,224,224]      random numbers of the standard normal distribution, from --seed
  ids=int64[2,16]{0..30000}   whole numbers from 0 to below 30000; bool[4], float16[8]{0..1}, complex64[3]
  n=5  flag=true  s='\"text\"'  numbers, truth values, text, None
  mask=@mask.npy              a file: .npy, .npz, .safetensors or .json; @all.npz gives arguments by name
  images=[float32[3,300,400], float32[3,200,300]]   lists, tuples (a, b) and dictionaries {\"a\": 1}
Names may be left out; then inputs are given in order.

Examples:
  flambeau run model.pt --input x=float32[1,3,224,224]
  flambeau run model.pt --input @inputs.npz --output answer.npz
  flambeau run traced.pt --time --threads 1          inputs of the sizes that the trace recorded";

/// What is compared, shown by `check --help`.
const CHECK: &str = "\
Examples:
  flambeau check model.pt --input x=float32[1,3,224,224]   with and without the default passes
  python examples/record.py model.pt case --input x=float32[1,3,224,224] --ops
  flambeau check case                                      against PyTorch's answer, output by output
  flambeau check case --ops                                the first op whose value differs
  flambeau check cases.jsonl --passes default              recorded cases, many at once";

/// What is timed, shown by `bench --help`.
const BENCH: &str = "\
Examples:
  flambeau bench model.pt --input x=float32[1,3,224,224]
  flambeau bench model.pt --input x=float32[1,3,224,224] --threads 1,2 --batch 1,8 --svg times.svg
  flambeau bench model.pt --baseline none            the default passes against none
  flambeau bench new.pt --baseline old.pt            two models, alternating
  flambeau bench model.pt --profile=trace.json       where the time goes; ui.perfetto.dev opens the file";

/// What is differentiated, shown by `grad --help`.
const GRAD: &str = "\
Examples:
  flambeau grad model.pt --input x=float32[1,3,224,224] --wrt x
  flambeau grad model.pt --args x.npy --wrt 'conv1.*' --output gradients.npz
  flambeau grad check                                compiles the derivatives of all operators";

/// How a model is trained, shown by `train --help`.
const TRAIN: &str = "\
Examples:
  flambeau train model.pt --data d.npz --loss cross_entropy --optimizer 'adamw(lr=1e-3)' --steps 500 --out trained.pt
  flambeau train model.pt --data d.npz --loss mse --optimizer 'sgd(lr=0.1, momentum=0.9)' --epochs 10 --shuffle \\
    --schedule 'linear(total_iters=100) until 100 then cosine(T_max=900)' --clip-norm 1 --freeze 'features.*' \\
    --valid v.npz --curve loss.svg --checkpoint run.ck --checkpoint-every 100 --out trained.pt
  flambeau train model.pt --data d.npz --loss mse --resume run.ck --steps 2000 --out trained.pt
docs/training.md has the details.";

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a model: load a file, call a function of it, print the answer
    #[command(after_long_help = INPUTS)]
    Run(Box<run::Options>),
    /// Compare answers: those of recorded cases with PyTorch's, those of a model with and without passes
    #[command(after_long_help = CHECK)]
    Check(Box<check::Options>),
    /// Run passes over a module and print it
    Opt(Box<opt::Options>),
    /// Reduce a failing input automatically
    Reduce(reduce::Options),
    /// Print the documentation of ops, types and attributes, including those of dialect files
    Docs(DocsOptions),
    /// Print a module or its kernels in another format
    #[command(after_long_help = TRANSLATE)]
    Translate(translate::Options),
    /// Check rewrite rules, written as text, on random instances
    Rules(rules::Options),
    /// Load dialect files and check their derivatives
    Dialect(dialect::Options),
    /// Compute gradients of a model's answer; check derivatives of operators
    #[command(after_long_help = GRAD)]
    Grad(Box<grad::Options>),
    /// Train a saved model on arrays, and save it so that PyTorch loads it
    #[command(after_long_help = TRAIN)]
    Train(Box<train::Options>),
    /// Write a program as an archive that PyTorch loads
    Save(save::Options),
    /// List the contents of an archive without loading the program
    Inspect(inspect::Options),
    /// Time models: load, first call, warm calls; against a baseline, op by op
    #[command(after_long_help = BENCH)]
    Bench(Box<bench::Options>),
    /// Compile what a model needs for given arguments and cache it on disk, so that the next process compiles nothing
    Warm(Box<warm::Options>),
    /// List, check or remove the compiled kernels that are kept on disk
    Cache(cache::Options),
    /// Explain how a call runs: the plan for its arguments, op by op with time and bytes, or why there is none
    Explain(Box<explain::Options>),
    /// Run a program and print its graph with the types of the observed tensors, for insert-guards
    Profile(Box<profile::Options>),
    /// Load a model with its recorded answer and show on one screen how it is compiled and run
    Demo(demo::Options),
    /// Check a text against the CHECK lines of a file, in LLVM's language
    #[command(name = "filecheck", disable_help_flag = true)]
    FileCheck(RawArguments),
    /// Run test files by their RUN lines
    #[command(disable_help_flag = true)]
    Lit(RawArguments),
    /// Serve editors: errors, types, definitions, completion
    #[command(after_help = LSP)]
    Lsp(lsp::Options),
    /// Write the completion of command lines for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl Arguments {
    /// Limits of the whole command; `check` and `bench` limit each case by itself.
    fn limits(&self) -> Option<&LimitOptions> {
        let by_case = matches!(self.command, Command::Check(_) | Command::Bench(_));
        (!by_case).then_some(&self.limits)
    }
}

/// Options of `flambeau docs`.
#[derive(clap::Args, Debug)]
struct DocsOptions {
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    dialect: Vec<PathBuf>,
    /// Only the ops of these dialects
    #[arg(value_name = "DIALECT")]
    only: Vec<String>,
}

fn print_docs(options: &DocsOptions, io: &mut Io<'_>) -> Result<bool> {
    let toolkit = io.toolkit_with(&options.dialect)?;
    io.print(&docs::dialects(toolkit.registry(), &options.only)?);
    Ok(true)
}

/// Arguments that a tool parses itself.
#[derive(clap::Args, Debug)]
struct RawArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

impl Toolkit {
    /// The whole program: parses the process's command line, runs the command that they name over this toolkit,
    /// and gives its exit status. A program of one's own is this, with what it adds:
    ///
    /// ```no_run
    /// use flambeau::prelude::*;
    ///
    /// fn main() -> std::process::ExitCode {
    ///     Toolkit::new("my-opt").pipeline("mine", "inline,cse,dce").main()
    /// }
    /// ```
    pub fn main(self) -> ExitCode {
        let status = main(std::env::args_os(), &self);
        ExitCode::from(u8::try_from(status).unwrap_or(1))
    }
}

/// Runs a command of the process and gives the exit status. Called by the name `FileCheck` or `lit` (a link to the
/// program) it is that tool, so that suites written for LLVM's tools run unchanged.
pub fn main(args: impl IntoIterator<Item = OsString>, toolkit: &Toolkit) -> i32 {
    let args: Vec<OsString> = args.into_iter().collect();
    let (mut stdin, mut out, mut err) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let io = Io::new(toolkit, Path::new(""), &mut stdin, &mut out, &mut err);
    let mut io = Io { terminal: Terminal::of_process(), ..io };
    let called = args.first().and_then(|name| Path::new(name).file_stem()).unwrap_or_default();
    match called.to_str() {
        Some("FileCheck") => filecheck_as(&args, &mut io),
        Some("lit") => lit_as(&args, toolkit),
        _ => start(args, &mut io, true),
    }
}

/// Whether an argument is a limit option that lit does not have.
fn is_own_limit(arg: &OsString) -> bool {
    const OWN: [&str; 6] =
        ["--max-memory", "--max-steps", "--max-depth", "--max-output", "--max-warnings", "--max-forks"];
    let name = arg.to_str().and_then(|arg| arg.split('=').next());
    name.is_some_and(|name| OWN.contains(&name))
}

/// Runs a command on the given streams.
pub fn main_in(args: impl IntoIterator<Item = OsString>, io: &mut Io<'_>) -> i32 {
    start(args, io, false)
}

/// The command line of a program called `name`: its help speaks of itself by that name.
fn command(name: &'static str) -> clap::Command {
    fn renamed(mut command: clap::Command, name: &str) -> clap::Command {
        let own =
            |text: &clap::builder::StyledStr| text.to_string().replace("flambeau ", &format!("{name} "));
        if let Some(text) = command.get_long_about().map(own) {
            command = command.long_about(text);
        }
        if let Some(text) = command.get_after_help().map(own) {
            command = command.after_help(text);
        }
        if let Some(text) = command.get_after_long_help().map(own) {
            command = command.after_long_help(text);
        }
        command.mut_subcommands(|inner| renamed(inner, name))
    }
    let command = Arguments::command();
    if name == command.get_name() { command } else { renamed(command, name).name(name) }
}

/// Hints that name a command name that of this program.
fn own_name(mut error: Diagnostic, name: &str) -> Diagnostic {
    for hint in &mut error.report_mut().hints {
        *hint = hint.replace("`flambeau ", &format!("`{name} "));
    }
    error
}

/// The commands that call programs, whose weights and plans large pages are for. The others do without.
const CALLING: &[&str] =
    &["run", "check", "grad", "train", "bench", "warm", "explain", "profile", "demo", "lit"];

/// Whether a command calls programs.
pub fn calls_programs(command: &OsStr) -> bool {
    CALLING.iter().any(|calling| command == *calling)
}

/// Runs a command. With `owns_process`, work that goes on after the command's time ends the process.
fn start(args: impl IntoIterator<Item = OsString>, io: &mut Io<'_>, owns_process: bool) -> i32 {
    let args = opt::join_timing(args.into_iter().collect());
    let fit = io.toolkit.check().and_then(|()| threads::check_environment());
    if let Err(error) = fit {
        io.message(&render::human(&error));
        return 1;
    }
    // What follows `lit` is lit's, which has a `--timeout` of its own, but for limits that it has not.
    if args.get(1).is_some_and(|arg| arg == "lit") && !args.iter().any(is_own_limit) {
        return run_lit(&args[2..], io.toolkit);
    }
    let parsed = command(io.toolkit.name())
        .try_get_matches_from(args)
        .and_then(|matches| Arguments::from_arg_matches(&matches));
    let mut args = match parsed {
        Ok(args) => args,
        Err(error) if error.use_stderr() => {
            io.message(&error.to_string());
            return 2;
        }
        Err(help) => {
            io.print(&help.to_string());
            return 0;
        }
    };
    args.limits.owns_process = owns_process;
    match &mut args.command {
        Command::Check(options) => options.limits.owns_process = owns_process,
        Command::Bench(options) => options.limits.owns_process = owns_process,
        _ => {}
    }
    let limits = args.limits();
    let _watched = limits.map(LimitOptions::watch);
    let _bounded = limits.map(LimitOptions::install);
    let result = match &args.command {
        Command::Run(options) => run::run(options, io).map(|()| true),
        Command::Check(options) => check::run(options, io),
        Command::Opt(options) => opt::run(options, io),
        Command::Reduce(options) => reduce::run(options, io),
        Command::Docs(options) => print_docs(options, io),
        Command::Translate(options) => translate::run(options, io),
        Command::Rules(options) => rules::run(options, io),
        Command::Dialect(options) => dialect::run(options, io),
        Command::Grad(options) => grad::run(options, io),
        Command::Train(options) => train::run(options, io),
        Command::Save(options) => save::run(options, io),
        Command::Inspect(options) => inspect::run(options, io),
        Command::Bench(options) => bench::run(options, io),
        Command::Warm(options) => warm::run(options, io),
        Command::Cache(options) => cache::run(options, io),
        Command::Explain(options) => explain::run(options, io).map(|()| true),
        Command::Profile(options) => profile::run(options, io).map(|()| true),
        Command::Demo(options) => demo::run(options, io),
        Command::Lsp(options) => lsp::run(options, io.toolkit),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut command(io.toolkit.name()), io.toolkit.name(), &mut text);
            io.print(&String::from_utf8_lossy(&text));
            Ok(true)
        }
        Command::FileCheck(rest) => return run_filecheck(&rest.args, io),
        Command::Lit(rest) => return run_lit(&rest.args, io.toolkit),
    };
    match result {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => {
            let status = if error.kind() == ErrorKind::Usage { 2 } else { 1 };
            io.message(&render::human(&own_name(error, io.toolkit.name())));
            status
        }
    }
}

fn run_filecheck(args: &[OsString], io: &mut Io<'_>) -> i32 {
    let args: Vec<OsString> = std::iter::once("FileCheck".into()).chain(args.iter().cloned()).collect();
    filecheck_as(&args, io)
}

fn filecheck_as(args: &[OsString], io: &mut Io<'_>) -> i32 {
    let options = std::env::var("FILECHECK_OPTS").ok();
    filecheck::main_in(io.directory, args, options.as_deref(), io.stdin, io.out, io.err)
}

fn run_lit(args: &[OsString], toolkit: &Toolkit) -> i32 {
    let args: Vec<OsString> = std::iter::once("lit".into()).chain(args.iter().cloned()).collect();
    lit_as(&args, toolkit)
}

fn lit_as(args: &[OsString], toolkit: &Toolkit) -> i32 {
    let mut config = lit_config(toolkit.name(), toolkit.clone());
    config.records = lit::records_folder();
    config.progress = Terminal::of_process().out;
    lit::main(&lit::with_variables(args), config, &mut std::io::stdout(), &mut std::io::stderr())
}

/// How lit runs a suite called `name`: a toolkit's commands run in this process, under its own name and as `flambeau`.
pub fn lit_config(name: &str, toolkit: Toolkit) -> lit::Config {
    let mut config = lit::Config { name: name.to_string(), ..lit::Config::default() };
    config.suffixes = [".ir", ".py", ".test", ".rules"].map(String::from).to_vec();
    // Suites of LLVM have such tests next to other files.
    config.maybe = [".txt", ".ll", ".mlir", ".dialect"].map(String::from).to_vec();
    config.features.insert("ansi-escapes".to_string());
    if cfg!(feature = "llvm") {
        config.features.insert("llvm".to_string());
    }
    if toolkit.device("cuda").is_ok() {
        config.features.insert("cuda".to_string());
    }
    // Tests of what other compilers make of our text run where these are installed.
    for (program, feature) in [("mlir-opt-22", "mlir-opt"), ("xdsl-opt", "xdsl-opt")] {
        if is_on_path(program) {
            config.features.insert(feature.to_string());
        }
    }
    config.knobs = Some(knobs(&toolkit));
    let program = toolkit.name().to_string();
    let tool: lit::Tool = Arc::new(move |call: lit::Call<'_>| {
        let own = OsStr::new(toolkit.name()).to_os_string();
        let args = std::iter::once(own).chain(call.args.iter().skip(1).cloned());
        let args = with_variables(args.collect(), call.environment);
        main_in(args, &mut Io::new(&toolkit, call.directory, call.stdin, call.out, call.err))
    });
    config.tools.insert(program, Arc::clone(&tool));
    config.tools.insert("flambeau".to_string(), tool);
    config
}

/// How `lit --mutate` and `lit --update-changed` make `opt` leave out work: the number of changes by each pass of the pipeline is limited.
fn knobs(toolkit: &Toolkit) -> lit::Knobs {
    let toolkit = toolkit.clone();
    Arc::new(move |args: &[String]| {
        let is_opt = matches!(args, [name, command, ..] if command == "opt" && (name == toolkit.name() || name == "flambeau"));
        if !is_opt || args.iter().any(|arg| arg.starts_with("--opt-limit") || arg.starts_with("--bisect")) {
            return Vec::new();
        }
        let behind = |at: usize| args.get(at + 1).map(String::as_str);
        let passes = args.iter().enumerate().find_map(|(at, arg)| match arg.strip_prefix("--passes") {
            Some("") => behind(at),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        });
        // What is not a pipeline is tested for that.
        let pipeline = passes.and_then(|passes| toolkit.parse_pipeline(passes).ok());
        let names = pipeline.map(|pipeline| pipeline.names()).unwrap_or_default();
        let mut knobs: Vec<String> =
            names.into_iter().map(|name| format!("--opt-limit={name}={{}}")).collect();
        knobs.sort();
        knobs.dedup();
        knobs
    })
}

/// Whether the system finds a program of this name.
fn is_on_path(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// Options of commands for the variables of a test, which are not those of the process.
fn with_variables(mut args: Vec<OsString>, variables: &BTreeMap<String, String>) -> Vec<OsString> {
    let command = args.get(1).and_then(|arg| arg.to_str()).unwrap_or_default();
    let is_opt = command == "opt";
    if is_opt || ["run", "explain"].contains(&command) {
        for (variable, option) in [
            ("FLAMBEAU_LOG", "--log"),
            ("FLAMBEAU_OPT_LIMIT", "--opt-limit"),
            ("TMPDIR", "--reproducer-folder"),
        ]
        .into_iter()
        .filter(|(variable, _)| is_opt || *variable != "TMPDIR")
        {
            let given = args.iter().any(|w| w == option);
            if let Some(value) = variables.get(variable).filter(|_| !given) {
                args.push(format!("{option}={value}").into());
            }
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_call_programs_are_commands() {
        let command = command("flambeau");
        for name in CALLING {
            assert!(command.find_subcommand(name).is_some(), "{name}");
            assert!(calls_programs(OsStr::new(name)));
        }
        assert!(!calls_programs(OsStr::new("opt")) && !calls_programs(OsStr::new("--version")));
    }
}
