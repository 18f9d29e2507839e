//! Storages and tensors: exactly the records that TorchScript writes, with every size checked before it is
//! believed. It reads no bytes of storages.

use std::sync::Arc;

use super::globals::{Global, Scheme};
use super::machine::Machine;
use super::tree::{Node, NodeId, Scales, StorageRecord, TensorRecord};
use crate::diag::{Diagnostic, Result};

impl Machine<'_> {
    /// A persistent id is exactly `("storage", class, key, device, number of elements)`; up to PyTorch 1.4 None could stand
    /// after it, where a view of a storage would be described.
    pub(super) fn persistent(&mut self) -> Result<()> {
        let id = self.pop()?;
        let wrong = || Diagnostic::input("a persistent id is not (\"storage\", class, key, device, numel)");
        let Node::Tuple(items) = self.node(id) else { return Err(wrong()) };
        let (&[tag, class, key, device, numel] | &[tag, class, key, device, numel, _]) = &**items else {
            return Err(wrong());
        };
        if let Some(view) = items.get(5)
            && !matches!(self.node(*view), Node::None)
        {
            return Err(Diagnostic::unsupported("a storage that is a view of another one")
                .hint("save the model again with PyTorch 1.4 or later"));
        }
        let (Node::Str(tag), Node::Global(Global::Storage(element))) = (self.node(tag), self.node(class))
        else {
            return Err(wrong());
        };
        let (Node::Str(key), Node::Str(device), &Node::Int(numel)) =
            (self.node(key), self.node(device), self.node(numel))
        else {
            return Err(wrong());
        };
        if &**tag != "storage" {
            return Err(wrong());
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if key.is_empty() || key.len() > 64 || !key.chars().all(plain) {
            return Err(Diagnostic::input("the key of a storage is not a plain name"));
        }
        let (key, device, element) = (key.clone(), device_name(device)?, *element);
        let fits =
            |numel: &u64| numel.checked_mul(element.bytes).is_some_and(|bytes| i64::try_from(bytes).is_ok());
        let Some(numel) = u64::try_from(numel).ok().filter(fits) else {
            return Err(Diagnostic::input(format!(
                "storage `{key}` has the impossible size of {numel} elements"
            )));
        };
        self.charge((size_of::<StorageRecord>() + key.len() + device.len()) as u64)?;
        self.push_new(Node::Storage(Arc::new(StorageRecord { key, element, device, numel })))
    }

    /// `_rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks, metadata)`.
    pub(super) fn tensor(&mut self, arguments: [NodeId; 6], metadata: Option<NodeId>) -> Result<()> {
        let metadata = self.metadata(metadata)?;
        let record = self.tensor_record(arguments, metadata)?;
        if record.storage.element.dtype.starts_with('q') {
            return Err(Diagnostic::input("a tensor of a quantized type has no scale"));
        }
        self.push_new(Node::Tensor(Box::new(record)))
    }

    /// `_rebuild_qtensor(storage, offset, sizes, strides, (scheme, scale, zero_point), requires_grad, hooks)`, of channels
    /// `(scheme, scales, zero_points, axis)`.
    pub(super) fn quantized_tensor(&mut self, arguments: [NodeId; 6], scales: NodeId) -> Result<()> {
        let wrong = || Diagnostic::input("a quantized tensor has no valid scheme, scale and zero point");
        let Node::Tuple(items) = self.node(scales) else { return Err(wrong()) };
        let items = items.clone();
        let Some(Node::Global(Global::Scheme(scheme))) = items.first().map(|id| self.node(*id)) else {
            return Err(wrong());
        };
        let channel = |id: NodeId| match self.node(id) {
            Node::Tensor(record) if record.sizes.len() == 1 => Ok(record.clone()),
            _ => Err(wrong()),
        };
        let scales = match (scheme, &items[1..]) {
            (Scheme::Tensor, &[scale, zero_point]) => match (self.node(scale), self.node(zero_point)) {
                (&Node::Float(scale), &Node::Int(zero_point)) => Scales::PerTensor { scale, zero_point },
                _ => return Err(wrong()),
            },
            (Scheme::Channel | Scheme::ChannelFloat, &[scales, zero_points, axis]) => {
                let &Node::Int(axis) = self.node(axis) else { return Err(wrong()) };
                Scales::PerChannel { scales: channel(scales)?, zero_points: channel(zero_points)?, axis }
            }
            _ => return Err(wrong()),
        };
        let mut record = self.tensor_record(arguments, (false, false))?;
        if !record.storage.element.dtype.starts_with('q') {
            return Err(Diagnostic::input("a tensor with a scale is of no quantized type"));
        }
        record.scales = Some(scales);
        self.push_new(Node::Tensor(Box::new(record)))
    }

    fn tensor_record(&mut self, arguments: [NodeId; 6], (conj, neg): (bool, bool)) -> Result<TensorRecord> {
        let [storage, offset, sizes, strides, requires_grad, hooks] = arguments;
        let Node::Storage(storage) = self.node(storage) else {
            return Err(Diagnostic::input("a tensor is built from a value that is not a storage"));
        };
        let storage = Arc::clone(storage);
        let (&Node::Int(offset), &Node::Bool(requires_grad)) = (self.node(offset), self.node(requires_grad))
        else {
            return Err(Diagnostic::input("a tensor has an offset or requires_grad of a wrong type"));
        };
        self.check_hooks(hooks)?;
        let sizes = self.dims(sizes, "sizes")?;
        let strides = self.dims(strides, "strides")?;
        check_extent(&storage, offset, &sizes, &strides)?;
        self.charge((size_of::<TensorRecord>() + 16 * sizes.len()) as u64)?;
        let scales = None;
        Ok(TensorRecord {
            storage,
            offset,
            sizes,
            strides,
            requires_grad,
            parameter: false,
            conj,
            neg,
            scales,
        })
    }

    pub(super) fn parameter(&mut self, tensor: NodeId, requires_grad: NodeId, hooks: NodeId) -> Result<()> {
        self.check_hooks(hooks)?;
        let (Node::Tensor(record), &Node::Bool(requires_grad)) =
            (self.node(tensor), self.node(requires_grad))
        else {
            return Err(Diagnostic::input("a parameter is built from a value that is not a tensor"));
        };
        let record = TensorRecord { requires_grad, parameter: true, ..TensorRecord::clone(record) };
        self.charge((size_of::<TensorRecord>() + 16 * record.sizes.len()) as u64)?;
        self.push_new(Node::Tensor(Box::new(record)))
    }

    /// Hooks are code, so there must be none.
    fn check_hooks(&self, hooks: NodeId) -> Result<()> {
        match self.node(hooks) {
            Node::None => Ok(()),
            Node::Dict(dict) if dict.pairs.is_empty() => Ok(()),
            _ => Err(Diagnostic::input("a tensor has backward hooks").hint("save the model without hooks")),
        }
    }

    /// A tuple of ints that are not negative, one for each dimension.
    fn dims(&self, id: NodeId, what: &str) -> Result<Box<[i64]>> {
        let Node::Tuple(items) = self.node(id) else {
            return Err(Diagnostic::input(format!("the {what} of a tensor are not a tuple")));
        };
        if items.len() > self.limits.dims {
            return Err(Diagnostic::input(format!(
                "a tensor has {} dimensions, and the limit is {}",
                items.len(),
                self.limits.dims
            )));
        }
        let read = |item: &NodeId| match *self.node(*item) {
            Node::Int(value) if value >= 0 => Ok(value),
            Node::Int(value) => Err(Diagnostic::input(format!("a tensor has {value} among its {what}"))),
            ref other => Err(Diagnostic::input(format!("a tensor has {} among its {what}", other.kind()))),
        };
        items.iter().map(read).collect()
    }

    /// The lazy conjugation and negation bits: `{"conj": True}`.
    fn metadata(&self, id: Option<NodeId>) -> Result<(bool, bool)> {
        let Some(id) = id else { return Ok((false, false)) };
        let Node::Dict(dict) = self.node(id) else {
            return match self.node(id) {
                Node::None => Ok((false, false)),
                _ => Err(Diagnostic::input("the metadata of a tensor is not a dict")),
            };
        };
        if dict.pairs.len() > 2 {
            return Err(Diagnostic::input("the metadata of a tensor has more than `conj` and `neg`"));
        }
        let (mut conj, mut neg) = (false, false);
        for (key, value) in &dict.pairs {
            match (self.node(*key), self.node(*value)) {
                (Node::Str(key), Node::Bool(value)) if &**key == "conj" => conj = *value,
                (Node::Str(key), Node::Bool(value)) if &**key == "neg" => neg = *value,
                _ => {
                    return Err(Diagnostic::unsupported("a tensor has metadata other than `conj` and `neg`"));
                }
            }
        }
        Ok((conj, neg))
    }
}

/// Checks that every element lies inside the storage, without overflow.
pub(in crate::frontend::archive) fn check_extent(
    storage: &StorageRecord,
    offset: i64,
    sizes: &[i64],
    strides: &[i64],
) -> Result<()> {
    if sizes.len() != strides.len() {
        return Err(Diagnostic::input(format!(
            "a tensor has {} sizes and {} strides",
            sizes.len(),
            strides.len()
        )));
    }
    let numel = sizes.iter().try_fold(1i64, |n, size| n.checked_mul(*size));
    let bytes = numel.and_then(|n| n.checked_mul(storage.element.bytes as i64));
    let empty = numel == Some(0) || sizes.contains(&0);
    let last = sizes.iter().zip(strides).try_fold(offset, |last, (size, stride)| {
        size.saturating_sub(1).max(0).checked_mul(*stride).and_then(|far| last.checked_add(far))
    });
    let end = if empty { Some(offset) } else { last.and_then(|last| last.checked_add(1)) };
    let (Some(end), true) = (end, bytes.is_some() || empty) else {
        return Err(Diagnostic::input("a tensor has sizes and strides beyond 64 bits"));
    };
    // Elements of less than a byte: the storage counts bytes.
    let each = match storage.element.dtype {
        "quint4x2" => 2,
        "quint2x4" => 4,
        _ => 1,
    };
    if offset < 0 || (end as u64).div_ceil(each) > storage.numel {
        return Err(Diagnostic::input(format!(
            "a tensor reaches from element {offset} to {end} of storage `{}`, which has {}",
            storage.key, storage.numel
        )));
    }
    Ok(())
}

/// A device's name, which is short and plain.
pub(super) fn device_name(text: &str) -> Result<Box<str>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == ':' || c == '_';
    if text.is_empty() || text.len() > 32 || !text.chars().all(plain) {
        return Err(Diagnostic::input("the name of a device is not a plain name"));
    }
    Ok(text.into())
}
