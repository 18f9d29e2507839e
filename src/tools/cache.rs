//! `flambeau cache`: what is in the folder of compiled kernels; and `--no-cache`, the same for every command that compiles.

use super::cli::usage;
use super::io::Io;
use super::table::{Table, bytes};
use crate::backends::cache::{self, KernelCache, LIMIT, Listed, Place};
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
    /// List kernels: key, bytes, how long ago it was used, what it computes from which buffers
    List(Folder),
    /// Remove all kernels
    Clear(Folder),
    /// Check every file and remove what is damaged; exit status 1 if something was
    Verify(Folder),
}

#[derive(Args, Debug)]
struct Folder {
    /// The folder of kernels [default: that of FLAMBEAU_CACHE, else of the user's caches]
    folder: Option<PathBuf>,
}

/// Whether a command keeps compiled kernels on disk.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct CacheOptions {
    /// Compile all kernels anew, and keep none on disk
    #[arg(long)]
    no_cache: bool,
}

impl CacheOptions {
    /// Sets the cache of this process. A command that runs inside of another program (`lit`) leaves it alone.
    pub fn set(self, io: &Io<'_>) {
        if io.terminal.process {
            cache::install(if self.no_cache { None } else { Place::of_environment().cache() });
        }
    }
}

/// What became of the cache, for `--time`.
pub fn report() -> String {
    cache::installed().map_or(String::new(), |cache| cache.report().to_text(cache.folder()))
}

/// Runs the command. Gives whether all is well with the files.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    match &options.what {
        What::List(folder) => list(&folder.open(io)?, io),
        What::Clear(folder) => clear(&folder.open(io)?, io),
        What::Verify(folder) => verify(&folder.open(io)?, io),
    }
}

impl Folder {
    fn open(&self, io: &Io<'_>) -> Result<KernelCache> {
        let place = match &self.folder {
            Some(folder) => Place::Folder(io.path(folder)),
            None => Place::of_environment(),
        };
        match place {
            Place::Folder(folder) => Ok(KernelCache::new(folder, LIMIT)),
            Place::Off => Err(usage("there is no cache: FLAMBEAU_CACHE is off, or there is no home folder")
                .hint("name its folder")),
        }
    }
}

fn list(cache: &KernelCache, io: &mut Io<'_>) -> Result<bool> {
    let kernels = cache.list()?;
    let now = SystemTime::now();
    let mut table = Table::new(["key", ">size", ">used", "kernel"]);
    for kernel in &kernels {
        let age = now.duration_since(kernel.used).unwrap_or_default();
        let name = kernel.name.clone().unwrap_or_else(|why| format!("not used: {why}"));
        table.row([short(kernel), bytes(kernel.bytes), ago(age), name]);
    }
    if !kernels.is_empty() {
        io.print(&table.to_string());
    }
    let total: u64 = kernels.iter().map(|kernel| kernel.bytes).sum();
    io.message(&format!(
        "{}, {} in {}\n",
        counted(kernels.len() as u64),
        bytes(total),
        cache.folder().display()
    ));
    Ok(true)
}

fn clear(cache: &KernelCache, io: &mut Io<'_>) -> Result<bool> {
    let removed = cache.clear()?;
    let (kernels, size) = (counted(removed.kernels), bytes(removed.bytes));
    io.message(&format!("removed {kernels}, {size}, from {}\n", cache.folder().display()));
    Ok(true)
}

fn verify(cache: &KernelCache, io: &mut Io<'_>) -> Result<bool> {
    let kernels = cache.list()?;
    let mut faults = 0u64;
    for kernel in &kernels {
        let Err(why) = &kernel.name else { continue };
        faults += 1;
        let removed = match cache.remove(kernel) {
            Ok(()) => "removed".to_string(),
            Err(error) => format!("and cannot be removed: {error}"),
        };
        io.message(&format!("{}: {why}; {removed}\n", short(kernel)));
    }
    let checked = counted(kernels.len() as u64);
    io.message(&format!("{checked} checked, {faults} not used, in {}\n", cache.folder().display()));
    Ok(faults == 0)
}

/// Prefix of a key that identifies kernels for users.
fn short(kernel: &Listed) -> String {
    kernel.key.hex()[..16].to_string()
}

/// `1 kernel`, `2 kernels`.
pub fn counted(n: u64) -> String {
    format!("{n} kernel{}", if n == 1 { "" } else { "s" })
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

/// The cache that a command needs which does nothing else than fill it.
pub fn required() -> Result<Arc<KernelCache>> {
    cache::installed().ok_or_else(|| {
        Diagnostic::input("the cache of compiled kernels is off, so that nothing could be kept")
            .hint("FLAMBEAU_CACHE names its folder; within another program there is none")
    })
}
