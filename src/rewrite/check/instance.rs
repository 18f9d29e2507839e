//! Random instances of a rule's left side. Ops are made valid one after the other: the variables that an op is
//! the first to take are drawn until the op accepts them, so that products, convolutions, views and joins get
//! operands that fit. What worked is remembered, by ranks and as whole instances.

use super::mentions::Mentions;
use super::random::{Numbers, Random};
use super::steps::{Bindings, Copies, Step, Trace, Variable, run_step, steps, value_of};
use crate::diag::ErrorKind;
use crate::dialects::{Effects, Family, Run};
use crate::ir::types::schema::Argument;
use crate::ir::{Symbol, Type, TypeKind};
use crate::rewrite::load::rule::{CompiledRule, Term};
use crate::rewrite::load::syntax::Contract;
use crate::tensor::{DType, Tensor};
use crate::value::{Dict, Value};
use std::sync::Arc;

/// Whole instances that are remembered.
const MAX_REMEMBERED: usize = 48;

/// An instance of the left side.
pub struct Instance {
    /// Values of the variables.
    pub variables: Bindings,
    /// What the left side computed on the way.
    pub trace: Trace,
    /// Its value.
    pub left: Value,
}

/// Draws instances.
pub struct Generator<'r> {
    rule: &'r CompiledRule,
    steps: Vec<Step<'r>>,
    random: Random,
    run: &'r Run,
    /// Ranks of tensors that an op accepted, by op.
    ranks: Vec<Vec<Vec<usize>>>,
    /// Instances that were valid.
    remembered: Vec<Bindings>,
    /// Numbers and text that the rule itself mentions.
    mentions: Mentions,
    /// Ops run so far.
    pub evaluations: u64,
    /// An op that wanted to draw random numbers.
    pub draws: Option<Symbol>,
    /// Why an op refused what was drawn for it last.
    pub refusal: Option<String>,
}

/// What one instance has in common.
struct Profile {
    numbers: Numbers,
    dtype: DType,
    dims: [i64; 3],
    tensors: Vec<Tensor>,
    /// An instance like this one.
    model: Option<Bindings>,
}

impl<'r> Generator<'r> {
    /// A generator for a rule.
    pub fn new(rule: &'r CompiledRule, seed: u64, run: &'r Run) -> Generator<'r> {
        let steps = steps(&rule.left);
        let mentions = Mentions::of(rule);
        let mut random = Random::new(seed);
        random.favourites = mentions.elements();
        Generator {
            rule,
            ranks: vec![Vec::new(); steps.len()],
            steps,
            random,
            run,
            remembered: Vec::new(),
            mentions,
            evaluations: 0,
            draws: None,
            refusal: None,
        }
    }

    /// One attempt; None if some op refused all that was drawn for it.
    pub fn attempt(&mut self) -> Option<Instance> {
        let mut profile = self.profile();
        let mut variables = Bindings::new();
        // The left side may write to the values it gets.
        let mut pristine = Bindings::new();
        let mut copies = Copies::default();
        let mut trace = Trace::default();
        if self.steps.is_empty() {
            // A bare variable on the left side.
            if let Term::Variable(name, ty) = &self.rule.left {
                let value = self.value(ty, None, None, &profile, None)?;
                variables.insert(Arc::clone(name), value.clone());
                pristine.insert(Arc::clone(name), value);
            }
        }
        for n in 0..self.steps.len() {
            self.satisfy(n, &mut profile, &mut variables, &mut pristine, &mut trace, &mut copies)?;
        }
        let left = value_of(&self.rule.left, &variables, &trace).ok()?;
        Some(Instance { variables: pristine, trace, left })
    }

    /// Keeps the shape of an instance that was valid under all conditions.
    pub fn remember(&mut self, instance: &Instance) {
        if self.remembered.len() < MAX_REMEMBERED {
            self.remembered.push(instance.variables.clone());
        } else {
            let at = self.random.below(MAX_REMEMBERED);
            self.remembered[at] = instance.variables.clone();
        }
    }

    fn profile(&mut self) -> Profile {
        let r = &mut self.random;
        let numbers = match self.rule.contract {
            Contract::FastMath | Contract::Trusted => Numbers::Moderate,
            Contract::NanRelaxed => Numbers::Finite,
            Contract::Exact if r.percent(70) => Numbers::Any,
            Contract::Exact => Numbers::Finite,
        };
        let dims = match r.below(12) {
            0..=3 => [2, 3, 2],
            4 | 5 => [3, 2, 1],
            6 => [1, 2, 3],
            7 => [2, 2, 2],
            8 => [3, 3, 3],
            9 => [4, 2, 2],
            10 => [0, 2, 1],
            _ => [1, 1, 1],
        };
        let dims = match self.mentions.sizes.as_slice() {
            [] => dims,
            _ if r.percent(60) => dims,
            // Sizes that the conditions ask for.
            sizes => {
                let wanted = *r.pick(sizes);
                match r.below(4) {
                    0 => [wanted; 3],
                    n => {
                        let mut dims = dims;
                        dims[n - 1] = wanted;
                        dims
                    }
                }
            }
        };
        let model = if self.remembered.is_empty() || !r.percent(50) {
            None
        } else {
            let at = r.below(self.remembered.len());
            Some(self.remembered[at].clone())
        };
        Profile { numbers, dtype: r.dtype(), dims, tensors: Vec::new(), model }
    }

    /// Draws the variables that a step is the first to take until it runs.
    fn satisfy(
        &mut self,
        n: usize,
        profile: &mut Profile,
        variables: &mut Bindings,
        pristine: &mut Bindings,
        trace: &mut Trace,
        copies: &mut Copies,
    ) -> Option<()> {
        let fresh = self.steps[n].fresh.len();
        // The first time there is nothing to go by.
        let tries = match (fresh, self.ranks[n].is_empty()) {
            (0, _) => 1,
            (_, true) => 400 * fresh.min(6),
            _ => 40,
        };
        for attempt in 0..tries {
            let ranks = if self.ranks[n].is_empty() || self.random.percent(25) {
                None
            } else {
                let at = self.random.below(self.ranks[n].len());
                Some(self.ranks[n][at].clone())
            };
            if attempt > 8 {
                profile.model = None;
            }
            let before = profile.tensors.len();
            let drawn = self.draw(n, profile, ranks.as_deref());
            if let Some(values) = drawn {
                for (variable, value) in self.steps[n].fresh.iter().zip(&values) {
                    let own = if self.rule.writes { copies.copy(value).ok()? } else { value.clone() };
                    variables.insert(Arc::clone(&variable.name), own);
                    pristine.insert(Arc::clone(&variable.name), value.clone());
                }
                self.evaluations += 1;
                match run_step(self.steps[n].node, variables, trace, self.run) {
                    Ok(()) => {
                        self.learn(n, &values);
                        if let Some(value) = trace.value(self.steps[n].node) {
                            note(value, profile);
                        }
                        return Some(());
                    }
                    Err(error) => {
                        let op = &self.steps[n].node.op;
                        if error.kind() == ErrorKind::Unsupported
                            && op.def().effects.contains(Effects::RANDOM)
                        {
                            self.draws = Some(op.name());
                        }
                        self.refusal = Some(format!("{}: {}", op.name(), error.message()));
                    }
                }
            }
            profile.tensors.truncate(before);
            if fresh > 1 && attempt % 16 == 15 {
                // Another draw of dtypes and sizes.
                let other = self.profile();
                if profile.tensors.is_empty() {
                    profile.dtype = other.dtype;
                    profile.dims = other.dims;
                }
            }
        }
        None
    }

    fn learn(&mut self, n: usize, values: &[Value]) {
        let ranks: Vec<usize> = values
            .iter()
            .map(|v| match v {
                Value::Tensor(t) => t.rank(),
                _ => usize::MAX,
            })
            .collect();
        let known = &mut self.ranks[n];
        if known.len() < 64 && !known.contains(&ranks) {
            known.push(ranks);
        }
    }

    /// Values for the variables of a step.
    fn draw(&mut self, n: usize, profile: &mut Profile, ranks: Option<&[usize]>) -> Option<Vec<Value>> {
        let favourite = self.random.percent(50).then(|| self.rank());
        let mut values = Vec::new();
        for at in 0..self.steps[n].fresh.len() {
            let Variable { name, ty, operand, is_rest } = &self.steps[n].fresh[at];
            let (ty, operand, is_rest) = ((*ty).clone(), *operand, *is_rest);
            let node = self.steps[n].node;
            let formal = node.op.schema().ok().and_then(|s| s.arguments.get(operand));
            let rank = ranks.and_then(|r| r.get(at)).copied().filter(|r| *r != usize::MAX).or(favourite);
            let model = profile.model.as_ref().and_then(|m| m.get(name)).cloned();
            let value = match (model, is_rest) {
                (Some(model), false) => self.like(&model, &ty, formal, profile, rank)?,
                (Some(model), true) if self.random.percent(50) => model,
                (_, true) => {
                    let count = self.random.below(4);
                    let items = (0..count).map(|_| self.value(&ty, formal, None, profile, rank));
                    Value::list(ty.clone(), items.collect::<Option<Vec<_>>>()?)
                }
                (None, false) => {
                    let list_item = matches!(node.operands.get(operand), Some(Term::List(..)));
                    let formal = if list_item { None } else { formal };
                    self.value(&ty, formal, Some(node.op.def().family), profile, rank)?
                }
            };
            note(&value, profile);
            values.push(value);
        }
        Some(values)
    }

    /// A value of the shape of another.
    fn like(
        &mut self,
        model: &Value,
        ty: &Type,
        formal: Option<&Argument>,
        profile: &Profile,
        rank: Option<usize>,
    ) -> Option<Value> {
        match model {
            Value::Tensor(t) => {
                let dtype = match self.random.below(10) {
                    0..=5 => t.dtype(),
                    6 | 7 => profile.dtype,
                    _ => self.random.dtype(),
                };
                if self.random.percent(6) && !profile.tensors.is_empty() {
                    return Some(Value::Tensor(self.random.pick(&profile.tensors).clone()));
                }
                self.random.tensor(dtype, &t.sizes(), profile.numbers).ok().map(Value::Tensor)
            }
            Value::List(list) if list.element_type().is_tensor() && self.random.percent(80) => {
                let dtype = if self.random.percent(70) { None } else { Some(self.random.dtype()) };
                let mut items = Vec::new();
                for item in list.to_vec() {
                    let t = item.to_tensor().ok()?;
                    let t =
                        self.random.tensor(dtype.unwrap_or(t.dtype()), &t.sizes(), profile.numbers).ok()?;
                    items.push(Value::Tensor(t));
                }
                Some(Value::list(list.element_type().clone(), items))
            }
            Value::Int(_) | Value::List(_) | Value::None if self.random.percent(75) => Some(model.clone()),
            _ => self.value(ty, formal, None, profile, rank),
        }
    }

    fn rank(&mut self) -> usize {
        let wanted: Vec<usize> =
            self.mentions.sizes.iter().filter_map(|n| usize::try_from(*n).ok()).filter(|n| *n <= 6).collect();
        if !wanted.is_empty() && self.random.percent(30) {
            return *self.random.pick(&wanted);
        }
        *self.random.pick(&[0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5])
    }

    /// A value of a type for a place.
    fn value(
        &mut self,
        ty: &Type,
        formal: Option<&Argument>,
        family: Option<Family>,
        profile: &Profile,
        rank: Option<usize>,
    ) -> Option<Value> {
        let numbers = profile.numbers;
        Some(match ty.kind() {
            TypeKind::Tensor(_) => Value::Tensor(self.tensor(profile, rank)?),
            TypeKind::Int => Value::Int(self.int(formal, family, profile)),
            TypeKind::ScalarType => Value::Int(self.random.dtype().code()),
            TypeKind::Layout => Value::Int(0),
            TypeKind::MemoryFormat => Value::Int(self.random.range(0, 3)),
            TypeKind::Float => Value::Float(self.float(numbers)),
            TypeKind::Number => match self.random.below(25) {
                0 => Value::Complex(self.random.complex(numbers)),
                1..=11 => Value::Float(self.float(numbers)),
                _ => Value::Int(self.int(None, Some(Family::Host), profile)),
            },
            TypeKind::Complex => Value::Complex(self.random.complex(numbers)),
            TypeKind::Bool => Value::Bool(self.random.percent(50)),
            TypeKind::Str => self.text(),
            TypeKind::Device => Value::Device(Arc::new("cpu".parse().ok()?)),
            TypeKind::None | TypeKind::Generator => Value::None,
            TypeKind::Optional(_) if self.random.percent(30) => Value::None,
            TypeKind::Optional(inner) => self.value(inner, formal, family, profile, rank)?,
            TypeKind::Any => match self.random.below(6) {
                0 => Value::None,
                1 => Value::Bool(self.random.percent(50)),
                2 => Value::Float(self.float(numbers)),
                3 => self.text(),
                4 => Value::Tensor(self.tensor(profile, rank)?),
                _ => Value::Int(self.int(None, None, profile)),
            },
            TypeKind::List(element) => self.list(element, formal, family, profile, rank)?,
            TypeKind::Tuple(items, _) => {
                let items = items.iter().map(|t| self.value(t, None, family, profile, rank));
                Value::tuple(items.collect::<Option<Vec<_>>>()?)
            }
            TypeKind::Dict(key, value) => {
                let dict = Dict::new(key.clone(), value.clone());
                for _ in 0..self.random.below(4) {
                    let key = self.value(key, None, family, profile, rank)?;
                    dict.insert(&key, self.value(value, None, family, profile, rank)?).ok()?;
                }
                Value::Dict(dict)
            }
            _ => return None,
        })
    }

    fn text(&mut self) -> Value {
        const TEXTS: &[&str] =
            &["", "a", "ab", "b", "A b", "none", "mean", "sum", "floor", "trunc", "tanh", " x "];
        if !self.mentions.texts.is_empty() && self.random.percent(50) {
            return Value::str(self.random.pick(&self.mentions.texts).clone());
        }
        Value::str(*self.random.pick(TEXTS))
    }

    fn float(&mut self, numbers: Numbers) -> f64 {
        if !self.mentions.floats.is_empty() && self.random.percent(20) {
            return *self.random.pick(&self.mentions.floats);
        }
        self.random.float(numbers)
    }

    fn int(&mut self, formal: Option<&Argument>, family: Option<Family>, profile: &Profile) -> i64 {
        match formal.map(|f| f.real_ty.kind()) {
            Some(TypeKind::ScalarType) => return self.random.dtype().code(),
            Some(TypeKind::Optional(inner)) if matches!(inner.kind(), TypeKind::ScalarType) => {
                return self.random.dtype().code();
            }
            Some(TypeKind::MemoryFormat) => return self.random.range(0, 3),
            _ => {}
        }
        if !self.mentions.ints.is_empty() && self.random.percent(20) {
            let x = *self.random.pick(&self.mentions.ints);
            return x.saturating_add(*self.random.pick(&[0, 0, 0, 1, -1]));
        }
        if !self.mentions.derived.is_empty() && self.random.percent(8) {
            return *self.random.pick(&self.mentions.derived);
        }
        if matches!(family, Some(Family::Host | Family::Elementwise | Family::Container)) {
            return self.random.int(profile.numbers);
        }
        match self.random.below(20) {
            0 => self.random.int(profile.numbers),
            1..=4 if !profile.tensors.is_empty() => {
                let sizes = self.random.pick(&profile.tensors).sizes();
                if sizes.is_empty() { 0 } else { *self.random.pick(&sizes) }
            }
            5..=7 => self.random.range(-5, 6),
            8..=11 => self.random.range(0, 2),
            _ => self.random.range(-2, 3),
        }
    }

    fn list(
        &mut self,
        element: &Type,
        formal: Option<&Argument>,
        family: Option<Family>,
        profile: &Profile,
        rank: Option<usize>,
    ) -> Option<Value> {
        if element.is_tensor() {
            return self.tensors(profile, rank);
        }
        if matches!(element.kind(), TypeKind::Int) && family != Some(Family::Container) {
            return Some(Value::ints(self.sizes_or_dims(formal, profile)));
        }
        let count = self.random.below(4);
        let items = (0..count).map(|_| self.value(element, None, family, profile, rank));
        Some(Value::list(element.clone(), items.collect::<Option<Vec<_>>>()?))
    }

    /// Tensors of like sizes and dtypes, more often than not.
    fn tensors(&mut self, profile: &Profile, rank: Option<usize>) -> Option<Value> {
        let count = *self.random.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 4]);
        let mut items: Vec<Tensor> = Vec::new();
        for _ in 0..count {
            let next = match items.first() {
                Some(first) if self.random.percent(85) => {
                    let mut sizes = first.sizes();
                    if self.random.percent(35) && !sizes.is_empty() {
                        let at = self.random.below(sizes.len());
                        sizes[at] = self.random.range(0, 3);
                    }
                    let dtype = if self.random.percent(75) { first.dtype() } else { self.random.dtype() };
                    self.random.tensor(dtype, &sizes, profile.numbers).ok()?
                }
                _ => self.tensor(profile, rank)?,
            };
            items.push(next);
        }
        Some(Value::tensors(items))
    }

    /// A tensor: often of the sizes of one that is there already, or of sizes that broadcast with it.
    fn tensor(&mut self, profile: &Profile, rank: Option<usize>) -> Option<Tensor> {
        let dtype = if self.random.percent(75) { profile.dtype } else { self.random.dtype() };
        let known = match profile.tensors.is_empty() {
            true => None,
            false => Some(self.random.pick(&profile.tensors).clone()),
        };
        let sizes: Vec<i64> = match (known, self.random.below(100)) {
            (Some(t), 0..=5) if rank.is_none_or(|r| r == t.rank()) => return Some(t),
            (Some(t), 6..=30) if rank.is_none_or(|r| r == t.rank()) => t.sizes().to_vec(),
            (Some(t), 31..=45) => {
                let mut sizes = t.sizes().to_vec();
                let drop = self.random.below(sizes.len() + 1);
                if self.random.percent(50) {
                    sizes.drain(..drop);
                }
                for size in &mut sizes {
                    if self.random.percent(30) {
                        *size = 1;
                    }
                }
                if self.random.percent(15) {
                    sizes.insert(0, profile.dims[1]);
                }
                sizes
            }
            _ => {
                let rank = rank.unwrap_or_else(|| self.rank());
                (0..rank)
                    .map(|_| match self.random.below(20) {
                        0 => 1,
                        1 => self.random.range(0, 4),
                        n => profile.dims[n % 3],
                    })
                    .collect()
            }
        };
        if sizes.iter().product::<i64>() > self.mentions.largest() {
            return None;
        }
        self.random.tensor(dtype, &sizes, profile.numbers).ok()
    }

    /// A list of ints: sizes, dimensions, or what a window takes.
    fn sizes_or_dims(&mut self, formal: Option<&Argument>, profile: &Profile) -> Vec<i64> {
        if let Some(length) = formal.and_then(|f| f.fixed_length)
            && self.random.percent(70)
        {
            let same = self.random.range(0, 3);
            let equal = self.random.percent(50);
            return (0..length).map(|_| if equal { same } else { self.random.range(0, 3) }).collect();
        }
        let Some(t) = (match profile.tensors.is_empty() {
            true => None,
            false => Some(self.random.pick(&profile.tensors).clone()),
        }) else {
            let count = self.random.below(4);
            return (0..count).map(|_| self.random.range(-1, 4)).collect();
        };
        let mut sizes = t.sizes().to_vec();
        let rank = sizes.len();
        match self.random.below(12) {
            0 => sizes,
            1 | 2 => {
                // The order of dimensions.
                let mut order: Vec<i64> = (0..rank as i64).collect();
                for n in (1..rank).rev() {
                    order.swap(n, self.random.below(n + 1));
                }
                if self.random.percent(30) {
                    order.iter_mut().for_each(|d| *d -= rank as i64);
                }
                order
            }
            3 | 4 => {
                // Some dimensions.
                let mut dims: Vec<i64> = (0..rank as i64).filter(|_| self.random.percent(50)).collect();
                if self.random.percent(30) {
                    dims.iter_mut().for_each(|d| *d -= rank as i64);
                }
                dims
            }
            5 => vec![self.random.range(-(rank as i64), rank as i64)],
            6 => {
                for n in (1..rank).rev() {
                    sizes.swap(n, self.random.below(n + 1));
                }
                sizes
            }
            7 => {
                // Two dimensions become one, or one becomes two.
                if rank > 1 && self.random.percent(60) {
                    let at = self.random.below(rank - 1);
                    let next = sizes.remove(at + 1);
                    sizes[at] *= next;
                } else {
                    let at = self.random.below(rank + 1);
                    sizes.insert(at, 1);
                }
                sizes
            }
            8 => {
                if !sizes.is_empty() {
                    let at = self.random.below(rank);
                    sizes[at] = -1;
                }
                sizes
            }
            9 => vec![if self.random.percent(50) { -1 } else { sizes.iter().product() }],
            10 => {
                // To broadcast to.
                let one = profile.dims[0];
                sizes.iter_mut().filter(|s| **s == 1).for_each(|s| *s = one);
                if self.random.percent(50) {
                    sizes.insert(0, profile.dims[1]);
                }
                sizes
            }
            _ => {
                let count = self.random.below(rank + 2);
                (0..count).map(|_| self.random.range(-1, 3)).collect()
            }
        }
    }
}

fn note(value: &Value, profile: &mut Profile) {
    match value {
        Value::Tensor(t) => profile.tensors.push(t.clone()),
        Value::List(list) => list.items().iter().for_each(|item| {
            if let Value::Tensor(t) = item {
                profile.tensors.push(t.clone());
            }
        }),
        _ => {}
    }
}
