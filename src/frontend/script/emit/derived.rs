//! Overloads that PyTorch writes in TorchScript over other ops and puts in place of the call: numbers on the
//! left of tensors, properties of tensors, `_pair` and its kin. They come after the registered overloads.

use super::Emitter;
use crate::diag::{Result, Span};
use crate::ir::schema::Schema;
use crate::ir::{Symbol, ValueId};
use hashbrown::HashMap;
use std::sync::LazyLock;

/// One overload and what it stands for.
pub(super) struct Derived {
    pub(super) schema: Schema,
    pub(super) expansion: Expansion,
}

/// What stands in place of the call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expansion {
    /// Another op on the same arguments.
    Same(&'static str),
    /// Another op on the two arguments in reverse.
    Reversed(&'static str),
    /// `a - b` as `-b + a`.
    Difference,
    /// `a / b` as `reciprocal(b) * a`.
    Quotient,
    /// The argument itself.
    Identity,
    /// Whether a text holds another.
    Contains,
}

static TABLE: LazyLock<HashMap<Symbol, Vec<Derived>>> = LazyLock::new(|| {
    let mut table: HashMap<Symbol, Vec<Derived>> = HashMap::new();
    let mut add = |text: String, expansion: Expansion| {
        if let Ok(schema) = text.parse::<Schema>() {
            table.entry(schema.name).or_default().push(Derived { schema, expansion });
        }
    };
    for number in ["float", "int", "complex"] {
        let binary = |op: &str| format!("aten::{op}({number} a, Tensor b) -> Tensor");
        for op in ["mul", "add", "ne", "eq"] {
            add(binary(op), Expansion::Reversed(op));
        }
        add(binary("sub"), Expansion::Difference);
        add(binary("div"), Expansion::Quotient);
        if number != "complex" {
            for (op, mirrored) in [("lt", "gt"), ("le", "ge"), ("gt", "lt"), ("ge", "le")] {
                add(binary(op), Expansion::Reversed(mirrored));
            }
        }
    }
    for (name, n) in [("_single", 1), ("_pair", 2), ("_triple", 3), ("_quadruple", 4)] {
        for element in ["float", "int"] {
            add(format!("aten::{name}({element}[{n}] x) -> {element}[]"), Expansion::Identity);
        }
    }
    add("aten::__contains__(str self, str key) -> bool".to_string(), Expansion::Contains);
    for right in ["Scalar", "Tensor"] {
        add(format!("aten::floordiv(Tensor self, {right} other) -> Tensor"), Expansion::Same("floor_divide"));
    }
    for (property, ty, op) in [
        ("prim::ndim", "int", "dim"),
        ("prim::T", "Tensor", "numpy_T"),
        ("prim::H", "Tensor", "matrix_H"),
        ("prim::mT", "Tensor", "mT"),
        ("prim::mH", "Tensor", "mH"),
        ("prim::shape", "int[]", "size"),
    ] {
        add(format!("{property}(Tensor a) -> {ty}"), Expansion::Same(op));
    }
    table
});

/// The overloads of an op.
pub(super) fn of(kind: Symbol) -> &'static [Derived] {
    TABLE.get(&kind).map_or(&[], Vec::as_slice)
}

impl Emitter<'_> {
    /// Emits what an overload stands for.
    pub(super) fn expand(
        &mut self,
        expansion: Expansion,
        operands: &[ValueId],
        span: &Span,
    ) -> Result<ValueId> {
        let op = |name: &str| Symbol::new(&format!("aten::{name}"));
        let reversed: Vec<ValueId> = operands.iter().rev().copied().collect();
        let (name, unary) = match expansion {
            Expansion::Same(name) => return self.builtin(op(name), operands, span),
            Expansion::Reversed(name) => return self.builtin(op(name), &reversed, span),
            Expansion::Identity => {
                return match operands.first() {
                    Some(only) => Ok(*only),
                    None => super::error(span, "an argument is missing"),
                };
            }
            Expansion::Contains => {
                let [text, part] = *operands else { return super::error(span, "two arguments are needed") };
                let (zero, end) = (self.int(0, span), self.builtin(op("len"), &[text], span)?);
                let found = self.builtin(op("find"), &[text, part, zero, end], span)?;
                let absent = self.int(-1, span);
                return self.builtin(op("ne"), &[found, absent], span);
            }
            Expansion::Difference => ("add", "neg"),
            Expansion::Quotient => ("mul", "reciprocal"),
        };
        match *operands {
            [a, b] => {
                let b = self.builtin(op(unary), &[b], span)?;
                self.builtin(op(name), &[b, a], span)
            }
            _ => super::error(span, "two arguments are needed"),
        }
    }
}
