//! Batching of matrix products: a sum of at least four products becomes one `prim::MMTreeReduce`, and at least eight
//! independent products with a common side become one `prim::MMBatchSide`.
//!
//! A sum `a b + c d` is `[a c] [b; d]`: the products are joined along what is summed over. Transposes are taken into
//! the products, `(a b)ᵀ = bᵀ aᵀ`. A product or sum that is used elsewhere, or that reads or gives what anything in the
//! graph writes to, is not a part of a tree. The order of summation changes, so that results are equal up to
//! rounding.

use super::{Context, dce};
use crate::analysis::{AliasDb, Side, facts};
use crate::diag::Result;
use crate::dialects::Effects;
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, ValueId};
use crate::rewrite::syntax::Contract;
use hashbrown::{HashMap, HashSet};

/// Smaller sums stay.
const MIN_TREE: usize = 4;
/// Fewer products with a common side stay.
const MIN_SIDE: usize = 8;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    if !graph.all_ops().into_iter().any(|op| is(graph, op, "aten::mm")) {
        return Ok(false);
    }
    let db = context.analysis::<AliasDb>(graph);
    let mut changed = false;
    for block in blocks(graph) {
        changed |= reduce_trees(graph, context, &db, block);
    }
    for block in blocks(graph) {
        changed |= batch_sides(graph, context, &db, block);
    }
    context.changed();
    changed |= dce::run(graph, context)?;
    context.changed();
    // Transposes that were taken into products may now stand in pairs.
    Ok(super::peephole::with_contract(graph, context, Contract::Exact)? || changed)
}

/// All blocks, outer ones first.
fn blocks(graph: &Graph) -> Vec<BlockId> {
    let nested = graph.all_ops().into_iter().flat_map(|op| graph.nested_blocks(op).to_vec());
    std::iter::once(graph.root()).chain(nested).collect()
}

fn is(graph: &Graph, op: OpId, kind: &str) -> bool {
    graph.kind(op) == *kind && graph.result(op, 0).is_some_and(|value| graph.ty(value).is_tensor())
}

/// A sum of products, seen from its root.
#[derive(Clone, Copy)]
struct Tree {
    size: usize,
    is_root: bool,
}

fn reduce_trees(graph: &mut Graph, context: &Context<'_>, db: &AliasDb, block: BlockId) -> bool {
    let mut trees: HashMap<OpId, Tree> = HashMap::new();
    let ops: Vec<OpId> = graph.block_ops(block).collect();
    for op in ops.iter().filter(|op| !db.op_has_writers(graph, **op)) {
        if is(graph, *op, "aten::mm") {
            trees.insert(*op, Tree { size: 1, is_root: true });
        } else if is(graph, *op, "aten::t") {
            let inner =
                graph.operand(*op, 0).and_then(|v| graph.def_op(v)).and_then(|def| trees.get_mut(&def));
            if let Some(inner) = inner {
                inner.is_root = false;
                let size = inner.size;
                trees.insert(*op, Tree { size, is_root: true });
            }
        } else if is(graph, *op, "aten::add") {
            join(graph, *op, &mut trees);
        }
    }
    let mut changed = false;
    for op in ops {
        if trees.get(&op).is_some_and(|tree| tree.is_root && tree.size >= MIN_TREE)
            && context.step(|| format!("joins the products of {}", graph.op_line(op)))
        {
            let products = products(graph, op);
            let operands = |graph: &Graph, n: usize| -> Vec<ValueId> {
                products.iter().filter_map(|product| graph.operand(*product, n)).collect()
            };
            let all = [operands(graph, 0), operands(graph, 1)].concat();
            replace(graph, op, Symbol::new("prim::MMTreeReduce"), &all);
            changed = true;
        }
    }
    changed
}

/// The sum of two trees without other uses is a tree.
fn join(graph: &Graph, op: OpId, trees: &mut HashMap<OpId, Tree>) {
    let &[a, b, ..] = graph.operands(op) else { return };
    let (Some(left), Some(right)) = (graph.def_op(a), graph.def_op(b)) else { return };
    let alone = left != right && graph.has_one_use(a) && graph.has_one_use(b);
    let (Some(x), Some(y)) = (trees.get(&left).copied(), trees.get(&right).copied()) else { return };
    if alone && x.is_root && y.is_root {
        for side in [left, right] {
            if let Some(tree) = trees.get_mut(&side) {
                tree.is_root = false;
            }
        }
        trees.insert(op, Tree { size: x.size + y.size, is_root: true });
    }
}

/// The products of a tree, from the right to the left; transposes are taken into them.
fn products(graph: &mut Graph, root: OpId) -> Vec<OpId> {
    let mut found = Vec::new();
    let mut work = vec![root];
    while let Some(op) = work.pop() {
        let input = graph.operand(op, 0).and_then(|value| graph.def_op(value));
        if is(graph, op, "aten::mm") {
            found.push(op);
        } else if is(graph, op, "aten::add") {
            let defs: Vec<OpId> =
                graph.operands(op).iter().take(2).filter_map(|value| graph.def_op(*value)).collect();
            work.extend(defs);
        } else if let Some(input) = input {
            work.extend(transposed(graph, op, input));
        }
    }
    found
}

/// What the transpose of an op's result is made of: `(a b)ᵀ = bᵀ aᵀ`, `(a + b)ᵀ = aᵀ + bᵀ`, `aᵀᵀ = a`.
fn transposed(graph: &mut Graph, op: OpId, input: OpId) -> Vec<OpId> {
    let operands = graph.operands(input).to_vec();
    if is(graph, input, "aten::t") {
        return operands.first().and_then(|value| graph.def_op(*value)).into_iter().collect();
    }
    let (&[a, b, ..], Some(result)) = (operands.as_slice(), graph.result(op, 0)) else { return Vec::new() };
    let emit = |graph: &mut Graph, kind: &str, of: &[ValueId]| {
        let new = graph.create(Symbol::new(kind), of, &[Type::tensor()]);
        graph.insert_before(new, input);
        new
    };
    let (ta, tb) = (emit(graph, "aten::t", &[a]), emit(graph, "aten::t", &[b]));
    let (va, vb) = (graph.results(ta)[0], graph.results(tb)[0]);
    if is(graph, input, "aten::mm") {
        let product = emit(graph, "aten::mm", &[vb, va]);
        let value = graph.results(product)[0];
        graph.replace_all_uses(result, value);
        vec![product]
    } else {
        vec![ta, tb]
    }
}

fn replace(graph: &mut Graph, op: OpId, kind: Symbol, operands: &[ValueId]) {
    let types: Vec<Type> = graph.results(op).iter().map(|value| graph.ty(*value).clone()).collect();
    let new = graph.create(kind, operands, &types);
    graph.insert_before(new, op);
    for (old, value) in graph.results(op).into_iter().zip(graph.results(new)) {
        graph.replace_all_uses(old, value);
    }
}

fn batch_sides(graph: &mut Graph, context: &Context<'_>, db: &AliasDb, block: BlockId) -> bool {
    let mut considered: HashSet<ValueId> = HashSet::new();
    let mut changed = false;
    let calm = is_calm(graph, context, block);
    for op in graph.block_ops(block).collect::<Vec<_>>() {
        if !is(graph, op, "aten::mm") {
            continue;
        }
        for value in graph.operands(op).to_vec() {
            for side in 0..2 {
                if side == 0 && !considered.insert(value) {
                    break;
                }
                let users = users_of(graph, block, value, side);
                if users.len() < MIN_SIDE {
                    continue;
                }
                let users = match calm {
                    true => unrelated(graph, block, &users),
                    false => movable(graph, context, db, users),
                };
                if users.len() >= MIN_SIDE
                    && context.step(|| format!("batches {} products with {}", users.len(), graph.op_line(op)))
                {
                    match calm {
                        true => hoist_operands(graph, block, &users),
                        false => gather(graph, context, db, &users),
                    }
                    batch(graph, &users, side);
                    changed = true;
                }
            }
        }
    }
    changed
}

/// Whether ops of a block stand where they do for their operands alone.
fn is_calm(graph: &Graph, context: &Context<'_>, block: BlockId) -> bool {
    let world = Effects::READS_WORLD | Effects::WRITES_WORLD | Effects::RANDOM;
    graph.block_ops(block).all(|op| {
        let facts = facts(context.registry, graph, op);
        graph.nested_blocks(op).is_empty() && !facts.writes && !facts.effects.intersects(world)
    })
}

/// Products of the block with `value` on the given side, in order.
fn users_of(graph: &Graph, block: BlockId, value: ValueId, side: usize) -> Vec<OpId> {
    let mut users: Vec<OpId> = graph
        .uses(value)
        .filter(|u| u.index == side && graph.parent(u.op) == Some(block) && is(graph, u.op, "aten::mm"))
        .filter(|u| graph.operand(u.op, 1 - side) != Some(value))
        .map(|u| u.op)
        .collect();
    users.sort_by(|a, b| graph.is_before(*b, *a).cmp(&graph.is_before(*a, *b)));
    users
}

/// Of ops of a calm block those that depend on none of the others that are taken.
fn unrelated(graph: &Graph, block: BlockId, users: &[OpId]) -> Vec<OpId> {
    let candidates: HashSet<OpId> = users.iter().copied().collect();
    let mut kept = Vec::new();
    let mut late: HashSet<ValueId> = HashSet::new();
    for op in graph.block_ops(block) {
        let depends = graph.operands(op).iter().any(|operand| late.contains(operand));
        let takes = !depends && candidates.contains(&op);
        if takes {
            kept.push(op);
        }
        if takes || depends {
            late.extend(graph.results(op));
        }
    }
    kept
}

/// Moves what ops of a calm block are computed of before the first of them.
fn hoist_operands(graph: &mut Graph, block: BlockId, users: &[OpId]) {
    let Some(first) = users.first().copied() else { return };
    let mut wanted: HashSet<OpId> = HashSet::new();
    let mut work: Vec<OpId> = users.to_vec();
    while let Some(op) = work.pop() {
        for def in graph.operands(op).to_vec().into_iter().filter_map(|value| graph.def_op(value)) {
            if graph.parent(def) == Some(block) && graph.is_before(first, def) && wanted.insert(def) {
                work.push(def);
            }
        }
    }
    for op in graph.block_ops(block).collect::<Vec<_>>() {
        if wanted.contains(&op) {
            graph.move_before(op, first);
        }
    }
}

/// Of products those that can be moved next to each other.
fn movable(graph: &Graph, context: &Context<'_>, db: &AliasDb, users: Vec<OpId>) -> Vec<OpId> {
    let mut kept: Vec<OpId> = Vec::new();
    for user in users {
        if kept.iter().all(|first| db.can_move(graph, context.registry, user, Side::Before, *first)) {
            kept.push(user);
        }
    }
    kept
}

/// Moves ops next to each other.
fn gather(graph: &mut Graph, context: &Context<'_>, db: &AliasDb, users: &[OpId]) {
    for pair in users.windows(2).rev() {
        db.move_if_valid(graph, context.registry, pair[0], Side::Before, pair[1]);
    }
}

/// One op for products next to each other, or all of whose operands stand before the first.
fn batch(graph: &mut Graph, users: &[OpId], side: usize) {
    let common = graph.operand(users[0], side);
    let others = users.iter().filter_map(|user| graph.operand(*user, 1 - side));
    let operands: Vec<ValueId> = common.into_iter().chain(others).collect();
    let results: Vec<ValueId> = users.iter().filter_map(|user| graph.result(*user, 0)).collect();
    let types: Vec<Type> = results.iter().map(|value| graph.ty(*value).clone()).collect();
    let new = graph.create(Symbol::new("prim::MMBatchSide"), &operands, &types);
    graph.set_attr(new, "side", Attr::Int(side as i64));
    graph.insert_before(new, users[0]);
    for (old, value) in results.into_iter().zip(graph.results(new)) {
        graph.replace_all_uses(old, value);
    }
}
