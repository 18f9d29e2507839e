//! Keeps large blocks of freed storages for the next ones. Fresh memory costs a page fault every 4 KiB, which
//! for a fused kernel over large tensors is more than the kernel itself. A host says how much is kept
//! ([`keep_freed`]) and asks how much is ([`kept_bytes`]); a run with a limit of memory leaves no more than fits its limit.

use super::storage::Line;
use crate::resources::budget;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Smaller blocks are left to the system's allocator, in lines of 64 bytes.
const MIN_LINES: usize = (256 << 10) / 64;
/// All kept blocks together, in bytes, unless a host says otherwise.
const MAX_BYTES: usize = 1 << 30;
/// Kept blocks.
const MAX_BLOCKS: usize = 32;

static POOL: Mutex<Vec<Vec<Line>>> = Mutex::new(Vec::new());
static MAX: AtomicUsize = AtomicUsize::new(MAX_BYTES);

/// Sets how many bytes of freed tensors the process keeps for the next ones; 0 keeps none. 1 GiB where nothing is set.
pub fn keep_freed(bytes: usize) {
    MAX.store(bytes, Ordering::Relaxed);
    shrink(bytes);
}

/// How many bytes of freed tensors the process keeps.
pub fn kept_bytes() -> usize {
    bytes(&POOL.lock())
}

fn bytes(blocks: &[Vec<Line>]) -> usize {
    blocks.iter().map(|block| block.len() * size_of::<Line>()).sum()
}

/// A kept block of at least `lines` lines and not much more, with whatever was in it.
pub(super) fn take(lines: usize) -> Option<Vec<Line>> {
    if lines < MIN_LINES {
        return None;
    }
    let mut pool = POOL.lock();
    let fits = |block: &Vec<Line>| (lines..=lines + lines / 4).contains(&block.len());
    // The youngest first: it is the likeliest to be in a cache.
    let at = pool.iter().rposition(fits)?;
    Some(pool.remove(at))
}

/// Keeps a block that is not used any more; the oldest ones go when there are too many.
pub(super) fn give(block: Vec<Line>) {
    if block.len() < MIN_LINES {
        return;
    }
    POOL.lock().push(block);
    shrink(MAX.load(Ordering::Relaxed).min(budget::room()));
}

/// Gives the oldest blocks back to the system until no more than `most` bytes are kept.
fn shrink(most: usize) {
    let mut dropped = Vec::new();
    let mut pool = POOL.lock();
    while pool.len() > MAX_BLOCKS || bytes(&pool) > most {
        dropped.push(pool.remove(0));
    }
    drop(pool);
    // Giving memory back to the system takes long: not under the lock.
    drop(dropped);
}

#[cfg(test)]
mod tests {
    use crate::tensor::Storage;

    #[test]
    fn freed_blocks_come_back() {
        let bytes = 3 << 20;
        let first = Storage::for_writing(bytes).expect("small");
        first.write().expect("host").fill(7);
        drop(first);
        let fresh = Storage::zeroed(bytes).expect("small");
        assert!(fresh.read().expect("host").iter().all(|b| *b == 0), "zeroed storage has old content");
        assert_eq!(Storage::for_writing(bytes).expect("small").nbytes(), bytes);
    }

    #[test]
    fn what_is_kept_fits_the_limit_of_the_run() {
        let limits = crate::resources::Limits { bytes: Some(5 << 20), ..Default::default() };
        let budget = std::sync::Arc::new(crate::resources::Budget::new(limits));
        let _installed = budget.install();
        let sizes = [3 << 20, 4 << 20, 5 << 20];
        sizes.iter().for_each(|bytes| drop(Storage::zeroed(*bytes).expect("fits")));
        assert!(super::kept_bytes() <= 5 << 20, "{}", super::kept_bytes());
    }
}
