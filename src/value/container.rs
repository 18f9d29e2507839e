//! Lists and dictionaries, shared by reference.

use super::model::{Charged, DictInner, Entries, Items, ListInner};
use super::{Dict, DictKey, List, Value, nested};
use crate::diag::{Diagnostic, Result};
use crate::ir::Type;
use crate::resources::Charge;
use indexmap::IndexMap;
use parking_lot::{MappedRwLockReadGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

impl Drop for ListInner {
    fn drop(&mut self) {
        nested::release(std::mem::take(&mut self.items.get_mut().values));
    }
}

/// Bytes that a list takes besides its elements.
const LIST_BYTES: usize = 128;
/// Bytes of a dictionary's entry: key, value, hash and a place in the table.
const ENTRY_BYTES: usize = size_of::<(DictKey, Value)>() + 24;

impl List {
    /// A new list.
    pub fn new(element: Type, items: Vec<Value>) -> List {
        let charge = Charge::taken(LIST_BYTES + items.capacity() * size_of::<Value>());
        let items = RwLock::new(Items { values: items, charge });
        List(Arc::new(ListInner { element, shared: AtomicBool::new(false), items }))
    }

    /// Lets calls from outside take the list itself, as PyTorch's `ScriptList` is taken, where they take copies of others: what
    /// they change, its holder sees.
    pub fn share_with_calls(&self) {
        self.0.shared.store(true, Ordering::Relaxed);
    }

    /// Whether calls from outside take the list itself.
    pub fn is_shared_with_calls(&self) -> bool {
        self.0.shared.load(Ordering::Relaxed)
    }

    /// Type of the elements.
    pub fn element_type(&self) -> &Type {
        &self.0.element
    }

    /// The elements, open for reading. Do not hold it while running user code.
    pub fn items(&self) -> MappedRwLockReadGuard<'_, Vec<Value>> {
        RwLockReadGuard::map(self.0.items.read_recursive(), |items| &items.values)
    }

    /// The elements, open for writing. What they grow by is charged to the run when this is dropped.
    pub fn items_mut(&self) -> ItemsMut<'_> {
        ItemsMut(self.0.items.write())
    }

    /// A copy of the elements.
    pub fn to_vec(&self) -> Vec<Value> {
        self.items().clone()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.items().len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.items().is_empty()
    }

    /// Whether two handles are the same list.
    pub fn same(&self, other: &List) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// An address that identifies the list while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as *const u8 as usize
    }
}

/// Elements of a list, open for writing.
pub struct ItemsMut<'a>(RwLockWriteGuard<'a, Items>);

impl Deref for ItemsMut<'_> {
    type Target = Vec<Value>;
    fn deref(&self) -> &Vec<Value> {
        &self.0.values
    }
}

impl DerefMut for ItemsMut<'_> {
    fn deref_mut(&mut self) -> &mut Vec<Value> {
        &mut self.0.values
    }
}

impl Drop for ItemsMut<'_> {
    fn drop(&mut self) {
        let bytes = LIST_BYTES + self.0.values.capacity() * size_of::<Value>();
        self.0.charge.follow(bytes);
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.items().iter()).finish()
    }
}

impl DictKey {
    /// The key that a value makes; other values cannot be keys.
    pub fn new(value: &Value) -> Result<DictKey> {
        match value {
            Value::Str(x) => Ok(DictKey::Str(x.shared())),
            Value::Int(x) => Ok(DictKey::Int(*x)),
            Value::Float(x) => Ok(DictKey::Float(*x)),
            Value::Complex(x) => Ok(DictKey::Complex(*x)),
            Value::Bool(x) => Ok(DictKey::Bool(*x)),
            Value::Tensor(x) => Ok(DictKey::Tensor(x.clone())),
            Value::Device(x) => Ok(DictKey::Device(x.clone())),
            other => Err(Diagnostic::runtime(format!("Can't hash a value of type {}", other.kind_name()))),
        }
    }

    /// The key as a value.
    pub fn to_value(&self) -> Value {
        match self {
            DictKey::Str(x) => Value::str(x.clone()),
            DictKey::Int(x) => Value::Int(*x),
            DictKey::Float(x) => Value::Float(*x),
            DictKey::Complex(x) => Value::Complex(*x),
            DictKey::Bool(x) => Value::Bool(*x),
            DictKey::Tensor(x) => Value::Tensor(x.clone()),
            DictKey::Device(x) => Value::Device(x.clone()),
        }
    }
}

impl PartialEq for DictKey {
    fn eq(&self, other: &DictKey) -> bool {
        match (self, other) {
            (DictKey::Str(a), DictKey::Str(b)) => a == b,
            (DictKey::Int(a), DictKey::Int(b)) => a == b,
            (DictKey::Float(a), DictKey::Float(b)) => a == b,
            (DictKey::Complex(a), DictKey::Complex(b)) => a == b,
            (DictKey::Bool(a), DictKey::Bool(b)) => a == b,
            (DictKey::Tensor(a), DictKey::Tensor(b)) => a.same(b),
            (DictKey::Device(a), DictKey::Device(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for DictKey {}

impl Hash for DictKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Adding 0.0 makes -0.0 and 0.0, which are equal, hash alike.
        match self {
            DictKey::Str(x) => x.hash(state),
            DictKey::Int(x) => x.hash(state),
            DictKey::Float(x) => (x + 0.0).to_bits().hash(state),
            DictKey::Complex(x) => ((x.re + 0.0).to_bits(), (x.im + 0.0).to_bits()).hash(state),
            DictKey::Bool(x) => x.hash(state),
            DictKey::Tensor(x) => x.id().hash(state),
            DictKey::Device(x) => x.hash(state),
        }
    }
}

impl Drop for DictInner {
    fn drop(&mut self) {
        let entries = std::mem::take(&mut self.entries.get_mut().entries);
        nested::release(entries.into_values().collect());
    }
}

impl Dict {
    /// A new, empty dictionary.
    pub fn new(key: Type, value: Type) -> Dict {
        let entries = Charged { entries: IndexMap::new(), charge: Charge::taken(LIST_BYTES) };
        let (shared, entries) = (AtomicBool::new(false), RwLock::new(entries));
        Dict(Arc::new(DictInner { key, value, shared, entries }))
    }

    /// See [`List::share_with_calls`].
    pub fn share_with_calls(&self) {
        self.0.shared.store(true, Ordering::Relaxed);
    }

    /// Whether calls from outside take the dictionary itself.
    pub fn is_shared_with_calls(&self) -> bool {
        self.0.shared.load(Ordering::Relaxed)
    }

    /// Type of the keys.
    pub fn key_type(&self) -> &Type {
        &self.0.key
    }

    /// Type of the values.
    pub fn value_type(&self) -> &Type {
        &self.0.value
    }

    /// The entries, open for reading.
    pub fn entries(&self) -> MappedRwLockReadGuard<'_, Entries> {
        RwLockReadGuard::map(self.0.entries.read_recursive(), |charged| &charged.entries)
    }

    /// The entries, open for writing. What they grow by is charged to the run when this is dropped.
    pub fn entries_mut(&self) -> EntriesMut<'_> {
        EntriesMut(self.0.entries.write())
    }

    /// Sets an entry; a key that is there keeps its place.
    pub fn insert(&self, key: &Value, value: Value) -> Result<()> {
        let key = DictKey::new(key)?;
        self.entries_mut().insert(key, value);
        Ok(())
    }

    /// Looks a key up.
    pub fn get(&self, key: &Value) -> Result<Option<Value>> {
        Ok(self.entries().get(&DictKey::new(key)?).cloned())
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// Whether two handles are the same dictionary.
    pub fn same(&self, other: &Dict) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// An address that identifies the dictionary while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as *const u8 as usize
    }
}

/// Entries of a dictionary, open for writing.
pub struct EntriesMut<'a>(RwLockWriteGuard<'a, Charged>);

impl Deref for EntriesMut<'_> {
    type Target = Entries;
    fn deref(&self) -> &Entries {
        &self.0.entries
    }
}

impl DerefMut for EntriesMut<'_> {
    fn deref_mut(&mut self) -> &mut Entries {
        &mut self.0.entries
    }
}

impl Drop for EntriesMut<'_> {
    fn drop(&mut self) {
        let bytes = LIST_BYTES + self.0.entries.capacity() * ENTRY_BYTES;
        self.0.charge.follow(bytes);
    }
}

impl fmt::Debug for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries().iter()).finish()
    }
}
