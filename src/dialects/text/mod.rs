//! Dialects as text: a file declares ops, types and attributes, which become the same rows as built-in ones. This
//! module reads the file and builds rows; whether a meaning compiles is asked by `frontend::dialect`, which loads.

mod declared;
mod parse;

use super::{Effects, Family, OpDef, Registry, composite, control};
use crate::diag::{Diagnostic, Result, Source};
use std::sync::Arc;

pub use declared::{DialectText, GradText, KEYWORDS, OpText};

/// Reads a dialect file. The error names the line and what was expected there.
pub fn parse_dialect(source: &Arc<Source>) -> Result<DialectText> {
    parse::parse(source)
}

impl Registry {
    /// Adds a dialect's rows, or none of them: the error says which line is wrong. Rows live as long as the process.
    pub fn with_dialect(&self, dialect: &DialectText) -> Result<Registry> {
        let mut registry = self.clone();
        for op in &dialect.ops {
            let def = op.to_row();
            registry.add(def);
            let added = registry.overloads(op.name().into()).iter().find(|o| o.schema_text() == op.schema);
            let schema = match added.map(|o| o.schema()) {
                Some(Ok(schema)) => schema.clone(),
                Some(Err(error)) => {
                    let message = format!("not a schema: {}", error.message());
                    return Err(Diagnostic::syntax(message).at(&op.span));
                }
                None => return Err(Diagnostic::internal("an op was not added").at(&op.span)),
            };
            let same = |other: &&super::Op| other.schema().is_ok_and(|s| s.overload == schema.overload);
            if registry.overloads(schema.name).iter().filter(same).count() > 1 {
                let message = format!("{} is declared already", schema.qualified_name());
                return Err(Diagnostic::syntax(message)
                    .at(&op.span)
                    .hint("give the overload a name: `op dialect::name.overload(...)`"));
            }
        }
        registry.declare(&dialect.name, &dialect.types, &dialect.attributes);
        Ok(registry)
    }
}

impl OpText {
    /// The row. Its texts are kept for the rest of the process, as those of built-in rows are.
    fn to_row(&self) -> OpDef {
        let mut def = match &self.meaning {
            Some((text, _)) => composite(keep(&self.schema), keep(text)),
            None => control(keep(&self.schema)).effects(Effects::NONE),
        };
        if self.meaning.is_none() {
            def.family = Family::Opaque;
        }
        def.summary = keep(&self.summary);
        if !self.grad.is_empty() {
            let line = |grad: &GradText| format!("{}: {}", grad.argument, grad.formula);
            def.grad = Some(keep(&self.grad.iter().map(line).collect::<Vec<_>>().join("\n")));
        }
        def.facts = self.facts.clone().leak();
        def.laws = self.laws.clone().leak();
        def.effects = self.effects;
        def.tolerance = self.tolerance;
        def.inplace = self.inplace;
        def.out = self.out.as_deref().map(keep);
        def.declared = true;
        def
    }
}

fn keep(text: &str) -> &'static str {
    String::from(text).leak()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Fact;
    use crate::dialects::constraint::Law;

    fn read(text: &str) -> std::result::Result<DialectText, String> {
        parse_dialect(&Source::new("d", text)).map_err(|e| e.to_string())
    }

    const QUANT: &str = r#"
# A comment.
dialect quant "fake quantization, for study"

type fixed<bits: int where bits in {4, 8}, mode: str = "even"> "a number of few bits"
attribute rounding<mode: str>

op quant::snap(Tensor self, float step) -> Tensor {
    summary "round to the nearest multiple of step"
    meaning
        def snap(self: Tensor, step: float) -> Tensor:

            return torch.round(self / step) * step
    surrogate self: grad
    facts   idempotent
    traits  inplace, same_type
}
op quant::mark(Tensor(a!) self,
               *, str? name=None) -> ()   { effects writes_world }
op quant::scale(Tensor self) -> Tensor {
    attribute bits: int = 8 where bits >= 1 and bits <= 32
}
"#;

    #[test]
    fn a_file_is_read_whole() {
        let dialect = read(QUANT).expect("well formed");
        assert_eq!((dialect.name.as_str(), dialect.ops.len(), dialect.types.len()), ("quant", 3, 1));
        let snap = &dialect.ops[0];
        let (text, span) = snap.meaning.clone().expect("it has one");
        assert_eq!(
            text,
            "def snap(self: Tensor, step: float) -> Tensor:\n\n    return torch.round(self / step) * step\n"
        );
        assert_eq!(span.line_column().0, 11);
        assert_eq!((snap.grad[0].argument.as_str(), snap.grad[0].formula.as_str()), ("self", "grad"));
        assert!(snap.grad[0].surrogate && snap.grad[0].span.line_column().0 == 14);
        assert!(snap.inplace && snap.facts == [Fact::Idempotent] && snap.laws == [Law::SameType]);
        assert_eq!(dialect.ops[1].effects, Effects::WRITES_WORLD);
        assert_eq!(dialect.ops[1].schema, "quant::mark(Tensor(a!) self, *, str? name=None) -> ()");
        let registry = Registry::with_builtins().with_dialect(&dialect).expect("it loads");
        assert!(registry.find("quant::snap_", "").is_some(), "in place");
        assert!(registry.has_dialect("quant"));
    }

    #[test]
    fn faults_name_the_line_and_what_was_expected() {
        for (text, part) in [
            ("op q::f() -> ()", "expected `dialect NAME`"),
            ("dialect q\nop q::f( -> ()", "2:"),
            ("dialect q\nop f() -> ()", "expected a schema"),
            ("dialect q\nop r::f() -> ()", "op r::f is not of the dialect 'q'"),
            ("dialect q\nop q::f() -> () {\n  sumary \"x\"\n}", "(d:3:"),
            ("dialect q\nop q::f() -> () {\n  facts oddd\n}", "did you mean 'odd'?"),
            ("dialect q\nop q::f() -> () {\n  effects writes_wold\n}", "did you mean 'writes_world'?"),
            ("dialect q\ntype t<x: into>", "there is no kind of parameter 'into'"),
            ("dialect q\ntype t<x: int where y > 1>", "the condition speaks of 'y'"),
            ("dialect q\ntype t<x: int = \"a\">", "the default of 'x' must be int, not \"a\""),
            (
                "dialect q\ntype t<x: int = 7 where x in {4, 8}>",
                "the default of 'x' must be in {4, 8}, not 7",
            ),
            ("dialect q\ntype t<x: int where x in {4, \"a\"}>", "each value of 'x' must be"),
            ("dialect q\ntype t<x: str where x > 1>", "only numbers are compared"),
            ("dialect q\ntype t<x: int = 99999999999999999999>", "is too large"),
            ("dialect q\ntype t<x: int, x: str>", "'x' is declared twice"),
            ("dialect q\ntype t\ntype t<x: int>", "(d:3:"),
            ("dialect q\nattribute a\nattribute a", "'q.a' is declared twice"),
            ("dialect q\nop q::f() -> () {\n  attribute n: int\n  attribute n: str\n}", "(d:4:"),
            ("dialect q\ntype num\nop q::f(q.nun x) -> ()", "the dialect declares no type 'q.nun'"),
            (
                "dialect q\nop q::f() -> () {\n  attribute n: q.how\n}",
                "the dialect declares no attribute 'q.how'",
            ),
            ("dialect q\nop q::f() -> ()\nop q::f() -> ()", "declared already"),
            ("dialect q\nop q::f(Tensr x) -> ()", "(d:2:"),
        ] {
            let result = read(text).and_then(|d| {
                Registry::with_builtins().with_dialect(&d).map(|_| ()).map_err(|e| e.to_string())
            });
            let error = result.expect_err(text);
            assert!(error.contains(part), "{text}\n{error}");
        }
    }

    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn changed_files_are_read_or_refused(
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0..3usize, any::<char>()), 0..8),
        ) {
            let mut text: Vec<char> = QUANT.chars().collect();
            for (at, kind, c) in edits {
                let at = at.index(text.len());
                match kind {
                    0 => drop(text.remove(at)),
                    1 => text.insert(at, c),
                    _ => text[at] = ['(', ')', '{', '}', '<', '\n', ' ', '"', ':'][c as usize % 9],
                }
            }
            let text: String = text.into_iter().collect();
            if let Ok(dialect) = parse_dialect(&Source::new("d", text)) {
                let _ = Registry::with_builtins().with_dialect(&dialect);
            }
        }
    }
}
