//! Reproducers: what failed in one file, which is graph text with a head of comments. `--run-reproducer` replays it.

use crate::diag::{Diagnostic, Result};
use crate::ir::{Module, PrintOptions};
use std::fmt::Write;

const HEAD: &str = "# flambeau reproducer";

/// What failed, with everything that it takes to fail again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    /// The file it came from.
    pub name: String,
    /// The graph text.
    pub text: String,
    /// The passes.
    pub pipeline: String,
    /// The error.
    pub error: String,
    /// Unregistered ops are allowed.
    pub carries: bool,
    /// Every op must fit its row.
    pub strict: bool,
    /// Nothing is verified between passes.
    pub unverified: bool,
    /// How many changes passes may make.
    pub limits: Option<String>,
    /// Names and texts of dialect files.
    pub dialects: Vec<(String, String)>,
}

impl Case {
    /// What failed in a file of a name.
    pub fn of(module: &Module, pipeline: String, name: &str, error: &Diagnostic) -> Case {
        let (name, error) = (name.to_string(), error.message().to_string());
        // Running a program allows ops of unknown dialects until they are reached.
        Case { name, error, carries: true, ..Case::new(module, pipeline) }
    }

    /// A module and passes.
    pub(super) fn new(module: &Module, pipeline: String) -> Case {
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = module.write_text(&mut text, &PrintOptions::default());
        Case { text: String::from_utf8_lossy(&text).into_owned(), pipeline, ..Case::default() }
    }
}

/// A reproducer as text.
pub fn write(case: &Case) -> String {
    let mut out = format!("{HEAD}; replay it with: flambeau opt --run-reproducer FILE\n");
    let one_line = |text: &str| text.replace('\n', " ");
    let _ = writeln!(out, "# from: {}", one_line(&case.name));
    let _ = writeln!(out, "# error: {}", one_line(&case.error));
    let _ = writeln!(out, "# pipeline: {}", one_line(&case.pipeline));
    for (is_set, word) in
        [(case.carries, "carries"), (case.strict, "strict"), (case.unverified, "unverified")]
    {
        if is_set {
            let _ = writeln!(out, "# option: {word}");
        }
    }
    if let Some(limits) = &case.limits {
        let _ = writeln!(out, "# limits: {}", one_line(limits));
    }
    for (name, text) in &case.dialects {
        let _ = writeln!(out, "# dialect: {}", one_line(name));
        for line in text.lines() {
            let _ = writeln!(out, "# | {line}");
        }
    }
    let _ = write!(out, "# end\n{}", case.text);
    out
}

/// Reads a reproducer.
pub fn read(text: &str) -> Result<Case> {
    let mut lines = text.split_inclusive('\n');
    if !lines.next().is_some_and(|line| line.starts_with(HEAD)) {
        return Err(Diagnostic::input("not a reproducer file")
            .hint("a reproducer begins with `# flambeau reproducer`; opt writes one when a pass fails"));
    }
    let mut case = Case::default();
    for line in lines.by_ref() {
        let line = line.trim_end_matches(['\n', '\r']);
        if line == "# end" {
            case.text = lines.collect();
            return Ok(case);
        }
        if let Some(code) = line.strip_prefix("# |") {
            if let Some((_, text)) = case.dialects.last_mut() {
                text.push_str(code.strip_prefix(' ').unwrap_or(code));
                text.push('\n');
            }
            continue;
        }
        let Some((word, value)) = line.trim_start_matches("# ").split_once(':') else { continue };
        let value = value.trim();
        match word {
            "from" => case.name = value.to_string(),
            "error" => case.error = value.to_string(),
            "pipeline" => case.pipeline = value.to_string(),
            "limits" => case.limits = Some(value.to_string()),
            "dialect" => case.dialects.push((value.to_string(), String::new())),
            "option" => match value {
                "carries" => case.carries = true,
                "strict" => case.strict = true,
                "unverified" => case.unverified = true,
                other => {
                    return Err(Diagnostic::input(format!("the reproducer has an unknown option '{other}'")));
                }
            },
            other => return Err(Diagnostic::input(format!("the reproducer has an unknown line '{other}'"))),
        }
    }
    Err(Diagnostic::input("the reproducer ends before its `# end`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let case = Case {
            name: "m.ir".into(),
            text: "graph():\n  return ()\n".into(),
            pipeline: "cse,repeat{max=3}(dce)".into(),
            error: "pass 'dce' panicked".into(),
            carries: true,
            limits: Some("dce=3".into()),
            dialects: vec![("q.dialect".into(), "dialect q\n\nop q::f() -> ()\n".into())],
            ..Case::default()
        };
        assert_eq!(read(&write(&case)).expect("its own text"), case);
        assert!(read("graph():\n").is_err() && read("# flambeau reproducer\n# what: x\n").is_err());
    }
}
