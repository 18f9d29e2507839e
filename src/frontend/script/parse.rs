//! The way from a source to its tree, and what is said when there is none: PyTorch's message for the
//! first token that cannot stand where it stands.

use super::ast::{Expr, Module};
use super::expr::{Builder, lost};
use super::layout::{Layout, MAX_NESTING, too_deep};
use super::literal;
use super::token::Kind;
use crate::diag::{Diagnostic, Result, Source};
use pest::Parser;
use pest::error::{Error, ErrorVariant, InputLocation};
use pest::iterators::Pair;
use std::sync::Arc;

/// What pest derives from grammar.pest.
#[derive(pest_derive::Parser)]
#[grammar = "frontend/script/grammar.pest"]
struct Grammar;

/// Parses text as `torch.jit.CompilationUnit` takes it: functions and nothing else.
///
/// # Errors
/// [`crate::diag::ErrorKind::Syntax`] with PyTorch's message for a token that is not expected;
/// `Compile` for text that PyTorch's parser refuses for other reasons; `Unsupported` for trees deeper
/// than [`super::ast::MAX_DEPTH`].
pub fn parse_module(source: &Arc<Source>) -> Result<Module> {
    let layout = Layout::new(source)?;
    let unit = read(&layout, Rule::unit)?;
    Builder::new(&layout).module(unit)
}

/// Parses a code file of an archive (`code/__torch__/....py`): classes, functions, imports (which mean
/// nothing and are dropped).
///
/// # Errors
/// As [`parse_module`].
pub fn parse_library(source: &Arc<Source>) -> Result<Module> {
    let layout = Layout::new(source)?;
    let library = read(&layout, Rule::library)?;
    Builder::new(&layout).module(library)
}

/// Parses one expression, which must be the whole text.
///
/// # Errors
/// As [`parse_module`].
pub fn parse_expr(source: &Arc<Source>) -> Result<Expr> {
    let layout = Layout::new(source)?;
    let single = read(&layout, Rule::single)?;
    let expr = single.into_inner().next().ok_or_else(|| lost("expression"))?;
    Builder::new(&layout).expr(expr)
}

/// Parses a type (`Dict[str, Optional[Tensor]]`, `int | None`), which is written as an expression.
///
/// # Errors
/// As [`parse_module`].
pub fn parse_type(source: &Arc<Source>) -> Result<Expr> {
    parse_expr(source)
}

fn read<'l>(layout: &'l Layout, rule: Rule) -> Result<Pair<'l, Rule>> {
    let mut pairs = Grammar::parse(rule, layout.text()).map_err(|error| explain(layout, rule, &error))?;
    pairs.next().ok_or_else(|| lost("text"))
}

/// PyTorch's message for the place at which the grammar stopped.
fn explain(layout: &Layout, entry: Rule, error: &Error<Rule>) -> Diagnostic {
    let offset = match error.location {
        InputLocation::Pos(offset) | InputLocation::Span((offset, _)) => offset,
    };
    let index = layout.index_at(offset);
    if let Err(earlier) = check_before(layout, entry, index) {
        return earlier;
    }
    let ErrorVariant::ParsingError { positives, .. } = &error.variant else {
        // pest found the native stack too small.
        return too_deep("expressions", MAX_NESTING);
    };
    let token = layout.token(index);
    if let (Kind::Bad, Some(failure)) = (token.kind, layout.failure()) {
        return failure.clone();
    }
    let span = layout.span(token);
    let found = token.kind.name();
    let wanted = expected(positives);
    if entry == Rule::library && wanted == "def" {
        return Diagnostic::compile(format!("Unexpected token in code import: {found}")).at(&span);
    }
    let diagnostic = Diagnostic::syntax(format!("expected {wanted} but found '{found}' here")).at(&span);
    match hint(wanted, token.kind, layout.text_of(token)) {
        Some(hint) => diagnostic.hint(hint),
        None => diagnostic,
    }
}

/// What is wrong, though grammatical, before the token at which the grammar stopped: PyTorch would have
/// met it first. Looks at the statements that are complete, with their blocks closed, then at strings.
fn check_before(layout: &Layout, entry: Rule, index: usize) -> Result<()> {
    let complete = layout.before_last_line_of(index);
    if let Ok(mut pairs) = Grammar::parse(entry, &complete)
        && let Some(pair) = pairs.next()
    {
        Builder::new(layout).module(pair)?;
    }
    let before = layout.tokens().iter().take(index);
    for token in before.filter(|t| t.kind == Kind::Str) {
        literal::unquote(layout.text_of(*token), &layout.span(*token), &mut Vec::new())?;
    }
    Ok(())
}

/// What PyTorch names as expected where the grammar could have gone on with these rules. Where an
/// expression may begin it asks for a name; else for the one word that must come, whatever optional
/// ones may.
fn expected(rules: &[Rule]) -> &'static str {
    let begins_expression = |rule: &Rule| {
        use Rule::*;
        matches!(
            rule,
            ident
                | primary
                | prefix
                | tight_prefix
                | loose_prefix
                | expr
                | target
                | values
                | keyword
                | index
                | simple
                | param
                | paren
                | list
                | dict
                | strings
                | constant
                | body
                | single
                | with_item
        )
    };
    if rules.iter().any(begins_expression) {
        return "ident";
    }
    rules.iter().find_map(required).unwrap_or("newline")
}

fn required(rule: &Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::newline => "newline",
        Rule::indent => "indent",
        Rule::colon => ":",
        Rule::equals => "=",
        Rule::lparen => "(",
        Rule::rparen => ")",
        Rule::rbracket => "]",
        Rule::rbrace => "}",
        Rule::kw_in => "in",
        Rule::kw_else => "else",
        Rule::number => "number",
        Rule::def | Rule::class | Rule::unit | Rule::library => "def",
        _ => return None,
    })
}

/// Advice for what people write who know Python.
fn hint(wanted: &str, found: Kind, text: &str) -> Option<&'static str> {
    Some(match (wanted, found) {
        ("indent", _) => "the body of a block begins on a line of its own, indented",
        ("newline", Kind::Eof) => "end the text with a line break",
        ("newline", Kind::Str) => "TorchScript text has no f-, r- or b-strings",
        ("newline", Kind::Fixed("#type:")) => "write the type as an annotation: `name: Type = value`",
        ("newline" | ")" | "]", Kind::Ident) if text.starts_with('_') => {
            "TorchScript text has no underscores in numbers"
        }
        ("else", Kind::Fixed("]" | "}")) => "comprehensions have no `if`",
        (":", Kind::Fixed("," | "}")) => "TorchScript has no set literals",
        ("def", _) => "only functions stand at the top level",
        _ => return None,
    })
}

#[cfg(test)]
mod throwaway {
    use super::*;
    fn strip_file(s: &str) -> String {
        s.lines().filter(|l| !l.starts_with("  File \"<string>\"")).collect::<Vec<_>>().join("\n")
    }
    #[test]
    fn fuzz_tmp() {
        let s = std::fs::read_to_string("/tmp/scr/fz.json").unwrap();
        let v: Vec<(String, bool, String)> = serde_json::from_str(&s).unwrap();
        let (mut bad, mut asserts) = (0, 0);
        let total = v.len();
        for (t, ok, want) in v {
            let src = Source::new("<string>", t.as_str());
            let got = match parse_module(&src) {
                Ok(m) => (
                    true,
                    m.items
                        .first()
                        .map(|i| match i {
                            crate::frontend::script::ast::Item::Def(d) => d.to_string(),
                            _ => String::new(),
                        })
                        .unwrap_or_default(),
                ),
                Err(d) => (false, strip_file(&crate::diag::torch::render(&d))),
            };
            let re = regex::Regex::new(r"\(const [^)]*\)").unwrap();
            let want = re.replace_all(&want, "(const)").to_string();
            let got = (got.0, re.replace_all(&got.1, "(const)").to_string());
            let want_n = if ok { want.clone() } else { strip_file(&want) };
            if want_n.contains("INTERNAL ASSERT") {
                asserts += 1;
                if got.0 {
                    println!("ASSERT but ok: {t:?}");
                }
                continue;
            }
            let got_n = (
                got.0,
                if got.0 {
                    got.1
                        .split_whitespace()
                        .collect::<Vec<_>>()
                        .join(" ")
                        .replace(" )", ")")
                        .replace("( ", "(")
                } else {
                    got.1.clone()
                },
            );
            if got_n != (ok, want_n.clone()) {
                if want_n.contains("'not in'") || ok && got_n.1.starts_with("expected def") {
                    continue;
                }
                bad += 1;
                if bad <= 6 {
                    println!("---- {t}\n want {ok} {want_n}\n got  {} {}", got_n.0, got_n.1);
                }
            }
        }
        println!("bad {bad} of {total}, asserts {asserts}");
    }
}

#[cfg(test)]
mod throwaway_spans {
    use super::*;
    use crate::frontend::script::ast::*;
    #[test]
    fn span_tmp() {
        let s = std::fs::read_to_string("/tmp/scr/sp.json").unwrap();
        let v: Vec<(String, String)> = serde_json::from_str(&s).unwrap();
        let (mut bad, mut n) = (0, 0);
        for (t, want) in v {
            let src = Source::new("<string>", t.as_str());
            let m = match parse_module(&src) {
                Ok(m) => m,
                Err(e) => {
                    println!("REFUSED {t} {e}");
                    continue;
                }
            };
            let Item::Def(d) = &m.items[0] else { continue };
            let root = d.decl.params[0].annotation.as_ref().unwrap();
            let is = want.contains("cannot be used in a type") || want.contains("Unknown type constructor");
            if !is || matches!(root.kind, ExprKind::Binary { op: BinaryOp::BitOr, .. }) {
                continue;
            }
            let sub = matches!(root.kind, ExprKind::Subscript { .. });
            if sub && want.contains("cannot be used in a type") {
                continue;
            }
            n += 1;
            let got = crate::diag::torch::highlight(&root.span);
            if !want.ends_with(&got) {
                bad += 1;
                if bad < 8 {
                    println!("want {want}\n got {got}");
                }
            }
        }
        println!("spans bad {bad} of {n}");
    }
}
