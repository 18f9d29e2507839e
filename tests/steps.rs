//! Every pass counts its steps: a limit stops it half way, what is left is valid, and the whole is the sum.
//!
//! Each pass runs over the inputs of all FileCheck tests of passes and rules. A pass that changes a graph without
//! asking first fails here.

use flambeau::diag::{Diagnostic, ErrorKind, Source};
use flambeau::dialects::{Registry, Strictness};
use flambeau::ir::{Module, ParseOptions, parse_module};
use flambeau::passes::manager::{Limits, Runner, Settings};
use flambeau::passes::{PassSet, Pipeline};
use libtest_mimic::{Failed, Trial};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Passes that these inputs give nothing to do, and why.
const IDLE: &[(&str, &str)] = &[
    ("check-inplace", "it changes nothing"),
    ("check-strict-fusion", "it changes nothing"),
    ("freeze", "it needs a loaded model; tests/filecheck/passes/freeze has one"),
    ("freeze-attributes", "it needs a loaded model; tests/filecheck/passes/freeze_attributes has one"),
    ("assign-layouts", "its tests make layers by the passes before it"),
    ("place-parts", "its tests make layers by the passes before it"),
    ("chain-layers", "its tests make layers by the passes before it"),
    ("fuse-attention", "its tests know sizes by the passes before it"),
];
/// Limits that are tried on one input.
const MOST: u64 = 9;

pub fn trials() -> Vec<Trial> {
    let set = PassSet::builtin();
    let all = set.passes().iter().map(|pass| pass.name);
    all.map(|name| Trial::test(format!("steps::{name}"), move || pass(name))).collect()
}

/// The modules that stand in test files.
fn inputs() -> &'static [(PathBuf, Module)] {
    static INPUTS: OnceLock<Vec<(PathBuf, Module)>> = OnceLock::new();
    INPUTS.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filecheck");
        let mut files = Vec::new();
        let mut folders = vec![root.join("passes"), root.join("rewrite")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.retain(|path| path.extension().is_some_and(|e| e == "ir"));
        files.sort();
        files.push(root.join("manager/Inputs/steps.ir"));
        files.into_iter().flat_map(|path| modules(&path)).collect()
    })
}

fn modules(path: &Path) -> Vec<(PathBuf, Module)> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let parts = text.split("# -----\n").filter_map(|part| {
        let source = Source::new(path.display().to_string(), part);
        parse_module(&source, &ParseOptions::default()).ok().map(|parsed| (path.to_path_buf(), parsed.module))
    });
    parts.collect()
}

fn pass(name: &str) -> Result<(), Failed> {
    let registry = Registry::builtin();
    let set = PassSet::builtin();
    // Built-in composites are left alone otherwise.
    let text = if name == "inline-meanings" { "inline-meanings{all}" } else { name };
    let pipeline = Pipeline::parse(text, &set)?;
    let mut most = 0;
    for (path, module) in inputs() {
        let place = path.display();
        let (whole, steps) = match run(&registry, &pipeline, module, None) {
            Ok(done) => done,
            Err(error) if error.kind() == ErrorKind::Internal => {
                return Err(format!("{place}: {error}").into());
            }
            // Inputs of other tests may be wrong on purpose.
            Err(_) => continue,
        };
        most = most.max(steps);
        for limit in 0..=steps.min(MOST) {
            let (text, made) = run(&registry, &pipeline, module, Some(format!("{name}={limit}")))
                .map_err(|error| format!("{place}: after {limit} of {steps} steps: {error}"))?;
            if made != limit {
                return Err(format!("{place}: {made} steps under a limit of {limit}").into());
            }
            if limit == steps && text != whole {
                return Err(format!("{place}: all {steps} steps are not the whole:\n{text}\n{whole}").into());
            }
            if limit == 0 && text != module.to_string() {
                return Err(format!("{place}: it changes something without a step:\n{text}").into());
            }
        }
    }
    match IDLE.iter().find(|(idle, _)| *idle == name) {
        Some((_, why)) if most > 0 => Err(format!("it counts {most} steps, though {why}").into()),
        None if most == 0 => Err("no test of a pass gives it anything to do".into()),
        _ => Ok(()),
    }
}

/// The module behind a pass, and how many steps the pass made. The verifier must have nothing to say.
fn run(
    registry: &Arc<Registry>,
    pipeline: &Pipeline,
    module: &Module,
    limit: Option<String>,
) -> flambeau::diag::Result<(String, u64)> {
    let limits = Limits::parse(&limit.unwrap_or_default())?;
    let settings = Settings { limits, verify: Some(Strictness::Carry), threads: 1, ..Settings::default() };
    let mut sink = std::io::sink();
    let mut module = module.clone();
    let mut runner = Runner::new(registry, settings, &mut sink);
    runner.run(pipeline, &mut module)?;
    let report = runner.last_report().clone();
    drop(runner);
    if report.unasked {
        return Err(Diagnostic::internal("it changes a graph without asking `context.step`"));
    }
    let steps = report.steps;
    Ok((module.to_string(), steps))
}
