//! Constant propagation: what can be computed now is computed now, by the evaluator.
//!
//! An op runs at compile time if all its operands are constants, it does nothing but compute, and nothing in the
//! graph writes to what it reads or gives. A branch on a constant becomes the block that it takes, a loop that makes
//! no iterations is removed, what a constant is an instance of is known, and results that are equal on all paths are
//! taken from outside. An op that raises stays, and raises when it runs. Dead code is removed where anything changed.
//!
//! With objects (lists, tensors) among the results, a run of the function gives the same object as the one before,
//! as in PyTorch; [`immutable_types`] leaves objects alone and changes nothing observable. Nor does [`fold`], which makes
//! tensors too where they stay inside the graph: a plan's weights turned and gathered once, not at each call.

use super::{Context, Meanings, constants, cse, dce, walk};
use crate::analysis::{AliasDb, facts};
use crate::diag::Result;
use crate::dialects::prim::instance::is_instance;
use crate::dialects::shapes::product;
use crate::dialects::{Effects, Fact, Family, Node, Op, Registry, Run, Variant};
use crate::eval;
use crate::ir::{Attr, BlockId, Graph, OpId, Type, TypeKind, ValueId};
use crate::value::Value;
use std::sync::Arc;

/// Larger results are not made at compile time.
const MAX_ELEMENTS: i64 = 1 << 20;
/// Nor larger ones than these by [`fold`] where they take no more room than an operand: weights that are made of other weights.
const MAX_OF_WEIGHTS: i64 = 1 << 24;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let db = AliasDb::new(context.registry, Some(context.module), graph);
    propagate(graph, context, Some(db), false)
}

/// Only numbers, text and tuples of them are made constants.
pub(super) fn immutable_types(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    propagate(graph, context, None, false)
}

/// Tensors are made constants where no result of the graph, and nothing that was given to it, may hold them: whatever calls
/// cannot distinguish them from fresh ones. Views may be of any size. Records no gradients, as plans do not.
pub(super) fn fold(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let db = AliasDb::new(context.registry, Some(context.module), graph);
    propagate(graph, context, Some(db), true)
}

fn propagate(graph: &mut Graph, context: &Context<'_>, db: Option<AliasDb>, inside: bool) -> Result<bool> {
    let mut run = Run::silent();
    if let Some(Meanings(composites)) = context.extra() {
        run = run.with_composites(Arc::clone(composites));
    }
    if inside {
        run.set_grad_enabled(false);
    }
    let mut pass = Propagation { context, db, inside, run, changed: false };
    let root = graph.root();
    pass.block(graph, root);
    let changed = pass.changed;
    if changed {
        context.changed();
        dce::run(graph, context)?;
    }
    Ok(changed)
}

struct Propagation<'a> {
    context: &'a Context<'a>,
    /// None: objects are left alone.
    db: Option<AliasDb>,
    /// Whether only objects that stay inside the graph are made constants.
    inside: bool,
    run: Run,
    changed: bool,
}

impl Propagation<'_> {
    fn block(&mut self, graph: &mut Graph, block: BlockId) {
        walk::block(graph, block, |graph, op| self.op(graph, op));
    }

    fn op(&mut self, graph: &mut Graph, op: OpId) {
        match graph.kind(op).as_str() {
            "prim::If" => self.branch(graph, op),
            "prim::Loop" => self.loop_op(graph, op),
            "prim::Constant" => {}
            _ if graph.nested_blocks(op).is_empty() => self.compute(graph, op),
            _ => self.nested(graph, op),
        }
    }

    fn nested(&mut self, graph: &mut Graph, op: OpId) {
        for block in graph.nested_blocks(op).to_vec() {
            self.block(graph, block);
        }
    }

    fn branch(&mut self, graph: &mut Graph, op: OpId) {
        let condition = graph.operand(op, 0).and_then(|value| constants::bool_of(graph, value));
        let Some(condition) = condition else {
            self.nested(graph, op);
            self.changed |= drop_equal_results(graph, self.context, op);
            return;
        };
        let Some(block) = graph.nested_blocks(op).get(usize::from(!condition)).copied() else { return };
        self.block(graph, block);
        if self.context.step(|| format!("takes the branch that always runs of {}", graph.op_line(op))) {
            inline_block(graph, op, block);
            self.changed = true;
        }
    }

    fn loop_op(&mut self, graph: &mut Graph, op: OpId) {
        let most = graph.operand(op, 0).and_then(|value| constants::int_of(graph, value));
        let start = graph.operand(op, 1).and_then(|value| constants::bool_of(graph, value));
        if most.unwrap_or(1) > 0 && start.unwrap_or(true) {
            self.nested(graph, op);
            self.changed |= drop_unchanged_values(graph, self.context, op);
            return;
        }
        let values: Vec<ValueId> = graph.operands(op).iter().skip(2).copied().collect();
        if self.context.step(|| format!("erases a loop without iterations {}", graph.op_line(op))) {
            graph.replace_op(op, &values);
            self.changed = true;
        }
    }

    fn compute(&mut self, graph: &mut Graph, op: OpId) {
        let Some(results) = self.results(graph, op) else { return };
        if !self.context.step(|| format!("computes {}", graph.op_line(op))) {
            return;
        }
        self.changed = true;
        for (old, value) in graph.results(op).into_iter().zip(results) {
            let constant = match self.inside {
                true => constants::insert_computed(graph, op, &value),
                false => constants::insert_before(graph, op, &value),
            };
            if let Some(new) = constant {
                if value.is_none() {
                    let ty = graph.ty(old).clone();
                    graph.set_type(new, ty);
                }
                if let Some(db) = &mut self.db {
                    db.copy_value(old, new);
                }
                graph.replace_all_uses(old, new);
            }
        }
    }

    /// What an op gives, if it can be known now.
    fn results(&self, graph: &Graph, op: OpId) -> Option<Vec<Value>> {
        if graph.operands(op).iter().any(|value| constants::constant_op(graph, *value).is_none()) {
            return None;
        }
        if graph.kind(op) == "prim::isinstance" {
            return self.instance(graph, op);
        }
        let row = self.computes(graph, op)?;
        if self.inside && !self.stays_inside(graph, op) {
            return None;
        }
        let mut values: Vec<Value> = graph
            .operands(op)
            .iter()
            .map(|value| constants::value_of(graph, *value))
            .collect::<Option<_>>()?;
        let row = number_row(self.context.registry, graph, op, row, &mut values);
        let view = self.inside && row.def().family == Family::View;
        if !(view || is_small(&row, &values) || self.inside && is_no_larger(graph, op, &values)) {
            return None;
        }
        let types: Vec<Type> = graph.results(op).iter().map(|value| graph.ty(*value).clone()).collect();
        if !self.inside && joins_optionals(graph, op) {
            return None;
        }
        let node = Node { attrs: graph.attrs(op), result_types: &types };
        let results = eval::call(&row, &values, node, &self.run).ok()?;
        let fits = results.len() == types.len();
        let plain = |value: &Value| !matches!(value, Value::Tensor(t) if t.requires_grad());
        // A truth value is a number where a program of torch.export casts it to one; a constant would not be.
        let cast =
            |(value, ty): (&Value, &Type)| matches!(value, Value::Bool(_)) && *ty.kind() == TypeKind::Number;
        (fits && results.iter().all(plain) && !results.iter().zip(&types).any(cast))
            .then(|| results.into_iter().collect())
    }

    /// What `isinstance` of a constant gives. Lists are left alone where objects are.
    fn instance(&self, graph: &Graph, op: OpId) -> Option<Vec<Value>> {
        let Some(Attr::Types(types)) = graph.attr(op, "types") else { return None };
        let operand = graph.operand(op, 0)?;
        if self.db.is_none() && AliasDb::is_mutable_type(graph.ty(operand)) {
            return None;
        }
        let value = constants::value_of(graph, operand)?;
        let holds = types.iter().any(|ty| is_instance(&value, ty, self.context.module));
        Some(vec![Value::Bool(holds)])
    }

    /// Whether a result cannot escape the graph.
    fn stays_inside(&self, graph: &Graph, op: OpId) -> bool {
        let Some(db) = &self.db else { return false };
        let mutable: Vec<ValueId> =
            graph.results(op).iter().copied().filter(|v| AliasDb::is_mutable_type(graph.ty(*v))).collect();
        let outside = graph.outputs().iter().chain(graph.inputs()).copied().collect::<Vec<_>>();
        !db.any_may_contain_alias(&mutable, &outside)
    }

    /// The row of an op that may run at compile time.
    fn computes(&self, graph: &Graph, op: OpId) -> Option<Op> {
        let facts = facts(self.context.registry, graph, op);
        let row = facts.op?;
        let schema = row.schema().ok()?;
        let structure = row.def().family == Family::Container && row.name().namespace() == "prim";
        let unwrap =
            graph.kind(op) == "prim::unchecked_unwrap_optional" || graph.kind(op) == "prim::Uninitialized";
        let unchanged = match &self.db {
            Some(db) => !db.op_has_writers(graph, op),
            None => {
                let immutable = |value: &ValueId| !AliasDb::is_mutable_type(graph.ty(*value));
                graph.operands(op).iter().all(immutable) && graph.results(op).iter().all(immutable)
            }
        };
        let harmless = Effects::MAY_RAISE | Effects::IDENTITY;
        let runs = harmless.contains(facts.effects) && !facts.writes && !unwrap && unchanged;
        (runs && (structure || !schema.is_vararg) && graph.result_count(op) > 0).then(|| row.clone())
    }
}

/// The row that an op runs with: the one for numbers, with the number, where its second operand is a constant that counts as one.
pub(super) fn number_row(
    registry: &Registry,
    graph: &Graph,
    op: OpId,
    row: Op,
    operands: &mut [Value],
) -> Op {
    if !row.def().facts.contains(&Fact::ConstantIsNumber) || row.variant() != Variant::Plain {
        return row;
    }
    let number = graph.operand(op, 1).and_then(|value| constants::number_of(graph, value));
    match (number, registry.find(row.name().as_str(), "Scalar"), operands.get_mut(1)) {
        (Some(number), Some(overload), Some(operand)) => {
            *operand = Value::from(number);
            overload.clone()
        }
        _ => row,
    }
}

/// Whether a result is a list of what may be None or goes into one. PyTorch has no such constants, and takes what is in such a
/// list for something that may be written to; so this pass leaves both as they are, and only [`fold`] computes them.
fn joins_optionals(graph: &Graph, op: OpId) -> bool {
    let holds_none = |ty: &Type| ty.element().is_some_and(|e| matches!(e.kind(), TypeKind::Optional(_)));
    graph.results(op).iter().any(|result| {
        let joins = |user: OpId| graph.results(user).iter().any(|list| holds_none(graph.ty(*list)));
        let mutable = AliasDb::is_mutable_type(graph.ty(*result));
        holds_none(graph.ty(*result)) || mutable && graph.uses(*result).any(|user| joins(user.op))
    })
}

/// Whether an op on these values is done at once.
pub(super) fn is_small(row: &Op, values: &[Value]) -> bool {
    let family = row.def().family;
    let makes = matches!(family, Family::Create | Family::View)
        || (family == Family::Container && row.name().namespace() != "prim");
    let bound = |total: i64, n: i64| total.saturating_mul(n.saturating_abs().max(1));
    let number = |value: &Value| match value {
        Value::Int(n) if makes => n.saturating_abs(),
        Value::List(list) if makes => list.items().iter().filter_map(|v| v.to_int().ok()).fold(1, bound),
        Value::Tensor(t) => t.numel() as i64,
        _ => 1,
    };
    values.iter().all(|value| number(value) <= MAX_ELEMENTS)
}

/// Whether the results are known to be tensors with no more elements than the largest operand has, and not too many.
fn is_no_larger(graph: &Graph, op: OpId, operands: &[Value]) -> bool {
    let given = operands.iter().filter_map(|value| Some(value.to_tensor().ok()?.numel() as i64)).max();
    let made = |value: &ValueId| match graph.ty(*value).kind() {
        TypeKind::Tensor(t) => product(t.sizes.as_deref()?),
        _ => None,
    };
    let made = graph.results(op).iter().map(made).collect::<Option<Vec<i64>>>();
    given.zip(made).is_some_and(|(given, made)| made.iter().all(|n| *n <= given.min(MAX_OF_WEIGHTS)))
}

/// Puts the ops of a block in the place of the op that it is nested in.
pub(super) fn inline_block(graph: &mut Graph, op: OpId, block: BlockId) {
    graph.splice_before(block, op);
    let results = graph.block_results(block).to_vec();
    graph.replace_op(op, &results);
}

/// Results that both branches take from outside, or that are equal constants, need no branch.
fn drop_equal_results(graph: &mut Graph, context: &Context<'_>, op: OpId) -> bool {
    let &[yes, no] = graph.nested_blocks(op) else { return false };
    let mut changed = false;
    let mut n = 0;
    while n < graph.result_count(op) && !context.is_spent() {
        let (a, b) = (graph.block_results(yes)[n], graph.block_results(no)[n]);
        let replacement = if a == b { Some(a) } else { equal_constant(graph, op, a, b) };
        let (Some(value), Some(result)) = (replacement, graph.result(op, n)) else {
            n += 1;
            continue;
        };
        context.step(|| format!("drops result {n}, equal in both branches, of {}", graph.op_line(op)));
        graph.replace_all_uses(result, value);
        graph.remove_result(op, n);
        graph.remove_block_result(yes, n);
        graph.remove_block_result(no, n);
        changed = true;
    }
    changed
}

/// The constant that both values are, made visible outside of the branch.
fn equal_constant(graph: &mut Graph, op: OpId, a: ValueId, b: ValueId) -> Option<ValueId> {
    let (first, second) = (constants::constant_op(graph, a)?, constants::constant_op(graph, b)?);
    let equal = graph.ty(a) == graph.ty(b) && cse::same_attrs(graph.attrs(first), graph.attrs(second));
    if !equal || AliasDb::is_mutable_type(graph.ty(a)) {
        return None;
    }
    if graph.is_visible(a, op) {
        return Some(a);
    }
    if graph.is_visible(b, op) {
        return Some(b);
    }
    graph.move_before(first, op);
    Some(a)
}

/// A value that a loop carries around unchanged is the one that entered.
fn drop_unchanged_values(graph: &mut Graph, context: &Context<'_>, op: OpId) -> bool {
    let Some(body) = graph.nested_blocks(op).first().copied() else { return false };
    let mut changed = false;
    for n in (0..graph.result_count(op)).rev() {
        let (param, end) = (graph.params(body)[n + 1], graph.block_results(body)[n + 1]);
        let (Some(start), Some(result)) = (graph.operand(op, n + 2), graph.result(op, n)) else { continue };
        if param != end || !context.step(|| format!("carries value {n} no more in {}", graph.op_line(op))) {
            continue;
        }
        graph.replace_all_uses(result, start);
        graph.replace_all_uses(param, start);
        graph.remove_result(op, n);
        graph.remove_operand(op, n + 2);
        graph.remove_param(body, n + 1);
        graph.remove_block_result(body, n + 1);
        changed = true;
    }
    changed
}
