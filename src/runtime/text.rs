//! Types and schemas as messages show them.

use crate::ir::{Schema, Type};

/// A type as Python annotations write it: `List[int]`.
pub(super) fn annotation(ty: &Type) -> String {
    format!("{ty:?}")
}

/// A schema's declaration: `f(int n, str[] xs) -> int`.
pub(super) fn schema(schema: &Schema) -> String {
    format!("{}", schema.name)
}
