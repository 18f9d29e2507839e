//! Gradients of lists of tensors: a list of the gradients of their elements. Where an element may have none, it is a list of
//! optional tensors, as long as the list itself, or empty where no element has a gradient.

use super::reverse::Reverse;
use super::texts;
use super::types::is_tensor_list;
use crate::autodiff::cell::{Cell, Parameter};
use crate::diag::{Diagnostic, Result};
use crate::ir::{BlockId, Graph, LocationId, OpId, Symbol, Type, TypeKind, ValueId};
use indexmap::IndexSet;
use std::sync::Arc;

impl Reverse<'_> {
    /// How gradients go through an op on lists, if it is one.
    pub(super) fn items_cell(&self, op: OpId) -> Option<Result<Arc<Cell>>> {
        let graph = &self.graph;
        let values = graph.operands(op).iter().copied().chain(graph.results(op));
        let is_of_lists = values.into_iter().any(|value| is_tensor_list(graph.ty(value)));
        self.rows.get(&op).filter(|_| is_of_lists).and_then(|row| self.cells.items(row))
    }

    /// Hands the gradient of a result of such an op on.
    pub(super) fn items(&mut self, op: OpId, cell: &Cell) -> Result<()> {
        let at = self.graph.location_id(op);
        let result = self.graph.results(op)[0];
        let Some(gradient) = self.gradients.get(&result).copied() else { return Ok(()) };
        for entry in &cell.entries {
            let target = entry.targets.first().and_then(|target| self.graph.operand(op, *target));
            let Some(target) = target.filter(|target| self.follows.contains(target)) else { continue };
            let has_former = entry.parameters.contains(&Parameter::Former);
            let former = has_former.then(|| self.former(target, at)).transpose()?;
            let mut arguments = Vec::new();
            for parameter in &entry.parameters {
                let argument = match parameter {
                    Parameter::Grad(_) => Some(gradient),
                    Parameter::Former => former,
                    Parameter::Argument { index, .. } => self.graph.operand(op, *index),
                    _ => None,
                };
                arguments.push(argument.ok_or_else(|| {
                    Diagnostic::internal("the derivative of an op on lists asks for what it lacks")
                })?);
            }
            let is_full = former.is_some_and(|former| self.full.contains(&former));
            let text = texts::of_items(&entry.text, self.is_maybe(gradient), is_full);
            let found = self.call(&text, &arguments, at)?;
            match has_former {
                true => {
                    self.gradients.insert(target, found);
                    self.full.insert(found);
                }
                false => self.add(target, found, at)?,
            }
        }
        Ok(())
    }

    /// The gradient of a list so far, as one whose elements may have none.
    pub(super) fn former(&mut self, list: ValueId, at: LocationId) -> Result<ValueId> {
        match self.gradients.get(&list).copied() {
            Some(former) => self.maybe(former, at),
            None => Ok(self.no_items()),
        }
    }

    /// The same, as long as the list.
    pub(super) fn full_former(&mut self, list: ValueId, at: LocationId) -> Result<ValueId> {
        let former = self.former(list, at)?;
        let full = self.call(&texts::full(), &[former, list], at)?;
        self.full.insert(full);
        Ok(full)
    }

    /// The gradient of a list without one.
    pub(super) fn no_items(&mut self) -> ValueId {
        let op = self.graph.create(Symbol::new("prim::ListConstruct"), &[], &[maybe_items()]);
        self.place(op);
        self.graph.results(op)[0]
    }

    /// Hands gradients of a list's elements to what it is made of, or to the list itself.
    pub(super) fn give_items(&mut self, list: ValueId, gradient: ValueId, at: LocationId) -> Result<()> {
        let Some(made) = self.made_list(list) else { return self.add(list, gradient, at) };
        for (n, item) in self.graph.operands(made).to_vec().into_iter().enumerate() {
            if self.follows.contains(&item) {
                let n = self.number(n);
                let text = texts::item_of(self.is_maybe(gradient));
                let gradient = self.call(text, &[gradient, n], at)?;
                self.declare(gradient, item);
                self.add(item, gradient, at)?;
            }
        }
        Ok(())
    }

    /// Gives the list whose items an op gave the list of their gradients.
    pub(super) fn put_together(&mut self, op: OpId, count: usize) -> Result<()> {
        let at = self.graph.location_id(op);
        let Some(list) = self.graph.operand(op, 0) else { return Ok(()) };
        let results = self.graph.results(op);
        let maker = self.graph.def_op(list);
        let fills = maker.is_some_and(|maker| self.has_cell(maker));
        let has_all = results.iter().all(|v| self.gradients.get(v).is_some_and(|g| !self.is_maybe(*g)));
        if fills || has_all {
            let all = (0..count).map(|n| self.gradient_of(op, n)).collect::<Result<Vec<_>>>()?;
            let gradient = self.call(&texts::list_of(count), &all, at)?;
            return self.give_items(list, gradient, at);
        }
        let mut all = Vec::new();
        for result in results {
            all.push(match self.gradients.get(&result).copied() {
                Some(gradient) => gradient,
                None => self.none(),
            });
        }
        let op = self.graph.create(Symbol::new("prim::ListConstruct"), &all, &[maybe_items()]);
        self.place(op);
        let gradient = self.graph.results(op)[0];
        self.give_items(list, gradient, at)
    }

    /// Gradients of a list's elements in dtype and sizes of these.
    pub(super) fn fitted_items(
        &mut self,
        gradient: ValueId,
        list: ValueId,
        at: LocationId,
    ) -> Result<ValueId> {
        let hollow = self.call(texts::HOLLOW, &[list], at)?;
        self.call(&texts::fitted_items(self.is_maybe(gradient)), &[gradient, hollow], at)
    }

    pub(super) fn sum_of_items(&mut self, a: ValueId, b: ValueId, at: LocationId) -> Result<ValueId> {
        let (first, second) = (self.is_maybe(a), self.is_maybe(b));
        let found = self.call(&texts::sum_of_items(first, second), &[a, b], at)?;
        if self.full.contains(&a) || self.full.contains(&b) {
            self.full.insert(found);
        }
        Ok(found)
    }

    pub(super) fn definite_items(
        &mut self,
        gradient: ValueId,
        like: ValueId,
        at: LocationId,
    ) -> Result<ValueId> {
        let hollow = self.call(texts::HOLLOW, &[like], at)?;
        self.call(texts::DEFINITE_ITEMS, &[gradient, hollow], at)
    }

    /// The lists around blocks that are used in them and followed: what happens there adds to their gradients.
    pub(super) fn lists_around(&self, blocks: &[BlockId]) -> Vec<ValueId> {
        let graph = &self.graph;
        let is_inside = |value: ValueId| {
            let home = graph.def_block(value);
            home.is_some_and(|home| blocks.iter().any(|block| graph.is_within(home, *block)))
        };
        let mut found = IndexSet::new();
        let mut work: Vec<BlockId> = blocks.to_vec();
        while let Some(block) = work.pop() {
            for op in graph.block_ops(block).chain([graph.terminator(block)]) {
                work.extend(graph.nested_blocks(op));
                let lists = graph.operands(op).iter().filter(|v| is_tensor_list(graph.ty(**v)));
                found.extend(lists.filter(|v| self.follows.contains(*v) && !is_inside(**v)));
            }
        }
        found.sort_unstable();
        found.into_iter().collect()
    }
}

/// The type of gradients of a list whose elements may have none.
pub(super) fn maybe_items() -> Type {
    Type::list(Type::optional(Type::tensor()))
}

/// Whether a gradient is one of a list.
pub(super) fn is_of_list(graph: &Graph, gradient: ValueId) -> bool {
    matches!(graph.ty(gradient).kind(), TypeKind::List(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autodiff::Cells;
    use crate::dialects::Registry;

    #[test]
    fn every_text_of_an_op_on_lists_compiles() {
        let registry = Registry::builtin();
        let cells = Cells::of(&registry);
        let texts = texts::Texts::of(&registry);
        let mut count = 0;
        for name in registry.grads().items_names() {
            let op = registry.iter().find(|op| op.full_name() == name).expect(name);
            let cell = cells.items(op).expect(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            for entry in &cell.entries {
                for (is_maybe, is_full) in [(false, false), (false, true), (true, false), (true, true)] {
                    let text = texts::of_items(&entry.text, is_maybe, is_full);
                    texts.graph(&registry, name, &text).unwrap_or_else(|error| panic!("{name}: {error}"));
                    count += 1;
                }
            }
        }
        assert!(count >= 40, "{count}");
    }
}
