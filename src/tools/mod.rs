//! The tools that a user starts: each is a library that the command line calls.

pub mod case;
pub mod check;
pub mod cli;
pub mod filecheck;
pub mod lit;
pub mod load;
pub mod numpy;
pub mod raises;
pub mod run;
