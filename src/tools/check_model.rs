//! What `flambeau check` says of one model: how far its answer under passes is from that of the program as saved, and
//! how far the answer of a recorded folder is from PyTorch's, output by output and op by op.

use super::case::{Case, decode};
use super::check_options::Options;
use super::check_outcome::Outcome;
use super::inputs;
use super::io::Io;
use super::load::{detach_parameters, load_archive_with, load_shown};
use super::parity::{self, Row};
use super::prepare;
use crate::diag::{Diagnostic, ErrorKind, Result};
use crate::dialects::Registry;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// Compares the answers of a model with and without passes; gives whether they are the same within the tolerance.
pub(super) fn run(options: &Options, file: &Path, io: &mut Io<'_>) -> Result<bool> {
    let shown = file.display().to_string();
    if options.ops {
        let error = Diagnostic::new(
            ErrorKind::Usage,
            format!("{shown} is a model, and --ops needs a recorded folder"),
        );
        return Err(error.hint("examples/record.py MODEL FOLDER --ops writes one"));
    }
    let run = options.limits.silent();
    let _bounded = run.install();
    run.set_grad_enabled(options.grad);
    let toolkit = io.toolkit_with(&options.dialect)?;
    let loaded = load_shown(file, &run, toolkit.registry(), io)?;
    let entry = inputs::entry(&options.entry, &loaded.program).to_string();
    let given = options.inputs.resolve(&loaded, &entry, io)?;
    io.message(&given.note().unwrap_or_default());
    // A call may change the model's state, which the other must not see.
    let again = load_shown(file, &run, toolkit.registry(), io)?;
    if !options.grad {
        detach_parameters(&loaded.program);
        detach_parameters(&again.program);
    }
    let text = if options.passes.is_empty() { "default" } else { &options.passes };
    let pipeline = options.numerics.checked_pipeline(text, io)?;
    let changed = prepare::transformed(
        &again.program,
        &pipeline,
        prepare::called(&again.program, &entry),
        &shown,
        io.err,
    )?;
    let changed = prepare::placed(options.plans.apply(changed, text), options.device.open(io)?.as_ref());
    let changed = options.guards.apply(changed);
    let mut answers = Vec::new();
    for program in [&loaded.program, &changed] {
        run.seed(options.seed);
        // Each call gets arguments of its own: programs may write to them.
        let arguments = given.values(options.seed, io.directory)?;
        answers.push(program.run(&entry, arguments, &run)?);
    }
    options.guards.check(&changed)?;
    let rows = parity::rows(&answers[0], &answers[1], None);
    if options.json {
        let rows: Vec<_> = rows.iter().map(Row::to_json).collect();
        io.print(&format!("{}\n", json!({"name": shown, "passes": text, "outputs": rows})));
    } else {
        io.print(&format!("{shown} with {text}, against the program as saved:\n{}", parity::table(&rows)));
    }
    Ok(rows.iter().all(Row::holds))
}

/// Shows how far the answers of a recorded folder are from PyTorch's, and with `--ops` which op differs first. Gives whether
/// none does; the answers themselves are judged with all other cases.
pub(super) fn folder(
    options: &Options,
    folder: &Path,
    case: &Case,
    forms: &[Outcome],
    registry: &Arc<Registry>,
    io: &mut Io<'_>,
) -> Result<bool> {
    let answers = forms.iter().find_map(|form| form.returns.as_ref()).zip(case.returns.as_ref());
    if let Some((actual, expected)) = answers
        && !options.json
    {
        let rows = parity::rows(&decode(expected)?, &decode(actual)?, case.tolerance);
        io.print(&format!("{}, beside PyTorch:\n{}", case.name, parity::table(&rows)));
    }
    if !options.ops {
        return Ok(true);
    }
    if !parity::has_ops(folder) {
        let error = Diagnostic::input(format!("{} records no values of ops", folder.display()));
        return Err(error.hint("examples/record.py MODEL FOLDER --ops records them"));
    }
    let run = options.limits.silent();
    let _bounded = run.install();
    run.seed(options.seed);
    let program = load_archive_with(case.archive.clone().unwrap_or_default(), &run, registry)?;
    detach_parameters(&program);
    let found = parity::ops(folder, case, &program, io.toolkit, &run)?;
    if options.json {
        let first = found.first.as_ref().map(|first| {
            let rows: Vec<_> = first.rows.iter().map(Row::to_json).collect();
            json!({"op": first.place, "kind": first.kind, "scope": first.scope, "results": rows})
        });
        io.print(&format!(
            "{}\n",
            json!({"name": case.name, "ops": found.compared, "alone": found.alone, "first": first})
        ));
        return Ok(found.first.is_none());
    }
    if found.alone != (0, 0) {
        let (here, there) = found.alone;
        io.print(&format!(
            "not compared: {here} ops that this graph alone has, {there} that were recorded alone\n"
        ));
    }
    match &found.first {
        None => io.print(&format!("{} ops have PyTorch's values\n", found.compared)),
        Some(first) => {
            let scope = if first.scope.is_empty() { String::new() } else { format!(" in {}", first.scope) };
            io.print(&format!(
                "the first op that differs is number {}, {}{scope}:\n{}",
                first.place,
                first.kind,
                parity::table(&first.rows)
            ));
        }
    }
    Ok(found.first.is_none())
}
