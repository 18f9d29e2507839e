//! Literals: numbers, lists, tuples, dictionaries.

use super::{Emitter, error};
use crate::diag::{Diagnostic, Result, Span};
use crate::frontend::script::ast::{Expr, ExprKind, Number};
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
    pub(super) fn values(&mut self, items: &[Expr], hint: Option<&Type>) -> Result<Vec<ValueId>> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            if let ExprKind::Starred(inner) = &item.kind {
                let value = self.expr(inner, None)?;
                out.extend(self.unpack(value, &item.span)?);
            } else {
                out.push(self.expr(item, hint)?);
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
        let wanted = hint.and_then(list_in).cloned();
        let element = wanted.as_ref().and_then(|ty| ty.element()).cloned();
        let values = self.values(items, element.as_ref())?;
        self.list_of(&values, element, span)
    }

    /// A list of values; without a stated element type, of their common type.
    pub(super) fn list_of(
        &mut self,
        values: &[ValueId],
        element: Option<Type>,
        span: &Span,
    ) -> Result<ValueId> {
        let element = match element {
            Some(element) => {
                for value in values {
                    if !self.is_subtype(self.ty(*value), &element) {
                        let found = self.common_type(values, span)?.unwrap_or_else(Type::tensor);
                        return error(
                            span,
                            format!(
                                "List type annotation `List[{}]` did not match the types of the given list elements, which were unified to {}",
                                element.repr(),
                                found.repr()
                            ),
                        );
                    }
                }
                element
            }
            None => self.common_type(values, span)?.unwrap_or_else(Type::tensor),
        };
        Ok(self.emit_value(Symbol::new("prim::ListConstruct"), values, Type::list(element), span))
    }

    /// The type that all values have in common: a union where they differ. None without values.
    fn common_type(&mut self, values: &[ValueId], span: &Span) -> Result<Option<Type>> {
        let Some((first, rest)) = values.split_first() else { return Ok(None) };
        let mut common = self.ty(*first).unshaped();
        for value in rest {
            let ty = self.ty(*value).unshaped();
            common = match self.unify(&common, &ty, true) {
                Some(common) => common,
                None => {
                    return error(
                        span,
                        format!("cannot mix {} and {} in one container", common.repr(), ty.repr()),
                    );
                }
            };
        }
        Ok(Some(common))
    }

    pub(super) fn tuple_literal(
        &mut self,
        items: &[Expr],
        span: &Span,
        hint: Option<&Type>,
    ) -> Result<ValueId> {
        let hints = hint.and_then(|ty| ty.tuple_elements()).filter(|types| types.len() == items.len());
        let Some(hints) = hints.map(<[Type]>::to_vec) else {
            let values = self.values(items, None)?;
            return Ok(self.make_tuple(&values, span));
        };
        let values = items
            .iter()
            .zip(&hints)
            .map(|(item, hint)| self.expr(item, Some(hint)))
            .collect::<Result<Vec<_>>>()?;
        Ok(self.make_tuple(&values, span))
    }

    pub(super) fn dict_literal(
        &mut self,
        keys: &[Expr],
        values: &[Expr],
        span: &Span,
        hint: Option<&Type>,
    ) -> Result<ValueId> {
        let wanted = hint.and_then(dict_in).cloned();
        let value_hint = wanted.as_ref().and_then(|ty| match ty.kind() {
            TypeKind::Dict(_, value) => Some(value.clone()),
            _ => None,
        });
        let mut entries = Vec::with_capacity(keys.len() * 2);
        let (mut key_values, mut item_values) = (Vec::new(), Vec::new());
        for (key, value) in keys.iter().zip(values) {
            let (k, v) = (self.expr(key, None)?, self.expr(value, value_hint.as_ref())?);
            if let Some(first) = key_values.first() {
                let (wanted, found) = (self.ty(*first).unshaped(), self.ty(k).unshaped());
                if wanted != found && value_hint.is_none() {
                    return error(
                        &key.span,
                        format!(
                            "Dict keys must contain only a single type. Expected: {} but found {} instead",
                            wanted.repr(),
                            found.repr()
                        ),
                    );
                }
            }
            entries.extend([k, v]);
            key_values.push(k);
            item_values.push(v);
        }
        let (key, value) = match wanted.as_ref().map(Type::kind) {
            Some(TypeKind::Dict(key, value)) => (key.clone(), value.clone()),
            _ => (
                self.common_type(&key_values, span)?.unwrap_or_else(Type::str),
                self.common_type(&item_values, span)?.unwrap_or_else(Type::tensor),
            ),
        };
        for (k, v) in key_values.iter().zip(&item_values) {
            if !self.is_subtype(self.ty(*k), &key) || !self.is_subtype(self.ty(*v), &value) {
                return error(
                    span,
                    format!(
                        "Dict type annotation `Dict[{}, {}]` did not match the type of an actual key or value: `{}`: `{}`",
                        key.repr(),
                        value.repr(),
                        self.ty(*k).repr(),
                        self.ty(*v).repr()
                    ),
                );
            }
        }
        self.check_key_type(&key, span)?;
        Ok(self.emit_value(Symbol::new("prim::DictConstruct"), &entries, Type::dict(key, value), span))
    }

    pub(super) fn check_key_type(&self, key: &Type, _: &Span) -> Result<()> {
        let is_key = matches!(
            key.kind(),
            TypeKind::Str
                | TypeKind::Int
                | TypeKind::Float
                | TypeKind::Bool
                | TypeKind::Complex
                | TypeKind::Tensor(_)
                | TypeKind::Device
        );
        if is_key {
            return Ok(());
        }
        // PyTorch says it without a place.
        Err(Diagnostic::compile(format!(
            "Cannot create dict for key type '{key}', only int, float, complex, Tensor, device and string keys are \
             supported"
        )))
    }
}

/// The list type in a hint, also inside an optional or union.
fn list_in(ty: &Type) -> Option<&Type> {
    match ty.kind() {
        TypeKind::List(_) => Some(ty),
        TypeKind::Optional(inner) => list_in(inner),
        TypeKind::Union(members) => {
            let mut lists = members.iter().filter(|m| matches!(m.kind(), TypeKind::List(_)));
            lists.next().filter(|_| lists.next().is_none())
        }
        _ => None,
    }
}

/// The dictionary type in a hint, also inside an optional or union.
fn dict_in(ty: &Type) -> Option<&Type> {
    match ty.kind() {
        TypeKind::Dict(..) => Some(ty),
        TypeKind::Optional(inner) => dict_in(inner),
        TypeKind::Union(members) => {
            let mut dicts = members.iter().filter(|m| matches!(m.kind(), TypeKind::Dict(..)));
            dicts.next().filter(|_| dicts.next().is_none())
        }
        _ => None,
    }
}
