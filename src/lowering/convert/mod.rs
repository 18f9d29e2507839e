//! Conversion: ops to kernels of the `loop` dialect and the host code that calls them.
//!
//! A [`Lowering`] says how one op, or a family of them, becomes kernels; built-in ones and those of dialects are found through
//! the table of ops ([`Lowerings`]). [`convert`] applies them where a [`ConversionTarget`] does not call an op legal, and says
//! of each op that is left why each lowering refused it. Nothing here knows how kernels become machine code.

mod call;
mod driver;
mod lowering;
mod ops;
pub mod pass;
mod rewriter;
mod table;
mod target;
mod text;

pub use call::OpCall;
pub(in crate::lowering) use call::is_row_major;
pub use driver::convert;
pub use lowering::Lowering;
pub use ops::Ops;
pub use rewriter::Rewriter;
pub use table::Lowerings;
pub use target::{ConversionTarget, Legality};
pub use text::TextLowering;
