//! What compares values: searching, counting and sorting lists, the least and the greatest, `is`, `==` of lists.

use super::list::{fresh, nothing};
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes;
use crate::dialects::{Args, Fact, Given, OpDef, Outputs, Run, container, host, one};
use crate::ir::TypeKind;
use crate::tensor::{Scalar, Tensor};
use crate::value::Value;
use crate::value::bytes::bytes;
use hashbrown::HashSet;
use std::cmp::Ordering;

/// Tuples nested deeper than this are not compared.
const MAX_DEPTH: usize = 64;

/// Lists up to this length are sorted as PyTorch's library sorts them, which shows where elements are
/// neither less nor greater (NaN).
const SHORT: usize = 16;

/// The rows.
pub static OPS: &[OpDef] = &[
    host("aten::eq.int_list(int[] a, int[] b) -> bool", |a| one(same_items(a)?)),
    host("aten::eq.float_list(float[] a, float[] b) -> bool", |a| one(same_items(a)?)),
    host("aten::eq.Tensor_list(Tensor[] a, Tensor[] b) -> bool", |a| one(same_items(a)?)),
    host("aten::eq.bool_list(bool[] a, bool[] b) -> bool", |a| one(same_items(a)?)),
    host("aten::eq.str_list(str[] a, str[] b) -> bool", |a| one(same_items(a)?)),
    host("aten::eq.device(Device a, Device b) -> bool", |a| one(a.value(0)?.is_same(a.value(1)?))),
    host("aten::eq.enum(AnyEnumType a, AnyEnumType b) -> bool", |a| one(same_member(a)?)),
    host("aten::eq.str(str a, str b) -> bool", |a| one(a.str(0)? == a.str(1)?))
        .facts(&[Fact::Negates("aten::ne"), Fact::Reflexive(Given::Truth(true))]),
    host("aten::ne.int_list(int[] a, int[] b) -> bool", |a| one(!same_items(a)?)),
    host("aten::ne.float_list(float[] a, float[] b) -> bool", |a| one(!same_items(a)?)),
    host("aten::ne.Tensor_list(Tensor[] a, Tensor[] b) -> bool", |a| one(!same_items(a)?)),
    host("aten::ne.bool_list(bool[] a, bool[] b) -> bool", |a| one(!same_items(a)?)),
    host("aten::ne.str_list(str[] a, str[] b) -> bool", |a| one(!same_items(a)?)),
    host("aten::ne.device(Device a, Device b) -> bool", |a| one(!a.value(0)?.is_same(a.value(1)?))),
    host("aten::ne.enum(AnyEnumType a, AnyEnumType b) -> bool", |a| one(!same_member(a)?)),
    host("aten::ne.str(str a, str b) -> bool", |a| one(a.str(0)? != a.str(1)?))
        .facts(&[Fact::Negates("aten::eq"), Fact::Reflexive(Given::Truth(false))]),
    host("aten::lt.str(str a, str b) -> bool", |a| one(a.str(0)? < a.str(1)?))
        .facts(&[Fact::Negates("aten::ge"), Fact::Reflexive(Given::Truth(false))]),
    host("aten::le.str(str a, str b) -> bool", |a| one(a.str(0)? <= a.str(1)?))
        .facts(&[Fact::Negates("aten::gt"), Fact::Reflexive(Given::Truth(true))]),
    host("aten::gt.str(str a, str b) -> bool", |a| one(a.str(0)? > a.str(1)?))
        .facts(&[Fact::Negates("aten::le"), Fact::Reflexive(Given::Truth(false))]),
    host("aten::ge.str(str a, str b) -> bool", |a| one(a.str(0)? >= a.str(1)?))
        .facts(&[Fact::Negates("aten::lt"), Fact::Reflexive(Given::Truth(true))]),
    host("aten::__is__(t1 self, t2 obj) -> bool", |a| one(a.value(0)?.is_same(a.value(1)?)))
        .infer(|operands| shapes::identity(operands, true))
        .facts(&[Fact::Metadata, Fact::Nested, Fact::Compares, Fact::Negates("aten::__isnot__")])
        .doc("whether two values are the same object"),
    host("aten::__isnot__(t1 self, t2 obj) -> bool", |a| one(!a.value(0)?.is_same(a.value(1)?)))
        .infer(|operands| shapes::identity(operands, false))
        .facts(&[Fact::Metadata, Fact::Nested, Fact::Compares, Fact::Negates("aten::__is__")])
        .doc("whether two values are different objects"),
    host("aten::__contains__.int_list(int[] l, int item) -> bool", |a| one(find(a)?.is_some())),
    host("aten::__contains__.str_list(str[] l, str item) -> bool", |a| one(find(a)?.is_some())),
    host("aten::__contains__.float_list(float[] l, float item) -> bool", |a| one(find(a)?.is_some())),
    host("aten::count.int(int[] self, int el) -> int", count),
    host("aten::count.float(float[] self, float el) -> int", count),
    host("aten::count.bool(bool[] self, bool el) -> int", count),
    host("aten::count.Tensor(Tensor[] self, Tensor el) -> int", count),
    host("aten::count.str(str[] self, str el) -> int", count),
    host("aten::index.list_int(int[] self, int el) -> int", index),
    host("aten::index.list_float(float[] self, float el) -> int", index),
    host("aten::index.list_bool(bool[] self, bool el) -> int", index),
    host("aten::index.list_Tensor(Tensor[] self, Tensor el) -> int", index),
    host("aten::index.list_str(str[] self, str el) -> int", index),
    container("aten::remove.int(int[](a!) self, int el) -> ()", remove),
    container("aten::remove.float(float[](a!) self, float el) -> ()", remove),
    container("aten::remove.bool(bool[](a!) self, bool el) -> ()", remove),
    container("aten::remove.Tensor(Tensor[](a!) self, Tensor el) -> ()", remove),
    container("aten::remove.str(str[](a!) self, str el) -> ()", remove),
    container("aten::sort.int(int[](a!) self, bool reverse=False) -> ()", sort),
    container("aten::sort.float(float[](a!) self, bool reverse=False) -> ()", sort),
    container("aten::sort.Tensor(Tensor[](a!) self, bool reverse=False) -> ()", sort),
    container("aten::sort.bool(bool[](a!) self, bool reverse=False) -> ()", sort),
    container("aten::sort.str(str[](a!) self, bool reverse=False) -> ()", sort),
    container("aten::sort.any(t[](a!) self, bool reverse=False) -> ()", sort_any),
    container("aten::sorted.int(int[](a) input) -> int[]", sorted),
    container("aten::sorted.float(float[](a) input) -> float[]", sorted),
    container("aten::sorted.Tensor(Tensor[](a) input) -> Tensor[]", sorted),
    container("aten::sorted.bool(bool[](a) input) -> bool[]", sorted),
    container("aten::sorted.str(str[](a) input) -> str[]", sorted),
    container("aten::sorted.any(t[](a) self) -> t[]", sorted_any),
    container("prim::max.int_list(int[] l, int[] r) -> int[]", |a| extreme_list(a, Ordering::Greater)),
    container("prim::max.float_list(float[] l, float[] r) -> float[]", |a| {
        extreme_list(a, Ordering::Greater)
    }),
    container("prim::max.bool_list(bool[] l, bool[] r) -> bool[]", |a| extreme_list(a, Ordering::Greater)),
    host("prim::max.self_int(int[] self) -> int", |a| extreme(a, Ordering::Greater)),
    host("prim::max.self_float(float[] self) -> float", |a| extreme(a, Ordering::Greater)),
    host("prim::max.self_bool(bool[] self) -> bool", |a| extreme(a, Ordering::Greater)),
    container("prim::min.int_list(int[] l, int[] r) -> int[]", |a| extreme_list(a, Ordering::Less)),
    container("prim::min.float_list(float[] l, float[] r) -> float[]", |a| extreme_list(a, Ordering::Less)),
    container("prim::min.bool_list(bool[] l, bool[] r) -> bool[]", |a| extreme_list(a, Ordering::Less)),
    host("prim::min.self_int(int[] self) -> int", |a| extreme(a, Ordering::Less)),
    host("prim::min.self_float(float[] self) -> float", |a| extreme(a, Ordering::Less)),
    host("prim::min.self_bool(bool[] self) -> bool", |a| extreme(a, Ordering::Less)),
];

/// Whether two members of enum classes are the same one.
fn same_member(args: &Args<'_>) -> Result<bool> {
    match (args.value(0)?, args.value(1)?) {
        (Value::Enum(a), Value::Enum(b)) => Ok(a == b),
        (a, b) => Ok(a.is_same(b)),
    }
}

/// Whether `a == b` holds for two tensors that broadcast to one element; for others its truth is ambiguous.
fn compare_tensors(a: &Tensor, b: &Tensor, test: fn(Ordering) -> bool) -> Result<bool> {
    let numel = crate::tensor::broadcast_sizes(&a.sizes(), &b.sizes())?
        .iter()
        .fold(1i64, |n, size| n.saturating_mul(*size));
    match numel {
        1 => {}
        0 => return Err(Diagnostic::runtime("Boolean value of Tensor with no values is ambiguous")),
        _ => {
            return Err(Diagnostic::runtime("Boolean value of Tensor with more than one value is ambiguous"));
        }
    }
    let (x, y) = in_common_dtype(a, b)?;
    Ok(match (x, y) {
        (Scalar::Complex(x), y) => x == y.to_complex() && test(Ordering::Equal),
        (x, Scalar::Complex(y)) => y == x.to_complex() && test(Ordering::Equal),
        (Scalar::Int(x), Scalar::Int(y)) => test(x.cmp(&y)),
        (x, y) => x.to_f64().partial_cmp(&y.to_f64()).is_some_and(test),
    })
}

/// The one element of each, both converted to the dtype in which the comparison is made.
fn in_common_dtype(a: &Tensor, b: &Tensor) -> Result<(Scalar, Scalar)> {
    use crate::tensor::{Operand, result_type};
    let dtype = result_type(&[Operand::Tensor(a.clone()), Operand::Tensor(b.clone())])
        .ok_or_else(|| Diagnostic::internal("a result type of two operands"))?;
    Ok((a.to_dtype(dtype)?.item()?, b.to_dtype(dtype)?.item()?))
}

/// `a == b` as lists and tuples compare their elements.
fn equal(a: &Value, b: &Value) -> Result<bool> {
    equal_in(a, b, 0, &mut HashSet::new())
}

/// Inside of tuples. `known` holds the pairs of tuples found equal, by identity: tuples may share parts.
fn equal_in(a: &Value, b: &Value, depth: usize, known: &mut HashSet<(usize, usize)>) -> Result<bool> {
    match (a, b) {
        (Value::Tensor(x), Value::Tensor(y)) => compare_tensors(x, y, Ordering::is_eq),
        (Value::Str(x), Value::Str(y)) => Ok(x == y),
        (Value::Tuple(x), Value::Tuple(y)) => {
            if depth > MAX_DEPTH {
                return Err(Diagnostic::runtime("tuples are nested too deeply to compare"));
            }
            if x.items().len() != y.items().len() {
                return Ok(false);
            }
            if depth > 0 && known.contains(&(x.id(), y.id())) {
                return Ok(true);
            }
            for (x, y) in x.items().iter().zip(y.items()) {
                if !equal_in(x, y, depth + 1, known)? {
                    return Ok(false);
                }
            }
            if depth > 0 {
                known.insert((x.id(), y.id()));
            }
            Ok(true)
        }
        (Value::Enum(x), Value::Enum(y)) => Ok(x == y),
        _ => Ok(a.is_same(b)),
    }
}

fn same_items(args: &Args<'_>) -> Result<bool> {
    let (a, b) = (args.list(0)?, args.list(1)?);
    // A list equals itself, NaN or not; of tensors the elements are asked.
    if a.same(b) && !a.element_type().is_tensor() {
        return Ok(true);
    }
    let (a, b) = (a.to_vec(), b.to_vec());
    if a.len() != b.len() {
        return Ok(false);
    }
    for (x, y) in a.iter().zip(&b) {
        if !equal(x, y)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Where the second argument stands in the first.
fn find(args: &Args<'_>) -> Result<Option<usize>> {
    let (items, wanted) = (args.list(0)?.to_vec(), args.value(1)?);
    for (n, item) in items.iter().enumerate() {
        if equal(item, wanted)? {
            return Ok(Some(n));
        }
    }
    Ok(None)
}

fn count(args: &Args<'_>) -> Result<Outputs> {
    let (items, wanted) = (args.list(0)?.to_vec(), args.value(1)?);
    let mut n = 0i64;
    for item in &items {
        n += i64::from(equal(item, wanted)?);
    }
    one(n)
}

fn index(args: &Args<'_>) -> Result<Outputs> {
    match find(args)? {
        Some(at) => one(at as i64),
        None => {
            // As a C++ stream shows the value: bools as digits, floats with six digits.
            let text = match args.value(1)? {
                Value::Bool(b) => i64::from(*b).to_string(),
                Value::Float(x) => {
                    let mut text = String::new();
                    crate::ir::text::number::write_general(&mut text, *x, 6);
                    text
                }
                // With the name that Python has for the type.
                other @ Value::Tensor(_) => match other.to_text().rsplit_once("[ CPU") {
                    Some((rows, kind)) => format!("{rows}[ torch.{}", kind.replacen("Type{", "Tensor{", 1)),
                    None => other.to_text(),
                },
                other => other.to_text(),
            };
            Err(Diagnostic::runtime(format!("'{text}' is not in list")))
        }
    }
}

fn remove(args: &Args<'_>) -> Result<Outputs> {
    let at = find(args)?.ok_or_else(|| Diagnostic::runtime("list.remove(x): x not in list"))?;
    let mut items = args.list(0)?.items_mut();
    if at < items.len() {
        items.remove(at);
    }
    nothing()
}

/// `a < b`. Objects are asked by their `__lt__`.
fn less(a: &Value, b: &Value, run: &Run, depth: usize) -> Result<bool> {
    match (a, b) {
        (Value::Tensor(x), Value::Tensor(y)) => compare_tensors(x, y, Ordering::is_lt),
        (Value::Str(x), Value::Str(y)) => Ok(bytes(x) < bytes(y)),
        (Value::Int(x), Value::Int(y)) => Ok(x < y),
        (Value::Bool(x), Value::Bool(y)) => Ok(!x & y),
        (Value::Float(x), Value::Float(y)) => Ok(x < y),
        (Value::Tuple(x), Value::Tuple(y)) if depth <= MAX_DEPTH => {
            for (x, y) in x.items().iter().zip(y.items()) {
                if !equal(x, y)? {
                    return less(x, y, run, depth + 1);
                }
            }
            Ok(false)
        }
        (Value::Object(x), Value::Object(_)) => {
            run.methods()?.call(x, "__lt__", std::slice::from_ref(b), run)?.to_bool()
        }
        _ => Err(Diagnostic::runtime(format!(
            "Only values of same type can be compared. Found {} and {}",
            a.ty(),
            b.ty()
        ))),
    }
}

/// Sorts by a comparison that may raise or contradict itself. Equal elements of long lists keep their order.
fn sort_by(items: Vec<Value>, before: &mut impl FnMut(&Value, &Value) -> Result<bool>) -> Result<Vec<Value>> {
    if items.len() <= SHORT {
        return insertion_sort(items, before);
    }
    let mut runs: Vec<Vec<Value>> = items.into_iter().map(|v| vec![v]).collect();
    while runs.len() > 1 {
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        let mut pairs = runs.into_iter();
        while let Some(left) = pairs.next() {
            merged.push(match pairs.next() {
                Some(right) => merge(left, right, before)?,
                None => left,
            });
        }
        runs = merged;
    }
    Ok(runs.pop().unwrap_or_default())
}

fn insertion_sort(
    mut items: Vec<Value>,
    before: &mut impl FnMut(&Value, &Value) -> Result<bool>,
) -> Result<Vec<Value>> {
    for n in 1..items.len() {
        let (sorted, rest) = items.split_at(n);
        let (Some(first), Some(item)) = (sorted.first(), rest.first()) else { break };
        let mut at = n;
        if before(item, first)? {
            at = 0;
        } else {
            while at > 0 && before(item, &sorted[at - 1])? {
                at -= 1;
            }
        }
        if let Some(part) = items.get_mut(at..=n) {
            part.rotate_right(1);
        }
    }
    Ok(items)
}

fn merge(
    left: Vec<Value>,
    right: Vec<Value>,
    before: &mut impl FnMut(&Value, &Value) -> Result<bool>,
) -> Result<Vec<Value>> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let next = if before(b, a)? { right.next() } else { left.next() };
        out.extend(next);
    }
    out.extend(left);
    out.extend(right);
    Ok(out)
}

fn sort(args: &Args<'_>) -> Result<Outputs> {
    let (list, reverse) = (args.list(0)?, args.bool(1)?);
    let sorted =
        sort_by(list.to_vec(), &mut |a, b| Ok(!equal(a, b)? && less(a, b, args.run, 0)? != reverse))?;
    *list.items_mut() = sorted;
    nothing()
}

fn sorted(args: &Args<'_>) -> Result<Outputs> {
    let list = args.list(0)?;
    one(fresh(list, sort_by(list.to_vec(), &mut |a, b| less(a, b, args.run, 0))?))
}

fn sort_any(args: &Args<'_>) -> Result<Outputs> {
    let (list, reverse) = (args.list(0)?, args.bool(1)?);
    check_sortable(&list.to_vec(), args.run)?;
    let sorted = sort_by(list.to_vec(), &mut |a, b| {
        if reverse { less(b, a, args.run, 0) } else { less(a, b, args.run, 0) }
    })?;
    *list.items_mut() = sorted;
    nothing()
}

fn sorted_any(args: &Args<'_>) -> Result<Outputs> {
    let list = args.list(0)?;
    check_sortable(&list.to_vec(), args.run)?;
    one(fresh(list, sort_by(list.to_vec(), &mut |a, b| less(a, b, args.run, 0))?))
}

/// Fails, as PyTorch does, for lists of what has no order.
fn check_sortable(items: &[Value], run: &Run) -> Result<()> {
    let Some(first) = items.first() else { return Ok(()) };
    let ty = first.ty();
    for other in items {
        if other.ty() != ty {
            return Err(Diagnostic::runtime(format!(
                "Only values of same type can be compared. Found {} and {}",
                ty.repr(),
                other.ty().repr()
            )));
        }
    }
    match first {
        Value::Tuple(tuple) => match tuple.items().iter().all(is_sortable) {
            true => Ok(()),
            false => Err(Diagnostic::runtime(format!(
                "Contained elements in {ty} are not sortable. Only Int, Bool, Float, String, Tensor, a User \
                 Defined Class with __lt__ method defined or Tuples of aforementioned types can be sorted."
            ))),
        },
        Value::Object(object) if !run.methods()?.has_order(object) => {
            let ty = ty.repr();
            Err(Diagnostic::runtime(format!(
                "To sort a list of {ty} it must define a __lt__ method with two inputs of type {ty} that returns a bool"
            )))
        }
        value if is_sortable(value) => Ok(()),
        _ => Err(Diagnostic::runtime(format!(
            "Only list of Tensors, ints, floats, bools, strs, a User Defined Class that defines the __lt__ \
             compare method or Tuples of aforementioned types can be sorted, got list of {}",
            annotation(&ty.to_string(), ty.kind())
        ))),
    }
}

/// A type as annotations spell it, where graphs spell it otherwise.
fn annotation(text: &str, kind: &TypeKind) -> String {
    match kind {
        TypeKind::List(element) => format!("List[{}]", annotation(&element.to_string(), element.kind())),
        TypeKind::Dict(key, value) => format!("Dict[{key}, {value}]"),
        _ => text.to_string(),
    }
}

/// Whether values of a type have an order. Tuples are asked by their type, in which shared parts are met once.
fn is_sortable(value: &Value) -> bool {
    use TypeKind as K;
    let mut all = value.ty().depth() <= MAX_DEPTH;
    value.ty().visit(&mut |part| {
        all &= matches!(
            part.kind(),
            K::Int | K::Bool | K::Float | K::Str | K::Tensor(_) | K::Class(_) | K::Tuple(..)
        );
        all
    });
    all
}

fn order(a: &Value, b: &Value) -> Result<Option<Ordering>> {
    Ok(match (a, b) {
        (Value::Int(x), Value::Int(y)) => Some(x.cmp(y)),
        (Value::Bool(x), Value::Bool(y)) => Some(x.cmp(y)),
        _ => a.to_float()?.partial_cmp(&b.to_float()?),
    })
}

/// The first of the least (or greatest) elements.
fn extreme(args: &Args<'_>, wanted: Ordering) -> Result<Outputs> {
    let items = args.list(0)?.items();
    let name = if wanted == Ordering::Less { "min" } else { "max" };
    let mut items = items.iter();
    let Some(mut best) = items.next() else {
        return Err(Diagnostic::runtime(format!("{name}() arg is an empty sequence")));
    };
    for item in items {
        if order(item, best)? == Some(wanted) {
            best = item;
        }
    }
    one(best.clone())
}

/// The lexicographically lesser (or greater) of two lists; the second where neither is.
fn extreme_list(args: &Args<'_>, wanted: Ordering) -> Result<Outputs> {
    let (a, b) = (args.list(0)?, args.list(1)?);
    let (x, y) = (a.to_vec(), b.to_vec());
    let mut found = Some(x.len().cmp(&y.len()));
    for (x, y) in x.iter().zip(&y) {
        let here = order(x, y)?;
        if here != Some(Ordering::Equal) {
            found = here;
            break;
        }
    }
    one(Value::List(if found == Some(wanted) { a } else { b }.clone()))
}
