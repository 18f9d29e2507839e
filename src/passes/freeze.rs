//! Freezing: attributes of a model that nothing changes become constants of its `forward`, and what can be computed
//! from them is computed now.
//!
//! Calls are inlined first, so that every attribute that `forward` reads is a chain of GetAttr from its object. Frozen
//! are attributes that no op sets and no op writes to, in two rounds: numbers and text first, so that what runs in
//! training only is gone when tensors are looked at. The model must be in evaluation mode, and other methods keep
//! reading attributes. A caller who changes an attribute later is not seen: that is what freezing means.

use super::{
    Context, constant_pooling, constant_propagation, constants, dce, fold_frozen, inline, remove_dropout,
};
use crate::analysis::AliasDb;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Attr, Graph, Module, OpId, Symbol, ValueId};
use crate::value::{Object, Value};
use hashbrown::{HashMap, HashSet};

pub(super) fn run(module: &mut Module, context: &Context<'_>) -> Result<bool> {
    let Some(instance) = context.extra::<Object>() else {
        return Err(Diagnostic::input("only a model that was loaded from an archive can be frozen")
            .hint("give a .pt file; graph text has no values of attributes"));
    };
    if let Some(Value::Bool(true)) = instance.get(Symbol::new("training")) {
        return Err(
            Diagnostic::input("a model in training mode cannot be frozen").hint("save it after model.eval()")
        );
    }
    let Some(name) = module.method(instance.class(), "forward").map(|function| function.name) else {
        return Err(Diagnostic::input("the model has no method 'forward'"));
    };
    let rest = module.clone();
    let Some(function) = module.functions.get_mut(&name) else { return Ok(false) };
    freeze(&mut function.graph, &context.beside(&rest), instance)?;
    Ok(context.steps() > 0)
}

fn freeze(graph: &mut Graph, context: &Context<'_>, instance: &Object) -> Result<()> {
    inline::run(graph, context)?;
    make_constants(graph, context, instance, false);
    context.changed();
    constant_propagation::immutable_types(graph, context)?;
    context.changed();
    dce::run(graph, context)?;
    context.changed();
    make_constants(graph, context, instance, true);
    context.changed();
    remove_dropout::run(graph, context)?;
    fold_frozen::run(graph, context)?;
    context.changed();
    constant_propagation::run(graph, context)?;
    context.changed();
    dce::run(graph, context)?;
    context.changed();
    constant_pooling::run(graph, context)?;
    Ok(())
}

/// Replaces reads of attributes by constants. `objects`: tensors and lists too, where nothing writes to them.
fn make_constants(graph: &mut Graph, context: &Context<'_>, instance: &Object, objects: bool) {
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
        let Some((result, value, name)) = read(graph, op, &known) else { continue };
        if let Value::Object(object) = value {
            known.insert(result, object);
            continue;
        }
        let mutable = AliasDb::is_mutable_type(graph.ty(result));
        let changes = set.contains(&name) || (mutable && db.has_deep_writers(result));
        if changes || (mutable && !objects) {
            continue;
        }
        if let Some(constant) = constants::insert_before(graph, op, &value) {
            context.step(|| format!("freezes {}", graph.op_line(op)));
            if value.is_none() {
                let ty = graph.ty(result).clone();
                graph.set_type(constant, ty);
            }
            graph.replace_op(op, &[constant]);
        }
    }
}

/// Names of attributes that some op sets, whatever object it sets them on.
fn attributes_that_are_set(graph: &Graph) -> HashSet<Symbol> {
    let setters = graph.all_ops().into_iter().filter(|op| graph.kind(*op) == "prim::SetAttr");
    setters.filter_map(|op| graph.attr(op, "name").and_then(Attr::as_str).map(Symbol::new)).collect()
}

/// What a GetAttr of a known object gives.
fn read(graph: &Graph, op: OpId, known: &HashMap<ValueId, Object>) -> Option<(ValueId, Value, Symbol)> {
    if graph.kind(op) != "prim::GetAttr" {
        return None;
    }
    let object = known.get(&graph.operand(op, 0)?)?;
    let name = Symbol::new(graph.attr(op, "name").and_then(Attr::as_str)?);
    Some((graph.result(op, 0)?, object.get(name)?, name))
}
