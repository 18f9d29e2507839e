//! Whole runs: recorded cases, LLVM's FileCheck as oracle where it is installed, and properties.
//!
//! A file of cases in `cases/` has, for each, `==== name`, the options of the command line (`args:`), the value of
//! FILECHECK_OPTS (`env:`) and the parts `---- check` and `---- input`. What each gives stands in
//! `cases/recorded.txt`; `BLESS=1` writes it anew. `oracle:` says why a case is not compared with LLVM's.

use super::*;
use proptest::prelude::*;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FILES: [(&str, &str); 5] = [
    ("directives", include_str!("cases/directives.case")),
    ("variables", include_str!("cases/variables.case")),
    ("numeric", include_str!("cases/numeric.case")),
    ("options", include_str!("cases/options.case")),
    ("regex", include_str!("cases/regex.case")),
];

#[derive(Default)]
struct Case {
    name: String,
    args: Vec<String>,
    env: Option<String>,
    differs: bool,
    check: Vec<u8>,
    input: Vec<u8>,
}

/// Exit status, output, errors.
type Result3 = (i32, Vec<u8>, Vec<u8>);

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (file, text) in FILES {
        let mut part = ("", "");
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("==== ") {
                cases.push(Case { name: format!("{file}: {name}"), ..Case::default() });
                part = ("", "");
                continue;
            }
            let case = cases.last_mut().unwrap();
            if let Some(head) = line.strip_prefix("---- ") {
                part = head.split_once(' ').unwrap_or((head, ""));
                continue;
            }
            let text = match part.0 {
                "check" => &mut case.check,
                "input" => &mut case.input,
                _ => {
                    let (key, value) = line.split_once(": ").unwrap();
                    match key {
                        "args" => case.args = value.split(' ').map(String::from).collect(),
                        "env" => case.env = Some(value.into()),
                        _ => case.differs = true,
                    }
                    continue;
                }
            };
            match part.1 {
                "(escaped)" => text.extend(unescape(line)),
                "(no newline)" => {
                    if !text.is_empty() {
                        text.push(b'\n');
                    }
                    text.extend(line.bytes());
                }
                _ => text.extend(line.bytes().chain([b'\n'])),
            }
        }
    }
    cases
}

fn unescape(line: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = line.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next().unwrap() {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'x' => {
                    let digits: String =
                        [bytes.next(), bytes.next()].map(|b| char::from(b.unwrap())).iter().collect();
                    u8::from_str_radix(&digits, 16).unwrap()
                }
                other => other,
            },
            other => other,
        });
    }
    out
}

/// A folder with a file `check` and a file `INPUT`.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("flambeau-filecheck-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn words(&self, case: &Case) -> Vec<OsString> {
        std::fs::write(self.0.join("check"), &case.check).unwrap();
        std::fs::write(self.0.join("INPUT"), &case.input).unwrap();
        let words = ["FileCheck", "check"].into_iter().chain(case.args.iter().map(String::as_str));
        words.map(OsString::from).collect()
    }

    fn ours(&self, case: &Case) -> Result3 {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let words = self.words(case);
        let status =
            main_in(&self.0, &words, case.env.as_deref(), &mut case.input.as_slice(), &mut out, &mut err);
        (status, out, err)
    }

    #[cfg(unix)]
    fn oracle(&self, program: &Path, case: &Case) -> Result3 {
        use std::io::Write;
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(program);
        command.arg0("FileCheck").args(self.words(case).into_iter().skip(1)).current_dir(&self.0);
        command.env_remove("FILECHECK_OPTS").envs(case.env.as_ref().map(|value| ("FILECHECK_OPTS", value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It may end without reading its input.
        let _ = child.stdin.take().unwrap().write_all(&case.input);
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap_or(-1), output.stdout, output.stderr)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn shown((status, out, err): &Result3) -> String {
    let text = |bytes: &[u8]| {
        let escape = |byte: &u8| match byte {
            b'\n' => "\n".to_string(),
            b' '..=b'~' => char::from(*byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        };
        bytes.iter().map(escape).collect::<String>()
    };
    format!("status {status}\n{}{}", text(out), text(err))
}

#[test]
fn cases_give_what_is_recorded() {
    let folder = Folder::new("cases");
    let mut all = String::new();
    for case in cases() {
        all.push_str(&format!("==== {}\n{}", case.name, shown(&folder.ours(&case))));
        if !all.ends_with('\n') {
            all.push('\n');
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cases/recorded.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &all).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap();
    for (new, old) in all.split("==== ").zip(recorded.split("==== ")) {
        assert_eq!(new, old);
    }
    assert_eq!(all.len(), recorded.len());
}

#[cfg(unix)]
#[test]
fn cases_give_what_llvm_gives() {
    let names = ["FileCheck-22", "/usr/lib/llvm-22/bin/FileCheck"];
    let known = |name: &&&str| Command::new(**name).arg("--version").stdout(Stdio::null()).status().is_ok();
    let Some(program) = names.iter().find(known) else {
        eprintln!("skipped: FileCheck-22 of LLVM is not installed");
        return;
    };
    let folder = Folder::new("oracle");
    let mut different = Vec::new();
    for case in cases().iter().filter(|case| !case.differs) {
        let (ours, theirs) = (folder.ours(case), folder.oracle(Path::new(program), case));
        if ours != theirs {
            different.push(format!(
                "{}\n--- LLVM\n{}\n--- ours\n{}",
                case.name,
                shown(&theirs),
                shown(&ours)
            ));
        }
    }
    assert!(different.is_empty(), "{} different\n{}", different.len(), different.join("\n"));
}

#[test]
fn the_library_form_gives_the_same_words() {
    let options = Options { dump_input: vec![DumpInput::Never], ..Options::default() };
    assert_eq!(check("CHECK: a\nCHECK-NEXT: b\n", "a\nb\n", &options), Ok(()));
    assert_eq!(
        check("CHECK: a\nCHECK-NEXT: b\n", "a\nc\nb\n", &options),
        Err("\
check:2:13: error: CHECK-NEXT: is not on the line after the previous match
CHECK-NEXT: b
            ^
input:3:1: note: 'next' match was here
b
^
input:1:2: note: previous match ended here
a
 ^
input:2:1: note: non-matching line after previous match is here
c
^
"
        .into())
    );
    assert!(check("nothing\n", "a\n", &options).is_err());
}

#[test]
fn sections_are_chosen_by_words_of_their_labels() {
    let checks = "CHECK: first\nCHECK-LABEL: @foo:\nCHECK: a\nCHECK-NOT: bad\nCHECK-LABEL: @foobar:\nCHECK: none\n\
                  CHECK-LABEL: @bar:\nCHECK: b\nCHECK-NOT: bad\n";
    let input = "first\n@foo:\na\n@foobar:\n@bar:\nb\n";
    let run = |words: &[&str], input: &str| {
        let filter_label = words.iter().map(ToString::to_string).collect();
        let options = Options { filter_label, dump_input: vec![DumpInput::Never], ..Options::default() };
        check(checks, input, &options)
    };
    assert!(run(&[], input).is_err() && run(&["foobar"], input).is_err());
    for words in [&["foo"][..], &["bar"], &["foo", "bar"]] {
        assert_eq!(run(words, input), Ok(()), "{words:?}");
    }
    let bad = run(&["foo"], "first\n@foo:\na\nbad\n@bar:\n").unwrap_err();
    assert!(bad.contains("CHECK-NOT: excluded string found in input"), "{bad}");
    assert!(run(&["foo"], "@foo:\na\n").is_err(), "what stands in front of all labels stays");
}

#[test]
fn help_and_version_are_written() {
    for (word, expected) in [
        ("--help", "--implicit-check-not"),
        ("-help-list", "--match-full-lines"),
        ("--version", "LLVM version 22"),
        ("-dump-input=help", "description was requested by -dump-input=help"),
    ] {
        let words = ["FileCheck", word].map(OsString::from);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        assert_eq!(main(&words, None, &mut std::io::empty(), &mut out, &mut err), 0);
        assert!(String::from_utf8(out).unwrap().contains(expected), "{word}");
    }
}

#[test]
fn hostile_files_end_soon() {
    let options = Options { dump_input: vec![DumpInput::Never], ..Options::default() };
    let long = "a".repeat(20_000);
    for text in [
        format!("CHECK: {}", "{{(".to_string() + &"(".repeat(100_000) + "}}"),
        format!("CHECK: [[#{}1]]", "(".repeat(100_000)),
        format!("CHECK: [[#{}]]", "1+".repeat(100_000) + "1"),
        format!("CHECK: [[#{}]]", "9".repeat(100_000)),
        format!("CHECK: [[#{}]]", "add(".repeat(100_000)),
        "CHECK: {{((a{255}){255}){255}}}".into(),
        "CHECK: {{((a*)*)*b}}".into(),
        "CHECK: [[X:((a*)*)*]]b".into(),
        "CHECK: {{(a*)*\\1\\1b}}".into(),
        "CHECK: {{(a|aa|aaa)*\\1x*$}}".into(),
        "CHECK: {{(a*)(a*)(a*)x*\\1\\2\\3a$}}".into(),
        "CHECK: [[X:(a|aa.*)*]]x*".into(),
        "CHECK: [[X:(.|[[:space:]])*]]a[[Y:(.|[[:space:]])*]]".into(),
        "CHECK-COUNT-2147483647: {{x*}}".into(),
        format!("CHECK{{LITERAL{}}}: a", ",LITERAL".repeat(100_000)),
    ] {
        // What matters is that it comes back.
        let start = std::time::Instant::now();
        let _ = check(&text, &long, &options);
        let name: String = text.chars().take(40).collect();
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "{name}");
    }
}

/// Text made of the marks that the language knows.
fn text() -> impl Strategy<Value = String> {
    let words = [
        "CHECK:",
        "CHECK-NEXT:",
        "CHECK-SAME:",
        "CHECK-NOT:",
        "CHECK-DAG:",
        "CHECK-LABEL:",
        "CHECK-EMPTY:",
        "CHECK-COUNT-2:",
        "CHECK{LITERAL}:",
        "CHECK",
        "RUN:",
        "\n",
        "\n",
        "\n",
        " ",
        "\t",
        "\r\n",
        "a",
        "b",
        "1",
        "{{",
        "}}",
        "[[",
        "]]",
        "[[#",
        "X",
        "N",
        ":",
        "%x",
        "%.3d",
        ",",
        "==",
        "+",
        "-",
        "(",
        ")",
        "add(",
        "@LINE",
        "[",
        "]",
        "*",
        "?",
        "|",
        "\\",
        "\\1",
        "{2,3}",
        "^",
        "$",
        ".",
        "[^a]",
        "[[:alpha:]]",
        "é",
        "\0",
    ];
    proptest::collection::vec(proptest::sample::select(words.to_vec()), 0..40)
        .prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_file_ends_with_a_status(mut check_text in text(), input in text(), switches in 0u16..1024) {
        check_text.insert_str(0, "CHECK: ");
        let on = |bit: u16| switches >> bit & 1 == 1;
        let options = Options {
            strict_whitespace: on(0),
            match_full_lines: on(1),
            ignore_case: on(2),
            enable_var_scope: on(3),
            allow_empty: on(4),
            allow_deprecated_dag_overlap: on(5),
            verbosity: u8::from(on(6)) + u8::from(on(7)),
            color: on(8),
            dump_input: vec![if on(9) { DumpInput::Always } else { DumpInput::Never }],
            implicit_check_not: vec!["[[X]]b".into()],
            ..Options::default()
        };
        if let Err(message) = check(&check_text, &input, &options) {
            prop_assert!(!message.is_empty());
        }
    }

    #[test]
    fn literal_text_is_found_where_it_is(before in "[0-9 ]{0,8}", word in "[a-z]{1,8}", behind in "[a-z ]{0,8}") {
        let options = Options::default();
        let input = format!("{before}{word}{behind}\n");
        prop_assert_eq!(check(&format!("CHECK: {word}\n"), &input, &options), Ok(()));
        let not = check(&format!("CHECK-NOT: {word}\n"), &input, &options);
        prop_assert!(not.is_err());
        let twice = format!("{input}{behind}x\n");
        let capture = format!("CHECK: {word}[[X:.*]]{{{{$}}}}\nCHECK-NEXT: [[X]]x\n");
        prop_assert_eq!(check(&capture, &twice, &options), Ok(()));
    }
}

#[test]
fn marks_reach_columns_of_any_number() {
    let folder = Folder::new("long-line");
    std::fs::write(folder.0.join("check"), "CHECK: aab\nCHECK: zzz\n").unwrap();
    let words: Vec<OsString> = ["FileCheck", "check", "--dump-input=always", "-v"].map(OsString::from).into();
    let input = format!("{}b\nmore\n", "a".repeat(70_000));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = main_in(&folder.0, &words, None, &mut input.as_bytes(), &mut out, &mut err);
    assert_eq!(status, 1);
    let text = String::from_utf8_lossy(&err);
    let mark = format!("{}^~~", " ".repeat(69_998));
    assert!(text.contains(&mark), "{} bytes", text.len());
}

#[test]
fn precisions_beyond_the_widths_of_formats_are_written() {
    let folder = Folder::new("precision");
    let case = Case {
        args: vec!["-D#N=1".into(), "-dump-input=never".into()],
        check: b"CHECK: {{^}}[[#%.70000u,N]]{{$}}\n".to_vec(),
        input: format!("{}1\n", "0".repeat(69999)).into_bytes(),
        ..Case::default()
    };
    assert_eq!(folder.ours(&case).0, 0);
}

#[test]
fn files_of_words_are_read() {
    let folder = Folder::new("response");
    std::fs::write(folder.0.join("words"), "-check-prefix 'A' @more").unwrap();
    std::fs::write(folder.0.join("more"), "-v").unwrap();
    let args = vec!["@words".into(), "-dump-input=never".into()];
    let case = Case { args, check: b"A: x\n".to_vec(), input: b"x\n".to_vec(), ..Case::default() };
    let (status, _, errors) = folder.ours(&case);
    assert_eq!((status, errors.starts_with(b"check:1:4: remark")), (0, true));
    // Files that name each other end somewhere.
    std::fs::write(folder.0.join("more"), "-v @words").unwrap();
    assert_eq!(folder.ours(&case).0, 1);
}
