//! Every recorded archive must open and unpickle: those of tests/golden, and those of the shared cases where
//! scripts/conformance.sh says where they are.

use std::path::{Path, PathBuf};

use base64::Engine;

use crate::frontend::archive::{Archive, Node};

#[derive(Default, Debug)]
struct Counts {
    archives: usize,
    entries: usize,
    nodes: usize,
    tensors: usize,
    traced: usize,
    code_files: usize,
    ranges: usize,
    places: usize,
}

fn read(bytes: Vec<u8>, counts: &mut Counts) -> crate::diag::Result<()> {
    let archive = Archive::from_bytes(bytes)?;
    counts.archives += 1;
    for name in archive.names() {
        archive.read(name)?;
        counts.entries += 1;
    }
    counts.traced += usize::from(archive.traced_inputs()?.is_some());
    for stem in ["data", "constants"] {
        let pickle = archive.pickle(stem)?;
        counts.nodes += pickle.len();
        for (_, node) in pickle.iter() {
            if let Node::Tensor(tensor) = node {
                archive.storage_bytes(stem, &tensor.storage)?;
                counts.tensors += 1;
            }
        }
    }
    for name in archive.code_files() {
        let source = archive.source(name)?;
        counts.code_files += 1;
        let Some(ranges) = archive.debug_ranges(name)? else { continue };
        for (start, place) in ranges.iter() {
            assert!(start as usize <= source.text().len(), "{name}: range at {start}");
            counts.ranges += 1;
            counts.places += usize::from(place.is_some());
        }
    }
    Ok(())
}

#[test]
fn recorded_archives_are_read() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    all_are_read(&folder, "modules");
}

#[test]
#[ignore = "reads the shared recorded cases; scripts/conformance.sh runs it"]
fn shared_archives_are_read() {
    let folder = std::env::var_os("FLAMBEAU_CONFORMANCE").expect("FLAMBEAU_CONFORMANCE names a folder");
    for file in ["models", "seeds", "lang", "ops"] {
        all_are_read(&PathBuf::from(&folder), file);
    }
}

fn all_are_read(folder: &Path, file: &str) {
    let path = folder.join(format!("{file}.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut counts = Counts::default();
    for line in text.lines() {
        let case: serde_json::Value = serde_json::from_str(line).expect("a case is JSON");
        let Some(pt) = case["pt"].as_str() else { continue };
        let bytes = base64::engine::general_purpose::STANDARD.decode(pt).expect("`pt` is base64");
        if let Err(error) = read(bytes.clone(), &mut counts) {
            panic!("{file}.jsonl, case {}: {error}", case["name"]);
        }
        if file != "ops" {
            super::rewrite::same_after_rewriting(bytes, &format!("{file}-{}", counts.archives));
        }
    }
    assert!(counts.archives > 0, "{file}.jsonl holds no archive: {counts:?}");
}
