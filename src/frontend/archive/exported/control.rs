//! Higher-order operators: what takes graphs becomes `prim::If`, `prim::Loop`, or the graph itself in its place.

use super::nodes::Nodes;
use super::schema::{Argument, Graph, NamedArgument};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Attr, BlockId, OpId, Type, ValueId};

impl Nodes<'_> {
    /// Emits a call of a higher-order operator.
    pub(super) fn higher_order(&mut self, name: &str, inputs: &[NamedArgument]) -> Result<Vec<ValueId>> {
        let args: Vec<&Argument> = inputs.iter().map(|input| &input.arg).collect();
        match (name, args.as_slice()) {
            ("cond", [condition, Argument::Graph(then), Argument::Graph(otherwise), rest @ ..]) => {
                let operands = operands(self, rest)?;
                let condition = self.free(condition)?;
                branch(self, condition, (&then.graph, &otherwise.graph), &operands)
            }
            ("while_loop", [Argument::Graph(condition), Argument::Graph(body), carried, rest @ ..]) => {
                let carried = operands(self, &[*carried])?;
                let rest = operands(self, rest)?;
                repeat(self, (&condition.graph, &body.graph), &carried, &rest)
            }
            ("map_impl", [Argument::Graph(body), over, rest @ ..]) => {
                let (over, rest) = (operands(self, &[*over])?, operands(self, rest)?);
                scan(self, &body.graph, &[], &over, &rest)
            }
            ("scan", [Argument::Graph(body), start, over, rest @ ..]) => {
                let (start, over) = (operands(self, &[*start])?, operands(self, &[*over])?);
                let rest = operands(self, rest)?;
                scan(self, &body.graph, &start, &over, &rest)
            }
            ("wrap_with_set_grad_enabled", [enabled, Argument::Graph(body), rest @ ..]) => {
                let operands = operands(self, rest)?;
                let enabled = self.free(enabled)?;
                let before = self.by_types("aten::is_grad_enabled", &[], None)?;
                self.emitter.emit("aten::set_grad_enabled", &[enabled], &[]);
                let results = self.inner(&body.graph, &operands)?;
                self.emitter.emit("aten::set_grad_enabled", &[before], &[]);
                Ok(results)
            }
            ("wrap_with_autocast", [_, _, Argument::Bool(false), _, Argument::Graph(body), rest @ ..])
            | ("invoke_subgraph", [Argument::Graph(body), Argument::String(_), rest @ ..]) => {
                let operands = operands(self, rest)?;
                self.inner(&body.graph, &operands)
            }
            _ => Err(Diagnostic::unsupported("this higher-order operator, or this form of it")),
        }
    }
}

/// The values that arguments stand for, one by one.
fn operands(nodes: &mut Nodes<'_>, args: &[&Argument]) -> Result<Vec<ValueId>> {
    let mut values = Vec::new();
    for arg in args {
        match arg {
            Argument::Tensors(tensors) => {
                for tensor in tensors {
                    values.push(nodes.named(&tensor.name)?);
                }
            }
            // An empty tuple has no kind of its own.
            Argument::Ints(items) => {
                for item in items {
                    values.push(nodes.free(&Argument::Int(*item))?);
                }
            }
            other => values.push(nodes.free(other)?),
        }
    }
    Ok(values)
}

/// A condition, which may be a tensor, as a bool.
fn truth(nodes: &mut Nodes<'_>, condition: ValueId) -> Result<ValueId> {
    match nodes.emitter.graph.ty(condition).is_tensor() {
        true => nodes.by_types("aten::Bool", &[condition], Some(&Type::bool())),
        false => Ok(condition),
    }
}

fn branch(
    nodes: &mut Nodes<'_>,
    condition: ValueId,
    (then, otherwise): (&Graph, &Graph),
    operands: &[ValueId],
) -> Result<Vec<ValueId>> {
    let condition = truth(nodes, condition)?;
    let op = nodes.emitter.emit("prim::If", &[condition], &[]);
    let mut types: Option<Vec<Type>> = None;
    for side in [then, otherwise] {
        let results = within(nodes, op, |nodes, _| nodes.inner(side, operands))?;
        let own: Vec<Type> = results.iter().map(|value| nodes.emitter.graph.ty(*value).clone()).collect();
        if types.as_ref().is_some_and(|types| *types != own) {
            return Err(Diagnostic::input("the two sides of a condition give different results"));
        }
        types = Some(own);
    }
    Ok(types.unwrap_or_default().into_iter().map(|ty| nodes.emitter.graph.add_result(op, ty)).collect())
}

/// A block of an op; what is emitted meanwhile lies in it, and it gives what is returned.
fn within<'a>(
    nodes: &mut Nodes<'a>,
    op: OpId,
    fill: impl FnOnce(&mut Nodes<'a>, BlockId) -> Result<Vec<ValueId>>,
) -> Result<Vec<ValueId>> {
    let block = nodes.emitter.graph.add_block(op);
    let outer = std::mem::replace(&mut nodes.emitter.block, block);
    let results = fill(nodes, block);
    nodes.emitter.block = outer;
    let results = results?;
    nodes.emitter.graph.set_block_results(block, &results);
    Ok(results)
}

fn repeat(
    nodes: &mut Nodes<'_>,
    (condition, body): (&Graph, &Graph),
    carried: &[ValueId],
    rest: &[ValueId],
) -> Result<Vec<ValueId>> {
    let holds = |nodes: &mut Nodes<'_>, carried: &[ValueId]| -> Result<ValueId> {
        let results = nodes.inner(condition, &[carried, rest].concat())?;
        let [condition] = results.as_slice() else {
            return Err(Diagnostic::input("the condition of a loop is not one value"));
        };
        truth(nodes, *condition)
    };
    let first = holds(nodes, carried)?;
    let bound = nodes.emitter.constant(Type::int(), Attr::Int(i64::MAX))?;
    let types: Vec<Type> = carried.iter().map(|value| nodes.emitter.graph.ty(*value).clone()).collect();
    let op = nodes.emitter.emit("prim::Loop", &[&[bound, first], carried].concat(), &types);
    within(nodes, op, |nodes, block| {
        nodes.emitter.graph.add_param(block, Type::int());
        let start: Vec<ValueId> =
            types.iter().map(|ty| nodes.emitter.graph.add_param(block, ty.clone())).collect();
        let after = nodes.inner(body, &[&start, rest].concat())?;
        if after.len() != types.len() {
            return Err(Diagnostic::input("the body of a loop gives another number of values than it takes"));
        }
        let next = holds(nodes, &after)?;
        Ok([&[next], after.as_slice()].concat())
    })?;
    Ok(nodes.emitter.graph.results(op).to_vec())
}

/// A body for each slice along the first dimension, with values that go from one to the next. Gives the last of these, and
/// what else the body gave, stacked.
fn scan(
    nodes: &mut Nodes<'_>,
    body: &Graph,
    start: &[ValueId],
    over: &[ValueId],
    rest: &[ValueId],
) -> Result<Vec<ValueId>> {
    let zero = nodes.emitter.constant(Type::int(), Attr::Int(0))?;
    let [first, ..] = over else { return Err(Diagnostic::input("a scan over no tensor")) };
    let count = nodes.by_types("aten::size", &[*first, zero], Some(&Type::int()))?;
    let Some(collected) = body.outputs.len().checked_sub(start.len()) else {
        return Err(Diagnostic::input("the body of a scan gives fewer values than it carries"));
    };
    let lists = (0..collected).map(|_| nodes.list(&[], Type::tensor())).collect::<Result<Vec<ValueId>>>()?;
    let always = nodes.emitter.constant(Type::bool(), Attr::Bool(true))?;
    let types: Vec<Type> = start.iter().map(|value| nodes.emitter.graph.ty(*value).clone()).collect();
    let op = nodes.emitter.emit("prim::Loop", &[&[count, always], start].concat(), &types);
    within(nodes, op, |nodes, block| {
        let index = nodes.emitter.graph.add_param(block, Type::int());
        let mut inputs: Vec<ValueId> =
            types.iter().map(|ty| nodes.emitter.graph.add_param(block, ty.clone())).collect();
        for tensor in over {
            inputs.push(nodes.by_types("aten::select", &[*tensor, zero, index], None)?);
        }
        inputs.extend(rest);
        let results = nodes.inner(body, &inputs)?;
        let (carried, made) = results.split_at(start.len().min(results.len()));
        for (list, value) in lists.iter().zip(made) {
            nodes.by_types("aten::append", &[*list, *value], None)?;
        }
        Ok([&[always], carried].concat())
    })?;
    let mut results = nodes.emitter.graph.results(op).to_vec();
    for list in lists {
        results.push(nodes.by_types("aten::stack", &[list, zero], None)?);
    }
    Ok(results)
}
