//! Branches and loops backward. The backward of a branch takes the path that the forward took; that of a loop runs the iterations
//! from the last to the first. Values within are computed again there, from what stood around and, in loops, from what each
//! iteration began with, which the forward keeps in lists. A value that only a branch uses, or a loop that may not iterate, has
//! a gradient only where that ran: it is None elsewhere, as on the tape, and so are the gradients of all that it was made of.

use super::lists::{is_of_list, maybe_items};
use super::marks::{IF, LOOP};
use super::reverse::{Iterations, Reverse, refused};
use super::texts;
use super::types::is_tensor_list;
use crate::autodiff::cell::annotation;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Attr, BlockId, LocationId, OpId, Symbol, TensorType, Type, TypeKind, ValueId};
use hashbrown::HashMap;
use indexmap::{IndexMap, IndexSet};

/// Limit of iterations whose backward is written, including failed attempts: each level of nested loops doubles them.
const MAX_WRITTEN: usize = 1_000;

/// A loop of the forward.
struct Body<'a> {
    iterations: &'a Iterations,
    body: BlockId,
    params: &'a [ValueId],
    /// What an iteration leaves, and what the first begins with.
    left: &'a [ValueId],
    inits: &'a [ValueId],
    results: &'a [ValueId],
}

/// Copies of a block's values.
type Map = HashMap<ValueId, ValueId>;

impl Reverse<'_> {
    /// Whether a gradient may be None.
    pub(super) fn is_maybe(&self, gradient: ValueId) -> bool {
        match self.graph.ty(gradient).kind() {
            TypeKind::List(item) => matches!(item.kind(), TypeKind::Optional(_)),
            kind => matches!(kind, TypeKind::Optional(_)),
        }
    }

    pub(super) fn sum(&mut self, a: ValueId, b: ValueId, at: LocationId) -> Result<ValueId> {
        if is_of_list(&self.graph, a) {
            return self.sum_of_items(a, b, at);
        }
        match (self.is_maybe(a), self.is_maybe(b)) {
            (false, false) => self.call(texts::SUM, &[a, b], at),
            (false, true) => self.call(texts::SUM_MAYBE, &[a, b], at),
            (true, false) => self.call(texts::SUM_MAYBE, &[b, a], at),
            (true, true) => {
                let sum = self.call(texts::SUM_BOTH, &[a, b], at)?;
                self.maybe(sum, at)
            }
        }
    }

    /// A gradient as a tensor: zeros like `like` where it may be None and is.
    pub(super) fn definite(&mut self, gradient: ValueId, like: ValueId, at: LocationId) -> Result<ValueId> {
        match self.is_maybe(gradient) {
            true if is_of_list(&self.graph, gradient) => self.definite_items(gradient, like, at),
            true => self.call(texts::DEFINITE, &[gradient, like], at),
            false => Ok(gradient),
        }
    }

    /// A gradient that is not None here.
    fn sure(&mut self, gradient: ValueId, like: ValueId) -> ValueId {
        let ty = self.gradient_type(like, false);
        let op = self.graph.create(Symbol::new("prim::unchecked_cast"), &[gradient], &[ty]);
        self.place(op);
        self.graph.results(op)[0]
    }

    /// A gradient of the type of those that may be None.
    pub(super) fn maybe(&mut self, gradient: ValueId, at: LocationId) -> Result<ValueId> {
        if self.is_maybe(gradient) {
            return Ok(gradient);
        }
        if is_of_list(&self.graph, gradient) {
            return self.call(texts::OPTIONAL_ITEMS, &[gradient], at);
        }
        let ty = Type::optional(self.graph.ty(gradient).clone());
        self.graph.set_type(gradient, ty);
        Ok(gradient)
    }

    /// The gradient of a list in the type of those whose elements may have none; other gradients as they are.
    fn maybe_items(&mut self, gradient: ValueId, at: LocationId) -> Result<ValueId> {
        if is_of_list(&self.graph, gradient) { self.maybe(gradient, at) } else { Ok(gradient) }
    }

    /// A gradient that exists in iteration 0 only.
    fn only_at(&mut self, gradient: ValueId, iteration: ValueId, at: LocationId) -> Result<ValueId> {
        let text = match is_of_list(&self.graph, gradient) {
            true => texts::items_at(self.is_maybe(gradient)),
            false => texts::at(self.is_maybe(gradient)),
        };
        let found = self.call(&text, &[gradient, iteration], at)?;
        self.maybe(found, at)
    }

    /// The type of a value's gradient.
    pub(super) fn gradient_type(&self, value: ValueId, is_maybe: bool) -> Type {
        if is_tensor_list(self.graph.ty(value)) {
            return if is_maybe { maybe_items() } else { Type::list(Type::tensor()) };
        }
        match self.graph.ty(value).as_tensor() {
            Some(tensor) if !is_maybe => Type::new(TypeKind::Tensor(TensorType {
                dtype: tensor.dtype,
                sizes: tensor.sizes.clone(),
                device: tensor.device.clone(),
                ..TensorType::default()
            })),
            _ if is_maybe => maybe_type(),
            _ => Type::tensor(),
        }
    }

    pub(super) fn none(&mut self) -> ValueId {
        self.constant(Attr::None, maybe_type())
    }

    /// The gradient of a value that has none.
    fn none_of(&mut self, value: ValueId) -> ValueId {
        if is_tensor_list(self.graph.ty(value)) { self.no_items() } else { self.none() }
    }

    /// The gradients of an op's operands where a result has a gradient that may be None: None where all of them are.
    pub(super) fn where_given(&mut self, op: OpId) -> Result<()> {
        let at = self.graph.location_id(op);
        let results = self.graph.results(op);
        let given: Vec<(ValueId, ValueId)> =
            results.iter().filter_map(|v| Some((*v, *self.gradients.get(v)?))).collect();
        let gradients: Vec<ValueId> = given.iter().map(|(_, gradient)| *gradient).collect();
        let are_lists: Vec<bool> = gradients.iter().map(|g| is_of_list(&self.graph, *g)).collect();
        let some = self.call(&texts::some_of(&are_lists), &gradients, at)?;
        let choice = self.control(IF, &[some], at);
        let (yes, no) = (self.graph.add_block(choice), self.graph.add_block(choice));
        let mut found = self.scope(yes, |this| {
            for (result, gradient) in &given {
                let gradient = match given.len() {
                    1 if !is_of_list(&this.graph, *gradient) => this.sure(*gradient, *result),
                    _ => this.definite(*gradient, *result, at)?,
                };
                this.gradients.insert(*result, gradient);
            }
            this.op(op)
        })?;
        found.retain(|value, _| !results.contains(value));
        self.join(choice, [(yes, found), (no, IndexMap::new())], &[], at)
    }

    /// The gradients of what a branch or loop uses, and of what it begins with.
    pub(super) fn region(&mut self, op: OpId) -> Result<()> {
        match self.graph.kind(op) == IF {
            true => self.branch(op),
            false => self.loop_backward(op),
        }
    }

    fn branch(&mut self, op: OpId) -> Result<()> {
        let at = self.graph.location_id(op);
        let &[on_true, on_false] = self.graph.nested_blocks(op) else {
            return Err(refused("a branch of one block"));
        };
        let Some(condition) = self.graph.operand(op, 0) else { return Err(refused("a branch on nothing")) };
        let given: Vec<Option<ValueId>> =
            self.graph.results(op).iter().map(|result| self.gradients.get(result).copied()).collect();
        let mut lists = Vec::new();
        for list in self.lists_around(&[on_true, on_false]) {
            lists.push((list, self.former(list, at)?));
        }
        let choice = self.control(IF, &[condition], at);
        let mut ways = Vec::new();
        for block in [on_true, on_false] {
            let new = self.graph.add_block(choice);
            let found = self.scope(new, |this| {
                this.gradients.extend(lists.iter().copied());
                let map = this.again(block, Map::new());
                let left = this.graph.block_results(block).to_vec();
                for (value, gradient) in left.iter().zip(&given) {
                    if let Some(gradient) = gradient.filter(|_| this.follows.contains(value)) {
                        this.add(map.get(value).copied().unwrap_or(*value), gradient, at)?;
                    }
                }
                this.backward_of(new)?;
                this.keep_outside(new);
                Ok(())
            })?;
            ways.push((new, found));
        }
        let Ok(ways) = <[(BlockId, IndexMap<ValueId, ValueId>); 2]>::try_from(ways) else {
            return Err(Diagnostic::internal("a branch has two ways"));
        };
        let lists: Vec<ValueId> = lists.into_iter().map(|(list, _)| list).collect();
        self.join(choice, ways, &lists, at)
    }

    fn loop_backward(&mut self, op: OpId) -> Result<()> {
        let at = self.graph.location_id(op);
        let Some(iterations) = self.iterations.get(&op).cloned() else {
            return Err(Diagnostic::internal("a loop with gradients saves nothing of its iterations"));
        };
        let body = self.graph.nested_blocks(op)[0];
        let params: Vec<ValueId> = self.graph.params(body).to_vec();
        let left: Vec<ValueId> = self.graph.block_results(body).iter().skip(1).copied().collect();
        let inits: Vec<ValueId> = self.graph.operands(op).iter().skip(2).copied().collect();
        let results = self.graph.results(op);
        let is_varied = |n: &usize| left[*n] != params[*n + 1];
        let carried: Vec<usize> =
            (0..iterations.carried).filter(|n| self.follows.contains(&params[*n + 1])).collect();
        let (varied, same): (Vec<usize>, Vec<usize>) = carried.into_iter().partition(is_varied);
        for n in same {
            if let Some(gradient) = self.gradients.get(&results[n]).copied() {
                self.add(inits[n], gradient, at)?;
            }
        }
        // What iterations give and do not begin with has a gradient in the last iteration only.
        let is_used = |n: &usize| iterations.lists.iter().any(|(used, _)| used == n);
        let (varied, dropped): (Vec<usize>, Vec<usize>) = varied.into_iter().partition(is_used);
        let count = results[iterations.count];
        let mut last = Vec::new();
        for n in dropped {
            let Some(gradient) = self.gradients.get(&results[n]).copied() else { continue };
            if self.follows.contains(&inits[n]) {
                let unless = self.only_at(gradient, count, at)?;
                self.add(inits[n], unless, at)?;
            }
            if self.follows.contains(&left[n]) {
                last.push((left[n], gradient));
            }
        }
        let on = self.constant(Attr::Bool(true), Type::bool());
        let mut given = Vec::new();
        for n in &varied {
            given.push(match self.gradients.get(&results[*n]).copied() {
                Some(gradient) => gradient,
                None => self.none_of(results[*n]),
            });
        }
        let mut lists = Vec::new();
        for list in self.lists_around(&[body]) {
            lists.push((list, self.full_former(list, at)?));
        }
        let whole = Body {
            iterations: &iterations,
            body,
            params: &params,
            left: &left,
            inits: &inits,
            results: &results,
        };
        let mut is_maybe: Vec<bool> = given.iter().map(|gradient| self.is_maybe(*gradient)).collect();
        // What iterations leave of a gradient says what it is when the next one begins.
        let (back, found) = loop {
            self.written += 1;
            if self.written > MAX_WRITTEN {
                return Err(refused(
                    "nested loops with gradients that are None in some iterations are left to the tape",
                ));
            }
            let known = (self.rows.clone(), self.iterations.clone(), self.follows.clone(), self.full.clone());
            let mut operands = vec![count, on];
            for (gradient, is_maybe) in given.iter().zip(&is_maybe) {
                let gradient = if *is_maybe { self.maybe_items(*gradient, at)? } else { *gradient };
                operands.push(gradient);
            }
            operands.extend(lists.iter().map(|(_, former)| *former));
            let back = self.control(LOOP, &operands, at);
            let (found, ends, sums) =
                self.turn_backward(back, &whole, (&varied, &is_maybe, &lists), &last)?;
            let may_end = |n: usize| ends[n].is_none_or(|end| self.is_maybe(end));
            let turned = (0..varied.len()).find(|n| !is_maybe[*n] && may_end(*n));
            let Some(turned) = turned else {
                let ends: Vec<_> = ends.into_iter().zip(varied.iter().map(|n| results[*n])).collect();
                break (back, self.end_iteration(back, on, found, (ends, &is_maybe, sums))?);
            };
            is_maybe[turned] = true;
            self.graph.erase(back);
            (self.rows, self.iterations, self.follows, self.full) = known;
        };
        for (n, is_maybe) in varied.iter().zip(&is_maybe) {
            let ty = self.gradient_type(params[*n + 1], *is_maybe);
            let result = self.graph.add_result(back, ty);
            if self.follows.contains(&inits[*n]) {
                self.add(inits[*n], result, at)?;
            }
        }
        for (list, _) in lists {
            let result = self.graph.add_result(back, maybe_items());
            self.full.insert(result);
            self.gradients.insert(list, result);
        }
        for value in found.keys() {
            let ty = self.gradient_type(*value, true);
            let result = self.graph.add_result(back, ty);
            self.add(*value, result, at)?;
        }
        Ok(())
    }

    /// Writes an iteration: gives the gradients of what stands around, those of what the iteration begins with, and those of
    /// `lists` around it, which hold what was there before.
    fn turn_backward(
        &mut self,
        back: OpId,
        whole: &Body<'_>,
        (varied, is_maybe, lists): (&[usize], &[bool], &[(ValueId, ValueId)]),
        last: &[(ValueId, ValueId)],
    ) -> Result<(IndexMap<ValueId, ValueId>, Vec<Option<ValueId>>, Vec<ValueId>)> {
        let at = self.graph.location_id(back);
        let count = whole.results[whole.iterations.count];
        let new = self.graph.add_block(back);
        let number = self.graph.add_param(new, Type::int());
        let mut given = Vec::new();
        for (n, is_maybe) in varied.iter().zip(is_maybe) {
            let ty = self.gradient_type(whole.params[*n + 1], *is_maybe);
            given.push(self.graph.add_param(new, ty));
        }
        let mut formers = Vec::new();
        for (list, _) in lists {
            let former = self.graph.add_param(new, maybe_items());
            self.full.insert(former);
            formers.push((*list, former));
        }
        let (mut ends, mut sums) = (Vec::new(), Vec::new());
        let found = self.scope(new, |this| {
            this.gradients.extend(formers.iter().copied());
            let iteration = this.call(texts::ITERATION, &[count, number], at)?;
            let map = this.begin_iteration(whole, iteration, at)?;
            let map = this.again(whole.body, map);
            let again = |value: ValueId| map.get(&value).copied().unwrap_or(value);
            for (n, gradient) in varied.iter().zip(&given) {
                if this.follows.contains(&whole.left[*n]) {
                    this.add(again(whole.left[*n]), *gradient, at)?;
                }
            }
            for (left, gradient) in last {
                let gradient = this.only_at(*gradient, number, at)?;
                this.add(again(*left), gradient, at)?;
            }
            this.backward_of(new)?;
            for n in varied {
                ends.push(this.gradients.shift_remove(&again(whole.params[*n + 1])));
            }
            for (list, former) in &formers {
                sums.push(this.gradients.shift_remove(list).unwrap_or(*former));
            }
            this.keep_outside(new);
            Ok(())
        })?;
        Ok((found, ends, sums))
    }

    /// Says what an iteration gives to the next: gradients of what it begins with, with the values that have their types, and
    /// `sums` of lists.
    fn end_iteration(
        &mut self,
        back: OpId,
        on: ValueId,
        found: IndexMap<ValueId, ValueId>,
        (ends, is_maybe, sums): (Vec<(Option<ValueId>, ValueId)>, &[bool], Vec<ValueId>),
    ) -> Result<IndexMap<ValueId, ValueId>> {
        let at = self.graph.location_id(back);
        let body = self.graph.nested_blocks(back)[0];
        let mut given = vec![on];
        for ((end, like), is_maybe) in ends.into_iter().zip(is_maybe) {
            given.push(self.within(body, |this| match end {
                Some(end) if *is_maybe => this.maybe_items(end, at),
                Some(end) => Ok(end),
                None => Ok(this.none_of(like)),
            })?);
        }
        given.extend(sums);
        given.extend(self.sums_of_iterations(back, &found, at)?);
        self.graph.set_block_results(body, &given);
        Ok(found)
    }

    /// What an iteration began with: the items of lists, and what no iteration changes.
    fn begin_iteration(&mut self, whole: &Body<'_>, iteration: ValueId, at: LocationId) -> Result<Map> {
        let Body { iterations, params, inits, results, .. } = *whole;
        let mut map: Map = params.iter().skip(1).copied().zip(inits.iter().copied()).collect();
        map.insert(params[0], iteration);
        for (n, list) in &iterations.lists {
            let param = params[*n + 1];
            let ty = self.graph.ty(param).clone();
            let item = self.call(&texts::taken_of(&annotation(&ty)), &[results[*list], iteration], at)?;
            self.graph.set_type(item, ty);
            if self.follows.contains(&param) {
                self.follows.insert(item);
            }
            map.insert(param, item);
        }
        Ok(map)
    }

    /// Lets the loop add up gradients of what stands around it, None before its first iteration; gives the sums at the end of an
    /// iteration.
    fn sums_of_iterations(
        &mut self,
        back: OpId,
        found: &IndexMap<ValueId, ValueId>,
        at: LocationId,
    ) -> Result<Vec<ValueId>> {
        let body = self.graph.nested_blocks(back)[0];
        let mut sums = Vec::new();
        for (value, gradient) in found {
            let none = self.in_front_of(back, |this| Ok(this.none_of(*value)))?;
            self.graph.add_operand(back, none);
            let ty = self.gradient_type(*value, true);
            let former = self.graph.add_param(body, ty);
            let sum = self.within(body, |this| {
                let gradient = *gradient;
                let sum = this.sum(former, gradient, at)?;
                this.maybe(sum, at)
            })?;
            sums.push(sum);
        }
        Ok(sums)
    }

    /// Computes a block again where is written; gives the copies of its values, parameters given.
    fn again(&mut self, block: BlockId, mut map: Map) -> Map {
        for op in self.graph.block_ops(block).collect::<Vec<_>>() {
            let copy = self.graph.clone_op(None, op, &mut map);
            self.place(copy);
            self.note_copy(op, copy);
        }
        let copies = map.iter().filter(|(old, _)| self.follows.contains(*old)).map(|(_, new)| *new);
        let copies: Vec<ValueId> = copies.collect();
        self.follows.extend(copies);
        map
    }

    fn note_copy(&mut self, op: OpId, copy: OpId) {
        let mut work = vec![(op, copy)];
        while let Some((op, copy)) = work.pop() {
            if let Some(row) = self.rows.get(&op).cloned() {
                self.rows.insert(copy, row);
            }
            if let Some(iterations) = self.iterations.get(&op).cloned() {
                self.iterations.insert(copy, iterations);
            }
            let blocks = self.graph.nested_blocks(op).iter().zip(self.graph.nested_blocks(copy));
            for (old, new) in blocks {
                work.extend(self.graph.block_ops(*old).zip(self.graph.block_ops(*new)));
            }
        }
    }

    /// Goes backward through the copies that a block holds so far.
    fn backward_of(&mut self, block: BlockId) -> Result<()> {
        for op in self.graph.block_ops(block).collect::<Vec<_>>().into_iter().rev() {
            stacker::maybe_grow(64 << 10, 1 << 20, || self.op(op))?;
        }
        Ok(())
    }

    /// Forgets the gradients of what a block holds; those of what stands around it are left.
    fn keep_outside(&mut self, block: BlockId) {
        let graph = &self.graph;
        let is_inside =
            |value: ValueId| graph.def_block(value).is_some_and(|inner| graph.is_within(inner, block));
        self.gradients.retain(|value, _| !is_inside(*value));
    }

    /// Ends the ways of a branch with gradients of the same values, and adds these; those of `lists` hold what was there before. What
    /// a way has no gradient of is None there.
    fn join(
        &mut self,
        choice: OpId,
        ways: [(BlockId, IndexMap<ValueId, ValueId>); 2],
        lists: &[ValueId],
        at: LocationId,
    ) -> Result<()> {
        let values: IndexSet<ValueId> = ways.iter().flat_map(|(_, found)| found.keys().copied()).collect();
        for value in values {
            let (mut is_sure, mut is_full, mut given) = (true, true, Vec::new());
            for (block, found) in &ways {
                let gradient = match found.get(&value) {
                    Some(gradient) => *gradient,
                    None => self.within(*block, |this| Ok(this.none_of(value)))?,
                };
                is_sure &= !self.is_maybe(gradient);
                is_full &= self.full.contains(&gradient);
                given.push((*block, gradient));
            }
            for (block, mut gradient) in given {
                if !is_sure {
                    gradient = self.within(block, |this| this.maybe_items(gradient, at))?;
                }
                self.graph.add_block_result(block, gradient);
            }
            let ty = self.gradient_type(value, !is_sure);
            let result = self.graph.add_result(choice, ty);
            if is_full {
                self.full.insert(result);
            }
            match lists.contains(&value) {
                true => drop(self.gradients.insert(value, result)),
                false => self.add(value, result, at)?,
            }
        }
        Ok(())
    }

    /// Writes an op with blocks.
    fn control(&mut self, kind: &str, operands: &[ValueId], at: LocationId) -> OpId {
        let op = self.graph.create(Symbol::new(kind), operands, &[]);
        self.graph.set_location_id(op, at);
        self.place(op);
        op
    }

    /// Writes to a block, with no gradients yet; gives those that there are then.
    fn scope(
        &mut self,
        block: BlockId,
        write: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<IndexMap<ValueId, ValueId>> {
        let outer = std::mem::take(&mut self.gradients);
        let done = self.within(block, write);
        let found = std::mem::replace(&mut self.gradients, outer);
        done.map(|()| found)
    }

    /// Writes to the end of a block.
    pub(super) fn within<T>(
        &mut self,
        block: BlockId,
        write: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let (outer, before) = (std::mem::replace(&mut self.block, block), self.before.take());
        let done = write(self);
        (self.block, self.before) = (outer, before);
        done
    }

    /// Writes in front of an op.
    pub(super) fn in_front_of<T>(
        &mut self,
        op: OpId,
        write: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = self.before.replace(op);
        let done = write(self);
        self.before = before;
        done
    }
}

/// The type of a gradient that may be None.
fn maybe_type() -> Type {
    Type::optional(Type::tensor())
}
