//! Lists that a loop carries and copies with one item more in each iteration are appended to instead: `items = items + [x]` is
//! done in the time of one append. The list must be empty when the loop begins, and nothing but the loop may see it meanwhile; a
//! new one is made for each run. So the lists grow that a forward keeps for its backward.
//!
//! Those that it copies with another item in a place, or without the last one, as gradients of lists are, are written to in the
//! same way: the loop begins with a copy of its own.

use super::Context;
use super::variables::put;
use crate::diag::Result;
use crate::dialects::fusion::items::SET_ITEM;
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, ValueId};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        if graph.kind(op) != "prim::Loop" {
            continue;
        }
        for n in 0..graph.result_count(op) {
            let (growth, change) = (Growth::of(graph, op, n), Change::of(graph, op, n));
            if growth.is_none() && change.is_none() {
                continue;
            }
            if !context.step(|| format!("writes to list {n} that is carried by {}", graph.op_line(op))) {
                return Ok(changed);
            }
            if let Some(growth) = growth {
                growth.append(graph, op, n);
            } else if let Some(change) = change {
                change.write(graph, op, n);
            }
            changed = true;
        }
    }
    Ok(changed)
}

/// A list of which an iteration changes an item, or takes the last one away.
struct Change {
    param: ValueId,
    body: BlockId,
    /// The op that makes the other list.
    made: OpId,
    /// Whether it is one without the last item.
    shortens: bool,
}

impl Change {
    fn of(graph: &Graph, op: OpId, n: usize) -> Option<Change> {
        let &[body] = graph.nested_blocks(op) else { return None };
        let param = *graph.params(body).get(n + 1)?;
        let left = *graph.block_results(body).get(n + 1)?;
        let made =
            graph.def_op(left).filter(|op| graph.parent(*op) == Some(body) && graph.has_one_use(left))?;
        let shortens = match graph.kind(made).as_str() {
            SET_ITEM => false,
            "aten::slice" if is_all_but_the_last(graph, made, param) => true,
            _ => return None,
        };
        let is_read = |user: OpId| {
            let reads = matches!(
                graph.kind(user).as_str(),
                "aten::len" | "aten::__getitem__" | "aten::slice" | "aten::add" | "aten::list"
            );
            // The last item goes at the end of the iteration, another is set where the op stands.
            reads && (shortens || graph.ancestor_in(user, body).is_some_and(|at| graph.is_before(at, made)))
        };
        let is_own = graph.operand(made, 0) == Some(param)
            && graph.operands(made).iter().skip(1).all(|value| *value != param)
            && graph.uses(param).all(|used| used.op == made || is_read(used.op));
        is_own.then_some(Change { param, body, made, shortens })
    }

    fn write(self, graph: &mut Graph, op: OpId, n: usize) {
        let ty = graph.ty(self.param).clone();
        if let Some(start) = graph.operand(op, n + 2) {
            let own = put(graph, op, "aten::list", &[start], &ty);
            graph.set_operand(op, n + 2, own);
        }
        if !self.shortens {
            let operands = graph.operands(self.made).to_vec();
            let set = put(graph, self.made, "aten::_set_item", &operands, &ty);
            graph.replace_op(self.made, &[set]);
            return;
        }
        let end = graph.terminator(self.body);
        let last = put(graph, end, "prim::Constant", &[], &Type::int());
        if let Some(constant) = graph.def_op(last) {
            graph.set_attr(constant, "value", Attr::Int(-1));
        }
        // Of an empty list nothing is left out.
        let zero = put(graph, end, "prim::Constant", &[], &Type::int());
        if let Some(constant) = graph.def_op(zero) {
            graph.set_attr(constant, "value", Attr::Int(0));
        }
        let len = put(graph, end, "aten::len", &[self.param], &Type::int());
        let has_one = put(graph, end, "aten::gt", &[len, zero], &Type::bool());
        let choice = graph.create(Symbol::new("prim::If"), &[has_one], &[]);
        graph.insert_before(choice, end);
        let (yes, _) = (graph.add_block(choice), graph.add_block(choice));
        let delete = graph.create(Symbol::new("aten::Delete"), &[self.param, last], &[]);
        graph.set_location_id(delete, graph.location_id(self.made));
        graph.append(yes, delete);
        graph.replace_op(self.made, &[self.param]);
    }
}

/// Whether an op gives a list but for its last item: `list[:len(list) - 1]`.
fn is_all_but_the_last(graph: &Graph, slice: OpId, list: ValueId) -> bool {
    let constant = |value: Option<ValueId>| {
        let op =
            value.and_then(|value| graph.def_op(value)).filter(|op| graph.kind(*op) == "prim::Constant")?;
        Some(graph.attr(op, "value").cloned().unwrap_or(Attr::None))
    };
    let begins = matches!(constant(graph.operand(slice, 1)), Some(Attr::None | Attr::Int(0)));
    let is_every = constant(graph.operand(slice, 3)) == Some(Attr::Int(1));
    let end = graph.operand(slice, 2).and_then(|end| graph.def_op(end));
    let is_end = end.is_some_and(|sub| {
        let len = graph.operand(sub, 0).and_then(|len| graph.def_op(len));
        graph.kind(sub) == "aten::sub"
            && constant(graph.operand(sub, 1)) == Some(Attr::Int(1))
            && len.is_some_and(|len| graph.kind(len) == "aten::len" && graph.operand(len, 0) == Some(list))
    });
    begins && is_every && is_end
}

/// A list that grows by an item per iteration.
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
