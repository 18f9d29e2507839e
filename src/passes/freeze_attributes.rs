//! Makes constants of a loaded model's attributes in one of its methods, for a plan: what is read of tensors, numbers and
//! text that nothing in the graph sets or writes to; with `written`, of tensors that it writes to as well. A list of these that
//! is only read, as the weights of recurrent layers and the windows of transformers are, is made anew of its items.
//!
//! Unlike `freeze`, nothing is computed from them and nothing is folded, and the model may be in training mode. Who runs
//! the graph must see to it that the attributes are still the same: what was frozen is reported to a
//! [`FrozenAttributes`] where the tool hands one to its passes. Memory that was lent to others, who may write to it
//! unseen, is frozen only with `lent`.

use super::attribute_writes::AttributeWrites;
use super::{Context, PassOption, constants};
use crate::analysis::{AliasDb, facts};
use crate::diag::Result;
use crate::dialects::Effects;
use crate::ir::{Attr, Graph, Location, OpId, Symbol, ValueId};
use crate::tensor::Tensor;
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
    /// Of a list, what stood in it.
    pub items: Vec<Value>,
    /// Where it was read.
    pub location: Option<Location>,
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

pub(super) const OPTIONS: &[PassOption] = &[
    PassOption::bool(
        "written",
        false,
        "also tensors that the graph writes to; the runtime provides fresh copies of them for each call",
    ),
    PassOption::bool(
        "lent",
        false,
        "also tensors whose memory others may write to unseen; the runtime reads them at each call",
    ),
];

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
    let mut done = |attribute: FrozenAttribute| {
        changed = true;
        if let Some(report) = report {
            report.0.lock().push(attribute);
        }
    };
    let (written, lent) = (context.flag("written")?, context.flag("lent")?);
    make_lists(graph, context, instance, lent, &mut done);
    freeze(
        graph,
        context,
        instance,
        &Changed { writes_matter: !written, ..Changed::default() },
        |_, read| {
            (matches!(read.value, Value::Object(_)) || is_frozen(&read.value, lent))
                .then(|| read.value.clone())
        },
        &mut done,
    );
    Ok(changed)
}

/// Makes lists that attributes hold of their items, where the graph only reads them.
fn make_lists(
    graph: &mut Graph,
    context: &Context<'_>,
    instance: &Object,
    lent: bool,
    mut done: impl FnMut(FrozenAttribute),
) {
    let db = context.analysis::<AliasDb>(graph);
    let mut set = Changed::default();
    set.add_set(graph);
    let mut objects = objects(graph, instance);
    for op in graph.all_ops() {
        let Some(read) = Read::of(graph, op, &objects).filter(|read| !set.names.contains(&read.name)) else {
            continue;
        };
        let list = match &read.value {
            Value::Object(object) => {
                objects.insert(read.result, object.clone());
                continue;
            }
            Value::List(list) => list,
            _ => continue,
        };
        let items: Vec<Value> = list.items().iter().take(MAX_ITEMS + 1).cloned().collect();
        let may_stand = items.len() <= MAX_ITEMS && items.iter().all(|item| is_frozen(item, lent));
        if !may_stand || !is_only_seen(graph, context, read.result) {
            continue;
        }
        if db.has_deep_writers(read.result) || !context.step(|| format!("freezes {}", graph.op_line(op))) {
            continue;
        }
        let constants = items.iter().map(|item| constants::insert_computed(graph, op, item));
        let Some(operands) = constants.collect::<Option<Vec<ValueId>>>() else { continue };
        let made =
            graph.create(Symbol::new("prim::ListConstruct"), &operands, &[graph.ty(read.result).clone()]);
        graph.set_location_id(made, graph.location_id(op));
        graph.insert_before(made, op);
        let (results, location) = (graph.results(made), graph.location(op).cloned());
        graph.replace_op(op, &results);
        done(FrozenAttribute { object: read.object, name: read.name, value: read.value, items, location });
    }
}

/// Whether all uses of a list only read its elements, so that it does not escape.
fn is_only_seen(graph: &Graph, context: &Context<'_>, list: ValueId) -> bool {
    graph.uses(list).all(|user| {
        if graph.terminated_block(user.op).is_some() || !graph.nested_blocks(user.op).is_empty() {
            return false;
        }
        let facts = facts(context.registry, graph, user.op);
        let Some(row) = &facts.op else { return false };
        let Ok(schema) = row.marked_schema() else { return false };
        let marked = schema.arguments.get(user.index).is_none_or(|argument| argument.alias.is_some());
        // A result without a mark of its own is made anew: a copy of a list.
        let gives_on = graph.results(user.op).iter().enumerate().any(|(n, result)| {
            let ty = graph.ty(*result);
            let fresh = schema.returns.get(n).is_some_and(|result| result.alias.is_none());
            let fresh = fresh && graph.kind(user.op).namespace() == "aten";
            !fresh && !ty.is_tensor() && AliasDb::is_mutable_type(ty)
        });
        let keeps = facts.writes || facts.effects.contains(Effects::WRITES_WORLD);
        !keeps && !(gives_on && (marked || graph.kind(user.op).namespace() == "prim"))
    })
}

/// The receiver of a method, by the graph's value.
fn objects(graph: &Graph, instance: &Object) -> HashMap<ValueId, Object> {
    graph.inputs().first().map(|this| (*this, instance.clone())).into_iter().collect()
}

/// Items of a list that is made anew.
const MAX_ITEMS: usize = 1024;
/// How often memory may have been lent to others, each time of which outdates a plan, before plans do without it.
const MAX_PINS: u64 = 16;

/// Whether others may write to a tensor's memory unseen: it is lent now, or was so often that it will be again.
pub fn is_lent(tensor: &Tensor) -> bool {
    let storage = tensor.storage();
    storage.is_foreign() || storage.pins() > MAX_PINS
}

/// Whether a value can be relied on between calls; with `lent`, whether where a tensor lies can.
fn is_frozen(value: &Value, lent: bool) -> bool {
    match value {
        Value::Tensor(tensor) => tensor.is_plain() && (lent || !is_lent(tensor)),
        Value::None | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Str(_) | Value::Device(_) => {
            true
        }
        Value::Tuple(tuple) => {
            tuple.items().iter().all(|item| !matches!(item, Value::Tensor(_)) && is_frozen(item, lent))
        }
        _ => false,
    }
}

/// Names of attributes that ops set, and of those whose values they write to: an attribute of such a name may differ from
/// read to read, whatever object it is of.
#[derive(Clone, Debug)]
pub(super) struct Changed {
    names: HashSet<Symbol>,
    /// Whether attributes whose tensors the graph itself writes to are among them.
    writes_matter: bool,
}

impl Default for Changed {
    fn default() -> Changed {
        Changed { names: HashSet::new(), writes_matter: true }
    }
}

impl Changed {
    /// Adds what a graph sets or writes to.
    pub(super) fn add(&mut self, graph: &Graph, context: &Context<'_>) {
        self.add_set(graph);
        let db = context.analysis::<AliasDb>(graph);
        for op in graph.all_ops() {
            let is_read = graph.kind(op) == "prim::GetAttr";
            let Some(value) = graph.result(op, 0).filter(|_| is_read) else { continue };
            if AliasDb::is_mutable_type(graph.ty(value)) && db.has_deep_writers(value) {
                self.names.extend(name_of(graph, op));
            }
        }
    }

    /// Adds what a graph sets.
    pub(super) fn add_set(&mut self, graph: &Graph) {
        let setters = graph.all_ops().into_iter().filter(|op| graph.kind(*op) == "prim::SetAttr");
        self.names.extend(setters.filter_map(|op| name_of(graph, op)));
    }
}

/// The attribute that an op reads or sets.
pub(super) fn name_of(graph: &Graph, op: OpId) -> Option<Symbol> {
    graph.attr(op, "name").and_then(Attr::as_str).map(Symbol::new)
}

/// Replaces reads of attributes of an object, and of the objects that it holds, by constants where nothing in the graph
/// changes them, nor does `elsewhere` say so, and `takes` gives the constant. What `takes` refuses of objects is not looked
/// into. `done` sees each attribute that became a constant.
pub(super) fn freeze(
    graph: &mut Graph,
    context: &Context<'_>,
    instance: &Object,
    elsewhere: &Changed,
    takes: impl Fn(&Graph, &Read) -> Option<Value>,
    mut done: impl FnMut(FrozenAttribute),
) {
    let mut set = elsewhere.clone();
    set.add_set(graph);
    let writes = AttributeWrites::of(graph, context, &storages(graph, instance, &set));
    let mut known = objects(graph, instance);
    for op in graph.all_ops() {
        if context.is_spent() {
            return;
        }
        let Some(read) = Read::of(graph, op, &known) else { continue };
        if let Value::Object(object) = &read.value {
            // An attribute that is set may hold another object when it is read.
            if !set.names.contains(&read.name) && takes(graph, &read).is_some() {
                known.insert(read.result, object.clone());
            }
            continue;
        }
        let storage = read.value.to_tensor().ok().map(|tensor| tensor.storage().id());
        let is_written =
            || AliasDb::is_mutable_type(graph.ty(read.result)) && writes.reach(read.result, storage);
        if set.writes_matter && is_written() || set.names.contains(&read.name) {
            continue;
        }
        let Some(value) = takes(graph, &read) else { continue };
        if let Some(constant) = constants::insert_computed(graph, op, &value) {
            context.step(|| format!("freezes {}", graph.op_line(op)));
            if read.value.is_none() {
                let ty = graph.ty(read.result).clone();
                graph.set_type(constant, ty);
            }
            let location = graph.location(op).cloned();
            graph.replace_op(op, &[constant]);
            let Read { object, name, value, .. } = read;
            done(FrozenAttribute { object, name, value, items: Vec::new(), location });
        }
    }
}

/// The storages of the tensors that attributes hold, by the values that read them.
fn storages(graph: &Graph, instance: &Object, set: &Changed) -> HashMap<ValueId, usize> {
    let (mut known, mut found) = (objects(graph, instance), HashMap::new());
    for op in graph.all_ops() {
        let Some(read) = Read::of(graph, op, &known).filter(|read| !set.names.contains(&read.name)) else {
            continue;
        };
        match read.value {
            Value::Object(object) => _ = known.insert(read.result, object),
            Value::Tensor(tensor) => _ = found.insert(read.result, tensor.storage().id()),
            _ => {}
        }
    }
    found
}

/// What a GetAttr of a known object gives.
pub(super) struct Read {
    pub(super) result: ValueId,
    pub(super) object: Object,
    pub(super) name: Symbol,
    pub(super) value: Value,
}

impl Read {
    fn of(graph: &Graph, op: OpId, known: &HashMap<ValueId, Object>) -> Option<Read> {
        if graph.kind(op) != "prim::GetAttr" {
            return None;
        }
        let object = known.get(&graph.operand(op, 0)?)?.clone();
        let name = name_of(graph, op)?;
        let value = object.get(name)?;
        Some(Read { result: graph.result(op, 0)?, object, name, value })
    }
}
