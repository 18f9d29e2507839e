//! Lists and dictionaries that are written to become values: each write makes a new one, and branches and loops give and carry
//! what they write to, as if it were a variable. A list or dictionary whose writes all set items under keys that are known is
//! not even that: each item is a variable of its own (what LLVM calls scalar replacement of aggregates).
//!
//! The condition: it is made in the graph, and every use is one that this pass understands, so that nothing keeps it under
//! another name. It does not know what differentiates or fuses the graph afterwards; `append-carried` lets lists grow in place
//! again.

use super::container_uses::{Access, Keys, accesses, is_container, is_same_object, place};
use super::variables::{Fresh, Objects, Variable, Written, give_one_name, put, walk};
use super::{Context, PassOption, constants};
use crate::analysis::facts;
use crate::diag::{Diagnostic, Result};
use crate::dialects::fusion::items::{DROP_ITEM, REVERSED, SET_ITEM};
use crate::ir::{BlockId, Graph, OpId, Type, TypeKind, ValueId};
use crate::value::Value;
use hashbrown::{HashMap, HashSet};

const LIST: &str = "prim::ListConstruct";
const DICT: &str = "prim::DictConstruct";

/// Items up to which a write to a list that is made in the graph makes another such list.
const MAX_MADE: usize = 64;

pub(super) const OPTIONS: &[PassOption] =
    &[PassOption::bool("loops", true, "also what a loop writes to that is made before it")];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let loops = context.flag("loops")?;
    let mut changed = give_one_name(graph, context, &is_container, &is_same_object);
    let mut pass = Pass::default();
    let mut written = Written::default();
    pass.find(graph, context, loops, &mut written);
    if !pass.containers.is_empty() {
        let root = graph.root();
        walk(graph, &mut pass, &mut written, root)?;
        changed = true;
    }
    changed |= join_made(graph, context);
    Ok(changed)
}

/// Makes one list of two that are made in the graph, never written, and joined.
fn join_made(graph: &mut Graph, context: &Context<'_>) -> bool {
    let mut changed = false;
    for op in graph.all_ops() {
        let Some(items) = joined(graph, context, op) else { continue };
        if !context.step(|| format!("makes the list of {}", graph.op_line(op).trim())) {
            break;
        }
        let ty = graph.ty(graph.results(op)[0]).clone();
        let list = put(graph, op, LIST, &items, &ty);
        graph.replace_op(op, &[list]);
        changed = true;
    }
    changed
}

/// The items of a sum of lists that are made in the graph.
fn joined(graph: &Graph, context: &Context<'_>, op: OpId) -> Option<Vec<ValueId>> {
    let result = graph.result(op, 0).filter(|_| graph.kind(op) == "aten::add")?;
    let &[first, second] = graph.operands(op) else { return None };
    let mut items = Vec::new();
    for list in [first, second] {
        let maker = graph.def_op(list).filter(|_| matches!(graph.ty(list).kind(), TypeKind::List(_)))?;
        match graph.kind(maker).as_str() {
            LIST if graph.uses(list).all(|used| !facts(context.registry, graph, used.op).writes) => {
                items.extend_from_slice(graph.operands(maker));
            }
            "prim::Constant" => {
                let Value::List(constant) = constants::value_of(graph, list)? else { return None };
                constant.is_empty().then_some(())?;
            }
            _ => return None,
        }
    }
    (items.len() <= MAX_MADE && is_container(graph.ty(result))).then_some(items)
}

#[derive(Default)]
struct Pass {
    containers: HashMap<ValueId, Container>,
    /// What is done to them.
    uses: HashMap<OpId, Vec<(ValueId, Access)>>,
    /// What containers are so far, where the walk is.
    now: HashMap<ValueId, State>,
}

/// Whether a loop stands around an op and not around the maker of what it writes to.
fn is_in_loop(graph: &Graph, op: OpId, made: ValueId) -> bool {
    let home = graph.def_block(made);
    let mut block = graph.parent(op);
    while let Some(here) = block.filter(|here| Some(*here) != home) {
        let Some(around) = graph.owner(here) else { return false };
        if graph.kind(around) == "prim::Loop" {
            return true;
        }
        block = graph.parent(around);
    }
    false
}

struct Container {
    ty: Type,
    /// Where items are variables: their keys.
    keys: Option<Keys>,
}

#[derive(Clone)]
enum State {
    Whole(ValueId),
    /// None for what has not been set yet.
    Items(Vec<Option<ValueId>>),
}

impl Pass {
    /// Finds the containers that are written to and become values.
    fn find(&mut self, graph: &Graph, context: &Context<'_>, loops: bool, written: &mut Written) {
        let (mut seen, mut fresh) = (HashSet::new(), Fresh::new());
        for op in graph.all_ops() {
            let made = graph.operand(op, 0).filter(|value| is_container(graph.ty(*value)));
            let Some(made) = made.filter(|value| seen.insert(*value)) else { continue };
            let Some(uses) = accesses(graph, context.registry, &mut fresh, made) else { continue };
            let mut writes = uses.iter().filter(|(_, access)| access.writes()).peekable();
            if writes.peek().is_none() || !loops && writes.any(|(op, _)| is_in_loop(graph, *op, made)) {
                continue;
            }
            let keys = Keys::of(graph, made, &uses);
            let is_dict = matches!(graph.ty(made).kind(), TypeKind::Dict(..));
            if is_dict && keys.is_none() {
                continue;
            }
            if !context.step(|| format!("makes a value of {}", graph.display_name(made))) {
                return;
            }
            for (op, access) in uses {
                self.uses.entry(op).or_default().push((made, access));
                if access.writes() {
                    let item = match (&keys, access) {
                        (Some(keys), Access::Set { key }) => place(graph, keys, key),
                        _ => None,
                    };
                    written.note(graph, op, (made, item));
                }
            }
            self.containers.insert(made, Container { ty: graph.ty(made).clone(), keys });
        }
    }

    /// A container as it is made.
    fn begin(&mut self, graph: &Graph, op: OpId, made: ValueId) {
        let Some(container) = self.containers.get(&made) else { return };
        let state = match &container.keys {
            None => State::Whole(made),
            Some(Keys::List(_)) => State::Items(graph.operands(op).iter().copied().map(Some).collect()),
            Some(Keys::Dict(keys)) => {
                let mut items: Vec<Option<ValueId>> =
                    graph.operands(op).chunks_exact(2).map(|pair| Some(pair[1])).collect();
                items.resize(keys.len(), None);
                State::Items(items)
            }
        };
        self.now.insert(made, state);
    }
}

impl Objects for Pass {
    type State = State;

    fn states(&mut self) -> &mut HashMap<ValueId, State> {
        &mut self.now
    }

    fn type_of(&self, _: &Graph, (made, item): Variable) -> Type {
        let Some(container) = self.containers.get(&made) else { return Type::any() };
        match (container.ty.kind(), item) {
            (TypeKind::List(item) | TypeKind::Dict(_, item), Some(_)) => item.clone(),
            _ => container.ty.clone(),
        }
    }

    fn set(&mut self, (made, item): Variable, value: ValueId) {
        match (self.now.get_mut(&made), item) {
            (Some(State::Items(items)), Some(item)) => {
                if let Some(slot) = items.get_mut(item) {
                    *slot = Some(value);
                }
            }
            _ => {
                self.now.insert(made, State::Whole(value));
            }
        }
    }

    fn value(&mut self, graph: &mut Graph, before: OpId, (made, item): Variable) -> Result<ValueId> {
        let lost = || Diagnostic::internal("a container is used where it is not made");
        match (self.now.get(&made).ok_or_else(lost)?, item) {
            (State::Whole(value), _) => Ok(*value),
            (State::Items(items), Some(item)) => items.get(item).copied().flatten().ok_or_else(lost),
            (State::Items(items), None) => {
                let mut operands = Vec::new();
                let container = self.containers.get(&made).ok_or_else(lost)?;
                for (n, item) in items.iter().enumerate() {
                    let Some(item) = item else { continue };
                    if let Some(Keys::Dict(keys)) = &container.keys {
                        operands.extend(keys.get(n).map(|(_, key)| *key));
                    }
                    operands.push(*item);
                }
                let kind = if matches!(container.ty.kind(), TypeKind::Dict(..)) { DICT } else { LIST };
                Ok(put(graph, before, kind, &operands, &container.ty))
            }
        }
    }

    fn enter(&mut self, graph: &Graph, block: BlockId) {
        for param in graph.params(block) {
            if self.containers.contains_key(param) {
                self.now.insert(*param, State::Whole(*param));
            }
        }
    }

    fn visit(&mut self, graph: &mut Graph, op: OpId) -> Result<bool> {
        let mut is_gone = false;
        for (made, access) in self.uses.remove(&op).unwrap_or_default() {
            is_gone |= self.use_of(graph, op, made, access)?;
        }
        for made in graph.results(op) {
            self.begin(graph, op, made);
        }
        Ok(is_gone)
    }
}

impl Pass {
    /// Lets an op use what a container is by then, or does what it does; says whether it is to go.
    fn use_of(&mut self, graph: &mut Graph, op: OpId, made: ValueId, access: Access) -> Result<bool> {
        let Some(container) = self.containers.get(&made) else { return Ok(false) };
        if let (Some(keys), Some(State::Items(items))) = (&container.keys, self.now.get(&made)) {
            let answer = match access {
                Access::Get { key } => place(graph, keys, key).and_then(|n| items.get(n).copied().flatten()),
                Access::Has { key } => {
                    let is_there = place(graph, keys, key).map(|n| items.get(n).copied().flatten().is_some());
                    let is_known =
                        matches!(keys, Keys::Dict(_)) && super::fold_dicts::key_of(graph, key).is_some();
                    let is_there = is_known.then(|| is_there.unwrap_or(false));
                    is_there.and_then(|b| constants::insert_before(graph, op, &Value::Bool(b)))
                }
                Access::Len => {
                    let len = items.iter().flatten().count() as i64;
                    constants::insert_before(graph, op, &Value::Int(len))
                }
                Access::Set { key } => {
                    if let (Some(n), Some(item)) = (place(graph, keys, key), graph.operand(op, 2)) {
                        self.set((made, Some(n)), item);
                        return Ok(true);
                    }
                    None
                }
                _ => None,
            };
            if let Some(answer) = answer
                && let Some(result) = graph.result(op, 0)
            {
                graph.replace_all_uses(result, answer);
                return Ok(true);
            }
        }
        let now = self.value(graph, op, (made, None))?;
        if !access.writes() {
            for n in 0..graph.operands(op).len() {
                if graph.operand(op, n) == Some(made) {
                    graph.set_operand(op, n, now);
                }
            }
            return Ok(false);
        }
        let new = written(graph, op, now, access)?;
        self.now.insert(made, State::Whole(new));
        Ok(true)
    }
}

/// What a list is after a write.
fn written(graph: &mut Graph, op: OpId, now: ValueId, access: Access) -> Result<ValueId> {
    let ty = graph.ty(now).clone();
    let operand = |graph: &Graph, n: usize| {
        graph.operand(op, n).ok_or_else(|| Diagnostic::internal("a write lacks an operand"))
    };
    let made = graph.def_op(now).filter(|op| graph.kind(*op) == LIST && graph.operands(*op).len() < MAX_MADE);
    Ok(match (access, made) {
        (Access::Append, Some(made)) => {
            let mut items = graph.operands(made).to_vec();
            items.push(operand(graph, 1)?);
            put(graph, op, LIST, &items, &ty)
        }
        (Access::Append, None) => {
            let item = operand(graph, 1)?;
            let one = put(graph, op, LIST, &[item], &ty);
            put(graph, op, "aten::add", &[now, one], &ty)
        }
        (Access::Extend, _) => {
            let other = operand(graph, 1)?;
            put(graph, op, "aten::add", &[now, other], &ty)
        }
        (Access::Set { key }, _) => {
            let item = operand(graph, 2)?;
            put(graph, op, SET_ITEM, &[now, key, item], &ty)
        }
        (Access::Reverse, _) => put(graph, op, REVERSED, &[now], &ty),
        (Access::Pop, _) => {
            let at = operand(graph, 1)?;
            // It comes first, as it raises what `pop` raises.
            let left = put(graph, op, DROP_ITEM, &[now, at], &ty);
            if let Some(given) = graph.result(op, 0) {
                let item_type = graph.ty(given).clone();
                let item = put(graph, op, "aten::__getitem__", &[now, at], &item_type);
                graph.replace_all_uses(given, item);
            }
            left
        }
        (Access::Insert, _) => {
            let (at, item) = (operand(graph, 1)?, operand(graph, 2)?);
            let none = constants::insert_none(graph, op, Type::none());
            let none = graph.results(none)[0];
            let step = constants::insert_before(graph, op, &Value::Int(1)).unwrap_or(none);
            let front = put(graph, op, "aten::slice", &[now, none, at, step], &ty);
            let back = put(graph, op, "aten::slice", &[now, at, none, step], &ty);
            let one = put(graph, op, LIST, &[item], &ty);
            let front = put(graph, op, "aten::add", &[front, one], &ty);
            put(graph, op, "aten::add", &[front, back], &ty)
        }
        _ => put(graph, op, LIST, &[], &ty),
    })
}
