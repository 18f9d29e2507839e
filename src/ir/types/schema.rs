//! Function schemas: names, types, defaults and alias marks of arguments and results.

use crate::ir::{Attr, Symbol, Type};

/// A schema: `aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// `aten::add_`
    pub name: Symbol,
    /// `Tensor`, or empty.
    pub overload: Symbol,
    /// Arguments in order; keyword-only ones after the others.
    pub arguments: Vec<Argument>,
    /// Results in order.
    pub returns: Vec<Argument>,
    /// Takes any further arguments (`...`).
    pub is_vararg: bool,
    /// Gives any number of results (`-> ...`).
    pub is_varret: bool,
}

/// An argument or a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Name, empty for most results.
    pub name: Symbol,
    /// Type; `int[2]` is a list of int with `fixed_length` 2.
    pub ty: Type,
    /// The type as the schema writes it, where that is a refinement that programs do not see
    /// (`ScalarType`, `Layout`, `MemoryFormat` are ints; `SymInt` is int).
    pub real_ty: Type,
    /// The n of `int[n]`: one int stands for n of them.
    pub fixed_length: Option<usize>,
    /// Value taken when the call gives none.
    pub default: Option<Attr>,
    /// Must be given by name.
    pub keyword_only: bool,
    /// Alias marks.
    pub alias: Option<AliasInfo>,
    /// Marked as an `out=` argument.
    pub is_out: bool,
}

/// The alias marks of one argument or result: `(a! -> a|b)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AliasInfo {
    /// Alias sets before the call; empty with `wildcard`.
    pub before: Vec<Symbol>,
    /// Alias sets after the call (equal to `before` where the mark has no arrow).
    pub after: Vec<Symbol>,
    /// Written by the call: `!`.
    pub is_write: bool,
    /// May alias anything: `*`.
    pub wildcard_before: bool,
    /// May alias anything afterwards.
    pub wildcard_after: bool,
    /// Marks of contained types, for lists of tensors: `Tensor(a)[]` has its mark on the element.
    pub contained: Vec<Option<AliasInfo>>,
}

impl Argument {
    /// A plain positional argument.
    pub fn new(name: impl Into<Symbol>, ty: Type) -> Argument {
        Argument {
            name: name.into(),
            real_ty: ty.clone(),
            ty,
            fixed_length: None,
            default: None,
            keyword_only: false,
            alias: None,
            is_out: false,
        }
    }
}

impl Schema {
    /// A schema of plain arguments.
    pub fn new(name: impl Into<Symbol>, arguments: Vec<Argument>, returns: Vec<Argument>) -> Schema {
        Schema {
            name: name.into(),
            overload: Symbol::new(""),
            arguments,
            returns,
            is_vararg: false,
            is_varret: false,
        }
    }

    /// The place of an argument by name.
    pub fn argument_index(&self, name: &str) -> Option<usize> {
        self.arguments.iter().position(|a| a.name == name)
    }

    /// Whether some argument is marked as written.
    pub fn is_mutable(&self) -> bool {
        self.arguments.iter().any(|a| a.alias.as_ref().is_some_and(|m| m.is_write))
    }

    /// `aten::add_.Tensor`
    pub fn qualified_name(&self) -> String {
        if self.overload.as_str().is_empty() {
            self.name.to_string()
        } else {
            format!("{}.{}", self.name, self.overload)
        }
    }
}
