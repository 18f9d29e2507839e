//! Rewrites the checks of a test from what its tool writes.
//!
//! A test takes part if a `RUN:` line is a pipe that ends in `FileCheck %s`. Its plain checks are replaced by one
//! `CHECK` and a `CHECK-NEXT` for each further line; values named `%name` become variables.

use super::exec::Broken;
use super::script::{LineKind, Script};
use super::syntax::Command;
use super::{Config, shell, substitutions, syntax};
use std::collections::BTreeMap;
use std::path::Path;

/// Rewrites the file; false if there is nothing to rewrite.
pub(super) fn update(path: &Path, text: &str, script: &Script, config: &Config) -> Result<bool, String> {
    let mut all = substitutions(path, config);
    let mut shell = shell(path, config);
    let told = |broken| match broken {
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
            let output = shell.output_of(before).map_err(told)?;
            let output = String::from_utf8_lossy(&output).into_owned();
            if rewrite(&mut lines, &prefix, &output) {
                seen.push(prefix);
            }
        }
    }
    let new = lines.concat();
    if seen.is_empty() || new == text {
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
    let mut checks = Vec::new();
    // An empty line cannot be checked first.
    for line in output.lines().skip_while(|line| line.trim().is_empty()) {
        let suffix = if checks.is_empty() { "" } else { "-NEXT" };
        checks.push(match line.trim() {
            "" => format!("{prefix}-EMPTY:"),
            line => format!("{prefix}{suffix}: {}", pattern(line, &mut names)),
        });
    }
    checks
}

/// A line as a pattern: values become variables, marks of blocks are escaped.
fn pattern(line: &str, names: &mut BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let behind = rest.get(1..).unwrap_or_default();
        let length = behind.chars().take_while(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).count();
        if letter == '%' && length > 0 {
            let value = rest.get(..=length).unwrap_or_default();
            match names.get(value) {
                Some(name) => out.push_str(&format!("[[{name}]]")),
                None => {
                    let name = variable(value, names);
                    out.push_str(&format!("[[{name}:%[-a-zA-Z0-9._]+]]"));
                    names.insert(value.into(), name);
                }
            }
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
