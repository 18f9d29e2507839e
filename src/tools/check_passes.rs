//! Recorded results of single passes: graphs before and after. `flambeau check` reads files of them.
//!
//! A line is `{name, before, after: {pass: text}}`. Each pass runs alone on `before`; the graph it gives must be the
//! recorded one, values renamed in order of appearance and places dropped. A result is skipped where the graph calls
//! functions that it does not hold and the pass needs them.

use super::check::Status;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Module, ParseOptions, PrintOptions, parse_graph_source};
use crate::passes::Context;
use crate::resources::pool;
use crate::toolkit::Toolkit;
use crate::tools::limits::LimitOptions;
use hashbrown::HashMap;
use indexmap::IndexMap;
use serde_json::Value as Json;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Lines of a difference that a report shows.
const MAX_LINES: usize = 12;

/// A graph and what each pass makes of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name, unique in its file.
    pub name: String,
    before: String,
    after: IndexMap<String, String>,
}

/// What one pass made of one graph.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The case.
    pub case: String,
    /// The pass, as `--passes` names it.
    pub pass: String,
    /// Whether it is the recorded graph.
    pub status: Status,
    /// Why not.
    pub message: String,
}

/// Reads a file, if it holds results of passes.
pub fn read(path: &Path) -> Result<Option<Vec<Case>>> {
    let named = |e: String| Diagnostic::input(format!("{}: {e}", path.display()));
    if path.is_dir() {
        return Ok(None);
    }
    let text = crate::diag::files::read_text(path).map_err(|e| named(e.to_string()))?;
    let mut cases = Vec::new();
    for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let json: Json = serde_json::from_str(line).map_err(|e| named(format!("line {}: {e}", n + 1)))?;
        match from_json(&json) {
            Some(case) => cases.push(case),
            None if cases.is_empty() => return Ok(None),
            None => return Err(named(format!("line {}: a case needs a name, 'before' and 'after'", n + 1))),
        }
    }
    Ok(Some(cases).filter(|cases| !cases.is_empty()))
}

fn from_json(json: &Json) -> Option<Case> {
    let text = |key: &str| json.get(key).and_then(Json::as_str).map(str::to_string);
    let after = json.get("after")?.as_object()?;
    let after = after.iter().map(|(pass, text)| Some((pass.replace('_', "-"), text.as_str()?.to_string())));
    Some(Case { name: text("name")?, before: text("before")?, after: after.collect::<Option<_>>()? })
}

/// Runs all passes of all cases, a number of them at a time.
pub fn check(
    cases: &[Case],
    threads: usize,
    stack_bytes: usize,
    (toolkit, limits): (&Toolkit, &LimitOptions),
) -> Vec<Outcome> {
    let check = |n: usize| {
        let _watched = limits.watch_case();
        let _bounded = limits.install();
        check_case(toolkit, &cases[n])
    };
    pool::jobs(threads, stack_bytes, cases.len(), check).concat()
}

fn check_case(toolkit: &Toolkit, case: &Case) -> Vec<Outcome> {
    let outcome = |(pass, expected): (&String, &String)| {
        let run = catch_unwind(AssertUnwindSafe(|| check_one(toolkit, case, pass, expected)));
        let (status, message) = run.unwrap_or((Status::Error, "panic".to_string()));
        Outcome { case: case.name.clone(), pass: pass.clone(), status, message }
    };
    case.after.iter().map(outcome).collect()
}

fn check_one(toolkit: &Toolkit, case: &Case, pass: &str, expected: &str) -> (Status, String) {
    let calls = case.before.contains("prim::CallFunction") || case.before.contains("prim::CallMethod");
    if pass == "inline" && calls {
        return (Status::Skipped, "the graph calls functions that it does not define".to_string());
    }
    match run(toolkit, case, pass) {
        Err(error) if error.kind() == crate::diag::ErrorKind::Usage => {
            (Status::Unsupported, error.to_string())
        }
        Err(error) => (Status::Error, error.to_string()),
        Ok(actual) => {
            let (expected, actual) = (normal_form(expected), normal_form(&actual));
            if expected == actual {
                (Status::Passed, String::new())
            } else {
                (Status::Wrong, difference(&expected, &actual))
            }
        }
    }
}

fn run(toolkit: &Toolkit, case: &Case, pass: &str) -> Result<String> {
    let pipeline = toolkit.parse_pipeline(pass)?;
    let source = crate::diag::Source::new(case.name.as_str(), case.before.clone());
    let mut graph = parse_graph_source(&source, &ParseOptions::default()).map_err(|mut errors| {
        errors.pop().unwrap_or_else(|| Diagnostic::internal("the parser gave no error"))
    })?;
    let module = Module::default();
    pipeline.run_graph(&mut graph, &Context::new(toolkit.registry(), &module))?;
    let violations = crate::ir::verify_graph(&graph, &crate::ir::NoLaws, None);
    match violations.into_iter().next() {
        Some(violation) => Err(violation),
        None => Ok(graph.to_text(&PrintOptions::default())),
    }
}

/// The text with values renamed in order of appearance, without places.
pub fn normal_form(text: &str) -> String {
    let mut names: HashMap<&str, usize> = HashMap::new();
    let mut out = String::with_capacity(text.len());
    for line in text.lines().map(without_place) {
        let line = line.trim_end();
        if line.is_empty() {
            continue;
        }
        rename(line, &mut names, &mut out);
        out.push('\n');
    }
    out
}

/// Writes a line with its values renamed. Quoted text stays.
fn rename<'a>(line: &'a str, names: &mut HashMap<&'a str, usize>, out: &mut String) {
    let mut quoted = false;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        if c == '\\' && quoted {
            length += rest[1..].chars().next().map_or(0, char::len_utf8);
        } else if c == '"' {
            quoted = !quoted;
        } else if c == '%' && !quoted {
            let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
            length = rest[1..].find(|c| !is_name(c)).map_or(rest.len(), |n| n + 1);
            let next = names.len();
            let _ = write!(out, "%{}", names.entry(&rest[..length]).or_insert(next));
            rest = &rest[length..];
            continue;
        }
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
}

/// The line without ` # file:line:column` at its end.
fn without_place(line: &str) -> &str {
    let Some((start, place)) = line.rsplit_once(" # ") else { return line };
    let mut parts = place.rsplitn(3, ':');
    let is_number = |part: Option<&str>| part.is_some_and(|p| p.trim().parse::<u64>().is_ok());
    if is_number(parts.next()) && is_number(parts.next()) { start } else { line }
}

/// The first lines that differ, with the last that is equal.
fn difference(expected: &str, actual: &str) -> String {
    let (expected, actual): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let same = expected.iter().zip(&actual).take_while(|(a, b)| a == b).count();
    let mut out = String::from("another graph than recorded\n");
    for line in expected.iter().skip(same.saturating_sub(1)).take(1) {
        let _ = writeln!(out, "  {line}");
    }
    for line in expected.iter().skip(same).take(MAX_LINES) {
        let _ = writeln!(out, "- {line}");
    }
    for line in actual.iter().skip(same).take(MAX_LINES) {
        let _ = writeln!(out, "+ {line}");
    }
    out
}

/// A table with a row for each pass, and the mean over passes.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut rows: std::collections::BTreeMap<&str, (usize, usize)> = Default::default();
    for outcome in outcomes.iter().filter(|o| o.status != Status::Skipped) {
        let row = rows.entry(&outcome.pass).or_default();
        row.0 += usize::from(outcome.status == Status::Passed);
        row.1 += 1;
    }
    let mut out = String::new();
    let share = |(passed, all): (usize, usize)| 100.0 * passed as f64 / all.max(1) as f64;
    for (pass, row) in &rows {
        let _ = writeln!(out, "{pass:<24} {:>5} of {:>5}  {:5.1} %", row.0, row.1, share(*row));
    }
    let mean = rows.values().map(|row| share(*row)).sum::<f64>() / rows.len().max(1) as f64;
    let _ = writeln!(out, "mean over passes         {mean:20.1} %");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places_do_not_matter() {
        let a = "graph(%x.1 : int):\n  %2 : str = prim::Constant[value=\"%x # a:1:2\"]() # f.py:1:2\n  return (%x.1)\n";
        let b = "graph(%n : int):\n  %s : str = prim::Constant[value=\"%x # a:1:2\"]()\n  return (%n)\n";
        assert_eq!(normal_form(a), normal_form(b));
        assert_ne!(normal_form(a), normal_form(&b.replace("(%n)\n", "(%s)\n")));
    }
}
