//! Literals: numbers, lists, tuples, dictionaries.

use super::{Emitter, error};
use crate::diag::{Diagnostic, Result, Span};
use crate::frontend::script::ast::{Expr, ExprKind, Number};
use crate::ir::unify;
use crate::ir::{Attr, Symbol, Type, TypeKind, ValueId};
use num_complex::Complex64;

impl Emitter<'_> {
    pub(super) fn number(&mut self, number: Number, span: &Span) -> Result<ValueId> {
        Ok(match number {
            Number::Int(x) => self.int(x, span),
            Number::Float(x) => self.float(x, span),
            Number::Imaginary(x) => {
                self.constant(Type::complex(), Some(Attr::Complex(Complex64::new(0.0, x))), span)
            }
            Number::OutOfRange => {
                return error(span, "Integral constant out of range (must fit in a signed 64 bit integer)");
            }
        })
    }

    /// Values of expressions, starred ones unpacked.
    pub(super) fn values(&mut self, items: &[Expr]) -> Result<Vec<ValueId>> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            if let ExprKind::Starred(inner) = &item.kind {
                let value = self.sugared(inner, None)?;
                for part in self.unpack_sugared(value, None, &item.span)? {
                    out.push(self.as_value(part, &item.span)?);
                }
            } else {
                out.push(self.expr(item, None)?);
            }
        }
        Ok(out)
    }

    pub(super) fn list_literal(
        &mut self,
        items: &[Expr],
        span: &Span,
        hint: Option<&Type>,
    ) -> Result<ValueId> {
        let values = self.values(items)?;
        let list = self.list_of(&values, span, hint)?;
        if items.is_empty() && hint.is_none() {
            self.untyped_lists.insert(list);
        }
        Ok(list)
    }

    /// A list of values, of the type that the place wants or of their common type.
    pub(super) fn list_of(
        &mut self,
        values: &[ValueId],
        span: &Span,
        hint: Option<&Type>,
    ) -> Result<ValueId> {
        let wanted = wanted_container(hint, "List", is_list, span)?;
        let element_hint = match &wanted {
            Wanted::One(ty) => ty.element().cloned(),
            _ => None,
        };
        if let Some(element) = &element_hint {
            self.ready_for(element, values);
        }
        let unified = self.common_type(values, element_hint.as_ref());
        let ty = match (wanted, unified) {
            (Wanted::Nothing, unified) => Type::list(unified.unwrap_or_else(Type::tensor)),
            (Wanted::One(ty), None) => ty,
            (Wanted::One(ty), Some(unified)) => {
                if !ty.element().is_some_and(|element| self.is_subtype(&unified, element)) {
                    return error(
                        span,
                        format!(
                            "List type annotation `{}` did not match the types of the given list elements, which were unified to {}",
                            ty.repr(),
                            unified.repr()
                        ),
                    );
                }
                ty
            }
            (Wanted::Several(union, _), None) => return error(span, ambiguous("list", "List", &union)),
            (Wanted::Several(union, candidates), Some(unified)) => {
                let fits = |ty: &&Type| ty.element().is_some_and(|e| self.is_subtype(&unified, e));
                let found = candidates.iter().find(|ty| ty.element() == Some(&unified));
                match found.or_else(|| candidates.iter().find(fits)) {
                    Some(ty) => ty.clone(),
                    None => {
                        return error(
                            span,
                            format!(
                                "Union type annotation `{}` can hold {}, but none of those types match the types of the given list elements, which were unified to {}",
                                union.repr(),
                                either(&candidates),
                                unified.repr()
                            ),
                        );
                    }
                }
            }
        };
        let list = self.emit_value(Symbol::new("prim::ListConstruct"), values, ty, span);
        Ok(self.as_union(list, hint, span))
    }

    /// A container that was made for a place of a union or optional type is one from here on.
    pub(super) fn as_union(&mut self, value: ValueId, hint: Option<&Type>, span: &Span) -> ValueId {
        match hint {
            Some(ty) if matches!(ty.kind(), TypeKind::Union(_)) => {
                self.unchecked_cast(value, ty.clone(), span)
            }
            _ => value,
        }
    }

    /// The type that all values have in common: a union where they differ. None without values.
    fn common_type(&self, values: &[ValueId], hint: Option<&Type>) -> Option<Type> {
        let types: Vec<Type> = values.iter().map(|v| self.ty(*v).unshaped()).collect();
        unify::unify_list(&types, &self.unit.module, true, hint).ok()
    }

    pub(super) fn tuple_literal(&mut self, items: &[Expr], span: &Span) -> Result<ValueId> {
        let values = self.values(items)?;
        Ok(self.make_tuple(&values, span))
    }

    pub(super) fn dict_literal(
        &mut self,
        keys: &[Expr],
        values: &[Expr],
        span: &Span,
        hint: Option<&Type>,
    ) -> Result<ValueId> {
        let mut entries = Vec::with_capacity(keys.len() * 2);
        let (mut key_types, mut item_values): (Vec<Type>, Vec<ValueId>) = Default::default();
        for (key, value) in keys.iter().zip(values) {
            let (k, v) = (self.expr(key, None)?, self.expr(value, None)?);
            let ty = self.ty(k).clone();
            if let Some(former) = key_types.last()
                && std::mem::discriminant(former.kind()) != std::mem::discriminant(ty.kind())
            {
                return error(
                    &key.span,
                    format!(
                        "Dict keys must contain only a single type. Expected: {} but found {} instead",
                        former.repr(),
                        ty.repr()
                    ),
                );
            }
            key_types.push(ty);
            entries.extend([k, v]);
            item_values.push(v);
        }
        let ty = self.dict_type(key_types.first(), &item_values, span, hint)?;
        let dict = self.emit_value(Symbol::new("prim::DictConstruct"), &entries, ty, span);
        Ok(self.as_union(dict, hint, span))
    }

    fn dict_type(
        &mut self,
        key: Option<&Type>,
        values: &[ValueId],
        span: &Span,
        hint: Option<&Type>,
    ) -> Result<Type> {
        let wanted = wanted_container(hint, "Dict", is_dict, span)?;
        let Some(key) = key else {
            return match wanted {
                Wanted::Nothing => Ok(Type::dict(Type::str(), Type::tensor())),
                Wanted::One(ty) => Ok(ty),
                Wanted::Several(union, _) => error(span, ambiguous("dict", "Dict", &union)),
            };
        };
        let value_hint = match &wanted {
            Wanted::One(ty) => dict_parts(ty).map(|(_, value)| value.clone()),
            _ => None,
        };
        let value = self.common_type(values, value_hint.as_ref()).unwrap_or_else(Type::tensor);
        let ty = match wanted {
            Wanted::Nothing => Type::dict(key.unshaped(), value),
            Wanted::One(ty) => {
                let parts =
                    dict_parts(&ty).map(|(k, v)| (self.is_subtype(key, k), self.is_subtype(&value, v)));
                let wrong = match parts {
                    Some((true, true)) | None => return Ok(ty),
                    Some((false, _)) => ("keys", key),
                    Some(_) => ("values", &value),
                };
                return error(
                    span,
                    format!(
                        "Type annotation was inferred to be `{}`, but the type of {} given by the dict literal is {}",
                        ty.repr(),
                        wrong.0,
                        wrong.1.repr()
                    ),
                );
            }
            Wanted::Several(union, candidates) => {
                let fits = |ty: &&Type| {
                    dict_parts(ty).is_some_and(|(k, v)| self.is_subtype(key, k) && self.is_subtype(&value, v))
                };
                match candidates.iter().find(fits) {
                    Some(ty) => ty.clone(),
                    None => {
                        return error(
                            span,
                            format!(
                                "Union type annotation `{}` can hold {}, but none of those dict types can hold the types of the given keys and values, which were unified to Dict[{}, {}",
                                union.repr(),
                                either(&candidates),
                                key.repr(),
                                value.repr()
                            ),
                        );
                    }
                }
            }
        };
        if let Some((key, _)) = dict_parts(&ty) {
            self.check_key_type(key)?;
        }
        Ok(ty)
    }

    pub(super) fn check_key_type(&self, key: &Type) -> Result<()> {
        let is_key = matches!(
            key.kind(),
            TypeKind::Str
                | TypeKind::Int
                | TypeKind::Float
                | TypeKind::Bool
                | TypeKind::Complex
                | TypeKind::Tensor(_)
                | TypeKind::Device
                | TypeKind::Any
        );
        if is_key {
            return Ok(());
        }
        // PyTorch does not say where.
        Err(Diagnostic::compile(format!(
            "Cannot create dict for key type '{key}', only int, float, complex, Tensor, device and string keys are supported"
        )))
    }
}

/// What a place wants of a literal container.
pub(super) enum Wanted {
    /// No type is stated.
    Nothing,
    /// One type of container.
    One(Type),
    /// A union with several of them.
    Several(Type, Vec<Type>),
}

/// Finds the container type in a hint, also inside a union.
pub(super) fn wanted_container(
    hint: Option<&Type>,
    what: &str,
    fits: fn(&Type) -> bool,
    span: &Span,
) -> Result<Wanted> {
    let Some(hint) = hint else { return Ok(Wanted::Nothing) };
    if *hint.kind() == TypeKind::Any {
        return Ok(Wanted::Nothing);
    }
    let candidates: Vec<Type> = hint.alternatives().into_iter().filter(fits).collect();
    match candidates.as_slice() {
        [] if matches!(hint.kind(), TypeKind::Union(_)) => error(
            span,
            format!("Expected a Union type annotation with an inner {what} type, but got {}", hint.repr()),
        ),
        [] => error(span, format!("Expected an annotation of type {what} but got {}", hint.repr())),
        [only] => Ok(Wanted::One(only.clone())),
        _ => Ok(Wanted::Several(hint.clone(), candidates)),
    }
}

pub(super) fn is_list(ty: &Type) -> bool {
    matches!(ty.kind(), TypeKind::List(_))
}

pub(super) fn is_dict(ty: &Type) -> bool {
    matches!(ty.kind(), TypeKind::Dict(..))
}

pub(super) fn dict_parts(ty: &Type) -> Option<(&Type, &Type)> {
    match ty.kind() {
        TypeKind::Dict(key, value) => Some((key, value)),
        _ => None,
    }
}

/// `A, B or C`
fn either(types: &[Type]) -> String {
    let names: Vec<String> = types.iter().map(|ty| ty.repr().to_string()).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, [only])) => format!("{only} or {last}"),
        Some((last, rest)) => format!("{}, or {last}", rest.join(", ")),
        None => String::new(),
    }
}

fn ambiguous(small: &str, big: &str, union: &Type) -> String {
    format!(
        "Cannot assign an empty {small} to a variable annotated to be type {} because there are multiple possible {big} type candidates in the Union annotation",
        union.repr()
    )
}
