//! What of a program a plan has done already: attributes and numbers that are constants of it, weights that are packed, batch norms that
//! are part of layers.

use super::super::table::bytes;
use super::memory::constants;
use crate::dialects::fusion::layer;
use crate::ir::Graph;
use crate::runtime::Making;
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
    /// Changes of passes, in the order in which they are asked for above.
    passes: Vec<(&'static str, u64)>,
}

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
            (*pass, stages.filter(|stage| stage.pass == *pass).map(|stage| stage.changes).sum())
        };
        let passes = FOLDS.iter().map(changes).filter(|(_, changes)| *changes > 0).collect();
        Folded { tensors, bytes, packed: count(PACKS), norms: count(&[layer::NORM_SCALE]), passes }
    }

    /// A line for people.
    pub(super) fn to_text(&self) -> String {
        let mut parts = vec![format!("{} tensors of {} are constants", self.tensors, bytes(self.bytes))];
        if self.packed > 0 {
            parts
                .push(format!("{} layers are packed, {} of them with a batch norm", self.packed, self.norms));
        }
        parts.extend(self.passes.iter().map(|(pass, changes)| format!("{pass} {changes}")));
        format!("folded: {}\n", parts.join(", "))
    }

    /// The same for programs.
    pub(super) fn to_json(&self) -> Json {
        let passes: Map<String, Json> =
            self.passes.iter().map(|(pass, changes)| ((*pass).to_string(), json!(changes))).collect();
        json!({"constant_tensors": self.tensors, "constant_bytes": self.bytes, "packed_layers": self.packed,
            "batch_norms": self.norms, "passes": passes})
    }
}
