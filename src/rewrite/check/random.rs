//! Random values of every type that rules speak of: numbers with their extremes, tensors of all dtypes, ranks and
//! layouts. Seeded; the same seed gives the same values on every machine.

use crate::diag::Result;
use crate::dispatch_dtype;
use crate::tensor::{DType, Layout, Scalar, Tensor};
use num_complex::Complex64;

/// The generator splitmix64.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
    /// Numbers that elements of tensors are more often than others.
    pub favourites: Vec<f64>,
}

impl Random {
    /// A generator with a seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed, favourites: Vec::new() }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.bits() % n as u64) as usize }
    }

    /// A number of a range, both ends in it.
    pub fn range(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).max(1) as usize) as i64
    }

    /// True with a probability in percent.
    pub fn percent(&mut self, n: usize) -> bool {
        self.below(100) < n
    }

    /// One of the elements; the slice must not be empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A number in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Which numbers a contract speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// All: NaN, infinities, -0, denormals, extremes.
    Any,
    /// Finite ones.
    Finite,
    /// Finite ones of moderate size: 0, and magnitudes between 1/16 and 8.
    Moderate,
}

/// The dtypes of tensors, the common ones more often.
const DTYPES: &[DType] = &[
    DType::F32,
    DType::F32,
    DType::F32,
    DType::F64,
    DType::F64,
    DType::I64,
    DType::I64,
    DType::F16,
    DType::BF16,
    DType::I32,
    DType::I16,
    DType::I8,
    DType::U8,
    DType::Bool,
    DType::Bool,
    DType::C64,
    DType::C128,
];

/// Where ints overflow, and where floats skip.
pub(super) const INT_EXTREMES: &[i64] = &[
    i64::MIN,
    i64::MAX,
    i64::MIN + 1,
    i64::MAX - 1,
    i64::MAX / 2 + 1,
    i64::MIN / 2 - 1,
    1 << 62,
    -(1 << 62),
    (1 << 53) + 1,
    -(1 << 53) - 1,
    1 << 32,
    (1 << 31) - 1,
    -(1 << 31),
    1 << 31,
    3_037_000_500,
    // Rounded to float64 first, these become other float32 numbers than rounded at once.
    (1 << 60) + (1 << 36) + 1,
    -(1 << 60) - (1 << 36) - 1,
    (1 << 24) + 1,
    2049,
];

impl Random {
    /// A dtype.
    pub fn dtype(&mut self) -> DType {
        *self.pick(DTYPES)
    }

    /// An int: small, extreme or anything.
    pub fn int(&mut self, numbers: Numbers) -> i64 {
        match (numbers, self.below(10)) {
            (Numbers::Moderate, _) | (_, 0..=4) => self.range(-6, 9),
            (_, 5 | 6) => *self.pick(INT_EXTREMES),
            (_, 7) => self.range(-300, 300),
            _ => (self.bits() as i64) >> self.below(64),
        }
    }

    /// A float.
    pub fn float(&mut self, numbers: Numbers) -> f64 {
        self.float_of(numbers, DType::F64)
    }

    /// A float as a dtype holds it.
    fn float_of(&mut self, numbers: Numbers, dtype: DType) -> f64 {
        if numbers == Numbers::Moderate {
            return self.moderate();
        }
        match self.below(20) {
            0..=3 => self.range(-4, 4) as f64,
            4 => *self.pick(&[0.5, -0.5, 1.5, 2.5, -1.5, -2.5, 0.1, 1.0 / 3.0]),
            5 => *self.pick(&[0.0, -0.0, 1.0, -1.0]),
            6 | 7 if numbers == Numbers::Any => *self.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
            8 => self.edge(dtype),
            9 => (self.unit() - 0.5) * 200.0,
            10 => (self.unit() - 0.5) * 1e6,
            11 => self.range(-60, 60) as f64 / 4.0,
            _ => self.normal(),
        }
    }

    /// 0, a small whole number, or a magnitude between 1/16 and 8.
    fn moderate(&mut self) -> f64 {
        match self.below(12) {
            0 => 0.0,
            1 => 1.0,
            2 => -1.0,
            3 => self.range(-4, 4) as f64,
            4 => self.range(-8, 8) as f64 / 2.0,
            _ => {
                let magnitude = 2f64.powf(self.unit() * 7.0 - 4.0);
                if self.percent(50) { magnitude } else { -magnitude }
            }
        }
    }

    /// A number of the standard normal distribution, roughly: a sum of uniform ones.
    fn normal(&mut self) -> f64 {
        (0..6).map(|_| self.unit() - 0.5).sum::<f64>() * std::f64::consts::SQRT_2
    }

    /// Denormals, the largest numbers, and numbers where the dtype begins to skip.
    fn edge(&mut self, dtype: DType) -> f64 {
        let (tiny, denormal, large, whole) = match dtype.to_real() {
            DType::F16 => (6.103_515_625e-5, 5.960_464_477_539_063e-8, 65504.0, 2049.0),
            DType::BF16 => {
                (1.175_494_350_822_287_5e-38, 9.183_549_615_799_121e-41, 3.389_531_389_251_535_5e38, 257.0)
            }
            DType::F32 => {
                (f64::from(f32::MIN_POSITIVE), 1.401_298_464_324_817e-45, f64::from(f32::MAX), 16_777_217.0)
            }
            _ => (f64::MIN_POSITIVE, 5e-324, f64::MAX, 9_007_199_254_740_993.0),
        };
        let magnitude = *self.pick(&[tiny, denormal, denormal * 3.0, large, large / 2.0, whole, whole / 2.0]);
        if self.percent(50) { magnitude } else { -magnitude }
    }

    /// A complex number.
    pub fn complex(&mut self, numbers: Numbers) -> Complex64 {
        Complex64::new(self.float(numbers), self.float(numbers))
    }

    /// Elements of a tensor: a tensor holds all kinds of numbers, or tame ones, or one number everywhere.
    pub fn elements(&mut self, dtype: DType, count: usize, numbers: Numbers) -> Vec<Scalar> {
        let style = self.below(10);
        let fixed = self.element(dtype, numbers);
        (0..count)
            .map(|_| match style {
                0 => fixed,
                1 => Scalar::Int(self.range(0, 1)),
                2..=4 if dtype != DType::Bool => match dtype.is_floating() {
                    true if numbers == Numbers::Moderate => Scalar::Float(self.moderate()),
                    true => Scalar::Float(self.normal() * 2.0),
                    false => Scalar::Int(self.range(if dtype.is_signed() { -3 } else { 0 }, 5)),
                },
                _ => self.element(dtype, numbers),
            })
            .collect()
    }

    /// One of the favourites, if the dtype and the contract know it.
    fn favourite(&mut self, dtype: DType, numbers: Numbers) -> Option<Scalar> {
        let at = self.below(self.favourites.len());
        let x = *self.favourites.get(at)?;
        if dtype.is_floating() {
            let fits = match numbers {
                Numbers::Any => true,
                Numbers::Finite => x.is_finite(),
                Numbers::Moderate => x.abs() <= 8.0,
            };
            return fits.then_some(Scalar::Float(x));
        }
        let whole = x == x.trunc() && !dtype.is_complex() && (numbers != Numbers::Moderate || x.abs() <= 8.0);
        let bits = dtype.size() as u32 * 8;
        let (low, high) = match dtype.is_signed() {
            true => (-(2f64.powi(bits as i32 - 1)), 2f64.powi(bits as i32 - 1) - 1.0),
            false => (0.0, 2f64.powi(bits as i32) - 1.0),
        };
        (whole && low <= x && x <= high).then_some(Scalar::Int(x as i64))
    }

    fn element(&mut self, dtype: DType, numbers: Numbers) -> Scalar {
        if dtype == DType::Bool {
            return Scalar::Bool(self.percent(50));
        }
        if !self.favourites.is_empty()
            && self.percent(8)
            && let Some(x) = self.favourite(dtype, numbers)
        {
            return x;
        }
        if dtype.is_complex() {
            return Scalar::Complex(Complex64::new(
                self.float_of(numbers, dtype),
                self.float_of(numbers, dtype),
            ));
        }
        if dtype.is_floating() {
            return Scalar::Float(self.float_of(numbers, dtype));
        }
        let bits = dtype.size() as u32 * 8;
        let (low, high) = if dtype.is_signed() {
            (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits))
        } else {
            (0, (1 << bits) - 1)
        };
        Scalar::Int(match (numbers, self.below(10)) {
            (Numbers::Moderate, _) | (_, 0..=4) => self.range(if low < 0 { -5 } else { 0 }, 6),
            (_, 5) => low,
            (_, 6) => high,
            (_, 7) if dtype == DType::I64 => *self.pick(INT_EXTREMES),
            (_, 7) => *self.pick(&[low + 1, high - 1, high / 2 + 1, low / 2]),
            _ => low
                .wrapping_add((self.bits() as i64 & i64::MAX) % (high.wrapping_sub(low).max(1)))
                .clamp(low, high),
        })
    }

    /// A tensor of a dtype and sizes; dense, or seen through other strides.
    pub fn tensor(&mut self, dtype: DType, sizes: &[i64], numbers: Numbers) -> Result<Tensor> {
        let layout = self.layout(sizes)?;
        let reach = layout.sizes.iter().zip(&layout.strides).map(|(n, s)| (n - 1).max(0) * s).sum::<i64>();
        let count = layout.offset + reach as usize + 1;
        let elements = self.elements(dtype, count, numbers);
        let flat = dispatch_dtype!(dtype, T => {
            let elements: Vec<T> = elements.iter().map(|e| crate::tensor::Element::from_scalar(*e)).collect();
            Tensor::from_vec::<T>(&elements, &[count as i64])
        })?;
        flat.with_layout(layout)
    }

    /// Dense in most cases; else transposed, with steps, with an offset, or expanded.
    fn layout(&mut self, sizes: &[i64]) -> Result<Layout> {
        if sizes.is_empty() || self.percent(65) {
            return Layout::contiguous(sizes);
        }
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        if self.percent(60) {
            for n in (1..order.len()).rev() {
                order.swap(n, self.below(n + 1));
            }
        }
        let mut stride = if self.percent(30) { 2 } else { 1 };
        let expanded = if self.percent(30) { self.below(sizes.len()) } else { usize::MAX };
        let mut strides = vec![0; sizes.len()];
        for dim in order.into_iter().rev() {
            if dim == expanded {
                continue;
            }
            strides[dim] = stride;
            stride *= sizes[dim].max(1);
        }
        let offset = if self.percent(30) { self.below(4) } else { 0 };
        Layout::strided(sizes, &strides, offset)
    }
}
