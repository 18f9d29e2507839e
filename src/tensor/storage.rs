//! Memory that tensors share. Host memory is 64-byte aligned, zeroed, and behind a lock.

use super::Device;
use crate::diag::{Diagnostic, Result};
use bytemuck::{Pod, Zeroable};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
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
    Host { lines: RwLock<Vec<Line>>, nbytes: AtomicUsize },
    Device(Arc<dyn DeviceBuffer>),
}

/// One cache line, so that the allocation is aligned for any vector width.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line([u8; 64]);

impl Drop for Inner {
    fn drop(&mut self) {
        if let Memory::Host { lines, .. } = &mut self.memory {
            super::pool::give(std::mem::take(lines.get_mut()));
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

    /// Memory of another device.
    pub fn on_device(buffer: Arc<dyn DeviceBuffer>) -> Storage {
        Storage(Arc::new(Inner { memory: Memory::Device(buffer), version: AtomicU64::new(0) }))
    }

    fn host(lines: Vec<Line>, nbytes: usize) -> Storage {
        let memory = Memory::Host { lines: RwLock::new(lines), nbytes: AtomicUsize::new(nbytes) };
        Storage(Arc::new(Inner { memory, version: AtomicU64::new(0) }))
    }

    /// Makes room for `nbytes` bytes; what is there stays, new bytes are zero. All tensors over the storage go on sharing it.
    /// The caller must not hold it open.
    pub fn grow(&self, nbytes: usize) -> Result<()> {
        match &self.0.memory {
            Memory::Host { lines, nbytes: own } => {
                if nbytes > MAX_BYTES {
                    return Err(Diagnostic::runtime(format!("cannot allocate {nbytes} bytes")));
                }
                let mut lines = lines.write();
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
            Memory::Host { lines, nbytes } => {
                let lines = lines.read_recursive();
                Ok(ReadBytes { lines, nbytes: nbytes.load(Ordering::Acquire) })
            }
            Memory::Device(buffer) => Err(not_host(&buffer.device())),
        }
    }

    /// Opens host memory for writing and counts a version. The caller must not hold it open for reading.
    pub fn write(&self) -> Result<WriteBytes<'_>> {
        match &self.0.memory {
            Memory::Host { lines, nbytes } => {
                self.0.version.fetch_add(1, Ordering::Relaxed);
                let lines = lines.write();
                Ok(WriteBytes { lines, nbytes: nbytes.load(Ordering::Acquire) })
            }
            Memory::Device(buffer) => Err(not_host(&buffer.device())),
        }
    }
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
    lines: RwLockReadGuard<'a, Vec<Line>>,
    nbytes: usize,
}

impl Deref for ReadBytes<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.nbytes]
    }
}

/// Host memory open for writing.
pub struct WriteBytes<'a> {
    lines: RwLockWriteGuard<'a, Vec<Line>>,
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
