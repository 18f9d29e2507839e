//! How rows are written: the families that fix what most cells of a row are, and a method for each other cell.

use super::cells::{
    Accepts, Check, Fact, Family, HiddenMarks, NumberAs, Order, OutRule, Promote, ScalarFn, Tolerance,
};
use super::constraint::Law;
use super::layer_part::LayerPart;
use super::model::{Infer, Kernel, OpDef, Quantized, RegionKernel};
use super::rows::{RowFn, RowMeaning};
use super::structure::Structure;
use super::{Alias, Effects};
use crate::tensor::DType;
use crate::value::Value;

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
        overloads: &[],
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

    /// Gives the row further overloads, of which all is true that it says, as `self_scalar(Scalar self, Tensor other) -> Tensor`. Where
    /// it has an `out` form, each has one whose overload ends in `_out`; an in-place form, where the first argument is a tensor.
    pub const fn overloads(mut self, overloads: &'static [&'static str]) -> OpDef {
        self.overloads = overloads;
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

    /// The same; the tensor must have a dtype that the rule allows.
    pub const fn inplace_as(mut self, rule: OutRule) -> OpDef {
        self.inplace_rule = rule;
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
