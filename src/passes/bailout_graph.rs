//! What is left of a graph from a guard on, as a graph of its own: the rest of the guard's block, the rest of what the block stands in
//! (further iterations of a loop, what follows a condition), and so on to the end. No guard is in it, and nothing that was known
//! of types. No pass itself; `insert-bailouts` asks what a rest takes, the runtime makes it when a guard misses.

use crate::diag::{Diagnostic, Result};
use crate::dialects::prim::profiling::{BAILOUT, GUARD};
use crate::ir::unify::without_refinements;
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, ValueId, mapped};
use hashbrown::{HashMap, HashSet};

/// The rest of a template from its bailout of a number: a graph that takes what the bailout takes, and gives what the template gives.
pub fn bailout_rest(template: &Graph, index: i64) -> Result<Graph> {
    let is_it = |op: &OpId| {
        template.kind(*op) == BAILOUT && template.attr(*op, "index").and_then(Attr::as_int) == Some(index)
    };
    let op = template
        .all_ops()
        .into_iter()
        .find(is_it)
        .ok_or_else(|| Diagnostic::verify(format!("the template of a bailout has no bailout {index}")))?;
    let mut plain = template.clone();
    pass_on(&mut plain, Some(op));
    let takes = plain.operands(op).to_vec();
    let (rest, captured) = Continuation::new(&plain, &takes).build(op)?;
    if captured.len() > takes.len() {
        let value = plain.display_name(captured[takes.len()]);
        return Err(Diagnostic::verify(format!(
            "bailout {index} does not take %{value}, which is used after it"
        )));
    }
    Ok(rest)
}

/// The values that the rest from a guard on takes: what is guarded, and what else is alive there.
pub(super) fn live_at(graph: &Graph, guard: OpId) -> Result<Vec<ValueId>> {
    let guarded: Vec<ValueId> = graph.operands(guard).iter().take(1).copied().collect();
    Continuation::new(graph, &guarded).build(guard).map(|(_, captured)| captured)
}

/// Whether the rest of a graph can be made from an op on: it stands in no block but those of conditions and loops.
pub(super) fn can_be_left(graph: &Graph, op: OpId) -> bool {
    let mut at = op;
    while let Some(owner) = graph.parent(at).and_then(|block| graph.owner(block)) {
        if graph.kind(owner) != "prim::If" && graph.kind(owner) != "prim::Loop" {
            return false;
        }
        at = owner;
    }
    true
}

/// Lets users of guards and bailouts, but for one, have what these are given.
fn pass_on(graph: &mut Graph, but: Option<OpId>) {
    for op in graph.all_ops() {
        if (graph.kind(op) == GUARD || graph.kind(op) == BAILOUT)
            && Some(op) != but
            && let Some(value) = graph.operand(op, 0)
        {
            graph.replace_op(op, &[value]);
        }
    }
}

struct Continuation<'a> {
    old: &'a Graph,
    new: Graph,
    map: HashMap<ValueId, ValueId>,
    /// Values of the old graph that inputs of the new one stand for.
    captured: Vec<ValueId>,
}

impl<'a> Continuation<'a> {
    fn new(old: &'a Graph, takes: &[ValueId]) -> Continuation<'a> {
        let mut rest = Continuation { old, new: Graph::new(), map: HashMap::new(), captured: Vec::new() };
        for value in takes {
            rest.capture(*value);
        }
        rest
    }

    fn build(mut self, guard: OpId) -> Result<(Graph, Vec<ValueId>)> {
        let old = self.old;
        if let (Some(value), Some(result)) = (old.operand(guard, 0), old.result(guard, 0)) {
            let given = self.of(value);
            self.map.insert(result, given);
        }
        let mut block =
            old.parent(guard).ok_or_else(|| Diagnostic::internal("a guard outside of a block"))?;
        let mut at = old.next(guard);
        loop {
            while let Some(op) = at {
                self.copy(op);
                at = old.next(op);
            }
            let Some(owner) = old.owner(block) else { break };
            match old.kind(owner).as_str() {
                "prim::If" => self.leave_branch(owner, block),
                "prim::Loop" => self.go_on(owner, block)?,
                other => {
                    return Err(Diagnostic::unsupported(format!(
                        "a guard in a block of {other} has no rest"
                    )));
                }
            }
            block = old.parent(owner).ok_or_else(|| Diagnostic::internal("a block outside of a graph"))?;
            at = old.next(owner);
        }
        let outputs: Vec<ValueId> =
            old.block_results(block).to_vec().into_iter().map(|value| self.of(value)).collect();
        let root = self.new.root();
        self.new.set_block_results(root, &outputs);
        pass_on(&mut self.new, None);
        self.new.map_types(&mut |ty: &Type| without_refinements(ty));
        Ok((self.new, self.captured))
    }

    /// An input that stands for a value.
    fn capture(&mut self, value: ValueId) -> ValueId {
        let input = self.new.add_input(self.old.ty(value).clone());
        if let Some(name) = self.old.name(value) {
            self.new.set_unique_name(input, name);
        }
        self.captured.push(value);
        self.map.insert(value, input);
        input
    }

    /// What stands for a value of the old graph. Constants are made again, all else is an input.
    fn of(&mut self, value: ValueId) -> ValueId {
        if let Some(known) = self.map.get(&value) {
            return *known;
        }
        let constant = self.old.def_op(value).filter(|def| self.old.kind(*def) == "prim::Constant");
        let Some(constant) = constant else { return self.capture(value) };
        let copy = self.new.clone_op(Some(self.old), constant, &mut self.map);
        let root = self.new.root();
        self.new.append(root, copy);
        self.map.get(&value).copied().unwrap_or(value)
    }

    /// Appends a copy of an op.
    fn copy(&mut self, op: OpId) {
        for value in outer_values(self.old, op, Uses::All) {
            self.of(value);
        }
        let copy = self.new.clone_op(Some(self.old), op, &mut self.map);
        let root = self.new.root();
        self.new.append(root, copy);
    }

    /// After the end of a branch its results are those of the condition.
    fn leave_branch(&mut self, owner: OpId, block: BlockId) {
        for (result, value) in self.old.results(owner).into_iter().zip(self.old.block_results(block).to_vec())
        {
            let given = self.of(value);
            self.map.insert(result, given);
        }
    }

    /// After the end of an iteration the loop continues with the remaining ones, which count on from the iteration that was left.
    fn go_on(&mut self, owner: OpId, body: BlockId) -> Result<()> {
        let old = self.old;
        let broken = || Diagnostic::verify("the parts of a prim::Loop do not match in number");
        let iteration = *old.params(body).first().ok_or_else(broken)?;
        let most = old.operand(owner, 0).ok_or_else(broken)?;
        let (iteration, most) = (self.of(iteration), self.of(most));
        let root = self.new.root();
        let location = self.new.import_location(old, old.location_id(owner));
        let one = self.new.emit(root, Symbol::new("prim::Constant"), &[], &[Type::int()]);
        self.new.set_attr(one, "value", Attr::Int(1));
        let one = self.new.results(one)[0];
        let done = self.number("aten::add", [iteration, one]);
        let left = self.number("aten::sub", [most, done]);
        let mut operands = vec![left];
        operands.extend(old.block_results(body).to_vec().into_iter().map(|value| self.of(value)));
        for value in outer_values(old, owner, Uses::InBlocks) {
            self.of(value);
        }
        let types: Vec<Type> = old.results(owner).iter().map(|value| old.ty(*value).clone()).collect();
        let again = self.new.emit(root, Symbol::new("prim::Loop"), &operands, &types);
        if let Some(location) = location {
            self.new.set_location_id(again, location);
        }
        self.copy_body(body, again, done);
        for (result, copy) in old.results(owner).into_iter().zip(self.new.results(again)) {
            self.map.insert(result, copy);
        }
        Ok(())
    }

    /// The body of the loop that goes on. The values of the iteration that was left are not those of the following ones.
    fn copy_body(&mut self, body: BlockId, again: OpId, done: ValueId) {
        let old = self.old;
        let block = self.new.add_block(again);
        let mut map = self.map.clone();
        for (n, param) in old.params(body).iter().enumerate() {
            let copy = self.new.add_param(block, old.ty(*param).clone());
            if n > 0 {
                map.insert(*param, copy);
                continue;
            }
            let count = self.new.emit(block, Symbol::new("aten::add"), &[done, copy], &[Type::int()]);
            map.insert(*param, self.new.results(count)[0]);
        }
        for op in old.block_ops(body) {
            let copy = self.new.clone_op(Some(old), op, &mut map);
            self.new.append(block, copy);
        }
        let results = mapped(old.block_results(body), &map);
        self.new.set_block_results(block, &results);
    }

    fn number(&mut self, kind: &str, operands: [ValueId; 2]) -> ValueId {
        let root = self.new.root();
        let op = self.new.emit(root, Symbol::new(kind), &operands, &[Type::int()]);
        self.new.results(op)[0]
    }
}

/// Which uses of an op are asked for.
#[derive(Clone, Copy, PartialEq)]
enum Uses {
    /// Its own and those in its blocks.
    All,
    /// Those in its blocks.
    InBlocks,
}

/// The values that an op uses and that are defined outside of it; in the order of their uses.
fn outer_values(graph: &Graph, op: OpId, uses: Uses) -> Vec<ValueId> {
    let mut inside: HashSet<ValueId> = HashSet::new();
    let mut used = if uses == Uses::All { graph.operands(op).to_vec() } else { Vec::new() };
    let mut blocks: Vec<BlockId> = graph.nested_blocks(op).to_vec();
    while let Some(block) = blocks.pop() {
        inside.extend(graph.params(block));
        for inner in graph.block_ops(block) {
            used.extend_from_slice(graph.operands(inner));
            inside.extend(graph.results(inner));
            blocks.extend_from_slice(graph.nested_blocks(inner));
        }
        used.extend_from_slice(graph.block_results(block));
    }
    let mut seen = HashSet::new();
    used.into_iter().filter(|value| !inside.contains(value) && seen.insert(*value)).collect()
}
