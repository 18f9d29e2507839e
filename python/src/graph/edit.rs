//! Edits of graphs, under PyTorch's names. Each looks first whether it keeps the structure whole and raises if not; whether the
//! graph still means something is the verifier's question (`lint`), which passes and calls ask.

use super::node::{PyBlock, PyNode, PyValue, What, op_of, start, value_of};
use super::state::{Point, Shared, State};
use super::{PyGraph, place};
use crate::convert::Call;
use crate::errors;
use crate::runs;
use flambeau::dialects::matches;
use flambeau::dialects::prim::constant as constants;
use flambeau::dialects::shapes::of_tensor;
use flambeau::ir::unify::{TypeEnv, match_type_variables, substitute};
use flambeau::ir::{BlockId, NoClasses, OpId, Schema, Symbol, Type, TypeKind, ValueId, parse_type};
use flambeau::value::Value;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

/// More outputs than any operator has.
const MAX_OUTPUTS: usize = 4096;

fn refused<T>(why: &str) -> PyResult<T> {
    Err(PyRuntimeError::new_err(why.to_string()))
}

/// A kind as graph text can say it.
fn kind_of(text: &str) -> PyResult<Symbol> {
    let word = |w: &str| !w.is_empty() && w.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
    match text.split_once("::") {
        Some((dialect, name)) if word(dialect) && word(name) => Ok(Symbol::new(text)),
        _ => Err(PyValueError::new_err(format!("a kind is dialect::name, not '{text}'"))),
    }
}

fn type_of(text: &str) -> PyResult<Type> {
    parse_type(text).map_err(errors::plain)
}

/// Puts a new op where the graph's insert point is.
fn place_at_point(state: &mut State, op: OpId) {
    match state.point {
        Point::Before(anchor) => state.graph.insert_before(op, anchor),
        Point::End(block) => state.graph.append(block, op),
    }
}

/// A constant at the insert point.
pub(super) fn constant(state: &mut State, value: &Value) -> PyResult<ValueId> {
    let attr = constants::attr(value).ok_or_else(|| {
        PyTypeError::new_err(format!("a value of type {} cannot be a constant", value.ty()))
    })?;
    let op = state.graph.create(Symbol::new("prim::Constant"), &[], &[value.ty()]);
    if !matches!(value, Value::None) {
        state.graph.set_attr(op, Symbol::new("value"), attr);
    }
    place_at_point(state, op);
    state.graph.result(op, 0).ok_or_else(|| PyRuntimeError::new_err("a constant has no result"))
}

/// Notes what goes with an op, and erases it. Fails if anything outside of it uses what it gives.
fn destroy(state: &mut State, op: OpId) -> PyResult<()> {
    if state.graph.terminated_block(op).is_some() {
        return refused("prim::Return ends its block and cannot be destroyed");
    }
    let graph = &state.graph;
    let blocks = graph.nested_blocks(op).to_vec();
    let mut ops = vec![op];
    ops.extend(blocks.iter().flat_map(|block| place::within(graph, *block)));
    let params = |op: &OpId| {
        graph.nested_blocks(*op).iter().flat_map(|b| graph.params(*b).to_vec()).collect::<Vec<_>>()
    };
    let values: Vec<ValueId> =
        ops.iter().flat_map(|op| graph.results(*op).into_iter().chain(params(op))).collect();
    for value in &values {
        if graph.uses(*value).any(|u| !place::contains(graph, op, u.op)) {
            let name = graph.display_name(*value);
            return refused(&format!(
                "%{name} is still used; give its uses another value before (replaceAllUsesWith)"
            ));
        }
        // A node beside the graph may hold on to it by a use of its own.
        if graph.results(op).contains(value) && graph.has_uses(*value) {
            return refused("the node uses what it gives");
        }
    }
    values.into_iter().for_each(|value| state.value_goes(value));
    ops.into_iter().for_each(|op| state.op_goes(op));
    state.graph.erase(op);
    Ok(())
}

/// The block after a node or block that Python names as a place.
fn point_of(at: &Bound<'_, PyAny>, graph: &Arc<Shared>, state: &State) -> PyResult<Point> {
    if let Ok(block) = at.cast::<PyBlock>() {
        return Ok(Point::End(block_of(block.get(), graph, state)?));
    }
    let node = at.cast::<PyNode>().map_err(|_| PyTypeError::new_err("a place is a Node or a Block"))?;
    let op = same_graph(node.get(), graph).and_then(|node| op_of(node, state))?;
    match state.graph.terminated_block(op) {
        Some(block) => Ok(Point::End(block)),
        None if state.graph.parent(op).is_none() => refused("the node is not in a graph"),
        None => Ok(Point::Before(op)),
    }
}

fn same_graph<'a>(node: &'a PyNode, graph: &Arc<Shared>) -> PyResult<&'a PyNode> {
    if Arc::ptr_eq(&node.graph, graph) { Ok(node) } else { refused("the node is of another graph") }
}

fn block_of(block: &PyBlock, graph: &Arc<Shared>, state: &State) -> PyResult<BlockId> {
    if !Arc::ptr_eq(&block.graph, graph) {
        return refused("the block is of another graph");
    }
    state.check_block(block.block, block.born)?;
    Ok(block.block)
}

/// Operands that fit a schema: what is missing gets the schema's default. None if the schema does not take them.
fn completed(state: &State, schema: &Schema, given: &[ValueId]) -> Option<Vec<Value>> {
    let formals = schema.arguments.get(given.len()..)?;
    let default = |formal: &flambeau::ir::Argument| {
        let attrs = [(Symbol::new("value"), formal.default.clone()?)];
        constants::value(&attrs, Some(&formal.ty)).ok()
    };
    let defaults: Vec<Value> = formals.iter().map(default).collect::<Option<_>>()?;
    let types: Vec<Type> = given.iter().map(|v| state.graph.ty(*v).clone()).collect();
    let rest: Vec<Type> = formals.iter().map(|f| f.ty.clone()).collect();
    let all: Vec<&Type> = types.iter().chain(&rest).collect();
    matches(schema, &all).then_some(defaults)
}

/// Types of what an operator gives for operands of these types.
fn result_types(schema: &Schema, types: &[Type]) -> PyResult<Vec<Type>> {
    let mut bound = TypeEnv::default();
    for (formal, actual) in schema.arguments.iter().zip(types) {
        match_type_variables(&formal.ty, actual, &mut bound, &NoClasses).map_err(PyRuntimeError::new_err)?;
    }
    let missing = || PyRuntimeError::new_err("the type of a result does not follow from the inputs");
    schema.returns.iter().map(|r| substitute(&r.ty, &bound).ok_or_else(missing)).collect()
}

impl PyGraph {
    fn made(&self, state: &State, op: OpId) -> PyNode {
        PyNode::new(&self.0, state, What::Op(op))
    }

    /// A value of the graph, or a constant made for a number, a text, a list.
    fn operand(&self, state: &mut State, given: &Bound<'_, PyAny>) -> PyResult<ValueId> {
        match given.cast::<PyValue>() {
            Ok(value) => value_of(value.get(), &self.0, state),
            Err(_) => constant(state, &Call::default().value(given)?),
        }
    }
}

#[pymethods]
impl PyGraph {
    /// A node that stands nowhere yet: `insertNode`, `appendNode` or `node.insertBefore` puts it into the graph. Its outputs are
    /// tensors until `value.setType` says otherwise.
    #[pyo3(signature = (kind, inputs=None, num_outputs=1))]
    fn create(&self, kind: &str, inputs: Option<&Bound<'_, PyAny>>, num_outputs: usize) -> PyResult<PyNode> {
        let kind = kind_of(kind)?;
        // `create(kind, 2)` has two outputs and no inputs.
        let count = inputs.and_then(|x| x.extract::<usize>().ok());
        let outputs = count.unwrap_or(num_outputs);
        if outputs > MAX_OUTPUTS {
            return Err(PyValueError::new_err(format!("no node has {outputs} outputs")));
        }
        let given: Vec<Bound<'_, PyValue>> = match inputs {
            Some(inputs) if count.is_none() => inputs.extract()?,
            _ => Vec::new(),
        };
        self.0.write(|state| {
            let operands =
                given.iter().map(|v| value_of(v.get(), &self.0, state)).collect::<PyResult<Vec<_>>>()?;
            let op = state.graph.create(kind, &operands, &vec![Type::tensor(); outputs]);
            Ok(self.made(state, op))
        })
    }

    /// A copy of a node, of this graph or another, whose inputs `map` gives for each value.
    #[pyo3(name = "createClone")]
    fn create_clone(
        &self,
        py: Python<'_>,
        node: &Bound<'_, PyNode>,
        map: &Bound<'_, PyAny>,
    ) -> PyResult<PyNode> {
        let inputs = node.call_method0("inputs")?;
        let inputs = inputs.try_iter()?.map(|v| map.call1((v?,))).collect::<PyResult<Vec<_>>>()?;
        let inputs: Vec<Py<PyValue>> =
            inputs.into_iter().map(|v| Ok(v.cast_into::<PyValue>()?.unbind())).collect::<PyResult<_>>()?;
        let source = node.get();
        let (kind, attrs, types) = source.look(|state| match source.what {
            What::Param(_) => Err(start()),
            What::Op(op) if !state.graph.nested_blocks(op).is_empty() => {
                refused("a node with blocks is copied with its graph: Graph.copy")
            }
            What::Op(op) => {
                let graph = &state.graph;
                let types: Vec<Type> = graph.results(op).iter().map(|v| graph.ty(*v).clone()).collect();
                Ok((graph.kind(op), graph.attrs(op).to_vec(), types))
            }
        })??;
        self.0.write(|state| {
            let operands = inputs
                .iter()
                .map(|v| value_of(v.bind(py).get(), &self.0, state))
                .collect::<PyResult<Vec<_>>>()?;
            let op = state.graph.create(kind, &operands, &types);
            attrs.into_iter().for_each(|(name, attr)| state.graph.set_attr(op, name, attr));
            Ok(self.made(state, op))
        })
    }

    /// Calls an operator at the insert point: the overload that takes the inputs, defaults for what is missing. Numbers, texts
    /// and lists of them become constants. Gives its output, or a list of them.
    fn insert<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        inputs: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let kind = kind_of(kind)?;
        let registry = runs::registry()?;
        let made: Vec<PyValue> = self.0.write(|state| {
            let given = inputs.iter().map(|x| self.operand(state, x)).collect::<PyResult<Vec<_>>>()?;
            let overloads = registry.overloads(kind);
            if overloads.is_empty() {
                return Err(errors::plain(registry.unknown(kind)));
            }
            for overload in overloads {
                let schema = overload.schema().map_err(errors::plain)?;
                let Some(defaults) = completed(state, schema, &given) else { continue };
                let mut operands = given.clone();
                for value in defaults {
                    operands.push(constant(state, &value)?);
                }
                let types: Vec<Type> = operands.iter().map(|v| state.graph.ty(*v).clone()).collect();
                let op = state.graph.create(kind, &operands, &result_types(schema, &types)?);
                place_at_point(state, op);
                let results = state.graph.results(op);
                return Ok(results.iter().map(|v| PyValue::new(&self.0, state, *v)).collect());
            }
            let types: Vec<String> = given.iter().map(|v| state.graph.ty(*v).to_string()).collect();
            let known: Vec<&str> = overloads.iter().map(|o| o.schema_text()).collect();
            refused(&format!(
                "no overload of {kind} takes ({}); there are\n  {}",
                types.join(", "),
                known.join("\n  ")
            ))
        })?;
        let mut made = made.into_iter().map(|v| Bound::new(py, v)).collect::<PyResult<Vec<_>>>()?;
        match made.len() {
            1 => Ok(made.remove(0).into_any()),
            _ => Ok(pyo3::types::PyList::new(py, made)?.into_any()),
        }
    }

    /// Puts the nodes of another graph at the insert point, with `inputs` in place of what it takes; gives what it gives.
    #[pyo3(name = "insertGraph")]
    fn insert_graph(
        &self,
        graph: &Bound<'_, PyGraph>,
        inputs: Vec<Bound<'_, PyValue>>,
    ) -> PyResult<Vec<PyValue>> {
        let other = graph.get().content();
        if other.inputs().len() != inputs.len() {
            return refused(&format!(
                "the graph takes {} inputs, not {}",
                other.inputs().len(),
                inputs.len()
            ));
        }
        self.0.write(|state| {
            let given =
                inputs.iter().map(|v| value_of(v.get(), &self.0, state)).collect::<PyResult<Vec<_>>>()?;
            let mut map = other.inputs().iter().copied().zip(given).collect();
            for op in other.block_ops(other.root()) {
                let copy = state.graph.copy_op(&other, op, &mut map);
                place_at_point(state, copy);
            }
            Ok(other
                .outputs()
                .iter()
                .filter_map(|v| map.get(v))
                .map(|v| PyValue::new(&self.0, state, *v))
                .collect())
        })
    }

    /// Puts a node at the insert point.
    #[pyo3(name = "insertNode")]
    fn insert_node(&self, node: &Bound<'_, PyNode>) -> PyResult<PyNode> {
        self.0.write(|state| {
            let op = self.loose(state, node.get())?;
            place_at_point(state, op);
            Ok(self.made(state, op))
        })
    }

    /// Puts a node at the end of the graph.
    #[pyo3(name = "appendNode")]
    fn append_node(&self, node: &Bound<'_, PyNode>) -> PyResult<PyNode> {
        self.0.write(|state| {
            let op = self.loose(state, node.get())?;
            let root = state.graph.root();
            state.graph.append(root, op);
            Ok(self.made(state, op))
        })
    }

    /// Puts a node at the start of the graph.
    #[pyo3(name = "prependNode")]
    fn prepend_node(&self, node: &Bound<'_, PyNode>) -> PyResult<PyNode> {
        self.0.write(|state| {
            let op = self.loose(state, node.get())?;
            let root = state.graph.root();
            state.graph.prepend(root, op);
            Ok(self.made(state, op))
        })
    }

    /// Lets `insert`, `insertNode` and `insertConstant` put nodes before a node or at the end of a block.
    #[pyo3(name = "setInsertPoint")]
    fn set_insert_point(&self, place: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.write(|state| {
            state.point = point_of(place, &self.0, state)?;
            Ok(())
        })
    }

    /// The node before which nodes are inserted.
    #[pyo3(name = "insertPoint")]
    fn insert_point(&self) -> PyNode {
        self.0.read(|state| match state.point {
            Point::Before(op) => self.made(state, op),
            Point::End(block) => self.made(state, state.graph.terminator(block)),
        })
    }

    /// `with graph.insert_point_guard(node):` inserts there, and after it where it did before.
    fn insert_point_guard(slf: Bound<'_, PyGraph>, place: Py<PyAny>) -> PyInsertGuard {
        PyInsertGuard { graph: slf.unbind(), place, former: parking_lot::Mutex::new(None) }
    }

    /// One more input, a tensor until `setType` says otherwise.
    #[pyo3(name = "addInput", signature = (name=""))]
    fn add_input(&self, name: &str) -> PyValue {
        self.0.write(|state| {
            let value = state.graph.add_input(Type::tensor());
            if !name.is_empty() {
                state.graph.set_unique_name(value, name);
            }
            PyValue::new(&self.0, state, value)
        })
    }

    /// Removes an input that nothing uses.
    #[pyo3(name = "eraseInput")]
    fn erase_input(&self, n: usize) -> PyResult<()> {
        self.0.write(|state| {
            let Some(value) = state.graph.inputs().get(n).copied() else {
                return Err(PyIndexError::new_err(format!("there is no input {n}")));
            };
            if state.graph.has_uses(value) {
                return refused(&format!("input {n} is still used"));
            }
            state.value_goes(value);
            let root = state.graph.root();
            state.graph.remove_param(root, n);
            Ok(())
        })
    }

    /// One more output; gives how many there are then.
    #[pyo3(name = "registerOutput")]
    fn register_output(&self, value: &Bound<'_, PyValue>) -> PyResult<usize> {
        self.0.write(|state| {
            let value = value_of(value.get(), &self.0, state)?;
            state.graph.add_output(value);
            Ok(state.graph.outputs().len())
        })
    }

    /// Removes an output.
    #[pyo3(name = "eraseOutput")]
    fn erase_output(&self, n: usize) -> PyResult<()> {
        self.0.write(|state| {
            if n >= state.graph.outputs().len() {
                return Err(PyIndexError::new_err(format!("there is no output {n}")));
            }
            let root = state.graph.root();
            state.graph.remove_block_result(root, n);
            Ok(())
        })
    }

    /// Makes of several outputs one that is a tuple of them.
    #[pyo3(name = "makeMultiOutputIntoTuple")]
    fn make_multi_output_into_tuple(&self) {
        self.0.write(|state| {
            let outputs = state.graph.outputs().to_vec();
            if outputs.len() == 1 {
                return;
            }
            let types: Vec<Type> = outputs.iter().map(|v| state.graph.ty(*v).clone()).collect();
            let root = state.graph.root();
            let op =
                state.graph.emit(root, Symbol::new("prim::TupleConstruct"), &outputs, &[Type::tuple(types)]);
            let made: Vec<ValueId> = state.graph.results(op).to_vec();
            state.graph.set_block_results(root, &made);
        });
    }
}

impl PyGraph {
    /// The op of a node of this graph that stands nowhere.
    fn loose(&self, state: &State, node: &PyNode) -> PyResult<OpId> {
        let op = same_graph(node, &self.0).and_then(|node| op_of(node, state))?;
        if place::block_of(&state.graph, op).is_some() {
            return refused("the node is already in the graph; moveBefore and moveAfter move it");
        }
        Ok(op)
    }
}

/// Sets the insert point and restores it.
#[pyclass(name = "InsertPointGuard", module = "flambeau", frozen)]
pub(crate) struct PyInsertGuard {
    graph: Py<PyGraph>,
    place: Py<PyAny>,
    former: parking_lot::Mutex<Option<Point>>,
}

#[pymethods]
impl PyInsertGuard {
    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        let graph = self.graph.get();
        *self.former.lock() = Some(graph.0.read(|state| state.point));
        graph.set_insert_point(self.place.bind(py))
    }

    fn __exit__(&self, _class: &Bound<'_, PyAny>, _raised: &Bound<'_, PyAny>, _traceback: &Bound<'_, PyAny>) {
        if let Some(point) = self.former.lock().take() {
            self.graph.get().0.write(|state| {
                let is_there = match point {
                    Point::Before(op) => state.graph.is_live(op) && state.graph.parent(op).is_some(),
                    Point::End(_) => true,
                };
                state.point = if is_there { point } else { Point::End(state.graph.root()) };
            });
        }
    }
}

impl PyNode {
    fn change<T>(&self, change: impl FnOnce(&mut State, OpId) -> PyResult<T>) -> PyResult<T> {
        self.graph.write(|state| {
            let op = op_of(self, state)?;
            change(state, op)
        })
    }

    /// Moves or places this node beside another, which stands in the graph and not in this node.
    fn beside(
        &self,
        other: &PyNode,
        is_new: bool,
        put: impl FnOnce(&mut State, OpId, OpId) -> PyResult<()>,
    ) -> PyResult<()> {
        same_graph(other, &self.graph)?;
        self.change(|state, op| {
            let graph = &state.graph;
            if graph.terminated_block(op).is_some() {
                return refused("prim::Return stays at the end of its block");
            }
            if is_new && graph.parent(op).is_some() {
                return refused("the node is already in the graph; moveBefore and moveAfter move it");
            }
            if let What::Param(block) = other.what {
                other.check(state)?;
                if graph.owner(block).is_some_and(|owner| place::contains(graph, op, owner)) {
                    return refused("a node cannot be nested in itself");
                }
                state.graph.detach(op);
                state.graph.prepend(block, op);
                return Ok(());
            }
            let anchor = op_of(other, state)?;
            if place::block_of(graph, anchor).is_none() {
                return refused("the other node is not in a graph");
            }
            if anchor == op {
                return Ok(());
            }
            if place::contains(graph, op, anchor) {
                return refused("a node cannot be nested in itself");
            }
            put(state, op, anchor)
        })
    }
}

fn before(state: &mut State, op: OpId, anchor: OpId) -> PyResult<()> {
    state.graph.move_before(op, anchor);
    Ok(())
}

fn after(state: &mut State, op: OpId, anchor: OpId) -> PyResult<()> {
    if state.graph.terminated_block(anchor).is_some() {
        return refused("nothing can follow prim::Return");
    }
    state.graph.move_after(op, anchor);
    Ok(())
}

#[pymethods]
impl PyNode {
    /// Puts a new node before another.
    #[pyo3(name = "insertBefore")]
    fn insert_before<'py>(
        slf: Bound<'py, PyNode>,
        other: &Bound<'py, PyNode>,
    ) -> PyResult<Bound<'py, PyNode>> {
        slf.get().beside(other.get(), true, before)?;
        Ok(slf)
    }

    /// Puts a new node after another.
    #[pyo3(name = "insertAfter")]
    fn insert_after<'py>(
        slf: Bound<'py, PyNode>,
        other: &Bound<'py, PyNode>,
    ) -> PyResult<Bound<'py, PyNode>> {
        slf.get().beside(other.get(), true, after)?;
        Ok(slf)
    }

    /// Moves the node before another.
    #[pyo3(name = "moveBefore")]
    fn move_before(&self, other: &Bound<'_, PyNode>) -> PyResult<()> {
        self.beside(other.get(), false, before)
    }

    /// Moves the node after another.
    #[pyo3(name = "moveAfter")]
    fn move_after(&self, other: &Bound<'_, PyNode>) -> PyResult<()> {
        self.beside(other.get(), false, after)
    }

    /// Takes the node out of the graph. Fails while anything uses what it gives.
    fn destroy(&self) -> PyResult<()> {
        self.change(destroy)
    }

    /// Gives the uses of each output to the output of another node at the same place.
    #[pyo3(name = "replaceAllUsesWith")]
    fn replace_all_uses_with(&self, other: &Bound<'_, PyNode>) -> PyResult<()> {
        let other = same_graph(other.get(), &self.graph)?;
        self.change(|state, op| {
            let with = op_of(other, state)?;
            let (old, new) = (state.graph.results(op), state.graph.results(with));
            if old.len() != new.len() {
                return refused(&format!("the nodes have {} and {} outputs", old.len(), new.len()));
            }
            old.into_iter().zip(new).for_each(|(old, new)| state.graph.replace_all_uses(old, new));
            Ok(())
        })
    }

    /// One more input; gives it.
    #[pyo3(name = "addInput")]
    fn add_input<'py>(&self, value: Bound<'py, PyValue>) -> PyResult<Bound<'py, PyValue>> {
        self.change(|state, op| {
            let given = value_of(value.get(), &self.graph, state)?;
            state.graph.add_operand(op, given);
            Ok(())
        })?;
        Ok(value)
    }

    /// Replaces an input; gives the former one.
    #[pyo3(name = "replaceInput")]
    fn replace_input(&self, n: usize, value: &Bound<'_, PyValue>) -> PyResult<PyValue> {
        self.change(|state, op| {
            let given = value_of(value.get(), &self.graph, state)?;
            let former = at(state.graph.operands(op), n, "input")?;
            state.graph.set_operand(op, n, given);
            Ok(PyValue::new(&self.graph, state, former))
        })
    }

    /// Replaces each input that is one value by another.
    #[pyo3(name = "replaceInputWith")]
    fn replace_input_with(&self, from: &Bound<'_, PyValue>, to: &Bound<'_, PyValue>) -> PyResult<()> {
        self.change(|state, op| {
            let from = value_of(from.get(), &self.graph, state)?;
            let to = value_of(to.get(), &self.graph, state)?;
            let operands: Vec<ValueId> =
                state.graph.operands(op).iter().map(|v| if *v == from { to } else { *v }).collect();
            state.graph.set_operands(op, &operands);
            Ok(())
        })
    }

    /// Removes an input.
    #[pyo3(name = "removeInput")]
    fn remove_input(&self, n: usize) -> PyResult<()> {
        self.change(|state, op| {
            at(state.graph.operands(op), n, "input")?;
            state.graph.remove_operand(op, n);
            Ok(())
        })
    }

    /// Removes all inputs.
    #[pyo3(name = "removeAllInputs")]
    fn remove_all_inputs(&self) -> PyResult<()> {
        self.change(|state, op| {
            state.graph.set_operands(op, &[]);
            Ok(())
        })
    }

    /// One more output, a tensor until `setType` says otherwise.
    #[pyo3(name = "addOutput")]
    fn add_output(&self) -> PyResult<PyValue> {
        self.change(|state, op| {
            if state.graph.terminated_block(op).is_some() {
                return refused("prim::Return has no outputs");
            }
            if state.graph.result_count(op) >= MAX_OUTPUTS {
                return refused("no node has that many outputs");
            }
            let value = state.graph.add_result(op, Type::tensor());
            Ok(PyValue::new(&self.graph, state, value))
        })
    }

    /// Removes an output that nothing uses.
    #[pyo3(name = "eraseOutput")]
    fn erase_output(&self, n: usize) -> PyResult<()> {
        self.change(|state, op| {
            let value = at(&state.graph.results(op), n, "output")?;
            if state.graph.has_uses(value) {
                return refused(&format!("output {n} is still used"));
            }
            state.value_goes(value);
            state.graph.remove_result(op, n);
            Ok(())
        })
    }

    /// One more block, empty.
    #[pyo3(name = "addBlock")]
    fn add_block(&self) -> PyResult<PyBlock> {
        self.change(|state, op| {
            if state.graph.terminated_block(op).is_some() {
                return refused("prim::Return has no blocks");
            }
            let block = state.graph.add_block(op);
            Ok(PyBlock::new(&self.graph, state, block))
        })
    }
}

fn at<T: Copy>(all: &[T], n: usize, what: &str) -> PyResult<T> {
    all.get(n).copied().ok_or_else(|| PyIndexError::new_err(format!("the node has no {what} {n}")))
}

impl PyValue {
    fn change<T>(&self, change: impl FnOnce(&mut State, ValueId) -> PyResult<T>) -> PyResult<T> {
        self.graph.write(|state| {
            let value = value_of(self, &self.graph, state)?;
            change(state, value)
        })
    }
}

fn typed(value: Bound<'_, PyValue>, ty: Type) -> PyResult<Bound<'_, PyValue>> {
    value.get().change(|state, value| {
        state.graph.set_type(value, ty);
        Ok(())
    })?;
    Ok(value)
}

#[pymethods]
impl PyValue {
    /// Gives all its uses to another value.
    #[pyo3(name = "replaceAllUsesWith")]
    fn replace_all_uses_with(&self, other: &Bound<'_, PyValue>) -> PyResult<()> {
        self.change(|state, value| {
            let with = value_of(other.get(), &self.graph, state)?;
            state.graph.replace_all_uses(value, with);
            Ok(())
        })
    }

    /// Gives those of its uses to another value that come after a node.
    #[pyo3(name = "replaceAllUsesAfterNodeWith")]
    fn replace_all_uses_after(&self, node: &Bound<'_, PyNode>, other: &Bound<'_, PyValue>) -> PyResult<()> {
        let node = same_graph(node.get(), &self.graph)?;
        self.change(|state, value| {
            let anchor = op_of(node, state)?;
            let with = value_of(other.get(), &self.graph, state)?;
            let graph = &mut state.graph;
            let uses: Vec<_> = graph.uses(value).collect();
            for u in uses {
                if u.op != anchor && place::is_before(graph, anchor, u.op) == Some(true) {
                    graph.set_operand(u.op, u.index, with);
                }
            }
            Ok(())
        })
    }

    /// Sets its type, written as in graph text: `"Tensor"`, `"int[]"`, `"Float(2, 3)"`.
    #[pyo3(name = "setType")]
    fn set_type<'py>(slf: Bound<'py, PyValue>, ty: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyValue>> {
        // A type's own text is TorchScript's, which says less.
        let text = ty.getattr("_text").unwrap_or_else(|_| ty.clone());
        let ty = type_of(text.str()?.to_str()?)?;
        typed(slf, ty)
    }

    /// Gives it the type of another.
    #[pyo3(name = "setTypeAs")]
    fn set_type_as<'py>(
        slf: Bound<'py, PyValue>,
        other: &Bound<'_, PyValue>,
    ) -> PyResult<Bound<'py, PyValue>> {
        let other = other.get();
        let ty = other.look(|state| state.graph.ty(other.value).clone())?;
        typed(slf, ty)
    }

    /// Gives it the type of a tensor: dtype, sizes, strides, device.
    #[pyo3(name = "inferTypeFrom")]
    fn infer_type_from<'py>(
        slf: Bound<'py, PyValue>,
        given: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyValue>> {
        match Call::default().value(given)? {
            Value::Tensor(tensor) => typed(slf, Type::new(TypeKind::Tensor(of_tensor(&tensor)))),
            other => Err(PyTypeError::new_err(format!("a tensor is wanted, not {}", other.ty()))),
        }
    }

    /// Names it; a name that is taken gets a number.
    #[pyo3(name = "setDebugName")]
    fn set_debug_name<'py>(slf: Bound<'py, PyValue>, name: &str) -> PyResult<Bound<'py, PyValue>> {
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        if name.is_empty() || !name.chars().all(word) || name.chars().all(|c| c.is_ascii_digit()) {
            return Err(PyValueError::new_err(format!("'{name}' is not the name of a value")));
        }
        slf.get().change(|state, value| {
            state.graph.set_unique_name(value, name);
            Ok(())
        })?;
        Ok(slf)
    }
}

#[pymethods]
impl PyBlock {
    /// One more input, a tensor until `setType` says otherwise.
    #[pyo3(name = "addInputToBlock")]
    fn add_input_to_block(&self) -> PyResult<PyValue> {
        self.graph.write(|state| {
            let block = block_of(self, &self.graph, state)?;
            let value = state.graph.add_param(block, Type::tensor());
            Ok(PyValue::new(&self.graph, state, value))
        })
    }

    /// One more output; gives how many there are then.
    #[pyo3(name = "registerOutput")]
    fn register_output(&self, value: &Bound<'_, PyValue>) -> PyResult<usize> {
        self.graph.write(|state| {
            let block = block_of(self, &self.graph, state)?;
            let value = value_of(value.get(), &self.graph, state)?;
            state.graph.add_block_result(block, value);
            Ok(state.graph.block_results(block).len())
        })
    }

    /// A node at the end of the block.
    #[pyo3(name = "addNode")]
    fn add_node(&self, kind: &str, inputs: Vec<Bound<'_, PyValue>>) -> PyResult<PyNode> {
        let kind = kind_of(kind)?;
        self.graph.write(|state| {
            let block = block_of(self, &self.graph, state)?;
            let operands =
                inputs.iter().map(|v| value_of(v.get(), &self.graph, state)).collect::<PyResult<Vec<_>>>()?;
            let op = state.graph.emit(block, kind, &operands, &[Type::tensor()]);
            Ok(PyNode::new(&self.graph, state, What::Op(op)))
        })
    }
}
