//! Keeps blocks of freed storages for the next ones. Fresh memory costs a page fault every 4 KiB, or being zeroed, which
//! for a fused kernel over large tensors is more than the kernel itself. A host says how much is kept
//! ([`keep_freed`]) and asks how much is ([`kept_bytes`]); a run with a limit of memory leaves no more than fits its limit.

use crate::resources::budget;
use bytemuck::{Pod, Zeroable};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One cache line, so that the allocation is aligned for any vector width.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u8; 64]);

/// Smaller blocks are kept by the thread that freed them, in lines of 64 bytes.
const MIN_LINES: usize = (8 << 10) / 64;
/// Blocks from here on cost page faults when they are fresh; smaller ones, which cost being zeroed, have a shelf of their own, as
/// there are many of them.
const LARGE_LINES: usize = (256 << 10) / 64;
/// All kept blocks together, in bytes, unless a host says otherwise.
const MAX_BYTES: usize = 1 << 30;

/// Kept blocks of about one size, the youngest last.
struct Shelf {
    blocks: Vec<Vec<Line>>,
    /// All of them, in bytes.
    bytes: usize,
    /// How many are kept at most.
    most: usize,
}

/// Blocks that a thread keeps for itself: the system's allocator takes longer for memory that lies on a line than an op on it.
struct Near {
    /// By their number of lines, less one.
    blocks: [Vec<Vec<Line>>; MIN_LINES - 1],
    lines: usize,
}

/// Blocks of one size that a thread keeps at most.
const MAX_NEAR: usize = 16;
/// All of a thread's, in lines: 128 KiB.
const MAX_NEAR_LINES: usize = (128 << 10) / 64;

impl Near {
    const fn new() -> Near {
        Near { blocks: [const { Vec::new() }; MIN_LINES - 1], lines: 0 }
    }

    fn take(&mut self, lines: usize) -> Option<Vec<Line>> {
        let block = self.blocks.get_mut(lines.checked_sub(1)?)?.pop()?;
        self.lines -= lines;
        Some(block)
    }

    /// Gives back what is too much.
    fn keep(&mut self, block: Vec<Line>) -> Option<Vec<Line>> {
        let lines = block.len();
        match lines.checked_sub(1).and_then(|at| self.blocks.get_mut(at)) {
            Some(shelf) if shelf.len() < MAX_NEAR && self.lines + lines <= MAX_NEAR_LINES => {
                self.lines += lines;
                shelf.push(block);
                None
            }
            _ => Some(block),
        }
    }
}

thread_local! {
    static NEAR: RefCell<Near> = const { RefCell::new(Near::new()) };
}

/// What is kept: small blocks and large ones.
struct Pool {
    small: Shelf,
    large: Shelf,
}

static POOL: Mutex<Pool> = Mutex::new(Pool::new());
static MAX: AtomicUsize = AtomicUsize::new(MAX_BYTES);

impl Shelf {
    const fn new(most: usize) -> Shelf {
        Shelf { blocks: Vec::new(), bytes: 0, most }
    }

    /// The youngest block that fits: it is the likeliest to be in a cache.
    fn take(&mut self, lines: usize) -> Option<Vec<Line>> {
        let fits = |block: &Vec<Line>| (lines..=lines + lines / 4).contains(&block.len());
        let at = self.blocks.iter().rposition(fits)?;
        let block = self.blocks.remove(at);
        self.bytes -= size_of_val(block.as_slice());
        Some(block)
    }

    fn keep(&mut self, block: Vec<Line>) {
        self.bytes += size_of_val(block.as_slice());
        self.blocks.push(block);
    }

    /// Takes the oldest blocks out until no more than `bytes` bytes are kept.
    fn shrink(&mut self, bytes: usize) -> Vec<Vec<Line>> {
        let mut count = self.blocks.len().saturating_sub(self.most);
        let mut gone: usize = self.blocks[..count].iter().map(|b| size_of_val(b.as_slice())).sum();
        while self.bytes - gone > bytes {
            gone += size_of_val(self.blocks[count].as_slice());
            count += 1;
        }
        self.bytes -= gone;
        self.blocks.drain(..count).collect()
    }
}

impl Pool {
    const fn new() -> Pool {
        Pool { small: Shelf::new(64), large: Shelf::new(32) }
    }

    fn shelf(&mut self, lines: usize) -> &mut Shelf {
        if lines < LARGE_LINES { &mut self.small } else { &mut self.large }
    }

    fn bytes(&self) -> usize {
        self.small.bytes + self.large.bytes
    }

    /// Takes blocks out until no more than `most` bytes are kept, large ones first, of each kind the oldest ones.
    fn shrink(&mut self, most: usize) -> [Vec<Vec<Line>>; 2] {
        let large = self.large.shrink(most.saturating_sub(self.small.bytes));
        [large, self.small.shrink(most)]
    }
}

/// Sets how many bytes of freed tensors the process keeps for the next ones, beside 128 KiB of small ones a thread; 0 keeps none.
/// 1 GiB where nothing is set.
pub fn keep_freed(bytes: usize) {
    MAX.store(bytes, Ordering::Relaxed);
    let dropped = POOL.lock().shrink(bytes);
    drop(dropped);
}

/// How many bytes of freed tensors the process keeps, those of single threads not counted.
pub fn kept_bytes() -> usize {
    POOL.lock().bytes()
}

/// A kept block of at least `lines` lines and not much more, with whatever was in it.
pub(super) fn take(lines: usize) -> Option<Vec<Line>> {
    if lines < MIN_LINES {
        return take_near(lines);
    }
    POOL.lock().shelf(lines).take(lines)
}

/// A block of exactly `lines` lines that this thread has kept, with whatever was in it.
pub(super) fn take_near(lines: usize) -> Option<Vec<Line>> {
    if lines >= MIN_LINES {
        return None;
    }
    // A thread that ends has none any more.
    NEAR.try_with(|near| near.borrow_mut().take(lines)).ok().flatten()
}

/// Keeps a block that is not used any more; the oldest ones go when there are too many.
pub(super) fn give(block: Vec<Line>) {
    if block.len() < MIN_LINES {
        if MAX.load(Ordering::Relaxed) > 0 {
            let left = NEAR.try_with(|near| near.borrow_mut().keep(block));
            drop(left);
        }
        return;
    }
    let most = MAX.load(Ordering::Relaxed).min(budget::room());
    let dropped = {
        let mut pool = POOL.lock();
        pool.shelf(block.len()).keep(block);
        pool.shrink(most)
    };
    // Giving memory back to the system takes long: not under the lock.
    drop(dropped);
}

#[cfg(test)]
mod tests {
    use super::{Line, Pool};
    use crate::tensor::Storage;

    fn block(lines: usize) -> Vec<Line> {
        bytemuck::zeroed_vec(lines)
    }

    #[test]
    fn small_and_large_blocks_do_not_push_each_other_out() {
        let mut pool = Pool::new();
        let (small, large) = (super::MIN_LINES, super::LARGE_LINES);
        pool.shelf(large).keep(block(large));
        for _ in 0..100 {
            pool.shelf(small).keep(block(small));
            drop(pool.shrink(usize::MAX));
        }
        assert_eq!(pool.bytes(), 64 * (64 * small + large), "64 small blocks and the large one");
        assert!(pool.shelf(small).take(small).is_some_and(|b| b.len() == small));
        assert!(pool.shelf(small).take(2 * small).is_none(), "none is as long");
        drop(pool.shrink(10 * 64 * small));
        assert_eq!(pool.bytes(), 10 * 64 * small, "the large one goes first");
        drop(pool.shrink(0));
        assert_eq!(pool.bytes(), 0);
    }

    #[test]
    fn a_thread_keeps_few_small_blocks() {
        let mut near = super::Near::new();
        for _ in 0..100 {
            drop(near.keep(block(2)));
        }
        assert_eq!(near.lines, 2 * super::MAX_NEAR);
        assert!(near.take(1).is_none() && near.take(2).is_some_and(|b| b.len() == 2));
        assert!(near.keep(block(0)).is_some() && near.keep(block(super::MIN_LINES)).is_some());
        for lines in 1..super::MIN_LINES {
            drop(near.keep(block(lines)));
        }
        assert!(near.lines <= super::MAX_NEAR_LINES);
        let used = Storage::for_writing(200).expect("small");
        used.write().expect("host").fill(7);
        drop(used);
        assert!(Storage::zeroed(200).expect("small").read().expect("host").iter().all(|b| *b == 0));
    }

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
        // Other tests free blocks meanwhile, without a limit; what this one frees sets that right.
        let fits = (0..100).any(|_| {
            sizes.iter().for_each(|bytes| drop(Storage::zeroed(*bytes).expect("fits")));
            super::kept_bytes() <= 5 << 20
        });
        assert!(fits, "{}", super::kept_bytes());
    }
}
