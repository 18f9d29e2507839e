//! Arithmetic and comparisons of numbers that the interpreter does in its registers, without a call of the op's kernel:
//! loops over numbers spend their time here. What is not plain (overflow, division by zero) is left to the op's row, which
//! also says what each of these means; a test compares the two. Knows values, no graph.

use crate::value::Value;

/// An op on one or two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    AddInt,
    SubInt,
    MulInt,
    FloorDivInt,
    RemainderInt,
    NegInt,
    EqInt,
    NeInt,
    LtInt,
    LeInt,
    GtInt,
    GeInt,
    AddFloat,
    SubFloat,
    MulFloat,
    LtFloat,
    LeFloat,
    GtFloat,
    GeFloat,
    Not,
}

/// The schemas of the ops that are done here.
const TABLE: &[(&str, Arithmetic)] = &[
    ("aten::add.int(int a, int b) -> int", Arithmetic::AddInt),
    ("aten::sub.int(int a, int b) -> int", Arithmetic::SubInt),
    ("aten::mul.int(int a, int b) -> int", Arithmetic::MulInt),
    ("aten::floordiv.int(int a, int b) -> int", Arithmetic::FloorDivInt),
    ("aten::remainder.int(int a, int b) -> int", Arithmetic::RemainderInt),
    ("aten::neg.int(int a) -> int", Arithmetic::NegInt),
    ("aten::eq.int(int a, int b) -> bool", Arithmetic::EqInt),
    ("aten::ne.int(int a, int b) -> bool", Arithmetic::NeInt),
    ("aten::lt.int(int a, int b) -> bool", Arithmetic::LtInt),
    ("aten::le.int(int a, int b) -> bool", Arithmetic::LeInt),
    ("aten::gt.int(int a, int b) -> bool", Arithmetic::GtInt),
    ("aten::ge.int(int a, int b) -> bool", Arithmetic::GeInt),
    ("aten::add.float(float a, float b) -> float", Arithmetic::AddFloat),
    ("aten::sub.float(float a, float b) -> float", Arithmetic::SubFloat),
    ("aten::mul.float(float a, float b) -> float", Arithmetic::MulFloat),
    ("aten::lt.float(float a, float b) -> bool", Arithmetic::LtFloat),
    ("aten::le.float(float a, float b) -> bool", Arithmetic::LeFloat),
    ("aten::gt.float(float a, float b) -> bool", Arithmetic::GtFloat),
    ("aten::ge.float(float a, float b) -> bool", Arithmetic::GeFloat),
    ("aten::__not__(bool self) -> bool", Arithmetic::Not),
];

impl Arithmetic {
    /// The op of a schema, if it is done here.
    pub(super) fn of(schema: &str) -> Option<Arithmetic> {
        TABLE.iter().find(|(text, _)| *text == schema).map(|(_, op)| *op)
    }

    /// The result; None where the op's row is to be asked. Ops on one number get it twice.
    #[inline(always)]
    pub(super) fn apply(self, a: &Value, b: &Value) -> Option<Value> {
        use Arithmetic::*;
        Some(match (a, b) {
            (Value::Int(a), Value::Int(b)) => match self {
                AddInt => Value::Int(a.checked_add(*b)?),
                SubInt => Value::Int(a.checked_sub(*b)?),
                MulInt => Value::Int(a.checked_mul(*b)?),
                FloorDivInt => {
                    let quotient = a.checked_div(*b)?;
                    let inexact = a.wrapping_rem(*b) != 0;
                    Value::Int(quotient - i64::from(inexact && (*a < 0) != (*b < 0)))
                }
                RemainderInt => {
                    let rest = a.checked_rem(*b)?;
                    // The row adds before it divides again; where that wraps around, it is asked.
                    b.checked_add(rest)?;
                    Value::Int(if rest != 0 && (rest < 0) != (*b < 0) { rest + b } else { rest })
                }
                NegInt => Value::Int(a.checked_neg()?),
                EqInt => Value::Bool(a == b),
                NeInt => Value::Bool(a != b),
                LtInt => Value::Bool(a < b),
                LeInt => Value::Bool(a <= b),
                GtInt => Value::Bool(a > b),
                GeInt => Value::Bool(a >= b),
                _ => return None,
            },
            (Value::Float(a), Value::Float(b)) => match self {
                AddFloat => Value::Float(a + b),
                SubFloat => Value::Float(a - b),
                MulFloat => Value::Float(a * b),
                LtFloat => Value::Bool(a < b),
                LeFloat => Value::Bool(a <= b),
                GtFloat => Value::Bool(a > b),
                GeFloat => Value::Bool(a >= b),
                _ => return None,
            },
            (Value::Bool(a), _) if self == Not => Value::Bool(!a),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::{Node, Registry, Run};
    use crate::eval;

    /// Every op of the table is a row, and gives what the row gives.
    #[test]
    fn agrees_with_the_rows() {
        let registry = Registry::builtin();
        let ints = [0, 1, -1, 2, -2, 3, 7, -7, i64::MAX, i64::MIN].map(Value::Int);
        let floats = [0.0, -0.0, 1.5, -2.25, f64::INFINITY, f64::NAN].map(Value::Float);
        let bools = [true, false].map(Value::Bool);
        for (schema, op) in TABLE {
            let row = registry.iter().find(|row| row.schema_text() == *schema);
            let row = row.unwrap_or_else(|| panic!("no row {schema}"));
            let operands = row.schema().expect("valid").arguments.len();
            let mut tried = 0;
            for a in ints.iter().chain(&floats).chain(&bools) {
                for b in ints.iter().chain(&floats).chain(&bools) {
                    let b = if operands == 1 { a } else { b };
                    let Some(value) = op.apply(a, b) else { continue };
                    let given = [a.clone(), b.clone()];
                    let node = Node { attrs: &[], result_types: &[] };
                    let expected = eval::call(row, &given[..operands], node, &Run::default());
                    let expected = expected.expect("the row takes what is done here");
                    assert_eq!(format!("{value:?}"), format!("{:?}", expected[0]), "{schema} {a:?} {b:?}");
                    tried += 1;
                }
            }
            assert!(tried > 1, "{schema} was never applied");
        }
    }
}
