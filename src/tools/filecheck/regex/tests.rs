//! Matching.
