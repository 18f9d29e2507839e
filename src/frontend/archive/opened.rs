//! An opened archive: its parts by name, each checked before it is believed. It knows nothing of models.

use super::content::{Bytes, open_file, read_file};
use super::debug::DebugRanges;
use super::format::{check_format, check_version};
use super::limits::Limits;
use super::pickle::{self, Pickle, StorageRecord};
use super::zip::{Entry, Method};
use super::{flat, map, recognize, zip};
use crate::diag::{Diagnostic, Result, Source, nearest};
use crate::resources::names;
use crate::tensor::{HostBytes, Storage};
use indexmap::IndexMap;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

/// An opened archive whose table of contents has been checked. Entry names are relative to its root.
#[derive(Debug)]
pub struct Archive {
    bytes: Bytes,
    directory: zip::Directory,
    /// What stands in pickles elsewhere, by their names, where the file is not a zip file.
    trees: IndexMap<&'static str, Pickle>,
    limits: Limits,
    version: u64,
    big_endian: bool,
    /// Which of several exported programs is meant.
    chosen: Option<String>,
}

/// Bytes of an archive that tensors share with it.
struct InPlace {
    archive: Arc<Archive>,
    range: std::ops::Range<usize>,
}

impl HostBytes for InPlace {
    fn bytes(&self) -> &[u8] {
        self.archive.bytes.get(self.range.clone()).unwrap_or_default()
    }
}

impl Archive {
    /// Opens a file with the default limits. The file is read into memory at once.
    pub fn open(path: impl AsRef<Path>) -> Result<Archive> {
        Self::open_with(path, Limits::default())
    }

    /// Opens a file with limits of the caller's choice.
    pub fn open_with(path: impl AsRef<Path>, limits: Limits) -> Result<Archive> {
        let path = path.as_ref();
        let named = |mut error: Diagnostic| {
            let report = error.report_mut();
            report.message = format!("{}: {}", path.display(), report.message);
            error
        };
        let bytes = read_file(path, &limits).map_err(|error| named(Diagnostic::input(error.to_string())))?;
        Self::from_parts(bytes, limits).map_err(named)
    }

    /// Opens a file by mapping it into memory, so that only what is examined is read.
    ///
    /// # Safety
    /// No process may change or truncate the file as long as the archive lives, or a tensor that
    /// was loaded from it: memory that counts as constant would change, what was checked would no longer hold, and the
    /// system ends a program that reads past the end of a shortened file.
    #[expect(
        unsafe_code,
        reason = "that others leave a mapped file alone cannot be checked here: it is the caller's promise, as for `map::map`"
    )]
    pub unsafe fn map(path: impl AsRef<Path>, limits: Limits) -> Result<Archive> {
        let path = path.as_ref();
        let named = |error: std::io::Error| Diagnostic::input(format!("{}: {error}", path.display()));
        let file = open_file(path, &limits).map_err(named)?;
        // SAFETY: the caller's promise.
        let mapped = unsafe { map::map(&file) };
        Self::from_parts(Bytes::Mapped(mapped.map_err(named)?), limits)
    }

    /// Opens an archive in memory with the default limits.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Archive> {
        Self::from_bytes_with(bytes, Limits::default())
    }

    /// Opens an archive in memory with limits of the caller's choice.
    pub fn from_bytes_with(bytes: impl Into<Vec<u8>>, limits: Limits) -> Result<Archive> {
        Self::from_parts(Bytes::Owned(bytes.into()), limits)
    }

    fn from_parts(bytes: Bytes, limits: Limits) -> Result<Archive> {
        let (archive, mut problems) = Self::from_parts_leniently(bytes, limits)?;
        if problems.is_empty() { Ok(archive) } else { Err(problems.remove(0)) }
    }

    /// Opens whatever has a table of contents, to inspect it: with it, what a model may not have.
    pub fn open_leniently(path: impl AsRef<Path>) -> Result<(Archive, Vec<Diagnostic>)> {
        let path = path.as_ref();
        let limits = Limits::default();
        let named = |mut error: Diagnostic| {
            let report = error.report_mut();
            report.message = format!("{}: {}", path.display(), report.message);
            error
        };
        let bytes = read_file(path, &limits).map_err(|error| named(Diagnostic::input(error.to_string())))?;
        let (archive, mut problems) = Self::from_parts_leniently(bytes, limits).map_err(named)?;
        problems.dedup_by(|a, b| a.message() == b.message());
        Ok((archive, problems))
    }

    pub(super) fn from_parts_leniently(bytes: Bytes, limits: Limits) -> Result<(Archive, Vec<Diagnostic>)> {
        if flat::is_flat(&bytes) {
            let flat::Contents { directory, trees, version } = flat::read(&bytes, &limits)?;
            check_version(version)?;
            return Ok((
                Archive { bytes, directory, trees, limits, version, big_endian: false, chosen: None },
                Vec::new(),
            ));
        }
        let directory = zip::read_directory(&bytes, &limits).map_err(|error| {
            // A zip file of another kind need not keep the laws of archives.
            let names = zip::read_entries(&bytes, &limits).unwrap_or_default();
            match recognize::recognize_zip(names.iter().map(|(name, _)| &**name)) {
                Some(kind) => Diagnostic::input(format!("the file is {}", kind.what)).hint(kind.hint),
                None => recognize::no_archive(bytes.get(..512).unwrap_or(&bytes), error),
            }
        })?;
        let trees = IndexMap::new();
        let mut archive =
            Archive { bytes, directory, trees, limits, version: 0, big_endian: false, chosen: None };
        let mut problems = Vec::new();
        if let Err(error) = check_format(&archive.directory) {
            // The version may be missing for the same reason.
            problems.push(error);
        }
        match archive.read_version() {
            Ok(version) => archive.version = version,
            Err(error) => problems.push(error),
        }
        match archive.read_byte_order() {
            Ok(big_endian) => archive.big_endian = big_endian,
            Err(error) => problems.push(error),
        }
        Ok((archive, problems))
    }

    /// Names of all entries in the order of the archive's table of contents.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.directory.entries.keys().map(|name| &**name)
    }

    /// What the table of contents says about an entry.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.directory.entries.get(name)
    }

    /// Whether the file is a flatbuffer, as mobile models can be, and no zip file.
    pub fn is_flat(&self) -> bool {
        !self.trees.is_empty()
    }

    /// Whether there is a pickle of a name (`data.pkl`), or what stands for it in a flatbuffer.
    pub fn has_pickle(&self, name: &str) -> bool {
        self.trees.contains_key(name) || self.entry(name).is_some()
    }

    /// The bytes of an entry, inflated if need be and with the checksum verified.
    pub fn read(&self, name: &str) -> Result<Cow<'_, [u8]>> {
        let entry = self.entry(name).ok_or_else(|| self.missing(name))?;
        zip::read_entry(&self.bytes, entry, name)
    }

    /// Name of the folder in which all entries lie, which is the name that the model was saved under.
    pub fn root_prefix(&self) -> &str {
        &self.directory.root
    }

    /// Version of the file format; operators mean what they meant then.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The same archive, of whose exported programs the one of this name is meant.
    pub fn choosing(mut self, program: &str) -> Archive {
        self.chosen = Some(program.to_string());
        self
    }

    /// The name of the exported program that is meant, where one was chosen.
    pub fn chosen(&self) -> Option<&str> {
        self.chosen.as_deref()
    }

    /// Whether the storages were written on a big-endian machine.
    pub fn big_endian(&self) -> bool {
        self.big_endian
    }

    /// The caps in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Names of the source files (`code/__torch__/m.py`), in the order of the archive.
    pub fn code_files(&self) -> impl Iterator<Item = &str> {
        self.names().filter(|name| name.starts_with("code/") && name.ends_with(".py"))
    }

    /// A source file of the archive. Its name is that of the entry, as PyTorch shows it.
    pub fn source(&self, name: &str) -> Result<Arc<Source>> {
        let size = self.entry(name).map_or(0, |entry| entry.size);
        if size > self.limits.code_bytes {
            return Err(Diagnostic::input(format!(
                "source file `{name}` has {size} bytes, and the limit is {}",
                self.limits.code_bytes
            )));
        }
        let bytes = self.read(name)?.into_owned();
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Diagnostic::input(format!("source file `{name}` is not UTF-8 at byte {at}"))
        })?;
        Ok(Source::new(name, text))
    }

    /// The original places of a source file's code; `None` if the archive carries none.
    pub fn debug_ranges(&self, code_file: &str) -> Result<Option<DebugRanges>> {
        let name = format!("{code_file}.debug_pkl");
        if self.entry(&name).is_none() {
            return Ok(None);
        }
        let pickle = self.parse(&name)?;
        DebugRanges::decode(&pickle, &self.limits).map(Some).map_err(|error| in_entry(error, &name))
    }

    /// The tables of original places of all code files that have one, still encoded, by name of the code file.
    pub fn debug_tables(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let tables = self.code_files().map(|file| (file.to_string(), format!("{file}.debug_pkl")));
        let present = tables.filter(|(_, table)| self.entry(table).is_some());
        present.map(|(file, table)| Ok((file, self.read(&table)?.into_owned()))).collect()
    }

    /// The module: its root is the object of the model's class. Storages lie under `data`.
    pub fn data_pickle(&self) -> Result<Pickle> {
        self.pickle("data")
    }

    /// The constants that the code calls `CONSTANTS.c0` and so on: a tuple. Storages lie under `constants`.
    pub fn constants_pickle(&self) -> Result<Pickle> {
        self.pickle("constants")
    }

    /// What a traced model was traced with, one item for each traced method. The tensors have sizes and
    /// strides, and no elements: PyTorch writes their storages empty.
    pub fn traced_inputs(&self) -> Result<Option<Pickle>> {
        let name = "traced_inputs.pkl";
        self.entry(name).map(|_| self.parse(name)).transpose()
    }

    /// The pickle `stem.pkl`, with every storage that it names found under `stem/` and long enough.
    pub fn pickle(&self, stem: &str) -> Result<Pickle> {
        let name = format!("{stem}.pkl");
        let pickle = self.parse(&name)?;
        for storage in pickle.storages() {
            self.storage_entry(stem, storage).map_err(|error| in_entry(error, &name))?;
        }
        Ok(pickle)
    }

    /// The raw bytes of the storage with a key in the module's data (`data/KEY`).
    pub fn tensor_bytes(&self, key: &str) -> Result<Cow<'_, [u8]>> {
        self.read(&format!("data/{key}"))
    }

    /// The bytes of a storage of the pickle `stem.pkl`, in little-endian order: its whole entry, which is at
    /// least `storage.bytes()` long (a view with wider elements may not reach the end).
    pub fn storage_bytes(&self, stem: &str, storage: &StorageRecord) -> Result<Cow<'_, [u8]>> {
        let (name, _) = self.storage_entry(stem, storage)?;
        let mut bytes = self.read(&name)?;
        if self.big_endian && storage.element.swap > 1 {
            bytes.to_mut().chunks_exact_mut(storage.element.swap).for_each(<[u8]>::reverse);
        }
        Ok(bytes)
    }

    /// The bytes of a storage where they lie in the file's content; None where they must be copied. Their checksum is
    /// verified, which reads them once.
    pub fn storage_in_place(
        self: &Arc<Self>,
        stem: &str,
        storage: &StorageRecord,
    ) -> Result<Option<Arc<dyn HostBytes>>> {
        let (name, entry) = self.storage_entry(stem, storage)?;
        let swapped = self.big_endian && storage.element.swap > 1;
        if swapped { Ok(None) } else { self.in_place(&name, entry) }
    }

    /// The bytes of an entry as the memory of tensors: in place where they are stored as they are, else a copy.
    pub(super) fn raw_storage(self: &Arc<Self>, name: &str) -> Result<Storage> {
        let entry = self.entry(name).ok_or_else(|| self.missing(name))?;
        match self.in_place(name, entry)?.map(Storage::borrowed) {
            // Elements of every dtype are aligned there.
            Some(storage) if storage.alignment() >= 8 => Ok(storage),
            _ => Storage::from_bytes(&self.read(name)?),
        }
    }

    fn in_place(self: &Arc<Self>, name: &str, entry: &Entry) -> Result<Option<Arc<dyn HostBytes>>> {
        if entry.method != Method::Stored {
            return Ok(None);
        }
        let range = entry.start as usize..(entry.start + entry.size) as usize;
        self.read(name)?;
        Ok(Some(Arc::new(InPlace { archive: Arc::clone(self), range })))
    }

    /// Names of the extra files that the author put in (`extra/NAME`), without the folder.
    pub fn extra_files(&self) -> impl Iterator<Item = &str> {
        self.names().filter_map(|name| name.strip_prefix("extra/"))
    }

    /// A pickle alone: whether the archive has the storages that it names is not asked.
    pub fn parse(&self, name: &str) -> Result<Pickle> {
        let pickle = self.parse_any(name)?;
        pickle.refuse_old_tensors().map_err(|error| in_entry(error, name))?;
        Ok(pickle)
    }

    /// The same; tensors may be numbers, as in archives of PyTorch 1.3 and older.
    pub(super) fn parse_any(&self, name: &str) -> Result<Pickle> {
        if let Some(tree) = self.trees.get(name) {
            return Ok(tree.clone());
        }
        names::check()?;
        let bytes = self.read(name)?;
        pickle::parse(&bytes, &self.limits).map_err(|error| in_entry(error, name))
    }

    /// The entry of a storage, which must hold at least the announced bytes.
    fn storage_entry(&self, stem: &str, storage: &StorageRecord) -> Result<(String, &Entry)> {
        let name = format!("{stem}/{}", storage.key);
        let Some(entry) = self.entry(&name) else {
            return Err(Diagnostic::input(format!(
                "a tensor is stored in `{name}`, which the archive does not have"
            )));
        };
        if entry.size < storage.bytes() {
            return Err(Diagnostic::input(format!(
                "storage `{name}` has {} bytes, and {} elements of {} need {}",
                entry.size,
                storage.numel,
                storage.element.dtype,
                storage.bytes()
            )));
        }
        Ok((name, entry))
    }

    fn missing(&self, name: &str) -> Diagnostic {
        let error = Diagnostic::input(format!("the archive has no entry `{name}`"));
        match nearest(name, self.names()) {
            Some(near) => error.hint(format!("it has `{near}`")),
            None => error,
        }
    }

    /// PyTorch looks for `.data/version` first.
    fn read_version(&self) -> Result<u64> {
        let name = if self.entry(".data/version").is_some() { ".data/version" } else { "version" };
        let bytes = self.read(name)?;
        let text = bytes.get(..32).map_or(&*bytes, |_| b"?"); // a version has one or two digits
        let number = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<u64>().ok());
        match number {
            Some(version) => check_version(version),
            None => Err(Diagnostic::input(format!("entry `{name}` holds no version number"))),
        }
    }

    fn read_byte_order(&self) -> Result<bool> {
        if self.entry("byteorder").is_none() {
            return Ok(false);
        }
        match &*self.read("byteorder")? {
            b"little" => Ok(false),
            b"big" => Ok(true),
            _ => Err(Diagnostic::input("entry `byteorder` says neither `little` nor `big`")),
        }
    }
}

/// Puts the entry's name before the message.
fn in_entry(mut error: Diagnostic, name: &str) -> Diagnostic {
    let report = error.report_mut();
    report.message = format!("{name}: {}", report.message);
    error
}
