//! Guards of code: ops that check types and bailouts, numbered in the order in which they stand. Code inside of others counts on.

use super::sites::span_of;
use super::{Action, Bound, Code, Compiler, Context};
use crate::ir::{Attr, OpId, Type};
use crate::runtime::checks::{Check, GuardKind};
use std::sync::Arc;

impl<'a> Compiler<'a> {
    /// What code inside of this one is made for.
    pub(super) fn inner_context(&self) -> Context<'a> {
        let forced = self.context.forced.map(|forced| forced.behind(self.code.guards.len()));
        Context { forced, ..self.context }
    }

    /// Counts the guards of code inside of this one as its own.
    pub(super) fn take_guards(&mut self, inner: &mut Code) {
        self.code.guards.append(&mut inner.guards);
    }

    /// A new guard of an op, which has the next number: of what, and what it expects.
    pub(super) fn guard(
        &mut self,
        kind: GuardKind,
        asks: (String, String),
        op: OpId,
        fails: bool,
    ) -> Arc<Check> {
        let number = self.code.guards.len();
        let forced = self.context.forced.and_then(|forced| forced.guard(number));
        let source = span_of(self.graph, self.graph.location_id(op));
        let check = Check::new(kind, asks, source, fails, forced);
        self.code.guards.push(Arc::clone(&check));
        check
    }

    /// An op that checks its operands.
    pub(super) fn check(&mut self, op: OpId, bound: Bound) -> Action {
        let types = match self.graph.attr(op, "types") {
            Some(Attr::Types(types)) => &types[..],
            _ => &[],
        };
        let names =
            self.graph.operands(op).iter().map(|value| format!("%{}", self.graph.display_name(*value)));
        let names: Vec<String> = names.collect();
        let expects: Vec<String> = types.iter().map(Type::to_string).collect();
        let kind = GuardKind::asked_by(self.graph.kind(op)).unwrap_or(GuardKind::Types);
        let check = self.guard(kind, (names.join(", "), expects.join(", ")), op, false);
        Action::Check(Box::new(bound), check)
    }
}
