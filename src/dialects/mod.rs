//! Dialects: what each op is. An op is one row ([`OpDef`]) that type rules, reference evaluation, lowering,
//! derivatives, effects and documentation all read.
//!
//! This layer knows values and types; it does not know how graphs are run, optimized or compiled.

mod alias;
mod args;
mod attend;
mod autograd;
mod classes;
mod effects;
mod floats;
pub mod constraint;
mod contract;
mod run;
mod foreign;
pub mod grads;
pub mod layer_part;
mod laws;
pub mod generator;
mod op_def;
mod profiled;
mod registry;
mod resolve;
pub mod region;
pub mod rows;
pub mod scalar;
pub mod shapes;
pub mod structure;
pub mod text;
mod autocast;
mod torchscript_gradients;

pub mod aten;
pub mod fusion;
pub mod loops;
pub mod mkldnn;
pub mod prepacked;
pub mod prim;
pub mod quantized;
pub mod torchaudio;
pub mod transformers;
pub mod torchvision;

pub use crate::resources::Limits;
pub use alias::Alias;
pub use args::{Args, Node, Outputs, one};
pub use autocast::{AutocastPolicy, autocast_policy};
pub use autograd::{Autograd, Compute, Gradients, Recorded, Region};
pub use classes::{CustomClass, is_custom_class, unknown_class};
pub use contract::Contract;
pub use effects::Effects;
pub use foreign::result_type;
pub use laws::{Laws, NOT_LOWERED, Strictness, check_type};
pub use layer_part::LayerPart;
pub use op_def::{
    Accepts, Check, Fact, Family, Given, HiddenMarks, Infer, Kernel, NumberAs, OpDef, Order, OutRule,
    Promote, Quantized, ScalarFn, Tolerance, composite, container, contraction, control, create, elementwise,
    gather, host, opaque, reduce, regional, view,
};
pub use profiled::{has_profiled_results, is_profiled};
pub use registry::{Op, Registry, Variant};
pub use resolve::{matches, resolve};
pub use run::{CancelHandle, Composites, GraphId, GroupObserver, Methods, Run, StateKeeper, Watcher};
pub use torchscript_gradients::has_torchscript_gradient;
