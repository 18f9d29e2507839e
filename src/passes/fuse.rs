//! Fusion: gathers elementwise tensor work in `fusion::Group` ops, which run as one kernel.
//!
//! Within a block, an op that acts on the world ends a stretch. Inside of a stretch ops may be moved as long as each
//! stays after those whose results it uses, and keeps its order with those that write what it reads, which the alias
//! analysis knows. Groups are limited by one thing only: a group runs at once, so no such path may lead out of it and
//! back in. Equal parts of a tensor (`chunk`) and the constants that an op needs go into the group with it. Ops that
//! combine the elements of rows (a sum over the last dimension, softmax) take part in groups of elementwise work. A
//! group of one op is not a group, unless the op is a function that costs far more than a load: the runtime makes a kernel
//! of it where there are enough elements. Which of several ops raises first, and what was written before, is not kept,
//! as in PyTorch.

use super::fuse_rows::{dims_of, row_work};
use super::{Context, PassOption, constants};
use crate::analysis::{AliasDb, NestedFacts, OpFacts, facts};
use crate::diag::Result;
use crate::dialects::{Effects, Fact, Family, Tolerance, Variant, fusion, resolve};
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, TypeKind, Use, ValueId};
use hashbrown::{HashMap, HashSet};
use indexmap::IndexSet;
use petgraph::graph::{DiGraph, NodeIndex};
use std::sync::Arc;

/// Inputs of one kernel, at most; more make it slow to call and to compile.
const MAX_MEMBERS: usize = 256;
/// Ops of one stretch that are examined together.
const MAX_STRETCH: usize = 4096;

pub(super) const OPTIONS: &[PassOption] = &[PassOption::bool(
    "alone",
    false,
    "make a group of each op that is left alone, too: where tensors are on a device, groups are what keeps them there",
)];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    fuse_all(graph, context, Work { rows: true, alone: context.flag("alone")? })
}

/// What is gathered.
#[derive(Clone, Copy)]
struct Work {
    /// Ops that combine the elements of rows.
    rows: bool,
    /// Any op that is left alone.
    alone: bool,
}

/// Gathers fusible work everywhere in a graph.
pub fn fuse(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    fuse_all(graph, context, Work { rows: true, alone: false })
}

/// Gathers elementwise work only: for the work of a group whose rows turn out not to be.
pub fn fuse_elementwise(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    fuse_all(graph, context, Work { rows: false, alone: false })
}

fn fuse_all(graph: &mut Graph, context: &Context<'_>, wanted: Work) -> Result<bool> {
    let mut found = Vec::new();
    let mut blocks = vec![graph.root()];
    let mut facts = NestedFacts::new(context.registry);
    while let Some(block) = blocks.pop() {
        stretches(graph, &mut facts, block, &mut found);
        for op in graph.block_ops(block) {
            blocks.extend_from_slice(graph.nested_blocks(op));
        }
    }
    // The analysis knows the graph as it was before the first group.
    let orders: Vec<Order> = found.iter().map(|stretch| Order::of(graph, context, stretch)).collect();
    let mut changed = false;
    for (stretch, order) in found.iter().zip(orders) {
        changed |= fuse_stretch(graph, context, &stretch.ops, order, wanted);
    }
    Ok(changed)
}

/// A run of ops of a block that do not act on the world.
#[derive(Default)]
struct Stretch {
    ops: Vec<OpId>,
    writes: bool,
    /// Those that draw random numbers.
    random: Vec<OpId>,
}

/// Adds the stretches of a block.
fn stretches(graph: &Graph, facts: &mut NestedFacts<'_>, block: BlockId, out: &mut Vec<Stretch>) {
    let mut stretch = Stretch::default();
    for op in graph.block_ops(block) {
        let facts = facts.get(graph, op);
        let ends = !stays_in_stretch(&facts);
        if !ends {
            stretch.ops.push(op);
            stretch.writes |= facts.writes;
            if facts.effects.intersects(Effects::RANDOM) {
                stretch.random.push(op);
            }
        }
        if ends || stretch.ops.len() >= MAX_STRETCH {
            out.push(std::mem::take(&mut stretch));
        }
    }
    out.push(stretch);
}

/// Whether an op may be examined together with what stands before and after it.
pub(super) fn stays_in_stretch(facts: &OpFacts) -> bool {
    let calm = Effects::MAY_RAISE | Effects::IDENTITY | Effects::CONTROL | Effects::READS_WORLD;
    (calm | Effects::RANDOM).contains(facts.effects)
}

/// Which ops must stay behind which, besides those whose results they use: for each op, those before it.
struct Order(HashMap<OpId, Vec<OpId>>);

impl Order {
    fn of(graph: &Graph, context: &Context<'_>, stretch: &Stretch) -> Order {
        let mut behind: HashMap<OpId, Vec<OpId>> = HashMap::new();
        if stretch.writes {
            let order = context.analysis::<AliasDb>(graph).memory_order(graph, &stretch.ops);
            for (op, places) in stretch.ops.iter().zip(order).filter(|(_, places)| !places.is_empty()) {
                behind.insert(*op, places.into_iter().map(|n| stretch.ops[n]).collect());
            }
        }
        for pair in stretch.random.windows(2) {
            behind.entry(pair[1]).or_default().push(pair[0]);
        }
        Order(behind)
    }

    fn behind(&self, op: OpId) -> &[OpId] {
        self.0.get(&op).map_or(&[], Vec::as_slice)
    }

    /// Says that ops have become one.
    fn join(&mut self, ops: &HashSet<OpId>, into: OpId) {
        let mut joined: Vec<OpId> = Vec::new();
        for op in ops {
            joined.extend(self.0.remove(op).unwrap_or_default());
        }
        joined.retain(|op| !ops.contains(op));
        joined.sort();
        joined.dedup();
        self.0.insert(into, joined);
        for behind in self.0.values_mut().filter(|behind| behind.iter().any(|op| ops.contains(op))) {
            behind.retain(|op| !ops.contains(op));
            behind.push(into);
        }
    }
}

/// Whether an op is elementwise work on tensors.
pub(super) fn is_fusible(graph: &Graph, context: &Context<'_>, op: OpId) -> bool {
    if !graph.nested_blocks(op).is_empty() {
        return false;
    }
    let facts = facts(context.registry, graph, op);
    let Some(row) = facts.op else { return false };
    let elementwise =
        row.def().family == Family::Elementwise && row.def().scalar.is_some() && row.def().eval.is_none();
    if !elementwise || facts.writes || row.variant() != Variant::Plain {
        return false;
    }
    // The runtime takes a constant tensor of rank 0 as a number here; as an input of a group it would promote.
    let second = graph.operand(op, 1);
    let is_number = |v: ValueId| {
        let unread = graph.ty(v).is_tensor() && constants::value_of(graph, v).is_none();
        constants::number_of(graph, v).is_some() || unread && is_constant(graph, v)
    };
    let counts_as_number = row.def().facts.contains(&Fact::ConstantIsNumber) && second.is_some_and(is_number);
    if counts_as_number {
        return false;
    }
    let takes = |value: &ValueId| match graph.ty(*value).kind() {
        TypeKind::Tensor(_) | TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Number => true,
        // A number or None that is left out.
        _ => is_constant(graph, *value),
    };
    graph.operands(op).iter().all(takes) && graph.results(op).iter().all(|v| graph.ty(*v).is_tensor())
}

/// Whether an op alone is worth a kernel.
fn is_costly(graph: &Graph, context: &Context<'_>, op: OpId) -> bool {
    let Ok(row) = resolve(context.registry, graph, op) else { return false };
    let def = row.def();
    def.family == Family::Elementwise
        && (def.tolerance == Tolerance::Rounding || def.facts.contains(&Fact::Costly))
}

fn is_constant(graph: &Graph, value: ValueId) -> bool {
    graph.def_op(value).is_some_and(|op| graph.kind(op) == "prim::Constant")
}

/// `ListUnpack(chunk(x, n, dim))` with constant n and dim: the chunk op, n and dim.
fn chunk_of(graph: &Graph, op: OpId) -> Option<(OpId, i64, i64)> {
    if graph.kind(op) != "prim::ListUnpack" {
        return None;
    }
    let list = graph.operand(op, 0)?;
    let chunk = graph.def_op(list)?;
    // Which op takes equal parts is said by its row's family and name's last word alone.
    let is_chunk = matches!(graph.kind(chunk).base(), "chunk" | "unsafe_chunk") && graph.has_one_use(list);
    let number = |n: usize| {
        let def = graph.def_op(graph.operand(chunk, n)?)?;
        graph.attr(def, "value").and_then(Attr::as_int)
    };
    let (count, dim) = if is_chunk { (number(1)?, number(2)?) } else { return None };
    (count == graph.result_count(op) as i64).then_some((chunk, count, dim))
}

/// Whether an op takes equal parts of a tensor, and they are the same when they are taken by the op itself: nothing
/// between the two writes to the tensor, whose sizes it could change.
fn takes_parts(graph: &Graph, op: OpId, inside: &HashSet<OpId>, memory: &Order) -> bool {
    chunk_of(graph, op).is_some_and(|(chunk, ..)| {
        inside.contains(&chunk) && memory.behind(op).iter().all(|other| memory.behind(chunk).contains(other))
    })
}

/// The groups of one stretch while they grow.
#[derive(Default)]
struct Groups {
    /// Dependencies between groups and ops outside of groups.
    edges: DiGraph<(), ()>,
    /// Which node an op belongs to.
    node: HashMap<OpId, NodeIndex>,
    members: HashMap<NodeIndex, Vec<OpId>>,
    /// Members whose users stay outside, as places of the result are not places of the group.
    ends: HashSet<OpId>,
    /// Each of these with each op that needs it.
    behind_ends: Vec<(OpId, OpId)>,
}

fn fuse_stretch(
    graph: &mut Graph,
    context: &Context<'_>,
    stretch: &[OpId],
    mut memory: Order,
    wanted: Work,
) -> bool {
    let inside: HashSet<OpId> = stretch.iter().copied().collect();
    let mut groups = Groups::default();
    let mut order = Vec::new();
    for op in stretch {
        let producers = producers(graph, *op, &inside, &memory);
        let along_rows = if wanted.rows { row_work(graph, context, *op) } else { None };
        let fusible = along_rows.is_some()
            || is_fusible(graph, context, *op)
            || takes_parts(graph, *op, &inside, &memory);
        let joined = if fusible { groups.join(*op, &producers) } else { None };
        if along_rows.is_some_and(|work| work.drops) {
            groups.ends.insert(*op);
        }
        let node = match joined {
            Some(node) => node,
            None => {
                let node = groups.edges.add_node(());
                groups.node.insert(*op, node);
                if fusible {
                    groups.members.insert(node, vec![*op]);
                    order.push(node);
                }
                node
            }
        };
        for producer in producers {
            if groups.ends.contains(&producer) {
                groups.behind_ends.push((producer, *op));
            }
            if let Some(from) = groups.node.get(&producer).copied()
                && from != node
            {
                groups.edges.update_edge(from, node, ());
            }
        }
    }
    let mut changed = false;
    for node in order {
        let members = groups.members.remove(&node).unwrap_or_default();
        let work = members.iter().filter(|op| chunk_of(graph, **op).is_none()).count();
        let pays = work >= 2 || wanted.alone || members.iter().all(|op| is_costly(graph, context, *op));
        if work >= 1
            && pays
            && context.step(|| format!("fuses {work} ops up to {}", last_line(graph, &members)))
        {
            outline(graph, context, members, &mut memory);
            changed = true;
        }
    }
    changed
}

fn last_line(graph: &Graph, members: &[OpId]) -> String {
    members.last().map_or(String::new(), |op| graph.op_line(*op))
}

/// Ops of the stretch that an op depends on. The list of a chunk stands for the tensor that it is made of.
fn producers(graph: &Graph, op: OpId, inside: &HashSet<OpId>, memory: &Order) -> Vec<OpId> {
    let mut found = memory.behind(op).to_vec();
    let mut ops = vec![op];
    if let Some((chunk, ..)) = chunk_of(graph, op) {
        ops = vec![chunk];
    }
    // What nested blocks use counts as used by the op.
    while let Some(at) = ops.pop() {
        let defs = graph.operands(at).iter().filter_map(|v| graph.def_op(*v));
        found.extend(defs.filter(|def| inside.contains(def) && graph.kind(*def) != "prim::Constant"));
        for block in graph.nested_blocks(at) {
            ops.extend(graph.block_ops(*block));
            let results = graph.block_results(*block).iter().filter_map(|v| graph.def_op(*v));
            found.extend(results.filter(|def| inside.contains(def)));
        }
    }
    found.sort();
    found.dedup();
    found
}

impl Groups {
    /// Puts an op into one group with those of its producers' groups that can run at once with it; None where it fits
    /// into none of them.
    fn join(&mut self, op: OpId, producers: &[OpId]) -> Option<NodeIndex> {
        let nodes: Vec<NodeIndex> = producers.iter().filter_map(|p| self.node.get(p).copied()).collect();
        let mut candidates: Vec<NodeIndex> = nodes
            .iter()
            .copied()
            .filter(|n| self.size(*n) < MAX_MEMBERS && self.members.contains_key(n))
            .filter(|n| !producers.iter().any(|p| self.ends.contains(p) && self.node.get(p) == Some(n)))
            .collect();
        candidates.sort();
        candidates.dedup();
        let mut merged: Vec<NodeIndex> = Vec::new();
        for candidate in candidates {
            let size: usize = merged.iter().chain([&candidate]).map(|n| self.size(*n)).sum();
            if size > MAX_MEMBERS {
                continue;
            }
            merged.push(candidate);
            if self.leads_back(&merged, &nodes) || self.crosses_end(&merged) {
                merged.pop();
            }
        }
        let (group, others) = merged.split_first()?;
        others.iter().for_each(|other| self.merge(*group, *other));
        self.node.insert(op, *group);
        self.members.entry(*group).or_default().push(op);
        Some(*group)
    }

    fn size(&self, group: NodeIndex) -> usize {
        self.members.get(&group).map_or(0, Vec::len)
    }

    /// Whether groups that ran at once, with an op that needs the results of `needed`, would wait for themselves: a path
    /// leaves them and comes back to one of them, or to something that the op needs. One test for all groups together:
    /// each pair of them may be free of such paths where all of them are not.
    fn leads_back(&self, groups: &[NodeIndex], needed: &[NodeIndex]) -> bool {
        let leaving = groups.iter().flat_map(|group| self.edges.neighbors(*group));
        let mut work: Vec<NodeIndex> = leaving.filter(|n| !groups.contains(n)).collect();
        let mut seen: HashSet<NodeIndex> = work.iter().copied().collect();
        while let Some(node) = work.pop() {
            if needed.contains(&node) || groups.contains(&node) {
                return true;
            }
            work.extend(self.edges.neighbors(node).filter(|n| seen.insert(*n)));
        }
        false
    }

    /// Whether one of the groups holds an op that needs the end of another one.
    fn crosses_end(&self, groups: &[NodeIndex]) -> bool {
        let inside = |op: &OpId| self.node.get(op).is_some_and(|node| groups.contains(node));
        self.behind_ends.iter().any(|(end, user)| inside(end) && inside(user))
    }

    /// Makes one group of two.
    fn merge(&mut self, group: NodeIndex, other: NodeIndex) {
        let incoming: Vec<NodeIndex> = self.edges.neighbors_directed(other, petgraph::Incoming).collect();
        let outgoing: Vec<NodeIndex> = self.edges.neighbors(other).collect();
        for from in incoming.into_iter().filter(|n| *n != group) {
            self.edges.update_edge(from, group, ());
        }
        for to in outgoing.into_iter().filter(|n| *n != group) {
            self.edges.update_edge(group, to, ());
        }
        // The old node keeps no edges, so that no path goes through it.
        while let Some(edge) = self.edges.first_edge(other, petgraph::Outgoing) {
            self.edges.remove_edge(edge);
        }
        while let Some(edge) = self.edges.first_edge(other, petgraph::Incoming) {
            self.edges.remove_edge(edge);
        }
        for op in self.members.remove(&other).unwrap_or_default() {
            self.node.insert(op, group);
            self.members.entry(group).or_default().push(op);
        }
    }
}

/// Moves members into a group op, which stands where the last of them stood.
fn outline(graph: &mut Graph, context: &Context<'_>, mut members: Vec<OpId>, memory: &mut Order) {
    members.sort_by(|a, b| {
        if graph.is_before(*a, *b) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
    });
    let Some(last) = members.last().copied() else { return };
    let inside: HashSet<OpId> = members.iter().copied().collect();
    let parts = keep_parts(graph, &members, &inside, last);
    let mut body = Graph::new();
    let mut map: HashMap<ValueId, ValueId> = HashMap::new();
    let mut inputs: IndexSet<ValueId> = IndexSet::new();
    let mut chunks = Vec::new();
    for op in &members {
        if let Some((chunk, ..)) = chunk_of(graph, *op)
            && !graph.results(*op).iter().any(|part| graph.has_uses(*part))
        {
            chunks.push(chunk);
            continue;
        }
        let source = match chunk_of(graph, *op) {
            Some((chunk, ..)) => chunk,
            None => *op,
        };
        let operands: Vec<ValueId> = match chunk_of(graph, *op) {
            Some(_) => graph.operands(source).iter().take(1).copied().collect(),
            None => graph.operands(source).to_vec(),
        };
        for value in operands {
            import_dims(graph, context, &mut body, value, &mut map);
            import(graph, &mut body, value, &inside, &mut map, &mut inputs);
        }
        match chunk_of(graph, *op) {
            Some((chunk, count, dim)) => {
                chunks.push(chunk);
                import_chunk(graph, &mut body, *op, chunk, (count, dim), &mut map);
            }
            None => {
                let copy = body.copy_op(graph, *op, &mut map);
                let root = body.root();
                body.append(root, copy);
            }
        }
    }
    let escaping: Vec<ValueId> = members
        .iter()
        .flat_map(|op| graph.results(*op))
        .filter(|v| graph.uses(*v).any(|u| !inside.contains(&u.op) && !chunks.contains(&u.op)))
        .collect();
    for value in &escaping {
        if let Some(inner) = map.get(value) {
            body.add_output(*inner);
        }
    }
    let types: Vec<Type> = escaping.iter().map(|v| graph.ty(*v).clone()).collect();
    let operands: Vec<ValueId> = inputs.into_iter().collect();
    let group = graph.create(Symbol::new(fusion::GROUP), &operands, &types);
    let location = graph.location_id(last);
    graph.set_location_id(group, location);
    graph.set_attr(group, "Subgraph", Attr::Graph(Arc::new(body)));
    graph.insert_after(group, last);
    for (old, new) in escaping.iter().zip(graph.results(group)) {
        if let Some(name) = graph.name(*old).map(str::to_string) {
            graph.set_name(new, &name);
        }
        graph.replace_all_uses(*old, new);
    }
    sink_users(graph, &members, group, &parts, memory);
    memory.join(&members.iter().chain(&chunks).copied().collect(), group);
    for op in members.into_iter().rev().chain(chunks) {
        graph.erase(op);
    }
}

/// Parts of a tensor that are used outside of the group stay views of it: those users get a chunk of their own,
/// which follows the last member. Gives the new ops.
fn keep_parts(graph: &mut Graph, members: &[OpId], inside: &HashSet<OpId>, last: OpId) -> Vec<OpId> {
    let mut new = Vec::new();
    for unpack in members {
        let Some((chunk, ..)) = chunk_of(graph, *unpack) else { continue };
        let results = graph.results(*unpack);
        let outer: Vec<(usize, Use)> = (results.iter().enumerate())
            .flat_map(|(n, value)| graph.uses(*value).map(move |used| (n, used)))
            .filter(|(_, used)| !inside.contains(&used.op))
            .collect();
        if outer.is_empty() {
            continue;
        }
        let mut map = HashMap::new();
        let anchor = new.last().copied().unwrap_or(last);
        let chunk = graph.clone_op(None, chunk, &mut map);
        graph.insert_after(chunk, anchor);
        let unpack = graph.clone_op(None, *unpack, &mut map);
        graph.insert_after(unpack, chunk);
        for (n, used) in outer {
            if let Some(part) = graph.result(unpack, n) {
                graph.set_operand(used.op, used.index, part);
            }
        }
        new.extend([chunk, unpack]);
    }
    new
}

/// Users of the group's results, and of the `parts` after it, that stand before it move after them, and so do ops that
/// must stay after a member on account of memory; all with those that must stay after them.
fn sink_users(graph: &mut Graph, members: &[OpId], group: OpId, parts: &[OpId], memory: &Order) {
    let Some(block) = graph.parent(group) else { return };
    let Some(first) = members.first().copied() else { return };
    let skip: HashSet<OpId> = members.iter().copied().collect();
    let mut moved: HashSet<OpId> = parts.iter().copied().collect();
    let mut anchor = parts.last().copied().unwrap_or(group);
    let mut at = graph.next(first);
    while let Some(op) = at {
        at = graph.next(op);
        if op == group {
            break;
        }
        if skip.contains(&op) {
            continue;
        }
        let waits = |other: &OpId| skip.contains(other) || moved.contains(other);
        let depends = uses_any(graph, op, |def| def == group || moved.contains(&def));
        if depends || memory.behind(op).iter().any(waits) {
            moved.insert(op);
            graph.move_after(op, anchor);
            anchor = op;
        }
    }
    debug_assert!(graph.parent(anchor) == Some(block));
}

/// Whether an op, or anything nested in it, uses a result of an op that satisfies the test.
fn uses_any(graph: &Graph, op: OpId, test: impl Fn(OpId) -> bool) -> bool {
    let mut work = vec![op];
    while let Some(at) = work.pop() {
        if graph.operands(at).iter().filter_map(|v| graph.def_op(*v)).any(&test) {
            return true;
        }
        for block in graph.nested_blocks(at) {
            work.extend(graph.block_ops(*block));
            work.push(graph.terminator(*block));
        }
    }
    false
}

/// Makes a list of constant dimensions a constant inside of the group.
fn import_dims(
    graph: &Graph,
    context: &Context<'_>,
    body: &mut Graph,
    value: ValueId,
    map: &mut HashMap<ValueId, ValueId>,
) {
    let is_list = matches!(graph.ty(value).kind(), TypeKind::List(_));
    if !is_list || map.contains_key(&value) {
        return;
    }
    if let Some(dims) = dims_of(graph, context, value) {
        let root = body.root();
        let op = body.emit(root, Symbol::new("prim::Constant"), &[], &[graph.ty(value).clone()]);
        body.set_attr(op, "value", Attr::Ints(dims.into()));
        if let Some(constant) = body.result(op, 0) {
            map.insert(value, constant);
        }
    }
}

/// Makes a value known inside of the group: constants are copied, others become inputs.
fn import(
    graph: &Graph,
    body: &mut Graph,
    value: ValueId,
    inside: &HashSet<OpId>,
    map: &mut HashMap<ValueId, ValueId>,
    inputs: &mut IndexSet<ValueId>,
) {
    let def = graph.def_op(value);
    if map.contains_key(&value) || def.is_some_and(|op| inside.contains(&op)) {
        return;
    }
    if let Some(op) = def
        && graph.kind(op) == "prim::Constant"
        && !graph.ty(value).is_tensor()
    {
        let copy = body.copy_op(graph, op, map);
        let root = body.root();
        body.append(root, copy);
        return;
    }
    inputs.insert(value);
    let input = body.add_input(graph.ty(value).clone());
    if let Some(name) = graph.name(value) {
        body.set_name(input, name);
    }
    map.insert(value, input);
}

fn import_chunk(
    graph: &Graph,
    body: &mut Graph,
    unpack: OpId,
    chunk: OpId,
    (count, dim): (i64, i64),
    map: &mut HashMap<ValueId, ValueId>,
) {
    let Some(source) = graph.operand(chunk, 0).and_then(|v| map.get(&v).copied()) else { return };
    let results = graph.results(unpack);
    let types: Vec<Type> = results.iter().map(|v| graph.ty(*v).clone()).collect();
    let op = body.create(Symbol::new(fusion::CHUNK), &[source], &types);
    body.set_attr(op, "chunks", Attr::Int(count));
    body.set_attr(op, "dim", Attr::Int(dim));
    let root = body.root();
    body.append(root, op);
    for (old, new) in results.into_iter().zip(body.results(op)) {
        if let Some(name) = graph.name(old).map(str::to_string) {
            body.set_name(new, &name);
        }
        map.insert(old, new);
    }
}
