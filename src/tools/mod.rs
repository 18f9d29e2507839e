//! The tools that a user starts: each is a library that the command line calls.

pub mod filecheck;
pub mod lit;
