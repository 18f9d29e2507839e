//! Chooses how images lie in memory between layers: packed convolutions give results with their channels innermost, and
//! what follows takes them so. Where strides are visible (outputs of the graph, ops that read strides, ops that draw
//! random numbers, control flow, containers) the tensor gets the strides back that it would have had.
//!
//! Elements do not change, only where they lie. Which ops read strides is said by rows. A layer stays unchanged where
//! something is written that may lie in another order, or where the strides to be restored after it are not known.

use super::layer_parts::{Maker, restored, with_strides};
use super::{Context, constants};
use crate::analysis::{AliasDb, facts};
use crate::diag;
use crate::dialects::fusion::layer;
use crate::dialects::prim::list::UNPACK;
use crate::dialects::{Effects, Fact, Family, Op, resolve};
use crate::ir::{Attr, Graph, OpId, Symbol, Type, Use, ValueId};
use hashbrown::{HashMap, HashSet};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> diag::Result<bool> {
    let mut layers: Vec<OpId> = graph.all_ops();
    layers.retain(|op| lies_at_choice(graph, *op) && !is_seen(graph, context, *op));
    let (count, free) = loop {
        // A batch norm alone takes images as they are.
        let count = layers.iter().filter(|op| graph.kind(**op) != layer::NORM).count();
        if count == 0 {
            return Ok(false);
        }
        match Free::of(graph, context, &layers) {
            Ok(free) => break (count, free),
            Err(values) => keep_layers_of(graph, &mut layers, values),
        }
    };
    if !context.step(|| format!("lets the results of {count} layers keep the layouts of their kernels")) {
        return Ok(false);
    }
    free.restore(graph, context);
    for value in &free.values {
        graph.set_type(*value, with_strides(graph.ty(*value), None));
    }
    for op in layers {
        release(graph, op);
    }
    Ok(true)
}

/// Whether the result of an op could lie in another way: that of a layer of images, or of a layer to which strides were given.
fn lies_at_choice(graph: &Graph, op: OpId) -> bool {
    format_of(graph, op).is_some() || layer::is_restore(graph.kind(op).as_str())
}

/// Whether an op is an attention whose result is seen wherever it is used, which is written in order of rows at no cost, or gives
/// strides to what sees them alone.
fn is_seen(graph: &Graph, context: &Context<'_>, op: OpId) -> bool {
    let seen = |result: ValueId| graph.uses(result).all(|used| !takes_any(graph, context, used));
    let kind = graph.kind(op);
    (kind == layer::ATTENTION || layer::is_restore(kind.as_str())) && graph.result(op, 0).is_some_and(seen)
}

/// Lets the result of an op lie as its kernel makes it.
fn release(graph: &mut Graph, op: OpId) {
    if let Some(operand) = format_of(graph, op) {
        let format = constant(graph, op, Type::int(), Attr::Int(layer::CHANNELS_LAST));
        graph.set_operand(op, operand, format);
    } else if let Some(given) = graph.operand(op, 0) {
        graph.replace_op(op, &[given]);
    }
}

/// Leaves the layers of which values are made as they are: those whose results come to them without another layer between.
fn keep_layers_of(graph: &Graph, layers: &mut Vec<OpId>, values: Vec<ValueId>) {
    let all: HashSet<OpId> = layers.iter().copied().collect();
    let (mut work, mut seen, mut kept) = (values, HashSet::new(), HashSet::new());
    while let Some(value) = work.pop() {
        let Some(op) = graph.def_op(value).filter(|_| seen.insert(value)) else { continue };
        if all.contains(&op) {
            kept.insert(op);
        } else {
            work.extend(graph.operands(op));
        }
    }
    // What comes out of a block has no op that leads back to its layers: all stay.
    layers.retain(|op| !kept.is_empty() && !kept.contains(op));
}

/// Which operand of a layer says how its result lies, where it is one of images.
fn format_of(graph: &Graph, op: OpId) -> Option<usize> {
    match graph.kind(op) {
        kind if kind == *layer::CONV => Some(layer::CONV_FORMAT),
        kind if kind == *layer::NORM => Some(layer::NORM_FORMAT),
        kind if kind == *layer::ATTENTION => Some(layer::ATTENTION_FORMAT),
        _ => None,
    }
}

/// Whether a type says nothing of strides.
fn has_no_strides(graph: &Graph, value: ValueId) -> bool {
    graph.ty(value).as_tensor().is_some_and(|ty| ty.strides.is_none())
}

/// Values that this pass has let lie as their kernels make them: results of layers whose strides it has forgotten, and what
/// is made of these. Layers are made where strides are known only, and what sees them was given others.
pub(super) fn free_values(graph: &Graph, context: &Context<'_>) -> HashSet<ValueId> {
    let mut free = HashSet::new();
    for op in graph.all_ops() {
        let format = format_of(graph, op).and_then(|operand| graph.operand(op, operand));
        let is_layer = format.and_then(|v| constants::int_of(graph, v)) == Some(layer::CHANNELS_LAST)
            && graph.result(op, 0).is_some_and(|result| has_no_strides(graph, result));
        let follows = graph.operands(op).iter().any(|value| free.contains(value));
        if is_layer || (follows && !lies_as_said(graph, context, op)) {
            free.extend(graph.results(op));
        }
    }
    free
}

/// Values whose elements may lie in another order than the program says, and uses that must not see it.
struct Free {
    values: HashSet<ValueId>,
    borders: Vec<Use>,
}

impl Free {
    /// Fails with the values that must lie as they do.
    fn of(graph: &Graph, context: &Context<'_>, layers: &[OpId]) -> Result<Free, Vec<ValueId>> {
        let db = context.analysis::<AliasDb>(graph);
        let mut free = Free { values: HashSet::new(), borders: Vec::new() };
        let mut written = Vec::new();
        let mut work: Vec<ValueId> = layers.iter().filter_map(|op| graph.result(*op, 0)).collect();
        while let Some(value) = work.pop() {
            if !free.values.insert(value) {
                continue;
            }
            if db.has_writers(value) {
                context.debug(|| format!("keeps %{}, to which something writes", graph.display_name(value)));
                written.push(value);
            }
            for used in graph.uses(value) {
                match takes_any(graph, context, used) {
                    true if lies_as_said(graph, context, used.op) => {}
                    true => work.extend(graph.results(used.op).iter().filter(|v| is_free_type(graph, **v))),
                    false => free.borders.push(used),
                }
            }
        }
        if !written.is_empty() {
            return Err(written);
        }
        free.borders.sort_by_key(|used| (used.op, used.index));
        let open = free.not_restored(graph, context, &db);
        if open.is_empty() { Ok(free) } else { Err(open) }
    }

    /// Values that are seen and whose strides are not known, or are those of a part of something; else outputs whose memory is shared with one that would be copied.
    fn not_restored(&self, graph: &Graph, context: &Context<'_>, db: &AliasDb) -> Vec<ValueId> {
        let seen = self.borders.iter().filter_map(|used| graph.operand(used.op, used.index));
        let open: Vec<ValueId> = seen.filter(|value| restored(graph, context, *value).is_none()).collect();
        if !open.is_empty() {
            let names = || open.iter().map(|value| format!("%{}", graph.display_name(*value)));
            context.debug(|| {
                format!(
                    "keeps what has no known strides, or strides with gaps: {}",
                    names().collect::<Vec<_>>().join(", ")
                )
            });
            return open;
        }
        let kept = self.kept(graph, context);
        let is_shared =
            |a: &ValueId| self.values.contains(a) && kept.iter().any(|b| b != a && db.may_alias(*a, *b));
        let shared: Vec<ValueId> = kept.iter().copied().filter(is_shared).collect();
        for value in &shared {
            context.debug(|| {
                format!("keeps %{}, whose memory another output shares", graph.display_name(*value))
            });
        }
        shared
    }

    /// Tensors that escape: outputs, items of containers, what control flow carries.
    fn kept(&self, graph: &Graph, context: &Context<'_>) -> Vec<ValueId> {
        let mut kept: Vec<ValueId> = graph.outputs().to_vec();
        for op in graph.all_ops() {
            let passes_on = graph.result(op, 0).is_some_and(|result| self.values.contains(&result));
            if !passes_on && may_keep(graph, context, op) {
                kept.extend(graph.operands(op));
            }
            for block in graph.nested_blocks(op) {
                kept.extend(graph.block_results(*block));
            }
        }
        kept.retain(|value| graph.ty(*value).is_tensor());
        kept.sort();
        kept.dedup();
        kept
    }

    /// Gives back the strides where they are seen, once for each op that sees them.
    fn restore(&self, graph: &mut Graph, context: &Context<'_>) {
        let mut known: HashMap<(OpId, ValueId), ValueId> = HashMap::new();
        for used in &self.borders {
            let Some(value) = graph.operand(used.op, used.index) else { continue };
            if let Some(restored) = known.get(&(used.op, value)) {
                graph.set_operand(used.op, used.index, *restored);
                continue;
            }
            let Some(given) = restored(graph, context, value) else { continue };
            let ty = graph.ty(value).clone();
            let restored = Maker { graph: &mut *graph, at: used.op, like: used.op }.restore(value, given, ty);
            graph.set_operand(used.op, used.index, restored);
            known.insert((used.op, value), restored);
        }
    }
}

/// Whether an op gives the same elements wherever those of its operand lie.
fn takes_any(graph: &Graph, context: &Context<'_>, used: Use) -> bool {
    if graph.terminated_block(used.op).is_some() || !graph.nested_blocks(used.op).is_empty() {
        return false;
    }
    if is_list(graph, used.op) {
        let Some(list) = graph.result(used.op, 0) else { return false };
        return graph.uses(list).all(|u| !is_list(graph, u.op) && takes_any(graph, context, u));
    }
    if graph.kind(used.op) == UNPACK {
        // Parts of one tensor, which does not escape as a list.
        let parts = graph.operand(used.op, 0).and_then(|list| graph.def_op(list));
        return parts.is_some_and(|op| is_tensor_work(graph, context, op));
    }
    is_tensor_work(graph, context, used.op)
}

/// Whether the results of an op lie as its type says, wherever its operands lie.
fn lies_as_said(graph: &Graph, context: &Context<'_>, op: OpId) -> bool {
    let is_row_major = |row: Op| row.def().facts.contains(&Fact::RowMajor);
    layer::is_restore(graph.kind(op).as_str()) || resolve(context.registry, graph, op).is_ok_and(is_row_major)
}

/// Whether an op may put its operands where others find them.
fn may_keep(graph: &Graph, context: &Context<'_>, op: OpId) -> bool {
    let facts = facts(context.registry, graph, op);
    let family = facts.op.as_ref().map(|row| row.def().family);
    facts.effects.intersects(Effects::WRITES_WORLD)
        || family.is_none_or(|family| matches!(family, Family::Container | Family::Control))
}

/// Whether an op computes with elements, wherever they lie, and does nothing else.
fn is_tensor_work(graph: &Graph, context: &Context<'_>, op: OpId) -> bool {
    let facts = facts(context.registry, graph, op);
    let Some(row) = &facts.op else { return false };
    let def = row.def();
    let calm = Effects::MAY_RAISE | Effects::IDENTITY;
    calm.contains(facts.effects)
        && !facts.writes
        && !def.facts.contains(&Fact::SeesLayout)
        && matches!(
            def.family,
            Family::Elementwise
                | Family::Reduce
                | Family::View
                | Family::Contraction
                | Family::Gather
                | Family::Opaque
        )
}

/// A list that is made of values.
fn is_list(graph: &Graph, op: OpId) -> bool {
    graph.kind(op) == "prim::ListConstruct"
}

/// Whether values of a type have elements that lie somewhere.
fn is_free_type(graph: &Graph, value: ValueId) -> bool {
    let ty = graph.ty(value);
    ty.is_tensor() || ty.element().is_some_and(Type::is_tensor)
}

fn constant(graph: &mut Graph, at: OpId, ty: Type, attr: Attr) -> ValueId {
    let op = graph.create(Symbol::new("prim::Constant"), &[], &[ty]);
    graph.set_attr(op, "value", attr);
    place(graph, op, at);
    graph.results(op)[0]
}

/// Puts an op before another one, or at the end of the block that a terminator ends.
fn place(graph: &mut Graph, op: OpId, at: OpId) {
    match graph.terminated_block(at) {
        Some(block) => graph.append(block, op),
        None => {
            graph.set_location_id(op, graph.location_id(at));
            graph.insert_before(op, at);
        }
    }
}
