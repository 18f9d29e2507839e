//! Calls of a program's functions and methods, without plans.

use super::code::Code;
use super::inner::Inner;
use super::interpreter::execute;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Methods, Run};
use crate::ir::{Symbol, Type};
use crate::value::{Object, Value};
use std::sync::Arc;

impl Inner {
    /// Runs the last function of the module; nothing is checked or converted.
    pub(super) fn run_last(&self, arguments: Vec<Value>, run: &Run) -> Result<Value> {
        match self.module.functions.last() {
            Some((name, _)) => self.call_function(*name, arguments, run),
            None => Err(Diagnostic::internal("a module without functions")),
        }
    }

    /// Runs a function on arguments that fit it.
    pub(super) fn call_function(&self, name: Symbol, arguments: Vec<Value>, run: &Run) -> Result<Value> {
        let code = self.function_code(name)?;
        self.execute(code, arguments, run)
    }

    /// Runs code on arguments; several results are a tuple.
    pub(super) fn execute(&self, code: Arc<Code>, arguments: Vec<Value>, run: &Run) -> Result<Value> {
        let results = execute(&self.this()?, run, code, arguments)?;
        Ok(match <[Value; 1]>::try_from(results) {
            Ok([only]) => only,
            Err(results) if results.is_empty() => Value::None,
            Err(results) => Value::tuple(results),
        })
    }

    /// Runs a method of a class on arguments that fit it.
    pub(super) fn call_method(
        &self,
        class: Symbol,
        method: Symbol,
        arguments: Vec<Value>,
        run: &Run,
    ) -> Result<Value> {
        let name = self.module.class(class).and_then(|c| c.methods.get(&method).copied());
        self.call_function(name.unwrap_or(method), arguments, run)
    }
}

impl Methods for Inner {
    fn call(&self, object: &Object, name: &str, arguments: &[Value], run: &Run) -> Result<Value> {
        let mut all = vec![Value::Object(object.clone())];
        all.extend_from_slice(arguments);
        self.call_method(object.class(), Symbol::new(name), all, run)
    }

    fn has_order(&self, object: &Object) -> bool {
        let class = object.class();
        let name = self.module.class(class).and_then(|c| c.methods.get(&Symbol::new("__lt__")).copied());
        let Some(function) = name.and_then(|name| self.module.functions.get(&name)) else { return false };
        let takes_two = match function.schema.arguments.as_slice() {
            [_, other] => other.ty == Type::class(class),
            _ => false,
        };
        takes_two && matches!(function.schema.returns.as_slice(), [only] if only.ty == Type::bool())
    }
}
