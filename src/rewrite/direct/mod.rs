//! Rules applied to a graph itself, without an e-graph: once in program order, as passes that lower do, and greedily, as a
//! yardstick.

pub(super) mod directed;
mod graph_match;
pub(super) mod greedy;
mod trace;
