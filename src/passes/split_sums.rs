//! Splits sums of what a fusion group can compute in two: sums that the group makes on its way along rows, and a sum of those,
//! which are few. So what is summed needs not be stored and read again.
//!
//! A sum over the first dimensions, which is what gradients of biases and of broadcast operands are, becomes
//! `fusion::block_sums` of blocks of rows and their sum. A sum or mean of all elements, which is what losses are, becomes sums
//! of rows and their sum. Only float32 on the CPU whose sizes and strides are known, row-major, of at least [`MIN_ELEMENTS`]
//! elements; nothing may write to what is summed. The order of summation changes, so that results are equal up to rounding.

use super::fuse::is_fusible;
use super::fuse_rows::dims_of;
use super::layer_parts::{float_sizes, is_none, known_strides};
use super::{Context, constants};
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::dialects::fusion::sums::BLOCK_SUMS;
use crate::dialects::shapes::layouts;
use crate::dialects::shapes::reductions::blocks;
use crate::ir::{Dim, Graph, OpId, Symbol, TensorType, Type, TypeKind, ValueId};
use crate::tensor::contiguous_strides;
use crate::value::Value;
use hashbrown::HashMap;
use std::sync::Arc;

/// Sums of fewer elements stay.
const MIN_ELEMENTS: i64 = 1 << 14;
/// Rows of a block: few enough for sums in single precision, and for all cores to have blocks.
const BLOCK_ROWS: i64 = 32;
/// Shorter rows stay: their sums would not vectorize.
const MIN_LENGTH: i64 = 16;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let db = AliasDb::new(context.registry, Some(context.module), graph);
    let mut made: HashMap<(ValueId, usize), ValueId> = HashMap::new();
    let mut changed = false;
    for op in graph.all_ops() {
        let Some(found) = sum_of(graph, context, &db, op) else { continue };
        if !context.step(|| format!("splits {}", graph.op_line(op))) {
            break;
        }
        match found.dims {
            Some(dims) => {
                let parts = made.get(&(found.summed, dims)).copied();
                // Sums that stand in other blocks are not seen from here.
                let parts = parts.filter(|parts| {
                    graph.def_op(*parts).is_some_and(|def| graph.parent(def) == graph.parent(op))
                });
                let parts = match parts {
                    Some(parts) => parts,
                    None => block_sums(graph, op, &found, dims),
                };
                made.insert((found.summed, dims), parts);
                sum_blocks(graph, op, parts);
            }
            None => sum_rows(graph, op, &found),
        }
        changed = true;
    }
    Ok(changed)
}

/// A sum to split.
struct Sum {
    summed: ValueId,
    sizes: Vec<i64>,
    /// How many of the first dimensions go; None where all of them go.
    dims: Option<usize>,
    is_mean: bool,
}

fn sum_of(graph: &Graph, context: &Context<'_>, db: &AliasDb, op: OpId) -> Option<Sum> {
    let is_mean = graph.kind(op) == *"aten::mean";
    if !is_mean && graph.kind(op) != *"aten::sum" {
        return None;
    }
    let summed = graph.operand(op, 0)?;
    let sizes = float_sizes(graph, summed)?;
    let fusible = graph.def_op(summed).is_some_and(|def| is_fusible(graph, context, def));
    let dense = known_strides(graph, summed)?[..] == contiguous_strides(&sizes)[..];
    let fits = sizes.len() >= 2 && sizes.iter().product::<i64>() >= MIN_ELEMENTS;
    if !fusible || !dense || !fits || db.has_writers(summed) || graph.result_count(op) != 1 {
        return None;
    }
    let dims = match graph.operands(op) {
        [_, dtype] => Some(None).filter(|_| is_none(graph, *dtype)),
        [_, dims, keepdim, dtype] if !is_mean && is_none(graph, *dtype) => {
            let first = first_dims(&dims_of(graph, context, *dims)?, sizes.len())?;
            let keeps = constants::bool_of(graph, *keepdim)?;
            (first == 1 || !keeps).then_some(Some(first))
        }
        _ => None,
    }?;
    let (rows, length) = sizes.split_at(dims.unwrap_or(sizes.len() - 1));
    let (rows, length): (i64, i64) = (rows.iter().product(), length.iter().product());
    let pays = length >= MIN_LENGTH && (dims.is_none() || rows >= 2 * BLOCK_ROWS);
    pays.then_some(Sum { summed, sizes, dims, is_mean })
}

/// How many dimensions a list names, if these are the first ones, but not all.
fn first_dims(dims: &[i64], rank: usize) -> Option<usize> {
    let mut wrapped: Vec<i64> =
        dims.iter().map(|dim| if *dim < 0 { dim + rank as i64 } else { *dim }).collect();
    wrapped.sort_unstable();
    let first = !dims.is_empty() && dims.len() < rank;
    (first && wrapped.iter().copied().eq(0..dims.len() as i64)).then_some(dims.len())
}

/// Sums of blocks of rows of what is summed, before the sum.
fn block_sums(graph: &mut Graph, op: OpId, found: &Sum, dims: usize) -> ValueId {
    let count = constants::insert_int(graph, op, dims as i64);
    let rows = constants::insert_int(graph, op, BLOCK_ROWS);
    let (gone, rest) = found.sizes.split_at(dims);
    let sizes = [&[blocks(gone.iter().product(), BLOCK_ROWS)], rest].concat();
    let ty = dense(graph, found.summed, &sizes);
    emit(graph, op, BLOCK_SUMS, &[found.summed, count, rows], ty)
}

/// Makes the sum one of the blocks' sums.
fn sum_blocks(graph: &mut Graph, op: OpId, parts: ValueId) {
    let zero = Value::ints([0]);
    if let Some(dims) = constants::insert_before(graph, op, &zero) {
        graph.set_operand(op, 0, parts);
        graph.set_operand(op, 1, dims);
    }
}

/// Makes the sum or mean of all elements one of the rows' sums.
fn sum_rows(graph: &mut Graph, op: OpId, found: &Sum) {
    let (Some(last), Some(drop)) = (
        constants::insert_before(graph, op, &Value::ints([-1])),
        constants::insert_before(graph, op, &Value::Bool(false)),
    ) else {
        return;
    };
    let Some(none) = graph.operand(op, 1) else { return };
    let ty = dense(graph, found.summed, &found.sizes[..found.sizes.len() - 1]);
    let rows = emit(graph, op, "aten::sum", &[found.summed, last, drop, none], ty);
    if !found.is_mean {
        graph.set_operand(op, 0, rows);
        return;
    }
    let ty = dense(graph, found.summed, &[]);
    let sum = emit(graph, op, "aten::sum", &[rows, none], ty.clone());
    let count = constants::insert_int(graph, op, found.sizes.iter().product());
    let mean = emit(graph, op, "aten::div", &[sum, count], ty);
    let name = graph.result(op, 0).and_then(|value| graph.name(value)).map(str::to_string);
    graph.replace_op(op, &[mean]);
    name.into_iter().for_each(|name| graph.set_name(mean, &name));
}

fn emit(graph: &mut Graph, before: OpId, kind: &str, operands: &[ValueId], ty: Type) -> ValueId {
    let op = graph.create(Symbol::new(kind), operands, &[ty]);
    graph.set_location_id(op, graph.location_id(before));
    graph.insert_before(op, before);
    // An op made with one result type has one result.
    graph.results(op)[0]
}

/// The type of a value like another, row-major, of these sizes.
fn dense(graph: &Graph, like: ValueId, sizes: &[i64]) -> Type {
    let TypeKind::Tensor(ty) = graph.ty(like).kind() else { return Type::tensor() };
    let strides = layouts::strides(&contiguous_strides(sizes));
    let sizes: Vec<Dim> = sizes.iter().map(|size| Dim::Known(*size)).collect();
    Type::new(TypeKind::Tensor(TensorType {
        sizes: Some(Arc::from(sizes)),
        strides: Some(strides),
        ..TensorType::clone(ty)
    }))
}
