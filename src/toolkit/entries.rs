//! A program as callers outside run it: passes over what a call of a function comes to, run when that function is first called,
//! and plans. A model of two hundred modules has as many functions, and is called by one of them; passes over all of
//! them would take longer than everything else until its first answer.

use crate::diag::Result;
use crate::diag::log::LogSpec;
use crate::ir::{Module, Symbol};
use crate::passes::Meanings;
use crate::passes::manager::{Pipeline, Runner, Settings};
use crate::resources::Once;
use crate::runtime::{Program, ScriptComposites};
use hashbrown::HashMap;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;

/// The programs that the functions of a program are called by. All share its objects.
pub struct Entries {
    plain: Program,
    pipeline: Pipeline,
    log: LogSpec,
    made: RwLock<HashMap<Symbol, Arc<Once<Program>>>>,
    /// What passes logged and was not taken yet.
    logged: Mutex<Vec<u8>>,
}

impl Entries {
    /// Those of a program by a pipeline; without passes they are the program itself, and make no plans.
    pub fn new(plain: Program, pipeline: Pipeline) -> Entries {
        Entries {
            plain,
            pipeline,
            log: LogSpec::default(),
            made: RwLock::default(),
            logged: Mutex::default(),
        }
    }

    /// The same with a log of its passes, and of those that make plans.
    pub fn logging(self, log: LogSpec) -> Entries {
        Entries { log, ..self }
    }

    /// The program before passes.
    pub fn plain(&self) -> &Program {
        &self.plain
    }

    /// The program that a function of a class, or one of the program's own, is called by: made when it is first asked for. A pass
    /// that fails is the error of every call. Where there is no such function, the program before passes, whose calls say so.
    pub fn of(&self, class: Option<Symbol>, name: &str) -> Result<Program> {
        let module = self.plain.module();
        let function = match class {
            Some(class) => module.method(class, name),
            None => self.plain.function(name),
        };
        let Some(function) = function.filter(|_| !self.pipeline.steps.is_empty()) else {
            return Ok(self.plain.clone());
        };
        let known = self.made.read().get(&function.name).map(Arc::clone);
        let place = known.unwrap_or_else(|| Arc::clone(self.made.write().entry(function.name).or_default()));
        place.get_or_make(|| self.make(function.name, class)).cloned()
    }

    /// The programs that were made so far, in order of their functions' names; without passes the program itself.
    pub fn made(&self) -> Vec<Program> {
        if self.pipeline.steps.is_empty() {
            return vec![self.plain.clone()];
        }
        let made = self.made.read();
        let mut all: Vec<(&str, &Program)> =
            made.iter().filter_map(|(name, place)| Some((name.as_str(), place.get()?))).collect();
        all.sort_by_key(|(name, _)| *name);
        all.into_iter().map(|(_, program)| program.clone()).collect()
    }

    /// Takes what was logged since the last time.
    pub fn take_log(&self) -> String {
        let passes = std::mem::take(&mut *self.logged.lock());
        let plans = self.made().into_iter().map(|program| program.take_log());
        std::iter::once(String::from_utf8_lossy(&passes).into_owned()).chain(plans).collect()
    }

    fn make(&self, function: Symbol, class: Option<Symbol>) -> Result<Program> {
        let (log, roots) = (self.log.clone(), self.roots(function, class));
        let settings = over(&self.plain, Settings { log, roots, ..Settings::default() });
        let mut text = Vec::new();
        let done = self.plain.passed((&self.pipeline, &settings.clone()), |module, registry| {
            Runner::new(registry, settings, &mut text).run(&self.pipeline, module).map(drop)
        });
        self.logged.lock().append(&mut text);
        Ok(done?.under(self.pipeline.contract()).planned().logging(&self.log))
    }

    /// The function, and what Python's `model(x)` runs besides: the hooks of its class.
    fn roots(&self, function: Symbol, class: Option<Symbol>) -> Vec<Symbol> {
        let module: &Module = self.plain.module();
        let instance = self.plain.instance().map(|instance| instance.class());
        let class = class.or(instance).and_then(|class| module.class(class));
        let hooks = class.into_iter().flat_map(|c| c.forward_pre_hooks.iter().chain(&c.forward_hooks));
        let hooks = class.into_iter().zip(hooks).filter_map(|(c, hook)| c.methods.get(hook).copied());
        std::iter::once(function).chain(hooks).collect()
    }
}

/// Settings of passes over a program: they know its instance and what composites mean.
pub(crate) fn over(program: &Program, mut settings: Settings) -> Settings {
    if let Some(instance) = program.instance() {
        settings.extras.set(Arc::new(instance.clone()));
    }
    settings.extras.set(Arc::new(Meanings(ScriptComposites::of(program.registry()))));
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolkit::Toolkit;

    const SOURCE: &str = "def h(x: Tensor) -> Tensor:
    return x + 1
def f(x: Tensor) -> Tensor:
    return h(x) * 2
def g(x: Tensor) -> Tensor:
    return h(x) * 3
";

    fn calls(program: &Program, name: &str) -> usize {
        let function = program.function(name).expect("it is there");
        let graph = &function.graph;
        graph.all_ops().into_iter().filter(|op| graph.kind(*op) == "prim::CallFunction").count()
    }

    #[test]
    fn passes_run_over_what_is_called_and_nothing_else() {
        let toolkit = Toolkit::default();
        let plain = toolkit.load_source("fgh.py", SOURCE).expect("it compiles");
        let entries = Entries::new(plain, toolkit.parse_pipeline("inline").expect("a pass"));
        assert!(entries.made().is_empty());
        let f = entries.of(None, "f").expect("it inlines");
        assert_eq!((calls(&f, "f"), calls(&f, "g")), (0, 1));
        let g = entries.of(None, "g").expect("it inlines");
        assert_eq!((calls(&g, "g"), entries.made().len()), (0, 2));
        assert!(f.has_plans() && std::ptr::eq(f.module(), entries.of(None, "f").expect("kept").module()));
        assert_eq!(calls(&entries.of(None, "none").expect("the program itself"), "f"), 1);
    }

    #[test]
    fn without_passes_the_program_is_called_itself() {
        let toolkit = Toolkit::default();
        let plain = toolkit.load_source("fgh.py", SOURCE).expect("it compiles");
        let entries = Entries::new(plain, Pipeline::default());
        let f = entries.of(None, "f").expect("itself");
        assert!(!f.has_plans() && std::ptr::eq(f.module(), entries.plain().module()));
    }

    #[test]
    fn what_passes_log_is_kept_until_it_is_taken() {
        let toolkit = Toolkit::default();
        let plain = toolkit.load_source("fgh.py", SOURCE).expect("it compiles");
        let log = LogSpec::parse("inline").expect("a topic");
        let entries = Entries::new(plain, toolkit.parse_pipeline("inline").expect("a pass")).logging(log);
        entries.of(None, "f").expect("it inlines");
        assert!(entries.take_log().contains("h"));
        assert_eq!(entries.take_log(), "");
    }
}
