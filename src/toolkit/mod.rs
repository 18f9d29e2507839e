//! The toolkit: everything that can be extended, as one value. Ops, dialects, types and attributes, rule groups (all kept
//! with the table of ops), passes and pipelines, devices, and the name of the program.
//!
//! A toolkit does not change: what extends it gives a copy, and copies share what they have in common. Every command works
//! with the toolkit it is given and asks no global table. This module does not know the commands; `tools` adds
//! [`Toolkit::main`].

mod dialect;
mod entries;
mod facts;
mod load;
mod lowerings;
mod model;

pub use dialect::Dialect;
pub use entries::Entries;
pub(crate) use entries::over;
pub use load::{
    Loaded, detach_parameters, is_graph, is_model, is_text, load_archive_with, load_file_with,
    load_graph_with, load_mapped, load_model, load_opened, load_source_with, load_text_with, origins,
    restore, saved_states, start, start_archive, verify,
};
pub use model::Model;

use crate::backends::{self, Backend};
use crate::diag::{Diagnostic, Result, Source, files, nearest};
use crate::dialects::{Registry, Run};
use crate::frontend::dialect as text;
use crate::lowering::{self, Lowering};
use crate::passes::{Pass, PassSet, Pipeline};
use crate::rewrite::RuleGroups;
use crate::runtime::Program;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All that commands and embedding programs work with. Clones share their content.
#[derive(Clone)]
pub struct Toolkit(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    name: &'static str,
    registry: Arc<Registry>,
    passes: PassSet,
    devices: Vec<(String, Device)>,
    /// The first thing that could not be added.
    fault: Option<Diagnostic>,
}

/// What runs fusion groups under a name of `--device`.
#[derive(Clone)]
enum Device {
    /// The processor, as programs run that ask for nothing else.
    Processor,
    /// A backend that is there.
    Ready(Arc<dyn Backend>),
    /// A backend that is made when it is asked for, and may be missing on this machine.
    Opened(fn() -> Result<Arc<dyn Backend>>),
}

impl Default for Toolkit {
    /// The built-in toolkit under the program's own name.
    fn default() -> Toolkit {
        Toolkit::new("flambeau")
    }
}

/// The passes over graphs, and those that stand right of them in the order of layers.
fn built_in_passes() -> PassSet {
    let mut passes = PassSet::builtin();
    passes.add(lowering::pass::PASS);
    passes.add(lowering::convert::pass::PASS);
    passes.add(lowering::scalars::pass::PASS);
    passes
}

/// A table with what a dialect file declares, of which all is checked that can be.
pub(crate) fn of_text(registry: &Arc<Registry>, source: &Arc<Source>) -> Result<Arc<Registry>> {
    let loaded = facts::checked(registry, text::load(registry, source)?, Some(source))?;
    lowerings::of_text(&loaded, source)
}

/// What can be added. Additions are made in order: a rule or pipeline may name what was added before it. An addition that
/// fails is kept as the toolkit's fault, which [`Toolkit::check`] gives and every command reports.
impl Toolkit {
    /// The built-in ops, passes, rules and backends, for a program called `name`.
    pub fn new(name: &'static str) -> Toolkit {
        let devices = [
            ("cpu", Device::Processor),
            ("cuda", Device::Opened(|| backends::by_name("cuda"))),
            ("cuda-tf32", Device::Opened(|| backends::by_name("cuda-tf32"))),
            ("interp", Device::Opened(|| backends::by_name("interp"))),
            ("apart", Device::Opened(|| backends::by_name("apart"))),
            ("llvm", Device::Opened(backends::default_llvm)),
        ];
        Toolkit(Arc::new(Inner {
            name,
            registry: Registry::builtin(),
            passes: built_in_passes(),
            devices: devices.map(|(name, device)| (name.to_string(), device)).to_vec(),
            fault: None,
        }))
    }

    /// With a dialect's ops, types, attributes, classes and derivatives.
    pub fn dialect(self, dialect: impl Dialect) -> Toolkit {
        self.extended(|inner| {
            inner.registry =
                facts::checked(&inner.registry, dialect::added(&inner.registry, &dialect)?, None)?;
            Ok(())
        })
    }

    /// With the ops, types and attributes of a dialect file.
    pub fn dialect_text(self, source: &Arc<Source>) -> Toolkit {
        self.extended(|inner| {
            inner.registry = of_text(&inner.registry, source)?;
            Ok(())
        })
    }

    /// With an op that is a schema and a closure; see [`Registry::register`].
    pub fn op(
        self,
        schema: &str,
        function: impl Fn(&crate::dialects::Args<'_>) -> Result<crate::dialects::Outputs> + Send + Sync + 'static,
    ) -> Toolkit {
        self.extended(|inner| Arc::make_mut(&mut inner.registry).register(schema, function).map(|_| ()))
    }

    /// The same for an op that does more than its results and the marks of its schema say.
    pub fn op_with_effects(
        self,
        schema: &str,
        effects: crate::dialects::Effects,
        function: impl Fn(&crate::dialects::Args<'_>) -> Result<crate::dialects::Outputs> + Send + Sync + 'static,
    ) -> Toolkit {
        self.extended(|inner| {
            Arc::make_mut(&mut inner.registry).register_with(schema, effects, function).map(|_| ())
        })
    }

    /// With a pass; one of the same name is replaced.
    pub fn pass(self, pass: Pass) -> Toolkit {
        self.extended(|inner| {
            inner.passes.add(pass);
            Ok(())
        })
    }

    /// With a named pipeline of passes that are known; one of the same name is replaced.
    pub fn pipeline(self, name: &str, text: &str) -> Toolkit {
        self.extended(|inner| {
            Pipeline::parse(text, &inner.passes)?;
            inner.passes.add_pipeline(name, text);
            Ok(())
        })
    }

    /// With a group of rewrite rules, which `simplify` and passes made by [`Pass::rules`] apply. Whether the rules hold is
    /// asked by the command `rules check --group NAME`.
    pub fn rules(self, group: &str, text: &str) -> Toolkit {
        self.extended(|inner| {
            inner.registry = Arc::new(RuleGroups::added(&inner.registry, group, text)?);
            Ok(())
        })
    }

    /// With a lowering, which `lower-ops` applies. What a dialect registers for its own ops stands in [`Dialect::lowerings`].
    pub fn lowering(self, lowering: impl Lowering + 'static) -> Toolkit {
        self.extended(|inner| {
            let new: [Arc<dyn Lowering>; 1] = [Arc::new(lowering)];
            inner.registry = lowerings::added(&inner.registry, new)?;
            Ok(())
        })
    }

    /// With a backend, which `--device` knows by its [`Backend::name`]; one of the same name is replaced.
    pub fn backend(self, backend: impl Backend + 'static) -> Toolkit {
        self.extended(|inner| {
            let name = backend.name().to_string();
            inner.devices.retain(|(other, _)| *other != name);
            inner.devices.push((name, Device::Ready(Arc::new(backend))));
            Ok(())
        })
    }

    /// With what dialect files (`.dialect`) and files of derivatives (`.grad`) say; their paths start from `directory`.
    pub fn with_files(&self, files: &[PathBuf], directory: &Path) -> Result<Toolkit> {
        let mut inner = Inner::clone(&self.0);
        for file in files {
            let shown = file.display().to_string();
            let text = files::read_text(&directory.join(file))
                .map_err(|e| Diagnostic::input(format!("{shown}: {e}")))?;
            let source = Source::new(shown, text);
            if file.extension().is_some_and(|end| end == "grad") {
                Arc::make_mut(&mut inner.registry).add_grads(&source)?;
            } else {
                inner.registry = of_text(&inner.registry, &source)?;
            }
        }
        Ok(Toolkit(Arc::new(inner)))
    }

    fn extended(mut self, change: impl FnOnce(&mut Inner) -> Result<()>) -> Toolkit {
        let inner = Arc::make_mut(&mut self.0);
        if inner.fault.is_none() {
            inner.fault = change(inner).err();
        }
        self
    }
}

/// What a toolkit has.
impl Toolkit {
    /// The first addition that failed, as an error.
    pub fn check(&self) -> Result<()> {
        self.0.fault.clone().map_or(Ok(()), Err)
    }

    /// The name of the program.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// The ops, with the types, attributes, classes, derivatives and rule groups that are kept with them.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.0.registry
    }

    /// The passes and named pipelines.
    pub fn passes(&self) -> &PassSet {
        &self.0.passes
    }

    /// Reads a pipeline of its passes: `'inline,cse,dce'`.
    pub fn parse_pipeline(&self, text: &str) -> Result<Pipeline> {
        Pipeline::parse(text, &self.0.passes)
    }

    /// The names that `--device` takes.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.0.devices.iter().map(|(name, _)| name.as_str())
    }

    /// What runs fusion groups on a device; None for the processor. Fails for a name that is not registered and for a
    /// device that this machine or build lacks.
    pub fn device(&self, name: &str) -> Result<Option<Arc<dyn Backend>>> {
        match self.0.devices.iter().find(|(other, _)| other == name) {
            Some((_, Device::Processor)) => Ok(None),
            Some((_, Device::Ready(backend))) => Ok(Some(Arc::clone(backend))),
            Some((_, Device::Opened(open))) => open().map(Some),
            None => {
                let error = Diagnostic::usage(format!("there is no device '{name}'"));
                Err(match nearest(name, self.devices()) {
                    Some(near) => error.hint(format!("did you mean '{near}'?")),
                    None => {
                        let names: Vec<&str> = self.devices().collect();
                        error.hint(format!("devices are {}", names.join(", ")))
                    }
                })
            }
        }
    }

    /// Compiles TorchScript source; `name` is what errors call it.
    pub fn load_source(&self, name: &str, text: &str) -> Result<Program> {
        load::load_source_with(name, text, self.registry())
    }

    /// A graph text as a program of one function called `entry`; `name` is what errors call the text.
    pub fn load_graph(&self, name: &str, text: &str, entry: &str) -> Result<Program> {
        load::load_graph_with(name, text, entry, self.registry())
    }

    /// Loads a file by what is in it: an archive, TorchScript source, or graph text. Objects of an archive that restore
    /// themselves do so in `run`.
    pub fn load_file(&self, path: &Path, run: &Run) -> Result<Program> {
        load::load_file_with(path, run, self.registry())
    }
}

impl std::fmt::Debug for Toolkit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Toolkit({})", self.name())
    }
}

#[cfg(test)]
mod tests;
