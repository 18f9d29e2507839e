//! Properties of tensors and devices, and moving data between tensors and numbers.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Effects, Fact, OpDef, Outputs, host, one, opaque, view};
use crate::ir::Type;
use crate::resources::{budget, memory};
use crate::tensor::{DType, Device, Scalar, Tensor};
use crate::value::Value;
use smallvec::SmallVec;

/// Code of `torch.strided`.
const STRIDED: i64 = 0;

/// `tolist` makes no deeper lists.
const MAX_LIST_DEPTH: i64 = 64;

/// The rows.
pub static OPS: &[OpDef] = &[
    host("prim::dtype(Tensor a) -> int", |a| one(a.tensor(0)?.dtype().code()))
        .facts(&[Fact::Metadata, Fact::Nested])
        .doc("the dtype, as its code"),
    host("prim::dtype_name(ScalarType dtype) -> str", |a| one(Value::str(a.dtype(0)?.type_name())))
        .doc("the name of a dtype that errors give it: `Float`, `Long`"),
    host("prim::device(Tensor a) -> Device", |a| one(device_value(a.tensor(0)?.device())))
        .facts(&[Fact::Metadata, Fact::Nested])
        .doc("where the tensor lives"),
    host("prim::layout(Tensor a) -> Layout", |a| a.tensor(0).and_then(|_| one(STRIDED)))
        .doc("the layout, as its code: all tensors are strided"),
    host("prim::requires_grad(Tensor a) -> bool", |a| one(a.tensor(0)?.requires_grad()))
        .facts(&[Fact::Nested])
        .effects(Effects::READS_WORLD)
        .doc("whether gradients are recorded"),
    host("prim::grad(Tensor a) -> Tensor(*)", |a| one(a.tensor(0)?.grad()))
        .effects(Effects::READS_WORLD)
        .doc("the accumulated gradient, or None"),
    view("prim::data(Tensor(a) a) -> Tensor(a)", |a| one(a.tensor(0)?.detach()))
        .facts(&[Fact::Detached])
        .doc("the same data, not recorded"),
    host("prim::itemsize(Tensor a) -> int", |a| one(a.tensor(0)?.dtype().size() as i64))
        .doc("bytes of an element"),
    host("prim::nbytes(Tensor a) -> int", nbytes).doc("bytes of all elements"),
    host("prim::name(Tensor a) -> str?", |a| a.tensor(0).and_then(|_| one(Value::None)))
        .doc("a name, which no tensor has here"),
    host("prim::is_cpu(Tensor a) -> bool", |a| on(a, "cpu")).doc("whether it lives on the host"),
    host("prim::is_cuda(Tensor a) -> bool", |a| on(a, "cuda"))
        .facts(&[Fact::Metadata, Fact::Nested])
        .doc("whether it lives on a CUDA device"),
    host("prim::is_meta(Tensor a) -> bool", |a| on(a, "meta")).doc("whether it has no memory"),
    host("prim::is_xpu(Tensor a) -> bool", |a| on(a, "xpu")),
    host("prim::is_ipu(Tensor a) -> bool", |a| on(a, "ipu")),
    host("prim::is_maia(Tensor a) -> bool", |a| on(a, "maia")),
    host("prim::is_mps(Tensor a) -> bool", |a| on(a, "mps")),
    host("prim::is_mtia(Tensor a) -> bool", |a| on(a, "mtia")),
    host("prim::is_vulkan(Tensor a) -> bool", |a| on(a, "vulkan")),
    host("prim::is_xla(Tensor a) -> bool", |a| on(a, "xla")),
    host("prim::is_mkldnn(Tensor a) -> bool", never).doc("no tensor has this layout here"),
    host("prim::is_quantized(Tensor a) -> bool", |a| one(a.tensor(0)?.is_quantized()))
        .facts(&[Fact::Metadata, Fact::Nested])
        .doc("whether its elements are integers that represent real numbers"),
    host("prim::is_nested(Tensor a) -> bool", |a| one(a.tensor(0)?.lengths().is_some()))
        .facts(&[Fact::Metadata, Fact::Nested])
        .doc("whether its entries have lengths of their own"),
    host("prim::is_sparse(Tensor a) -> bool", never).doc("no tensor is sparse here"),
    host("prim::is_sparse_csr(Tensor a) -> bool", never).doc("no tensor is sparse here"),
    host("prim::type(Device self) -> str", |a| one(Value::str(device(a)?.kind_name())))
        .doc("the device's type"),
    host("prim::index(Device self) -> int?", |a| one(device(a)?.index().map(i64::from)))
        .doc("the device's index, where it has one"),
    opaque("prim::NumToTensor.Scalar(Scalar a) -> Tensor", num_to_tensor)
        .facts(&[Fact::WrapsNumber])
        .doc("a number as a tensor of rank 0"),
    opaque("prim::NumToTensor.bool(bool a) -> Tensor", num_to_tensor)
        .facts(&[Fact::WrapsNumber])
        .doc("a bool as a tensor of rank 0"),
    host("prim::tolist(...) -> ...", to_list)
        .effects(Effects::MAY_RAISE)
        .doc("elements as nested lists of numbers, `dim` deep"),
    host("prim::Print(...) -> ()", print)
        .effects(Effects::WRITES_WORLD)
        .doc("prints values, separated by blanks"),
];

fn nbytes(args: &Args<'_>) -> Result<Outputs> {
    let t = args.tensor(0)?;
    one((t.numel() * t.dtype().size()) as i64)
}

fn device_value(device: Device) -> Value {
    Value::Device(std::sync::Arc::new(device))
}

fn on(args: &Args<'_>, kind: &str) -> Result<Outputs> {
    one(args.tensor(0)?.device().kind_name() == kind)
}

fn never(args: &Args<'_>) -> Result<Outputs> {
    args.tensor(0)?;
    one(false)
}

fn device(args: &Args<'_>) -> Result<Device> {
    args.opt_device(0)?.ok_or_else(|| Diagnostic::runtime("Expected a device but got None"))
}

fn num_to_tensor(args: &Args<'_>) -> Result<Outputs> {
    let number = match args.value(0)? {
        Value::Bool(b) => Scalar::Bool(*b),
        _ => args.scalar(0)?,
    };
    one(Tensor::from_scalar(number, number.dtype())?)
}

/// `tolist` with its annotation: `dim` lists deep over elements of kind 0 int, 1 float, 2 bool, 3 complex.
fn to_list(args: &Args<'_>) -> Result<Outputs> {
    let (tensor, depth, kind) = (args.tensor(0)?, args.int(1)?, args.int(2)?);
    let (element, expected) = match kind {
        0 => (Type::int(), DType::I64),
        1 => (Type::float(), DType::F64),
        2 => (Type::bool(), DType::Bool),
        3 => (Type::complex(), DType::C128),
        other => return Err(Diagnostic::unsupported(format!("prim::tolist with element kind {other}"))),
    };
    let found = tensor.dtype();
    if depth != tensor.rank() as i64 || depth > MAX_LIST_DEPTH {
        return Err(Diagnostic::runtime(
            "Output annotation list dimension and runtime tensor dimension must match for tolist()",
        ));
    }
    let fits = found == expected
        || (expected == DType::F64 && found.is_floating())
        || (expected == DType::C128 && found == DType::C64);
    if !fits {
        return Err(Diagnostic::runtime(format!(
            "Output annotation element type and runtime tensor element type must match for tolist(): {} vs {}",
            if kind == 1 { DType::F32 } else { expected }.type_name(),
            found.type_name()
        )));
    }
    let elements = tensor.scalars()?;
    one(nest(&elements, &tensor.sizes(), &element)?)
}

/// Lists within lists. Sizes beside a size of 0 have no elements, but lists all the same.
fn nest(elements: &[Scalar], sizes: &[i64], element: &Type) -> Result<Value> {
    let Some((first, rest)) = sizes.split_first() else {
        return Ok(elements.first().map_or(Value::None, |x| Value::from(*x)));
    };
    let step = rest.iter().product::<i64>() as usize;
    let part = |n: usize| nest(elements.get(n * step..(n + 1) * step).unwrap_or(&[]), rest, element);
    let inner = rest.iter().fold(element.clone(), |ty, _| Type::list(ty));
    let mut items = memory::vec_reserved(*first as usize)?;
    for n in 0..*first as usize {
        budget::check()?;
        items.push(part(n)?);
    }
    Ok(Value::list(inner, items))
}

fn print(args: &Args<'_>) -> Result<Outputs> {
    let mut line = String::new();
    for (n, value) in args.values.iter().enumerate() {
        line.push_str(if n > 0 { " " } else { "" });
        value.write_text(&mut line)?;
    }
    line.push('\n');
    args.run.print(&line)?;
    Ok(SmallVec::new())
}
