//! The plans that are kept, for those who look into a program: kind of arguments, graph, code, calls.

use super::{Executor, Slot};
use crate::ir::{Graph, Symbol};
use hashbrown::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A plan, or why there is none for a kind of arguments.
#[derive(Clone, Debug)]
pub struct PlanState {
    /// What it is made for: a text for each argument, then the grad mode.
    pub arguments: Vec<String>,
    /// The graph that runs.
    pub graph: Option<Arc<Graph>>,
    /// The steps that run.
    pub code: Option<String>,
    /// Graphs of calls that record gradients: what they draw, if anything, and their backward.
    pub draws: Option<Arc<Graph>>,
    /// See `draws`.
    pub backward: Option<Arc<Graph>>,
    /// Calls that asked its guards, which ran it if these held.
    pub calls: u64,
    /// Why there is no plan; None where there is, or it is not made yet.
    pub refused: Option<String>,
}

impl Executor {
    /// The plans of each function, with the number of those that were given up.
    pub(in crate::runtime) fn plan_states(&self) -> HashMap<Symbol, (Vec<PlanState>, u64)> {
        let functions = self.functions.read();
        let of = |(name, plans): (&Symbol, &Arc<super::Plans>)| {
            let states = plans.slots.read().iter().map(|slot| slot.state()).collect();
            (*name, (states, plans.lost.load(Ordering::Relaxed)))
        };
        functions.iter().map(of).collect()
    }
}

impl Slot {
    fn state(&self) -> PlanState {
        let made = self.plan.get();
        let plan = made.and_then(|made| made.as_ref().ok());
        let recording = plan.and_then(|plan| plan.recording.as_ref());
        PlanState {
            arguments: self.kind.parts().to_vec(),
            graph: plan.map(|plan| Arc::clone(&plan.graph)),
            code: plan.map(|plan| plan.code.listing()),
            draws: recording.and_then(|recording| recording.draws_graph.clone()),
            backward: recording.map(|recording| Arc::clone(&recording.backward_graph)),
            calls: self.guards_so_far().first().map_or(0, |arguments| arguments.held),
            refused: made.and_then(|made| made.as_ref().err().cloned()),
        }
    }
}
