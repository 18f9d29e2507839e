//! The least type that covers two types, and matching the type variables of a schema.

use super::subtype::{Hierarchy, is_subtype_of, merge_tensors, union};
use super::{Dim, Symbol, Type, TypeKind};
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
    let unified = unify_plain(a, b, hierarchy, to_union, hint);
    if unified.is_none() && to_union {
        return Some(union(&[a.clone(), b.clone()]));
    }
    unified
}

fn unify_plain(
    a: &Type,
    b: &Type,
    hierarchy: &dyn Hierarchy,
    to_union: bool,
    hint: Option<&Type>,
) -> Option<Type> {
    if is_subtype_of(a, b, hierarchy) {
        return Some(b.clone());
    }
    if is_subtype_of(b, a, hierarchy) {
        return Some(a.clone());
    }
    match (a.kind(), b.kind()) {
        (TypeKind::Tensor(x), TypeKind::Tensor(y)) => {
            return Some(Type::new(TypeKind::Tensor(merge_tensors(x, y))));
        }
        (TypeKind::None, _) => return Some(Type::optional(b.clone())),
        (_, TypeKind::None) => return Some(Type::optional(a.clone())),
        (TypeKind::Optional(element), _) => {
            if let Some(t) = unify(element, b, hierarchy) {
                return Some(Type::optional(t));
            }
        }
        (_, TypeKind::Optional(element)) => {
            if let Some(t) = unify(element, a, hierarchy) {
                return Some(Type::optional(t));
            }
        }
        (TypeKind::Tuple(xs, _), TypeKind::Tuple(ys, _)) => {
            if xs.len() != ys.len() {
                return None;
            }
            let pairs = xs.iter().zip(ys.iter());
            let elements: Option<Vec<Type>> =
                pairs.map(|(x, y)| unify_as(x, y, hierarchy, to_union, None)).collect();
            return elements.map(Type::tuple);
        }
        (TypeKind::Future(x), TypeKind::Future(y)) => {
            if let Some(t) = unify(x, y, hierarchy) {
                return Some(Type::future(t));
            }
        }
        _ => {}
    }
    // Lists and dictionaries of tensors that are known in different ways.
    let (plain_a, plain_b) = (without_refinements(a), without_refinements(b));
    if is_subtype_of(&plain_a, &plain_b, hierarchy) {
        return Some(plain_b);
    }
    if is_subtype_of(&plain_b, &plain_a, hierarchy) {
        return Some(plain_a);
    }
    hint.filter(|h| is_subtype_of(a, h, hierarchy) && is_subtype_of(b, h, hierarchy)).cloned()
}

/// The type that covers all of a non-empty list; the error says in PyTorch's words which element does not fit.
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

/// The type with every tensor inside it as plain `Tensor`.
pub fn without_refinements(ty: &Type) -> Type {
    match ty.kind() {
        TypeKind::Tensor(_) => Type::tensor(),
        _ => map_contained(ty, &|t| Some(without_refinements(t))).unwrap_or_else(|| ty.clone()),
    }
}

/// The type with every symbolic size inside it as an unknown one.
pub(super) fn without_symbols(ty: &Type) -> Type {
    match ty.kind() {
        TypeKind::Tensor(tensor) => {
            let is_symbol = |dim: &Dim| matches!(dim, Dim::Symbol(_));
            let Some(sizes) = tensor.sizes.as_ref().filter(|sizes| sizes.iter().any(is_symbol)) else {
                return ty.clone();
            };
            let shown = sizes.iter().map(|dim| if is_symbol(dim) { Dim::Unknown } else { *dim }).collect();
            Type::new(TypeKind::Tensor(super::types::TensorType { sizes: Some(shown), ..tensor.clone() }))
        }
        _ => map_contained(ty, &|t| Some(without_symbols(t))).unwrap_or_else(|| ty.clone()),
    }
}

/// Rebuilds a type with its direct parts replaced; None if one has no replacement.
fn map_contained(ty: &Type, map: &dyn Fn(&Type) -> Option<Type>) -> Option<Type> {
    Some(match ty.kind() {
        TypeKind::List(t) => Type::list(map(t)?),
        TypeKind::Optional(t) => Type::optional(map(t)?),
        TypeKind::Future(t) => Type::future(map(t)?),
        TypeKind::Await(t) => Type::new(TypeKind::Await(map(t)?)),
        TypeKind::RRef(t) => Type::new(TypeKind::RRef(map(t)?)),
        TypeKind::Dict(k, v) => Type::dict(map(k)?, map(v)?),
        TypeKind::Tuple(elements, names) => {
            let elements: Option<Vec<Type>> = elements.iter().map(map).collect();
            Type::new(TypeKind::Tuple(elements?.into(), names.clone()))
        }
        TypeKind::Union(members) => {
            let members: Option<Vec<Type>> = members.iter().map(map).collect();
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
        // It tells nothing of T: who needs that finds it missing.
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
        _ => map_contained(ty, &|t| substitute(t, env)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{NoClasses, parse_type};

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
