//! Passes over kernels of the `loop` dialect: what changes the order of their loops and how they run. Each names its loops by
//! the name of their index (`loop=i`) and leaves graphs that are not kernels alone.
//!
//! Order is changed only where [`independence`] proves that iterations do not meet in memory.

mod bounds;
mod canonicalize;
mod chosen;
mod fuse;
mod hoist;
mod independence;
mod interchange;
mod marks;
mod reuse;
mod tile;
mod unroll;

pub use bounds::check_bounds;
pub(super) use bounds::run as check_bounds_pass;
pub(super) use canonicalize::run as canonicalize;
pub(super) use chosen::LOOP_OPTIONS;
pub(super) use fuse::run as fuse;
pub(super) use hoist::run as hoist;
pub(super) use interchange::run as interchange;
pub(super) use marks::{OPTIONS as MARK_OPTIONS, parallelize, vectorize};
pub(super) use reuse::run as reuse_buffers;
pub(super) use tile::{OPTIONS as TILE_OPTIONS, run as tile};
pub(super) use unroll::{OPTIONS as UNROLL_OPTIONS, run as unroll};
