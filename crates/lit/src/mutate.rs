//! `--mutate`: does a check see it when a tool leaves out part of its work?
//!
//! A knob is an option with `{}` in it that says how much a tool may do, as `-opt-bisect-limit={}` of LLVM's `opt`. Each command
//! of a `RUN:` line that has knobs runs with each of them at 0, 1, 2 and so on, until its output is the usual one. A number
//! whose output differs and whose checks hold all the same is a mutant that no check sees. Knows no tool.

use super::conditions::closed;
use super::config::{Config, Knobs};
use super::discover::Test;
use super::script::{self, LineKind, MAX_TEST, Script};
use super::shell::{Broken, Shell};
use super::surroundings::{shell, substitutions, temp_folder};
use super::syntax::{self, Command, Pipeline, Word};
use super::workers;
use flambeau_files as files;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Largest number that a knob is set to.
const MOST: usize = 64;

/// What was tried of a test.
#[derive(Default)]
struct Report {
    mutants: usize,
    /// Commands with knobs whose output no check reads in the same line, or is another one each time.
    unread: usize,
    /// Those that no check sees: line and option.
    unseen: Vec<(usize, String)>,
    /// Those that the test itself allows.
    allowed: usize,
    /// What it allows though its checks see it, or nothing is there to see.
    stale: Vec<String>,
    problem: Option<String>,
}

/// Knobs of one tool, as the command line names them: `opt:-opt-bisect-limit={}`.
pub(super) fn knobs(name: &str, text: &str) -> Result<Knobs, String> {
    let usage = || format!("{name} wants TOOL:OPTION with a {{}} in the option, not '{text}'");
    let (tool, option) =
        text.split_once(':').filter(|(_, option)| option.contains("{}")).ok_or_else(usage)?;
    let (tool, option) = (tool.to_string(), option.to_string());
    Ok(Arc::new(move |words: &[String]| {
        let name = words.first().map(String::as_str).unwrap_or_default();
        let is_it = Path::new(name).file_name().is_some_and(|name| *name == *tool);
        if is_it { vec![option.clone()] } else { Vec::new() }
    }))
}

/// Tries all mutants of all tests and reports those that no check sees; returns whether there are none.
pub(super) fn run(
    tests: &[Test],
    threads: usize,
    knobs: &Knobs,
    config: &Config,
    out: &mut (dyn Write + Send),
) -> std::io::Result<bool> {
    files::create_private(&config.temp)?;
    let _temp = files::Temporary::of(config.temp.clone());
    let reports: Vec<Mutex<Report>> = tests.iter().map(|_| Mutex::default()).collect();
    workers::each(threads, tests.len(), |n| {
        let report = of_test(&tests[n], knobs);
        *reports[n].lock().unwrap_or_else(PoisonError::into_inner) = report;
    });
    let (mut mutants, mut unseen, mut unread, mut allowed, mut stale, mut mutated) = (0, 0, 0, 0, 0, 0);
    for (test, report) in tests.iter().zip(reports) {
        let report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (line, option) in &report.unseen {
            writeln!(out, "{}:{line}: no check sees {option}", test.path.display())?;
        }
        for option in &report.stale {
            writeln!(out, "{}: ALLOW_UNSEEN: {option} allows nothing", test.path.display())?;
        }
        stale += report.stale.len();
        if let Some(problem) = &report.problem {
            writeln!(out, "{}: not mutated: {problem}", test.path.display())?;
        }
        mutants += report.mutants;
        unseen += report.unseen.len();
        unread += report.unread;
        allowed += report.allowed;
        mutated += usize::from(report.mutants > 0);
    }
    writeln!(
        out,
        "{mutants} mutants in {mutated} of {} tests: {unseen} unseen, {allowed} allowed",
        tests.len()
    )?;
    if unread > 0 {
        writeln!(
            out,
            "{unread} commands with knobs were left out: no FileCheck reads their output in the same line, or it is never the same"
        )?;
    }
    Ok(unseen + stale == 0)
}

fn of_test(test: &Test, knobs: &Knobs) -> Report {
    let mut report = Report::default();
    if let Err(problem) = try_test(test, knobs, &mut report) {
        report.problem = Some(problem);
    }
    report
}

fn try_test(test: &Test, knobs: &Knobs, report: &mut Report) -> Result<(), String> {
    let path = std::path::absolute(&test.path).map_err(|error| error.to_string())?;
    let text = files::read(&path, MAX_TEST).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let script: Script = script::parse(&text)?;
    if test.config.unsupported || closed(&script, &test.config)?.is_some() {
        return Ok(());
    }
    let temp = temp_folder(&path, &test.config);
    std::fs::create_dir_all(&temp).map_err(|error| format!("{}: {error}", temp.display()))?;
    let mut all = substitutions(&path, &test.config);
    let mut shell = shell(&path, &test.config);
    let mut allowances: Vec<(&str, bool)> =
        allowed(&text).into_iter().map(|option| (option, false)).collect();
    // By option: the first line that it changes, and whether some line of the test sees it.
    let mut mutants: BTreeMap<String, (usize, bool)> = BTreeMap::new();
    for line in &script.lines {
        if line.kind != LineKind::Run {
            all.define(line)?;
            continue;
        }
        for pipeline in syntax::parse(&all.expand(&line.text, &test.config.features)?)? {
            for (option, is_seen) in try_pipeline(&mut shell, &pipeline, knobs, report).map_err(message)? {
                let known = mutants.entry(option).or_insert((line.line, false));
                known.1 |= is_seen;
            }
            shell.log.clear();
        }
    }
    report.mutants = mutants.len();
    for (option, (line, _)) in mutants.into_iter().filter(|(_, (_, is_seen))| !is_seen) {
        let is_allowed = |allowed: &str| {
            option.strip_prefix(allowed).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        let mut is_known = false;
        for (allowed, is_needed) in &mut allowances {
            if is_allowed(allowed) {
                (*is_needed, is_known) = (true, true);
            }
        }
        match is_known {
            true => report.allowed += 1,
            false => report.unseen.push((line, option)),
        }
    }
    let stale = allowances.into_iter().filter(|(_, is_needed)| !is_needed);
    report.stale = stale.map(|(option, _)| option.to_string()).collect();
    Ok(())
}

/// Why a line could not be run.
pub(super) fn message(broken: Broken) -> String {
    match broken {
        Broken::TimedOut => "reached the time limit".to_string(),
        Broken::Bad(error) | Broken::Refused(error) => error,
    }
}

fn word(text: String) -> Word {
    Word { text, glob: false }
}

/// The knobs of a command.
fn of_command(command: &Command, knobs: &Knobs) -> Vec<String> {
    knobs(&command.words.iter().map(|word| word.text.clone()).collect::<Vec<_>>())
}

/// The same commands with all of their work left out; none if no command has a knob.
pub(super) fn idle(commands: &[Command], knobs: &Knobs) -> Option<Vec<Command>> {
    let mut idle = commands.to_vec();
    let mut has_any = false;
    for command in &mut idle {
        let own = of_command(command, knobs);
        has_any |= !own.is_empty();
        command.words.extend(own.into_iter().map(|knob| word(knob.replace("{}", "0"))));
    }
    has_any.then_some(idle)
}

/// The options that lines `ALLOW_UNSEEN: OPTION why` name, with or without the number.
fn allowed(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_once("ALLOW_UNSEEN:")?.1.split_whitespace().next()).collect()
}

/// Runs a pipe as it stands, whose files others may need, and then its mutants; gives for each whether its checks see it.
fn try_pipeline(
    shell: &mut Shell<'_>,
    pipeline: &Pipeline,
    knobs: &Knobs,
    report: &mut Report,
) -> Result<Vec<(String, bool)>, Broken> {
    let usual = shell.run(std::slice::from_ref(pipeline))?;
    let of_commands: Vec<(usize, String)> = pipeline
        .commands
        .iter()
        .enumerate()
        .flat_map(|(n, command)| of_command(command, knobs).into_iter().map(move |knob| (n, knob)))
        .collect();
    if of_commands.is_empty() || usual != 0 {
        return Ok(Vec::new());
    }
    let is_check =
        |command: &Command| command.words.first().is_some_and(|word| word.text.ends_with("FileCheck"));
    let Some((_, before)) = pipeline.commands.split_last().filter(|(last, _)| is_check(last)) else {
        report.unread += 1;
        return Ok(Vec::new());
    };
    let usual = shell.output_of(before)?;
    // Times and addresses are never the same, whatever a tool does.
    if shell.output_of(before)? != usual {
        report.unread += 1;
        return Ok(Vec::new());
    }
    let mut mutants = Vec::new();
    for (at, knob) in of_commands {
        for number in 0..MOST {
            let option = knob.replace("{}", &number.to_string());
            let mut mutant = pipeline.clone();
            if let Some(command) = mutant.commands.get_mut(at) {
                command.words.push(word(option.clone()));
            }
            let before = mutant.commands.split_last().map(|(_, before)| before).unwrap_or_default();
            if shell.output_of(before)? == usual {
                break;
            }
            let is_seen = shell.run(std::slice::from_ref(&mutant))? != 0;
            mutants.push((option, is_seen));
        }
    }
    Ok(mutants)
}
