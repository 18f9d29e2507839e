//! The text of the generated pages: `docs/ops.md`, `docs/passes.md`, `docs/rules.md`, `docs/math.md`, from op rows, rules and the list of passes.

use crate::accuracy::functions::FUNCTIONS;
use flambeau::diag::{Result, Source};
use flambeau::dialects::{Family, Op, Registry, Variant};
use flambeau::rewrite;
use flambeau::rewrite::syntax::{Arrow, Condition, Rule, RuleTerm, TermKind};
use flambeau::toolkit::Toolkit;
use flambeau::tools::docs::effects;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// How often and with which dtypes each op is met in recorded cases that carry a graph (one JSON object a line).
fn recorded(cases: &str) -> BTreeMap<String, (usize, BTreeSet<String>)> {
    let mut met: BTreeMap<String, (usize, BTreeSet<String>)> = BTreeMap::new();
    for line in cases.lines() {
        let Ok(case) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let graph = case["graph"].as_str().unwrap_or_default();
        let names: BTreeSet<&str> = graph
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
            .filter(|word| word.starts_with("aten::"))
            .collect();
        let dtype = case["args"][0]["tensor"]["dtype"].as_str().unwrap_or_default();
        for name in names {
            let entry = met.entry(name.to_string()).or_default();
            entry.0 += 1;
            entry.1.insert(dtype.to_string());
        }
    }
    met
}

/// `docs/ops.md`: every op, what its row says, and what of it was recorded.
pub(super) fn ops(registry: &Registry, cases: &str) -> String {
    let recorded = recorded(cases);
    let plain: Vec<&Op> = registry.iter().filter(|op| op.variant() == Variant::Plain).collect();
    let mut out = format!(
        "# Operators\n\nGenerated from the op rows; `BLESS=1 cargo test --test root docs` rewrites it.\n\n\
         {} ops with {} overloads, in-place and `out=` forms that are derived included.\n\n\
         - **meaning**: `scalar` element by element (also folds and is lowered), `kernel` a reference kernel, \
         `text` TorchScript over other ops, `runtime` interpreted.\n\
         - **fuses**: becomes part of a kernel. **grad**: has a derivative. **forms**: `_` in place, `out`.\n\
         - **recorded**: answers of PyTorch in tests/golden/ops.jsonl for the op (all its overloads), and the dtypes of \
         their first arguments.\n\n",
        registry.names().count(),
        registry.iter().count()
    );
    out.push_str(
        "| schema | family | meaning | fuses | grad | forms | effects | recorded |\n|---|---|---|---|---|---|---|---|\n",
    );
    for op in plain {
        let def = op.def();
        let elementwise = def.family == Family::Elementwise && def.scalar.is_some() && def.eval.is_none();
        let fuses = elementwise || def.rows.is_some();
        let mut forms = Vec::new();
        if def.inplace {
            forms.push("`_`");
        }
        if def.out.is_some() {
            forms.push("`out`");
        }
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} | {} | {} |",
            op.schema_text().replace('|', "\\|"),
            family_name(def.family),
            meaning(op),
            mark(fuses),
            mark(def.grad.is_some() || registry.grads().cell(op.full_name()).is_some()),
            forms.join(" "),
            effects(def.effects),
            recorded.get(op.name().as_str()).map_or(String::new(), |(count, dtypes)| {
                let dtypes: Vec<&str> = dtypes.iter().map(String::as_str).collect();
                format!("{count}: {}", dtypes.join(" "))
            })
        );
    }
    out
}

fn mark(yes: bool) -> &'static str {
    if yes { "yes" } else { "" }
}

fn meaning(op: &Op) -> &'static str {
    let def = op.def();
    if def.eval.is_some() {
        "kernel"
    } else if def.scalar.is_some() {
        "scalar"
    } else if def.meaning.is_some() {
        "text"
    } else {
        "runtime"
    }
}

fn family_name(family: Family) -> String {
    format!("{family:?}").to_lowercase()
}

/// `docs/passes.md`: every pass and named pipeline.
pub(super) fn passes() -> String {
    let mut out = String::from(
        "# Passes\n\nGenerated; `BLESS=1 cargo test --test root docs` rewrites it. `flambeau opt FILE --passes 'a,b'` runs them.\n\n```\n",
    );
    out.push_str(&Toolkit::default().passes().help());
    out.push_str("```\n");
    out
}

/// `docs/rules.md`: every built-in rewrite rule with its law.
pub(super) fn rules() -> Result<String> {
    let mut out = String::from(RULES);
    let (mut count, mut themes) = (0, String::new());
    for (file, text) in rewrite::BUILTIN {
        let rules = rewrite::parse(&Source::new(*file, *text))?;
        count += rules.len();
        let head = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
        let theme = head.collect::<Vec<_>>().join(" ");
        let _ = write!(themes, "\n## {file}\n\n{theme}\n\n");
        themes.push_str(HEAD);
        let mut law = String::new();
        for rule in &rules {
            // A comment is the law of the rules up to the next one.
            if !rule.doc.is_empty() {
                law.clone_from(&rule.doc);
            }
            themes.push_str(&row(rule, &law));
        }
    }
    let facts = rewrite::facts::rules(&Registry::builtin())?;
    let _ = writeln!(
        out,
        "{count} rules in {} files, and {} that follow from facts of rows.",
        rewrite::BUILTIN.len(),
        facts.len()
    );
    out.push_str(&themes);
    out.push_str(FACTS);
    for fact in facts.iter() {
        out.push_str(&row(&fact.rule, fact.op.def().summary));
    }
    Ok(out)
}

const RULES: &str = "\
# Rewrite rules

Generated from `src/rewrite/rules/`; `BLESS=1 cargo test --test root docs` rewrites it. How to write one:
[add-a-rule.md](add-a-rule.md). A rule without a group belongs to pass `simplify` alone.

";

const HEAD: &str =
    "| rule | contract | group | becomes | law | left and right side |\n|---|---|---|---|---|---|\n";

const FACTS: &str = "
## Facts of rows

Equations that rows state (`.facts(&[Fact::Odd])`, `facts odd` in a dialect file), as the rules that they become. Each is
named by its fact and its overload.

| rule | contract | group | becomes | op | left and right side |
|---|---|---|---|---|---|
";

fn row(rule: &Rule, law: &str) -> String {
    format!(
        "| {} | {} | {} | {} | {} | `{}` |\n",
        rule.name,
        rule.contract.name(),
        rule.group.as_deref().unwrap_or(""),
        becomes(rule),
        law.replace('|', "\\|"),
        sides(rule).replace('|', "\\|")
    )
}

/// What a rule makes of the term that it matches.
fn becomes(rule: &Rule) -> &'static str {
    if rule.arrow != Arrow::Becomes {
        return "either";
    }
    match &rule.right.kind {
        TermKind::Variable(..) | TermKind::Rest(..) => "an operand",
        TermKind::Literal(_) | TermKind::Compute(_) => "a constant",
        TermKind::List(_) => "a list",
        TermKind::Op(_) => "another op",
    }
}

/// Both sides and the conditions as written, on one line.
fn sides(rule: &Rule) -> String {
    let text = |term: &RuleTerm| rewrite::on_one_line(term.span.text());
    let arrow = rule.arrow.text();
    let when = match rule.conditions.as_slice() {
        [] => String::new(),
        [one] => format!(" if {one}"),
        several => format!(" if {}", Condition::All(several.to_vec())),
    };
    format!("{} {arrow} {}{when}", text(&rule.left), text(&rule.right))
}

/// `docs/math.md`: how good the compiled functions are.
pub(super) fn math() -> String {
    let mut out = String::from(MATH);
    out.push_str("| function | bound, ulp | results below the smallest normal |\n|---|---|---|\n");
    // One that was measured by either operand is listed once.
    let mut listed = "";
    for function in FUNCTIONS.iter() {
        if std::mem::replace(&mut listed, function.name) == function.name {
            continue;
        }
        let small = if function.flushes { "0" } else { "kept" };
        let _ = writeln!(out, "| {} | {} | {small} |", function.name, function.bound);
    }
    out.push_str(MATH_END);
    out
}

const MATH: &str = "\
# Elementary functions

The table is generated; `BLESS=1 cargo test --test root docs` rewrites it.

Compiled kernels have functions of float32 of their own: short polynomials that fuse with their neighbours, take no
library call, and are the same on the vectors of a CPU and on a GPU. Each has a bound on its error against the true value,
in units in the last place of the nearest float32. The tests try a sample of all inputs against the bound;

    cargo run --release --example ulp

tries all 2^32, prints the largest error found with its input, and fails if a bound does not hold. NaN stays NaN; infinities,
signed zeros and overflow come out as in C.

";

const MATH_END: &str = "
How they work:

- **exp, exp2, expm1**: the argument is split in n ln 2 + r with |r| at most half of ln 2 (ln 2 in two parts, the first short, so
  that n times it is exact); e^r is a polynomial; the power of two is put in by the exponent bits, in two steps where one
  would overflow. The integer n comes from adding 1.5 * 2^23, which rounds in the low bits of a float.
- **log, log2, log10, log1p**: the mantissa is brought between the roots of 1/2 and 2; ln(1 + f) = f - f^2/2 + f^3 P(f); the
  exponent is added last. log1p corrects for the rounding of 1 + x.
- **tanh**: an odd polynomial below 0.8 in magnitude, 1 - 2 / (e^2x + 1) above.
- **erf**: an odd polynomial below 0.9; above, 1 - e^P(x) until it is 1.
- **sin, cos**: the argument is split in n pi/2 + r with |r| at most pi/4, r in two parts; both polynomials are evaluated and the one of the quadrant
  is taken. Up to 100,000 in magnitude three parts of pi/2 are subtracted; beyond, the bits of 2/pi that matter are multiplied with the mantissa in
  integers, behind a branch that vectors without such arguments do not take.
- **tan**: an odd polynomial of the same r, or minus its inverse.
- **asin, acos**: an odd polynomial up to 1/2; above, twice that of the root of (1 - x) / 2, with what the root lost.
- **atan, atan2**: an odd polynomial of the quotient of the smaller by the larger coordinate, from a multiple of pi/2 on in two parts. atan2 was
  measured over all values of each coordinate, with one value of the other.
- **pow**: 2^(y log2 x) in float64, rounded once; the logarithm by the area tangent of (m - 1) / (m + 1). It was measured with one exponent.
- Remainders (`fmod`) are exact: x - n y by one fused operation where the quotient fits into a float, the C library where not.
- **sigmoid** is 1 / (1 + e^-x), as its row says, and has the error of that formula.

Coefficients were fitted by Remez exchange in 50 digits. float16 and bfloat16 are computed in float32 and rounded once.
Functions of float64, and those without a line here, are called from the C library, or, on a GPU, the group stays on
the CPU.
";
