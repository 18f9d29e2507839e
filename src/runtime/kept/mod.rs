//! What stands on disk beside graphs: the constants and sources that they refer to, and modules whose graphs were compiled or passed
//! before (docs/cache.md). Plans are kept by the executor, which makes them; files by the cache.

mod constants;
mod modules;
mod place;
#[cfg(test)]
mod tests;

pub(super) use constants::{Constants, asked_machine};
pub use modules::{Keeper, Origin};
pub(super) use modules::{read, write};
pub(super) use place::Place;
