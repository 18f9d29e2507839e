//! The graph of one function in the making: the current place, the variables in reach, and how ops and constants are
//! appended. What statements and expressions become is in the files beside it.

use super::compiler::Compiler;
use super::frame::Frame;
use crate::diag::{Result, Span};
use crate::frontend::script::kinds;
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, ValueId};
use hashbrown::HashSet;

/// Makes the graph of one function.
pub(super) struct Emitter<'c> {
    /// Everything outside of the function.
    pub(super) unit: &'c mut Compiler,
    /// The graph in the making.
    pub(super) graph: Graph,
    /// The block that ops are appended to.
    pub(super) block: BlockId,
    pub(super) frames: Vec<Frame>,
    /// Name of the function, for messages.
    pub(super) name: String,
    /// Stated result type.
    pub(super) declared_return: Option<Type>,
    /// Common type of the results met so far.
    pub(super) merged_return: Option<Type>,
    /// Blocks that leave before their end.
    pub(super) exiting: HashSet<BlockId>,
    /// Empty list literals without a stated type: as an argument they take the type that is wanted.
    pub(super) untyped_lists: HashSet<ValueId>,
    /// How many values the statement takes its value apart into, for ops whose schema is not known.
    pub(super) unpacking: usize,
    /// The loop around the place being emitted.
    pub(super) loops: Loops,
    /// Iterations of unrolled loops so far.
    pub(super) unrolled: usize,
}

/// What loop a place is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Loops {
    /// None.
    #[default]
    Outside,
    /// One that runs.
    Counted,
    /// One that was unrolled, which can be left only by `return`.
    Unrolled,
}

impl<'c> Emitter<'c> {
    /// An emitter at the beginning of an empty graph.
    pub(super) fn new(unit: &'c mut Compiler, name: String) -> Emitter<'c> {
        let graph = Graph::new();
        let block = graph.root();
        Emitter {
            unit,
            graph,
            block,
            frames: vec![Frame::new(block)],
            name,
            declared_return: None,
            merged_return: None,
            exiting: Default::default(),
            untyped_lists: Default::default(),
            unrolled: 0,
            unpacking: 0,
            loops: Default::default(),
        }
    }

    /// Appends an op at the current place.
    pub(super) fn emit(&mut self, kind: Symbol, operands: &[ValueId], results: &[Type], span: &Span) -> OpId {
        let op = self.graph.emit(self.block, kind, operands, results);
        self.graph.set_location(op, span.clone().into());
        op
    }

    /// Appends an op with one result and gives that.
    pub(super) fn emit_value(
        &mut self,
        kind: Symbol,
        operands: &[ValueId],
        result: Type,
        span: &Span,
    ) -> ValueId {
        let op = self.emit(kind, operands, &[result], span);
        self.only_result(op)
    }

    pub(super) fn only_result(&self, op: OpId) -> ValueId {
        self.graph.result(op, 0).unwrap_or_else(|| unreachable!("the op was made with a result"))
    }

    /// The type of a value.
    pub(super) fn ty(&self, value: ValueId) -> &Type {
        self.graph.ty(value)
    }

    pub(super) fn constant(&mut self, ty: Type, attr: Option<Attr>, span: &Span) -> ValueId {
        let op = self.emit(kinds::constant(), &[], &[ty], span);
        if let Some(attr) = attr {
            self.graph.set_attr(op, "value", attr);
        }
        self.only_result(op)
    }

    pub(super) fn int(&mut self, value: i64, span: &Span) -> ValueId {
        self.constant(Type::int(), Some(Attr::Int(value)), span)
    }

    pub(super) fn float(&mut self, value: f64, span: &Span) -> ValueId {
        self.constant(Type::float(), Some(Attr::Float(value)), span)
    }

    pub(super) fn bool(&mut self, value: bool, span: &Span) -> ValueId {
        self.constant(Type::bool(), Some(Attr::Int(i64::from(value))), span)
    }

    pub(super) fn str(&mut self, value: &str, span: &Span) -> ValueId {
        self.constant(Type::str(), Some(Attr::Str(value.into())), span)
    }

    pub(super) fn none(&mut self, span: &Span) -> ValueId {
        self.constant(Type::none(), None, span)
    }

    /// The constant that a value is, if it is one.
    pub(super) fn constant_of(&self, value: ValueId) -> Option<&Attr> {
        let op = self.graph.def_op(value)?;
        if self.graph.kind(op) == kinds::constant() { self.graph.attr(op, "value") } else { None }
    }

    /// Runs `body` with ops appended to another block and variables in a new frame; gives the frame back.
    pub(super) fn in_block(
        &mut self,
        block: BlockId,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Frame> {
        let outer = std::mem::replace(&mut self.block, block);
        self.frames.push(Frame::new(block));
        let result = body(self);
        self.block = outer;
        let frame = self.frames.pop().unwrap_or_else(|| Frame::new(block));
        result.map(|()| frame)
    }
}
