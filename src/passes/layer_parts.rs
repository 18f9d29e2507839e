//! What passes ask of ops that may be parts of layers, and how they make the ops of layers. Shared by passes; no pass itself.

use super::{Context, constants};
use crate::dialects::shapes::layouts;
use crate::dialects::{LayerPart, Op, Variant, resolve};
use crate::ir::{Attr, Dim, Graph, OpId, Symbol, TensorType, Type, TypeKind, ValueId};
use crate::tensor::DType;
use crate::tensor::pointwise::is_dense;
use crate::value::Value;

/// A call of an op that may be part of a layer.
pub(super) struct Call<'a> {
    pub graph: &'a Graph,
    pub op: OpId,
    row: Op,
    pub part: LayerPart,
}

impl<'a> Call<'a> {
    pub fn of(graph: &'a Graph, context: &Context<'_>, op: OpId) -> Option<Call<'a>> {
        let row = resolve(context.registry, graph, op).ok()?;
        let part = row.def().part.filter(|_| row.variant() == Variant::Plain)?;
        Some(Call { graph, op, row, part })
    }

    /// An argument by its name.
    pub fn get(&self, name: &str) -> Option<ValueId> {
        self.graph.operand(self.op, self.row.schema().ok()?.argument_index(name)?)
    }

    /// The sizes of its result.
    pub fn result_sizes(&self) -> Option<Vec<i64>> {
        float_sizes(self.graph, self.graph.result(self.op, 0)?)
    }
}

/// Makes ops before `at`, located as `like`.
pub(super) struct Maker<'a> {
    pub graph: &'a mut Graph,
    pub at: OpId,
    pub like: OpId,
}

impl Maker<'_> {
    pub fn emit(&mut self, kind: &str, operands: &[ValueId], ty: Type) -> ValueId {
        let op = self.graph.create(Symbol::new(kind), operands, &[ty]);
        self.graph.set_location_id(op, self.graph.location_id(self.like));
        self.graph.insert_before(op, self.at);
        // An op made with one result type has one result.
        self.graph.results(op)[0]
    }

    pub fn tensor(&mut self, kind: &str, operands: &[ValueId]) -> ValueId {
        self.emit(kind, operands, Type::tensor())
    }

    pub fn constant(&mut self, ty: Type, attr: Attr) -> ValueId {
        let value = self.emit("prim::Constant", &[], ty);
        if let Some(op) = self.graph.def_op(value) {
            self.graph.set_attr(op, "value", attr);
        }
        value
    }

    pub fn sizes(&mut self, sizes: &[usize]) -> ValueId {
        let ints: Vec<i64> = sizes.iter().map(|n| *n as i64).collect();
        self.constant(Type::list(Type::int()), Attr::Ints(ints.into()))
    }

    pub fn none(&mut self) -> ValueId {
        self.emit("prim::Constant", &[], Type::none())
    }
}

/// Whether a value is the constant None.
pub(super) fn is_none(graph: &Graph, value: ValueId) -> bool {
    matches!(constants::value_of(graph, value), Some(Value::None))
}

/// Whether a value is a constant float32 tensor of a rank.
pub(super) fn is_constant_tensor(graph: &Graph, value: ValueId, rank: usize) -> bool {
    let constant = constants::constant_op(graph, value).is_some();
    constant && float_sizes(graph, value).is_some_and(|sizes| sizes.len() == rank)
}

/// The rank of a float32 tensor on the CPU.
pub(super) fn rank(graph: &Graph, value: ValueId) -> Option<usize> {
    float_sizes(graph, value).map(|sizes| sizes.len())
}

/// The sizes of a float32 tensor on the CPU, where its type says all of it.
pub(super) fn float_sizes(graph: &Graph, value: ValueId) -> Option<Vec<i64>> {
    let TypeKind::Tensor(ty) = graph.ty(value).kind() else { return None };
    let plain = ty.dtype == Some(DType::F32) && ty.device.as_ref().is_some_and(|device| device.is_cpu());
    let sizes = ty.sizes.as_deref().filter(|_| plain)?;
    sizes.iter().map(|dim| Dim::known(*dim)).collect()
}

/// The strides of a tensor, where its type says all of them.
pub(super) fn known_strides(graph: &Graph, value: ValueId) -> Option<Vec<i64>> {
    let TypeKind::Tensor(ty) = graph.ty(value).kind() else { return None };
    ty.strides.as_deref()?.iter().copied().collect()
}

/// Whether a copy of a value can be given the strides that it has in the program: these are known, and have no gaps.
pub(super) fn is_restorable(graph: &Graph, value: ValueId) -> bool {
    let TypeKind::Tensor(ty) = graph.ty(value).kind() else { return false };
    layouts::of_type(ty).is_some_and(|layout| is_dense(&layout))
}

/// A tensor type with other strides.
pub(super) fn with_strides(ty: &Type, strides: Option<&[i64]>) -> Type {
    let TypeKind::Tensor(tensor) = ty.kind() else { return ty.clone() };
    let strides = strides.map(layouts::strides);
    Type::new(TypeKind::Tensor(TensorType { strides, ..tensor.clone() }))
}
