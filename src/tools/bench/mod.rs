//! `flambeau bench`: times models and the programs of case files: loading, the first call, and calls once warm; on several
//! numbers of threads and batch sizes, beside a baseline, op by op.

mod measure;
mod options;
mod profile;
mod report;
mod rewrite;
mod subject;

use super::check::{fusion_json, plans_json};
use super::io::Io;
use super::making;
use super::progress::Progress;
use crate::diag::{Diagnostic, ErrorKind, Result, render};
use crate::resources::pool;
use options::What;
use report::Line;
use serde_json::json;
use std::path::PathBuf;
use subject::{Setting, Subject};

pub use options::Options;

/// Runs the command. Gives whether everything could be timed.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    if let Some(What::Rewrite(options)) = &options.what {
        return rewrite::run(options, io);
    }
    options.cache.set(io);
    let subjects = subject::all(options, io)?;
    let settings = settings(options);
    let is_traced = options.trace.is_some() || options.profile.as_ref().is_some_and(Option::is_some);
    if is_traced && subjects.len() * settings.len() != 1 {
        let error = Diagnostic::usage("one trace is written for one model on one number of threads");
        return Err(error.hint("--profile without a file shows tables for each"));
    }
    let progress = Progress::new("bench", subjects.len() * settings.len(), io);
    let (mut lines, mut all_ran) = (Vec::new(), true);
    for subject in &subjects {
        for setting in &settings {
            progress.about(&subject.name);
            match one(options, subject, *setting, io) {
                Ok(line) => {
                    if options.json {
                        progress.hidden(|| io.print(&format!("{}\n", line.to_json())));
                    }
                    lines.push(line);
                }
                Err(error) if error.kind() == ErrorKind::Usage => return Err(error),
                Err(error) => {
                    all_ran = false;
                    progress.hidden(|| match options.json {
                        true => {
                            let line = json!({"name": subject.name, "error": error.to_string()});
                            io.print(&format!("{line}\n"));
                        }
                        // Errors of loading name the file themselves.
                        false if error.message().starts_with(&subject.name) => {
                            io.message(&render::human(&error));
                        }
                        false => io.message(&format!("{}: {}", subject.name, render::human(&error))),
                    });
                }
            }
            progress.step();
        }
    }
    progress.end();
    if !options.json && !lines.is_empty() {
        io.print(&report::table(&lines));
    }
    for line in &lines {
        if let Some(profile) = &line.profile
            && !options.json
        {
            io.print(&format!("\n{}", profile.tables()));
        }
    }
    write_files(options, &lines, io)?;
    Ok(all_ran)
}

/// The numbers of threads and batches, one after the other.
fn settings(options: &Options) -> Vec<Setting> {
    let threads = if options.threads.is_empty() { vec![0] } else { options.threads.clone() };
    let batches: Vec<Option<i64>> = match options.batch.as_slice() {
        [] => vec![None],
        batches => batches.iter().copied().map(Some).collect(),
    };
    let all = threads.iter().flat_map(|threads| batches.iter().map(|batch| (*threads, *batch)));
    all.map(|(threads, batch)| Setting { threads, batch }).collect()
}

/// Times one program in one setting.
fn one(options: &Options, subject: &Subject, setting: Setting, io: &mut Io<'_>) -> Result<Line> {
    pool::set_threads(setting.threads);
    let _watched = options.limits.watch();
    let run = options.limits.silent();
    let _bounded = run.install();
    run.set_grad_enabled(options.grad);
    run.seed(options.seed);
    let pipeline = options.numerics.checked_pipeline(&options.passes, io)?;
    let peak = measure::Peak::begin();
    let ready = subject.prepare(options, &pipeline, (setting, &options.passes), &run, io)?;
    run.set_plans_in_background(options.plans_in_background);
    let first = ready.call(&run)?;
    ready.program.finish_plans();
    let times = match &options.baseline {
        None => measure::times(options, &ready, &run)?,
        Some(baseline) => {
            let other = subject.baseline(options, baseline, setting, &run, io)?;
            other.call(&run)?;
            measure::in_turn(options, &ready, &other, &run)?
        }
    };
    let peak = peak.end();
    let profile = match &options.profile {
        // That of a file names ops of the program's functions, which `translate` shows with their times.
        Some(file) => Some(profile::take(options, &ready, &run, file.is_none())?),
        None => None,
    };
    let trace = match &options.trace {
        Some(_) => Some(profile::take(options, &ready, &run, true)?),
        None => None,
    };
    Ok(Line {
        name: subject.name.clone(),
        threads: if setting.threads == 0 { pool::threads() } else { setting.threads },
        batch: setting.batch,
        inputs: ready.described.clone(),
        load: ready.load,
        first,
        times,
        peak,
        plans: plans_json(&ready.program.plan_report()),
        making: making::json(&ready.program),
        fusion: fusion_json(&ready.program.fusion_report()),
        profile,
        trace,
    })
}

fn write_files(options: &Options, lines: &[Line], io: &mut Io<'_>) -> Result<()> {
    let write = |file: &PathBuf, text: String, io: &Io<'_>| {
        std::fs::write(io.path(file), text).map_err(|e| Diagnostic::input(format!("{}: {e}", file.display())))
    };
    if let Some(file) = &options.svg {
        write(file, report::svg(lines), io)?;
    }
    let Some(line) = lines.first() else { return Ok(()) };
    let heat = options.profile.as_ref().and_then(Option::as_ref);
    for (file, profile) in [(heat, &line.profile), (options.trace.as_ref(), &line.trace)] {
        if let (Some(file), Some(profile)) = (file, profile) {
            write(file, profile.trace(), io)?;
            io.message(&format!("{}: a trace for ui.perfetto.dev\n", file.display()));
        }
    }
    Ok(())
}
