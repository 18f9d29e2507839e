//! What a plan took for granted of attributes that it froze, and whether it still holds: each object has the same
//! attributes, each tensor the same elements in the same places, and requires grad or not as it did. A check reads two counters a tensor and one an object.
//! Guards have numbers: 0 is that of the arguments, which the one who looks a plan up has asked; then tensors, then objects.

use super::spec;
use crate::ir::Type;
use crate::passes::FrozenAttribute;
use crate::runtime::checks::{Forced, GuardKind};
use crate::tensor::{Storage, Tensor};
use crate::value::{List, Object, Value};
use hashbrown::HashSet;
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
}

/// What a guard asks, of what, and how often it held and missed.
pub(super) type Listed = (GuardKind, String, (u64, u64));

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
        };
        let mut known: HashSet<usize> = HashSet::new();
        let mut guard = |guards: &mut Guards, tensor: &Tensor, name: &dyn Fn() -> String| {
            if known.insert(tensor.id()) {
                let storage = tensor.storage();
                let (changes, version, pins) = (tensor.changes(), storage.version(), storage.pins());
                let requires_grad = tensor.requires_grad();
                let tensor = tensor.clone();
                guards.tensors.push(Frozen {
                    name: name(),
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
            guard(&mut guards, tensor, &|| format!("the constant {}", ty()));
        }
        for attribute in frozen {
            for value in [&attribute.value].into_iter().chain(&attribute.items) {
                let Value::Tensor(tensor) = value else { continue };
                let name = || format!("{} of {}", attribute.name, attribute.object.class());
                guard(&mut guards, tensor, &name);
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
        let missed = self.missed.get(forced.map_or(changed, |forced| forced.number()));
        missed.map(|missed| missed.fetch_add(1, Ordering::Relaxed)).is_none()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.missed.len()
    }

    /// All of them in order of their numbers.
    pub(super) fn list(&self) -> Vec<Listed> {
        let arguments = (GuardKind::Arguments, "the kind of the arguments".to_string());
        let tensors = self.tensors.iter().map(|tensor| (GuardKind::Tensor, tensor.name.clone()));
        let objects = self.objects.iter().map(|holder| (GuardKind::Attributes, holder.name()));
        let mut asked = self.checks.load(Ordering::Relaxed);
        let counted = |((kind, of), missed): ((GuardKind, String), &AtomicU64)| {
            let missed = missed.load(Ordering::Relaxed);
            asked = asked.saturating_sub(missed);
            (kind, of, (asked, missed))
        };
        [arguments].into_iter().chain(tensors).chain(objects).zip(&self.missed).map(counted).collect()
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
}

/// Whether a list holds what it held.
fn holds_items(list: &List, items: &[Value]) -> bool {
    let now = list.items();
    let same = |(now, then): (&Value, &Value)| match (now, then) {
        (Value::Float(now), Value::Float(then)) => now.to_bits() == then.to_bits(),
        _ => now.is_same(then),
    };
    now.len() == items.len() && now.iter().zip(items).all(same)
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
                vec![FrozenAttribute { object: object.clone(), name: weight, value, items: Vec::new() }],
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
        let frozen = FrozenAttribute { object, name, value, items: vec![Value::Tensor(first.clone())] };
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
        let guards =
            Guards::of(vec![FrozenAttribute { object, name: weight, value, items: Vec::new() }], Vec::new());
        let last = Forced::new(2);
        assert!(!guards.hold(Some(&last)) && guards.hold(None) && guards.hold(Some(&Forced::new(3))));
        let expected = [
            (GuardKind::Arguments, "the kind of the arguments".to_string(), (3, 0)),
            (GuardKind::Tensor, "weight of __torch__.M".to_string(), (3, 0)),
            (GuardKind::Attributes, "weight of __torch__.M".to_string(), (2, 1)),
        ];
        assert_eq!((guards.list(), last.misses()), (expected.to_vec(), 1));
    }
}
