//! Extraction: what rules made cheaper is written back.
//!
//! Each value whose class a rule changed is offered what else its class holds: another value that is visible, a
//! constant, or new ops over visible values. Sharing counts: new ops are counted once, and what is saved is every
//! op that is no longer needed. A value is replaced only if that does not cost more than it saves, so that the
//! result never costs more than the input, and what no rule changed keeps its op, place, name and location. Passes
//! over the function follow each other until nothing gets cheaper. A small function is besides searched as a whole
//! (`exact`), and what that chose is taken where it is cheaper still.
//! A fresh tensor becomes an alias, or the reverse, only where this is unobservable.

mod exact;
mod forms;
pub(super) mod identity;

use super::egraph::enter::{Loaded, op_of};
use super::egraph::language::{Head, Node};
use super::egraph::saturate::Saturation;
use super::explain::proof::Proofs;
use super::explain::why_not;
use super::explain::why_not::Decision;
use super::report::{Link, Replacement, Report, Settings, place};
use crate::analysis::AliasDb;
use crate::dialects::Registry;
use crate::ir::{Graph, OpId, Symbol, TypeKind, ValueId};
use crate::rewrite::cost::{CostModel, cost_of};
use egg::Id;
use exact::Problem;
use hashbrown::{HashMap, HashSet};
use identity::{Identity, Order, shows_operand};
use indexmap::IndexMap;
use std::cell::{Cell, RefCell};

/// Times that the whole function is gone through: what one replacement frees may make another one worth it.
const MAX_PASSES: usize = 4;

/// Replaces values by cheaper forms: one after the other, and where the function is small, as a search over all
/// choices says, if that is cheaper still.
pub(super) fn write_back(
    graph: &mut Graph,
    registry: &Registry,
    aliases: &AliasDb,
    run: &Saturation<'_>,
    settings: &Settings,
    report: &mut Report,
) {
    let task = Task::new(graph, registry, aliases, run, settings);
    let searched = !settings.one_by_one && settings.replacements.is_none();
    let problem =
        if searched { Problem::of(graph, run, &task.own, &task.produced, settings.cost) } else { None };
    let original = (problem.is_some() || run.trace.is_some()).then(|| graph.clone());
    let mut done = task.write(graph, None);
    if let (Some(problem), Some(original)) = (problem, &original)
        && let Some(guide) = problem.solve(done.cost.1.saturating_sub(task.rest(original)))
    {
        let mut other = original.clone();
        let better = task.write(&mut other, Some(guide));
        if better.cost.1 < done.cost.1 {
            (*graph, done) = (other, better);
        }
    }
    report.cost = done.cost;
    report.replaced = done.steps.len();
    report.steps = done.steps;
    if let (Some(trace), Some(original)) = (&run.trace, &original) {
        // Values lose their names with their ops.
        report.why_not = why_not::answer(original, run, trace, &done.decisions);
    }
}

/// What all ways to write back have in common.
struct Task<'a, 'r> {
    registry: &'a Registry,
    aliases: &'a AliasDb,
    run: &'a Saturation<'r>,
    settings: &'a Settings,
    /// The node that each op is.
    own: HashMap<OpId, Node>,
    /// The node that each op was before any rule was applied.
    given: HashMap<OpId, &'a Node>,
    /// Right sides of rules.
    produced: HashSet<Node>,
    /// What equations made and no other rule.
    undirected: HashSet<Node>,
    /// Firings by the class that they changed.
    firings: HashMap<Id, Vec<usize>>,
    /// Values by their class.
    values: HashMap<Id, Vec<ValueId>>,
}

/// What came of one way.
struct Done {
    steps: Vec<Replacement>,
    cost: (u64, u64),
    decisions: IndexMap<ValueId, Decision>,
}

impl<'a, 'r> Task<'a, 'r> {
    fn new(
        graph: &Graph,
        registry: &'a Registry,
        aliases: &'a AliasDb,
        run: &'a Saturation<'r>,
        settings: &'a Settings,
    ) -> Task<'a, 'r> {
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
        let equal = run.undirected.iter().map(canonical);
        let undirected = equal.filter(|node| !produced.contains(node)).collect();
        let values = values_by_class(graph, &run.loaded);
        let given = run.loaded.ops.iter().map(|(op, node)| (*op, node)).collect();
        Task { registry, aliases, run, settings, own, given, produced, firings, undirected, values }
    }

    /// The cost of the ops that are in no class.
    fn rest(&self, graph: &Graph) -> u64 {
        let outside = graph.all_ops().into_iter().filter(|op| !self.own.contains_key(op));
        outside.map(|op| cost_of(self.registry, graph, self.settings.cost, op).0).sum()
    }

    fn write(&self, graph: &mut Graph, guide: Option<HashMap<Id, Node>>) -> Done {
        let first_new = graph.value_capacity();
        let mut writer = Writer {
            graph,
            registry: self.registry,
            aliases: self.aliases,
            run: self.run,
            model: self.settings.cost,
            own: self.own.clone(),
            given: &self.given,
            one_by_one: self.settings.one_by_one,
            produced: &self.produced,
            undirected: &self.undirected,
            first_new,
            stale: Vec::new(),
            leaving: HashSet::new(),
            stands_for: HashMap::new(),
            cost: HashMap::new(),
            firings: &self.firings,
            gone: Vec::new(),
            is_gone: HashSet::new(),
            values: self.values.clone(),
            made: HashMap::new(),
            guide,
            memo: RefCell::default(),
            fuel: Cell::new(0),
            proofs: self.run.trace.as_ref().map(|trace| Proofs::new(self.run, trace, &self.own)),
            decisions: IndexMap::new(),
        };
        let before = writer.total();
        let steps = writer.improve_all(self.settings.replacements.unwrap_or(usize::MAX));
        for op in std::mem::take(&mut writer.gone) {
            writer.graph.erase(op);
        }
        let cost = (before, writer.total());
        Done { steps, cost, decisions: writer.decisions }
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

/// The values of each class: what is not an op's result first, then in program order.
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

pub(super) struct Writer<'a, 'r> {
    pub(super) graph: &'a mut Graph,
    registry: &'a Registry,
    aliases: &'a AliasDb,
    pub(super) run: &'a Saturation<'r>,
    pub(super) model: CostModel,
    /// The node that each op is.
    pub(super) own: HashMap<OpId, Node>,
    /// The node that each op was before any rule was applied.
    pub(super) given: &'a HashMap<OpId, &'a Node>,
    /// Ops that became equal stay apart.
    pub(super) one_by_one: bool,
    /// Right sides of rules.
    produced: &'a HashSet<Node>,
    /// What equations made and no other rule.
    pub(super) undirected: &'a HashSet<Node>,
    /// Values from this number on were made here.
    pub(super) first_new: usize,
    /// Tensors that took another's place, and those whose place they took, where ops are replaced one by one.
    stale: Vec<ValueId>,
    /// Values that leave the function in the place of others.
    leaving: HashSet<ValueId>,
    /// The value that was replaced by one made here, by the new one: who knew the old one knows the new one.
    stands_for: HashMap<ValueId, ValueId>,
    /// Costs of ops that exist.
    cost: HashMap<OpId, (u64, bool)>,
    /// Firings by the class that they changed.
    pub(super) firings: &'a HashMap<Id, Vec<usize>>,
    /// Dead ops. They lose their operands at once and go at the end: a handle that is given
    /// out again would be taken for what it was.
    gone: Vec<OpId>,
    pub(super) is_gone: HashSet<OpId>,
    /// Values of each class that are still there, in program order.
    pub(super) values: HashMap<Id, Vec<ValueId>>,
    /// Of values that were made here: their class, and the place of the op that they were made for.
    pub(super) made: HashMap<ValueId, (Id, usize)>,
    /// The node that each class is to be made by, where a search said so.
    pub(super) guide: Option<HashMap<Id, Node>>,
    /// What is visible at the op that is examined.
    pub(super) memo: RefCell<HashMap<Id, Option<ValueId>>>,
    /// Nodes that may still be tried for the form that is being planned.
    pub(super) fuel: Cell<usize>,
    /// Paths through classes, if requested.
    proofs: Option<Proofs<'a>>,
    /// Outcomes of values, if requested.
    decisions: IndexMap<ValueId, Decision>,
}

/// A form that a value may take.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// Another value.
    Value(ValueId),
    /// New ops, each after those it takes; the last is the root.
    New(Vec<(Id, Node)>),
}

impl Writer<'_, '_> {
    pub(super) fn loaded(&self) -> &Loaded {
        &self.run.loaded
    }

    /// What the whole function costs.
    fn total(&mut self) -> u64 {
        self.cost.clear();
        let ops = self.graph.all_ops();
        ops.into_iter().map(|op| self.op_cost(op).0).sum()
    }

    /// What an op costs, and whether it may be erased when unused.
    pub(super) fn op_cost(&mut self, op: OpId) -> (u64, bool) {
        if let Some(known) = self.cost.get(&op) {
            return *known;
        }
        let known = cost_of(self.registry, self.graph, self.model, op);
        self.cost.insert(op, known);
        known
    }

    /// Goes through the function until nothing gets cheaper.
    fn improve_all(&mut self, most: usize) -> Vec<Replacement> {
        let mut steps = Vec::new();
        let graph = &*self.graph;
        let is_idle = |op: &OpId| !graph.results(*op).iter().any(|v| graph.has_uses(*v));
        let idle: HashSet<OpId> = graph.all_ops().into_iter().filter(is_idle).collect();
        for pass in 0..MAX_PASSES {
            let before = steps.len();
            for op in self.graph.all_ops() {
                // A constant is what it is.
                if self.is_gone.contains(&op) || self.graph.kind(op) == "prim::Constant" {
                    continue;
                }
                for value in self.graph.results(op) {
                    if steps.len() >= most || self.is_gone.contains(&op) {
                        break;
                    }
                    steps.extend(self.improve(op, value, pass == 0));
                }
            }
            // What a search chose is taken as a whole; what is left of the old forms goes with the last of it. What
            // was idle before is for another pass.
            if self.guide.is_some() {
                let ops = self.graph.all_ops().into_iter().rev();
                ops.filter(|op| !idle.contains(op)).for_each(|op| self.sweep(op));
                break;
            }
            if steps.len() == before {
                break;
            }
        }
        steps
    }

    /// Replaces a value if its class has a better form; `even`: or one that is as good and that a rule prefers.
    fn improve(&mut self, op: OpId, value: ValueId, even: bool) -> Option<Replacement> {
        let id = self.class(value)?;
        if !self.graph.has_uses(value) || !self.loaded().egraph[id].data.touched && !self.has_news(op, id) {
            return None;
        }
        self.memo.borrow_mut().clear();
        let (saved, cost, form) = match self.guide {
            Some(_) => self.guided(op, value, id)?,
            None => self.best(op, value, id, even)?,
        };
        self.replace(op, value, id, &form, (saved, cost))
    }

    /// What a search chose for a value, if that is not what it is.
    fn guided(&mut self, op: OpId, value: ValueId, id: Id) -> Option<(u64, u64, Form)> {
        let form = self.guided_form(op, value, id).filter(|form| self.may_become(value, form))?;
        let freed = self.freed(op, value, &[]);
        let saved = freed.iter().map(|op| self.op_cost(*op).0).sum();
        Some((saved, self.form_cost(&form), form))
    }

    /// The form that saves most, if it is worth it, with what it saves and costs.
    fn best(&mut self, op: OpId, value: ValueId, id: Id, even: bool) -> Option<(u64, u64, Form)> {
        let (mut best, mut told_apart) = self.choose(op, value, id, false);
        if best.is_none() && self.proofs.is_some() {
            // Reports include forms that cost more, too.
            (best, told_apart) = self.choose(op, value, id, true);
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
        let preferred = even && (rank < 2 || rank == 2 && !own_is_produced);
        (gain > 0 || gain == 0 && preferred).then_some((saved, cost, form))
    }

    /// The best form, as gain, rank, what it saves and costs; and whether one could be distinguished. `all`: also forms
    /// that cost more than they can save.
    #[expect(clippy::type_complexity, reason = "a tuple that is compared by its first parts")]
    fn choose(
        &mut self,
        op: OpId,
        value: ValueId,
        id: Id,
        all: bool,
    ) -> (Option<(i64, u8, u64, u64, Form)>, bool) {
        let freed = self.freed(op, value, &[]);
        let most: u64 = freed.iter().map(|op| self.op_cost(*op).0).sum();
        let limit = if all { u64::MAX } else { most };
        let mut best: Option<(i64, u8, u64, u64, Form)> = None;
        let mut told_apart = false;
        for (rank, form) in self.forms(op, value, id, limit) {
            if !self.may_become(value, &form) {
                told_apart = true;
                continue;
            }
            let cost = self.form_cost(&form);
            let kept = self.kept(op, value, &form);
            let is_freed = |v: &ValueId| self.graph.def_op(*v).is_some_and(|op| freed.contains(&op));
            let saved = match kept.iter().any(is_freed) {
                true => self.freed(op, value, &kept).iter().map(|op| self.op_cost(*op).0).sum(),
                false => most,
            };
            let mut gain = saved as i64 - cost as i64;
            if self.one_by_one {
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
        (best, told_apart)
    }

    /// Puts a form in the place of a value.
    fn replace(
        &mut self,
        op: OpId,
        value: ValueId,
        id: Id,
        form: &Form,
        (saved, cost): (u64, u64),
    ) -> Option<Replacement> {
        if let (true, Form::Value(other)) = (self.one_by_one && !self.run.same_object.contains(&value), form)
        {
            self.stale.extend([value, *other].into_iter().filter(|v| self.graph.ty(*v).is_tensor()));
        }
        let before = self.shown(op);
        let location = place(self.graph, op);
        let chain = self.chain(value, form);
        let name = self.graph.display_name(value);
        let new = self.write(op, value, id, form)?;
        let after = match (form, self.graph.def_op(new)) {
            (Form::New(_), Some(op)) => self.shown(op),
            _ => format!("%{}", self.graph.display_name(new)),
        };
        if AliasDb::is_mutable_type(self.graph.ty(value)) && self.identity().leaves(value) {
            self.leaving.extend([value, new]);
            if let Form::New(plan) = form {
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
        if self.guide.is_none() {
            self.sweep(op);
        }
        let mut rules = Vec::new();
        if let Form::New(plan) = form {
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

    /// Notes why a value is not replaced, if requested.
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
            Some(attr) => format!("[value={}]", super::load::shown::attr_text(attr)),
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

    /// A value that is gone is not a form of its class any more.
    fn forget(&mut self, value: ValueId) {
        let place = self.place(value);
        let Some(id) = self.class(value) else { return };
        let Some(all) = self.values.get(&id) else { return };
        let start = all.partition_point(|v| self.place(*v) < place);
        let at = all[start..].iter().take_while(|v| self.place(**v) == place).position(|v| *v == value);
        if let (Some(at), Some(all)) = (at, self.values.get_mut(&id)) {
            all.remove(start + at);
        }
    }

    /// Erases a dead op, and what only it needed.
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
            keeps_compared: !self.one_by_one,
            stands_for: Some(&self.stands_for),
        }
    }

    /// Whether a value may take a form without an observable change of identity.
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

    /// Whether it is observable through strides that a plan makes a value.
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
            let class = self.loaded().egraph.find(*class);
            made.insert(class, result);
            self.note(class, node, result, anchor);
        }
        let new = made.get(&id).copied()?;
        let shows = plan
            .last()
            .and_then(|(_, root)| op_of(self.loaded(), root))
            .is_some_and(|h| shows_operand(&h.op));
        if !shows {
            self.stands_for.insert(new, value);
        }
        Some(new)
    }

    /// What was made may be used again, by what comes after it.
    fn note(&mut self, class: Id, node: &Node, value: ValueId, anchor: OpId) {
        let place = self.order_of(anchor);
        self.made.insert(value, (class, place));
        if let Some(op) = self.graph.def_op(value) {
            let node = self.loaded().canonical(node);
            if matches!(self.loaded().head(&node), Head::Op(_)) {
                self.own.insert(op, node);
            }
        }
        let all = self.values.get(&class).map_or(&[][..], Vec::as_slice);
        let at = all.partition_point(|v| self.place(*v) < place);
        self.values.entry(class).or_default().insert(at, value);
    }
}
