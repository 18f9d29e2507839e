//! Finds test files.

use super::{Config, local};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Deepest nesting of folders.
const MAX_DEPTH: usize = 64;

/// A test: its file and the name it has in reports.
#[derive(Clone)]
pub(super) struct Test {
    /// The file.
    pub(super) path: PathBuf,
    /// The path as the user began it.
    pub(super) name: String,
    /// The configuration of its folder.
    pub(super) config: Arc<Config>,
}

/// The tests in a folder, in order of name, or the one file. `notes` takes what configurations say in vain.
pub(super) fn discover(
    path: &Path,
    config: &Arc<Config>,
    notes: &mut Vec<String>,
) -> Result<Vec<Test>, String> {
    let data = std::fs::metadata(path).map_err(|error| {
        let reason = error.to_string();
        format!("{}: {}", path.display(), reason.split(" (os error").next().unwrap_or_default())
    })?;
    let mut tests = Vec::new();
    let config = local::above(path, config, notes)?;
    if data.is_dir() {
        search(path, path, &config, (0, &mut tests, notes))?;
    } else {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        tests.push(Test { path: path.to_path_buf(), name: name.unwrap_or_default(), config });
    }
    Ok(tests)
}

fn search(
    root: &Path,
    folder: &Path,
    config: &Arc<Config>,
    (depth, tests, notes): (usize, &mut Vec<Test>, &mut Vec<String>),
) -> Result<(), String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    let config = &local::of(folder, config, notes)?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let file_name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if file_name.starts_with('.') || config.excludes.contains(&file_name) {
            continue;
        }
        if path.is_dir() {
            if depth < MAX_DEPTH {
                search(root, &path, config, (depth + 1, tests, notes))?;
            }
        } else if is_test(&path, &file_name, config) {
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            tests.push(Test { path, name, config: Arc::clone(config) });
        }
    }
    Ok(())
}

fn is_test(path: &Path, name: &str, config: &Config) -> bool {
    let ends = |list: &[String]| list.iter().any(|suffix| name.ends_with(suffix));
    ends(&config.suffixes) || (ends(&config.maybe) && super::has_run_lines(path))
}
