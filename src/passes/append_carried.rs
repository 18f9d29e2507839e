//! Lists that a loop carries and copies with one item more in each turn are appended to instead: `items = items + [x]` is done in
//! the time of one append. The list must be empty when the loop begins, and nothing but the loop may see it meanwhile; a new one
//! is made for each run. So the lists grow that a forward keeps for its backward.

use super::Context;
use crate::diag::Result;
use crate::ir::{Attr, Graph, OpId, Symbol, ValueId};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        if graph.kind(op) != "prim::Loop" {
            continue;
        }
        for n in 0..graph.result_count(op) {
            let Some(found) = Growth::of(graph, op, n) else { continue };
            if !context.step(|| format!("appends to list {n} that is carried by {}", graph.op_line(op))) {
                return Ok(changed);
            }
            found.append(graph, op, n);
            changed = true;
        }
    }
    Ok(changed)
}

/// A list that grows by an item a turn.
struct Growth {
    param: ValueId,
    /// The op that makes the longer list, the one that makes a list of the item, and the item.
    longer: OpId,
    made: OpId,
    item: ValueId,
}

impl Growth {
    fn of(graph: &Graph, op: OpId, n: usize) -> Option<Growth> {
        let &[body] = graph.nested_blocks(op) else { return None };
        let start = graph.def_op(graph.operand(op, n + 2)?)?;
        let is_empty = match graph.kind(start).as_str() {
            "prim::ListConstruct" => graph.operands(start).is_empty(),
            "prim::Constant" => graph.attr(start, "value").is_some_and(is_empty_list),
            _ => false,
        };
        let param = *graph.params(body).get(n + 1)?;
        let left = *graph.block_results(body).get(n + 1)?;
        let longer = graph.def_op(left).filter(|op| graph.kind(*op) == "aten::add")?;
        let &[first, one] = graph.operands(longer) else { return None };
        let made = graph.def_op(one).filter(|op| graph.kind(*op) == "prim::ListConstruct")?;
        let &[item] = graph.operands(made) else { return None };
        let is_own = [param, left, one].iter().all(|value| graph.has_one_use(*value));
        let is_here = graph.parent(longer) == Some(body);
        (is_empty && first == param && is_own && is_here).then_some(Growth { param, longer, made, item })
    }

    fn append(self, graph: &mut Graph, op: OpId, n: usize) {
        let ty = graph.ty(self.param).clone();
        let empty = graph.create(Symbol::new("prim::ListConstruct"), &[], std::slice::from_ref(&ty));
        graph.insert_before(empty, op);
        let start = graph.results(empty)[0];
        graph.set_operand(op, n + 2, start);
        let append = graph.create(Symbol::new("aten::append"), &[self.param, self.item], &[ty]);
        graph.set_location_id(append, graph.location_id(self.longer));
        graph.insert_before(append, self.longer);
        let result = graph.results(append)[0];
        graph.replace_op(self.longer, &[result]);
        graph.erase(self.made);
    }
}

fn is_empty_list(value: &Attr) -> bool {
    match value {
        Attr::Ints(items) => items.is_empty(),
        Attr::Floats(items) => items.is_empty(),
        Attr::Tensors(items) => items.is_empty(),
        Attr::List(items) => items.is_empty(),
        _ => false,
    }
}
