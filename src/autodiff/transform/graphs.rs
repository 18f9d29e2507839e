//! What a transform is asked for, and the graphs that it makes. Makes none.

use crate::ir::Graph;

/// What is differentiated by what.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Which inputs want a gradient.
    pub inputs: &'a [bool],
    /// Which outputs have one.
    pub outputs: &'a [bool],
}

/// A backward graph.
#[derive(Debug)]
pub struct Backward {
    /// From the inputs of the forward graph, then the gradients of outputs that have one, to the gradients of inputs that want
    /// one: a tensor, or None where no output that has a gradient depends on the input.
    pub graph: Graph,
    /// Which inputs of the forward graph it reads.
    pub reads: Vec<bool>,
    /// Which outputs of the forward graph depend on an input that wants a gradient.
    pub follows: Vec<bool>,
    /// Whether a cell reads elements of the forward graph's values, which the tape would have kept.
    pub keeps: bool,
}

/// A forward graph that gives besides its outputs what its backward graph takes.
#[derive(Debug, Default)]
pub struct Split {
    /// From the inputs to the outputs, then bools for those that are `open`, then what is kept.
    pub forward: Graph,
    /// From the inputs, what is kept and the gradients of outputs that have one, to the gradients of inputs that want one.
    pub backward: Graph,
    /// How many values are kept.
    pub kept: usize,
    /// Bytes of these, as far as types determine it.
    pub kept_bytes: u64,
    /// Which inputs the backward graph reads.
    pub reads: Vec<bool>,
    /// Which outputs depend on an input that wants a gradient.
    pub follows: Vec<bool>,
    /// Outputs that do so where some way is taken: the forward says after its outputs, in this order, whether they did.
    pub open: Vec<usize>,
    /// Whether a cell reads elements of the forward graph's values, which the tape would have kept.
    pub keeps: bool,
}
