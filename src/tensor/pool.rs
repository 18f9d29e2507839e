//! Keeps large blocks of freed storages for the next ones. Fresh memory costs a page fault every 4 KiB, which
//! for a fused kernel over large tensors is more than the kernel itself.

use super::storage::Line;
use parking_lot::Mutex;

/// Smaller blocks are left to the system's allocator, in lines of 64 bytes.
const MIN_LINES: usize = (256 << 10) / 64;
/// All kept blocks together, in lines.
const MAX_LINES: usize = (1 << 30) / 64;
/// Kept blocks.
const MAX_BLOCKS: usize = 32;

static POOL: Mutex<Vec<Vec<Line>>> = Mutex::new(Vec::new());

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

/// Keeps a block that nobody uses any more; the oldest ones go when there are too many.
pub(super) fn give(block: Vec<Line>) {
    if block.len() < MIN_LINES || block.len() > MAX_LINES {
        return;
    }
    let mut dropped = Vec::new();
    let mut pool = POOL.lock();
    pool.push(block);
    while pool.len() > MAX_BLOCKS || pool.iter().map(Vec::len).sum::<usize>() > MAX_LINES {
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
}
