//! Flambeau runs saved TorchScript models without libtorch, and is a multi-dialect compiler framework.
//!
//! The modules stand in reading order, which is also the order of layers: a module may use those above
//! it and never one below (`tests/tidy` checks it). ARCHITECTURE.md walks through them.

pub mod diag;
pub mod resources;
pub mod tensor;
pub mod ir;
pub mod value;
pub mod kernels;
pub mod dialects;
pub mod eval;
pub mod analysis;
pub mod frontend;
pub mod rewrite;
pub mod passes;
pub mod autodiff;
pub mod lowering;
pub mod backends;
pub mod runtime;
pub mod training;
pub mod tools;
