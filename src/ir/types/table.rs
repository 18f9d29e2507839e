//! The table of types: equal types are one allocation, so that comparing and hashing them takes one step however often
//! they contain one another. The table holds weak references: a type goes with its last user.
//!
//! Knows how types are kept, not what they mean. Nothing is ordered or printed by address or hash.

use super::kind::{Facts, Interned};
use super::{TensorType, TypeParameter};
use crate::ir::{Dim, Stride, Type, TypeKind};
use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock, Weak};

struct Entry {
    hash: u64,
    ty: Weak<Interned>,
}

/// Threads that intern different types seldom wait for one another.
const SHARDS: usize = 64;

/// Types no deeper than this are freed by plain recursion.
const SHALLOW: u32 = 32;

struct Table {
    hasher: DefaultHashBuilder,
    shards: [Mutex<HashTable<Entry>>; SHARDS],
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table {
    hasher: DefaultHashBuilder::default(),
    shards: std::array::from_fn(|_| Mutex::new(HashTable::new())),
});

fn shard(hash: u64) -> &'static Mutex<HashTable<Entry>> {
    // The table inside the shard uses the low and the highest bits.
    &TABLE.shards[(hash >> 32) as usize % SHARDS]
}

/// The one allocation of a type of this kind.
pub(in crate::ir) fn intern(kind: TypeKind) -> Arc<Interned> {
    let hash = TABLE.hasher.hash_one(&kind);
    // Handles of other types are dropped after the lock: the last one of a type locks the table again.
    let mut others: Vec<Arc<Interned>> = Vec::new();
    let mut table = shard(hash).lock();
    let found = table.find(hash, |entry| {
        entry.hash == hash
            && entry.ty.upgrade().is_some_and(|ty| {
                let same = ty.kind == kind;
                others.push(ty);
                same
            })
    });
    if found.is_some()
        && let Some(ty) = others.pop()
    {
        drop(table);
        return ty;
    }
    let facts = facts(&kind, hash);
    let ty = Arc::new(Interned { kind, facts });
    table.insert_unique(hash, Entry { hash, ty: Arc::downgrade(&ty) }, |entry| entry.hash);
    drop(table);
    ty
}

impl Drop for Interned {
    fn drop(&mut self) {
        let place: *const Interned = self;
        let hash = self.facts.hash;
        if let Ok(entry) = shard(hash).lock().find_entry(hash, |entry| std::ptr::eq(entry.ty.as_ptr(), place))
        {
            entry.remove();
        }
        if self.facts.depth > SHALLOW {
            free_later(std::mem::replace(&mut self.kind, TypeKind::Any));
        }
    }
}

thread_local! {
    /// Parts of deep types that wait to be freed by the first `drop` on the stack.
    static WAITING: RefCell<Option<Vec<TypeKind>>> = const { RefCell::new(None) };
}

/// Frees the parts of a deep type one after the other instead of one inside the other.
fn free_later(kind: TypeKind) {
    let mut kind = Some(kind);
    let first = WAITING.try_with(|waiting| {
        let mut waiting = waiting.borrow_mut();
        match &mut *waiting {
            Some(list) => {
                list.extend(kind.take());
                false
            }
            None => {
                *waiting = Some(Vec::new());
                true
            }
        }
    });
    // At the end of a thread there is no list any more: plain recursion has to do.
    if first != Ok(true) {
        return;
    }
    while let Some(next) = kind {
        drop(next);
        kind = WAITING.with(|waiting| waiting.borrow_mut().as_mut().and_then(Vec::pop));
    }
    WAITING.with(|waiting| *waiting.borrow_mut() = None);
}

fn facts(kind: &TypeKind, hash: u64) -> Facts {
    let mut facts = Facts { hash, graph_text: 0, name_text: 0, depth: 0, variables: false, refined: false };
    let name = |symbol: &crate::ir::Symbol| symbol.as_str().len() as u64;
    // Brackets and separators of a type of its own, for the longest spelling.
    let mut own: u64 = 24;
    match kind {
        TypeKind::List(t)
        | TypeKind::Optional(t)
        | TypeKind::Future(t)
        | TypeKind::Await(t)
        | TypeKind::RRef(t) => facts.add(t),
        TypeKind::Dict(k, v) => {
            facts.add(k);
            facts.add(v);
        }
        TypeKind::Tuple(elements, names) => {
            elements.iter().for_each(|t| facts.add(t));
            if let Some(names) = names {
                let fields: u64 = names.fields.iter().chain(&names.defaults).map(|n| name(n) + 8).sum();
                own += fields + name(&names.name);
                if !names.name.as_str().is_empty() {
                    facts.name_text = 0;
                }
            }
        }
        TypeKind::Union(members) => members.iter().for_each(|t| facts.add(t)),
        TypeKind::Tensor(tensor) => {
            facts.refined = *tensor != TensorType::default();
            own += tensor_text(tensor);
        }
        TypeKind::Var(text) => {
            facts.variables = true;
            own += name(text);
        }
        TypeKind::Class(text) | TypeKind::Interface(text) | TypeKind::Enum(text, _) => own += name(text),
        TypeKind::Dialect(dialect, text, parameters) => {
            own += name(dialect) + name(text);
            for parameter in parameters.iter() {
                own += 2;
                match parameter {
                    TypeParameter::Type(t) => facts.add_text(t),
                    TypeParameter::Int(_) => own += 20,
                    // Escapes take up to four bytes for one.
                    TypeParameter::Str(text) => own += 4 * text.len() as u64,
                }
            }
        }
        _ => {}
    }
    facts.graph_text = facts.graph_text.saturating_add(own);
    facts.name_text = facts.name_text.saturating_add(own);
    facts.depth = facts.depth.saturating_add(1);
    facts
}

impl Facts {
    fn add(&mut self, part: &Type) {
        self.add_text(part);
        self.variables |= part.facts().variables;
        self.refined |= part.facts().refined;
    }

    fn add_text(&mut self, part: &Type) {
        let part = part.facts();
        self.graph_text = self.graph_text.saturating_add(part.graph_text).saturating_add(2);
        self.name_text = self.name_text.saturating_add(part.name_text).saturating_add(2);
        self.depth = self.depth.max(part.depth);
    }
}

/// At least as many bytes as what is known of a tensor needs.
fn tensor_text(tensor: &TensorType) -> u64 {
    let sizes = tensor.sizes.as_deref().map_or(0, <[Dim]>::len) as u64;
    let strides = tensor.strides.as_ref().map_or(0, |s| s.len()) as u64;
    // A size of 20 digits in `SS(...)` with its comma, a stride likewise and with the open sizes in it, and the other facts.
    let open = |stride: &Stride| if let Stride::Open(_, sizes) = stride { sizes.len() } else { 0 } as u64;
    let factors: u64 = tensor.strides.iter().flat_map(|s| s.iter()).map(open).sum();
    96 + 28 * sizes + 24 * strides + 12 * factors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubled(mut ty: Type, times: usize) -> Type {
        for _ in 0..times {
            ty = Type::tuple([ty.clone(), ty]);
        }
        ty
    }

    #[test]
    fn equal_types_are_one_from_any_thread() {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| (0..500).map(|n| doubled(Type::int(), n % 50)).collect::<Vec<_>>())
            })
            .collect();
        let all: Vec<Vec<Type>> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert!(all.iter().all(|types| {
            types.iter().zip(&all[0]).all(|(a, b)| std::ptr::eq(a.kind(), b.kind()) && a == b)
        }));
        assert_ne!(all[0][3], all[0][4]);
    }

    #[test]
    fn a_type_leaves_the_table_with_its_last_user() {
        let name = crate::ir::Symbol::new("__torch__.OnlyInThisTest");
        let ty = Type::list(Type::class(name));
        let hash = ty.facts().hash;
        let held = || {
            shard(hash)
                .lock()
                .iter()
                .filter(|entry| entry.hash == hash && entry.ty.strong_count() > 0)
                .count()
        };
        assert_eq!(held(), 1);
        drop(ty);
        assert_eq!(shard(hash).lock().iter().filter(|entry| entry.hash == hash).count(), 0);
    }

    #[test]
    fn deep_types_are_freed_without_recursion() {
        let small_stack = std::thread::Builder::new().stack_size(256 * 1024);
        let thread = small_stack.spawn(|| {
            let deep = (0..200_000).fold(Type::int(), |ty, _| Type::list(ty));
            assert_eq!(deep.depth(), 200_001);
            drop(deep);
            assert!(WAITING.with(|waiting| waiting.borrow().is_none()));
        });
        thread.unwrap().join().unwrap();
    }

    #[test]
    fn texts_are_no_longer_than_counted() {
        for text in [
            "Dict(str, Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)?)",
            "NamedTuple(a : int, b : float[] = [1, 2])",
            "Union(, str, Scalar)[]",
            "Await(Tensor)",
            "loops.buffer<Float(2), 3, \"a\\n\">",
            "Enum<__torch__.Color>[]",
        ] {
            let ty = crate::ir::parse_type(text).unwrap();
            assert!(ty.facts().graph_text >= ty.to_string().len() as u64, "{text}");
            assert!(ty.facts().name_text >= ty.annotation().len() as u64, "{text}");
        }
        let many = doubled(Type::int(), 100);
        assert_eq!(many.facts().graph_text, u64::MAX);
    }
}
