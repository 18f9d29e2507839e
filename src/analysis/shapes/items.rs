//! What is known of the items of lists and dictionaries that are written to: for all names of one together, over the whole program,
//! so that the order of writes does not count. It does not know what is known of the lists that are only read.

use super::containers::{Given, Standing, is_container, written};
use super::state::{Items, State};
use crate::dialects::resolve;
use crate::dialects::shapes::Known;
use crate::ir::{Dim, OpId, TensorType, Type, TypeKind};

/// All of a graph is looked into so often until what is known of the items of lists and dictionaries that are written to does
/// not change any more. If it still does, nothing is known of them.
const MAX_ROUNDS: usize = 4;

impl Items {
    fn known(&self) -> Known {
        match &self.each {
            // So far it is empty.
            None => Known::Items(Vec::new()),
            Some(each) => Known::each_of([each.clone()]),
        }
    }
}

impl State<'_> {
    /// What an op that reads it knows of the list or dictionary of a number.
    pub(super) fn read(&mut self, class: usize) -> Known {
        let items = self.items.entry(class).or_default();
        items.is_read = true;
        items.known()
    }

    /// Lets what is written to the list or dictionary of a number be known of its items; `Nothing` too says something of them.
    fn put(&mut self, class: usize, each: &Known) {
        let each = self.without_symbols(each);
        let items = self.items.entry(class).or_default();
        let joined = items.each.as_ref().map_or_else(|| each.clone(), |known| known.join(&each));
        if items.each.as_ref() != Some(&joined) {
            items.each = Some(joined);
            items.has_grown |= items.is_read;
        }
    }

    /// A symbol of an op in a loop is another size each time.
    fn without_symbols(&self, known: &Known) -> Known {
        let size = |dim: &Dim| match dim {
            Dim::Symbol(n) if *n < self.first_symbol => Dim::Unknown,
            dim => *dim,
        };
        match known {
            Known::Tensor(t) => {
                let sizes = t.sizes.as_deref().map(|sizes| sizes.iter().map(size).collect());
                Known::Tensor(TensorType { sizes, ..t.clone() })
            }
            Known::Int(dim) => Known::Int(size(dim)),
            Known::Ints(_) | Known::Items(_) | Known::Each(_) => Known::Nothing,
            other => other.clone(),
        }
    }

    /// Whether all must be looked into once more, as items were read that are known better now.
    pub(super) fn begin_again(&mut self, round: usize) -> bool {
        let again = self.items.values().any(|items| items.has_grown);
        for items in self.items.values_mut() {
            if again && round >= MAX_ROUNDS {
                items.each = Some(Known::Nothing);
            }
            (items.is_read, items.has_grown) = (false, false);
        }
        if again {
            self.symbols.set(self.first_symbol);
            self.never.clear();
            self.numbers.clear();
        }
        again
    }

    /// What is known of all values, lists that are written to included.
    pub(super) fn finish(self) -> Vec<Known> {
        let mut known = self.known;
        for (n, class) in self.containers.written() {
            if let (Some(known), Some(items)) = (known.get_mut(n), self.items.get(&class)) {
                *known = Known::each_of(items.each.clone());
            }
        }
        known
    }

    /// Lets the items of a list or dictionary be among those of a number.
    pub(super) fn fill(&mut self, class: usize, from: &Known) {
        match from {
            Known::Items(items) => items.iter().for_each(|item| self.put(class, item)),
            Known::Ints(dims) => dims.iter().for_each(|dim| self.put(class, &Known::Int(*dim))),
            Known::Each(each) => self.put(class, each),
            _ => self.put(class, &Known::Nothing),
        }
    }

    /// An op that writes to a list or dictionary whose items are known together; says whether it is one.
    pub(super) fn write(&mut self, op: OpId) -> bool {
        let graph = self.graph;
        let Some(to) = graph.operand(op, 0) else { return false };
        let Standing::Written(class) = self.containers.standing(to) else { return false };
        let given = resolve(self.registry, graph, op).ok().and_then(|row| written(graph, op, &row));
        let Some(given) = given else { return false };
        for given in given {
            let (Given::Item(n) | Given::Items(n)) = given;
            let Some(operand) = graph.operand(op, n).filter(|operand| !self.never.contains(operand)) else {
                continue;
            };
            let known = self.of(operand);
            match given {
                Given::Item(_) => self.put(class, &known),
                Given::Items(_) => self.fill(class, &known),
            }
        }
        // What it gives is the list itself, or one of its items.
        let item = item_of(graph.ty(to));
        for result in graph.results(op) {
            if is_container(graph.ty(result)) {
                continue;
            }
            match self.read(class).each() {
                Some(each) if item.as_ref().is_some_and(|item| is_alike(item, graph.ty(result))) => {
                    self.set(result, each);
                }
                _ => self.set(result, Known::of_type(graph.ty(result))),
            }
        }
        true
    }
}

/// The type of the items of a list or dictionary.
fn item_of(ty: &Type) -> Option<Type> {
    match ty.without_none().kind() {
        TypeKind::List(item) | TypeKind::Dict(_, item) => Some(item.clone()),
        _ => None,
    }
}

/// Whether types are the same but for what they say of tensors.
fn is_alike(a: &Type, b: &Type) -> bool {
    a == b || a.is_tensor() && b.is_tensor()
}
