//! What `inspect` shows of programs of `torch.export`: tensors, what is called, how often each operator.

use super::problems::Problems;
use crate::frontend::archive::{Archive, Outline, OutlinedTensor, is_exported, outline};
use indexmap::{IndexMap, IndexSet};
use serde_json::{Value as Json, json};

/// The programs of an archive.
pub(super) fn programs(archive: &Archive, problems: &mut Problems) -> Vec<Outline> {
    if !is_exported(archive) {
        return Vec::new();
    }
    problems.keep(outline(archive)).unwrap_or_default()
}

/// A row for each tensor.
pub(super) fn tensors(program: &Outline) -> impl Iterator<Item = Json> + '_ {
    program.tensors.iter().map(|tensor: &OutlinedTensor| {
        let elements = tensor.sizes.iter().fold(1i64, |count, size| count.saturating_mul(*size));
        json!({
            "name": tensor.name,
            "kind": if tensor.is_parameter { "parameter" } else { "buffer" },
            "dtype": tensor.dtype.name(),
            "shape": tensor.sizes,
            "strides": tensor.strides,
            "elements": elements,
            "bytes": elements.saturating_mul(tensor.dtype.size() as i64),
            "storage": tensor.entry,
        })
    })
}

/// How the program is called.
pub(super) fn function(program: &Outline) -> Json {
    json!({ "name": format!("{}.forward", program.name), "signature": format!("({})", program.arguments.join(", ")) })
}

/// A row for each operator.
pub(super) fn operators(programs: &[Outline]) -> Vec<Json> {
    let mut calls: IndexMap<&str, usize> = IndexMap::new();
    for (target, count) in programs.iter().flat_map(|program| &program.operators) {
        *calls.entry(target).or_default() += count;
    }
    calls.into_iter().map(|(target, calls)| json!({ "target": target, "calls": calls })).collect()
}

/// Bytes of all entries that tensors lie in, each counted once.
pub(super) fn storage_bytes(archive: &Archive, programs: &[Outline]) -> u64 {
    let entries: IndexSet<&str> =
        programs.iter().flat_map(|program| &program.tensors).map(|tensor| &*tensor.entry).collect();
    let sizes = entries.iter().filter_map(|name| archive.entry(name)).map(|entry| entry.size);
    sizes.fold(0u64, u64::saturating_add)
}
