//! Extraction: what rules made cheaper is written back.
//!
//! Each value whose class a rule changed is offered what else its class holds: another value that is visible, a
//! constant, or new ops over visible values. Sharing counts: new ops are counted once, and what is saved is every
//! op that nobody needs any more. A value is replaced only if that does not cost more than it saves, so that the
//! result never costs more than the input, and what no rule changed keeps its op, place, name and location.
//! A fresh tensor becomes an alias, or the reverse, only where nobody can tell.

use super::compile::Term;
use super::cost::{CostModel, cost_of};
use super::explain::Link;
use super::identity::{Identity, Order};
use super::language::{Head, Node, OpHead};
use super::load::Loaded;
use super::proof::Proofs;
use super::saturate::{Firing, Report, Saturation, Settings, op_of};
use super::why_not::{self, Decision};
use crate::analysis::AliasDb;
use crate::dialects::{Family, Op, Registry};
use crate::ir::{Graph, NoClasses, OpId, Symbol, Type, TypeKind, ValueId, is_subtype_of};
use egg::Id;
use hashbrown::{HashMap, HashSet};
use indexmap::IndexMap;
use std::cell::Cell;

/// Right sides nested deeper are not built.
const MAX_DEPTH: usize = 10;

/// Nodes that are tried, at most, to build one form.
const MAX_PLANS: usize = 256;
/// Equal values that are looked at for one op.
const MAX_EQUALS: usize = 64;
/// Forms of a class that are looked at for one op.
const MAX_FORMS: usize = 64;
/// Ops that a replacement may free, at most, when its worth is counted.
const MAX_FREED: usize = 1024;

/// What an op became.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// The value's name, as it prints.
    pub name: String,
    /// Where it stands in the program text.
    pub location: Option<String>,
    /// Before and after, as text.
    pub before: String,
    /// After, as text.
    pub after: String,
    /// Names of the rules that led there, in order.
    pub rules: Vec<std::sync::Arc<str>>,
    /// Cost of what went and of what came.
    pub cost: (u64, u64),
    /// The firings that led there, in order; only where explanations are asked for.
    pub chain: Vec<Link>,
}

/// Replaces values by cheaper forms.
pub(super) fn write_back(
    graph: &mut Graph,
    registry: &Registry,
    aliases: &AliasDb,
    run: &Saturation<'_>,
    settings: &Settings,
    report: &mut Report,
) {
    let canonical = |node: &Node| run.loaded.canonical(node);
    let mut own = HashMap::new();
    for (op, node) in &run.loaded.ops {
        own.insert(*op, canonical(node));
    }
    let mut firings: HashMap<Id, Vec<usize>> = HashMap::new();
    for (n, firing) in run.firings.iter().enumerate() {
        firings.entry(run.loaded.egraph.find(firing.root)).or_default().push(n);
    }
    let produced: HashSet<Node> = run.produced.iter().map(canonical).collect();
    let proofs = run.trace.as_ref().map(|trace| Proofs::new(run, trace, &own));
    // Values lose their names with their ops.
    let before = run.trace.is_some().then(|| graph.clone());
    let values = values_by_class(graph, &run.loaded);
    let first_new = graph.value_capacity();
    let mut writer = Writer {
        graph,
        registry,
        aliases,
        run,
        model: settings.cost,
        own,
        produced,
        first_new,
        local: settings.local,
        stale: Vec::new(),
        leaving: HashSet::new(),
        cost: HashMap::new(),
        firings,
        gone: Vec::new(),
        is_gone: HashSet::new(),
        values,
        fuel: Cell::new(MAX_PLANS),
        proofs,
        decisions: IndexMap::new(),
    };
    report.cost.0 = writer.total();
    for op in writer.graph.all_ops() {
        // A constant is what it is.
        if writer.is_gone.contains(&op) || writer.graph.kind(op) == "prim::Constant" {
            continue;
        }
        for value in writer.graph.results(op) {
            if settings.replacements.is_some_and(|most| report.replaced >= most) {
                break;
            }
            if let Some(step) = writer.improve(op, value) {
                report.replaced += 1;
                report.steps.push(step);
            }
            if writer.is_gone.contains(&op) {
                break;
            }
        }
    }
    for op in std::mem::take(&mut writer.gone) {
        writer.graph.erase(op);
    }
    report.cost.1 = writer.total();
    if let (Some(trace), Some(before)) = (&run.trace, &before) {
        let decisions = std::mem::take(&mut writer.decisions);
        report.why_not = why_not::answer(before, run, trace, &decisions);
    }
}

/// All values of a graph in program order: those of blocks where the blocks begin.
fn values_in_order(graph: &Graph) -> Vec<ValueId> {
    let mut values = graph.inputs().to_vec();
    for op in graph.all_ops() {
        values.extend(graph.results(op));
        for block in graph.nested_blocks(op) {
            values.extend(graph.params(*block));
        }
    }
    values
}

/// The values of each class: what is no op's result first, then in program order.
fn values_by_class(graph: &Graph, loaded: &Loaded) -> HashMap<Id, Vec<ValueId>> {
    let mut found: HashMap<Id, Vec<ValueId>> = HashMap::new();
    for value in values_in_order(graph) {
        if let Some(id) = loaded.class_of.get(&value) {
            found.entry(loaded.egraph.find(*id)).or_default().push(value);
        }
    }
    let place = |v: &ValueId| graph.def_op(*v).and_then(|op| loaded.order.get(&op)).map_or(0, |n| n + 1);
    found.values_mut().for_each(|all| all.sort_by_key(place));
    found
}

/// Where an op stands in the program text.
pub(super) fn place(graph: &Graph, op: OpId) -> Option<String> {
    let (file, line, column) = graph.location(op)?.file_line_column()?;
    Some(format!("{file}:{line}:{column}"))
}

struct Writer<'a, 'r> {
    graph: &'a mut Graph,
    registry: &'a Registry,
    aliases: &'a AliasDb,
    run: &'a Saturation<'r>,
    model: CostModel,
    /// The node that each op is.
    own: HashMap<OpId, Node>,
    /// Right sides of rules.
    produced: HashSet<Node>,
    /// Values from this number on were made here.
    first_new: usize,
    /// See [`Settings::local`].
    local: bool,
    /// Tensors that took another's place, and those whose place they took.
    stale: Vec<ValueId>,
    /// Values that leave the function in the place of others.
    leaving: HashSet<ValueId>,
    /// Costs of ops that exist.
    cost: HashMap<OpId, (u64, bool)>,
    /// Firings by the class that they changed.
    firings: HashMap<Id, Vec<usize>>,
    /// Ops that nobody needs any more. They lose their operands at once and go at the end: a handle that is given
    /// out again would be taken for what it was.
    gone: Vec<OpId>,
    is_gone: HashSet<OpId>,
    /// Nodes that may still be tried for the form that is being planned.
    fuel: Cell<usize>,
    /// Values of each class that are still there, in program order.
    values: HashMap<Id, Vec<ValueId>>,
    /// Ways through classes, where somebody asks.
    proofs: Option<Proofs<'a>>,
    /// What became of values, where somebody asks.
    decisions: IndexMap<ValueId, Decision>,
}

/// A form that a value may take.
#[derive(Clone, Debug)]
enum Form {
    /// Another value.
    Value(ValueId),
    /// New ops, each after those it takes; the last is the root.
    New(Vec<(Id, Node)>),
}

impl Writer<'_, '_> {
    fn loaded(&self) -> &Loaded {
        &self.run.loaded
    }

    /// What the whole function costs.
    fn total(&mut self) -> u64 {
        self.cost.clear();
        let ops = self.graph.all_ops();
        ops.into_iter().map(|op| self.op_cost(op).0).sum()
    }

    /// What an op costs, and whether it may go when nobody uses it.
    fn op_cost(&mut self, op: OpId) -> (u64, bool) {
        if let Some(known) = self.cost.get(&op) {
            return *known;
        }
        let known = cost_of(self.registry, self.graph, self.model, op);
        self.cost.insert(op, known);
        known
    }

    /// Replaces a value if its class has a better form.
    fn improve(&mut self, op: OpId, value: ValueId) -> Option<Replacement> {
        let id = self.loaded().egraph.find(*self.loaded().class_of.get(&value)?);
        if !self.loaded().egraph[id].data.touched || !self.graph.has_uses(value) {
            return None;
        }
        let mut best: Option<(i64, u8, u64, u64, Form)> = None;
        let mut told_apart = false;
        for (rank, form) in self.forms(op, value, id) {
            if !self.may_become(value, &form) {
                told_apart = true;
                continue;
            }
            let cost = self.form_cost(&form);
            let saved = self.saved(op, value, &form);
            let mut gain = saved as i64 - cost as i64;
            if self.local {
                if self.is_stale(value, &form) {
                    told_apart = true;
                    continue;
                }
                gain = gain.min(1);
            }
            if best
                .as_ref()
                .is_none_or(|(g, r, ..)| (gain, std::cmp::Reverse(rank)) > (*g, std::cmp::Reverse(*r)))
            {
                best = Some((gain, rank, saved, cost, form));
            }
        }
        if let Some((_, _, saved, cost, _)) = &best {
            self.stays(value, || format!("not cheaper: it would save {saved} and cost {cost}"));
        }
        if told_apart {
            self.stays(value, || {
                "identity: a fresh object would become an alias, or the reverse".to_string()
            });
        }
        let (gain, rank, saved, cost, form) = best?;
        let own_is_produced = self.own.get(&op).is_some_and(|node| self.produced.contains(node));
        let better = gain > 0 || gain == 0 && (rank < 2 || rank == 2 && !own_is_produced);
        if !better {
            return None;
        }
        if let (true, Form::Value(other)) = (self.local && !self.run.same_object.contains(&value), &form) {
            self.stale.extend([value, *other].into_iter().filter(|v| self.graph.ty(*v).is_tensor()));
        }
        let before = self.shown(op);
        let location = place(self.graph, op);
        let chain = self.chain(value, &form);
        let name = self.graph.display_name(value);
        let new = self.write(op, value, id, &form)?;
        let after = match (&form, self.graph.def_op(new)) {
            (Form::New(_), Some(op)) => self.shown(op),
            _ => format!("%{}", self.graph.display_name(new)),
        };
        if AliasDb::is_mutable_type(self.graph.ty(value)) && self.identity().leaves(value) {
            self.leaving.extend([value, new]);
            if let Form::New(plan) = &form {
                // What it shows, if it is a view, leaves with it.
                let children = plan.iter().flat_map(|(_, node)| node.children.iter());
                let shown: Vec<ValueId> = children.filter_map(|id| self.visible(*id, value, op)).collect();
                let is_view = plan
                    .last()
                    .and_then(|(_, root)| op_of(self.loaded(), root))
                    .is_some_and(|head| shows_operand(&head.op));
                self.leaving.extend(shown.into_iter().filter(|_| is_view));
            }
        }
        self.graph.replace_all_uses(value, new);
        self.sweep(op);
        let mut rules = Vec::new();
        if let Form::New(plan) = &form {
            // What the new operands owe to rules comes before what the root does.
            for (class, _) in plan.iter().filter(|(class, _)| *class != id) {
                rules.extend(self.rules_of(*class));
            }
        }
        rules.extend(self.rules_of(id));
        if self.proofs.is_some() {
            rules = chain.iter().map(|link| std::sync::Arc::clone(&link.rule)).collect();
            self.decisions.insert(value, Decision::Replaced(after.clone(), rules.clone()));
        }
        Some(Replacement { name, location, before, after, rules, cost: (saved, cost), chain })
    }

    /// Whether a value or what would take its place may be an object that took another's place before.
    fn is_stale(&self, value: ValueId, form: &Form) -> bool {
        let Form::Value(other) = form else { return false };
        let alias = |a: ValueId| self.stale.iter().any(|b| *b == a || self.aliases.may_alias(a, *b));
        self.graph.ty(value).is_tensor()
            && !self.run.same_object.contains(&value)
            && (alias(value) || alias(*other))
    }

    /// Notes why a value is not replaced, where somebody asks.
    fn stays(&mut self, value: ValueId, reason: impl FnOnce() -> String) {
        if self.proofs.is_some() {
            self.decisions.insert(value, Decision::Stays(reason()));
        }
    }

    /// The firings that led from a value to a form.
    fn chain(&self, value: ValueId, form: &Form) -> Vec<Link> {
        let (Some(proofs), Some(trace)) = (&self.proofs, &self.run.trace) else { return Vec::new() };
        let firings = match form {
            Form::Value(other) => proofs.to_value(self.graph, value, *other),
            Form::New(plan) => {
                plan.last().map_or_else(Vec::new, |(_, root)| proofs.to_node(self.graph, value, root))
            }
        };
        let link = |n: usize| {
            let (rule, recorded) = (&self.run.rules[self.run.firings[n].rule], &trace.firings[n]);
            let place = format!("{}:{}", rule.span.source().name(), rule.span.line_column().0);
            Link {
                rule: std::sync::Arc::clone(&rule.name),
                place,
                before: recorded.before.clone(),
                after: recorded.after.clone(),
                cost: recorded.cost,
            }
        };
        firings.into_iter().map(link).collect()
    }

    /// An op as text.
    fn shown(&self, op: OpId) -> String {
        let operands: Vec<String> =
            self.graph.operands(op).iter().map(|v| format!("%{}", self.graph.display_name(*v))).collect();
        let attrs = match self.graph.attr(op, "value") {
            Some(attr) => format!("[value={}]", super::attr_text(attr)),
            None => String::new(),
        };
        format!("{}{attrs}({})", self.graph.kind(op), operands.join(", "))
    }

    /// Rules that made something equal to a class, in the order in which they fired.
    fn rules_of(&self, id: Id) -> Vec<std::sync::Arc<str>> {
        let mut names: Vec<std::sync::Arc<str>> = Vec::new();
        for firing in self.firings.get(&id).into_iter().flatten() {
            let name = &self.run.rules[self.run.firings[*firing].rule].name;
            if names.last() != Some(name) {
                names.push(std::sync::Arc::clone(name));
            }
        }
        names
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

    /// What else the class of a value holds, with a rank: values before constants before ops.
    fn forms(&self, anchor: OpId, value: ValueId, id: Id) -> Vec<(u8, Form)> {
        let egraph = &self.loaded().egraph;
        let data = &egraph[id].data;
        let mut forms = Vec::new();
        let constant = data.constant.is_some() && self.is_new_constant(anchor, id);
        if !constant {
            forms.extend(self.equals(anchor, value, id).into_iter().map(|v| (0, Form::Value(v))));
        }
        let own = self.own.get(&anchor);
        for node in egraph[id].nodes.iter().take(MAX_FORMS) {
            match self.loaded().head(node) {
                Head::Constant(..) => forms.push((1, Form::New(vec![(id, node.clone())]))),
                Head::Op(_) | Head::Result(_) if own != Some(node) => {
                    let mut plan = Vec::new();
                    let mut busy = vec![id];
                    self.fuel.set(MAX_PLANS);
                    if self.plan_node(anchor, value, id, node, &mut plan, &mut busy) {
                        forms.push((2, Form::New(plan)));
                    }
                }
                _ => {}
            }
        }
        forms
    }

    /// Other values of a class that an op may take instead of its own.
    fn equals(&self, anchor: OpId, value: ValueId, id: Id) -> Vec<ValueId> {
        // What an equal op computes is no news to this one.
        let news = |v: &ValueId| match (
            self.graph.def_op(*v).and_then(|op| self.own.get(&op)),
            self.own.get(&anchor),
        ) {
            (Some(a), Some(b)) => a != b,
            _ => true,
        };
        let near = self.near(anchor);
        let all = self.values.get(&id).map_or(&[][..], Vec::as_slice);
        // Those right before the op, and the first of all, are enough to choose from.
        let before =
            all.partition_point(|v| self.place(*v) < self.loaded().order.get(&anchor).map_or(0, |n| n + 1));
        let last = &all[before.saturating_sub(MAX_EQUALS)..before];
        let first = &all[..before.saturating_sub(MAX_EQUALS).min(MAX_EQUALS)];
        let own_class = |v: &&ValueId| {
            self.loaded().class_of.get(*v).is_some_and(|own| self.loaded().egraph.find(*own) == id)
        };
        let mut values: Vec<ValueId> = near
            .iter()
            .filter(own_class)
            .chain(first)
            .chain(last)
            .copied()
            .filter(|v| self.at_hand(*v, value, anchor) && news(v))
            .collect();
        // Of equal values the one that the op has among its operands' operands is meant, else the last before it.
        values.sort_by_key(|v| (!near.contains(v), std::cmp::Reverse(self.place(*v))));
        values.dedup();
        values.retain(|v| !self.local || near.contains(v));
        values.truncate(8);
        values
    }

    /// Where a value is made: 0 for parameters of blocks.
    fn place(&self, value: ValueId) -> usize {
        self.graph.def_op(value).and_then(|op| self.loaded().order.get(&op)).map_or(0, |n| n + 1)
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

    /// Plans a node over visible values; false if it cannot be built.
    fn plan_node(
        &self,
        anchor: OpId,
        value: ValueId,
        id: Id,
        node: &Node,
        plan: &mut Vec<(Id, Node)>,
        busy: &mut Vec<Id>,
    ) -> bool {
        match self.loaded().head(node) {
            Head::Op(OpHead { pin: Some(_), .. }) | Head::Leaf(..) => return false,
            // One of several results would need the whole op anew.
            Head::Result(_) => return false,
            _ => {}
        }
        // Ways to build one form are tried up to a count: they may be as many as a power of the depth.
        let fuel = self.fuel.get();
        self.fuel.set(fuel.saturating_sub(1));
        if busy.len() > MAX_DEPTH || fuel == 0 {
            return false;
        }
        for child in &node.children {
            let child = self.loaded().egraph.find(*child);
            if busy.contains(&child) || !self.plan_class(anchor, value, child, plan, busy) {
                return false;
            }
        }
        if !plan.iter().any(|(known, _)| *known == id) {
            plan.push((id, node.clone()));
        }
        true
    }

    fn plan_class(
        &self,
        anchor: OpId,
        value: ValueId,
        id: Id,
        plan: &mut Vec<(Id, Node)>,
        busy: &mut Vec<Id>,
    ) -> bool {
        if self.visible(id, value, anchor).is_some() || plan.iter().any(|(known, _)| *known == id) {
            return true;
        }
        busy.push(id);
        let mut best: Option<(u64, Vec<(Id, Node)>)> = None;
        for node in &self.loaded().egraph[id].nodes {
            let mut longer = plan.clone();
            if self.plan_node(anchor, value, id, node, &mut longer, busy) {
                let cost = longer.iter().map(|(id, node)| self.node_cost(*id, node)).sum();
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, longer));
                }
            }
        }
        busy.pop();
        match best {
            Some((_, longer)) => {
                *plan = longer;
                true
            }
            None => false,
        }
    }

    /// The first value of a class that is visible at a place.
    fn visible(&self, id: Id, value: ValueId, anchor: OpId) -> Option<ValueId> {
        let id = self.loaded().egraph.find(id);
        let ok = |v: &ValueId| {
            *v != value
                && self.graph.def_op(*v).is_none_or(|op| !self.is_gone.contains(&op) && op != anchor)
                && self.graph.is_visible(*v, anchor)
        };
        // The operands that the op has already stay what they are.
        let is_in = |v: &ValueId| {
            self.loaded().class_of.get(v).is_some_and(|own| self.loaded().egraph.find(*own) == id)
        };
        let mine = self.graph.operands(anchor).iter().copied().find(|v| is_in(v) && ok(v));
        if self.local && mine.is_none() && self.loaded().egraph[id].data.constant.is_some() {
            // A constant that the op does not know is a new one.
            return self.near(anchor).into_iter().find(|v| is_in(v) && ok(v));
        }
        mine.or_else(|| self.values.get(&id)?.iter().copied().take(MAX_EQUALS).find(ok))
    }

    fn node_cost(&self, id: Id, node: &Node) -> u64 {
        let Some(head) = op_of(self.loaded(), node) else { return 0 };
        let egraph = &self.loaded().egraph;
        let operands: Vec<&Type> = node.children.iter().map(|c| &egraph[egraph.find(*c)].data.ty).collect();
        self.model.cost(&head.op, &operands, &egraph[egraph.find(id)].data.ty)
    }

    fn form_cost(&self, form: &Form) -> u64 {
        match form {
            Form::Value(_) => 0,
            Form::New(plan) => plan.iter().map(|(id, node)| self.node_cost(*id, node)).sum(),
        }
    }

    /// The cost of all ops that nobody needs any more once the value has the form.
    fn saved(&mut self, op: OpId, value: ValueId, form: &Form) -> u64 {
        let mut kept: HashSet<ValueId> = HashSet::new();
        match form {
            Form::Value(v) => {
                kept.insert(*v);
            }
            Form::New(plan) => {
                for child in plan.iter().flat_map(|(_, node)| &node.children) {
                    kept.extend(self.visible(*child, value, op));
                }
            }
        }
        let mut dead: HashSet<OpId> = HashSet::new();
        let mut work = vec![op];
        let mut saved = 0;
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
            saved += self.op_cost(candidate).0;
            work.extend(self.graph.operands(candidate).iter().filter_map(|v| self.graph.def_op(*v)));
        }
        saved
    }

    /// A value that is gone is no form of its class any more.
    fn forget(&mut self, value: ValueId) {
        let place = self.place(value);
        let Some(id) = self.loaded().class_of.get(&value).map(|id| self.loaded().egraph.find(*id)) else {
            return;
        };
        let order = |v: &ValueId| {
            self.graph.def_op(*v).and_then(|op| self.run.loaded.order.get(&op)).map_or(0, |n| n + 1)
        };
        if let Some(all) = self.values.get_mut(&id) {
            let start = all.partition_point(|v| order(v) < place);
            if let Some(at) = all[start..].iter().take_while(|v| order(v) == place).position(|v| *v == value)
            {
                all.remove(start + at);
            }
        }
    }

    /// Erases an op that nobody needs any more, and what only it needed.
    fn sweep(&mut self, op: OpId) {
        let mut work = vec![op];
        while let Some(op) = work.pop() {
            if self.is_gone.contains(&op)
                || self.graph.results(op).iter().any(|v| self.graph.has_uses(*v))
                || !self.graph.nested_blocks(op).is_empty()
                || !self.op_cost(op).1
                || self.graph.parent(op).is_none()
            {
                continue;
            }
            let operands = self.graph.operands(op).to_vec();
            self.graph.set_operands(op, &[]);
            self.gone.push(op);
            self.is_gone.insert(op);
            for value in self.graph.results(op) {
                self.forget(value);
            }
            work.extend(operands.iter().filter_map(|v| self.graph.def_op(*v)));
        }
    }

    // --- identity ---

    fn identity(&self) -> Identity<'_> {
        Identity {
            graph: self.graph,
            registry: self.registry,
            aliases: self.aliases,
            leaving: &self.leaving,
            first_new: self.first_new,
        }
    }

    /// Whether a value may take a form without anybody telling by identity.
    fn may_become(&self, value: ValueId, form: &Form) -> bool {
        if !AliasDb::is_mutable_type(self.graph.ty(value)) {
            return true;
        }
        let same = self.run.same_object.contains(&value);
        match form {
            Form::Value(other) => self.identity().may_be_value(value, *other, same),
            Form::New(plan) => {
                let Some((_, root)) = plan.last() else { return false };
                let Some(head) = op_of(self.loaded(), root) else {
                    return !self.identity().leaves(value);
                };
                let Some(anchor) = self.graph.def_op(value) else { return false };
                let children = plan.iter().flat_map(|(_, node)| &node.children);
                let at_hand: Vec<ValueId> =
                    children.filter_map(|id| self.visible(*id, value, anchor)).collect();
                let shows = shows_operand(&head.op);
                self.identity().may_be_made(value, shows, &at_hand, same)
                    && ((shows && same) || !self.plan_is_seen(value, anchor, plan))
            }
        }
    }

    /// Whether somebody could tell by strides that a plan makes a value.
    fn plan_is_seen(&self, value: ValueId, anchor: OpId, plan: &[(Id, Node)]) -> bool {
        let egraph = &self.loaded().egraph;
        let mut orders: HashMap<Id, Order> = HashMap::new();
        let mut last = None;
        for (class, node) in plan {
            let Some(head) = op_of(self.loaded(), node) else { continue };
            let tensors =
                node.children.iter().map(|c| egraph.find(*c)).filter(|c| egraph[*c].data.ty.is_tensor());
            let operands = tensors.map(|c| match (orders.get(&c), self.visible(c, value, anchor)) {
                (Some(order), _) => order.clone(),
                (None, Some(known)) => self.identity().order_of(known),
                (None, None) => Order::Of(value),
            });
            let order = self.identity().order_of_made(&head.op, operands.collect(), value);
            orders.insert(egraph.find(*class), order.clone());
            last = Some(order);
        }
        last.is_some_and(|order| self.identity().made_layout_is_seen(value, order))
    }

    // --- writing ---

    fn write(&mut self, anchor: OpId, value: ValueId, id: Id, form: &Form) -> Option<ValueId> {
        let plan = match form {
            Form::Value(v) => return Some(*v),
            Form::New(plan) => plan,
        };
        let mut made: HashMap<Id, ValueId> = HashMap::new();
        let location = self.graph.location_id(anchor);
        for (class, node) in plan {
            let ty = if *class == id {
                self.graph.ty(value).clone()
            } else {
                self.loaded().egraph[self.loaded().egraph.find(*class)].data.ty.clone()
            };
            let new = match self.loaded().head(node).clone() {
                Head::Constant(ty, attr) => {
                    let op = self.graph.create(Symbol::new("prim::Constant"), &[], &[ty]);
                    if let Some(attr) = attr {
                        self.graph.set_attr(op, "value", attr);
                    }
                    op
                }
                Head::Op(head) => {
                    let mut operands = Vec::with_capacity(node.children.len());
                    for child in &node.children {
                        let child = self.loaded().egraph.find(*child);
                        let at_hand = made.get(&child).copied();
                        operands.push(at_hand.or_else(|| self.visible(child, value, anchor))?);
                    }
                    let ty = if matches!(ty.kind(), TypeKind::Any) { head.ty.clone() } else { ty };
                    let op = self.graph.create(head.op.name(), &operands, &[ty]);
                    for (name, attr) in head.attributes {
                        self.graph.set_attr(op, name, attr);
                    }
                    self.graph.set_location_id(op, location);
                    op
                }
                Head::Leaf(..) | Head::Result(_) => return None,
            };
            self.graph.insert_before(new, anchor);
            let result = self.graph.result(new, 0)?;
            made.insert(self.loaded().egraph.find(*class), result);
        }
        made.get(&id).copied()
    }
}

/// Whether an op's result may show the memory of an operand.
pub(super) fn shows_operand(row: &Op) -> bool {
    let marked = row.marked_schema().is_ok_and(|s| s.returns.iter().any(|r| r.alias.is_some()));
    marked || matches!(row.def().family, Family::View)
}
