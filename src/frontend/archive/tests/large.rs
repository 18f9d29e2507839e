//! An archive of more than 4 GB: 64-bit records, and tensors that lie in the mapped file. Its file is sparse, so that
//! it takes no room, but its checksum reads it all: the test runs where `FLAMBEAU_LARGE_FILES` is set.

use super::build::{base, build, item, storage, tensor, with_attribute};
use crate::dialects::Registry;
use crate::frontend::archive::{Archive, Limits, load};
use crate::value::Value;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

const MIB: u64 = 1 << 20;
/// Bytes of the one storage.
const BYTES: u64 = 4160 * MIB;

/// The checksum of a number of MiB of zeros.
fn checksum_of_zeros(mebibytes: u64) -> u32 {
    let (mut all, mut one) = (crc32fast::Hasher::new(), crc32fast::Hasher::new());
    one.update(&vec![0; MIB as usize]);
    (0..mebibytes).for_each(|_| all.combine(&one));
    all.finalize()
}

/// A zip64 field and padding that lets the payload begin at a multiple of 64.
fn extra_fields(header: u64) -> Vec<u8> {
    let padding = (64 - (header + 24) % 64) % 64;
    let wide = [&[1, 0, 16, 0][..], &BYTES.to_le_bytes(), &BYTES.to_le_bytes()].concat();
    [&wide[..], b"FB", &(padding as u16).to_le_bytes(), &vec![0; padding as usize]].concat()
}

/// Writes a module with a parameter of `BYTES` zeros.
fn write_sparse(path: &Path) -> std::io::Result<()> {
    let count = (BYTES / 4) as i64;
    let mut items = base(&with_attribute(&tensor(&storage("0", count), 0, &[count], &[1])));
    items[1] = item("m/code/__torch__.py", "class M(Module):\n  __parameters__ = []\n  a : Tensor\n");
    let small = build(&items);
    let (name, start) = (b"m/data/0", small.directory as u64);
    let extra = extra_fields(start + 30 + name.len() as u64);
    // Flags, method, time, checksum, two sizes that stand in the zip64 field, lengths of the name and the extra fields.
    let common = [
        &[0, 8, 0, 0, 0, 0, 0, 0][..],
        &checksum_of_zeros(BYTES / MIB).to_le_bytes(),
        &[0xff; 8],
        &(name.len() as u16).to_le_bytes(),
        &(extra.len() as u16).to_le_bytes(),
    ]
    .concat();
    let mut file = File::create(path)?;
    file.write_all(&small.bytes[..small.directory])?;
    file.write_all(&[b"PK\x03\x04\x2d\x00", &common[..], name, &extra].concat())?;
    let directory = file.seek(SeekFrom::Current(BYTES as i64))?;
    file.write_all(&small.bytes[small.directory..small.end])?;
    let place = [&[0; 10][..], &(start as u32).to_le_bytes()].concat();
    file.write_all(&[b"PK\x01\x02\x2d\x00\x2d\x00", &common[..], &place, name, &extra].concat())?;
    let end = file.stream_position()?;
    let entries = (items.len() as u64 + 1).to_le_bytes();
    let sizes = [entries, entries, (end - directory).to_le_bytes(), directory.to_le_bytes()].concat();
    file.write_all(&[b"PK\x06\x06\x2c\0\0\0\0\0\0\0\x2d\0\x2d\0\0\0\0\0\0\0\0\0", &sizes[..]].concat())?;
    file.write_all(&[b"PK\x06\x07\0\0\0\0", &end.to_le_bytes()[..], &[1, 0, 0, 0]].concat())?;
    file.write_all(&[b"PK\x05\x06\0\0\0\0", &[0xff; 12][..], &[0; 2]].concat())
}

/// Memory of this process that is not a file's, in bytes; None where the system does not say.
fn own_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kb| kb << 10)
}

/// A file that goes when the test ends, however it ends.
struct Temporary(std::path::PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn tensors_of_a_large_archive_lie_in_the_file() {
    if std::env::var_os("FLAMBEAU_LARGE_FILES").is_none() {
        return eprintln!("skipped: FLAMBEAU_LARGE_FILES is not set");
    }
    let file = Temporary(std::env::temp_dir().join(format!("flambeau-large-{}.pt", std::process::id())));
    let path = &file.0;
    if let Err(error) = write_sparse(path) {
        return eprintln!("skipped: no room for a sparse file of 4 GB ({error})");
    }
    let before = own_memory();
    // SAFETY: the file was made by this test, which changes it no more.
    #[allow(unsafe_code, reason = "maps a file of its own")]
    let archive = unsafe { Archive::map(path, Limits::default()) }.expect("an archive");
    let model = load(&Registry::builtin(), archive).expect("a model");
    let Value::Object(root) = &model.root else { panic!("a module") };
    let Some(Value::Tensor(tensor)) = root.get(crate::ir::Symbol::new("a")) else { panic!("a tensor") };
    assert_eq!(tensor.numel() as u64 * 4, BYTES);
    let storage = tensor.storage();
    let bytes = storage.read().expect("its bytes");
    assert_eq!((bytes.len() as u64, bytes.last()), (BYTES, Some(&0)));
    if let (Some(before), Some(after)) = (before, own_memory()) {
        assert!(after.saturating_sub(before) < 512 * MIB, "{before} bytes before, {after} after");
    }
}
