//! Facts that a dialect states are checked when it is added: both sides of each equation run on random instances. A false one
//! is refused with the instance on which it fails.

use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::text::parse_dialect;
use crate::dialects::{Registry, Run};
use crate::ir::TypeKind;
use crate::rewrite::check::{Counterexample, Effort, Verdict, check};
use crate::rewrite::facts::{FactRule, readings, rules};
use crate::rewrite::on_one_line;
use crate::runtime::ScriptComposites;
use crate::tensor::Scalar;
use crate::value::Value;
use std::sync::Arc;

/// Instances for each equation; `rules check --group facts` takes more. Loading a dialect stays a matter of milliseconds.
const EFFORT: Effort = Effort { samples: 64, exhaustive: 0, evaluations: 20_000, seed: 0 };

/// Elements of a tensor that an error shows.
const MOST_SHOWN: usize = 8;

/// Checks the facts of those rows that `base` lacks. An op without a meaning is what its facts say; one over values of a type
/// of its dialect, which cannot be drawn at random, is trusted.
/// `source` is the dialect file that states them, if it is one.
pub(super) fn checked(
    base: &Registry,
    registry: Arc<Registry>,
    source: Option<&Arc<Source>>,
) -> Result<Arc<Registry>> {
    let is_new = |op: &crate::dialects::Op| !base.overloads(op.name()).iter().any(|other| other.same(op));
    if !registry.iter().any(|op| !op.def().facts.is_empty() && is_new(op)) {
        return Ok(registry);
    }
    let run = Run::silent().with_composites(ScriptComposites::of(&registry));
    run.set_grad_enabled(false);
    let place = |fact: &FactRule| {
        let ops = parse_dialect(source?).ok()?.ops;
        ops.into_iter().find(|op| op.schema == fact.op.schema_text()).map(|op| op.span)
    };
    for fact in rules(&registry)?.iter().filter(|fact| is_new(&fact.op)) {
        check_fact(&registry, fact, &run)
            .map_err(|error| error.at(&place(fact).unwrap_or_else(|| fact.rule.span.clone())))?;
    }
    Ok(registry)
}

fn check_fact(registry: &Registry, fact: &FactRule, run: &Run) -> Result<()> {
    let mut untestable = None;
    for reading in readings(registry, fact)? {
        match check(&reading, EFFORT, run)? {
            Verdict::Sound { .. } => return Ok(()),
            Verdict::Refuted(found) => {
                let error = format!("a fact of {} is false: {}", fact.op.full_name(), shown(&found));
                return Err(Diagnostic::input(error)
                    .note(format!("the fact says: {}", on_one_line(fact.rule.span.text())))
                    .hint("a fact that floats keep only nearly is stated as `nan-relaxed FACT` or `fast-math FACT`"));
            }
            Verdict::Untestable { reason } => untestable = Some(reason),
        }
    }
    match untestable {
        Some(reason) if can_be_drawn(fact) => {
            let error = format!("a fact of {} cannot be checked: {reason}", fact.op.full_name());
            Err(Diagnostic::input(error))
        }
        _ => Ok(()),
    }
}

/// Whether the op can run, and its operands are of types of which there are random values.
fn can_be_drawn(fact: &FactRule) -> bool {
    let def = fact.op.def();
    let runs = def.eval.is_some() || def.scalar.is_some() || def.meaning.is_some();
    let own = |kind: &TypeKind| matches!(kind, TypeKind::Class(_) | TypeKind::Dialect(..));
    runs && fact.op.schema().is_ok_and(|schema| !schema.arguments.iter().any(|a| own(a.ty.kind())))
}

/// `?x = float32 -0 gives float32 0 on the left side and float32 -0 on the right`
fn shown(found: &Counterexample) -> String {
    let variables: Vec<String> =
        found.variables.iter().map(|(name, value)| format!("?{name} = {}", brief(value))).collect();
    let right = match &found.right {
        Ok(value) => brief(value),
        Err(error) => format!("an error ({})", error.message()),
    };
    let left = brief(&found.left);
    format!("{} gives {left} on the left side and {right} on the right", variables.join(", "))
}

/// A value on one line: `float32[2] 1 -0`.
pub(super) fn brief(value: &Value) -> String {
    let Value::Tensor(tensor) = value else { return value.to_text() };
    let sizes = tensor.sizes();
    let sizes = if sizes.is_empty() { String::new() } else { format!("{:?}", sizes.as_slice()) };
    let elements = tensor.to_scalars().unwrap_or_default();
    let mut text = format!("{}{sizes}", tensor.dtype().name());
    for element in elements.iter().take(MOST_SHOWN) {
        text += &match element {
            Scalar::Bool(x) => format!(" {x}"),
            Scalar::Int(x) => format!(" {x}"),
            Scalar::Float(x) => format!(" {x}"),
            Scalar::Complex(z) => format!(" {}{:+}i", z.re, z.im),
        };
    }
    if elements.len() > MOST_SHOWN { text + " ..." } else { text }
}
