//! What objects of the classes `torch.classes.quantized.*` and `torch.classes.rnn.*` hold: weights in the form that
//! kernels want, packed when they are first used, with the state that `__getstate__` gives and `__setstate__` takes.

use crate::diag::{Diagnostic, Result};
use crate::dialects::CustomClass;
use crate::ir::{Symbol, Type, TypeKind};
use crate::tensor::{Quantizer, Tensor};
use crate::value::{Native, Object, Value};
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// Qualified names of the classes.
pub mod class {
    /// Weights of linear layers.
    pub const LINEAR: &str = "__torch__.torch.classes.quantized.LinearPackedParamsBase";
    /// Weights of convolutions over one or two dimensions.
    pub const CONV2D: &str = "__torch__.torch.classes.quantized.Conv2dPackedParamsBase";
    /// Weights of convolutions over three dimensions.
    pub const CONV3D: &str = "__torch__.torch.classes.quantized.Conv3dPackedParamsBase";
    /// Tables of embeddings.
    pub const EMBEDDING: &str = "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase";
    /// Weights of recurrent cells.
    pub const CELL: &str = "__torch__.torch.classes.rnn.CellParamsBase";
}

/// A cell for what a kernel makes of the weights once.
#[derive(Default)]
pub struct Prepared(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Prepared {
    /// What `make` gave the first time. The type must be the same at each call.
    pub fn get<T: Any + Send + Sync>(&self, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let found = match self.0.get() {
            Some(found) => Arc::clone(found),
            None => {
                let made: Arc<dyn Any + Send + Sync> = Arc::new(make()?);
                Arc::clone(self.0.get_or_init(|| made))
            }
        };
        found.downcast().map_err(|_| Diagnostic::internal("weights packed for another kernel"))
    }
}

/// Weights of a linear layer: `[out, in]`, qint8, or float32 with values of float16.
pub struct LinearWeights {
    /// The weight as given.
    pub weight: Tensor,
    /// float32, one an output.
    pub bias: Option<Tensor>,
    /// What kernels keep.
    pub prepared: Prepared,
}

/// Weights of a convolution, transposed or not. One dimension is kept as two, the first of size 1.
pub struct ConvWeights {
    /// qint8, `[out, in / groups, kernel...]`, transposed `[in, out / groups, kernel...]`.
    pub weight: Tensor,
    /// float32, one an output channel.
    pub bias: Option<Tensor>,
    /// One a spatial dimension.
    pub stride: Vec<i64>,
    /// One a spatial dimension.
    pub padding: Vec<i64>,
    /// One a spatial dimension.
    pub output_padding: Vec<i64>,
    /// One a spatial dimension.
    pub dilation: Vec<i64>,
    /// Groups of channels.
    pub groups: i64,
    /// Whether it is transposed.
    pub transpose: bool,
    /// What kernels keep.
    pub prepared: Prepared,
}

/// A table of embeddings: rows quantized each with a scale of its own, to bytes, 4 or 2 bits.
pub struct EmbeddingWeights {
    /// quint8, quint4x2 or quint2x4 with float scales.
    pub weight: Tensor,
    /// Version of the state, 1.
    pub version: i64,
    /// What kernels keep.
    pub prepared: Prepared,
}

/// Weights of a recurrent cell.
pub enum CellWeights {
    /// int8 weights, inputs quantized at each call.
    Dynamic {
        /// From the input.
        input: Object,
        /// From the hidden state.
        hidden: Object,
        /// Bias beside the input's weights.
        input_bias: Tensor,
        /// Bias beside the hidden state's weights.
        hidden_bias: Tensor,
        /// Inputs are quantized to half of the range.
        reduce_range: bool,
    },
    /// Weights of 16 bits; the biases are in them.
    Half {
        /// From the input.
        input: Object,
        /// From the hidden state.
        hidden: Object,
    },
}

impl LinearWeights {
    /// Whether they are of 16 bits.
    pub fn is_half(&self) -> bool {
        !self.weight.is_quantized()
    }
}

impl ConvWeights {
    /// Spatial dimensions as kept: 2 or 3.
    pub fn spatial(&self) -> usize {
        self.stride.len()
    }

    /// As an object of the class for its dimensions. Fails where the numbers do not fit the weight.
    pub fn object(self) -> Result<Object> {
        let name = self.check()?;
        Ok(Object::with_native(Symbol::new(name), native(self)))
    }

    /// The class for its dimensions. Fails where the numbers do not fit the weight.
    fn check(&self) -> Result<&'static str> {
        let name = match (self.spatial(), self.weight.rank()) {
            (2, 4) => class::CONV2D,
            (3, 5) => class::CONV3D,
            (spatial, rank) => {
                return Err(Diagnostic::runtime(format!(
                    "quantized convolution weights of {rank} dimensions with {spatial} strides"
                )));
            }
        };
        let most = i64::from(i32::MAX);
        let fits = |list: &[i64], least: i64| {
            list.len() == self.spatial() && list.iter().all(|x| (least..=most).contains(x))
        };
        if !fits(&self.stride, 1)
            || !fits(&self.dilation, 1)
            || !fits(&self.padding, 0)
            || !fits(&self.output_padding, 0)
            || !(1..=most).contains(&self.groups)
        {
            return Err(Diagnostic::runtime(
                "stride, dilation and groups of a quantized convolution must be positive, padding must not be negative",
            ));
        }
        Ok(name)
    }

    /// The numbers of the state: dimensions, stride, padding, dilation, output padding, groups, transposed.
    fn numbers(&self) -> Vec<i16> {
        let lists = [&self.stride, &self.padding, &self.dilation, &self.output_padding];
        let mut numbers = vec![self.spatial() as i16];
        numbers.extend(lists.iter().flat_map(|list| list.iter().map(|x| *x as i16)));
        numbers.extend([self.groups as i16, i16::from(self.transpose)]);
        numbers
    }

    /// From the numbers of a state.
    fn from_numbers(numbers: &[i64], weight: Tensor, bias: Option<Tensor>) -> Result<ConvWeights> {
        let wrong = || Diagnostic::input("the state of packed convolution weights has the wrong numbers");
        let spatial = numbers.first().and_then(|n| usize::try_from(*n).ok()).ok_or_else(wrong)?;
        if !(1..=3).contains(&spatial) || numbers.len() != 3 + 4 * spatial {
            return Err(wrong());
        }
        let list = |n: usize| numbers[1 + n * spatial..1 + (n + 1) * spatial].to_vec();
        Ok(ConvWeights {
            weight,
            bias,
            stride: list(0),
            padding: list(1),
            dilation: list(2),
            output_padding: list(3),
            groups: numbers[1 + 4 * spatial],
            transpose: numbers[2 + 4 * spatial] != 0,
            prepared: Prepared::default(),
        })
    }
}

/// The classes, with the ops that their methods call.
pub static CLASSES: &[CustomClass] = &[
    CustomClass {
        name: class::LINEAR,
        summary: "weights of a linear layer",
        set_state: |state| linear_from(state).map(native),
        get_state: state,
        methods: &[("unpack", "quantized::linear_unpack")],
    },
    CustomClass {
        name: class::CONV2D,
        summary: "weights of a convolution over one or two dimensions",
        set_state: |state| conv_from(class::CONV2D, state).map(native),
        get_state: state,
        methods: &[
            ("unpack", "quantized::conv2d_unpack"),
            ("stride", "quantized::conv2d_stride"),
            ("padding", "quantized::conv2d_padding"),
            ("output_padding", "quantized::conv2d_output_padding"),
            ("dilation", "quantized::conv2d_dilation"),
            ("groups", "quantized::conv2d_groups"),
        ],
    },
    CustomClass {
        name: class::CONV3D,
        summary: "weights of a convolution over three dimensions",
        set_state: |state| conv_from(class::CONV3D, state).map(native),
        get_state: state,
        methods: &[
            ("unpack", "quantized::conv3d_unpack"),
            ("stride", "quantized::conv3d_stride"),
            ("padding", "quantized::conv3d_padding"),
            ("output_padding", "quantized::conv3d_output_padding"),
            ("dilation", "quantized::conv3d_dilation"),
            ("groups", "quantized::conv3d_groups"),
        ],
    },
    CustomClass {
        name: class::EMBEDDING,
        summary: "a table of embeddings",
        set_state: |state| embedding_from(state).map(native),
        get_state: state,
        methods: &[("unpack", "quantized::embedding_bag_unpack")],
    },
    CustomClass {
        name: class::CELL,
        summary: "weights of a recurrent cell",
        set_state: |state| cell_from(state).map(native),
        get_state: state,
        methods: &[],
    },
];

fn native<T: Any + Send + Sync>(held: T) -> Native {
    Arc::new(held)
}

fn wrong(name: &str) -> Diagnostic {
    let short = name.rsplit('.').next().unwrap_or(name);
    Diagnostic::input(format!("the state of a {short} is not what PyTorch writes"))
}

fn opt_tensor(value: &Value) -> Result<Option<Tensor>> {
    if value.is_none() { Ok(None) } else { value.to_tensor().cloned().map(Some) }
}

fn linear_from(state: &Value) -> Result<LinearWeights> {
    match state.to_tuple()?.items() {
        [weight, bias] => linear_weights(weight.to_tensor()?.clone(), opt_tensor(bias)?),
        _ => Err(wrong(class::LINEAR)),
    }
}

/// Checked weights of a linear layer, as an object.
pub fn linear(weight: Tensor, bias: Option<Tensor>) -> Result<Object> {
    Ok(Object::with_native(Symbol::new(class::LINEAR), native(linear_weights(weight, bias)?)))
}

fn linear_weights(weight: Tensor, bias: Option<Tensor>) -> Result<LinearWeights> {
    if weight.rank() != 2 {
        return Err(Diagnostic::runtime(
            "The weight tensor for quantized::linear_prepack should be 2-dimensional.",
        ));
    }
    if let Some(bias) = &bias
        && (bias.rank() != 1 || bias.sizes()[0] != weight.sizes()[0])
    {
        return Err(Diagnostic::runtime(format!("bias should have N elements: {}", weight.sizes()[0])));
    }
    Ok(LinearWeights { weight, bias, prepared: Prepared::default() })
}

/// States of version 1 begin with the weight, those of version 2 with the text `2`, those of version 3 with an int.
fn conv_from(name: &str, state: &Value) -> Result<ConvWeights> {
    let items = state.to_tuple()?.items();
    let weights = match items {
        [Value::Tensor(weight), bias, stride, padding, dilation, groups, ..] => {
            let list = |value: &Value| -> Result<Vec<i64>> {
                value.to_tensors()?.iter().map(|t| Ok(t.item()?.to_i64())).collect()
            };
            let stride = list(stride)?;
            ConvWeights {
                weight: weight.clone(),
                bias: opt_tensor(bias)?,
                output_padding: vec![0; stride.len()],
                stride,
                padding: list(padding)?,
                dilation: list(dilation)?,
                groups: groups.to_tensor()?.item()?.to_i64(),
                transpose: false,
                prepared: Prepared::default(),
            }
        }
        [Value::Str(_), tensors, optional] => {
            let (tensors, optional) = (tensors.to_tensors()?, optional.to_list()?.to_vec());
            let [numbers, weight] = &tensors[..] else { return Err(wrong(name)) };
            let bias = optional.first().map(opt_tensor).transpose()?.flatten();
            ConvWeights::from_numbers(&numbers.elements_as::<i64>()?, weight.clone(), bias)?
        }
        [Value::Int(_), numbers, tensors] => {
            let tensors = tensors.to_list()?.to_vec();
            let [_, weight, bias] = &tensors[..] else { return Err(wrong(name)) };
            ConvWeights::from_numbers(&numbers.to_ints()?, weight.to_tensor()?.clone(), opt_tensor(bias)?)?
        }
        _ => return Err(wrong(name)),
    };
    if weights.check()? == name { Ok(weights) } else { Err(wrong(name)) }
}

fn embedding_from(state: &Value) -> Result<EmbeddingWeights> {
    let [version, tensors, _, _] = state.to_tuple()?.items() else { return Err(wrong(class::EMBEDDING)) };
    match &tensors.to_tensors()?[..] {
        [weight, ..] => {
            check_table(weight)?;
            let (weight, version) = (weight.clone(), version.to_int()?);
            Ok(EmbeddingWeights { weight, version, prepared: Prepared::default() })
        }
        [] => Err(wrong(class::EMBEDDING)),
    }
}

fn check_table(weight: &Tensor) -> Result<()> {
    let float = matches!(weight.quantizer().as_deref(), Some(Quantizer::PerChannelFloat { axis: 0, .. }));
    if !float || weight.rank() != 2 {
        return Err(Diagnostic::runtime(
            "Expect embedding_bag weights to be quantized using kPerChannelAffineFloatQParams, with 2 dimensions",
        ));
    }
    Ok(())
}

/// A table of embeddings as an object. Fails unless it is a matrix with a float scale for each row.
pub fn embedding(weight: Tensor, version: i64) -> Result<Object> {
    check_table(&weight)?;
    let payload = EmbeddingWeights { weight, version, prepared: Prepared::default() };
    Ok(Object::with_native(Symbol::new(class::EMBEDDING), native(payload)))
}

fn cell_from(state: &Value) -> Result<CellWeights> {
    let [kind, tensors, _, ints, packed] = state.to_tuple()?.items() else { return Err(wrong(class::CELL)) };
    let packed: Vec<Object> =
        packed.to_list()?.to_vec().iter().map(|v| v.to_object().cloned()).collect::<Result<_>>()?;
    let [input, hidden] = &packed[..] else {
        return Err(Diagnostic::unsupported(format!(
            "recurrent cells with weights of kind '{}'",
            kind.to_str()?
        )));
    };
    let (input, hidden) = (input.clone(), hidden.clone());
    let cell = match kind.to_str()? {
        "quantized_dynamic" => match &tensors.to_tensors()?[..] {
            [input_bias, hidden_bias] => CellWeights::Dynamic {
                input,
                hidden,
                input_bias: input_bias.clone(),
                hidden_bias: hidden_bias.clone(),
                reduce_range: ints.to_ints()?.first().is_some_and(|x| *x != 0),
            },
            _ => return Err(wrong(class::CELL)),
        },
        "quantized_fp16" => CellWeights::Half { input, hidden },
        other => {
            return Err(Diagnostic::unsupported(format!("recurrent cells with weights of kind '{other}'")));
        }
    };
    Ok(cell)
}

impl CellWeights {
    /// As an object.
    pub fn object(self) -> Object {
        Object::with_native(Symbol::new(class::CELL), Arc::new(self))
    }
}

/// What `__getstate__` of an object of these classes gives.
fn state(object: &Object) -> Result<Value> {
    if let Some(linear) = object.native::<LinearWeights>() {
        return Ok(Value::tuple(vec![linear.weight.clone().into(), linear.bias.clone().into()]));
    }
    if let Some(conv) = object.native::<ConvWeights>() {
        let numbers = conv.numbers();
        let numbers = Tensor::from_vec(&numbers, &[numbers.len() as i64])?;
        let optional = Type::optional(Type::tensor());
        return Ok(Value::tuple(vec![
            Value::str("2"),
            Value::tensors([numbers, conv.weight.clone()]),
            Value::list(optional, vec![conv.bias.clone().into()]),
        ]));
    }
    if let Some(table) = object.native::<EmbeddingWeights>() {
        return Ok(Value::tuple(vec![
            Value::Int(table.version),
            Value::tensors([table.weight.clone()]),
            Value::list(Type::float(), Vec::new()),
            Value::ints([bit_rate(table)]),
        ]));
    }
    let cell = object.native::<CellWeights>();
    cell.map(cell_state).ok_or_else(|| Diagnostic::internal(format!("the state of a {}", object.class())))
}

/// Bits an element of a table.
fn bit_rate(table: &EmbeddingWeights) -> i64 {
    match table.weight.dtype() {
        crate::tensor::DType::QU4x2 => 4,
        crate::tensor::DType::QU2x4 => 2,
        _ => 8,
    }
}

fn cell_state(cell: &CellWeights) -> Value {
    let packed = |input: &Object, hidden: &Object| {
        let ty = Type::new(TypeKind::Class(Symbol::new(class::LINEAR)));
        Value::list(ty, vec![Value::Object(input.clone()), Value::Object(hidden.clone())])
    };
    let floats = Value::list(Type::float(), Vec::new());
    let (kind, tensors, ints, objects) = match cell {
        CellWeights::Dynamic { input, hidden, input_bias, hidden_bias, reduce_range } => (
            "quantized_dynamic",
            vec![input_bias.clone(), hidden_bias.clone()],
            vec![i64::from(*reduce_range)],
            packed(input, hidden),
        ),
        CellWeights::Half { input, hidden } => ("quantized_fp16", vec![], vec![], packed(input, hidden)),
    };
    Value::tuple(vec![Value::str(kind), Value::tensors(tensors), floats, Value::ints(ints), objects])
}

/// What an argument of a class of these holds.
pub fn payload<T: Any>(value: &Value) -> Result<&T> {
    value
        .to_object()?
        .native::<T>()
        .ok_or_else(|| Diagnostic::runtime(format!("packed weights of another kind: {}", value.kind_name())))
}
