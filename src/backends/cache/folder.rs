//! The folder of a cache: who may have written there, files read and written whole, the oldest removed. What is in a file is
//! checked by [`super::entry`].
//!
//! Anyone who can write there decides what code runs. So the folder must belong to this user, no one else may write to it, and
//! the same is asked of each file once it is open, whatever became of the folder meanwhile.

use super::entry::{self, Fault, Kind, MAX_FILE};
use super::key::Key;
use crate::diag::files;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The end of the name of a file that is being written.
const DRAFT: &str = "draft";
/// From this age on a draft is that of a process that died.
const STALE: Duration = Duration::from_secs(3600);
/// A file that was used is marked as used, unless that was done so recently.
const MARKED: Duration = Duration::from_secs(600);

/// Why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Miss {
    /// There is no file.
    Absent,
    /// The file is not what was written.
    Damaged(Fault),
    /// Another user may have put it there, or it is not a file; has the reason.
    Foreign(String),
}

/// A file of the cache.
#[derive(Clone, Debug)]
pub(super) struct FileOf {
    pub(super) path: PathBuf,
    /// None for a draft.
    pub(super) key: Option<Key>,
    pub(super) bytes: u64,
    /// When it was used last.
    pub(super) used: SystemTime,
}

/// Makes the folder where it is missing, for this user alone, and asks whether it may be used.
pub(super) fn prepare(folder: &Path) -> Result<(), String> {
    if let Err(error) = folder.metadata()
        && error.kind() == ErrorKind::NotFound
    {
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(folder).map_err(|error| format!("it cannot be made: {error}"))?;
    }
    check(folder)
}

/// Whether the folder may be used; the error says why not.
pub(super) fn check(folder: &Path) -> Result<(), String> {
    let about = folder.metadata().map_err(|error| error.to_string())?;
    if !about.is_dir() {
        return Err("it is not a folder".into());
    }
    check_owner(&about)
}

#[cfg(unix)]
fn check_owner(about: &Metadata) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err("it belongs to another user".into());
    }
    if about.mode() & 0o022 != 0 {
        return Err("others may write to it".into());
    }
    Ok(())
}

/// Elsewhere the system keeps the folders of users apart.
#[cfg(not(unix))]
fn check_owner(_: &Metadata) -> Result<(), String> {
    Ok(())
}

/// Where the file of a key is.
pub(super) fn place(kind: Kind, folder: &Path, key: &Key) -> PathBuf {
    folder.join(format!("{}.{}", key.hex(), kind.noun()))
}

/// The bytes of the file at a place, and whether it is due to be marked as used.
fn open(path: &Path) -> Result<(File, Metadata), Miss> {
    let foreign = |error: std::io::Error| Miss::Foreign(error.to_string());
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Miss::Absent),
        Err(error) => return Err(foreign(error)),
        Ok(about) if !about.is_file() => return Err(Miss::Foreign("it is not a file".into())),
        Ok(_) => {}
    }
    let file = match files::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Miss::Absent),
        Err(error) => return Err(foreign(error)),
    };
    // Checked on the open file, so that it cannot be swapped after the check.
    let about = file.metadata().map_err(foreign)?;
    check_owner(&about).map_err(Miss::Foreign)?;
    if about.len() > MAX_FILE {
        return Err(Miss::Damaged(Fault::Length));
    }
    Ok((file, about))
}

/// The bytes of a key's file.
pub(super) fn read(kind: Kind, folder: &Path, key: &Key) -> Result<Vec<u8>, Miss> {
    let (file, about) = open(&place(kind, folder, key))?;
    let mut bytes = Vec::new();
    let reserved = bytes.try_reserve_exact(about.len() as usize);
    let read = reserved.is_ok().then(|| (&file).take(MAX_FILE).read_to_end(&mut bytes));
    match read {
        Some(Ok(_)) => {}
        Some(Err(error)) => return Err(Miss::Foreign(error.to_string())),
        None => return Err(Miss::Foreign("not enough memory for it".into())),
    }
    entry::decode_for(kind, &bytes, key).map_err(Miss::Damaged)?;
    let now = SystemTime::now();
    let since = about.modified().ok().and_then(|used| now.duration_since(used).ok());
    if since.is_none_or(|since| since > MARKED) {
        // In a folder that cannot be written to, age does not matter either.
        let _ = file.set_modified(now);
    }
    Ok(bytes)
}

/// Writes a key's file to a temporary name and renames it: concurrent readers see the old or the new file, complete.
pub(super) fn write(kind: Kind, folder: &Path, key: &Key, bytes: &[u8]) -> std::io::Result<()> {
    let draft = files::create_in(folder, &key.hex(), DRAFT, bytes)?;
    std::fs::rename(&draft, place(kind, folder, key)).inspect_err(|_| {
        // What cannot be removed now is removed when it is stale.
        let _ = std::fs::remove_file(&draft);
    })
}

/// The files of the cache in the order of their names, and how many bytes they have. Other files do not belong to the cache.
pub(super) fn all(kind: Kind, folder: &Path) -> std::io::Result<Vec<FileOf>> {
    let mut files = Vec::new();
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        let Some((stem, end)) = path.file_name().and_then(|name| name.to_str()?.rsplit_once('.')) else {
            continue;
        };
        let key = match end {
            end if end == kind.noun() => match Key::from_hex(stem) {
                None => continue,
                key => key,
            },
            DRAFT if stem.split('-').next().and_then(Key::from_hex).is_some() => None,
            _ => continue,
        };
        // One that is gone was removed by another process.
        let Ok(about) = path.symlink_metadata() else { continue };
        let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        files.push(FileOf { path, key, bytes: about.len(), used });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Removes what is stale, and if there are more bytes than `limit` the files that were used longest ago, by name where that was
/// at once, until an eighth of it is free; never that of `kept`. Gives how many went and how many bytes are left.
pub(super) fn trim(kind: Kind, folder: &Path, limit: u64, kept: &Key) -> std::io::Result<(u64, u64)> {
    let now = SystemTime::now();
    let (mut files, drafts): (Vec<FileOf>, Vec<FileOf>) =
        all(kind, folder)?.into_iter().partition(|file| file.key.is_some());
    for draft in drafts {
        if now.duration_since(draft.used).is_ok_and(|age| age > STALE) {
            // Another process may have been faster.
            let _ = std::fs::remove_file(&draft.path);
        }
    }
    let (mut left, mut evicted) = (files.iter().map(|file| file.bytes).sum::<u64>(), 0);
    if left <= limit {
        return Ok((evicted, left));
    }
    files.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
    for file in files.iter().filter(|file| file.key.as_ref() != Some(kept)) {
        if left <= limit - limit / 8 {
            break;
        }
        if std::fs::remove_file(&file.path).is_ok() {
            evicted += 1;
            left -= file.bytes;
        }
    }
    Ok((evicted, left))
}
