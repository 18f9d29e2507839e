//! What reads programs from outside: saved archives and TorchScript source.

pub mod archive;
pub mod python_print;
pub mod script;
