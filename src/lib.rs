//! Flambeau runs saved TorchScript models without libtorch, and is a multi-dialect compiler framework.
//!
//! # Running a model
//!
//! [`Model::load`](prelude::Model::load) takes a `.pt` archive of `torch.jit.save`, TorchScript source or graph text; arguments are
//! tensors, numbers, lists. An error carries the reason, the place and a hint.
//!
//! ```
//! use flambeau::prelude::*;
//!
//! let model = Model::load("examples/small.pt")?;
//! let image = Tensor::from_owned(vec![0.5f32; 12], &[2, 6])?;
//! # let _ = image;
//! for (name, ty) in model.parameters("forward")? {
//!     println!("{name}: {ty}");
//! }
//! # Ok::<(), Diagnostic>(())
//! ```
//!
//! # Arrays in, arrays out
//!
//! Vectors and `ndarray` arrays become tensors where they lie, and results are read in place.
//!
//! ```
//! use flambeau::prelude::*;
//!
//! let model = Model::from_source("scale.py", "def scale(x: Tensor, by: float) -> Tensor:\n    return torch.relu(x) * by\n")?;
//! let x = Tensor::from_array(ndarray::array![[1.0f32, -2.0], [3.0, 4.0]])?;
//! let y = model.call("scale", [Value::from(x), Value::from(0.5)])?;
//! let sum = y.to_tensor()?.with_array::<f32, _>(|view| view.sum())?;
//! assert_eq!(sum, 4.0);
//! # Ok::<(), Diagnostic>(())
//! ```
//!
//! # Extending the compiler
//!
//! A [`Toolkit`](prelude::Toolkit) holds all that can be extended; its [`main`](prelude::Toolkit::main) is every command over it.
//! `docs/extend.md` builds `examples/my-opt`: a dialect with a type, an attribute, an op with a block, a derivative, lowerings, rules,
//! a pass and a backend.
//!
//! ```
//! use flambeau::prelude::*;
//!
//! let toolkit = Toolkit::new("my-opt")
//!     .op("mine::twice(int x) -> int", |a| one(2 * a.int(0)?))
//!     .rules("mine", "rule twice-twice exact mine::twice(mine::twice(?x: int)) => aten::mul(?x, 4)")
//!     .pipeline("tidy", "simplify,dce");
//! toolkit.check()?;
//! let program = toolkit.load_source("f.py", "def f(n: int) -> int:\n    return torch.ops.mine.twice(n)\n")?;
//! assert_eq!(program.run("f", vec![Value::Int(21)], &Run::default())?.to_int()?, 42);
//! # Ok::<(), Diagnostic>(())
//! ```
//!
//! # The layers
//!
//! The modules stand in reading order, which is also the order of layers: a module may use those above
//! it and never one below (`tests/tidy` checks it). ARCHITECTURE.md walks through them.

#[doc(inline)]
pub use flambeau_base::{diag, ir, resources, tensor, value};
#[doc(inline)]
pub use flambeau_ops::{dialects, eval, kernels};
#[doc(inline)]
pub use flambeau_reader::{analysis, frontend};
#[doc(inline)]
pub use flambeau_transforms::{autodiff, passes, rewrite};
pub mod lowering;
pub mod backends;
pub mod runtime;
pub mod training;
pub mod toolkit;
pub mod tools;

/// What programs that embed or extend Flambeau use most. The rest stands in the module of its layer.
pub mod prelude {
    pub use crate::backends::{Backend, Executable};
    pub use crate::diag::{Diagnostic, Result};
    pub use crate::dialects::{Args, OpDef, Outputs, Registry, Run, one};
    pub use crate::ir::Graph;
    pub use crate::lowering::{Lowering, OpCall, Ops, Rewriter};
    pub use crate::passes::{Context, Pass, PassOption};
    pub use crate::tensor::{DType, Tensor};
    pub use crate::toolkit::{Dialect, Model, Toolkit};
    pub use crate::value::Value;
    pub use std::process::ExitCode;
}
