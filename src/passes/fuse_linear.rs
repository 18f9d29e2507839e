//! Finds `linear`: a product with a transposed weight, with or without a bias.
//!
//! `addmm(b, x, t(w))` and `matmul(x, t(w))` become `linear(x, t(t(w)), b)`, by definition of linear; `t(t(w))` is `w`,
//! so that a weight that was transposed for the product is used as it is. Other products stay, as a weight would have
//! to be transposed for them. A product whose sum with the bias is written in place is taken only if the product has no
//! other use.
//!
//! As in PyTorch's pass, the linear stands behind the last of its operands, which moves it up; where an op on the way
//! writes, it stands where the product did. That placement is why these patterns are not a group of rules.

use super::{Context, constants};
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::ir::{BlockId, Graph, OpId, Symbol, Type, ValueDef, ValueId};
use crate::value::Value;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    // Ops that are made here write nothing, so that one analysis serves for all of the pass.
    let aliases = context.analysis::<AliasDb>(graph);
    for rule in [addmm, matmul_add, matmul, transposed_twice, called] {
        for op in graph.all_ops() {
            // A rule says whether it applied once it has, when the op is gone.
            if graph.is_live(op) && !context.is_spent() {
                let kind = graph.kind(op);
                if rule(graph, &aliases, op) {
                    context.step(|| format!("makes linear of {kind}"));
                    changed = true;
                }
            }
        }
    }
    Ok(changed)
}

fn is_one(graph: &Graph, value: ValueId) -> bool {
    matches!(constants::value_of(graph, value), Some(Value::Int(1)))
}

/// Whether a value was transposed in sight.
fn is_transposed(graph: &Graph, value: ValueId) -> bool {
    graph.def_op(value).is_some_and(|def| graph.kind(def) == "aten::t")
}

fn addmm(graph: &mut Graph, aliases: &AliasDb, op: OpId) -> bool {
    let &[bias, input, weight, beta, alpha] = graph.operands(op) else { return false };
    let plain = is_one(graph, beta) && is_one(graph, alpha) && is_transposed(graph, weight);
    if graph.kind(op) != "aten::addmm" || !plain {
        return false;
    }
    linear(graph, aliases, op, input, weight, Some(bias), &[beta, alpha]);
    graph.erase(op);
    true
}

fn matmul_add(graph: &mut Graph, aliases: &AliasDb, op: OpId) -> bool {
    let &[product, bias, alpha] = graph.operands(op) else { return false };
    if graph.kind(op) != "aten::add_" || !is_one(graph, alpha) || !graph.has_one_use(product) {
        return false;
    }
    let Some(matmul) = graph.def_op(product).filter(|def| graph.kind(*def) == "aten::matmul") else {
        return false;
    };
    let &[input, weight] = graph.operands(matmul) else { return false };
    let fits = graph.ty(bias).is_tensor() && is_transposed(graph, weight);
    if graph.parent(matmul) != graph.parent(op) || !fits || writes_between(graph, aliases, matmul, op) {
        return false;
    }
    linear(graph, aliases, op, input, weight, Some(bias), &[alpha]);
    graph.erase(op);
    graph.erase(matmul);
    true
}

fn matmul(graph: &mut Graph, aliases: &AliasDb, op: OpId) -> bool {
    let &[input, weight] = graph.operands(op) else { return false };
    if graph.kind(op) != "aten::matmul" || !is_transposed(graph, weight) {
        return false;
    }
    linear(graph, aliases, op, input, weight, None, &[]);
    graph.erase(op);
    true
}

fn transposed_twice(graph: &mut Graph, aliases: &AliasDb, op: OpId) -> bool {
    let &[input, weight, bias] = graph.operands(op) else { return false };
    let transpose = |value: ValueId| {
        let def = graph.def_op(value).filter(|def| graph.kind(*def) == "aten::t")?;
        let alone = graph.parent(def) == graph.parent(op) && graph.result_count(def) == 1;
        (alone && graph.has_one_use(value)).then_some((def, graph.operand(def, 0)?))
    };
    let Some((outer, middle)) = transpose(weight) else { return false };
    let Some((inner, original)) = transpose(middle) else { return false };
    if graph.kind(op) != "aten::linear" {
        return false;
    }
    let after = last(graph, &[input, original, bias]);
    if !replace(graph, aliases, op, after, &[input, original, bias]) {
        return false;
    }
    for old in [op, outer, inner] {
        graph.erase(old);
    }
    true
}

/// `torch.nn.functional.linear`, called as a function.
fn called(graph: &mut Graph, aliases: &AliasDb, op: OpId) -> bool {
    let &[function, input, weight, bias] = graph.operands(op) else { return false };
    let name = constants::constant_op(graph, function)
        .and_then(|def| graph.attr(def, "name"))
        .and_then(|name| name.as_str().map(|name| name == "linear"));
    if graph.kind(op) != "prim::CallFunction" || name != Some(true) {
        return false;
    }
    let after = last(graph, &[function, input, weight, bias]);
    if replace(graph, aliases, op, after, &[input, weight, bias]) {
        graph.erase(op);
        return true;
    }
    false
}

/// Puts `linear(input, t(weight), bias)` after the last of its operands and lets it take the op's place.
fn linear(
    graph: &mut Graph,
    aliases: &AliasDb,
    op: OpId,
    input: ValueId,
    weight: ValueId,
    bias: Option<ValueId>,
    others: &[ValueId],
) -> bool {
    let mut operands = vec![input, weight];
    operands.extend(bias);
    operands.extend_from_slice(others);
    let after = last(graph, &operands);
    let location = graph.location_id(op);
    let anchor = anchor(graph, aliases, op, after);
    let transpose = graph.create(Symbol::new("aten::t"), &[weight], &[Type::tensor()]);
    graph.set_location_id(transpose, location);
    let none = bias.unwrap_or_else(|| {
        let none = constants::insert_none(graph, anchor, Type::optional(Type::tensor()));
        graph.results(none)[0]
    });
    graph.insert_before(transpose, anchor);
    let types: Vec<Type> = graph.results(op).iter().map(|value| graph.ty(*value).clone()).collect();
    let new = graph.create(Symbol::new("aten::linear"), &[input, graph.results(transpose)[0], none], &types);
    graph.set_location_id(new, location);
    graph.insert_before(new, anchor);
    for (old, value) in graph.results(op).into_iter().zip(graph.results(new)) {
        graph.replace_all_uses(old, value);
    }
    true
}

/// Puts a linear behind `after` in the place of an op.
fn replace(graph: &mut Graph, aliases: &AliasDb, op: OpId, after: Place, operands: &[ValueId]) -> bool {
    let types: Vec<Type> = graph.results(op).iter().map(|value| graph.ty(*value).clone()).collect();
    let new = graph.create(Symbol::new("aten::linear"), operands, &types);
    graph.set_location_id(new, graph.location_id(op));
    let anchor = anchor(graph, aliases, op, after);
    graph.insert_before(new, anchor);
    for (old, value) in graph.results(op).into_iter().zip(graph.results(new)) {
        graph.replace_all_uses(old, value);
    }
    true
}

/// After an op, or at the start of a block.
#[derive(Clone, Copy)]
enum Place {
    Behind(OpId),
    Start(BlockId),
}

/// Where the last of the values is defined. All are visible in one place, so that they are ordered.
fn last(graph: &Graph, values: &[ValueId]) -> Place {
    let mut found = Place::Start(graph.root());
    for value in values {
        let here = match graph.def(*value) {
            ValueDef::Result(op, _) => Place::Behind(op),
            ValueDef::Param(block, _) => Place::Start(block),
        };
        if is_later(graph, here, found) {
            found = here;
        }
    }
    found
}

fn is_later(graph: &Graph, a: Place, b: Place) -> bool {
    let block = |place: Place| match place {
        Place::Behind(op) => graph.parent(op),
        Place::Start(block) => Some(block),
    };
    let (Some(block_a), Some(block_b)) = (block(a), block(b)) else { return false };
    if block_a != block_b {
        return graph.is_within(block_a, block_b);
    }
    match (a, b) {
        (Place::Behind(a), Place::Behind(b)) => graph.is_before(b, a),
        (Place::Behind(_), Place::Start(_)) => true,
        (Place::Start(_), _) => false,
    }
}

/// The op before which something that takes an op's place stands: behind `place`, but at the op itself where something on
/// the way writes.
fn anchor(graph: &Graph, aliases: &AliasDb, op: OpId, place: Place) -> OpId {
    let (block, first) = match place {
        Place::Behind(before) => {
            (graph.parent(before), graph.next(before).unwrap_or_else(|| end_of(graph, before)))
        }
        Place::Start(block) => {
            (Some(block), graph.first_op(block).unwrap_or_else(|| graph.terminator(block)))
        }
    };
    // An op of an inner block goes to the outer one only if nothing writes at all.
    let written = match graph.parent(op) == block {
        true => first != op && (aliases.writes(first) || writes_between(graph, aliases, first, op)),
        false => graph.all_ops().into_iter().any(|op| aliases.writes(op)),
    };
    if written { op } else { first }
}

/// Whether an op between two of one block may write.
fn writes_between(graph: &Graph, aliases: &AliasDb, from: OpId, to: OpId) -> bool {
    std::iter::successors(graph.next(from), |op| graph.next(*op))
        .take_while(|op| *op != to)
        .any(|op| aliases.writes(op))
}

fn end_of(graph: &Graph, op: OpId) -> OpId {
    graph.parent(op).map_or(op, |block| graph.terminator(block))
}
