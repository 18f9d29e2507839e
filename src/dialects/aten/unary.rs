//! Elementwise functions of one tensor.

use crate::dialects::{Fact, OpDef, Promote, Tolerance, elementwise};

/// The rows.
pub static OPS: &[OpDef] = &[elementwise("aten::tanh(Tensor self) -> Tensor", Promote::Float)
    .scalar(|p, x| p.tanh(x[0]))
    .grad("self: grad * (1 - result * result)")
    .facts(&[Fact::Odd])
    .tolerance(Tolerance::Rounding)
    .inplace()
    .out("out")];
