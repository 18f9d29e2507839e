//! Matching: leftmost, longest, captures, errors, and no panic.

use super::*;
use proptest::prelude::*;

fn found(pattern: &str, text: &str) -> Option<(usize, usize)> {
    let regex = Regex::new(pattern.as_bytes(), false, true).unwrap();
    regex.search(text.as_bytes(), false).and_then(|spans| spans[0])
}

fn groups(pattern: &str, text: &str) -> Vec<Option<String>> {
    let regex = Regex::new(pattern.as_bytes(), false, true).unwrap();
    let spans = regex.search(text.as_bytes(), true).unwrap();
    spans.into_iter().map(|span| span.map(|(start, end)| text[start..end].to_string())).collect()
}

#[test]
fn the_leftmost_longest_match_wins() {
    assert_eq!(found("a|ab|abc", "xabcd"), Some((1, 4)));
    assert_eq!(found("(a|ab)(c|bcd)(d*)", "abcd"), Some((0, 4)));
    assert_eq!(found("b*", "abb"), Some((0, 0)));
    assert_eq!(found("[[:digit:]]{2,3}", "a1b12345"), Some((3, 6)));
    assert_eq!(found("a.b", "a\nb"), None);
    assert_eq!(found("^b$", "ab\nb\nb"), Some((3, 4)));
    assert_eq!(found("[[:<:]]b+[[:>:]]", "abb bb"), Some((4, 6)));
}

#[test]
fn each_part_takes_what_it_can() {
    let some = |text: &str| Some(text.to_string());
    assert_eq!(groups("(a*)(a*)", "aaa"), [some("aaa"), some("aaa"), some("")]);
    assert_eq!(groups("(.*),(.*)", "a,b,c"), [some("a,b,c"), some("a,b"), some("c")]);
    assert_eq!(groups("((a)|(b))*", "ab"), [some("ab"), some("b"), None, some("b")]);
    assert_eq!(groups("(a|ab)(c|bcd)(d*)", "abcd"), [some("abcd"), some("ab"), some("c"), some("d")]);
    assert_eq!(groups("(x?)y", "y"), [some("y"), some("")]);
}

#[test]
fn back_references_match_the_same_text() {
    assert_eq!(found("(a+)b\\1", "aaabaa"), Some((1, 6)));
    assert_eq!(found("(x|y)\\1", "xyy"), Some((1, 3)));
    assert_eq!(found("(a*)\\1", "aaaaa"), Some((0, 4)));
    assert_eq!(found("(a)(b)?\\2", "a"), None);
}

#[test]
fn errors_have_the_names_of_posix() {
    for (pattern, message) in [
        ("", "empty (sub)expression"),
        ("a{0}", "empty (sub)expression"),
        ("a||b", "empty (sub)expression"),
        ("(a", "parentheses not balanced"),
        ("a)", "parentheses not balanced"),
        ("[a", "brackets ([ ]) not balanced"),
        ("a{1", "braces not balanced"),
        ("a{2,1}", "invalid repetition count(s)"),
        ("a{256}", "invalid repetition count(s)"),
        ("*a", "repetition-operator operand invalid"),
        ("a**", "repetition-operator operand invalid"),
        ("^*", "repetition-operator operand invalid"),
        ("[b-a]", "invalid character range"),
        ("[[:x:]]", "invalid character class"),
        ("[[.xx.]]", "invalid collating element"),
        ("\\1", "invalid backreference number"),
        ("a\\", "trailing backslash (\\)"),
        ("((a{255}){255}){255}", "out of memory"),
    ] {
        assert_eq!(Regex::new(pattern.as_bytes(), false, true).unwrap_err().0, message, "{pattern}");
    }
}

fn pattern() -> impl Strategy<Value = String> {
    let words =
        ["a", "b", ".", "(", ")", "|", "*", "+", "?", "{1,2}", "[", "]", "^", "$", "[^a]", "\\", "1", "-"];
    proptest::collection::vec(proptest::sample::select(words.to_vec()), 0..16)
        .prop_map(|words| words.concat())
}

/// Patterns that the `regex` crate reads in the same way.
fn plain() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(vec!["a", "b", "c", ".", "[ab]", "[^b]"]).prop_map(String::from);
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}{b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}|{b})")),
            inner.clone().prop_map(|a| format!("({a})*")),
            inner.clone().prop_map(|a| format!("({a})+")),
            inner.prop_map(|a| format!("({a}){{1,2}}")),
        ]
    })
}

proptest! {
    #[test]
    fn no_pattern_panics(pattern in pattern(), text in "[ab1\n]{0,12}") {
        if let Ok(regex) = Regex::new(pattern.as_bytes(), false, true)
            && let Some(spans) = regex.search(text.as_bytes(), true)
        {
            let (start, end) = spans[0].unwrap();
            prop_assert!(start <= end && end <= text.len());
            for (from, to) in spans.into_iter().flatten() {
                prop_assert!(from <= to && to <= text.len());
            }
        }
    }

    #[test]
    fn matches_start_where_those_of_the_crate_start(pattern in plain(), text in "[abc]{0,12}") {
        let theirs = ::regex::Regex::new(&pattern).unwrap();
        let ours = found(&pattern, &text);
        let start = theirs.find(&text).map(|found| found.start());
        prop_assert_eq!(ours.map(|span| span.0), start);
        if let Some((start, end)) = ours {
            // The longest of all that start there.
            let whole = ::regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
            let longest = (start..=text.len()).rev().find(|end| whole.is_match(&text[start..*end]));
            prop_assert_eq!(Some(end), longest);
        }
    }
}
