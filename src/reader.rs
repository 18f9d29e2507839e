//! What reads programs: analyses of graphs, and the frontends that make graphs of scripts and archives. `flambeau` shows them whole.

pub use flambeau_base::{diag, ir, kinds, resources, tensor, value};
pub use flambeau_ops::{dialects, eval, kernels};

pub mod analysis;
pub mod frontend;
