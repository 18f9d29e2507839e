//! `z + x y` becomes `addmm(z, x, y)`, for backends that have one op for it. By definition of addmm the two are equal.
//!
//! The rank and dtype of what is added must be known: a sum promotes, addmm refuses operands of different dtypes. A
//! number that was made a tensor is cast to the dtype of the product. The sum itself stays, dead, as in PyTorch.

use super::{Context, constants};
use crate::diag::Result;
use crate::ir::{Graph, OpId, Symbol, Type, ValueId};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        let &[a, b, alpha] = graph.operands(op) else { continue };
        if graph.kind(op) != "aten::add" || constants::int_of(graph, alpha) != Some(1) {
            continue;
        }
        for (product, other) in [(a, b), (b, a)] {
            if let Some((x, y)) = factors(graph, product)
                && is_known(graph, other)
                && context.step(|| format!("takes the sum into the product: {}", graph.op_line(op)))
            {
                join(graph, op, other, x, y);
                changed = true;
                break;
            }
        }
    }
    Ok(changed)
}

/// The two sides of a matrix product.
fn factors(graph: &Graph, product: ValueId) -> Option<(ValueId, ValueId)> {
    let op = graph.def_op(product).filter(|op| graph.kind(*op) == "aten::mm")?;
    let &[x, y] = graph.operands(op) else { return None };
    Some((x, y))
}

/// Whether rank and dtype are known.
fn is_known(graph: &Graph, value: ValueId) -> bool {
    graph.ty(value).as_tensor().is_some_and(|t| t.sizes.is_some() && t.dtype.is_some())
}

fn join(graph: &mut Graph, op: OpId, other: ValueId, x: ValueId, y: ValueId) {
    let of = |value: ValueId| graph.ty(value).as_tensor().cloned().unwrap_or_default();
    let (added, left, right) = (of(other), of(x), of(y));
    let dtype = if left.dtype.is_some() { left.dtype } else { right.dtype };
    let is_scalar = added.sizes.is_some_and(|sizes| sizes.is_empty());
    let mut bias = other;
    if is_scalar && (dtype.is_none() || dtype != added.dtype) {
        let cast = graph.create(Symbol::new("aten::type_as"), &[other, x], &[Type::tensor()]);
        graph.insert_before(cast, op);
        bias = graph.results(cast)[0];
    }
    let one = constants::insert_int(graph, op, 1);
    let types: Vec<Type> = graph.results(op).iter().map(|v| graph.ty(*v).clone()).collect();
    let new = graph.create(Symbol::new("aten::addmm"), &[bias, x, y, one, one], &types);
    graph.set_location_id(new, graph.location_id(op));
    graph.insert_before(new, op);
    for (old, new) in graph.results(op).into_iter().zip(graph.results(new)) {
        graph.replace_all_uses(old, new);
    }
}
