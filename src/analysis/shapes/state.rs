//! What is known while a graph is looked into. How it is found is not known here.

use super::containers::Containers;
use crate::dialects::shapes::Known;
use crate::dialects::shapes::open::OpenSizes;
use crate::dialects::{Op, Registry};
use crate::ir::{Dim, Graph, ValueId};
use crate::tensor::Tensor;
use hashbrown::{HashMap, HashSet};
use std::cell::Cell;
use std::sync::Arc;

/// Finds the graph of a composite op's meaning.
pub type Meanings<'a> = &'a dyn Fn(&Op) -> Option<Arc<Graph>>;

/// A tensor of one number.
#[derive(Clone)]
pub(super) enum Number {
    Known(Tensor),
    /// An int64 that is an open size.
    Open(Dim),
}

/// All that is known of a graph while it is looked into.
pub(super) struct State<'a> {
    pub(super) registry: &'a Registry,
    pub(super) open: Option<&'a OpenSizes>,
    pub(super) graph: &'a Graph,
    pub(super) symbols: &'a Cell<i64>,
    pub(super) meanings: Meanings<'a>,
    /// How many meanings are being looked into.
    pub(super) depth: usize,
    /// How many blocks have been looked into, again and again counted.
    pub(super) visits: usize,
    pub(super) most_visits: usize,
    pub(super) known: Vec<Known>,
    /// Values that are never read: they stand where a branch has none to give.
    pub(super) never: HashSet<ValueId>,
    /// Tensors of one number that is known: traced programs compute sizes with them.
    pub(super) numbers: HashMap<ValueId, Number>,
    pub(super) containers: Containers,
    /// By the number of what is written to.
    pub(super) items: HashMap<usize, Items>,
    /// Symbols that are not below this one stand for sizes of inputs.
    pub(super) first_symbol: i64,
}

/// What is known of the items of a list or dictionary that is written to, over the whole program.
#[derive(Default)]
pub(super) struct Items {
    /// None: it has none.
    pub(super) each: Option<Known>,
    /// Whether an op has read them in this round, and whether they have grown since.
    pub(super) is_read: bool,
    pub(super) has_grown: bool,
}
