//! Graphs as they are printed. Loops that have a count and a condition, which Python has no syntax for, get the count as
//! a part of the condition; tuples of constants become constants, as PyTorch folds them whenever it compiles.

use super::inline;
use crate::ir::{Attr, Graph, OpId, Symbol, Type, TypeKind, ValueId};
use std::borrow::Cow;

/// The graph, with every loop either counted or conditional, and tuples of constants folded.
pub(super) fn printable(graph: &Graph) -> Cow<'_, Graph> {
    let ops = graph.all_ops();
    let mixed: Vec<OpId> = ops.iter().copied().filter(|op| is_mixed(graph, *op)).collect();
    if mixed.is_empty() && !ops.iter().any(|op| constant_items(graph, *op).is_some()) {
        return Cow::Borrowed(graph);
    }
    let mut graph = graph.clone();
    mixed.into_iter().for_each(|op| make_conditional(&mut graph, op));
    // Ops come in the order of the text, so that inner tuples are folded before outer ones.
    for op in ops {
        if let Some(items) = constant_items(&graph, op) {
            fold(&mut graph, op, items);
        }
    }
    Cow::Owned(graph)
}

/// The items of a plain tuple that is made of numbers, strings, None and tuples of those.
fn constant_items(graph: &Graph, op: OpId) -> Option<Vec<Attr>> {
    if !graph.is_live(op) || graph.kind(op) != inline::tuple() || graph.operands(op).is_empty() {
        return None;
    }
    let TypeKind::Tuple(_, None) = graph.ty(graph.result(op, 0)?).kind() else { return None };
    let item = |value: &ValueId| {
        let def = graph.def_op(*value).filter(|def| graph.kind(*def) == inline::constant())?;
        match graph.attr(def, "value") {
            Some(attr) => is_plain(attr).then(|| attr.clone()),
            None => (*graph.ty(*value) == Type::none()).then_some(Attr::None),
        }
    };
    graph.operands(op).iter().map(item).collect()
}

fn is_plain(attr: &Attr) -> bool {
    matches!(
        attr,
        Attr::Int(_) | Attr::Float(_) | Attr::Complex(_) | Attr::Bool(_) | Attr::Str(_) | Attr::Tuple(_)
    )
}

fn fold(graph: &mut Graph, op: OpId, items: Vec<Attr>) {
    let Some(result) = graph.result(op, 0) else { return };
    let made = graph.create(inline::constant(), &[], &[graph.ty(result).clone()]);
    graph.set_attr(made, "value", Attr::Tuple(items.into()));
    graph.set_location_id(made, graph.location_id(op));
    graph.insert_before(made, op);
    if let Some(value) = graph.result(made, 0) {
        graph.replace_op(op, &[value]);
    }
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
        let index = graph.add_param(body, Type::int());
        let one = append(graph, body, inline::constant(), &[], Type::int())?;
        let made = graph.def_op(one)?;
        graph.set_attr(made, "value", Attr::Int(1));
        let after = append(graph, body, Symbol::new("aten::add"), &[index, one], Type::int())?;
        let more = append(graph, body, Symbol::new("aten::lt"), &[after, count], Type::bool())?;
        let more = append(graph, body, Symbol::new("aten::__and__"), &[more, next], Type::bool())?;
        Some((zero, limit, first, index, after, more))
    })();
    let Some((zero, limit, first, index, after, more)) = steps else { return };
    graph.replace_all_uses(counter, index);
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
