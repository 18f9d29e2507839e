//! Names, classes and members that the program around the text explains: see [`Host`].

use super::sugared::Sugared;
use super::{Compiler, Emitter, error};
use crate::diag::{Result, Source, Span};
use crate::frontend::script::ast::{Def, Item};
use crate::frontend::script::host::{self, ClassText, FunctionText, HOST_NAME, Host, Items, Meaning, Member};
use crate::frontend::script::{parse_library, parse_python};
use crate::ir::{Attr, Property, Symbol, Type, ValueId};
use std::rc::Rc;
use std::sync::Arc;

impl Compiler {
    /// Takes names from the program around the text.
    pub(in crate::frontend::script) fn with_host(mut self, host: Rc<dyn Host>) -> Compiler {
        self.host = Some(host);
        self
    }

    /// The host, where a name of a text is its to explain.
    fn host_of(&self, span: &Span) -> Option<Rc<dyn Host>> {
        self.host.clone().filter(|host| host.knows(span.source()))
    }

    /// Whether the host explains the names of a text.
    pub(super) fn is_hosted(&self, span: &Span) -> bool {
        self.host_of(span).is_some()
    }

    /// Names of one text mean what they mean in another.
    pub(super) fn same_names(&self, inner: &Arc<Source>, outer: &Arc<Source>) {
        if let Some(host) = self.host.as_ref().filter(|host| host.knows(outer)) {
            host.same_names(inner, outer);
        }
    }

    /// What the host says of a name.
    pub(super) fn hosted_name(&mut self, name: &str, span: &Span) -> Result<Option<Sugared>> {
        let Some(host) = self.host_of(span) else { return Ok(None) };
        host.name(name, span)?.map(|meaning| self.mean(meaning, span)).transpose()
    }

    /// What generated text names by a number.
    pub(super) fn hosted_number(&mut self, path: &str, span: &Span) -> Result<Option<Sugared>> {
        let Some(host) = self.host.clone() else { return Ok(None) };
        let Some(number) = path.strip_prefix(HOST_NAME).and_then(|n| n.parse().ok()) else { return Ok(None) };
        let meaning = host.numbered(number)?;
        self.mean(meaning, span).map(Some)
    }

    /// What a value of the host has under a name.
    pub(super) fn hosted_attribute(
        &mut self,
        value: u64,
        name: &str,
        span: &Span,
    ) -> Result<Option<Sugared>> {
        let Some(host) = self.host.clone() else { return Ok(None) };
        host.attribute(value, name, span)?.map(|meaning| self.mean(meaning, span)).transpose()
    }

    /// Declares a thing of the host, so that it is compiled.
    pub(in crate::frontend::script) fn declare_hosted(
        &mut self,
        meaning: Meaning,
        span: &Span,
    ) -> Result<()> {
        self.mean(meaning, span).map(|_| ())
    }

    /// Declares what a meaning speaks of.
    fn mean(&mut self, meaning: Meaning, span: &Span) -> Result<Sugared> {
        match meaning {
            Meaning::Path(path) => Ok(Sugared::Namespace(path)),
            Meaning::Exception(class) => Ok(Sugared::Exception(class)),
            Meaning::Constant(ty, attr) => Ok(Sugared::Constant(ty, attr)),
            Meaning::Type(text) => self.scratch().type_of(&host::read_type(&text)?).map(Sugared::Type),
            Meaning::Function(text) => self.declare_text(&text).map(Sugared::Function),
            Meaning::Overloads(texts) => texts
                .iter()
                .map(|text| self.declare_text(text))
                .collect::<Result<_>>()
                .map(Sugared::Overloaded),
            Meaning::Class(text) => {
                let name = text.name;
                if self.defined(name).is_none() {
                    self.define_text(*text, span)?;
                }
                match self.defined(name) {
                    Some(found) => Ok(found),
                    None => error(span, format!("class {name} is not defined")),
                }
            }
            Meaning::Compiled(module, name) => {
                self.module.join(&module).map_err(|error| error.at(span))?;
                match self.known(name, span)? {
                    Some(found) => Ok(found),
                    None => error(span, format!("{name} is not defined")),
                }
            }
            Meaning::Value(number, kind) => Ok(Sugared::Hosted(number, kind)),
        }
    }

    fn declare_text(&mut self, text: &FunctionText) -> Result<Symbol> {
        if !self.has_function(text.name) {
            self.declare(text.name, Rc::new(only_def(&text.source)?), None);
        }
        Ok(text.name)
    }

    fn define_text(&mut self, text: ClassText, span: &Span) -> Result<()> {
        let name = text.name;
        let items = parse_library(&text.header)?.items;
        let Some(Item::Class(header)) = items.into_iter().next() else {
            return error(span, format!("the header of class {name} holds no class"));
        };
        if let Some(items) = text.items {
            self.containers.insert(name, items);
        }
        // Methods are known before types of attributes are read, which may speak of the class.
        self.define_class(name, &header, span)?;
        for method in &text.methods {
            let def = only_def(method)?;
            self.declare_member(name, Rc::new(def));
        }
        for property in &text.properties {
            self.hosted_member(name, property, span)?;
        }
        if text.has_init {
            self.method_schema(name, "__init__", name.as_str(), span)?;
        }
        Ok(())
    }

    fn declare_member(&mut self, class: Symbol, def: Rc<Def>) -> Symbol {
        let short = Symbol::new(&def.name.name);
        let function = Symbol::new(&format!("{class}.{short}"));
        if let Some(known) = self.module.classes.get_mut(&class) {
            known.methods.insert(short, function);
        }
        self.declare(function, def, Some(class));
        function
    }

    /// Asks the host for a member of a class that has none of this name yet. What it gives besides members is returned.
    pub(super) fn hosted_member(
        &mut self,
        class: Symbol,
        name: &str,
        span: &Span,
    ) -> Result<Option<Sugared>> {
        let Some(host) = self.host.clone() else { return Ok(None) };
        match host.member(class, name, span)? {
            None => Ok(None),
            Some(Member::Method(source)) => {
                self.declare_member(class, Rc::new(only_def(&source)?));
                Ok(None)
            }
            Some(Member::Overloads(sources)) => {
                for source in &sources {
                    self.declare_member(class, Rc::new(only_def(source)?));
                }
                Ok(None)
            }
            Some(Member::Static(text)) => {
                let function = self.declare_text(&text)?;
                if let Some(known) = self.module.classes.get_mut(&class) {
                    known.static_methods.insert(Symbol::new(name), function);
                }
                Ok(None)
            }
            Some(Member::Property(getter, setter)) => {
                let mut declare = |source: &Arc<Source>, part: &str| -> Result<Symbol> {
                    let mut def = only_def(source)?;
                    def.name.name = format!("__{name}_{part}");
                    self.declare_member(class, Rc::new(def));
                    Ok(Symbol::new(&format!("__{name}_{part}")))
                };
                let getter = declare(&getter, "getter")?;
                let setter = setter.map(|source| declare(&source, "setter")).transpose()?;
                if let Some(known) = self.module.classes.get_mut(&class) {
                    known.properties.insert(Symbol::new(name), Property { getter, setter });
                }
                Ok(None)
            }
            Some(Member::Other(meaning)) => self.mean(meaning, span).map(Some),
        }
    }
}

/// The one function of a text.
fn only_def(source: &Arc<Source>) -> Result<Def> {
    match parse_python(source)?.items.into_iter().next() {
        Some(Item::Def(def)) => Ok(def),
        _ => Err(host::no_function(source)),
    }
}

impl Emitter<'_> {
    /// What a dotted path of PyTorch or Python means, whatever the program itself calls by its parts.
    pub(super) fn path(&mut self, path: &str, span: &Span) -> Result<Sugared> {
        let mut parts = path.split('.');
        let first = parts.next().unwrap_or_default();
        let Some(mut found) = self.resolve_builtin(first, span)? else {
            return error(span, format!("undefined value {first}"));
        };
        for part in parts {
            found = self.attribute(found, part, span)?;
        }
        Ok(found)
    }

    /// A dotted name with its first part as PyTorch or Python calls it, where the host has it as a name of these.
    pub(super) fn hosted_path(&mut self, path: &str, span: &Span) -> Result<Option<String>> {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        Ok(match self.unit.hosted_name(first, span)? {
            Some(Sugared::Namespace(base)) => Some(format!("{base}.{rest}")),
            _ => None,
        })
    }

    /// What a container of modules holds, as it is iterated over: modules of a list, keys of a dictionary.
    pub(super) fn container_items(&mut self, object: ValueId, span: &Span) -> Result<Option<Vec<Sugared>>> {
        match self.items_of(object) {
            None => Ok(None),
            Some(Items::List(names)) => {
                let all = names.iter().map(|name| self.object_item(object, name, span));
                all.collect::<Result<_>>().map(Some)
            }
            Some(Items::Dict(entries)) => Ok(Some(entries.iter().map(|(key, _)| text(key)).collect())),
        }
    }

    /// The modules of a list of modules.
    pub(super) fn container_list(&mut self, object: ValueId, span: &Span) -> Result<Option<Vec<Sugared>>> {
        match self.items_of(object) {
            Some(Items::List(_)) => self.container_items(object, span),
            _ => Ok(None),
        }
    }

    /// `"name" in modules`
    pub(super) fn container_has(
        &mut self,
        object: ValueId,
        key: ValueId,
        span: &Span,
    ) -> Result<Option<ValueId>> {
        let Some(Items::Dict(entries)) = self.items_of(object) else { return Ok(None) };
        match self.constant_of(key) {
            Some(Attr::Str(key)) => {
                let has = entries.iter().any(|(known, _)| **known == **key);
                Ok(Some(self.bool(has, span)))
            }
            _ => error(span, "the key of a dictionary of modules must be a constant string"),
        }
    }

    /// Whether a value is a list of modules or a dictionary of them.
    pub(super) fn is_container(&self, object: ValueId) -> bool {
        self.items_of(object).is_some()
    }

    fn items_of(&self, object: ValueId) -> Option<Items> {
        let class = self.ty(object).class_name()?;
        self.unit.containers.get(&class).cloned()
    }

    fn object_item(&mut self, object: ValueId, name: &str, span: &Span) -> Result<Sugared> {
        self.attribute(Sugared::Value(object), name, span)
    }

    /// `keys()`, `values()`, `items()` of a dictionary of modules, and what lists and modules have alike.
    pub(super) fn container_method(
        &mut self,
        object: ValueId,
        method: &str,
        span: &Span,
    ) -> Result<Option<Vec<Sugared>>> {
        let mut found = Vec::new();
        match self.items_of(object) {
            Some(Items::Dict(entries)) => {
                for (key, name) in entries {
                    let key = text(&key);
                    found.push(match method {
                        "keys" => key,
                        "values" => self.object_item(object, &name, span)?,
                        "items" => Sugared::Tuple(vec![key, self.object_item(object, &name, span)?]),
                        _ => return Ok(None),
                    });
                }
            }
            _ => return self.module_members(object, method, span),
        }
        Ok(Some(found))
    }

    /// `modules[2]`, `modules["name"]`: which one must be known.
    pub(super) fn container_item(
        &mut self,
        object: ValueId,
        index: &Attr,
        span: &Span,
    ) -> Result<Option<Sugared>> {
        let name = match (self.items_of(object), index) {
            (Some(Items::List(names)), Attr::Int(at)) => {
                let count = names.len() as i64;
                let at = if *at < 0 { at + count } else { *at };
                match usize::try_from(at).ok().and_then(|at| names.get(at)) {
                    Some(name) => name.clone(),
                    None => {
                        return error(span, format!("Index {index:?} is out of range of {count} modules"));
                    }
                }
            }
            (Some(Items::Dict(entries)), Attr::Str(key)) => {
                match entries.iter().find(|(k, _)| **k == **key) {
                    Some((_, name)) => name.clone(),
                    None => return error(span, format!("Key Error, {key}")),
                }
            }
            _ => return Ok(None),
        };
        self.object_item(object, &name, span).map(Some)
    }
}

fn text(text: &str) -> Sugared {
    Sugared::Constant(Type::str(), Attr::Str(text.into()))
}
