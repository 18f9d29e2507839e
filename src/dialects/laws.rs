//! The laws of dialects: which ops exist and what they take, asked of the registry by the verifier.

use super::{Registry, resolve};
use crate::diag::{Diagnostic, ErrorKind, nearest};
use crate::ir::{DialectLaws, Graph, OpId, Symbol, Violations};

/// How much the verifier demands of ops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Structure only; of ops nothing.
    Structure,
    /// Ops of dialects that nobody registered are refused.
    #[default]
    Dialects,
    /// Besides, every op must exist and take its operands.
    Ops,
}

/// The laws of the dialects of a registry.
pub struct Laws<'a> {
    registry: &'a Registry,
    strictness: Strictness,
}

impl<'a> Laws<'a> {
    /// The laws of a registry's dialects.
    pub fn new(registry: &'a Registry, strictness: Strictness) -> Laws<'a> {
        Laws { registry, strictness }
    }
}

impl DialectLaws for Laws<'_> {
    fn check(&self, graph: &Graph, op: OpId, report: &mut Violations) {
        if self.strictness == Strictness::Structure {
            return;
        }
        let kind = graph.kind(op);
        let overloads = self.registry.overloads(kind);
        if overloads.is_empty() {
            let dialect = kind.namespace();
            if !self.registry.has_dialect(dialect) {
                report.push(graph, op, self.unknown_dialect(kind));
            } else if self.strictness == Strictness::Ops {
                report.push(graph, op, as_violation(self.registry.unknown(kind)));
            }
        } else if self.strictness == Strictness::Ops
            && let Err(error) = resolve(self.registry, graph, op)
        {
            report.push(graph, op, as_violation(error));
        }
    }
}

/// The same error as the breach of a law.
fn as_violation(mut error: Diagnostic) -> Diagnostic {
    error.report_mut().kind = ErrorKind::Verify;
    error
}

impl Laws<'_> {
    fn unknown_dialect(&self, kind: Symbol) -> Diagnostic {
        let dialect = kind.namespace();
        let error = Diagnostic::verify(format!("{kind}: the dialect '{dialect}' is not registered"));
        let error = match nearest(dialect, self.registry.dialects()) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error,
        };
        error.hint("--dialect FILE declares a dialect, --allow-unregistered-dialect carries its ops as they are")
    }
}
