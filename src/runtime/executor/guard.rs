//! What a plan took for granted of attributes that it froze, and whether it still holds: each object has the same
//! attributes, each tensor the same elements in the same places, and requires grad or not as it did. A check reads two counters a tensor and one an object.

use crate::passes::FrozenAttribute;
use crate::tensor::{Storage, Tensor};
use crate::value::{Object, Value};
use hashbrown::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// The attributes that a plan froze.
pub(super) struct Guards {
    objects: Vec<Holder>,
    tensors: Vec<Frozen>,
}

/// An object and those of its attributes that were frozen.
struct Holder {
    object: Object,
    /// Changes of the object after which its attributes were last found to be the same.
    changes: AtomicU64,
    attributes: Vec<FrozenAttribute>,
}

/// A tensor as it was.
struct Frozen {
    tensor: Tensor,
    changes: u64,
    requires_grad: bool,
    storage: Storage,
    /// None where its elements may change: the plan takes it as an operand.
    version: Option<u64>,
}

impl Guards {
    /// Guards of attributes, and of constants of the function itself, as they are now. Reading and guarding are not one step:
    /// see [`Guards::hold`].
    pub(super) fn of(frozen: Vec<FrozenAttribute>, constants: Vec<Tensor>) -> Guards {
        let mut guards = Guards { objects: Vec::new(), tensors: Vec::new() };
        let mut known: HashSet<usize> = HashSet::new();
        let mut guard = |guards: &mut Guards, tensor: &Tensor| {
            if known.insert(tensor.id()) {
                let storage = tensor.storage();
                let (changes, version) = (tensor.changes(), storage.version());
                let requires_grad = tensor.requires_grad();
                let tensor = tensor.clone();
                guards.tensors.push(Frozen {
                    tensor,
                    changes,
                    requires_grad,
                    storage,
                    version: Some(version),
                });
            }
        };
        constants.iter().for_each(|tensor| guard(&mut guards, tensor));
        for attribute in frozen {
            if let Value::Tensor(tensor) = &attribute.value {
                guard(&mut guards, tensor);
            }
            match guards.objects.iter_mut().find(|known| known.object.same(&attribute.object)) {
                Some(holder) => holder.attributes.push(attribute),
                None => {
                    let changes = AtomicU64::new(attribute.object.changes());
                    let object = attribute.object.clone();
                    guards.objects.push(Holder { object, changes, attributes: vec![attribute] });
                }
            }
        }
        guards
    }

    /// Whether everything is as it was.
    pub(super) fn hold(&self) -> bool {
        self.tensors.iter().all(Frozen::holds) && self.objects.iter().all(Holder::holds)
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
            && self.version.is_none_or(|version| self.storage.version() == version)
            && self.tensor.requires_grad() == self.requires_grad
    }
}

impl Holder {
    fn holds(&self) -> bool {
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
            Guards::of(vec![FrozenAttribute { object: object.clone(), name: weight, value }], Vec::new())
        };
        let before = guards();
        object.set(steps, Value::Int(3));
        assert!(before.hold());
        drop(tensor.storage().write().expect("own memory"));
        assert!(!before.hold());
        let before = guards();
        assert!(before.hold());
        object.set(weight, Value::Tensor(tensor.copy().expect("small")));
        assert!(!before.hold());
        let before = guards();
        let now = object.get(weight).expect("is set");
        now.to_tensor().expect("a tensor").set_data(&tensor);
        assert!(!before.hold());
    }
}
