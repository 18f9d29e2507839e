//! Tensors that are made in the graph and written to become values: each write makes a new tensor, one to a view (`x[:, 0] = y`)
//! a new tensor with that part replaced, views are taken of what there is by then, and branches and loops give and carry what
//! they write to. What PyTorch calls functionalization, here also through control flow.
//!
//! The condition: every use of the tensor and of its views is one that this pass understands, types show that writes keep dtype
//! and sizes, and at most one of the names leaves the graph, as what leaves it shares no memory any more. What requires grad
//! stays unchanged. It does not know what differentiates the graph afterwards.

use super::tensor_uses::{Names, View, Write, gives_what_it_writes, names};
use super::variables::{Fresh, Objects, Variable, Written, give_one_name, put, walk};
use super::{Context, constants};
use crate::analysis::{AliasDb, facts};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Graph, OpId, Type, ValueId};
use crate::value::Value;
use hashbrown::{HashMap, HashSet};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut pass = Pass::default();
    let mut written = Written::default();
    let writes =
        |op: &OpId| graph.nested_blocks(*op).is_empty() && facts(context.registry, graph, *op).writes;
    if !graph.all_ops().iter().any(writes) {
        return Ok(false);
    }
    let is_same = |graph: &Graph, op: OpId| gives_what_it_writes(graph, context.registry, op);
    let changed = give_one_name(graph, context, &|ty| ty.is_tensor(), &is_same);
    for (made, found) in understood(graph, context) {
        if !context.step(|| format!("makes a value of {}", graph.display_name(made))) {
            break;
        }
        pass.add(graph, made, found, &mut written);
    }
    if pass.names.is_empty() {
        return Ok(changed);
    }
    let root = graph.root();
    walk(graph, &mut pass, &mut written, root)?;
    Ok(true)
}

/// The tensors all of whose names are known that are written to.
fn understood(graph: &mut Graph, context: &Context<'_>) -> Vec<(ValueId, Names)> {
    let (mut all, mut fresh) = (Vec::new(), Fresh::new());
    for op in graph.all_ops() {
        let params = graph.nested_blocks(op).iter().flat_map(|block| graph.params(*block)).copied();
        for made in graph.results(op).into_iter().chain(params.collect::<Vec<ValueId>>()) {
            if graph.ty(made).is_tensor()
                && let Some(found) = names(graph, context.registry, &mut fresh, made)
            {
                all.push((made, found));
            }
        }
    }
    // What writes to one of these does so while nothing else has it, and so to none of the others.
    let writes: HashSet<OpId> = all.iter().flat_map(|(_, found)| &found.writes).map(|(op, ..)| *op).collect();
    let db = AliasDb::new(context.registry, Some(context.module), graph);
    let is_written_by_others = |made: ValueId| {
        db.writers(made).is_none_or(|writers| writers.iter().any(|writer| !writes.contains(writer)))
    };
    all.retain(|(made, found)| found.escapes.is_empty() || !is_written_by_others(*made));
    all
}

#[derive(Default)]
struct Pass {
    /// The tensor that each name belongs to, and of what it is a view.
    names: HashMap<ValueId, Name>,
    /// How ops write, and to which names.
    writes: HashMap<OpId, (ValueId, Write)>,
    /// Operands of loops that are names.
    escapes: HashMap<OpId, Vec<usize>>,
    now: HashMap<ValueId, State>,
    versions: usize,
}

struct Name {
    made: ValueId,
    /// None: the tensor itself.
    view: Option<(ValueId, View)>,
    /// The version of the tensor that the name's own op gives a view of.
    version: usize,
}

#[derive(Clone, Copy)]
struct State {
    value: ValueId,
    /// Grows with each write.
    version: usize,
}

impl Pass {
    fn add(&mut self, graph: &Graph, made: ValueId, found: Names, written: &mut Written) {
        for (op, name, write) in found.writes {
            written.note(graph, op, (made, None));
            self.writes.insert(op, (name, write));
        }
        for (op, operand) in found.escapes {
            self.escapes.entry(op).or_default().push(operand);
        }
        self.names.insert(made, Name { made, view: None, version: 0 });
        for (name, of, view) in found.views {
            self.names.insert(name, Name { made, view: Some((of, view)), version: usize::MAX });
        }
        self.now.insert(made, State { value: made, version: 0 });
    }

    /// What a name stands for by now.
    fn read(&self, graph: &mut Graph, before: OpId, name: ValueId) -> Result<ValueId> {
        let lost = || Diagnostic::internal("a tensor is used where it is not made");
        let known = self.names.get(&name).ok_or_else(lost)?;
        let state = self.now.get(&known.made).ok_or_else(lost)?;
        let Some((of, view)) = &known.view else { return Ok(state.value) };
        if known.version == state.version {
            return Ok(name);
        }
        let base = self.read(graph, before, *of)?;
        let View::Op(op) = view else { return Ok(base) };
        let mut operands = graph.operands(*op).to_vec();
        operands[0] = base;
        let ty = graph.ty(name).clone();
        let kind = graph.kind(*op);
        Ok(put(graph, before, kind.as_str(), &operands, &ty))
    }

    /// Lets a name stand for a new value, and what it is a view of for one with that part replaced.
    fn replace(&mut self, graph: &mut Graph, before: OpId, name: ValueId, value: ValueId) -> Result<()> {
        let lost = || Diagnostic::internal("a view that is of nothing");
        let (mut name, mut value) = (name, value);
        loop {
            let known = self.names.get(&name).ok_or_else(lost)?;
            let made = known.made;
            let Some((of, view)) = &known.view else {
                self.set((made, None), value);
                return Ok(());
            };
            let (of, view) = (*of, *view);
            if let View::Op(op) = view {
                let base = self.read(graph, before, of)?;
                value = scattered(graph, before, op, base, value)?;
            }
            name = of;
        }
    }

    /// What a write makes of a name.
    fn write(&self, graph: &mut Graph, op: OpId, name: ValueId, write: Write) -> Result<ValueId> {
        let now = self.read(graph, op, name)?;
        let ty = detached_strides(graph.ty(name));
        let mut operands = graph.operands(op).to_vec();
        operands[0] = now;
        if write == Write::Copy && are_alike(graph, now, operands[1]) && self.is_copied_on(graph, name) {
            return Ok(operands[1]);
        }
        let kind = graph.kind(op);
        let Some(functional) = kind.as_str().strip_suffix('_') else {
            return Err(Diagnostic::internal(format!("{kind} writes to nothing")));
        };
        Ok(put(graph, op, functional, &operands, &ty))
    }

    /// Whether what is written to a name is copied to a part of another tensor at once.
    fn is_copied_on(&self, graph: &Graph, name: ValueId) -> bool {
        let view = self.names.get(&name).and_then(|name| name.view);
        matches!(view, Some((_, View::Op(op))) if scatter(graph, op).is_some())
    }
}

impl Objects for Pass {
    type State = State;

    fn states(&mut self) -> &mut HashMap<ValueId, State> {
        &mut self.now
    }

    fn value(&mut self, graph: &mut Graph, before: OpId, (made, _): Variable) -> Result<ValueId> {
        self.read(graph, before, made)
    }

    fn set(&mut self, (made, _): Variable, value: ValueId) {
        self.versions += 1;
        self.now.insert(made, State { value, version: self.versions });
    }

    fn type_of(&self, graph: &Graph, (made, _): Variable) -> Type {
        detached_strides(graph.ty(made))
    }

    fn visit(&mut self, graph: &mut Graph, op: OpId) -> Result<bool> {
        let write = self.writes.remove(&op);
        // Of loops only those operands are uses that were found: others are what they carry from now on.
        let operands = match graph.nested_blocks(op).is_empty() {
            true => (0..graph.operands(op).len()).collect(),
            false => self.escapes.remove(&op).unwrap_or_default(),
        };
        for n in operands {
            let Some(name) = graph.operand(op, n).filter(|value| self.names.contains_key(value)) else {
                continue;
            };
            if write.is_some() && n == 0 {
                continue;
            }
            let now = self.read(graph, op, name)?;
            if now != name {
                graph.set_operand(op, n, now);
            }
        }
        if let Some((name, write)) = write {
            let value = self.write(graph, op, name, write)?;
            self.replace(graph, op, name, value)?;
            // The op gives what it wrote to.
            for result in graph.results(op) {
                graph.replace_all_uses(result, name);
            }
            return Ok(true);
        }
        for result in graph.results(op) {
            let state = self.names.get(&result).and_then(|name| self.now.get(&name.made)).copied();
            if let (Some(state), Some(name)) = (state, self.names.get_mut(&result)) {
                name.version = state.version;
            }
        }
        Ok(false)
    }
}

/// Whether types determine that both are tensors of the same dtype and sizes.
fn are_alike(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    super::functionalize::are_alike(graph, a, b)
}

/// A tensor with what an op gives a view of replaced.
fn scattered(graph: &mut Graph, before: OpId, view: OpId, base: ValueId, part: ValueId) -> Result<ValueId> {
    let ty = detached_strides(graph.ty(base));
    let mut operands = graph.operands(view).to_vec();
    operands[0] = base;
    if let Some(scatter) = scatter(graph, view) {
        operands.insert(1, part);
        return Ok(put(graph, before, scatter, &operands, &ty));
    }
    let kind = graph.kind(view);
    match kind.as_str() {
        "aten::transpose" | "aten::t" => {
            operands[0] = part;
            Ok(put(graph, before, kind.as_str(), &operands, &ty))
        }
        "aten::unsqueeze" => Ok(put(graph, before, "aten::squeeze", &[part, operands[1]], &ty)),
        "aten::view" => {
            let sizes = put(graph, before, "aten::size", &[base], &Type::list(Type::int()));
            Ok(put(graph, before, "aten::reshape", &[part, sizes], &ty))
        }
        "aten::permute" => {
            let dims = constants::ints_of(graph, operands[1]).unwrap_or_default();
            let inverse = inverse(&dims);
            let dims = Value::list(Type::int(), inverse.into_iter().map(Value::Int).collect());
            let dims = constants::insert_before(graph, before, &dims)
                .ok_or_else(|| Diagnostic::internal("numbers are not constant"))?;
            Ok(put(graph, before, "aten::permute", &[part, dims], &ty))
        }
        _ => Err(Diagnostic::internal(format!("a write to a view by {kind}"))),
    }
}

/// The op that gives a tensor with the part replaced that an op gives a view of, if there is one.
fn scatter(graph: &Graph, view: OpId) -> Option<&'static str> {
    match graph.kind(view).as_str() {
        "aten::select" => Some("aten::select_scatter"),
        "aten::slice" => Some("aten::slice_scatter"),
        "aten::diagonal" => Some("aten::diagonal_scatter"),
        _ => None,
    }
}

/// The order of dimensions that takes another back.
fn inverse(dims: &[i64]) -> Vec<i64> {
    let rank = dims.len() as i64;
    let place = |n: i64| dims.iter().position(|dim| dim.rem_euclid(rank.max(1)) == n);
    (0..rank).map(|n| place(n).unwrap_or_default() as i64).collect()
}

/// A type without what it says of strides, which a new tensor need not have.
fn detached_strides(ty: &Type) -> Type {
    let Some(tensor) = ty.as_tensor() else { return ty.clone() };
    let tensor = crate::ir::TensorType { strides: None, requires_grad: None, ..tensor.clone() };
    Type::new(crate::ir::TypeKind::Tensor(tensor))
}
