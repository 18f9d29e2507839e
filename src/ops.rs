//! What ops are and compute: kernels, dialects and the evaluator. They know nothing of how graphs are run or changed. `flambeau`
//! shows them whole.

pub use flambeau_base::{diag, dispatch_dtype, ir, resources, tensor, value};

pub mod kernels;
pub mod dialects;
pub mod eval;
