//! The pass manager: reads pipelines as text, runs them over modules, and reports events to observers.
//! It knows no pass by name; a [`PassSet`] says which there are.

mod graphs;
mod observe;
mod pipeline;
pub mod print_ir;
mod reach;
mod run;
mod set;
pub mod statistics;
mod text;
pub mod timing;

pub use observe::{At, Observer, Report};
pub use pipeline::{Nest, Pipeline, Step};
pub use run::{Limits, Runner, Settings, StopAt};
pub use set::PassSet;
