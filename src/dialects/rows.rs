//! Row programs: the meaning of ops that combine the elements of a row (sums, extremes, softmax), recorded as data.
//!
//! A row is what an op reduces: the elements along one dimension. A program over its elements may ask for the sum or
//! the extreme of a value of all of them; the answer is a parameter of the program, and what follows may use it for
//! each element again. The lowering makes one pass over the row of what is asked for before anything depends on it.
//! Like scalar programs these are closed: a reduction is one of three primitives.

use super::scalar::{Binary, Program, Static, Sv};
use crate::tensor::DType;
use std::ops::{Deref, DerefMut};

/// A number made of one value of all elements of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduction {
    /// Add, Min or Max.
    pub op: Binary,
    /// What is combined.
    pub value: Sv,
    /// The parameter that stands for the answer.
    pub result: Sv,
}

/// A scalar program with reductions; it is used as the [`Program`] that it holds.
#[derive(Clone, Debug, Default)]
pub struct RowProgram {
    program: Program,
    reductions: Vec<Reduction>,
    count: Option<Sv>,
}

/// The meaning of an op along rows. Operands are the Tensor and Scalar arguments in schema order, as they are;
/// `dim`, `keepdim` and `dtype` are the caller's, other arguments are the program's statics. None: not for such
/// operands.
pub type RowFn = fn(&mut RowProgram, &[Sv]) -> Option<Sv>;

/// What an op gives of a row.
#[derive(Clone, Copy)]
pub enum RowMeaning {
    /// One number, from reductions alone.
    Number(RowFn),
    /// A row of the same length.
    Row(RowFn),
}

impl RowMeaning {
    /// The function that records it.
    pub fn function(self) -> RowFn {
        match self {
            RowMeaning::Number(f) | RowMeaning::Row(f) => f,
        }
    }
}

impl Deref for RowProgram {
    type Target = Program;
    fn deref(&self) -> &Program {
        &self.program
    }
}

impl DerefMut for RowProgram {
    fn deref_mut(&mut self) -> &mut Program {
        &mut self.program
    }
}

impl RowProgram {
    /// An empty program.
    pub fn new() -> RowProgram {
        RowProgram::default()
    }

    /// The reductions, each after those that its value depends on.
    pub fn reductions(&self) -> &[Reduction] {
        &self.reductions
    }

    /// Combines a value of all elements.
    pub fn combine(&mut self, op: Binary, value: Sv) -> Sv {
        let dtype = self.program.dtype(value);
        let result = self.program.param(dtype);
        self.reductions.push(Reduction { op, value, result });
        result
    }

    /// The sum in the dtype in which sums are made: float64 of floats, int64 of integers and bools.
    pub fn sum(&mut self, x: Sv) -> Sv {
        let wide = if self.program.dtype(x).is_floating() { DType::F64 } else { DType::I64 };
        let x = self.program.convert(x, wide);
        self.combine(Binary::Add, x)
    }

    /// The largest or smallest; NaN if there is one.
    pub fn extreme(&mut self, op: Binary, x: Sv) -> Sv {
        self.combine(op, x)
    }

    /// The number of elements of a row, as float64.
    pub fn count(&mut self) -> Sv {
        match self.count {
            Some(count) => count,
            None => *self.count.insert(self.program.param(DType::F64)),
        }
    }

    /// The parameter that [`RowProgram::count`] gave, if requested.
    pub fn counted(&self) -> Option<Sv> {
        self.count
    }

    /// The mean in float64: the sum, rounded to the dtype of the elements, over the count.
    pub fn mean(&mut self, x: Sv) -> Option<Sv> {
        let dtype = self.program.dtype(x);
        if !dtype.is_floating() {
            return None;
        }
        let (sum, count) = (self.sum(x), self.count());
        let rounded = self.program.convert(sum, dtype);
        let wide = self.program.convert(rounded, DType::F64);
        let mean = self.program.div(wide, count);
        Some(self.program.convert(mean, dtype))
    }

    /// The mean of the squared differences from the mean, the count less `correction`, in float64.
    pub fn variance(&mut self, x: Sv, correction: f64) -> Option<Sv> {
        if !self.program.dtype(x).is_floating() {
            return None;
        }
        let x = self.program.convert(x, DType::F64);
        let (sum, count) = (self.sum(x), self.count());
        let mean = self.program.div(sum, count);
        let difference = self.program.sub(x, mean);
        let square = self.program.mul(difference, difference);
        let squares = self.sum(square);
        let correction = self.program.constant_like(count, correction);
        let (less, zero) = (self.program.sub(count, correction), self.program.constant_like(count, 0.0));
        let divisor = self.program.max(less, zero);
        Some(self.program.div(squares, divisor))
    }

    /// A number that is known when the program is built: an operand or None where it is left out.
    pub fn known(&self, x: Option<&Sv>) -> Option<Option<f64>> {
        match x.filter(|x| x.is_present()) {
            None => Some(None),
            Some(x) => match self.program.insts()[x.index()].0 {
                super::scalar::Inst::Const(c) => Some(Some(c.to_f64())),
                _ => None,
            },
        }
    }

    /// Sets the static arguments of the op whose meaning is recorded next.
    pub fn with_statics(&mut self, statics: Vec<Static>) {
        self.program.set_statics(statics);
    }
}
