//! A model: the front door for programs that load, call and do nothing else.

use super::{Entries, Loaded, Toolkit, load, over};
use crate::backends::FusionReport;
use crate::diag::{Diagnostic, Result};
use crate::dialects::Run;
use crate::passes::manager::Settings;
use crate::runtime::{PlanReport, Program};
use crate::value::Value;
use std::path::Path;
use std::sync::Arc;

/// A loaded program that is ready to be called: an archive of `torch.jit.save`, TorchScript source or graph text, with the
/// default passes on, by plans (`docs/plans.md`). Passes run over what a call of a function comes to, when it is called for the first
/// time. Calls may come from several threads; clones share code and parameters.
///
/// Calls record no gradients and print to standard output; [`Model::call_in`] takes a [`Run`] that says otherwise.
#[derive(Clone)]
pub struct Model {
    entries: Arc<Entries>,
    passes: String,
    toolkit: Toolkit,
}

impl Model {
    /// Loads a file with the built-in toolkit and the passes `default`.
    pub fn load(path: impl AsRef<Path>) -> Result<Model> {
        Toolkit::default().model(path)
    }

    /// The same of TorchScript source; `name` is what errors call it.
    pub fn from_source(name: &str, text: &str) -> Result<Model> {
        let toolkit = Toolkit::default();
        let program = toolkit.load_source(name, text)?;
        Model::new(toolkit, program, "default")
    }

    fn new(toolkit: Toolkit, plain: Program, passes: &str) -> Result<Model> {
        toolkit.check()?;
        let entries = Arc::new(Entries::new(plain, toolkit.parse_pipeline(passes)?));
        Ok(Model { entries, passes: passes.to_string(), toolkit })
    }

    /// The same model under other passes: `""` for none, `"default"`, any pipeline of the toolkit. They run over the program
    /// as it is now, so that they come after those that it was loaded with.
    pub fn with_passes(&self, passes: &str) -> Result<Model> {
        let program = transformed(&self.toolkit, self.entries.plain(), &self.passes)?;
        Model::new(self.toolkit.clone(), program, passes)
    }

    /// The same model with its fusion groups run on a device of its toolkit: `cpu`, `cuda`, `interp`, a backend's own name.
    pub fn on(&self, device: &str) -> Result<Model> {
        let plain = self.entries.plain();
        let plain = match self.toolkit.device(device)? {
            Some(backend) => plain.on(backend),
            None => plain.clone(),
        };
        Model::new(self.toolkit.clone(), plain, &self.passes)
    }

    /// Calls a function or method; `forward` of a module. Arguments are checked against its schema and converted as
    /// TorchScript converts them; defaults are filled in.
    pub fn call<A: Into<Value>>(&self, entry: &str, arguments: impl IntoIterator<Item = A>) -> Result<Value> {
        let run = Run::default();
        run.set_grad_enabled(false);
        self.call_in(entry, arguments, &run)
    }

    /// The same in a run of the caller's: with its limits, random numbers, output, and gradients if it wants them.
    pub fn call_in<A: Into<Value>>(
        &self,
        entry: &str,
        arguments: impl IntoIterator<Item = A>,
        run: &Run,
    ) -> Result<Value> {
        let program = self.entry(entry)?;
        program.run(entry, arguments.into_iter().map(Into::into).collect(), run)
    }

    /// The names of the arguments that a function takes, with their types as TorchScript writes them.
    pub fn parameters(&self, entry: &str) -> Result<Vec<(String, String)>> {
        let parameters = self.entries.plain().parameters(entry)?;
        Ok(parameters.into_iter().map(|a| (a.name.to_string(), a.ty.to_string())).collect())
    }

    /// The graph of a function after passes, as text.
    pub fn graph(&self, entry: &str) -> Result<String> {
        let program = self.entry(entry)?;
        let function = program.function(entry);
        let function =
            function.ok_or_else(|| Diagnostic::input(format!("there is no function '{entry}'")))?;
        Ok(function.graph.to_string())
    }

    /// What became of its fusion groups so far: kernels compiled, calls that ran op by op and why.
    pub fn fusion_report(&self) -> FusionReport {
        let mut all = FusionReport::default();
        self.entries.made().iter().for_each(|program| all.add(&program.fusion_report()));
        all
    }

    /// What became of its calls so far: plans built, calls that ran without one and why.
    pub fn plan_report(&self) -> PlanReport {
        let mut all = PlanReport::default();
        self.entries.made().iter().for_each(|program| all.add(&program.plan_report()));
        all
    }

    /// The program that a function is called by, with passes on, for what this type does not offer.
    pub fn entry(&self, name: &str) -> Result<Program> {
        self.entries.of(None, name)
    }

    /// The program as it was loaded, before passes.
    pub fn program(&self) -> &Program {
        self.entries.plain()
    }
}

impl Toolkit {
    /// Loads a file over this toolkit's ops, with its pipeline `default`. Parameters of a module require no gradients.
    pub fn model(&self, path: impl AsRef<Path>) -> Result<Model> {
        self.model_with(path, "default")
    }

    /// The same with other passes.
    pub fn model_with(&self, path: impl AsRef<Path>, passes: &str) -> Result<Model> {
        self.check()?;
        let run = Run::default();
        run.set_grad_enabled(false);
        let Loaded { program, .. } = load::load_model(path.as_ref(), &run, self.registry())?;
        load::detach_parameters(&program);
        Model::new(self.clone(), program, passes)
    }
}

/// The program with passes over all of its functions.
fn transformed(toolkit: &Toolkit, plain: &Program, passes: &str) -> Result<Program> {
    let pipeline = toolkit.parse_pipeline(passes)?;
    let settings = over(plain, Settings::default());
    plain.transformed(|module, registry| pipeline.run_with(module, registry, settings).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;

    #[test]
    fn calls_run_by_plans_unless_no_passes_are_asked_for() {
        let source = "def f(x: Tensor) -> Tensor:\n    return torch.relu(x * 2) + 1\n";
        let toolkit = Toolkit::default();
        let program = toolkit.load_source("f.py", source).expect("it compiles");
        for (passes, built) in [("default", 1), ("", 0)] {
            let model = Model::new(toolkit.clone(), program.clone(), passes).expect("passes run");
            let x = Tensor::from_vec(&[-1.0f32, 2.0], &[2]).expect("small");
            let y = model.call("f", [x]).expect("it runs");
            assert_eq!(y.to_tensor().expect("a tensor").to_vec::<f32>().expect("floats"), [1.0, 5.0]);
            assert_eq!(model.plan_report().built, built, "{passes}");
        }
    }
}
