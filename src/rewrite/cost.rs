//! What an op costs: one each, the bytes that it moves, or the time that it takes by rates measured once.

use crate::analysis::facts;
use crate::dialects::{Effects, Family, Op, Registry, resolve};
use crate::ir::{Graph, OpId, Type, TypeKind};

/// A cost model. All give whole numbers, so that the same graph costs the same everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CostModel {
    /// Each op costs 1; constants are free.
    #[default]
    Ops,
    /// Bytes read and written; views and numbers cost a word.
    Bytes,
    /// Nanoseconds: a call, and elements or multiplications at measured rates.
    Time,
}

/// Bytes of a tensor of which nothing is known.
const UNKNOWN_BYTES: u64 = 4096;
/// Nanoseconds of dispatching an op.
const CALL: u64 = 300;
/// Bytes that an elementwise op moves in a nanosecond (one core, cached; measured with `flambeau bench`).
const BYTES_PER_NS: u64 = 8;
/// Multiplications of a contraction in a nanosecond.
const PRODUCTS_PER_NS: u64 = 16;

impl CostModel {
    /// What an op costs with operands and a result of these types.
    pub fn cost(self, op: &Op, operands: &[&Type], result: &Type) -> u64 {
        let family = op.def().family;
        match self {
            CostModel::Ops => 1,
            CostModel::Bytes => moved(family, operands, result),
            CostModel::Time => {
                let work = match family {
                    Family::Contraction => products(operands, result) / PRODUCTS_PER_NS,
                    _ => moved(family, operands, result) / BYTES_PER_NS,
                };
                let call = if matches!(family, Family::Host | Family::Container) { CALL / 10 } else { CALL };
                call + work
            }
        }
    }

    /// The model of a name on the command line.
    pub fn named(name: &str) -> Option<CostModel> {
        [CostModel::Ops, CostModel::Bytes, CostModel::Time].into_iter().find(|model| model.name() == name)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            CostModel::Ops => "ops",
            CostModel::Bytes => "bytes",
            CostModel::Time => "time",
        }
    }
}

/// What an op of a graph costs, and whether it may be erased when unused. One with blocks stays.
pub(in crate::rewrite) fn cost_of(
    registry: &Registry,
    graph: &Graph,
    model: CostModel,
    op: OpId,
) -> (u64, bool) {
    let (row, may_go) = if graph.nested_blocks(op).is_empty() {
        let known = facts(registry, graph, op);
        let stays = Effects::WRITES_WORLD | Effects::RANDOM | Effects::NEVER_RETURNS;
        (known.op, !known.writes && !known.effects.intersects(stays))
    } else {
        (resolve(registry, graph, op).ok(), false)
    };
    let cost = match &row {
        _ if graph.kind(op) == "prim::Constant" => 0,
        None => 1,
        Some(row) => {
            let operands: Vec<&Type> = graph.operands(op).iter().map(|v| graph.ty(*v)).collect();
            let none = Type::none();
            let result = graph.result(op, 0);
            model.cost(row, &operands, result.map_or(&none, |v| graph.ty(v)))
        }
    };
    (cost, may_go)
}

fn moved(family: Family, operands: &[&Type], result: &Type) -> u64 {
    if matches!(family, Family::View | Family::Host | Family::Container | Family::Control) {
        return 8;
    }
    operands.iter().map(|ty| bytes(ty)).sum::<u64>().saturating_add(bytes(result))
}

fn bytes(ty: &Type) -> u64 {
    match ty.kind() {
        TypeKind::Tensor(t) => {
            let size = t.dtype.map_or(4, |d| d.size() as u64);
            numel(ty).map_or(UNKNOWN_BYTES, |n| n.saturating_mul(size))
        }
        _ => 8,
    }
}

fn numel(ty: &Type) -> Option<u64> {
    let sizes = ty.as_tensor()?.sizes.as_ref()?;
    sizes.iter().try_fold(1u64, |n, d| Some(n.saturating_mul(u64::try_from(d.known()?).ok()?)))
}

/// Multiplications of a matrix product: elements of the result times the length of a row of the first operand.
fn products(operands: &[&Type], result: &Type) -> u64 {
    let row = operands.iter().filter_map(|ty| ty.as_tensor()?.sizes.as_ref()?.last()?.known()).max();
    let out = numel(result).unwrap_or(UNKNOWN_BYTES / 4);
    out.saturating_mul(row.and_then(|n| u64::try_from(n).ok()).unwrap_or(64))
}
