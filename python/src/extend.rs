//! What Python adds to the compiler: passes, rules, dialects, ops. The toolkit is made anew of all additions in their order, so
//! that a cell of a notebook may be run again: what has the same name takes the former's place.

use crate::convert::Call;
use crate::errors;
use crate::graph::{self, PyGraph};
use crate::runs;
use flambeau::diag::{Diagnostic, Source};
use flambeau::dialects::{Effects, Run, one};
use flambeau::ir::{Graph, Symbol, parse_schema};
use flambeau::passes::{Context, Pass};
use flambeau::rewrite::check::{Effort, Verdict, check};
use flambeau::rewrite::{self, compile};
use flambeau::toolkit::Toolkit;
use parking_lot::Mutex;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One addition.
#[derive(Clone)]
enum Addition {
    /// A pass; what it does is in `PASSES`.
    Pass { name: &'static str, summary: &'static str },
    /// A pipeline of passes.
    Pipeline { name: String, text: String },
    /// A group of rules.
    Rules { group: String, text: String },
    /// A dialect.
    Dialect { source: Arc<Source> },
    /// An op that Python computes.
    Op { schema: String, effects: Effects, function: Arc<Py<PyAny>> },
}

/// All additions by kind and name, in the order in which they were first made.
static ADDITIONS: Mutex<Vec<((&'static str, String), Addition)>> = Mutex::new(Vec::new());

/// What passes do, by name.
static PASSES: Mutex<BTreeMap<String, Arc<Py<PyAny>>>> = Mutex::new(BTreeMap::new());

/// The toolkit with one addition. What has the same kind and name takes the former's place, for others may build on it; or stands
/// last, where it builds on others that came after. Nothing changes where neither will do.
fn add(kind: &'static str, name: &str, addition: Addition) -> PyResult<()> {
    let mut additions = ADDITIONS.lock();
    let key = (kind, name.to_string());
    let mut last = additions.clone();
    last.retain(|(other, _)| *other != key);
    last.push((key.clone(), addition.clone()));
    let mut in_place = additions.clone();
    let former = in_place.iter_mut().find(|(other, _)| *other == key);
    let orders = match former {
        Some(entry) => {
            entry.1 = addition;
            vec![in_place, last]
        }
        None => vec![last],
    };
    let mut refused = None;
    for all in orders {
        let toolkit =
            all.iter().fold(crate::program::toolkit(), |toolkit, (_, addition)| extended(toolkit, addition));
        match toolkit.check() {
            Ok(()) => {
                *additions = all;
                runs::set_toolkit(toolkit);
                return Ok(());
            }
            Err(error) => refused = Some(error),
        }
    }
    refused.map_or(Ok(()), |error| Err(errors::plain(error)))
}

fn extended(toolkit: Toolkit, addition: &Addition) -> Toolkit {
    match addition {
        Addition::Pass { name, summary } => toolkit.pass(Pass::graph(name, summary, run_pass)),
        Addition::Pipeline { name, text } => toolkit.pipeline(name, text),
        Addition::Rules { group, text } => toolkit.rules(group, text),
        Addition::Dialect { source } => toolkit.dialect_text(source),
        Addition::Op { schema, effects, function } => {
            let function = Arc::clone(function);
            toolkit.op_with_effects(schema, *effects, move |args| {
                let given = args.values;
                Python::attach(|py| {
                    let work = || {
                        let call = Call::default();
                        let given =
                            given.iter().map(|v| call.give(py, v, None)).collect::<PyResult<Vec<_>>>()?;
                        let result = function.bind(py).call1(PyTuple::new(py, given)?)?;
                        Call::default().value(&result)
                    };
                    work().map_err(|raised| errors::from_python(py, raised))
                })
                .and_then(one)
            })
        }
    }
}

/// A name that passes and pipelines have in text.
fn checked_name(name: &str) -> PyResult<&'static str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(word) {
        return Err(PyValueError::new_err(format!(
            "'{name}' is not a valid pass name: use letters, digits and '-'"
        )));
    }
    Ok(Symbol::new(&name.replace('_', "-")).as_str())
}

/// Adds a pass: a function that takes a Graph and changes it. What it gives says whether it changed anything; None asks the text.
#[pyfunction]
pub(crate) fn add_pass(name: &str, summary: &str, function: &Bound<'_, PyAny>) -> PyResult<()> {
    if !function.is_callable() {
        return Err(PyTypeError::new_err("a pass is a function of a graph"));
    }
    let name = checked_name(name)?;
    let summary = Symbol::new(summary).as_str();
    add("pass", name, Addition::Pass { name, summary })?;
    PASSES.lock().insert(name.to_string(), Arc::new(function.clone().unbind()));
    Ok(())
}

/// Runs a pass of Python over a graph; what it leaves must obey the laws.
fn run_pass(graph: &mut Graph, context: &Context<'_>) -> flambeau::diag::Result<bool> {
    let function = PASSES.lock().get(context.name).cloned();
    let function = function.ok_or_else(|| Diagnostic::internal("a pass of Python is not there"))?;
    if !context.step(|| format!("{} changes the graph", context.name)) {
        return Ok(false);
    }
    Python::attach(|py| {
        let mut work = || -> PyResult<bool> {
            let given = Bound::new(py, PyGraph::of_pass(graph.clone()))?;
            let said = function.bind(py).call1((&given,))?;
            let after = given.get().content();
            graph::lint(&after)?;
            let changed =
                if said.is_none() { after.to_string() != graph.to_string() } else { said.is_truthy()? };
            if changed {
                *graph = after;
                context.changed();
            }
            Ok(changed)
        };
        work().map_err(|raised| errors::from_python(py, raised).note(format!("in the pass {}", context.name)))
    })
}

/// Adds a named pipeline.
#[pyfunction]
pub(crate) fn add_pipeline(name: &str, passes: &str) -> PyResult<()> {
    let name = checked_name(name)?;
    add("pipeline", name, Addition::Pipeline { name: name.to_string(), text: passes.to_string() })
}

/// Adds a dialect, as a dialect file has it.
#[pyfunction]
pub(crate) fn add_dialect(name: &str, text: &str) -> PyResult<()> {
    let source = Source::new(format!("{name}.dialect"), text);
    add("dialect", name, Addition::Dialect { source })
}

/// Adds an op that Python computes. `effects` are keywords of dialect files.
#[pyfunction]
pub(crate) fn add_op(schema: &str, effects: Vec<String>, function: &Bound<'_, PyAny>) -> PyResult<()> {
    let name = parse_schema(schema).map_err(errors::plain)?.qualified_name();
    let mut all = Effects::NONE;
    for word in &effects {
        let effect = Effects::by_name(word)
            .ok_or_else(|| PyValueError::new_err(format!("there is no effect '{word}'")))?;
        all = all.union(effect);
    }
    let function = Arc::new(function.clone().unbind());
    add("op", &name, Addition::Op { schema: schema.to_string(), effects: all, function })
}

/// A rule that is refused: its name, the reason, and the values of the counterexample.
type Refused<'py> = (String, String, Option<Bound<'py, PyDict>>);

/// Checks rules and adds them to a group that `simplify` applies. Gives what was found of each rule that is refused: its name,
/// the reason, and the values of the counterexample; then nothing was added.
#[pyfunction]
#[pyo3(signature = (group, text, samples=200))]
pub(crate) fn add_rules<'py>(
    py: Python<'py>,
    group: &str,
    text: &str,
    samples: usize,
) -> PyResult<Vec<Refused<'py>>> {
    let toolkit = runs::toolkit()?;
    let registry = Arc::clone(toolkit.registry());
    let rules = rewrite::parse(&Source::new(format!("{group}.rules"), text)).map_err(errors::plain)?;
    let mut refused = Vec::new();
    for rule in &rules {
        for compiled in compile(&registry, rule).map_err(errors::plain)? {
            let verdict = runs::outside(py, || {
                let run = Run::silent();
                flambeau::runtime::prepare(&run, &registry);
                check(&compiled, Effort::samples(samples), &run)
            })?;
            match verdict.map_err(errors::plain)? {
                Verdict::Sound { .. } => {}
                Verdict::Untestable { reason } => refused.push((rule.name.to_string(), reason, None)),
                Verdict::Refuted(found) => {
                    let out = PyDict::new(py);
                    let call = Call::default();
                    for (name, value) in &found.variables {
                        out.set_item(name.as_ref(), call.give(py, value, None)?)?;
                    }
                    let left = call.give(py, &found.left, None)?;
                    let right = match &found.right {
                        Ok(value) => call.give(py, value, None)?.repr()?.to_string(),
                        Err(error) => format!("an error: {}", error.message()),
                    };
                    let reason = format!("the left side gives {}, the right side {right}", left.repr()?);
                    refused.push((rule.name.to_string(), reason, Some(out)));
                    break;
                }
            }
        }
    }
    if refused.is_empty() {
        add("rules", group, Addition::Rules { group: group.to_string(), text: text.to_string() })?;
    }
    Ok(refused)
}

/// The names of what Python added, by kind.
#[pyfunction]
pub(crate) fn additions() -> Vec<(&'static str, String)> {
    ADDITIONS.lock().iter().map(|(key, _)| key.clone()).collect()
}

/// All passes that pipelines know, each with what it does; then the named pipelines with the passes that they are.
#[pyfunction]
pub(crate) fn passes() -> PyResult<Vec<(String, String)>> {
    let toolkit = runs::toolkit()?;
    let set = toolkit.passes();
    let own = set.passes().iter().map(|pass| (pass.name.to_string(), pass.summary.to_string()));
    let known: Vec<(String, String)> = own.collect();
    let names: Vec<String> = set.names().map(str::to_string).collect();
    let named =
        names.into_iter().filter_map(|name| set.named(&name).map(|text| (name.clone(), text.to_string())));
    Ok(known.iter().cloned().chain(named).collect())
}
