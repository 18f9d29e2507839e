//! Planning of what a group combines along rows: which dimensions the rows are, which pieces their launch stores,
//! and when such a kernel is refused, so that the work is done op by op.

use super::group::GroupProgram;
use super::plan::{Access, Part, RowPart, leaf_layouts, merge};
use crate::diag::{Diagnostic, Result};
use crate::dialects::scalar::{Inst, Sv};
use crate::tensor::{Dims, Layout, broadcast_sizes, view};
use smallvec::SmallVec;

/// The elements over which a group's reductions run.
pub(super) struct RowDomain {
    /// Sizes of all dimensions.
    pub(super) sizes: Dims,
    /// How many of the last ones make a row.
    inner: usize,
}

fn refuse<T>(why: &str) -> Result<T> {
    Err(Diagnostic::unsupported(format!("a fused reduction {why}")))
}

impl RowDomain {
    fn outer(&self) -> usize {
        self.sizes.len() - self.inner
    }

    /// The layout of one number a row; whether the dimensions of the row stay, with size 1.
    pub(super) fn number(&self, keeps: bool) -> Result<Layout> {
        let mut sizes: Dims = self.sizes[..self.outer()].into();
        if keeps {
            sizes.extend(std::iter::repeat_n(1, self.inner));
        }
        Layout::contiguous(&sizes)
    }
}

/// The rows of a group; None where it reduces nothing. All reductions must run over the same elements, along the
/// last dimensions.
pub(super) fn domain(group: &GroupProgram, loads: &[Layout]) -> Result<Option<RowDomain>> {
    let mut found: Option<RowDomain> = None;
    for reduction in &group.reductions {
        let mut sizes = Dims::new();
        for layout in leaf_layouts(&reduction.leaves, loads, found.as_ref())? {
            sizes = broadcast_sizes(&sizes, &layout.sizes)?;
        }
        let mut dims = view::wrap_dims(&reduction.dims, sizes.len())?;
        dims.sort_unstable();
        let inner = dims.len();
        if sizes.is_empty() || sizes.contains(&0) {
            return refuse("of no elements");
        }
        if !dims.iter().copied().eq(sizes.len() - inner..sizes.len()) {
            return refuse("over dimensions that are not the last");
        }
        match &found {
            Some(rows) if rows.sizes != sizes || rows.inner != inner => {
                return refuse("over other rows than the one before");
            }
            Some(_) => {}
            None => found = Some(RowDomain { sizes, inner }),
        }
    }
    Ok(found)
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
    let mut numbers: SmallVec<[bool; 4]> = SmallVec::new();
    let mut wide: Vec<(usize, Layout)> = Vec::new();
    for piece in &pieces {
        let place = &places[*piece];
        let number = place.sizes != rows.sizes;
        wide.push((group.pieces[*piece].output, store_layout(rows, place, number)?));
        numbers.push(number);
    }
    for load in &used {
        match loads[*load].broadcast_to(&rows.sizes) {
            Some(layout) => wide.push((group.loads[*load].input, layout)),
            None => return refuse("with operands of more elements"),
        }
    }
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
    let access = |((tensor, layout), strides): ((usize, Layout), SmallVec<[i64; 4]>)| Access {
        tensor,
        offset: layout.offset,
        strides,
    };
    let mut accesses = wide.into_iter().zip(strides).map(access);
    let stores: Vec<Access> = accesses.by_ref().take(pieces.len()).collect();
    let loads: Vec<Access> = accesses.collect();
    Ok(Part { pieces, stores, loads, used, sizes, rows: Some(RowPart { reductions, numbers }) })
}

/// Where a piece is stored, seen as the elements that are reduced.
fn store_layout(rows: &RowDomain, place: &Layout, number: bool) -> Result<Layout> {
    if !place.is_contiguous() {
        return refuse("of elements that do not lie row after row");
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
