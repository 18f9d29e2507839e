//! Conversion: ops to kernels of the `loop` dialect and the host code that calls them.
//!
//! A [`Lowering`] says how one op, or a family of them, becomes kernels; built-in ones and those of dialects are found through
//! the table of ops ([`Lowerings`]). [`convert`] applies them where a [`ConversionTarget`] does not call an op legal, and says
//! of each op that is left why each lowering refused it. Nothing here knows how kernels become machine code.

mod driver;
pub mod pass;
mod table;
mod target;

pub use super::by_op::{Lowering, OpCall, Ops, Rewriter, TextLowering};
pub use driver::convert;
pub use table::Lowerings;
pub use target::{ConversionTarget, Legality};
