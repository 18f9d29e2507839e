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
pub mod nest;
mod names;
mod namespace;
pub mod reach;
mod rows;
mod shorthand;

pub use build::Builder;
pub use decode::decode;
pub use elem::Elem;
pub use kernel::{
    Carried, Chosen, Const, For, If, Kernel, Local, Mark, Order, Param, Prim, Reg, Stmt, Ty, While,
};
pub use names::{binary_name, compare_name, prim_name, unary_name};
pub use namespace::{NAMESPACE, is_loop_kind};
pub use rows::TABLES;

use crate::diag::Diagnostic;
use crate::ir::{Graph, OpId};

/// Whether a graph is a kernel: it takes buffers and numbers of the dialect, at least one buffer, and has its ops alone.
pub fn is_kernel(graph: &Graph) -> bool {
    let of_dialect = |ty| Elem::of_scalar_type(ty).is_some() || Elem::of_buffer_type(ty).is_some();
    let inputs = graph.inputs();
    inputs.iter().any(|input| Elem::of_buffer_type(graph.ty(*input)).is_some())
        && inputs.iter().all(|input| of_dialect(graph.ty(*input)))
        && graph.block_ops(graph.root()).all(|op| is_loop_kind(graph.kind(op)))
}

/// The laws of a kernel, asked of the first of its ops; the others are checked with it. The error says which op breaks them.
pub fn verify(graph: &Graph, op: OpId) -> Result<(), (OpId, Diagnostic)> {
    let first = graph.first_op(graph.root()).filter(|first| is_loop_kind(graph.kind(*first)));
    let first = first.or_else(|| graph.all_ops().into_iter().find(|op| is_loop_kind(graph.kind(*op))));
    if first != Some(op) {
        return Ok(());
    }
    if !is_kernel(graph) {
        let message = "ops of the loop dialect occur only in kernels: graphs from buffers and numbers of the dialect, with no other ops";
        return Err((op, Diagnostic::verify(format!("{}: {message}", graph.kind(op)))));
    }
    decode::decode_at(graph).map(|_| ()).map_err(|(at, error)| (at.unwrap_or(op), error))
}
