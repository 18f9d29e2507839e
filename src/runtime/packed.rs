//! What ops that prepare constants gave, for all plans of a program: plans for other sizes have the same weights, which need
//! not be packed again. Nothing is kept alive here: with the last plan that has a packed layer, the layer goes.
//!
//! Operands are identified by their address and version counter. An address may come to be another's only
//! when the operand is gone; holders of packed data keep the operand alive too.

use super::code::Bound;
use crate::dialects::{Outputs, Run};
use crate::eval;
use crate::value::{Value, WeakValue};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of entries from which unreferenced ones are dropped.
const MIN_SWEPT: usize = 256;

/// What was packed for plans.
#[derive(Default)]
pub(super) struct Packed {
    known: Mutex<Known>,
    made: AtomicU64,
    shared: AtomicU64,
}

#[derive(Default)]
struct Known {
    results: HashMap<Key, Vec<WeakValue>>,
    /// Entries that were left when it was last swept.
    swept: usize,
}

/// An op with what it is called on.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    op: usize,
    /// Of tensors and objects.
    words: Vec<u64>,
    /// Of all else, attributes too.
    text: String,
}

impl Packed {
    /// How often something was packed, and how often another plan had it already.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.made.load(Ordering::Relaxed), self.shared.load(Ordering::Relaxed))
    }

    /// What an op gives that prepares constants. None where it fails: then it does so when the code runs.
    pub(super) fn results(&self, bound: &Bound, values: &[Value]) -> Option<Outputs> {
        let key = Key::of(bound, values);
        if let Some(found) = key.as_ref().and_then(|key| self.find(key)) {
            self.shared.fetch_add(1, Ordering::Relaxed);
            return Some(found);
        }
        let run = Run::silent();
        run.set_grad_enabled(false);
        let results = eval::call(&bound.op, values, bound.node(), &run).ok()?;
        self.made.fetch_add(1, Ordering::Relaxed);
        let weak = results.iter().map(WeakValue::of).collect::<Option<Vec<WeakValue>>>();
        if let (Some(key), Some(weak)) = (key, weak) {
            self.known.lock().keep(key, weak);
        }
        Some(results)
    }

    fn find(&self, key: &Key) -> Option<Outputs> {
        self.known.lock().results.get(key)?.iter().map(WeakValue::upgrade).collect()
    }
}

fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_))
}

impl Known {
    fn keep(&mut self, key: Key, results: Vec<WeakValue>) {
        self.results.insert(key, results);
        if self.results.len() >= MIN_SWEPT.max(self.swept.saturating_mul(2)) {
            self.results.retain(|_, results| results.iter().all(|result| result.upgrade().is_some()));
            self.swept = self.results.len();
        }
    }
}

impl Key {
    /// None where an operand can only be identified by its elements.
    fn of(bound: &Bound, values: &[Value]) -> Option<Key> {
        let mut key = Key { op: bound.op.id(), words: Vec::new(), text: String::new() };
        for value in values {
            match value {
                Value::Tensor(tensor) if tensor.is_plain() => {
                    let meta = tensor.snapshot();
                    let (id, version) = (meta.storage.id() as u64, meta.storage.version());
                    let layout = &meta.layout;
                    key.words.extend([1, id, version, meta.dtype as u64, layout.offset as u64]);
                    key.words.push(layout.sizes.len() as u64);
                    key.words.extend(layout.sizes.iter().chain(&layout.strides).map(|n| *n as u64));
                }
                Value::Object(object) if object.content().is_some() => {
                    key.words.extend([2, object.id() as u64]);
                }
                Value::Tensor(_) | Value::Object(_) => return None,
                Value::List(list) if !list.items().iter().all(is_number) => return None,
                Value::List(list) => {
                    key.words.push(3);
                    write!(key.text, "{:?};", &list.items()[..]).ok()?;
                }
                other => {
                    key.words.push(0);
                    write!(key.text, "{other:?};").ok()?;
                }
            }
        }
        write!(key.text, "{:?}", bound.attrs).ok()?;
        Some(key)
    }
}
