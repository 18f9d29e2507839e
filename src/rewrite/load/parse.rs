//! From a rule file's text to rules.

use super::syntax::{
    Arithmetic, Arrow, Comparison, Condition, Contract, Expr, Literal, OpTerm, Rule, RuleTerm, TermKind,
};
use crate::diag::{Diagnostic, Result, Source, Span};
use crate::tensor::DType;
use hashbrown::HashMap;
use pest::Parser;
use pest::iterators::Pair;
use std::ops::Range;
use std::sync::Arc;

#[allow(missing_docs, reason = "pest names one variant a grammar rule")]
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "../../src/rewrite/load/rules.pest"]
    pub struct RuleParser;
}

use grammar::Rule as R;

/// Terms nested deeper are refused.
const MAX_DEPTH: usize = 64;
/// Terms of a right side, at most, with what `let` names in the places of the names.
const MAX_TERMS: usize = 4096;

/// Parses a rule file.
pub fn parse(source: &Arc<Source>) -> Result<Vec<Rule>> {
    // The grammar is read by a recursive parser; brackets bound how deep it goes.
    if let Some(at) = too_deep(source.text()) {
        let error = Diagnostic::syntax(format!("terms are nested more than {MAX_DEPTH} deep"));
        return Err(error.at(&Span::new(source, at, at + 1)));
    }
    let mut parsed = grammar::RuleParser::parse(R::file, source.text()).map_err(|e| syntax(source, 0, &e))?;
    let file = parsed.next().ok_or_else(|| Diagnostic::internal("the grammar gave nothing"))?;
    let reader = Reader { source, base: 0 };
    let mut rules: Vec<Rule> = Vec::new();
    for pair in file.into_inner() {
        match pair.as_rule() {
            R::rule => rules.push(reader.rule(pair, None)?),
            R::group => {
                let (mut name, mut directed) = (String::new(), false);
                for part in pair.into_inner() {
                    match part.as_rule() {
                        R::name => name = part.as_str().to_string(),
                        R::kw_directed => directed = true,
                        R::rule => rules.push(reader.rule(part, Some((name.clone(), directed)))?),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let mut names: HashMap<&str, &Rule> = HashMap::new();
    for rule in &rules {
        if let Some(first) = names.insert(&rule.name, rule) {
            let error = Diagnostic::compile(format!("two rules are called {}", rule.name));
            return Err(error.at(&rule.span).label(&first.span, "the first is here"));
        }
    }
    drop(names);
    Ok(rules)
}

/// Parses the one rule that begins a piece of a file. What is after it is left alone.
pub(super) fn parse_one(
    source: &Arc<Source>,
    range: Range<usize>,
    group: Option<(String, bool)>,
) -> Result<Rule> {
    let base = range.start;
    let text = source.text().get(range).unwrap_or_default();
    let mut parsed = grammar::RuleParser::parse(R::rule, text).map_err(|e| syntax(source, base, &e))?;
    let rule = parsed.next().ok_or_else(|| Diagnostic::internal("the grammar gave nothing"))?;
    Reader { source, base }.rule(rule, group)
}

fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Some(at);
        }
    }
    // Chains of `not` and of minus signs nest as well.
    let longest = text.split("not").map(|part| part.bytes().filter(|b| *b == b'-').count()).max();
    (text.matches("not not not not").count() > MAX_DEPTH || longest.is_some_and(|n| n > 100_000)).then_some(0)
}

/// What is wrong with a text that begins at `base` of a source.
fn syntax(source: &Arc<Source>, base: usize, error: &pest::error::Error<R>) -> Diagnostic {
    let (start, end) = match error.location {
        pest::error::InputLocation::Pos(at) => (base + at, base + at + 1),
        pest::error::InputLocation::Span((start, end)) => (base + start, base + end),
    };
    let wanted = match &error.variant {
        pest::error::ErrorVariant::ParsingError { positives, .. } => expected(positives),
        pest::error::ErrorVariant::CustomError { message } => message.clone(),
    };
    Diagnostic::syntax(format!("not a rule: {wanted}"))
        .at(&Span::new(source, start, end))
        .hint("a rule reads: rule NAME exact LEFT => RIGHT if CONDITION")
}

/// What may occur at a place, as text.
fn expected(rules: &[R]) -> String {
    let word = |wanted: &R| match wanted {
        R::EOI | R::rule | R::kw_rule => "`rule`",
        R::group | R::kw_group => "`group`",
        R::contract => "a contract: exact, nan-relaxed, fast-math or trusted",
        R::kw_directed => "`directed`",
        R::right | R::binding | R::kw_let => "a term",
        R::name => "a name",
        R::arrow => "`=>`",
        R::kw_if => "`if`",
        R::kw_and => "`and`",
        R::kw_or => "`or`",
        R::term | R::bound | R::rest | R::variable | R::op | R::list | R::compute | R::literal => "a term",
        R::argument | R::ident => "an argument",
        R::var => "a variable: ?x",
        R::kind | R::op_variable => "an op: dialect::op",
        R::op_class => "a class of ops: elementwise",
        R::ty => "a type",
        R::block => "a block",
        R::condition | R::all_of | R::one | R::test | R::nested | R::negated => "a condition",
        R::comparison | R::compare | R::member | R::kw_in => "a comparison or `in {...}`",
        R::add_sign | R::mul_sign => "arithmetic",
        R::expr | R::product | R::factor | R::atom | R::ints | R::function | R::u_int | R::u_float => {
            "a number, a variable or a function"
        }
        _ => "something else",
    };
    let mut words: Vec<&str> = rules.iter().map(word).collect();
    words.sort_unstable();
    words.dedup();
    words.retain(|word| *word != "something else" || rules.len() == 1);
    match words.as_slice() {
        [] => "something else is expected here".to_string(),
        [one] => format!("expected {one}"),
        [most @ .., last] => format!("expected {} or {last}", most.join(", ")),
    }
}

/// The comment lines that stand right above a place.
fn comment_above(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or("");
    let mut lines: Vec<&str> = Vec::new();
    // The last piece is what stands on the rule's own line before it.
    for line in before.lines().rev().skip(usize::from(!before.ends_with('\n') && !before.is_empty())) {
        match line.trim().strip_prefix('#') {
            Some(comment) => lines.push(comment.trim()),
            None => break,
        }
    }
    lines.reverse();
    lines.join(" ")
}

/// Where a term or condition stands between blanks and comments. A `#` inside of quotes begins no comment.
fn code_parts(text: &str) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let (mut quote, mut comment) = (None, false);
    for (at, c) in text.char_indices() {
        comment = (comment || c == '#' && quote.is_none()) && c != '\n';
        if comment || c.is_whitespace() && quote.is_none() {
            continue;
        }
        quote = match quote {
            None => (c == '"' || c == '\'').then_some(c),
            open => open.filter(|open| *open != c),
        };
        let end = at + c.len_utf8();
        match parts.last_mut() {
            Some(last) if last.end == at => last.end = end,
            _ => parts.push(at..end),
        }
    }
    parts
}

/// A piece of a rule file on one line, without its comments.
pub fn on_one_line(text: &str) -> String {
    code_parts(text).into_iter().map(|part| &text[part]).collect::<Vec<_>>().join(" ")
}

struct Reader<'a> {
    source: &'a Arc<Source>,
    /// Where the parsed text begins in the source.
    base: usize,
}

impl Reader<'_> {
    fn span(&self, pair: &Pair<'_, R>) -> Span {
        // A pair may end with the blanks and comments before what follows it.
        let end = code_parts(pair.as_str()).last().map_or(0, |part| part.end);
        let start = self.base + pair.as_span().start();
        Span::new(self.source, start, start + end)
    }

    fn rule(&self, pair: Pair<'_, R>, group: Option<(String, bool)>) -> Result<Rule> {
        // Names may hold quotes, so that the end of the last part decides where the rule ends.
        let last = pair.clone().into_inner().last().map_or_else(|| self.span(&pair), |part| self.span(&part));
        let start = self.base + pair.as_span().start();
        let span = Span::new(self.source, start, last.end());
        let doc = comment_above(self.source.text(), start);
        let (mut name, mut contract, mut arrow) = (String::new(), Contract::Exact, Arrow::Becomes);
        let (mut terms, mut named, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
        for part in pair.into_inner() {
            match part.as_rule() {
                R::name => name = part.as_str().to_string(),
                R::arrow => {
                    arrow =
                        Arrow::ALL.into_iter().find(|a| a.text() == part.as_str()).unwrap_or(Arrow::Becomes);
                }
                R::contract => {
                    contract = Contract::named(part.as_str()).unwrap_or_default();
                }
                R::term => terms.push(self.term(part)?),
                R::right => {
                    let (term, all) = self.right(part)?;
                    let left = terms.first().map(RuleTerm::names).unwrap_or_default();
                    if let Some((name, term)) =
                        all.iter().find(|(name, _)| left.iter().any(|(n, _)| n == name))
                    {
                        let message = format!("?{name} is a name of the left side already");
                        return Err(Diagnostic::syntax(message).at(&term.span));
                    }
                    terms.push(term);
                    named = all.into_iter().map(|(_, term)| term).collect();
                }
                R::condition => match self.condition(part)? {
                    Condition::All(parts) => conditions.extend(parts),
                    one => conditions.push(one),
                },
                _ => {}
            }
        }
        match <[RuleTerm; 2]>::try_from(terms) {
            Ok([left, right]) => {
                if let (Arrow::BothWays, Some(named)) = (arrow, named.first()) {
                    let message = "a rule that holds both ways names nothing by `let`";
                    return Err(Diagnostic::syntax(message).at(&named.span));
                }
                let (group, directed) = group.unzip();
                let directed = directed.unwrap_or(false);
                Ok(Rule { name, group, directed, doc, contract, left, right, named, arrow, conditions, span })
            }
            Err(_) => Err(Diagnostic::internal("a rule without two sides").at(&span)),
        }
    }

    /// The right side, with what `let` names in the places of the names, and those terms.
    fn right(&self, pair: Pair<'_, R>) -> Result<(RuleTerm, Vec<(String, RuleTerm)>)> {
        let span = self.span(&pair);
        let mut known: Vec<(String, RuleTerm)> = Vec::new();
        let inserted = |part: Pair<'_, R>, known: &[(String, RuleTerm)]| {
            let mut term = self.term(part)?;
            if term.count(known) > MAX_TERMS {
                let message = format!("the right side has more than {MAX_TERMS} terms");
                return Err(Diagnostic::syntax(message).at(&term.span));
            }
            term.substitute(known);
            Ok(term)
        };
        for part in pair.into_inner() {
            if part.as_rule() == R::term {
                let mut term = inserted(part, &known)?;
                term.span = span;
                return Ok((term, known));
            }
            let whole = self.span(&part);
            let mut parts = part.into_inner().filter(|p| matches!(p.as_rule(), R::var | R::term));
            let (Some(name), Some(term)) = (parts.next().map(variable_name), parts.next()) else {
                return Err(Diagnostic::internal("a name without a term").at(&whole));
            };
            if known.iter().any(|(other, _)| *other == name) {
                return Err(Diagnostic::syntax(format!("?{name} is named already")).at(&whole));
            }
            let term = inserted(term, &known)?;
            known.push((name, term));
        }
        Err(Diagnostic::internal("a right side without a term").at(&span))
    }

    fn terms<'p>(&self, pairs: impl Iterator<Item = Pair<'p, R>>) -> Result<Vec<RuleTerm>> {
        pairs.map(|pair| self.term(pair)).collect()
    }

    fn term(&self, pair: Pair<'_, R>) -> Result<RuleTerm> {
        let span = self.span(&pair);
        let inner =
            pair.into_inner().next().ok_or_else(|| Diagnostic::internal("an empty term").at(&span))?;
        let kind = match inner.as_rule() {
            R::variable => {
                let mut parts = inner.into_inner();
                let name = parts.next().map(variable_name).unwrap_or_default();
                TermKind::Variable(name, parts.next().map(|p| p.as_str().to_string()))
            }
            R::rest => {
                let mut parts = inner.into_inner();
                let name = parts.next().map(variable_name).unwrap_or_default();
                let bounds = parts.next().map(|part| part.into_inner().map(|e| self.expr(e)).collect());
                let bounds: Option<Vec<Expr>> = bounds.transpose()?;
                TermKind::Rest(name, bounds.and_then(|b| b.try_into().ok()).map(Box::new))
            }
            R::bound => {
                let mut parts = inner.into_inner();
                let name = parts.next().map(variable_name);
                let op = parts.next().ok_or_else(|| Diagnostic::internal("nothing is bound").at(&span))?;
                TermKind::Op(self.operation(op, name)?)
            }
            R::op => TermKind::Op(self.operation(inner, None)?),
            R::list => TermKind::List(self.terms(inner.into_inner())?),
            R::function => TermKind::Compute(self.function(inner, span.clone())?),
            R::compute => match inner.into_inner().next() {
                Some(expr) => TermKind::Compute(self.expr(expr)?),
                None => return Err(Diagnostic::internal("an empty expression").at(&span)),
            },
            _ => match inner.into_inner().next() {
                Some(literal) => TermKind::Literal(self.literal(literal)?),
                None => return Err(Diagnostic::internal("an empty literal").at(&span)),
            },
        };
        Ok(RuleTerm { kind, span })
    }

    fn operation(&self, pair: Pair<'_, R>, bound: Option<String>) -> Result<OpTerm> {
        let mut parts = pair.into_inner();
        let (mut kind, mut class) = (String::new(), None);
        match parts.next() {
            Some(variable) if variable.as_rule() == R::op_variable => {
                let mut parts = variable.into_inner();
                kind = parts.next().map(|name| name.as_str().to_string()).unwrap_or_default();
                class = parts.next().map(|class| class.as_str().to_string());
            }
            Some(name) => kind = name.as_str().to_string(),
            None => {}
        }
        let (kind, overload) = match kind.split_once('.') {
            Some((kind, overload)) => (kind.to_string(), Some(overload.to_string())),
            None => (kind, None),
        };
        let mut op = OpTerm {
            kind,
            class,
            overload,
            attributes: Vec::new(),
            arguments: Vec::new(),
            blocks: Vec::new(),
            result: None,
            bound,
        };
        for part in parts {
            match part.as_rule() {
                R::attributes => {
                    for attribute in part.into_inner() {
                        if let (Some(name), value) = self.named(attribute)? {
                            op.attributes.push((name, value));
                        }
                    }
                }
                R::argument => op.arguments.push(self.named(part)?),
                R::block => op.blocks.push(self.terms(part.into_inner())?),
                R::result_index => op.result = part.as_str()[1..].parse().ok(),
                _ => {}
            }
        }
        Ok(op)
    }

    fn named(&self, pair: Pair<'_, R>) -> Result<(Option<String>, RuleTerm)> {
        let span = self.span(&pair);
        let (mut name, mut value) = (None, None);
        for part in pair.into_inner() {
            match part.as_rule() {
                R::ident => name = Some(part.as_str().to_string()),
                _ => value = Some(self.term(part)?),
            }
        }
        Ok((name, value.ok_or_else(|| Diagnostic::internal("an empty argument").at(&span))?))
    }

    fn literal(&self, pair: Pair<'_, R>) -> Result<Literal> {
        let text = pair.as_str();
        let error = |message: String| Diagnostic::syntax(message).at(&self.span(&pair));
        Ok(match pair.as_rule() {
            R::int | R::u_int => {
                Literal::Int(text.parse().map_err(|_| error("the integer does not fit into 64 bits".into()))?)
            }
            R::float | R::u_float | R::special => {
                Literal::Float(text.parse().map_err(|_| error("not a float".into()))?)
            }
            R::boolean => Literal::Bool(text.eq_ignore_ascii_case("true")),
            R::none => Literal::None,
            R::dtype_word => match DType::from_name(text.trim_start_matches("torch.")) {
                Some(dtype) => Literal::Int(dtype.code()),
                None => {
                    return Err(error(format!("'{text}' is not a literal, variable or dtype"))
                        .hint(format!("a variable is written ?{text}")));
                }
            },
            _ => Literal::Str(text.get(1..text.len().saturating_sub(1)).unwrap_or("").to_string()),
        })
    }

    fn condition(&self, pair: Pair<'_, R>) -> Result<Condition> {
        let mut any = Vec::new();
        for conjunction in pair.into_inner().filter(|p| p.as_rule() == R::all_of) {
            let mut all = Vec::new();
            for one in conjunction.into_inner().filter(|p| p.as_rule() == R::one) {
                all.push(self.one(one)?);
            }
            any.push(match all.len() {
                1 => all.remove(0),
                _ => Condition::All(all),
            });
        }
        Ok(match any.len() {
            1 => any.remove(0),
            _ => Condition::Any(any),
        })
    }

    fn one(&self, pair: Pair<'_, R>) -> Result<Condition> {
        let span = self.span(&pair);
        let inner =
            pair.into_inner().next().ok_or_else(|| Diagnostic::internal("an empty condition").at(&span))?;
        let form = inner.as_rule();
        let mut parts = inner.into_inner();
        let missing = || Diagnostic::internal("a part of the condition is missing").at(&span);
        match form {
            R::negated => {
                let one = parts.find(|p| p.as_rule() == R::one).ok_or_else(missing)?;
                Ok(Condition::Not(Box::new(self.one(one)?)))
            }
            R::nested => self.condition(parts.next().ok_or_else(missing)?),
            _ => {
                let subject = self.expr(parts.next().ok_or_else(missing)?)?;
                match parts.next() {
                    Some(rest) => self.test(subject, rest, &span),
                    None => match subject {
                        Expr::Call(name, arguments, _) => Ok(Condition::Test(name, arguments, span)),
                        _ => Err(Diagnostic::syntax("not a rule: expected a condition")
                            .at(&span)
                            .hint("a condition compares, asks `in {...}`, or calls a function that answers true or false")),
                    },
                }
            }
        }
    }

    /// What is asked of an expression.
    fn test(&self, subject: Expr, pair: Pair<'_, R>, span: &Span) -> Result<Condition> {
        let form = pair.as_rule();
        let mut parts = pair.into_inner();
        if form == R::member {
            let others = parts.filter(|p| p.as_rule() == R::expr).map(|p| self.expr(p));
            return Ok(Condition::Member(subject, others.collect::<Result<_>>()?));
        }
        let missing = || Diagnostic::internal("a part of the condition is missing").at(span);
        let (sign, other) = (parts.next().ok_or_else(missing)?, parts.next().ok_or_else(missing)?);
        let sign = match sign.as_str() {
            "<" => Comparison::Lt,
            "<=" => Comparison::Le,
            "==" => Comparison::Eq,
            "!=" => Comparison::Ne,
            ">" => Comparison::Gt,
            _ => Comparison::Ge,
        };
        Ok(Condition::Compare(subject, sign, self.expr(other)?))
    }

    fn expr(&self, pair: Pair<'_, R>) -> Result<Expr> {
        let mut parts = pair.into_inner();
        let first = parts.next().ok_or_else(|| Diagnostic::internal("an empty expression"))?;
        let mut total = self.product(first)?;
        while let (Some(sign), Some(next)) = (parts.next(), parts.next()) {
            let sign = if sign.as_str() == "+" { Arithmetic::Add } else { Arithmetic::Sub };
            total = Expr::Binary(sign, Box::new(total), Box::new(self.product(next)?));
        }
        Ok(total)
    }

    fn product(&self, pair: Pair<'_, R>) -> Result<Expr> {
        let mut parts = pair.into_inner();
        let first = parts.next().ok_or_else(|| Diagnostic::internal("an empty product"))?;
        let mut total = self.factor(first)?;
        while let (Some(sign), Some(next)) = (parts.next(), parts.next()) {
            let sign = match sign.as_str() {
                "//" => Arithmetic::FloorDiv,
                "*" => Arithmetic::Mul,
                "%" => Arithmetic::Mod,
                _ => Arithmetic::Div,
            };
            total = Expr::Binary(sign, Box::new(total), Box::new(self.factor(next)?));
        }
        Ok(total)
    }

    fn factor(&self, pair: Pair<'_, R>) -> Result<Expr> {
        let mut negative = false;
        for part in pair.into_inner() {
            match part.as_rule() {
                R::minus => negative = true,
                _ => {
                    let atom = self.atom(part)?;
                    return Ok(if negative { Expr::Negate(Box::new(atom)) } else { atom });
                }
            }
        }
        Err(Diagnostic::internal("an empty factor"))
    }

    fn function(&self, pair: Pair<'_, R>, span: Span) -> Result<Expr> {
        let mut parts = pair.into_inner();
        let name = parts.next().map(|p| p.as_str().to_string()).unwrap_or_default();
        Ok(Expr::Call(name, parts.map(|p| self.expr(p)).collect::<Result<_>>()?, span))
    }

    fn atom(&self, pair: Pair<'_, R>) -> Result<Expr> {
        let span = self.span(&pair);
        let inner =
            pair.into_inner().next().ok_or_else(|| Diagnostic::internal("an empty operand").at(&span))?;
        match inner.as_rule() {
            R::expr => self.expr(inner),
            R::var => Ok(Expr::Name(variable_name(inner), span)),
            R::dtype_word => {
                let text = inner.as_str();
                match DType::from_name(text.trim_start_matches("torch.")) {
                    Some(dtype) => Ok(Expr::Literal(Literal::Int(dtype.code()))),
                    // `result`, or a variable without its mark.
                    None => Ok(Expr::Name(text.to_string(), span)),
                }
            }
            R::function => self.function(inner, span),
            R::ints => Ok(Expr::List(inner.into_inner().map(|p| self.expr(p)).collect::<Result<_>>()?)),
            _ => Ok(Expr::Literal(self.literal(inner)?)),
        }
    }
}

fn variable_name(pair: Pair<'_, R>) -> String {
    pair.as_str().trim_start_matches('?').to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn comments_belong_to_no_rule() {
        let text = "rule it's exact aten::add(?s: str, \"# \") # one\n  => # two\n  ?s # three\n  if ?s != '#' # four\n# the next\nrule b exact aten::neg(?x: Tensor) => ?x # end\n";
        let rules = parse(&Source::new("t.rules", text)).expect("rules");
        let span = rules[0].span.text();
        assert!(span.starts_with("rule it's") && span.ends_with("if ?s != '#'"), "{span}");
        assert_eq!(rules[0].right.span.text(), "?s");
        assert_eq!(rules[1].span.text(), "rule b exact aten::neg(?x: Tensor) => ?x");
        assert_eq!(on_one_line("aten::add(?s, # it's\n  \"a  # b\")"), "aten::add(?s, \"a  # b\")");
    }

    use super::*;

    #[test]
    fn reads_the_core_syntax() {
        let text = "# law\nrule mm-add fast-math aten::add(?m@aten::mm(?a, ?b), ?c: Tensor, alpha=1)\n  => aten::addmm(?c, ?a, ?b, beta=1, alpha=1)\n  if same_type(?m, result) and rank(?c) <= 2 and dtype(?a) in {float32, float64}\n";
        let rules = parse(&Source::new("t.rules", text)).expect("valid");
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].conditions.len(), 3);
        assert_eq!(rules[0].contract, Contract::FastMath);
        assert_eq!(rules[0].doc, "law");
    }

    #[test]
    fn reads_everything_else() {
        let text = "group g {\n rule a exact aten::cat([?x: Tensor, ?rest...], 0) <=> aten::f::g.o[n=1](?x, ?l: Dict(str, int)?, -.5e3, (?a * (2 - ?b) // 3)) { ?x, true } .1\n  if not (?a < -1 or rank(?x) in {1, 2}) and dtype(?x) == torch.float32 and (size(?x, 0) > 2)\n}\nrule b exact ?x: int[] => 'it'";
        let rules = parse(&Source::new("t.rules", text)).expect("valid");
        assert_eq!(rules.len(), 2);
        assert!(rules[0].arrow == Arrow::BothWays && rules[0].group.as_deref() == Some("g"));
        assert_eq!(rules[0].conditions.len(), 3);
    }

    #[test]
    fn errors_point_at_the_place() {
        let error =
            parse(&Source::new("t.rules", "rule a exact aten::neg(?x => ?x\n")).expect_err("no bracket");
        assert!(error.report().span.is_some());
        let twice = "rule a exact f::g(?x) => ?x\nrule a exact f::h(?x) => ?x";
        assert!(parse(&Source::new("t.rules", twice)).is_err());
    }
}
