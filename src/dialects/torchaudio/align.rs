//! Alignment of a text with its sound: the likeliest path of labels and blanks through the classes' probabilities.

use super::checks::expect;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, opaque};
use crate::kernels::compute::Real;
use crate::resources::{Scratch, memory};
use crate::tensor::{DType, Tensor};
use smallvec::smallvec;

/// The rows.
pub static OPS: &[OpDef] = &[opaque(
    "torchaudio::forced_align(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) -> (Tensor, Tensor)",
    forced_align,
)
.hidden_marks("torchaudio::forced_align(Tensor(a) log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) -> (Tensor, Tensor(a))")
.doc("The label of each step on the likeliest path through all targets, and the probabilities as they came")];

fn forced_align(a: &Args<'_>) -> Result<Outputs> {
    let (probabilities, targets, blank) = (a.tensor(0)?, a.tensor(1)?, a.int(4)?);
    let dtype = probabilities.dtype();
    expect(
        matches!(dtype, DType::F64 | DType::F32 | DType::F16),
        "log_probs must be float64, float32 or float16 (half) type",
    )?;
    expect(matches!(targets.dtype(), DType::I32 | DType::I64), "targets must be int32 or int64 type")?;
    for (t, text) in
        [(probabilities, "log_probs must be contiguous"), (targets, "targets must be contiguous")]
    {
        expect(t.is_contiguous(), text)?;
    }
    let &[batch, steps, classes] = &probabilities.sizes()[..] else {
        return Err(Diagnostic::runtime("log_probs must be 3-D (batch_size, input length, num classes)"));
    };
    let &[target_batch, length] = &targets.sizes()[..] else {
        return Err(Diagnostic::runtime("targets must be 2-D (batch_size, target length,)"));
    };
    expect(batch == 1, "The batch dimension for log_probs must be 1 at the current version.")?;
    expect(target_batch == 1, "The batch dimension for targets must be 1 at the current version.")?;
    expect((0..classes).contains(&blank), "blank must be within [0, num classes)")?;
    let longest = |n: usize| Ok::<_, Diagnostic>(a.tensor(n)?.elements_as::<i64>()?.into_iter().max());
    expect(longest(2)? == Some(steps), "input length mismatch")?;
    expect(longest(3)? == Some(length), "target length mismatch")?;
    let labels = targets.elements_as::<i64>()?;
    expect(labels.iter().all(|l| (0..classes).contains(l)), "targets must be within [0, num classes)")?;
    let repeats = labels.windows(2).filter(|pair| pair[0] == pair[1]).count();
    if (steps as usize) < labels.len() + repeats {
        return Err(Diagnostic::runtime(format!(
            "targets length is too long for CTC. Found log_probs length: {steps}, targets length: {length}, and number of repeats: {repeats}"
        )));
    }
    let path = match dtype {
        DType::F64 => likeliest(&probabilities.elements::<f64>()?, classes as usize, &labels, blank)?,
        DType::F32 => likeliest(&probabilities.elements::<f32>()?, classes as usize, &labels, blank)?,
        _ => halves(probabilities, classes as usize, &labels, blank)?,
    };
    let path = Tensor::from_vec(&path, &[1, steps])?.to_dtype(targets.dtype())?;
    Ok(smallvec![path.into(), probabilities.clone().into()])
}

/// Sums of halves are rounded to halves, which may make paths equal.
fn halves(probabilities: &Tensor, classes: usize, labels: &[i64], blank: i64) -> Result<Scratch<i64>> {
    let wide = probabilities.elements_as::<f32>()?;
    viterbi(&wide, classes, labels, blank, |x: f32| half::f16::from_f32(x).to_f32())
}

fn likeliest<R: Real>(log_probs: &[R], classes: usize, labels: &[i64], blank: i64) -> Result<Scratch<i64>> {
    viterbi(log_probs, classes, labels, blank, |x| x)
}

/// States are the labels with a blank before, between and after them. A step stays, goes to the next state, or skips
/// the blank between two different labels; among equals staying wins.
fn viterbi<R: Real>(
    log_probs: &[R],
    classes: usize,
    labels: &[i64],
    blank: i64,
    round: impl Fn(R) -> R,
) -> Result<Scratch<i64>> {
    let states = 2 * labels.len() + 1;
    let steps = log_probs.len() / classes;
    let label = |state: usize| if state.is_multiple_of(2) { blank } else { labels[state / 2] };
    let never = -R::INFINITY;
    let (mut best, mut next) = (memory::filled(states, never)?, memory::filled(states, never)?);
    let mut moves = memory::filled(steps.saturating_mul(states), 0u8)?;
    for (state, score) in best.iter_mut().take(2).enumerate() {
        *score = log_probs[label(state) as usize];
    }
    for step in 1..steps {
        let row = &log_probs[step * classes..][..classes];
        for state in 0..states {
            let from = |back: usize| if state >= back { best[state - back] } else { never };
            let skips = state % 2 == 1 && state > 1 && labels[state / 2] != labels[state / 2 - 1];
            let (stay, go, skip) = (from(0), from(1), if skips { from(2) } else { never });
            let (score, back) = if skip > go && skip > stay {
                (skip, 2)
            } else if go > stay && go > skip {
                (go, 1)
            } else {
                (stay, 0)
            };
            next[state] = round(score + row[label(state) as usize]);
            moves[step * states + state] = back;
        }
        std::mem::swap(&mut best, &mut next);
    }
    let last = states - 1;
    let mut state = if last == 0 || best[last] > best[last - 1] { last } else { last - 1 };
    let mut path = memory::filled(steps, 0i64)?;
    for step in (0..steps).rev() {
        path[step] = label(state);
        state -= usize::from(moves[step * states + state]);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_label_needs_a_blank_between() {
        let row = |likely: usize| (0..3).map(move |c| if c == likely { -0.1 } else { -3.0f32 });
        let all: Vec<f32> = [1, 1, 1].into_iter().flat_map(row).collect();
        assert_eq!(likeliest(&all, 3, &[1, 1], 0).expect("valid"), [1, 0, 1]);
        assert_eq!(likeliest(&all, 3, &[1], 0).expect("valid"), [1, 1, 1]);
        assert_eq!(likeliest(&all, 3, &[], 2).expect("valid"), [2, 2, 2]);
    }
}
