//! Calls of what PyTorch's library writes in Python: functions that flags choose, assertions, the constructors of old.

use super::call::Call;
use super::{Emitter, Sugared, error};
use crate::diag::{Result, Span};
use crate::frontend::script::ast::{Expr, ExprKind, Keyword};
use crate::ir::{Attr, Symbol, Type};
use crate::tensor::DType;

/// How messages about `torch.LongTensor(...)` and similar functions begin.
const LEGACY_SCHEMAS: &str = "Legacy Tensor Constructor only supports two schemas in TorchScript: \n'new(IntArrayRef size, *, Device? device=None)',\n'new(PyObject* data, *, Device? device=None)\n'";

impl Emitter<'_> {
    /// Chooses among functions by flags, which must be literals.
    pub(super) fn dispatched(
        &mut self,
        target: Sugared,
        args: &[Expr],
        keywords: &[Keyword],
        span: &Span,
    ) -> Result<Sugared> {
        let Sugared::Dispatch(module, dispatch) = target else { return Ok(target) };
        let mut chosen = 0;
        for (name, position) in dispatch.flags {
            let named = keywords.iter().find(|k| k.name.name == *name).map(|k| &k.value);
            let flag = match named.or_else(|| args.get(*position)) {
                None => false,
                Some(Expr { kind: ExprKind::Bool(flag), .. }) => *flag,
                Some(given) if self.is_true_constant(given)?.is_some() => {
                    self.is_true_constant(given)?.unwrap_or_default()
                }
                Some(_) => {
                    let message = match named {
                        Some(_) => {
                            format!(
                                "Keyword argument '{name}' for boolean dispatch at position was not constant"
                            )
                        }
                        None => {
                            format!("Argument for boolean dispatch at position {position} was not constant")
                        }
                    };
                    return error(span, message);
                }
            };
            chosen = 2 * chosen + usize::from(flag);
        }
        match self.unit.python_function(module, dispatch.functions[chosen])? {
            Some(function) => Ok(Sugared::Function(function)),
            None => Ok(Sugared::Builtin(Symbol::new(&format!("aten::{}", dispatch.functions[chosen])), None)),
        }
    }

    /// The truth value of a constant that the program around the text has, such as one of a module.
    fn is_true_constant(&mut self, expr: &Expr) -> Result<Option<bool>> {
        if !self.unit.is_hosted(&expr.span)
            || !matches!(expr.kind, ExprKind::Name(_) | ExprKind::Attribute { .. })
        {
            return Ok(None);
        }
        Ok(match self.sugared(expr, None)? {
            Sugared::Constant(_, Attr::Bool(flag)) => Some(flag),
            Sugared::Constant(ty, Attr::Int(flag)) if ty == Type::bool() => Some(flag != 0),
            _ => None,
        })
    }

    /// `torch._check(cond, message)`: an assertion.
    pub(super) fn call_check(&mut self, call: &Call<'_>) -> Result<Sugared> {
        let span = &call.callee.span;
        let count = call.args.len() + call.keywords.len();
        if count == 0 || count > 2 {
            return error(span, format!("torch._check() expects 1 or 2 arguments, got {count}"));
        }
        let mut parts = [call.args.first(), call.args.get(1)];
        for keyword in call.keywords {
            let name = keyword.name.name.as_str();
            let Some(at) = ["cond", "message"].iter().position(|n| *n == name) else {
                return error(span, format!("torch._check() got unexpected keyword argument '{name}'"));
            };
            if parts[at].replace(&keyword.value).is_some() {
                return error(span, format!("torch._check() got multiple values for argument '{name}'"));
            }
        }
        let [Some(cond), message] = parts else {
            return error(span, "torch._check() missing required argument 'cond'");
        };
        self.assert_statement(cond, message, call.span)?;
        Ok(Sugared::Nothing)
    }

    /// `torch.LongTensor(data)` or `torch.LongTensor(sizes...)`.
    pub(super) fn call_legacy(&mut self, dtype: DType, call: &Call<'_>) -> Result<Sugared> {
        let span = &call.callee.span;
        if let Some(keyword) = call.keywords.first() {
            return error(call.span, format!("{LEGACY_SCHEMAS}Got kwarg {}", keyword.name.name));
        }
        let values = self.values(call.args)?;
        let code = self.int(dtype.code(), span);
        let all_ints = values.iter().all(|v| *self.ty(*v) == Type::int());
        let (op, what) = match values.as_slice() {
            [] => {
                let none =
                    self.emit_value(Symbol::new("prim::ListConstruct"), &[], Type::list(Type::int()), span);
                ("aten::tensor", none)
            }
            sizes if all_ints => {
                let ty = Type::list(Type::int());
                ("aten::empty", self.emit_value(Symbol::new("prim::ListConstruct"), sizes, ty, span))
            }
            [data] => ("aten::tensor", *data),
            _ => {
                return error(
                    call.span,
                    format!("{LEGACY_SCHEMAS}Got multiple positional arguments that were not all integers"),
                );
            }
        };
        self.builtin_named(Symbol::new(op), &[what], &[("dtype", code)], span).map(Sugared::Value)
    }
}
