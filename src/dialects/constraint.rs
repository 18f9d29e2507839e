//! What ops, types and attributes may demand beyond the types of operands: traits, attributes with their kinds, and
//! conditions on parameters. All of it is data, so that a row in a text file can say what a row in Rust can.

use super::structure::Structure;
use crate::ir::{Attr, Symbol, TypeParameter};
use std::fmt;

/// A demand of an op row on the op in a graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// All tensor operands and results agree in dtype and sizes where both are known.
    SameType,
    /// Operands, blocks and results fit together in this way.
    Structure(Structure),
    /// The op's number of blocks. Without this law an op of a text file has none.
    Blocks(usize),
    /// The op may or must have an attribute.
    Attribute(Parameter),
}

/// A named parameter: an attribute of an op, or a parameter of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: Symbol,
    /// What it may be.
    pub kind: ParameterKind,
    /// What it is where nothing is said; without one it must be said.
    pub default: Option<Attr>,
    /// What must hold of it.
    pub conditions: Vec<Condition>,
}

/// The kind of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// Any integer.
    Int,
    /// Any number.
    Float,
    /// Text.
    Str,
    /// True or false (in graph text also 0 or 1).
    Bool,
    /// A type.
    Type,
    /// A list of integers.
    Ints,
    /// A list of numbers.
    Floats,
    /// A list of texts.
    Strs,
    /// A tensor.
    Tensor,
    /// A graph.
    Graph,
    /// Anything.
    Any,
    /// An attribute that a dialect declares: `#dialect.name<...>`.
    Declared(Symbol),
}

/// What must hold of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// One of these values.
    In(Vec<Attr>),
    /// Compared with a number.
    Compare(Comparison, f64),
}

/// How numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

impl Comparison {
    /// All with their signs.
    pub const ALL: [(&'static str, Comparison); 6] = [
        ("<=", Comparison::LessEqual),
        (">=", Comparison::GreaterEqual),
        ("==", Comparison::Equal),
        ("!=", Comparison::NotEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];

    fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Comparison::Less => a < b,
            Comparison::LessEqual => a <= b,
            Comparison::Equal => a == b,
            Comparison::NotEqual => a != b,
            Comparison::Greater => a > b,
            Comparison::GreaterEqual => a >= b,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::In(values) => {
                let values: Vec<String> = values.iter().map(value_text).collect();
                write!(f, "in {{{}}}", values.join(", "))
            }
            Condition::Compare(comparison, value) => {
                let sign = Comparison::ALL.iter().find(|(_, c)| c == comparison).map_or("", |(s, _)| s);
                write!(f, "{sign} {value}")
            }
        }
    }
}

/// A value as a message shows it.
pub fn value_text(attr: &Attr) -> String {
    match attr {
        Attr::Int(x) => x.to_string(),
        Attr::Float(x) => x.to_string(),
        Attr::Bool(x) => x.to_string(),
        Attr::Str(x) => format!("{x:?}"),
        Attr::Type(x) => x.to_string(),
        Attr::Object(held) => format!("object({})", held.class),
        Attr::Raw(x) => x.to_string(),
        Attr::Ints(x) => format!("{x:?}"),
        Attr::Floats(x) => format!("{x:?}"),
        Attr::Strs(x) => format!("{x:?}"),
        _ => "a value of another kind".to_string(),
    }
}

impl fmt::Display for ParameterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            ParameterKind::Int => "int",
            ParameterKind::Float => "float",
            ParameterKind::Str => "str",
            ParameterKind::Bool => "bool",
            ParameterKind::Type => "type",
            ParameterKind::Ints => "int[]",
            ParameterKind::Floats => "float[]",
            ParameterKind::Strs => "str[]",
            ParameterKind::Tensor => "tensor",
            ParameterKind::Graph => "graph",
            ParameterKind::Any => "any",
            ParameterKind::Declared(name) => return write!(f, "#{name}"),
        };
        f.write_str(text)
    }
}

impl ParameterKind {
    /// A kind by its keyword; None for a name that no kind has (it may be a declared attribute).
    pub fn from_word(word: &str) -> Option<ParameterKind> {
        use ParameterKind::*;
        let all = [Int, Float, Str, Bool, Type, Ints, Floats, Strs, Tensor, Graph, Any];
        all.into_iter().find(|kind| kind.to_string() == word)
    }

    fn takes(&self, value: &Attr) -> bool {
        match (self, value) {
            (ParameterKind::Any, _) => true,
            (ParameterKind::Int, Attr::Int(_))
            | (ParameterKind::Float, Attr::Float(_) | Attr::Int(_))
            | (ParameterKind::Str, Attr::Str(_))
            | (ParameterKind::Bool, Attr::Bool(_) | Attr::Int(0 | 1))
            | (ParameterKind::Type, Attr::Type(_))
            | (ParameterKind::Ints, Attr::Ints(_))
            | (ParameterKind::Floats, Attr::Floats(_) | Attr::Ints(_))
            | (ParameterKind::Strs, Attr::Strs(_))
            | (ParameterKind::Tensor, Attr::Tensor(_))
            | (ParameterKind::Graph, Attr::Graph(_)) => true,
            (ParameterKind::Ints | ParameterKind::Floats | ParameterKind::Strs, Attr::List(items)) => {
                items.is_empty()
            }
            (ParameterKind::Declared(name), Attr::Raw(text)) => {
                let rest = text.trim().strip_prefix('#').and_then(|t| t.strip_prefix(name.as_str()));
                rest.is_some_and(|r| r.is_empty() || r.starts_with('<'))
            }
            _ => false,
        }
    }
}

impl Parameter {
    /// A parameter that must be given.
    pub fn new(name: &str, kind: ParameterKind) -> Parameter {
        Parameter { name: Symbol::new(name), kind, default: None, conditions: Vec::new() }
    }

    /// What it is where nothing is said.
    pub fn default_value(mut self, value: Attr) -> Parameter {
        self.default = Some(value);
        self
    }

    /// What must hold of it.
    pub fn condition(mut self, condition: Condition) -> Parameter {
        self.conditions.push(condition);
        self
    }

    /// Checks a value; says what was expected and what it is.
    pub fn check(&self, value: &Attr) -> Result<(), String> {
        if !self.kind.takes(value) {
            return Err(format!("must be {}, not {}", self.kind, value_text(value)));
        }
        for condition in &self.conditions {
            let holds = match condition {
                Condition::In(values) => values.iter().any(|v| same(v, value)),
                Condition::Compare(comparison, bound) => {
                    number(value).is_some_and(|x| comparison.holds(x, *bound))
                }
            };
            if !holds {
                return Err(format!("must be {condition}, not {}", value_text(value)));
            }
        }
        Ok(())
    }

    /// `bits: int = 8 where bits in {4, 8}`
    pub fn to_text(&self) -> String {
        let mut text = format!("{}: {}", self.name, self.kind);
        if let Some(default) = &self.default {
            text.push_str(&format!(" = {}", value_text(default)));
        }
        for (n, condition) in self.conditions.iter().enumerate() {
            text.push_str(&format!(" {} {} {condition}", if n == 0 { "where" } else { "and" }, self.name));
        }
        text
    }
}

fn number(value: &Attr) -> Option<f64> {
    match value {
        Attr::Int(x) => Some(*x as f64),
        Attr::Float(x) => Some(*x),
        Attr::Bool(x) => Some(f64::from(u8::from(*x))),
        _ => None,
    }
}

fn same(a: &Attr, b: &Attr) -> bool {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// A type's parameter as the value that conditions speak of.
pub fn parameter_value(parameter: &TypeParameter) -> Attr {
    match parameter {
        TypeParameter::Int(x) => Attr::Int(*x),
        TypeParameter::Str(x) => Attr::Str(x.clone()),
        TypeParameter::Type(x) => Attr::Type(x.clone()),
    }
}

/// A type or attribute that a dialect declares.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// `dialect.name`
    pub name: Symbol,
    /// One sentence.
    pub summary: String,
    /// What stands between its angle brackets.
    pub parameters: Vec<Parameter>,
}

impl Declaration {
    /// A type or attribute without parameters: `sparse.coo`.
    pub fn new(name: &str, summary: &str) -> Declaration {
        Declaration { name: Symbol::new(name), summary: summary.to_string(), parameters: Vec::new() }
    }

    /// With one more parameter.
    pub fn parameter(mut self, parameter: Parameter) -> Declaration {
        self.parameters.push(parameter);
        self
    }

    /// Checks the values between the angle brackets.
    pub fn check(&self, values: &[Attr]) -> Result<(), String> {
        let required = self.parameters.iter().filter(|p| p.default.is_none()).count();
        if values.len() > self.parameters.len() || values.len() < required {
            return Err(format!(
                "{} takes {} parameters ({}), not {}",
                self.name,
                self.parameters.len(),
                self.parameters.iter().map(Parameter::to_text).collect::<Vec<_>>().join(", "),
                values.len()
            ));
        }
        for (parameter, value) in self.parameters.iter().zip(values) {
            parameter.check(value).map_err(|why| format!("{}: {} {why}", self.name, parameter.name))?;
        }
        Ok(())
    }
}
