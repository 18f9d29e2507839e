//! Threads that share loops are those of one team; no library brings a pool of its own.

use super::{sources::rust_files, verdict};
use libtest_mimic::Failed;

pub(super) fn loops_run_in_the_one_pool() -> Result<(), Failed> {
    let mut findings = Vec::new();
    for (path, text) in rust_files("src").into_iter().chain(rust_files("crates")) {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if code.contains("rayon::") || code.contains(".par_") || code.contains("into_par_iter") {
                findings.push(format!("{path}:{}: use crate::resources::pool", number + 1));
            }
        }
    }
    verdict("loops outside of the pool", findings)
}
