//! Rules resolved against a table of ops, once a table: those that hold for every program, and groups by name.

use super::compile::compile;
use super::rule::CompiledRule;
use super::wanted::{PEEPHOLE, TRUSTING, Wanted};
use super::{facts, groups, shelf};
use crate::diag::{Diagnostic, Result};
use crate::dialects::Registry;
use std::sync::Arc;

/// Rules of a table, resolved against its ops. Built-in rules about overloads that the table does not have can match nothing
/// and are left out.
fn compiled(registry: &Registry, wanted: Wanted<'_>) -> Result<Vec<CompiledRule>> {
    let mut rules = groups::compiled(registry, wanted)?;
    if wanted.has_facts() {
        rules.extend(facts::compiled(registry)?);
    }
    for rule in shelf::rules(wanted) {
        // They all are over the built-in ops, which a test makes sure of.
        rules.extend(compile(registry, rule?).unwrap_or_default());
    }
    Ok(rules)
}

/// Rules over the ops of one table, as [`Registry::derived`] keeps them.
pub(super) type Kept = Result<Arc<[CompiledRule]>>;
struct Builtin(Kept);
struct Peephole(Kept);

/// The rules of a table that hold for every program, of all contracts: the groups that were added to it, then the built-in
/// ones. They are resolved once a table.
pub fn builtin(registry: &Registry) -> Result<Arc<[CompiledRule]>> {
    let kept = registry.derived(|registry| Builtin(compiled(registry, Wanted::Laws).map(Arc::from)));
    kept.0.clone()
}

/// The rules of PyTorch's peephole pass, with those that trust what is not known.
pub fn peephole(registry: &Registry) -> Result<Arc<[CompiledRule]>> {
    let groups = Wanted::Groups(&[PEEPHOLE, TRUSTING]);
    let kept = registry.derived(|registry| Peephole(compiled(registry, groups).map(Arc::from)));
    kept.0.clone()
}

/// Groups of one table that were asked for by name, as [`Registry::derived`] keeps them.
#[derive(Default)]
struct Named(parking_lot::Mutex<indexmap::IndexMap<String, Arc<[CompiledRule]>>>);

/// The rules of one group, built in or added. Fails where there is none of that name.
pub fn group(registry: &Registry, name: &str) -> Result<Arc<[CompiledRule]>> {
    let known = registry.derived(|_| Named::default());
    if let Some(rules) = known.0.lock().get(name) {
        return Ok(Arc::clone(rules));
    }
    let wanted = Wanted::Groups(&[name]);
    let is_added = || groups::added_rules(registry).any(|rule| rule.group.as_deref() == Some(name));
    if !wanted.has_facts() && !shelf::entries().iter().any(|entry| entry.is(wanted)) && !is_added() {
        return Err(Diagnostic::input(format!("there is no rule group '{name}'")));
    }
    let rules: Arc<[CompiledRule]> = compiled(registry, wanted)?.into();
    known.0.lock().insert(name.to_string(), Arc::clone(&rules));
    Ok(rules)
}
