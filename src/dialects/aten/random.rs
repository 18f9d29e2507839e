//! Random numbers: drawn from the generator of the run, or one that is given, exactly as PyTorch's CPU kernels draw them, and given to the elements
//! of a tensor in the order in which they lie in memory. Dropout, which draws too, is in `dropout`.

use super::create::{LIKE, asked, like};
use super::list::nothing;
use super::random_ints::{any_number, between, limits, mantissa, onwards};
use crate::diag::{Diagnostic, Result};
use crate::dialects::draw::{
    Draw, DrawReal, bernoulli, deviation, each, empty_like, fail, fill, make, normal, rounded_to, scaled,
    uniform, with_generator, write_ints,
};
use crate::dialects::shapes::joins;
use crate::dialects::{Args, Effects, OpDef, Outputs, composite, create, host, one, opaque};
use crate::kernels::wide::store;
use crate::resources::{Collect, Scratch};
use crate::tensor::pointwise::Walk;
use crate::tensor::{DType, Element, Scalar, Tensor};
use crate::value::generator::Generator;
use crate::value::{SharedGenerator, Value};

macro_rules! options {
    ($head:literal) => {
        concat!(
            $head,
            "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"
        )
    };
}
macro_rules! int_options {
    ($head:literal) => {
        concat!(
            $head,
            "ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"
        )
    };
}
macro_rules! like_options {
    ($head:literal) => {
        concat!(
            $head,
            "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor"
        )
    };
}

/// The rows.
pub static OPS: &[OpDef] = &[
    host("aten::manual_seed(int seed) -> ()", |a| {
        a.run.seed(a.int(0)? as u64);
        nothing()
    })
    .effects(Effects::RANDOM.union(Effects::WRITES_WORLD))
    .doc("seeds the generator of the program's world"),
    host("aten::Generator(*, Device? device=None, int? seed=None) -> Generator", generator)
        .effects(Effects::RANDOM)
        .doc("a generator of the program's own, each time it is reached"),
    host("aten::manual_seed.generator(Generator(a!) self, int seed) -> Generator(a!)", |a| {
        reseeded(a, a.int(1)? as u64)?;
        one(a.value(0)?.clone())
    })
    .effects(Effects::RANDOM.union(Effects::WRITES_WORLD))
    .doc("seeds a generator"),
    host("aten::seed(Generator(a!) self) -> int", |a| one(reseeded(a, Generator::from_entropy()?.seed())? as i64))
        .effects(Effects::RANDOM.union(Effects::WRITES_WORLD))
        .doc("seeds a generator from the system's entropy; the seed"),
    host("aten::initial_seed(Generator self) -> int", |a| one(with_generator(a, |g| Ok(g.seed()))? as i64))
        .effects(Effects::RANDOM)
        .doc("what a generator was seeded with"),
    create(options!("aten::rand(SymInt[] size, *, "), |a| sized(a, uniform)).effects(Effects::RANDOM).infer(joins::create),
    create(options!("aten::randn(SymInt[] size, *, "), |a| sized(a, normal)).effects(Effects::RANDOM).infer(joins::create),
    create(like_options!("aten::rand_like(Tensor self, *, "), |a| alike(a, uniform)).effects(Effects::RANDOM).facts(LIKE).infer(joins::like),
    create(like_options!("aten::randn_like(Tensor self, *, "), |a| alike(a, normal)).effects(Effects::RANDOM).facts(LIKE).infer(joins::like),
    create(int_options!("aten::randint(SymInt high, SymInt[] size, *, "), |a| integers(a, None, 0, 1)).effects(Effects::RANDOM),
    create(int_options!("aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, "), |a| integers(a, Some(0), 1, 2))
        .effects(Effects::RANDOM),
    create(like_options!("aten::randint_like(Tensor self, SymInt high, *, "), |a| integers_like(a, None, 1)).effects(Effects::RANDOM).facts(LIKE),
    create(like_options!("aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, "), |a| {
        integers_like(a, Some(1), 2)
    })
    .effects(Effects::RANDOM).facts(LIKE),
    create(int_options!("aten::randperm(SymInt n, *, "), permutation).effects(Effects::RANDOM),
    // The same with a generator.
    create(options!("aten::rand.generator(SymInt[] size, *, Generator? generator, "), |a| sized(a, uniform))
        .effects(Effects::RANDOM),
    create(options!("aten::randn.generator(SymInt[] size, *, Generator? generator, "), |a| sized(a, normal))
        .effects(Effects::RANDOM),
    create(like_options!("aten::rand_like.generator(Tensor self, *, Generator? generator, "), |a| {
        alike(a, uniform)
    })
    .effects(Effects::RANDOM).facts(LIKE),
    create(like_options!("aten::randn_like.generator(Tensor self, *, Generator? generator, "), |a| {
        alike(a, normal)
    })
    .effects(Effects::RANDOM).facts(LIKE),
    create(int_options!("aten::randint.generator(SymInt high, SymInt[] size, *, Generator? generator, "), |a| {
        integers(a, None, 0, 1)
    })
    .effects(Effects::RANDOM),
    create(int_options!("aten::randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, "), |a| {
        integers(a, Some(0), 1, 2)
    })
    .effects(Effects::RANDOM),
    create(like_options!("aten::randint_like.generator(Tensor self, SymInt high, *, Generator? generator, "), |a| {
        integers_like(a, None, 1)
    })
    .effects(Effects::RANDOM).facts(LIKE),
    create(like_options!("aten::randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, Generator? generator, "), |a| {
        integers_like(a, Some(1), 2)
    })
    .effects(Effects::RANDOM).facts(LIKE),
    create(int_options!("aten::randperm.generator(SymInt n, *, Generator? generator, "), permutation)
        .effects(Effects::RANDOM),
    // Forms that fill a tensor of the caller's.
    composite(
        "aten::rand.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
        "def rand(size: List[int], *, out: Tensor) -> Tensor:\n    return out.resize_(size).uniform_(0., 1.)\n",
    )
    .effects(Effects::RANDOM),
    composite(
        "aten::randn.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
        "def randn(size: List[int], *, out: Tensor) -> Tensor:\n    return out.resize_(size).normal_(0., 1.)\n",
    )
    .effects(Effects::RANDOM),
    composite(
        "aten::randint.out(SymInt high, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
        "def randint(high: int, size: List[int], *, out: Tensor) -> Tensor:\n    return out.resize_(size).random_(0, high)\n",
    )
    .effects(Effects::RANDOM),
    composite(
        "aten::randint.low_out(SymInt low, SymInt high, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
        "def randint(low: int, high: int, size: List[int], *, out: Tensor) -> Tensor:\n    return out.resize_(size).random_(low, high)\n",
    )
    .effects(Effects::RANDOM),
    composite(
        "aten::normal.float_float_out(float mean, float std, SymInt[] size, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)",
        "def normal(mean: float, std: float, size: List[int], *, generator: Optional[Generator]=None, out: Tensor) -> Tensor:\n    return out.resize_(size).normal_(mean, std, generator=generator)\n",
    )
    .effects(Effects::RANDOM),
    opaque("aten::uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!)", |a| {
        let (from, to) = (a.float(1)?, a.float(2)?);
        if from > to {
            return fail(format!("uniform_ expects to return a [from, to) range, but found from={from} > to={to}"));
        }
        let rounded = rounded_to(a.tensor(0)?.dtype().to_real());
        refill(a, "check_uniform_bounds", |g, draw| {
            let mut drawn = scaled(uniform(g, draw)?, to - from, from);
            // The upper end is left out, also where a number would round to it.
            drawn.iter_mut().filter(|x| rounded(**x) == rounded(to)).for_each(|x| *x = from);
            Ok(drawn)
        })
    })
    .effects(Effects::RANDOM),
    opaque("aten::normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)", |a| {
        let (mean, std) = (a.float(1)?, deviation(a.float(2)?)?);
        let std = if a.tensor(0)?.dtype().is_complex() { std * 0.5f64.sqrt() } else { std };
        refill(a, "normal_kernel_cpu", |g, draw| Ok(scaled(normal(g, draw)?, std, mean)))
    })
    .effects(Effects::RANDOM),
    opaque("aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", |a| {
        let (mean, std, dtype) = (a.float(0)?, deviation(a.float(1)?)?, asked_dtype(a)?.unwrap_or(DType::F32));
        let std = if dtype.is_complex() { std * 0.5f64.sqrt() } else { std };
        one(make(a, &a.ints(2)?, dtype, |g, draw| Ok(scaled(normal(g, draw)?, std, mean)))?)
    })
    .effects(Effects::RANDOM),
    opaque("aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor", |a| {
        spread(a, a.tensor(0)?.clone(), a.tensor(1)?.clone())
    })
    .effects(Effects::RANDOM)
    .out("Tensor_Tensor_out"),
    opaque("aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor", |a| {
        let std = deviation(a.float(1)?)?;
        spread(a, a.tensor(0)?.clone(), Tensor::full(a.tensor(0)?.dtype(), &[], Scalar::Float(std))?)
    })
    .effects(Effects::RANDOM)
    .out("Tensor_float_out"),
    opaque("aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor", |a| {
        spread(a, Tensor::full(a.tensor(1)?.dtype(), &[], Scalar::Float(a.float(0)?))?, a.tensor(1)?.clone())
    })
    .effects(Effects::RANDOM)
    .out("float_Tensor_out"),
    opaque("aten::log_normal_(Tensor(a!) self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor(a!)", |a| {
        let (mean, std) = (a.float(1)?, a.float(2)?);
        if std <= 0.0 {
            return fail(format!("log_normal_ expects std > 0.0, but found std={std}"));
        }
        refill(a, "log_normal_cpu", |g, draw| each(draw.count, || (mean + std * g.normal()).exp()))
    })
    .effects(Effects::RANDOM),
    opaque("aten::exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)", |a| {
        let rate = a.float(1)?;
        if rate <= 0.0 {
            return fail(format!("exponential_ expects lambda > 0.0, but found lambda={rate}"));
        }
        refill(a, "exponential_cpu", |g, draw| each(draw.count, || g.exponential() / rate))
    })
    .effects(Effects::RANDOM),
    opaque("aten::cauchy_(Tensor(a!) self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor(a!)", |a| {
        let (median, sigma) = (a.float(1)?, a.float(2)?);
        if sigma <= 0.0 {
            return fail(format!("cauchy_ expects sigma > 0.0, but found sigma={sigma}"));
        }
        refill(a, "cauchy_cpu", |g, draw| {
            each(draw.count, || median + sigma * (std::f64::consts::PI * (g.uniform() - 0.5)).tan())
        })
    })
    .effects(Effects::RANDOM),
    opaque("aten::geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)", |a| {
        let p = a.float(1)?;
        if !(0.0 < p && p < 1.0) {
            return fail(format!("geometric_ expects p to be in (0, 1), but got p={p}"));
        }
        let dtype = a.tensor(0)?.dtype();
        if dtype.is_complex() || dtype == DType::Bool {
            return Err(crate::kernels::create::range::not_implemented("geometric_cpu", dtype));
        }
        refill(a, "", |g, draw| each(draw.count, || (g.uniform().ln() / (1.0 - p).ln()).ceil()))
    })
    .effects(Effects::RANDOM),
    opaque("aten::random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)", |a| refill_ints(a, any_number))
        .effects(Effects::RANDOM),
    opaque("aten::random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)", |a| {
        refill_ints(a, between(a.tensor(0)?.dtype(), 0, a.int(1)?)?)
    })
    .effects(Effects::RANDOM),
    opaque("aten::random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)", |a| {
        let (dtype, from) = (a.tensor(0)?.dtype(), a.int(1)?);
        match a.opt_int(2)? {
            Some(to) => refill_ints(a, between(dtype, from, to)?),
            None => refill_ints(a, onwards(dtype, from)?),
        }
    })
    .effects(Effects::RANDOM),
    opaque("aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", |a| {
        let chances = a.tensor(0)?;
        let result = Tensor::zeros(chances.dtype(), &chances.sizes())?;
        coins(a, &result, chances)?;
        one(result)
    })
    .effects(Effects::RANDOM)
    .out("out"),
    opaque("aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", |a| {
        let (like, p) = (a.tensor(0)?, a.float(1)?);
        let result = Tensor::zeros(like.dtype(), &like.sizes())?;
        fill(a, &result, |g, draw| bernoulli(g, draw.count, p))?;
        one(result)
    })
    .effects(Effects::RANDOM).infer(joins::row_major),
    opaque("fusion::bernoulli_like(Tensor self, float p) -> Tensor", |a| {
        let (result, p) = (empty_like(a.tensor(0)?, a.tensor(0)?.dtype())?, a.float(1)?);
        fill(a, &result, |g, draw| bernoulli(g, draw.count, p))?;
        one(result)
    })
    .effects(Effects::RANDOM).facts(LIKE).infer(joins::like)
    .doc("ones with a probability and zeros, in a tensor with another's layout: what dropout draws"),
    opaque("aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)", |a| {
        let p = a.float(1)?;
        refill(a, "", |g, draw| bernoulli(g, draw.count, p))
    })
    .effects(Effects::RANDOM),
    opaque("aten::bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)", |a| {
        let target = a.tensor(0)?;
        coins(a, target, &a.tensor(1)?.broadcast_to(&target.sizes())?)?;
        one(target.clone())
    })
    .effects(Effects::RANDOM),
    opaque("aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor", multinomial)
        .effects(Effects::RANDOM)
        .out_exact("out"),
];

/// A generator that the program makes.
fn generator(a: &Args<'_>) -> Result<Outputs> {
    if let Some(device) = a.opt_device(0)?.filter(|device| !device.is_cpu()) {
        return Err(Diagnostic::unsupported(format!("a generator on device {device}")));
    }
    let seed = a.opt_int(1)?.map_or(Generator::DEFAULT_SEED, |seed| seed as u64);
    one(Value::Generator(SharedGenerator::new(Generator::new(seed))))
}

/// Seeds the given generator; the seed.
fn reseeded(a: &Args<'_>, seed: u64) -> Result<u64> {
    with_generator(a, |g| {
        *g = Generator::new(seed);
        Ok(seed)
    })
}

/// Fills a tensor that an op has just made with real or complex numbers.
fn filled(a: &Args<'_>, target: Tensor, draw: DrawReal) -> Result<Outputs> {
    let dtype = target.dtype();
    if !dtype.is_floating() && !dtype.is_complex() {
        let kernel = if is_normal(a) { "normal_kernel_cpu" } else { "check_uniform_bounds" };
        return Err(crate::kernels::create::range::not_implemented(kernel, dtype));
    }
    // The two parts of a complex normal number share its variance.
    let factor = if is_normal(a) && dtype.is_complex() { 0.5f64.sqrt() } else { 1.0 };
    fill(a, &target, |g, wanted| Ok(scaled(draw(g, wanted)?, factor, 0.0)))?;
    one(target)
}

fn is_normal(a: &Args<'_>) -> bool {
    a.op.name().as_str().contains("randn")
}

/// The dtype asked for, the first of the four options that end the arguments, with a generator before them or not.
fn asked_dtype(a: &Args<'_>) -> Result<Option<DType>> {
    asked(a, a.values.len().saturating_sub(4))
}

/// A tensor like the first argument, by the five options that end the arguments.
fn template(a: &Args<'_>) -> Result<Outputs> {
    like(a, a.values.len().saturating_sub(5), Scalar::Int(0))
}

fn sized(a: &Args<'_>, draw: DrawReal) -> Result<Outputs> {
    let dtype = asked_dtype(a)?.unwrap_or(DType::F32);
    filled(a, Tensor::zeros(dtype, &a.ints(0)?)?, draw)
}

fn alike(a: &Args<'_>, draw: DrawReal) -> Result<Outputs> {
    let template = template(a)?;
    let Some(Value::Tensor(t)) = template.first() else { return Ok(template) };
    filled(a, t.clone(), draw)
}

/// Gives every element a whole number, in the order in which they lie in memory.
fn whole_numbers(
    a: &Args<'_>,
    target: &Tensor,
    draw: impl Fn(&mut Generator, DType) -> i64,
) -> Result<Outputs> {
    target.layout().refuse_overlap()?;
    let (dtype, n) = (target.dtype(), target.numel());
    let drawn = with_generator(a, |g| (0..n).map(|_| draw(g, dtype)).scratch())?;
    write_ints(target, &drawn)?;
    one(target.clone())
}

fn integers(a: &Args<'_>, low: Option<usize>, high: usize, sizes: usize) -> Result<Outputs> {
    let low = low.map_or(Ok(0), |n| a.int(n))?;
    let dtype = asked_dtype(a)?.unwrap_or(DType::I64);
    whole_numbers(a, &Tensor::zeros(dtype, &a.ints(sizes)?)?, between(dtype, low, a.int(high)?)?)
}

fn integers_like(a: &Args<'_>, low: Option<usize>, high: usize) -> Result<Outputs> {
    let low = low.map_or(Ok(0), |n| a.int(n))?;
    let template = template(a)?;
    let Some(Value::Tensor(t)) = template.first() else { return Ok(template) };
    whole_numbers(a, t, between(t.dtype(), low, a.int(high)?)?)
}

fn permutation(a: &Args<'_>) -> Result<Outputs> {
    let n = a.int(0)?;
    let dtype = asked_dtype(a)?.unwrap_or(DType::I64);
    if n < 0 {
        return fail(format!("Trying to create tensor with negative dimension {n}: [{n}]"));
    }
    if let Some(digits) = mantissa(dtype).filter(|digits| n > (1i64 << digits) + 1) {
        let (most, name) = ((1i64 << digits) + 1, dtype.type_name());
        return fail(format!("n cannot be greater than {most} for {name} type."));
    }
    if dtype == DType::Bool || dtype.is_complex() {
        return Err(crate::kernels::create::range::not_implemented("randperm", dtype));
    }
    if n - 1 > limits(dtype, "randperm")?.1 {
        let name = dtype.name();
        return fail(format!("value cannot be converted to type {name}_t without overflow"));
    }
    if n >= i64::from(u32::MAX) / 20 {
        return Err(Diagnostic::unsupported(format!("aten::randperm of {n} numbers")));
    }
    let mut order = (0..n).scratch()?;
    with_generator(a, |g| {
        for i in 0..order.len().saturating_sub(1) {
            let other = i + g.bits32() as usize % (order.len() - i);
            order.swap(i, other);
        }
        Ok(())
    })?;
    one(store::<i64>(&order, &[n], dtype)?)
}

fn refill(
    a: &Args<'_>,
    kernel: &str,
    draw: impl FnOnce(&mut Generator, &Draw) -> Result<Scratch<f64>>,
) -> Result<Outputs> {
    let target = a.tensor(0)?;
    let dtype = target.dtype();
    let complex = dtype.is_complex() && matches!(kernel, "normal_kernel_cpu" | "check_uniform_bounds");
    if !kernel.is_empty() && !dtype.is_floating() && !complex {
        return Err(crate::kernels::create::range::not_implemented(kernel, dtype));
    }
    fill(a, target, draw)?;
    one(target.clone())
}

fn refill_ints(a: &Args<'_>, draw: impl Fn(&mut Generator, DType) -> i64) -> Result<Outputs> {
    whole_numbers(a, a.tensor(0)?, draw)
}

/// One throw for each element of `target`, by the probability of its place.
fn coins(a: &Args<'_>, target: &Tensor, probabilities: &Tensor) -> Result<()> {
    if !probabilities.dtype().is_floating() {
        return Err(crate::kernels::create::range::not_implemented(
            "bernoulli_tensor_cpu_p_",
            probabilities.dtype(),
        ));
    }
    let layout = target.layout();
    layout.refuse_overlap()?;
    let double = probabilities.dtype() == DType::F64;
    // The target decides the order first.
    let walk = Walk::new(&[layout, probabilities.layout()])?;
    let seen = |n: usize| walk.operands[n].clone();
    let chances = probabilities.with_layout(seen(1))?.elements_as::<f64>()?;
    if chances.iter().any(|p| !(0.0..=1.0).contains(p)) {
        let text = "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If so, \
                    please report an enhancement request to PyTorch.)";
        return fail(text.to_string());
    }
    let drawn = with_generator(a, |g| {
        let throw = |p: &f64| if double { g.uniform() < *p } else { g.uniform_single() < *p };
        chances.iter().map(throw).scratch()
    })?;
    let target = target.with_layout(seen(0))?;
    crate::dispatch_dtype!(target.dtype(), T => {
        let elements = drawn.iter().map(|hit| T::from_scalar(Scalar::Bool(*hit))).scratch()?;
        target.write_dense::<T>(&elements)
    })
}

/// Mean plus deviation times normal numbers of the sizes of both.
fn spread(a: &Args<'_>, mean: Tensor, std: Tensor) -> Result<Outputs> {
    let sizes = crate::tensor::broadcast_all([&mean, &std])?;
    let dtype = crate::tensor::promote_types(mean.dtype(), std.dtype());
    if !dtype.is_floating() {
        return Err(Diagnostic::unsupported(format!("{} of dtype {}", a.op.name(), dtype.name())));
    }
    let (means, stds) =
        (mean.broadcast_to(&sizes)?.elements_as::<f64>()?, std.broadcast_to(&sizes)?.elements_as::<f64>()?);
    if stds.iter().any(|s| *s < 0.0) {
        return fail("normal expects all elements of std >= 0.0".to_string());
    }
    let round = rounded_to(dtype);
    one(make(a, &sizes, dtype, |g, draw| {
        let drawn = normal(g, draw)?;
        // The standard numbers are scaled and then moved, each rounded to the dtype.
        let moved = |(x, (mean, std)): (&f64, (&f64, &f64))| round(round(*x) * std) + mean;
        drawn.iter().zip(means.iter().zip(&stds)).map(moved).scratch()
    })?)
}

fn multinomial(a: &Args<'_>) -> Result<Outputs> {
    let (weights, count, replacement) = (a.tensor(0)?, a.int(1)?, a.bool(2)?);
    if !weights.dtype().is_floating() {
        return fail(format!(
            "multinomial only supports floating-point dtypes for input, got: {}",
            weights.dtype().type_name()
        ));
    }
    let sizes = weights.sizes();
    if sizes.is_empty() || sizes.len() > 2 {
        return fail("prob_dist must be 1 or 2 dim".to_string());
    }
    let width = sizes[sizes.len() - 1];
    if count <= 0 {
        return fail("cannot sample n_sample <= 0 samples".to_string());
    }
    if !replacement && count > width {
        return fail("cannot sample n_sample > prob_dist.size(-1) samples without replacement".to_string());
    }
    let w = weights.elements_as::<f64>()?;
    // Draws that are put back are checked one weight after the other.
    let bad = if replacement && count > 1 { w.iter().find(|x| !x.is_finite() || **x < 0.0) } else { None };
    if let Some(x) = bad {
        // NaN counts among what is below zero.
        let what = if *x >= 0.0 { "= infinity or NaN" } else { "< 0" };
        return fail(format!("invalid multinomial distribution (encountering probability entry {what})"));
    }
    if w.iter().any(|x| !x.is_finite() || *x < 0.0) {
        return fail("probability tensor contains either `inf`, `nan` or element < 0".to_string());
    }
    let rows = w.chunks(width.max(1) as usize).scratch()?;
    if width == 0 && count == 1 {
        return fail(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
                .into(),
        );
    }
    if width == 0 || rows.iter().any(|row| row.iter().sum::<f64>() == 0.0) {
        return fail("invalid multinomial distribution (sum of probabilities <= 0)".to_string());
    }
    let mut out: Scratch<i64> = Scratch::default();
    with_generator(a, |g| {
        if replacement && count > 1 {
            for row in &rows {
                out.extend(with_replacement(g, row, count)?)?;
            }
        } else {
            let noise = each(w.len(), || g.exponential())?;
            for (row, noise) in rows.iter().zip(noise.chunks(width.max(1) as usize)) {
                let mut order = (0..row.len()).scratch()?;
                order.sort_by(|x, y| (row[*y] / noise[*y]).total_cmp(&(row[*x] / noise[*x])));
                out.extend(order.iter().take(count as usize).map(|i| *i as i64))?;
            }
        }
        Ok(())
    })?;
    let mut shape = sizes.to_vec();
    shape.pop();
    shape.push(count);
    one(Tensor::from_vec(&out, &shape)?)
}

/// Looks uniform numbers up in the sums of the weights.
fn with_replacement(g: &mut Generator, row: &[f64], count: i64) -> Result<Scratch<i64>> {
    let total: f64 = row.iter().sum();
    let mut sum = 0.0;
    let bounds = row
        .iter()
        .map(|x| {
            sum += x;
            sum / total
        })
        .scratch()?;
    let last = row.len() - 1;
    let draw = |_| {
        let u = g.uniform();
        bounds.iter().position(|b| u <= *b).unwrap_or(last).min(last) as i64
    };
    (0..count).map(draw).scratch()
}
