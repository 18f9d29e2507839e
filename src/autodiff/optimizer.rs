//! Optimizers: functions of TorchScript text that change one parameter by its gradient. Names and options are those of
//! `torch.optim`.

use crate::diag::{Diagnostic, Result, nearest};
use crate::dialects::Run;
use crate::ir::Type;
use crate::tensor::Tensor;
use crate::value::{List, Value};
use hashbrown::HashMap;

/// The functions, one an optimizer.
const TEXT: &str = include_str!("optimizers.py");

/// An optimizer: its name, its function, its options with their defaults in the order of the function's parameters.
struct Kind {
    name: &'static str,
    function: &'static str,
    options: &'static [(&'static str, Preset)],
}

/// The default of an option.
#[derive(Clone, Copy)]
enum Preset {
    Float(f64),
    Bool(bool),
    Int(i64),
    /// Several numbers under one name: (0.9, 0.999).
    Floats(&'static [f64]),
}

use Preset::{Bool, Float, Floats, Int};

const KINDS: &[Kind] = &[
    Kind {
        name: "sgd",
        function: "sgd",
        options: &[
            ("lr", Float(1e-3)),
            ("momentum", Float(0.0)),
            ("dampening", Float(0.0)),
            ("weight_decay", Float(0.0)),
            ("nesterov", Bool(false)),
            ("maximize", Bool(false)),
        ],
    },
    Kind { name: "adam", function: "adam", options: &adam(0.0, false) },
    Kind { name: "adamw", function: "adam", options: &adam(1e-2, true) },
    Kind {
        name: "adagrad",
        function: "adagrad",
        options: &[
            ("lr", Float(1e-2)),
            ("lr_decay", Float(0.0)),
            ("weight_decay", Float(0.0)),
            ("initial_accumulator_value", Float(0.0)),
            ("eps", Float(1e-10)),
            ("maximize", Bool(false)),
        ],
    },
    Kind {
        name: "rmsprop",
        function: "rmsprop",
        options: &[
            ("lr", Float(1e-2)),
            ("alpha", Float(0.99)),
            ("eps", Float(1e-8)),
            ("weight_decay", Float(0.0)),
            ("momentum", Float(0.0)),
            ("centered", Bool(false)),
            ("maximize", Bool(false)),
        ],
    },
    Kind {
        name: "adamax",
        function: "adamax",
        options: &[
            ("lr", Float(2e-3)),
            ("betas", Floats(&[0.9, 0.999])),
            ("eps", Float(1e-8)),
            ("weight_decay", Float(0.0)),
            ("maximize", Bool(false)),
        ],
    },
    Kind {
        name: "nadam",
        function: "nadam",
        options: &[
            ("lr", Float(2e-3)),
            ("betas", Floats(&[0.9, 0.999])),
            ("eps", Float(1e-8)),
            ("weight_decay", Float(0.0)),
            ("momentum_decay", Float(4e-3)),
            ("decoupled_weight_decay", Bool(false)),
            ("maximize", Bool(false)),
        ],
    },
    Kind {
        name: "radam",
        function: "radam",
        options: &[
            ("lr", Float(1e-3)),
            ("betas", Floats(&[0.9, 0.999])),
            ("eps", Float(1e-8)),
            ("weight_decay", Float(0.0)),
            ("decoupled_weight_decay", Bool(false)),
            ("maximize", Bool(false)),
        ],
    },
    Kind {
        name: "adadelta",
        function: "adadelta",
        options: &[
            ("lr", Float(1.0)),
            ("rho", Float(0.9)),
            ("eps", Float(1e-6)),
            ("weight_decay", Float(0.0)),
            ("maximize", Bool(false)),
        ],
    },
    Kind {
        name: "asgd",
        function: "asgd",
        options: &[
            ("lr", Float(1e-2)),
            ("lambd", Float(1e-4)),
            ("alpha", Float(0.75)),
            ("t0", Float(1e6)),
            ("weight_decay", Float(0.0)),
            ("maximize", Bool(false)),
        ],
    },
    Kind {
        name: "rprop",
        function: "rprop",
        options: &[
            ("lr", Float(1e-2)),
            ("etas", Floats(&[0.5, 1.2])),
            ("step_sizes", Floats(&[1e-6, 50.0])),
            ("maximize", Bool(false)),
        ],
    },
    Kind {
        name: "adafactor",
        function: "adafactor",
        options: &[
            ("lr", Float(1e-2)),
            ("beta2_decay", Float(-0.8)),
            // A negative number: that of the parameter's dtype.
            ("eps", Floats(&[-1.0, 1e-3])),
            ("d", Float(1.0)),
            ("weight_decay", Float(0.0)),
            ("maximize", Bool(false)),
        ],
    },
    Kind {
        name: "muon",
        function: "muon",
        options: &[
            ("lr", Float(1e-3)),
            ("weight_decay", Float(0.1)),
            ("momentum", Float(0.95)),
            ("nesterov", Bool(true)),
            ("ns_coefficients", Floats(&[3.4445, -4.775, 2.0315])),
            ("eps", Float(1e-7)),
            ("ns_steps", Int(5)),
        ],
    },
];

const fn adam(weight_decay: f64, decoupled: bool) -> [(&'static str, Preset); 7] {
    [
        ("lr", Float(1e-3)),
        ("betas", Floats(&[0.9, 0.999])),
        ("eps", Float(1e-8)),
        ("weight_decay", Float(weight_decay)),
        ("amsgrad", Bool(false)),
        ("maximize", Bool(false)),
        ("decoupled_weight_decay", Bool(decoupled)),
    ]
}

/// Options that say how PyTorch computes and not what.
const IGNORED: &[&str] = &["foreach", "fused", "capturable", "differentiable"];

/// An optimizer with what it keeps of each parameter.
pub struct Optimizer {
    text: String,
    name: &'static str,
    options: Vec<Value>,
    states: HashMap<usize, List>,
    step: i64,
}

impl Optimizer {
    /// The names that there are.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|kind| kind.name)
    }

    /// An optimizer by name, with options that differ from their defaults. Fails on unknown names and options.
    pub fn new(name: &str, given: &[(String, Value)]) -> Result<Optimizer> {
        let lower = name.to_lowercase();
        let kind = KINDS.iter().find(|kind| kind.name == lower).ok_or_else(|| {
            let error = Diagnostic::unsupported(format!("optimizer '{name}'"));
            match nearest(&lower, Optimizer::names()) {
                Some(near) => error.hint(format!("did you mean {near}?")),
                None => {
                    error.hint(format!("there are {}", Optimizer::names().collect::<Vec<_>>().join(", ")))
                }
            }
        })?;
        let known = |name: &str| kind.options.iter().any(|(known, _)| *known == name);
        if let Some((unknown, _)) = given.iter().find(|(n, _)| !known(n) && !IGNORED.contains(&n.as_str())) {
            let error = Diagnostic::unsupported(format!("option '{unknown}' of the optimizer {}", kind.name));
            let names: Vec<&str> = kind.options.iter().map(|(name, _)| *name).collect();
            return Err(error.hint(format!("it takes {}", names.join(", "))));
        }
        let mut options = Vec::new();
        for (name, default) in kind.options {
            let given = given.iter().find(|(n, _)| n == name).map(|(_, value)| value);
            options.extend(values(name, *default, given)?);
        }
        Ok(Optimizer {
            text: text_of(kind.function),
            name: kind.name,
            options,
            states: HashMap::new(),
            step: 0,
        })
    }

    /// Changes parameters by their gradients; those without one stay. Nothing is recorded.
    pub fn step(&mut self, parameters: &[Tensor], run: &Run) -> Result<()> {
        self.step += 1;
        let former = run.set_grad_enabled(false);
        let done = parameters.iter().try_for_each(|parameter| self.update(parameter, run));
        run.set_grad_enabled(former);
        done
    }

    fn update(&mut self, parameter: &Tensor, run: &Run) -> Result<()> {
        let Some(gradient) = parameter.grad() else { return Ok(()) };
        let state = self.states.entry(parameter.id());
        let state = state.or_insert_with(|| List::new(Type::tensor(), Vec::new())).clone();
        let mut values = vec![
            Value::Tensor(parameter.clone()),
            Value::Tensor(gradient.detach()),
            Value::List(state),
            Value::Int(self.step),
        ];
        values.extend(self.options.iter().cloned());
        run.function(&format!("the optimizer {}", self.name), &self.text, values)?;
        Ok(())
    }
}

/// The values of an option: the given ones, in the type of the default.
fn values(name: &str, default: Preset, given: Option<&Value>) -> Result<Vec<Value>> {
    let wrong = || Diagnostic::input(format!("a wrong value of the option '{name}'"));
    Ok(match (default, given) {
        (Float(x), None) => vec![Value::Float(x)],
        (Bool(x), None) => vec![Value::Bool(x)],
        (Int(x), None) => vec![Value::Int(x)],
        (Floats(all), None) => all.iter().map(|x| Value::Float(*x)).collect(),
        (Float(_), Some(value)) => vec![Value::Float(number(value).ok_or_else(wrong)?)],
        (Bool(_), Some(Value::Bool(x))) => vec![Value::Bool(*x)],
        (Int(_), Some(Value::Int(x))) => vec![Value::Int(*x)],
        (Floats(all), Some(value)) => {
            let items = match value {
                Value::List(list) => list.to_vec(),
                Value::Tuple(tuple) => tuple.items().to_vec(),
                _ => return Err(wrong()),
            };
            if items.len() != all.len() {
                return Err(wrong());
            }
            let one = |(item, default): (&Value, &f64)| match item {
                Value::None => Some(Value::Float(*default)),
                other => number(other).map(Value::Float),
            };
            items.iter().zip(all).map(one).collect::<Option<_>>().ok_or_else(wrong)?
        }
        _ => return Err(wrong()),
    })
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(x) => Some(*x),
        Value::Int(x) => Some(*x as f64),
        _ => None,
    }
}

/// The function of an optimizer, behind those that all may call.
fn text_of(name: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with("def ") {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    let of = |name: &str| parts.iter().find(|p| p.starts_with(&format!("def {name}("))).cloned();
    of("zeros_for").unwrap_or_default() + &of(name).unwrap_or_default()
}
