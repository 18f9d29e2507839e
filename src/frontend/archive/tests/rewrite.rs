//! What is read and written again is the same model. PyTorch itself judges the written files in
//! `tests/golden/check_rewritten.py`; for it, `FLAMBEAU_REWRITTEN=folder` makes these tests leave pairs
//! of original and rewritten archives there.

use super::real::{NAMES, check, folder, recorded};
use crate::frontend::archive::pickle::{self, Pickle};
use crate::frontend::archive::{Archive, Limits, Node, NodeId, write};

/// Reads an archive and writes it again: pickles from their trees, everything else as it is.
fn rewrite(archive: &Archive) -> crate::diag::Result<Vec<u8>> {
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
