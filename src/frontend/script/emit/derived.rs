//! Overloads that PyTorch writes in TorchScript over other ops and puts in place of the call: numbers on the
//! left of tensors, properties of tensors, `_pair` and similar functions. They come after the registered overloads.

use super::Emitter;
use crate::diag::{Result, Source, Span};
use crate::ir::schema::Schema;
use crate::ir::{Symbol, ValueId};
use hashbrown::HashMap;
use std::sync::LazyLock;

/// One overload and what it stands for.
pub(super) struct Derived {
    pub(super) schema: Schema,
    pub(super) expansion: Expansion,
    /// Where its first op and the whole stand in the text that means it, which errors show. None: at the call.
    pub(super) places: Option<[Span; 2]>,
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

/// One definition in a text of several: its name, how it begins, what it gives, how much of that is the first op.
struct Definition {
    schema: String,
    head: String,
    body: String,
    first: usize,
    expansion: Expansion,
}

type Table = HashMap<Symbol, Vec<Derived>>;

/// Adds definitions that stand in one text, below an empty line as in PyTorch.
fn add_text(table: &mut Table, definitions: Vec<Definition>) {
    let mut text = String::from("\n");
    let mut starts = Vec::with_capacity(definitions.len());
    for definition in &definitions {
        text.push_str(&format!("def {}:\n  return ", definition.head));
        starts.push(text.len());
        text.push_str(&definition.body);
        text.push('\n');
    }
    let source = Source::new("<string>", text);
    for (Definition { schema, body, first, expansion, .. }, start) in definitions.into_iter().zip(starts) {
        let place = |len: usize| Span::new(&source, start, start + len);
        add(table, schema, expansion, Some([place(first), place(body.len())]));
    }
}

fn add(table: &mut Table, text: String, expansion: Expansion, places: Option<[Span; 2]>) {
    if let Ok(schema) = text.parse::<Schema>() {
        table.entry(schema.name).or_default().push(Derived { schema, expansion, places });
    }
}

/// A number on the left of a tensor.
fn mirrored(number: &str, op: &str, body: &str, first: usize, expansion: Expansion) -> Definition {
    Definition {
        schema: format!("aten::{op}({number} a, Tensor b) -> Tensor"),
        head: format!("{op}(a : {number}, b : Tensor) -> Tensor"),
        body: body.to_string(),
        first,
        expansion,
    }
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::new();
    for number in ["float", "int", "complex"] {
        let reversed = |(op, symbol, other): &(&str, &str, &'static str)| {
            let body = format!("b {symbol} a");
            mirrored(number, op, &body, body.len(), Expansion::Reversed(other))
        };
        let plain = [("mul", "*", "mul"), ("add", "+", "add"), ("ne", "!=", "ne"), ("eq", "==", "eq")];
        let mut definitions: Vec<Definition> = plain.iter().map(reversed).collect();
        let (difference, quotient) = ("torch.neg", "torch.reciprocal");
        let body = format!("{difference}(b) + a");
        definitions.push(mirrored(number, "sub", &body, difference.len(), Expansion::Difference));
        let body = format!("{quotient}(b) * a");
        definitions.push(mirrored(number, "div", &body, quotient.len(), Expansion::Quotient));
        add_text(&mut table, definitions);
        if number != "complex" {
            let ordered = [("lt", ">", "gt"), ("le", ">=", "ge"), ("gt", "<", "lt"), ("ge", "<=", "le")];
            add_text(&mut table, ordered.iter().map(reversed).collect());
        }
    }
    for (name, n) in [("_single", 1), ("_pair", 2), ("_triple", 3), ("_quadruple", 4)] {
        for element in ["float", "int"] {
            add(
                &mut table,
                format!("aten::{name}({element}[{n}] x) -> {element}[]"),
                Expansion::Identity,
                None,
            );
        }
    }
    add(&mut table, "aten::__contains__(str self, str key) -> bool".to_string(), Expansion::Contains, None);
    for (right, shown) in [("Scalar", "number"), ("Tensor", "Tensor")] {
        let op = "torch.floor_divide";
        let definition = Definition {
            schema: format!("aten::floordiv(Tensor self, {right} other) -> Tensor"),
            head: format!("floordiv(self : Tensor, other : {shown}) -> Tensor"),
            body: format!("{op}(self, other)"),
            first: op.len(),
            expansion: Expansion::Same("floor_divide"),
        };
        add_text(&mut table, vec![definition]);
    }
    let property = |(name, ty, op): (&str, &str, &'static str)| Definition {
        schema: format!("prim::{name}(Tensor a) -> {ty}"),
        head: format!("{name}(a : Tensor) -> {ty}"),
        body: format!("a.{op}()"),
        first: op.len() + 2,
        expansion: Expansion::Same(op),
    };
    let methods = [("ndim", "int", "dim"), ("T", "Tensor", "numpy_T"), ("H", "Tensor", "matrix_H")];
    add_text(&mut table, methods.map(property).into());
    for (name, ty, op) in [("mT", "Tensor", "mT"), ("mH", "Tensor", "mH"), ("shape", "int[]", "size")] {
        add(&mut table, format!("prim::{name}(Tensor a) -> {ty}"), Expansion::Same(op), None);
    }
    table
});

/// The overloads of an op.
pub(super) fn of(kind: Symbol) -> &'static [Derived] {
    TABLE.get(&kind).map_or(&[], Vec::as_slice)
}

impl Emitter<'_> {
    /// Emits what an overload stands for.
    pub(super) fn expand(&mut self, derived: &Derived, operands: &[ValueId], call: &Span) -> Result<ValueId> {
        let [first, span] = match &derived.places {
            Some([first, whole]) => [first, whole],
            None => [call, call],
        };
        let op = |name: &str| Symbol::new(&format!("aten::{name}"));
        let reversed: Vec<ValueId> = operands.iter().rev().copied().collect();
        let (name, unary) = match derived.expansion {
            Expansion::Same(name) => return self.builtin(op(name), operands, first),
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
                let b = self.builtin(op(unary), &[b], first)?;
                self.builtin(op(name), &[b, a], span)
            }
            _ => super::error(span, "two arguments are needed"),
        }
    }
}
