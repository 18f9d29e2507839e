//! Branches and loops of a forward: which of their values are followed, and which surely are, whichever way is taken; what loops keep
//! of their iterations for the backward.

use super::reverse::{Iterations, Reverse, refused};
use super::texts;
use super::types::is_tensor_list;
use crate::autodiff::cell::annotation;
use crate::diag::Result;
use crate::ir::{Attr, BlockId, LocationId, OpId, Type, TypeKind, ValueId};
use hashbrown::{HashMap, HashSet};

pub(super) const IF: &str = "prim::If";
pub(super) const LOOP: &str = "prim::Loop";

impl Reverse<'_> {
    /// Notes which values of a branch or loop are followed.
    pub(super) fn mark_region(&mut self, op: OpId) -> Result<()> {
        match self.graph.kind(op).as_str() {
            IF => self.mark_branch(op),
            LOOP => self.mark_loop(op),
            other => Err(refused(format!("{other} is differentiated by the tape"))),
        }
    }

    fn mark_branch(&mut self, op: OpId) -> Result<()> {
        let blocks = self.graph.nested_blocks(op).to_vec();
        for block in &blocks {
            stacker::maybe_grow(64 << 10, 1 << 20, || self.mark_block(*block))?;
        }
        for (n, result) in self.graph.results(op).into_iter().enumerate() {
            let given = blocks.iter().filter_map(|block| self.graph.block_results(*block).get(n));
            if given.into_iter().any(|value| self.follows.contains(value)) {
                self.follow_carried(result)?;
            }
        }
        Ok(())
    }

    /// One visit of a loop; callers repeat it until nothing new is followed.
    fn mark_loop(&mut self, op: OpId) -> Result<()> {
        let &[body] = self.graph.nested_blocks(op) else { return Err(refused("a loop without a body")) };
        let inits: Vec<ValueId> = self.graph.operands(op).iter().skip(2).copied().collect();
        let params: Vec<ValueId> = self.graph.params(body).iter().skip(1).copied().collect();
        let left: Vec<ValueId> = self.graph.block_results(body).iter().skip(1).copied().collect();
        let carried = params.iter().zip(&inits).zip(&left);
        for ((param, init), left) in carried {
            if self.follows.contains(init) || self.follows.contains(left) {
                self.follow_carried(*param)?;
            }
        }
        stacker::maybe_grow(64 << 10, 1 << 20, || self.mark_block(body))?;
        for ((param, left), result) in params.iter().zip(&left).zip(self.graph.results(op)) {
            if self.follows.contains(param) || self.follows.contains(left) {
                self.follow_carried(result)?;
            }
        }
        Ok(())
    }

    fn follow_carried(&mut self, value: ValueId) -> Result<()> {
        let ty = self.graph.ty(value);
        let is_optional = matches!(ty.kind(), TypeKind::Optional(inner) if inner.is_tensor());
        if !ty.is_tensor() && !is_optional && !is_tensor_list(ty) {
            return Err(refused("a container that branches or loops give is differentiated by the tape"));
        }
        self.follows.insert(value);
        Ok(())
    }

    /// The values that are followed whichever way is taken.
    pub(super) fn surely(&self, inputs: &[bool]) -> HashSet<ValueId> {
        let wanted = self.graph.inputs().iter().zip(inputs).filter(|(_, wanted)| **wanted);
        let wanted: HashSet<ValueId> = wanted.map(|(input, _)| *input).collect();
        let mut held: HashMap<OpId, Vec<bool>> = HashMap::new();
        // What an iteration leaves is assumed to be followed surely until shown otherwise.
        loop {
            let mut sure = wanted.clone();
            if !self.surely_followed(self.graph.root(), &mut sure, &mut held) {
                return sure;
            }
        }
    }

    /// Adds the values of a block that are followed whichever way is taken; what is never read counts as such. Says whether less
    /// is `held` of loops than before.
    fn surely_followed(
        &self,
        block: BlockId,
        sure: &mut HashSet<ValueId>,
        held: &mut HashMap<OpId, Vec<bool>>,
    ) -> bool {
        let graph = &self.graph;
        let mut changed = false;
        for op in graph.block_ops(block) {
            let blocks = graph.nested_blocks(op);
            if graph.kind(op) == LOOP && blocks.len() == 1 {
                changed |= self.surely_carried(op, blocks[0], sure, held);
                continue;
            }
            for inner in blocks {
                let inner = || self.surely_followed(*inner, sure, held);
                changed |= stacker::maybe_grow(64 << 10, 1 << 20, inner);
            }
            let hangs = self.surely_hangs(op, sure);
            for (n, result) in graph.results(op).into_iter().enumerate() {
                let given =
                    |inner: &BlockId| graph.block_results(*inner).get(n).is_some_and(|v| sure.contains(v));
                let is_sure = match blocks.is_empty() {
                    true => {
                        let is_list = is_tensor_list(graph.ty(result));
                        let is_followed = self.follows.contains(&result) || is_list;
                        graph.kind(op) == "prim::Uninitialized" || hangs && is_followed
                    }
                    false => blocks.iter().all(given),
                };
                if is_sure {
                    sure.insert(result);
                }
            }
        }
        changed
    }

    /// Whether an op has a followed operand whichever way is taken; of what gives a list, whether all elements are. Lists count as
    /// followed where all of their elements are, an empty one thus too: what reads an element, or wants one, raises.
    fn surely_hangs(&self, op: OpId, sure: &HashSet<ValueId>) -> bool {
        let graph = &self.graph;
        let operands = graph.operands(op).iter();
        let gives_list = graph.results(op).iter().any(|result| is_tensor_list(graph.ty(*result)));
        if gives_list && !self.has_cell(op) {
            let holds = |value: &&ValueId| graph.ty(**value).is_tensor() || is_tensor_list(graph.ty(**value));
            return operands.filter(holds).all(|value| sure.contains(value));
        }
        let items = |value: &ValueId| match self.made_list(*value) {
            Some(made) => graph.operands(made).to_vec(),
            None => vec![*value],
        };
        operands.flat_map(items).any(|value| sure.contains(&value))
    }

    /// The same of a loop: what it begins with is, and what each iteration leaves.
    fn surely_carried(
        &self,
        op: OpId,
        body: BlockId,
        sure: &mut HashSet<ValueId>,
        held: &mut HashMap<OpId, Vec<bool>>,
    ) -> bool {
        let graph = &self.graph;
        let starts = graph.operands(op).iter().skip(2);
        let before =
            held.entry(op).or_insert_with(|| graph.results(op).iter().map(|_| true).collect()).clone();
        let begun: Vec<bool> =
            starts.zip(&before).map(|(start, held)| *held && sure.contains(start)).collect();
        let params = graph.params(body).iter().skip(1);
        sure.extend(params.zip(&begun).filter(|(_, begun)| **begun).map(|(param, _)| *param));
        let inner = || self.surely_followed(body, sure, held);
        let mut changed = stacker::maybe_grow(64 << 10, 1 << 20, inner);
        let left = graph.block_results(body).iter().skip(1);
        let after: Vec<bool> = begun.iter().zip(left).map(|(begun, v)| *begun && sure.contains(v)).collect();
        changed |= after != before;
        let runs = self.surely_runs(op);
        let left = graph.block_results(body).iter().skip(1);
        let given = after.iter().zip(left).map(|(after, left)| *after || runs && sure.contains(left));
        let given: Vec<bool> = given.collect();
        let results = graph.results(op);
        sure.extend(results.iter().zip(&given).filter(|(_, given)| **given).map(|(result, _)| *result));
        held.insert(op, after);
        changed
    }

    /// Whether a loop is known to run an iteration.
    fn surely_runs(&self, op: OpId) -> bool {
        let constant = |n: usize| {
            let op = self.graph.operand(op, n).and_then(|value| self.graph.def_op(value));
            op.and_then(|op| self.graph.attr(op, "value"))
        };
        matches!(constant(0), Some(Attr::Int(count)) if *count > 0)
            && matches!(constant(1), Some(Attr::Bool(true) | Attr::Int(1)))
    }

    /// Makes loops in which values are followed keep what their iterations begin with.
    pub(super) fn keep_iterations(&mut self) -> Result<()> {
        for op in self.graph.all_ops() {
            if self.graph.kind(op) == LOOP && self.is_region_followed(op) {
                let iterations = self.keep_iterations_of(op)?;
                self.iterations.insert(op, iterations);
            }
        }
        Ok(())
    }

    /// Whether a value that a loop carries, or one that is made in it, is followed: iterations may do no more than swap.
    fn is_region_followed(&self, op: OpId) -> bool {
        let graph = &self.graph;
        let carried = graph.nested_blocks(op).iter().flat_map(|block| graph.params(*block)).copied();
        let made = graph.nested_ops(op).into_iter().flat_map(|inner| graph.results(inner));
        carried.chain(made).any(|value| self.follows.contains(&value))
    }

    fn keep_iterations_of(&mut self, op: OpId) -> Result<Iterations> {
        let body = self.graph.nested_blocks(op)[0];
        let carried = self.graph.result_count(op);
        let params: Vec<ValueId> = self.graph.params(body).iter().skip(1).copied().collect();
        let left: Vec<ValueId> = self.graph.block_results(body).iter().skip(1).copied().collect();
        let mut iterations = Iterations { carried, count: carried, lists: Vec::new() };
        let zero = self.in_front_of(op, |this| Ok(this.constant(Attr::Int(0), Type::int())))?;
        self.carry(op, zero, |this, count, at| this.call(texts::NEXT, &[count], at))?;
        for (n, param) in params.iter().enumerate() {
            if left.get(n) == Some(param) || !self.graph.has_uses(*param) {
                continue;
            }
            let ty = self.graph.ty(*param).clone();
            if !is_kept(&ty) {
                return Err(refused(format!(
                    "a loop that carries a value of type {ty} is differentiated by the tape"
                )));
            }
            let element = annotation(&ty);
            let at = self.graph.location_id(op);
            let empty = self.in_front_of(op, |this| this.call(&texts::empty_of(&element), &[], at))?;
            let list = self.carry(op, empty, |this, list, at| {
                this.call(&texts::pushed_of(&element), &[list, *param], at)
            })?;
            iterations.lists.push((n, list));
        }
        Ok(iterations)
    }

    /// Lets a loop carry one value more, which `next` makes at the end of each iteration; gives the number of the result.
    fn carry(
        &mut self,
        op: OpId,
        start: ValueId,
        next: impl FnOnce(&mut Self, ValueId, LocationId) -> Result<ValueId>,
    ) -> Result<usize> {
        let body = self.graph.nested_blocks(op)[0];
        let ty = self.graph.ty(start).clone();
        let at = self.graph.location_id(op);
        self.graph.add_operand(op, start);
        let param = self.graph.add_param(body, ty.clone());
        let next = self.within(body, |this| next(this, param, at))?;
        self.graph.add_block_result(body, next);
        self.graph.add_result(op, ty);
        Ok(self.graph.result_count(op) - 1)
    }
}

/// Whether values of a type can be kept between iterations: nothing writes to them.
fn is_kept(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::Tensor(_) | TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Str => true,
        TypeKind::List(item) | TypeKind::Optional(item) => is_kept(item),
        _ => false,
    }
}
