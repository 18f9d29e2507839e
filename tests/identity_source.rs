//! Objects stay what they are in programs as people write them: functions of the library that give their input, a view
//! of it, or something new that is equal, written before and after, through branches, loops and calls. Each random
//! program runs as it is and with the whole pipeline, and with each pass alone; answers, strides and who shares memory
//! must be equal.

use super::identity::{Seen, observe};
use flambeau::passes::TABLE;
use flambeau::runtime::Program;
use flambeau::toolkit::Toolkit;
use libtest_mimic::{Failed, Trial};
use std::fmt::Write;

/// Random programs that run with the whole pipeline, and those that run with each pass.
const PROGRAMS: u64 = 300;
const PROGRAMS_EACH: u64 = 40;

/// What gives `a`, a view of it, or something new of the same shape; `b` is another matrix.
#[rustfmt::skip]
const GIVES: &[&str] = &[
    "a + 0", "a * 1", "a / 1", "a ** 1", "0 + a", "-(-a)", "torch.t(torch.t(a))", "a.t()", "a.permute(1, 0)",
    "a.permute(0, 1)", "a.transpose(0, 0)", "a.contiguous()", "a.clone()", "a.detach()", "a.to(a.dtype)",
    "a.to(torch.float32)", "a.to(torch.float32, copy=True)", "a.float()", "a.double().float()", "a.type_as(b)",
    "a.view_as(b)", "a.view(3, 3)", "a.view(a.shape)", "a.reshape(3, 3)", "a.reshape(9).reshape(3, 3)",
    "a.flatten(0, 0)", "torch.dropout(a, 0.5, False)", "torch.dropout(a, 0.0, True)",
    "torch.nn.functional.dropout(a, 0.5, False)", "torch.relu(torch.relu(a))", "torch.relu(a)", "a.abs().abs()",
    "torch.cat([a])", "torch.cat([a, b])[:3]", "torch.cat([a], 1)", "torch.stack([a])[0]", "torch.stack([a, b])[1]",
    "a.unsqueeze(0).squeeze(0)", "a.chunk(1)[0]", "a.split(3)[0]", "a.chunk(3)[0].expand(3, 3)",
    "torch.where(a > 0, a, b)", "torch.where(a == a, a, b)", "a.expand(3, 3)", "a.expand_as(b)", "a[:]", "a[0:3]",
    "a[:, :]", "a[None][0]", "a.narrow(0, 0, 3)", "a[0].expand(3, 3)", "torch.stack(a.unbind(0))",
    "torch.stack(torch.unbind(a, 1), 1)", "torch.as_strided(a, [3, 3], [3, 1])", "torch.max(a, b)",
    "torch.minimum(a, a)", "a.masked_fill(a > 100, 0.0)", "a.squeeze()", "a.flip(0).flip(0)", "torch.conj(a)",
    "torch.positive(a)", "torch.real(a)", "a.cpu()", "a.to(b)", "torch.broadcast_tensors([a, b])[0]",
    "a.clamp(-1000, 1000)", "a.sum_to_size([3, 3])", "torch.movedim(a, 0, 0)", "torch.atleast_2d(a)", "a.mT",
    "a.unfold(0, 3, 1)[0].t()", "a.view(1, 3, 3)[0]", "a.expand(2, 3, 3)[1]", "torch.mm(a, torch.eye(3))",
    "torch.addmm(a, a, b)", "torch.addmm(a, a, b, beta=0)", "torch.mm(a, b.t())", "torch.mm(a.t(), b).t()",
    "torch.einsum('ij->ji', [a])", "a + b", "a - b", "a * b", "torch.add(a, b, alpha=0)", "torch.sigmoid(a)",
    "torch.tanh(a)", "torch.zeros_like(a) + a", "torch.ones_like(a) * a", "a.sum(0).expand(3, 3)", "a.t() + 0",
    "torch.empty_like(a).copy_(a)", "a.t().contiguous()", "a.t().reshape(3, 3)", "a.clone().t()",
    "torch.round(torch.round(a))", "torch.sum(a, 0, keepdim=True).expand(3, 3)",
];

/// What changes `a`.
#[rustfmt::skip]
const CHANGES: &[&str] = &[
    "a.add_(1)", "a.mul_(2)", "a.add_(b)", "a.neg_()", "a.relu_()", "a.zero_()", "a[0] = 7.0", "a[:, 1] += 2",
    "a += 1", "a.t().mul_(3)", "a[0].add_(5)", "torch.relu_(a)", "torch.nn.functional.relu(a, inplace=True)",
    "a.detach().add_(2)", "a.masked_fill_(a > 1, -1.0)",
];

/// Passes that are not asked: they assume what need not be so, or change on purpose who may write.
#[rustfmt::skip]
const ASSUMES: &[&str] = &[
    "remove-inplace-ops", "remove-exceptions", "dce-allow-deleting-nodes-with-side-effects", "freeze", "remove-expands",
];

/// The trials.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("identity_source::default", || compare(PROGRAMS, &["default".to_string()])),
        Trial::test("identity_source::each_pass", || {
            let alone = TABLE.iter().map(|pass| pass.name).filter(|name| !ASSUMES.contains(name));
            compare(PROGRAMS_EACH, &alone.map(|name| format!("inline,{name}")).collect::<Vec<_>>())
        }),
    ]
}

/// Runs programs with and without pipelines.
fn compare(programs: u64, pipelines: &[String]) -> Result<(), Failed> {
    let mut ran = 0;
    for seed in 0..programs {
        let text = Source::random(seed).text();
        let plain = Toolkit::default()
            .load_source("source", &text)
            .map_err(|e| format!("seed {seed}: {e}\n{text}"))?;
        let Some(wanted) = observe(&plain) else { continue };
        ran += 1;
        for pipeline in pipelines {
            let got = with(&plain, pipeline).map_err(|e| format!("seed {seed}, {pipeline}: {e}\n{text}"))?;
            if got.as_ref() != Some(&wanted) {
                return Err(
                    format!("seed {seed}, {pipeline}:\n{text}\ngives\n{got:?}\nnot\n{wanted:?}").into()
                );
            }
        }
    }
    // Some raise: a view of what does not lie so, a write to what shows one number twice.
    if ran * 3 < programs * 2 { Err(format!("only {ran} of {programs} programs ran").into()) } else { Ok(()) }
}

fn with(plain: &Program, pipeline: &str) -> Result<Option<Seen>, String> {
    let passes = Toolkit::default().parse_pipeline(pipeline).map_err(|e| e.to_string())?;
    let better = plain.transformed(|module, registry| passes.run(module, registry).map(|_| ()));
    Ok(observe(&better.map_err(|e| e.to_string())?))
}

/// A random program.
struct Source {
    state: u64,
    functions: String,
    body: String,
    names: Vec<String>,
    count: usize,
}

impl Source {
    fn random(seed: u64) -> Source {
        let mut source = Source {
            state: seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            functions: String::new(),
            body: String::new(),
            names: vec!["x".into(), "y".into()],
            count: 0,
        };
        for _ in 0..3 + source.below(6) {
            source.step("    ");
        }
        source
    }

    fn text(mut self) -> String {
        let outputs: Vec<String> = (0..3).map(|_| self.pick()).collect();
        format!(
            "{}def forward(x: Tensor, y: Tensor):\n{}    return {}\n",
            self.functions,
            self.body,
            outputs.join(", ")
        )
    }

    fn below(&mut self, n: usize) -> usize {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 33) % n.max(1) as u64) as usize
    }

    /// What was made last is used more often.
    fn pick(&mut self) -> String {
        let last = self.names.len() - 1;
        let n = if self.below(2) == 0 { last } else { self.below(last + 1) };
        self.names[n].clone()
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("v{}", self.count)
    }

    /// The expression with variables in the places of `a` and `b`.
    fn fill(&mut self, expression: &str) -> String {
        let (a, b) = (self.pick(), self.pick());
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let letters: Vec<char> = expression.chars().collect();
        let mut out = String::new();
        for (n, c) in letters.iter().enumerate() {
            let before = n.checked_sub(1).and_then(|n| letters.get(n)).copied();
            let alone = !is_word(before) && before != Some('.') && !is_word(letters.get(n + 1).copied());
            match c {
                'a' if alone => out.push_str(&a),
                'b' if alone => out.push_str(&b),
                _ => out.push(*c),
            }
        }
        out
    }

    fn step(&mut self, indent: &str) {
        let nested = indent.len() > 4;
        match self.below(if nested { 8 } else { 10 }) {
            0..=4 => {
                let expression = GIVES[self.below(GIVES.len())];
                let (right, name) = (self.fill(expression), self.name());
                let _ = writeln!(self.body, "{indent}{name} = {right}");
                self.names.push(name);
            }
            5 => {
                let expression = GIVES[self.below(GIVES.len())];
                let (function, name, a, b) =
                    (format!("g{}", self.count), self.name(), self.pick(), self.pick());
                let _ = writeln!(self.functions, "def {function}(a, b):\n    return {expression}");
                let _ = writeln!(self.body, "{indent}{name} = {function}({a}, {b})");
                self.names.push(name);
            }
            6 | 7 => {
                let expression = CHANGES[self.below(CHANGES.len())];
                let line = self.fill(expression);
                let _ = writeln!(self.body, "{indent}{line}");
            }
            8 => self.branch(),
            _ => self.counted_loop(),
        }
    }

    fn branch(&mut self) {
        let (name, condition, known) = (self.name(), self.pick(), self.names.clone());
        let _ = writeln!(self.body, "    if bool({condition}.sum() > 3):");
        for otherwise in [true, false] {
            self.step("        ");
            let result = self.pick();
            let _ = writeln!(self.body, "        {name} = {result}");
            self.names = known.clone();
            if otherwise {
                self.body.push_str("    else:\n");
            }
        }
        self.names.push(name);
    }

    fn counted_loop(&mut self) {
        let (name, start, count) = (self.name(), self.pick(), self.below(4));
        let _ = writeln!(self.body, "    {name} = {start}\n    for i in range({count}):");
        let known = self.names.clone();
        self.names.push(name.clone());
        self.step("        ");
        let result = self.pick();
        let _ = writeln!(self.body, "        {name} = {result}");
        self.names = known;
        self.names.push(name);
    }
}
