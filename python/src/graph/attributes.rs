//! What stands in a node's brackets: read and written by PyTorch's short names, `i` and `i_` for an int, `fs` and `fs_` for floats.

use super::PyGraph;
use super::node::{PyNode, What, op_of};
use crate::convert::Call;
use crate::program::Core;
use crate::tensor::PyTensor;
use flambeau::ir::{Attr, Graph, OpId, Symbol, Type, parse_type};
use flambeau::value::Value;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use std::sync::Arc;

/// PyTorch's name for what an attribute is.
fn kind(attr: &Attr) -> &'static str {
    match attr {
        Attr::Int(_) | Attr::Bool(_) => "i",
        Attr::Float(_) => "f",
        Attr::Complex(_) => "c",
        Attr::Str(_) => "s",
        Attr::Tensor(_) => "t",
        Attr::Graph(_) => "g",
        Attr::Type(_) => "ty",
        Attr::Ints(_) => "is",
        Attr::Floats(_) => "fs",
        Attr::Complexes(_) => "cs",
        Attr::Strs(_) => "ss",
        Attr::Tensors(_) => "ts",
        Attr::Graphs(_) => "gs",
        Attr::Types(_) => "tys",
        _ => "ival",
    }
}

impl PyNode {
    /// The attribute, if it is what is asked for.
    fn read<T>(&self, name: &str, wanted: &str, take: impl FnOnce(&Attr) -> Option<T>) -> PyResult<T> {
        let found = self.look_op(None, |graph, op| graph.attr(op, name).map(|a| (take(a), kind(a))))?;
        match found {
            Some((Some(value), _)) => Ok(value),
            Some((None, found)) => Err(PyAttributeError::new_err(format!(
                "required keyword attribute '{name}' has the wrong type: it is '{found}', not '{wanted}'"
            ))),
            None => {
                Err(PyAttributeError::new_err(format!("required keyword attribute '{name}' is undefined")))
            }
        }
    }
}

/// Sets an attribute; gives the node, so that calls can be chained.
fn set<'py>(node: Bound<'py, PyNode>, name: &str, attr: Attr) -> PyResult<Bound<'py, PyNode>> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(word) {
        return Err(PyAttributeError::new_err(format!("'{name}' is not the name of an attribute")));
    }
    let this = node.get();
    this.graph.write(|state| {
        let op = op_of(this, state)?;
        if state.graph.terminated_block(op).is_some() {
            return Err(PyAttributeError::new_err("prim::Return has no attributes"));
        }
        state.graph.set_attr(op, Symbol::new(name), attr);
        Ok(())
    })?;
    Ok(node)
}

fn tensor(value: &Bound<'_, PyAny>) -> PyResult<flambeau::tensor::Tensor> {
    match Call::default().value(value)? {
        Value::Tensor(tensor) => Ok(tensor),
        other => Err(PyTypeError::new_err(format!("expected a tensor, not {}", other.ty()))),
    }
}

fn type_of(text: &Bound<'_, PyAny>) -> PyResult<Type> {
    parse_type(text.str()?.to_str()?).map_err(crate::errors::plain)
}

#[pymethods]
impl PyNode {
    /// The names of its attributes.
    #[pyo3(name = "attributeNames")]
    fn attribute_names(&self) -> PyResult<Vec<String>> {
        self.look_op(Vec::new(), |graph, op| {
            graph.attrs(op).iter().map(|(name, _)| name.to_string()).collect()
        })
    }

    /// Whether it has an attribute.
    #[pyo3(name = "hasAttribute")]
    fn has_attribute(&self, name: &str) -> PyResult<bool> {
        self.look_op(false, |graph, op| graph.attr(op, name).is_some())
    }

    /// Whether it has attributes.
    #[pyo3(name = "hasAttributes")]
    fn has_attributes(&self) -> PyResult<bool> {
        self.look_op(false, |graph, op| !graph.attrs(op).is_empty())
    }

    /// What an attribute is: `i`, `f`, `s`, `t`, `g`, `ty`, the same with an `s` for lists, `ival` for what else there is.
    #[pyo3(name = "kindOf")]
    fn kind_of(&self, name: &str) -> PyResult<&'static str> {
        self.read(name, "any", |attr| Some(kind(attr)))
    }

    /// Removes an attribute.
    #[pyo3(name = "removeAttribute")]
    fn remove_attribute<'py>(slf: Bound<'py, PyNode>, name: &str) -> PyResult<Bound<'py, PyNode>> {
        slf.get().read(name, "any", |_| Some(()))?;
        change(&slf, |graph, op| graph.remove_attr(op, name))?;
        Ok(slf)
    }

    /// Gives the node the attributes of another.
    #[pyo3(name = "copyAttributes")]
    fn copy_attributes<'py>(
        slf: Bound<'py, PyNode>,
        other: &Bound<'py, PyNode>,
    ) -> PyResult<Bound<'py, PyNode>> {
        let attrs = other.get().look(|state| match other.get().what {
            What::Op(op) => state.graph.attrs(op).to_vec(),
            What::Param(_) => Vec::new(),
        })?;
        change(&slf, |graph, op| attrs.into_iter().for_each(|(name, attr)| graph.set_attr(op, name, attr)))?;
        Ok(slf)
    }

    /// Gives the node the place in the source that another has.
    #[pyo3(name = "copyMetadata")]
    fn copy_metadata<'py>(
        slf: Bound<'py, PyNode>,
        other: &Bound<'py, PyNode>,
    ) -> PyResult<Bound<'py, PyNode>> {
        let location = other.get().look_op(None, |graph, op| graph.location(op).cloned())?;
        if let Some(location) = location {
            change(&slf, |graph, op| graph.set_location(op, location))?;
        }
        Ok(slf)
    }

    /// An attribute that is an int.
    fn i(&self, name: &str) -> PyResult<i64> {
        self.read(name, "i", Attr::as_int)
    }

    /// An attribute that is a float.
    fn f(&self, name: &str) -> PyResult<f64> {
        self.read(name, "f", |attr| if let Attr::Float(x) = attr { Some(*x) } else { None })
    }

    /// An attribute that is text.
    fn s(&self, name: &str) -> PyResult<String> {
        self.read(name, "s", |attr| attr.as_str().map(str::to_string))
    }

    /// An attribute that is a tensor.
    fn t(&self, name: &str) -> PyResult<PyTensor> {
        self.read(
            name,
            "t",
            |attr| if let Attr::Tensor(x) = attr { Some(PyTensor::new(x.clone())) } else { None },
        )
    }

    /// An attribute that is a list of ints.
    #[pyo3(name = "is")]
    fn ints(&self, name: &str) -> PyResult<Vec<i64>> {
        self.read(name, "is", |attr| if let Attr::Ints(x) = attr { Some(x.to_vec()) } else { None })
    }

    /// An attribute that is a list of floats.
    fn fs(&self, name: &str) -> PyResult<Vec<f64>> {
        self.read(name, "fs", |attr| if let Attr::Floats(x) = attr { Some(x.to_vec()) } else { None })
    }

    /// An attribute that is a list of texts.
    fn ss(&self, name: &str) -> PyResult<Vec<String>> {
        let texts = |attr: &Attr| match attr {
            Attr::Strs(x) => Some(x.iter().map(|s| s.to_string()).collect()),
            _ => None,
        };
        self.read(name, "ss", texts)
    }

    /// An attribute that is a list of tensors.
    fn ts(&self, name: &str) -> PyResult<Vec<PyTensor>> {
        let tensors = |attr: &Attr| match attr {
            Attr::Tensors(x) => Some(x.iter().cloned().map(PyTensor::new).collect()),
            _ => None,
        };
        self.read(name, "ts", tensors)
    }

    /// An attribute that is a type, as graph text has it.
    fn ty(&self, name: &str) -> PyResult<String> {
        self.read(name, "ty", |attr| attr.as_type().map(ToString::to_string))
    }

    /// An attribute that is a list of types.
    fn tys(&self, name: &str) -> PyResult<Vec<String>> {
        let types = |attr: &Attr| match attr {
            Attr::Types(x) => Some(x.iter().map(ToString::to_string).collect()),
            _ => None,
        };
        self.read(name, "tys", types)
    }

    /// An attribute that is a graph: a copy of it.
    fn g(&self, name: &str) -> PyResult<PyGraph> {
        let graph = self.read(name, "g", |attr| attr.as_graph().map(|g| Graph::clone(g)))?;
        Ok(match &self.graph.core {
            Some(core) => PyGraph::new(graph, Arc::clone(core)),
            None => PyGraph::new(graph, Core::new(self.graph.program().clone())),
        })
    }

    /// Sets an attribute to an int.
    fn i_<'py>(slf: Bound<'py, PyNode>, name: &str, value: i64) -> PyResult<Bound<'py, PyNode>> {
        set(slf, name, Attr::Int(value))
    }

    /// Sets an attribute to a float.
    fn f_<'py>(slf: Bound<'py, PyNode>, name: &str, value: f64) -> PyResult<Bound<'py, PyNode>> {
        set(slf, name, Attr::Float(value))
    }

    /// Sets an attribute to a text.
    fn s_<'py>(slf: Bound<'py, PyNode>, name: &str, value: &str) -> PyResult<Bound<'py, PyNode>> {
        set(slf, name, Attr::Str(value.into()))
    }

    /// Sets an attribute to a tensor.
    fn t_<'py>(
        slf: Bound<'py, PyNode>,
        name: &str,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyNode>> {
        set(slf, name, Attr::Tensor(tensor(value)?))
    }

    /// Sets an attribute to a list of ints.
    fn is_<'py>(slf: Bound<'py, PyNode>, name: &str, value: Vec<i64>) -> PyResult<Bound<'py, PyNode>> {
        set(slf, name, Attr::Ints(value.into()))
    }

    /// Sets an attribute to a list of floats.
    fn fs_<'py>(slf: Bound<'py, PyNode>, name: &str, value: Vec<f64>) -> PyResult<Bound<'py, PyNode>> {
        set(slf, name, Attr::Floats(value.into()))
    }

    /// Sets an attribute to a list of texts.
    fn ss_<'py>(slf: Bound<'py, PyNode>, name: &str, value: Vec<String>) -> PyResult<Bound<'py, PyNode>> {
        let texts: Vec<Arc<str>> = value.iter().map(|s| s.as_str().into()).collect();
        set(slf, name, Attr::Strs(texts.into()))
    }

    /// Sets an attribute to a list of tensors.
    fn ts_<'py>(
        slf: Bound<'py, PyNode>,
        name: &str,
        value: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyNode>> {
        let tensors = value.iter().map(tensor).collect::<PyResult<Vec<_>>>()?;
        set(slf, name, Attr::Tensors(tensors.into()))
    }

    /// Sets an attribute to a type, written as in graph text.
    fn ty_<'py>(
        slf: Bound<'py, PyNode>,
        name: &str,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyNode>> {
        set(slf, name, Attr::Type(type_of(value)?))
    }

    /// Sets an attribute to a list of types.
    fn tys_<'py>(
        slf: Bound<'py, PyNode>,
        name: &str,
        value: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyNode>> {
        let types = value.iter().map(type_of).collect::<PyResult<Vec<_>>>()?;
        set(slf, name, Attr::Types(types.into()))
    }

    /// Sets an attribute to a copy of a graph.
    fn g_<'py>(
        slf: Bound<'py, PyNode>,
        name: &str,
        value: &Bound<'py, PyGraph>,
    ) -> PyResult<Bound<'py, PyNode>> {
        let graph = value.get().content();
        super::lint(&graph)?;
        set(slf, name, Attr::Graph(Arc::new(graph)))
    }
}

fn change(node: &Bound<'_, PyNode>, change: impl FnOnce(&mut Graph, OpId)) -> PyResult<()> {
    let node = node.get();
    node.graph.write(|state| {
        let op = op_of(node, state)?;
        change(&mut state.graph, op);
        Ok(())
    })
}
