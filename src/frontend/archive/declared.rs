//! Whether the values that an archive holds are of the types that its classes declare. It reads the tree and builds
//! nothing; a pair of value and type that was met before is not revisited, so that shared values cost nothing.

use super::pickle::{Node, NodeId, Pickle};
use crate::diag::{Diagnostic, Result};
use crate::ir::{ClassAttribute, Module, Symbol, Type, TypeKind};
use hashbrown::HashSet;

/// The declarations of a module, and what was found to fit them.
pub(super) struct Declared<'a> {
    module: &'a Module,
    /// Pairs of a node and the address of a type, which the module keeps alive.
    fits: HashSet<(NodeId, usize)>,
}

impl<'a> Declared<'a> {
    pub(super) fn new(module: &'a Module) -> Declared<'a> {
        Declared { module, fits: HashSet::new() }
    }

    /// Refuses a value that its attribute cannot have.
    pub(super) fn check(
        &mut self,
        pickle: &Pickle,
        value: NodeId,
        attribute: &'a ClassAttribute,
        class: &str,
    ) -> Result<()> {
        let Some(misfit) = self.misfit(pickle, value, &attribute.ty) else { return Ok(()) };
        let found = match pickle.node(misfit.0) {
            Node::Object(object) => format!("an instance of {}", object.class),
            Node::Enum(member) => format!("a member of {}", member.class),
            other => other.kind().to_string(),
        };
        let error = Diagnostic::input(format!(
            "attribute `{}` of {class} is declared as {}, and the archive holds {found}{}",
            attribute.name,
            attribute.ty.annotation(),
            if misfit.0 == value {
                String::new()
            } else {
                format!(" where a {} is required", misfit.1.annotation())
            },
        ));
        Err(error.hint("save the model again with torch.jit.save"))
    }

    /// A value within `value` that is not of the type that it must have, and that type.
    fn misfit(&mut self, pickle: &Pickle, value: NodeId, ty: &'a Type) -> Option<(NodeId, &'a Type)> {
        let mut work = vec![(value, ty)];
        while let Some((id, ty)) = work.pop() {
            if !self.fits.insert((id, std::ptr::from_ref(ty.kind()) as usize)) {
                continue;
            }
            if !self.look(pickle, id, ty, &mut work) {
                return Some((id, ty));
            }
        }
        None
    }

    /// Whether a value is of a type, as far as it is known without its parts, which are put on the list.
    fn look(&self, pickle: &Pickle, id: NodeId, ty: &'a Type, work: &mut Vec<(NodeId, &'a Type)>) -> bool {
        use TypeKind as K;
        match (ty.kind(), pickle.node(id)) {
            (K::Optional(_), Node::None) => true,
            (K::Optional(inner), _) => {
                work.push((id, inner));
                true
            }
            (K::Union(members), _) => members.iter().any(|member| self.is_kind(pickle.node(id), member)),
            (K::List(element), Node::List(list)) => {
                work.extend(list.items.iter().map(|item| (*item, element)));
                true
            }
            (K::Dict(key, value), Node::Dict(dict)) => {
                work.extend(dict.pairs.iter().flat_map(|(k, v)| [(*k, key), (*v, value)]));
                true
            }
            (K::Tuple(elements, _), Node::Tuple(items)) => {
                work.extend(items.iter().copied().zip(elements.iter()));
                items.len() == elements.len()
            }
            (_, node) => self.is_kind(node, ty),
        }
    }

    /// Whether a value is of the kind that a type is of; parts are not examined.
    fn is_kind(&self, node: &Node, ty: &Type) -> bool {
        use TypeKind as K;
        match (ty.kind(), node) {
            // A tensor that was never set is written as None.
            (K::Tensor(_), found) => matches!(found, Node::Tensor(_) | Node::None),
            (K::Int | K::ScalarType | K::Layout | K::MemoryFormat, found) => matches!(found, Node::Int(_)),
            (K::Float, found) => matches!(found, Node::Float(_) | Node::Int(_)),
            (K::Complex | K::Number, found) => {
                matches!(found, Node::Complex(..) | Node::Float(_) | Node::Int(_))
            }
            (K::Bool, found) => matches!(found, Node::Bool(_)),
            (K::Str, found) => matches!(found, Node::Str(_)),
            (K::None, found) => matches!(found, Node::None),
            (K::Device, found) => matches!(found, Node::Device(_)),
            (K::List(_) | K::AnyList, found) => matches!(found, Node::List(_)),
            (K::Dict(..), found) => matches!(found, Node::Dict(_)),
            (K::Tuple(..) | K::AnyTuple, found) => matches!(found, Node::Tuple(_)),
            (K::Class(name), Node::Object(object)) => *name == *object.class,
            (K::Class(_), _) => false,
            (K::Interface(name), Node::Object(object)) => self.implements(&object.class, *name),
            (K::Interface(_), _) => false,
            (K::Enum(name, _), Node::Enum(member)) => *name == *member.class,
            (K::Enum(..), _) => false,
            (K::AnyEnum, found) => matches!(found, Node::Enum(_)),
            (K::AnyClass, found) => matches!(found, Node::Object(_)),
            (K::Optional(inner), found) => matches!(found, Node::None) || self.is_kind(found, inner),
            (K::Future(_) | K::Await(_) | K::RRef(_) | K::Function(_) | K::Generator, _) => false,
            // Any, and kinds of which archives hold nothing.
            _ => true,
        }
    }

    fn implements(&self, class: &str, interface: Symbol) -> bool {
        let class = Symbol::existing(class).and_then(|name| self.module.class(name));
        match (class, self.module.interfaces.get(&interface)) {
            (Some(class), Some(interface)) => interface.methods.keys().all(|m| class.methods.contains_key(m)),
            _ => false,
        }
    }
}
