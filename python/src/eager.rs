//! Single operations called from Python. Each kind of call is compiled once, as the TorchScript function of one line that a
//! script would have for it: overloads, defaults and conversions are the frontend's, and what is eager means what a script means.

use crate::convert::Call;
use crate::dtype::dtype_from;
use crate::errors;
use crate::runs;
use flambeau::runtime::Program;
use flambeau::tensor::Tensor;
use flambeau::value::Value;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyEllipsis, PyList, PyNone, PySlice, PyString, PyTuple};
use std::fmt::Write;
use table::Cache;

type Any<'py> = Bound<'py, PyAny>;

/// Programs by their text.
mod table {
    use flambeau::runtime::Program;
    use std::collections::BTreeMap;

    /// Programs kept; when there are more, all are made anew.
    const MAX: usize = 4096;

    /// A bounded table.
    #[derive(Default)]
    pub(super) struct Cache(BTreeMap<String, Program>);

    impl Cache {
        pub(super) fn get(&self, text: &str) -> Option<Program> {
            self.0.get(text).cloned()
        }

        pub(super) fn put(&mut self, text: String, program: Program) {
            if self.0.len() >= MAX {
                self.0.clear();
            }
            self.0.insert(text, program);
        }
    }
}

static CACHE: parking_lot::RwLock<Option<Cache>> = parking_lot::RwLock::new(None);

/// The text of a call in the making, with the values that it takes.
struct Line<'py> {
    call: Call<'py>,
    parameters: String,
    values: Vec<Value>,
    /// What Python gave for each of them.
    objects: Vec<Any<'py>>,
}

impl<'py> Line<'py> {
    fn new() -> Line<'py> {
        Line { call: Call::default(), parameters: String::new(), values: Vec::new(), objects: Vec::new() }
    }

    fn parameter(&mut self, value: Value, object: &Any<'py>) -> String {
        let name = format!("a{}", self.values.len());
        if !self.values.is_empty() {
            self.parameters.push_str(", ");
        }
        let _ = write!(self.parameters, "{name}: {}", value.ty().annotation());
        self.values.push(value);
        self.objects.push(object.clone());
        name
    }

    /// An argument: what decides between overloads stands in the text, numbers and tensors are parameters.
    fn argument(&mut self, object: &Any<'py>) -> PyResult<String> {
        if object.is_none() {
            return Ok("None".to_string());
        }
        if let Ok(truth) = object.cast::<PyBool>() {
            return Ok(if truth.is_true() { "True" } else { "False" }.to_string());
        }
        if let Some(dtype) = dtype_from(object)? {
            return Ok(dtype.code().to_string());
        }
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            return self.sequence(object);
        }
        let value = self.call.value(object)?;
        Ok(self.parameter(value, object))
    }

    fn sequence(&mut self, object: &Any<'py>) -> PyResult<String> {
        let items = object.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let plain =
            |x: &Any<'py>| !x.is_none() && !x.is_instance_of::<PyList>() && !x.is_instance_of::<PyTuple>();
        if !items.is_empty() && items.iter().all(plain) {
            let mut values = items.iter().map(|x| self.call.value(x)).collect::<PyResult<Vec<_>>>()?;
            if values.iter().any(|v| matches!(v, Value::Float(_)))
                && values.iter().any(|v| matches!(v, Value::Int(_)))
            {
                for value in &mut values {
                    if let Value::Int(x) = value {
                        *value = Value::Float(*x as f64);
                    }
                }
            }
            let element = values[0].ty();
            if values.iter().all(|v| v.ty() == element) {
                return Ok(self.parameter(Value::list(element, values), object));
            }
        }
        let parts = items.iter().map(|x| self.argument(x)).collect::<PyResult<Vec<_>>>()?;
        Ok(format!("[{}]", parts.join(", ")))
    }

    fn arguments(&mut self, args: &[Any<'py>], kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<String> {
        let mut parts = args.iter().map(|x| self.argument(x)).collect::<PyResult<Vec<_>>>()?;
        for (name, value) in kwargs.into_iter().flat_map(|k| k.iter()) {
            let text = self.argument(&value)?;
            parts.push(format!("{}={text}", name.extract::<String>()?));
        }
        Ok(parts.join(", "))
    }

    /// What stands between the brackets of an index.
    fn index(&mut self, index: &Any<'py>) -> PyResult<String> {
        if let Ok(parts) = index.cast::<PyTuple>() {
            let parts = parts.iter().map(|x| self.index_part(&x)).collect::<PyResult<Vec<_>>>()?;
            return Ok(parts.join(", "));
        }
        self.index_part(index)
    }

    fn index_part(&mut self, part: &Any<'py>) -> PyResult<String> {
        if part.is_instance_of::<PyEllipsis>() {
            return Ok("...".to_string());
        }
        if part.is_instance_of::<PyNone>() {
            return Ok("None".to_string());
        }
        if let Ok(slice) = part.cast::<PySlice>() {
            let mut bounds = Vec::new();
            for name in ["start", "stop", "step"] {
                let bound = slice.getattr(name)?;
                bounds.push(if bound.is_none() { String::new() } else { self.argument(&bound)? });
            }
            return Ok(match bounds[2].as_str() {
                "" => format!("{}:{}", bounds[0], bounds[1]),
                step => format!("{}:{}:{step}", bounds[0], bounds[1]),
            });
        }
        if part.is_instance_of::<PyList>() {
            let tensor = crate::tensor::tensor_of(part, None)?;
            return Ok(self.parameter(Value::Tensor(tensor.tensor().clone()), part));
        }
        if part.is_instance_of::<PyBool>() {
            let tensor = crate::tensor::tensor_of(part, None)?;
            return Ok(self.parameter(Value::Tensor(tensor.tensor().clone()), part));
        }
        self.argument(part)
    }

    /// Runs the line: `expression` is what the function gives.
    fn run(self, py: Python<'py>, expression: &str, gives: bool) -> PyResult<Any<'py>> {
        let text = if gives {
            format!("def op({}):\n    return {expression}\n", self.parameters)
        } else {
            format!("def op({}):\n    {expression}\n", self.parameters)
        };
        if tracing(py)? {
            return trace_line(py, self, &text, expression, gives);
        }
        let program = program(py, &text)?;
        let values = self.values;
        let work = || runs::with_run(|run| program.run("op", values, run));
        let result = runs::outside(py, work)?;
        let mut call = self.call;
        call.carry_back(py)?;
        let result = result.map_err(errors::plain)?;
        runs::pass_warnings(py)?;
        // Single operations give tensors of ours, whatever they are given.
        call.kind = None;
        call.give(py, &result, None)
    }
}

/// A tensor over the same memory that gradients are recorded to have been made of this one, where they are recorded.
pub(crate) fn alias(py: Python<'_>, tensor: Tensor) -> PyResult<Tensor> {
    let records = runs::grad_enabled() && py.import("torch")?.call_method0("is_grad_enabled")?.is_truthy()?;
    let program = program(py, "def op(a0: Tensor):\n    return torch.ops.aten.alias(a0)\n")?;
    let work = || runs::with_grad(records, |run| program.run("op", vec![Value::Tensor(tensor)], run));
    match runs::outside(py, work)?.map_err(errors::plain)? {
        Value::Tensor(alias) => {
            // It may be written to, which a view of a leaf may not.
            alias.set_base(None);
            Ok(alias)
        }
        _ => Err(PyTypeError::new_err("an alias is a tensor")),
    }
}

fn program(py: Python<'_>, text: &str) -> PyResult<Program> {
    if let Some(program) = CACHE.read().as_ref().and_then(|cache| cache.get(text)) {
        return Ok(program);
    }
    let toolkit = runs::toolkit()?;
    let compiled = runs::outside(py, || toolkit.load_source("<flambeau>", text))?;
    let program = compiled.map_err(|error| {
        if error.kind() == flambeau::diag::ErrorKind::Limit {
            return errors::plain(error);
        }
        let message = error.message().trim().to_string();
        match message.contains("object has no attribute") && !message.contains("Arguments for call") {
            true => PyAttributeError::new_err(message),
            false => PyTypeError::new_err(message),
        }
    })?;
    CACHE.write().get_or_insert_with(Cache::default).put(text.to_string(), program.clone());
    Ok(program)
}

/// Whether calls of this thread are recorded.
pub(crate) fn tracing(py: Python<'_>) -> PyResult<bool> {
    static ACTIVE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if !ANY_TRACE.load(std::sync::atomic::Ordering::Relaxed) {
        return Ok(false);
    }
    errors::imported(py, &ACTIVE, "flambeau._trace", "is_active")?.call0()?.is_truthy()
}

/// Whether any thread records.
static ANY_TRACE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Says whether any thread records calls.
#[pyfunction]
pub(crate) fn set_tracing(on: bool) {
    ANY_TRACE.store(on, std::sync::atomic::Ordering::Relaxed);
}

/// Runs the line and lets the trace of this thread note it.
fn trace_line<'py>(
    py: Python<'py>,
    line: Line<'py>,
    text: &str,
    expression: &str,
    gives: bool,
) -> PyResult<Any<'py>> {
    static NOTE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let program = program(py, text)?;
    let Line { call, values, objects, .. } = line;
    let (call, own) = (&call, Call::default());
    // Numbers may remember how they were computed; arrays are tensors here.
    let input = |(value, object): (&Value, Any<'py>)| match value {
        Value::Tensor(_) => call_object(call, &own, py, value),
        _ => Ok(object),
    };
    let inputs = values.iter().zip(objects).map(input).collect::<PyResult<Vec<_>>>()?;
    let work = || runs::with_run(|run| program.run("op", values, run));
    let result = runs::outside(py, work)?.map_err(errors::plain)?;
    let result = call_object(call, &own, py, &result)?;
    let note = errors::imported(py, &NOTE, "flambeau._trace", "note")?;
    note.call1((expression, gives, PyList::new(py, inputs)?, &result))?;
    Ok(result)
}

fn call_object<'py>(call: &Call<'py>, own: &Call<'py>, py: Python<'py>, value: &Value) -> PyResult<Any<'py>> {
    match value {
        Value::Tensor(_) if call.kind == Some(crate::convert::Kind::Own) => call.give(py, value, None),
        other => own.give(py, other, None),
    }
}

/// `left + right` and so on.
pub(crate) fn operator<'py>(
    py: Python<'py>,
    sign: &str,
    left: &Any<'py>,
    right: &Any<'py>,
) -> PyResult<Any<'py>> {
    let mut line = Line::new();
    let (left, right) = (line.argument(left)?, line.argument(right)?);
    line.run(py, &format!("{left} {sign} {right}"), true)
}

/// `receiver.name(...)`
pub(crate) fn method<'py>(
    receiver: &Any<'py>,
    name: &str,
    args: &[Any<'py>],
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Any<'py>> {
    let mut line = Line::new();
    let receiver_text = line.argument(receiver)?;
    let arguments = line.arguments(args, kwargs)?;
    line.run(receiver.py(), &format!("{receiver_text}.{name}({arguments})"), true)
}

/// `receiver[index]`
pub(crate) fn get_item<'py>(receiver: &Any<'py>, index: &Any<'py>) -> PyResult<Any<'py>> {
    let mut line = Line::new();
    let text = line.argument(receiver)?;
    let index = line.index(index)?;
    line.run(receiver.py(), &format!("{text}[{index}]"), true)
}

/// `receiver[index] = value`
pub(crate) fn set_item<'py>(receiver: &Any<'py>, index: &Any<'py>, value: &Any<'py>) -> PyResult<()> {
    let mut line = Line::new();
    let text = line.argument(receiver)?;
    let index = line.index(index)?;
    let value = line.argument(value)?;
    line.run(receiver.py(), &format!("{text}[{index}] = {value}"), false).map(|_| ())
}

/// Properties of tensors that are ops.
const PROPERTIES: &[&str] = &[
    "T",
    "H",
    "mT",
    "mH",
    "real",
    "imag",
    "is_cuda",
    "is_sparse",
    "is_quantized",
    "is_meta",
    "layout",
    "itemsize",
    "nbytes",
    "is_mkldnn",
    "is_nested",
    "is_cpu",
];

/// Whether a name is such a property.
pub(crate) fn is_property(name: &str) -> bool {
    PROPERTIES.contains(&name)
}

/// `receiver.name`
pub(crate) fn property<'py>(receiver: &Any<'py>, name: &str) -> PyResult<Any<'py>> {
    let mut line = Line::new();
    let text = line.argument(receiver)?;
    line.run(receiver.py(), &format!("{text}.{name}"), true)
}

/// Methods of tensors without an op of that name: the frontend knows what they mean.
const CASTS: &[&str] = &[
    "byte", "char", "short", "int", "long", "half", "float", "double", "bool", "cfloat", "cdouble", "type",
    "bfloat16",
];

/// Whether tensors have a method: an op that takes a tensor called `self`.
pub(crate) fn is_method(name: &str) -> PyResult<bool> {
    if CASTS.contains(&name) {
        return Ok(true);
    }
    let registry = runs::registry()?;
    let Some(kind) = flambeau::ir::Symbol::existing(&format!("aten::{name}")) else { return Ok(false) };
    Ok(registry.overloads(kind).iter().any(takes_self))
}

fn takes_self(op: &flambeau::dialects::Op) -> bool {
    op.schema()
        .is_ok_and(|schema| schema.arguments.first().is_some_and(|a| a.name == "self" && a.ty.is_tensor()))
}

/// The methods of tensors.
pub(crate) fn method_names() -> PyResult<Vec<String>> {
    let registry = runs::registry()?;
    let mut names: Vec<String> = registry
        .iter()
        .filter(|op| takes_self(op))
        .filter_map(|op| op.name().as_str().strip_prefix("aten::").map(String::from))
        .filter(|name| !name.starts_with('_'))
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Calls a function of PyTorch by its path: `torch.add`, `torch.nn.functional.relu`, `ops.aten.add`.
#[pyfunction]
#[pyo3(signature = (path, args, kwargs=None))]
pub(crate) fn call_op<'py>(
    py: Python<'py>,
    path: &str,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Any<'py>> {
    let mut line = Line::new();
    let args: Vec<Any<'py>> = args.iter().collect();
    let arguments = line.arguments(&args, kwargs)?;
    line.run(py, &format!("{path}({arguments})"), true)
}

/// Whether there is an op of a name (`aten::add`) that runs.
#[pyfunction]
pub(crate) fn known_op(name: &str) -> PyResult<bool> {
    let registry = runs::registry()?;
    let kind = flambeau::ir::Symbol::existing(name);
    Ok(kind.is_some_and(|kind| registry.overloads(kind).iter().any(|op| op.is_built())))
}

/// Whether an overload of an op (`aten::add`, `Tensor`) runs.
#[pyfunction]
pub(crate) fn built_op(name: &str, overload: &str) -> PyResult<bool> {
    Ok(runs::registry()?.find(name, overload).is_some_and(|op| op.is_built()))
}

/// The schemas of an op's overloads.
#[pyfunction]
pub(crate) fn op_schemas(name: &Bound<'_, PyString>) -> PyResult<Vec<String>> {
    let registry = runs::registry()?;
    let kind = flambeau::ir::Symbol::existing(name.to_str()?);
    Ok(kind
        .map(|k| registry.overloads(k).iter().map(|op| op.schema_text().to_string()).collect())
        .unwrap_or_default())
}
