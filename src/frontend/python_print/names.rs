//! Names in printed Python: valid, unique in their function, and those that PyTorch would choose.

use hashbrown::{HashMap, HashSet};

/// Names that no variable may have: the environment in which serialized code is read, and keywords.
const RESERVED: &[&str] = &[
    "_",
    "as",
    "aten",
    "attribute",
    "CONSTANTS",
    "fork",
    "awaitable",
    "getattr",
    "inf",
    "nan",
    "infj",
    "nanj",
    "ops",
    "__torch__",
    "and",
    "assert",
    "async",
    "await",
    "break",
    "class",
    "continue",
    "def",
    "del",
    "elif",
    "else",
    "except",
    "False",
    "finally",
    "for",
    "from",
    "global",
    "if",
    "import",
    "in",
    "is",
    "lambda",
    "None",
    "nonlocal",
    "not",
    "or",
    "pass",
    "raise",
    "return",
    "True",
    "try",
    "while",
    "with",
    "yield",
    "uninitialized",
    "unchecked_cast",
];

/// Hands out names.
#[derive(Debug, Default)]
pub(super) struct Names {
    used: HashSet<String>,
    /// The number that comes next after a name; it goes on from function to function of a file.
    next: HashMap<String, u64>,
}

impl Names {
    /// Forgets the names of the last function.
    pub(super) fn start_function(&mut self) {
        self.used.clear();
    }

    /// The name itself where it is free, else one with a number after it.
    pub(super) fn fresh(&mut self, candidate: &str) -> String {
        let mut name = candidate.to_string();
        while self.used.contains(&name) || RESERVED.contains(&name.as_str()) {
            let next = self.next.entry(name).or_default();
            name = format!("{candidate}{next}");
            *next += 1;
        }
        self.used.insert(name.clone());
        name
    }
}

/// Whether a name can follow a dot.
pub(super) fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// The name of a value without its number (`x.1` is `x`), made into an identifier. None for values that have no
/// name of their own: numbers, and what serialized code made up (`_0`).
pub(super) fn base(name: Option<&str>) -> Option<String> {
    let name = name?;
    let stem = match name.rsplit_once('.') {
        Some((stem, digits)) if !stem.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => stem,
        _ => name,
    };
    let made_up = stem.strip_prefix('_').is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
    if stem.is_empty() || made_up {
        return None;
    }
    let starts_badly = stem.starts_with(|c: char| c.is_ascii_digit());
    let valid = stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' });
    Some(if starts_badly { std::iter::once('_').chain(valid).collect() } else { valid.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_up_across_functions() {
        let mut names = Names::default();
        let mut three = || [names.fresh("x"), names.fresh("x"), names.fresh("_")].join(" ");
        assert_eq!(three(), "x x0 _0");
        names.start_function();
        let three = [names.fresh("x"), names.fresh("x"), names.fresh("ops")].join(" ");
        assert_eq!(three, "x x1 ops0");
    }

    #[test]
    fn bases_are_identifiers() {
        let of = |name| base(Some(name));
        assert_eq!(of("x.1").as_deref(), Some("x"));
        assert_eq!(of("a.b.2").as_deref(), Some("a_b"));
        assert_eq!(of("_12"), None);
        assert_eq!(of("_x").as_deref(), Some("_x"));
        assert_eq!(base(None), None);
    }
}
