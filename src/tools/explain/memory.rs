//! Memory of a call: what the ops of a plan give, in how much memory at one time, and what of it is in existing memory. It is
//! reported of one call; how long a value lives follows from the graph. Work inside of blocks is not examined.

use super::super::table::bytes;
use crate::ir::{Attr, Graph, OpId, ValueId};
use crate::value::Value;
use hashbrown::HashMap;
use serde_json::{Value as Json, json};

/// Where a value lies: which memory and how much of it, and how many bytes its elements are.
#[derive(Clone, Copy)]
struct Place {
    storage: usize,
    size: u64,
    bytes: u64,
}

/// One call: what each op of the plan gave, in order.
#[derive(Default)]
pub(super) struct Trace {
    arguments: Vec<Option<Place>>,
    results: Vec<(u32, Vec<Option<Place>>)>,
}

impl Trace {
    /// Of a call on such arguments that begins.
    pub(super) fn of(arguments: &[Value]) -> Trace {
        Trace { arguments: arguments.iter().map(place).collect(), results: Vec::new() }
    }

    /// An op ran.
    pub(super) fn ran(&mut self, op: u32, results: &[Value]) {
        self.results.push((op, results.iter().map(place).collect()));
    }
}

fn place(value: &Value) -> Option<Place> {
    let Value::Tensor(tensor) = value else { return None };
    let storage = tensor.storage();
    let bytes = (tensor.numel() as u64).saturating_mul(tensor.dtype().size() as u64);
    Some(Place { storage: storage.id(), size: storage.nbytes() as u64, bytes })
}

/// Memory of one call of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// Pieces of memory that were asked for, and their bytes all together.
    pub(super) pieces: usize,
    pub(super) bytes: u64,
    /// The most that was needed of it at one time, and the op that ran then.
    pub(super) peak: u64,
    pub(super) peak_at: Option<u32>,
    /// Results that reuse memory, and their bytes: views, and what was written in the place of something else.
    pub(super) shared: usize,
    pub(super) shared_bytes: u64,
}

impl Memory {
    /// Of a call, by how long values live in the graph of its plan.
    pub(super) fn of(graph: &Graph, trace: &Trace) -> Memory {
        let ops: HashMap<u32, OpId> =
            graph.block_ops(graph.root()).map(|op| (op.index() as u32, op)).collect();
        let order: HashMap<OpId, usize> =
            graph.block_ops(graph.root()).enumerate().map(|(n, op)| (op, n)).collect();
        let mut memory = Memory::default();
        // Memory that is alive, with its size and the place of the last op that needs it; what was there before the call has no
        // size. After that op its address may be that of other memory.
        let mut alive: HashMap<usize, (u64, usize)> = HashMap::new();
        for (place, input) in trace.arguments.iter().zip(graph.inputs()) {
            if let Some(place) = place {
                let entry = alive.entry(place.storage).or_default();
                entry.1 = entry.1.max(last_use(graph, *input, &order));
            }
        }
        alive.extend(constants(graph).map(|tensor| (tensor.storage().id(), (0, usize::MAX))));
        for (index, places) in &trace.results {
            let Some(op) = ops.get(index) else { continue };
            let now = order.get(op).copied().unwrap_or_default();
            alive.retain(|_, (_, last)| *last >= now);
            for (n, place) in places.iter().enumerate() {
                let Some((place, value)) = place.zip(graph.result(*op, n)) else { continue };
                let last = last_use(graph, value, &order);
                if let Some((_, known)) = alive.get_mut(&place.storage) {
                    *known = (*known).max(last);
                } else {
                    memory.pieces += 1;
                    memory.bytes += place.size;
                    alive.insert(place.storage, (place.size, last));
                    continue;
                }
                memory.shared += 1;
                memory.shared_bytes += place.bytes;
            }
            let needed = alive.values().map(|(size, _)| size).sum();
            if needed > memory.peak {
                (memory.peak, memory.peak_at) = (needed, Some(*index));
            }
        }
        memory
    }

    /// A line for people.
    pub(super) fn to_text(&self, graph: &Graph) -> String {
        let at =
            self.peak_at.and_then(|index| graph.all_ops().into_iter().find(|op| op.index() as u32 == index));
        let at = at.map(|op| format!(" (at {})", graph.kind(op))).unwrap_or_default();
        format!(
            "memory: {} in {} pieces, at most {} at one time{at}; {} results of {} reuse memory\n",
            bytes(self.bytes),
            self.pieces,
            bytes(self.peak),
            self.shared,
            bytes(self.shared_bytes),
        )
    }

    /// The same for programs.
    pub(super) fn to_json(&self) -> Json {
        json!({"pieces": self.pieces, "bytes": self.bytes, "peak": self.peak,
            "shared_results": self.shared, "shared_bytes": self.shared_bytes})
    }
}

/// The tensors that a graph has as constants.
pub(super) fn constants(graph: &Graph) -> impl Iterator<Item = &crate::tensor::Tensor> {
    let ops = graph.all_ops().into_iter().filter(|op| graph.kind(*op) == "prim::Constant");
    ops.filter_map(|op| match graph.attr(op, "value") {
        Some(Attr::Tensor(tensor)) => Some(tensor),
        _ => None,
    })
}

/// The place of the last op of the root block that needs a value, in blocks inside of it too; what the graph gives lives on.
fn last_use(graph: &Graph, value: ValueId, order: &HashMap<OpId, usize>) -> usize {
    let place = |mut op: OpId| loop {
        if let Some(n) = order.get(&op) {
            return *n;
        }
        let block = graph.terminated_block(op).or_else(|| graph.parent(op));
        match block.and_then(|block| graph.owner(block)) {
            Some(owner) => op = owner,
            None => return usize::MAX,
        }
    };
    graph.uses(value).map(|used| place(used.op)).max().unwrap_or_default()
}
