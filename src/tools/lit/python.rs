//! `lit.cfg`, `lit.cfg.py`, `lit.local.cfg`: what LLVM's suites say of their folders, read without Python.
//!
//! Known is the part that such files are mostly made of: assignments to fields of `config`, additions to its lists,
//! and `if` over features. What is not known is left out and told by name; nothing is executed.

use super::Config;

/// Names of such files, the stronger one first. `{}` is the prefix, `lit` as a rule.
pub(super) const NAMES: [&str; 3] = ["{}.local.cfg", "{}.cfg.py", "{}.cfg"];
/// Longer files are no configuration.
const MAX_LENGTH: usize = 1 << 20;

/// Applies a file to the configuration; gives what was not understood, as `line: text`.
pub(super) fn apply(text: &str, config: &mut Config) -> Vec<(usize, String)> {
    let mut notes = Vec::new();
    // Deeper lines than this belong to a branch that is not taken.
    let mut skip: Option<usize> = None;
    // Whether the last condition at a depth held; none where it was not understood.
    let mut last: Vec<(usize, Option<bool>)> = Vec::new();
    for (line, indent, statement) in statements(text) {
        if skip.is_some_and(|depth| indent > depth) {
            continue;
        }
        skip = None;
        last.retain(|(depth, _)| *depth <= indent);
        let chosen = match statement.strip_suffix(':').map(str::trim) {
            Some("else") => match last.pop() {
                Some((_, held)) => held.map(|held| !held),
                None => None,
            },
            Some(head) => {
                let condition = head.strip_prefix("if ").and_then(|text| holds(text, config));
                if condition.is_none() {
                    notes.push((line, statement.clone()));
                }
                last.push((indent, condition));
                condition
            }
            None => {
                if !statement_of(&statement, config) {
                    notes.push((line, statement));
                }
                continue;
            }
        };
        if chosen != Some(true) {
            skip = Some(indent);
        }
    }
    notes
}

/// Logical lines: number, indentation, text. Comments, empty lines and texts that stand alone are left out.
fn statements(text: &str) -> Vec<(usize, usize, String)> {
    let mut out: Vec<(usize, usize, String)> = Vec::new();
    let mut depth = 0i32;
    let mut in_doc: Option<&str> = None;
    for (number, line) in (1..).zip(text.get(..MAX_LENGTH).unwrap_or(text).lines()) {
        if let Some(mark) = in_doc {
            if line.contains(mark) {
                in_doc = None;
            }
            continue;
        }
        let plain = line.trim();
        if let Some(mark) = ["\"\"\"", "'''"].into_iter().find(|mark| plain.starts_with(mark)) {
            if plain.matches(mark).count() < 2 {
                in_doc = Some(mark);
            }
            continue;
        }
        let (plain, change) = without_comment(plain);
        if plain.is_empty() {
            continue;
        }
        match out.last_mut().filter(|_| depth > 0) {
            Some((.., open)) => {
                open.push(' ');
                open.push_str(plain);
            }
            None => out.push((number, line.len() - line.trim_start().len(), plain.to_string())),
        }
        depth = (depth + change).max(0);
    }
    out
}

/// The line in front of its comment, and how many brackets it opens.
fn without_comment(line: &str) -> (&str, i32) {
    let (mut quote, mut depth, mut escaped) = (None, 0, false);
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(mark), letter) if mark == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '#') => return (line.get(..at).unwrap_or_default().trim_end(), depth),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, _) => {}
        }
    }
    (line, depth)
}

/// Whether a condition over features holds; none where it is something else.
fn holds(text: &str, config: &Config) -> Option<bool> {
    let text = text.trim();
    for (word, all) in [(" or ", false), (" and ", true)] {
        if let Some((left, right)) = text.split_once(word) {
            let (left, right) = (holds(left, config)?, holds(right, config)?);
            return Some(if all { left && right } else { left || right });
        }
    }
    if let Some(rest) = text.strip_prefix("not ") {
        return holds(rest, config).map(|held| !held);
    }
    let (name, turned) = match text.split_once(" not in ") {
        Some((name, "config.available_features")) => (name, true),
        Some(_) => return None,
        None => match text.split_once(" in ") {
            Some((name, "config.available_features")) => (name, false),
            _ => return None,
        },
    };
    let name = one_text(name)?;
    Some(config.features.contains(&name) != turned)
}

/// Takes a statement in; false where it is not understood.
fn statement_of(text: &str, config: &mut Config) -> bool {
    let harmless = ["import ", "from ", "pass", "config.test_format", "config.test_source_root"];
    let also = ["config.test_exec_root", "lit_config.note", "lit_config.warning"];
    if harmless.iter().chain(&also).any(|start| text.starts_with(start)) {
        return true;
    }
    let Some(rest) = text.strip_prefix("config.") else { return false };
    if let Some((field, value)) = rest.split_once('=').filter(|(field, _)| !field.contains('(')) {
        let (field, more) = match field.trim_end().strip_suffix('+') {
            Some(field) => (field.trim_end(), true),
            None => (field.trim_end(), false),
        };
        return assign(field, more, value.trim(), config);
    }
    let Some((field, call)) = rest.split_once('.') else { return false };
    let Some((method, arguments)) = call.split_once('(') else { return false };
    let Some(arguments) = arguments.trim_end().strip_suffix(')') else { return false };
    add(field, method, arguments.trim(), config)
}

fn assign(field: &str, more: bool, value: &str, config: &mut Config) -> bool {
    if let Some(name) = field.strip_prefix("environment[").and_then(|rest| rest.strip_suffix(']')) {
        let (Some(name), Some(value)) = (one_text(name), one_text(value)) else { return false };
        config.environment.insert(name, value);
        return true;
    }
    match field {
        "name" => one_text(value).map(|name| config.name = name).is_some(),
        "unsupported" if matches!(value, "True" | "False") => {
            config.unsupported = value == "True";
            true
        }
        "suffixes" | "excludes" | "available_features" => {
            let Some(list) = texts(value) else { return false };
            match field {
                "suffixes" if more => config.suffixes.extend(list),
                "suffixes" => config.suffixes = list,
                "excludes" if more => config.excludes.extend(list),
                "excludes" => config.excludes = list,
                _ => config.features.extend(list),
            }
            true
        }
        _ => false,
    }
}

fn add(field: &str, method: &str, arguments: &str, config: &mut Config) -> bool {
    match (field, method) {
        ("substitutions", "append" | "insert") => {
            let pair =
                if method == "insert" { arguments.split_once(',').map_or("", |p| p.1) } else { arguments };
            let Some([key, value]) = texts(pair).and_then(|pair| <[String; 2]>::try_from(pair).ok()) else {
                return false;
            };
            config.substitutions.retain(|(known, _)| *known != key);
            config.substitutions.push((key, value));
            true
        }
        ("environment", "pop") => {
            // What is given where there is none does not matter.
            let Some((name, _)) = literal(arguments) else { return false };
            config.environment.remove(&name);
            true
        }
        ("available_features" | "suffixes" | "excludes", "add" | "append") => match one_text(arguments) {
            Some(word) => extend(field, vec![word], config),
            None => false,
        },
        ("available_features" | "suffixes" | "excludes", "update" | "extend") => match texts(arguments) {
            Some(words) => extend(field, words, config),
            None => false,
        },
        _ => false,
    }
}

fn extend(field: &str, words: Vec<String>, config: &mut Config) -> bool {
    match field {
        "suffixes" => config.suffixes.extend(words),
        "excludes" => config.excludes.extend(words),
        _ => config.features.extend(words),
    }
    true
}

/// The texts of a list, set or tuple, or of `set([...])`.
fn texts(value: &str) -> Option<Vec<String>> {
    let value = value.trim();
    if let Some(inner) = value.strip_prefix("set(").and_then(|rest| rest.strip_suffix(')')) {
        return if inner.trim().is_empty() { Some(Vec::new()) } else { texts(inner) };
    }
    let marks = [('[', ']'), ('{', '}'), ('(', ')')];
    let inner = marks.iter().find_map(|(open, close)| value.strip_prefix(*open)?.strip_suffix(*close))?;
    let mut rest = inner.trim();
    let mut out = Vec::new();
    while !rest.is_empty() {
        let (text, behind) = literal(rest)?;
        out.push(text);
        rest = behind.trim_start();
        rest = match rest.strip_prefix(',') {
            Some(behind) => behind.trim_start(),
            None if rest.is_empty() => rest,
            None => return None,
        };
    }
    Some(out)
}

fn one_text(value: &str) -> Option<String> {
    let (text, rest) = literal(value.trim())?;
    rest.trim().is_empty().then_some(text)
}

/// A text in quotes, or several in a row or added, and what stands behind.
fn literal(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut rest = text;
    loop {
        let (raw, quoted) = match rest.strip_prefix(['r', 'R']) {
            Some(quoted) => (true, quoted),
            None => (false, rest),
        };
        let mark = quoted.chars().next().filter(|mark| matches!(mark, '"' | '\''))?;
        let mut letters = quoted.char_indices().skip(1);
        let end = loop {
            match letters.next()? {
                (at, letter) if letter == mark => break at,
                (_, '\\') => match letters.next()? {
                    (_, letter) if raw => out.extend(['\\', letter]),
                    (_, 'n') => out.push('\n'),
                    (_, 't') => out.push('\t'),
                    (_, letter @ ('\\' | '"' | '\'')) => out.push(letter),
                    (_, letter) => out.extend(['\\', letter]),
                },
                (_, letter) => out.push(letter),
            }
        };
        rest = quoted.get(end + 1..)?;
        let behind = rest.trim_start();
        let behind = behind.strip_prefix('+').unwrap_or(behind).trim_start();
        if !behind.trim_start_matches(['r', 'R']).starts_with(['"', '\'']) {
            return Some((out, rest));
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Config, Vec<(usize, String)>) {
        let mut config = Config { features: ["foo".to_string()].into(), ..Config::default() };
        config.environment.insert("GONE".into(), "1".into());
        let notes = apply(text, &mut config);
        (config, notes)
    }

    #[test]
    fn what_suites_mostly_say_is_understood() {
        let (config, notes) = read(
            "# a comment\nimport lit.formats\n\"\"\"a text\nof two lines\"\"\"\nconfig.name = 'suite'\n\
             config.test_format = lit.formats.ShTest()\nconfig.suffixes = ['.txt', \".ll\"]  # two\n\
             config.suffixes.add('.s')\nconfig.excludes = [\n  'Inputs',\n  'x.txt',\n]\n\
             config.substitutions.append((\"%protect\", \"env -u X\"))\n\
             config.substitutions.insert(0, ('%two', 'a' \"b\" + r'\\c'))\n\
             config.available_features.add('bar')\nconfig.environment['WHO'] = \"me\"\n\
             config.environment.pop('GONE', None)\n",
        );
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!(
            (config.name.as_str(), config.suffixes),
            ("suite", vec![".txt".into(), ".ll".into(), ".s".into()])
        );
        assert_eq!(config.excludes, ["Inputs", "x.txt"]);
        assert!(config.substitutions.contains(&("%protect".into(), "env -u X".into())));
        assert!(config.substitutions.contains(&("%two".into(), "ab\\c".into())));
        assert!(config.features.contains("bar") && !config.environment.contains_key("GONE"));
        assert_eq!(config.environment.get("WHO").map(String::as_str), Some("me"));
    }

    #[test]
    fn conditions_over_features_choose() {
        for (condition, runs) in [
            ("'foo' in config.available_features", true),
            ("not 'foo' in config.available_features", false),
            ("'bar' not in config.available_features", true),
            ("'bar' in config.available_features or 'foo' in config.available_features", true),
            ("'bar' in config.available_features and 'foo' in config.available_features", false),
        ] {
            let (config, notes) = read(&format!(
                "if {condition}:\n    config.name = 'yes'\nelse:\n    config.name = 'no'\nconfig.excludes = []\n"
            ));
            assert_eq!(config.name, if runs { "yes" } else { "no" }, "{condition}");
            assert!(notes.is_empty() && config.excludes.is_empty());
        }
    }

    #[test]
    fn what_is_not_understood_is_left_out_and_named() {
        let (config, notes) = read(
            "for x in y:\n    config.unsupported = True\nif sys.platform in ['win32']:\n    config.unsupported = True\n\
             config.suffixes = make()\nconfig.unsupported = f()\nx = 1\n",
        );
        let lines: Vec<usize> = notes.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 3, 5, 6, 7]);
        assert!(!config.unsupported);
    }
}
