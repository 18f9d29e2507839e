//! Code as data: steps over registers, what they do, and the code that they lead to. Does not know how code is made, nor how it
//! runs.

use super::registers::{Operand, Register};
use crate::backends::{FusedGroup, KernelFunction, LibraryOp};
use crate::diag::{Diagnostic, Result, Span};
use crate::dialects::{GraphId, Node, Op};
use crate::ir::{Attr, Graph, LocationId, Symbol, Type};
use crate::runtime::arithmetic::Arithmetic;
use crate::runtime::checks::Check;
use crate::runtime::loops::CompiledLoop;
use crate::runtime::spec::ArgumentSpec;
use crate::value::Value;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// One step.
pub(in crate::runtime) struct Step {
    pub(in crate::runtime) action: Action,
    pub(in crate::runtime) operands: Box<[Operand]>,
    pub(in crate::runtime) results: Box<[Register]>,
    pub(in crate::runtime) location: LocationId,
    /// The op that it was made for, by its index in the graph.
    pub(in crate::runtime) op: u32,
    /// Whether the op stands in a block of another op.
    pub(in crate::runtime) nested: bool,
    /// Whether the op, or the op of the outermost block that contains it, has results.
    pub(in crate::runtime) anchored: bool,
}

/// What a step does with its operands.
pub(in crate::runtime) enum Action {
    /// Calls an op by its row.
    Op(Box<Bound>),
    /// The same where a library of the device may have the op: what that refuses goes to the row.
    Library(Box<Bound>, Arc<dyn LibraryOp>),
    /// Does arithmetic on numbers in registers; what is not plain there goes to the row.
    Number(Arithmetic, Box<Bound>),
    /// Fails: there is no such op.
    Missing(Box<Diagnostic>),
    /// Copies operands to results, all at once.
    Move,
    /// Copies operands to results one after the other: no result is the register of a later operand.
    MoveEach,
    /// Goes to another step.
    Jump(usize),
    /// Goes to another step if the operand is false.
    JumpUnless(usize),
    /// Calls an op that says whether its operands are as its attributes say; its last result is the answer.
    Check(Box<Bound>, Arc<Check>),
    /// Goes to another step if the operand has a type.
    JumpIfOf(Type, usize, Arc<Check>),
    /// Leaves the function: it goes on as other code does with the operands.
    GoOn(Box<Continuation>),
    /// Begins an iteration of a loop: operands are the greatest number of iterations and the condition, the result is the
    /// iteration's number, `counter` counts. Leaves the loop by going to `exit`. A kernel may do all iterations that are left.
    Iteration { counter: Register, exit: usize, compiled: Option<Box<CompiledLoop>> },
    /// Runs other code on the operands.
    Call(Arc<Code>),
    /// Runs an op with blocks by its row; after the op's own operands stand those that the blocks use of what surrounds them.
    Regions { bound: Box<Bound>, blocks: Box<[RegionCode]> },
    /// Runs a fusion group as one kernel; what the kernel cannot take is run op by op, by the code.
    Fused { graph: Arc<Graph>, group: Arc<FusedGroup>, code: Arc<Code>, derivatives: Arc<Derivatives> },
    /// Runs a kernel of the `loop` dialect on all parameters; results are the tensors that it stores to.
    Kernel(Box<KernelFunction>),
    /// Calls the function that the first operand names.
    CallFunction,
    /// Calls a method of the object that is the first operand.
    CallMethod(Symbol),
    /// Calls `__enter__` of the operand and remembers to leave it should anything raise.
    Enter,
    /// Calls `__exit__` of the operand.
    Exit,
    /// Gives a future of the code's result; `eager` lets a pool thread begin it.
    Fork { code: Arc<Code>, element: Type, eager: bool },
    /// Whether the operand's run-time type is one of these.
    IsInstance(Box<[Type]>),
    /// Ends the function; the operands are its results.
    Return,
}

/// An op with what its node adds.
pub(in crate::runtime) struct Bound {
    pub(in crate::runtime) op: Op,
    pub(in crate::runtime) attrs: Vec<(Symbol, Attr)>,
    pub(in crate::runtime) result_types: Vec<Type>,
}

impl Bound {
    /// Attributes and result types as kernels see them.
    pub(in crate::runtime) fn node(&self) -> Node<'_> {
        Node { attrs: &self.attrs, result_types: &self.result_types }
    }
}

/// The code of one function or graph.
pub(in crate::runtime) struct Code {
    /// Name that tracebacks show: the last component of the qualified name. Empty for the work of a fusion group, which they do not show.
    pub(in crate::runtime) name: String,
    /// The graph that it was made from; None for one that was made on the way.
    pub(in crate::runtime) graph: Option<GraphId>,
    pub(in crate::runtime) steps: Vec<Step>,
    pub(in crate::runtime) constants: Vec<Value>,
    pub(in crate::runtime) registers: usize,
    /// Registers of the parameters.
    pub(in crate::runtime) parameters: Vec<Register>,
    /// Where steps come from, by location.
    pub(in crate::runtime) sites: HashMap<LocationId, Site>,
    /// Its guards and those of code inside it, by their numbers.
    pub(in crate::runtime) guards: Vec<Arc<Check>>,
}

/// A place with the calls it was inlined through, innermost first.
#[derive(Clone, Debug, Default)]
pub(in crate::runtime) struct Site {
    pub(in crate::runtime) span: Option<Span>,
    /// Function that the place lies in and place of the call, for each inlined call.
    pub(in crate::runtime) inlined: Vec<(Symbol, Option<Span>)>,
}

impl Code {
    /// Where a step comes from.
    pub(in crate::runtime) fn site(&self, step: usize) -> Option<&Site> {
        self.sites.get(&self.steps.get(step)?.location)
    }
}

/// A block that a row runs.
pub(in crate::runtime) struct RegionCode {
    pub(in crate::runtime) code: Arc<Code>,
    /// How many values around it it uses.
    pub(in crate::runtime) captured: usize,
}

/// What is left of a function where a guard misses.
pub(in crate::runtime) struct Continuation {
    /// The graph that it is made of.
    pub(super) template: Arc<Graph>,
    /// The place in it.
    pub(super) index: i64,
    /// Made at the first miss.
    pub(super) code: OnceLock<Arc<Code>>,
}

/// The backward code of one group, for each kind of call.
pub(in crate::runtime) struct Derivatives {
    pub(in crate::runtime) graph: Arc<Graph>,
    /// The op that makes the first output, which errors name.
    pub(in crate::runtime) name: String,
    /// Whether something may write to the group's inputs or results later in its function.
    pub(in crate::runtime) written: bool,
    pub(in crate::runtime) kept: Mutex<Vec<(BackwardKind, BuiltBackward)>>,
}

/// A backward, or the reason why there is none.
pub(in crate::runtime) type BuiltBackward = Result<Arc<CompiledBackward>, Arc<str>>;

/// What a backward is made for.
#[derive(Clone, PartialEq)]
pub(in crate::runtime) struct BackwardKind {
    pub(in crate::runtime) spec: ArgumentSpec,
    /// Operands that want a gradient.
    pub(in crate::runtime) inputs: Vec<bool>,
    /// Outputs that have one.
    pub(in crate::runtime) outputs: Vec<bool>,
}

/// A backward that was made.
pub(in crate::runtime) struct CompiledBackward {
    /// What the code was made of, which is known by where it lies.
    pub(in crate::runtime) _graph: Arc<Graph>,
    pub(in crate::runtime) code: Arc<Code>,
    pub(in crate::runtime) reads: Vec<bool>,
    pub(in crate::runtime) follows: Vec<bool>,
    pub(in crate::runtime) keeps: bool,
    /// The outputs whose gradients it takes.
    pub(in crate::runtime) outputs: Vec<bool>,
}

impl Derivatives {
    /// Of a group that has no backward yet.
    pub(in crate::runtime) fn new(graph: Arc<Graph>, written: bool) -> Derivatives {
        let first = graph.outputs().first().and_then(|output| graph.def_op(*output));
        let name = first.map_or(String::new(), |op| graph.kind(op).as_str().to_string());
        Derivatives { graph, name, written, kept: Mutex::default() }
    }
}
