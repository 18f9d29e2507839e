//! Result types from operand types: what the `infer` cells of rows are made of. A rule is written once over sizes that
//! are numbers, symbols or unknown; what it cannot say it leaves open, and it never says what is false. Rules find
//! arguments by the names that schemas give them. No kernel runs here, except in `trial`.

pub mod joins;
pub mod layers;
pub mod layouts;
pub mod lists;
pub mod open;
pub mod open_truth;
#[cfg(test)]
mod open_tests;
pub mod pointwise;
pub mod products;
pub mod reductions;
pub mod trial;
pub mod views;
#[cfg(test)]
mod tests;

use super::{Fact, Family, LayerPart, Op, OpDef, Variant};
use crate::ir::{Dim, Stride, TensorType, Type, TypeKind};
use crate::tensor::{DType, Device, Tensor};
use crate::value::Value;
use open::OpenSizes;
use std::cell::Cell;

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
        strides: Some(layouts::strides(&tensor.strides())),
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

/// The operands of one op, as far as they are known.
pub struct Operands<'a> {
    /// The op.
    pub op: &'a Op,
    /// One value an argument of the schema.
    pub values: &'a [Known],
    /// The last symbol that was handed out; fresh ones count down.
    pub symbols: &'a Cell<i64>,
    /// What kernels may be tried on.
    pub trials: Trials,
    /// What is known of open sizes.
    pub open: Option<&'a OpenSizes>,
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

impl<'a> Operands<'a> {
    /// Operands of which little is tried.
    pub fn new(op: &'a Op, values: &'a [Known], symbols: &'a Cell<i64>) -> Operands<'a> {
        Operands { op, values, symbols, trials: Trials::Small, open: None }
    }

    /// An argument by its name in the schema.
    pub fn get(&self, name: &str) -> Option<&'a Known> {
        let n = self.op.schema().ok()?.argument_index(name)?;
        self.values.get(n)
    }

    /// The n-th argument.
    pub fn at(&self, n: usize) -> Option<&'a Known> {
        self.values.get(n)
    }

    /// A tensor by name.
    pub fn tensor(&self, name: &str) -> Option<&'a TensorType> {
        as_tensor(self.get(name)?)
    }

    /// The first argument, which is a tensor in most schemas.
    pub fn first(&self) -> Option<&'a TensorType> {
        as_tensor(self.at(0)?)
    }

    /// The sizes of a tensor of known rank.
    pub fn sizes(&self, name: &str) -> Option<&'a [Dim]> {
        self.tensor(name)?.sizes.as_deref()
    }

    /// A constant int.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Known::Int(dim) => dim.known(),
            _ => None,
        }
    }

    /// An int that may be a symbol; Unknown where nothing is known of it.
    pub fn dim(&self, name: &str) -> Dim {
        match self.get(name) {
            Some(Known::Int(dim)) => *dim,
            _ => Dim::Unknown,
        }
    }

    /// A constant truth value.
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Known::Bool(x) => Some(*x),
            Known::Int(Dim::Known(x)) => Some(*x != 0),
            _ => None,
        }
    }

    /// A list of ints of known length, or one int as a list of one.
    pub fn dims(&self, name: &str) -> Option<Vec<Dim>> {
        match self.get(name)? {
            Known::Ints(dims) => Some(dims.clone()),
            Known::Int(dim) => Some(vec![*dim]),
            Known::Items(items) => {
                items.iter().map(|k| if let Known::Int(d) = k { Some(*d) } else { None }).collect()
            }
            _ => None,
        }
    }

    /// A list of constant ints.
    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        self.dims(name)?.into_iter().map(Dim::known).collect()
    }

    /// Constant ints for `n` dimensions: one int stands for all.
    pub fn per_dim(&self, name: &str, n: usize) -> Option<Vec<i64>> {
        let ints = self.ints(name)?;
        match ints.len() {
            len if len == n => Some(ints),
            1 => Some(vec![ints[0]; n]),
            _ => None,
        }
    }

    /// Whether an argument is `None`, if that is known.
    pub fn is_none(&self, name: &str) -> Option<bool> {
        match self.get(name) {
            Some(Known::None) | None => Some(true),
            Some(Known::Nothing) => None,
            Some(_) => Some(false),
        }
    }

    /// The dtype that an argument asks for: `Ok(None)` where it is `None`, `Err` where it is unknown.
    pub fn dtype(&self, name: &str) -> Result<Option<DType>, Unknown> {
        match self.get(name) {
            Some(Known::None) | None => Ok(None),
            Some(Known::Int(Dim::Known(code))) => DType::from_code(*code).map(Some).ok_or(Unknown),
            Some(_) => Err(Unknown),
        }
    }

    /// The tensors of a list.
    pub fn tensors(&self, name: &str) -> Option<Vec<&'a TensorType>> {
        match self.get(name)? {
            Known::Items(items) => items.iter().map(as_tensor).collect(),
            _ => None,
        }
    }

    /// What all tensors of a list have in common whose length is not known.
    pub fn each_tensor(&self, name: &str) -> Option<&'a TensorType> {
        match self.get(name)? {
            Known::Each(part) => as_tensor(part),
            _ => None,
        }
    }

    /// A fresh symbol.
    pub fn fresh(&self) -> Dim {
        self.symbols.set(self.symbols.get() - 1);
        Dim::Symbol(self.symbols.get())
    }

    /// A result like `like` with other sizes, laid out densely where the sizes are numbers.
    pub fn result(&self, like: &TensorType, dtype: Option<DType>, sizes: Option<Vec<Dim>>) -> TensorType {
        let grad = dtype.is_some_and(|d| !d.is_floating() && !d.is_complex());
        TensorType {
            dtype,
            device: like.device.clone(),
            strides: sizes.as_deref().and_then(dense),
            sizes: sizes.map(Into::into),
            requires_grad: if grad || like.requires_grad == Some(false) { Some(false) } else { None },
            ..TensorType::default()
        }
    }

    /// A result of a kernel whose results lie as its arguments do: dense where all of these are. Else its layout is not
    /// known.
    pub fn following(&self, like: &TensorType, dtype: Option<DType>, sizes: Option<Vec<Dim>>) -> TensorType {
        let mut result = self.result(like, dtype, sizes);
        if !self.tensors_of_call().iter().all(|t| is_dense(t)) {
            result.strides = None;
        }
        result
    }

    /// The same of a kernel on images: channels are innermost where they are in the first argument.
    pub fn following_image(
        &self,
        like: &TensorType,
        dtype: Option<DType>,
        sizes: Option<Vec<Dim>>,
    ) -> TensorType {
        let mut result = self.following(like, dtype, sizes);
        if let (Some(first), Some([_, _, _, _])) = (self.first(), result.sizes.as_deref()) {
            result.strides = layouts::images(&[first], result.sizes.as_deref());
        }
        result
    }

    /// The memory format that is asked for, [`PRESERVE`] where none is; None where it is unknown.
    pub fn memory_format(&self) -> Option<i64> {
        match self.get("memory_format") {
            Some(Known::Int(dim)) => dim.known(),
            Some(Known::None) | None => Some(PRESERVE),
            Some(_) => None,
        }
    }

    /// The strides of a copy of the first argument in the memory format that is asked for, where they are known.
    pub fn preserved(&self) -> Option<Strides> {
        let first = self.first()?;
        match self.memory_format()? {
            PRESERVE => {
                let strides = first.strides.as_ref()?;
                is_packed(first.sizes.as_deref()?, strides).then(|| strides.clone())
            }
            format => layouts::like(first, format),
        }
    }

    /// All tensors among the arguments.
    fn tensors_of_call(&self) -> Vec<&'a TensorType> {
        let mut tensors = Vec::new();
        let mut work: Vec<&Known> = self.values.iter().collect();
        while let Some(known) = work.pop() {
            match known {
                Known::Tensor(t) => tensors.push(t),
                Known::Items(items) => work.extend(items),
                Known::Each(part) => work.push(part),
                _ => {}
            }
        }
        tensors
    }

    /// A result like `like` whose layout is not known.
    pub fn looking(&self, like: &TensorType, sizes: Option<Vec<Dim>>) -> TensorType {
        TensorType { strides: None, ..self.result(like, like.dtype, sizes) }
    }

    /// What all tensors among the operands have in common besides dtype and sizes.
    pub fn common(&self) -> TensorType {
        let tensors = self.tensors_of_call();
        let device = tensors.first().and_then(|t| t.device.clone());
        let device = device.filter(|d| tensors.iter().all(|t| t.device.as_ref() == Some(d)));
        let no_grad = !tensors.is_empty() && tensors.iter().all(|t| t.requires_grad == Some(false));
        TensorType { device, requires_grad: no_grad.then_some(false), ..TensorType::default() }
    }
}

/// That a value is not known.
#[derive(Clone, Copy, Debug)]
pub struct Unknown;

fn as_tensor(known: &Known) -> Option<&TensorType> {
    match known {
        Known::Tensor(t) => Some(t),
        _ => None,
    }
}

/// Whether two operands are the same object, as far as one of them is None: `same` is what is said where they are.
pub fn identity(operands: &Operands<'_>, same: bool) -> Results {
    let is_none = |n: usize| match operands.at(n)? {
        Known::None => Some(true),
        Known::Nothing => None,
        _ => Some(false),
    };
    match (is_none(0)?, is_none(1)?) {
        (true, true) => Some(vec![Known::Bool(same)]),
        (false, false) => None,
        _ => Some(vec![Known::Bool(!same)]),
    }
}

/// Strides as types hold them.
pub type Strides = std::sync::Arc<[Stride]>;

/// `torch.preserve_format`.
pub const PRESERVE: i64 = 1;

/// Strides of a dense tensor, where all sizes are numbers.
pub fn dense(sizes: &[Dim]) -> Option<Strides> {
    let are_numbers = sizes.iter().all(|size| size.known().is_some());
    if are_numbers { OpenSizes::none().row_major(sizes) } else { None }
}

/// Whether a tensor is known to be dense, in order of rows.
fn is_dense(tensor: &TensorType) -> bool {
    tensor.strides.is_some() && tensor.sizes.as_deref().and_then(dense) == tensor.strides
}

/// Whether strides leave no gaps and no element lies at two places, whatever the order of dimensions.
fn is_packed(sizes: &[Dim], strides: &[Stride]) -> bool {
    let known = sizes.iter().zip(strides).map(|(size, stride)| Some((stride.known()?, size.known()?)));
    let Some(mut known) = known.collect::<Option<Vec<(i64, i64)>>>() else { return false };
    if known.iter().any(|(_, size)| *size == 0) {
        return false;
    }
    known.retain(|(_, size)| *size != 1);
    known.sort_unstable();
    let mut step = 1i64;
    known.iter().all(|(stride, size)| {
        let fits = *stride == step;
        step = step.saturating_mul(*size);
        fits
    })
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

/// Whether something says the types of a row's results: its own rule, or that of its family.
pub fn has_rule(def: &OpDef) -> bool {
    def.infer.is_some() || matches!(def.family, Family::Elementwise | Family::Reduce | Family::View)
}

/// What the op's row says of its results: by its own rule, or by that of its family.
pub fn infer(operands: &Operands<'_>) -> Results {
    let Some(open) = operands.open.filter(|_| operands.values.iter().any(open::has_open)) else {
        return infer_numbers(operands);
    };
    let symbols = Cell::new(operands.symbols.get());
    let rule =
        |values: &[Known]| infer_numbers(&Operands { values, symbols: &symbols, open: None, ..*operands });
    let found = open::by_numbers(open, operands.values, &rule).map(|found| named(operands, found));
    found.or_else(|| infer_numbers(operands))
}

/// Sizes of which nothing is known get symbols: what follows from one of them is found by it. So do symbols that a rule made.
fn named(operands: &Operands<'_>, found: Vec<Known>) -> Vec<Known> {
    let last = operands.symbols.get();
    let name = |dim: &Dim| match dim {
        Dim::Unknown => operands.fresh(),
        Dim::Symbol(n) if *n < last => operands.fresh(),
        other => *other,
    };
    let one = |known: Known| match known {
        Known::Tensor(t) => {
            let sizes = t.sizes.as_ref().map(|sizes| sizes.iter().map(name).collect());
            Known::Tensor(TensorType { sizes, ..t })
        }
        other => other,
    };
    found.into_iter().map(one).collect()
}

/// The same where no operand has open sizes, or nothing is known of them.
fn infer_numbers(operands: &Operands<'_>) -> Results {
    let op = operands.op;
    let schema = op.schema().ok()?;
    // What is written to keeps its dtype; an in-place form keeps its sizes too.
    if op.variant() == Variant::InPlace || (op.def().infer.is_none() && writes_first(schema)) {
        return operands.first().map(|t| vec![Known::Tensor(t.clone())]);
    }
    let is_quantized = |t: &&TensorType| t.dtype.is_some_and(DType::is_quantized);
    let plain = match (op.def().infer, op.def().family) {
        (Some(rule), Family::View) => rule(operands).map(|results| trial::lying(operands, results)),
        (Some(rule), _) => rule(operands),
        // What an elementwise op gives of a quantized tensor is its quantized kernel's to say.
        (None, Family::Elementwise) if operands.tensors_of_call().iter().any(is_quantized) => None,
        (None, Family::Elementwise) => pointwise::elementwise(operands),
        (None, Family::Reduce) => reductions::reduce(operands),
        (None, Family::View) => trial::look(operands),
        // What a program asks of a tensor besides its elements.
        (None, Family::Host) if op.def().facts.contains(&Fact::Metadata) => trial::look(operands),
        _ => None,
    };
    let plain = plain.map(|results| match op.def().family {
        // What joins says how its result lies.
        Family::Gather if matches!(op.def().part, Some(LayerPart::Join)) => results,
        // A copy of what a rule of views reads: it has an order of its own.
        Family::Gather => results.into_iter().map(forget_view).collect(),
        _ => results,
    });
    let names = if op.variant() == Variant::Out { op.def().outs } else { &["out"] };
    let outs: Vec<&TensorType> = names.iter().filter_map(|name| as_tensor(operands.get(name)?)).collect();
    if outs.is_empty() {
        return plain;
    }
    let mut results = plain.filter(|results| results.len() == outs.len())?;
    for (result, out) in results.iter_mut().zip(outs) {
        if let Known::Tensor(t) = result {
            // The sizes are those of the result; the layout is that of the tensor that was given.
            (t.dtype, t.strides, t.requires_grad) = (out.dtype, None, out.requires_grad);
        }
    }
    Some(results)
}

/// Strides stay known only where they are those of a dense tensor.
fn forget_view(known: Known) -> Known {
    match known {
        Known::Tensor(t) => {
            let strides = t.strides.clone().filter(|_| is_dense(&t));
            Known::Tensor(TensorType { strides, ..t })
        }
        other => other,
    }
}

/// Whether the only result is the first argument, written to. Rows that change its look have a rule of their own.
fn writes_first(schema: &crate::ir::Schema) -> bool {
    let written = schema.arguments.first().and_then(|a| a.alias.as_ref()).is_some_and(|a| a.is_write);
    written && schema.returns.len() == 1
}
