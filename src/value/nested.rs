//! Values that hold values, however deep: what they hold is dropped without recursion, since a program can nest lists and
//! chain objects deeper than any stack.

use super::Value;
use super::future::Awaited;
use std::cell::RefCell;

thread_local! {
    /// What is still to be dropped, while this thread drops nested values.
    static PENDING: RefCell<Option<Vec<Value>>> = const { RefCell::new(None) };
}

/// Drops what a container held. Containers call it when they go; those within come back here and are put off until the
/// outermost one is done with its own.
pub(super) fn release(mut values: Vec<Value>) {
    if !values.iter().any(is_nested) {
        return;
    }
    let begins = PENDING.try_with(|pending| {
        let mut pending = pending.borrow_mut();
        match &mut *pending {
            Some(list) => {
                list.append(&mut values);
                false
            }
            None => {
                *pending = Some(std::mem::take(&mut values));
                true
            }
        }
    });
    // A thread that is ending drops what is left the plain way.
    if !begins.unwrap_or(false) {
        return;
    }
    let next = || PENDING.with(|pending| pending.borrow_mut().as_mut().and_then(Vec::pop));
    while let Some(value) = next() {
        drop(value);
    }
    PENDING.with(|pending| *pending.borrow_mut() = None);
}

impl Awaited for Value {
    fn release(self) {
        release(vec![self]);
    }
}

/// Whether a value may hold others.
fn is_nested(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Dict(_) | Value::Tuple(_) | Value::Object(_) | Value::Future(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Symbol, Type};
    use crate::value::{Dict, Future, Object};

    const DEEP: usize = 300_000;

    /// Deeper than any stack if dropping recursed.
    #[test]
    fn deep_values_are_dropped() {
        let mut list = Value::Int(0);
        let mut tuple = Value::Int(0);
        let mut dict = Value::Int(0);
        let mut future = Value::Int(0);
        let mut chain = Value::None;
        for n in 0..DEEP {
            list = Value::list(Type::any(), vec![list]);
            tuple = Value::tuple(vec![tuple]);
            let outer = Dict::new(Type::int(), Type::any());
            outer.insert(&Value::Int(n as i64), dict).expect("a key");
            dict = Value::Dict(outer);
            future = Value::Future(Future::ready(Type::any(), future));
            let object = Object::new(Symbol::new("Node"));
            object.set(Symbol::new("next"), chain);
            chain = Value::Object(object);
        }
        assert!(list.to_text().contains("...") && chain.kind_name() == "Object");
        drop((list, tuple, dict, future, chain));
    }

    #[test]
    fn what_others_hold_stays() {
        let kept = Value::list(Type::int(), vec![Value::Int(1)]);
        drop(Value::list(Type::any(), vec![Value::tuple(vec![kept.clone()])]));
        assert_eq!(kept.to_text(), "[1]");
    }
}
