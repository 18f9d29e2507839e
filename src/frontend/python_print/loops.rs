//! Loops that have a count and a condition, which Python has no word for: the count becomes part of the condition.

use super::inline;
use crate::ir::{Attr, Graph, OpId, Symbol, Type, ValueId};
use std::borrow::Cow;

/// The graph, with every loop either counted or conditional.
pub(super) fn with_printable_loops(graph: &Graph) -> Cow<'_, Graph> {
    let mixed: Vec<OpId> = graph.all_ops().into_iter().filter(|op| is_mixed(graph, *op)).collect();
    if mixed.is_empty() {
        return Cow::Borrowed(graph);
    }
    let mut graph = graph.clone();
    mixed.into_iter().for_each(|op| make_conditional(&mut graph, op));
    Cow::Owned(graph)
}

fn constant_int(graph: &Graph, value: Option<ValueId>) -> Option<i64> {
    let def = graph.def_op(value?).filter(|def| graph.kind(*def) == inline::constant())?;
    graph.attr(def, "value").and_then(Attr::as_int)
}

fn is_mixed(graph: &Graph, op: OpId) -> bool {
    if graph.kind(op) != inline::loop_() {
        return false;
    }
    let next = graph.nested_blocks(op).first().and_then(|b| graph.block_results(*b).first().copied());
    let always = [graph.operand(op, 1), next].iter().all(|v| constant_int(graph, *v) == Some(1));
    !always && constant_int(graph, graph.operand(op, 0)) != Some(i64::MAX)
}

/// `Loop(n, c)` becomes a loop that counts for itself and goes on while `i < n and c`.
fn make_conditional(graph: &mut Graph, op: OpId) {
    let (Some(count), Some(condition)) = (graph.operand(op, 0), graph.operand(op, 1)) else { return };
    let Some(&body) = graph.nested_blocks(op).first() else { return };
    let (Some(&counter), Some(&next)) = (graph.params(body).first(), graph.block_results(body).first())
    else {
        return;
    };
    let constant = |graph: &mut Graph, before: OpId, x: i64| {
        let made = graph.create(inline::constant(), &[], &[Type::int()]);
        graph.set_attr(made, "value", Attr::Int(x));
        graph.insert_before(made, before);
        graph.result(made, 0)
    };
    let apply = |graph: &mut Graph, before: OpId, kind: &str, operands: &[ValueId], ty: Type| {
        let made = graph.create(Symbol::new(kind), operands, &[ty]);
        graph.insert_before(made, before);
        graph.result(made, 0)
    };
    let end = graph.terminator(body);
    let steps = (|| {
        let zero = constant(graph, op, 0)?;
        let limit = constant(graph, op, i64::MAX)?;
        let mut first = apply(graph, op, "aten::gt", &[count, zero], Type::bool())?;
        if constant_int(graph, Some(condition)) != Some(1) {
            first = apply(graph, op, "aten::__and__", &[first, condition], Type::bool())?;
        }
        let turn = graph.add_param(body, Type::int());
        let one = append(graph, body, inline::constant(), &[], Type::int())?;
        let made = graph.def_op(one)?;
        graph.set_attr(made, "value", Attr::Int(1));
        let after = append(graph, body, Symbol::new("aten::add"), &[turn, one], Type::int())?;
        let more = append(graph, body, Symbol::new("aten::lt"), &[after, count], Type::bool())?;
        let more = append(graph, body, Symbol::new("aten::__and__"), &[more, next], Type::bool())?;
        Some((zero, limit, first, turn, after, more))
    })();
    let Some((zero, limit, first, turn, after, more)) = steps else { return };
    graph.replace_all_uses(counter, turn);
    graph.clear_name(counter);
    let mut operands = graph.operands(op).to_vec();
    operands[0] = limit;
    operands[1] = first;
    operands.push(zero);
    graph.set_operands(op, &operands);
    graph.add_result(op, Type::int());
    let mut results = graph.operands(end).to_vec();
    if let Some(condition) = results.first_mut() {
        *condition = more;
    }
    results.push(after);
    graph.set_block_results(body, &results);
}

fn append(
    graph: &mut Graph,
    body: crate::ir::BlockId,
    kind: Symbol,
    operands: &[ValueId],
    ty: Type,
) -> Option<ValueId> {
    let made = graph.emit(body, kind, operands, &[ty]);
    graph.result(made, 0)
}
