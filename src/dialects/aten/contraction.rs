//! Products of matrices and vectors, alone, in batches and added to something; linear layers.

use super::chain::chain;
use super::multiply::{bmm, check_mm, expect_alike, expect_same, mm, shape};
use super::reduce::sum_row;
use crate::diag::{Diagnostic, Result};
use crate::dialects::dropout::combined;
use crate::dialects::shapes::{products, trial};
use crate::dialects::{
    Alias, Args, LayerPart, OpDef, OutRule, Outputs, Variant, composite, contraction, one,
};
use crate::kernels::compute::{compute_dtype, rounding};
use crate::kernels::matrix::product::{conjugate, contract, product, scaled, times_scalar};
use crate::kernels::rows::Rows;
use crate::kernels::strided::with_strides;
use crate::resources::Collect;
use crate::tensor::pointwise::Walk;
use crate::tensor::{
    DType, Operand, Scalar, Tensor, broadcast_sizes, check_fill, checked_numel, result_type, view, wrap_dim,
};

/// The rows.
pub static OPS: &[OpDef] = &[
    contraction("aten::mm(Tensor self, Tensor mat2) -> Tensor", |a| one(mm("mm", a.tensor(0)?, a.tensor(1)?, None)?)).infer(products::matmul)
        .out_exact("out"),
    contraction("aten::bmm(Tensor self, Tensor mat2) -> Tensor", |a| one(bmm("bmm", a.tensor(0)?, a.tensor(1)?, None)?)).part(LayerPart::Matmul).infer(products::matmul)
        .out_exact("out"),
    contraction("aten::matmul(Tensor self, Tensor other) -> Tensor", |a| one(any_rank(a.tensor(0)?, a.tensor(1)?)?)).part(LayerPart::Matmul).infer(products::matmul)
        .out_exact("out"),
    contraction("aten::linalg_matmul(Tensor self, Tensor other) -> Tensor", |a| {
        one(any_rank(a.tensor(0)?, a.tensor(1)?)?)
    }).infer(products::matmul)
    .out_exact("out"),
    contraction(
        "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        addmm,
    ).infer(products::addmm)
    .inplace()
    .out("out"),
    contraction(
        "aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        |a| {
            let (t, beta, alpha) = (a.tensor(0)?, a.scalar(3)?, a.scalar(4)?);
            check_fill(beta, t.dtype())?;
            check_fill(alpha, t.dtype())?;
            one(addmv(Some(t), a.tensor(1)?, a.tensor(2)?, beta, alpha)?)
        },
    ).infer(products::added)
    .inplace()
    .out("out"),
    contraction(
        "aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        addr,
    ).infer(trial::stand_ins)
    .inplace()
    .out("out"),
    contraction(
        "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        baddbmm,
    ).infer(products::added)
    .inplace()
    .out_exact("out"),
    contraction(
        "aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        addbmm,
    ).infer(trial::stand_ins)
    .inplace()
    .out("out"),
    contraction("aten::mv(Tensor self, Tensor vec) -> Tensor", |a| {
        one(addmv(None, a.tensor(0)?, a.tensor(1)?, Scalar::Int(0), Scalar::Int(1))?)
    }).infer(products::matmul)
    .out("out"),
    contraction("aten::dot(Tensor self, Tensor tensor) -> Tensor", |a| one(dot("dot", a.tensor(0)?, a.tensor(1)?)?)).infer(products::matmul)
        .out("out"),
    contraction("aten::vdot(Tensor self, Tensor other) -> Tensor", |a| {
        one(dot("dot", &conjugate(a.tensor(0)?)?, a.tensor(1)?)?)
    }).infer(products::matmul)
    .out("out"),
    contraction("aten::inner(Tensor self, Tensor other) -> Tensor", inner).infer(trial::stand_ins).out("out"),
    contraction("aten::outer(Tensor self, Tensor vec2) -> Tensor", outer).infer(products::outer)
        .out("out").aliases(&[Alias::new("ger")]),
    contraction("aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", |a| {
        one(linear(a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?)?)
    }).part(LayerPart::Linear).infer(products::linear)
    .out_exact("out"),
    contraction(
        "aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
        bilinear,
    ).infer(trial::stand_ins),
    contraction("aten::chain_matmul(Tensor[] matrices) -> Tensor", |a| one(chain("chain_matmul", &a.tensors(0)?)?)).out("out"),
    contraction("aten::linalg_multi_dot(Tensor[] tensors) -> Tensor", |a| one(chain("multi_dot", &a.tensors(0)?)?)).infer(trial::stand_ins).out("out"),
    composite(
        "aten::kron(Tensor self, Tensor other) -> Tensor",
        include_str!("composites/kron.py"),
    )
    .out("out"),
    contraction("aten::linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", vecdot).infer(trial::stand_ins).out("out"),
];

/// The dot products of vectors along a dimension, the first conjugated.
fn vecdot(args: &Args<'_>) -> Result<Outputs> {
    let (x, y, dim) = (args.tensor(0)?, args.tensor(1)?, args.int(2)?);
    let dtype = x.dtype();
    if !x.dtype().is_floating() && !x.dtype().is_complex() {
        return Err(Diagnostic::raised(
            "NotImplementedError",
            format!(
                "linalg.vecdot: Expected a floating point or complex tensor as input. Got {}",
                x.dtype().type_name()
            ),
        ));
    }
    if x.dtype() != y.dtype() {
        return Err(Diagnostic::runtime(format!(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type {} and y of type {} instead",
            x.dtype().type_name(),
            y.dtype().type_name()
        )));
    }
    let mut sizes = broadcast_sizes(&x.sizes(), &y.sizes())?;
    let d = wrap_dim(dim, sizes.len())?;
    if sizes.is_empty() {
        sizes.push(1);
    }
    let widen = |t: &Tensor| t.to_dtype(dtype)?.broadcast_to(&sizes);
    if matches!(dtype, DType::F16 | DType::BF16) {
        // Products of 16 bits are rounded before they are summed.
        let round = rounding(dtype);
        let products = widen(x)?
            .elements_as::<f64>()?
            .into_iter()
            .zip(widen(y)?.elements_as::<f64>()?)
            .map(|(x, y)| round(x * y))
            .scratch()?;
        let products = Tensor::from_vec(&products, &sizes)?;
        return one(Rows::along(&products, d)?.reduce::<f64>(false, dtype, sum_row)?);
    }
    let summed = contract("dot", &conjugate(&widen(x)?)?, &widen(y)?, &[d])?;
    let mut kept = summed.sizes();
    kept.remove(d);
    one(summed.reshaped(&kept)?)
}

/// The product of tensors of any rank from 1 on: vectors lose their dimension, batches broadcast.
pub fn any_rank(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (ra, rb) = (a.rank(), b.rank());
    match (ra, rb) {
        (0, _) | (_, 0) => Err(Diagnostic::runtime(format!(
            "both arguments to matmul need to be at least 1D, but they are {ra}D and {rb}D"
        ))),
        (1, 1) => dot("dot", a, b),
        (2, 2) => mm("mm", a, b, None),
        (2, 1) => addmv(None, a, b, Scalar::Int(0), Scalar::Int(1)),
        (1, 2) => {
            let row = a.reshaped(&[1, a.sizes()[0]])?;
            mm("mm", &row, b, None)?.reshaped(&[b.sizes()[1]])
        }
        (_, 1) => {
            let mut sizes = a.sizes();
            let columns = sizes.pop().unwrap_or(1);
            let rows = sizes.iter().product();
            addmv(None, &a.reshaped(&[rows, columns])?, b, Scalar::Int(0), Scalar::Int(1))?.reshaped(&sizes)
        }
        (1, _) => {
            let row = a.reshaped(&[1, a.sizes()[0]])?;
            let result = any_rank(&row, b)?;
            let mut sizes = result.sizes();
            sizes.remove(sizes.len() - 2);
            result.reshaped(&sizes)
        }
        _ => batched(a, b),
    }
}

fn batched(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (sa, sb) = (a.sizes(), b.sizes());
    let (ra, rb) = (sa.len(), sb.len());
    let (k, k2) = (sa[ra - 1], sb[rb - 2]);
    if rb == 2 {
        if k != k2 {
            let rows: i64 = sa[..ra - 1].iter().product();
            return Err(Diagnostic::runtime(format!(
                "mm: mat1 and mat2 shapes cannot be multiplied ({rows}x{k} and {})",
                shape(b)
            )));
        }
        if a.dtype() != b.dtype() {
            return Err(Diagnostic::runtime(format!(
                "expected m1 and m2 to have the same dtype, but got: {} != {}",
                a.dtype().cpp_name(),
                b.dtype().cpp_name()
            )));
        }
        return product("addmm_impl_cpu_", a, b, None);
    }
    let batch = broadcast_sizes(&sa[..ra - 2], &sb[..rb - 2])?;
    if k != k2 {
        let count = checked_numel(&batch)?;
        return Err(Diagnostic::runtime(format!(
            "Expected size for first two dimensions of batch2 tensor to be: [{count}, {k}] but got: [{count}, {k2}]."
        )));
    }
    expect_same(a, b)?;
    product("bmm", a, b, None)
}

/// `self` times beta, broadcast to the product's sizes.
fn expanded(t: &Tensor, sizes: &[i64], beta: Scalar) -> Result<Option<Tensor>> {
    scaled(&t.broadcast_to(sizes)?, beta)
}

/// alpha a b, plus beta times what it is added to. The scale is applied to the product, as PyTorch does.
fn added(
    onto: Option<Tensor>,
    alpha: Scalar,
    multiply: impl Fn(Option<&Tensor>) -> Result<Tensor>,
) -> Result<Tensor> {
    if alpha.to_complex() == 1.0.into() {
        return multiply(onto.as_ref());
    }
    let scaled = times_scalar(&multiply(None)?, alpha)?;
    match onto {
        Some(onto) => sum(&scaled, &onto),
        None => Ok(scaled),
    }
}

/// The sum of two tensors of one dtype and the same sizes.
fn sum(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    use crate::kernels::compute::Number;
    let (sizes, dtype) = (a.sizes(), a.dtype());
    let wide = compute_dtype(dtype);
    crate::dispatch_number!(wide, "add", T => {
        let (xs, ys) = (a.elements_as::<T>()?, b.elements_as::<T>()?);
        let sums = xs.into_iter().zip(ys).map(|(x, y)| x.plus(y)).scratch()?;
        Tensor::from_vec(&sums, &sizes)?.to_dtype(dtype)
    })
}

/// A product to which a bias is added in place: it keeps its sizes and its dtype.
fn moved(product: &Tensor, bias: &Tensor) -> Result<Tensor> {
    let (sizes, dtype) = (broadcast_sizes(&product.sizes(), &bias.sizes())?, product.dtype());
    if sizes != product.sizes() {
        return Err(Diagnostic::runtime(format!(
            "output with shape {:?} doesn't match the broadcast shape {:?}",
            product.sizes().as_slice(),
            sizes.as_slice()
        )));
    }
    let wide = result_type(&[product.clone().into(), bias.clone().into()]).unwrap_or(dtype);
    OutRule::Cast.check("aten::linear", wide, dtype)?;
    sum(&product.to_dtype(wide)?, &bias.to_dtype(wide)?.broadcast_to(&sizes)?)?.to_dtype(dtype)
}

/// What sums and products are multiplied by, if the dtype that computes with tensors of `dtype` can hold it.
fn real_factors(a: &Args<'_>, first: usize, dtype: DType) -> Result<(Scalar, Scalar)> {
    let factors = (a.scalar(first)?, a.scalar(first + 1)?);
    for factor in [factors.0, factors.1] {
        if matches!(factor, Scalar::Complex(c) if c.im != 0.0) && !dtype.is_complex() {
            return Err(Diagnostic::runtime(format!(
                "value cannot be converted to type {} without overflow",
                match dtype {
                    DType::U8 | DType::I8 | DType::I16 | DType::I64 => format!("{}_t", dtype.name()),
                    other => other.cpp_name().to_string(),
                }
            )));
        }
        check_fill(factor, compute_dtype(dtype))?;
    }
    Ok(factors)
}

fn addmm(args: &Args<'_>) -> Result<Outputs> {
    let (t, a, b) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    let is_one = |n: usize| args.scalar(n).map(|s| s.to_complex() == 1.0.into());
    if is_one(3)? && is_one(4)? && args.op.variant() == Variant::Plain {
        // TorchScript computes this as `mm` and `add`: the product is checked first, with its messages, and what is added may have
        // another dtype or more dimensions.
        check_mm("mm", a, b)?;
        let sizes = [a.sizes()[0], b.sizes()[1]];
        if t.dtype() != a.dtype() || t.layout().broadcast_to(&sizes).is_none() {
            let product = mm("mm", a, b, None)?;
            let dtype = result_type(&[t.clone().into(), product.clone().into()]).unwrap_or(a.dtype());
            return one(combined(&t.to_dtype(dtype)?, &product.to_dtype(dtype)?, false)?);
        }
    }
    for (matrix, name) in [(a, "self"), (b, "mat2")] {
        if matrix.rank() != 2 {
            return Err(Diagnostic::runtime(format!(
                "addmm: {name} must be a matrix, got {}-D tensor",
                matrix.rank()
            )));
        }
    }
    if a.sizes()[1] != b.sizes()[0] {
        return mm("addmm", a, b, None).and_then(one);
    }
    expect_alike(t, a, b)?;
    let (beta, alpha) = real_factors(args, 3, t.dtype())?;
    let (dtype, wide) = (t.dtype(), compute_dtype(t.dtype()));
    let onto = expanded(&t.to_dtype(wide)?, &[a.sizes()[0], b.sizes()[1]], beta)?;
    let (a, b) = (a.to_dtype(wide)?, b.to_dtype(wide)?);
    one(added(onto, alpha, |onto| mm("addmm", &a, &b, onto))?.to_dtype(dtype)?)
}

fn addmv(t: Option<&Tensor>, a: &Tensor, v: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    let rank = t.map_or(1, Tensor::rank);
    if a.rank() != 2 || v.rank() != 1 || rank > 1 {
        return Err(Diagnostic::runtime(format!(
            "vector + matrix @ vector expected, got {rank}, {}, {}",
            a.rank(),
            v.rank()
        )));
    }
    let (rows, columns, length) = (a.sizes()[0], a.sizes()[1], v.sizes()[0]);
    let own = t.map_or(rows, |t| t.sizes().first().copied().unwrap_or(1));
    if columns != length || (own != rows && t.is_some_and(|t| t.numel() != 1)) {
        return Err(Diagnostic::runtime(format!(
            "size mismatch, got input ({own}), mat ({rows}x{columns}), vec ({length})"
        )));
    }
    let dtypes = [t.map_or(v.dtype(), Tensor::dtype), a.dtype(), v.dtype()];
    if dtypes[0] != dtypes[1] || dtypes[1] != dtypes[2] {
        let [x, y, z] = dtypes.map(DType::type_name);
        return Err(Diagnostic::runtime(format!(
            "addmv input tensors must have the same dtype, but got {x}, {y}, and {z}"
        )));
    }
    let column = v.look(|l| view::unsqueeze(l, 1))?;
    let onto = match t {
        Some(t) => expanded(t, &[rows], beta)?.map(|t| t.look(|l| view::unsqueeze(l, 1))).transpose()?,
        None => None,
    };
    added(onto, alpha, |onto| product("addmv_impl_cpu", a, &column, onto))?.reshaped(&[rows])
}

fn addr(args: &Args<'_>) -> Result<Outputs> {
    let (t, x, y) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    for (v, name) in [(x, "vec1"), (y, "vec2")] {
        if v.rank() != 1 {
            return Err(Diagnostic::runtime(format!(
                "addr: Expected 1-D argument {name}, but got {}-D",
                v.rank()
            )));
        }
    }
    let (beta, alpha) = (args.scalar(3)?, args.scalar(4)?);
    let operands: Vec<Operand> = [t, x, y].into_iter().map(|t| t.clone().into()).collect();
    let dtype = result_type(&operands).unwrap_or(t.dtype());
    for (factor, name) in [(beta, "beta"), (alpha, "alpha")] {
        let fractional = matches!(factor, Scalar::Float(_) | Scalar::Complex(_));
        if fractional && !dtype.is_floating() && !dtype.is_complex() {
            return Err(Diagnostic::runtime(format!(
                "For integral input tensors, argument {name} must not be a floating point number."
            )));
        }
        check_fill(factor, dtype)?;
    }
    let sizes = [x.sizes()[0], y.sizes()[0]];
    let onto = t.broadcast_to(&sizes)?;
    if dtype == DType::Bool {
        let as_int = |t: &Tensor| t.to_dtype(DType::U8);
        let unit = |s: Scalar| Scalar::Int(i64::from(s.to_bool()));
        let scaled_onto = scaled(&as_int(&onto)?, unit(beta))?;
        let multiply = |onto: Option<&Tensor>| outer_product(&as_int(x)?, &as_int(y)?, onto);
        return one(added(scaled_onto, unit(alpha), multiply)?.to_dtype(DType::Bool)?);
    }
    let (x, y) = (x.to_dtype(dtype)?, y.to_dtype(dtype)?);
    // As PyTorch's kernel: every step is rounded to the dtype, the factors too.
    let rounded = |s: Scalar| Tensor::full(dtype, &[], s)?.item();
    let (alpha, beta) = (rounded(alpha)?, rounded(beta)?);
    let x = if alpha.to_complex() == 1.0.into() { x } else { times_scalar(&x, alpha)? };
    let product = outer_product(&x, &y, None)?;
    match scaled(&onto.to_dtype(dtype)?, beta)? {
        Some(onto) => {
            let walk = Walk::new(&[onto.layout()])?;
            one(with_strides(sum(&product, &onto)?, &walk.result.strides)?)
        }
        None => one(product),
    }
}

fn outer_product(x: &Tensor, y: &Tensor, onto: Option<&Tensor>) -> Result<Tensor> {
    let (column, row) = (x.look(|l| view::unsqueeze(l, 1))?, y.look(|l| view::unsqueeze(l, 0))?);
    product("addr", &column, &row, onto)
}

fn outer(args: &Args<'_>) -> Result<Outputs> {
    let (x, y) = (args.tensor(0)?, args.tensor(1)?);
    for (v, name) in [(x, "self"), (y, "vec2")] {
        if v.rank() != 1 {
            return Err(Diagnostic::runtime(format!(
                "outer: Expected 1-D argument {name}, but got {}-D",
                v.rank()
            )));
        }
    }
    let dtype = result_type(&[x.clone().into(), y.clone().into()]).unwrap_or(x.dtype());
    if dtype == DType::Bool {
        let z = outer_product(&x.to_dtype(DType::U8)?, &y.to_dtype(DType::U8)?, None)?;
        return one(z.to_dtype(DType::Bool)?);
    }
    one(outer_product(&x.to_dtype(dtype)?, &y.to_dtype(dtype)?, None)?)
}

fn baddbmm(args: &Args<'_>) -> Result<Outputs> {
    let (t, a, b) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    let target: Option<[i64; 3]> = match (&a.sizes()[..], &b.sizes()[..]) {
        ([p, m, _], [_, _, n]) | ([p, m], [_, _, n]) | ([p, m, _], [_, n]) => Some([*p, *m, *n]),
        _ => None,
    };
    let (beta, alpha) = real_factors(args, 3, t.dtype())?;
    let onto = match target {
        Some(sizes) => t.broadcast_to(&sizes)?,
        None => t.clone(),
    };
    if a.dtype() != b.dtype() || t.dtype() != a.dtype() {
        return Err(Diagnostic::runtime(format!(
            "Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}",
            t.dtype().cpp_name(),
            a.dtype().cpp_name(),
            b.dtype().cpp_name()
        )));
    }
    if t.dtype() == DType::Bool {
        return bmm("baddbmm", a, b, None).and_then(one);
    }
    let dtype = t.dtype();
    let wide = compute_dtype(dtype);
    let onto = scaled(&onto.to_dtype(wide)?, beta)?;
    // PyTorch multiplies small batches by a loop of its own, which adds what is there to the finished sum.
    let small = matches!((target, a.sizes().last()), (Some([_, m, n]), Some(k)) if m * n * k < 400);
    let bmm = |onto: Option<&Tensor>| bmm("baddbmm", &a.to_dtype(wide)?, &b.to_dtype(wide)?, onto);
    let result = match onto {
        Some(onto) if small && alpha.to_complex() == 1.0.into() => sum(&bmm(None)?, &onto)?,
        onto => added(onto, alpha, bmm)?,
    };
    one(result.to_dtype(dtype)?)
}

/// The sum of a batch of products, added one after the other.
fn addbmm(args: &Args<'_>) -> Result<Outputs> {
    let (t, a, b) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    for (batch, which) in [(a, 1), (b, 2)] {
        if batch.rank() != 3 {
            return Err(Diagnostic::runtime(format!("batch{which} must be a 3D tensor")));
        }
    }
    let (sa, sb) = (a.sizes(), b.sizes());
    if sa[0] != sb[0] {
        return Err(Diagnostic::runtime(format!(
            "batch1 and batch2 must have same number of batches, got {} and {}",
            sa[0], sb[0]
        )));
    }
    if sa[2] != sb[1] {
        return Err(Diagnostic::runtime(format!(
            "Incompatible matrix sizes for bmm ({}x{} and {}x{})",
            sa[1], sa[2], sb[1], sb[2]
        )));
    }
    expect_alike(t, a, b)?;
    let (beta, alpha) = real_factors(args, 3, t.dtype())?;
    let (dtype, wide) = (t.dtype(), compute_dtype(t.dtype()));
    let mut total = expanded(&t.to_dtype(wide)?, &[sa[1], sb[2]], beta)?;
    let (a, b) = (a.to_dtype(wide)?, b.to_dtype(wide)?);
    for at in 0..sa[0] {
        let (x, y) = (a.look(|l| view::select(l, 0, at))?, b.look(|l| view::select(l, 0, at))?);
        let sum = added(total, alpha, |onto| product("addmm_impl_cpu_", &x, &y, onto))?;
        // Each product is added in the tensors' own dtype.
        total = Some(sum.to_dtype(dtype)?.to_dtype(wide)?);
    }
    match total {
        Some(total) => one(total.to_dtype(dtype)?),
        None => one(Tensor::zeros(dtype, &[sa[1], sb[2]])?),
    }
}

fn dot(name: &str, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    if x.rank() != 1 || y.rank() != 1 {
        return Err(Diagnostic::runtime(format!(
            "1D tensors expected, but got {}D and {}D tensors",
            x.rank(),
            y.rank()
        )));
    }
    if x.dtype() != y.dtype() {
        return Err(Diagnostic::runtime(format!(
            "dot : expected both vectors to have same dtype, but found {} and {}",
            x.dtype().type_name(),
            y.dtype().type_name()
        )));
    }
    let (n, m) = (x.numel(), y.numel());
    if n != m {
        return Err(Diagnostic::runtime(format!(
            "inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, but got {n} \
             and {m} elements respectively"
        )));
    }
    let (row, column) = (x.look(|l| view::unsqueeze(l, 0))?, y.look(|l| view::unsqueeze(l, 1))?);
    product(name, &row, &column, None)?.reshaped(&[])
}

fn inner(args: &Args<'_>) -> Result<Outputs> {
    let (x, y) = (args.tensor(0)?, args.tensor(1)?);
    let (sx, sy) = (x.sizes(), y.sizes());
    let (Some((p, lead)), Some((q, follow))) = (sx.split_last(), sy.split_last()) else {
        let dtype = result_type(&[x.clone().into(), y.clone().into()]).unwrap_or(x.dtype());
        let shape = if sx.is_empty() { &sy } else { &sx };
        let ones = vec![1; shape.len()];
        let widen = |t: &Tensor| {
            let t = t.to_dtype(dtype)?;
            if t.rank() == 0 { t.reshaped(&ones) } else { Ok(t) }
        };
        return one(contract("mul_cpu", &widen(x)?, &widen(y)?, &[])?);
    };
    if p != q {
        return Err(Diagnostic::runtime(format!(
            "inner() the last dimension must match on both input tensors but got shapes {:?} and {:?}",
            sx.as_slice(),
            sy.as_slice()
        )));
    }
    if x.dtype() != y.dtype() {
        return Err(Diagnostic::runtime("both inputs should have same dtype"));
    }
    let rows = x.reshaped(&[lead.iter().product(), *p])?;
    let columns = y.reshaped(&[follow.iter().product(), *q])?.look(|l| view::transpose(l, 0, 1))?;
    let sizes: Vec<i64> = lead.iter().chain(follow).copied().collect();
    let kernel = if sizes.is_empty() { "dot" } else { "addmm_impl_cpu_" };
    one(product(kernel, &rows, &columns, None)?.reshaped(&sizes)?)
}

/// Whether a bias is a vector, which the product of matrices adds to each row; any other is added in place afterwards. Strides
/// of the input count where dtypes differ, which the product refuses.
fn is_of_rows(bias: &Tensor, input: &Tensor, weight: &Tensor) -> bool {
    let is_vector = bias.rank() == 1 || bias.sizes().iter().filter(|n| **n != 1).count() == 1;
    is_vector && (input.is_contiguous() || bias.dtype() == weight.dtype())
}

/// `input @ weight.T + bias`
pub fn linear(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    if input.rank() == 0 || weight.rank() == 0 {
        return Err(Diagnostic::runtime(format!(
            "both arguments to linear need to be at least 1D, but they are {}D and {}D",
            input.rank(),
            weight.rank()
        )));
    }
    if weight.rank() > 2 {
        return Err(Diagnostic::runtime(format!(
            "t() expects a tensor with <= 2 dimensions, but self is {}D",
            weight.rank()
        )));
    }
    let turned =
        if weight.rank() == 1 { weight.clone() } else { weight.look(|l| view::transpose(l, 0, 1))? };
    match bias {
        None if weight.rank() == 1 => return any_rank(input, weight),
        Some(bias) if input.rank() != 2 && !is_of_rows(bias, input, weight) => {
            return moved(&any_rank(input, &turned)?, bias);
        }
        Some(_) if weight.rank() == 1 => {
            return Err(Diagnostic::runtime("addmm: mat2 must be a matrix, got 1-D tensor"));
        }
        _ => {}
    }
    let mut sizes = input.sizes();
    let columns = sizes.pop().unwrap_or(1);
    let rows: i64 = sizes.iter().product();
    sizes.push(weight.sizes()[0]);
    let flat = input.reshaped(&[rows, columns])?;
    let Some(bias) = bias else {
        return mm("mm", &flat, &turned, None)?.reshaped(&sizes);
    };
    let fits = columns == turned.sizes()[0];
    if fits && flat.dtype() != turned.dtype() {
        return Err(Diagnostic::runtime(format!(
            "mat1 and mat2 must have the same dtype, but got {} and {}",
            flat.dtype().type_name(),
            turned.dtype().type_name()
        )));
    }
    if fits && bias.dtype() != turned.dtype() {
        return Err(Diagnostic::runtime(format!(
            "self and mat2 must have the same dtype, but got {} and {}",
            bias.dtype().type_name(),
            turned.dtype().type_name()
        )));
    }
    if !fits {
        return mm("addmm", &flat, &turned, None);
    }
    let onto = bias.broadcast_to(&[rows, sizes[sizes.len() - 1]])?;
    mm("addmm", &flat, &turned, Some(&onto))?.reshaped(&sizes)
}

/// `out[.., k] = sum over i, j of input1[.., i] * weight[k, i, j] * input2[.., j]`, plus the bias.
fn bilinear(args: &Args<'_>) -> Result<Outputs> {
    let (x, y, w, bias) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?, args.opt_tensor(3)?);
    let (sx, sy, sw) = (x.sizes(), y.sizes(), w.sizes());
    let fail = |text: String| Err(Diagnostic::runtime(format!("bilinear(): {text}")));
    let named = [("input1", Some(x)), ("input2", Some(y)), ("weight", Some(w)), ("bias", bias)];
    if named.iter().any(|(_, t)| t.is_some_and(|t| t.dtype() != x.dtype())) {
        let shown =
            named.iter().filter_map(|(name, t)| Some(format!("{name}: {}", (*t)?.dtype().cpp_name())));
        return Err(Diagnostic::runtime(format!(
            "All tensors must have the same dtype, got {}",
            shown.collect::<Vec<_>>().join(", ")
        )));
    }
    if sx.len() != sy.len() {
        return fail(format!("input dimensions do not match: got {} and {}", sx.len(), sy.len()));
    }
    let ([lead @ .., i], [follow @ .., j]) = (&sx[..], &sy[..]) else {
        return fail("inputs need at least one dimension".into());
    };
    let [k, wi, wj] = sw[..] else {
        return fail(format!("weight must have 3 dimensions, got {}", sw.len()));
    };
    if let Some(d) = (0..lead.len()).find(|d| lead[*d] != follow[*d]) {
        return fail(format!(
            "input batch dimensions do not match at dim {d}: got {} and {}",
            lead[d], follow[d]
        ));
    }
    if *i != wi {
        return fail(format!("input1 size does not match weight size: got {i} but expected {wi}"));
    }
    if *j != wj {
        return fail(format!("input2 size does not match weight size: got {j} but expected {wj}"));
    }
    if let Some(b) = bias.filter(|b| b.sizes().first() != Some(&k)) {
        let got = b.sizes().first().copied().unwrap_or(0);
        return fail(format!("bias size does not match weight size: got {got} but expected {k}"));
    }
    expect_same(x, w)?;
    expect_same(y, w)?;
    let n: i64 = lead.iter().product();
    let half = contract("bmm", &x.reshaped(&[n, 1, *i, 1])?, &w.reshaped(&[1, k, wi, wj])?, &[2])?;
    let whole = contract("bmm", &half, &y.reshaped(&[n, 1, 1, *j])?, &[3])?.reshaped(&[n, k])?;
    let whole = match bias {
        Some(bias) => sum(&whole, &bias.broadcast_to(&[n, k])?)?,
        None => whole,
    };
    let sizes: Vec<i64> = lead.iter().copied().chain([k]).collect();
    one(whole.reshaped(&sizes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As PyTorch answers: sizes of the result, or its words.
    #[test]
    fn biases_of_any_rank_are_added_or_refused() {
        let ones = |sizes: &[i64]| Tensor::full(DType::F32, sizes, Scalar::Int(1)).expect("small");
        let layer = |x: &[i64], w: &[i64], b: &[i64]| match linear(&ones(x), &ones(w), Some(&ones(b))) {
            Ok(found) => Ok(found.sizes().to_vec()),
            Err(error) => Err(error.message().to_string()),
        };
        assert_eq!(layer(&[2, 3, 4], &[5, 4], &[3, 5]), Ok(vec![2, 3, 5]));
        assert_eq!(layer(&[2, 3, 4], &[5, 4], &[6, 1]), Ok(vec![2, 3, 5]));
        assert_eq!(layer(&[2, 3, 4], &[4], &[2, 3]), Ok(vec![2, 3]));
        assert_eq!(layer(&[4], &[4], &[]), Ok(vec![]));
        let refused = |message: &str| Err(message.to_string());
        assert_eq!(layer(&[4], &[4], &[4]), refused("addmm: mat2 must be a matrix, got 1-D tensor"));
        assert_eq!(
            layer(&[2], &[2], &[3, 2]),
            refused("output with shape [] doesn't match the broadcast shape [3, 2]")
        );
    }
}
