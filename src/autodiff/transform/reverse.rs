//! Builds backward graphs: each op's cell, in the reverse of the order of the ops.

use super::texts::{self, Texts};
use super::types::{holds_elements, is_tensor_list, may_be_followed, may_hold, of_any_layout};
use crate::analysis::facts;
use crate::autodiff::cell::{Cells, Entry, Keep, Parameter, Recipe, annotation};
use crate::diag::{Diagnostic, Result};
use crate::dialects::prim::list::UNPACK;
use crate::dialects::{Effects, Fact, Family, Node, Op, Registry, Run, resolve};
use crate::eval;
use crate::ir::{Attr, BlockId, Graph, LocationId, Module, OpId, Symbol, Type, TypeKind, ValueId};
use crate::passes::{Context, Extras, Pipeline, attribute_constants};
use hashbrown::{HashMap, HashSet};
use indexmap::IndexMap;
use std::fmt::Write;
use std::sync::{Arc, LazyLock};

/// What gives a value on, of which it is known that it is not None.
const CAST: &str = "prim::unchecked_cast";

/// What makes a tuple of an op's results.
const TUPLE: &str = "prim::TupleConstruct";

/// Ops that a graph may have, the forward's and the backward's together.
const MAX_OPS: usize = 60_000;

static SPECIALIZE: LazyLock<Result<Pipeline>> = LazyLock::new(|| crate::passes::parse("derivative"));
static PREPARE: LazyLock<Result<Pipeline>> = LazyLock::new(|| crate::passes::parse("forward"));

/// A graph with its backward.
pub(super) struct Built {
    pub(super) graph: Graph,
    /// Which outputs of the forward are followed.
    pub(super) follows: Vec<bool>,
    /// Those of which a bool after the outputs says whether they require grad.
    pub(super) open: Vec<usize>,
    /// Whether cells read elements of values of the forward.
    pub(super) keeps: bool,
}

/// The forward graph with the backward after it, of gradients of the wanted inputs by the wanted outputs: all that depend on these,
/// where that is not said. The outputs of the forward stay before the gradients where the graph is to be `joint`.
pub(super) fn build(
    graph: &Graph,
    (wanted, by): (&[bool], Option<&[bool]>),
    over: (&Arc<Registry>, &Extras),
    joint: bool,
) -> Result<Built> {
    let mut reverse = Reverse::marked(graph, wanted, over)?;
    let forward: Vec<OpId> = reverse.graph.block_ops(reverse.graph.root()).collect();
    let inputs = reverse.graph.inputs().to_vec();
    let outputs = reverse.graph.outputs().to_vec();
    let follows = reverse.followed();
    reverse.keep_iterations()?;
    let open = if joint { reverse.open_outputs(wanted)? } else { Vec::new() };
    reverse.seed(by.unwrap_or(&follows))?;
    for op in forward.into_iter().rev() {
        reverse.op(op)?;
    }
    let front = if joint { outputs } else { Vec::new() };
    let front = front.into_iter().chain(open.iter().map(|(_, flag)| *flag)).collect();
    reverse.finish(front, &inputs, wanted)?;
    let open = open.into_iter().map(|(output, _)| output).collect();
    Ok(Built { graph: reverse.graph, follows, open, keeps: reverse.keeps })
}

/// A graph with what its random ops are defined by in their places, where that is how they are differentiated.
pub(super) fn unfolded_draws(graph: &Graph, (registry, extras): (&Arc<Registry>, &Extras)) -> Result<Graph> {
    let mut reverse = Reverse::of(graph, (registry, extras));
    reverse.prepare()?;
    reverse.unfold(|row| row.def().effects.contains(Effects::RANDOM))?;
    fold_modes(&mut reverse.graph, registry, true)?;
    Ok(reverse.graph)
}

/// What a loop saves of its iterations, by the numbers of its results.
#[derive(Clone, Debug)]
pub(super) struct Iterations {
    /// How many values it carried before.
    pub(super) carried: usize,
    /// The number of iterations that ran.
    pub(super) count: usize,
    /// For values that it carries, by number, the list of what they were at the start of each iteration.
    pub(super) lists: Vec<(usize, usize)>,
}

pub(super) struct Reverse<'a> {
    pub(super) registry: &'a Arc<Registry>,
    /// For the passes that find types.
    extras: Extras,
    pub(super) cells: Arc<Cells>,
    texts: Arc<Texts>,
    pub(super) graph: Graph,
    /// The block that is written to, at its end.
    pub(super) block: BlockId,
    /// The op that is written in front of instead, if any.
    pub(super) before: Option<OpId>,
    /// The rows of the forward's ops.
    pub(super) rows: HashMap<OpId, Op>,
    /// Values that depend on an input that wants a gradient; of lists, those that hold such a value.
    pub(super) follows: HashSet<ValueId>,
    /// What loops keep of their iterations.
    pub(super) iterations: HashMap<OpId, Iterations>,
    /// How often the backward of an iteration was written.
    pub(super) written: usize,
    /// The gradients of values so far, in the block that is written to: tensors, or None where a branch was not taken.
    pub(super) gradients: IndexMap<ValueId, ValueId>,
    /// Gradients of lists that have a place for each element.
    pub(super) full: HashSet<ValueId>,
    keeps: bool,
    /// Graphs of texts for such arguments.
    special: HashMap<String, Arc<Graph>>,
}

pub(super) fn refused(what: impl Into<String>) -> Diagnostic {
    Diagnostic::unsupported(what)
}

impl Reverse<'_> {
    // --- the forward graph ---

    fn of<'r>(graph: &Graph, (registry, extras): (&'r Arc<Registry>, &Extras)) -> Reverse<'r> {
        Reverse {
            registry,
            extras: extras.clone(),
            cells: Cells::of(registry),
            texts: Texts::of(registry),
            graph: graph.clone(),
            block: graph.root(),
            before: None,
            rows: HashMap::new(),
            follows: HashSet::new(),
            iterations: HashMap::new(),
            written: 0,
            gradients: IndexMap::new(),
            full: HashSet::new(),
            keeps: false,
            special: HashMap::new(),
        }
    }

    /// A graph whose values are marked.
    fn marked<'r>(
        graph: &Graph,
        inputs: &[bool],
        (registry, extras): (&'r Arc<Registry>, &Extras),
    ) -> Result<Reverse<'r>> {
        let mut reverse = Reverse::of(graph, (registry, extras));
        reverse.prepare()?;
        reverse.unfold(|_| true)?;
        fold_modes(&mut reverse.graph, registry, true)?;
        reverse.prepare()?;
        reverse.mark(inputs)?;
        Ok(reverse)
    }

    /// Finds types: they answer what the texts ask that ops are replaced by.
    fn prepare(&mut self) -> Result<()> {
        let module = Module::default();
        let context = Context::new(self.registry, &module).with_extras(&self.extras);
        PREPARE.as_ref().map_err(Clone::clone)?.run_graph(&mut self.graph, &context)?;
        Ok(())
    }

    fn followed(&self) -> Vec<bool> {
        self.graph.outputs().iter().map(|output| self.follows.contains(output)).collect()
    }

    /// Puts what ops are defined by in their places, where that is how they are differentiated and it is wanted.
    fn unfold(&mut self, is_wanted: impl Fn(&Op) -> bool) -> Result<()> {
        let mut work = self.graph.all_ops();
        while let Some(op) = work.pop() {
            if self.graph.op_count() > MAX_OPS {
                return Err(refused("the graph to be differentiated is too large"));
            }
            if is_constant(&self.graph, op) || !self.graph.nested_blocks(op).is_empty() {
                continue;
            }
            let row = resolve(self.registry, &self.graph, op)?;
            if !is_wanted(&row) {
                continue;
            }
            let text = match self.cells.recipe(&row) {
                Recipe::Unfold(text) => Some(text.to_string()),
                Recipe::Inner if row.def().scalar.is_none() => row.def().meaning.map(str::to_string),
                _ => None,
            };
            let Some(text) = text else { continue };
            let arguments = attribute_constants(&mut self.graph, op, &row).ok_or_else(|| {
                refused(format!("{} has an attribute that is not a value", row.full_name()))
            })?;
            let arguments = self.with_items(&arguments);
            let body = self.specialized(row.full_name(), &text, &arguments, true)?;
            work.extend(self.put_in_place(op, &body, &arguments)?);
        }
        Ok(())
    }

    /// Replaces an op by a graph; gives the new ops of the outermost block.
    fn put_in_place(&mut self, op: OpId, body: &Graph, arguments: &[ValueId]) -> Result<Vec<OpId>> {
        let mut map: HashMap<ValueId, ValueId> =
            body.inputs().iter().copied().zip(arguments.iter().copied()).collect();
        let location = self.graph.location_id(op);
        let mut new = Vec::new();
        for inner in body.block_ops(body.root()) {
            let copy = self.graph.clone_op(Some(body), inner, &mut map);
            self.graph.set_location_id(copy, location);
            self.graph.insert_before(copy, op);
            new.push(copy);
        }
        let mut results: Vec<ValueId> = body.outputs().iter().filter_map(|v| map.get(v).copied()).collect();
        if let [list] = results[..]
            && is_tensor_list(self.graph.ty(list))
            && resolve(self.registry, &self.graph, op)?.schema()?.is_varret
        {
            let types: Vec<Type> =
                self.graph.results(op).iter().map(|result| self.graph.ty(*result).clone()).collect();
            let unpack = self.graph.create(Symbol::new(UNPACK), &[list], &types);
            self.graph.set_location_id(unpack, location);
            self.graph.insert_before(unpack, op);
            results = self.graph.results(unpack).to_vec();
            new.push(unpack);
        }
        if let [tuple] = results[..]
            && self.graph.result_count(op) != 1
            && let Some(made) = self.graph.def_op(tuple).filter(|op| self.graph.kind(*op) == TUPLE)
        {
            results = self.graph.operands(made).to_vec();
        }
        if results.len() != self.graph.result_count(op) {
            return Err(refused("an op of several results that is defined by others"));
        }
        self.graph.replace_op(op, &results);
        Ok(new)
    }

    /// Notes which values depend on wanted inputs. Fails for ops that only the tape can follow.
    fn mark(&mut self, inputs: &[bool]) -> Result<()> {
        let wanted = self.graph.inputs().iter().zip(inputs).filter(|(_, wanted)| **wanted);
        self.follows.extend(wanted.map(|(input, _)| *input));
        // What an iteration of a loop leaves is what the next one begins with: once more, until nothing new is followed.
        loop {
            let before = self.follows.len();
            self.mark_block(self.graph.root())?;
            if self.follows.len() == before {
                return Ok(());
            }
        }
    }

    pub(super) fn mark_block(&mut self, block: BlockId) -> Result<()> {
        for op in self.graph.block_ops(block).collect::<Vec<_>>() {
            if is_constant(&self.graph, op) {
                continue;
            }
            if !self.graph.nested_blocks(op).is_empty() {
                self.mark_region(op)?;
                continue;
            }
            let facts = facts(self.registry, &self.graph, op);
            let calm = Effects::MAY_RAISE | Effects::IDENTITY;
            // Where the forward raises there is no backward.
            let raises = facts.effects.contains(Effects::NEVER_RETURNS);
            if !(raises || calm.contains(facts.effects)) || facts.writes {
                return Err(refused(format!("{} is differentiated by the tape", self.graph.kind(op))));
            }
            let row = resolve(self.registry, &self.graph, op)?;
            if self.graph.operands(op).iter().any(|operand| self.follows.contains(operand)) {
                self.follow(op, &row)?;
            }
            self.rows.insert(op, row);
        }
        Ok(())
    }

    /// Notes which results of an op, some operand of which is followed, are followed too.
    fn follow(&mut self, op: OpId, row: &Op) -> Result<()> {
        if row.def().facts.contains(&Fact::Detached) {
            return Ok(());
        }
        let results = self.graph.results(op);
        if self.graph.kind(op) == CAST {
            self.follows.extend(results);
            return Ok(());
        }
        if let Some(cell) = self.cells.items(row) {
            cell?;
            let followed = results.into_iter().filter(|result| may_be_followed(self.graph.ty(*result)));
            self.follows.extend(followed.collect::<Vec<_>>());
            return Ok(());
        }
        let holds_tensors = results.iter().any(|result| may_hold(self.graph.ty(*result)));
        match self.cells.recipe(row) {
            Recipe::Cell(cell) => {
                let operands = self.graph.operands(op);
                if operands.len() != row.schema()?.arguments.len() && row.schema()?.arguments.len() > 1 {
                    return Err(refused(format!(
                        "{} with operands that its schema does not name",
                        row.full_name()
                    )));
                }
                let mut any = false;
                for (index, operand) in operands.iter().enumerate().filter(|(_, v)| self.follows.contains(*v))
                {
                    if cell.entries.iter().any(|entry| entry.targets.contains(&index)) {
                        any = true;
                    } else if !cell.none.contains(&index) {
                        let name = self.graph.display_name(*operand);
                        return Err(refused(format!("{} has no derivative by {name}", row.full_name())));
                    }
                }
                let differentiable = |n: &usize| cell.results.as_ref().is_none_or(|all| all.contains(n));
                let followed = results.iter().enumerate().filter(|(n, result)| {
                    any && differentiable(n) && may_be_followed(self.graph.ty(**result))
                });
                self.follows.extend(followed.map(|(_, result)| *result).collect::<Vec<_>>());
                Ok(())
            }
            // Comparisons, for instance.
            Recipe::Missing(_) if !holds_tensors => Ok(()),
            Recipe::Inner if !holds_tensors || row.def().family == Family::Create => Ok(()),
            Recipe::Inner if self.is_list_of_operands(op, row) || self.takes_apart(op) => {
                self.follows.extend(results);
                Ok(())
            }
            _ => Err(refused(format!("{} is differentiated by the tape", row.full_name()))),
        }
    }

    /// Whether an op is differentiated by a cell, which takes zeros for missing gradients.
    pub(super) fn has_cell(&self, op: OpId) -> bool {
        self.rows.get(&op).is_some_and(|row| matches!(self.cells.recipe(row), Recipe::Cell(_)))
    }

    /// Whether an op makes a list of its operands, which are tensors.
    fn is_list_of_operands(&self, op: OpId, row: &Op) -> bool {
        let results = self.graph.results(op);
        let is_list = matches!(results.as_slice(), [list] if is_tensor_list(self.graph.ty(*list)));
        let operands = self.graph.operands(op);
        let single = operands.iter().all(|v| self.graph.ty(*v).is_tensor());
        row.def().family == Family::Container && is_list && single && row.schema().is_ok_and(|s| s.is_vararg)
    }

    /// Whether an op gives all tensors of the list that is its operand.
    pub(super) fn takes_apart(&self, op: OpId) -> bool {
        let lists = self.graph.operands(op);
        self.graph.kind(op) == UNPACK && lists.iter().all(|list| is_tensor_list(self.graph.ty(*list)))
    }

    // --- the backward graph ---

    /// Adds inputs for the gradients of outputs.
    fn seed(&mut self, outputs: &[bool]) -> Result<()> {
        let all = self.graph.outputs().to_vec();
        for (output, has) in all.into_iter().zip(outputs) {
            if !has {
                continue;
            }
            let gradient = self.graph.add_input(of_any_layout(self.graph.ty(output)));
            if self.follows.contains(&output) {
                self.add(output, gradient, LocationId::UNKNOWN)?;
            }
        }
        Ok(())
    }

    /// Adds to the gradient of a value.
    pub(super) fn add(&mut self, value: ValueId, gradient: ValueId, at: LocationId) -> Result<()> {
        let sum = match self.gradients.get(&value).copied() {
            Some(former) => {
                let sum = self.sum(former, gradient, at)?;
                self.declare(sum, value);
                sum
            }
            None => gradient,
        };
        self.gradients.insert(value, sum);
        Ok(())
    }

    /// Says by the type of a gradient that it has dtype and sizes of what it belongs to.
    pub(super) fn declare(&mut self, gradient: ValueId, value: ValueId) {
        if self.graph.ty(gradient).is_tensor() && self.graph.ty(value).is_tensor() {
            let declared = self.gradient_type(value, false);
            self.graph.set_type(gradient, declared);
        }
    }

    /// The gradients of an op's operands from those of its results.
    pub(super) fn op(&mut self, op: OpId) -> Result<()> {
        let results = self.graph.results(op);
        let mut given = results.iter().filter_map(|result| self.gradients.get(result)).copied().peekable();
        if given.peek().is_none() {
            return Ok(());
        }
        if !self.graph.nested_blocks(op).is_empty() {
            return self.region(op);
        }
        if self.takes_apart(op) {
            return self.put_together(op, results.len());
        }
        if self.graph.kind(op) == CAST {
            let (gradient, at) = (self.gradients[&results[0]], self.graph.location_id(op));
            return self.graph.operand(op, 0).map_or(Ok(()), |operand| self.add(operand, gradient, at));
        }
        if self.made_list(results[0]) == Some(op) {
            let gradient = self.gradients[&results[0]];
            return self.give_items(results[0], gradient, self.graph.location_id(op));
        }
        if let Some(cell) = self.items_cell(op) {
            return self.items(op, &*cell?);
        }
        if given.all(|gradient| self.is_maybe(gradient)) {
            return self.where_given(op);
        }
        let Some(row) = self.rows.get(&op).cloned() else { return Ok(()) };
        let Recipe::Cell(cell) = self.cells.recipe(&row) else { return Ok(()) };
        for entry in &cell.entries {
            self.entry(op, &row, entry)?;
        }
        if self.graph.op_count() > MAX_OPS {
            return Err(refused("the backward graph is too large"));
        }
        Ok(())
    }

    fn entry(&mut self, op: OpId, row: &Op, entry: &Entry) -> Result<()> {
        let at = self.graph.location_id(op);
        let operand = |graph: &Graph, target: usize| graph.operand(op, target);
        let needs: Vec<bool> = entry
            .targets
            .iter()
            .map(|target| operand(&self.graph, *target).is_some_and(|v| self.follows.contains(&v)))
            .collect();
        if !needs.contains(&true) {
            return Ok(());
        }
        let mut arguments = Vec::with_capacity(entry.parameters.len());
        for parameter in &entry.parameters {
            arguments.push(self.argument(op, row, *parameter, &needs)?);
        }
        let gradient = self.call(&entry.text, &arguments, at)?;
        for (n, target) in entry.targets.iter().enumerate() {
            let (Some(operand), Some(true)) = (operand(&self.graph, *target), needs.get(n)) else { continue };
            let part = match entry.targets.len() {
                1 => gradient,
                _ => self.part(gradient, n, at)?,
            };
            self.give(operand, part, at)?;
        }
        Ok(())
    }

    /// Part `n` of a tuple or list.
    fn part(&mut self, whole: ValueId, n: usize, at: LocationId) -> Result<ValueId> {
        let ty = self.graph.ty(whole).clone();
        match ty.kind() {
            TypeKind::Tuple(..) => self.call(&texts::part_of(&annotation(&ty), n), &[whole], at),
            TypeKind::List(_) => {
                let n = self.number(n);
                self.call(texts::ITEM, &[whole, n], at)
            }
            _ => Err(Diagnostic::internal("a derivative gives one value for several arguments")),
        }
    }

    /// Hands a gradient to an operand, or those of a list to what the list is made of.
    fn give(&mut self, operand: ValueId, gradient: ValueId, at: LocationId) -> Result<()> {
        if !is_tensor_list(self.graph.ty(operand)) {
            return self.give_one(operand, gradient, at);
        }
        let Some(list) = self.made_list(operand) else {
            let fitted = self.fitted_items(gradient, operand, at)?;
            return self.add(operand, fitted, at);
        };
        for (n, item) in self.graph.operands(list).to_vec().into_iter().enumerate() {
            if self.follows.contains(&item) {
                let n = self.number(n);
                let gradient = self.call(texts::ITEM, &[gradient, n], at)?;
                self.give_one(item, gradient, at)?;
            }
        }
        Ok(())
    }

    fn give_one(&mut self, operand: ValueId, gradient: ValueId, at: LocationId) -> Result<()> {
        let gradient = match self.graph.ty(gradient).kind() {
            TypeKind::None => return Ok(()),
            TypeKind::Optional(_) => self.call(texts::SURE, &[gradient], at)?,
            _ => gradient,
        };
        let like = match self.graph.ty(operand).kind() {
            TypeKind::Optional(_) => self.call(texts::SURE, &[operand], at)?,
            _ => operand,
        };
        let fitted = self.call(texts::FIT, &[gradient, like], at)?;
        self.add(operand, fitted, at)
    }

    /// What a parameter of an entry stands for.
    fn argument(&mut self, op: OpId, row: &Op, parameter: Parameter, needs: &[bool]) -> Result<ValueId> {
        let at = self.graph.location_id(op);
        let missing = || {
            Diagnostic::internal(format!("the derivative of {} asks for what its op lacks", row.full_name()))
        };
        match parameter {
            Parameter::Argument { index, keep } => {
                self.keeps |= keep == Keep::All
                    && holds_elements(self.graph.operand(op, index).map(|v| self.graph.ty(v)));
                self.graph.operand(op, index).ok_or_else(missing)
            }
            Parameter::Result { index, keep } => {
                self.keeps |= keep == Keep::All;
                self.graph.result(op, index).ok_or_else(missing)
            }
            Parameter::Grad(index) => self.gradient_of(op, index),
            Parameter::Grads => {
                let results = self.graph.results(op);
                if let [list] = results[..]
                    && is_tensor_list(self.graph.ty(list))
                {
                    return self.gradient_of(op, 0);
                }
                let count = results.len();
                let all = (0..count).map(|n| self.gradient_of(op, n)).collect::<Result<Vec<_>>>()?;
                self.call(&texts::list_of(count), &all, at)
            }
            Parameter::Former => Err(missing()),
            Parameter::Needs => self.call(&texts::needs_of(needs), &[], at),
            Parameter::Sizes(index) => {
                let list = self.graph.operand(op, index).ok_or_else(missing)?;
                let Some(made) = self.made_list(list) else { return self.call(texts::SIZES, &[list], at) };
                let items = self.graph.operands(made).to_vec();
                self.call(&texts::sizes_of(items.len()), &items, at)
            }
            Parameter::Attribute(index) => {
                let all = attribute_constants(&mut self.graph, op, row).ok_or_else(missing)?;
                let operands = self.graph.operands(op).len();
                all.get(operands + index).copied().ok_or_else(missing)
            }
        }
    }

    /// The gradient of a result; zeros where nothing used it.
    pub(super) fn gradient_of(&mut self, op: OpId, index: usize) -> Result<ValueId> {
        let result = self.graph.result(op, index);
        let result = result.ok_or_else(|| {
            Diagnostic::internal("a derivative asks for the gradient of a result that does not exist")
        })?;
        let at = self.graph.location_id(op);
        match self.gradients.get(&result).copied() {
            Some(gradient) => self.definite(gradient, result, at),
            None if is_tensor_list(self.graph.ty(result)) => {
                let none = self.no_items();
                self.definite(none, result, at)
            }
            None => self.call(texts::ZEROS, &[result], at),
        }
    }

    /// Gives the gradients of wanted inputs as outputs, after others.
    fn finish(&mut self, mut outputs: Vec<ValueId>, inputs: &[ValueId], wanted: &[bool]) -> Result<()> {
        for (input, wanted) in inputs.iter().zip(wanted) {
            if *wanted {
                outputs.push(match self.gradients.get(input) {
                    Some(gradient) => *gradient,
                    None => self.call(texts::NONE, &[], LocationId::UNKNOWN)?,
                });
            }
        }
        let root = self.graph.root();
        self.graph.set_block_results(root, &outputs);
        Ok(())
    }

    pub(super) fn number(&mut self, n: usize) -> ValueId {
        self.constant(Attr::Int(n as i64), Type::int())
    }

    pub(super) fn constant(&mut self, attr: Attr, ty: Type) -> ValueId {
        let op = self.graph.create(Symbol::new("prim::Constant"), &[], &[ty]);
        self.graph.set_attr(op, "value", attr);
        self.place(op);
        self.graph.results(op)[0]
    }

    /// Puts an op where is written.
    pub(super) fn place(&mut self, op: OpId) {
        match self.before {
            Some(anchor) => self.graph.insert_before(op, anchor),
            None => self.graph.append(self.block, op),
        }
    }

    /// Writes the graph of a text; gives its result.
    pub(super) fn call(&mut self, text: &str, arguments: &[ValueId], at: LocationId) -> Result<ValueId> {
        let arguments = self.with_items(arguments);
        let body = self.specialized("a derivative", text, &arguments, false)?;
        let mut map: HashMap<ValueId, ValueId> =
            body.inputs().iter().copied().zip(arguments.iter().copied()).collect();
        for op in body.block_ops(body.root()) {
            let copy = self.graph.clone_op(Some(&body), op, &mut map);
            self.graph.set_location_id(copy, at);
            self.place(copy);
        }
        let result = body.outputs().first().and_then(|output| map.get(output).copied());
        result.ok_or_else(|| Diagnostic::internal("a derivative without a result"))
    }

    /// Arguments with what lists among them are made of afterwards.
    fn with_items(&self, arguments: &[ValueId]) -> Vec<ValueId> {
        let mut all = arguments.to_vec();
        for list in arguments.iter().filter_map(|value| self.made_list(*value)) {
            all.extend_from_slice(self.graph.operands(list));
        }
        all
    }

    /// The op that made a list of tensors which nothing writes to.
    pub(super) fn made_list(&self, value: ValueId) -> Option<OpId> {
        let op = self.graph.def_op(value).filter(|_| is_tensor_list(self.graph.ty(value)))?;
        let writes = |user: OpId| {
            self.graph.terminated_block(user).is_none() && facts(self.registry, &self.graph, user).writes
        };
        if self.graph.uses(value).any(|user| writes(user.op)) {
            return None;
        }
        let row = resolve(self.registry, &self.graph, op).ok()?;
        self.is_list_of_operands(op, &row).then_some(op)
    }

    /// The graph of a text for arguments of such types, where some are known numbers: most questions that it asks are answered by
    /// these, and equal ops ask alike. Errors call the text `name`; `records` says whether gradients are recorded where it runs.
    fn specialized(
        &mut self,
        name: &str,
        text: &str,
        arguments: &[ValueId],
        records: bool,
    ) -> Result<Arc<Graph>> {
        let known: Vec<Option<OpId>> = arguments
            .iter()
            .map(|value| self.graph.def_op(*value).filter(|op| is_number(&self.graph, *op)))
            .collect();
        let mut key = format!("{records} {text}");
        for (value, known) in arguments.iter().zip(&known) {
            key.push_str(&self.graph.ty(*value).to_string());
            if let Some(attr) = known.and_then(|op| self.graph.attr(op, "value")) {
                let _ = write!(key, "={attr:?}");
            }
            key.push(';');
        }
        if let Some(known) = self.special.get(&key) {
            return Ok(Arc::clone(known));
        }
        let body = self.texts.graph(self.registry, name, text)?;
        let mut special = (*body).clone();
        for ((input, value), known) in body.inputs().iter().zip(arguments).zip(&known) {
            let made = known.or_else(|| self.made_list(*value));
            let Some(op) = made else {
                special.set_type(*input, self.graph.ty(*value).clone());
                continue;
            };
            let mut map = HashMap::new();
            for item in self.graph.operands(op) {
                let again = special.add_input(self.graph.ty(*item).clone());
                map.entry(*item).or_insert(again);
            }
            let copy = special.clone_op(Some(&self.graph), op, &mut map);
            special.prepend(special.root(), copy);
            if let Some(result) = special.result(copy, 0) {
                special.replace_all_uses(*input, result);
            }
        }
        fold_modes(&mut special, self.registry, records)?;
        let module = Module::default();
        let context = Context::new(self.registry, &module).with_extras(&self.extras);
        SPECIALIZE.as_ref().map_err(Clone::clone)?.run_graph(&mut special, &context)?;
        let special = Arc::new(special);
        self.special.insert(key, Arc::clone(&special));
        Ok(special)
    }
}

/// Answers what ops without operands ask of the state of the run: in a forward gradients are recorded, in a backward they are not.
fn fold_modes(graph: &mut Graph, registry: &Registry, enabled: bool) -> Result<()> {
    let run = Run::silent();
    run.set_grad_enabled(enabled);
    for op in graph.all_ops() {
        if !graph.operands(op).is_empty() || is_constant(graph, op) {
            continue;
        }
        let facts = facts(registry, graph, op);
        let Some(row) = facts.op.filter(|_| facts.effects == Effects::READS_WORLD) else { continue };
        let results = graph.results(op);
        let [result] = results.as_slice() else { continue };
        let value = eval::call(&row, &[], Node::default(), &run)?;
        if let Some(crate::value::Value::Bool(answer)) = value.first() {
            let constant = graph.create(Symbol::new("prim::Constant"), &[], &[Type::bool()]);
            graph.set_attr(constant, "value", Attr::Bool(*answer));
            graph.insert_before(constant, op);
            if let Some(new) = graph.result(constant, 0) {
                graph.replace_all_uses(*result, new);
            }
        }
    }
    Ok(())
}

/// Whether an op is a constant without tensors.
fn is_number(graph: &Graph, op: OpId) -> bool {
    fn plain(ty: &Type) -> bool {
        match ty.kind() {
            TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Str | TypeKind::None => true,
            TypeKind::List(element) => plain(element),
            _ => false,
        }
    }
    is_constant(graph, op) && graph.results(op).iter().all(|result| plain(graph.ty(*result)))
}

fn is_constant(graph: &Graph, op: OpId) -> bool {
    graph.kind(op) == "prim::Constant"
}
