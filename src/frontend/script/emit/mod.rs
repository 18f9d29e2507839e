//! The emitter: from syntax trees to graphs.
//!
//! One [`Emitter`] makes one graph. Variables are written and read with `prim::Store` and `prim::Load`; the
//! passes in `ssa.rs` and `exits.rs` turn that into SSA form. What a name means besides a value (a function,
//! a class, `torch`, `range(n)`) is a [`Sugared`] value. The emitter knows ops by schema only.

mod assign;
mod call;
mod class;
mod compiler;
mod cond;
mod custom;
mod derived;
mod env;
mod expr;
mod function;
mod hooks;
mod hosted;
mod index;
mod iterate;
mod literal;
mod members;
mod magic;
mod matching;
mod math;
mod names;
mod python;
mod stmt;
mod sugared;
mod types;

pub(super) use compiler::Compiler;
pub use compiler::Library;

use super::kinds;
use crate::diag::{Diagnostic, Result, Span};
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, ValueId};
use env::Frame;
use hashbrown::HashSet;
use iterate::Loops;
use sugared::Sugared;

/// Makes the graph of one function.
pub(super) struct Emitter<'c> {
    /// Everything outside of the function.
    pub(super) unit: &'c mut Compiler,
    /// The graph in the making.
    pub(super) graph: Graph,
    /// The block that ops are appended to.
    block: BlockId,
    frames: Vec<Frame>,
    /// Name of the function, for messages.
    name: String,
    /// Stated result type.
    declared_return: Option<Type>,
    /// Common type of the results met so far.
    merged_return: Option<Type>,
    /// Blocks that leave before their end.
    exiting: HashSet<BlockId>,
    /// Empty list literals without a stated type: as an argument they take the type that is wanted.
    untyped_lists: HashSet<ValueId>,
    /// How many values the statement takes its value apart into, for ops whose schema is not known.
    unpacking: usize,
    /// The loop around the place being emitted.
    loops: Loops,
    /// Iterations of unrolled loops so far.
    unrolled: usize,
}

impl Emitter<'_> {
    /// Appends an op at the current place.
    fn emit(&mut self, kind: Symbol, operands: &[ValueId], results: &[Type], span: &Span) -> OpId {
        let op = self.graph.emit(self.block, kind, operands, results);
        self.graph.set_location(op, span.clone().into());
        op
    }

    /// Appends an op with one result and gives that.
    fn emit_value(&mut self, kind: Symbol, operands: &[ValueId], result: Type, span: &Span) -> ValueId {
        let op = self.emit(kind, operands, &[result], span);
        self.only_result(op)
    }

    fn only_result(&self, op: OpId) -> ValueId {
        self.graph.result(op, 0).unwrap_or_else(|| unreachable!("the op was made with a result"))
    }

    /// The type of a value.
    fn ty(&self, value: ValueId) -> &Type {
        self.graph.ty(value)
    }

    fn constant(&mut self, ty: Type, attr: Option<Attr>, span: &Span) -> ValueId {
        let op = self.emit(kinds::constant(), &[], &[ty], span);
        if let Some(attr) = attr {
            self.graph.set_attr(op, "value", attr);
        }
        self.only_result(op)
    }

    fn int(&mut self, value: i64, span: &Span) -> ValueId {
        self.constant(Type::int(), Some(Attr::Int(value)), span)
    }

    fn float(&mut self, value: f64, span: &Span) -> ValueId {
        self.constant(Type::float(), Some(Attr::Float(value)), span)
    }

    fn bool(&mut self, value: bool, span: &Span) -> ValueId {
        self.constant(Type::bool(), Some(Attr::Int(i64::from(value))), span)
    }

    fn str(&mut self, value: &str, span: &Span) -> ValueId {
        self.constant(Type::str(), Some(Attr::Str(value.into())), span)
    }

    fn none(&mut self, span: &Span) -> ValueId {
        self.constant(Type::none(), None, span)
    }

    /// The constant that a value is, if it is one.
    fn constant_of(&self, value: ValueId) -> Option<&Attr> {
        let op = self.graph.def_op(value)?;
        if self.graph.kind(op) == kinds::constant() { self.graph.attr(op, "value") } else { None }
    }

    /// Runs `body` with ops appended to another block and variables in a new frame; gives the frame back.
    fn in_block(&mut self, block: BlockId, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<Frame> {
        let outer = std::mem::replace(&mut self.block, block);
        self.frames.push(Frame::new(block));
        let result = body(self);
        self.block = outer;
        let frame = self.frames.pop().unwrap_or_else(|| Frame::new(block));
        result.map(|()| frame)
    }
}

/// An error of the compiler at a place.
fn error<T>(span: &Span, message: impl Into<String>) -> Result<T> {
    Err(Diagnostic::compile(message).at(span))
}
