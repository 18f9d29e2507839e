//! What passes may know of a graph without changing it. Facts come from op rows and schemas; no analysis has
//! a list of op names of its own.

mod alias;
mod cache;
mod effects;
pub mod shapes;

pub use alias::{AliasDb, Aliasing, Locations, Side};
pub use cache::{Analysis, AnalysisCache};
pub use effects::{FactsTable, NestedFacts, OpFacts, facts, is_pure};
