//! Sizes that a plan leaves open, and what follows from them. A rule speaks of numbers: where operands have open sizes, it is
//! asked for several numbers in their place, the least and the largest that a call may have among them, and what holds each
//! time is said of the open sizes: a size is a constant, one of them, a product, a sum or a quotient rounded down; a stride is a
//! product. What fits one formula at both ends of the range and between is taken for that formula. A threshold within the range
//! shows at one of the ends; a rule that answered otherwise for single numbers between, and raised for none, would be
//! misunderstood. Truth values could be such answers (`n == 77`): nothing is said of them. `check --types` compares what
//! is said with the tensors of calls.
//!
//! In calls that the plan takes ([`OpenSizes::hold`]) every size so made is 2 or more, and those of the arguments are neither smaller
//! nor larger than those that rules were asked for: they treat sizes of 0 and 1 in their own ways, and may have a least and a
//! largest one.

use super::{Known, Results, Strides};
use crate::ir::{Dim, Stride, TensorType};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};

/// The largest that an open size of an argument may be, where one or two are given and where more are: products of them are to fit.
const MOST: [i64; 2] = [1 << 24, 1 << 15];
/// The largest at first for each that was seen: tables, of places in sequences for instance, are for sizes up to theirs.
const ROOM: i64 = 4;
/// Sizes that rules make of those that are given; of more, nothing is said.
const MAX_MADE: usize = 512;
/// Open sizes among the operands of one op; with more, nothing is said.
const MAX_HERE: usize = 6;
/// Factors of one stride or size.
const MAX_FACTORS: usize = 3;
/// The largest divisor of a quotient that is recognized.
const MAX_DIVISOR: i64 = 64;

/// What begins a formula in [`OpenSizes::state`].
const PRODUCT: i64 = 0;
const SUM: i64 = 1;
const QUOTIENT: i64 = 2;

/// The open sizes of a plan by their numbers: those of its arguments, then what rules made of them.
#[derive(Debug)]
pub struct OpenSizes {
    given: usize,
    /// The smallest that one of the arguments may have.
    least: AtomicI64,
    most: i64,
    made: Mutex<Vec<Made>>,
}

/// How a size is made of others, whose numbers are lower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// A product of a number and sizes that are not products.
    Product(i64, Vec<u32>),
    /// A sum of two sizes and a number.
    Sum(u32, u32, i64),
    /// `(factor * size + plus) / by`, rounded down.
    Quotient {
        /// What the size is multiplied with.
        factor: i64,
        /// The size.
        of: u32,
        /// What is added to the product.
        plus: i64,
        /// What the sum is divided by.
        by: i64,
    },
}

impl OpenSizes {
    /// As many as arguments have, of which the largest was this one so far.
    pub fn new(given: usize, seen: i64) -> OpenSizes {
        let limit = MOST[usize::from(given > 2)];
        let most = seen.clamp(16, limit).saturating_mul(ROOM).min(limit);
        OpenSizes { given, least: AtomicI64::new(2), most, made: Mutex::default() }
    }

    /// Where no size is open.
    pub fn none() -> &'static OpenSizes {
        static NONE: LazyLock<OpenSizes> = LazyLock::new(|| OpenSizes::new(0, 0));
        &NONE
    }

    /// The largest that one of the arguments may have.
    pub fn most(&self) -> i64 {
        self.most
    }

    /// Whether there may be plans for such a size of an argument.
    pub fn may_be(size: i64, given: usize) -> bool {
        (2..=MOST[usize::from(given > 2)]).contains(&size)
    }

    /// Whether a call's sizes are among those that rules were asked for, and all that follows from them is 2 or more.
    pub fn hold(&self, given: &[i64]) -> bool {
        let least = self.least.load(Ordering::Relaxed);
        given.iter().all(|size| (least..=self.most).contains(size))
            && self.values(given).is_some_and(|values| values.iter().all(|size| *size >= 2))
    }

    /// What a size is where those of the arguments are these.
    #[cfg(test)]
    pub(super) fn value(&self, size: Dim, given: &[i64]) -> Option<i64> {
        match size {
            Dim::Open(n) => self.values(given)?.get(n as usize).copied(),
            other => other.known(),
        }
    }

    /// What each size is where those of the arguments are these; None where a number does not fit.
    fn values(&self, given: &[i64]) -> Option<Vec<i64>> {
        let mut values = given.to_vec();
        for made in self.made.lock().iter() {
            let value = |n: &u32| values.get(*n as usize).copied();
            values.push(match made {
                Made::Product(factor, sizes) => {
                    sizes.iter().try_fold(*factor, |all, n| all.checked_mul(value(n)?))?
                }
                Made::Sum(a, b, plus) => value(a)?.checked_add(value(b)?)?.checked_add(*plus)?,
                Made::Quotient { factor, of, plus, by } => {
                    value(of)?.checked_mul(*factor)?.checked_add(*plus)?.div_euclid(*by)
                }
            });
        }
        Some(values)
    }

    /// How a size is made of others; None where an argument has it.
    pub fn made(&self, size: u32) -> Option<Made> {
        (size as usize).checked_sub(self.given).and_then(|at| self.made.lock().get(at).cloned())
    }

    /// All that is known of them, as numbers: what [`OpenSizes::restore`] takes.
    pub fn state(&self) -> Vec<i64> {
        let mut out = vec![self.given as i64, self.most, self.least.load(Ordering::Relaxed)];
        for made in self.made.lock().iter() {
            match made {
                Made::Product(factor, sizes) => {
                    out.extend([PRODUCT, *factor, sizes.len() as i64]);
                    out.extend(sizes.iter().map(|n| i64::from(*n)));
                }
                Made::Sum(a, b, plus) => out.extend([SUM, i64::from(*a), i64::from(*b), *plus]),
                Made::Quotient { factor, of, plus, by } => {
                    out.extend([QUOTIENT, *factor, i64::from(*of), *plus, *by]);
                }
            }
        }
        out
    }

    /// Takes over what another plan for such arguments knew in the end. None, and nothing changed, for numbers that say no such thing.
    pub fn restore(&self, state: &[i64]) -> Option<()> {
        let [given, most, least, rest @ ..] = state else { return None };
        if (*given, *most) != (self.given as i64, self.most) || !(2..=self.most).contains(least) {
            return None;
        }
        let mut rest = rest.iter().copied();
        let mut made = Vec::new();
        while let Some(kind) = rest.next() {
            let lower = |n: i64| u32::try_from(n).ok().filter(|n| (*n as usize) < self.given + made.len());
            let one = match kind {
                PRODUCT => {
                    let (factor, count) = (rest.next()?, rest.next()?);
                    let count = usize::try_from(count).ok().filter(|n| *n <= MAX_MADE)?;
                    let sizes: Vec<u32> = rest.by_ref().take(count).map_while(lower).collect();
                    (sizes.len() == count).then_some(Made::Product(factor, sizes))?
                }
                SUM => Made::Sum(lower(rest.next()?)?, lower(rest.next()?)?, rest.next()?),
                QUOTIENT => Made::Quotient {
                    factor: rest.next()?,
                    of: lower(rest.next()?)?,
                    plus: rest.next()?,
                    by: rest.next().filter(|by| *by > 0)?,
                },
                _ => return None,
            };
            made.push(one);
            if made.len() > MAX_MADE {
                return None;
            }
        }
        self.least.store(*least, Ordering::Relaxed);
        *self.made.lock() = made;
        Some(())
    }

    /// The size that is made so, the same number for the same formula.
    fn make(&self, made: Made) -> Dim {
        let mut all = self.made.lock();
        let first = self.given as u32;
        let known = |n: u32| n.checked_sub(first).and_then(|at| all.get(at as usize));
        // What is added to a sum is added to its number: two steps that cancel give the size itself.
        let made = match made {
            Made::Quotient { factor: 1, of, plus, by: 1 } => match known(of) {
                Some(Made::Quotient { factor, of, plus: before, by: 1 }) => {
                    let (factor, of, plus) = (*factor, *of, before.saturating_add(plus));
                    Made::Quotient { factor, of, plus, by: 1 }
                }
                Some(Made::Sum(a, b, before)) => Made::Sum(*a, *b, before.saturating_add(plus)),
                _ => Made::Quotient { factor: 1, of, plus, by: 1 },
            },
            other => other,
        };
        match made {
            Made::Quotient { factor: 1, of, plus: 0, by: 1 } => return Dim::Open(of),
            Made::Product(1, sizes) if sizes.len() == 1 => return Dim::Open(sizes[0]),
            _ => {}
        }
        let made = match made {
            Made::Quotient { factor, of, plus: 0, by: 1 } => Made::Product(factor, vec![of]),
            other => other,
        };
        if let Some(at) = all.iter().position(|other| *other == made) {
            return Dim::Open(first + at as u32);
        }
        if all.len() >= MAX_MADE {
            return Dim::Unknown;
        }
        all.push(made);
        Dim::Open(first + all.len() as u32 - 1)
    }

    /// A size as a number times sizes that are not products.
    fn factors(&self, size: u32) -> (i64, Vec<u32>) {
        match self.made(size) {
            Some(Made::Product(factor, sizes)) => (factor, sizes),
            _ => (1, vec![size]),
        }
    }

    /// Strides of a tensor without gaps whose dimensions lie so, innermost first; None where a size is not known at all.
    fn strides_in_order(&self, sizes: &[Dim], order: impl Iterator<Item = usize>) -> Option<Strides> {
        let mut strides = vec![Stride::Unknown; sizes.len()];
        let (mut factor, mut open) = (1i64, Vec::new());
        for dim in order {
            *strides.get_mut(dim)? = stride(factor, &open);
            match sizes[dim] {
                Dim::Known(n) => factor = factor.checked_mul(n.max(1))?,
                Dim::Open(n) => {
                    let (by, sizes) = self.factors(n);
                    factor = factor.checked_mul(by)?;
                    open.extend(sizes);
                    open.sort_unstable();
                }
                Dim::Symbol(_) | Dim::Unknown => return None,
            }
        }
        Some(strides.into())
    }

    /// The strides of a row-major tensor.
    pub fn row_major(&self, sizes: &[Dim]) -> Option<Strides> {
        self.strides_in_order(sizes, (0..sizes.len()).rev())
    }

    /// The strides of images whose channels are innermost; None of what has other than four dimensions.
    pub fn channels_last(&self, sizes: &[Dim]) -> Option<Strides> {
        if sizes.len() == 4 { self.strides_in_order(sizes, [1, 3, 2, 0].into_iter()) } else { None }
    }
}

fn stride(factor: i64, open: &[u32]) -> Stride {
    match open {
        [] => Stride::Known(factor),
        open => Stride::Open(factor, open.into()),
    }
}

/// What a rule that speaks of numbers says of values with open sizes. None where it says nothing of some of the numbers that are
/// put in their place.
pub fn by_numbers(open: &OpenSizes, values: &[Known], rule: &dyn Fn(&[Known]) -> Results) -> Results {
    let mut here = Vec::new();
    values.iter().try_for_each(|known| collect(known, &mut here))?;
    let mut samples = Samples::of(open, here)?;
    samples.keeps_bools = follow_from_one_tensor(values);
    // A window may not fit into the smallest ones.
    let says = |n: i64| {
        samples
            .with_all(n)
            .and_then(|one| one.ask(0, values, rule))
            .map_or(0, |results| known_sizes(&results))
    };
    let wanted = says(open.most);
    if wanted == 0 {
        return None;
    }
    if says(samples.given[LEAST][0]) < wanted {
        let least = first(samples.given[LEAST][0], open.most, |n| says(n) >= wanted);
        if least == open.most {
            return None;
        }
        open.least.fetch_max(least, Ordering::Relaxed);
        samples = Samples { keeps_bools: samples.keeps_bools, ..Samples::of(open, samples.here)? };
    }
    let mut results = Vec::new();
    for n in 0..samples.given.len() {
        results.push(samples.ask(n, values, rule)?);
    }
    let found = samples.general_results(&results)?;
    // A quotient is known by what it does with each remainder.
    let before = samples.given.len();
    let Some((by, of)) = samples.divisor() else { return Some(found) };
    if samples.push_remainders(by, of).is_none() {
        return Some(found);
    }
    for n in before..samples.given.len() {
        let Some(more) = samples.ask(n, values, rule) else { return Some(found) };
        results.push(more);
    }
    samples.general_results(&results)
}

/// Of how much of results something is known: one more than there are tensors with known sizes.
fn known_sizes(results: &[Known]) -> usize {
    let of = |known: &Known| match known {
        Known::Tensor(t) => usize::from(t.sizes.is_some()),
        Known::Items(items) => known_sizes(items),
        _ => 0,
    };
    1 + results.iter().map(of).sum::<usize>()
}

/// The sample whose sizes are the smallest.
const LEAST: usize = 0;

/// Whether what is said of values follows from one tensor and no number that is open.
fn follow_from_one_tensor(values: &[Known]) -> bool {
    let is_tensor = |known: &&Known| matches!(known, Known::Tensor(_));
    let open = values.iter().filter(|known| has_open(known));
    open.clone().count() == 1
        && open.clone().all(|known| is_tensor(&known))
        && values.iter().filter(is_tensor).count() == 1
}

/// Whether a value has open sizes.
pub fn has_open(known: &Known) -> bool {
    let open = |dims: &[Dim]| dims.iter().any(|dim| matches!(dim, Dim::Open(_)));
    match known {
        Known::Tensor(t) => {
            t.sizes.as_deref().is_some_and(open)
                || t.strides.iter().flat_map(|s| s.iter()).any(|s| matches!(s, Stride::Open(..)))
        }
        Known::Int(dim) => open(&[*dim]),
        Known::Ints(dims) => open(dims),
        Known::Items(items) => items.iter().any(has_open),
        Known::Each(part) => has_open(part),
        _ => false,
    }
}

/// Adds the open sizes of a value; None where there are too many.
fn collect(known: &Known, here: &mut Vec<u32>) -> Option<()> {
    let mut add = |n: u32| {
        if !here.contains(&n) {
            here.push(n);
        }
        (here.len() <= MAX_HERE).then_some(())
    };
    let mut dims = |dims: &[Dim]| {
        dims.iter().try_for_each(|dim| if let Dim::Open(n) = dim { add(*n) } else { Some(()) })
    };
    match known {
        Known::Tensor(t) => {
            dims(t.sizes.as_deref().unwrap_or_default())?;
            let strides = t.strides.as_deref().unwrap_or_default().iter();
            strides
                .flat_map(|s| if let Stride::Open(_, sizes) = s { sizes.to_vec() } else { Vec::new() })
                .try_for_each(add)
        }
        Known::Int(dim) => dims(&[*dim]),
        Known::Ints(ints) => dims(ints),
        Known::Items(items) => items.iter().try_for_each(|item| collect(item, here)),
        Known::Each(part) => collect(part, here),
        _ => Some(()),
    }
}

/// Numbers that stand for open sizes, several times.
struct Samples<'a> {
    open: &'a OpenSizes,
    /// The sizes that the operands have.
    here: Vec<u32>,
    /// What a result may be made of: those of them that are not products.
    parts: Vec<u32>,
    /// Sizes of results that fit no formula, each time.
    open_values: RefCell<Vec<Vec<i64>>>,
    /// Whether truth values that are the same each time are so always: they follow from one tensor alone.
    keeps_bools: bool,
    /// Sizes of the arguments, each time.
    given: Vec<Vec<i64>>,
    /// All sizes, each time.
    values: Vec<Vec<i64>>,
}

/// Numbers that are seldom sums and products of others.
const MIDDLE: [i64; MAX_GIVEN] = [1009, 2027, 3067, 4099, 5107, 6121, 7151, 8101];
/// Open sizes of a plan's arguments.
pub const MAX_GIVEN: usize = 8;

impl<'a> Samples<'a> {
    fn of(open: &'a OpenSizes, here: Vec<u32>) -> Option<Samples<'a>> {
        let mut parts: Vec<u32> = here.iter().flat_map(|size| open.factors(*size).1).collect();
        parts.sort_unstable();
        parts.dedup();
        let (given, most) = (open.given, open.most);
        if given > MAX_GIVEN || parts.len() > MAX_HERE {
            return None;
        }
        let mut samples = Samples { here, parts, ..Samples::empty(open) };
        let all = |n: i64| Samples::all(open, n);
        // What is made of larger sizes is not smaller.
        let least =
            first(open.least.load(Ordering::Relaxed), most, |n| samples.here_is(&all(n), |size| size >= 2));
        samples.push(all(least))?;
        // Those that are seldom products of others, as far as they may be so large.
        let room = most - least - MIDDLE[MAX_GIVEN - 1] - 1;
        let middle = |n: usize| if room > 0 { least + MIDDLE[n] } else { (least + most) / 2 + 2 * n as i64 };
        samples.push((0..given).map(middle).collect())?;
        samples.push((0..given).map(|n| middle(given - 1 - n) + 1).collect())?;
        samples.push((0..given as i64).map(|n| least + n * 2 + 1).collect())?;
        samples.push(all(most))?;
        for n in (0..given).filter(|_| given > 1) {
            samples.push((0..given).map(|other| if other == n { most } else { least }).collect())?;
        }
        Some(samples)
    }

    /// Whether something holds of all sizes here, where the arguments have these.
    fn here_is(&self, given: &[i64], what: impl Fn(i64) -> bool) -> bool {
        let values = self.open.values(given);
        let all = self.here.iter().chain(&self.parts);
        values.is_some_and(|values| {
            all.clone().all(|size| values.get(*size as usize).is_some_and(|n| what(*n)))
        })
    }

    /// Adds sizes of the arguments, which must be such as a call may have.
    fn push(&mut self, given: Vec<i64>) -> Option<()> {
        if given.iter().any(|size| *size > self.open.most) || !self.here_is(&given, |size| size >= 2) {
            return None;
        }
        self.values.push(self.open.values(&given)?);
        self.given.push(given);
        Some(())
    }

    /// The same size for each that arguments have.
    fn all(open: &OpenSizes, n: i64) -> Vec<i64> {
        (0..open.given).map(|_| n).collect()
    }

    /// As many more as a divisor says, in which a size has as many values one after the other.
    fn push_remainders(&mut self, by: i64, of: u32) -> Option<()> {
        let open = self.open;
        let (least, value) = (self.given[LEAST][0], self.values[LEAST][of as usize]);
        let of_all =
            |n: i64| open.values(&Samples::all(open, n)).map_or(i64::MAX, |values| values[of as usize]);
        let (before, known) = (self.given.len(), self.values.len());
        for wanted in value..value + by {
            let n = first(least, open.most, |n| of_all(n) >= wanted);
            if of_all(n) != wanted || self.push(Samples::all(open, n)).is_none() {
                self.given.truncate(before);
                self.values.truncate(known);
                return None;
            }
        }
        Some(())
    }

    /// One sample, in which all sizes of arguments are the same.
    fn with_all(&self, n: i64) -> Option<Samples<'a>> {
        let (here, parts) = (self.here.clone(), self.parts.clone());
        let mut one = Samples { here, parts, ..Samples::empty(self.open) };
        one.push(Samples::all(self.open, n))?;
        Some(one)
    }

    fn empty(open: &'a OpenSizes) -> Samples<'a> {
        Samples {
            open,
            here: Vec::new(),
            parts: Vec::new(),
            open_values: RefCell::default(),
            keeps_bools: false,
            given: Vec::new(),
            values: Vec::new(),
        }
    }

    /// What holds each time of each result.
    fn general_results(&self, results: &[Vec<Known>]) -> Results {
        self.open_values.borrow_mut().clear();
        let count = results.first()?.len();
        let same = results.iter().all(|known| known.len() == count);
        let one = |n: usize| self.general(&results.iter().map(|known| &known[n]).collect::<Vec<&Known>>());
        same.then(|| (0..count).map(one).collect())
    }

    /// What a rule says the n-th time.
    fn ask(&self, n: usize, values: &[Known], rule: &dyn Fn(&[Known]) -> Results) -> Results {
        let values = values.iter().map(|known| self.in_numbers(n, known)).collect::<Option<Vec<Known>>>()?;
        rule(&values)
    }

    fn in_numbers(&self, n: usize, known: &Known) -> Option<Known> {
        let value = |size: &u32| self.values[n].get(*size as usize).copied();
        let number = |dim: &Dim| match dim {
            Dim::Open(size) => value(size).map(Dim::Known),
            other => Some(*other),
        };
        let numbers = |dims: &[Dim]| dims.iter().map(number).collect::<Option<Vec<Dim>>>();
        let step = |stride: &Stride| match stride {
            Stride::Open(factor, sizes) => {
                let product = sizes.iter().try_fold(*factor, |all, size| all.checked_mul(value(size)?));
                product.map(Stride::Known)
            }
            other => Some(other.clone()),
        };
        Some(match known {
            Known::Tensor(t) => {
                let sizes = match &t.sizes {
                    Some(sizes) => Some(numbers(sizes)?.into()),
                    None => None,
                };
                let strides = match &t.strides {
                    Some(strides) => Some(strides.iter().map(step).collect::<Option<Vec<Stride>>>()?.into()),
                    None => None,
                };
                Known::Tensor(TensorType { sizes, strides, ..t.clone() })
            }
            Known::Int(dim) => Known::Int(number(dim)?),
            Known::Ints(dims) => Known::Ints(numbers(dims)?),
            Known::Items(items) => {
                Known::Items(items.iter().map(|item| self.in_numbers(n, item)).collect::<Option<Vec<_>>>()?)
            }
            Known::Each(part) => Known::Each(Box::new(self.in_numbers(n, part)?)),
            other => other.clone(),
        })
    }

    /// What holds each time.
    fn general(&self, all: &[&Known]) -> Known {
        let Some(first) = all.first() else { return Known::Nothing };
        let tensors: Vec<&TensorType> = all
            .iter()
            .filter_map(|known| if let Known::Tensor(t) = known { Some(t) } else { None })
            .collect();
        match first {
            Known::Tensor(_) if tensors.len() == all.len() => Known::Tensor(self.tensor(&tensors)),
            Known::Int(_) => {
                let dims =
                    all.iter().map(|known| if let Known::Int(dim) = known { Some(*dim) } else { None });
                dims.collect::<Option<Vec<Dim>>>().map_or(Known::Nothing, |dims| Known::Int(self.size(&dims)))
            }
            Known::Ints(ints) => {
                let at = |n: usize| {
                    let of = |known: &&Known| match known {
                        Known::Ints(dims) if dims.len() == ints.len() => Some(dims[n]),
                        _ => None,
                    };
                    all.iter().map(of).collect::<Option<Vec<Dim>>>().map(|dims| self.size(&dims))
                };
                (0..ints.len()).map(at).collect::<Option<Vec<Dim>>>().map_or(Known::Nothing, Known::Ints)
            }
            Known::Items(items) => {
                let at = |n: usize| {
                    let of = |known: &&'_ Known| match known {
                        Known::Items(others) if others.len() == items.len() => Some(others[n].clone()),
                        _ => None,
                    };
                    let parts = all.iter().map(of).collect::<Option<Vec<Known>>>()?;
                    Some(self.general(&parts.iter().collect::<Vec<&Known>>()))
                };
                (0..items.len()).map(at).collect::<Option<Vec<Known>>>().map_or(Known::Nothing, Known::Items)
            }
            // Which sizes are equal to some number is not asked for every number.
            Known::Bool(_) if !self.keeps_bools => Known::Nothing,
            first => all.iter().skip(1).fold((*first).clone(), |known, other| known.join(other)),
        }
    }

    fn tensor(&self, all: &[&TensorType]) -> TensorType {
        let joined = all.iter().skip(1).fold(all[0].clone(), |known, other| super::join(&known, other));
        let rank = all[0].sizes.as_deref().map(<[Dim]>::len);
        let sizes_of =
            |t: &&TensorType, n: usize| t.sizes.as_deref().filter(|s| Some(s.len()) == rank).map(|s| s[n]);
        let size = |n: usize| {
            all.iter().map(|t| sizes_of(t, n)).collect::<Option<Vec<Dim>>>().map(|dims| self.size(&dims))
        };
        let sizes = rank.and_then(|rank| (0..rank).map(size).collect::<Option<Vec<Dim>>>());
        let parts = self.parts_with(&sizes.clone().unwrap_or_default(), all);
        let step_of = |t: &&TensorType, n: usize| t.strides.as_deref().and_then(|s| s.get(n)?.known());
        let step = |n: usize| {
            let steps = all.iter().map(|t| step_of(t, n)).collect::<Option<Vec<i64>>>()?;
            let (factor, sizes) = product(&steps, &parts)?;
            Some(stride(factor, &sizes))
        };
        let strides = rank.and_then(|rank| (0..rank).map(step).collect::<Option<Vec<Stride>>>());
        TensorType { sizes: sizes.map(Into::into), strides: strides.map(Into::into), ..joined }
    }

    /// What a stride may be a product of: the sizes here, and those of the result.
    fn parts_with(&self, sizes: &[Dim], all: &[&TensorType]) -> Vec<Part> {
        let mut parts = self.parts();
        for (n, dim) in sizes.iter().enumerate() {
            let Dim::Open(size) = dim else { continue };
            if parts.iter().any(|(known, _)| known == size) || self.open.factors(*size).1 != [*size] {
                continue;
            }
            let values =
                all.iter().map(|t| t.sizes.as_deref()?.get(n)?.known()).collect::<Option<Vec<i64>>>();
            parts.extend(values.map(|values| (*size, values)));
        }
        parts
    }

    fn parts(&self) -> Vec<Part> {
        let values = |size: u32| self.values.iter().map(|known| known[size as usize]).collect();
        self.parts.iter().map(|size| (*size, values(*size))).collect()
    }

    /// The size that is each of these in turn.
    fn size(&self, dims: &[Dim]) -> Dim {
        if dims.iter().all(|dim| *dim == dims[0]) {
            return dims[0];
        }
        let Some(values) = dims.iter().map(|dim| dim.known()).collect::<Option<Vec<i64>>>() else {
            return Dim::Unknown;
        };
        if let Some((factor, sizes)) = product(&values, &self.parts()) {
            return self.open.make(Made::Product(factor, sizes));
        }
        match self.quotient(&values).or_else(|| self.sum(&values)) {
            Some(made) => self.open.make(made),
            None => {
                self.open_values.borrow_mut().push(values);
                Dim::Unknown
            }
        }
    }

    /// `(factor * size + plus) / by` of one size here.
    fn quotient(&self, values: &[i64]) -> Option<Made> {
        let most = self.values.iter().enumerate().max_by_key(|(_, known)| known.iter().max().copied())?.0;
        self.here.iter().chain(&self.parts).find_map(|of| {
            let size = |n: usize| self.values[n][*of as usize];
            // The largest ones give the ratio, rounded to a whole number or the inverse of one.
            let (large, value) = (size(most), *values.get(most)?);
            if value == 0 {
                return None;
            }
            let [factor, by] = match value.abs() >= large {
                true => [rounded(value, large)?, 1],
                false => [1, rounded(large, value)?],
            };
            if !(1..=MAX_DIVISOR).contains(&by) || factor == 0 {
                return None;
            }
            // by * value - factor * size <= plus < the same + by
            let (mut low, mut high) = (i64::MIN, i64::MAX);
            for (n, value) in values.iter().enumerate() {
                let least = by.checked_mul(*value)?.checked_sub(factor.checked_mul(size(n))?)?;
                (low, high) = (low.max(least), high.min(least.checked_add(by - 1)?));
            }
            (low == high).then_some(Made::Quotient { factor, of: *of, plus: low, by })
        })
    }

    /// A sum of two sizes here and a number.
    fn sum(&self, values: &[i64]) -> Option<Made> {
        let pairs =
            self.parts.iter().flat_map(|a| self.parts.iter().filter(move |b| *b > a).map(move |b| (*a, *b)));
        pairs.into_iter().find_map(|(a, b)| {
            let rest = |(value, known): (&i64, &Vec<i64>)| value - known[a as usize] - known[b as usize];
            let mut rests = values.iter().zip(&self.values).map(rest);
            let plus = rests.next()?;
            rests.all(|other| other == plus).then_some(Made::Sum(a, b, plus))
        })
    }

    /// The largest divisor that some size of results which fits no formula seems to be rounded down by, and of which size.
    fn divisor(&self) -> Option<(i64, u32)> {
        let most = self.values.iter().enumerate().max_by_key(|(_, known)| known.iter().max().copied())?.0;
        let by = |values: &Vec<i64>| {
            let of =
                |size: &u32| Some((rounded(self.values[most][*size as usize], *values.get(most)?)?, *size));
            self.here.iter().filter_map(of).filter(|(by, _)| (2..=MAX_DIVISOR).contains(by)).max()
        };
        self.open_values.borrow().iter().filter_map(by).max()
    }
}

/// A size that results may be made of, and what it is each time.
type Part = (u32, Vec<i64>);

/// A number times some sizes, in order of their numbers, which gives these values in turn.
fn product(values: &[i64], parts: &[Part]) -> Option<(i64, Vec<u32>)> {
    let mut parts: Vec<&Part> = parts.iter().collect();
    parts.sort();
    // By their places among the parts.
    let mut candidates: Vec<Vec<usize>> = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..=MAX_FACTORS {
        for candidate in &candidates[from..] {
            if let Some(factor) = factor_of(values, candidate.iter().map(|at| parts[*at])) {
                return Some((factor, candidate.iter().map(|at| parts[*at].0).collect()));
            }
        }
        let until = candidates.len();
        for at in from..until {
            let last = candidates[at].last().copied().unwrap_or(0);
            for part in last..parts.len() {
                candidates.push([candidates[at].as_slice(), &[part]].concat());
            }
        }
        from = until;
    }
    None
}

/// What a product of sizes is multiplied with to give these values in turn, if that is one positive number, or any where there are no
/// sizes.
fn factor_of<'a>(values: &[i64], parts: impl Iterator<Item = &'a Part> + Clone) -> Option<i64> {
    let mut factor = None;
    for (n, value) in values.iter().enumerate() {
        let product = parts.clone().try_fold(1i64, |all, (_, known)| all.checked_mul(*known.get(n)?))?;
        let own = value.checked_div(product).filter(|own| own.checked_mul(product) == Some(*value))?;
        if *factor.get_or_insert(own) != own {
            return None;
        }
    }
    factor.filter(|factor| *factor > 0 || parts.clone().next().is_none())
}

/// The first number from which on something holds; `until` where it holds nowhere before.
fn first(from: i64, until: i64, holds: impl Fn(i64) -> bool) -> i64 {
    let (mut low, mut high) = (from, until);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// A quotient of numbers, rounded to the nearest whole one.
fn rounded(a: i64, b: i64) -> Option<i64> {
    a.checked_mul(2)?.checked_add(b)?.checked_div(b.checked_mul(2)?)
}
