//! Planning of what a group combines along rows: which dimensions the rows are, which pieces their launch stores,
//! and when such a kernel is refused, so that the work is done op by op.

use super::group::{BlockSums, GroupProgram, Leaf};
use super::nest::RowStore;
use super::part::{Access, Part, RowPart, merge};
use super::row_domain::{RowDomain, leaf_layouts};
use crate::diag::{Diagnostic, Result};
use crate::dialects::scalar::{Inst, Sv};
use crate::dialects::shapes::reductions::blocks;
use crate::tensor::{Dims, Layout, broadcast_sizes, view};
use smallvec::SmallVec;

fn refuse<T>(why: &str) -> Result<T> {
    Err(Diagnostic::unsupported(format!("a fused reduction {why}")))
}

/// The rows of a group; None where it reduces nothing. All reductions must run over the same elements, along the
/// last dimensions.
pub(super) fn domain(group: &GroupProgram, loads: &[Layout]) -> Result<Option<RowDomain>> {
    let mut found: Option<RowDomain> = None;
    for reduction in &group.reductions {
        let sizes = sizes_of(&reduction.leaves, loads, found.as_ref())?;
        let mut dims = view::wrap_dims(&reduction.dims, sizes.len())?;
        dims.sort_unstable();
        let inner = dims.len();
        if sizes.is_empty() || sizes.contains(&0) {
            return refuse("of no elements");
        }
        if !dims.iter().copied().eq(sizes.len() - inner..sizes.len()) {
            return refuse("over dimensions that are not the last");
        }
        same_rows(&mut found, RowDomain { sizes, inner })?;
    }
    for piece in &group.pieces {
        let Some(sums) = piece.sums else { continue };
        let sizes = sizes_of(&piece.leaves, loads, found.as_ref())?;
        if sizes.contains(&0) {
            return refuse("of no elements");
        }
        let Some(inner) = sizes.len().checked_sub(sums.dims).filter(|inner| *inner > 0) else {
            return refuse("of blocks of rows without elements");
        };
        same_rows(&mut found, RowDomain { sizes, inner })?;
    }
    Ok(found)
}

fn sizes_of(leaves: &[Leaf], loads: &[Layout], rows: Option<&RowDomain>) -> Result<Dims> {
    let mut sizes = Dims::new();
    for layout in leaf_layouts(leaves, loads, rows)? {
        sizes = broadcast_sizes(&sizes, &layout.sizes)?;
    }
    Ok(sizes)
}

/// All that is combined in a group is combined along the same rows.
fn same_rows(found: &mut Option<RowDomain>, rows: RowDomain) -> Result<()> {
    match found {
        Some(before) if before.sizes != rows.sizes || before.inner != rows.inner => {
            refuse("over other rows than the one before")
        }
        Some(_) => Ok(()),
        None => {
            *found = Some(rows);
            Ok(())
        }
    }
}

/// The layout of sums of blocks of rows.
pub(super) fn sums_layout(rows: Option<&RowDomain>, sums: BlockSums) -> Result<Layout> {
    let rows = rows.ok_or_else(|| Diagnostic::internal("sums of rows that a group does not have"))?;
    let count = blocks(rows.count(), sums.rows);
    Layout::contiguous(&[&[count], &rows.sizes[rows.outer()..]].concat())
}

/// Which loads and reductions the values of pieces need, in order.
fn needed(group: &GroupProgram, pieces: &[usize]) -> (Vec<usize>, SmallVec<[usize; 4]>) {
    let insts = group.program.insts();
    let first_total = group.loads.len() + group.scalars.len();
    let mut needs = vec![false; insts.len()];
    let mut reductions = SmallVec::new();
    let mut work: Vec<Sv> = pieces.iter().map(|p| group.pieces[*p].value).collect();
    while let Some(value) = work.pop() {
        if std::mem::replace(&mut needs[value.index()], true) {
            continue;
        }
        let inst = insts[value.index()].0;
        work.extend(inst.operands());
        if let Inst::Param(n) = inst
            && let Some(at) = (n as usize).checked_sub(first_total)
            && let Some(reduction) = group.reductions.get(at)
        {
            reductions.push(at);
            work.push(reduction.value);
        }
    }
    let loads = insts.iter().zip(needs).filter_map(|((inst, _), needed)| match inst {
        Inst::Param(n) if needed && (*n as usize) < group.loads.len() => Some(*n as usize),
        _ => None,
    });
    let mut loads: Vec<usize> = loads.collect();
    loads.sort_unstable();
    reductions.sort_unstable();
    (loads, reductions)
}

/// The launch of all pieces that run over the rows.
pub(super) fn part(
    group: &GroupProgram,
    rows: &RowDomain,
    pieces: SmallVec<[usize; 4]>,
    places: &[Layout],
    loads: &[Layout],
) -> Result<Part> {
    let (used, reductions) = needed(group, &pieces);
    let block = block_of(group, &pieces)?;
    let mut kinds: SmallVec<[RowStore; 4]> = SmallVec::new();
    let mut wide: Vec<(usize, Layout)> = Vec::new();
    // Rows of a block follow each other in the order of the sizes, which what is merged first decides.
    let guide = block.map(|_| Layout::contiguous(&rows.sizes)).transpose()?;
    wide.extend(guide.map(|layout| (0, layout)));
    let guides = wide.len();
    for piece in &pieces {
        let kind = kind_of(group, rows, *piece, &places[*piece]);
        if kind != RowStore::Sums {
            let layout = store_layout(rows, &places[*piece], kind == RowStore::Number)?;
            wide.push((group.pieces[*piece].output, layout));
        }
        kinds.push(kind);
    }
    for load in &used {
        match loads[*load].broadcast_to(&rows.sizes) {
            Some(layout) => wide.push((group.loads[*load].input, layout)),
            None => return refuse("with operands of more elements"),
        }
    }
    let (sizes, strides) = merged(rows, &wide)?;
    if block.is_some() && sizes.len() != 2 {
        return refuse("whose rows do not follow each other in all operands");
    }
    let access = |((tensor, layout), strides): ((usize, Layout), SmallVec<[i64; 4]>)| Access {
        tensor,
        offset: layout.offset,
        strides,
    };
    let mut accesses = wide.into_iter().zip(strides).skip(guides).map(access);
    let mut stores = Vec::new();
    for (piece, kind) in pieces.iter().zip(&kinds) {
        let sums = || Access {
            tensor: group.pieces[*piece].output,
            offset: places[*piece].offset,
            strides: SmallVec::from_slice(&[sizes[1], 1]),
        };
        stores.extend(if *kind == RowStore::Sums { Some(sums()) } else { accesses.next() });
    }
    let loads: Vec<Access> = accesses.collect();
    let rows = Some(RowPart { reductions, stores: kinds, block });
    Ok(Part { pieces, stores, loads, used, in_place: SmallVec::new(), sizes, rows })
}

/// Rows of a block, if pieces are sums of blocks: the same for all of them.
fn block_of(group: &GroupProgram, pieces: &[usize]) -> Result<Option<i64>> {
    let mut sums = pieces.iter().filter_map(|piece| group.pieces[*piece].sums);
    let first = sums.next();
    match sums.all(|other| Some(other) == first) {
        true => Ok(first.map(|sums| sums.rows)),
        false => refuse("over blocks of different numbers of rows"),
    }
}

fn kind_of(group: &GroupProgram, rows: &RowDomain, piece: usize, place: &Layout) -> RowStore {
    match group.pieces[piece].sums {
        Some(_) => RowStore::Sums,
        None if place.sizes == rows.sizes => RowStore::Elements,
        None => RowStore::Number,
    }
}

/// Merged sizes and the strides of each access: those of the dimensions that distinguish rows, then the one of a row.
type Merged = (SmallVec<[i64; 4]>, Vec<SmallVec<[i64; 4]>>);

fn merged(rows: &RowDomain, wide: &[(usize, Layout)]) -> Result<Merged> {
    let outer = rows.outer();
    let half = |from: usize, to: usize| -> Vec<(usize, Layout)> {
        let cut = |l: &Layout| Layout {
            sizes: l.sizes[from..to].into(),
            strides: l.strides[from..to].into(),
            offset: l.offset,
        };
        wide.iter().map(|(tensor, layout)| (*tensor, cut(layout))).collect()
    };
    let (mut sizes, mut strides) = merge(&rows.sizes[..outer], &half(0, outer));
    let (length, steps) = merge(&rows.sizes[outer..], &half(outer, rows.sizes.len()));
    if length.len() != 1 {
        return refuse("whose rows are not contiguous in all operands");
    }
    sizes.extend(length);
    strides.iter_mut().zip(steps).for_each(|(all, step)| all.extend(step));
    Ok((sizes, strides))
}

/// Where a piece is stored, seen as the elements that are reduced.
fn store_layout(rows: &RowDomain, place: &Layout, number: bool) -> Result<Layout> {
    if !place.is_contiguous() {
        return refuse("of elements that are not in row-major order");
    }
    if !number {
        return Ok(place.clone());
    }
    let fits = |keeps: bool| rows.number(keeps).is_ok_and(|l| l.sizes == place.sizes);
    if !fits(true) && !fits(false) {
        return refuse("with results of other sizes");
    }
    let mut strides: Dims = place.strides[..rows.outer()].into();
    strides.extend(std::iter::repeat_n(0, rows.inner));
    Layout::strided(&rows.sizes, &strides, place.offset)
}
