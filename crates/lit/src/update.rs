//! Rewrites the checks of a test from what its tool writes, or writes the first ones.
//!
//! A test takes part if a `RUN:` line is a pipe that ends in `FileCheck %s`. Its plain checks are replaced by one
//! `CHECK` and a `CHECK-NEXT` for each further line; values become variables named as they are, or as the op that makes them.
//! Checks of lines that hold stay unchanged. If a prefix has no checks, they are inserted after the test's first `RUN:` lines.

use super::changed::{lines_to_check, values};
use super::config::Config;
use super::script::{self, LineKind, Script};
use super::shell::Shell;
use super::surroundings::{shell, substitutions};
use super::syntax::{Command, Pipeline};
use super::{mutate, syntax};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Rewrites the file; false if there is nothing to rewrite.
pub(super) fn update(path: &Path, text: &str, script: &Script, config: &Config) -> Result<bool, String> {
    let mut all = substitutions(path, config);
    let mut shell = shell(path, config);
    let own = all.get("%s").unwrap_or_default().to_string();
    let mut lines: Vec<String> = text.split_inclusive('\n').map(String::from).collect();
    let mut seen = Vec::new();
    let mut fresh = Vec::new();
    for line in &script.lines {
        let expanded = match line.kind {
            LineKind::Run => all.expand(&line.text, &config.features)?,
            _ => {
                all.define(line)?;
                continue;
            }
        };
        for pipeline in syntax::parse(&expanded)? {
            let Some((check, before)) = pipeline.commands.split_last() else { continue };
            let Some(prefix) = check_prefix(check, &own).filter(|_| !before.is_empty()) else { continue };
            // Of several lines with one prefix the first decides.
            if seen.contains(&prefix) {
                continue;
            }
            // Checks that hold stay unchanged.
            if shell.run(std::slice::from_ref(&pipeline)).map_err(mutate::message)? == 0 {
                seen.push(prefix);
                continue;
            }
            let checks = new_checks(&prefix, &mut shell, &pipeline, config)?;
            if !rewrite(&mut lines, &prefix, &checks) {
                fresh.push(checks);
            }
            seen.push(prefix);
        }
    }
    insert(&mut lines, &fresh)?;
    let new = lines.concat();
    if new == text {
        return Ok(false);
    }
    std::fs::write(path, new).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(true)
}

/// The checks of what a pipe writes to its FileCheck: all of it, or only what its tools changed.
fn new_checks(
    prefix: &str,
    shell: &mut Shell<'_>,
    pipeline: &Pipeline,
    config: &Config,
) -> Result<Vec<String>, String> {
    let before = pipeline.commands.split_last().map(|(_, before)| before).unwrap_or_default();
    let mut output = |commands: &[Command]| {
        let bytes = shell.output_of(commands).map_err(mutate::message)?;
        Ok::<_, String>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let written = output(before)?;
    if written.trim().is_empty() {
        return Err("the tool writes nothing, so that there is nothing to check".into());
    }
    let Some(knobs) = &config.only_changed else {
        let keep: Vec<bool> = written.lines().map(|_| true).collect();
        return Ok(checks(prefix, &written, &keep));
    };
    let idle = mutate::idle(before, knobs).ok_or(
        "no option is known that makes the tool leave out its work: --update-changed=TOOL:OPTION names one",
    )?;
    let keep = lines_to_check(&output(&idle)?, &written);
    match keep.contains(&true) {
        true => Ok(checks(prefix, &written, &keep)),
        false => Err("the tool changes nothing, so that there is nothing to check".into()),
    }
}

/// Inserts checks of prefixes without any: after the first `RUN:` lines, with the same comment mark.
fn insert(lines: &mut Vec<String>, fresh: &[Vec<String>]) -> Result<(), String> {
    let script = script::parse_any(&lines.concat())?;
    let Some(first) =
        script.lines.iter().find(|line| line.kind == LineKind::Run).filter(|_| !fresh.is_empty())
    else {
        return Ok(());
    };
    let mut end = first.end;
    while lines.get(end).is_some_and(|line| script::keyword(line).is_some()) {
        end += 1;
    }
    let run = lines.get(first.line - 1).cloned().unwrap_or_default();
    let lead = run.split("RUN:").next().unwrap_or_default();
    let mut new = Vec::new();
    for checks in fresh {
        new.push("\n".to_string());
        new.extend(checks.iter().map(|check| format!("{lead}{check}\n")));
    }
    if lines.get(end).is_some_and(|line| !line.trim().is_empty()) {
        new.push("\n".to_string());
    }
    if let Some(last) = lines.get_mut(end - 1).filter(|last| !last.ends_with('\n')) {
        last.push('\n');
    }
    lines.splice(end..end, new);
    Ok(())
}

/// The first prefix of a FileCheck command that reads the test itself.
fn check_prefix(command: &Command, own: &str) -> Option<String> {
    let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
    let (name, rest) = words.split_first()?;
    if *name != "FileCheck" || !rest.contains(&own) {
        return None;
    }
    let mut prefix = "CHECK";
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        let option = word.trim_start_matches('-');
        let (option, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        if matches!(option, "check-prefix" | "check-prefixes") {
            prefix = value.or_else(|| rest.next().copied())?.split(',').next()?;
            break;
        }
        if option == "input-file" {
            return None;
        }
    }
    Some(prefix.into())
}

/// Puts new checks where the first old one stands; false if there is none.
fn rewrite(lines: &mut Vec<String>, prefix: &str, checks: &[String]) -> bool {
    let is_check = |line: &String| directive_at(line, prefix).is_some();
    let Some(first) = lines.iter().position(is_check) else { return false };
    let lead: String =
        lines.get(first).and_then(|line| line.get(..directive_at(line, prefix)?)).unwrap_or_default().into();
    let kept_before = first;
    lines.retain(|line| !is_check(line));
    lines.splice(kept_before..kept_before, checks.iter().map(|check| format!("{lead}{check}\n")));
    true
}

/// Where a directive with this prefix stands on a line.
fn directive_at(line: &str, prefix: &str) -> Option<usize> {
    line.match_indices(prefix).map(|(at, _)| at).find(|at| {
        let before = line.get(..*at).and_then(|before| before.chars().last());
        let behind = line.get(at + prefix.len()..).unwrap_or_default();
        let suffixes = ["", "-NEXT", "-SAME", "-NOT", "-DAG", "-LABEL", "-EMPTY"];
        let ends =
            |suffix: &&str| behind.strip_prefix(*suffix).is_some_and(|end| end.starts_with([':', '{']));
        !before.is_some_and(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
            && (suffixes.iter().any(ends) || behind.starts_with("-COUNT-"))
    })
}

/// One check for each line that is kept.
fn checks(prefix: &str, output: &str, keep: &[bool]) -> Vec<String> {
    let mut names = BTreeMap::new();
    let mut defined = BTreeSet::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let lines = || output.lines().zip(keep);
    let kept = || lines().filter(|(_, keep)| **keep).map(|(line, _)| line);
    kept().flat_map(values).for_each(|value| *counts.entry(value).or_default() += 1);
    let mut checks = Vec::new();
    let mut is_next = false;
    for (line, keep) in lines() {
        let line = line.trim();
        name_results(line, &mut names);
        // An empty line cannot be checked first.
        if !keep || line.is_empty() && !is_next {
            is_next = false;
            continue;
        }
        let suffix = if is_next { "-NEXT" } else { "" };
        is_next = true;
        checks.push(match line {
            "" => format!("{prefix}-EMPTY:"),
            line => format!("{prefix}{suffix}: {}", pattern(line, &mut names, &mut defined, &counts)),
        });
    }
    checks
}

/// A line as a pattern: values become variables, marks of blocks are escaped.
fn pattern(
    line: &str,
    names: &mut BTreeMap<String, String>,
    defined: &mut BTreeSet<String>,
    counts: &BTreeMap<&str, usize>,
) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let behind = rest.get(1..).unwrap_or_default();
        let length = behind.chars().take_while(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).count();
        if letter == '%' && length > 0 {
            let value = rest.get(..=length).unwrap_or_default();
            let name = match names.get(value) {
                Some(name) => name.clone(),
                None => variable(value, names),
            };
            names.insert(value.into(), name.clone());
            let is_used = counts.get(value).is_some_and(|count| *count > 1);
            out.push_str(&match defined.insert(value.to_string()) {
                true if !is_used => "{{%[-a-zA-Z0-9._]+}}".to_string(),
                true => format!("[[{name}:%[-a-zA-Z0-9._]+]]"),
                false => format!("[[{name}]]"),
            });
            rest = rest.get(length + 1..).unwrap_or_default();
        } else if rest.starts_with("[[") {
            out.push_str("{{\\[\\[}}");
            rest = rest.get(2..).unwrap_or_default();
        } else if rest.starts_with("{{") {
            out.push_str("{{[{][{]}}");
            rest = rest.get(2..).unwrap_or_default();
        } else {
            out.push(letter);
            rest = rest.get(letter.len_utf8()..).unwrap_or_default();
        }
    }
    out
}

/// Names values that are only numbered by what makes them: `%5 : int = prim::Constant[...]` is `CONSTANT`, `%0 = arith.addf` is
/// `ADDF`, `%2 = tail call` is `CALL`, `%7 = prim::GetAttr[name="weight"]` is `WEIGHT`. Such checks read as what they are about, and
/// a new value before them renames none.
fn name_results(line: &str, names: &mut BTreeMap<String, String>) {
    let Some((results, op)) = line.split_once(" = ") else { return };
    let op = ["tail ", "musttail ", "notail "].iter().find_map(|word| op.strip_prefix(word)).unwrap_or(op);
    let op = op.trim_start_matches('"');
    let end =
        op.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, ':' | '.' | '_'))).unwrap_or(op.len());
    let (op, after) = op.split_at(end);
    let own = after.strip_prefix("[name=\"").and_then(|rest| rest.split('"').next());
    let op = own.or(op.rsplit([':', '.']).next()).unwrap_or_default();
    if op.is_empty() {
        return;
    }
    for result in results.split(',').filter_map(|part| part.split_whitespace().next()) {
        // `%3:2` is two values.
        let result = result.split(':').next().unwrap_or_default();
        let is_number =
            result.strip_prefix('%').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        if is_number && !names.contains_key(result) {
            let name = variable(op, names);
            names.insert(result.into(), name);
        }
    }
}

/// A variable name that no other value has: `MUL`, then `MUL_2`.
fn variable(value: &str, names: &BTreeMap<String, String>) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
    let mut name: String = value.trim_start_matches('%').chars().map(plain).collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name.insert(0, 'V');
    }
    let is_free = |name: &String| names.values().all(|known| known != name);
    let mut all = std::iter::once(name.clone()).chain((2..).map(|n: usize| format!("{name}_{n}")));
    all.find(is_free).unwrap_or(name.clone())
}
