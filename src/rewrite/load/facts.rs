//! Facts of rows as rules. Each equation that a row states becomes the text of rules, for the dtypes for which such an
//! equation can hold; they are matched, checked and explained as rules that are written by hand are. This module knows no
//! op by name but those of which facts speak: negation of numbers and of truth values, magnitude, and tensors of one number.

use super::compile::compile;
use super::parse::parse;
use super::rule::CompiledRule;
use super::syntax;
use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::{Contract, Fact, Given, Op, Promote, Registry, Variant};
use crate::ir::types::schema::Argument;
use crate::ir::{Symbol, Type, TypeKind};
use crate::tensor::DType;
use std::fmt::Write as _;
use std::sync::Arc;

/// The group of these rules, as `rules check --group facts` knows it.
pub const GROUP: &str = "facts";

/// Negation of numbers.
const NEG: &str = "aten::neg";
/// Negation of truth values in tensors, with what ends the names of its rules.
const NEGATIONS: &[(&str, &str)] = &[("aten::logical_not", ""), ("aten::bitwise_not", "-bits")];
/// Negation of a truth value.
const NOT: &str = "aten::__not__";

/// A rule that follows from a fact, with the row that states it.
#[derive(Clone)]
pub struct FactRule {
    /// The row.
    pub op: Op,
    /// The rule; its text names the overload, and its source is called `facts of DIALECT::OP`.
    pub rule: syntax::Rule,
}

/// The rules that follow from the facts of a table, as [`Registry::derived`] keeps them.
struct Facts(Result<Arc<[FactRule]>>);

/// The rules that follow from the facts of a table's rows, in the order of the rows. Fails where a fact makes no rule: the op
/// has no such arguments, or a literal that does not fit.
pub fn rules(registry: &Registry) -> Result<Arc<[FactRule]>> {
    registry.derived(|registry| Facts(derive(registry).map(Arc::from))).0.clone()
}

/// The same, resolved against the table.
pub(in crate::rewrite) fn compiled(registry: &Registry) -> Result<Vec<CompiledRule>> {
    let mut all = Vec::new();
    for fact in rules(registry)?.iter() {
        all.extend(readings(registry, fact)?);
    }
    Ok(all)
}

/// The ways to read a rule in which it speaks of the row that states it, and not of another overload.
pub fn readings(registry: &Registry, fact: &FactRule) -> Result<Vec<CompiledRule>> {
    let mut readings = compile(registry, &fact.rule)?;
    readings.retain(|rule| rule.is_about(&fact.op));
    Ok(readings)
}

fn derive(registry: &Registry) -> Result<Vec<FactRule>> {
    let mut all = Vec::new();
    for op in registry.iter() {
        all.extend(of_op(registry, op, &|_| true)?);
    }
    Ok(all)
}

/// The rules that follow from the facts of one row, of which those are left out that speak of an op which is not `met`: a program
/// without that op has no use for them, nor has a table without it.
pub(super) fn of_op(registry: &Registry, op: &Op, met: &dyn Fn(Symbol) -> bool) -> Result<Vec<FactRule>> {
    let mut text = String::new();
    let facts = if op.variant() == Variant::Plain { op.def().facts } else { &[] };
    let is_met = |name: &str| {
        let name = Symbol::new(name);
        met(name) && !registry.overloads(name).is_empty()
    };
    for fact in facts {
        Equations::of(op, fact, registry, &is_met)?.into_iter().flat_map(|equations| equations.0).for_each(
            |line| {
                let _ = writeln!(text, "{line}");
            },
        );
    }
    let mut all = Vec::new();
    if text.is_empty() {
        return Ok(all);
    }
    for mut rule in parse(&Source::new(format!("facts of {}", op.full_name()), text))? {
        rule.group = Some(GROUP.to_string());
        let fact = FactRule { op: op.clone(), rule };
        if readings(registry, &fact)?.is_empty() {
            let message = format!("a fact of {} makes no rule", op.full_name());
            return Err(Diagnostic::input(message).at(&fact.rule.span));
        }
        all.push(fact);
    }
    Ok(all)
}

/// The equation that a fact states, without what is said of contracts and sides.
fn equation(fact: &Fact) -> &Fact {
    match fact {
        Fact::Under(_, inner) | Fact::TwoSided(inner) => equation(inner),
        plain => plain,
    }
}

/// Ops besides its own of which the right sides of a row's facts speak, where the ops of which the left sides speak are `met`.
pub(super) fn named(op: &Op, met: &dyn Fn(Symbol) -> bool) -> Vec<Symbol> {
    let mut names = Vec::new();
    let is_negated =
        || NEGATIONS.iter().map(|(name, _)| *name).chain([NOT]).any(|name| met(Symbol::new(name)));
    for fact in op.def().facts {
        match equation(fact) {
            Fact::Odd | Fact::Even => names.push(Symbol::new(NEG)),
            Fact::Negates(other) if is_negated() => names.push(Symbol::new(other)),
            Fact::Reflexive(Given::Truth(x)) => names.push(Symbol::new(filled(f64::from(u8::from(*x))))),
            Fact::Reflexive(Given::Number(x)) | Fact::Absorbing(x) => names.push(Symbol::new(filled(*x))),
            _ => {}
        }
    }
    names
}

/// The op that makes a tensor like another, with one number everywhere.
fn filled(number: f64) -> &'static str {
    match number {
        0.0 => "aten::zeros_like",
        1.0 => "aten::ones_like",
        _ => "aten::full_like",
    }
}

/// A number without a fraction that both int and float hold.
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64)
}

/// A number as a rule writes it where an argument or result is of a type; None where that has no such number.
fn literal(ty: &Type, number: f64) -> Option<String> {
    match ty.kind() {
        TypeKind::Int => whole(number).map(|n| n.to_string()),
        TypeKind::Float => Some(format!("{number:?}")),
        TypeKind::Bool if number == 0.0 => Some("false".to_string()),
        TypeKind::Bool if number == 1.0 => Some("true".to_string()),
        _ => None,
    }
}

/// The lines that one fact becomes.
struct Equations(Vec<String>);

impl Equations {
    /// None for facts that are not equations.
    fn of(
        op: &Op,
        fact: &Fact,
        registry: &Registry,
        met: &dyn Fn(&str) -> bool,
    ) -> Result<Option<Equations>> {
        let (weakest, fact) = match fact {
            Fact::Under(contract, inner) => (*contract, **inner),
            plain => (Contract::Exact, *plain),
        };
        let (two_sided, fact) = match fact {
            Fact::TwoSided(inner) => (true, *inner),
            plain => (false, plain),
        };
        let schema = op.schema()?;
        let name = schema.qualified_name();
        let arguments = &schema.arguments;
        let gives = schema.returns.first().map(|result| &result.ty);
        let lines = Vec::new();
        let writer = Writer { op, name, arguments, gives, registry, met, weakest, two_sided, lines };
        match fact {
            _ if two_sided && !matches!(fact, Fact::Identity(_) | Fact::Absorbing(_)) => {
                Err(writer.misfit("two-sided", "states another equation than 'identity' and 'absorbing'"))
            }
            Fact::Commutative => writer.commutative(),
            Fact::Associative => writer.associative(),
            Fact::Identity(e) => writer.identity(e),
            Fact::Odd => writer.odd(),
            Fact::Even => writer.even(),
            Fact::Idempotent => writer.idempotent(),
            Fact::Involution => writer.involution(),
            Fact::Absorbing(e) => writer.absorbing(e),
            Fact::Reflexive(given) => writer.reflexive(given),
            Fact::Negates(other) => writer.negates(other),
            _ => return Ok(None),
        }
        .map(|writer| Some(Equations(writer.lines)))
    }
}

/// Writes the rules of one fact of one op.
struct Writer<'a> {
    op: &'a Op,
    /// `aten::add.Tensor`
    name: String,
    arguments: &'a [Argument],
    /// The type of the result.
    gives: Option<&'a Type>,
    registry: &'a Registry,
    /// Whether the rules may speak of an op.
    met: &'a dyn Fn(&str) -> bool,
    /// What floats keep.
    weakest: Contract,
    /// Whether the equation holds with the operands exchanged.
    two_sided: bool,
    lines: Vec<String>,
}

impl Writer<'_> {
    /// Both operands change places; further arguments have their defaults.
    fn commutative(mut self) -> Result<Self> {
        let ty = self.operands::<2>("commutative")?;
        let f = &self.name;
        let equation = format!("{f}(?x: {ty}, ?y: {ty}) ~> {f}(?y, ?x)");
        // Where dtypes differ, which operand is a tensor of rank 0 and which is rounded first depends on their positions; an
        // infinite complex number does not survive the factor of a sum.
        let when = if self.is_tensor() { "same_dtype(?x, ?y) and not is_complex(?x)" } else { "" };
        self.add("commutative", &equation, when);
        Ok(self)
    }

    fn associative(mut self) -> Result<Self> {
        let ty = self.operands::<2>("associative")?;
        let f = &self.name;
        let equation = format!("{f}({f}(?x: {ty}, ?y: {ty}), ?z: {ty}) ~> {f}(?x, {f}(?y, ?z))");
        let alike = "same_dtype(?x, ?y) and same_dtype(?y, ?z) and not is_complex(?x)";
        self.add("associative", &equation, if self.is_tensor() { alike } else { "" });
        Ok(self)
    }

    fn identity(self, e: f64) -> Result<Self> {
        self.with_number("identity", e, "?x", "?x")
    }

    fn absorbing(mut self, e: f64) -> Result<Self> {
        if !self.is_tensor() {
            let Some(number) = self.gives.and_then(|ty| literal(ty, e)) else {
                return Err(self.misfit("absorbing", &format!("gives nothing that can be {e}")));
            };
            return self.with_number("absorbing", e, &number, &number);
        }
        let op = filled(e);
        if !(self.met)(op) {
            self.lines.clear();
            return Ok(self);
        }
        let like = |number: String| match op {
            "aten::full_like" => format!("{op}(?x, {number})"),
            _ => format!("{op}(?x)"),
        };
        let int = whole(e).map_or_else(String::new, |n| like(n.to_string()));
        self.with_number("absorbing", e, &int, &like(format!("{e:?}")))
    }

    /// `f(x, e)` is something. For tensors the number is written as an integer and as a float; the result must not be of
    /// another dtype than the operand.
    fn with_number(mut self, fact: &str, e: f64, int: &str, float: &str) -> Result<Self> {
        let ty = self.first(fact)?;
        let f = self.name.clone();
        if !self.is_tensor() {
            let Some(number) = literal(&self.arguments[0].ty, e) else {
                return Err(self.misfit(fact, &format!("takes nothing that can be {e}")));
            };
            self.line(self.weakest, fact, "", &format!("{f}(?x: {ty}, {number}) => {int}"), "");
            if self.two_sided {
                self.operands::<2>("two-sided")?;
                self.line(self.weakest, fact, "-left", &format!("{f}({number}, ?x: {ty}) => {int}"), "");
            }
            return Ok(self);
        }
        if self.two_sided {
            return Err(self.misfit("two-sided", "takes a tensor first, which no number is"));
        }
        let takes_floats = self.op.def().accepts.contains(DType::F32);
        if let Some(n) = whole(e) {
            let equation = format!("{f}(?x: {ty}, {n}) => {int}");
            let keeps = matches!(self.op.def().promote, Promote::Common | Promote::First | Promote::Number);
            if keeps {
                self.line(Contract::Exact, fact, "-int", &equation, "is_integral(?x)");
            }
            if takes_floats {
                self.line(self.weakest, fact, "", &equation, "is_float(?x)");
            }
        }
        if takes_floats {
            let equation = format!("{f}(?x: {ty}, {e:?}) => {float}");
            self.line(self.weakest, fact, "-float", &equation, "is_float(?x)");
        }
        Ok(self)
    }

    /// What the op refuses stays refused. Where only the weaker contract admits floats, integers are exact; bools may be refused
    /// by arithmetic, and are operands of comparisons alone.
    fn reflexive(mut self, given: Given) -> Result<Self> {
        let ty = self.operands::<2>("reflexive")?;
        let f = self.name.clone();
        let (number, truth) = match given {
            Given::Number(x) => (x, false),
            Given::Truth(x) => (f64::from(u8::from(x)), true),
        };
        if !self.is_tensor() {
            let is_truth = self.gives.is_some_and(|ty| matches!(ty.kind(), TypeKind::Bool));
            let value = self.gives.filter(|_| is_truth == truth).and_then(|ty| literal(ty, number));
            let Some(value) = value else {
                return Err(self.misfit("reflexive", "does not give values of that kind"));
            };
            self.line(self.weakest, "reflexive", "", &format!("{f}(?x: {ty}, ?x) => {value}"), "");
            return Ok(self);
        }
        let op = filled(number);
        if !(self.met)(op) {
            return Ok(self);
        }
        let value = match op {
            _ if truth => format!("{op}(?x, dtype={})", DType::Bool.code()),
            "aten::full_like" => format!("{op}(?x, {number:?})"),
            _ => format!("{op}(?x)"),
        };
        let equation = format!("{f}(?x: {ty}, ?x) => {value}");
        let refused = self.not_refused();
        match (self.weakest, truth) {
            (Contract::Exact, _) => self.line(Contract::Exact, "reflexive", "", &equation, &refused),
            (weakest, true) => {
                self.line(weakest, "reflexive", "", &equation, &refused);
                let integers = "is_integral(?x) or is_bool(?x)";
                self.line(Contract::Exact, "reflexive", "-int", &equation, integers);
            }
            (weakest, false) => {
                self.line(weakest, "reflexive", "", &equation, "is_float(?x)");
                self.line(Contract::Exact, "reflexive", "-int", &equation, "is_integral(?x)");
            }
        }
        Ok(self)
    }

    /// A number among the arguments is an int or a float. Under a weaker contract integers are exact, if all operands are.
    fn negates(mut self, other: &str) -> Result<Self> {
        let negations: &[(&str, &str)] = match self.gives.map(Type::kind) {
            Some(TypeKind::Bool) => &[(NOT, "")],
            Some(TypeKind::Tensor(_)) if self.op.def().promote == Promote::Bool => NEGATIONS,
            // Bits of other numbers than truth values are negated otherwise.
            Some(TypeKind::Tensor(_)) => &NEGATIONS[..1],
            _ => return Err(self.misfit("negates", "gives no truth value")),
        };
        let overload = self.op.schema()?.overload.as_str();
        let other = match self.registry.overloads(Symbol::new(other)) {
            rows if rows.iter().any(|row| row.schema().is_ok_and(|s| s.overload == overload)) => {
                self.name.replacen(self.op.name().as_str(), other, 1)
            }
            _ => other.to_string(),
        };
        let arguments = self.arguments;
        let has_number = arguments.iter().any(|a| matches!(a.ty.kind(), TypeKind::Number));
        let numbers: &[(&str, &str)] =
            if has_number { &[("int", "-by-int"), ("float", "-by-float")] } else { &[("", "")] };
        let is_met = |(negation, _): &&(&str, &str)| (self.met)(negation);
        let negations: Vec<_> = negations.iter().filter(is_met).collect();
        for ((negation, bits), (number, by)) in
            negations.into_iter().flat_map(|negation| numbers.iter().map(move |number| (negation, number)))
        {
            let given = |a: &Argument| match a.ty.kind() {
                TypeKind::Number => format!("?{}: {number}", a.name),
                _ if a.ty.has_free_vars() => format!("?{}: Any", a.name),
                _ => format!("?{}: {}", a.name, a.ty),
            };
            let left: Vec<String> = arguments.iter().map(given).collect();
            let right: Vec<String> = arguments.iter().map(|a| format!("?{}", a.name)).collect();
            let equation =
                format!("{negation}({}({})) => {other}({})", self.name, left.join(", "), right.join(", "));
            self.line(self.weakest, "negates", &format!("{bits}{by}"), &equation, "");
            if self.weakest != Contract::Exact && self.is_tensor() && *number != "float" {
                let tensors = arguments.iter().filter(|a| matches!(a.ty.kind(), TypeKind::Tensor(_)));
                let integers: Vec<String> =
                    tensors.map(|a| format!("(is_integral(?{0}) or is_bool(?{0}))", a.name)).collect();
                let end = format!("{bits}{by}-int");
                self.line(Contract::Exact, "negates", &end, &equation, &integers.join(" and "));
            }
        }
        Ok(self)
    }

    /// Dtypes that the op takes: what it refuses stays refused.
    fn not_refused(&self) -> String {
        let accepts = self.op.def().accepts;
        let kinds = [(DType::Bool, "is_bool"), (DType::F32, "is_float"), (DType::C64, "is_complex")];
        let refused = kinds.iter().filter(|(dtype, _)| !accepts.contains(*dtype));
        refused.map(|(_, test)| format!("not {test}(?x)")).collect::<Vec<_>>().join(" and ")
    }

    /// Integers have a smallest number without a counterpart, and those without a sign have none at all.
    fn odd(mut self) -> Result<Self> {
        let (ty, rest) = (self.tensor("odd")?, self.rest());
        if !(self.met)(NEG) {
            return Ok(self);
        }
        let f = &self.name;
        let equation = format!("{f}(aten::neg(?x: {ty}){rest}) ~> aten::neg({f}(?x{rest}))");
        self.line(self.weakest, "odd", "", &equation, "is_float(?x)");
        Ok(self)
    }

    fn even(mut self) -> Result<Self> {
        let (ty, rest) = (self.tensor("even")?, self.rest());
        if !(self.met)(NEG) {
            return Ok(self);
        }
        let f = self.name.clone();
        for (end, inner) in [("", "neg"), ("-abs", "abs")] {
            let equation = format!("{f}(aten::{inner}(?x: {ty}){rest}) => {f}(?x{rest})");
            self.line(self.weakest, "even", end, &equation, "is_float(?x)");
        }
        Ok(self)
    }

    /// Of one operand f(f(x)) = f(x), of two of one type f(x, x) = x.
    fn idempotent(mut self) -> Result<Self> {
        let ty = self.first("idempotent")?;
        let f = &self.name;
        if let [first, second] = self.arguments
            && first.ty == second.ty
        {
            let equation = format!("{f}(?x: {ty}, ?x) => ?x");
            let when = match self.op.def().promote {
                _ if !self.is_tensor() => String::new(),
                // Other numbers become truth values.
                Promote::Bool => "is_bool(?x)".to_string(),
                _ => self.not_refused(),
            };
            self.add("idempotent", &equation, &when);
            return Ok(self);
        }
        let rest = self.rest();
        let equation = format!("{f}({f}(?x: {ty}{rest}){rest}) => {f}(?x{rest})");
        // Complex numbers of one direction are rounded again.
        let when = if self.is_tensor() { "not is_complex(?x)" } else { "" };
        self.add("idempotent", &equation, when);
        Ok(self)
    }

    /// What the op refuses stays refused.
    fn involution(mut self) -> Result<Self> {
        let ty = self.first("involution")?;
        let f = &self.name;
        let equation = format!("{f}({f}(?x: {ty})) => ?x");
        let refuses_bool = self.is_tensor() && !self.op.def().accepts.contains(DType::Bool);
        let when = match self.op.def().promote {
            Promote::Bool if self.is_tensor() => "is_bool(?x)",
            _ if refuses_bool => "not is_bool(result)",
            _ => "",
        };
        self.add("involution", &equation, when);
        Ok(self)
    }

    /// A rule under the fact's contract, and where that is weak one for integers, which keep the equation.
    fn add(&mut self, fact: &str, equation: &str, when: &str) {
        self.line(self.weakest, fact, "", equation, when);
        if self.weakest != Contract::Exact && self.is_tensor() {
            let and = if when.is_empty() { "" } else { " and " };
            self.line(
                Contract::Exact,
                fact,
                "-int",
                equation,
                &format!("{when}{and}(is_integral(?x) or is_bool(?x))"),
            );
        }
    }

    fn line(&mut self, contract: Contract, fact: &str, end: &str, equation: &str, when: &str) {
        let op = self.name.replace("::", ".");
        let when = if when.is_empty() { String::new() } else { format!(" if {when}") };
        self.lines.push(format!("rule {fact}/{op}{end} {} {equation}{when}", contract.name()));
    }

    fn is_tensor(&self) -> bool {
        self.arguments.first().is_some_and(|a| matches!(a.ty.kind(), TypeKind::Tensor(_)))
    }

    /// The type of the first argument.
    fn first(&self, fact: &str) -> Result<String> {
        match self.arguments.first() {
            Some(first) => Ok(first.ty.to_string()),
            None => Err(self.misfit(fact, "takes no argument")),
        }
    }

    fn tensor(&self, fact: &str) -> Result<String> {
        if self.is_tensor() {
            self.first(fact)
        } else {
            Err(self.misfit(fact, "takes no tensor, which has a sign"))
        }
    }

    /// The type that the first arguments have in common.
    fn operands<const N: usize>(&self, fact: &str) -> Result<String> {
        let ty = self.first(fact)?;
        let alike = self.arguments.iter().take(N).filter(|a| a.ty == self.arguments[0].ty).count();
        if alike == N {
            Ok(ty)
        } else {
            Err(self.misfit(fact, &format!("does not take {N} operands of one type")))
        }
    }

    /// Variables for the arguments after the first, each with its type.
    fn rest(&self) -> String {
        let rest = self.arguments.iter().skip(1);
        rest.map(|a| format!(", {}=?{}: {}", a.name, a.name, a.ty)).collect()
    }

    fn misfit(&self, fact: &str, why: &str) -> Diagnostic {
        Diagnostic::input(format!("the fact '{fact}' of {}: the op {why}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Graph, PrintOptions, parse_graph};
    use crate::rewrite::{Settings, builtin, simplify};

    /// The orders of a chain of an associative op are more than any budget.
    #[test]
    fn a_long_chain_leaves_nodes_to_other_rules() {
        let ints = "Long(8, strides=[1], requires_grad=0, device=cpu)";
        let floats = "Float(8, strides=[1], requires_grad=0, device=cpu)";
        let mut text = format!("graph(%x : {floats}, %v0 : {ints}");
        (1..80).for_each(|n| text += &format!(", %x{n} : {ints}"));
        text += "):\n";
        for n in 1..80 {
            text += &format!("  %v{n} : {ints} = aten::maximum(%v{}, %x{n})\n", n - 1);
        }
        text += &format!("  %a : {floats} = aten::ceil(%x)\n  %b : {floats} = aten::floor(%a)\n");
        text += &format!("  %c : {floats} = aten::mul(%b, %v79)\n  return (%c)\n");
        let registry = Registry::builtin();
        let rules = builtin(&registry).expect("the built-in rules are valid");
        let mut graph: Graph = parse_graph(&text).expect("a graph");
        let report = simplify(&mut graph, &registry, None, &rules, &Settings::default()).expect("simplifies");
        let written = graph.to_text(&PrintOptions::bare());
        assert!(!written.contains("aten::floor"), "{written}");
        assert_eq!((report.replaced, written.matches("aten::maximum").count()), (1, 79));
    }

    #[test]
    fn each_built_in_fact_becomes_rules() {
        let registry = Registry::builtin();
        let named: Vec<String> =
            rules(&registry).expect("valid").iter().map(|f| f.rule.name.clone()).collect();
        for name in [
            "odd/aten.tanh",
            "commutative/aten.maximum-int",
            "identity/aten.mul.Scalar-float",
            "identity/aten.add.int-left",
            "absorbing/aten.mul.Scalar-int",
            "reflexive/aten.eq.Tensor-int",
            "negates/aten.lt.Scalar-bits-by-int-int",
            "idempotent/aten.maximum",
        ] {
            assert!(named.iter().any(|known| known == name), "{name} is not among {named:?}");
        }
        // What is weaker for floats says so.
        let all = rules(&registry).expect("valid");
        let sign = all.iter().find(|fact| fact.rule.name == "odd/aten.sign").expect("it is odd but for -0");
        assert_eq!(sign.rule.contract, Contract::NanRelaxed);
    }
}
