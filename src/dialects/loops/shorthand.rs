//! What lowerings write most, in one call: loops over all indices, sums, and accumulation.

use super::{Builder, Elem, Mark, Order};
use crate::dialects::scalar::Binary;
use crate::ir::ValueId;

impl Builder {
    /// A loop over `0..extent` whose index is called `name`; `body` writes an iteration.
    pub fn for_each(
        &mut self,
        extent: ValueId,
        mark: Mark,
        name: &str,
        body: impl FnOnce(&mut Builder, ValueId),
    ) {
        let (zero, one) = (self.index(0), self.index(1));
        let (index, _) = self.begin_loop([zero, extent, one], mark, Order::Sequential, &[]);
        self.name(index, name);
        body(self, index);
        self.end_loop(&[]);
    }

    /// A loop over `0..extent` that hands a number on: `body` gives what the next iteration gets. Gives the last one, or `first`
    /// where there was no iteration.
    pub fn fold(
        &mut self,
        extent: ValueId,
        first: ValueId,
        name: &str,
        body: impl FnOnce(&mut Builder, ValueId, ValueId) -> ValueId,
    ) -> ValueId {
        let (zero, one) = (self.index(0), self.index(1));
        let (index, carried) =
            self.begin_loop([zero, extent, one], Mark::Serial, Order::Sequential, &[first]);
        self.name(index, name);
        let next = body(self, index, carried.first().copied().unwrap_or(first));
        self.end_loop(&[next]).first().copied().unwrap_or(first)
    }

    /// `row * width + column`: the index of an element of rows of a width.
    pub fn at(&mut self, row: ValueId, width: ValueId, column: ValueId) -> ValueId {
        let start = self.binary(Binary::Mul, row, width);
        self.binary(Binary::Add, start, column)
    }

    /// `x + y`
    pub fn sum(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.binary(Binary::Add, x, y)
    }

    /// `x * y`
    pub fn product(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.binary(Binary::Mul, x, y)
    }

    /// Combines an element of a buffer with a value, indivisibly: Add, Min, Max, And, Or, Xor.
    pub fn accumulate(&mut self, op: Binary, buffer: ValueId, index: ValueId, value: ValueId) {
        self.emit_with("accumulate", &[buffer, index, value], "op", super::binary_name(op));
    }

    /// The bits of a number as a type of the same width.
    pub fn bitcast(&mut self, x: ValueId, elem: Elem) -> ValueId {
        self.value("bitcast", &[x], elem)
    }

    /// A truth value.
    pub fn truth(&mut self, value: bool) -> ValueId {
        self.constant(crate::tensor::Scalar::Bool(value), Elem::Bool)
    }

    /// A number of a type: 0, 1 and so on.
    pub fn number(&mut self, value: i64, elem: Elem) -> ValueId {
        let value = match elem.is_float() {
            true => crate::tensor::Scalar::Float(value as f64),
            false => crate::tensor::Scalar::Int(value),
        };
        self.constant(value, elem)
    }
}
