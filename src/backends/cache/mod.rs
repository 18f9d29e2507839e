//! Compiled kernels, optimized graphs of plans and compiled modules on disk, so that a second process makes none of them: by what they are made of,
//! for which machine, by which LLVM and which build of Flambeau (docs/cache.md).
//!
//! A cache is a convenience and never a condition: a file that is missing, damaged, of others or of another build is a miss,
//! a folder that cannot be written to is not written to, and all of that is counted. It knows bytes by keys; what
//! links and runs object code is the backend, what reads graphs the executor. No model can put machine code there.

mod build;
pub mod entry;
mod folder;
mod key;
mod kind;

pub use key::{KEY_BYTES, Key, Target, describe, kernel_bytes};
pub use kind::Kind;

use crate::diag::{Diagnostic, ErrorKind, Result};
use entry::Entry;
use folder::Miss;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// Default capacity of a cache in bytes.
pub const LIMIT: u64 = 512 << 20;

/// A folder of what was compiled, of one kind.
pub struct DiskCache {
    kind: Kind,
    folder: PathBuf,
    limit: u64,
    /// Whether the folder may be used, asked once.
    ready: OnceLock<Result<(), String>>,
    /// Set when the system refuses to write, which it goes on to do.
    read_only: AtomicBool,
    /// Bytes in the folder, as far as this process knows.
    bytes: Mutex<Option<u64>>,
    loaded: AtomicU64,
    missed: AtomicU64,
    damaged: AtomicU64,
    foreign: AtomicU64,
    written: AtomicU64,
    unwritten: AtomicU64,
    evicted: AtomicU64,
    /// What those who make it did not keep, by the reason.
    unkept: Mutex<BTreeMap<&'static str, u64>>,
}

/// What became of a cache in this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheReport {
    /// What was read instead of made.
    pub loaded: u64,
    /// What was not there.
    pub missed: u64,
    /// Files that were not what had been written.
    pub damaged: u64,
    /// Files that others may have written, or that are not files.
    pub foreign: u64,
    /// What was written.
    pub written: u64,
    /// What was not written, as the folder does not allow it.
    pub unwritten: u64,
    /// What was removed to make room.
    pub evicted: u64,
    /// What was not to be written at all, with the reasons.
    pub unkept: BTreeMap<&'static str, u64>,
    /// Why the folder is not used at all.
    pub refused: Option<String>,
}

/// A file of a cache, as `flambeau cache list` shows it.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Under which it is found.
    pub key: Key,
    /// Of its file.
    pub bytes: u64,
    /// When it was used last, give or take ten minutes.
    pub used: SystemTime,
    /// What it computes, the function of a plan, the class of a module; or why its file is not used.
    pub name: Result<String, String>,
    path: PathBuf,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Kernels, plans or modules.
    pub entries: u64,
    /// Of their files, and of files that were never finished.
    pub bytes: u64,
}

/// Where the caches of a process are said to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In no folder.
    Off,
    /// In folders below this one.
    Folder(PathBuf),
}

impl Place {
    /// What the environment says: `FLAMBEAU_CACHE`, a folder or `off`; else the user's folder for caches, by `XDG_CACHE_HOME` or
    /// `HOME`. Off where there is none.
    pub fn of_environment() -> Place {
        // As the XDG specification has it, a path that is empty or relative counts as unset.
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let root = match std::env::var_os("FLAMBEAU_CACHE").filter(|text| !text.is_empty()) {
            Some(text) if text == "off" => return Place::Off,
            Some(text) => Some(PathBuf::from(text)),
            None => absolute("XDG_CACHE_HOME")
                .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
                .map(|root| root.join("flambeau")),
        };
        root.map_or(Place::Off, Place::Folder)
    }

    /// The folder of a kind.
    pub fn folder(&self, kind: Kind) -> Option<PathBuf> {
        match self {
            Place::Off => None,
            Place::Folder(root) => Some(root.join(kind.folder())),
        }
    }

    /// The caches there, of at most [`LIMIT`] bytes each.
    pub fn caches(&self) -> Caches {
        let cache = |kind| self.folder(kind).map(|folder| DiskCache::new(kind, folder, LIMIT));
        Caches { kernels: cache(Kind::Kernels), plans: cache(Kind::Plans), modules: cache(Kind::Modules) }
    }
}

/// What a process keeps on disk.
#[derive(Default)]
pub struct Caches {
    /// Machine code, of its own LLVM backend.
    pub kernels: Option<DiskCache>,
    /// Graphs of plans.
    pub plans: Option<DiskCache>,
    /// Compiled code of archives.
    pub modules: Option<DiskCache>,
}

static INSTALLED: RwLock<[Option<Arc<DiskCache>>; 3]> = RwLock::new([None, None, None]);

/// Sets the caches of this process from now on; none at the start.
pub fn install(caches: Caches) {
    let Caches { kernels, plans, modules } = caches;
    *INSTALLED.write() = [kernels, plans, modules].map(|cache| cache.map(Arc::new));
}

/// The cache of a kind that is set.
pub fn installed(kind: Kind) -> Option<Arc<DiskCache>> {
    INSTALLED.read()[kind as usize].clone()
}

impl DiskCache {
    /// The cache of a kind in a folder, which is made when first needed, of at most `limit` bytes.
    pub fn new(kind: Kind, folder: PathBuf, limit: u64) -> DiskCache {
        DiskCache {
            kind,
            folder,
            limit,
            ready: OnceLock::new(),
            read_only: AtomicBool::new(false),
            bytes: Mutex::new(None),
            loaded: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            damaged: AtomicU64::new(0),
            foreign: AtomicU64::new(0),
            written: AtomicU64::new(0),
            unwritten: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            unkept: Mutex::default(),
        }
    }

    /// What it keeps.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The content of a key, if it is there and as it was written.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        if self.ready().is_err() {
            return None;
        }
        let bytes = match folder::read(self.kind, &self.folder, key) {
            Ok(bytes) => bytes,
            Err(miss) => {
                count(match miss {
                    Miss::Absent => &self.missed,
                    Miss::Damaged(_) => &self.damaged,
                    Miss::Foreign(_) => &self.foreign,
                });
                return None;
            }
        };
        let content = entry::decode_for(self.kind, &bytes, key).ok()?.content.to_vec();
        count(&self.loaded);
        Some(content)
    }

    /// What was given for a key is of no use after all: counts it as damaged. What is made instead takes its place.
    pub fn spoiled(&self) {
        self.loaded.fetch_sub(1, Ordering::Relaxed);
        count(&self.damaged);
    }

    /// What was given for a key is whole, and not what was asked for: counts it as not there.
    pub fn refused(&self) {
        self.loaded.fetch_sub(1, Ordering::Relaxed);
        count(&self.missed);
    }

    /// Something is not kept: counts it, and why.
    pub fn unkept(&self, reason: &'static str) {
        *self.unkept.lock().entry(reason).or_default() += 1;
    }

    /// Keeps content under a key, with a name for people, where the folder allows it.
    pub fn put(&self, key: &Key, name: &str, content: &[u8]) {
        match self.write(key, &entry::encode(self.kind, &Entry { key: *key, name, content })) {
            true => count(&self.written),
            false => count(&self.unwritten),
        }
    }

    fn write(&self, key: &Key, bytes: &[u8]) -> bool {
        let length = bytes.len() as u64;
        let refused = self.ready().is_err() || self.read_only.load(Ordering::Relaxed);
        if refused || length > entry::MAX_FILE.min(self.limit) {
            return false;
        }
        if let Err(error) = folder::write(self.kind, &self.folder, key, bytes) {
            use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
            if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) {
                self.read_only.store(true, Ordering::Relaxed);
            }
            return false;
        }
        let mut known = self.bytes.lock();
        let now = known.map(|known| known.saturating_add(length));
        *known = match now {
            Some(now) if now <= self.limit => Some(now),
            _ => folder::trim(self.kind, &self.folder, self.limit, key).ok().map(|(evicted, left)| {
                self.evicted.fetch_add(evicted, Ordering::Relaxed);
                left
            }),
        };
        true
    }

    fn ready(&self) -> &Result<(), String> {
        self.ready.get_or_init(|| folder::prepare(&self.folder))
    }

    /// What became of it so far.
    pub fn report(&self) -> CacheReport {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        CacheReport {
            loaded: read(&self.loaded),
            missed: read(&self.missed),
            damaged: read(&self.damaged),
            foreign: read(&self.foreign),
            written: read(&self.written),
            unwritten: read(&self.unwritten),
            evicted: read(&self.evicted),
            unkept: self.unkept.lock().clone(),
            refused: self.ready.get().and_then(|ready| ready.clone().err()),
        }
    }

    /// What it has, by key. Every file is read and checked. Fails for a folder that may not be used; one that is missing has
    /// nothing.
    pub fn list(&self) -> Result<Vec<Listed>> {
        let files = self.files()?.into_iter().filter_map(|file| Some((file.key?, file)));
        let listed = files.map(|(key, file)| {
            let name = folder::read(self.kind, &self.folder, &key)
                .map_err(|miss| match miss {
                    Miss::Absent => "it is gone".to_string(),
                    Miss::Damaged(fault) => fault.to_string(),
                    Miss::Foreign(why) => why,
                })
                .and_then(|bytes| match entry::decode_for(self.kind, &bytes, &key) {
                    Ok(entry) => Ok(entry.name.to_string()),
                    Err(fault) => Err(fault.to_string()),
                });
            Listed { key, bytes: file.bytes, used: file.used, name, path: file.path }
        });
        Ok(listed.collect())
    }

    /// Removes what was listed; a folder in its place only where it is empty.
    pub fn remove(&self, listed: &Listed) -> std::io::Result<()> {
        match listed.path.symlink_metadata()?.is_dir() {
            true => std::fs::remove_dir(&listed.path),
            false => std::fs::remove_file(&listed.path),
        }
    }

    /// Removes all that it has.
    pub fn clear(&self) -> Result<Removed> {
        let mut removed = Removed::default();
        for file in self.files()? {
            match std::fs::remove_file(&file.path) {
                Ok(()) => {
                    removed.entries += u64::from(file.key.is_some());
                    removed.bytes += file.bytes;
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Diagnostic::input(format!("{}: {error}", file.path.display())));
                }
            }
        }
        *self.bytes.lock() = None;
        Ok(removed)
    }

    fn files(&self) -> Result<Vec<folder::FileOf>> {
        if let Err(error) = self.folder.metadata()
            && error.kind() == std::io::ErrorKind::NotFound
        {
            return Ok(Vec::new());
        }
        let named =
            |why: String| Diagnostic::new(ErrorKind::Input, format!("{}: {why}", self.folder.display()));
        folder::check(&self.folder).map_err(|why| {
            named(format!("this folder is not used: {why}"))
                .hint("what is in it would be run; FLAMBEAU_CACHE names another")
        })?;
        folder::all(self.kind, &self.folder).map_err(|error| named(error.to_string()))
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl CacheReport {
    /// Lines for people; empty where nothing was asked of the cache.
    pub fn to_text(&self, cache: &DiskCache) -> String {
        let folder = cache.folder.display();
        let cached = match cache.kind {
            Kind::Kernels => "cache",
            Kind::Plans => "cache of plans",
            Kind::Modules => "cache of modules",
        };
        if let Some(why) = &self.refused {
            return format!("{cached}: {folder} is not used: {why}\n");
        }
        if *self == CacheReport::default() {
            return String::new();
        }
        let mut out =
            format!("{cached}: {} loaded, {} not there, {} written", self.loaded, self.missed, self.written);
        for (n, what) in [
            (self.damaged, "damaged"),
            (self.foreign, "not to be trusted"),
            (self.unwritten, "not written"),
            (self.evicted, "removed to make room"),
        ] {
            if n > 0 {
                let _ = write!(out, ", {n} {what}");
            }
        }
        for (reason, n) in &self.unkept {
            let _ = write!(out, ", {n} not kept: {reason}");
        }
        let _ = writeln!(out, " ({folder})");
        out
    }
}

#[cfg(test)]
mod tests;
