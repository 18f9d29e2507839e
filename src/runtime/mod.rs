//! The runtime: programs that run. Graphs become linear code ([`code`]), an interpreter runs it over run-time
//! values, arguments of callers are checked and converted, errors get the chain of calls. Ops run by their rows
//! (`eval`); this layer knows control flow, calls, forks and `with`, and no tensor op by name.

mod arguments;
mod arithmetic;
mod before_run;
mod calls;
mod checks;
mod code;
mod composites;
mod constants;
mod debug_state;
mod derivatives;
mod device;
mod executor;
mod inner;
mod interpreter;
mod iterate;
mod kept;
mod kernels;
mod loops;
mod packed;
mod program;
mod regions;
mod python_repr;
mod spec;
mod tasks;
#[cfg(test)]
mod backend_tests;
#[cfg(test)]
mod derivatives_tests;
#[cfg(test)]
mod gradient_tests;
#[cfg(test)]
mod hook_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod recording_lent_tests;
#[cfg(test)]
mod recording_open_tests;
#[cfg(test)]
mod recording_tests;
#[cfg(test)]
mod region_tests;
#[cfg(test)]
mod region_fuzz_tests;
#[cfg(test)]
mod parts_tests;
#[cfg(test)]
mod results_tests;
#[cfg(test)]
mod container_region_tests;
#[cfg(test)]
mod tests;
pub mod traceback;

pub use arguments::{converted, dtype_argument};
pub use checks::{GuardKind, GuardState, Miss};
pub use composites::ScriptComposites;
pub use debug_state::{DebugState, FunctionState};
pub use derivatives::typed;
pub use executor::{Making, PlanReport, PlanState, Stage};
pub use inner::Origins;
pub use kept::{Keeper, Origin};
pub use program::{Program, graph_function, prepare, run_graph};
pub use spec::ArgumentSpec;
