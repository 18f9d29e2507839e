//! One step of training after the other: the loss of a batch, gradients, clipping, the optimizer, the schedule.

use super::loss::{Loss, library};
use super::parameters::{Modes, Named, matches, parameters, recording};
use super::schedule::Schedule;
use super::steps::Steps;
use crate::autodiff::Optimizer;
use crate::backends::FusionReport;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Gradients, Run};
use crate::runtime::{PlanReport, Program};
use crate::tensor::Tensor;
use crate::value::Value;

/// How gradients are bounded before a step.
#[derive(Clone, Copy, Debug)]
pub enum Clip {
    /// Together: the norm of all gradients (of this order; infinity is the largest element) is at most this.
    Norm {
        /// The largest norm.
        most: f64,
        /// Which norm: 2 is the length.
        order: f64,
    },
    /// Each element for itself.
    Value(f64),
}

/// What a step gave.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The loss before the parameters changed.
    pub loss: f64,
    /// The norm of the gradients before clipping, where they are clipped by it.
    pub norm: Option<f64>,
    /// The learning rate of the first group.
    pub rate: f64,
}

/// A program that is trained.
///
/// ```no_run
/// # use flambeau::{autodiff::Optimizer, dialects::Run, toolkit::Toolkit, training::{Loss, Trainer}, value::Value};
/// # fn main() -> flambeau::diag::Result<()> {
/// let run = Run::default();
/// let program = Toolkit::default().load_file("model.pt".as_ref(), &run)?;
/// let loss = Loss::named(program.registry(), "cross_entropy", vec![])?;
/// let optimizer = Optimizer::new("adamw", &[("lr".into(), Value::Float(1e-3))])?;
/// let mut trainer = Trainer::new(program, "forward", loss, optimizer)?;
/// trainer.freeze(&["features.*"])?;
/// # let (images, labels) = (Value::None, Value::None);
/// let step = trainer.step(&[images], &[labels], &run)?;
/// println!("{}", step.loss);
/// # Ok(())
/// # }
/// ```
pub struct Trainer {
    task: Task,
    pub(super) optimizer: Optimizer,
    pub(super) schedule: Option<Schedule>,
    /// Groups of parameters by pattern, with their options; the rest is the last group.
    groups: Vec<(String, Vec<(String, Value)>)>,
    ready: bool,
    /// The optimizer's steps with plans, where the program has them.
    compiled: Option<Steps>,
    pub(super) steps: u64,
}

/// How a loss and its gradients are computed.
struct Task {
    program: Program,
    entry: String,
    loss: Loss,
    clip: Option<Clip>,
    library: Program,
}

impl Trainer {
    /// A trainer of a loaded program, whose function `entry` is called. All parameters that require gradients are trained, with
    /// the options of the optimizer. The modules stay in their modes; see [`Trainer::train_mode`].
    pub fn new(program: Program, entry: &str, loss: Loss, optimizer: Optimizer) -> Result<Trainer> {
        let steps = program.has_plans().then(|| Steps::new(program.registry()));
        program.parameters(entry)?;
        let (entry, library) = (entry.to_string(), library(program.registry())?);
        Ok(Trainer {
            task: Task { program, entry, loss, clip: None, library },
            optimizer,
            schedule: None,
            groups: Vec::new(),
            ready: false,
            compiled: steps,
            steps: 0,
        })
    }

    /// All parameters by name, frozen ones with them.
    pub fn parameters(&self) -> Vec<Named> {
        parameters(&self.task.program)
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.task.program
    }

    /// What became of the fusion groups and plans of the program and of the optimizer's steps.
    pub fn reports(&self) -> (FusionReport, PlanReport) {
        let own = (self.task.program.fusion_report(), self.task.program.plan_report());
        self.compiled.as_ref().map_or(own.clone(), |steps| steps.add_reports(own))
    }

    /// The optimizer, with the groups once the first step was made.
    pub fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// Makes parameters stay unchanged: their names fit one of the patterns. Gives how many they are. Fails for patterns that
    /// fit none.
    pub fn freeze(&mut self, patterns: &[impl AsRef<str>]) -> Result<usize> {
        self.require(patterns, false)
    }

    /// Makes parameters that were frozen train.
    pub fn unfreeze(&mut self, patterns: &[impl AsRef<str>]) -> Result<usize> {
        self.require(patterns, true)
    }

    fn require(&mut self, patterns: &[impl AsRef<str>], on: bool) -> Result<usize> {
        let all = self.parameters();
        let mut count = 0;
        for pattern in patterns.iter().map(AsRef::as_ref) {
            for (_, parameter) in some(&all, pattern)? {
                parameter.set_requires_grad(on)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Gives parameters whose names fit the pattern options of their own. To be said before the first step.
    pub fn group(&mut self, pattern: &str, options: Vec<(String, Value)>) -> Result<()> {
        some(&self.parameters(), pattern)?;
        self.groups.push((pattern.to_string(), options));
        Ok(())
    }

    /// Changes the learning rate after each step, or when [`Trainer::advance`] is called.
    pub fn set_schedule(&mut self, schedule: Schedule) {
        self.schedule = Some(schedule);
    }

    /// Bounds gradients before each step.
    pub fn set_clip(&mut self, clip: Clip) {
        self.task.clip = Some(clip);
    }

    /// Puts all modules into training mode, and gives the modes that they had.
    pub fn train_mode(&self) -> Modes {
        Modes::set(&self.task.program, true)
    }

    /// Hands the parameters to the optimizer. Done by the first step; a checkpoint needs it before.
    pub fn prepare(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.ready, true) {
            return Ok(());
        }
        let mut rest: Vec<Named> = self.parameters();
        rest.retain(|(_, parameter)| parameter.requires_grad());
        if rest.is_empty() {
            return Err(Diagnostic::input("the program has no parameters that require gradients").hint(
                "a frozen model (torch.jit.freeze) keeps its weights as constants; save the model before it is frozen",
            ));
        }
        for (pattern, options) in &self.groups {
            let (own, other) = rest.into_iter().partition(|(name, _)| matches(pattern, name));
            rest = other;
            let own: Vec<Named> = own;
            self.optimizer.add_group(own.into_iter().map(|(_, p)| p).collect(), options)?;
        }
        if !rest.is_empty() {
            self.optimizer.add_group(rest.into_iter().map(|(_, p)| p).collect(), &[])?;
        }
        if let Some(schedule) = &self.schedule {
            schedule.begin(&mut self.optimizer);
        }
        Ok(())
    }

    /// Changes the parameters by the gradients of a batch's loss. Without a per-epoch schedule the rate changes with it.
    pub fn step(&mut self, inputs: &[Value], targets: &[Value], run: &Run) -> Result<Step> {
        self.prepare()?;
        let rate = self.optimizer.groups().first().map_or(0.0, |group| group.rate());
        let all: Vec<Tensor> = self.optimizer.parameters().cloned().collect();
        let (task, mut first, mut norm) = (&self.task, None, None);
        let mut gradients = || {
            let (loss, clipped) = task.gradients(&all, (inputs, targets), run)?;
            if first.is_none() {
                (first, norm) = (Some(loss), clipped);
            }
            Ok(loss)
        };
        if !self.optimizer.needs_closure() {
            gradients()?;
        }
        match &mut self.compiled {
            Some(steps) => {
                let mut compiled = |text: &str, values: Vec<Value>| steps.run(text, values, run);
                self.optimizer.step(run, &mut gradients, Some(&mut compiled))?;
            }
            None => self.optimizer.step(run, &mut gradients, None)?,
        }
        self.steps += 1;
        Ok(Step { loss: first.unwrap_or(f64::NAN), norm, rate })
    }

    /// Changes the learning rate as the schedule says: after each step, or after each epoch.
    pub fn advance(&mut self) -> Result<()> {
        match &mut self.schedule {
            Some(schedule) => schedule.advance(&mut self.optimizer),
            None => Ok(()),
        }
    }

    /// The loss of a batch with modules in evaluation mode, nothing recorded and nothing changed.
    pub fn evaluate(&self, inputs: &[Value], targets: &[Value], run: &Run) -> Result<f64> {
        let modes = Modes::set(&self.task.program, false);
        let loss = recording(run, false, || self.task.loss_of(inputs, targets, run)?.item());
        modes.restore();
        Ok(loss?.to_f64())
    }

    /// Whether the loss is computed from targets besides the answer.
    pub fn takes_targets(&self) -> bool {
        self.task.loss.takes_targets()
    }

    /// How many steps were made.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

impl Task {
    fn loss_of(&self, inputs: &[Value], targets: &[Value], run: &Run) -> Result<Tensor> {
        let answer = self.program.run(&self.entry, inputs.to_vec(), run)?;
        self.loss.of(answer, targets, run)
    }

    /// The loss, and the norm of its gradients where they are clipped by it; the gradients stand in the parameters.
    fn gradients(
        &self,
        parameters: &[Tensor],
        (inputs, targets): (&[Value], &[Value]),
        run: &Run,
    ) -> Result<(f64, Option<f64>)> {
        parameters.iter().for_each(|parameter| parameter.set_grad(None));
        let loss = recording(run, true, || {
            let loss = self.loss_of(inputs, targets, run)?;
            let autograd = run.autograd().ok_or_else(|| Diagnostic::internal("a run without a tape"))?;
            let wanted = Gradients { outputs: vec![loss.clone()], ..Gradients::default() };
            autograd.gradients(&wanted, run).map_err(|error| match loss.requires_grad() {
                true => error,
                false => error.hint("the loss does not depend on a parameter that is trained"),
            })?;
            Ok(loss)
        })?;
        let clipped = match self.clip {
            Some(clip) => self.clip(clip, parameters, run)?,
            None => None,
        };
        Ok((loss.item()?.to_f64(), clipped))
    }

    fn clip(&self, clip: Clip, parameters: &[Tensor], run: &Run) -> Result<Option<f64>> {
        let gradients: Vec<Tensor> = parameters.iter().filter_map(Tensor::grad).collect();
        if gradients.is_empty() {
            return Ok(None);
        }
        let gradients = Value::tensors(gradients);
        let (function, values) = match clip {
            Clip::Norm { most, order } => {
                ("clip_norm", vec![gradients, Value::Float(most), Value::Float(order)])
            }
            Clip::Value(most) => ("clip_value", vec![gradients, Value::Float(most)]),
        };
        let norm = recording(run, false, || self.library.run(function, values, run))?.to_float()?;
        Ok((norm >= 0.0 || norm.is_nan()).then_some(norm))
    }
}

/// Those whose names fit a pattern. Fails where there are none.
fn some<'a>(all: &'a [Named], pattern: &str) -> Result<Vec<&'a Named>> {
    let found: Vec<&Named> = all.iter().filter(|(name, _)| matches(pattern, name)).collect();
    if found.is_empty() {
        let error = Diagnostic::input(format!("no parameter has a name like '{pattern}'"));
        let names: Vec<&str> = all.iter().take(8).map(|(name, _)| name.as_str()).collect();
        return Err(error.hint(format!("the first of {} are {}", all.len(), names.join(", "))));
    }
    Ok(found)
}
