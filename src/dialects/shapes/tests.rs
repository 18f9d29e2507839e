//! No type rule panics, whatever is known of operands: each row is asked about random ones of its arguments' types.

use super::open::OpenSizes;
use super::{Known, Operands, infer};
use crate::dialects::{Op, Registry};
use crate::ir::{Dim, TensorType, Type, TypeKind};
use crate::tensor::{DType, contiguous_strides};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Calls of each row.
const ROUNDS: usize = 200;

/// A stream of numbers that is the same each time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn int(&mut self) -> i64 {
        self.of(&[-3, -2, -1, -1, 0, 0, 0, 1, 1, 2, 3, 4, 7, 1 << 40, i64::MIN, i64::MAX])
    }

    fn dim(&mut self) -> Dim {
        match self.below(12) {
            0 => Dim::Unknown,
            1 => Dim::Symbol(-1),
            2 => Dim::Symbol(-2),
            3 => Dim::Known(0),
            4 => Dim::Known(1 << 40),
            5 => Dim::Open(self.below(3) as u32),
            n => Dim::Known(n as i64 - 4),
        }
    }

    fn tensor(&mut self) -> Known {
        let dtypes =
            [DType::F32, DType::F64, DType::F16, DType::I64, DType::U8, DType::Bool, DType::C64, DType::QI8];
        let dtype = (self.below(6) > 0).then(|| self.of(&dtypes));
        let rank = self.of(&[0, 0, 1, 1, 2, 2, 3, 4, 5]);
        let sizes: Option<Vec<Dim>> = (self.below(8) > 0).then(|| (0..rank).map(|_| self.dim()).collect());
        let numbers: Option<Vec<i64>> =
            sizes.as_ref().and_then(|sizes| sizes.iter().map(|dim| dim.known()).collect());
        let strides = numbers.filter(|_| self.below(3) > 0).map(|sizes| contiguous_strides(&sizes));
        Known::Tensor(TensorType {
            dtype,
            sizes: sizes.map(Arc::from),
            strides: strides.map(|strides| super::layouts::strides(&strides)),
            ..TensorType::default()
        })
    }

    /// Something known of a value of a type; mostly much.
    fn known(&mut self, ty: &Type, depth: usize) -> Known {
        if self.below(12) == 0 {
            return Known::Nothing;
        }
        match ty.kind() {
            TypeKind::Tensor(_) => self.tensor(),
            TypeKind::Int => Known::Int(if self.below(8) == 0 { self.dim() } else { Dim::Known(self.int()) }),
            TypeKind::Float => Known::Float(self.of(&[0.0, 1.0, -1.5, f64::NAN, f64::INFINITY, 1e300])),
            TypeKind::Bool => Known::Bool(self.below(2) == 0),
            TypeKind::Number => match self.below(3) {
                0 => Known::Float(2.5),
                1 => Known::Number(DType::C64),
                _ => Known::Int(Dim::Known(self.int())),
            },
            TypeKind::Str => Known::Str(self.of(&["", "mean", "sum", "none", "floor", "ij,jk->ik"]).into()),
            TypeKind::Optional(inner) if self.below(2) == 0 || depth > 3 => {
                let _ = inner;
                Known::None
            }
            TypeKind::Optional(inner) => self.known(inner, depth + 1),
            TypeKind::List(inner) if *inner.kind() == TypeKind::Int => {
                let count = self.below(5);
                Known::Ints(
                    (0..count)
                        .map(|_| if self.below(9) == 0 { self.dim() } else { Dim::Known(self.int()) })
                        .collect(),
                )
            }
            TypeKind::List(inner) if depth < 3 => {
                let count = self.below(4);
                Known::items((0..count).map(|_| self.known(inner, depth + 1)).collect())
            }
            _ => Known::Nothing,
        }
    }
}

fn ask(row: &Op, values: &[Known]) {
    let symbols = Cell::new(i64::MIN / 2);
    let open = OpenSizes::new(3, 50);
    let _ = infer(&Operands { open: Some(&open), ..Operands::new(row, values, &symbols) });
}

#[test]
fn no_rule_panics() {
    let registry = Registry::builtin();
    let mut draw = Draw(7);
    let mut failures: Vec<String> = Vec::new();
    for row in registry.iter() {
        let Ok(schema) = row.schema() else { continue };
        for _ in 0..ROUNDS {
            let values: Vec<Known> = schema.arguments.iter().map(|a| draw.known(&a.ty, 0)).collect();
            if catch_unwind(AssertUnwindSafe(|| ask(row, &values))).is_err() {
                failures.push(format!("{}: {values:?}", row.schema_text()));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{} rows: {failures:#?}", failures.len());
}
