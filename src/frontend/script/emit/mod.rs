//! The emitter: from syntax trees to graphs.
//!
//! One [`Emitter`] makes one graph. Variables are written and read with `prim::Store` and `prim::Load`; the
//! passes in `ssa.rs` and `exits.rs` turn that into SSA form. What a name means besides a value (a function,
//! a class, `torch`, `range(n)`) is a [`Sugared`] value. The emitter knows ops by schema only.

mod assign;
mod call;
mod class;
mod compiler;
mod cond;
mod custom;
mod derived;
mod emitter;
mod env;
mod error;
mod expr;
mod frame;
mod function;
mod hooks;
mod hosted;
mod index;
mod iterate;
mod literal;
mod members;
mod magic;
mod matching;
mod math;
mod names;
mod python;
mod stmt;
mod sugared;
mod types;

pub(super) use compiler::Compiler;
pub use compiler::Library;

use emitter::Emitter;
use error::error;
use sugared::Sugared;
