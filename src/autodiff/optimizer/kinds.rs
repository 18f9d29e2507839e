//! The optimizers by name: their options with defaults, as `torch.optim` has them. What they compute stands in `rules.py`.

use crate::diag::{Diagnostic, Result};
use crate::value::Value;

/// An optimizer: its name, its function, its options with their defaults in the order of the function's parameters.
pub(super) struct Kind {
    /// As `--optimizer` and cases name it.
    pub(super) name: &'static str,
    /// The function of the rules; that of the direction for L-BFGS.
    pub(super) function: &'static str,
    /// Whether PyTorch counts steps in what it keeps of a parameter.
    pub(super) counts: bool,
    /// Options with their defaults.
    pub(super) options: &'static [(&'static str, Preset)],
}

/// The default of an option.
#[derive(Clone, Copy)]
pub(super) enum Preset {
    Float(f64),
    Bool(bool),
    Int(i64),
    /// A text; None where it is empty.
    Str(&'static str),
    /// Several numbers under one name: (0.9, 0.999).
    Floats(&'static [f64]),
}

use Preset::{Bool, Float, Floats, Int, Str};

/// All optimizers.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "sgd",
        function: "sgd",
        counts: false,
        options: &[
            ("lr", Float(1e-3)),
            ("momentum", Float(0.0)),
            ("dampening", Float(0.0)),
            ("weight_decay", Float(0.0)),
            ("nesterov", Bool(false)),
            ("maximize", Bool(false)),
        ],
    },
    Kind { name: "adam", function: "adam", counts: true, options: &adam(0.0, false) },
    Kind { name: "adamw", function: "adam", counts: true, options: &adam(1e-2, true) },
    Kind {
        name: "adagrad",
        function: "adagrad",
        counts: true,
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
        counts: true,
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
        counts: true,
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
        counts: true,
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
        counts: true,
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
        counts: true,
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
        counts: true,
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
        counts: true,
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
        counts: true,
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
        counts: false,
        options: &[
            ("lr", Float(1e-3)),
            ("weight_decay", Float(0.1)),
            ("momentum", Float(0.95)),
            ("nesterov", Bool(true)),
            ("ns_coefficients", Floats(&[3.4445, -4.775, 2.0315])),
            ("eps", Float(1e-7)),
            ("ns_steps", Int(5)),
            ("adjust_lr_fn", Str("original")),
        ],
    },
    Kind {
        name: LBFGS,
        function: "lbfgs_direction",
        counts: false,
        options: &[
            ("lr", Float(1.0)),
            ("max_iter", Int(20)),
            // As many as 5/4 of the iterations where it is negative.
            ("max_eval", Int(-1)),
            ("tolerance_grad", Float(1e-7)),
            ("tolerance_change", Float(1e-9)),
            ("history_size", Int(100)),
            ("line_search_fn", Str("")),
            ("maximize", Bool(false)),
        ],
    },
];

/// The optimizer that asks for the loss several times a step.
pub(super) const LBFGS: &str = "lbfgs";

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

impl Preset {
    /// The value of an option as callers see it: the given one in the type of the default, or the default.
    pub(super) fn value(self, name: &str, given: Option<&Value>) -> Result<Value> {
        let wrong = || Diagnostic::input(format!("a wrong value of the option '{name}'"));
        Ok(match (self, given) {
            (Float(x), None) => Value::Float(x),
            (Bool(x), None) => Value::Bool(x),
            (Int(x), None | Some(Value::None)) => Value::Int(x),
            (Str(x), None | Some(Value::None)) => Value::str(x),
            (Floats(all), None) => Value::tuple(all.iter().map(|x| Value::Float(*x)).collect()),
            (Float(_), Some(value)) => Value::Float(number(value).ok_or_else(wrong)?),
            (Bool(_), Some(Value::Bool(x))) => Value::Bool(*x),
            (Int(_), Some(Value::Int(x))) => Value::Int(*x),
            (Str(_), Some(Value::Str(x))) => Value::Str(x.clone()),
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
                Value::tuple(items.iter().zip(all).map(one).collect::<Option<_>>().ok_or_else(wrong)?)
            }
            _ => return Err(wrong()),
        })
    }
}

pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(x) => Some(*x),
        Value::Int(x) => Some(*x as f64),
        Value::Tensor(t) if t.numel() == 1 => t.item().ok().map(|x| x.to_f64()),
        _ => None,
    }
}
