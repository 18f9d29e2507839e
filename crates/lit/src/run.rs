//! Runs one test: its lines, again where it may fail at first, and once more where its checks were rewritten. Which tests
//! there are is not its concern.

use super::conditions::{closed, fails};
use super::config::Config;
use super::outcome::{Outcome, Status};
use super::script::{self, LineKind, MAX_TEST, Script};
use super::shell::{Broken, Shell};
use super::surroundings::{shell, substitutions, temp_folder};
use super::syntax::{self, Pipeline};
use super::{exec, update};
use flambeau_files as files;
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs one test file.
pub fn run_file(path: &Path, config: &Config) -> Outcome {
    let start = Instant::now();
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut outcome = run_here(&path, config);
    outcome.elapsed = start.elapsed();
    outcome
}

fn run_here(path: &Path, config: &Config) -> Outcome {
    if config.unsupported {
        return Outcome::of(Status::Unsupported, "Test is unsupported");
    }
    let text = match files::read(path, MAX_TEST) {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) => return Outcome::of(Status::Unresolved, format!("{}: {error}", path.display())),
    };
    let parsed = if config.preamble.is_empty() { script::parse(&text) } else { script::parse_any(&text) };
    let script = match parsed {
        Ok(script) => script,
        Err(error) => return Outcome::of(Status::Unresolved, error),
    };
    let broken = |error: String| {
        Outcome::of(
            Status::Unresolved,
            format!("Exception during script execution:\nValueError: {error}\n\n"),
        )
    };
    match closed(&script, config) {
        Err(error) => return broken(error),
        Ok(Some(reason)) => return Outcome::of(Status::Unsupported, reason),
        Ok(None) => {}
    }
    let mut outcome = match run_script(path, &script, config) {
        Ok(outcome) => outcome,
        Err(error) => return broken(error),
    };
    if outcome.status == Status::Fail && config.update && !fails(&script, config).unwrap_or(false) {
        outcome = match rewritten(path, text, &script, config, outcome) {
            Ok(outcome) => outcome,
            Err(error) => return broken(error),
        };
    }
    match fails(&script, config) {
        Err(error) => return Outcome::of(Status::Unresolved, error),
        Ok(true) if outcome.status == Status::Fail => outcome.status = Status::ExpectedFail,
        Ok(true) if outcome.status == Status::Pass => outcome.status = Status::UnexpectedPass,
        Ok(_) => {}
    }
    outcome
}

/// Rewrites the checks of a test that failed and runs it again. New checks may move the lines that a tool names in its output; the
/// second rewrite does not change their number.
fn rewritten(
    path: &Path,
    text: String,
    script: &Script,
    config: &Config,
    mut outcome: Outcome,
) -> Result<Outcome, String> {
    const MOST: usize = 2;
    let mut text = text;
    for _ in 0..MOST {
        match update::update(path, &text, script, config) {
            Ok(true) => {}
            Ok(false) => {
                outcome.output.push_str("# no checks to rewrite\n");
                break;
            }
            Err(error) => {
                outcome.output.push_str(&format!("# the checks could not be rewritten: {error}\n"));
                break;
            }
        }
        let note = format!("{}# the checks were rewritten; run again:\n", outcome.output);
        let again = run_script(path, script, config)?;
        outcome = Outcome { output: note + &again.output, ..again };
        let Ok(new) = files::read(path, MAX_TEST) else { break };
        text = String::from_utf8_lossy(&new).into_owned();
        if outcome.status != Status::Fail {
            break;
        }
    }
    Ok(outcome)
}

/// A command line that is ready to run.
struct Line {
    /// What it is, for people.
    label: String,
    text: String,
    pipelines: Vec<Pipeline>,
}

/// Runs the lines of a test, again if it fails and may be run again. The error is what makes it no test.
fn run_script(path: &Path, script: &Script, config: &Config) -> Result<Outcome, String> {
    let mut all = substitutions(path, config);
    let mut lines = Vec::new();
    for text in &config.preamble {
        lines.push(("preamble command line".to_string(), all.expand(text, &config.features)?));
    }
    for line in &script.lines {
        match line.kind {
            LineKind::Run => {
                let label = format!("{} at line {}", line.kind.keyword(), line.line);
                lines.push((label, all.expand(&line.text, &config.features)?));
            }
            _ => all.define(line)?,
        }
    }
    let mut ready = Vec::new();
    for (label, text) in lines {
        let parsed = match text.is_empty() || config.external {
            true => Ok(Vec::new()),
            false => syntax::parse(&text),
        };
        match parsed {
            Ok(pipelines) => ready.push(Line { label, text, pipelines }),
            Err(_) => {
                let log = format!("shell parser error on {label}: {text}").replace('\n', "\n# ");
                return Ok(Outcome::of(Status::Unresolved, output("1", None, &format!("# {log}\n"))));
            }
        }
    }
    if config.no_execute {
        return Ok(Outcome::of(Status::Pass, ""));
    }
    let most = script.retries.unwrap_or(config.retries) + 1;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let (mut status, output) = run_once(path, &ready, config)?;
        if status == Status::Fail && attempts < most {
            continue;
        }
        if status == Status::Pass && attempts > 1 {
            status = Status::FlakyPass;
        }
        return Ok(Outcome { attempts, most_attempts: most, ..Outcome::of(status, output) });
    }
}

/// Runs all lines once.
fn run_once(path: &Path, lines: &[Line], config: &Config) -> Result<(Status, String), String> {
    let temp = temp_folder(path, config);
    std::fs::create_dir_all(&temp).map_err(|error| format!("{}: {error}", temp.display()))?;
    let mut shell = shell(path, config);
    if config.external {
        let lines: Vec<(&str, &str)> =
            lines.iter().map(|line| (line.label.as_str(), line.text.as_str())).collect();
        let (status, code) = match shell.external(&lines) {
            Ok(0) => (Status::Pass, 0),
            Ok(code) => (Status::Fail, code),
            Err(Broken::TimedOut) => (Status::TimedOut, exec::KILLED),
            Err(Broken::Bad(error) | Broken::Refused(error)) => return Err(error),
        };
        return Ok((status, shell.output(status, code)));
    }
    for line in lines {
        shell.log.push_str(&match line.text.is_empty() {
            true => format!("# {} has no command after substitutions\n", line.label),
            false => format!("# {}\n{}\n", line.label, line.text),
        });
        let (status, code) = match shell.run(&line.pipelines) {
            Ok(0) => continue,
            Ok(code) => (Status::Fail, code),
            Err(Broken::Refused(_)) => (Status::Fail, exec::NOT_FOUND),
            Err(Broken::TimedOut) => (Status::TimedOut, exec::KILLED),
            Err(Broken::Bad(error)) => return Err(error),
        };
        return Ok((status, shell.output(status, code)));
    }
    Ok((Status::Pass, shell.output(Status::Pass, 0)))
}

impl Shell<'_> {
    /// How a test that ended so is reported.
    fn output(&self, status: Status, code: i32) -> String {
        let limit = self.config.time_limit.filter(|_| status == Status::TimedOut);
        let mut text = output(&code.to_string(), limit, &self.log);
        if !self.errors.is_empty() {
            text.push_str(&format!("Command Output (stderr):\n--\n{}\n--\n", self.errors));
        }
        text
    }
}

/// The frame around what commands did.
fn output(code: &str, limit: Option<Duration>, log: &str) -> String {
    let limit = limit.map(|limit| format!("Timeout: Reached timeout of {} seconds\n", limit.as_secs_f64()));
    let log =
        if log.is_empty() { String::new() } else { format!("Command Output (stdout):\n--\n{log}\n--\n") };
    format!("Exit Code: {code}\n{}\n{log}", limit.unwrap_or_default())
}
