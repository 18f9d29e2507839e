//! The ground that everything stands on: diagnostics, resources, tensors, graphs and values. It knows no op. `flambeau` shows it whole.

pub mod diag;
pub mod resources;
pub mod tensor;
pub mod ir;
pub mod value;
