//! Special functions in float64, from their series, recurrences and integrals; the rows stand in `special.rs`.
//! They know numbers only.

pub mod bessel;
pub mod cylinder;
pub mod error;
pub mod gamma;
pub mod polynomial;

/// Rounds to the precision that a step is taken in.
pub type Rounding = fn(f64) -> f64;
