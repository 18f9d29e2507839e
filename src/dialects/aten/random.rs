//! Random numbers: drawn from the world's generator exactly as PyTorch's CPU kernels draw them, once a program (or who
//! runs it) has seeded it. An unseeded draw is refused, since nobody could check it.

use super::create::{asked, like};
use super::kernels::wide::store;
use super::list::nothing;
use crate::diag::{Diagnostic, Result};
use crate::dialects::generator::Generator;
use crate::dialects::{Args, Effects, OpDef, Outputs, composite, create, host, one, opaque};
use crate::tensor::{DType, Scalar, Tensor, numel};
use crate::value::Value;
use smallvec::smallvec;

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
        a.env.seed(a.int(0)? as u64);
        nothing()
    })
    .effects(Effects::RANDOM.union(Effects::WRITES_WORLD))
    .doc("seeds the generator of the program's world"),
    create(options!("aten::rand(SymInt[] size, *, "), |a| sized(a, 0, uniform)).effects(Effects::RANDOM),
    create(options!("aten::randn(SymInt[] size, *, "), |a| sized(a, 0, normal)).effects(Effects::RANDOM),
    create(like_options!("aten::rand_like(Tensor self, *, "), |a| alike(a, 1, uniform)).effects(Effects::RANDOM),
    create(like_options!("aten::randn_like(Tensor self, *, "), |a| alike(a, 1, normal)).effects(Effects::RANDOM),
    create(int_options!("aten::randint(SymInt high, SymInt[] size, *, "), |a| integers(a, None, 0, 1)).effects(Effects::RANDOM),
    create(int_options!("aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, "), |a| integers(a, Some(0), 1, 2))
        .effects(Effects::RANDOM),
    create(like_options!("aten::randint_like(Tensor self, SymInt high, *, "), |a| integers_like(a, None, 1)).effects(Effects::RANDOM),
    create(like_options!("aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, "), |a| {
        integers_like(a, Some(1), 2)
    })
    .effects(Effects::RANDOM),
    create(int_options!("aten::randperm(SymInt n, *, "), permutation).effects(Effects::RANDOM),
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
        refill(a, 3, "check_uniform_bounds", |g, dtype, n| Ok(scaled(uniform(g, dtype, n)?, to - from, from)))
    })
    .effects(Effects::RANDOM),
    opaque("aten::normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)", |a| {
        let (mean, std) = (a.float(1)?, deviation(a.float(2)?)?);
        refill(a, 3, "normal_kernel_cpu", |g, dtype, n| Ok(scaled(normal(g, dtype, n)?, std, mean)))
    })
    .effects(Effects::RANDOM),
    opaque("aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", |a| {
        let (mean, std, dtype) = (a.float(0)?, deviation(a.float(1)?)?, asked(a, 4)?.unwrap_or(DType::F32));
        let sizes = a.ints(2)?;
        one(make(a, 3, &sizes, dtype, |g, dtype, n| Ok(scaled(normal(g, dtype, n)?, std, mean)))?)
    })
    .effects(Effects::RANDOM),
    opaque("aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor", |a| {
        spread(a, a.tensor(0)?.clone(), a.tensor(1)?.clone(), 2)
    })
    .effects(Effects::RANDOM)
    .out("Tensor_Tensor_out"),
    opaque("aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor", |a| {
        let std = deviation(a.float(1)?)?;
        spread(a, a.tensor(0)?.clone(), Tensor::full(a.tensor(0)?.dtype(), &[], Scalar::Float(std))?, 2)
    })
    .effects(Effects::RANDOM)
    .out("Tensor_float_out"),
    opaque("aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor", |a| {
        spread(a, Tensor::full(a.tensor(1)?.dtype(), &[], Scalar::Float(a.float(0)?))?, a.tensor(1)?.clone(), 2)
    })
    .effects(Effects::RANDOM)
    .out("float_Tensor_out"),
    opaque("aten::log_normal_(Tensor(a!) self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor(a!)", |a| {
        let (mean, std) = (a.float(1)?, a.float(2)?);
        refill(a, 3, "log_normal_cpu", |g, _, n| Ok(each(n, || (mean + std * g.normal()).exp())))
    })
    .effects(Effects::RANDOM),
    opaque("aten::exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)", |a| {
        let rate = a.float(1)?;
        if rate <= 0.0 {
            return fail(format!("exponential_ expects lambda > 0.0, but found lambda={rate}"));
        }
        refill(a, 2, "exponential_cpu", |g, _, n| Ok(each(n, || g.exponential() / rate)))
    })
    .effects(Effects::RANDOM),
    opaque("aten::cauchy_(Tensor(a!) self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor(a!)", |a| {
        let (median, sigma) = (a.float(1)?, a.float(2)?);
        refill(a, 3, "cauchy_cpu", |g, _, n| {
            Ok(each(n, || median + sigma * (std::f64::consts::PI * (g.uniform() - 0.5)).tan()))
        })
    })
    .effects(Effects::RANDOM),
    opaque("aten::geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)", |a| {
        let p = a.float(1)?;
        if !(0.0 < p && p < 1.0) {
            return fail(format!("geometric_ expects p to be in (0, 1), but got p={p}"));
        }
        refill(a, 2, "", |g, _, n| Ok(each(n, || (g.uniform().ln() / (1.0 - p).ln()).ceil())))
    })
    .effects(Effects::RANDOM),
    opaque("aten::random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)", |a| refill_ints(a, 1, any_number))
        .effects(Effects::RANDOM),
    opaque("aten::random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)", |a| {
        let range = range_of("random_", 0, a.int(1)?)?;
        refill_ints(a, 2, move |g, _| g.below(range) as i64)
    })
    .effects(Effects::RANDOM),
    opaque("aten::random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)", |a| {
        let from = a.int(1)?;
        let Some(to) = a.opt_int(2)? else {
            return Err(Diagnostic::unsupported("aten::random_ from a number without an end"));
        };
        let range = range_of("random_", from, to)?;
        refill_ints(a, 3, move |g, _| from.wrapping_add(g.below(range) as i64))
    })
    .effects(Effects::RANDOM),
    opaque("aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", |a| {
        one(coins(a, 1, a.tensor(0)?)?.to_dtype(a.tensor(0)?.dtype())?)
    })
    .effects(Effects::RANDOM)
    .out("out"),
    opaque("aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", |a| {
        let t = a.tensor(0)?;
        one(make(a, 2, &t.sizes(), t.dtype(), |g, _, n| bernoulli(g, n, a.float(1)?))?)
    })
    .effects(Effects::RANDOM),
    opaque("aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)", |a| {
        let p = a.float(1)?;
        refill(a, 2, "", |g, _, n| bernoulli(g, n, p))
    })
    .effects(Effects::RANDOM),
    opaque("aten::bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)", |a| {
        let target = a.tensor(0)?;
        let drawn = coins(a, 2, &a.tensor(1)?.broadcast_to(&target.sizes())?)?;
        expect_dense(a, target)?;
        target.copy_from(&drawn)?;
        one(target.clone())
    })
    .effects(Effects::RANDOM),
    opaque("aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor", multinomial)
        .effects(Effects::RANDOM)
        .out_exact("out"),
    opaque("aten::poisson(Tensor self, Generator? generator=None) -> Tensor", |a| {
        let rates = a.tensor(0)?;
        if !rates.dtype().is_floating() {
            return Err(super::kernels::range::not_implemented("poisson_cpu", rates.dtype()));
        }
        let values = rates.to_vec_as::<f64>()?;
        if values.iter().any(|x| *x < 0.0) {
            return fail("invalid Poisson rate, expected rate to be non-negative".to_string());
        }
        one(make(a, 1, &rates.sizes(), rates.dtype(), |g, _, _| Ok(values.iter().map(|x| g.poisson(*x)).collect()))?)
    })
    .effects(Effects::RANDOM),
];

fn fail<T>(text: String) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

/// Runs work with the seeded generator of the world.
fn with_generator<T>(a: &Args<'_>, work: impl FnOnce(&mut Generator) -> Result<T>) -> Result<T> {
    a.env.with_generator(work).unwrap_or_else(|| {
        Err(Diagnostic::unsupported(format!(
            "{} draws random numbers and nobody has seeded the generator",
            a.op.name()
        ))
        .hint("call torch.manual_seed first"))
    })
}

/// What draws `n` numbers for elements of a dtype.
type Draw = fn(&mut Generator, DType, usize) -> Result<Vec<f64>>;

fn uniform(g: &mut Generator, dtype: DType, n: usize) -> Result<Vec<f64>> {
    Ok(if dtype == DType::F64 { each(n, || g.uniform()) } else { each(n, || g.uniform_single()) })
}

fn normal(g: &mut Generator, dtype: DType, n: usize) -> Result<Vec<f64>> {
    if matches!(dtype, DType::F16 | DType::BF16) && n > 16 && !n.is_multiple_of(16) {
        return Err(Diagnostic::unsupported(format!("{n} normal numbers of dtype {}", dtype.name())));
    }
    Ok(g.normals(n, if dtype == DType::F64 { Generator::uniform } else { Generator::uniform_single }))
}

fn bernoulli(g: &mut Generator, n: usize, p: f64) -> Result<Vec<f64>> {
    if !(0.0..=1.0).contains(&p) {
        return fail(format!("bernoulli_ expects p to be in [0, 1], but got p={p}"));
    }
    Ok(each(n, || f64::from(u8::from(g.uniform() < p))))
}

fn each(n: usize, mut draw: impl FnMut() -> f64) -> Vec<f64> {
    (0..n).map(|_| draw()).collect()
}

fn scaled(numbers: Vec<f64>, factor: f64, term: f64) -> Vec<f64> {
    numbers.into_iter().map(|x| x * factor + term).collect()
}

fn deviation(std: f64) -> Result<f64> {
    if std < 0.0 { fail(format!("normal expects std >= 0.0, but found std {std}")) } else { Ok(std) }
}

/// A tensor of drawn numbers; a complex one is drawn as twice as many real ones.
fn make(
    a: &Args<'_>,
    generator: usize,
    sizes: &[i64],
    dtype: DType,
    draw: impl FnOnce(&mut Generator, DType, usize) -> Result<Vec<f64>>,
) -> Result<Tensor> {
    expect_default(a, generator)?;
    // Proves that the tensor can be stored.
    let n = Tensor::zeros(dtype, sizes)?.numel();
    debug_assert_eq!(n, numel(sizes));
    store::<f64>(&with_generator(a, |g| draw(g, dtype, n))?, sizes, dtype)
}

/// Refuses generators that a program made itself.
fn expect_default(a: &Args<'_>, generator: usize) -> Result<()> {
    if generator < a.values.len() && matches!(a.value(generator)?, Value::Object(_)) {
        return Err(Diagnostic::unsupported(format!("{} with a generator of its own", a.op.name())));
    }
    Ok(())
}

fn real_or_complex(a: &Args<'_>, sizes: &[i64], dtype: DType, draw: Draw, factor: f64) -> Result<Tensor> {
    let real = match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        _ if dtype.is_floating() => return make(a, usize::MAX, sizes, dtype, draw),
        _ => return Err(super::kernels::range::not_implemented("check_uniform_bounds", dtype)),
    };
    let n = Tensor::zeros(dtype, sizes)?.numel();
    let parts = with_generator(a, |g| draw(g, real, 2 * n))?;
    let pairs: Vec<num_complex::Complex64> =
        parts.chunks_exact(2).map(|p| num_complex::Complex64::new(p[0] * factor, p[1] * factor)).collect();
    store::<num_complex::Complex64>(&pairs, sizes, dtype)
}

/// The two parts of a complex normal number share its variance.
fn complex_factor(a: &Args<'_>) -> f64 {
    if a.op.name().as_str().contains("randn") { 0.5f64.sqrt() } else { 1.0 }
}

fn sized(a: &Args<'_>, sizes: usize, draw: Draw) -> Result<Outputs> {
    let dtype = asked(a, sizes + 1)?.unwrap_or(DType::F32);
    one(real_or_complex(a, &a.ints(sizes)?, dtype, draw, complex_factor(a))?)
}

fn alike(a: &Args<'_>, options: usize, draw: Draw) -> Result<Outputs> {
    let template = like(a, options, Scalar::Int(0))?;
    let Some(Value::Tensor(t)) = template.first() else { return Ok(template) };
    expect_dense(a, t)?;
    one(real_or_complex(a, &t.sizes(), t.dtype(), draw, complex_factor(a))?)
}

fn range_of(name: &str, low: i64, high: i64) -> Result<u64> {
    if low >= high {
        return fail(format!("{name} expects 'from' to be less than 'to', but got from={low} >= to={high}"));
    }
    Ok(high.wrapping_sub(low) as u64)
}

fn whole_numbers(a: &Args<'_>, sizes: &[i64], dtype: DType, low: i64, high: i64) -> Result<Outputs> {
    let range = range_of("random_", low, high)?;
    let n = Tensor::zeros(dtype, sizes)?.numel();
    let drawn = with_generator(a, |g| {
        Ok((0..n).map(|_| low.wrapping_add(g.below(range) as i64)).collect::<Vec<i64>>())
    })?;
    one(store::<i64>(&drawn, sizes, dtype)?)
}

fn integers(a: &Args<'_>, low: Option<usize>, high: usize, sizes: usize) -> Result<Outputs> {
    let low = low.map_or(Ok(0), |n| a.int(n))?;
    let dtype = asked(a, sizes + 1)?.unwrap_or(DType::I64);
    whole_numbers(a, &a.ints(sizes)?, dtype, low, a.int(high)?)
}

fn integers_like(a: &Args<'_>, low: Option<usize>, high: usize) -> Result<Outputs> {
    let low = low.map_or(Ok(0), |n| a.int(n))?;
    let template = like(a, high + 1, Scalar::Int(0))?;
    let Some(Value::Tensor(t)) = template.first() else { return Ok(template) };
    expect_dense(a, t)?;
    whole_numbers(a, &t.sizes(), t.dtype(), low, a.int(high)?)
}

fn permutation(a: &Args<'_>) -> Result<Outputs> {
    let n = a.int(0)?;
    let dtype = asked(a, 1)?.unwrap_or(DType::I64);
    if n < 0 {
        return fail(format!("n must be non-negative, got {n}"));
    }
    if n >= i64::from(u32::MAX) / 20 {
        return Err(Diagnostic::unsupported(format!("aten::randperm of {n} numbers")));
    }
    let mut order: Vec<i64> = (0..n).collect();
    with_generator(a, |g| {
        for i in 0..order.len().saturating_sub(1) {
            let other = i + g.bits32() as usize % (order.len() - i);
            order.swap(i, other);
        }
        Ok(())
    })?;
    one(store::<i64>(&order, &[n], dtype)?)
}

/// PyTorch fills in the order of memory; only where that is the logical order the numbers are known.
fn expect_dense(a: &Args<'_>, target: &Tensor) -> Result<()> {
    if !target.is_contiguous() {
        return Err(Diagnostic::unsupported(format!("{} of a tensor that is not contiguous", a.op.name())));
    }
    Ok(())
}

fn refill(
    a: &Args<'_>,
    generator: usize,
    kernel: &str,
    draw: impl FnOnce(&mut Generator, DType, usize) -> Result<Vec<f64>>,
) -> Result<Outputs> {
    let target = a.tensor(0)?;
    let dtype = target.dtype();
    if !kernel.is_empty() && !dtype.is_floating() {
        if dtype.is_complex() {
            return Err(Diagnostic::unsupported(format!("{} of a complex tensor", a.op.name())));
        }
        return Err(super::kernels::range::not_implemented(kernel, dtype));
    }
    expect_dense(a, target)?;
    target.copy_from(&make(a, generator, &target.sizes(), dtype, draw)?)?;
    one(target.clone())
}

fn refill_ints(
    a: &Args<'_>,
    generator: usize,
    draw: impl Fn(&mut Generator, DType) -> i64,
) -> Result<Outputs> {
    let target = a.tensor(0)?;
    expect_default(a, generator)?;
    expect_dense(a, target)?;
    let dtype = target.dtype();
    let n = target.numel();
    let drawn = with_generator(a, |g| Ok((0..n).map(|_| draw(g, dtype)).collect::<Vec<i64>>()))?;
    target.copy_from(&store::<i64>(&drawn, &target.sizes(), dtype)?)?;
    one(target.clone())
}

/// Any whole number that the dtype holds exactly.
fn any_number(g: &mut Generator, dtype: DType) -> i64 {
    match dtype {
        DType::F64 => (g.bits64() % ((1 << 53) + 1)) as i64,
        DType::I64 => (g.bits64() & i64::MAX as u64) as i64,
        DType::Bool => i64::from(g.bits32() & 1),
        DType::F32 => i64::from(g.bits32() % ((1 << 24) + 1)),
        DType::F16 => i64::from(g.bits32() % ((1 << 11) + 1)),
        DType::BF16 => i64::from(g.bits32() % ((1 << 8) + 1)),
        DType::I32 => i64::from(g.bits32() & 0x7fff_ffff),
        DType::I16 => i64::from(g.bits32() & 0x7fff),
        DType::I8 => i64::from(g.bits32() & 0x7f),
        _ => i64::from(g.bits32() & 0xff),
    }
}

/// One throw for each probability.
fn coins(a: &Args<'_>, generator: usize, probabilities: &Tensor) -> Result<Tensor> {
    expect_default(a, generator)?;
    if !probabilities.dtype().is_floating() {
        return Err(super::kernels::range::not_implemented("bernoulli_tensor_cpu_p_", probabilities.dtype()));
    }
    let double = probabilities.dtype() == DType::F64;
    let chances = probabilities.to_vec_as::<f64>()?;
    if let Some(p) = chances.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        return fail(format!("Expected p_in >= 0 && p_in <= 1 to be true, but got p={p}"));
    }
    let drawn = with_generator(a, |g| {
        let mut throw =
            |p: &f64| f64::from(u8::from(if double { g.uniform() } else { g.uniform_single() } < *p));
        Ok(chances.iter().map(&mut throw).collect::<Vec<f64>>())
    })?;
    store::<f64>(&drawn, &probabilities.sizes(), probabilities.dtype())
}

/// Mean plus deviation times normal numbers of the sizes of both.
fn spread(a: &Args<'_>, mean: Tensor, std: Tensor, generator: usize) -> Result<Outputs> {
    let sizes = crate::tensor::broadcast_all([&mean, &std])?;
    let dtype = crate::tensor::promote_types(mean.dtype(), std.dtype());
    if !dtype.is_floating() {
        return Err(Diagnostic::unsupported(format!("{} of dtype {}", a.op.name(), dtype.name())));
    }
    let (means, stds) =
        (mean.broadcast_to(&sizes)?.to_vec_as::<f64>()?, std.broadcast_to(&sizes)?.to_vec_as::<f64>()?);
    if stds.iter().any(|s| *s < 0.0) {
        return fail("normal expects all elements of std >= 0.0".to_string());
    }
    one(make(a, generator, &sizes, dtype, |g, dtype, n| {
        let drawn = normal(g, dtype, n)?;
        Ok(drawn.iter().zip(means.iter().zip(&stds)).map(|(x, (mean, std))| x * std + mean).collect())
    })?)
}

fn multinomial(a: &Args<'_>) -> Result<Outputs> {
    let (weights, count, replacement) = (a.tensor(0)?, a.int(1)?, a.bool(2)?);
    expect_default(a, 3)?;
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
    let w = weights.to_vec_as::<f64>()?;
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
    let rows: Vec<&[f64]> = w.chunks(width.max(1) as usize).collect();
    if rows.iter().any(|row| row.iter().sum::<f64>() == 0.0) {
        return fail("invalid multinomial distribution (sum of probabilities <= 0)".to_string());
    }
    let mut out: Vec<i64> = Vec::new();
    with_generator(a, |g| {
        if replacement && count > 1 {
            rows.iter().for_each(|row| out.extend(with_replacement(g, row, count)));
        } else {
            let noise: Vec<f64> = each(w.len(), || g.exponential());
            for (row, noise) in rows.iter().zip(noise.chunks(width.max(1) as usize)) {
                let mut order: Vec<usize> = (0..row.len()).collect();
                order.sort_by(|x, y| (row[*y] / noise[*y]).total_cmp(&(row[*x] / noise[*x])));
                out.extend(order.iter().take(count as usize).map(|i| *i as i64));
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
fn with_replacement(g: &mut Generator, row: &[f64], count: i64) -> Vec<i64> {
    let total: f64 = row.iter().sum();
    let mut sum = 0.0;
    let bounds: Vec<f64> = row
        .iter()
        .map(|x| {
            sum += x;
            sum / total
        })
        .collect();
    let last = row.len() - 1;
    (0..count)
        .map(|_| {
            let u = g.uniform();
            bounds.iter().position(|b| u <= *b).unwrap_or(last).min(last) as i64
        })
        .collect()
}

/// What is not above zero is scaled: by the middle of the range, in training by a number drawn for each element.
pub fn rrelu(a: &Args<'_>) -> Result<Outputs> {
    let (input, lower, upper) = (a.tensor(0)?, a.scalar(1)?.to_f64(), a.scalar(2)?.to_f64());
    if lower > upper {
        return fail("Lower bound should be less than or equal to the upper bound".to_string());
    }
    let dtype = input.dtype();
    let training = a.bool(3)?;
    if !dtype.is_floating() {
        let kernel = if training { "rrelu_with_noise_out_cpu" } else { "leaky_relu_cpu" };
        return Err(super::kernels::range::not_implemented(kernel, dtype));
    }
    // Products of float32 and wider are rounded once, in the dtype of the input.
    let rounded = |x: f64| if dtype == DType::F64 { x } else { f64::from(x as f32) };
    let mut values = input.to_vec_as::<f64>()?;
    if training {
        expect_default(a, 4)?;
        expect_dense(a, input)?;
        let (from, range) = (rounded(lower), rounded(upper) - rounded(lower));
        with_generator(a, |g| {
            for x in values.iter_mut().filter(|x| **x <= 0.0) {
                *x *= rounded(g.uniform() * range + from);
            }
            Ok(())
        })?;
    } else {
        let slope = rounded((lower + upper) / 2.0);
        values.iter_mut().filter(|x| !(**x > 0.0)).for_each(|x| *x *= slope);
    }
    one(store::<f64>(&values, &input.sizes(), dtype)?)
}

/// Zeros and ones (ones with chance 1 - p) as dropout draws them, for elements or whole channels.
pub fn kept(a: &Args<'_>, sizes: &[i64], p: f64) -> Result<Vec<f64>> {
    let n = numel(sizes);
    with_generator(a, |g| bernoulli(g, n, 1.0 - p))
}

/// Dropout in training, in any of its forms: what is dropped becomes zero (or, in the alpha forms, the value that keeps
/// mean and variance of SELU), the rest is scaled up.
pub fn drop_out(a: &Args<'_>, input: &Tensor, p: f64, features: bool, alpha: bool) -> Result<Tensor> {
    let sizes = input.sizes();
    let noise_sizes: Vec<i64> = if features {
        if sizes.len() < 2 {
            return fail("Feature dropout requires at least 2 dimensions in the input".to_string());
        }
        sizes.iter().enumerate().map(|(d, n)| if d < 2 { *n } else { 1 }).collect()
    } else {
        sizes.to_vec()
    };
    let dtype = input.dtype();
    if p == 1.0 {
        return Tensor::zeros(dtype, &sizes);
    }
    if !input.is_contiguous() && !features {
        return Err(Diagnostic::unsupported(format!("{} of a tensor that is not contiguous", a.op.name())));
    }
    let noise = store::<f64>(&kept(a, &noise_sizes, p)?, &noise_sizes, dtype)?.broadcast_to(&sizes)?;
    let (x, kept) = (input.to_vec_as::<f64>()?, noise.to_vec_as::<f64>()?);
    const ALPHA: f64 = 1.758_099_340_847_376_6;
    let scale = 1.0 / ((ALPHA * ALPHA * p + 1.0) * (1.0 - p)).sqrt();
    let value = |(x, kept): (&f64, f64)| {
        if alpha {
            x * kept * scale + (kept - 1.0) * ALPHA * scale + ALPHA * scale * p
        } else {
            x * (kept / (1.0 - p))
        }
    };
    store::<f64>(&x.iter().zip(kept).map(value).collect::<Vec<f64>>(), &sizes, dtype)
}

/// The result and the mask of `native_dropout`.
pub fn native_dropout(a: &Args<'_>, input: &Tensor, p: f64) -> Result<Outputs> {
    let kept = if p == 1.0 { vec![0.0; input.numel()] } else { kept(a, &input.sizes(), p)? };
    let scale = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
    let values: Vec<f64> = input.to_vec_as::<f64>()?.iter().zip(&kept).map(|(x, k)| x * k * scale).collect();
    let mask = store::<f64>(&kept, &input.sizes(), DType::Bool)?;
    Ok(smallvec![store::<f64>(&values, &input.sizes(), input.dtype())?.into(), mask.into()])
}
