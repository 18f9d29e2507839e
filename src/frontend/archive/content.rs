//! The bytes of an archive's file: in memory as they were given, as they were read, or mapped. It knows nothing of what
//! they mean.

use super::limits::Limits;
use super::write;
use crate::resources::{Scratch, memory};
use std::io::Read;
use std::path::Path;

/// The file's content.
pub(super) enum Bytes {
    Owned(Vec<u8>),
    /// As it was read, from a byte on that lies on a cache line: tensors are aligned as the file has them.
    Read(Scratch<u8>, usize),
    Mapped(memmap2::Mmap),
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Owned(bytes) => bytes,
            Bytes::Read(bytes, begin) => bytes.get(*begin..).unwrap_or_default(),
            Bytes::Mapped(map) => map,
        }
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

/// Opens a regular file that is not too large.
pub(super) fn open_file(path: &Path, limits: &Limits) -> std::io::Result<std::fs::File> {
    let file = crate::diag::files::open(path)?;
    let about = file.metadata()?;
    if about.len() > limits.file_bytes {
        let text = format!("it has {} bytes, and the limit is {}", about.len(), limits.file_bytes);
        return Err(std::io::Error::other(text));
    }
    Ok(file)
}

/// Reads a regular file, which must have the length that the system states, to a cache line. Its memory is charged to the run
/// that loads it.
pub(super) fn read_file(path: &Path, limits: &Limits) -> std::io::Result<Bytes> {
    const LINE: usize = write::ALIGNMENT as usize;
    let file = open_file(path, limits)?;
    let count = file.metadata()?.len();
    let room = usize::try_from(count).ok().and_then(|n| n.checked_add(LINE)).unwrap_or(usize::MAX);
    let (mut begin, mut read) = (0, Ok(0));
    let bytes = memory::built::<u8>(room, |bytes| {
        begin = bytes.as_ptr().align_offset(LINE).min(LINE);
        bytes.extend_from_slice(&[0; LINE][..begin]);
        read = file.take(count).read_to_end(bytes);
    });
    read?;
    Ok(Bytes::Read(bytes.map_err(std::io::Error::other)?, begin))
}
