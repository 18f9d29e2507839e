//! Graphs for Python: text, nodes, values, blocks, and edits of them under PyTorch's names. A handle to a part that is gone
//! raises; it never reads what took its place, and no edit breaks the structure: what the verifier must judge, `lint` does.
//!
//! `node` reads, `edit` changes, `attributes` does both for what stands in a node's brackets, `place` says where.

mod attributes;
mod edit;
mod node;
mod place;
mod state;
mod types;

use crate::convert::Call;
use crate::errors;
use crate::program::{Core, PyProgram};
use crate::runs;
use flambeau::dialects::{Laws, Strictness};
use flambeau::ir::{BlockId, Graph, Module, OpId, ValueId, verify_graph};
use flambeau::passes::manager::Settings;
use flambeau::runtime::{Program, graph_function};
use flambeau::tools::view;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::sync::Arc;

pub(crate) use edit::PyInsertGuard;
use node::What;
pub(crate) use node::{PyBlock, PyNode, PyUse, PyValue};
use state::{Shared, State};
pub(crate) use types::{Parts, is_subtype, type_object};

/// A graph of a program.
#[pyclass(name = "Graph", module = "flambeau", frozen)]
pub(crate) struct PyGraph(Arc<Shared>);

impl PyGraph {
    /// A graph that stands alone; `core` is the program whose functions it may call.
    pub(crate) fn new(graph: Graph, core: Arc<Core>) -> PyGraph {
        PyGraph(Arc::new(Shared::new(graph, Some(core))))
    }

    /// A graph that a pass is given: its functions are the pass manager's to know.
    pub(crate) fn of_pass(graph: Graph) -> PyGraph {
        PyGraph(Arc::new(Shared::new(graph, None)))
    }

    /// A copy of what the graph is now.
    pub(crate) fn content(&self) -> Graph {
        self.0.read(|state| state.graph.clone())
    }

    fn node(&self, state: &State, op: OpId) -> PyNode {
        PyNode::new(&self.0, state, What::Op(op))
    }

    fn value(&self, state: &State, value: ValueId) -> PyValue {
        PyValue::new(&self.0, state, value)
    }

    fn block_at(&self, state: &State, block: BlockId) -> PyBlock {
        PyBlock::new(&self.0, state, block)
    }
}

/// Fails with everything that is wrong with a graph.
pub(crate) fn lint(graph: &Graph) -> PyResult<()> {
    let toolkit = runs::toolkit()?;
    let found = verify_graph(graph, &Laws::new(toolkit.registry(), Strictness::Ops), None);
    match found.split_first() {
        None => Ok(()),
        Some((first, rest)) => {
            let notes = rest.iter().take(5).map(|e| e.message().to_string());
            Err(errors::plain(notes.fold(first.clone(), |error, note| error.note(note))))
        }
    }
}

#[pymethods]
impl PyGraph {
    fn __repr__(&self) -> String {
        self.0.read(|state| state.graph.to_string())
    }

    fn __str__(&self) -> String {
        self.__repr__()
    }

    /// What a notebook shows: the page in a frame.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        static FRAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let page = self.page("graph")?;
        errors::imported(py, &FRAME, "flambeau._explain", "framed")?.call1((page,))?.extract()
    }

    /// The graph as text, with the places of the source or without.
    #[pyo3(signature = (print_source_ranges=true))]
    fn str(&self, print_source_ranges: bool) -> String {
        let bare = flambeau::ir::PrintOptions::bare();
        self.0.read(
            |state| if print_source_ranges { state.graph.to_string() } else { state.graph.to_text(&bare) },
        )
    }

    /// The nodes of the outermost block, in order.
    pub(crate) fn nodes(&self) -> Parts<PyNode> {
        self.0.read(|state| {
            let graph = &state.graph;
            Parts(graph.block_ops(graph.root()).map(|op| self.node(state, op)).collect())
        })
    }

    /// All nodes, those of nested blocks included.
    fn all_nodes(&self) -> Vec<PyNode> {
        self.0.read(|state| state.graph.all_ops().into_iter().map(|op| self.node(state, op)).collect())
    }

    /// The outermost block.
    fn block(&self) -> PyBlock {
        self.0.read(|state| self.block_at(state, state.graph.root()))
    }

    /// What the graph takes.
    fn inputs(&self) -> Parts<PyValue> {
        self.0.read(|state| Parts(state.graph.inputs().iter().map(|v| self.value(state, *v)).collect()))
    }

    /// What it gives.
    fn outputs(&self) -> Parts<PyValue> {
        self.0.read(|state| Parts(state.graph.outputs().iter().map(|v| self.value(state, *v)).collect()))
    }

    /// The node whose outputs are the graph's inputs.
    fn param_node(&self) -> PyNode {
        self.0.read(|state| PyNode::new(&self.0, state, What::Param(state.graph.root())))
    }

    /// The node whose inputs are the graph's outputs.
    fn return_node(&self) -> PyNode {
        self.0.read(|state| self.node(state, state.graph.terminator(state.graph.root())))
    }

    /// The nodes of a kind.
    #[pyo3(name = "findAllNodes", signature = (kind, recurse=true))]
    fn find_all_nodes(&self, kind: &str, recurse: bool) -> Vec<PyNode> {
        self.0.read(|state| {
            let found = place::of_kind(&state.graph, state.graph.root(), kind, recurse);
            found.into_iter().map(|op| self.node(state, op)).collect()
        })
    }

    /// The first node of a kind.
    #[pyo3(name = "findNode", signature = (kind, recurse=true))]
    fn find_node(&self, kind: &str, recurse: bool) -> Option<PyNode> {
        self.find_all_nodes(kind, recurse).into_iter().next()
    }

    /// A copy.
    fn copy(&self) -> PyGraph {
        let (graph, core) = self.0.read(|state| (state.graph.clone(), self.0.core.clone()));
        PyGraph(Arc::new(Shared::new(graph, core)))
    }

    /// A page for the browser that shows the graph.
    fn page(&self, title: &str) -> PyResult<String> {
        let mut module = Module::default();
        let function = graph_function(title, self.content());
        module.functions.insert(function.name, function);
        Ok(view::html(&view::model(&module, &*runs::registry()?), title))
    }

    /// Fails where the graph breaks a law: a value used before it is defined, an operator that does not take what it is given.
    fn lint(&self) -> PyResult<()> {
        self.0.read(|state| lint(&state.graph))
    }

    /// Applies a pipeline of passes to the graph: `"inline,cse,dce"`. Nodes that were asked for before are gone.
    fn run_pass(&self, py: Python<'_>, passes: &str) -> PyResult<()> {
        let pipeline = runs::toolkit()?.parse_pipeline(passes).map_err(errors::plain)?;
        let graph = self.content();
        lint(&graph)?;
        let changed = runs::outside(py, || -> flambeau::diag::Result<Graph> {
            let name = "__graph__";
            let function = graph_function(name, graph);
            let program = self.0.program().transformed(|module, registry| {
                module.functions.insert(function.name, function.clone());
                pipeline.run_with(module, registry, Settings::default()).map(|_| ())
            })?;
            let found = program.module().function(name).map(|f| f.graph.clone());
            found.ok_or_else(|| crate::program::internal("the passes removed the graph"))
        })?;
        let changed = changed.map_err(errors::plain)?;
        self.0.write(|state| state.replace(changed));
        Ok(())
    }

    /// A program in which a function of that name runs the graph as it is now.
    #[pyo3(signature = (name="graph"))]
    pub(crate) fn program(&self, name: &str) -> PyResult<PyProgram> {
        let graph = self.content();
        lint(&graph)?;
        let mut module = self.0.program().module().clone();
        let function = graph_function(name, graph);
        module.functions.insert(function.name, function);
        let registry = runs::registry()?;
        let instance = self.0.program().instance().cloned();
        Ok(PyProgram::new(Core::new(Program::with(module, instance, registry)), None))
    }

    /// A constant at the insert point.
    #[pyo3(name = "insertConstant")]
    fn insert_constant(&self, value: &Bound<'_, PyAny>) -> PyResult<PyValue> {
        let value = Call::default().value(value)?;
        self.0.write(|state| {
            let made = edit::constant(state, &value)?;
            Ok(self.value(state, made))
        })
    }
}

/// Applies a pipeline of passes to a copy of a graph.
#[pyfunction]
pub(crate) fn run_passes(py: Python<'_>, graph: &Bound<'_, PyGraph>, passes: &str) -> PyResult<PyGraph> {
    let copy = graph.get().copy();
    copy.run_pass(py, passes)?;
    Ok(copy)
}
