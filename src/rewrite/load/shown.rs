//! Constants as rules and explanations show them.

use crate::ir::Attr;

/// An attribute as text.
pub(in crate::rewrite) fn attr_text(attr: &Attr) -> String {
    match attr {
        Attr::Int(x) => x.to_string(),
        Attr::Bool(x) => x.to_string(),
        Attr::Float(x) => format!("{x:?}"),
        Attr::Str(x) => format!("{x:?}"),
        Attr::Tensor(t) => format!("<{} {:?}>", t.dtype().name(), t.sizes()),
        other => format!("{other:?}"),
    }
}
