//! Conversion to SSA by loads and stores.
//!
//! The emitter reads and writes variables with `prim::Load[name]` and `prim::Store[name]`, and leaves a loop's
//! condition in a second block. This pass threads variables through `prim::If` and `prim::Loop`, turns `break`
//! and `continue` into `prim::LoopContinuation`, puts conditions where they are evaluated, and replaces loads
//! by the values in scope. `exits.rs` then removes the exits. It knows nothing of the AST.

use super::kinds;
use crate::diag::{Diagnostic, Result};
use crate::ir::unify::unify_as;
use crate::ir::{Attr, BlockId, Graph, Module, OpId, Symbol, Type, ValueId};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Runs all steps but the exit transform.
pub(super) fn convert(graph: &mut Graph, classes: &Module) -> Result<()> {
    let root = graph.root();
    Threading { graph, classes, scopes: Vec::new() }.block(root)?;
    Continuations { graph, loops: Vec::new() }.block(root)?;
    inline_conditions(graph);
    Resolving { graph, scopes: Vec::new() }.block(root)
}

/// The variable that a load or store names.
fn variable(graph: &Graph, op: OpId) -> Result<Symbol> {
    graph
        .attr(op, "name")
        .and_then(Attr::as_str)
        .map(Symbol::new)
        .ok_or_else(|| Diagnostic::internal("a load or store without a name"))
}

fn load(graph: &mut Graph, name: Symbol, ty: &Type) -> OpId {
    let op = graph.create(kinds::load(), &[], std::slice::from_ref(ty));
    graph.set_attr(op, "name", Attr::Str(name.as_str().into()));
    op
}

fn store(graph: &mut Graph, name: Symbol, value: ValueId) -> OpId {
    let op = graph.create(kinds::store(), &[value], &[]);
    graph.set_attr(op, "name", Attr::Str(name.as_str().into()));
    op
}

/// Makes variables that are assigned inside control flow into its inputs and outputs. A scope maps the
/// variables assigned in a block to their types, in the order of names.
struct Threading<'a> {
    graph: &'a mut Graph,
    classes: &'a Module,
    scopes: Vec<BTreeMap<&'static str, Type>>,
}

impl Threading<'_> {
    fn block(&mut self, block: BlockId) -> Result<BTreeMap<&'static str, Type>> {
        self.scopes.push(BTreeMap::new());
        let mut at = self.graph.first_op(block);
        while let Some(op) = at {
            at = self.graph.next(op);
            let kind = self.graph.kind(op);
            if kind == kinds::store() {
                let name = variable(self.graph, op)?;
                let declared = self.graph.attr(op, "type").and_then(Attr::as_type).cloned();
                let ty = declared.or_else(|| self.graph.operand(op, 0).map(|v| self.graph.ty(v).clone()));
                let ty = ty.unwrap_or_else(Type::none);
                self.define(name, ty);
            } else if kind == kinds::if_() {
                self.branch(op)?;
            } else if kind == kinds::loop_() {
                self.iterate(op)?;
            } else if kinds::is_closure(kind) {
                for nested in self.graph.nested_blocks(op).to_vec() {
                    self.block(nested)?;
                }
            } else {
                // `prim::With` bodies share the scope of the block around them.
                for nested in self.graph.nested_blocks(op).to_vec() {
                    let assigned = self.block(nested)?;
                    if let Some(scope) = self.scopes.last_mut() {
                        scope.extend(assigned);
                    }
                }
            }
        }
        Ok(self.scopes.pop().unwrap_or_default())
    }

    fn define(&mut self, name: Symbol, ty: Type) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.as_str(), ty);
        }
    }

    fn lookup(&self, name: &str) -> Option<Type> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).cloned()
    }

    /// What control flow gives or takes prints under its variable's name; names that serialized code made up
    /// (`_0`) are not names.
    fn name(&mut self, value: ValueId, name: &str) {
        let made_up = name.strip_prefix('_').is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
        if !made_up && !name.starts_with('$') {
            self.graph.set_unique_name(value, name);
        }
    }

    /// A variable becomes an output of the condition if both arms know it after one of them assigned it.
    fn branch(&mut self, op: OpId) -> Result<()> {
        let blocks = self.graph.nested_blocks(op).to_vec();
        let &[yes, no] = blocks.as_slice() else {
            return Err(Diagnostic::internal("a condition without two blocks"));
        };
        let in_yes = self.block(yes)?;
        let in_no = self.block(no)?;
        let names: std::collections::BTreeSet<&'static str> =
            in_yes.keys().chain(in_no.keys()).copied().collect();
        let mut after = op;
        for name in names {
            let outer = self.lookup(name);
            let Some(yes_type) = in_yes.get(name).cloned().or_else(|| outer.clone()) else { continue };
            let Some(no_type) = in_no.get(name).cloned().or(outer) else { continue };
            let Some(unified) = unify_as(&yes_type, &no_type, self.classes, true, None) else { continue };
            let symbol = Symbol::new(name);
            for (block, ty) in [(yes, &yes_type), (no, &no_type)] {
                let load = load(self.graph, symbol, ty);
                self.graph.append(block, load);
                if let Some(value) = self.graph.result(load, 0) {
                    self.graph.add_block_result(block, value);
                }
            }
            let value = self.graph.add_result(op, unified.clone());
            self.name(value, name);
            let store = store(self.graph, symbol, value);
            self.graph.insert_after(store, after);
            after = store;
            self.define(symbol, unified);
        }
        Ok(())
    }

    /// A variable is carried by the loop if the body assigns it and it exists before the loop; its type does
    /// not change, as the body may never run.
    fn iterate(&mut self, op: OpId) -> Result<()> {
        let blocks = self.graph.nested_blocks(op).to_vec();
        let Some(&body) = blocks.first() else {
            return Err(Diagnostic::internal("a loop without a body"));
        };
        let assigned = self.block(body)?;
        let mut after = op;
        for name in assigned.into_keys() {
            let Some(ty) = self.lookup(name) else { continue };
            let symbol = Symbol::new(name);
            let before = load(self.graph, symbol, &ty);
            self.graph.insert_before(before, op);
            if let Some(value) = self.graph.result(before, 0) {
                self.graph.add_operand(op, value);
            }
            let param = self.graph.add_param(body, ty.clone());
            self.name(param, name);
            let entry = store(self.graph, symbol, param);
            self.graph.prepend(body, entry);
            let last = load(self.graph, symbol, &ty);
            self.graph.append(body, last);
            if let Some(value) = self.graph.result(last, 0) {
                self.graph.add_block_result(body, value);
            }
            let value = self.graph.add_result(op, ty.clone());
            self.name(value, name);
            let exit = store(self.graph, symbol, value);
            self.graph.insert_after(exit, after);
            after = exit;
            self.define(symbol, ty);
        }
        Ok(())
    }
}

/// Turns `break` and `continue` into `prim::LoopContinuation(condition, carried...)`.
struct Continuations<'a> {
    graph: &'a mut Graph,
    loops: Vec<OpId>,
}

impl Continuations<'_> {
    fn block(&mut self, block: BlockId) -> Result<()> {
        let mut at = self.graph.first_op(block);
        while let Some(op) = at {
            at = self.graph.next(op);
            let kind = self.graph.kind(op);
            if kind == kinds::break_() || kind == kinds::continue_() {
                self.continuation(op, kind == kinds::continue_())?;
                continue;
            }
            let is_loop = kind == kinds::loop_();
            if is_loop {
                self.loops.push(op);
            }
            let nested = self.graph.nested_blocks(op).to_vec();
            let bodies = if is_loop { &nested[..1.min(nested.len())] } else { &nested[..] };
            for block in bodies {
                self.block(*block)?;
            }
            if is_loop {
                self.loops.pop();
            }
        }
        Ok(())
    }

    fn continuation(&mut self, op: OpId, goes_on: bool) -> Result<()> {
        let Some(&owner) = self.loops.last() else {
            return Err(Diagnostic::internal("an exit outside of any loop"));
        };
        let &[body, condition] = self.graph.nested_blocks(owner) else {
            return Err(Diagnostic::internal("a loop without condition"));
        };
        let first = if goes_on {
            copy_condition(self.graph, condition, op)?
        } else {
            let no = self.graph.create(kinds::constant(), &[], &[Type::bool()]);
            self.graph.set_attr(no, "value", Attr::Int(0));
            self.graph.insert_before(no, op);
            self.graph.result(no, 0)
        };
        let mut values: Vec<ValueId> = first.into_iter().collect();
        for carried in self.graph.block_results(body).to_vec() {
            let Some(def) = self.graph.def_op(carried) else { continue };
            let (name, ty) = (variable(self.graph, def)?, self.graph.ty(carried).clone());
            let load = load(self.graph, name, &ty);
            self.graph.insert_before(load, op);
            values.extend(self.graph.result(load, 0));
        }
        let location = self.graph.location_id(op);
        let exit = self.graph.create(kinds::loop_continuation(), &values, &[]);
        self.graph.set_location_id(exit, location);
        self.graph.insert_before(exit, op);
        self.graph.erase(op);
        Ok(())
    }
}

/// Copies a loop's condition block before `anchor` and gives the copy of its result.
fn copy_condition(graph: &mut Graph, condition: BlockId, anchor: OpId) -> Result<Option<ValueId>> {
    let mut map = HashMap::new();
    for op in graph.block_ops(condition).collect::<Vec<_>>() {
        let copy = graph.clone_op(None, op, &mut map);
        graph.insert_before(copy, anchor);
    }
    Ok(graph.block_results(condition).first().map(|v| map.get(v).copied().unwrap_or(*v)))
}

/// `prim::Loop(n)` with a condition block becomes `prim::Loop(n, condition, carried...)`: the condition is
/// evaluated before the loop and at the end of each pass. Inner loops come first: a condition may hold some, which its copies
/// then have as they must be.
fn inline_conditions(graph: &mut Graph) {
    for op in graph.all_ops().into_iter().rev() {
        if !graph.is_live(op) || graph.kind(op) != kinds::loop_() {
            continue;
        }
        let &[body, condition] = graph.nested_blocks(op) else { continue };
        if let Ok(Some(first)) = copy_condition(graph, condition, op) {
            graph.insert_operand(op, 1, first);
        }
        let results = graph.block_results(condition).to_vec();
        let end = graph.terminator(body);
        graph.splice_before(condition, end);
        if let Some(next) = results.first() {
            graph.insert_operand(end, 0, *next);
        }
        graph.remove_block(op, 1);
    }
}

/// Replaces loads by the values that were stored last.
struct Resolving<'a> {
    graph: &'a mut Graph,
    scopes: Vec<HashMap<Symbol, ValueId>>,
}

impl Resolving<'_> {
    fn block(&mut self, block: BlockId) -> Result<()> {
        self.scopes.push(HashMap::new());
        self.body(block)?;
        self.scopes.pop();
        Ok(())
    }

    fn body(&mut self, block: BlockId) -> Result<()> {
        let mut at = self.graph.first_op(block);
        while let Some(op) = at {
            at = self.graph.next(op);
            let kind = self.graph.kind(op);
            if kind == kinds::store() {
                let name = variable(self.graph, op)?;
                if let (Some(value), Some(scope)) = (self.graph.operand(op, 0), self.scopes.last_mut()) {
                    scope.insert(name, value);
                }
                self.graph.erase(op);
            } else if kind == kinds::load() {
                let name = variable(self.graph, op)?;
                let value = self.scopes.iter().rev().find_map(|scope| scope.get(&name)).copied();
                let Some(value) = value else {
                    return Err(Diagnostic::internal(format!("variable {name} is read before it is set")));
                };
                self.graph.replace_op(op, &[value]);
            } else {
                let shares_scope = kind == kinds::with();
                for nested in self.graph.nested_blocks(op).to_vec() {
                    if shares_scope { self.body(nested)? } else { self.block(nested)? }
                }
            }
        }
        Ok(())
    }
}
