//! Products that a loop sums over its iterations become one product after it: `s = s + a b` in each is the product of what the
//! `a` and the `b` of all iterations are joined to, along the summed dimension. So the gradient of a weight that all use takes
//! one product, as where a loop is unrolled (`batch-mm`). The sum may begin with a tensor, or with None, as gradients do.
//!
//! The condition: what is summed is seen by nothing but the sum, both factors are made in the iteration, and keeping them takes
//! less memory than the product has, as far as types determine it. The order of summation changes, so that results are equal up
//! to rounding.

use super::Context;
use super::variables::put;
use crate::diag::Result;
use crate::ir::{Attr, BlockId, Dim, Graph, OpId, Symbol, Type, TypeKind, ValueId};

const IF: &str = "prim::If";

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        if graph.kind(op) != "prim::Loop" {
            continue;
        }
        for n in (0..graph.result_count(op)).rev() {
            let Some(sum) = Sum::of(graph, op, n) else { continue };
            if !context.step(|| format!("makes one product of {}", graph.op_line(sum.product).trim())) {
                return Ok(changed);
            }
            sum.behind(graph, op, n);
            changed = true;
        }
    }
    Ok(changed)
}

/// A sum of products that a loop carries.
struct Sum {
    product: OpId,
    body: BlockId,
    /// The value that the loop carries, where it is a tensor from the start: what it begins with.
    start: Option<ValueId>,
}

impl Sum {
    fn of(graph: &Graph, op: OpId, n: usize) -> Option<Sum> {
        let &[body] = graph.nested_blocks(op) else { return None };
        let param = *graph.params(body).get(n + 1)?;
        let left = *graph.block_results(body).get(n + 1)?;
        let start = graph.operand(op, n + 2)?;
        let maker = graph.def_op(left).filter(|_| graph.has_one_use(left))?;
        let (product, start) = match graph.kind(maker).as_str() {
            "aten::add" => (added_to(graph, maker, param)?, Some(start)),
            IF => {
                let is_none = graph.def_op(start).is_some_and(|op| {
                    graph.kind(op) == "prim::Constant"
                        && matches!(graph.attr(op, "value"), None | Some(Attr::None))
                });
                (is_none.then(|| added_where_given(graph, maker, left, param))??, None)
            }
            _ => return None,
        };
        let product = graph.def_op(product).filter(|op| graph.kind(*op) == "aten::mm")?;
        let is_made = |value: &ValueId| graph.def_block(*value) == Some(body);
        let is_here = graph.parent(product) == Some(body) && graph.parent(maker) == Some(body);
        (is_here && graph.operands(product).iter().all(is_made) && is_worth(graph, product)).then_some(Sum {
            product,
            body,
            start,
        })
    }

    fn behind(self, graph: &mut Graph, op: OpId, n: usize) {
        let list = Type::list(Type::tensor());
        let factors = graph.operands(self.product).to_vec();
        let mut kept = Vec::new();
        for (factor, dim) in factors.into_iter().zip([1, 0]) {
            let (value, is_turned) = turned(graph, factor);
            let empty = put(graph, op, "prim::ListConstruct", &[], &list);
            graph.add_operand(op, empty);
            let param = graph.add_param(self.body, list.clone());
            let end = graph.terminator(self.body);
            let one = put(graph, end, "prim::ListConstruct", &[value], &list);
            let longer = put(graph, end, "aten::add", &[param, one], &list);
            graph.add_block_result(self.body, longer);
            let all = graph.add_result(op, list.clone());
            kept.push((all, if is_turned { 1 - dim } else { dim }, is_turned));
        }
        let product = self.joined(graph, op, &kept);
        let Some(former) = graph.result(op, n) else { return };
        graph.replace_all_uses(former, product);
        self.drop_carried(graph, op, n);
    }

    /// Makes the product after the loop, if it ran an iteration.
    fn joined(&self, graph: &mut Graph, op: OpId, kept: &[(ValueId, i64, bool)]) -> ValueId {
        let ty = graph.ty(graph.results(self.product)[0]).clone();
        // In front of what follows the loop: a constant that the others are put after.
        let next = graph.create(Symbol::new("prim::Constant"), &[], &[Type::int()]);
        graph.set_attr(next, "value", Attr::Int(0));
        graph.set_location_id(next, graph.location_id(self.product));
        graph.insert_after(next, op);
        let zero = graph.results(next)[0];
        let choice = graph.create(Symbol::new(IF), &[], &[]);
        graph.set_location_id(choice, graph.location_id(self.product));
        graph.insert_after(choice, next);
        let len = put(graph, choice, "aten::len", &[kept[0].0], &Type::int());
        let has_iterations = put(graph, choice, "aten::gt", &[len, zero], &Type::bool());
        graph.add_operand(choice, has_iterations);
        let (yes, no) = (graph.add_block(choice), graph.add_block(choice));
        let end = graph.terminator(yes);
        let mut factors = Vec::new();
        for (list, dim, is_turned) in kept {
            let dim = number(graph, end, *dim);
            let mut all = put(graph, end, "aten::cat", &[*list, dim], &Type::tensor());
            if *is_turned {
                all = put(graph, end, "aten::t", &[all], &Type::tensor());
            }
            factors.push(all);
        }
        let mut product = put(graph, end, "aten::mm", &factors, &ty);
        let mut ty = ty;
        let none = match self.start {
            Some(start) => {
                let one = number(graph, end, 1);
                product = put(graph, end, "aten::add", &[start, product, one], &ty);
                start
            }
            None => {
                ty = Type::optional(Type::tensor());
                let end = graph.terminator(no);
                let none = put(graph, end, "prim::Constant", &[], &ty);
                if let Some(op) = graph.def_op(none) {
                    graph.set_attr(op, "value", Attr::None);
                }
                none
            }
        };
        graph.add_block_result(yes, product);
        graph.add_block_result(no, none);
        graph.add_result(choice, ty)
    }

    fn drop_carried(&self, graph: &mut Graph, op: OpId, n: usize) {
        let left = graph.block_results(self.body).get(n + 1).and_then(|left| graph.def_op(*left));
        graph.remove_block_result(self.body, n + 1);
        if let Some(sum) = left {
            let condition =
                graph.operand(sum, 0).filter(|_| graph.kind(sum) == IF).and_then(|c| graph.def_op(c));
            graph.erase(sum);
            if let Some(condition) = condition.filter(|op| !graph.has_uses(graph.results(*op)[0])) {
                graph.erase(condition);
            }
        }
        graph.erase(self.product);
        graph.remove_param(self.body, n + 1);
        graph.remove_operand(op, n + 2);
        graph.remove_result(op, n);
    }
}

/// The product of `product + param`, which nothing else uses.
fn added_to(graph: &Graph, add: OpId, param: ValueId) -> Option<ValueId> {
    let product = addend(graph, add, param)?;
    (graph.has_one_use(param) && graph.has_one_use(product)).then_some(product)
}

/// The other operand of a sum of one of a value, with a factor of 1.
fn addend(graph: &Graph, add: OpId, value: ValueId) -> Option<ValueId> {
    let &[a, b, factor] = graph.operands(add) else { return None };
    let factor = graph.def_op(factor).and_then(|op| graph.attr(op, "value"));
    let other = if a == value { b } else { a };
    let is_sum = graph.kind(add) == "aten::add" && (a == value) != (b == value);
    (is_sum && factor == Some(&Attr::Int(1))).then_some(other)
}

/// The product of `product if param is None else product + param`, which nothing else uses.
fn added_where_given(graph: &Graph, choice: OpId, left: ValueId, param: ValueId) -> Option<ValueId> {
    let &[yes, no] = graph.nested_blocks(choice) else { return None };
    let condition = graph.def_op(graph.operand(choice, 0)?)?;
    let (given, otherwise) = match graph.kind(condition).as_str() {
        "aten::__isnot__" => (yes, no),
        "aten::__is__" => (no, yes),
        _ => return None,
    };
    let none = graph.operand(condition, 1)?;
    let asks = graph.operand(condition, 0) == Some(param) && *graph.ty(none).kind() == TypeKind::None;
    let (&[sum], &[product]) = (graph.block_results(given), graph.block_results(otherwise)) else {
        return None;
    };
    let add = graph.def_op(sum).filter(|op| graph.parent(*op) == Some(given))?;
    let cast = graph.operands(add).iter().find_map(|value| {
        let op = graph.def_op(*value)?;
        (graph.kind(op) == "prim::unchecked_cast" && graph.operand(op, 0) == Some(param)).then_some(*value)
    })?;
    let is_alone = graph.uses(param).count() == 2
        && graph.uses(product).count() == 2
        && graph.has_one_use(cast)
        && graph.has_one_use(left)
        && graph.results(choice).len() == 1;
    (asks && is_alone && addend(graph, add, cast)? == product).then_some(product)
}

/// A factor, or what it is the transpose of.
fn turned(graph: &Graph, factor: ValueId) -> (ValueId, bool) {
    let op = graph.def_op(factor).filter(|op| graph.kind(*op) == "aten::t");
    match op.and_then(|op| graph.operand(op, 0)) {
        Some(whole) => (whole, true),
        None => (factor, false),
    }
}

/// Whether both factors together have fewer elements than the product.
fn is_worth(graph: &Graph, product: OpId) -> bool {
    let numel = |value: ValueId| {
        let sizes = graph.ty(value).as_tensor()?.sizes.as_ref()?;
        sizes.iter().map(|d| if let Dim::Known(n) = d { Some(*n) } else { None }).product::<Option<i64>>()
    };
    let factors: Option<i64> = graph.operands(product).iter().map(|value| numel(*value)).sum();
    let result = graph.result(product, 0).and_then(numel);
    factors.zip(result).is_some_and(|(factors, result)| factors <= result)
}

fn number(graph: &mut Graph, before: OpId, n: i64) -> ValueId {
    let value = put(graph, before, "prim::Constant", &[], &Type::int());
    if let Some(op) = graph.def_op(value) {
        graph.set_attr(op, "value", Attr::Int(n));
    }
    value
}
