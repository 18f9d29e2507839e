//! Copies of ops with all that is nested in them, within a graph or from another one.

use crate::ir::Graph;
use crate::ir::location::LocationId;
use crate::ir::{OpId, Type, ValueId};
use hashbrown::HashMap;
use smallvec::SmallVec;

impl Graph {
    /// Copies an op of another graph with its nested blocks to a detached op here. Operands are looked up in `map`,
    /// which gains the copies of results and parameters; an operand that is not in the map stands for itself, which
    /// is right only within one graph. Copies keep their names; where two values then have one, neither is changed.
    pub fn copy_op(&mut self, from: &Graph, op: OpId, map: &mut HashMap<ValueId, ValueId>) -> OpId {
        self.copy_tree(Some(from), op, map, Graph::set_name)
    }

    /// The same with a name of its own for every copy. `from` is the graph that has the op, None if that is this one.
    pub fn clone_op(&mut self, from: Option<&Graph>, op: OpId, map: &mut HashMap<ValueId, ValueId>) -> OpId {
        self.copy_tree(from, op, map, Graph::set_unique_name)
    }

    fn copy_tree(
        &mut self,
        from: Option<&Graph>,
        op: OpId,
        map: &mut HashMap<ValueId, ValueId>,
        name: SetName,
    ) -> OpId {
        let root = self.copy_shallow(from, op, map, name);
        let mut work = vec![(op, root)];
        let mut blocks = Vec::new();
        while let Some((old, new)) = work.pop() {
            for old_block in from.unwrap_or(self).nested_blocks(old).to_vec() {
                let new_block = self.add_block(new);
                blocks.push((old_block, new_block));
                for param in from.unwrap_or(self).params(old_block).to_vec() {
                    let ty = from.unwrap_or(self).ty(param).clone();
                    let copy = self.add_param(new_block, ty);
                    self.copy_name(from, param, copy, name);
                    map.insert(param, copy);
                }
                for inner in from.unwrap_or(self).block_ops(old_block).collect::<Vec<_>>() {
                    let copy = self.copy_shallow(from, inner, map, name);
                    self.append(new_block, copy);
                    work.push((inner, copy));
                }
            }
        }
        // Results of nested blocks may name values that were copied after them.
        for (old, new) in blocks {
            let results = mapped(from.unwrap_or(self).block_results(old), map);
            self.set_block_results(new, &results);
        }
        root
    }

    /// Copies kind, operands, results, attributes and location, not nested blocks.
    fn copy_shallow(
        &mut self,
        from: Option<&Graph>,
        op: OpId,
        map: &mut HashMap<ValueId, ValueId>,
        name: SetName,
    ) -> OpId {
        let source = from.unwrap_or(self);
        let operands = mapped(source.operands(op), map);
        let olds = source.results(op);
        let types: SmallVec<[Type; 2]> = olds.iter().map(|value| source.ty(*value).clone()).collect();
        let (kind, attrs) = (source.kind(op), source.attrs(op).to_vec());
        let location = source.location_id(op);
        let new = self.create(kind, &operands, &types);
        for (attr, value) in attrs {
            self.set_attr(new, attr, value);
        }
        let location = match from {
            Some(from) => self.import_location(from, location),
            None => Some(location),
        };
        if let Some(location) = location {
            self.set_location_id(new, location);
        }
        for (old, copy) in olds.into_iter().zip(self.results(new)) {
            self.copy_name(from, old, copy, name);
            map.insert(old, copy);
        }
        new
    }

    fn copy_name(&mut self, from: Option<&Graph>, old: ValueId, new: ValueId, name: SetName) {
        if let Some(text) = from.unwrap_or(self).name(old).map(str::to_string) {
            name(self, new, &text);
        }
    }

    /// Copies a location of another graph with its chain of calls.
    pub fn import_location(&mut self, from: &Graph, id: LocationId) -> Option<LocationId> {
        let mut chain = Vec::new();
        let mut at = from.location_of(id);
        while let Some(location) = at {
            chain.push(location.clone());
            at = location.inlined_from.and_then(|(_, outer)| from.location_of(outer));
        }
        let mut outer = None;
        for mut location in chain.into_iter().rev() {
            if let Some((function, _)) = location.inlined_from {
                location.inlined_from = outer.map(|id| (function, id));
            }
            outer = Some(self.add_location(location));
        }
        outer
    }
}

/// Gives a value a name.
type SetName = fn(&mut Graph, ValueId, &str);

/// What stands for each value.
pub fn mapped(values: &[ValueId], map: &HashMap<ValueId, ValueId>) -> Vec<ValueId> {
    values.iter().map(|value| map.get(value).copied().unwrap_or(*value)).collect()
}
