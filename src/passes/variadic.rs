//! `cat` and `stack` without the list: `cat([a, b], dim)` becomes `prim::VarConcat(a, b, dim)`, which needs no list at
//! run time. The list must be made in sight, be used by nothing else and not be written, so that its elements are known.

use super::Context;
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::ir::{Graph, OpId, Symbol, Type, ValueId};

/// `aten::cat` becomes `prim::VarConcat`.
pub(super) fn cat(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    variadic(graph, context, "aten::cat", "prim::VarConcat")
}

/// `aten::stack` becomes `prim::VarStack`.
pub(super) fn stack(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    variadic(graph, context, "aten::stack", "prim::VarStack")
}

fn variadic(graph: &mut Graph, context: &Context<'_>, kind: &str, to: &str) -> Result<bool> {
    let db = context.analysis::<AliasDb>(graph);
    let mut changed = false;
    for op in graph.all_ops() {
        if graph.kind(op) == *kind
            && let Some(operands) = elements(graph, &db, op)
            && context.step(|| format!("takes the list from {}", graph.op_line(op)))
        {
            let types: Vec<Type> = graph.results(op).iter().map(|value| graph.ty(*value).clone()).collect();
            let new = graph.create(Symbol::new(to), &operands, &types);
            graph.set_location_id(new, graph.location_id(op));
            graph.insert_before(new, op);
            let results = graph.results(new);
            let list = graph.operand(op, 0).and_then(|list| graph.def_op(list));
            graph.replace_op(op, &results);
            list.into_iter().for_each(|list| graph.erase(list));
            changed = true;
        }
    }
    Ok(changed)
}

/// The elements of the op's list and its other operands.
fn elements(graph: &Graph, db: &AliasDb, op: OpId) -> Option<Vec<ValueId>> {
    let (list, rest) = graph.operands(op).split_first()?;
    let construct = graph.def_op(*list).filter(|def| graph.kind(*def) == "prim::ListConstruct")?;
    let elements = graph.operands(construct);
    let known = graph.has_one_use(*list) && !db.has_writers(*list) && !elements.is_empty();
    known.then(|| elements.iter().chain(rest).copied().collect())
}
