//! The arguments and results of an exported program as its caller sees them: nested as they were when it was exported. What
//! was constant then is checked at each call, as PyTorch does it.

use super::guards::{Guards, attr};
use super::nodes::{Nodes, name_of, type_of};
use super::schema::{Argument, Constant, Graph, InputSpec};
use super::tree::{Key, Tree};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Argument as Formal, Attr, Symbol, Type, ValueId};
use crate::resources::memory;

/// What a caller gives, in order.
pub(super) enum Leaf<'a> {
    /// A value, by the name that the graph has for it.
    Given(&'a Argument),
    /// A value that must be as it was.
    Fixed(&'a Constant),
}

impl Leaf<'_> {
    fn ty(&self) -> Result<Type> {
        match self {
            Leaf::Given(Argument::CustomObj(object)) => {
                Err(Diagnostic::unsupported(format!("an argument of the class {}", object.class_fqn)))
            }
            Leaf::Given(arg) => Ok(type_of(arg).unwrap_or_else(Type::any)),
            Leaf::Fixed(Constant::None(_)) => Ok(Type::optional(Type::tensor())),
            Leaf::Fixed(Constant::Int(_)) => Ok(Type::int()),
            Leaf::Fixed(Constant::Float(_)) => Ok(Type::float()),
            Leaf::Fixed(Constant::String(_)) => Ok(Type::str()),
            Leaf::Fixed(Constant::Bool(_)) => Ok(Type::bool()),
        }
    }
}

/// The leaves that a caller gives.
pub(super) fn leaves(inputs: &[InputSpec]) -> Vec<Leaf<'_>> {
    inputs.iter().filter_map(leaf).collect()
}

fn leaf(input: &InputSpec) -> Option<Leaf<'_>> {
    match input {
        InputSpec::UserInput { arg } => Some(Leaf::Given(arg)),
        InputSpec::ConstantInput { value } => Some(Leaf::Fixed(value)),
        _ => None,
    }
}

/// The arguments by position and name, from the tree of all of them.
pub(super) fn arguments<'t>(tree: &'t Tree, names: Option<&[String]>) -> Result<Vec<(String, &'t Tree)>> {
    let (positional, named): (&[Tree], &[(Key, Tree)]) = match tree {
        Tree::Tuple(both) => match both.as_slice() {
            [Tree::Tuple(items), Tree::Dict(pairs)] => (items, pairs),
            _ => {
                return Err(Diagnostic::input(
                    "the tree of arguments has no part by position and part by name",
                ));
            }
        },
        _ => return Err(Diagnostic::input("the tree of arguments is not a tuple")),
    };
    let count = positional.len() + named.len();
    let names = names.filter(|names| names.len() == count);
    let mut arguments = memory::vec_reserved(count)?;
    for (n, tree) in positional.iter().enumerate() {
        arguments.push((names.map_or_else(|| format!("argument_{n}"), |names| names[n].clone()), tree));
    }
    for (key, tree) in named {
        match key {
            Key::Str(name) => arguments.push((name.clone(), tree)),
            Key::Int(_) => return Err(Diagnostic::input("an argument is named by a number")),
        }
    }
    for (n, (name, _)) in arguments.iter().enumerate() {
        if !is_name(name) || name == "self" || arguments[..n].iter().any(|(other, _)| other == name) {
            return Err(Diagnostic::input(format!("an argument cannot be called `{}`", name.escape_debug())));
        }
    }
    Ok(arguments)
}

fn is_name(name: &str) -> bool {
    let start = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    start && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Takes the arguments of the function apart, names what the graph uses, and checks the rest.
pub(super) struct Unpacker<'n, 'a, 'l> {
    pub(super) nodes: &'n mut Nodes<'a>,
    pub(super) guards: Guards<'l>,
    pub(super) leaves: std::vec::IntoIter<Leaf<'l>>,
}

impl Unpacker<'_, '_, '_> {
    /// The type of an argument and what it is if the caller gives none.
    pub(super) fn formal(&self, name: &str, tree: &Tree, ahead: &mut usize) -> Result<Formal> {
        let start = *ahead;
        let mut formal = Formal::new(name, self.ty(tree, ahead)?);
        if let (Tree::Leaf, Some(Leaf::Fixed(constant))) = (tree, self.leaves.as_slice().get(start)) {
            formal.default = Some(attr(constant));
        }
        Ok(formal)
    }

    fn ty(&self, tree: &Tree, ahead: &mut usize) -> Result<Type> {
        let mut all = |trees: &mut dyn Iterator<Item = &Tree>| -> Result<Vec<Type>> {
            trees.map(|tree| self.ty(tree, ahead)).collect()
        };
        Ok(match tree {
            Tree::Leaf => {
                let leaf = self.leaves.as_slice().get(*ahead);
                *ahead += 1;
                leaf.ok_or_else(|| Diagnostic::input("the tree of arguments has too many leaves"))?.ty()?
            }
            Tree::Tuple(items) => Type::tuple(all(&mut items.iter())?),
            Tree::List(items) => Type::list(common(&all(&mut items.iter())?)),
            Tree::Dict(pairs) => {
                Type::dict(key_type(pairs)?, common(&all(&mut pairs.iter().map(|(_, tree)| tree))?))
            }
            Tree::Named { name, fields } => {
                let types = all(&mut fields.iter().map(|(_, tree)| tree))?;
                Type::named_tuple(Symbol::new(name), names(fields), types)
            }
        })
    }

    /// Takes a value apart. `path` is how Python would reach it.
    pub(super) fn unpack(&mut self, tree: &Tree, value: ValueId, path: &str) -> Result<()> {
        let nodes = &mut *self.nodes;
        match tree {
            Tree::Leaf => self.leaf(value, path),
            Tree::Tuple(items) => {
                let items: Vec<(&Tree, String)> =
                    items.iter().enumerate().map(|(n, tree)| (tree, format!("{path}[{n}]"))).collect();
                self.parts("prim::TupleUnpack", value, &items)
            }
            Tree::Named { fields, .. } => {
                let items: Vec<(&Tree, String)> =
                    fields.iter().map(|(name, tree)| (tree, format!("{path}.{name}"))).collect();
                self.parts("prim::TupleUnpack", value, &items)
            }
            Tree::List(items) => {
                let items: Vec<(&Tree, String)> =
                    items.iter().enumerate().map(|(n, tree)| (tree, format!("{path}[{n}]"))).collect();
                self.parts("prim::ListUnpack", value, &items)
            }
            Tree::Dict(pairs) => {
                let len = nodes.by_types("aten::len", &[value], Some(&Type::int()))?;
                let wanted = nodes.emitter.constant(Type::int(), Attr::Int(pairs.len() as i64))?;
                self.guards.equal(nodes, (len, wanted), &format!("len({path}) == {}", pairs.len()))?;
                for (key, tree) in pairs {
                    let (key, shown) = self.key(key)?;
                    let part = self.nodes.by_types("aten::__getitem__", &[value, key], None)?;
                    self.unpack(tree, part, &format!("{path}[{shown}]"))?;
                }
                Ok(())
            }
        }
    }

    fn key(&mut self, key: &Key) -> Result<(ValueId, String)> {
        let emitter = &mut self.nodes.emitter;
        Ok(match key {
            Key::Str(text) => {
                (emitter.constant(Type::str(), Attr::Str(text.as_str().into()))?, format!("'{text}'"))
            }
            Key::Int(n) => (emitter.constant(Type::int(), Attr::Int(*n))?, n.to_string()),
        })
    }

    fn parts(&mut self, kind: &str, value: ValueId, items: &[(&Tree, String)]) -> Result<()> {
        let graph = &self.nodes.emitter.graph;
        let ty = graph.ty(value).clone();
        let types: Vec<Type> = match ty.tuple_elements() {
            Some(elements) => elements.to_vec(),
            None => memory::filled(items.len(), ty.element().cloned().unwrap_or_else(Type::any))?.into_vec(),
        };
        let op = self.nodes.emitter.emit(kind, &[value], &types);
        let parts = self.nodes.emitter.graph.results(op);
        for ((tree, path), part) in items.iter().zip(parts) {
            self.unpack(tree, part, path)?;
        }
        Ok(())
    }

    fn leaf(&mut self, value: ValueId, path: &str) -> Result<()> {
        match self.leaves.next() {
            Some(Leaf::Given(arg)) => {
                let value = match type_of(arg) {
                    Some(ty) => self.nodes.emitter.cast(value, &ty)?,
                    None => value,
                };
                if let Some(name) = name_of(arg) {
                    self.nodes.bind(name, value);
                    self.guards.sizes(self.nodes, name, value, path)?;
                }
                Ok(())
            }
            Some(Leaf::Fixed(constant)) => self.guards.constant(self.nodes, constant, value, path),
            None => Err(Diagnostic::input("the tree of arguments has too many leaves")),
        }
    }
}

/// Puts results together as the caller sees them.
pub(super) fn pack<'l>(
    nodes: &mut Nodes<'_>,
    tree: &Tree,
    leaves: &mut impl Iterator<Item = &'l Argument>,
) -> Result<ValueId> {
    let mut all = |nodes: &mut Nodes<'_>, trees: &mut dyn Iterator<Item = &Tree>| -> Result<Vec<ValueId>> {
        trees.map(|tree| pack_any(nodes, tree, leaves)).collect()
    };
    match tree {
        Tree::Leaf => {
            let leaf = leaves.next();
            nodes.free(leaf.ok_or_else(|| Diagnostic::input("the tree of results has too many leaves"))?)
        }
        Tree::Tuple(items) => {
            let items = all(nodes, &mut items.iter())?;
            let types = types(nodes, &items);
            nodes.emitter.value("prim::TupleConstruct", &items, Type::tuple(types))
        }
        Tree::Named { name, fields } => {
            let items = all(nodes, &mut fields.iter().map(|(_, tree)| tree))?;
            let ty = Type::named_tuple(Symbol::new(name), names(fields), types(nodes, &items));
            nodes.emitter.value("prim::TupleConstruct", &items, ty)
        }
        Tree::List(items) => {
            let items = all(nodes, &mut items.iter())?;
            let element = common(&types(nodes, &items));
            nodes.list(&items, element)
        }
        Tree::Dict(pairs) => {
            let items = all(nodes, &mut pairs.iter().map(|(_, tree)| tree))?;
            let ty = Type::dict(key_type(pairs)?, common(&types(nodes, &items)));
            let mut operands = memory::vec_reserved(2 * items.len())?;
            for ((key, _), item) in pairs.iter().zip(items) {
                let key = match key {
                    Key::Str(text) => nodes.emitter.constant(Type::str(), Attr::Str(text.as_str().into()))?,
                    Key::Int(n) => nodes.emitter.constant(Type::int(), Attr::Int(*n))?,
                };
                operands.extend([key, item]);
            }
            nodes.emitter.value("prim::DictConstruct", &operands, ty)
        }
    }
}

/// The same through a pointer, as the recursion would make ever new types of iterators.
fn pack_any(
    nodes: &mut Nodes<'_>,
    tree: &Tree,
    mut leaves: &mut dyn Iterator<Item = &Argument>,
) -> Result<ValueId> {
    pack(nodes, tree, &mut leaves)
}

/// Puts values into the places that the graph's outputs have for them.
pub(super) fn write_back(nodes: &mut Nodes<'_>, target: ValueId, value: &str) -> Result<()> {
    let value = nodes.named(value)?;
    if value != target {
        nodes.by_types("aten::copy_", &[target, value], None)?;
    }
    Ok(())
}

/// The names that the graph has for its inputs, beside what they are for.
pub(super) fn inputs<'g>(
    graph: &'g Graph,
    specs: &'g [InputSpec],
) -> Result<Vec<(Option<&'g str>, &'g InputSpec)>> {
    if graph.inputs.len() != specs.len() {
        return Err(Diagnostic::input(format!(
            "the graph has {} inputs, and its signature {}",
            graph.inputs.len(),
            specs.len()
        )));
    }
    Ok(graph.inputs.iter().map(name_of).zip(specs).collect())
}

fn types(nodes: &Nodes<'_>, values: &[ValueId]) -> Vec<Type> {
    values.iter().map(|value| nodes.emitter.graph.ty(*value).clone()).collect()
}

/// The type that all have, or anything.
fn common(types: &[Type]) -> Type {
    match types {
        [] => Type::tensor(),
        [first, rest @ ..] if rest.iter().all(|ty| ty == first) => first.clone(),
        _ => Type::any(),
    }
}

fn names(fields: &[(String, Tree)]) -> Vec<Symbol> {
    fields.iter().map(|(name, _)| Symbol::new(name)).collect()
}

fn key_type(pairs: &[(Key, Tree)]) -> Result<Type> {
    let text = |(key, _): &(Key, Tree)| matches!(key, Key::Str(_));
    match (pairs.iter().all(text), pairs.iter().any(text)) {
        (true, _) => Ok(Type::str()),
        (_, false) => Ok(Type::int()),
        _ => Err(Diagnostic::unsupported("a dictionary with texts and numbers as keys")),
    }
}
