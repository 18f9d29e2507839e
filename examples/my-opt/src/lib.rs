//! Flambeau with dialects, lowerings, a pass, rules and a backend of one's own. `docs/extend.md` walks through the files.

mod abacus;
mod choose_order;
mod row_counts;
mod sparse;

use flambeau::diag::Source;
use flambeau::prelude::*;

/// Everything built in, and what this crate adds.
pub fn toolkit() -> Toolkit {
    Toolkit::new("my-opt")
        .dialect(sparse::Sparse)
        .dialect_text(&Source::new("mask.dialect", include_str!("mask.dialect")))
        .pass(choose_order::PASS)
        .rules("sparse", include_str!("sparse.rules"))
        .pass(Pass::rules("undo-conversions", "Drops conversions to sparse matrices and back", "sparse"))
        .pipeline("mine", "undo-conversions,choose-order,cse,dce,fuse")
        .backend(abacus::Abacus)
}
