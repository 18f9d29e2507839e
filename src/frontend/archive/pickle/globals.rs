//! The allow-list: which `(module, name)` pairs a pickle may name, and what each stands for. Nothing else
//! can be named, and nothing here is ever called; the machine builds plain data for each.

use super::storage::{StorageType, storage_type};
use crate::diag::{Diagnostic, Result};

/// What a `GLOBAL` stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Global {
    /// A class or enum of the archive's own code, by its qualified name.
    Class(Box<str>),
    /// A storage class.
    Storage(&'static StorageType),
    /// `torch._utils._rebuild_tensor_v2`.
    Tensor,
    /// `torch._utils._rebuild_qtensor`.
    QuantizedTensor,
    /// `torch.per_tensor_affine` and its sisters.
    Scheme(Scheme),
    /// `torch._utils._rebuild_parameter`.
    Parameter,
    /// `collections.OrderedDict`.
    OrderedDict,
    /// `torch.device`.
    Device,
    /// `builtins.complex`.
    Complex,
    /// `torch.jit._pickle.build_intlist` and its sisters.
    TypedList(Element),
    /// `torch.jit._pickle.restore_type_tag`.
    TypeTag,
    /// `torch.jit._pickle.build_tensor_from_id`, of archives with a `model.json`.
    TensorId,
}

/// How integers stand for real numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// One scale and zero point.
    Tensor,
    /// One of each a channel.
    Channel,
    /// The same, both floats.
    ChannelFloat,
}

/// The element type of a list with a constructor of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// `int`
    Int,
    /// `float`
    Float,
    /// `bool`
    Bool,
    /// `Tensor`
    Tensor,
}

impl Element {
    /// The list's type in TorchScript.
    pub fn list_type(self) -> &'static str {
        match self {
            Element::Int => "List[int]",
            Element::Float => "List[float]",
            Element::Bool => "List[bool]",
            Element::Tensor => "List[Tensor]",
        }
    }

    /// The element type of a list type that has a constructor of its own.
    pub fn of_list_type(text: &str) -> Option<Element> {
        let all = [Element::Int, Element::Float, Element::Bool, Element::Tensor];
        all.into_iter().find(|element| element.list_type() == text)
    }
}

/// Looks a pair up.
pub fn resolve(module: &str, name: &str) -> Result<Global> {
    if module == "__torch__" || module.starts_with("__torch__.") {
        return class(module, name);
    }
    let unsupported = |what: &str| {
        Err(Diagnostic::unsupported(format!("the model holds {what} (`{module}.{name}`)"))
            .hint("save the model without it"))
    };
    match (module, name) {
        ("torch._utils", "_rebuild_tensor_v2") => Ok(Global::Tensor),
        ("torch._utils", "_rebuild_parameter") => Ok(Global::Parameter),
        ("collections", "OrderedDict") => Ok(Global::OrderedDict),
        ("torch", "device") => Ok(Global::Device),
        ("builtins" | "__builtin__", "complex") => Ok(Global::Complex),
        ("torch.jit._pickle", "build_intlist") => Ok(Global::TypedList(Element::Int)),
        ("torch.jit._pickle", "build_doublelist") => Ok(Global::TypedList(Element::Float)),
        ("torch.jit._pickle", "build_boollist") => Ok(Global::TypedList(Element::Bool)),
        ("torch.jit._pickle", "build_tensorlist") => Ok(Global::TypedList(Element::Tensor)),
        ("torch.jit._pickle", "restore_type_tag") => Ok(Global::TypeTag),
        ("torch._utils", "_rebuild_qtensor") => Ok(Global::QuantizedTensor),
        ("torch._utils", "_rebuild_sparse_tensor" | "_rebuild_sparse_csr_tensor") => {
            unsupported("a sparse tensor")
        }
        ("torch._utils", "_rebuild_meta_tensor_no_storage") => unsupported("a meta tensor"),
        ("torch._tensor", "_rebuild_from_type_v2") => unsupported("a tensor subclass"),
        ("torch.jit._pickle", "build_tensor_from_id") => Ok(Global::TensorId),
        ("__main__", "TensorID" | "IntList") => Ok(Global::Class(format!("{module}.{name}").into())),
        ("torch.distributed.rpc", _) => unsupported("a remote reference"),
        ("torch", "per_tensor_affine") => Ok(Global::Scheme(Scheme::Tensor)),
        ("torch", "per_channel_affine") => Ok(Global::Scheme(Scheme::Channel)),
        ("torch", "per_channel_affine_float_qparams") => Ok(Global::Scheme(Scheme::ChannelFloat)),
        ("torch", name) if name.starts_with("per_tensor_") || name.starts_with("per_channel_") => {
            unsupported("a quantization scheme")
        }
        ("torch", name) if storage_type(name).is_some_and(|row| row.class == name) => {
            storage_type(name).map(Global::Storage).ok_or_else(|| refuse(module, name))
        }
        _ => Err(refuse(module, name)),
    }
}

fn class(module: &str, name: &str) -> Result<Global> {
    let word = |c: char| !c.is_control() && !c.is_whitespace();
    let path = format!("{module}.{name}");
    if path.split('.').any(|part| part.is_empty() || !part.chars().all(word)) {
        return Err(Diagnostic::input(format!("`{}` is not the name of a class", path.escape_debug())));
    }
    Ok(Global::Class(path.into()))
}

fn refuse(module: &str, name: &str) -> Diagnostic {
    let shown: String = format!("{module}.{name}").chars().take(120).collect();
    Diagnostic::input(format!(
        "the pickle names `{}`, which no TorchScript model needs",
        shown.escape_debug()
    ))
    .note("nothing was executed: pickles are read as data here")
    .hint("do not trust this file")
}
