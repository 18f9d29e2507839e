//! Result types from operand types: what the `infer` cells of rows are made of. A rule is written once over sizes that
//! are numbers, symbols or unknown; what it cannot say it leaves open, and it never says what is false. Rules find
//! arguments by the names that schemas give them. No kernel runs here, except in `trial`.

mod infer;
pub mod joins;
mod known;
pub mod layers;
pub mod layouts;
pub mod lists;
pub mod open;
pub mod open_truth;
mod operands;
#[cfg(test)]
mod open_tests;
pub mod pointwise;
pub mod products;
pub mod reductions;
pub mod trial;
pub mod views;
#[cfg(test)]
mod tests;

pub use super::model::Operands;
pub use infer::{has_rule, identity, infer};
pub use known::{Known, PRESERVE, Results, Strides, Trials, Unknown, join, of_tensor, one, product, wrap};
pub use layouts::dense;
