//! Types of results that graph text leaves out. PyTorch's parser takes them from the op's schema; ops that are not
//! registered, and ops with any number of results, give tensors.

use super::{Registry, resolve};
use crate::ir::{Graph, OpId, Schema, Symbol, Type, TypeKind, parse_schema};
use hashbrown::HashMap;
use std::sync::LazyLock;

/// Ops of PyTorch's other dialects, which Flambeau does not run.
static FOREIGN: LazyLock<HashMap<Symbol, Vec<Schema>>> = LazyLock::new(|| {
    let mut table: HashMap<Symbol, Vec<Schema>> = HashMap::new();
    let lines = include_str!("foreign.schemas").lines().filter(|line| !line.starts_with('#'));
    for schema in lines.filter_map(|line| parse_schema(line).ok()) {
        table.entry(schema.name).or_default().push(schema);
    }
    table
});

/// The type that a result of an op gets where text gives none; None means a tensor.
pub fn result_type(registry: &Registry, graph: &Graph, op: OpId, n: usize) -> Option<Type> {
    let kind = graph.kind(op);
    let ty = if registry.overloads(kind).is_empty() {
        let types: Vec<&Type> = graph.operands(op).iter().map(|v| graph.ty(*v)).collect();
        let schema = FOREIGN.get(&kind)?.iter().find(|s| super::matches(s, &types))?;
        schema.returns.get(n)?.ty.clone()
    } else {
        let row = resolve(registry, graph, op).ok()?;
        let schema = row.schema().ok()?;
        if schema.is_varret {
            return None;
        }
        schema.returns.get(n)?.ty.clone()
    };
    // A row that gives anything says nothing, but for the two ops whose schemas say so in PyTorch too.
    let is_any = matches!(ty.kind(), TypeKind::Any);
    (!is_any || kind == "prim::Uninitialized" || kind == "prim::AutogradAdd").then_some(ty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_foreign_schema_parses() {
        let text = include_str!("foreign.schemas");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Err(error) = parse_schema(line) {
                panic!("{line}\n{error}");
            }
        }
    }
}
