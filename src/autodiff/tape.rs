//! The tape: records operations as they run, and runs them backward.

use super::cell::Cells;
use super::history;
use super::node::Edge;
use super::record::Call;
use super::{engine, region, views};
use crate::diag::{Diagnostic, Result};
use crate::dialects::constraint::Law;
use crate::dialects::{Autograd, Compute, Gradients, Node, Op, Outputs, Region, Registry, Run};
use crate::eval;
use crate::tensor::Tensor;
use crate::value::Value;
use std::sync::{Arc, OnceLock};

/// Records operations of a program over the ops of a registry. It has no state: histories are attached to tensors.
pub struct Tape {
    registry: Arc<Registry>,
    /// Found when something is first recorded: most runs record nothing.
    cells: OnceLock<Arc<Cells>>,
}

impl Tape {
    /// Over the ops of a registry.
    pub fn of(registry: &Arc<Registry>) -> Arc<dyn Autograd> {
        Arc::new(Tape { registry: Arc::clone(registry), cells: OnceLock::new() })
    }
}

impl Autograd for Tape {
    fn call(
        &self,
        op: &Op,
        values: &[Value],
        node: Node<'_>,
        run: &Run,
        compute: Compute<'_>,
    ) -> Result<Outputs> {
        let declared = op.def().laws.iter().any(|law| matches!(law, Law::Attribute(_) | Law::Structure(_)));
        let attributes = if declared { eval::attributes(op, node)? } else { Vec::new() };
        let cells = self.cells.get_or_init(|| Cells::of(&self.registry));
        Call { cells, op, values, attributes: &attributes, run, compute }.record()
    }

    fn link_views(&self, op: &Op, values: &[Value], results: &[Value]) {
        views::link(op, values, results);
    }

    fn retain(&self, tensor: &Tensor, run: &Run) -> Result<()> {
        match views::edge_of(tensor, run)? {
            Edge::Node(node, output) => node.retain(output, tensor),
            Edge::Leaf(_) => {}
            Edge::None => {
                return Err(Diagnostic::runtime("can't retain_grad on Tensor that has requires_grad=False"));
            }
        }
        Ok(())
    }

    fn retains(&self, tensor: &Tensor) -> bool {
        history::of(tensor).is_some_and(|history| history.node.retains(tensor))
    }

    fn output_number(&self, tensor: &Tensor, run: &Run) -> Result<usize> {
        Ok(match views::edge_of(tensor, run)? {
            Edge::Node(_, output) => output,
            Edge::Leaf(_) | Edge::None => 0,
        })
    }

    fn region(&self, region: Arc<dyn Region>, values: &[Value], outputs: &[Tensor], run: &Run) -> Result<()> {
        region::record(region, values, outputs, run)
    }

    fn gradients(&self, wanted: &Gradients, run: &Run) -> Result<Vec<Option<Tensor>>> {
        engine::run(wanted, run)
    }
}
