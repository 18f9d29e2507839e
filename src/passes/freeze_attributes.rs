//! Makes constants of a loaded model's attributes in one of its methods, for a plan: what is read of tensors, numbers and
//! text that nothing in the graph sets or writes to.
//!
//! Unlike `freeze`, nothing is computed from them and nothing is folded, and the model may be in training mode. Who runs
//! the graph must see to it that the attributes are still the same: what was frozen is reported to a
//! [`FrozenAttributes`] where the tool hands one to its passes. Memory of somebody else, who may write to it unseen, is
//! not frozen.

use super::{Context, constants};
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::ir::{Attr, Graph, OpId, Symbol, ValueId};
use crate::value::{Object, Value};
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;

/// An attribute that became a constant.
#[derive(Clone, Debug)]
pub struct FrozenAttribute {
    /// Whose attribute.
    pub object: Object,
    /// Its name.
    pub name: Symbol,
    /// What it was.
    pub value: Value,
}

/// What was frozen: a tool hands one to its passes and reads it afterwards.
#[derive(Debug, Default)]
pub struct FrozenAttributes(Mutex<Vec<FrozenAttribute>>);

impl FrozenAttributes {
    /// Takes what was frozen so far.
    pub fn take(&self) -> Vec<FrozenAttribute> {
        std::mem::take(&mut self.0.lock())
    }
}

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let Some(instance) = context.extra::<Object>() else { return Ok(false) };
    let class = context.module.class(instance.class());
    let is_method =
        context.function.is_some_and(|name| class.is_some_and(|c| c.methods.values().any(|m| *m == name)));
    if !is_method {
        return Ok(false);
    }
    let report = context.extra::<FrozenAttributes>();
    let mut changed = false;
    freeze(
        graph,
        context,
        instance,
        |_, _, value| is_frozen(value),
        |attribute| {
            changed = true;
            if let Some(report) = report {
                report.0.lock().push(attribute);
            }
        },
    );
    Ok(changed)
}

/// Whether a value can be relied on between calls.
fn is_frozen(value: &Value) -> bool {
    match value {
        Value::Tensor(tensor) => tensor.is_plain() && !tensor.storage().is_foreign(),
        Value::None | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Str(_) | Value::Device(_) => {
            true
        }
        Value::Tuple(tuple) => {
            tuple.items().iter().all(|item| !matches!(item, Value::Tensor(_)) && is_frozen(item))
        }
        _ => false,
    }
}

/// Replaces reads of attributes of an object, and of the objects that it holds, by constants where `takes` (which is
/// given the type that the graph says, whether nothing writes to the value, and the value) says so. `done` sees each.
pub(super) fn freeze(
    graph: &mut Graph,
    context: &Context<'_>,
    instance: &Object,
    takes: impl Fn(&Graph, ValueId, &Value) -> bool,
    mut done: impl FnMut(FrozenAttribute),
) {
    let db = context.analysis::<AliasDb>(graph);
    let set = attributes_that_are_set(graph);
    let mut known: HashMap<ValueId, Object> = HashMap::new();
    if let Some(this) = graph.inputs().first() {
        known.insert(*this, instance.clone());
    }
    for op in graph.all_ops() {
        if context.is_spent() {
            return;
        }
        let Some(read) = Read::of(graph, op, &known) else { continue };
        if let Value::Object(object) = read.value {
            // An attribute that is set may hold another object when it is read.
            if !set.contains(&read.name) {
                known.insert(read.result, object);
            }
            continue;
        }
        let mutable = AliasDb::is_mutable_type(graph.ty(read.result));
        let changes = set.contains(&read.name) || (mutable && db.has_deep_writers(read.result));
        if changes || !takes(graph, read.result, &read.value) {
            continue;
        }
        if let Some(constant) = constants::insert_before(graph, op, &read.value) {
            context.step(|| format!("freezes {}", graph.op_line(op)));
            if read.value.is_none() {
                let ty = graph.ty(read.result).clone();
                graph.set_type(constant, ty);
            }
            graph.replace_op(op, &[constant]);
            done(FrozenAttribute { object: read.object, name: read.name, value: read.value });
        }
    }
}

/// Names of attributes that some op sets, whatever object it sets them on.
fn attributes_that_are_set(graph: &Graph) -> HashSet<Symbol> {
    let setters = graph.all_ops().into_iter().filter(|op| graph.kind(*op) == "prim::SetAttr");
    setters.filter_map(|op| graph.attr(op, "name").and_then(Attr::as_str).map(Symbol::new)).collect()
}

/// What a GetAttr of a known object gives.
struct Read {
    result: ValueId,
    object: Object,
    name: Symbol,
    value: Value,
}

impl Read {
    fn of(graph: &Graph, op: OpId, known: &HashMap<ValueId, Object>) -> Option<Read> {
        if graph.kind(op) != "prim::GetAttr" {
            return None;
        }
        let object = known.get(&graph.operand(op, 0)?)?.clone();
        let name = Symbol::new(graph.attr(op, "name").and_then(Attr::as_str)?);
        let value = object.get(name)?;
        Some(Read { result: graph.result(op, 0)?, object, name, value })
    }
}
