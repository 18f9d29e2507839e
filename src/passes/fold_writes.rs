//! Computes tensors that are made of constants and then written to, where they stay inside the graph: a mask that is
//! allocated, filled part by part through views and read afterwards, at every call the same.
//!
//! Ops are *closed* where each operand is a constant or comes of a closed op, where all that write to what they read or
//! give are closed, and where no result of the graph, and nothing that was given to it, may hold what they give. They run
//! once, in their order; what others use of them becomes constants. Others must come after the last write to what they
//! use. Whatever a closed op cannot be (random, in a block of its own, one that gives a tensor other sizes) leaves its
//! neighbours where they are.

use super::constant_propagation::{is_small, number_row};
use super::{Context, constants, dce};
use crate::analysis::{AliasDb, facts};
use crate::diag::Result;
use crate::dialects::prim::constant;
use crate::dialects::{Effects, Fact, Family, Node, Op, Registry, Run, Variant};
use crate::eval;
use crate::ir::{Graph, OpId, Type, ValueId};
use crate::tensor::Tensor;
use crate::value::Value;
use hashbrown::{HashMap, HashSet};

/// How often all ops are examined before it is given up.
const MAX_ROUNDS: usize = 64;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let writes = |op: OpId| facts(context.registry, graph, op).writes;
    if !graph.block_ops(graph.root()).any(writes) {
        return Ok(false);
    }
    let db = context.analysis::<AliasDb>(graph);
    let Some(found) = Closed::of(graph, context, &db).computed() else { return Ok(false) };
    let (count, uses) = (found.ops.len(), found.used.len());
    if !context.step(|| format!("computes {uses} values by {count} ops that write")) {
        return Ok(false);
    }
    found.apply(graph);
    context.changed();
    dce::run(graph, context)?;
    Ok(true)
}

/// The closed ops of a graph's outermost block.
struct Closed<'a> {
    registry: &'a Registry,
    graph: &'a Graph,
    db: &'a AliasDb,
    /// Ops of the block by their place.
    places: HashMap<OpId, usize>,
    /// In order, with their rows and places.
    rows: Vec<(OpId, Op, usize)>,
    inside: HashSet<OpId>,
}

/// What closed ops give.
struct Computed {
    /// In order.
    ops: Vec<OpId>,
    /// Values that other ops use, and what they are.
    used: Vec<(ValueId, Value)>,
}

impl<'a> Closed<'a> {
    fn of(graph: &'a Graph, context: &'a Context<'_>, db: &'a AliasDb) -> Closed<'a> {
        let ops: Vec<OpId> = graph.block_ops(graph.root()).collect();
        let row = |(place, op): (usize, &OpId)| Some((*op, computes(graph, context, *op)?, place));
        let rows: Vec<(OpId, Op, usize)> = ops.iter().enumerate().filter_map(row).collect();
        let inside = rows.iter().map(|(op, ..)| *op).collect();
        let places = ops.into_iter().enumerate().map(|(n, op)| (op, n)).collect();
        let mut closed = Closed { registry: context.registry, graph, db, places, rows, inside };
        closed.settle();
        closed
    }

    /// Takes out what is not closed, until all that is left is.
    fn settle(&mut self) {
        let ops: Vec<OpId> = self.rows.iter().map(|(op, ..)| *op).collect();
        for _ in 0..MAX_ROUNDS {
            let before = self.inside.len();
            for op in &ops {
                if self.inside.contains(op) && !self.is_closed(*op) {
                    self.inside.remove(op);
                }
            }
            if self.inside.len() == before {
                return;
            }
        }
        self.inside.clear();
    }

    fn is_closed(&self, op: OpId) -> bool {
        let graph = self.graph;
        let is_constant = |value: ValueId| constants::constant_op(graph, value).is_some();
        let made = |value: ValueId| graph.def_op(value).is_some_and(|op| self.inside.contains(&op));
        let operands = graph.operands(op).iter();
        // A constant is one object for all calls.
        let fine = |(n, value): (usize, &ValueId)| match is_constant(*value) {
            true => !self.db.has_writers(*value),
            false => {
                (made(*value) && self.only_closed_write(*value)) || self.stand_in(op, n, *value).is_some()
            }
        };
        operands.clone().enumerate().all(fine)
            && graph.results(op).iter().all(|value| {
                self.only_closed_write(*value)
                    && self.stays_inside(*value)
                    && self.is_read_behind_writes(*value)
            })
    }

    /// A tensor that can replace one of which an op reads only dtype and device, where types determine these: `x.new_zeros(sizes)`.
    fn stand_in(&self, op: OpId, operand: usize, value: ValueId) -> Option<Value> {
        let at = self.rows.binary_search_by_key(self.places.get(&op)?, |(_, _, place)| *place).ok()?;
        let row = &self.rows[at].1;
        let schema = row.schema().ok()?;
        let given = |name: &str| schema.argument_index(name);
        let makes =
            row.def().family == Family::Create && given("self") == Some(operand) && given("size").is_some();
        let ty = self.graph.ty(value).as_tensor().filter(|_| makes)?;
        let dtype = ty.dtype.filter(|dtype| !dtype.is_quantized())?;
        ty.device.as_ref().filter(|device| device.is_cpu())?;
        Tensor::zeros(dtype, &[0]).ok().map(Value::Tensor)
    }

    fn only_closed_write(&self, value: ValueId) -> bool {
        self.db.writers(value).is_some_and(|writers| writers.iter().all(|op| self.inside.contains(op)))
    }

    fn stays_inside(&self, value: ValueId) -> bool {
        let graph = self.graph;
        let mut outside = graph.outputs().iter().chain(graph.inputs());
        !AliasDb::is_mutable_type(graph.ty(value)) || !outside.any(|v| self.db.may_contain_alias(value, *v))
    }

    /// Whether ops that are not closed use a value only after all that write to it.
    fn is_read_behind_writes(&self, value: ValueId) -> bool {
        let graph = self.graph;
        let mut others = graph.uses(value).map(|u| u.op).filter(|op| !self.inside.contains(op)).peekable();
        if others.peek().is_none() || !AliasDb::is_mutable_type(graph.ty(value)) {
            return true;
        }
        if !graph.ty(value).is_tensor() {
            return !self.db.has_deep_writers(value);
        }
        let writers = self.db.writers(value).unwrap_or_default();
        let last = writers.iter().filter_map(|op| self.places.get(op)).max();
        last.is_none_or(|last| others.all(|op| self.place(op).is_none_or(|place| place > *last)))
    }

    /// The place of an op, or of the op around it, in the block; None for the end of the graph.
    fn place(&self, op: OpId) -> Option<usize> {
        let mut at = op;
        loop {
            if let Some(place) = self.places.get(&at) {
                return Some(*place);
            }
            let block = self.graph.terminated_block(at).or_else(|| self.graph.parent(at))?;
            at = self.graph.owner(block)?;
        }
    }

    /// Runs those that have to do with writes. None where there are none, or one of them fails.
    fn computed(&self) -> Option<Computed> {
        let graph = self.graph;
        let needed = self.needed();
        let run = Run::silent();
        run.set_grad_enabled(false);
        let mut values: HashMap<ValueId, Value> = HashMap::new();
        let mut found = Computed { ops: Vec::new(), used: Vec::new() };
        for (op, row, _) in self.rows.iter().filter(|(op, ..)| needed.contains(op)) {
            let value = |(n, v): (usize, &ValueId)| {
                let known = values.get(v).cloned().or_else(|| constants::value_of(graph, *v));
                known.or_else(|| self.stand_in(*op, n, *v))
            };
            let mut operands: Vec<Value> =
                graph.operands(*op).iter().enumerate().map(value).collect::<Option<_>>()?;
            let row = &number_row(self.registry, graph, *op, row.clone(), &mut operands);
            if row.def().family != Family::View && !is_small(row, &operands) {
                return None;
            }
            let types: Vec<Type> = graph.results(*op).iter().map(|v| graph.ty(*v).clone()).collect();
            let node = Node { attrs: graph.attrs(*op), result_types: &types };
            let results = eval::call(row, &operands, node, &run).ok().filter(|r| r.len() == types.len())?;
            for (value, result) in graph.results(*op).into_iter().zip(results) {
                if graph.uses(value).any(|u| !needed.contains(&u.op)) {
                    let tracked = matches!(&result, Value::Tensor(t) if t.requires_grad());
                    constant::attr(&result).filter(|_| !tracked)?;
                    found.used.push((value, result.clone()));
                }
                values.insert(value, result);
            }
            found.ops.push(*op);
        }
        (!found.ops.is_empty()).then_some(found)
    }

    /// Closed ops that see something that is written to, and what makes their operands.
    fn needed(&self) -> HashSet<OpId> {
        let graph = self.graph;
        let sees = |op: OpId| {
            graph.operands(op).iter().chain(&graph.results(op)).any(|v| self.db.has_deep_writers(*v))
        };
        let mut work: Vec<OpId> =
            self.rows.iter().map(|(op, ..)| *op).filter(|op| self.inside.contains(op) && sees(*op)).collect();
        let mut needed: HashSet<OpId> = work.iter().copied().collect();
        while let Some(op) = work.pop() {
            let makers = graph.operands(op).iter().filter_map(|v| graph.def_op(*v));
            work.extend(makers.filter(|op| self.inside.contains(op) && needed.insert(*op)));
        }
        needed
    }
}

impl Computed {
    fn apply(self, graph: &mut Graph) {
        for (value, known) in self.used {
            let Some(op) = graph.def_op(value) else { continue };
            if let Some(constant) = constants::insert_computed(graph, op, &known) {
                if known.is_none() {
                    let ty = graph.ty(value).clone();
                    graph.set_type(constant, ty);
                }
                graph.replace_all_uses(value, constant);
            }
        }
        for op in self.ops.into_iter().rev() {
            graph.erase(op);
        }
    }
}

/// The row of an op that does nothing but compute and write to its operands.
fn computes(graph: &Graph, context: &Context<'_>, op: OpId) -> Option<Op> {
    let facts = facts(context.registry, graph, op);
    let row = facts.op?;
    let structure = row.def().family == Family::Container && row.name().namespace() == "prim";
    let reshapes =
        facts.writes && (row.def().facts.contains(&Fact::Reshapes) || row.variant() == Variant::Out);
    let plain = graph.kind(op) != "prim::Constant"
        && graph.kind(op) != "prim::Uninitialized"
        && graph.kind(op) != "prim::unchecked_unwrap_optional"
        && graph.nested_blocks(op).is_empty()
        && graph.attr(op, "Subgraph").is_none()
        && graph.result_count(op) > 0;
    let harmless = Effects::MAY_RAISE | Effects::IDENTITY;
    let fixed = structure || !row.schema().ok()?.is_vararg;
    (plain && fixed && !reshapes && harmless.contains(facts.effects)).then_some(row)
}
