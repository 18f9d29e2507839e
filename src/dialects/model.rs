//! What an op is and what its kernels are given: the row, the registered op, the arguments of a call, the run that it belongs
//! to, and those who work for a run. These types name each other: a row holds kernels, kernels take arguments, and arguments
//! know the op and the run. Only their definitions stand here; what they do stands in `op_def`, `op`, `args`, `run` and `shapes`.

use super::autograd::{Gradients, Recorded};
use super::cells::{
    Accepts, Check, Fact, Family, HiddenMarks, NumberAs, Order, OutRule, Promote, ScalarFn, Tolerance,
};
use super::constraint::Law;
use super::layer_part::LayerPart;
use super::region::Blocks;
use super::rows::RowMeaning;
use super::shapes::open::OpenSizes;
use super::shapes::{Known, Results, Trials};
use super::shared::{Account, Shared};
use super::watch::Watcher;
use super::{Alias, Effects};
use crate::diag::Result;
use crate::ir::{Attr, Schema, Symbol, Type};
use crate::tensor::Tensor;
use crate::value::Value;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, OnceLock, Weak};

/// An op: one row. Everything about it stands here; fields left empty are what the family says.
#[derive(Clone, Copy)]
pub struct OpDef {
    /// `aten::tanh(Tensor self) -> Tensor`, with overload name and alias marks.
    pub schema: &'static str,
    /// Which family.
    pub family: Family,
    /// One sentence for the documentation.
    pub summary: &'static str,
    /// How an elementwise op finds its dtype.
    pub promote: Promote,
    /// Meaning of an elementwise op, element by element.
    pub scalar: Option<ScalarFn>,
    /// Meaning of an op that combines the elements of a row, from which it is fused.
    pub rows: Option<RowMeaning>,
    /// Result types from operand types and constants, where the family does not know.
    pub infer: Option<Infer>,
    /// Which dtypes of computation an elementwise op takes.
    pub accepts: Accepts,
    /// What else an elementwise op demands of its arguments.
    pub check: Option<Check>,
    /// What it makes of numbers beside tensors, by the names of their arguments: those that do not fit are refused.
    pub numbers: &'static [(&'static str, NumberAs)],
    /// Reference kernel.
    pub eval: Option<Kernel>,
    /// What an op with blocks does: it runs them.
    pub region: Option<RegionKernel>,
    /// Meaning in TorchScript over other ops: the text of one function.
    pub meaning: Option<&'static str>,
    /// Derivative: `self: grad * (1 - result * result)`, TorchScript; several separated by newlines.
    pub grad: Option<&'static str>,
    /// Laws that rules and tests may use.
    pub facts: &'static [Fact],
    /// How exact its result is.
    pub tolerance: Tolerance,
    /// What it does besides computing.
    pub effects: Effects,
    /// Alias marks that PyTorch's schema leaves out, where there are any.
    pub hidden: Option<HiddenMarks>,
    /// The op, by its full name, that computes the same and writes to nothing: its arguments have the names of this one's, its
    /// results are this one's, and after them for each argument `a` that this one writes to a result `a_out`, what it becomes.
    pub functional: Option<&'static str>,
    /// Further names of the row, with their derived forms.
    pub aliases: &'static [Alias],
    /// Further overloads of the row, under all its names: schemas from the overload's name on.
    pub overloads: &'static [&'static str],
    /// The name, without its dialect, that stands for the same function: this one is a further name of it.
    pub alias_of: Option<&'static str>,
    /// Derives `name_(Tensor(a!) self, …) -> Tensor(a!)`.
    pub inplace: bool,
    /// Derives `name.out(…, *, Tensor(a!) out) -> Tensor(a!)` with the given overload name.
    pub out: Option<&'static str>,
    /// What such a form writes to: an argument for each result.
    pub outs: &'static [&'static str],
    /// Which dtypes the tensor may have that such a form, derived or spelled out, writes to.
    pub out_rule: OutRule,
    /// Which dtypes the first argument of a derived in-place form may have.
    pub inplace_rule: OutRule,
    /// Arguments whose memory must lie apart from what an in-place or `out` form writes; the other tensors must then not
    /// share it in another order. None: neither is asked.
    pub apart: Option<&'static [usize]>,
    /// The calls of which [`OpDef::apart`] demands nothing, by their arguments.
    pub apart_unless: Option<fn(&[Value]) -> bool>,
    /// Which dtypes that few ops take it takes: `u` uint16 to uint64, `8` floats of 8 bits. Views, and ops that make
    /// tensors or are defined by others, take all.
    pub rare: &'static str,
    /// How the memory of an elementwise op's result is ordered.
    pub order: Order,
    /// What the verifier demands besides operands that fit the schema.
    pub laws: &'static [Law],
    /// What it may be of a layer that runs as one kernel.
    pub part: Option<LayerPart>,
    /// What it does with quantized tensors.
    pub quantized: Quantized,
    /// Declared by a text file.
    pub declared: bool,
}

/// What an op does with quantized tensors. Their integers are never taken for numbers by accident: where nothing is
/// said, the family decides.
#[derive(Clone, Copy)]
pub enum Quantized {
    /// Views, questions, containers and compositions take them as they come; other families refuse them.
    ByFamily,
    /// The row's own kernel knows quantized tensors.
    Own,
    /// The row's own kernel runs on the integers, which it moves or compares but does not compute with; results of
    /// their type get the first operand's scale and zero point. All quantized operands must have the same.
    Integers,
    /// The same where an argument, a number or a tensor of real numbers, is written among the integers: it is rounded
    /// to the first operand's scale, of which there must be one for the whole tensor.
    IntegersAndNumber(usize),
    /// The op runs on the real numbers; its answer stands (comparisons, `item`).
    Reals,
    /// The op runs on the real numbers; float32 results are rounded to the first operand's scale.
    RealsBack,
    /// Another kernel, which reads the arguments as the row's kernel does.
    Kernel(Kernel),
}

/// A reference kernel: slow and plain, the definition of the op.
pub type Kernel = fn(&Args<'_>) -> Result<Outputs>;

/// Result types from what is known of the operands; see [`super::shapes`].
pub type Infer = fn(&Operands<'_>) -> Results;

/// What an op with blocks does: results from its arguments, as a kernel gives them, by running blocks. It moves values between
/// blocks and decides which block runs when; computing is for ops in the blocks, which gradients are recorded of.
pub type RegionKernel = fn(&Args<'_>, &dyn Blocks) -> Result<Outputs>;

/// A registered op: its row and its parsed schema.
#[derive(Clone)]
pub struct Op(pub(super) Arc<OpInner>);

pub(super) struct OpInner {
    pub(super) def: OpDef,
    /// The schema text; derived forms have their own.
    pub(super) text: Cow<'static, str>,
    pub(super) variant: Variant,
    pub(super) name: Symbol,
    pub(super) schema: OnceLock<Result<Schema>>,
    /// What an op registered at run time does.
    pub(super) function: Option<Box<Function>>,
    /// With the marks that the schema leaves out.
    pub(super) marked: OnceLock<Result<Schema>>,
}

/// What an op registered at run time does: its results from its arguments, as a kernel.
pub(super) type Function = dyn Fn(&Args<'_>) -> Result<Outputs> + Send + Sync;

/// Which form of its row an op is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As the row says.
    Plain,
    /// Writes the result to its first argument and returns it.
    InPlace,
    /// Writes the result to its last argument and returns it.
    Out,
}

/// Results of a call.
pub type Outputs = SmallVec<[Value; 1]>;

/// What only the node in a graph knows: attributes and declared result types. Empty for a call by schema.
#[derive(Clone, Copy, Default)]
pub struct Node<'a> {
    /// Attributes of the op in the graph.
    pub attrs: &'a [(Symbol, Attr)],
    /// Types of its results.
    pub result_types: &'a [Type],
}

/// Arguments in schema order, defaults filled in.
pub struct Args<'a> {
    /// The op that is called.
    pub op: &'a Op,
    /// One value an argument.
    pub values: &'a [Value],
    /// Attributes and result types.
    pub node: Node<'a>,
    /// The world.
    pub run: &'a Run,
}

/// The operands of one op, as far as they are known.
pub struct Operands<'a> {
    /// The op.
    pub op: &'a Op,
    /// One value an argument of the schema.
    pub values: &'a [Known],
    /// The last symbol that was handed out; fresh ones count down.
    pub symbols: &'a Cell<i64>,
    /// What kernels may be tried on.
    pub trials: Trials,
    /// What is known of open sizes.
    pub open: Option<&'a OpenSizes>,
}

/// The state of one task of a run.
pub struct Run {
    pub(super) shared: Arc<Shared>,
    pub(super) account: Arc<Account>,
    pub(super) grad_enabled: Cell<bool>,
    pub(super) composites: RefCell<Option<Arc<dyn Composites>>>,
    pub(super) autograd: RefCell<Option<Arc<dyn Autograd>>>,
    pub(super) recorded: RefCell<Vec<Weak<dyn Recorded>>>,
    pub(super) methods: RefCell<Option<Arc<dyn Methods>>>,
    pub(super) watcher: RefCell<Option<Arc<dyn Watcher>>>,
    /// Meanings that run within each other now.
    pub(super) meanings: Cell<usize>,
}

/// Runs ops whose meaning is TorchScript text. A layer that has a frontend and an interpreter provides it.
pub trait Composites: Send + Sync {
    /// Runs the one function of `text` on the op's arguments.
    fn run(&self, op: &Op, text: &str, values: &[Value], run: &Run) -> Result<Outputs>;

    /// Runs the last function of `text`, which errors call `name`, on values that fit its parameters.
    fn function(&self, name: &str, text: &str, values: Vec<Value>, run: &Run) -> Result<Value>;
}

/// Calls methods of script classes for ops that need them (`sort` of a list of objects).
pub trait Methods: Send + Sync {
    /// Calls `object.name(arguments…)`.
    fn call(
        &self,
        object: &crate::value::Object,
        name: &str,
        arguments: &[Value],
        run: &Run,
    ) -> Result<Value>;

    /// Whether objects of the class can be ordered: `__lt__` takes two of them and gives a bool.
    fn has_order(&self, object: &crate::value::Object) -> bool;
}

/// Computes an op's results from its arguments, without anything being recorded for the op itself.
pub type Compute<'a> = &'a dyn Fn(&[Value]) -> Result<Outputs>;

/// Records operations and computes gradients.
pub trait Autograd: Send + Sync {
    /// Runs an op some operand of which requires gradients, and records it.
    fn call(
        &self,
        op: &Op,
        values: &[Value],
        node: Node<'_>,
        run: &Run,
        compute: Compute<'_>,
    ) -> Result<Outputs>;

    /// Notes which results are views of which operand, for an op that was not recorded.
    fn link_views(&self, op: &Op, values: &[Value], results: &[Value]);

    /// Lets a tensor that an operation made keep its gradient; a leaf does so anyway. Fails where it requires none.
    fn retain(&self, tensor: &Tensor, run: &Run) -> Result<()>;

    /// Whether a tensor that an operation made keeps its gradient.
    fn retains(&self, tensor: &Tensor) -> bool;

    /// Which output of its operation a tensor is; 0 for a leaf.
    fn output_number(&self, tensor: &Tensor, run: &Run) -> Result<usize>;

    /// Records work that ran as one, with nothing recorded, on `values`, and gave `outputs`.
    fn region(&self, region: Arc<dyn Region>, values: &[Value], outputs: &[Tensor], run: &Run) -> Result<()>;

    /// The gradients of the outputs by each input; without inputs they are added to the `grad` of all leaves.
    fn gradients(&self, wanted: &Gradients, run: &Run) -> Result<Vec<Option<Tensor>>>;
}

/// Work that is differentiated as one: it has a backward of its own. It does nothing but compute its outputs, and draws no numbers.
pub trait Region: Send + Sync {
    /// What errors call it: an op's full name.
    fn name(&self) -> &str;

    /// Which operands the backward reads.
    fn reads(&self) -> &[bool];

    /// Which outputs depend on an operand that requires grad.
    fn follows(&self) -> &[bool];

    /// Whether recorded op by op it would keep tensors, which are freed after the first backward.
    fn keeps(&self) -> bool;

    /// Does the work op by op, so that it is recorded.
    fn replay(&self, values: Vec<Value>, run: &Run) -> Result<Outputs>;

    /// The gradients of the operands that are wanted, from those of the outputs. Nothing is recorded meanwhile.
    fn backward(
        &self,
        values: &[Value],
        gradients: &[Option<Tensor>],
        wanted: &[bool],
        run: &Run,
    ) -> Result<Vec<Option<Tensor>>>;
}
