//! The forms that a value may take at its place: other values of its class, constants, and new ops over values that
//! are visible there, with what they cost and what they make needless.

use super::{Form, Writer};
use crate::ir::{NoClasses, OpId, Type, ValueId, is_subtype_of};
use crate::rewrite::egraph::enter::op_of;
use crate::rewrite::egraph::language::{Head, Node, OpHead};
use crate::rewrite::egraph::saturate::Firing;
use crate::rewrite::load::rule::Term;
use egg::Id;
use hashbrown::HashSet;

/// Right sides nested deeper are not built.
const MAX_DEPTH: usize = 10;
/// Nodes that are tried, at most, to build one form.
const MAX_PLANS: usize = 256;
/// Equal values that are examined for one op.
const MAX_EQUALS: usize = 64;
/// Forms of a class that are examined for one op.
const MAX_FORMS: usize = 64;
/// Ops that a replacement may free, at most, when its worth is counted.
const MAX_FREED: usize = 1024;

/// A form that is being planned.
struct Plan {
    /// New ops, each after those it takes.
    steps: Vec<(Id, Node)>,
    /// What they cost.
    cost: u64,
    /// What they may cost.
    limit: u64,
    /// Classes that are being planned: a form does not take itself.
    busy: Vec<Id>,
}

impl Writer<'_, '_> {
    /// What else the class of a value holds that costs no more than `limit`, with a rank: values before constants
    /// before ops, and last those that are not an improvement at the same cost.
    pub(in crate::rewrite) fn forms(
        &self,
        anchor: OpId,
        value: ValueId,
        id: Id,
        limit: u64,
    ) -> Vec<(u8, Form)> {
        let data = &self.loaded().egraph[id].data;
        let nodes = &self.loaded().egraph[id].nodes;
        let mut forms = Vec::new();
        if data.constant.is_none() || !self.is_new_constant(anchor, id) {
            forms.extend(self.equals(anchor, value, id).into_iter().map(|v| (0, Form::Value(v))));
        }
        let constant =
            nodes.iter().take(MAX_FORMS).find(|n| matches!(self.loaded().head(n), Head::Constant(..)));
        if let Some(node) = constant {
            // Nothing is cheaper.
            forms.push((1, Form::New(vec![(id, node.clone())])));
            return forms;
        }
        let own = self.own.get(&anchor);
        for node in nodes.iter().take(MAX_FORMS).filter(|node| own != Some(*node)) {
            if !matches!(self.loaded().head(node), Head::Op(_)) {
                continue;
            }
            let mut plan = Plan { steps: Vec::new(), cost: 0, limit, busy: vec![id] };
            self.fuel.set(MAX_PLANS);
            if self.plan_node(anchor, value, id, node, &mut plan) {
                let rank = if self.undirected.contains(node) { 3 } else { 2 };
                forms.push((rank, Form::New(plan.steps)));
            }
        }
        forms
    }

    /// The form that a search chose, if it is not what the value is.
    pub(super) fn guided_form(&self, anchor: OpId, value: ValueId, id: Id) -> Option<Form> {
        let node = self.guide.as_ref()?.get(&id)?;
        let other = self.visible(id, value, anchor);
        if self.is_settled(value, id) {
            return other.filter(|other| self.is_news(*other, anchor)).map(Form::Value);
        }
        if let Some(other) = other {
            return Some(Form::Value(other));
        }
        let mut plan = Plan { steps: Vec::new(), cost: 0, limit: u64::MAX, busy: vec![id] };
        self.fuel.set(MAX_PLANS);
        self.plan_node(anchor, value, id, node, &mut plan).then_some(Form::New(plan.steps))
    }

    /// Whether a value is what a search chose for its class.
    fn is_settled(&self, value: ValueId, id: Id) -> bool {
        let Some(guide) = &self.guide else { return true };
        let Some(node) = guide.get(&id) else { return false };
        let own = self.graph.def_op(value).and_then(|op| self.own.get(&op));
        match self.loaded().head(node) {
            Head::Op(_) => own == Some(node),
            Head::Constant(..) => {
                self.graph.def_op(value).is_some_and(|op| self.graph.kind(op) == "prim::Constant")
            }
            Head::Leaf(_) => own.is_none(),
            Head::Result(_) => {
                own.is_none() || self.graph.def_op(value).is_some_and(|op| self.graph.result_count(op) > 1)
            }
        }
    }

    /// Whether a rule gave a class a constant of its own, so that none at hand is meant. Of rules that matched the op
    /// itself it is known what they gave.
    fn is_new_constant(&self, anchor: OpId, id: Id) -> bool {
        let fired = || self.firings.get(&id).into_iter().flatten().map(|n| &self.run.firings[*n]);
        let own = self.own.get(&anchor);
        let is_own = |f: &&Firing| f.node.as_ref().is_some_and(|n| Some(&self.loaded().canonical(n)) == own);
        let makes =
            |f: &Firing| matches!(self.run.rules[f.rule].right, Term::Constant(..) | Term::Compute(..));
        match fired().find(is_own) {
            Some(firing) => makes(firing),
            None => fired().any(makes),
        }
    }

    /// Other values of a class that an op may take instead of its own.
    fn equals(&self, anchor: OpId, value: ValueId, id: Id) -> Vec<ValueId> {
        let all = self.values.get(&id).map_or(&[][..], Vec::as_slice);
        if all.iter().all(|v| *v == value) {
            return Vec::new();
        }
        let near = self.near(anchor);
        // Those right before the op, and the first of all, are enough to choose from.
        let here = self.order_of(anchor);
        let before = all.partition_point(|v| self.place(*v) <= here);
        let last = &all[before.saturating_sub(MAX_EQUALS)..before];
        let first = &all[..before.saturating_sub(MAX_EQUALS).min(MAX_EQUALS)];
        let own_class = |v: &&ValueId| self.class(**v) == Some(id);
        let mut values: Vec<ValueId> = near
            .iter()
            .filter(own_class)
            .chain(first)
            .chain(last)
            .copied()
            .filter(|v| self.at_hand(*v, value, anchor) && self.is_news(*v, anchor))
            .collect();
        // Of equal values the one that the op has among its operands' operands is meant, else the last before it.
        values.sort_by_key(|v| (!near.contains(v), std::cmp::Reverse(self.place(*v))));
        values.dedup();
        values.retain(|v| !self.one_by_one || near.contains(v));
        values.truncate(8);
        values
    }

    /// Whether it is rules that made a value equal to what an op computes: that two ops are written in the same way
    /// is for another pass.
    fn is_news(&self, value: ValueId, anchor: OpId) -> bool {
        let Some(op) = self.graph.def_op(value) else { return true };
        let (nodes, given) =
            ((self.own.get(&op), self.own.get(&anchor)), (self.given.get(&op), self.given.get(&anchor)));
        match (nodes, given) {
            ((Some(a), Some(b)), _) if self.one_by_one => a != b,
            ((Some(_), Some(_)), (Some(a), Some(b))) => a != b,
            _ => true,
        }
    }

    /// Whether rules made another value equal to what an op computes without touching either.
    pub(super) fn has_news(&self, anchor: OpId, id: Id) -> bool {
        let all = self.values.get(&id).map_or(&[][..], Vec::as_slice);
        let other = |v: &ValueId| self.graph.def_op(*v) != Some(anchor);
        !self.one_by_one
            && all.len() > 1
            && all.iter().take(MAX_EQUALS).any(|v| other(v) && self.is_news(*v, anchor))
    }

    /// The class of a value.
    pub(in crate::rewrite) fn class(&self, value: ValueId) -> Option<Id> {
        let known = self.loaded().class_of.get(&value).copied();
        known.or_else(|| self.made.get(&value).map(|(id, _)| *id)).map(|id| self.loaded().egraph.find(id))
    }

    /// Where a value is made: 0 for parameters of blocks.
    pub(in crate::rewrite) fn place(&self, value: ValueId) -> usize {
        if let Some((_, place)) = self.made.get(&value) {
            return *place;
        }
        self.graph.def_op(value).and_then(|op| self.loaded().order.get(&op)).map_or(0, |n| n + 1)
    }

    /// Where an op stands.
    pub(in crate::rewrite) fn order_of(&self, op: OpId) -> usize {
        match self.loaded().order.get(&op) {
            Some(n) => n + 1,
            None => self.graph.result(op, 0).map_or(0, |v| self.place(v)),
        }
    }

    /// Operands of an op, and of the ops that make them, two steps deep.
    fn near(&self, op: OpId) -> Vec<ValueId> {
        let mut found: Vec<ValueId> = Vec::new();
        let mut layer = vec![op];
        for _ in 0..3 {
            let operands: Vec<ValueId> =
                layer.iter().flat_map(|op| self.graph.operands(*op)).copied().collect();
            layer = operands.iter().filter_map(|v| self.graph.def_op(*v)).collect();
            found.extend(operands);
            if found.len() > 64 {
                break;
            }
        }
        found
    }

    /// Whether a value may be used at a place instead of another.
    fn at_hand(&self, candidate: ValueId, value: ValueId, anchor: OpId) -> bool {
        candidate != value
            && self.graph.def_op(candidate).is_none_or(|op| !self.is_gone.contains(&op) && op != anchor)
            && self.graph.is_visible(candidate, anchor)
            && is_subtype_of(
                &self.graph.ty(candidate).unshaped(),
                &self.graph.ty(value).unshaped(),
                &NoClasses,
            )
    }

    /// Plans a node over visible values; false if it cannot be built within the limit, and then nothing changed.
    fn plan_node(&self, anchor: OpId, value: ValueId, id: Id, node: &Node, plan: &mut Plan) -> bool {
        match self.loaded().head(node) {
            // One of several results would need the whole op anew.
            Head::Op(OpHead { pin: Some(_), .. }) | Head::Leaf(..) | Head::Result(_) => return false,
            _ => {}
        }
        // Ways to build one form are tried up to a count: they may be as many as a power of the depth.
        let fuel = self.fuel.get();
        self.fuel.set(fuel.saturating_sub(1));
        if plan.busy.len() > MAX_DEPTH || fuel == 0 {
            return false;
        }
        let (length, cost) = (plan.steps.len(), plan.cost);
        plan.cost = cost.saturating_add(self.node_cost(id, node));
        let fits = plan.cost <= plan.limit
            && node.children.iter().all(|child| {
                let child = self.loaded().egraph.find(*child);
                !plan.busy.contains(&child) && self.plan_class(anchor, value, child, plan)
            });
        if !fits {
            plan.steps.truncate(length);
            plan.cost = cost;
        } else if !plan.steps.iter().any(|(known, _)| *known == id) {
            plan.steps.push((id, node.clone()));
        }
        fits
    }

    fn plan_class(&self, anchor: OpId, value: ValueId, id: Id, plan: &mut Plan) -> bool {
        if plan.steps.iter().any(|(known, _)| *known == id) || self.visible(id, value, anchor).is_some() {
            return true;
        }
        let chosen = self.guide.as_ref().map(|guide| guide.get(&id));
        let nodes = match &chosen {
            Some(Some(node)) => std::slice::from_ref(*node),
            Some(None) => return false,
            None => &self.loaded().egraph[id].nodes[..],
        };
        plan.busy.push(id);
        let (length, cost, limit) = (plan.steps.len(), plan.cost, plan.limit);
        let mut best: Option<(u64, Vec<(Id, Node)>)> = None;
        for node in nodes.iter().take(MAX_FORMS) {
            if self.plan_node(anchor, value, id, node, plan) {
                best = Some((plan.cost, plan.steps.split_off(length)));
                if plan.cost == cost {
                    break;
                }
                // Only what is cheaper is news.
                plan.limit = plan.cost - 1;
                plan.cost = cost;
            }
        }
        plan.limit = limit;
        plan.busy.pop();
        let Some((cost, steps)) = best else { return false };
        plan.cost = cost;
        plan.steps.extend(steps);
        true
    }

    /// The first value of a class that is visible at a place.
    pub(in crate::rewrite) fn visible(&self, id: Id, value: ValueId, anchor: OpId) -> Option<ValueId> {
        let id = self.loaded().egraph.find(id);
        if let Some(known) = self.memo.borrow().get(&id) {
            return *known;
        }
        let ok = |v: &ValueId| {
            *v != value
                && self.graph.def_op(*v).is_none_or(|op| !self.is_gone.contains(&op) && op != anchor)
                && self.graph.is_visible(*v, anchor)
                && self.is_settled(*v, id)
        };
        // The operands that the op has already stay what they are.
        let is_in = |v: &ValueId| self.class(*v) == Some(id);
        let mine = self.graph.operands(anchor).iter().copied().find(|v| is_in(v) && ok(v));
        let here = self.order_of(anchor);
        let is_strange =
            self.one_by_one && mine.is_none() && self.loaded().egraph[id].data.constant.is_some();
        let found = mine.or_else(|| {
            if is_strange {
                // A constant that the op does not know is a new one.
                return self.near(anchor).into_iter().find(|v| is_in(v) && ok(v));
            }
            let before = self.values.get(&id)?.iter().copied().take_while(|v| self.place(*v) <= here);
            before.take(MAX_EQUALS).find(ok)
        });
        self.memo.borrow_mut().insert(id, found);
        found
    }

    fn node_cost(&self, id: Id, node: &Node) -> u64 {
        let Some(head) = op_of(self.loaded(), node) else { return 0 };
        let egraph = &self.loaded().egraph;
        let operands: Vec<&Type> = node.children.iter().map(|c| &egraph[egraph.find(*c)].data.ty).collect();
        self.model.cost(&head.op, &operands, &egraph[egraph.find(id)].data.ty)
    }

    pub(super) fn form_cost(&self, form: &Form) -> u64 {
        match form {
            Form::Value(_) => 0,
            Form::New(plan) => plan.iter().map(|(id, node)| self.node_cost(*id, node)).sum(),
        }
    }

    /// The values that a form needs.
    pub(in crate::rewrite) fn kept(&self, op: OpId, value: ValueId, form: &Form) -> Vec<ValueId> {
        match form {
            Form::Value(v) => vec![*v],
            Form::New(plan) => {
                let children = plan.iter().flat_map(|(_, node)| &node.children);
                children.filter_map(|child| self.visible(*child, value, op)).collect()
            }
        }
    }

    /// All ops that are dead once the value is made from others.
    pub(super) fn freed(&mut self, op: OpId, value: ValueId, kept: &[ValueId]) -> Vec<OpId> {
        let mut freed: Vec<OpId> = Vec::new();
        let mut dead: HashSet<OpId> = HashSet::new();
        let mut work = vec![op];
        while let Some(candidate) = work.pop() {
            if dead.len() > MAX_FREED || dead.contains(&candidate) || !self.op_cost(candidate).1 {
                continue;
            }
            let unused = self.graph.results(candidate).iter().all(|v| {
                *v == value || !kept.contains(v) && self.graph.uses(*v).all(|u| dead.contains(&u.op))
            });
            if !unused || !self.graph.nested_blocks(candidate).is_empty() {
                continue;
            }
            dead.insert(candidate);
            freed.push(candidate);
            work.extend(self.graph.operands(candidate).iter().filter_map(|v| self.graph.def_op(*v)));
        }
        freed
    }
}
