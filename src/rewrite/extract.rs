//! Extraction: what rules made cheaper is written back.
//!
//! Each value whose class a rule changed is offered what else its class holds: another value that is visible, a
//! constant, or new ops over visible values. Sharing counts: new ops are counted once, and what is saved is every
//! op that nobody needs any more. A value is replaced only if that does not cost more than it saves, so that the
//! result never costs more than the input, and what no rule changed keeps its op, place, name and location.
//! A fresh tensor becomes an alias, or the reverse, only where nobody can tell.

use super::compile::Term;
use super::cost::CostModel;
use super::explain::Link;
use super::language::{Head, Node, OpHead};
use super::load::Loaded;
use super::proof::Proofs;
use super::saturate::{Report, Saturation, Settings, op_of};
use super::why_not::{self, Decision};
use crate::analysis::{AliasDb, facts};
use crate::dialects::{Effects, Family, Op, Registry};
use crate::ir::{Graph, NoClasses, OpId, Symbol, Type, TypeKind, ValueId, is_subtype_of};
use egg::Id;
use hashbrown::{HashMap, HashSet};
use indexmap::IndexMap;

/// Right sides nested deeper are not built.
const MAX_DEPTH: usize = 10;

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
    let mut writer = Writer {
        graph,
        registry,
        aliases,
        run,
        model: settings.cost,
        own,
        produced,
        leaving: HashSet::new(),
        cost: HashMap::new(),
        firings,
        gone: Vec::new(),
        is_gone: HashSet::new(),
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
        let known = facts(self.registry, self.graph, op);
        let stays = Effects::WRITES_WORLD | Effects::RANDOM | Effects::NEVER_RETURNS;
        let may_go = !known.writes && !known.effects.intersects(stays);
        let cost = match &known.op {
            _ if self.graph.kind(op) == "prim::Constant" => 0,
            None => 1,
            Some(row) => {
                let operands: Vec<&Type> =
                    self.graph.operands(op).iter().map(|v| self.graph.ty(*v)).collect();
                let results = self.graph.results(op);
                let none = Type::none();
                let result = results.first().map_or(&none, |v| self.graph.ty(*v));
                self.model.cost(row, &operands, result)
            }
        };
        self.cost.insert(op, (cost, may_go));
        (cost, may_go)
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
            let gain = saved as i64 - cost as i64;
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
        let before = self.shown(op);
        let location = place(self.graph, op);
        let chain = self.chain(value, &form);
        let name = self.graph.display_name(value);
        let new = self.write(op, value, id, &form)?;
        let after = match (&form, self.graph.def_op(new)) {
            (Form::New(_), Some(op)) => self.shown(op),
            _ => format!("%{}", self.graph.display_name(new)),
        };
        if self.leaves(value) {
            self.leaving.insert(new);
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

    /// Whether a rule gave a class a constant of its own, so that none at hand is meant.
    fn is_new_constant(&self, id: Id) -> bool {
        self.firings.get(&id).into_iter().flatten().any(|firing| {
            let rule = &self.run.rules[self.run.firings[*firing].rule];
            matches!(rule.right, Term::Constant(..) | Term::Compute(..))
        })
    }

    /// What else the class of a value holds, with a rank: values before constants before ops.
    fn forms(&self, anchor: OpId, value: ValueId, id: Id) -> Vec<(u8, Form)> {
        let egraph = &self.loaded().egraph;
        let data = &egraph[id].data;
        let mut forms = Vec::new();
        // What an equal op computes is no news to this one.
        let news = |v: &ValueId| match (
            self.graph.def_op(*v).and_then(|op| self.own.get(&op)),
            self.own.get(&anchor),
        ) {
            (Some(a), Some(b)) => a != b,
            _ => true,
        };
        let mut values: Vec<ValueId> =
            data.values.iter().copied().filter(|v| self.at_hand(*v, value, anchor) && news(v)).collect();
        // Of equal values the one that the op has among its operands' operands is meant, else the last before it.
        let near = self.near(anchor);
        let place = |v: &ValueId| {
            self.graph.def_op(*v).and_then(|op| self.loaded().order.get(&op)).map_or(0, |n| n + 1)
        };
        values.sort_by_key(|v| (!near.contains(v), std::cmp::Reverse(place(v))));
        values.truncate(8);
        let constant = data.constant.is_some() && self.is_new_constant(id);
        if !constant {
            forms.extend(values.into_iter().map(|v| (0, Form::Value(v))));
        }
        let own = self.own.get(&anchor);
        for node in &egraph[id].nodes {
            match self.loaded().head(node) {
                Head::Constant(..) => forms.push((1, Form::New(vec![(id, node.clone())]))),
                Head::Op(_) | Head::Result(_) if own != Some(node) => {
                    let mut plan = Vec::new();
                    let mut busy = vec![id];
                    if self.plan_node(anchor, value, id, node, &mut plan, &mut busy) {
                        forms.push((2, Form::New(plan)));
                    }
                }
                _ => {}
            }
        }
        forms
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
        if busy.len() > MAX_DEPTH {
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
        let data = &self.loaded().egraph[self.loaded().egraph.find(id)].data;
        let ok = |v: &ValueId| {
            *v != value
                && self.graph.def_op(*v).is_none_or(|op| !self.is_gone.contains(&op) && op != anchor)
                && self.graph.is_visible(*v, anchor)
        };
        // The operands that the op has already stay what they are.
        let mine = self.graph.operands(anchor).iter().copied().find(|v| data.values.contains(v) && ok(v));
        mine.or_else(|| data.values.iter().copied().find(ok))
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
            if dead.contains(&candidate) || !self.op_cost(candidate).1 {
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
            work.extend(operands.iter().filter_map(|v| self.graph.def_op(*v)));
        }
    }

    // --- identity ---

    fn leaves(&self, value: ValueId) -> bool {
        self.leaving.contains(&value)
            || self
                .graph
                .outputs()
                .iter()
                .any(|output| *output == value || self.aliases.may_contain_alias(*output, value))
    }

    /// Whether nobody can tell that two objects are one.
    fn may_be_one(&self, a: ValueId, b: ValueId) -> bool {
        let written = |v| self.aliases.has_deep_writers(v);
        if written(a) || written(b) {
            return false;
        }
        // What leaves the graph and what may be known outside meet there.
        let (a_leaves, b_leaves) = (self.leaves(a), self.leaves(b));
        let a_is_known = a_leaves || self.aliases.is_wildcard(a);
        let b_is_known = b_leaves || self.aliases.is_wildcard(b);
        let meet = (a_leaves && b_is_known) || (b_leaves && a_is_known);
        !meet
    }

    /// Whether a value may take a form without anybody telling by identity.
    fn may_become(&self, value: ValueId, form: &Form) -> bool {
        if !AliasDb::is_mutable_type(self.graph.ty(value)) {
            return true;
        }
        let same = self.run.same_object.contains(&value);
        match form {
            Form::Value(other) if !AliasDb::is_mutable_type(self.graph.ty(*other)) => true,
            Form::Value(other) => {
                same && self.aliases.may_alias(value, *other) || self.may_be_one(value, *other)
            }
            Form::New(plan) => {
                let Some((_, root)) = plan.last() else { return false };
                let Some(head) = op_of(self.loaded(), root) else { return !self.leaves(value) };
                let was_view = self.graph.def_op(value).is_some_and(|op| {
                    facts(self.registry, self.graph, op).op.is_some_and(|row| shows_operand(&row))
                });
                if !shows_operand(&head.op) && !was_view {
                    return true;
                }
                let anchor = match self.graph.def_op(value) {
                    Some(op) => op,
                    None => return false,
                };
                let mut operands = plan.iter().flat_map(|(_, node)| &node.children);
                same || operands.all(|id| match self.visible(*id, value, anchor) {
                    Some(v) => !AliasDb::is_mutable_type(self.graph.ty(v)) || self.may_be_one(value, v),
                    None => true,
                })
            }
        }
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
fn shows_operand(row: &Op) -> bool {
    let marked = row.schema().is_ok_and(|s| s.returns.iter().any(|r| r.alias.is_some()));
    marked || matches!(row.def().family, Family::View)
}
