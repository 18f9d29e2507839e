//! Classes of a mobile model. Bytecode says nothing of them: their attributes are those that the objects have, in the
//! order in which the archive has them, which is the order that instructions count.

use super::code::Code;
use super::types;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Registry, is_custom_class};
use crate::frontend::archive::pickle::{Node, NodeId, Pickle};
use crate::ir::unify::unify_as;
use crate::ir::{ClassAttribute, ClassDef, ClassKind, Module, Symbol, Type, TypeKind};
use indexmap::{IndexMap, IndexSet};

/// Defines the classes of all objects, with their methods and the types that the code speaks of.
pub(super) fn define(registry: &Registry, module: &mut Module, data: &Pickle, codes: &[Code]) -> Result<()> {
    for (_, node) in data.iter() {
        if let Node::Object(object) = node {
            let name = Symbol::new(&object.class);
            let kind = if is_custom_class(&object.class) { ClassKind::Script } else { ClassKind::Module };
            module.classes.entry(name).or_insert_with(|| ClassDef::new(name, kind));
        }
    }
    for class in registry.custom_classes() {
        let name = Symbol::new(class.name);
        module.classes.entry(name).or_insert_with(|| ClassDef::new(name, ClassKind::Script));
    }
    for text in codes.iter().flat_map(|code| &code.types) {
        types::define_named_tuple(module, text)?;
    }
    for code in codes {
        let Some((class, method)) = code.name.rsplit_once('.') else { continue };
        let name = Symbol::new(class);
        let def = module.classes.entry(name).or_insert_with(|| ClassDef::new(name, ClassKind::Module));
        def.methods.insert(Symbol::new(method), Symbol::new(&code.name));
    }
    attributes(module, data)?;
    widen_stored(module, codes.iter(), &|_| true);
    Ok(())
}

/// An attribute that code sets may hold None before or after, whatever it holds now. Of which class the object is that an
/// instruction sets is not known yet, so that the place counts in all of them; submodules are never set.
pub(super) fn widen_stored<'c>(
    module: &mut Module,
    codes: impl Iterator<Item = &'c Code>,
    is_wanted: &dyn Fn(Symbol) -> bool,
) {
    let stores = codes.flat_map(|code| &code.instructions).filter(|i| &*i.name == "SET_ATTR");
    let places: IndexSet<usize> = stores.filter_map(|i| usize::try_from(i.x).ok()).collect();
    for (_, def) in module.classes.iter_mut().filter(|(class, _)| is_wanted(**class)) {
        for place in &places {
            let Some(attribute) = def.attributes.get_mut(*place) else { continue };
            attribute.ty = match attribute.ty.kind() {
                TypeKind::Class(_) => continue,
                TypeKind::None => Type::any(),
                _ => Type::optional(attribute.ty.clone()),
            };
        }
    }
}

/// Gives classes the attributes that their objects have, each with a type that fits all of them.
fn attributes(module: &mut Module, data: &Pickle) -> Result<()> {
    let mut made: Vec<Type> = Vec::with_capacity(data.len());
    let mut texts: IndexMap<&str, Type> = IndexMap::new();
    for (_, node) in data.iter() {
        let text = match node {
            Node::List(list) => list.type_text.as_deref(),
            Node::Dict(dict) => dict.type_text.as_deref(),
            _ => None,
        };
        let stated = match text {
            Some(text) => match texts.get(text) {
                Some(known) => Some(known.clone()),
                None => {
                    let ty = types::parse(module, text)?;
                    texts.insert(text, ty.clone());
                    Some(ty)
                }
            },
            None => None,
        };
        let ty = match stated {
            Some(ty) => ty,
            None => type_of(data, node, &made)?,
        };
        if let Node::Object(object) = node
            && !is_custom_class(&object.class)
            && !restores(module, &object.class)
            && let Some(Node::Dict(dict)) = object.state.map(|state| data.node(state))
        {
            let pairs = dict.pairs.iter().filter_map(|(key, value)| Some((data.str(*key)?, *value)));
            let found: Vec<(Symbol, Type)> =
                pairs.map(|(key, value)| (Symbol::new(key), at(&made, value))).collect();
            add(module, Symbol::new(&object.class), found);
        }
        made.push(ty);
    }
    Ok(())
}

/// Whether the state of objects is what `__setstate__` takes, and not their attributes.
fn restores(module: &Module, class: &str) -> bool {
    let def = module.class(Symbol::new(class));
    def.is_some_and(|def| def.methods.contains_key(&Symbol::new("__setstate__")))
}

fn add(module: &mut Module, class: Symbol, found: Vec<(Symbol, Type)>) {
    for (name, ty) in found {
        let known = module.class(class).and_then(|def| def.attribute(name.as_str())).map(|a| a.ty.clone());
        let unified = match &known {
            Some(known) => unify_as(known, &ty, &*module, false, None).unwrap_or_else(Type::any),
            None => ty,
        };
        let Some(def) = module.classes.get_mut(&class) else { return };
        match def.attributes.iter_mut().find(|a| a.name == name) {
            Some(attribute) => attribute.ty = unified,
            None => {
                def.attributes.push(ClassAttribute {
                    name,
                    ty: unified,
                    is_parameter: false,
                    is_buffer: false,
                });
            }
        }
    }
}

fn at(made: &[Type], id: NodeId) -> Type {
    made.get(id.index()).cloned().unwrap_or_else(Type::none)
}

/// The type of a value that states none, whose parts have theirs already.
fn type_of(data: &Pickle, node: &Node, made: &[Type]) -> Result<Type> {
    Ok(match node {
        Node::None | Node::Global(_) | Node::Storage(_) => Type::none(),
        Node::Bool(_) => Type::bool(),
        Node::Int(_) => Type::int(),
        Node::Float(_) => Type::float(),
        Node::Complex(..) => Type::complex(),
        Node::Str(_) => Type::str(),
        Node::Tensor(_) => Type::tensor(),
        Node::Device(_) => Type::device(),
        Node::Object(object) => Type::class(Symbol::new(&object.class)),
        Node::Tuple(items) => Type::tuple(items.iter().map(|id| at(made, *id)).collect::<Vec<_>>()),
        Node::List(list) => Type::list(list.items.first().map_or_else(Type::tensor, |id| at(made, *id))),
        Node::Dict(dict) => match dict.pairs.first() {
            // The state of an object is not a value of the program.
            Some((key, value)) if data.str(*key).is_none() => Type::dict(at(made, *key), at(made, *value)),
            _ => Type::dict(Type::str(), Type::any()),
        },
        Node::Enum(member) => {
            return Err(Diagnostic::unsupported(format!(
                "members of enum {} in a mobile model: it does not say which members there are",
                member.class
            )));
        }
    })
}
