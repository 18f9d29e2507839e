//! Code as text, for people: a line for each step, as the interpreter runs it.

use super::{Action, Code, NOWHERE, Operand};
use std::fmt::Write;

impl Code {
    /// The steps: results, what the step does, operands. `r3` is a register, `r3!` its last use, `c0` a constant; code that a step runs
    /// stands under it.
    pub(in crate::runtime) fn listing(&self) -> String {
        let mut out = String::new();
        self.list(&mut out, 0);
        out
    }

    fn list(&self, out: &mut String, depth: usize) {
        for (n, step) in self.steps.iter().enumerate() {
            let results: Vec<String> = step.results.iter().map(|register| result(*register)).collect();
            let operands: Vec<String> = step.operands.iter().map(operand).collect();
            let results =
                if results.is_empty() { String::new() } else { format!("{} = ", results.join(", ")) };
            let line = format!("{n:>4}  {results}{} {}", text(&step.action), operands.join(", "));
            let _ = writeln!(out, "{:indent$}{}", "", line.trim_end(), indent = 4 * depth);
            for code in inner(&step.action) {
                code.list(out, depth + 1);
            }
        }
    }
}

/// Code that a step runs.
fn inner(action: &Action) -> Vec<&Code> {
    match action {
        Action::Call(code) | Action::Fused { code, .. } | Action::Fork { code, .. } => vec![code],
        _ => Vec::new(),
    }
}

fn result(register: u32) -> String {
    if register == NOWHERE { "_".to_string() } else { format!("r{register}") }
}

fn operand(operand: &Operand) -> String {
    match operand {
        Operand::Keep(register) => format!("r{register}"),
        Operand::Take(register) => format!("r{register}!"),
        Operand::Constant(n) => format!("c{n}"),
    }
}

fn text(action: &Action) -> String {
    match action {
        Action::Op(bound) => bound.op.name().to_string(),
        Action::Library(bound, _) => format!("{} by a library", bound.op.name()),
        Action::Number(_, bound) => format!("{} of numbers", bound.op.name()),
        Action::Missing(error) => format!("fail: {}", error.message()),
        Action::Move | Action::MoveEach => "move".to_string(),
        Action::Jump(to) => format!("jump to {to}"),
        Action::JumpUnless(to) => format!("jump to {to} unless"),
        Action::Check(bound, _) => format!("{} guards", bound.op.name()),
        Action::JumpIfOf(ty, to, _) => format!("jump to {to} if of {ty}"),
        Action::GoOn(_) => "leave for a bailout's rest".to_string(),
        Action::Iteration { counter, exit, compiled } => {
            let how = if compiled.is_some() { "compiled iterations" } else { "iteration" };
            format!("{how} counted by r{counter}, at the end jump to {exit}")
        }
        Action::Call(_) => "call".to_string(),
        Action::Regions { bound, .. } => format!("{} with blocks", bound.op.name()),
        Action::Fused { .. } => "fused, or op by op".to_string(),
        Action::Kernel(_) => "kernel".to_string(),
        Action::CallFunction => "call a function".to_string(),
        Action::CallMethod(name) => format!("call method {name}"),
        Action::Enter => "enter".to_string(),
        Action::Exit => "exit".to_string(),
        Action::Fork { .. } => "fork".to_string(),
        Action::IsInstance(types) => {
            let types: Vec<String> = types.iter().map(ToString::to_string).collect();
            format!("is instance of {}", types.join(", "))
        }
        Action::Return => "return".to_string(),
    }
}
