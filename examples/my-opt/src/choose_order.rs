//! The pass `choose-order`: gives each conversion to a sparse matrix that has no order yet the one that its option names.

use flambeau::ir::Attr;
use flambeau::prelude::*;

pub(crate) const PASS: Pass =
    Pass::graph("choose-order", "Says in which order sparse matrices list their elements", run).options(&[
        PassOption::choice("order", &["row", "column"], "the order of conversions that have none"),
    ]);

fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let order = format!("#sparse.order<{:?}>", context.text("order")?);
    let mut changed = false;
    for op in graph.all_ops() {
        if graph.kind(op) == "sparse::from_dense"
            && graph.attr(op, "order").is_none()
            && context.step(|| format!("orders {}", graph.op_line(op)))
        {
            graph.set_attr(op, "order", Attr::Raw(order.as_str().into()));
            context.count("orders chosen", 1);
            changed = true;
        }
    }
    Ok(changed)
}
