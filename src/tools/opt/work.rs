//! What `opt` does with one module: parse, verify, run passes, print; and what it says when something breaks.

use super::options::{ExplainForm, OutputForm};
use super::page::Page;
use super::read::{Input, archive, read_text};
use super::validate::Validator;
use super::{Options, expected, reproducer};
use crate::diag::{Diagnostic, Result, Source, files, render};
use crate::dialects::{Laws, Registry};
use crate::ir::{Module, ParsedModule, PrintOptions, Symbol, verify_module};
use crate::passes::manager::statistics::Statistics;
use crate::passes::manager::timing::Timing;
use crate::passes::manager::{Runner, Settings, StopAt};
use crate::passes::{Meanings, Pipeline};
use crate::rewrite::Explanations;
use crate::runtime::{Program, ScriptComposites};
use crate::tools::inputs;
use crate::tools::io::Io;
use crate::tools::oracle::pass_error_signature;
use crate::value::Value;
use hashbrown::HashSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Everything that the options request.
pub(super) struct Work<'a> {
    pub(super) options: &'a Options,
    pub(super) registry: &'a Arc<Registry>,
    pub(super) pipeline: &'a Pipeline,
}

/// What came of one module.
struct Outcome {
    diagnostics: Vec<Diagnostic>,
    output: Option<Module>,
    /// What passes did, where that is wanted instead of the module.
    page: Option<String>,
}

/// Where the text goes: standard output or a file, which is made when something is written first.
struct Output<'a> {
    path: &'a Path,
    file: Option<File>,
}

impl Output<'_> {
    fn write(
        &mut self,
        io: &mut Io<'_>,
        text: &mut dyn FnMut(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<()> {
        if self.path == Path::new("-") {
            // A closed pipe is not a failure of the command.
            let _ = text(io.out);
            return Ok(());
        }
        let mut write = || match &mut self.file {
            Some(file) => text(file),
            none => text(none.insert(File::create(io.path(self.path))?)),
        };
        write().map_err(|e| Diagnostic::input(format!("{}: {e}", self.path.display())))
    }
}

impl Work<'_> {
    /// Works on the whole input, or on its parts.
    pub(super) fn all(&self, input: &Input, io: &mut Io<'_>) -> Result<bool> {
        let mut timing = Timing::default();
        let mut statistics = Statistics::default();
        let parts = self.parts(input);
        let mut all_well = true;
        let mut output = Output { path: &self.options.output, file: None };
        for (n, part) in parts.iter().enumerate() {
            let outcome = self.one(input, part.as_ref(), &mut timing, &mut statistics, io)?;
            let failed = outcome.diagnostics.iter().any(|d| !is_warning(d));
            match part {
                Some(source) if self.options.verify_diagnostics => {
                    let wrong = expected::compare(source, &outcome.diagnostics);
                    wrong.iter().for_each(|d| self.show(d, io));
                    all_well &= wrong.is_empty();
                }
                _ => {
                    outcome.diagnostics.iter().for_each(|d| self.show(d, io));
                    all_well &= !failed;
                }
            }
            timing.begin("print");
            let prints = self.options.prints();
            if n > 0 && prints {
                output.write(io, &mut |to| to.write_all(b"\n# -----\n\n"))?;
            }
            if let Some(module) = outcome.output.filter(|_| prints) {
                let form = self.options.form();
                match self.options.to {
                    OutputForm::Html => {
                        let page = outcome.page.unwrap_or_default();
                        output.write(io, &mut |to| to.write_all(page.as_bytes()))?;
                    }
                    OutputForm::Ir => {
                        module.check_text()?;
                        output.write(io, &mut |to| module.write_text(to, &form))?;
                    }
                    OutputForm::Mlir => {
                        let mut text = Vec::new();
                        module.write_mlir(&mut text, &form)?;
                        output.write(io, &mut |to| to.write_all(&text))?;
                    }
                }
            }
            timing.end();
        }
        // The file is made even where nothing is printed.
        output.write(io, &mut |_| Ok(()))?;
        self.tell_times(&timing, &statistics, io)?;
        Ok(all_well)
    }

    /// The parts of the input that are worked on one by one; None for an archive.
    fn parts(&self, input: &Input) -> Vec<Option<Arc<Source>>> {
        match &input.source {
            Some(source) if self.options.split_input_file => {
                expected::split(&input.name, source.text()).into_iter().map(Some).collect()
            }
            source => vec![source.clone()],
        }
    }

    fn one(
        &self,
        input: &Input,
        source: Option<&Arc<Source>>,
        timing: &mut Timing,
        statistics: &mut Statistics,
        io: &mut Io<'_>,
    ) -> Result<Outcome> {
        timing.begin("parse");
        let parsed = self.read(input, source)?;
        timing.end();
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(diagnostics) => return Ok(Outcome { diagnostics, output: None, page: None }),
        };
        timing.begin("verify");
        let mut diagnostics = self.verify(&parsed);
        timing.end();
        if !diagnostics.is_empty() {
            return Ok(Outcome { diagnostics, output: None, page: None });
        }
        diagnostics.extend(self.unknown_ops(&parsed));
        let mut module = parsed.module;
        if self.options.inputs.any() {
            let (entry, arguments) = self.arguments(input, &module, io)?;
            inputs::annotate(&mut module, &entry, &arguments);
        }
        timing.begin("passes");
        let mut settings = self.options.settings()?;
        settings.extras.set(Arc::new(Meanings(ScriptComposites::of(self.registry))));
        // The model itself, whose attributes some passes make constants of.
        if source.is_none()
            && let Some(instance) = archive(input, self.registry)?.program.instance()
        {
            settings.extras.set(Arc::new(instance.clone()));
        }
        let explanations = Arc::new(Explanations::new(self.options.questions()));
        if explanations.questions.any() {
            settings.extras.set(Arc::clone(&explanations));
        }
        let mut page = (self.options.to == OutputForm::Html)
            .then(|| Page::new(self.registry, &explanations, self.options.form(), module.clone()));
        let result = self.passes(&mut module, settings, (Some(timing), page.as_mut()), statistics, io);
        timing.end();
        let answers = match self.options.look.explain {
            Some(ExplainForm::Json) => explanations.to_json(),
            None if self.options.look.why_not.is_none() => String::new(),
            _ => explanations.to_text(),
        };
        // If the module goes elsewhere, the answers are the output of the command.
        match self.options.prints() && self.options.output == Path::new("-") {
            true => io.message(&answers),
            false => io.print(&answers),
        }
        let page = page.map(|page| page.html(&input.name, &self.pipeline.to_text()));
        match result {
            Ok(()) => Ok(Outcome { diagnostics, output: Some(module), page }),
            Err((index, errors)) => {
                let mut errors = errors;
                if let Some(index) = index
                    && let Some(file) = self.reproduce(input, source, index, &errors, io)
                    && let Some(first) = errors.first_mut()
                {
                    let hint = format!("`flambeau opt --run-reproducer {}` replays it", file.display());
                    *first = first.clone().hint(hint);
                }
                diagnostics.extend(errors);
                Ok(Outcome { diagnostics, output: None, page: None })
            }
        }
    }

    /// The function that inputs are for, and what it is called with.
    pub(super) fn arguments(
        &self,
        input: &Input,
        module: &Module,
        io: &mut Io<'_>,
    ) -> Result<(String, Vec<Value>)> {
        let loaded = match &input.source {
            None => archive(input, self.registry)?,
            Some(_) => Program::with(module.clone(), None, Arc::clone(self.registry)).into(),
        };
        let entry = inputs::entry(&self.options.entry, &loaded.program).to_string();
        let given = self.options.inputs.resolve(&loaded, &entry, io)?;
        io.message(&given.note().unwrap_or_default());
        let name = loaded.program.function(&entry).map_or(entry, |function| function.name.to_string());
        Ok((name, given.values(0, io.directory)?))
    }

    /// Reads the input or one of its parts.
    pub(super) fn read(
        &self,
        input: &Input,
        source: Option<&Arc<Source>>,
    ) -> Result<std::result::Result<ParsedModule, Vec<Diagnostic>>> {
        match source {
            Some(source) => {
                let (bare, symbols) = (self.options.no_locations, self.options.symbols);
                Ok(read_text(source, self.registry, bare, symbols))
            }
            None => {
                let module = archive(input, self.registry)?.program.module().clone();
                Ok(Ok(ParsedModule { module, ..ParsedModule::default() }))
            }
        }
    }

    /// The laws of the structure and of dialects.
    fn verify(&self, parsed: &ParsedModule) -> Vec<Diagnostic> {
        let laws = Laws::new(self.registry, self.options.strictness());
        verify_module(&parsed.module, &laws, &|name| parsed.places.get(&name).cloned())
    }

    /// Warnings about ops that are carried although their dialect is known.
    fn unknown_ops(&self, parsed: &ParsedModule) -> Vec<Diagnostic> {
        if self.options.allow_unregistered_dialect {
            return Vec::new();
        }
        let mut met: HashSet<Symbol> = HashSet::new();
        let mut warnings = Vec::new();
        for (name, function) in &parsed.module.functions {
            let graph = &function.graph;
            for op in graph.all_ops() {
                let kind = graph.kind(op);
                if !met.insert(kind) || !self.registry.overloads(kind).is_empty() {
                    continue;
                }
                let span = parsed.places.get(name).and_then(|p| p.span(op));
                let warning = self.registry.unknown(kind).warning().at_opt(span.as_ref());
                warnings.push(warning.note("it is treated as opaque, with unknown side effects"));
            }
        }
        warnings
    }

    /// Runs the passes; the error says how many went well before, where one failed.
    fn passes(
        &self,
        module: &mut Module,
        settings: Settings,
        (timing, page): (Option<&mut Timing>, Option<&mut Page>),
        statistics: &mut Statistics,
        io: &mut Io<'_>,
    ) -> std::result::Result<(), (Option<usize>, Vec<Diagnostic>)> {
        let mut print = self.options.print_ir();
        let idle = print.is_idle();
        let mut runner = Runner::new(self.registry, settings, io.err);
        if !idle {
            runner.observe(&mut print);
        }
        if self.options.pass_statistics() {
            runner.observe(statistics);
        }
        if let Some(timing) = timing {
            runner.observe(timing);
        }
        if let Some(page) = page {
            runner.observe(page);
        }
        let given = module.clone();
        let mut validator =
            self.options.validate_each.map(|draws| Validator::new(self.registry, draws, given));
        if let Some(validator) = &mut validator {
            runner.observe(validator);
        }
        match runner.run(self.pipeline, module) {
            Ok(_) => {
                drop(runner);
                let Some(validator) = validator else { return Ok(()) };
                io.message(&validator.note());
                let faults = validator.into_faults();
                if faults.is_empty() { Ok(()) } else { Err((None, faults)) }
            }
            Err(error) => {
                let index = runner.executed().saturating_sub(1);
                let mut errors = runner.violations().to_vec();
                errors.insert(0, error);
                Err((Some(index), errors))
            }
        }
    }

    /// Runs a pipeline over a copy, nothing printed: what it comes to and the error, if there is one.
    pub(super) fn attempt(
        &self,
        module: &Module,
        pipeline: &Pipeline,
        stop: Option<StopAt>,
    ) -> Result<(Module, usize, std::result::Result<(), Diagnostic>)> {
        let mut module = module.clone();
        let mut sink = std::io::sink();
        let settings = Settings { stop, log: Default::default(), ..self.options.settings()? };
        let mut runner = Runner::new(self.registry, settings, &mut sink);
        let result = runner.run(pipeline, &mut module).map(|_| ());
        let executed = runner.executed();
        Ok((module, executed, result))
    }

    /// Writes a reproducer of a failing pass: the pass alone on its input if that fails in the same way, else everything.
    fn reproduce(
        &self,
        input: &Input,
        source: Option<&Arc<Source>>,
        index: usize,
        errors: &[Diagnostic],
        io: &mut Io<'_>,
    ) -> Option<PathBuf> {
        let error = errors.first()?;
        if self.options.trouble.no_reproducer || self.options.verify_diagnostics {
            return None;
        }
        let module = self.read(input, source).ok()?.ok()?.module;
        let case = self.smallest_case(&module, index, error)?;
        let dialects: Vec<(String, String)> = self
            .options
            .dialect
            .iter()
            .filter_map(|f| Some((f.display().to_string(), io.read_text(f).ok()?)))
            .collect();
        let case = reproducer::Case {
            name: input.name.clone(),
            error: error.message().to_string(),
            carries: self.options.allow_unregistered_dialect,
            strict: self.options.strict,
            unverified: self.options.no_verify_each,
            limits: self.options.limits_text(),
            dialects,
            ..case
        };
        self.keep(reproducer::write(&case).as_bytes(), io).ok()
    }

    /// Writes a reproducer where the user wants it, else to a new file that is private to the user.
    fn keep(&self, text: &[u8], io: &Io<'_>) -> std::io::Result<PathBuf> {
        let trouble = &self.options.trouble;
        match (&trouble.reproducer, &trouble.reproducer_folder) {
            (Some(file), _) => std::fs::write(io.path(file), text).map(|()| file.clone()),
            (None, Some(folder)) => files::create_in(&io.path(folder), "flambeau-reproducer", "ir", text),
            (None, None) => {
                let file = files::Temporary::new("reproducer")?.keep().join("reproducer.ir");
                files::create(&file, text).map(|()| file)
            }
        }
    }

    fn smallest_case(&self, module: &Module, index: usize, error: &Diagnostic) -> Option<reproducer::Case> {
        let stop = StopAt { index, steps: 0 };
        if let Ok((before, _, Ok(()))) = self.attempt(module, self.pipeline, Some(stop))
            && let Some(step) = self.pipeline.nth(index)
        {
            let again = self.attempt(&before, &step, None);
            let same = matches!(&again, Ok((_, _, Err(e))) if pass_error_signature(e) == pass_error_signature(error));
            if same {
                return Some(reproducer::Case::new(&before, step.to_text()));
            }
        }
        Some(reproducer::Case::new(module, self.pipeline.to_text()))
    }

    fn show(&self, diagnostic: &Diagnostic, io: &mut Io<'_>) {
        io.message(&render::in_form(diagnostic, self.options.diagnostics.form()));
    }

    fn tell_times(&self, timing: &Timing, statistics: &Statistics, io: &mut Io<'_>) -> Result<()> {
        if self.options.pass_statistics() {
            io.message(&statistics.to_text());
        }
        match self.options.look.timing.as_deref() {
            None => {}
            Some("tree") => io.message(&timing.to_tree()),
            Some(form) => {
                let Some(file) = form.strip_prefix("chrome:") else {
                    let error = Diagnostic::usage(format!("there is no form of timing '{form}'"));
                    return Err(error.hint("write --timing, or --timing=chrome:FILE"));
                };
                std::fs::write(io.path(Path::new(file)), timing.to_chrome())
                    .map_err(|e| Diagnostic::input(format!("{file}: {e}")))?;
            }
        }
        Ok(())
    }
}

impl Options {
    /// Whether the module is written, to standard output or a file.
    fn prints(&self) -> bool {
        !self.no_output && !self.verify_diagnostics
    }

    fn form(&self) -> PrintOptions {
        if self.no_locations { PrintOptions::bare() } else { PrintOptions::default() }
    }

    fn pass_statistics(&self) -> bool {
        self.look.pass_statistics
    }
}

fn is_warning(diagnostic: &Diagnostic) -> bool {
    diagnostic.report().severity == crate::diag::Severity::Warning
}
