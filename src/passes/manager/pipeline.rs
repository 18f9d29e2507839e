//! A pipeline: passes with their options, and nests of passes. It is read and run over modules elsewhere.

use crate::diag::Result;
use crate::dialects::Contract;
use crate::ir::Graph;
use crate::passes::pass::Pass;
use crate::passes::{Context, Options};

/// Passes in order.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// One step of a pipeline.
#[derive(Clone, Debug)]
pub enum Step {
    /// A pass.
    Pass(Pass, Options),
    /// Passes that run together in some way.
    Nest(Nest, Vec<Step>),
}

/// How nested passes run.
#[derive(Clone, Debug, PartialEq)]
pub enum Nest {
    /// Repeated until nothing changes, up to a maximum number of times.
    Repeat(usize),
    /// Over the functions whose names match; `*` stands for anything.
    Function(String),
    /// Over the graphs inside of ops.
    Subgraphs,
}

impl Nest {
    /// `repeat{max=8}`
    pub fn to_text(&self) -> String {
        match self {
            Nest::Repeat(max) => format!("repeat{{max={max}}}"),
            Nest::Function(name) => format!("function{{name={name}}}"),
            Nest::Subgraphs => "subgraphs".to_string(),
        }
    }
}

impl Pipeline {
    /// Runs the passes over one graph that stands alone. Passes over modules are left out.
    pub fn run_graph(&self, graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
        let mut changed = false;
        for step in &self.steps {
            match step {
                Step::Pass(Pass { run, name, .. }, options) if !run.is_of_module() => {
                    let own = Context::new(context.registry, context.module).with_extras(context.extras());
                    changed |= run
                        .on_graph(graph, &own.for_pass(name, options, &Default::default(), (None, false)))?;
                }
                Step::Pass(..) => {}
                Step::Nest(Nest::Repeat(max), steps) => {
                    let inner = Pipeline { steps: steps.clone() };
                    for _ in 0..*max {
                        if !inner.run_graph(graph, context)? {
                            break;
                        }
                        changed = true;
                    }
                }
                Step::Nest(_, steps) => {
                    changed |= Pipeline { steps: steps.clone() }.run_graph(graph, context)?;
                }
            }
        }
        Ok(changed)
    }

    /// The passes with their options in order, those of nests too.
    pub fn passes(&self) -> Vec<(&Pass, &Options)> {
        fn collect<'p>(steps: &'p [Step], out: &mut Vec<(&'p Pass, &'p Options)>) {
            for step in steps {
                match step {
                    Step::Pass(pass, options) => out.push((pass, options)),
                    Step::Nest(_, steps) => collect(steps, out),
                }
            }
        }
        let mut out = Vec::new();
        collect(&self.steps, &mut out);
        out
    }

    /// The names of the passes in order, those of nests too.
    pub fn names(&self) -> Vec<&'static str> {
        self.passes().into_iter().map(|(pass, _)| pass.name).collect()
    }

    /// The values of a text option of all passes that have it, those in nests too.
    pub fn option_texts(&self, name: &str) -> Vec<String> {
        self.passes()
            .into_iter()
            .filter_map(|(_, options)| options.text(name).ok().map(String::from))
            .collect()
    }

    /// The weakest contract that one of its passes was given. What a pass takes by itself says nothing of the others: that of
    /// PyTorch's peephole is `fast-math`.
    pub fn contract(&self) -> Contract {
        let passes = self.passes().into_iter();
        let given =
            passes.filter(|(pass, options)| options.get("contract") != pass.default_of("contract").as_ref());
        let contracts = given.filter_map(|(_, options)| Contract::named(options.text("contract").ok()?));
        contracts.max().unwrap_or_default()
    }

    /// Sets a text or keyword option of all passes that have it and whose own options do not say it: what a command's
    /// `--fast-math` does with `contract`. Whether it was set somewhere.
    pub fn set_default(&mut self, name: &str, text: &str) -> bool {
        set_defaults(&mut self.steps, name, text)
    }

    /// The n-th pass in the order of writing, inside of its nests; repetitions count as one.
    pub fn nth(&self, n: usize) -> Option<Pipeline> {
        fn find(steps: &[Step], n: &mut usize) -> Option<Step> {
            for step in steps {
                match step {
                    Step::Pass(..) if *n == 0 => return Some(step.clone()),
                    Step::Pass(..) => *n -= 1,
                    Step::Nest(Nest::Repeat(_), inner) => {
                        if let Some(found) = find(inner, n) {
                            return Some(found);
                        }
                    }
                    Step::Nest(nest, inner) => {
                        if let Some(found) = find(inner, n) {
                            return Some(Step::Nest(nest.clone(), vec![found]));
                        }
                    }
                }
            }
            None
        }
        let mut n = n;
        find(&self.steps, &mut n).map(|step| Pipeline { steps: vec![step] })
    }

    /// The pipeline as text with every option; reading it gives the same pipeline.
    pub fn to_text(&self) -> String {
        steps_text(&self.steps)
    }
}

fn set_defaults(steps: &mut [Step], name: &str, text: &str) -> bool {
    let one = |step: &mut Step| match step {
        Step::Pass(_, options) => options.set_default(name, text),
        Step::Nest(_, steps) => set_defaults(steps, name, text),
    };
    steps.iter_mut().map(one).fold(false, |any, set| any | set)
}

fn steps_text(steps: &[Step]) -> String {
    let one = |step: &Step| match step {
        Step::Pass(pass, options) => format!("{}{}", pass.name, options.to_text()),
        Step::Nest(nest, steps) => format!("{}({})", nest.to_text(), steps_text(steps)),
    };
    steps.iter().map(one).collect::<Vec<_>>().join(",")
}
