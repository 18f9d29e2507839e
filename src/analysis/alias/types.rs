//! Which types are of objects that can be written, and what such objects contain.

use crate::ir::unify::without_refinements;
use crate::ir::{Module, Type, TypeKind};
use smallvec::{SmallVec, smallvec};

/// Whether a value of the type may be an object that can be written, or hold one.
pub(super) fn is_mutable(ty: &Type) -> bool {
    let is_open =
        |ty: &Type| matches!(ty.kind(), TypeKind::Optional(_) | TypeKind::Tuple(..) | TypeKind::Union(_));
    // Few types need the walk over their parts.
    if !is_open(ty) {
        return may_be_written(ty);
    }
    let mut found = false;
    ty.visit(&mut |part| {
        let inside = is_open(part);
        found |= !inside && may_be_written(part);
        inside && !found
    });
    found
}

/// Whether objects of a type, which is not an optional, tuple or union, can be written or hold others.
fn may_be_written(ty: &Type) -> bool {
    use TypeKind as K;
    let is_number = matches!(
        ty.kind(),
        K::Number | K::Int | K::Float | K::Complex | K::Bool | K::SymInt | K::SymFloat | K::SymBool
    );
    let is_setting = matches!(
        ty.kind(),
        K::Device | K::ScalarType | K::Layout | K::MemoryFormat | K::QScheme | K::Generator
    );
    let is_plain =
        matches!(ty.kind(), K::Str | K::None | K::Enum(..) | K::AnyEnum | K::Function(_) | K::Stream);
    !(is_number || is_setting || is_plain)
}

/// The classes of the program, where they are known.
#[derive(Clone, Copy)]
pub(super) struct Classes<'a>(pub(super) Option<&'a Module>);

impl Classes<'_> {
    /// The types that objects of a type may have, refinements left out: `Tensor?` gives `Tensor`.
    pub(super) fn bases(&self, ty: &Type) -> SmallVec<[Type; 1]> {
        use TypeKind as K;
        if !is_mutable(ty) {
            return smallvec![];
        }
        match ty.kind() {
            K::Tensor(_) => smallvec![Type::tensor()],
            K::List(_) | K::Dict(..) => smallvec![without_refinements(ty)],
            // Names of tuples do not matter: a named tuple is a tuple.
            K::Tuple(elements, _) => {
                let plain: Vec<Type> = elements.iter().map(without_refinements).collect();
                smallvec![Type::tuple(plain)]
            }
            K::Optional(inner) => self.bases(inner),
            K::Union(members) => members.iter().flat_map(|member| self.bases(member)).collect(),
            // Unknown classes are not told apart.
            K::Class(name) if self.0.and_then(|module| module.class(*name)).is_none() => {
                smallvec![Type::any_class()]
            }
            K::Class(_) | K::Future(_) | K::Await(_) => smallvec![without_refinements(ty)],
            K::Storage | K::Capsule | K::PyObject => smallvec![ty.clone()],
            _ => smallvec![Type::any()],
        }
    }

    /// The base types of what an object of a base type contains. An object of a class that is not known may
    /// contain anything.
    pub(super) fn contents(&self, ty: &Type) -> SmallVec<[Type; 2]> {
        use TypeKind as K;
        match ty.kind() {
            K::Tensor(_) | K::Storage => smallvec![],
            K::List(element) | K::Future(element) | K::Await(element) => {
                self.bases(element).into_iter().collect()
            }
            K::Dict(key, value) => self.bases(key).into_iter().chain(self.bases(value)).collect(),
            K::Tuple(elements, _) => elements.iter().flat_map(|element| self.bases(element)).collect(),
            K::Class(name) => match self.0.and_then(|module| module.class(*name)) {
                Some(class) => class.attributes.iter().flat_map(|a| self.bases(&a.ty)).collect(),
                None => smallvec![Type::any()],
            },
            _ => smallvec![Type::any()],
        }
    }

    /// Whether an object of the type `outer` may be an object of the type `inner`, or hold one, however deep.
    pub(super) fn may_hold(&self, outer: &Type, inner: &Type) -> bool {
        let wanted = self.bases(inner);
        let is_any = |ty: &Type| matches!(ty.kind(), TypeKind::Any | TypeKind::AnyClass);
        let mut seen: SmallVec<[Type; 4]> = self.bases(outer).into_iter().collect();
        let mut at = 0;
        while let Some(ty) = seen.get(at).cloned() {
            if wanted.iter().any(|w| *w == ty || is_any(w)) || is_any(&ty) {
                return true;
            }
            for content in self.contents(&ty) {
                if !seen.contains(&content) {
                    seen.push(content);
                }
            }
            at += 1;
        }
        false
    }
}
