//! Loads dialects from text: reads the file, adds its rows to a copy of the registry, and compiles every meaning over
//! that copy. Either all of a file becomes known or nothing does. What a meaning does is compared with what its op declares
//! (`effects`).

mod effects;

use super::script::compile_source;
use crate::diag::{Diagnostic, Result, Source, Span};
use crate::dialects::Registry;
use crate::dialects::constraint::Law;
use crate::dialects::text::{GradText, OpText, parse_dialect};
use crate::ir::{Attr, Function, Module, Type, TypeKind};
use std::sync::Arc;

/// A registry with the ops of `base` and those of a dialect file.
pub fn load(base: &Registry, source: &Arc<Source>) -> Result<Arc<Registry>> {
    let dialect = parse_dialect(source)?;
    let registry = Arc::new(base.with_dialect(&dialect)?);
    for op in &dialect.ops {
        check_meaning(&registry, op)?;
        for grad in &op.grad {
            derivative(&registry, op, grad)?;
        }
    }
    Ok(registry)
}

/// The function that an op's meaning is: compiled, its only function taken. What it raises is an op's error, not one of a `raise`
/// statement: its class has no module.
pub fn meaning(registry: &Arc<Registry>, source: &Arc<Source>) -> Result<Function> {
    let module: Module = compile_source(registry, source)?;
    let function = match module.functions.len() {
        1 => module.functions.into_iter().next().map(|(_, f)| f),
        _ => None,
    };
    let mut function = function.ok_or_else(|| Diagnostic::compile("a meaning is exactly one function"))?;
    let graph = &mut function.graph;
    for op in graph.all_ops() {
        let class = graph.operand(op, 1).filter(|_| graph.kind(op) == "prim::RaiseException");
        let Some(class) = class.and_then(|value| graph.def_op(value)) else { continue };
        let plain =
            graph.attr(class, "value").and_then(Attr::as_str).and_then(|c| c.strip_prefix("builtins."));
        if let Some(plain) = plain.map(str::to_string) {
            graph.set_attr(class, "value", Attr::Str(plain.as_str().into()));
        }
    }
    Ok(function)
}

fn check_meaning(registry: &Arc<Registry>, op: &OpText) -> Result<()> {
    let Some((text, span)) = &op.meaning else { return Ok(()) };
    let (line, _) = span.line_column();
    let source = Source::starting_at(span.source().name(), text.as_str(), line);
    let function = meaning(registry, &source).map_err(|error| {
        let message = format!("the meaning of {} does not compile: {}", op.name(), error.message());
        let mut error = error.at(&Span::new(&source, 0, 0));
        error.report_mut().message = message;
        error.report_mut().frames.clear();
        error
    })?;
    let schema = crate::ir::parse_schema(&op.schema)?;
    let mut wanted: Vec<&str> = schema.arguments.iter().map(|a| a.name.as_str()).collect();
    wanted.extend(op.laws.iter().filter_map(|law| match law {
        Law::Attribute(parameter) => Some(parameter.name.as_str()),
        _ => None,
    }));
    let got: Vec<&str> = function.schema.arguments.iter().map(|a| a.name.as_str()).collect();
    if wanted != got {
        let message = format!(
            "the meaning of {} must take ({}), not ({})",
            op.name(),
            wanted.join(", "),
            got.join(", ")
        );
        let first =
            Span::new(span.source(), span.start(), span.start() + span.text().find('\n').unwrap_or(0));
        let error = Diagnostic::syntax(message).at(&first);
        return Err(error.hint("its parameters are the schema's arguments, then the attributes, in order"));
    }
    effects::audit(registry, op, &schema, &function.graph)
}

/// The derivative of an op by one of its arguments, compiled: a function of the op's arguments, its attributes, `grad`
/// (the gradient of the result) and `result`; for several results of `grads`, a list, and `result0`, `result1` and so on.
/// It gives what the argument is: a tensor, or a list of tensors.
pub fn derivative(registry: &Arc<Registry>, op: &OpText, grad: &GradText) -> Result<Function> {
    let schema = crate::ir::parse_schema(&op.schema)?;
    let name = &grad.argument;
    let fault = |message: String| Diagnostic::syntax(message).at(&grad.span);
    let Some(argument) = schema.arguments.iter().find(|a| a.name == name.as_str()) else {
        let error = fault(format!("{} has no argument '{name}' to differentiate by", op.name()));
        let known = schema.arguments.iter().map(|a| a.name.as_str());
        return Err(match crate::diag::nearest(name, known) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error,
        });
    };
    let gives = match argument.ty.kind() {
        TypeKind::Tensor(_) => "Tensor",
        TypeKind::Optional(inner) if inner.is_tensor() => "Tensor",
        TypeKind::List(inner) if inner.is_tensor() => "List[Tensor]",
        _ => {
            let message = format!("expected a tensor to differentiate by; '{name}' is {}", argument.ty);
            return Err(fault(message));
        }
    };
    if !schema.returns.iter().any(|r| r.ty.is_tensor()) {
        return Err(fault(format!("{} has no result that is a tensor, and so no derivative", op.name())));
    }
    let mut parameters = parameters(registry, op, &schema)?;
    if let [one] = schema.returns.as_slice() {
        parameters.push(("grad".into(), "Tensor".into()));
        parameters.push(("result".into(), annotation(&one.ty)));
    } else {
        parameters.push(("grads".into(), "List[Tensor]".into()));
        let all = schema.returns.iter().enumerate();
        parameters.extend(all.map(|(n, result)| (format!("result{n}"), annotation(&result.ty))));
    }
    let list: Vec<String> = parameters.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
    let text = format!("def derivative({}) -> {gives}:\n    return {}\n", list.join(", "), grad.formula);
    // The second line of the text is that of the formula.
    let line = grad.span.line_column().0.saturating_sub(1);
    let source = Source::starting_at(grad.span.source().name(), text, line);
    meaning(registry, &source).map_err(|error| {
        let message =
            format!("the derivative of {} by '{name}' does not compile: {}", op.name(), error.message());
        let mut error = error.at(&Span::new(&source, 0, 0));
        error.report_mut().message = message;
        error.report_mut().frames.clear();
        error
    })
}

/// Names and annotations of an op's arguments and attributes, as its meaning has them; where it has none, as the
/// schema says.
fn parameters(
    registry: &Arc<Registry>,
    op: &OpText,
    schema: &crate::ir::Schema,
) -> Result<Vec<(String, String)>> {
    if let Some((text, span)) = &op.meaning {
        let source = Source::new(span.source().name(), text.as_str());
        let function = meaning(registry, &source)?;
        let all = function.schema.arguments.iter();
        return Ok(all.map(|a| (a.name.to_string(), annotation(&a.ty))).collect());
    }
    let arguments = schema.arguments.iter().map(|a| (a.name.to_string(), annotation(&a.ty)));
    let attributes = op.laws.iter().filter_map(|law| match law {
        Law::Attribute(parameter) => {
            let ty = match parameter.kind.to_string().as_str() {
                "int[]" => "List[int]".to_string(),
                "float[]" => "List[float]".to_string(),
                "str[]" => "List[str]".to_string(),
                "tensor" => "Tensor".to_string(),
                word @ ("int" | "float" | "str" | "bool") => word.to_string(),
                _ => return None,
            };
            Some((parameter.name.to_string(), ty))
        }
        _ => None,
    });
    Ok(arguments.chain(attributes).collect())
}

/// A type as TorchScript source writes it; a number of any kind is a float there.
fn annotation(ty: &Type) -> String {
    match ty.kind() {
        TypeKind::Number => "float".to_string(),
        TypeKind::Tensor(_) => "Tensor".to_string(),
        _ => ty.annotation(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        load(&Registry::builtin(), &Source::new("q.dialect", text))
            .err()
            .map_or(String::new(), |e| e.to_string())
    }

    #[test]
    fn a_meaning_must_compile_and_take_the_arguments() {
        let op =
            |body: &str| format!("dialect q\nop q::f(Tensor x, int n) -> Tensor {{\n  meaning\n{body}\n}}\n");
        assert_eq!(error(&op("    def f(x: Tensor, n: int):\n        return x * n")), "");
        let text = error(&op("    def f(x: Tensor, n: int):\n        return y * n"));
        assert!(text.contains("undefined value y") && text.contains("q.dialect:5:"), "{text}");
        let text = error(&op("    def f(x: Tensor):\n        return x"));
        assert!(text.contains("must take (x, n), not (x)"), "{text}");
        let text = error("dialect q\nop q::f(Tensor x) -> Tensor {\n  grad y: grad\n}");
        assert!(text.contains("no argument 'y'"), "{text}");
    }

    #[test]
    fn a_derivative_compiles_over_the_arguments_and_gives_what_the_argument_is() {
        let op = |schema: &str, grad: &str| error(&format!("dialect q\nop {schema} {{\n  {grad}\n}}\n"));
        for (schema, grad) in [
            ("q::f(Tensor x, float s) -> Tensor", "grad x: grad * s * result"),
            ("q::f(Tensor x, Scalar s) -> Tensor", "surrogate x: grad * s"),
            ("q::f(Tensor? x) -> Tensor", "grad x: grad"),
            ("q::f(Tensor[] xs) -> Tensor", "grad xs: [grad, grad]"),
            ("q::f(Tensor x) -> (Tensor, Tensor)", "grad x: grads[0] * result1"),
            ("q::f(Tensor x) -> Tensor", "attribute n: int = 2\n  grad x: grad * n"),
        ] {
            assert_eq!(op(schema, grad), "", "{schema} {grad}");
        }
        for (schema, grad, part) in [
            ("q::f(Tensor x, float s) -> Tensor", "grad x: grad * t", "undefined value t"),
            (
                "q::f(Tensor x, float s) -> Tensor",
                "grad s: grad",
                "expected a tensor to differentiate by; 's' is float",
            ),
            ("q::f(Tensor x) -> int", "grad x: grad", "no result that is a tensor"),
            ("q::f(Tensor x) -> Tensor", "grad x: [grad]", "does not compile"),
            ("q::f(Tensor x) -> Tensor", "grad x: grad +", "does not compile"),
            ("q::f(Tensor input) -> Tensor", "grad imput: grad", "did you mean 'input'?"),
            ("q::f(Tensor x) -> Tensor", "grad x: grad\n  grad x: grad", "given twice"),
        ] {
            let text = op(schema, grad);
            assert!(text.contains(part) && text.contains("q.dialect:"), "{schema} {grad}: {text}");
        }
        let text = op("q::f(Tensor x) -> Tensor", "summary \"s\"\n  grad x: grad * t");
        assert!(text.contains("q.dialect:4:"), "{text}");
    }

    #[test]
    fn a_meaning_may_use_ops_of_its_own_file() {
        let text = "dialect q\nop q::g(Tensor x) -> Tensor {\n  meaning\n    def g(x: Tensor):\n        return torch.ops.q.f(x)\n}\nop q::f(Tensor x) -> Tensor {\n  meaning\n    def f(x: Tensor):\n        return x + 1\n}";
        assert_eq!(error(text), "");
    }
}
