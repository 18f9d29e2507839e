//! Folders of tests: all of them below one folder, which is gone when the tests are over.

use std::path::PathBuf;

/// A folder for one test; it is made anew.
pub fn folder(name: &str) -> PathBuf {
    let folder = root().join(name);
    // A folder that cannot be created is reported by the first write into it.
    let _ = std::fs::create_dir_all(&folder);
    folder
}

fn root() -> PathBuf {
    std::env::temp_dir().join(format!("flambeau-test-{}", std::process::id()))
}

/// Takes the folder away when it goes.
pub struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(root());
    }
}
