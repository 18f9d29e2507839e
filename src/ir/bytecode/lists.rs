//! Lists and dictionaries of constants: objects, whose identity programs see, as a default that is changed shows at every call.

use crate::ir::{Attr, Graph, Module, Schema};
use hashbrown::HashSet;

/// Those of a module, each once: of defaults, constants of classes and ops.
pub fn lists_of(module: &Module) -> Vec<Attr> {
    let mut found = Found::default();
    for function in module.functions.values() {
        found.schema(&function.schema);
        found.graph(&function.graph);
    }
    for class in module.classes.values() {
        class.constants.values().for_each(|(_, attr)| found.attr(attr));
    }
    for interface in module.interfaces.values() {
        interface.methods.values().for_each(|schema| found.schema(schema));
    }
    for tuple in module.named_tuples.values() {
        tuple.defaults.iter().for_each(|attr| found.attr(attr));
    }
    found.lists
}

/// Those of a graph, each once.
pub fn lists_in(graph: &Graph) -> Vec<Attr> {
    let mut found = Found::default();
    found.graph(graph);
    found.lists
}

/// How far an attribute reaches: attributes within each other, and all that are in it, as often as they stand there.
#[derive(Clone, Copy, Default)]
pub(super) struct Extent {
    pub depth: usize,
    pub count: usize,
}

impl Extent {
    /// Of an attribute that was written or read, so that it nests no deeper than these do.
    pub fn of(attr: &Attr) -> Extent {
        let mut inside = Extent::default();
        match attr {
            Attr::List(all) | Attr::Tuple(all) => {
                all.iter().for_each(|inner| inside.take_in(Extent::of(inner)))
            }
            Attr::Dict(pairs) => pairs.iter().for_each(|(key, value)| {
                inside.take_in(Extent::of(key));
                inside.take_in(Extent::of(value));
            }),
            Attr::Enum(parts) => inside.take_in(Extent::of(&parts.2)),
            _ => {}
        }
        inside.around()
    }

    /// That of what holds it.
    pub fn around(self) -> Extent {
        Extent { depth: self.depth + 1, count: self.count.saturating_add(1) }
    }

    /// With something else beside it.
    pub fn take_in(&mut self, other: Extent) {
        self.depth = self.depth.max(other.depth);
        self.count = self.count.saturating_add(other.count);
    }
}

#[derive(Default)]
struct Found {
    lists: Vec<Attr>,
    seen: HashSet<usize>,
}

impl Found {
    fn schema(&mut self, schema: &Schema) {
        schema.arguments.iter().filter_map(|argument| argument.default.as_ref()).for_each(|x| self.attr(x));
    }

    fn graph(&mut self, graph: &Graph) {
        for op in graph.all_ops() {
            graph.attrs(op).iter().for_each(|(_, attr)| self.attr(attr));
        }
    }

    fn attr(&mut self, attr: &Attr) {
        if let Some(identity) = attr.identity() {
            if !self.seen.insert(identity) {
                return;
            }
            self.lists.push(attr.clone());
        }
        match attr {
            Attr::Graph(graph) => self.graph(graph),
            Attr::Graphs(graphs) => graphs.iter().for_each(|graph| self.graph(graph)),
            Attr::List(all) | Attr::Tuple(all) => all.iter().for_each(|inner| self.attr(inner)),
            Attr::Dict(pairs) => pairs.iter().for_each(|(key, value)| {
                self.attr(key);
                self.attr(value);
            }),
            Attr::Enum(parts) => self.attr(&parts.2),
            _ => {}
        }
    }
}
