//! What passes ask of ops that may be parts of layers, and how they make the ops of layers. Shared by passes; no pass itself.

use super::{Context, constants};
use crate::dialects::fusion::layer;
use crate::dialects::shapes::open::OpenSizes;
use crate::dialects::shapes::{Strides, layouts};
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

    /// The sizes of its result, of which some may be open.
    pub fn result_dims(&self) -> Option<&'a [Dim]> {
        float_dims(self.graph, self.graph.result(self.op, 0)?)
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

    /// A copy of a value with the strides that it has in the program, or itself.
    pub fn restore(&mut self, value: ValueId, given: Restored, ty: Type) -> ValueId {
        let (kind, operand) = match given {
            Restored::Strides(strides) => {
                (layer::RESTORE, self.constant(Type::list(Type::int()), Attr::Ints(strides.into())))
            }
            Restored::Format(format) => {
                (layer::RESTORE_FORMAT, self.constant(Type::int(), Attr::Int(format)))
            }
        };
        self.emit(kind, &[value, operand], ty)
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
    float_dims(graph, value).map(<[Dim]>::len)
}

/// The sizes of a float32 tensor on the CPU, where its type says all of it and none is open.
pub(super) fn float_sizes(graph: &Graph, value: ValueId) -> Option<Vec<i64>> {
    float_dims(graph, value)?.iter().map(|dim| Dim::known(*dim)).collect()
}

/// The same where some may be open.
pub(super) fn float_dims(graph: &Graph, value: ValueId) -> Option<&[Dim]> {
    let TypeKind::Tensor(ty) = graph.ty(value).kind() else { return None };
    let plain = ty.dtype == Some(DType::F32) && ty.device.as_ref().is_some_and(|device| device.is_cpu());
    let is_said = |dim: &Dim| matches!(dim, Dim::Known(_) | Dim::Open(_));
    ty.sizes.as_deref().filter(|sizes| plain && sizes.iter().all(is_said))
}

/// What is known of open sizes; nothing where none are.
pub(super) fn open_sizes<'a>(context: &'a Context<'_>) -> &'a OpenSizes {
    context.extra().unwrap_or(OpenSizes::none())
}

/// How a float32 tensor on the CPU lies: in rows, or images with their channels innermost. None where it lies in another way, or that
/// is not known.
pub(super) fn format_of(graph: &Graph, context: &Context<'_>, value: ValueId) -> Option<i64> {
    let (dims, open) = (float_dims(graph, value)?, open_sizes(context));
    let strides = graph.ty(value).as_tensor()?.strides.as_ref()?;
    if open.row_major(dims).as_ref() == Some(strides) {
        return Some(layer::ROW_MAJOR);
    }
    let may_be_last = dims.len() == 4 && !dims.contains(&Dim::Known(0));
    (may_be_last && open.channels_last(dims).as_ref() == Some(strides)).then_some(layer::CHANNELS_LAST)
}

/// The strides of a tensor, where its type says all of them.
pub(super) fn known_strides(graph: &Graph, value: ValueId) -> Option<Vec<i64>> {
    let TypeKind::Tensor(ty) = graph.ty(value).kind() else { return None };
    layouts::known_strides(ty)
}

/// How the strides that a value has in the program are given to a copy of it.
pub(super) enum Restored {
    /// All are known, and have no gaps.
    Strides(Vec<i64>),
    /// Some sizes are open; the format says how it lies.
    Format(i64),
}

/// How a copy of a value can be given the strides that it has in the program; None where it cannot.
pub(super) fn restored(graph: &Graph, context: &Context<'_>, value: ValueId) -> Option<Restored> {
    let TypeKind::Tensor(ty) = graph.ty(value).kind() else { return None };
    match layouts::of_type(ty) {
        Some(layout) => is_dense(&layout).then(|| Restored::Strides(layout.strides.to_vec())),
        None => format_of(graph, context, value).map(Restored::Format),
    }
}

/// A tensor type with other strides.
pub(super) fn with_strides(ty: &Type, strides: Option<Strides>) -> Type {
    let TypeKind::Tensor(tensor) = ty.kind() else { return ty.clone() };
    Type::new(TypeKind::Tensor(TensorType { strides, ..tensor.clone() }))
}
