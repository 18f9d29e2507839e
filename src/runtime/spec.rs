//! What a plan is made for: of each argument whether it is there, its kind, and of tensors dtype, device, sizes, strides and
//! whether they require grad; the grad mode. Two calls with equal specs run the same plan. Numbers and text are distinguished
//! by kind only. It knows no graph.

use crate::analysis::AliasDb;
use crate::dialects::Run;
use crate::dialects::shapes::layouts;
use crate::ir::{Dim, TensorType, Type, TypeKind};
use crate::runtime::checks::Miss;
use crate::tensor::{Snapshot, Tensor};
use crate::value::Value;
use hashbrown::DefaultHashBuilder;
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock};

/// Tuples nested deeper count as one kind.
pub(super) const MAX_DEPTH: usize = 16;

/// Words that are equal where kinds of arguments are.
pub(super) type Words = SmallVec<[u64; 24]>;

static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// The spec of a call, as words that are equal where the specs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentSpec {
    hash: u64,
    words: Words,
}

impl ArgumentSpec {
    /// The spec of a call.
    pub fn of(arguments: &[Value], run: &Run) -> ArgumentSpec {
        let words = encoded(arguments, run, &mut encode_tensor);
        ArgumentSpec { hash: HASHER.hash_one(words.as_slice()), words }
    }

    /// A number that equal specs share.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether both are for equal arguments, whatever the grad mode.
    pub(super) fn is_for_arguments_of(&self, other: &ArgumentSpec) -> bool {
        self.words.get(1..) == other.words.get(1..)
    }
}

/// A call as words; `tensor` adds those of a tensor that count.
pub(super) fn encoded(arguments: &[Value], run: &Run, tensor: &mut impl FnMut(&Tensor, &mut Words)) -> Words {
    let mut words = Words::new();
    words.push(u64::from(run.grad_enabled()));
    arguments.iter().for_each(|value| encode(value, &mut words, tensor, 0));
    words
}

/// A spec for people: a text of each argument, then the grad mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind(Arc<[String]>);

impl Kind {
    /// That of arguments of these types; `names` are those of the function's parameters.
    pub(super) fn of<'a>(
        names: impl Iterator<Item = &'a str>,
        types: impl IntoIterator<Item = Type>,
        run: &Run,
    ) -> Kind {
        let one = |(name, ty): (&str, Type)| format!("{name} : {ty}");
        let mode = if run.grad_enabled() { "with gradients" } else { "without gradients" };
        Kind(names.zip(types).map(one).chain([mode.to_string()]).collect())
    }

    /// Of each argument, then the grad mode.
    pub(super) fn parts(&self) -> &[String] {
        &self.0
    }

    pub(super) fn to_text(&self) -> String {
        self.0.join(", ")
    }

    /// What of another kind is otherwise.
    pub(super) fn miss(&self, other: &Kind) -> Option<Miss> {
        let both = self.0.iter().zip(other.0.iter()).filter(|(expected, seen)| expected != seen);
        Miss::of(both.map(|(expected, seen)| (expected.clone(), seen.clone())))
    }
}

/// Whether a value is or holds a tensor that requires grad; dictionaries are not looked into.
pub(super) fn requires_grad(value: &Value) -> bool {
    let within = |item: &Value| stacker::maybe_grow(64 << 10, 1 << 20, || requires_grad(item));
    match value {
        Value::Tensor(tensor) => tensor.requires_grad(),
        Value::Tuple(tuple) => tuple.items().iter().any(within),
        Value::List(list) => AliasDb::is_mutable_type(list.element_type()) && list.items().iter().any(within),
        _ => false,
    }
}

/// Adds a value: a word that begins with its kind, and what follows from that.
fn encode(value: &Value, words: &mut Words, tensor: &mut impl FnMut(&Tensor, &mut Words), depth: usize) {
    let kind = match value {
        Value::None => 0,
        Value::Tensor(value) => return tensor(value, words),
        Value::Int(_) => 2,
        Value::Float(_) => 3,
        Value::Complex(_) => 4,
        Value::Bool(_) => 5,
        Value::Str(_) => 6,
        // Lists with tensors that require grad become operands item by item (`executor/parts.rs`).
        Value::List(list) if depth < MAX_DEPTH && requires_grad(value) => {
            let items = list.items();
            words.push(17 | (items.len() as u64) << 8);
            return items.iter().for_each(|item| encode(item, words, tensor, depth + 1));
        }
        Value::List(_) => 7,
        Value::Dict(_) => 8,
        Value::Tuple(tuple) if depth < MAX_DEPTH => {
            words.push(9 | (tuple.items().len() as u64) << 8);
            return tuple.items().iter().for_each(|item| encode(item, words, tensor, depth + 1));
        }
        Value::Tuple(_) => 10,
        // An object's attributes are what they are when they are read, or guarded.
        Value::Object(object) => 11 | u64::from(object.class().index()) << 8,
        Value::Enum(_) => 12,
        Value::Device(_) => 13,
        Value::Future(_) => 14,
        Value::Function(name) => 15 | u64::from(name.index()) << 8,
        Value::Uninitialized => 16,
        Value::Generator(_) => 17,
    };
    words.push(kind);
}

fn encode_tensor(tensor: &Tensor, words: &mut Words) {
    let requires_grad = tensor.requires_grad();
    tensor.with_meta(|meta| {
        words.push(head(meta, requires_grad));
        words.extend(meta.layout.sizes.iter().chain(&meta.layout.strides).map(|n| *n as u64));
    });
}

/// Adds what counts of a tensor besides sizes and strides.
pub(super) fn encode_head(tensor: &Tensor, words: &mut Words) {
    let requires_grad = tensor.requires_grad();
    words.push(tensor.with_meta(|meta| head(meta, requires_grad)));
}

fn head(meta: &Snapshot, requires_grad: bool) -> u64 {
    let plain = meta.quantizer.is_none() && meta.lengths.is_none();
    let flags = u64::from(requires_grad) | u64::from(plain) << 1;
    1 | flags << 8 | (meta.dtype as u64) << 16 | (meta.layout.sizes.len() as u64) << 32
}

/// A type refined by a value: for a tensor, everything in the spec.
pub fn refined(declared: &Type, value: &Value) -> Type {
    refine(declared, value, 0)
}

fn refine(declared: &Type, value: &Value, depth: usize) -> Type {
    match (declared.kind(), value) {
        (TypeKind::Tensor(_), Value::Tensor(tensor)) if tensor.is_plain() => {
            Type::new(TypeKind::Tensor(tensor_type(tensor)))
        }
        (TypeKind::Optional(inner), Value::Tensor(tensor)) if inner.is_tensor() && tensor.is_plain() => {
            Type::new(TypeKind::Tensor(tensor_type(tensor)))
        }
        (TypeKind::Optional(inner), Value::Tuple(_)) => refine(inner, value, depth),
        (TypeKind::Tuple(types, None), Value::Tuple(tuple))
            if depth < MAX_DEPTH && types.len() == tuple.items().len() =>
        {
            let parts = types.iter().zip(tuple.items());
            Type::tuple(parts.map(|(ty, item)| refine(ty, item, depth + 1)).collect::<Vec<_>>())
        }
        _ => declared.clone(),
    }
}

pub(super) fn tensor_type(tensor: &Tensor) -> TensorType {
    let meta = tensor.snapshot();
    let sizes: Vec<Dim> = meta.layout.sizes.iter().map(|n| Dim::Known(*n)).collect();
    TensorType {
        dtype: Some(meta.dtype),
        device: Some(tensor.device()),
        sizes: Some(Arc::from(sizes)),
        strides: Some(layouts::strides(&meta.layout.strides)),
        requires_grad: Some(tensor.requires_grad()),
        ..TensorType::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(value: &Value) -> ArgumentSpec {
        ArgumentSpec::of(std::slice::from_ref(value), &Run::silent())
    }

    #[test]
    fn what_a_plan_relies_on_is_in_the_spec() {
        let zeros =
            |sizes: &[i64]| Value::Tensor(Tensor::zeros(crate::tensor::DType::F32, sizes).expect("small"));
        let x = zeros(&[2, 3]);
        assert_eq!(spec(&x), spec(&zeros(&[2, 3])));
        assert_ne!(spec(&x), spec(&zeros(&[3, 2])));
        assert_ne!(spec(&x), spec(&Value::None));
        assert_eq!(spec(&Value::Int(1)), spec(&Value::Int(2)));
        assert_ne!(spec(&Value::Int(1)), spec(&Value::Float(1.0)));
        assert_ne!(spec(&Value::tuple(vec![x.clone()])), spec(&x));
        let leaf = zeros(&[2, 3]);
        leaf.to_tensor().and_then(|t| t.set_requires_grad(true)).expect("a float");
        assert_ne!(spec(&x), spec(&leaf));
        let run = Run::silent();
        run.set_grad_enabled(false);
        assert_ne!(ArgumentSpec::of(std::slice::from_ref(&x), &run), spec(&x));
    }
}
