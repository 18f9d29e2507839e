//! The `transformers` dialect: the operators that the package of that name registers for the CPU, which exported mixtures of
//! experts call.

use super::{OpDef, composite};

/// All rows, in the order of registration.
pub static TABLES: &[&[OpDef]] = &[EXPERTS];

/// Rows of `input` are sorted by expert; `offs` says where each expert's rows end. Rows after all of them are 0.
static EXPERTS: &[OpDef] = &[
    composite(
        "transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor",
        include_str!("grouped_mm_fallback.py"),
    )
    .grad(
        "input: torch.ops.transformers.grouped_mm_fallback_backward(input, weight, offs, grad)[0]\n\
         weight: torch.ops.transformers.grouped_mm_fallback_backward(input, weight, offs, grad)[1]",
    ),
    composite(
        "transformers::grouped_mm_fallback_backward(Tensor input, Tensor weight, Tensor offs, Tensor grad_output) -> (Tensor, Tensor)",
        include_str!("grouped_mm_fallback_backward.py"),
    ),
];
