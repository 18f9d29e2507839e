//! Lists: access, growth, parts. What compares elements (sorting, searching, extremes) is in `order`.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{Known, Operands, lists};
use crate::dialects::{Args, OpDef, Outputs, container, host, one};
use crate::ir::{Dim, Type};
use crate::resources::{budget, memory};
use crate::value::{List, Value};
use num_complex::Complex64;
use smallvec::SmallVec;

/// No list that an op makes from a count is longer; a program asking for more gets an error.
pub(super) const MAX_ITEMS: usize = 1 << 28;

/// The rows.
pub static OPS: &[OpDef] = &[
    container("aten::len.t(t[] a) -> int", |a| one(a.list(0)?.len() as i64)).doc("the number of elements"),
    container("aten::len.any(Any[] a) -> int", |a| one(a.list(0)?.len() as i64))
        .doc("the number of elements"),
    container("aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)", append)
        .doc("adds an element at the end"),
    container("aten::extend.t(t[](a!) self, t[] other) -> ()", extend)
        .doc("adds the elements of another list"),
    container("aten::insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()", insert)
        .doc("puts an element before another"),
    container("aten::pop.t(t[](a!) self, int idx=-1) -> t(*)", pop).doc("takes an element out"),
    container("aten::Delete.t(t[](a!) self, int idx) -> ()", delete).doc("removes an element"),
    container("aten::clear.t(t[](a!) self) -> ()", clear).doc("removes all elements"),
    container("aten::reverse.t(t[](a!) self) -> ()", reverse).doc("reverses the list in place"),
    container("aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)", set_item)
        .doc("replaces an element"),
    container("aten::__getitem__.t(t[](a) list, int idx) -> t(*)", get_item).doc("an element"),
    container("aten::select.t(t[](a) list, int idx) -> t(*)", get_item).doc("an element"),
    container("aten::slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]", slice)
        .infer(|operands| sliced(operands).or_else(|| lists::some(operands)))
        .doc("every step-th element of a range, as a new list"),
    container("aten::copy.t(t[](a) self) -> t[]", copy)
        .infer(lists::same)
        .doc("a new list of the same elements"),
    container("aten::list.t(t[] l) -> t[]", copy).infer(lists::same).doc("a new list of the same elements"),
    container("aten::add.t(t[] a, t[] b) -> t[]", add)
        .infer(lists::joined)
        .doc("a new list of the elements of both"),
    container("aten::add_.t(t[](a!) self, t[] b) -> t[]", add_in_place)
        .doc("adds the elements of another list"),
    container("aten::mul.left_t(t[] l, int n) -> t[]", |a| repeated(a, 0, 1))
        .infer(lists::some)
        .doc("a new list of the elements n times"),
    container("aten::mul.right_(int n, t[] l) -> t[]", |a| repeated(a, 1, 0))
        .infer(lists::some)
        .doc("a new list of the elements n times"),
    container("aten::mul_.t(t[](a!) l, int n) -> t[](a!)", mul_in_place).doc("repeats the elements in place"),
    container("aten::Size(int[] sizes) -> int[]", |a| one(Value::List(a.list(0)?.clone())))
        .doc("the same list, seen as sizes"),
    container("prim::rangelist(int n) -> int[]", range_list).doc("the numbers below n"),
    host("aten::sum.int(int[] self) -> int", sum_int).doc("the sum"),
    host("aten::sum.float(float[] self) -> float", sum_float).doc("the sum"),
    host("aten::sum.complex(complex[] self) -> complex", sum_complex).doc("the sum"),
    host("aten::sum.bool(bool[] self) -> int", sum_int).doc("how many are True"),
    host("aten::all.int(int[] self) -> bool", |a| test(a, true)).doc("whether no element is zero"),
    host("aten::all.float(float[] self) -> bool", |a| test(a, true)).doc("whether no element is zero"),
    host("aten::all.bool(bool[] self) -> bool", |a| test(a, true))
        .infer(lists::all)
        .doc("whether all elements are True"),
    host("aten::any.str(str[] self) -> bool", |a| test(a, false)).doc("whether some text is not empty"),
    host("aten::any.int(int[] self) -> bool", |a| test(a, false)).doc("whether some element is not zero"),
    host("aten::any.float(float[] self) -> bool", |a| test(a, false)).doc("whether some element is not zero"),
    host("aten::any.bool(bool[] self) -> bool", |a| test(a, false))
        .infer(lists::any)
        .doc("whether some element is True"),
];

/// No results.
pub(super) fn nothing() -> Result<Outputs> {
    Ok(SmallVec::new())
}

/// The place an index means, negative ones counted from the end.
pub(in crate::dialects) fn place(index: i64, len: usize) -> Option<usize> {
    let at = if index < 0 { index.checked_add(len as i64)? } else { index };
    usize::try_from(at).ok().filter(|at| *at < len)
}

fn out_of_range() -> Diagnostic {
    Diagnostic::runtime("list index out of range")
}

fn same_list(args: &Args<'_>) -> Result<Outputs> {
    one(Value::List(args.list(0)?.clone()))
}

fn append(args: &Args<'_>) -> Result<Outputs> {
    args.list(0)?.items_mut().push(args.value(1)?.clone());
    same_list(args)
}

fn extend(args: &Args<'_>) -> Result<Outputs> {
    // Copied first: a list may be extended by itself.
    let list = args.list(0)?;
    check_len(list.len().saturating_add(args.list(1)?.len()))?;
    let other = args.list(1)?.to_vec();
    list.items_mut().extend(other);
    nothing()
}

fn insert(args: &Args<'_>) -> Result<Outputs> {
    let mut items = args.list(0)?.items_mut();
    let (index, len) = (args.int(1)?, items.len() as i64);
    let at = if index < 0 { index.saturating_add(len) } else { index }.clamp(0, len);
    items.insert(at as usize, args.value(2)?.clone());
    nothing()
}

fn pop(args: &Args<'_>) -> Result<Outputs> {
    let mut items = args.list(0)?.items_mut();
    if items.is_empty() {
        return Err(Diagnostic::runtime("pop from empty list"));
    }
    let at = place(args.int(1)?, items.len()).ok_or_else(out_of_range)?;
    one(items.remove(at))
}

fn delete(args: &Args<'_>) -> Result<Outputs> {
    let mut items = args.list(0)?.items_mut();
    if items.is_empty() {
        return Err(Diagnostic::runtime("pop index out of range"));
    }
    let at = place(args.int(1)?, items.len()).ok_or_else(out_of_range)?;
    items.remove(at);
    nothing()
}

fn clear(args: &Args<'_>) -> Result<Outputs> {
    args.list(0)?.items_mut().clear();
    nothing()
}

fn reverse(args: &Args<'_>) -> Result<Outputs> {
    args.list(0)?.items_mut().reverse();
    nothing()
}

fn set_item(args: &Args<'_>) -> Result<Outputs> {
    let mut items = args.list(0)?.items_mut();
    let at = place(args.int(1)?, items.len()).ok_or_else(out_of_range)?;
    *items.get_mut(at).ok_or_else(out_of_range)? = args.value(2)?.clone();
    drop(items);
    same_list(args)
}

fn get_item(args: &Args<'_>) -> Result<Outputs> {
    let items = args.list(0)?.items();
    let at = place(args.int(1)?, items.len());
    one(at.and_then(|at| items.get(at)).ok_or_else(out_of_range)?.clone())
}

/// The places that `[start:end:step]` picks of `len`, in order.
pub(super) fn slice_places(
    len: usize,
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
) -> Result<impl Iterator<Item = usize>> {
    if step == 0 {
        return Err(Diagnostic::runtime("List slice should have non-zero step"));
    }
    if step == i64::MIN {
        return Err(Diagnostic::runtime("List slice step is out of bounds"));
    }
    // The largest int stands for a bound that is left out.
    let (start, end) = (start.filter(|x| *x != i64::MAX), end.filter(|x| *x != i64::MAX));
    let len = len as i64;
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clamp = |x: i64| if x < 0 { x.saturating_add(len).max(low) } else { x.min(high) };
    let (first, last) = if step > 0 { (low, high) } else { (high, low) };
    let (start, end) = (start.map_or(first, clamp), end.map_or(last, clamp));
    let distance = if step > 0 { end - start } else { start - end };
    let count = if distance <= 0 { 0 } else { (distance as u64 - 1) / step.unsigned_abs() + 1 };
    Ok((0..count).filter_map(move |n| usize::try_from(start + step.wrapping_mul(n as i64)).ok()))
}

fn slice(args: &Args<'_>) -> Result<Outputs> {
    let list = args.list(0)?;
    let items = list.items();
    let places = slice_places(items.len(), args.opt_int(1)?, args.opt_int(2)?, args.int(3)?)?;
    let picked = places.filter_map(|at| items.get(at).cloned()).collect();
    one(Value::list(list.element_type().clone(), picked))
}

/// What is known of a slice of a list of known length between known bounds.
fn sliced(operands: &Operands<'_>) -> Option<Vec<Known>> {
    let bound = |name: &str| match operands.get(name)? {
        Known::None => Some(None),
        Known::Int(Dim::Known(n)) => Some(Some(*n)),
        _ => None,
    };
    let places = |len: usize| slice_places(len, bound("start")?, bound("end")?, operands.int("step")?).ok();
    Some(vec![match operands.at(0)? {
        Known::Ints(dims) => {
            Known::Ints(places(dims.len())?.filter_map(|at| dims.get(at).copied()).collect())
        }
        Known::Items(items) => {
            Known::items(places(items.len())?.filter_map(|at| items.get(at).cloned()).collect())
        }
        _ => return None,
    }])
}

fn copy(args: &Args<'_>) -> Result<Outputs> {
    one(fresh(args.list(0)?, args.list(0)?.to_vec()))
}

/// A new list with the element type of another.
pub(super) fn fresh(like: &List, items: Vec<Value>) -> Value {
    Value::list(like.element_type().clone(), items)
}

fn add(args: &Args<'_>) -> Result<Outputs> {
    let (a, b) = (args.list(0)?, args.list(1)?);
    check_len(a.len().saturating_add(b.len()))?;
    let mut items = a.to_vec();
    items.extend(b.to_vec());
    one(fresh(a, items))
}

fn add_in_place(args: &Args<'_>) -> Result<Outputs> {
    extend(args)?;
    same_list(args)
}

/// Fails where a list of `count` elements is too long or does not fit the run's memory.
fn check_len(len: usize) -> Result<()> {
    if len > MAX_ITEMS {
        return Err(Diagnostic::runtime(format!("a list of {len} elements is too long")));
    }
    budget::expect_room(len.saturating_mul(size_of::<Value>()))
}

/// The elements `count` times.
fn times(list: &List, count: i64) -> Result<Vec<Value>> {
    let count = usize::try_from(count).unwrap_or(0);
    check_len(list.len().saturating_mul(count))?;
    let items = list.to_vec();
    let mut out = memory::vec_reserved(items.len() * count)?;
    if !items.is_empty() {
        (0..count).for_each(|_| out.extend_from_slice(&items));
    }
    Ok(out)
}

fn repeated(args: &Args<'_>, list: usize, count: usize) -> Result<Outputs> {
    let (list, count) = (args.list(list)?, args.int(count)?);
    if count < 0 && !list.is_empty() {
        // PyTorch's message, which is that of its container library.
        return Err(Diagnostic::runtime("vector::reserve"));
    }
    one(fresh(list, times(list, count)?))
}

fn mul_in_place(args: &Args<'_>) -> Result<Outputs> {
    let list = args.list(0)?;
    let items = times(list, args.int(1)?)?;
    *list.items_mut() = items;
    same_list(args)
}

fn range_list(args: &Args<'_>) -> Result<Outputs> {
    let n = args.int(0)?.max(0);
    check_len(usize::try_from(n).unwrap_or(usize::MAX))?;
    one(Value::list(Type::int(), (0..n).map(Value::Int).collect()))
}

/// PyTorch adds up in 32 bits.
fn sum_int(args: &Args<'_>) -> Result<Outputs> {
    let items = args.list(0)?.items();
    let mut sum = 0i32;
    for item in items.iter() {
        sum = sum.wrapping_add(item.to_int()? as i32);
    }
    one(i64::from(sum))
}

fn sum_float(args: &Args<'_>) -> Result<Outputs> {
    let items = args.list(0)?.items();
    let mut sum = 0.0;
    for item in items.iter() {
        sum += item.to_float()?;
    }
    one(sum)
}

fn sum_complex(args: &Args<'_>) -> Result<Outputs> {
    let items = args.list(0)?.items();
    let mut sum = Complex64::new(0.0, 0.0);
    for item in items.iter() {
        sum += item.to_scalar()?.to_complex();
    }
    one(Value::Complex(sum))
}

/// Whether all elements (`all`) or some are true.
fn test(args: &Args<'_>, all: bool) -> Result<Outputs> {
    let items = args.list(0)?.items();
    for item in items.iter() {
        let truth = match item {
            Value::Str(text) => !text.is_empty(),
            number => number.to_scalar()?.to_bool(),
        };
        if truth != all {
            return one(truth);
        }
    }
    one(all)
}
