//! The exponential of matrices: Taylor polynomials of degree 1 to 18 after halving the matrix often enough (Bader, Blanes,
//! Casas, "Computing the matrix exponential with an optimized Taylor polynomial approximation", 2019). Every product and
//! sum is rounded to the dtype in PyTorch's order, as large exponentials lose digits whose loss is part of the answer.

use super::linalg_factor::{expect_field, expect_square};
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::joins;
use crate::dialects::{Alias, OpDef, one, opaque};
use crate::kernels::compute::Number;
use crate::kernels::matrix::gemm::{Gemm, Matrix, Onto, matmul};
use crate::resources::{Scratch, memory};
use crate::tensor::{DType, Element, Scalar, Tensor};
use num_complex::Complex;

/// The rows.
pub static OPS: &[OpDef] =
    &[opaque("aten::linalg_matrix_exp(Tensor self) -> Tensor", |a| one(matrix_exp(a.tensor(0)?)?))
        .infer(joins::same_sizes)
        .out_exact("out")
        .aliases(&[Alias::new("matrix_exp").without_out()])];

fn matrix_exp(tensor: &Tensor) -> Result<Tensor> {
    expect_square("linalg.matrix_exp", tensor, "A")?;
    let (dtype, sizes) = (tensor.dtype(), tensor.sizes());
    if !dtype.is_floating() && !dtype.is_complex() {
        expect_field("linalg.matrix_exp", tensor, "")?;
    }
    if matches!(dtype, DType::F16 | DType::BF16) {
        return Err(Diagnostic::unsupported("linalg_matrix_exp of floats of 16 bits"));
    }
    fn all<T: Gemm>(tensor: &Tensor, n: usize, single: bool) -> Result<Tensor> {
        let elements = tensor.elements_as::<T>()?;
        let sizes = tensor.elements_as::<Complex<f64>>()?;
        let mut results = memory::reserved(elements.len())?;
        for (matrix, sizes) in elements.chunks(n * n).zip(sizes.chunks(n * n)) {
            let column = |j: usize| (0..n).map(|i| sizes[i * n + j].norm()).sum::<f64>();
            let norm =
                (0..n).map(column).fold(0.0, |most: f64, x| if x > most || x.is_nan() { x } else { most });
            results.extend(Square { n, single }.exponential(matrix, norm)?)?;
        }
        Tensor::from_vec(&results, &tensor.sizes())
    }
    if tensor.numel() == 0 {
        return tensor.copy();
    }
    let n = sizes[sizes.len() - 1] as usize;
    match dtype {
        DType::F32 => all::<f32>(tensor, n, true),
        DType::F64 => all::<f64>(tensor, n, false),
        DType::C64 => all::<Complex<f32>>(tensor, n, true),
        _ => all::<Complex<f64>>(tensor, n, false),
    }
}

/// Matrices of n by n elements.
#[derive(Clone, Copy)]
struct Square {
    n: usize,
    /// Computed in single precision.
    single: bool,
}

/// Norms up to which polynomials of degree 1, 2, 4, 8, 12 and 18 are as exact as the dtype.
const SINGLE: [f64; 6] = [
    1.192092800768788e-07,
    5.978858893805233e-04,
    5.116619363445086e-02,
    5.800524627688768e-01,
    1.461661507209034e+00,
    3.010066362817634e+00,
];
const DOUBLE: [f64; 6] = [
    2.220446049250313e-16,
    2.580956802971767e-08,
    3.397168839976962e-04,
    4.991228871115323e-02,
    2.996158913811580e-01,
    1.090863719290036e+00,
];

impl Square {
    fn exponential<T: Gemm>(self, a: &[T], norm: f64) -> Result<Scratch<T>> {
        let reach = if self.single { SINGLE } else { DOUBLE };
        if !norm.is_finite() {
            let nan = T::from_scalar(Scalar::Float(f64::NAN));
            return memory::filled(a.len(), nan);
        }
        match reach.iter().position(|most| norm <= *most) {
            Some(0) => self.combined(&[1.0, 1.0], &[&self.identity()?, a]),
            Some(1) => {
                let square = self.times(a, a)?;
                let half = self.combined(&[0.5], &[&square])?;
                self.combined(&[1.0, 1.0, 1.0], &[&self.identity()?, a, &half])
            }
            Some(2) => self.degree4(a),
            Some(3) => self.degree8(a),
            Some(4) => self.degree12(a),
            _ => {
                let halvings = (norm / reach[5]).log2().ceil().max(0.0) as i32;
                let scaled = self.combined(&[0.5f64.powi(halvings)], &[a])?;
                let mut result = self.degree18(&scaled)?;
                for _ in 0..halvings {
                    result = self.times(&result, &result)?;
                }
                Ok(result)
            }
        }
    }

    fn identity<T: Number>(self) -> Result<Scratch<T>> {
        let diagonal = |at: usize| if at.is_multiple_of(self.n + 1) { T::ONE } else { T::default() };
        memory::collected((0..self.n * self.n).map(diagonal))
    }

    fn times<T: Gemm>(self, a: &[T], b: &[T]) -> Result<Scratch<T>> {
        let n = self.n;
        let mut out = memory::filled(n * n, T::default())?;
        matmul(Matrix::dense(a, n, n), Matrix::dense(b, n, n), &mut out, n, Onto::Nothing)?;
        Ok(out)
    }

    /// A sum with factors, term after term.
    fn combined<T: Number + Element>(self, factors: &[f64], terms: &[&[T]]) -> Result<Scratch<T>> {
        let mut sum = memory::filled(self.n * self.n, T::default())?;
        for (factor, term) in factors.iter().zip(terms) {
            let factor = T::from_scalar(Scalar::Float(*factor));
            sum.iter_mut().zip(*term).for_each(|(s, t)| *s = s.plus(factor.times(*t)));
        }
        Ok(sum)
    }

    fn sum<T: Number + Element>(self, a: &[T], b: &[T]) -> Result<Scratch<T>> {
        memory::collected(a.iter().zip(b).map(|(a, b)| a.plus(*b)))
    }

    fn degree4<T: Gemm>(self, a: &[T]) -> Result<Scratch<T>> {
        let (i, a2) = (self.identity()?, self.times(a, a)?);
        let rest = self.times(&a2, &self.combined(&[1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0], &[&i, a, &a2])?)?;
        self.combined(&[1.0, 1.0, 0.0, 1.0], &[&i, a, &a2, &rest])
    }

    fn degree8<T: Gemm>(self, a: &[T]) -> Result<Scratch<T>> {
        // Constants are kept in the dtype of the matrix on the way.
        let kept = |x: f64| if self.single { f64::from(x as f32) } else { x };
        let root = kept(0.1330413469565007072504e+2);
        let x3 = kept(2.0 / 3.0);
        let x1 = kept(x3 * ((1.0 + root) / 88.0));
        let x2 = kept(x3 * ((1.0 + root) / 352.0));
        let x4 = kept((-271.0 + 29.0 * root) / (315.0 * x3));
        let x5 = kept((-11.0 + 11.0 * root) / (1260.0 * x3));
        let x6 = kept((-99.0 + 11.0 * root) / (5040.0 * x3));
        let x7 = kept((89.0 - root) / (5040.0 * x3 * x3));
        let y2 = kept((857.0 - 58.0 * root) / 630.0);
        let (i, a2) = (self.identity()?, self.times(a, a)?);
        let a4 = self.times(&a2, &self.combined(&[x1, x2], &[a, &a2])?)?;
        let left = self.combined(&[x3, 1.0], &[&a2, &a4])?;
        let a8 = self.times(&left, &self.combined(&[x4, x5, x6, x7], &[&i, a, &a2, &a4])?)?;
        self.combined(&[1.0, 1.0, y2, 0.0, 1.0], &[&i, a, &a2, &a4, &a8])
    }

    fn degree12<T: Gemm>(self, a: &[T]) -> Result<Scratch<T>> {
        const B: [[f64; 4]; 4] = [
            [9.0198e-16, 0.46932117595418237389, -0.20099424927047284052, -0.04623946134063071740],
            [5.31597895759871264183, 1.19926790417132231573, 0.01179296240992997031, 0.01108844528519167989],
            [0.18188869982170434744, 0.05502798439925399070, 0.09351590770535414968, 0.00610700528898058230],
            [-2.0861320e-13, -0.13181061013830184015, -0.02027855540589259079, -0.00675951846863086359],
        ];
        let (i, a2) = (self.identity()?, self.times(a, a)?);
        let a3 = self.times(a, &a2)?;
        let row = |n: usize| self.combined(&B[n], &[&i, a, &a2, &a3]);
        let b3 = row(3)?;
        let a6 = self.sum(&row(2)?, &self.times(&b3, &b3)?)?;
        self.sum(&row(0)?, &self.times(&self.sum(&row(1)?, &a6)?, &a6)?)
    }

    fn degree18<T: Gemm>(self, a: &[T]) -> Result<Scratch<T>> {
        const B: [[f64; 5]; 5] = [
            [0.0, -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04, 0.0],
            [
                0.0,
                3.97849749499645077844e-01,
                1.36783778460411720168e+00,
                4.98289622525382669416e-01,
                -6.37898194594723280150e-04,
            ],
            [
                -1.09676396052962061844e+01,
                1.68015813878906206114e+00,
                5.71779846478865511061e-02,
                -6.98210122488052056106e-03,
                3.34975017086070470649e-05,
            ],
            [
                -9.04316832390810593223e-02,
                -6.76404519071381882256e-02,
                6.75961301770459654925e-02,
                2.95552570429315521194e-02,
                -1.39180257516060693404e-05,
            ],
            [0.0, 0.0, -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05],
        ];
        let (i, a2) = (self.identity()?, self.times(a, a)?);
        let a3 = self.times(a, &a2)?;
        let a6 = self.times(&a3, &a3)?;
        let row = |n: usize| self.combined(&B[n], &[&i, a, &a2, &a3, &a6]);
        let a9 = self.sum(&row(3)?, &self.times(&row(0)?, &row(4)?)?)?;
        self.sum(&row(1)?, &self.times(&self.sum(&row(2)?, &a9)?, &a9)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Diagonal matrices have known exponentials, through every degree.
    #[test]
    fn diagonals() {
        for x in [1e-17f64, 1e-9, 1e-4, 0.02, 0.2, 0.9, 7.0] {
            let a = Tensor::from_vec(&[x, 0.0, 0.0, -x], &[2, 2]).expect("valid");
            let e = matrix_exp(&a).expect("square").to_vec::<f64>().expect("f64");
            for (got, wanted) in e.iter().zip([x.exp(), 0.0, 0.0, (-x).exp()]) {
                assert!((got - wanted).abs() < 1e-13 * x.exp(), "{x}: {e:?}");
            }
        }
    }
}
