//! What changes graphs: rewrite rules, passes and differentiation. They do not know how graphs are run. `flambeau` shows them whole.

pub use flambeau_base::{diag, dispatch_dtype, ir, resources, tensor, value};
pub use flambeau_ops::{dialects, eval, kernels};
pub use flambeau_reader::{analysis, frontend};

pub mod rewrite;
pub mod passes;
pub mod autodiff;
