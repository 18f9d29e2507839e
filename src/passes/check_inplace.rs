//! Refuses in-place ops on results of Python functions in a trace: what memory those share is not known.

use super::Context;
use crate::analysis::facts;
use crate::diag::{Diagnostic, Result};
use crate::ir::Graph;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    for op in graph.all_ops() {
        let facts = facts(context.registry, graph, op);
        let Some(schema) = facts.op.as_ref().and_then(|row| row.schema().ok()) else { continue };
        for (argument, value) in schema.arguments.iter().zip(graph.operands(op)) {
            let written = argument.alias.as_ref().is_some_and(|alias| alias.is_write);
            let python = graph.def_op(*value).filter(|def| graph.kind(*def).as_str().starts_with('^'));
            if let Some(maker) = python.filter(|_| written) {
                let error = Diagnostic::verify(format!(
                    "{} writes to a result of {}",
                    graph.op_line(op),
                    graph.op_line(maker)
                ));
                return Err(error.hint("write to a copy: call clone() first"));
            }
        }
    }
    Ok(false)
}
