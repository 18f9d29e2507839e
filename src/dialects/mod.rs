//! Dialects: what each op is. An op is one row ([`OpDef`]) that type rules, reference evaluation, lowering,
//! derivatives, effects and documentation all read.
//!
//! This layer knows values and types; it does not know how graphs are run, optimized or compiled.

mod alias;
mod args;
mod attend;
mod autograd;
mod built_in;
mod cells;
mod classes;
mod draw;
pub mod dropout;
mod effects;
mod floats;
pub mod constraint;
mod contract;
mod run;
mod fit;
mod foreign;
mod forms;
pub mod grads;
pub mod layer_part;
mod laws;
mod model;
mod op;
mod op_def;
mod profiled;
mod registry;
mod resolve;
pub mod region;
pub mod rows;
pub mod scalar;
mod shared;
pub mod shapes;
pub mod structure;
pub mod text;
mod autocast;
mod torchscript_gradients;
mod watch;

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
pub use args::one;
pub use autocast::{AutocastPolicy, autocast_policy};
pub use autograd::{Gradients, Recorded};
pub use cells::{
    Accepts, Check, Fact, Family, Given, HiddenMarks, NumberAs, Order, OutRule, Promote, ScalarFn, Tolerance,
};
pub use classes::{CustomClass, is_custom_class, unknown_class};
pub use contract::Contract;
pub use effects::Effects;
pub use fit::matches;
pub use foreign::result_type;
pub use laws::{Laws, NOT_LOWERED, Strictness, check_type};
pub use layer_part::LayerPart;
pub use model::{
    Args, Autograd, Composites, Compute, Infer, Kernel, Methods, Node, Op, OpDef, Outputs, Quantized, Region,
    Run, Variant,
};
pub use op_def::{
    composite, container, contraction, control, create, elementwise, gather, host, opaque, reduce, regional,
    view,
};
pub use profiled::{has_profiled_results, is_profiled};
pub use registry::Registry;
pub use resolve::resolve;
pub use run::CancelHandle;
pub use torchscript_gradients::has_torchscript_gradient;
pub use watch::{GraphId, GroupObserver, Watcher};
