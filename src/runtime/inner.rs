//! What of a program runs: functions and their code, which is made when a function is first called and kept. Does not know how
//! code runs, nor what plans are.

use super::before_run;
use super::checks::{Forced, ForcedFrom};
use super::code::{self, Code};
use super::constants::Constants;
use super::kept::Origin;
use crate::backends::cache::DiskCache;
use crate::backends::{Backend, FusionCounters};
use crate::diag::log::LogSpec;
use crate::diag::{Diagnostic, Result, Span};
use crate::dialects::{Contract, Registry, is_custom_class, unknown_class};
use crate::ir::{Function, Module, Symbol};
use crate::passes::manager::Limits;
use crate::passes::{check_strict_fusion, refused_call};
use crate::tensor::DeviceMemory;
use crate::value::Object;
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::sync::{Arc, OnceLock, Weak};

/// What of a program runs: its functions, their code, and what both need.
pub(super) struct Inner {
    pub(super) module: Arc<Module>,
    pub(super) registry: Arc<Registry>,
    pub(super) instance: Option<Object>,
    pub(super) codes: RwLock<HashMap<Symbol, Arc<Code>>>,
    pub(super) constants: Constants,
    /// What runs fusion groups; without one, the CPU does.
    pub(super) backend: Option<Arc<dyn Backend>>,
    /// Where that keeps its tensors, if not on the host.
    pub(super) device: Option<Arc<dyn DeviceMemory>>,
    /// What became of them.
    pub(super) fusion: Arc<FusionCounters>,
    /// Whether calls from outside have plans.
    has_plans: bool,
    /// Whether the module is prepared already.
    pub(super) contract: Contract,
    pub(super) is_prepared: bool,
    /// Elements of an input from which groups get a compiled backward.
    pub(super) differentiates_from: usize,
    /// Whether all work is to be in fusion groups.
    pub(super) strict_fusion: bool,
    /// How many changes the passes that make plans may make.
    pub(super) limits: Limits,
    /// The guard that is to miss.
    pub(super) forced: Option<Arc<Forced>>,
    /// Original places of the code, where it was generated.
    pub(super) origins: Arc<OnceLock<Origins>>,
    /// What the module was compiled from, where what passes make of it may be kept on disk.
    pub(super) origin: Option<Arc<Origin>>,
    weak: Weak<Inner>,
}

/// Elements of the largest input from which a group's backward is worth being compiled.
const DIFFERENTIATES_FROM: usize = 1 << 10;

/// What a program is made with besides module, instance and ops.
#[derive(Default)]
pub(super) struct Setting {
    pub(super) backend: Option<Arc<dyn Backend>>,
    pub(super) origins: Arc<OnceLock<Origins>>,
    pub(super) log: LogSpec,
    /// For how many kinds of arguments a function keeps plans, at least; None where there are no plans.
    pub(super) plans: Option<usize>,
    /// What plans promise about numbers.
    pub(super) contract: Contract,
    pub(super) is_prepared: bool,
    pub(super) differentiates_from: Option<usize>,
    pub(super) fails: Option<usize>,
    pub(super) strict_fusion: bool,
    /// Bytes that a call may keep for its backward.
    pub(super) max_kept: Option<u64>,
    /// Plans for kinds of arguments that differ in sizes alone, where runs do not say it.
    pub(super) static_plans: Option<usize>,
    /// Where plans are kept on disk, in place of the cache of the process.
    pub(super) disk: Option<Arc<DiskCache>>,
    pub(super) limits: Limits,
    pub(super) origin: Option<Arc<Origin>>,
}

/// Finds the original place of a place in generated code.
pub type Origins = Box<dyn Fn(&Span) -> Option<Span> + Send + Sync>;

impl Inner {
    pub(super) fn new(
        module: Arc<Module>,
        instance: Option<Object>,
        registry: Arc<Registry>,
        setting: Setting,
    ) -> Arc<Inner> {
        let forced = setting.fails.map(Forced::new);
        let device = setting.backend.as_ref().and_then(|backend| backend.memory());
        Arc::new_cyclic(|weak| Inner {
            module,
            registry,
            instance,
            codes: RwLock::default(),
            constants: Constants::default(),
            backend: setting.backend,
            has_plans: setting.plans.is_some(),
            device,
            fusion: Arc::new(FusionCounters::logging(&setting.log)),
            strict_fusion: setting.strict_fusion,
            limits: setting.limits,
            origin: setting.origin,
            forced,
            contract: setting.contract,
            is_prepared: setting.is_prepared,
            differentiates_from: setting.differentiates_from.unwrap_or(DIFFERENTIATES_FROM),
            origins: setting.origins,
            weak: weak.clone(),
        })
    }

    pub(super) fn code_context(&self) -> code::Context<'_> {
        code::Context {
            registry: &self.registry,
            module: &self.module,
            constants: &self.constants,
            backend: self.backend.as_ref(),
            fusion: &self.fusion,
            packs: None,
            strict_fusion: self.strict(),
            limits: &self.limits,
            forced: self.forced.as_ref().map(|forced| ForcedFrom { forced, first: 0 }),
        }
    }

    /// Whether graphs are asked for work that is not fused, and then whether all of their work counts.
    fn strict(&self) -> Option<bool> {
        if self.strict_fusion { Some(true) } else { self.has_plans.then_some(false) }
    }

    /// The code of a function by qualified name (graph text knows only the last component).
    pub(super) fn function_code(&self, name: Symbol) -> Result<Arc<Code>> {
        if let Some(code) = self.codes.read().get(&name) {
            return Ok(Arc::clone(code));
        }
        let function = self
            .module
            .functions
            .get(&name)
            .or_else(|| self.by_last_component(name.as_str()))
            .ok_or_else(|| Diagnostic::input(format!("function '{name}' is called but not defined")))?;
        let prepared = match self.is_prepared {
            true => None,
            false => before_run::prepared(&self.module, function, &self.registry)?,
        };
        let graph = prepared.as_ref().unwrap_or(&function.graph);
        // PyTorch finds this before anything runs, so that there is no place to show.
        if let Some(reason) = refused_call(graph) {
            return Err(Diagnostic::raised("RuntimeError", reason));
        }
        if let Some(all) = self.strict() {
            check_strict_fusion(graph, &self.registry, all)?;
        }
        let code = Arc::new(Code::compile(self.code_context(), graph, function.name.as_str())?);
        self.codes.write().insert(name, Arc::clone(&code));
        Ok(code)
    }

    /// The code of a method of a class.
    pub(super) fn method_code(&self, class: Symbol, method: Symbol) -> Result<Arc<Code>> {
        let known = self.module.class(class).ok_or_else(|| {
            Diagnostic::input(format!("method '{method}' of class {class} is called, which is not defined"))
        })?;
        let name = known.methods.get(&method).or_else(|| known.static_methods.get(&method));
        match name {
            Some(name) => self.function_code(*name),
            None if is_custom_class(class.as_str()) => Err(unknown_class(class.as_str())),
            None => Err(Diagnostic::input(format!("class {class} has no method '{method}'"))),
        }
    }

    pub(super) fn by_last_component(&self, name: &str) -> Option<&Function> {
        let mut named =
            self.module.functions.values().filter(|f| f.name.as_str().rsplit('.').next() == Some(name));
        let first = named.next();
        if named.next().is_some() { None } else { first }
    }

    pub(super) fn this(&self) -> Result<Arc<Inner>> {
        self.weak.upgrade().ok_or_else(|| Diagnostic::internal("the program is gone"))
    }
}
