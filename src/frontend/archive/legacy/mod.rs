//! Archives of PyTorch 1.0 to 1.3, whose modules and tensors are listed in `model.json`: each module has a text with its
//! methods, the elements of tensors lie below `tensors/`, other attributes in `attributes.pkl`, and the code's constants
//! are numbers of tensors. They become what newer archives hold: classes, and an object of one.

mod code;
mod model;

use super::model::Model;
use super::objects::{Builder, to_attr};
use super::opened::Archive;
use super::pickle::{Node, NodeId, Pickle, Scales, StorageRecord, TensorRecord, check_extent, storage_type};
use super::upgraders;
use crate::diag::{Diagnostic, Result};
use crate::dialects::Registry;
use crate::frontend::script::{ArchiveCode, compile_archive};
use crate::ir::{Module, Symbol, Type};
use crate::value::{Object, Value};
use code::Row;
use model::{ModelDef, TensorDef};
use std::sync::Arc;

/// Whether the archive is one of these.
pub(super) fn is_legacy(archive: &Archive) -> bool {
    archive.entry("model.json").is_some()
}

/// Folder of the elements of tensors.
const TENSORS: &str = "tensors";

/// Builds the model of an archive. Nothing of it runs.
pub(super) fn load(registry: &Arc<Registry>, archive: Archive) -> Result<Model> {
    let def = read_def(&archive)?;
    let archive = Arc::new(archive);
    let rows = code::rows(&def);
    code::check_count(&rows, archive.limits())?;
    let records: Vec<TensorRecord> =
        def.tensors.iter().map(|tensor| record(&archive, tensor)).collect::<Result<_>>()?;
    let pickle = attributes(&archive, &def, &records)?;
    let empty = Module::default();
    let mut builder = Builder::new(registry, &archive, TENSORS, &empty);
    let tensors: Vec<Value> =
        records.iter().map(|record| Ok(builder.tensor(record)?.into())).collect::<Result<_>>()?;
    let constants = tensors.iter().map(|value| Ok((Type::tensor(), to_attr(value)?)));
    let constants = constants.collect::<Result<Vec<_>>>()?;
    let mut classes: Vec<String> = rows.iter().map(|row| row.class.clone()).collect();
    if let Some(pickle) = &pickle {
        classes.extend(pickle.iter().filter_map(|(_, node)| match node {
            Node::Object(object) => Some(object.class.to_string()),
            _ => None,
        }));
    }
    let library = code::Sources { archive: Arc::clone(&archive), made: code::classes(&archive, &rows)? };
    let versioned = upgraders::registry(registry, archive.version());
    let mut module = compile_archive(&versioned, ArchiveCode { library, constants, classes })?;
    if !Arc::ptr_eq(&versioned, registry) {
        upgraders::apply(&mut module, &versioned, registry)?;
    }
    let mut builder = builder.with_module(&module);
    let values = match &pickle {
        Some(pickle) => attribute_values(&mut builder, pickle, &rows, &module)?,
        None => Vec::new(),
    };
    let (root, own_states) = objects(&rows, &tensors, &values)?;
    let mut states = builder.states();
    states.extend(own_states);
    Ok(Model {
        root,
        states,
        constants: tensors,
        version: archive.version(),
        debug_tables: Vec::new(),
        module,
    })
}

fn read_def(archive: &Archive) -> Result<ModelDef> {
    let (size, limit) = (archive.entry("model.json").map_or(0, |e| e.size), archive.limits().code_bytes);
    if size > limit {
        return Err(Diagnostic::input(format!("model.json has {size} bytes, and the limit is {limit}")));
    }
    let def = model::parse(&archive.read("model.json")?)?;
    match def.version {
        1..=5 => Ok(def),
        other => Err(Diagnostic::unsupported(format!("model.json has version {other}; 1 to 5 can be read"))),
    }
}

/// A tensor as newer archives describe it; it lies inside its entry.
fn record(archive: &Archive, def: &TensorDef) -> Result<TensorRecord> {
    let Some(key) = def.key.strip_prefix(TENSORS).and_then(|key| key.strip_prefix('/')) else {
        return Err(Diagnostic::input(format!(
            "a tensor is stored in `{}`, not below `{TENSORS}/`",
            def.key
        )));
    };
    let Some(entry) = archive.entry(&def.key) else {
        return Err(Diagnostic::input(format!(
            "a tensor is stored in `{}`, which the archive does not have",
            def.key
        )));
    };
    let element = storage_type(def.dtype)
        .ok_or_else(|| Diagnostic::unsupported(format!("tensors of element type {}", def.dtype)))?;
    if def.dims.len() > archive.limits().dims {
        return Err(Diagnostic::input(format!("a tensor has {} dimensions", def.dims.len())));
    }
    if def.dims.iter().chain(&def.strides).any(|n| *n < 0) {
        return Err(Diagnostic::input("a tensor has negative sizes or strides"));
    }
    let storage = StorageRecord {
        key: key.into(),
        element,
        device: def.device.as_str().into(),
        numel: entry.size / element.bytes,
    };
    check_extent(&storage, def.offset, &def.dims, &def.strides)?;
    Ok(TensorRecord {
        storage: Arc::new(storage),
        offset: def.offset,
        sizes: def.dims.as_slice().into(),
        strides: def.strides.as_slice().into(),
        requires_grad: def.requires_grad,
        parameter: false,
        conj: false,
        neg: false,
        scales: def.scale.map(|(scale, zero_point)| Scales::PerTensor { scale, zero_point }),
    })
}

/// The pickle of attributes with tensors in place of their numbers; None where no attribute has a value.
fn attributes(archive: &Archive, def: &ModelDef, records: &[TensorRecord]) -> Result<Option<Pickle>> {
    if def.version < 2 || archive.entry("attributes.pkl").is_none() {
        return Ok(None);
    }
    let pickle = archive.parse_any("attributes.pkl")?;
    let mut nodes: Vec<Node> = pickle.iter().map(|(_, node)| node.clone()).collect();
    for node in &mut nodes {
        let Node::Object(object) = &*node else { continue };
        let state = object.state;
        match &*object.class {
            super::pickle::TENSOR_ID => {
                let record = state
                    .and_then(|state| pickle.int(state))
                    .and_then(|id| usize::try_from(id).ok())
                    .and_then(|id| records.get(id))
                    .ok_or_else(|| Diagnostic::input("an attribute is a tensor that is not listed"))?;
                *node = Node::Tensor(Box::new(record.clone()));
            }
            super::pickle::INT_LIST => {
                let Some(Node::List(list)) = state.map(|state| pickle.node(state)) else {
                    return Err(Diagnostic::input("an attribute is a list of ints without items"));
                };
                let mut list = list.clone();
                list.type_text = Some("List[int]".into());
                *node = Node::List(list);
            }
            _ => {}
        }
    }
    Pickle::from_nodes(nodes, pickle.root(), archive.limits()).map(Some)
}

/// The values of the attributes by number, made with the types that modules declare.
fn attribute_values(
    builder: &mut Builder<'_>,
    pickle: &Pickle,
    rows: &[Row<'_>],
    module: &Module,
) -> Result<Vec<Value>> {
    let items = pickle
        .items(pickle.root())
        .ok_or_else(|| Diagnostic::input("attributes.pkl does not hold a list or tuple"))?;
    let mut declared: Vec<(NodeId, Type)> = Vec::new();
    for attribute in rows.iter().flat_map(|row| &row.def.attributes) {
        let Some(id) = attribute.value.and_then(|value| items.get(value)) else { continue };
        declared.push((*id, crate::frontend::script::parse_annotation(module, &attribute.ty)?));
    }
    let built = builder.build_as(pickle, declared)?;
    Ok(items.iter().map(|id| built.get(id.index()).map(|b| b.root.clone()).unwrap_or_default()).collect())
}

/// The objects of all modules, the root and what restores itself with its state.
fn objects(rows: &[Row<'_>], tensors: &[Value], values: &[Value]) -> Result<(Value, Vec<(Value, Value)>)> {
    let mut made: Vec<Value> = Vec::new();
    let mut states = Vec::new();
    let missing =
        |name: &str| Diagnostic::input(format!("the attribute `{name}` has no value in the archive"));
    for row in rows {
        let object = Object::new(Symbol::new(&row.class));
        if row.def.state.is_none() {
            object.set(Symbol::new("training"), Value::Bool(true));
        }
        for attribute in &row.def.attributes {
            let value = match attribute.value {
                Some(at) => values.get(at).cloned().ok_or_else(|| missing(&attribute.name))?,
                None => Value::None,
            };
            object.set(Symbol::new(&attribute.name), value);
        }
        for parameter in &row.def.parameters {
            let value = tensors.get(parameter.tensor).cloned().ok_or_else(|| missing(&parameter.name))?;
            object.set(Symbol::new(&parameter.name), value);
        }
        for child in &row.children {
            let (Some(child), Some(value)) = (rows.get(*child), made.get(*child)) else { continue };
            object.set(Symbol::new(&child.def.name), value.clone());
        }
        let value = Value::Object(object);
        if let Some(at) = row.def.state {
            states.push((value.clone(), values.get(at).cloned().ok_or_else(|| missing("__setstate__"))?));
        }
        made.push(value);
    }
    let root = made.pop().ok_or_else(|| Diagnostic::internal("a model without modules"))?;
    Ok((root, states))
}
