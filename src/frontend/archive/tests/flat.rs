//! Mobile models as flatbuffers: files of PyTorch (`tests/golden/old.jsonl`, rows `flat.*`), and the same ones damaged
//! wherever an offset or a length may stand.

use crate::dialects::Registry;
use crate::frontend::archive::{Archive, load};
use base64::prelude::{BASE64_STANDARD, Engine};

/// The recorded files, each once.
fn files() -> Vec<Vec<u8>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/old.jsonl");
    let rows = std::fs::read_to_string(path).expect("the recorded files");
    let mut files: Vec<Vec<u8>> = Vec::new();
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).expect("a row");
        if row["name"].as_str().is_some_and(|name| name.starts_with("flat.")) {
            files.push(BASE64_STANDARD.decode(row["pt"].as_str().expect("a file")).expect("base64"));
        }
    }
    files.dedup();
    files
}

/// Reads and builds; what comes of it may be an error, and nothing else.
fn survives(bytes: Vec<u8>) -> bool {
    Archive::from_bytes(bytes).and_then(|archive| load(&Registry::builtin(), archive)).is_ok()
}

#[test]
fn flatbuffers_of_pytorch_load() {
    let files = files();
    assert!(files.len() >= 6, "only {} flatbuffers", files.len());
    assert!(files.into_iter().all(survives));
}

#[test]
fn damaged_offsets_and_lengths_are_errors() {
    for file in files() {
        let (mut refused, mut tried) = (0, 0);
        for at in (0..file.len().saturating_sub(4)).step_by(4) {
            // One of these each: a whole run over all would take a minute.
            let value = [0u32, 1, 0x7fff_ffff, u32::MAX, 0xffff, at as u32][at / 4 % 6];
            let mut bytes = file.clone();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            tried += 1;
            refused += usize::from(!survives(bytes));
        }
        assert!(refused * 8 > tried, "{refused} of {tried} damaged files were refused");
    }
}

#[test]
fn cut_files_are_errors() {
    for file in files() {
        for len in (0..file.len()).step_by(97) {
            assert!(!survives(file[..len].to_vec()), "{len} of {} bytes", file.len());
        }
    }
}

/// Values that all name one list, which names them again and again: small in the file, huge as a tree.
#[test]
fn shared_lists_are_bounded() {
    let (count, items) = (20_000u32, 20_000u32);
    let mut file = Vec::new();
    let word = |file: &mut Vec<u8>, value: u32| file.extend(value.to_le_bytes());
    word(&mut file, 28); // the root table
    file.extend(b"PTMF");
    // The tables of fields: of the module (ivalues alone), of a value, of a list.
    file.extend([14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0]);
    file.truncate(24);
    word(&mut file, 0);
    word(&mut file, 20); // back to the fields of the module
    word(&mut file, 4); // the vector of values
    word(&mut file, count);
    let value = 40 + 4 * count + 8;
    for n in 0..count {
        word(&mut file, value - (40 + 4 * n));
    }
    file.extend([8, 0, 12, 0, 4, 0, 8, 0]);
    word(&mut file, 8);
    word(&mut file, 8); // a tuple
    word(&mut file, 12);
    file.extend([6, 0, 8, 0, 4, 0, 0, 0]);
    word(&mut file, 8);
    word(&mut file, 4);
    word(&mut file, items);
    (0..items).for_each(|n| word(&mut file, n));
    let error = Archive::from_bytes(file).expect_err("far too large");
    assert!(error.message().contains("far more memory than the file has bytes"), "{}", error.message());
}
