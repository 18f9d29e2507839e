//! Ops outside of groups where tensors are on a device: by its libraries, and by their rows on the host where those refuse. What
//! has to be brought home for that is counted. No op is known here by name.

use super::code::Bound;
use super::interpreter::Machine;
use crate::backends::LibraryOp;
use crate::diag::{ErrorKind, Result};
use crate::dialects::{Args, Outputs};
use crate::value::Value;

impl Machine<'_> {
    /// Runs an op by a library of the device. What is recorded for gradients, and what the library refuses, runs by its row.
    pub(super) fn call_library(
        &self,
        bound: &Bound,
        library: &dyn LibraryOp,
        operands: &[Value],
    ) -> Result<Outputs> {
        let requires_grad = |v: &Value| matches!(v, Value::Tensor(t) if t.requires_grad());
        if !self.run.grad_enabled() || !operands.iter().any(requires_grad) {
            match library.run(&Args { op: &bound.op, values: operands, node: bound.node(), run: self.run }) {
                Ok(Some(results)) => {
                    self.program.fusion.by_library();
                    self.run.check()?;
                    return Ok(results);
                }
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    self.program.fusion.refused_by_library(bound.op.name().as_str(), error.message());
                }
                Err(error) => return Err(error),
            }
        }
        self.call_op(bound, operands)
    }

    /// How many operands are on a device and nowhere else; 0 where there is no device.
    pub(super) fn away(&self, operands: &[Value]) -> usize {
        let Some(_) = &self.program.device else { return 0 };
        operands.iter().filter(|value| is_away(value)).count()
    }

    /// Counts an op that had to copy operands to the host, with their number.
    pub(super) fn count_brought_home(&self, bound: &Bound, operands: &[Value], before: usize) {
        if before > self.away(operands) {
            self.program.fusion.on_host(bound.op.name().as_str());
        }
    }
}

/// Whether a value is a tensor whose content is on a device and nowhere else.
fn is_away(value: &Value) -> bool {
    matches!(value, Value::Tensor(tensor) if tensor.storage().is_away())
}
