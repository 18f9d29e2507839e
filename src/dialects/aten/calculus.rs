//! Differences, integrals and covariances of samples, as programs over other ops.

use crate::dialects::{OpDef, composite};

/// What all forms of the gradient check first. `count` is how many spacings there are.
macro_rules! checked {
    ($parameters:literal, $prelude:literal, $count:literal) => {
        concat!(
            "
def gradient(self: Tensor, *, ",
            $parameters,
            ") -> List[Tensor]:
    if self.dtype == torch.uint8:
        raise NotImplementedError('torch.gradient does not support uint8 input.')
    if edge_order != 1 and edge_order != 2:
        raise RuntimeError('torch.gradient only supports edge_order=1 and edge_order=2.')",
            $prelude,
            "
    if ",
            $count,
            " != len(dims):
        raise RuntimeError(\"torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = {}', since dim argument was not given, but got a list of length {}\".format(len(dims), ",
            $count,
            "))
    wrapped = [d % max(self.dim(), 1) for d in dims]
    for d in wrapped:
        if wrapped.count(d) > 1:
            raise RuntimeError('dim {} appears multiple times in the list of dims'.format(d))
    for d in dims:
        if self.size(d) < edge_order + 1:
            raise RuntimeError('torch.gradient expected each dimension size to be at least edge_order+1')
    results: List[Tensor] = []
"
        )
    };
}

/// The gradient of samples a fixed step apart: `steps`, one for each of `dims`.
macro_rules! by_steps {
    ($parameters:literal, $prelude:literal) => {
        concat!(
            checked!($parameters, $prelude, "len(steps)"),
            "
    for i in range(len(dims)):
        d = dims[i]
        step = steps[i]
        n = self.size(d)
        first = self.narrow(d, 0, 1)
        last = self.narrow(d, n - 1, 1)
        if edge_order == 1:
            start = (self.narrow(d, 1, 1) - first) / step
            end = (last - self.narrow(d, n - 2, 1)) / step
        else:
            start = (first * -1.5 + self.narrow(d, 1, 1) * 2. - self.narrow(d, 2, 1) * 0.5) / step
            end = (self.narrow(d, n - 3, 1) * 0.5 - self.narrow(d, n - 2, 1) * 2. + last * 1.5) / step
        middle = (self.narrow(d, 2, n - 2) - self.narrow(d, 0, n - 2)) / step / 2.
        results.append(torch.cat([start, middle, end], d))
    return results
"
        )
    };
}

/// The gradient of samples at given points: `spacing`, one vector for each of `dims`.
macro_rules! by_points {
    ($parameters:literal, $prelude:literal) => {
        concat!(
            checked!($parameters, $prelude, "len(spacing)"),
            "
    for i in range(len(dims)):
        d = dims[i]
        n = self.size(d)
        if spacing[i].dim() != 1 or spacing[i].size(0) != n:
            raise RuntimeError(\"torch.gradient expected each element of 'spacing' to have one dimension and the size of its dimension of the input\")
        steps = torch.diff(spacing[i])
        p = steps.narrow(0, 0, n - 2)
        q = steps.narrow(0, 1, n - 2)
        sizes = [1] * self.dim()
        sizes[d] = n - 2
        a = (q.neg() / (p * (p + q))).reshape(sizes)
        b = ((q - p) / (p * q)).reshape(sizes)
        c = (p / (q * (p + q))).reshape(sizes)
        middle = a * self.narrow(d, 0, n - 2) + b * self.narrow(d, 1, n - 2) + c * self.narrow(d, 2, n - 2)
        if edge_order == 1:
            start = (self.narrow(d, 1, 1) - self.narrow(d, 0, 1)) / steps.select(0, 0)
            end = (self.narrow(d, n - 1, 1) - self.narrow(d, n - 2, 1)) / steps.select(0, -1)
        else:
            p = steps.select(0, 0)
            q = steps.select(0, 1)
            start = (p * 2. + q).neg() / (p * (p + q)) * self.narrow(d, 0, 1)
            start = start + (p + q) / (p * q) * self.narrow(d, 1, 1) - p / (q * (p + q)) * self.narrow(d, 2, 1)
            p = steps.select(0, -2)
            q = steps.select(0, -1)
            end = q / (p * (p + q)) * self.narrow(d, n - 3, 1) - (q + p) / (p * q) * self.narrow(d, n - 2, 1)
            end = end + (q * 2. + p) / (q * (p + q)) * self.narrow(d, n - 1, 1)
        results.append(torch.cat([start, middle, end], d))
    return results
"
        )
    };
}

/// The rows.
pub static OPS: &[OpDef] = &[
    composite(
        "aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
        DIFF,
    )
    .out("out"),
    composite("aten::trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", TRAPEZOID_X),
    composite("aten::trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", TRAPEZOID_DX),
    composite(
        "aten::trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
        "
def trapz(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor:
    return torch.trapezoid(y, x, dim=dim)
",
    ),
    composite(
        "aten::trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor",
        "
def trapz(y: Tensor, *, dx: float = 1., dim: int = -1) -> Tensor:
    return torch.trapezoid(y, dx=dx, dim=dim)
",
    ),
    composite("aten::cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", CUMULATIVE_X),
    composite("aten::cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", CUMULATIVE_DX),
    composite(
        "aten::cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
        COV,
    ),
    composite("aten::corrcoef(Tensor self) -> Tensor", CORRCOEF),
    composite(
        "aten::gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]",
        by_steps!(
            "spacing: Optional[number] = None, dim: Optional[int] = None, edge_order: int = 1",
            "
    dims = [d for d in range(self.dim())]
    if dim is not None:
        dims = [dim]
    step = 1.0
    if spacing is not None:
        step = float(spacing)
    steps = [step for d in dims]"
        ),
    ),
    composite(
        "aten::gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
        by_steps!(
            "spacing: number, dim: List[int], edge_order: int = 1",
            "
    dims = dim
    steps = [float(spacing) for d in dim]"
        ),
    ),
    composite(
        "aten::gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]",
        by_steps!(
            "dim: List[int], edge_order: int = 1",
            "
    dims = dim
    steps = [1.0 for d in dim]"
        ),
    ),
    composite(
        "aten::gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
        by_steps!(
            "spacing: List[number], dim: Optional[int] = None, edge_order: int = 1",
            "
    dims = [d for d in range(self.dim())]
    if dim is not None:
        dims = [dim]
    steps = [float(s) for s in spacing]"
        ),
    ),
    composite(
        "aten::gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
        by_steps!(
            "spacing: List[number], dim: List[int], edge_order: int = 1",
            "
    dims = dim
    steps = [float(s) for s in spacing]"
        ),
    ),
    composite(
        "aten::gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
        by_points!(
            "spacing: List[Tensor], dim: Optional[int] = None, edge_order: int = 1",
            "
    dims = [d for d in range(self.dim())]
    if dim is not None:
        dims = [dim]"
        ),
    ),
    composite(
        "aten::gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
        by_points!("spacing: List[Tensor], dim: List[int], edge_order: int = 1", "\n    dims = dim"),
    ),
];

const DIFF: &str = include_str!("composites/diff.py");

const TRAPEZOID_X: &str = include_str!("composites/trapezoid.py");

const TRAPEZOID_DX: &str = include_str!("composites/trapezoid_dx.py");

const CUMULATIVE_X: &str = include_str!("composites/cumulative_trapezoid.py");

const CUMULATIVE_DX: &str = "
def cumulative_trapezoid(y: Tensor, *, dx: number = 1, dim: int = -1) -> Tensor:
    if y.dtype == torch.bool:
        raise NotImplementedError('cumulative_trapezoid: received a bool input for `y`, but bool is not supported')
    return ((y.slice(dim, 0, -1) + y.slice(dim, 1)) * (float(dx) / 2.)).cumsum(dim)
";

const COV: &str = include_str!("composites/cov.py");

const CORRCOEF: &str = include_str!("composites/corrcoef.py");
