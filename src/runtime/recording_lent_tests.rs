//! Calls that record gradients of a model whose memory was lent, as where an optimizer of PyTorch's has its parameters: one plan,
//! which reads parameters and other lent tensors at each call.

use super::hook_tests::program_of;
use super::recording_tests::{run, wanted};
use crate::dialects::Registry;
use crate::ir::Symbol;
use crate::runtime::Program;
use crate::tensor::{DType, Pin, Scalar, Tensor};
use crate::value::Object;

const HEADER: &str = "  w : Tensor\n  scale : Tensor\n  mean : Tensor\n";
const FORWARD: &str = "def forward(self, x: Tensor) -> Tensor:\n    h = torch.tanh(torch.linear(x, self.w)) * self.scale\n    n = self.mean.mul_(0.5)\n    n = self.mean.add_(h.detach().mean(0))\n    return (h * h).sum()\n";

fn full(sizes: &[i64], value: f64) -> Tensor {
    Tensor::full(DType::F32, sizes, Scalar::Float(value)).expect("small")
}

struct Model {
    program: Program,
    w: Tensor,
    scale: Tensor,
    mean: Tensor,
    /// As someone has them who writes as they please.
    _pins: Vec<Pin>,
}

fn model(plans: bool) -> Model {
    let module = program_of("__torch__.M", HEADER, &[FORWARD]).expect("compiles");
    let instance = Object::new(Symbol::new("__torch__.M"));
    let (w, scale, mean) = (full(&[3, 2], 0.1), full(&[3], 2.0), full(&[3], 0.0));
    w.set_requires_grad(true).expect("floats");
    for (name, value) in [("w", &w), ("scale", &scale), ("mean", &mean)] {
        instance.set(Symbol::new(name), value.clone().into());
    }
    let program = Program::with(module, Some(instance), Registry::builtin());
    let program = if plans { program.planned() } else { program };
    let pins = [&w, &scale, &mean].map(|tensor| tensor.storage().pin().expect("host memory"));
    Model { program, w, scale, mean, _pins: pins.into() }
}

impl Model {
    /// The answer, the gradient of `w` and the running mean of a call.
    fn call(&self, x: f64) -> Vec<f32> {
        let run = run(&self.program);
        let answer = self.program.run("forward", vec![full(&[4, 2], x).into()], &run).expect("runs");
        let answer = answer.to_tensor().expect("a tensor").clone();
        let tape = crate::autodiff::Tape::of(self.program.registry());
        let asked = wanted(vec![answer.clone()], std::slice::from_ref(&self.w), false);
        let found = tape.gradients(&asked, &run).expect("gradients");
        let gradient = found.into_iter().next().flatten().expect("of w");
        [&answer, &gradient, &self.mean].iter().flat_map(|t| t.to_vec::<f32>().expect("float32")).collect()
    }
}

#[test]
fn one_plan_serves_while_others_write_to_lent_memory() {
    let [by_plan, by_tape] = [true, false].map(model);
    for n in 0..40 {
        let numbers = [&by_plan, &by_tape].map(|model| model.call(f64::from(n) / 16.0));
        for (plan, tape) in numbers[0].iter().zip(&numbers[1]) {
            assert!((plan - tape).abs() <= 1e-5 * tape.abs().max(1.0), "{n}: {numbers:?}");
        }
        for model in [&by_plan, &by_tape] {
            // Without a version that is counted: what is written lies where it lay.
            model.w.copy_from(&full(&[3, 2], 0.1 + f64::from(n) / 64.0)).expect("fits");
            model.scale.copy_from(&full(&[3], 2.0 - f64::from(n) / 64.0)).expect("fits");
            drop(model.scale.storage().pin().expect("host memory"));
        }
    }
    let report = by_plan.program.plan_report();
    let counts = (report.built, report.recording, report.outdated, report.unplanned_calls());
    assert_eq!(counts, (1, 1, 0, 0), "{report:?}");
}
