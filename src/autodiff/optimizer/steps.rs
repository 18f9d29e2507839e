//! Steps as functions of tensors alone, for plans: the rule with the options of a group as constants, and what is kept of a
//! parameter as arguments by name. The learning rate stays an argument, as schedules change it.

use super::kept::State;
use super::rules::flat;
use crate::tensor::Tensor;
use crate::value::{DictKey, Value};
use std::fmt::Write;

/// The texts of a group's steps.
pub(super) struct Steps<'a> {
    /// The rule, after what it calls.
    rule: &'a str,
    function: &'a str,
    options: &'a [(&'static str, Value)],
    /// For parameters of which the same is kept, mostly all.
    last: Option<(Vec<DictKey>, String)>,
}

impl<'a> Steps<'a> {
    pub(super) fn new(rule: &'a str, function: &'a str, options: &'a [(&'static str, Value)]) -> Steps<'a> {
        Steps { rule, function, options, last: None }
    }

    /// The step of a parameter of which something is kept: its text, and what that takes.
    pub(super) fn of(
        &mut self,
        parameter: &Tensor,
        gradient: Tensor,
        state: &State,
        rate: f64,
    ) -> (&str, Vec<Value>) {
        let entries = state.tensors.entries();
        let same = |(names, _): &(Vec<DictKey>, String)| entries.keys().eq(names);
        if !self.last.as_ref().is_some_and(same) {
            let names: Vec<DictKey> = entries.keys().cloned().collect();
            let text = self.text(&names);
            self.last = Some((names, text));
        }
        let mut values = vec![Value::Tensor(parameter.clone()), Value::Tensor(gradient)];
        values.extend(entries.values().cloned());
        values.extend([Value::Int(state.steps), Value::Float(rate)]);
        (self.last.as_ref().map_or("", |(_, text)| text), values)
    }

    fn text(&self, names: &[DictKey]) -> String {
        let kept: String = (0..names.len()).map(|n| format!(", s{n}: Tensor")).collect();
        let item = |(n, name): (usize, &DictKey)| format!("'{}': s{n}", name.to_value().to_text());
        let items: Vec<String> = names.iter().enumerate().map(item).collect();
        let mut text = self.rule.to_string();
        // Writing to a text does not fail.
        let _ = write!(
            text,
            "\ndef step(p: Tensor, g: Tensor{kept}, t: int, lr: float):\n    {}(p, g, {{{}}}, t",
            self.function,
            items.join(", ")
        );
        for (name, value) in self.options {
            match *name {
                "lr" => text.push_str(", lr"),
                _ => flat(value).iter().for_each(|part| {
                    let _ = write!(text, ", {}", literal(part));
                }),
            }
        }
        text.push_str(")\n");
        text
    }
}

/// An option in source.
fn literal(value: &Value) -> String {
    match value {
        Value::Float(x) if x.is_nan() => "float('nan')".into(),
        Value::Float(x) if x.is_infinite() => if *x > 0.0 { "float('inf')" } else { "float('-inf')" }.into(),
        Value::Float(x) => format!("{x:?}"),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Str(text) => format!("{text:?}"),
        other => other.to_text(),
    }
}
