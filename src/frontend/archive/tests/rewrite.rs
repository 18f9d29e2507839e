//! What is read and written again is the same model. PyTorch itself judges the written files in
//! `tests/golden/check_rewritten.py`; for it, `FLAMBEAU_REWRITTEN=folder` makes these tests leave pairs
//! of original and rewritten archives there.

use super::real::{NAMES, check, folder, recorded};
use crate::diag::Result;
use crate::dialects::Registry;
use crate::frontend::archive::pickle::{self, Pickle};
use crate::frontend::archive::{Archive, Code, Compiled, Limits, Node, NodeId, load_with, write};
use crate::ir::Module;
use std::cell::Cell;

/// Reads an archive and writes it again: pickles from their trees, everything else as it is.
fn rewrite(archive: &Archive) -> Result<Vec<u8>> {
    let mut writer = write::Writer::new(Vec::new(), archive.root_prefix())?;
    for name in archive.names() {
        match name.strip_suffix(".pkl") {
            Some(stem) if stem != "traced_inputs" => {
                writer.add(name, &pickle::write(&archive.pickle(stem)?))?
            }
            _ => writer.add(name, &archive.read(name)?)?,
        }
    }
    writer.finish()
}

pub fn same_after_rewriting(bytes: Vec<u8>, name: &str) {
    let archive = Archive::from_bytes(bytes.clone()).expect("the original");
    let rewritten = rewrite(&archive).unwrap_or_else(|error| panic!("{name}: {error}"));
    if let Some(folder) = std::env::var_os("FLAMBEAU_REWRITTEN") {
        let folder = std::path::PathBuf::from(folder);
        std::fs::write(folder.join(format!("{name}.original.pt")), &bytes).expect("a writable folder");
        std::fs::write(folder.join(format!("{name}.rewritten.pt")), &rewritten).expect("a writable folder");
    }
    let again = Archive::from_bytes(rewritten.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(archive.names().eq(again.names()), "{name}: entries");
    for entry in again.names() {
        let place = again.entry(entry).expect("an entry");
        assert_eq!(place.start % write::ALIGNMENT, 0, "{name}: {entry} is not aligned");
    }
    assert_eq!(rewrite(&again).expect("a third time"), rewritten, "{name}: writing is not a fixed point");
}

#[test]
fn recorded_archives_survive_rewriting() {
    for name in NAMES {
        let bytes = std::fs::read(folder().join(format!("{name}.pt"))).expect("a recorded archive");
        same_after_rewriting(bytes, name);
        let (archive, want) = recorded(name);
        let again = Archive::from_bytes(rewrite(&archive).expect("rewritten")).expect("read again");
        check(&again, &want, name);
    }
}

#[test]
fn the_writer_refuses_what_the_reader_would() {
    let new = || write::Writer::new(Vec::new(), "m").expect("a fine name");
    assert!(write::Writer::new(Vec::new(), "a/b").is_err());
    assert!(write::Writer::new(Vec::new(), "..").is_err());
    assert!(new().add("../x", b"").is_err());
    assert!(new().add("x/", b"").is_err());
    let mut twice = new();
    twice.add("x", b"1").expect("the first");
    assert!(twice.add("x", b"2").is_err());
}

#[test]
fn trees_of_the_callers_own_are_checked() {
    let limits = Limits::default();
    let tuple = |ids: &[u32]| Node::Tuple(ids.iter().map(|id| NodeId(*id)).collect());
    let tree = |nodes: Vec<Node>| Pickle::from_nodes(nodes, NodeId(0), &limits);
    let good = tree(vec![tuple(&[1, 2, 1]), Node::Int(-7), tuple(&[1])]).expect("a tree");
    assert_eq!(good.len(), 3);
    let bytes = pickle::write(&good);
    assert_eq!(pickle::write(&pickle::parse(&bytes, &limits).expect("read again")), bytes);
    assert!(tree(vec![tuple(&[0])]).is_err(), "contains itself");
    assert!(tree(vec![tuple(&[5])]).is_err(), "refers to nothing");
    assert!(tree(vec![]).is_err(), "has no root");
}

#[test]
fn deep_and_wide_trees_are_written_without_recursion() {
    let mut nodes = vec![Node::Str("leaf".into())];
    for id in 0..990 {
        nodes.push(Node::Tuple(Box::new([NodeId(id), NodeId(id)])));
    }
    let root = NodeId(990);
    let tree = Pickle::from_nodes(nodes, root, &Limits::default()).expect("a tree");
    let bytes = pickle::write(&tree);
    assert!(bytes.len() < 10_000, "sharing is lost: {} bytes", bytes.len());
    assert_eq!(pickle::parse(&bytes, &Limits::default()).expect("read again"), tree);
}

/// Keeps nothing, and notes what it is asked.
#[derive(Default)]
struct Noted {
    sources: Cell<usize>,
    unkept: Cell<Option<&'static str>>,
}

impl Compiled for Noted {
    fn module(&self, code: &Code<'_>, compile: Box<dyn FnOnce() -> Result<Module> + '_>) -> Result<Module> {
        self.sources.set(code.sources.len());
        compile()
    }

    fn unkept(&self, reason: &'static str) {
        self.unkept.set(Some(reason));
    }
}

#[test]
fn a_source_that_cannot_be_read_and_is_not_needed_is_no_error_and_is_said() {
    let (original, _) = recorded(NAMES[0]);
    let load = |archive| {
        let noted = Noted::default();
        let model = load_with(&Registry::builtin(), archive, Some(&noted)).expect("it loads");
        (model.module.to_string(), noted.sources.get(), noted.unkept.get())
    };
    let mut writer = write::Writer::new(Vec::new(), original.root_prefix()).expect("a fine name");
    for name in original.names() {
        writer.add(name, &original.read(name).expect("readable")).expect("small");
    }
    writer.add("code/unused.py", &[0xff]).expect("small");
    let with = Archive::from_bytes(writer.finish().expect("small")).expect("an archive");
    let files = original.code_files().count();
    let (text, sources, unkept) = load(original);
    assert_eq!((sources, unkept), (files, None));
    assert_eq!(load(with), (text, 0, Some("a source file of the archive cannot be read")));
}
