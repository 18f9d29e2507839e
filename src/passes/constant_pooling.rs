//! Constant pooling: each constant stands once, at the top of the graph.
//!
//! Two constants are one if type and value are equal; tensors compare by their elements. Constants that are objects
//! become one only where this is unobservable (nothing writes to them, not both leave the graph). A constant depends on
//! nothing, so that it may stand anywhere above its uses.

use super::{Context, cse};
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::ir::{BlockId, Graph, OpId, Symbol, Type};
use hashbrown::HashMap;
use std::hash::{Hash, Hasher};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let db = context.analysis::<AliasDb>(graph);
    let mut seen: HashMap<(Symbol, Type, u64), Vec<OpId>> = HashMap::new();
    let mut changed = false;
    for op in constants(graph) {
        let Some(value) = graph.result(op, 0) else { continue };
        let key = (graph.kind(op), graph.ty(value).clone(), digest(graph, op));
        let known = seen.entry(key).or_default();
        let known = if cse::is_named(graph.ty(value)) { &mut Vec::new() } else { known };
        let equal = known.iter().copied().find(|k| cse::same_attrs(graph.attrs(*k), graph.attrs(op)));
        match equal.and_then(|k| graph.result(k, 0)) {
            Some(other)
                if db.safe_to_change_aliasing(graph, value, other)
                    && context.step(|| format!("drops {}", graph.op_line(op))) =>
            {
                graph.replace_op(op, &[other]);
                changed = true;
            }
            Some(_) => {}
            None => {
                known.push(op);
                changed |= to_top(graph, context, op);
            }
        }
    }
    Ok(changed)
}

/// Constants in program order.
fn constants(graph: &Graph) -> Vec<OpId> {
    graph.all_ops().into_iter().filter(|op| graph.kind(*op) == "prim::Constant").collect()
}

fn to_top(graph: &mut Graph, context: &Context<'_>, op: OpId) -> bool {
    let root: BlockId = graph.root();
    match graph.first_op(root) {
        Some(first) if first != op && context.step(|| format!("moves to the top {}", graph.op_line(op))) => {
            graph.move_before(op, first);
            true
        }
        _ => false,
    }
}

/// A number that is equal for equal attributes, to keep lists of candidates short.
fn digest(graph: &Graph, op: OpId) -> u64 {
    let mut hash = std::hash::DefaultHasher::new();
    for (name, attr) in graph.attrs(op) {
        name.as_str().hash(&mut hash);
        cse::hash_attr(attr, &mut hash);
    }
    hash.finish()
}
