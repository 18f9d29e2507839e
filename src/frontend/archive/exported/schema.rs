//! What `models/NAME.json` says: the message that `torch.export` writes (its `schema.yaml`, major version 8), as types. It
//! knows no other entry of the archive and no operator. Fields that a later minor version adds are passed over; a kind of
//! argument that is not known here is an error.

use crate::diag::{Diagnostic, Result};
use indexmap::IndexMap;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

/// The major version of the message that can be read; PyTorch, too, asks for its own.
pub(super) const MAJOR: i64 = 8;

/// An exported program.
#[derive(Debug, Deserialize)]
pub(super) struct Program {
    pub(super) graph_module: GraphModule,
    #[serde(default)]
    pub(super) range_constraints: IndexMap<String, Range>,
}

/// Version of the message.
#[derive(Debug, Deserialize)]
pub(super) struct Version {
    pub(super) major: i64,
    pub(super) minor: i64,
}

/// What a size may be that the file leaves open, both ends included.
#[derive(Debug, Deserialize)]
pub(super) struct Range {
    pub(super) min_val: Option<i64>,
    pub(super) max_val: Option<i64>,
}

/// A graph with what its inputs and outputs are for.
#[derive(Debug, Deserialize)]
pub(super) struct GraphModule {
    pub(super) graph: Graph,
    pub(super) signature: Signature,
    #[serde(default)]
    pub(super) module_call_graph: Vec<ModuleCall>,
    #[serde(default)]
    pub(super) treespec_namedtuple_fields: IndexMap<String, NamedTuple>,
}

/// The fields of a named tuple.
#[derive(Debug, Deserialize)]
pub(super) struct NamedTuple {
    pub(super) field_names: Vec<String>,
}

/// How a module was called; only that of the root is read.
#[derive(Debug, Deserialize)]
pub(super) struct ModuleCall {
    pub(super) fqn: String,
    pub(super) signature: Option<CallSignature>,
}

/// The shapes of arguments and results as texts, and names of arguments.
#[derive(Debug, Deserialize)]
pub(super) struct CallSignature {
    pub(super) in_spec: String,
    pub(super) out_spec: String,
    #[serde(default)]
    pub(super) forward_arg_names: Option<Vec<String>>,
}

/// Nodes in order of execution; values have names that are used once.
#[derive(Debug, Deserialize)]
pub(super) struct Graph {
    pub(super) inputs: Vec<Argument>,
    pub(super) outputs: Vec<Argument>,
    pub(super) nodes: Vec<Node>,
    #[serde(default)]
    pub(super) tensor_values: IndexMap<String, TensorMeta>,
}

/// A call of an operator.
#[derive(Debug, Deserialize)]
pub(super) struct Node {
    pub(super) target: String,
    pub(super) inputs: Vec<NamedArgument>,
    pub(super) outputs: Vec<Argument>,
    #[serde(default)]
    pub(super) metadata: IndexMap<String, String>,
}

/// An argument by the name that the operator's schema gives it.
#[derive(Debug, Deserialize)]
pub(super) struct NamedArgument {
    pub(super) name: String,
    pub(super) arg: Argument,
}

/// An argument or result.
#[derive(Debug, Deserialize)]
pub(super) enum Argument {
    #[serde(rename = "as_none")]
    None(IgnoredAny),
    #[serde(rename = "as_tensor")]
    Tensor(Named),
    #[serde(rename = "as_tensors")]
    Tensors(Vec<Named>),
    #[serde(rename = "as_int")]
    Int(i64),
    #[serde(rename = "as_ints")]
    Ints(Vec<i64>),
    #[serde(rename = "as_float")]
    Float(Float),
    #[serde(rename = "as_floats")]
    Floats(Vec<Float>),
    #[serde(rename = "as_string")]
    String(String),
    #[serde(rename = "as_strings")]
    Strings(Vec<String>),
    #[serde(rename = "as_sym_int")]
    SymInt(SymIntArgument),
    #[serde(rename = "as_sym_ints")]
    SymInts(Vec<SymIntArgument>),
    #[serde(rename = "as_sym_float")]
    SymFloat(SymFloatArgument),
    #[serde(rename = "as_sym_floats")]
    SymFloats(Vec<SymFloatArgument>),
    #[serde(rename = "as_sym_bool")]
    SymBool(SymBoolArgument),
    #[serde(rename = "as_sym_bools")]
    SymBools(Vec<SymBoolArgument>),
    #[serde(rename = "as_scalar_type")]
    ScalarType(i64),
    #[serde(rename = "as_memory_format")]
    MemoryFormat(i64),
    #[serde(rename = "as_layout")]
    Layout(i64),
    #[serde(rename = "as_device")]
    Device(Device),
    #[serde(rename = "as_bool")]
    Bool(bool),
    #[serde(rename = "as_bools")]
    Bools(Vec<bool>),
    #[serde(rename = "as_graph")]
    Graph(Box<GraphArgument>),
    #[serde(rename = "as_optional_tensor")]
    OptionalTensor(OptionalTensor),
    #[serde(rename = "as_optional_tensors")]
    OptionalTensors(Vec<OptionalTensor>),
    #[serde(rename = "as_custom_obj")]
    CustomObj(CustomObject),
    #[serde(rename = "as_operator")]
    Operator(String),
    #[serde(rename = "as_complex")]
    Complex(Complex),
    #[serde(rename = "as_nested_tensors")]
    NestedTensors(Vec<Vec<Named>>),
    #[serde(rename = "as_int_lists")]
    IntLists(Vec<Vec<i64>>),
    #[serde(rename = "as_float_lists")]
    FloatLists(Vec<Vec<Float>>),
    #[serde(rename = "as_string_to_argument")]
    Dictionary(IgnoredAny),
}

/// The name of a value.
#[derive(Debug, Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
}

/// An object of a custom class.
#[derive(Debug, Deserialize)]
pub(super) struct CustomObject {
    pub(super) class_fqn: String,
}

/// A graph that an operator calls.
#[derive(Debug, Deserialize)]
pub(super) struct GraphArgument {
    pub(super) graph: Graph,
}

/// A tensor that may be missing.
#[derive(Debug, Deserialize)]
pub(super) enum OptionalTensor {
    #[serde(rename = "as_tensor")]
    Tensor(Named),
    #[serde(rename = "as_none")]
    None(IgnoredAny),
}

/// An int, or the name of one.
#[derive(Debug, Deserialize)]
pub(super) enum SymIntArgument {
    #[serde(rename = "as_name")]
    Name(String),
    #[serde(rename = "as_int")]
    Int(i64),
}

/// A float, or the name of one.
#[derive(Debug, Deserialize)]
pub(super) enum SymFloatArgument {
    #[serde(rename = "as_name")]
    Name(String),
    #[serde(rename = "as_float")]
    Float(Float),
}

/// A bool, or the name of one.
#[derive(Debug, Deserialize)]
pub(super) enum SymBoolArgument {
    #[serde(rename = "as_name")]
    Name(String),
    #[serde(rename = "as_bool")]
    Bool(bool),
}

/// A complex number.
#[derive(Debug, Deserialize)]
pub(super) struct Complex {
    pub(super) real: Float,
    pub(super) imag: Float,
}

/// A device.
#[derive(Debug, Deserialize)]
pub(super) struct Device {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) index: Option<i64>,
}

/// A size: a number, or an expression of symbols.
#[derive(Debug, Deserialize)]
pub(super) enum SymInt {
    #[serde(rename = "as_expr")]
    Expr(Expression),
    #[serde(rename = "as_int")]
    Int(i64),
}

/// An expression in sympy's syntax.
#[derive(Debug, Deserialize)]
pub(super) struct Expression {
    pub(super) expr_str: String,
}

/// What is known of a tensor.
#[derive(Debug, Deserialize)]
pub(super) struct TensorMeta {
    pub(super) dtype: i64,
    pub(super) sizes: Vec<SymInt>,
    #[serde(default)]
    pub(super) requires_grad: bool,
    pub(super) strides: Vec<SymInt>,
    pub(super) storage_offset: SymInt,
    #[serde(default = "strided")]
    pub(super) layout: i64,
}

/// The layout of tensors that have strides.
pub(super) const STRIDED: i64 = 7;

fn strided() -> i64 {
    STRIDED
}

/// What the inputs and outputs of the graph are for.
#[derive(Debug, Deserialize)]
pub(super) struct Signature {
    pub(super) input_specs: Vec<InputSpec>,
    pub(super) output_specs: Vec<OutputSpec>,
}

/// What an input is for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InputSpec {
    UserInput { arg: Argument },
    Parameter { parameter_name: String },
    Buffer { buffer_name: String },
    TensorConstant { tensor_constant_name: String },
    ConstantInput { value: Constant },
    CustomObj { custom_obj_name: String },
    Token {},
}

/// A value that an argument had when the program was exported, and must have.
#[derive(Debug, Deserialize)]
pub(super) enum Constant {
    #[serde(rename = "as_none")]
    None(IgnoredAny),
    #[serde(rename = "as_int")]
    Int(i64),
    #[serde(rename = "as_float")]
    Float(Float),
    #[serde(rename = "as_string")]
    String(String),
    #[serde(rename = "as_bool")]
    Bool(bool),
}

/// What an output is for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OutputSpec {
    UserOutput { arg: Argument },
    LossOutput { arg: Named },
    BufferMutation { arg: Named, buffer_name: String },
    ParameterMutation { arg: Named, parameter_name: String },
    UserInputMutation { arg: Named, user_input_name: String },
    GradientToParameter {},
    GradientToUserInput {},
    Token {},
}

/// Where the tensors of a model lie, by their qualified names.
#[derive(Debug, Deserialize)]
pub(super) struct PayloadConfig {
    pub(super) config: IndexMap<String, Payload>,
}

/// A tensor of a model.
#[derive(Debug, Deserialize)]
pub(super) struct Payload {
    pub(super) path_name: String,
    #[serde(default)]
    pub(super) is_param: bool,
    #[serde(default)]
    pub(super) use_pickle: bool,
    pub(super) tensor_meta: Option<TensorMeta>,
}

/// A float; those that JSON has no numbers for stand as texts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Float(pub(super) f64);

impl<'de> Deserialize<'de> for Float {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Float, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(f64),
            Text(String),
        }
        match Form::deserialize(from)? {
            Form::Number(number) => Ok(Float(number)),
            Form::Text(text) => match text.as_str() {
                "Infinity" => Ok(Float(f64::INFINITY)),
                "-Infinity" => Ok(Float(f64::NEG_INFINITY)),
                "NaN" => Ok(Float(f64::NAN)),
                _ => Err(serde::de::Error::custom(format!("`{text}` is not a float"))),
            },
        }
    }
}

/// Reads a message of an entry. The parser of JSON bounds how deep it is nested.
pub(super) fn parse<'a, T: Deserialize<'a>>(name: &str, bytes: &'a [u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Diagnostic::input(format!("{name}: {error}")))
}

/// The message of a program, whose version is asked first: one of another version may have other fields.
pub(super) fn parse_program(name: &str, bytes: &[u8]) -> Result<Program> {
    #[derive(Deserialize)]
    struct Versioned {
        schema_version: Version,
    }
    let Version { major, minor } = parse::<Versioned>(name, bytes)?.schema_version;
    if major != MAJOR {
        return Err(Diagnostic::unsupported(format!(
            "{name}: the program has version {major}.{minor} of torch.export's schema; versions {MAJOR}.x can be read"
        ))
        .hint("export the model again with PyTorch 2.8 or later"));
    }
    parse(name, bytes)
}
