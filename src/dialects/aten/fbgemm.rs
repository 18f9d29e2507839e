//! Layers with 8- and 16-bit weights in plain tensors, as models had them before quantized tensors: `fbgemm_*`, the cells of
//! quantized recurrent networks, and products of floats with 8-bit weights. What PyTorch packs into opaque bytes is a tensor
//! of the weights here.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, composite, one, opaque};
use crate::kernels::Affine;
use crate::kernels::int8::qgemm::{PackedWeights, Quantization, linear_dynamic};
use crate::kernels::int8::quantize::{as_float16, choose_qparams, extremes, quantize};
use crate::resources::{Collect, memory};
use crate::tensor::{DType, Tensor};
use crate::value::Value;
use smallvec::smallvec;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque(
        "aten::fbgemm_linear_quantize_weight(Tensor input) -> (Tensor, Tensor, float, int)",
        quantize_weight,
    ),
    opaque("aten::fbgemm_pack_quantized_matrix(Tensor input) -> Tensor", |a| pack_bytes(a.tensor(0)?)),
    opaque("aten::fbgemm_pack_quantized_matrix.KN(Tensor input, int K, int N) -> Tensor", |a| {
        pack_bytes(a.tensor(0)?)
    }),
    opaque(
        "aten::fbgemm_linear_int8_weight(Tensor input, Tensor weight, Tensor packed, Tensor col_offsets, Scalar weight_scale, Scalar weight_zero_point, Tensor bias) -> Tensor",
        linear_bytes,
    ),
    opaque(
        "aten::fbgemm_linear_int8_weight_fp32_activation(Tensor input, Tensor weight, Tensor packed, Tensor col_offsets, Scalar weight_scale, Scalar weight_zero_point, Tensor bias) -> Tensor",
        linear_bytes,
    ),
    opaque("aten::fbgemm_pack_gemm_matrix_fp16(Tensor input) -> Tensor", pack_half),
    composite(
        "aten::fbgemm_linear_fp16_weight(Tensor input, Tensor packed_weight, Tensor bias) -> Tensor",
        "def fbgemm_linear_fp16_weight(input: Tensor, packed_weight: Tensor, bias: Tensor) -> Tensor:\n    \
         return torch.linear(input, packed_weight.float()) + bias\n",
    ),
    composite(
        "aten::fbgemm_linear_fp16_weight_fp32_activation(Tensor input, Tensor packed_weight, Tensor? bias) -> Tensor",
        "def fbgemm_linear_fp16_weight_fp32_activation(input: Tensor, packed_weight: Tensor, bias: Optional[Tensor]) -> Tensor:\n    \
         y = torch.linear(input, packed_weight.float())\n    \
         if bias is not None:\n        y = y + bias\n    \
         return y\n",
    ),
    composite(
        "aten::quantized_lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor b_ih, Tensor b_hh, Tensor packed_ih, Tensor packed_hh, Tensor col_offsets_ih, Tensor col_offsets_hh, Scalar scale_ih, Scalar scale_hh, Scalar zero_point_ih, Scalar zero_point_hh) -> (Tensor, Tensor)",
        "def quantized_lstm_cell(input: Tensor, hx: List[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, packed_ih: Tensor, packed_hh: Tensor, col_offsets_ih: Tensor, col_offsets_hh: Tensor, scale_ih: number, scale_hh: number, zero_point_ih: number, zero_point_hh: number) -> Tuple[Tensor, Tensor]:\n    \
         gates = torch.fbgemm_linear_int8_weight_fp32_activation(hx[0], w_hh, packed_hh, col_offsets_hh, scale_hh, zero_point_hh, b_hh) + torch.fbgemm_linear_int8_weight_fp32_activation(input, w_ih, packed_ih, col_offsets_ih, scale_ih, zero_point_ih, b_ih)\n    \
         i, f, g, o = gates.chunk(4, 1)\n    \
         c = torch.sigmoid(f) * hx[1] + torch.sigmoid(i) * torch.tanh(g)\n    \
         return torch.sigmoid(o) * torch.tanh(c), c\n",
    ),
    composite(
        "aten::quantized_gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor b_ih, Tensor b_hh, Tensor packed_ih, Tensor packed_hh, Tensor col_offsets_ih, Tensor col_offsets_hh, Scalar scale_ih, Scalar scale_hh, Scalar zero_point_ih, Scalar zero_point_hh) -> Tensor",
        include_str!("composites/quantized_gru_cell.py"),
    ),
    composite(
        "aten::quantized_rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor b_ih, Tensor b_hh, Tensor packed_ih, Tensor packed_hh, Tensor col_offsets_ih, Tensor col_offsets_hh, Scalar scale_ih, Scalar scale_hh, Scalar zero_point_ih, Scalar zero_point_hh) -> Tensor",
        "def quantized_rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, packed_ih: Tensor, packed_hh: Tensor, col_offsets_ih: Tensor, col_offsets_hh: Tensor, scale_ih: number, scale_hh: number, zero_point_ih: number, zero_point_hh: number) -> Tensor:\n    \
         x = torch.fbgemm_linear_int8_weight_fp32_activation(input, w_ih, packed_ih, col_offsets_ih, scale_ih, zero_point_ih, b_ih)\n    \
         return torch.tanh(torch.fbgemm_linear_int8_weight_fp32_activation(hx, w_hh, packed_hh, col_offsets_hh, scale_hh, zero_point_hh, b_hh) + x)\n",
    ),
    composite(
        "aten::quantized_rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor b_ih, Tensor b_hh, Tensor packed_ih, Tensor packed_hh, Tensor col_offsets_ih, Tensor col_offsets_hh, Scalar scale_ih, Scalar scale_hh, Scalar zero_point_ih, Scalar zero_point_hh) -> Tensor",
        "def quantized_rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, packed_ih: Tensor, packed_hh: Tensor, col_offsets_ih: Tensor, col_offsets_hh: Tensor, scale_ih: number, scale_hh: number, zero_point_ih: number, zero_point_hh: number) -> Tensor:\n    \
         x = torch.fbgemm_linear_int8_weight_fp32_activation(input, w_ih, packed_ih, col_offsets_ih, scale_ih, zero_point_ih, b_ih)\n    \
         return torch.relu(torch.fbgemm_linear_int8_weight_fp32_activation(hx, w_hh, packed_hh, col_offsets_hh, scale_hh, zero_point_hh, b_hh) + x)\n",
    ),
    composite(
        "aten::_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor",
        "def _weight_int8pack_mm(self: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:\n    \
         return (torch.mm(self.float(), mat2.float().t()) * scales.float()).to(self.dtype)\n",
    ),
];

fn fail<T>(text: impl Into<String>) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

/// The sizes of a matrix of weights.
fn matrix(weight: &Tensor) -> Result<(usize, usize)> {
    match weight.sizes()[..] {
        [rows, columns] => Ok((rows as usize, columns as usize)),
        _ => fail("weights of a linear layer must be a matrix"),
    }
}

fn quantize_weight(a: &Args<'_>) -> Result<Outputs> {
    let weight = a.tensor(0)?;
    let (rows, columns) = matrix(weight)?;
    let items = weight.elements::<f32>()?;
    let (low, high) = extremes(&items);
    let chosen = choose_qparams(low, high, (-128, 127), false, false)?;
    let mut bytes = memory::filled(items.len(), 0i8)?;
    quantize(&items, chosen, &mut bytes);
    let offset = chosen.zero_point.wrapping_mul(columns as i32);
    let sum =
        |row: &[i8]| row.iter().fold(0i32, |sum, w| sum.wrapping_add(i32::from(*w))).wrapping_sub(offset);
    let mut sums = bytes.chunks_exact(columns.max(1)).map(sum).scratch()?;
    sums.resize(rows, 0)?;
    Ok(smallvec![
        Value::Tensor(Tensor::from_vec(&bytes, &weight.sizes())?),
        Value::Tensor(Tensor::from_vec(&sums, &[rows as i64])?),
        Value::Float(chosen.scale),
        Value::Int(i64::from(chosen.zero_point)),
    ])
}

fn pack_bytes(weight: &Tensor) -> Result<Outputs> {
    matrix(weight)?;
    if weight.dtype() != DType::I8 {
        return fail(format!("expected scalar type Char but found {}", weight.dtype().type_name()));
    }
    one(weight.copy()?)
}

/// Weights as float16; those beyond its range become its largest.
fn pack_half(a: &Args<'_>) -> Result<Outputs> {
    let weight = a.tensor(0)?;
    matrix(weight)?;
    let items = weight.elements::<f32>()?.into_iter().map(as_float16).scratch()?;
    one(Tensor::from_vec(&items, &weight.sizes())?.to_dtype(DType::F16)?)
}

/// `input` is quantized by its own extremes, multiplied as integers, scaled back, and the bias added.
fn linear_bytes(a: &Args<'_>) -> Result<Outputs> {
    let (input, weight, bias) = (a.tensor(0)?, a.tensor(1)?, a.tensor(6)?);
    let (outputs, depth) = matrix(weight)?;
    let mut sizes = input.sizes();
    if sizes.len() < 2 || sizes.last().copied() != Some(depth as i64) {
        return fail(
            "fbgemm_linear_int8_weight: the input's last dimension must be as large as the weight's",
        );
    }
    if bias.rank() != 1 || bias.numel() != outputs {
        return fail("fbgemm_linear_int8_weight: bias must have an element for each row of the weight");
    }
    let quantization = Quantization::per_tensor(Affine {
        scale: a.scalar(4)?.to_f64(),
        zero_point: i32::try_from(a.scalar(5)?.to_i64())
            .map_err(|_| Diagnostic::runtime("fbgemm_linear_int8_weight: the zero point is out of range"))?,
    });
    let weights = PackedWeights::new(&weight.elements::<i8>()?, outputs, depth, quantization)?;
    let (x, bias) = (input.elements::<f32>()?, bias.elements::<f32>()?);
    let rows = x.len().checked_div(depth).unwrap_or(0);
    if let Some(last) = sizes.last_mut() {
        *last = outputs as i64;
    }
    let result = Tensor::for_writing(DType::F32, &sizes)?;
    result.write::<f32, _>(|out, _| {
        linear_dynamic(&x, rows, &weights, Some(&bias), false, false, &mut out[..rows * outputs])
    })??;
    one(result)
}
