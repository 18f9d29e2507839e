//! Random arguments for the schema of an op, extremes among them. Knows no engine.

use flambeau::ir::{Symbol, Type, TypeKind};
use flambeau::tensor::{DType, Scalar, Tensor};
use flambeau::value::{Dict, Value};
use std::sync::Arc;

/// Numbers by splitmix64.
pub struct Random {
    state: u64,
    /// What type variables stand for; without it they stand for anything, of which no graph can be made.
    variable: Option<Type>,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random { state: seed, variable: None }
    }

    /// The same numbers, with one type for all type variables.
    pub fn bound(seed: u64) -> Random {
        let types = [Type::int(), Type::float(), Type::tensor(), Type::str(), Type::bool()];
        let of = (seed >> 40) as usize % types.len();
        Random { variable: Some(types[of].clone()), ..Random::new(seed) }
    }

    /// A type without variables.
    pub fn plain(&self, ty: &Type) -> Type {
        let Some(variable) = &self.variable else { return ty.clone() };
        match ty.kind() {
            TypeKind::Var(_) => variable.clone(),
            TypeKind::List(inner) => Type::list(self.plain(inner)),
            TypeKind::Optional(inner) => Type::optional(self.plain(inner)),
            TypeKind::Dict(key, value) => Type::dict(self.plain(key), self.plain(value)),
            TypeKind::Tuple(elements, None) => {
                Type::tuple(elements.iter().map(|t| self.plain(t)).collect::<Vec<_>>())
            }
            _ => ty.clone(),
        }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn int(&mut self) -> i64 {
        const EXTREME: &[i64] = &[
            i64::MAX,
            i64::MIN,
            i64::MIN + 1,
            1 << 62,
            1 << 40,
            1_000_000_000_000,
            1 << 31,
            -(1 << 31),
            65_536,
            100_000,
            -1_000_000,
        ];
        match self.below(4) {
            0 => self.of(EXTREME),
            _ => self.of(&[-2, -1, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 7, 8, 16, 100]),
        }
    }

    fn float(&mut self) -> f64 {
        self.of(&[
            0.0,
            -0.0,
            1.0,
            0.5,
            -1.0,
            2.0,
            1e-300,
            1e18,
            1e300,
            -1e300,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ])
    }

    fn tensor(&mut self) -> Tensor {
        const DTYPES: &[DType] = &[
            DType::F32,
            DType::F32,
            DType::F32,
            DType::F64,
            DType::I64,
            DType::I64,
            DType::Bool,
            DType::F16,
            DType::BF16,
            DType::I32,
            DType::U8,
            DType::C64,
            DType::C128,
            DType::I8,
            DType::I16,
        ];
        const SIZES: &[&[i64]] = &[
            &[],
            &[0],
            &[1],
            &[3],
            &[2, 3],
            &[4, 4],
            &[1, 1, 4],
            &[2, 3, 4],
            &[1, 2, 5, 5],
            &[2, 0, 3],
            &[1, 1, 3, 4, 4],
            &[1, 1, 1, 1, 1, 1, 1],
            &[3, 3],
            &[5, 2],
        ];
        let (dtype, sizes) = (self.of(DTYPES), self.of(SIZES));
        let count: i64 = sizes.iter().product();
        let numbers: Vec<f64> = (0..count)
            .map(|_| if self.below(8) == 0 { self.float() } else { self.below(5) as f64 - 1.0 })
            .collect();
        let plain = Tensor::from_vec(&numbers, sizes).and_then(|t| t.to_dtype(dtype));
        let plain = plain.unwrap_or_else(|_| panic!("a small tensor of {dtype:?}"));
        let looked = match self.below(8) {
            // Far more elements than memory.
            0 => plain.broadcast_to(&[&[1 << 40][..], sizes].concat()),
            1 => plain.broadcast_to(&[&[5][..], sizes].concat()),
            2 => plain.look(|layout| {
                let mut turned = layout.clone();
                turned.sizes.reverse();
                turned.strides.reverse();
                Ok(turned)
            }),
            _ => Ok(plain.clone()),
        };
        looked.unwrap_or(plain)
    }

    pub fn value(&mut self, ty: &Type, depth: usize) -> Value {
        match ty.kind() {
            TypeKind::Var(_) if self.variable.is_some() => {
                let bound = self.plain(ty);
                self.value(&bound, depth)
            }
            TypeKind::Tensor(_) => Value::Tensor(self.tensor()),
            TypeKind::Int | TypeKind::SymInt => Value::Int(self.int()),
            TypeKind::Float | TypeKind::SymFloat => Value::Float(self.float()),
            TypeKind::Bool | TypeKind::SymBool => Value::Bool(self.below(2) == 0),
            TypeKind::Number => match self.below(3) {
                0 => Value::Int(self.int()),
                1 => Value::Float(self.float()),
                _ => Value::from(Scalar::Int(self.below(4) as i64)),
            },
            TypeKind::Complex => Value::Complex(num_complex::Complex64::new(self.float(), self.float())),
            TypeKind::ScalarType => Value::Int(self.of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, -1, 99])),
            TypeKind::Layout | TypeKind::MemoryFormat => Value::Int(self.of(&[0, 0, 1, 2, 3])),
            TypeKind::Str => Value::str(self.of(&[
                "",
                "mean",
                "sum",
                "none",
                "max",
                "reflect",
                "constant",
                "same",
                "valid",
                "nearest",
                "bilinear",
                "ij",
                "linear",
                "fro",
                "nuc",
                "a",
                "ortho",
                "forward",
                "backward",
                "ij,jk->ik",
                "reduced",
                "complete",
                "é",
                "%s %d",
                "{}",
            ])),
            TypeKind::None => Value::None,
            TypeKind::Optional(inner) if self.below(2) == 0 || depth > 4 => {
                let _ = inner;
                Value::None
            }
            TypeKind::Optional(inner) => self.value(inner, depth + 1),
            TypeKind::List(inner) => {
                let n = self.of(&[0, 1, 1, 2, 2, 3, 4, 6]);
                let items = (0..n).map(|_| self.value(inner, depth + 1)).collect();
                Value::list(self.plain(inner), items)
            }
            TypeKind::Tuple(elements, _) => {
                Value::tuple(elements.iter().map(|t| self.value(t, depth + 1)).collect())
            }
            TypeKind::Dict(key, value) => self.dict(key, value, depth),
            TypeKind::Device => Value::Device(Arc::new(flambeau::tensor::Device::CPU)),
            TypeKind::Union(members) if !members.is_empty() => {
                let at = self.below(members.len());
                self.value(&members[at], depth + 1)
            }
            TypeKind::Var(_) | TypeKind::Any if depth < 4 => match self.below(5) {
                0 => Value::Int(self.int()),
                1 => Value::Tensor(self.tensor()),
                2 => Value::str("x"),
                3 => Value::tuple(vec![Value::Int(1), Value::Float(2.0)]),
                _ => Value::ints([self.int(), 1]),
            },
            TypeKind::Function(_) => Value::Function(Symbol::new("none")),
            _ => Value::None,
        }
    }

    fn dict(&mut self, key: &Type, value: &Type, depth: usize) -> Value {
        let dict = Dict::new(self.plain(key), self.plain(value));
        for _ in 0..self.below(4) {
            let (k, v) = (self.value(key, depth + 1), self.value(value, depth + 1));
            // What cannot be a key is left out.
            let _ = dict.insert(&k, v);
        }
        Value::Dict(dict)
    }
}
