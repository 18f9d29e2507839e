//! Reading files that a person names: regular files only, never more bytes than a limit that the caller states.
//!
//! A path is examined before it is opened, so that a FIFO or a device never blocks a command and never feeds it without
//! end. Streams that the caller hands over by descriptor (`/dev/stdin`, `/dev/fd/3` of a shell's process substitution)
//! are read, up to the same limit. This crate knows nothing of what is in a file.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Most bytes of a text that is read whole: rules, dialects, settings, check files, JSON.
pub const TEXT_BYTES: u64 = 1 << 30;

/// Opens a file for reading after checking its kind; an error says why a path is not read.
pub fn open(path: &Path) -> std::io::Result<File> {
    check(path, &path.metadata()?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    if !is_stream(path) {
        use std::os::unix::fs::OpenOptionsExt;
        // Another process may put a FIFO in the file's place between the look and the opening.
        options.custom_flags(NONBLOCK);
    }
    let file = options.open(path)?;
    check(path, &file.metadata()?)?;
    Ok(file)
}

/// `O_NONBLOCK` of Linux, which is all that Flambeau is built for among systems that have FIFOs in the file system.
#[cfg(unix)]
const NONBLOCK: i32 = 0o4000;

/// The bytes of a file that has at most `limit` of them.
pub fn read(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    if length > limit {
        return Err(too_long(length, limit));
    }
    let mut bytes = Vec::new();
    // A stream has no length; what it gives beyond the reservation grows the buffer, up to the limit.
    bytes.try_reserve_exact(usize::try_from(length).map_err(Error::other)?)?;
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_long(bytes.len() as u64, limit));
    }
    Ok(bytes)
}

/// Whether a regular file begins with these bytes, blanks before them left out.
pub fn begins_with(path: &Path, wanted: &[u8]) -> bool {
    let mut start = Vec::new();
    let read = open(path).and_then(|file| file.take(4096).read_to_end(&mut start));
    read.is_ok() && start.trim_ascii_start().starts_with(wanted)
}

/// The text of a file of at most [`TEXT_BYTES`]; it must be UTF-8.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    String::from_utf8(read(path, TEXT_BYTES)?).map_err(|_| Error::other("the file is not UTF-8 text"))
}

/// A stream's bytes up to a limit; more is an error.
pub fn read_stream(stream: &mut dyn Read, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(too_long(bytes.len() as u64, limit)),
        false => Ok(bytes),
    }
}

fn too_long(length: u64, limit: u64) -> Error {
    Error::other(format!("the file has {length} bytes or more, and at most {limit} are read"))
}

/// Refuses what is not a file: directories, FIFOs, sockets, devices other than the null device.
fn check(path: &Path, about: &Metadata) -> std::io::Result<()> {
    if about.is_file() || is_stream(path) || is_null(about) {
        return Ok(());
    }
    if about.is_dir() {
        return Err(is_directory());
    }
    Err(Error::other(format!("this is {}, not a regular file", special(about.file_type()))))
}

/// What the system says when a directory is read.
#[cfg(unix)]
fn is_directory() -> Error {
    const EISDIR: i32 = 21;
    Error::from_raw_os_error(EISDIR)
}

#[cfg(not(unix))]
fn is_directory() -> Error {
    std::io::ErrorKind::IsADirectory.into()
}

#[cfg(unix)]
fn special(kind: std::fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match () {
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

#[cfg(not(unix))]
fn special(_: std::fs::FileType) -> &'static str {
    "a special file"
}

/// Whether a path names a stream that the caller of the process handed over.
fn is_stream(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

/// The null device of Linux, which is an empty file to everyone.
#[cfg(unix)]
fn is_null(about: &Metadata) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    about.file_type().is_char_device() && about.rdev() == 0x103
}

#[cfg(not(unix))]
fn is_null(_: &Metadata) -> bool {
    false
}

/// A path below the system's folder for temporary files that no other caller of this function gets and that others can
/// hardly guess.
pub fn unused_name(name: &str) -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
    std::env::temp_dir().join(format!("flambeau-{name}-{}-{time:08x}-{n}", std::process::id()))
}

/// Makes a folder that only this user may enter. One that is there already, or a link in its place, is never taken.
pub fn create_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A folder of this process alone below the system's folder for temporary files; it goes with this value.
pub struct Temporary(PathBuf);

/// The folders of all such values that there are.
static TEMPORARY: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Removes the folders of all [`Temporary`] values: for a process that ends without dropping them.
pub fn remove_temporary() {
    let folders = std::mem::take(&mut *TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner));
    for folder in folders {
        // As where one is dropped.
        let _ = std::fs::remove_dir_all(folder);
    }
}

impl Temporary {
    /// Makes the folder.
    pub fn new(name: &str) -> std::io::Result<Temporary> {
        let folder = unused_name(name);
        create_private(&folder)?;
        Ok(Temporary::of(folder))
    }

    /// A folder that goes with the value; it need not be there yet.
    pub fn of(folder: PathBuf) -> Temporary {
        TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.clone());
        Temporary(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Leaves the folder where it is and gives its path.
    pub fn keep(self) -> PathBuf {
        TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        std::mem::ManuallyDrop::new(self).0.clone()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        // What cannot be removed stays in the system's folder, which is cleaned by others.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes a file that must not exist yet and that only this user may read; a link in its place is not followed.
pub fn create(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create_new(true).open(path)?.write_all(bytes)
}

/// Names tried for a new file before its folder counts as full.
const MAX_NAMES: usize = 1000;

/// The same for a file of a folder that others may write to, under the first of the names `STEM-PROCESS-NUMBER.END` that is
/// not taken. Gives where it is.
pub fn create_in(folder: &Path, stem: &str, end: &str, bytes: &[u8]) -> std::io::Result<PathBuf> {
    for n in 0..MAX_NAMES {
        let file = folder.join(format!("{stem}-{}-{n}.{end}", std::process::id()));
        match create(&file, bytes) {
            Ok(()) => return Ok(file),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other(format!("{} has {MAX_NAMES} files of that name already", folder.display())))
}

/// The programs of the README, which are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read_and_not_too_much_of_them() {
        let folder = Temporary::new("files").expect("a folder");
        let file = folder.path().join("a");
        create(&file, b"text").expect("a file");
        assert_eq!(read(&file, 4).expect("four bytes"), b"text");
        assert!(read(&file, 3).is_err());
        assert!(create(&file, b"other").is_err());
        assert_eq!(read_text(Path::new("/dev/null")).expect("an empty text"), "");
        let error = |path: &Path| read(path, 100).expect_err("refused").to_string();
        assert!(error(folder.path()).starts_with("Is a directory"));
        assert_eq!(error(Path::new("/dev/zero")), "this is a device, not a regular file");
        let fifo = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
        assert!(made.success());
        assert_eq!(error(&fifo), "this is a FIFO, not a regular file");
    }

    #[test]
    fn a_link_in_place_of_a_new_file_is_not_followed() {
        let folder = Temporary::new("links").expect("a folder");
        let (victim, link) = (folder.path().join("victim"), folder.path().join("link"));
        create(&victim, b"precious").expect("a file");
        std::os::unix::fs::symlink(&victim, &link).expect("a link");
        assert!(create(&link, b"gone").is_err());
        assert_eq!(read(&victim, 100).expect("its bytes"), b"precious");
    }

    #[cfg(unix)]
    #[test]
    fn new_files_are_private_and_follow_no_link() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Temporary::new("private").expect("a folder");
        let victim = folder.path().join("victim");
        create(&victim, b"untouched").expect("a file");
        // An attacker who guesses the names places links there.
        for n in 0..3 {
            let name = format!("case-{}-{n}.ir", std::process::id());
            std::os::unix::fs::symlink(&victim, folder.path().join(name)).expect("a link");
        }
        let file = create_in(folder.path(), "case", "ir", b"graph").expect("another name");
        assert_eq!(std::fs::read(&victim).expect("there"), b"untouched");
        assert_eq!(std::fs::read(&file).expect("there"), b"graph");
        assert!(!std::fs::symlink_metadata(&file).expect("there").is_symlink());
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(folder.path())), (0o600, 0o700));
    }
}
