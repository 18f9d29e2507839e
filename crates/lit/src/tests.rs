//! Whole tests in a folder of their own.

mod update;

use super::*;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A folder that goes away with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("flambeau-lit-test-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        for (name, text) in files {
            let path = path.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Folder(path)
    }

    fn config(&self) -> Config {
        let upper = tool(|args, stdin, out, err| {
            let mut text = String::new();
            stdin.read_to_string(&mut text).unwrap();
            writeln!(out, "{}{}", args.len(), text.to_uppercase()).unwrap();
            writeln!(err, "done").unwrap();
            0
        });
        let crash = tool(|_, _, _, _| panic!("on purpose"));
        let mut config = Config {
            name: "suite".into(),
            suffixes: vec![".test".into()],
            features: ["foo".to_string()].into(),
            temp: self.0.join("temp"),
            ..Config::default()
        };
        config.tools.extend([("upper".to_string(), upper), ("crash".to_string(), crash)]);
        config.substitutions.push(("%up".into(), "upper".into()));
        config
    }

    fn status(&self, name: &str) -> (Status, String) {
        let outcome = run_file(&self.0.join(name), &self.config());
        (outcome.status, outcome.output)
    }

    fn main(&self, args: &[&str]) -> (i32, String, String) {
        let mut words = vec![OsString::from("lit"), self.0.clone().into_os_string()];
        words.extend(args.iter().map(OsString::from));
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let status = main(&words, self.config(), &mut out, &mut err);
        (status, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn check(name: &str, text: &str, expected: Status) -> String {
    let folder = Folder::new(name, &[("a.test", text)]);
    let (status, output) = folder.status("a.test");
    assert_eq!(status, expected, "{output}");
    output
}

#[test]
fn a_pipe_into_filecheck() {
    check("pipe", "# RUN: echo hello | %up | FileCheck %s\n# CHECK: 1HELLO\n", Status::Pass);
    let output = check("pipe2", "# RUN: echo hello | FileCheck %s\n# CHECK: bye\n", Status::Fail);
    assert!(output.contains("error: CHECK: expected string not found in input"), "{output}");
    assert!(output.contains("# error: command failed with exit status: 1"), "{output}");
}

#[test]
fn redirections_go_where_they_say() {
    let text = "\
RUN: echo a > %t; echo b >> %t; upper < %t > %t.2 2> %t.3
RUN: cat %t.2 %t.3 | FileCheck %s
RUN: upper x 2>&1 < %t | FileCheck %s --check-prefix=BOTH
RUN: upper 2>&1 > %t.4 | FileCheck %s --check-prefix=ERR && diff %t.4 %t.4
RUN: upper &> %t.5 && FileCheck %s --check-prefix=ONE --input-file %t.5
RUN: sh -c 'echo x; echo y >&2' 2>&1 | FileCheck %s --check-prefix=PROGRAM
RUN: not diff -u %t %t.2 | FileCheck %s --check-prefix=DIFF
CHECK: 1A
CHECK-NEXT: B
CHECK: done
BOTH: 2A
BOTH-NEXT: B
BOTH: done
ERR-NOT: 1
ERR: done
ONE: 1
ONE-NEXT: done
PROGRAM: x
PROGRAM-NEXT: y
DIFF: -a
DIFF: +1A
";
    check("redirect", text, Status::Pass);
}

#[test]
fn statuses_follow_the_shell() {
    for (text, expected) in [
        ("true && true", Status::Pass),
        ("true && false", Status::Fail),
        ("false || true", Status::Pass),
        ("false; true", Status::Pass),
        ("false | cat", Status::Fail),
        ("not false", Status::Pass),
        ("not not true", Status::Pass),
        ("not true", Status::Fail),
        ("! false", Status::Pass),
        ("crash", Status::Fail),
        ("not crash", Status::Fail),
        ("not --crash crash", Status::Pass),
        ("not --crash false", Status::Fail),
        ("not --crash sh -c 'kill -SEGV $$'", Status::Pass),
        ("no-such-command", Status::Fail),
        ("not no-such-command", Status::Fail),
        ("not not false", Status::Fail),
        ("! crash", Status::Pass),
        ("false || true && false", Status::Fail),
        ("env A=1 not false", Status::Pass),
        ("env A=1 cd /", Status::Fail),
        ("cd / | cat", Status::Fail),
        ("true 3>x", Status::Fail),
        ("true & true", Status::Unresolved),
        ("echo 'a", Status::Unresolved),
        ("echo \\\"a", Status::Unresolved),
        ("not \\false", Status::Fail),
        ("\"\" x", Status::Unresolved),
        ("not --crash no-such-command; true", Status::Pass),
        ("not not --crash no-such-command", Status::Pass),
        ("ulimit -n -1", Status::Pass),
        ("touch -d 2000-01-01 %t", Status::Pass),
        ("touch", Status::Fail),
        ("true ;", Status::Unresolved),
        ("cat < no-such-file", Status::Unresolved),
    ] {
        check("status", &format!("RUN: {text}\n"), expected);
    }
}

#[test]
fn builtins_do_their_work() {
    let text = "\
RUN: rm -rf %t && mkdir -p %t/a/b && touch %t/a/b/c && rm -f %t/none && split-file %s %t/s
RUN: cat %t/s/one %t/s/d/two | FileCheck %s
RUN: cat %t/s/*e | count 2
RUN: cd %t/s && cat one - < d/two | FileCheck %s
RUN: env A=1 B='2 3' sh -c 'echo $A $B' | FileCheck %s --check-prefix=ENV
RUN: export C=4 && sh -c 'echo 1 2 $C' | FileCheck %s --check-prefix=ENV2
RUN: echo -n a | count 1 && mkdir %t && not mkdir %t/no/no && not rm %t/none && not rm %t
RUN: env FILECHECK_OPTS=-check-prefix=ENV2 FileCheck %s --input-file %t/s/three
CHECK: first
CHECK-NEXT: second
ENV: 1 2 3
ENV2: 1 2 4
END.
//--- one
first
//--- d/two
second
#--- three
1 2 4
";
    check("builtin", text, Status::Pass);
}

#[test]
fn names_of_llvms_tests_are_known() {
    let text = "\
RUN: echo %python | FileCheck %s
RUN: not FileCheck %s --input-file %t/none 2>&1 | FileCheck %s -DREASON=%errc_ENOENT --check-prefix=NONE
RUN: not FileCheck %s --input-file %S 2>&1 | FileCheck %s -DREASON=%errc_EISDIR --check-prefix=FOLDER
CHECK: {{^}}python3{{$}}
NONE: Could not open input file '{{.*}}none': [[REASON]]{{$}}
FOLDER: Could not open input file '{{.*}}': [[REASON]]{{$}}
";
    check("names", text, Status::Pass);
}

#[test]
fn features_decide() {
    for (text, expected) in [
        ("REQUIRES: foo\nRUN: true\n", Status::Pass),
        ("REQUIRES: foo, bar\nRUN: true\n", Status::Unsupported),
        ("UNSUPPORTED: foo && !bar\nRUN: true\n", Status::Unsupported),
        ("XFAIL: *\nRUN: false\n", Status::ExpectedFail),
        ("XFAIL: foo\nRUN: true\n", Status::UnexpectedPass),
        ("XFAIL: bar\nRUN: false\n", Status::Fail),
        ("REQUIRES: foo &&\nRUN: true\n", Status::Unresolved),
        ("nothing\n", Status::Unresolved),
        ("RUN: true \\\n", Status::Unresolved),
        ("RUN: %if foo %{ true %} %else %{ false %}\n", Status::Pass),
        ("DEFINE: %{a} = false\nREDEFINE: %{a} = true\nRUN: %{a}\n", Status::Pass),
        ("REDEFINE: %{a} = true\nRUN: %{a}\n", Status::Unresolved),
    ] {
        check("feature", text, expected);
    }
}

#[test]
fn time_is_limited() {
    let folder = Folder::new("time", &[("a.test", "RUN: sleep 30\n"), ("b.test", "RUN: spin\n")]);
    let mut config = folder.config();
    config.time_limit = Some(Duration::from_millis(200));
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = stop.clone();
    config.tools.insert(
        "spin".into(),
        tool(move |_, _, _, _| {
            while !flag.load(std::sync::atomic::Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
            0
        }),
    );
    for name in ["a.test", "b.test"] {
        let outcome = run_file(&folder.0.join(name), &config);
        assert_eq!(outcome.status, Status::TimedOut, "{}", outcome.output);
        assert!(outcome.elapsed < Duration::from_secs(10));
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
}

#[test]
fn the_report_is_in_order() {
    let folder = Folder::new(
        "report",
        &[
            ("a.test", "RUN: sleep 0.2\n"),
            ("b.test", "RUN: false\n"),
            ("c.test", "XFAIL: *\nRUN: false\n"),
            ("d/e.test", "REQUIRES: bar\nRUN: true\n"),
            ("other.txt", "RUN: false\n"),
            ("Inputs/f.test", "RUN: false\n"),
        ],
    );
    let xml = folder.0.join("out.xml");
    let (status, out, err) = folder.main(&["-j", "2", "--xunit-xml-output", xml.to_str().unwrap()]);
    assert_eq!((status, err.as_str()), (1, ""));
    let (before, behind) = out.split_once("Testing Time: ").unwrap();
    assert_eq!(
        before,
        "-- Testing: 4 tests, 2 workers --\nPASS: suite :: a.test (1 of 4)\nFAIL: suite :: b.test (2 of 4)\n\
         XFAIL: suite :: c.test (3 of 4)\nUNSUPPORTED: suite :: d/e.test (4 of 4)\n********************\n\
         Failed Tests (1):\n  suite :: b.test\n\n\n"
    );
    assert!(behind.ends_with(
        "s\n\nTotal Discovered Tests: 4\n  Unsupported      : 1 (25.00%)\n  Passed           : 1 (25.00%)\n  \
         Expectedly Failed: 1 (25.00%)\n  Failed           : 1 (25.00%)\n"
    ));
    let xml = fs::read_to_string(xml).unwrap();
    assert!(xml.contains("<testsuite name=\"suite\" tests=\"4\" failures=\"1\" skipped=\"1\""), "{xml}");
    assert!(xml.contains("<testcase classname=\"suite.d\" name=\"e.test\""), "{xml}");
}

#[test]
fn tests_are_chosen() {
    let folder = Folder::new("choose", &[("a.test", "RUN: true\n"), ("b.test", "RUN: false\n")]);
    assert_eq!(folder.main(&["--filter", "A\\.test"]).0, 0);
    assert_eq!(folder.main(&["--filter-out=b"]).0, 0);
    assert_eq!(folder.main(&["--ignore-fail"]).0, 0);
    assert_eq!(folder.main(&[]).0, 1);
    assert_eq!(folder.main(&["--filter", "zzz"]).0, 2);
    assert_eq!(folder.main(&["--filter", "zzz", "--allow-empty-runs"]).0, 0);
    assert_eq!(folder.main(&["--filter", "("]).0, 2);
    assert_eq!(folder.main(&["--nonsense"]).0, 2);
    assert_eq!(folder.main(&["--timeout", "x"]).0, 2);
    let (_, out, _) = folder.main(&["--show-tests"]);
    assert_eq!(out, "-- Available Tests --\n  suite :: a.test\n  suite :: b.test\n");
    let (_, out, _) = folder.main(&["-q"]);
    assert!(!out.contains("PASS"), "{out}");
    let (_, out, _) = folder.main(&["-v"]);
    assert!(
        out.contains("TEST 'suite :: b.test' FAILED") && out.contains("# executed command: false"),
        "{out}"
    );
}

#[test]
fn failing_tests_may_be_run_again() {
    // The second run finds what the first left behind.
    let again = "RUN: test -e %t.seen || ! touch %t.seen\n";
    for (text, options, expected) in [
        (again.to_string(), vec![], 1),
        (format!("ALLOW_RETRIES: 1\n{again}"), vec![], 0),
        (again.to_string(), vec!["--max-retries-per-test", "1"], 0),
        ("ALLOW_RETRIES: 3\nRUN: false\n".to_string(), vec![], 1),
    ] {
        let folder = Folder::new("retry", &[("a.test", &text)]);
        let (status, out, _) = folder.main(&options);
        assert_eq!(status, expected, "{out}");
        assert_eq!(out.contains("FLAKYPASS: suite :: a.test"), expected == 0, "{out}");
    }
}

#[test]
fn folders_say_what_is_special_to_them() {
    let folder = Folder::new(
        "local",
        &[
            (
                "lit.toml",
                "suffixes = [\".txt\"]\nfeatures = [\"warm\"]\n[substitutions]\n\"%say\" = \"echo %{root}\"\n[environment]\nWHO = \"me\"\n",
            ),
            (
                "a.txt",
                "REQUIRES: warm, foo\nRUN: %say | FileCheck %s\nRUN: sh -c 'echo $WHO' | FileCheck %s --check-prefix=WHO\nCHECK: local\nWHO: me\n",
            ),
            ("a.test", "RUN: false\n"),
            ("not/lit.toml", "unsupported = true\n"),
            ("not/b.txt", "RUN: false\n"),
            ("also/lit.toml", "[environment]\nWHO = \"you\"\n"),
            (
                "also/c.txt",
                "RUN: %say | FileCheck %s\nRUN: sh -c 'echo $WHO' | FileCheck %s --check-prefix=WHO\nCHECK-NOT: also\nWHO: you\n",
            ),
        ],
    );
    let (status, out, err) = folder.main(&[]);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("PASS: suite :: a.txt") && out.contains("PASS: suite :: also/c.txt"), "{out}");
    assert!(out.contains("UNSUPPORTED: suite :: not/b.txt") && !out.contains("a.test"), "{out}");
    fs::write(folder.0.join("not/lit.toml"), "unsupported = true\nsuffix = 1\n").unwrap();
    let (status, _, err) = folder.main(&[]);
    assert!(status == 2 && err.contains("not/lit.toml:2: unknown field `suffix`"), "{err}");
}

#[test]
fn shards_and_lists_part_the_tests() {
    let text = "REQUIRES: foo || bar\nRUN: true\n";
    let folder =
        Folder::new("shard", &[("a.test", text), ("b.test", text), ("c.test", "XFAIL: *\nRUN: false\n")]);
    let (_, out, err) = folder.main(&["--num-shards=2", "--run-shard", "1"]);
    assert!(out.contains("PASS: suite :: a.test (1 of 2)\nXFAIL: suite :: c.test (2 of 2)"), "{out}");
    assert!(out.contains("Testing: 2 of 3 tests") && out.contains("Excluded         : 1"), "{out}");
    assert_eq!(err, "note: Selecting shard 1/2 = size 2/3 = tests #(2*k)+1 = [1, 3]\n");
    assert_eq!(folder.main(&["--num-shards=2"]).0, 2);
    assert_eq!(folder.main(&["--num-shards=2", "--run-shard=3"]).0, 2);
    assert!(folder.main(&["--max-tests=1"]).1.contains("Testing: 1 of 3 tests"));
    assert_eq!(folder.main(&["--show-used-features"]).1, "bar foo\n");
    assert!(folder.main(&["--show-suites"]).1.contains("suite - 3 tests\n    Available Features: foo\n"));
    let (_, out, _) = folder.main(&["--unsupported=suite :: b.test"]);
    assert!(out.contains("UNSUPPORTED: suite :: b.test"), "{out}");
    let (status, out, _) = folder.main(&["--xfail=a.test", "--xfail-not=c.test"]);
    assert!(
        status == 1 && out.contains("XPASS: suite :: a.test") && out.contains("FAIL: suite :: c.test"),
        "{out}"
    );
    let (status, out, _) = folder.main(&["--no-execute", "--time-tests"]);
    assert!(
        status == 1 && out.contains("XPASS: suite :: c.test") && out.contains("PASS: suite :: a.test"),
        "{out}"
    );
    let list = folder.0.join("list");
    fs::write(&list, format!("{}\n\n", folder.0.join("a.test").display())).unwrap();
    let main = |paths: &[String]| {
        let words: Vec<OsString> = ["lit".to_string()].iter().chain(paths).map(OsString::from).collect();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        (main(&words, folder.config(), &mut out, &mut err), String::from_utf8(out).unwrap())
    };
    let (status, out) = main(&[format!("@{}", list.display())]);
    assert!(status == 0 && out.contains("Total Discovered Tests: 1"), "{out}");
    let (status, out) = main(&["--".to_string(), folder.0.join("b.test").display().to_string()]);
    assert!(status == 0 && out.contains("PASS: suite :: b.test"), "{out}");
    assert_eq!(main(&[format!("@{}-none", list.display())]).0, 2);
}

#[test]
fn suites_of_llvm_say_what_runs() {
    let cfg = "config.name = 's'\nconfig.suffixes = ['.txt']\nconfig.available_features.update(['p', 'q'])\n\
               config.limit_to_features = ['q']\nif os.name == 'posix': config.available_features.add('x')\n";
    let local = "config.name = 'other'\nif config.root.name == 's':\n    config.available_features.add('y')\n\
                 config.unsupported = not config.name.startswith('o') or len(config.suffixes) == 2\n";
    let folder = Folder::new(
        "suite",
        &[
            ("lit.cfg", cfg),
            ("a.txt", "REQUIRES: q\nRUN: true\n"),
            ("b.txt", "REQUIRES: p\nRUN: true\n"),
            ("c.foo", "RUN: true\n"),
            ("sub/lit.local.cfg", local),
            ("sub/d.txt", "REQUIRES: q && x && y\nRUN: true\n"),
            ("none/lit.local.cfg", "config.test_format = None\n"),
            ("none/e.txt", "REQUIRES: q\nRUN: true\n"),
        ],
    );
    let (status, out, err) = folder.main(&[]);
    assert_eq!(err, "");
    assert!(
        status == 0 && out.contains("PASS: s :: a.txt (1 of 3)\nUNSUPPORTED: s :: b.txt (2 of 3)"),
        "{out}"
    );
    assert!(out.contains("PASS: s :: sub/d.txt (3 of 3)"), "{out}");
    let words = ["lit".into(), folder.0.join("c.foo").into_os_string()];
    let mut err = Vec::new();
    assert_eq!(main(&words, folder.config(), &mut Vec::new(), &mut err), 2);
    assert!(String::from_utf8(err).unwrap().contains("contained no tests"));
}

#[test]
fn count_says_what_it_found() {
    let text = "RUN: echo a | not count 2 2> %t && FileCheck %s --match-full-lines < %t\nCHECK: Expected 2 lines, got 1.\n";
    check("count", text, Status::Pass);
}

#[test]
fn echo_reads_escapes() {
    let text = r"RUN: echo -e '\x41\u00e9\a\101\xg' > %t && FileCheck %s --match-full-lines < %t
CHECK: Aé{{.}}A\xg
";
    check("escapes", text, Status::Pass);
}

#[test]
fn values_of_the_command_line_reach_tests_and_results_reach_files() {
    let text = "REQUIRES: mode=fast\nRUN: echo %{mode} | FileCheck %s\nCHECK: fast\n";
    let folder =
        Folder::new("param", &[("a.test", text), ("b.test", "RUN: %ProtectFileCheckOutput false\n")]);
    let file = folder.0.join("out.json");
    let (status, out, _) =
        folder.main(&["-Dmode=fast", "-o", file.to_str().unwrap(), "--report-failures-only"]);
    assert!(status == 1 && out.contains("PASS: suite :: a.test"), "{out}");
    let data: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(data["tests"].as_array().map(Vec::len), Some(1));
    assert_eq!(data["tests"][0]["name"], "suite :: b.test");
    assert_eq!(data["tests"][0]["code"], "FAIL");
}

#[test]
fn what_failed_last_can_come_first_or_alone() {
    let tests = [("a.test", "RUN: true\n"), ("b.test", "RUN: false\n"), ("c.test", "RUN: true\n")];
    let folder = Folder::new("order", &tests);
    let main = |args: &[&str]| {
        let mut words = vec![OsString::from("lit"), folder.0.clone().into_os_string()];
        words.extend(args.iter().map(OsString::from));
        let config = Config { records: Some(folder.0.join("records")), ..folder.config() };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let status = main(&words, config, &mut out, &mut err);
        (status, String::from_utf8(out).unwrap() + &String::from_utf8(err).unwrap())
    };
    let order = |args: &[&str]| {
        let (_, out) = main(&[args, &["--no-execute"]].concat());
        let names = out.lines().filter_map(|line| line.strip_prefix("PASS: suite :: ")?.chars().next());
        names.collect::<String>()
    };
    assert_eq!(main(&["--filter-failed"]).0, 2, "nothing is known yet");
    assert_eq!(main(&["--skip-test-time-recording"]).0, 1);
    assert_eq!(main(&["--filter-failed"]).0, 2, "nothing was remembered");
    assert_eq!(main(&[]).0, 1);
    assert_eq!((order(&[]).as_str(), order(&["--order=lexical"]).as_str()), ("abc", "abc"));
    assert!(order(&["--order", "smart"]).starts_with('b') && order(&["-i"]).starts_with('b'));
    assert_eq!(order(&["--filter-failed"]), "b");
    fs::write(folder.0.join("b.test"), "RUN: true\n").unwrap();
    assert_eq!(main(&["--filter-failed"]).0, 0);
    assert_eq!(main(&["--filter-failed"]).0, 2, "it passes now");
    let random = order(&["--order=random", "--seed=3"]);
    assert_eq!(random.len(), 3);
    assert_eq!(random, order(&["--shuffle", "--seed", "3"]));
    assert!((0..9).any(|n| order(&["--shuffle", &format!("--seed={n}")]) != random));
    assert!(main(&["--order=random"]).1.contains("-- Order: random, --seed "));
    let (status, out) = main(&["--order=nonsense"]);
    assert!(status == 2 && out.contains("invalid choice: 'nonsense'"), "{out}");
}

#[test]
fn suites_of_llvms_lit_are_read_without_python() {
    let folder = Folder::new(
        "python",
        &[
            (
                "lit.cfg.py",
                "import lit\nconfig.name = 'py'\nconfig.suffixes = ['.txt']\nconfig.excludes = ['Inputs', 'no.txt']\n\
                 config.test_format = lit.formats.ShTest()\nconfig.substitutions.append(('%say', 'echo hello'))\n",
            ),
            ("a.txt", "RUN: %say | FileCheck %s\nCHECK: hello\n"),
            ("no.txt", "RUN: false\n"),
            (
                "sub/lit.local.cfg",
                "if 'bar' not in config.available_features:\n    config.unsupported = True\n",
            ),
            ("sub/b.txt", "RUN: false\n"),
            (
                "odd/lit.local.cfg",
                "for x in y:\n    config.unsupported = True\nconfig.environment['WHO'] = 'me'\n",
            ),
            ("odd/c.txt", "RUN: sh -c 'echo $WHO' | FileCheck %s\nCHECK: me\n"),
        ],
    );
    let (status, out, err) = folder.main(&[]);
    assert_eq!(status, 0, "{out}{err}");
    assert!(out.contains("PASS: py :: a.txt") && out.contains("UNSUPPORTED: py :: sub/b.txt"), "{out}");
    assert!(out.contains("PASS: py :: odd/c.txt") && !out.contains("no.txt"), "{out}");
    assert!(
        err.contains("note: ") && err.contains("odd/lit.local.cfg:1: unsupported, left out: for x in y:"),
        "{err}"
    );
    assert_eq!(folder.main(&["--diagnostic-level=error"]).2, "");
    // Under another name they are not configuration.
    let (status, out, _) = folder.main(&["--config-prefix=other", "--allow-empty-runs"]);
    assert!(status == 0 && out.contains("Total Discovered Tests: 0"), "{out}");
}

#[test]
fn files_that_may_be_tests_are_if_they_say_so() {
    let folder = Folder::new("maybe", &[("a.txt", "RUN: true\n"), ("b.txt", "only words\n")]);
    let config = Config { maybe: vec![".txt".into()], ..folder.config() };
    let words = [OsString::from("lit"), folder.0.clone().into_os_string()];
    let mut out = Vec::new();
    assert_eq!(main(&words, config, &mut out, &mut Vec::new()), 0);
    assert!(String::from_utf8(out).unwrap().contains("Total Discovered Tests: 1"));
}

#[test]
fn temporary_files_go_at_the_end() {
    let folder =
        Folder::new("temp", &[("a.test", "RUN: touch %t\nRUN: sh -c 'touch $TMPDIR/x'\nRUN: false\n")]);
    assert_eq!(folder.main(&[]).0, 1);
    assert!(!folder.0.join("temp").exists());
    let (_, out, _) = folder.main(&["--keep"]);
    assert!(out.contains("Temporary files are in") && folder.0.join("temp").exists(), "{out}");
}

#[test]
fn what_is_reported_can_be_chosen() {
    let tests = [
        ("a.test", "RUN: echo good\n"),
        ("b.test", "RUN: echo bad; false\nXFAIL: *\n"),
        ("c.test", "RUN: false\n"),
    ];
    let folder = Folder::new("detail", &tests);
    let out = |args: &[&str]| folder.main(args).1;
    assert!(out(&["--test-output=all"]).contains("# | good"));
    let failed = out(&["--test-output=failed"]);
    assert!(failed.contains("TEST 'suite :: c.test' FAILED") && !failed.contains("# | good"), "{failed}");
    let few = out(&["--print-result-after=failed"]);
    assert!(few.contains("FAIL: suite :: c.test (3 of 3)") && !few.contains("PASS"), "{few}");
    assert!(!out(&["--print-result-after=off"]).contains("suite :: c.test (3 of 3)"));
    // The later option wins.
    assert!(!out(&["-a", "--print-result-after=failed"]).contains("# | good"));
    assert!(out(&["--print-result-after=off", "-a"]).contains("# | good"));
    assert!(
        !out(&["--terse-summary"]).contains("Testing Time")
            && out(&["--no-terse-summary"]).contains("Testing Time")
    );
    assert!(
        out(&["--exclude-xfail"]).contains("EXCLUDED: suite :: b.test")
            && out(&["-va", "--exclude-xfail", "--xfail-not=b.test"]).contains("FAIL: suite :: b.test")
    );
    assert!(out(&["--max-time=0.000001"]).contains("Skipped: 3"));
    let (status, _, err) = folder.main(&["--vg"]);
    assert!(status == 2 && err.contains("argument --vg: unsupported"), "{err}");
    let file = folder.0.join("trace.json");
    folder.main(&["--time-trace-output", file.to_str().unwrap()]);
    let trace: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(trace["traceEvents"].as_array().map(Vec::len), Some(3));
    assert_eq!(trace["traceEvents"][0]["ph"], "X");
}

#[test]
fn colours_and_codes_can_be_shown() {
    let text = "\
RUN: echo -e '\\033[0;1;31mred \\033[0m\\033[1m\\033[0;1;46mon\\033[0;1;90mx' | %{reveal-ansi-escapes} | FileCheck %s
CHECK: <bold-red>red <reset><bold><bg-bold-cyan>on<bold-bright-black>x
RUN: echo -e 'a\\tb\\001\\303' | cat -vt | FileCheck %s --check-prefix=CODES
CODES: a^Ib^AM-C
RUN: echo a | cat -e - | FileCheck %s --check-prefix=END
END: a$
";
    check("reveal", text, Status::Pass);
}

#[test]
fn paths_have_all_their_forms() {
    let text = "\
RUN: mkdir -p %t.d && pushd %t.d && sh -c 'pwd' | FileCheck %s --check-prefix=INSIDE && popd
RUN: sh -c 'basename $PWD' | FileCheck %s --check-prefix=BACK
INSIDE: a.test.tmp.d
BACK: forms
RUN: echo -n 'hel' > %t.part
RUN: echo %{readfile:%t.part}lo-%{readfile:%t.part} | FileCheck %s --check-prefix=READ
READ: hello-hel
RUN: echo %basename_t %{t:stem} %{s:basename} %{fs-sep}%{fs-src-root} | FileCheck %s --check-prefix=NAMES
NAMES: a.test a.test a.test //
RUN: echo x%:s %{s:real} %{/t:real} %{/s:regex_replacement} | FileCheck %s --check-prefix=FORMS
FORMS: x{{[^/].*}}/a.test /{{.*}}/a.test /{{.*}}/a.test.tmp /{{.*}}/a.test
";
    check("forms", text, Status::Pass);
    let output = check("readfile", "RUN: echo %{readfile:%t.none}\n", Status::Fail);
    assert!(output.contains("File specified in readfile substitution does not exist: /"), "{output}");
}

#[test]
fn limits_hold_for_programs() {
    let text = "\
RUN: umask 077 && ulimit -n 50
RUN: sh -c 'umask; ulimit -n' | FileCheck %s
RUN: ulimit -n 60 && sh -c 'ulimit -n' | FileCheck %s --check-prefix=MORE
CHECK: 77
CHECK-NEXT: 50
MORE: 60
";
    check("limits", text, Status::Pass);
    let output = check("limit", "RUN: ulimit -x 1\n", Status::Fail);
    assert!(output.contains("# | 'ulimit' does not support option: -x"), "{output}");
    let output = check("mask", "RUN: umask 9\n", Status::Fail);
    assert!(output.contains("invalid literal for int() with base 8: '9'"), "{output}");
}

#[test]
fn commands_are_reported_as_by_lit() {
    let text =
        "RUN: echo hi\nRUN: not not cat none > %t 2>&1 || true\nRUN: %if bar %{ true %}\nRUN: rm 'a b'\n";
    let folder = Folder::new("reported", &[("a.test", text)]);
    let output = folder.status("a.test").1;
    let path = folder.0.display();
    let file = folder.0.join("temp").join(folder.0.strip_prefix("/").unwrap_or(&folder.0)).join("a.test.tmp");
    let file = file.display();
    let expected = format!(
        "Exit Code: 1\n\nCommand Output (stdout):\n--\n# RUN: at line 1\necho hi\n# executed command: echo hi\n\
         # .---command stdout------------\n# | hi\n# `-----------------------------\n# RUN: at line 2\n\
         not not cat none > {file} 2>&1 || true\n# executed command: not not cat none\n\
         # .---redirected output from '{file}'\n# | [Errno 2] No such file or directory: 'none'\n\
         # `-----------------------------\n# note: command had no output on stdout or stderr\n\
         # error: command failed with exit status: 1\n# executed command: true\n\
         # RUN: at line 3 has no command after substitutions\n# RUN: at line 4\nrm 'a b'\n\
         # executed command: rm 'a b'\n# .---command stderr------------\n\
         # | Error: 'rm' command failed, [Errno 2] No such file or directory: '{path}/a b'\n\
         # `-----------------------------\n# error: command failed with exit status: 1\n\n--\n"
    );
    assert_eq!(output, expected);
}

#[test]
#[cfg(target_os = "linux")]
fn children_in_sessions_of_their_own_end_with_a_late_test() {
    let text = "RUN: sh -c 'setsid sh -c \"sleep 31.4159\" & echo started; sleep 30'\n";
    let folder = Folder::new("sessions", &[("a.test", text)]);
    let mut config = folder.config();
    config.time_limit = Some(Duration::from_millis(500));
    assert_eq!(run_file(&folder.0.join("a.test"), &config).status, Status::TimedOut);
    let alive = |entry: std::fs::DirEntry| {
        std::fs::read(entry.path().join("cmdline")).is_ok_and(|words| words == b"sleep\x0031.4159\0")
    };
    let left = || std::fs::read_dir("/proc").unwrap().flatten().any(alive);
    let start = std::time::Instant::now();
    while left() && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!left());
}

#[test]
fn special_files_are_refused() {
    check("zero", "RUN: echo %{readfile:/dev/zero}\n", Status::Fail);
    let output = check("cat-zero", "RUN: cat /dev/zero\n", Status::Fail);
    assert!(output.contains("a device, not a regular file"), "{output}");
    check("cat-null", "RUN: cat /dev/null\n", Status::Pass);
}

/// A tool that writes as many lines as it may.
fn counting() -> Tool {
    tool(|args, _, out, _| {
        let most = args
            .iter()
            .filter_map(|arg| arg.to_str()?.strip_prefix("--most=")?.parse().ok())
            .next()
            .unwrap_or(3);
        (1..=most.min(3)).for_each(|n: usize| writeln!(out, "line {n}").unwrap());
        0
    })
}

#[test]
fn mutants_that_no_check_sees_are_named() {
    let folder = Folder::new(
        "mutate",
        &[
            (
                "good.test",
                "RUN: count | FileCheck %s\nCHECK: line 1\nCHECK-NEXT: line 2\nCHECK-NEXT: line 3\n",
            ),
            ("weak.test", "RUN: count | FileCheck %s\nCHECK: line 1\n"),
            (
                "two.test",
                "RUN: count | FileCheck %s\nRUN: count | FileCheck %s --check-prefix=B\nCHECK: line 2\nB: line 3\n",
            ),
            (
                "known.test",
                "RUN: count | FileCheck %s\nALLOW_UNSEEN: --most=1 why\nALLOW_UNSEEN: --most=2\nCHECK: line 1\n",
            ),
            ("file.test", "RUN: count > %t\nRUN: FileCheck %s < %t\nCHECK: line 1\n"),
        ],
    );
    let mut config = folder.config();
    config.tools.insert("count".into(), counting());
    let run = |option: &str| {
        let words = [OsString::from("lit"), folder.0.clone().into_os_string(), option.into()];
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let status = main(&words, config.clone(), &mut out, &mut err);
        (status, String::from_utf8(out).unwrap() + &String::from_utf8(err).unwrap())
    };
    let (status, out) = run("--mutate=count:--most={}");
    let named: Vec<&str> =
        out.lines().filter_map(|line| line.strip_prefix(folder.0.to_str().unwrap())).collect();
    let unseen = ["/weak.test:1: no check sees --most=1", "/weak.test:1: no check sees --most=2"];
    assert_eq!((status, &named[..]), (1, &unseen[..]), "{out}");
    assert!(out.contains("12 mutants in 4 of 5 tests: 2 unseen, 2 allowed"), "{out}");
    assert!(out.contains("1 commands with knobs were left out"), "{out}");
    assert_eq!(run("--mutate=count").0, 2);
    assert_eq!(run("--mutate").0, 2);
}

#[test]
fn lint_names_lines_that_are_no_checks() {
    let folder = Folder::new("lint", &[("a.test", "RUN: up | FileCheck %s\nCHECK: a\nCHECK-NETX: b\n")]);
    let (status, out, _) = folder.main(&["--lint"]);
    assert_eq!(status, 1);
    assert!(out.contains("a.test:3: 'CHECK-NETX:' is not a directive: did you mean 'CHECK-NEXT:'?"), "{out}");
    assert!(out.ends_with("1 findings in 1 tests\n"), "{out}");
}
