//! Each built-in rule is met and keeps its promise where drivers apply it: graphs that compute a rule's left side, over
//! all dtypes with NaN, infinities, -0, denormals and the extremes of integers, answer the same before and after. Exact
//! rules alone, and all exact rules together, keep every bit; the default pipeline, which compiles kernels, keeps the
//! tolerance, the NaNs and the infinities.

use flambeau::dialects::Registry;
use flambeau::ir::{Graph, Module};
use flambeau::resources::pool;
use flambeau::rewrite::check::{self, Example, Known};
use flambeau::rewrite::syntax::Contract;
use flambeau::rewrite::{self, CompiledRule, Questions, Settings};
use flambeau::runtime::{Program, graph_function};
use flambeau::toolkit::Toolkit;
use flambeau::tools::case;
use flambeau::tools::rules::environment;
use flambeau::value::Value;
use libtest_mimic::{Failed, Trial};
use std::sync::Arc;

/// Graphs of each way to read a rule, for each manner of knowing its operands.
const EXAMPLES: usize = 2;
/// Readings of one rule that are looked at.
const MOST_READINGS: usize = 16;
/// Ops that are run, at most, in search of the operands of one.
const EVALUATIONS: u64 = 400_000;

/// Rules whose left side no graph of a random instance computes, and where they are tested instead.
///
/// Those about convolutions ask what made an operand: tests/filecheck/rewrite/rules/peephole-convolution.ir. The last one is
/// about all results of an op: tests/filecheck/passes/canonicalize_ops/chunk.ir. Images and volumes with statistics of as many
/// channels are not random instances: tests/filecheck/passes/decompose_norms/.
const ELSEWHERE: &[&str] =
    &["dim-conv1d", "dim-conv2d", "dim-conv3d", "chunk-at-once", "batch-norm-4d", "batch-norm-5d"];

/// The trials.
pub fn trials() -> Vec<Trial> {
    vec![Trial::test("rules::each_is_met_and_keeps_its_promise", each_is_met_and_keeps_its_promise)]
}

/// What came of a rule.
#[derive(Default)]
struct Found {
    met: bool,
    wrong: Vec<String>,
}

fn each_is_met_and_keeps_its_promise() -> Result<(), Failed> {
    let registry = Registry::builtin();
    let mut all: Vec<CompiledRule> = rewrite::builtin(&registry).map_err(|e| e.to_string())?.to_vec();
    let peephole = rewrite::peephole(&registry).map_err(|e| e.to_string())?;
    let is_new = |rule: &&CompiledRule| !all.iter().any(|other| other.name == rule.name);
    let more: Vec<CompiledRule> = peephole.iter().filter(is_new).cloned().collect();
    all.extend(more);
    for rule in rewrite::builtin_rules().map_err(|e| e.to_string())?.iter().filter(|rule| rule.directed) {
        all.extend(rewrite::compile(&registry, rule).map_err(|e| e.to_string())?);
    }
    let mut looked: Vec<&CompiledRule> = all.iter().filter(|rule| rule.directed || !rule.writes).collect();
    // A rule over a class of ops is read once for each of them: some of these, far apart, stand for all.
    let readings = |name: &str| all.iter().filter(|rule| &*rule.name == name).count();
    let mut place = 0;
    looked.retain(|rule| {
        place += 1;
        let count = readings(&rule.name);
        count <= MOST_READINGS || place % (count / MOST_READINGS) == 0
    });
    let one = |n: usize| (&*looked[n].name, look(looked[n], &registry));
    let found: Vec<(&str, Found)> = pool::jobs(pool::cores(), 8 << 20, looked.len(), one);
    let mut lines: Vec<String> = found.iter().flat_map(|(_, f)| f.wrong.clone()).collect();
    for (name, _) in &found {
        // A rule that is read in several ways is met in one of them.
        let met = found.iter().any(|(other, f)| other == name && f.met);
        let line = format!("{name} is met by no graph");
        if met == ELSEWHERE.contains(name) && !lines.contains(&line) {
            lines.push(if met { format!("{name} is met after all: take it out of the list") } else { line });
        }
    }
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n").into()) }
}

fn look(rule: &CompiledRule, registry: &Arc<Registry>) -> Found {
    let run = environment(registry);
    let mut found = Found::default();
    let instances = check::instances(rule, 11, EXAMPLES, EVALUATIONS, &run);
    for (n, instance) in instances.iter().enumerate() {
        for known in [Known::Constants, Known::Types, Known::First, Known::Weights, Known::Nothing] {
            let Some(example) = check::example(rule, instance, known) else { continue };
            let fires = fires(rule, &example, registry);
            found.met |= fires;
            let together = n == 0 && matches!(known, Known::Constants | Known::Types);
            // Kernels are compiled for one graph of each rule.
            let compiled = n == 0 && known == Known::Types;
            if fires || together {
                compare(rule, &example, registry, (together, compiled), &mut found);
            }
        }
    }
    found
}

/// Whether the rule's driver meets it.
fn fires(rule: &CompiledRule, example: &Example, registry: &Registry) -> bool {
    if rule.directed {
        let mut graph = example.graph.clone();
        return directed(&mut graph, registry, std::slice::from_ref(rule)) > 0;
    }
    let settings = Settings { contract: rule.contract, ..Settings::default() };
    let one = std::slice::from_ref(rule);
    let mut graph = example.graph.clone();
    let report = rewrite::simplify(&mut graph, registry, None, one, &settings);
    report.is_ok_and(|report| !report.fired.is_empty())
}

/// How many terms the rules of a directed group replace.
fn directed(graph: &mut Graph, registry: &Registry, rules: &[CompiledRule]) -> usize {
    rewrite::replace(graph, registry, None, rules, false, &mut |_, _, _| true).count
}

/// Compares the answers of a graph with and without rules.
fn compare(
    rule: &CompiledRule,
    example: &Example,
    registry: &Arc<Registry>,
    (together, compiled): (bool, bool),
    found: &mut Found,
) {
    let Ok(wanted) = answer(&program(example, registry), example) else { return };
    let mut against = |what: &str, bits: bool, program: Result<Program, String>| {
        let got = program.and_then(|program| answer(&program, example));
        let same = match &got {
            Ok(got) if bits => bits_of(&wanted) == bits_of(got),
            Ok(got) => case::encode(&wanted).is_ok_and(|wanted| case::compare(&wanted, got, None).is_ok()),
            Err(_) => false,
        };
        if !same {
            let shown = |value: &Value| case::encode(value).map_or_else(|e| e.to_string(), |v| v.to_string());
            let got = got.as_ref().map_or_else(String::clone, shown);
            let arguments: Vec<String> = example.arguments.iter().map(shown).collect();
            found.wrong.push(format!(
                "{} under {what}: {got} instead of {} for {}\n{}",
                rule.name,
                shown(&wanted),
                arguments.join(" "),
                example.graph
            ));
        }
    };
    if rule.contract == Contract::Exact {
        let one = std::slice::from_ref(rule);
        against("itself", true, rewritten(example, registry, one, false));
        if !rule.directed {
            against("itself, greedily", true, rewritten(example, registry, one, true));
        }
    }
    if together {
        against("simplify", true, piped(example, registry, "simplify"));
    }
    if compiled {
        against("default", false, piped(example, registry, "default"));
    }
}

fn rewritten(
    example: &Example,
    registry: &Arc<Registry>,
    rules: &[CompiledRule],
    greedily: bool,
) -> Result<Program, String> {
    let settings = Settings::default();
    program(example, registry)
        .transformed(|module, registry| {
            for function in module.functions.values_mut() {
                let graph = &mut function.graph;
                if rules.iter().any(|rule| rule.directed) {
                    directed(graph, registry, rules);
                } else if greedily {
                    let none = Questions::default();
                    rewrite::simplify_greedily(graph, registry, None, rules, &settings, &none)?;
                } else {
                    rewrite::simplify(graph, registry, None, rules, &settings)?;
                }
            }
            Ok(())
        })
        .map_err(|e| e.to_string())
}

fn piped(example: &Example, registry: &Arc<Registry>, pipeline: &str) -> Result<Program, String> {
    let pipeline = Toolkit::default().parse_pipeline(pipeline).map_err(|e| e.to_string())?;
    let changed =
        program(example, registry).transformed(|module, registry| pipeline.run(module, registry).map(|_| ()));
    changed.map_err(|e| e.to_string())
}

fn program(example: &Example, registry: &Arc<Registry>) -> Program {
    let function = graph_function("f", example.graph.clone());
    let mut module = Module::default();
    module.functions.insert(function.name, function);
    Program::with(module, None, Arc::clone(registry))
}

fn answer(program: &Program, example: &Example) -> Result<Value, String> {
    let run = flambeau::dialects::Run::silent();
    run.set_grad_enabled(false);
    program.run("f", example.arguments.clone(), &run).map_err(|e| e.to_string())
}

/// A value's bits as text; any NaN is any other.
fn bits_of(value: &Value) -> String {
    let scalar = |scalar: &flambeau::tensor::Scalar| {
        let z = scalar.to_complex();
        let part = |x: f64| if x.is_nan() { "nan".to_string() } else { format!("{:x}", x.to_bits()) };
        match scalar {
            flambeau::tensor::Scalar::Int(x) => x.to_string(),
            _ => format!("{}/{}", part(z.re), part(z.im)),
        }
    };
    match value {
        Value::Tensor(t) => {
            let all =
                t.to_scalars().map_or_else(|e| vec![e.to_string()], |all| all.iter().map(scalar).collect());
            format!("{:?} {:?} {}", t.dtype(), t.sizes(), all.join(" "))
        }
        Value::Float(x) => scalar(&flambeau::tensor::Scalar::Float(*x)),
        Value::Complex(x) => scalar(&flambeau::tensor::Scalar::Complex(*x)),
        Value::List(list) => list.to_vec().iter().map(bits_of).collect::<Vec<_>>().join(", "),
        Value::Tuple(tuple) => tuple.items().iter().map(bits_of).collect::<Vec<_>>().join(", "),
        other => other.to_text(),
    }
}
