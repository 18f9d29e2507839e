//! What is known of values before a program runs: of a type, of a value at hand, of two branches that meet. No op is known here.

use crate::ir::{Dim, Stride, TensorType, Type, TypeKind};
use crate::tensor::{DType, Device, Tensor};
use crate::value::Value;

/// What is known of a value before the program runs.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Known {
    /// Nothing.
    #[default]
    Nothing,
    /// It is `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// An int: a number, or the size that a symbol stands for.
    Int(Dim),
    /// Some float, complex number or number of the given kind.
    Number(DType),
    /// This float.
    Float(f64),
    /// Ints of a list of known length.
    Ints(Vec<Dim>),
    /// A text.
    Str(String),
    /// A device.
    Device(Device),
    /// A tensor.
    Tensor(TensorType),
    /// Values of a list or tuple of known length.
    Items(Vec<Known>),
    /// All values of a list or dictionary, however many there are.
    Each(Box<Known>),
}

/// Maximum number of nested parts that are tracked of one value.
const MAX_PARTS: usize = 4096;

impl Known {
    /// Values of a list or tuple. Tuples of tuples may hold the same parts many times: of more parts within parts than
    /// [`MAX_PARTS`] nothing is known.
    pub fn items(items: Vec<Known>) -> Known {
        let mut left = MAX_PARTS;
        let mut work: Vec<&Known> = items.iter().filter(|k| matches!(k, Known::Items(_))).collect();
        while let Some(known) = work.pop() {
            let Known::Items(parts) = known else { continue };
            let Some(rest) = left.checked_sub(parts.len()) else { return Known::Nothing };
            left = rest;
            work.extend(parts);
        }
        Known::Items(items)
    }

    /// What is known from a type alone.
    pub fn of_type(ty: &Type) -> Known {
        let mut left = MAX_PARTS;
        Known::of_type_within(ty, &mut left)
    }

    fn of_type_within(ty: &Type, left: &mut usize) -> Known {
        match ty.kind() {
            TypeKind::Tensor(t) => Known::Tensor(t.clone()),
            TypeKind::None => Known::None,
            TypeKind::Int => Known::Int(Dim::Unknown),
            TypeKind::Float => Known::Number(DType::F64),
            TypeKind::Complex => Known::Number(DType::C128),
            TypeKind::Tuple(elements, _) => match left.checked_sub(elements.len()) {
                Some(rest) => {
                    *left = rest;
                    Known::Items(elements.iter().map(|e| Known::of_type_within(e, left)).collect())
                }
                None => Known::Nothing,
            },
            _ => Known::Nothing,
        }
    }

    /// Everything about a value that is at hand.
    pub fn of_value(value: &Value) -> Known {
        let mut left = MAX_PARTS;
        Known::of_value_within(value, &mut left, true)
    }

    fn of_value_within(value: &Value, left: &mut usize, is_outermost: bool) -> Known {
        let mut items = |items: &[Value]| match left.checked_sub(items.len()) {
            None if !is_outermost => Known::Nothing,
            rest => {
                *left = rest.unwrap_or(MAX_PARTS);
                Known::Items(items.iter().map(|x| Known::of_value_within(x, left, false)).collect())
            }
        };
        match value {
            Value::None => Known::None,
            Value::Bool(x) => Known::Bool(*x),
            Value::Int(x) => Known::Int(Dim::Known(*x)),
            Value::Float(x) => Known::Float(*x),
            Value::Complex(_) => Known::Number(DType::C128),
            Value::Str(x) => Known::Str(x.to_string()),
            Value::Device(x) => Known::Device((**x).clone()),
            Value::Tensor(x) => Known::Tensor(of_tensor(x)),
            Value::Tuple(x) => items(x.items()),
            Value::List(x) => match x.element_type().kind() {
                TypeKind::Int => Known::Ints(
                    x.items().iter().map(|v| v.to_int().map_or(Dim::Unknown, Dim::Known)).collect(),
                ),
                _ => items(&x.items()),
            },
            _ => Known::Nothing,
        }
    }

    /// How a value contradicts what is known of it, if it does: dtype, sizes and strides of its tensors.
    pub fn contradiction(&self, value: &Value) -> Option<String> {
        match (self, value) {
            (Known::Tensor(known), Value::Tensor(found)) => differs(known, &of_tensor(found)),
            (Known::Items(known), Value::List(list)) => items(known, &list.items()),
            (Known::Items(known), Value::Tuple(tuple)) => items(known, tuple.items()),
            (Known::Each(known), Value::List(list)) => {
                list.items().iter().find_map(|found| known.contradiction(found))
            }
            (Known::Each(known), Value::Dict(dict)) => {
                dict.entries().iter().find_map(|(_, found)| known.contradiction(found))
            }
            (Known::Int(Dim::Known(known)), Value::Int(found)) if known != found => {
                Some(format!("is {found}, not {known}"))
            }
            (Known::Bool(known), Value::Bool(found)) if known != found => {
                Some(format!("is {found}, not {known}"))
            }
            _ => None,
        }
    }

    /// What both say.
    pub fn join(&self, other: &Known) -> Known {
        match (self, other) {
            (a, b) if a == b => a.clone(),
            (Known::Tensor(a), Known::Tensor(b)) => Known::Tensor(join(a, b)),
            (Known::Int(_), Known::Int(_)) => Known::Int(Dim::Unknown),
            (Known::Number(a), Known::Number(b)) if a == b => Known::Number(*a),
            (Known::Float(_), Known::Float(_) | Known::Number(DType::F64))
            | (Known::Number(DType::F64), Known::Float(_)) => Known::Number(DType::F64),
            (Known::Ints(a), Known::Ints(b)) if a.len() == b.len() => {
                Known::Ints(a.iter().zip(b).map(|(a, b)| same_dim(*a, *b)).collect())
            }
            (Known::Items(a), Known::Items(b)) if a.len() == b.len() => {
                Known::Items(a.iter().zip(b).map(|(a, b)| a.join(b)).collect())
            }
            _ => match (self.each(), other.each()) {
                (Some(a), Some(b)) => Known::each_of([a, b]),
                _ => Known::Nothing,
            },
        }
    }

    /// A list of which it is only known what each of its parts has, as far as they are alike. Nothing where there are no parts.
    pub fn each_of(parts: impl IntoIterator<Item = Known>) -> Known {
        match parts.into_iter().reduce(|a, b| a.join(&b)) {
            None | Some(Known::Nothing) => Known::Nothing,
            Some(part) => Known::Each(Box::new(part)),
        }
    }

    /// What is known of each value of a list or dictionary; None where it has none, or nothing is known of it.
    pub fn each(&self) -> Option<Known> {
        match self {
            Known::Each(part) => Some((**part).clone()),
            Known::Items(items) => items.iter().cloned().reduce(|a, b| a.join(&b)),
            Known::Ints(dims) => dims.iter().map(|dim| Known::Int(*dim)).reduce(|a, b| a.join(&b)),
            _ => None,
        }
    }
}

/// The complete type of a tensor.
pub fn of_tensor(tensor: &Tensor) -> TensorType {
    TensorType {
        dtype: Some(tensor.dtype()),
        device: Some(tensor.device()),
        sizes: Some(tensor.sizes().iter().map(|n| Dim::Known(*n)).collect()),
        strides: Some(strides(&tensor.strides())),
        requires_grad: Some(tensor.requires_grad()),
        ..TensorType::default()
    }
}

fn items(known: &[Known], found: &[Value]) -> Option<String> {
    if known.len() != found.len() {
        return Some(format!("has {} items, not {}", found.len(), known.len()));
    }
    known.iter().zip(found).find_map(|(known, found)| known.contradiction(found))
}

fn differs(known: &TensorType, found: &TensorType) -> Option<String> {
    if known.dtype.is_some() && known.dtype != found.dtype {
        return Some(format!("is of dtype {:?}, not {:?}", found.dtype, known.dtype));
    }
    let sizes = found.sizes.as_deref().unwrap_or_default();
    if let Some(own) = known.sizes.as_deref()
        && (own.len() != sizes.len() || own.iter().zip(sizes).any(|(a, b)| a.known().is_some() && a != b))
    {
        return Some(format!("has sizes {sizes:?}, not {own:?}"));
    }
    let strides = found.strides.as_deref().unwrap_or_default();
    if let Some(own) = known.strides.as_deref()
        && (own.len() != strides.len() || own.iter().zip(strides).any(|(a, b)| a.known().is_some() && a != b))
    {
        return Some(format!("has strides {strides:?}, not {own:?}"));
    }
    None
}

fn same_dim(a: Dim, b: Dim) -> Dim {
    if a == b { a } else { Dim::Unknown }
}

/// What two tensor types have in common.
pub fn join(a: &TensorType, b: &TensorType) -> TensorType {
    let sizes = match (&a.sizes, &b.sizes) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            Some(a.iter().zip(b.iter()).map(|(a, b)| same_dim(*a, *b)).collect())
        }
        _ => None,
    };
    TensorType {
        dtype: a.dtype.filter(|d| Some(*d) == b.dtype),
        device: a.device.clone().filter(|d| Some(d) == b.device.as_ref()),
        strides: a.strides.clone().filter(|s| sizes.is_some() && Some(s) == b.strides.as_ref()),
        sizes,
        requires_grad: a.requires_grad.filter(|r| Some(*r) == b.requires_grad),
        ..TensorType::default()
    }
}

/// What kernels may be tried on where a rule needs a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trials {
    /// Tensors of the operands' own sizes where these are small.
    Small,
    /// None of the operands' own sizes, as where all of them are large: tests hold both answers against each other.
    Never,
}

/// What a rule says of the results; None where it says nothing.
pub type Results = Option<Vec<Known>>;

/// That a value is not known.
#[derive(Clone, Copy, Debug)]
pub struct Unknown;

pub(super) fn as_tensor(known: &Known) -> Option<&TensorType> {
    match known {
        Known::Tensor(t) => Some(t),
        _ => None,
    }
}

/// Strides as types hold them.
pub type Strides = std::sync::Arc<[Stride]>;

/// `torch.preserve_format`.
pub const PRESERVE: i64 = 1;

/// Strides as types hold them.
pub fn strides(strides: &[i64]) -> Strides {
    strides.iter().copied().map(Stride::Known).collect()
}

/// One result that is a tensor.
pub fn one(tensor: TensorType) -> Results {
    Some(vec![Known::Tensor(tensor)])
}

/// A dimension counted from either end as an index; `rank` of 0 counts as 1.
pub fn wrap(dim: i64, rank: usize) -> Option<usize> {
    let rank = rank.max(1) as i64;
    let dim = if dim < 0 { dim + rank } else { dim };
    (0..rank).contains(&dim).then_some(dim as usize)
}

/// The product of sizes, where all are numbers.
pub fn product(sizes: &[Dim]) -> Option<i64> {
    sizes.iter().try_fold(1i64, |n, d| n.checked_mul(d.known()?))
}
