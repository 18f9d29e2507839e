//! The pass manager: reads pipelines as text, runs them over modules, and reports events to observers.
//! It knows no pass by name; a [`PassSet`] says which there are.

mod graphs;
mod observe;
mod pipeline;
pub mod print_ir;
mod reach;
mod run;
mod set;
mod settings;
pub mod statistics;
mod text;
pub mod timing;

pub use observe::{At, Observer, Report};
pub use pipeline::{Nest, Pipeline, Step};
pub use run::Runner;
pub use set::PassSet;
pub use settings::{Limits, Settings, StopAt};
