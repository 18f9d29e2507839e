//! Memory that tensors share: owned by the storage, borrowed from its owner (a mapped file) until the first write
//! copies it, foreign, owned elsewhere and written in place, or away, in the memory of a device until the host opens
//! it. How threads share it says [`super::shared`].
//!
//! Owned memory is charged to the budget of the thread that asks for it and credited when it is freed.

use super::block::Block;
use super::foreign::Foreign;
use super::pool::{self, Line};
use super::reads::{LastRead, Moment};
use super::resident::{DeviceBuffer, DeviceMemory, Mirror, may_wait};
use super::shared::{Blocked, Exclusive, Shared};
use crate::diag::{Diagnostic, Result};
use crate::resources::{Charge, memory, pages};
use bytemuck::{Pod, Zeroable};
use parking_lot::Mutex;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// No single storage may be larger: 2^46 bytes, far above any machine, below any overflow.
const MAX_BYTES: usize = 1 << 46;

/// Shared memory with a version counter that counts writes.
#[derive(Clone)]
pub struct Storage(Arc<Inner>);

struct Inner {
    content: Shared<Host>,
    /// Of the content, so that it can be read during writes.
    nbytes: AtomicUsize,
    /// What the address is a multiple of, at least.
    alignment: usize,
    /// Writes that have begun.
    version: AtomicU64,
    /// Writes that have ended. While none is under way it is the version.
    ended: AtomicU64,
    /// How often it was pinned: since when others may have written without a version being counted.
    pins: AtomicU64,
    /// A copy on a device.
    mirror: Mutex<Option<Box<Mirror>>>,
    /// When it was opened last.
    last_read: LastRead,
}

/// Bytes that are owned elsewhere, unchanged and in place as long as this lives.
pub trait HostBytes: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

/// Host memory: where it is, and how much of it counts.
struct Host {
    content: Content,
    nbytes: usize,
}

enum Content {
    /// One line or less, as scalars need.
    Small(Few),
    Owned(Block),
    Borrowed(Arc<dyn HostBytes>),
    Foreign(Foreign),
    /// Our own memory that others use by its address; it moves only when none of them does any more.
    Pinned(Foreign, Weak<()>),
    /// Memory of a device. Opening the storage copies it to the host first, so that its bytes are never requested.
    Away(Arc<dyn DeviceBuffer>, Arc<Charge>),
}

impl Host {
    /// Zeroed memory.
    fn zeroed(nbytes: usize) -> Result<Host> {
        check_size(nbytes)?;
        if nbytes <= size_of::<Few>() {
            return Ok(Host { content: Content::Small(Few::zeroed()), nbytes });
        }
        let count = nbytes.div_ceil(size_of::<Line>());
        // Zeros written to pages that are there take as long as those of the system, and no page faults.
        if let Some(mut block) = Block::kept(count) {
            block.lines.fill(Line::zeroed());
            return Ok(Host { content: Content::Owned(block), nbytes });
        }
        Host::fresh(nbytes)
    }

    /// Zeroed memory that the system gives.
    fn fresh(nbytes: usize) -> Result<Host> {
        check_size(nbytes)?;
        let count = nbytes.div_ceil(size_of::<Line>());
        let charge = Charge::new(count * size_of::<Line>())?;
        let lines: Vec<Line> = bytemuck::try_zeroed_vec(count).map_err(|()| memory::no_memory(nbytes))?;
        pages::ask_for_large(lines.as_ptr(), nbytes);
        Ok(Host { content: Content::Owned(Block { lines, _charge: charge }), nbytes })
    }

    /// Memory with whatever is in it.
    fn for_writing(nbytes: usize) -> Result<Host> {
        if nbytes <= size_of::<Few>() {
            return Host::zeroed(nbytes);
        }
        match Block::kept(nbytes.div_ceil(size_of::<Line>())) {
            Some(block) => Ok(Host { content: Content::Owned(block), nbytes }),
            None => Host::fresh(nbytes),
        }
    }

    /// Owned memory of `nbytes` bytes that begins with the bytes of this one.
    fn copied(&self, nbytes: usize) -> Result<Host> {
        let mut copy = Host::zeroed(nbytes)?;
        let both = self.nbytes.min(nbytes);
        if let Some(bytes) = copy.bytes_mut() {
            bytes[..both].copy_from_slice(&self.bytes()[..both]);
        }
        Ok(copy)
    }

    fn bytes(&self) -> &[u8] {
        let bytes = match &self.content {
            Content::Small(line) => bytemuck::bytes_of(line),
            Content::Owned(block) => bytemuck::cast_slice(&block.lines),
            Content::Borrowed(bytes) => bytes.bytes(),
            Content::Foreign(memory) | Content::Pinned(memory, _) => memory.bytes(),
            Content::Away(..) => return &[],
        };
        &bytes[..self.nbytes]
    }

    /// None where the bytes are not ours to write.
    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let bytes = match &mut self.content {
            Content::Small(line) => bytemuck::bytes_of_mut(line),
            Content::Owned(block) => block.bytes_mut(),
            Content::Borrowed(_) | Content::Away(..) => return None,
            Content::Foreign(memory) | Content::Pinned(memory, _) => memory.bytes_mut(),
        };
        Some(&mut bytes[..self.nbytes])
    }

    /// Whether its place must not change.
    fn is_foreign(&self) -> bool {
        match &self.content {
            Content::Foreign(_) => true,
            Content::Pinned(_, users) => users.strong_count() > 0,
            _ => false,
        }
    }

    /// Gives the content a place that does not change as long as `users` is held.
    fn fix(&mut self, users: &Arc<()>) -> Result<()> {
        if matches!(self.content, Content::Borrowed(_)) {
            *self = self.copied(self.nbytes)?;
        }
        let nbytes = self.nbytes;
        let memory = match std::mem::replace(&mut self.content, Content::Small(Few::zeroed())) {
            Content::Small(few) => {
                let _charge = Charge::taken(size_of::<Line>());
                let mut lines = pool::take_near(1).unwrap_or_else(|| vec![Line::zeroed()]);
                lines[0].0 = few.0;
                Foreign::of_block(Block { lines, _charge }, nbytes)
            }
            Content::Owned(block) => Foreign::of_block(block, nbytes),
            Content::Foreign(memory) | Content::Pinned(memory, _) => memory,
            Content::Borrowed(_) | Content::Away(..) => {
                return Err(Diagnostic::internal("borrowed bytes were not copied"));
            }
        };
        self.content = Content::Pinned(memory, Arc::downgrade(users));
        Ok(())
    }

    /// How often a writer lets others go on before it copies what they read: about as long as the copy takes.
    fn patience(&self) -> usize {
        16 + self.nbytes / (1 << 14)
    }
}

/// Content that needs no block of its own. It is not aligned as a line is: the system's allocator is several times slower for what
/// must lie on a line.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
struct Few([u8; 64]);

impl Moment {
    /// Whether a storage was opened since then, for reading or for writing, by this thread or by work that it waited for. Memory
    /// that is made later counts as read.
    pub fn knows_read(self, storage: &Storage) -> bool {
        storage.0.last_read.is_since(self)
    }
}

impl Storage {
    /// Zeroed host memory. Fails where it is too large for the machine or for the run's limit.
    pub fn zeroed(nbytes: usize) -> Result<Storage> {
        Ok(Self::owned(Host::zeroed(nbytes)?))
    }

    /// Host memory that the caller is about to overwrite whole: its content may be that of a freed storage.
    pub fn for_writing(nbytes: usize) -> Result<Storage> {
        Ok(Self::owned(Host::for_writing(nbytes)?))
    }

    /// Host memory with given content.
    pub fn from_bytes(bytes: &[u8]) -> Result<Storage> {
        let mut host = Host::for_writing(bytes.len())?;
        if let Some(own) = host.bytes_mut() {
            own.copy_from_slice(bytes);
        }
        Ok(Self::owned(host))
    }

    /// Host memory whose bytes are owned elsewhere; they are copied when they are first written.
    pub fn borrowed(bytes: Arc<dyn HostBytes>) -> Storage {
        let (address, nbytes) = (bytes.bytes().as_ptr() as usize, bytes.bytes().len());
        Self::host(Host { content: Content::Borrowed(bytes), nbytes }, alignment_of(address))
    }

    /// Foreign host memory that is written in place. It cannot grow.
    pub fn foreign(memory: Foreign) -> Storage {
        let (address, nbytes) = (memory.bytes().as_ptr() as usize, memory.bytes().len());
        Self::host(Host { content: Content::Foreign(memory), nbytes }, alignment_of(address))
    }

    /// Memory that a device has written. It is copied to the host when it is opened there. Fails where it is too large
    /// for the run's limit.
    pub fn away(buffer: Arc<dyn DeviceBuffer>) -> Result<Storage> {
        let nbytes = buffer.nbytes();
        let charge = Arc::new(Charge::new(nbytes)?);
        Ok(Self::host(Host { content: Content::Away(buffer, charge), nbytes }, align_of::<Line>()))
    }

    fn owned(host: Host) -> Storage {
        let alignment = match host.content {
            Content::Small(_) => align_of::<Few>(),
            _ => align_of::<Line>(),
        };
        Self::host(host, alignment)
    }

    fn host(host: Host, alignment: usize) -> Storage {
        let nbytes = AtomicUsize::new(host.nbytes);
        let content = Shared::new(host);
        let (version, ended, pins) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let (mirror, last_read) = (Mutex::default(), LastRead::new());
        Storage(Arc::new(Inner { content, nbytes, alignment, version, ended, pins, mirror, last_read }))
    }

    /// Makes room for `nbytes` bytes; what is there stays, new bytes are zero. All tensors over the storage go on sharing it.
    /// Fails for foreign memory, whose owner knows its size.
    pub fn grow(&self, nbytes: usize) -> Result<()> {
        check_size(nbytes)?;
        let mut opened = self.open()?;
        let Some(host) = opened.get_mut() else { return Err(not_exclusive()) };
        if nbytes <= host.nbytes {
            return Ok(());
        }
        if host.is_foreign() {
            return Err(Diagnostic::runtime("Trying to resize storage that is not resizable")
                .hint("the memory belongs to the program that made the tensor; clone the tensor first"));
        }
        *host = host.copied(nbytes)?;
        self.0.nbytes.store(nbytes, Ordering::Release);
        Ok(())
    }

    /// Keeps host memory in place for users of its address, as long as the pin lives. Borrowed bytes are
    /// copied first, since they may be written.
    pub fn pin(&self) -> Result<Pin> {
        let mut opened = self.open()?;
        let Some(host) = opened.get_mut() else { return Err(not_exclusive()) };
        let users = match &host.content {
            Content::Pinned(_, users) => users.upgrade(),
            _ => None,
        };
        let users = users.unwrap_or_default();
        if !matches!(host.content, Content::Foreign(_)) {
            host.fix(&users)?;
        }
        let address = host.bytes_mut().map_or(0, |bytes| bytes.as_mut_ptr().expose_provenance());
        self.0.pins.fetch_add(1, Ordering::AcqRel);
        Ok(Pin { address, nbytes: host.nbytes, _storage: self.clone(), _users: users })
    }

    /// Size in bytes.
    pub fn nbytes(&self) -> usize {
        self.0.nbytes.load(Ordering::Acquire)
    }

    /// What the address is a multiple of, at least: 64 for owned memory, 16 where that is 64 bytes or less.
    pub fn alignment(&self) -> usize {
        self.0.alignment
    }

    /// Whether the memory is foreign, so that it may be written without a version being counted.
    pub fn is_foreign(&self) -> bool {
        self.content().map_or(true, |host| host.is_foreign())
    }

    /// Whether its content is on a device and nowhere else.
    pub fn is_away(&self) -> bool {
        self.content().is_ok_and(|host| matches!(host.content, Content::Away(..)))
    }

    /// Its content in the memory of a device. What is there already is not copied again, unless it was written since, or
    /// may have been by its external owner.
    pub fn resident(&self, memory: &dyn DeviceMemory) -> Result<Arc<dyn DeviceBuffer>> {
        if let Content::Away(buffer, _) = &self.content()?.content
            && memory.owns(&**buffer)
        {
            return Ok(Arc::clone(buffer));
        }
        let (ended, version) = (self.0.ended.load(Ordering::Acquire), self.version());
        if let Some(mirror) = &*self.0.mirror.lock()
            && mirror.version == version
            && mirror.buffer.nbytes() == self.nbytes()
            && memory.owns(&*mirror.buffer)
            && !self.is_foreign()
        {
            return Ok(Arc::clone(&mirror.buffer));
        }
        let bytes = self.read()?;
        let buffer = memory.upload(&bytes)?;
        // A write that began before the copy and has not ended may show in part.
        if ended == version && !bytes.0.is_foreign() {
            *self.0.mirror.lock() = Some(Box::new(Mirror { buffer: Arc::clone(&buffer), version }));
        }
        Ok(buffer)
    }

    /// Whether this is the only handle, of memory that is ours.
    pub fn is_sole(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && !self.is_foreign()
    }

    /// Whether two handles are the same memory.
    pub fn same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether two handles reach the same bytes: they are the same memory, or lent memory at addresses that overlap.
    pub fn overlaps(&self, other: &Storage) -> bool {
        let place = |storage: &Storage| {
            let host = storage.content().ok().filter(|host| host.is_foreign())?;
            Some(host.bytes().as_ptr_range())
        };
        self.same(other)
            || place(self)
                .zip(place(other))
                .is_some_and(|(own, other)| own.start < other.end && other.start < own.end)
    }

    /// An address that identifies the storage while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as *const u8 as usize
    }

    /// How often it was opened for writing.
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Relaxed)
    }

    /// How often it was pinned. What was computed from the content is compared by it beside the version: an owner of a pin may
    /// have written, though the pin may be gone again.
    pub fn pins(&self) -> u64 {
        self.0.pins.load(Ordering::Acquire)
    }

    /// Counts a write that the memory's owner made: what autograd saved before does not hold any more.
    pub fn written_outside(&self) {
        drop(self.begin_write());
    }

    fn begin_write(&self) -> Written<'_> {
        self.0.version.fetch_add(1, Ordering::Relaxed);
        Written(&self.0.ended)
    }

    /// Opens host memory for reading, as it is now: what is written later does not show in it.
    pub fn read(&self) -> Result<ReadBytes> {
        self.0.last_read.note();
        let mut host = self.content()?;
        if matches!(host.content, Content::Away(..)) {
            drop(self.open()?);
            host = self.content()?;
        }
        Ok(ReadBytes(host))
    }

    fn content(&self) -> Result<Arc<Host>> {
        self.0.content.read(may_wait).map_err(blocked)
    }

    /// Opens host memory for reading in an operation that is about to write to `target`, another storage. Where both are
    /// foreign it is copied, so that two such operations never wait for each other.
    pub fn read_beside(&self, target: &Storage) -> Result<ReadBytes> {
        let bytes = self.read()?;
        if bytes.0.is_foreign() && target.read()?.0.is_foreign() {
            return Ok(ReadBytes(Arc::new(bytes.0.copied(bytes.0.nbytes)?)));
        }
        Ok(bytes)
    }

    /// Opens host memory for writing and counts a version. The caller opens what it reads before.
    pub fn write(&self) -> Result<WriteBytes<'_>> {
        let written = self.begin_write();
        let mut opened = self.open()?;
        let borrowed = matches!(opened.get().content, Content::Borrowed(_));
        if borrowed && let Some(host) = opened.get_mut() {
            *host = host.copied(host.nbytes)?;
        }
        Ok(WriteBytes { bytes: opened, _written: written })
    }

    /// The content, on the host, for this thread alone.
    fn open(&self) -> Result<Exclusive<'_, Host>> {
        self.0.last_read.note();
        let copy = |host: &Host| match &host.content {
            Content::Away(buffer, charge) => {
                let content = Content::Away(Arc::clone(buffer), Arc::clone(charge));
                Some(Ok(Host { content, nbytes: host.nbytes }))
            }
            _ => (!host.is_foreign()).then(|| host.copied(host.nbytes)),
        };
        let mut opened = self.0.content.write(Host::patience, copy, may_wait).map_err(blocked)?;
        if let Some(host) = opened.get_mut() {
            self.bring_home(host)?;
        }
        Ok(opened)
    }

    /// Copies content that is away to the host; the device keeps its copy, unless the caller is about to write.
    fn bring_home(&self, host: &mut Host) -> Result<()> {
        let Content::Away(buffer, _) = &host.content else { return Ok(()) };
        let mut home = Host::for_writing(host.nbytes)?;
        if let Some(bytes) = home.bytes_mut() {
            buffer.download(bytes)?;
        }
        let (ended, version) = (self.0.ended.load(Ordering::Acquire), self.version());
        if ended == version {
            *self.0.mirror.lock() = Some(Box::new(Mirror { buffer: Arc::clone(buffer), version }));
        }
        *host = home;
        Ok(())
    }
}

/// A write that is under way; dropped when it has ended.
struct Written<'a>(&'a AtomicU64);

impl Drop for Written<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

fn check_size(nbytes: usize) -> Result<()> {
    if nbytes > MAX_BYTES {
        return Err(memory::no_memory(nbytes));
    }
    memory::expect_memory(nbytes)
}

/// The largest power of two up to a cache line that divides an address.
fn alignment_of(address: usize) -> usize {
    1 << address.trailing_zeros().min(align_of::<Line>().trailing_zeros())
}

fn blocked(why: Blocked<Diagnostic>) -> Diagnostic {
    match why {
        Blocked::Ended(error) => error,
        Blocked::Held => Diagnostic::internal("a storage was opened while another one was held for writing"),
    }
}

fn not_exclusive() -> Diagnostic {
    Diagnostic::internal("memory that is open for writing has a reader")
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({} bytes)", self.nbytes())
    }
}

/// Memory of a storage that stays at its place as long as this lives.
pub struct Pin {
    /// As a number: a pin only hands it out, and may do so on any thread.
    address: usize,
    nbytes: usize,
    _storage: Storage,
    _users: Arc<()>,
}

impl Pin {
    /// Where the memory is. Users promise what [`Foreign::new`] requires.
    pub fn address(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    /// How many bytes there are.
    pub fn nbytes(&self) -> usize {
        self.nbytes
    }
}

/// Host memory open for reading; it stays as it was when it was opened.
pub struct ReadBytes(Arc<Host>);

impl Deref for ReadBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// Host memory open for writing.
pub struct WriteBytes<'a> {
    bytes: Exclusive<'a, Host>,
    _written: Written<'a>,
}

impl Deref for WriteBytes<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes.get().bytes()
    }
}

impl DerefMut for WriteBytes<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // Never empty instead of the bytes: there is no other handle, and borrowed bytes were copied.
        self.bytes.get_mut().and_then(Host::bytes_mut).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_memory_stays_at_its_place_until_the_pin_goes() {
        for nbytes in [8, 4096] {
            let storage = Storage::from_bytes(&vec![3; nbytes]).expect("small");
            let pin = storage.pin().expect("host memory");
            assert_eq!((pin.nbytes(), storage.is_foreign()), (nbytes, true));
            assert_eq!(storage.read().expect("readable").as_ptr(), pin.address().cast_const());
            let error = storage.grow(nbytes + 1).expect_err("the memory is in use");
            assert!(error.message().contains("not resizable"), "{error}");
            storage.write().expect("writable")[0] = 4;
            let again = storage.pin().expect("host memory");
            assert_eq!(again.address(), pin.address());
            drop((pin, again));
            storage.grow(nbytes + 1).expect("no reference is left");
            assert_eq!(storage.read().expect("readable")[..2], [4, 3]);
            assert!(!storage.is_foreign());
        }
    }

    #[test]
    fn pinned_bytes_of_others_are_copied() {
        let owner = kept(64..164);
        let storage = Storage::borrowed(owner.clone());
        let pin = storage.pin().expect("host memory");
        assert_ne!(pin.address().cast_const(), owner.bytes().as_ptr());
        assert_eq!(pin.nbytes(), 100);
    }

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
        let storage = Storage::borrowed(owner.clone());
        let place = storage.read().expect("bytes").as_ptr();
        assert_eq!((place, storage.nbytes()), (owner.bytes().as_ptr(), 100));
        storage.write().expect("a copy")[99] = 1;
        let bytes = storage.read().expect("bytes");
        assert_eq!((bytes.len(), bytes[98], bytes[99]), (100, 7, 1));
        assert_ne!(bytes.as_ptr(), owner.bytes().as_ptr());
        assert!(owner.bytes().iter().all(|b| *b == 7));
    }

    #[test]
    fn alignment_is_that_of_the_place() {
        assert_eq!(Storage::borrowed(kept(4..64)).alignment(), 4);
        assert_eq!(Storage::borrowed(kept(1..65)).alignment(), 1);
        assert_eq!(Storage::zeroed(3).expect("small").alignment(), 16);
        assert_eq!(Storage::zeroed(65).expect("small").alignment(), 64);
    }

    #[test]
    fn readers_keep_what_they_saw() {
        let storage = Storage::from_bytes(&[1; 200]).expect("small");
        let before = storage.read().expect("bytes");
        storage.write().expect("a copy").fill(2);
        storage.grow(300).expect("grows");
        assert!(before.iter().all(|b| *b == 1) && before.len() == 200);
        let after = storage.read().expect("bytes");
        assert!(after[..200].iter().all(|b| *b == 2) && after[200..].iter().all(|b| *b == 0));
        assert_eq!((after.len(), storage.nbytes(), storage.version()), (300, 300, 1));
    }

    #[test]
    fn memory_is_charged_while_it_lives() {
        let limits = crate::resources::Limits { bytes: Some(1 << 20), ..Default::default() };
        let budget = Arc::new(crate::resources::Budget::new(limits));
        let _installed = budget.install();
        let half = Storage::zeroed(600 << 10).expect("fits");
        let error = Storage::zeroed(600 << 10).expect_err("too much");
        assert!(error.message().contains("memory limit of 1.0 MiB"), "{error}");
        drop(half);
        assert_eq!(budget.live_bytes(), 0);
        Storage::for_writing(600 << 10).expect("fits again");
    }

    /// What other threads hold open for writing is waited for; a thread that holds something itself gets an error.
    #[test]
    fn a_writer_waits_for_a_writer() {
        let storage = Storage::from_bytes(&[0; 8]).expect("small");
        let held = storage.write().expect("open");
        let other = storage.clone();
        let waiting = std::thread::spawn(move || other.write().map(|mut bytes| bytes[0] += 1).is_ok());
        std::thread::sleep(std::time::Duration::from_millis(30));
        drop(held);
        assert!(waiting.join().expect("ends"));
        assert_eq!(storage.read().expect("bytes")[0], 1);
    }

    /// A device that counts what crosses its border.
    #[derive(Default)]
    struct Elsewhere {
        up: Arc<AtomicU64>,
        down: Arc<AtomicU64>,
    }

    struct There {
        bytes: Vec<u8>,
        down: Arc<AtomicU64>,
    }

    impl DeviceBuffer for There {
        fn nbytes(&self) -> usize {
            self.bytes.len()
        }
        fn download(&self, bytes: &mut [u8]) -> Result<()> {
            self.down.fetch_add(1, Ordering::Relaxed);
            bytes.copy_from_slice(&self.bytes);
            Ok(())
        }
    }

    impl DeviceMemory for Elsewhere {
        fn allocate(&self, nbytes: usize) -> Result<Arc<dyn DeviceBuffer>> {
            Ok(Arc::new(There { bytes: vec![9; nbytes], down: Arc::clone(&self.down) }))
        }
        fn upload(&self, bytes: &[u8]) -> Result<Arc<dyn DeviceBuffer>> {
            self.up.fetch_add(1, Ordering::Relaxed);
            Ok(Arc::new(There { bytes: bytes.to_vec(), down: Arc::clone(&self.down) }))
        }
        fn owns(&self, buffer: &dyn DeviceBuffer) -> bool {
            let there = (buffer as &dyn std::any::Any).downcast_ref::<There>();
            there.is_some_and(|there| Arc::ptr_eq(&there.down, &self.down))
        }
    }

    impl Elsewhere {
        fn copies(&self) -> [u64; 2] {
            [&self.up, &self.down].map(|n| n.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn what_a_device_wrote_comes_home_once() {
        let device = Elsewhere::default();
        let storage = Storage::away(device.allocate(100).expect("small")).expect("small");
        assert!(storage.is_away() && storage.nbytes() == 100);
        storage.resident(&device).expect("is there");
        assert_eq!(device.copies(), [0, 0]);
        assert_eq!(storage.read().expect("bytes")[..], [9; 100]);
        storage.read().expect("bytes");
        // The device's copy is as good as the host's, until the host writes.
        storage.resident(&device).expect("is there");
        assert!(!storage.is_away());
        assert_eq!(device.copies(), [0, 1]);
        storage.write().expect("bytes")[0] = 1;
        let mut bytes = [0; 100];
        storage.resident(&device).expect("again").download(&mut bytes).expect("is there");
        assert_eq!((bytes[0], bytes[1], device.copies()[0]), (1, 9, 1));
    }

    #[test]
    fn a_write_to_what_is_away_begins_with_what_is_there() {
        let device = Elsewhere::default();
        let storage = Storage::away(device.allocate(8).expect("small")).expect("small");
        let seen = storage.resident(&device).expect("is there");
        storage.write().expect("bytes")[3] = 5;
        assert_eq!(storage.read().expect("bytes")[..], [9, 9, 9, 5, 9, 9, 9, 9]);
        let now = storage.resident(&device).expect("a new copy");
        assert!(!Arc::ptr_eq(&seen, &now), "the old copy does not have the write");
    }

    #[test]
    fn one_device_does_not_take_the_copy_of_another() {
        let (one, other) = (Elsewhere::default(), Elsewhere::default());
        let storage = Storage::from_bytes(&[1; 16]).expect("small");
        storage.resident(&one).expect("copied");
        storage.resident(&one).expect("is there");
        let there = storage.resident(&other).expect("copied");
        assert!(other.owns(&*there) && !one.owns(&*there));
        assert_eq!((one.copies(), other.copies()), ([1, 0], [1, 0]));
    }

    #[test]
    fn memory_that_others_write_is_copied_each_time() {
        let device = Elsewhere::default();
        let storage = Storage::from_bytes(&[1; 16]).expect("small");
        let pin = storage.pin().expect("host memory");
        storage.resident(&device).expect("copied");
        storage.resident(&device).expect("copied again");
        assert_eq!(device.copies(), [2, 0]);
        drop(pin);
        storage.written_outside();
        storage.resident(&device).expect("copied");
        storage.resident(&device).expect("is there");
        assert_eq!(device.copies(), [3, 0]);
    }

    #[test]
    fn memory_of_a_device_is_charged() {
        let limits = crate::resources::Limits { bytes: Some(1 << 20), ..Default::default() };
        let budget = Arc::new(crate::resources::Budget::new(limits));
        let _installed = budget.install();
        let device = Elsewhere::default();
        let half = Storage::away(device.allocate(600 << 10).expect("small")).expect("fits");
        assert!(Storage::away(device.allocate(600 << 10).expect("small")).is_err());
        drop(half);
        assert_eq!(budget.live_bytes(), 0);
    }
}
