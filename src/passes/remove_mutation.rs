//! Mutation removal: a list that is filled right after it was made is made full; an in-place op on a tensor that
//! has no other references becomes the op that returns a new tensor.
//!
//! The condition that makes it right: what is written was made in the graph by an op whose result aliases nothing,
//! and making and writing can be brought next to each other, so that nothing can observe the state in between.
//!
//! A write converts to the dtype of what it writes and refuses to change its sizes; the op that gives a new tensor does
//! neither. PyTorch's pass does not look; ours leaves what types say to differ, and with `exact` all that they do not
//! show to be the same. Pipelines that run by default ask for that.

use super::{Context, PassOption, constants, propagate_shapes};
use crate::analysis::{AliasDb, Side, facts};
use crate::diag::Result;
use crate::dialects::shapes::{Known, Operands, infer};
use crate::dialects::{Effects, Fact, Family, Op, Promote, Registry, resolve};
use crate::ir::{BlockId, Dim, Graph, OpId, Symbol, TensorType, Type, TypeKind, ValueDef, ValueId};
use crate::tensor::{DType, broadcast_sizes};
use std::cell::Cell;

pub(super) const OPTIONS: &[PassOption] = &[
    PassOption::bool("exact", false, "only where types prove that dtype and sizes stay the same"),
    PassOption::bool(
        "history",
        false,
        "only where the functional op requires grad exactly if the in-place op does",
    ),
];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let lists = lists(graph, context)?;
    let tensors = tensors(graph, context)?;
    Ok(lists || tensors)
}

/// Only lists.
pub(super) fn lists(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut pass = Removal::new(graph, context);
    let changed = pass.db.has_writes() && pass.walk(graph, Removal::fill_list);
    Ok(changed)
}

/// Only tensors (and lists that are written as a whole).
pub(super) fn tensors(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut pass = Removal::new(graph, context);
    if !pass.db.has_writes() {
        return Ok(false);
    }
    if context.flag("exact")? {
        pass.known = Some(propagate_shapes::known_values(graph, context));
    }
    pass.keeps_history = context.flag("history")?;
    let changed = pass.walk(graph, Removal::make_functional);
    Ok(changed)
}

/// Only tensors that ops of some kinds write.
pub(super) fn tensors_where(
    graph: &mut Graph,
    context: &Context<'_>,
    is_wanted: &dyn Fn(&str) -> bool,
) -> bool {
    let mut pass = Removal { is_wanted: Some(is_wanted), ..Removal::new(graph, context) };
    pass.walk(graph, Removal::make_functional)
}

struct Removal<'a> {
    context: &'a Context<'a>,
    registry: &'a Registry,
    db: AliasDb,
    /// Kinds of ops that may go, if not all.
    is_wanted: Option<&'a dyn Fn(&str) -> bool>,
    /// What is known of the graph's values as it was, if new ops must show that they keep dtype and sizes.
    known: Option<Vec<Known>>,
    /// Whether what is filled stays: what it was before has no part in the new op.
    keeps_history: bool,
}

impl<'a> Removal<'a> {
    fn new(graph: &Graph, context: &'a Context<'a>) -> Removal<'a> {
        Removal {
            context,
            registry: context.registry,
            db: AliasDb::new(context.registry, Some(context.module), graph),
            is_wanted: None,
            keeps_history: false,
            known: None,
        }
    }

    /// Applies a step to every op, inner ones first.
    fn walk(&mut self, graph: &mut Graph, step: fn(&mut Self, &mut Graph, OpId) -> bool) -> bool {
        let root = graph.root();
        self.block(graph, root, step)
    }

    fn block(
        &mut self,
        graph: &mut Graph,
        block: BlockId,
        step: fn(&mut Self, &mut Graph, OpId) -> bool,
    ) -> bool {
        let mut changed = false;
        let mut at = graph.first_op(block);
        while let Some(op) = at {
            for inner in graph.nested_blocks(op).to_vec() {
                changed |= stacker::maybe_grow(64 << 10, 1 << 20, || self.block(graph, inner, step));
            }
            at = graph.next(op);
            // Whether a write can go is known only when its maker has been moved.
            if self.context.is_spent() {
                break;
            }
            changed |= step(self, graph, op);
        }
        changed
    }

    fn fill_list(&mut self, graph: &mut Graph, op: OpId) -> bool {
        let Some(list) = graph.operand(op, 0) else { return false };
        let Some(construct) = graph.def_op(list).filter(|def| graph.kind(*def) == "prim::ListConstruct")
        else {
            return false;
        };
        let Some((change, item)) = list_change(graph, construct, op) else { return false };
        if !self.made_for(graph, list, op) {
            return false;
        }
        self.context.step(|| format!("makes the list with what {} puts there", graph.op_line(op)));
        match change {
            Change::Insert(place) => graph.insert_operand(construct, place, item),
            Change::Replace(place) => graph.set_operand(construct, place, item),
        }
        if let Some(result) = graph.result(op, 0) {
            graph.replace_all_uses(result, list);
        }
        self.db.forget_writes(op);
        graph.erase(op);
        true
    }

    fn make_functional(&mut self, graph: &mut Graph, op: OpId) -> bool {
        let Some(written) = graph.operand(op, 0) else { return false };
        let kind = graph.kind(op);
        if self.is_wanted.is_some_and(|wanted| !wanted(kind.as_str())) || !self.is_in_place(graph, op) {
            return false;
        }
        if !self.made_for(graph, written, op) && !self.made_by_branches_for(graph, written, op) {
            return false;
        }
        if changes_form(graph, self.registry, op) {
            return false;
        }
        let Some(new) = functional(graph, self.registry, op, true) else { return false };
        if self.keeps_history
            && let Some(maker) = graph.def_op(new)
            && resolve(self.registry, graph, maker).is_ok_and(|row| row.def().family == Family::Create)
        {
            graph.erase(maker);
            return false;
        }
        if self.known.is_some()
            && let Some(maker) = graph.def_op(new)
            && !keeps_form(graph, self.registry, (maker, kind), &|value| self.known_of(graph, value))
        {
            self.context.count("writes left that may convert", 1);
            graph.erase(maker);
            return false;
        }
        self.learn(graph, written, new, op);
        self.context.step(|| format!("writes no more: {}", graph.op_line(op)));
        if let Some(maker) = graph.def_op(new) {
            graph.operands(maker).iter().for_each(|value| self.db.learn_type(graph, *value));
        }
        replace_uses_behind(graph, written, new, op);
        if let Some(result) = graph.result(op, 0) {
            graph.replace_all_uses(result, new);
        }
        self.db.replace_with_new_value(written, new);
        self.db.forget_writes(op);
        graph.erase(op);
        true
    }

    /// Whether the op writes its first operand, only that, and gives it.
    fn is_in_place(&self, graph: &Graph, op: OpId) -> bool {
        let kind = graph.kind(op);
        let Ok(row) = resolve(self.registry, graph, op) else { return false };
        let Ok(schema) = row.schema() else { return false };
        let writes: Vec<usize> = schema
            .arguments
            .iter()
            .enumerate()
            .filter(|(_, a)| a.alias.as_ref().is_some_and(|m| m.is_write))
            .map(|(n, _)| n)
            .collect();
        kind.namespace() == "aten"
            && kind.base().ends_with('_')
            && !kind.base().ends_with("__")
            && writes == [0]
            && graph.result_count(op) == 1
    }

    fn known_of(&self, graph: &Graph, value: ValueId) -> Known {
        let found = self.known.as_ref().and_then(|known| known.get(value.index()));
        found.filter(|k| **k != Known::Nothing).cloned().unwrap_or_else(|| Known::of_type(graph.ty(value)))
    }

    /// What is known of the new value: what was known of the one that was written.
    fn learn(&mut self, graph: &Graph, written: ValueId, new: ValueId, op: OpId) {
        let of_written = self.known_of(graph, written);
        let Some(known) = &mut self.known else { return };
        known.resize(known.len().max(graph.value_capacity()), Known::Nothing);
        for value in [Some(new), graph.result(op, 0)].into_iter().flatten() {
            if let Some(slot) = known.get_mut(value.index()) {
                *slot = of_written.clone();
            }
        }
    }

    /// Whether the value is an object of its own that can be made right before the op that writes it.
    fn made_for(&self, graph: &mut Graph, value: ValueId, op: OpId) -> bool {
        let Some(maker) = graph.def_op(value) else { return false };
        self.is_new_object(graph, value)
            && self.db.move_if_valid(graph, self.registry, maker, Side::Before, op)
    }

    fn is_new_object(&self, graph: &Graph, value: ValueId) -> bool {
        let Some(maker) = graph.def_op(value) else { return false };
        let facts = facts(self.registry, graph, maker);
        let kind = graph.kind(maker);
        let acts = Effects::WRITES_WORLD | Effects::NEVER_RETURNS;
        let plain = graph.nested_blocks(maker).is_empty()
            && graph.attr(maker, "Subgraph").is_none()
            && facts.op.is_some()
            && !facts.effects.intersects(acts);
        let alone = kind == "prim::ListConstruct"
            || graph.operands(maker).iter().all(|operand| !self.db.may_contain_alias(*operand, value));
        plain && alone && kind != "prim::Constant"
    }

    /// Both branches make an object that only the op after them sees.
    fn made_by_branches_for(&self, graph: &mut Graph, value: ValueId, op: OpId) -> bool {
        let ValueDef::Result(branch, n) = graph.def(value) else { return false };
        if graph.kind(branch) != "prim::If" {
            return false;
        }
        let made: Vec<ValueId> = graph
            .nested_blocks(branch)
            .iter()
            .filter_map(|b| graph.block_results(*b).get(n).copied())
            .collect();
        made.iter().all(|v| graph.has_one_use(*v) && self.is_new_object(graph, *v))
            && self.db.move_if_valid(graph, self.registry, branch, Side::Before, op)
    }
}

/// Whether what is known shows that an op, which stands for a write of some kind, gives the dtype and sizes of its
/// first operand.
fn keeps_form(
    graph: &Graph,
    registry: &Registry,
    (op, write): (OpId, Symbol),
    known: &dyn Fn(ValueId) -> Known,
) -> bool {
    // Made like what is written (`zero_`, `fill_`).
    if write.base().strip_suffix('_') != Some(graph.kind(op).base()) {
        return true;
    }
    let Ok(row) = resolve(registry, graph, op) else { return false };
    // Draws come in the order in which the elements lie.
    if row.def().effects.contains(Effects::RANDOM) && !row.def().facts.contains(&Fact::LikeFirst) {
        return false;
    }
    let values: Vec<Known> = graph.operands(op).iter().map(|v| known(*v)).collect();
    let Some(Known::Tensor(own)) = values.first() else { return false };
    let symbols = Cell::new(i64::MIN / 2);
    let call = Operands::new(&row, &values, &symbols);
    let found = match infer(&call).as_deref() {
        Some([Known::Tensor(found)]) => found.clone(),
        _ => TensorType::default(),
    };
    let is_alone = is_alone(&row, &values);
    let same_dtype = own.dtype.is_some() && found.dtype == own.dtype
        || is_alone && matches!(row.def().promote, Promote::Common | Promote::First);
    let is_known = own.sizes.as_ref().is_some_and(|sizes| sizes.iter().all(|d| *d != Dim::Unknown));
    same_dtype && (is_alone || is_known && found.sizes == own.sizes)
}

/// As [`functional`], where types prove that it gives the dtype and sizes of what it wrote to.
pub(super) fn functional_of_form(graph: &mut Graph, registry: &Registry, op: OpId) -> Option<ValueId> {
    if changes_form(graph, registry, op) {
        return None;
    }
    let new = functional(graph, registry, op, true)?;
    let maker = graph.def_op(new)?;
    let known = |value: ValueId| Known::of_type(graph.ty(value));
    if keeps_form(graph, registry, (maker, graph.kind(op)), &known) {
        return Some(new);
    }
    graph.erase(maker);
    None
}

/// Makes the op that gives a new object instead of writing, before `op`. A number fills with the dtype of what it
/// filled if `keep_dtype` is set. None where there is no such op.
pub(super) fn functional(
    graph: &mut Graph,
    registry: &Registry,
    op: OpId,
    keep_dtype: bool,
) -> Option<ValueId> {
    let kind = graph.kind(op);
    let operands = graph.operands(op).to_vec();
    let ty = graph.ty(graph.result(op, 0)?).clone();
    let (name, count) = match kind.as_str() {
        "aten::zero_" => ("aten::zeros_like", 1),
        "aten::fill_" if graph.ty(*operands.get(1)?).is_tensor() => return None,
        "aten::fill_" => ("aten::full_like", 2),
        other => (other.strip_suffix('_')?, operands.len()),
    };
    let mut operands = operands.get(..count)?.to_vec();
    if name.ends_with("_like") && matches!(kind.as_str(), "aten::zero_" | "aten::fill_") {
        if keep_dtype && count == 2 {
            let dtype = graph.create(Symbol::new("prim::dtype"), &operands[..1], &[Type::int()]);
            graph.insert_before(dtype, op);
            operands.extend(graph.results(dtype));
        }
        let schema = registry.overloads(Symbol::new(name)).first().and_then(|row| row.schema().ok());
        for _ in operands.len()..schema.map_or(0, |schema| schema.arguments.len()) {
            let none = constants::insert_none(graph, op, Type::none());
            operands.extend(graph.results(none));
        }
    }
    let new = graph.create(Symbol::new(name), &operands, &[ty]);
    graph.set_location_id(new, graph.location_id(op));
    graph.insert_before(new, op);
    // Schemas are known of more ops than can run; `resize` and `set` are only names.
    if !resolve(registry, graph, new).is_ok_and(|row| row.is_built()) {
        graph.erase(new);
        return None;
    }
    graph.result(new, 0)
}

/// Whether row or types say that the op without a write would give another dtype or other sizes than what is written has:
/// then the op that writes converts, or raises.
fn changes_form(graph: &Graph, registry: &Registry, op: OpId) -> bool {
    let promote = resolve(registry, graph, op).ok().filter(|row| row.def().scalar.is_some());
    let converts = promote.is_some_and(|row| {
        !matches!(row.def().promote, Promote::Common | Promote::Float | Promote::First | Promote::Rounding)
    });
    if converts {
        return true;
    }
    let Some((written, others)) = graph.operands(op).split_first() else { return false };
    let Some(own) = graph.ty(*written).as_tensor() else { return false };
    let sizes = |t: &TensorType| t.sizes.as_ref()?.iter().map(|d| d.known()).collect::<Option<Vec<i64>>>();
    others.iter().any(|other| match graph.ty(*other).kind() {
        TypeKind::Tensor(other) => {
            let dtype = matches!((own.dtype, other.dtype), (Some(a), Some(b)) if a != b);
            let grows = match (sizes(own), sizes(other)) {
                (Some(own), Some(other)) => {
                    broadcast_sizes(&own, &other).is_ok_and(|all| all.as_slice() != own.as_slice())
                }
                _ => false,
            };
            dtype || grows
        }
        TypeKind::Float => own.dtype.is_some_and(|d| !d.is_floating() && !d.is_complex()),
        TypeKind::Int => own.dtype == Some(DType::Bool),
        _ => false,
    })
}

/// Whether an elementwise op takes one tensor and nothing else that could have a part in its result's dtype or sizes.
fn is_alone(row: &Op, values: &[Known]) -> bool {
    let Ok(schema) = row.schema() else { return false };
    let mut others = schema.arguments.iter().zip(values).skip(1);
    row.def().family == Family::Elementwise
        && others.all(|(a, v)| *v == Known::None || a.keyword_only && !a.ty.is_tensor())
}

/// What an op does to a list that was just made.
enum Change {
    Insert(usize),
    Replace(usize),
}

/// What the op does to the list, and the item it puts there.
fn list_change(graph: &Graph, construct: OpId, op: OpId) -> Option<(Change, ValueId)> {
    let size = graph.operands(construct).len() as i64;
    let place = |value: ValueId| constants::int_of(graph, value).map(|n| if n < 0 { n + size } else { n });
    match (graph.kind(op).as_str(), graph.operands(op)) {
        // A list that holds itself has no other form.
        (_, [list, .., item]) if list == item => None,
        ("aten::append", [_, item]) => Some((Change::Insert(size as usize), *item)),
        ("aten::insert", [_, at, item]) => Some((Change::Insert(place(*at)?.clamp(0, size) as usize), *item)),
        ("aten::_set_item", [_, at, item]) => {
            let at = place(*at).filter(|n| (0..size).contains(n))?;
            Some((Change::Replace(at as usize), *item))
        }
        _ => None,
    }
}

/// Uses of a value after an op, in nested blocks too, become uses of another.
pub(super) fn replace_uses_behind(graph: &mut Graph, old: ValueId, new: ValueId, op: OpId) {
    let Some(block) = graph.parent(op) else { return };
    let behind: Vec<crate::ir::Use> = graph
        .uses(old)
        .filter(|u| match graph.ancestor_in(u.op, block) {
            Some(at) => graph.terminated_block(at).is_some() || (at != op && graph.is_before(op, at)),
            None => false,
        })
        .collect();
    for u in behind {
        graph.set_operand(u.op, u.index, new);
    }
}
