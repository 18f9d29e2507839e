//! Nodes, values and blocks as Python reads them.

use super::place;
use super::state::{Shared, State, gone};
use super::types::Parts;
use crate::convert::Call;
use flambeau::dialects::resolve;
use flambeau::ir::{BlockId, Graph, OpId, ValueId};
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum What {
    /// An op, or the end of a block.
    Op(OpId),
    /// The start of a block: its outputs are what the block takes.
    Param(BlockId),
}

/// A node of a graph.
#[pyclass(name = "Node", module = "flambeau", frozen)]
pub(crate) struct PyNode {
    pub(super) graph: Arc<Shared>,
    pub(super) what: What,
    pub(super) born: u64,
}

/// A value of a graph.
#[pyclass(name = "Value", module = "flambeau", frozen)]
pub(crate) struct PyValue {
    pub(super) graph: Arc<Shared>,
    pub(super) value: ValueId,
    pub(super) born: u64,
}

/// A block of a node, or the outermost one.
#[pyclass(name = "Block", module = "flambeau", frozen)]
pub(crate) struct PyBlock {
    pub(super) graph: Arc<Shared>,
    pub(super) block: BlockId,
    pub(super) born: u64,
}

/// A use of a value: the node, and which input it is.
#[pyclass(name = "Use", module = "flambeau", frozen)]
pub(crate) struct PyUse {
    #[pyo3(get)]
    user: Py<PyNode>,
    #[pyo3(get)]
    offset: usize,
}

impl PyNode {
    pub(super) fn new(graph: &Arc<Shared>, state: &State, what: What) -> PyNode {
        PyNode { graph: Arc::clone(graph), what, born: state.now() }
    }

    /// Fails unless the node is still there.
    pub(super) fn check(&self, state: &State) -> PyResult<()> {
        match self.what {
            What::Op(op) => state.check_op(op, self.born),
            What::Param(block) => state.check_block(block, self.born),
        }
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> PyResult<T> {
        self.graph.read(|state| {
            self.check(state)?;
            Ok(look(state))
        })
    }

    /// Looks at the op; `none` for the start of a block.
    pub(super) fn look_op<T>(&self, none: T, look: impl FnOnce(&Graph, OpId) -> T) -> PyResult<T> {
        self.look(|state| match self.what {
            What::Op(op) => look(&state.graph, op),
            What::Param(_) => none,
        })
    }

    fn value(&self, state: &State, value: ValueId) -> PyValue {
        PyValue::new(&self.graph, state, value)
    }

    fn input_ids(&self, state: &State) -> Vec<ValueId> {
        match self.what {
            What::Op(op) => state.graph.operands(op).to_vec(),
            What::Param(_) => Vec::new(),
        }
    }

    fn output_ids(&self, state: &State) -> Vec<ValueId> {
        match self.what {
            What::Op(op) => state.graph.results(op).to_vec(),
            What::Param(block) => state.graph.params(block).to_vec(),
        }
    }

    fn all_inputs(&self) -> PyResult<Vec<PyValue>> {
        self.look(|state| self.input_ids(state).into_iter().map(|v| self.value(state, v)).collect())
    }

    fn all_outputs(&self) -> PyResult<Vec<PyValue>> {
        self.look(|state| self.output_ids(state).into_iter().map(|v| self.value(state, v)).collect())
    }

    fn neighbour(&self, step: impl FnOnce(&Graph, OpId) -> Option<OpId>) -> PyResult<Option<PyNode>> {
        self.look(|state| match self.what {
            What::Op(op) => step(&state.graph, op).map(|op| PyNode::new(&self.graph, state, What::Op(op))),
            What::Param(_) => None,
        })
    }
}

fn nth<T>(all: Vec<T>, n: usize, what: &str) -> PyResult<T> {
    let count = all.len();
    all.into_iter()
        .nth(n)
        .ok_or_else(|| PyIndexError::new_err(format!("the node has {count} {what}, there is no number {n}")))
}

fn only<T>(all: Vec<T>, what: &str) -> PyResult<T> {
    let count = all.len();
    match (all.into_iter().next(), count) {
        (Some(one), 1) => Ok(one),
        _ => Err(PyRuntimeError::new_err(format!("the node has {count} {what}, not one"))),
    }
}

fn hash_of(parts: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

#[pymethods]
impl PyNode {
    /// What it does: `aten::add`.
    pub(super) fn kind(&self) -> PyResult<String> {
        self.look_op("prim::Param".to_string(), |graph, op| graph.kind(op).to_string())
    }

    /// What it takes.
    fn inputs(&self) -> PyResult<Parts<PyValue>> {
        self.all_inputs().map(Parts)
    }

    /// What it gives.
    fn outputs(&self) -> PyResult<Parts<PyValue>> {
        self.all_outputs().map(Parts)
    }

    /// Its one input.
    fn input(&self) -> PyResult<PyValue> {
        only(self.all_inputs()?, "inputs")
    }

    /// Its one result.
    fn output(&self) -> PyResult<PyValue> {
        only(self.all_outputs()?, "outputs")
    }

    /// The n-th input.
    #[pyo3(name = "inputsAt")]
    fn inputs_at(&self, n: usize) -> PyResult<PyValue> {
        nth(self.all_inputs()?, n, "inputs")
    }

    /// The n-th output.
    #[pyo3(name = "outputsAt")]
    fn outputs_at(&self, n: usize) -> PyResult<PyValue> {
        nth(self.all_outputs()?, n, "outputs")
    }

    /// How many inputs it has.
    #[pyo3(name = "inputsSize")]
    fn inputs_size(&self) -> PyResult<usize> {
        self.look(|state| self.input_ids(state).len())
    }

    /// How many outputs it has.
    #[pyo3(name = "outputsSize")]
    fn outputs_size(&self) -> PyResult<usize> {
        self.look(|state| self.output_ids(state).len())
    }

    /// Whether it has more than one output.
    #[pyo3(name = "hasMultipleOutputs")]
    fn has_multiple_outputs(&self) -> PyResult<bool> {
        Ok(self.outputs_size()? > 1)
    }

    /// Whether anything uses an output.
    #[pyo3(name = "hasUses")]
    fn has_uses(&self) -> PyResult<bool> {
        self.look(|state| self.output_ids(state).into_iter().any(|v| state.graph.has_uses(v)))
    }

    /// An input by its name in the schema.
    #[pyo3(name = "namedInput")]
    fn named_input(&self, name: &str) -> PyResult<PyValue> {
        let registry = crate::runs::registry()?;
        let at = self.look_op(Ok(None), |graph, op| {
            let found = resolve(&registry, graph, op)?;
            Ok(found.schema()?.argument_index(name))
        })?;
        match at.map_err(crate::errors::plain)? {
            Some(at) => self.inputs_at(at),
            None => Err(PyRuntimeError::new_err(format!("the operator has no argument '{name}'"))),
        }
    }

    /// The schema of the operator.
    pub(super) fn schema(&self) -> PyResult<String> {
        let registry = crate::runs::registry()?;
        let found = self.look_op(None, |graph, op| {
            (!registry.overloads(graph.kind(op)).is_empty()).then(|| resolve(&registry, graph, op))
        })?;
        match found {
            Some(found) => Ok(found.map_err(crate::errors::plain)?.schema_text().to_string()),
            None => Ok("(no schema)".to_string()),
        }
    }

    /// Whether it is a call of the operator that a schema names.
    fn matches(&self, schema: &str) -> PyResult<bool> {
        let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(plain(&self.schema()?) == plain(schema))
    }

    /// Whether it draws random numbers.
    #[pyo3(name = "isNondeterministic")]
    fn is_nondeterministic(&self) -> PyResult<bool> {
        let registry = crate::runs::registry()?;
        self.look_op(false, |graph, op| {
            resolve(&registry, graph, op).is_ok_and(|op| {
                let effects = op.def().effects;
                effects.contains(flambeau::dialects::Effects::RANDOM)
            })
        })
    }

    /// Its blocks.
    fn blocks(&self) -> PyResult<Parts<PyBlock>> {
        self.look(|state| match self.what {
            What::Op(op) => {
                let blocks = state.graph.nested_blocks(op).iter();
                Parts(blocks.map(|block| PyBlock::new(&self.graph, state, *block)).collect())
            }
            What::Param(_) => Parts(Vec::new()),
        })
    }

    /// The block that it stands in; None while it stands in none.
    #[pyo3(name = "owningBlock")]
    fn owning_block(&self) -> PyResult<Option<PyBlock>> {
        self.look(|state| {
            let block = match self.what {
                What::Op(op) => place::block_of(&state.graph, op),
                What::Param(block) => Some(block),
            };
            block.map(|block| PyBlock::new(&self.graph, state, block))
        })
    }

    /// The nodes of a kind in its blocks.
    #[pyo3(name = "findAllNodes", signature = (kind, recurse=true))]
    fn find_all_nodes(&self, kind: &str, recurse: bool) -> PyResult<Vec<PyNode>> {
        let blocks = self.blocks()?;
        let found = blocks.0.iter().map(|block| block.find_all_nodes(kind, recurse));
        Ok(found.collect::<PyResult<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// The first node of a kind in its blocks.
    #[pyo3(name = "findNode", signature = (kind, recurse=true))]
    fn find_node(&self, kind: &str, recurse: bool) -> PyResult<Option<PyNode>> {
        Ok(self.find_all_nodes(kind, recurse)?.into_iter().next())
    }

    /// The node after it in its block.
    fn next(&self) -> PyResult<Option<PyNode>> {
        self.neighbour(|graph, op| graph.next(op))
    }

    /// The node before it in its block.
    fn prev(&self) -> PyResult<Option<PyNode>> {
        self.neighbour(|graph, op| match graph.terminated_block(op) {
            Some(block) => graph.last_op(block),
            None => graph.prev(op),
        })
    }

    /// Whether it comes before another in the program.
    #[pyo3(name = "isBefore")]
    fn is_before(&self, other: &Bound<'_, PyNode>) -> PyResult<bool> {
        let other = other.get();
        if !Arc::ptr_eq(&self.graph, &other.graph) {
            return Err(PyRuntimeError::new_err("the nodes are of different graphs"));
        }
        self.graph.read(|state| {
            self.check(state)?;
            other.check(state)?;
            match (self.what, other.what) {
                (a, b) if a == b => Ok(false),
                (What::Param(_), _) => Ok(true),
                (_, What::Param(_)) => Ok(false),
                (What::Op(a), What::Op(b)) => place::is_before(&state.graph, a, b)
                    .ok_or_else(|| PyRuntimeError::new_err("the nodes have no block in common")),
            }
        })
    }

    /// Whether it comes after another in the program.
    #[pyo3(name = "isAfter")]
    fn is_after(&self, other: &Bound<'_, PyNode>) -> PyResult<bool> {
        Ok(self.what != other.get().what && !self.is_before(other)?)
    }

    /// The module that a traced node is of, as `__module.layer`.
    #[pyo3(name = "scopeName")]
    fn scope_name(&self) -> PyResult<String> {
        let scope = |graph: &Graph, op| graph.location(op).and_then(|l| l.scope);
        self.look_op(String::new(), |graph, op| scope(graph, op).map_or_else(String::new, |s| s.to_string()))
    }

    /// File and line of the source.
    #[pyo3(name = "sourceRange")]
    fn source_range(&self) -> PyResult<String> {
        self.look_op(String::new(), |graph, op| match graph.location(op).and_then(|l| l.span().cloned()) {
            Some(span) => {
                let (line, column) = span.line_column();
                format!("{}:{line}:{column}", span.source().name())
            }
            None => String::new(),
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        self.look_op("prim::Param".to_string(), |graph, op| graph.op_line(op))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyNode>().is_ok_and(|other| {
            let other = other.get();
            Arc::ptr_eq(&self.graph, &other.graph)
                && self.what == other.what
                && self.look(|_| ()).is_ok() == other.look(|_| ()).is_ok()
        })
    }

    fn __hash__(&self) -> u64 {
        hash_of((Arc::as_ptr(&self.graph), self.what))
    }
}

impl PyValue {
    pub(super) fn new(graph: &Arc<Shared>, state: &State, value: ValueId) -> PyValue {
        PyValue { graph: Arc::clone(graph), value, born: state.now() }
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> PyResult<T> {
        self.graph.read(|state| {
            state.check_value(self.value, self.born)?;
            Ok(look(state))
        })
    }
}

#[pymethods]
impl PyValue {
    /// Its name in the text.
    #[pyo3(name = "debugName")]
    pub(super) fn debug_name(&self) -> PyResult<String> {
        self.look(|state| state.graph.display_name(self.value))
    }

    /// A number that no other value of the graph has.
    fn unique(&self) -> PyResult<usize> {
        self.look(|_| self.value.index())
    }

    /// Its type.
    #[pyo3(name = "type")]
    fn ty<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let ty = self.look(|state| state.graph.ty(self.value).clone())?;
        super::type_object(py, &ty)
    }

    /// Whether its type says dtype, device, sizes and strides.
    #[pyo3(name = "isCompleteTensor")]
    fn is_complete_tensor(&self) -> PyResult<bool> {
        self.look(|state| {
            state.graph.ty(self.value).as_tensor().is_some_and(|t| {
                let known = t.sizes.as_ref().is_some_and(|s| s.iter().all(|d| d.known().is_some()));
                let strided =
                    t.strides.as_ref().is_some_and(|s| s.iter().all(|stride| stride.known().is_some()));
                t.dtype.is_some() && t.device.is_some() && known && strided
            })
        })
    }

    /// Whether its type says that it requires gradients.
    #[pyo3(name = "requiresGrad")]
    fn requires_grad(&self) -> PyResult<bool> {
        self.look(|state| {
            state.graph.ty(self.value).as_tensor().is_some_and(|t| t.requires_grad == Some(true))
        })
    }

    /// The node that gives it.
    fn node(&self) -> PyResult<PyNode> {
        self.look(|state| {
            let what = match state.graph.def(self.value) {
                flambeau::ir::ValueDef::Result(op, _) => What::Op(op),
                flambeau::ir::ValueDef::Param(block, _) => What::Param(block),
            };
            PyNode::new(&self.graph, state, what)
        })
    }

    /// Which output of its node it is.
    fn offset(&self) -> PyResult<usize> {
        self.look(|state| match state.graph.def(self.value) {
            flambeau::ir::ValueDef::Result(_, n) | flambeau::ir::ValueDef::Param(_, n) => n,
        })
    }

    /// Its uses.
    fn uses(&self, py: Python<'_>) -> PyResult<Vec<PyUse>> {
        let found = self.look(|state| {
            let uses = state.graph.uses(self.value);
            uses.map(|u| (PyNode::new(&self.graph, state, What::Op(u.op)), u.index)).collect::<Vec<_>>()
        })?;
        let made = found.into_iter().map(|(node, offset)| Ok(PyUse { user: Py::new(py, node)?, offset }));
        made.collect()
    }

    /// The constant that it is; None of anything else.
    #[pyo3(name = "toIValue")]
    fn to_ivalue<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.look(|state| {
            let graph = &state.graph;
            let op = graph.def_op(self.value).filter(|op| graph.kind(*op) == "prim::Constant")?;
            Some(flambeau::dialects::prim::constant::value(graph.attrs(op), Some(graph.ty(self.value))))
        })?;
        match value {
            Some(value) => Ok(Some(Call::default().give(py, &value.map_err(crate::errors::plain)?, None)?)),
            None => Ok(None),
        }
    }

    fn __repr__(&self) -> PyResult<String> {
        self.look(|state| {
            let graph = &state.graph;
            let defined = match graph.def_op(self.value) {
                Some(op) => graph.op_line(op),
                None => format!("%{} : {}", graph.display_name(self.value), graph.ty(self.value)),
            };
            format!("{} defined in ({})", graph.display_name(self.value), defined.trim())
        })
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyValue>().is_ok_and(|other| {
            let other = other.get();
            Arc::ptr_eq(&self.graph, &other.graph)
                && self.value == other.value
                && self.look(|_| ()).is_ok() == other.look(|_| ()).is_ok()
        })
    }

    fn __hash__(&self) -> u64 {
        hash_of((Arc::as_ptr(&self.graph), self.value))
    }
}

impl PyBlock {
    pub(super) fn new(graph: &Arc<Shared>, state: &State, block: BlockId) -> PyBlock {
        PyBlock { graph: Arc::clone(graph), block, born: state.now() }
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> PyResult<T> {
        self.graph.read(|state| {
            state.check_block(self.block, self.born)?;
            Ok(look(state))
        })
    }

    fn nodes_of(&self, state: &State, ops: impl IntoIterator<Item = OpId>) -> Vec<PyNode> {
        ops.into_iter().map(|op| PyNode::new(&self.graph, state, What::Op(op))).collect()
    }
}

#[pymethods]
impl PyBlock {
    /// Its nodes, in order.
    fn nodes(&self) -> PyResult<Parts<PyNode>> {
        self.look(|state| Parts(self.nodes_of(state, state.graph.block_ops(self.block))))
    }

    /// What it takes.
    fn inputs(&self) -> PyResult<Parts<PyValue>> {
        self.look(|state| {
            let params = state.graph.params(self.block).iter();
            Parts(params.map(|v| PyValue::new(&self.graph, state, *v)).collect())
        })
    }

    /// What it gives.
    fn outputs(&self) -> PyResult<Parts<PyValue>> {
        self.look(|state| {
            let results = state.graph.block_results(self.block).iter();
            Parts(results.map(|v| PyValue::new(&self.graph, state, *v)).collect())
        })
    }

    /// The nodes of a kind.
    #[pyo3(name = "findAllNodes", signature = (kind, recurse=true))]
    pub(super) fn find_all_nodes(&self, kind: &str, recurse: bool) -> PyResult<Vec<PyNode>> {
        self.look(|state| self.nodes_of(state, place::of_kind(&state.graph, self.block, kind, recurse)))
    }

    /// The first node of a kind.
    #[pyo3(name = "findNode", signature = (kind, recurse=true))]
    fn find_node(&self, kind: &str, recurse: bool) -> PyResult<Option<PyNode>> {
        Ok(self.find_all_nodes(kind, recurse)?.into_iter().next())
    }

    /// The node that has it; None of the outermost block.
    #[pyo3(name = "owningNode")]
    fn owning_node(&self) -> PyResult<Option<PyNode>> {
        self.look(|state| {
            state.graph.owner(self.block).map(|op| PyNode::new(&self.graph, state, What::Op(op)))
        })
    }

    /// The node whose outputs are the block's inputs.
    #[pyo3(name = "paramNode")]
    fn param_node(&self) -> PyResult<PyNode> {
        self.look(|state| PyNode::new(&self.graph, state, What::Param(self.block)))
    }

    /// The node whose inputs are the block's outputs.
    #[pyo3(name = "returnNode")]
    fn return_node(&self) -> PyResult<PyNode> {
        self.look(|state| PyNode::new(&self.graph, state, What::Op(state.graph.terminator(self.block))))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyBlock>().is_ok_and(|other| {
            let other = other.get();
            Arc::ptr_eq(&self.graph, &other.graph) && self.block == other.block
        })
    }

    fn __hash__(&self) -> u64 {
        hash_of((Arc::as_ptr(&self.graph), self.block))
    }
}

/// The error for a part of a block's start that cannot be changed.
pub(super) fn start() -> PyErr {
    PyRuntimeError::new_err("prim::Param is the start of a block: it has no place and no inputs of its own")
}

/// The op of a node that can be changed.
pub(super) fn op_of(node: &PyNode, state: &State) -> PyResult<OpId> {
    node.check(state)?;
    match node.what {
        What::Op(op) => Ok(op),
        What::Param(_) => Err(start()),
    }
}

/// A value of this very graph.
pub(super) fn value_of(value: &PyValue, graph: &Arc<Shared>, state: &State) -> PyResult<ValueId> {
    if !Arc::ptr_eq(&value.graph, graph) {
        return Err(PyRuntimeError::new_err("the value is of another graph"));
    }
    state.check_value(value.value, value.born)?;
    state
        .graph
        .def_op(value.value)
        .map_or(Ok(()), |op| if state.graph.is_live(op) { Ok(()) } else { Err(gone()) })?;
    Ok(value.value)
}
