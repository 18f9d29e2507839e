//! Blocks of a loop over numbers: branches, inner loops, lists, raises; ops on numbers are [`super::ops`]'s.

use super::{FULL, Lowering, Place, list_elem, not_a_number, number_elem, ops, unlike};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Elem, Mark, Order};
use crate::dialects::resolve;
use crate::dialects::scalar::{Binary, Compare};
use crate::ir::{Attr, BlockId, OpId, TypeKind, ValueId};
use crate::tensor::Scalar;

/// Blocks nest no deeper in a kernel.
const MAX_DEPTH: usize = 40;

/// What the interpreter has to say.
const RAISES: &str = "the program raises";
const OUTSIDE: &str = "an index is outside of a list";

impl Lowering<'_> {
    /// The iterations of a `prim::Loop` from one on: `trips` at most, `trip` the first one, `goes_on` whether there is one.
    /// Gives what the loop carries after the last.
    pub(super) fn trips(
        &mut self,
        body: BlockId,
        [trips, trip, goes_on]: [ValueId; 3],
        inits: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        self.deeper(body)?;
        let graph = self.graph;
        let steps = (graph.block_ops(body).count() as u32).saturating_add(2).min(1 << 12);
        let params = graph.params(body);
        if self.always_goes_on(body) {
            let is_true = self.b.constant_bool(goes_on) == Some(true);
            let end = if is_true { trips } else { self.b.select(goes_on, trips, trip) };
            let one = self.b.index(1);
            let (iv, values) = self.b.begin_loop([trip, end, one], Mark::Serial, Order::Sequential, inits);
            self.b.takes_steps(steps);
            self.bind(params, iv, &values);
            let next = self.block(body)?;
            return Ok(self.b.end_loop(&next[1..]));
        }
        let below = self.b.compare(Compare::Lt, trip, trips);
        let enters = self.b.binary(Binary::And, below, goes_on);
        let carried: Vec<ValueId> = [trip].into_iter().chain(inits.iter().copied()).collect();
        let values = self.b.begin_while(enters, &carried, steps);
        self.bind(params, values[0], &values[1..]);
        let mut next = self.block(body)?;
        let (goes_on, one) = (next[0], self.b.index(1));
        next[0] = self.b.binary(Binary::Add, values[0], one);
        let below = self.b.compare(Compare::Lt, next[0], trips);
        let again = self.b.binary(Binary::And, below, goes_on);
        let mut finals = self.b.end_while(again, &next);
        finals.remove(0);
        Ok(finals)
    }

    fn bind(&mut self, params: &[ValueId], iv: ValueId, values: &[ValueId]) {
        for (param, value) in params.iter().zip([iv].iter().chain(values)) {
            self.known.insert(*param, *value);
        }
    }

    fn deeper(&self, body: BlockId) -> Result<()> {
        let mut depth = 0;
        let mut at = Some(body);
        while let Some(block) = at.filter(|_| depth <= MAX_DEPTH) {
            depth += 1;
            at = self.graph.owner(block).filter(|op| *op != self.around).and_then(|op| self.graph.parent(op));
        }
        if depth > MAX_DEPTH { Err(unlike("nests too deep")) } else { Ok(()) }
    }

    /// Whether a body's condition is the constant true.
    fn always_goes_on(&self, body: BlockId) -> bool {
        self.graph.block_results(body).first().is_some_and(|v| self.constant(*v) == Some(Scalar::Bool(true)))
    }

    /// The number that a value of the program is in every run.
    pub(super) fn constant(&self, value: ValueId) -> Option<Scalar> {
        let op = self.graph.def_op(value)?;
        if self.graph.kind(op) != "prim::Constant" {
            return None;
        }
        match (self.graph.attr(op, "value")?, self.graph.ty(value).kind()) {
            (Attr::Int(x), TypeKind::Bool) => Some(Scalar::Bool(*x != 0)),
            (Attr::Bool(x), TypeKind::Bool) => Some(Scalar::Bool(*x)),
            (Attr::Int(x), TypeKind::Int) => Some(Scalar::Int(*x)),
            (Attr::Float(x), TypeKind::Float) => Some(Scalar::Float(*x)),
            _ => None,
        }
    }

    /// What a value is in the kernel; constants are written where they are used.
    pub(super) fn number(&mut self, value: ValueId) -> Result<ValueId> {
        if let Some(number) = self.known.get(&value) {
            return Ok(*number);
        }
        let elem = number_elem(self.graph.ty(value)).ok_or_else(|| not_a_number(self.graph, value))?;
        if let Some(constant) = self.constant(value) {
            return Ok(self.b.constant(constant, elem));
        }
        let undefined =
            self.graph.def_op(value).is_some_and(|op| self.graph.kind(op) == "prim::Uninitialized");
        if undefined {
            // No run reads it.
            return Ok(self.b.constant(Scalar::Int(0), elem));
        }
        if !self.graph.is_visible(value, self.around) {
            return Err(not_a_number(self.graph, value));
        }
        let name = self.graph.display_name(value).to_string();
        let number = self.parameter(super::Takes::Outer(self.outer.len()), elem, &name);
        self.outer.push((value, elem));
        self.known.insert(value, number);
        Ok(number)
    }

    /// Writes a block's ops; gives the numbers that it gives.
    fn block(&mut self, block: BlockId) -> Result<Vec<ValueId>> {
        let graph = self.graph;
        for op in graph.block_ops(block) {
            self.op(op)?;
        }
        graph.block_results(block).iter().map(|v| self.number(*v)).collect()
    }

    fn op(&mut self, op: OpId) -> Result<()> {
        let kind = self.graph.kind(op);
        match kind.as_str() {
            // Written where they are used.
            "prim::Constant" | "prim::Uninitialized" => Ok(()),
            "prim::If" => self.branch(op),
            "prim::Loop" => self.inner_loop(op),
            "prim::RaiseException" => {
                let never = self.b.constant(Scalar::Bool(false), Elem::Bool);
                self.b.require(never, RAISES);
                Ok(())
            }
            // Only a raise takes it, and the kernel knows no messages.
            _ if self.is_text(op) => Ok(()),
            _ if self.graph.operand(op, 0).is_some_and(|v| list_elem(self.graph.ty(v)).is_some()) => {
                self.list_op(op)
            }
            _ => self.arithmetic(op),
        }
    }

    /// Whether an op makes text and does nothing else.
    fn is_text(&self, op: OpId) -> bool {
        let results = self.graph.results(op);
        let text = |v: &ValueId| matches!(self.graph.ty(*v).kind(), TypeKind::Str);
        let makes = matches!(
            self.graph.kind(op).as_str(),
            "aten::format" | "aten::str" | "aten::add" | "aten::percentFormat"
        );
        makes && !results.is_empty() && results.iter().all(text)
    }

    fn arithmetic(&mut self, op: OpId) -> Result<()> {
        let row = resolve(self.registry, self.graph, op)?;
        let operands = self.graph.operands(op).iter().map(|v| self.number(*v)).collect::<Result<Vec<_>>>();
        let refused = || Diagnostic::unsupported(format!("{} is not an op on numbers", row.schema_text()));
        let operands = operands.map_err(|_| refused())?;
        let [result] = self.graph.results(op)[..] else { return Err(refused()) };
        let constants: Vec<_> = self.graph.operands(op).iter().map(|v| self.constant(*v)).collect();
        let number =
            ops::number(&mut self.b, row.schema_text(), &operands, &constants).ok_or_else(refused)?;
        if self.b.elem(number) != number_elem(self.graph.ty(result)) {
            return Err(refused());
        }
        self.known.insert(result, number);
        Ok(())
    }

    fn branch(&mut self, op: OpId) -> Result<()> {
        let &[then, otherwise] = self.graph.nested_blocks(op) else {
            return Err(unlike("has a branch without sides"));
        };
        self.deeper(then)?;
        let condition =
            self.graph.operand(op, 0).ok_or_else(|| unlike("has a branch without a condition"))?;
        let condition = self.number(condition)?;
        self.b.begin_if(condition);
        let given = self.block(then)?;
        self.b.begin_else(&given);
        let given = self.block(otherwise)?;
        let numbers = self.b.end_if(&given);
        for (result, number) in self.graph.results(op).iter().zip(numbers) {
            self.known.insert(*result, number);
        }
        Ok(())
    }

    fn inner_loop(&mut self, op: OpId) -> Result<()> {
        let &[body] = self.graph.nested_blocks(op) else { return Err(unlike("has a loop without a body")) };
        let operands = self.graph.operands(op);
        let &[trips, goes_on, ref inits @ ..] = operands else {
            return Err(unlike("has a loop without bounds"));
        };
        let carries = self.graph.params(body).len() == inits.len() + 1;
        if !carries || self.graph.block_results(body).len() != inits.len() + 1 {
            return Err(unlike("has a loop that does not carry as many values in, around and out"));
        }
        let (trips, goes_on) = (self.number(trips)?, self.number(goes_on)?);
        let inits: Vec<ValueId> = inits.iter().map(|v| self.number(*v)).collect::<Result<_>>()?;
        let trip = self.b.index(0);
        let finals = self.trips(body, [trips, trip, goes_on], &inits)?;
        for (result, number) in self.graph.results(op).iter().zip(finals) {
            self.known.insert(*result, number);
        }
        Ok(())
    }

    // --- lists ---

    fn list_op(&mut self, op: OpId) -> Result<()> {
        let row = resolve(self.registry, self.graph, op)?;
        let operands = self.graph.operands(op);
        let n = self.list(operands[0])?;
        let place = *self.places.get(n).ok_or_else(|| unlike("makes lists"))?;
        let number = match (row.schema_text().split('(').next().unwrap_or_default(), operands) {
            ("aten::len.t", [_]) => Some(self.length(place)),
            ("aten::__getitem__.t" | "aten::select.t", [_, index]) => {
                let at = self.place_of(place, *index)?;
                Some(self.b.load(place.elements, at))
            }
            ("aten::_set_item.t", [_, index, value]) => {
                let (at, value) = (self.place_of(place, *index)?, self.number(*value)?);
                self.b.store(place.elements, at, value);
                None
            }
            ("aten::append.t", [_, value]) => {
                let (length, value) = (self.length(place), self.number(*value)?);
                let room = place.room.ok_or_else(|| unlike("adds to a list of fixed length"))?;
                let fits = self.b.compare(Compare::Lt, length, room);
                self.b.require(fits, FULL);
                self.b.store(place.elements, length, value);
                self.set_length(place, length, 1);
                None
            }
            ("aten::pop.t", [_, index]) if self.constant(*index) == Some(Scalar::Int(-1)) => {
                let (length, none) = (self.length(place), self.b.index(0));
                let some = self.b.compare(Compare::Gt, length, none);
                self.b.require(some, OUTSIDE);
                let last = self.set_length(place, length, -1);
                Some(self.b.load(place.elements, last))
            }
            ("aten::clear.t", [_]) => {
                let none = self.b.index(0);
                self.set_length(place, none, 0);
                None
            }
            _ => {
                return Err(Diagnostic::unsupported(format!("{} in a loop over numbers", row.schema_text())));
            }
        };
        // What gives its list is known by it: see `Lowering::list`.
        if let (Some(number), Some(result)) = (number, self.graph.result(op, 0)) {
            self.known.insert(result, number);
        }
        Ok(())
    }

    fn length(&mut self, place: Place) -> ValueId {
        if place.room.is_none() {
            return place.length;
        }
        let first = self.b.index(0);
        self.b.load(place.length, first)
    }

    /// Sets the number of elements to one that is known plus a difference.
    fn set_length(&mut self, place: Place, length: ValueId, more: i64) -> ValueId {
        let (first, more) = (self.b.index(0), self.b.index(more));
        let length = self.b.binary(Binary::Add, length, more);
        self.b.store(place.length, first, length);
        length
    }

    /// The place that an index means; those below zero count from the end.
    fn place_of(&mut self, place: Place, index: ValueId) -> Result<ValueId> {
        let (length, index, zero) = (self.length(place), self.number(index)?, self.b.index(0));
        let from_end = self.b.binary(Binary::Add, index, length);
        let is_below = self.b.compare(Compare::Lt, index, zero);
        let at = self.b.select(is_below, from_end, index);
        let (low, high) = (self.b.compare(Compare::Ge, at, zero), self.b.compare(Compare::Lt, at, length));
        let inside = self.b.binary(Binary::And, low, high);
        self.b.require(inside, OUTSIDE);
        Ok(at)
    }
}
