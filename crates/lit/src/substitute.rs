//! Substitutions in command lines: `%s` and its like, the user's own, and `%if`.
//!
//! They are put in one after the other, in the order of the list; what a value brings in is found by those after it.
//! The test's own stand in front.

use super::feature;
use super::script::{LineKind, RunLine};
use regex::Regex;
use std::collections::BTreeSet;

/// Deepest nesting of `%if`.
const MAX_DEPTH: usize = 64;
/// Longest command line.
const MAX_LENGTH: usize = 1 << 20;
/// Stands for `%%` until all is put in.
const PERCENT: &str = "#_MARKER_#";

/// What is looked for.
#[derive(Clone, Debug)]
enum Pattern {
    Text(String),
    Expression(Regex),
}

#[derive(Clone, Debug)]
struct Substitution {
    /// As it is written.
    key: String,
    pattern: Pattern,
    value: String,
}

/// The substitutions of one test.
#[derive(Clone, Debug, Default)]
pub(super) struct Substitutions {
    list: Vec<Substitution>,
    /// How often the whole list is gone through again while that changes something; none goes through it once.
    pub(super) rounds: Option<usize>,
}

impl Substitutions {
    /// None yet; see [`Substitutions::rounds`].
    pub(super) fn with_rounds(rounds: Option<usize>) -> Substitutions {
        Substitutions { list: Vec::new(), rounds }
    }

    /// Adds one after all others. A key is an expression where it has signs of one.
    pub(super) fn add(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let key = key.into();
        self.list.push(Substitution { pattern: pattern(&key), key, value: value.into() });
    }

    /// The value for a key, as written.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.list.iter().find(|one| one.key == key).map(|one| one.value.as_str())
    }

    /// Takes `%{name} = value` from a `DEFINE:` or `REDEFINE:` line.
    pub(super) fn define(&mut self, line: &RunLine) -> Result<(), String> {
        let Some((name, value)) = line.is_definition()? else { return Ok(()) };
        let (keyword, place) = (line.kind.keyword(), line.place());
        let known: Vec<usize> = (0..self.list.len())
            .filter(|n| self.list.get(*n).is_some_and(|s| s.key.contains(name)))
            .collect();
        let listed: String = known
            .iter()
            .filter_map(|n| Some(format!("\nExisting pattern: {}", self.list.get(*n)?.key)))
            .collect();
        let value = value.to_string();
        if line.kind == LineKind::Define {
            if !known.is_empty() {
                return Err(format!(
                    "Substitution whose pattern contains '{name}' is already defined before '{keyword}' directive \
                     {place}{listed}"
                ));
            }
            let pattern = Pattern::Text(name.into());
            self.list.insert(0, Substitution { key: name.into(), pattern, value });
            return Ok(());
        }
        let only = match known.as_slice() {
            [] => {
                return Err(format!(
                    "No substitution for '{name}' is defined before '{keyword}' directive {place}"
                ));
            }
            [only] => self.list.get_mut(*only),
            _ => {
                return Err(format!(
                    "Multiple substitutions whose patterns contain '{name}' are defined before '{keyword}' directive \
                     {place}{listed}"
                ));
            }
        };
        match only {
            Some(only) if only.key == name => {
                only.value = value;
                Ok(())
            }
            _ => Err(format!(
                "Existing substitution whose pattern contains '{name}' does not have the pattern specified by \
                 '{keyword}' directive {place}\nExpected pattern: {name}{listed}"
            )),
        }
    }

    /// The command line with everything put in.
    pub(super) fn expand(&self, text: &str, features: &BTreeSet<String>) -> Result<String, String> {
        let mut out = self.once(text, features)?;
        if let Some(rounds) = self.rounds {
            let (mut before, mut left) = (text.to_string(), rounds);
            while out != before && left > 0 {
                let next = self.once(&out, features)?;
                before = std::mem::replace(&mut out, next);
                left -= 1;
            }
            if out != before {
                return Err(format!(
                    "Recursive substitution of '{text}' did not complete in the provided recursion limit ({rounds})"
                ));
            }
        }
        Ok(out.replace(PERCENT, "%"))
    }

    /// One round through the list.
    fn once(&self, text: &str, features: &BTreeSet<String>) -> Result<String, String> {
        let mut text = choose(&text.replace("%%", PERCENT), features)?;
        for one in &self.list {
            text = text.replace("%%", PERCENT);
            text = match &one.pattern {
                Pattern::Text(key) if text.contains(key) => text.replace(key, &one.value),
                Pattern::Text(_) => text,
                Pattern::Expression(regex) => regex.replace_all(&text, one.replacement()).into_owned(),
            };
            if text.len() > MAX_LENGTH {
                return Err("command line too long after substitution".into());
            }
        }
        Ok(text.trim().to_string())
    }
}

impl Substitution {
    /// The value in the syntax of the expressions: groups are written as Python writes them.
    fn replacement(&self) -> String {
        let value = self.value.replace('$', "$$");
        match Regex::new(r"\\g<([0-9]+)>") {
            Ok(group) => group.replace_all(&value, "$${$1}").into_owned(),
            Err(_) => value,
        }
    }
}

fn pattern(key: &str) -> Pattern {
    let plain = !key.contains(['\\', '(', '[', '*', '+', '?', '^', '$', '|', '.']);
    let text = || Pattern::Text(key.to_string());
    if plain {
        return text();
    }
    // A brace that opens no count stands for itself in Python.
    let mut expression = String::new();
    let mut escaped = false;
    for letter in key.chars() {
        if !escaped && matches!(letter, '{' | '}') {
            expression.push('\\');
        }
        escaped = letter == '\\' && !escaped;
        expression.push(letter);
    }
    Regex::new(&expression).map_or_else(|_| text(), Pattern::Expression)
}

/// Resolves `%if feature %{ then %} %else %{ else %}`.
fn choose(text: &str, features: &BTreeSet<String>) -> Result<String, String> {
    if !text.contains("%if ") {
        return Ok(text.into());
    }
    let mut rest = text;
    Chooser { features }.list(&mut rest, 0)
}

struct Chooser<'f> {
    features: &'f BTreeSet<String>,
}

impl Chooser<'_> {
    /// Text and choices, to the end or to the `%}` that ends the branch they stand in.
    fn list(&self, rest: &mut &str, depth: usize) -> Result<String, String> {
        if depth > MAX_DEPTH {
            return Err("'%if' is nested too deeply".into());
        }
        let mut out = String::new();
        while !(rest.is_empty() || depth > 0 && rest.starts_with("%}")) {
            if let Some(behind) = rest.strip_prefix("%if ") {
                let missing = "'%{' is missing for %if substitution";
                let (condition, behind) = behind.split_once("%{").ok_or(missing)?;
                *rest = behind;
                if condition.is_empty() {
                    continue;
                }
                let then = self.branch(rest, "%if", depth)?;
                let mut other = String::new();
                if let Some(behind) = rest.trim_start().strip_prefix("%else") {
                    let missing = "'%{' is missing for %else substitution";
                    *rest = behind.trim_start().strip_prefix("%{").ok_or(missing)?;
                    other = self.branch(rest, "%else", depth)?;
                }
                out.push_str(if feature::holds(condition, self.features)? { &then } else { &other });
                continue;
            }
            // A mark in front of us that is not a choice is text.
            let from = usize::from(rest.starts_with("%if"));
            let find = |mark: &str| rest.get(from..).and_then(|rest| rest.find(mark)).map(|at| at + from);
            let ends = [find("%if"), if depth > 0 { find("%}") } else { None }];
            let end = ends.into_iter().flatten().min().unwrap_or(rest.len());
            let (text, behind) = rest.split_at(end);
            out.push_str(text);
            *rest = behind;
        }
        Ok(out)
    }

    fn branch(&self, rest: &mut &str, word: &str, depth: usize) -> Result<String, String> {
        let text = self.list(rest, depth + 1)?;
        *rest = rest.strip_prefix("%}").ok_or_else(|| format!("'%}}' is missing for {word} substitution"))?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(substitutions: &Substitutions, text: &str) -> Result<String, String> {
        substitutions.expand(text, &["foo".to_string()].into())
    }

    fn line(kind: LineKind, text: &str) -> RunLine {
        RunLine { line: 3, end: 3, text: text.into(), kind }
    }

    #[test]
    fn the_first_key_wins_and_percent_is_kept() {
        let mut all = Substitutions::default();
        all.add("%sub", "[%s]");
        all.add("%s", "file");
        all.add("%f\\(([a-z]+)\\)", "<\\g<1>$>");
        assert_eq!(expand(&all, "a %s %sub %%s 5% %q %f(ab)").unwrap(), "a file [file] %s 5% %q <ab$>");
    }

    #[test]
    fn values_are_found_by_what_stands_behind() {
        let mut all = Substitutions::default();
        all.define(&line(LineKind::Define, "%{b} = 1")).unwrap();
        all.define(&line(LineKind::Define, "%{a} = <%{b}>")).unwrap();
        assert_eq!(expand(&all, "%{a}").unwrap(), "<1>");
        all.define(&line(LineKind::Redefine, "%{b} = %{a}")).unwrap();
        assert_eq!(expand(&all, "%{a}").unwrap(), "<%{a}>");
        all.rounds = Some(5);
        assert_eq!(
            expand(&all, "%{a}").unwrap_err(),
            "Recursive substitution of '%{a}' did not complete in the provided recursion limit (5)"
        );
    }

    #[test]
    fn definitions_must_fit_what_is_known() {
        let mut all = Substitutions::default();
        all.add("<%{in}>", "1");
        all.add("%{two}", "1");
        all.add("%{two}", "2");
        let error = |kind, text| all.clone().define(&line(kind, text)).unwrap_err();
        assert_eq!(
            error(LineKind::Define, "%{in} = 2"),
            "Substitution whose pattern contains '%{in}' is already defined before 'DEFINE:' directive at line 3\n\
             Existing pattern: <%{in}>"
        );
        assert!(
            error(LineKind::Redefine, "%{in} = 2")
                .contains("\nExpected pattern: %{in}\nExisting pattern: <%{in}>")
        );
        assert!(
            error(LineKind::Redefine, "%{two} = 2")
                .starts_with("Multiple substitutions whose patterns contain")
        );
        assert!(error(LineKind::Redefine, "%{no} = 2").starts_with("No substitution for '%{no}' is defined"));
        assert!(error(LineKind::Define, "c = 2").starts_with("Substitution name 'c' is malformed"));
    }

    #[test]
    fn conditions_choose() {
        let all = Substitutions::default();
        let text = "a %if foo %{ b %if !foo %{c%} %else %{d%} %} %else %{ e %} f %if bar %{ g %}";
        assert_eq!(expand(&all, text).unwrap(), "a  b d  f");
        assert_eq!(expand(&all, "%%if foo %{a%} %iffy").unwrap(), "%if foo %{a%} %iffy");
        assert!(expand(&all, "%if foo").is_err());
        assert!(expand(&all, "%if foo %{ a").is_err());
        assert!(expand(&all, "%if foo %{ a %} %else b").is_err());
    }
}
