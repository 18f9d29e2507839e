//! Substitutions in command lines: `%s` and its like, the user's own, and `%if`.

use super::feature;
use std::collections::{BTreeMap, BTreeSet};

/// Deepest nesting of substitutions within substitutions.
const MAX_DEPTH: usize = 64;
/// Longest command line.
const MAX_LENGTH: usize = 1 << 20;

/// The substitutions of one test.
#[derive(Clone, Debug, Default)]
pub(super) struct Substitutions {
    /// From the whole key, as `%s` or `%{name}`, to its value, which is expanded when it is used.
    pub(super) values: BTreeMap<String, String>,
    /// Keys that the test defined.
    own: BTreeSet<String>,
}

impl Substitutions {
    /// Adds one of ours.
    pub(super) fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.values.insert(key.into(), value.into());
    }

    /// Takes `%{name} = value` from a `DEFINE:` (`again` false) or `REDEFINE:` line.
    pub(super) fn define(&mut self, text: &str, again: bool) -> Result<(), String> {
        let word = if again { "REDEFINE:" } else { "DEFINE:" };
        let shape = || format!("'{word}' directive must have the form '%{{name}} = value', not '{text}'");
        let (key, value) = text.split_once('=').ok_or_else(shape)?;
        let key = key.trim();
        let name = key.strip_prefix("%{").and_then(|name| name.strip_suffix('}')).ok_or_else(shape)?;
        let first = name.chars().next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
        if !first || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_:".contains(letter)) {
            return Err(format!("Substitution name '{key}' is malformed as it must be '%{{name}}'"));
        }
        match (again, self.own.contains(key)) {
            (true, false) => return Err(format!("No existing substitution to redefine for '{key}'")),
            (false, _) if self.values.contains_key(key) => {
                return Err(format!("Substitution whose name is '{key}' is already defined"));
            }
            _ => {}
        }
        self.own.insert(key.into());
        self.set(key, value.trim());
        Ok(())
    }

    /// The command line with everything put in.
    pub(super) fn expand(&self, text: &str, features: &BTreeSet<String>) -> Result<String, String> {
        let chosen = choose(text, features, 0)?;
        let mut out = String::new();
        self.expand_into(&chosen, &mut out, 0)?;
        Ok(out)
    }

    fn expand_into(&self, text: &str, out: &mut String, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err("substitutions are nested too deeply; does one contain itself?".into());
        }
        let mut rest = text;
        while let Some(at) = rest.find('%') {
            let (before, behind) = rest.split_at(at);
            out.push_str(before);
            if let Some(behind) = behind.strip_prefix("%%") {
                out.push('%');
                rest = behind;
                continue;
            }
            let longest = self.values.iter().filter(|(key, _)| behind.starts_with(key.as_str()));
            match longest.max_by_key(|(key, _)| key.len()) {
                Some((key, value)) => {
                    self.expand_into(value, out, depth + 1)?;
                    rest = behind.get(key.len()..).unwrap_or_default();
                }
                None => {
                    out.push('%');
                    rest = behind.get(1..).unwrap_or_default();
                }
            }
            if out.len() > MAX_LENGTH {
                return Err("command line too long after substitution".into());
            }
        }
        out.push_str(rest);
        Ok(())
    }
}

/// Resolves `%if feature %{ then %} %else %{ else %}`.
fn choose(text: &str, features: &BTreeSet<String>, depth: usize) -> Result<String, String> {
    if depth > MAX_DEPTH {
        return Err("'%if' is nested too deeply".into());
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = split_if(rest) {
        out.push_str(before);
        let (condition, behind) = behind.split_once("%{").ok_or("'%{' is missing for %if substitution")?;
        let holds = feature::holds(condition.trim(), features)?;
        let (then, mut behind) = branch(behind)?;
        let mut other = "";
        let ahead = behind.trim_start();
        if let Some(inside) = ahead.strip_prefix("%else") {
            let inside =
                inside.trim_start().strip_prefix("%{").ok_or("'%{' is missing for %else substitution")?;
            (other, behind) = branch(inside)?;
        }
        let taken = if holds { then } else { other };
        out.push_str(&choose(taken.trim(), features, depth + 1)?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// The text in front of the next `%if` and behind it; `%%if` is none.
fn split_if(text: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find('%')?;
        let here = text.get(at..)?;
        if let Some(behind) = here.strip_prefix("%if")
            && behind.starts_with([' ', '('])
        {
            return Some((text.get(..at)?, behind));
        }
        from = at + if here.starts_with("%%") { 2 } else { 1 };
    }
}

/// The text up to the `%}` that belongs to the `%{` in front of it, and what follows.
fn branch(text: &str) -> Result<(&str, &str), String> {
    let mut depth = 1;
    let mut from = 0;
    while let Some(offset) = text.get(from..).and_then(|rest| rest.find('%')) {
        let at = from + offset;
        match text.as_bytes().get(at + 1) {
            // `%{name}` is a substitution and opens nothing.
            Some(b'{') => {
                let name = text.get(at + 2..).unwrap_or_default();
                let ends =
                    name.find(|letter: char| !letter.is_ascii_alphanumeric() && !"-_:.".contains(letter));
                if ends.is_none_or(|end| end == 0 || name.as_bytes().get(end) != Some(&b'}')) {
                    depth += 1;
                }
            }
            Some(b'}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let inside = text.get(..at).unwrap_or_default();
            return Ok((inside, text.get(at + 2..).unwrap_or_default()));
        }
        from = at + 2;
    }
    Err("'%}' is missing for %if substitution".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(substitutions: &Substitutions, text: &str) -> Result<String, String> {
        substitutions.expand(text, &["foo".to_string()].into())
    }

    #[test]
    fn the_longest_key_wins_and_percent_is_kept() {
        let mut all = Substitutions::default();
        all.set("%s", "file");
        all.set("%sub", "[%s]");
        assert_eq!(expand(&all, "a %s %sub %%s 5% %q").unwrap(), "a file [file] %s 5% %q");
    }

    #[test]
    fn values_are_expanded_when_used() {
        let mut all = Substitutions::default();
        all.define("%{a} = <%{b}>", false).unwrap();
        all.define("%{b} = 1", false).unwrap();
        assert_eq!(expand(&all, "%{a}").unwrap(), "<1>");
        all.define("%{b} = 2", true).unwrap();
        assert_eq!(expand(&all, "%{a}").unwrap(), "<2>");
        all.define("%{b} = %{a}", true).unwrap();
        assert!(expand(&all, "%{a}").is_err());
        assert!(all.define("%{b} = 2", false).is_err());
        assert!(all.define("%{c} = 2", true).is_err());
        assert!(all.define("c = 2", false).is_err());
    }

    #[test]
    fn conditions_choose() {
        let all = Substitutions::default();
        let text = "a %if foo %{ b %if !foo %{c%} %else %{d%} %} %else %{ e %} f %if bar %{ g %}";
        assert_eq!(expand(&all, text).unwrap(), "a b d f ");
        assert!(expand(&all, "%if foo").is_err());
        assert!(expand(&all, "%if foo %{ a").is_err());
    }
}
