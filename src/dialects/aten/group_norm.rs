//! Normalization of groups of channels: checks of the arguments, and the two ways that images lie in.

use super::convert::in_format_of;
use super::norm_rows::{check_mixed, each_row, fail, row_moments};
use crate::diag::Result;
use crate::dialects::{Args, Outputs, one};
use crate::kernels::compute::{Dense, Number, Real, build_whole, dense_opt};
use crate::kernels::images::groups::{moments, scale_pixels};
use crate::kernels::wide_loops;
use crate::resources::{Collect, memory};
use crate::tensor::{DType, Tensor, numel, view};
use smallvec::smallvec;

pub(super) fn group_norm(a: &Args<'_>) -> Result<Outputs> {
    let (input, groups) = (a.tensor(0)?, a.int(1)?);
    let (weight, bias, eps) = (a.opt_tensor(2)?, a.opt_tensor(3)?, a.float(4)?);
    let sizes = input.sizes();
    if sizes.len() < 2 {
        crate::tensor::wrap_dim(1, sizes.len())?;
        return fail("Expected at least 2 dimensions for input tensor");
    }
    if groups <= 0 {
        return fail(format!("Expected num groups to be greater than 0, got {groups}"));
    }
    let image: i64 = sizes[2..].iter().product();
    for (count, what) in [(sizes[1], "number of channels"), (image, "HxW")] {
        if count == 0 {
            return fail(format!("Expected {what} to be greater than 0, got 0"));
        }
    }
    if sizes[1] % groups != 0 {
        return fail(format!(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape {:?} and num_groups={groups}",
            sizes.as_slice()
        ));
    }
    for (name, parameter) in [("weight", weight), ("bias", bias)] {
        if let Some(p) = parameter.filter(|p| p.sizes().as_slice() != [sizes[1]]) {
            return fail(format!(
                "Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape {:?} and \
                 input of shape {:?}",
                p.sizes().as_slice(),
                sizes.as_slice()
            ));
        }
    }
    one(grouped(input, weight, bias, [sizes[0], sizes[1], numel(&sizes[2..]) as i64], groups, eps)?.0)
}

pub(super) fn native_group_norm(a: &Args<'_>) -> Result<Outputs> {
    let (input, counts, groups) = (a.tensor(0)?, [a.int(3)?, a.int(4)?, a.int(5)?], a.int(6)?);
    let total = counts.iter().try_fold(1i64, |n, c| n.checked_mul(*c));
    if total != Some(input.numel() as i64) || counts.iter().any(|c| *c < 0) {
        return fail(
            "Expected X.numel() == N * C * HxW to be true, but got false.  (Could this error message be improved?  \
             If so, please report an enhancement request to PyTorch.)",
        );
    }
    if groups <= 0 || counts[1] % groups != 0 {
        return fail(format!(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape {:?} and num_groups={groups}",
            input.sizes().as_slice()
        ));
    }
    let channels = counts[1] as usize;
    for (name, parameter) in [("weight", a.opt_tensor(1)?), ("bias", a.opt_tensor(2)?)] {
        let Some(parameter) = parameter else { continue };
        if parameter.rank() != 1 || parameter.numel() != channels {
            return fail(format!(
                "Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of \
                 shape {:?} and input of shape {:?}",
                parameter.sizes().as_slice(),
                input.sizes().as_slice()
            ));
        }
    }
    let (y, mean, rstd) = grouped(input, a.opt_tensor(1)?, a.opt_tensor(2)?, counts, groups, a.float(7)?)?;
    Ok(smallvec![y.into(), mean.into(), rstd.into()])
}

/// Normalizes each group of channels of each image.
fn grouped(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    [n, c, area]: [i64; 3],
    groups: i64,
    eps: f64,
) -> Result<(Tensor, Tensor, Tensor)> {
    check_mixed(input, &[weight, bias])?;
    let (sizes, dtype) = (input.sizes(), input.dtype());
    if let Some(done) = innermost(input, weight, bias, (c as usize, (c / groups) as usize), eps)? {
        return Ok(done);
    }
    crate::dispatch_real!(dtype, "GroupNormKernelImpl", R => {
        let x = Dense::<R>::new(input)?;
        let x = x.open()?;
        let (w, b) = (dense_opt::<R>(weight)?, dense_opt::<R>(bias)?);
        let (area, per_group) = (area as usize, (c / groups) as usize);
        let part = area * per_group;
        let mut stats = memory::filled((n * groups) as usize, (f64::NAN, f64::NAN))?;
        let y = build_whole::<R>(&sizes, dtype, |out| {
            // A group is still in a cache when it is read for the last time.
            each_row(out, part, &mut stats, |g, out, stats| {
                let values = &x[g * part..(g + 1) * part];
                let first = g % groups as usize * per_group;
                wide_loops(#[inline(always)] || {
                    let (mean, var) = row_moments(values);
                    *stats = (mean, 1.0 / (var + eps).sqrt());
                    for (n, (out, values)) in out.chunks_mut(area).zip(values.chunks(area)).enumerate() {
                        let scale = R::of(stats.1) * w.as_ref().map_or(R::ONE, |w| w[first + n]);
                        let shift = b.as_ref().map_or(R::ZERO, |b| b[first + n]);
                        let shift = (-R::of(stats.0)).mul_add(scale, shift);
                        for (y, x) in out.iter_mut().zip(values) {
                            // Not fused, as in PyTorch: a group of equal elements gives zeros.
                            *y = *x * scale + shift;
                        }
                    }
                });
            });
            Ok(())
        })?;
        let kept = weight.map_or(dtype, Tensor::dtype);
        let save = |pick: fn(&(f64, f64)) -> f64| {
            Tensor::from_vec(&stats.iter().map(pick).scratch()?, &[n, groups])?.to_dtype(kept)
        };
        Ok((in_format_of(y, &[input])?, save(|s| s.0)?, save(|s| s.1)?))
    })
}

/// The same of images in single precision whose channels lie innermost, read where they lie. None for others, and where sums of
/// squares leave the range in which PyTorch computes them.
fn innermost(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    (channels, per_group): (usize, usize),
    eps: f64,
) -> Result<Option<(Tensor, Tensor, Tensor)>> {
    let (layout, dtype) = (input.layout(), input.dtype());
    let is_single = matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
    let fits = layout.rank() == 4 && layout.sizes[1] as usize == channels && layout.numel() > 0;
    // Where strides of dimensions of size 1 suggest otherwise, the result lies row by row.
    let last = layout.is_channels_last() && layout.suggests_channels_last();
    if !is_single || !fits || layout.is_contiguous() || !last {
        return Ok(None);
    }
    let source = input.look(|l| view::movedim(l, &[1], &[-1]))?;
    let x = Dense::<f32>::new(&source)?;
    let x = x.open()?;
    let (w, b) = (dense_opt::<f32>(weight)?, dense_opt::<f32>(bias)?);
    let image = x.len() / layout.sizes[0] as usize;
    let count = (image / channels * per_group) as f64;
    let mut stats: Vec<(f64, f64)> = Vec::new();
    for x in x.chunks_exact(image) {
        for (mean, var) in moments(x, channels, per_group)? {
            if !(mean.abs() < 1e18 && var * count < 1e36) {
                return Ok(None);
            }
            stats.push((mean, 1.0 / (var + eps).sqrt()));
        }
    }
    let groups = channels / per_group;
    let y = build_whole::<f32>(&source.sizes(), dtype, |out| {
        for (n, (out, x)) in out.chunks_exact_mut(image).zip(x.chunks_exact(image)).enumerate() {
            let of = |c: usize| stats[n * groups + c / per_group];
            let factor = |c: usize| f32::of(of(c).1) * w.as_ref().map_or(1.0, |w| w[c]);
            let scale = (0..channels).map(factor).scratch()?;
            let term = |c: usize| (-f32::of(of(c).0)).mul_add(scale[c], b.as_ref().map_or(0.0, |b| b[c]));
            // Not fused with the product, as in PyTorch: a group of equal elements gives zeros.
            scale_pixels(x, &scale, &(0..channels).map(term).scratch()?, out);
        }
        Ok(())
    })?;
    let kept = weight.map_or(dtype, Tensor::dtype);
    let sizes = [layout.sizes[0], groups as i64];
    let save = |pick: fn(&(f64, f64)) -> f64| {
        Tensor::from_vec(&stats.iter().map(pick).scratch()?, &sizes)?.to_dtype(kept)
    };
    let y = y.look(|l| view::movedim(l, &[-1], &[1]))?;
    Ok(Some((in_format_of(y, &[input])?, save(|s| s.0)?, save(|s| s.1)?)))
}
