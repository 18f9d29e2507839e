//! The zip container under a strict policy: the central directory, the local headers and the data
//! descriptors must agree and tile the file without a gap, so that no two readers can see
//! two different models in one file. It knows nothing of pickles, code or tensors.
//!
//! A reader of its own, because the policy is the point: it needs each raw field of each header, and the
//! container part (three record kinds, little-endian) is smaller than the glue to a zip library would be.

use crate::resources::memory;
use std::borrow::Cow;
use std::cell::RefCell;

use indexmap::IndexMap;

use super::limits::Limits;
use crate::diag::{Diagnostic, Result};

/// How an entry's bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// As they are.
    Stored,
    /// As a raw deflate stream.
    Deflated,
}

/// One checked entry: its payload lies inside the file and overlaps nothing.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// How the bytes are kept.
    pub method: Method,
    /// CRC-32 of the uncompressed bytes; containers other than zip have none.
    pub crc: Option<u32>,
    /// Bytes in the file.
    pub compressed: u64,
    /// Bytes after inflating.
    pub size: u64,
    /// Where the payload starts in the file.
    pub start: u64,
}

/// The checked table of contents. All entries lie in one folder, the root.
#[derive(Debug)]
pub struct Directory {
    /// Name of the root folder, without the slash.
    pub root: Box<str>,
    /// Entries by their name inside the root, in the order of the central directory.
    pub entries: IndexMap<Box<str>, Entry>,
}

/// Reads and checks the whole table of contents of an archive, whose entries lie in one folder.
pub(super) fn read_directory(file: &[u8], limits: &Limits) -> Result<Directory> {
    collect(&read_heads(file, limits)?)
}

/// The entries of any zip file under the same policy, with their whole names, in the order of its central directory.
pub fn read_entries(file: &[u8], limits: &Limits) -> Result<Vec<(Box<str>, Entry)>> {
    Ok(read_heads(file, limits)?.iter().map(|head| (head.name.into(), head.entry())).collect())
}

fn read_heads<'a>(file: &'a [u8], limits: &Limits) -> Result<Vec<Head<'a>>> {
    let end = find_end(file)?;
    if end.entries > limits.entries {
        return Err(Diagnostic::input(format!(
            "the archive has {} entries, and the limit is {}",
            end.entries, limits.entries
        )));
    }
    let mut table = Fields { file, at: end.directory_start };
    let mut heads = Vec::with_capacity(end.entries as usize);
    for index in 0..end.entries {
        heads.push(read_central(&mut table, end.directory_end, limits, index)?);
    }
    if table.at != end.directory_end {
        return Err(damaged(format!(
            "the central directory has {} bytes after its last entry",
            end.directory_end.saturating_sub(table.at)
        )));
    }
    check_budget(&heads, file, limits)?;
    check_tiling(file, &mut heads, end.directory_start)?;
    Ok(heads)
}

/// The bytes of an entry, inflated if need be, with the checksum verified. `name` serves messages.
pub fn read_entry<'a>(file: &'a [u8], entry: &Entry, name: &str) -> Result<Cow<'a, [u8]>> {
    let range = entry.start as usize..(entry.start + entry.compressed) as usize;
    let raw = file.get(range).ok_or_else(|| damaged(format!("entry `{name}` is outside the file")))?;
    let bytes = match entry.method {
        Method::Stored => Cow::Borrowed(raw),
        Method::Deflated => Cow::Owned(inflate(raw, entry.size as usize, name)?),
    };
    let Some(expected) = entry.crc else { return Ok(bytes) };
    let crc = crc32fast::hash(&bytes);
    if crc != expected {
        return Err(damaged(format!(
            "the checksum of entry `{name}` is {crc:08x}, and the archive says {expected:08x}"
        )));
    }
    Ok(bytes)
}

thread_local! {
    /// What inflates, kept from entry to entry: archives have hundreds of small ones, and it has 40 KB of tables.
    static INFLATER: RefCell<flate2::Decompress> = RefCell::new(flate2::Decompress::new(false));
}

/// Inflates to exactly `size` bytes, which the caller has checked against the limits.
fn inflate(raw: &[u8], size: usize, name: &str) -> Result<Vec<u8>> {
    // One byte of room more, so that a stream that goes on past its declared size is seen.
    let mut out = memory::vec_reserved(size.saturating_add(1))?;
    let (status, read) = INFLATER.with_borrow_mut(|stream| {
        stream.reset(false);
        (stream.decompress_vec(raw, &mut out, flate2::FlushDecompress::Finish), stream.total_in())
    });
    match status {
        Ok(flate2::Status::StreamEnd) if out.len() == size && read == raw.len() as u64 => Ok(out),
        Ok(flate2::Status::StreamEnd) => Err(damaged(format!(
            "entry `{name}` inflates to {} bytes from {read} of its {} bytes, and the archive says {size}",
            out.len(),
            raw.len()
        ))),
        Ok(_) => Err(damaged(format!(
            "the compressed bytes of entry `{name}` do not end after the declared {size} bytes"
        ))),
        Err(_) => Err(damaged(format!("the compressed bytes of entry `{name}` are damaged"))),
    }
}

/// One record of the central directory, with its local header not yet examined.
struct Head<'a> {
    name: &'a str,
    flags: u16,
    method: Method,
    crc: u32,
    compressed: u64,
    size: u64,
    /// Where the local header starts.
    offset: u64,
    /// Where the payload starts; known once the local header is checked.
    start: u64,
}

impl Head<'_> {
    fn entry(&self) -> Entry {
        let &Head { method, crc, compressed, size, start, .. } = self;
        Entry { method, crc: Some(crc), compressed, size, start }
    }
}

const END: u32 = 0x0605_4b50;
const END64: u32 = 0x0606_4b50;
const LOCATOR64: u32 = 0x0706_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const LOCAL: u32 = 0x0403_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;

/// Two bits that describe the deflate level, and the one that says "names are UTF-8".
const HARMLESS_FLAGS: u16 = 0x0806;
/// Sizes and checksum follow the payload.
const FLAG_DESCRIPTOR: u16 = 0x0008;
const FLAG_ENCRYPTED: u16 = 0x2041;

/// Where the central directory lies.
struct End {
    entries: u64,
    directory_start: usize,
    directory_end: usize,
}

/// Reads the end record, which must be the last 22 bytes, and its 64-bit form if there is one.
fn find_end(file: &[u8]) -> Result<End> {
    let start = file.len().checked_sub(22).ok_or_else(|| not_an_archive(file))?;
    let mut f = Fields { file, at: start };
    if f.u32()? != END {
        return Err(not_an_archive(file));
    }
    let (disk, directory_disk) = (f.u16()?, f.u16()?);
    let (here, total) = (f.u16()?, f.u16()?);
    let (size, offset, comment) = (f.u32()?, f.u32()?, f.u16()?);
    if disk != 0 || directory_disk != 0 || here != total {
        return Err(damaged("it says that it continues in another file"));
    }
    if comment != 0 {
        return Err(damaged("its end record announces a comment past the end of the file"));
    }
    let narrow = [u64::from(total), u64::from(size), u64::from(offset)];
    let (wide, stop) = read_end64(file, start)?;
    let values = match wide {
        Some(wide) => {
            let full = [0xffff, 0xffff_ffff, 0xffff_ffff];
            for ((n, w), full) in narrow.iter().zip(&wide).zip(full) {
                if n != w && *n != full {
                    return Err(damaged("its two end records disagree"));
                }
            }
            wide
        }
        None if total == 0xffff || size == u32::MAX || offset == u32::MAX => {
            return Err(damaged("it needs a 64-bit end record and has none"));
        }
        None => narrow,
    };
    let [entries, size, offset] = values;
    if offset.checked_add(size) != Some(stop as u64) {
        return Err(damaged("the central directory does not end where the end record starts"));
    }
    // Each record takes 46 bytes, so the count is known to be honest before anything is allocated.
    if entries.checked_mul(46).is_none_or(|least| least > size) {
        return Err(damaged(format!("its central directory of {size} bytes cannot hold {entries} entries")));
    }
    Ok(End { entries, directory_start: offset as usize, directory_end: stop })
}

/// The entry count, size and offset of the 64-bit end record that stands before `end`, and where the
/// end records start.
fn read_end64(file: &[u8], end: usize) -> Result<(Option<[u64; 3]>, usize)> {
    let Some(locator) = end.checked_sub(20) else { return Ok((None, end)) };
    let mut f = Fields { file, at: locator };
    if f.u32()? != LOCATOR64 {
        return Ok((None, end));
    }
    let (disk, record, disks) = (f.u32()?, f.u64()?, f.u32()?);
    // Some writers count the disks from 0.
    if disk != 0 || disks > 1 || record >= locator as u64 {
        return Err(damaged("its 64-bit end record is not where it should be"));
    }
    let start = record as usize;
    let mut f = Fields { file, at: start };
    if f.u32()? != END64 {
        return Err(damaged("its 64-bit end record is not where it should be"));
    }
    let length = f.u64()?;
    if length < 44 || length.checked_add(record + 12) != Some(locator as u64) {
        return Err(damaged("its 64-bit end record has a wrong length"));
    }
    let (_versions, disk, directory_disk) = (f.u32()?, f.u32()?, f.u32()?);
    let (here, total, size, offset) = (f.u64()?, f.u64()?, f.u64()?, f.u64()?);
    if disk != 0 || directory_disk != 0 || here != total {
        return Err(damaged("it says that it continues in another file"));
    }
    Ok((Some([total, size, offset]), start))
}

/// Reads one record of the central directory and checks what it says about itself.
fn read_central<'a>(f: &mut Fields<'a>, end: usize, limits: &Limits, index: u64) -> Result<Head<'a>> {
    let broken = || damaged(format!("record {index} of its central directory is cut off"));
    let start = f.at;
    if f.u32()? != CENTRAL {
        return Err(damaged(format!("record {index} of its central directory has a wrong signature")));
    }
    let (_made_by, _needed, flags, method) = (f.u16()?, f.u16()?, f.u16()?, f.u16()?);
    let (_time, crc) = (f.u32()?, f.u32()?);
    let (compressed, size) = (f.u32()?, f.u32()?);
    let (name, extra, comment) = (f.u16()? as usize, f.u16()? as usize, f.u16()? as usize);
    let (disk, _internal, _external, offset) = (f.u16()?, f.u16()?, f.u32()?, f.u32()?);
    if start + 46 + name + extra + comment > end {
        return Err(broken());
    }
    let name = check_name(f.take(name)?, limits)?;
    let extra = f.take(extra)?;
    f.take(comment)?;
    if disk != 0 {
        return Err(damaged(format!("entry `{name}` is declared to be in another file")));
    }
    let mut values = [u64::from(size), u64::from(compressed), u64::from(offset)];
    widen(extra, &mut values, name)?;
    let [size, compressed, offset] = values;
    let method = check_method(method, flags, name)?;
    let head = Head { name, flags, method, crc, compressed, size, offset, start: 0 };
    check_sizes(&head, limits)?;
    Ok(head)
}

/// Replaces the fields that read "all ones" by the values of the zip64 field, in its fixed order.
fn widen(extra: &[u8], values: &mut [u64; 3], name: &str) -> Result<()> {
    let mut f = Fields { file: extra, at: 0 };
    let mut seen = false;
    while f.at < extra.len() {
        let bad = |_| damaged(format!("the extra fields of entry `{name}` are malformed"));
        let (tag, length) = (f.u16().map_err(bad)?, f.u16().map_err(bad)?);
        let body = f.take(length.into()).map_err(bad)?;
        match tag {
            1 if seen => return Err(damaged(format!("entry `{name}` has two zip64 fields"))),
            1 => {
                seen = true;
                let mut g = Fields { file: body, at: 0 };
                for value in values.iter_mut().filter(|v| **v == u64::from(u32::MAX)) {
                    *value = g.u64().map_err(bad)?;
                }
            }
            // "Unicode path": a second name, which other readers may take for the first.
            0x7075 => return Err(damaged(format!("entry `{name}` carries a second name"))),
            _ => {}
        }
    }
    if !seen && values.contains(&u64::from(u32::MAX)) {
        return Err(damaged(format!("entry `{name}` needs a zip64 field and has none")));
    }
    Ok(())
}

/// A name that is relative, stays inside, and reads the same everywhere.
pub(super) fn check_name<'a>(name: &'a [u8], limits: &Limits) -> Result<&'a str> {
    let shown = String::from_utf8_lossy(name.get(..64).unwrap_or(name)).into_owned();
    let refuse =
        |why: &str| Err(Diagnostic::input(format!("an entry of the archive has the name `{shown}`, {why}")));
    if name.len() > limits.entry_name_bytes {
        return refuse(&format!("of {} bytes; the limit is {}", name.len(), limits.entry_name_bytes));
    }
    let Ok(name) = std::str::from_utf8(name) else { return refuse("which is not UTF-8") };
    if name.chars().any(|c| c.is_control() || c == '\\' || c == ':') {
        return refuse("which has a control character, a backslash or a colon");
    }
    if name.starts_with('/') {
        return refuse("which is absolute");
    }
    let parts = name.strip_suffix('/').unwrap_or(name);
    if parts.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        return refuse("which has an empty part, `.` or `..`");
    }
    Ok(name)
}

fn check_method(method: u16, flags: u16, name: &str) -> Result<Method> {
    if flags & FLAG_ENCRYPTED != 0 {
        return Err(Diagnostic::unsupported(format!("entry `{name}` of the archive is encrypted"))
            .hint("save the model without encryption"));
    }
    if flags & !(HARMLESS_FLAGS | FLAG_DESCRIPTOR) != 0 {
        return Err(damaged(format!("entry `{name}` has the unknown flags {flags:#06x}")));
    }
    match method {
        0 => Ok(Method::Stored),
        8 => Ok(Method::Deflated),
        _ => Err(Diagnostic::unsupported(format!("entry `{name}` uses compression method {method}"))
            .hint("only stored and deflated entries can be read; save the model again with torch.jit.save")),
    }
}

fn check_sizes(head: &Head<'_>, limits: &Limits) -> Result<()> {
    let Head { name, compressed, size, .. } = *head;
    if name.ends_with('/') && size != 0 {
        return Err(damaged(format!("the folder `{name}` has contents of its own")));
    }
    match head.method {
        Method::Stored if compressed != size => Err(damaged(format!(
            "entry `{name}` is stored, but its two sizes differ: {compressed} and {size}"
        ))),
        Method::Deflated if size > compressed.saturating_mul(limits.ratio) => {
            Err(Diagnostic::input(format!(
                "entry `{name}` would inflate from {compressed} to {size} bytes, and the limit is {} times",
                limits.ratio
            ))
            .hint("the file may be a decompression bomb; if you trust it, store the entry uncompressed"))
        }
        Method::Deflated if size > limits.inflated_bytes => Err(Diagnostic::input(format!(
            "entry `{name}` would inflate to {size} bytes, and the limit is {}",
            limits.inflated_bytes
        ))
        .hint("if you trust the file, store the entry uncompressed")),
        _ => Ok(()),
    }
}

fn check_budget(heads: &[Head<'_>], file: &[u8], limits: &Limits) -> Result<()> {
    let total = heads.iter().fold(0u64, |sum, head| sum.saturating_add(head.size));
    let budget = limits.budget(file.len());
    if total > budget {
        return Err(Diagnostic::input(format!(
            "the entries of the archive would take {total} bytes, and the budget for a file of {} is {budget}",
            file.len()
        )));
    }
    Ok(())
}

/// Checks that local header, payload and descriptor of each entry follow one another from the first byte
/// of the file to the central directory.
fn check_tiling(file: &[u8], heads: &mut [Head<'_>], directory: usize) -> Result<()> {
    let mut order: Vec<&mut Head<'_>> = heads.iter_mut().collect();
    order.sort_by_key(|head| head.offset);
    let mut nexts: Vec<u64> = order.iter().skip(1).map(|head| head.offset).collect();
    nexts.push(directory as u64);
    let mut expected = 0u64;
    for (head, next) in order.into_iter().zip(nexts) {
        if head.offset != expected {
            return Err(damaged(format!(
                "entry `{}` starts at byte {}, and should at {expected}: entries overlap or hide bytes",
                head.name, head.offset
            )));
        }
        head.start = check_local(file, head, next)?;
        expected = next;
    }
    if expected != directory as u64 {
        return Err(damaged("there are bytes before its central directory that belong to no entry"));
    }
    Ok(())
}

/// Checks one local header against its central record, and that the entry ends at `next`. Answers where
/// the payload starts.
fn check_local(file: &[u8], head: &Head<'_>, next: u64) -> Result<u64> {
    let name = head.name;
    let differs = |what: &str| damaged(format!("entry `{name}` has a local header with a different {what}"));
    let cut = || damaged(format!("entry `{name}` overlaps what follows it, or is cut off"));
    let mut f = Fields { file, at: usize::try_from(head.offset).map_err(|_| cut())? };
    if f.u32()? != LOCAL {
        return Err(damaged(format!("entry `{name}` has no local header at byte {}", head.offset)));
    }
    let (_needed, flags, method, _time) = (f.u16()?, f.u16()?, f.u16()?, f.u32()?);
    let (crc, compressed, size) = (f.u32()?, f.u32()?, f.u32()?);
    let (name_len, extra_len) = (f.u16()? as usize, f.u16()? as usize);
    if f.take(name_len)? != name.as_bytes() {
        return Err(differs("name"));
    }
    if flags != head.flags {
        return Err(differs("set of flags"));
    }
    if method != if head.method == Method::Stored { 0 } else { 8 } {
        return Err(differs("compression method"));
    }
    let extra = f.take(extra_len)?;
    let deferred = flags & FLAG_DESCRIPTOR != 0;
    if !(deferred && crc == 0 && compressed == 0 && size == 0) {
        let mut values = [u64::from(size), u64::from(compressed), 0];
        if size == u32::MAX || compressed == u32::MAX {
            widen(extra, &mut values, name)?;
        }
        if crc != head.crc || values != [head.size, head.compressed, 0] {
            return Err(differs("size or checksum"));
        }
    }
    let start = f.at as u64;
    let end = start.checked_add(head.compressed).filter(|end| *end <= next).ok_or_else(cut)?;
    let tail = file.get(end as usize..next as usize).ok_or_else(cut)?;
    if deferred { check_descriptor(tail, head) } else { check_no_tail(tail, name) }?;
    Ok(start)
}

fn check_no_tail(tail: &[u8], name: &str) -> Result<()> {
    if tail.is_empty() {
        Ok(())
    } else {
        Err(damaged(format!("there are hidden bytes after entry `{name}`")))
    }
}

/// Checks the record after the payload, which comes with or without a signature and in two widths; its
/// length says which.
fn check_descriptor(tail: &[u8], head: &Head<'_>) -> Result<()> {
    let wrong = || damaged(format!("the data descriptor of entry `{}` does not match", head.name));
    let mut f = Fields { file: tail, at: 0 };
    if matches!(tail.len(), 16 | 24) && f.u32()? != DESCRIPTOR {
        return Err(wrong());
    }
    let crc = f.u32().map_err(|_| wrong())?;
    let (compressed, size) = match tail.len() {
        12 | 16 => (u64::from(f.u32()?), u64::from(f.u32()?)),
        20 | 24 => (f.u64()?, f.u64()?),
        _ => return Err(wrong()),
    };
    if (crc, compressed, size) != (head.crc, head.compressed, head.size) {
        return Err(wrong());
    }
    Ok(())
}

/// Puts the entries under their common root, refusing a second one of a name.
fn collect(heads: &[Head<'_>]) -> Result<Directory> {
    let Some(root) = heads.first().and_then(|head| head.name.split_once('/')).map(|(root, _)| root) else {
        return Err(damaged("its entries are not in a folder"));
    };
    let mut entries = IndexMap::with_capacity(heads.len());
    for head in heads {
        let Some(name) = head.name.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')) else {
            return Err(damaged(format!("entry `{}` is outside the folder `{root}`", head.name))
                .hint("repack the archive so that all entries are in one folder"));
        };
        if name.is_empty() || name.ends_with('/') {
            continue; // a folder has no bytes
        }
        if entries.insert(name.into(), head.entry()).is_some() {
            return Err(damaged(format!("entry `{}` occurs twice", head.name)));
        }
    }
    Ok(Directory { root: root.into(), entries })
}

/// Little-endian fields of a byte string, read one after the other, never past its end.
struct Fields<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let bytes = self.at.checked_add(count).and_then(|end| self.file.get(self.at..end));
        let bytes = bytes.ok_or_else(|| damaged(format!("a header at byte {} is cut off", self.at)))?;
        self.at += count;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

fn damaged(what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::input(format!("the archive is damaged or forged: {what}"))
        .hint("save the model again with torch.jit.save, or fetch the file again")
}

/// Says what the file is instead, if its first bytes identify it.
fn not_an_archive(file: &[u8]) -> Diagnostic {
    let is = |magic: &[u8]| file.starts_with(magic);
    if is(b"\x80\x02") || is(b"\x80\x04") {
        return Diagnostic::unsupported("this is a bare pickle, as torch.save wrote it before PyTorch 1.6")
            .hint("script or trace the model and save it with torch.jit.save");
    }
    if is(b"version https://git-lfs") {
        return Diagnostic::input("this is a Git LFS pointer, not the model itself")
            .hint("run `git lfs pull`");
    }
    if is(b"PK\x03\x04") {
        return damaged("it has no end record in its last bytes: it is cut off, or something follows it");
    }
    Diagnostic::input("this is not an archive of torch.jit.save: it is not a zip file")
        .hint("torch.jit.save writes the archives that can be read here")
}
