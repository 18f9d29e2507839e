//! Prepared transforms: made once for a length, kept for the calls that follow.

use crate::diag::Result;
use crate::kernels::compute::Real;
use crate::resources::memory;
use num_complex::Complex;
use parking_lot::Mutex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftNum, FftPlanner};
use std::collections::VecDeque;
use std::sync::Arc;

/// The sign of the exponent: minus, or plus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// exp(-2πi jk / n)
    Forward,
    /// exp(+2πi jk / n), not divided by n
    Inverse,
}

/// Plans that are kept, of each kind.
const KEPT: usize = 16;
/// Those of longer lines are made for each call: what is kept has up to eight arrays as long as a line, and no run is charged for it.
const LONGEST: usize = 1 << 14;

/// Real numbers whose transforms are planned.
pub trait Planned: Real + FftNum {
    /// Of complex lines.
    fn complex(length: usize, direction: Direction) -> Result<Arc<dyn Fft<Self>>>;
    /// From real lines to the first half of complex ones, with minus in the exponent.
    fn forward(length: usize) -> Result<Arc<dyn RealToComplex<Self>>>;
    /// From the first half of complex lines to real ones, with plus in the exponent and not divided by their length.
    fn inverse(length: usize) -> Result<Arc<dyn ComplexToReal<Self>>>;
}

/// Plans by what they are for, the last used ones.
struct Kept<K, P: ?Sized>(Mutex<VecDeque<(K, Arc<P>)>>);

impl<K: Copy + PartialEq, P: ?Sized> Kept<K, P> {
    const fn new() -> Self {
        Kept(Mutex::new(VecDeque::new()))
    }

    /// The plan for `key`; made without the lock, so that others need not wait.
    fn get(&self, key: K, is_kept: bool, make: impl FnOnce() -> Arc<P>) -> Arc<P> {
        if is_kept {
            let mut kept = self.0.lock();
            if let Some(at) = kept.iter().position(|(of, _)| *of == key)
                && let Some(found) = kept.remove(at)
            {
                let plan = Arc::clone(&found.1);
                kept.push_back(found);
                return plan;
            }
        }
        let plan = make();
        if is_kept {
            let mut kept = self.0.lock();
            if kept.len() == KEPT {
                kept.pop_front();
            }
            kept.push_back((key, Arc::clone(&plan)));
        }
        plan
    }
}

/// What the library prepares grows with the length, up to several arrays of twice the length.
fn expect<R>(length: usize) -> Result<bool> {
    memory::expect::<Complex<R>>(length.saturating_mul(8))?;
    Ok(length <= LONGEST)
}

macro_rules! planned {
    ($R:ty) => {
        impl Planned for $R {
            fn complex(length: usize, direction: Direction) -> Result<Arc<dyn Fft<$R>>> {
                static KEPT: Kept<(usize, Direction), dyn Fft<$R>> = Kept::new();
                let is_kept = expect::<$R>(length)?;
                Ok(KEPT.get((length, direction), is_kept, || {
                    let mut planner = FftPlanner::new();
                    match direction {
                        Direction::Forward => planner.plan_fft_forward(length),
                        Direction::Inverse => planner.plan_fft_inverse(length),
                    }
                }))
            }

            fn forward(length: usize) -> Result<Arc<dyn RealToComplex<$R>>> {
                static KEPT: Kept<usize, dyn RealToComplex<$R>> = Kept::new();
                let is_kept = expect::<$R>(length)?;
                Ok(KEPT.get(length, is_kept, || RealFftPlanner::new().plan_fft_forward(length)))
            }

            fn inverse(length: usize) -> Result<Arc<dyn ComplexToReal<$R>>> {
                static KEPT: Kept<usize, dyn ComplexToReal<$R>> = Kept::new();
                let is_kept = expect::<$R>(length)?;
                Ok(KEPT.get(length, is_kept, || RealFftPlanner::new().plan_fft_inverse(length)))
            }
        }
    };
}
planned!(f32);
planned!(f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_plans_are_kept() {
        let first = f32::forward(24).expect("small");
        assert!(Arc::ptr_eq(&first, &f32::forward(24).expect("small")));
        for length in 100..100 + KEPT {
            f32::forward(length).expect("small");
        }
        assert!(!Arc::ptr_eq(&first, &f32::forward(24).expect("small")), "others took its place");
        let long = f64::complex(LONGEST + 1, Direction::Forward).expect("small");
        assert!(!Arc::ptr_eq(&long, &f64::complex(LONGEST + 1, Direction::Forward).expect("small")));
    }
}
