//! Mapping a file into memory. It knows nothing of what stands in the file.

use std::fs::File;

/// Maps a whole file for reading.
#[allow(
    unsafe_code,
    reason = "the system cannot promise that nobody changes the file; the caller is told so"
)]
pub(super) fn map(file: &File) -> std::io::Result<memmap2::Mmap> {
    // SAFETY: the map is read-only and private to this process. That nobody shortens or changes the file meanwhile
    // is what `Archive::map` asks of its caller; the command line maps only on request.
    unsafe { memmap2::MmapOptions::new().map_copy_read_only(file) }
}
