//! `list(...)` and `dict(...)` in all forms that Python has.

use super::Call;
use crate::diag::{Diagnostic, Result, Span};
use crate::frontend::script::ast::{Expr, ExprKind, Keyword};
use crate::frontend::script::emit::{Emitter, Sugared, error, literal};
use crate::ir::{Symbol, Type, TypeKind, ValueId};

impl Emitter<'_> {
    pub(super) fn call_list(&mut self, call: &Call<'_>) -> Result<Sugared> {
        let span = call.span;
        if call.args.is_empty() {
            let ty = call.hint.cloned().unwrap_or_else(|| Type::list(Type::tensor()));
            if !literal::is_list(&ty) {
                return error(span, format!("Expected list type annotation for list(), found {}", ty.repr()));
            }
            return Ok(Sugared::Value(self.emit_value(Symbol::new("prim::ListConstruct"), &[], ty, span)));
        }
        let [arg] = call.exactly::<1>()?;
        let value = self.sugared(arg, None)?;
        if let Sugared::Value(v) = &value
            && matches!(self.ty(*v).kind(), TypeKind::List(_) | TypeKind::Str)
        {
            return self.builtin(Symbol::new("aten::list"), &[*v], span).map(Sugared::Value);
        }
        let iterable = self.iterable(value, span)?;
        self.collect_list(&iterable, span, call.hint).map(Sugared::Value)
    }

    /// `dict()`, `dict(other)`, `dict(pairs)`; keywords go with the first two and with a list that is written out.
    pub(super) fn call_dict(&mut self, call: &Call<'_>) -> Result<Sugared> {
        let span = call.span;
        let wanted = match call.hint {
            Some(hint) if !hint.alternatives().iter().any(literal::is_dict) => {
                return Err(Diagnostic::compile(format!(
                    "Expected a type annotation of Dict for dict constructor dict(), got {hint}"
                )));
            }
            hint => literal::wanted_container(hint, "Dict", literal::is_dict, span)?,
        };
        if let literal::Wanted::Several(union, _) = &wanted {
            return error(
                span,
                format!(
                    "There are multiple candidate Dict types in the Union type annotation `{}`, and full type inference is not yet supported for the `dict()` constructor.",
                    union.repr()
                ),
            );
        }
        let made = match call.args.first() {
            None if call.keywords.is_empty() => self.dict_literal(&[], &[], span, call.hint)?,
            None => self.dict_of_pairs(&[], call.keywords, span, wanted)?,
            Some(Expr { kind: ExprKind::List(pairs), .. })
                if pairs.is_empty() && call.keywords.is_empty() =>
            {
                self.dict_literal(&[], &[], span, call.hint)?
            }
            Some(Expr { kind: ExprKind::List(pairs), .. }) if call.args.len() == 1 => {
                self.dict_of_pairs(pairs, call.keywords, span, wanted)?
            }
            Some(first) => {
                let is_empty = matches!(&first.kind, ExprKind::Dict { keys, .. } if keys.is_empty());
                let hint = call.hint.filter(|_| is_empty || matches!(first.kind, ExprKind::DictComp { .. }));
                match self.sugared(first, hint)? {
                    Sugared::Value(dict) if literal::is_dict(self.ty(dict)) => {
                        let copy = self.builtin(Symbol::new("aten::dict"), &[dict], span)?;
                        self.add_keywords(copy, call.keywords, span)?;
                        copy
                    }
                    other => {
                        call.exactly::<1>()?;
                        let pairs = self.iterable(other, span)?;
                        self.collect_dict(&pairs, span, wanted)?
                    }
                }
            }
        };
        Ok(Sugared::Value(self.as_union(made, call.hint, span)))
    }

    /// A dictionary of pairs that are written out, and of keywords.
    fn dict_of_pairs(
        &mut self,
        pairs: &[Expr],
        keywords: &[Keyword],
        span: &Span,
        wanted: literal::Wanted,
    ) -> Result<ValueId> {
        let mut items = self.values(pairs)?;
        for keyword in keywords {
            let key = self.str(&keyword.name.name, &keyword.name.span);
            let value = self.expr(&keyword.value, None)?;
            items.push(self.make_tuple(&[key, value], span));
        }
        let list = self.list_of(&items, span, None)?;
        let pairs = self.iterable(Sugared::Value(list), span)?;
        self.collect_dict(&pairs, span, wanted)
    }

    /// Stores keywords in a dictionary, whose type they must fit.
    fn add_keywords(&mut self, dict: ValueId, keywords: &[Keyword], span: &Span) -> Result<()> {
        for keyword in keywords {
            let key = self.str(&keyword.name.name, &keyword.name.span);
            let value = self.expr(&keyword.value, None)?;
            let mut wrong = String::new();
            if let Some((key_type, value_type)) = literal::dict_parts(self.ty(dict)) {
                for (what, given, wanted) in [("key", key, key_type), ("value", value, value_type)] {
                    if !self.is_subtype(self.ty(given), wanted) {
                        wrong.push_str(&format!(
                            "Generated {what} type {} did not match the annotated {what} type, which was {}\n",
                            self.ty(given).repr(),
                            wanted.repr()
                        ));
                    }
                }
            }
            if !wrong.is_empty() {
                return error(span, wrong);
            }
            self.builtin_op(Symbol::new("aten::_set_item"), &[dict, key, value], span)?;
        }
        Ok(())
    }
}
