//! Facts of rows as rules. Each equation that a row states becomes the text of rules, for the dtypes for which such an
//! equation can hold; they are matched, checked and explained as rules that are written by hand are. This module knows no
//! op by name but negation and magnitude, of which facts speak.

use super::compile::{CompiledRule, compile};
use super::parse::parse;
use super::syntax;
use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::{Contract, Fact, Op, Promote, Registry, Variant};
use crate::ir::types::schema::Argument;
use crate::ir::{Symbol, TypeKind};
use std::fmt::Write as _;
use std::sync::Arc;

/// The group of these rules, as `rules check --group facts` knows it.
pub const GROUP: &str = "facts";

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
        all.extend(of_op(registry, op)?);
    }
    Ok(all)
}

/// The rules that follow from the facts of one row.
pub(super) fn of_op(registry: &Registry, op: &Op) -> Result<Vec<FactRule>> {
    let mut text = String::new();
    let facts = if op.variant() == Variant::Plain { op.def().facts } else { &[] };
    for fact in facts {
        if speaks_of_sign(fact) && registry.overloads(Symbol::new("aten::neg")).is_empty() {
            // A table without negation has no use for it.
            continue;
        }
        Equations::of(op, fact)?.into_iter().flat_map(|equations| equations.0).for_each(|line| {
            let _ = writeln!(text, "{line}");
        });
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

fn speaks_of_sign(fact: &Fact) -> bool {
    matches!(fact, Fact::Odd | Fact::Even) || matches!(fact, Fact::Under(_, inner) if speaks_of_sign(inner))
}

/// The lines that one fact becomes.
struct Equations(Vec<String>);

impl Equations {
    /// None for facts that are not equations.
    fn of(op: &Op, fact: &Fact) -> Result<Option<Equations>> {
        let (weakest, fact) = match fact {
            Fact::Under(contract, inner) => (*contract, **inner),
            plain => (Contract::Exact, *plain),
        };
        let schema = op.schema()?;
        let name = schema.qualified_name();
        let writer = Writer { op, name, arguments: &schema.arguments, weakest, lines: Vec::new() };
        match fact {
            Fact::Commutative => writer.commutative(),
            Fact::Associative => writer.associative(),
            Fact::Identity(e) => writer.identity(e),
            Fact::Odd => writer.odd(),
            Fact::Even => writer.even(),
            Fact::Idempotent => writer.idempotent(),
            Fact::Involution => writer.involution(),
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
    /// What floats keep.
    weakest: Contract,
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

    /// The number is written as an integer and as a float; the result must not be of another dtype than the operand.
    fn identity(mut self, e: f64) -> Result<Self> {
        let ty = self.first("identity")?;
        let f = self.name.clone();
        let tensor = self.is_tensor();
        let whole = (e.fract() == 0.0 && e.abs() < 1e15).then_some(e as i64);
        if let Some(n) = whole {
            let equation = format!("{f}(?x: {ty}, {n}) => ?x");
            let keeps = matches!(self.op.def().promote, Promote::Common | Promote::First | Promote::Number);
            if tensor && keeps {
                self.line(Contract::Exact, "identity", "-int", &equation, "is_integral(?x)");
            }
            let when = if tensor { "is_float(?x)" } else { "" };
            self.line(self.weakest, "identity", "", &equation, when);
        }
        if tensor {
            self.line(
                self.weakest,
                "identity",
                "-float",
                &format!("{f}(?x: {ty}, {e:?}) => ?x"),
                "is_float(?x)",
            );
        }
        Ok(self)
    }

    /// Integers have a smallest number without a counterpart, and those without a sign have none at all.
    fn odd(mut self) -> Result<Self> {
        let (ty, rest) = (self.tensor("odd")?, self.rest());
        let f = &self.name;
        let equation = format!("{f}(aten::neg(?x: {ty}){rest}) ~> aten::neg({f}(?x{rest}))");
        self.line(self.weakest, "odd", "", &equation, "is_float(?x)");
        Ok(self)
    }

    fn even(mut self) -> Result<Self> {
        let (ty, rest) = (self.tensor("even")?, self.rest());
        let f = self.name.clone();
        for (end, inner) in [("", "neg"), ("-abs", "abs")] {
            let equation = format!("{f}(aten::{inner}(?x: {ty}){rest}) => {f}(?x{rest})");
            self.line(self.weakest, "even", end, &equation, "is_float(?x)");
        }
        Ok(self)
    }

    fn idempotent(mut self) -> Result<Self> {
        let (ty, rest) = (self.first("idempotent")?, self.rest());
        let f = &self.name;
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
        let refuses_bool = self.is_tensor() && !self.op.def().accepts.contains(crate::tensor::DType::Bool);
        self.add("involution", &equation, if refuses_bool { "not is_bool(result)" } else { "" });
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
        for name in ["odd/aten.tanh", "commutative/aten.maximum-int", "identity/aten.mul.Scalar-float"] {
            assert!(named.iter().any(|known| known == name), "{name} is not among {named:?}");
        }
        // What is weaker for floats says so.
        let all = rules(&registry).expect("valid");
        let sign = all.iter().find(|fact| fact.rule.name == "odd/aten.sign").expect("it is odd but for -0");
        assert_eq!(sign.rule.contract, Contract::NanRelaxed);
    }
}
