//! How thoroughly a rule is checked, and what the check finds. Checks nothing.

use super::compare::differ_by_rounding;
use crate::diag::Diagnostic;
use crate::value::Value;
use std::sync::Arc;

/// How thoroughly a rule is checked.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Valid instances.
    pub samples: usize,
    /// Scalar rules: how many instances of the exhaustive search over 8 bits at most.
    pub exhaustive: usize,
    /// Ops run, at most, in search of valid instances.
    pub evaluations: u64,
    /// Which random instances: another number, others.
    pub seed: u64,
}

impl Effort {
    /// With other random instances.
    pub fn seed(self, seed: u64) -> Effort {
        Effort { seed, ..self }
    }

    /// A number of valid instances, and the search that goes with them.
    pub fn samples(samples: usize) -> Effort {
        Effort { samples, exhaustive: 70_000, evaluations: 40_000 + 400 * samples as u64, seed: 0 }
    }
}

/// What the check found.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// No counterexample in this many valid instances.
    Sound {
        /// Valid instances.
        instances: usize,
    },
    /// An instance on which the sides differ.
    Refuted(Box<Counterexample>),
    /// No instance on which the left side has a value and the conditions hold.
    Untestable {
        /// Why, as far as it is known.
        reason: String,
    },
}

/// An instance on which a rule lies.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// Values of the variables, in the order of the rule's text.
    pub variables: Vec<(Arc<str>, Value)>,
    /// The left side's value.
    pub left: Value,
    /// The right side's, or what it raises.
    pub right: Result<Value, Diagnostic>,
    /// Variables that the sides leave with different values, after both sides: where a side writes.
    pub after: Vec<(Arc<str>, Value, Value)>,
    /// Variables that share memory, where a side writes.
    pub shared: Vec<Arc<str>>,
}

impl Counterexample {
    /// How little it says: a right side that raises says less than one with another value, and tensors without
    /// elements or with other strides are seldom what is wrong.
    pub(super) fn oddness(&self) -> u32 {
        let values = || self.variables.iter().map(|(_, v)| v).chain([&self.left]);
        let empty = values().any(|v| matches!(v, Value::Tensor(t) if t.numel() == 0));
        let strided = values().any(|v| matches!(v, Value::Tensor(t) if !t.is_contiguous()));
        // Different rounding is the least significant difference: other libraries round differently.
        let rounding = self.after.is_empty()
            && self.right.as_ref().is_ok_and(|right| differ_by_rounding(&self.left, right));
        u32::from(self.right.is_err()) * 2
            + u32::from(empty) * 4
            + u32::from(strided)
            + u32::from(rounding) * 8
            + u32::from(!self.shared.is_empty())
    }
}
