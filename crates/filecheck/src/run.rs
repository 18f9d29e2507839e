//! One run: prefixes, definitions, check file, input, checks, dump; and its exit status.

use super::check as checker;
use super::checkfile::{self, BadDefine, Unusable};
use super::dump;
use super::pattern::Stop;
use super::report::Report;
use super::source::{Complaint, Console, Sources, Span};
use super::variables::Variables;
use super::{DumpInput, Options};

/// Exit status when all checks hold.
pub(super) const GOOD: i32 = 0;
/// Exit status when a check fails.
pub(super) const FAILED: i32 = 1;
/// Exit status when there is nothing to check with.
pub(super) const UNUSABLE: i32 = 2;

/// Checks `input` against the directives in `check_text`; the error is what FileCheck would write.
pub fn check(check_text: &str, input: &str, options: &Options) -> Result<(), String> {
    let mut console = Console { out: Vec::new(), color: options.color };
    let mut run = Run { options, console: &mut console, sources: Sources::default(), command: "FileCheck" };
    let status = run.run(("check", check_text.into()), |_| Ok(("input".into(), input.into())));
    match status {
        GOOD => Ok(()),
        _ => Err(String::from_utf8_lossy(&console.out).into_owned()),
    }
}

/// What is wrong with a check file as such.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// First byte of the place in the text.
    pub start: usize,
    /// Byte after it.
    pub end: usize,
    /// The message, as FileCheck writes it.
    pub message: String,
}

/// Reads the directives of a text and reports what is wrong with them, without an input. That there are none is a
/// problem too, at the start. Places are those of the text as it stands.
pub fn problems(check_text: &str, options: &Options) -> Vec<Problem> {
    let mut sources = Sources::default();
    // Blanks stay unchanged here, so that places do.
    let file = sources.add("", check_text.into());
    let mut variables = Variables::default();
    let (text, places) = checkfile::definitions_text(&options.defines);
    let whole = sources.add("", text.into_bytes());
    let places: Vec<Span> = places.into_iter().map(|(start, end)| whole.part(start, end)).collect();
    // What is wrong with definitions of the command line stands on no line of the file.
    let _ = checkfile::define(&sources, &places, &mut variables);
    let complaints = match checkfile::read(&sources, file, &[], options, &mut variables) {
        Ok(_) => return Vec::new(),
        Err(Unusable::Stop(Stop::Plain(one) | Stop::Bracket(one))) => vec![one],
        Err(Unusable::Stop(Stop::Nested(all))) => all,
        Err(Unusable::NoChecks(prefixes)) => {
            let message = format!("no check strings found with prefix {}", prefixes.join(", "));
            return vec![Problem { start: 0, end: 0, message }];
        }
    };
    let here = complaints.into_iter().filter(|c| c.span.buffer == file.buffer);
    here.map(|c| Problem { start: c.span.start, end: c.span.end, message: c.message }).collect()
}

/// The state of a run.
pub(super) struct Run<'a> {
    pub(super) options: &'a Options,
    pub(super) console: &'a mut Console,
    pub(super) sources: Sources,
    /// The command line, for messages.
    pub(super) command: &'a str,
}

/// A buffer's name and its text.
pub(super) type Named = (String, Vec<u8>);

impl Run<'_> {
    /// Runs on a check file and the input that `read_input` brings once the checks are known to be good.
    /// Gives the exit status.
    pub(super) fn run(
        &mut self,
        (check_name, check_text): (&str, Vec<u8>),
        read_input: impl FnOnce(&mut Console) -> Result<Named, i32>,
    ) -> i32 {
        let options = self.options;
        let check_file = self.sources.add(check_name, self.canonical(check_text));
        let implicit: Vec<Span> =
            options.implicit_check_not.iter().map(|text| self.add_implicit(text)).collect();
        let mut variables = Variables::default();
        if let Err(status) = self.define(&mut variables) {
            return status;
        }
        let checks = match checkfile::read(&self.sources, check_file, &implicit, options, &mut variables) {
            Ok(checks) => checks,
            Err(error) => return self.unusable(error),
        };
        let (name, text) = match read_input(self.console) {
            Ok(input) => input,
            Err(status) => return status,
        };
        if text.is_empty() && !options.allow_empty {
            self.console.text(format!("FileCheck error: '{name}' is empty.\n"));
            self.console.text(format!("FileCheck command line:  {}\n", self.command));
            return UNUSABLE;
        }
        let input = self.sources.add(name.clone(), self.canonical(text));
        let dump_input = options.dump_input();
        let mut report = Report {
            sources: &self.sources,
            options,
            console: self.console,
            annotations: (dump_input != DumpInput::Never).then(Vec::new),
        };
        let good = checker::run(&self.sources, input, &checks, options, &mut variables, &mut report);
        let annotations = report.annotations.take().unwrap_or_default();
        if dump_input == DumpInput::Always || (dump_input == DumpInput::Fail && !good) {
            self.console.text(format!(
                "\nInput file: {name}\nCheck file: {check_name}\n\n\
                 -dump-input=help explains the following input dump.\n\n"
            ));
            dump::dump(&self.sources, &annotations, input, check_file, &implicit, options, self.console);
        }
        if good { GOOD } else { FAILED }
    }

    /// The text with blanks made one and carriage returns before line feeds left out.
    fn canonical(&self, text: Vec<u8>) -> Vec<u8> {
        let mut out: Vec<u8> = Vec::with_capacity(text.len());
        let mut bytes = text.into_iter().peekable();
        while let Some(byte) = bytes.next() {
            if byte == b'\r' && bytes.peek() == Some(&b'\n') {
                continue;
            }
            if self.options.strict_whitespace || !matches!(byte, b' ' | b'\t') {
                out.push(byte);
                continue;
            }
            out.push(b' ');
            while matches!(bytes.peek(), Some(b' ' | b'\t')) {
                bytes.next();
            }
        }
        out
    }

    /// Adds a buffer that shows the option that an implicit check comes from.
    fn add_implicit(&mut self, text: &str) -> Span {
        const OPTION: &str = "-implicit-check-not='";
        let whole = self.sources.add("command line", format!("{OPTION}{text}'").into_bytes());
        whole.part(OPTION.len(), OPTION.len() + text.len())
    }

    fn define(&mut self, variables: &mut Variables) -> Result<(), i32> {
        let (text, places) = checkfile::definitions_text(&self.options.defines);
        let whole = self.sources.add("Global defines", text.into_bytes());
        let places: Vec<Span> = places.into_iter().map(|(start, end)| whole.part(start, end)).collect();
        let Err(errors) = checkfile::define(&self.sources, &places, variables) else { return Ok(()) };
        for error in errors {
            match error {
                BadDefine::Placed(complaint) => self.complain(&complaint),
                BadDefine::Bare(message) => self.console.text(message),
            }
            self.console.text("\n");
        }
        Err(UNUSABLE)
    }

    fn complain(&mut self, complaint: &Complaint) {
        self.console.complain(&self.sources, complaint);
    }

    fn unusable(&mut self, error: Unusable) -> i32 {
        match error {
            Unusable::Stop(Stop::Plain(complaint)) => self.complain(&complaint),
            Unusable::Stop(Stop::Nested(complaints)) => {
                for complaint in complaints {
                    self.complain(&complaint);
                    self.console.text("\n");
                }
            }
            Unusable::Stop(Stop::Bracket(complaint)) => {
                self.complain(&complaint);
                return FAILED;
            }
            Unusable::NoChecks(prefixes) => {
                let plural = if prefixes.len() > 1 { "es" } else { "" };
                let list: Vec<String> = prefixes.iter().map(|prefix| format!("'{prefix}:'")).collect();
                self.console
                    .text(format!("error: no check strings found with prefix{plural} {}\n", list.join(", ")));
            }
        }
        UNUSABLE
    }
}
