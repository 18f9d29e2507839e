//! Which types are below which, and what covers several: the names by which both are used. It defines nothing itself.

mod order;

pub use super::unify::union;
pub(super) use order::can_hold_numbers;
pub use order::{Hierarchy, NoClasses, is_subtype_of, merge_tensors, why_not_subtype};
