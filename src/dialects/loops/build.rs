//! Writes graphs of the dialect: what lowerings use.

use super::{Elem, Mark, Order, binary_name, compare_name, unary_name};
use crate::dialects::scalar::{Binary, Compare, Unary};
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, ValueId};
use crate::tensor::Scalar;

/// Appends ops to the innermost open block of a graph.
pub struct Builder {
    graph: Graph,
    blocks: Vec<BlockId>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// An empty kernel.
    pub fn new() -> Builder {
        let graph = Graph::new();
        Builder { blocks: vec![graph.root()], graph }
    }

    /// The finished graph.
    pub fn finish(self) -> Graph {
        self.graph
    }

    /// Adds a buffer parameter.
    pub fn buffer(&mut self, elem: Elem, name: &str) -> ValueId {
        let value = self.graph.add_input(elem.buffer());
        self.graph.set_name(value, name);
        value
    }

    /// Adds a scalar parameter.
    pub fn scalar(&mut self, elem: Elem, name: &str) -> ValueId {
        let value = self.graph.add_input(elem.ty());
        self.graph.set_name(value, name);
        value
    }

    /// Names a value, for people and for passes that choose loops by the name of their index.
    pub fn name(&mut self, value: ValueId, name: &str) {
        self.graph.set_unique_name(value, name);
    }

    /// The element type of a scalar or buffer value.
    pub fn elem(&self, value: ValueId) -> Option<Elem> {
        let ty = self.graph.ty(value);
        Elem::of_scalar_type(ty).or_else(|| Elem::of_buffer_type(ty))
    }

    /// The number that a bool is in every run, if it is a constant.
    pub fn constant_bool(&self, value: ValueId) -> Option<bool> {
        super::nest::constant_bool(&self.graph, value)
    }

    fn emit(&mut self, name: &str, operands: &[ValueId], results: &[Type]) -> OpId {
        let block = self.blocks.last().copied().unwrap_or(self.graph.root());
        self.graph.emit(block, Symbol::new(&format!("loop::{name}")), operands, results)
    }

    /// The same of an op without results that has an attribute.
    pub(super) fn emit_with(&mut self, name: &str, operands: &[ValueId], attribute: &str, text: &str) {
        let op = self.emit(name, operands, &[]);
        self.graph.set_attr(op, attribute, Attr::Str(text.into()));
    }

    /// Emits an op that has exactly one result.
    pub(super) fn value(&mut self, name: &str, operands: &[ValueId], elem: Elem) -> ValueId {
        let op = self.emit(name, operands, &[]);
        self.graph.add_result(op, elem.ty())
    }

    fn elem_or(&self, value: ValueId) -> Elem {
        self.elem(value).unwrap_or(Elem::I64)
    }

    /// A number.
    pub fn constant(&mut self, value: Scalar, elem: Elem) -> ValueId {
        let result = self.value("const", &[], elem);
        let attr = match value {
            Scalar::Bool(x) => Attr::Bool(x),
            Scalar::Int(x) => Attr::Int(x),
            other => Attr::Float(other.to_f64()),
        };
        if let Some(op) = self.graph.def_op(result) {
            self.graph.set_attr(op, "value", attr);
        }
        result
    }

    /// An index.
    pub fn index(&mut self, value: i64) -> ValueId {
        self.constant(Scalar::Int(value), Elem::I64)
    }

    /// One operand.
    pub fn unary(&mut self, op: Unary, x: ValueId) -> ValueId {
        self.value(unary_name(op), &[x], self.elem_or(x))
    }

    /// Two operands of one type.
    pub fn binary(&mut self, op: Binary, x: ValueId, y: ValueId) -> ValueId {
        self.value(binary_name(op), &[x, y], self.elem_or(x))
    }

    /// A comparison.
    pub fn compare(&mut self, op: Compare, x: ValueId, y: ValueId) -> ValueId {
        self.value(compare_name(op), &[x, y], Elem::Bool)
    }

    /// `x * y + z`, rounded once.
    pub fn fma(&mut self, x: ValueId, y: ValueId, z: ValueId) -> ValueId {
        self.value("fma", &[x, y, z], self.elem_or(x))
    }

    /// `condition ? x : y`
    pub fn select(&mut self, condition: ValueId, x: ValueId, y: ValueId) -> ValueId {
        self.value("select", &[condition, x, y], self.elem_or(x))
    }

    /// Converts, unless it is of the type already.
    pub fn convert(&mut self, x: ValueId, elem: Elem) -> ValueId {
        if self.elem(x) == Some(elem) { x } else { self.value("convert", &[x], elem) }
    }

    /// Reads an element.
    pub fn load(&mut self, buffer: ValueId, index: ValueId) -> ValueId {
        self.value("load", &[buffer, index], self.elem_or(buffer))
    }

    /// Writes an element.
    pub fn store(&mut self, buffer: ValueId, index: ValueId, value: ValueId) {
        self.emit("store", &[buffer, index, value], &[]);
    }

    /// Opens a loop over `begin..end`; returns its index and the values that it carries. Close it with
    /// [`Builder::end_loop`].
    pub fn begin_loop(
        &mut self,
        [begin, end, step]: [ValueId; 3],
        mark: Mark,
        order: Order,
        carried: &[ValueId],
    ) -> (ValueId, Vec<ValueId>) {
        let mut operands = vec![begin, end, step];
        operands.extend_from_slice(carried);
        let types: Vec<Type> = carried.iter().map(|v| self.graph.ty(*v).clone()).collect();
        let op = self.emit("for", &operands, &types);
        self.graph.set_attr(op, "mark", Attr::Str(mark.name().into()));
        if let Order::Lanes(n) = order {
            self.graph.set_attr(op, "lanes", Attr::Int(i64::from(n)));
        }
        let block = self.graph.add_block(op);
        let iv = self.graph.add_param(block, Elem::I64.ty());
        let params = types.into_iter().map(|ty| self.graph.add_param(block, ty)).collect();
        self.blocks.push(block);
        (iv, params)
    }

    /// Closes the innermost loop; returns the carried values after it.
    pub fn end_loop(&mut self, next: &[ValueId]) -> Vec<ValueId> {
        if self.blocks.len() < 2 {
            return Vec::new();
        }
        let Some(block) = self.blocks.pop() else { return Vec::new() };
        self.graph.set_block_results(block, next);
        match self.graph.owner(block) {
            Some(op) => self.graph.results(op).to_vec(),
            None => Vec::new(),
        }
    }
}

/// Control flow that is not a loop over indices.
impl Builder {
    /// Opens a loop while a condition holds: the condition of the first iteration and the values that it gets; an iteration
    /// takes `steps` of the run's budget. Gives the values that an iteration sees. Close it with
    /// [`Builder::end_while`].
    pub fn begin_while(&mut self, enters: ValueId, carried: &[ValueId], steps: u32) -> Vec<ValueId> {
        let operands: Vec<ValueId> = [enters].into_iter().chain(carried.iter().copied()).collect();
        let types: Vec<Type> = carried.iter().map(|v| self.graph.ty(*v).clone()).collect();
        let op = self.emit("while", &operands, &types);
        self.graph.set_attr(op, "steps", Attr::Int(i64::from(steps.max(1))));
        let block = self.graph.add_block(op);
        self.blocks.push(block);
        types.into_iter().map(|ty| self.graph.add_param(block, ty)).collect()
    }

    /// Closes the innermost loop: whether there is another iteration, and what it gets. Gives the values after the loop.
    pub fn end_while(&mut self, again: ValueId, next: &[ValueId]) -> Vec<ValueId> {
        let results: Vec<ValueId> = [again].into_iter().chain(next.iter().copied()).collect();
        self.end_loop(&results)
    }

    /// Says what an iteration of the innermost open loop takes of the run's budget.
    pub fn takes_steps(&mut self, steps: u32) {
        if let Some(op) = self.blocks.last().and_then(|block| self.graph.owner(*block)) {
            self.graph.set_attr(op, "steps", Attr::Int(i64::from(steps.max(1))));
        }
    }

    /// Opens the block that runs where a condition holds.
    pub fn begin_if(&mut self, condition: ValueId) {
        let op = self.emit("if", &[condition], &[]);
        let block = self.graph.add_block(op);
        self.blocks.push(block);
    }

    /// Closes that block, which gives these numbers, and opens the one that runs otherwise.
    pub fn begin_else(&mut self, given: &[ValueId]) {
        let Some(block) = self.blocks.pop() else { return };
        self.graph.set_block_results(block, given);
        if let Some(op) = self.graph.owner(block) {
            for value in given {
                let ty = self.graph.ty(*value).clone();
                self.graph.add_result(op, ty);
            }
            let otherwise = self.graph.add_block(op);
            self.blocks.push(otherwise);
        }
    }

    /// Closes the branch; its second block gives these. Gives the branch's results.
    pub fn end_if(&mut self, given: &[ValueId]) -> Vec<ValueId> {
        self.end_loop(given)
    }

    /// Ends the kernel with an error where a condition does not hold.
    pub fn require(&mut self, condition: ValueId, message: &str) {
        let op = self.emit("require", &[condition], &[]);
        self.graph.set_attr(op, "message", Attr::Str(message.into()));
    }
}

impl Mark {
    /// The text of the `mark` attribute.
    pub fn name(self) -> &'static str {
        match self {
            Mark::Serial => "serial",
            Mark::Parallel => "parallel",
            Mark::Vector => "vector",
            Mark::ParallelVector => "parallel_vector",
        }
    }

    /// The mark of a text.
    pub fn from_name(name: &str) -> Option<Mark> {
        use Mark::*;
        [Serial, Parallel, Vector, ParallelVector].into_iter().find(|m| m.name() == name)
    }
}
