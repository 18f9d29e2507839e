//! Replays what the fuzzers have found worth keeping: nothing there may panic or hang, and what is read must survive
//! printing and reading.

#[path = "../fuzz/targets.rs"]
pub mod targets;

use libtest_mimic::{Failed, Trial};
use std::time::{Duration, Instant};

/// One trial a target.
pub fn trials() -> Vec<Trial> {
    let trial = |name: &'static str| Trial::test(format!("fuzz::{name}"), move || replay(name));
    targets::ALL.iter().map(|(name, _)| trial(name)).collect()
}

fn replay(name: &str) -> Result<(), Failed> {
    let folder = format!("fuzz/corpus/{name}");
    let mut files: Vec<_> = std::fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?;
    files.sort_by_key(|f| f.file_name());
    if files.is_empty() {
        return Err(format!("{folder} is empty").into());
    }
    for file in files {
        let start = Instant::now();
        targets::run(name, &std::fs::read(file.path())?);
        if start.elapsed() > Duration::from_secs(10) {
            return Err(format!("{:?} took {:?}", file.path(), start.elapsed()).into());
        }
    }
    Ok(())
}
