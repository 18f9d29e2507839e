//! From a group and actual tensors to launches: sizes are broadcast, outputs placed, dimensions merged; what
//! remains of the layouts is the contiguity pattern for which a kernel is built.

use super::group::{Form, GroupProgram, Leaf, Load};
use super::part::{Access, Part, merge};
use super::row_domain::{RowDomain, leaf_layout, leaf_layouts};
use super::row_plan;
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::layouts::ordered_walk;
use crate::tensor::pointwise::Walk;
use crate::tensor::{
    DType, Dims, Layout, broadcast_sizes, channels_last_strides, contiguous_strides, wrap_dim,
};
use smallvec::SmallVec;

/// All launches of one call of a group, and the layouts of its outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Launches; empty outputs need none.
    pub parts: Vec<Part>,
    /// Dtype and dense layout of each output.
    pub outputs: Vec<(DType, Layout)>,
}

impl Plan {
    /// Plans a call. `layouts[i]` is the layout of input i, None for numbers. Fails with the op's own error
    /// where sizes do not broadcast.
    pub fn new(group: &GroupProgram, layouts: &[Option<Layout>]) -> Result<Plan> {
        let loads = group.loads.iter().map(|l| load_layout(l, layouts)).collect::<Result<Vec<Layout>>>()?;
        let rows = row_plan::domain(group, &loads)?;
        // Sizes and dense layout of each piece, as the op that computes it gives them.
        let mut sizes: Vec<Dims> = Vec::new();
        let mut places: Vec<Layout> = Vec::new();
        let forms = forms(group, &loads, rows.as_ref())?;
        for piece in &group.pieces {
            let place = match (piece.sums, &forms) {
                (Some(sums), _) => row_plan::sums_layout(rows.as_ref(), sums)?,
                (None, Some(forms)) => forms[piece.form].clone(),
                (None, None) => Walk::new(&leaf_layouts(&piece.leaves, &loads, rows.as_ref())?)?.result,
            };
            sizes.push(place.sizes.clone());
            places.push(place);
        }
        let mut outputs = Vec::new();
        for slot in &group.outputs {
            let whole = match slot.concat {
                Some(dim) => join(group, slot, dim, &sizes, &mut places)?,
                None => places[slot.pieces[0]].clone(),
            };
            outputs.push((slot.dtype, whole));
        }
        written_places(group, layouts, &mut places)?;
        let mut parts: Vec<(Dims, SmallVec<[usize; 4]>)> = Vec::new();
        let mut along_rows: SmallVec<[usize; 4]> = SmallVec::new();
        for (n, domain) in sizes.iter().enumerate() {
            let piece = &group.pieces[n];
            if piece.reduced
                || piece.sums.is_some()
                || rows.as_ref().is_some_and(|rows| rows.sizes == *domain)
            {
                along_rows.push(n);
                continue;
            }
            if domain.contains(&0) {
                continue;
            }
            match parts.iter_mut().find(|(d, _)| d == domain) {
                Some((_, pieces)) => pieces.push(n),
                None => parts.push((domain.clone(), SmallVec::from_slice(&[n]))),
            }
        }
        let parts = parts.into_iter().map(|(domain, pieces)| part(group, &domain, pieces, &places, &loads));
        let mut parts = parts.collect::<Result<Vec<Part>>>()?;
        reads_before_it_writes(group, &parts, rows.is_some())?;
        if let Some(rows) = rows {
            parts.push(row_plan::part(group, &rows, along_rows, &places, &loads)?);
        }
        Ok(Plan { parts, outputs })
    }
}

/// Lets the pieces that are written to inputs go where these lie.
fn written_places(group: &GroupProgram, layouts: &[Option<Layout>], places: &mut [Layout]) -> Result<()> {
    let no_layout = || Diagnostic::internal("a group input without a layout");
    for (piece, place) in group.pieces.iter().zip(places) {
        let Some((input, _)) = group.written(piece.output) else { continue };
        let input = layouts.get(input).and_then(Option::as_ref).ok_or_else(no_layout)?;
        if input.sizes != place.sizes {
            return Err(Diagnostic::unsupported("a fused write of other sizes than the tensor's"));
        }
        if input.has_internal_overlap() {
            return Err(Diagnostic::unsupported("a fused write to a tensor whose elements share memory"));
        }
        *place = input.clone();
    }
    Ok(())
}

/// That an input is read only where it is written, element by element, if it is written at all.
fn reads_before_it_writes(group: &GroupProgram, parts: &[Part], rows: bool) -> Result<()> {
    let is_written = |tensor: usize| group.writes.iter().any(|(input, _)| *input == tensor);
    let reads_elsewhere = || parts.iter().flat_map(|part| &part.loads).any(|load| is_written(load.tensor));
    if !group.writes.is_empty() && (rows || reads_elsewhere()) {
        return Err(Diagnostic::unsupported("a fused write to a tensor that is read elsewhere"));
    }
    Ok(())
}

/// The layouts of all values of a group, op by op. None where everything read lies in row-major order, and so everything
/// computed too.
fn forms(group: &GroupProgram, loads: &[Layout], rows: Option<&RowDomain>) -> Result<Option<Vec<Layout>>> {
    if loads.iter().all(|load| load.strides == contiguous_strides(&load.sizes)) {
        return Ok(None);
    }
    let mut done: Vec<Layout> = Vec::with_capacity(group.forms.len());
    for form in &group.forms {
        let layout = match form {
            Form::Leaf(leaf) => leaf_layout(leaf, loads, rows)?,
            Form::Elementwise(operands, number, order) => {
                let operands: SmallVec<[Layout; 3]> = operands.iter().map(|n| done[*n].clone()).collect();
                ordered_walk(&operands, *number, *order)?.result
            }
            Form::RowMajor(operands) => {
                let mut sizes = Dims::new();
                for operand in operands {
                    sizes = broadcast_sizes(&sizes, &done[*operand].sizes)?;
                }
                Layout::contiguous(&sizes)?
            }
        };
        done.push(layout);
    }
    Ok(Some(done))
}

/// The layout of what a load reads.
fn load_layout(load: &Load, layouts: &[Option<Layout>]) -> Result<Layout> {
    let layout = layouts.get(load.input).and_then(Option::as_ref);
    let mut layout = layout.cloned().ok_or_else(|| Diagnostic::internal("a group input without a layout"))?;
    if let Some((dim, chunks, part)) = load.chunk {
        let mut whole = Dims::new();
        for input in &load.domain {
            let other = layouts.get(*input).and_then(Option::as_ref);
            let other = other.ok_or_else(|| Diagnostic::internal("a group input without a layout"))?;
            whole = broadcast_sizes(&whole, &other.sizes)?;
        }
        if load.domain.is_empty() {
            whole = layout.sizes.clone();
        }
        let from_end = whole.len() - wrap_dim(dim, whole.len())?;
        let size = whole.get(whole.len().wrapping_sub(from_end)).copied().unwrap_or(1);
        if chunks <= 0 || size % chunks != 0 {
            return Err(Diagnostic::unsupported(format!(
                "a fused chunk of size {size} into {chunks} parts that are not equal"
            )));
        }
        // What is broadcast along the dimension is the same in every part.
        let Some(dim) = layout.rank().checked_sub(from_end).filter(|d| layout.sizes[*d] == size) else {
            return Ok(layout);
        };
        let step = size / chunks;
        layout.sizes[dim] = step;
        let offset = layout.offset as i64 + part * step * layout.strides[dim];
        layout.offset = usize::try_from(offset)
            .map_err(|_| Diagnostic::unsupported("a fused chunk of a tensor with negative strides"))?;
    }
    Ok(layout)
}

/// Places the pieces of a joined output one after the other along a dimension; returns the whole.
fn join(
    group: &GroupProgram,
    slot: &super::group::Slot,
    dim: i64,
    sizes: &[Dims],
    places: &mut [Layout],
) -> Result<Layout> {
    let mut whole = sizes[slot.pieces[0]].clone();
    let dim = wrap_dim(dim, whole.len())?;
    let mut total = 0i64;
    for piece in &slot.pieces {
        let mut other = sizes[*piece].clone();
        if other.len() != whole.len() {
            return Err(Diagnostic::unsupported("a fused concatenation of tensors of different ranks"));
        }
        total = total.saturating_add(other[dim]);
        other[dim] = whole[dim];
        if other != whole {
            return Err(Diagnostic::runtime(
                "Sizes of tensors must match except in the concatenated dimension",
            ));
        }
    }
    whole[dim] = total;
    let mut layout = Layout::contiguous(&whole)?;
    if slot.pieces.iter().all(|piece| places[*piece].suggests_channels_last()) {
        layout.strides = channels_last_strides(&whole);
    }
    let mut at = 0i64;
    for piece in &slot.pieces {
        debug_assert_eq!(group.pieces[*piece].output, group.pieces[slot.pieces[0]].output);
        let own = &sizes[*piece];
        places[*piece] = Layout::strided(own, &layout.strides, (at * layout.strides[dim]) as usize)?;
        at += own[dim];
    }
    Ok(layout)
}

fn part(
    group: &GroupProgram,
    domain: &Dims,
    pieces: SmallVec<[usize; 4]>,
    places: &[Layout],
    loads: &[Layout],
) -> Result<Part> {
    let loaded = |leaf: &Leaf| match leaf {
        Leaf::Load(load) => Some(*load),
        Leaf::Reduced(..) => None,
    };
    let mut used: Vec<usize> =
        pieces.iter().flat_map(|p| group.pieces[*p].leaves.iter().filter_map(loaded)).collect();
    used.sort_unstable();
    used.dedup();
    let mut wide: Vec<(usize, Layout)> = Vec::new();
    for piece in &pieces {
        wide.push((group.pieces[*piece].output, places[*piece].clone()));
    }
    let (mut in_place, mut shared): (SmallVec<[usize; 2]>, Vec<usize>) = Default::default();
    used.retain(|load| {
        let store = pieces.iter().position(|piece| stores_over(group, *piece, *load, loads, domain));
        in_place.extend(store);
        shared.extend(store.map(|_| *load));
        store.is_none()
    });
    for load in &used {
        let layout = loads[*load].broadcast_to(domain);
        let layout = layout.ok_or_else(|| Diagnostic::internal("a fused operand that does not broadcast"))?;
        wide.push((group.loads[*load].input, layout));
    }
    let (sizes, strides) = merge(domain, &wide);
    let mut accesses = wide.into_iter().zip(strides);
    let access = |((tensor, layout), strides): ((usize, Layout), SmallVec<[i64; 4]>)| Access {
        tensor,
        offset: layout.offset,
        strides,
    };
    let stores: Vec<Access> = accesses.by_ref().take(pieces.len()).map(access).collect();
    let loads: Vec<Access> = accesses.map(access).collect();
    used.extend(shared);
    Ok(Part { pieces, stores, loads, used, in_place, sizes, rows: None })
}

/// Whether a piece is written where a load reads: to the very same elements.
fn stores_over(group: &GroupProgram, piece: usize, load: usize, loads: &[Layout], domain: &Dims) -> bool {
    let written = group.written(group.pieces[piece].output).map(|(input, _)| input);
    let read = &group.loads[load];
    written == Some(read.input) && read.chunk.is_none() && loads[load].sizes == *domain
}
