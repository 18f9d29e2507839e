//! The `prepacked` dialect: linear layers and convolutions followed by a clamp, whose weights
//! `torch.utils.mobile_optimizer.optimize_for_mobile` packs for XNNPACK, and convolutions that are packed for oneDNN.
//! An archive keeps the weights as they were before the packing, so that a context here is these tensors and numbers;
//! it computes what the plain ops compute.

use super::aten::contraction::linear;
use super::aten::convolution::{Call, convolve};
use super::{Args, CustomClass, OpDef, Outputs, contraction, host, one};
use crate::diag::{Diagnostic, Result};
use crate::ir::Symbol;
use crate::tensor::pointwise::map1;
use crate::tensor::{DType, Scalar, Tensor};
use crate::value::{Native, Object, Value};
use std::sync::Arc;

/// All rows.
pub static TABLES: &[&[OpDef]] = &[OPS];

static OPS: &[OpDef] = &[
    host(
        "prepacked::linear_clamp_prepack(Tensor W, Tensor? B=None, Scalar? output_min=None, Scalar? output_max=None) -> __torch__.torch.classes.xnnpack.LinearOpContext",
        |a| pack(a, LINEAR, Geometry::default()),
    )
    .doc("a linear layer followed by a clamp, ready to run"),
    contraction(
        "prepacked::linear_clamp_run(Tensor X, __torch__.torch.classes.xnnpack.LinearOpContext W_prepack) -> Tensor Y",
        |a| run(a, LINEAR),
    ),
    host(
        "prepacked::conv2d_clamp_prepack(Tensor W, Tensor? B, int[2] stride, int[2] padding, int[2] dilation, int groups, Scalar? output_min=None, Scalar? output_max=None) -> __torch__.torch.classes.xnnpack.Conv2dOpContext",
        |a| {
            let geometry = Geometry {
                stride: a.ints_of(2, 2)?,
                padding: a.ints_of(3, 2)?,
                dilation: a.ints_of(4, 2)?,
                groups: a.int(5)?,
                ..Geometry::default()
            };
            pack(a, CONV2D, geometry)
        },
    )
    .doc("a convolution followed by a clamp, ready to run"),
    contraction(
        "prepacked::conv2d_clamp_run(Tensor X, __torch__.torch.classes.xnnpack.Conv2dOpContext W_prepack) -> Tensor Y",
        |a| run(a, CONV2D),
    ),
    host(
        "prepacked::conv2d_transpose_clamp_prepack(Tensor W, Tensor? B, int[2] stride, int[2] padding, int[2] output_padding, int[2] dilation, int groups, Scalar? output_min=None, Scalar? output_max=None) -> __torch__.torch.classes.xnnpack.TransposeConv2dOpContext",
        |a| {
            let geometry = Geometry {
                stride: a.ints_of(2, 2)?,
                padding: a.ints_of(3, 2)?,
                dilation: a.ints_of(5, 2)?,
                groups: a.int(6)?,
                output_padding: Some(a.ints_of(4, 2)?),
                input: None,
            };
            pack(a, TRANSPOSED, geometry)
        },
    )
    .doc("a transposed convolution followed by a clamp, ready to run"),
    contraction(
        "prepacked::conv2d_transpose_clamp_run(Tensor X, __torch__.torch.classes.xnnpack.TransposeConv2dOpContext W_prepack) -> Tensor Y",
        |a| run(a, TRANSPOSED),
    ),
    host(
        "mkldnn_prepacked::conv2d_prepack(Tensor W, Tensor? B, int[2] stride, int[2] padding, int[2] dilation, int groups, int[4] input_size, str attr) -> __torch__.torch.classes.mkldnn.ConvOpContext",
        |a| {
            let geometry = Geometry {
                stride: a.ints_of(2, 2)?,
                padding: a.ints_of(3, 2)?,
                dilation: a.ints_of(4, 2)?,
                groups: a.int(5)?,
                input: Some(a.ints_of(6, 4)?),
                ..Geometry::default()
            };
            let parts = [a.value(0)?, a.value(1)?, &function(a.str(7)?)?, &Value::None];
            let native: Native = Arc::new(Context::new(MKLDNN, parts, geometry)?);
            one(Value::Object(Object::with_native(Symbol::new(MKLDNN), native)))
        },
    )
    .doc("a convolution optionally followed by relu, ready to run on inputs of a size"),
    contraction(
        "mkldnn_prepacked::conv2d_run(Tensor X, __torch__.torch.classes.mkldnn.ConvOpContext W_prepack) -> Tensor Y",
        |a| run(a, MKLDNN),
    ),
    host("prepacked::unpack_prepacked_sizes_linear(Any W_prepack) -> Any", |a| sizes(a, LINEAR))
        .doc("the sizes of weight and bias"),
    host("prepacked::unpack_prepacked_sizes_conv2d(Any W_prepack) -> Any", |a| sizes(a, CONV2D))
        .doc("the sizes of weight and bias, stride, padding, dilation and groups"),
];

const LINEAR: &str = "__torch__.torch.classes.xnnpack.LinearOpContext";
const CONV2D: &str = "__torch__.torch.classes.xnnpack.Conv2dOpContext";
const MKLDNN: &str = "__torch__.torch.classes.mkldnn.ConvOpContext";
const TRANSPOSED: &str = "__torch__.torch.classes.xnnpack.TransposeConv2dOpContext";

/// The classes of contexts.
pub static CLASSES: &[CustomClass] = &[
    CustomClass {
        name: LINEAR,
        summary: "a linear layer followed by a clamp",
        set_state: |state| {
            let [weight, bias, low, high] = parts(state)?;
            restored(LINEAR, [weight, bias, low, high], Geometry::default())
        },
        get_state: |object| Ok(Value::tuple(context(object)?.state(|_| Vec::new()))),
        methods: &[],
    },
    CustomClass {
        name: CONV2D,
        summary: "a convolution followed by a clamp",
        set_state: |state| {
            let [weight, bias, stride, padding, dilation, groups, low, high] = parts(state)?;
            let geometry = Geometry {
                stride: pair(stride)?,
                padding: pair(padding)?,
                dilation: pair(dilation)?,
                groups: groups.to_int()?,
                ..Geometry::default()
            };
            restored(CONV2D, [weight, bias, low, high], geometry)
        },
        get_state: |object| {
            Ok(Value::tuple(
                context(object)?.state(|g| {
                    vec![ints(&g.stride), ints(&g.padding), ints(&g.dilation), Value::Int(g.groups)]
                }),
            ))
        },
        methods: &[],
    },
    CustomClass {
        name: TRANSPOSED,
        summary: "a transposed convolution followed by a clamp",
        set_state: |state| {
            let [weight, bias, stride, padding, output_padding, dilation, groups, low, high] = parts(state)?;
            let geometry = Geometry {
                stride: pair(stride)?,
                padding: pair(padding)?,
                dilation: pair(dilation)?,
                groups: groups.to_int()?,
                output_padding: Some(pair(output_padding)?),
                input: None,
            };
            restored(TRANSPOSED, [weight, bias, low, high], geometry)
        },
        get_state: |object| {
            Ok(Value::tuple(context(object)?.state(|g| {
                let extra = g.output_padding.as_deref().unwrap_or_default();
                let places = [&*g.stride, &*g.padding, extra, &*g.dilation];
                places.map(ints).into_iter().chain([Value::Int(g.groups)]).collect()
            })))
        },
        methods: &[],
    },
    CustomClass {
        name: MKLDNN,
        summary: "a convolution optionally followed by relu",
        set_state: |state| {
            let [weight, bias, stride, padding, dilation, groups, input, attr] = parts(state)?;
            let geometry = Geometry {
                stride: pair(stride)?,
                padding: pair(padding)?,
                dilation: pair(dilation)?,
                groups: groups.to_int()?,
                input: Some(input.to_ints()?),
                ..Geometry::default()
            };
            restored(MKLDNN, [weight, bias, &function(attr.to_str()?)?, &Value::None], geometry)
        },
        get_state: |object| {
            let context = context(object)?;
            let g = &context.geometry;
            let attr = if context.low.is_some() { "relu" } else { "none" };
            let mut state = context
                .state(|g| vec![ints(&g.stride), ints(&g.padding), ints(&g.dilation), Value::Int(g.groups)]);
            state.truncate(6);
            state.extend([ints(g.input.as_deref().unwrap_or_default()), Value::Str(attr.into())]);
            Ok(Value::tuple(state))
        },
        methods: &[],
    },
];

/// The least result of a layer followed by a function.
fn function(attr: &str) -> Result<Value> {
    match attr {
        "none" => Ok(Value::None),
        "relu" => Ok(Value::Int(0)),
        _ => Err(Diagnostic::runtime("Fusion behavior undefined.")),
    }
}

/// A layer that is ready to run.
struct Context {
    class: &'static str,
    weight: Tensor,
    bias: Option<Tensor>,
    geometry: Geometry,
    low: Option<Scalar>,
    high: Option<Scalar>,
}

/// How the window of a convolution moves; nothing of a linear layer.
#[derive(Default)]
struct Geometry {
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    groups: i64,
    /// Of a transposed convolution.
    output_padding: Option<Vec<i64>>,
    /// Sizes of the inputs that oneDNN packs for; others are taken all the same.
    input: Option<Vec<i64>>,
}

impl Context {
    /// A context of a class: float32 tensors of its ranks.
    fn new(class: &'static str, parts: [&Value; 4], geometry: Geometry) -> Result<Context> {
        let [weight, bias, low, high] = parts;
        let weight = weight.to_tensor()?.clone();
        let bias = if bias.is_none() { None } else { Some(bias.to_tensor()?.clone()) };
        let bound = |value: &Value| if value.is_none() { Ok(None) } else { value.to_scalar().map(Some) };
        let rank = if class == LINEAR { 2 } else { 4 };
        let fits = weight.dtype() == DType::F32 && weight.rank() == rank;
        if !fits || bias.as_ref().is_some_and(|b| b.dtype() != DType::F32 || b.rank() != 1) {
            return Err(Diagnostic::runtime(format!(
                "a packed layer needs a float weight of {rank} dimensions and a float bias of one, but got a weight of {} with {}",
                weight.dtype().type_name(),
                weight.rank()
            )));
        }
        Ok(Context { class, weight, bias, geometry, low: bound(low)?, high: bound(high)? })
    }

    /// What an archive has of it; `between` follows weight and bias.
    fn state(&self, between: impl FnOnce(&Geometry) -> Vec<Value>) -> Vec<Value> {
        let bound = |bound: Option<Scalar>| bound.map_or(Value::None, |x| Value::Float(x.to_f64()));
        let bias = self.bias.clone().map_or(Value::None, Value::Tensor);
        let mut state = vec![Value::Tensor(self.weight.clone()), bias];
        state.extend(between(&self.geometry));
        state.extend([bound(self.low), bound(self.high)]);
        state
    }

    fn run(&self, input: &Tensor) -> Result<Tensor> {
        if input.dtype() != DType::F32 {
            let dtype = input.dtype().type_name();
            return Err(Diagnostic::runtime(format!("a packed layer takes float tensors, but got {dtype}")));
        }
        let result = if self.class == LINEAR {
            linear(input, &self.weight, self.bias.as_ref())?
        } else {
            convolve(Call {
                input,
                weight: &self.weight,
                bias: self.bias.as_ref(),
                stride: self.geometry.stride.clone(),
                padding: (self.geometry.padding.clone(), self.geometry.padding.clone()),
                dilation: self.geometry.dilation.clone(),
                output_padding: self.geometry.output_padding.clone(),
                groups: self.geometry.groups,
            })?
        };
        if self.low.is_none() && self.high.is_none() {
            return Ok(result);
        }
        let low = self.low.map_or(f32::NEG_INFINITY, |x| x.to_f64() as f32);
        let high = self.high.map_or(f32::INFINITY, |x| x.to_f64() as f32);
        // Comparisons, and not `clamp`, which panics where the bounds stand the wrong way round.
        map1::<f32, f32>(&result, move |x| {
            let x = if x < low { low } else { x };
            if x > high { high } else { x }
        })
    }
}

/// The context of an object.
fn context(object: &Object) -> Result<&Context> {
    let wrong = || Diagnostic::runtime(format!("Expected a packed layer but got a {}", object.class()));
    object.native::<Context>().ok_or_else(wrong)
}

fn pack(a: &Args<'_>, class: &'static str, geometry: Geometry) -> Result<Outputs> {
    let bounds = a.values.len().saturating_sub(2);
    let parts = [a.value(0)?, a.value(1)?, a.value(bounds)?, a.value(bounds + 1)?];
    let native: Native = Arc::new(Context::new(class, parts, geometry)?);
    one(Value::Object(Object::with_native(Symbol::new(class), native)))
}

fn run(a: &Args<'_>, class: &'static str) -> Result<Outputs> {
    let context = context(a.value(1)?.to_object()?)?;
    if context.class != class {
        let found = context.class;
        return Err(Diagnostic::runtime(format!("{} takes a {class}, but got a {found}", a.op.name())));
    }
    one(context.run(a.tensor(0)?)?)
}

fn sizes(a: &Args<'_>, class: &'static str) -> Result<Outputs> {
    let context = context(a.value(0)?.to_object()?)?;
    let bias = context.bias.as_ref().map_or(Value::None, |b| ints(&b.sizes()));
    let mut out = vec![ints(&context.weight.sizes()), bias];
    if class == CONV2D {
        let g = &context.geometry;
        out.extend([ints(&g.stride), ints(&g.padding), ints(&g.dilation), Value::Int(g.groups)]);
    }
    one(Value::tuple(out))
}

fn restored(class: &'static str, parts: [&Value; 4], geometry: Geometry) -> Result<Native> {
    Ok(Arc::new(Context::new(class, parts, geometry)?))
}

/// The items of a state, which must have this length.
fn parts<const N: usize>(state: &Value) -> Result<[&Value; N]> {
    let items = state.to_tuple()?.items();
    let all: Vec<&Value> = items.iter().collect();
    let count = all.len();
    all.try_into().map_err(|_| Diagnostic::input(format!("it has {count} parts, and {N} are needed")))
}

/// One int for each of two dimensions.
fn pair(value: &Value) -> Result<Vec<i64>> {
    let ints = value.to_ints()?;
    match ints.as_slice() {
        [_, _] => Ok(ints),
        [one] => Ok(vec![*one; 2]),
        _ => Err(Diagnostic::input(format!("{ints:?} where two ints are needed"))),
    }
}

fn ints(values: &[i64]) -> Value {
    Value::ints(values.iter().copied())
}
