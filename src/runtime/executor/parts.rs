//! Arguments of a call that records gradients, taken apart: tuples, and lists that are only read, that hold tensors that require
//! grad. What they are made of are operands of the call, so that each may have a gradient. It does not know how the graph is
//! differentiated.

use crate::analysis::facts;
use crate::dialects::Registry;
use crate::dialects::prim::list::UNPACK;
use crate::ir::{Graph, OpId, Symbol, Type, TypeKind, ValueId};
use crate::runtime::spec::{self, requires_grad};
use crate::value::Value;

/// Containers nested deeper stay whole.
const MAX_DEPTH: usize = 16;

/// What becomes of an argument.
enum Part {
    /// It is an operand.
    Whole,
    /// Its items are visited one by one.
    Items(Vec<Part>),
}

/// How the arguments of calls become operands.
pub(super) struct Parts(Vec<Part>);

impl Parts {
    /// Lets a graph take what tuples and lists are made of that hold tensors that require grad; also gives that of the call's
    /// arguments.
    pub(super) fn take_apart(
        graph: &mut Graph,
        registry: &Registry,
        arguments: &[Value],
    ) -> (Parts, Vec<Value>) {
        let mut parts = Vec::new();
        let mut at = 0;
        for value in arguments {
            let part = of_argument(graph, registry, value, at);
            at += part.len();
            parts.push(part);
        }
        let parts = Parts(parts);
        let operands = parts.operands(arguments.to_vec());
        (parts, operands)
    }

    /// The operands of a call of these arguments, which are like those that were taken apart.
    pub(super) fn operands(&self, arguments: Vec<Value>) -> Vec<Value> {
        if self.0.iter().all(|part| matches!(part, Part::Whole)) {
            return arguments;
        }
        let mut operands = Vec::new();
        for (part, value) in self.0.iter().zip(arguments) {
            part.spread(value, &mut operands);
        }
        operands
    }
}

impl Part {
    /// How many operands it is.
    fn len(&self) -> usize {
        match self {
            Part::Whole => 1,
            Part::Items(parts) => parts.iter().map(Part::len).sum(),
        }
    }

    fn spread(&self, value: Value, operands: &mut Vec<Value>) {
        let Part::Items(parts) = self else { return operands.push(value) };
        for (part, item) in parts.iter().zip(items(&value).unwrap_or_default()) {
            part.spread(item, operands);
        }
    }
}

fn items(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Tuple(tuple) => Some(tuple.items().to_vec()),
        Value::List(list) => Some(list.items().to_vec()),
        _ => None,
    }
}

/// Takes the argument apart that is the input with that number.
fn of_argument(graph: &mut Graph, registry: &Registry, value: &Value, at: usize) -> Part {
    let is_tensor = matches!(value, Value::Tensor(_));
    let Some(input) = graph.inputs().get(at).copied().filter(|_| !is_tensor) else { return Part::Whole };
    if !requires_grad(value) || !can_be_taken_apart(graph, registry, input, value) {
        return Part::Whole;
    }
    let ty = graph.ty(input).without_none();
    let root = graph.root();
    let mut next = at + 1;
    let (made, part) = take(graph, value, &ty, &mut next, 0);
    // What is made stands in front of all, in its order.
    for op in made.1.into_iter().rev() {
        graph.prepend(root, op);
    }
    graph.replace_all_uses(input, made.0);
    graph.remove_param(root, at);
    part
}

/// Makes a value of new inputs: the value and the ops that make it.
fn take(
    graph: &mut Graph,
    value: &Value,
    ty: &Type,
    next: &mut usize,
    depth: usize,
) -> ((ValueId, Vec<OpId>), Part) {
    let types: Option<Vec<Type>> = match (ty.kind(), value) {
        (TypeKind::Tuple(types, _), Value::Tuple(tuple)) if types.len() == tuple.items().len() => {
            Some(types.to_vec())
        }
        (TypeKind::List(element), Value::List(list)) => {
            Some(list.items().iter().map(|_| element.clone()).collect())
        }
        _ => None,
    };
    let apart = types.zip(items(value)).filter(|_| depth < MAX_DEPTH && requires_grad(value));
    let Some((types, items)) = apart else {
        let input = graph.insert_param(graph.root(), *next, spec::refined(ty, value));
        *next += 1;
        return ((input, Vec::new()), Part::Whole);
    };
    let (mut operands, mut ops, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for (ty, item) in types.iter().zip(&items) {
        let ((operand, makers), part) = take(graph, item, ty, next, depth + 1);
        operands.push(operand);
        ops.extend(makers);
        parts.push(part);
    }
    let kind = if matches!(value, Value::List(_)) { "prim::ListConstruct" } else { "prim::TupleConstruct" };
    let op = graph.create(Symbol::new(kind), &operands, std::slice::from_ref(ty));
    let made = graph.results(op)[0];
    ops.push(op);
    ((made, ops), Part::Items(parts))
}

/// Whether another value of the same items does as well: of tuples; of lists that the graph only reads.
fn can_be_taken_apart(graph: &Graph, registry: &Registry, input: ValueId, value: &Value) -> bool {
    match value {
        Value::Tuple(tuple) => tuple.items().iter().all(holds_no_lists),
        Value::List(list) => list.items().iter().all(holds_no_lists) && is_only_read(graph, registry, input),
        _ => false,
    }
}

fn holds_no_lists(value: &Value) -> bool {
    match value {
        Value::Tuple(tuple) => tuple.items().iter().all(holds_no_lists),
        Value::Tensor(_) => true,
        other => !requires_grad(other),
    }
}

/// Whether ops only read a list, by their schemas: none writes to it, keeps it or gives it on.
fn is_only_read(graph: &Graph, registry: &Registry, list: ValueId) -> bool {
    graph.uses(list).all(|used| {
        if graph.terminated_block(used.op).is_some() || !graph.nested_blocks(used.op).is_empty() {
            return false;
        }
        if graph.kind(used.op) == UNPACK {
            return true;
        }
        let row = facts(registry, graph, used.op).op;
        let schema = row.as_ref().and_then(|row| row.marked_schema().ok());
        let Some(argument) = schema.and_then(|schema| schema.arguments.get(used.index)) else { return false };
        let gives_lists = graph.results(used.op).iter().any(|result| !graph.ty(*result).is_tensor());
        argument.alias.as_ref().is_none_or(|alias| !alias.is_write && !alias.wildcard_after && !gives_lists)
    })
}
