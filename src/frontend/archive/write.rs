//! Writes archives as PyTorch reads them: a zip with every entry stored and its payload aligned to 64
//! bytes, all under one root. Pickles come from [`super::pickle::write`].

use std::io::Write;

use indexmap::IndexMap;

use super::limits::Limits;
use super::zip;
use crate::diag::{Diagnostic, Result};

/// Payloads start at multiples of this many bytes, so that a mapped file can be used in place.
pub const ALIGNMENT: u64 = 64;

/// An archive that is being written. Entries are added one after the other, and [`Writer::finish`] writes
/// the table of contents.
pub struct Writer<W: Write> {
    out: W,
    at: u64,
    root: String,
    limits: Limits,
    entries: IndexMap<String, Record>,
}

struct Record {
    crc: u32,
    size: u64,
    offset: u64,
}

impl<W: Write> Writer<W> {
    /// Starts an archive whose entries lie in the folder `root`, which is the model's name.
    pub fn new(out: W, root: &str) -> Result<Writer<W>> {
        let limits = Limits::default();
        if root.contains('/') {
            return Err(Diagnostic::input(format!("the name `{root}` of the archive contains a slash")));
        }
        zip::check_name(root.as_bytes(), &limits)?;
        Ok(Writer { out, at: 0, root: root.into(), limits, entries: IndexMap::new() })
    }

    /// Starts a zip file without a root folder, as `.npz` files are.
    pub fn without_root(out: W) -> Writer<W> {
        Writer { out, at: 0, root: String::new(), limits: Limits::default(), entries: IndexMap::new() }
    }

    /// Adds an entry; the name is relative to the root.
    pub fn add(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let full = if self.root.is_empty() { name.to_string() } else { format!("{}/{name}", self.root) };
        zip::check_name(full.as_bytes(), &self.limits)?;
        if name.ends_with('/') || self.entries.contains_key(&full) {
            return Err(Diagnostic::input(format!("the archive cannot have a second entry `{name}`")));
        }
        if self.entries.len() as u64 >= self.limits.entries {
            return Err(Diagnostic::input(format!("an archive has at most {} entries", self.limits.entries)));
        }
        let record = Record { crc: crc32fast::hash(bytes), size: bytes.len() as u64, offset: self.at };
        let extra = local_extra(&record, self.at + 30 + full.len() as u64);
        let narrow = narrow(record.size);
        let mut head = Head::default();
        head.u32(0x0403_4b50);
        head.entry(&record, narrow, full.len(), extra.len());
        self.put(&head.0)?;
        self.put(full.as_bytes())?;
        self.put(&extra)?;
        self.put(bytes)?;
        self.entries.insert(full, record);
        Ok(())
    }

    /// Forty digits that identify the entries of an archive: of their names and of their checksums.
    pub fn serialization_id(&self) -> String {
        let mut names = 0xcbf2_9ce4_8422_2325u64;
        let mut sums = 0u64;
        for (name, record) in &self.entries {
            for byte in name.bytes().chain([0]) {
                names = (names ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            sums = sums.rotate_left(5).wrapping_mul(31).wrapping_add(u64::from(record.crc));
        }
        format!("{names:020}{sums:020}")
    }

    /// Writes the table of contents and gives the output back.
    pub fn finish(mut self) -> Result<W> {
        let start = self.at;
        let entries = std::mem::take(&mut self.entries);
        for (name, record) in &entries {
            let mut wide = Head::default();
            for value in [record.size, record.size, record.offset] {
                if narrow(value) == u32::MAX {
                    wide.u64(value);
                }
            }
            let mut head = Head::default();
            head.u32(0x0201_4b50);
            head.u16(0);
            let extra = if wide.0.is_empty() { 0 } else { wide.0.len() + 4 };
            head.entry(record, narrow(record.size), name.len(), extra);
            head.0.extend([0; 10]); // comment, disk and attributes
            head.u32(narrow(record.offset));
            head.0.extend(name.as_bytes());
            if extra > 0 {
                head.u16(1);
                head.u16(wide.0.len() as u16);
                head.0.extend(&wide.0);
            }
            self.put(&head.0)?;
        }
        let end = end_records(entries.len() as u64, start, self.at);
        self.put(&end)?;
        self.out.flush().map_err(failed)?;
        Ok(self.out)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(failed)?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

fn failed(error: std::io::Error) -> Diagnostic {
    Diagnostic::input(format!("the archive cannot be written: {error}"))
}

/// A value where 32 bits suffice, else all ones: the value stands in a zip64 field.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The extra fields of a local header that ends (without them) at `at`: the wide sizes where needed, and
/// padding up to the alignment.
fn local_extra(record: &Record, at: u64) -> Vec<u8> {
    let mut extra = Head::default();
    if narrow(record.size) == u32::MAX {
        extra.u16(1);
        extra.u16(16);
        extra.u64(record.size);
        extra.u64(record.size);
    }
    let bare = at + extra.0.len() as u64 + 4;
    let padding = bare.next_multiple_of(ALIGNMENT) - bare;
    extra.0.extend(b"FB");
    extra.u16(padding as u16);
    extra.0.extend(std::iter::repeat_n(b'Z', padding as usize));
    extra.0
}

/// The 64-bit end record, which PyTorch always writes, its locator and the end record.
fn end_records(count: u64, start: u64, end: u64) -> Vec<u8> {
    let mut out = Head::default();
    out.u32(0x0606_4b50);
    out.u64(44);
    out.u16(45);
    out.u16(45);
    out.u64(0); // disks
    for value in [count, count, end - start, start] {
        out.u64(value);
    }
    out.u32(0x0706_4b50);
    out.u32(0);
    out.u64(end);
    out.u32(1);
    out.u32(0x0605_4b50);
    out.u32(0); // disks
    let short = u16::try_from(count).unwrap_or(u16::MAX);
    out.u16(short);
    out.u16(short);
    out.u32(narrow(end - start));
    out.u32(narrow(start));
    out.u16(0);
    out.0
}

/// Little-endian fields.
#[derive(Default)]
struct Head(Vec<u8>);

impl Head {
    fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    /// The fields that both headers have: version, flags (UTF-8 name), method (stored), no time, checksum,
    /// sizes, and lengths of name and extra fields, which the callers keep below 64 KiB.
    fn entry(&mut self, record: &Record, size: u32, name: usize, extra: usize) {
        self.u16(if size == u32::MAX { 45 } else { 20 });
        self.u16(0x0800);
        self.u16(0);
        self.u32(0);
        self.u32(record.crc);
        self.u32(size);
        self.u32(size);
        self.u16(name as u16);
        self.u16(extra as u16);
    }
}
