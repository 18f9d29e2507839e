//! Schedules of the learning rate: what `torch.optim.lr_scheduler` has under the same options. Each rate follows from the one
//! before, as there, so that the numbers are the same to the last bit.

use crate::autodiff::Optimizer;
use crate::diag::{Diagnostic, Result, nearest};
use crate::value::Value;
use std::f64::consts::PI;

/// One schedule, or several one after the other.
#[derive(Clone, Debug)]
pub struct Schedule {
    stages: Vec<Stage>,
    /// How often the rate was changed.
    count: i64,
}

/// A schedule with the count at which the next one begins.
#[derive(Clone, Debug)]
struct Stage {
    rule: Rule,
    until: Option<i64>,
}

/// How a rate follows from the one before.
#[derive(Clone, Debug, PartialEq)]
enum Rule {
    Step { size: i64, gamma: f64 },
    Multistep { milestones: Vec<i64>, gamma: f64 },
    Constant { factor: f64, total: i64 },
    Linear { start: f64, end: f64, total: i64 },
    Exponential { gamma: f64 },
    Polynomial { total: i64, power: f64 },
    Cosine { period: i64, least: f64 },
    Restarts { first: i64, times: i64, least: f64 },
    OneCycle { most: f64, total: i64, rise: f64, divisor: f64, last_divisor: f64, linear: bool },
}

/// Names with their options in order.
const RULES: &[(&str, &[&str])] = &[
    ("step", &["step_size", "gamma"]),
    ("multistep", &["milestones", "gamma"]),
    ("constant", &["factor", "total_iters"]),
    ("linear", &["start_factor", "end_factor", "total_iters"]),
    ("exponential", &["gamma"]),
    ("polynomial", &["total_iters", "power"]),
    ("cosine", &["T_max", "eta_min"]),
    ("cosine_restarts", &["T_0", "T_mult", "eta_min"]),
    (
        "onecycle",
        &["max_lr", "total_steps", "pct_start", "div_factor", "final_div_factor", "anneal_strategy"],
    ),
];

impl Schedule {
    /// Stages one after the other: a name, options by name, and the count at which the next stage begins. Fails for unknown names
    /// and options, and where only the last stage has no end.
    pub fn new(stages: &[(String, Vec<(String, Value)>, Option<i64>)]) -> Result<Schedule> {
        let mut out: Vec<Stage> = Vec::new();
        for (n, (name, options, until)) in stages.iter().enumerate() {
            let last = n + 1 == stages.len();
            let before = out.last().and_then(|stage: &Stage| stage.until).unwrap_or(0);
            if until.is_some() == last || until.is_some_and(|until| until <= before) {
                return Err(Diagnostic::input(
                    "each stage of a schedule but the last ends later than the one before",
                ));
            }
            out.push(Stage { rule: rule(name, options)?, until: *until });
        }
        if out.is_empty() {
            return Err(Diagnostic::input("a schedule has at least one stage"));
        }
        Ok(Schedule { stages: out, count: 0 })
    }

    /// Sets the first rates.
    pub fn begin(&self, optimizer: &mut Optimizer) {
        let Some(stage) = self.stages.first() else { return };
        for n in 0..optimizer.groups().len() {
            let base = optimizer.groups()[n].initial_rate();
            optimizer.set_rate(n, stage.rule.first(base));
        }
    }

    /// Sets the next rates.
    pub fn advance(&mut self, optimizer: &mut Optimizer) -> Result<()> {
        self.count += 1;
        let begun = |stage: &&Stage| stage.until.is_some_and(|until| until <= self.count);
        let at = self.stages.iter().take_while(begun).count();
        let start = at.checked_sub(1).and_then(|n| self.stages.get(n)?.until).unwrap_or(0);
        let Some(stage) = self.stages.get(at) else { return Ok(()) };
        for n in 0..optimizer.groups().len() {
            let (base, rate) = (optimizer.groups()[n].initial_rate(), optimizer.groups()[n].rate());
            let next = match self.count - start {
                0 => stage.rule.closed(base),
                count => stage.rule.next(count, rate, base)?,
            };
            optimizer.set_rate(n, next);
        }
        Ok(())
    }

    /// How often the rate was changed.
    pub fn count(&self) -> i64 {
        self.count
    }

    /// Goes on from a count; the rates stand in the optimizer.
    pub fn resume(&mut self, count: i64) {
        self.count = count.max(0);
    }
}

/// Reads one rule.
fn rule(name: &str, options: &[(String, Value)]) -> Result<Rule> {
    let Some((_, known)) = RULES.iter().find(|(known, _)| *known == name) else {
        let error = Diagnostic::unsupported(format!("schedule '{name}'"));
        let names = RULES.iter().map(|(name, _)| *name);
        return Err(match nearest(name, names.clone()) {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None => error.hint(format!("there are {}", names.collect::<Vec<_>>().join(", "))),
        });
    };
    if let Some((other, _)) = options.iter().find(|(option, _)| !known.contains(&option.as_str())) {
        let error = Diagnostic::unsupported(format!("option '{other}' of the schedule {name}"));
        return Err(error.hint(format!("it takes {}", known.join(", "))));
    }
    let given = |option: &str| options.iter().find(|(known, _)| known == option).map(|(_, value)| value);
    let wrong = |option: &str| Diagnostic::input(format!("the schedule {name} needs a number '{option}'"));
    let number = |option: &str, default: Option<f64>| match given(option) {
        Some(Value::Int(x)) => Ok(*x as f64),
        Some(Value::Float(x)) => Ok(*x),
        Some(_) => Err(wrong(option)),
        None => default.ok_or_else(|| wrong(option)),
    };
    let count = |option: &str, default: Option<i64>| match given(option) {
        Some(Value::Int(x)) if *x > 0 => Ok(*x),
        Some(_) => Err(Diagnostic::input(format!("'{option}' of the schedule {name} is a count from 1"))),
        None => default.ok_or_else(|| wrong(option)),
    };
    Ok(match name {
        "step" => Rule::Step { size: count("step_size", None)?, gamma: number("gamma", Some(0.1))? },
        "multistep" => {
            let items = match given("milestones") {
                Some(Value::List(list)) => list.to_vec(),
                Some(Value::Tuple(tuple)) => tuple.items().to_vec(),
                _ => return Err(wrong("milestones")),
            };
            let milestones = items.iter().map(|x| x.to_int().map_err(|_| wrong("milestones")));
            let milestones = milestones.collect::<Result<Vec<i64>>>()?;
            Rule::Multistep { milestones, gamma: number("gamma", Some(0.1))? }
        }
        "constant" => {
            let factor = number("factor", Some(1.0 / 3.0))?;
            Rule::Constant { factor, total: count("total_iters", Some(5))? }
        }
        "linear" => Rule::Linear {
            start: number("start_factor", Some(1.0 / 3.0))?,
            end: number("end_factor", Some(1.0))?,
            total: count("total_iters", Some(5))?,
        },
        "exponential" => Rule::Exponential { gamma: number("gamma", None)? },
        "polynomial" => {
            Rule::Polynomial { total: count("total_iters", Some(5))?, power: number("power", Some(1.0))? }
        }
        "cosine" => Rule::Cosine { period: count("T_max", None)?, least: number("eta_min", Some(0.0))? },
        "cosine_restarts" => Rule::Restarts {
            first: count("T_0", None)?,
            times: count("T_mult", Some(1))?,
            least: number("eta_min", Some(0.0))?,
        },
        _ => Rule::OneCycle {
            most: number("max_lr", None)?,
            total: count("total_steps", None)?,
            rise: number("pct_start", Some(0.3))?,
            divisor: number("div_factor", Some(25.0))?,
            last_divisor: number("final_div_factor", Some(1e4))?,
            linear: match given("anneal_strategy") {
                None => false,
                Some(Value::Str(text)) if &**text == "cos" => false,
                Some(Value::Str(text)) if &**text == "linear" => true,
                _ => return Err(Diagnostic::input("anneal_strategy is 'cos' or 'linear'")),
            },
        },
    })
}

impl Rule {
    /// The rate before the first change.
    fn first(&self, base: f64) -> f64 {
        match self {
            Rule::Constant { factor, .. } => base * factor,
            Rule::Linear { start, .. } => base * start,
            Rule::Restarts { .. } | Rule::OneCycle { .. } => self.at(0, base),
            _ => base,
        }
    }

    /// The rate with which a later stage begins.
    fn closed(&self, base: f64) -> f64 {
        match self {
            Rule::Constant { factor, .. } => base * (factor + 0.0 * (1.0 - factor)),
            Rule::Linear { start, end, total } => base * (start + (end - start) * 0.0 / *total as f64),
            Rule::Cosine { least, .. } => least + (base - least) * 2.0 / 2.0,
            _ => self.first(base),
        }
    }

    /// The rate of a count that follows another.
    fn next(&self, count: i64, rate: f64, base: f64) -> Result<f64> {
        Ok(match self {
            Rule::Step { size, gamma } => {
                if count % size == 0 {
                    rate * gamma
                } else {
                    rate
                }
            }
            Rule::Multistep { milestones, gamma } => {
                match milestones.iter().filter(|milestone| **milestone == count).count() {
                    0 => rate,
                    times => rate * gamma.powi(times as i32),
                }
            }
            Rule::Constant { factor, total } => {
                if count == *total {
                    rate * (1.0 / factor)
                } else {
                    rate
                }
            }
            Rule::Linear { total, .. } if count > *total => rate,
            Rule::Linear { start, end, total } => {
                let (rise, before) = (end - start, (count - 1) as f64);
                rate * (1.0 + rise / (*total as f64 * start + before * rise))
            }
            Rule::Exponential { gamma } => rate * gamma,
            Rule::Polynomial { total, .. } if count > *total => rate,
            Rule::Polynomial { total, power } => {
                let left = |count: i64| 1.0 - count as f64 / *total as f64;
                rate * (left(count) / left(count - 1)).powf(*power)
            }
            Rule::Cosine { period, least } => {
                let period_length = *period as f64;
                if (count - 1 - period).rem_euclid(2 * period) == 0 {
                    rate + (base - least) * (1.0 - (PI / period_length).cos()) / 2.0
                } else {
                    let height = |count: i64| 1.0 + (PI * count as f64 / period_length).cos();
                    height(count) / height(count - 1) * (rate - least) + least
                }
            }
            Rule::OneCycle { total, .. } if count > *total => {
                return Err(Diagnostic::input(format!(
                    "the schedule onecycle has {total} steps, and step {count} was tried"
                )));
            }
            Rule::Restarts { .. } | Rule::OneCycle { .. } => self.at(count, base),
        })
    }

    /// The rate of a count, of rules that read no other rate.
    fn at(&self, count: i64, base: f64) -> f64 {
        match self {
            Rule::Restarts { first, times, least } => {
                let (mut at, mut length) = (count, *first);
                while at >= length {
                    at -= length;
                    length = length.saturating_mul(*times);
                }
                least + (base - least) * (1.0 + (PI * at as f64 / length as f64).cos()) / 2.0
            }
            Rule::OneCycle { most, total, rise, divisor, last_divisor, linear } => {
                let (low, count) = (most / divisor, count as f64);
                let (top, end) = (rise * *total as f64 - 1.0, (*total - 1) as f64);
                let (from, to, share) = match count <= top {
                    true => (low, *most, count / top),
                    false => (*most, low / last_divisor, (count - top) / (end - top)),
                };
                match linear {
                    true => (to - from) * share + from,
                    false => to + (from - to) / 2.0 * ((PI * share).cos() + 1.0),
                }
            }
            _ => base,
        }
    }
}
