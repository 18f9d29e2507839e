//! Backends: from a [`Kernel`](crate::dialects::loops::Kernel) to something that runs.
//!
//! A backend implements [`Backend`] and takes the closed kernel enum; docs/add-a-backend.md walks through
//! one. [`FusedGroup`] is what the runtime holds for a fusion group: it plans each call, finds or builds the
//! kernels for it and launches them. Nothing here knows how a program is interpreted.

mod ahead;
mod apart;
mod backend;
pub mod cache;
mod choice;
mod counters;
mod executable;
mod function;
mod group;
mod inputs;
pub mod interp;
mod library;
mod launch;
mod lowered;
pub mod ptx;
mod scalars;
mod warps;

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "llvm")]
pub mod llvm;

pub use ahead::{Foreseen, compile_ahead};
pub use apart::Apart;
pub use backend::{Backend, LibraryOp, Recorded, RecordedWork};
pub use choice::{by_name, compiles, default_cpu, default_llvm};
pub(crate) use counters::add_reasons;
pub use counters::{DeviceReport, FusionCounters, FusionReport, LoopReport, Reasons};
pub use executable::{Arg, Buffer, Executable, Launch, Memory};
use executable::{check_args, not_met};
pub use function::KernelFunction;
pub use group::{FusedGroup, Prepared, ProgramRunner};
pub use scalars::{RemainingLoop, ScalarKernel};

#[cfg(test)]
mod tests;
