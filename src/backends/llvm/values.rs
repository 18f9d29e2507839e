//! What registers hold while code is being written, and how the code is shared among lanes of a vector and threads of a warp.
//! Writes no code.

use super::ir::V;
use inkwell::values::{IntValue, PointerValue};

/// A register's value in the code under construction.
#[derive(Clone, Copy)]
pub(super) enum Val<'c> {
    /// One number for all lanes.
    Uniform(V<'c>),
    /// An index: this in the first lane, growing by the step.
    Affine(IntValue<'c>, Step<'c>),
    /// One number a lane.
    Vector(V<'c>),
    /// The address of a buffer.
    Buffer(PointerValue<'c>),
}

/// How far an index grows from lane to lane.
#[derive(Clone, Copy)]
pub(super) enum Step<'c> {
    One,
    Value(IntValue<'c>),
}

/// How the code of a vector loop is being written.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'c> {
    pub(super) count: u32,
    /// Which lanes are live, in a masked tail.
    pub(super) mask: Option<V<'c>>,
}

/// Which thread of a warp this is.
#[derive(Clone, Copy)]
pub(super) struct Warp<'c> {
    /// Its number in the warp, an index.
    pub(super) lane: V<'c>,
    /// Whether the code is that of a vector loop, where threads differ.
    pub(super) within_loop: bool,
}
