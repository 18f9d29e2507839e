//! The least type that covers two types, unions, and matching the type variables of a schema.

use super::subtype::{Hierarchy, NoClasses, can_hold_numbers, is_subtype_of, merge_tensors};
use crate::ir::{Dim, Stride, Symbol, Type, TypeKind};
use hashbrown::HashMap;
use indexmap::IndexMap;

/// The types that type variables stand for.
pub type TypeEnv = IndexMap<Symbol, Type>;

/// The type that covers both without making a union; None if there is none.
pub fn unify(a: &Type, b: &Type, hierarchy: &dyn Hierarchy) -> Option<Type> {
    unify_as(a, b, hierarchy, false, None)
}

/// The type that covers both, their union where nothing else does.
pub fn unify_or_union(a: &Type, b: &Type, hierarchy: &dyn Hierarchy) -> Type {
    unify_as(a, b, hierarchy, true, None).unwrap_or_else(|| union(&[a.clone(), b.clone()]))
}

/// The general form: with `to_union`, types that nothing else covers give their union; a `hint` that covers
/// both types is taken before that.
pub fn unify_as(
    a: &Type,
    b: &Type,
    hierarchy: &dyn Hierarchy,
    to_union: bool,
    hint: Option<&Type>,
) -> Option<Type> {
    Unifier { hierarchy, depth: 0, known: HashMap::new() }.unify(a, b, to_union, hint)
}

/// Types nested deeper than this have nothing in common but what covers them whole.
const MAX_DEPTH: usize = 256;

/// Unifies types and parts of types.
struct Unifier<'a> {
    hierarchy: &'a dyn Hierarchy,
    depth: usize,
    /// Answers for pairs of large parts, which may be shared, with and without `to_union`.
    known: HashMap<(Type, Type, bool), Option<Type>>,
}

impl Unifier<'_> {
    fn is_subtype(&self, a: &Type, b: &Type) -> bool {
        is_subtype_of(a, b, self.hierarchy)
    }

    fn unify(&mut self, a: &Type, b: &Type, to_union: bool, hint: Option<&Type>) -> Option<Type> {
        let unified = self.plain(a, b, to_union, hint);
        if unified.is_none() && to_union {
            return Some(union(&[a.clone(), b.clone()]));
        }
        unified
    }

    /// A part of a type with a part of another.
    fn part(&mut self, a: &Type, b: &Type, to_union: bool) -> Option<Type> {
        if a == b {
            return Some(a.clone());
        }
        if self.depth >= MAX_DEPTH {
            return None;
        }
        let large = a.is_large() && b.is_large();
        let pair = (a.clone(), b.clone(), to_union);
        if large && let Some(answer) = self.known.get(&pair) {
            return answer.clone();
        }
        self.depth += 1;
        let answer = self.unify(a, b, to_union, None);
        self.depth -= 1;
        if large {
            self.known.insert(pair, answer.clone());
        }
        answer
    }

    fn plain(&mut self, a: &Type, b: &Type, to_union: bool, hint: Option<&Type>) -> Option<Type> {
        if self.is_subtype(a, b) {
            return Some(b.clone());
        }
        if self.is_subtype(b, a) {
            return Some(a.clone());
        }
        match (a.kind(), b.kind()) {
            (TypeKind::Tensor(x), TypeKind::Tensor(y)) => {
                return Some(Type::new(TypeKind::Tensor(merge_tensors(x, y))));
            }
            (TypeKind::None, _) => return Some(Type::optional(b.clone())),
            (_, TypeKind::None) => return Some(Type::optional(a.clone())),
            (TypeKind::Optional(element), _) => {
                if let Some(t) = self.part(element, b, false) {
                    return Some(Type::optional(t));
                }
            }
            (_, TypeKind::Optional(element)) => {
                if let Some(t) = self.part(element, a, false) {
                    return Some(Type::optional(t));
                }
            }
            (TypeKind::Tuple(xs, _), TypeKind::Tuple(ys, _)) => {
                if xs.len() != ys.len() {
                    return None;
                }
                let pairs = xs.iter().zip(ys.iter());
                let elements: Option<Vec<Type>> = pairs.map(|(x, y)| self.part(x, y, to_union)).collect();
                return elements.map(Type::tuple);
            }
            (TypeKind::Future(x), TypeKind::Future(y)) => {
                if let Some(t) = self.part(x, y, false) {
                    return Some(Type::future(t));
                }
            }
            _ => {}
        }
        // Lists and dictionaries of tensors that are known in different ways.
        let (plain_a, plain_b) = (without_refinements(a), without_refinements(b));
        if self.is_subtype(&plain_a, &plain_b) {
            return Some(plain_b);
        }
        if self.is_subtype(&plain_b, &plain_a) {
            return Some(plain_a);
        }
        hint.filter(|h| self.is_subtype(a, h) && self.is_subtype(b, h)).cloned()
    }
}

/// The type that covers all of a non-empty list; the error says in PyTorch's wording which element does not fit.
pub fn unify_list(
    types: &[Type],
    hierarchy: &dyn Hierarchy,
    to_union: bool,
    hint: Option<&Type>,
) -> Result<Type, String> {
    let (first, rest) = types.split_first().ok_or("Cannot get unified type from empty list")?;
    let mut unified = first.clone();
    for (i, ty) in rest.iter().enumerate() {
        unified = unify_as(&unified, ty, hierarchy, to_union, hint).ok_or_else(|| {
            format!(
                "Could not unify type list since element {} of type {} did not match the types before it ({})",
                i + 1,
                ty.repr(),
                unified.repr()
            )
        })?;
    }
    Ok(unified)
}

/// The union of types in normal form: flat, without members that another covers, in PyTorch's order. A union
/// of one type is that type; with None and one other it is an optional. `members` may not be empty; of no
/// types it is None.
pub fn union(members: &[Type]) -> Type {
    let mut flat = Vec::new();
    for member in members {
        flatten(member, &mut flat);
    }
    coalesce(&mut flat);
    flat.sort_by_cached_key(|t| (rank(t), t.unrefined()));
    let none = Type::none();
    match &flat[..] {
        [] => none,
        [only] => only.clone(),
        [a, b] if *a == none => Type::optional(b.clone()),
        [a, b] if *b == none => Type::optional(a.clone()),
        _ if flat.len() == 4 && flat.contains(&none) && can_hold_numbers(&flat) => {
            Type::optional(Type::number())
        }
        _ => Type::new(TypeKind::Union(flat.into())),
    }
}

fn flatten(ty: &Type, out: &mut Vec<Type>) {
    match ty.kind() {
        TypeKind::Union(members) => members.iter().for_each(|m| flatten(m, out)),
        TypeKind::Optional(element) => {
            flatten(element, out);
            out.push(Type::none());
        }
        TypeKind::Number => out.extend([Type::int(), Type::float(), Type::complex()]),
        _ => out.push(ty.clone()),
    }
}

/// Unifies members pairwise where that needs no union, from the right to the left.
fn coalesce(types: &mut Vec<Type>) {
    let none = Type::none();
    let mut i = types.len();
    while i > 1 {
        i -= 1;
        if i >= types.len() {
            continue;
        }
        for j in (0..i).rev() {
            let (a, b) = (&types[i], &types[j]);
            // A premature optional would keep other types apart.
            if (*a == none) != (*b == none) {
                continue;
            }
            if let Some(unified) = unify(a, b, &NoClasses) {
                types[j] = unified;
                types.swap_remove(i);
                break;
            }
        }
    }
}

/// Place of a kind of type among the members of a union.
fn rank(ty: &Type) -> u8 {
    match ty.kind() {
        TypeKind::Any => 0,
        TypeKind::Enum(..) => 1,
        TypeKind::AnyEnum => 2,
        TypeKind::Tensor(_) => 3,
        TypeKind::Storage => 4,
        TypeKind::Tuple(..) => 5,
        TypeKind::List(_) => 6,
        TypeKind::Dict(..) => 7,
        TypeKind::Number => 8,
        TypeKind::Float => 9,
        TypeKind::Complex => 10,
        TypeKind::Future(_) => 11,
        TypeKind::Await(_) => 12,
        TypeKind::RRef(_) => 13,
        TypeKind::Int => 14,
        TypeKind::None => 15,
        TypeKind::Str => 16,
        TypeKind::Generator => 17,
        TypeKind::Bool => 19,
        TypeKind::Optional(_) => 20,
        TypeKind::Var(_) => 21,
        TypeKind::Device => 22,
        TypeKind::Stream => 23,
        TypeKind::Function(_) => 24,
        TypeKind::Class(_) => 25,
        TypeKind::PyObject => 26,
        TypeKind::Capsule => 27,
        TypeKind::Interface(_) => 28,
        TypeKind::QScheme => 29,
        TypeKind::ScalarType => 30,
        TypeKind::Layout => 31,
        TypeKind::MemoryFormat => 32,
        TypeKind::AnyList => 33,
        TypeKind::AnyTuple => 34,
        TypeKind::AnyClass => 35,
        TypeKind::SymInt => 36,
        TypeKind::SymFloat => 37,
        TypeKind::SymBool => 38,
        TypeKind::Union(_) => 39,
        TypeKind::Dialect(..) => 40,
    }
}

/// The type with every tensor inside it as plain `Tensor`.
pub fn without_refinements(ty: &Type) -> Type {
    if !ty.facts().refined {
        return ty.clone();
    }
    ty.rebuilt(
        &mut |part| {
            let plain = !part.facts().refined;
            if part.is_tensor() { Some(Type::tensor()) } else { plain.then(|| part.clone()) }
        },
        &|whole| whole,
    )
}

/// The type with every symbolic size inside it as an unknown one.
pub(in crate::ir) fn without_symbols(ty: &Type) -> Type {
    let is_symbol = |dim: &Dim| matches!(dim, Dim::Symbol(_) | Dim::Open(_));
    let replace = &mut |part: &Type| match part.kind() {
        TypeKind::Tensor(tensor) => {
            let Some(sizes) = tensor.sizes.as_ref().filter(|sizes| sizes.iter().any(is_symbol)) else {
                return Some(part.clone());
            };
            let shown = sizes.iter().map(|dim| if is_symbol(dim) { Dim::Unknown } else { *dim }).collect();
            let strides =
                tensor.strides.clone().filter(|s| !s.iter().any(|stride| matches!(stride, Stride::Open(..))));
            let plain = super::TensorType { sizes: Some(shown), strides, ..tensor.clone() };
            Some(Type::new(TypeKind::Tensor(plain)))
        }
        _ => (!part.facts().refined).then(|| part.clone()),
    };
    ty.rebuilt(replace, &|whole| whole)
}

impl Type {
    /// The type with every tensor inside it as plain `Tensor`.
    pub fn unshaped(&self) -> Type {
        without_refinements(self)
    }

    /// The type without the alternative `None`.
    pub fn without_none(&self) -> Type {
        let parts: Vec<Type> = self.alternatives().into_iter().filter(|t| *t != Type::none()).collect();
        if parts.is_empty() { self.clone() } else { union(&parts) }
    }

    /// The type rebuilt from the inside: `replace` gives parts that take the place of others whole, `finish` changes a
    /// part after those inside it. Each shared part is rebuilt once.
    pub fn rebuilt(
        &self,
        replace: &mut dyn FnMut(&Type) -> Option<Type>,
        finish: &dyn Fn(Type) -> Type,
    ) -> Type {
        rebuild(self, &mut HashMap::new(), replace, finish)
    }
}

fn rebuild(
    ty: &Type,
    known: &mut HashMap<Type, Type>,
    replace: &mut dyn FnMut(&Type) -> Option<Type>,
    finish: &dyn Fn(Type) -> Type,
) -> Type {
    if let Some(new) = replace(ty) {
        return new;
    }
    if let Some(new) = known.get(ty) {
        return new.clone();
    }
    let new = stacker::maybe_grow(RED_ZONE, STACK, || {
        map_contained(ty, &mut |part| Some(rebuild(part, known, replace, finish)))
    });
    let new = finish(new.unwrap_or_else(|| ty.clone()));
    if ty.is_large() {
        known.insert(ty.clone(), new.clone());
    }
    new
}

/// Types nest as deep as programs make them: where less stack is left than this, there is a new piece of it.
const RED_ZONE: usize = 64 * 1024;
/// The size of such a piece.
const STACK: usize = 1024 * 1024;

/// Rebuilds a type with its direct parts replaced; None if one has no replacement.
fn map_contained(ty: &Type, map: &mut dyn FnMut(&Type) -> Option<Type>) -> Option<Type> {
    Some(match ty.kind() {
        TypeKind::List(t) => Type::list(map(t)?),
        TypeKind::Optional(t) => Type::optional(map(t)?),
        TypeKind::Future(t) => Type::future(map(t)?),
        TypeKind::Await(t) => Type::new(TypeKind::Await(map(t)?)),
        TypeKind::RRef(t) => Type::new(TypeKind::RRef(map(t)?)),
        TypeKind::Dict(k, v) => Type::dict(map(k)?, map(v)?),
        TypeKind::Tuple(elements, names) => {
            let elements: Option<Vec<Type>> = elements.iter().map(&mut *map).collect();
            Type::new(TypeKind::Tuple(elements?.into(), names.clone()))
        }
        TypeKind::Union(members) => {
            let members: Option<Vec<Type>> = members.iter().map(&mut *map).collect();
            Type::new(TypeKind::Union(members?.into()))
        }
        _ => ty.clone(),
    })
}

/// Matches a schema's type against an actual one, binding type variables in `env`. A type without variables
/// matches anything here: whether it is a supertype is asked afterwards. The error is PyTorch's text.
pub fn match_type_variables(
    formal: &Type,
    actual: &Type,
    env: &mut TypeEnv,
    hierarchy: &dyn Hierarchy,
) -> Result<(), String> {
    if !formal.has_free_vars() {
        return Ok(());
    }
    let mut matching = |formal: &Type, actual: &Type| match_type_variables(formal, actual, env, hierarchy);
    match (formal.kind(), actual.kind()) {
        (TypeKind::Var(name), _) => bind(*name, actual, env, hierarchy),
        (TypeKind::List(f), TypeKind::List(a)) => matching(f, a),
        (TypeKind::List(f), TypeKind::Tuple(elements, _)) => {
            match unify_list(elements, hierarchy, false, None) {
                Ok(element) => matching(f, &element),
                Err(_) => Err(format!("Cannot match {} to {}", formal.repr(), actual.repr())),
            }
        }
        (TypeKind::List(_), _) => Err(format!("Cannot match {} to {}", formal.repr(), actual.repr())),
        (TypeKind::Tuple(fs, _), TypeKind::Tuple(actuals, _)) => {
            if fs.len() != actuals.len() {
                return Err("Cannot match tuples of mismatched size".to_string());
            }
            fs.iter().zip(actuals.iter()).try_for_each(|(f, a)| matching(f, a))
        }
        (TypeKind::Tuple(..), _) => Err(format!("Cannot match a tuple to {}", actual.repr())),
        (TypeKind::Future(f), TypeKind::Future(a))
        | (TypeKind::Await(f), TypeKind::Await(a))
        | (TypeKind::RRef(f), TypeKind::RRef(a)) => matching(f, a),
        (TypeKind::Future(_), _) => Err(format!("Cannot match a future to {}", actual.repr())),
        (TypeKind::Await(_), _) => Err(format!("Cannot match an await to {}", actual.repr())),
        (TypeKind::RRef(_), _) => Err(format!("Cannot match a rref to {}", actual.repr())),
        (TypeKind::Optional(f), TypeKind::Optional(a)) => matching(f, a),
        // It does not determine T: uses of T find it missing.
        (TypeKind::Optional(_), TypeKind::None) => Ok(()),
        (TypeKind::Optional(f), _) => matching(f, actual),
        (TypeKind::Dict(fk, fv), TypeKind::Dict(ak, av)) => {
            matching(fk, ak)?;
            matching(fv, av)
        }
        (TypeKind::Dict(..), _) => Err(format!("Cannot match a dict to {}", actual.repr())),
        _ => Err(format!("Unhandled free variable container: {}", formal.repr())),
    }
}

fn bind(name: Symbol, actual: &Type, env: &mut TypeEnv, hierarchy: &dyn Hierarchy) -> Result<(), String> {
    let Some(bound) = env.get(&name) else {
        env.insert(name, actual.clone());
        return Ok(());
    };
    // The first binding stays: an actual type above it is refused later, as an argument of the wrong type.
    match unify(bound, actual, hierarchy) {
        Some(_) => Ok(()),
        None => Err(format!(
            "Type variable '{name}' previously matched to type {} is matched to type {}",
            bound.repr(),
            actual.repr()
        )),
    }
}

/// The type with its variables replaced; None if one is not bound.
pub fn substitute(ty: &Type, env: &TypeEnv) -> Option<Type> {
    match ty.kind() {
        TypeKind::Var(name) => env.get(name).cloned(),
        _ if !ty.has_free_vars() => Some(ty.clone()),
        _ => map_contained(ty, &mut |t| substitute(t, env)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse_type;

    fn ty(text: &str) -> Type {
        parse_type(text).unwrap()
    }

    /// Each row was asked of PyTorch's `unify_type_list`.
    #[test]
    fn unifying_as_pytorch_does() {
        for (a, b, result) in [
            ("int", "NoneType", Some("int?")),
            ("int", "float", None),
            ("(int, NoneType)", "(NoneType, float)", Some("(int?, float?)")),
            ("Float(2, 3)", "Float(2, 4)", Some("Float(2, *)")),
            ("Float(2, 3)[]", "Float(2, *)[]", Some("Tensor[]")),
            ("Any", "Any?", Some("Any?")),
            ("int?", "Scalar", Some("Scalar?")),
        ] {
            let unified = unify(&ty(a), &ty(b), &NoClasses).map(|t| t.to_string());
            assert_eq!(unified.as_deref(), result, "{a}, {b}");
        }
        assert_eq!(unify_or_union(&ty("int"), &ty("str"), &NoClasses).to_string(), "Union(int, str)");
    }

    #[test]
    fn a_list_says_which_element_does_not_fit() {
        let error = unify_list(&[ty("int"), ty("str")], &NoClasses, false, None).unwrap_err();
        assert_eq!(
            error,
            "Could not unify type list since element 1 of type str did not match the types before it (int)"
        );
    }

    #[test]
    fn type_variables_are_bound_once() {
        let mut env = TypeEnv::new();
        match_type_variables(&ty("Dict(str, t)"), &ty("Dict(str, int[])"), &mut env, &NoClasses).unwrap();
        assert_eq!(substitute(&ty("t[]"), &env).unwrap().to_string(), "int[][]");
        let error = match_type_variables(&ty("t"), &ty("str"), &mut env, &NoClasses).unwrap_err();
        assert_eq!(error, "Type variable 't' previously matched to type List[int] is matched to type str");
        let error = match_type_variables(&ty("u[]"), &ty("int"), &mut env, &NoClasses).unwrap_err();
        assert_eq!(error, "Cannot match List[u] to int");
        assert!(substitute(&ty("v"), &env).is_none());
    }
}
