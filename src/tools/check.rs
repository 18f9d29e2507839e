//! `flambeau check`: replays recorded cases and compares the answers.
//!
//! Each case runs from each form it carries that can stand alone; it passes if all of them do. A form's outcome
//! is `passed`, `wrong` (another answer than recorded), `unsupported` (a named feature or operator is missing),
//! `error` (anything else that failed, panics included) or `skipped`.

use super::case::{Case, Raises, compare, decode, encode};
pub use super::check_options::Options;
pub use super::check_outcome::{Form, Outcome, Status};
use super::check_strides::{Order, ordered};
use super::gradients::{self, Learned};
use super::io::{Io, Kept};
use super::load::{detach_parameters, is_model, load_archive_with, load_graph_with, load_source_with};
use super::prepare::{GuardOptions, StrategyOptions};
use super::progress::Progress;
use super::{check_aliases, check_model, check_passes, check_types, prepare, raises};
use crate::backends::cache::{self, Kind};
use crate::backends::{Backend, FusionReport};
use crate::diag::{Diagnostic, ErrorKind, Result, torch};
use crate::dialects::{Registry, Run, Strictness};
use crate::passes::Pipeline;
use crate::passes::manager::{Settings, StopAt};
use crate::resources::pool;
use crate::runtime::{PlanReport, Program, traceback};
use crate::toolkit::Toolkit;
use crate::tools::limits::LimitOptions;
use crate::value::Value;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

/// How a program is prepared and run, and what is checked afterwards.
pub struct Configuration {
    toolkit: Toolkit,
    device: Option<Arc<dyn Backend>>,
    passes: Option<Pipeline>,
    /// Which plans are made; None for none.
    planned: Option<StrategyOptions>,
    guards: GuardOptions,
    /// Whether small fusion groups get compiled backwards.
    small_gradients: bool,
    settings: Settings,
    each: bool,
    aliases: bool,
    audit: bool,
    types: bool,
    order: Order,
    seed: u64,
    grad: bool,
    limits: LimitOptions,
}

impl Configuration {
    /// With no passes, and nothing examined.
    fn new(toolkit: Toolkit) -> Configuration {
        Configuration {
            toolkit,
            device: None,
            passes: None,
            planned: None,
            guards: GuardOptions::default(),
            small_gradients: false,
            settings: Settings::default(),
            each: false,
            aliases: false,
            audit: false,
            types: false,
            order: Order::Recorded,
            seed: 0,
            grad: false,
            limits: LimitOptions::default(),
        }
    }

    /// With a pipeline of the toolkit's passes, and nothing else.
    pub fn with_passes(toolkit: &Toolkit, pipeline: &str) -> Result<Configuration> {
        let passes = Some(toolkit.parse_pipeline(pipeline)?);
        Ok(Configuration { passes, ..Configuration::new(toolkit.clone()) })
    }

    /// The same with plans, of which a guard misses though it holds.
    pub fn failing_guard(self, number: usize) -> Configuration {
        Configuration {
            planned: Some(StrategyOptions::default()),
            guards: GuardOptions::failing(number),
            ..self
        }
    }

    fn of(options: &Options, io: &mut Io<'_>) -> Result<Configuration> {
        let pipeline = |io: &mut Io<'_>| options.numerics.checked_pipeline(&options.passes, io).map(Some);
        let passes = if options.passes.is_empty() { None } else { pipeline(io)? };
        let verify = options.verify_each.then(Strictness::default);
        // Cases run side by side; each takes one thread for its passes.
        let settings = Settings { threads: 1, verify, ..Settings::default() };
        let Options { check_each: each, aliases, audit, types, order, seed, grad, .. } = *options;
        let limits = options.limits.clone();
        let toolkit = io.toolkit_with(&options.dialect)?;
        let planned = options.plans.strategy(&options.passes);
        if types {
            check_types::need_plans(planned.is_some())?;
        }
        let (small_gradients, guards) = (options.small_gradients, options.guards);
        Ok(Configuration {
            toolkit,
            device: options.device.open(io)?,
            passes,
            planned,
            guards,
            small_gradients,
            settings,
            each,
            aliases,
            audit,
            types,
            order,
            seed,
            grad,
            limits,
        })
    }

    /// The same up to the n-th pass, with its name.
    fn prefixes(&self) -> Vec<(&'static str, Configuration)> {
        let Some(passes) = self.passes.as_ref().filter(|_| self.each) else { return Vec::new() };
        let prefix = |n: usize| Configuration {
            toolkit: self.toolkit.clone(),
            device: self.device.clone(),
            passes: Some(passes.clone()),
            settings: Settings { stop: Some(StopAt { index: n + 1, steps: 0 }), ..self.settings.clone() },
            each: false,
            planned: None,
            limits: self.limits.clone(),
            ..*self
        };
        passes.names().into_iter().enumerate().map(|(n, name)| (name, prefix(n))).collect()
    }

    /// The program with the passes on.
    fn apply(&self, program: Program, case: &Case) -> Result<Program> {
        let program = prepare::placed(program, self.device.as_ref());
        let Some(passes) = &self.passes else { return Ok(self.guards.apply(program)) };
        let Settings { roots, .. } = prepare::called(&program, &case.entry);
        let settings = Settings { roots, ..self.settings.clone() };
        let program = prepare::transformed(&program, passes, settings, &case.name, &mut std::io::sink())?;
        let program = if self.small_gradients { program.differentiating_from(0) } else { program };
        Ok(self.guards.apply(match self.planned {
            Some(strategy) => strategy.planned(program),
            None => program,
        }))
    }
}

/// Runs the command; gives whether no case failed.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    options.threads.set();
    options.plan_cache.set(io);
    let (mut cases, mut graphs) = (Vec::new(), Vec::new());
    let reading = options.limits.watch();
    let (mut folders, mut models_hold) = (Vec::new(), true);
    let files: Vec<PathBuf> = options.files.iter().map(|file| io.path(file)).collect();
    let (models, files): (Vec<PathBuf>, Vec<PathBuf>) = files.into_iter().partition(|file| is_model(file));
    for file in &models {
        models_hold &= check_model::run(options, file, io)?;
    }
    if files.is_empty() {
        return Ok(models_hold);
    }
    if options.inputs.any() {
        let error = Diagnostic::usage("recorded cases have inputs of their own");
        return Err(error.hint("--input and --args are for models"));
    }
    for file in &files {
        match check_passes::read(file)? {
            Some(found) => graphs.extend(found),
            None => {
                if file.is_dir() {
                    folders.push((cases.len(), file.clone()));
                }
                cases.extend(Case::read_all(file)?);
            }
        }
    }
    if options.ops && folders.is_empty() {
        let error = Diagnostic::usage("--ops needs a folder that records the values of ops");
        return Err(error.hint("examples/record.py MODEL FOLDER --ops writes one"));
    }
    if let Some(text) = &options.filter {
        folders.clear();
        cases.retain(|case| case.name.contains(text.as_str()));
        graphs.retain(|case| case.name.contains(text.as_str()));
    }
    let configuration = Configuration::of(options, io)?;
    let threads = options.jobs.filter(|n| *n > 0).unwrap_or_else(|| options.threads.count());
    drop(reading);
    let _watched = options.limits.watch_memory_of(threads.min(cases.len() + graphs.len()));
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let progress = Progress::new("check", cases.len(), io);
    let outcomes: Vec<Vec<Outcome>> = pool::jobs(threads, STACK_BYTES, cases.len(), |n| {
        progress.about(&cases[n].name);
        let outcomes = check_case_with(&cases[n], options.from, &configuration);
        progress.step();
        outcomes
    });
    progress.end();
    let passes =
        check_passes::check(&graphs, threads, STACK_BYTES, (&configuration.toolkit, &options.limits));
    std::panic::set_hook(hook);
    let mut ops_hold = true;
    for (n, folder) in &folders {
        let (Some(case), Some(forms)) = (cases.get(*n), outcomes.get(*n)) else { continue };
        ops_hold &= check_model::folder(options, folder, case, forms, configuration.toolkit.registry(), io)?;
    }
    let text = if options.json {
        json_report(&cases, &outcomes) + &json_passes(&passes)
    } else {
        report(&cases, &outcomes, &passes, options)
    };
    io.print(&text);
    Ok(models_hold
        && ops_hold
        && outcomes
            .iter()
            .map(|forms| verdict(forms))
            .chain(passes.iter().map(|o| o.status))
            .all(|s| !is_failure(s)))
}

/// Stack of a worker: cases nest as deep as programs do.
const STACK_BYTES: usize = 64 << 20;

fn is_failure(status: Status) -> bool {
    !matches!(status, Status::Passed | Status::Skipped)
}

/// A case is as good as its worst form.
fn verdict(forms: &[Outcome]) -> Status {
    forms.iter().map(|o| o.status).max().unwrap_or(Status::Skipped)
}

fn report(
    cases: &[Case],
    outcomes: &[Vec<Outcome>],
    passes: &[check_passes::Outcome],
    options: &Options,
) -> String {
    let mut text = String::new();
    for outcome in passes.iter().filter(|o| is_failure(o.status)) {
        if !options.wrong_only || outcome.status == Status::Wrong {
            let message = outcome.message.trim().replace('\n', "\n    ");
            let _ =
                writeln!(text, "{} {} ({}): {message}", outcome.status.name(), outcome.case, outcome.pass);
        }
    }
    if !passes.is_empty() {
        text.push_str(&check_passes::table(passes));
    }
    for (case, forms) in cases.iter().zip(outcomes) {
        for outcome in forms.iter().filter(|o| is_failure(o.status)) {
            if options.wrong_only && outcome.status != Status::Wrong {
                continue;
            }
            let message = outcome.message.trim().replace('\n', "\n    ");
            let _ = writeln!(
                text,
                "{} {} ({}): {message}",
                outcome.status.name(),
                case.name,
                outcome.form.name()
            );
        }
    }
    if let Some(number) = options.guards.number() {
        let misses: Vec<u64> = outcomes.iter().flatten().map(|outcome| outcome.plans.forced_misses).collect();
        let (all, asked) = (misses.len(), misses.iter().filter(|misses| **misses > 0).count());
        let _ = writeln!(text, "guard {number} was made to miss in {asked} of {all} forms");
    }
    if options.plan_cache.is_set() {
        let taken = outcomes.iter().flatten().filter(|outcome| outcome.plans.from_disk > 0).count();
        let _ = writeln!(text, "plans of {taken} forms were in the cache");
        let modules = cache::installed(Kind::Modules).map_or(0, |cache| cache.report().loaded);
        let _ = writeln!(text, "{modules} modules were in the cache");
    }
    let verdicts: Vec<Status> =
        outcomes.iter().map(|forms| verdict(forms)).chain(passes.iter().map(|o| o.status)).collect();
    let count = |status| verdicts.iter().filter(|v| **v == status).count();
    let (wrong, unsupported, errors) =
        (count(Status::Wrong), count(Status::Unsupported), count(Status::Error));
    let _ = writeln!(text, "failed: {wrong} wrong, {unsupported} unsupported, {errors} errors");
    let _ = writeln!(
        text,
        "{} passed, {} failed, {} skipped",
        count(Status::Passed),
        wrong + unsupported + errors,
        count(Status::Skipped)
    );
    text
}

fn json_passes(passes: &[check_passes::Outcome]) -> String {
    let line = |o: &check_passes::Outcome| {
        format!(
            "{}\n",
            json!({"name": o.case, "pass": o.pass, "status": o.status.name(), "message": o.message})
        )
    };
    passes.iter().map(line).collect()
}

fn json_report(cases: &[Case], outcomes: &[Vec<Outcome>]) -> String {
    let mut text = String::new();
    for (case, forms) in cases.iter().zip(outcomes) {
        for outcome in forms {
            let mut line = json!({
                "name": case.name,
                "form": outcome.form.name(),
                "status": outcome.status.name(),
                "args_after": outcome.args_after,
                "stdout": outcome.stdout,
            });
            if let Some(returns) = &outcome.returns {
                line["returns"] = returns.clone();
            }
            if let Some(raises) = &outcome.raises {
                line["raises"] = raises.to_json();
            }
            outcome.learned.write(&mut line);
            if outcome.plans != PlanReport::default() {
                line["plans"] = plans_json(&outcome.plans);
            }
            if outcome.fusion.groups > 0 {
                line["fusion"] = fusion_json(&outcome.fusion);
            }
            if !outcome.message.is_empty() {
                line["message"] = json!(outcome.message);
            }
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// What became of the calls of programs with plans, as reports of `check` and `bench` show it.
pub(super) fn plans_json(report: &PlanReport) -> Json {
    json!({
        "built": report.built,
        "build_us": report.build_time.as_secs_f64() * 1e6,
        "hits": report.hits,
        "misses": report.misses,
        "outdated": report.outdated,
        "evicted": report.evicted,
        "recording": report.recording,
        "open": report.open,
        "from_disk": report.from_disk,
        "not_put_on_disk": report.unkept,
        "kept_bytes": report.kept_bytes,
        "packed": report.packed,
        "shared_packs": report.shared_packs,
        "forced_misses": report.forced_misses,
        "unplanned_calls": report.unplanned_calls(),
        "unplanned": report.unplanned,
    })
}

/// What became of fusion groups, as reports of `check` and `bench` show it.
pub(super) fn fusion_json(report: &FusionReport) -> Json {
    json!({
        "groups": report.groups,
        "kernels": report.kernels,
        "cached": report.cached,
        "refused": report.refused,
        "fused_calls": report.fused_calls,
        "small_calls": report.small_calls,
        "op_by_op_calls": report.op_by_op_calls(),
        "op_by_op": report.op_by_op,
        "loops": {
            "compiled": report.loops.compiled,
            "done": report.loops.done,
            "left": report.loops.left,
            "refused": report.loops.refused,
        },
    })
}

impl Status {
    /// As reports show it.
    pub fn name(self) -> &'static str {
        match self {
            Status::Skipped => "skipped",
            Status::Passed => "passed",
            Status::Unsupported => "unsupported",
            Status::Error => "error",
            Status::Wrong => "wrong",
        }
    }
}

impl Form {
    /// As reports show it.
    pub fn name(self) -> &'static str {
        match self {
            Form::Pt => "pt",
            Form::Source => "source",
            Form::Graph => "graph",
        }
    }
}

/// Runs a case from each form it carries, or from one.
pub fn check_case_with(case: &Case, from: Option<Form>, configuration: &Configuration) -> Vec<Outcome> {
    [Form::Pt, Form::Source, Form::Graph]
        .into_iter()
        .filter(|form| from.is_none_or(|f| f == *form) && carries(case, *form))
        .map(|form| check_each(case, form, configuration))
        .collect()
}

/// Checks a form after each pass, if that is asked for, and at the end.
fn check_each(case: &Case, form: Form, configuration: &Configuration) -> Outcome {
    for (n, (name, prefix)) in configuration.prefixes().into_iter().enumerate() {
        let mut outcome = check_form(case, form, &prefix);
        if is_failure(outcome.status) {
            outcome.message = format!("after pass {} ({name}): {}", n + 1, outcome.message);
            return outcome;
        }
    }
    check_form(case, form, configuration)
}

fn carries(case: &Case, form: Form) -> bool {
    match form {
        Form::Pt => case.archive.is_some(),
        Form::Source => case.source.is_some(),
        Form::Graph => case.graph.is_some(),
    }
}

/// Why a form cannot run without what is not in it.
fn leans_on(case: &Case, form: Form) -> Option<&'static str> {
    match form {
        Form::Pt => None,
        // Cases without `how` give source only where it is TorchScript.
        Form::Source => {
            let alone = case.how.as_deref().is_none_or(|how| how == "source");
            (!alone).then_some("the source is Python, not TorchScript")
        }
        Form::Graph => {
            let text = case.graph.as_deref().unwrap_or("");
            let needs = |words: &[&str]| words.iter().any(|w| text.contains(w));
            if needs(&[" : __torch__.", " : ClassType"]) {
                Some("the graph takes or makes objects of classes that it does not define")
            } else if needs(&["=<Tensor>", "={"]) {
                Some("the graph's tensor constants are elided")
            } else if needs(&[
                "prim::CallFunction",
                "prim::CallMethod",
                "prim::CreateObject",
                "Function = prim::",
            ]) {
                Some("the graph calls functions that it does not define")
            } else if needs(&["Enum<", "Interface"]) {
                Some("the graph uses classes that it does not define")
            } else {
                None
            }
        }
    }
}

/// How far a form came.
enum Answer {
    /// The program, which should have been refused, compiled.
    Compiled,
    Returned(Value),
    Failed {
        when: &'static str,
        error: Diagnostic,
    },
}

fn check_form(case: &Case, form: Form, configuration: &Configuration) -> Outcome {
    let mut outcome = Outcome {
        form,
        status: Status::Skipped,
        message: String::new(),
        returns: None,
        raises: None,
        args_after: Vec::new(),
        stdout: String::new(),
        fusion: FusionReport::default(),
        plans: PlanReport::default(),
        learned: Learned::default(),
    };
    if let Some(reason) = leans_on(case, form) {
        outcome.message = reason.to_string();
        return outcome;
    }
    let _watched = configuration.limits.watch_case();
    let output = Kept::default();
    let mut reports = (FusionReport::default(), PlanReport::default());
    let run = catch_unwind(AssertUnwindSafe(|| {
        let given = case.args.iter().map(|arg| ordered(decode(arg)?, configuration.order));
        let args = given.collect::<Result<Vec<Value>>>()?;
        let mut learned = Learned::default();
        let answer = answer(case, form, &args, &output, configuration, (&mut reports, &mut learned))?;
        Ok::<_, Diagnostic>((answer, args, learned))
    }));
    (outcome.fusion, outcome.plans) = reports;
    outcome.stdout = String::from_utf8_lossy(&output.take()).into_owned();
    match run {
        Err(panic) => {
            outcome.status = Status::Error;
            outcome.message = format!("panic: {}", panic_text(&*panic));
        }
        Ok(Err(error)) => (outcome.status, outcome.message) = failure(&error),
        Ok(Ok((answer, args, learned))) => {
            outcome.learned = learned;
            outcome.args_after = args.iter().filter_map(|v| encode(v).ok()).collect();
            compare_answer(case, form, answer, &args, &mut outcome);
        }
    }
    outcome
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message").to_string()
}

fn answer(
    case: &Case,
    form: Form,
    args: &[Value],
    output: &Kept,
    configuration: &Configuration,
    (reports, learned): (&mut (FusionReport, PlanReport), &mut Learned),
) -> Result<Answer> {
    let run = configuration.limits.run(Box::new(output.clone()));
    let _bounded = run.install();
    run.set_audits(configuration.audit);
    run.seed(configuration.seed);
    let program = match load(case, form, &run, configuration.toolkit.registry()) {
        Ok(program) => program,
        Err(error) => return Ok(Answer::Failed { when: "compile", error }),
    };
    if case.raises.as_ref().is_some_and(|r| r.when == "compile") {
        return Ok(Answer::Compiled);
    }
    if !configuration.grad && !case.differentiates {
        detach_parameters(&program);
    }
    let program = configuration.apply(program, case)?;
    run.seed(configuration.seed);
    if case.train.is_some() {
        *learned = gradients::train(case, &program, &run)?;
        *reports = learned.reports.take().unwrap_or_default();
        return Ok(Answer::Returned(Value::None));
    }
    let before = configuration.aliases.then(|| check_aliases::Before::of(args));
    let wrt = gradients::prepare(case, &program, args)?;
    let given = configuration.types.then(|| check_types::Given::watch(&run));
    let result = program.run(&case.entry, args.to_vec(), &run);
    if let Ok(value) = &result {
        *learned = gradients::backward(case, &program, value, &wrt, &run)?;
    }
    *reports = (program.fusion_report(), program.plan_report());
    if let Some(given) = given {
        given.compare(&program)?;
    }
    Ok(match result {
        Ok(value) => {
            // Python, for which answers are recorded, takes text from the program as UTF-8.
            if let Err(error) = encode(&value)
                && error.kind() == ErrorKind::Raised
            {
                return Ok(Answer::Failed { when: "run", error });
            }
            if let Some(before) = before {
                before.compare(&program, &case.entry, args, &value)?;
            }
            Answer::Returned(value)
        }
        Err(error) => Answer::Failed { when: "run", error },
    })
}

fn load(case: &Case, form: Form, run: &Run, registry: &Arc<Registry>) -> Result<Program> {
    match form {
        Form::Pt => load_archive_with(case.archive.clone().unwrap_or_default(), run, registry),
        Form::Source => {
            let source = case.source.as_deref().unwrap_or("");
            let whole = if case.differentiates { gradients::from_python(source) } else { source.to_string() };
            load_source_with("<string>", &whole, registry)
        }
        Form::Graph => load_graph_with("graph", case.graph.as_deref().unwrap_or(""), &case.entry, registry),
    }
}

fn failure(error: &Diagnostic) -> (Status, String) {
    let status = if error.kind() == ErrorKind::Unsupported { Status::Unsupported } else { Status::Error };
    let notes: String = error.report().notes.iter().map(|n| format!("\n{n}")).collect();
    (status, format!("{error}{notes}"))
}

/// Compares what happened with what was recorded.
fn compare_answer(case: &Case, form: Form, answer: Answer, args: &[Value], outcome: &mut Outcome) {
    let verdict = match answer {
        Answer::Compiled => Err("expected the program to be refused, but it compiles".to_string()),
        Answer::Returned(value) => {
            outcome.returns = encode(&value).ok();
            match (&case.returns, &case.raises) {
                (Some(expected), _) => compare(expected, &value, case.tolerance)
                    .and_then(|()| compare_arguments(case, args))
                    .and_then(|()| compare_output(case, outcome))
                    .and_then(|()| outcome.learned.compare(case)),
                (None, Some(raises)) => Err(format!("expected {} to be raised, got an answer", raises.class)),
                (None, None) => outcome.learned.compare(case),
            }
        }
        Answer::Failed { error, .. } if is_missing(form, &error) => {
            (outcome.status, outcome.message) = (Status::Unsupported, failure(&error).1);
            return;
        }
        Answer::Failed { when, error } => {
            let raised = raised(when, &error);
            outcome.raises = Some(raised.clone());
            match &case.raises {
                Some(expected) => raises::compare(expected, &raised, form == Form::Graph)
                    .and_then(|()| compare_output(case, outcome)),
                None => {
                    (outcome.status, outcome.message) = failure(&error);
                    return;
                }
            }
        }
    };
    (outcome.status, outcome.message) = match verdict {
        Ok(()) => (Status::Passed, String::new()),
        Err(message) => (Status::Wrong, message),
    };
}

/// Whether a failure means that something is not there. In an archive, which PyTorch once compiled, an unknown
/// operator is one that is missing here.
fn is_missing(form: Form, error: &Diagnostic) -> bool {
    error.kind() == ErrorKind::Unsupported
        || (form == Form::Pt && error.message().starts_with("Unknown builtin op"))
}

/// A failure as Python would see it.
fn raised(when: &str, error: &Diagnostic) -> Raises {
    let (class, message) = if error.kind() == ErrorKind::Raised {
        traceback::python(error)
    } else {
        let class = error.report().class.clone().unwrap_or_else(|| "RuntimeError".to_string());
        (class, torch::render(error))
    };
    Raises { when: when.to_string(), class, message }
}

fn compare_arguments(case: &Case, args: &[Value]) -> std::result::Result<(), String> {
    // Where nothing is recorded, nothing is known: operator samples were recorded on copies.
    let Some(expected) = &case.args_after else { return Ok(()) };
    for (n, (expected, actual)) in expected.iter().zip(args).enumerate() {
        compare(expected, actual, case.tolerance).map_err(|e| format!("argument {n} after the call: {e}"))?;
    }
    Ok(())
}

fn compare_output(case: &Case, outcome: &Outcome) -> std::result::Result<(), String> {
    let expected = case.stdout.as_deref().unwrap_or("");
    if expected == outcome.stdout {
        return Ok(());
    }
    Err(format!("expected to print {expected:?}, printed {:?}", outcome.stdout))
}
