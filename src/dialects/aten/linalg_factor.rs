//! Matrices factored and solved: LU, Cholesky, LDL, triangles, determinants, inverses, powers.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::trial;
use crate::dialects::{Args, OpDef, Outputs, composite, one, opaque};
use crate::kernels::create::range::not_implemented;
use crate::kernels::linalg::factor::{Lu, cholesky, lu, permutation};
use crate::kernels::linalg::indefinite;
use crate::kernels::linalg::indefinite::ldl;
use crate::kernels::linalg::solve::{Triangle, triangular, with_lu, with_lu_adjoint};
use crate::kernels::linalg::{Batch, Field, Mat, stack, stack_vectors, with_field};
use crate::kernels::strided::row_major;
use crate::kernels::wide::{Wide, store};
use crate::tensor::{DType, Dims, Tensor, broadcast_sizes};
use crate::value::Value;
use smallvec::SmallVec;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque("aten::linalg_det(Tensor A) -> Tensor", |a| one(determinant(a, "linalg.det")?.0)).infer(trial::stand_ins).out_exact("out"),
    opaque("aten::det(Tensor self) -> Tensor", |a| one(determinant(a, "linalg.det")?.0)).alias_of("linalg_det"),
    opaque("aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", |a| {
        let (result, packed, pivots) = determinant(a, "linalg.det")?;
        several([result, packed, pivots])
    }),
    opaque("aten::linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", |a| {
        let [sign, log, ..] = sign_and_log(a)?;
        several([sign, log])
    }).outs("out", &["sign", "logabsdet"]).infer(trial::stand_ins),
    opaque("aten::slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", |a| {
        let [sign, log, ..] = sign_and_log(a)?;
        several([sign, log])
    }),
    opaque("aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)", |a| {
        several(sign_and_log(a)?)
    }),
    composite(
        "aten::logdet(Tensor self) -> Tensor",
        "def logdet(self: Tensor) -> Tensor:\n    \
         sign, log = torch.linalg_slogdet(self)\n    \
         if self.is_complex():\n        return torch.log(sign) + log\n    \
         return torch.where(sign == -1., float('nan'), log)\n",
    ),
    opaque("aten::linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", |a| {
        let [packed, pivots, info] = lu_factor(a, "torch.lu_factor", a.bool(1)?)?;
        check_lu(&info)?;
        several([packed, pivots])
    }).outs("out", &["LU", "pivots"]).infer(trial::stand_ins),
    opaque(
        "aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
        |a| {
            let [packed, pivots, info] = lu_factor(a, "torch.lu_factor", a.bool(1)?)?;
            if a.bool(2)? {
                check_lu(&info)?;
            }
            several([packed, pivots, info])
        },
    ).outs("out", &["LU", "pivots", "info"]),
    opaque(
        "aten::_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
        |a| {
            let [packed, pivots, info] = lu_factor(a, "torch.lu_factor", a.bool(1)?)?;
            // Whether errors are checked PyTorch takes and does not read.
            several([packed, pivots, info])
        },
    ),
    composite(
        "aten::linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
        "def linalg_lu(A: Tensor, *, pivot: bool=True) -> Tuple[Tensor, Tensor, Tensor]:\n    \
         if A.dim() < 2:\n        \
         raise RuntimeError('linalg.lu: Expected tensor with 2 or more dimensions. Got size: {} instead'.format(A.size()))\n    \
         lu, pivots, info = torch.linalg_lu_factor_ex(A, pivot=pivot)\n    \
         p, l, u = torch.lu_unpack(lu, pivots, True, pivot)\n    \
         return p, l, u\n",
    ).outs("out", &["P", "L", "U"]),
    opaque(
        "aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
        lu_unpack,
    ).outs("out", &["P", "L", "U"]).infer(trial::stand_ins),
    opaque(
        "aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
        |a| one(lu_solve(a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.bool(3)?, a.bool(4)?)?),
    )
    .out("out"),
    opaque("aten::lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", |a| {
        one(lu_solve(a.tensor(1)?, a.tensor(2)?, a.tensor(0)?, true, false)?)
    })
    .out("out"),
    opaque("aten::linalg_inv(Tensor A) -> Tensor", |a| {
        let (inverse, info) = inverse(a)?;
        check_inverse(&info)?;
        one(inverse)
    })
    .out_exact("out"),
    opaque("aten::inverse(Tensor self) -> Tensor", |a| {
        let (inverse, info) = inverse(a)?;
        check_inverse(&info)?;
        one(inverse)
    })
    .out_exact("out").alias_of("linalg_inv"),
    opaque("aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", |a| {
        let (inverse, info) = inverse(a)?;
        if a.bool(1)? {
            check_inverse(&info)?;
        }
        several([inverse, info])
    }).outs("inverse", &["inverse", "info"]).infer(trial::stand_ins),
    opaque("aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", |a| {
        let [x, _, _, info] = solve(a, a.bool(2)?)?;
        check_solve(&info)?;
        one(x)
    })
    .out_exact("out"),
    opaque(
        "aten::linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
        |a| {
            let [x, _, _, info] = solve(a, a.bool(2)?)?;
            if a.bool(3)? {
                check_solve(&info)?;
            }
            several([x, info])
        },
    ).outs("out", &["result", "info"]),
    opaque(
        "aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
        |a| {
            let parts = solve(a, a.bool(2)?)?;
            if a.bool(3)? {
                check_solve(&parts[3])?;
            }
            several(parts)
        },
    ),
    opaque(
        "aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
        |a| {
            let shape = Triangle { upper: a.bool(2)?, unit: a.bool(4)? };
            one(solve_triangular("linalg.solve_triangular", a.tensor(0)?, a.tensor(1)?, shape, a.bool(3)?)?)
        },
    )
    .out("out"),
    composite(
        "aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
        include_str!("composites/triangular_solve.py"),
    ).outs("X", &["X", "M"]),
    opaque("aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", |a| {
        let (l, info) = cholesky_factor(a)?;
        check_cholesky(&info)?;
        one(l)
    })
    .out_exact("out"),
    opaque(
        "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
        |a| {
            let (l, info) = cholesky_factor(a)?;
            if a.bool(2)? {
                check_cholesky(&info)?;
            }
            several([l, info])
        },
    ).outs("L", &["L", "info"]).infer(trial::stand_ins),
    opaque("aten::cholesky(Tensor self, bool upper=False) -> Tensor", |a| {
        let (l, info) = cholesky_factor(a)?;
        check_cholesky(&info)?;
        one(l)
    })
    .out("out"),
    composite(
        "aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
        "def cholesky_solve(self: Tensor, input2: Tensor, upper: bool=False) -> Tensor:\n    \
         l = input2\n    \
         if upper:\n        l = input2.mH\n    \
         y = torch.linalg_solve_triangular(l, self, upper=False)\n    \
         return torch.linalg_solve_triangular(l.mH, y, upper=True)\n",
    )
    .out("out"),
    composite(
        "aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
        include_str!("composites/cholesky_inverse.py"),
    )
    .out("out"),
    opaque("aten::linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)", |a| {
        let [packed, pivots, _] = ldl_factor(a)?;
        several([packed, pivots])
    }).outs("out", &["LD", "pivots"]).infer(trial::stand_ins),
    opaque(
        "aten::linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)",
        |a| several(ldl_factor(a)?),
    ).outs("out", &["LD", "pivots", "info"]).infer(trial::stand_ins),
    opaque("aten::linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor", ldl_solve)
        .out("out"),
    composite("aten::linalg_matrix_power(Tensor self, int n) -> Tensor", MATRIX_POWER).out_exact("out"),
    composite(
        "aten::matrix_power(Tensor self, int n) -> Tensor",
        "def matrix_power(self: Tensor, n: int) -> Tensor:\n    return torch.linalg_matrix_power(self, n)\n",
    )
    .out("out").alias_of("linalg_matrix_power"),
    composite(
        "aten::linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
        include_str!("composites/linalg_tensorinv.py"),
    )
    .out("out"),
    composite(
        "aten::linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
        include_str!("composites/linalg_tensorsolve.py"),
    )
    .out("out"),
];

const MATRIX_POWER: &str = include_str!("composites/linalg_matrix_power.py");

/// Several tensors as results.
pub fn several<const N: usize>(tensors: [Tensor; N]) -> Result<Outputs> {
    Ok(tensors.into_iter().map(Value::Tensor).collect::<SmallVec<_>>())
}

/// Fails unless the tensor is at least of rank 2.
pub fn expect_matrix(name: &str, tensor: &Tensor, what: &str) -> Result<()> {
    if tensor.rank() < 2 {
        return Err(Diagnostic::runtime(format!(
            "{name}: The input tensor {what} must have at least 2 dimensions."
        )));
    }
    Ok(())
}

/// Fails unless the tensor holds square matrices.
pub fn expect_square(name: &str, tensor: &Tensor, what: &str) -> Result<()> {
    expect_matrix(name, tensor, what)?;
    if let [.., rows, cols] = tensor.sizes()[..]
        && rows != cols
    {
        return Err(Diagnostic::runtime(format!(
            "{name}: {what} must be batches of square matrices, but they are {rows} by {cols} matrices"
        )));
    }
    Ok(())
}

/// Fails unless the dtype is a floating or complex one; floats of 16 bits are refused as by `kernel`, or, where that is
/// empty, as low precision.
pub fn expect_field(name: &str, tensor: &Tensor, kernel: &str) -> Result<()> {
    let dtype = tensor.dtype();
    let refuse = |text: String| Err(Diagnostic::raised("NotImplementedError", text));
    if !dtype.is_floating() && !dtype.is_complex() {
        return refuse(format!(
            "{name}: Expected a floating point or complex tensor as input. Got {}",
            dtype.type_name()
        ));
    }
    if matches!(dtype, DType::F16 | DType::BF16) {
        if kernel.is_empty() {
            return refuse(format!("{name}: Low precision dtypes not supported. Got {}", dtype.type_name()));
        }
        return Err(not_implemented(kernel, dtype));
    }
    Ok(())
}

/// The real dtype of the same width.
pub fn real_of(dtype: DType) -> DType {
    match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        other => other,
    }
}

/// Raises for the first factorization that failed; `text` says how from its number.
fn check(info: &Tensor, api: &str, text: impl Fn(i64) -> String) -> Result<()> {
    let infos = info.elements_as::<i64>()?;
    let Some(at) = infos.iter().position(|i| *i != 0) else { return Ok(()) };
    let batch = if info.rank() == 0 { String::new() } else { format!("(Batch element {at}): ") };
    Err(Diagnostic::runtime(format!("{api}: {batch}{}", text(infos[at]))))
}

fn check_lu(info: &Tensor) -> Result<()> {
    check(info, "torch.linalg.lu_factor", |i| {
        format!(
            "U[{i},{i}] is zero and using it on lu_solve would result in a division by zero. If you still want to \
             perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )
    })
}

fn check_inverse(info: &Tensor) -> Result<()> {
    check(info, "linalg.inv", |i| {
        format!(
            "The diagonal element {i} is zero, the inversion could not be completed because the input matrix is singular."
        )
    })
}

fn check_solve(info: &Tensor) -> Result<()> {
    check(info, "torch.linalg.solve", |_| {
        "The solver failed because the input matrix is singular.".to_string()
    })
}

fn check_cholesky(info: &Tensor) -> Result<()> {
    check(info, "linalg.cholesky", |i| {
        format!(
            "The factorization could not be completed because the input is not positive-definite (the leading minor of \
             order {i} is not positive-definite)."
        )
    })
}

fn factored<F: Field>(batch: &Batch<F>, pivot: bool) -> Vec<Lu<F>> {
    batch.items.iter().map(|m| lu(m, pivot)).collect()
}

/// Packed factors, pivots (int32) and infos (int32) as tensors.
fn lu_tensors<F: Field>(batch: &Batch<F>, factors: &[Lu<F>], dtype: DType) -> Result<[Tensor; 3]> {
    let packed: Vec<Mat<F>> = factors.iter().map(|f| f.packed.clone()).collect();
    let pivots: Vec<Vec<i64>> = factors.iter().map(|f| f.pivots.clone()).collect();
    let infos: Vec<i64> = factors.iter().map(|f| f.info).collect();
    Ok([
        stack(&packed, &batch.sizes, batch.rows, batch.cols, dtype)?,
        stack_vectors(&pivots, &batch.sizes, batch.rows.min(batch.cols), DType::I32)?,
        store::<i64>(&infos, &batch.sizes, DType::I32)?,
    ])
}

fn lu_factor(a: &Args<'_>, name: &str, pivot: bool) -> Result<[Tensor; 3]> {
    let tensor = a.tensor(0)?;
    if tensor.rank() < 2 {
        return Err(Diagnostic::runtime(format!(
            "{name}: Expected tensor with 2 or more dimensions. Got size: {:?} instead",
            tensor.sizes().as_slice()
        )));
    }
    if !matches!(tensor.dtype(), DType::F32 | DType::F64 | DType::C64 | DType::C128) {
        return Err(not_implemented("lu_cpu", tensor.dtype()));
    }
    with_field!(tensor.dtype(), F => {
        let batch = Batch::<F>::new(tensor)?;
        lu_tensors(&batch, &factored(&batch, pivot), tensor.dtype())
    })
}

/// The product of a factorization's diagonal with its sign.
fn determinant(a: &Args<'_>, name: &str) -> Result<(Tensor, Tensor, Tensor)> {
    let tensor = a.tensor(0)?;
    expect_square(name, tensor, "A")?;
    expect_field(name, tensor, "lu_cpu")?;
    with_field!(tensor.dtype(), F => {
        let batch = Batch::<F>::new(tensor)?;
        let factors = factored(&batch, true);
        let values: Vec<F> = factors
            .iter()
            .map(|f| (0..batch.rows).fold(F::of(f.sign()), |x, i| x * f.packed[(i, i)]))
            .collect();
        let [packed, pivots, _] = lu_tensors(&batch, &factors, tensor.dtype())?;
        Ok((store::<F>(&values, &batch.sizes, tensor.dtype())?, packed, pivots))
    })
}

/// Sign (or phase) of the determinant, and the logarithm of its absolute value.
fn sign_and_log(a: &Args<'_>) -> Result<[Tensor; 4]> {
    let tensor = a.tensor(0)?;
    expect_square("linalg.slogdet", tensor, "A")?;
    expect_field("linalg.slogdet", tensor, "")?;
    let dtype = tensor.dtype();
    with_field!(dtype, F => {
        let batch = Batch::<F>::new(tensor)?;
        let factors = factored(&batch, true);
        let (mut signs, mut logs) = (Vec::new(), Vec::new());
        for f in &factors {
            let (mut sign, mut log) = (F::of(f.sign()), 0.0f64);
            for i in 0..batch.rows {
                let x = f.packed[(i, i)];
                log += x.modulus().ln();
                // As in PyTorch what is not a number has no sign.
                let none = x.modulus() == 0.0 || x.modulus().is_nan();
                sign = if none { F::ZERO } else { sign * (x / F::of(x.modulus())) };
            }
            signs.push(sign);
            logs.push(log);
        }
        let [packed, pivots, _] = lu_tensors(&batch, &factors, dtype)?;
        let sign = store::<F>(&signs, &batch.sizes, dtype)?;
        Ok([sign, store::<f64>(&logs, &batch.sizes, real_of(dtype))?, packed, pivots])
    })
}

fn lu_unpack(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, pivots) = (a.tensor(0)?, a.tensor(1)?);
    if a.bool(3)? && pivots.dtype() != DType::I32 {
        return Err(Diagnostic::runtime(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this \
             function is intended to be used with the output produced by torch.linalg.lu_factor",
        ));
    }
    expect_matrix("torch.lu_unpack", tensor, "LU_data")?;
    let dtype = tensor.dtype();
    with_field!(dtype, F => {
        let batch = Batch::<F>::new(tensor)?;
        let (m, n) = (batch.rows, batch.cols);
        let k = m.min(n);
        let mut parts = [Tensor::zeros(dtype, &[0])?, Tensor::zeros(dtype, &[0])?, Tensor::zeros(dtype, &[0])?];
        if a.bool(3)? {
            let (given, wanted) = (pivots.sizes(), [&batch.sizes[..], &[k as i64]].concat());
            if given.as_slice() != wanted {
                let message = format!("Expected LU_pivots to have shape {wanted:?} but got {given:?} instead.");
                return Err(Diagnostic::raised("ValueError", message));
            }
            let rows = pivots.elements_as::<i64>()?;
            if rows.iter().any(|p| !(1..=m as i64).contains(p)) {
                return Err(Diagnostic::runtime(
                    "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the \
                     result of lu_factor?",
                ));
            }
            let orders = rows.chunks(k.max(1)).map(|p| permutation(p, m));
            let mut items: Vec<Mat<F>> = orders
                .map(|order| Mat::from_fn(m, m, |i, j| if order[j] == i { F::ONE } else { F::ZERO }))
                .collect();
            if k == 0 {
                items = batch.items.iter().map(|_| Mat::identity(m, m)).collect();
            }
            parts[0] = row_major(stack(&items, &batch.sizes, m, m, dtype)?)?;
        }
        if a.bool(2)? {
            let lower = |x: &Mat<F>| {
                Mat::from_fn(m, k, |i, j| if i == j { F::ONE } else if i > j { x[(i, j)] } else { F::ZERO })
            };
            let upper = |x: &Mat<F>| Mat::from_fn(k, n, |i, j| if i <= j { x[(i, j)] } else { F::ZERO });
            let l: Vec<Mat<F>> = batch.items.iter().map(lower).collect();
            let u: Vec<Mat<F>> = batch.items.iter().map(upper).collect();
            parts[1] = row_major(stack(&l, &batch.sizes, m, k, dtype)?)?;
            parts[2] = row_major(stack(&u, &batch.sizes, k, n, dtype)?)?;
        }
        several(parts)
    })
}

/// The batches of two operands of a product or solution, broadcast.
fn common_batch(x: &Tensor, y: &Tensor) -> Result<Dims> {
    let (x, y) = (x.sizes(), y.sizes());
    broadcast_sizes(&x[..x.len() - 2], &y[..y.len() - 2])
}

fn incompatible(name: &str, x: &Tensor, y: &Tensor, left: bool) -> Result<()> {
    let (x, y) = (x.sizes(), y.sizes());
    let ([.., m, n], [.., p, q]) = (&x[..], &y[..]) else { return Ok(()) };
    let fits = if left { n == p } else { n == q };
    if fits {
        return Ok(());
    }
    let equation = if left { "AX = B" } else { "XA = B" };
    Err(Diagnostic::runtime(format!(
        "{name}: Incompatible shapes of A and B for the equation {equation} ({m}x{n} and {p}x{q})"
    )))
}

fn same_dtype(name: &str, (x, x_name): (&Tensor, &str), (y, y_name): (&Tensor, &str)) -> Result<()> {
    if x.dtype() != y.dtype() {
        return Err(Diagnostic::runtime(format!(
            "{name}: Expected {x_name} and {y_name} to have the same dtype, but found {x_name} of type {} and {y_name} of \
             type {} instead",
            x.dtype().type_name(),
            y.dtype().type_name()
        )));
    }
    Ok(())
}

fn lu_solve(packed: &Tensor, pivots: &Tensor, b: &Tensor, left: bool, adjoint: bool) -> Result<Tensor> {
    let name = "linalg.lu_solve";
    expect_square(name, packed, "LU")?;
    expect_matrix(name, b, "B")?;
    expect_field(name, packed, "")?;
    same_dtype(name, (packed, "LU"), (b, "B"))?;
    incompatible(name, packed, b, left)?;
    let sizes = common_batch(packed, b)?;
    let dtype = packed.dtype();
    let mut pivot_sizes = sizes.clone();
    pivot_sizes.push(packed.sizes()[packed.rank() - 1]);
    let rows = pivots.broadcast_to(&pivot_sizes)?.elements_as::<i64>()?;
    with_field!(dtype, F => {
        let (factors, right) = (Batch::<F>::broadcast(packed, &sizes)?, Batch::<F>::broadcast(b, &sizes)?);
        let n = factors.rows;
        let outside = match rows.iter().find(|p| !(1..=n as i64).contains(*p)) {
            Some(pivot) if *pivot < 1 => Some("greater or equal to 1"),
            Some(_) => Some("smaller or equal to LU.size(-2)"),
            None => None,
        };
        if let Some(bound) = outside {
            return Err(Diagnostic::runtime(format!(
                "Pivots given to lu_solve must all be {bound}. Did you properly pass the result of lu_factor?"
            )));
        }
        let mut items = Vec::with_capacity(right.items.len());
        for (at, (m, b)) in factors.items.into_iter().zip(&right.items).enumerate() {
            let lu = Lu { packed: m, pivots: rows[at * n..(at + 1) * n].to_vec(), info: 0 };
            // X A = B is A^H X^H = B^H.
            items.push(match (left, adjoint) {
                (true, false) => with_lu(&lu, b),
                (true, true) => with_lu_adjoint(&lu, b),
                (false, false) => with_lu_adjoint(&lu, &b.adjoint()).adjoint(),
                (false, true) => with_lu(&lu, &b.adjoint()).adjoint(),
            });
        }
        stack(&items, &sizes, right.rows, right.cols, dtype)
    })
}

/// The inverse and the infos.
fn inverse(a: &Args<'_>) -> Result<(Tensor, Tensor)> {
    let tensor = a.tensor(0)?;
    expect_square("linalg.inv", tensor, "A")?;
    expect_field("linalg.inv", tensor, "")?;
    let dtype = tensor.dtype();
    with_field!(dtype, F => {
        let batch = Batch::<F>::new(tensor)?;
        let one = Mat::identity(batch.rows, batch.rows);
        let factors = factored(&batch, true);
        let items: Vec<Mat<F>> = factors.iter().map(|f| with_lu(f, &one)).collect();
        let infos: Vec<i64> = factors.iter().map(|f| f.info).collect();
        Ok((stack(&items, &batch.sizes, batch.rows, batch.rows, dtype)?, store::<i64>(&infos, &batch.sizes, DType::I32)?))
    })
}

/// Whether B is a (batch of) vectors for the square A.
fn is_vector(a: &Tensor, b: &Tensor) -> bool {
    b.rank() == 1 || (b.rank() + 1 == a.rank() && b.sizes()[..] == a.sizes()[..a.rank() - 1])
}

/// The solution, the factors, the pivots and the infos.
fn solve(a: &Args<'_>, left: bool) -> Result<[Tensor; 4]> {
    let (m, b) = (a.tensor(0)?, a.tensor(1)?);
    let name = "linalg.solve";
    if m.dtype().is_floating() {
        same_dtype(name, (m, "A"), (b, "B"))?;
    }
    expect_field(name, m, "")?;
    same_dtype(name, (m, "A"), (b, "B"))?;
    expect_square(name, m, "A")?;
    let vector = is_vector(m, b);
    if vector && !left {
        return Err(Diagnostic::runtime(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case \
             linalg.solve is equivalent to B / A.squeeze(-1)",
        ));
    }
    let mut sizes = b.sizes();
    if vector {
        sizes.push(1);
    }
    let right = b.reshaped(&sizes)?;
    expect_matrix(name, &right, "B")?;
    incompatible(name, m, &right, left)?;
    let batch = common_batch(m, &right)?;
    let dtype = m.dtype();
    with_field!(dtype, F => {
        let own = Batch::<F>::new(m)?;
        let own_factors = factored(&own, true);
        let [packed, pivots, info] = lu_tensors(&own, &own_factors, dtype)?;
        let (factors, right) = (factored(&Batch::<F>::broadcast(m, &batch)?, true), Batch::<F>::broadcast(&right, &batch)?);
        let solve = |f: &Lu<F>, b: &Mat<F>| {
            if left { with_lu(f, b) } else { with_lu_adjoint(f, &b.adjoint()).adjoint() }
        };
        let items: Vec<Mat<F>> = factors.iter().zip(&right.items).map(|(f, b)| solve(f, b)).collect();
        let mut x = stack(&items, &batch, right.rows, right.cols, dtype)?;
        if vector {
            let kept = x.sizes()[..x.rank() - 1].to_vec();
            x = x.reshaped(&kept)?;
        }
        Ok([x, packed, pivots, info])
    })
}

fn solve_triangular(name: &str, t: &Tensor, b: &Tensor, shape: Triangle, left: bool) -> Result<Tensor> {
    expect_square(name, t, "A")?;
    expect_matrix(name, b, "B")?;
    incompatible(name, t, b, left)?;
    // PyTorch reads the memory of B as if it had the dtype of A.
    same_dtype(name, (t, "A"), (b, "B"))?;
    expect_field(name, t, "triangular_solve_cpu")?;
    let (sizes, dtype) = (common_batch(t, b)?, t.dtype());
    with_field!(dtype, F => {
        let (factors, right) = (Batch::<F>::broadcast(t, &sizes)?, Batch::<F>::broadcast(b, &sizes)?);
        let solve = |(t, b): (&Mat<F>, &Mat<F>)| {
            if left {
                let mut x = b.clone();
                triangular(t, &mut x, shape);
                return x;
            }
            let mut x = b.transpose();
            triangular(&t.transpose(), &mut x, Triangle { upper: !shape.upper, unit: shape.unit });
            x.transpose()
        };
        let items: Vec<Mat<F>> = factors.items.iter().zip(&right.items).map(solve).collect();
        stack(&items, &sizes, right.rows, right.cols, dtype)
    })
}

/// The factor of the triangle that `upper` (the second argument) names, and the infos.
fn cholesky_factor(a: &Args<'_>) -> Result<(Tensor, Tensor)> {
    let (tensor, upper) = (a.tensor(0)?, a.bool(1)?);
    expect_square("linalg.cholesky", tensor, "A")?;
    expect_field("linalg.cholesky", tensor, "cholesky_cpu")?;
    let dtype = tensor.dtype();
    with_field!(dtype, F => {
        let batch = Batch::<F>::new(tensor)?;
        let factor = |m: &Mat<F>| {
            let (l, info) = if upper { cholesky(&m.adjoint()) } else { cholesky(m) };
            (if upper { l.adjoint() } else { l }, info)
        };
        let (items, infos): (Vec<Mat<F>>, Vec<i64>) = batch.items.iter().map(factor).unzip();
        Ok((stack(&items, &batch.sizes, batch.rows, batch.rows, dtype)?, store::<i64>(&infos, &batch.sizes, DType::I32)?))
    })
}

fn ldl_factor(a: &Args<'_>) -> Result<[Tensor; 3]> {
    let (tensor, hermitian) = (a.tensor(0)?, a.bool(1)?);
    let name = "torch.linalg.ldl_factor_ex";
    expect_square(name, tensor, "A")?;
    expect_field(name, tensor, "ldl_factor_kernel_cpu")?;
    let dtype = tensor.dtype();
    let single = matches!(dtype, DType::F32 | DType::C64);
    with_field!(dtype, F => {
        let batch = Batch::<F>::new(tensor)?;
        let factors: Vec<_> = batch.items.iter().map(|m| ldl(m, hermitian, single)).collect();
        let packed: Vec<Mat<F>> = factors.iter().map(|f| f.packed.clone()).collect();
        let pivots: Vec<Vec<i64>> = factors.iter().map(|f| f.pivots.clone()).collect();
        let infos: Vec<i64> = factors.iter().map(|f| f.info).collect();
        Ok([
            stack(&packed, &batch.sizes, batch.rows, batch.rows, dtype)?,
            stack_vectors(&pivots, &batch.sizes, batch.rows, DType::I32)?,
            store::<i64>(&infos, &batch.sizes, DType::I32)?,
        ])
    })
}

fn ldl_solve(a: &Args<'_>) -> Result<Outputs> {
    let (packed, pivots, b, hermitian) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.bool(3)?);
    let name = "torch.linalg.ldl_solve";
    expect_square(name, packed, "LD")?;
    expect_matrix(name, b, "B")?;
    expect_field(name, packed, "ldl_solve_kernel_cpu")?;
    same_dtype(name, (packed, "LD"), (b, "B"))?;
    incompatible(name, packed, b, true)?;
    let (sizes, dtype) = (common_batch(packed, b)?, packed.dtype());
    let mut pivot_sizes = sizes.clone();
    pivot_sizes.push(packed.sizes()[packed.rank() - 1]);
    let rows = pivots.broadcast_to(&pivot_sizes)?.elements_as::<i64>()?;
    with_field!(dtype, F => {
        let (factors, right) = (Batch::<F>::broadcast(packed, &sizes)?, Batch::<F>::broadcast(b, &sizes)?);
        let n = factors.rows;
        if rows.iter().any(|p| p.unsigned_abs() as usize > n) {
            return Err(Diagnostic::runtime(
                "Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). Did you properly pass the result of \
                 ldl_factor?",
            ));
        }
        let solve = |(at, (m, b)): (usize, (&Mat<F>, &Mat<F>))| {
            indefinite::solve(m, &rows[at * n..(at + 1) * n], b, hermitian)
        };
        let items: Vec<Mat<F>> = factors.items.iter().zip(&right.items).enumerate().map(solve).collect();
        one(stack(&items, &sizes, right.rows, right.cols, dtype)?)
    })
}
