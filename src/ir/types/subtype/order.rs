//! Subtyping, exactly as TorchScript has them.
//!
//! Tuples, futures, awaits and remote references are covariant; lists and dictionaries are invariant. A tensor
//! type is a subtype of every type that knows less of the tensor. A named tuple is a subtype of the plain
//! tuple of its elements, not the other way round. Classes are subtypes of the interfaces whose methods they
//! have; what classes and interfaces there are is asked of a [`Hierarchy`], because types are nominal.
//! Unifying types and unions of them stand in `unify.rs`.

use crate::ir::types::TensorType;
use crate::ir::{Dim, Schema, Stride, Symbol, Type, TypeKind};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// How deep types, classes and interfaces may refer to one another while they are compared.
const MAX_DEPTH: u32 = 64;

/// Answers questions about classes and interfaces. Method schemas have `self` first.
pub trait Hierarchy {
    /// Whether the class is a module class.
    fn is_module_class(&self, class: Symbol) -> bool;
    /// The schema of a class's method.
    fn class_method(&self, class: Symbol, method: Symbol) -> Option<&Schema>;
    /// Whether modules implement the interface.
    fn is_module_interface(&self, interface: Symbol) -> bool;
    /// The methods of an interface, in order.
    fn interface_methods(&self, interface: Symbol) -> Vec<(Symbol, &Schema)>;
}

/// The hierarchy of a program without classes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoClasses;

impl Hierarchy for NoClasses {
    fn is_module_class(&self, _: Symbol) -> bool {
        false
    }

    fn class_method(&self, _: Symbol, _: Symbol) -> Option<&Schema> {
        None
    }

    fn is_module_interface(&self, _: Symbol) -> bool {
        false
    }

    fn interface_methods(&self, _: Symbol) -> Vec<(Symbol, &Schema)> {
        Vec::new()
    }
}

impl Type {
    /// Whether every value of this type is one of `other`, in a program without classes that implement
    /// interfaces; see [`is_subtype_of`].
    pub fn is_subtype_of(&self, other: &Type) -> bool {
        is_subtype_of(self, other, &NoClasses)
    }
}

/// Whether every value of type `sub` is one of type `sup`.
pub fn is_subtype_of(sub: &Type, sup: &Type, hierarchy: &dyn Hierarchy) -> bool {
    sub == sup || Comparison::new(hierarchy, None).subtype(sub, sup)
}

/// Like [`is_subtype_of`]; for the answer "no", says why in PyTorch's wording, if there is more to say than
/// the two types.
pub fn why_not_subtype(sub: &Type, sup: &Type, hierarchy: &dyn Hierarchy) -> Result<(), String> {
    let mut why = String::new();
    let mut comparison = Comparison::new(hierarchy, Some(&mut why));
    if comparison.subtype(sub, sup) { Ok(()) } else { Err(why) }
}

struct Comparison<'a> {
    hierarchy: &'a dyn Hierarchy,
    why: Option<&'a mut String>,
    depth: u32,
    /// Answers for pairs of large types, which may share parts.
    known: HashMap<(Type, Type), bool>,
}

impl<'a> Comparison<'a> {
    fn new(hierarchy: &'a dyn Hierarchy, why: Option<&'a mut String>) -> Self {
        Comparison { hierarchy, why, depth: 0, known: HashMap::new() }
    }

    fn refuse(&mut self, reason: impl FnOnce() -> String) -> bool {
        if let Some(why) = &mut self.why {
            why.push_str(&reason());
        }
        false
    }

    fn subtype(&mut self, a: &Type, b: &Type) -> bool {
        if a == b || self.depth > MAX_DEPTH {
            return a == b;
        }
        let large = a.is_large() && b.is_large();
        if large && let Some(answer) = self.known.get(&(a.clone(), b.clone())) {
            return *answer;
        }
        self.depth += 1;
        let answer = self.subtype_by_kind(a, b);
        self.depth -= 1;
        if large {
            self.known.insert((a.clone(), b.clone()), answer);
        }
        answer
    }

    fn subtype_by_kind(&mut self, a: &Type, b: &Type) -> bool {
        match (a.kind(), b.kind()) {
            (TypeKind::Tensor(x), TypeKind::Tensor(y)) => a == b || knows_less(y, x),
            (TypeKind::Int | TypeKind::Float | TypeKind::Complex, TypeKind::Number) => true,
            (TypeKind::Number, TypeKind::Union(members)) => can_hold_numbers(members),
            (TypeKind::None, TypeKind::Optional(_)) => true,
            (TypeKind::List(_), TypeKind::AnyList) => true,
            (TypeKind::Enum(..), TypeKind::AnyEnum) => true,
            (TypeKind::Enum(x, _), TypeKind::Enum(y, _)) => x == y,
            (TypeKind::Class(_), TypeKind::AnyClass) => true,
            (TypeKind::Class(class), TypeKind::Interface(interface)) => self.implements(*class, *interface),
            (TypeKind::Interface(x), TypeKind::Interface(y)) => x == y || self.refines(*x, *y),
            (TypeKind::Future(x), TypeKind::Future(y))
            | (TypeKind::Await(x), TypeKind::Await(y))
            | (TypeKind::RRef(x), TypeKind::RRef(y)) => self.subtype(x, y),
            (TypeKind::Optional(x), TypeKind::Optional(y)) => self.subtype(x, y),
            (TypeKind::Optional(x), TypeKind::Union(members)) => self.optional_in_union(x, b, members),
            (TypeKind::Union(members), _) => self.union_in(a, members, b),
            (TypeKind::Tuple(..), TypeKind::Tuple(..)) if self.tuples(a, b) => true,
            (TypeKind::Tuple(..), TypeKind::AnyTuple) => true,
            _ => self.plain(a, b),
        }
    }

    /// The rule of every type: equal types, `Any`, and the members of optionals and unions.
    fn plain(&mut self, a: &Type, b: &Type) -> bool {
        match b.kind() {
            TypeKind::Any => true,
            _ if a == b => true,
            TypeKind::Optional(element) => self.subtype(a, element),
            TypeKind::Union(members) => members.iter().any(|member| self.subtype(a, member)),
            _ => false,
        }
    }

    fn optional_in_union(&mut self, element: &Type, b: &Type, members: &[Type]) -> bool {
        if !members.iter().any(|m| *m == Type::none() || matches!(m.kind(), TypeKind::Optional(_))) {
            return self.refuse(|| format!("{} cannot hold None", b.repr()));
        }
        if !self.subtype(element, b) {
            return self.refuse(|| format!("{} cannot hold {element}", b.repr()));
        }
        true
    }

    fn union_in(&mut self, a: &Type, members: &[Type], b: &Type) -> bool {
        if a == b {
            return true;
        }
        let number = || [Type::int(), Type::float(), Type::complex()];
        let candidates: SmallVec<[Type; 4]> = match b.kind() {
            TypeKind::Union(others) => others.iter().cloned().collect(),
            TypeKind::Optional(element) => {
                let element = match element.kind() {
                    TypeKind::Number => number().to_vec(),
                    TypeKind::Union(others) => others.to_vec(),
                    _ => vec![element.clone()],
                };
                element.into_iter().chain([Type::none()]).collect()
            }
            TypeKind::Number => number().into_iter().collect(),
            _ => [b.clone()].into_iter().collect(),
        };
        members.iter().all(|member| candidates.iter().any(|candidate| self.subtype(member, candidate)))
    }

    fn tuples(&mut self, a: &Type, b: &Type) -> bool {
        let (TypeKind::Tuple(xs, x_names), TypeKind::Tuple(ys, y_names)) = (a.kind(), b.kind()) else {
            return false;
        };
        let names_match = match (x_names, y_names) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(x), Some(y)) => x.fields == y.fields,
        };
        names_match && xs.len() == ys.len() && xs.iter().zip(ys.iter()).all(|(x, y)| self.subtype(x, y))
    }

    fn implements(&mut self, class: Symbol, interface: Symbol) -> bool {
        let hierarchy = self.hierarchy;
        if !hierarchy.is_module_class(class) && hierarchy.is_module_interface(interface) {
            return self.refuse(|| {
                format!(
                    "Class '{class}' is not a subtype of the module interface '{interface}' , only ScriptModule class can be subtype of module interface.\n"
                )
            });
        }
        for (name, wanted) in hierarchy.interface_methods(interface) {
            let Some(own) = hierarchy.class_method(class, name) else {
                return self.refuse(|| {
                    format!("Class '{class}' does not have method '{name}' but '{interface}' does.\n")
                });
            };
            if !self.method(own, wanted) {
                let own = Schema { name, ..own.clone() };
                return self.refuse(|| {
                    format!(
                        "Method on class '{class}' (1) is not compatible with interface '{interface}' (2)\n  (1) {own}\n  (2) {wanted}\n"
                    )
                });
            }
        }
        true
    }

    fn refines(&mut self, a: Symbol, b: Symbol) -> bool {
        let hierarchy = self.hierarchy;
        if !hierarchy.is_module_interface(a) && hierarchy.is_module_interface(b) {
            return self
                .refuse(|| format!("Interface '{a}' is not a subtype of the module interface '{b}'.\n"));
        }
        let own = hierarchy.interface_methods(a);
        for (name, wanted) in hierarchy.interface_methods(b) {
            let Some((_, own)) = own.iter().find(|(n, _)| *n == name) else {
                return self.refuse(|| {
                    format!("Interface '{a}' does not have method '{name}' but interface '{b}' does.\n")
                });
            };
            if !self.method(own, wanted) {
                return self.refuse(|| {
                    format!(
                        "Method on interface '{a}' (1) is not compatible with interface '{b}' (2)\n  (1) {own}\n  (2) {wanted}\n"
                    )
                });
            }
        }
        true
    }

    /// Whether a method may stand for another: contravariant arguments without `self`, covariant results, same
    /// names.
    fn method(&mut self, own: &Schema, wanted: &Schema) -> bool {
        let own_arguments = own.arguments.get(1..).unwrap_or_default();
        let wanted_arguments = wanted.arguments.get(1..).unwrap_or_default();
        let mut all = |subs: &[crate::ir::Argument], sups: &[crate::ir::Argument]| {
            subs.len() == sups.len()
                && subs.iter().zip(sups).all(|(x, y)| x.name == y.name && self.subtype(&x.ty, &y.ty))
        };
        all(wanted_arguments, own_arguments) && all(&own.returns, &wanted.returns)
    }
}

/// Whether a union holds int, float and complex.
pub(in crate::ir::types) fn can_hold_numbers(members: &[Type]) -> bool {
    [Type::int(), Type::float(), Type::complex()].iter().all(|n| members.contains(n))
}

/// Whether everything that `general` knows holds for `special` too.
fn knows_less(general: &TensorType, special: &TensorType) -> bool {
    fn covers<T: PartialEq>(general: &Option<T>, special: &Option<T>) -> bool {
        general.is_none() || general == special
    }
    let sizes = match (&general.sizes, &special.sizes) {
        (None, _) => true,
        (Some(g), Some(s)) => {
            g.len() == s.len() && g.iter().zip(s.iter()).all(|(g, s)| *g == Dim::Unknown || g == s)
        }
        _ => false,
    };
    let strides = match (&general.strides, &special.strides) {
        (None, _) => true,
        (Some(g), Some(s)) => {
            g.len() == s.len() && g.iter().zip(s.iter()).all(|(g, s)| g.is_unknown() || g == s)
        }
        // Strides of which none is known say only the rank.
        (Some(g), None) => g.iter().all(Stride::is_unknown),
    };
    sizes
        && strides
        && covers(&general.dtype, &special.dtype)
        && covers(&general.device, &special.device)
        && covers(&general.requires_grad, &special.requires_grad)
        && covers(&general.undefined, &special.undefined)
}

/// What two tensor types both know.
pub fn merge_tensors(a: &TensorType, b: &TensorType) -> TensorType {
    fn same<T: PartialEq + Clone>(a: &Option<T>, b: &Option<T>) -> Option<T> {
        if a == b { a.clone() } else { None }
    }
    let sizes = match (&a.sizes, &b.sizes) {
        (Some(x), Some(y)) if x.len() == y.len() => {
            Some(x.iter().zip(y.iter()).map(|(x, y)| if x == y { *x } else { Dim::Unknown }).collect())
        }
        _ => None,
    };
    let strides: Option<Arc<[Stride]>> = match (&a.strides, &b.strides) {
        (Some(x), Some(y)) if x.len() == y.len() => Some(
            x.iter().zip(y.iter()).map(|(x, y)| if x == y { x.clone() } else { Stride::Unknown }).collect(),
        ),
        _ => None,
    };
    TensorType {
        dtype: same(&a.dtype, &b.dtype),
        device: same(&a.device, &b.device),
        sizes,
        strides: strides.filter(|s| !s.iter().all(Stride::is_unknown)),
        requires_grad: same(&a.requires_grad, &b.requires_grad),
        undefined: same(&a.undefined, &b.undefined),
        inferred: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Module, parse_type};

    fn subtype(a: &str, b: &str) -> bool {
        parse_type(a).unwrap().is_subtype_of(&parse_type(b).unwrap())
    }

    /// Each row was asked of PyTorch's `isSubtypeOf`.
    #[test]
    fn subtyping_as_pytorch_answers() {
        for (a, b) in [
            ("int", "Scalar"),
            ("int", "int?"),
            ("NoneType", "Tensor?"),
            ("(int, float)", "(Any, Any)"),
            ("Future(int)", "Future(int?)"),
            ("Float(2, 3)", "Float(2, *)"),
            ("Float(2, 3)", "Tensor"),
            ("int", "Union(int, str)"),
            ("Union(float, int)", "Scalar"),
            ("Scalar", "Union(float, int, complex)"),
            ("int?", "Union(int, NoneType, str)"),
            ("Any?", "Any"),
        ] {
            assert!(subtype(a, b), "{a} is a {b}");
        }
        for (a, b) in [
            ("int", "float"),
            ("int[]", "int?[]"),
            ("Dict(str, int)", "Dict(str, Any)"),
            ("Float(2, *)", "Float(2, 3)"),
            ("int?", "int"),
            ("(int)", "(int, float)"),
            ("Scalar", "Union(float, int)"),
        ] {
            assert!(!subtype(a, b), "{a} is not a {b}");
        }
    }

    #[test]
    fn named_tuples_are_tuples_but_not_the_other_way_round() {
        assert!(subtype("NamedTuple(a : int)", "(int)"));
        assert!(!subtype("(int)", "NamedTuple(a : int)"));
        assert!(!subtype("NamedTuple(b : int)", "NamedTuple(a : int)"));
    }

    #[test]
    fn unions_have_one_form() {
        for (text, shown) in [
            ("Union(int, float)", "Union(float, int)"),
            ("Union(int, NoneType)", "int?"),
            ("Union(str, Union(int, str))", "Union(int, str)"),
            ("Union(int?, str)", "Union(int, NoneType, str)"),
            ("Union(int, float, complex)", "Union(Scalar)"),
            ("Union(Scalar, NoneType)", "Scalar?"),
        ] {
            assert_eq!(parse_type(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn a_class_is_the_interface_whose_methods_it_has() {
        let mut module = Module::default();
        let method = |text: &str| crate::ir::parse_schema(text).unwrap();
        let (class, name) = (Symbol::new("__torch__.C"), Symbol::new("f"));
        let mut def = crate::ir::ClassDef::new(class, crate::ir::ClassKind::Script);
        let function = Symbol::new("__torch__.C.f");
        def.methods.insert(name, function);
        module.classes.insert(class, def);
        let schema = method("__torch__.C.f(__torch__.C self, Any x) -> int");
        let graph = crate::ir::Graph::new();
        module.functions.insert(function, crate::ir::Function { name: function, schema, graph, span: None });
        for (interface, text, fits) in [
            ("__torch__.I", "f(__torch__.I self, int x) -> int", true),
            ("__torch__.J", "f(__torch__.J self, int x) -> str", false),
            ("__torch__.K", "g(__torch__.K self) -> int", false),
        ] {
            let interface_name = Symbol::new(interface);
            let schema = method(text);
            let methods = [(schema.name, schema)].into_iter().collect();
            let def = crate::ir::InterfaceDef { name: interface_name, is_module: false, methods };
            module.interfaces.insert(interface_name, def);
            let answer = why_not_subtype(&Type::class(class), &Type::interface(interface), &module);
            assert_eq!(answer.is_ok(), fits, "{answer:?}");
        }
        let why = why_not_subtype(&Type::class(class), &Type::interface("__torch__.K"), &module).unwrap_err();
        assert_eq!(why, "Class '__torch__.C' does not have method 'g' but '__torch__.K' does.\n");
    }
}
