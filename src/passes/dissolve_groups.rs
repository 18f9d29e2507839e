//! Inlines fusion groups into the enclosing graph, so that passes see every op again: the inverse of `fuse`.
//!
//! What a group took in with its work, constants and equal parts of a tensor, becomes ops of the graph like the others.

use super::{Context, constants, subgraphs};
use crate::diag::Result;
use crate::dialects::fusion;
use crate::ir::{Attr, Graph, OpId, Symbol, Type};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        let Some(body) = fusion::subgraph(graph, op) else { continue };
        let body = subgraphs::Body::of(Graph::clone(body));
        if !context.step(|| format!("dissolves {}", graph.op_line(op))) {
            break;
        }
        for inner in subgraphs::dissolve(graph, op, &body, None) {
            if graph.kind(inner) == fusion::CHUNK {
                unpack_chunk(graph, inner);
            }
        }
        changed = true;
    }
    Ok(changed)
}

/// Makes a list of equal parts, and takes it apart, of the op that stands for both inside of groups.
fn unpack_chunk(graph: &mut Graph, op: OpId) {
    let number = |name: &str| graph.attr(op, name).and_then(Attr::as_int);
    let (Some(source), Some(count), Some(dim)) = (graph.operand(op, 0), number("chunks"), number("dim"))
    else {
        return;
    };
    let count = constants::insert_int(graph, op, count);
    let dim = constants::insert_int(graph, op, dim);
    let chunk = graph.create(Symbol::new(CHUNK), &[source, count, dim], &[Type::list(Type::tensor())]);
    let types: Vec<Type> = graph.results(op).iter().map(|v| graph.ty(*v).clone()).collect();
    let parts = graph.results(chunk);
    let unpack = graph.create(Symbol::new("prim::ListUnpack"), &parts, &types);
    for new in [chunk, unpack] {
        graph.set_location_id(new, graph.location_id(op));
        graph.insert_before(new, op);
    }
    let results = graph.results(unpack);
    graph.replace_op(op, &results);
}

/// The op that `fuse` takes into groups as equal parts.
const CHUNK: &str = "aten::chunk";
