//! Recording: an op whose operands require gradients runs, and becomes a node.

use super::cell::{Cell, Cells, Parameter, Recipe};
use super::history;
use super::node::{Node, Operand, Work, output_of};
use super::saved::{self, Saved};
use super::views;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Compute, Fact, Family, Op, Outputs, Run};
use crate::ir::{Argument, Schema};
use crate::tensor::Tensor;
use crate::value::Value;
use hashbrown::HashSet;
use parking_lot::Mutex;
use std::sync::Arc;

/// One call that is to be recorded.
pub(super) struct Call<'a> {
    pub(super) cells: &'a Cells,
    pub(super) op: &'a Op,
    pub(super) values: &'a [Value],
    /// Values of the attributes that the row declares.
    pub(super) attributes: &'a [Value],
    pub(super) run: &'a Run,
    pub(super) compute: Compute<'a>,
}

/// Which argument an op writes to and gives back.
pub(super) fn written(schema: &Schema) -> Option<usize> {
    let marks = |a: &Argument| a.alias.clone().filter(|alias| alias.is_write);
    let given = schema.returns.first().and_then(marks)?;
    schema.arguments.iter().position(|a| marks(a).is_some_and(|alias| alias.before == given.before))
}

impl Call<'_> {
    pub(super) fn record(&self) -> Result<Outputs> {
        let schema = self.op.schema()?;
        self.check_out(schema)?;
        let target = written(schema).and_then(|n| self.values.get(n));
        let target = match target {
            Some(Value::Tensor(t)) => Some(t.clone()),
            _ => None,
        };
        let detached = self.op.def().facts.contains(&Fact::Detached);
        if let Some(target) = &target
            && self.op.def().family != Family::Host
            && !detached
        {
            check_leaf(target)?;
        }
        if detached || self.op.def().facts.contains(&Fact::Metadata) {
            return (self.compute)(self.values);
        }
        match self.cells.recipe(self.op) {
            Recipe::Inner if target.is_some() && self.cells.plain(self.op).is_some() => self.by_plain(),
            Recipe::Inner => self.empty_results((self.compute)(self.values)?),
            Recipe::Unfold(_) if target.is_some() => self.by_plain(),
            Recipe::Unfold(text) => self.unfold(&text),
            Recipe::Cell(cell) => self.with_cell(&cell, target),
            Recipe::Missing(reason) => self.without_cell(&reason, target),
        }
    }

    /// `out=` and gradients exclude each other: what was written before would have no history.
    fn check_out(&self, schema: &Schema) -> Result<()> {
        let follows = |t: &Tensor| t.dtype().is_floating() || t.dtype().is_complex();
        let is_out = |(argument, value): (&Argument, &Value)| {
            let writes = argument.alias.as_ref().is_some_and(|alias| alias.is_write);
            writes && argument.keyword_only && matches!(value, Value::Tensor(t) if follows(t))
        };
        if !schema.arguments.iter().zip(self.values).any(is_out) || !self.values.iter().any(wants) {
            return Ok(());
        }
        Err(Diagnostic::runtime(format!(
            "{}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments \
             requires grad.",
            self.op.name().base()
        )))
    }

    /// A form that writes of an op that is defined by others: computes, then writes.
    fn by_plain(&self) -> Result<Outputs> {
        let Some(plain) = self.cells.plain(self.op) else { return (self.compute)(self.values) };
        let results = crate::eval::call(plain, self.values, crate::dialects::Node::default(), self.run)?;
        let target = self.values.first().cloned().unwrap_or_default();
        let result = results.into_iter().next().unwrap_or_default();
        let written = self.run.function("the helper 'write'", WRITE, vec![target, result])?;
        Ok(Outputs::from_iter([written]))
    }

    /// A result without elements that depends on no operand any more requires gradients all the same, which are zero.
    fn empty_results(&self, results: Outputs) -> Result<Outputs> {
        if let [Value::Tensor(t)] = results.as_slice()
            && t.numel() == 0
            && !t.requires_grad()
            && (t.dtype().is_floating() || t.dtype().is_complex())
            && !matches!(
                self.op.def().family,
                Family::Host | Family::Container | Family::Create | Family::Control
            )
        {
            let operands = self.operands(0..self.op.schema()?.arguments.len())?;
            let node =
                Node::new(self.op.full_name().to_string(), Work::Nothing, operands, vec![output_of(t)]);
            history::set(t, &node, 0, None);
        }
        Ok(results)
    }

    fn unfold(&self, text: &str) -> Result<Outputs> {
        let name = format!("the derivative of {}", self.op.full_name());
        let mut all = self.values.to_vec();
        all.extend_from_slice(self.attributes);
        let result = self.run.function(&name, text, all).map_err(|error| self.of_the_op(error))?;
        let schema = self.op.schema()?;
        Ok(match (schema.returns.len(), result) {
            (0, Value::List(list)) if schema.is_varret => list.to_vec().into_iter().collect(),
            (0, _) => Outputs::new(),
            (1, value) => Outputs::from_iter([value]),
            (_, Value::Tuple(tuple)) => tuple.items().iter().cloned().collect(),
            (_, value) => Outputs::from_iter([value]),
        })
    }

    /// An error of what stands for a built-in op, as the op's own: the lines are the program's. Of ops from dialect files
    /// the lines of the derivative stay, which their authors look for.
    fn of_the_op(&self, mut error: Diagnostic) -> Diagnostic {
        if self.op.full_name().starts_with("aten::") {
            let report = error.report_mut();
            (report.span, report.frames) = (None, Vec::new());
        }
        error
    }

    /// Runs the op with nothing recorded.
    fn computed(&self) -> Result<Outputs> {
        let former = self.run.set_grad_enabled(false);
        let results = (self.compute)(self.values);
        self.run.set_grad_enabled(former);
        results
    }

    fn with_cell(&self, cell: &Arc<Cell>, target: Option<Tensor>) -> Result<Outputs> {
        let arguments = cell.entries.iter().flat_map(|entry| entry.targets.iter().copied());
        let operands = self.operands(arguments)?;
        let lost = self.lost(cell);
        if operands.iter().all(|operand| operand.edge.is_none()) && lost.is_none() {
            let results = self.computed()?;
            views::link(self.op, self.values, &results);
            return Ok(results);
        }
        if let Some(reason) = lost {
            return self.finish(Work::Refused(reason), operands, None, target);
        }
        let mut wanted: Vec<Parameter> = Vec::new();
        let mut seen = HashSet::new();
        for entry in &cell.entries {
            let wants =
                |operand: &Operand| entry.targets.contains(&operand.argument) && !operand.edge.is_none();
            if operands.iter().any(wants) {
                wanted.extend(entry.parameters.iter().copied().filter(|p| seen.insert(*p)));
            }
        }
        let values = self.values_to_save(&wanted, target.as_ref())?;
        let mut kept = Vec::with_capacity(wanted.len());
        for parameter in wanted {
            let before = saved::before(parameter, &values, self.attributes)?;
            kept.push((
                parameter,
                if self.is_state(parameter) { before.map(Saved::as_written) } else { before },
            ));
        }
        let work = Work::Cell { cell: Arc::clone(cell), saved: Mutex::new(None) };
        self.finish(work, operands, Some(kept), target)
    }

    fn without_cell(&self, reason: &str, target: Option<Tensor>) -> Result<Outputs> {
        let all = 0..self.op.schema()?.arguments.len();
        let operands = self.operands(all)?;
        let name = self.op.name().base().to_string();
        let mut message = format!("the derivative for '{name}' is not implemented.");
        if !reason.is_empty() {
            message = format!("{message} ({}: {reason})", self.op.full_name());
        }
        self.finish(Work::Refused(message), operands, None, target)
    }

    /// Why a gradient that an operand wants cannot be had: the cell says nothing of it.
    fn lost(&self, cell: &Cell) -> Option<String> {
        let schema = self.op.schema().ok()?;
        for (index, (argument, value)) in schema.arguments.iter().zip(self.values).enumerate() {
            let said = cell.none.contains(&index) || cell.entries.iter().any(|e| e.targets.contains(&index));
            if said || !wants(value) {
                continue;
            }
            let reason = cell.missing.iter().find(|(n, _)| *n == index).map(|(_, why)| format!(": {why}"));
            return Some(format!(
                "the derivative for '{}' of '{}' is not implemented{}.",
                argument.name,
                self.op.name().base(),
                reason.unwrap_or_default()
            ));
        }
        None
    }

    /// Operands of some arguments, one a tensor.
    fn operands(&self, arguments: impl Iterator<Item = usize>) -> Result<Vec<Operand>> {
        let mut operands = Vec::new();
        for argument in arguments {
            match self.values.get(argument) {
                Some(Value::Tensor(t)) => operands.push(self.operand(argument, None, t)?),
                Some(Value::List(list)) if views::holds_tensors(list.element_type()) => {
                    for (n, item) in list.to_vec().iter().enumerate() {
                        if let Value::Tensor(t) = item {
                            operands.push(self.operand(argument, Some(n), t)?);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(operands)
    }

    fn operand(&self, argument: usize, item: Option<usize>, tensor: &Tensor) -> Result<Operand> {
        let edge = views::edge_of(tensor, self.run)?;
        Ok(Operand { argument, item, edge, sizes: tensor.sizes(), dtype: tensor.dtype() })
    }

    /// Whether the op writes to an argument though its schema does not say so, as batch norm does to running statistics: in PyTorch
    /// such writes are not seen by derivatives, so that one batch norm may be called twice.
    fn is_state(&self, parameter: Parameter) -> bool {
        let Parameter::Argument { index, .. } = parameter else { return false };
        let Some(schema) = self.op.def().hidden.and_then(|_| self.op.marked_schema().ok()) else {
            return false;
        };
        let marks = schema.arguments.get(index).and_then(|argument| argument.alias.as_ref());
        marks.is_some_and(|marks| marks.is_write)
    }

    /// The arguments as entries shall see them: what the op is about to write to is copied where its elements are kept.
    fn values_to_save(&self, wanted: &[Parameter], target: Option<&Tensor>) -> Result<Vec<Value>> {
        let mut values = self.values.to_vec();
        let Some(target) = target else { return Ok(values) };
        for (index, value) in values.iter_mut().enumerate() {
            let reads = |p: &Parameter| matches!(p, Parameter::Argument { index: at, keep: super::cell::Keep::All } if *at == index);
            if let Value::Tensor(t) = value
                && (t.same(target) || t.storage().same(&target.storage()))
                && wanted.iter().any(reads)
            {
                *value = self.run.function("the helper 'copy'", COPY, vec![value.clone()])?;
            }
        }
        Ok(values)
    }

    /// Runs the op and gives its results their history.
    fn finish(
        &self,
        mut work: Work,
        operands: Vec<Operand>,
        kept: Option<Vec<(Parameter, Option<Saved>)>>,
        target: Option<Tensor>,
    ) -> Result<Outputs> {
        let results = self.computed()?;
        let tensors = tensors_of(&results);
        let differentiable = match &work {
            Work::Cell { cell, .. } => cell.results.clone(),
            _ => None,
        };
        if let (Work::Cell { saved, .. }, Some(kept)) = (&mut work, kept) {
            *saved.get_mut() = Some(after(kept, &results, &tensors)?);
        }
        let outputs = tensors.iter().map(output_of).collect();
        let node = Node::new(self.op.full_name().to_string(), work, operands, outputs);
        self.run.note_recorded(Arc::downgrade(&node) as std::sync::Weak<dyn crate::dialects::Recorded>);
        if let Some(target) = target {
            if target.dtype().is_floating() || target.dtype().is_complex() {
                views::written(&target, &node, written(self.op.schema()?), self.run)?;
            }
            return Ok(results);
        }
        let recorded_as = self.op.def().facts.iter().find_map(|fact| match fact {
            Fact::RecordedAs(name) => Some(name.to_string()),
            _ => None,
        });
        let several =
            views::gives_several(self.op, &results).then(|| recorded_as.unwrap_or_else(|| node.shown()));
        for (n, tensor) in tensors.iter().enumerate() {
            let follows = tensor.dtype().is_floating() || tensor.dtype().is_complex();
            let is_operand = || self.values.iter().any(|v| is_or_holds(v, tensor));
            if follows && differentiable.as_ref().is_none_or(|all| all.contains(&n)) && !is_operand() {
                history::set(tensor, &node, n, several.clone());
            }
        }
        views::link(self.op, self.values, &results);
        Ok(results)
    }
}

/// `copy_`, said by a text.
const WRITE: &str = "def write(target: Tensor, source: Tensor):\n    return target.copy_(source)\n";
const COPY: &str = "def copy(source: Tensor):\n    return source.clone()\n";

/// Adds what is kept of the results.
fn after(
    kept: Vec<(Parameter, Option<Saved>)>,
    results: &Outputs,
    tensors: &[Tensor],
) -> Result<Vec<(Parameter, Saved)>> {
    let mut all = Vec::with_capacity(kept.len());
    for (parameter, saved) in kept {
        let saved = match (parameter, saved) {
            (_, Some(saved)) => saved.as_of_now(),
            (Parameter::Result { index, keep }, None) => {
                let value = results.get(index).cloned().unwrap_or_default();
                let output = match &value {
                    Value::Tensor(t) => tensors.iter().position(|other| other.same(t)).unwrap_or(index),
                    _ => index,
                };
                Saved::result(&value, output, keep)?
            }
            // Known when gradients are.
            (_, None) => continue,
        };
        all.push((parameter, saved));
    }
    Ok(all)
}

/// The tensors of results, those of lists included.
pub(super) fn tensors_of(results: &[Value]) -> Vec<Tensor> {
    let mut all = Vec::new();
    for value in results {
        match value {
            Value::Tensor(t) => all.push(t.clone()),
            Value::List(list) if list.element_type().is_tensor() => {
                all.extend(list.items().iter().filter_map(|v| v.to_tensor().ok().cloned()));
            }
            _ => {}
        }
    }
    all
}

fn is_or_holds(value: &Value, tensor: &Tensor) -> bool {
    match value {
        Value::Tensor(t) => t.same(tensor),
        Value::List(list) if views::holds_tensors(list.element_type()) => {
            list.items().iter().any(|item| matches!(item, Value::Tensor(t) if t.same(tensor)))
        }
        _ => false,
    }
}

/// Whether a value is, or holds, a tensor that requires gradients.
pub(super) fn wants(value: &Value) -> bool {
    match value {
        Value::Tensor(t) => t.requires_grad(),
        Value::List(list) if views::holds_tensors(list.element_type()) => list.items().iter().any(wants),
        _ => false,
    }
}

/// Leaves that require gradients must not be written while operations are recorded, nor may some views.
fn check_leaf(target: &Tensor) -> Result<()> {
    let made = history::of(target);
    if let Some(name) = made.as_ref().and_then(|history| history.one_of.as_ref()) {
        let output = made.as_ref().map_or(0, |history| history.output);
        return Err(Diagnostic::runtime(format!(
            "Output {output} of {name} is a view and is being modified inplace. {}",
            views::ONE_OF_SEVERAL
        )));
    }
    if let Some(base) = target.base()
        && base.requires_grad()
        && base.grad_node().is_none()
    {
        return Err(Diagnostic::runtime(
            "a view of a leaf Variable that requires grad is being used in an in-place operation.",
        ));
    }
    if target.requires_grad() && target.grad_node().is_none() && target.base().is_none() {
        return Err(Diagnostic::runtime(
            "a leaf Variable that requires grad is being used in an in-place operation.",
        ));
    }
    Ok(())
}
