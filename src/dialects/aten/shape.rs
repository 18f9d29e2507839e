//! What a program can ask of a tensor's look: sizes, strides, kinds. No element is read, save by `is_nonzero`.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::views;
use crate::dialects::{Args, Effects, OpDef, Outputs, one, opaque};
use crate::tensor::{Tensor, view};
use crate::value::Value;

/// The rows.
pub static OPS: &[OpDef] = &[
    ask("aten::size.int(Tensor self, int dim) -> int", |a| at(a, &a.tensor(0)?.sizes())).infer(views::sizes),
    ask("aten::size(Tensor self) -> int[]", |a| one(Value::ints(a.tensor(0)?.sizes()))).infer(views::sizes),
    layout("aten::stride.int(Tensor self, int dim) -> int", |a| at(a, &a.tensor(0)?.strides()))
        .infer(views::strides),
    layout("aten::stride(Tensor self) -> int[]", |a| one(Value::ints(a.tensor(0)?.strides())))
        .infer(views::strides),
    ask("aten::sym_size.int(Tensor self, int dim) -> SymInt", |a| at(a, &a.tensor(0)?.sizes()))
        .infer(views::sizes),
    ask("aten::sym_size(Tensor self) -> SymInt[]", |a| one(Value::ints(a.tensor(0)?.sizes())))
        .infer(views::sizes),
    layout("aten::sym_stride.int(Tensor self, int dim) -> SymInt", |a| at(a, &a.tensor(0)?.strides()))
        .infer(views::strides),
    layout("aten::sym_stride(Tensor self) -> SymInt[]", |a| one(Value::ints(a.tensor(0)?.strides())))
        .infer(views::strides),
    ask("aten::sym_numel(Tensor self) -> SymInt", |a| one(a.tensor(0)?.numel() as i64)).infer(views::numel),
    layout("aten::sym_storage_offset(Tensor self) -> SymInt", |a| one(a.tensor(0)?.layout().offset as i64)),
    ask("aten::dim(Tensor self) -> int", |a| one(a.tensor(0)?.rank() as i64))
        .facts(&[crate::dialects::Fact::Metadata, crate::dialects::Fact::Nested])
        .infer(views::rank),
    ask("aten::numel(Tensor self) -> int", |a| one(a.tensor(0)?.numel() as i64)).infer(views::numel),
    layout("aten::is_contiguous(Tensor self) -> bool", |a| one(a.tensor(0)?.is_contiguous())),
    layout(
        "aten::is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool",
        contiguous_in,
    ),
    layout("aten::storage_offset(Tensor self) -> int", |a| one(a.tensor(0)?.layout().offset as i64)),
    ask("aten::element_size(Tensor self) -> int", |a| one(a.tensor(0)?.dtype().size() as i64)),
    ask("aten::is_conj(Tensor self) -> bool", |a| a.tensor(0).and_then(|_| one(false))),
    ask("aten::is_neg(Tensor self) -> bool", |a| a.tensor(0).and_then(|_| one(false))),
    ask("aten::is_inference(Tensor self) -> bool", |a| a.tensor(0).and_then(|_| one(false))),
    ask("aten::is_leaf(Tensor self) -> bool", |a| one(a.tensor(0)?.grad_node().is_none()))
        .effects(Effects::READS_WORLD),
    ask("aten::is_pinned(Tensor self, Device? device=None) -> bool", |a| {
        a.tensor(0).and_then(|_| one(false))
    }),
    ask("aten::is_same_size(Tensor self, Tensor other) -> bool", |a| {
        one(a.tensor(0)?.sizes() == a.tensor(1)?.sizes())
    })
    .quantized(crate::dialects::Quantized::Own),
    layout("aten::is_set_to(Tensor self, Tensor tensor) -> bool", |a| {
        let (x, y) = (a.tensor(0)?, a.tensor(1)?);
        one(x.storage().same(&y.storage()) && x.layout() == y.layout())
    }),
    layout("aten::is_non_overlapping_and_dense(Tensor self) -> bool", |a| {
        let layout = a.tensor(0)?.layout();
        let mut dims: Vec<usize> = (0..layout.rank()).filter(|d| layout.sizes[*d] > 1).collect();
        dims.sort_by_key(|d| std::cmp::Reverse(layout.strides[*d]));
        one(view::reorder(&layout, &dims).is_contiguous())
    }),
    ask("aten::get_device(Tensor self) -> int", |a| one(a.tensor(0)?.device().index().map_or(-1, i64::from))),
    ask("aten::_shape_as_tensor(Tensor self) -> Tensor", |a| {
        let sizes = a.tensor(0)?.sizes();
        one(Tensor::from_vec::<i64>(&sizes, &[sizes.len() as i64])?)
    }),
];

/// A question: depends on the tensor's look, which in-place forms may change.
const fn ask(schema: &'static str, eval: crate::dialects::Kernel) -> OpDef {
    opaque(schema, eval)
        .tolerance(crate::dialects::Tolerance::Exact)
        .effects(Effects::NONE)
        .facts(&[crate::dialects::Fact::Metadata])
}

/// A question about strides.
const fn layout(schema: &'static str, eval: crate::dialects::Kernel) -> OpDef {
    ask(schema, eval).facts(&[crate::dialects::Fact::Metadata, crate::dialects::Fact::SeesLayout])
}

/// One size or stride by dimension.
fn at(a: &Args<'_>, items: &[i64]) -> Result<Outputs> {
    one(items[view::wrap_dim_strict(a.int(1)?, items.len())?])
}

/// Dense in logical order, or with channels last (2: images, 3: volumes).
fn contiguous_in(a: &Args<'_>) -> Result<Outputs> {
    let layout = a.tensor(0)?.layout();
    let order: &[usize] = match (a.int(1)?, layout.rank()) {
        (0, _) => return one(layout.is_contiguous()),
        (2, 4) => &[0, 2, 3, 1],
        (3, 5) => &[0, 2, 3, 4, 1],
        (2 | 3, _) => return one(false),
        _ => {
            return Err(Diagnostic::runtime(
                "preserve memory format is unsupported by the contiguous operator",
            ));
        }
    };
    one(view::reorder(&layout, order).is_contiguous())
}
