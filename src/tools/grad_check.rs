//! `flambeau grad check FILE...`: gradients of recorded cases beside central differences of the program itself, in float64 and
//! complex128, first and second order. Must not know how gradients are computed.

use super::case::{self, Case, decode, uniform};
use super::gradients::{self, Learned};
use super::io::Io;
use super::load;
use super::progress::Progress;
use crate::autodiff::Cells;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Registry, Run, resolve};
use crate::runtime::Program;
use crate::tensor::{DType, Tensor};
use crate::value::Value;
use num_complex::Complex64;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How far arguments are moved.
const STEP: f64 = 1e-6;
/// How far a derivative may be from its difference, beside the larger of itself and 1.
const TOLERANCE: f64 = 2e-5;

/// What became of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The differences agree.
    Agrees,
    /// At a corner: the derivative lies between the differences of both sides.
    Corner,
    /// The differences do not agree, and PyTorch's recorded gradient is the same: a convention, as that triangles of symmetric
    /// matrices count as one.
    Convention,
    /// It is neither.
    Wrong,
    /// No differences can be taken.
    Open,
}

/// Checks the cases of files; gives whether none is wrong.
pub(super) fn run(files: &[std::path::PathBuf], registry: &Arc<Registry>, io: &mut Io<'_>) -> Result<bool> {
    let mut cases = Vec::new();
    for file in files {
        cases.extend(Case::read_all(&io.path(file))?.into_iter().filter(|case| case.backward.is_some()));
    }
    let progress = Progress::new("differences", cases.len(), io);
    let cells = Cells::of(registry);
    let mut covered: BTreeSet<String> = BTreeSet::new();
    let mut counts = [0usize; 5];
    for case in &cases {
        progress.about(&case.name);
        let (verdict, message) = match Subject::new(case, registry).and_then(|subject| {
            let found = subject.verdict()?;
            subject.ops(&mut covered);
            Ok(found)
        }) {
            Ok(found) => found,
            Err(error) => (Verdict::Open, error.message().to_string()),
        };
        counts[verdict as usize] += 1;
        if !matches!(verdict, Verdict::Agrees | Verdict::Corner) {
            let what = format!("{verdict:?}").to_lowercase();
            progress.hidden(|| io.print(&format!("{what} {}: {message}\n", case.name)));
        }
        progress.step();
    }
    progress.end();
    let all: Vec<String> = cells.texts().iter().map(|(op, _)| op.full_name().to_string()).collect();
    let open: Vec<&String> = all.iter().filter(|name| !covered.contains(*name)).collect();
    let [agree, corner, convention, wrong, without] = counts;
    io.print(&format!(
        "{} cases: {agree} agree, {corner} at corners, {convention} by convention, {wrong} wrong, {without} open\n",
        cases.len()
    ));
    io.print(&format!("{} of {} operators with a derivative took part\n", all.len() - open.len(), all.len()));
    Ok(wrong == 0)
}

/// A case, with the point at which it is differentiated and the direction in which it is moved.
struct Subject<'a> {
    case: &'a Case,
    program: Program,
    run: Run,
    /// The tensors that are moved, as they are recorded, and where each goes.
    point: Vec<(Tensor, Vec<Complex64>)>,
}

impl<'a> Subject<'a> {
    fn new(case: &'a Case, registry: &Arc<Registry>) -> Result<Subject<'a>> {
        let run = Run::silent();
        let program = load::load_case(case, &run, registry)?;
        let mut subject = Subject { case, program, run, point: Vec::new() };
        let (_, wrt) = subject.arguments(0.0)?;
        let mut state = 1u64;
        for tensor in wrt {
            let complex = match tensor.dtype() {
                DType::F64 => false,
                DType::C128 => true,
                other => {
                    let message = format!("differences need float64 or complex128, not {}", other.name());
                    return Err(Diagnostic::input(message));
                }
            };
            let mut number = || 2.0 * uniform(&mut state) - 1.0;
            let direction = (0..tensor.numel())
                .map(|_| Complex64::new(number(), if complex { number() } else { 0.0 }))
                .collect();
            subject.point.push((tensor.detach().copy()?, direction));
        }
        Ok(subject)
    }

    /// The operators of the program.
    fn ops(&self, out: &mut BTreeSet<String>) {
        for function in self.program.module().functions.values() {
            for op in function.graph.all_ops() {
                if let Ok(row) = resolve(self.program.registry(), &function.graph, op) {
                    out.insert(row.full_name().to_string());
                }
            }
        }
    }

    /// Arguments and the tensors to differentiate by, moved so far in the direction.
    fn arguments(&self, by: f64) -> Result<(Vec<Value>, Vec<Tensor>)> {
        let args = self.case.args.iter().map(decode).collect::<Result<Vec<Value>>>()?;
        let wrt = gradients::prepare(self.case, &self.program, &args)?;
        for (tensor, (point, direction)) in wrt.iter().zip(&self.point) {
            let moved: Vec<Complex64> =
                elements(point)?.iter().zip(direction).map(|(x, d)| x + d * by).collect();
            let moved = match tensor.dtype() {
                DType::C128 => Tensor::from_vec(&moved, &point.sizes())?,
                _ => Tensor::from_vec(&moved.iter().map(|x| x.re).collect::<Vec<f64>>(), &point.sizes())?,
            };
            tensor.detach().copy_from(&moved)?;
        }
        Ok((args, wrt))
    }

    fn learned(&self, by: f64) -> Result<(Vec<Tensor>, Learned)> {
        let (args, wrt) = self.arguments(by)?;
        self.run.seed(0);
        let answer = self.program.run(&self.case.entry, args, &self.run)?;
        let mut outputs = Vec::new();
        gradients::differentiable(&answer, &mut outputs);
        Ok((outputs, gradients::backward(self.case, &self.program, &answer, &wrt, &self.run)?))
    }

    /// The weighted sum of the answer, and of the gradients, as the case weighs them.
    fn sums(&self, by: f64) -> Result<(f64, Option<f64>)> {
        let backward = self.case.backward.as_ref().ok_or_else(|| Diagnostic::internal("no gradients"))?;
        let (outputs, learned) = self.learned(by)?;
        let outputs: Vec<Option<Tensor>> = outputs.into_iter().map(Some).collect();
        let first = weighted(&backward.cotangents, &outputs)?;
        let second = match (&backward.second, &learned.grads) {
            (Some((weights, _)), Some(grads)) => Some(weighted(weights, grads)?),
            _ => None,
        };
        Ok((first, second))
    }

    /// How the value changes in the direction, by gradients.
    fn along(&self, gradients: &[Option<Tensor>]) -> Result<f64> {
        let mut sum = 0.0;
        for ((_, direction), gradient) in self.point.iter().zip(gradients) {
            let Some(gradient) = gradient else { continue };
            sum += elements(gradient)?.iter().zip(direction).map(|(g, d)| (g.conj() * d).re).sum::<f64>();
        }
        Ok(sum)
    }

    fn verdict(&self) -> Result<(Verdict, String)> {
        let (_, learned) = self.learned(0.0)?;
        let (low, here, high) = (self.sums(-STEP)?, self.sums(0.0)?, self.sums(STEP)?);
        let mut worst = (Verdict::Agrees, String::new());
        let orders = [
            ("first", learned.grads.as_ref(), Some([low.0, here.0, high.0])),
            (
                "second",
                learned.second.as_ref(),
                low.1.zip(here.1).zip(high.1).map(|((low, here), high)| [low, here, high]),
            ),
        ];
        for (order, gradients, values) in orders {
            let (Some(gradients), Some(values)) = (gradients, values) else { continue };
            let own = self.along(gradients)?;
            let (verdict, difference) = classify(own, values);
            let mut message = format!("{order} order: {own:e}, by differences {difference:e}");
            let verdict = match (verdict, learned.compare(self.case)) {
                (Verdict::Wrong, Ok(())) => Verdict::Convention,
                (Verdict::Wrong, Err(recorded)) => {
                    message = format!("{message}; recorded: {recorded}");
                    Verdict::Wrong
                }
                (other, _) => other,
            };
            if worst.0 == Verdict::Agrees || verdict == Verdict::Wrong {
                worst = (verdict, message);
            }
        }
        Ok(worst)
    }
}

/// A derivative beside the values on the left, here and on the right.
fn classify(own: f64, [low, here, high]: [f64; 3]) -> (Verdict, f64) {
    let central = (high - low) / (2.0 * STEP);
    if !central.is_finite() || !own.is_finite() {
        return (Verdict::Open, central);
    }
    // Sums round: their difference is off by some units of their last place.
    let slack = TOLERANCE * own.abs().max(1.0) + 1e-14 * here.abs() / STEP;
    if (own - central).abs() <= slack {
        return (Verdict::Agrees, central);
    }
    let (left, right) = ((here - low) / STEP, (high - here) / STEP);
    let between = own >= left.min(right) - slack && own <= left.max(right) + slack;
    (if between { Verdict::Corner } else { Verdict::Wrong }, central)
}

fn elements(tensor: &Tensor) -> Result<Vec<Complex64>> {
    Ok(tensor.detach().to_scalars()?.into_iter().map(|x| x.to_complex()).collect())
}

/// The sum of elements times weights; conjugated where they are complex.
fn weighted(weights: &[serde_json::Value], tensors: &[Option<Tensor>]) -> Result<f64> {
    let mut sum = 0.0;
    for (weight, tensor) in weights.iter().zip(tensors) {
        let (Value::Tensor(weight), Some(tensor)) = (case::decode(weight)?, tensor) else { continue };
        let pairs = elements(&weight)?.into_iter().zip(elements(tensor)?);
        sum += pairs.map(|(w, x)| (w.conj() * x).re).sum::<f64>();
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_and_errors_are_distinguished() {
        let at = |f: fn(f64) -> f64| [f(-STEP), f(0.0), f(STEP)];
        assert_eq!(classify(3.0, at(|x| 3.0 * x + 1.0)).0, Verdict::Agrees);
        assert_eq!(classify(0.5, at(f64::abs)).0, Verdict::Corner);
        assert_eq!(classify(2.0, at(f64::abs)).0, Verdict::Wrong);
        assert_eq!(classify(0.0, at(|_| f64::NAN)).0, Verdict::Open);
    }
}
