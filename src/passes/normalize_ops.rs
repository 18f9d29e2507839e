//! One name for each op: `absolute` is `abs`, `special.erf` is `erf`. Also `x - y` reversed becomes a plain difference.
//!
//! Both names stand for one function of the same arguments, so that results are equal. A name is changed only if the
//! other one takes the operands.

use super::Context;
use crate::diag::Result;
use crate::dialects::resolve;
use crate::ir::{Graph, OpId, Symbol};

/// The other name and the one that stays, without `aten::`. In-place forms follow.
#[rustfmt::skip]
const NAMES: &[(&str, &str)] = &[
    ("absolute", "abs"), ("arccos", "acos"), ("arccosh", "acosh"), ("arcsin", "asin"), ("arcsinh", "asinh"),
    ("arctan", "atan"), ("arctan2", "atan2"), ("arctanh", "atanh"), ("clip", "clamp"), ("concat", "cat"),
    ("concatenate", "cat"), ("det", "linalg_det"), ("divide", "div"), ("fix", "trunc"), ("ger", "outer"),
    ("greater", "gt"), ("greater_equal", "ge"), ("inverse", "linalg_inv"), ("less", "lt"), ("less_equal", "le"),
    ("matrix_exp", "linalg_matrix_exp"), ("matrix_power", "linalg_matrix_power"), ("moveaxis", "movedim"),
    ("multiply", "mul"), ("negative", "neg"), ("not_equal", "ne"), ("orgqr", "linalg_householder_product"),
    ("row_stack", "vstack"), ("special_digamma", "digamma"), ("special_erf", "erf"), ("special_erfc", "erfc"),
    ("special_erfinv", "erfinv"), ("special_exp2", "exp2"), ("special_expit", "sigmoid"), ("special_expm1", "expm1"),
    ("special_gammainc", "igamma"), ("special_gammaincc", "igammac"), ("special_gammaln", "lgamma"),
    ("special_i0", "i0"), ("special_log1p", "log1p"), ("special_log_softmax", "log_softmax"),
    ("special_logit", "logit"), ("special_logsumexp", "logsumexp"), ("special_multigammaln", "mvlgamma"),
    ("special_polygamma", "polygamma"), ("special_psi", "digamma"), ("special_round", "round"),
    ("special_sinc", "sinc"), ("special_softmax", "softmax"), ("special_xlogy", "xlogy"), ("subtract", "sub"),
    ("swapaxes", "transpose"), ("swapdims", "transpose"), ("true_divide", "div"),
];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        changed |= rename(graph, context, op) || reversed_difference(graph, context, op);
    }
    Ok(changed)
}

fn rename(graph: &mut Graph, context: &Context<'_>, op: OpId) -> bool {
    let kind = graph.kind(op);
    if kind.namespace() != "aten" {
        return false;
    }
    let (base, suffix) = match kind.base().strip_suffix('_') {
        Some(base) => (base, "_"),
        None => (kind.base(), ""),
    };
    let Ok(at) = NAMES.binary_search_by_key(&base, |(name, _)| name) else { return false };
    graph.set_kind(op, Symbol::new(&format!("aten::{}{suffix}", NAMES[at].1)));
    if resolve(context.registry, graph, op).is_err()
        || !context.step(|| format!("renames {kind}: {}", graph.op_line(op)))
    {
        graph.set_kind(op, kind);
        return false;
    }
    true
}

/// `rsub(x, y, alpha)` is `sub(y, x, alpha)`, where y is a tensor.
fn reversed_difference(graph: &mut Graph, context: &Context<'_>, op: OpId) -> bool {
    let kind = graph.kind(op);
    let &[x, y, alpha] = graph.operands(op) else { return false };
    if kind != "aten::rsub" || !graph.ty(y).is_tensor() {
        return false;
    }
    graph.set_kind(op, Symbol::new("aten::sub"));
    graph.set_operands(op, &[y, x, alpha]);
    if resolve(context.registry, graph, op).is_err()
        || !context.step(|| format!("swaps the operands of {kind}: {}", graph.op_line(op)))
    {
        graph.set_kind(op, kind);
        graph.set_operands(op, &[x, y, alpha]);
        return false;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::NAMES;

    #[test]
    fn names_are_in_order_and_none_is_renamed_twice() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(NAMES.iter().all(|(_, to)| NAMES.iter().all(|(from, _)| from != to)));
    }
}
