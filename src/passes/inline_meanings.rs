//! Inlines ops that are defined in TorchScript, so that fusion and lowering, which know primitives
//! only, take them too. Ops of text files by default; with `all`, built-in composites as well; with `layers`, those of them alone
//! that are made of layers or of elementwise work (the fact `Layers`), which plans take apart. An op that declares a derivative
//! keeps its name without `derivatives`: once it is inlined, gradients are those of its meaning, and a surrogate is lost.

use super::Context;
use super::inline::{MAX_GROWTH, Origins, splice};
use crate::diag::{Result, Source};
use crate::dialects::constraint::{Law, ParameterKind};
use crate::dialects::{Fact, Op, Variant, resolve};
use crate::frontend::dialect;
use crate::ir::{Attr, Function, Graph, OpId, Symbol, Type, ValueId};
use hashbrown::HashMap;
use std::sync::Arc;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let (all, derivatives) = (context.flag("all")?, context.flag("derivatives")?);
    let layers = context.flag("layers")?;
    if !all && !layers && !context.registry.has_declared() {
        return Ok(false);
    }
    let registry = Arc::new(context.registry.clone());
    let mut compiled: HashMap<usize, Function> = HashMap::new();
    let mut changed = false;
    let mut left = MAX_GROWTH;
    let mut origins = Origins::new(None);
    let mut work: Vec<(OpId, usize)> = graph.all_ops().into_iter().rev().map(|op| (op, 0)).collect();
    while let Some((op, within)) = work.pop() {
        let Ok(row) = resolve(&registry, graph, op) else { continue };
        let def = row.def();
        let Some(text) = def.meaning.filter(|_| row.variant() == Variant::Plain) else { continue };
        let kept = def.grad.is_some() && !derivatives;
        let wanted = all || def.declared || layers && def.facts.contains(&Fact::Layers);
        if kept || !wanted || origins.contains(within, &Some(row.id())) {
            continue;
        }
        if !compiled.contains_key(&row.id()) {
            let source = Source::new(format!("<meaning of {}>", row.name()), text);
            compiled.insert(row.id(), dialect::meaning(&registry, &source)?);
        }
        let Some(function) = compiled.get(&row.id()) else { continue };
        let size = function.graph.op_count() as u64;
        if size > left {
            context.update(|| format!("leaves {}: no more than {MAX_GROWTH} ops are added", row.name()));
            context.count("meanings left", 1);
            continue;
        }
        left -= size;
        if !context.step(|| format!("inlines the meaning of {}", graph.op_line(op))) {
            break;
        }
        let Some(arguments) = arguments(graph, op, &row) else { continue };
        context.count("meanings inlined", 1);
        let meaning = origins.enter(within, Some(row.id()));
        let place = graph.location(op).cloned().filter(|_| !def.declared);
        let spliced = splice(graph, op, function, &arguments);
        // Where in a built-in definition something is does not matter to the program.
        if let Some(place) = place {
            spliced.iter().for_each(|op| graph.set_location(*op, place.clone()));
        }
        work.extend(spliced.into_iter().rev().map(|op| (op, meaning)));
        changed = true;
    }
    Ok(changed)
}

/// The op's operands, then its attributes as constants before it; None for an attribute that is not a value.
pub fn arguments(graph: &mut Graph, op: OpId, row: &Op) -> Option<Vec<ValueId>> {
    let mut attributes = Vec::new();
    for law in row.def().laws {
        match law {
            Law::Attribute(parameter) => {
                let attr = graph.attr(op, parameter.name.as_str()).or(parameter.default.as_ref())?.clone();
                attributes.push(match (&parameter.kind, attr) {
                    (ParameterKind::Bool, Attr::Int(x)) => (Type::bool(), Attr::Bool(x != 0)),
                    (ParameterKind::Float, Attr::Int(x)) => (Type::float(), Attr::Float(x as f64)),
                    (_, attr) => (type_of(&attr)?, attr),
                });
            }
            Law::Structure(structure) => {
                for name in structure.attributes() {
                    let attr = graph.attr(op, name)?.clone();
                    attributes.push((type_of(&attr)?, attr));
                }
            }
            _ => {}
        }
    }
    let mut arguments = graph.operands(op).to_vec();
    for (ty, attr) in attributes {
        let constant = graph.create(Symbol::new("prim::Constant"), &[], &[ty]);
        graph.set_attr(constant, "value", attr);
        graph.insert_before(constant, op);
        arguments.push(graph.result(constant, 0)?);
    }
    Some(arguments)
}

fn type_of(attr: &Attr) -> Option<Type> {
    Some(match attr {
        Attr::Int(_) => Type::int(),
        Attr::Float(_) => Type::float(),
        Attr::Bool(_) => Type::bool(),
        Attr::Str(_) => Type::str(),
        Attr::Ints(_) => Type::list(Type::int()),
        Attr::Floats(_) => Type::list(Type::float()),
        Attr::Strs(_) => Type::list(Type::str()),
        Attr::Tensor(_) => Type::tensor(),
        _ => return None,
    })
}
