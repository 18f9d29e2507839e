//! What cells of a row say: families, promotion, dtypes, laws, exactness. Words and small rules; they know no row and no kernel.

use super::contract::Contract;
use super::scalar::{Program, Sv};
use crate::diag::Result;
use crate::tensor::DType;
use crate::value::Value;

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
    /// The result's only; a refusal of the op's own, in which `{from}` and `{to}` are names of dtypes, `{from_cpp}` and `{to_cpp}` those of
    /// C++, and `{narrow}` says whether the result is of int32.
    Says(&'static str),
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
            OutRule::Says(text) if from != to => text
                .replace("{from}", from.type_name())
                .replace("{to}", to.type_name())
                .replace("{from_cpp}", from.cpp_name())
                .replace("{to_cpp}", to.cpp_name())
                .replace("{narrow}", if from == DType::I32 { "True" } else { "False" }),
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
    /// A composite of layers or of elementwise work: a plan inlines its meaning, whose parts become layers and groups.
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
