//! A program in the making: what is defined, what is still to be compiled, where code comes from.

use super::{Sugared, error};
use crate::diag::{Diagnostic, Result, Source, Span};
use crate::dialects::{Registry, is_custom_class};
use crate::frontend::script::ast::{Class, Def, Item};
use crate::frontend::script::host::{Host, Items};
use crate::frontend::script::{library, parse_library, parse_module};
use crate::ir::schema::{Argument, Schema};
use crate::ir::{Attr, ClassAttribute, ClassDef, Module, Symbol, Type, TypeKind};
use indexmap::IndexMap;
use std::rc::Rc;
use std::sync::Arc;

/// How many functions may be in compilation inside each other.
const MAX_NESTING: usize = 200;

/// One error among others: the first line of what it says, and its place.
fn brief(error: &Diagnostic) -> String {
    let line = error.message().lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
    match &error.report().span {
        Some(span) => {
            let (row, column) = span.line_column();
            format!("another error: {line} ({}:{row}:{})", span.source().name(), column + 1)
        }
        None => format!("another error: {line}"),
    }
}

/// How many more errors are reported besides the first.
const MAX_ERRORS: usize = 20;

/// Where the code of an archive comes from.
pub trait Library {
    /// The source of a module by its dotted name (`__torch__.torch.nn.modules.linear`).
    fn source(&self, module: &str) -> Option<Result<Arc<Source>>>;
}

/// A program in the making.
pub(in crate::frontend::script) struct Compiler {
    pub(super) registry: Arc<Registry>,
    pub(super) module: Module,
    library: Option<Rc<dyn Library>>,
    pub(super) host: Option<Rc<dyn Host>>,
    /// What containers of modules hold.
    pub(super) containers: IndexMap<Symbol, Items>,
    constants: Vec<(Type, Attr)>,
    functions: IndexMap<Symbol, (Rc<Def>, Option<Symbol>)>,
    classes: IndexMap<Symbol, Rc<Class>>,
    parsed: Vec<String>,
    in_progress: Vec<Symbol>,
    /// The first op that is not known here, whose results were guessed.
    unknown: Option<Diagnostic>,
}

impl Compiler {
    /// An empty program over a table of ops.
    pub(in crate::frontend::script) fn new(registry: Arc<Registry>) -> Compiler {
        Compiler {
            registry,
            module: Module::default(),
            library: None,
            host: None,
            containers: IndexMap::new(),
            constants: Vec::new(),
            functions: IndexMap::new(),
            classes: IndexMap::new(),
            parsed: Vec::new(),
            in_progress: Vec::new(),
            unknown: None,
        }
    }

    /// Takes code from an archive, with its constants.
    pub(in crate::frontend::script) fn with_library(
        mut self,
        library: Rc<dyn Library>,
        constants: Vec<(Type, Attr)>,
    ) -> Compiler {
        self.library = Some(library);
        self.constants = constants;
        self
    }

    /// Whether the program is source text and not the code of an archive.
    pub(super) fn is_source(&self) -> bool {
        self.library.is_none()
    }

    /// Notes an op that is not known.
    pub(super) fn note_unknown(&mut self, op: Diagnostic) {
        self.unknown.get_or_insert(op);
    }

    /// Declares the functions of a source text.
    pub(in crate::frontend::script) fn declare_source(
        &mut self,
        source: &Arc<Source>,
    ) -> Result<Vec<Symbol>> {
        let mut names = Vec::new();
        for item in parse_module(source)?.items {
            if let Item::Def(def) = item {
                let name = Symbol::new(&def.name.name);
                self.functions.insert(name, (Rc::new(def), None));
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Begins with what a module defines.
    pub(in crate::frontend::script) fn with_module(mut self, module: Module) -> Compiler {
        self.module = module;
        self
    }

    /// Declares the functions of a source text besides what there is, or methods of a class.
    pub(in crate::frontend::script) fn declare_further(
        &mut self,
        source: &Arc<Source>,
        class: Option<Symbol>,
    ) -> Result<()> {
        for item in parse_module(source)?.items {
            let Item::Def(def) = item else { continue };
            let short = Symbol::new(&def.name.name);
            let name = class.map_or(short, |class| Symbol::new(&format!("{class}.{short}")));
            if self.has_function(name) {
                return error(&def.name.span, format!("method '{name}' already defined."));
            }
            if let Some(class) = class.and_then(|class| self.module.classes.get_mut(&class)) {
                class.methods.insert(short, name);
            }
            self.declare(name, Rc::new(def), class);
        }
        Ok(())
    }

    /// Compiles everything that was declared, and gives the program. The error is the first one; notes report those
    /// in other functions.
    pub(in crate::frontend::script) fn finish(mut self) -> Result<Module> {
        if self.host.is_some() {
            // Before the calls that run them, whose errors would hide what is wrong.
            let classes: Vec<Symbol> = self.module.classes.keys().copied().collect();
            classes.into_iter().try_for_each(|class| self.check_hooks(class))?;
        }
        let mut at = 0;
        let mut errors: Vec<Diagnostic> = Vec::new();
        // Compiling may declare more.
        while let Some((name, _)) = self.functions.get_index(at) {
            let name = *name;
            if let Err(error) = self.ensure(name, None) {
                // A caller fails for the same reason as what it calls.
                let is_same = |other: &Diagnostic| {
                    other.message() == error.message() && other.report().span == error.report().span
                };
                if !errors.iter().any(is_same) {
                    errors.push(error);
                }
                if errors.len() > MAX_ERRORS {
                    break;
                }
            }
            at += 1;
        }
        let mut errors = errors.into_iter();
        match errors.next() {
            None => Ok(self.module),
            Some(first) => Err(errors.fold(first, |first, other| first.note(brief(&other)))),
        }
    }

    /// Compiles a function unless that is done; `caller` is who asks, and where.
    fn ensure(&mut self, name: Symbol, caller: Option<(&str, &Span)>) -> Result<()> {
        if self.module.functions.contains_key(&name) {
            return Ok(());
        }
        let base = name.as_str().rsplit('.').next().unwrap_or_default().to_string();
        if self.in_progress.contains(&name) || self.in_progress.len() >= MAX_NESTING {
            let message =
                format!(" function '{base}' is called recursively. Recursive calls are not supported");
            return match caller {
                Some((_, span)) => error(span, message),
                None => Err(Diagnostic::compile(message)),
            };
        }
        let Some((def, owner)) = self.functions.get(&name).cloned() else {
            return Err(Diagnostic::compile(format!("function {name} is not defined")));
        };
        self.in_progress.push(name);
        let result = self.compile_function(name, &def, owner.map(Type::class));
        self.in_progress.pop();
        // What does not fit after a guess is the fault of the op that is missing.
        let result = result.map_err(|d| self.unknown.take().unwrap_or(d));
        let compiled = result.map_err(|d| {
            let d = if d.report().frames.is_empty() { d.frame(base.clone(), None) } else { d };
            match caller {
                Some((caller, span)) => d.frame(caller.to_string(), Some(span.clone())),
                None => d,
            }
        })?;
        self.module.functions.insert(name, compiled);
        Ok(())
    }

    /// The schema of a function, which is compiled for it.
    pub(super) fn function_schema(&mut self, name: Symbol, caller: &str, span: &Span) -> Result<Schema> {
        self.ensure(name, Some((caller, span)))?;
        match self.module.functions.get(&name) {
            Some(function) => Ok(function.schema.clone()),
            None => error(span, format!("function {name} is not defined")),
        }
    }

    /// The schema of a method, which is compiled for it.
    pub(super) fn method_schema(
        &mut self,
        class: Symbol,
        method: &str,
        caller: &str,
        span: &Span,
    ) -> Result<Schema> {
        let function = self.module.class(class).and_then(|c| c.methods.get(&Symbol::new(method)).copied());
        match function {
            Some(function) => self.function_schema(function, caller, span),
            None => error(span, format!("class {class} has no method '{method}'")),
        }
    }

    /// Whether calls of a module run hooks.
    pub(super) fn has_hooks(&self, class: Symbol) -> bool {
        self.module.class(class).is_some_and(ClassDef::has_hooks)
    }

    /// Whether the text of a method says the type of its result.
    pub(super) fn states_result(&self, class: Symbol, method: Symbol) -> bool {
        let function = self.module.class(class).and_then(|c| c.methods.get(&method));
        let text = function.and_then(|function| self.functions.get(function));
        text.is_some_and(|(def, _)| def.decl.returns.is_some())
    }

    /// The schema of a method of an interface.
    pub(super) fn interface_schema(&self, interface: Symbol, method: &str, span: &Span) -> Result<Schema> {
        let schema = self.module.interfaces.get(&interface).and_then(|i| i.methods.get(&Symbol::new(method)));
        match schema {
            Some(schema) => Ok(schema.clone()),
            None => error(span, format!("'{interface}' object has no attribute or method '{method}'")),
        }
    }

    /// The constructor of a named tuple.
    pub(super) fn named_tuple_schema(&self, ty: &Type) -> Schema {
        let TypeKind::Tuple(elements, Some(names)) = ty.kind() else {
            return Schema::new("tuple", Vec::new(), vec![Argument::new("", ty.clone())]);
        };
        let defaults = self.module.named_tuples.get(&names.name).map_or(&[][..], |d| d.defaults.as_slice());
        let first = names.fields.len().saturating_sub(defaults.len());
        let arguments = names.fields.iter().zip(elements.iter()).enumerate().map(|(n, (field, ty))| {
            let mut argument = Argument::new(*field, ty.clone());
            argument.default = n.checked_sub(first).and_then(|i| defaults.get(i)).cloned();
            argument
        });
        Schema::new(names.name, arguments.collect(), vec![Argument::new("", ty.clone())])
    }

    pub(super) fn has_method(&self, class: Symbol, method: &str) -> bool {
        self.module.class(class).is_some_and(|c| c.methods.contains_key(&Symbol::new(method)))
    }

    pub(super) fn has_attribute(&self, class: Symbol, name: &str) -> bool {
        self.module.class(class).is_some_and(|c| {
            let symbol = Symbol::new(name);
            c.attribute(name).is_some()
                || c.methods.contains_key(&symbol)
                || c.constants.contains_key(&symbol)
                || c.properties.contains_key(&symbol)
        })
    }

    pub(super) fn static_method(&self, class: Symbol, name: &str) -> Option<Symbol> {
        self.module.class(class)?.static_methods.get(&Symbol::new(name)).copied()
    }

    /// `Class.name` as a function: a static method, or in an archive a method or hook with its object as first
    /// argument.
    pub(super) fn class_function(
        &mut self,
        class: Symbol,
        name: &str,
        span: &Span,
    ) -> Result<Option<Sugared>> {
        if let Some(function) = self.static_method(class, name) {
            return Ok(Some(Sugared::Function(function)));
        }
        if self.is_source() {
            let other = self.hosted_member(class, name, span)?;
            return Ok(self.static_method(class, name).map(Sugared::Function).or(other));
        }
        self.lookup_qualified(&format!("{class}.{name}"), span)
    }

    pub(super) fn property_setter(&self, class: Symbol, name: &str) -> Option<Symbol> {
        self.module.class(class)?.properties.get(&Symbol::new(name))?.setter
    }

    pub(super) fn enum_type(&self, class: Symbol) -> Type {
        let value = self.module.enums.get(&class).map_or_else(Type::int, |e| e.value_type.clone());
        Type::new(TypeKind::Enum(class, value))
    }

    /// Whether a method may declare attributes of its class.
    pub(super) fn is_initializing(&self, class: Symbol, function: &str) -> bool {
        function == "__init__"
            && self.in_progress.last().is_some_and(|f| f.as_str().starts_with(class.as_str()))
    }

    pub(super) fn add_attribute(&mut self, class: Symbol, name: &str, ty: Type) {
        if let Some(def) = self.module.classes.get_mut(&class) {
            def.attributes.push(ClassAttribute {
                name: Symbol::new(name),
                ty,
                is_parameter: false,
                is_buffer: false,
            });
        }
    }

    /// Whether a function is declared or compiled.
    pub(super) fn has_function(&self, name: Symbol) -> bool {
        self.functions.contains_key(&name) || self.module.functions.contains_key(&name)
    }

    /// Declares a method or function to be compiled when it is needed.
    pub(super) fn declare(&mut self, name: Symbol, def: Rc<Def>, owner: Option<Symbol>) {
        self.functions.insert(name, (def, owner));
    }

    /// `CONSTANTS.c0`
    pub(super) fn archive_constant(&self, name: &str, span: &Span) -> Result<Sugared> {
        let index = name.strip_prefix('c').and_then(|n| n.parse::<usize>().ok());
        match index.and_then(|n| self.constants.get(n)) {
            Some((ty, attr)) => Ok(Sugared::Constant(ty.clone(), attr.clone())),
            None => error(span, format!("the archive has no constant {name}")),
        }
    }

    /// A function of a module of PyTorch that is written in Python there; None if there is no such function.
    pub(super) fn python_function(&mut self, module: &str, name: &str) -> Result<Option<Symbol>> {
        let qualified = Symbol::new(&format!("{module}.{name}"));
        if self.functions.contains_key(&qualified) {
            return Ok(Some(qualified));
        }
        let Some(text) = library::source(module, name) else { return Ok(None) };
        let source = Source::new(format!("{}.py", module.replace('.', "/")), text);
        for item in parse_module(&source)?.items {
            if let Item::Def(def) = item {
                let name = Symbol::new(&format!("{module}.{}", def.name.name));
                self.functions.insert(name, (Rc::new(def), None));
            }
        }
        Ok(Some(qualified))
    }

    /// A class of PyTorch that is written in Python there; None if there is no such class.
    pub(super) fn python_class(&mut self, path: &str, span: &Span) -> Result<Option<Sugared>> {
        let Some((module, text)) = library::class_source(path) else { return Ok(None) };
        let source = Source::new(format!("{}.py", module.replace('.', "/")), text);
        let mut found = None;
        for item in parse_library(&source)?.items {
            if let Item::Class(class) = item {
                let name = Symbol::new(&format!("__torch__.{module}.{}", class.name.name));
                self.classes.entry(name).or_insert_with(|| Rc::new(class));
                found = self.known(name, span)?;
            }
        }
        Ok(found)
    }

    /// What a plain name means in this program.
    pub(super) fn lookup(&mut self, name: &str, span: &Span) -> Result<Option<Sugared>> {
        if self.is_hosted(span) {
            return self.hosted_name(name, span);
        }
        if self.is_source() {
            // Functions of Python's library see the others of their module.
            let module = self.in_progress.last().and_then(|f| f.as_str().rsplit_once('.'));
            if let Some((module, _)) = module {
                let symbol = Symbol::new(&format!("{module}.{name}"));
                if self.functions.contains_key(&symbol) {
                    return Ok(Some(Sugared::Function(symbol)));
                }
            }
            let symbol = Symbol::new(name);
            return Ok(self.functions.contains_key(&symbol).then_some(Sugared::Function(symbol)));
        }
        // A name within the code of an archive may be qualified by nothing at all.
        self.known(Symbol::new(name), span)
    }

    /// What a dotted name means; code of an archive is read for it.
    pub(super) fn lookup_qualified(&mut self, path: &str, span: &Span) -> Result<Option<Sugared>> {
        if let Some(found) = self.hosted_number(path, span)? {
            return Ok(Some(found));
        }
        let name = Symbol::new(path);
        if let Some(found) = self.known(name, span)? {
            return Ok(Some(found));
        }
        if is_custom_class(path) {
            self.define_custom(name);
            return Ok(self.defined(name));
        }
        let Some((module, _)) = path.rsplit_once('.') else { return Ok(None) };
        self.read_module(module)?;
        self.known(name, span)
    }

    pub(super) fn known(&mut self, name: Symbol, span: &Span) -> Result<Option<Sugared>> {
        if self.has_function(name) {
            return Ok(Some(Sugared::Function(name)));
        }
        if let Some(found) = self.defined(name) {
            return Ok(Some(found));
        }
        let Some(class) = self.classes.get(&name).cloned() else { return Ok(None) };
        self.define_class(name, &class, span)?;
        Ok(self.defined(name))
    }

    pub(super) fn defined(&self, name: Symbol) -> Option<Sugared> {
        if self.module.classes.contains_key(&name) {
            return Some(Sugared::Class(name));
        }
        if let Some(tuple) = self.module.named_tuples.get(&name) {
            return Some(Sugared::NamedTuple(tuple.ty.clone()));
        }
        if self.module.enums.contains_key(&name) {
            return Some(Sugared::EnumClass(name));
        }
        self.module.interfaces.contains_key(&name).then(|| Sugared::Type(Type::interface(name)))
    }

    /// Reads a module of the archive and notes what it defines.
    fn read_module(&mut self, module: &str) -> Result<()> {
        if self.parsed.iter().any(|m| m == module) {
            return Ok(());
        }
        let Some(source) = self.library.as_ref().and_then(|library| library.source(module)) else {
            return Ok(());
        };
        let source = source?;
        self.parsed.push(module.to_string());
        for item in parse_library(&source)?.items {
            match item {
                Item::Def(def) => {
                    let name = Symbol::new(&format!("{module}.{}", def.name.name));
                    self.functions.insert(name, (Rc::new(def), None));
                }
                Item::Class(class) => {
                    let name = Symbol::new(&format!("{module}.{}", class.name.name));
                    self.classes.insert(name, Rc::new(class));
                }
            }
        }
        Ok(())
    }

    /// Makes sure that a class of the archive is defined with all its methods declared.
    pub(in crate::frontend::script) fn require(&mut self, path: &str) -> Result<()> {
        let place = Span::new(&Source::new("data.pkl", ""), 0, 0);
        match self.lookup_qualified(path, &place)? {
            Some(_) => Ok(()),
            None => Err(Diagnostic::input(format!("the archive has no code for class {path}"))),
        }
    }
}
