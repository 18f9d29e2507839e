//! The e-graph: a function enters it, rules match and add to it until nothing is new or a budget is spent, and what they did
//! is recorded where it is asked for.

pub(super) mod agenda;
pub(super) mod enter;
pub(super) mod language;
pub(super) mod matching;
pub(super) mod saturate;
pub(super) mod trace;
