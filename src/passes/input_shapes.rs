//! What PyTorch's older shape propagation knows of tensors that nothing is known of: ranks and dtypes that follow from
//! the op alone. Shared by passes that run it; propagate-shapes is the pass that knows more.

use super::constants;
use crate::ir::unify::unify;
use crate::ir::{Attr, BlockId, Dim, Graph, NoClasses, OpId, TensorType, Type, TypeKind, ValueId};
use crate::tensor::{DType, Device};
use crate::value::Value;
use std::sync::Arc;

/// Writes into the types of results what is known of them. Tuples and control flow take the types of what goes in.
pub(super) fn propagate(graph: &mut Graph) {
    let root = graph.root();
    block(graph, root);
}

fn block(graph: &mut Graph, at: BlockId) {
    for op in graph.block_ops(at).collect::<Vec<OpId>>() {
        stacker::maybe_grow(64 << 10, 1 << 20, || node(graph, op));
    }
}

fn node(graph: &mut Graph, op: OpId) {
    match (graph.kind(op).as_str(), graph.nested_blocks(op)) {
        ("prim::If", &[yes, no]) => {
            block(graph, yes);
            block(graph, no);
            let given = |graph: &Graph, b: BlockId| graph.block_results(b).to_vec();
            merge(graph, &given(graph, yes), &given(graph, no), &graph.results(op));
        }
        ("prim::Loop", &[body]) => {
            // Carried tensors are known to be tensors: an iteration may replace them by other ones.
            block(graph, body);
        }
        ("prim::TupleConstruct", _) => {
            let Some(result) = graph.result(op, 0) else { return };
            if matches!(graph.ty(result).kind(), TypeKind::Tuple(_, None)) {
                let parts: Vec<Type> = graph.operands(op).iter().map(|v| graph.ty(*v).clone()).collect();
                graph.set_type(result, Type::tuple(parts));
            }
        }
        _ => {
            let (Some(result), 1) = (graph.result(op, 0), graph.result_count(op)) else { return };
            let is_plain = graph.ty(result).as_tensor().is_some_and(|t| *t == TensorType::default());
            if is_plain && let Some(found) = infer(graph, op) {
                graph.set_type(result, Type::new(TypeKind::Tensor(found)));
            }
        }
    }
}

/// Gives results the types that two ways have in common.
fn merge(graph: &mut Graph, a: &[ValueId], b: &[ValueId], results: &[ValueId]) {
    for ((a, b), result) in a.iter().zip(b).zip(results) {
        if let Some(ty) = unify(graph.ty(*a), graph.ty(*b), &NoClasses) {
            graph.set_type(*result, ty);
        }
    }
}

fn infer(graph: &Graph, op: OpId) -> Option<TensorType> {
    let known = |n: usize| graph.operand(op, n).and_then(|v| graph.ty(v).as_tensor().cloned());
    let plain = |ty: &Option<TensorType>| ty.as_ref().and_then(|t| t.sizes.as_ref()).map(|s| s.len());
    let count = graph.operands(op).len();
    let (first, second) = (known(0), known(1));
    let kind = graph.kind(op);
    match kind.as_str().strip_prefix("aten::").unwrap_or(kind.as_str()) {
        "eq" | "ne" | "lt" | "le" | "gt" | "ge" => {
            first.as_ref()?;
            let rank = if second.is_some() { same_rank(&first, &second) } else { plain(&first) };
            Some(TensorType { dtype: Some(DType::Bool), ..of_rank(rank) })
        }
        "sum" | "mean" | "prod" if count == 2 => Some(of_rank(Some(0))),
        "max" | "min" | "median" | "nanmedian" | "all" | "any" | "trace" | "logdet" if count == 1 => {
            Some(of_rank(Some(0)))
        }
        "std" | "var" if count == 2 && is_bool(graph, op, 1) => Some(of_rank(Some(0))),
        "argmax" | "argmin" if is_none(graph, op, 1) => Some(of_rank(Some(0))),
        "view" | "reshape" | "expand" | "repeat" | "as_strided" => {
            Some(of_rank(Some(list_length(graph, graph.operand(op, 1)?)?)))
        }
        "nonzero" => Some(TensorType { dtype: Some(DType::I64), ..TensorType::default() }),
        "masked_select" => Some(of_rank(Some(1))),
        "diagflat" => Some(of_rank(Some(2))),
        "detach" => Some(TensorType { requires_grad: Some(false), ..first? }),
        "prim::NumToTensor" => number(graph.ty(graph.operand(op, 0)?)),
        "relu" | "exp" | "neg" | "sigmoid" | "tanh" | "abs" | "sqrt" | "log" | "sin" | "cos" | "clone"
        | "contiguous" | "ones_like" | "zeros_like" => dimensioned(first?),
        "t" | "transpose" => dimensioned(TensorType { dtype: None, ..first? }),
        "unsqueeze" => Some(of_rank(Some(plain(&first)? + 1))),
        "select" => Some(of_rank(Some(plain(&first)?.checked_sub(1)?))),
        "mm" => same_rank(&first, &second).map(|rank| of_rank(Some(rank))),
        "mul" | "div" if second.is_some() => {
            same_rank(&first, &second).filter(|n| *n > 0).map(|n| of_rank(Some(n)))
        }
        "__and__" | "__or__" | "__xor__" => {
            let is_bool = |t: &Option<TensorType>| t.as_ref().is_some_and(|t| t.dtype == Some(DType::Bool));
            (is_bool(&first) && is_bool(&second))
                .then(|| TensorType { dtype: Some(DType::Bool), ..of_rank(None) })
        }
        "cat" => {
            let list = graph.def_op(graph.operand(op, 0)?)?;
            let ranked = graph.operands(list).iter().find_map(|v| graph.ty(*v).as_tensor()?.sizes.clone())?;
            Some(of_rank(Some(ranked.len())))
        }
        _ => None,
    }
}

/// A tensor of a rank; of nothing known without one.
fn of_rank(rank: Option<usize>) -> TensorType {
    // A symbol that prints as `*`.
    let sizes = rank.map(|n| Arc::from(vec![Dim::Unknown; n]));
    TensorType { sizes, ..TensorType::default() }
}

/// What elementwise ops pass on.
fn dimensioned(ty: TensorType) -> Option<TensorType> {
    let known = TensorType { dtype: ty.dtype, ..of_rank(Some(ty.sizes?.len())) };
    Some(known)
}

fn same_rank(a: &Option<TensorType>, b: &Option<TensorType>) -> Option<usize> {
    let rank = |t: &Option<TensorType>| Some(t.as_ref()?.sizes.as_ref()?.len());
    rank(a).filter(|n| rank(b) == Some(*n))
}

/// The tensor that a number is made.
fn number(ty: &Type) -> Option<TensorType> {
    let dtype = match ty.kind() {
        TypeKind::Int | TypeKind::Bool => DType::I64,
        TypeKind::Float => DType::F64,
        _ => return None,
    };
    Some(TensorType { dtype: Some(dtype), device: Some(Device::CPU), ..of_rank(Some(0)) })
}

fn is_bool(graph: &Graph, op: OpId, n: usize) -> bool {
    graph.operand(op, n).is_some_and(|v| *graph.ty(v) == Type::bool())
}

fn is_none(graph: &Graph, op: OpId, n: usize) -> bool {
    graph.operand(op, n).is_some_and(|v| matches!(constants::value_of(graph, v), Some(Value::None)))
}

/// The number of items of a list that is made in sight.
fn list_length(graph: &Graph, list: ValueId) -> Option<usize> {
    let op = graph.def_op(list)?;
    match (graph.kind(op).as_str(), graph.attr(op, "value")) {
        ("prim::ListConstruct", _) => Some(graph.operands(op).len()),
        ("prim::Constant", Some(Attr::Ints(items))) => Some(items.len()),
        _ => None,
    }
}
