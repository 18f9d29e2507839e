//! Pipelines: `'inline,cse,dce'`. Runs passes by name over every function of a module, verifying after each.

use super::{Context, Pass, TABLE};
use crate::diag::{Diagnostic, Result, nearest};
use crate::dialects::Registry;
use crate::ir::{Graph, Module, Symbol};

/// Passes in order.
pub struct Pipeline {
    passes: Vec<&'static Pass>,
}

/// Pipelines with a name: the stages before fusion, and everything.
const NAMED: &[(&str, &str)] = &[
    ("cleanup", "cse,dce"),
    ("optimize", "inline,lower-simple-tuples,cse,simplify,dce"),
    ("default", "inline,lower-simple-tuples,cse,simplify,dce,fuse"),
];

/// Reads a pipeline: names of passes or of pipelines, separated by commas. `_` and `-` are the same.
pub fn parse(text: &str) -> Result<Pipeline> {
    let mut passes = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let name = name.replace('_', "-");
        if let Some((_, expansion)) = NAMED.iter().find(|(n, _)| *n == name) {
            passes.extend(parse(expansion)?.passes);
            continue;
        }
        match TABLE.iter().find(|pass| pass.name == name) {
            Some(pass) => passes.push(pass),
            None => return Err(unknown(&name)),
        }
    }
    Ok(Pipeline { passes })
}

fn unknown(name: &str) -> Diagnostic {
    let error = Diagnostic::new(crate::diag::ErrorKind::Usage, format!("there is no pass '{name}'"));
    let names = TABLE.iter().map(|p| p.name).chain(NAMED.iter().map(|(n, _)| *n));
    match nearest(name, names) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error.hint("`flambeau opt --help-passes` lists them"),
    }
}

/// The page that lists passes and named pipelines.
pub fn help() -> String {
    let mut out = String::from("passes:\n");
    for pass in TABLE {
        out.push_str(&format!("  {:<20} {}\n", pass.name, pass.summary));
    }
    out.push_str("named pipelines:\n");
    for (name, expansion) in NAMED {
        out.push_str(&format!("  {name:<20} {expansion}\n"));
    }
    out
}

impl Pipeline {
    /// Runs the passes over every function of a module, one pass after the other.
    pub fn run(&self, module: &mut Module, registry: &Registry) -> Result<bool> {
        let mut changed = false;
        for pass in &self.passes {
            let names: Vec<Symbol> = module.functions.keys().copied().collect();
            for name in names {
                let Some(function) = module.functions.get_mut(&name) else { continue };
                let mut graph = std::mem::take(&mut function.graph);
                let result = (pass.run)(&mut graph, &Context { registry, module });
                if let Some(function) = module.functions.get_mut(&name) {
                    function.graph = graph;
                }
                changed |= result?;
            }
        }
        Ok(changed)
    }

    /// Each pass as a pipeline of its own.
    pub fn steps(&self) -> impl Iterator<Item = Pipeline> + '_ {
        self.passes.iter().map(|pass| Pipeline { passes: vec![pass] })
    }

    /// Runs the passes over one graph.
    pub fn run_graph(&self, graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
        let mut changed = false;
        for pass in &self.passes {
            changed |= (pass.run)(graph, context)?;
        }
        Ok(changed)
    }

    /// The names of the passes, pipelines expanded.
    pub fn names(&self) -> Vec<&'static str> {
        self.passes.iter().map(|p| p.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_forgiving_and_misspellings_are_not() {
        assert_eq!(parse("lower_all_tuples, dce").expect("known").names(), ["lower-all-tuples", "dce"]);
        let error = parse("dcee").err().expect("unknown");
        assert!(error.to_string().contains("did you mean 'dce'?"), "{error}");
    }
}
