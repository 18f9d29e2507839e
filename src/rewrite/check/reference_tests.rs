//! The reference interpreter as oracle: what rows compute is what the definitions say, and both sides of each built-in rule are
//! equal by the definitions too, so that a rule and a kernel that are wrong in the same way are seen.
//!
//! Arguments are drawn as for `rules check`: all dtypes, ranks and layouts, sizes 0 and 1, operands that broadcast, NaN,
//! infinities and the extremes of integers.

use super::instance::Instance;
use super::kernel_tests::look;
use super::steps::{Bindings, Call, Trace, is_finite, run_step_by, steps, value_of};
use super::{compare, example, own_scale, shown, variables};
use crate::diag::{Diagnostic, ErrorKind, Result};
use crate::dialects::{Registry, Run};
use crate::ir::{Attr, Symbol};
use crate::rewrite::compile;
use crate::rewrite::load::rule::{CompiledRule, Term};
use crate::rewrite::load::syntax::{Contract, TermKind};
use crate::rewrite::{builtin, builtin_rules, peephole};
use crate::value::Value;
use flambeau_reference::{self as reference, Outside};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Ops that built-in rules name and the reference does not know. The list may only shrink. The first is TorchScript text that
/// the runtime compiles, which is not here; the second is what rules know by themselves.
pub(super) const UNKNOWN: &[&str] = &["aten::_grad_sum_to_size", "prim::If"];

/// Rules of which no instance is judged by the reference: those about the first of the ops above. The list may only shrink.
const NOT_JUDGED: &[&str] = &["grad-sum-to-none", "grad-sum-twice"];

/// Instances of a rule.
const INSTANCES: usize = 10;
/// Ops that are run, at most, in search of them.
const EVALUATIONS: u64 = 400_000;

/// Where ops run.
pub(super) fn environment() -> Run {
    let run = Run::silent();
    run.set_grad_enabled(false);
    run
}

/// The results of an op by its definition.
pub(super) fn defined(call: &Call<'_>) -> Result<Vec<Value>, Outside> {
    let schema = call.op.schema().map_err(|_| Outside::Unknown)?;
    let mut arguments = call.operands.clone();
    for (_, attribute) in &call.attributes {
        arguments.push(match attribute {
            Attr::Int(x) => Value::Int(*x),
            _ => return Err(Outside::Unknown),
        });
    }
    reference::call(call.op.name().as_str(), schema.overload.as_str(), &arguments)
}

/// A side by its definition. What the reference leaves open or does not know is an error of the kind `Unsupported`.
fn side(term: &Term, variables: &Bindings, answered: &mut BTreeSet<String>) -> Result<(Value, Trace)> {
    let mut trace = Trace::default();
    for step in steps(term) {
        run_step_by(step.node, variables, &mut trace, &mut |call| match defined(call) {
            Ok(values) => {
                answered.insert(call.op.name().to_string());
                Ok(values.into_iter().collect())
            }
            Err(Outside::Refused(why)) => Err(Diagnostic::runtime(format!("{}: {why}", call.op.name()))),
            Err(outside) => Err(Diagnostic::unsupported(format!("{}: {outside:?}", call.op.name()))),
        })?;
    }
    Ok((value_of(term, variables, &trace)?, trace))
}

/// All built-in rules, in all their readings.
pub(super) fn rules(registry: &Registry) -> Vec<CompiledRule> {
    let mut all: Vec<CompiledRule> = builtin(registry).expect("compile").to_vec();
    let more = peephole(registry).expect("compile");
    all.extend(
        more.iter().filter(|rule| !all.iter().any(|own| own.name == rule.name)).cloned().collect::<Vec<_>>(),
    );
    for rule in builtin_rules().expect("parse").iter().filter(|rule| rule.directed) {
        all.extend(compile(registry, rule).expect("compiles"));
    }
    all
}

/// How an instance of a rule comes out by the definitions: nothing where they say nothing of it.
fn judge(
    rule: &CompiledRule,
    instance: &Instance,
    answered: &mut BTreeSet<String>,
) -> Option<Result<(), String>> {
    let values = &instance.variables;
    let (left, trace) = match side(&rule.left, values, answered) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::Raised => {
            return Some(Err(format!("the left side is refused: {}", error.message())));
        }
        Err(_) => return None,
    };
    let finite = values.values().all(is_finite);
    match rule.contract {
        Contract::NanRelaxed if !finite || !trace.is_finite_but_for(&rule.left) => return None,
        Contract::FastMath if !finite => return None,
        _ => {}
    }
    let mut all = values.clone();
    all.extend(trace.named.iter().map(|(name, value)| (Arc::clone(name), value.clone())));
    let (right, other) = match side(&rule.right, &all, answered) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::Raised => {
            return Some(Err(format!("the right side is refused: {}", error.message())));
        }
        Err(_) => return None,
    };
    let right = match (&right, &left) {
        (Value::Int(x), Value::Float(_)) => Value::Float(*x as f64),
        _ => right,
    };
    let scale = match rule.contract {
        Contract::FastMath => own_scale(values, [&trace, &other]),
        _ => compare::Scale::EXACT,
    };
    // The definitions do not say in which order numbers are rounded, which is what `rules check` looks at.
    let agree =
        compare::agree(rule.contract, &left, &right, scale) || compare::differ_by_rounding(&left, &right);
    Some(if agree { Ok(()) } else { Err(format!("{} is not {}", shown(&left), shown(&right))) })
}

/// The values of a rule's variables, as the text names them.
fn given(rule: &CompiledRule, instance: &Instance) -> String {
    let variables = variables(&rule.left);
    let value =
        |(name, _): &(Arc<str>, _)| Some(format!("{name} = {}", shown(instance.variables.get(name)?)));
    variables.iter().filter_map(value).collect::<Vec<_>>().join(", ")
}

#[test]
fn built_in_rules_hold_by_the_definitions_of_their_ops() {
    let registry = Registry::builtin();
    let run = environment();
    let (mut answered, mut judged, mut wrong) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    let mut laws = rules(&registry);
    laws.retain(|rule| rule.contract != Contract::Trusted);
    for rule in &laws {
        // Instances of some left sides are so rare that one search may find none.
        for seed in 23..27 {
            for instance in example::instances(rule, seed, INSTANCES, EVALUATIONS, &run) {
                match judge(rule, &instance, &mut answered) {
                    None => {}
                    Some(Ok(())) => {
                        judged.insert(rule.name.to_string());
                    }
                    Some(Err(why)) => {
                        wrong.push(format!("{}: {why}, given {}", rule.name, given(rule, &instance)))
                    }
                }
            }
            if judged.contains(&*rule.name) || NOT_JUDGED.contains(&&*rule.name) {
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} rules do not hold by definition:\n{}", wrong.len(), wrong.join("\n"));
    let is_compared = |name: &String| {
        registry.overloads(Symbol::new(name)).iter().any(|op| look(&registry, op, &run).0 > 0)
    };
    let mut unknown: Vec<String> = named_ops().into_iter().filter(|name| !answered.contains(name)).collect();
    // Rules that are trusted are not judged.
    unknown.retain(|name| !is_compared(name));
    assert_eq!(unknown, UNKNOWN, "ops of built-in rules that the reference does not know");
    let names: BTreeSet<String> = laws.iter().map(|rule| rule.name.to_string()).collect();
    let left_out: Vec<&String> = names.difference(&judged).collect();
    assert_eq!(left_out, NOT_JUDGED, "rules of which the reference says nothing");
}

/// The ops that built-in rules name.
pub(super) fn named_ops() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rule in builtin_rules().expect("parse") {
        for side in [&rule.left, &rule.right] {
            side.walk(&mut |term| {
                if let TermKind::Op(op) = &term.kind
                    && !op.kind.starts_with('?')
                {
                    found.insert(op.kind.clone());
                }
            });
        }
    }
    found
}
