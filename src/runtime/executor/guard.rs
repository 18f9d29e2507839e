//! What a plan took for granted of attributes that it froze, and whether it still holds: each object has the same
//! attributes, each tensor the same elements in the same places, and requires grad or not as it did. A check reads two counters a tensor and one an object.
//! Guards have numbers: 0 is that of the arguments, which the one who looks a plan up has asked; then tensors, then objects.

use crate::diag::Span;
use crate::ir::Type;
use crate::passes::FrozenAttribute;
use crate::runtime::checks::{Asked, Forced, GuardKind, Miss};
use crate::runtime::code;
use crate::runtime::spec;
use crate::tensor::{Storage, Tensor};
use crate::value::{List, Object, Value};
use hashbrown::HashSet;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The attributes that a plan froze.
pub(super) struct Guards {
    objects: Vec<Holder>,
    tensors: Vec<Frozen>,
    /// How often they were asked; all before the first that misses hold, and those after it are not asked.
    checks: AtomicU64,
    /// By number.
    missed: Vec<AtomicU64>,
    /// What the guard found, by its number, that missed last by itself: the plan is made anew then.
    found: Mutex<Option<(usize, Miss)>>,
}

/// An object and those of its attributes that were frozen.
struct Holder {
    object: Object,
    /// Changes of the object after which its attributes were last found to be the same.
    changes: AtomicU64,
    attributes: Vec<FrozenAttribute>,
    /// Of attributes that are lists: the list, and what stood in it. A list counts no changes.
    lists: Vec<(List, Vec<Value>)>,
}

/// A tensor as it was.
struct Frozen {
    /// What people call it.
    name: String,
    /// Where it was read.
    source: Option<Span>,
    tensor: Tensor,
    changes: u64,
    requires_grad: bool,
    storage: Storage,
    /// How often others were given its address.
    pins: u64,
    /// None where its elements may change: the plan takes it as an operand.
    version: Option<u64>,
}

impl Guards {
    /// Guards of attributes, and of constants of the function itself, as they are now. Reading and guarding are not one step:
    /// see [`Guards::hold`].
    pub(super) fn of(frozen: Vec<FrozenAttribute>, constants: Vec<Tensor>) -> Guards {
        let mut guards = Guards {
            objects: Vec::new(),
            tensors: Vec::new(),
            checks: AtomicU64::new(0),
            missed: Vec::new(),
            found: Mutex::default(),
        };
        let mut known: HashSet<usize> = HashSet::new();
        let mut guard = |guards: &mut Guards, tensor: &Tensor, name: &dyn Fn() -> String, source| {
            if known.insert(tensor.id()) {
                let storage = tensor.storage();
                let (changes, version, pins) = (tensor.changes(), storage.version(), storage.pins());
                let requires_grad = tensor.requires_grad();
                let tensor = tensor.clone();
                guards.tensors.push(Frozen {
                    name: name(),
                    source,
                    tensor,
                    changes,
                    requires_grad,
                    storage,
                    pins,
                    version: Some(version),
                });
            }
        };
        for tensor in &constants {
            let ty = || spec::refined(&Type::tensor(), &Value::Tensor(tensor.clone()));
            guard(&mut guards, tensor, &|| format!("the constant {}", ty()), None);
        }
        for attribute in frozen {
            for value in [&attribute.value].into_iter().chain(&attribute.items) {
                let Value::Tensor(tensor) = value else { continue };
                let name = || format!("{} of {}", attribute.name, attribute.object.class());
                guard(&mut guards, tensor, &name, source_of(&attribute));
            }
            let known = guards.objects.iter().position(|known| known.object.same(&attribute.object));
            let at = known.unwrap_or_else(|| {
                let changes = AtomicU64::new(attribute.object.changes());
                let object = attribute.object.clone();
                guards.objects.push(Holder { object, changes, attributes: Vec::new(), lists: Vec::new() });
                guards.objects.len() - 1
            });
            let holder = &mut guards.objects[at];
            if let Value::List(list) = &attribute.value {
                holder.lists.push((list.clone(), attribute.items.clone()));
            }
            holder.attributes.push(attribute);
        }
        guards.missed.resize_with(1 + guards.tensors.len() + guards.objects.len(), AtomicU64::default);
        guards
    }

    /// Whether everything is as it was, which is counted; the guard that is to miss is found to be otherwise.
    pub(super) fn hold(&self, forced: Option<&Arc<Forced>>) -> bool {
        self.checks.fetch_add(1, Ordering::Relaxed);
        let changed = 1 + self.tensors.iter().position(|tensor| !tensor.holds()).unwrap_or_else(|| {
            let objects = self.objects.iter().position(|object| !object.holds());
            self.tensors.len() + objects.unwrap_or(self.objects.len())
        });
        let forced = forced.filter(|forced| forced.number() < changed.min(self.len()));
        if let Some(forced) = forced {
            forced.missed();
        }
        let Some(missed) = self.missed.get(forced.map_or(changed, |forced| forced.number())) else {
            return true;
        };
        missed.fetch_add(1, Ordering::Relaxed);
        if forced.is_none()
            && let Some(miss) = Miss::of(self.differences(changed))
        {
            *self.found.lock() = Some((changed, miss));
        }
        false
    }

    /// What is otherwise than a guard expects, each as expected and as seen.
    fn differences(&self, number: usize) -> Vec<(String, String)> {
        let Some(number) = number.checked_sub(1) else { return Vec::new() };
        match self.tensors.get(number) {
            Some(frozen) => frozen.differences(),
            None => self.objects.get(number - self.tensors.len()).map_or_else(Vec::new, Holder::differences),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.missed.len()
    }

    /// All of them in order of their numbers. What that of the arguments expects knows who looks plans up.
    pub(super) fn list(&self) -> Vec<Asked> {
        let arguments = (GuardKind::Arguments, "the kind of the arguments".to_string(), String::new(), None);
        let tensor = |frozen: &Frozen| {
            (GuardKind::Tensor, frozen.name.clone(), frozen.expects(), frozen.source.clone())
        };
        let object =
            |holder: &Holder| (GuardKind::Attributes, holder.name(), holder.expects(), holder.source());
        let all = self.tensors.iter().map(tensor).chain(self.objects.iter().map(object));
        let found = self.found.lock().clone();
        let mut asked = self.checks.load(Ordering::Relaxed);
        let counted = |(number, (kind, of, expects, source))| {
            let missed =
                self.missed.get(number).map_or(0, |missed: &AtomicU64| missed.load(Ordering::Relaxed));
            asked = asked.saturating_sub(missed);
            let miss = found.as_ref().filter(|(at, _)| *at == number).map(|(_, miss)| miss.clone());
            Asked { kind, of, expects, source, held: asked, missed, miss }
        };
        [arguments].into_iter().chain(all).enumerate().map(counted).collect()
    }

    /// Lets the elements of some tensors change: a plan takes them as operands.
    pub(super) fn let_change(&mut self, operands: &[Tensor]) {
        for frozen in &mut self.tensors {
            if !operands.iter().any(|operand| operand.same(&frozen.tensor)) {
                continue;
            }
            frozen.version = None;
        }
    }

    /// Whether a frozen tensor requires grad.
    pub(super) fn any_requires_grad(&self) -> bool {
        self.tensors.iter().any(|frozen| frozen.requires_grad)
    }
}

impl Frozen {
    fn holds(&self) -> bool {
        self.tensor.changes() == self.changes
            && self
                .version
                .is_none_or(|version| self.storage.version() == version && self.storage.pins() == self.pins)
            && self.tensor.requires_grad() == self.requires_grad
    }

    fn expects(&self) -> String {
        let requires_grad = i32::from(self.requires_grad);
        match self.version {
            Some(version) => format!("version {version}, requires_grad={requires_grad}"),
            None => format!("the same tensor, requires_grad={requires_grad}"),
        }
    }

    fn differences(&self) -> Vec<(String, String)> {
        let mut out = Vec::new();
        if self.tensor.changes() != self.changes {
            out.push(("its memory and sizes as they were".to_string(), "others were set".to_string()));
        }
        let (version, pins) = (self.storage.version(), self.storage.pins());
        if let Some(expected) = self.version.filter(|expected| *expected != version) {
            out.push((format!("version {expected}"), format!("version {version}")));
        }
        if self.version.is_some() && self.pins != pins {
            out.push((format!("lent {} times", self.pins), format!("lent {pins} times")));
        }
        let requires_grad = self.tensor.requires_grad();
        if self.requires_grad != requires_grad {
            let text = |flag| format!("requires_grad={}", i32::from(flag));
            out.push((text(self.requires_grad), text(requires_grad)));
        }
        out
    }
}

/// Where an attribute was read.
fn source_of(attribute: &FrozenAttribute) -> Option<Span> {
    attribute.location.as_ref().and_then(|location| code::span(&location.place))
}

/// The longest text of a value in a report.
const MAX_TEXT: usize = 60;

/// A value in a report: a tensor by its type, a list by its length, others as programs print them.
fn shown(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Tensor(_) => text = spec::refined(&Type::tensor(), value).to_string(),
        Value::List(list) => text = format!("a list of {}", list.items().len()),
        _ if value.write_text(&mut text).is_err() => text = value.ty().to_string(),
        _ => {}
    }
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

impl Holder {
    fn name(&self) -> String {
        let names: Vec<&str> = self.attributes.iter().map(|attribute| attribute.name.as_str()).collect();
        format!("{} of {}", names.join(", "), self.object.class())
    }

    fn holds(&self) -> bool {
        if !self.lists.iter().all(|(list, items)| holds_items(list, items)) {
            return false;
        }
        let changes = self.object.changes();
        if changes == self.changes.load(Ordering::Relaxed) {
            return true;
        }
        // Other attributes of the object may have been set.
        let same = |a: &FrozenAttribute| self.object.get(a.name).is_some_and(|now| now.is_same(&a.value));
        let holds = self.attributes.iter().all(same);
        if holds {
            self.changes.store(changes, Ordering::Relaxed);
        }
        holds
    }

    fn source(&self) -> Option<Span> {
        self.attributes.iter().find_map(source_of)
    }

    fn expects(&self) -> String {
        let one = |a: &FrozenAttribute| format!("{} = {}", a.name, shown(&a.value));
        self.attributes.iter().map(one).collect::<Vec<String>>().join(", ")
    }

    fn differences(&self) -> Vec<(String, String)> {
        let mut out = Vec::new();
        for a in &self.attributes {
            let now = self.object.get(a.name);
            if now.as_ref().is_some_and(|now| now.is_same(&a.value)) {
                continue;
            }
            let (expected, seen) =
                (shown(&a.value), now.map_or_else(|| "nothing".to_string(), |v| shown(&v)));
            // Another tensor of the same type, say.
            let seen = if seen == expected { format!("another {seen}") } else { seen };
            out.push((format!("{} = {expected}", a.name), format!("{} = {seen}", a.name)));
        }
        for (list, items) in self.lists.iter().filter(|(list, items)| !holds_items(list, items)) {
            let owner =
                self.attributes.iter().find(|a| matches!(&a.value, Value::List(own) if own.same(list)));
            let name = owner.map_or("a list", |a| a.name.as_str());
            let now = list.items();
            let other = (0..items.len().max(now.len())).find(|n| match (now.get(*n), items.get(*n)) {
                (Some(now), Some(then)) => !is_same_item(now, then),
                _ => true,
            });
            let Some(n) = other else { continue };
            let item = |items: &[Value]| items.get(n).map_or_else(|| "nothing".to_string(), shown);
            let (expected, seen) = (item(items), item(&now));
            let seen = if seen == expected { format!("another {seen}") } else { seen };
            out.push((format!("{name}[{n}] = {expected}"), format!("{name}[{n}] = {seen}")));
        }
        out
    }
}

/// Whether a list holds what it held.
fn holds_items(list: &List, items: &[Value]) -> bool {
    let now = list.items();
    now.len() == items.len() && now.iter().zip(items).all(|(now, then)| is_same_item(now, then))
}

fn is_same_item(now: &Value, then: &Value) -> bool {
    match (now, then) {
        (Value::Float(now), Value::Float(then)) => now.to_bits() == then.to_bits(),
        _ => now.is_same(then),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Symbol;
    use crate::tensor::DType;

    #[test]
    fn a_write_or_another_value_is_seen_and_other_attributes_do_not_matter() {
        let object = Object::new(Symbol::new("__torch__.M"));
        let (weight, steps) = (Symbol::new("weight"), Symbol::new("steps"));
        let tensor = Tensor::zeros(DType::F32, &[2]).expect("small");
        object.set(weight, Value::Tensor(tensor.clone()));
        let guards = || {
            let value = object.get(weight).expect("is set");
            Guards::of(
                vec![FrozenAttribute {
                    object: object.clone(),
                    name: weight,
                    value,
                    items: Vec::new(),
                    location: None,
                }],
                Vec::new(),
            )
        };
        let before = guards();
        object.set(steps, Value::Int(3));
        assert!(before.hold(None));
        drop(tensor.storage().write().expect("own memory"));
        assert!(!before.hold(None));
        let before = guards();
        assert!(before.hold(None));
        object.set(weight, Value::Tensor(tensor.copy().expect("small")));
        assert!(!before.hold(None));
        let before = guards();
        let now = object.get(weight).expect("is set");
        now.to_tensor().expect("a tensor").set_data(&tensor);
        assert!(!before.hold(None));
    }

    #[test]
    fn another_tensor_in_a_list_is_seen() {
        let object = Object::new(Symbol::new("__torch__.M"));
        let name = Symbol::new("weights");
        let tensor = || Tensor::zeros(DType::F32, &[2]).expect("small");
        let (first, list) = (tensor(), List::new(Type::tensor(), Vec::new()));
        list.items_mut().push(Value::Tensor(first.clone()));
        object.set(name, Value::List(list.clone()));
        let value = Value::List(list.clone());
        let frozen = FrozenAttribute {
            object,
            name,
            value,
            items: vec![Value::Tensor(first.clone())],
            location: None,
        };
        let guards = Guards::of(vec![frozen], Vec::new());
        assert!(guards.hold(None));
        list.items_mut()[0] = Value::Tensor(tensor());
        assert!(!guards.hold(None));
        list.items_mut()[0] = Value::Tensor(first.clone());
        assert!(guards.hold(None));
        list.items_mut().push(Value::Tensor(first));
        assert!(!guards.hold(None));
    }

    #[test]
    fn a_guard_that_is_to_miss_does_and_those_before_it_hold() {
        let object = Object::new(Symbol::new("__torch__.M"));
        let weight = Symbol::new("weight");
        let value = Value::Tensor(Tensor::zeros(DType::F32, &[2]).expect("small"));
        object.set(weight, value.clone());
        let guards = Guards::of(
            vec![FrozenAttribute { object, name: weight, value, items: Vec::new(), location: None }],
            Vec::new(),
        );
        let last = Forced::new(2);
        assert!(!guards.hold(Some(&last)) && guards.hold(None) && guards.hold(Some(&Forced::new(3))));
        let listed = guards.list();
        let shown = |n: usize| (listed[n].kind, listed[n].of.as_str(), (listed[n].held, listed[n].missed));
        assert_eq!(shown(0), (GuardKind::Arguments, "the kind of the arguments", (3, 0)));
        assert_eq!(shown(1), (GuardKind::Tensor, "weight of __torch__.M", (3, 0)));
        assert_eq!(shown(2), (GuardKind::Attributes, "weight of __torch__.M", (2, 1)));
        assert_eq!((listed.len(), last.misses()), (3, 1));
        assert!(listed.iter().all(|asked| asked.miss.is_none()), "a forced miss found nothing");
    }

    #[test]
    fn a_miss_shows_what_was_expected_and_what_was_seen() {
        let object = Object::new(Symbol::new("__torch__.M"));
        let (weight, flag) = (Symbol::new("weight"), Symbol::new("training"));
        let tensor = Tensor::zeros(DType::F32, &[2]).expect("small");
        object.set(weight, Value::Tensor(tensor.clone()));
        object.set(flag, Value::Bool(false));
        let frozen = |name| {
            let value = object.get(name).expect("is set");
            FrozenAttribute { object: object.clone(), name, value, items: Vec::new(), location: None }
        };
        let guards = || Guards::of(vec![frozen(weight), frozen(flag)], Vec::new());
        let missed = |guards: &Guards, number: usize| {
            assert!(!guards.hold(None));
            let miss = guards.list().swap_remove(number).miss.expect("this one missed");
            (miss.expected, miss.seen)
        };
        let before = guards();
        drop(tensor.storage().write().expect("own memory"));
        assert_eq!(missed(&before, 1), ("version 0".to_string(), "version 1".to_string()));
        let before = guards();
        object.set(flag, Value::Bool(true));
        assert_eq!(missed(&before, 2), ("training = False".to_string(), "training = True".to_string()));
        let before = guards();
        object.set(weight, Value::Tensor(tensor.copy().expect("small")));
        let (expected, seen) = missed(&before, 2);
        assert!(
            expected.starts_with("weight = Float(2") && seen.starts_with("weight = another Float(2"),
            "{seen}"
        );
    }
}
