//! Words with wildcards, and the files that they fit. It knows nothing of commands.

use super::args::absolute;
use super::syntax::Word;
use std::path::{Path, PathBuf};

/// The files that a word with wildcards fits, in order, or the word itself. A wildcard that fits nothing stays.
pub(super) fn expand(word: &Word, directory: &Path) -> Vec<String> {
    let found = if word.glob { glob(directory, &word.text) } else { Vec::new() };
    if found.is_empty() { vec![word.text.clone()] } else { found }
}

/// The files that a pattern with `*` and `?` fits, in order.
fn glob(directory: &Path, pattern: &str) -> Vec<String> {
    let whole = absolute(directory, pattern);
    let mut found = vec![PathBuf::from("/")];
    for part in whole.components().skip(1) {
        let part = part.as_os_str().to_string_lossy();
        if !part.contains(['*', '?']) {
            found.iter_mut().for_each(|path| path.push(&*part));
            continue;
        }
        let expression: String = part
            .chars()
            .map(|letter| match letter {
                '*' => ".*".into(),
                '?' => ".".into(),
                letter => regex::escape(&letter.to_string()),
            })
            .collect();
        let Ok(regex) = regex::Regex::new(&format!("^{expression}$")) else { return Vec::new() };
        let mut next = Vec::new();
        for folder in found {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if regex.is_match(&name) && (part.starts_with('.') || !name.starts_with('.')) {
                    next.push(folder.join(name));
                }
            }
        }
        found = next;
    }
    let mut names: Vec<String> =
        found.into_iter().filter(|path| path.exists()).map(|path| path.display().to_string()).collect();
    names.sort();
    names
}
