//! Makes a version of a backward graph for gradients that are defined, or not, as profiles saw them, behind a check that they are;
//! other calls run the graph as it was, as a `prim::FallbackGraph`. In the version sums with undefined gradients go, sums of defined
//! ones become `aten::add`, conditions on what is known are taken out, and so are sums to sizes that were always None.
//!
//! Graphs whose inputs carry no profiles are specialized in place where their types say of a gradient that it is undefined or
//! not: PyTorch's simple executor did that, and its types are facts. Places and order, and so the text, are PyTorch's.

use super::{Context, type_guard};
use crate::diag::Result;
use crate::dialects::prim::profiling::{
    AUTOGRAD_ADD, AUTOGRAD_ALL, AUTOGRAD_ANY, AUTOGRAD_NONE, AUTOGRAD_ZERO, BAILOUT, PROFILE,
    PROFILE_OPTIONAL,
};
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, TypeKind, ValueId};
use hashbrown::{HashMap, HashSet};

/// The op that sums a gradient to the size of what it is the gradient of.
const SUM_TO_SIZE: &str = "aten::_grad_sum_to_size";

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let root = graph.root();
    let is_backward =
        graph.block_ops(root).any(|op| graph.kind(op) == AUTOGRAD_ANY || graph.kind(op) == AUTOGRAD_ADD);
    if !is_backward
        || !context.step(|| "specializes a backward graph for gradients that are defined".to_string())
    {
        return Ok(false);
    }
    let mut states = States::default();
    if graph.block_ops(root).any(|op| is_profile(graph, op)) {
        let Some(version) = version(graph, &mut states) else { return Ok(false) };
        specialize(graph, version, &mut states);
        context.count("backward graphs with a version", 1);
        return Ok(true);
    }
    states.of_types(graph);
    Ok(specialize(graph, root, &mut states))
}

fn is_profile(graph: &Graph, op: OpId) -> bool {
    graph.kind(op) == PROFILE || graph.kind(op) == PROFILE_OPTIONAL
}

/// Whether a gradient is defined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    Nonzero,
    Zero,
    #[default]
    Unknown,
}

#[derive(Default)]
struct States {
    known: HashMap<ValueId, State>,
    /// Inputs that are None wherever the version runs.
    none: HashSet<ValueId>,
}

impl States {
    fn of(&self, value: ValueId) -> State {
        self.known.get(&value).copied().unwrap_or_default()
    }

    fn set(&mut self, value: ValueId, state: State) {
        self.known.insert(value, state);
    }

    fn all(&self, values: &[ValueId], state: State) -> bool {
        values.iter().all(|value| self.of(*value) == state)
    }

    /// What types say of the inputs of a graph. Lists of tensors count as defined.
    fn of_types(&mut self, graph: &Graph) {
        for input in graph.inputs() {
            let state = match graph.ty(*input).kind() {
                TypeKind::Tensor(known) => state_of(known.undefined),
                TypeKind::List(element) if element.is_tensor() => State::Nonzero,
                _ => State::Unknown,
            };
            self.set(*input, state);
        }
    }
}

fn state_of(undefined: Option<bool>) -> State {
    match undefined {
        Some(true) => State::Zero,
        Some(false) => State::Nonzero,
        None => State::Unknown,
    }
}

/// What the profiles of a graph's inputs saw.
#[derive(Default)]
struct Seen {
    none: Vec<ValueId>,
    nonzero: Vec<ValueId>,
    zero: Vec<ValueId>,
}

fn seen(graph: &Graph) -> Seen {
    let mut seen = Seen::default();
    for input in graph.inputs().iter().copied() {
        let users: Vec<OpId> =
            graph.uses(input).map(|u| u.op).filter(|op| graph.terminated_block(*op).is_none()).collect();
        if let Some(count) = users.iter().find(|op| graph.kind(**op) == PROFILE_OPTIONAL) {
            let [none, present] = counts(graph, *count);
            if present == 0 && none > 0 {
                seen.none.push(input);
            }
            continue;
        }
        let first = users.first().filter(|op| graph.kind(**op) == PROFILE);
        let ty = first.and_then(|op| graph.attr(*op, "profiled_type")).and_then(Attr::as_type);
        let Some(known) = ty.and_then(Type::as_tensor) else { continue };
        match known.undefined {
            Some(true) => seen.zero.push(input),
            // A profile that saw no tensor knows nothing.
            _ if known.dtype.is_some() || known.device.is_some() => seen.nonzero.push(input),
            _ => {}
        }
    }
    seen
}

/// How often a value was None, and how often not.
fn counts(graph: &Graph, op: OpId) -> [i64; 2] {
    let Some(Attr::Dict(entries)) = graph.attr(op, "none_counts") else { return [0, 0] };
    ["num_none", "num_present"].map(|name| {
        let entry = entries.iter().find(|(key, _)| key.as_str() == Some(name));
        entry.and_then(|(_, n)| n.as_int()).unwrap_or(0)
    })
}

/// Makes two versions of a graph's work and a check that chooses; gives the block of the one to be specialized. None, and nothing
/// changed, where no input is known.
fn version(graph: &mut Graph, states: &mut States) -> Option<BlockId> {
    let seen = seen(graph);
    if seen.zero.is_empty() && seen.nonzero.is_empty() {
        return None;
    }
    let root = graph.root();
    let former: Vec<OpId> = graph.block_ops(root).collect();
    let outputs = graph.outputs().to_vec();
    let types: Vec<Type> = outputs.iter().map(|value| graph.ty(*value).clone()).collect();
    let choice = graph.create(Symbol::new("prim::If"), &[], &types);
    let (special, general) = (graph.add_block(choice), graph.add_block(choice));
    for block in [special, general] {
        let mut map = HashMap::new();
        for op in &former {
            if graph.operands(*op).is_empty() && graph.kind(*op) == PROFILE {
                continue;
            }
            let copy = graph.clone_op(None, *op, &mut map);
            graph.append(block, copy);
        }
        let results = crate::ir::mapped(&outputs, &map);
        graph.set_block_results(block, &results);
    }
    fall_back(graph, general);
    let anchor = former.first().copied().unwrap_or_else(|| graph.terminator(root));
    let chosen = checks(graph, &seen, anchor);
    graph.set_operands(choice, &[chosen]);
    graph.insert_before(choice, anchor);
    let results = graph.results(choice);
    graph.set_block_results(root, &results);
    for op in former.into_iter().rev() {
        graph.erase(op);
    }
    states.none.extend(seen.none);
    seen.zero.into_iter().for_each(|value| states.set(value, State::Zero));
    seen.nonzero.into_iter().for_each(|value| states.set(value, State::Nonzero));
    Some(special)
}

/// Makes the graph as it was, without profiles, of a block.
fn fall_back(graph: &mut Graph, block: BlockId) {
    let mut work = vec![block];
    while let Some(block) = work.pop() {
        for op in graph.block_ops(block).collect::<Vec<_>>() {
            work.extend_from_slice(graph.nested_blocks(op));
            match graph.operand(op, 0).filter(|_| is_profile(graph, op)) {
                Some(value) => graph.replace_op(op, &[value]),
                None if is_profile(graph, op) => graph.erase(op),
                None => {}
            }
        }
    }
    let (results, inputs) = (graph.block_results(block).to_vec(), graph.inputs().to_vec());
    type_guard::fall_back(graph, block, &results, &inputs);
}

/// Whether all inputs are as they were seen.
fn checks(graph: &mut Graph, seen: &Seen, anchor: OpId) -> ValueId {
    let mut emit = |kind: &str, operands: &[ValueId], ty: Type| {
        let op = graph.create(Symbol::new(kind), operands, &[ty]);
        graph.insert_before(op, anchor);
        graph.results(op)[0]
    };
    let none = emit("prim::Constant", &[], Type::none());
    let mut checks: Vec<ValueId> =
        seen.none.iter().map(|value| emit("aten::__is__", &[*value, none], Type::bool())).collect();
    if !seen.nonzero.is_empty() {
        checks.push(emit(AUTOGRAD_ALL, &seen.nonzero, Type::bool()));
    }
    if !seen.zero.is_empty() {
        checks.push(emit(AUTOGRAD_NONE, &seen.zero, Type::bool()));
    }
    let list = emit("prim::ListConstruct", &checks, Type::list(Type::bool()));
    emit("aten::all", &[list], Type::bool())
}

/// Specializes the ops of a block. Whether anything changed.
fn specialize(graph: &mut Graph, block: BlockId, states: &mut States) -> bool {
    let mut changed = false;
    let mut at = graph.first_op(block);
    while let Some(op) = at {
        at = graph.next(op);
        changed |= match graph.kind(op).as_str() {
            AUTOGRAD_ADD => sum(graph, op, states),
            "prim::If" => condition(graph, op, states),
            SUM_TO_SIZE => sum_to_size(graph, op, states),
            _ => {
                note(graph, op, states);
                false
            }
        };
    }
    changed
}

/// Notes what is known of the results of an op that stays.
fn note(graph: &Graph, op: OpId, states: &mut States) {
    let kind = graph.kind(op);
    for result in graph.results(op) {
        let state = match graph.operand(op, 0) {
            Some(value) if kind == PROFILE => states.of(value),
            Some(value) if kind == PROFILE_OPTIONAL => {
                if states.none.contains(&value) {
                    states.none.insert(result);
                }
                State::Unknown
            }
            _ if kind == AUTOGRAD_ZERO => State::Zero,
            _ if kind == BAILOUT => state_of(graph.ty(result).as_tensor().and_then(|known| known.undefined)),
            _ => State::Unknown,
        };
        states.set(result, state);
    }
}

fn sum(graph: &mut Graph, op: OpId, states: &mut States) -> bool {
    let (&[a, b], Some(result)) = (graph.operands(op), graph.result(op, 0)) else { return false };
    match (states.of(a), states.of(b)) {
        (State::Zero, _) => graph.replace_op(op, &[b]),
        (_, State::Zero) => graph.replace_op(op, &[a]),
        (State::Nonzero, State::Nonzero) => {
            let one = graph.create(Symbol::new("prim::Constant"), &[], &[Type::int()]);
            graph.set_attr(one, "value", Attr::Int(1));
            graph.insert_before(one, op);
            let operands = [a, b, graph.results(one)[0]];
            let ty = graph.ty(result).clone();
            let plain = graph.create(Symbol::new("aten::add"), &operands, &[ty]);
            graph.set_location_id(plain, graph.location_id(op));
            graph.insert_before(plain, op);
            let results = graph.results(plain);
            states.set(results[0], State::Nonzero);
            graph.replace_op(op, &results);
        }
        _ => {
            states.set(result, State::Unknown);
            return false;
        }
    }
    true
}

/// A condition on whether gradients are defined: where all are its work stands in its place, where none is its results are not
/// defined either.
fn condition(graph: &mut Graph, op: OpId, states: &mut States) -> bool {
    let asks = graph
        .operand(op, 0)
        .and_then(|value| graph.def_op(value))
        .filter(|def| graph.kind(*def) == AUTOGRAD_ANY);
    let asked = asks.map(|def| graph.operands(def).to_vec());
    let results = graph.results(op);
    match asked {
        Some(asked) if states.all(&asked, State::Zero) => {
            let zero = graph.create(Symbol::new(AUTOGRAD_ZERO), &[], &[Type::tensor()]);
            graph.insert_after(zero, op);
            let zero = graph.results(zero)[0];
            states.set(zero, State::Zero);
            graph.replace_op(op, &vec![zero; results.len()]);
            true
        }
        Some(asked) if states.all(&asked, State::Nonzero) => {
            let Some(body) = graph.nested_blocks(op).first().copied() else { return false };
            specialize(graph, body, states);
            for inner in graph.block_ops(body).collect::<Vec<_>>() {
                for value in graph.results(inner) {
                    states.set(value, State::Nonzero);
                }
            }
            let given = graph.block_results(body).to_vec();
            graph.splice_before(body, op);
            graph.set_block_results(body, &[]);
            graph.replace_op(op, &given);
            true
        }
        _ => {
            results.into_iter().for_each(|value| states.set(value, State::Unknown));
            false
        }
    }
}

/// A sum to a size that was always None goes; another asks for the size itself, which need not be counted any more.
fn sum_to_size(graph: &mut Graph, op: OpId, states: &mut States) -> bool {
    let (&[value, size], Some(result)) = (graph.operands(op), graph.result(op, 0)) else { return false };
    if states.none.contains(&size) {
        graph.replace_op(op, &[value]);
        return true;
    }
    states.set(result, State::Unknown);
    let counted = graph.def_op(size).filter(|def| graph.kind(*def) == PROFILE_OPTIONAL);
    let Some(plain) = counted.and_then(|def| graph.operand(def, 0)) else { return false };
    graph.set_operand(op, 1, plain);
    true
}
