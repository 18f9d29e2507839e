//! Runs one command: our own tools and builtins in this process, others as programs.
//!
//! Every run has a time limit, and output is bounded.

use super::args::python_error;
use super::builtin;
use super::config::Tool;
use super::shell::{Broken, Environment};
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
const MAX_OUTPUT: usize = 64 << 20;
/// Stack of a tool that runs in this process.
const STACK: usize = 64 << 20;
/// Exit status of a tool of ours that panicked, as a program that was aborted has it.
const ABORTED: i32 = -6;

/// What a command did.
#[derive(Debug, Default)]
pub(super) struct Ran {
    /// Exit status; negative for a signal.
    pub(super) status: i32,
    /// The standard output.
    pub(super) out: Vec<u8>,
    /// The error stream, empty where both go to one place.
    pub(super) err: Vec<u8>,
}

/// What a name stands for.
pub(super) enum Runnable {
    /// A tool in this process.
    Tool(Tool),
    /// A program.
    Program(PathBuf),
}

/// A command that is ready to run.
pub(super) struct Start<'a> {
    /// What runs.
    pub(super) what: &'a Runnable,
    /// Name and arguments.
    pub(super) words: &'a [String],
    /// Where it runs.
    pub(super) environment: &'a Environment,
    /// Its input.
    pub(super) input: Vec<u8>,
    /// Whether errors go where the output goes.
    pub(super) merged: bool,
    /// When its time is over.
    pub(super) deadline: Option<Instant>,
}

/// Finds what a name stands for: our tools, builtins, then programs in the path.
pub(super) fn find(
    name: &str,
    tools: &BTreeMap<String, Tool>,
    environment: &Environment,
    path: &str,
) -> Option<Runnable> {
    let builtin = || builtin::find(name).map(|run| Arc::new(run) as Tool);
    if let Some(tool) = tools.get(name).cloned().or_else(builtin) {
        return Some(Runnable::Tool(tool));
    }
    if name.starts_with('.') {
        let here = environment.directory.join(name);
        if here.is_file() {
            return Some(Runnable::Program(here));
        }
    }
    let program = |path: PathBuf| (path.is_file() && may_run(&path)).then_some(Runnable::Program(path));
    if name.contains('/') {
        return program(std::path::absolute(name).ok()?);
    }
    std::env::split_paths(path).find_map(|folder| program(folder.join(name)))
}

#[cfg(unix)]
fn may_run(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn may_run(_: &Path) -> bool {
    true
}

impl Start<'_> {
    /// Runs it to its end.
    pub(super) fn run(self) -> Result<Ran, Broken> {
        match self.what {
            Runnable::Tool(tool) => {
                let job = Job {
                    tool: tool.clone(),
                    args: builtin::os(self.words),
                    directory: self.environment.directory.clone(),
                    input: self.input,
                    merged: self.merged,
                };
                job.run(self.environment.variables.clone(), left(self.deadline))
            }
            Runnable::Program(path) => self.program(path),
        }
    }

    /// Runs a program and waits for it.
    fn program(&self, path: &Path) -> Result<Ran, Broken> {
        let environment = self.environment;
        let mut command = self.command(path);
        command.current_dir(&environment.directory).env_clear().envs(&environment.variables);
        command.stdin(Stdio::piped());
        let io = |error: std::io::Error| Broken::Bad(format!("{}: {error}", path.display()));
        let mut outputs: Vec<Box<dyn Read + Send>> = Vec::new();
        if self.merged {
            let (reader, writer) = std::io::pipe().map_err(io)?;
            command.stdout(writer.try_clone().map_err(io)?).stderr(writer);
            outputs.push(Box::new(reader));
        } else {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        own_group(&mut command);
        let spawned = command.spawn();
        // Its ends of the pipe must be closed, or the end of the output is never seen.
        drop(command);
        let mut child = spawned.map_err(|error| {
            let here = &environment.directory;
            let place = if here.is_dir() { path } else { here.as_path() };
            let reason = python_error(&error, &place.display().to_string());
            Broken::Refused(format!("Could not create process ({}) due to {reason}", path.display()))
        })?;
        if let Some(mut stdin) = child.stdin.take() {
            let input = self.input.clone();
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
            match receive(&receiver, left(self.deadline)) {
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

    /// The program itself, or a shell that sets limits and becomes it.
    fn command(&self, path: &Path) -> std::process::Command {
        let rest = self.words.get(1..).unwrap_or_default();
        let limits = self.environment.limits();
        if limits.is_empty() {
            let mut command = std::process::Command::new(path);
            command.args(rest);
            #[cfg(unix)]
            if let Some(name) = self.words.first() {
                std::os::unix::process::CommandExt::arg0(&mut command, name);
            }
            return command;
        }
        let mut command = std::process::Command::new("/bin/sh");
        command.arg("-c").arg(format!("{limits} exec \"$0\" \"$@\"")).arg(path).args(rest);
        command
    }
}

/// The time that is left, if it is limited.
fn left(deadline: Option<Instant>) -> Option<Duration> {
    deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
}

/// A tool of ours about to run.
struct Job {
    tool: Tool,
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
                (self.tool)(super::config::Call {
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
            // After the timeout there is no receiver.
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

/// Ends a program and those it started: its group, and its descendants in groups of their own.
fn end(child: &mut Child) {
    if cfg!(unix) {
        let group = format!("-{}", child.id());
        let mut all = vec!["-KILL".to_string(), "--".to_string(), group];
        // While the program lives, its children name it as their parent.
        all.extend(descendants(child.id()).iter().map(u32::to_string));
        // The program may have ended by itself meanwhile, and so may have each of the others.
        let _ = std::process::Command::new("kill").args(&all).stderr(Stdio::null()).status();
    }
    // It may have ended by itself meanwhile.
    let _ = child.kill();
    let _ = child.wait();
}

/// Ends all programs that this process started, and those that they started: for a process that ends in the middle of tests.
pub fn end_programs() {
    let all: Vec<String> = descendants(std::process::id()).iter().map(u32::to_string).collect();
    if cfg!(unix) && !all.is_empty() {
        // Each of them may have ended by itself meanwhile.
        let words = ["-KILL", "--"].into_iter().map(String::from).chain(all);
        let _ = std::process::Command::new("kill").args(words).stderr(Stdio::null()).status();
    }
}

/// The processes below a process, as far as the system reports them (`/proc` of Linux).
fn descendants(ancestor: u32) -> Vec<u32> {
    let mut parents: Vec<(u32, u32)> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let process = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok();
        // The name of the program stands in parentheses and may contain anything; the parent is the second field after.
        let parent = stat.as_deref().and_then(|stat| stat.rsplit_once(')'));
        let parent = parent.and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1)?.parse().ok());
        parents.extend(process.zip(parent));
    }
    let mut found = vec![ancestor];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        let children = parents.iter().filter(|(_, of)| *of == parent).map(|(process, _)| *process);
        let children: Vec<u32> = children.filter(|process| !found.contains(process)).collect();
        found.extend(children);
    }
    found.split_off(1)
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
