//! How far an answer is from another one: for each output the largest absolute and relative difference, its place, and the
//! tolerance; and the first op of a graph whose value differs. Must not know where the answers come from.

mod ops;
mod rows;

pub use ops::{FirstOp, Found, has_ops, ops};
pub use rows::{Row, rows, table};
