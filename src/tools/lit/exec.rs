//! Runs command lines: our own tools and builtins in this process, others as programs.
//!
//! The commands of a pipe run one after the other, each on the whole output of the one before. Every run
//! has a time limit, and output is bounded.

use super::syntax::{Command, Pipeline, Redirect, When, Word};
use super::{Call, Config, builtin};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most bytes that one command may write.
const MAX_OUTPUT: usize = 256 << 20;
/// Longest word with the texts of files in it.
const MAX_WORD: usize = 16 << 20;
/// Stack of a tool that runs in this process.
const STACK: usize = 64 << 20;
/// Exit status of a command that does not exist, as the shell has it.
const NOT_FOUND: i32 = 127;
/// Exit status of a tool of ours that panicked, as a program that was aborted has it.
const ABORTED: i32 = -6;

/// Why a command line could not be run to its end.
#[derive(Debug)]
pub(super) enum Broken {
    /// The time is over.
    TimedOut,
    /// It makes no sense.
    Bad(String),
}

/// What a command did.
#[derive(Debug, Default)]
struct Ran {
    /// Exit status; negative for a signal.
    status: i32,
    out: Vec<u8>,
    err: Vec<u8>,
}

/// The state of a test while it runs.
pub(super) struct Shell<'a> {
    pub(super) config: &'a Config,
    pub(super) directory: PathBuf,
    /// Directories that `pushd` left.
    pub(super) left: Vec<PathBuf>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) deadline: Option<Instant>,
    /// What happened, for people.
    pub(super) log: String,
}

/// Where an output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// The next command, or the log at the end of the pipe.
    Pipe,
    /// The log.
    Log,
    /// A file and whether to append to it.
    File(PathBuf, bool),
}

impl Shell<'_> {
    /// Runs a command line; gives its exit status.
    pub(super) fn run(&mut self, pipelines: &[Pipeline]) -> Result<i32, Broken> {
        let mut status = 0;
        for pipeline in pipelines {
            let runs = match pipeline.when {
                When::Always => true,
                When::AfterSuccess => status == 0,
                When::AfterFailure => status != 0,
            };
            if runs {
                status = self.pipeline(&pipeline.commands)?;
                if pipeline.negated {
                    status = i32::from(status == 0);
                }
            }
        }
        Ok(status)
    }

    /// What the commands write to the pipe, for a tool that rewrites tests.
    pub(super) fn output_of(&mut self, commands: &[Command]) -> Result<Vec<u8>, Broken> {
        let mut input = Vec::new();
        for command in commands {
            (_, input) = self.command(command, input, false)?;
        }
        Ok(input)
    }

    /// The status of a pipe is that of the last command that failed.
    fn pipeline(&mut self, commands: &[Command]) -> Result<i32, Broken> {
        let mut input = Vec::new();
        let mut status = 0;
        for (index, command) in commands.iter().enumerate() {
            let last = index + 1 == commands.len();
            let (own, output) = self.command(command, input, last)?;
            input = output;
            if own != 0 {
                status = own;
            }
        }
        Ok(status)
    }

    /// Runs one command; gives its status and what it writes to the pipe.
    fn command(&mut self, command: &Command, input: Vec<u8>, last: bool) -> Result<(i32, Vec<u8>), Broken> {
        let words = self.words(&command.words)?;
        self.log.push_str(&format!("# executed command: {}\n", quoted(&words)));
        let mut input = input;
        let mut targets = [Target::Pipe, if command.pipe_errors { Target::Pipe } else { Target::Log }];
        for redirect in &command.redirects {
            match redirect {
                Redirect::Read(file) => input = self.read(file)?,
                Redirect::Write { output, append, file } => {
                    let path = self.directory.join(&file.text);
                    let target = match file.text.as_str() {
                        "/dev/stdout" => Target::Pipe,
                        "/dev/stderr" => Target::Log,
                        _ => Target::File(path, *append),
                    };
                    targets[usize::from(*output == 2)] = target;
                }
                Redirect::Join(from, to) => {
                    targets[usize::from(*from == 2)] = targets[usize::from(*to == 2)].clone()
                }
            }
        }
        let merged = targets[0] == targets[1];
        // An empty file is there even if the command writes nothing.
        for target in &targets {
            self.write(target, &[], true)?;
        }
        let ran = self.dispatch(&words, input, merged)?;
        let mut pipe = Vec::new();
        for (name, target, text) in [("stdout", &targets[0], ran.out), ("stderr", &targets[1], ran.err)] {
            match target {
                Target::Pipe if !last => pipe.extend(text),
                Target::File(..) => self.write(target, &text, false)?,
                Target::Pipe | Target::Log => self.log_output(name, &text),
            }
        }
        if ran.status < 0 {
            self.log.push_str(&format!("# error: command was ended by signal {}\n", -ran.status));
        } else if ran.status != 0 {
            self.log.push_str(&format!("# error: command failed with exit status: {}\n", ran.status));
        }
        Ok((ran.status, pipe))
    }

    fn write(&self, target: &Target, text: &[u8], start: bool) -> Result<(), Broken> {
        let Target::File(path, append) = target else { return Ok(()) };
        let mut options = std::fs::OpenOptions::new();
        options.create(true);
        if start && !append {
            options.write(true).truncate(true);
        } else {
            options.append(true);
        }
        let result = options.open(path).and_then(|mut file| file.write_all(text));
        result.map_err(|error| Broken::Bad(format!("{}: {error}", path.display())))
    }

    fn read(&self, file: &Word) -> Result<Vec<u8>, Broken> {
        let path = self.directory.join(&file.text);
        std::fs::read(&path).map_err(|error| Broken::Bad(format!("{}: {error}", path.display())))
    }

    fn log_output(&mut self, name: &str, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        self.log.push_str(&format!("# .---command {name}------------\n"));
        for line in String::from_utf8_lossy(text).lines() {
            self.log.push_str(&format!("# | {line}\n"));
        }
        self.log.push_str("# `-----------------------------\n");
    }

    /// The words with wildcards resolved, and with the texts of files that commands before wrote. A wildcard that
    /// fits no file stays.
    fn words(&self, words: &[Word]) -> Result<Vec<String>, Broken> {
        let mut out = Vec::new();
        for word in words {
            let found = if word.glob { glob(&self.directory, &word.text) } else { Vec::new() };
            if found.is_empty() { out.push(word.text.clone()) } else { out.extend(found) }
        }
        for word in &mut out {
            self.read_files(word)?;
        }
        Ok(out)
    }

    /// Puts the text of a file in the place of `%{readfile:PATH}`.
    fn read_files(&self, word: &mut String) -> Result<(), Broken> {
        const MARK: &str = "%{readfile:";
        let mut from = 0;
        while let Some(at) = word.get(from..).and_then(|rest| rest.find(MARK)).map(|at| from + at) {
            let behind = word.get(at + MARK.len()..).unwrap_or_default();
            let Some(length) = behind.find('}') else { return Ok(()) };
            let path = self.directory.join(behind.get(..length).unwrap_or_default());
            let text = std::fs::read(&path).map_err(|error| {
                Broken::Bad(format!("the file of a readfile substitution: {}: {error}", path.display()))
            })?;
            let text = String::from_utf8_lossy(&text);
            word.replace_range(at..at + MARK.len() + length + 1, &text);
            if word.len() > MAX_WORD {
                return Err(Broken::Bad("a word is too long".into()));
            }
            from = at + text.len();
        }
        Ok(())
    }

    /// Runs a command by its name.
    fn dispatch(&mut self, words: &[String], input: Vec<u8>, merged: bool) -> Result<Ran, Broken> {
        let mut environment = self.environment.clone();
        let mut words = words;
        // Each turn takes one word in front of the command away.
        let mut turned: Vec<bool> = Vec::new();
        loop {
            let Some((name, rest)) = words.split_first() else {
                return Ok(Ran { status: NOT_FOUND, err: b"no command\n".to_vec(), ..Ran::default() });
            };
            match name.as_str() {
                "not" => {
                    let crash = rest.first().is_some_and(|word| word == "--crash");
                    turned.push(crash);
                    words = rest.get(usize::from(crash)..).unwrap_or_default();
                }
                "env" => words = set_environment(rest, &mut environment)?,
                "cd" => {
                    let [path] = rest else { return Err(Broken::Bad("'cd' expects one directory".into())) };
                    self.directory = self.directory.join(path);
                    return Ok(Ran::default());
                }
                "pushd" => {
                    let [path] = rest else {
                        return Err(Broken::Bad("'pushd' expects one directory".into()));
                    };
                    self.left.push(self.directory.clone());
                    self.directory = self.directory.join(path);
                    return Ok(Ran::default());
                }
                "popd" => {
                    let Some(before) = self.left.pop() else {
                        return Err(Broken::Bad("'popd' without 'pushd'".into()));
                    };
                    self.directory = before;
                    return Ok(Ran::default());
                }
                // They would change this process with all its tests.
                "umask" | "ulimit" => {
                    return Err(Broken::Bad(format!(
                        "'{name}' is unsupported; write sh -c '{name} ...; COMMAND'"
                    )));
                }
                "export" => {
                    for word in rest {
                        let (name, value) = word.split_once('=').unwrap_or((word, ""));
                        self.environment.insert(name.into(), value.into());
                    }
                    return Ok(Ran::default());
                }
                _ if is_assignment(name) => words = set_environment(words, &mut environment)?,
                _ => break,
            }
        }
        let mut ran = self.run_one(words, &environment, input, merged)?;
        for crash in turned.into_iter().rev() {
            let crashed = ran.status < 0;
            let good = if crash { crashed } else { ran.status != 0 && !crashed };
            ran.status = i32::from(!good);
        }
        Ok(ran)
    }

    fn run_one(
        &self,
        words: &[String],
        environment: &BTreeMap<String, String>,
        input: Vec<u8>,
        merged: bool,
    ) -> Result<Ran, Broken> {
        let name = words.first().map_or("", String::as_str);
        let tool = self.config.tools.get(name).cloned();
        let tool = tool.or_else(|| builtin::find(name).map(|run| Arc::new(run) as super::Tool));
        match tool {
            Some(tool) => {
                let job =
                    Job { tool, args: builtin::os(words), directory: self.directory.clone(), input, merged };
                job.run(environment.clone(), self.left())
            }
            None => self.program(words, environment, input, merged),
        }
    }

    /// The time that is left, if it is limited.
    fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Runs a program and waits for it.
    fn program(
        &self,
        words: &[String],
        environment: &BTreeMap<String, String>,
        input: Vec<u8>,
        merged: bool,
    ) -> Result<Ran, Broken> {
        let (name, rest) = words.split_first().map_or(("", &[][..]), |(name, rest)| (name.as_str(), rest));
        let mut command = std::process::Command::new(name);
        command.args(rest).current_dir(&self.directory).env_clear().envs(environment).stdin(Stdio::piped());
        let io = |error: std::io::Error| Broken::Bad(format!("{name}: {error}"));
        let mut outputs: Vec<Box<dyn Read + Send>> = Vec::new();
        if merged {
            let (reader, writer) = std::io::pipe().map_err(io)?;
            command.stdout(writer.try_clone().map_err(io)?).stderr(writer);
            outputs.push(Box::new(reader));
        } else {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        own_group(&mut command);
        let spawned = command.spawn();
        // Its ends of the pipe must go, else nobody sees the end of the output.
        drop(command);
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => {
                let reason = match error.kind() {
                    std::io::ErrorKind::NotFound => "command not found".to_string(),
                    _ => error.to_string(),
                };
                let err = format!("'{name}': {reason}\n").into_bytes();
                let (out, err) = if merged { (err, Vec::new()) } else { (Vec::new(), err) };
                return Ok(Ran { status: NOT_FOUND, out, err });
            }
        };
        if let Some(mut stdin) = child.stdin.take() {
            // A program need not read its input.
            std::thread::spawn(move || stdin.write_all(&input).ok());
        }
        if let Some(out) = child.stdout.take() {
            outputs.push(Box::new(out));
        }
        if let Some(err) = child.stderr.take() {
            outputs.push(Box::new(err));
        }
        let receivers: Vec<_> = outputs.into_iter().map(read_aside).collect();
        let mut texts = Vec::new();
        for receiver in receivers {
            match receive(&receiver, self.left()) {
                Some(text) => texts.push(text),
                None => {
                    end(&mut child);
                    return Err(Broken::TimedOut);
                }
            }
        }
        let status = wait(&mut child, self.deadline)?;
        let mut texts = texts.into_iter();
        Ok(Ran { status, out: texts.next().unwrap_or_default(), err: texts.next().unwrap_or_default() })
    }
}

/// A tool of ours about to run.
struct Job {
    tool: super::Tool,
    args: Vec<OsString>,
    directory: PathBuf,
    input: Vec<u8>,
    merged: bool,
}

impl Job {
    /// Runs it on a thread of its own, which is left alone when the time is over.
    fn run(self, environment: BTreeMap<String, String>, limit: Option<Duration>) -> Result<Ran, Broken> {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().stack_size(STACK);
        let spawned = thread.spawn(move || {
            let out = Shared::default();
            let err = if self.merged { out.clone() } else { Shared::default() };
            let status = catch_unwind(AssertUnwindSafe(|| {
                (self.tool)(Call {
                    args: &self.args,
                    directory: &self.directory,
                    environment: &environment,
                    stdin: &mut self.input.as_slice(),
                    out: &mut out.clone(),
                    err: &mut err.clone(),
                })
            }));
            let status = status.unwrap_or_else(|payload| {
                let text = payload.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
                let _ = writeln!(err.clone(), "panicked: {text}");
                ABORTED
            });
            let err = if self.merged { Vec::new() } else { err.take() };
            // Nobody listens when the time is over.
            let _ = sender.send(Ran { status, out: out.take(), err });
        });
        spawned.map_err(|error| Broken::Bad(error.to_string()))?;
        receive(&receiver, limit).ok_or(Broken::TimedOut)
    }
}

/// Memory that several writers share.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Shared {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() + text.len() > MAX_OUTPUT {
            return Err(std::io::Error::other("too much output"));
        }
        all.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn read_aside(source: Box<dyn Read + Send>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        // What was read before an error still counts; dropping the pipe stops an endless writer.
        let _ = source.take(MAX_OUTPUT as u64).read_to_end(&mut text);
        let _ = sender.send(text);
    });
    receiver
}

fn receive<T>(receiver: &mpsc::Receiver<T>, limit: Option<Duration>) -> Option<T> {
    match limit {
        None => receiver.recv().ok(),
        // Out of time, or its thread is gone.
        Some(limit) => receiver.recv_timeout(limit).ok(),
    }
}

/// Waits for a program whose outputs are closed; gives its status, negative for a signal.
fn wait(child: &mut Child, deadline: Option<Instant>) -> Result<i32, Broken> {
    let mut pause = Duration::from_micros(50);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.code().unwrap_or_else(|| -signal(status))),
            Ok(None) => {}
            Err(error) => return Err(Broken::Bad(error.to_string())),
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            end(child);
            return Err(Broken::TimedOut);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Ends a program and those it started, which share its group.
fn end(child: &mut Child) {
    if cfg!(unix) {
        let group = format!("-{}", child.id());
        let _ =
            std::process::Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    }
    // It may have ended by itself meanwhile.
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(unix)]
fn own_group(command: &mut std::process::Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn own_group(_: &mut std::process::Command) {}

#[cfg(unix)]
fn signal(status: std::process::ExitStatus) -> i32 {
    std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(1)
}

#[cfg(not(unix))]
fn signal(_: std::process::ExitStatus) -> i32 {
    1
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let first = name.chars().next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
    first && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Takes the options and assignments of `env` off; what is left is the command.
fn set_environment<'w>(
    mut words: &'w [String],
    environment: &mut BTreeMap<String, String>,
) -> Result<&'w [String], Broken> {
    while let Some((first, rest)) = words.split_first() {
        match (first.as_str(), rest.split_first()) {
            ("-i", _) => environment.clear(),
            ("-u", Some((name, behind))) => {
                environment.remove(name);
                words = behind;
                continue;
            }
            (option, _) if option.starts_with('-') => {
                return Err(Broken::Bad(format!("'env' does not support '{option}'")));
            }
            (word, _) => match word.split_once('=') {
                Some((name, value)) => {
                    environment.insert(name.into(), value.into());
                }
                None => break,
            },
        }
        words = rest;
    }
    Ok(words)
}

/// The words as one could type them.
fn quoted(words: &[String]) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%^".contains(letter);
    let quote = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// The files that a word with `*` and `?` in its last part fits, in order.
fn glob(directory: &Path, pattern: &str) -> Vec<String> {
    let (folder, name) = match pattern.rsplit_once('/') {
        Some((folder, name)) => (format!("{folder}/"), name),
        None => (String::new(), pattern),
    };
    let mut expression = String::from("^");
    for letter in name.chars() {
        match letter {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            _ => expression.push_str(&regex::escape(&letter.to_string())),
        }
    }
    expression.push('$');
    let Ok(regex) = regex::Regex::new(&expression) else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(directory.join(&folder)) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let fits =
        names.filter(|found| regex.is_match(found) && (name.starts_with('.') || !found.starts_with('.')));
    let mut found: Vec<String> = fits.map(|found| format!("{folder}{found}")).collect();
    found.sort();
    found
}
