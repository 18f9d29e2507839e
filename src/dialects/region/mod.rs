//! Ops with blocks of their own, as rows declare them: what each block takes and gives, and the function that runs them. The
//! verifier reads the shapes; the runtime hands the blocks to the function. No op is known here by name.

mod blocks;

pub use super::model::RegionKernel;
pub(super) use blocks::violation;
pub use blocks::{Blocks, Region, Slot};
