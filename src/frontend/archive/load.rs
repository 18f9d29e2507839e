//! From an archive to a program: classes and functions compiled, objects built.
//!
//! Values are made bottom-up, so that a value that the archive shares is shared. What a node is meant to be (a
//! named tuple, a list of what) is known top-down from the declared types of attributes.

use super::declared::Declared;
use super::pickle::{Node, NodeId, Pickle, Scales, StorageRecord, TensorRecord};
use super::{Archive, exported, legacy, mobile, upgraders};
use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::prim::constant;
use crate::dialects::{Registry, is_custom_class};
use crate::frontend::script::{ArchiveCode, Library, compile_archive};
use crate::ir::{Attr, Module, Symbol, Type, TypeKind};
use crate::tensor::{DType, Dims, Layout, Quantizer, Storage, Tensor};
use crate::value::{Dict, EnumValue, Object, Tuple, Value};
use hashbrown::HashMap;
use indexmap::{IndexMap, IndexSet};
use std::sync::Arc;

/// A loaded model.
#[derive(Debug)]
pub struct Model {
    /// Its code.
    pub module: Module,
    /// The object that was saved.
    pub root: Value,
    /// Objects that restore themselves: `__setstate__` of the first is to be called with the second, in order.
    pub states: Vec<(Value, Value)>,
    /// What the code calls `CONSTANTS.c0` and so on.
    pub constants: Vec<Value>,
    /// Version of the file format.
    pub version: u64,
    /// Tables of original places by code file, still encoded: see [`Archive::debug_tables`].
    pub debug_tables: Vec<(String, Vec<u8>)>,
}

/// All that the code of an archive, or a source by itself, is compiled from, but the ops.
pub struct Code<'a> {
    /// Of the file format: what ops meant then. 0 of a source by itself.
    pub version: u64,
    /// All source files, in the order of the archive.
    pub sources: &'a [Arc<Source>],
    /// What these call `CONSTANTS.c0` and so on.
    pub constants: &'a [(Type, Attr)],
    /// Classes that objects of the archive have.
    pub classes: &'a [String],
}

impl<'a> Code<'a> {
    /// That of a source by itself.
    pub fn of_source(source: &'a Arc<Source>) -> Code<'a> {
        Code { version: 0, sources: std::slice::from_ref(source), constants: &[], classes: &[] }
    }
}

/// Has modules that were compiled before.
pub trait Compiled {
    /// The module of code: one that was made of the same before, or what `compile` makes.
    fn module(&self, code: &Code<'_>, compile: Box<dyn FnOnce() -> Result<Module> + '_>) -> Result<Module>;

    /// What an archive's code is compiled to is not kept, for a reason.
    fn unkept(&self, reason: &'static str);
}

/// Builds the model of an archive. Nothing of it runs.
pub fn load(registry: &Arc<Registry>, archive: Archive) -> Result<Model> {
    load_with(registry, archive, None)
}

/// The same; the code of an archive of `torch.jit.save` is compiled where it was not before.
pub fn load_with(
    registry: &Arc<Registry>,
    archive: Archive,
    compiled: Option<&dyn Compiled>,
) -> Result<Model> {
    if mobile::is_bytecode_only(&archive) {
        return mobile::load(registry, archive);
    }
    if exported::is_exported(&archive) {
        return exported::load(registry, archive);
    }
    if legacy::is_legacy(&archive) {
        return legacy::load(registry, archive);
    }
    let archive = Arc::new(archive);
    let constant_values = read_constants(registry, &archive)?;
    let constants = constant_values.iter().map(|(ty, value)| Ok((ty.clone(), to_attr(value)?)));
    let constants = constants.collect::<Result<Vec<_>>>()?;
    let constant_values = constant_values.into_iter().map(|(_, value)| value).collect();
    let data = archive.data_pickle()?;
    let mut classes: IndexSet<String> = IndexSet::new();
    for (_, node) in data.iter() {
        match node {
            Node::Object(object) => classes.insert(object.class.to_string()),
            Node::Enum(member) => classes.insert(member.class.to_string()),
            _ => false,
        };
    }
    let classes: Vec<String> = classes.into_iter().collect();
    let module = module_of(registry, &archive, (constants, classes), compiled)?;
    let debug_tables = archive.debug_tables()?;
    let model = assembled(registry, (&archive, &data), module)?;
    Ok(Model { constants: constant_values, debug_tables, ..model })
}

/// The code of an archive, compiled.
fn module_of(
    registry: &Arc<Registry>,
    archive: &Arc<Archive>,
    (constants, classes): (Vec<(Type, Attr)>, Vec<String>),
    compiled: Option<&dyn Compiled>,
) -> Result<Module> {
    let compile = |sources: &IndexMap<String, Arc<Source>>, constants, classes| {
        let library = Sources { archive: Arc::clone(archive), read: sources.clone() };
        let versioned = upgraders::registry(registry, archive.version());
        let module = compile_archive(&versioned, ArchiveCode { library, constants, classes })?;
        upgraded(registry, module, &versioned)
    };
    let Some(compiled) = compiled else { return compile(&IndexMap::new(), constants, classes) };
    let sources = archive.code_files().map(|name| Ok((name.to_string(), archive.source(name)?)));
    let Ok(read) = sources.collect::<Result<IndexMap<_, _>>>() else {
        // It is an error where it is needed, and no reason to compile nothing.
        compiled.unkept("a source file of the archive cannot be read");
        return compile(&IndexMap::new(), constants, classes);
    };
    let sources: Vec<Arc<Source>> = read.values().cloned().collect();
    let code =
        Code { version: archive.version(), sources: &sources, constants: &constants, classes: &classes };
    compiled.module(&code, Box::new(|| compile(&read, constants.clone(), classes.clone())))
}

/// Code that was compiled with the operators of the archive's version, with those of today.
pub(super) fn upgraded(
    registry: &Arc<Registry>,
    mut module: Module,
    versioned: &Arc<Registry>,
) -> Result<Module> {
    if !Arc::ptr_eq(versioned, registry) {
        upgraders::apply(&mut module, versioned, registry)?;
    }
    Ok(module)
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

/// The code of an archive by module.
struct Sources {
    archive: Arc<Archive>,
    /// Those that were read before, by their files.
    read: IndexMap<String, Arc<Source>>,
}

impl Library for Sources {
    fn source(&self, module: &str) -> Option<Result<Arc<Source>>> {
        let name = format!("code/{}.py", module.replace('.', "/"));
        if let Some(source) = self.read.get(&name) {
            return Some(Ok(Arc::clone(source)));
        }
        self.archive.entry(&name)?;
        Some(self.archive.source(&name))
    }
}

/// `CONSTANTS.c0` and so on, with their types. Code holds each constant as a tree, in which nothing is shared, so that
/// the size of these trees is limited.
fn read_constants(registry: &Registry, archive: &Arc<Archive>) -> Result<Vec<(Type, Value)>> {
    let pickle = archive.constants_pickle()?;
    let limit = archive.limits().constant_values;
    if unfolded_size(&pickle) > limit {
        return Err(Diagnostic::input(format!(
            "constants.pkl: the constants have more than {limit} values, where a value that is shared counts each time"
        ))
        .hint("Limits::constant_values is the limit"));
    }
    let empty = Module::default();
    let mut builder = Builder::new(registry, archive, "constants", &empty);
    let built = builder.build(&pickle)?;
    let (Value::Tuple(items), Some(types)) = (&built.root, built.ty.tuple_elements()) else {
        return Err(Diagnostic::input("constants.pkl does not hold a tuple"));
    };
    Ok(types.iter().cloned().zip(items.items().iter().cloned()).collect())
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
