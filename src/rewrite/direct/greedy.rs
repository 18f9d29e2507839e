//! The yardstick: the same rules applied greedily, as most compilers do. A worklist of ops; at each op the rules by
//! benefit, then by their order in the text; the first that matches and does not cost more is taken at once and
//! never taken back. Unused ops are erased. Nothing here depends on a clock.

use super::graph_match::{Bound, Matcher, Names, Subst};
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::dialects::{Op, Registry, resolve};
use crate::ir::{Attr, Graph, Module, NoClasses, OpId, Symbol, Type, ValueId, is_subtype_of};
use crate::rewrite::cost::cost_of;
use crate::rewrite::egraph::enter::{in_language, load};
use crate::rewrite::egraph::matching::computed;
use crate::rewrite::egraph::saturate::{is_same_object, mentions, only_views};
use crate::rewrite::explain::why_not;
use crate::rewrite::extract::identity::{Identity, Order, shows_operand};
use crate::rewrite::load::compile::result_type;
use crate::rewrite::load::condition;
use crate::rewrite::load::rule::{CompiledRule, Term};
use crate::rewrite::report::Questions;
use crate::rewrite::report::{Report, Settings};
use hashbrown::{HashMap, HashSet};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

/// Ops that a replacement may free, at most, when its worth is counted.
const MAX_FREED: usize = 256;

/// Simplifies a graph greedily. Takes as many rewrites at most as the budget allows matches and the graph has ops.
/// What is asked is answered in the report.
pub fn simplify_greedily(
    graph: &mut Graph,
    registry: &Registry,
    module: Option<&Module>,
    rules: &[CompiledRule],
    settings: &Settings,
    questions: &Questions,
) -> Result<Report> {
    let aliases = AliasDb::new(registry, module, graph);
    let ops = graph.op_count();
    let original = questions.why_not.is_some().then(|| graph.clone());
    let mut driver = Driver {
        questions: questions.clone(),
        refused: HashSet::new(),
        lists: registry.overloads(Symbol::new("prim::ListConstruct")).first().cloned(),
        by_root: by_root(rules, |rule| {
            // A rule in question is matched, so that reports can say where its contract prevented it.
            !rule.writes
                && (settings.contract.admits(rule.contract) || questions.why_not.as_ref() == Some(&rule.name))
        }),
        left: settings.budget.matches.max(ops).saturating_mul(2),
        leaving: HashSet::new(),
        rows: RefCell::default(),
        queue: VecDeque::new(),
        queued: HashSet::new(),
        gone: Vec::new(),
        is_gone: HashSet::new(),
        constants: HashMap::new(),
        report: Report { rounds: 1, ..Report::default() },
        graph,
        registry,
        rules,
        aliases,
        settings: *settings,
    };
    driver.report.nodes.0 = ops;
    driver.report.cost.0 = driver.total();
    driver.run();
    driver.report.cost.1 = driver.total();
    driver.report.nodes.1 = driver.graph.op_count();
    let mut report = driver.report;
    if let (Some(original), Some(name), true) = (original, &questions.why_not, report.why_not.is_empty()) {
        let aliases = AliasDb::new(registry, module, &original);
        let loaded = load(&original, registry, &aliases);
        report.why_not = why_not::unmatched(&original, &loaded, rules, name, settings.contract);
    }
    Ok(report)
}

/// Rules by the row at their root, those that save most first.
fn by_root(rules: &[CompiledRule], wanted: impl Fn(&CompiledRule) -> bool) -> HashMap<usize, Vec<usize>> {
    let mut found: HashMap<usize, Vec<usize>> = HashMap::new();
    for (n, rule) in rules.iter().enumerate().filter(|(_, rule)| wanted(rule)) {
        if let Term::Op(root) = &rule.left {
            found.entry(root.op.id()).or_default().push(n);
        }
    }
    let benefit = |n: &usize| ops_of(&rules[*n].left) - ops_of(&rules[*n].right);
    for rules in found.values_mut() {
        rules.sort_by_key(|n| (-benefit(n), *n));
    }
    found
}

fn ops_of(term: &Term) -> i64 {
    match term {
        Term::Op(node) => {
            1 + node.operands.iter().chain(node.blocks.iter().flatten()).map(ops_of).sum::<i64>()
        }
        Term::List(_, items) => items.iter().map(ops_of).sum(),
        _ => 0,
    }
}

/// Why a match comes to nothing.
pub(super) enum Reason {
    /// The condition of this number.
    Condition(usize),
    /// The rule promises less than the contract in force, as text.
    Contract(String),
    /// The right side would read contents that change.
    Written,
    /// An operand of the right side is not there yet.
    OutOfSight,
    /// The change would be observable.
    Identity,
    /// What it would save, and cost.
    NoGain(u64, u64),
    /// The arithmetic of the rule fails.
    NoResult,
}

pub(super) struct Driver<'a> {
    pub(in crate::rewrite) graph: &'a mut Graph,
    pub(in crate::rewrite) registry: &'a Registry,
    rules: &'a [CompiledRule],
    by_root: HashMap<usize, Vec<usize>>,
    aliases: AliasDb,
    pub(in crate::rewrite) lists: Option<Op>,
    leaving: HashSet<ValueId>,
    /// Rows of ops that rules may read.
    rows: RefCell<HashMap<OpId, Option<Op>>>,
    queue: VecDeque<OpId>,
    queued: HashSet<OpId>,
    /// Ops without use; they go at the end, so that no handle is given out again.
    gone: Vec<OpId>,
    is_gone: HashSet<OpId>,
    /// Constants that rules made, at the start of the function.
    constants: HashMap<(Type, String), ValueId>,
    settings: Settings,
    /// Rewrites that may still be done.
    left: usize,
    pub(in crate::rewrite) report: Report,
    /// Requested information.
    pub(in crate::rewrite) questions: Questions,
    /// Matches that came to nothing, each once.
    pub(in crate::rewrite) refused: HashSet<(ValueId, String)>,
}

impl Driver<'_> {
    fn run(&mut self) {
        for op in self.graph.all_ops() {
            self.push(op);
        }
        while let Some(op) = self.queue.pop_front() {
            self.queued.remove(&op);
            if self.is_gone.contains(&op) {
                continue;
            }
            self.sweep(op);
            if self.is_gone.contains(&op) || self.graph.kind(op) == "prim::Constant" {
                continue;
            }
            if self.left == 0 {
                self.report.stopped_by = Some("matches");
                break;
            }
            self.visit(op);
        }
        for op in std::mem::take(&mut self.gone) {
            self.graph.erase(op);
        }
    }

    fn push(&mut self, op: OpId) {
        if self.graph.parent(op).is_some() && self.queued.insert(op) {
            self.queue.push_back(op);
        }
    }

    fn total(&self) -> u64 {
        let ops = self.graph.all_ops();
        ops.into_iter().map(|op| cost_of(self.registry, self.graph, self.settings.cost, op).0).sum()
    }

    /// The row of an op if rules may read it.
    fn row(&self, op: OpId) -> Option<Op> {
        if let Some(known) = self.rows.borrow().get(&op) {
            return known.clone();
        }
        let row = in_language(self.graph, self.registry, &self.aliases, op);
        self.rows.borrow_mut().insert(op, row.clone());
        row
    }

    /// Takes the first rule that is worth it at one of the op's results.
    fn visit(&mut self, op: OpId) {
        let row = match self.graph.kind(op) == "prim::If" {
            true => resolve(self.registry, self.graph, op).ok(),
            false => self.row(op),
        };
        let Some(row) = row else { return };
        let Some(rules) = self.by_root.get(&row.id()).cloned() else { return };
        for (which, value) in self.graph.results(op).into_iter().enumerate() {
            if !self.graph.has_uses(value) {
                continue;
            }
            if rules.iter().any(|n| self.try_rule(*n, op, which, value)) {
                return;
            }
        }
    }

    fn try_rule(&mut self, n: usize, op: OpId, which: usize, value: ValueId) -> bool {
        if self.settings.replacements.is_some_and(|most| self.report.replaced >= most) {
            return false;
        }
        let rules = self.rules;
        let rule = &rules[n];
        let Term::Op(root) = &rule.left else { return false };
        let row = |op| self.row(op);
        let matcher = Matcher { graph: self.graph, lists: self.lists.as_ref(), row: &row, inside: None };
        let found = matcher.result(root, op, which, &Subst::default());
        for subst in &found {
            let reason = match self.obstacle(rule, value, subst) {
                Some(reason) => reason,
                None => match self.rewrite(n, op, value, subst) {
                    Ok(()) => return true,
                    Err(reason) => reason,
                },
            };
            self.refuse(rule, value, subst, &reason);
        }
        false
    }

    /// A condition that does not hold, or something that is read and written.
    fn obstacle(&self, rule: &CompiledRule, value: ValueId, subst: &Subst) -> Option<Reason> {
        let names = Names { graph: self.graph, subst, root: value, lists: self.lists.as_ref(), count: None };
        if let Some(n) = rule.conditions.iter().position(|c| condition::holds(c, &names) != Some(true)) {
            return Some(Reason::Condition(n));
        }
        if let Some(reason) = rule.weaker_than(self.settings.contract) {
            return Some(Reason::Contract(reason));
        }
        let written =
            |v: &ValueId| AliasDb::is_mutable_type(self.graph.ty(*v)) && self.aliases.has_writers(*v);
        let bound_is_written = |bound: &Bound| match bound {
            Bound::One(v) => written(v),
            Bound::Many(all) => all.iter().any(written),
        };
        let reads = !only_views(&rule.right)
            && subst.0.iter().any(|(name, b)| mentions(&rule.right, name) && bound_is_written(b));
        reads.then_some(Reason::Written)
    }

    // --- rewriting ---

    fn rewrite(&mut self, n: usize, op: OpId, value: ValueId, subst: &Subst) -> Result<(), Reason> {
        let rules = self.rules;
        let rule = &rules[n];
        let values = self.values_of(&rule.right, subst);
        if values.contains(&value) || !values.iter().all(|v| self.graph.is_visible(*v, op)) {
            return Err(Reason::OutOfSight);
        }
        if !self.may_become(rule, value, &values, subst) {
            return Err(Reason::Identity);
        }
        let (cost, saved) = (self.cost_of_term(&rule.right, subst, value), self.saved(op, value, &values));
        // Rules that save nothing are taken where they are written from left to right.
        let backwards = rule.name.ends_with("/back");
        if cost > saved || cost == saved && (backwards || ops_of(&rule.right) >= ops_of(&rule.left)) {
            return Err(Reason::NoGain(saved, cost));
        }
        let ty = self.graph.ty(value).clone();
        let before = self.questions.any().then(|| self.before(rule, op, value, subst));
        let Some(new) = self.build(&rule.right, subst, op, Some(&ty), value) else {
            return Err(Reason::NoResult);
        };
        if let Some(before) = before {
            self.record(rule, (value, new), before, (saved, cost));
        }
        self.left -= 1;
        self.report.replaced += 1;
        *self.report.fired.entry(Arc::clone(&rule.name)).or_insert(0) += 1;
        if AliasDb::is_mutable_type(&ty) && self.identity().leaves(value) {
            self.leaving.extend([value, new]);
            if matches!(&rule.right, Term::Op(node) if shows_operand(&node.op)) {
                // What it shows leaves with it.
                self.leaving.extend(values.iter().copied());
            }
        }
        let users: Vec<OpId> = self.graph.uses(value).map(|used| used.op).collect();
        self.graph.replace_all_uses(value, new);
        self.sweep(op);
        self.graph.def_op(new).into_iter().for_each(|op| self.push(op));
        users.into_iter().for_each(|op| self.push(op));
        Ok(())
    }

    fn identity(&self) -> Identity<'_> {
        Identity {
            graph: self.graph,
            registry: self.registry,
            aliases: &self.aliases,
            leaving: &self.leaving,
            // New values are registered with the alias analysis.
            first_new: usize::MAX,
            keeps_compared: true,
            stands_for: None,
        }
    }

    fn may_become(&self, rule: &CompiledRule, value: ValueId, values: &[ValueId], subst: &Subst) -> bool {
        if !AliasDb::is_mutable_type(self.graph.ty(value)) {
            return true;
        }
        let same = is_same_object(rule);
        if !same && self.aliases.has_writers(value) {
            return false;
        }
        match &rule.right {
            Term::Variable(name, _) => match subst.get(name) {
                Some(Bound::One(other)) => {
                    let ty = |v: ValueId| self.graph.ty(v).unshaped();
                    is_subtype_of(&ty(*other), &ty(value), &NoClasses)
                        && self.identity().may_be_value(value, *other, same)
                }
                _ => false,
            },
            Term::Op(node) => {
                let shows = shows_operand(&node.op);
                let seen = || {
                    let order = self.order_of_term(&rule.right, subst, value);
                    order.is_some_and(|order| self.identity().made_layout_is_seen(value, order))
                };
                self.identity().may_be_made(value, shows, values, same) && ((shows && same) || !seen())
            }
            _ => !self.identity().leaves(value),
        }
    }

    /// How the elements of a right side's tensor would lie in the place of a value.
    fn order_of_term(&self, term: &Term, subst: &Subst, value: ValueId) -> Option<Order> {
        match term {
            Term::Variable(name, _) => match subst.get(name) {
                Some(Bound::One(v)) if self.graph.ty(*v).is_tensor() => Some(self.identity().order_of(*v)),
                _ => None,
            },
            Term::Op(node) => {
                let operands = node.operands.iter().filter_map(|t| self.order_of_term(t, subst, value));
                Some(self.identity().order_of_made(&node.op, operands.collect(), value))
            }
            _ => None,
        }
    }

    /// The values that a right side takes.
    fn values_of(&self, term: &Term, subst: &Subst) -> Vec<ValueId> {
        let bound = |name: &str| match subst.get(name) {
            Some(Bound::One(v)) => vec![*v],
            Some(Bound::Many(all)) => all.to_vec(),
            None => Vec::new(),
        };
        match term {
            Term::Variable(name, _) | Term::Rest(name, ..) => bound(name),
            Term::Op(node) => node.operands.iter().flat_map(|t| self.values_of(t, subst)).collect(),
            Term::List(_, items) => items.iter().flat_map(|t| self.values_of(t, subst)).collect(),
            Term::Constant(..) | Term::Compute(..) => Vec::new(),
        }
    }

    pub(super) fn cost_of_term(&self, term: &Term, subst: &Subst, value: ValueId) -> u64 {
        let (row, operands, ty) = match term {
            Term::Op(node) => (Some(&node.op), &node.operands, result_type(term)),
            Term::List(_, items) => (self.lists.as_ref(), items, result_type(term)),
            _ => return 0,
        };
        let types: Vec<Type> = operands
            .iter()
            .map(|t| match t {
                Term::Variable(name, ty) => match subst.get(name) {
                    Some(Bound::One(v)) => self.graph.ty(*v).clone(),
                    _ => ty.clone(),
                },
                _ => result_type(t),
            })
            .collect();
        let ty = if ty.unshaped() == self.graph.ty(value).unshaped() { self.graph.ty(value) } else { &ty };
        let own = row.map_or(0, |row| self.settings.cost.cost(row, &types.iter().collect::<Vec<_>>(), ty));
        own + operands.iter().map(|t| self.cost_of_term(t, subst, value)).sum::<u64>()
    }

    /// The cost of what is dead once a value is made from others.
    fn saved(&self, op: OpId, value: ValueId, kept: &[ValueId]) -> u64 {
        let mut dead: Vec<OpId> = Vec::new();
        let mut work = vec![op];
        let mut saved = 0;
        while let Some(candidate) = work.pop() {
            if dead.contains(&candidate) || dead.len() > MAX_FREED {
                continue;
            }
            let (cost, may_go) = cost_of(self.registry, self.graph, self.settings.cost, candidate);
            let unused = self.graph.results(candidate).iter().all(|v| {
                *v == value || !kept.contains(v) && self.graph.uses(*v).all(|u| dead.contains(&u.op))
            });
            if !may_go || !unused || !self.graph.nested_blocks(candidate).is_empty() {
                continue;
            }
            dead.push(candidate);
            saved += cost;
            work.extend(self.graph.operands(candidate).iter().filter_map(|v| self.graph.def_op(*v)));
        }
        saved
    }

    /// Erases a dead op, and what only it needed.
    fn sweep(&mut self, op: OpId) {
        let mut work = vec![op];
        while let Some(op) = work.pop() {
            if self.is_gone.contains(&op)
                || self.graph.parent(op).is_none()
                || self.graph.results(op).iter().any(|v| self.graph.has_uses(*v))
                || !self.graph.nested_blocks(op).is_empty()
                || self.graph.result_count(op) == 0
                || !cost_of(self.registry, self.graph, self.settings.cost, op).1
            {
                continue;
            }
            let operands = self.graph.operands(op).to_vec();
            self.graph.set_operands(op, &[]);
            self.gone.push(op);
            self.is_gone.insert(op);
            for operand in operands {
                let Some(def) = self.graph.def_op(operand) else { continue };
                work.push(def);
                // With one use less more rules may be worth it.
                self.push(def);
            }
        }
    }

    /// Makes the right side before an op.
    fn build(
        &mut self,
        term: &Term,
        subst: &Subst,
        anchor: OpId,
        ty: Option<&Type>,
        root: ValueId,
    ) -> Option<ValueId> {
        let new = match term {
            Term::Variable(name, _) => match subst.get(name)? {
                Bound::One(value) => return Some(*value),
                Bound::Many(_) => return None,
            },
            Term::Rest(..) => return None,
            Term::Constant(ty, attr) => return self.constant(ty, attr.as_ref()),
            Term::Compute(expr, ty) => {
                let names = Names { graph: self.graph, subst, root, lists: self.lists.as_ref(), count: None };
                let (ty, attr) = computed(ty, condition::evaluate(expr, &names)?);
                return self.constant(&ty, Some(&attr));
            }
            Term::List(element, items) => {
                let operands = self.operands(items, subst, anchor, root)?;
                let ty = match element.has_free_vars() {
                    false => Type::list(element.clone()),
                    true => Type::list(self.graph.ty(*operands.first()?).unshaped()),
                };
                self.graph.create(self.lists.as_ref()?.name(), &operands, &[ty])
            }
            Term::Op(node) if node.blocks.is_empty() => {
                let operands = self.operands(&node.operands, subst, anchor, root)?;
                let several = node.op.schema().ok()?.returns.iter().map(|r| r.ty.clone());
                let types: Vec<Type> = match (node.result, ty) {
                    (Some(_), _) => several.collect(),
                    (None, Some(ty)) => vec![ty.clone()],
                    (None, None) => vec![result_type(term).unshaped()],
                };
                let op = self.graph.create(node.op.name(), &operands, &types);
                for (name, term) in &node.attributes {
                    if let Term::Constant(_, Some(attr)) = term {
                        self.graph.set_attr(op, *name, attr.clone());
                    }
                }
                op
            }
            Term::Op(_) => return None,
        };
        let location = self.graph.location_id(anchor);
        self.graph.set_location_id(new, location);
        self.graph.insert_before(new, anchor);
        let which = match term {
            Term::Op(node) => node.result.unwrap_or(0),
            _ => 0,
        };
        let results = self.graph.results(new);
        if AliasDb::is_mutable_type(self.graph.ty(root)) {
            // Objects may be known wherever the one that they replace was.
            results.iter().for_each(|value| self.aliases.copy_value(root, *value));
        }
        results.get(which).copied()
    }

    fn operands(
        &mut self,
        terms: &[Term],
        subst: &Subst,
        anchor: OpId,
        root: ValueId,
    ) -> Option<Vec<ValueId>> {
        let mut operands = Vec::new();
        for term in terms {
            match term {
                Term::Rest(name, _, bounds) => {
                    let Bound::Many(all) = subst.get(name)? else { return None };
                    let names =
                        Names { graph: self.graph, subst, root, lists: self.lists.as_ref(), count: None };
                    operands.extend(condition::part(all, bounds.as_deref(), &names)?);
                }
                _ => operands.push(self.build(term, subst, anchor, None, root)?),
            }
        }
        Some(operands)
    }

    /// A constant at the start of the function, one for all uses.
    fn constant(&mut self, ty: &Type, attr: Option<&Attr>) -> Option<ValueId> {
        let ty = if attr.is_none() { Type::none() } else { ty.clone() };
        let is_object = AliasDb::is_mutable_type(&ty);
        let key = (ty.clone(), format!("{attr:?}"));
        if let Some(known) = self.constants.get(&key)
            && self.graph.def_op(*known).is_some_and(|op| !self.is_gone.contains(&op))
            && !is_object
        {
            return Some(*known);
        }
        let op = self.graph.create(Symbol::new("prim::Constant"), &[], &[ty]);
        if let Some(attr) = attr {
            self.graph.set_attr(op, "value", attr.clone());
        }
        match self.graph.first_op(self.graph.root()) {
            Some(first) => self.graph.insert_before(op, first),
            None => return None,
        }
        let value = self.graph.result(op, 0)?;
        self.constants.insert(key, value);
        Some(value)
    }
}
