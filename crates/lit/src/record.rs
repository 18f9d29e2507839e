//! What is remembered of the tests of a folder from run to run: how long each took, and whether it failed.
//!
//! One small file for each path that lit is called with, in the user's cache folder; a line a test: `+` or `-`,
//! seconds, name.

use super::discover::Test;
use super::outcome::Outcome;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How a test ended when it ran last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Last {
    pub(super) failed: bool,
    pub(super) seconds: f64,
}

/// The folder for such files, where the system has one.
pub fn records_folder() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    Some(cache.or_else(home)?.join("flambeau").join("lit"))
}

/// The file for a path that lit is called with.
fn file(folder: &Path, path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // FNV-1a: the same on every machine and in every version.
    let hash = path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    folder.join(format!("{name}-{hash:016x}.txt"))
}

/// What is known of the tests below a path; nothing where nothing can be read.
pub(super) fn read(folder: &Path, path: &Path) -> BTreeMap<String, Last> {
    let text = flambeau_files::read_text(&file(folder, path)).unwrap_or_default();
    let line = |line: &str| {
        let (mark, rest) = line.split_once(' ')?;
        let (seconds, name) = rest.split_once(' ')?;
        Some((name.to_string(), Last { failed: mark == "-", seconds: seconds.parse().ok()? }))
    };
    text.lines().filter_map(line).collect()
}

/// Adds what came of tests. That it cannot be written is not a failure of the tests.
pub(super) fn write(folder: &Path, path: &Path, tests: &[(&Test, &Outcome)]) {
    let mut all = read(folder, path);
    for (test, outcome) in tests {
        let last = Last { failed: outcome.status.is_failure(), seconds: outcome.elapsed.as_secs_f64() };
        all.insert(test.full(), last);
    }
    let line = |(name, last): (&String, &Last)| {
        format!("{} {:.3} {name}\n", if last.failed { '-' } else { '+' }, last.seconds)
    };
    let text: String = all.iter().map(line).collect();
    let _ = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(file(folder, path), text));
}
