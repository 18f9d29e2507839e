//! Python in PyTorch's serialized form: the text of `code/` in an archive, and of `.code` in Python.
//!
//! A module's classes and functions become source files by the package part of their qualified names. What a graph
//! computes, in which order, is what the text computes; reading it back gives the same graph. Names, line breaks
//! and the order of definitions are those that PyTorch chooses, so that an archive that is read and written
//! again has the same code. This module knows ops only as far as Python has syntax for them.

mod body;
mod class;
mod constant;
mod expr;
mod inline;
mod loops;
mod names;
#[cfg(test)]
mod tests;
mod text;

pub use text::Text;

use crate::diag::{Diagnostic, Result, Span};
use crate::dialects::{Registry, is_custom_class};
use crate::ir::{Function, Module, Symbol, Type, TypeKind};
use crate::value::Value;
use indexmap::{IndexMap, IndexSet};
use std::borrow::Cow;
use std::cell::RefCell;

/// A module as Python.
#[derive(Debug, Default)]
pub struct Printed {
    /// Source files by package (`__torch__.torch.nn.modules.linear`), in order of first need.
    pub files: IndexMap<String, Text>,
    /// What the code calls `CONSTANTS.c0` and so on.
    pub constants: Vec<Value>,
}

/// Finds the place that a place was generated from: of code in an archive, the author's.
pub type Origin<'a> = &'a dyn Fn(&Span) -> Option<Span>;

/// Prints the definitions named by `roots`, in that order, everything that they need, and then what is still missing of
/// `others`. Constants that have a number in `constants` keep it.
pub fn print(
    registry: &Registry,
    module: &Module,
    roots: &[Symbol],
    others: &[Symbol],
    constants: Vec<Value>,
    origin: Origin<'_>,
) -> Result<Printed> {
    let needed = RefCell::new(roots.iter().copied().collect());
    let cx = Context { registry, module, needed, constants: RefCell::new(constants), origin };
    let mut files: IndexMap<String, File> = IndexMap::new();
    let mut others = others.iter();
    let mut next = 0;
    while let Some(name) = cx.next_needed(next).or_else(|| others.find(|o| !cx.is_needed(**o)).copied()) {
        cx.depend(name);
        next += 1;
        // PyTorch has no code for custom classes either: it knows them by name.
        if is_custom_class(name.as_str()) {
            continue;
        }
        let whole = qualified(name);
        let package = whole.rsplit_once('.').map_or("", |(package, _)| package);
        let file = files.entry(package.to_string()).or_default();
        file.item(&cx, name)?;
    }
    let files = files.into_iter().map(|(package, file)| (package, file.text)).collect();
    Ok(Printed { files, constants: cx.constants.into_inner() })
}

/// The name by which code calls a definition. Functions of PyTorch's own library are compiled with the program: their place is
/// below `__torch__`, as that of all that is compiled.
fn qualified(name: Symbol) -> Cow<'static, str> {
    match name.as_str().starts_with("torch.") {
        true => format!("__torch__.{name}").into(),
        false => name.as_str().into(),
    }
}

/// One function as Python, and what it calls `CONSTANTS.c0` and so on.
pub fn print_one(registry: &Registry, module: &Module, function: &Function) -> Result<(String, Vec<Value>)> {
    let constants = RefCell::default();
    let cx = Context { registry, module, needed: RefCell::default(), constants, origin: &|_| None };
    let mut file = File::default();
    let is_method = module.classes.values().any(|class| class.methods.values().any(|m| *m == function.name));
    file.function(&cx, function, 0, !is_method)?;
    Ok((file.text.as_str().to_string(), cx.constants.into_inner()))
}

/// The names that a whole module is printed from: its functions that are not methods, and its classes.
pub fn roots(module: &Module) -> Vec<Symbol> {
    let methods: IndexSet<Symbol> =
        module.classes.values().flat_map(|c| c.methods.values()).copied().collect();
    let functions = module.functions.keys().filter(|name| !methods.contains(*name));
    let types = module.classes.keys().chain(module.interfaces.keys());
    let types = types.chain(module.named_tuples.keys()).chain(module.enums.keys());
    types.chain(functions).copied().collect()
}

/// What all files of a module share.
struct Context<'a> {
    registry: &'a Registry,
    module: &'a Module,
    /// Definitions in the order in which they are needed.
    needed: RefCell<IndexSet<Symbol>>,
    constants: RefCell<Vec<Value>>,
    origin: Origin<'a>,
}

/// A source file.
#[derive(Debug, Default)]
struct File {
    text: Text,
    names: names::Names,
}

impl File {
    fn indent(&mut self, level: usize) {
        self.text.forget_place();
        for _ in 0..level {
            self.text.push("  ", None);
        }
    }
}

impl Context<'_> {
    fn next_needed(&self, n: usize) -> Option<Symbol> {
        self.needed.borrow().get_index(n).copied()
    }

    fn is_needed(&self, name: Symbol) -> bool {
        self.needed.borrow().contains(&name)
    }

    /// Notes that the code needs a definition.
    fn depend(&self, name: Symbol) {
        self.needed.borrow_mut().insert(name);
    }

    /// Notes every definition that a type speaks of.
    fn depend_on_type(&self, ty: &Type) {
        ty.visit(&mut |part| {
            match part.kind() {
                TypeKind::Class(name) | TypeKind::Interface(name) | TypeKind::Enum(name, _) => {
                    self.depend(*name);
                }
                TypeKind::Tuple(_, Some(names)) if self.is_named_tuple(part) => {
                    self.depend(names.name);
                    return false;
                }
                _ => {}
            }
            true
        });
    }

    /// Whether a type is a named tuple that the module defines. What an operator with several results gives has a name
    /// too, that cannot be written in source.
    fn is_named_tuple(&self, ty: &Type) -> bool {
        let TypeKind::Tuple(_, Some(names)) = ty.kind() else { return false };
        self.module.named_tuples.contains_key(&names.name)
    }

    /// The type with such tuples as plain ones.
    fn writable(&self, ty: &Type) -> Type {
        ty.rebuilt(&mut |part| self.is_named_tuple(part).then(|| part.clone()), &|whole| match whole.kind() {
            TypeKind::Tuple(elements, Some(_)) => Type::tuple(elements.clone()),
            _ => whole,
        })
    }

    /// A type as an annotation.
    fn type_text(&self, ty: &Type) -> Result<String> {
        if let TypeKind::Dialect(..) = ty.kind() {
            return Err(Diagnostic::unsupported(format!("the type {ty} as Python")));
        }
        self.depend_on_type(ty);
        self.writable(ty).whole_annotation()
    }
}
