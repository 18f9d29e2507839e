//! Constants in graphs: reading them as values, making them. Shared by passes; no pass itself.

use crate::dialects::prim::constant;
use crate::dialects::shapes::of_tensor;
use crate::ir::{Attr, Graph, OpId, Symbol, Type, TypeKind, ValueId};
use crate::tensor::{Scalar, Tensor};
use crate::value::Value;

/// The op that makes a value, if it is a constant.
pub(super) fn constant_op(graph: &Graph, value: ValueId) -> Option<OpId> {
    graph.def_op(value).filter(|op| graph.kind(*op) == "prim::Constant")
}

/// The value that a constant gives, a new object each time. None for what text does not show.
pub(super) fn value_of(graph: &Graph, value: ValueId) -> Option<Value> {
    let op = constant_op(graph, value)?;
    constant::value(graph.attrs(op), Some(graph.ty(value))).ok()
}

/// The int that a constant gives.
pub(super) fn int_of(graph: &Graph, value: ValueId) -> Option<i64> {
    match value_of(graph, value)? {
        Value::Int(n) => Some(n),
        _ => None,
    }
}

/// The ints of a list that is a constant, or made of constants. The caller knows that nothing writes to it.
pub(super) fn ints_of(graph: &Graph, value: ValueId) -> Option<Vec<i64>> {
    if let Some(list) = value_of(graph, value) {
        return list.to_ints().ok();
    }
    let made = graph.def_op(value).filter(|op| graph.kind(*op) == "prim::ListConstruct")?;
    graph.operands(made).iter().map(|item| int_of(graph, *item)).collect()
}

/// The bool that a constant gives.
pub(super) fn bool_of(graph: &Graph, value: ValueId) -> Option<bool> {
    match value_of(graph, value)? {
        Value::Bool(b) => Some(b),
        _ => None,
    }
}

/// Makes a constant before `anchor`. None for what cannot be a constant: objects, futures, functions.
pub(super) fn insert_before(graph: &mut Graph, anchor: OpId, value: &Value) -> Option<ValueId> {
    let attr = constant::attr(value)?;
    let ty = type_of(value);
    let op = graph.create(Symbol::new("prim::Constant"), &[], &[ty]);
    if !matches!(attr, Attr::None) {
        graph.set_attr(op, "value", attr);
    }
    graph.insert_before(op, anchor);
    graph.result(op, 0)
}

/// As [`insert_before`], of what a program computes or its model holds. A tensor without dimensions is marked: no number of the
/// program, as constants of traces are ([`number_of`]), but a tensor whose dtype promotes.
pub(super) fn insert_computed(graph: &mut Graph, anchor: OpId, value: &Value) -> Option<ValueId> {
    let constant = insert_before(graph, anchor, value)?;
    if matches!(value, Value::Tensor(tensor) if tensor.rank() == 0)
        && let Some(op) = graph.def_op(constant)
    {
        graph.set_attr(op, constant::COMPUTED, Attr::Int(1));
    }
    Some(constant)
}

/// The number that a value counts as where an op takes numbers for constant tensors ([`Fact::ConstantIsNumber`]).
///
/// [`Fact::ConstantIsNumber`]: crate::dialects::Fact::ConstantIsNumber
pub(super) fn number_of(graph: &Graph, value: ValueId) -> Option<Scalar> {
    constant::number(graph.attrs(constant_op(graph, value)?), Some(graph.ty(value)))
}

/// The type of a constant: all that is known of a tensor, also of one in a plain tuple.
fn type_of(value: &Value) -> Type {
    match value {
        Value::Tensor(tensor) => complete_type(tensor),
        Value::Tuple(tuple) if matches!(value.ty().kind(), TypeKind::Tuple(_, None)) => {
            Type::tuple(tuple.items().iter().map(type_of).collect::<Vec<_>>())
        }
        _ => value.ty(),
    }
}

/// The constant None of a type before `anchor`.
pub(super) fn insert_none(graph: &mut Graph, anchor: OpId, ty: Type) -> OpId {
    let op = graph.create(Symbol::new("prim::Constant"), &[], &[ty]);
    graph.insert_before(op, anchor);
    op
}

/// An int before `anchor`.
pub(super) fn insert_int(graph: &mut Graph, anchor: OpId, n: i64) -> ValueId {
    let op = graph.create(Symbol::new("prim::Constant"), &[], &[Type::int()]);
    graph.set_attr(op, "value", Attr::Int(n));
    graph.insert_before(op, anchor);
    // An op made with one result type has one result.
    graph.results(op)[0]
}

/// All that can be known of a tensor's type.
pub(super) fn complete_type(tensor: &Tensor) -> Type {
    Type::new(TypeKind::Tensor(of_tensor(tensor)))
}
