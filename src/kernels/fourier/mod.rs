//! Fourier transforms of the lines of a tensor along one dimension, in the precision of its elements. What is transformed lies
//! innermost in the result. Knows no op.

pub mod layout;
mod plans;

use crate::diag::{Diagnostic, Result};
use crate::kernels::compute::{Dense, build_whole};
use crate::resources::{memory, pool};
use crate::tensor::{Element, Tensor, view};
use num_complex::Complex;
pub use plans::{Direction, Planned};

/// Elements that one piece of work transforms, at least.
const PIECE: usize = 1 << 13;

/// One transform along a dimension.
#[derive(Clone, Copy, Debug)]
pub struct Along<R> {
    /// The dimension.
    pub dim: usize,
    /// Elements that are transformed: lines are cropped to as many, or filled up with zeros.
    pub length: usize,
    /// The sign of the exponent.
    pub direction: Direction,
    /// What results are multiplied by.
    pub factor: R,
}

impl<R: Planned> Along<R>
where
    Complex<R>: Element,
{
    /// Transforms lines of complex numbers.
    pub fn complex(&self, tensor: &Tensor) -> Result<Tensor> {
        let plan = R::complex(self.length, self.direction)?;
        lines(tensor, self.dim, self.length, |source: &Lines<'_, Complex<R>>, out| {
            let mut scratch = memory::filled(plan.get_inplace_scratch_len(), Complex::default())?;
            for (line, out) in source.iter().zip(out.chunks_exact_mut(self.length)) {
                fill(out, line);
            }
            plan.process_with_scratch(out, &mut scratch);
            self.scale(out);
            Ok(())
        })
    }

    /// Transforms lines of real numbers; of the results, which are conjugates of each other, the first half: `length / 2 + 1`.
    pub fn half(&self, tensor: &Tensor) -> Result<Tensor> {
        self.real(tensor, self.length / 2 + 1)
    }

    /// Transforms lines of real numbers: what is conjugated in the results is so to the bit, and what is real has no other part.
    pub fn whole(&self, tensor: &Tensor) -> Result<Tensor> {
        self.real(tensor, self.length)
    }

    fn real(&self, tensor: &Tensor, given: usize) -> Result<Tensor> {
        let (plan, half) = (R::forward(self.length)?, self.length / 2 + 1);
        lines(tensor, self.dim, given, |source: &Lines<'_, R>, out: &mut [Complex<R>]| {
            let mut scratch = memory::filled(plan.get_scratch_len(), Complex::default())?;
            let mut input = memory::filled(self.length, R::ZERO)?;
            for (line, out) in source.iter().zip(out.chunks_exact_mut(given)) {
                fill(&mut input, line);
                plan.process_with_scratch(&mut input, &mut out[..half], &mut scratch).map_err(refused)?;
                if self.direction == Direction::Inverse {
                    out[..half].iter_mut().for_each(|x| *x = x.conj());
                }
                for k in half..given {
                    out[k] = out[self.length - k].conj();
                }
            }
            self.scale(out);
            Ok(())
        })
    }

    /// Transforms lines that are the first half of Hermitian ones: results are real. `Forward` takes them conjugated.
    pub fn hermitian(&self, tensor: &Tensor) -> Result<Tensor> {
        let (plan, half) = (R::inverse(self.length)?, self.length / 2 + 1);
        lines(tensor, self.dim, self.length, |source: &Lines<'_, Complex<R>>, out: &mut [R]| {
            let mut scratch = memory::filled(plan.get_scratch_len(), Complex::default())?;
            let mut input = memory::filled(half, Complex::default())?;
            for (line, out) in source.iter().zip(out.chunks_exact_mut(self.length)) {
                fill(&mut input, line);
                if self.direction == Direction::Forward {
                    input.iter_mut().for_each(|x| *x = x.conj());
                }
                // Elements that stand for themselves are real.
                input[0].im = R::ZERO;
                if self.length.is_multiple_of(2) {
                    input[half - 1].im = R::ZERO;
                }
                plan.process_with_scratch(&mut input, out, &mut scratch).map_err(refused)?;
                if self.factor != R::ONE {
                    out.iter_mut().for_each(|x| *x *= self.factor);
                }
            }
            Ok(())
        })
    }

    fn scale(&self, out: &mut [Complex<R>]) {
        if self.factor != R::ONE {
            out.iter_mut().for_each(|x| *x = Complex::new(x.re * self.factor, x.im * self.factor));
        }
    }
}

/// Sizes that a plan does not fit, which were computed from it.
fn refused(error: realfft::FftError) -> Diagnostic {
    Diagnostic::internal(format!("a transform of other sizes than planned: {error}"))
}

/// Lines, one after the other.
struct Lines<'a, X> {
    elements: &'a [X],
    length: usize,
    count: usize,
}

impl<'a, X> Lines<'a, X> {
    fn iter(&self) -> impl Iterator<Item = &'a [X]> {
        let (elements, length) = (self.elements, self.length);
        (0..self.count).map(move |n| &elements[n * length..(n + 1) * length])
    }
}

/// A line cropped or filled up with zeros.
fn fill<X: Copy + Default>(out: &mut [X], line: &[X]) {
    let kept = line.len().min(out.len());
    out[..kept].copy_from_slice(&line[..kept]);
    out[kept..].fill(X::default());
}

/// What becomes of lines along a dimension: `given` elements each, which lie side by side. `work` is given some of the lines and
/// the room of their results; several threads do it.
fn lines<X: Element, Y: Element>(
    tensor: &Tensor,
    dim: usize,
    given: usize,
    work: impl Fn(&Lines<'_, X>, &mut [Y]) -> Result<()> + Sync,
) -> Result<Tensor> {
    let last = tensor.rank() - 1;
    let moved = tensor.look(|l| view::movedim(l, &[dim as i64], &[last as i64]))?;
    let mut sizes = moved.sizes();
    let length = sizes[last] as usize;
    sizes[last] = given as i64;
    let source = Dense::<X>::new(&moved)?;
    let source = source.open()?;
    let result = build_whole::<Y>(&sizes, Y::DTYPE, |out| {
        let each = (PIECE / given.max(length).max(1)).max(1);
        pool::try_chunks(out, given * each, |n, out| {
            let count = out.len() / given;
            let elements = &source[n * each * length..(n * each + count) * length];
            work(&Lines { elements, length, count }, out)
        })
    })?;
    result.look(|l| view::movedim(l, &[last as i64], &[dim as i64]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::{Complex32, Complex64};

    fn along<R: Planned>(dim: usize, length: usize, direction: Direction) -> Along<R> {
        Along { dim, length, direction, factor: R::ONE }
    }

    /// The sums that define a transform.
    fn exact(line: &[Complex64], length: usize, direction: Direction) -> Vec<Complex64> {
        let sign = if direction == Direction::Forward { -1.0 } else { 1.0 };
        let turn = sign * 2.0 * std::f64::consts::PI / length as f64;
        let term = |k: usize, j: usize| Complex64::cis(turn * ((j * k) % length) as f64);
        let kept = || line.iter().take(length).enumerate();
        (0..length).map(|k| kept().map(|(j, x)| x * term(k, j)).sum()).collect()
    }

    #[test]
    fn lines_are_the_sums_that_define_them() {
        for (length, direction) in [
            (1, Direction::Forward),
            (5, Direction::Inverse),
            (8, Direction::Forward),
            (257, Direction::Forward),
        ] {
            // Lines of seven along the first dimension: cropped, or filled up.
            let values: Vec<Complex64> =
                (0..21).map(|n| Complex64::new((n as f64 * 1.7).sin(), (n as f64 * 0.3).cos())).collect();
            let tensor = Tensor::from_vec(&values, &[7, 3]).expect("small");
            let found = along::<f64>(0, length, direction).complex(&tensor).expect("transforms");
            let single = tensor.to_dtype(crate::tensor::DType::C64).expect("complex");
            let short = along::<f32>(0, length, direction).complex(&single).expect("transforms");
            assert_eq!(found.sizes().as_slice(), [length as i64, 3]);
            let found = found.to_vec::<Complex64>().expect("complex");
            let short = short.to_vec::<Complex32>().expect("complex");
            for column in 0..3 {
                let line: Vec<Complex64> = (0..7).map(|row| values[row * 3 + column]).collect();
                for (k, want) in exact(&line, length, direction).into_iter().enumerate() {
                    assert!((found[k * 3 + column] - want).norm() < 1e-12, "{length}: {k}");
                    let short = short[k * 3 + column];
                    assert!((Complex64::new(short.re.into(), short.im.into()) - want).norm() < 1e-5);
                }
            }
        }
    }

    #[test]
    fn transforms_of_real_lines_are_hermitian_to_the_bit() {
        for length in [1usize, 2, 5, 12, 100, 257] {
            let line: Vec<f64> = (0..length).map(|k| (k as f64 * 1.7).sin()).collect();
            let tensor = Tensor::from_vec(&line, &[length as i64]).expect("small");
            let wide: Vec<Complex64> = line.iter().map(|x| Complex64::new(*x, 0.0)).collect();
            for direction in [Direction::Forward, Direction::Inverse] {
                let along = along::<f64>(0, length, direction);
                let whole = along.whole(&tensor).expect("small").to_vec::<Complex64>().expect("complex");
                let half = along.half(&tensor).expect("small").to_vec::<Complex64>().expect("complex");
                assert_eq!(half, whole[..length / 2 + 1]);
                for (k, want) in exact(&wide, length, direction).into_iter().enumerate() {
                    assert!(whole[k] == whole[(length - k) % length].conj(), "{length}: {k}");
                    assert!((whole[k] - want).norm() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn hermitian_lines_undo_real_transforms() {
        for length in [1usize, 2, 5, 12, 100, 257] {
            let line: Vec<f64> = (0..3 * length).map(|k| (k as f64 * 1.7).sin()).collect();
            let tensor = Tensor::from_vec(&line, &[3, length as i64]).expect("small");
            let half = along::<f64>(1, length, Direction::Forward).half(&tensor).expect("transforms");
            let back = Along { factor: 1.0 / length as f64, ..along(1, length, Direction::Inverse) };
            let back = back.hermitian(&half).expect("transforms").to_vec::<f64>().expect("f64");
            assert!(back.iter().zip(&line).all(|(x, y)| (x - y).abs() < 1e-12), "{length}");
        }
    }

    #[test]
    fn lines_on_several_threads_and_no_lines_at_all() {
        let values: Vec<f32> = (0..40 * 1000).map(|n| (n % 13) as f32).collect();
        let tensor = Tensor::from_vec(&values, &[40, 1000]).expect("small");
        let along = along::<f32>(1, 1000, Direction::Forward);
        let all = along.half(&tensor).expect("transforms").to_vec::<Complex32>().expect("complex");
        let row = Tensor::from_vec(&values[39_000..], &[1, 1000]).expect("small");
        let row = along.half(&row).expect("transforms").to_vec::<Complex32>().expect("complex");
        assert_eq!(all[39 * 501..], row[..]);
        let none = Tensor::from_vec::<f32>(&[], &[0, 1000]).expect("empty");
        assert_eq!(along.half(&none).expect("transforms").sizes().as_slice(), [0, 501]);
    }
}
