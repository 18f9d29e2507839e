//! Fourier transforms along one dimension of an array of complex numbers; always in float64.

pub mod layout;

use super::wide::store;
use crate::diag::{Diagnostic, Result};
use crate::resources::{Collect, Scratch, memory};
use crate::tensor::{DType, Tensor};
use num_complex::Complex64;
use rustfft::FftPlanner;

/// The sign of the exponent: minus, or plus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// exp(-2πi jk / n)
    Forward,
    /// exp(+2πi jk / n), not divided by n
    Inverse,
}

/// An array in row-major order.
pub struct Grid {
    sizes: Vec<i64>,
    data: Scratch<Complex64>,
}

impl Grid {
    /// The elements of a tensor.
    pub fn new(tensor: &Tensor) -> Result<Grid> {
        Ok(Grid { sizes: tensor.sizes().to_vec(), data: tensor.elements_as::<Complex64>()? })
    }

    /// As a complex tensor.
    pub fn tensor(&self, dtype: DType) -> Result<Tensor> {
        store::<Complex64>(&self.data, &self.sizes, dtype)
    }

    /// The real parts as a tensor.
    pub fn real_tensor(&self, dtype: DType) -> Result<Tensor> {
        let real = self.data.iter().map(|x| x.re).scratch()?;
        store::<f64>(&real, &self.sizes, dtype)
    }

    /// Multiplies by a number.
    pub fn scale(&mut self, factor: f64) {
        if factor != 1.0 {
            self.data.iter_mut().for_each(|x| *x *= factor);
        }
    }

    /// Cropped or filled up with zeros along a dimension.
    pub fn resized(&self, dim: usize, length: usize) -> Result<Grid> {
        self.map_lines(dim, length, length, |line| line)
    }

    /// Transforms `length` elements (cropped or filled up) along a dimension.
    pub fn complex_lines(&self, dim: usize, length: usize, direction: Direction) -> Result<Grid> {
        let plan = plan(length, direction)?;
        self.map_lines(dim, length, length, |mut line| {
            plan.process(&mut line);
            line
        })
    }

    /// The same of lines of real numbers: what is conjugated in them is so to the bit, and what is real has no other part.
    pub fn real_lines(&self, dim: usize, length: usize, direction: Direction) -> Result<Grid> {
        let plan = plan(length, direction)?;
        self.map_lines(dim, length, length, |mut line| {
            plan.process(&mut line);
            line[0].im = 0.0;
            for k in 1..=length / 2 {
                if 2 * k == length {
                    line[k].im = 0.0;
                } else {
                    line[length - k] = line[k].conj();
                }
            }
            line
        })
    }

    /// Transforms lines that are the first half of Hermitian ones of `length` elements: results are real. `Forward`
    /// takes them conjugated.
    pub fn hermitian_lines(&self, dim: usize, length: usize, direction: Direction) -> Result<Grid> {
        let plan = plan(length, Direction::Inverse)?;
        let half = length / 2 + 1;
        self.map_lines(dim, half, length, |line| {
            let mut whole = vec![Complex64::ZERO; length];
            for (k, x) in line.iter().enumerate() {
                let x = if direction == Direction::Forward { x.conj() } else { *x };
                let alone = k == 0 || 2 * k == length;
                whole[k] = if alone { Complex64::new(x.re, 0.0) } else { x };
                if !alone {
                    whole[length - k] = x.conj();
                }
            }
            plan.process(&mut whole);
            whole
        })
    }

    /// Applies `f` to each line along a dimension, given `taken` elements of it (zeros where there are fewer); it gives
    /// `given` elements.
    fn map_lines(
        &self,
        dim: usize,
        taken: usize,
        given: usize,
        mut f: impl FnMut(Vec<Complex64>) -> Vec<Complex64>,
    ) -> Result<Grid> {
        let size = self.sizes[dim] as usize;
        let inner = self.sizes[dim + 1..].iter().product::<i64>() as usize;
        let outer = self.sizes[..dim].iter().product::<i64>() as usize;
        let mut sizes = self.sizes.clone();
        sizes[dim] = given as i64;
        // Proves that the result can be stored.
        let whole = Tensor::zeros(DType::C128, &sizes)?.numel();
        let mut data = memory::filled(whole, Complex64::ZERO)?;
        for o in 0..outer {
            for i in 0..inner {
                let mut line = vec![Complex64::ZERO; taken];
                for (k, place) in line.iter_mut().take(size).enumerate() {
                    *place = self.data[(o * size + k) * inner + i];
                }
                for (k, x) in f(line).into_iter().enumerate() {
                    data.get_mut((o * given + k) * inner + i)
                        .map(|slot| *slot = x)
                        .ok_or_else(|| Diagnostic::internal("a transformed line is too long"))?;
                }
            }
        }
        Ok(Grid { sizes, data })
    }
}

/// The transform of a length. What the library prepares grows with it, up to several arrays of twice the length.
fn plan(length: usize, direction: Direction) -> Result<std::sync::Arc<dyn rustfft::Fft<f64>>> {
    memory::expect::<Complex64>(length.saturating_mul(8))?;
    let mut planner = FftPlanner::<f64>::new();
    Ok(match direction {
        Direction::Forward => planner.plan_fft_forward(length),
        Direction::Inverse => planner.plan_fft_inverse(length),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_of_real_lines_are_hermitian_to_the_bit() {
        for length in [1usize, 2, 5, 12, 100, 257] {
            let line: Vec<f64> = (0..length).map(|k| (k as f64 * 1.7).sin()).collect();
            let grid = Grid::new(&Tensor::from_vec(&line, &[length as i64]).expect("small")).expect("small");
            for direction in [Direction::Forward, Direction::Inverse] {
                let exact = grid.real_lines(0, length, direction).expect("small").data;
                let plain = grid.complex_lines(0, length, direction).expect("small").data;
                for k in 0..length {
                    assert!(exact[k] == exact[(length - k) % length].conj(), "{length}: {k}");
                    assert!((exact[k] - plain[k]).norm() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn hermitian_lines_undo_real_transforms() {
        let t = Tensor::from_vec(&[1.0f64, 2.0, 4.0, -3.0, 0.5], &[5]).expect("small");
        let spectrum =
            Grid::new(&t).expect("reads").complex_lines(0, 5, Direction::Forward).expect("transforms");
        let half = spectrum.resized(0, 3).expect("crops");
        let mut back = half.hermitian_lines(0, 5, Direction::Inverse).expect("transforms");
        back.scale(0.2);
        let back = back.real_tensor(DType::F64).expect("stores").to_vec::<f64>().expect("f64");
        let want = t.to_vec::<f64>().expect("f64");
        assert!(back.iter().zip(&want).all(|(x, y)| (x - y).abs() < 1e-12));
    }
}
