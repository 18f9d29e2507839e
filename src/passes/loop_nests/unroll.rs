//! `loop-unroll`: several iterations become one; those that are left over run in the old loop, after.
//!
//! With `jam` the copies go on within loops of the body: these loops run once for all copies, so that what the copies read
//! alike is read once. That changes the order of iterations, and asks that they do not meet in memory.

use super::chosen::{LOOP, chosen, refuse};
use super::independence::independent;
use crate::diag::Result;
use crate::dialects::loops::Mark;
use crate::dialects::loops::nest::{Loop, binary_before, index_before, loop_before};
use crate::dialects::scalar::Binary;
use crate::ir::{BlockId, Graph, OpId, ValueId, mapped};
use crate::passes::{Context, PassOption};
use hashbrown::HashMap;

pub(in crate::passes) const OPTIONS: &[PassOption] = &[
    LOOP,
    PassOption::int("factor", 4, 2, "unroll factor"),
    PassOption::bool("jam", false, "unroll and jam nested loops"),
];

/// Larger bodies are not copied.
const MAX_BODY: usize = 4096;

pub(in crate::passes) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let (loops, named) = chosen(graph, context)?;
    let (factor, jam) = (context.option_count("factor")?, context.flag("jam")?);
    let mut changed = false;
    // Inner loops first: unrolling an outer one copies them.
    for l in loops.into_iter().rev() {
        let within = graph
            .all_ops()
            .into_iter()
            .filter(|op| graph.parent(*op).is_some_and(|b| graph.is_within(b, l.block)));
        let body = within.count();
        let why = match l.mark(graph) {
            Mark::Serial if l.has_lanes(graph) => "combines partial results in an order of its own".into(),
            Mark::Serial if body.saturating_mul(factor) > MAX_BODY => {
                format!("would have more than {MAX_BODY} ops")
            }
            Mark::Serial if jam => independent(graph, l).err().unwrap_or_default(),
            Mark::Serial => String::new(),
            mark => format!("is marked {}", mark.name()),
        };
        if !why.is_empty() {
            refuse(graph, context, l, named, &why)?;
            continue;
        }
        let name = graph.display_name(l.iv);
        if !context.step(|| format!("unrolls the loop over %{name} {factor} times")) {
            return Ok(changed);
        }
        unroll(graph, l, factor, jam);
        changed = true;
    }
    Ok(changed)
}

/// The bound of the iterations that make whole groups of `factor`.
fn whole_end(graph: &mut Graph, l: Loop, wide: ValueId) -> ValueId {
    let at = l.op;
    let zero = index_before(graph, at, 0);
    let span = binary_before(graph, at, Binary::Sub, l.end, l.begin);
    let span = binary_before(graph, at, Binary::Max, span, zero);
    let left = binary_before(graph, at, Binary::Rem, span, wide);
    let covered = binary_before(graph, at, Binary::Sub, span, left);
    binary_before(graph, at, Binary::Add, l.begin, covered)
}

fn unroll(graph: &mut Graph, l: Loop, factor: usize, jam: bool) {
    let count = index_before(graph, l.op, factor as i64);
    let wide = binary_before(graph, l.op, Binary::Mul, l.step, count);
    let end = whole_end(graph, l, wide);
    let inits = l.inits(graph);
    let Some(main) = loop_before(graph, l.op, l, [l.begin, end, wide], &inits) else { return };
    let name = format!("{}_wide", graph.display_name(l.iv));
    graph.set_unique_name(main.iv, &name);
    let terminator = graph.terminator(main.block);
    let mut ivs = vec![main.iv];
    for _ in 1..factor {
        let before = ivs[ivs.len() - 1];
        ivs.push(binary_before(graph, terminator, Binary::Add, before, l.step));
    }
    let carried: Vec<ValueId> = graph.params(main.block).iter().skip(1).copied().collect();
    let old: Vec<ValueId> = graph.params(l.block).iter().skip(1).copied().collect();
    if jam {
        let mut copies: Vec<HashMap<ValueId, ValueId>> =
            ivs.iter().map(|iv| HashMap::from([(l.iv, *iv)])).collect();
        jammed(graph, l.block, main.block, &mut copies);
    } else {
        let mut values = carried;
        for iv in ivs {
            let mut map: HashMap<ValueId, ValueId> = old.iter().copied().zip(values).collect();
            map.insert(l.iv, iv);
            for op in graph.block_ops(l.block).collect::<Vec<_>>() {
                let copy = graph.clone_op(None, op, &mut map);
                graph.append(main.block, copy);
            }
            values = mapped(graph.block_results(l.block), &map);
        }
        graph.set_block_results(main.block, &values);
    }
    // The old loop does the rest.
    let mut operands = vec![end, l.end, l.step];
    operands.extend(graph.results(main.op));
    graph.set_operands(l.op, &operands);
}

/// Copies the ops of a block, each for all copies before the next one.
fn jammed(graph: &mut Graph, from: BlockId, to: BlockId, copies: &mut [HashMap<ValueId, ValueId>]) {
    for op in graph.block_ops(from).collect::<Vec<_>>() {
        match Loop::of(graph, op).filter(|inner| is_shared(graph, *inner, copies)) {
            Some(inner) => shared_loop(graph, inner, to, copies),
            None => {
                for map in copies.iter_mut() {
                    let copy = graph.clone_op(None, op, map);
                    graph.append(to, copy);
                }
            }
        }
    }
}

/// Whether a loop of the body has the same bounds in all copies.
fn is_shared(graph: &Graph, inner: Loop, copies: &[HashMap<ValueId, ValueId>]) -> bool {
    let in_all = |value: &ValueId| {
        copies.iter().all(|map| map.get(value).is_none_or(|new| copies[0].get(value) == Some(new)))
    };
    [inner.begin, inner.end, inner.step].iter().all(in_all) && !inner.has_lanes(graph)
}

/// One loop that carries what the loops of all copies carry.
fn shared_loop(graph: &mut Graph, inner: Loop, to: BlockId, copies: &mut [HashMap<ValueId, ValueId>]) {
    let own = inner.inits(graph);
    let inits: Vec<ValueId> = copies.iter().flat_map(|map| mapped(&own, map)).collect();
    let first = copies.first().cloned().unwrap_or_default();
    let bounds = mapped(&[inner.begin, inner.end, inner.step], &first);
    let &[begin, end, step] = bounds.as_slice() else { return };
    let anchor: OpId = graph.terminator(to);
    let Some(made) = loop_before(graph, anchor, inner, [begin, end, step], &inits) else { return };
    let name = graph.display_name(inner.iv);
    graph.set_unique_name(made.iv, &format!("{name}_jam"));
    let params: Vec<ValueId> = graph.params(inner.block).iter().skip(1).copied().collect();
    let carried: Vec<ValueId> = graph.params(made.block).iter().skip(1).copied().collect();
    for (n, map) in copies.iter_mut().enumerate() {
        map.insert(inner.iv, made.iv);
        map.extend(params.iter().copied().zip(carried.iter().skip(n * own.len()).copied()));
    }
    stacker::maybe_grow(64 << 10, 1 << 20, || jammed(graph, inner.block, made.block, copies));
    let ends: Vec<ValueId> =
        copies.iter().flat_map(|map| mapped(graph.block_results(inner.block), map)).collect();
    graph.set_block_results(made.block, &ends);
    let (old, new) = (graph.results(inner.op), graph.results(made.op));
    for (n, map) in copies.iter_mut().enumerate() {
        map.extend(old.iter().copied().zip(new.iter().skip(n * own.len()).copied()));
    }
}
