//! Plans that are made while calls go on: a call that has none yet begins the making on another thread and runs as it would without
//! an executor, and so do the calls after it until the plan is there. What is made is what the call itself would have made.
//!
//! The maker has its own references to what the call was given: the call may go on to change its lists and the sizes of its tensors.

use super::{ArgumentSpec, Call, Executor, Slot};
use crate::diag::panics;
use crate::dialects::Run;
use crate::resources::budget::{self, Budget};
use crate::resources::tasks;
use crate::tensor::Tensor;
use crate::value::{Dict, Tuple, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Lists and tuples nested deeper are not copied.
const MAX_DEPTH: usize = 16;

impl Executor {
    /// Waits until no plan is being made by another thread.
    pub(in crate::runtime) fn finish(&self) {
        self.pending.wait();
    }

    /// Whether another thread makes the plan of a slot, from now on if need be. No where it is made, or where it is to be made by
    /// the call itself: other threads have no room, or the call was given what cannot be copied.
    pub(super) fn is_left_to_others(
        self: &Arc<Executor>,
        slot: &Arc<Slot>,
        call: &Call<'_>,
        run: &Run,
    ) -> bool {
        if !run.plans_in_background() || slot.plan.get().is_some() {
            return false;
        }
        if slot.is_left.swap(true, Ordering::AcqRel) {
            return true;
        }
        let begun = self.begin(slot, call, run);
        if !begun {
            slot.is_left.store(false, Ordering::Release);
        }
        begun
    }

    /// Begins to make the plan of a slot on another thread.
    fn begin(self: &Arc<Executor>, slot: &Arc<Slot>, call: &Call<'_>, run: &Run) -> bool {
        let copies = call.arguments.iter().map(|value| copied(value, 0)).collect::<Option<Vec<Value>>>();
        let Some(arguments) = copies else { return false };
        if ArgumentSpec::of(&arguments, run) != ArgumentSpec::of(call.arguments, run) {
            return false;
        }
        let (slot, instance, name) = (Arc::clone(slot), call.instance.cloned(), call.function.name);
        let (executor, program) = (Arc::clone(self), Arc::clone(call.program));
        let (grad, composites) = (run.grad_enabled(), run.known_composites());
        // What limits the call limits the making too, each by itself.
        let limits = budget::current().map(|budget| *budget.limits()).unwrap_or_default();
        let making = self.pending.begin();
        tasks::offer(Box::new(move || {
            let _making = making;
            let function = program.module.functions.get(&name);
            let Some(function) = function else { return };
            let run = Run::silent();
            run.set_grad_enabled(grad);
            if let Some(composites) = composites {
                run.offer_composites(|| composites);
            }
            let _budget = Arc::new(Budget::new(limits)).install();
            let call = Call {
                program: &program,
                module: &program.module,
                function,
                instance: instance.as_ref(),
                arguments: &arguments,
                context: program.code_context(),
            };
            let made = panics::catch("the making of a plan", || executor.ready(&slot, &call, &run).map(drop));
            if let Err(error) = made.and_then(|made| made) {
                // No call can raise it; those without the plan give it as their reason.
                let _ = slot.plan.set(Err(format!("planning failed: {}", error.message())));
            }
        }))
    }
}

/// The same value for another thread to look at: tensors share their elements, and nothing else.
fn copied(value: &Value, depth: usize) -> Option<Value> {
    let all = |items: &[Value]| items.iter().map(|item| copied(item, depth + 1)).collect::<Option<Vec<_>>>();
    Some(match value {
        _ if depth > MAX_DEPTH => return None,
        Value::Tensor(tensor) => Value::Tensor(copy_of(tensor)?),
        Value::Tuple(tuple) => {
            let items = all(tuple.items())?;
            match tuple.names() {
                Some(names) => Value::Tuple(Tuple::named(Arc::clone(names), items)),
                None => Value::tuple(items),
            }
        }
        Value::List(list) => Value::list(list.element_type().clone(), all(&list.to_vec())?),
        Value::Dict(dict) => {
            let copy = Dict::new(dict.key_type().clone(), dict.value_type().clone());
            for (key, value) in dict.entries().iter() {
                copy.insert(&key.to_value(), copied(value, depth + 1)?).ok()?;
            }
            Value::Dict(copy)
        }
        Value::Future(_) | Value::Generator(_) => return None,
        // Numbers and text; objects, whose attributes plans guard.
        other => other.clone(),
    })
}

fn copy_of(tensor: &Tensor) -> Option<Tensor> {
    let copy = tensor.detach();
    if tensor.requires_grad() {
        copy.set_requires_grad(true).ok()?;
    }
    Some(copy)
}
