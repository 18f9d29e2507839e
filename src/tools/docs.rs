//! Generated documentation: tables made from op rows and the list of passes. A test keeps them fresh.

use crate::dialects::{Effects, Family, Op, Registry, Variant};
use crate::passes;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// How often and with which dtypes each op is met in recorded cases that carry a graph (one JSON object a line).
pub fn recorded(cases: &str) -> BTreeMap<String, (usize, BTreeSet<String>)> {
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
pub fn ops(registry: &Registry, cases: &str) -> String {
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
        let fuses = def.family == Family::Elementwise && def.scalar.is_some() && def.eval.is_none();
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
            mark(def.grad.is_some()),
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

fn effects(effects: Effects) -> String {
    let names = [
        (Effects::READS_WORLD, "reads world"),
        (Effects::WRITES_WORLD, "writes world"),
        (Effects::RANDOM, "random"),
        (Effects::CONTROL, "control"),
        (Effects::NEVER_RETURNS, "never returns"),
    ];
    let met: Vec<&str> = names.iter().filter(|(e, _)| effects.contains(*e)).map(|(_, name)| *name).collect();
    met.join(", ")
}

/// `docs/passes.md`: every pass and named pipeline.
pub fn passes() -> String {
    let mut out = String::from(
        "# Passes\n\nGenerated; `BLESS=1 cargo test --test root docs` rewrites it. `flambeau opt FILE --passes 'a,b'` runs them.\n\n```\n",
    );
    out.push_str(&passes::pipeline::help());
    out.push_str("```\n");
    out
}
