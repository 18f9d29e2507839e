//! Runs command lines.
//!
//! The commands of a pipe run one after the other, each on the whole output of the one before. What each did is reported
//! when the pipe has ended, in lit's own form.

use super::args::{python_error, quoted, repr};
use super::inside;
use super::process::{self, Ran, Start};
use super::shell::{Broken, Environment, Shell};
use super::syntax::{Command, Pipeline, Redirect, When, Word};
use super::wildcards::expand;
use flambeau_files as files;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Longest word with the texts of files in it.
const MAX_WORD: usize = 16 << 20;
/// Exit status of a command that could not be started, as the shell has it.
pub(super) const NOT_FOUND: i32 = 127;
/// Exit status of a command whose time was over.
pub(super) const KILLED: i32 = -9;
/// Most letters of one output that are shown.
const SHOWN: usize = 10240;

/// Where an output or the input goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Input,
    Output,
    Errors,
    /// A file, by its number.
    File(usize),
}

/// A file of a redirection.
#[derive(Clone, Debug)]
struct Opened {
    /// As it is written.
    name: String,
    /// `r`, `w` or `a`
    mode: char,
    path: PathBuf,
}

/// The redirections of a command.
struct Streams {
    places: [Place; 3],
    files: Vec<Opened>,
}

/// What is reported of a command.
struct Report<'c> {
    words: &'c [Word],
    ran: Ran,
    /// Name and text of files that a failed command wrote.
    files: Vec<(String, String)>,
}

/// A command without its `env`, `not` and `!`.
struct Stripped {
    words: Vec<Word>,
    /// Its own environment, if it has one.
    own: Option<Environment>,
    /// `not`, `--crash` and `!`, in order.
    turned: Vec<String>,
}

impl Shell<'_> {
    /// Runs a command line; gives its exit status.
    pub(super) fn run(&mut self, pipelines: &[Pipeline]) -> Result<i32, Broken> {
        if pipelines.iter().any(|pipeline| pipeline.when == When::Beside) {
            return Err(Broken::Bad("unsupported shell operator: '&'".into()));
        }
        let mut status = 0;
        for pipeline in pipelines {
            let runs = match pipeline.when {
                When::AfterSuccess => status == 0,
                When::AfterFailure => status != 0,
                When::Always | When::Beside => true,
            };
            if runs {
                status = self.pipeline(&pipeline.commands)?;
            }
        }
        Ok(status)
    }

    /// What the commands write to the pipe, for a tool that rewrites tests.
    pub(super) fn output_of(&mut self, commands: &[Command]) -> Result<Vec<u8>, Broken> {
        let mut input = Vec::new();
        for command in commands {
            match self.command(command, input, false, &mut Vec::new())? {
                Step::Ended(_) => return Ok(Vec::new()),
                Step::Ran(_, output) => input = output,
            }
        }
        Ok(input)
    }

    /// Runs lines, each with what it is, in the system's own shell, as one script.
    pub(super) fn external(&mut self, lines: &[(&str, &str)]) -> Result<i32, Broken> {
        let lines: Vec<String> = lines.iter().map(|(label, text)| traced(label, text)).collect();
        let script = format!("set -o pipefail; set -x; {{ {}; }}", lines.join("; } &&\n{ "));
        let words = ["bash", "-c", &script].map(String::from);
        let path = self.environment.variables.get("PATH").cloned().unwrap_or_default();
        let what = process::find("bash", &BTreeMap::new(), &self.environment, &path);
        let what = what.ok_or_else(|| Broken::Bad("there is no bash".into()))?;
        let environment = &self.environment;
        let (input, deadline) = (Vec::new(), self.deadline);
        let start = Start { what: &what, words: &words, environment, input, merged: false, deadline };
        let ran = start.run()?;
        let status = ran.status;
        self.log = String::from_utf8_lossy(&ran.out).into_owned();
        self.errors = String::from_utf8_lossy(&ran.err).into_owned();
        Ok(status)
    }

    /// The status of a pipe is that of the last command that failed.
    fn pipeline(&mut self, commands: &[Command]) -> Result<i32, Broken> {
        let mut input = Vec::new();
        let mut reports: Vec<Report<'_>> = Vec::new();
        let mut opened = Vec::new();
        for (index, command) in commands.iter().enumerate() {
            let alone = commands.len() == 1;
            let last = index + 1 == commands.len();
            let result = match self.builtin(command, alone) {
                Ok(None) => self.command(command, input, last, &mut opened),
                Ok(Some(ran)) => Ok(Step::Ended(ran)),
                Err(broken) => Err(broken),
            };
            let words = &command.words;
            match result {
                Ok(Step::Ended(ran)) => {
                    let status = ran.status;
                    self.report(&Report { words, ran, files: Vec::new() }, false);
                    return Ok(status);
                }
                Ok(Step::Ran(ran, output)) => {
                    let mut files = Vec::new();
                    if ran.status != 0 {
                        let mut written: Vec<&Opened> = opened.iter().filter(|o| o.mode != 'r').collect();
                        written.sort_by(|a, b| (&a.name, a.mode).cmp(&(&b.name, b.mode)));
                        files = written.into_iter().filter_map(Opened::text).collect();
                    }
                    reports.push(Report { words, ran, files });
                    input = output;
                }
                Err(Broken::Refused(message)) => {
                    let ran = Ran { status: NOT_FOUND, out: Vec::new(), err: message.into_bytes() };
                    self.report(&Report { words, ran, files: Vec::new() }, false);
                    return Err(Broken::Refused(String::new()));
                }
                Err(Broken::TimedOut) => {
                    let ran = Ran { status: KILLED, ..Ran::default() };
                    reports.iter().for_each(|report| self.report(report, false));
                    self.report(&Report { words, ran, files: Vec::new() }, true);
                    return Err(Broken::TimedOut);
                }
                Err(broken) => return Err(broken),
            }
        }
        reports.iter().for_each(|report| self.report(report, false));
        Ok(reports.iter().rev().map(|report| report.ran.status).find(|status| *status != 0).unwrap_or(0))
    }

    /// A command that changes the shell itself, or works without streams; none where it is another.
    fn builtin(&mut self, command: &Command, alone: bool) -> Result<Option<Ran>, Broken> {
        let stripped = self.strip(command)?;
        let Some(name) = stripped.words.first() else {
            // Nothing but `env`: the variables are shown.
            let environment = stripped.own.as_ref().unwrap_or(&self.environment);
            let lines: Vec<String> =
                environment.variables.iter().map(|(key, value)| format!("{key}={value}")).collect();
            return Ok(Some(Ran { out: lines.join("\n").into_bytes(), ..Ran::default() }));
        };
        let name = name.text.clone();
        if !inside::is_known(&name) || (name == "echo" && !alone) {
            return Ok(None);
        }
        let refused = |text: String| Err(Broken::Refused(text));
        if stripped.own.is_some() {
            return refused(format!("Error: 'env' cannot call '{name}'"));
        }
        if stripped.turned.iter().any(|word| word == "--crash") {
            return refused(format!("Error: 'not --crash' cannot call '{name}'"));
        }
        if !alone {
            return refused(format!("Unsupported: '{name}' cannot be part of a pipeline"));
        }
        let mut ran = match name.as_str() {
            "echo" | "@echo" => self.echo(&stripped.words, &command.redirects)?,
            _ => inside::run(&name, &stripped.words, self)?,
        };
        if stripped.turned.len() % 2 == 1 {
            ran.status = i32::from(ran.status == 0);
        }
        Ok(Some(ran))
    }

    /// `echo` alone, which may write to a file.
    fn echo(&self, words: &[Word], redirects: &[Redirect]) -> Result<Ran, Broken> {
        let streams = self.streams(redirects, &self.environment)?;
        let name = words.first().map_or("echo", |word| word.text.as_str());
        if streams.places[0] != Place::Input || streams.places[2] != Place::Errors {
            let message = format!("stdin and stderr redirects not supported for {name}");
            return Err(Broken::Refused(message));
        }
        if let Some(word) = words.iter().skip(1).find(|word| word.glob) {
            let message = format!("TypeError: a wildcard is not a text for echo: {}", word.text);
            return Err(Broken::Bad(message));
        }
        let args: Vec<&str> = words.iter().skip(1).map(|word| word.text.as_str()).collect();
        let text = super::builtin::echoed(&args);
        let Place::File(number) = streams.places[1] else {
            return Ok(Ran { out: text, ..Ran::default() });
        };
        streams.start()?;
        streams.write(number, &text)?;
        Ok(Ran::default())
    }

    /// Runs one command; gives its report, and what it writes to the pipe.
    fn command(
        &mut self,
        command: &Command,
        input: Vec<u8>,
        last: bool,
        opened: &mut Vec<Opened>,
    ) -> Result<Step, Broken> {
        let stripped = self.strip(command)?;
        let environment = stripped.own.as_ref().unwrap_or(&self.environment);
        let crash = stripped.turned.iter().any(|word| word == "--crash");
        if let Some(bang) = stripped.turned.first().filter(|word| crash && *word == "!") {
            return Err(Broken::Refused(format!("{}: command not found", repr(bang))));
        }
        let streams = self.streams(&command.redirects, environment)?;
        opened.extend(streams.files.iter().cloned());
        let words = self.words(&stripped.words, environment)?;
        let name = words.first().map_or("", String::as_str);
        let path = |from: &Environment| from.variables.get("PATH").cloned();
        let path = path(environment).or_else(|| path(&self.environment)).unwrap_or_default();
        let Some(what) = process::find(name, &self.config.tools, environment, &path) else {
            let before = stripped.turned.iter().rposition(|word| word == "not").filter(|_| crash);
            let before = before.and_then(|at| stripped.turned.get(..at));
            let missing = || Broken::Refused(format!("{}: command not found", repr(name)));
            // The last `not` is a program of its own, which does not find the other.
            let status = turned(before.ok_or_else(missing)?, 1);
            let err = format!("error: unable to find `{name}' in PATH\n").into_bytes();
            return Ok(Step::Ran(Ran { status, out: Vec::new(), err }, Vec::new()));
        };
        let input = match streams.places[0] {
            Place::File(number) => streams.read(number)?,
            _ => input,
        };
        streams.start()?;
        let [_, output, errors] = streams.places;
        let merged = errors == output || (errors == Place::Output && output == Place::Output);
        let start = Start { what: &what, words: &words, environment, input, merged, deadline: self.deadline };
        let mut ran = start.run()?;
        ran.status = turned(&stripped.turned, ran.status);
        let mut pipe = Vec::new();
        match output {
            Place::File(number) => {
                streams.write(number, &ran.out)?;
                ran.out.clear();
                // `2>&1 >file`: errors go where the output would have gone.
                if errors == Place::Output && !last {
                    pipe = std::mem::take(&mut ran.err);
                }
            }
            _ if !last => pipe = std::mem::take(&mut ran.out),
            _ => {}
        }
        if let (Place::File(number), false) = (errors, merged) {
            streams.write(number, &ran.err)?;
            ran.err.clear();
        }
        Ok(Step::Ran(ran, pipe))
    }

    /// Takes `env`, `not` and `!` off.
    fn strip(&self, command: &Command) -> Result<Stripped, Broken> {
        let mut words = command.words.clone();
        for word in &mut words {
            self.read_files(&mut word.text)?;
        }
        let mut out = Stripped { words, own: None, turned: Vec::new() };
        loop {
            let Some(name) = out.words.first().map(|word| word.text.clone()) else { return Ok(out) };
            match name.as_str() {
                "env" => {
                    let own = out.own.get_or_insert_with(|| self.environment.clone());
                    out.words = set_variables(out.words.split_off(1), &mut own.variables);
                }
                "not" | "!" => {
                    out.turned.push(name.clone());
                    out.words.remove(0);
                    if name == "not" && out.words.first().is_some_and(|word| word.text == "--crash") {
                        out.turned.push("--crash".into());
                        out.words.remove(0);
                    }
                    if out.words.is_empty() {
                        return Err(Broken::Refused(format!("Error: '{name}' requires a subcommand")));
                    }
                }
                _ => return Ok(out),
            }
        }
    }

    /// What the redirections say, with no file opened yet.
    fn streams(&self, redirects: &[Redirect], environment: &Environment) -> Result<Streams, Broken> {
        let mut places = [Place::Input, Place::Output, Place::Errors];
        let mut files: Vec<(&Word, char)> = Vec::new();
        for redirect in redirects {
            let Redirect { number, operator, file } = redirect;
            let mut open = |mode| {
                files.push((file, mode));
                Place::File(files.len() - 1)
            };
            match (*operator, number) {
                (">", Some(2)) => places[2] = open('w'),
                (">>", Some(2)) => places[2] = open('a'),
                (">&", Some(2)) if matches!(file.text.as_str(), "0" | "1" | "2") => {
                    places[2] = places[file.text.parse().unwrap_or(2)];
                }
                (">&" | "&>", None) => {
                    places[1] = open('w');
                    places[2] = places[1];
                }
                (">", None) => places[1] = open('w'),
                (">>", None) => places[1] = open('a'),
                ("<", None) => places[0] = open('r'),
                _ => {
                    let number = number.map_or(String::new(), |number| format!(" {number}"));
                    let text =
                        format!("Unsupported redirect: (('{operator}',{number}), {})", repr(&file.text));
                    return Err(Broken::Refused(text));
                }
            }
        }
        if places[1] == Place::Errors || places[2] == Place::Input {
            return Err(Broken::Refused("Unsupported redirect on stdout".into()));
        }
        let mut out = Streams { places, files: Vec::new() };
        for (word, mode) in files {
            let found = expand(word, &environment.directory);
            let [name] = found.as_slice() else {
                let message = "Unsupported: glob in redirect expanded to multiple files";
                return Err(Broken::Refused(message.into()));
            };
            let path = environment.directory.join(name);
            out.files.push(Opened { name: word.text.clone(), mode, path });
        }
        Ok(out)
    }

    /// The words with wildcards resolved.
    fn words(&self, words: &[Word], environment: &Environment) -> Result<Vec<String>, Broken> {
        let mut out: Vec<String> = Vec::new();
        for (index, word) in words.iter().enumerate() {
            let found = expand(word, &environment.directory);
            match index {
                0 => out.extend(found.into_iter().take(1)),
                _ => out.extend(found),
            }
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
            let path = self.environment.directory.join(behind.get(..length).unwrap_or_default());
            let text = files::read(&path, MAX_WORD as u64).map_err(|_| {
                let path = path.display();
                Broken::Refused(format!("File specified in readfile substitution does not exist: {path}"))
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

    /// Writes down what a command did.
    fn report(&mut self, report: &Report<'_>, late: bool) {
        let bangs = report.words.iter().take_while(|word| word.text == "!").count();
        let shown = report
            .words
            .iter()
            .enumerate()
            .map(|(index, word)| if index < bangs { word.text.clone() } else { quoted(&word.text) });
        let shown: Vec<String> = shown.collect();
        self.log.push_str(&format!("# executed command: {}\n", shown.join(" ")));
        let Ran { status, out, err } = &report.ran;
        let [out, err] = [out, err].map(|text| String::from_utf8_lossy(text).into_owned());
        let silent = out.trim().is_empty() && err.trim().is_empty();
        if self.deadline.is_none() && *status == 0 && silent {
            return;
        }
        for (name, text) in &report.files {
            self.show(&format!("redirected output from '{name}'"), text);
        }
        self.show("command stdout", &out);
        self.show("command stderr", &err);
        if silent {
            self.log.push_str("# note: command had no output on stdout or stderr\n");
        }
        if *status != 0 {
            self.log.push_str(&format!("# error: command failed with exit status: {status}\n"));
        }
        if late {
            self.log.push_str("# error: command reached timeout: True\n");
        }
    }

    /// Shows a text in a frame. A colour that it sets holds for its own lines alone.
    fn show(&mut self, title: &str, text: &str) {
        const WIDTH: usize = 26;
        if text.trim().is_empty() {
            return;
        }
        let limit = self.config.output_limit.unwrap_or(SHOWN);
        let length = text.chars().count();
        let (mut shown, mut remark) = (text.to_string(), String::new());
        if length > limit {
            shown = text.chars().take(limit).collect();
            shown.push_str("\n...\n");
            remark = format!("data was truncated ({limit}/{length}) (change limit with -D output_limit=N)");
        }
        let line = |title: &str| "-".repeat(WIDTH.saturating_sub(title.chars().count()));
        self.log.push_str(&format!("# .---{title}{}\n", line(title)));
        let mut colour: Option<String> = None;
        for line in shown
            .split_inclusive(['\n', '\r', '\x0b', '\x0c'])
            .map(|line| line.trim_end_matches(['\n', '\r', '\x0b', '\x0c']))
        {
            let (before, again) = match &colour {
                Some(colour) => ("\x1b[0m", colour.as_str()),
                None => ("", ""),
            };
            self.log.push_str(&format!("{before}# | {again}{line}\n"));
            colour = last_colour(line, colour);
        }
        if colour.is_some() {
            self.log.push_str("\x1b[0m");
        }
        self.log.push_str(&format!("# `---{remark}{}\n", line(&remark)));
    }
}

/// A line of a script that first prints itself.
fn traced(label: &str, text: &str) -> String {
    if text.is_empty() {
        return format!("echo '{label} has no command after substitutions' >&2");
    }
    let mut command = text.to_string();
    while let Some((before, behind)) = command.split_once("%{readfile:") {
        let Some((path, rest)) = behind.split_once('}') else { break };
        command = format!("{before}$(cat {}){rest} && test -e {path}", quoted(path));
    }
    let shown = quoted(text);
    format!(
        "{{ set +x; }} 2>/dev/null && echo {shown} \\# '{label}' >&2 && {{ set -x; }} 2>/dev/null && {{ {command}; }}"
    )
}

/// How far a command of a pipe came.
enum Step {
    /// It was all there is to do.
    Ended(Ran),
    /// It ran, and wrote this to the pipe.
    Ran(Ran, Vec<u8>),
}

impl Opened {
    fn text(&self) -> Option<(String, String)> {
        let text = files::read(&self.path, files::TEXT_BYTES).ok()?;
        Some((self.name.clone(), String::from_utf8_lossy(&text).into_owned()))
    }
}

impl Streams {
    /// Creates the files: they are there even if the command writes nothing.
    fn start(&self) -> Result<(), Broken> {
        for place in self.places {
            if let Place::File(number) = place
                && let Some(file) = self.files.get(number).filter(|file| file.mode != 'r')
                && !is_stream(&file.path)
            {
                let mut options = std::fs::OpenOptions::new();
                options.create(true).append(file.mode == 'a');
                if file.mode == 'w' {
                    options.write(true).truncate(true);
                }
                options.open(&file.path).map_err(|error| bad(file, &error))?;
            }
        }
        Ok(())
    }

    fn read(&self, number: usize) -> Result<Vec<u8>, Broken> {
        let Some(file) = self.files.get(number) else { return Ok(Vec::new()) };
        files::read(&file.path, files::TEXT_BYTES).map_err(|error| bad(file, &error))
    }

    fn write(&self, number: usize, text: &[u8]) -> Result<(), Broken> {
        let Some(file) = self.files.get(number).filter(|file| !is_stream(&file.path)) else { return Ok(()) };
        let result = std::fs::OpenOptions::new().append(true).open(&file.path);
        let result = result.and_then(|mut file| std::io::Write::write_all(&mut file, text));
        result.map_err(|error| bad(file, &error))
    }
}

/// Whether a path is one of our own streams, which tests do not write to.
fn is_stream(path: &Path) -> bool {
    ["/dev/stdout", "/dev/stderr", "/dev/null"].iter().any(|stream| path == Path::new(stream))
}

fn bad(file: &Opened, error: &std::io::Error) -> Broken {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => "FileNotFoundError",
        std::io::ErrorKind::PermissionDenied => "PermissionError",
        std::io::ErrorKind::IsADirectory => "IsADirectoryError",
        _ => "OSError",
    };
    Broken::Bad(format!("{kind}: {}", python_error(error, &file.path.display().to_string())))
}

/// The status behind `not` and `!`.
fn turned(words: &[String], status: i32) -> i32 {
    if words.iter().any(|word| word == "--crash") {
        // Each `not` is a program of its own: it takes a crash for a failure unless it waits for one.
        let mut status = status;
        let mut crash = false;
        for word in words.iter().rev() {
            match word.as_str() {
                "--crash" => crash = true,
                _ => {
                    let good = if crash { status < 0 } else { status > 0 };
                    status = i32::from(!good);
                    crash = false;
                }
            }
        }
        return status;
    }
    match words {
        [] => status,
        [only] if only == "not" => i32::from(status <= 0),
        _ if words.len() % 2 == 1 => i32::from(status == 0),
        _ => i32::from(status != 0),
    }
}

/// Takes the options and assignments of `env` off; what is left is the command.
fn set_variables(words: Vec<Word>, variables: &mut BTreeMap<String, String>) -> Vec<Word> {
    let mut unset = false;
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "-u" => unset = true,
            "-i" => variables.clear(),
            name if unset => {
                variables.remove(name);
                unset = false;
            }
            text => match text.split_once('=') {
                Some((name, value)) => {
                    variables.insert(name.into(), value.into());
                }
                None => return std::iter::once(word).chain(words).collect(),
            },
        }
    }
    Vec::new()
}

/// The colour that holds at the end of a line.
fn last_colour(line: &str, before: Option<String>) -> Option<String> {
    let Some(at) = line.rfind("\x1b[") else { return before };
    let behind = line.get(at..).unwrap_or_default();
    let Some(end) = behind.get(2..).and_then(|codes| codes.find('m')) else { return before };
    let code = behind.get(..end + 3).unwrap_or_default();
    (!matches!(code, "\x1b[m" | "\x1b[0m")).then(|| code.to_string())
}
