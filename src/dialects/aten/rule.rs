//! From a rule on layouts to the three forms of a view: sharing, copying, in place.

use crate::diag::Result;
use crate::dialects::{Args, Kernel, OutRule, Outputs, one};
use crate::tensor::Layout;

/// Finds the layout of a view from the call's arguments; argument 0 is the tensor.
pub type Rule = fn(&Args<'_>) -> Result<Layout>;

/// A new tensor over the same storage.
pub fn look(a: &Args<'_>, rule: Rule) -> Result<Outputs> {
    one(a.tensor(0)?.with_layout(rule(a)?)?)
}

/// A dense copy of what the view would show.
pub fn copied(a: &Args<'_>, rule: Rule) -> Result<Outputs> {
    one(a.tensor(0)?.with_layout(rule(a)?)?.copy()?)
}

/// Changes the tensor's own layout and returns it.
pub fn in_place(a: &Args<'_>, rule: Rule) -> Result<Outputs> {
    let layout = rule(a)?;
    a.tensor(0)?.set_layout(layout)?;
    one(a.tensor(0)?.clone())
}

/// Runs a kernel of several results and writes them to the `out` arguments, which follow the kernel's own from
/// argument `first` on and are resized to fit.
pub fn into(a: &Args<'_>, first: usize, kernel: Kernel) -> Result<Outputs> {
    let results = kernel(a)?;
    for (n, result) in results.iter().enumerate() {
        let (target, result) = (a.tensor(first + n)?, result.to_tensor()?);
        OutRule::Exact.check(a.op.name().as_str(), result.dtype(), target.dtype())?;
        target.give_sizes(&result.sizes())?;
        target.copy_from(result)?;
    }
    Ok(a.values.iter().skip(first).take(results.len()).cloned().collect())
}
