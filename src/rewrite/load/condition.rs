//! Conditions and arithmetic, evaluated over whatever knows the terms: the e-graph's classes when a rule is
//! applied, values when it is checked. What is not known does not hold, negated or not.

use super::syntax::{Arithmetic, Comparison, Condition, Expr, Literal};
use crate::diag::{Diagnostic, Result, nearest};
use crate::ir::{Attr, NoClasses, Symbol, Type, is_subtype_of};
use crate::tensor::{DType, Device, Dims, Scalar};
use smallvec::SmallVec;

/// What is known of a term.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Which kind of value it is.
    pub kind: Kind,
    /// Element type of a tensor.
    pub dtype: Option<DType>,
    /// Sizes of a tensor; those that are not known are None.
    pub sizes: Option<SmallVec<[Option<i64>; 6]>>,
    /// Strides of a tensor, where all are known.
    pub strides: Option<Dims>,
    /// The constant that it stands for.
    pub constant: Option<Attr>,
    /// The number of elements of a list.
    pub len: Option<usize>,
    /// Whether it is used once.
    pub one_use: bool,
    /// Whether it may be None.
    pub may_be_none: bool,
    /// The op that makes it, if it is not written afterwards.
    pub maker: Option<Symbol>,
    /// Whether no op makes it: an input of the graph or of a block.
    pub is_input: bool,
    /// The type, where it is known besides the value.
    pub ty: Option<Type>,
    /// The device of a tensor.
    pub device: Option<Device>,
}

/// Kinds of values that conditions distinguish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A tensor.
    Tensor,
    /// An int.
    Int,
    /// A float.
    Float,
    /// A complex number.
    Complex,
    /// A truth value.
    Bool,
    /// A list.
    List,
    /// `None`
    None,
    /// Anything else.
    #[default]
    Other,
}

/// A lookup of terms by name.
pub trait Subjects {
    /// What is known of a variable, a named term, or `result`.
    fn seen(&self, name: &str) -> Option<Seen>;

    /// Whether the terms are values, of which any may be a constant or not, used once or often.
    fn are_values(&self) -> bool {
        false
    }
}

/// A registered test: name, number of arguments, what it says, and what it asks.
struct Test(&'static str, usize, &'static str, fn(&[Seen]) -> Option<bool>);

const TESTS: &[Test] = &[
    Test("same_type", 2, "dtype and sizes are equal", |s| {
        Some(same_kind(s)? && dtypes(s).is_none_or(|(a, b)| a == b) && sizes(s).is_none_or(|(a, b)| a == b))
    }),
    Test("same_shape", 2, "sizes are equal", |s| sizes(s).map(|(a, b)| a == b)),
    Test("same_dtype", 2, "dtypes are equal", |s| dtypes(s).map(|(a, b)| a == b)),
    Test("same_rank", 2, "ranks are equal", |s| {
        Some(s[0].sizes.as_ref()?.len() == s[1].sizes.as_ref()?.len())
    }),
    Test("broadcasts_to", 2, "the first broadcasts to the sizes of the second", |s| {
        let (a, b) = sizes(s)?;
        Some(a.len() <= b.len() && a.iter().rev().zip(b.iter().rev()).all(|(x, y)| *x == 1 || x == y))
    }),
    Test("has_dtype", 1, "of a dtype that is known", |s| Some(s[0].dtype.is_some())),
    Test("is_tensor", 1, "a tensor", |s| Some(s[0].kind == Kind::Tensor)),
    Test("is_float", 1, "of floating dtype, or a float; complex left out", |s| match s[0].kind {
        Kind::Tensor => s[0].dtype.map(DType::is_floating),
        kind => Some(kind == Kind::Float),
    }),
    Test("is_complex", 1, "of complex dtype, or a complex number", |s| match s[0].kind {
        Kind::Tensor => s[0].dtype.map(DType::is_complex),
        kind => Some(kind == Kind::Complex),
    }),
    Test(
        "is_integral",
        1,
        "of integral dtype, or an int; bool and uint16 to uint64, which few ops take, left out",
        |s| match s[0].kind {
            Kind::Tensor => s[0].dtype.map(|d| d.is_integral() && d != DType::Bool && !d.is_wide_unsigned()),
            kind => Some(kind == Kind::Int),
        },
    ),
    Test("is_int", 1, "an int", |s| Some(s[0].kind == Kind::Int)),
    Test("is_bool", 1, "of dtype bool, or a truth value", |s| match s[0].kind {
        Kind::Tensor => s[0].dtype.map(|d| d == DType::Bool),
        kind => Some(kind == Kind::Bool),
    }),
    Test("is_signed", 1, "of a dtype with negative numbers", |s| match s[0].kind {
        Kind::Tensor => s[0].dtype.map(DType::is_signed),
        kind => Some(matches!(kind, Kind::Int | Kind::Float)),
    }),
    Test("is_const", 1, "a constant", |s| Some(s[0].constant.is_some())),
    Test("const", 1, "a constant", |s| Some(s[0].constant.is_some())),
    Test("one_use", 1, "used once", |s| Some(s[0].one_use)),
    Test("pure", 1, "has no effect; all that a rule matches is pure", |_| Some(true)),
    Test("is_none", 1, "None", |s| Some(s[0].kind == Kind::None)),
    Test("not_none", 1, "never None", |s| Some(s[0].kind != Kind::None && !s[0].may_be_none)),
    Test("static_shape", 1, "all sizes are known", |s| {
        Some(s[0].sizes.as_ref()?.iter().all(|size| size.is_some()))
    }),
    Test("is_scalar", 1, "of rank 0", |s| Some(s[0].sizes.as_ref()?.is_empty())),
    Test("is_empty", 1, "without elements", |s| {
        Some(s[0].sizes.as_ref()?.iter().copied().collect::<Option<Vec<i64>>>()?.contains(&0))
    }),
    Test("not_empty", 1, "with elements", |s| {
        Some(!s[0].sizes.as_ref()?.iter().copied().collect::<Option<Vec<i64>>>()?.contains(&0))
    }),
    Test("same_device", 2, "devices are known and equal", |s| {
        Some(s[0].device.as_ref()? == s[1].device.as_ref()?)
    }),
    Test("subtype", 2, "the first's type is the second's or one below it", |s| match (&s[0].ty, &s[1].ty) {
        (Some(a), Some(b)) => Some(is_subtype_of(&a.unshaped(), &b.unshaped(), &NoClasses)),
        // Of values only their kinds are known.
        _ => Some(true),
    }),
    Test("maybe_not_bool", 1, "not known to be of dtype bool", |s| Some(s[0].dtype != Some(DType::Bool))),
    Test("maybe_rank", 2, "not known to be of another rank than the number", |s| {
        let wanted = s[1].constant.as_ref()?.as_int()?;
        Some(s[0].sizes.as_ref().is_none_or(|sizes| sizes.len() as i64 == wanted))
    }),
    Test("made_by", 2, "made by an op of this name, and never written to", |s| match &s[1].constant {
        Some(Attr::Str(name)) => Some(s[0].maker.is_some_and(|maker| maker == **name)),
        _ => None,
    }),
    Test("is_input", 1, "made by no op: an input of the graph or of a block", |s| Some(s[0].is_input)),
    Test("never_same", 2, "one is None and the other never", |s| {
        let never = |s: &Seen| s.kind != Kind::None && !s.may_be_none;
        Some(s[0].kind == Kind::None && never(&s[1]) || s[1].kind == Kind::None && never(&s[0]))
    }),
    Test("holds_all_of", 2, "the first dtype has all numbers of the second", |s| {
        let dtype = |seen: &Seen| DType::from_code(seen.constant.as_ref()?.as_int()?);
        Some(holds_all_of(dtype(&s[0])?, dtype(&s[1])?))
    }),
    Test("is_contiguous", 1, "the elements are dense", |s| {
        let sizes: Vec<i64> = s[0].sizes.as_ref()?.iter().copied().collect::<Option<_>>()?;
        let layout = crate::tensor::Layout::strided(&sizes, s[0].strides.as_ref()?, 0).ok()?;
        Some(layout.is_contiguous())
    }),
];

/// Whether each number of a dtype is one of another, so that the way there and back changes none.
fn holds_all_of(wide: DType, narrow: DType) -> bool {
    // Bits of an integer without its sign, or of a significand.
    let integer = |dtype: DType| (dtype.size() * 8) as u32 - u32::from(dtype.is_signed());
    let significand = |dtype: DType| match dtype {
        DType::F16 => Some(11),
        DType::BF16 => Some(8),
        DType::F32 | DType::C64 => Some(24),
        DType::F64 | DType::C128 => Some(53),
        _ => None,
    };
    if wide == narrow || narrow == DType::Bool {
        return true;
    }
    match (significand(wide), significand(narrow)) {
        (Some(_), Some(_)) => match (wide, narrow) {
            (DType::C64, DType::F16 | DType::BF16 | DType::F32) | (DType::C128, DType::C64) => true,
            (DType::C128, other) => !other.is_complex(),
            (DType::F32, DType::F16 | DType::BF16) => true,
            (DType::F64, other) => !other.is_complex(),
            _ => false,
        },
        // Extremes of 16 bits reach beyond the largest float16.
        (Some(bits), None) => {
            narrow.is_integral() && integer(narrow) <= bits && (wide != DType::F16 || narrow.size() == 1)
        }
        (None, None) => {
            let both = wide.is_integral() && narrow.is_integral() && wide != DType::Bool;
            both && integer(wide) >= integer(narrow) && (wide.is_signed() || !narrow.is_signed())
        }
        (None, Some(_)) => false,
    }
}

fn same_kind(s: &[Seen]) -> Option<bool> {
    if s[0].kind != s[1].kind {
        return Some(false);
    }
    // Of two tensors everything must be known.
    (s[0].kind != Kind::Tensor || (dtypes(s).is_some() && sizes(s).is_some())).then_some(true)
}

fn dtypes(s: &[Seen]) -> Option<(DType, DType)> {
    Some((s[0].dtype?, s[1].dtype?))
}

fn sizes(s: &[Seen]) -> Option<(Vec<i64>, Vec<i64>)> {
    let known = |s: &Seen| s.sizes.as_ref()?.iter().copied().collect::<Option<Vec<i64>>>();
    Some((known(&s[0])?, known(&s[1])?))
}

/// The tests by name, number of arguments and meaning, for the manual.
pub fn tests() -> impl Iterator<Item = (&'static str, usize, &'static str)> {
    TESTS.iter().map(|Test(name, arguments, says, _)| (*name, *arguments, *says))
}

/// Functions of expressions: name and number of arguments.
const FUNCTIONS: &[(&str, usize)] = &[
    ("rank", 1),
    ("dim", 1),
    ("numel", 1),
    ("len", 1),
    ("dtype", 1),
    ("device", 1),
    ("sizes", 1),
    ("size", 2),
    ("min", 2),
    ("max", 2),
    ("abs", 1),
    ("item", 1),
    ("range", 1),
    ("compose", 2),
];

/// Fails at a test or function that does not exist.
pub fn check(condition: &Condition) -> Result<()> {
    match condition {
        Condition::Test(name, arguments, span) => {
            let found = TESTS.iter().find(|t| t.0 == name);
            if found.is_none_or(|t| t.1 != arguments.len()) {
                let error = Diagnostic::compile(format!(
                    "unknown condition `{name}` with {}",
                    arguments_of(arguments.len())
                ))
                .at(span);
                return Err(match nearest(name, TESTS.iter().map(|t| t.0)) {
                    Some(near) => error.hint(format!("did you mean {near}?")),
                    None => error.hint(format!(
                        "conditions are {}, dtype(x) in {{...}}, and comparisons",
                        TESTS.iter().map(|t| t.0).collect::<Vec<_>>().join(", ")
                    )),
                });
            }
        }
        Condition::Not(inner) => check(inner)?,
        Condition::Any(parts) | Condition::All(parts) => parts.iter().try_for_each(check)?,
        Condition::Member(..) | Condition::Compare(..) => {}
    }
    let mut wrong = Ok(());
    condition.exprs(&mut |expr| {
        if let (Ok(()), Err(error)) = (&wrong, check_expr(expr)) {
            wrong = Err(error);
        }
    });
    wrong
}

/// `1 argument`, `2 arguments`.
fn arguments_of(count: usize) -> String {
    format!("{count} argument{}", if count == 1 { "" } else { "s" })
}

/// Fails at a function that does not exist.
pub(super) fn check_expr(expr: &Expr) -> Result<()> {
    match expr {
        Expr::Call(name, arguments, span) => {
            if !FUNCTIONS.contains(&(name.as_str(), arguments.len())) {
                return Err(Diagnostic::compile(format!("unknown function `{name}` with {}", arguments_of(arguments.len())))
                    .at(span)
                    .hint("functions are rank(x), size(x, d), sizes(x), numel(x), len(l), dtype(x), device(x), min(a, b), max(a, b), abs(a), item(x), range(n), compose(p, q)"));
            }
            arguments.iter().try_for_each(check_expr)
        }
        Expr::Binary(_, a, b) => check_expr(a).and_then(|()| check_expr(b)),
        Expr::Negate(a) => check_expr(a),
        Expr::List(items) => items.iter().try_for_each(check_expr),
        Expr::Literal(_) | Expr::Name(..) => Ok(()),
    }
}

/// Whether a condition holds; None where that is not known.
pub fn holds(condition: &Condition, subjects: &dyn Subjects) -> Option<bool> {
    match condition {
        // A value may be what any op makes.
        Condition::Test(name, ..)
            if matches!(name.as_str(), "made_by" | "is_input") && subjects.are_values() =>
        {
            Some(true)
        }
        Condition::Test(name, arguments, _) => {
            let mut seen: SmallVec<[Seen; 2]> = SmallVec::new();
            for argument in arguments {
                seen.push(match argument {
                    Expr::Name(name, _) => subjects.seen(name)?,
                    other => Seen { constant: Some(evaluate(other, subjects)?), ..Seen::default() },
                });
            }
            TESTS.iter().find(|t| t.0 == name && t.1 == seen.len()).and_then(|t| t.3(&seen))
        }
        Condition::Member(subject, members) => {
            let subject = evaluate(subject, subjects)?;
            let mut found = false;
            for member in members {
                found |= compare(&subject, Comparison::Eq, &evaluate(member, subjects)?)?;
            }
            Some(found)
        }
        Condition::Compare(a, sign, b) => compare(&evaluate(a, subjects)?, *sign, &evaluate(b, subjects)?),
        Condition::Not(inner) if subjects.are_values() && is_about_program(inner) => Some(true),
        Condition::Not(inner) => holds(inner, subjects).map(|x| !x),
        Condition::Any(parts) => {
            let mut known = Some(false);
            for part in parts {
                match holds(part, subjects) {
                    Some(true) => return Some(true),
                    Some(false) => {}
                    None => known = None,
                }
            }
            known
        }
        Condition::All(parts) => {
            let mut known = Some(true);
            for part in parts {
                match holds(part, subjects) {
                    Some(false) => return Some(false),
                    Some(true) => {}
                    None => known = None,
                }
            }
            known
        }
    }
}

/// Whether a condition asks how a program is written, and not about values.
fn is_about_program(condition: &Condition) -> bool {
    matches!(condition, Condition::Test(name, ..) if matches!(name.as_str(), "is_const" | "const" | "one_use" | "subtype" | "made_by" | "is_input"))
}

fn compare(a: &Attr, sign: Comparison, b: &Attr) -> Option<bool> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = match (a, b) {
        (Attr::Float(_), _) | (_, Attr::Float(_)) => match number(a)?.partial_cmp(&number(b)?) {
            Some(order) => order,
            // NaN differs from everything and is in no order.
            None => return Some(sign == Comparison::Ne),
        },
        _ => match (a.as_int(), b.as_int()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => {
                return match sign {
                    Comparison::Eq => Some(a == b),
                    Comparison::Ne => Some(a != b),
                    _ => None,
                };
            }
        },
    };
    Some(match sign {
        Comparison::Lt => order == Less,
        Comparison::Le => order != Greater,
        Comparison::Eq => order == Equal,
        Comparison::Ne => order != Equal,
        Comparison::Gt => order == Greater,
        Comparison::Ge => order != Less,
    })
}

fn number(attr: &Attr) -> Option<f64> {
    match attr {
        Attr::Float(x) => Some(*x),
        other => other.as_int().map(|x| x as f64),
    }
}

/// The constant that an expression stands for; None where something is not known or does not fit.
pub fn evaluate(expr: &Expr, subjects: &dyn Subjects) -> Option<Attr> {
    match expr {
        Expr::Literal(literal) => Some(match literal {
            Literal::Int(x) => Attr::Int(*x),
            Literal::Float(x) => Attr::Float(*x),
            Literal::Bool(x) => Attr::Bool(*x),
            Literal::None => Attr::None,
            Literal::Str(x) => Attr::Str(x.as_str().into()),
        }),
        Expr::Name(name, _) => subjects.seen(name)?.constant,
        Expr::Negate(a) => match evaluate(a, subjects)? {
            Attr::Int(x) => Some(Attr::Int(x.checked_neg()?)),
            Attr::Float(x) => Some(Attr::Float(-x)),
            _ => None,
        },
        Expr::Binary(sign, a, b) => arithmetic(*sign, &evaluate(a, subjects)?, &evaluate(b, subjects)?),
        Expr::Call(name, arguments, _) => function(name, arguments, subjects),
        Expr::List(items) => {
            let items = items.iter().map(|item| evaluate(item, subjects)?.as_int());
            Some(Attr::Ints(items.collect::<Option<Vec<i64>>>()?.into()))
        }
    }
}

/// The items between two bounds, with a step, as Python counts; all without bounds. None where a bound is unknown.
pub fn part<T: Clone>(items: &[T], bounds: Option<&[Expr; 3]>, subjects: &dyn Subjects) -> Option<Vec<T>> {
    let Some([from, to, step]) = bounds else { return Some(items.to_vec()) };
    let bound = |expr: &Expr| match evaluate(expr, subjects)? {
        Attr::None => Some(None),
        other => other.as_int().map(Some),
    };
    let (from, to, step) = (bound(from)?, bound(to)?, bound(step)?.unwrap_or(1));
    let len = items.len() as i64;
    let (least, most) = if step < 0 { (-1, len - 1) } else { (0, len) };
    let place = |n: i64| if n < 0 { n.saturating_add(len).max(least) } else { n.min(most) };
    let (first, last) = if step < 0 { (most, least) } else { (least, most) };
    let (mut at, end) = (from.map_or(first, place), to.map_or(last, place));
    let mut taken = Vec::new();
    while step > 0 && at < end || step < 0 && at > end {
        taken.extend(usize::try_from(at).ok().and_then(|n| items.get(n)).cloned());
        at = at.saturating_add(step);
    }
    (step != 0).then_some(taken)
}

/// The longest list that `range` makes: tensors have fewer dimensions.
const MAX_RANGE: i64 = 64;

fn function(name: &str, arguments: &[Expr], subjects: &dyn Subjects) -> Option<Attr> {
    let value = |n: usize| arguments.get(n).and_then(|e| evaluate(e, subjects));
    match name {
        "min" | "max" => {
            let (a, b) = (value(0)?, value(1)?);
            let first = compare(&a, Comparison::Le, &b)? == (name == "min");
            Some(if first { a } else { b })
        }
        // Orders of dimensions: that of n dimensions as they are, and what taking one order after another comes to.
        "range" => match value(0)?.as_int()? {
            n @ 0..=MAX_RANGE => Some(Attr::Ints((0..n).collect::<Vec<i64>>().into())),
            _ => None,
        },
        "compose" => match (value(0)?, value(1)?) {
            (Attr::Ints(first), Attr::Ints(then)) => {
                let len = first.len() as i64;
                let place = |n: &i64| usize::try_from(if *n < 0 { n.checked_add(len)? } else { *n }).ok();
                let taken = then.iter().map(|n| first.get(place(n)?).copied());
                Some(Attr::Ints(taken.collect::<Option<Vec<i64>>>()?.into()))
            }
            _ => None,
        },
        // The number that a constant tensor of rank 0 holds; a truth value is not one.
        "item" => match value(0)? {
            Attr::Tensor(t) if t.rank() == 0 => match t.to_scalars().ok()?.first()? {
                Scalar::Int(x) => Some(Attr::Int(*x)),
                Scalar::Float(x) => Some(Attr::Float(*x)),
                Scalar::Complex(x) => Some(Attr::Complex(*x)),
                Scalar::Bool(_) => None,
            },
            _ => None,
        },
        "abs" => match value(0)? {
            Attr::Int(x) => x.checked_abs().map(Attr::Int),
            Attr::Float(x) => Some(Attr::Float(x.abs())),
            _ => None,
        },
        _ => {
            let Some(Expr::Name(subject, _)) = arguments.first() else { return None };
            let seen = subjects.seen(subject)?;
            let all = || seen.sizes.as_ref()?.iter().copied().collect::<Option<Vec<i64>>>();
            match name {
                "rank" | "dim" => Some(Attr::Int(seen.sizes.as_ref()?.len() as i64)),
                "dtype" => Some(Attr::Int(seen.dtype?.code())),
                "device" => seen.device.clone().map(Attr::Device),
                "sizes" => all().map(|sizes| Attr::Ints(sizes.into())),
                "len" => Some(Attr::Int(seen.len.or_else(|| length(seen.constant.as_ref()?))? as i64)),
                "numel" => Some(Attr::Int(all()?.iter().product())),
                "size" => {
                    let sizes = seen.sizes.as_ref()?;
                    let n = value(1)?.as_int()?;
                    let n = if n < 0 { n.checked_add(sizes.len() as i64)? } else { n };
                    Some(Attr::Int((*sizes.get(usize::try_from(n).ok()?)?)?))
                }
                _ => None,
            }
        }
    }
}

fn arithmetic(sign: Arithmetic, a: &Attr, b: &Attr) -> Option<Attr> {
    if let (Attr::Float(_), _) | (_, Attr::Float(_)) = (a, b) {
        let (a, b) = (number(a)?, number(b)?);
        return Some(Attr::Float(match sign {
            Arithmetic::Add => a + b,
            Arithmetic::Sub => a - b,
            Arithmetic::Mul => a * b,
            Arithmetic::Div => a / b,
            Arithmetic::FloorDiv => (a / b).floor(),
            Arithmetic::Mod => a - b * (a / b).floor(),
        }));
    }
    let (a, b) = (a.as_int()?, b.as_int()?);
    // Constants of rules do not wrap: where a result does not fit, the rule does not apply.
    Some(Attr::Int(match sign {
        Arithmetic::Add => a.checked_add(b)?,
        Arithmetic::Sub => a.checked_sub(b)?,
        Arithmetic::Mul => a.checked_mul(b)?,
        Arithmetic::Div => return (b != 0).then(|| Attr::Float(a as f64 / b as f64)),
        Arithmetic::FloorDiv => {
            let quotient = a.checked_div(b)?;
            if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
        }
        Arithmetic::Mod => {
            let rest = a.checked_rem(b)?;
            if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
        }
    }))
}

/// How many elements a constant list has.
fn length(constant: &Attr) -> Option<usize> {
    match constant {
        Attr::Ints(items) => Some(items.len()),
        Attr::Floats(items) => Some(items.len()),
        _ => None,
    }
}
