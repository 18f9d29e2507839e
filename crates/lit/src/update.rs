//! Rewrites the checks of a test from what its tool writes.
//!
//! A test takes part if a `RUN:` line is a pipe that ends in `FileCheck %s`. Its plain checks are replaced by one
//! `CHECK` and a `CHECK-NEXT` for each further line; values become variables named as they are, or as the op that makes them.
//! Checks of lines that hold are left alone.

use super::exec::Broken;
use super::script::{LineKind, Script};
use super::syntax::Command;
use super::{Config, shell, substitutions, syntax};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Rewrites the file; false if there is nothing to rewrite.
pub(super) fn update(path: &Path, text: &str, script: &Script, config: &Config) -> Result<bool, String> {
    let mut all = substitutions(path, config);
    let mut shell = shell(path, config);
    let message = |broken| match broken {
        Broken::TimedOut => "reached the time limit".to_string(),
        Broken::Bad(error) | Broken::Refused(error) => error,
    };
    let own = all.get("%s").unwrap_or_default().to_string();
    let mut lines: Vec<String> = text.split_inclusive('\n').map(String::from).collect();
    let mut seen = Vec::new();
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
            if shell.run(std::slice::from_ref(&pipeline)).map_err(message)? == 0 {
                seen.push(prefix);
                continue;
            }
            let output = shell.output_of(before).map_err(message)?;
            let output = String::from_utf8_lossy(&output).into_owned();
            if rewrite(&mut lines, &prefix, &output) {
                seen.push(prefix);
            }
        }
    }
    let new = lines.concat();
    if new == text {
        return Ok(false);
    }
    std::fs::write(path, new).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(true)
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
fn rewrite(lines: &mut Vec<String>, prefix: &str, output: &str) -> bool {
    let is_check = |line: &String| directive_at(line, prefix).is_some();
    let Some(first) = lines.iter().position(is_check) else { return false };
    let lead: String =
        lines.get(first).and_then(|line| line.get(..directive_at(line, prefix)?)).unwrap_or_default().into();
    let kept_before = first;
    lines.retain(|line| !is_check(line));
    let checks = checks(prefix, output).into_iter().map(|check| format!("{lead}{check}\n"));
    lines.splice(kept_before..kept_before, checks);
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

/// One check for each line.
fn checks(prefix: &str, output: &str) -> Vec<String> {
    let mut names = BTreeMap::new();
    let mut defined = BTreeSet::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    values(output).for_each(|value| *counts.entry(value).or_default() += 1);
    let mut checks = Vec::new();
    // An empty line cannot be checked first.
    for line in output.lines().skip_while(|line| line.trim().is_empty()) {
        let suffix = if checks.is_empty() { "" } else { "-NEXT" };
        checks.push(match line.trim() {
            "" => format!("{prefix}-EMPTY:"),
            line => {
                name_results(line, &mut names);
                format!("{prefix}{suffix}: {}", pattern(line, &mut names, &mut defined, &counts))
            }
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

/// The values of a text, in order: `%` and a name.
fn values(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    text.match_indices('%').filter_map(move |(at, _)| {
        let length = text[at + 1..].find(|c| !is_name(c)).unwrap_or(text.len() - at - 1);
        (length > 0).then(|| &text[at..=at + length])
    })
}

/// Names values that are only numbered by what makes them: `%5 : int = prim::Constant[...]` is `CONSTANT`, `%0 = arith.addf` is
/// `ADDF`. Such checks read as what they are about, and a new value before them renames none.
fn name_results(line: &str, names: &mut BTreeMap<String, String>) {
    let Some((results, op)) = line.split_once(" = ") else { return };
    let op = op.trim_start_matches('"');
    let end =
        op.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, ':' | '.' | '_'))).unwrap_or(op.len());
    let op = op[..end].rsplit([':', '.']).next().unwrap_or_default();
    if op.is_empty() {
        return;
    }
    for result in results.split(',').filter_map(|part| part.split_whitespace().next()) {
        let is_number =
            result.strip_prefix('%').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        if is_number && !names.contains_key(result) {
            let name = variable(op, names);
            names.insert(result.into(), name);
        }
    }
}

/// A variable name that no other value has.
fn variable(value: &str, names: &BTreeMap<String, String>) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
    let mut name: String = value.trim_start_matches('%').chars().map(plain).collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name.insert(0, 'V');
    }
    while names.values().any(|known| *known == name) {
        name.push('_');
    }
    name
}
