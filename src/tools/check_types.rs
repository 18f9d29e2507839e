//! Compares the tensors that the ops of a plan give with the types that its graph says they have: dtype, sizes, strides. Open sizes
//! are what they are in a call where they are first seen; wherever else they stand, they must be the same.

use super::observe::{Event, Watch};
use crate::diag::{Diagnostic, ErrorKind, Result};
use crate::dialects::{GraphId, Run};
use crate::ir::{Dim, Graph, OpId, Stride, TensorType};
use crate::runtime::Program;
use crate::tensor::{DType, Layout};
use crate::value::Value;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;

/// Fails where no plans are made: nothing would be compared.
pub fn need_plans(are_made: bool) -> Result<()> {
    if are_made {
        return Ok(());
    }
    let error = Diagnostic::usage("--types compares the tensors of plans, and none are made");
    Err(error.hint("plans are made with --passes default"))
}

/// What ops gave in calls of plans, in order.
#[derive(Clone, Default)]
pub struct Given(Arc<Mutex<Vec<Seen>>>);

/// What happened in a graph.
struct Seen {
    graph: GraphId,
    /// The op; None where a call of the graph begins.
    op: Option<u32>,
    tensors: Vec<Option<(DType, Layout)>>,
}

impl Given {
    /// Watches the calls of a run.
    pub fn watch(run: &Run) -> Given {
        let given = Given::default();
        let sink = Arc::clone(&given.0);
        run.watch(Some(Watch::of_plans(move |at, event| {
            let Some(graph) = at.graph else { return };
            let (op, values) = match event {
                Event::Enters { arguments } => (None, arguments),
                Event::Ran { op, results, .. } => (Some(op), results),
                Event::Leaves => return,
            };
            sink.lock().push(Seen { graph, op, tensors: values.iter().map(look).collect() });
        })));
        given
    }

    /// Fails where something is not as its type says.
    pub fn compare(&self, program: &Program) -> Result<()> {
        let graphs: HashMap<GraphId, Arc<Graph>> =
            program.plan_graphs().into_iter().map(|(_, graph)| (GraphId::of(&graph), graph)).collect();
        let mut open: HashMap<(GraphId, u32), i64> = HashMap::new();
        for seen in self.0.lock().iter() {
            let Some(graph) = graphs.get(&seen.graph) else { continue };
            let values = match seen.op {
                None => {
                    open.retain(|(of, _), _| *of != seen.graph);
                    graph.inputs().to_vec()
                }
                // Branches and loops move values in steps of their own.
                Some(op) => match graph.all_ops().into_iter().find(|other| other.index() as u32 == op) {
                    Some(op) if !graph.nested_blocks(op).is_empty() => continue,
                    Some(op) => graph.results(op).to_vec(),
                    None => continue,
                },
            };
            for (value, tensor) in values.iter().zip(&seen.tensors) {
                let (Some(ty), Some((dtype, layout))) = (graph.ty(*value).as_tensor(), tensor) else {
                    continue;
                };
                let mut size = |n: u32, own: Option<i64>| match own {
                    Some(own) => Some(*open.entry((seen.graph, n)).or_insert(own)),
                    None => open.get(&(seen.graph, n)).copied(),
                };
                if let Some(how) = contradiction(ty, *dtype, layout, &mut size) {
                    let maker = graph.def_op(*value).map(|op: OpId| graph.op_line(op)).unwrap_or_default();
                    let ty = graph.ty(*value);
                    let message = format!("%{} {how}: {ty}: {maker}", graph.display_name(*value));
                    return Err(Diagnostic::new(ErrorKind::Internal, message));
                }
            }
        }
        Ok(())
    }
}

fn look(value: &Value) -> Option<(DType, Layout)> {
    match value {
        Value::Tensor(tensor) if tensor.is_plain() => Some((tensor.dtype(), tensor.layout())),
        _ => None,
    }
}

/// How a tensor differs from its type; `size` gives an open size, which is this one where it is first seen.
fn contradiction(
    ty: &TensorType,
    dtype: DType,
    layout: &Layout,
    size: &mut impl FnMut(u32, Option<i64>) -> Option<i64>,
) -> Option<String> {
    if ty.dtype.is_some_and(|own| own != dtype) {
        return Some(format!("is of dtype {dtype:?}"));
    }
    let dims = ty.sizes.as_deref()?;
    let mut is_size = |(dim, own): (&Dim, &i64)| match dim {
        Dim::Known(n) => n == own,
        Dim::Open(n) => *own >= 2 && size(*n, Some(*own)) == Some(*own),
        Dim::Symbol(_) | Dim::Unknown => true,
    };
    if dims.len() != layout.sizes.len() || !dims.iter().zip(&layout.sizes).all(&mut is_size) {
        return Some(format!("has sizes {:?}", layout.sizes.as_slice()));
    }
    let mut is_stride = |(stride, own): (&Stride, &i64)| match stride {
        Stride::Known(n) => n == own,
        // A size that is seen in strides alone says nothing.
        Stride::Open(factor, open) => {
            let product = open.iter().try_fold(*factor, |all, n| all.checked_mul(size(*n, None)?));
            product.is_none_or(|product| product == *own)
        }
        Stride::Unknown => true,
    };
    let strides = ty.strides.as_deref()?;
    let fits = strides.iter().zip(&layout.strides).all(&mut is_stride);
    (!fits).then(|| format!("has strides {:?}", layout.strides.as_slice()))
}
