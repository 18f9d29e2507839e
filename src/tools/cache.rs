//! `flambeau cache`: what is in the folders of compiled kernels, plans and modules; and `--no-cache`, the same for every command that compiles.

use super::io::Io;
use super::table::{Table, bytes};
use crate::backends::cache::{self, Caches, DiskCache, Kind, LIMIT, Listed, Place};
use crate::diag::{Diagnostic, Result};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Options of `flambeau cache`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// List kernels, plans and modules: key, bytes, how long ago it was used, what it computes from which buffers
    List(Folder),
    /// Remove all kernels, plans and modules
    Clear(Folder),
    /// Check every file and remove what is damaged; exit status 1 if something was
    Verify(Folder),
}

#[derive(Args, Debug)]
struct Folder {
    /// A folder of kernels, or of plans or modules by its name [default: all in that of FLAMBEAU_CACHE, else of the user's caches]
    folder: Option<PathBuf>,
}

/// Whether a command keeps compiled kernels, plans and modules on disk.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct CacheOptions {
    /// Compile the file and all kernels and make all plans anew, and keep nothing on disk
    #[arg(long)]
    no_cache: bool,
}

impl CacheOptions {
    /// Sets the caches of this process. A command that runs inside of another program (`lit`) leaves them alone.
    pub fn set(self, io: &Io<'_>) {
        if io.terminal.process {
            cache::install(if self.no_cache { Caches::default() } else { Place::of_environment().caches() });
        }
    }
}

/// Whether plans and modules of recorded cases are kept on disk.
#[derive(Args, Clone, Debug, Default)]
pub struct PlanCacheOptions {
    /// Take plans and compiled modules from below this folder, and put those there that are not: a second check examines what the first one kept
    #[arg(long, value_name = "FOLDER")]
    plan_cache: Option<PathBuf>,
}

impl PlanCacheOptions {
    /// Whether there is a folder.
    pub fn is_set(&self) -> bool {
        self.plan_cache.is_some()
    }

    /// Sets the caches of this process, where a folder is given.
    pub fn set(&self, io: &Io<'_>) {
        if let Some(folder) = self.plan_cache.as_ref().filter(|_| io.terminal.process) {
            cache::install(Caches { kernels: None, ..Place::Folder(io.path(folder)).caches() });
        }
    }
}

/// What became of the caches, for `--time`.
pub fn report() -> String {
    let caches = Kind::ALL.into_iter().filter_map(cache::installed);
    caches.map(|cache| cache.report().to_text(&cache)).collect()
}

/// Runs the command. Gives whether all is well with the files.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    let (folder, does): (_, fn(&DiskCache, &mut Io<'_>) -> Result<bool>) = match &options.what {
        What::List(folder) => (folder, list),
        What::Clear(folder) => (folder, clear),
        What::Verify(folder) => (folder, verify),
    };
    let mut well = true;
    for cache in folder.open(io)? {
        well &= does(&cache, io)?;
    }
    Ok(well)
}

impl Folder {
    /// The caches of the environment, or the one in a folder; what an unknown folder is of, its name says.
    fn open(&self, io: &Io<'_>) -> Result<Vec<DiskCache>> {
        if let Some(folder) = &self.folder {
            let folder = io.path(folder);
            let named = |kind: &Kind| folder.file_name().is_some_and(|name| name == kind.folder());
            let kind = Kind::ALL.into_iter().find(named).unwrap_or(Kind::Kernels);
            return Ok(vec![DiskCache::new(kind, folder, LIMIT)]);
        }
        let Caches { kernels, plans, modules } = Place::of_environment().caches();
        let caches: Vec<DiskCache> = [kernels, plans, modules].into_iter().flatten().collect();
        match caches.is_empty() {
            true => {
                Err(Diagnostic::usage("there is no cache: FLAMBEAU_CACHE is off, or there is no home folder")
                    .hint("name its folder"))
            }
            false => Ok(caches),
        }
    }
}

fn list(cache: &DiskCache, io: &mut Io<'_>) -> Result<bool> {
    let listed = cache.list()?;
    let now = SystemTime::now();
    let mut table = Table::new(["key", ">size", ">used", cache.kind().noun()]);
    for entry in &listed {
        let age = now.duration_since(entry.used).unwrap_or_default();
        let name = entry.name.clone().unwrap_or_else(|why| format!("not used: {why}"));
        table.row([short(entry), bytes(entry.bytes), ago(age), name]);
    }
    if !listed.is_empty() {
        io.print(&table.to_string());
    }
    let total: u64 = listed.iter().map(|entry| entry.bytes).sum();
    io.message(&format!(
        "{}, {} in {}\n",
        counted(listed.len() as u64, cache.kind()),
        bytes(total),
        cache.folder().display()
    ));
    Ok(true)
}

fn clear(cache: &DiskCache, io: &mut Io<'_>) -> Result<bool> {
    let removed = cache.clear()?;
    let (entries, size) = (counted(removed.entries, cache.kind()), bytes(removed.bytes));
    io.message(&format!("removed {entries}, {size}, from {}\n", cache.folder().display()));
    Ok(true)
}

fn verify(cache: &DiskCache, io: &mut Io<'_>) -> Result<bool> {
    let listed = cache.list()?;
    let mut faults = 0u64;
    for entry in &listed {
        let Err(why) = &entry.name else { continue };
        faults += 1;
        let removed = match cache.remove(entry) {
            Ok(()) => "removed".to_string(),
            Err(error) => format!("and cannot be removed: {error}"),
        };
        io.message(&format!("{}: {why}; {removed}\n", short(entry)));
    }
    let checked = counted(listed.len() as u64, cache.kind());
    io.message(&format!("{checked} checked, {faults} not used, in {}\n", cache.folder().display()));
    Ok(faults == 0)
}

/// Prefix of a key that identifies kernels and plans for users.
fn short(entry: &Listed) -> String {
    entry.key.hex()[..16].to_string()
}

/// `1 kernel`, `2 plans`.
pub fn counted(n: u64, kind: Kind) -> String {
    format!("{n} {}{}", kind.noun(), if n == 1 { "" } else { "s" })
}

/// An age in its largest unit.
fn ago(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86400),
    }
}

/// The caches that a command needs which does nothing else than fill them, by [`Kind::ALL`].
pub fn required() -> Result<[Arc<DiskCache>; 3]> {
    match Kind::ALL.map(cache::installed) {
        [Some(kernels), Some(plans), Some(modules)] => Ok([kernels, plans, modules]),
        _ => Err(Diagnostic::input("the cache of compiled kernels is off, so that nothing could be kept")
            .hint("FLAMBEAU_CACHE names its folder; within another program there is none")),
    }
}
