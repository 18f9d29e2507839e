//! The exit transform: removes `prim::LoopContinuation` and `prim::ReturnStmt`.
//!
//! An exit targets the innermost loop body (a continuation) or the function or closure (a return). After an
//! exit nothing of the block runs; where only one arm of a condition exits, a bool says so, and what follows
//! is put under a condition. Paths that always raise need neither. Works on SSA form; knows nothing of the AST.

use super::kinds;
use crate::diag::Result;
use crate::ir::unify::unify_as;
use crate::ir::{Attr, BlockId, Graph, Module, OpId, Symbol, Type, ValueId};

/// Removes all exits.
pub(super) fn transform(graph: &mut Graph, classes: &Module) -> Result<()> {
    let root = graph.root();
    for target in [kinds::loop_continuation(), kinds::return_()] {
        let mut pass = Exits::new(graph, classes, target);
        let end = pass.block(root);
        pass.finish(root, end);
    }
    inline_with_blocks(graph);
    Ok(())
}

/// Whether a block reached its end, and with what values it left.
#[derive(Clone)]
enum End {
    /// Never exits.
    Falls,
    /// Always raises.
    Raises,
    /// Always exits with the values.
    Exits(Vec<ValueId>),
    /// Exits with the values where the bool is true.
    Maybe(ValueId, Vec<ValueId>),
}

struct Exits<'a> {
    graph: &'a mut Graph,
    classes: &'a Module,
    target: Symbol,
    /// Where constants and `prim::Uninitialized` are put: the start of the graph.
    home: BlockId,
    yes: Option<ValueId>,
    no: Option<ValueId>,
    unset: Vec<(Type, ValueId)>,
}

impl<'a> Exits<'a> {
    fn new(graph: &'a mut Graph, classes: &'a Module, target: Symbol) -> Self {
        let home = graph.root();
        Exits { graph, classes, target, home, yes: None, no: None, unset: Vec::new() }
    }

    /// Removes exits of the target kind below a block; the caller deals with the block's own end.
    fn block(&mut self, block: BlockId) -> End {
        let mut at = self.graph.first_op(block);
        while let Some(op) = at {
            let kind = self.graph.kind(op);
            let end = if kind == kinds::raise() {
                End::Raises
            } else if kind == self.target {
                let values = self.graph.operands(op).to_vec();
                self.erase_after(op);
                self.graph.erase(op);
                return End::Exits(values);
            } else if kind == kinds::if_() {
                self.branch(op)
            } else if kind == kinds::loop_() {
                self.iterate(op)
            } else if kind == kinds::with() {
                self.guarded(op)
            } else if kinds::is_closure(kind) {
                self.closure(op);
                End::Falls
            } else {
                End::Falls
            };
            match end {
                End::Falls => at = self.graph.next(op),
                End::Raises | End::Exits(_) => {
                    self.erase_after(op);
                    return end;
                }
                End::Maybe(exited, values) => return self.guard_rest(block, op, exited, values),
            }
        }
        End::Falls
    }

    /// Ends a block that nothing encloses: the exit's values become its results.
    fn finish(&mut self, block: BlockId, end: End) {
        match end {
            End::Falls => {}
            End::Raises => self.results_unset(block),
            End::Exits(values) => self.graph.set_block_results(block, &values),
            End::Maybe(exited, values) => {
                let normal = self.graph.block_results(block).to_vec();
                if normal.len() == values.len() {
                    let merged = self.choose(block, exited, &values, &normal);
                    self.graph.set_block_results(block, &merged);
                } else {
                    self.graph.set_block_results(block, &values);
                }
            }
        }
    }

    /// Puts everything after `op` under "not exited"; the results of the block come out of the condition.
    fn guard_rest(&mut self, block: BlockId, op: OpId, exited: ValueId, values: Vec<ValueId>) -> End {
        if self.graph.next(op).is_none() {
            return End::Maybe(exited, values);
        }
        let results = self.graph.block_results(block).to_vec();
        let rest: Vec<OpId> = std::iter::successors(self.graph.next(op), |op| self.graph.next(*op)).collect();
        let guard = self.graph.create(kinds::if_(), &[exited], &[]);
        let taken = self.graph.add_block(guard);
        let otherwise = self.graph.add_block(guard);
        for op in rest {
            self.graph.move_to_end(op, otherwise);
        }
        self.graph.append(block, guard);
        self.graph.set_block_results(otherwise, &results);
        let unset: Vec<ValueId> = results.iter().map(|v| self.unset(*v)).collect();
        self.graph.set_block_results(taken, &unset);
        let types: Vec<Type> = results.iter().map(|v| self.graph.ty(*v).clone()).collect();
        let outputs: Vec<ValueId> = types.into_iter().map(|ty| self.graph.add_result(guard, ty)).collect();
        self.graph.set_block_results(block, &outputs);
        let rest_end = self.block(otherwise);
        self.merge_arms(guard, (taken, End::Exits(values)), (otherwise, rest_end))
    }

    fn branch(&mut self, op: OpId) -> End {
        let &[yes, no] = self.graph.nested_blocks(op) else { return End::Falls };
        let yes_end = self.block(yes);
        let no_end = self.block(no);
        self.merge_arms(op, (yes, yes_end), (no, no_end))
    }

    /// Joins the ends of the two arms of a condition into one end of the condition.
    fn merge_arms(&mut self, op: OpId, yes: (BlockId, End), no: (BlockId, End)) -> End {
        for (block, end) in [&yes, &no] {
            if matches!(end, End::Raises | End::Exits(_)) {
                self.results_unset(*block);
            }
        }
        let values = match (&yes.1, &no.1) {
            (End::Falls, End::Falls) => return End::Falls,
            (End::Raises, End::Raises) => return End::Raises,
            (End::Falls, End::Raises) | (End::Raises, End::Falls) => return End::Falls,
            (End::Exits(v) | End::Maybe(_, v), End::Exits(w) | End::Maybe(_, w)) => self.unified(v, w),
            (End::Exits(v) | End::Maybe(_, v), _) | (_, End::Exits(v) | End::Maybe(_, v)) => {
                v.iter().map(|v| self.graph.ty(*v).clone()).collect()
            }
        };
        let always = [&yes.1, &no.1].iter().all(|e| matches!(e, End::Exits(_) | End::Raises));
        if !always {
            for (block, end) in [&yes, &no] {
                let exited = match end {
                    End::Exits(_) => self.constant(true),
                    End::Maybe(exited, _) => *exited,
                    End::Falls | End::Raises => self.constant(false),
                };
                self.graph.add_block_result(*block, exited);
            }
        }
        let exited = (!always).then(|| self.graph.add_result(op, Type::bool()));
        let mut outputs = Vec::new();
        for (n, ty) in values.into_iter().enumerate() {
            for (block, end) in [&yes, &no] {
                let value = match end {
                    End::Exits(values) | End::Maybe(_, values) => values.get(n).copied(),
                    End::Falls | End::Raises => None,
                };
                let value = value.unwrap_or_else(|| self.unset_of(&ty));
                self.graph.add_block_result(*block, value);
            }
            outputs.push(self.graph.add_result(op, ty));
        }
        match exited {
            Some(exited) => End::Maybe(exited, outputs),
            None => End::Exits(outputs),
        }
    }

    fn unified(&self, a: &[ValueId], b: &[ValueId]) -> Vec<Type> {
        a.iter()
            .zip(b)
            .map(|(a, b)| {
                let (a, b) = (self.graph.ty(*a), self.graph.ty(*b));
                unify_as(a, b, self.classes, true, None).unwrap_or_else(|| a.clone())
            })
            .collect()
    }

    fn iterate(&mut self, op: OpId) -> End {
        let Some(&body) = self.graph.nested_blocks(op).first() else { return End::Falls };
        let end = self.block(body);
        if self.target == kinds::loop_continuation() {
            // The body's results are (condition, carried...), which is what a continuation gives.
            self.finish(body, end);
            return End::Falls;
        }
        let (exited, values) = match end {
            End::Falls | End::Raises => {
                if matches!(end, End::Raises) {
                    self.results_unset(body);
                }
                return End::Falls;
            }
            End::Exits(values) => {
                self.results_unset(body);
                (self.constant(true), values)
            }
            End::Maybe(exited, values) => (exited, values),
        };
        self.stop_when(body, exited);
        let mut outputs = Vec::new();
        let never = self.constant(false);
        let seeds: Vec<(ValueId, ValueId)> =
            std::iter::once((never, exited)).chain(values.iter().map(|v| (self.unset(*v), *v))).collect();
        for (first, value) in seeds {
            let ty = self.graph.ty(value).clone();
            self.graph.add_operand(op, first);
            self.graph.add_param(body, ty.clone());
            self.graph.add_block_result(body, value);
            outputs.push(self.graph.add_result(op, ty));
        }
        let exited = outputs.remove(0);
        End::Maybe(exited, outputs)
    }

    /// Makes the loop's condition false once the body has exited.
    fn stop_when(&mut self, body: BlockId, exited: ValueId) {
        let results = self.graph.block_results(body).to_vec();
        let Some(&condition) = results.first() else { return };
        let no = self.constant(false);
        let merged = self.choose(body, exited, &[no], &[condition]);
        let terminator = self.graph.terminator(body);
        self.graph.set_operand(terminator, 0, merged[0]);
    }

    /// Appends `if exited: a else: b` to a block.
    fn choose(&mut self, block: BlockId, exited: ValueId, a: &[ValueId], b: &[ValueId]) -> Vec<ValueId> {
        let types = self.unified(a, b);
        let op = self.graph.create(kinds::if_(), &[exited], &[]);
        let (yes, no) = (self.graph.add_block(op), self.graph.add_block(op));
        self.graph.append(block, op);
        self.graph.set_block_results(yes, a);
        self.graph.set_block_results(no, b);
        types.into_iter().map(|ty| self.graph.add_result(op, ty)).collect()
    }

    /// A `with` body: its exit becomes results of the op, so that `__exit__` still runs.
    fn guarded(&mut self, op: OpId) -> End {
        let Some(&body) = self.graph.nested_blocks(op).first() else { return End::Falls };
        match self.block(body) {
            End::Falls => End::Falls,
            End::Raises => End::Raises,
            End::Exits(values) => End::Exits(self.lift(op, body, &values)),
            End::Maybe(exited, values) => {
                let exited = self.lift(op, body, &[exited]).remove(0);
                End::Maybe(exited, self.lift(op, body, &values))
            }
        }
    }

    fn lift(&mut self, op: OpId, body: BlockId, values: &[ValueId]) -> Vec<ValueId> {
        values
            .iter()
            .map(|value| {
                self.graph.add_block_result(body, *value);
                let ty = self.graph.ty(*value).clone();
                self.graph.add_result(op, ty)
            })
            .collect()
    }

    fn closure(&mut self, op: OpId) {
        let Some(&body) = self.graph.nested_blocks(op).first() else { return };
        // Values made for the closure stay inside of it.
        let outer = (self.home, self.yes.take(), self.no.take(), std::mem::take(&mut self.unset));
        self.home = body;
        let end = self.block(body);
        self.finish(body, end);
        (self.home, self.yes, self.no, self.unset) = outer;
    }

    fn erase_after(&mut self, op: OpId) {
        let Some(block) = self.graph.parent(op) else { return };
        // Later ops may be used by the block's results and by each other, so results go first, then backwards.
        if self.graph.next(op).is_some() {
            self.results_unset_after(block, op);
            while let Some(last) = self.graph.last_op(block).filter(|last| *last != op) {
                self.graph.erase(last);
            }
        }
    }

    fn results_unset_after(&mut self, block: BlockId, op: OpId) {
        let results = self.graph.block_results(block).to_vec();
        let terminator = self.graph.terminator(block);
        for (n, value) in results.into_iter().enumerate() {
            let late = self
                .graph
                .def_op(value)
                .is_some_and(|def| self.graph.parent(def) == Some(block) && self.graph.is_before(op, def));
            if late {
                let unset = self.unset(value);
                self.graph.set_operand(terminator, n, unset);
            }
        }
    }

    fn results_unset(&mut self, block: BlockId) {
        let unset: Vec<ValueId> =
            self.graph.block_results(block).to_vec().into_iter().map(|v| self.unset(v)).collect();
        self.graph.set_block_results(block, &unset);
    }

    fn constant(&mut self, value: bool) -> ValueId {
        let slot = if value { self.yes } else { self.no };
        if let Some(value) = slot {
            return value;
        }
        let op = self.graph.create(kinds::constant(), &[], &[Type::bool()]);
        self.graph.set_attr(op, "value", Attr::Int(i64::from(value)));
        self.graph.prepend(self.home, op);
        let made = self.graph.result(op, 0).unwrap_or_else(|| unreachable!("created with one result"));
        if value {
            self.yes = Some(made);
        } else {
            self.no = Some(made);
        }
        made
    }

    /// A value of the type of another that is never read.
    fn unset(&mut self, like: ValueId) -> ValueId {
        let ty = self.graph.ty(like).clone();
        self.unset_of(&ty)
    }

    fn unset_of(&mut self, ty: &Type) -> ValueId {
        if let Some((_, value)) = self.unset.iter().find(|(t, _)| t == ty) {
            return *value;
        }
        let op = self.graph.create(kinds::uninitialized(), &[], std::slice::from_ref(ty));
        self.graph.prepend(self.home, op);
        let value = self.graph.result(op, 0).unwrap_or_else(|| unreachable!("created with one result"));
        self.unset.push((ty.clone(), value));
        value
    }
}

/// `prim::With(object)` with blocks (body, exit) becomes the body followed by the exit.
fn inline_with_blocks(graph: &mut Graph) {
    for op in graph.all_ops().into_iter().rev() {
        if !graph.is_live(op) || graph.kind(op) != kinds::with() {
            continue;
        }
        let blocks = graph.nested_blocks(op).to_vec();
        let results = blocks.first().map(|body| graph.block_results(*body).to_vec()).unwrap_or_default();
        for block in blocks {
            graph.set_block_results(block, &[]);
            graph.splice_before(block, op);
        }
        graph.replace_op(op, &results);
    }
}
