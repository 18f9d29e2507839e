//! What of a program a plan has done already: attributes and numbers that are constants of it, weights that are packed, batch norms that
//! are part of layers.

use super::super::table::bytes;
use super::memory::constants;
use crate::dialects::fusion::layer;
use crate::ir::{Graph, Symbol};
use crate::runtime::Making;
use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

/// Passes of plans that compute what calls need not.
const FOLDS: &[&str] = &[
    "freeze-attributes",
    "constant-propagation-immutable-types",
    "remove-dropout",
    "fold-sizes",
    "fold-writes",
    "fold-constants",
    "cse",
];
/// Ops that pack layers.
const PACKS: &[&str] = &[layer::PACK_CONV, layer::PACK_LINEAR, layer::PACK_NORM, layer::PACK_PROLOGUE];

/// What was folded.
pub(super) struct Folded {
    tensors: usize,
    bytes: u64,
    packed: usize,
    norms: usize,
    /// Changes of passes, in the order in which they are asked for above, with the ops that are gone since, by kind.
    passes: Vec<(&'static str, u64, IndexMap<Symbol, usize>)>,
}

/// Kinds of ops that a line names.
const MAX_KINDS: usize = 6;

impl Folded {
    /// In a plan that was made so.
    pub(super) fn of(graph: &Graph, making: Option<&Making>) -> Folded {
        let sizes = constants(graph).map(|tensor| (tensor.numel() as u64) * tensor.dtype().size() as u64);
        let (tensors, bytes) = sizes.fold((0, 0), |(n, sum), size| (n + 1, sum + size));
        let count = |kinds: &[&str]| {
            graph.all_ops().into_iter().filter(|op| kinds.contains(&graph.kind(*op).as_str())).count()
        };
        let changes = |pass: &&'static str| {
            let stages = making.into_iter().flat_map(|making| &making.stages);
            let (mut changes, mut removed) = (0, IndexMap::<Symbol, usize>::new());
            for stage in stages.filter(|stage| stage.pass == *pass) {
                changes += stage.changes;
                for (kind, n) in &stage.removed {
                    *removed.entry(*kind).or_default() += n;
                }
            }
            removed.sort_by(|_, a, _, b| b.cmp(a));
            (*pass, changes, removed)
        };
        let passes = FOLDS.iter().map(changes).filter(|(_, changes, _)| *changes > 0).collect();
        Folded { tensors, bytes, packed: count(PACKS), norms: count(&[layer::NORM_SCALE]), passes }
    }

    /// Lines for people.
    pub(super) fn to_text(&self) -> String {
        let mut parts = vec![format!("{} tensors of {} are constants", self.tensors, bytes(self.bytes))];
        if self.packed > 0 {
            parts
                .push(format!("{} layers are packed, {} of them with a batch norm", self.packed, self.norms));
        }
        let mut out = format!("folded: {}\n", parts.join(", "));
        for (pass, changes, removed) in &self.passes {
            let kinds: Vec<String> =
                removed.iter().take(MAX_KINDS).map(|(kind, n)| format!("{kind} {n}")).collect();
            let more = removed.len().saturating_sub(MAX_KINDS);
            let more = if more > 0 { format!(" and {more} more kinds") } else { String::new() };
            let gone =
                if kinds.is_empty() { String::new() } else { format!(", gone: {}{more}", kinds.join(", ")) };
            out.push_str(&format!("  {pass} {changes}{gone}\n"));
        }
        out
    }

    /// The same for programs.
    pub(super) fn to_json(&self) -> Json {
        let mut passes = Map::new();
        for (pass, changes, removed) in &self.passes {
            let gone: Map<String, Json> =
                removed.iter().map(|(kind, n)| (kind.as_str().to_string(), json!(n))).collect();
            passes.insert((*pass).to_string(), json!({"changes": changes, "gone": gone}));
        }
        json!({"constant_tensors": self.tensors, "constant_bytes": self.bytes, "packed_layers": self.packed,
            "batch_norms": self.norms, "passes": passes})
    }
}
