//! Tests of the toolkit and of models: what is added works everywhere, and what cannot be added is said.

use super::*;
use crate::dialects::constraint::Declaration;
use crate::dialects::{OpDef, composite, one};
use crate::ir::{Graph, Symbol};
use crate::passes::Context;
use crate::tensor::Tensor;
use crate::value::Value;

/// A dialect whose parts a test chooses.
#[derive(Default)]
struct Trial {
    ops: Vec<OpDef>,
    types: Vec<Declaration>,
    derivatives: &'static str,
}

impl Dialect for Trial {
    fn name(&self) -> &'static str {
        "trial"
    }

    fn ops(&self) -> Vec<OpDef> {
        self.ops.clone()
    }

    fn types(&self) -> Vec<Declaration> {
        self.types.clone()
    }

    fn derivatives(&self) -> &'static str {
        self.derivatives
    }
}

fn twice(schema: &'static str, meaning: &'static str) -> Trial {
    Trial { ops: vec![composite(schema, meaning)], ..Trial::default() }
}

const SCHEMA: &str = "trial::twice(Tensor self) -> Tensor";
const MEANING: &str = "def twice(self: Tensor):\n    return self + self\n";

fn fault(toolkit: &Toolkit) -> String {
    toolkit.check().err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_dialect_runs_from_source_and_from_a_graph() {
    let toolkit = Toolkit::new("t").dialect(twice(SCHEMA, MEANING));
    assert_eq!(fault(&toolkit), "");
    let source =
        toolkit.load_source("s", "def f(x: Tensor) -> Tensor:\n    return torch.ops.trial.twice(x)\n");
    let graph = toolkit.load_graph(
        "g",
        "graph(%x : Tensor):\n  %y : Tensor = trial::twice(%x)\n  return (%y)\n",
        "f",
    );
    for program in [source, graph] {
        let x = Tensor::from_vec(&[1.5f32], &[1]).expect("fits");
        let answer = program.expect("loads").run("f", vec![x.into()], &Run::silent()).expect("runs");
        assert_eq!(answer.to_text(), " 3\n[ CPUFloatType{1} ]");
    }
}

#[test]
fn what_is_wrong_with_a_dialect_is_its_toolkits_fault() {
    let of = |trial: Trial| fault(&Toolkit::new("t").dialect(trial));
    assert!(of(twice("trial::twice(Tensor self -> Tensor", MEANING)).contains("dialect trial"));
    assert!(of(twice("other::twice(Tensor self) -> Tensor", MEANING)).contains("other::twice"));
    assert!(of(twice("aten::tanh(Tensor self) -> Tensor", MEANING)).contains("registered already"));
    assert!(of(twice(SCHEMA, "def twice(self: Tensor):\n    return nothing\n")).contains("nothing"));
    let named =
        Declaration { name: Symbol::new("other.box"), summary: String::new(), parameters: Vec::new() };
    assert!(of(Trial { types: vec![named], ..Trial::default() }).contains("other.box"));
    assert!(of(Trial { derivatives: "no cell\n", ..Trial::default() }).contains("trial.grad"));
}

#[test]
fn extending_a_toolkit_leaves_the_original_as_it_was() {
    let plain = Toolkit::new("t");
    let rules = "rule twice exact trial::twice(?x: Tensor) => aten::add(?x, ?x)\n";
    assert!(fault(&plain.clone().rules("mine", rules)).contains("trial::twice"), "the dialect comes first");
    let more = plain.clone().dialect(twice(SCHEMA, MEANING)).rules("mine", rules).pipeline("mine", "cse,dce");
    assert_eq!(fault(&more), "");
    assert!(more.registry().find("trial::twice", "").is_some() && more.passes().named("mine").is_some());
    assert!(plain.registry().find("trial::twice", "").is_none() && plain.passes().named("mine").is_none());
    assert!(fault(&plain.pipeline("mine", "no-such-pass")).contains("no-such-pass"));
}

#[test]
fn the_first_fault_is_kept() {
    let toolkit = Toolkit::new("t")
        .pipeline("a", "first-wrong")
        .pipeline("b", "second-wrong")
        .op("mine::one() -> int", |_| one(1));
    assert!(fault(&toolkit).contains("first-wrong"));
    assert!(toolkit.registry().find("mine::one", "").is_none());
}

fn nothing(_: &mut Graph, _: &Context<'_>) -> Result<bool> {
    Ok(false)
}

#[test]
fn passes_and_devices_are_found_by_name() {
    let toolkit = Toolkit::new("t").pass(Pass::graph("mine", "Does nothing", nothing));
    assert_eq!(toolkit.parse_pipeline("mine,dce").expect("both are there").names(), ["mine", "dce"]);
    assert!(toolkit.device("cpu").expect("always there").is_none());
    assert_eq!(toolkit.device("interp").expect("is there").map(|b| b.name()), Some("interp"));
    let error = toolkit.device("interpp").err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("did you mean 'interp'?"), "{error}");
}

#[test]
fn a_model_is_loaded_and_called() {
    let model =
        Model::from_source("s", "def f(x: Tensor, n: int = 2) -> Tensor:\n    return torch.tanh(x) * n\n")
            .expect("compiles");
    let x = || Value::from(Tensor::from_vec(&[0.0f32, 0.5], &[2]).expect("fits"));
    let all: Vec<String> = ["cpu", "interp"]
        .into_iter()
        .map(|device| model.on(device).and_then(|m| m.call("f", [x()])).expect("runs").to_text())
        .collect();
    assert_eq!(all[0], all[1]);
    assert!(model.call("g", [x()]).is_err() && model.call("f", [Value::Int(1)]).is_err());
    assert_eq!(model.parameters("f").expect("is there")[1], ("n".to_string(), "int".to_string()));
    assert!(model.graph("f").expect("is there").contains("fusion::Group"));
    assert!(!model.with_passes("").expect("no pass").graph("f").expect("is there").is_empty());
    assert!(Model::load("no/such/file.pt").is_err());
}
