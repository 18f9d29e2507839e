//! Messages, help, pages and comments are in the standard English of compiler engineers: no words of a dialect of our own.

use super::verdict;
use libtest_mimic::Failed;
use std::collections::BTreeMap;
use std::fs;

/// Where text is checked.
const ROOTS: &[&str] = &[
    "src",
    "crates",
    "docs",
    "python/lib",
    "python/src",
    "capi",
    "examples",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
];

/// Kinds of files with text of our own.
const KINDS: &[&str] =
    &["rs", "md", "py", "pyi", "h", "hpp", "rules", "dialect", "grad", "pest", "js", "html", "ipynb"];

/// Words and phrases that are refused, and what to write. They are found in lower case, at the boundaries of words.
const REFUSED: &[(&str, &str)] = &[
    ("nobody", "unused, dead, no other reference, unobservable"),
    ("somebody", "an owner, a user, an observer"),
    ("whoever", "the caller, the owner"),
    ("kin", "related ops, similar functions"),
    ("liars", "unsound rules"),
    ("so many", "the number of, at most N"),
    ("told", "reported, given, known"),
    ("telling", "reporting, showing"),
    ("types tell", "types determine"),
    ("type tells", "known from the type"),
    ("each turn", "each iteration"),
    ("every turn", "every iteration"),
    ("next turn", "the next iteration"),
    ("of a turn", "of an iteration"),
    ("number of turns", "trip count"),
    ("turns of", "iterations of"),
    ("its turns", "its iterations"),
    ("max-turns", "max-iterations"),
    ("looking on", "observing, debugging output"),
    ("looks on", "observes"),
    ("hangs on", "depends on"),
    ("hang on", "depend on"),
    ("came by", "were observed"),
    ("comes by", "reaches, encounters"),
    ("taken to be", "assumed to be"),
    ("to do anything", "opaque, with unknown side effects"),
    ("slip of the hand", "typo"),
    ("the words of", "the options of, the wording of"),
    ("words of `flambeau", "options of `flambeau"),
];

/// Ends of a phrase after which `no` does not stand for `not a`.
const AFTER_NO: &[&str] =
    &["longer", "more", "such", "better", "worse", "less", "larger", "smaller", "greater", "fewer", "faster"];

/// How often a phrase remains in a file, and why. This list may only shrink.
const KNOWN: &[(&str, &str, usize, &str)] =
    &[("crates/files/README.md", "hangs on", 1, "a command that does not end")];

pub(super) fn text_is_in_standard_english() -> Result<(), Failed> {
    sees_what_it_is_for()?;
    let mut found: BTreeMap<(String, &str), Vec<usize>> = BTreeMap::new();
    for (path, text) in ROOTS.iter().flat_map(|root| files(root)) {
        for (number, line) in text.lines().enumerate() {
            for phrase in phrases(line) {
                found.entry((path.clone(), phrase)).or_default().push(number + 1);
            }
        }
    }
    let mut findings = Vec::new();
    for ((path, phrase), lines) in &found {
        let known = KNOWN.iter().find(|(known, words, ..)| known == path && words == phrase);
        let allowed = known.map_or(0, |(_, _, count, _)| *count);
        if lines.len() > allowed {
            let better =
                REFUSED.iter().find(|(refused, _)| refused == phrase).map_or(NOT_A, |(_, better)| better);
            findings.push(format!("{path}:{lines:?}: '{phrase}'; write: {better}"));
        }
    }
    for (path, phrase, count, _) in KNOWN {
        if found.get(&(path.to_string(), phrase)).map_or(0, Vec::len) < *count {
            findings.push(format!(
                "{path}: '{phrase}' remains less than {count} times; lower tests/tidy/language.rs"
            ));
        }
    }
    verdict("words of a private dialect", findings)
}

/// The phrase of `x is no kernel`.
const IS_NO: &str = "is no";
const NOT_A: &str = "is not a";

/// The refused phrases of a line.
fn phrases(line: &str) -> Vec<&'static str> {
    let line = line.to_lowercase().replace("told apart", "").replace("is no telling", "");
    let mut out: Vec<&'static str> = Vec::new();
    for (phrase, _) in REFUSED {
        out.extend(whole(&line, phrase).map(|_| *phrase));
    }
    for verb in ["is no", "are no", "was no", "were no"] {
        for at in whole(&line, verb) {
            let before = line[..at].trim_end().rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
            let after = line[at + verb.len()..].trim_start();
            let next = after.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
            // A question, or `there is only no`, has its subject elsewhere.
            let exists = before == "there" || line[..at].contains("there") || next.is_empty();
            if !exists && !AFTER_NO.contains(&next) {
                out.push(IS_NO);
            }
        }
    }
    out
}

/// Where a phrase stands between the boundaries of words.
fn whole<'a>(line: &'a str, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(phrase).map(|(at, _)| at).filter(move |at| {
        !line[..*at].ends_with(is_letter) && !line[at + phrase.len()..].starts_with(is_letter)
    })
}

/// The texts of a file, or of the files below a folder, by path. Cases that were recorded from other tools stay.
fn files(root: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut paths = vec![root.to_string()];
    while let Some(path) = paths.pop() {
        if let Ok(entries) = fs::read_dir(&path) {
            paths.extend(entries.flatten().map(|entry| entry.path().to_string_lossy().replace('\\', "/")));
        } else if path.rsplit('.').next().is_some_and(|kind| KINDS.contains(&kind))
            && let Ok(text) = fs::read_to_string(&path)
        {
            out.push((path, text));
        }
    }
    out.sort();
    out
}

/// The check sees what it is there for.
fn sees_what_it_is_for() -> Result<(), Failed> {
    let refused = ["// What nobody uses.", "it is no kernel", "We were told so", "values are no constants"];
    let fine =
        ["there is no kernel", "it is no longer used", "bikini", "they are told apart", "it is not a kernel"];
    let seen = |lines: &[&str]| lines.iter().filter(|line| !phrases(line).is_empty()).count();
    match (seen(&refused), seen(&fine)) {
        (4, 0) => Ok(()),
        found => Err(format!("the check of language sees {found:?} where there are (4, 0)").into()),
    }
}
