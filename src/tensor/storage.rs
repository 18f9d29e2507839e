//! Memory that tensors share. Host memory is 64-byte aligned, zeroed, and behind a lock. Bytes that somebody else keeps
//! (a mapped file) can stand in for it until the first write, which copies them.

use super::Device;
use crate::diag::{Diagnostic, Result};
use bytemuck::{Pod, Zeroable};
use parking_lot::{MappedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// No single storage may be larger: 2^46 bytes, far above any machine, below any overflow.
const MAX_BYTES: usize = 1 << 46;

/// Shared memory with a version counter that counts writes.
#[derive(Clone)]
pub struct Storage(Arc<Inner>);

struct Inner {
    memory: Memory,
    version: AtomicU64,
}

enum Memory {
    Host { content: RwLock<Content>, nbytes: AtomicUsize },
    Device(Arc<dyn DeviceBuffer>),
}

/// Bytes that somebody else keeps, the same ones at the same place as long as this lives.
pub trait HostBytes: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

enum Content {
    Owned(Vec<Line>),
    Borrowed(Arc<dyn HostBytes>),
}

impl Content {
    fn bytes(&self) -> &[u8] {
        match self {
            Content::Owned(lines) => bytemuck::cast_slice(lines),
            Content::Borrowed(bytes) => bytes.bytes(),
        }
    }
}

/// One cache line, so that the allocation is aligned for any vector width.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line([u8; 64]);

impl Drop for Inner {
    fn drop(&mut self) {
        if let Memory::Host { content, .. } = &mut self.memory
            && let Content::Owned(lines) = content.get_mut()
        {
            super::pool::give(std::mem::take(lines));
        }
    }
}

/// Memory of another device; backends implement it, the runtime injects it.
pub trait DeviceBuffer: Send + Sync {
    /// Which device.
    fn device(&self) -> Device;
    /// How many bytes.
    fn nbytes(&self) -> usize;
    /// Copies everything to the host.
    fn to_host(&self) -> Result<Vec<u8>>;
}

impl Storage {
    /// Zeroed host memory.
    pub fn zeroed(nbytes: usize) -> Result<Storage> {
        if nbytes > MAX_BYTES {
            return Err(Diagnostic::runtime(format!("cannot allocate {nbytes} bytes")));
        }
        let count = nbytes.div_ceil(64);
        let mut lines: Vec<Line> = Vec::new();
        lines.try_reserve_exact(count).map_err(|_| {
            Diagnostic::runtime(format!("not enough memory: tried to allocate {nbytes} bytes"))
        })?;
        // `vec!` of zeroes asks the system for zero pages instead of writing them; the reservation above
        // only proves that the allocation can succeed.
        drop(lines);
        let lines = vec![Line::zeroed(); count];
        Ok(Self::host(lines, nbytes))
    }

    /// Host memory that the caller is about to overwrite whole: its content may be that of a freed storage.
    pub fn for_writing(nbytes: usize) -> Result<Storage> {
        match super::pool::take(nbytes.div_ceil(64)) {
            Some(lines) => Ok(Self::host(lines, nbytes)),
            None => Self::zeroed(nbytes),
        }
    }

    /// Host memory with given content.
    pub fn from_bytes(bytes: &[u8]) -> Result<Storage> {
        let storage = Self::for_writing(bytes.len())?;
        storage.write()?.copy_from_slice(bytes);
        Ok(storage)
    }

    /// Host memory whose bytes somebody else keeps; they are copied when they are first written. None if they are not
    /// aligned as host memory is.
    pub fn borrowed(bytes: Arc<dyn HostBytes>) -> Option<Storage> {
        let (address, nbytes) = (bytes.bytes().as_ptr() as usize, bytes.bytes().len());
        if !address.is_multiple_of(align_of::<Line>()) {
            return None;
        }
        let memory =
            Memory::Host { content: RwLock::new(Content::Borrowed(bytes)), nbytes: AtomicUsize::new(nbytes) };
        Some(Storage(Arc::new(Inner { memory, version: AtomicU64::new(0) })))
    }

    /// Memory of another device.
    pub fn on_device(buffer: Arc<dyn DeviceBuffer>) -> Storage {
        Storage(Arc::new(Inner { memory: Memory::Device(buffer), version: AtomicU64::new(0) }))
    }

    fn host(lines: Vec<Line>, nbytes: usize) -> Storage {
        let memory =
            Memory::Host { content: RwLock::new(Content::Owned(lines)), nbytes: AtomicUsize::new(nbytes) };
        Storage(Arc::new(Inner { memory, version: AtomicU64::new(0) }))
    }

    /// Makes room for `nbytes` bytes; what is there stays, new bytes are zero. All tensors over the storage go on sharing it.
    /// The caller must not hold it open.
    pub fn grow(&self, nbytes: usize) -> Result<()> {
        match &self.0.memory {
            Memory::Host { content, nbytes: own } => {
                if nbytes > MAX_BYTES {
                    return Err(Diagnostic::runtime(format!("cannot allocate {nbytes} bytes")));
                }
                let mut lines = owned(content.write(), own.load(Ordering::Acquire))?;
                let more = nbytes.div_ceil(64).saturating_sub(lines.len());
                lines.try_reserve(more).map_err(|_| {
                    Diagnostic::runtime(format!("not enough memory: tried to allocate {nbytes} bytes"))
                })?;
                let length = lines.len() + more;
                lines.resize(length, Line::zeroed());
                own.fetch_max(nbytes, Ordering::AcqRel);
                Ok(())
            }
            Memory::Device(buffer) => Err(not_host(&buffer.device())),
        }
    }

    /// Size in bytes.
    pub fn nbytes(&self) -> usize {
        match &self.0.memory {
            Memory::Host { nbytes, .. } => nbytes.load(Ordering::Acquire),
            Memory::Device(buffer) => buffer.nbytes(),
        }
    }

    /// Where it lives.
    pub fn device(&self) -> Device {
        match &self.0.memory {
            Memory::Host { .. } => Device::CPU,
            Memory::Device(buffer) => buffer.device(),
        }
    }

    /// The device's buffer, where it is not host memory.
    pub fn device_buffer(&self) -> Option<&Arc<dyn DeviceBuffer>> {
        match &self.0.memory {
            Memory::Host { .. } => None,
            Memory::Device(buffer) => Some(buffer),
        }
    }

    /// Whether two handles are the same memory.
    pub fn same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// An address that identifies the storage while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as *const u8 as usize
    }

    /// How often it was opened for writing.
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Relaxed)
    }

    /// Opens host memory for reading. Several readers may hold it, one thread more than once.
    pub fn read(&self) -> Result<ReadBytes<'_>> {
        match &self.0.memory {
            Memory::Host { content, nbytes } => {
                let content = content.read_recursive();
                Ok(ReadBytes { content, nbytes: nbytes.load(Ordering::Acquire) })
            }
            Memory::Device(buffer) => Err(not_host(&buffer.device())),
        }
    }

    /// Opens host memory for writing and counts a version. The caller must not hold it open for reading.
    pub fn write(&self) -> Result<WriteBytes<'_>> {
        match &self.0.memory {
            Memory::Host { content, nbytes } => {
                self.0.version.fetch_add(1, Ordering::Relaxed);
                let content = content.write();
                let nbytes = nbytes.load(Ordering::Acquire);
                Ok(WriteBytes { lines: owned(content, nbytes)?, nbytes })
            }
            Memory::Device(buffer) => Err(not_host(&buffer.device())),
        }
    }
}

/// The lines of host memory that may be written. Borrowed bytes become a copy.
fn owned(
    mut content: RwLockWriteGuard<'_, Content>,
    nbytes: usize,
) -> Result<MappedRwLockWriteGuard<'_, Vec<Line>>> {
    if let Content::Borrowed(bytes) = &*content {
        let mut lines: Vec<Line> = Vec::new();
        lines.try_reserve_exact(nbytes.div_ceil(64)).map_err(|_| {
            Diagnostic::runtime(format!("not enough memory: tried to allocate {nbytes} bytes"))
        })?;
        lines.resize(nbytes.div_ceil(64), Line::zeroed());
        bytemuck::cast_slice_mut(&mut lines)[..nbytes].copy_from_slice(bytes.bytes());
        *content = Content::Owned(lines);
    }
    let lines = RwLockWriteGuard::try_map(content, |content| match content {
        Content::Owned(lines) => Some(lines),
        Content::Borrowed(_) => None,
    });
    lines.map_err(|_| Diagnostic::internal("borrowed memory was not copied"))
}

fn not_host(device: &Device) -> Diagnostic {
    Diagnostic::runtime(format!("this operation needs a tensor on the cpu, but it is on {device}"))
        .hint("move it with .to('cpu')")
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({} bytes on {})", self.nbytes(), self.device())
    }
}

/// Host memory open for reading.
pub struct ReadBytes<'a> {
    content: RwLockReadGuard<'a, Content>,
    nbytes: usize,
}

impl Deref for ReadBytes<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.content.bytes()[..self.nbytes]
    }
}

/// Host memory open for writing.
pub struct WriteBytes<'a> {
    lines: MappedRwLockWriteGuard<'a, Vec<Line>>,
    nbytes: usize,
}

impl Deref for WriteBytes<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.nbytes]
    }
}

impl DerefMut for WriteBytes<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.nbytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kept(Vec<Line>, std::ops::Range<usize>);

    impl HostBytes for Kept {
        fn bytes(&self) -> &[u8] {
            &bytemuck::cast_slice(&self.0)[self.1.clone()]
        }
    }

    fn kept(range: std::ops::Range<usize>) -> Arc<Kept> {
        Arc::new(Kept(vec![Line([7; 64]); 4], range))
    }

    #[test]
    fn borrowed_bytes_are_copied_at_the_first_write() {
        let owner = kept(64..164);
        let storage = Storage::borrowed(owner.clone()).expect("aligned");
        let place = storage.read().expect("bytes").as_ptr();
        assert_eq!((place, storage.nbytes()), (owner.bytes().as_ptr(), 100));
        storage.write().expect("a copy")[99] = 1;
        let bytes = storage.read().expect("bytes");
        assert_eq!((bytes.len(), bytes[98], bytes[99]), (100, 7, 1));
        assert_ne!(bytes.as_ptr(), owner.bytes().as_ptr());
        assert!(owner.bytes().iter().all(|b| *b == 7));
    }

    #[test]
    fn bytes_at_odd_places_are_not_borrowed() {
        assert!(Storage::borrowed(kept(1..65)).is_none());
    }
}
