//! What a graph is made of: ops, values, blocks, and the attributes of ops, which hold graphs in turn. Only definitions; inspecting
//! stands in `graph`, changing in `edit`.
//!
//! Ops, values and blocks lie in arenas and are named by 32-bit handles. Operand lists are ranges of one
//! pool; beside each operand lies its link in the ring of uses of the value it names, so that the uses of a
//! value are found, added and removed in constant time. Ops of a block form a doubly linked list with
//! sparse order numbers, so that "does a come before b" is constant time, amortized.

use super::location::LocationId;
use super::{BlockId, Location, OpId, Symbol, Type, ValueId};
use crate::tensor::{Device, Tensor};
use hashbrown::HashMap;
use indexmap::IndexSet;
use num_complex::Complex64;
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;

/// Ops, values and blocks of one function.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(super) ops: Vec<OpData>,
    pub(super) values: Vec<ValueData>,
    pub(super) blocks: Vec<BlockData>,
    pub(super) operands: OperandPool,
    pub(super) results: Vec<ValueId>,
    pub(super) types: IndexSet<Type, hashbrown::DefaultHashBuilder>,
    pub(super) names: String,
    pub(super) attrs: Vec<AttrList>,
    pub(super) free_attrs: Vec<u32>,
    pub(super) nested: Vec<SmallVec<[BlockId; 2]>>,
    pub(super) locations: Vec<Location>,
    pub(super) free_ops: Vec<OpId>,
    pub(super) free_values: Vec<ValueId>,
    pub(super) root: BlockId,
    pub(super) next_number: u32,
    pub(super) live_ops: usize,
    pub(super) name_index: Option<Box<NameIndex>>,
    /// Symbolic sizes print as `*`, as PyTorch prints a graph that its own parser has read.
    pub(super) hides_symbols: bool,
}

pub(super) type AttrList = SmallVec<[(Symbol, Attr); 1]>;

#[derive(Clone, Debug)]
pub(super) struct OpData {
    pub(super) kind: Symbol,
    pub(super) parent: BlockId,
    pub(super) prev: OpId,
    pub(super) next: OpId,
    pub(super) order: u32,
    pub(super) operand_start: u32,
    pub(super) operand_len: u32,
    /// The value itself when there is one result, else an index into `Graph::results`.
    pub(super) result_start: u32,
    pub(super) result_len: u32,
    /// Index into `Graph::attrs`, or `u32::MAX`.
    pub(super) attrs: u32,
    /// Index into `Graph::nested`, or `u32::MAX`.
    pub(super) nested: u32,
    pub(super) location: LocationId,
}

#[derive(Clone, Debug)]
pub(super) struct ValueData {
    pub(super) ty: u32,
    /// Op or block, told apart by `DEF_IS_BLOCK` in `index`.
    pub(super) def: u32,
    pub(super) index: u32,
    /// First operand slot of the ring of uses, or `u32::MAX`.
    pub(super) first_use: u32,
    /// Start in `Graph::names`; the printed number itself when `name_len` is 0.
    pub(super) name_start: u32,
    pub(super) name_len: u32,
}

pub(super) const DEF_IS_BLOCK: u32 = 1 << 31;

#[derive(Clone, Debug)]
pub(super) struct BlockData {
    pub(super) owner: OpId,
    pub(super) params: SmallVec<[ValueId; 4]>,
    pub(super) first: OpId,
    pub(super) last: OpId,
    /// A detached op whose operands are the block's results.
    pub(super) terminator: OpId,
}

/// All operand lists, each a range; `links` runs parallel to `values`.
#[derive(Clone, Debug, Default)]
pub(super) struct OperandPool {
    pub(super) values: Vec<ValueId>,
    pub(super) links: Vec<UseLink>,
    /// Free ranges by length.
    pub(super) free: Vec<Vec<u32>>,
}

/// A node of the ring of uses of a value; `prev` of the first is the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct UseLink {
    pub(super) owner: OpId,
    pub(super) next: u32,
    pub(super) prev: u32,
}

/// Values by name. Built when first asked for; entries of values that were renamed or erased since are stale
/// and recognized as such when they are found.
#[derive(Clone, Debug, Default)]
pub(super) struct NameIndex {
    pub(super) owners: HashMap<String, ValueId>,
    /// The suffix that comes next for a base.
    pub(super) suffixes: HashMap<String, u64>,
}

/// The value of an attribute. The plural kinds are TorchScript's own flat lists; the last group is what it
/// calls an `ival`: constants of container and other types.
#[derive(Clone, Debug)]
pub enum Attr {
    /// `[n=1]`
    Int(i64),
    /// `[p=0.5]`
    Float(f64),
    /// `[z=1+2j]`
    Complex(Complex64),
    /// `[s="text"]`
    Str(Arc<str>),
    /// `[value=<Tensor>]`, by handle.
    Tensor(Tensor),
    /// `[Subgraph=<Graph>]`
    Graph(Arc<Graph>),
    /// `[T=int]`
    Type(Type),
    /// `[shape=[1, 2]]`
    Ints(Arc<[i64]>),
    /// `[scales=[0.5, 1.]]`
    Floats(Arc<[f64]>),
    /// List of complex numbers.
    Complexes(Arc<[Complex64]>),
    /// `[names=["a", "b"]]`
    Strs(Arc<[Arc<str>]>),
    /// List of tensors.
    Tensors(Arc<[Tensor]>),
    /// List of graphs.
    Graphs(Arc<[Arc<Graph>]>),
    /// List of types.
    Types(Arc<[Type]>),
    /// A truth value (a constant of type `bool`; TorchScript stores 0 or 1).
    Bool(bool),
    /// No value.
    None,
    /// A device constant.
    Device(Device),
    /// A constant list of anything.
    List(Arc<[Attr]>),
    /// A constant tuple.
    Tuple(Arc<[Attr]>),
    /// A constant dictionary, in insertion order.
    Dict(Arc<[(Attr, Attr)]>),
    /// A member of an enum class: class name, member name, value.
    Enum(Arc<(String, String, Attr)>),
    /// An object of a custom class, by handle: packed weights in a frozen model.
    Object(Held),
    /// Anything a foreign dialect wrote between the brackets; kept to the letter.
    Raw(Arc<str>),
}

/// What an object of a custom class holds, which this layer does not look into.
#[derive(Clone)]
pub struct Held {
    /// Qualified name of the class.
    pub class: Symbol,
    /// Its content.
    pub content: Arc<dyn Any + Send + Sync>,
}
