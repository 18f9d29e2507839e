//! The `quantized` dialect: operators on tensors of integers that represent real numbers, and what the operators of
//! `aten` do with such tensors. Weights are packed once, in objects of classes of their own (`packed`). Numbers are
//! rounded as PyTorch's x86 engine rounds them. It does not know how archives store what it packs.

pub(crate) mod activation;
pub(crate) mod arith;
mod channels;
mod conv;
pub mod convert;
mod embed;
pub mod ints;
mod linear;
pub(crate) mod moves;
mod norm;
pub mod packed;
pub(crate) mod pool;
mod recurrent;
mod rowwise;
mod stage;
mod unpack;

use super::OpDef;

/// All rows, file by file, in the order of registration.
pub static TABLES: &[&[OpDef]] = &[
    convert::OPS,
    linear::OPS,
    conv::OPS,
    unpack::OPS,
    arith::OPS,
    activation::OPS,
    norm::OPS,
    pool::OPS,
    recurrent::OPS,
    embed::OPS,
    rowwise::OPS,
];
