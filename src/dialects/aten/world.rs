//! Builtins that talk to the world around a program: futures, warnings, the grad mode.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Effects, Fact, OpDef, Outputs, host, one};
use crate::ir::Symbol;
use crate::tensor::{DType, Device};
use crate::value::{Object, Value};
use smallvec::SmallVec;

/// PyTorch's code of no dtype.
const UNDEFINED_DTYPE: i64 = 47;

/// The rows.
pub static OPS: &[OpDef] = &[
    host("aten::wait(Future(t) self) -> t", wait).effects(Effects::ALL).doc("the value of forked work"),
    host("aten::warn(str message, int stacklevel=2) -> ()", warn)
        .effects(Effects::WRITES_WORLD)
        .doc("records a warning"),
    host("aten::is_grad_enabled() -> bool", |a| one(a.run.grad_enabled()))
        .effects(Effects::READS_WORLD)
        .doc("whether gradients are recorded"),
    host("aten::set_grad_enabled(bool val) -> ()", set_grad_enabled)
        .effects(Effects::WRITES_WORLD)
        .facts(&[Fact::Autograd])
        .doc("turns recording of gradients on or off"),
    host("aten::requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)", requires_grad)
        .facts(&[Fact::Autograd])
        .doc("turns recording of gradients for a tensor on or off"),
    host("aten::is_autocast_enabled() -> bool", |_| one(false)).doc("never: contexts in a program are not part of its state, as in TorchScript"),
    host("aten::is_autocast_cpu_enabled() -> bool", |_| one(false)).doc("never: contexts in a program are not part of its state, as in TorchScript"),
    host("aten::get_autocast_dtype(str device_type) -> ScalarType", |a| {
        let device: Device = a.str(0)?.parse().map_err(|e: String| Diagnostic::raised("RuntimeError", e))?;
        one(device.autocast_dtype().map_or(UNDEFINED_DTYPE, DType::code))
    })
    .doc("the dtype that autocasting would use, as its code"),
    host(
        "profiler::_record_function_enter_new(str name, str? args=None) -> \
         __torch__.torch.classes.profiler._RecordFunction",
        |_| one(Value::Object(Object::new(Symbol::new("__torch__.torch.classes.profiler._RecordFunction")))),
    )
    .effects(Effects::WRITES_WORLD)
    .doc("opens a named range, which is not recorded"),
    host(
        "profiler::_record_function_exit._RecordFunction(__torch__.torch.classes.profiler._RecordFunction record) -> ()",
        |_| Ok(SmallVec::new()),
    )
    .effects(Effects::WRITES_WORLD)
    .doc("closes a range"),
    host(
        "profiler::_call_end_callbacks_on_jit_fut._RecordFunction(__torch__.torch.classes.profiler._RecordFunction x, \
         Future(t) y) -> Future(t)",
        |a| one(a.value(1)?.clone()),
    )
    .doc("closes a range when a future is done, which is not recorded"),
    host("aten::is_scripting() -> bool", |_| one(true)).doc("always"),
    host("aten::has_torch_function(...) -> bool", |_| one(false)).doc("never: no value overrides operators"),
    host("aten::_get_tracing_state() -> bool", |_| one(false)).doc("never: nothing is being traced"),
];

fn warn(args: &Args<'_>) -> Result<Outputs> {
    args.run.warn(args.str(0)?.to_string())?;
    Ok(SmallVec::new())
}

fn set_grad_enabled(args: &Args<'_>) -> Result<Outputs> {
    args.run.set_grad_enabled(args.bool(0)?);
    Ok(SmallVec::new())
}

fn requires_grad(args: &Args<'_>) -> Result<Outputs> {
    let (tensor, wanted) = (args.tensor(0)?, args.bool(1)?);
    if !wanted && tensor.requires_grad() && tensor.grad_node().is_some() {
        return Err(Diagnostic::runtime(
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that \
             doesn't require differentiation use var_no_grad = var.detach().",
        ));
    }
    tensor.set_requires_grad(wanted)?;
    one(args.value(0)?.clone())
}

/// The value of a future or of delayed work.
pub fn wait(args: &Args<'_>) -> Result<Outputs> {
    match args.value(0)? {
        Value::Future(future) => one(future.wait()?),
        other => Err(Diagnostic::runtime(format!("Expected a future but got {}", other.kind_name()))),
    }
}
