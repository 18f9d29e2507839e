//! Those who see a run: what tools are shown of graphs, ops and groups that run. The run is not known here.

use crate::ir::Graph;
use crate::value::Value;
use std::sync::Arc;
use std::time::Instant;

/// Which graph code was made from: functions of a program and subgraphs of ops are told apart by it as long as they live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphId(usize);

impl GraphId {
    /// The identity of a graph where it lies.
    pub fn of(graph: &Graph) -> GraphId {
        GraphId(std::ptr::from_ref(graph) as usize)
    }
}

/// Sees the ops of a run, for tools that time them or read values. Tasks that are forked are not seen.
pub trait Watcher: Send + Sync {
    /// A function, or the body of an op, begins, called by an op of the graph that runs (by its index), or from outside. Its graph
    /// is not known where the runtime made it on the way.
    fn enters(&self, graph: Option<GraphId>, by: Option<u32>, arguments: &[Value]);

    /// It ended. After an error nothing is reported.
    fn leaves(&self);

    /// A step of an op (by its index in the graph) ran, gave results, and took some time; the work of a function that it calls is
    /// reported by itself. An op with blocks has several steps.
    fn ran(&self, graph: Option<GraphId>, op: u32, results: &[Value], begin: Instant);

    /// Whether it knows the graphs of plans, which are not those of the program's functions. Where it does not, calls run
    /// without plans.
    fn knows_plans(&self) -> bool {
        false
    }
}

/// Sees each fusion group that runs, with its inputs.
pub type GroupObserver = Arc<dyn Fn(&Arc<Graph>, &[Value]) + Send + Sync>;
