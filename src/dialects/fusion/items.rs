//! Lists as values: what `functionalize-lists` puts in the place of ops that write to a list, and what gradients of lists are
//! made of. None of these ops writes to what it is given.

use crate::diag::{Diagnostic, Result};
use crate::dialects::aten::list::place;
use crate::dialects::shapes::lists;
use crate::dialects::{Args, OpDef, Outputs, container, one};
use crate::ir::Type;
use crate::value::{List, Value};

/// A list with another item in a place.
pub const SET_ITEM: &str = "fusion::set_item";

/// A list without an item, as `pop` leaves it.
pub const DROP_ITEM: &str = "fusion::drop_item";

/// A list from its last item to its first.
pub const REVERSED: &str = "fusion::reversed";

/// The rows.
pub static OPS: &[OpDef] = &[
    container("fusion::set_item(t[] l, int idx, t(b -> *) el) -> t[]", set_item)
        .infer(lists::replaced)
        .doc("A new list of the elements of another, one of them replaced; what `_set_item` leaves."),
    container("fusion::drop_item(t[] l, int idx) -> t[]", drop_item)
        .infer(lists::some)
        .doc("A new list of the elements of another without one of them; what `pop` leaves."),
    container("fusion::reversed(t[] l) -> t[]", reversed)
        .infer(lists::some)
        .doc("A new list of the elements of another in reverse order; what `reverse` leaves."),
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

fn drop_item(args: &Args<'_>) -> Result<Outputs> {
    let list = args.list(0)?;
    let mut items = list.to_vec();
    if items.is_empty() {
        return Err(Diagnostic::runtime("pop from empty list"));
    }
    let at = place(args.int(1)?, items.len()).filter(|at| *at < items.len());
    items.remove(at.ok_or_else(|| Diagnostic::runtime("list index out of range"))?);
    one(Value::list(list.element_type().clone(), items))
}

fn reversed(args: &Args<'_>) -> Result<Outputs> {
    let list = args.list(0)?;
    let mut items = list.to_vec();
    items.reverse();
    one(Value::list(list.element_type().clone(), items))
}

fn optional_items(args: &Args<'_>) -> Result<Outputs> {
    let list: &List = args.list(0)?;
    let element = Type::optional(list.element_type().without_none().clone());
    one(Value::list(element, list.to_vec()))
}
