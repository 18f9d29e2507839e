//! What plans for open sizes are made for. Kinds of arguments that differ in sizes alone have plans of their own at first; then
//! one plan is made for all of them, whose graph leaves open the sizes that differed. Sizes that were the same each time stay
//! numbers, and those that were equal to each other each time stay so: each call asks. It knows no graph and no op.

use crate::dialects::Run;
use crate::dialects::shapes::open::{MAX_GIVEN, OpenSizes};
use crate::ir::{Dim, TensorType, Type, TypeKind};
use crate::runtime::spec::{self, Words};
use crate::tensor::{Tensor, channels_last_strides, contiguous_strides};
use crate::value::Value;
use smallvec::SmallVec;
use std::sync::Arc;

/// Sizes of former calls that are remembered: what was equal each time is known from them.
const MAX_SEEN: usize = 16;

/// How a tensor lies whose sizes may be left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    RowMajor,
    ChannelsLast,
}

/// The spec of a call and its sizes, apart. Tensors that are neither row-major nor images with their channels innermost have
/// their sizes and strides in the spec.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    words: Words,
    sizes: SmallVec<[i64; 16]>,
}

impl Shape {
    /// That of a call; None where a plan for open sizes cannot be made: a list has parts that are operands, or a tensor's elements
    /// are not all that it is.
    pub(super) fn of(arguments: &[Value], run: &Run) -> Option<Shape> {
        let (mut sizes, mut plain) = (SmallVec::new(), true);
        let words = spec::encoded(arguments, run, &mut |tensor, words| {
            plain &= tensor.is_plain();
            spec::encode_head(tensor, words);
            let layout = tensor.layout();
            match order(&layout.sizes, &layout.strides) {
                Some(order) => {
                    words.push(order as u64);
                    sizes.extend_from_slice(&layout.sizes);
                }
                None => {
                    words.push(u64::MAX);
                    words.extend(layout.sizes.iter().chain(&layout.strides).map(|n| *n as u64));
                }
            }
        });
        let is_whole = plain
            && !arguments.iter().any(|value| matches!(value, Value::List(_)) && spec::requires_grad(value));
        (is_whole && !sizes.is_empty()).then_some(Shape { words, sizes })
    }

    /// Whether they differ in sizes alone.
    pub(super) fn is_like(&self, other: &Shape) -> bool {
        self.words == other.words
    }

    /// Whether they do not even differ in sizes.
    pub(super) fn has_sizes_of(&self, other: &Shape) -> bool {
        self.sizes == other.sizes
    }

    pub(super) fn words(&self) -> &Words {
        &self.words
    }
}

fn order(sizes: &[i64], strides: &[i64]) -> Option<Order> {
    if *contiguous_strides(sizes) == *strides {
        return Some(Order::RowMajor);
    }
    (sizes.len() == 4 && *channels_last_strides(sizes) == *strides).then_some(Order::ChannelsLast)
}

/// What a plan for open sizes is made for.
#[derive(Clone, Debug)]
pub(super) struct OpenSpec {
    words: Words,
    dims: Vec<Dim>,
    pub(super) sizes: Arc<OpenSizes>,
    seen: Vec<SmallVec<[i64; 16]>>,
}

impl PartialEq for OpenSpec {
    fn eq(&self, other: &OpenSpec) -> bool {
        self.words == other.words && self.dims == other.dims
    }
}

impl OpenSpec {
    /// For calls like these, one at least: what differs among them is open, or, where there is one, every size of 2 and more. None
    /// where sizes of 0 and 1 differ from others, or too many are open.
    pub(super) fn of<'a>(shapes: impl Iterator<Item = &'a Shape>) -> Option<OpenSpec> {
        let mut seen: Vec<SmallVec<[i64; 16]>> = Vec::new();
        let mut words = None;
        for shape in shapes {
            words.get_or_insert_with(|| shape.words.clone());
            if !seen.contains(&shape.sizes) {
                seen.push(shape.sizes.clone());
            }
        }
        OpenSpec::seen(words?, seen)
    }

    fn seen(words: Words, mut seen: Vec<SmallVec<[i64; 16]>>) -> Option<OpenSpec> {
        // The newest last.
        seen.drain(..seen.len().saturating_sub(MAX_SEEN));
        let count = seen.first()?.len();
        let column = |n: usize| seen.iter().map(|sizes| sizes[n]).collect::<Vec<i64>>();
        let mut open: Vec<Vec<i64>> = Vec::new();
        let mut dims = Vec::new();
        for n in 0..count {
            let column = column(n);
            let varies = column.iter().any(|size| *size != column[0]);
            if !varies && (seen.len() > 1 || column[0] < 2) {
                dims.push(Dim::Known(column[0]));
                continue;
            }
            let at = open.iter().position(|other| *other == column).unwrap_or_else(|| {
                open.push(column);
                open.len() - 1
            });
            dims.push(Dim::Open(at as u32));
        }
        let most = open.iter().flatten().copied().max().unwrap_or(0);
        let sizes = Arc::new(OpenSizes::new(open.len(), most));
        let may_be = open.iter().flatten().all(|size| OpenSizes::may_be(*size, open.len()));
        (!open.is_empty() && open.len() <= MAX_GIVEN && may_be).then_some(OpenSpec {
            words,
            dims,
            sizes,
            seen,
        })
    }

    /// For calls as before and one more.
    pub(super) fn and(&self, shape: &Shape) -> Option<OpenSpec> {
        let seen = self.seen.iter().chain([&shape.sizes]).cloned().collect();
        OpenSpec::seen(self.words.clone(), seen)
    }

    /// Whether they differ in sizes alone.
    pub(super) fn is_like(&self, shape: &Shape) -> bool {
        self.words == shape.words
    }

    /// Whether the plan is for such a call, whatever the sizes that follow from those of its arguments.
    fn fits(&self, shape: &Shape) -> Option<SmallVec<[i64; MAX_GIVEN]>> {
        if !self.is_like(shape) || self.dims.len() != shape.sizes.len() {
            return None;
        }
        let mut given: SmallVec<[i64; MAX_GIVEN]> = SmallVec::new();
        for (dim, size) in self.dims.iter().zip(&shape.sizes) {
            let fits = match dim {
                // Numbered as they come first.
                Dim::Open(n) => match given.get(*n as usize) {
                    Some(known) => known == size,
                    None => {
                        given.push(*size);
                        true
                    }
                },
                dim => dim.known() == Some(*size),
            };
            if !fits {
                return None;
            }
        }
        Some(given)
    }

    /// Whether the plan is for such a call.
    pub(super) fn takes(&self, shape: &Shape) -> bool {
        self.fits(shape).is_some_and(|given| self.sizes.hold(&given))
    }

    /// Whether such a call has a size that the plan may not have, though it fits and is not larger than it may be: a plan with more
    /// open sizes would not take it either.
    pub(super) fn is_too_narrow(&self, shape: &Shape) -> bool {
        self.fits(shape).is_some_and(|given| given.iter().all(|size| *size <= self.sizes.most()))
    }

    /// The types of a call's arguments with open sizes in them, as far as the declared ones say that they are tensors.
    pub(super) fn types(&self, declared: &[Type], arguments: &[Value]) -> Vec<Type> {
        let mut dims = self.dims.iter().copied();
        let mut next = |tensor: &Tensor| {
            let layout = tensor.layout();
            let known = spec::tensor_type(tensor);
            let Some(order) = order(&layout.sizes, &layout.strides) else { return known };
            let sizes: Vec<Dim> = dims.by_ref().take(layout.sizes.len()).collect();
            let strides = match order {
                Order::RowMajor => self.sizes.row_major(&sizes),
                Order::ChannelsLast => self.sizes.channels_last(&sizes),
            };
            TensorType { sizes: Some(sizes.into()), strides, ..known }
        };
        let pairs = declared.iter().zip(arguments);
        pairs.map(|(declared, value)| refine(declared, value, &mut next, 0)).collect()
    }
}

/// The type of a value, with those of the tensors in it in their order. All of them are asked for, also where the declared type
/// does not say that there are tensors.
fn refine(declared: &Type, value: &Value, next: &mut dyn FnMut(&Tensor) -> TensorType, depth: usize) -> Type {
    match value {
        Value::Tensor(tensor) => {
            let found = next(tensor);
            let is_tensor = match declared.kind() {
                TypeKind::Tensor(_) => true,
                TypeKind::Optional(inner) => inner.is_tensor(),
                _ => false,
            };
            if is_tensor { Type::new(TypeKind::Tensor(found)) } else { declared.clone() }
        }
        Value::Tuple(tuple) if depth < spec::MAX_DEPTH => {
            let inner = match declared.kind() {
                TypeKind::Optional(inner) => inner,
                _ => declared,
            };
            let types = match inner.kind() {
                TypeKind::Tuple(types, None) if types.len() == tuple.items().len() => Some(types),
                _ => None,
            };
            let item = |(n, item): (usize, &Value)| {
                refine(types.map_or(declared, |types| &types[n]), item, next, depth + 1)
            };
            let refined: Vec<Type> = tuple.items().iter().enumerate().map(item).collect();
            if types.is_some() { Type::tuple(refined) } else { declared.clone() }
        }
        _ => declared.clone(),
    }
}
