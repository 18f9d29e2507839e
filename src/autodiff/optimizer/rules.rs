//! The functions of the rules (`rules.py`) as text, each by itself. Knows no optimizer.

use crate::dialects::grads::words;
use crate::value::Value;

/// The functions.
const RULES: &str = include_str!("rules.py");

/// Tuples as the several parameters that a function has for them.
pub(super) fn flat(value: &Value) -> Vec<Value> {
    match value {
        Value::Tuple(tuple) => tuple.items().to_vec(),
        other => vec![other.clone()],
    }
}

/// A function of the rules after those that it calls.
pub(super) fn text_of(name: &str) -> String {
    let mut parts: Vec<(&str, String)> = Vec::new();
    for line in RULES.lines().filter(|line| !line.starts_with('#')) {
        if let Some(rest) = line.strip_prefix("def ") {
            parts.push((rest.split('(').next().unwrap_or_default(), String::new()));
        }
        if let Some((_, part)) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    let mut wanted: Vec<&str> = vec![name];
    let mut next = 0;
    while let Some(name) = wanted.get(next).copied() {
        next += 1;
        let Some((_, text)) = parts.iter().find(|(known, _)| *known == name) else { continue };
        for word in words(text) {
            if !wanted.contains(&word) && parts.iter().any(|(known, _)| *known == word) {
                wanted.push(word);
            }
        }
    }
    // What is called stands first, as in the file; the function itself is last.
    let called = parts.iter().filter(|(known, _)| *known != name && wanted.contains(known));
    let own = parts.iter().filter(|(known, _)| *known == name);
    called.chain(own).map(|(_, text)| text.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autodiff::optimizer::kinds::KINDS;

    #[test]
    fn functions_come_with_what_they_call_and_nothing_else() {
        let text = text_of("sgd");
        assert!(text.contains("def decayed(") && !text.contains("def adam(") && !text.contains("def kept("));
        assert!(text.rfind("def ") == text.find("def sgd("));
        assert!(KINDS.iter().all(|kind| text_of(kind.function).contains(&format!("def {}(", kind.function))));
    }
}
