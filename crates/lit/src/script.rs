//! What a test file says about itself: `RUN:`, `DEFINE:`, `REQUIRES:` and their like.
//!
//! A keyword counts wherever it stands on a line, as in LLVM's lit; the first of a line takes the rest of it.

use super::feature;
use regex::Regex;
use std::sync::LazyLock;

/// Most bytes of a test file.
pub(super) const MAX_TEST: u64 = 256 << 20;

/// One directive that adds to the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunLine {
    /// The first line it stands on, from 1.
    pub(super) line: usize,
    /// The last line it stands on.
    pub(super) end: usize,
    /// The text after the keyword, continued lines joined.
    pub(super) text: String,
    /// What it is.
    pub(super) kind: LineKind,
}

/// What a directive is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    /// To be run.
    Run,
    /// `%{name} = value`, new.
    Define,
    /// `%{name} = value`, again.
    Redefine,
}

/// The contents of a test file.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Commands and definitions, in order.
    pub(super) lines: Vec<RunLine>,
    /// The expressions of `REQUIRES:`.
    pub(super) requires: Vec<String>,
    /// The expressions of `UNSUPPORTED:`.
    pub(super) unsupported: Vec<String>,
    /// The expressions of `XFAIL:`.
    pub(super) xfail: Vec<String>,
    /// `ALLOW_RETRIES:`
    pub(super) retries: Option<usize>,
}

impl LineKind {
    /// Its keyword.
    pub(super) fn keyword(self) -> &'static str {
        match self {
            LineKind::Run => "RUN:",
            LineKind::Define => "DEFINE:",
            LineKind::Redefine => "REDEFINE:",
        }
    }
}

impl RunLine {
    /// The lines it stands on, for messages.
    pub(super) fn place(&self) -> String {
        match self.line == self.end {
            true => format!("at line {}", self.line),
            false => format!("from line {} to {}", self.line, self.end),
        }
    }

    fn is_open(&self) -> bool {
        match self.kind {
            LineKind::Run => self.text.ends_with('\\'),
            _ => self.text.trim_end().ends_with('\\'),
        }
    }

    /// Takes one more line in.
    fn go_on(&mut self, text: &str, number: usize) -> Result<(), String> {
        match self.kind {
            LineKind::Run => {
                self.text.pop();
                self.text.push_str(text.trim_end());
            }
            _ => {
                if text.trim().is_empty() {
                    return Err("Substitution's continuation is empty".into());
                }
                let before = self.text.trim_end();
                let before = before.strip_suffix('\\').unwrap_or(before).trim_end();
                self.text = format!("{before} {}", text.trim_start());
            }
        }
        self.end = number;
        self.is_definition().map(|_| ())
    }

    /// Name and value, if it defines and is whole.
    pub(super) fn is_definition(&self) -> Result<Option<(&str, &str)>, String> {
        if self.kind == LineKind::Run || self.is_open() {
            return Ok(None);
        }
        let Some((name, value)) = self.text.split_once('=') else {
            return Err("Substitution's definition does not contain '='".into());
        };
        let name = name.trim();
        let inside = name.strip_prefix("%{").and_then(|rest| rest.strip_suffix('}'));
        let good = inside.is_some_and(|inside| {
            inside.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && inside.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_:".contains(letter))
        });
        if !good {
            return Err(format!(
                "Substitution name '{name}' is malformed as it must start with '%{{', it must end with '}}', and the \
                 rest must start with a letter or underscore and contain only alphanumeric characters, hyphens, \
                 underscores, and colons"
            ));
        }
        Ok(Some((name, value.trim())))
    }
}

/// In this order where several could begin at one place.
const KEYWORDS: &[&str] =
    &["RUN:", "XFAIL:", "REQUIRES:", "UNSUPPORTED:", "ALLOW_RETRIES:", "END.", "DEFINE:", "REDEFINE:"];

/// Reads a test file; the error says what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Script, String> {
    let script = parse_any(text)?;
    match script.lines.iter().any(|line| line.kind == LineKind::Run) {
        true => script.closed(),
        false => Err("Test has no 'RUN:' line".into()),
    }
}

/// As [`parse`], for a file that may have nothing to run.
pub(super) fn parse_any(text: &str) -> Result<Script, String> {
    let mut script = Script::default();
    let mut retries = Vec::new();
    for (number, line) in (1..).zip(text.split('\n')) {
        let Some((keyword, value)) = keyword(line) else { continue };
        let value = value.trim_end_matches('\r');
        if keyword == "END." {
            if value.trim().is_empty() {
                break;
            }
            continue;
        }
        script
            .take(keyword, value, number, &mut retries)
            .map_err(|error| format!("{error}\nin {keyword} directive on test line {number}"))?;
    }
    if retries.len() > 1 {
        return Err("Test has more than one ALLOW_RETRIES lines".into());
    }
    script.retries = retries.pop();
    Ok(script)
}

impl Script {
    /// Takes one line in.
    fn take(
        &mut self,
        keyword: &str,
        value: &str,
        number: usize,
        retries: &mut Vec<usize>,
    ) -> Result<(), String> {
        let kind = match keyword {
            "RUN:" => LineKind::Run,
            "DEFINE:" => LineKind::Define,
            "REDEFINE:" => LineKind::Redefine,
            "ALLOW_RETRIES:" => {
                let count = value.trim().parse();
                retries.push(count.map_err(|_| {
                    format!("INTEGER parser requires the input to be an integer (got {value})")
                })?);
                return Ok(());
            }
            "REQUIRES:" => return expressions(value, &mut self.requires),
            "UNSUPPORTED:" => return expressions(value, &mut self.unsupported),
            _ => return expressions(value, &mut self.xfail),
        };
        let value = with_line_numbers(value, number);
        if let Some(open) = self.lines.last_mut().filter(|last| last.kind == kind && last.is_open()) {
            return open.go_on(&value, number);
        }
        let text = if kind == LineKind::Run { value.trim().to_string() } else { value };
        let line = RunLine { line: number, end: number, text, kind };
        line.is_definition()?;
        self.lines.push(line);
        Ok(())
    }

    /// An error where a line says that it goes on, and nothing follows.
    fn closed(self) -> Result<Script, String> {
        if let Some(line) = self.lines.iter().find(|line| line.is_open()) {
            let keyword = line.kind.keyword();
            return Err(format!("Test has unterminated '{keyword}' directive (with '\\') {}", line.place()));
        }
        let lists =
            [("XFAIL:", &self.xfail), ("REQUIRES:", &self.requires), ("UNSUPPORTED:", &self.unsupported)];
        let open = lists.iter().find(|(_, list)| list.last().is_some_and(|last| last.ends_with('\\')));
        match open {
            Some((keyword, _)) => Err(format!("Test has unterminated '{keyword}' lines (with '\\')")),
            None => Ok(self),
        }
    }
}

/// Adds the expressions of a line to a list, each of which must make sense.
fn expressions(value: &str, list: &mut Vec<String>) -> Result<(), String> {
    let mut items = value.split(',').map(str::trim).filter(|item| !item.is_empty());
    if let Some(open) = list.last_mut().filter(|last| last.ends_with('\\')) {
        open.pop();
        open.push_str(items.next().unwrap_or_default());
    }
    list.extend(items.map(String::from));
    for item in list {
        if item != "*" && !item.ends_with('\\') {
            feature::holds(item, &Default::default())?;
        }
    }
    Ok(())
}

/// The first keyword of a line and the text after it.
pub(super) fn keyword(line: &str) -> Option<(&'static str, &str)> {
    let (at, keyword) = KEYWORDS
        .iter()
        .filter_map(|keyword| Some((line.find(keyword)?, *keyword)))
        .min_by_key(|(at, _)| *at)?;
    Some((keyword, line.get(at + keyword.len()..).unwrap_or_default()))
}

/// Puts line numbers in for `%(line)`, `%(line+3)` and `%(line-3)`.
fn with_line_numbers(text: &str, number: usize) -> String {
    static OFFSET: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"%\(line(?: *([+-]) *([0-9]+))?\)").ok());
    let Some(regex) = OFFSET.as_ref() else { return text.into() };
    let number = number as i128;
    regex
        .replace_all(text, |found: &regex::Captures<'_>| {
            let offset = found.get(2).and_then(|digits| digits.as_str().parse::<i64>().ok());
            match (found.get(1).map(|sign| sign.as_str()), offset) {
                (Some("+"), Some(offset)) => (number + i128::from(offset)).to_string(),
                (Some(_), Some(offset)) => (number - i128::from(offset)).to_string(),
                (None, _) => number.to_string(),
                (Some(_), None) => found.get(0).map_or("", |all| all.as_str()).to_string(),
            }
        })
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_numbered() {
        let text =
            "# RUN: a \\\n# RUN:   b %(line) %(line+2)\n\n// RUN: c %(line - 1) %(line*2)\n// END.\nRUN: d\n";
        let script = parse(text).unwrap();
        let lines: Vec<_> =
            script.lines.iter().map(|line| (line.line, line.end, line.text.as_str())).collect();
        assert_eq!(lines, [(1, 2, "a    b 2 4"), (4, 4, "c 3 %(line*2)")]);
    }

    #[test]
    fn keywords_are_distinguished() {
        let text = "REQUIRES: a, b && c\nUNSUPPORTED: d\nXFAIL: *\nREDEFINE: %{x} = 1\nEND. is not the end\nMY-RUN: yes RUN: x\n\
                    REQUIRES: e && \\\nREQUIRES: f\n";
        let script = parse(text).unwrap();
        assert_eq!(script.requires, ["a", "b && c", "e && f"]);
        assert_eq!(script.unsupported, ["d"]);
        assert_eq!(script.xfail, ["*"]);
        let kinds: Vec<_> = script.lines.iter().map(|line| (line.kind, line.text.as_str())).collect();
        assert_eq!(kinds, [(LineKind::Redefine, " %{x} = 1"), (LineKind::Run, "yes RUN: x")]);
        assert_eq!(script.lines[0].is_definition(), Ok(Some(("%{x}", "1"))));
    }

    #[test]
    fn invalid_options_are_reported() {
        for (text, expected) in [
            ("RUN: a \\\n", "Test has unterminated 'RUN:' directive (with '\\') at line 1"),
            (
                "RUN: a \\\nRUN: b \\\nDEFINE: %{a} = b\n",
                "Test has unterminated 'RUN:' directive (with '\\') from line 1 to 2",
            ),
            (
                "ALLOW_RETRIES: x\nRUN: a\n",
                "INTEGER parser requires the input to be an integer (got  x)\nin ALLOW_RETRIES: directive on test line 1",
            ),
            ("ALLOW_RETRIES: 1\nALLOW_RETRIES: 2\nRUN: a\n", "Test has more than one ALLOW_RETRIES lines"),
            ("REQUIRES: a \\\nRUN: a\n", "Test has unterminated 'REQUIRES:' lines (with '\\')"),
            (
                "DEFINE: %{a}\nRUN: a\n",
                "Substitution's definition does not contain '='\nin DEFINE: directive on test line 1",
            ),
            (
                "DEFINE: %{a} = \\\nDEFINE:  \nRUN: a\n",
                "Substitution's continuation is empty\nin DEFINE: directive on test line 2",
            ),
            ("nothing", "Test has no 'RUN:' line"),
        ] {
            assert_eq!(parse(text).map(|_| ()), Err(expected.to_string()), "{text}");
        }
    }
}
