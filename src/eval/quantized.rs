//! Calls with quantized and nested tensors: what the row says of them. It knows no op.

use crate::diag::{Diagnostic, Result};
use crate::dialects::quantized::convert;
use crate::dialects::quantized::ints::Params;
use crate::dialects::{Args, Compute, Fact, Family, Node, Op, Outputs, Quantized, Run, Variant, one};
use crate::ir::Type;
use crate::tensor::{DType, Quantizer, Tensor};
use crate::value::Value;
use std::sync::Arc;

/// Runs the op if an argument is quantized and the row treats such calls in a way of its own; None where the usual way
/// serves. An op without a meaning for quantized tensors is PyTorch's error. `compute` runs the op on tensors that are not quantized.
pub(super) fn call(
    op: &Op,
    values: &[Value],
    node: Node<'_>,
    run: &Run,
    compute: Compute<'_>,
) -> Result<Option<Outputs>> {
    let def = op.def();
    // Containers are not searched: looking through a list at each call that appends to it would take quadratic time.
    if def.family == Family::Container || !values.iter().any(is_special) {
        return Ok(None);
    }
    if values.iter().any(is_nested) {
        let takes =
            matches!(def.family, Family::Control | Family::Composite) || def.facts.contains(&Fact::Nested);
        return if takes { Ok(None) } else { Err(refusal(op, "NestedTensorCPU")) };
    }
    if takes_any(op) {
        return Ok(None);
    }
    match def.quantized {
        Quantized::Own => Ok(None),
        Quantized::Integers => on_integers(op, values, compute).map(Some),
        Quantized::IntegersAndNumber(at) => {
            on_integers(op, &with_integer(op, values, at)?, compute).map(Some)
        }
        Quantized::Reals => compute(&reals(values)?).map(Some),
        Quantized::RealsBack => rounded_back(op, values, compute).map(Some),
        Quantized::Kernel(kernel) => with_kernel(op, kernel, values, node, run).map(Some),
        Quantized::ByFamily => Err(refusal(op, QUANTIZED)),
    }
}

/// Does the op take quantized tensors as it takes all others?
fn takes_any(op: &Op) -> bool {
    let def = op.def();
    let by_family = || {
        let family = matches!(
            def.family,
            Family::View | Family::Host | Family::Container | Family::Control | Family::Composite
        );
        // What is registered at run time decides by itself.
        family || def.facts.contains(&Fact::Metadata) || op.function().is_some()
    };
    match def.quantized {
        Quantized::Own => true,
        Quantized::ByFamily => by_family(),
        Quantized::Integers
        | Quantized::IntegersAndNumber(_)
        | Quantized::Reals
        | Quantized::RealsBack
        | Quantized::Kernel(_) => false,
    }
}

/// PyTorch's error for an op that a backend of such tensors does not have.
fn refusal(op: &Op, backend: &str) -> Diagnostic {
    let name = match op.variant() {
        Variant::Plain => op.def().out.map(|overload| format!("{}.{overload}", op.name())),
        _ => None,
    };
    let name = name.unwrap_or_else(|| {
        let text = op.schema_text();
        text[..text.find('(').unwrap_or(text.len())].to_string()
    });
    let text = format!("Could not run '{name}' with arguments from the '{backend}' backend.");
    let hint = match backend {
        QUANTIZED => "dequantize the tensor before, or use the operator of the `quantized` namespace",
        _ => "make it a padded tensor before (`to_padded_tensor`)",
    };
    Diagnostic::raised("NotImplementedError", text).hint(hint)
}

/// PyTorch's name for the kernels of quantized tensors.
const QUANTIZED: &str = "QuantizedCPU";

/// Is there a tensor whose elements are not what they seem?
fn is_special(value: &Value) -> bool {
    match value {
        Value::Tensor(t) => !t.is_plain(),
        Value::List(list) if list.element_type().is_tensor() => list.items().iter().any(is_special),
        _ => false,
    }
}

fn is_nested(value: &Value) -> bool {
    match value {
        Value::Tensor(t) => t.lengths().is_some(),
        Value::List(list) if list.element_type().is_tensor() => list.items().iter().any(is_nested),
        _ => false,
    }
}

fn is_quantized(value: &Value) -> bool {
    match value {
        Value::Tensor(t) => t.is_quantized(),
        Value::List(list) if list.element_type().is_tensor() => list.items().iter().any(is_quantized),
        _ => false,
    }
}

/// Runs the kernel in the form that the op is of.
fn with_kernel(
    op: &Op,
    kernel: crate::dialects::Kernel,
    values: &[Value],
    node: Node<'_>,
    run: &Run,
) -> Result<Outputs> {
    let split = match op.variant() {
        Variant::Plain => return kernel(&Args { op, values, node, run }),
        Variant::InPlace => values.first().map(|target| (target, values)),
        Variant::Out => values.split_last(),
    };
    let Some((target, values)) = split else {
        return Err(Diagnostic::internal(format!("{} was called without arguments", op.name())));
    };
    let results = kernel(&Args { op, values, node, run })?;
    let (Some(Value::Tensor(result)), Value::Tensor(target)) = (results.first(), target) else {
        return Err(Diagnostic::internal(format!("{} does not compute one tensor", op.schema_text())));
    };
    if target.dtype() != result.dtype() {
        return Err(refusal(op, QUANTIZED));
    }
    target.give_sizes(&result.sizes())?;
    target.copy_from(result)?;
    if let Some(quantizer) = result.quantizer() {
        target.set_quantizer(quantizer)?;
    }
    one(target.clone())
}

/// The values with real numbers in place of quantized tensors.
fn reals(values: &[Value]) -> Result<Vec<Value>> {
    let real = |value: &Value| match value {
        Value::Tensor(t) if t.is_quantized() => Ok(convert::dequantize(t)?.into()),
        other => Ok(other.clone()),
    };
    values.iter().map(real).collect()
}

fn rounded_back(op: &Op, values: &[Value], compute: Compute<'_>) -> Result<Outputs> {
    let Some(Value::Tensor(first)) = values.first().filter(|v| is_quantized(v)) else {
        return Err(refusal(op, QUANTIZED));
    };
    let params = Params::of(first)?;
    let results = compute(&reals(values)?)?;
    let back = |result: Value| match &result {
        Value::Tensor(t) if t.dtype() == DType::F32 => {
            Ok(convert::quantize(t, params, first.dtype())?.into())
        }
        _ => Ok(result),
    };
    results.into_iter().map(back).collect()
}

/// What all quantized operands of a call have in common.
struct Common {
    dtype: DType,
    quantizer: Arc<Quantizer>,
    /// Each quantized tensor with its integers.
    pairs: Vec<(Tensor, Tensor)>,
}

fn on_integers(op: &Op, values: &[Value], compute: Compute<'_>) -> Result<Outputs> {
    let mut common = None;
    let replaced: Vec<Value> = values.iter().map(|v| integers(op, v, &mut common)).collect::<Result<_>>()?;
    let Some(common) = common else { return Err(refusal(op, QUANTIZED)) };
    let results = compute(&replaced)?;
    results.into_iter().map(|result| common.wrap(result)).collect()
}

/// The arguments with an integer of the first operand's scale in place of the number, or the real numbers, at one.
fn with_integer(op: &Op, values: &[Value], at: usize) -> Result<Vec<Value>> {
    let (Some(Value::Tensor(first)), Some(number)) = (values.first(), values.get(at)) else {
        return Err(refusal(op, QUANTIZED));
    };
    if !first.is_quantized() {
        return Err(refusal(op, QUANTIZED));
    }
    let params = Params::of(first)?;
    let integer = match number {
        Value::Tensor(t) => {
            let reals = if t.is_quantized() { convert::dequantize(t)? } else { t.to_dtype(DType::F32)? };
            convert::quantize(&reals, params, first.dtype())?.integers().into()
        }
        other => {
            let number = other.to_scalar()?.to_f64() as f32;
            Value::Int(params.rounder(first.dtype()).integer(number))
        }
    };
    let mut values = values.to_vec();
    values[at] = integer;
    Ok(values)
}

/// The value with integers in place of quantized tensors.
fn integers(op: &Op, value: &Value, common: &mut Option<Common>) -> Result<Value> {
    match value {
        Value::Tensor(t) => {
            let Some(quantizer) = t.quantizer() else { return Ok(value.clone()) };
            let known = common.get_or_insert_with(|| Common {
                dtype: t.dtype(),
                quantizer: Arc::clone(&quantizer),
                pairs: Vec::new(),
            });
            if known.dtype != t.dtype() || known.quantizer != quantizer {
                return Err(Diagnostic::runtime(format!(
                    "{}: quantized tensors must have the same dtype, scheme, scale and zero point",
                    op.name()
                )));
            }
            let plain = t.integers();
            known.pairs.push((t.clone(), plain.clone()));
            Ok(plain.into())
        }
        Value::List(list) if is_quantized(value) => {
            let items = list.to_vec();
            let items: Vec<Value> =
                items.iter().map(|item| integers(op, item, common)).collect::<Result<_>>()?;
            Ok(Value::list(Type::tensor(), items))
        }
        other => Ok(other.clone()),
    }
}

impl Common {
    /// A result as a quantized tensor; an operand that the op gives on is the operand itself.
    fn wrap(&self, result: Value) -> Result<Value> {
        match &result {
            Value::Tensor(t) => {
                if let Some((operand, _)) = self.pairs.iter().find(|(_, plain)| plain.same(t)) {
                    return Ok(operand.clone().into());
                }
                if t.dtype() != self.dtype.integer_repr() {
                    return Ok(result);
                }
                Ok(Tensor::quantized(t, self.dtype, Arc::clone(&self.quantizer))?.into())
            }
            Value::List(list) if list.element_type().is_tensor() => {
                let items = list.to_vec().into_iter().map(|item| self.wrap(item)).collect::<Result<_>>()?;
                Ok(Value::list(Type::tensor(), items))
            }
            _ => Ok(result),
        }
    }
}
