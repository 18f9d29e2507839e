//! PyTorch's peephole optimizations: the rules of group `torchscript-peephole`, saturated like all others, and the
//! removal of what they left without use. What an `if` gives is no longer optional where neither branch gives None.

use super::{Context, PassOption, dce, simplify};
use crate::diag::Result;
use crate::ir::unify::unify;
use crate::ir::{BlockId, Graph, NoClasses, OpId, TypeKind};
use crate::rewrite;
use crate::rewrite::syntax::Contract;

/// PyTorch's pass takes its rules whatever they promise; naming it alone requests that. Pipelines that run by default
/// say `exact`, which a test holds them to.
pub(super) const OPTIONS: &[PassOption] = &[PassOption::choice(
    "contract",
    &["fast-math", "nan-relaxed", "exact"],
    "soundness contract of rules; PyTorch applies all of its own",
)];

/// Types that rules made plainer make others plainer, so often.
const MAX_ROUNDS: usize = 4;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    with_contract(graph, context, simplify::contract(context).unwrap_or(Contract::FastMath))
}

/// The same for another pass, which says what rules must promise.
pub(super) fn with_contract(graph: &mut Graph, context: &Context<'_>, contract: Contract) -> Result<bool> {
    let rules = rewrite::peephole(context.registry)?;
    let manner = simplify::Manner { one_by_one: true, contract };
    let (mut changed, mut dead) = (false, false);
    for _ in 0..MAX_ROUNDS {
        let root = graph.root();
        let refined = refine_optional(graph, context, root);
        let report = simplify::apply(graph, context, &rules, &manner)?;
        // Operands that only changed places leave nothing behind.
        dead |= refined.is_some() || report.fired.keys().any(|rule| !rule.starts_with("commute-"));
        changed |= refined == Some(true) || report.replaced > 0;
        context.changed();
        if refined != Some(true) {
            break;
        }
    }
    if dead {
        dce::run(graph, context)?;
    }
    Ok(changed)
}

/// Gives results of an `if` the type that the branches give, where that is not optional. None where there is no such
/// result; else whether a type changed.
fn refine_optional(graph: &mut Graph, context: &Context<'_>, block: BlockId) -> Option<bool> {
    let mut refined = None;
    for op in graph.block_ops(block).collect::<Vec<OpId>>() {
        for inner in graph.nested_blocks(op).to_vec() {
            let found = stacker::maybe_grow(64 << 10, 1 << 20, || refine_optional(graph, context, inner));
            refined = refined.max(found);
        }
        let (true, &[yes, no]) = (graph.kind(op) == "prim::If", graph.nested_blocks(op)) else { continue };
        let is_optional = |graph: &Graph, v| matches!(graph.ty(v).kind(), TypeKind::Optional(_));
        for (n, result) in graph.results(op).into_iter().enumerate() {
            let [Some(a), Some(b)] = [yes, no].map(|b| graph.block_results(b).get(n).copied()) else {
                continue;
            };
            if !is_optional(graph, result) || is_optional(graph, a) || is_optional(graph, b) {
                continue;
            }
            let Some(ty) = unify(graph.ty(a), graph.ty(b), &NoClasses) else { continue };
            let is_new = *graph.ty(result) != ty
                && context.step(|| format!("is never None: %{}", graph.display_name(result)));
            if is_new {
                graph.set_type(result, ty);
            }
            refined = refined.max(Some(is_new));
        }
    }
    refined
}
