//! Attention: scaled dot products of queries and keys as weights of values, and the layers made of it.

use super::contraction::linear;
use crate::diag::{Diagnostic, Result};
use crate::dialects::attend::attend;
use crate::dialects::dropout::drop_out;
use crate::dialects::shapes::products;
use crate::dialects::{Args, Effects, Fact, OpDef, Outputs, composite, one, opaque};
use crate::kernels::compute::{Dense, Real, build, build_whole, compute_dtype};
use crate::kernels::images::pool::each_plane;
use crate::kernels::matrix::gemm::{Matrix, Onto, matmul};
use crate::kernels::matrix::product::{c_name, permute, product, times_scalar};
use crate::kernels::rows::vector::softmax_scaled;
use crate::kernels::strided::with_strides;
use crate::resources::{Collect, memory, pool};
use crate::tensor::{DType, Dims, Layout, Scalar, Tensor, broadcast_sizes, checked_numel, numel, view};
use crate::value::Value;
use smallvec::smallvec;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque(
        "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
        |a| {
            let attention = Attention::new(a, 3, 4, 6, Some(7))?;
            if let Some(result) = attention.in_vectors()? {
                return one(result);
            }
            let result = match attention.in_blocks()? {
                Some(result) => result,
                None => attention.run(a, false)?.0,
            };
            if attention.dropout > 0.0 { one(result) } else { one(attention.laid_out(result)?) }
        },
    )
    .infer(products::attention)
    .effects(Effects::RANDOM),
    opaque(
        "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
        |a| {
            if a.float(3)? != 0.0 {
                return fail("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0");
            }
            let attention = Attention::new(a, 5, 3, 6, None)?;
            let (y, _, logs) = attention.run(a, true)?;
            Ok(smallvec![with_strides(y, &attention.query_strides())?.into(), heads_innermost(logs)?.into()])
        },
    )
    .effects(Effects::RANDOM),
    opaque(
        "aten::_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)",
        |a| {
            if a.opt_tensor(6)?.is_some() {
                return Err(Diagnostic::unsupported("aten::_scaled_dot_product_attention_math with a dropout mask"));
            }
            let mut attention = Attention::new(a, 3, 4, 7, Some(8))?;
            // Here a mask is added as it is, bools as 0 and 1.
            attention.mask = attention.mask.map(|m| m.to_dtype(attention.query.dtype())).transpose()?;
            let (y, weights, _) = attention.run(a, false)?;
            Ok(smallvec![y.into(), weights.into()])
        },
    )
    .effects(Effects::RANDOM),
    opaque(
        "aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
        multi_head,
    )
    .infer(products::multi_head),
    composite(
        "aten::_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)",
        include_str!("composites/transform_bias_rescale_qkv.py"),
    ),
    composite(
        "aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor",
        include_str!("composites/transformer_encoder_layer_fwd.py"),
    )
    .facts(&[Fact::Layers]),
];

/// Logarithms of batches of heads as the kernel writes them: the heads of a query beside each other.
fn heads_innermost(logs: Tensor) -> Result<Tensor> {
    match *logs.sizes().as_slice() {
        [_, heads, queries] => with_strides(logs, &[heads.saturating_mul(queries), 1, heads]),
        _ => Ok(logs),
    }
}

fn fail<T>(text: impl Into<String>) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

/// Multiplications up to which scores are computed in double precision.
const SMALL_WORK: usize = 1 << 14;

/// An attention: arguments checked.
struct Attention {
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Option<Tensor>,
    causal: bool,
    scale: f64,
    /// The chance of a weight to be dropped.
    dropout: f64,
}

impl Attention {
    /// `mask`, `dropout` (causality follows) and `scale` say at which positions those arguments stand.
    fn new(
        a: &Args<'_>,
        mask: usize,
        dropout: usize,
        scale: usize,
        grouped: Option<usize>,
    ) -> Result<Attention> {
        let (query, key, value) = (a.tensor(0)?.clone(), a.tensor(1)?.clone(), a.tensor(2)?.clone());
        let (mask, causal) = (a.opt_tensor(mask)?.cloned(), a.bool(dropout + 1)?);
        let (dq, dk, dv) = (query.dtype(), key.dtype(), value.dtype());
        if dq != dk || dk != dv {
            return fail(format!(
                "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and value.dtype: \
                 {} instead.",
                c_name(dq),
                c_name(dk),
                c_name(dv)
            ));
        }
        let (rq, rk, rv) = (query.rank(), key.rank(), value.rank());
        if rq < 2 || rk < 2 || rv < 2 {
            return fail(format!(
                "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {rq} key.dim: {rk} and \
                 value.dim: {rv} instead."
            ));
        }
        if let Some(mask) = &mask {
            if !mask.dtype().is_floating() && mask.dtype() != DType::Bool {
                let name = |d| if d == DType::I64 { "long int" } else { c_name(d) };
                return fail(format!(
                    "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} and  \
                     query.dtype: {} instead.",
                    name(mask.dtype()),
                    name(dq)
                ));
            }
            if causal {
                return fail(
                    "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True",
                );
            }
        }
        let dropout = a.float(dropout)?;
        if dropout > 1.0 {
            return fail(format!("dropout probability has to be between 0 and 1, but got {dropout}"));
        }
        let width = query.sizes()[rq - 1];
        let scale = a.opt_float(scale)?.unwrap_or(1.0 / (width as f64).sqrt());
        let (key, value) = match grouped {
            Some(n) if a.bool(n)? => (repeat_heads(&key, &query)?, repeat_heads(&value, &query)?),
            _ => (key, value),
        };
        Ok(Attention { query, key, value, mask, causal, scale, dropout })
    }

    /// The result laid out as the queries are, where PyTorch computes it in blocks: for batches of heads whose numbers lie
    /// densely.
    fn laid_out(&self, result: Tensor) -> Result<Tensor> {
        let operands = [&self.query, &self.key, &self.value];
        let dense = operands.iter().all(|t| t.rank() == 4 && t.strides().last() == Some(&1));
        if !dense || self.query.is_contiguous() || result.sizes() != self.query.sizes() {
            return Ok(result);
        }
        let laid_out = crate::dialects::draw::empty_like(&self.query, result.dtype())?;
        laid_out.copy_from(&result)?;
        Ok(laid_out)
    }

    /// The strides of a new tensor that lies as the queries do.
    fn query_strides(&self) -> Dims {
        view::dense_like(&self.query.layout()).strides
    }

    /// The result alone, of batches of heads of float32 that are read where they lie, laid out as PyTorch lays it out. None for
    /// what other ways know: little work, causality, dropout, sizes that broadcast or do not fit.
    fn in_vectors(&self) -> Result<Option<Tensor>> {
        let (q, k, v) = (self.query.sizes(), self.key.sizes(), self.value.sizes());
        let (&[batch, heads, queries, width], &[.., keys, _], &[.., values]) =
            (q.as_slice(), k.as_slice(), v.as_slice())
        else {
            return Ok(None);
        };
        let fits = *k == [batch, heads, keys, width] && *v == [batch, heads, keys, values];
        let small = self.query.numel().saturating_mul(keys.max(1) as usize) <= SMALL_WORK;
        let floats = self.query.dtype() == DType::F32;
        if !fits || small || !floats || self.causal || self.dropout > 0.0 || v.contains(&0) || width == 0 {
            return Ok(None);
        }
        let mut biases = Vec::new();
        if let Some(mask) = &self.mask {
            match additive(mask, DType::F32)?.broadcast_to(&[batch, heads, queries, keys]) {
                Ok(wide) => biases.push(wide),
                Err(_) => return Ok(None),
            }
        }
        let operands = [&self.query, &self.key, &self.value];
        let rows = Layout::contiguous(&[batch, heads, queries, values])?.strides;
        let dense = operands.iter().all(|t| t.strides().last() == Some(&1));
        let wanted = if dense && values == width { self.query_strides() } else { rows.clone() };
        let masks = !biases.is_empty();
        let result = attend(operands, &biases, self.scale as f32, (masks, wanted == rows))?;
        with_strides(result, &wanted).map(Some)
    }

    /// The result alone, head by head and some queries at a time, so that scores stay in the cache. None where there is
    /// too little work, where sizes broadcast or do not fit, or where numbers are wide: `run` knows all of these.
    fn in_blocks(&self) -> Result<Option<Tensor>> {
        const QUERIES: usize = 64;
        let (q, k, v) = (self.query.sizes(), self.key.sizes(), self.value.sizes());
        let (dtype, rank) = (self.query.dtype(), q.len());
        let outer = rank - 2;
        let fits = k.len() == rank
            && v.len() == rank
            && q[..outer] == k[..outer]
            && k[..outer] == v[..outer]
            && q[rank - 1] == k[rank - 1]
            && k[outer] == v[outer];
        let small = self.query.numel().saturating_mul(k[outer].max(1) as usize) <= SMALL_WORK;
        if !fits || small || self.dropout > 0.0 || compute_dtype(dtype) != DType::F32 || v[rank - 1] == 0 {
            return Ok(None);
        }
        let (queries, width, keys, values) =
            (q[outer] as usize, q[rank - 1] as usize, k[outer] as usize, v[rank - 1] as usize);
        let mut sizes = q.clone();
        sizes[rank - 1] = v[rank - 1];
        let mut scores = q.clone();
        scores[rank - 1] = k[outer];
        let mask = match &self.mask {
            Some(mask) => Some(Dense::<f32>::new(&additive(mask, DType::F32)?.broadcast_to(&scores)?)?),
            None => None,
        };
        let mask = mask.as_ref().map(Dense::open).transpose()?;
        let (q, k, v) =
            (Dense::<f32>::new(&self.query)?, Dense::<f32>::new(&self.key)?, Dense::<f32>::new(&self.value)?);
        let (q, k, v) = (q.open()?, k.open()?, v.open()?);
        let head = |at: usize, out: &mut [f32]| -> Result<()> {
            let key = Matrix::dense(&k[at * keys * width..][..keys * width], keys, width);
            let value = Matrix::dense(&v[at * keys * values..][..keys * values], keys, values);
            let mut weights = memory::filled(QUERIES.min(queries).saturating_mul(keys), 0f32)?;
            for (n, out) in out.chunks_mut(QUERIES * values).enumerate() {
                let (first, rows) = (n * QUERIES, out.len() / values);
                let query = Matrix::dense(&q[(at * queries + first) * width..][..rows * width], rows, width);
                let weights = &mut weights[..rows * keys];
                matmul(query, key.t(), weights, keys, Onto::Nothing)?;
                for (i, row) in weights.chunks_mut(keys).enumerate() {
                    let seen = if self.causal { (first + i + 1).min(keys) } else { keys };
                    let bias = mask.as_ref().map(|m| &m[(at * queries + first + i) * keys..][..seen]);
                    softmax_scaled(&mut row[..seen], self.scale as f32, bias);
                    row[seen..].fill(0.0);
                }
                matmul(Matrix::dense(weights, rows, keys), value, out, values, Onto::Nothing)?;
            }
            Ok(())
        };
        build_whole::<f32>(&sizes, dtype, |out| pool::try_chunks(out, queries * values, head)).map(Some)
    }

    /// The result, the weights (some dropped) and, where asked for, the logarithms of the weights' denominators.
    fn run(&self, a: &Args<'_>, with_logs: bool) -> Result<(Tensor, Tensor, Tensor)> {
        let (q, k) = (self.query.sizes(), self.key.sizes());
        let keys = permute_last(&self.key)?;
        let count = checked_numel(&broadcast_sizes(&q[..q.len() - 2], &k[..k.len() - 2])?)?;
        if q[q.len() - 1] != k[k.len() - 1] {
            return fail(format!(
                "Expected size for first two dimensions of batch2 tensor to be: [{count}, {}] but got: [{count}, {}].",
                q[q.len() - 1],
                k[k.len() - 1]
            ));
        }
        let v = self.value.sizes();
        if k[k.len() - 2] != v[v.len() - 2] {
            return fail(format!(
                "Expected size for first two dimensions of batch2 tensor to be: [{count}, {}] but got: [{count}, {}].",
                k[k.len() - 2],
                v[v.len() - 2]
            ));
        }
        let dtype = self.query.dtype();
        // Where it costs nothing, what happens to large scores is computed without rounding errors.
        let work = self.query.numel().saturating_mul(k[k.len() - 2].max(1) as usize);
        let wide = if work <= SMALL_WORK && dtype.is_floating() { DType::F64 } else { compute_dtype(dtype) };
        let scores = product("bmm", &self.query.to_dtype(wide)?, &keys.to_dtype(wide)?, None)?;
        let sizes = scores.sizes();
        let mask = self.mask.as_ref().map(|m| additive(m, wide)?.broadcast_to(&sizes)).transpose()?;
        let rows = sizes[sizes.len() - 2].max(1) as usize;
        let columns = sizes[sizes.len() - 1].max(1) as usize;
        let mut logs = memory::filled(numel(&sizes[..sizes.len() - 1]), 0f64)?;
        // Without keys the logarithm of each sum is that of 0.
        if scores.numel() == 0 {
            logs.fill(f64::NEG_INFINITY);
        }
        let weights = crate::dispatch_real!(wide, "softmax_lastdim_kernel_impl", R => {
            let x = Dense::<R>::new(&scores)?;
            let x = x.open()?;
            let m = mask.as_ref().map(Dense::<R>::new).transpose()?;
            let m = m.as_ref().map(Dense::open).transpose()?;
            let scale = R::of(self.scale);
            let weights = build::<R>(&sizes, wide, |out| {
                each_plane(out, columns, 4, |at, out| {
                    let seen = if self.causal { (at % rows + 1).min(columns) } else { columns };
                    for (j, y) in out[..seen].iter_mut().enumerate() {
                        let place = at * columns + j;
                        *y = x[place] * scale + m.as_ref().map_or(R::ZERO, |m| m[place]);
                    }
                    softmax_row(&mut out[..seen]);
                });
                Ok(())
            });
            for (at, log) in logs.iter_mut().enumerate().filter(|_| with_logs && !x.is_empty()) {
                let seen = if self.causal { (at % rows + 1).min(columns) } else { columns };
                *log = log_sum(&x[at * columns..][..seen], scale, m.as_ref().map(|m| &m[at * columns..][..seen]));
            }
            weights
        })?;
        let weights = if self.dropout > 0.0 {
            drop_out(a, &weights.to_dtype(dtype)?, self.dropout, false, false)?.to_dtype(wide)?
        } else {
            weights
        };
        let result = product("bmm", &weights, &self.value.to_dtype(wide)?, None)?.to_dtype(dtype)?;
        let logs = Tensor::from_vec(&logs, &sizes[..sizes.len() - 1])?.to_dtype(compute_dtype(dtype))?;
        Ok((result, weights.to_dtype(dtype)?, logs))
    }
}

fn permute_last(t: &Tensor) -> Result<Tensor> {
    let rank = t.rank() as i64;
    t.look(|l| view::transpose(l, rank - 2, rank - 1))
}

/// A mask to add: bools become 0 and minus infinity.
fn additive(mask: &Tensor, dtype: DType) -> Result<Tensor> {
    if mask.dtype() != DType::Bool {
        return mask.to_dtype(dtype);
    }
    let values = mask
        .elements_as::<u8>()?
        .into_iter()
        .map(|seen| if seen != 0 { 0.0 } else { f64::NEG_INFINITY })
        .scratch()?;
    Tensor::from_vec(&values, &mask.sizes())?.to_dtype(dtype)
}

/// Every head of keys or values repeated for the queries' heads that share it.
fn repeat_heads(t: &Tensor, query: &Tensor) -> Result<Tensor> {
    let (sizes, wanted) = (t.sizes(), query.sizes());
    let (rank, query_rank) = (sizes.len(), wanted.len());
    if rank < 3 || query_rank < 3 {
        return fail("enable_gqa needs queries, keys and values with heads");
    }
    let (heads, queries) = (sizes[rank - 3], wanted[query_rank - 3]);
    if heads <= 0 || queries % heads != 0 {
        return fail("Number of heads in key and value must divide the number of heads in query");
    }
    let mut repeated = sizes.to_vec();
    repeated.insert(rank - 2, queries / heads);
    let mut result = sizes.to_vec();
    result[rank - 3] = queries;
    t.look(|l| view::unsqueeze(l, rank as i64 - 2))?.broadcast_to(&repeated)?.reshaped(&result)
}

/// Exponentials over their sum; zeros where all are minus infinity.
fn softmax_row<R: Real>(row: &mut [R]) {
    let most = row.iter().fold(-R::INFINITY, |m, x| m.greater(*x));
    if most == -R::INFINITY {
        row.fill(R::ZERO);
        return;
    }
    let mut sum = R::ZERO;
    for x in row.iter_mut() {
        *x = (*x - most).exp();
        sum += *x;
    }
    let factor = R::ONE / sum;
    row.iter_mut().for_each(|x| *x *= factor);
}

/// The logarithm of the sum of the exponentials that a row of weights divides by.
fn log_sum<R: Real>(scores: &[R], scale: R, mask: Option<&[R]>) -> f64 {
    let value = |j: usize| (scores[j] * scale + mask.map_or(R::ZERO, |m| m[j])).wide();
    let most = (0..scores.len()).map(value).fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    most + (0..scores.len()).map(|j| (value(j) - most).exp()).sum::<f64>().ln()
}

/// Self-attention of several heads with its projections. Without `need_weights` the second result is None.
fn multi_head(a: &Args<'_>) -> Result<Outputs> {
    let inputs = [a.tensor(0)?, a.tensor(1)?, a.tensor(2)?];
    let (features, heads) = (a.int(3)?, a.int(4)?);
    let (weight, bias) = (a.tensor(5)?, a.tensor(6)?);
    let (need_weights, average, mask_kind) = (a.bool(10)?, a.bool(11)?, a.opt_int(12)?);
    let sizes = inputs[0].sizes();
    let [batch, steps, width] = sizes[..] else {
        return fail(format!("expected 3-D `query`, got {}-D tensor", sizes.len()));
    };
    if width != features || heads <= 0 || features % heads != 0 {
        return fail(format!("passed-in embed_dim {features} didn't match last dim of query {width}"));
    }
    if weight.sizes().as_slice() != [3 * features, features] || bias.sizes().as_slice() != [3 * features] {
        return fail(format!(
            "expected `qkv_weight` of sizes [{}, {features}] and `qkv_bias` of as many elements as it has rows",
            3 * features
        ));
    }
    let head = features / heads;
    // One projection each, split into heads: (batch, heads, steps, head).
    let project = |n: i64| -> Result<Tensor> {
        let part =
            |t: &Tensor| t.look(|l| view::slice(l, 0, Some(n * features), Some((n + 1) * features), 1));
        let x = inputs[n as usize];
        let own = x.sizes();
        let length = own.get(1).copied().unwrap_or(0);
        let y = linear(x, &part(weight)?, Some(&part(bias)?))?.reshaped(&[batch, length, heads, head])?;
        permute(&y, &[0, 2, 1, 3])
    };
    let (q, k, v) = (project(0)?, project(1)?, project(2)?);
    let q = times_scalar(&q, Scalar::Float(1.0 / (head as f64).sqrt()))?;
    let length = k.sizes()[2];
    let mask = match a.opt_tensor(9)? {
        None => None,
        Some(mask) => {
            let hidden = mask.to_dtype(DType::Bool)?;
            let shape: Vec<i64> = match (mask_kind, hidden.rank()) {
                (Some(1), 2) => vec![batch, 1, 1, length],
                (_, 2) => vec![1, 1, steps, length],
                _ => hidden.sizes().to_vec(),
            };
            let seen = hidden.elements_as::<u8>()?.into_iter().map(|h| u8::from(h == 0)).scratch()?;
            Some(Tensor::from_vec(&seen, &hidden.sizes())?.to_dtype(DType::Bool)?.reshaped(&shape)?)
        }
    };
    let attention = Attention { query: q, key: k, value: v, mask, causal: false, scale: 1.0, dropout: 0.0 };
    let (y, weights) = match if need_weights { None } else { attention.in_blocks()? } {
        Some(y) => (y, None),
        None => attention.run(a, false).map(|(y, weights, _)| (y, Some(weights)))?,
    };
    let y = permute(&y, &[0, 2, 1, 3])?.reshaped(&[batch, steps, features])?;
    let y = linear(&y, a.tensor(7)?, Some(a.tensor(8)?))?;
    let Some(weights) = weights.filter(|_| need_weights) else {
        return Ok(smallvec![y.into(), Value::None]);
    };
    if !average {
        return Ok(smallvec![y.into(), weights.into()]);
    }
    let dtype = weights.dtype();
    let mean = crate::dispatch_real!(dtype, "mean", R => {
        let w = weights.elements_as::<R>()?;
        let plane = (steps * length) as usize;
        build::<R>(&[batch, steps, length], dtype, |out| {
            for (at, y) in out.iter_mut().enumerate() {
                let (n, place) = (at / plane, at % plane);
                let sum: R = (0..heads as usize).map(|h| w[(n * heads as usize + h) * plane + place]).sum();
                *y = sum / R::of(heads as f64);
            }
            Ok(())
        })
    })?;
    Ok(smallvec![y.into(), mean.into()])
}
