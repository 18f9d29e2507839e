//! The loss of a recurrent transducer: how unlikely a text is, summed over all ways to spread it over the steps.

use super::checks::expect;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, opaque};
use crate::resources::{Scratch, memory};
use crate::tensor::{DType, Tensor};
use smallvec::smallvec;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque(
        "torchaudio::rnnt_loss_forward(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, int blank, float clamp, bool fused_log_softmax) -> (Tensor, Tensor)",
        rnnt_loss,
    )
    .doc("The loss of each sequence, and its gradients by the logits (batch, time, target, class)"),
    opaque(
        "torchaudio::rnnt_loss(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, int blank, float clamp, bool fused_log_softmax) -> (Tensor, Tensor?)",
        rnnt_loss,
    )
    .doc("`rnnt_loss_forward` by its name before torchaudio 2.9"),
];

fn rnnt_loss(a: &Args<'_>) -> Result<Outputs> {
    let (logits, targets) = (a.tensor(0)?, a.tensor(1)?);
    let (blank, clamp, fused) = (a.int(4)?, a.float(5)?, a.bool(6)?);
    let call = check(a, logits, targets, blank)?;
    let scores = logits.elements_as::<f64>()?;
    let labels = targets.elements::<i32>()?;
    let mut grads = memory::filled(scores.len(), 0f64)?;
    let mut costs = memory::reserved(call.steps.len())?;
    let area = call.rows * call.width * call.classes;
    for (at, (steps, length)) in call.steps.iter().zip(&call.lengths).enumerate() {
        let one = Sequence {
            scores: &scores[at * area..][..area],
            labels: &labels[at * (call.width - 1)..][..*length],
            steps: *steps,
            width: call.width,
            classes: call.classes,
            blank: blank as usize,
            fused,
        };
        let cost = one.run(&mut grads[at * area..][..area])?;
        costs.push(cost)?;
    }
    if clamp > 0.0 {
        grads.iter_mut().for_each(|g| *g = g.clamp(-clamp, clamp));
    }
    let dtype = logits.dtype();
    let costs = Tensor::from_vec(&costs, &[costs.len() as i64])?.to_dtype(dtype)?;
    let grads = Tensor::from_vec(&grads, &logits.sizes())?.to_dtype(dtype)?;
    Ok(smallvec![costs.into(), grads.into()])
}

/// A checked call: sizes, and the lengths of each sequence.
struct Call {
    rows: usize,
    width: usize,
    classes: usize,
    steps: Scratch<usize>,
    lengths: Scratch<usize>,
}

fn check(a: &Args<'_>, logits: &Tensor, targets: &Tensor, blank: i64) -> Result<Call> {
    expect(
        matches!(logits.dtype(), DType::F32 | DType::F16),
        "logits must be float32 or float16 (half) type",
    )?;
    let (steps, lengths) = (a.tensor(2)?, a.tensor(3)?);
    for (name, t) in [("targets", targets), ("logit_lengths", steps), ("target_lengths", lengths)] {
        expect(t.dtype() == DType::I32, &format!("{name} must be int32 type"))?;
    }
    let all =
        [("logits", logits), ("targets", targets), ("logit_lengths", steps), ("target_lengths", lengths)];
    for (name, t) in all {
        expect(t.is_contiguous(), &format!("{name} must be contiguous"))?;
    }
    let &[batch, rows, width, classes] = &logits.sizes()[..] else {
        return Err(Diagnostic::runtime("logits must be 4-D (batch, time, target, class)"));
    };
    let &[target_batch, longest] = &targets.sizes()[..] else {
        return Err(Diagnostic::runtime("targets must be 2-D (batch, max target length)"));
    };
    for (name, t) in [("logit_lengths", steps), ("target_lengths", lengths)] {
        expect(t.rank() == 1, &format!("{name} must be 1-D"))?;
        let text = format!("batch dimension mismatch between logits and {name}");
        expect(t.sizes()[0] == batch, &text)?;
    }
    expect(target_batch == batch, "batch dimension mismatch between logits and targets")?;
    expect((0..classes).contains(&blank), "blank must be within [0, logits.shape[-1])")?;
    let (steps, lengths) = (steps.elements_as::<i64>()?, lengths.elements_as::<i64>()?);
    expect(steps.iter().max() == Some(&rows), "input length mismatch")?;
    expect(lengths.iter().max().map(|n| n + 1) == Some(width), "output length mismatch")?;
    expect(longest + 1 == width, "target length mismatch")?;
    expect(steps.iter().all(|n| *n > 0) && lengths.iter().all(|n| *n >= 0), "lengths must be positive")?;
    let within = |label: &i32| (0..classes).contains(&i64::from(*label));
    expect(targets.elements::<i32>()?.iter().all(within), "targets must be within [0, logits.shape[-1])")?;
    let count = |all: Scratch<i64>| memory::collected(all.into_iter().map(|n| n as usize));
    let (rows, width, classes) = (rows as usize, width as usize, classes as usize);
    Ok(Call { rows, width, classes, steps: count(steps)?, lengths: count(lengths)? })
}

/// One sequence: scores of each class at (step, labels emitted so far).
struct Sequence<'a> {
    scores: &'a [f64],
    labels: &'a [i32],
    steps: usize,
    width: usize,
    classes: usize,
    blank: usize,
    fused: bool,
}

impl Sequence<'_> {
    /// The loss; its gradients go to `grads`, which has the layout of the scores.
    fn run(&self, grads: &mut [f64]) -> Result<f64> {
        let places = self.steps * self.width;
        let mut norms = memory::filled(places, 0f64)?;
        if self.fused {
            for (norm, row) in norms.iter_mut().zip(self.scores.chunks_exact(self.classes)) {
                let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                *norm = top + row.iter().map(|x| (x - top).exp()).sum::<f64>().ln();
            }
        }
        let log_prob = |at: usize, class: usize| self.scores[at * self.classes + class] - norms[at];
        let rest = self.from_end(&log_prob)?;
        let before = self.from_start(&log_prob)?;
        let cost = -rest[0];
        let (last_step, ends) = (self.steps - 1, self.labels.len());
        for step in 0..self.steps {
            for done in 0..=ends {
                let at = step * self.width + done;
                let ratio = before[at] + cost - norms[at];
                for class in 0..self.classes {
                    let weight = ratio + self.scores[at * self.classes + class];
                    let mut grad = if self.fused { (weight + rest[at]).exp() } else { 0.0 };
                    if class == self.blank && step == last_step && done == ends {
                        grad -= weight.exp();
                    } else if class == self.blank && step < last_step {
                        grad -= (weight + rest[at + self.width]).exp();
                    } else if done < ends && class == self.labels[done] as usize {
                        grad -= (weight + rest[at + 1]).exp();
                    }
                    grads[at * self.classes + class] = grad;
                }
            }
        }
        Ok(cost)
    }

    /// At each place, the logarithm of the probability to come there.
    fn from_start(&self, log_prob: &impl Fn(usize, usize) -> f64) -> Result<Scratch<f64>> {
        let mut sums = memory::filled(self.steps * self.width, f64::NEG_INFINITY)?;
        sums[0] = 0.0;
        for step in 0..self.steps {
            for done in 0..=self.labels.len() {
                let at = step * self.width + done;
                if step > 0 {
                    let above = at - self.width;
                    sums[at] = sums[above] + log_prob(above, self.blank);
                }
                if done > 0 {
                    let emitted = sums[at - 1] + log_prob(at - 1, self.labels[done - 1] as usize);
                    sums[at] = if step > 0 { add(sums[at], emitted) } else { emitted };
                }
            }
        }
        Ok(sums)
    }

    /// At each place, the logarithm of the probability of all that is left.
    fn from_end(&self, log_prob: &impl Fn(usize, usize) -> f64) -> Result<Scratch<f64>> {
        let mut sums = memory::filled(self.steps * self.width, f64::NEG_INFINITY)?;
        let (last_step, ends) = (self.steps - 1, self.labels.len());
        for step in (0..self.steps).rev() {
            for done in (0..=ends).rev() {
                let at = step * self.width + done;
                let waits = match step < last_step {
                    true => sums[at + self.width] + log_prob(at, self.blank),
                    false if done == ends => log_prob(at, self.blank),
                    false => f64::NEG_INFINITY,
                };
                let emits = match done < ends {
                    true => sums[at + 1] + log_prob(at, self.labels[done] as usize),
                    false => f64::NEG_INFINITY,
                };
                sums[at] = add(waits, emits);
            }
        }
        Ok(sums)
    }
}

/// The logarithm of the sum of two numbers given by their logarithms.
fn add(x: f64, y: f64) -> f64 {
    let (high, low) = if x > y { (x, y) } else { (y, x) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}
