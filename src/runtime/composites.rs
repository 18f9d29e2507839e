//! Runs ops whose meaning is TorchScript text: the text is compiled when first needed and kept.

use super::inner::{Inner, Setting};
use super::traceback::RAISED;
use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::{Composites, Op, Outputs, Registry, Run};
use crate::frontend::script::compile_source;
use crate::value::Value;
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::sync::{Arc, LazyLock};

/// The one table of compiled meanings over the built-in ops: programs over them share it.
static BUILTIN: LazyLock<Arc<ScriptComposites>> = LazyLock::new(|| {
    Arc::new(ScriptComposites { registry: Registry::builtin(), compiled: RwLock::default() })
});

/// Compiled meanings by their text.
pub struct ScriptComposites {
    registry: Arc<Registry>,
    compiled: RwLock<HashMap<String, Arc<Inner>>>,
}

impl ScriptComposites {
    /// Meanings over the ops of a registry.
    pub fn of(registry: &Arc<Registry>) -> Arc<dyn Composites> {
        if Arc::ptr_eq(registry, &BUILTIN.registry) {
            return Arc::clone(&BUILTIN) as Arc<dyn Composites>;
        }
        Arc::new(ScriptComposites::new(Arc::clone(registry)))
    }

    /// Meanings over other ops.
    pub fn new(registry: Arc<Registry>) -> ScriptComposites {
        ScriptComposites { registry, compiled: RwLock::default() }
    }

    fn program(&self, name: &str, text: &str) -> Result<Arc<Inner>> {
        if let Some(program) = self.compiled.read().get(text) {
            return Ok(Arc::clone(program));
        }
        let module =
            compile_source(&self.registry, &Source::new(format!("<{name}>"), text)).map_err(|d| {
                let place = d.report().span.as_ref().map_or(0, |span| span.line_column().0);
                Diagnostic::unsupported(format!("line {place} of {name} does not compile: {}", d.message()))
            })?;
        let program = Inner::new(Arc::new(module), None, Arc::clone(&self.registry), Setting::default());
        self.compiled.write().insert(text.to_string(), Arc::clone(&program));
        Ok(program)
    }
}

impl Composites for ScriptComposites {
    fn run(&self, op: &Op, text: &str, values: &[Value], run: &Run) -> Result<Outputs> {
        let name = format!("the meaning of {}", op.schema_text());
        let program = self.program(&name, text)?;
        let result = run.meaning(&name, || program.run_last(values.to_vec(), run)).map_err(|mut error| {
            // The op raised: the place within its definition is an implementation detail.
            let report = error.report_mut();
            report.frames.clear();
            report.span = None;
            // To the program that called it, what an operator raises was never a `raise` statement.
            if let Some(class) = &mut report.class {
                *class = match class.as_str() {
                    RAISED => "RuntimeError".to_string(),
                    other => other.trim_start_matches("builtins.").to_string(),
                };
            }
            error
        })?;
        Ok(match (op.schema()?.returns.len(), result) {
            (0, _) => Outputs::new(),
            (1, value) => Outputs::from_iter([value]),
            (_, Value::Tuple(tuple)) => tuple.items().iter().cloned().collect(),
            (_, value) => Outputs::from_iter([value]),
        })
    }

    fn function(&self, name: &str, text: &str, values: Vec<Value>, run: &Run) -> Result<Value> {
        let program = self.program(name, text)?;
        run.meaning(name, || program.run_last(values, run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Variant;

    #[test]
    fn every_derivative_compiles_and_stands_in_one_place() {
        let registry = Registry::builtin();
        let mut failures: Vec<String> = Vec::new();
        for (op, texts) in crate::autodiff::Cells::of(&registry).texts() {
            match texts {
                Ok(texts) => failures.extend(texts.iter().filter_map(|text| {
                    let error = compile_source(&registry, &Source::new("derivative", text.as_str())).err()?;
                    Some(format!("{}: {}", op.full_name(), error.message()))
                })),
                Err(error) => failures.push(format!("{}: {}", op.full_name(), error.message())),
            }
            let derived = op.variant() != Variant::Plain;
            if !derived && op.def().grad.is_some() && registry.grads().cell(op.full_name()).is_some() {
                failures.push(format!("{} has a derivative in its row and one in a file", op.full_name()));
            }
        }
        for (name, _) in registry.grads().cells() {
            if !registry.iter().any(|op| op.full_name() == name) {
                failures.push(format!("a file has a derivative of {name}, which is not an op that runs"));
            }
        }
        assert!(failures.is_empty(), "{failures:#?}");
    }

    #[test]
    fn every_meaning_compiles() {
        let registry = Registry::builtin();
        let meanings = registry.iter().filter(|op| op.variant() == Variant::Plain);
        let failures: Vec<String> = meanings
            .filter_map(|op| {
                let error = compile_source(&registry, &Source::new("meaning", op.def().meaning?)).err()?;
                Some(format!("{}: {}", op.schema_text(), error.message()))
            })
            .collect();
        assert!(failures.is_empty(), "{failures:#?}");
    }
}
