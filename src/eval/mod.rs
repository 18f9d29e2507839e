//! The evaluator: runs an op on values, by its kernel or its recorded meaning. Constant folding, rule checking, tests and the
//! interpreter use it. It knows op rows and values; it does not know graphs that are rewritten or compiled.

mod audit;
mod call;
mod elementwise;
mod fills;
mod lane;
mod quantized;
mod register;
mod tile;

pub use call::{attributes, call};
pub use elementwise::{
    Compiled, OperandKind, check_number, compile_elementwise, elementwise, emit_elementwise, write_back,
};
pub use tile::{Input, fold_scalar, run_in_place, run_program, run_walk};
