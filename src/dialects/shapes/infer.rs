//! The one question to the rules: what an op's row, or its family, says of its results. It knows the rules of families and
//! `trial`; rules do not know it.

use super::known::as_tensor;
use super::layouts::is_dense;
use super::{Known, Operands, Results, open, pointwise, reductions, trial};
use crate::dialects::{Fact, Family, LayerPart, OpDef, Variant};
use crate::ir::{Dim, TensorType};
use crate::tensor::DType;
use std::cell::Cell;

/// Whether two operands are the same object, as far as one of them is None: `same` is what is said where they are.
pub fn identity(operands: &Operands<'_>, same: bool) -> Results {
    let is_none = |n: usize| match operands.at(n)? {
        Known::None => Some(true),
        Known::Nothing => None,
        _ => Some(false),
    };
    match (is_none(0)?, is_none(1)?) {
        (true, true) => Some(vec![Known::Bool(same)]),
        (false, false) => None,
        _ => Some(vec![Known::Bool(!same)]),
    }
}

/// Whether something says the types of a row's results: its own rule, or that of its family.
pub fn has_rule(def: &OpDef) -> bool {
    def.infer.is_some() || matches!(def.family, Family::Elementwise | Family::Reduce | Family::View)
}

/// What the op's row says of its results: by its own rule, or by that of its family.
pub fn infer(operands: &Operands<'_>) -> Results {
    let Some(open) = operands.open.filter(|_| operands.values.iter().any(open::has_open)) else {
        return infer_numbers(operands);
    };
    let symbols = Cell::new(operands.symbols.get());
    let rule =
        |values: &[Known]| infer_numbers(&Operands { values, symbols: &symbols, open: None, ..*operands });
    let found = open::by_numbers(open, operands.values, &rule).map(|found| named(operands, found));
    found.or_else(|| infer_numbers(operands))
}

/// Sizes of which nothing is known get symbols: what follows from one of them is found by it. So do symbols that a rule made.
fn named(operands: &Operands<'_>, found: Vec<Known>) -> Vec<Known> {
    let last = operands.symbols.get();
    let name = |dim: &Dim| match dim {
        Dim::Unknown => operands.fresh(),
        Dim::Symbol(n) if *n < last => operands.fresh(),
        other => *other,
    };
    let one = |known: Known| match known {
        Known::Tensor(t) => {
            let sizes = t.sizes.as_ref().map(|sizes| sizes.iter().map(name).collect());
            Known::Tensor(TensorType { sizes, ..t })
        }
        other => other,
    };
    found.into_iter().map(one).collect()
}

/// The same where no operand has open sizes, or nothing is known of them.
fn infer_numbers(operands: &Operands<'_>) -> Results {
    let op = operands.op;
    let schema = op.schema().ok()?;
    // What is written to keeps its dtype; an in-place form keeps its sizes too.
    if op.variant() == Variant::InPlace || (op.def().infer.is_none() && writes_first(schema)) {
        return operands.first().map(|t| vec![Known::Tensor(t.clone())]);
    }
    let is_quantized = |t: &&TensorType| t.dtype.is_some_and(DType::is_quantized);
    let plain = match (op.def().infer, op.def().family) {
        (Some(rule), Family::View) => rule(operands).map(|results| trial::lying(operands, results)),
        (Some(rule), _) => rule(operands),
        // What an elementwise op gives of a quantized tensor is its quantized kernel's to say.
        (None, Family::Elementwise) if operands.tensors_of_call().iter().any(is_quantized) => None,
        (None, Family::Elementwise) => pointwise::elementwise(operands),
        (None, Family::Reduce) => reductions::reduce(operands),
        (None, Family::View) => trial::look(operands),
        // What a program asks of a tensor besides its elements.
        (None, Family::Host) if op.def().facts.contains(&Fact::Metadata) => trial::look(operands),
        _ => None,
    };
    let plain = plain.map(|results| match op.def().family {
        // What joins says how its result lies.
        Family::Gather if matches!(op.def().part, Some(LayerPart::Join)) => results,
        // A copy of what a rule of views reads: it has an order of its own.
        Family::Gather => results.into_iter().map(forget_view).collect(),
        _ => results,
    });
    let names = if op.variant() == Variant::Out { op.def().outs } else { &["out"] };
    let outs: Vec<&TensorType> = names.iter().filter_map(|name| as_tensor(operands.get(name)?)).collect();
    if outs.is_empty() {
        return plain;
    }
    let mut results = plain.filter(|results| results.len() == outs.len())?;
    for (result, out) in results.iter_mut().zip(outs) {
        if let Known::Tensor(t) = result {
            // The sizes are those of the result; the layout is that of the tensor that was given.
            (t.dtype, t.strides, t.requires_grad) = (out.dtype, None, out.requires_grad);
        }
    }
    Some(results)
}

/// Strides stay known only where they are those of a dense tensor.
fn forget_view(known: Known) -> Known {
    match known {
        Known::Tensor(t) => {
            let strides = t.strides.clone().filter(|_| is_dense(&t));
            Known::Tensor(TensorType { strides, ..t })
        }
        other => other,
    }
}

/// Whether the only result is the first argument, written to. Rows that change its look have a rule of their own.
fn writes_first(schema: &crate::ir::Schema) -> bool {
    let written = schema.arguments.first().and_then(|a| a.alias.as_ref()).is_some_and(|a| a.is_write);
    written && schema.returns.len() == 1
}
