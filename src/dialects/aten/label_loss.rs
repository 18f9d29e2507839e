//! Losses over class labels: negative log likelihood, margins, connectionist temporal classification.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::trial;
use crate::dialects::{Args, OpDef, Outputs, one, opaque};
use crate::kernels::compute::{Number, Real};
use crate::kernels::create::range::not_implemented;
use crate::resources::memory;
use crate::tensor::{DType, Tensor, numel};
use smallvec::smallvec;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque(
        "aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
        |a| one(Labels::new(a)?.vectors()?.0),
    ).infer(trial::stand_ins)
    .out("out"),
    opaque(
        "aten::nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
        |a| one(Labels::new(a)?.images()?.0),
    ).infer(trial::stand_ins)
    .out("out"),
    opaque(
        "aten::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
        |a| one(Labels::new(a)?.any_rank()?),
    ).infer(trial::stand_ins),
    opaque(
        "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
        |a| pair(Labels::new(a)?.vectors()?),
    ),
    opaque(
        "aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
        |a| pair(Labels::new(a)?.images()?),
    ),
    opaque(
        "aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor",
        multi_margin,
    ).infer(trial::stand_ins)
    .out("out"),
    opaque(
        "aten::multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
        |a| one(multilabel_margin(a)?.0),
    ).infer(trial::stand_ins)
    .out("out"),
    opaque(
        "aten::multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)",
        |a| pair(multilabel_margin(a)?),
    ),
    opaque(
        "aten::ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
        |a| ctc_loss(a, &a.ints(2)?, &a.ints(3)?),
    ),
    opaque(
        "aten::ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
        |a| ctc_loss(a, &a.tensor(2)?.elements_as::<i64>()?, &a.tensor(3)?.elements_as::<i64>()?),
    ),
];

fn fail<T>(text: impl Into<String>) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

fn pair((a, b): (Tensor, Tensor)) -> Result<Outputs> {
    Ok(smallvec![a.into(), b.into()])
}

/// None, mean or sum, by PyTorch's number. `weight` is what the mean divides by.
fn reduce(losses: &[f64], sizes: &[i64], reduction: i64, weight: f64, dtype: DType) -> Result<Tensor> {
    let sum = || losses.iter().sum::<f64>();
    match reduction {
        0 => Tensor::from_vec(losses, sizes),
        1 => Tensor::from_vec(&[sum() / weight], &[]),
        2 => Tensor::from_vec(&[sum()], &[]),
        other => fail(format!("{other} is not a valid value for reduction")),
    }?
    .to_dtype(dtype)
}

/// A negative log likelihood: the arguments.
struct Labels<'a> {
    input: &'a Tensor,
    target: &'a Tensor,
    weight: Option<&'a Tensor>,
    reduction: i64,
    ignore: i64,
}

impl<'a> Labels<'a> {
    fn new(a: &Args<'a>) -> Result<Labels<'a>> {
        Ok(Labels {
            input: a.tensor(0)?,
            target: a.tensor(1)?,
            weight: a.opt_tensor(2)?,
            reduction: a.int(3)?,
            ignore: a.int(4)?,
        })
    }

    fn check_target(&self) -> Result<()> {
        let dtype = self.target.dtype();
        if matches!(dtype, DType::I64 | DType::U8) {
            return Ok(());
        }
        fail(format!("expected target dtype to be Long or Byte, but got {}", dtype.type_name()))
    }

    /// Input (C) or (N, C).
    fn vectors(&self) -> Result<(Tensor, Tensor)> {
        let (x, t) = (self.input.sizes(), self.target.sizes());
        if x.is_empty() || x.len() > 2 {
            return fail("input tensor should be 1D or 2D");
        }
        if t.len() > 1 {
            return fail("0D or 1D target tensor expected, multi-target not supported");
        }
        self.check_target()?;
        if x.len() == 1 && t.len() == 1 && t[0] != 1 {
            return Err(Diagnostic::raised(
                "ValueError",
                format!("For 1D input, 1D target must have size 1, but got target size: {}", t[0]),
            ));
        }
        if x.len() == 2 && t.first() != Some(&x[0]) {
            return fail(format!(
                "size mismatch (got input: {:?}, target: {:?})",
                x.as_slice(),
                t.as_slice()
            ));
        }
        let rows = if x.len() == 1 { 1 } else { x[0] };
        let result_sizes = if x.len() == 1 { &[][..] } else { &t[..] };
        self.compute(rows as usize, x[x.len() - 1] as usize, 1, result_sizes)
    }

    /// Input (N, C, H, W).
    fn images(&self) -> Result<(Tensor, Tensor)> {
        let (x, t) = (self.input.sizes(), self.target.sizes());
        if t.len() != 3 {
            return fail(format!(
                "only batches of spatial targets supported (3D tensors) but got targets of dimension: {}",
                t.len()
            ));
        }
        if x.len() != 4 {
            return fail(format!(
                "only batches of spatial inputs supported (4D tensors), but got input of dimension: {}",
                x.len()
            ));
        }
        if [x[0], x[2], x[3]] != t[..] {
            return fail(format!(
                "size mismatch (got input: {:?} , target: {:?}",
                x.as_slice(),
                t.as_slice()
            ));
        }
        self.compute(x[0] as usize, x[1] as usize, (x[2] * x[3]) as usize, &t)
    }

    fn any_rank(&self) -> Result<Tensor> {
        let (x, t) = (self.input.sizes(), self.target.sizes());
        let value_error = |text: String| Err(Diagnostic::raised("ValueError", text));
        match x.len() {
            0 => return value_error("Expected 1 or more dimensions (got 0)".into()),
            1 | 2 => {}
            _ if t.is_empty() => {
                return fail("target needs as many dimensions as the input has without classes");
            }
            _ => {}
        }
        if x.len() > 1 && t.first() != Some(&x[0]) {
            return value_error(format!(
                "Expected input batch_size ({}) to match target batch_size ({}).",
                x[0],
                t.first().copied().unwrap_or(0)
            ));
        }
        if x.len() <= 2 {
            return Ok(self.vectors()?.0);
        }
        let wanted: Vec<i64> = std::iter::once(x[0]).chain(x[2..].iter().copied()).collect();
        if t[..] != wanted {
            return fail(format!("Expected target size {wanted:?}, got {:?}", t.as_slice()));
        }
        Ok(self.compute(x[0] as usize, x[1] as usize, numel(&x[2..]), &t)?.0)
    }

    /// The loss of each label in order (image, pixel), reduced; and the total weight of what was counted.
    fn compute(
        &self,
        images: usize,
        classes: usize,
        pixels: usize,
        sizes: &[i64],
    ) -> Result<(Tensor, Tensor)> {
        if let Some(w) = self.weight.filter(|w| w.rank() != 1 || w.numel() != classes) {
            return fail(format!(
                "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {:?}",
                w.sizes().as_slice()
            ));
        }
        self.check_target()?;
        let dtype = self.input.dtype();
        let labels = self.target.elements_as::<i64>()?;
        crate::dispatch_real!(dtype, "nll_loss_out_frame", R => {
            let x = self.input.elements_as::<R>()?;
            let w = self.weight.map(Tensor::elements_as::<R>).transpose()?;
            let (mut losses, mut total) = (memory::filled(images * pixels, 0f64)?, 0f64);
            for (at, loss) in losses.iter_mut().enumerate() {
                let label = labels[at];
                if label == self.ignore {
                    continue;
                }
                let Some(class) = usize::try_from(label).ok().filter(|c| *c < classes) else {
                    return Err(Diagnostic::raised("IndexError", format!("Target {label} is out of bounds.")));
                };
                let weight = w.as_ref().map_or(R::ONE, |w| w[class]);
                *loss = (-x[(at / pixels * classes + class) * pixels + at % pixels] * weight).wide();
                total += weight.wide();
            }
            let total_weight = if self.reduction == 0 && self.input.rank() > 1 { 0.0 } else { total };
            let result = reduce(&losses, sizes, self.reduction, total, dtype)?;
            Ok((result, Tensor::from_vec(&[total_weight], &[])?.to_dtype(dtype)?))
        })
    }
}

/// Rows and classes of an input (C) or (N, C).
fn rows_of(input: &Tensor) -> Result<(usize, usize)> {
    match input.sizes()[..] {
        [] => Ok((1, 1)),
        [c] if c > 0 => Ok((1, c as usize)),
        [n, c] if c > 0 => Ok((n as usize, c as usize)),
        _ => fail(format!(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: {:?}",
            input.sizes().as_slice()
        )),
    }
}

fn multi_margin(a: &Args<'_>) -> Result<Outputs> {
    let (input, target, weight) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(4)?);
    let (p, margin, reduction) = (a.scalar(2)?.to_f64(), a.scalar(3)?.to_f64(), a.int(5)?);
    if p != 1.0 && p != 2.0 {
        return fail("only p == 1 and p == 2 supported");
    }
    let (rows, classes) = rows_of(input)?;
    if target.rank() > 1 || target.numel() != rows {
        return fail(format!(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). \
             Expected target size [{rows}], but got {:?}. Input has shape {:?}.",
            target.sizes().as_slice(),
            input.sizes().as_slice()
        ));
    }
    if let Some(w) = weight.filter(|w| w.rank() > 1 || w.numel() != classes) {
        return fail(format!(
            "inconsistent weight size, expected {classes} but got {:?}",
            w.sizes().as_slice()
        ));
    }
    if target.dtype() != DType::I64 {
        return fail(format!("expected scalar type Long but found {}", target.dtype().type_name()));
    }
    let labels = target.elements_as::<i64>()?;
    if labels.iter().any(|t| !(0..classes as i64).contains(t)) {
        return fail("target out of range");
    }
    crate::dispatch_real!(input.dtype(), "multi_margin_loss_cpu_kernel", R => {
        let x = input.elements_as::<R>()?;
        let w = weight.map(Tensor::elements_as::<R>).transpose()?;
        let losses: Vec<f64> = (0..rows)
            .map(|r| {
                let (row, label) = (&x[r * classes..(r + 1) * classes], labels[r] as usize);
                let mut sum = 0.0;
                for (class, value) in row.iter().enumerate() {
                    let gap = margin - row[label].wide() + value.wide();
                    if class != label && gap > 0.0 {
                        let h = if p == 1.0 { gap } else { gap * gap };
                        sum += h * w.as_ref().map_or(1.0, |w| w[label].wide());
                    }
                }
                sum / classes as f64
            })
            .collect();
        one(reduce(&losses, &target.sizes(), reduction, rows as f64, input.dtype())?)
    })
}

/// Fails unless the elements have 32 or 64 bits.
fn expect_wide(input: &Tensor) -> Result<()> {
    match input.dtype() {
        DType::F32 | DType::F64 => Ok(()),
        dtype => Err(not_implemented("multilabel_margin_loss_forward_out_frame", dtype)),
    }
}

/// The loss, and which classes are targets.
fn multilabel_margin(a: &Args<'_>) -> Result<(Tensor, Tensor)> {
    let (input, target, reduction) = (a.tensor(0)?, a.tensor(1)?, a.int(2)?);
    let (rows, classes) = rows_of(input)?;
    if target.sizes() != input.sizes() && !(input.rank() <= 1 && target.numel() == classes) {
        return fail(format!(
            "inconsistent target size: {:?} for input of size: {:?}",
            target.sizes().as_slice(),
            input.sizes().as_slice()
        ));
    }
    if target.dtype() != DType::I64 && target.numel() > 0 {
        if target.dtype().is_complex() {
            return Err(not_implemented("min_all", target.dtype()));
        }
        expect_wide(input)?;
        return fail(format!("expected scalar type Long but found {}", target.dtype().type_name()));
    }
    let labels = target.elements_as::<i64>()?;
    if labels.iter().any(|t| *t < -1 || *t >= classes as i64) {
        return fail("argument #2 'target' is out of range");
    }
    expect_wide(input)?;
    let mut is_target = memory::filled(rows * classes, 0u8)?;
    crate::dispatch_real!(input.dtype(), "multilabel_margin_loss_forward_out_frame", R => {
        let x = input.elements_as::<R>()?;
        let mut losses = memory::filled(rows, 0f64)?;
        for (r, loss) in losses.iter_mut().enumerate() {
            let row = &x[r * classes..(r + 1) * classes];
            let wanted: Vec<usize> = labels[r * classes..(r + 1) * classes]
                .iter()
                .take_while(|t| **t >= 0)
                .map(|t| *t as usize)
                .collect();
            wanted.iter().for_each(|t| is_target[r * classes + t] = 1);
            for label in &wanted {
                for (class, value) in row.iter().enumerate() {
                    let gap = 1.0 - row[*label].wide() + value.wide();
                    if is_target[r * classes + class] == 0 && gap > 0.0 {
                        *loss += gap;
                    }
                }
            }
            *loss /= classes as f64;
        }
        let sizes = if input.rank() < 2 { vec![] } else { vec![rows as i64] };
        let flags = Tensor::from_vec(&is_target, &target.sizes())?.to_dtype(input.dtype())?;
        Ok((reduce(&losses, &sizes, reduction, rows as f64, input.dtype())?, flags))
    })
}

/// The negative log likelihood of label sequences under frame-wise log probabilities (T, N, C) or (T, C).
fn ctc_loss(a: &Args<'_>, frames: &[i64], lengths: &[i64]) -> Result<Outputs> {
    let (logs, targets) = (a.tensor(0)?, a.tensor(1)?);
    let (blank, reduction, zero_infinity) = (a.int(4)?, a.int(5)?, a.bool(6)?);
    let sizes = logs.sizes();
    let (time, batch, classes) = match sizes[..] {
        [t, n, c] => (t, n, c),
        [t, c] => (t, 1, c),
        _ => return fail(format!("log_probs must be 2D or 3D, got {}D", sizes.len())),
    };
    if !(0..classes).contains(&blank) {
        return fail("blank must be in label range");
    }
    for (list, name) in [(frames, "input_lengths"), (lengths, "target_lengths")] {
        if list.len() as i64 != batch {
            return fail(format!("{name} must be of size batch_size"));
        }
        if let Some(bad) = list.iter().find(|l| **l < 0) {
            return fail(format!(
                "Expected {name} to have value at least 0, but got value {bad} (while checking arguments for \
                 ctc_loss_allocate_outputs)"
            ));
        }
    }
    if let Some(bad) = frames.iter().find(|f| **f > time) {
        return fail(format!(
            "Expected input_lengths to have value at most {time}, but got value {bad} (while checking arguments for \
             ctc_loss_allocate_outputs)"
        ));
    }
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let labels = targets.elements_as::<i64>()?;
    let starts: Vec<usize> = match targets.sizes()[..] {
        [_] if sizes.len() == 3 || batch == 1 => {
            let total: i64 = lengths.iter().sum();
            if total > labels.len() as i64 {
                return fail(format!(
                    "Expected tensor to have size {total} at dimension 0, but got size {} for argument #2 'targets' (while \
                     checking arguments for ctc_loss_allocate_outputs)",
                    labels.len()
                ));
            }
            lengths.iter().scan(0, |at, l| Some(std::mem::replace(at, *at + *l as usize))).collect()
        }
        [n, s] if n == batch && s >= longest => (0..n as usize).map(|n| n * s as usize).collect(),
        [_, s] if s < longest => {
            return fail(format!(
                "Expected tensor to have size at least {longest} at dimension 1, but got size {s} for argument #2 'targets' \
                 (while checking arguments for ctc_loss_allocate_outputs)"
            ));
        }
        _ => return fail("targets must be 1D, or 2D with one row a batch"),
    };
    let used = (0..batch as usize).flat_map(|n| &labels[starts[n]..starts[n] + lengths[n] as usize]);
    if let Some(bad) = used.clone().find(|l| !(0..classes).contains(*l)) {
        return fail(format!("targets must be labels below {classes}, got {bad}"));
    }
    crate::dispatch_real!(logs.dtype(), "ctc_loss_cpu", R => {
        let x = logs.elements_as::<R>()?;
        let mut losses: Vec<f64> = (0..batch as usize)
            .map(|n| {
                let sequence = &labels[starts[n]..starts[n] + lengths[n] as usize];
                let frame = |t: usize, class: i64| {
                    x[(t * batch as usize + n) * classes as usize + class as usize].wide()
                };
                sequence_loss(sequence, blank, frames[n] as usize, frame)
            })
            .collect();
        if zero_infinity {
            losses.iter_mut().filter(|l| l.is_infinite()).for_each(|l| *l = 0.0);
        }
        if reduction == 1 {
            losses.iter_mut().zip(lengths).for_each(|(l, n)| *l /= (*n).max(1) as f64);
        }
        let result_sizes = if sizes.len() == 2 { vec![] } else { vec![batch] };
        one(reduce(&losses, &result_sizes, reduction, batch as f64, logs.dtype())?)
    })
}

/// Minus the log of the sum over all alignments, by the forward recursion in log space.
fn sequence_loss(labels: &[i64], blank: i64, frames: usize, log: impl Fn(usize, i64) -> f64) -> f64 {
    let states = 2 * labels.len() + 1;
    let symbol = |s: usize| if s.is_multiple_of(2) { blank } else { labels[s / 2] };
    if frames == 0 {
        return if labels.is_empty() { 0.0 } else { f64::INFINITY };
    }
    let mut alpha = vec![f64::NEG_INFINITY; states];
    for (s, value) in alpha.iter_mut().enumerate().take(2) {
        *value = log(0, symbol(s));
    }
    for t in 1..frames {
        let before = alpha.clone();
        for (s, value) in alpha.iter_mut().enumerate() {
            let one = if s > 0 { before[s - 1] } else { f64::NEG_INFINITY };
            let skips = s > 1 && symbol(s) != blank && symbol(s) != symbol(s - 2);
            let two = if skips { before[s - 2] } else { f64::NEG_INFINITY };
            *value = log_sum([before[s], one, two]) + log(t, symbol(s));
        }
    }
    let last = if states > 1 { alpha[states - 2] } else { f64::NEG_INFINITY };
    -log_sum([alpha[states - 1], last, f64::NEG_INFINITY])
}

fn log_sum(values: [f64; 3]) -> f64 {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    most + values.iter().map(|v| (v - most).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two frames, uniform over three classes: the label "1" has the alignments 1b, b1 and 11.
    #[test]
    fn alignments_are_summed() {
        let uniform = |_: usize, _: i64| (1f64 / 3.0).ln();
        assert!((sequence_loss(&[1], 0, 2, uniform) + (3f64 / 9.0).ln()).abs() < 1e-12);
        assert!(sequence_loss(&[1, 1], 0, 2, uniform).is_infinite());
        assert!((sequence_loss(&[1, 2], 0, 2, uniform) + (1f64 / 9.0).ln()).abs() < 1e-12);
    }
}
