//! From a program and an object to an archive: the data as a pickle with its storages, the code as Python with the
//! original places, the constants, the version. What was shared is shared again; the same input gives the same bytes.

use super::pickle::{
    self, Dict as NodeDict, Enum, List as NodeList, Node, NodeId, Object as NodeObject, Pickle,
};
use super::pickle::{Scales, StorageRecord, TensorRecord, storage_type};
use super::write::Writer;
use super::{Limits, debug, upgraders};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Registry, is_custom_class, unknown_class};
use crate::frontend::python_print::{self, Origin};
use crate::ir::{Module, Symbol};
use crate::tensor::{Quantizer, Storage, Tensor};
use crate::value::{Object, Value};
use hashbrown::HashMap;
use indexmap::IndexMap;
use std::io::Write;
use std::sync::Arc;

/// What an archive is made of.
pub struct Contents<'a> {
    /// Classes and functions.
    pub module: &'a Module,
    /// The object that is saved, an instance of a module class.
    pub root: &'a Value,
    /// Constants that keep their number (`CONSTANTS.c0`).
    pub constants: Vec<Value>,
    /// What objects that restore themselves are saved as: the object, and what its `__getstate__` gave.
    pub states: &'a [(Value, Value)],
    /// Further files by their name below `extra/`.
    pub extra: &'a [(String, Vec<u8>)],
    /// What a traced model was traced with, as it stood in its archive.
    pub traced_inputs: Option<Vec<u8>>,
    /// Finds the author's places of code that came from an archive.
    pub origin: Origin<'a>,
}

/// Writes an archive that `torch.jit.load` reads; `name` is its root folder.
pub fn save<W: Write>(registry: &Registry, contents: Contents<'_>, name: &str, out: W) -> Result<W> {
    let Value::Object(root) = contents.root else {
        return Err(Diagnostic::unsupported(format!("saving a {}", contents.root.kind_name()))
            .hint("only modules can be saved"));
    };
    let Contents { module, constants, origin, .. } = contents;
    let mut roots = vec![root.class()];
    // Classes that only the data names have code as well.
    let mut data = Tree::new(registry, module, contents.states);
    let data_root = data.node(contents.root, 0)?;
    roots.extend(data.classes.keys().copied());
    let printed = python_print::print(registry, module, &roots, &data.enums, constants, origin)?;

    let mut writer = Writer::new(out, name)?;
    for (file, bytes) in contents.extra {
        writer.add(&format!("extra/{file}"), bytes)?;
    }
    data.write(&mut writer, "data", data_root)?;
    if let Some(bytes) = &contents.traced_inputs {
        writer.add("traced_inputs.pkl", bytes)?;
    }
    for (package, text) in &printed.files {
        let file = format!("code/{}.py", package.replace('.', "/"));
        writer.add(&file, text.as_str().as_bytes())?;
        writer.add(&format!("{file}.debug_pkl"), &debug::encode(text.tags())?)?;
    }
    let mut constants = Tree::new(registry, module, &[]);
    let table = constants.node(&Value::tuple(printed.constants), 0)?;
    constants.write(&mut writer, "constants", table)?;
    let version = upgraders::least_version(registry, module);
    writer.add("version", format!("{version}\n").as_bytes())?;
    writer.add("byteorder", b"little")?;
    let id = writer.serialization_id();
    writer.add(".data/serialization_id", id.as_bytes())?;
    writer.finish()
}

/// A pickle in the making.
pub(super) struct Tree<'a> {
    registry: &'a Registry,
    module: &'a Module,
    states: &'a [(Value, Value)],
    nodes: Vec<Node>,
    /// Nodes of values with an identity; None while the value is being written.
    seen: HashMap<(u8, usize), Option<NodeId>>,
    /// States made here: they live as long as the tree, as what has an identity is known by its address.
    kept: Vec<Value>,
    storages: IndexMap<usize, (Storage, Arc<str>)>,
    /// Classes of objects, and of members of enums, in the order in which they are met.
    classes: IndexMap<Symbol, ()>,
    enums: Vec<Symbol>,
    /// Whether lists and dictionaries say their types, as TorchScript's do and Python's do not.
    typed: bool,
}

impl<'a> Tree<'a> {
    /// For values of Python, which have no classes of a program.
    pub(super) fn untyped(registry: &'a Registry, module: &'a Module) -> Tree<'a> {
        Tree { typed: false, ..Tree::new(registry, module, &[]) }
    }

    fn new(registry: &'a Registry, module: &'a Module, states: &'a [(Value, Value)]) -> Tree<'a> {
        Tree {
            registry,
            module,
            states,
            nodes: Vec::new(),
            seen: HashMap::new(),
            kept: Vec::new(),
            storages: IndexMap::new(),
            classes: IndexMap::new(),
            enums: Vec::new(),
            typed: true,
        }
    }

    /// The text of a container's type, where it is written.
    fn type_text(&self, value: &Value) -> Result<Option<Box<str>>> {
        if self.typed { Ok(Some(value.ty().whole_annotation()?.into())) } else { Ok(None) }
    }

    fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    pub(super) fn node(&mut self, value: &Value, depth: u32) -> Result<NodeId> {
        if depth > Limits::default().pickle_depth {
            return Err(Diagnostic::unsupported(format!("saving values nested more than {depth} deep")));
        }
        let identity = match value {
            Value::Tensor(x) => Some((0, x.id())),
            Value::List(x) => Some((1, x.id())),
            Value::Dict(x) => Some((2, x.id())),
            Value::Object(x) => Some((3, x.id())),
            _ => None,
        };
        if let Some(key) = identity {
            match self.seen.insert(key, None) {
                Some(Some(id)) => {
                    self.seen.insert(key, Some(id));
                    return Ok(id);
                }
                Some(None) => return Err(Diagnostic::unsupported("saving a value that contains itself")),
                None => {}
            }
        }
        let node = self.make(value, depth + 1)?;
        let id = self.add(node);
        if let Some(key) = identity {
            self.seen.insert(key, Some(id));
        }
        Ok(id)
    }

    fn make(&mut self, value: &Value, depth: u32) -> Result<Node> {
        Ok(match value {
            Value::None => Node::None,
            Value::Bool(x) => Node::Bool(*x),
            Value::Int(x) => Node::Int(*x),
            Value::Float(x) => Node::Float(*x),
            Value::Complex(x) => Node::Complex(x.re, x.im),
            Value::Str(x) => Node::Str((&**x).into()),
            Value::Device(x) => Node::Device(x.to_string().into()),
            Value::Tensor(x) => Node::Tensor(Box::new(self.tensor(x)?)),
            Value::List(x) => {
                let items = x.to_vec().iter().map(|v| self.node(v, depth)).collect::<Result<_>>()?;
                Node::List(Box::new(NodeList { items, type_text: self.type_text(value)? }))
            }
            Value::Dict(x) => {
                let entries: Vec<(Value, Value)> =
                    x.entries().iter().map(|(k, v)| (k.to_value(), v.clone())).collect();
                let pair = |(k, v): &(Value, Value)| Ok((self.node(k, depth)?, self.node(v, depth)?));
                let pairs = entries.iter().map(pair).collect::<Result<_>>()?;
                Node::Dict(Box::new(NodeDict { pairs, type_text: self.type_text(value)?, ordered: false }))
            }
            Value::Tuple(x) => {
                Node::Tuple(x.items().iter().map(|v| self.node(v, depth)).collect::<Result<_>>()?)
            }
            Value::Enum(x) => {
                if !self.enums.contains(&x.class) {
                    self.enums.push(x.class);
                }
                let value = self.node(&x.value, depth)?;
                Node::Enum(Box::new(Enum { class: x.class.as_str().into(), value }))
            }
            Value::Object(x) => self.object(x, depth)?,
            Value::Generator(_) | Value::Future(_) | Value::Function(_) | Value::Uninitialized => {
                return Err(Diagnostic::unsupported(format!("saving a {}", value.kind_name())));
            }
        })
    }

    /// An object by its attributes, in the order in which the class has them.
    fn object(&mut self, object: &Object, depth: u32) -> Result<Node> {
        let class = object.class();
        self.classes.insert(class, ());
        let own = self.states.iter().find(|(o, _)| matches!(o, Value::Object(o) if o.same(object)));
        let state = if let Some((_, state)) = own {
            self.node(state, depth)?
        } else if is_custom_class(class.as_str()) {
            let row = self.registry.custom_class(class).ok_or_else(|| unknown_class(class.as_str()))?;
            let own = (row.get_state)(object)?;
            self.kept.push(own.clone());
            self.node(&own, depth)?
        } else {
            let def = self.module.class(class);
            let mut fields = object.fields();
            if let Some(def) = def {
                let place = |name: Symbol| def.attributes.iter().position(|a| a.name == name);
                fields.sort_by_key(|(name, _)| place(*name).unwrap_or(usize::MAX));
            }
            let mut pairs = Vec::with_capacity(fields.len());
            for (name, value) in &fields {
                let key = self.add(Node::Str(name.as_str().into()));
                pairs.push((key, self.node(value, depth)?));
            }
            self.add(Node::Dict(Box::new(NodeDict { pairs, type_text: None, ordered: false })))
        };
        Ok(Node::Object(Box::new(NodeObject { class: class.as_str().into(), state: Some(state) })))
    }

    /// The scales of a quantized tensor; of channels they are tensors of their own.
    fn scales(&mut self, tensor: &Tensor) -> Result<Option<Scales>> {
        let Some(quantizer) = tensor.quantizer() else { return Ok(None) };
        let (scales, zero_points, axis) = match &*quantizer {
            Quantizer::PerTensor { scale, zero_point } => {
                return Ok(Some(Scales::PerTensor { scale: *scale, zero_point: *zero_point }));
            }
            Quantizer::PerChannel { scales, zero_points, axis } => {
                let count = [scales.len() as i64];
                (Tensor::from_vec(scales, &count)?, Tensor::from_vec(zero_points, &count)?, *axis)
            }
            Quantizer::PerChannelFloat { scales, zero_points, axis } => {
                let count = [scales.len() as i64];
                (Tensor::from_vec(scales, &count)?, Tensor::from_vec(zero_points, &count)?, *axis)
            }
        };
        let (scales, zero_points) = (Box::new(self.tensor(&scales)?), Box::new(self.tensor(&zero_points)?));
        Ok(Some(Scales::PerChannel { scales, zero_points, axis: axis as i64 }))
    }

    fn tensor(&mut self, tensor: &Tensor) -> Result<TensorRecord> {
        let (storage, layout) = (tensor.storage(), tensor.layout());
        let element = storage_type(tensor.dtype().name()).ok_or_else(|| {
            Diagnostic::unsupported(format!("saving tensors of dtype {}", tensor.dtype().name()))
        })?;
        let scales = self.scales(tensor)?;
        let next = self.storages.len();
        let entry = self.storages.entry(storage.id());
        let (_, key) = entry.or_insert_with(|| (storage.clone(), next.to_string().into()));
        let record = StorageRecord {
            key: (&**key).into(),
            element,
            device: tensor.device().to_string().into(),
            numel: storage.nbytes() as u64 / element.bytes,
        };
        let dims = |dims: &[i64]| dims.to_vec().into_boxed_slice();
        Ok(TensorRecord {
            storage: Arc::new(record),
            offset: layout.offset as i64,
            sizes: dims(&layout.sizes),
            strides: dims(&layout.strides),
            requires_grad: tensor.requires_grad(),
            parameter: false,
            conj: false,
            neg: false,
            scales,
        })
    }

    /// Writes the storages and then the pickle that names them.
    pub(super) fn write<W: Write>(self, writer: &mut Writer<W>, stem: &str, root: NodeId) -> Result<()> {
        for (storage, key) in self.storages.values() {
            let name = format!("{stem}/{key}");
            writer.add(&name, &storage.read()?)?;
        }
        let pickle = Pickle::from_nodes(self.nodes, root, &Limits::default())?;
        writer.add(&format!("{stem}.pkl"), &pickle::write(&pickle))
    }
}
