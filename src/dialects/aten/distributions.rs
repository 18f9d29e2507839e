//! Distributions that tensors of parameters give: gamma, Dirichlet, binomial, Poisson; and the forms of ops that draw which
//! give a new tensor and leave their operand as it is, as exported graphs have them. Which numbers are drawn is in
//! [`crate::dialects::generator`].

use crate::diag::Result;
use crate::dialects::draw::{fail, make};
use crate::dialects::{Args, Effects, OpDef, Outputs, composite, one, opaque};
use crate::kernels::create::range::not_implemented;
use crate::resources::{Collect, Scratch};
use crate::tensor::DType;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque("aten::poisson(Tensor self, Generator? generator=None) -> Tensor", poisson).effects(Effects::RANDOM),
    opaque("aten::_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", gamma)
        .effects(Effects::RANDOM)
        .doc("gamma distributed numbers of scale 1, by their shapes"),
    opaque("aten::_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", dirichlet)
        .effects(Effects::RANDOM)
        .doc("gamma distributed numbers, divided by their sums along the last dimension"),
    opaque("aten::binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", binomial)
        .effects(Effects::RANDOM)
        .doc("how many of `count` throws succeed, each with probability `prob`"),
    drawn(
        "aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
        "def uniform(self: Tensor, low: float, high: float, *, generator: Optional[Generator]) -> Tensor:
    return torch.empty_like(self).uniform_(low, high, generator=generator)
",
    ),
    drawn(
        "aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor",
        "def normal_functional(self: Tensor, mean: float, std: float, *, generator: Optional[Generator]) -> Tensor:
    return torch.empty_like(self).normal_(mean, std, generator=generator)
",
    ),
    drawn(
        "aten::log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor",
        "def log_normal(self: Tensor, mean: float, std: float, *, generator: Optional[Generator]) -> Tensor:
    return torch.empty_like(self).log_normal_(mean, std, generator=generator)
",
    ),
    drawn(
        "aten::exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor",
        "def exponential(self: Tensor, lambd: float, *, generator: Optional[Generator]) -> Tensor:
    return torch.empty_like(self).exponential_(lambd, generator=generator)
",
    ),
    drawn(
        "aten::cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor",
        "def cauchy(self: Tensor, median: float, sigma: float, *, generator: Optional[Generator]) -> Tensor:
    return torch.empty_like(self).cauchy_(median, sigma, generator=generator)
",
    ),
    drawn(
        "aten::geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor",
        "def geometric(self: Tensor, p: float, *, generator: Optional[Generator]) -> Tensor:
    return torch.empty_like(self).geometric_(p, generator=generator)
",
    ),
    drawn(
        "aten::random(Tensor self, *, Generator? generator=None) -> Tensor",
        "def random(self: Tensor, *, generator: Optional[Generator]) -> Tensor:
    return torch.empty_like(self).random_(generator=generator)
",
    ),
    drawn(
        "aten::random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor",
        "def random(self: Tensor, to: int, *, generator: Optional[Generator]) -> Tensor:
    return torch.empty_like(self).random_(to, generator=generator)
",
    ),
    drawn(
        "aten::random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
        "def random(self: Tensor, low: int, to: Optional[int], *, generator: Optional[Generator]) -> Tensor:
    return torch.empty_like(self).random_(low, to, generator=generator)
",
    ),
];

const fn drawn(schema: &'static str, meaning: &'static str) -> OpDef {
    composite(schema, meaning).effects(Effects::RANDOM).doc("as the form in place, into a new tensor")
}

fn poisson(a: &Args<'_>) -> Result<Outputs> {
    let rates = a.tensor(0)?;
    if !rates.dtype().is_floating() {
        return Err(not_implemented("poisson_cpu", rates.dtype()));
    }
    let values = rates.elements_as::<f64>()?;
    if values.iter().any(|x| *x < 0.0) {
        return fail("invalid Poisson rate, expected rate to be non-negative".to_string());
    }
    one(make(a, &rates.sizes(), rates.dtype(), |g, _| values.iter().map(|x| g.poisson(*x)).scratch())?)
}

/// The least positive number of a dtype, without those that have lost bits, and the greatest below 1.
fn bounds(kernel: &str, dtype: DType) -> Result<(f64, f64)> {
    match dtype {
        DType::F32 => Ok((f64::from(f32::MIN_POSITIVE), f64::from(1.0f32.next_down()))),
        DType::F64 => Ok((f64::MIN_POSITIVE, 1.0f64.next_down())),
        _ => Err(not_implemented(kernel, dtype)),
    }
}

fn gamma(a: &Args<'_>) -> Result<Outputs> {
    let shapes = a.tensor(0)?;
    let (least, _) = bounds("gamma_cpu", shapes.dtype())?;
    let values = shapes.elements_as::<f64>()?;
    one(make(a, &shapes.sizes(), shapes.dtype(), |g, _| {
        values.iter().map(|x| g.gamma(*x).max(least)).scratch()
    })?)
}

fn dirichlet(a: &Args<'_>) -> Result<Outputs> {
    let shapes = a.tensor(0)?;
    let (least, most) = bounds("dirichlet", shapes.dtype())?;
    let values = shapes.elements_as::<f64>()?;
    let width = shapes.sizes().last().map_or(1, |n| *n as usize).max(1);
    one(make(a, &shapes.sizes(), shapes.dtype(), |g, _| {
        let mut drawn: Scratch<f64> = values.iter().map(|x| g.gamma(*x).max(f64::MIN_POSITIVE)).scratch()?;
        for row in drawn.chunks_mut(width) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|x| *x = (*x / sum).max(least).min(most));
        }
        Ok(drawn)
    })?)
}

fn binomial(a: &Args<'_>) -> Result<Outputs> {
    let (count, p) = (a.tensor(0)?, a.tensor(1)?);
    if !count.dtype().is_floating() {
        return fail(format!(
            "binomial only supports floating-point dtypes for count, got: {}",
            count.dtype().type_name()
        ));
    }
    if p.dtype() != count.dtype() {
        let (found, wanted) = (p.dtype().type_name(), count.dtype().type_name());
        return fail(format!("Found dtype {found} but expected {wanted}"));
    }
    bounds("binomial_cpu", count.dtype())?;
    let sizes = crate::tensor::broadcast_all([count, p])?;
    let counts = count.broadcast_to(&sizes)?.elements_as::<f64>()?;
    let chances = p.broadcast_to(&sizes)?.elements_as::<f64>()?;
    one(make(a, &sizes, count.dtype(), |g, _| {
        let single = count.dtype() == DType::F32;
        let each = |(n, p): (&f64, &f64)| match single {
            true => f64::from(g.binomial_single(*n as f32, *p as f32)),
            false => g.binomial(*n, *p),
        };
        counts.iter().zip(chances.iter()).map(each).scratch()
    })?)
}
