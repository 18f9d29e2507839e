//! Chooses the op (overload) that a node of a graph means. Graph text has no overload names: as in PyTorch,
//! the first overload in order of registration whose arguments accept the operands' types is the one.

use super::fit::fits;
use super::{Op, Registry};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Graph, OpId, Symbol, Type};
use smallvec::SmallVec;

/// The op that a node means. Fails, naming operator and operand types, if there is none.
pub fn resolve(registry: &Registry, graph: &Graph, op: OpId) -> Result<Op> {
    let (kind, operands) = (graph.kind(op), graph.operands(op));
    let overloads = registry.overloads(kind);
    if overloads.is_empty() {
        return Err(registry.unknown(kind));
    }
    // Lists take any number of operands, of which schemas say nothing.
    let mut types: SmallVec<[&Type; 8]> = SmallVec::new();
    for candidate in overloads {
        let schema = candidate.schema()?;
        let named = operands.iter().take(schema.arguments.len()).skip(types.len());
        types.extend(named.map(|v| graph.ty(*v)));
        if fits(schema, operands.len(), &types) {
            return Ok(candidate.clone());
        }
    }
    let types: Vec<&Type> = operands.iter().map(|v| graph.ty(*v)).collect();
    Err(no_overload(kind, overloads, &types))
}

fn no_overload(kind: Symbol, overloads: &[Op], types: &[&Type]) -> Diagnostic {
    let operands: Vec<String> = types.iter().map(|t| t.to_string()).collect();
    let mut error = Diagnostic::unsupported(format!(
        "no overload of operator {kind} takes operands of types ({})",
        operands.join(", ")
    ));
    for overload in overloads {
        error = error.note(format!("there is {}", overload.schema_text()));
    }
    error
}
