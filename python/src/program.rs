//! Programs, their objects and functions: what Python calls.

use crate::cast::Cast;
use crate::convert::{Call, Kind};
use crate::errors;
use crate::graph::PyGraph;
use crate::limits::{Bounds, PyLimits};
use crate::runs;
use crate::tensor::PyTensor;
use flambeau::backends::FusionReport;
use flambeau::diag::{Diagnostic, Source, panics};
use flambeau::dialects::prim::constant;
use flambeau::dialects::{Effects, Run, one};
use flambeau::frontend::archive::{self, Archive, save as writer};
use flambeau::frontend::python_print;
use flambeau::frontend::script::compile_further;
use flambeau::ir::{ClassKind, Function, Module, Symbol, Type};
use flambeau::passes::manager::Settings;
use flambeau::resources::Once;
use flambeau::resources::scope::Scope;
use flambeau::runtime::Program;
use flambeau::toolkit::{self, Entries, Toolkit};
use flambeau::tools::{debug_state, explain, view, weights};
use flambeau::value::{Object, Value};
use parking_lot::Mutex;
use pyo3::exceptions::{PyAttributeError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// The op that calls functions of Python by their number. The last argument, never read, says the type of the result.
const CALL: &str = "python::call(int function, Any arguments, t like) -> t";

/// The built-in toolkit with the op that calls Python.
pub(crate) fn toolkit() -> Toolkit {
    Toolkit::new("flambeau").op_with_effects(CALL, Effects::ALL, |args| {
        one(crate::convert::call_python(args.int(0)?, args.value(1)?, args.result_type(0))?)
    })
}

/// Whether a program calls functions of Python, which no archive can hold.
#[pyfunction]
pub(crate) fn python_calls(core: &Bound<'_, PyProgram>) -> bool {
    let module = core.get().core.plain.module();
    module.functions.values().any(|f| f.graph.all_ops().iter().any(|op| f.graph.kind(*op) == "python::call"))
}

/// A program as compiled, and as it runs.
pub(crate) struct Core {
    pub plain: Program,
    fast: Once<Entries>,
    /// The same within `torch.autocast` of the CPU, of bfloat16 and of float16.
    cast: [Once<Entries>; 2],
    links: Arc<Links>,
    /// What each call may use.
    bounds: Option<Arc<Bounds>>,
    /// This program with the classes of another, whose objects calls were given.
    joined: Mutex<Vec<(Weak<Core>, Arc<Core>)>>,
}

/// The function that a call by this name runs.
fn function_of(name: &str) -> &str {
    if name == "__call__" { "forward" } else { name }
}

/// The call of a program that a thread made last. It keeps nothing of the program alive.
#[derive(Default)]
struct LastCall {
    core: Weak<Core>,
    class: Option<Symbol>,
    name: String,
}

thread_local! {
    static LAST: RefCell<LastCall> = RefCell::default();
}

impl LastCall {
    fn set(&mut self, core: &Arc<Core>, class: Option<Symbol>, name: &str) {
        self.core = Arc::downgrade(core);
        self.class = class;
        self.name.clear();
        self.name.push_str(function_of(name));
    }
}

/// The graph of the plan that the function which this thread called last used last; of the function itself where it has no plan, or
/// plans are off. None before the first call, and where the program is gone.
#[pyfunction]
pub(crate) fn last_graph() -> PyResult<Option<PyGraph>> {
    LAST.with_borrow(|last| {
        let Some(core) = last.core.upgrade() else { return Ok(None) };
        let program = match runs::plans() {
            true => core.fast(last.class, &last.name).map_err(errors::of_program)?,
            false => core.plain.clone(),
        };
        let graph = program.last_graph(last.class, &last.name);
        Ok(graph.map(|graph| PyGraph::new(graph, Arc::clone(&core))))
    })
}

/// Tensors of PyTorch that share the memory of a program's parameters, made when they are first asked for: only then do calls with
/// tensors of PyTorch record gradients of parameters.
struct Links {
    kept: PyOnceLock<Py<PyDict>>,
}

impl Core {
    pub(crate) fn new(plain: Program) -> Arc<Core> {
        Arc::new(Core::of(plain, Arc::new(Links { kept: PyOnceLock::new() }), None))
    }

    /// Another program made from this one, with its limits.
    pub(crate) fn like(&self, plain: Program) -> Arc<Core> {
        Arc::new(Core::of(plain, Arc::new(Links { kept: PyOnceLock::new() }), self.bounds.clone()))
    }

    fn of(plain: Program, links: Arc<Links>, bounds: Option<Arc<Bounds>>) -> Core {
        let (fast, cast, joined) = Default::default();
        Core { plain, fast, cast, links, bounds, joined }
    }

    /// The program that can run with objects of other programs: it knows their classes as well.
    fn knowing(self: &Arc<Core>, others: &[(Arc<Core>, Symbol)]) -> Result<Arc<Core>, Diagnostic> {
        let mut core = Arc::clone(self);
        for (other, class) in others {
            if core.module().class(*class).is_some() {
                continue;
            }
            let mut joined = core.joined.lock();
            joined.retain(|(other, _)| other.strong_count() > 0);
            let known = joined.iter().find(|(known, _)| Weak::as_ptr(known) == Arc::as_ptr(other));
            let made = match known {
                Some((_, made)) => Arc::clone(made),
                None => {
                    let mut module = core.module().clone();
                    module.join(other.module())?;
                    let plain = &core.plain;
                    let plain =
                        Program::with(module, plain.instance().cloned(), Arc::clone(plain.registry()));
                    let made = Arc::new(Core::of(plain, Arc::clone(&core.links), core.bounds.clone()));
                    joined.push((Arc::downgrade(other), Arc::clone(&made)));
                    made
                }
            };
            drop(joined);
            core = made;
        }
        Ok(core)
    }

    /// Holds the program's own limits for one call, as long as the result lives.
    fn bounded(&self) -> Option<Scope> {
        self.bounds.as_ref().map(|bounds| bounds.begin())
    }

    /// The program that a function is called by: after the default passes, which run when it is first called. A pass that fails
    /// is the error of every call.
    fn fast(&self, class: Option<Symbol>, name: &str) -> Result<Program, Diagnostic> {
        self.fast.get_or_make(|| self.after("default"))?.of(class, function_of(name))
    }

    /// The program that runs within a context of autocasting.
    fn cast(&self, to: Cast, class: Option<Symbol>, name: &str) -> Result<Program, Diagnostic> {
        let (n, dtype) = match to {
            Cast::BFloat16 => (0, "bfloat16"),
            Cast::Float16 => (1, "float16"),
        };
        let passes = "inline,lower-simple-tuples,constant-propagation-immutable-types,autocast";
        let entries = self.cast[n].get_or_make(|| self.after(&format!("{passes}{{cpu={dtype}}},default")))?;
        entries.of(class, function_of(name))
    }

    fn after(&self, passes: &str) -> Result<Entries, Diagnostic> {
        let pipeline = runs::current().parse_pipeline(passes)?;
        Ok(Entries::new(self.plain.clone(), pipeline).logging(runs::log_spec()))
    }

    /// Those that were called so far, within contexts of autocasting too.
    fn entries(&self) -> impl Iterator<Item = &Entries> {
        [&self.fast, &self.cast[0], &self.cast[1]].into_iter().filter_map(Once::get)
    }

    /// What its programs logged since the last time.
    fn take_log(&self) -> String {
        self.entries().map(Entries::take_log).collect()
    }

    fn module(&self) -> &Module {
        self.plain.module()
    }
}

/// Name, type, whether there is a default, the default, whether it is given by name alone.
type ArgumentParts<'py> = (String, Bound<'py, PyAny>, bool, Option<Bound<'py, PyAny>>, bool);

/// A schema's name, arguments and results.
type SchemaParts<'py> = (String, Vec<ArgumentParts<'py>>, Vec<(String, Bound<'py, PyAny>)>);

/// Name and type of an attribute; whether it is a parameter, a buffer, a submodule.
type AttributeRow = (String, String, bool, bool, bool);

/// A program, or one object of it.
#[pyclass(name = "Program", module = "flambeau._flambeau", frozen)]
pub(crate) struct PyProgram {
    pub core: Arc<Core>,
    pub object: Option<Object>,
}

impl PyProgram {
    pub(crate) fn new(core: Arc<Core>, object: Option<Object>) -> PyProgram {
        PyProgram { core, object }
    }

    /// The program that a function of the object, or of the program, is called by.
    fn fast(&self, name: &str) -> PyResult<Program> {
        self.core.fast(self.object.as_ref().map(Object::class), name).map_err(errors::of_program)
    }

    /// The object as a value.
    pub(crate) fn as_value(&self) -> PyResult<Value> {
        match &self.object {
            Some(object) => Ok(Value::Object(object.clone())),
            None => Err(PyRuntimeError::new_err("a function cannot be given to a program as a value")),
        }
    }

    fn object(&self) -> PyResult<&Object> {
        self.object
            .as_ref()
            .ok_or_else(|| PyRuntimeError::new_err("a program of functions has no attributes"))
    }

    /// A program whose instance is the object.
    fn alone(&self) -> PyResult<Program> {
        let object = self.object()?.clone();
        Ok(Program::with(self.core.module().clone(), Some(object), Arc::clone(self.core.plain.registry())))
    }

    fn function(&self, name: &str) -> PyResult<&Function> {
        let module = self.core.module();
        let found = match &self.object {
            Some(object) => module.method(object.class(), name),
            None => self.core.plain.function(name),
        };
        found.ok_or_else(|| PyAttributeError::new_err(format!("there is no function '{name}'")))
    }

    fn with_module(&self, module: Module) -> PyProgram {
        let plain = &self.core.plain;
        let program = Program::with(module, plain.instance().cloned(), Arc::clone(plain.registry()));
        let (links, bounds) = (Arc::clone(&self.core.links), self.core.bounds.clone());
        PyProgram::new(Arc::new(Core::of(program, links, bounds)), self.object.clone())
    }

    /// The parameters that require gradients, each once.
    fn tracked(&self) -> Vec<PyTensor> {
        let mut work: Vec<Value> = self.object.iter().cloned().map(Value::Object).collect();
        let mut seen: Vec<usize> = Vec::new();
        let mut found = Vec::new();
        while let Some(value) = work.pop() {
            match value {
                Value::Tensor(t) if t.requires_grad() => found.push(PyTensor::new(t)),
                Value::Object(o) if !seen.contains(&o.id()) => {
                    seen.push(o.id());
                    work.extend(o.fields().into_iter().map(|(_, field)| field));
                }
                _ => {}
            }
        }
        found
    }
}

#[pymethods]
impl PyProgram {
    /// Calls a function or method, a module with its hooks by the name `__call__`; `kind` says whose arrays are given where no
    /// argument determines it.
    #[pyo3(signature = (name, args, kwargs=None, kind=None))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        kind: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut call = Call::default();
        let given = args.iter().map(|x| call.value(&x)).collect::<PyResult<Vec<_>>>()?;
        let mut named = Vec::new();
        for (name, value) in kwargs.into_iter().flat_map(|k| k.iter()) {
            named.push((name.extract::<String>()?, call.value(&value)?));
        }
        if call.kind.is_none() {
            call.kind = kind.and_then(Kind::by_name);
        }
        // Arrays of NumPy have no gradients; else they are recorded where anything asks for them.
        let is_torch = call.kind == Some(Kind::Torch);
        let unlinked = is_torch && self.core.links.kept.get(py).is_none() && !call.requires_grad();
        let asks = call.kind != Some(Kind::NumPy) && !unlinked && runs::grad_enabled();
        let parameters = if asks { self.tracked() } else { Vec::new() };
        let mut records = asks && (call.requires_grad() || !parameters.is_empty());
        if records && is_torch {
            records = py.import("torch")?.call_method0("is_grad_enabled")?.is_truthy()?;
        }
        let core = &self.core.knowing(&call.programs).map_err(errors::plain)?;
        let cast = if is_torch { Cast::of_torch(py)? } else { None };
        let object = self.object.clone();
        let class = object.as_ref().map(Object::class);
        let optimized = runs::optimized();
        let bounded = core.bounded();
        let result = runs::outside(py, || {
            runs::with_grad(records, |run| {
                let work = || {
                    let program = match cast {
                        Some(cast) => core.cast(cast, class, name)?,
                        None if optimized => core.fast(class, name)?,
                        None => core.plain.clone(),
                    };
                    match &object {
                        Some(object) if name == "__call__" => program.call_module(object, given, named, run),
                        Some(object) => program.run_on(object, name, given, named, run),
                        None => program.run_named(name, given, named, run),
                    }
                };
                panics::catch("the program", work).and_then(|result| result)
            })
        })?;
        drop(bounded);
        runs::show_logs(py, || core.take_log())?;
        call.carry_back(py)?;
        runs::pass_warnings(py)?;
        let result = result.map_err(errors::of_program)?;
        LAST.with_borrow_mut(|last| last.set(core, self.object.as_ref().map(Object::class), name));
        let written = call.written();
        if records && is_torch {
            static LINKED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let tracked = call.tracked();
            call.kind = Some(Kind::Own);
            let result = call.give(py, &result, Some(core))?;
            let linked = errors::imported(py, &LINKED, "flambeau._autograd", "linked")?;
            let (shown, untracked) = (call.shown(), call.untracked());
            let links = self.links(py);
            return linked.call1((result, tracked, parameters, links, written, shown, untracked));
        }
        for (tensor, _) in written {
            static WRITTEN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            errors::imported(py, &WRITTEN, "torch.autograd.graph", "increment_version")?.call1((tensor,))?;
        }
        call.give(py, &result, Some(core))
    }

    /// The names of functions, or of methods of the object.
    fn functions(&self) -> Vec<String> {
        let module = self.core.module();
        match self.object.as_ref().and_then(|o| module.class(o.class())) {
            Some(class) => {
                let is_hook = |name: &Symbol| {
                    class.forward_hooks.contains(name) || class.forward_pre_hooks.contains(name)
                };
                class.methods.keys().filter(|name| !is_hook(name)).map(|n| n.to_string()).collect()
            }
            None => module.functions.keys().map(|n| n.to_string()).collect(),
        }
    }

    /// The qualified name of the object's class.
    #[getter]
    fn class_name(&self) -> Option<String> {
        self.object.as_ref().map(|o| o.class().to_string())
    }

    /// Whether the object is a module.
    #[getter]
    fn is_module(&self) -> bool {
        let class = self.object.as_ref().and_then(|o| self.core.module().class(o.class()));
        class.is_some_and(|class| class.kind == ClassKind::Module)
    }

    /// Attributes of the object's class: name, type, whether a parameter, a buffer, a submodule.
    fn attributes(&self) -> PyResult<Vec<AttributeRow>> {
        let module = self.core.module();
        let Some(class) = module.class(self.object()?.class()) else { return Ok(Vec::new()) };
        let is_module = |ty: &Type| {
            ty.class_name().and_then(|name| module.class(name)).is_some_and(|c| c.kind == ClassKind::Module)
        };
        let row = |a: &flambeau::ir::ClassAttribute| {
            (a.name.to_string(), a.ty.annotation(), a.is_parameter, a.is_buffer, is_module(&a.ty))
        };
        Ok(class.attributes.iter().map(row).collect())
    }

    /// Constants of the object's class.
    fn constants<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        if let Some(class) = self.core.module().class(self.object()?.class()) {
            for (name, (ty, attr)) in &class.constants {
                let attrs = [(Symbol::new("value"), attr.clone())];
                let value =
                    flambeau::dialects::prim::constant::value(&attrs, Some(ty)).map_err(errors::plain)?;
                out.set_item(name.as_str(), Call::default().give(py, &value, None)?)?;
            }
        }
        Ok(out)
    }

    /// Names of the properties of the object's class.
    fn properties(&self) -> PyResult<Vec<String>> {
        let class = self.core.module().class(self.object()?.class());
        Ok(class.map(|c| c.properties.keys().map(|n| n.to_string()).collect()).unwrap_or_default())
    }

    /// Reads a property.
    fn get_property<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let class = self.core.module().class(self.object()?.class());
        let getter = class.and_then(|c| c.properties.get(&Symbol::new(name))).map(|p| p.getter.to_string());
        let Some(getter) = getter else {
            return Err(PyAttributeError::new_err(format!("there is no property '{name}'")));
        };
        self.call(py, &getter, &PyTuple::empty(py), None, None)
    }

    /// The qualified names of all classes, and whether each is a module.
    fn classes(&self) -> Vec<(String, bool)> {
        let classes = self.core.module().classes.values();
        classes.map(|c| (c.name.to_string(), c.kind == ClassKind::Module)).collect()
    }

    /// An object of a class, without attributes.
    fn new_object(&self, class: &str) -> PyResult<PyProgram> {
        let class = Symbol::new(class);
        if self.core.module().class(class).is_none() {
            return Err(PyRuntimeError::new_err(format!("there is no class {class}")));
        }
        Ok(PyProgram::new(Arc::clone(&self.core), Some(Object::new(class))))
    }

    /// Another object of the class with the same values: its tensors and submodules are the object's own.
    fn shallow(&self) -> PyResult<PyProgram> {
        let object = self.object()?;
        let made = Object::new(object.class());
        object.fields().into_iter().for_each(|(name, value)| made.set(name, value));
        Ok(PyProgram::new(Arc::clone(&self.core), Some(made)))
    }

    /// Whether calls with tensors of PyTorch record gradients of parameters.
    fn is_linked(&self, py: Python<'_>) -> bool {
        self.core.links.kept.get(py).is_some()
    }

    /// An attribute of the object.
    #[pyo3(signature = (name, kind=None))]
    fn get<'py>(&self, py: Python<'py>, name: &str, kind: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let value = self.object()?.get(Symbol::new(name));
        let Some(value) = value else {
            return Err(PyAttributeError::new_err(format!("there is no attribute '{name}'")));
        };
        let mut call = Call::default();
        call.kind = kind.and_then(Kind::by_name);
        call.give(py, &value, Some(&self.core))
    }

    /// Sets an attribute of the object, converted to its type.
    fn set<'py>(&self, name: &str, value: &Bound<'py, PyAny>) -> PyResult<()> {
        let object = self.object()?;
        let class = self.core.module().class(object.class());
        let ty = class.and_then(|c| c.attribute(name)).map(|a| a.ty.clone());
        let given = Call::default().value(value)?;
        let given = match ty {
            Some(ty) => {
                let given = flambeau::runtime::converted(&given, &ty, self.core.module());
                given.map_err(|error| {
                    let why = error.message();
                    PyRuntimeError::new_err(format!(
                        "Could not cast attribute '{name}' to type {}: {why}",
                        ty.repr()
                    ))
                })?
            }
            None => given,
        };
        object.set(Symbol::new(name), given);
        Ok(())
    }

    /// Tensors of PyTorch that share the memory of parameters, by the numbers of those. From when they are asked for, calls with
    /// tensors of PyTorch record gradients.
    fn links<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        self.core.links.kept.get_or_init(py, || PyDict::new(py).unbind()).bind(py).clone()
    }

    /// The same object in a program that defines what another one does besides.
    fn joined(&self, other: &Bound<'_, PyProgram>) -> PyResult<PyProgram> {
        let mut module = self.core.module().clone();
        module.join(other.get().core.module()).map_err(errors::plain)?;
        Ok(self.with_module(module))
    }

    /// The same object or functions in a program with further functions, or methods of the object's class, from TorchScript.
    fn defined(&self, py: Python<'_>, text: &str) -> PyResult<PyProgram> {
        let source = source("<string>", 1, text);
        let class = self.object.as_ref().map(Object::class);
        let (module, registry) = (self.core.module(), self.core.plain.registry());
        let made = runs::outside(py, || compile_further(registry, module, class, &source))?
            .map_err(errors::of_program)?;
        Ok(self.with_module(made))
    }

    /// The same program with limits that hold for each call anew.
    fn limited(&self, limits: &Bound<'_, PyLimits>) -> PyProgram {
        let core = &self.core;
        let (links, bounds) = (Arc::clone(&core.links), Some(Arc::clone(&limits.get().bounds)));
        let limited = Core::of(core.plain.clone(), links, bounds);
        PyProgram::new(Arc::new(limited), self.object.clone())
    }

    /// The object whose methods the program was loaded with.
    fn root(&self) -> Option<PyProgram> {
        let instance = self.core.plain.instance()?;
        Some(PyProgram::new(Arc::clone(&self.core), Some(instance.clone())))
    }

    /// Whether two are the same object.
    fn same(&self, other: &Bound<'_, PyProgram>) -> bool {
        match (&self.object, &other.get().object) {
            (Some(a), Some(b)) => a.same(b),
            (None, None) => Arc::ptr_eq(&self.core, &other.get().core),
            _ => false,
        }
    }

    /// A number that identifies the object while it lives.
    fn id(&self) -> usize {
        self.object.as_ref().map_or(Arc::as_ptr(&self.core) as usize, Object::id)
    }

    /// The graph of a function.
    fn graph(&self, name: &str) -> PyResult<PyGraph> {
        Ok(PyGraph::new(self.function(name)?.graph.clone(), Arc::clone(&self.core)))
    }

    /// The graph of a function after a pipeline of passes over the whole program.
    fn graph_after(&self, py: Python<'_>, name: &str, passes: &str) -> PyResult<PyGraph> {
        let changed = self.after(py, passes)?;
        Ok(PyGraph::new(changed.function(name)?.graph.clone(), changed.core))
    }

    /// The same program after a pipeline of passes.
    fn after(&self, py: Python<'_>, passes: &str) -> PyResult<PyProgram> {
        let toolkit = runs::toolkit()?;
        let pipeline = toolkit.parse_pipeline(passes).map_err(errors::plain)?;
        let mut settings = Settings::default();
        if let Some(object) = &self.object {
            settings.extras.set(Arc::new(object.clone()));
        }
        let program = self.alone().unwrap_or_else(|_| self.core.plain.clone());
        let changed = runs::outside(py, || {
            program.transformed(|module, registry| pipeline.run_with(module, registry, settings).map(|_| ()))
        })?;
        let changed = changed.map_err(errors::plain)?;
        Ok(PyProgram::new(self.core.like(changed), self.object.clone()))
    }

    /// Waits until no other thread makes a plan of the program's functions.
    fn finish_plans(&self, py: Python<'_>) -> PyResult<()> {
        let made: Vec<Program> = self.core.entries().flat_map(Entries::made).collect();
        runs::outside(py, || made.iter().for_each(Program::finish_plans))
    }

    /// The graphs of the plans that calls of a function made so far.
    fn plan_graphs(&self, name: &str) -> PyResult<Vec<PyGraph>> {
        let function = self.function(name)?.name;
        let fast = self.fast(name)?;
        let graphs = fast.plan_graphs().into_iter().filter(|(n, _)| *n == function);
        Ok(graphs.map(|(_, g)| PyGraph::new((*g).clone(), Arc::clone(&self.core))).collect())
    }

    /// The graph of the plan for such arguments, where calls made one.
    #[pyo3(signature = (name, args, kwargs=None))]
    fn graph_for(
        &self,
        name: &str,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<PyGraph>> {
        let mut call = Call::default();
        let given = args.iter().map(|x| call.value(&x)).collect::<PyResult<Vec<_>>>()?;
        let mut named = Vec::new();
        for (name, value) in kwargs.into_iter().flat_map(|k| k.iter()) {
            named.push((name.extract::<String>()?, call.value(&value)?));
        }
        let fast = self.fast(name)?;
        let found = fast.graph_for(self.object.as_ref(), name, given, named).map_err(errors::of_program)?;
        Ok(found.map(|graph| PyGraph::new((*graph).clone(), Arc::clone(&self.core))))
    }

    /// What the executor holds for a function, as JSON: its plans with graph, code and guards, what runs without one; None before
    /// the first call.
    fn debug_state(&self, name: &str) -> PyResult<Option<String>> {
        let function = self.function(name)?.name;
        let program = self.fast(name)?;
        Ok(debug_state::of_function(&program, function).map(|state| state.to_string()))
    }

    /// What becomes of a call: its plan, op by op with time and bytes, and what was fused; or why there is no plan.
    #[pyo3(signature = (name, args, kwargs=None, graph=false))]
    fn explain(
        &self,
        py: Python<'_>,
        name: &str,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        graph: bool,
    ) -> PyResult<String> {
        let mut call = Call::default();
        let given = args.iter().map(|x| call.value(&x)).collect::<PyResult<Vec<_>>>()?;
        let mut named = Vec::new();
        for (name, value) in kwargs.into_iter().flat_map(|k| k.iter()) {
            named.push((name.extract::<String>()?, call.value(&value)?));
        }
        let (core, object) = (&self.core, self.object.clone());
        let bounded = core.bounded();
        let explained = runs::outside(py, || {
            runs::with_grad(false, |run| {
                let program = &core.fast(object.as_ref().map(Object::class), name)?;
                let work = || {
                    explain::of_calls(program, run, graph, || {
                        match &object {
                            Some(object) => program.run_on(object, name, given.clone(), named.clone(), run),
                            None => program.run_named(name, given.clone(), named.clone(), run),
                        }
                        .map(drop)
                    })
                };
                panics::catch("the program", work).and_then(|result| result)
            })
        })?;
        drop(bounded);
        runs::pass_warnings(py)?;
        explained.map_err(errors::of_program)
    }

    /// Writes parameters and buffers to a .safetensors or .npz file.
    fn write_weights(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let program = self.alone()?;
        runs::outside(py, || weights::save(&program, &path))?.map(drop).map_err(errors::plain)
    }

    /// Copies the tensors of such a file into parameters and buffers of their names.
    fn read_weights(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let program = self.alone()?;
        runs::outside(py, || weights::load(&program, &path))?.map_err(errors::plain)
    }

    /// A page for the browser that shows the program.
    fn page(&self, title: &str) -> String {
        let module = self.core.module();
        view::html(&view::model(module, self.core.plain.registry()), title)
    }

    /// The schema of a function.
    fn schema(&self, name: &str) -> PyResult<String> {
        let function = self.function(name)?;
        let mut schema = function.schema.clone();
        schema.name = Symbol::new(schema.name.as_str().rsplit('.').next().unwrap_or_default());
        Ok(schema.to_string())
    }

    /// The name of a function's schema; its arguments: name, type, default and whether it has one, whether it is given by name
    /// alone; its results: name and type.
    fn schema_parts<'py>(&self, py: Python<'py>, name: &str) -> PyResult<SchemaParts<'py>> {
        let schema = &self.function(name)?.schema;
        let call = Call::default();
        let mut arguments = Vec::new();
        for a in &schema.arguments {
            let default = match &a.default {
                Some(default) => {
                    let value = constant::value(&[(Symbol::new("value"), default.clone())], Some(&a.ty));
                    Some(call.give(py, &value.map_err(errors::plain)?, None)?)
                }
                None => None,
            };
            let ty = crate::graph::type_object(py, &a.ty)?;
            arguments.push((a.name.to_string(), ty, a.default.is_some(), default, a.keyword_only));
        }
        let mut returns = Vec::new();
        for r in &schema.returns {
            returns.push((r.name.to_string(), crate::graph::type_object(py, &r.ty)?));
        }
        let short = schema.name.as_str().rsplit('.').next().unwrap_or_default().to_string();
        Ok((short, arguments, returns))
    }

    /// Arguments of a function: name, type, whether there is a default.
    fn arguments(&self, name: &str) -> PyResult<Vec<(String, String, bool)>> {
        let function = self.function(name)?;
        let skipped = usize::from(self.object.is_some());
        let arguments = function.schema.arguments.iter().skip(skipped);
        Ok(arguments.map(|a| (a.name.to_string(), a.ty.annotation(), a.default.is_some())).collect())
    }

    /// The qualified name of a function.
    fn qualified_name(&self, name: &str) -> PyResult<String> {
        Ok(self.function(name)?.name.to_string())
    }

    /// The code of a function, or of the object's class, as TorchScript; with the values of `CONSTANTS`.
    fn code<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(String, Vec<Bound<'py, PyAny>>)> {
        let function = self.function(name)?;
        let registry = self.core.plain.registry();
        let printed =
            python_print::print_one(registry, self.core.module(), function).map_err(errors::plain)?;
        let values =
            printed.1.iter().map(|v| Call::default().give(py, v, None)).collect::<PyResult<Vec<_>>>()?;
        Ok((printed.0, values))
    }

    /// The archive that `torch.jit.load` reads.
    #[pyo3(signature = (extra, name="archive"))]
    fn archive<'py>(
        &self,
        py: Python<'py>,
        extra: Vec<(String, Vec<u8>)>,
        name: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let module = self.core.module();
        let registry = self.core.plain.registry();
        let bytes = runs::outside(py, || match &self.object {
            None => flambeau::tools::save::save_function(registry, module, name, &extra),
            Some(object) => {
                let root = Value::Object(object.clone());
                let states = toolkit::saved_states(&self.core.plain, object, &Run::silent())?;
                let contents = writer::Contents {
                    module,
                    root: &root,
                    constants: Vec::new(),
                    states: &states,
                    extra: &extra,
                    traced_inputs: None,
                    origin: &|_| None,
                };
                writer::save(registry, contents, name, Vec::new())
            }
        })?;
        Ok(PyBytes::new(py, &bytes.map_err(errors::plain)?))
    }

    /// What became of fusion groups and plans so far.
    fn fusion_report(&self) -> PyResult<String> {
        let mut all = FusionReport::default();
        let made = self.core.entries().flat_map(Entries::made);
        made.for_each(|program| all.add(&program.fusion_report()));
        Ok(format!("{all:?}"))
    }
}

/// Loads a file by what is in it: an archive, `.pt2`, TorchScript source, graph text.
/// `program` chooses one of several exported programs.
/// With `map` an archive is mapped into memory, and the file must stay unchanged while anything of the program lives.
#[pyfunction]
#[pyo3(signature = (path, map=false, program=None))]
pub(crate) fn load_path(
    py: Python<'_>,
    path: PathBuf,
    map: bool,
    program: Option<&str>,
) -> PyResult<PyProgram> {
    let toolkit = runs::toolkit()?;
    let open = |path: &Path| -> flambeau::diag::Result<Archive> {
        let archive = Archive::open(path)?;
        Ok(match program {
            Some(name) => archive.choosing(name),
            None => archive,
        })
    };
    let loaded = runs::outside(py, || {
        runs::with_run(|run| match map {
            false => toolkit::load_opened(&path, run, toolkit.registry(), &open).map(|loaded| loaded.program),
            // SAFETY: the caller asks for it by `mmap=True`, whose documentation says that the file stays unchanged.
            #[allow(unsafe_code, reason = "maps a file where the caller says that it stays unchanged")]
            true => {
                unsafe { toolkit::load_mapped(&path, run, toolkit.registry()) }.map(|loaded| loaded.program)
            }
        })
    })?;
    Ok(PyProgram::new(Core::new(loaded.map_err(errors::of_program)?), None))
}

/// The names of the exported programs in an archive; none for what is not an archive of such.
#[pyfunction]
pub(crate) fn exported_programs(py: Python<'_>, bytes: Vec<u8>) -> Vec<String> {
    py.detach(|| match Archive::from_bytes(bytes) {
        Ok(archive) => archive::models(&archive).map(str::to_string).collect(),
        // What is wrong with it is said by loading it.
        Err(_) => Vec::new(),
    })
}

/// Loads an archive, source or graph text from memory; `name` is what errors call it, `program` chooses one of several exported
/// programs.
#[pyfunction]
#[pyo3(signature = (bytes, name, program=None))]
pub(crate) fn load_bytes(
    py: Python<'_>,
    bytes: Vec<u8>,
    name: &str,
    program: Option<&str>,
) -> PyResult<PyProgram> {
    let toolkit = runs::toolkit()?;
    let registry = toolkit.registry();
    let loaded = runs::outside(py, || {
        if let Some(program) = program {
            let archive = Archive::from_bytes(bytes)?.choosing(program);
            return runs::with_run(|run| toolkit::start_archive(archive, run, registry)).map(|l| l.program);
        }
        let is_text = !bytes.starts_with(b"PK") && !bytes.contains(&0);
        match String::from_utf8(bytes) {
            Ok(text) if is_text => toolkit::load_text_with(name, &text, registry),
            Ok(text) => runs::with_run(|run| toolkit::load_archive_with(text.into_bytes(), run, registry)),
            Err(error) => runs::with_run(|run| toolkit::load_archive_with(error.into_bytes(), run, registry)),
        }
    })?;
    Ok(PyProgram::new(Core::new(loaded.map_err(errors::of_program)?), None))
}

/// The extra files of an archive that are asked for by name.
#[pyfunction]
pub(crate) fn extra_files<'py>(
    py: Python<'py>,
    bytes: Vec<u8>,
    names: Vec<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let archive = Archive::from_bytes(bytes).map_err(errors::plain)?;
    let out = PyDict::new(py);
    for name in names {
        let entry = format!("extra/{name}");
        if archive.entry(&entry).is_some() {
            let content = archive.read(&entry).map_err(errors::plain)?;
            out.set_item(name, PyBytes::new(py, &content))?;
        }
    }
    Ok(out)
}

/// Reads graph text.
#[pyfunction]
pub(crate) fn parse_ir(py: Python<'_>, text: &str) -> PyResult<PyGraph> {
    let toolkit = runs::toolkit()?;
    let program =
        runs::outside(py, || toolkit.load_graph("<string>", text, "graph"))?.map_err(errors::plain)?;
    let graph = program.function("graph").map(|f| f.graph.clone());
    let graph =
        graph.ok_or_else(|| PyRuntimeError::new_err("the text has several graphs; load it as a program"))?;
    Ok(PyGraph::new(graph, Core::new(program)))
}

/// Runs the command line; gives the exit status.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, words: Vec<String>) -> PyResult<i32> {
    let toolkit = runs::toolkit()?;
    runs::outside(py, || flambeau::tools::cli::main(words.into_iter().map(Into::into), &toolkit))
}

/// A text with its name and first line.
pub(crate) fn source(name: &str, first_line: usize, text: &str) -> Arc<Source> {
    Source::starting_at(name, text, first_line)
}

/// An error for what cannot be.
pub(crate) fn internal(what: &str) -> Diagnostic {
    Diagnostic::internal(what)
}
