//! Functionalization: a graph that writes to its inputs computes what they become, and copies that to them at its end.
//!
//! Inputs that only ops with a functional form write to (`OpDef::functional`: batch norm and its running statistics) take
//! the results of these; others become ops that give new tensors, or write to a clone, so that `remove-mutation` may take the
//! write away. An input that something else may observe through a view, a container or a block stays unchanged.
//!
//! Inputs are taken to share no memory with each other; who runs the graph must see to that. Where the graph raises, nothing
//! has been written. Source: what PyTorch calls functionalization with copied-back inputs.

use super::{Context, PassOption, constants, remove_mutation, tensor_uses};
use crate::analysis::facts;
use crate::diag::Result;
use crate::dialects::{Fact, Family, fusion, resolve};
use crate::ir::{Argument, Graph, OpId, Schema, Symbol, Type, TypeKind, ValueId};

pub(super) const OPTIONS: &[PassOption] = &[
    PassOption::bool(
        "elementwise",
        false,
        "only inputs that elementwise ops and copies write to, where these are two or more: what fusion makes one of",
    ),
    PassOption::bool(
        "views",
        false,
        "also inputs that are written through views, branches and loops: clones are written instead, for functionalize-tensors",
    ),
];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let elementwise = context.flag("elementwise")?;
    let cloned = if context.flag("views")? { clones(graph, context) } else { Vec::new() };
    let mut written: Vec<Written> = Vec::new();
    let mut count = 0;
    for input in graph.inputs().to_vec() {
        if cloned.contains(&input) {
            continue;
        }
        let writes = writes_to(graph, context, input, elementwise).filter(|writes| *writes > 0);
        if let Some(writes) = writes {
            written.push(Written { input, now: input });
            count += writes;
        }
    }
    if written.is_empty()
        || elementwise && count < 2
        || !context.step(|| format!("copies to {} inputs at the end", written.len()))
    {
        return Ok(!cloned.is_empty());
    }
    for op in graph.block_ops(graph.root()).collect::<Vec<_>>() {
        if make_functional(graph, context, op, &mut written).is_none() {
            make_new(graph, context, op, (&mut written, elementwise));
        }
    }
    let end = graph.terminator(graph.root());
    for state in &written {
        if state.now != state.input {
            copy_back(graph, state, end);
        }
    }
    Ok(true)
}

/// Lets inputs that are written through views, branches or loops be written as clones, which are copied to them at the end; gives these.
fn clones(graph: &mut Graph, context: &Context<'_>) -> Vec<ValueId> {
    let mut cloned = Vec::new();
    for input in graph.inputs().to_vec() {
        let is_direct = |graph: &Graph| writes_to(graph, context, input, false).is_some();
        if !graph.ty(input).is_tensor() || is_direct(graph) {
            continue;
        }
        let names = tensor_uses::names_of_given(graph, context.registry, input);
        let leaves = graph.uses(input).any(|used| graph.terminated_block(used.op).is_some());
        let Some(first) = graph.first_op(graph.root()).filter(|_| names.is_some() && !leaves) else {
            continue;
        };
        if !context.step(|| format!("writes to a clone of {}", graph.display_name(input))) {
            break;
        }
        let none = constants::insert_none(graph, first, Type::none());
        let none = graph.results(none)[0];
        let ty = graph.ty(input).clone();
        let clone = graph.create(Symbol::new("aten::clone"), &[none, none], std::slice::from_ref(&ty));
        graph.insert_before(clone, first);
        let now = graph.results(clone)[0];
        graph.replace_all_uses(input, now);
        graph.set_operand(clone, 0, input);
        let end = graph.terminator(graph.root());
        copy_back(graph, &Written { input, now }, end);
        cloned.push(input);
    }
    cloned
}

/// What an op copies to its first operand, if it is such a copy.
pub fn copied_back(graph: &Graph, op: OpId) -> Option<ValueId> {
    graph.operand(op, 1).filter(|_| graph.kind(op) == fusion::COPY)
}

/// An input that is written to.
struct Written {
    input: ValueId,
    /// What it is so far.
    now: ValueId,
}

/// How many ops write to an input, all of whose uses are of the kind that is understood; None where others are among them.
fn writes_to(graph: &Graph, context: &Context<'_>, input: ValueId, elementwise: bool) -> Option<usize> {
    let mut writes = 0;
    // The input, and what ops that write to it give, which is the same object.
    let mut names = vec![input];
    while let Some(name) = names.pop() {
        if !graph.ty(name).is_tensor() {
            return None;
        }
        for user in graph.uses(name) {
            let facts = facts(context.registry, graph, user.op);
            let row = facts.op?;
            let schema = row.marked_schema().ok()?;
            let marks = &schema.arguments.get(user.index)?.alias;
            let at_root = graph.parent(user.op) == Some(graph.root());
            if !at_root || !graph.nested_blocks(user.op).is_empty() || schema.is_vararg {
                return None;
            }
            match marks {
                Some(marks) if !marks.is_write => return None,
                Some(_) if facts.writes && row.def().functional.is_some() && !elementwise => writes += 1,
                Some(_) if facts.writes => {
                    let [same] = *graph.results(user.op) else { return None };
                    let in_place = graph.kind(user.op).base().ends_with('_') && user.index == 0;
                    if !in_place || row.def().facts.contains(&Fact::Reshapes) {
                        return None;
                    }
                    let is_copy = graph.kind(user.op) == fusion::COPY;
                    if elementwise && row.def().family != Family::Elementwise && !is_copy {
                        return None;
                    }
                    writes += 1;
                    names.push(same);
                }
                _ => {}
            }
        }
    }
    Some(writes)
}

/// Lets an op that writes to an input write to a clone made for it, which is the input from then on; where it is to be
/// `direct`, puts the op that gives a new tensor in its place, if types prove that this is of the same form.
fn make_new(
    graph: &mut Graph,
    context: &Context<'_>,
    op: OpId,
    (written, direct): (&mut [Written], bool),
) -> Option<()> {
    let target = graph.operand(op, 0)?;
    let state = written.iter_mut().find(|state| state.now == target)?;
    let facts = facts(context.registry, graph, op);
    let same = graph.result(op, 0).filter(|_| facts.writes)?;
    let copied = copied_back(graph, op).filter(|new| is_all_of(graph, context, target, *new));
    let mut make = || copied.or_else(|| remove_mutation::functional_of_form(graph, context.registry, op));
    if let Some(new) = direct.then(&mut make).flatten() {
        remove_mutation::replace_uses_behind(graph, target, new, op);
        graph.replace_all_uses(same, new);
        state.now = new;
        graph.erase(op);
        return Some(());
    }
    let none = constants::insert_none(graph, op, Type::none());
    let ty = graph.ty(state.input).clone();
    let clone = graph.create(Symbol::new("aten::clone"), &[target, graph.result(none, 0)?], &[ty]);
    graph.insert_before(clone, op);
    let new = graph.result(clone, 0)?;
    graph.set_operand(op, 0, new);
    remove_mutation::replace_uses_behind(graph, target, new, op);
    graph.replace_all_uses(same, new);
    state.now = new;
    Some(())
}

/// Whether what is copied to a tensor is a new tensor of the same dtype and sizes, which then stands for it.
fn is_all_of(graph: &Graph, context: &Context<'_>, target: ValueId, new: ValueId) -> bool {
    let made = graph.def_op(new).and_then(|def| {
        let row = resolve(context.registry, graph, def).ok()?;
        Some(row.marked_schema().ok()?.returns.first()?.alias.is_none())
    });
    made == Some(true) && are_alike(graph, target, new)
}

/// Whether types determine that both are tensors of the same dtype and sizes.
pub(super) fn are_alike(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    let (TypeKind::Tensor(a), TypeKind::Tensor(b)) = (graph.ty(a).kind(), graph.ty(b).kind()) else {
        return false;
    };
    let is_known = a.sizes.as_ref().is_some_and(|sizes| sizes.iter().all(|dim| dim.known().is_some()));
    is_known && a.dtype.is_some() && a.dtype == b.dtype && a.sizes == b.sizes
}

fn copy_back(graph: &mut Graph, state: &Written, end: OpId) {
    let ty = graph.ty(state.input).clone();
    let Some(no) = constants::insert_before(graph, end, &false.into()) else { return };
    let copy = graph.create(Symbol::new("aten::copy_"), &[state.input, state.now, no], &[ty]);
    graph.insert_before(copy, end);
}

/// Puts the functional form in the place of an op that writes to inputs, where all that it writes to are such.
fn make_functional(
    graph: &mut Graph,
    context: &Context<'_>,
    op: OpId,
    written: &mut [Written],
) -> Option<()> {
    let facts = facts(context.registry, graph, op);
    let row = facts.op.filter(|_| facts.writes)?;
    let name = Symbol::new(row.def().functional?);
    let [target] = context.registry.overloads(name) else { return None };
    let (schema, target) = (row.marked_schema().ok()?, target.schema().ok()?);
    let states = written_by(graph, op, schema, written)?;
    let operands = operands_of(graph, op, schema, target)?;
    let results = graph.results(op);
    let type_of = |(n, result): (usize, &Argument)| match results.get(n) {
        Some(own) => graph.ty(*own).clone(),
        None => {
            let state = states.iter().find(|(argument, _)| is_new(result, *argument));
            state.map_or_else(Type::tensor, |(_, at)| graph.ty(written[*at].input).clone())
        }
    };
    let types: Vec<Type> = target.returns.iter().enumerate().map(type_of).collect();
    let functional = graph.create(name, &operands, &types);
    graph.set_location_id(functional, graph.location_id(op));
    graph.insert_before(functional, op);
    for (argument, at) in states {
        let n = target.returns.iter().position(|result| is_new(result, argument))?;
        let new = graph.result(functional, n)?;
        remove_mutation::replace_uses_behind(graph, written[at].now, new, op);
        written[at].now = new;
    }
    let given = graph.results(functional)[..graph.result_count(op)].to_vec();
    graph.replace_op(op, &given);
    Some(())
}

/// Whether a result of a functional op is what an argument becomes.
fn is_new(result: &Argument, argument: Symbol) -> bool {
    result.name.as_str().strip_suffix("_out") == Some(argument.as_str())
}

/// The arguments that an op writes to, and which of the inputs they are; None where it writes to something else.
fn written_by(graph: &Graph, op: OpId, schema: &Schema, written: &[Written]) -> Option<Vec<(Symbol, usize)>> {
    let mut found = Vec::new();
    for (argument, operand) in schema.arguments.iter().zip(graph.operands(op)) {
        if argument.alias.as_ref().is_some_and(|marks| marks.is_write) {
            let at = written.iter().position(|state| state.now == *operand)?;
            found.push((argument.name, at));
        }
    }
    (!found.is_empty()).then_some(found)
}

/// The operands of an op in the order in which another takes arguments of the same names.
fn operands_of(graph: &Graph, op: OpId, schema: &Schema, target: &Schema) -> Option<Vec<ValueId>> {
    let operand = |argument: &Argument| graph.operand(op, schema.argument_index(argument.name.as_str())?);
    target.arguments.iter().map(operand).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::{Op, Registry};

    /// What rows name as their functional form computes what they do: arguments of the same names and types but for marks, the
    /// same results first, and a result for each argument that is written.
    #[test]
    fn functional_forms_are_of_the_same_shape() {
        let registry = Registry::builtin();
        let rows: Vec<&Op> = registry.iter().filter(|row| row.def().functional.is_some()).collect();
        assert!(rows.len() >= 3);
        for row in rows {
            let name = Symbol::new(row.def().functional.unwrap_or_default());
            let [target] = registry.overloads(name) else { panic!("{name} has several overloads or none") };
            let (schema, target) = (row.marked_schema().expect("reads"), target.schema().expect("reads"));
            assert!(!target.is_mutable(), "{name} writes");
            for argument in &target.arguments {
                let index = schema.argument_index(argument.name.as_str());
                let own = index.and_then(|n| schema.arguments.get(n)).expect("has an argument of that name");
                assert!(own.ty.without_none() == argument.ty.without_none(), "{name}: {}", argument.name);
            }
            for (own, given) in schema.returns.iter().zip(&target.returns) {
                assert!(own.ty == given.ty, "{name}");
            }
            for argument in schema.arguments.iter().filter(|a| a.alias.as_ref().is_some_and(|m| m.is_write)) {
                assert!(
                    target.returns.iter().any(|result| is_new(result, argument.name)),
                    "{name}: {}",
                    argument.name
                );
            }
        }
    }
}
