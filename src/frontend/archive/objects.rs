//! The values of a pickle: objects, containers and tensors. It knows nothing of source code and bytecode.
//!
//! Values are made bottom-up, so that a value that the archive shares is shared. What a node is meant to be (a
//! named tuple, a list of what) is known top-down from the declared types of attributes.

use super::declared::Declared;
use super::model::Model;
use super::opened::Archive;
use super::pickle::{Node, NodeId, Pickle, Scales, StorageRecord, TensorRecord};
use crate::diag::{Diagnostic, Result};
use crate::dialects::prim::constant;
use crate::dialects::{Registry, is_custom_class};
use crate::ir::{Attr, Module, Symbol, Type, TypeKind};
use crate::tensor::{DType, Dims, Layout, Quantizer, Storage, Tensor};
use crate::value::{Dict, EnumValue, Object, Tuple, Value};
use hashbrown::HashMap;
use std::sync::Arc;

/// Makes the values of a pickle.
pub(super) struct Builder<'a> {
    registry: &'a Registry,
    archive: &'a Arc<Archive>,
    stem: &'a str,
    module: &'a Module,
    storages: HashMap<String, Storage>,
    states: Vec<(Value, Value)>,
    declared: Declared<'a>,
}

/// A value with its type, which shares the types of the values within: asking the value would unfold it.
pub(super) struct Built {
    pub(super) root: Value,
    pub(super) ty: Type,
}

/// The type of a value just made.
fn type_of(value: &Value, node: &Node, made: &[Built]) -> Type {
    match (value, node) {
        (Value::Tuple(tuple), Node::Tuple(items)) => {
            let types = items.iter().map(|id| made.get(id.index()).map_or_else(Type::none, |b| b.ty.clone()));
            Type::new(TypeKind::Tuple(types.collect(), tuple.names().cloned()))
        }
        _ => value.ty(),
    }
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        registry: &'a Registry,
        archive: &'a Arc<Archive>,
        stem: &'a str,
        module: &'a Module,
    ) -> Self {
        Builder {
            registry,
            archive,
            stem,
            module,
            storages: HashMap::new(),
            states: Vec::new(),
            declared: Declared::new(module),
        }
    }

    /// The same builder for a module that is known now; storages that were read are kept.
    pub(super) fn with_module<'b>(self, module: &'b Module) -> Builder<'b>
    where
        'a: 'b,
    {
        Builder { module, declared: Declared::new(module), ..self }
    }

    /// Objects that restore themselves, with their states.
    pub(super) fn states(self) -> Vec<(Value, Value)> {
        self.states
    }

    /// The value of the root.
    pub(super) fn build(&mut self, pickle: &Pickle) -> Result<Built> {
        self.build_all(pickle)?
            .into_iter()
            .nth(pickle.root().index())
            .ok_or_else(|| Diagnostic::input("the archive's pickle is empty"))
    }

    /// The values of all nodes.
    pub(super) fn build_all(&mut self, pickle: &Pickle) -> Result<Vec<Built>> {
        self.build_as(pickle, Vec::new())
    }

    /// The values of all nodes, some of which are declared to be of a type.
    pub(super) fn build_as(&mut self, pickle: &Pickle, types: Vec<(NodeId, Type)>) -> Result<Vec<Built>> {
        let expected = self.expected_types(pickle, types)?;
        let mut made: Vec<Built> = Vec::with_capacity(pickle.len());
        for (id, node) in pickle.iter() {
            let root = self.value(pickle, node, expected[id.index()].as_ref(), &made)?;
            let ty = type_of(&root, node, &made);
            made.push(Built { root, ty });
        }
        Ok(made)
    }

    /// What each node is meant to be. Parents stand after their children, so the walk goes backwards.
    fn expected_types(&self, pickle: &Pickle, known: Vec<(NodeId, Type)>) -> Result<Vec<Option<Type>>> {
        let mut types: Vec<Option<Type>> = vec![None; pickle.len()];
        for (id, ty) in known {
            types[id.index()] = Some(ty);
        }
        let nodes: Vec<(NodeId, &Node)> = pickle.iter().collect();
        for (id, node) in nodes.into_iter().rev() {
            let stated = match node {
                Node::List(list) => list.type_text.as_deref(),
                Node::Dict(dict) => dict.type_text.as_deref(),
                _ => None,
            };
            if let Some(text) = stated
                && let Some(ty) = self.parse_type(text)
            {
                types[id.index()] = Some(ty);
            }
            let own = types[id.index()].clone();
            for (child, ty) in self.child_types(pickle, node, own.as_ref()) {
                types[child.index()].get_or_insert(ty);
            }
        }
        Ok(types)
    }

    /// The type that a stated type text means; class names are taken on trust.
    fn parse_type(&self, text: &str) -> Option<Type> {
        crate::frontend::script::parse_annotation(self.module, text).ok()
    }

    fn child_types(&self, pickle: &Pickle, node: &Node, own: Option<&Type>) -> Vec<(NodeId, Type)> {
        let own = own.map(|ty| match ty.kind() {
            TypeKind::Optional(inner) => inner.clone(),
            _ => ty.clone(),
        });
        match (node, own.as_ref().map(Type::kind)) {
            (Node::List(list), Some(TypeKind::List(element))) => {
                list.items.iter().map(|item| (*item, element.clone())).collect()
            }
            (Node::Dict(dict), Some(TypeKind::Dict(key, value))) => {
                dict.pairs.iter().flat_map(|(k, v)| [(*k, key.clone()), (*v, value.clone())]).collect()
            }
            (Node::Tuple(items), Some(TypeKind::Tuple(elements, _))) => {
                items.iter().copied().zip(elements.iter().cloned()).collect()
            }
            (Node::Object(object), _) => {
                let class = self.module.class(Symbol::new(&object.class));
                let state = object.state.map(|state| pickle.node(state));
                match (class, state) {
                    (Some(class), Some(Node::Dict(dict))) => dict
                        .pairs
                        .iter()
                        .filter_map(|(k, v)| Some((*v, class.attribute(pickle.str(*k)?)?.ty.clone())))
                        .collect(),
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    fn value(&mut self, pickle: &Pickle, node: &Node, ty: Option<&Type>, made: &[Built]) -> Result<Value> {
        let at = |id: &NodeId| made.get(id.index()).map(|b| b.root.clone()).unwrap_or_default();
        let type_at = |id: &NodeId| made.get(id.index()).map_or_else(Type::none, |b| b.ty.clone());
        let ty = ty.map(|ty| match ty.kind() {
            TypeKind::Optional(inner) => inner.clone(),
            _ => ty.clone(),
        });
        Ok(match node {
            Node::None => Value::None,
            Node::Bool(x) => Value::Bool(*x),
            Node::Int(x) => match ty.as_ref().map(Type::kind) {
                Some(TypeKind::Float) => Value::Float(*x as f64),
                _ => Value::Int(*x),
            },
            Node::Float(x) => Value::Float(*x),
            Node::Complex(re, im) => Value::Complex(num_complex::Complex64::new(*re, *im)),
            Node::Str(x) => Value::str(&**x),
            Node::Device(x) => Value::Device(Arc::new(x.parse().map_err(Diagnostic::input)?)),
            Node::Tensor(record) => Value::Tensor(self.tensor(record)?),
            Node::List(list) => {
                let element = match ty.as_ref().map(Type::kind) {
                    Some(TypeKind::List(element)) => element.clone(),
                    _ => list.items.first().map_or_else(Type::tensor, type_at),
                };
                Value::list(element, list.items.iter().map(at).collect())
            }
            Node::Tuple(items) => {
                let items: Vec<Value> = items.iter().map(at).collect();
                match ty.as_ref().map(Type::kind) {
                    Some(TypeKind::Tuple(_, Some(names))) => {
                        Value::Tuple(Tuple::named(Arc::clone(names), items))
                    }
                    _ => Value::tuple(items),
                }
            }
            Node::Dict(dict) => {
                let (key, value) = match ty.as_ref().map(Type::kind) {
                    Some(TypeKind::Dict(key, value)) => (key.clone(), value.clone()),
                    _ => (
                        dict.pairs.first().map_or_else(Type::str, |(k, _)| type_at(k)),
                        dict.pairs.first().map_or_else(Type::tensor, |(_, v)| type_at(v)),
                    ),
                };
                let out = Dict::new(key, value);
                for (k, v) in &dict.pairs {
                    out.insert(&at(k), at(v))?;
                }
                Value::Dict(out)
            }
            Node::Object(object) => self.object(pickle, object, made)?,
            Node::Enum(member) => self.enum_member(&member.class, &at(&member.value))?,
            Node::Global(_) | Node::Storage(_) => {
                return Err(Diagnostic::input(
                    "the pickle has a global or storage where a value is required",
                ));
            }
        })
    }

    fn object(&mut self, pickle: &Pickle, object: &super::pickle::Object, made: &[Built]) -> Result<Value> {
        let class = Symbol::new(&object.class);
        if is_custom_class(&object.class) {
            let state = object.state.and_then(|state| made.get(state.index())).map(|b| &b.root);
            return self.custom_object(class, state);
        }
        let instance = Object::new(class);
        let def = self.module.class(class);
        let Some(state) = object.state else { return Ok(Value::Object(instance)) };
        let restores = def.is_some_and(|c| c.methods.contains_key(&Symbol::new("__setstate__")));
        if restores {
            let state = made.get(state.index()).map(|b| b.root.clone()).unwrap_or_default();
            let value = Value::Object(instance);
            self.states.push((value.clone(), state));
            return Ok(value);
        }
        let Node::Dict(dict) = pickle.node(state) else {
            return Err(Diagnostic::input(format!("the state of a {} is not a dictionary", object.class)));
        };
        for (key, value) in &dict.pairs {
            let Some(name) = pickle.str(*key) else {
                return Err(Diagnostic::input(format!("an attribute of {} has no name", object.class)));
            };
            if let Some(attribute) = def.and_then(|c| c.attribute(name)) {
                self.declared.check(pickle, *value, attribute, &object.class)?;
            }
            let value = made.get(value.index()).map(|b| b.root.clone()).unwrap_or_default();
            instance.set(Symbol::new(name), value);
        }
        Ok(Value::Object(instance))
    }

    /// An instance of a custom class. One of a class that is not known here is only a name: what uses it says so.
    fn custom_object(&self, class: Symbol, state: Option<&Value>) -> Result<Value> {
        Ok(Value::Object(match self.registry.custom_class(class) {
            Some(row) => row.restore(state.unwrap_or(&Value::None))?,
            None => Object::new(class),
        }))
    }

    fn enum_member(&self, class: &str, value: &Value) -> Result<Value> {
        let class = Symbol::new(class);
        let def = self.module.enums.get(&class);
        let member = def.and_then(|def| {
            def.members.iter().find(|(_, attr)| match (attr, value) {
                (Attr::Int(a), Value::Int(b)) => a == b,
                (Attr::Float(a), Value::Float(b)) => a == b,
                (Attr::Str(a), Value::Str(b)) => **a == **b,
                _ => false,
            })
        });
        match member {
            Some((name, _)) => {
                Ok(Value::Enum(Arc::new(EnumValue { class, name: *name, value: value.clone() })))
            }
            None => Err(Diagnostic::input(format!("{value:?} is not a member of enum {class}"))),
        }
    }

    pub(super) fn tensor(&mut self, record: &TensorRecord) -> Result<Tensor> {
        let Some(dtype) = DType::from_name(record.storage.element.dtype) else {
            return Err(Diagnostic::unsupported(format!(
                "tensors of storage type {}",
                record.storage.element.dtype
            )));
        };
        if record.conj || record.neg {
            return Err(Diagnostic::unsupported("lazily conjugated or negated tensors in an archive"));
        }
        let storage = self.storage(&record.storage)?;
        let offset = usize::try_from(record.offset)
            .map_err(|_| Diagnostic::input(format!("a tensor's storage offset is {}", record.offset)))?;
        let layout = Layout {
            sizes: Dims::from_slice(&record.sizes),
            strides: Dims::from_slice(&record.strides),
            offset,
        };
        let storage = match dtype {
            DType::QU4x2 | DType::QU2x4 => whole_bytes(&storage, layout.numel().saturating_add(offset))?,
            _ => storage,
        };
        let mut tensor = Tensor::from_storage(storage, dtype.integer_repr(), layout)?;
        if let Some(scales) = &record.scales {
            tensor = Tensor::quantized(&tensor, dtype, Arc::new(self.quantizer(scales)?))?;
        }
        tensor.set_requires_grad(record.requires_grad)?;
        Ok(tensor)
    }

    fn quantizer(&mut self, scales: &Scales) -> Result<Quantizer> {
        let (scales, zero_points, axis) = match scales {
            Scales::PerTensor { scale, zero_point } => {
                return Ok(Quantizer::PerTensor { scale: *scale, zero_point: *zero_point });
            }
            Scales::PerChannel { scales, zero_points, axis } => {
                (self.tensor(scales)?, self.tensor(zero_points)?, usize::try_from(*axis))
            }
        };
        let axis = axis.map_err(|_| Diagnostic::input("a quantized tensor has a negative axis"))?;
        if zero_points.dtype().is_floating() {
            let (scales, zero_points) = (scales.to_vec_as::<f32>()?, zero_points.to_vec_as::<f32>()?);
            return Ok(Quantizer::PerChannelFloat { scales, zero_points, axis });
        }
        let (scales, zero_points) = (scales.to_vec_as::<f64>()?, zero_points.to_vec_as::<i64>()?);
        Ok(Quantizer::PerChannel { scales, zero_points, axis })
    }

    /// Tensors that share a storage in the archive share it here.
    fn storage(&mut self, record: &StorageRecord) -> Result<Storage> {
        if let Some(storage) = self.storages.get(&*record.key) {
            return Ok(storage.clone());
        }
        let in_place = self.archive.storage_in_place(self.stem, record)?;
        let storage = match in_place.map(Storage::borrowed) {
            // Elements of every dtype are aligned there.
            Some(storage) if storage.alignment() >= 8 => storage,
            _ => Storage::from_bytes(&self.archive.storage_bytes(self.stem, record)?)?,
        };
        self.storages.insert(record.key.to_string(), storage.clone());
        Ok(storage)
    }
}

/// A storage of elements of less than a byte with a byte for each, as tensors here count.
fn whole_bytes(storage: &Storage, elements: usize) -> Result<Storage> {
    let mut bytes = storage.read()?.to_vec();
    if bytes.len() < elements {
        let more = elements - bytes.len();
        bytes.try_reserve_exact(more).map_err(|_| Diagnostic::input("a quantized tensor is too large"))?;
        bytes.resize(elements, 0);
    }
    Storage::from_bytes(&bytes)
}

/// A model of code and of the archive's objects.
pub(super) fn assembled(
    registry: &Arc<Registry>,
    (archive, data): (&Arc<Archive>, &Pickle),
    module: Module,
) -> Result<Model> {
    let mut builder = Builder::new(registry, archive, "data", &module);
    let root = builder.build(data)?.root;
    let states = builder.states();
    let version = archive.version();
    Ok(Model { root, states, constants: Vec::new(), version, debug_tables: Vec::new(), module })
}

/// How many values a tree has where those that are shared count each time. Children stand before their parents.
pub(super) fn unfolded_size(pickle: &Pickle) -> u64 {
    let mut sizes: Vec<u64> = Vec::with_capacity(pickle.len());
    for (_, node) in pickle.iter() {
        let mut size = 1u64;
        node.children(|child| size = size.saturating_add(sizes.get(child.index()).copied().unwrap_or(1)));
        sizes.push(size);
    }
    sizes.last().copied().unwrap_or(0)
}

/// A constant as an attribute.
pub(super) fn to_attr(value: &Value) -> Result<Attr> {
    constant::attr(value).ok_or_else(|| {
        Diagnostic::unsupported(format!("constants of kind {} in an archive", value.kind_name()))
    })
}
