//! Linear layers with packed weights: integer ones, those that quantize their input at each call, and those of 16 bits.

use super::convert::{chosen, quantize};
use super::ints::{Params, dense, from_memory, in_memory, quantizer};
use super::packed::{LinearWeights, linear, payload};
use super::stage::{Epilogue, WeightScales};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, Quantized, one, opaque};
use crate::kernels::int8::qgemm::{PackedWeights, linear as linear_bytes, linear_float};
use crate::kernels::matrix::gemm::{Matrix, Onto, matmul};
use crate::resources::{Scratch, memory};
use crate::tensor::{DType, Quantizer, Tensor};
use crate::value::Value;
use smallvec::SmallVec;

const fn own(schema: &'static str, eval: crate::dialects::Kernel) -> OpDef {
    opaque(schema, eval).quantized(Quantized::Own)
}

/// The rows.
pub static OPS: &[OpDef] = &[
    own(
        "quantized::linear(Tensor X, __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack, float Y_scale_i, int \
         Y_zero_point_i) -> Tensor Y",
        |a| one(static_linear(a, Epilogue::None)?),
    )
    .doc("integer product with packed weights, rounded to the output's scale"),
    own(
        "quantized::linear_relu(Tensor X, __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack, float Y_scale_i, \
         int Y_zero_point_i) -> Tensor Y",
        |a| one(static_linear(a, Epilogue::Relu)?),
    ),
    own(
        "quantized::linear_dynamic(Tensor X, __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack, bool \
         reduce_range=False) -> Tensor Y",
        |a| one(dynamic(a.tensor(0)?, payload(a.value(1)?)?, a.bool(2)?, Epilogue::None)?),
    )
    .doc("the input is quantized by its extremes, the result is float32"),
    own(
        "quantized::linear_relu_dynamic(Tensor X, __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack, bool \
         reduce_range=False) -> Tensor Y",
        |a| one(dynamic(a.tensor(0)?, payload(a.value(1)?)?, a.bool(2)?, Epilogue::Relu)?),
    ),
    own(
        "quantized::linear_dynamic_fp16(Tensor X, __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack) -> Tensor Y",
        |a| one(half(a.tensor(0)?, payload(a.value(1)?)?, Epilogue::None)?),
    ),
    own(
        "quantized::linear_relu_dynamic_fp16(Tensor X, __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack) -> \
         Tensor Y",
        |a| one(half(a.tensor(0)?, payload(a.value(1)?)?, Epilogue::Relu)?),
    ),
    own(
        "quantized::linear_dynamic_fp16_unpacked_weight(Tensor X, Tensor weight, Tensor? bias) -> Tensor Y",
        |a| {
            let weight = a.tensor(1)?;
            if weight.rank() != 2 {
                return Err(Diagnostic::runtime("The dimension of weight tensor should be equal to 2"));
            }
            if weight.dtype() != DType::F32 {
                let found = weight.dtype().type_name();
                return Err(Diagnostic::runtime(format!("expected scalar type Float but found {found}")));
            }
            let weights = LinearWeights {
                weight: as_half(weight)?,
                bias: a.opt_tensor(2)?.cloned(),
                prepared: Default::default(),
            };
            one(half(a.tensor(0)?, &weights, Epilogue::None)?)
        },
    ),
    own(
        "quantized::linear_with_input_q_dq_qweight_dq_output_fp32(Tensor X, float X_scale, int X_zero_point, \
         __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack) -> Tensor Y",
        |a| one(given(a, Epilogue::None)?),
    ),
    own(
        "quantized::linear_with_input_q_dq_qweight_dq_relu_output_fp32(Tensor X, float X_scale, int X_zero_point, \
         __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack) -> Tensor Y",
        |a| one(given(a, Epilogue::Relu)?),
    ),
    own(
        "quantized::linear_prepack(Tensor W, Tensor? B=None) -> __torch__.torch.classes.quantized.LinearPackedParamsBase \
         W_prepack",
        prepack,
    ),
    own(
        "_quantized::linear_prepack(Tensor W, Tensor? B=None) -> __torch__.torch.classes.quantized.LinearPackedParamsBase \
         W_prepack",
        prepack,
    ),
    own(
        "quantized::linear_prepack_fp16(Tensor W, Tensor? B=None) -> \
         __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack",
        prepack_half,
    ),
    own(
        "_quantized::linear_prepack_fp16(Tensor W, Tensor? B=None) -> \
         __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack",
        prepack_half,
    ),
    own(
        "quantized::linear_unpack(__torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack) -> (Tensor W_origin, \
         Tensor? B_origin)",
        unpack,
    ),
    own(
        "quantized::linear_unpack_fp16(__torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack) -> (Tensor \
         W_origin, Tensor? B_origin)",
        unpack,
    ),
    own(
        "_quantized::linear(Tensor X, __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack, float Y_scale_i, int \
         Y_zero_point_i) -> Tensor Y",
        |a| one(static_linear(a, Epilogue::None)?),
    ),
    own(
        "_quantized::linear_dynamic(Tensor X, __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack, bool \
         reduce_range=False) -> Tensor Y",
        |a| one(dynamic(a.tensor(0)?, payload(a.value(1)?)?, a.bool(2)?, Epilogue::None)?),
    ),
];

fn prepack(a: &Args<'_>) -> Result<Outputs> {
    let weight = a.tensor(0)?;
    if weight.dtype() != DType::QI8 {
        return Err(Diagnostic::runtime(format!(
            "quantized::linear_prepack: the weight must be qint8, got {}",
            weight.dtype().name()
        )));
    }
    one(Value::Object(linear(weight_as_float(weight)?, a.opt_tensor(1)?.cloned())?))
}

/// The library behind PyTorch keeps one scale of a weight as float32.
fn weight_as_float(weight: &Tensor) -> Result<Tensor> {
    match &*quantizer(weight)? {
        Quantizer::PerTensor { scale, zero_point } => {
            let params = Params { scale: f64::from(*scale as f32), zero_point: *zero_point };
            Tensor::quantized(&weight.integers(), weight.dtype(), params.quantizer())
        }
        _ => Ok(weight.clone()),
    }
}

fn prepack_half(a: &Args<'_>) -> Result<Outputs> {
    one(Value::Object(linear(as_half(a.tensor(0)?)?, a.opt_tensor(1)?.cloned())?))
}

/// float32 numbers that float16 can hold; what is larger becomes the largest of these.
fn as_half(weight: &Tensor) -> Result<Tensor> {
    const MOST: f32 = 65504.0;
    let halves = weight.elements_as::<f32>()?;
    let halves =
        memory::collected(halves.iter().map(|x| half::f16::from_f32(x.clamp(-MOST, MOST)).to_f32()))?;
    Tensor::from_vec(&halves, &weight.sizes())
}

fn unpack(a: &Args<'_>) -> Result<Outputs> {
    let weights: &LinearWeights = payload(a.value(0)?)?;
    Ok(SmallVec::from_iter([weights.weight.clone().into(), weights.bias.clone().into()]))
}

/// What the product of integers needs of the weights.
pub struct LinearKernel {
    weights: PackedWeights,
    bias: Option<Scratch<f32>>,
}

/// Weights as the kernel wants them, made once.
fn kernel(weights: &LinearWeights) -> Result<std::sync::Arc<LinearKernel>> {
    weights.prepared.get(|| {
        let sizes = weights.weight.sizes();
        let (outputs, depth) = (sizes[0].max(0) as usize, sizes[1].max(0) as usize);
        let items = weights.weight.integers().elements::<i8>()?;
        let quantization = WeightScales::of(&weights.weight)?.quantization()?;
        Ok(LinearKernel {
            weights: PackedWeights::new(&items, outputs, depth, quantization)?,
            bias: weights.bias.as_ref().map(|b| b.elements_as::<f32>()).transpose()?,
        })
    })
}

/// Rows and columns of the input, and the sizes of the result.
fn sizes(x: &Tensor, weights: &LinearWeights) -> Result<(usize, usize, Vec<i64>)> {
    let wanted = weights.weight.sizes();
    let own = x.sizes();
    let Some((last, before)) = own.split_last() else {
        return Err(Diagnostic::runtime("The dimension of input should be larger than 0"));
    };
    if *last != wanted[1] {
        return Err(Diagnostic::runtime(format!(
            "The number of columns in the input ({last}) does not match that of the packed weight ({})",
            wanted[1]
        )));
    }
    let mut result = before.to_vec();
    result.push(wanted[0]);
    let rows = before.iter().product::<i64>();
    Ok((rows.max(0) as usize, *last as usize, result))
}

fn static_linear(a: &Args<'_>, epilogue: Epilogue) -> Result<Tensor> {
    let (x, weights) = (a.tensor(0)?, payload::<LinearWeights>(a.value(1)?)?);
    let out = Params { scale: a.float(2)?, zero_point: a.int(3)? };
    if x.dtype() != DType::QU8 || weights.is_half() {
        return Err(Diagnostic::runtime(format!(
            "expected scalar type QUInt8 but found {}",
            x.dtype().type_name()
        )));
    }
    let (rows, _, sizes) = sizes(x, weights)?;
    let kernel = kernel(weights)?;
    let x = x.contiguous()?;
    let (input, output, relu) = (Params::of(&x)?.affine()?, out.affine()?, epilogue == Epilogue::Relu);
    let mut results = memory::filled(rows * kernel.weights.outputs(), 0u8)?;
    in_memory::<u8, _>(&x, |items| {
        linear_bytes(items, rows, input, &kernel.weights, kernel.bias.as_deref(), output, relu, &mut results)
    })??;
    let flat = Tensor::from_vec(&results, &sizes)?;
    from_memory(&flat, &results, DType::QU8, out.quantizer())
}

/// The input quantized by its extremes, an integer product, a float32 result.
pub fn dynamic(
    x: &Tensor,
    weights: &LinearWeights,
    reduce_range: bool,
    epilogue: Epilogue,
) -> Result<Tensor> {
    float_input(x)?;
    let params = chosen(x, DType::QU8, reduce_range)?;
    by_integers(x, params, weights, epilogue)
}

fn float_input(x: &Tensor) -> Result<()> {
    if x.dtype() == DType::F32 {
        return Ok(());
    }
    Err(Diagnostic::runtime(format!("expected scalar type Float but found {}", x.dtype().type_name())))
}

fn given(a: &Args<'_>, epilogue: Epilogue) -> Result<Tensor> {
    float_input(a.tensor(0)?)?;
    let params = Params { scale: a.float(1)?, zero_point: a.int(2)? };
    by_integers(a.tensor(0)?, params, payload(a.value(3)?)?, epilogue)
}

fn by_integers(x: &Tensor, params: Params, weights: &LinearWeights, epilogue: Epilogue) -> Result<Tensor> {
    if weights.is_half() {
        return Err(Diagnostic::runtime("an integer product with packed weights of 16 bits"));
    }
    let (rows, _, sizes) = sizes(x, weights)?;
    let kernel = kernel(weights)?;
    let (input, relu) = (params.affine()?, epilogue == Epilogue::Relu);
    let integers = quantize(&dense(&x.contiguous()?)?, params, DType::QU8)?;
    let mut results = memory::filled(rows * kernel.weights.outputs(), 0f32)?;
    in_memory::<u8, _>(&integers, |items| {
        linear_float(items, rows, input, &kernel.weights, kernel.bias.as_deref(), relu, &mut results)
    })??;
    Tensor::from_vec(&results, &sizes)
}

/// A float32 product with weights of 16 bits.
pub fn half(x: &Tensor, weights: &LinearWeights, epilogue: Epilogue) -> Result<Tensor> {
    float_input(x)?;
    let (rows, depth, sizes) = sizes(x, weights)?;
    let outputs = weights.weight.sizes()[0].max(0) as usize;
    let (items, weight) = (x.elements::<f32>()?, weights.weight.elements_as::<f32>()?);
    let bias = weights.bias.as_ref().map(|b| b.elements_as::<f32>()).transpose()?;
    let mut results = memory::filled(rows * outputs, 0f32)?;
    let (left, right) = (Matrix::dense(&items, rows, depth), Matrix::dense(&weight, outputs, depth).t());
    matmul(left, right, &mut results, outputs, Onto::Nothing)?;
    for row in results.chunks_exact_mut(outputs.max(1)) {
        if let Some(bias) = &bias {
            row.iter_mut().zip(bias).for_each(|(y, b)| *y += b);
        }
        if epilogue == Epilogue::Relu {
            row.iter_mut().for_each(|y| *y = y.max(0.0));
        }
    }
    Tensor::from_vec(&results, &sizes)
}
