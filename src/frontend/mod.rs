//! What reads programs from outside: saved archives and TorchScript source.

pub mod archive;
pub mod dialect;
pub mod python_print;
pub mod script;
