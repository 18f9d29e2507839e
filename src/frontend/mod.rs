//! What reads programs from outside: saved archives and TorchScript source.

pub mod archive;
pub mod script;
