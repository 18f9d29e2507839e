//! The steps of an optimizer as programs with plans: a step of a parameter is one kernel, which reads and writes the parameter, and
//! what is kept of it, once. A text is compiled when it first runs.

use crate::backends::FusionReport;
use crate::diag::{Result, Source};
use crate::dialects::{Registry, Run};
use crate::frontend::script::compile_source;
use crate::passes::{self, Pipeline};
use crate::runtime::{PlanReport, Program};
use crate::value::Value;
use hashbrown::HashMap;
use std::sync::{Arc, LazyLock};

/// Texts that are kept: one for each group of parameters, until its options change.
const TEXTS: usize = 256;
/// Kinds of arguments that a text has plans for: the shapes of a model's parameters.
const KINDS: usize = 1024;

/// Compiled steps by their text.
pub(super) struct Steps {
    registry: Arc<Registry>,
    programs: HashMap<String, Program>,
}

impl Steps {
    pub(super) fn new(registry: &Arc<Registry>) -> Steps {
        Steps { registry: Arc::clone(registry), programs: HashMap::new() }
    }

    /// Runs the last function of a text.
    pub(super) fn run(&mut self, text: &str, values: Vec<Value>, run: &Run) -> Result<()> {
        if !self.programs.contains_key(text) && self.programs.len() >= TEXTS {
            self.programs.clear();
        }
        let program = match self.programs.get(text) {
            Some(program) => program,
            None => {
                let program = compiled(&self.registry, text)?;
                self.programs.entry(text.to_string()).or_insert(program)
            }
        };
        program.run_last_planned(values, run).map(|_| ())
    }

    /// Reports with those of all steps added.
    pub(super) fn add_reports(
        &self,
        (mut fusion, mut plans): (FusionReport, PlanReport),
    ) -> (FusionReport, PlanReport) {
        for program in self.programs.values() {
            fusion.add(&program.fusion_report());
            plans.add(&program.plan_report());
        }
        (fusion, plans)
    }
}

fn compiled(registry: &Arc<Registry>, text: &str) -> Result<Program> {
    static OPTIMIZE: LazyLock<Result<Pipeline>> = LazyLock::new(|| passes::parse("optimize"));
    let pipeline = OPTIMIZE.as_ref().map_err(Clone::clone)?;
    let module = compile_source(registry, &Source::new("<the optimizer>", text))?;
    let program = Program::with(module, None, Arc::clone(registry));
    let program = program.transformed(|module, registry| pipeline.run(module, registry).map(|_| ()))?;
    Ok(program.planned_for(KINDS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autodiff::Optimizer;
    use crate::autodiff::RunText;
    use crate::tensor::view::transpose;
    use crate::tensor::{DType, Tensor};

    /// Optimizers with options that reach each branch of their rules.
    const ALL: &[(&str, &[(&str, Value)])] = &[
        ("sgd", &[]),
        ("sgd", &[("momentum", Value::Float(0.9)), ("dampening", Value::Float(0.1))]),
        ("sgd", &[("momentum", Value::Float(0.9)), ("nesterov", Value::Bool(true)), WEIGHT_DECAY, MAXIMIZE]),
        ("adam", &[("amsgrad", Value::Bool(true)), WEIGHT_DECAY]),
        ("adamw", &[MAXIMIZE]),
        ("adagrad", &[("lr_decay", Value::Float(0.1)), WEIGHT_DECAY]),
        ("rmsprop", &[("centered", Value::Bool(true)), ("momentum", Value::Float(0.5))]),
        ("rmsprop", &[]),
        ("adamax", &[WEIGHT_DECAY]),
        ("nadam", &[("decoupled_weight_decay", Value::Bool(true)), WEIGHT_DECAY]),
        ("radam", &[]),
        ("adadelta", &[MAXIMIZE]),
        ("asgd", &[("t0", Value::Float(2.0))]),
        ("rprop", &[]),
        ("adafactor", &[WEIGHT_DECAY]),
        ("muon", &[]),
    ];
    const WEIGHT_DECAY: (&str, Value) = ("weight_decay", Value::Float(0.05));
    const MAXIMIZE: (&str, Value) = ("maximize", Value::Bool(true));

    /// A tensor of numbers that differ, of these sizes, whose rows may lie one beside the other.
    fn numbers(dtype: DType, sizes: &[i64], seed: usize, transposed: bool) -> Tensor {
        let count = sizes.iter().product::<i64>() as usize;
        let values: Vec<f64> = (0..count).map(|n| (((n + seed) * 37 % 101) as f64 - 50.0) / 64.0).collect();
        let tensor = Tensor::from_vec(&values, sizes).and_then(|t| t.to_dtype(dtype)).expect("small");
        if transposed { turned(&turned(&tensor).contiguous().expect("small")) } else { tensor }
    }

    fn turned(matrix: &Tensor) -> Tensor {
        matrix.look(|layout| transpose(layout, 0, 1)).expect("a matrix")
    }

    /// The bits of parameters after some steps, with what became of the steps' plans.
    fn after(
        name: &str,
        options: &[(&str, Value)],
        planned: bool,
    ) -> (Vec<Vec<f64>>, FusionReport, PlanReport) {
        let options: Vec<(String, Value)> =
            options.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let mut optimizer = Optimizer::new(name, &options).expect("is there");
        let flat = name != "muon";
        let mut parameters = vec![
            numbers(DType::F32, &[4, 6], 1, false),
            numbers(DType::F32, &[3, 5], 2, true),
            numbers(DType::F64, &[2, 3], 3, false),
        ];
        if flat {
            parameters.extend([numbers(DType::F32, &[7], 4, false), numbers(DType::F32, &[], 5, false)]);
        }
        optimizer.add_group(parameters.clone(), &[]).expect("parameters");
        let registry = Registry::builtin();
        let (run, mut steps) = (Run::silent(), Steps::new(&registry));
        crate::runtime::prepare(&run, &registry);
        for step in 0..5 {
            for (n, parameter) in parameters.iter().enumerate() {
                let gradient = numbers(parameter.dtype(), &parameter.sizes(), 11 * n + step, n == 2);
                parameter.set_grad(Some(gradient));
            }
            optimizer.set_rate(0, 0.1 / (step + 1) as f64);
            let mut compiled = |text: &str, values: Vec<Value>| steps.run(text, values, &run);
            let compiled: Option<RunText<'_>> = if planned { Some(&mut compiled) } else { None };
            optimizer.step(&run, &mut || Ok(0.0), compiled).expect("a step");
        }
        let (fusion, plans) = steps.add_reports(Default::default());
        (parameters.iter().map(|p| p.to_vec_as::<f64>().expect("real")).collect(), fusion, plans)
    }

    #[test]
    fn steps_with_plans_give_the_same_bits_in_kernels() {
        for (name, options) in ALL {
            let (plain, ..) = after(name, options, false);
            let (planned, fusion, plans) = after(name, options, true);
            assert_eq!(plain, planned, "{name} {options:?}");
            assert!(plans.hits > 0 && plans.unplanned.is_empty(), "{name}: {plans:?}");
            // Muon goes over its products in bfloat16, for which there are no kernels.
            let expected = |reason: &String| *name == "muon" && reason.contains("bfloat16");
            assert!(fusion.op_by_op.keys().all(expected), "{name}: {fusion:?}");
        }
    }

    /// What changes a parameter and its momentum is one kernel without results.
    #[test]
    fn a_step_is_one_kernel() {
        let (_, fusion, plans) = after("adam", &[], true);
        // Five kinds of parameters, three steps of each by plans.
        assert_eq!((plans.built, plans.hits), (5, 10));
        assert_eq!(fusion.fused_calls, 15);
    }

    #[test]
    fn gradients_that_share_memory_with_parameters_are_no_part_of_plans() {
        let registry = Registry::builtin();
        let (run, mut steps) = (Run::silent(), Steps::new(&registry));
        crate::runtime::prepare(&run, &registry);
        let mut optimizer =
            Optimizer::new("sgd", &[("momentum".into(), Value::Float(0.5))]).expect("is there");
        let parameter = numbers(DType::F32, &[4, 4], 1, false);
        optimizer.add_group(vec![parameter.clone()], &[]).expect("a parameter");
        parameter.set_grad(Some(turned(&parameter)));
        for _ in 0..4 {
            let mut compiled = |text: &str, values: Vec<Value>| steps.run(text, values, &run);
            optimizer.step(&run, &mut || Ok(0.0), Some(&mut compiled)).expect("a step");
        }
        let (_, plans) = steps.add_reports(Default::default());
        let reason = "an argument shares memory with a tensor that the call writes to";
        assert_eq!(plans.unplanned.get(reason), Some(&2));
    }
}
