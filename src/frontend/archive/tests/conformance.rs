//! Every archive of the shared conformance data must open and unpickle. The data lies beside the
//! repository (or where `FLAMBEAU_CONFORMANCE` says); without it the test says so and stops.

use std::path::PathBuf;

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
fn all_conformance_archives_are_read() {
    let folder = match std::env::var_os("FLAMBEAU_CONFORMANCE") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance"),
    };
    for file in ["models", "seeds", "lang", "ops"] {
        let Ok(text) = std::fs::read_to_string(folder.join(format!("{file}.jsonl"))) else {
            eprintln!("skipped: no {file}.jsonl in {}", folder.display());
            continue;
        };
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
        eprintln!("{file}.jsonl: {counts:?}");
        assert!(counts.archives > 0, "{file}.jsonl holds no archive");
    }
}
