//! Flambeau for Python: the extension module `flambeau._flambeau`, over which the package's Python files put torch.jit's names.
//!
//! `tensor`, `dlpack`, `buffer` and `numpy` carry arrays over without copies, `convert` everything else; `program` is what is called,
//! `host` answers the compiler's questions about names of Python, `eager` runs single operations, `graph` shows and edits graphs,
//! `extend` takes passes, rules and dialects, `limits` bounds what programs may use. Nothing here knows an op.

mod buffer;
mod cast;
mod convert;
mod dlpack;
mod dtype;
mod eager;
mod errors;
mod extend;
mod generator;
mod graph;
mod host;
mod limits;
mod numpy;
mod operators;
mod program;
mod runs;
mod shared;
mod tensor;

use flambeau::backends::cache::{self, Place};
use pyo3::prelude::*;

/// Of what is allocated here; Python and its other extensions keep theirs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The extension module.
#[pymodule(gil_used = false)]
mod _flambeau {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::convert::PyFuture;
    #[pymodule_export]
    use super::dtype::{PyDType, PyDevice, all_dtypes};
    #[pymodule_export]
    use super::eager::{built_op, call_op, known_op, op_schemas, set_tracing};
    #[pymodule_export]
    use super::extend::{add_dialect, add_op, add_pass, add_pipeline, add_rules, additions, passes};
    #[pymodule_export]
    use super::generator::PyGeneratorState;
    #[pymodule_export]
    use super::graph::{PyBlock, PyGraph, PyInsertGuard, PyNode, PyUse, PyValue, is_subtype, run_passes};
    #[pymodule_export]
    use super::host::compile;
    #[pymodule_export]
    use super::limits::PyLimits;
    #[pymodule_export]
    use super::program::{
        PyProgram, command, exported_programs, extra_files, last_graph, load_bytes, load_path, parse_ir,
        python_calls,
    };
    #[pymodule_export]
    use super::runs::{
        draw_from, get_num_threads, grad_enabled, logging_option, manual_seed, optimized, set_grad_enabled,
        set_logging_option, set_logging_to_stdout, set_num_threads, set_optimized, set_plan_limit,
        set_plans_in_background, set_profiled_runs,
    };
    #[pymodule_export]
    use super::shared::PyShared;
    #[pymodule_export]
    use super::tensor::{PyTensor, from_array, tensor_from_bytes, tensor_of};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::start(module)
    }
}

/// What the module has besides its classes and functions.
fn start(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Where FLAMBEAU_CACHE says; nothing is opened before something is compiled.
    cache::install(Place::of_environment().caches());
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::add_to(module)
}
