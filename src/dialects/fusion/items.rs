//! Lists as values: what `functionalize-lists` puts in the place of ops that write to a list, and what gradients of lists are
//! made of. None of these ops writes to what it is given.

use crate::diag::{Diagnostic, Result};
use crate::dialects::aten::list::place;
use crate::dialects::{Args, OpDef, Outputs, container, one};
use crate::ir::Type;
use crate::value::{List, Value};

/// A list with another item in a place.
pub const SET_ITEM: &str = "fusion::set_item";

/// The rows.
pub static OPS: &[OpDef] = &[
    container("fusion::set_item(t[] l, int idx, t(b -> *) el) -> t[]", set_item)
        .doc("A new list of the elements of another, one of them replaced; what `_set_item` leaves."),
    container("fusion::optional_items(t[] l) -> t?[]", optional_items)
        .doc("A new list of the same elements, any of which may be None by its type."),
];

fn set_item(args: &Args<'_>) -> Result<Outputs> {
    let list = args.list(0)?;
    let mut items = list.to_vec();
    let out_of_range = || Diagnostic::runtime("list index out of range");
    let at = place(args.int(1)?, items.len()).ok_or_else(out_of_range)?;
    *items.get_mut(at).ok_or_else(out_of_range)? = args.value(2)?.clone();
    one(Value::list(list.element_type().clone(), items))
}

fn optional_items(args: &Args<'_>) -> Result<Outputs> {
    let list: &List = args.list(0)?;
    let element = Type::optional(list.element_type().without_none().clone());
    one(Value::list(element, list.to_vec()))
}
