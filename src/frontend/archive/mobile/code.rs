//! Methods as bytecode has them, whatever file they come from. It knows nothing of files and of graphs.

use crate::diag::Diagnostic;
use crate::ir::{Attr, Symbol, Type};

/// The versions of bytecode that can be read.
pub(super) const VERSIONS: std::ops::RangeInclusive<i64> = 3..=9;

/// A method in bytecode.
#[derive(Debug, Default)]
pub(super) struct Code {
    /// Qualified name (`__torch__.M.forward`).
    pub(super) name: String,
    pub(super) instructions: Vec<Instruction>,
    pub(super) operators: Vec<Operator>,
    /// Constants with their types.
    pub(super) constants: Vec<(Type, Attr)>,
    /// Texts of types.
    pub(super) types: Vec<String>,
    /// Arguments by name, text of the type and default; the text of each result's type. None before version 5.
    pub(super) signature: Option<(Vec<Parameter>, Vec<String>)>,
}

/// An instruction: its name, and two numbers whose meaning the name says.
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    pub(super) name: Box<str>,
    pub(super) x: i64,
    pub(super) n: i64,
}

/// An operator that instructions call by its number.
#[derive(Clone, Debug)]
pub(super) struct Operator {
    pub(super) name: Symbol,
    pub(super) overload: Box<str>,
    /// How many arguments the instructions give; the last ones of the schema may be left out. None before version 6.
    pub(super) given: Option<usize>,
}

/// An argument of a method.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) name: Box<str>,
    pub(super) ty: String,
    pub(super) default: Option<Attr>,
}

/// Puts what an error is about before its message.
pub(super) fn named(mut error: Diagnostic, name: &str) -> Diagnostic {
    let report = error.report_mut();
    report.message = format!("{name}: {}", report.message);
    error
}
