//! A rule as written: terms, conditions and arithmetic, with their places in the text. Nothing here knows
//! which ops exist.

use crate::diag::Span;
pub use crate::dialects::Contract;
use std::fmt::{self, Display, Formatter};

/// A rule as written.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// The group that it stands in.
    pub group: Option<String>,
    /// Its group is `directed`: a pass of its own takes its rules, in their order and wherever they match, and no other does.
    pub directed: bool,
    /// The comment above it: the law.
    pub doc: String,
    /// What it promises.
    pub contract: Contract,
    /// What it looks for.
    pub left: RuleTerm,
    /// What that equals; what `let` names stands in the place of the names.
    pub right: RuleTerm,
    /// What `let` names, in the order in which it is made.
    pub named: Vec<RuleTerm>,
    /// Which side is taken.
    pub arrow: Arrow,
    /// When; all of them.
    pub conditions: Vec<Condition>,
    /// Where it stands.
    pub span: Span,
}

/// Which side of a rule is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrow {
    /// `=>`: the right side, where it costs no more.
    Becomes,
    /// `~>`: both sides are as good; the right side is known to equal the left, and taken where that makes the whole cheaper.
    Equals,
    /// `<=>`: it holds from right to left as well.
    BothWays,
}

impl Arrow {
    /// All of them.
    pub const ALL: [Arrow; 3] = [Arrow::Becomes, Arrow::Equals, Arrow::BothWays];

    /// As rules write it.
    pub fn text(self) -> &'static str {
        match self {
            Arrow::Becomes => "=>",
            Arrow::Equals => "~>",
            Arrow::BothWays => "<=>",
        }
    }
}

/// A term of a rule, with its place.
#[derive(Clone, Debug)]
pub struct RuleTerm {
    /// What it is.
    pub kind: TermKind,
    /// Where it stands.
    pub span: Span,
}

/// What a term is.
#[derive(Clone, Debug)]
pub enum TermKind {
    /// `?x: Tensor`
    Variable(String, Option<String>),
    /// `?xs...`: any number of operands or list elements. `?xs[a:b:c]...` on the right: those from a to b, each c-th,
    /// as Python counts.
    Rest(String, Option<Box<[Expr; 3]>>),
    /// `dialect::op.overload[attr=term](term, name=term) { term } .0`
    Op(OpTerm),
    /// A literal.
    Literal(Literal),
    /// `[term, ...]`
    List(Vec<RuleTerm>),
    /// `(?a + 1)`: arithmetic on constants.
    Compute(Expr),
}

/// An op of a term.
#[derive(Clone, Debug)]
pub struct OpTerm {
    /// `aten::add`, or `?f` for an op variable.
    pub kind: String,
    /// The class of an op variable, where it is stated.
    pub class: Option<String>,
    /// The overload's name, where stated.
    pub overload: Option<String>,
    /// Attributes.
    pub attributes: Vec<(String, RuleTerm)>,
    /// Arguments, those by name with it.
    pub arguments: Vec<(Option<String>, RuleTerm)>,
    /// Results of nested blocks.
    pub blocks: Vec<Vec<RuleTerm>>,
    /// Which of several results is meant.
    pub result: Option<usize>,
    /// Name of the matched term.
    pub bound: Option<String>,
}

/// A literal.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
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
}

/// Arithmetic on constants and on what is known of terms.
#[derive(Clone, Debug)]
pub enum Expr {
    /// A number, text, a truth value.
    Literal(Literal),
    /// The constant that a variable stands for; `result` and names of matched terms in conditions.
    Name(String, Span),
    /// `rank(?x)`, `size(?x, 0)`, `numel(?x)`, `len(?l)`, `dtype(?x)`, `min`, `max`, `abs`.
    Call(String, Vec<Expr>, Span),
    /// Two operands.
    Binary(Arithmetic, Box<Expr>, Box<Expr>),
    /// The negative.
    Negate(Box<Expr>),
    /// `[2, 3]`, for sizes to be compared with.
    List(Vec<Expr>),
}

/// Signs of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// +
    Add,
    /// -
    Sub,
    /// *
    Mul,
    /// / of floats
    Div,
    /// // rounds down
    FloorDiv,
    /// % with the sign of the divisor
    Mod,
}

/// A condition.
#[derive(Clone, Debug)]
pub enum Condition {
    /// A test by name: `same_type(?a, ?b)`.
    Test(String, Vec<Expr>, Span),
    /// `dtype(?x) in {float32, float64}`
    Member(Expr, Vec<Expr>),
    /// `rank(?x) <= 2`
    Compare(Expr, Comparison, Expr),
    /// `not ...`
    Not(Box<Condition>),
    /// `... or ...`
    Any(Vec<Condition>),
    /// `... and ...`
    All(Vec<Condition>),
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// <
    Lt,
    /// <=
    Le,
    /// ==
    Eq,
    /// !=
    Ne,
    /// >
    Gt,
    /// >=
    Ge,
}

impl Rule {
    /// What it says as written, without its name: rules with one text say the same.
    pub fn law(&self) -> &str {
        let text = self.span.text();
        text.split_once(&self.name).map_or(text, |(_, law)| law)
    }
}

impl RuleTerm {
    /// How many terms it has with others in the places of variables.
    pub(in crate::rewrite) fn count(&self, named: &[(String, RuleTerm)]) -> usize {
        let mut count = 0usize;
        self.walk(&mut |term| {
            let inserted = match &term.kind {
                TermKind::Variable(name, None) => named.iter().find(|(known, _)| known == name),
                _ => None,
            };
            count = count.saturating_add(inserted.map_or(1, |(_, term)| term.count(&[])));
        });
        count
    }

    /// Puts terms in the places of variables.
    pub(super) fn substitute(&mut self, named: &[(String, RuleTerm)]) {
        match &mut self.kind {
            TermKind::Variable(name, None) => {
                if let Some((_, term)) = named.iter().find(|(known, _)| known == name) {
                    *self = term.clone();
                }
            }
            TermKind::Op(op) => {
                let operands = op.arguments.iter_mut().map(|(_, t)| t);
                let attributes = op.attributes.iter_mut().map(|(_, t)| t);
                let all = operands.chain(attributes).chain(op.blocks.iter_mut().flatten());
                all.for_each(|term| term.substitute(named));
            }
            TermKind::List(items) => items.iter_mut().for_each(|t| t.substitute(named)),
            TermKind::Variable(..) | TermKind::Rest(..) | TermKind::Literal(_) | TermKind::Compute(_) => {}
        }
    }

    /// Every term in it, itself first.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a RuleTerm)) {
        visit(self);
        match &self.kind {
            TermKind::Op(op) => {
                let operands = op.arguments.iter().map(|(_, t)| t);
                let attributes = op.attributes.iter().map(|(_, t)| t);
                for term in operands.chain(attributes).chain(op.blocks.iter().flatten()) {
                    term.walk(visit);
                }
            }
            TermKind::List(items) => items.iter().for_each(|t| t.walk(visit)),
            _ => {}
        }
    }

    /// Names of variables and of matched terms, with their places, in the order of the text.
    pub fn names(&self) -> Vec<(&str, &Span)> {
        let mut found = Vec::new();
        self.walk(&mut |term| match &term.kind {
            TermKind::Variable(name, _) => found.push((name.as_str(), &term.span)),
            TermKind::Rest(name, part) => {
                found.push((name.as_str(), &term.span));
                part.iter()
                    .flat_map(|p| p.iter())
                    .for_each(|e| e.names(&mut |n, span| found.push((n, span))));
            }
            TermKind::Op(op) => found.extend(op.bound.as_deref().map(|name| (name, &term.span))),
            TermKind::Compute(expr) => expr.names(&mut |name, span| found.push((name, span))),
            TermKind::Literal(_) | TermKind::List(_) => {}
        });
        found
    }
}

impl Expr {
    /// The names in it.
    pub fn names<'a>(&'a self, visit: &mut dyn FnMut(&'a str, &'a Span)) {
        match self {
            Expr::Literal(_) => {}
            Expr::Name(name, span) => visit(name, span),
            Expr::Call(_, arguments, _) | Expr::List(arguments) => {
                arguments.iter().for_each(|a| a.names(visit));
            }
            Expr::Binary(_, a, b) => {
                a.names(visit);
                b.names(visit);
            }
            Expr::Negate(a) => a.names(visit),
        }
    }
}

impl Condition {
    /// The expressions in it.
    pub fn exprs<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            Condition::Test(_, arguments, _) => arguments.iter().for_each(visit),
            Condition::Member(subject, members) => {
                visit(subject);
                members.iter().for_each(visit);
            }
            Condition::Compare(a, _, b) => {
                visit(a);
                visit(b);
            }
            Condition::Not(inner) => inner.exprs(visit),
            Condition::Any(parts) | Condition::All(parts) => parts.iter().for_each(|p| p.exprs(visit)),
        }
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Int(x) => write!(f, "{x}"),
            Literal::Float(x) => write!(f, "{x:?}"),
            Literal::Bool(x) => write!(f, "{x}"),
            Literal::None => f.write_str("None"),
            Literal::Str(x) => write!(f, "{x:?}"),
        }
    }
}

fn joined<T: Display>(items: &[T], by: &str) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(by)
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Literal(x) => x.fmt(f),
            Expr::Name(name, _) if name == "result" => f.write_str(name),
            Expr::Name(name, _) => write!(f, "?{name}"),
            Expr::Call(name, arguments, _) => write!(f, "{name}({})", joined(arguments, ", ")),
            Expr::Binary(sign, a, b) => {
                let sign = match sign {
                    Arithmetic::Add => "+",
                    Arithmetic::Sub => "-",
                    Arithmetic::Mul => "*",
                    Arithmetic::Div => "/",
                    Arithmetic::FloorDiv => "//",
                    Arithmetic::Mod => "%",
                };
                write!(f, "({a} {sign} {b})")
            }
            Expr::Negate(a) => write!(f, "-{a}"),
            Expr::List(items) => write!(f, "[{}]", joined(items, ", ")),
        }
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Test(name, arguments, _) => write!(f, "{name}({})", joined(arguments, ", ")),
            Condition::Member(subject, members) => write!(f, "{subject} in {{{}}}", joined(members, ", ")),
            Condition::Compare(a, sign, b) => {
                let sign = match sign {
                    Comparison::Lt => "<",
                    Comparison::Le => "<=",
                    Comparison::Eq => "==",
                    Comparison::Ne => "!=",
                    Comparison::Gt => ">",
                    Comparison::Ge => ">=",
                };
                write!(f, "{a} {sign} {b}")
            }
            Condition::Not(inner) => write!(f, "not ({inner})"),
            Condition::Any(parts) => f.write_str(&joined(parts, " or ")),
            Condition::All(parts) => {
                let one = |part: &Condition| match part {
                    // `and` binds tighter.
                    Condition::Any(_) => format!("({part})"),
                    _ => part.to_string(),
                };
                f.write_str(&parts.iter().map(one).collect::<Vec<_>>().join(" and "))
            }
        }
    }
}
