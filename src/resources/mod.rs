//! What work may take of the machine: memory, time, threads.
//!
//! [`Limits`] say what one run may use, a [`Budget`] counts it; every layer above charges it. This layer knows no
//! tensor, no graph and no value.

pub mod budget;
pub mod host;
pub mod limits;
pub mod machine;
pub mod memory;
pub mod names;
mod once;
pub mod pages;
pub mod pool;
pub mod scope;
mod sync;
pub mod tasks;
mod team;
#[cfg(test)]
mod team_tests;

pub use budget::{Budget, Charge};
pub use limits::Limits;
pub use memory::{Collect, Scratch};
pub use once::Once;
