//! Mapping a file into memory. It knows nothing of what stands in the file.

use std::fs::File;

/// Maps a whole file for reading.
///
/// # Safety
/// The file must not be changed or truncated as long as the map lives.
#[allow(
    unsafe_code,
    reason = "mapping a file is an unsafe call: another process could change the file, which the caller rules out"
)]
pub(super) unsafe fn map(file: &File) -> std::io::Result<memmap2::Mmap> {
    // SAFETY: the map is read-only and private to this process; that the file stays unchanged, is the caller's promise.
    unsafe { memmap2::MmapOptions::new().map_copy_read_only(file) }
}
