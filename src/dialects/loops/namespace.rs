//! Which ops belong to the dialect, by their names alone.

use crate::ir::Symbol;

/// The dialect's namespace.
pub const NAMESPACE: &str = "loop";

/// Whether an op kind belongs to the dialect.
pub fn is_loop_kind(kind: Symbol) -> bool {
    kind.namespace() == NAMESPACE
}
