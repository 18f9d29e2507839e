//! The `prim` dialect: constants, control flow, containers, attributes, calls.

pub mod accessors;
pub mod batch;
pub mod constant;
pub mod control;
pub mod instance;
pub mod list;
pub mod object;
pub mod profiling;
pub mod tuple;

use super::OpDef;

/// All rows, file by file, in the order of registration.
pub static TABLES: &[&[OpDef]] = &[
    constant::OPS,
    control::OPS,
    tuple::OPS,
    list::OPS,
    object::OPS,
    accessors::OPS,
    batch::OPS,
    profiling::OPS,
];
