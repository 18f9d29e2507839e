//! Running the tape backward: nodes in the reverse of the order in which they were recorded, each when all that used its
//! outputs has run.

use super::cell::{Entry, Parameter};
use super::node::{Edge, Node, Operand, Output, Work, Write};
use super::region::Passage;
use super::saved::Saved;
use super::views;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Gradients, Region, Run};
use crate::ir::Type;
use crate::tensor::{Scalar, Tensor, broadcast_sizes};
use crate::value::Value;
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What PyTorch says when a graph is run a second time after its saved tensors were freed.
const FREED: &str = "Trying to backward through the graph a second time (or directly access saved tensors after they have \
already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify \
retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after calling \
backward.";

/// Computes gradients; see [`Gradients`].
pub(super) fn run(wanted: &Gradients, run: &Run) -> Result<Vec<Option<Tensor>>> {
    let former = run.set_grad_enabled(wanted.create);
    let mut engine = Engine::new(wanted, run);
    let done = engine.run();
    run.set_grad_enabled(former);
    done?;
    engine.results()
}

struct Engine<'a> {
    wanted: &'a Gradients,
    run: &'a Run,
    /// Nodes whose outputs have gradients, by their number.
    ready: BTreeMap<u64, (Arc<Node>, Vec<Option<Tensor>>)>,
    /// Nodes that lead to an input; None where every leaf is one.
    needed: Option<HashSet<u64>>,
    /// Inputs that are outputs of nodes: which of `inputs`.
    captured: HashMap<(u64, usize), Vec<usize>>,
    /// Inputs that are leaves, by their identity.
    leaves: HashMap<usize, Vec<usize>>,
    /// Gradients of inputs.
    found: Vec<Option<Tensor>>,
    /// Gradients of leaves, in order of arrival, where no inputs are given.
    sums: indexmap::IndexMap<usize, (Tensor, Option<Tensor>)>,
}

impl<'a> Engine<'a> {
    fn new(wanted: &'a Gradients, run: &'a Run) -> Engine<'a> {
        Engine {
            wanted,
            run,
            ready: BTreeMap::new(),
            needed: None,
            captured: HashMap::new(),
            leaves: HashMap::new(),
            found: Vec::new(),
            sums: indexmap::IndexMap::new(),
        }
    }

    fn run(&mut self) -> Result<()> {
        let roots = self.roots()?;
        if let Some(inputs) = &self.wanted.inputs {
            self.found = vec![None; inputs.len()];
            for (n, input) in inputs.iter().enumerate() {
                match views::edge_of(input, self.run)? {
                    Edge::Node(node, output) => {
                        self.captured.entry((node.number, output)).or_default().push(n);
                    }
                    Edge::Leaf(leaf) => self.leaves.entry(leaf.id()).or_default().push(n),
                    Edge::None => {
                        return Err(Diagnostic::runtime(
                            "One of the differentiated Tensors does not require grad",
                        ));
                    }
                }
            }
            self.needed = Some(self.leading(roots.iter().map(|(edge, _)| edge)));
        }
        for (edge, gradient) in roots {
            self.give(&edge, gradient)?;
        }
        while let Some((_, (node, gradients))) = self.ready.pop_last() {
            self.run.pause()?;
            self.capture(&node, &gradients)?;
            self.keep(&node, &gradients)?;
            if self.needed.as_ref().is_some_and(|needed| !needed.contains(&node.number)) {
                continue;
            }
            let given = self.backward(&node, gradients).map_err(|error| placed(error, &node))?;
            self.run.place_recorded(|| node.place());
            for (operand, gradient) in node.operands.iter().zip(given) {
                if let Some(gradient) = gradient {
                    self.give(&operand.edge, gradient)?;
                }
            }
        }
        self.accumulate()
    }

    /// Where gradients begin, with what they begin with.
    fn roots(&self) -> Result<Vec<(Edge, Tensor)>> {
        let mut roots = Vec::new();
        for (n, output) in self.wanted.outputs.iter().enumerate() {
            let edge = views::edge_of(output, self.run)?;
            if edge.is_none() {
                return Err(Diagnostic::runtime(format!(
                    "element {n} of tensors does not require grad and does not have a grad_fn"
                )));
            }
            let gradient = match self.wanted.cotangents.get(n).cloned().flatten() {
                Some(gradient) if gradient.sizes() != output.sizes() => {
                    return Err(Diagnostic::runtime(format!(
                        "Mismatch in shape: grad_output[{n}] has a shape of torch.Size({:?}) and output[{n}] has a shape \
                         of torch.Size({:?}).",
                        gradient.sizes().as_slice(),
                        output.sizes().as_slice()
                    )));
                }
                Some(gradient) => gradient,
                None if output.numel() == 1 => Tensor::full(output.dtype(), &output.sizes(), Scalar::Int(1))?,
                None => {
                    return Err(Diagnostic::runtime(
                        "grad can be implicitly created only for scalar outputs",
                    ));
                }
            };
            roots.push((edge, gradient));
        }
        Ok(roots)
    }

    /// The nodes from which an input can be reached.
    fn leading<'e>(&self, roots: impl Iterator<Item = &'e Edge>) -> HashSet<u64> {
        let mut reached: BTreeMap<u64, Arc<Node>> = BTreeMap::new();
        let mut work: Vec<Arc<Node>> = Vec::new();
        let visit = |edge: &Edge, reached: &mut BTreeMap<u64, Arc<Node>>, work: &mut Vec<Arc<Node>>| {
            if let Edge::Node(node, _) = edge
                && reached.insert(node.number, Arc::clone(node)).is_none()
            {
                work.push(Arc::clone(node));
            }
        };
        roots.for_each(|edge| visit(edge, &mut reached, &mut work));
        while let Some(node) = work.pop() {
            node.operands.iter().for_each(|operand| visit(&operand.edge, &mut reached, &mut work));
        }
        // Operands have smaller numbers than what they are used by.
        let mut needed = HashSet::new();
        for (number, node) in &reached {
            let leads = |operand: &Operand| match &operand.edge {
                Edge::None => false,
                Edge::Leaf(leaf) => self.leaves.contains_key(&leaf.id()),
                Edge::Node(next, output) => {
                    needed.contains(&next.number) || self.captured.contains_key(&(next.number, *output))
                }
            };
            if node.operands.iter().any(leads) {
                needed.insert(*number);
            }
        }
        needed
    }

    /// Hands a gradient to where it goes.
    fn give(&mut self, edge: &Edge, gradient: Tensor) -> Result<()> {
        match edge {
            Edge::None => Ok(()),
            Edge::Node(node, output) => {
                let (_, slots) = self.ready.entry(node.number).or_insert_with(|| {
                    let none = node.outputs.iter().map(|_| None).collect();
                    (Arc::clone(node), none)
                });
                let Some(slot) = slots.get_mut(*output) else {
                    return Err(Diagnostic::internal("a gradient for an output that does not exist"));
                };
                *slot = Some(sum(slot.take(), gradient, self.run)?);
                Ok(())
            }
            Edge::Leaf(leaf) => {
                if self.wanted.inputs.is_some() {
                    for n in self.leaves.get(&leaf.id()).cloned().unwrap_or_default() {
                        self.add_found(n, gradient.clone())?;
                    }
                    return Ok(());
                }
                let (_, slot) = self.sums.entry(leaf.id()).or_insert_with(|| (leaf.clone(), None));
                *slot = Some(sum(slot.take(), gradient, self.run)?);
                Ok(())
            }
        }
    }

    fn add_found(&mut self, n: usize, gradient: Tensor) -> Result<()> {
        if let Some(slot) = self.found.get_mut(n) {
            *slot = Some(sum(slot.take(), gradient, self.run)?);
        }
        Ok(())
    }

    /// Takes the gradients of inputs that are outputs of the node.
    fn capture(&mut self, node: &Node, gradients: &[Option<Tensor>]) -> Result<()> {
        if self.captured.is_empty() {
            return Ok(());
        }
        for (output, gradient) in gradients.iter().enumerate() {
            let Some(gradient) = gradient else { continue };
            for n in self.captured.get(&(node.number, output)).cloned().unwrap_or_default() {
                self.add_found(n, gradient.clone())?;
            }
        }
        Ok(())
    }

    /// Adds gradients of outputs to the tensors that keep them (`retain_grad`).
    fn keep(&self, node: &Node, gradients: &[Option<Tensor>]) -> Result<()> {
        for (output, tensor) in node.retained() {
            let Some(gradient) = gradients.get(output).cloned().flatten() else { continue };
            self.add_to(&tensor, gradient)?;
        }
        Ok(())
    }

    /// Adds a gradient to a leaf's `grad`: to the very tensor, so that all that have it see the sum, unless the sum is to be
    /// differentiated itself.
    fn add_to_leaf(&self, leaf: &Tensor, gradient: Tensor) -> Result<()> {
        match leaf.grad() {
            Some(former) if !self.wanted.create => {
                let values = vec![Value::Tensor(former), Value::Tensor(gradient)];
                self.run.function("a helper of differentiation", ADD, values).map(drop)
            }
            None if self.wanted.create => {
                let copy =
                    self.run.function("a helper of differentiation", CLONE, vec![Value::Tensor(gradient)])?;
                leaf.set_grad(Some(copy.to_tensor()?.clone()));
                Ok(())
            }
            _ => self.add_to(leaf, gradient),
        }
    }

    /// Adds a gradient to a tensor's `grad`, which becomes another tensor.
    fn add_to(&self, tensor: &Tensor, gradient: Tensor) -> Result<()> {
        let total = match tensor.grad() {
            Some(former) => sum(Some(former), gradient, self.run)?,
            None if self.wanted.create => gradient,
            None if is_own(&gradient) => gradient,
            None => owned(&gradient)?,
        };
        tensor.set_grad(Some(total));
        Ok(())
    }

    /// Adds to the gradients of leaves.
    fn accumulate(&mut self) -> Result<()> {
        for (_, (leaf, gradient)) in std::mem::take(&mut self.sums) {
            if let Some(gradient) = gradient {
                self.add_to_leaf(&leaf, gradient)?;
            }
        }
        Ok(())
    }

    fn results(self) -> Result<Vec<Option<Tensor>>> {
        if !self.wanted.allow_unused
            && let Some(n) = self.found.iter().position(Option::is_none)
        {
            return Err(Diagnostic::runtime(format!(
                "element {n}of the differentiated Tensors appears to not have been used in the graph. Set \
                 allow_unused=True if this is the desired behavior."
            )));
        }
        Ok(self.found)
    }

    /// Whether the gradient of an operand is wanted.
    fn asked(&self, operand: &Operand) -> bool {
        let Some(needed) = &self.needed else { return !operand.edge.is_none() };
        match &operand.edge {
            Edge::None => false,
            Edge::Leaf(leaf) => self.leaves.contains_key(&leaf.id()),
            Edge::Node(node, output) => {
                needed.contains(&node.number) || self.captured.contains_key(&(node.number, *output))
            }
        }
    }

    /// The gradients of a node's operands from those of its outputs.
    fn backward(&self, node: &Arc<Node>, gradients: Vec<Option<Tensor>>) -> Result<Vec<Option<Tensor>>> {
        if gradients.iter().all(Option::is_none) {
            return Ok(vec![None; node.operands.len()]);
        }
        let asked: Vec<bool> = node.operands.iter().map(|operand| self.asked(operand)).collect();
        self.through(node, gradients, &asked)
    }

    fn through(
        &self,
        node: &Arc<Node>,
        gradients: Vec<Option<Tensor>>,
        asked: &[bool],
    ) -> Result<Vec<Option<Tensor>>> {
        match &node.work {
            Work::Refused(message) => Err(Diagnostic::runtime(message.clone())),
            Work::Nothing => {
                let zeros = node.operands.iter().zip(asked).map(|(operand, asked)| {
                    if !asked {
                        return Ok(None);
                    }
                    let zero = Tensor::zeros(operand.dtype, &operand.sizes)?;
                    if self.wanted.create {
                        node.gives_zero(&zero);
                    }
                    Ok(Some(zero))
                });
                zeros.collect()
            }
            Work::Write(write) => self.through_write(node, write, gradients, asked),
            Work::Region { region, saved } => self.through_region(node, (region, saved), gradients, asked),
            Work::Cell { cell, saved } => {
                let kept = self.unpacked(node, saved.lock().as_ref())?;
                let mut out = vec![None; node.operands.len()];
                for entry in &cell.entries {
                    self.entry(node, entry, &kept, (&gradients, asked), &mut out)?;
                }
                if !self.wanted.keep {
                    let mut saved = saved.lock();
                    if saved.as_ref().is_some_and(|all| all.iter().any(|(_, one)| one.holds_elements())) {
                        *saved = None;
                    }
                }
                Ok(out)
            }
        }
    }

    /// Through work that ran as one.
    fn through_region(
        &self,
        node: &Arc<Node>,
        (region, saved): (&Arc<dyn Region>, &Mutex<Option<Vec<Saved>>>),
        gradients: Vec<Option<Tensor>>,
        asked: &[bool],
    ) -> Result<Vec<Option<Tensor>>> {
        let found = {
            let saved = saved.lock();
            let saved = saved.as_ref().ok_or_else(|| Diagnostic::runtime(FREED))?;
            let passage = Passage { node, region, saved, run: self.run, tape: run };
            passage.gradients(gradients, asked, self.wanted.create)?
        };
        if !self.wanted.keep && region.keeps() {
            *saved.lock() = None;
        }
        let mut out = Vec::with_capacity(found.len());
        for (n, (operand, gradient)) in node.operands.iter().zip(found).enumerate() {
            out.push(match gradient {
                Some(gradient) => Some(self.fitted(gradient, operand, node, n)?),
                None => None,
            });
        }
        Ok(out)
    }

    fn unpacked(
        &self,
        node: &Arc<Node>,
        saved: Option<&Vec<(Parameter, Saved)>>,
    ) -> Result<Vec<(Parameter, Value)>> {
        let saved = saved.ok_or_else(|| Diagnostic::runtime(FREED))?;
        saved.iter().map(|(parameter, one)| Ok((*parameter, one.unpack(node)?))).collect()
    }

    /// Runs one entry of a cell.
    fn entry(
        &self,
        node: &Arc<Node>,
        entry: &Entry,
        kept: &[(Parameter, Value)],
        (gradients, asked): (&[Option<Tensor>], &[bool]),
        out: &mut [Option<Tensor>],
    ) -> Result<()> {
        let of = |target: usize| {
            let operands = node.operands.iter().enumerate();
            operands.filter(move |(_, operand)| operand.argument == target).map(|(n, _)| n)
        };
        let needs: Vec<bool> = entry
            .targets
            .iter()
            .map(|target| of(*target).any(|n| asked.get(n).copied().unwrap_or(false)))
            .collect();
        if !needs.contains(&true) {
            return Ok(());
        }
        let mut values = Vec::with_capacity(entry.parameters.len());
        for parameter in &entry.parameters {
            values.push(match parameter {
                Parameter::Grad(n) => Value::Tensor(given(gradients, &node.outputs, *n)?),
                Parameter::Grads => {
                    let all = (0..node.outputs.len()).map(|n| given(gradients, &node.outputs, n));
                    Value::tensors(all.collect::<Result<Vec<_>>>()?)
                }
                Parameter::Needs => {
                    Value::list(Type::bool(), needs.iter().map(|need| Value::Bool(*need)).collect())
                }
                other => kept
                    .iter()
                    .find(|(parameter, _)| parameter == other)
                    .map(|(_, value)| value.clone())
                    .ok_or_else(|| Diagnostic::internal("a derivative lacks what was saved for it"))?,
            });
        }
        let name = format!("the derivative of {}", node.name);
        let result = self.run.function(&name, &entry.text, values)?;
        let parts: Vec<Value> = match (&result, entry.targets.len()) {
            (_, 1) => vec![result],
            (Value::Tuple(tuple), _) => tuple.items().to_vec(),
            (Value::List(list), _) => list.to_vec(),
            _ => return Err(Diagnostic::internal(format!("{name} gives one value for several arguments"))),
        };
        for (target, part) in entry.targets.iter().zip(parts) {
            for n in of(*target) {
                let (Some(operand), Some(true)) = (node.operands.get(n), asked.get(n)) else { continue };
                let gradient = match (&part, operand.item) {
                    (Value::List(list), Some(item)) => list.items().get(item).cloned().unwrap_or_default(),
                    (one, _) => one.clone(),
                };
                if let (Value::Tensor(gradient), Some(slot)) = (gradient, out.get_mut(n)) {
                    *slot = Some(self.fitted(gradient, operand, node, n)?);
                }
            }
        }
        Ok(())
    }

    /// A gradient in sizes and dtype of its operand.
    fn fitted(&self, gradient: Tensor, operand: &Operand, node: &Node, n: usize) -> Result<Tensor> {
        let mut gradient = gradient;
        if gradient.dtype().is_complex() && !operand.dtype.is_complex() {
            gradient = self.helper(REAL, vec![Value::Tensor(gradient)])?;
        }
        if gradient.sizes() != operand.sizes {
            let fits = broadcast_sizes(&operand.sizes, &gradient.sizes());
            if !fits.is_ok_and(|sizes| sizes == gradient.sizes()) {
                return Err(Diagnostic::runtime(format!(
                    "Function {}Backward0 returned an invalid gradient at index {n} - got {:?} but expected shape \
                     compatible with {:?}",
                    node.shown(),
                    gradient.sizes().as_slice(),
                    operand.sizes.as_slice()
                )));
            }
            let sizes = Value::ints(operand.sizes.iter().copied());
            gradient = self.helper(SUM_TO, vec![Value::Tensor(gradient), sizes])?;
        }
        if gradient.dtype() != operand.dtype {
            let dtype = Value::Int(operand.dtype.code());
            gradient = self.helper(CAST, vec![Value::Tensor(gradient), dtype])?;
        }
        Ok(gradient)
    }

    fn helper(&self, text: &str, values: Vec<Value>) -> Result<Tensor> {
        self.run.function("a helper of differentiation", text, values)?.to_tensor().cloned()
    }

    /// Through an op that wrote to a view: its slice of the base's gradient goes through the op, the rest stays.
    fn through_write(
        &self,
        node: &Arc<Node>,
        write: &Write,
        gradients: Vec<Option<Tensor>>,
        asked: &[bool],
    ) -> Result<Vec<Option<Tensor>>> {
        let Some(gradient) = gradients.into_iter().next().flatten() else {
            return Ok(vec![None; node.operands.len()]);
        };
        let (base, view) = (&write.base.1, &write.view.1);
        let ints = |dims: &[i64]| Value::ints(dims.iter().copied());
        let mixed = write.base.0.is_complex() && !write.view.0.is_complex();
        let start = if mixed { 2 * base.offset } else { base.offset };
        let geometry = [
            ints(&base.sizes),
            ints(&base.strides),
            ints(&view.sizes),
            ints(&view.strides),
            Value::Int(view.offset as i64 - start as i64),
            Value::Bool(mixed),
        ];
        let with = |first: Vec<Value>| first.into_iter().chain(geometry.iter().cloned()).collect::<Vec<_>>();
        let flat = self.helper(
            FLAT,
            vec![Value::Tensor(gradient), geometry[0].clone(), geometry[1].clone(), geometry[5].clone()],
        )?;
        let slice = self.helper(SLICE, with(vec![Value::Tensor(flat.clone())]))?;
        let mut inner_asked: Vec<bool> = asked.iter().skip(1).copied().collect();
        if let Some(target) = write.target
            && let Some(slot) = inner_asked.get_mut(target)
        {
            *slot = asked.first().copied().unwrap_or(false);
        }
        let mut inner = self.through(&write.inner, vec![Some(slice)], &inner_asked)?;
        let own = write.target.and_then(|target| inner.get_mut(target).and_then(Option::take));
        let mut out = vec![None; node.operands.len()];
        if asked.first() == Some(&true) {
            let own = own.map_or(Value::None, Value::Tensor);
            let rest = self.helper(REST, with(vec![Value::Tensor(flat), own]))?;
            if let Some(slot) = out.first_mut() {
                *slot = Some(rest);
            }
        }
        for (slot, gradient) in out.iter_mut().skip(1).zip(inner) {
            *slot = gradient;
        }
        Ok(out)
    }
}

const REAL: &str = "def real(g: Tensor):\n    return torch.real(g)\n";
const SUM_TO: &str = "def sum_to(g: Tensor, size: List[int]):\n    return g.sum_to_size(size)\n";
const CAST: &str = "def cast(g: Tensor, dtype: int):\n    return g.to(dtype)\n";
const CLONE: &str = "def copied(g: Tensor):\n    return g.clone()\n";
const SUM: &str = "def sum(a: Tensor, b: Tensor):\n    return a + b\n";
/// The same into the memory of the first.
const ADD: &str = "def add(a: Tensor, b: Tensor):\n    return a.add_(b)\n";

/// The gradient of a base as its storage lies: one dimension.
const FLAT: &str = include_str!("flat.py");
/// The part of it that a view shows.
const SLICE: &str = "def slice(flat: Tensor, base_size: List[int], base_stride: List[int], size: List[int], stride: List[int], offset: int, mixed: bool):
    return flat.as_strided(size, stride, offset).clone()
";
/// The gradient of the base as it was before the write.
const REST: &str = include_str!("rest.py");

/// The gradient of an output; zeros where nothing used it.
fn given(gradients: &[Option<Tensor>], outputs: &[Output], n: usize) -> Result<Tensor> {
    match (gradients.get(n), outputs.get(n)) {
        (Some(Some(gradient)), _) => Ok(gradient.clone()),
        (_, Some(Output { sizes, dtype })) => Tensor::zeros(*dtype, sizes),
        _ => Err(Diagnostic::internal("a derivative asks for the gradient of a result that does not exist")),
    }
}

fn sum(former: Option<Tensor>, gradient: Tensor, run: &Run) -> Result<Tensor> {
    match former {
        None => Ok(gradient),
        Some(former) => {
            let alike = former.sizes() == gradient.sizes() && former.dtype() == gradient.dtype();
            let text = if alike && !run.grad_enabled() && is_own(&former) { ADD } else { SUM };
            let values = vec![Value::Tensor(former), Value::Tensor(gradient)];
            run.function("a helper of differentiation", text, values)?.to_tensor().cloned()
        }
    }
}

/// Whether a gradient was made for this alone and has no history, so that nothing is lost if it is kept as it is.
fn is_own(gradient: &Tensor) -> bool {
    gradient.is_sole() && gradient.is_plain() && !gradient.requires_grad()
}

/// A gradient that nothing else writes to, without history.
fn owned(gradient: &Tensor) -> Result<Tensor> {
    let copy = Tensor::for_writing(gradient.dtype(), &gradient.sizes())?;
    copy.copy_from(gradient)?;
    Ok(copy)
}

/// Adds to an error where the operation stands whose derivative it comes from.
fn placed(mut error: Diagnostic, node: &Node) -> Diagnostic {
    let report = error.report_mut();
    report.frames.clear();
    report.span = None;
    match node.place() {
        Some(span) => error.label(&span, format!("the operation that is differentiated: {}", node.name)),
        None => error,
    }
}
