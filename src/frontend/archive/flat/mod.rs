//! Models for mobile devices in the flatbuffer format (`PTMF`): what the archives of `torch.jit.save` keep as pickles
//! stands here in tables. They are read into the same [`Pickle`] trees, so that all after this module sees one format:
//! the objects are `data.pkl`, the methods `bytecode.pkl`, storages the entries `data/N`.
//!
//! The schema is PyTorch's `mobile_bytecode.fbs`; fields are named by their number in it.

mod methods;
mod nodes;
mod table;
mod values;

use super::limits::Limits;
use super::pickle::{Node, Pickle};
use super::zip::{Directory, Entry, Method};
use crate::diag::{Diagnostic, Result};
use indexmap::IndexMap;
use nodes::Nodes;
use table::{Buffer, Table};

/// What a file holds: bytes by name, trees by the name of the pickle that they stand for, the version of operators.
pub(super) struct Contents {
    pub(super) directory: Directory,
    pub(super) trees: IndexMap<&'static str, Pickle>,
    pub(super) version: u64,
}

/// Whether a file is one of these.
pub(super) fn is_flat(file: &[u8]) -> bool {
    file.get(4..8) == Some(b"PTMF")
}

/// Reads a whole file; storages stay where they are.
pub(super) fn read(file: &[u8], limits: &Limits) -> Result<Contents> {
    read_module(file, limits).map_err(|mut error| {
        let report = error.report_mut();
        report.message = format!("a mobile model as a flatbuffer: {}", report.message);
        error
    })
}

fn read_module(file: &[u8], limits: &Limits) -> Result<Contents> {
    let module = Buffer(file).root()?;
    let mut entries: IndexMap<Box<str>, Entry> = IndexMap::new();
    let storages = storages(module, &mut entries, limits)?;
    files(module, 1, "extra/", &mut entries, limits)?;
    files(module, 8, "", &mut entries, limits)?;
    let mut nodes = Nodes { nodes: Vec::new(), left: limits.budget(file.len()) };
    let values = values::read(module, &storages, &mut nodes, limits)?;
    let mut trees = IndexMap::new();
    let root = values.at(module.u32(3)?)?;
    let code = entries.keys().any(|name| name.starts_with("code/"));
    if code {
        let constants = module.vector(9, 4)?.u32s().map(|at| values.at(at?)).collect::<Result<Vec<_>>>()?;
        let constants = nodes.add(Node::Tuple(constants.into()))?;
        trees.insert("constants.pkl", Pickle::from_nodes(nodes.nodes.clone(), constants, limits)?);
    } else {
        let bytecode = methods::read(module, &values, &mut nodes)?;
        trees.insert("bytecode.pkl", Pickle::from_nodes(nodes.nodes.clone(), bytecode, limits)?);
    }
    trees.insert("data.pkl", Pickle::from_nodes(nodes.nodes, root, limits)?);
    let version = u64::from(module.u32(10)?);
    Ok(Contents { directory: Directory { root: "model".into(), entries }, trees, version })
}

/// Names the bytes of storages, and gives the size of each.
fn storages(module: Table, entries: &mut IndexMap<Box<str>, Entry>, limits: &Limits) -> Result<Vec<u64>> {
    let mut sizes = Vec::new();
    for (number, storage) in module.vector(6, 4)?.tables().enumerate() {
        let bytes = storage?.vector(0, 1)?;
        let entry = stored(bytes.start(), bytes.len());
        sizes.push(entry.size);
        // Methods and objects share one table of storages.
        for stem in ["data", "constants"] {
            insert(entries, format!("{stem}/{number}"), entry, limits)?;
        }
    }
    Ok(sizes)
}

/// Names the bytes of a list of files.
fn files(
    module: Table,
    field: usize,
    folder: &str,
    entries: &mut IndexMap<Box<str>, Entry>,
    limits: &Limits,
) -> Result<()> {
    for file in module.vector(field, 4)?.tables() {
        let file = file?;
        let (name, content) = (file.text(0)?, file_bytes(file)?);
        if name.len() > limits.entry_name_bytes {
            return Err(Diagnostic::input(format!("the name of a file in it has {} bytes", name.len())));
        }
        insert(entries, format!("{folder}{name}"), content, limits)?;
    }
    Ok(())
}

fn file_bytes(file: Table) -> Result<Entry> {
    let content = file.vector(1, 1)?;
    Ok(stored(content.start(), content.len()))
}

fn insert(
    entries: &mut IndexMap<Box<str>, Entry>,
    name: String,
    entry: Entry,
    limits: &Limits,
) -> Result<()> {
    if entries.len() as u64 >= limits.entries {
        return Err(Diagnostic::input(format!("it has more than {} storages and files", limits.entries)));
    }
    match entries.insert(name.as_str().into(), entry) {
        None => Ok(()),
        Some(_) => Err(Diagnostic::input(format!("it has two files `{}`", name.escape_debug()))),
    }
}

fn stored(start: usize, size: usize) -> Entry {
    let size = size as u64;
    Entry { method: Method::Stored, crc: None, compressed: size, size, start: start as u64 }
}
