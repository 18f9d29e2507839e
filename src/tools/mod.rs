//! The tools that a user starts: each is a library that the command line calls.

pub mod bench;
mod bench_rewrite;
pub mod case;
pub mod check;
pub mod check_aliases;
pub mod check_passes;
pub mod cli;
pub mod demo;
pub mod docs;
pub mod language;
pub mod dot;
pub mod filecheck;
pub mod inspect;
pub mod io;
mod judge;
pub mod lit;
pub mod load;
pub mod lsp;
pub mod numpy;
pub mod opt;
pub mod raises;
pub mod reduce;
pub mod rules;
pub mod run;
pub mod save;
pub mod translate;
pub mod view;
