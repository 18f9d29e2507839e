//! How far the compiled functions of f32 are from the truth: the table of bounds that docs/math.md prints, and
//! the measurement that proves it. The tests sample (`tests/accuracy.rs`); `main.rs` beside it runs all 2^32 inputs.

use flambeau::backends::{Arg, Backend, Buffer, Launch, Memory};
use flambeau::diag::{Diagnostic, Result};
use flambeau::dialects::loops;
use flambeau::dialects::scalar::{Program, Sv};
use flambeau::lowering::{Nest, Stride, lower};
use flambeau::resources::pool;
use flambeau::tensor::DType;

/// A function with its stated bound.
pub struct Function {
    /// Name.
    pub name: &'static str,
    /// Largest error against the true value, in units in the last place of the nearest f32.
    pub bound: f64,
    /// Whether results below the smallest normal float come out as 0 (where e^-x overflows).
    pub flushes: bool,
    /// The scalar program.
    build: fn(&mut Program, Sv) -> Sv,
    /// The true value, good to far more than f32.
    truth: fn(f64) -> f64,
}

/// The functions that have their own polynomial.
pub const FUNCTIONS: &[Function] = &[
    Function { name: "exp", bound: 1.01, flushes: false, build: |p, x| p.exp(x), truth: f64::exp },
    Function { name: "exp2", bound: 1.0, flushes: false, build: |p, x| p.exp2(x), truth: f64::exp2 },
    Function { name: "expm1", bound: 1.0, flushes: false, build: |p, x| p.expm1(x), truth: f64::exp_m1 },
    Function { name: "log", bound: 1.0, flushes: false, build: |p, x| p.log(x), truth: f64::ln },
    Function { name: "log2", bound: 1.0, flushes: false, build: |p, x| p.log2(x), truth: f64::log2 },
    Function { name: "log10", bound: 1.0, flushes: false, build: |p, x| p.log10(x), truth: f64::log10 },
    Function { name: "log1p", bound: 1.0, flushes: false, build: |p, x| p.log1p(x), truth: f64::ln_1p },
    Function { name: "tanh", bound: 1.0, flushes: false, build: |p, x| p.tanh(x), truth: f64::tanh },
    Function { name: "erf", bound: 1.1, flushes: false, build: |p, x| p.erf(x), truth: libm::erf },
    Function { name: "sin", bound: 1.0, flushes: false, build: |p, x| p.sin(x), truth: f64::sin },
    Function { name: "cos", bound: 1.0, flushes: false, build: |p, x| p.cos(x), truth: f64::cos },
    Function { name: "tan", bound: 1.5, flushes: false, build: |p, x| p.tan(x), truth: f64::tan },
    Function { name: "asin", bound: 1.0, flushes: false, build: |p, x| p.asin(x), truth: f64::asin },
    Function { name: "acos", bound: 1.0, flushes: false, build: |p, x| p.acos(x), truth: f64::acos },
    Function { name: "atan", bound: 1.1, flushes: false, build: |p, x| p.atan(x), truth: f64::atan },
    Function { name: "atan2", bound: 1.1, flushes: false, build: angle, truth: |y| y.atan2(FIXED) },
    Function { name: "atan2", bound: 1.1, flushes: false, build: angle_to, truth: |x| FIXED.atan2(-x) },
    Function { name: "pow", bound: 0.51, flushes: false, build: power, truth: |x| x.powf(FIXED) },
    Function {
        name: "sigmoid",
        bound: 2.5,
        flushes: true,
        build: sigmoid,
        truth: |x| 1.0 / (1.0 + (-x).exp()),
    },
];

/// The other operand of functions of two: a float, so that it is the same for both sides.
const FIXED: f64 = -1.234_567_761_421_203_6;

/// The angle of points with one abscissa.
fn angle(p: &mut Program, y: Sv) -> Sv {
    let x = p.constant_like(y, FIXED);
    p.atan2(y, x)
}

/// The angle of points with one ordinate, to the other side.
fn angle_to(p: &mut Program, x: Sv) -> Sv {
    let (x, y) = (p.neg(x), p.constant_like(x, FIXED));
    p.atan2(y, x)
}

/// Powers with one exponent.
fn power(p: &mut Program, x: Sv) -> Sv {
    let y = p.constant_like(x, FIXED);
    p.pow(x, y)
}

/// 1 / (1 + e^-x), as the rows write it.
fn sigmoid(p: &mut Program, x: Sv) -> Sv {
    let negative = p.neg(x);
    let e = p.exp(negative);
    let one = p.constant_like(e, 1.0);
    let sum = p.add(e, one);
    p.div(one, sum)
}

/// The worst input found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Worst {
    /// Error in units in the last place; infinite where a special value is wrong.
    pub ulps: f64,
    /// At which input.
    pub input: f32,
    /// What came out.
    pub got: f32,
    /// How many inputs were tried.
    pub tried: u64,
}

/// The distance of `got` from `truth` in units in the last place of f32 at `truth`.
fn error(got: f32, truth: f64, flushes: bool) -> f64 {
    let rounded = truth as f32;
    if flushes && rounded.abs() < f32::MIN_POSITIVE && got == 0.0 {
        return 0.0;
    }
    if got == rounded || (got.is_nan() && rounded.is_nan()) {
        // Also right within half a unit; the exact distance matters only where it is more.
        return if rounded.is_finite() { ulps(got, truth) } else { 0.0 };
    }
    if got.is_nan() || rounded.is_nan() {
        return f64::INFINITY;
    }
    if got.is_infinite() || rounded.is_infinite() {
        // One step from the largest float counts as one.
        return if got.abs().max(rounded.abs()).is_infinite() && got.abs().min(rounded.abs()) == f32::MAX {
            1.0
        } else {
            f64::INFINITY
        };
    }
    ulps(got, truth)
}

fn ulps(got: f32, truth: f64) -> f64 {
    let exponent = if truth == 0.0 { -126 } else { (truth.abs().log2().floor() as i32).max(-126) };
    (f64::from(got) - truth).abs() / f64::powi(2.0, exponent - 23)
}

impl Function {
    /// Compiles the function and runs it on the bit patterns `0, step, 2 step, …`.
    pub fn measure(&self, backend: &dyn Backend, step: u64) -> Result<Worst> {
        const BATCH: u64 = 1 << 20;
        let mut program = Program::new();
        let x = program.param(DType::F32);
        let y = (self.build)(&mut program, x);
        let flat = || vec![(DType::F32, vec![Stride::One])];
        let nest = Nest {
            program,
            reductions: Vec::new(),
            rows: None,
            results: vec![y],
            stores: flat(),
            loads: flat(),
            in_place: Vec::new(),
            scalars: Vec::new(),
            rank: 1,
        };
        let kernel = loops::decode(&lower(&nest, backend.target())?)?;
        let exe = backend.compile(&kernel)?;
        let count = (1u64 << 32).div_ceil(step.max(1));
        let batches = pool::map(count.div_ceil(BATCH) as usize, |batch| {
            let batch = batch as u64;
            let inputs: Vec<f32> = (batch * BATCH..count.min((batch + 1) * BATCH))
                .map(|n| f32::from_bits((n * step.max(1)) as u32))
                .collect();
            let mut outputs = vec![0f32; inputs.len()];
            let memory = vec![
                Memory::Write(bytemuck::cast_slice_mut(&mut outputs)),
                Memory::Read(bytemuck::cast_slice(&inputs)),
            ];
            let buffer = |memory| Arg::Buffer(Buffer::whole(memory, inputs.len()));
            let args = vec![buffer(0), buffer(1), Arg::Int(inputs.len() as i64)];
            // SAFETY: a flat kernel of one dimension touches as many elements as its extent says, each once.
            #[allow(unsafe_code, reason = "runs one kernel without a group")]
            unsafe {
                exe.run(&mut Launch { memory, args: args.into(), grain: 1 })?;
            }
            let mut worst = Worst { tried: inputs.len() as u64, ..Worst::default() };
            for (input, got) in inputs.iter().zip(&outputs) {
                let ulps = error(*got, (self.truth)(f64::from(*input)), self.flushes);
                if ulps > worst.ulps {
                    worst = Worst { ulps, input: *input, got: *got, ..worst };
                }
            }
            Ok::<Worst, Diagnostic>(worst)
        });
        batches?.into_iter().try_fold(Worst::default(), |a, b| {
            let b = b?;
            let tried = a.tried + b.tried;
            Ok(Worst { tried, ..if b.ulps > a.ulps { b } else { a } })
        })
    }
}
