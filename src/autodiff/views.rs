//! Views: a write through one changes the history of its base, and with it that of all other views.

use super::history;
use super::node::{Edge, Node, Operand, Work, Write, output_of};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Fact, Op, Run};
use crate::ir::{Type, TypeKind};
use crate::tensor::Tensor;
use crate::value::Value;
use std::sync::Arc;

/// What PyTorch says of views that one function gives several of.
pub(super) const ONE_OF_SEVERAL: &str = "This view is the output of a function that returns multiple views. Such functions do not allow the \
    output views to be modified inplace. You should replace the inplace operation by an out-of-place one.";

/// Whether a list of this element type holds tensors.
pub(super) fn holds_tensors(element: &Type) -> bool {
    element.is_tensor() || matches!(element.kind(), TypeKind::Optional(inner) if inner.is_tensor())
}

/// Notes which results of an op are views of its first operand.
pub(super) fn link(op: &Op, values: &[Value], results: &[Value]) {
    if op.def().facts.contains(&Fact::Detached) {
        return;
    }
    let Some(Value::Tensor(operand)) = values.first() else { return };
    let marked = |value: &Value| {
        let one = |t: &Tensor| {
            if !t.same(operand) && t.base().is_none() && t.storage().same(&operand.storage()) {
                t.set_base(Some(operand.base().unwrap_or_else(|| operand.clone())));
            }
        };
        match value {
            Value::Tensor(t) => one(t),
            Value::List(list) if list.element_type().is_tensor() => {
                list.items().iter().filter_map(|v| v.to_tensor().ok()).for_each(one);
            }
            _ => {}
        }
    };
    results.iter().for_each(marked);
}

/// Whether an op gives several views at once, none of which may be written in place.
pub(super) fn gives_several(op: &Op, results: &[Value]) -> bool {
    let marks = op.schema().is_ok_and(|s| s.returns.iter().any(|r| r.alias.is_some()));
    marks && (results.len() > 1 || matches!(results.first(), Some(Value::List(_))))
}

/// Where the gradient of a tensor goes. The history of a view that was written to, through any view, is computed
/// anew from its base.
pub(super) fn edge_of(tensor: &Tensor, run: &Run) -> Result<Edge> {
    let known = history::of(tensor);
    if let Some(base) = tensor.base()
        && base.requires_grad()
        && known.as_ref().is_none_or(|history| history.version != tensor.version())
    {
        if let Some(history) = known.filter(|history| history.one_of.is_some()) {
            let (output, name) = (history.output, history.one_of.as_deref().unwrap_or_default());
            return Err(Diagnostic::runtime(format!(
                "Output {output} of {name} is a view and its base or another view of its base has been modified inplace. \
                 {ONE_OF_SEVERAL}"
            )));
        }
        renew(tensor, &base, run)?;
        return Ok(direct(tensor));
    }
    Ok(direct(tensor))
}

fn direct(tensor: &Tensor) -> Edge {
    match history::of(tensor) {
        Some(history) => Edge::Node(Arc::clone(&history.node), history.output),
        None if tensor.requires_grad() => Edge::Leaf(tensor.clone()),
        None => Edge::None,
    }
}

/// Gives a view the history of its base as it is now, seen through the view.
fn renew(view: &Tensor, base: &Tensor, run: &Run) -> Result<()> {
    let layout = view.layout();
    let ints = |dims: &[i64]| Value::ints(dims.iter().copied());
    let text = match (base.dtype().is_complex(), view.dtype().is_complex()) {
        (true, false) => REAL_PART,
        (false, true) => COMPLEX,
        _ => SAME,
    };
    let arguments = vec![
        Value::Tensor(base.clone()),
        ints(&layout.sizes),
        ints(&layout.strides),
        Value::Int(layout.offset as i64),
    ];
    let former = run.set_grad_enabled(true);
    let again = run.function("the helper 'view'", text, arguments);
    run.set_grad_enabled(former);
    let again = again?;
    let again = again.to_tensor()?;
    let Some(history) = history::of(again) else {
        return Err(Diagnostic::internal("a view of a recorded tensor was not recorded"));
    };
    history::set(view, &history.node, history.output, None);
    Ok(())
}

const SAME: &str = "def view(base: Tensor, size: List[int], stride: List[int], offset: int):\n    return base.as_strided(size, stride, offset)\n";
const REAL_PART: &str = "def view(base: Tensor, size: List[int], stride: List[int], offset: int):\n    return torch.view_as_real(base).as_strided(size, stride, offset)\n";
const COMPLEX: &str = "def view(base: Tensor, size: List[int], stride: List[int], offset: int):\n    return torch.view_as_complex(base.as_strided(size + [2], [s * 2 for s in stride] + [1], offset * 2))\n";

/// Says that a node wrote to a tensor; `argument` is the one of the node's op that it wrote to.
pub(super) fn written(target: &Tensor, node: &Arc<Node>, argument: Option<usize>, run: &Run) -> Result<()> {
    let Some(base) = target.base() else {
        history::set(target, node, 0, None);
        return Ok(());
    };
    let at = node.operands.iter().position(|operand| Some(operand.argument) == argument);
    let edge = edge_of(&base, run)?;
    let mut operands =
        vec![Operand { argument: 0, item: None, edge, sizes: base.sizes(), dtype: base.dtype() }];
    for (n, operand) in node.operands.iter().enumerate() {
        let edge = if Some(n) == at { Edge::None } else { operand.edge.clone() };
        let (sizes, dtype) = (operand.sizes.clone(), operand.dtype);
        operands.push(Operand { argument: operand.argument, item: operand.item, edge, sizes, dtype });
    }
    let write = Write {
        inner: Arc::clone(node),
        target: at,
        base: (base.dtype(), base.layout()),
        view: (target.dtype(), target.layout()),
    };
    let outer =
        Node::new("CopySlices".to_string(), Work::Write(Box::new(write)), operands, vec![output_of(&base)]);
    run.note_recorded(Arc::downgrade(&outer) as std::sync::Weak<dyn crate::dialects::Recorded>);
    history::set(&base, &outer, 0, None);
    renew(target, &base, run)
}
