//! Generated documentation: tables made from op rows and the list of passes. A test keeps them fresh.

use crate::dialects::{Effects, Family, Op, Registry, Variant};
use crate::passes;
use std::fmt::Write;

/// `docs/ops.md`: every op and what its row says.
pub fn ops(registry: &Registry) -> String {
    let plain: Vec<&Op> = registry.iter().filter(|op| op.variant() == Variant::Plain).collect();
    let mut out = format!(
        "# Operators\n\nGenerated from the op rows; `BLESS=1 cargo test --test root docs` rewrites it.\n\n\
         {} ops with {} overloads, in-place and `out=` forms that are derived included.\n\n\
         - **meaning**: `scalar` element by element (also folds and is lowered), `kernel` a reference kernel, \
         `text` TorchScript over other ops, `runtime` interpreted.\n\
         - **fuses**: becomes part of a kernel. **grad**: has a derivative. **forms**: `_` in place, `out`.\n\n",
        registry.names().count(),
        registry.iter().count()
    );
    out.push_str(
        "| schema | family | meaning | fuses | grad | forms | effects |\n|---|---|---|---|---|---|---|\n",
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
            "| `{}` | {} | {} | {} | {} | {} | {} |",
            op.schema_text().replace('|', "\\|"),
            family_name(def.family),
            meaning(op),
            mark(fuses),
            mark(def.grad.is_some()),
            forms.join(" "),
            effects(def.effects)
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
    out.push_str(&passes::PassSet::builtin().help());
    out.push_str("```\n");
    out
}
