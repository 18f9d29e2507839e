//! One tensor into several views of it: split, chunk, unbind and their relatives.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::views;
use crate::dialects::{Args, Fact, OpDef, Outputs, gather, one, view};
use crate::resources::{Scratch, memory};
use crate::tensor::{DType, Tensor, view as layout, wrap_dim};
use crate::value::Value;

/// The rows.
pub static OPS: &[OpDef] = &[
    view("aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", |a| many(unbind(a)?)).quantized_kernel(crate::dialects::quantized::moves::uniform)
        .infer(views::unbind),
    view("aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", |a| {
        many(split(a)?)
    })
    .infer(views::split),
    view("aten::split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]", |a| {
        many(split_sizes(a)?)
    })
    .infer(views::split_with_sizes),
    view("aten::split(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[]", |a| {
        many(split_sizes(a)?)
    })
    .infer(views::split_with_sizes),
    view(
        "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
        |a| many(split_sizes(a)?),
    )
    .infer(views::split_with_sizes),
    view("aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", |a| many(chunk(a)?))
        .infer(views::chunk)
        .facts(&[Fact::RecordedAs("Split")]),
    view("aten::unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", |a| {
        many(split(a)?)
    })
    .hidden_marks("aten::unsafe_split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]")
    .infer(views::split),
    view("aten::unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", |a| {
        many(split_sizes(a)?)
    })
    .hidden_marks("aten::unsafe_split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]")
    .infer(views::split_with_sizes),
    view("aten::unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", |a| many(chunk(a)?))
        .hidden_marks("aten::unsafe_chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]")
        .infer(views::chunk),
    view(
        "aten::tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
        |a| many(tensor_split(a.tensor(0)?, Parts::Sections(a.int(1)?), a.int(2)?)?),
    ),
    view(
        "aten::tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
        |a| many(tensor_split(a.tensor(0)?, Parts::Indices(memory::copied(&a.ints(1)?)?), a.int(2)?)?),
    ),
    view(
        "aten::tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
        |a| many(tensor_split(a.tensor(0)?, parts_of(a.tensor(1)?)?, a.int(2)?)?),
    ).infer(views::nothing),
    view("aten::hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", |a| {
        many(along(a, "hsplit", 1)?)
    }),
    view("aten::hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", |a| {
        many(along(a, "hsplit", 1)?)
    }),
    view("aten::vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", |a| {
        many(along(a, "vsplit", 2)?)
    }),
    view("aten::vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", |a| {
        many(along(a, "vsplit", 2)?)
    }),
    view("aten::dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", |a| {
        many(along(a, "dsplit", 3)?)
    }),
    view("aten::dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", |a| {
        many(along(a, "dsplit", 3)?)
    }),
    gather("aten::unbind_copy.int(Tensor self, int dim=0) -> Tensor[]", |a| copies(unbind(a)?))
        .infer(views::unbind),
    gather("aten::split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", |a| {
        copies(split(a)?)
    })
    .infer(views::split),
    gather("aten::split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", |a| {
        copies(split_sizes(a)?)
    })
    .infer(views::split_with_sizes),
];

fn many(tensors: Vec<Tensor>) -> Result<Outputs> {
    one(Value::tensors(tensors))
}

fn copies(tensors: Vec<Tensor>) -> Result<Outputs> {
    many(tensors.iter().map(Tensor::copy).collect::<Result<_>>()?)
}

fn slice(tensor: &Tensor, dim: i64, start: i64, end: i64) -> Result<Tensor> {
    tensor.look(|l| layout::slice(l, dim, Some(start), Some(end), 1))
}

/// Bytes that a tensor takes besides its elements, about: many views may be asked for.
const TENSOR_BYTES: usize = 512;

fn unbind(a: &Args<'_>) -> Result<Vec<Tensor>> {
    let tensor = a.tensor(0)?;
    let dim = layout::wrap_dim_strict(wrap_dim(a.int(1)?, tensor.rank())? as i64, tensor.rank())?;
    let size = tensor.sizes()[dim];
    memory::expect::<[u8; TENSOR_BYTES]>(usize::try_from(size).unwrap_or(usize::MAX))?;
    (0..size).map(|i| tensor.look(|l| layout::select(l, dim as i64, i))).collect()
}

fn need_dims(tensor: &Tensor, name: &str) -> Result<()> {
    if tensor.rank() == 0 {
        return Err(Diagnostic::runtime(format!("{name} expects at least a 1-dimensional tensor")));
    }
    Ok(())
}

/// Pieces of one size; the last may be smaller.
fn split(a: &Args<'_>) -> Result<Vec<Tensor>> {
    let (tensor, size, dim) = (a.tensor(0)?, a.int(1)?, a.int(2)?);
    need_dims(tensor, "split")?;
    if size < 0 {
        return Err(Diagnostic::runtime(format!(
            "split expects split_size be non-negative, but got split_size={size}"
        )));
    }
    pieces(tensor, size, dim)
}

fn pieces(tensor: &Tensor, size: i64, dim: i64) -> Result<Vec<Tensor>> {
    let length = tensor.sizes()[wrap_dim(dim, tensor.rank())?];
    if size == 0 && length != 0 {
        return Err(Diagnostic::runtime(format!(
            "split_size can only be 0 if dimension size is 0, but got dimension size of {length}"
        )));
    }
    // An empty dimension still gives one, empty, piece.
    let count = if size == 0 { 1 } else { ((length - 1) / size + 1).max(1) };
    // Sizes of expanded tensors are not a measure of memory.
    memory::expect::<[u8; TENSOR_BYTES]>(usize::try_from(count).unwrap_or(usize::MAX))?;
    (0..count).map(|i| slice(tensor, dim, i * size, (i * size).saturating_add(size))).collect()
}

fn split_sizes(a: &Args<'_>) -> Result<Vec<Tensor>> {
    let (tensor, sizes, dim) = (a.tensor(0)?, a.ints(1)?, a.int(2)?);
    need_dims(tensor, "split")?;
    let d = wrap_dim(dim, tensor.rank())?;
    let length = tensor.sizes()[d];
    if sizes.iter().any(|s| *s < 0) {
        return Err(Diagnostic::runtime(format!(
            "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={sizes:?}"
        )));
    }
    if sizes.iter().fold(0i64, |sum, s| sum.saturating_add(*s)) != length {
        return Err(Diagnostic::runtime(format!(
            "split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension {d}), \
             but got split_sizes={sizes:?}"
        )));
    }
    let mut start = 0;
    let mut out = Vec::with_capacity(sizes.len());
    for size in sizes {
        out.push(slice(tensor, dim, start, start + size)?);
        start += size;
    }
    Ok(out)
}

pub(super) fn chunk(a: &Args<'_>) -> Result<Vec<Tensor>> {
    let (tensor, chunks, dim) = (a.tensor(0)?, a.int(1)?, a.int(2)?);
    need_dims(tensor, "chunk")?;
    if chunks <= 0 {
        return Err(Diagnostic::runtime(format!(
            "chunk expects `chunks` to be greater than 0, got: {chunks}"
        )));
    }
    let length = tensor.sizes()[wrap_dim(dim, tensor.rank())?];
    let size = length / chunks + i64::from(length % chunks != 0);
    if size == 0 {
        // Only here does an empty dimension give as many pieces as asked for; each costs a handle.
        if chunks > 1 << 20 {
            return Err(Diagnostic::unsupported(format!(
                "aten::chunk of an empty dimension into {chunks} pieces"
            )));
        }
        return (0..chunks).map(|_| slice(tensor, dim, 0, 0)).collect();
    }
    pieces(tensor, size, dim)
}

/// How `tensor_split` takes the positions of the cuts.
enum Parts {
    /// A number of pieces whose sizes differ by one at most.
    Sections(i64),
    /// Before these indices.
    Indices(Scratch<i64>),
}

fn parts_of(tensor: &Tensor) -> Result<Parts> {
    if tensor.dtype() != DType::I64 {
        return Err(Diagnostic::runtime(format!(
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got {}",
            tensor.dtype().type_name()
        )));
    }
    match tensor.rank() {
        0 => Ok(Parts::Sections(tensor.item()?.to_i64())),
        1 => Ok(Parts::Indices(tensor.elements::<i64>()?)),
        n => Err(Diagnostic::runtime(format!(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but \
             got a tensor with {n} dims"
        ))),
    }
}

fn tensor_split(tensor: &Tensor, parts: Parts, dim: i64) -> Result<Vec<Tensor>> {
    if tensor.rank() == 0 {
        return Err(Diagnostic::runtime(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims",
        ));
    }
    let length = tensor.sizes()[wrap_dim(dim, tensor.rank())?];
    match parts {
        Parts::Sections(n) if n <= 0 => {
            Err(Diagnostic::runtime(format!("number of sections must be larger than 0, got {n}")))
        }
        Parts::Sections(n) if n > 1 << 20 && n > length => {
            Err(Diagnostic::unsupported(format!("aten::tensor_split into {n} pieces")))
        }
        Parts::Sections(n) => {
            let (size, larger) = (length / n, length % n);
            let start = |i: i64| i * size + i.min(larger);
            (0..n).map(|i| slice(tensor, dim, start(i), start(i + 1))).collect()
        }
        Parts::Indices(indices) => {
            let mut out = memory::vec_reserved(indices.len() + 1)?;
            let mut start = 0;
            for end in indices {
                out.push(slice(tensor, dim, start, end)?);
                start = end;
            }
            out.push(slice(tensor, dim, start, length)?);
            Ok(out)
        }
    }
}

/// `hsplit` (1), `vsplit` (2), `dsplit` (3): the number is the rank that they need.
fn along(a: &Args<'_>, name: &str, rank: usize) -> Result<Vec<Tensor>> {
    let tensor = a.tensor(0)?;
    if tensor.rank() < rank {
        return Err(Diagnostic::runtime(format!(
            "torch.{name} requires a tensor with at least {rank} dimension, but got a tensor with {} dimensions!",
            tensor.rank()
        )));
    }
    let dim = match rank {
        1 => usize::from(tensor.rank() > 1),
        2 => 0,
        _ => 2,
    };
    if matches!(a.value(1)?, Value::List(_)) {
        return tensor_split(tensor, Parts::Indices(memory::copied(&a.ints(1)?)?), dim as i64);
    }
    let (sections, size) = (a.int(1)?, tensor.sizes()[dim]);
    if sections == 0 || size % sections != 0 {
        return Err(Diagnostic::runtime(format!(
            "torch.{name} attempted to split along dimension {dim}, but the size of the dimension {size} is not \
             divisible by the split_size {sections}!"
        )));
    }
    tensor_split(tensor, Parts::Sections(sections), dim as i64)
}
