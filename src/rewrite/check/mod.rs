//! Checks a rule: both sides are run by the evaluator on random instances, and scalar rules over small
//! numbers on all of them. A rule that lies is refused with the smallest counterexample that was found.
//!
//! An instance on which the left side raises does not count; one on which only the right side raises is a
//! counterexample; a rule without valid instance is untestable. Budgets are counted.

mod compare;
mod example;
mod instance;
#[cfg(test)]
mod kernel_tests;
pub(super) mod lint;
mod mentions;
#[cfg(test)]
mod properties;
mod random;
#[cfg(test)]
mod reference_tests;
mod shrink;
mod steps;
mod verdict;

use super::load::compile::result_type;
use super::load::condition;
use super::load::rule::{CompiledRule, Term};
use super::load::syntax::Contract;
use crate::diag::{Diagnostic, ErrorKind};
use crate::dialects::Run;
use crate::ir::{Symbol, TypeKind};
use crate::resources::budget;
use crate::tensor::DType;
use crate::value::Value;
pub use example::{Example, Known, example, instances};
pub use instance::Instance;
pub use random::{Numbers, Random};
pub use shrink::candidates;
pub use steps::Copies;
pub use verdict::{Counterexample, Effort, Verdict};

pub use compare::{Scale, agree};
use instance::Generator;
use mentions::Mentions;
use std::sync::Arc;
use steps::{Bindings, Values};

/// Checks one rule. Fails where a limit of the run or of this thread's work is reached.
pub fn check(rule: &CompiledRule, effort: Effort, run: &Run) -> Result<Verdict, Diagnostic> {
    let mut checker = Checker { rule, run, instances: 0, reason: String::new(), draws: None };
    if let Some(found) = checker.exhaust(effort)? {
        return Ok(Verdict::Refuted(found));
    }
    if let Some(found) = checker.sample(effort)? {
        return Ok(Verdict::Refuted(found));
    }
    if let Some(op) = checker.draws {
        return Ok(Verdict::Untestable { reason: format!("{op} draws random numbers") });
    }
    Ok(match checker.instances {
        0 => Verdict::Untestable { reason: checker.reason },
        instances => Verdict::Sound { instances },
    })
}

struct Checker<'r> {
    rule: &'r CompiledRule,
    run: &'r Run,
    instances: usize,
    reason: String,
    draws: Option<Symbol>,
}

/// A counterexample, if one was found before a limit was reached.
type Found = Result<Option<Box<Counterexample>>, Diagnostic>;

/// How one instance came out.
enum Outcome {
    /// It does not count.
    Invalid,
    /// Both sides agree.
    Agrees,
    /// They do not.
    Differs(Box<Counterexample>),
}

impl Checker<'_> {
    /// Random instances.
    fn sample(&mut self, effort: Effort) -> Found {
        let first = 0x5eed_u64.wrapping_add(effort.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let seed = self.rule.name.bytes().fold(first, |s: u64, b| s.wrapping_mul(31).wrapping_add(b.into()));
        let mut generator = Generator::new(self.rule, seed, self.run);
        let mut valid = 0;
        let mut attempts = 0u64;
        let (mut best, mut looked): (Option<Box<Counterexample>>, usize) = (None, 0);
        while valid < effort.samples
            && generator.evaluations < effort.evaluations
            && attempts < effort.evaluations
        {
            attempts += 1;
            self.within_limits()?;
            let Some(instance) = generator.attempt() else {
                if valid == 0 {
                    let last = generator.refusal.as_ref().map(|r| format!(", the last time in {r}"));
                    self.reason =
                        format!("the left side raised on every instance{}", last.unwrap_or_default());
                }
                continue;
            };
            match self.evaluate(&instance.variables, Some((&instance.left, &instance.trace))) {
                Outcome::Invalid => {}
                Outcome::Agrees => {
                    valid += 1;
                    generator.remember(&instance);
                }
                Outcome::Differs(found) => {
                    let better = best.as_ref().is_none_or(|b| found.oddness() < b.oddness());
                    if better {
                        best = Some(found);
                    }
                    // A plain counterexample says more than one without elements: look a little longer.
                    looked += 1;
                    if looked > 40 || best.as_ref().is_some_and(|b| b.oddness() == 0) {
                        break;
                    }
                }
            }
            if best.is_some() && valid + looked >= effort.samples.min(200) {
                break;
            }
        }
        self.draws = generator.draws;
        self.instances += valid;
        Ok(best.map(|found| self.shrink(found)))
    }

    /// Rules over ints and truth values: all instances over 8 bits, and all mixes of extremes and of what the rule
    /// mentions.
    fn exhaust(&mut self, effort: Effort) -> Found {
        let small: Vec<i64> = (-128..128).collect();
        let mentions = Mentions::of(self.rule);
        let mentioned = mentions.ints.iter().chain(&mentions.derived);
        let beside = mentioned.flat_map(|x| [x.saturating_sub(1), *x, x.saturating_add(1)]);
        // Of too many those in the middle are kept.
        let (some, others) = random::INT_EXTREMES.split_at(random::INT_EXTREMES.len() / 2);
        let mut extreme: Vec<i64> = Vec::new();
        for x in some.iter().copied().chain(beside.take(24)).chain(-2..3).chain(others.iter().copied()) {
            if !extreme.contains(&x) {
                extreme.push(x);
            }
        }
        match self.exhaust_over(&small, effort)? {
            Some(found) => Ok(Some(found)),
            None => self.exhaust_over(&extreme, effort),
        }
    }

    fn exhaust_over(&mut self, ints: &[i64], effort: Effort) -> Found {
        let variables = variables(&self.rule.left);
        let mut domains: Vec<(Arc<str>, Vec<Value>)> = Vec::new();
        for (name, ty) in &variables {
            let domain = match ty.kind() {
                TypeKind::Int => ints.iter().copied().map(Value::Int).collect(),
                TypeKind::Bool => vec![Value::Bool(false), Value::Bool(true)],
                _ => return Ok(None),
            };
            domains.push((Arc::clone(name), domain));
        }
        if domains.is_empty() || !scalar_ops(&self.rule.left) {
            return Ok(None);
        }
        // Three ints are too many for all of them: those near 0 stand for the rest.
        let total = domains.iter().fold(1usize, |total, (_, d)| total.saturating_mul(d.len()));
        if total > effort.exhaustive {
            let each = (effort.exhaustive as f64).powf(1.0 / domains.len() as f64) as usize;
            for (_, domain) in domains.iter_mut().filter(|(_, d)| d.len() > each) {
                let start = (domain.len() - each.max(2)) / 2;
                *domain = domain[start..start + each.max(2)].to_vec();
            }
        }
        let mut at = vec![0usize; domains.len()];
        // Of many variables even two values each are too many: the first combinations have to do.
        for _ in 0..effort.exhaustive.max(1) {
            self.within_limits()?;
            let bindings: Bindings =
                domains.iter().zip(&at).map(|((name, d), n)| (Arc::clone(name), d[*n].clone())).collect();
            match self.evaluate(&bindings, None) {
                Outcome::Invalid => {}
                Outcome::Agrees => self.instances += 1,
                Outcome::Differs(found) => return Ok(Some(self.shrink(found))),
            }
            let mut place = 0;
            loop {
                let Some((_, domain)) = domains.get(place) else { return Ok(None) };
                at[place] += 1;
                if at[place] < domain.len() {
                    break;
                }
                at[place] = 0;
                place += 1;
            }
        }
        Ok(None)
    }

    /// Fails where the run or this thread's work has reached a limit: ops raise from then on, which says nothing of the rule.
    fn within_limits(&self) -> Result<(), Diagnostic> {
        self.run.check()?;
        budget::check()
    }

    /// Runs both sides on an instance, the left one only if that was not done yet.
    fn evaluate(&mut self, variables: &Bindings, done: Option<(&Value, &steps::Trace)>) -> Outcome {
        let rule = self.rule;
        // A side that writes must not be seen by the other.
        let own = |variables: &Bindings| -> Option<Bindings> {
            if !rule.writes {
                return Some(variables.clone());
            }
            let mut copies = steps::Copies::default();
            variables.iter().map(|(k, v)| Some((Arc::clone(k), copies.copy(v).ok()?))).collect()
        };
        let run;
        let left_variables;
        let (left, trace) = match done {
            Some((left, trace)) if !rule.writes => {
                left_variables = variables.clone();
                (left, trace)
            }
            _ => {
                let Some(copy) = own(variables) else { return Outcome::Invalid };
                left_variables = copy;
                match steps::run(&rule.left, &left_variables, self.run) {
                    Ok(found) => run = found,
                    Err(_) => return Outcome::Invalid,
                }
                (&run.0, &run.1)
            }
        };
        let finite = || variables.values().all(steps::is_finite) && trace.is_finite_but_for(&rule.left);
        if rule.contract == Contract::NanRelaxed && !finite()
            || rule.contract == Contract::FastMath && !variables.values().all(steps::is_finite)
        {
            return Outcome::Invalid;
        }
        let subjects = Values { variables, named: &trace.named, result: Some(left) };
        if !rule.conditions.iter().all(|c| condition::holds(c, &subjects) == Some(true)) {
            self.reason = "no instance meets the conditions".to_string();
            return Outcome::Invalid;
        }
        let Some(right_variables) = own(variables) else { return Outcome::Invalid };
        let mut scale = Scale::EXACT;
        let right = match self.right(&right_variables, &trace.named) {
            Ok((right, other)) => {
                if rule.contract == Contract::FastMath {
                    scale = own_scale(variables, [trace, &other]);
                }
                Ok(right)
            }
            Err(error) if matches!(error.kind(), ErrorKind::Compile | ErrorKind::Limit) => {
                return Outcome::Invalid;
            }
            Err(error) => Err(error),
        };
        let after = self.written(&left_variables, &right_variables);
        let agrees = right.as_ref().is_ok_and(|right| compare::agree(rule.contract, left, right, scale));
        if agrees && after.is_empty() {
            return Outcome::Agrees;
        }
        // Ops check the dtypes of tensors without elements less strictly than others; that says nothing of a rule.
        let tensors = || variables.values().filter_map(|v| v.to_tensor().ok());
        let common = [DType::F32, DType::F64, DType::I64];
        if tensors().any(|t| t.numel() == 0) && tensors().any(|t| !common.contains(&t.dtype())) {
            return Outcome::Invalid;
        }
        let order = self::variables(&rule.left);
        let named = |(name, _): &(Arc<str>, _)| Some((Arc::clone(name), variables.get(name)?.clone()));
        Outcome::Differs(Box::new(Counterexample {
            variables: order.iter().filter_map(named).collect(),
            left: left.clone(),
            right,
            after,
            shared: if rule.writes { shared(variables, &order) } else { Vec::new() },
        }))
    }

    fn right(&self, variables: &Bindings, named: &Bindings) -> Result<(Value, steps::Trace), Diagnostic> {
        // Named terms of the left side may stand on the right.
        let mut all = variables.clone();
        all.extend(named.iter().map(|(k, v)| (Arc::clone(k), v.clone())));
        let (value, trace) = steps::run(&self.rule.right, &all, self.run)?;
        let ty = result_type(&self.rule.right);
        let value = match (&value, ty.kind()) {
            (Value::Int(x), TypeKind::Float) => Value::Float(*x as f64),
            _ => value,
        };
        Ok((value, trace))
    }

    /// Variables that the sides leave with different values.
    fn written(&self, left: &Bindings, right: &Bindings) -> Vec<(Arc<str>, Value, Value)> {
        if !self.rule.writes {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (name, _) in variables(&self.rule.left) {
            if let (Some(a), Some(b)) = (left.get(&name), right.get(&name))
                && !compare::agree(Contract::Exact, a, b, Scale::EXACT)
            {
                found.push((name, a.clone(), b.clone()));
            }
        }
        found
    }

    fn shrink(&mut self, found: Box<Counterexample>) -> Box<Counterexample> {
        let oddness = found.oddness();
        shrink::shrink(found, &mut |variables| match self.evaluate(variables, None) {
            Outcome::Differs(found) if found.oddness() <= oddness => Some(found),
            _ => None,
        })
    }
}

/// Variables whose tensors lie in one memory.
fn shared(variables: &Bindings, order: &[(Arc<str>, crate::ir::Type)]) -> Vec<Arc<str>> {
    let memory = |name: &Arc<str>| match variables.get(name) {
        Some(Value::Tensor(t)) if t.numel() > 0 => Some(t.storage().id()),
        _ => None,
    };
    let is_shared = |name: &Arc<str>| {
        let own = memory(name);
        own.is_some() && order.iter().any(|(other, _)| other != name && memory(other) == own)
    };
    order.iter().map(|(name, _)| Arc::clone(name)).filter(is_shared).collect()
}

/// How large and how coarse the numbers of an instance are.
fn own_scale(variables: &Bindings, traces: [&steps::Trace; 2]) -> Scale {
    let magnitude = variables.values().map(steps::magnitude).fold(0.0, f64::max);
    let magnitude = traces.iter().map(|t| t.magnitude()).fold(magnitude, f64::max);
    let inputs = variables.values().filter_map(steps::coarsest);
    let dtype =
        inputs.chain(traces.iter().filter_map(|t| t.coarsest())).max_by_key(|d| steps::coarseness(*d));
    Scale { magnitude, dtype }
}

/// The variables of a term with their types, in the order of the text.
fn variables(term: &Term) -> Vec<(Arc<str>, crate::ir::Type)> {
    let mut found: Vec<(Arc<str>, crate::ir::Type)> = Vec::new();
    collect(term, &mut found);
    found
}

fn collect(term: &Term, found: &mut Vec<(Arc<str>, crate::ir::Type)>) {
    match term {
        Term::Variable(name, ty) | Term::Rest(name, ty, ..) => {
            if !found.iter().any(|(other, _)| other == name) {
                found.push((Arc::clone(name), ty.clone()));
            }
        }
        Term::Op(node) => {
            let attributes = node.attributes.iter().map(|(_, t)| t);
            let all = node.operands.iter().chain(attributes).chain(node.blocks.iter().flatten());
            all.for_each(|t| collect(t, found));
        }
        Term::List(_, items) => items.iter().for_each(|t| collect(t, found)),
        Term::Constant(..) | Term::Compute(..) => {}
    }
}

/// Whether a term has only ops over numbers.
fn scalar_ops(term: &Term) -> bool {
    match term {
        Term::Op(node) => {
            matches!(node.ty.kind(), TypeKind::Int | TypeKind::Bool | TypeKind::Float | TypeKind::Number)
                && node.operands.iter().all(scalar_ops)
        }
        Term::List(..) => false,
        _ => true,
    }
}

/// A value as tests show it.
#[cfg(test)]
fn shown(value: &Value) -> String {
    match value {
        Value::Tensor(t) => {
            let items: Vec<String> =
                t.to_scalars().map_or_else(|_| Vec::new(), |all| all.iter().map(shown_number).collect());
            let strides = if t.is_contiguous() {
                String::new()
            } else {
                format!(" strides {:?}", t.strides().as_slice())
            };
            format!("{}{:?}{strides} [{}]", t.dtype().name(), t.sizes().as_slice(), items.join(" "))
        }
        Value::List(list) => format!("[{}]", list.to_vec().iter().map(shown).collect::<Vec<_>>().join(", ")),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
fn shown_number(x: &crate::tensor::Scalar) -> String {
    match x {
        crate::tensor::Scalar::Int(x) => x.to_string(),
        crate::tensor::Scalar::Float(x) => format!("{x:?}"),
        crate::tensor::Scalar::Bool(x) => x.to_string(),
        crate::tensor::Scalar::Complex(z) => format!("{}+{}j", z.re, z.im),
    }
}
