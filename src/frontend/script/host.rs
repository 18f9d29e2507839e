//! What the program around source text (Python) says of names that the text does not define: globals, closures, classes,
//! modules and their members. The compiler asks when it encounters a name, so that what is never reached is never read.

use super::parse_type;
use crate::diag::{Diagnostic, Result, Source, Span};
use crate::ir::{Attr, Module, Symbol, Type};
use std::sync::Arc;

/// The program around source text.
pub trait Host: Send {
    /// Whether names in a text are this host's to explain: it gave the text.
    fn knows(&self, source: &Arc<Source>) -> bool;
    /// Notes that the names of one text (an annotation in quotes) mean what they mean in another.
    fn same_names(&self, inner: &Arc<Source>, outer: &Arc<Source>);
    /// What a name means at a place; None for a name that the host has not.
    fn name(&self, name: &str, place: &Span) -> Result<Option<Meaning>>;
    /// What a value that [`Meaning::Value`] gave has under a name.
    fn attribute(&self, value: u64, name: &str, place: &Span) -> Result<Option<Meaning>>;
    /// A thing that generated text names by its number: see [`HOST_NAME`].
    fn numbered(&self, number: u64) -> Result<Meaning>;
    /// A member of a class that was not declared with it.
    fn member(&self, class: Symbol, name: &str, place: &Span) -> Result<Option<Member>>;
}

/// Text that a host generates names its things by this and a number: `__host__.h7`.
pub const HOST_NAME: &str = "__host__.h";

/// What a name of the host means.
pub enum Meaning {
    /// A name of PyTorch or Python by its dotted path: `torch.nn.functional`, `math`, `len`.
    Path(String),
    /// A constant, which is materialized where it is used.
    Constant(Type, Attr),
    /// A type, written as an annotation.
    Type(String),
    /// A function, compiled when it is called.
    Function(FunctionText),
    /// Functions, the first of which that takes the arguments is called.
    Overloads(Vec<FunctionText>),
    /// An exception of the program's own, by its name with the module: `net.TooLong`.
    Exception(String),
    /// A class.
    Class(Box<ClassText>),
    /// A function or class of a module that is compiled already.
    Compiled(Arc<Module>, Symbol),
    /// A value that only its attributes make useful, by its number, with the name of its class in messages.
    Value(u64, String),
}

/// A function as text.
#[derive(Clone)]
pub struct FunctionText {
    /// Qualified name, another one for each function.
    pub name: Symbol,
    /// One `def`.
    pub source: Arc<Source>,
}

/// A class as text.
pub struct ClassText {
    /// Qualified name.
    pub name: Symbol,
    /// The class as archives write it: base, attributes, constants.
    pub header: Arc<Source>,
    /// Methods that are compiled in any case, one `def` each.
    pub methods: Vec<Arc<Source>>,
    /// Properties that are compiled in any case: the host is asked for each.
    pub properties: Vec<String>,
    /// Which of them runs when an object is made and declares attributes.
    pub has_init: bool,
    /// Submodules to iterate over and to choose from by number or name, in order.
    pub items: Option<Items>,
}

/// What a container of modules holds.
#[derive(Clone)]
pub enum Items {
    /// By number: the names of its attributes.
    List(Vec<String>),
    /// By name: keys and the names of attributes.
    Dict(Vec<(String, String)>),
}

/// A member of a class.
pub enum Member {
    /// A method.
    Method(Arc<Source>),
    /// A method with several signatures, each under the method's name with `__` and its number.
    Overloads(Vec<Arc<Source>>),
    /// A method without `self`.
    Static(FunctionText),
    /// A method that is read as an attribute, and the one that is called when it is set.
    Property(Arc<Source>, Option<Arc<Source>>),
    /// Anything else.
    Other(Meaning),
}

/// The type that an annotation means, with things of the host by number.
pub(super) fn read_type(text: &str) -> Result<super::ast::Expr> {
    parse_type(&Source::new("<annotation>", text))
}

/// An error for a text that should hold one function.
pub(super) fn no_function(source: &Source) -> Diagnostic {
    Diagnostic::compile(format!("{} does not hold one function", source.name()))
}
