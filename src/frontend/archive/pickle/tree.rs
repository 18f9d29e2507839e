//! The data of a saved model as a tree: nodes in an arena, children before their parents. It knows nothing of bytes that
//! trees are read from.

use super::globals;
use super::storage::StorageType;
use crate::diag::{Diagnostic, Result};
use std::sync::Arc;

/// A node of a [`Pickle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// Its place in the arena.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One value. Scalars, strings and tuples have no identity; lists, dicts, objects and tensors do.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `None`.
    None,
    /// A `bool`.
    Bool(bool),
    /// An `int`; dtypes, layouts and memory formats are ints in TorchScript as well.
    Int(i64),
    /// A `float`.
    Float(f64),
    /// A `complex`: real and imaginary part.
    Complex(f64, f64),
    /// A `str`.
    Str(Box<str>),
    /// A list.
    List(Box<List>),
    /// A tuple; the class of a `NamedTuple` is known only by the declared type of its place.
    Tuple(Box<[NodeId]>),
    /// A dict, in insertion order. Keys are `str`, `int`, `float`, `bool`, `complex` or tensors.
    Dict(Box<Dict>),
    /// An instance of a class of the archive's own code.
    Object(Box<Object>),
    /// A member of an enum, by its value.
    Enum(Box<Enum>),
    /// A tensor.
    Tensor(Box<TensorRecord>),
    /// A device, as text (`cpu`, `cuda:0`).
    Device(Box<str>),
    /// A global that stands where the machine needs it; no finished tree contains one.
    #[doc(hidden)]
    Global(globals::Global),
    /// A storage, likewise only on the way.
    #[doc(hidden)]
    Storage(Arc<StorageRecord>),
}

/// The items of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    /// The items.
    pub items: Vec<NodeId>,
    /// The type that the archive states for the list (`List[int]`).
    pub type_text: Option<Box<str>>,
}

/// The pairs of a dict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dict {
    /// Keys and values.
    pub pairs: Vec<(NodeId, NodeId)>,
    /// The type that the archive states for the dict (`Dict[str, int]`).
    pub type_text: Option<Box<str>>,
    /// Whether it is an `OrderedDict`, which may have a state beside its pairs.
    pub ordered: bool,
}

/// An instance of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Qualified name of the class (`__torch__.m.Net`).
    pub class: Box<str>,
    /// A dict from attribute names to values, or what the class's `__setstate__` takes.
    pub state: Option<NodeId>,
}

/// A member of an enum.
#[derive(Clone, Debug, PartialEq)]
pub struct Enum {
    /// Qualified name of the enum.
    pub class: Box<str>,
    /// Its value.
    pub value: NodeId,
}

/// A run of elements in the archive, which several tensors may share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StorageRecord {
    /// Name of the entry beside the pickle (`0` for `data/0`).
    pub key: Box<str>,
    /// Element type.
    pub element: &'static StorageType,
    /// Device it was saved from, as text.
    pub device: Box<str>,
    /// Number of elements.
    pub numel: u64,
}

impl StorageRecord {
    /// Size in bytes; the machine has checked that it does not overflow.
    pub fn bytes(&self) -> u64 {
        self.numel.saturating_mul(self.element.bytes)
    }
}

/// A tensor as a view of a storage; the machine has checked that it lies inside.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorRecord {
    /// The storage.
    pub storage: Arc<StorageRecord>,
    /// Elements before the first one.
    pub offset: i64,
    /// Elements along each dimension.
    pub sizes: Box<[i64]>,
    /// Distance of neighbours along each dimension, in elements; never negative.
    pub strides: Box<[i64]>,
    /// Whether gradients are wanted.
    pub requires_grad: bool,
    /// Whether it was pickled as a `Parameter`; TorchScript itself names parameters in the class's code.
    pub parameter: bool,
    /// Lazily conjugated: each element reads as its conjugate.
    pub conj: bool,
    /// Lazily negated: each element reads as its negative.
    pub neg: bool,
    /// Scales of a quantized tensor; of no other.
    pub scales: Option<Scales>,
}

/// How the integers of a quantized tensor stand for real numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Scales {
    /// One scale and zero point.
    PerTensor {
        /// Distance of neighbouring integers.
        scale: f64,
        /// The integer that stands for 0.
        zero_point: i64,
    },
    /// One of each a channel, floats both if the dtype of the zero points is.
    PerChannel {
        /// A tensor of one dimension.
        scales: Box<TensorRecord>,
        /// A tensor of one dimension.
        zero_points: Box<TensorRecord>,
        /// The dimension of the channels.
        axis: i64,
    },
}

impl TensorRecord {
    /// Number of elements; the machine has checked that it does not overflow.
    pub fn numel(&self) -> i64 {
        self.sizes.iter().fold(1i64, |n, size| n.saturating_mul(*size))
    }
}

/// Class of the object that stands for a tensor by its number in `model.json`; its state is the number.
pub(in crate::frontend::archive) const TENSOR_ID: &str = "__main__.TensorID";

/// Class of the object that stands for a list of ints in archives of PyTorch 1.1; its state is the list.
pub(in crate::frontend::archive) const INT_LIST: &str = "__main__.IntList";

/// A finished tree: acyclic, of bounded depth, children before parents, root last.
#[derive(Clone, Debug, PartialEq)]
pub struct Pickle {
    nodes: Vec<Node>,
}

impl Pickle {
    /// A tree of nodes that `finish` has checked and ordered.
    pub(super) fn of_checked(nodes: Vec<Node>) -> Pickle {
        Pickle { nodes }
    }

    /// Fails where a tensor is only a number, as in archives of PyTorch 1.3 and older.
    pub(in crate::frontend::archive) fn refuse_old_tensors(&self) -> Result<()> {
        let old = |node: &Node| matches!(node, Node::Object(o) if [TENSOR_ID, INT_LIST].contains(&&*o.class));
        if self.nodes.iter().any(old) {
            let message = "the model holds a tensor in the format of PyTorch 1.3 or older";
            return Err(Diagnostic::unsupported(message).hint("save the model without it"));
        }
        Ok(())
    }

    /// All nodes, children before parents.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeId(index as u32), node))
    }

    /// Number of nodes, at least 1.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Never true: a pickle holds a value. Here for completeness.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The value that was pickled.
    pub fn root(&self) -> NodeId {
        NodeId(self.nodes.len().saturating_sub(1) as u32)
    }

    /// The node of an id of this tree; `Node::None` for an id of another tree that is out of range.
    pub fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id.index()).unwrap_or(&Node::None)
    }

    /// The text of a string node.
    pub fn str(&self, id: NodeId) -> Option<&str> {
        match self.node(id) {
            Node::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The value of an int node.
    pub fn int(&self, id: NodeId) -> Option<i64> {
        match self.node(id) {
            Node::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The items of a tuple or list node.
    pub fn items(&self, id: NodeId) -> Option<&[NodeId]> {
        match self.node(id) {
            Node::Tuple(items) => Some(items),
            Node::List(list) => Some(&list.items),
            _ => None,
        }
    }

    /// An attribute of an object whose state is a dict.
    pub fn attribute(&self, object: NodeId, name: &str) -> Option<NodeId> {
        let Node::Object(object) = self.node(object) else { return None };
        let Node::Dict(dict) = self.node(object.state?) else { return None };
        dict.pairs.iter().find(|(key, _)| self.str(*key) == Some(name)).map(|(_, value)| *value)
    }

    /// The storage of each tensor, in order; one that several tensors share comes as often. Who reads their
    /// bytes keeps them by key, so that a thousand views cost one read.
    pub fn storages(&self) -> impl Iterator<Item = &Arc<StorageRecord>> {
        let tensors = self.nodes.iter().filter_map(|node| match node {
            Node::Tensor(tensor) => Some(tensor),
            _ => None,
        });
        tensors.flat_map(|tensor| {
            let (scales, zero_points) = match &tensor.scales {
                Some(Scales::PerChannel { scales, zero_points, .. }) => (Some(scales), Some(zero_points)),
                _ => (None, None),
            };
            [Some(tensor), scales, zero_points].into_iter().flatten().map(|tensor| &tensor.storage)
        })
    }
}

impl Node {
    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Node::None => "None",
            Node::Bool(_) => "a bool",
            Node::Int(_) => "an int",
            Node::Float(_) => "a float",
            Node::Complex(..) => "a complex",
            Node::Str(_) => "a str",
            Node::List(_) => "a list",
            Node::Tuple(_) => "a tuple",
            Node::Dict(_) => "a dict",
            Node::Object(_) => "an object",
            Node::Enum(_) => "an enum member",
            Node::Tensor(_) => "a tensor",
            Node::Device(_) => "a device",
            Node::Global(_) => "a class or function",
            Node::Storage(_) => "a storage",
        }
    }

    /// Calls `visit` with each child, in order.
    pub fn children(&self, mut visit: impl FnMut(NodeId)) {
        match self {
            Node::List(list) => list.items.iter().for_each(|id| visit(*id)),
            Node::Tuple(items) => items.iter().for_each(|id| visit(*id)),
            Node::Dict(dict) => dict.pairs.iter().for_each(|(key, value)| {
                visit(*key);
                visit(*value);
            }),
            Node::Object(object) => object.state.into_iter().for_each(visit),
            Node::Enum(member) => visit(member.value),
            Node::None
            | Node::Bool(_)
            | Node::Int(_)
            | Node::Float(_)
            | Node::Complex(..)
            | Node::Str(_)
            | Node::Tensor(_)
            | Node::Device(_)
            | Node::Global(_)
            | Node::Storage(_) => {}
        }
    }

    /// Replaces each child.
    pub fn map_children(&mut self, mut map: impl FnMut(NodeId) -> NodeId) {
        match self {
            Node::List(list) => list.items.iter_mut().for_each(|id| *id = map(*id)),
            Node::Tuple(items) => items.iter_mut().for_each(|id| *id = map(*id)),
            Node::Dict(dict) => dict.pairs.iter_mut().for_each(|(key, value)| {
                *key = map(*key);
                *value = map(*value);
            }),
            Node::Object(object) => object.state = object.state.map(map),
            Node::Enum(member) => member.value = map(member.value),
            _ => {}
        }
    }
}
