//! Threads that run tests side by side. Must not know what a test is.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Tools that tests call in this process may nest deeply.
const STACK_BYTES: usize = 16 << 20;

/// Does `work` for each of `0..count`, taken one by one in order; `threads` of them at a time, or fewer where the system
/// starts no more threads.
pub(super) fn each(threads: usize, count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let take = || loop {
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= count {
            return;
        }
        work(n);
    };
    std::thread::scope(|scope| {
        let mut started = 0;
        for _ in 0..threads.clamp(1, count.max(1)) {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            started += usize::from(thread.spawn_scoped(scope, take).is_ok());
        }
        if started == 0 {
            take();
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    #[test]
    fn each_is_done_once() {
        let done = Mutex::new(vec![0; 50]);
        super::each(3, 50, |n| done.lock().expect("no panic")[n] += 1);
        assert_eq!(done.into_inner().expect("no panic"), vec![1; 50]);
    }
}
