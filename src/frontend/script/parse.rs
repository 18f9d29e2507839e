//! The way from a source to its tree, and what is said when there is none: PyTorch's message for the
//! first token that cannot stand where it stands.

use super::ast::{Expr, Module};
use super::expr::{Builder, lost};
use super::grammar::{Grammar, Rule};
use super::layout::{Form, Layout, MAX_NESTING, too_deep};
use super::literal;
use super::token::Kind;
use crate::diag::{Diagnostic, Result, Source};
use pest::Parser;
use pest::error::{Error, ErrorVariant, InputLocation};
use pest::iterators::Pair;
use std::sync::Arc;

/// Parses text as `torch.jit.CompilationUnit` takes it: functions and nothing else.
///
/// # Errors
/// [`crate::diag::ErrorKind::Syntax`] with PyTorch's message for a token that is not expected;
/// `Compile` for text that PyTorch's parser refuses for other reasons; `Unsupported` for trees deeper
/// than [`super::ast::MAX_DEPTH`].
pub fn parse_module(source: &Arc<Source>) -> Result<Module> {
    parse(source, Form::TorchScript, Rule::unit, |builder, unit| builder.module(unit))
}

/// Parses functions as Python writes them: as [`parse_module`], with several statements on one line where Python allows that.
///
/// # Errors
/// As [`parse_module`].
pub fn parse_python(source: &Arc<Source>) -> Result<Module> {
    parse(source, Form::Python, Rule::unit, |builder, unit| builder.module(unit))
}

/// Parses a code file of an archive (`code/__torch__/....py`): classes, functions, imports (which mean
/// nothing and are dropped).
///
/// # Errors
/// As [`parse_module`].
pub fn parse_library(source: &Arc<Source>) -> Result<Module> {
    parse(source, Form::TorchScript, Rule::library, |builder, library| builder.module(library))
}

/// Parses one expression, which must be the whole text.
///
/// # Errors
/// As [`parse_module`].
pub fn parse_expr(source: &Arc<Source>) -> Result<Expr> {
    parse(source, Form::TorchScript, Rule::single, |builder, single| {
        let expr = single.into_inner().next().ok_or_else(|| lost("expression"))?;
        builder.expr(expr)
    })
}

/// Parses a type (`Dict[str, Optional[Tensor]]`, `int | None`), which is written as an expression.
///
/// # Errors
/// As [`parse_module`].
pub fn parse_type(source: &Arc<Source>) -> Result<Expr> {
    parse_expr(source)
}

/// Stack that one level of nesting may take, in an unoptimized build; each token opens one at most.
const STACK_PER_LEVEL: usize = 24 << 10;
/// Stack that the deepest text allowed may take, and stack to add where less is left.
const STACK_NEEDED: usize = 14 << 20;
const STACK_ADDED: usize = 16 << 20;

fn parse<T>(
    source: &Arc<Source>,
    form: Form,
    entry: Rule,
    build: impl FnOnce(&Builder<'_>, Pair<'_, Rule>) -> Result<T>,
) -> Result<T> {
    let layout = Layout::new(source, form)?;
    let needed = STACK_NEEDED.min((layout.tokens().len() + 4) * STACK_PER_LEVEL);
    stacker::maybe_grow(needed, STACK_ADDED, || {
        let pair = read(&layout, entry)?;
        build(&Builder::new(&layout), pair)
    })
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
        ("newline" | ")" | "]", Kind::Ident)
            if text.starts_with('_') && text.ends_with(|c: char| c.is_ascii_digit()) =>
        {
            "TorchScript text has no underscores in numbers"
        }
        ("else", Kind::Fixed("]" | "}")) => "comprehensions have no `if`",
        (":", Kind::Fixed("," | "}")) => "TorchScript has no set literals",
        ("def", _) if matches!(text, "import" | "from") => {
            "only functions are allowed at the top level; what torch, math and typing name is known without an import"
        }
        ("def", _) => "only functions are allowed at the top level",
        _ => return None,
    })
}
