//! Special functions in float64, from their series, recurrences and integrals; the rows stand in `special.rs`.
//! They know numbers only.

pub mod bessel;
pub mod error;
pub mod gamma;
pub mod polynomial;
