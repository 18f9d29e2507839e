//! Freezing: attributes of a model that nothing changes become constants of its `forward`, and what can be computed
//! from them is computed now.
//!
//! Calls are inlined first, so that every attribute that `forward` reads is a chain of GetAttr from its object. Frozen
//! are attributes that no op sets and no op writes to, in two rounds: numbers and text first, so that what runs in
//! training only is gone when tensors are looked at. The model must be in evaluation mode, and other methods keep
//! reading attributes. A caller who changes an attribute later is not seen: that is what freezing means.

use super::{
    Context, constant_pooling, constant_propagation, dce, fold_frozen, freeze_attributes, inline,
    remove_dropout,
};
use crate::analysis::AliasDb;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Graph, Module, Symbol, ValueId};
use crate::value::{Object, Value};

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
    let takes =
        |graph: &Graph, result: ValueId, _: &Value| objects || !AliasDb::is_mutable_type(graph.ty(result));
    freeze_attributes::freeze(graph, context, instance, takes, |_| {});
}
