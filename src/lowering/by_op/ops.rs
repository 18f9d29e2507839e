//! Which ops something is said of: one op, a family, a dialect.

use crate::diag::{Diagnostic, Result, nearest};
use crate::dialects::{Family, Op};
use crate::ir::Symbol;
use std::fmt;

/// A selection of ops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ops {
    /// One op: `aten::mm`; with an overload's name, that one alone: `aten::bucketize.Tensor`.
    Named(String),
    /// Ops of a family of rows: `@reduce`.
    Family(Family),
    /// Ops of a dialect: `prim`.
    Dialect(String),
}

const FAMILIES: &[(&str, Family)] = &[
    ("elementwise", Family::Elementwise),
    ("reduce", Family::Reduce),
    ("view", Family::View),
    ("create", Family::Create),
    ("contraction", Family::Contraction),
    ("gather", Family::Gather),
    ("composite", Family::Composite),
    ("opaque", Family::Opaque),
    ("host", Family::Host),
    ("container", Family::Container),
    ("control", Family::Control),
];

impl Ops {
    /// One op by its name.
    pub fn named(name: &str) -> Ops {
        Ops::Named(name.to_string())
    }

    /// Reads a selection: `aten::mm`, `@reduce` or `prim`.
    pub fn parse(text: &str) -> Result<Ops> {
        if let Some(name) = text.strip_prefix('@') {
            let family = FAMILIES.iter().find(|(other, _)| *other == name);
            return family.map(|(_, family)| Ops::Family(*family)).ok_or_else(|| {
                let names = FAMILIES.iter().map(|(name, _)| *name);
                let error = Diagnostic::input(format!("there is no family of ops '@{name}'"));
                match nearest(name, names.clone()) {
                    Some(near) => error.hint(format!("did you mean '@{near}'?")),
                    None => error.hint(format!("families are @{}", names.collect::<Vec<_>>().join(", @"))),
                }
            });
        }
        if text.is_empty() || text.contains(|c: char| c.is_whitespace()) {
            return Err(Diagnostic::input(format!("'{text}' is not an op, family or dialect"))
                .hint("an op is written aten::mm, a family @reduce, a dialect prim"));
        }
        Ok(if text.contains("::") { Ops::named(text) } else { Ops::Dialect(text.to_string()) })
    }

    /// Reads a list with commas; blanks around items do not count.
    pub fn parse_list(text: &str) -> Result<Vec<Ops>> {
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(Ops::parse).collect()
    }

    /// Whether a row is among them.
    pub fn contains(&self, op: &Op) -> bool {
        match self {
            Ops::Named(name) => *name == op.name().as_str() || *name == op.full_name(),
            Ops::Family(family) => op.def().family == *family,
            Ops::Dialect(dialect) => op.name().namespace() == dialect,
        }
    }

    /// The same of an op that has no row: families have none of them.
    pub fn contains_kind(&self, kind: Symbol) -> bool {
        match self {
            Ops::Named(name) => *name == kind.as_str(),
            Ops::Family(_) => false,
            Ops::Dialect(dialect) => kind.namespace() == dialect,
        }
    }

    /// What is said of one op counts more than what is said of its family, and that more than what is said of its dialect.
    pub(in crate::lowering) fn rank(&self) -> u8 {
        match self {
            Ops::Named(_) => 2,
            Ops::Family(_) => 1,
            Ops::Dialect(_) => 0,
        }
    }
}

impl fmt::Display for Ops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ops::Named(name) | Ops::Dialect(name) => f.write_str(name),
            Ops::Family(family) => {
                let name = FAMILIES.iter().find(|(_, other)| other == family).map_or("", |(name, _)| name);
                write!(f, "@{name}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Registry;

    #[test]
    fn selections_are_read_and_printed() {
        let registry = Registry::builtin();
        let mm = registry.find("aten::mm", "").expect("a row");
        for (text, holds) in
            [("aten::mm", true), ("@contraction", true), ("aten", true), ("@view", false), ("prim", false)]
        {
            let ops = Ops::parse(text).expect(text);
            assert_eq!((ops.to_string().as_str(), ops.contains(mm)), (text, holds));
        }
        assert_eq!(Ops::parse_list(" aten::mm, prim ,").expect("a list").len(), 2);
        let error = Ops::parse("@views").expect_err("no family").to_string();
        assert!(error.contains("did you mean '@view'?"), "{error}");
        assert!(Ops::parse("a b").is_err());
    }
}
