//! Elementwise comparisons of tensors.

use crate::diag::{Diagnostic, Result};
use crate::dialects::scalar::{Program, Sv};
use crate::dialects::{Alias, Contract, Fact, Given, OpDef, Promote, composite, elementwise};
use crate::tensor::DType;
use crate::value::Value;

/// The rows.
pub static OPS: &[OpDef] = &[
    elementwise("aten::eq.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Bool).rare("u8").quantized(crate::dialects::Quantized::Reals)
        .scalar(|p, x| p.eq(x[0], x[1]))
        .facts(&[Fact::Commutative, Fact::Negates("aten::ne"), Fact::Under(Contract::NanRelaxed, &Fact::Reflexive(Given::Truth(true)))])
        .inplace()
        .out("Tensor_out"),
    elementwise("aten::eq.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Bool).rare("u8").quantized(crate::dialects::Quantized::Reals)
        .scalar(|p, x| p.eq(x[0], x[1]))
        .facts(&[Fact::Negates("aten::ne")])
        .inplace()
        .out("Scalar_out"),
    elementwise("aten::ne.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Bool).rare("u8").quantized(crate::dialects::Quantized::Reals)
        .scalar(|p, x| p.ne(x[0], x[1]))
        .facts(&[Fact::Commutative, Fact::Negates("aten::eq"), Fact::Under(Contract::NanRelaxed, &Fact::Reflexive(Given::Truth(false)))])
        .inplace()
        .out("Tensor_out").aliases(&[Alias::new("not_equal")]),
    elementwise("aten::ne.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Bool).rare("u8").quantized(crate::dialects::Quantized::Reals)
        .scalar(|p, x| p.ne(x[0], x[1]))
        .facts(&[Fact::Negates("aten::eq")])
        .inplace()
        .out("Scalar_out").aliases(&[Alias::new("not_equal")]),
    elementwise("aten::lt.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Bool).quantized(crate::dialects::Quantized::Reals)
        .scalar(|p, x| p.lt(x[0], x[1]))
        .accepts("bif", "lt_cpu")
        .facts(&[Fact::Under(Contract::NanRelaxed, &Fact::Negates("aten::ge")), Fact::Reflexive(Given::Truth(false))])
        .inplace()
        .out("Tensor_out").aliases(&[Alias::new("less")]),
    elementwise("aten::lt.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Bool).quantized(crate::dialects::Quantized::Reals)
        .scalar(|p, x| p.lt(x[0], x[1]))
        .accepts("bif", "lt_cpu")
        .facts(&[Fact::Under(Contract::NanRelaxed, &Fact::Negates("aten::ge"))])
        .inplace()
        .out("Scalar_out").aliases(&[Alias::new("less")]),
    elementwise("aten::le.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Bool).quantized(crate::dialects::Quantized::Reals)
        .scalar(|p, x| p.le(x[0], x[1]))
        .accepts("bif", "le_cpu")
        .facts(&[Fact::Under(Contract::NanRelaxed, &Fact::Negates("aten::gt")), Fact::Under(Contract::NanRelaxed, &Fact::Reflexive(Given::Truth(true)))])
        .inplace()
        .out("Tensor_out").aliases(&[Alias::new("less_equal")]),
    elementwise("aten::le.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Bool).quantized(crate::dialects::Quantized::Reals)
        .scalar(|p, x| p.le(x[0], x[1]))
        .accepts("bif", "le_cpu")
        .facts(&[Fact::Under(Contract::NanRelaxed, &Fact::Negates("aten::gt"))])
        .inplace()
        .out("Scalar_out").aliases(&[Alias::new("less_equal")]),
    elementwise("aten::gt.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Bool).quantized(crate::dialects::Quantized::Reals)
        .scalar(|p, x| p.gt(x[0], x[1]))
        .accepts("bif", "gt_cpu")
        .facts(&[Fact::Under(Contract::NanRelaxed, &Fact::Negates("aten::le")), Fact::Reflexive(Given::Truth(false))])
        .inplace()
        .out("Tensor_out").aliases(&[Alias::new("greater")]),
    elementwise("aten::gt.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Bool).quantized(crate::dialects::Quantized::Reals)
        .scalar(|p, x| p.gt(x[0], x[1]))
        .accepts("bif", "gt_cpu")
        .facts(&[Fact::Under(Contract::NanRelaxed, &Fact::Negates("aten::le"))])
        .inplace()
        .out("Scalar_out").aliases(&[Alias::new("greater")]),
    elementwise("aten::ge.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Bool).quantized(crate::dialects::Quantized::Reals)
        .scalar(|p, x| p.ge(x[0], x[1]))
        .accepts("bif", "ge_cpu")
        .facts(&[Fact::Under(Contract::NanRelaxed, &Fact::Negates("aten::lt")), Fact::Under(Contract::NanRelaxed, &Fact::Reflexive(Given::Truth(true)))])
        .inplace()
        .out("Tensor_out").aliases(&[Alias::new("greater_equal")]),
    elementwise("aten::ge.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Bool).quantized(crate::dialects::Quantized::Reals)
        .scalar(|p, x| p.ge(x[0], x[1]))
        .accepts("bif", "ge_cpu")
        .facts(&[Fact::Under(Contract::NanRelaxed, &Fact::Negates("aten::lt"))])
        .inplace()
        .out("Scalar_out").aliases(&[Alias::new("greater_equal")]),
    elementwise(
        "aten::isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
        Promote::Bool,
    )
        .scalar(isclose)
        .check(check_isclose),
    composite(
        "aten::allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> bool",
        "def allclose(self: Tensor, other: Tensor, rtol: float=1e-05, atol: float=1e-08, equal_nan: bool=False) -> bool:\n    \
         return bool(torch.isclose(self, other, rtol, atol, equal_nan).all().item())\n",
    ),
];

/// |x - y| <= atol + |rtol * y|, or equal; integers are compared as float32.
fn isclose(p: &mut Program, x: &[Sv]) -> Sv {
    let (rtol, atol, equal_nan) =
        (p.float_arg(0).unwrap_or(0.0), p.float_arg(1).unwrap_or(0.0), p.bool_arg(2));
    let mut close = p.eq(x[0], x[1]);
    let dtype = p.dtype(x[0]);
    let exact = !(dtype.is_floating() || dtype.is_complex());
    if equal_nan && !exact {
        let (a, b) = (p.ne(x[0], x[0]), p.ne(x[1], x[1]));
        let both = p.and(a, b);
        close = p.or(close, both);
    }
    if rtol == 0.0 && atol == 0.0 {
        return close;
    }
    let float = if exact { DType::F32 } else { dtype };
    let (x, y) = (p.convert(x[0], float), p.convert(x[1], float));
    let difference = p.sub(x, y);
    let actual = p.abs(difference);
    let (rtol, infinity) = (p.constant_like(y, rtol), p.constant_like(actual, f64::INFINITY));
    let relative = p.mul(rtol, y);
    let relative = p.abs(relative);
    let atol = p.constant_like(actual, atol);
    let allowed = p.add(atol, relative);
    let (within, finite) = (p.le(actual, allowed), p.lt(actual, infinity));
    let near = p.and(within, finite);
    p.or(close, near)
}

fn check_isclose(values: &[Value]) -> Result<()> {
    let [x, y, rtol, atol, ..] = values else { return Ok(()) };
    let (x, y) = (x.to_tensor()?.dtype(), y.to_tensor()?.dtype());
    if x != y {
        return Err(Diagnostic::runtime(format!("{} did not match {}", x.type_name(), y.type_name())));
    }
    for (name, value) in [("rtol", rtol.to_float()?), ("atol", atol.to_float()?)] {
        if value < 0.0 {
            return Err(Diagnostic::runtime(format!(
                "{name} must be greater than or equal to zero, but got {value}"
            )));
        }
    }
    Ok(())
}
