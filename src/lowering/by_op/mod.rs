//! Lowerings of single ops: what one is ([`Lowering`]), the call that it is given, how it writes kernels and host code, and those that
//! dialect files spell out. Which lowerings there are and where they are applied is not known here.

mod call;
mod lowering;
mod ops;
mod rewriter;
mod text;

pub use call::OpCall;
pub(super) use call::is_row_major;
pub use lowering::Lowering;
pub use ops::Ops;
pub(super) use rewriter::Launched;
pub use rewriter::Rewriter;
pub use text::TextLowering;
