//! `--lint`: lines of tests that look like checks but are not, so that a test passes unchecked.
//!
//! Found are misspelt directives (`CHEKC:`, `CHECK-NETX:`, `CHECk:`), directives without their colon (`CHECK-NEXT foo`, `CHECK ret`),
//! prefixes that no FileCheck of the file reads, and variables that are set and never used. Only files whose `RUN:` lines call
//! FileCheck are examined. The idea of the first two is LLVM's, whose suites have held dozens of each. Comments may mention
//! CHECK lines: text after a prefix is a forgotten check only if it reads as code (`is_prose`).

use super::discover::Test;
use super::script::MAX_TEST;
use flambeau_files as files;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::LazyLock;

/// A finding: line from 1, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what was meant.
    pub message: String,
}

/// What may follow a prefix, and `COUNT-` with a number.
const SUFFIXES: &[&str] = &["NEXT", "SAME", "NOT", "DAG", "LABEL", "EMPTY"];

/// Nouns for CHECK lines in comments, and English words that are rare in code.
const PROSE: &[&str] = &[
    "all",
    "any",
    "are",
    "be",
    "because",
    "block",
    "blocks",
    "check",
    "checks",
    "comment",
    "comments",
    "directive",
    "directives",
    "does",
    "has",
    "have",
    "here",
    "line",
    "lines",
    "match",
    "matches",
    "must",
    "pattern",
    "patterns",
    "prefix",
    "prefixes",
    "should",
    "so",
    "statement",
    "statements",
    "that",
    "the",
    "then",
    "these",
    "this",
    "those",
    "variable",
    "variables",
    "was",
    "were",
    "when",
    "which",
    "will",
    "would",
];

/// A word that might be a directive: letters as prefixes have them, up to a colon, at the start of a comment or line.
static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\s*(?://+|#+|;+|--|\*|/\*)?\s*([A-Za-z][A-Za-z0-9_]*(?:[-_ ]{1,2}[A-Za-z0-9_-]*[A-Za-z0-9])?)(\{[A-Z]+\})?(\s*:)?(.*)$").ok()
});

/// The value of an option that names prefixes.
static PREFIXES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"-(?:check|comment)-prefix(?:es)?[= ]\s*'?([A-Za-z0-9_,-]+)").ok());

/// What a file's own lines say of FileCheck: prefixes that are read, and whether it is called at all.
struct Prefixes {
    read: BTreeSet<String>,
    /// A prefix might be named by a substitution that only the suite knows.
    is_open: bool,
}

/// Findings of a text, in order of lines.
pub fn lint(text: &str) -> Vec<Finding> {
    let Some(prefixes) = prefixes(text) else { return Vec::new() };
    let mut findings = Vec::new();
    let blanked: Vec<String> = text.lines().map(one_blank).collect();
    let (mut strangers, mut suffixed): (BTreeMap<String, usize>, BTreeSet<String>) = Default::default();
    for (n, line) in text.lines().enumerate() {
        if line.contains("RUN:") || line.contains("DEFINE:") {
            continue;
        }
        let Some(found) = WORD.as_ref().and_then(|word| word.captures(line)) else { continue };
        let part = |n: usize| found.get(n).map_or("", |m| m.as_str());
        if let Some((prefix, text)) =
            forgotten(part(1), &line[found.get(1).map_or(0, |m| m.end())..], &prefixes)
            && !is_prose(&text, |text| text_has(&blanked, n, text))
        {
            let word = text.split_whitespace().next().unwrap_or_default();
            let meant = match is_suffix(word) {
                true => format!("{prefix}-{word}"),
                false => prefix.to_string(),
            };
            let message = format!("'{prefix}' has no colon, so that nothing is checked: write '{meant}:'");
            findings.push(Finding { line: n + 1, message });
            continue;
        }
        let colon = match part(3) {
            "" => Colon::None,
            ":" => Colon::Close,
            _ => Colon::Apart,
        };
        match classify(part(1), colon, part(4), &prefixes) {
            Classified::Fine => {}
            Classified::Meant(message) => findings.push(Finding { line: n + 1, message }),
            Classified::Stranger(prefix, is_suffixed) => {
                if is_suffixed {
                    suffixed.insert(prefix.clone());
                }
                strangers.entry(prefix).or_insert(n + 1);
            }
        }
    }
    // A word with a colon is a stranger's prefix only where it also occurs with a suffix: `NOTE:` is not.
    for (prefix, line) in strangers {
        if suffixed.contains(&prefix) && !prefixes.is_open {
            findings.push(Finding { line, message: format!("no RUN line reads the prefix '{prefix}'") });
        }
    }
    findings.extend(unused(text, &prefixes));
    findings.sort_by_key(|finding| finding.line);
    findings
}

/// Lints files and reports findings; returns whether there are none.
pub(super) fn run(tests: &[Test], out: &mut dyn Write) -> std::io::Result<bool> {
    let mut count = 0;
    for test in tests {
        let text = files::read(&test.path, MAX_TEST)?;
        for finding in lint(&String::from_utf8_lossy(&text)) {
            writeln!(out, "{}:{}: {}", test.path.display(), finding.line, finding.message)?;
            count += 1;
        }
    }
    writeln!(out, "{count} findings in {} tests", tests.len())?;
    Ok(count == 0)
}

/// The prefixes that RUN lines name; none where no FileCheck is called.
fn prefixes(text: &str) -> Option<Prefixes> {
    let lines = || text.lines().filter(|line| line.contains("RUN:") || line.contains("DEFINE:"));
    if !lines().any(|line| line.contains("FileCheck")) {
        return None;
    }
    let mut read = BTreeSet::from(["CHECK".to_string()]);
    let mut is_open = false;
    // A command may go on in the next line, which need not name FileCheck.
    for line in lines() {
        for found in PREFIXES.as_ref().into_iter().flat_map(|option| option.captures_iter(line)) {
            let names = found.get(1).map_or("", |m| m.as_str());
            read.extend(names.split(',').map(str::to_string));
        }
        is_open |= line.contains("prefix") && line.contains("%{");
        is_open |= line.contains("%(") || line.contains("%prefix");
    }
    Some(Prefixes { read, is_open })
}

enum Classified {
    Fine,
    /// A directive was meant.
    Meant(String),
    /// A directive of a prefix that is not read; whether it has a suffix.
    Stranger(String, bool),
}

/// Where the colon after a word is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Colon {
    None,
    Close,
    /// After blanks, which FileCheck does not accept there.
    Apart,
}

fn classify(word: &str, colon: Colon, rest: &str, prefixes: &Prefixes) -> Classified {
    let has_colon = colon != Colon::None;
    let whole = |word: &str| -> Option<(String, String)> {
        // The longest prefix wins: `CHECK-A-NEXT` is of `CHECK-A` where that is one.
        let of = |prefix: &&String| {
            word.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let prefix = prefixes.read.iter().filter(of).max_by_key(|prefix| prefix.len())?;
        Some((prefix.clone(), word[prefix.len()..].trim_start_matches('-').to_string()))
    };
    if let Some((prefix, suffix)) = whole(word) {
        let known = suffix.is_empty() || is_suffix(&suffix);
        return match (known, colon) {
            (true, Colon::Close) => Classified::Fine,
            (true, Colon::Apart) => Classified::Meant(format!(
                "'{word} :' is not a directive, so that nothing is checked: write '{word}:'"
            )),
            // With a suffix a word is a directive, whatever follows; `forgotten` handles a prefix alone.
            (true, Colon::None)
                if !suffix.is_empty()
                    && !rest.trim().is_empty()
                    && !rest.starts_with(|c: char| ",.;)'`|/".contains(c))
                    && !is_about_checks(rest) =>
            {
                Classified::Meant(format!(
                    "'{word}' has no colon, so that nothing is checked: write '{word}:'"
                ))
            }
            (true, Colon::None) => Classified::Fine,
            (false, Colon::None) => Classified::Fine,
            (false, _) => match near_suffix(&suffix) {
                // A prefix that only the suite knows may be close to a suffix.
                Some(near) if !prefixes.is_open || suffix.len() > 3 => Classified::Meant(format!(
                    "'{word}:' is not a directive: did you mean '{prefix}-{near}:'?"
                )),
                _ => Classified::Fine,
            },
        };
    }
    if !has_colon {
        return Classified::Fine;
    }
    let (head, suffix) = split_suffix(word);
    for prefix in &prefixes.read {
        let like = |text: &str| {
            text != prefix
                && (text.eq_ignore_ascii_case(prefix)
                    && (text.contains(char::is_uppercase) || !suffix.is_empty())
                    || is_near(text, prefix))
        };
        if like(&head) || (suffix.is_empty() && like(word)) {
            let meant = if suffix.is_empty() { prefix.clone() } else { format!("{prefix}-{suffix}") };
            return Classified::Meant(format!("'{word}:' is not a directive: did you mean '{meant}:'?"));
        }
        // `CHECK NEXT:`, `CHECK_NEXT:`
        if head == *prefix && !suffix.is_empty() {
            return Classified::Meant(format!(
                "'{word}:' is not a directive: did you mean '{prefix}-{suffix}:'?"
            ));
        }
    }
    let is_prefix =
        head.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, '-' | '_'));
    match is_prefix && head.len() > 1 {
        true => Classified::Stranger(head, !suffix.is_empty()),
        false => Classified::Fine,
    }
}

fn is_suffix(text: &str) -> bool {
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    SUFFIXES.contains(&text) || text.strip_prefix("COUNT-").is_some_and(is_number)
}

/// The suffix that a misspelt one stands for: in another case, with one letter inserted, deleted or replaced, or two swapped.
fn near_suffix(text: &str) -> Option<String> {
    let near = |suffix: &&&str| {
        text.eq_ignore_ascii_case(suffix) || text.len() > 1 && is_one_edit(&text.to_ascii_uppercase(), suffix)
    };
    if let Some(suffix) = SUFFIXES.iter().find(near) {
        return Some(suffix.to_string());
    }
    // `COUNTS-2`, `COUNT2`, `COUNT_2`
    let word = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = &text[word.len()..];
    let word = word.trim_end_matches(['-', '_']).to_ascii_uppercase();
    let is_count = word == "COUNT" || is_one_edit(&word, "COUNT");
    is_count.then(|| format!("COUNT-{}", if number.is_empty() { "<n>" } else { number }))
}

/// The prefix that a line begins with and the text after it, if no suffix, comma or colon follows.
fn forgotten<'p>(word: &str, rest: &str, prefixes: &'p Prefixes) -> Option<(&'p str, String)> {
    let is_loud = |prefix: &&String| !prefix.contains(|c: char| c.is_ascii_lowercase());
    let whole = format!("{word}{rest}");
    let after = |prefix: &String| whole.strip_prefix(prefix.as_str()).map(str::to_string);
    let (prefix, text) = prefixes
        .read
        .iter()
        .filter(is_loud)
        .filter_map(|prefix| Some((prefix, after(prefix)?)))
        .max_by_key(|(prefix, _)| prefix.len())?;
    // `CHECK NOT: a` and `CHECK : a` are reported as misspelt.
    let misspelt = text.trim_start().split(':').next().is_some_and(|head| head.is_empty() || is_suffix(head));
    let is_apart = text.starts_with([' ', '\t']) && !text.trim().is_empty();
    (is_apart && !(text.contains(':') && misspelt)).then_some((prefix, text))
}

/// Whether a text has English words about checks.
fn is_about_checks(text: &str) -> bool {
    let plain = |word: &str| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
    text.split_whitespace().any(|word| PROSE.contains(&plain(word).as_str()))
}

/// Whether a text after a prefix is English: it is about checks, or it is several words without any sign of code that occur
/// nowhere else in the file.
fn is_prose(text: &str, occurs_elsewhere: impl Fn(&str) -> bool) -> bool {
    let text = one_blank(text);
    let is_word = |word: &str| {
        let word = word.trim_start_matches(['(', '\'', '"', '`']);
        let word = word.trim_end_matches([')', '\'', '"', '`', '.', ',', ';', ':', '!', '?']);
        word.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '\''))
    };
    let count = text.split(' ').count();
    is_about_checks(&text)
        || text.starts_with('(')
        || count > 1 && text.split(' ').all(is_word) && !occurs_elsewhere(&text)
        || count != 2 && text.ends_with(['.', ','])
}

/// A text with one blank for each run of them.
fn one_blank(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a line other than this one contains a text.
fn text_has(lines: &[String], but: usize, text: &str) -> bool {
    lines.iter().enumerate().any(|(n, line)| n != but && line.contains(text))
}

/// A word's head and its suffix, which may be misspelt and follow another sign than a dash.
fn split_suffix(word: &str) -> (String, String) {
    for (at, sign) in word.char_indices().rev().filter(|(_, sign)| matches!(sign, '-' | '_' | ' ')) {
        let suffix = &word[at + sign.len_utf8()..];
        let known = if is_suffix(suffix) { Some(suffix.to_string()) } else { None };
        if let Some(suffix) = known.or_else(|| {
            near_suffix(suffix).filter(|near| suffix.len() > 3 || suffix.eq_ignore_ascii_case(near))
        }) {
            return (word[..at].trim_end_matches(['-', '_', ' ']).to_string(), suffix);
        }
    }
    (word.to_string(), String::new())
}

/// Whether one edit turns a word into a prefix. Short words are close to too many.
fn is_near(word: &str, other: &str) -> bool {
    const SHORTEST: usize = 4;
    let (a, b) = (word.as_bytes(), other.as_bytes());
    if a == b
        || a.len().min(b.len()) < SHORTEST - 1
        || b.len() < SHORTEST && a.len() != b.len()
        || b.len() < 3
    {
        return false;
    }
    is_one_edit(word, other) && (a.len() != b.len() || b.len() >= SHORTEST || is_swap(a, b))
}

/// Whether words differ by one letter inserted, deleted or replaced, or by two swapped.
fn is_one_edit(word: &str, other: &str) -> bool {
    let (a, b) = (word.as_bytes(), other.as_bytes());
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    match (&a[same..], &b[same..]) {
        ([], []) => false,
        ([_, left @ ..], [_, right @ ..]) if left == right => true,
        (longer, [_, right @ ..]) if longer == right => true,
        ([_, left @ ..], shorter) if left == shorter => true,
        _ => is_swap(a, b),
    }
}

fn is_swap(a: &[u8], b: &[u8]) -> bool {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    matches!((&a[same..], &b[same..]), ([x, y, left @ ..], [u, v, right @ ..]) if x == v && y == u && left == right)
}

/// Variables that a check sets and nothing uses: a pattern would do, or the use was forgotten.
fn unused(text: &str, prefixes: &Prefixes) -> Vec<Finding> {
    static SET: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\[\[\s*(\$?[A-Za-z_][A-Za-z0-9_]*)\s*:").ok());
    static NUMBER: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\[\[#[^\]:]*?([A-Za-z_$][A-Za-z0-9_]*)\s*:").ok());
    static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\$?[A-Za-z_][A-Za-z0-9_]*").ok());
    let is_check = |line: &&str| {
        prefixes.read.iter().any(|prefix| line.contains(prefix.as_str()) && line.contains("[["))
    };
    let mut set: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (n, line) in text.lines().enumerate().filter(|(_, line)| is_check(line)) {
        for expression in [&SET, &NUMBER] {
            for found in expression.as_ref().into_iter().flat_map(|e| e.captures_iter(line)) {
                if let Some(name) = found.get(1) {
                    set.entry(name.as_str()).or_insert((n + 1, 0)).1 += 1;
                }
            }
        }
        for inside in line.split("[[").skip(1) {
            let inside = inside.split("]]").next().unwrap_or_default();
            let head = inside.split(':').next().unwrap_or_default();
            let tail = if inside.starts_with('#') { inside } else { head };
            for word in WORDS.as_ref().into_iter().flat_map(|words| words.find_iter(tail)) {
                *seen.entry(word.as_str()).or_default() += 1;
            }
        }
    }
    set.into_iter()
        .filter(|(name, (_, times))| !name.starts_with('$') && seen.get(name).copied().unwrap_or(0) <= *times)
        .map(|(name, (line, _))| Finding {
            line,
            message: format!("the variable '{name}' is set and never used"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::lint;

    fn of(text: &str) -> Vec<String> {
        let text = format!(
            "# RUN: tool %s | FileCheck %s --check-prefixes=CHECK,AB\n# RUN: tool %s | FileCheck %s -check-prefix X86\n{text}"
        );
        lint(&text).into_iter().map(|finding| format!("{}: {}", finding.line, finding.message)).collect()
    }

    #[test]
    fn directives_that_are_none_are_found() {
        for (line, meant) in [
            ("# CHEKC: a", "CHECK:"),
            ("// CHECk: a", "CHECK:"),
            ("; CHCEK-NEXT: a", "CHECK-NEXT:"),
            ("CHECKS: a", "CHECK:"),
            ("# CHECK-NETX: a", "CHECK-NEXT:"),
            ("# CHECK-next: a", "CHECK-NEXT:"),
            ("# CHECK_NEXT: a", "CHECK-NEXT:"),
            ("# CHECK NOT: a", "CHECK-NOT:"),
            ("# check-dag: a", "CHECK-DAG:"),
            ("# CHECK-LABLE: a", "CHECK-LABEL:"),
            ("# X86-SMAE: a", "X86-SAME:"),
            ("# CHECK-NEXT a", "CHECK-NEXT:"),
            ("# CHECK-NEXT a b c", "CHECK-NEXT:"),
            ("# CHECK-NOTT: a", "CHECK-NOT:"),
            ("# CHECK-NO: a", "CHECK-NOT:"),
            ("# CHECK-NXT: a", "CHECK-NEXT:"),
            ("# CHECK-DAGS: a", "CHECK-DAG:"),
            ("# AB-EMTPY:", "AB-EMPTY:"),
            ("# CHECK-LABELS: a", "CHECK-LABEL:"),
            ("# CHECK-COUNTS-3: a", "CHECK-COUNT-3:"),
            ("# CHECK-COUNT3: a", "CHECK-COUNT-3:"),
            ("# CHECK-COUNT: a", "CHECK-COUNT-<n>:"),
            ("; CHECK return", "CHECK:"),
            ("; CHECK ret i64 5", "CHECK:"),
            ("; CHECK %local = alloca i32, align 8", "CHECK:"),
            ("; CHECK ret void\n  ret  void", "CHECK:"),
            ("# X86 graph(%x : int):", "X86:"),
            ("# CHECK entry:", "CHECK:"),
            ("# CHECK NOT foo(", "CHECK-NOT:"),
            ("# CHECK : a", "CHECK:"),
            ("# CHECK-NEXT : a", "CHECK-NEXT:"),
        ] {
            let found = of(line);
            assert!(
                found.len() == 1 && found[0].starts_with("3: ") && found[0].contains(&format!("'{meant}'")),
                "{line}: {found:?}"
            );
        }
    }

    #[test]
    fn lines_that_are_checks_or_prose_are_not() {
        for line in [
            "# CHECK: a",
            "# CHECK-NEXT: CHEKC: a",
            "# CHECK-COUNT-3: a",
            "# AB-SAME{LITERAL}: [[",
            "# CHECK lines follow",
            "# CHECK-NEXT lines follow",
            "# CHECK-NOT, then",
            "# CHECK",
            "# CHECK-EMPTY",
            "# CHECK comes before",
            "# CHECK (see %x above)",
            "# CHECK and %x is what we mean by it.",
            "# CHECK: the %1 = add of\n# CHECK must come before %2",
            "# CHECK-AB: b",
            "# Check return 3",
            "# Checks: what comes next",
            "# NOTE: nothing",
            "# TODO: more",
            "  %1 = check.op: a",
            "# COM: CHEKC: a",
        ] {
            assert_eq!(of(line), Vec::<String>::new(), "{line}");
        }
        assert!(lint("# RUN: tool %s\n# CHEKC: a\n").is_empty());
    }

    #[test]
    fn unused_prefixes_and_variables_are_found() {
        assert_eq!(of("# ARM: a\n# ARM-NEXT: b"), ["3: no RUN line reads the prefix 'ARM'"]);
        assert_eq!(
            of("# CHECK: [[A:.*]] [[B:.*]]\n# CHECK: [[A]]"),
            ["3: the variable 'B' is set and never used"]
        );
        assert_eq!(
            of("# CHECK: [[#N:]] [[#%x,M:]]\n# CHECK: [[#N+1]] [[$G:.*]]"),
            ["3: the variable 'M' is set and never used"]
        );
        assert_eq!(of("# CHECK: [[A:.*]] [[A]]"), Vec::<String>::new());
    }
}
