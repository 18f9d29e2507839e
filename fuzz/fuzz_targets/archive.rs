//! Whole archives. An input that starts with an even byte is a file as it is; one that starts with an odd
//! byte is a recipe, whose pieces become the entries of a valid zip, so that checksums do not stop the
//! fuzzer at the door.
#![no_main]

use flambeau::diag::Result;
use flambeau::frontend::archive::{Archive, Limits, pickle, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((mode, rest)) = data.split_first() else { return };
    let bytes = if mode % 2 == 0 { rest.to_vec() } else { assemble(rest) };
    // A budget below the fuzzer's memory limit.
    let limits = Limits { budget_base: 16 << 20, ..Limits::default() };
    if let Ok(archive) = Archive::from_bytes_with(bytes, limits) {
        let _ = exercise(&archive);
    }
});

/// A model whose entries are runs of the input, each after its length in two bytes.
fn assemble(mut rest: &[u8]) -> Vec<u8> {
    let mut next = || {
        let (length, tail) = rest.split_first_chunk::<2>().unwrap_or((&[0; 2], rest));
        let (piece, tail) = tail.split_at(usize::from(u16::from_le_bytes(*length)).min(tail.len()));
        rest = tail;
        piece
    };
    let mut writer = write::Writer::new(Vec::new(), "m").expect("a fine name");
    let names = ["data.pkl", "constants.pkl", "code/__torch__.py", "code/__torch__.py.debug_pkl", "data/0"];
    for name in names {
        writer.add(name, next()).expect("a fine entry");
    }
    writer.add("version", b"3\n").expect("a fine entry");
    writer.finish().expect("memory takes all")
}

/// Reads all that there is, and writes it again, which must succeed if reading did.
fn exercise(archive: &Archive) -> Result<()> {
    let mut writer = write::Writer::new(Vec::new(), archive.root_prefix()).expect("the name was read");
    for name in archive.names() {
        writer.add(name, &archive.read(name)?).expect("the entry was read");
    }
    for name in archive.code_files() {
        archive.source(name)?;
        archive.debug_ranges(name)?;
    }
    for stem in ["data", "constants"] {
        let tree = archive.pickle(stem)?;
        for storage in tree.storages().take(100) {
            let bytes = archive.storage_bytes(stem, storage)?;
            assert!(bytes.len() as u64 >= storage.bytes());
        }
        pickle::parse(&pickle::write(&tree), archive.limits()).expect("what was written is read");
    }
    let written = writer.finish().expect("memory takes all");
    Archive::from_bytes(written).expect("what was written is read");
    Ok(())
}
