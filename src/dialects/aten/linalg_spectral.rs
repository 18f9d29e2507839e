//! Matrices taken apart by orthogonal factors: QR, singular values, eigenvalues, and what follows from them: norms,
//! ranks, pseudoinverses, least squares.

use super::linalg_factor::{expect_field, expect_matrix, expect_square, real_of, several};
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::trial;
use crate::dialects::{Args, OpDef, Outputs, composite, one, opaque};
use crate::kernels::create::range::not_implemented;
use crate::kernels::linalg::eigen::eigen;
use crate::kernels::linalg::hermitian::eigh;
use crate::kernels::linalg::singular::svd;
use crate::kernels::linalg::{Batch, Field, Mat, orthogonal, stack, stack_vectors, with_field};
use crate::kernels::wide::Wide;
use crate::resources::memory;
use crate::resources::{Scratch, budget};
use crate::tensor::view::transpose;
use crate::tensor::{DType, Tensor};

/// The rows.
#[rustfmt::skip] // texts of meanings stay unchanged
pub static OPS: &[OpDef] = &[
    opaque("aten::linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)", qr).outs("out", &["Q", "R"]).infer(trial::stand_ins),
    composite(
        "aten::qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
        "def qr(self: Tensor, some: bool=True) -> Tuple[Tensor, Tensor]:\n    \
         mode = 'complete'\n    if some:\n        mode = 'reduced'\n    \
         q, r = torch.linalg_qr(self, mode)\n    return q, r\n",
    ),
    opaque("aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)", geqrf).outs("a", &["a", "tau"]).infer(trial::stand_ins),
    opaque("aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor", householder_product).infer(trial::stand_ins).out("out"),
    opaque("aten::orgqr(Tensor self, Tensor input2) -> Tensor", householder_product).out("out").alias_of("linalg_householder_product"),
    opaque(
        "aten::ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
        ormqr,
    ).infer(trial::stand_ins).out("out"),
    opaque(
        "aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
        |a| several(singular(a.tensor(0)?, a.bool(1)?)?),
    ).outs("U", &["U", "S", "Vh"]).infer(trial::stand_ins),
    opaque(
        "aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
        |a| {
            let [u, s, vh] = singular(a.tensor(0)?, a.bool(1)?)?;
            if a.bool(2)? {
                return several([u, s, vh]);
            }
            several([Tensor::zeros(u.dtype(), &[0])?, s, Tensor::zeros(u.dtype(), &[0])?])
        },
    ),
    opaque("aten::linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", |a| one(singular(a.tensor(0)?, false)?[1].clone())).infer(trial::stand_ins)
        .out_exact("out"),
    composite(
        "aten::svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
        include_str!("composites/svd.py"),
    ).outs("U", &["U", "S", "V"]),
    opaque("aten::linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)", |a| {
        several(hermitian(a)?)
    }).outs("eigvals", &["eigvals", "eigvecs"]).infer(trial::stand_ins),
    opaque("aten::_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)", |a| {
        let [values, vectors] = hermitian(a)?;
        let vectors = if a.bool(2)? { vectors } else { Tensor::zeros(vectors.dtype(), &[0])? };
        several([values, vectors])
    }),
    opaque("aten::linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor", |a| one(hermitian(a)?[0].clone())).infer(trial::stand_ins).out_exact("out"),
    opaque("aten::linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", |a| several(general(a)?)).outs("out", &["eigenvalues", "eigenvectors"])
        .infer(trial::stand_ins),
    opaque("aten::linalg_eigvals(Tensor self) -> Tensor", |a| one(general(a)?[0].clone())).infer(trial::stand_ins)
        .out_exact("out"),
    opaque("aten::_linalg_eigvals(Tensor self) -> Tensor", |a| one(general(a)?[0].clone())).infer(trial::stand_ins),
    composite(
        "aten::linalg_matrix_sqrth(Tensor self) -> Tensor",
        "def linalg_matrix_sqrth(self: Tensor) -> Tensor:\n    \
         values, vectors = torch.linalg_eigh(self)\n    \
         roots = values.clamp_min(0.).sqrt().unsqueeze(-2)\n    \
         return torch.matmul(vectors * roots, vectors.mH)\n",
    ),
    composite(
        "aten::linalg_polar(Tensor A) -> (Tensor U, Tensor H)",
        include_str!("composites/linalg_polar.py"),
    ).outs("out", &["U", "H"]),
    composite(
        "aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
        PINV,
    ).out("atol_rtol_tensor_out"),
    composite(
        "aten::linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
        include_str!("composites/linalg_pinv_atol_rtol_float.py"),
    ).out("atol_rtol_float_out"),
    composite(
        "aten::linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
        "def linalg_pinv(self: Tensor, rcond: float, hermitian: bool=False) -> Tensor:\n    \
         return torch.linalg_pinv(self, atol=0., rtol=rcond, hermitian=hermitian)\n",
    ).out("out"),
    composite(
        "aten::linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
        "def linalg_pinv(self: Tensor, rcond: Tensor, hermitian: bool=False) -> Tensor:\n    \
         return torch.linalg_pinv(self, atol=torch.zeros_like(rcond), rtol=rcond, hermitian=hermitian)\n",
    ).out("out_rcond_tensor"),
    composite(
        "aten::pinverse(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor",
        "def pinverse(self: Tensor, rcond: float=1e-15) -> Tensor:\n    \
         return torch.linalg_pinv(self, rcond, False)\n",
    ),
    composite(
        "aten::linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
        MATRIX_RANK,
    ).out("atol_rtol_tensor_out"),
    composite(
        "aten::linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
        include_str!("composites/linalg_matrix_rank_atol_rtol_float.py"),
    ).out("atol_rtol_float_out"),
    composite(
        "aten::linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
        "def linalg_matrix_rank(self: Tensor, tol: float, hermitian: bool=False) -> Tensor:\n    \
         return torch.linalg_matrix_rank(self, atol=tol, rtol=0., hermitian=hermitian)\n",
    ).out("out"),
    composite(
        "aten::linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
        "def linalg_matrix_rank(input: Tensor, tol: Tensor, hermitian: bool=False) -> Tensor:\n    \
         return torch.linalg_matrix_rank(input, atol=tol, rtol=torch.zeros_like(tol), hermitian=hermitian)\n",
    ).out("out_tol_tensor"),
    opaque(
        "aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
        least_squares,
    ).outs("out", &["solution", "residuals", "rank", "singular_values"]).infer(trial::stand_ins),
    composite(
        "aten::linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        MATRIX_NORM,
    ).out("out"),
    composite(
        "aten::linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        MATRIX_NORM_NAMED,
    ).out("str_ord_out"),
    composite(
        "aten::linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        NORM,
    ).out("out"),
    composite(
        "aten::linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        include_str!("composites/linalg_norm_ord_str.py"),
    ).out("ord_str_out"),
    composite(
        "aten::nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
        "def nuclear_norm(self: Tensor, keepdim: bool=False) -> Tensor:\n    \
         return torch.linalg_matrix_norm(self, 'nuc', [-2, -1], keepdim)\n",
    ).out("out"),
    composite(
        "aten::nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
        "def nuclear_norm(self: Tensor, dim: List[int], keepdim: bool=False) -> Tensor:\n    \
         return torch.linalg_matrix_norm(self, 'nuc', dim, keepdim)\n",
    ).out("dim_out"),
    composite(
        "aten::linalg_cond(Tensor self, Scalar? p=None) -> Tensor",
        include_str!("composites/linalg_cond.py"),
    ).out("out"),
    composite(
        "aten::linalg_cond.p_str(Tensor self, str p) -> Tensor",
        include_str!("composites/linalg_cond_p_str.py"),
    ).out("p_str_out"),
    composite(
        "aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
        include_str!("composites/linalg_cross.py"),
    ).out_exact("out"),
    composite(
        "aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
        include_str!("composites/cross.py"),
    ).out_exact("out"),
];

const PINV: &str = include_str!("composites/linalg_pinv.py");

const MATRIX_RANK: &str = include_str!("composites/linalg_matrix_rank.py");

const MATRIX_NORM: &str = include_str!("composites/linalg_matrix_norm.py");

const MATRIX_NORM_NAMED: &str = include_str!("composites/matrix_norm_named.py");

const NORM: &str = include_str!("composites/linalg_norm.py");

fn qr(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, mode) = (a.tensor(0)?, a.str(1)?);
    expect_matrix("linalg.qr", tensor, "A")?;
    expect_field("linalg.qr", tensor, "geqrf_cpu")?;
    let dtype = tensor.dtype();
    with_field!(dtype, F => {
        let batch = Batch::<F>::new(tensor)?;
        let (m, n) = (batch.rows, batch.cols);
        let width = match mode {
            "reduced" | "r" => m.min(n),
            "complete" => m,
            other => {
                return Err(Diagnostic::runtime(format!(
                    "qr received unrecognized mode '{other}' but expected one of 'reduced' (default), 'r', or 'complete'"
                )));
            }
        };
        let factors: Vec<_> = batch.items.iter().map(orthogonal::qr).collect();
        let upper = |p: &Mat<F>| Mat::from_fn(width, n, |i, j| if i <= j { p[(i, j)] } else { F::ZERO });
        let r: Vec<Mat<F>> = factors.iter().map(|(p, _)| upper(p)).collect();
        let r = stack(&r, &batch.sizes, width, n, dtype)?;
        if mode == "r" {
            return several([Tensor::zeros(dtype, &[0])?, r]);
        }
        let q: Vec<Mat<F>> = factors.iter().map(|(p, t)| orthogonal::product(p, t, width)).collect();
        several([stack(&q, &batch.sizes, m, width, dtype)?, r])
    })
}

fn geqrf(a: &Args<'_>) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    expect_matrix("torch.geqrf", tensor, "input")?;
    let dtype = tensor.dtype();
    if !matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128) {
        return Err(not_implemented("geqrf_cpu", dtype));
    }
    with_field!(dtype, F => {
        let batch = Batch::<F>::new(tensor)?;
        let (packed, taus): (Vec<Mat<F>>, Vec<Vec<F>>) = batch.items.iter().map(orthogonal::qr).unzip();
        let taus = stack_vectors(&taus, &batch.sizes, batch.rows.min(batch.cols), dtype)?;
        several([stack(&packed, &batch.sizes, batch.rows, batch.cols, dtype)?, taus])
    })
}

/// The scales of the reflections, for each matrix of the batch.
fn taus_of<F: Field>(tensor: &Tensor) -> Result<(usize, Scratch<F>)> {
    let count = tensor.sizes().last().copied().unwrap_or(0);
    Ok((count.max(0) as usize, tensor.elements_as::<F>()?))
}

fn householder_product(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, tau) = (a.tensor(0)?, a.tensor(1)?);
    let fail = |text: &str| Err(Diagnostic::runtime(format!("torch.linalg.householder_product: {text}")));
    let sizes = tensor.sizes();
    let [batch @ .., m, n] = &sizes[..] else {
        return fail("input must have at least 2 dimensions.");
    };
    if m < n {
        return fail("input.shape[-2] must be greater than or equal to input.shape[-1]");
    }
    let tau_sizes = tau.sizes();
    if tau_sizes.last().is_none_or(|k| k > n) {
        return fail("input.shape[-1] must be greater than or equal to tau.shape[-1]");
    }
    if tau_sizes[..tau_sizes.len() - 1] != *batch {
        return fail("Expected batch dimensions of tau to be equal to input.shape[:-2]");
    }
    if tensor.dtype() != tau.dtype() {
        return fail("tau dtype does not match input dtype");
    }
    let dtype = tensor.dtype();
    expect_field("torch.linalg.householder_product", tensor, "householder_product_cpu")?;
    with_field!(dtype, F => {
        let (batch, (count, taus)) = (Batch::<F>::new(tensor)?, taus_of::<F>(tau)?);
        let own = |n: usize| &taus[n * count..(n + 1) * count];
        let items: Vec<Mat<F>> =
            batch.items.iter().enumerate().map(|(n, m)| orthogonal::product(m, own(n), batch.cols)).collect();
        one(stack(&items, &batch.sizes, batch.rows, batch.cols, dtype)?)
    })
}

/// Q C, Q^H C, C Q or C Q^H.
fn ormqr(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, tau, c, left, adjoint) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.bool(3)?, a.bool(4)?);
    let fail = |text: String| Err(Diagnostic::runtime(format!("torch.ormqr: {text}")));
    for (operand, name) in [(tensor, "input"), (c, "other")] {
        if operand.rank() < 2 {
            return fail(format!("{name} must have at least 2 dimensions."));
        }
    }
    let dtype = tensor.dtype();
    let (side, which) = if left { (c.sizes()[c.rank() - 2], -2) } else { (c.sizes()[c.rank() - 1], -1) };
    let [.., rows, columns] = tensor.sizes()[..] else {
        return fail("input must have at least 2 dimensions.".into());
    };
    if side != rows {
        return fail(format!("other.shape[{which}] must be equal to input.shape[-2]"));
    }
    if tau.sizes().last() != Some(&side.min(columns)) {
        return fail(format!("tau.shape[-1] must be equal to min(other.shape[{which}], input.shape[-1])"));
    }
    if tau.rank() + 1 != tensor.rank() {
        return fail(format!(
            "Expected tau to have one dimension less than input, but got tau.ndim equal to {} and input.ndim is equal to {}",
            tau.rank(),
            tensor.rank()
        ));
    }
    expect_field("torch.ormqr", tensor, "ormqr_cpu")?;
    if c.dtype() != dtype
        || tau.dtype() != dtype
        || c.sizes()[..c.rank() - 2] != tensor.sizes()[..tensor.rank() - 2]
    {
        return Err(Diagnostic::runtime(
            "torch.ormqr: input, tau and other must have the same dtype and the same batch dimensions",
        ));
    }
    with_field!(dtype, F => {
        let (batch, others) = (Batch::<F>::new(tensor)?, Batch::<F>::new(c)?);
        let (count, taus) = taus_of::<F>(tau)?;
        let turn = |(n, (m, c)): (usize, (&Mat<F>, &Mat<F>))| {
            let own = &taus[n * count..(n + 1) * count];
            // C Q = (Q^H C^H)^H.
            if left { orthogonal::apply(m, own, c, adjoint) } else { orthogonal::apply(m, own, &c.adjoint(), !adjoint).adjoint() }
        };
        let items: Vec<Mat<F>> = batch.items.iter().zip(&others.items).enumerate().map(turn).collect();
        one(stack(&items, &others.sizes, others.rows, others.cols, dtype)?)
    })
}

/// U, S and V^H.
fn singular(tensor: &Tensor, full: bool) -> Result<[Tensor; 3]> {
    expect_matrix("linalg.svd", tensor, "A")?;
    expect_field("linalg.svd", tensor, "linalg_svd_cpu")?;
    let dtype = tensor.dtype();
    with_field!(dtype, F => {
        let batch = Batch::<F>::new(tensor)?;
        if let Some(at) = batch.items.iter().position(|m| m.data.iter().any(|x| !x.size().is_finite())) {
            let shown = if batch.sizes.is_empty() { String::new() } else { format!("(Batch element {at}): ") };
            return Err(Diagnostic::runtime(format!(
                "linalg.svd: {shown}The algorithm failed to converge because the input matrix contained non-finite values."
            )));
        }
        let (m, n) = (batch.rows, batch.cols);
        let k = m.min(n);
        let (u_cols, v_cols) = if full { (m, n) } else { (k, k) };
        // Also where the matrix has no elements its factors may have.
        let factors = m.saturating_mul(u_cols).saturating_add(n.saturating_mul(v_cols));
        memory::expect::<F>(factors.saturating_mul(batch.items.len()))?;
        let parts: Vec<_> = batch.items.iter().map(|m| svd(m, full)).collect();
        let u: Vec<Mat<F>> = parts.iter().map(|p| p.u.clone()).collect();
        let s: Vec<Vec<f64>> = parts.iter().map(|p| p.s.clone()).collect();
        let vh: Vec<Mat<F>> = parts.iter().map(|p| p.v.adjoint()).collect();
        Ok([
            stack(&u, &batch.sizes, m, u_cols, dtype)?,
            stack_vectors(&s, &batch.sizes, k, real_of(dtype))?,
            stack(&vh, &batch.sizes, v_cols, n, dtype)?,
        ])
    })
}

/// Distance from 1 to the next number.
fn epsilon_of(dtype: DType) -> f64 {
    if matches!(dtype, DType::F32 | DType::C64) { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

/// Eigenvalues and eigenvectors of the triangle that the second argument names.
fn hermitian(a: &Args<'_>) -> Result<[Tensor; 2]> {
    let (tensor, triangle) = (a.tensor(0)?, a.str(1)?);
    expect_square("linalg.eigh", tensor, "A")?;
    let upper = match triangle {
        "L" | "l" => false,
        "U" | "u" => true,
        other => {
            return Err(Diagnostic::runtime(format!(
                "Expected UPLO argument to be 'L' or 'U', but got {other}"
            )));
        }
    };
    let dtype = tensor.dtype();
    if !matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128) {
        return Err(not_implemented("linalg_eigh_cpu", dtype));
    }
    with_field!(dtype, F => {
        let batch = Batch::<F>::new(tensor)?;
        let (values, vectors): (Vec<Vec<f64>>, Vec<Mat<F>>) =
            batch.items.iter().map(|m| eigh(m, upper, epsilon_of(dtype))).unzip();
        Ok([
            stack_vectors(&values, &batch.sizes, batch.rows, real_of(dtype))?,
            stack(&vectors, &batch.sizes, batch.rows, batch.rows, dtype)?,
        ])
    })
}

/// Eigenvalues and eigenvectors of matrices of any kind.
fn general(a: &Args<'_>) -> Result<[Tensor; 2]> {
    let (tensor, name) = (a.tensor(0)?, "linalg.eig");
    expect_square(name, tensor, "A")?;
    let dtype = tensor.dtype();
    match dtype {
        DType::F32 | DType::F64 | DType::C64 | DType::C128 => {}
        DType::F16 | DType::BF16 => return Err(not_implemented("linalg_eig_out_cpu", dtype)),
        _ => {
            return Err(Diagnostic::runtime(format!("Unknown Complex ScalarType for {}", dtype.type_name())));
        }
    }
    with_field!(dtype, F => {
        let batch = Batch::<F>::new(tensor)?;
        let finite = |m: &Mat<F>| m.data.iter().all(|x| x.complex().is_finite());
        if !batch.items.iter().all(finite) {
            return Err(Diagnostic::runtime(
                "torch.linalg.eig: input tensor should not contain infs or NaNs.",
            ));
        }
        let (mut values, mut columns) = (Vec::new(), Vec::new());
        for (at, matrix) in batch.items.iter().enumerate() {
            let Some(found) = eigen(matrix, epsilon_of(dtype)) else {
                budget::check()?;
                let place = if batch.sizes.is_empty() { String::new() } else { format!("(Batch element {at}): ") };
                return Err(Diagnostic::runtime(format!(
                    "{name}: {place}The algorithm failed to converge because the input matrix is ill-conditioned or \
                     has too many repeated eigenvalues (error code: {}).",
                    matrix.rows
                )));
            };
            values.push(found.values);
            columns.push(found.vectors.transpose());
        }
        let (n, complex) = (batch.rows, dtype.to_complex());
        // Column after column, as LAPACK leaves them.
        let vectors = stack(&columns, &batch.sizes, n, n, complex)?;
        Ok([stack_vectors(&values, &batch.sizes, n, complex)?, vectors.look(|layout| transpose(layout, -2, -1))?])
    })
}

/// Least squares of smallest norm.
fn least_squares(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, b) = (a.tensor(0)?, a.tensor(1)?);
    let name = "torch.linalg.lstsq";
    let fail = |text: String| Err(Diagnostic::runtime(format!("{name}: {text}")));
    if tensor.rank() < 2 {
        return fail("input must have at least 2 dimensions.".into());
    }
    if b.rank() < 1 {
        return fail("other must have at least 1 dimension.".into());
    }
    if tensor.dtype() != b.dtype() {
        return fail("Expected input and other to have the same dtype".into());
    }
    expect_field(name, tensor, "lstsq_cpu")?;
    let driver = a.opt_str(3)?.unwrap_or("gelsy");
    if !matches!(driver, "gels" | "gelsy" | "gelsd" | "gelss") {
        return fail(format!(
            "parameter `driver` should be one of (gels, gelsy, gelsd, gelss), but got {driver}"
        ));
    }
    let vector = b.rank() + 1 == tensor.rank() && b.sizes()[..] == tensor.sizes()[..tensor.rank() - 1];
    let mut sizes = b.sizes();
    if vector {
        sizes.push(1);
    }
    let right = b.reshaped(&sizes)?;
    if right.rank() < 2 || right.sizes()[right.rank() - 2] != tensor.sizes()[tensor.rank() - 2] {
        return fail("input.size(-2) should match other.size(-2)".into());
    }
    if right.sizes()[..right.rank() - 2] != tensor.sizes()[..tensor.rank() - 2] {
        return Err(Diagnostic::unsupported("linalg_lstsq of batches of different sizes"));
    }
    let dtype = tensor.dtype();
    let eps = epsilon_of(dtype);
    with_field!(dtype, F => {
        let (batch, others) = (Batch::<F>::new(tensor)?, Batch::<F>::new(&right)?);
        let all = |items: &[Mat<F>], good: fn(f64) -> bool| items.iter().all(|m| m.data.iter().all(|x| good(x.size())));
        if !all(&batch.items, f64::is_finite) || !all(&others.items, |x| !x.is_nan()) {
            return fail("input tensors should not contain infs or NaNs.".into());
        }
        let (m, n) = (batch.rows, batch.cols);
        let rcond = a.opt_float(2)?.unwrap_or(eps * m.max(n) as f64);
        let (mut xs, mut residuals, mut ranks, mut values) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (item, b) in batch.items.iter().zip(&others.items) {
            let (x, rank, s) = smallest_solution(item, b, rcond);
            let ax = item.times(&x);
            residuals.push((0..b.cols).map(|j| (0..m).map(|i| (ax[(i, j)] - b[(i, j)]).modulus().powi(2)).sum::<f64>()).collect::<Vec<f64>>());
            xs.push(x);
            ranks.push(rank as i64);
            values.push(s);
        }
        let real = real_of(dtype);
        let empty = |d: DType| Tensor::zeros(d, &[0]);
        let full = m > n && driver != "gelsy" && ranks.iter().all(|r| *r == n as i64);
        let mut x = stack(&xs, &batch.sizes, n, others.cols, dtype)?;
        if vector {
            let kept = x.sizes()[..x.rank() - 1].to_vec();
            x = x.reshaped(&kept)?;
        }
        let residual = if full { stack_vectors(&residuals, &batch.sizes, others.cols, real)? } else { empty(real)? };
        let rank = if driver == "gels" { empty(DType::I64)? } else { Tensor::from_vec(&ranks, &batch.sizes)? };
        let s = if matches!(driver, "gelsd" | "gelss") { stack_vectors(&values, &batch.sizes, m.min(n), real)? } else { empty(real)? };
        several([x, residual, rank, s])
    })
}

/// The shortest X that minimizes |A X - B|, the rank of A by `rcond`, and its singular values.
fn smallest_solution<F: Field>(a: &Mat<F>, b: &Mat<F>, rcond: f64) -> (Mat<F>, usize, Vec<f64>) {
    let parts = svd(a, false);
    let bound = parts.s.first().copied().unwrap_or(0.0) * rcond;
    let rank = parts.s.iter().filter(|s| **s > bound).count();
    let ub = parts.u.adjoint().times(b);
    let scaled =
        Mat::from_fn(
            parts.s.len(),
            b.cols,
            |i, j| if i < rank { ub[(i, j)] / F::of(parts.s[i]) } else { F::ZERO },
        );
    (parts.v.times(&scaled), rank, parts.s)
}
