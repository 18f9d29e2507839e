//! Loads dialects from text: reads the file, adds its rows to a copy of the registry, and compiles every meaning over
//! that copy. Either all of a file becomes known or nothing does.

use super::script::compile_source;
use crate::diag::{Diagnostic, Result, Source, Span};
use crate::dialects::Registry;
use crate::dialects::constraint::Law;
use crate::dialects::text::{OpText, parse_dialect};
use crate::ir::{Function, Module};
use std::sync::Arc;

/// A registry with the ops of `base` and those of a dialect file.
pub fn load(base: &Registry, source: &Arc<Source>) -> Result<Arc<Registry>> {
    let dialect = parse_dialect(source)?;
    let registry = Arc::new(base.with_dialect(&dialect)?);
    for op in &dialect.ops {
        check_meaning(&registry, op)?;
        check_grad(&registry, op)?;
    }
    Ok(registry)
}

/// The function that an op's meaning is: compiled, its only function taken.
pub fn meaning(registry: &Arc<Registry>, source: &Arc<Source>) -> Result<Function> {
    let module: Module = compile_source(registry, source)?;
    match module.functions.len() {
        1 => module.functions.into_iter().next().map(|(_, f)| f),
        _ => None,
    }
    .ok_or_else(|| Diagnostic::compile("a meaning is exactly one function"))
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
    Ok(())
}

/// A derivative names an argument.
fn check_grad(registry: &Registry, op: &OpText) -> Result<()> {
    let Some(row) = registry.overloads(op.name().into()).iter().find(|o| o.schema_text() == op.schema) else {
        return Ok(());
    };
    let schema = row.schema()?;
    for line in &op.grad {
        let name = line.split(':').next().unwrap_or("").trim();
        if schema.argument_index(name).is_none() {
            let message = format!("{} has no argument '{name}' to differentiate by", op.name());
            return Err(Diagnostic::syntax(message).at(&op.span));
        }
    }
    Ok(())
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
    fn a_meaning_may_use_ops_of_its_own_file() {
        let text = "dialect q\nop q::g(Tensor x) -> Tensor {\n  meaning\n    def g(x: Tensor):\n        return torch.ops.q.f(x)\n}\nop q::f(Tensor x) -> Tensor {\n  meaning\n    def f(x: Tensor):\n        return x + 1\n}";
        assert_eq!(error(text), "");
    }
}
