//! Threads that share loops come from one pool; rayon's global pool is not used.

use super::{sources::rust_files, verdict};
use libtest_mimic::Failed;

/// The file that owns the pool.
const OWNER: &str = "src/resources/pool.rs";

pub(super) fn loops_run_in_the_one_pool() -> Result<(), Failed> {
    let mut findings = Vec::new();
    for (path, text) in rust_files("src") {
        if path == OWNER {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if code.contains("rayon::") || code.contains(".par_") || code.contains("into_par_iter") {
                findings.push(format!("{path}:{}: use crate::resources::pool", number + 1));
            }
        }
    }
    verdict("loops outside of the pool", findings)
}
