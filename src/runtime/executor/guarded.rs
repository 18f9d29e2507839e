//! The guards of all plans of a program with their counts, for reports. A plan that is made anew counts on from the one before it.

use super::{Executor, Plan, Plans, Slot};
use crate::diag::Span;
use crate::dialects::GraphId;
use crate::runtime::checks::{Asked, GuardState};
use std::sync::atomic::Ordering;

impl Executor {
    /// The guards of the plans that are kept, in order of functions and numbers; `shown` gives the text of a place.
    pub(in crate::runtime) fn guards(&self, shown: &dyn Fn(&Span) -> String) -> Vec<GuardState> {
        let mut out = Vec::new();
        for (function, plans) in self.functions.read().iter() {
            for slot in plans.slots.read().iter() {
                let Some(Ok(plan)) = slot.plan.get() else { continue };
                let of = (*function, Some(GraphId::of(&plan.graph)));
                let forced = |number| self.forced.as_ref().is_some_and(|forced| forced.number() == number);
                let listed = slot.listed(plan, plans).into_iter().enumerate();
                out.extend(listed.map(|(number, asked)| asked.state(of, number, forced(number), shown)));
            }
        }
        // Stable: plans of a function stay in the order in which they were made.
        out.sort_by_key(|guard| guard.function.as_str());
        out
    }
}

impl Slot {
    /// The guards of the plans of this place so far, by number.
    pub(super) fn guards_so_far(&self) -> Vec<Asked> {
        match self.plan.get() {
            Some(Ok(plan)) => self.all(plan),
            _ => self.before.clone(),
        }
    }

    /// The guards of the plan and those inside its graph.
    fn all(&self, plan: &Plan) -> Vec<Asked> {
        let inside = plan.code.guards.iter().map(|check| check.asked());
        let mut all: Vec<Asked> = plan.guards.list().into_iter().chain(inside).collect();
        for (asked, before) in all.iter_mut().zip(&self.before) {
            asked.held += before.held;
            asked.missed += before.missed;
            if asked.miss.is_none() && asked.kind == before.kind && asked.of == before.of {
                asked.miss.clone_from(&before.miss);
            }
        }
        all
    }

    fn listed(&self, plan: &Plan, plans: &Plans) -> Vec<Asked> {
        let mut all = self.all(plan);
        if let Some(first) = all.first_mut() {
            first.missed += self.passed_by.load(Ordering::Relaxed);
            first.expects = self.kind.to_text();
            first.source.clone_from(&self.source);
            first.miss =
                plans.kind(self.other.load(Ordering::Relaxed)).and_then(|other| self.kind.miss(&other));
        }
        all
    }
}
