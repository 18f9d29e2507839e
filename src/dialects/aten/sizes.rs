//! Arithmetic on sizes, and the forms of joining, cutting and reshaping that PyTorch's own rewriting puts into
//! graphs (`prim::ConstantChunk`, `prim::VarConcat`, `aten::_grad_sum_to_size`).

use super::{join, split};
use crate::diag::{Diagnostic, Result};
use crate::dialects::constraint::Law;
use crate::dialects::structure::Structure;
use crate::dialects::{Args, Effects, OpDef, Outputs, Quantized, composite, host, one, opaque};
use crate::ir::{Attr, Type};
use crate::tensor::{DType, Scalar, Tensor, broadcast_sizes, wrap_dim};
use crate::value::Value;

/// The rows.
pub static OPS: &[OpDef] = &[
    host("aten::_infer_size(int[] a, int[] b) -> int[]", broadcast).doc("the sizes both broadcast to"),
    host("aten::broadcast_shapes(int[] a, int[] b) -> int[]", broadcast).doc("the sizes both broadcast to"),
    host("prim::BroadcastSizes(...) -> int[]", broadcast).doc("the sizes all broadcast to"),
    host("prim::ReductionSizes(int[] size, int[] red_axes, bool keepdim=False) -> int[]", reduced)
        .doc("sizes after a reduction"),
    host("aten::_size_if_not_equal(int[] self_size, int[] other_size) -> int[]?", if_not_equal)
        .doc("the first sizes where they differ, else None"),
    opaque("aten::_list_to_tensor(int[] self) -> Tensor", list_to_tensor).doc("32-bit ints as a tensor"),
    host("aten::_tensor_to_list(Tensor self) -> int[]", tensor_to_list)
        .doc("the elements of a 32-bit int tensor"),
    opaque("prim::ConstantChunk(...) -> ...", chunk)
        .quantized(Quantized::Own)
        .laws(&[Law::Structure(Structure::Parts)])
        .doc("equal parts, `chunks` of them along `dim`"),
    opaque("prim::FusedConcat(...) -> Tensor", concat).doc("tensors joined along `dim`"),
    opaque("aten::_no_grad_fill_(Tensor(a!) tensor, float val) -> Tensor(a!)", |a| fill(a, a.float(1)?))
        .doc("fills without recording gradients"),
    opaque("aten::_no_grad_zero_(Tensor(a!) tensor) -> Tensor(a!)", |a| fill(a, 0.0))
        .doc("fills with zeros without recording gradients"),
    composite(
        "aten::_no_grad_uniform_(Tensor(a!) tensor, float a, float b, Generator? generator=None) -> Tensor(a!)",
        "def uniform(tensor: Tensor, a: float, b: float, generator: Optional[Generator]) -> Tensor:\n    with torch.no_grad():\n        tensor.uniform_(a, b, generator=generator)\n    return tensor\n",
    )
    .effects(Effects::RANDOM)
    .doc("fills with random numbers of one density without recording gradients"),
    composite(
        "aten::_no_grad_normal_(Tensor(a!) tensor, float mean, float std, Generator? generator=None) -> Tensor(a!)",
        "def normal(tensor: Tensor, mean: float, std: float, generator: Optional[Generator]) -> Tensor:\n    with torch.no_grad():\n        tensor.normal_(mean, std, generator=generator)\n    return tensor\n",
    )
    .effects(Effects::RANDOM)
    .doc("fills with random numbers around a mean without recording gradients"),
    composite("prim::abs(Tensor x) -> Tensor", "def abs(x: Tensor) -> Tensor:\n    return torch.abs(x)\n"),
    composite(
        "aten::_grad_sum_to_size(Tensor(a) self, int[]? size) -> Tensor(a)",
        "def sum_to(self: Tensor, size: Optional[List[int]]) -> Tensor:\n    if size is None:\n        return self\n    return self.sum_to_size(size)\n",
    ),
    composite(
        "aten::_ncf_unsqueeze(Tensor(a) self, int ndim) -> Tensor(a)",
        "def ncf_unsqueeze(self: Tensor, ndim: int) -> Tensor:\n    return self.reshape([1, self.size(0)] + [1] * (ndim - 2))\n",
    ),
    composite(
        "aten::_ncf_view(Tensor(a) self, int[] input_shape, int normalized_ndim) -> Tensor(a)",
        "def ncf_view(self: Tensor, input_shape: List[int], normalized_ndim: int) -> Tensor:\n    return self.view(input_shape[:len(input_shape) - normalized_ndim] + [1] * normalized_ndim)\n",
    ),
];

fn broadcast(args: &Args<'_>) -> Result<Outputs> {
    // PyTorch's refusal names the later sizes first.
    let mut sizes = Vec::new();
    for n in 0..args.values.len() {
        sizes = broadcast_sizes(&args.ints(n)?, &sizes)?.to_vec();
    }
    one(Value::ints(sizes))
}

fn reduced(args: &Args<'_>) -> Result<Outputs> {
    let (sizes, keep) = (args.ints(0)?, args.bool(2)?);
    let mut gone = vec![false; sizes.len()];
    for dim in args.ints(1)? {
        if let Some(gone) = gone.get_mut(wrap_dim(dim, sizes.len())?) {
            *gone = true;
        }
    }
    let all = sizes.into_iter().zip(gone);
    one(Value::ints(all.filter(|(_, gone)| keep || !gone).map(|(size, gone)| if gone { 1 } else { size })))
}

fn if_not_equal(args: &Args<'_>) -> Result<Outputs> {
    let (a, b) = (args.ints(0)?, args.ints(1)?);
    one(if a == b { Value::None } else { Value::ints(a) })
}

fn list_to_tensor(args: &Args<'_>) -> Result<Outputs> {
    let items: Vec<i32> = args.ints(0)?.into_iter().map(|x| x as i32).collect();
    one(Tensor::from_vec(&items, &[items.len() as i64])?)
}

fn tensor_to_list(args: &Args<'_>) -> Result<Outputs> {
    let tensor = args.tensor(0)?;
    if tensor.dtype() != DType::I32 {
        return Err(Diagnostic::runtime(format!(
            "expected scalar type Int but found {}",
            tensor.dtype().type_name()
        )));
    }
    one(Value::ints(tensor.elements::<i32>()?.into_iter().map(i64::from)))
}

fn concat(args: &Args<'_>) -> Result<Outputs> {
    let Some(dim) = args.attr("dim").and_then(Attr::as_int) else {
        return Err(Diagnostic::verify("prim::FusedConcat needs the attribute 'dim'"));
    };
    let values = [Value::list(Type::tensor(), args.values.to_vec()), Value::Int(dim)];
    join::cat(&Args { op: args.op, values: &values, node: args.node, run: args.run })
}

fn chunk(args: &Args<'_>) -> Result<Outputs> {
    let attr = |name: &str| args.attr(name).and_then(Attr::as_int);
    let (Some(chunks), Some(dim)) = (attr("chunks"), attr("dim")) else {
        return Err(Diagnostic::verify("prim::ConstantChunk needs the attributes 'chunks' and 'dim'"));
    };
    let values = [args.value(0)?.clone(), Value::Int(chunks), Value::Int(dim)];
    let parts = split::chunk(&Args { op: args.op, values: &values, node: args.node, run: args.run })?;
    if parts.len() as i64 != chunks {
        return Err(Diagnostic::runtime(format!(
            "Expected chunk to return at least {chunks} outputs, but got only {}",
            parts.len()
        )));
    }
    Ok(parts.into_iter().map(Value::Tensor).collect())
}

fn fill(args: &Args<'_>, value: f64) -> Result<Outputs> {
    let tensor = args.tensor(0)?;
    tensor.fill(Scalar::Float(value))?;
    one(tensor.clone())
}
