//! From a dialect file's text to declarations.

use super::declared::{DialectText, GradText, KEYWORDS, OpText};
use crate::diag::{Diagnostic, Result, Source, Span, nearest};
use crate::dialects::constraint::{Comparison, Condition, Declaration, Law, Parameter, ParameterKind};
use crate::dialects::{Contract, Effects};
use crate::dialects::{Fact, Given, Tolerance};
use crate::ir::{Attr, Symbol};
use pest::Parser;
use pest::iterators::Pair;
use std::sync::Arc;

#[allow(missing_docs, reason = "pest names one variant a grammar rule")]
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "../../src/dialects/text/dialect.pest"]
    pub struct DialectParser;
}

use grammar::Rule as R;

/// Larger files are refused before they are read.
const MAX_BYTES: usize = 4 << 20;
/// Brackets of schemas nest no deeper.
const MAX_DEPTH: usize = 64;

pub(super) fn parse(source: &Arc<Source>) -> Result<DialectText> {
    if source.text().len() > MAX_BYTES {
        return Err(Diagnostic::input(format!("{}: a dialect file is at most 4 MB", source.name())));
    }
    if let Some(at) = too_deep(source.text()) {
        let error = Diagnostic::syntax(format!("brackets nest more than {MAX_DEPTH} deep"));
        return Err(error.at(&Span::new(source, at, at + 1)));
    }
    let parsed = grammar::DialectParser::parse(R::file, source.text());
    let file = parsed.map_err(|e| syntax(source, &e))?.next();
    let file = file.ok_or_else(|| Diagnostic::internal("the grammar gave nothing"))?;
    let mut reader = Reader { source, dialect: String::new() };
    reader.file(file)
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

/// What a grammar rule is called in messages.
fn rule_name(rule: &R) -> &'static str {
    match rule {
        R::header => "`dialect NAME`",
        R::op => "`op`",
        R::declared_type => "`type`",
        R::declared_attribute => "`attribute`",
        R::schema => "a schema (dialect::name(Tensor self, ...) -> Tensor)",
        R::summary => "`summary`",
        R::meaning => "`meaning`",
        R::lowering => "`lowering`",
        R::grad => "`grad`",
        R::surrogate => "`surrogate`",
        R::facts => "`facts`",
        R::traits => "`traits`",
        R::effects => "`effects`",
        R::tolerance => "`tolerance`",
        R::attribute => "`attribute`",
        R::code => "TorchScript or a graph, indented more than the word before it",
        R::formula => "an expression",
        R::fact => "a fact",
        R::ident => "a name",
        R::kind => "a kind (int, float, str, bool, type, int[], ...)",
        R::string => "a text in double quotes",
        R::value => "a value",
        R::parameter => "a parameter (name: kind)",
        R::parameters => "`<`",
        R::conditions => "`where`",
        R::condition => "a condition (name in {...}, name >= 1)",
        R::comparison => "a comparison",
        R::integer | R::decimal => "a number",
        R::EOI => "the end of the file",
        _ => "something else",
    }
}

fn syntax(source: &Arc<Source>, error: &pest::error::Error<R>) -> Diagnostic {
    let (start, end) = match error.location {
        pest::error::InputLocation::Pos(at) => (at, at + 1),
        pest::error::InputLocation::Span(span) => span,
    };
    let mut names: Vec<&str> = match &error.variant {
        pest::error::ErrorVariant::ParsingError { positives, .. } => {
            positives.iter().map(rule_name).collect()
        }
        pest::error::ErrorVariant::CustomError { .. } => Vec::new(),
    };
    names.sort_unstable();
    names.dedup();
    names.retain(|name| *name != "something else");
    let expected = match names.split_last() {
        None => "not a part of a dialect file".to_string(),
        Some((last, [])) => format!("expected {last}"),
        Some((last, rest)) => format!("expected {} or {last}", rest.join(", ")),
    };
    let word =
        source.text().get(start..).unwrap_or("").split(|c: char| !c.is_alphanumeric() && c != '_').next();
    let error = Diagnostic::syntax(expected).at(&Span::new(source, start, end));
    match word
        .filter(|w| !w.is_empty() && !KEYWORDS.contains(w))
        .and_then(|w| nearest(w, KEYWORDS.iter().copied()))
    {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("docs/add-a-dialect.md shows a whole file"),
    }
}

struct Reader<'a> {
    source: &'a Arc<Source>,
    dialect: String,
}

impl Reader<'_> {
    fn span(&self, pair: &Pair<'_, R>) -> Span {
        Span::new(self.source, pair.as_span().start(), pair.as_span().end())
    }

    fn error(&self, pair: &Pair<'_, R>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::syntax(message).at(&self.span(pair))
    }

    fn file(&mut self, file: Pair<'_, R>) -> Result<DialectText> {
        let mut dialect = DialectText {
            name: String::new(),
            summary: String::new(),
            ops: Vec::new(),
            types: Vec::new(),
            attributes: Vec::new(),
        };
        for item in file.into_inner() {
            match item.as_rule() {
                R::header => {
                    let mut parts = item.into_inner();
                    dialect.name = parts.next().map_or("", |p| p.as_str()).to_string();
                    dialect.summary = parts.next().map(|p| string(&p)).unwrap_or_default();
                    self.dialect.clone_from(&dialect.name);
                }
                R::op => dialect.ops.push(self.op(item)?),
                R::declared_type => {
                    let declared = self.declaration(item.clone())?;
                    self.is_new(&item, declared.name, dialect.types.iter().map(|t| t.name))?;
                    dialect.types.push(declared);
                }
                R::declared_attribute => {
                    let declared = self.declaration(item.clone())?;
                    self.is_new(&item, declared.name, dialect.attributes.iter().map(|a| a.name))?;
                    dialect.attributes.push(declared);
                }
                _ => {}
            }
        }
        self.check_names(&dialect)?;
        Ok(dialect)
    }

    /// Attributes of ops and types of schemas may be of declared kinds only.
    fn check_names(&self, dialect: &DialectText) -> Result<()> {
        let declared: Vec<Symbol> = dialect.attributes.iter().map(|a| a.name).collect();
        let types: Vec<&str> = dialect.types.iter().map(|t| t.name.as_str()).collect();
        for op in &dialect.ops {
            for name in own_names(&op.schema, &dialect.name) {
                if !types.contains(&name) {
                    let error = Diagnostic::syntax(format!("the dialect declares no type '{name}'"));
                    let error = error.at(&op.span);
                    return Err(match nearest(name, types.iter().copied()) {
                        Some(near) => error.hint(format!("did you mean '{near}'?")),
                        None => error.hint("declare it: `type NAME<parameter: kind>`"),
                    });
                }
            }
            for law in &op.laws {
                if let Law::Attribute(Parameter { kind: ParameterKind::Declared(name), .. }) = law
                    && !declared.contains(name)
                {
                    let error = Diagnostic::syntax(format!("the dialect declares no attribute '{name}'"));
                    return Err(error.at(&op.span));
                }
            }
        }
        Ok(())
    }

    fn op(&self, item: Pair<'_, R>) -> Result<OpText> {
        let mut parts = item.into_inner();
        let Some(schema) = parts.next() else { return Err(Diagnostic::internal("an op without a schema")) };
        let text = schema.as_str().split_whitespace().collect::<Vec<_>>().join(" ");
        let mut op = OpText {
            schema: text.replace("( ", "(").replace(" )", ")"),
            span: self.span(&schema),
            summary: String::new(),
            meaning: None,
            lowerings: Vec::new(),
            grad: Vec::new(),
            facts: Vec::new(),
            laws: Vec::new(),
            effects: Effects::NONE,
            tolerance: Tolerance::Accumulation,
            inplace: false,
            out: None,
        };
        let owner = op.name().split("::").next().unwrap_or("");
        if owner != self.dialect {
            let message = format!("op {} is not of the dialect '{}'", op.name(), self.dialect);
            return Err(self
                .error(&schema, message)
                .hint("ops of other dialects are declared in files of their own"));
        }
        // Parsed alone, so that its error stands at the schema.
        let parsed = crate::ir::parse_schema(&op.schema);
        let schema_ast = parsed.map_err(|e| {
            let error = self.error(&schema, format!("not a schema: {}", e.message()));
            e.report().hints.iter().fold(error, |error, hint| error.hint(hint))
        })?;
        op.schema = schema_ast.to_string();
        for part in parts {
            self.field(&mut op, part)?;
        }
        Ok(op)
    }

    fn field(&self, op: &mut OpText, part: Pair<'_, R>) -> Result<()> {
        match part.as_rule() {
            R::summary => op.summary = part.into_inner().next().map(|p| string(&p)).unwrap_or_default(),
            R::meaning => {
                for code in part.into_inner().filter(|p| p.as_rule() == R::code) {
                    op.meaning = Some((dedent(code.as_str()), self.code_span(&code)));
                }
            }
            R::lowering => {
                for code in part.into_inner().filter(|p| p.as_rule() == R::code) {
                    op.lowerings.push((dedent(code.as_str()), self.code_span(&code)));
                }
            }
            R::grad | R::surrogate => {
                let (span, surrogate) = (self.span(&part), part.as_rule() == R::surrogate);
                let mut parts = part.into_inner().map(|p| p.as_str().trim().to_string());
                let argument = parts.next().unwrap_or_default();
                if op.grad.iter().any(|known| known.argument == argument) {
                    let message = format!("the derivative by '{argument}' is given twice");
                    return Err(Diagnostic::syntax(message).at(&span));
                }
                op.grad.push(GradText {
                    argument,
                    formula: parts.next().unwrap_or_default(),
                    span,
                    surrogate,
                });
            }
            R::facts => {
                for fact in part.into_inner() {
                    op.facts.push(self.fact(&fact)?);
                }
            }
            R::traits => {
                for item in part.into_inner() {
                    self.trait_(op, &item)?;
                }
            }
            R::effects => {
                for word in part.into_inner() {
                    op.effects = op.effects | self.effect(&word)?;
                }
            }
            R::tolerance => {
                for word in part.into_inner() {
                    op.tolerance = match word.as_str() {
                        "exact" => Tolerance::Exact,
                        "rounding" => Tolerance::Rounding,
                        "accumulation" => Tolerance::Accumulation,
                        other => {
                            return Err(self.unknown(
                                &word,
                                "tolerance",
                                other,
                                &["exact", "rounding", "accumulation"],
                            ));
                        }
                    };
                }
            }
            R::attribute => {
                let parameter = self.parameter(part.clone())?;
                let known = op.laws.iter().filter_map(|law| match law {
                    Law::Attribute(known) => Some(known.name),
                    _ => None,
                });
                self.is_new(&part, parameter.name, known)?;
                op.laws.push(Law::Attribute(parameter));
            }
            _ => {}
        }
        Ok(())
    }

    /// The lines of the code without the line end before them.
    fn code_span(&self, code: &Pair<'_, R>) -> Span {
        let text = code.as_str();
        let skipped = text.len() - text.trim_start_matches(['\n', '\r', ' ', '\t']).len();
        Span::new(self.source, code.as_span().start() + skipped, code.as_span().end())
    }

    fn unknown(&self, pair: &Pair<'_, R>, what: &str, word: &str, known: &[&str]) -> Diagnostic {
        let error = self.error(pair, format!("there is no {what} '{word}'"));
        match nearest(word, known.iter().copied()) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error.note(format!("there are {}", known.join(", "))),
        }
    }

    fn fact(&self, pair: &Pair<'_, R>) -> Result<Fact> {
        let mut parts = pair.clone().into_inner().peekable();
        let weaker = parts.next_if(|part| part.as_rule() == R::weaker);
        let sided = parts.next_if(|part| part.as_rule() == R::sided);
        let word = parts.next().map_or("", |p| p.as_str());
        let mut fact = self.equation(pair, word, parts.next())?;
        if fact == Fact::Detached && (weaker.is_some() || sided.is_some()) {
            let message = "'detached' is not an equation, so it has neither contract nor sides";
            return Err(self.error(pair, message));
        }
        if sided.is_some() {
            fact = Fact::TwoSided(Box::leak(Box::new(fact)));
        }
        if let Some(contract) = weaker.and_then(|part| Contract::named(part.as_str())) {
            fact = Fact::Under(contract, Box::leak(Box::new(fact)));
        }
        Ok(fact)
    }

    fn equation(&self, pair: &Pair<'_, R>, word: &str, of: Option<Pair<'_, R>>) -> Result<Fact> {
        let truth = of.as_ref().filter(|p| p.as_rule() == R::boolean);
        let truth = truth.map(|p| p.as_str().eq_ignore_ascii_case("true"));
        let other = of.as_ref().filter(|p| p.as_rule() == R::other).map(|p| p.as_str());
        // Of truth values 1 is true.
        let number = match truth {
            Some(truth) => Some(f64::from(u8::from(truth))),
            None => of.as_ref().and_then(|p| p.as_str().parse::<f64>().ok()),
        };
        match (word, number, other) {
            ("commutative", None, None) => Ok(Fact::Commutative),
            ("associative", None, None) => Ok(Fact::Associative),
            ("identity", Some(e), _) => Ok(Fact::Identity(e)),
            ("absorbing", Some(e), _) => Ok(Fact::Absorbing(e)),
            ("reflexive", Some(e), _) => Ok(Fact::Reflexive(truth.map_or(Given::Number(e), Given::Truth))),
            ("negates", _, Some(other)) => Ok(Fact::Negates(Box::leak(Box::from(other)))),
            ("odd", None, None) => Ok(Fact::Odd),
            ("even", None, None) => Ok(Fact::Even),
            ("idempotent", None, None) => Ok(Fact::Idempotent),
            ("involution", None, None) => Ok(Fact::Involution),
            ("detached", None, None) => Ok(Fact::Detached),
            ("identity" | "absorbing" | "reflexive", None, None) => {
                Err(self.error(pair, format!("the fact '{word}' needs its number: {word}(0)")))
            }
            ("negates", _, None) => {
                Err(self.error(pair, "the fact 'negates' needs the name of an op: negates(aten::ne)"))
            }
            _ => {
                let known = [
                    "commutative",
                    "associative",
                    "identity",
                    "absorbing",
                    "reflexive",
                    "negates",
                    "odd",
                    "even",
                    "idempotent",
                    "involution",
                    "detached",
                ];
                Err(self.unknown(pair, "fact", word, &known))
            }
        }
    }

    fn trait_(&self, op: &mut OpText, pair: &Pair<'_, R>) -> Result<()> {
        let mut parts = pair.clone().into_inner();
        let word = parts.next().map_or("", |p| p.as_str());
        let argument = parts.next().map(|p| p.as_str());
        match (word, argument) {
            ("inplace", None) => op.inplace = true,
            ("out", name) => op.out = Some(name.unwrap_or("out").to_string()),
            ("same_type", None) => op.laws.push(Law::SameType),
            ("blocks", Some(n)) if n.parse::<usize>().is_ok() => {
                op.laws.push(Law::Blocks(n.parse().unwrap_or(0)));
            }
            ("blocks", _) => return Err(self.error(pair, "the trait 'blocks' needs their number: blocks(1)")),
            _ => return Err(self.unknown(pair, "trait", word, &["inplace", "out", "same_type", "blocks"])),
        }
        Ok(())
    }

    fn effect(&self, pair: &Pair<'_, R>) -> Result<Effects> {
        let word = pair.as_str();
        Effects::by_name(word)
            .ok_or_else(|| self.unknown(pair, "effect", word, &Effects::NAMED.map(|(name, _)| name)))
    }

    fn declaration(&self, item: Pair<'_, R>) -> Result<Declaration> {
        let mut declaration =
            Declaration { name: Symbol::new(""), summary: String::new(), parameters: Vec::new() };
        for part in item.into_inner() {
            match part.as_rule() {
                R::ident => declaration.name = Symbol::new(&format!("{}.{}", self.dialect, part.as_str())),
                R::parameters => {
                    for parameter in part.into_inner() {
                        let known: Vec<Symbol> = declaration.parameters.iter().map(|p| p.name).collect();
                        let read = self.parameter(parameter.clone())?;
                        self.is_new(&parameter, read.name, known.into_iter())?;
                        declaration.parameters.push(read);
                    }
                }
                R::string => declaration.summary = string(&part),
                _ => {}
            }
        }
        Ok(declaration)
    }

    /// A name that stands twice would mean the first one silently.
    fn is_new(
        &self,
        pair: &Pair<'_, R>,
        name: Symbol,
        mut known: impl Iterator<Item = Symbol>,
    ) -> Result<()> {
        match known.any(|other| other == name) {
            true => Err(self.error(pair, format!("'{name}' is declared twice"))),
            false => Ok(()),
        }
    }

    fn parameter(&self, item: Pair<'_, R>) -> Result<Parameter> {
        let (mut default, mut conditions) = (None, Vec::new());
        let mut parameter = Parameter {
            name: Symbol::new(""),
            kind: ParameterKind::Any,
            default: None,
            conditions: Vec::new(),
        };
        for part in item.into_inner() {
            match part.as_rule() {
                R::ident => parameter.name = Symbol::new(part.as_str()),
                R::kind => parameter.kind = self.kind(&part)?,
                R::value => {
                    parameter.default = Some(self.value(&part)?);
                    default = Some(part);
                }
                R::conditions => {
                    for condition in part.into_inner() {
                        parameter.conditions.push(self.condition(parameter.name, condition.clone())?);
                        conditions.push(condition);
                    }
                }
                _ => {}
            }
        }
        self.check_conditions(&parameter, &conditions)?;
        if let (Some(pair), Some(value)) = (default, &parameter.default) {
            let fault = |why| self.error(&pair, format!("the default of '{}' {why}", parameter.name));
            parameter.check(value).map_err(fault)?;
        }
        Ok(parameter)
    }

    /// Values that are listed are of the kind; only numbers are compared.
    fn check_conditions(&self, parameter: &Parameter, pairs: &[Pair<'_, R>]) -> Result<()> {
        let bare = Parameter { conditions: Vec::new(), ..parameter.clone() };
        for (condition, pair) in parameter.conditions.iter().zip(pairs) {
            match condition {
                Condition::In(values) => {
                    for value in values {
                        let fault =
                            |why| self.error(pair, format!("each value of '{}' {why}", parameter.name));
                        bare.check(value).map_err(fault)?;
                    }
                }
                Condition::Compare(..) => {
                    if !matches!(parameter.kind, ParameterKind::Int | ParameterKind::Float) {
                        let message =
                            format!("only numbers are compared; '{}' is {}", parameter.name, parameter.kind);
                        return Err(self.error(pair, message));
                    }
                }
            }
        }
        Ok(())
    }

    /// A value that is written out; a number must fit.
    fn value(&self, pair: &Pair<'_, R>) -> Result<Attr> {
        let Some(inner) = pair.clone().into_inner().next() else {
            return Err(Diagnostic::internal("a value without text"));
        };
        let fault = |_| self.error(pair, format!("the number {} is too large", inner.as_str()));
        Ok(match inner.as_rule() {
            R::string => Attr::Str(string(&inner).into()),
            R::boolean => Attr::Bool(inner.as_str().eq_ignore_ascii_case("true")),
            R::integer => {
                Attr::Int(inner.as_str().parse().map_err(|e: std::num::ParseIntError| fault(e.to_string()))?)
            }
            _ => Attr::Float(
                inner.as_str().parse().map_err(|e: std::num::ParseFloatError| fault(e.to_string()))?,
            ),
        })
    }

    fn kind(&self, pair: &Pair<'_, R>) -> Result<ParameterKind> {
        let word = pair.as_str();
        if let Some(kind) = ParameterKind::from_word(word) {
            return Ok(kind);
        }
        if let Some(name) = word.strip_prefix(&format!("{}.", self.dialect)) {
            return Ok(ParameterKind::Declared(Symbol::new(&format!("{}.{name}", self.dialect))));
        }
        let known =
            ["int", "float", "str", "bool", "type", "int[]", "float[]", "str[]", "tensor", "graph", "any"];
        Err(self.unknown(pair, "kind of parameter", word, &known))
    }

    fn condition(&self, owner: Symbol, pair: Pair<'_, R>) -> Result<Condition> {
        let (mut values, mut comparison, mut bound) = (Vec::new(), None, 0.0);
        for part in pair.clone().into_inner() {
            match part.as_rule() {
                R::ident if owner != part.as_str() => {
                    let message = format!("the condition speaks of '{}', not of '{owner}'", part.as_str());
                    return Err(self.error(&part, message));
                }
                R::value => values.push(self.value(&part)?),
                R::comparison => {
                    comparison = Comparison::ALL.iter().find(|(s, _)| *s == part.as_str()).map(|(_, c)| *c);
                }
                R::decimal => bound = part.as_str().parse().unwrap_or(0.0),
                _ => {}
            }
        }
        Ok(match comparison {
            Some(comparison) => Condition::Compare(comparison, bound),
            None => Condition::In(values),
        })
    }
}

/// The text between quotes.
fn string(pair: &Pair<'_, R>) -> String {
    let inner = pair.as_str().trim_matches('"');
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}

/// The names of types of the dialect in a schema: `fix.num`.
fn own_names<'s>(schema: &'s str, dialect: &str) -> Vec<&'s str> {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || c == ':';
    let words = schema.split(|c| !part(c));
    let own = |word: &&str| word.strip_prefix(dialect).is_some_and(|rest| rest.starts_with('.'));
    words.filter(own).collect()
}

/// Code without the indentation that all its lines have.
fn dedent(code: &str) -> String {
    let lines: Vec<&str> = code.lines().collect();
    let filled = |line: &&&str| !line.trim().is_empty();
    let indent = lines.iter().filter(filled).map(|l| l.len() - l.trim_start().len()).min().unwrap_or(0);
    let mut out = String::new();
    for line in lines.iter().skip_while(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        out.push_str(line.get(indent..).unwrap_or("").trim_end());
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}
