//! Objects that are written become variables: what branches write to they give, what loops write to they carry. Shared by
//! `functionalize-containers` and `functionalize-tensors`; no pass itself. It does not know what the objects are.

use crate::diag::Result;
use crate::ir::{BlockId, Graph, OpId, Symbol, Type, ValueId};
use hashbrown::HashMap;
use indexmap::IndexSet;

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

/// Makes an op with one result in front of another, in whose place in the source it stands.
pub(super) fn put(graph: &mut Graph, before: OpId, kind: &str, operands: &[ValueId], ty: &Type) -> ValueId {
    let op = graph.create(Symbol::new(kind), operands, std::slice::from_ref(ty));
    graph.set_location_id(op, graph.location_id(before));
    graph.insert_before(op, before);
    graph.results(op)[0]
}
