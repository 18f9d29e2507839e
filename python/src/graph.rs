//! Graphs for Python: text, nodes, values. A node that is gone raises; it never reads what took its place.

use crate::errors;
use crate::program::Core;
use crate::runs;
use flambeau::ir::{Attr, Graph, OpId, ValueId};
use flambeau::passes::manager::Settings;
use flambeau::runtime::graph_function;
use parking_lot::RwLock;
use pyo3::exceptions::{PyAttributeError, PyRuntimeError};
use pyo3::prelude::*;
use std::sync::Arc;

/// A graph, shared by the objects that speak of it.
struct Shared {
    graph: RwLock<Graph>,
    /// How often it was changed as a whole: nodes of an earlier state are gone.
    state: std::sync::atomic::AtomicU64,
    core: Arc<Core>,
}

/// A graph of a program.
#[pyclass(name = "Graph", module = "flambeau", frozen)]
pub(crate) struct PyGraph(Arc<Shared>);

impl PyGraph {
    pub(crate) fn new(graph: Graph, core: Arc<Core>) -> PyGraph {
        PyGraph(Arc::new(Shared { graph: RwLock::new(graph), state: Default::default(), core }))
    }

    fn state(&self) -> u64 {
        self.0.state.load(std::sync::atomic::Ordering::Acquire)
    }

    fn node(&self, op: OpId) -> PyNode {
        PyNode { graph: Arc::clone(&self.0), op, state: self.state() }
    }

    fn value(&self, value: ValueId) -> PyValue {
        PyValue { graph: Arc::clone(&self.0), value, state: self.state() }
    }
}

#[pymethods]
impl PyGraph {
    fn __repr__(&self) -> String {
        self.0.graph.read().to_string()
    }

    /// The nodes of the outermost block, in order.
    fn nodes(&self) -> Vec<PyNode> {
        let graph = self.0.graph.read();
        graph.block_ops(graph.root()).map(|op| self.node(op)).collect()
    }

    /// All nodes, those of nested blocks included.
    fn all_nodes(&self) -> Vec<PyNode> {
        self.0.graph.read().all_ops().into_iter().map(|op| self.node(op)).collect()
    }

    /// What the graph takes.
    fn inputs(&self) -> Vec<PyValue> {
        self.0.graph.read().inputs().iter().map(|v| self.value(*v)).collect()
    }

    /// What it gives.
    fn outputs(&self) -> Vec<PyValue> {
        self.0.graph.read().outputs().iter().map(|v| self.value(*v)).collect()
    }

    /// The nodes of a kind.
    #[pyo3(name = "findAllNodes", signature = (kind, recurse=true))]
    fn find_all_nodes(&self, kind: &str, recurse: bool) -> Vec<PyNode> {
        let all = if recurse { self.all_nodes() } else { self.nodes() };
        all.into_iter().filter(|n| n.kind_text().is_ok_and(|k| k == kind)).collect()
    }

    /// The first node of a kind.
    #[pyo3(name = "findNode", signature = (kind, recurse=true))]
    fn find_node(&self, kind: &str, recurse: bool) -> Option<PyNode> {
        self.find_all_nodes(kind, recurse).into_iter().next()
    }

    /// A copy.
    fn copy(&self) -> PyGraph {
        PyGraph::new(self.0.graph.read().clone(), Arc::clone(&self.0.core))
    }

    /// Applies a pipeline of passes to the graph: `"inline,cse,dce"`. Nodes that were asked for before are gone.
    fn run_pass(&self, py: Python<'_>, passes: &str) -> PyResult<()> {
        let pipeline = runs::toolkit()?.parse_pipeline(passes).map_err(errors::plain)?;
        let graph = self.0.graph.read().clone();
        let changed = py.detach(|| -> flambeau::diag::Result<Graph> {
            let name = "__graph__";
            let function = graph_function(name, graph);
            let program = self.0.core.plain.transformed(|module, registry| {
                module.functions.insert(function.name, function.clone());
                pipeline.run_with(module, registry, Settings::default()).map(|_| ())
            })?;
            let found = program.module().function(name).map(|f| f.graph.clone());
            found.ok_or_else(|| crate::program::internal("the passes removed the graph"))
        });
        let changed = changed.map_err(errors::plain)?;
        let mut graph = self.0.graph.write();
        *graph = changed;
        self.0.state.fetch_add(1, std::sync::atomic::Ordering::Release);
        Ok(())
    }
}

/// Applies a pipeline of passes to a copy of a graph.
#[pyfunction]
pub(crate) fn run_passes(py: Python<'_>, graph: &Bound<'_, PyGraph>, passes: &str) -> PyResult<PyGraph> {
    let copy = graph.get().copy();
    copy.run_pass(py, passes)?;
    Ok(copy)
}

/// A node of a graph.
#[pyclass(name = "Node", module = "flambeau", frozen)]
pub(crate) struct PyNode {
    graph: Arc<Shared>,
    op: OpId,
    state: u64,
}

fn gone() -> PyErr {
    PyRuntimeError::new_err("the graph was changed, and this part of it is gone")
}

impl PyNode {
    fn with<T>(&self, look: impl FnOnce(&Graph) -> T) -> PyResult<T> {
        let graph = self.graph.graph.read();
        if self.state != self.graph.state.load(std::sync::atomic::Ordering::Acquire)
            || !graph.is_live(self.op)
        {
            return Err(gone());
        }
        Ok(look(&graph))
    }

    fn kind_text(&self) -> PyResult<String> {
        self.with(|graph| graph.kind(self.op).to_string())
    }

    fn value(&self, value: ValueId) -> PyValue {
        PyValue { graph: Arc::clone(&self.graph), value, state: self.state }
    }
}

#[pymethods]
impl PyNode {
    /// What it does: `aten::add`.
    fn kind(&self) -> PyResult<String> {
        self.kind_text()
    }

    /// What it takes.
    fn inputs(&self) -> PyResult<Vec<PyValue>> {
        self.with(|graph| graph.operands(self.op).iter().map(|v| self.value(*v)).collect())
    }

    /// What it gives.
    fn outputs(&self) -> PyResult<Vec<PyValue>> {
        self.with(|graph| graph.results(self.op).iter().map(|v| self.value(*v)).collect())
    }

    /// Its one result.
    fn output(&self) -> PyResult<PyValue> {
        self.with(|graph| graph.result(self.op, 0))?.map(|v| self.value(v)).ok_or_else(gone)
    }

    /// The names of its attributes.
    #[pyo3(name = "attributeNames")]
    fn attribute_names(&self) -> PyResult<Vec<String>> {
        self.with(|graph| graph.attrs(self.op).iter().map(|(name, _)| name.to_string()).collect())
    }

    /// An attribute that is an int.
    fn i(&self, name: &str) -> PyResult<i64> {
        match self.with(|graph| graph.attr(self.op, name).cloned())? {
            Some(Attr::Int(x)) => Ok(x),
            Some(Attr::Bool(x)) => Ok(i64::from(x)),
            _ => Err(PyAttributeError::new_err(format!("the node has no int '{name}'"))),
        }
    }

    /// An attribute that is a float.
    fn f(&self, name: &str) -> PyResult<f64> {
        match self.with(|graph| graph.attr(self.op, name).cloned())? {
            Some(Attr::Float(x)) => Ok(x),
            _ => Err(PyAttributeError::new_err(format!("the node has no float '{name}'"))),
        }
    }

    /// An attribute that is text.
    fn s(&self, name: &str) -> PyResult<String> {
        match self.with(|graph| graph.attr(self.op, name).cloned())? {
            Some(Attr::Str(x)) => Ok(x.to_string()),
            _ => Err(PyAttributeError::new_err(format!("the node has no text '{name}'"))),
        }
    }

    /// File and line of the source.
    #[pyo3(name = "sourceRange")]
    fn source_range(&self) -> PyResult<String> {
        self.with(|graph| match graph.location(self.op).and_then(|l| l.span().cloned()) {
            Some(span) => {
                let (line, column) = span.line_column();
                format!("{}:{line}:{column}", span.source().name())
            }
            None => String::new(),
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        self.with(|graph| graph.op_line(self.op))
    }
}

/// A value of a graph.
#[pyclass(name = "Value", module = "flambeau", frozen)]
pub(crate) struct PyValue {
    graph: Arc<Shared>,
    value: ValueId,
    state: u64,
}

impl PyValue {
    fn with<T>(&self, look: impl FnOnce(&Graph) -> T) -> PyResult<T> {
        if self.state != self.graph.state.load(std::sync::atomic::Ordering::Acquire) {
            return Err(gone());
        }
        Ok(look(&self.graph.graph.read()))
    }
}

#[pymethods]
impl PyValue {
    /// Its name in the text.
    #[pyo3(name = "debugName")]
    fn debug_name(&self) -> PyResult<String> {
        self.with(|graph| graph.display_name(self.value))
    }

    /// Its type.
    #[pyo3(name = "type")]
    fn ty(&self) -> PyResult<String> {
        self.with(|graph| graph.ty(self.value).to_string())
    }

    /// The node that gives it; None of what a block takes.
    fn node(&self) -> PyResult<Option<PyNode>> {
        let op = self.with(|graph| graph.def_op(self.value))?;
        Ok(op.map(|op| PyNode { graph: Arc::clone(&self.graph), op, state: self.state }))
    }

    fn __repr__(&self) -> PyResult<String> {
        self.with(|graph| format!("{} defined in the graph", graph.display_name(self.value)))
    }
}
