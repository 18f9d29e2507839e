//! Registers of code, and where steps take operands from. Knows no step.

/// A register of a frame.
pub(in crate::runtime) type Register = u32;

/// The op of a step that was made for none: the return from a function.
pub(in crate::runtime) const NO_OP: u32 = u32::MAX;

/// The destination of unused results.
pub(in crate::runtime) const NOWHERE: Register = u32::MAX;

/// Where a step takes an operand from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::runtime) enum Operand {
    /// A register that is used again.
    Keep(Register),
    /// A register whose last use this is.
    Take(Register),
    /// A constant of the code.
    Constant(u32),
}
