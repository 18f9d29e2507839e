//! The form of a file of a cache: what it is, whose it is, a name for people, and its content after a checksum over
//! everything. Reading trusts no byte. Knows no folder.
//!
//! ```text
//! 8   "flmbkrnl", of a plan "flmbplan", of a module "flmbmodl"
//! 4   version of this form
//! 32  key
//! 2   length of the name    8   length of the content
//!     name                      content
//! 32  SHA-256 of all that stands before
//! ```
//! Numbers are little-endian.

use super::key::{KEY_BYTES, Key};
pub use super::kind::Kind;
use sha2::{Digest, Sha256};
use std::fmt;

/// Of the form.
const VERSION: u32 = 1;
const CHECKSUM: usize = 32;
const HEADER: usize = 8 + 4 + KEY_BYTES + 2 + 8;
/// Bytes of a name at most.
const MAX_NAME: usize = 200;
/// Bytes of a file at most: kernels have some ten thousand.
pub const MAX_FILE: u64 = 64 << 20;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Under which it is found.
    pub key: Key,
    /// For people.
    pub name: &'a str,
    /// An object file; of other kinds what these keep.
    pub content: &'a [u8],
}

/// Why a file is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not begin as such files do.
    Magic,
    /// It has another version of the form.
    Version(u32),
    /// It ends too early, or continues past its end.
    Length,
    /// Its name is not a short line of text.
    Name,
    /// Something in it was changed.
    Checksum,
    /// It holds something else than its file name says.
    Key,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Magic => f.write_str("this is not a file of the cache"),
            Fault::Version(n) => {
                write!(f, "written in version {n} of the form, and this is version {VERSION}")
            }
            Fault::Length => f.write_str("not as long as it says"),
            Fault::Name => f.write_str("its name is not a short line of text"),
            Fault::Checksum => f.write_str("its checksum does not fit its content"),
            Fault::Key => f.write_str("holds something else than its file name says"),
        }
    }
}

/// The bytes of a file. A name that is too long is cut.
pub fn encode(kind: Kind, entry: &Entry<'_>) -> Vec<u8> {
    let name: String = entry.name.chars().filter(|c| !c.is_control()).collect();
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let name = &name[..end];
    let mut out = Vec::with_capacity(HEADER + name.len() + entry.content.len() + CHECKSUM);
    out.extend_from_slice(kind.magic());
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(entry.key.bytes());
    out.extend_from_slice(&(name.len() as u16).to_le_bytes());
    out.extend_from_slice(&(entry.content.len() as u64).to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(entry.content);
    sealed(out)
}

/// The bytes with their checksum after them.
pub fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&checksum);
    bytes
}

/// What the bytes of a file hold; all or nothing.
pub fn decode(kind: Kind, bytes: &[u8]) -> Result<Entry<'_>, Fault> {
    let (magic, rest) = bytes.split_first_chunk::<8>().ok_or(Fault::Length)?;
    if magic != kind.magic() {
        return Err(Fault::Magic);
    }
    let (version, rest) = rest.split_first_chunk().ok_or(Fault::Length)?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(Fault::Version(version));
    }
    let (key, rest) = rest.split_first_chunk().ok_or(Fault::Length)?;
    let (name, rest) = rest.split_first_chunk().ok_or(Fault::Length)?;
    let (content, rest) = rest.split_first_chunk().ok_or(Fault::Length)?;
    let (name, content) = (usize::from(u16::from_le_bytes(*name)), u64::from_le_bytes(*content));
    let (both, checksum) = rest.split_last_chunk::<CHECKSUM>().ok_or(Fault::Length)?;
    if Some(both.len()) != usize::try_from(content).ok().and_then(|content| content.checked_add(name)) {
        return Err(Fault::Length);
    }
    if Sha256::digest(&bytes[..bytes.len() - CHECKSUM]).as_slice() != checksum {
        return Err(Fault::Checksum);
    }
    let (name, content) = both.split_at(name);
    let is_line = |name: &&str| name.len() <= MAX_NAME && !name.contains(char::is_control);
    let name = std::str::from_utf8(name).ok().filter(is_line);
    Ok(Entry { key: Key::from_bytes(*key), name: name.ok_or(Fault::Name)?, content })
}

/// What the file of a key holds.
pub fn decode_for<'a>(kind: Kind, bytes: &'a [u8], key: &Key) -> Result<Entry<'a>, Fault> {
    let entry = decode(kind, bytes)?;
    if entry.key == *key { Ok(entry) } else { Err(Fault::Key) }
}
