//! Work that ran as one and is one operation of the tape. Its operands are kept, and what the backward needs besides is
//! computed again from them. Where the gradients themselves are to be differentiated, the work is done once more op by op, recorded, and
//! the tape runs through that.

use super::history;
use super::node::{Node, Operand, Work, output_of};
use super::saved::Saved;
use super::{cell::Keep, views};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Gradients, Region, Run};
use crate::tensor::Tensor;
use crate::value::Value;
use parking_lot::Mutex;
use std::sync::Arc;

/// Records a region that ran.
pub(super) fn record(region: Arc<dyn Region>, values: &[Value], outputs: &[Tensor], run: &Run) -> Result<()> {
    let mut operands = Vec::new();
    let mut saved = Vec::with_capacity(values.len());
    for (argument, value) in values.iter().enumerate() {
        if let Value::Tensor(tensor) = value {
            let edge = views::edge_of(tensor, run)?;
            operands.push(Operand {
                argument,
                item: None,
                edge,
                sizes: tensor.sizes(),
                dtype: tensor.dtype(),
            });
        }
        saved.push(Saved::argument(value, Keep::All)?);
    }
    let follows = region.follows().to_vec();
    let name = region.name().to_string();
    let work = Work::Region { region, saved: Mutex::new(Some(saved)) };
    let node = Node::new(name, work, operands, outputs.iter().map(output_of).collect());
    run.note_recorded(Arc::downgrade(&node) as std::sync::Weak<dyn crate::dialects::Recorded>);
    for (n, (output, follows)) in outputs.iter().zip(follows).enumerate() {
        if follows && (output.dtype().is_floating() || output.dtype().is_complex()) {
            history::set(output, &node, n, None);
        }
    }
    Ok(())
}

/// Computes gradients by the tape.
type Tape = fn(&Gradients, &Run) -> Result<Vec<Option<Tensor>>>;

/// A region that runs backward.
pub(super) struct Passage<'a> {
    pub(super) node: &'a Arc<Node>,
    pub(super) region: &'a Arc<dyn Region>,
    pub(super) saved: &'a [Saved],
    pub(super) run: &'a Run,
    /// How the tape computes gradients.
    pub(super) tape: Tape,
}

impl Passage<'_> {
    /// The gradients of the operands that are asked for, one a tensor; `create` records how they are computed.
    pub(super) fn gradients(
        &self,
        gradients: Vec<Option<Tensor>>,
        asked: &[bool],
        create: bool,
    ) -> Result<Vec<Option<Tensor>>> {
        if create { self.recorded(gradients, asked) } else { self.compiled(&gradients, asked) }
    }

    fn compiled(&self, gradients: &[Option<Tensor>], asked: &[bool]) -> Result<Vec<Option<Tensor>>> {
        let mut values = Vec::with_capacity(self.saved.len());
        for (n, saved) in self.saved.iter().enumerate() {
            let is_read = self.region.reads().get(n) != Some(&false);
            values.push(if is_read { saved.unpack(self.node)? } else { saved.as_it_is() });
        }
        let mut wanted = vec![false; values.len()];
        for (operand, asked) in self.node.operands.iter().zip(asked) {
            if let Some(slot) = wanted.get_mut(operand.argument) {
                *slot = *asked;
            }
        }
        let former = self.run.set_grad_enabled(false);
        let found = self.region.backward(&values, gradients, &wanted, self.run);
        self.run.set_grad_enabled(former);
        let found = found?;
        Ok(self.node.operands.iter().map(|operand| found.get(operand.argument).cloned().flatten()).collect())
    }

    fn recorded(&self, gradients: Vec<Option<Tensor>>, asked: &[bool]) -> Result<Vec<Option<Tensor>>> {
        let mut values = Vec::with_capacity(self.saved.len());
        for saved in self.saved {
            values.push(match saved.unpack(self.node)? {
                // Another name for the tensor: one operand may be computed of another.
                Value::Tensor(tensor) if tensor.requires_grad() => {
                    self.run.function("the helper 'again'", AGAIN, vec![Value::Tensor(tensor)])?
                }
                other => other,
            });
        }
        let results = self.region.replay(values.clone(), self.run)?;
        let (mut outputs, mut cotangents) = (Vec::new(), Vec::new());
        for (result, gradient) in results.iter().zip(gradients) {
            let tensor = result.to_tensor()?;
            if gradient.is_some() && tensor.requires_grad() {
                outputs.push(tensor.clone());
                cotangents.push(gradient);
            }
        }
        let (mut inputs, mut places) = (Vec::new(), Vec::new());
        for (n, (operand, asked)) in self.node.operands.iter().zip(asked).enumerate() {
            if let Some(Value::Tensor(tensor)) = values.get(operand.argument).filter(|_| *asked) {
                inputs.push(tensor.clone());
                places.push(n);
            }
        }
        let wanted = Gradients {
            outputs,
            cotangents,
            inputs: Some(inputs),
            keep: true,
            create: true,
            allow_unused: true,
        };
        let found = (self.tape)(&wanted, self.run)?;
        let mut out = vec![None; self.node.operands.len()];
        for (place, gradient) in places.into_iter().zip(found) {
            let slot =
                out.get_mut(place).ok_or_else(|| Diagnostic::internal("an operand that does not exist"))?;
            *slot = gradient;
        }
        Ok(out)
    }
}

const AGAIN: &str = "def again(x: Tensor):\n    return x.view_as(x)\n";
