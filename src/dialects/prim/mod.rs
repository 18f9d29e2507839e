//! The `prim` dialect: constants, control flow, containers, attributes, calls.

use super::OpDef;

/// All rows, file by file, in the order of registration.
pub static TABLES: &[&[OpDef]] = &[];
