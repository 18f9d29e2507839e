//! What a test finds around itself: its folders, its environment, the substitutions that every test has. It runs nothing.

use super::config::Config;
use super::shell::{Environment, Shell};
use super::substitute::Substitutions;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What the system says of errors that tests expect, by the names that LLVM's tests know them by.
const ERRORS: [(&str, &str); 4] = [
    ("EACCES", "Permission denied"),
    ("EINVAL", "Invalid argument"),
    ("EISDIR", "Is a directory"),
    ("ENOENT", "No such file or directory"),
];

/// The substitutions that every test has. What a folder says comes first.
pub(super) fn substitutions(path: &Path, config: &Config) -> Substitutions {
    let show = |path: &Path| path.display().to_string();
    let file_name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new("/"));
    let temp = temp_folder(path, config);
    let base = temp.join(format!("{file_name}.tmp"));
    let mut all = Substitutions::with_rounds(config.rounds);
    for (key, value) in &config.substitutions {
        all.add(key, value);
    }
    // LLVM's own name for this, so that tests of FileCheck itself run unchanged.
    all.add("%ProtectFileCheckOutput", "env -u FILECHECK_OPTS");
    all.add("%{python}", "python3");
    all.add("%python", "python3");
    all.add("%{reveal-ansi-escapes}", "reveal-ansi-escapes");
    for (name, message) in ERRORS {
        all.add(format!("%errc_{name}"), format!("'{message}'"));
    }
    all.add("%{pathsep}", if cfg!(windows) { ";" } else { ":" });
    all.add("%basename_t", &file_name);
    all.add("%{s:basename}", &file_name);
    all.add("%{s:stem}", file_name.rsplit_once('.').map_or(file_name.as_str(), |(stem, _)| stem));
    all.add("%{t:stem}", &file_name);
    for name in ["%{fs-src-root}", "%{fs-tmp-root}", "%{fs-sep}"] {
        all.add(name, "/");
    }
    all.add("%/et", show(&base));
    for (letter, path) in [("s", path), ("S", folder), ("p", folder), ("t", &base), ("T", &temp)] {
        let text = show(path);
        // Of a file that is not there yet the folder is.
        let real = path.canonicalize().or_else(|_| {
            let folder = path.parent().unwrap_or(path).canonicalize()?;
            Ok::<_, std::io::Error>(folder.join(path.file_name().unwrap_or_default()))
        });
        let real = show(&real.unwrap_or_else(|_| path.to_path_buf()));
        all.add(format!("%{letter}"), &text);
        all.add(format!("%/{letter}"), &text);
        all.add(format!("%{{{letter}:real}}"), &real);
        all.add(format!("%{{/{letter}:real}}"), &real);
        // For `s@from@to@` of sed.
        all.add(format!("%{{/{letter}:regex_replacement}}"), text.replace('@', "\\@").replace('&', "\\&"));
        all.add(format!("%:{letter}"), text.trim_start_matches('/'));
    }
    all
}

/// Where the temporary files of a test lie. Two tests of one name in two folders must not share files.
pub(super) fn temp_folder(path: &Path, config: &Config) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new("/"));
    config.temp.join(folder.strip_prefix("/").unwrap_or(folder))
}

/// A shell for a test, in the folder of the test.
pub(super) fn shell<'c>(path: &Path, config: &'c Config) -> Shell<'c> {
    let mut variables = config.environment.clone();
    let temp = temp_folder(path, config);
    for name in ["TMPDIR", "TMP", "TEMP", "TEMPDIR"] {
        variables.insert(name.into(), temp.display().to_string());
    }
    let below = config.root.as_ref().and_then(|root| path.strip_prefix(root).ok());
    let name = below.or(path.file_name().map(Path::new)).unwrap_or(path).display().to_string();
    variables.insert("LIT_CURRENT_TESTCASE".into(), format!("{} :: {name}", config.name));
    let directory = path.parent().map(Path::to_path_buf).unwrap_or_default();
    Shell {
        config,
        environment: Environment { directory, variables, ..Environment::default() },
        left: Vec::new(),
        deadline: config.time_limit.map(|limit| Instant::now() + limit),
        log: String::new(),
        errors: String::new(),
    }
}
