//! Observation of running programs: what their ops give, and when. For sizes in pictures, comparisons of values, profiles.

use crate::dialects::{GraphId, Watcher};
use crate::ir::{Graph, OpId};
use crate::value::Value;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;

/// What happened.
pub enum Event<'a> {
    /// A function or the body of an op begins.
    Enters {
        /// Its arguments.
        arguments: &'a [Value],
    },
    /// It ended.
    Leaves,
    /// A step of an op ran.
    Ran {
        /// The op's index in the graph.
        op: u32,
        /// What the step gave; None for unused results.
        results: &'a [Value],
        /// When it began; it ends now.
        begin: Instant,
    },
}

/// Where it happened.
pub struct At<'a> {
    /// The ops that led here from the function that was called, each an index in its graph: calls, and ops with subgraphs.
    pub path: &'a [u32],
    /// The graph that runs; None where the runtime made it on the way.
    pub graph: Option<GraphId>,
}

type Sink = Box<dyn FnMut(&At<'_>, Event<'_>) + Send>;

struct State {
    path: Vec<u32>,
    graphs: Vec<Option<GraphId>>,
    sink: Sink,
}

/// Passes events to a closure.
pub struct Watch {
    state: Mutex<State>,
    knows_plans: bool,
}

impl Watch {
    /// To be given to [`crate::dialects::Run::watch`].
    pub fn new(sink: impl FnMut(&At<'_>, Event<'_>) + Send + 'static) -> Arc<Watch> {
        Arc::new(Watch::with(sink, false))
    }

    /// The same for a closure that knows the graphs of plans ([`crate::runtime::Program::plan_graphs`]).
    pub fn of_plans(sink: impl FnMut(&At<'_>, Event<'_>) + Send + 'static) -> Arc<Watch> {
        Arc::new(Watch::with(sink, true))
    }

    fn with(sink: impl FnMut(&At<'_>, Event<'_>) + Send + 'static, knows_plans: bool) -> Watch {
        let state = State { path: Vec::new(), graphs: Vec::new(), sink: Box::new(sink) };
        Watch { state: Mutex::new(state), knows_plans }
    }

    fn notify(&self, event: Event<'_>) {
        let State { path, graphs, sink } = &mut *self.state.lock();
        sink(&At { path, graph: graphs.last().copied().flatten() }, event);
    }
}

impl Watcher for Watch {
    fn enters(&self, graph: Option<GraphId>, by: Option<u32>, arguments: &[Value]) {
        {
            let mut state = self.state.lock();
            // Code that an op runs by itself has no op that led to it.
            if !state.graphs.is_empty() {
                state.path.push(by.unwrap_or(u32::MAX));
            }
            state.graphs.push(graph);
        }
        self.notify(Event::Enters { arguments });
    }

    fn leaves(&self) {
        self.notify(Event::Leaves);
        let mut state = self.state.lock();
        state.graphs.pop();
        state.path.pop();
    }

    fn ran(&self, _: Option<GraphId>, op: u32, results: &[Value], begin: Instant) {
        self.notify(Event::Ran { op, results, begin });
    }

    fn knows_plans(&self) -> bool {
        self.knows_plans
    }
}

/// What a fusion group computes, by the names of its ops.
pub fn kernel_name(body: &Graph) -> String {
    let base = |op: OpId| body.kind(op).base();
    let names: Vec<&str> = body.block_ops(body.root()).map(base).filter(|name| *name != "Constant").collect();
    match names.len() {
        0..=6 => names.join("+"),
        n => format!("{}+... ({n} ops)", names[..5].join("+")),
    }
}
