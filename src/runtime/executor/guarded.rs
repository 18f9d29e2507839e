//! The guards of all plans of a program with their counts, for reports. A plan that is made anew counts on from the one before it.

use super::guard::Listed;
use super::{Executor, Plan, Slot};
use crate::dialects::GraphId;
use crate::runtime::checks::GuardState;
use std::sync::atomic::Ordering;

impl Executor {
    /// The guards of the plans that are kept, in order of functions and numbers.
    pub(in crate::runtime) fn guards(&self) -> Vec<GuardState> {
        let mut out = Vec::new();
        for (function, plans) in self.functions.read().iter() {
            for slot in plans.slots.read().iter() {
                let Some(Ok(plan)) = slot.plan.get() else { continue };
                let listed = slot.listed(plan).into_iter().enumerate();
                out.extend(listed.map(|(number, (kind, of, (held, missed)))| GuardState {
                    function: *function,
                    plan: Some(GraphId::of(&plan.graph)),
                    number,
                    kind,
                    of,
                    held,
                    missed,
                    forced: self.forced.as_ref().is_some_and(|forced| forced.number() == number),
                }));
            }
        }
        // Stable: plans of a function stay in the order in which they were made.
        out.sort_by_key(|guard| guard.function.as_str());
        out
    }
}

impl Slot {
    /// How often the guards of the plans of this place held and missed, by number.
    pub(super) fn guard_counts(&self) -> Vec<(u64, u64)> {
        match self.plan.get() {
            Some(Ok(plan)) => self.all(plan).into_iter().map(|(_, _, counts)| counts).collect(),
            _ => self.before.clone(),
        }
    }

    /// The guards of the plan and those inside its graph.
    fn all(&self, plan: &Plan) -> Vec<Listed> {
        let inside = plan.code.guards.iter().map(|check| (check.kind, check.of.clone(), check.counts()));
        let mut all: Vec<Listed> = plan.guards.list().into_iter().chain(inside).collect();
        for ((_, _, (held, missed)), before) in all.iter_mut().zip(&self.before) {
            *held += before.0;
            *missed += before.1;
        }
        all
    }

    fn listed(&self, plan: &Plan) -> Vec<Listed> {
        let mut all = self.all(plan);
        if let Some((_, _, (_, missed))) = all.first_mut() {
            *missed += self.passed_by.load(Ordering::Relaxed);
        }
        all
    }
}
