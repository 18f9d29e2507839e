//! The program under other names: a link called `FileCheck` or `lit` is that tool, for suites that expect LLVM's.

use libtest_mimic::{Failed, Trial};
use std::fs;
use std::process::Command;

/// The test, where links can be made.
pub fn trials() -> Vec<Trial> {
    vec![Trial::test("names::a_link_is_the_tool_it_is_called", links).with_ignored_flag(!cfg!(unix))]
}

#[cfg(not(unix))]
fn links() -> Result<(), Failed> {
    Ok(())
}

#[cfg(unix)]
fn links() -> Result<(), Failed> {
    let folder = crate::scratch::folder("names");
    fs::create_dir_all(&folder)?;
    for name in ["FileCheck", "lit"] {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_flambeau"), folder.join(name))?;
    }
    fs::write(folder.join("in"), "hello\n")?;
    fs::write(folder.join("a.test"), "RUN: FileCheck %s --input-file %S/in\nCHECK: hello\nBAD: goodbye\n")?;
    let run = |name: &str, words: &[&str]| {
        let mut command = Command::new(folder.join(name));
        command.args(words).current_dir(&folder).env_remove("FILECHECK_OPTS").env_remove("LIT_OPTS").output()
    };
    let mut wrong = Vec::new();
    for (name, words, status, says) in [
        ("FileCheck", &["a.test", "--input-file", "in"][..], 0, ""),
        (
            "FileCheck",
            &["a.test", "--input-file=in", "-check-prefix=BAD"],
            1,
            "a.test:3:6: error: BAD: expected string",
        ),
        ("FileCheck", &["nothing", "--input-file=in"], 2, "Could not open check file 'nothing'"),
        ("FileCheck", &["--nonsense"], 1, "Unknown command line argument '--nonsense'"),
        ("lit", &["."], 0, "PASS: flambeau :: a.test (1 of 1)"),
        ("lit", &["--version"], 0, "of Flambeau"),
    ] {
        let output = run(name, words)?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        if output.status.code() != Some(status) || !text.contains(says) {
            wrong.push(format!("{name} {words:?}: {:?}\n{text}", output.status.code()));
        }
    }
    fs::remove_dir_all(&folder)?;
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}
