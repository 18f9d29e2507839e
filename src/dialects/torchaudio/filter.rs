//! Filters with feedback: loops over samples, each of which needs the one before.

use super::checks::expect;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, composite, one, opaque};
use crate::kernels::compute::Real;
use crate::kernels::create::range::not_implemented;
use crate::tensor::{DType, Tensor};
use smallvec::smallvec;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque(
        "torchaudio::_lfilter_core_loop(Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor(a!) padded_output_waveform) -> Tensor(a!)",
        |a| match a.tensor(0)?.dtype() {
            DType::F32 => feedback::<f32>(a),
            DType::F64 => feedback::<f64>(a),
            _ => Err(Diagnostic::runtime("_lfilter_core_loop: samples must be float32 or float64")),
        },
    )
    .doc("Subtracts from each sample the ones before it in the output, times coefficients: (batch, channel, time)"),
    opaque(
        "torchaudio::_overdrive_core_loop(Tensor waveform, Tensor temp, Tensor(a!) last_in, Tensor(b!) last_out, Tensor(c!) output_waveform) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
        |a| match a.tensor(0)?.dtype() {
            DType::F32 => overdrive::<f32>(a),
            DType::F64 => overdrive::<f64>(a),
            other => Err(not_implemented("overdrive_cpu", other)),
        },
    )
    .doc("A high-pass filter of one pole over the distorted samples, mixed with the original: (channel, time)"),
    composite(
        "torchaudio::_lfilter(Tensor waveform, Tensor a_coeffs, Tensor b_coeffs) -> Tensor",
        include_str!("lfilter.py"),
    )
    .doc("A linear filter, of releases of torchaudio before 2.9: (batch, channel, time), coefficients (channel, order)"),
];

fn feedback<R: Real>(a: &Args<'_>) -> Result<Outputs> {
    let (input, coefficients, output) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    let (sizes, out_sizes) = (input.sizes(), output.sizes());
    let (&[batch, channels, steps], &[out_batch, out_channels, out_steps]) = (&sizes[..], &out_sizes[..])
    else {
        return Err(Diagnostic::runtime("_lfilter_core_loop: waveforms must be (batch, channel, time)"));
    };
    let &[filters, order] = &coefficients.sizes()[..] else {
        return Err(Diagnostic::runtime("_lfilter_core_loop: coefficients must be (channel, order)"));
    };
    for t in [input, coefficients, output] {
        expect(t.is_contiguous(), "_lfilter_core_loop: tensors must be contiguous")?;
    }
    let fits = (out_batch, out_channels, filters) == (batch, channels, channels)
        && order > 0
        && out_steps.checked_sub(steps) == Some(order - 1);
    expect(fits, "_lfilter_core_loop: sizes of input, coefficients and output do not fit")?;
    let (xs, factors) = (input.elements::<R>()?, coefficients.elements::<R>()?);
    let (steps, order, out_steps) = (steps as usize, order as usize, out_steps as usize);
    let mut ys = output.elements::<R>()?;
    for (row, out) in ys.chunks_exact_mut(out_steps.max(1)).enumerate() {
        let samples = &xs[row * steps..][..steps];
        let factors = &factors[row % channels as usize * order..][..order];
        for (at, sample) in samples.iter().enumerate() {
            let mut value = *sample;
            for (y, factor) in out[at..].iter().zip(factors) {
                value -= *y * *factor;
            }
            out[at + order - 1] = value;
        }
    }
    output.write_dense(&ys)?;
    one(output.clone())
}

fn overdrive<R: Real>(a: &Args<'_>) -> Result<Outputs> {
    let (waveform, distorted) = (a.tensor(0)?, a.tensor(1)?);
    let (last_in, last_out, output) = (a.tensor(2)?, a.tensor(3)?, a.tensor(4)?);
    let sizes = waveform.sizes();
    let &[channels, steps] = &sizes[..] else {
        return Err(Diagnostic::runtime("_overdrive_core_loop: waveforms must be (channel, time)"));
    };
    let fits = distorted.sizes() == sizes && output.sizes() == sizes;
    let states = [last_in, last_out].iter().all(|t| t.sizes()[..] == [channels]);
    expect(fits && states, "_overdrive_core_loop: sizes of waveforms and states do not fit")?;
    let (xs, ts) = (waveform.elements::<R>()?, distorted.elements::<R>()?);
    let (mut ins, mut outs) = (last_in.elements::<R>()?, last_out.elements::<R>()?);
    let mut ys = output.elements::<R>()?;
    let (pole, dry, wet) = (R::of(0.995), R::of(0.5), R::of(0.75));
    let rows = ys.chunks_exact_mut((steps as usize).max(1));
    for (channel, row) in rows.enumerate() {
        let (before, after) = (&mut ins[channel], &mut outs[channel]);
        for (at, y) in row.iter_mut().enumerate() {
            let i = channel * steps as usize + at;
            *after = ts[i] - *before + pole * *after;
            *before = ts[i];
            *y = xs[i] * dry + *after * wet;
        }
    }
    for (tensor, elements) in [(last_in, &ins), (last_out, &outs), (output, &ys)] {
        Tensor::write_dense(tensor, elements)?;
    }
    Ok(smallvec![last_in.clone().into(), last_out.clone().into(), output.clone().into()])
}
