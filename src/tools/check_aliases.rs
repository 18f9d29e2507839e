//! Compares what really aliases and is written when a program runs with what the alias analysis says of its graph.
//!
//! Tensors alias if they share storage, containers and objects if they are one object. A result that shares something
//! with an argument, and an argument that was written, must be possible by the analysis; that it says more is not a fault.

use crate::analysis::AliasDb;
use crate::diag::{Diagnostic, Result};
use crate::runtime::Program;
use crate::value::Value;
use hashbrown::HashSet;

/// Values nested deeper are not examined.
const MAX_DEPTH: usize = 64;

/// The arguments of a run before it.
pub struct Before {
    /// By argument: the storages of its tensors and how often each was written.
    versions: Vec<Vec<(usize, u64)>>,
}

impl Before {
    /// Looks at arguments.
    pub fn of(arguments: &[Value]) -> Before {
        Before { versions: arguments.iter().map(versions).collect() }
    }

    /// Looks at the arguments and the result after the run. Fails, with the places, where the analysis denies what
    /// happened.
    pub fn compare(&self, program: &Program, entry: &str, arguments: &[Value], result: &Value) -> Result<()> {
        let Some(function) = program.function(entry) else { return Ok(()) };
        let graph = &function.graph;
        // A method's graph has its object first; defaults that were left out come last.
        let receiver = usize::from(program.instance().is_some());
        let inputs: Vec<_> = graph.inputs().iter().skip(receiver).copied().collect();
        let &[output] = graph.outputs() else { return Ok(()) };
        let db = AliasDb::new(program.registry(), Some(program.module()), graph);
        let mut made = HashSet::new();
        objects(result, &mut made, 0);
        for (n, (argument, input)) in arguments.iter().zip(inputs).enumerate() {
            let mut held = HashSet::new();
            objects(argument, &mut held, 0);
            if !held.is_disjoint(&made) && !db.may_contain_alias(input, output) {
                return Err(lie(format!("argument {n} and the result share memory")));
            }
            if self.versions.get(n) != Some(&versions(argument)) && !db.has_deep_writers(input) {
                return Err(lie(format!("argument {n} was written")));
            }
        }
        Ok(())
    }
}

fn lie(what: String) -> Diagnostic {
    Diagnostic::internal(format!("{what}, which the alias analysis denies"))
        .hint("an alias mark in the schema of an operator is missing")
}

/// The identities of a value and of all that it contains.
fn objects(value: &Value, found: &mut HashSet<usize>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Tensor(t) if t.numel() > 0 => {
            found.insert(t.storage().id());
        }
        Value::List(list) => {
            found.insert(list.id());
            list.items().iter().for_each(|item| objects(item, found, depth + 1));
        }
        Value::Dict(dict) => {
            found.insert(dict.id());
            dict.entries().values().for_each(|item| objects(item, found, depth + 1));
        }
        Value::Tuple(tuple) => tuple.items().iter().for_each(|item| objects(item, found, depth + 1)),
        _ => {}
    }
}

fn versions(value: &Value) -> Vec<(usize, u64)> {
    let mut found = Vec::new();
    collect_versions(value, &mut found, 0);
    found
}

fn collect_versions(value: &Value, found: &mut Vec<(usize, u64)>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Tensor(t) => found.push((t.storage().id(), t.version())),
        Value::List(list) => list.items().iter().for_each(|item| collect_versions(item, found, depth + 1)),
        Value::Dict(dict) => {
            dict.entries().values().for_each(|item| collect_versions(item, found, depth + 1))
        }
        Value::Tuple(tuple) => tuple.items().iter().for_each(|item| collect_versions(item, found, depth + 1)),
        _ => {}
    }
}
