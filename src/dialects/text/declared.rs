//! What a dialect file declares, as its author wrote it. How it is read, and what becomes of it, is not known here.

use crate::diag::Span;
use crate::dialects::constraint::{Declaration, Law};
use crate::dialects::{Effects, Fact, Tolerance};

/// Keywords that begin declarations in a dialect file.
pub const KEYWORDS: &[&str] = &[
    "dialect",
    "op",
    "type",
    "attribute",
    "summary",
    "meaning",
    "lowering",
    "grad",
    "surrogate",
    "facts",
    "traits",
    "effects",
    "tolerance",
];

/// A dialect as its file declares it.
#[derive(Clone, Debug)]
pub struct DialectText {
    /// `quant`
    pub name: String,
    /// One sentence.
    pub summary: String,
    /// Its ops in order.
    pub ops: Vec<OpText>,
    /// Its types.
    pub types: Vec<Declaration>,
    /// Its attributes.
    pub attributes: Vec<Declaration>,
}

/// An op as a file declares it.
#[derive(Clone, Debug)]
pub struct OpText {
    /// The schema on one line.
    pub schema: String,
    /// Where it stands.
    pub span: Span,
    /// One sentence.
    pub summary: String,
    /// TorchScript source of one function, its indentation taken away.
    pub meaning: Option<(String, Span)>,
    /// Loop functions as graph text, their indentation taken away, each with the place where it stands.
    pub lowerings: Vec<(String, Span)>,
    /// Derivatives, one an argument.
    pub grad: Vec<GradText>,
    /// Laws for rules and tests.
    pub facts: Vec<Fact>,
    /// Demands of the verifier.
    pub laws: Vec<Law>,
    /// What it does besides computing.
    pub effects: Effects,
    /// How exact it is.
    pub tolerance: Tolerance,
    /// Derive the in-place form.
    pub inplace: bool,
    /// Derive the `out=` form under this overload name.
    pub out: Option<String>,
}

/// A derivative as a file declares it.
#[derive(Clone, Debug)]
pub struct GradText {
    /// By which argument.
    pub argument: String,
    /// TorchScript over the arguments, `grad` and `result`.
    pub formula: String,
    /// Where the line stands.
    pub span: Span,
    /// It stands in for the derivative of the meaning and is another function (`surrogate`).
    pub surrogate: bool,
}

impl OpText {
    /// `quant::snap`
    pub fn name(&self) -> &str {
        self.schema.split(['(', '.']).next().unwrap_or("").trim()
    }
}
