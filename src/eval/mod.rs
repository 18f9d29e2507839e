//! The reference evaluator: what an op means, slow and plain. Folding, rule checking, the interpreter and
//! tests use it. It knows op rows, values and tensors; it does not know graphs' passes or how code is compiled.

mod call;

pub use call::call;
