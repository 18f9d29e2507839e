//! Objects that are written become variables: what branches write to they give, what loops write to they carry. Shared by
//! `functionalize-containers` and `functionalize-tensors`; no pass itself. It does not know what the objects are. Also which objects
//! only the graph has, and whether an object is given up under one name for another.

use super::Context;
use crate::diag::Result;
use crate::ir::{BlockId, Graph, OpId, Symbol, Type, ValueDef, ValueId};
use hashbrown::{HashMap, HashSet};
use indexmap::IndexSet;

const IF: &str = "prim::If";
const LOOP: &str = "prim::Loop";

/// An object, named by the value that it is made as, or one of its items that is a variable of its own.
pub(super) type Variable = (ValueId, Option<usize>);

/// The variables that ops with blocks write to.
#[derive(Default)]
pub(super) struct Written(HashMap<OpId, IndexSet<Variable>>);

impl Written {
    /// Notes that the ops around a write, up to where the object is made, write to it.
    pub(super) fn note(&mut self, graph: &Graph, op: OpId, (made, item): Variable) {
        let home = graph.def_block(made);
        let mut block = graph.parent(op);
        while block != home
            && let Some(around) = block.and_then(|block| graph.owner(block))
        {
            self.0.entry(around).or_default().insert((made, item));
            block = graph.parent(around);
        }
    }
}

/// Objects that become variables.
pub(super) trait Objects {
    /// What is known of an object at a place.
    type State: Clone;

    /// What is known of each object where the walk is.
    fn states(&mut self) -> &mut HashMap<ValueId, Self::State>;

    /// The value of a variable, for an op in front of which it may be made.
    fn value(&mut self, graph: &mut Graph, before: OpId, variable: Variable) -> Result<ValueId>;

    /// Gives a variable another value.
    fn set(&mut self, variable: Variable, value: ValueId);

    /// The type of a variable.
    fn type_of(&self, graph: &Graph, variable: Variable) -> Type;

    /// Objects that are named at the start of a block.
    fn enter(&mut self, _graph: &Graph, _block: BlockId) {}

    /// Lets an op use and make what objects are by then, or does what it does; says whether it is to go.
    fn visit(&mut self, graph: &mut Graph, op: OpId) -> Result<bool>;
}

/// Goes through a block and the blocks in it.
pub(super) fn walk<O: Objects>(
    graph: &mut Graph,
    objects: &mut O,
    written: &mut Written,
    block: BlockId,
) -> Result<()> {
    objects.enter(graph, block);
    for op in graph.block_ops(block).collect::<Vec<_>>() {
        if !graph.nested_blocks(op).is_empty() {
            stacker::maybe_grow(64 << 10, 1 << 20, || around(graph, objects, written, op))?;
        }
        if objects.visit(graph, op)? {
            graph.erase(op);
        }
    }
    objects.visit(graph, graph.terminator(block))?;
    Ok(())
}

/// Lets a branch give, or a loop carry, what it writes to.
fn around<O: Objects>(graph: &mut Graph, objects: &mut O, written: &mut Written, op: OpId) -> Result<()> {
    let variables: Vec<Variable> = written.0.remove(&op).into_iter().flatten().collect();
    let mut before = Vec::new();
    for (made, _) in &variables {
        before.extend(objects.states().get(made).map(|state| (*made, state.clone())));
    }
    let is_loop = graph.kind(op) == LOOP;
    for block in graph.nested_blocks(op).to_vec() {
        for variable in variables.iter().filter(|_| is_loop) {
            let start = objects.value(graph, op, *variable)?;
            let ty = objects.type_of(graph, *variable);
            graph.add_operand(op, start);
            let param = graph.add_param(block, ty);
            objects.set(*variable, param);
        }
        walk(graph, objects, written, block)?;
        for variable in &variables {
            let left = objects.value(graph, graph.terminator(block), *variable)?;
            graph.add_block_result(block, left);
        }
        objects.states().extend(before.iter().cloned());
    }
    for variable in variables {
        let ty = objects.type_of(graph, variable);
        let result = graph.add_result(op, ty);
        objects.set(variable, result);
    }
    Ok(())
}

/// Whether objects are made in the graph, so that nothing else has them, as far as it was asked.
pub(super) type Fresh = HashMap<ValueId, bool>;

/// Whether an object is made in the graph, so that nothing else has it; or each way of a branch gives such an object, or what a loop
/// begins with and what each iteration leaves is one, and it has no other name by then.
pub(super) fn is_fresh(
    graph: &Graph,
    known: &mut Fresh,
    made: ValueId,
    makes: &dyn Fn(OpId, ValueId) -> bool,
    is_moved: &dyn Fn(ValueId, OpId) -> bool,
) -> bool {
    let mut seen = HashSet::new();
    let mut work = vec![made];
    while let Some(value) = work.pop() {
        match known.get(&value) {
            Some(true) => continue,
            Some(false) => return refuse(known, made),
            None if !seen.insert(value) => continue,
            None => {}
        }
        let Some(from) = origins(graph, value) else {
            if !graph.def_op(value).is_some_and(|maker| makes(maker, value)) {
                return refuse(known, made);
            }
            continue;
        };
        for (origin, at) in from {
            // Where a way has none to give, it is never read.
            if graph.def_op(origin).is_some_and(|maker| graph.kind(maker) == "prim::Uninitialized") {
                continue;
            }
            if !is_moved(origin, at) {
                return refuse(known, made);
            }
            work.push(origin);
        }
    }
    // All that it comes from is as fresh.
    known.extend(seen.into_iter().map(|value| (value, true)));
    true
}

fn refuse(known: &mut Fresh, made: ValueId) -> bool {
    known.insert(made, false);
    false
}

/// What a branch or loop gives or carries under a name, and the ops that give it.
fn origins(graph: &Graph, value: ValueId) -> Option<Vec<(ValueId, OpId)>> {
    let (around, n) = match graph.def(value) {
        ValueDef::Result(op, n) => (op, n),
        ValueDef::Param(block, n) => (graph.owner(block)?, n.checked_sub(1)?),
    };
    let at_end = |block: &BlockId, n: usize| {
        let end = graph.terminator(*block);
        Some((*graph.block_results(*block).get(n)?, end))
    };
    let blocks = graph.nested_blocks(around);
    match graph.kind(around).as_str() {
        IF => blocks.iter().map(|block| at_end(block, n)).collect(),
        LOOP => Some(vec![(graph.operand(around, n + 2)?, around), at_end(blocks.first()?, n + 1)?]),
        _ => None,
    }
}

/// Whether an op gives an object to a loop, or ends a branch or an iteration of a loop and gives it there; once.
pub(super) fn is_passed_on(graph: &Graph, made: ValueId, op: OpId) -> bool {
    let is_join = match graph.terminated_block(op) {
        Some(block) => {
            graph.owner(block).is_some_and(|around| matches!(graph.kind(around).as_str(), IF | LOOP))
        }
        None => graph.kind(op) == LOOP,
    };
    is_join && graph.operands(op).iter().filter(|value| **value == made).count() == 1
}

/// Whether ops stand before another one, or in other ways of branches, so that they do not come after it while a value of the
/// block lives. Only branches may stand around it up to that block; and `loops` that hold none of the ops.
pub(super) fn is_past(graph: &Graph, op: OpId, home: BlockId, others: &[OpId], loops: bool) -> bool {
    let mut at = op;
    let mut block = graph.terminated_block(op).or_else(|| graph.parent(op));
    loop {
        let Some(here) = block else { return false };
        let is_earlier = |there: OpId| match there == at {
            true => at != op,
            false => {
                let is_end = |op: OpId| graph.terminated_block(op).is_some();
                is_end(at) || !is_end(there) && graph.is_before(there, at)
            }
        };
        if !others.iter().all(|other| graph.ancestor_in(*other, here).is_none_or(is_earlier)) {
            return false;
        }
        if home == here {
            return true;
        }
        let Some(around) = graph.owner(here) else { return false };
        let is_passed = match graph.kind(around).as_str() {
            IF => true,
            LOOP => loops && others.iter().all(|other| graph.ancestor_in(*other, here).is_none()),
            _ => false,
        };
        if !is_passed {
            return false;
        }
        (at, block) = (around, graph.parent(around));
    }
}

/// Of values of types that are wanted: what an op gives that is its operand is called by the name of that; what a branch or loop gives that is the same whichever way
/// is taken is given no more.
pub(super) fn give_one_name(
    graph: &mut Graph,
    context: &Context<'_>,
    is_wanted: &dyn Fn(&Type) -> bool,
    is_same: &dyn Fn(&Graph, OpId) -> bool,
) -> bool {
    let mut changed = false;
    for op in inner_first(graph) {
        for n in (0..graph.result_count(op)).rev() {
            let Some(result) = graph.result(op, n).filter(|result| is_wanted(graph.ty(*result))) else {
                continue;
            };
            let same = match graph.kind(op).as_str() {
                IF => given_by_all(graph, op, n),
                LOOP => carried_alone(graph, op, n),
                _ => graph.operand(op, 0).filter(|_| graph.has_uses(result) && is_same(graph, op)),
            };
            let Some(same) = same else { continue };
            if !context.step(|| format!("calls what {} gives by one name", graph.op_line(op).trim())) {
                return changed;
            }
            graph.replace_all_uses(result, same);
            drop_given(graph, op, n, same);
            changed = true;
        }
    }
    changed
}

/// Takes away what a branch or loop gives, for which there is another name.
fn drop_given(graph: &mut Graph, op: OpId, n: usize, same: ValueId) {
    match graph.kind(op).as_str() {
        IF => {
            for block in graph.nested_blocks(op).to_vec() {
                graph.remove_block_result(block, n);
            }
        }
        LOOP => {
            for body in graph.nested_blocks(op).to_vec() {
                graph.remove_block_result(body, n + 1);
                if let Some(param) = graph.params(body).get(n + 1).copied() {
                    graph.replace_all_uses(param, same);
                    graph.remove_param(body, n + 1);
                }
            }
            graph.remove_operand(op, n + 2);
        }
        _ => return,
    }
    graph.remove_result(op, n);
}

/// All ops in program order, but those of nested blocks before the op around them: what an iteration leaves may be what a branch
/// in it gives.
fn inner_first(graph: &Graph) -> Vec<OpId> {
    let mut ordered = Vec::new();
    let mut open: Vec<OpId> = Vec::new();
    for op in graph.all_ops() {
        let around = graph.parent(op).and_then(|block| graph.owner(block));
        while let Some(last) = open.pop_if(|last| Some(*last) != around) {
            ordered.push(last);
        }
        match graph.nested_blocks(op).is_empty() {
            true => ordered.push(op),
            false => open.push(op),
        }
    }
    ordered.extend(open.into_iter().rev());
    ordered
}

/// The value around a branch that each way gives, but for those that have none to give and whose result is never read.
fn given_by_all(graph: &Graph, op: OpId, n: usize) -> Option<ValueId> {
    let blocks = graph.nested_blocks(op);
    let is_never = |value: &ValueId| {
        graph.def_op(*value).is_some_and(|maker| graph.kind(maker) == "prim::Uninitialized")
    };
    let given =
        blocks.iter().map(|block| graph.block_results(*block).get(n).copied()).collect::<Option<Vec<_>>>()?;
    let mut real = given.iter().filter(|value| !is_never(value));
    let first = *real.next()?;
    let home = graph.def_block(first)?;
    (real.all(|value| *value == first) && !blocks.iter().any(|block| graph.is_within(home, *block)))
        .then_some(first)
}

/// The initial value of a loop-carried value that each iteration passes on unchanged.
fn carried_alone(graph: &Graph, op: OpId, n: usize) -> Option<ValueId> {
    let body = *graph.nested_blocks(op).first()?;
    let left = *graph.block_results(body).get(n + 1)?;
    let init = graph.operand(op, n + 2)?;
    (graph.params(body).get(n + 1) == Some(&left) || left == init).then_some(init)
}

/// Makes an op with one result in front of another, in whose place in the source it stands.
pub(super) fn put(graph: &mut Graph, before: OpId, kind: &str, operands: &[ValueId], ty: &Type) -> ValueId {
    let op = graph.create(Symbol::new(kind), operands, std::slice::from_ref(ty));
    graph.set_location_id(op, graph.location_id(before));
    graph.insert_before(op, before);
    graph.results(op)[0]
}
