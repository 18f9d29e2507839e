//! The `transformers` dialect: the operators that the package of that name registers for the CPU, which exported mixtures of
//! experts call.

use super::{OpDef, composite};

/// All rows, in the order of registration.
pub static TABLES: &[&[OpDef]] = &[EXPERTS];

/// Rows of `input` are sorted by expert; `offs` says where each expert's rows end. Rows after all of them are 0.
static EXPERTS: &[OpDef] = &[
    composite(
        "transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor",
        "def grouped_mm_fallback(input: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    result = torch.zeros([input.size(0), weight.size(2)], dtype=input.dtype)
    ends: List[int] = offs.to(torch.int64).tolist()
    start = 0
    for expert in range(len(ends)):
        end = ends[expert]
        if end != start:
            result[start:end] = torch.mm(input[start:end], weight[expert])
            start = end
    return result
",
    )
    .grad(
        "input: torch.ops.transformers.grouped_mm_fallback_backward(input, weight, offs, grad)[0]\n\
         weight: torch.ops.transformers.grouped_mm_fallback_backward(input, weight, offs, grad)[1]",
    ),
    composite(
        "transformers::grouped_mm_fallback_backward(Tensor input, Tensor weight, Tensor offs, Tensor grad_output) -> (Tensor, Tensor)",
        "def grouped_mm_fallback_backward(input: Tensor, weight: Tensor, offs: Tensor, grad_output: Tensor) -> Tuple[Tensor, Tensor]:
    to_input = torch.zeros_like(input)
    to_weight = torch.zeros_like(weight)
    ends: List[int] = offs.to(torch.int64).tolist()
    start = 0
    for expert in range(len(ends)):
        end = ends[expert]
        if end != start:
            to_input[start:end] = torch.mm(grad_output[start:end], weight[expert].t())
            to_weight[expert] = torch.mm(input[start:end].t(), grad_output[start:end])
            start = end
    return to_input, to_weight
",
    ),
];
