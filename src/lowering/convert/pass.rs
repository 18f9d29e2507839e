//! The pass `lower-ops`: ops become kernels of the `loop` dialect and host code that calls them, by the lowerings that are
//! registered for them. It stands apart from `lower-fusion`, as it replaces what it lowers: a group keeps its work op by op for
//! inputs that were not foreseen, while a kernel of a lowering takes any sizes and checks what it is given.

use super::{ConversionTarget, convert};
use crate::diag::Result;
use crate::ir::Module;
use crate::lowering::Target;
use crate::lowering::by_op::Ops;
use crate::passes::{Context, Pass, PassOption};

/// The pass, for the table of a toolkit.
pub const PASS: Pass = Pass::module(
    "lower-ops",
    "Replaces ops by kernels of the loop dialect where a lowering is registered for them; says what is left illegal",
    run,
)
.options(&[
    PassOption::choice("target", &["cpu", "gpu"], "the machine that loops are arranged for"),
    PassOption::text("legal", "", "what stays: ops (aten::mm), families (@view), dialects (prim), with commas"),
    PassOption::text("illegal", "", "what must go; an op that is left is an error"),
    PassOption::text("by", "", "names of the lowerings to ask, with commas; all of them without it"),
    PassOption::bool("partial", true, "ops of which neither says anything may stay"),
]);

fn run(module: &mut Module, context: &Context<'_>) -> Result<bool> {
    let machine = if context.text("target")? == "gpu" { Target::Gpu } else { Target::Cpu };
    let mut target = ConversionTarget::new();
    for ops in Ops::parse_list(context.text("legal")?)? {
        target = target.legal(ops);
    }
    for ops in Ops::parse_list(context.text("illegal")?)? {
        target = target.illegal(ops);
    }
    for name in context.text("by")?.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        target = target.by(name);
    }
    if !context.flag("partial")? {
        target = target.full();
    }
    convert(module, context, &target, machine)
}
