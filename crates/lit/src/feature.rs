//! Boolean expressions over features: `a && !(b || {{c.*}})`.

use regex::Regex;
use std::collections::BTreeSet;

/// Deepest nesting of parentheses and negations.
const MAX_DEPTH: usize = 200;

/// Whether `text` holds for a set of features; an error names what was expected and found.
pub(super) fn holds(text: &str, features: &BTreeSet<String>) -> Result<bool, String> {
    let tokens =
        tokens(text).map_err(|found| format!("couldn't parse text: {found:?}\nin expression: {text:?}"))?;
    let mut parser = Parser { tokens: &tokens, features, depth: 0 };
    let value = parser.either();
    match (value, parser.tokens.first()) {
        (Ok(value), None) => Ok(value),
        (Ok(_), Some(found)) => Err(("<end of expression>", Some(found.clone()))),
        (Err(expected), found) => Err((expected, found.cloned())),
    }
    .map_err(|(expected, found)| {
        let found = found.map_or("<end of expression>".into(), |token| format!("'{token}'"));
        format!("expected: {expected}\nhave: {found}\nin expression: '{text}'")
    })
}

/// The names in an expression.
pub(super) fn names(text: &str) -> Vec<String> {
    let mut names = tokens(text).unwrap_or_default();
    names.retain(|token| !matches!(token.as_str(), "&&" | "||" | "!" | "(" | ")" | "true" | "false" | "*"));
    names
}

fn tokens(mut text: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    loop {
        text = text.trim_start();
        let Some(first) = text.chars().next() else { return Ok(tokens) };
        let length = if text.starts_with("&&") || text.starts_with("||") {
            2
        } else if matches!(first, '!' | '(' | ')') {
            1
        } else {
            name_length(text)
        };
        if length == 0 {
            return Err(text.into());
        }
        let (token, rest) = text.split_at(length);
        tokens.push(token.into());
        text = rest;
    }
}

/// Length of a name, in which `{{...}}` is an expression.
fn name_length(text: &str) -> usize {
    let mut length = 0;
    loop {
        let rest = text.get(length..).unwrap_or_default();
        length += match rest.strip_prefix("{{").and_then(|inside| inside.find("}}")) {
            Some(end) => end + 4,
            None => match rest.chars().next() {
                Some(letter) if letter.is_ascii_alphanumeric() || "-+=._".contains(letter) => 1,
                _ => return length,
            },
        };
    }
}

struct Parser<'a> {
    tokens: &'a [String],
    features: &'a BTreeSet<String>,
    depth: usize,
}

impl Parser<'_> {
    fn eat(&mut self, word: &str) -> bool {
        match self.tokens.split_first() {
            Some((first, rest)) if first == word => {
                self.tokens = rest;
                true
            }
            _ => false,
        }
    }

    fn either(&mut self) -> Result<bool, &'static str> {
        let mut value = self.both()?;
        while self.eat("||") {
            value |= self.both()?;
        }
        Ok(value)
    }

    fn both(&mut self) -> Result<bool, &'static str> {
        let mut value = self.single()?;
        while self.eat("&&") {
            value &= self.single()?;
        }
        Ok(value)
    }

    fn single(&mut self) -> Result<bool, &'static str> {
        const OPERAND: &str = "'!', '(', '{{', or identifier";
        if self.depth > MAX_DEPTH {
            return Err("an expression that is nested less deeply");
        }
        self.depth += 1;
        let value = if self.eat("!") {
            !self.single()?
        } else if self.eat("(") {
            let value = self.either()?;
            if !self.eat(")") {
                return Err("')'");
            }
            value
        } else {
            let (name, rest) = self.tokens.split_first().ok_or(OPERAND)?;
            if matches!(name.as_str(), "&&" | "||" | ")") {
                return Err(OPERAND);
            }
            self.tokens = rest;
            self.has(name)?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn has(&self, name: &str) -> Result<bool, &'static str> {
        match name {
            "true" => return Ok(true),
            "false" => return Ok(false),
            _ if !name.contains("{{") => return Ok(self.features.contains(name)),
            _ => {}
        }
        let mut expression = String::from("^");
        let mut rest = name;
        while let Some((before, behind)) = rest.split_once("{{") {
            let (inside, behind) = behind.split_once("}}").unwrap_or((behind, ""));
            expression.push_str(&regex::escape(before));
            expression.push_str(&format!("(?:{inside})"));
            rest = behind;
        }
        expression.push_str(&regex::escape(rest));
        expression.push('$');
        let regex = Regex::new(&expression).map_err(|_| "a good expression between '{{' and '}}'")?;
        Ok(self.features.iter().any(|feature| regex.is_match(feature)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<bool, String> {
        let features = ["linux", "x86_64", "target=x86_64-linux"];
        holds(text, &features.into_iter().map(String::from).collect())
    }

    #[test]
    fn expressions_have_their_usual_meaning() {
        for (text, expected) in [
            ("linux", true),
            ("windows", false),
            ("!windows && linux", true),
            ("windows || linux && x86_64", true),
            ("(windows || linux) && !x86_64", false),
            ("target={{.*}}-linux", true),
            ("target={{arm|mips}}-linux", false),
            ("true && !false", true),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn bad_expressions_say_what_was_expected() {
        let expected =
            "expected: '!', '(', '{{', or identifier\nhave: <end of expression>\nin expression: 'a &&'";
        assert_eq!(value("a &&"), Err(expected.into()));
        for text in ["", "a b", "(a", "a)", "a ? b", "&& a", "{{(}}"] {
            assert!(value(text).is_err(), "{text}");
        }
        assert!(value(&"!".repeat(100_000)).is_err());
    }
}
