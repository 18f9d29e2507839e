//! What a program asks of its world and says about its values: warnings, the grad mode, devices, futures,
//! optional values, the length of a tensor.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, host, one};
use crate::tensor::Device;
use crate::value::Value;
use std::sync::Arc;

/// The rows.
pub static OPS: &[OpDef] = &[
    host("aten::len.Tensor(Tensor t) -> int", tensor_len).doc("the size of the first dimension"),
    host("aten::_unwrap_optional(t(a)? optional) -> t(a)", unwrap)
        .facts(&[crate::dialects::Fact::Metadata])
        .doc("the same value, which must not be None"),
    host("aten::_is_tracing() -> bool", |_| one(false)).doc("False: nothing is traced"),
    host("aten::device(str a) -> Device", device).doc("a device by name"),
    host("aten::device.type(str type) -> Device", device)
        .doc("the same, by the name that Python gives the argument"),
    host("aten::device.with_index(str type, int index) -> Device", device).doc("a device by kind and number"),
];

fn tensor_len(args: &Args<'_>) -> Result<Outputs> {
    match args.tensor(0)?.sizes().first() {
        Some(size) => one(*size),
        None => Err(Diagnostic::runtime("len() of a 0-d tensor")),
    }
}

fn unwrap(args: &Args<'_>) -> Result<Outputs> {
    match args.value(0)? {
        Value::None => Err(Diagnostic::runtime("Unwrapping null optional")),
        value => one(value.clone()),
    }
}

fn device(args: &Args<'_>) -> Result<Outputs> {
    let mut name = args.str(0)?.to_string();
    if args.values.len() > 1 {
        name = format!("{name}:{}", args.int(1)?);
    }
    let device: Device = name.parse().map_err(Diagnostic::runtime)?;
    one(Value::Device(Arc::new(device)))
}
