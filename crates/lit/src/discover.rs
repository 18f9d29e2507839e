//! Finds test files.

use super::args::{absolute, reason};
use super::conditions::has_run_lines;
use super::config::Config;
use super::local;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Deepest nesting of folders.
const MAX_DEPTH: usize = 64;

/// A test: its file and the name it has in reports.
#[derive(Clone)]
pub(super) struct Test {
    /// The file.
    pub(super) path: PathBuf,
    /// The path from the folder of the suite, or as the user began it.
    pub(super) name: String,
    /// The configuration of its folder.
    pub(super) config: Arc<Config>,
}

impl Test {
    /// The name with that of its suite.
    pub(super) fn full(&self) -> String {
        format!("{} :: {}", self.config.name, self.name)
    }
}

/// The tests in a folder, in order of name, or the one file. `notes` takes what configurations say in vain.
pub(super) fn discover(
    path: &Path,
    config: &Arc<Config>,
    notes: &mut Vec<String>,
) -> Result<Vec<Test>, String> {
    let data = match std::fs::metadata(path) {
        Ok(data) => data,
        Err(error) => {
            notes.push(format!("{}: {}", path.display(), reason(&error)));
            return Ok(Vec::new());
        }
    };
    let mut tests = Vec::new();
    let own = local::above(path, config, notes)?;
    if data.is_dir() {
        let mut search = Search { root: path, base: config, tests: &mut tests, notes };
        search.folder(path, &own, 0)?;
    } else {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let is_known = |name: &String| own.suffixes.iter().any(|suffix| name.ends_with(suffix));
        // Of a suite of LLVM's, which says what its tests are.
        if own.root.is_some() && !own.standalone && !name.as_ref().is_some_and(is_known) {
            notes.push(format!("input '{}' contained no tests", path.display()));
            return Ok(tests);
        }
        let name = in_suite(path, &own).or(name).unwrap_or_default();
        tests.push(Test { path: path.to_path_buf(), name, config: own });
    }
    Ok(tests)
}

/// The name of a file in its suite, where that has a folder.
fn in_suite(path: &Path, config: &Config) -> Option<String> {
    let whole = absolute(&std::env::current_dir().ok()?, &path.to_string_lossy());
    Some(whole.strip_prefix(config.root.as_ref()?).ok()?.display().to_string())
}

struct Search<'a> {
    root: &'a Path,
    base: &'a Arc<Config>,
    tests: &'a mut Vec<Test>,
    notes: &'a mut Vec<String>,
}

impl Search<'_> {
    fn folder(&mut self, folder: &Path, above: &Arc<Config>, depth: usize) -> Result<(), String> {
        let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
        let config = local::of(folder, above, self.base, self.notes)?;
        if config.standalone {
            return Ok(());
        }
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let file_name =
                path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if file_name.starts_with('.') || config.excludes.contains(&file_name) {
                continue;
            }
            if path.is_dir() {
                if depth < MAX_DEPTH {
                    self.folder(&path, &config, depth + 1)?;
                }
            } else if is_test(&path, &file_name, &config) {
                let begun = || path.strip_prefix(self.root).unwrap_or(&path).display().to_string();
                let name = in_suite(&path, &config).unwrap_or_else(begun);
                self.tests.push(Test { path, name, config: Arc::clone(&config) });
            }
        }
        Ok(())
    }
}

fn is_test(path: &Path, name: &str, config: &Config) -> bool {
    let ends = |list: &[String]| list.iter().any(|suffix| name.ends_with(suffix));
    ends(&config.suffixes) || (ends(&config.maybe) && has_run_lines(path))
}
