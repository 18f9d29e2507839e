//! `loop-tile`: a loop becomes a loop over tiles and a loop within the tile. The order of iterations stays, so that any loop
//! may be split; what it carries goes through both.

use super::chosen::{LOOP, chosen, refuse};
use crate::diag::Result;
use crate::dialects::loops::Mark;
use crate::dialects::loops::nest::{Loop, binary_before, index_before, loop_before};
use crate::dialects::scalar::Binary;
use crate::ir::Graph;
use crate::passes::{Context, PassOption};

pub(in crate::passes) const OPTIONS: &[PassOption] =
    &[LOOP, PassOption::int("size", 64, 2, "iterations of a tile")];

pub(in crate::passes) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let (loops, named) = chosen(graph, context)?;
    let size = context.int("size")?;
    let mut changed = false;
    for l in loops {
        let why = match l.mark(graph) {
            Mark::Serial if l.has_lanes(graph) => "combines partial results in an order of its own",
            Mark::Serial | Mark::Vector => "",
            _ => "is marked to run at once as a whole",
        };
        if !why.is_empty() {
            refuse(graph, context, l, named, why)?;
            continue;
        }
        let name = graph.display_name(l.iv);
        if !context.step(|| format!("splits the loop over %{name} into tiles of {size}")) {
            return Ok(changed);
        }
        split(graph, l, size);
        changed = true;
    }
    Ok(changed)
}

fn split(graph: &mut Graph, l: Loop, size: i64) {
    let tile = index_before(graph, l.op, size);
    let width = binary_before(graph, l.op, Binary::Mul, l.step, tile);
    let inits = l.inits(graph);
    let Some(outer) = loop_before(graph, l.op, l, [l.begin, l.end, width], &inits) else { return };
    outer.set_mark(graph, Mark::Serial);
    let name = format!("{}_tile", graph.display_name(l.iv));
    graph.set_unique_name(outer.iv, &name);
    // Uses of the values after the loop are replaced by those after the loop over tiles.
    for (old, new) in graph.results(l.op).into_iter().zip(graph.results(outer.op)) {
        graph.replace_all_uses(old, new);
    }
    graph.move_to_end(l.op, outer.block);
    let past = binary_before(graph, l.op, Binary::Add, outer.iv, width);
    let last = binary_before(graph, l.op, Binary::Min, past, l.end);
    let mut operands = vec![outer.iv, last, l.step];
    operands.extend(graph.params(outer.block).iter().skip(1));
    graph.set_operands(l.op, &operands);
    let results = graph.results(l.op);
    graph.set_block_results(outer.block, &results);
}
