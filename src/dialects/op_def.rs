//! The row of an op, and the families that fix what most cells of a row are.

use super::constraint::Law;
use super::contract::Contract;
use super::layer_part::LayerPart;
use super::region::RegionKernel;
use super::rows::{RowFn, RowMeaning};
use super::scalar::{Program, Sv};
use super::structure::Structure;
use super::{Alias, Args, Effects, Outputs};
use crate::diag::Result;
use crate::tensor::DType;
use crate::value::Value;

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

/// What an elementwise op makes of a number before it computes, as PyTorch's kernels do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberAs {
    /// An element of the common dtype.
    Element,
    /// The same where that is not an integer.
    Float,
    /// The same where that is float32, as numbers by themselves are.
    Float32,
    /// The same where that has 16 bits or is an integer.
    HalfOrInteger,
    /// An element of the common dtype, and int64 where that is an integer.
    Wide,
    /// What is computed with: float32 where elements have 16 bits.
    Compute,
}

impl NumberAs {
    /// The dtype that the number must fit, where elements have a common one; None where all fit.
    pub fn dtype(self, common: DType) -> Option<DType> {
        let half = matches!(common, DType::F16 | DType::BF16);
        match self {
            NumberAs::Element => Some(common),
            NumberAs::Float => (!common.is_integral()).then_some(common),
            NumberAs::Float32 => (common == DType::F32).then_some(common),
            NumberAs::HalfOrInteger => (half || common.is_integral()).then_some(common),
            NumberAs::Wide => Some(if common.is_integral() { DType::I64 } else { common }),
            NumberAs::Compute => Some(if half { DType::F32 } else { common }),
        }
    }
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

/// What an op aliases or writes although the schema that it shares with PyTorch does not say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HiddenMarks {
    /// The schema with all marks.
    pub schema: &'static str,
    /// Nothing is written where this argument is False.
    pub writes_if: Option<&'static str>,
}

/// How the memory of a new result of an elementwise op is ordered. PyTorch's ops differ in this where they allocate the
/// result themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As the operands' is, by the rules of PyTorch's iterator.
    Operands,
    /// As the operands' is; dimensions of size 1 count, as where a number stands among the operands.
    EveryStride,
    /// As the first operand's is; if that is dense, its very strides.
    First,
    /// Row-major.
    RowMajor,
}

/// Which dtypes the tensor of an `out=` form may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutRule {
    /// Those that the result can be cast to without going down a kind (float to integer).
    Cast,
    /// The result's only; PyTorch's refusal speaks of C++ types.
    Exact,
    /// The result's only; the refusal speaks of a cast, to a C++ type.
    Same,
    /// The result's only; the refusal speaks of a dtype that was found.
    Found,
    /// The result's only; the refusal speaks of the argument.
    Argument,
    /// The input's only.
    Input,
    /// bool and uint8, for results that are truth values.
    Truth,
}

impl OutRule {
    /// Fails if a result of dtype `from` of the op called `name` may not be written to a tensor of dtype `to`.
    pub fn check(self, name: &str, from: DType, to: DType) -> Result<()> {
        let refusal = match self {
            OutRule::Exact if from != to => format!(
                "Expected out tensor to have dtype {}, but got {} instead",
                from.cpp_name(),
                to.cpp_name()
            ),
            OutRule::Found if from != to => {
                format!("Found dtype {} but expected {}", to.type_name(), from.type_name())
            }
            OutRule::Argument if from != to => format!(
                "Expected object of scalar type {} but got scalar type {} for argument 'out'",
                from.type_name(),
                to.type_name()
            ),
            OutRule::Input if from != to => format!(
                "Expected the dtype for input and out to match, but got {} for input's dtype and {} for out's dtype.",
                from.type_name(),
                to.type_name()
            ),
            OutRule::Same if from != to => format!(
                "result type {} can't be cast to the desired output type {}",
                from.type_name(),
                to.cpp_name()
            ),
            OutRule::Truth if !matches!(to, DType::Bool | DType::U8) => {
                let name = name.trim_start_matches("aten::");
                format!("{name} only supports bool tensor for result, got: {}", to.type_name())
            }
            // Never down a kind: no complex to real, no float to integer, nothing but bool to bool.
            OutRule::Cast
                if (from.is_complex() && !to.is_complex())
                    || (from.is_floating() && to.is_integral())
                    || (from != DType::Bool && to == DType::Bool) =>
            {
                format!(
                    "result type {} can't be cast to the desired output type {}",
                    from.type_name(),
                    to.type_name()
                )
            }
            _ => return Ok(()),
        };
        Err(crate::diag::Diagnostic::runtime(refusal))
    }
}

/// Families of ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Each result element from the operands' elements at the same (broadcast) place.
    Elementwise,
    /// Combines elements along dimensions.
    Reduce,
    /// Another view of the same storage.
    View,
    /// Makes a tensor from sizes and numbers.
    Create,
    /// Matrix products and convolutions.
    Contraction,
    /// Moves elements by index.
    Gather,
    /// Defined in TorchScript over other ops.
    Composite,
    /// Tensor work that has a kernel and no more structure.
    Opaque,
    /// Works on numbers and text, not on tensors.
    Host,
    /// Works on lists, dictionaries and tuples.
    Container,
    /// Runs blocks or calls functions; the runtime knows it.
    Control,
}

/// How the dtype of an elementwise result follows from the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promote {
    /// The common dtype of the operands.
    Common,
    /// The common dtype; integers become the default float.
    Float,
    /// Computed in the common dtype, the result is bool.
    Bool,
    /// The first operand's dtype, whatever the others are.
    First,
    /// The common dtype; complex becomes its real dtype (`abs`).
    Real,
    /// As `Float`; complex becomes its real dtype (`angle`).
    RealFloat,
    /// float64, or complex128 where the common dtype is complex.
    Double,
    /// The common dtype of the operands and an int: bools become int64.
    Number,
    /// As `Float` where the rounding mode (the first static argument) is None, otherwise as `Common`.
    Rounding,
}

/// The dtypes of computation that an elementwise op takes, and the name by which PyTorch's refusal calls its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepts {
    /// bool
    pub bool: bool,
    /// integers
    pub int: bool,
    /// float32 and float64
    pub float: bool,
    /// floats of 16 bits
    pub half: bool,
    /// complex numbers
    pub complex: bool,
    /// `abs_cpu`, or the whole message; after `|` the one for complex numbers
    pub kernel: &'static str,
}

impl Accepts {
    /// Everything.
    pub const ALL: Accepts = Accepts::kinds("bifc", "");

    /// The dtypes named by letters: b(ool), i(nteger), f(loat of any width), w(ide float: 32 and 64 bits), c(omplex).
    pub const fn kinds(letters: &str, kernel: &'static str) -> Accepts {
        let mut accepts =
            Accepts { bool: false, int: false, float: false, half: false, complex: false, kernel };
        let letters = letters.as_bytes();
        let mut i = 0;
        while i < letters.len() {
            match letters[i] {
                b'b' => accepts.bool = true,
                b'i' => accepts.int = true,
                b'f' => {
                    accepts.float = true;
                    accepts.half = true;
                }
                b'w' => accepts.float = true,
                _ => accepts.complex = true,
            }
            i += 1;
        }
        accepts
    }

    /// Whether a dtype is among them.
    pub const fn contains(&self, dtype: DType) -> bool {
        match dtype {
            DType::Bool => self.bool,
            DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => self.int,
            DType::F32 | DType::F64 => self.float,
            DType::F16 | DType::BF16 => self.half,
            DType::C64 | DType::C128 => self.complex,
            _ => false,
        }
    }
}

/// Refuses arguments that an elementwise op cannot take, with PyTorch's error.
pub type Check = fn(&[Value]) -> Result<()>;

/// What an op gives, whatever its operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Given {
    /// A number; of tensors in the operand's dtype.
    Number(f64),
    /// A truth value; of tensors in dtype bool.
    Truth(bool),
}

/// Laws of an op. The equations among them become rewrite rules, which hold under the contract `exact` unless the fact says
/// otherwise; `rewrite::facts` says for which dtypes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fact {
    /// f(x, y) = f(y, x)
    Commutative,
    /// f(f(x, y), z) = f(x, f(y, z))
    Associative,
    /// f(x, e) = x; for truth values 1 is true and 0 false
    Identity(f64),
    /// f(x, e) = e, or a tensor like x with e everywhere
    Absorbing(f64),
    /// `Identity` or `Absorbing` of numbers and truth values, where f(e, x) is the same too.
    TwoSided(&'static Fact),
    /// f(x, x) is this, or a tensor like x with this everywhere.
    Reflexive(Given),
    /// not f(x, ...) = g(x, ...), where this is the name of g
    Negates(&'static str),
    /// f(-x) = -f(x)
    Odd,
    /// f(-x) = f(x)
    Even,
    /// f(f(x)) = f(x), where arguments besides the first are the same; of just two operands of one type f(x, x) = x
    Idempotent,
    /// f(f(x)) = x
    Involution,
    /// An equation that floats keep under a weaker contract only; integers keep it exactly.
    Under(Contract, &'static Fact),
    /// A constant tensor of rank 0 as second operand counts as a number (the `Scalar` overload).
    ConstantIsNumber,
    /// Gradients do not flow through it.
    Detached,
    /// Gives its operand on, or a copy of it, as the layout asks.
    MayCopy,
    /// Gives its operand on where that has the dtype that is asked for, a copy otherwise.
    MayConvert,
    /// Looks at strides: its answer, or whether it has one, follows from how the elements of an operand lie.
    SeesLayout,
    /// Gives its first operand other sizes, strides or memory in place.
    Reshapes,
    /// Prepares what it is given for other ops: with constants it runs once, when the code of a plan is made.
    Packs,
    /// A composite of layers: a plan inlines its meaning, whose parts become layers.
    Layers,
    /// Speaks with autograd: turns recording on or off, or computes gradients.
    Autograd,
    /// The elements of the result lie as those of the first operand, if these leave no gaps.
    KeepsLayout,
    /// The elements of each result lie in order of rows, wherever those of the operands lie.
    RowMajor,
    /// Costs several instructions an element though it is exact: worth a kernel of its own, as every function that is
    /// evaluated by approximation is.
    Costly,
    /// PyTorch records it as another operation, which errors name.
    RecordedAs(&'static str),
    /// Asks whether its operands are the same object.
    Compares,
    /// Asks for types, sizes or identity, never for contents: writes to its operands do not change its answer.
    Metadata,
    /// Looks at dtype, sizes and strides of its first operand alone, a tensor that its result is made like.
    LikeFirst,
    /// Takes nested tensors; other ops but compositions refuse them.
    Nested,
    /// Makes a tensor of rank 0 of a number: traced programs compute sizes with such tensors.
    WrapsNumber,
    /// Repeats the elements of its first operand to given sizes, as elementwise work does by itself.
    Broadcasts,
    /// Sums what broadcasting from a given size has repeated.
    SumsToSize,
    /// Gives its first operand the sizes of the second, as the op of this name does, which takes them as its second argument.
    AsOther(&'static str),
    /// Writes one value, the argument of this number, to some elements of its first operand: to expanded ones too in place, with a
    /// warning that shows how programs write the same with an index.
    Fills(usize, &'static str),
}

/// How exact a result is; tests take their bounds from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tolerance {
    /// Bit for bit.
    Exact,
    /// A few units in the last place: functions evaluated by approximation.
    Rounding,
    /// Sums in another order: grows with the number of terms.
    Accumulation,
}

/// The meaning of an elementwise op: builds the result's element from the operands' elements. Operands are
/// the Tensor and Scalar arguments in schema order, converted to the dtype of computation (floats of 16 bits to
/// float32); optional ones that are left out are [`Sv::ABSENT`]. Other arguments are the program's statics.
pub type ScalarFn = fn(&mut Program, &[Sv]) -> Sv;

/// A reference kernel: slow and plain, the definition of the op.
pub type Kernel = fn(&Args<'_>) -> Result<Outputs>;

/// Result types from what is known of the operands; see [`super::shapes`].
pub type Infer = fn(&super::shapes::Operands<'_>) -> super::shapes::Results;

const fn row(schema: &'static str, family: Family) -> OpDef {
    OpDef {
        schema,
        family,
        summary: "",
        promote: Promote::Common,
        scalar: None,
        rows: None,
        infer: None,
        accepts: Accepts::ALL,
        check: None,
        numbers: &[],
        eval: None,
        region: None,
        meaning: None,
        grad: None,
        facts: &[],
        tolerance: Tolerance::Exact,
        effects: Effects::NONE,
        hidden: None,
        functional: None,
        aliases: &[],
        alias_of: None,
        inplace: false,
        out: None,
        outs: &["out"],
        out_rule: OutRule::Cast,
        inplace_rule: OutRule::Cast,
        apart: None,
        apart_unless: None,
        rare: "",
        order: Order::Operands,
        laws: &[],
        part: None,
        quantized: Quantized::ByFamily,
        declared: false,
    }
}

/// An op of which only the schema is known: it cannot run, and nothing is known of what it does besides.
pub(super) const fn declared(schema: &'static str) -> OpDef {
    row(schema, Family::Opaque).effects(Effects::ALL)
}

/// An elementwise op: give it `.scalar(...)`.
pub const fn elementwise(schema: &'static str, promote: Promote) -> OpDef {
    let mut def = row(schema, Family::Elementwise);
    def.promote = promote;
    def
}

/// An op with blocks of its own: `laws` declare them ([`Structure::Regions`]), `run` runs them.
pub const fn regional(schema: &'static str, laws: &'static [Law], run: RegionKernel) -> OpDef {
    row(schema, Family::Control).laws(laws).region(run)
}

/// A reduction.
pub const fn reduce(schema: &'static str, eval: Kernel) -> OpDef {
    row(schema, Family::Reduce).eval(eval).tolerance(Tolerance::Accumulation)
}

/// A view: its result must carry the operand's alias mark.
pub const fn view(schema: &'static str, eval: Kernel) -> OpDef {
    row(schema, Family::View).eval(eval)
}

/// Makes a tensor.
pub const fn create(schema: &'static str, eval: Kernel) -> OpDef {
    row(schema, Family::Create).eval(eval)
}

/// A matrix product or convolution.
pub const fn contraction(schema: &'static str, eval: Kernel) -> OpDef {
    row(schema, Family::Contraction).eval(eval).tolerance(Tolerance::Accumulation)
}

/// Moves elements by index.
pub const fn gather(schema: &'static str, eval: Kernel) -> OpDef {
    row(schema, Family::Gather).eval(eval)
}

/// Tensor work with a kernel and no more structure.
pub const fn opaque(schema: &'static str, eval: Kernel) -> OpDef {
    row(schema, Family::Opaque).eval(eval).tolerance(Tolerance::Accumulation)
}

/// Defined in TorchScript over other ops: the text of one function whose parameters are the schema's arguments.
pub const fn composite(schema: &'static str, meaning: &'static str) -> OpDef {
    let mut def = row(schema, Family::Composite).tolerance(Tolerance::Accumulation);
    def.meaning = Some(meaning);
    def
}

/// Numbers and text.
pub const fn host(schema: &'static str, eval: Kernel) -> OpDef {
    row(schema, Family::Host).eval(eval)
}

/// Lists, dictionaries, tuples.
pub const fn container(schema: &'static str, eval: Kernel) -> OpDef {
    row(schema, Family::Container).eval(eval)
}

/// Runs blocks or calls functions: the runtime interprets it.
pub const fn control(schema: &'static str) -> OpDef {
    row(schema, Family::Control).effects(Effects::CONTROL)
}

impl OpDef {
    /// Sets the elementwise meaning.
    pub const fn scalar(mut self, scalar: ScalarFn) -> OpDef {
        self.scalar = Some(scalar);
        self
    }

    /// Sets the meaning along rows of an op that gives one number a row.
    pub const fn reduces_rows(mut self, meaning: RowFn) -> OpDef {
        self.rows = Some(RowMeaning::Number(meaning));
        self
    }

    /// Sets the meaning along rows of an op that gives rows of the same length.
    pub const fn maps_rows(mut self, meaning: RowFn) -> OpDef {
        self.rows = Some(RowMeaning::Row(meaning));
        self
    }

    /// Sets the dtypes of computation: letters as in [`Accepts::kinds`], and the kernel's name in the refusal
    /// (`"abs_cpu" not implemented for 'Bool'`). A name with a blank in it is the whole message, `TypeError: ` before
    /// it names the class.
    pub const fn accepts(mut self, letters: &str, kernel: &'static str) -> OpDef {
        self.accepts = Accepts::kinds(letters, kernel);
        self
    }

    /// Sets the check of the arguments.
    pub const fn check(mut self, check: Check) -> OpDef {
        self.check = Some(check);
        self
    }

    /// Sets what becomes of numbers.
    pub const fn numbers(mut self, numbers: &'static [(&'static str, NumberAs)]) -> OpDef {
        self.numbers = numbers;
        self
    }

    /// Sets the reference kernel.
    pub const fn eval(mut self, eval: Kernel) -> OpDef {
        self.eval = Some(eval);
        self
    }

    /// Sets what an op with blocks does.
    pub const fn region(mut self, region: RegionKernel) -> OpDef {
        self.region = Some(region);
        self
    }

    /// Sets the type rule.
    pub const fn infer(mut self, infer: Infer) -> OpDef {
        self.infer = Some(infer);
        self
    }

    /// Sets the derivative.
    pub const fn grad(mut self, grad: &'static str) -> OpDef {
        self.grad = Some(grad);
        self
    }

    /// How operands, blocks and results fit together, where that is a law.
    pub fn structure(&self) -> Option<Structure> {
        self.laws.iter().find_map(|law| match law {
            Law::Structure(structure) => Some(*structure),
            _ => None,
        })
    }

    /// Sets the laws.
    pub const fn facts(mut self, facts: &'static [Fact]) -> OpDef {
        self.facts = facts;
        self
    }

    /// Sets the exactness.
    pub const fn tolerance(mut self, tolerance: Tolerance) -> OpDef {
        self.tolerance = tolerance;
        self
    }

    /// Sets the effects.
    pub const fn effects(mut self, effects: Effects) -> OpDef {
        self.effects = effects;
        self
    }

    /// Gives the schema with the marks that PyTorch's leaves out.
    pub const fn hidden_marks(mut self, schema: &'static str) -> OpDef {
        self.hidden = Some(HiddenMarks { schema, writes_if: None });
        self
    }

    /// The same; nothing is written where the argument `flag` is False.
    pub const fn hidden_writes(mut self, flag: &'static str, schema: &'static str) -> OpDef {
        self.hidden = Some(HiddenMarks { schema, writes_if: Some(flag) });
        self
    }

    /// Names the op that computes the same and writes to nothing; see [`OpDef::functional`].
    pub const fn functional(mut self, name: &'static str) -> OpDef {
        self.functional = Some(name);
        self
    }

    /// Gives the row further names.
    pub const fn aliases(mut self, aliases: &'static [Alias]) -> OpDef {
        self.aliases = aliases;
        self
    }

    /// Says that another name, given without its dialect, stands for the same function: of a row that is spelled out because
    /// its arguments are called otherwise, or because not all that the other row says is true of it.
    pub const fn alias_of(mut self, name: &'static str) -> OpDef {
        self.alias_of = Some(name);
        self
    }

    /// Sets the sentence for the documentation.
    pub const fn doc(mut self, summary: &'static str) -> OpDef {
        self.summary = summary;
        self
    }

    /// Sets the demands of the verifier.
    pub const fn laws(mut self, laws: &'static [Law]) -> OpDef {
        self.laws = laws;
        self
    }

    /// Sets demands of the verifier that are made when a dialect is; they are kept as long as the process lives, as schemas are.
    pub fn demanding(self, laws: Vec<Law>) -> OpDef {
        self.laws(laws.leak())
    }

    /// Says what it may be of a layer that runs as one kernel.
    pub const fn part(mut self, part: LayerPart) -> OpDef {
        self.part = Some(part);
        self
    }

    /// Sets what it does with quantized tensors.
    pub const fn quantized(mut self, quantized: Quantized) -> OpDef {
        self.quantized = quantized;
        self
    }

    /// Sets the kernel for quantized tensors.
    pub const fn quantized_kernel(self, kernel: Kernel) -> OpDef {
        self.quantized(Quantized::Kernel(kernel))
    }

    /// Refuses to write memory that is read in another order, or, by the arguments named, at all.
    pub const fn apart(mut self, arguments: &'static [usize]) -> OpDef {
        self.apart = Some(arguments);
        self
    }

    /// Makes no demand of [`OpDef::apart`] on these calls.
    pub const fn unless(mut self, is_free: fn(&[Value]) -> bool) -> OpDef {
        self.apart_unless = Some(is_free);
        self
    }

    /// How the memory of an elementwise op's result is ordered, if not by all operands.
    pub const fn ordered(mut self, order: Order) -> OpDef {
        self.order = order;
        self
    }

    /// Takes dtypes that few ops take: `u` uint16 to uint64, `8` floats of 8 bits.
    pub const fn rare(mut self, letters: &'static str) -> OpDef {
        self.rare = letters;
        self
    }

    /// Whether it takes a dtype that few ops take.
    pub fn takes_rare(&self, dtype: DType) -> bool {
        use Family::*;
        matches!(self.family, View | Create | Composite | Host | Container | Control)
            || self.facts.contains(&Fact::Metadata)
            || self.facts.contains(&Fact::SeesLayout)
            || self.rare.contains(if dtype.is_float8() { '8' } else { 'u' })
    }

    /// Derives the in-place form.
    pub const fn inplace(mut self) -> OpDef {
        self.inplace = true;
        self
    }

    /// Derives the `out=` form under an overload name (`out`, `Tensor_out`).
    pub const fn out(mut self, overload: &'static str) -> OpDef {
        self.out = Some(overload);
        self
    }

    /// Derives the in-place form, which must have the result's dtype.
    pub const fn inplace_same(mut self) -> OpDef {
        self.inplace_rule = OutRule::Same;
        self.inplace()
    }

    /// As [`OpDef::out`]; `out` must have the result's dtype.
    pub const fn out_exact(mut self, overload: &'static str) -> OpDef {
        self.out_rule = OutRule::Exact;
        self.out(overload)
    }

    /// The same; `out` must have a dtype that the rule allows.
    pub const fn out_as(mut self, overload: &'static str, rule: OutRule) -> OpDef {
        self.out_rule = rule;
        self.out(overload)
    }

    /// The same; the refusal of other dtypes is worded as TensorIterator words it.
    pub const fn out_found(mut self, overload: &'static str) -> OpDef {
        self.out_rule = OutRule::Found;
        self.out(overload)
    }

    /// Derives the form of an op of several results that writes them, under an overload name, to arguments of these names,
    /// which must have the results' dtypes.
    pub const fn outs(mut self, overload: &'static str, names: &'static [&'static str]) -> OpDef {
        self.outs = names;
        self.out_exact(overload)
    }
}
