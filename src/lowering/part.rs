//! A part of a plan: one launch over dimensions that are merged, what its kernel is specialized for, and what the launch is
//! given. Does not know how a group is divided into parts.

use super::group::GroupProgram;
use super::nest::{Nest, NestRows, RowStore, Stride, Target};
use crate::dialects::scalar::{Inst, Program, Sv};
use crate::dialects::shapes::reductions::blocks;
use crate::tensor::{DType, Layout};
use smallvec::SmallVec;

/// One buffer of a launch: which tensor, and the layout through which the launch sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Output of the group for stores, or after the last of these a write; input for loads.
    pub tensor: usize,
    /// First element, counted in elements of the storage.
    pub offset: usize,
    /// Stride of each merged dimension.
    pub strides: SmallVec<[i64; 4]>,
}

/// One launch of one kernel: all pieces that have the same sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Pieces of the group that it stores, in order of the stores.
    pub pieces: SmallVec<[usize; 4]>,
    /// Stores.
    pub stores: Vec<Access>,
    /// Loads, one for each of the group's that the pieces need; `used` says which.
    pub loads: Vec<Access>,
    /// Which of the group's loads; after those of `loads` come those of `in_place`.
    pub used: Vec<usize>,
    /// Stores through whose buffers inputs are read that they write to, one for each such load.
    pub in_place: SmallVec<[usize; 2]>,
    /// Merged sizes, at least one dimension.
    pub sizes: SmallVec<[i64; 4]>,
    /// What is combined along rows; the last dimension is a row then.
    pub rows: Option<RowPart>,
}

/// The rows of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct RowPart {
    /// Which of the group's reductions.
    pub reductions: SmallVec<[usize; 4]>,
    /// What each store keeps of a row.
    pub stores: SmallVec<[RowStore; 4]>,
    /// Rows of a block, where sums of blocks are stored.
    pub block: Option<i64>,
}

/// What a kernel is specialized for, besides the dtypes of the group: which pieces it stores and the pattern
/// of strides.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Pieces.
    pub pieces: SmallVec<[usize; 4]>,
    /// Patterns of stores, then loads, dimension by dimension.
    pub pattern: Vec<Stride>,
    /// Merged dimensions.
    pub rank: usize,
    /// With rows: what each store keeps of a row.
    pub rows: Option<SmallVec<[RowStore; 4]>>,
    /// Stores through whose buffers inputs are read.
    pub in_place: SmallVec<[usize; 2]>,
}

/// Orders dimensions by the first store's memory, drops those of size 1 and merges neighbours wherever every
/// access steps through both as through one.
pub(super) fn merge(
    domain: &[i64],
    accesses: &[(usize, Layout)],
) -> (SmallVec<[i64; 4]>, Vec<SmallVec<[i64; 4]>>) {
    let mut order: SmallVec<[usize; 6]> = (0..domain.len()).filter(|d| domain[*d] != 1).collect();
    if let Some((_, first)) = accesses.first() {
        order.sort_by_key(|d| std::cmp::Reverse(first.strides[*d]));
    }
    let mut sizes: SmallVec<[i64; 4]> = SmallVec::new();
    let mut strides: Vec<SmallVec<[i64; 4]>> = vec![SmallVec::new(); accesses.len()];
    for dim in order {
        let size = domain[dim];
        let merges = !sizes.is_empty()
            && accesses
                .iter()
                .zip(&strides)
                .all(|((_, layout), outer)| outer.last().copied() == layout.strides[dim].checked_mul(size));
        if merges {
            if let Some(last) = sizes.last_mut() {
                *last *= size;
            }
            for ((_, layout), outer) in accesses.iter().zip(&mut strides) {
                if let Some(last) = outer.last_mut() {
                    *last = layout.strides[dim];
                }
            }
        } else {
            sizes.push(size);
            for ((_, layout), outer) in accesses.iter().zip(&mut strides) {
                outer.push(layout.strides[dim]);
            }
        }
    }
    if sizes.is_empty() {
        // A single element: one dimension of size 1, all strides as if dense.
        sizes.push(1);
        strides.iter_mut().for_each(|s| s.push(1));
    }
    (sizes, strides)
}

fn pattern(strides: &[i64], rank: usize) -> impl Iterator<Item = Stride> + '_ {
    strides.iter().enumerate().map(move |(dim, stride)| match stride {
        0 => Stride::Zero,
        1 if dim + 1 == rank => Stride::One,
        _ => Stride::Dynamic,
    })
}

impl Part {
    /// What a kernel for this launch is specialized for.
    pub fn key(&self) -> Key {
        let rank = self.sizes.len();
        let accesses = self.stores.iter().chain(&self.loads);
        let pattern = accesses.flat_map(|a| pattern(&a.strides, rank)).collect();
        let rows = self.rows.as_ref().map(|rows| rows.stores.clone());
        Key { pieces: self.pieces.clone(), pattern, rank, rows, in_place: self.in_place.clone() }
    }

    /// The kernel before it is loops.
    pub fn nest(&self, group: &GroupProgram) -> Nest {
        let rank = self.sizes.len();
        let strides = |a: &Access| pattern(&a.strides, rank).collect::<Vec<Stride>>();
        // Keep what the pieces need, with parameters for the loads in use and all scalars.
        let reductions = self.rows.as_ref().map_or(&[][..], |rows| &rows.reductions);
        let stored = self.pieces.iter().map(|p| group.pieces[*p].value);
        let values: Vec<Sv> = stored.chain(reductions.iter().map(|r| group.reductions[*r].value)).collect();
        let (pruned, values) = group.program.pruned(&values);
        let mut program = Program::new();
        let loads: Vec<Sv> = self.used.iter().map(|l| program.param(group.loads[*l].dtype)).collect();
        let scalars: Vec<Sv> = group.scalars.iter().map(|(_, d)| program.param(*d)).collect();
        let totals: Vec<Sv> = reductions
            .iter()
            .map(|r| program.param(group.program.dtype(group.reductions[*r].value)))
            .collect();
        let count = self.rows.as_ref().map_or(Sv::ABSENT, |_| program.param(DType::F64));
        let known = |list: &[usize], values: &[Sv], n: usize| {
            // Every load that a piece reads is in use, and every reduction that it depends on.
            list.iter().position(|known| *known == n).map_or(Sv::ABSENT, |at| values[at])
        };
        let (first_scalar, first_total) = (group.loads.len(), group.loads.len() + group.scalars.len());
        let first_count = first_total + group.reductions.len();
        let param = |n: usize| match n {
            n if n < first_scalar => known(&self.used, &loads, n),
            n if n < first_total => scalars[n - first_scalar],
            n if n < first_count => known(reductions, &totals, n - first_total),
            _ => count,
        };
        let mut map: Vec<Sv> = Vec::with_capacity(pruned.insts().len());
        for (inst, dtype) in pruned.insts() {
            map.push(match inst {
                Inst::Param(n) => param(*n as usize),
                inst => program.push(inst.map_operands(|x| map[x.index()]), *dtype),
            });
        }
        let mut results: Vec<Sv> = values.iter().map(|v| map[v.index()]).collect();
        let combined = results.split_off(self.pieces.len());
        let combined = reductions.iter().zip(combined).map(|(r, value)| (group.reductions[*r].op, value));
        Nest {
            reductions: combined.collect(),
            rows: self.rows.as_ref().map(|rows| NestRows { stores: rows.stores.to_vec(), block: rows.block }),
            results,
            program,
            stores: self
                .pieces
                .iter()
                .zip(&self.stores)
                .map(|(p, a)| (group.stored_dtype(group.pieces[*p].output), strides(a)))
                .collect(),
            loads: self
                .used
                .iter()
                .zip(&self.loads)
                .map(|(l, a)| (group.loads[*l].dtype, strides(a)))
                .collect(),
            in_place: self.in_place.to_vec(),
            scalars: group.scalars.iter().map(|(_, d)| *d).collect(),
            rank,
        }
    }

    /// The integer parameters of the kernel in order: extent, sizes, the number of rows where blocks of them are summed, dynamic
    /// strides.
    pub fn integers(&self, target: Target) -> SmallVec<[i64; 12]> {
        let rank = self.sizes.len();
        let all: i64 = self.sizes.iter().product();
        let inner = self.sizes.last().copied().unwrap_or(1);
        let flat = self.rows.is_none() && (rank == 1 || target == Target::Gpu);
        let mut out: SmallVec<[i64; 12]> = SmallVec::new();
        let rows = all / inner.max(1);
        let block = self.rows.as_ref().and_then(|rows| rows.block);
        out.push(match block {
            Some(block) => blocks(rows, block),
            None if flat => all,
            None => rows,
        });
        out.extend(self.sizes.iter().skip(1).copied());
        out.extend(block.map(|_| rows));
        for access in self.stores.iter().chain(&self.loads) {
            let classes = pattern(&access.strides, rank);
            let dynamic = access.strides.iter().zip(classes).filter(|(_, c)| *c == Stride::Dynamic);
            out.extend(dynamic.map(|(s, _)| *s));
        }
        out
    }

    /// The sizes that a buffer is walked by: stores come first, and one of sums has a place for each block of rows.
    pub fn walked(&self, access: usize) -> SmallVec<[i64; 4]> {
        let mut sizes = self.sizes.clone();
        if let Some(RowPart { stores, block: Some(block), .. }) = &self.rows
            && stores.get(access) == Some(&RowStore::Sums)
            && let Some(first) = sizes.first_mut()
        {
            *first = blocks(*first, *block);
        }
        sizes
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.sizes.iter().product::<i64>().max(0) as usize
    }
}
