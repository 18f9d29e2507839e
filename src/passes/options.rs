//! Options of passes: what they take, how they are read, and their values. Knows no pass.

use crate::diag::{Diagnostic, Result, nearest};
use std::fmt::Write;

/// An option of a pass.
#[derive(Clone, Copy, Debug)]
pub struct PassOption {
    /// `nodes`
    pub name: &'static str,
    /// What it takes, and its default.
    pub kind: OptionKind,
    /// A few keywords.
    pub summary: &'static str,
}

/// What an option takes, with its default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionKind {
    /// A number; not below the second one.
    Int(i64, i64),
    /// `true` or `false`; the name alone means true.
    Bool(bool),
    /// Any text.
    Text(&'static str),
    /// One of these keywords; the first is the default.
    Choice(&'static [&'static str]),
}

impl PassOption {
    /// A number that is at least `least`.
    pub const fn int(name: &'static str, default: i64, least: i64, summary: &'static str) -> PassOption {
        PassOption { name, kind: OptionKind::Int(default, least), summary }
    }

    /// A switch.
    pub const fn bool(name: &'static str, default: bool, summary: &'static str) -> PassOption {
        PassOption { name, kind: OptionKind::Bool(default), summary }
    }

    /// A text.
    pub const fn text(name: &'static str, default: &'static str, summary: &'static str) -> PassOption {
        PassOption { name, kind: OptionKind::Text(default), summary }
    }

    /// A keyword out of a few.
    pub const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        summary: &'static str,
    ) -> PassOption {
        PassOption { name, kind: OptionKind::Choice(words), summary }
    }

    /// The value where nothing is said.
    pub(super) fn default(&self) -> OptionValue {
        match self.kind {
            OptionKind::Int(value, _) => OptionValue::Int(value),
            OptionKind::Bool(value) => OptionValue::Bool(value),
            OptionKind::Text(text) => OptionValue::Text(text.to_string()),
            OptionKind::Choice(words) => OptionValue::Text(words.first().unwrap_or(&"").to_string()),
        }
    }

    fn read(&self, text: Option<&str>) -> Result<OptionValue, String> {
        let name = self.name;
        match (self.kind, text) {
            (OptionKind::Bool(_), None | Some("true" | "1")) => Ok(OptionValue::Bool(true)),
            (OptionKind::Bool(_), Some("false" | "0")) => Ok(OptionValue::Bool(false)),
            (OptionKind::Bool(_), Some(other)) => Err(format!("{name} is true or false, not '{other}'")),
            (_, None) => Err(format!("{name} needs a value")),
            (OptionKind::Int(_, least), Some(text)) => match text.parse() {
                Ok(value) if value >= least => Ok(OptionValue::Int(value)),
                Ok(value) => Err(format!("{name} must be at least {least}, not {value}")),
                Err(_) => Err(format!("{name} is a number, not '{text}'")),
            },
            (OptionKind::Text(_), Some(text)) => Ok(OptionValue::Text(text.to_string())),
            (OptionKind::Choice(words), Some(text)) if words.contains(&text) => {
                Ok(OptionValue::Text(text.to_string()))
            }
            (OptionKind::Choice(words), Some(text)) => {
                Err(format!("{name} is one of {}, not '{text}'", words.join(", ")))
            }
        }
    }
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// A number.
    Int(i64),
    /// A switch.
    Bool(bool),
    /// A text or keyword.
    Text(String),
}

/// The values of a pass's options in the order of their declaration.
#[derive(Clone, Debug, Default)]
pub struct Options {
    values: Vec<(&'static str, OptionValue)>,
    /// Names of the options that the pipeline's text gives; the others have their defaults.
    given: Vec<&'static str>,
}

impl PartialEq for Options {
    /// Options that come to the same are equal, whether they were written or not.
    fn eq(&self, other: &Options) -> bool {
        self.values == other.values
    }
}

impl Options {
    /// The defaults, with what `given` says instead.
    pub fn read(
        owner: &str,
        declared: &'static [PassOption],
        given: &[(String, Option<String>)],
    ) -> Result<Options> {
        let mut values: Vec<_> = declared.iter().map(|o| (o.name, o.default())).collect();
        let mut written = Vec::new();
        for (name, text) in given {
            let Some(at) = declared.iter().position(|o| o.name == name || o.name == name.replace('_', "-"))
            else {
                return Err(unknown_option(owner, declared, name));
            };
            written.push(declared[at].name);
            values[at].1 = declared[at]
                .read(text.as_deref())
                .map_err(|why| Diagnostic::usage(format!("'{owner}': {why}")))?;
        }
        Ok(Options { values, given: written })
    }

    /// Sets a text or keyword that the pass declares and the pipeline's text does not give. Whether it was set.
    pub(super) fn set_default(&mut self, name: &str, text: &str) -> bool {
        if self.given.contains(&name) {
            return false;
        }
        match self.values.iter_mut().find(|(n, _)| *n == name) {
            Some((_, OptionValue::Text(value))) => {
                text.clone_into(value);
                true
            }
            _ => false,
        }
    }

    /// The value of a declared option.
    pub fn get(&self, name: &str) -> Option<&OptionValue> {
        self.values.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    /// A number. Fails only for a name that the pass does not declare as a number.
    pub fn int(&self, name: &str) -> Result<i64> {
        match self.get(name) {
            Some(OptionValue::Int(value)) => Ok(*value),
            _ => Err(Diagnostic::internal(format!("the pass declares no number '{name}'"))),
        }
    }

    /// A number that counts something.
    pub fn count(&self, name: &str) -> Result<usize> {
        Ok(usize::try_from(self.int(name)?).unwrap_or(0))
    }

    /// A switch. Fails only for a name that the pass does not declare as a switch.
    pub fn bool(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            Some(OptionValue::Bool(value)) => Ok(*value),
            _ => Err(Diagnostic::internal(format!("the pass declares no switch '{name}'"))),
        }
    }

    /// A text or keyword. Fails only for a name that the pass does not declare as one.
    pub fn text(&self, name: &str) -> Result<&str> {
        match self.get(name) {
            Some(OptionValue::Text(text)) => Ok(text),
            _ => Err(Diagnostic::internal(format!("the pass declares no text '{name}'"))),
        }
    }

    /// `{nodes=20000 check=true}` with all options, defaults too; empty without options.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for (name, value) in &self.values {
            out.push(if out.is_empty() { '{' } else { ' ' });
            let _ = match value {
                OptionValue::Int(v) => write!(out, "{name}={v}"),
                OptionValue::Bool(v) => write!(out, "{name}={v}"),
                OptionValue::Text(v) if is_bare(v) => write!(out, "{name}={v}"),
                OptionValue::Text(v) => {
                    write!(out, "{name}=\"{}\"", v.replace('\\', "\\\\").replace('"', "\\\""))
                }
            };
        }
        if !out.is_empty() {
            out.push('}');
        }
        out
    }
}

/// Whether a value needs no quotes in a pipeline.
fn is_bare(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "._-+:/@*".contains(c))
}

fn unknown_option(owner: &str, declared: &[PassOption], name: &str) -> Diagnostic {
    let error = Diagnostic::usage(format!("'{owner}' has no option '{name}'"));
    match nearest(name, declared.iter().map(|o| o.name)) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None if declared.is_empty() => error.note(format!("'{owner}' has no options")),
        None => {
            let names: Vec<&str> = declared.iter().map(|o| o.name).collect();
            error.note(format!("its options are {}", names.join(", ")))
        }
    }
}
