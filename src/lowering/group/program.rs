//! A fusion group as a scalar program with loads and stores at its borders. Knows neither the group's graph nor how that is read.

use crate::dialects::Order;
use crate::dialects::scalar::{Binary, Program, Sv};
use crate::tensor::DType;
use smallvec::SmallVec;

/// What a kernel is built for, of one input of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputSig {
    /// A tensor: element type, and whether it has dimensions (rank 0 counts less in type promotion).
    Tensor(DType, bool),
    /// An int, passed at run time.
    Int,
    /// A float, passed at run time.
    Float,
    /// A bool, passed at run time.
    Bool,
}

/// Something to read: an input, or an equal part of it along a dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Load {
    /// Which input of the group.
    pub input: usize,
    /// (dimension, number of parts, which part)
    pub chunk: Option<(i64, i64, i64)>,
    /// Element type.
    pub dtype: DType,
    /// Inputs whose broadcast sizes the chunk divides; empty where it divides the input itself.
    pub domain: SmallVec<[usize; 4]>,
}

/// What decides the sizes of a value, and its layout as operands do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// A load.
    Load(usize),
    /// A reduction; whether its dimensions stay, with size 1.
    Reduced(usize, bool),
}

/// The leaves of a value: the first of them decides first.
pub type Leaves = SmallVec<[Leaf; 4]>;

/// How the layout of a value comes about: as the ops that compute it give it one after the other, since neither the order
/// of the leaves nor they alone decide the strides of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// That of a leaf.
    Leaf(Leaf),
    /// That of an elementwise op over earlier forms; whether a number stands in the place of a tensor; what the row says.
    Elementwise(SmallVec<[usize; 3]>, bool, Order),
    /// Row-major, of the sizes to which earlier forms broadcast.
    RowMajor(SmallVec<[usize; 3]>),
}

/// A number for each row of the group's rows. Rows lie along the last dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct RowReduction {
    /// Add, Min or Max.
    pub op: Binary,
    /// What is combined.
    pub value: Sv,
    /// The leaves of that.
    pub leaves: Leaves,
    /// The dimensions, as the op names them.
    pub dims: SmallVec<[i64; 2]>,
}

/// Something to store: an output, or its part along a dimension, or what an input becomes.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Which output of the group; those after the last are [`GroupProgram::writes`].
    pub output: usize,
    /// The value.
    pub value: Sv,
    /// What decides its sizes.
    pub leaves: Leaves,
    /// Its layout, as an index into [`GroupProgram::forms`].
    pub form: usize,
    /// Whether it depends on a reduction.
    pub reduced: bool,
    /// Of a piece that is sums of the value.
    pub sums: Option<BlockSums>,
}

/// Which sums of a value are stored: `fusion::block_sums`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSums {
    /// How many dimensions are seen as one: its places are rows of the others.
    pub dims: usize,
    /// Rows of a block, at least 1.
    pub rows: i64,
}

/// How the pieces of an output make it up.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// Element type.
    pub dtype: DType,
    /// Its pieces, as indices into [`GroupProgram::pieces`]; more than one with `concat`.
    pub pieces: SmallVec<[usize; 2]>,
    /// The dimension along which the pieces are joined.
    pub concat: Option<i64>,
}

/// A group as one scalar program.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupProgram {
    /// Parameters: the loads, the scalars, the reductions, then (with reductions) the length of rows as float64.
    pub program: Program,
    /// What is read.
    pub loads: Vec<Load>,
    /// Inputs that are numbers, with the dtype in which they are passed: int64, float64 or bool.
    pub scalars: Vec<(usize, DType)>,
    /// What is combined along rows, each after those that it depends on.
    pub reductions: Vec<RowReduction>,
    /// What is stored.
    pub pieces: Vec<Piece>,
    /// The layouts of values, each after those that it depends on.
    pub forms: Vec<Form>,
    /// One an output.
    pub outputs: Vec<Slot>,
    /// Inputs that are written to, each once, with their dtypes, which are those of what is written.
    pub writes: Vec<(usize, DType)>,
}

impl GroupProgram {
    /// The input that what a piece is stored to is; None for an output.
    pub fn written(&self, output: usize) -> Option<(usize, DType)> {
        self.writes.get(output.checked_sub(self.outputs.len())?).copied()
    }

    /// The element type of what a piece is stored to.
    pub(in crate::lowering) fn stored_dtype(&self, output: usize) -> DType {
        let written = || self.written(output).map_or(DType::F32, |(_, dtype)| dtype);
        self.outputs.get(output).map_or_else(written, |slot| slot.dtype)
    }
}
