//! Several tensors into one, one tensor several times, elements in another order: cat, stack, repeat, roll, flip.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{joins, layers, trial};
use crate::dialects::{Alias, Args, LayerPart, OpDef, Outputs, composite, gather, one, view};
use crate::kernels::create::range::not_implemented;
use crate::kernels::index::place::{
    common_dtype, concat, concat_in_format, for_writing, identity, pad_rank, pick, remap_as_it_lies, repeat,
};
use crate::kernels::strided::laid_out_as;
use crate::resources::{Collect, Scratch};
use crate::tensor::{DType, Dims, Rank, Tensor, broadcast_all, check_promotions, view as layout, wrap_dim};
use crate::value::Value;

/// The rows.
pub static OPS: &[OpDef] = &[
    gather("aten::cat(Tensor[] tensors, int dim=0) -> Tensor", cat).part(LayerPart::Join).rare("u8").quantized_kernel(crate::dialects::quantized::arith::aten_cat).infer(joins::cat).apart(&[0]).out("out").aliases(&[Alias::new("concat"), Alias::new("concatenate")]),
    gather("aten::stack(Tensor[] tensors, int dim=0) -> Tensor", stack).rare("u8").quantized_kernel(crate::dialects::quantized::arith::aten_stack).infer(joins::stack).apart(&[0]).out("out"),
    gather("aten::hstack(Tensor[] tensors) -> Tensor", |a| {
        let tensors = at_least(a, "hstack", 1)?;
        one(concat(&tensors, i64::from(tensors.first().is_some_and(|t| t.rank() != 1)))?)
    }).rare("u8").infer(trial::kernel)
    .out("out"),
    gather("aten::vstack(Tensor[] tensors) -> Tensor", |a| one(concat(&at_least(a, "vstack", 2)?, 0)?)).rare("u8").infer(trial::kernel)
        .out("out").aliases(&[Alias::new("row_stack")]),
    gather("aten::dstack(Tensor[] tensors) -> Tensor", |a| one(concat(&at_least(a, "dstack", 3)?, 2)?)).rare("u8").infer(trial::kernel)
        .out("out"),
    gather("aten::column_stack(Tensor[] tensors) -> Tensor", column_stack).rare("u8").infer(trial::kernel).out("out"),
    gather("aten::block_diag(Tensor[] tensors) -> Tensor", block_diag).infer(trial::kernel).out_exact("out"),
    gather("aten::_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", chunk_cat).infer(trial::kernel).out("out"),
    gather("aten::tile(Tensor self, SymInt[] dims) -> Tensor", |a| {
        let (tensor, dims) = (a.tensor(0)?, a.ints(1)?);
        one(repeat(tensor, &pad_rank(&dims, tensor.rank()))?)
    }).quantized(crate::dialects::Quantized::Integers).infer(trial::kernel),
    gather("aten::repeat(Tensor self, SymInt[] repeats) -> Tensor", |a| {
        one(repeat(a.tensor(0)?, &a.ints(1)?)?)
    }).rare("u8").quantized(crate::dialects::Quantized::Integers)
    .infer(joins::repeat)
    .out_exact("out"),
    gather("aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor", |a| {
        one(repeated_indices(a.tensor(0)?, a.opt_int(1)?)?)
    })
    .out_exact("Tensor_out"),
    gather(
        "aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
        interleave_tensor,
    ),
    gather(
        "aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
        interleave_int,
    ).rare("u8").infer(layers::interleaved),
    gather("aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", roll)
        .rare("u8").infer(joins::roll)
        .grad("self: grad.roll([-i for i in shifts], dims)")
        .out_exact("out"),
    gather("aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor", rot90).infer(trial::stand_ins)
        .grad("self: grad.rot90(-k, dims)")
        .out_exact("out"),
    gather("aten::flip(Tensor self, int[] dims) -> Tensor", |a| flip(a.tensor(0)?, &a.ints(1)?)).rare("u8").quantized(crate::dialects::Quantized::Integers)
        .infer(joins::same_sizes)
        .grad("self: grad.flip(dims)")
        .out_exact("out"),
    gather("aten::fliplr(Tensor self) -> Tensor", |a| flip_at(a, 1, 2))
        .rare("u8").infer(joins::same_sizes)
        .grad("self: grad.fliplr()"),
    gather("aten::flipud(Tensor self) -> Tensor", |a| flip_at(a, 0, 1))
        .rare("u8").infer(joins::same_sizes)
        .grad("self: grad.flipud()"),
    gather("aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor", channel_shuffle).quantized(crate::dialects::Quantized::Integers).infer(layers::moved).out_exact("out"),
    gather("aten::native_channel_shuffle(Tensor self, SymInt groups) -> Tensor", channel_shuffle).quantized(crate::dialects::Quantized::Integers),
    gather("aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", pixel_shuffle).quantized(crate::dialects::Quantized::Integers).infer(layers::shuffled)
        .out_exact("out"),
    gather("aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", pixel_unshuffle).quantized(crate::dialects::Quantized::Integers).infer(layers::unshuffled)
        .grad("self: torch.pixel_shuffle(grad, downscale_factor)")
        .out_exact("out"),
    view("aten::atleast_1d(Tensor self) -> Tensor", |a| one(with_rank(a.tensor(0)?, 1)?))
        .hidden_marks("aten::atleast_1d(Tensor(a) self) -> Tensor(a)")
        .grad("self: grad.reshape(self.size())"),
    view("aten::atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", |a| ranks(a, 1))
        .hidden_marks("aten::atleast_1d.Sequence(Tensor[] tensors) -> Tensor(*)[]"),
    view("aten::atleast_2d(Tensor self) -> Tensor", |a| one(with_rank(a.tensor(0)?, 2)?))
        .hidden_marks("aten::atleast_2d(Tensor(a) self) -> Tensor(a)")
        .grad("self: grad.reshape(self.size())"),
    view("aten::atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", |a| ranks(a, 2))
        .hidden_marks("aten::atleast_2d.Sequence(Tensor[] tensors) -> Tensor(*)[]"),
    view("aten::atleast_3d(Tensor self) -> Tensor", |a| one(with_rank(a.tensor(0)?, 3)?))
        .hidden_marks("aten::atleast_3d(Tensor(a) self) -> Tensor(a)")
        .grad("self: grad.reshape(self.size())"),
    view("aten::atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", |a| ranks(a, 3))
        .hidden_marks("aten::atleast_3d.Sequence(Tensor[] tensors) -> Tensor(*)[]"),
    view("aten::broadcast_tensors(Tensor[] tensors) -> Tensor[]", |a| {
        let tensors = a.tensors(0)?;
        let sizes = broadcast_all(&tensors)?;
        let expand = |t: &Tensor| if t.sizes() == sizes { Ok(t.clone()) } else { t.broadcast_to(&sizes) };
        let expanded: Result<Vec<Tensor>> = tensors.iter().map(expand).collect();
        one(Value::tensors(expanded?))
    })
    .hidden_marks("aten::broadcast_tensors(Tensor[] tensors) -> Tensor(*)[]"),
    composite(
        "aten::flatten_dense_tensors(Tensor[] tensors) -> Tensor",
        "def flatten_dense_tensors(tensors: List[Tensor]) -> Tensor:\n    \
         return torch.cat([t.reshape([-1]) for t in tensors])\n",
    ),
    composite(
        "aten::unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]",
        include_str!("composites/unflatten_dense_tensors.py"),
    )
    .hidden_marks(
        "aten::unflatten_dense_tensors(Tensor(a -> *) flat, Tensor[] tensors) -> Tensor(a)[]",
    ),
    composite(
        "aten::pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str padding_side=\"right\") -> Tensor",
        include_str!("composites/pad_sequence.py"),
    ),
];

/// Fails where the tensors have no common dtype.
fn one_dtype(tensors: &[Tensor]) -> Result<()> {
    check_promotions(&tensors.iter().map(|t| (t.dtype(), Rank::Dims)).collect::<Vec<_>>())
}

pub(super) fn cat(a: &Args<'_>) -> Result<Outputs> {
    let tensors = a.tensors(0)?;
    one_dtype(&tensors)?;
    one(concat_in_format(&tensors, a.int(1)?)?)
}

pub(super) fn stack(a: &Args<'_>) -> Result<Outputs> {
    let tensors = a.tensors(0)?;
    one_dtype(&tensors)?;
    let Some(first) = tensors.first() else {
        return Err(Diagnostic::runtime("stack expects a non-empty TensorList"));
    };
    let dim = wrap_dim(a.int(1)?, first.rank() + 1)? as i64;
    if let Some((n, other)) = tensors.iter().enumerate().find(|(_, t)| t.sizes() != first.sizes()) {
        let (x, y) = (first.sizes(), other.sizes());
        return Err(Diagnostic::runtime(format!(
            "stack expects each tensor to be equal size, but got {:?} at entry 0 and {:?} at entry {n}",
            x.as_slice(),
            y.as_slice()
        )));
    }
    // But for a new last dimension, PyTorch joins them along the dimension that the new one stands before.
    if (dim as usize) < first.rank() {
        let mut sizes = first.sizes();
        sizes.insert(dim as usize, tensors.len() as i64);
        return one(concat_in_format(&tensors, dim)?.look(|l| layout::view(l, &sizes))?);
    }
    let raised: Result<Vec<Tensor>> = tensors.iter().map(|t| t.look(|l| layout::unsqueeze(l, dim))).collect();
    one(concat_in_format(&raised?, dim)?)
}

/// The tensor with at least `n` dimensions, where NumPy puts them.
fn with_rank(tensor: &Tensor, rank: usize) -> Result<Tensor> {
    let own = tensor.sizes();
    let sizes = match (rank, own.len()) {
        (r, n) if n >= r => return Ok(tensor.clone()),
        (3, 1) => return tensor.look(|l| layout::unsqueeze(&layout::unsqueeze(l, 0)?, -1)),
        (3, 2) => return tensor.look(|l| layout::unsqueeze(l, -1)),
        (r, _) => pad_rank(&own, r),
    };
    tensor.reshaped(&sizes)
}

fn ranks(a: &Args<'_>, rank: usize) -> Result<Outputs> {
    let tensors: Result<Vec<Tensor>> = a.tensors(0)?.iter().map(|t| with_rank(t, rank)).collect();
    one(Value::tensors(tensors?))
}

fn at_least(a: &Args<'_>, name: &str, rank: usize) -> Result<Vec<Tensor>> {
    let tensors = a.tensors(0)?;
    if tensors.is_empty() {
        return Err(Diagnostic::runtime(format!("{name} expects a non-empty TensorList")));
    }
    tensors.iter().map(|t| with_rank(t, rank)).collect()
}

fn column_stack(a: &Args<'_>) -> Result<Outputs> {
    let tensors = a.tensors(0)?;
    if tensors.is_empty() {
        return Err(Diagnostic::runtime("column_stack expects a non-empty TensorList"));
    }
    let columns: Result<Vec<Tensor>> = tensors
        .iter()
        .map(|t| if t.rank() <= 1 { t.reshaped(&[t.numel() as i64, 1]) } else { Ok(t.clone()) })
        .collect();
    one(concat(&columns?, 1)?)
}

fn block_diag(a: &Args<'_>) -> Result<Outputs> {
    let tensors = a.tensors(0)?;
    if let Some((n, t)) = tensors.iter().enumerate().find(|(_, t)| t.rank() > 2) {
        return Err(Diagnostic::runtime(format!(
            "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {n} has {} dimensions",
            t.rank()
        )));
    }
    if tensors.is_empty() {
        return one(Tensor::zeros(DType::F32, &[1, 0])?);
    }
    let blocks: Vec<Tensor> = tensors.iter().map(|t| with_rank(t, 2)).collect::<Result<_>>()?;
    let (rows, columns) = blocks.iter().fold((0i64, 0i64), |(r, c), t| {
        let sizes = t.sizes();
        (r.saturating_add(sizes[0]), c.saturating_add(sizes[1]))
    });
    let dtype = common_dtype(&tensors);
    let result = Tensor::zeros(dtype, &[rows, columns])?;
    let (mut row, mut column) = (0, 0);
    for block in &blocks {
        let sizes = block.sizes();
        result
            .look(|l| layout::narrow(&layout::narrow(l, 0, row, sizes[0])?, 1, column, sizes[1]))?
            .copy_from(block)?;
        row += sizes[0];
        column += sizes[1];
    }
    one(result)
}

/// Each tensor cut along `dim` into `num_chunks` pieces padded with zeros, pieces flattened and joined.
fn chunk_cat(a: &Args<'_>) -> Result<Outputs> {
    let (tensors, dim, chunks) = (a.tensors(0)?, a.int(1)?, a.int(2)?);
    let Some(first) = tensors.first() else {
        return Err(Diagnostic::runtime("_chunk_cat expects a non-empty input tensor list"));
    };
    if chunks < 1 {
        return Err(Diagnostic::runtime("_chunk_cat expects positive num_chunks"));
    }
    if dim < 0 && tensors.iter().any(|t| t.rank() != first.rank()) {
        return Err(Diagnostic::runtime(
            "_chunk_cat expects non-negative dim when input tensors have different ndims",
        ));
    }
    if tensors.iter().any(|t| t.dtype() != first.dtype()) {
        return Err(Diagnostic::runtime("_chunk_cat expects all input tensors with the same dtype"));
    }
    let d = wrap_dim(dim, first.rank())?;
    if tensors.iter().any(|t| d >= t.rank()) {
        return Err(Diagnostic::runtime("_chunk_cat expects dim < ndim for all input tensors"));
    }
    let lead = Dims::from_slice(&first.sizes()[..d.min(first.rank())]);
    let mut pieces = Vec::with_capacity(tensors.len());
    for tensor in &tensors {
        let own = tensor.sizes();
        if tensor.numel() == 0 {
            return Err(Diagnostic::runtime("_chunk_cat expects non-empty tensor"));
        }
        if own.len() <= d || own[..d] != lead[..] {
            return Err(Diagnostic::runtime(
                "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors",
            ));
        }
        let piece = own[d] / chunks + i64::from(own[d] % chunks != 0);
        let mut padded = own.clone();
        padded[d] = piece.saturating_mul(chunks);
        let whole = Tensor::zeros(tensor.dtype(), &padded)?;
        whole.look(|l| layout::narrow(l, d as i64, 0, own[d]))?.copy_from(tensor)?;
        let mut sizes = lead.clone();
        let rest = own[d + 1..].iter().fold(piece, |n, s| n.saturating_mul(*s));
        sizes.extend_from_slice(&[chunks, rest]);
        pieces.push(whole.reshaped(&sizes)?);
    }
    one(concat(&pieces, d as i64 + 1)?)
}

/// Each index as often as its count says.
fn repeated_indices(repeats: &Tensor, output_size: Option<i64>) -> Result<Tensor> {
    if repeats.rank() != 1 {
        return Err(Diagnostic::runtime("repeat_interleave only accept 1D vector as repeat"));
    }
    if !repeats.dtype().is_integral() || repeats.dtype().is_rare() {
        return Err(not_implemented("repeat_interleave_cpu", repeats.dtype()));
    }
    let counts = repeats.elements_as::<i64>()?;
    if counts.iter().any(|c| *c < 0) {
        return Err(Diagnostic::runtime("repeats can not be negative"));
    }
    let total = counts.iter().fold(0i64, |n, c| n.saturating_add(*c));
    if output_size.is_some_and(|n| n != total) {
        return Err(Diagnostic::runtime("allocated size does not match required size"));
    }
    Tensor::expect(repeats.dtype(), &[total])?;
    let indices =
        counts.iter().enumerate().flat_map(|(i, c)| std::iter::repeat_n(i as i64, *c as usize)).scratch()?;
    Tensor::from_vec(&indices, &[total])?.to_dtype(repeats.dtype())
}

/// The tensor and dimension that `repeat_interleave` works on: flat without a dimension.
fn flat_or_dim(tensor: &Tensor, dim: Option<i64>) -> Result<(Tensor, usize)> {
    match dim {
        Some(dim) if tensor.rank() > 0 => Ok((tensor.clone(), wrap_dim(dim, tensor.rank())?)),
        Some(dim) => layout::wrap_dim_strict(dim, 0).map(|d| (tensor.clone(), d)),
        None => Ok((tensor.reshaped(&[tensor.numel() as i64])?, 0)),
    }
}

fn interleave_tensor(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, dim) = flat_or_dim(a.tensor(0)?, a.opt_int(2)?)?;
    let (mut repeats, size) = (a.tensor(1)?.clone(), tensor.sizes()[dim]);
    if repeats.rank() == 0 || (repeats.rank() == 1 && repeats.sizes()[0] == 1) {
        repeats = repeats.reshaped(&[1])?.broadcast_to(&[size])?;
    } else if repeats.rank() == 1 {
        if repeats.sizes()[0] != size {
            return Err(Diagnostic::runtime(format!(
                "repeats must have the same size as input along dim, but got repeats.size(0) = {} and input.size({dim}) = {size}",
                repeats.sizes()[0]
            )));
        }
    } else {
        return Err(Diagnostic::runtime("repeats must be 0-dim or 1-dim tensor"));
    }
    let indices = repeated_indices(&repeats, a.opt_int(3)?)?.elements_as::<i64>()?;
    one(pick(&tensor, dim, &indices.into_iter().map(|i| i as usize).scratch()?)?)
}

fn interleave_int(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, dim) = flat_or_dim(a.tensor(0)?, a.opt_int(2)?)?;
    let (repeats, size) = (a.int(1)?, tensor.sizes()[dim]);
    if repeats < 0 {
        return Err(Diagnostic::runtime("Repeats must be non-negative"));
    }
    let total = size.saturating_mul(repeats);
    if a.opt_int(3)?.is_some_and(|n| n != total) {
        return Err(Diagnostic::runtime("repeat_interleave: Invalid output_size"));
    }
    let mut sizes = tensor.sizes();
    sizes[dim] = total;
    Tensor::expect(tensor.dtype(), &sizes)?;
    let each = repeats as usize;
    one(pick(&tensor, dim, &(0..size as usize).flat_map(|i| std::iter::repeat_n(i, each)).scratch()?)?)
}

fn roll(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, shifts, dims) = (a.tensor(0)?, a.ints(1)?, a.ints(2)?);
    if shifts.is_empty() {
        return Err(Diagnostic::runtime("`shifts` required"));
    }
    let own = tensor.sizes();
    if dims.is_empty() && shifts.len() == 1 {
        let n = tensor.numel() as i64;
        let rolled = pick(&tensor.reshaped(&[n])?, 0, &shifted(n, shifts[0])?)?;
        return one(rolled.reshaped(&own)?);
    }
    if shifts.len() != dims.len() {
        return Err(Diagnostic::runtime(format!(
            "shifts and dimensions must align. shifts: {}, dims:{}",
            shifts.len(),
            dims.len()
        )));
    }
    let mut start: smallvec::SmallVec<[i64; 6]> = smallvec::SmallVec::from_elem(0, own.len());
    for (shift, dim) in shifts.iter().zip(&dims) {
        let d = layout::wrap_dim_strict(*dim, own.len())?;
        // Where the element comes from that becomes the first one.
        start[d] = (i128::from(start[d]) - i128::from(*shift)).rem_euclid(i128::from(own[d].max(1))) as i64;
    }
    if tensor.numel() == 0 {
        return one(laid_out_as(Tensor::zeros(tensor.dtype(), &own)?, tensor)?);
    }
    let result = for_writing(tensor.dtype(), &own, keeps_channels_last(tensor, own.len()))?;
    roll_blocks(tensor, &result, &start, 0)?;
    one(result)
}

/// Copies what follows the new first element, and what lies before it, of each dimension from `dim` on.
fn roll_blocks(from: &Tensor, to: &Tensor, start: &[i64], dim: usize) -> Result<()> {
    let Some(dim) = (dim..start.len()).find(|d| start[*d] != 0) else { return to.copy_from(from) };
    let (size, first, d) = (from.sizes()[dim], start[dim], dim as i64);
    for (from_at, to_at, count) in [(first, 0, size - first), (0, size - first, first)] {
        let from = from.look(|l| layout::narrow(l, d, from_at, count))?;
        let to = to.look(|l| layout::narrow(l, d, to_at, count))?;
        roll_blocks(&from, &to, start, dim + 1)?;
    }
    Ok(())
}

/// For each place of a dimension of `size` rolled by `shift`, where its element comes from.
fn shifted(size: i64, shift: i64) -> Result<Scratch<usize>> {
    let start = if size == 0 { 0 } else { (-i128::from(shift)).rem_euclid(i128::from(size)) as i64 };
    (0..size).map(|i| ((start + i) % size) as usize).scratch()
}

fn rot90(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, k, dims) = (a.tensor(0)?, a.int(1)?, a.ints(2)?);
    let rank = tensor.rank();
    let [dim0, dim1] = dims[..] else {
        return Err(Diagnostic::runtime(format!(
            "expected total rotation dims == 2, but got dims = {}",
            dims.len()
        )));
    };
    if rank < 2 {
        return Err(Diagnostic::runtime(format!("expected total dims >= 2, but got total dims = {rank}")));
    }
    if dim0 == dim1 || dim0.abs_diff(dim1) == rank as u64 {
        return Err(Diagnostic::runtime(format!(
            "expected rotation dims to be different, but got dim0 = {dim0} and dim1 = {dim1}"
        )));
    }
    let (d0, d1) = (wrap_dim(dim0, rank)?, wrap_dim(dim1, rank)?);
    let swapped = |t: &Tensor| t.look(|l| layout::transpose(l, d0 as i64, d1 as i64));
    one(match k.rem_euclid(4) {
        1 => swapped(&laid_out_as(flipped(tensor, &[d1])?, tensor)?)?,
        2 => laid_out_as(flipped(tensor, &[d0, d1])?, tensor)?,
        3 => swapped(&laid_out_as(flipped(tensor, &[d0])?, tensor)?)?,
        _ => tensor.copy()?,
    })
}

fn flipped(tensor: &Tensor, dims: &[usize]) -> Result<Tensor> {
    let mut maps = identity(&tensor.sizes())?;
    for d in dims {
        if let Some(map) = maps.get_mut(*d) {
            map.reverse();
        }
    }
    remap_as_it_lies(tensor, &maps)
}

fn flip(tensor: &Tensor, dims: &[i64]) -> Result<Outputs> {
    one(laid_out_as(flipped(tensor, &layout::wrap_dims(dims, tensor.rank())?)?, tensor)?)
}

fn flip_at(a: &Args<'_>, dim: usize, rank: usize) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    if tensor.rank() < rank {
        return Err(Diagnostic::runtime(format!("Input must be >= {rank}-d.")));
    }
    one(laid_out_as(flipped(tensor, &[dim])?, tensor)?)
}

/// Whether a result of some rank has its channels last in memory, as the image has that it is made of.
fn keeps_channels_last(image: &Tensor, rank: usize) -> bool {
    image.rank() == rank && image.with_meta(|meta| meta.layout.suggests_channels_last())
}

/// Reads the tensor as `split` sizes, reorders those dimensions, and gives the result's sizes.
fn shuffle(tensor: &Tensor, split: &[i64], order: &[usize], sizes: &[i64]) -> Result<Outputs> {
    let from = tensor.reshaped(split)?.look(|l| Ok(layout::reorder(l, order)))?;
    let result = for_writing(tensor.dtype(), sizes, keeps_channels_last(tensor, sizes.len()))?;
    // Its dimensions come apart as those of the tensor did, whatever order in memory it has.
    let shape = from.sizes();
    let apart = result.look(|l| match layout::try_view(l, &shape) {
        Some(layout) => Ok(layout),
        None => Err(Diagnostic::internal("a result whose dimensions do not come apart")),
    })?;
    apart.copy_from(&from)?;
    one(result)
}

fn channel_shuffle(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, groups) = (a.tensor(0)?, a.int(1)?);
    let own = tensor.sizes();
    if own.len() <= 2 {
        return Err(Diagnostic::runtime(format!(
            "channel_shuffle expects input with > 2 dims, but got input with sizes {:?}",
            own.as_slice()
        )));
    }
    if groups <= 0 {
        return Err(Diagnostic::runtime(format!(
            "Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )));
    }
    if own[1] % groups != 0 {
        return Err(Diagnostic::runtime(format!(
            "Number of channels must be divisible by groups. Got {} channels and {groups} groups.",
            own[1]
        )));
    }
    let rest = own[2..].iter().fold(1i64, |n, s| n.saturating_mul(*s));
    shuffle(tensor, &[own[0], groups, own[1] / groups, rest], &[0, 2, 1, 3], &own)
}

/// Leading sizes, channels, height, width.
fn image<'s>(own: &'s [i64], name: &str, factor: i64) -> Result<(&'s [i64], i64, i64, i64)> {
    let [lead @ .., channels, height, width] = own else {
        return Err(Diagnostic::runtime(format!(
            "{name} expects input to have at least 3 dimensions, but got input with {} dimension(s)",
            own.len()
        )));
    };
    if factor <= 0 {
        let which = if name == "pixel_shuffle" { "upscale_factor" } else { "downscale_factor" };
        return Err(Diagnostic::runtime(format!("{name} expects a positive {which}, but got {factor}")));
    }
    Ok((lead, *channels, *height, *width))
}

/// Dimension order that leaves the leading `n` and permutes the rest.
fn after(n: usize, order: &[usize]) -> Vec<usize> {
    (0..n).chain(order.iter().map(|d| n + d)).collect()
}

fn pixel_shuffle(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, r) = (a.tensor(0)?, a.int(1)?);
    let own = tensor.sizes();
    let (lead, channels, height, width) = image(&own, "pixel_shuffle", r)?;
    let square = r.saturating_mul(r);
    if channels % square != 0 {
        return Err(Diagnostic::runtime(format!(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but \
             input.size(-3)={channels} is not divisible by {square}"
        )));
    }
    let c = channels / square;
    let split = [lead, &[c, r, r, height, width]].concat();
    let sizes = [lead, &[c, height.saturating_mul(r), width.saturating_mul(r)]].concat();
    shuffle(tensor, &split, &after(lead.len(), &[0, 3, 1, 4, 2]), &sizes)
}

fn pixel_unshuffle(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, r) = (a.tensor(0)?, a.int(1)?);
    let own = tensor.sizes();
    let (lead, channels, height, width) = image(&own, "pixel_unshuffle", r)?;
    for (size, name, at) in [(height, "height", -2), (width, "width", -1)] {
        if size % r != 0 {
            return Err(Diagnostic::runtime(format!(
                "pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({at})={size} is not \
                 divisible by {r}"
            )));
        }
    }
    let split = [lead, &[channels, height / r, r, width / r, r]].concat();
    let sizes = [lead, &[channels.saturating_mul(r).saturating_mul(r), height / r, width / r]].concat();
    shuffle(tensor, &split, &after(lead.len(), &[0, 2, 4, 1, 3]), &sizes)
}
