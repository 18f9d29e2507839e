//! What is known of a program's inputs by itself: the sizes that a traced archive records, and the types of the
//! graph's inputs.

use super::specs::Spec;
use crate::frontend::archive::{Node, NodeId, Pickle};
use crate::ir::{Graph, TypeKind};
use crate::runtime::Program;
use crate::tensor::DType;

/// Values nested deeper than this are not examined.
const MAX_DEPTH: usize = 50;

/// What a trace of the method recorded, one for each argument: tensors by dtype and sizes, other values as they were.
pub(super) fn traced(pickle: &Pickle, method: &str) -> Option<Vec<Spec>> {
    let Node::Dict(dict) = pickle.node(pickle.root()) else { return None };
    let (_, inputs) = dict.pairs.iter().find(|(name, _)| pickle.str(*name) == Some(method))?;
    pickle.items(*inputs)?.iter().map(|id| spec(pickle, *id, 0)).collect()
}

fn spec(pickle: &Pickle, id: NodeId, depth: usize) -> Option<Spec> {
    if depth > MAX_DEPTH {
        return None;
    }
    let all =
        |items: &[NodeId]| items.iter().map(|id| spec(pickle, *id, depth + 1)).collect::<Option<Vec<_>>>();
    Some(match pickle.node(id) {
        Node::None => Spec::None,
        Node::Bool(b) => Spec::Bool(*b),
        Node::Int(n) => Spec::Int(*n),
        Node::Float(x) => Spec::Float(*x),
        Node::Str(text) => Spec::Str(text.to_string()),
        Node::List(list) => Spec::List(all(&list.items)?),
        Node::Tuple(items) => Spec::Tuple(all(items)?),
        Node::Dict(dict) => {
            let pair = |(k, v): &(NodeId, NodeId)| {
                Some((spec(pickle, *k, depth + 1)?, spec(pickle, *v, depth + 1)?))
            };
            Spec::Dict(dict.pairs.iter().map(pair).collect::<Option<Vec<_>>>()?)
        }
        Node::Tensor(tensor) => {
            let dtype = DType::from_name(tensor.storage.element.dtype)?;
            Spec::Random { dtype, sizes: tensor.sizes.to_vec(), range: None }
        }
        _ => return None,
    })
}

/// What the types of a function's inputs say, one for each argument that a caller gives; None where they say too little.
pub(super) fn typed(program: &Program, entry: &str) -> Vec<Option<Spec>> {
    let Some(function) = program.function(entry) else { return Vec::new() };
    let graph = &function.graph;
    let given = program.parameters(entry).map_or(0, |arguments| arguments.len());
    let skipped = graph.inputs().len().saturating_sub(given);
    (skipped..graph.inputs().len()).map(|n| of_type(graph, n)).collect()
}

fn of_type(graph: &Graph, n: usize) -> Option<Spec> {
    let value = graph.inputs().get(n)?;
    let TypeKind::Tensor(tensor) = graph.ty(*value).kind() else { return None };
    let sizes = tensor.sizes.as_ref()?.iter().map(|dim| dim.known()).collect::<Option<Vec<i64>>>()?;
    Some(Spec::Random { dtype: tensor.dtype?, sizes, range: None })
}
