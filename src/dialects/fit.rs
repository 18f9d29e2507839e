//! Whether arguments take operands, by their types alone, as PyTorch decides it. No op is known here.

use crate::ir::{Schema, Symbol, Type, TypeKind};
use hashbrown::HashMap;

/// Whether a schema takes operands of these types, one for each argument.
pub fn matches(schema: &Schema, types: &[&Type]) -> bool {
    fits(schema, types.len(), types)
}

/// [`matches`] for a number of operands, of which at least those with names have their types here.
pub(super) fn fits(schema: &Schema, count: usize, types: &[&Type]) -> bool {
    let formals = &schema.arguments;
    if count < formals.len() || (count > formals.len() && !schema.is_vararg) {
        return false;
    }
    let mut bound = Bindings::new();
    formals.iter().zip(types).all(|(formal, actual)| accepts(&formal.ty, actual, &mut bound))
}

/// Whether one argument of type `formal` takes an operand of type `actual`.
pub(super) fn takes(formal: &Type, actual: &Type) -> bool {
    accepts(formal, actual, &mut Bindings::new())
}

type Bindings = HashMap<Symbol, Type>;

/// Whether an argument of type `formal` takes an operand of type `actual`; type variables are bound on the way.
fn accepts(formal: &Type, actual: &Type, bound: &mut Bindings) -> bool {
    use TypeKind as K;
    if formal == actual {
        return true;
    }
    match (formal.kind(), actual.kind()) {
        (K::Var(name), _) => match bound.get(name).cloned() {
            Some(known) => accepts(&known, actual, bound) || accepts(actual, &known, bound),
            None => {
                bound.insert(*name, actual.clone());
                true
            }
        },
        (K::Any, _) => true,
        (K::Optional(_), K::None) => true,
        (K::Optional(f), K::Optional(a)) => accepts(f, a, bound),
        (_, K::Union(members)) => members.iter().all(|a| accepts(formal, a, bound)),
        (K::Optional(f), _) => accepts(f, actual, bound),
        (K::Union(members), _) => members.iter().any(|f| accepts(f, actual, bound)),
        (K::Tensor(_), K::Tensor(_)) => true,
        (K::Number, K::Int | K::Float | K::Complex | K::SymInt | K::SymFloat) => true,
        (K::Int, _) | (_, K::Int) => is_int(formal) && is_int(actual),
        (K::Float, K::SymFloat) | (K::SymFloat, K::Float) => true,
        (K::Bool, K::SymBool) | (K::SymBool, K::Bool) => true,
        (K::List(f), K::List(a)) => same_element(f, a, bound),
        (K::Dict(fk, fv), K::Dict(ak, av)) => same_element(fk, ak, bound) && same_element(fv, av, bound),
        (K::Tuple(fs, _), K::Tuple(actuals, _)) => {
            fs.len() == actuals.len() && fs.iter().zip(actuals.iter()).all(|(f, a)| accepts(f, a, bound))
        }
        (K::Future(f), K::Future(a)) | (K::Await(f), K::Await(a)) | (K::RRef(f), K::RRef(a)) => {
            accepts(f, a, bound)
        }
        (K::AnyList, K::List(_)) | (K::AnyTuple, K::Tuple(..)) | (K::AnyEnum, K::Enum(..)) => true,
        (K::AnyClass, K::Class(_)) => true,
        // That a class implements an interface is checked where the program is compiled.
        (K::Interface(_), K::Class(_) | K::Interface(_)) => true,
        // A type of a dialect without parameters stands for any parameters.
        (K::Dialect(fd, fname, parameters), K::Dialect(ad, aname, _)) => {
            fd == ad && fname == aname && parameters.is_empty()
        }
        _ => false,
    }
}

/// Dtypes, layouts, memory formats and symbolic ints are ints to programs.
fn is_int(ty: &Type) -> bool {
    use TypeKind::*;
    matches!(ty.kind(), Int | ScalarType | Layout | MemoryFormat | SymInt | QScheme)
}

/// Containers are invariant, but refinements of tensors do not count, and a list of tensors may stand for a
/// list of optional ones.
fn same_element(formal: &Type, actual: &Type, bound: &mut Bindings) -> bool {
    use TypeKind as K;
    match (formal.kind(), actual.kind()) {
        (K::Optional(f), K::Optional(a)) => same_element(f, a, bound),
        (K::Optional(f), K::Tensor(_)) => f.is_tensor(),
        (K::Any | K::Number | K::Union(_) | K::Optional(_), _) => formal == actual,
        _ => accepts(formal, actual, bound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Argument;

    fn schema(types: &[Type]) -> Schema {
        let arguments = types.iter().map(|t| Argument::new("x", t.clone())).collect();
        Schema::new("test::op", arguments, Vec::new())
    }

    #[test]
    fn operands_match_as_in_pytorch() {
        let t = || Type::var("t");
        let cases: &[(&[Type], &[Type], bool)] = &[
            (&[Type::number()], &[Type::float()], true),
            (&[Type::number()], &[Type::bool()], false),
            (&[Type::float()], &[Type::int()], false),
            (&[Type::optional(Type::int())], &[Type::none()], true),
            (&[Type::list(t()), t()], &[Type::list(Type::int()), Type::int()], true),
            (&[Type::list(t()), t()], &[Type::list(Type::int()), Type::str()], false),
            (&[Type::list(Type::optional(Type::tensor()))], &[Type::list(Type::tensor())], true),
            (&[Type::list(Type::float())], &[Type::list(Type::int())], false),
            (&[Type::any()], &[Type::str()], true),
            (&[Type::tensor()], &[Type::tensor(), Type::tensor()], false),
        ];
        for (formals, actuals, expected) in cases {
            let actuals: Vec<&Type> = actuals.iter().collect();
            assert_eq!(matches(&schema(formals), &actuals), *expected, "{formals:?} {actuals:?}");
        }
    }
}
