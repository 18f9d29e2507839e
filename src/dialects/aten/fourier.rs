//! Discrete Fourier transforms: complex, real and Hermitian, over one or several dimensions, and over short windows.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::layers;
use crate::dialects::{Args, OpDef, Outputs, composite, one, opaque};
use crate::kernels::fourier::{Along, Direction, Planned, layout};
use crate::kernels::strided::with_strides;
use crate::tensor::view::{dense_like, wrap_dims};
use crate::tensor::{DType, Dims, Element, Tensor};
use num_complex::Complex;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque("aten::fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |a| {
        single(a, Kind::Fft)
    })
    .infer(layers::complex_transform)
    .out("out"),
    opaque("aten::fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |a| {
        single(a, Kind::Inverse)
    })
    .infer(layers::complex_transform)
    .out("out"),
    opaque("aten::fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |a| {
        single(a, Kind::Real)
    })
    .infer(layers::half_transform)
    .out("out"),
    opaque("aten::fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |a| {
        single(a, Kind::InverseReal)
    })
    .infer(layers::real_transform)
    .out("out"),
    opaque("aten::fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |a| {
        single(a, Kind::Hermitian)
    })
    .infer(layers::real_transform)
    .out("out"),
    opaque("aten::fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |a| {
        single(a, Kind::InverseHermitian)
    })
    .infer(layers::half_transform)
    .out("out"),
    opaque(
        "aten::fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        |a| many(a, Kind::Fft),
    )
    .infer(layers::complex_transform)
    .out("out"),
    opaque(
        "aten::fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        |a| many(a, Kind::Inverse),
    )
    .infer(layers::complex_transform)
    .out("out"),
    opaque(
        "aten::fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        |a| many(a, Kind::Real),
    )
    .infer(layers::half_transform)
    .out("out"),
    opaque(
        "aten::fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        |a| many(a, Kind::InverseReal),
    )
    .infer(layers::real_transform)
    .out("out"),
    opaque(
        "aten::fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        |a| many(a, Kind::Hermitian),
    )
    .infer(layers::real_transform)
    .out("out"),
    opaque(
        "aten::fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        |a| many(a, Kind::InverseHermitian),
    )
    .infer(layers::half_transform)
    .out("out"),
    opaque(
        "aten::fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        |a| many(a, Kind::Fft),
    )
    .infer(layers::complex_transform)
    .out("out"),
    opaque(
        "aten::fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        |a| many(a, Kind::Inverse),
    )
    .infer(layers::complex_transform)
    .out("out"),
    opaque(
        "aten::fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        |a| many(a, Kind::Real),
    )
    .infer(layers::half_transform)
    .out("out"),
    opaque(
        "aten::fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        |a| many(a, Kind::InverseReal),
    )
    .infer(layers::real_transform)
    .out("out"),
    opaque(
        "aten::fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        |a| many(a, Kind::Hermitian),
    )
    .infer(layers::real_transform)
    .out("out"),
    opaque(
        "aten::fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        |a| many(a, Kind::InverseHermitian),
    )
    .infer(layers::half_transform)
    .out("out"),
    composite(
        "aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
        REAL_TO_COMPLEX,
    )
    .out("out"),
    composite(
        "aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
        COMPLEX_TO_REAL,
    )
    .out("out"),
    composite(
        "aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
        COMPLEX_TO_COMPLEX,
    )
    .out("out"),
    composite("aten::fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", SHIFT),
    composite("aten::fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", UNSHIFT),
    composite(
        "aten::fft_fftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        include_str!("composites/fft_fftfreq.py"),
    ),
    composite(
        "aten::fft_rfftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        include_str!("composites/fft_rfftfreq.py"),
    ),
    composite(
        "aten::stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
        STFT,
    ),
    composite(
        "aten::stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
        STFT_CENTER,
    ),
    composite(
        "aten::istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor",
        ISTFT,
    ),
];

/// Normalization counts: 0 none, 1 by the root of the number of elements, 2 by the number.
const REAL_TO_COMPLEX: &str = "
def _fft_r2c(self: Tensor, dim: List[int], normalization: int, onesided: bool) -> Tensor:
    norm = ['backward', 'ortho', 'forward'][normalization]
    if onesided:
        return torch.fft_rfftn(self, None, dim, norm)
    return torch.fft_fftn(self, None, dim, norm)
";

const COMPLEX_TO_REAL: &str = "
def _fft_c2r(self: Tensor, dim: List[int], normalization: int, last_dim_size: int) -> Tensor:
    sizes = [self.size(d) for d in dim]
    sizes[-1] = last_dim_size
    return torch.fft_irfftn(self, sizes, dim, ['forward', 'ortho', 'backward'][normalization])
";

const COMPLEX_TO_COMPLEX: &str = "
def _fft_c2c(self: Tensor, dim: List[int], normalization: int, forward: bool) -> Tensor:
    if forward:
        return torch.fft_fftn(self, None, dim, ['backward', 'ortho', 'forward'][normalization])
    return torch.fft_ifftn(self, None, dim, ['forward', 'ortho', 'backward'][normalization])
";

const SHIFT: &str = include_str!("composites/fft_fftshift.py");

const UNSHIFT: &str = include_str!("composites/fft_ifftshift.py");

const STFT: &str = include_str!("composites/stft.py");

const STFT_CENTER: &str = include_str!("composites/stft_center.py");

const ISTFT: &str = include_str!("composites/istft.py");

/// Which transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Fft,
    Inverse,
    Real,
    InverseReal,
    Hermitian,
    InverseHermitian,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Fft => "fft",
            Kind::Inverse => "ifft",
            Kind::Real => "rfft",
            Kind::InverseReal => "irfft",
            Kind::Hermitian => "hfft",
            Kind::InverseHermitian => "ihfft",
        }
    }

    fn direction(self) -> Direction {
        match self {
            Kind::Fft | Kind::Real | Kind::Hermitian => Direction::Forward,
            Kind::Inverse | Kind::InverseReal | Kind::InverseHermitian => Direction::Inverse,
        }
    }

    fn takes_real(self) -> bool {
        matches!(self, Kind::Real | Kind::InverseHermitian)
    }

    fn gives_real(self) -> bool {
        matches!(self, Kind::InverseReal | Kind::Hermitian)
    }
}

fn fail<T>(text: String) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

/// The factor of a transform of `n` elements.
fn scale(norm: Option<&str>, direction: Direction, n: f64) -> Result<f64> {
    match (norm.unwrap_or("backward"), direction) {
        ("backward", Direction::Forward) | ("forward", Direction::Inverse) => Ok(1.0),
        ("backward", Direction::Inverse) | ("forward", Direction::Forward) => Ok(1.0 / n),
        ("ortho", _) => Ok(1.0 / n.sqrt()),
        (other, _) => fail(format!("Invalid normalization mode: \"{other}\"")),
    }
}

/// The complex dtype of the results.
fn complex_dtype(kind: Kind, tensor: &Tensor) -> Result<DType> {
    let dtype = tensor.dtype();
    if kind.takes_real() && dtype.is_complex() {
        return fail(format!("{} expects a real input tensor, but got {}", kind.name(), dtype.type_name()));
    }
    match dtype {
        DType::C64 | DType::F32 => Ok(DType::C64),
        DType::C128 | DType::F64 => Ok(DType::C128),
        DType::F16 | DType::BF16 => fail(format!("Unsupported dtype {}", dtype.type_name())),
        _ => Ok(DType::C64),
    }
}

/// One dimension.
fn single(a: &Args<'_>, kind: Kind) -> Result<Outputs> {
    let (tensor, n, dim) = (a.tensor(0)?, a.opt_int(1)?, a.int(2)?);
    let complex = complex_dtype(kind, tensor)?;
    if tensor.rank() == 0 {
        return Err(Diagnostic::raised(
            "IndexError",
            format!("Dimension specified as {dim} but tensor has no dimensions"),
        ));
    }
    let dims = wrap_dims(&[dim], tensor.rank())?;
    let size = tensor.sizes()[dims[0]];
    let length = n.unwrap_or(if kind.gives_real() { 2 * (size - 1) } else { size });
    if length < 1 {
        return fail(format!("Invalid number of data points ({length}) specified"));
    }
    transform(tensor, kind, complex, &dims, &[length], a.opt_str(3)?)
}

/// Several dimensions: all of them, those given, or the last ones that have sizes.
fn many(a: &Args<'_>, kind: Kind) -> Result<Outputs> {
    let (tensor, sizes, dims) = (a.tensor(0)?, a.opt_ints(1)?, a.opt_ints(2)?);
    let complex = complex_dtype(kind, tensor)?;
    let rank = tensor.rank();
    let dims: Vec<usize> = match (&dims, &sizes) {
        (Some(dims), _) => {
            if let (0, Some(first)) = (rank, dims.first()) {
                return Err(Diagnostic::raised(
                    "IndexError",
                    format!("Dimension specified as {first} but tensor has no dimensions"),
                ));
            }
            wrap_dims(dims, rank).map_err(|e| {
                if e.message().contains("multiple times") {
                    Diagnostic::runtime("FFT dims must be unique")
                } else {
                    e
                }
            })?
        }
        (None, Some(sizes)) => {
            let Some(first) = rank.checked_sub(sizes.len()) else {
                return fail(format!(
                    "Got shape with {} values but input tensor only has {rank} dimensions.",
                    sizes.len()
                ));
            };
            (first..rank).collect()
        }
        (None, None) => (0..rank).collect(),
    };
    if let Some(sizes) = &sizes
        && sizes.len() != dims.len()
    {
        return fail("When dim and shape were both given, they must have the same length".to_string());
    }
    if dims.is_empty() && kind != Kind::Fft && kind != Kind::Inverse {
        return fail(format!("{}n must transform at least one axis", kind.name()));
    }
    let own = tensor.sizes();
    let mut lengths: Vec<i64> = dims.iter().map(|d| own[*d]).collect();
    if kind.gives_real()
        && let Some(last) = lengths.last_mut()
    {
        *last = 2 * (*last - 1);
    }
    for (length, asked) in lengths.iter_mut().zip(sizes.iter().flatten()) {
        if *asked != -1 {
            *length = *asked;
        }
    }
    if let Some(bad) = lengths.iter().find(|n| **n < 1) {
        return fail(format!("Invalid number of data points ({bad}) specified"));
    }
    transform(tensor, kind, complex, &dims, &lengths, a.opt_str(3)?)
}

/// The strides of a result. Complex inputs in the real kinds' place of complex ones are copies of the same order.
fn laid_out(tensor: &Tensor, kind: Kind, complex: DType, dims: &[usize], lengths: &[i64]) -> Result<Dims> {
    let own = tensor.layout();
    // A single real dimension is transformed as it is.
    let stays =
        tensor.dtype() == complex || (tensor.dtype().is_floating() && (kind.takes_real() || dims.len() == 1));
    let input = if stays { own } else { dense_like(&own) };
    let mut taken = lengths.to_vec();
    let mut sizes = input.sizes.clone();
    dims.iter().zip(lengths).for_each(|(d, n)| sizes[*d] = *n);
    let (Some(last), Some(length)) = (dims.last().copied(), lengths.last().copied()) else {
        return Ok(dense_like(&tensor.layout()).strides);
    };
    let others = &dims[..dims.len() - 1];
    if kind.gives_real() {
        if let Some(n) = taken.last_mut() {
            *n = length / 2 + 1;
        }
        let mut strides = layout::resized(&input, dims, &taken)?;
        if !others.is_empty() {
            let mut halved = sizes.clone();
            halved[last] = length / 2 + 1;
            strides = layout::transformed(&strides, &halved, &layout::sorted(&strides, others, 0));
        }
        return Ok(layout::transformed(&strides, &sizes, &[last]));
    }
    let strides = layout::resized(&input, dims, &taken)?;
    if !kind.takes_real() {
        return Ok(layout::transformed(&strides, &sizes, &layout::sorted(&strides, dims, 0)));
    }
    sizes[last] = length / 2 + 1;
    if kind == Kind::Real || others.is_empty() {
        return Ok(layout::transformed(&strides, &sizes, &layout::sorted(&strides, dims, 1)));
    }
    let strides = layout::transformed(&strides, &sizes, &[last]);
    Ok(layout::transformed(&strides, &sizes, &layout::sorted(&strides, others, 0)))
}

/// Transforms `dims` to `lengths`; the last of them is the real or Hermitian one.
fn transform(
    tensor: &Tensor,
    kind: Kind,
    complex: DType,
    dims: &[usize],
    lengths: &[i64],
    norm: Option<&str>,
) -> Result<Outputs> {
    let count: f64 = lengths.iter().map(|n| *n as f64).product();
    let factor = scale(norm, kind.direction(), count)?;
    let strides = laid_out(tensor, kind, complex, dims, lengths)?;
    let axes: Vec<(usize, usize)> = dims.iter().zip(lengths).map(|(d, n)| (*d, *n as usize)).collect();
    let result = match (axes.split_last(), complex) {
        // Without a dimension only the dtype changes.
        (None, _) if tensor.dtype() == complex => tensor.copy()?,
        (None, _) => tensor.to_dtype(complex)?,
        (Some((last, others)), DType::C64) => transformed::<f32>(tensor, kind, *last, others, factor)?,
        (Some((last, others)), _) => transformed::<f64>(tensor, kind, *last, others, factor)?,
    };
    one(with_strides(result, &strides)?)
}

/// Transforms along some dimensions, each with the length it is to have.
fn transformed<R: Planned>(
    tensor: &Tensor,
    kind: Kind,
    (dim, length): (usize, usize),
    others: &[(usize, usize)],
    factor: f64,
) -> Result<Tensor>
where
    Complex<R>: Element,
{
    let last = Along { dim, length, direction: kind.direction(), factor: R::of(factor) };
    let rest = |result: Tensor| {
        let along = |(dim, length): (usize, usize)| Along { dim, length, factor: R::ONE, ..last };
        others.iter().try_fold(result, |result, other| along(*other).complex(&result))
    };
    match kind {
        Kind::Real | Kind::InverseHermitian => rest(last.half(tensor)?),
        Kind::InverseReal | Kind::Hermitian => last.hermitian(&rest(tensor.clone())?),
        Kind::Fft | Kind::Inverse if others.is_empty() && !tensor.dtype().is_complex() => last.whole(tensor),
        Kind::Fft | Kind::Inverse => last.complex(&rest(tensor.clone())?),
    }
}
