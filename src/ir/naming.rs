//! Names of values that are unique within their graph, given as PyTorch gives them: the value named last keeps
//! the plain name, the one that had it before becomes `name.1`, `name.2` and so on.

use super::storage::NameIndex;
use super::{Graph, ValueId};

impl NameIndex {
    pub(super) fn insert(&mut self, name: &str, value: ValueId) {
        self.owners.insert(name.to_string(), value);
    }
}

impl Graph {
    /// Names a value. If another value has that name, the other one gets a suffix (`x` becomes `x.1`). A name
    /// may not be a number and may not be empty: such names leave the value as it is.
    pub fn set_unique_name(&mut self, value: ValueId, name: &str) {
        if name.is_empty() || name.bytes().all(|b| b.is_ascii_digit()) {
            return;
        }
        let mut index = self.take_name_index();
        let owner = self.owner_of_name(&index, name).filter(|owner| *owner != value);
        // Its old name is free from here on.
        self.values[value.index()].name_len = 0;
        if let Some(owner) = owner {
            let replacement = self.free_name(&mut index, name);
            index.insert(&replacement, owner);
            self.set_name(owner, &replacement);
        }
        index.insert(name, value);
        self.set_name(value, name);
        self.name_index = Some(index);
    }

    /// The value that has a name. The first call after a graph was read builds a table of all names.
    pub fn value_named(&mut self, name: &str) -> Option<ValueId> {
        let index = self.take_name_index();
        let owner = self.owner_of_name(&index, name);
        self.name_index = Some(index);
        owner
    }

    fn take_name_index(&mut self) -> Box<NameIndex> {
        self.name_index.take().unwrap_or_else(|| {
            let mut index = Box::new(NameIndex::default());
            for value in (0..self.values.len() as u32).map(ValueId) {
                if let Some(name) = self.name(value) {
                    index.insert(name, value);
                }
            }
            index
        })
    }

    fn owner_of_name(&self, index: &NameIndex, name: &str) -> Option<ValueId> {
        index.owners.get(name).copied().filter(|owner| self.name(*owner) == Some(name))
    }

    /// A name with the same base that no value has.
    fn free_name(&self, index: &mut NameIndex, name: &str) -> String {
        let (base, mut suffix) = match name.rsplit_once('.') {
            Some((base, digits)) if !base.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
                (base, digits.parse().unwrap_or(1))
            }
            _ => (name, 1),
        };
        if let Some(next) = index.suffixes.get(base) {
            suffix = suffix.max(*next + 1);
        }
        loop {
            let candidate = format!("{base}.{suffix}");
            suffix += 1;
            if self.owner_of_name(index, &candidate).is_none() {
                index.suffixes.insert(base.to_string(), suffix);
                return candidate;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Symbol, Type};

    #[test]
    fn the_value_named_last_keeps_the_name() {
        let mut g = Graph::new();
        let values: Vec<_> = (0..3).map(|_| g.add_input(Type::int())).collect();
        for v in &values {
            g.set_unique_name(*v, "x");
        }
        let names: Vec<_> = values.iter().map(|v| g.display_name(*v)).collect();
        assert_eq!(names, ["x.1", "x.3", "x"]);
        assert_eq!(g.value_named("x"), Some(values[2]));
    }

    #[test]
    fn names_of_erased_values_are_free() {
        let mut g = Graph::new();
        let op = g.emit(g.root(), Symbol::new("test::op"), &[], &[Type::int()]);
        let first = g.result(op, 0).unwrap();
        g.set_unique_name(first, "y");
        g.erase(op);
        let second = g.add_input(Type::int());
        g.set_unique_name(second, "y");
        assert_eq!(g.display_name(second), "y");
        assert_eq!(g.value_named("y"), Some(second));
    }

    #[test]
    fn numbers_are_no_names() {
        let mut g = Graph::new();
        let x = g.add_input(Type::int());
        g.set_unique_name(x, "12");
        assert_eq!(g.display_name(x), "0");
    }
}
