//! Asks the system for large pages where a block is large: fresh memory costs one page fault for 2 MiB instead of 512, and
//! kernels that walk through packed weights miss the translation buffer less. A hint, which changes no content: where the
//! system has no such pages, or gives them by itself, nothing happens. It knows nothing of what stands in a block.
#![allow(unsafe_code, reason = "tells the system how to page memory that the caller owns")]

/// Smaller blocks are left as they are: of these less than half could lie in large pages.
const MIN_BYTES: usize = 4 << 20;
/// The size of a large page, where there are any: of x86-64, and of AArch64 with pages of 4 KiB.
const PAGE_BYTES: usize = 2 << 20;

/// Does without large pages in this process from now on, and in those that it starts, wherever they are asked for. Who reads and
/// writes text touches a little of many pages, and has several megabytes more with large ones.
pub fn refuse_large() {
    // Where the system has no such switch, all stays as it is.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Asks for large pages under what lies wholly inside of `bytes` bytes from `start`, which the caller has allocated.
pub fn ask_for_large<T>(start: *const T, bytes: usize) {
    #[cfg(target_os = "linux")]
    if let Some((first, length)) = inside(start.addr(), bytes) {
        let first = start.with_addr(first).cast_mut().cast();
        // SAFETY: the range lies in one allocation of the caller; the advice changes neither its content nor its access.
        // An error says that the system has no such pages, and all stays as it is.
        let _ = unsafe { rustix::mm::madvise(first, length, rustix::mm::Advice::LinuxHugepage) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

/// The first address and the length of the large pages that lie wholly inside of a block. None where the block is small.
fn inside(start: usize, bytes: usize) -> Option<(usize, usize)> {
    if bytes < MIN_BYTES {
        return None;
    }
    let first = start.checked_next_multiple_of(PAGE_BYTES)?;
    let end = start.checked_add(bytes)? / PAGE_BYTES * PAGE_BYTES;
    (end > first).then(|| (first, end - first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pages_lie_inside_of_the_block() {
        assert_eq!(inside(0, MIN_BYTES - 1), None, "small");
        assert_eq!(inside(0, MIN_BYTES), Some((0, MIN_BYTES)));
        assert_eq!(inside(PAGE_BYTES + 16, MIN_BYTES), Some((2 * PAGE_BYTES, PAGE_BYTES)));
        assert_eq!(inside(usize::MAX - 16, MIN_BYTES), None, "no such block");
        for start in [1, 4096, PAGE_BYTES - 1, 3 * PAGE_BYTES + 5] {
            let (first, length) = inside(start, 9 << 20).expect("large");
            assert!(first >= start && first + length <= start + (9 << 20));
            assert!(first % PAGE_BYTES == 0 && length % PAGE_BYTES == 0 && length >= MIN_BYTES);
        }
    }

    #[test]
    fn asking_changes_no_content() {
        let mut block: Vec<u8> = (0..6 << 20).map(|n: u32| n as u8).collect();
        let before = block.clone();
        ask_for_large(block.as_ptr(), block.len());
        assert_eq!(block, before);
        block.fill(1);
        assert!(block.iter().all(|b| *b == 1));
    }
}
