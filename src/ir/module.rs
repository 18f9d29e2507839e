//! A module: functions, classes, interfaces, enums and named tuples by qualified name, in order of definition.

use super::{Attr, Graph, Hierarchy, Schema, Symbol, Type};
use crate::diag::{Diagnostic, Result, Span};
use indexmap::IndexMap;

/// Everything that one program defines. Graphs are owned one by one; the rest is shared by them.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Free functions and methods, by qualified name (`__torch__.M.forward`).
    pub functions: IndexMap<Symbol, Function>,
    /// Script classes and module classes.
    pub classes: IndexMap<Symbol, ClassDef>,
    /// Interfaces.
    pub interfaces: IndexMap<Symbol, InterfaceDef>,
    /// Enum classes.
    pub enums: IndexMap<Symbol, EnumDef>,
    /// Named tuples.
    pub named_tuples: IndexMap<Symbol, NamedTupleDef>,
}

/// A function: schema and graph.
#[derive(Clone, Debug)]
pub struct Function {
    /// Qualified name.
    pub name: Symbol,
    /// Arguments (for a method, `self` first), defaults, results.
    pub schema: Schema,
    /// What it does.
    pub graph: Graph,
    /// Where it was defined.
    pub span: Option<Span>,
}

/// Whether a class is a module (parameters, submodules, reference semantics by path) or a plain script class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassKind {
    /// `class X(Module)`
    Module,
    /// `class X`
    Script,
}

/// A class.
#[derive(Clone, Debug)]
pub struct ClassDef {
    /// Qualified name.
    pub name: Symbol,
    /// Module or script class.
    pub kind: ClassKind,
    /// Attributes in slot order.
    pub attributes: Vec<ClassAttribute>,
    /// `Final` constants.
    pub constants: IndexMap<Symbol, (Type, Attr)>,
    /// Method name → qualified name of its function.
    pub methods: IndexMap<Symbol, Symbol>,
    /// Static methods likewise.
    pub static_methods: IndexMap<Symbol, Symbol>,
    /// Properties.
    pub properties: IndexMap<Symbol, Property>,
    /// Hooks that run before `forward`: names of their methods.
    pub forward_pre_hooks: Vec<Symbol>,
    /// Hooks that run after `forward`.
    pub forward_hooks: Vec<Symbol>,
}

/// An attribute of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassAttribute {
    /// Name.
    pub name: Symbol,
    /// Declared type.
    pub ty: Type,
    /// Listed in `__parameters__`.
    pub is_parameter: bool,
    /// Listed in `__buffers__`.
    pub is_buffer: bool,
}

/// A property: names of getter and setter methods.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// Getter.
    pub getter: Symbol,
    /// Setter, where it can be set.
    pub setter: Option<Symbol>,
}

/// An interface: the schemas of its methods.
#[derive(Clone, Debug)]
pub struct InterfaceDef {
    /// Qualified name.
    pub name: Symbol,
    /// Whether modules (and not script classes) implement it.
    pub is_module: bool,
    /// Methods by name.
    pub methods: IndexMap<Symbol, Schema>,
}

/// An enum class.
#[derive(Clone, Debug)]
pub struct EnumDef {
    /// Qualified name.
    pub name: Symbol,
    /// Type of the values: int, float or str.
    pub value_type: Type,
    /// Members in order.
    pub members: Vec<(Symbol, Attr)>,
}

/// A named tuple.
#[derive(Clone, Debug)]
pub struct NamedTupleDef {
    /// Its type, which has the name and the fields.
    pub ty: Type,
    /// Defaults of the last fields.
    pub defaults: Vec<Attr>,
}

impl Module {
    /// Takes over what another module defines and this one does not, methods of classes that both have among it. Fails, with
    /// nothing taken, where both define a class or function of one name differently.
    pub fn join(&mut self, other: &Module) -> Result<()> {
        let differs = |kind: &str, name: &Symbol| {
            Err(Diagnostic::input(format!("both programs define the {kind} {name}, and not alike")))
        };
        for (name, class) in &other.classes {
            if self.classes.get(name).is_some_and(|own| own.attributes != class.attributes) {
                return differs("class", name);
            }
        }
        for (name, function) in &other.functions {
            let alike = |own: &Function| {
                own.schema == function.schema && own.graph.to_string() == function.graph.to_string()
            };
            if self.functions.get(name).is_some_and(|own| !alike(own)) {
                return differs("function", name);
            }
        }
        self.add_missing(other);
        Ok(())
    }

    fn add_missing(&mut self, other: &Module) {
        for (name, class) in &other.classes {
            let own = self.classes.entry(*name).or_insert_with(|| class.clone());
            for (method, function) in &class.methods {
                own.methods.entry(*method).or_insert(*function);
            }
        }
        for (name, interface) in &other.interfaces {
            self.interfaces.entry(*name).or_insert_with(|| interface.clone());
        }
        for (name, def) in &other.enums {
            self.enums.entry(*name).or_insert_with(|| def.clone());
        }
        for (name, def) in &other.named_tuples {
            self.named_tuples.entry(*name).or_insert_with(|| def.clone());
        }
        for (name, function) in &other.functions {
            self.functions.entry(*name).or_insert_with(|| function.clone());
        }
    }

    /// A function by qualified name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        Symbol::existing(name).and_then(|name| self.functions.get(&name))
    }

    /// A class by qualified name.
    pub fn class(&self, name: Symbol) -> Option<&ClassDef> {
        self.classes.get(&name)
    }

    /// A method of a class.
    pub fn method(&self, class: Symbol, method: &str) -> Option<&Function> {
        let method = Symbol::existing(method)?;
        self.classes.get(&class)?.methods.get(&method).and_then(|name| self.functions.get(name))
    }
}

impl Hierarchy for Module {
    fn is_module_class(&self, class: Symbol) -> bool {
        self.classes.get(&class).is_some_and(|c| c.kind == ClassKind::Module)
    }

    fn class_method(&self, class: Symbol, method: Symbol) -> Option<&Schema> {
        let function = self.classes.get(&class)?.methods.get(&method)?;
        self.functions.get(function).map(|f| &f.schema)
    }

    fn is_module_interface(&self, interface: Symbol) -> bool {
        self.interfaces.get(&interface).is_some_and(|i| i.is_module)
    }

    fn interface_methods(&self, interface: Symbol) -> Vec<(Symbol, &Schema)> {
        self.interfaces.get(&interface).into_iter().flat_map(|i| &i.methods).map(|(n, s)| (*n, s)).collect()
    }
}

impl ClassDef {
    /// Whether calls of a module of the class run more than its `forward`.
    pub fn has_hooks(&self) -> bool {
        !self.forward_pre_hooks.is_empty() || !self.forward_hooks.is_empty()
    }

    /// An empty class.
    pub fn new(name: Symbol, kind: ClassKind) -> ClassDef {
        ClassDef {
            name,
            kind,
            attributes: Vec::new(),
            constants: IndexMap::new(),
            methods: IndexMap::new(),
            static_methods: IndexMap::new(),
            properties: IndexMap::new(),
            forward_pre_hooks: Vec::new(),
            forward_hooks: Vec::new(),
        }
    }

    /// An attribute by name.
    pub fn attribute(&self, name: &str) -> Option<&ClassAttribute> {
        self.attributes.iter().find(|a| a.name == name)
    }
}
