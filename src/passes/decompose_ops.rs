//! Decomposition: the rules of group `decompose-ops`, so that a sum can fuse with what follows. Types and constants are
//! propagated where an op of the outermost block was taken apart.

use super::{Context, Directed, constant_propagation, dce, input_shapes};
use crate::diag::Result;
use crate::ir::Graph;
use crate::rewrite::Replaced;

pub(super) const DIRECTED: Directed = Directed::group("decompose-ops").then(clean);

fn clean(graph: &mut Graph, context: &Context<'_>, replaced: &Replaced) -> Result<()> {
    if replaced.outermost {
        input_shapes::propagate(graph);
        context.changed();
        constant_propagation::run(graph, context)?;
        context.changed();
        dce::run(graph, context)?;
    }
    Ok(())
}
