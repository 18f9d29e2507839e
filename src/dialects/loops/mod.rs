//! The `loop` dialect: loop nests over buffers with scalar primitives. It is ordinary IR (it parses, prints
//! and verifies as any other), and it is closed: [`decode`] turns a graph of it into a [`Kernel`], a typed
//! enum that every backend matches exhaustively.
//!
//! A kernel is a graph whose inputs are buffers (`loop.buffer<loop.f32>`) and scalars (`loop.f32`, `loop.i64`):
//! ```text
//! graph(%out : loop.buffer<loop.f32>, %a : loop.buffer<loop.f32>, %n : loop.i64):
//!   %zero : loop.i64 = loop::const[value=0]()
//!   %one : loop.i64 = loop::const[value=1]()
//!    = loop::for[mark="parallel_vector"](%zero, %n, %one)
//!     block0(%i : loop.i64):
//!       %x : loop.f32 = loop::load(%a, %i)
//!       %y : loop.f32 = loop::tanh(%x)
//!        = loop::store(%out, %i, %y)
//!       -> ()
//!   return ()
//! ```
//! Indices are `loop.i64` and count elements. Nothing here knows a tensor, an operator of another dialect or
//! a machine.

mod build;
mod decode;
mod elem;
mod kernel;
mod names;

pub use build::Builder;
pub use decode::decode;
pub use elem::Elem;
pub use kernel::{Carried, Const, For, Hw, If, Kernel, Mark, Order, Param, Prim, Reg, Stmt, Ty};
pub use names::{binary_name, compare_name, prim_name, unary_name};

use crate::ir::Symbol;

/// The dialect's namespace.
pub const NAMESPACE: &str = "loop";

/// Whether an op kind belongs to the dialect.
pub fn is_loop_kind(kind: Symbol) -> bool {
    kind.namespace() == NAMESPACE
}
