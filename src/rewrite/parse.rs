//! From a rule file's text to rules.

use crate::diag::{Diagnostic, Result, Source, Span};
use crate::tensor::DType;
use pest::Parser;
use pest::iterators::Pair;
use std::sync::Arc;

#[allow(missing_docs, reason = "pest names one variant a grammar rule")]
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "rewrite/rules.pest"]
    pub struct RuleParser;
}

use grammar::Rule as R;

/// Terms nested deeper are refused.
const MAX_DEPTH: usize = 64;

/// A rule as it is written.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// What it promises.
    pub contract: Contract,
    /// What it looks for.
    pub left: RuleTerm,
    /// What that equals.
    pub right: RuleTerm,
    /// When.
    pub conditions: Vec<Condition>,
    /// Where it stands.
    pub span: Span,
}

/// What a rule promises about the values of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract {
    /// Same type, sizes and bits; any NaN equals any NaN.
    Exact,
    /// As exact where the left side meets no NaN and no infinity; -0 equals 0.
    NanRelaxed,
    /// Within the dtype's tolerance on finite inputs of moderate size.
    FastMath,
}

/// A term of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleTerm {
    /// `?x: Tensor`
    Variable(String, Option<String>),
    /// `dialect::op.overload(term, name=term)`, bound to a name where `?m@` stands before it.
    Op {
        /// `aten::add`
        kind: String,
        /// The overload's name, where stated.
        overload: Option<String>,
        /// Arguments, those by name with it.
        arguments: Vec<(Option<String>, RuleTerm)>,
        /// Name of the matched term.
        bound: Option<String>,
    },
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// `None`
    None,
    /// Text.
    Str(String),
    /// A list.
    List(Vec<RuleTerm>),
}

/// A condition. `result` stands for the matched root.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Dtype and sizes are known and equal.
    SameType(String, String),
    /// Sizes are known and equal.
    SameShape(String, String),
    /// Dtypes are known and equal.
    SameDtype(String, String),
    /// Of floating dtype, or a float; complex left out.
    IsFloat(String),
    /// Of integral dtype, or an int; bool left out.
    IsIntegral(String),
    /// Of one of these dtypes.
    DtypeIn(String, Vec<DType>),
    /// Rank compared with a number.
    Rank(String, Comparison, i64),
    /// A constant.
    IsConst(String),
    /// Used once.
    OneUse(String),
    /// Constants compared.
    Compare(String, Comparison, i64),
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// <
    Lt,
    /// <=
    Le,
    /// =
    Eq,
    /// !=
    Ne,
    /// >
    Gt,
    /// >=
    Ge,
}

impl Comparison {
    /// Whether it holds.
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Comparison::Lt => a < b,
            Comparison::Le => a <= b,
            Comparison::Eq => a == b,
            Comparison::Ne => a != b,
            Comparison::Gt => a > b,
            Comparison::Ge => a >= b,
        }
    }
}

/// Parses a rule file.
pub fn parse(source: &Arc<Source>) -> Result<Vec<Rule>> {
    // The grammar is read by a recursive parser; brackets bound how deep it goes.
    if let Some(at) = too_deep(source.text()) {
        let error = Diagnostic::syntax(format!("terms are nested more than {MAX_DEPTH} deep"));
        return Err(error.at(&Span::new(source, at, at + 1)));
    }
    let mut parsed = grammar::RuleParser::parse(R::file, source.text()).map_err(|e| syntax(source, &e))?;
    let file = parsed.next().ok_or_else(|| Diagnostic::internal("the grammar gave nothing"))?;
    file.into_inner().filter(|p| p.as_rule() == R::rule).map(|pair| rule(source, pair)).collect()
}

fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Some(at);
        }
    }
    None
}

fn syntax(source: &Arc<Source>, error: &pest::error::Error<R>) -> Diagnostic {
    let (start, end) = match error.location {
        pest::error::InputLocation::Pos(at) => (at, at + 1),
        pest::error::InputLocation::Span(span) => span,
    };
    let expected = error.variant.message().into_owned();
    Diagnostic::syntax(format!("this is no rule: {expected}"))
        .at(&Span::new(source, start, end))
        .hint("a rule reads: rule NAME exact LEFT => RIGHT if CONDITION")
}

fn span_of(source: &Arc<Source>, pair: &Pair<'_, R>) -> Span {
    Span::new(source, pair.as_span().start(), pair.as_span().end())
}

fn rule(source: &Arc<Source>, pair: Pair<'_, R>) -> Result<Rule> {
    let span = span_of(source, &pair);
    let (mut name, mut contract) = (String::new(), Contract::Exact);
    let (mut terms, mut conditions) = (Vec::new(), Vec::new());
    for part in pair.into_inner() {
        match part.as_rule() {
            R::name => name = part.as_str().to_string(),
            R::contract => {
                contract = match part.as_str() {
                    "nan-relaxed" => Contract::NanRelaxed,
                    "fast-math" => Contract::FastMath,
                    _ => Contract::Exact,
                }
            }
            R::term => terms.push(term(source, part)?),
            R::condition => conditions.push(condition(source, part)?),
            _ => {}
        }
    }
    match <[RuleTerm; 2]>::try_from(terms) {
        Ok([left, right]) => Ok(Rule { name, contract, left, right, conditions, span }),
        Err(_) => Err(Diagnostic::internal("a rule without two sides").at(&span)),
    }
}

fn term(source: &Arc<Source>, pair: Pair<'_, R>) -> Result<RuleTerm> {
    let span = span_of(source, &pair);
    let inner = pair.into_inner().next().ok_or_else(|| Diagnostic::internal("an empty term").at(&span))?;
    match inner.as_rule() {
        R::variable => {
            let mut parts = inner.into_inner();
            let name = parts.next().map(variable_name).unwrap_or_default();
            Ok(RuleTerm::Variable(name, parts.next().map(|p| p.as_str().to_string())))
        }
        R::bound => {
            let mut parts = inner.into_inner();
            let name = parts.next().map(variable_name);
            let op = parts.next().ok_or_else(|| Diagnostic::internal("nothing is bound").at(&span))?;
            operation(source, op, name)
        }
        R::op => operation(source, inner, None),
        R::list => Ok(RuleTerm::List(inner.into_inner().map(|t| term(source, t)).collect::<Result<_>>()?)),
        _ => literal(source, inner),
    }
}

fn variable_name(pair: Pair<'_, R>) -> String {
    pair.as_str().trim_start_matches('?').to_string()
}

fn operation(source: &Arc<Source>, pair: Pair<'_, R>, bound: Option<String>) -> Result<RuleTerm> {
    let mut parts = pair.into_inner();
    let kind = parts.next().map(|p| p.as_str().to_string()).unwrap_or_default();
    let (kind, overload) = match kind.split_once('.') {
        Some((kind, overload)) => (kind.to_string(), Some(overload.to_string())),
        None => (kind, None),
    };
    let mut arguments = Vec::new();
    for argument in parts {
        let (mut name, mut value) = (None, None);
        for part in argument.into_inner() {
            match part.as_rule() {
                R::ident => name = Some(part.as_str().to_string()),
                _ => value = Some(term(source, part)?),
            }
        }
        if let Some(value) = value {
            arguments.push((name, value));
        }
    }
    Ok(RuleTerm::Op { kind, overload, arguments, bound })
}

fn literal(source: &Arc<Source>, pair: Pair<'_, R>) -> Result<RuleTerm> {
    let span = span_of(source, &pair);
    let inner = pair.into_inner().next().ok_or_else(|| Diagnostic::internal("an empty literal").at(&span))?;
    let text = inner.as_str();
    Ok(match inner.as_rule() {
        R::int => {
            let value = text
                .parse()
                .map_err(|_| Diagnostic::syntax("the integer does not fit into 64 bits").at(&span))?;
            RuleTerm::Int(value)
        }
        R::float => {
            RuleTerm::Float(text.parse().map_err(|_| Diagnostic::syntax("this is no float").at(&span))?)
        }
        R::boolean => RuleTerm::Bool(text.eq_ignore_ascii_case("true")),
        R::none => RuleTerm::None,
        _ => RuleTerm::Str(text.trim_matches('"').to_string()),
    })
}

fn condition(source: &Arc<Source>, pair: Pair<'_, R>) -> Result<Condition> {
    let span = span_of(source, &pair);
    let inner =
        pair.into_inner().next().ok_or_else(|| Diagnostic::internal("an empty condition").at(&span))?;
    let form = inner.as_rule();
    let parts: Vec<Pair<'_, R>> = inner.into_inner().collect();
    let text = |n: usize| parts.get(n).map_or("", |p| p.as_str()).trim_start_matches('?').to_string();
    match form {
        R::call => match (text(0).as_str(), parts.len()) {
            ("same_type", 3) => Ok(Condition::SameType(text(1), text(2))),
            ("same_shape", 3) => Ok(Condition::SameShape(text(1), text(2))),
            ("same_dtype", 3) => Ok(Condition::SameDtype(text(1), text(2))),
            ("is_float", 2) => Ok(Condition::IsFloat(text(1))),
            ("is_integral", 2) => Ok(Condition::IsIntegral(text(1))),
            ("is_const", 2) => Ok(Condition::IsConst(text(1))),
            ("one_use", 2) => Ok(Condition::OneUse(text(1))),
            (other, n) => Err(Diagnostic::compile(format!("there is no condition {other} of {} arguments", n - 1))
                .at(&span)
                .hint("conditions are same_type, same_shape, same_dtype, is_float, is_integral, is_const, one_use, dtype(x) in {...}, rank(x) <= n")),
        },
        R::dtype_in => {
            let mut dtypes = Vec::new();
            for part in parts.iter().skip(1).filter(|p| p.as_rule() == R::ident) {
                let dtype = DType::from_name(part.as_str());
                dtypes.push(dtype.ok_or_else(|| {
                    Diagnostic::compile(format!("there is no dtype {}", part.as_str())).at(&span_of(source, part))
                })?);
            }
            Ok(Condition::DtypeIn(text(0), dtypes))
        }
        _ => comparison(&parts, &span),
    }
}

fn comparison(parts: &[Pair<'_, R>], span: &Span) -> Result<Condition> {
    let [left, sign, right] = parts else {
        return Err(Diagnostic::internal("a comparison of no two sides").at(span));
    };
    let sign = match sign.as_str() {
        "<" => Comparison::Lt,
        "<=" => Comparison::Le,
        "==" => Comparison::Eq,
        "!=" => Comparison::Ne,
        ">" => Comparison::Gt,
        _ => Comparison::Ge,
    };
    let Ok(number) = right.as_str().parse::<i64>() else {
        return Err(Diagnostic::compile("the right side of a comparison must be an integer").at(span));
    };
    match left.as_rule() {
        R::rank => {
            let subject = left.clone().into_inner().next().map(variable_name).unwrap_or_default();
            Ok(Condition::Rank(subject, sign, number))
        }
        _ => Ok(Condition::Compare(left.as_str().trim_start_matches('?').to_string(), sign, number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_core_syntax() {
        let text = "# law\nrule mm-add fast-math aten::add(?m@aten::mm(?a, ?b), ?c: Tensor, alpha=1)\n  => aten::addmm(?c, ?a, ?b, beta=1, alpha=1)\n  if same_type(?m, result) and rank(?c) <= 2 and dtype(?a) in {float32, float64}\n";
        let rules = parse(&Source::new("t.rules", text)).expect("valid");
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].conditions.len(), 3);
        assert_eq!(rules[0].contract, Contract::FastMath);
    }

    #[test]
    fn errors_point_at_the_place() {
        let error =
            parse(&Source::new("t.rules", "rule a exact aten::neg(?x => ?x\n")).expect_err("no bracket");
        assert!(error.report().span.is_some());
        assert!(parse(&Source::new("t.rules", "rule a exact f::g(?x) => ?x if cold(?x)")).is_err());
    }
}
