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
        "def svd(self: Tensor, some: bool=True, compute_uv: bool=True) -> Tuple[Tensor, Tensor, Tensor]:\n    \
         if self.dim() < 2:\n        raise RuntimeError('linalg.svd: input should have at least 2 dimensions, but has {} dimensions instead'.format(self.dim()))\n    \
         u, s, vh = torch.linalg_svd(self, not some)\n    \
         if not compute_uv:\n        \
         m = self.size(-2)\n        n = self.size(-1)\n        batch = self.size()[:-2]\n        \
         return self.new_zeros(batch + [m, m]), s, self.new_zeros(batch + [n, n])\n    \
         return u, s, vh.mH\n",
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
        "def linalg_polar(A: Tensor) -> Tuple[Tensor, Tensor]:\n    \
         if A.dim() < 2:\n        raise RuntimeError('linalg.polar: The input tensor A must have at least 2 dimensions.')\n    \
         if A.size(-2) < A.size(-1):\n        \
         raise RuntimeError('linalg.polar: input must have at least as many rows as columns, but got {} by {} matrices'.format(A.size(-2), A.size(-1)))\n    \
         u, s, vh = torch.linalg_svd(A, False)\n    \
         return torch.matmul(u, vh), torch.matmul(vh.mH * s.unsqueeze(-2), vh)\n",
    ).outs("out", &["U", "H"]),
    composite(
        "aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
        PINV,
    ).out("atol_rtol_tensor_out"),
    composite(
        "aten::linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
        "def linalg_pinv(self: Tensor, *, atol: Optional[float]=None, rtol: Optional[float]=None, hermitian: bool=False) -> Tensor:\n    \
         a: Optional[Tensor] = None\n    r: Optional[Tensor] = None\n    \
         if atol is not None:\n        a = torch.full([], atol, dtype=torch.float64)\n    \
         if rtol is not None:\n        r = torch.full([], rtol, dtype=torch.float64)\n    \
         return torch.linalg_pinv(self, atol=a, rtol=r, hermitian=hermitian)\n",
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
        "def linalg_matrix_rank(self: Tensor, *, atol: Optional[float]=None, rtol: Optional[float]=None, hermitian: bool=False) -> Tensor:\n    \
         a: Optional[Tensor] = None\n    r: Optional[Tensor] = None\n    \
         if atol is not None:\n        a = torch.full([], atol, dtype=torch.float64)\n    \
         if rtol is not None:\n        r = torch.full([], rtol, dtype=torch.float64)\n    \
         return torch.linalg_matrix_rank(self, atol=a, rtol=r, hermitian=hermitian)\n",
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
        "def linalg_norm(self: Tensor, ord: str, dim: Optional[List[int]]=None, keepdim: bool=False, *, dtype: Optional[int]=None) -> Tensor:\n    \
         dims = [-2, -1]\n    \
         if dim is not None:\n        dims = dim\n    \
         else:\n        if self.dim() != 2:\n            \
         raise RuntimeError('linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.'.format(self.dim()))\n    \
         return torch.linalg_matrix_norm(self, ord, dims, keepdim, dtype=dtype)\n",
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
        "def linalg_cond(self: Tensor, p: Optional[number]=None) -> Tensor:\n    \
         if self.dim() < 2:\n        raise RuntimeError('linalg.cond: The input tensor must have at least 2 dimensions.')\n    \
         order = 2.\n    if p is not None:\n        order = float(p)\n    \
         if self.numel() == 0:\n        \
         return torch.zeros(self.size()[:-2], dtype=torch.linalg_vector_norm(self).dtype)\n    \
         if abs(order) == 2.:\n        \
         s = torch.linalg_svdvals(self)\n        \
         first = s.select(-1, 0)\n        last = s.select(-1, -1)\n        \
         if order < 0.:\n            return last / first\n        \
         return first / last\n    \
         inverse, info = torch.linalg_inv_ex(self)\n    \
         result = torch.linalg_matrix_norm(self, order) * torch.linalg_matrix_norm(inverse, order)\n    \
         return torch.where(info == 0, result, float('inf'))\n",
    ).out("out"),
    composite(
        "aten::linalg_cond.p_str(Tensor self, str p) -> Tensor",
        "def linalg_cond(self: Tensor, p: str) -> Tensor:\n    \
         if self.numel() == 0:\n        \
         return torch.zeros(self.size()[:-2], dtype=torch.linalg_vector_norm(self).dtype)\n    \
         if p == 'nuc':\n        \
         return torch.linalg_svdvals(self).sum(-1) * torch.linalg_svdvals(torch.linalg_inv(self)).sum(-1)\n    \
         inverse, info = torch.linalg_inv_ex(self)\n    \
         result = torch.linalg_matrix_norm(self, p) * torch.linalg_matrix_norm(inverse, p)\n    \
         return torch.where(info == 0, result, float('inf'))\n",
    ).out("p_str_out"),
    composite(
        "aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
        "def linalg_cross(self: Tensor, other: Tensor, *, dim: int=-1) -> Tensor:\n    \
         if self.dim() != other.dim():\n        raise RuntimeError('linalg.cross: inputs must have the same number of dimensions.')\n    \
         if self.size(dim) != 3 or other.size(dim) != 3:\n        \
         raise RuntimeError('linalg.cross: inputs dimension {} must have length 3. Got {} and {}'.format(dim, self.size(dim), other.size(dim)))\n    \
         a, b = torch.broadcast_tensors([self, other])\n    \
         if self.dtype == torch.bool:\n        raise NotImplementedError('\"cross\" not implemented for \\'Bool\\'')\n    \
         if self.dtype != other.dtype:\n        \
         raise RuntimeError('expected scalar type ' + torch.ops.prim.dtype_name(self.dtype) + ' but found ' + torch.ops.prim.dtype_name(other.dtype))\n    \
         return a.roll([-1], [dim]) * b.roll([-2], [dim]) - a.roll([-2], [dim]) * b.roll([-1], [dim])\n",
    ).out_exact("out"),
    composite(
        "aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
        "def cross(self: Tensor, other: Tensor, dim: Optional[int]=None) -> Tensor:\n    \
         if dim is not None:\n        return torch.linalg_cross(self, other, dim=dim)\n    \
         for d in range(self.dim()):\n        \
         if self.size(d) == 3:\n            return torch.linalg_cross(self, other, dim=d)\n    \
         raise RuntimeError('no dimension of size 3 in input')\n",
    ).out_exact("out"),
];

const PINV: &str = "
def linalg_pinv(self: Tensor, *, atol: Optional[Tensor]=None, rtol: Optional[Tensor]=None, hermitian: bool=False) -> Tensor:
    m = self.size(-2)
    n = self.size(-1)
    if self.numel() == 0:
        return self.new_empty(self.size()[:-2] + [n, m])
    eps = 2.220446049250313e-16
    if self.dtype == torch.float32 or self.dtype == torch.complex64:
        eps = 1.1920928955078125e-07
    a = torch.zeros([], dtype=torch.float64)
    r = torch.full([], eps * max(m, n), dtype=torch.float64)
    if atol is not None:
        a = atol
        if rtol is None:
            r = torch.where(a > 0., torch.zeros_like(r), r)
    if rtol is not None:
        r = rtol
    if hermitian:
        values, vectors = torch.linalg_eigh(self)
        sizes = values.abs()
        bound = torch.maximum(a.unsqueeze(-1).double(), r.unsqueeze(-1).double() * sizes.amax(-1, True).double())
        inverse = torch.where(sizes.double() > bound, values.reciprocal(), torch.zeros_like(values))
        return torch.matmul(vectors * inverse.unsqueeze(-2), vectors.mH)
    u, s, vh = torch.linalg_svd(self, False)
    bound = torch.maximum(a.unsqueeze(-1).double(), r.unsqueeze(-1).double() * s.narrow(-1, 0, 1).double())
    inverse = torch.where(s.double() > bound, s.reciprocal(), torch.zeros_like(s))
    return torch.matmul(vh.mH * inverse.unsqueeze(-2), u.mH)
";

const MATRIX_RANK: &str = "
def linalg_matrix_rank(input: Tensor, *, atol: Optional[Tensor]=None, rtol: Optional[Tensor]=None, hermitian: bool=False) -> Tensor:
    if input.dim() < 2:
        raise RuntimeError('torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.')
    eps = 2.220446049250313e-16
    if input.dtype == torch.float32 or input.dtype == torch.complex64:
        eps = 1.1920928955078125e-07
    a = torch.zeros([], dtype=torch.float64)
    r = torch.full([], eps * max(input.size(-2), input.size(-1)), dtype=torch.float64)
    if atol is not None:
        a = atol
        if rtol is None:
            r = torch.where(a > 0., torch.zeros_like(r), r)
    if rtol is not None:
        r = rtol
    if input.numel() == 0:
        return torch.zeros(input.size()[:-2], dtype=torch.int64)
    if hermitian:
        s = torch.linalg_eigvalsh(input).abs()
    else:
        s = torch.linalg_svdvals(input)
    bound = torch.maximum(a.double(), r.double() * s.amax(-1).double())
    return (s.double() > bound.unsqueeze(-1)).sum(-1)
";

const MATRIX_NORM: &str = "
def linalg_matrix_norm(self: Tensor, ord: number, dim: List[int]=[-2, -1], keepdim: bool=False, *, dtype: Optional[int]=None) -> Tensor:
    order = float(ord)
    if abs(order) != 2. and abs(order) != 1. and abs(order) != float('inf'):
        shown = str(order)
        if order == order and order == float(int(order)):
            shown = str(int(order))
        raise RuntimeError('linalg.matrix_norm: Order {} not supported.'.format(shown))
    if self.dim() < 2:
        raise RuntimeError('linalg.matrix_norm: The input tensor A must have at least 2 dimensions.')
    if len(dim) != 2:
        raise RuntimeError('linalg.matrix_norm: dim must be a 2-tuple. Got {}'.format(' '.join([str(d) for d in dim])))
    if not (self.is_floating_point() or self.is_complex()):
        torch.linalg_vector_norm(self, 2.)
    d0 = dim[0]
    d1 = dim[1]
    if d0 < 0:
        d0 = d0 + self.dim()
    if d1 < 0:
        d1 = d1 + self.dim()
    if d0 == d1:
        raise RuntimeError('linalg.matrix_norm: dims must be different. Got ({}, {})'.format(dim[0], dim[1]))
    if abs(order) == 2.:
        a = self
        if dtype is not None:
            a = self.to(dtype)
        s = torch.linalg_svdvals(a.movedim([d0, d1], [-2, -1]))
        if order > 0.:
            # Without elements the largest is 0.
            result = s.amax(-1) if s.size(-1) > 0 else s.sum(-1)
        else:
            result = s.amin(-1)
        if keepdim:
            result = result.unsqueeze(min(d0, d1)).unsqueeze(max(d0, d1))
        return result
    if abs(order) == 1.:
        summed = d0
        kept = d1
    else:
        summed = d1
        kept = d0
    norms = torch.linalg_vector_norm(self, 1., [summed], True, dtype=dtype)
    if order > 0.:
        result = norms.amax([kept], True) if norms.size(kept) > 0 else norms.sum([kept], True)
    else:
        result = norms.amin([kept], True)
    if not keepdim:
        result = result.squeeze([d0, d1])
    return result
";

const MATRIX_NORM_NAMED: &str = "
def linalg_matrix_norm(self: Tensor, ord: str='fro', dim: List[int]=[-2, -1], keepdim: bool=False, *, dtype: Optional[int]=None) -> Tensor:
    if ord != 'fro' and ord != 'nuc':
        raise RuntimeError('linalg.matrix_norm: Order {} not supported.'.format(ord))
    if self.dim() < 2:
        raise RuntimeError('linalg.matrix_norm: The input tensor A must have at least 2 dimensions.')
    if len(dim) != 2:
        raise RuntimeError('linalg.matrix_norm: dim must be a 2-tuple. Got {}'.format(' '.join([str(d) for d in dim])))
    if ord == 'fro':
        return torch.linalg_vector_norm(self, 2., dim, keepdim, dtype=dtype)
    d0 = dim[0]
    d1 = dim[1]
    if d0 < 0:
        d0 = d0 + self.dim()
    if d1 < 0:
        d1 = d1 + self.dim()
    a = self
    if dtype is not None:
        a = self.to(dtype)
    result = torch.linalg_svdvals(a.movedim([d0, d1], [-2, -1])).sum(-1)
    if keepdim:
        result = result.unsqueeze(min(d0, d1)).unsqueeze(max(d0, d1))
    return result
";

const NORM: &str = "
def linalg_norm(self: Tensor, ord: Optional[number]=None, dim: Optional[List[int]]=None, keepdim: bool=False, *, dtype: Optional[int]=None) -> Tensor:
    if ord is None:
        return torch.linalg_vector_norm(self, 2., dim, keepdim, dtype=dtype)
    if dim is not None:
        if len(dim) != 1 and len(dim) != 2:
            raise RuntimeError('linalg.norm: If dim is specified, it must be of length 1 or 2. Got {}'.format(dim))
        if len(dim) == 2:
            return torch.linalg_matrix_norm(self, ord, dim, keepdim, dtype=dtype)
        return torch.linalg_vector_norm(self, ord, dim, keepdim, dtype=dtype)
    if self.dim() != 1 and self.dim() != 2:
        raise RuntimeError('linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.'.format(self.dim()))
    if self.dim() == 2:
        return torch.linalg_matrix_norm(self, ord, [-2, -1], keepdim, dtype=dtype)
    return torch.linalg_vector_norm(self, ord, [0], keepdim, dtype=dtype)
";

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
