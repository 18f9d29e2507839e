//! A rule over op rows: what drivers, checks and explanations take it for. Does not know how rules are written, nor how they
//! are compiled.

use super::syntax::{Condition, Contract, Expr};
use crate::diag::Span;
use crate::dialects::Op;
use crate::ir::{Attr, Symbol, Type};
use indexmap::IndexMap;
use std::sync::Arc;

/// A rule over op rows.
#[derive(Clone, Debug)]
pub struct CompiledRule {
    /// The rule's name; a rule that holds both ways gives `name` and `name/back`.
    pub name: Arc<str>,
    /// The group that it stands in.
    pub group: Option<Arc<str>>,
    /// What it promises.
    pub contract: Contract,
    /// What it looks for.
    pub left: Term,
    /// What that equals.
    pub right: Term,
    /// When.
    pub conditions: Arc<[Condition]>,
    /// Where it stands.
    pub span: Span,
    /// Whether an op of it writes: such a rule can be checked and is never applied.
    pub writes: bool,
    /// Whether its right side is taken where both cost the same.
    pub prefers_right: bool,
    /// Whether its group is `directed`: only the pass of that group takes it.
    pub directed: bool,
    /// What the right side makes before anything else: the forms of what `let` names ([`super::named::form`]).
    pub first: Arc<[String]>,
}

impl CompiledRule {
    /// Whether a driver applies the rule where a contract is in force.
    pub fn applies_under(&self, contract: Contract) -> bool {
        !self.writes && !self.directed && contract.admits(self.contract)
    }

    /// Why a driver leaves the rule out where a contract is in force, if it is the contract that does it.
    pub(in crate::rewrite) fn weaker_than(&self, contract: Contract) -> Option<String> {
        let (own, in_force) = (self.contract.name(), contract.name());
        let weaker = || format!("its contract {own} is weaker than {in_force}, the contract in force");
        match self.contract {
            Contract::Trusted => Some(format!("{}; only the pass of its own group applies it", weaker())),
            _ if contract.admits(self.contract) => None,
            _ => Some(format!("{}; --{own} admits it", weaker())),
        }
    }

    /// Whether it speaks of an op and of no other of that name: an overload that was left out is chosen by types.
    pub(super) fn is_about(&self, op: &Op) -> bool {
        self.left.is_about(op) && self.right.is_about(op)
    }
}

impl Term {
    fn is_about(&self, op: &Op) -> bool {
        match self {
            Term::Op(node) => {
                let other = node.op.name() == op.name() && !node.op.same(op);
                !other && node.operands.iter().all(|term| term.is_about(op))
            }
            Term::List(_, items) => items.iter().all(|term| term.is_about(op)),
            Term::Variable(..) | Term::Rest(..) | Term::Constant(..) | Term::Compute(..) => true,
        }
    }
}

/// A term over op rows.
#[derive(Clone, Debug)]
pub enum Term {
    /// A variable with the types it may have.
    Variable(Arc<str>, Type),
    /// Any number of operands or elements; on the right perhaps only those between two bounds, with a step.
    Rest(Arc<str>, Type, Option<Arc<[Expr; 3]>>),
    /// An op with all its arguments.
    Op(Box<OpNode>),
    /// A list of elements of a type.
    List(Type, Vec<Term>),
    /// A constant.
    Constant(Type, Option<Attr>),
    /// Arithmetic on constants.
    Compute(Expr, Type),
}

/// An op with all its arguments.
#[derive(Clone, Debug)]
pub struct OpNode {
    /// The row.
    pub op: Op,
    /// Attributes.
    pub attributes: Vec<(Symbol, Term)>,
    /// Operands in schema order.
    pub operands: Vec<Term>,
    /// Results of nested blocks.
    pub blocks: Vec<Vec<Term>>,
    /// Which of several results is meant.
    pub result: Option<usize>,
    /// Name of the matched term.
    pub bound: Option<Arc<str>>,
    /// The type of the result.
    pub ty: Type,
}

impl OpNode {
    /// The op as text; `all` writes terms down, those that come to nothing left out.
    pub(in crate::rewrite) fn text(&self, all: &dyn Fn(&[Term]) -> Vec<String>) -> String {
        let mut text = format!("{}({})", self.op.name(), all(&self.operands).join(", "));
        for block in &self.blocks {
            text += &format!(" {{ {} }}", all(block).join(", "));
        }
        match self.result {
            Some(n) => format!("{text}.{n}"),
            None => text,
        }
    }
}

/// Types of variables by name.
pub(in crate::rewrite) type Types = IndexMap<String, Type>;

/// A term read in one way, with what that says of the variables.
pub(super) type Reading = (Term, Types);
