//! Pipelines as text: `inline,simplify{nodes=20000},repeat{max=4}(cse,dce)`.
//!
//! ```text
//! pipeline = step ("," step)*            blanks and line ends may stand anywhere
//! step     = name options? ("(" pipeline ")")?
//! options  = "{" (name ("=" value)?)* "}"   separated by blanks or commas
//! value    = word | "\"" text "\""
//! ```
//!
//! A name is a pass, a named pipeline, or a nest; `_` and `-` are the same in names.

use super::{Nest, PassSet, Pipeline, Step};
use crate::diag::{Diagnostic, Result, Source, Span, nearest};
use crate::passes::{Options, PassOption};
use std::sync::Arc;

/// Nests may stand so deep.
const MAX_DEPTH: usize = 32;

const REPEAT: &[PassOption] = &[PassOption::int("max", 10, 1, "how often at most")];
const FUNCTION: &[PassOption] = &[PassOption::text("name", "*", "which functions")];
const NESTS: [&str; 3] = ["repeat", "function", "subgraphs"];

impl Pipeline {
    /// Reads a pipeline of the given passes: see `docs/tools.md` for the language.
    pub fn parse(text: &str, set: &PassSet) -> Result<Pipeline> {
        parse(text, set)
    }
}

fn parse(text: &str, set: &PassSet) -> Result<Pipeline> {
    let source = Source::new("<pipeline>", text);
    let mut reader = Reader { source, at: 0, set };
    let steps = reader.steps(0, false)?;
    reader.blanks();
    match reader.peek() {
        None => Ok(Pipeline { steps }),
        Some(c) => Err(reader.error(format!("unexpected '{c}'"), reader.at, reader.at + c.len_utf8())),
    }
}

type Given = Vec<(String, Option<String>)>;

struct Reader<'a> {
    source: Arc<Source>,
    at: usize,
    set: &'a PassSet,
}

impl Reader<'_> {
    fn steps(&mut self, depth: usize, in_function: bool) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            self.blanks();
            while self.eat(',') {
                self.blanks();
            }
            match self.peek() {
                None | Some(')') => return Ok(steps),
                Some(_) => self.step(depth, in_function, &mut steps)?,
            }
            self.blanks();
            if !matches!(self.peek(), None | Some(',' | ')')) {
                let end = self.at + 1;
                return Err(self.error("expected ',' between passes", self.at, end));
            }
        }
    }

    fn step(&mut self, depth: usize, in_function: bool, steps: &mut Vec<Step>) -> Result<()> {
        let start = self.at;
        let name = self.word().replace('_', "-");
        let end = self.at;
        if name.is_empty() {
            return Err(self.error("expected the name of a pass", start, start + 1));
        }
        self.blanks();
        let given = self.options()?;
        self.blanks();
        let body_at = self.at;
        let body = if self.eat('(') {
            if depth >= MAX_DEPTH {
                return Err(self.error("nests are too deep", start, end));
            }
            let only_graphs = in_function || name != "repeat";
            let body = self.steps(depth + 1, only_graphs)?;
            if !self.eat(')') {
                return Err(self.error("this '(' is not closed", body_at, body_at + 1));
            }
            Some(body)
        } else {
            None
        };
        let at = Span::new(&self.source, start, end);
        if NESTS.contains(&name.as_str()) {
            let Some(body) = body else {
                return Err(self.error(format!("'{name}' needs passes: {name}(...)"), start, end));
            };
            steps.push(Step::Nest(nest(&name, &given).map_err(|e| e.at(&at))?, body));
            return Ok(());
        }
        if body.is_some() {
            return Err(self.error(format!("'{name}' takes no nested passes"), start, end));
        }
        if let Some(pass) = self.set.pass(&name) {
            if in_function && pass.run.is_of_module() {
                let message = format!("'{name}' works on whole modules and cannot run over single functions");
                return Err(self.error(message, start, end));
            }
            let options = Options::read(&name, pass.options, &given).map_err(|e| e.at(&at))?;
            steps.push(Step::Pass(*pass, options));
        } else if let Some(text) = self.set.named(&name) {
            if !given.is_empty() {
                return Err(self.error(format!("the pipeline '{name}' has no options"), start, end));
            }
            if depth >= MAX_DEPTH {
                return Err(self.error("pipelines name each other too deep", start, end));
            }
            let source = Source::new(format!("<pipeline {name}>"), text);
            let mut reader = Reader { source, at: 0, set: self.set };
            steps.extend(reader.steps(depth + 1, in_function)?);
        } else {
            return Err(self.unknown(&name).at(&at));
        }
        Ok(())
    }

    /// `{a=1 b "c d"}`, or nothing.
    fn options(&mut self) -> Result<Given> {
        let mut given = Vec::new();
        let open = self.at;
        if !self.eat('{') {
            return Ok(given);
        }
        loop {
            self.blanks();
            while self.eat(',') {
                self.blanks();
            }
            if self.eat('}') {
                return Ok(given);
            }
            let start = self.at;
            let name = self.word();
            if name.is_empty() {
                let (message, at) = match self.peek() {
                    None => ("this '{' is not closed", open),
                    Some(_) => ("expected the name of an option", start),
                };
                return Err(self.error(message, at, at + 1));
            }
            self.blanks();
            let value = if self.eat('=') {
                self.blanks();
                Some(self.value()?)
            } else {
                None
            };
            given.push((name, value));
        }
    }

    fn value(&mut self) -> Result<String> {
        let start = self.at;
        if !self.eat('"') {
            let value = self.take(|c| !c.is_whitespace() && !",{}()\"".contains(c));
            if value.is_empty() {
                return Err(self.error("expected a value", start, start + 1));
            }
            return Ok(value);
        }
        let mut value = String::new();
        while let Some(c) = self.peek() {
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(value),
                '\\' => {
                    if let Some(next) = self.peek() {
                        self.at += next.len_utf8();
                        value.push(next);
                    }
                }
                c => value.push(c),
            }
        }
        Err(self.error("this text has no end", start, start + 1))
    }

    fn word(&mut self) -> String {
        self.take(|c| c.is_alphanumeric() || c == '_' || c == '-' || c == '.')
    }

    fn take(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let rest = &self.source.text()[self.at..];
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        let taken = rest[..end].to_string();
        self.at += end;
        taken
    }

    fn peek(&self) -> Option<char> {
        self.source.text()[self.at..].chars().next()
    }

    fn eat(&mut self, c: char) -> bool {
        let met = self.peek() == Some(c);
        if met {
            self.at += c.len_utf8();
        }
        met
    }

    fn blanks(&mut self) {
        self.take(char::is_whitespace);
    }

    fn error(&self, message: impl Into<String>, start: usize, end: usize) -> Diagnostic {
        Diagnostic::usage(message).at(&Span::new(&self.source, start, end))
    }

    fn unknown(&self, name: &str) -> Diagnostic {
        let error = Diagnostic::usage(format!("there is no pass '{name}'"));
        match nearest(name, self.set.names().chain(NESTS)) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error.hint("`flambeau opt --help-passes` lists them"),
        }
    }
}

fn nest(name: &str, given: &Given) -> Result<Nest> {
    match name {
        "repeat" => Ok(Nest::Repeat(Options::read(name, REPEAT, given)?.count("max")?)),
        "function" => Ok(Nest::Function(Options::read(name, FUNCTION, given)?.text("name")?.to_string())),
        _ => Options::read(name, &[], given).map(|_| Nest::Subgraphs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str) -> String {
        let mut set = PassSet::builtin();
        set.add_pipeline("both", "cse,dce");
        parse(text, &set).map_or_else(|e| e.to_string(), |p| p.to_text())
    }

    #[test]
    fn pipelines_print_as_they_are_read() {
        for text in
            ["cse,dce", "repeat{max=3}(cse,repeat{max=10}(dce))", "function{name=f*}(subgraphs(dce))", ""]
        {
            assert_eq!(round(text), text);
        }
        assert_eq!(round(" constant_pooling ,\n dce,"), "constant-pooling,dce");
        assert_eq!(round("repeat(both)"), "repeat{max=10}(cse,dce)");
    }

    #[test]
    fn a_pipeline_promises_what_it_was_given() {
        use crate::dialects::Contract;
        for (text, contract) in [
            ("default", Contract::Exact),
            ("peephole,simplify", Contract::Exact),
            ("repeat(simplify{contract=nan-relaxed}),dce", Contract::NanRelaxed),
            ("peephole{contract=exact},simplify{contract=fast-math}", Contract::FastMath),
        ] {
            let mut pipeline = parse(text, &PassSet::builtin()).expect("a pipeline");
            assert_eq!(pipeline.contract(), contract, "{text}");
            if text == "default" {
                assert!(pipeline.set_default("contract", "fast-math"), "as a command does");
                assert_eq!(pipeline.contract(), Contract::FastMath);
            }
        }
    }

    #[test]
    fn faults_are_named_with_their_place() {
        for (text, part) in [
            ("dcee", "did you mean 'dce'?"),
            ("dce{x=1}", "'dce' has no option 'x'"),
            ("repeat(dce", "this '(' is not closed"),
            ("repeat{max=0}(dce)", "max must be at least 1, not 0"),
            ("repeat{max=two}(dce)", "max is a number, not 'two'"),
            ("cse dce", "expected ',' between passes"),
            ("dce(cse)", "takes no nested passes"),
            ("repeat", "needs passes"),
            ("dce{", "this '{' is not closed"),
            ("dce)", "unexpected ')'"),
            ("repeat{max=\"1", "has no end"),
        ] {
            assert!(round(text).contains(part), "{text}: {}", round(text));
        }
    }
}
