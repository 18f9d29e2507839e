//! The texts of `--help`, `--help-list`, `--version` and `--dump-input=help`.

/// Options with their value and what they do; the help of both forms is made from it.
const OPTIONS: &[(&str, &str)] = &[
    ("--allow-deprecated-dag-overlap", "let the matches of neighbouring DAG checks overlap"),
    ("--allow-empty", "take an empty input for an input"),
    ("--allow-unused-prefixes", "do not insist that every prefix occurs in the check file"),
    ("--check-prefix=<prefix>", "look for this prefix instead of CHECK; may be repeated"),
    ("--check-prefixes=<a,b,...>", "several of the same"),
    ("--color", "write colours"),
    ("--comment-prefixes=<a,b,...>", "prefixes that start a comment, instead of COM and RUN"),
    ("-D<NAME=text>", "define a variable; -D#NAME=expression defines a numeric one"),
    ("--dump-input=<when>", "write the annotated input: help, always, fail (the default) or never"),
    ("--dump-input-context=<n>", "lines of context in the dump; 5 if not given"),
    ("--dump-input-filter=<lines>", "what the dump keeps: all, annotation-full, annotation or error"),
    ("--enable-var-scope", "forget variables without a $ at each LABEL"),
    ("--ignore-case", "let letters match in either case"),
    ("--implicit-check-not=<pattern>", "put a NOT check with this pattern around every other check"),
    ("--input-file=<file>", "read this file instead of the standard input"),
    ("--match-full-lines", "let a check match whole lines only"),
    ("--strict-whitespace", "distinguish blanks and tabs, and count them"),
    ("-v", "report each match too"),
    ("-vv", "report everything that was tried"),
    ("--help", "write this text"),
    ("--help-list", "write the options as one list"),
    ("--version", "write the version"),
];

/// The text of `--help`.
pub(super) fn usage(name: &str) -> String {
    let mut text = format!(
        "USAGE: {name} [options] <check-file>\n\nChecks that the input contains what the check file says.\n\n\
         OPTIONS:\n\n"
    );
    for (option, meaning) in OPTIONS {
        text.push_str(&format!("  {option:<32} {meaning}\n"));
    }
    text.push_str("\nThe options in the environment variable FILECHECK_OPTS are read first.\n");
    text
}

/// The text of `--help-list`.
pub(super) fn list(name: &str) -> String {
    let mut text = format!("USAGE: {name} [options] <check-file>\n\n");
    for (option, _) in OPTIONS {
        text.push_str(&format!("  {option}\n"));
    }
    text
}

/// The text of `--version`.
pub(super) fn version() -> String {
    format!("Flambeau {} FileCheck, the language of LLVM version 22\n", env!("CARGO_PKG_VERSION"))
}

/// The text of `--dump-input=help`.
pub(super) const DUMP: &str = "\
The following description was requested by -dump-input=help to
explain the annotated input that FileCheck writes.

Options that change it:

  - -dump-input=<value> says when it is written
  - -dump-input-filter=<value> says which lines it keeps
  - -dump-input-context=<N> says how many lines around them it keeps
  - -v and -vv add annotations for successful matches
  - -color writes colours
  - -help explains all options

They can also stand in the environment. To see everything:

  $ FILECHECK_OPTS='-dump-input-filter=all -vv -color' make test

How to read it:

  - L:     a line of the input, with its number; a blank stands for its line end
  - T:L    the result of a check of kind T on line L of the check file;
           impI stands for the implicit check number I, from 1
  - T:L'N  result number N of that check, from 0
  - ^~~    a wanted match (with -v)
  - !~~    an unwanted match: of a CHECK-NOT, on the wrong line, or, with -vv, one of a
           CHECK-DAG that overlaps an earlier one and is passed over
  - X~~    what was searched without a match
  - ?      what looks most like the wanted text
  - ...    lines that were left out
  - colors success, error, likely match, passed over match, unmatched input
";
