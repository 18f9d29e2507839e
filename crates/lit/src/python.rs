//! `lit.cfg`, `lit.cfg.py`, `lit.local.cfg`: what LLVM's suites say of their folders, read without Python.
//!
//! Known is the part that such files are mostly made of: assignments, additions to the lists of `config`, and `if`.
//! Unknown statements are skipped and reported by name; nothing is executed.

use super::config::Config;
use super::python_value::{Scope, Value, value};
use flambeau_files as files;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Names of files that begin a suite, the stronger one first. `{}` is the prefix, `lit` as a rule.
pub(super) const SUITES: &[&str] = &["{}.site.cfg", "{}.site.cfg.py", "{}.cfg", "{}.cfg.py"];
/// Names of files for a folder of a suite.
pub(super) const LOCALS: &[&str] = &["{}.local.cfg", "{}.local.cfg.py"];
/// Longer files are not configuration.
const MAX_LENGTH: usize = 1 << 20;
/// Most bytes of all values that files assign.
const MAX_ASSIGNED: usize = 16 << 20;
/// Deepest nesting of files that load each other.
const MAX_DEPTH: usize = 8;

/// What was not understood: line and text.
type Notes = Vec<(usize, String)>;

/// Applies a file to the configuration; gives what was not understood. The error is what the file itself refuses.
pub(super) fn apply(file: &Path, config: &mut Config) -> Result<Notes, String> {
    // The suite keeps its name, whatever a folder calls itself.
    let variables = [("config.root.name".to_string(), Value::Text(config.name.clone()))].into();
    let mut reader = Reader { config, variables, assigned: 0, notes: Vec::new() };
    reader.file(file, 0)?;
    Ok(reader.notes)
}

struct Reader<'c> {
    config: &'c mut Config,
    variables: BTreeMap<String, Value>,
    /// Weight of all values assigned so far.
    assigned: usize,
    notes: Notes,
}

/// Where the reader stands among `if`, `elif` and `else`.
#[derive(Clone, Copy)]
struct Branch {
    indent: usize,
    /// Whether one of the branches was taken; none where a condition was not understood.
    taken: Option<bool>,
}

impl Reader<'_> {
    fn file(&mut self, file: &Path, depth: usize) -> Result<(), String> {
        let text = files::read(file, MAX_LENGTH as u64)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|_| format!("fatal: unable to load config file: '{}'", file.display()))?;
        if depth > MAX_DEPTH {
            return Err(format!("{}: files load each other too deeply", file.display()));
        }
        self.text(&text, file, depth)
    }

    fn text(&mut self, text: &str, file: &Path, depth: usize) -> Result<(), String> {
        // Deeper lines than this belong to a branch that is not taken.
        let mut skip: Option<usize> = None;
        let mut open: Vec<Branch> = Vec::new();
        for (line, indent, statement) in statements(text) {
            if skip.is_some_and(|depth| indent > depth) {
                continue;
            }
            skip = None;
            open.retain(|branch| branch.indent <= indent);
            let Some(head) = statement.strip_suffix(':').map(str::trim) else {
                if let Some((holds, body)) = self.condition_in_line(&statement, file) {
                    open.push(Branch { indent, taken: Some(holds) });
                    if holds && !self.statement(body, file, depth)? {
                        self.notes.push((line, statement));
                    }
                    continue;
                }
                if !self.statement(&statement, file, depth)? {
                    self.notes.push((line, statement));
                }
                continue;
            };
            let before = open.pop_if(|branch| branch.indent == indent).and_then(|branch| branch.taken);
            let condition = |text: &str, reader: &Self| reader.value(text, file).map(|value| value.holds());
            let (chosen, taken) = if head == "else" {
                (before == Some(false), Some(true))
            } else if let Some(text) = head.strip_prefix("elif ") {
                let holds = condition(text, self);
                (before == Some(false) && holds == Some(true), holds.zip(before).map(|(a, b)| a || b))
            } else if let Some(text) = head.strip_prefix("if ") {
                let holds = condition(text, self);
                (holds == Some(true), holds)
            } else {
                (false, None)
            };
            if taken.is_none() {
                self.notes.push((line, statement.clone()));
            }
            open.push(Branch { indent, taken });
            if !chosen {
                skip = Some(indent);
            }
        }
        Ok(())
    }

    /// Whether the condition of an `if` with its statement in the same line holds, and the statement.
    fn condition_in_line<'s>(&self, statement: &'s str, file: &Path) -> Option<(bool, &'s str)> {
        let rest = statement.strip_prefix("if ")?;
        rest.match_indices(':').find_map(|(at, _)| {
            let (condition, body) = (rest.get(..at)?, rest.get(at + 1..)?.trim());
            Some((self.value(condition, file)?.holds(), body))
        })
    }

    fn value(&self, text: &str, file: &Path) -> Option<Value> {
        value(text, &Scope { config: self.config, variables: &self.variables, file })
    }

    /// Takes a statement in; false where it is not understood.
    fn statement(&mut self, text: &str, file: &Path, depth: usize) -> Result<bool, String> {
        let harmless = [
            "import ",
            "from ",
            "pass",
            "assert ",
            "print(",
            "site.",
            "return",
            "lit_config.parallelism_groups",
        ];
        let also = ["lit_config.note", "lit_config.warning", "lit_config.dbg", "lit.llvm.initialize"];
        if harmless.iter().chain(&also).any(|start| text.starts_with(start)) {
            return Ok(true);
        }
        for kind in ["fatal", "error"] {
            if text.starts_with(&format!("lit_config.{kind}(")) {
                return Err(format!("{kind}: {}: {text}", file.display()));
            }
        }
        if let Some(rest) = text.strip_prefix("lit_config.load_config(config,") {
            let path = rest.strip_suffix(')').and_then(|path| self.value(path, file));
            return match path.as_ref().and_then(Value::text) {
                Some(path) => self.file(Path::new(path), depth + 1).map(|()| true),
                None => Ok(false),
            };
        }
        if let Some((target, more, expression)) = assignment(text) {
            return Ok(match self.value(expression, file) {
                Some(value) => self.assign(target, more, value, file),
                // The format of tests is ignored unless it is a known one.
                None => target == "config.test_format" && expression.contains("ShTest"),
            });
        }
        Ok(self.call(text, file).is_some())
    }

    /// An assignment; false where it is not understood, or where all values together grow too large.
    fn assign(&mut self, target: &str, more: bool, value: Value, file: &Path) -> bool {
        self.assigned = self.assigned.saturating_add(value.weight());
        if self.assigned > MAX_ASSIGNED {
            return false;
        }
        if let Some(key) = target.strip_prefix("config.environment[").and_then(|key| key.strip_suffix(']')) {
            let key = self.value(key, file).and_then(|key| key.text().map(String::from));
            let (Some(key), Some(value)) = (key, value.text()) else { return false };
            self.config.environment.insert(key, value.into());
            return true;
        }
        let Some(field) = target.strip_prefix("config.") else {
            let name = target.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            if name && !more {
                self.variables.insert(target.into(), value);
            }
            return name && !more;
        };
        let texts = value.texts();
        let config = &mut *self.config;
        match (field, value, texts) {
            ("name", Value::Text(name), _) => config.name = name,
            ("unsupported", value, _) => config.unsupported = value.holds(),
            ("standalone_tests", value, _) => config.standalone = value.holds(),
            ("suffixes" | "excludes" | "available_features", _, Some(list)) => {
                match field {
                    "suffixes" if !more => config.suffixes.clear(),
                    "excludes" if !more => config.excludes = vec!["Output".into()],
                    _ => {}
                }
                return extend(config, field, list);
            }
            ("substitutions", Value::List(list), _) => {
                if !more {
                    config.substitutions.clear();
                }
                return list.iter().all(|pair| substitution(config, usize::MAX, pair));
            }
            ("recursiveExpansionLimit", Value::Number(number), _) => {
                config.rounds = usize::try_from(number).ok()
            }
            ("test_retry_attempts", Value::Number(number), _) => {
                config.retries = usize::try_from(number).unwrap_or(0);
            }
            ("maxIndividualTestTime", Value::Number(number), _) => {
                config.time_limit = u64::try_from(number).ok().filter(|n| *n > 0).map(Duration::from_secs);
            }
            ("test_source_root", Value::Text(root), _) => config.root = Some(root.into()),
            ("limit_to_features", _, Some(list)) => config.limit_to_features = list,
            // Nothing here is a test.
            ("test_format", Value::Nothing, _) => {
                config.suffixes.clear();
                config.maybe.clear();
            }
            ("test_format", Value::Format { external, preamble }, _) => {
                (config.external, config.preamble) = (external, preamble);
            }
            ("pipefail", value, _) => return value.holds(),
            (field, value, _) => {
                self.variables.insert(format!("config.{field}"), value);
            }
        }
        true
    }

    /// A call that changes a list; none where it is not understood.
    fn call(&mut self, text: &str, file: &Path) -> Option<()> {
        let (head, arguments) = text.strip_suffix(')')?.split_once('(')?;
        let (field, method) = head.strip_prefix("config.")?.split_once('.')?;
        let value = self.value(&format!("[{arguments}]"), file)?;
        let Value::List(arguments) = value else { return None };
        let first = arguments.first();
        let config = &mut *self.config;
        let done = match (field, method) {
            ("substitutions", "append") => substitution(config, usize::MAX, first?),
            ("substitutions", "insert") => {
                let Some(Value::Number(at)) = first else { return None };
                substitution(config, usize::try_from(*at).ok()?, arguments.get(1)?)
            }
            ("substitutions", "extend") => {
                let Value::List(list) = first? else { return None };
                list.iter().all(|pair| substitution(config, usize::MAX, pair))
            }
            ("environment", "pop") => {
                config.environment.remove(first?.text()?);
                true
            }
            (field, "add" | "append") => extend(config, field, vec![first?.text()?.to_string()]),
            (field, "update" | "extend") => extend(config, field, first?.texts()?),
            _ => false,
        };
        done.then_some(())
    }
}

/// Target, whether it is added to, and expression of an assignment.
fn assignment(text: &str) -> Option<(&str, bool, &str)> {
    let at = text.find('=')?;
    let (target, expression) = (text.get(..at)?, text.get(at + 1..)?);
    let target = target.trim_end();
    let (target, more) = match target.strip_suffix('+') {
        Some(target) => (target.trim_end(), true),
        None => (target, false),
    };
    if expression.starts_with('=') || target.contains(['(', ' ']) {
        return None;
    }
    Some((target, more, expression.trim()))
}

/// Puts a pair at a place among the substitutions.
fn substitution(config: &mut Config, at: usize, pair: &Value) -> bool {
    let Some([key, value]) = pair.texts().and_then(|pair| <[String; 2]>::try_from(pair).ok()) else {
        return false;
    };
    let at = at.min(config.substitutions.len());
    config.substitutions.insert(at, (key, value));
    true
}

fn extend(config: &mut Config, field: &str, words: Vec<String>) -> bool {
    match field {
        "suffixes" => config.suffixes.extend(words),
        "excludes" => config.excludes.extend(words),
        "available_features" => config.features.extend(words),
        _ => return false,
    }
    true
}

/// Logical lines: number, indentation, text. Comments, empty lines and texts that stand alone are left out.
fn statements(text: &str) -> Vec<(usize, usize, String)> {
    let mut out: Vec<(usize, usize, String)> = Vec::new();
    let mut state = State::default();
    for (number, line) in (1..).zip(text.get(..MAX_LENGTH).unwrap_or(text).lines()) {
        let goes_on = state.depth > 0 || state.long.is_some();
        let whole = if goes_on { line } else { line.trim_start() };
        let kept = state.read(whole);
        let indent = line.len() - line.trim_start().len();
        match out.last_mut().filter(|_| goes_on) {
            Some((.., open)) => {
                open.push('\n');
                open.push_str(&kept);
            }
            None if kept.trim().is_empty() => {}
            None => out.push((number, indent, kept)),
        }
    }
    out.iter_mut().for_each(|(.., text)| *text = text.trim().to_string());
    out.retain(|(.., text)| !text.starts_with("\"\"\"") && !text.starts_with("'''"));
    out
}

/// What is open at the end of a line.
#[derive(Default)]
struct State {
    depth: usize,
    long: Option<&'static str>,
}

impl State {
    /// The line without its comment; notes brackets and long texts.
    fn read(&mut self, line: &str) -> String {
        let mut quote: Option<char> = None;
        let mut at = 0;
        while let Some(letter) = line.get(at..).and_then(|rest| rest.chars().next()) {
            let rest = line.get(at..).unwrap_or_default();
            let long = ["\"\"\"", "'''"].into_iter().find(|mark| rest.starts_with(mark));
            let step = match (self.long, quote, letter) {
                (Some(mark), ..) if rest.starts_with(mark) => {
                    self.long = None;
                    3
                }
                (Some(_), ..) => letter.len_utf8(),
                (None, Some(_), '\\') => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
                (None, Some(mark), letter) => {
                    quote = quote.filter(|_| letter != mark);
                    letter.len_utf8()
                }
                (None, None, _) if long.is_some() => {
                    self.long = long;
                    3
                }
                (None, None, '#') => return line.get(..at).unwrap_or_default().trim_end().into(),
                (None, None, letter) => {
                    match letter {
                        '"' | '\'' => quote = Some(letter),
                        '(' | '[' | '{' => self.depth += 1,
                        ')' | ']' | '}' => self.depth = self.depth.saturating_sub(1),
                        _ => {}
                    }
                    letter.len_utf8()
                }
            };
            at += step;
        }
        line.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Config, Notes) {
        let mut config = Config { features: ["foo".to_string()].into(), ..Config::default() };
        config.environment.insert("GONE".into(), "1".into());
        config.params.insert("mode".into(), "fast".into());
        let mut reader =
            Reader { config: &mut config, variables: BTreeMap::new(), assigned: 0, notes: Vec::new() };
        reader.text(text, Path::new("/suite/lit.cfg"), 0).unwrap();
        let notes = reader.notes;
        (config, notes)
    }

    #[test]
    fn what_suites_mostly_say_is_understood() {
        let (config, notes) = read(
            "# a comment\nimport lit.formats\n\"\"\"a text\nof two lines\"\"\"\nconfig.name = 'suite'\n\
             config.test_format = lit.formats.ShTest(preamble_commands=['true'])\nconfig.suffixes = ['.txt', \".ll\"]  # two\n\
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
        assert_eq!(config.excludes, ["Output", "Inputs", "x.txt"]);
        assert_eq!(config.substitutions[0], ("%two".into(), "ab\\c".into()));
        assert!(config.substitutions.contains(&("%protect".into(), "env -u X".into())));
        assert!(config.features.contains("bar") && !config.environment.contains_key("GONE"));
        assert_eq!(config.environment.get("WHO").map(String::as_str), Some("me"));
        assert_eq!(config.preamble, ["true"]);
    }

    #[test]
    fn expressions_have_values() {
        for (expression, expected) in [
            ("lit_config.params.get('mode', 'slow')", "fast"),
            ("lit_config.params.get('none', 'slow')", "slow"),
            ("'\"%s\"' % (sys.executable)", "\"python3\""),
            ("'%s-%d%%' % ('a', 3)", "a-3%"),
            ("os.path.join(os.path.dirname(__file__), 'x')", "/suite/x"),
            ("'b' if 'a' in ['a'] and not False else 'c'", "b"),
            ("','.join(['a', 'b']).upper()", "A,B"),
            ("f'{config.name}!'", "tests!"),
            ("\"\"\"\nx\n\"\"\"", "\nx\n"),
        ] {
            let (config, notes) = read(&format!("v = {expression}\nconfig.environment['V'] = v\n"));
            assert!(notes.is_empty(), "{expression}: {notes:?}");
            assert_eq!(config.environment.get("V").map(String::as_str), Some(expected), "{expression}");
        }
    }

    #[test]
    fn conditions_choose() {
        for (condition, runs) in [
            ("'foo' in config.available_features", true),
            ("not 'foo' in config.available_features", false),
            ("'bar' not in config.available_features", true),
            ("'bar' in config.available_features or 'foo' in config.available_features", true),
            ("'bar' in config.available_features and 'foo' in config.available_features", false),
            ("lit_config.params.get('mode') == 'fast'", true),
            ("lit_config.params.get('none') is not None", false),
            ("'b' in frozenset('a b'.split())", true),
        ] {
            let (config, notes) = read(&format!(
                "if {condition}:\n    config.name = 'yes'\nelif False:\n    config.name = 'maybe'\nelse:\n    \
                 config.name = 'no'\nconfig.excludes = []\n"
            ));
            assert_eq!(config.name, if runs { "yes" } else { "no" }, "{condition}");
            assert!(notes.is_empty() && config.excludes == ["Output"], "{notes:?}");
        }
    }

    #[test]
    fn what_is_not_understood_is_left_out_and_named() {
        let (config, notes) = read(
            "for x in y:\n    config.unsupported = True\nif sys.maxsize in [1]:\n    config.unsupported = True\n\
             else:\n    config.unsupported = True\nconfig.suffixes = make()\nconfig.unsupported = f()\nx = 1\n",
        );
        let lines: Vec<usize> = notes.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 3, 7, 8]);
        assert!(!config.unsupported);
    }

    #[test]
    fn values_that_double_are_not_made() {
        let text = |first: &str, next: &str| {
            format!("x = {first}\n{}config.name = x\n", format!("{next}\n").repeat(60))
        };
        for (first, next) in [
            ("'aaaaaaaaaaaaaaaa'", "x = x + x"),
            ("['a']", "x = x + x"),
            ("['a']", "x = [x, x]"),
            ("'aaaa'", "x = x.replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')"),
            ("'aaaa'", "x = f'{x}{x}{x}'"),
        ] {
            let (config, notes) = read(&text(first, next));
            assert!(notes.len() > 1, "{next}");
            assert!(config.name.len() <= 1 << 20);
        }
        let (config, _) = read(&format!(
            "config.suffixes = ['.{}']\n{}",
            "a".repeat(1000),
            "config.suffixes += config.suffixes\n".repeat(60)
        ));
        assert!(config.suffixes.len() < 1 << 15);
    }
}
