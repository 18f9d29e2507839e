//! From the grammar's pairs to expressions: operators by precedence, literals by value, and for each
//! node the source range that PyTorch gives it.

use super::ast::{BinaryOp, Expr, ExprKind, Ident, Keyword, MAX_DEPTH, UnaryOp};
use super::grammar::Rule;
use super::layout::{Layout, Token, too_deep};
use super::literal;
use super::token::Kind;
use crate::diag::{Diagnostic, Result, Span};
use pest::iterators::{Pair, Pairs};
use std::cell::Cell;
use std::iter::Peekable;

/// Bytes of the source: where a node begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    start: usize,
    end: usize,
}

impl Extent {
    /// The smallest extent over this and others. PyTorch's ranges all come about so: a node covers its
    /// own token and its children.
    pub(super) fn over(self, others: impl IntoIterator<Item = Extent>) -> Extent {
        others.into_iter().fold(self, |all, other| Extent {
            start: all.start.min(other.start),
            end: all.end.max(other.end),
        })
    }
}

impl From<Token> for Extent {
    fn from(token: Token) -> Extent {
        Extent { start: token.start as usize, end: token.end as usize }
    }
}

impl From<&Span> for Extent {
    fn from(span: &Span) -> Extent {
        Extent { start: span.start(), end: span.end() }
    }
}

impl From<&Expr> for Extent {
    fn from(expr: &Expr) -> Extent {
        Extent::from(&expr.span)
    }
}

/// The extents of expressions.
pub(super) fn extents(expressions: &[Expr]) -> impl Iterator<Item = Extent> {
    expressions.iter().map(Extent::from)
}

/// Builds the tree; holds what leads from pairs back to the source.
pub(super) struct Builder<'l> {
    pub(super) layout: &'l Layout,
    /// Calls of [`Builder::climb`] inside each other.
    depth: Cell<usize>,
}

/// The operators after which an operand may still take operators, by how tightly they bind: an operand
/// takes those above its own operator's level.
fn infix(sign: &str) -> Option<(u8, BinaryOp)> {
    use BinaryOp::*;
    Some(match sign {
        "and" => (2, And),
        "or" => (2, Or),
        "in" | "not_in" => (4, In),
        "is" => (4, Is),
        "is_not" => (4, IsNot),
        "==" => (4, Eq),
        "!=" => (4, Ne),
        "<" => (4, Lt),
        "<=" => (4, Le),
        ">" => (4, Gt),
        ">=" => (4, Ge),
        "|" => (5, BitOr),
        "^" => (6, BitXor),
        "&" => (7, BitAnd),
        "<<" => (8, Shl),
        ">>" => (8, Shr),
        "+" => (9, Add),
        "-" => (9, Sub),
        "*" => (10, Mul),
        "/" => (10, Div),
        "//" => (10, FloorDiv),
        "%" => (10, Mod),
        "@" => (10, MatMul),
        "**" => (POWER, Pow),
        _ => return None,
    })
}

/// The operator of an assignment sign such as `+=`.
pub(super) fn augmented(sign: &str) -> Option<BinaryOp> {
    infix(sign.strip_suffix('=')?).map(|(_, op)| op)
}

/// Level of `if ... else` and `for ... in`.
const LOOSEST: u8 = 1;
/// Level of `**`, which alone groups from the right.
const POWER: u8 = 11;

fn prefix(sign: &str) -> u8 {
    match sign {
        "not" | "~" => 3,
        _ => 10,
    }
}

impl<'l> Builder<'l> {
    pub(super) fn new(layout: &'l Layout) -> Self {
        Builder { layout, depth: Cell::new(0) }
    }

    /// The first token of a pair.
    pub(super) fn first(&self, pair: &Pair<'_, Rule>) -> Token {
        self.layout.token(self.layout.index_at(pair.as_span().start()))
    }

    /// The token after a pair.
    pub(super) fn next(&self, pair: &Pair<'_, Rule>) -> Token {
        self.layout.token(self.layout.index_at(pair.as_span().end()))
    }

    /// The last token of a pair.
    fn last(&self, pair: &Pair<'_, Rule>) -> Token {
        self.layout.token(self.layout.index_at(pair.as_span().end()).saturating_sub(1))
    }

    pub(super) fn span(&self, extent: Extent) -> Span {
        Span::new(self.layout.source(), extent.start, extent.end)
    }

    /// A node over its own extent and its children's.
    fn node(&self, kind: ExprKind, own: impl Into<Extent>, children: &[Extent]) -> Result<Expr> {
        Expr::new(kind, self.span(own.into().over(children.iter().copied())))
    }

    pub(super) fn ident(&self, pair: &Pair<'_, Rule>) -> Ident {
        let token = self.first(pair);
        Ident { name: self.layout.text_of(token).to_string(), span: self.layout.span(token) }
    }

    /// An `expr` or a `target`.
    pub(super) fn expr(&self, pair: Pair<'_, Rule>) -> Result<Expr> {
        self.climb(&mut pair.into_inner().peekable(), 0)
    }

    /// The expressions among the children of a pair.
    pub(super) fn exprs(&self, pair: Pair<'_, Rule>) -> Result<Vec<Expr>> {
        let is_expr = |p: &Pair<'_, Rule>| matches!(p.as_rule(), Rule::expr | Rule::target);
        pair.into_inner().filter(is_expr).map(|p| self.expr(p)).collect()
    }

    /// One expression, or a tuple where there are commas.
    pub(super) fn values(&self, pair: Pair<'_, Rule>) -> Result<Expr> {
        let has_comma = self.last(&pair).kind == Kind::Fixed(",");
        let mut elements = self.exprs(pair)?;
        if elements.len() == 1 && !has_comma {
            return elements.pop().ok_or_else(|| lost("value"));
        }
        let own = elements.first().map(Extent::from).ok_or_else(|| lost("value"))?;
        let parts: Vec<Extent> = extents(&elements).collect();
        self.node(ExprKind::Tuple(elements), own, &parts)
    }

    /// An operand and all operators after it that bind more tightly than `level`.
    fn climb(&self, parts: &mut Peekable<Pairs<'_, Rule>>, level: u8) -> Result<Expr> {
        self.depth.set(self.depth.get() + 1);
        if self.depth.get() > MAX_DEPTH {
            let here = parts.peek().map(|p| self.layout.span(self.first(p)));
            return Err(too_deep("expressions", MAX_DEPTH).at_opt(here.as_ref()));
        }
        let mut left = self.operand(parts)?;
        while let Some(next) = parts.next_if(|p| self.binds(p) > level) {
            left = match next.as_rule() {
                Rule::comp_for => self.comprehension(left, next)?,
                Rule::ternary => self.ternary(left, next, parts)?,
                _ => self.binary(left, &next, parts)?,
            };
        }
        self.depth.set(self.depth.get() - 1);
        Ok(left)
    }

    /// How tightly an operator after an operand binds; 0 for anything else.
    fn binds(&self, pair: &Pair<'_, Rule>) -> u8 {
        match pair.as_rule() {
            Rule::comp_for | Rule::ternary => LOOSEST,
            Rule::infix | Rule::compare | Rule::tight => {
                infix(pair.as_str().trim_end()).map_or(0, |(level, _)| level)
            }
            _ => 0,
        }
    }

    fn operand(&self, parts: &mut Peekable<Pairs<'_, Rule>>) -> Result<Expr> {
        let part = parts.next().ok_or_else(|| lost("operand"))?;
        if !matches!(part.as_rule(), Rule::prefix | Rule::tight_prefix | Rule::loose_prefix) {
            return self.primary(part);
        }
        let sign = part.as_str().trim_end();
        let operand = self.climb(parts, prefix(sign))?;
        let extent = Extent::from(&operand);
        let operand = match (sign, operand) {
            ("-", Expr { kind: ExprKind::Number(number), span, .. }) => {
                let negated = literal::negate(number, span.text());
                return Expr::new(ExprKind::Number(negated), span);
            }
            (_, operand) => Box::new(operand),
        };
        let kind = match sign {
            "-" => ExprKind::Unary { op: UnaryOp::Neg, operand },
            "~" => ExprKind::Unary { op: UnaryOp::BitNot, operand },
            "not" => ExprKind::Unary { op: UnaryOp::Not, operand },
            _ => ExprKind::Starred(operand),
        };
        self.node(kind, self.first(&part), &[extent])
    }

    fn binary(
        &self,
        left: Expr,
        pair: &Pair<'_, Rule>,
        parts: &mut Peekable<Pairs<'_, Rule>>,
    ) -> Result<Expr> {
        let sign = pair.as_str().trim_end();
        let (level, op) = infix(sign).ok_or_else(|| lost("operator"))?;
        let right = self.climb(parts, if level == POWER { level - 1 } else { level })?;
        let own = self.first(pair);
        let sides = [Extent::from(&left), Extent::from(&right)];
        let kind = ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) };
        let node = self.node(kind, own, &sides)?;
        if sign != "not_in" {
            return Ok(node);
        }
        self.node(ExprKind::Unary { op: UnaryOp::Not, operand: Box::new(node) }, own, &sides)
    }

    fn ternary(
        &self,
        then: Expr,
        pair: Pair<'_, Rule>,
        parts: &mut Peekable<Pairs<'_, Rule>>,
    ) -> Result<Expr> {
        let own = self.first(&pair);
        let cond = self.exprs(pair)?.pop().ok_or_else(|| lost("condition"))?;
        let otherwise = self.climb(parts, LOOSEST - 1)?;
        let children = [Extent::from(&cond), Extent::from(&then), Extent::from(&otherwise)];
        let [cond, then, otherwise] = [cond, then, otherwise].map(Box::new);
        self.node(ExprKind::Ternary { cond, then, otherwise }, own, &children)
    }

    fn comprehension(&self, element: Expr, pair: Pair<'_, Rule>) -> Result<Expr> {
        let own = self.first(&pair);
        let mut parts = self.exprs(pair)?.into_iter();
        let (Some(target), Some(iter)) = (parts.next(), parts.next()) else {
            return Err(lost("comprehension"));
        };
        let children = [Extent::from(&element), Extent::from(&target), Extent::from(&iter)];
        let [element, target, iter] = [element, target, iter].map(Box::new);
        self.node(ExprKind::ListComp { element, target, iter }, own, &children)
    }

    /// An atom and what is attached to it.
    fn primary(&self, pair: Pair<'_, Rule>) -> Result<Expr> {
        let mut parts = pair.into_inner();
        let mut expr = self.atom(parts.next().ok_or_else(|| lost("atom"))?)?;
        for part in parts {
            expr = match part.as_rule() {
                Rule::attribute => self.attribute(expr, part)?,
                Rule::call => self.call(expr, part)?,
                _ => self.subscript(expr, part)?,
            };
        }
        Ok(expr)
    }

    fn atom(&self, pair: Pair<'_, Rule>) -> Result<Expr> {
        let token = self.first(&pair);
        let text = self.layout.text_of(token);
        let kind = match pair.as_rule() {
            Rule::ident => ExprKind::Name(text.to_string()),
            Rule::number => ExprKind::Number(literal::number(text)),
            Rule::strings => ExprKind::Str(self.string(pair)?),
            Rule::paren => return self.paren(pair),
            Rule::list => return self.list(pair),
            Rule::dict => return self.dict(pair),
            _ => match token.kind {
                Kind::Fixed("True") => ExprKind::Bool(true),
                Kind::Fixed("False") => ExprKind::Bool(false),
                Kind::Fixed("None") => ExprKind::None,
                Kind::Fixed("NoneType") => ExprKind::NoneType,
                Kind::Fixed("..." | "Ellipsis") => ExprKind::Dots,
                _ => return Err(lost("atom")),
            },
        };
        self.node(kind, token, &[])
    }

    /// Adjacent strings, joined.
    fn string(&self, pair: Pair<'_, Rule>) -> Result<String> {
        let span = self.layout.span(self.first(&pair));
        let mut bytes = Vec::new();
        for part in pair.into_inner() {
            let token = self.first(&part);
            literal::unquote(self.layout.text_of(token), &self.layout.span(token), &mut bytes)?;
        }
        String::from_utf8(bytes)
            .map_err(|_| Diagnostic::unsupported("string that is not valid UTF-8").at(&span))
    }

    fn paren(&self, pair: Pair<'_, Rule>) -> Result<Expr> {
        let next = self.next(&pair);
        match pair.into_inner().next() {
            Some(values) if values.as_rule() == Rule::values => self.values(values),
            // PyTorch gives the empty tuple the place of the token after it.
            _ => self.node(ExprKind::Tuple(Vec::new()), next, &[]),
        }
    }

    fn list(&self, pair: Pair<'_, Rule>) -> Result<Expr> {
        let own = self.first(&pair);
        let mut elements = self.exprs(pair)?;
        let comprehensions = elements.iter().filter(|e| matches!(e.kind, ExprKind::ListComp { .. })).count();
        if comprehensions == 1 && elements.len() == 1 {
            return elements.pop().ok_or_else(|| lost("comprehension"));
        }
        let parts: Vec<Extent> = extents(&elements).collect();
        if comprehensions > 0 {
            let span = self.span(Extent::from(own).over(parts));
            let message = " expected a single list comprehension within '[' , ']'";
            return Err(Diagnostic::compile(message).at(&span));
        }
        self.node(ExprKind::List(elements), own, &parts)
    }

    fn dict(&self, pair: Pair<'_, Rule>) -> Result<Expr> {
        // PyTorch begins with the token after the brace.
        let own = self.layout.token(self.layout.index_at(pair.as_span().start()) + 1);
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (index, expr) in self.exprs(pair)?.into_iter().enumerate() {
            if index % 2 == 0 { keys.push(expr) } else { values.push(expr) }
        }
        let parts: Vec<Extent> = extents(&keys).chain(extents(&values)).collect();
        let kind = match (keys.pop(), values.pop()) {
            (Some(key), Some(Expr { kind: ExprKind::ListComp { element, target, iter }, .. }))
                if keys.is_empty() =>
            {
                ExprKind::DictComp { key: Box::new(key), value: element, target, iter }
            }
            (key, value) => {
                keys.extend(key);
                values.extend(value);
                ExprKind::Dict { keys, values }
            }
        };
        self.node(kind, own, &parts)
    }

    fn attribute(&self, value: Expr, pair: Pair<'_, Rule>) -> Result<Expr> {
        let name = pair.into_inner().next().ok_or_else(|| lost("attribute"))?;
        let name = self.ident(&name);
        let (own, child) = (Extent::from(&name.span), Extent::from(&value));
        self.node(ExprKind::Attribute { value: Box::new(value), name }, own, &[child])
    }

    fn call(&self, callee: Expr, pair: Pair<'_, Rule>) -> Result<Expr> {
        let own = Extent::from(self.first(&pair));
        let (mut args, mut keywords) = (Vec::new(), Vec::new());
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::expr => args.push(self.expr(part)?),
                Rule::keyword => keywords.push(self.keyword(part)?),
                _ => {}
            }
        }
        let args_extent = own.over(extents(&args));
        let named = own.over(keywords.iter().map(|k| Extent::from(&k.span)));
        let children = [Extent::from(&callee), args_extent, named];
        let args_span = self.span(args_extent);
        self.node(ExprKind::Call { callee: Box::new(callee), args, keywords, args_span }, own, &children)
    }

    fn keyword(&self, pair: Pair<'_, Rule>) -> Result<Keyword> {
        let mut parts = pair.into_inner();
        let (Some(name), Some(value)) = (parts.next(), parts.next()) else {
            return Err(lost("keyword"));
        };
        let (name, value) = (self.ident(&name), self.expr(value)?);
        let span = self.span(Extent::from(&name.span).over([Extent::from(&value)]));
        Ok(Keyword { name, value, span })
    }

    fn subscript(&self, value: Expr, pair: Pair<'_, Rule>) -> Result<Expr> {
        let open = self.first(&pair);
        let mut indices = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::index => indices.push(self.index(part)?),
                Rule::slice => {
                    let own = self.first(&part).into();
                    indices.push(self.slice(None, own, part)?);
                }
                _ => {}
            }
        }
        let list = Extent::from(open).over(extents(&indices));
        // PyTorch takes the closing bracket to follow the last index at once.
        let whole = Extent { start: list.start, end: list.end + 1 };
        let child = Extent::from(&value);
        let indices_span = self.span(list);
        self.node(ExprKind::Subscript { value: Box::new(value), indices, indices_span }, whole, &[child])
    }

    /// An index that begins with an expression.
    fn index(&self, pair: Pair<'_, Rule>) -> Result<Expr> {
        let own = Extent::from(self.first(&pair));
        let mut parts = pair.into_inner();
        let start = self.expr(parts.next().ok_or_else(|| lost("index"))?)?;
        match parts.next() {
            Some(slice) => self.slice(Some(start), own, slice),
            None => Ok(start),
        }
    }

    /// A slice from its first colon on; `own` is the first token of the whole.
    fn slice(&self, start: Option<Expr>, own: Extent, pair: Pair<'_, Rule>) -> Result<Expr> {
        let (mut stop, mut step) = (None, None);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::expr => stop = Some(self.expr(part)?),
                _ => step = self.exprs(part)?.pop(),
            }
        }
        let children: Vec<Extent> = [&start, &stop, &step].into_iter().flatten().map(Extent::from).collect();
        let [start, stop, step] = [start, stop, step].map(|e| e.map(Box::new));
        self.node(ExprKind::Slice { start, stop, step }, own, &children)
    }
}

/// The grammar promises a part that is not there.
pub(super) fn lost(part: &str) -> Diagnostic {
    Diagnostic::internal(format!("script parser: the grammar gave no {part}"))
}
