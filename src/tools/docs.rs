//! `flambeau docs`: pages about dialects, made from their op rows.

use crate::diag::{Diagnostic, Result, nearest};
use crate::dialects::constraint::{Declaration, Law, Parameter};
use crate::dialects::{Effects, Op, Registry};
use std::fmt::Write;

/// The page of the dialects of a registry: ops with their summaries, demands and meanings, types, attributes. `only` names
/// dialects; empty means those of text files, or all where there are none.
pub fn dialects(registry: &Registry, only: &[String]) -> Result<String> {
    for name in only {
        if !registry.has_dialect(name) {
            let error = Diagnostic::usage(format!("there is no dialect '{name}'"));
            return Err(match nearest(name, registry.dialects()) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error,
            });
        }
    }
    let has_declared = registry.has_declared();
    let wanted = |dialect: &str, declared: bool| {
        if only.is_empty() { declared || !has_declared } else { only.iter().any(|o| o == dialect) }
    };
    let mut out = String::new();
    for dialect in registry.dialects() {
        let ops: Vec<&Op> = registry
            .iter()
            .filter(|op| op.name().namespace() == dialect && wanted(dialect, op.def().declared))
            .collect();
        let prefix = format!("{dialect}.");
        let types = registry.declared_types().filter(|t| t.name.as_str().starts_with(&prefix));
        let types: Vec<&Declaration> = types.filter(|_| wanted(dialect, true)).collect();
        let attributes = registry.declared_attributes().filter(|a| a.name.as_str().starts_with(&prefix));
        let attributes: Vec<&Declaration> = attributes.filter(|_| wanted(dialect, true)).collect();
        if ops.is_empty() && types.is_empty() && attributes.is_empty() {
            continue;
        }
        let _ = writeln!(out, "# The dialect {dialect}\n");
        declarations(&mut out, "type", &types);
        declarations(&mut out, "attribute", &attributes);
        for op in ops {
            op_page(&mut out, op);
        }
    }
    Ok(out)
}

fn declarations(out: &mut String, what: &str, all: &[&Declaration]) {
    for declaration in all {
        let parameters: Vec<String> = declaration.parameters.iter().map(Parameter::to_text).collect();
        let inside =
            if parameters.is_empty() { String::new() } else { format!("<{}>", parameters.join(", ")) };
        let _ = writeln!(out, "## {what} `{}{inside}`\n\n{}\n", declaration.name, declaration.summary);
    }
}

fn op_page(out: &mut String, op: &Op) {
    let def = op.def();
    let _ = writeln!(out, "## `{}`\n", op.schema_text());
    if !def.summary.is_empty() {
        let _ = writeln!(out, "{}\n", def.summary);
    }
    let mut facts: Vec<String> = def.facts.iter().map(|f| format!("{f:?}").to_lowercase()).collect();
    let effects = effects(def.effects);
    if !effects.is_empty() {
        facts.push(effects);
    }
    if !facts.is_empty() {
        let _ = writeln!(out, "- {}", facts.join(", "));
    }
    for law in def.laws {
        let _ = match law {
            Law::SameType => writeln!(out, "- operands and results have one type"),
            Law::Structure(structure) => writeln!(out, "- {}", structure.demand()),
            Law::Blocks(n) => writeln!(out, "- has {n} blocks"),
            Law::Attribute(parameter) => writeln!(out, "- attribute `{}`", parameter.to_text()),
        };
    }
    if let Some(grad) = def.grad {
        for line in grad.lines() {
            let _ = writeln!(out, "- derivative by `{}`", line.trim());
        }
    }
    if let Some(meaning) = def.meaning {
        let _ = writeln!(out, "\n```python\n{}```", meaning);
    }
    out.push('\n');
}

/// The effects of an op as text.
pub fn effects(effects: Effects) -> String {
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
