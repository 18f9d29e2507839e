//! Tests of the archive reader: hostile files made byte by byte, and real ones recorded from PyTorch.

mod build;
mod conformance;
mod corpus;
mod exported;
mod flat;
mod hostile_pickle;
mod hostile_zip;
mod large;
mod mobile;
mod real;
mod rewrite;
mod save;
