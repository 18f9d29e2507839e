//! The driver of directed groups: each op once, in program order, and at each the first rule of the group that matches and
//! whose conditions hold. Its right side is taken, whatever it costs and whatever the ops do besides computing: such a group is
//! a pass whose result is known, as PyTorch has many. Ops that rules make are not revisited. A right side stands where
//! the root stood, so that a match is taken only if nothing between an inner op and the root writes to what that op takes or
//! gives. Who asks for it limits how many rewrites are done; this driver does not know why.

use super::graph_match::{Bound, Matcher, Names, Subst, constant_of};
use crate::analysis::AliasDb;
use crate::dialects::{Effects, Op, Registry, resolve};
use crate::ir::{Attr, Graph, Module, OpId, Symbol, Type, ValueId};
use crate::rewrite::egraph::matching::computed;
use crate::rewrite::load::compile::result_type;
use crate::rewrite::load::condition;
use crate::rewrite::load::named::form;
use crate::rewrite::load::rule::{CompiledRule, OpNode, Term};
use hashbrown::{HashMap, HashSet};
use indexmap::IndexMap;
use smallvec::{SmallVec, smallvec};
use std::cell::OnceCell;
use std::sync::Arc;

/// What a matched op may do and still be erased with the match: nothing observable.
const HARMLESS: Effects = Effects::MAY_RAISE.union(Effects::IDENTITY);
/// The name under which ops inside of a match are noted; rules cannot write it.
const INSIDE: &str = "inside of the match";

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Replaced {
    /// How many terms were replaced.
    pub count: usize,
    /// Whether an op of the outermost block was.
    pub outermost: bool,
    /// How often each rule was taken, in the order of the first time.
    pub fired: IndexMap<Arc<str>, usize>,
}

/// Decides whether a rewrite may be done, given the rule and the op at its root.
pub type Ask<'a> = dyn FnMut(&Graph, &CompiledRule, OpId) -> bool + 'a;

/// Replaces what rules of a directed group match. The matched op is erased, with the ops of the match that only it used; with
/// `keeps_matched` all of it stays, unused.
pub fn replace(
    graph: &mut Graph,
    registry: &Registry,
    module: Option<&Module>,
    rules: &[CompiledRule],
    keeps_matched: bool,
    ask: &mut Ask<'_>,
) -> Replaced {
    let mut by_kind: HashMap<Symbol, Vec<usize>> = HashMap::new();
    for (n, rule) in rules.iter().enumerate() {
        if let Term::Op(root) = &rule.left {
            by_kind.entry(root.op.name()).or_default().push(n);
        }
    }
    let lists = registry.overloads(Symbol::new("prim::ListConstruct")).first().cloned();
    let ops = graph.all_ops();
    let done = Replaced::default();
    let (aliases, gone) = (OnceCell::new(), Vec::new());
    let mut driver = Driver { graph, registry, module, rules, lists, keeps_matched, aliases, gone, done };
    for op in ops {
        let Some(candidates) = by_kind.get(&driver.graph.kind(op)) else { continue };
        if driver.gone.contains(&op) {
            continue;
        }
        let Some(found) = driver.find(op, candidates) else { continue };
        if !ask(driver.graph, found.rule, op) {
            break;
        }
        driver.rewrite(op, &found);
    }
    // Not before the end, so that no handle is given out again.
    for op in std::mem::take(&mut driver.gone) {
        driver.graph.erase(op);
    }
    driver.done
}

struct Driver<'a> {
    graph: &'a mut Graph,
    registry: &'a Registry,
    module: Option<&'a Module>,
    rules: &'a [CompiledRule],
    lists: Option<Op>,
    keeps_matched: bool,
    /// What may be written, found when the first match has ops inside; none where nothing is.
    aliases: OnceCell<Option<AliasDb>>,
    /// Ops that have been replaced.
    gone: Vec<OpId>,
    done: Replaced,
}

/// Where a rule matches.
struct Found<'a> {
    rule: &'a CompiledRule,
    subst: Subst,
    /// What is replaced.
    values: SmallVec<[ValueId; 2]>,
    /// How many results the op has, where all are meant.
    count: Option<usize>,
}

impl<'a> Driver<'a> {
    /// The first match at an op whose conditions hold and whose right side can be made.
    fn find(&self, op: OpId, candidates: &[usize]) -> Option<Found<'a>> {
        let row = |op| resolve(self.registry, self.graph, op).ok();
        let own = row(op)?;
        let inside = Some(Arc::from(INSIDE));
        let matcher = Matcher { graph: self.graph, lists: self.lists.as_ref(), row: &row, inside };
        for rule in candidates.iter().map(|n| &self.rules[*n]) {
            let Term::Op(root) = &rule.left else { continue };
            if !root.op.same(&own) {
                continue;
            }
            let results = self.graph.results(op);
            // What takes a list apart has as many results as the list has elements, one too.
            let several = results.len() > 1 || root.op.schema().is_ok_and(|s| s.is_varret);
            let is_whole = root.result.is_none() && root.blocks.is_empty() && several;
            let matches: Vec<(SmallVec<[ValueId; 2]>, Subst)> = match is_whole {
                true => matcher.whole(root, op).into_iter().map(|subst| (results.clone(), subst)).collect(),
                false => {
                    let at = |which: usize| matcher.result(root, op, which, &Subst::default());
                    let each = results.iter().enumerate();
                    each.flat_map(|(n, value)| at(n).into_iter().map(|s| (smallvec![*value], s))).collect()
                }
            };
            for (values, subst) in matches {
                let count = is_whole.then_some(values.len());
                let found = Found { rule, subst, values, count };
                if self.holds(&found, op) {
                    return Some(found);
                }
            }
        }
        None
    }

    fn holds(&self, found: &Found<'_>, op: OpId) -> bool {
        let Some(names) = self.names(found) else { return false };
        let visible = |value: &ValueId| self.graph.is_visible(*value, op);
        let in_sight = found.subst.0.iter().all(|(name, bound)| match bound {
            // Results of the op itself are not its operands.
            Bound::One(value) => found.values.contains(value) || &**name == INSIDE || visible(value),
            Bound::Many(all) => all.iter().all(visible),
        });
        in_sight
            && found.rule.conditions.iter().all(|c| condition::holds(c, &names) == Some(true))
            && self.can_make(&found.rule.right, &names, found.values.len())
            && self.is_unwritten(found, op)
    }

    /// Whether ops inside of the match would give at the root what they gave where they stand.
    fn is_unwritten(&self, found: &Found<'_>, root: OpId) -> bool {
        let inside = found.subst.0.iter().filter(|(name, _)| &**name == INSIDE);
        let ops = inside.filter_map(|(_, bound)| match bound {
            Bound::One(value) => self.graph.def_op(*value),
            Bound::Many(_) => None,
        });
        ops.filter(|op| *op != root).all(|op| {
            let results = self.graph.results(op);
            let mut values = self.graph.operands(op).iter().chain(&results);
            values.all(|value| self.keeps(*value, op, root))
        })
    }

    /// Whether nothing writes to a value between two ops.
    fn keeps(&self, value: ValueId, from: OpId, to: OpId) -> bool {
        let find = || {
            let aliases = AliasDb::new(self.registry, self.module, self.graph);
            self.graph.all_ops().into_iter().any(|op| aliases.writes(op)).then_some(aliases)
        };
        let Some(aliases) = self.aliases.get_or_init(find) else { return true };
        if !aliases.has_writers(value) {
            return true;
        }
        let (Some(writers), Some(block)) = (aliases.writers(value), self.graph.parent(to)) else {
            return false;
        };
        self.graph.parent(from) == Some(block)
            && writers.into_iter().all(|writer| {
                // Where it stands in their block, or around it.
                let mut at = writer;
                while self.graph.parent(at).is_some_and(|parent| parent != block) {
                    let Some(owner) = self.graph.parent(at).and_then(|parent| self.graph.owner(parent))
                    else {
                        return false;
                    };
                    at = owner;
                }
                let between = self.graph.is_before(from, at) && self.graph.is_before(at, to);
                self.gone.contains(&writer) || !between
            })
    }

    fn names<'n>(&'n self, found: &'n Found<'_>) -> Option<Names<'n>> {
        let root = *found.values.first()?;
        let lists = self.lists.as_ref();
        Some(Names { graph: self.graph, subst: &found.subst, root, lists, count: found.count })
    }

    /// Whether arithmetic and attributes of a right side have a value here, and it gives the right number of them.
    fn can_make(&self, right: &Term, names: &Names<'_>, count: usize) -> bool {
        let gives = match right {
            Term::Op(node) if node.result.is_none() => {
                node.op.schema().is_ok_and(|s| s.is_varret || s.returns.len() == count)
            }
            _ => count == 1,
        };
        let mut fine = gives;
        right.parts(&mut |part| {
            fine &= match part {
                Term::Variable(name, _) => matches!(names.subst.get(name), Some(Bound::One(_))),
                Term::Rest(name, _, bounds) => match names.subst.get(name) {
                    Some(Bound::Many(all)) => condition::part(all, bounds.as_deref(), names).is_some(),
                    _ => false,
                },
                Term::Compute(expr, _) => condition::evaluate(expr, names).is_some(),
                Term::List(..) => self.lists.is_some(),
                Term::Constant(..) => true,
                Term::Op(node) => {
                    node.blocks.is_empty()
                        && node.attributes.iter().all(|(_, term)| attribute(term, names).is_some())
                }
            };
        });
        fine
    }

    fn rewrite(&mut self, op: OpId, found: &Found<'_>) {
        let mut maker = Maker {
            types: found.values.iter().map(|value| self.graph.ty(*value).clone()).collect(),
            graph: self.graph,
            lists: self.lists.as_ref(),
            anchor: op,
            found,
            made: Vec::new(),
        };
        let Some(new) = maker.replacement() else { return };
        for (old, new) in found.values.iter().zip(new) {
            self.graph.replace_all_uses(*old, new);
            if let Some(Some(aliases)) = self.aliases.get_mut() {
                aliases.copy_value(*old, new);
            }
        }
        self.done.count += 1;
        self.done.outermost |= self.graph.parent(op) == Some(self.graph.root());
        *self.done.fired.entry(Arc::clone(&found.rule.name)).or_insert(0) += 1;
        if !self.keeps_matched {
            self.take_away(op, found);
        }
    }

    /// Takes the matched op away if all its results are replaced, and then what only it used of the match.
    fn take_away(&mut self, op: OpId, found: &Found<'_>) {
        if !self.unuse(op) {
            return;
        }
        let inside = found.subst.0.iter().rev().filter(|(name, _)| &**name == INSIDE);
        let mut seen = HashSet::new();
        for (_, bound) in inside {
            let Bound::One(value) = bound else { continue };
            let Some(def) = self.graph.def_op(*value).filter(|def| seen.insert(*def)) else { continue };
            let harmless = resolve(self.registry, self.graph, def).is_ok_and(|row| {
                HARMLESS.contains(row.def().effects) && row.schema().is_ok_and(|s| !s.is_mutable())
            });
            if harmless {
                self.unuse(def);
            }
        }
    }

    /// Lets an op without users use nothing, to be erased at the end. Whether it has none.
    fn unuse(&mut self, op: OpId) -> bool {
        let unused = self.graph.results(op).iter().all(|value| !self.graph.has_uses(*value));
        if unused && !self.gone.contains(&op) {
            self.graph.set_operands(op, &[]);
            self.gone.push(op);
        }
        unused
    }
}

/// The attribute that a term is.
fn attribute(term: &Term, names: &Names<'_>) -> Option<Attr> {
    match term {
        Term::Constant(_, attr) => attr.clone(),
        Term::Compute(expr, _) => condition::evaluate(expr, names),
        Term::Variable(name, _) => match names.subst.get(name)? {
            Bound::One(value) => constant_of(names.graph, *value).map(|(_, attr)| attr),
            Bound::Many(_) => None,
        },
        Term::Rest(..) | Term::Op(_) | Term::List(..) => None,
    }
}

/// Makes a right side before the op at its root.
struct Maker<'m> {
    graph: &'m mut Graph,
    lists: Option<&'m Op>,
    anchor: OpId,
    found: &'m Found<'m>,
    /// Types of what is replaced.
    types: SmallVec<[Type; 2]>,
    /// What was made of each term, by its form: a term that stands twice is made once.
    made: Vec<(String, ValueId)>,
}

impl Maker<'_> {
    /// The values that take the place of the matched ones.
    fn replacement(&mut self) -> Option<SmallVec<[ValueId; 2]>> {
        let found = self.found;
        let right = &found.rule.right;
        for wanted in found.rule.first.iter() {
            let mut named = None;
            right.parts(&mut |part| {
                if named.is_none() && !std::ptr::eq(part, right) && form(part) == *wanted {
                    named = Some(part);
                }
            });
            if let Some(term) = named {
                self.value(term)?;
            }
        }
        match right {
            Term::Op(node) if node.result.is_none() => {
                let types = self.types.clone();
                let op = self.op(node, &types)?;
                Some(self.graph.results(op))
            }
            Term::List(_, items) => {
                let types = self.types.clone();
                Some(smallvec![self.list(items, types.first()?)?])
            }
            _ => Some(smallvec![self.value(right)?]),
        }
    }

    fn value(&mut self, term: &Term) -> Option<ValueId> {
        if let Term::Variable(name, _) = term {
            return match self.found.subst.get(name)? {
                Bound::One(value) => Some(*value),
                Bound::Many(_) => None,
            };
        }
        let form = form(term);
        if let Some((_, known)) = self.made.iter().find(|(known, _)| *known == form) {
            return Some(*known);
        }
        let value = match term {
            Term::Constant(ty, attr) => self.constant(ty, attr.as_ref())?,
            Term::Compute(expr, ty) => {
                let attr = condition::evaluate(expr, &self.names()?)?;
                let (ty, attr) = computed(ty, attr);
                self.constant(&ty, Some(&attr))?
            }
            Term::List(..) => {
                let Term::List(_, items) = term else { return None };
                self.list(items, &result_type(term).unshaped())?
            }
            Term::Op(node) => {
                let schema = node.op.schema().ok()?;
                let types: Vec<Type> = match node.result {
                    // What takes a list apart is asked for no more than its rule names.
                    Some(n) if schema.is_varret => vec![node.ty.clone(); n + 1],
                    Some(_) => schema.returns.iter().map(|r| r.ty.clone()).collect(),
                    None => vec![node.ty.unshaped()],
                };
                let op = self.op(node, &types)?;
                self.graph.result(op, node.result.unwrap_or(0))?
            }
            Term::Variable(..) | Term::Rest(..) => return None,
        };
        self.made.push((form, value));
        Some(value)
    }

    fn op(&mut self, node: &OpNode, types: &[Type]) -> Option<OpId> {
        let operands = self.operands(&node.operands)?;
        let attributes: Option<Vec<(Symbol, Attr)>> = {
            let names = self.names()?;
            node.attributes.iter().map(|(name, term)| Some((*name, attribute(term, &names)?))).collect()
        };
        let op = self.graph.create(node.op.name(), &operands, types);
        for (name, attr) in attributes? {
            self.graph.set_attr(op, name, attr);
        }
        self.place(op);
        Some(op)
    }

    fn list(&mut self, items: &[Term], ty: &Type) -> Option<ValueId> {
        let operands = self.operands(items)?;
        let op = self.graph.create(self.lists?.name(), &operands, std::slice::from_ref(ty));
        self.place(op);
        self.graph.result(op, 0)
    }

    fn operands(&mut self, terms: &[Term]) -> Option<Vec<ValueId>> {
        let mut operands = Vec::with_capacity(terms.len());
        for term in terms {
            match term {
                Term::Rest(name, _, bounds) => {
                    let Bound::Many(all) = self.found.subst.get(name)? else { return None };
                    operands.extend(condition::part(all, bounds.as_deref(), &self.names()?)?);
                }
                _ => operands.push(self.value(term)?),
            }
        }
        Some(operands)
    }

    fn constant(&mut self, ty: &Type, attr: Option<&Attr>) -> Option<ValueId> {
        let ty = if attr.is_none() { Type::none() } else { ty.clone() };
        let op = self.graph.create(Symbol::new("prim::Constant"), &[], &[ty]);
        if let Some(attr) = attr {
            self.graph.set_attr(op, "value", attr.clone());
        }
        self.graph.insert_before(op, self.anchor);
        self.graph.result(op, 0)
    }

    fn place(&mut self, op: OpId) {
        let location = self.graph.location_id(self.anchor);
        self.graph.set_location_id(op, location);
        self.graph.insert_before(op, self.anchor);
    }

    fn names(&self) -> Option<Names<'_>> {
        let root = *self.found.values.first()?;
        let (subst, count) = (&self.found.subst, self.found.count);
        Some(Names { graph: self.graph, subst, root, lists: self.lists, count })
    }
}
