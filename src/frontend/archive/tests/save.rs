//! Loading, saving and loading again gives the same model; saving it once more gives the same bytes.

use super::real::{Comparison, NAMES, folder};
use crate::diag::Result;
use crate::dialects::Registry;
use crate::frontend::archive::{Archive, DebugRanges, Model, load, save};
use crate::ir::PrintOptions;
use crate::tensor::{Scalar, Tensor};
use crate::value::Value;
use hashbrown::HashMap;

fn saved(bytes: Vec<u8>) -> Result<(Model, Vec<u8>)> {
    let registry = Registry::builtin();
    let archive = Archive::from_bytes(bytes)?;
    let root = archive.root_prefix().to_string();
    let extra: Vec<(String, Vec<u8>)> = archive
        .extra_files()
        .map(|name| Ok((name.to_string(), archive.read(&format!("extra/{name}"))?.into_owned())))
        .collect::<Result<_>>()?;
    let model = load(&registry, archive)?;
    let tables: HashMap<String, DebugRanges> = model
        .debug_tables
        .iter()
        .map(|(file, table)| Ok((file.clone(), DebugRanges::from_bytes(table)?)))
        .collect::<Result<_>>()?;
    let contents = save::Contents {
        module: &model.module,
        root: &model.root,
        constants: model.constants.clone(),
        states: &model.states,
        extra: &extra,
        traced_inputs: None,
        origin: &|span| tables.get(span.source().name())?.lookup(span.start()).cloned(),
    };
    let out = save::save(&registry, contents, &root, Vec::new())?;
    Ok((model, out))
}

fn same_after_saving(bytes: Vec<u8>, name: &str) -> Result<()> {
    let (first, once) = saved(bytes)?;
    let (second, twice) =
        saved(once.clone()).map_err(|e| e.note(format!("{name}: what was saved is not read")))?;
    let text = |model: &Model| model.module.to_text(&PrintOptions::bare());
    assert_eq!(text(&first), text(&second), "{name}: graphs");
    assert!(once == twice, "{name}: saving is not a fixed point");
    let archive = Archive::from_bytes(once).expect("what was saved is read");
    for entry in archive.names() {
        let place = archive.entry(entry).expect("an entry");
        assert_eq!(place.start % 64, 0, "{name}: {entry} is not aligned");
    }
    Ok(())
}

#[test]
fn recorded_archives_survive_saving() {
    let mut done = 0;
    for name in NAMES {
        let bytes = std::fs::read(folder().join(format!("{name}.pt"))).expect("a recorded archive");
        match same_after_saving(bytes, name) {
            Ok(()) => done += 1,
            Err(error) => eprintln!("{name}: {error}"),
        }
    }
    assert!(done >= 7, "only {done} archives were saved");
}

/// Storages stay shared, views stay views, and every element is what PyTorch recorded.
#[test]
fn saved_data_is_what_pytorch_recorded() {
    for name in ["shared_parameter", "views", "empty", "script_class", "attributes"] {
        let bytes = std::fs::read(folder().join(format!("{name}.pt"))).expect("a recorded archive");
        let (_, out) = saved(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        let want = std::fs::read_to_string(folder().join(format!("{name}.json"))).expect("its description");
        let want: serde_json::Value = serde_json::from_str(&want).expect("a description is JSON");
        let archive = Archive::from_bytes(out).expect("what was saved is read");
        let data = archive.data_pickle().expect("the data");
        Comparison::new(&archive, "data", &data).same(data.root(), &want["data"], name);
        for (file, text) in want["code"].as_object().expect("code") {
            assert_eq!(Some(archive.source(file).expect("a source").text()), text.as_str(), "{name}: {file}");
        }
    }
}

/// Errors at run time still show the author's line after saving.
#[test]
fn original_places_survive_saving() {
    let bytes = std::fs::read(folder().join("deflated_code.pt")).expect("a recorded archive");
    let (_, out) = saved(bytes).expect("saved");
    let archive = Archive::from_bytes(out).expect("read again");
    let name = archive.code_files().next().expect("a source").to_string();
    let code = archive.source(&name).expect("a source");
    let ranges = archive.debug_ranges(&name).expect("debug ranges").expect("debug ranges");
    let place = ranges.lookup(code.text().find("torch.relu(").expect("a call of relu")).expect("its place");
    assert_eq!(place.source().name(), "record_archives.py");
    assert!(place.text().contains("torch.relu"), "{}", place.text());
}

/// All archives of a folder (`FLAMBEAU_ARCHIVES`), where one is given.
#[test]
fn archives_of_a_folder_survive_saving() {
    let Some(folder) = std::env::var_os("FLAMBEAU_ARCHIVES") else { return };
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    let (mut same, mut refused) = (0, 0);
    for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "pt")) {
        let name = path.display().to_string();
        match same_after_saving(std::fs::read(path).expect("a file"), &name) {
            Ok(()) => same += 1,
            Err(error) => {
                refused += 1;
                eprintln!("{name}: {error}");
            }
        }
    }
    eprintln!("{same} archives are the same after saving, {refused} are refused");
}

/// Tensors share the file's memory as long as they are not written.
#[test]
fn tensors_lie_in_the_archive_until_they_are_written() {
    let path = folder().join("shared_parameter.pt");
    let before = std::fs::read(&path).expect("a recorded archive");
    let loaded = || load(&Registry::builtin(), Archive::open(&path).expect("an archive")).expect("a model");
    let tensors = |model: &Model| {
        let Value::Object(root) = &model.root else { panic!("a module") };
        let mut work: Vec<Value> = vec![Value::Object(root.clone())];
        let mut found = Vec::new();
        while let Some(value) = work.pop() {
            match value {
                Value::Object(object) => work.extend(object.fields().into_iter().map(|(_, v)| v)),
                Value::Tensor(tensor) => found.push(tensor),
                _ => {}
            }
        }
        found
    };
    let model = loaded();
    let all = tensors(&model);
    let bits = |tensor: &Tensor| tensor.to_bytes().expect("its bytes");
    let first = all.iter().find(|tensor| tensor.numel() > 0).expect("a tensor");
    let was = bits(first);
    first.fill(Scalar::Float(7.0)).expect("it can be written");
    assert!(bits(first) != was, "written");
    assert_eq!(std::fs::read(&path).expect("the file"), before, "the file stays as it is");
    let again = loaded();
    assert!(tensors(&again).iter().any(|tensor| bits(tensor) == was), "another load has the file's content");
}
