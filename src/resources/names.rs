//! Names that live as long as the process: how much memory they take, and how much they may take.
//!
//! Interned names are never freed. A host that reads files of strangers for weeks sees here what they take
//! ([`taken`]); beyond the limit ([`limit`]) no further text is read. No run is charged for them, as it is chance which of
//! several runs meets a name first.

use super::budget;
use crate::diag::{Diagnostic, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that names may take, where the host says nothing.
const DEFAULT_LIMIT: u64 = 1 << 30;
/// What a name takes besides its letters: its places in the tables.
const BESIDES: u64 = 64;

static TAKEN: AtomicU64 = AtomicU64::new(0);
static LIMIT: AtomicU64 = AtomicU64::new(DEFAULT_LIMIT);

/// Bytes that interned names take in this process.
pub fn taken() -> u64 {
    TAKEN.load(Ordering::Relaxed)
}

/// How many bytes interned names may take in this process; 1 GiB by default. Text that is being read when they are
/// used up is read to its end.
pub fn limit(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Counts a name that has just been interned.
pub fn interned(length: usize) {
    TAKEN.fetch_add(BESIDES + length as u64, Ordering::Relaxed);
}

/// Fails where names take as much as they may: before text is read, which brings new ones.
pub fn check() -> Result<()> {
    let (taken, limit) = (taken(), LIMIT.load(Ordering::Relaxed));
    if taken <= limit {
        return Ok(());
    }
    let (taken, limit) = (budget::bytes_text(taken), budget::bytes_text(limit));
    let error = Diagnostic::new(
        ErrorKind::Limit,
        format!("the names of all files take {taken}, their limit is {limit}"),
    )
    .limit("names");
    Err(error.hint("names live as long as the process; `resources::names::limit` sets the limit, a new process begins anew"))
}
