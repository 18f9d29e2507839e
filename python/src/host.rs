//! Names of Python for the compiler: each question goes to an object of `flambeau._answers`, whose answers are tuples.

use crate::convert::Call;
use crate::errors;
use crate::program::{Core, PyProgram, internal, source};
use crate::runs;
use flambeau::diag::{Diagnostic, Result, Source, Span};
use flambeau::dialects::prim::constant;
use flambeau::frontend::script::{ClassText, FunctionText, Host, Items, Meaning, Member, compile_hosted};
use flambeau::ir::Symbol;
use flambeau::runtime::Program;
use parking_lot::Mutex;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The object of Python that answers, and which text has which scope.
struct PyHost {
    answers: Py<PyAny>,
    scopes: Mutex<BTreeMap<usize, (Arc<Source>, u64)>>,
}

fn key(source: &Arc<Source>) -> usize {
    Arc::as_ptr(source) as usize
}

impl PyHost {
    fn scope(&self, source: &Arc<Source>) -> Option<u64> {
        self.scopes.lock().get(&key(source)).map(|(_, scope)| *scope)
    }

    fn note(&self, source: Arc<Source>, scope: u64) -> Arc<Source> {
        self.scopes.lock().insert(key(&source), (Arc::clone(&source), scope));
        source
    }

    /// Asks a method; None where it answers None.
    fn ask<'py, A: pyo3::call::PyCallArgs<'py>>(
        &self,
        py: Python<'py>,
        method: &str,
        args: A,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let answer = self.answers.bind(py).call_method1(method, args)?;
        if answer.is_none() {
            return Ok(None);
        }
        Ok(Some(answer.cast_into::<PyTuple>().map_err(|_| PyTypeError::new_err("an answer is a tuple"))?))
    }

    /// `(scope, file, first line, text)`
    fn text(&self, answer: &Bound<'_, PyAny>) -> PyResult<Arc<Source>> {
        let (scope, file, line, text): (u64, String, usize, String) = answer.extract()?;
        Ok(self.note(source(&file, line, &text), scope))
    }

    fn function(&self, answer: &Bound<'_, PyAny>) -> PyResult<FunctionText> {
        let name: String = answer.get_item(0)?.extract()?;
        Ok(FunctionText { name: Symbol::new(&name), source: self.text(&answer.get_item(1)?)? })
    }

    fn meaning(&self, answer: &Bound<'_, PyTuple>) -> PyResult<Meaning> {
        let what: String = answer.get_item(0)?.extract()?;
        let second = || answer.get_item(1);
        Ok(match what.as_str() {
            "path" => Meaning::Path(second()?.extract()?),
            "exception" => Meaning::Exception(second()?.extract()?),
            "constant" => {
                let value = Call::default().value(&second()?)?;
                let attr = constant::attr(&value).ok_or_else(|| PyTypeError::new_err("not a constant"))?;
                Meaning::Constant(value.ty(), attr)
            }
            "type" => Meaning::Type(second()?.extract()?),
            "function" => Meaning::Function(self.function(&second()?)?),
            "overloads" => {
                let all = second()?.try_iter()?.map(|f| self.function(&f?)).collect::<PyResult<_>>()?;
                Meaning::Overloads(all)
            }
            "class" => Meaning::Class(Box::new(self.class(second()?.cast::<PyDict>()?)?)),
            "compiled" => {
                let core =
                    second()?.cast_into::<PyProgram>().map_err(|_| PyTypeError::new_err("no program"))?;
                let name: String = answer.get_item(2)?.extract()?;
                Meaning::Compiled(Arc::new(core.get().core.plain.module().clone()), Symbol::new(&name))
            }
            "value" => Meaning::Value(second()?.extract()?, answer.get_item(2)?.extract()?),
            other => return Err(PyTypeError::new_err(format!("'{other}' is not an answer"))),
        })
    }

    fn class(&self, answer: &Bound<'_, PyDict>) -> PyResult<ClassText> {
        let get = |name: &str| {
            answer.get_item(name)?.ok_or_else(|| PyTypeError::new_err(format!("a class lacks '{name}'")))
        };
        let name: String = get("name")?.extract()?;
        let items = get("items")?;
        let items = match get("container")?.extract::<Option<String>>()?.as_deref() {
            Some("list") => Some(Items::List(items.extract()?)),
            Some("dict") => Some(Items::Dict(items.extract()?)),
            _ => None,
        };
        Ok(ClassText {
            name: Symbol::new(&name),
            header: self.text(&get("header")?)?,
            methods: get("methods")?.try_iter()?.map(|m| self.text(&m?)).collect::<PyResult<_>>()?,
            properties: get("properties")?.extract()?,
            has_init: get("has_init")?.extract()?,
            items,
        })
    }

    fn member_of(&self, answer: &Bound<'_, PyTuple>) -> PyResult<Member> {
        let what: String = answer.get_item(0)?.extract()?;
        Ok(match what.as_str() {
            "method" => Member::Method(self.text(&answer.get_item(1)?)?),
            "methods" => {
                let texts = answer.get_item(1)?;
                Member::Overloads(texts.try_iter()?.map(|m| self.text(&m?)).collect::<PyResult<_>>()?)
            }
            "static" => Member::Static(self.function(&answer.get_item(1)?)?),
            "property" => {
                let setter = answer.get_item(2)?;
                let setter = if setter.is_none() { None } else { Some(self.text(&setter)?) };
                Member::Property(self.text(&answer.get_item(1)?)?, setter)
            }
            _ => Member::Other(self.meaning(answer)?),
        })
    }

    fn asked<T>(&self, place: Option<&Span>, work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
        Python::attach(|py| {
            work(py).map_err(|raised| {
                let value = raised.value(py);
                // What the package itself has to say of a name is the compiler's error, with its place.
                let own = value.getattr("of_compiler").and_then(|x| x.is_truthy()).unwrap_or(false);
                let error = if own {
                    Diagnostic::compile(value.to_string())
                } else {
                    errors::from_python(py, raised)
                };
                match place {
                    Some(place) if error.report().span.is_none() => error.at(place),
                    _ => error,
                }
            })
        })
    }
}

impl Host for PyHost {
    fn knows(&self, source: &Arc<Source>) -> bool {
        self.scope(source).is_some()
    }

    fn same_names(&self, inner: &Arc<Source>, outer: &Arc<Source>) {
        if let Some(scope) = self.scope(outer) {
            self.note(Arc::clone(inner), scope);
        }
    }

    fn name(&self, name: &str, place: &Span) -> Result<Option<Meaning>> {
        let Some(scope) = self.scope(place.source()) else { return Ok(None) };
        self.asked(Some(place), |py| {
            self.ask(py, "name", (scope, name))?.map(|answer| self.meaning(&answer)).transpose()
        })
    }

    fn attribute(&self, value: u64, name: &str, place: &Span) -> Result<Option<Meaning>> {
        self.asked(Some(place), |py| {
            self.ask(py, "attribute", (value, name))?.map(|answer| self.meaning(&answer)).transpose()
        })
    }

    fn numbered(&self, number: u64) -> Result<Meaning> {
        self.asked(None, |py| match self.ask(py, "numbered", (number,))? {
            Some(answer) => self.meaning(&answer),
            None => Err(PyTypeError::new_err("there is no thing of that number")),
        })
    }

    fn member(&self, class: Symbol, name: &str, place: &Span) -> Result<Option<Member>> {
        self.asked(Some(place), |py| {
            let answer = self.ask(py, "member", (class.as_str(), name))?;
            answer.map(|answer| self.member_of(&answer)).transpose()
        })
    }
}

/// Compiles what `wanted` describes, with `answers` explaining names.
#[pyfunction]
pub(crate) fn compile<'py>(
    py: Python<'py>,
    answers: Bound<'py, PyAny>,
    wanted: Vec<Bound<'py, PyTuple>>,
) -> PyResult<PyProgram> {
    let host = PyHost { answers: answers.unbind(), scopes: Mutex::default() };
    let wanted = wanted.iter().map(|w| host.meaning(w)).collect::<PyResult<Vec<_>>>()?;
    let registry = runs::registry()?;
    let compiled = runs::outside(py, || compile_hosted(&registry, Box::new(host), wanted))?;
    let module = compiled.map_err(errors::of_compiler)?;
    if module.functions.is_empty()
        && module.classes.is_empty()
        && module.interfaces.is_empty()
        && module.enums.is_empty()
        && module.named_tuples.is_empty()
    {
        return Err(errors::plain(internal("nothing was compiled")));
    }
    Ok(PyProgram::new(Core::new(Program::with(module, None, registry)), None))
}
