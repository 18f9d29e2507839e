//! Writes a TorchScript program that a string of bytes chooses: each byte is one choice, and where they end the first one of
//! each is taken, so that short inputs give short programs. All programs have the same function `f`, of two matrices and a number.
//! If the first byte is 255 the program may also return early, raise, use dictionaries and loop over numbers (`rich.rs`); other
//! bytes choose what they always chose.

#[path = "rich.rs"]
mod rich;

use std::fmt::Write as _;

/// Statements of a program, at most.
const MOST_STATEMENTS: usize = 60;
/// Blocks in each other, at most.
const MOST_DEPTH: usize = 4;

/// The first byte of rich programs.
pub const RICH: u8 = 255;

/// Types of variables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int,
    Float,
    Bool,
    Str,
    Ints,
    Tensor,
    Tensors,
    /// In rich programs only, as `Dict`.
    Floats,
    Dict,
}

const KINDS: [Kind; 7] =
    [Kind::Tensor, Kind::Int, Kind::Ints, Kind::Tensors, Kind::Bool, Kind::Float, Kind::Str];

/// The program that some bytes choose.
pub fn write(bytes: &[u8]) -> String {
    let (rich, bytes) = match bytes.split_first() {
        Some((&RICH, rest)) => (true, rest),
        _ => (false, bytes),
    };
    let (bytes, out) = (bytes.iter(), String::new());
    let mut writer = Writer { bytes, out, names: Vec::new(), next: 0, left: MOST_STATEMENTS, rich };
    writer.helpers();
    writer.function();
    writer.out
}

struct Writer<'a> {
    bytes: std::slice::Iter<'a, u8>,
    out: String,
    /// Variables that may be read here.
    names: Vec<(Kind, String)>,
    next: usize,
    /// Statements that may still be written.
    left: usize,
    rich: bool,
}

impl Writer<'_> {
    fn below(&mut self, n: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % n
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len())]
    }

    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{}{text}", "    ".repeat(depth));
    }

    /// Functions that `f` calls: with branches, loops and writes to what they are given.
    fn helpers(&mut self) {
        let (a, b, c) = (self.below(5), self.below(5), self.below(4));
        self.line(0, "def g(a: int, b: int) -> int:");
        self.line(1, &format!("if a > {a}:"));
        self.line(2, &format!("return a - b * {b}"));
        self.line(1, &format!("for i in range({c}):"));
        self.line(2, "b = b + i");
        self.line(1, "return a + b");
        let write = self.pick(&["y = x.clone()", "y = x", "y = x[0:1]", "y = x.t()", "y = x * 1"]);
        let change = self.pick(&["add_(n)", "mul_(2)", "zero_()", "neg_()", "relu_()"]);
        self.line(0, "def h(x: Tensor, n: int) -> Tensor:");
        self.line(1, write);
        self.line(1, "if n > 1:");
        self.line(2, &format!("y.{change}"));
        self.line(1, "return y");
    }

    fn function(&mut self) {
        let more = if self.rich { rich::RESULT_TYPES } else { "" };
        let results = format!("Tuple[Tensor, Tensor, int, List[int], List[Tensor], str{more}]");
        self.line(0, &format!("def f(x: Tensor, y: Tensor, n: int) -> {results}:"));
        for (kind, name, first) in [
            (Kind::Int, "m", "n + 1"),
            (Kind::Ints, "l", "[n, 2, 3]"),
            (Kind::Tensors, "ts", "[x, y]"),
            (Kind::Str, "s", "'ab'"),
            (Kind::Bool, "c", "n > 2"),
            (Kind::Float, "r", "0.5"),
            (Kind::Tensor, "z", "x + y"),
        ] {
            self.line(1, &format!("{name} = {first}"));
            self.names.push((kind, name.to_string()));
        }
        for (kind, name) in [(Kind::Tensor, "x"), (Kind::Tensor, "y"), (Kind::Int, "n")] {
            self.names.push((kind, name.to_string()));
        }
        if self.rich {
            self.rich_names();
        }
        while self.bytes.len() > 0 && self.left > 0 {
            self.statement(1, false);
        }
        self.line(1, &format!("return {}", self.results()));
    }

    fn results(&self) -> String {
        format!("(z, x, m, l, ts, s{})", if self.rich { rich::RESULTS } else { "" })
    }

    fn block(&mut self, depth: usize, in_loop: bool) {
        let known = self.names.len();
        for _ in 0..=self.below(3) {
            self.statement(depth, in_loop);
        }
        // What is first given a value in a block may have none after it.
        self.names.truncate(known);
        self.line(depth, "pass");
    }

    fn statement(&mut self, depth: usize, in_loop: bool) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        if self.rich && self.below(2) == 0 {
            return self.rich_statement(depth, in_loop);
        }
        let choice = self.below(if depth < MOST_DEPTH { 12 } else { 8 });
        match choice {
            0 => {
                let kind = KINDS[self.below(KINDS.len())];
                let value = self.expr(kind, 2);
                let name = format!("v{}", self.next);
                self.next += 1;
                self.line(depth, &format!("{name} = {value}"));
                self.names.push((kind, name));
            }
            1 | 2 => {
                let kind = KINDS[self.below(KINDS.len())];
                let (name, value) = (self.name(kind), self.expr(kind, 2));
                self.line(depth, &format!("{name} = {value}"));
            }
            3 => {
                let (name, change) = (self.name(Kind::Tensor), self.write());
                self.line(depth, &format!("{name}{change}"));
            }
            4 => {
                let (kind, lists) =
                    if self.below(2) == 0 { (Kind::Int, Kind::Ints) } else { (Kind::Tensor, Kind::Tensors) };
                let (list, item) = (self.name(lists), self.expr(kind, 1));
                let what = self.pick(&["append", "insert0", "set0", "pop", "reverse", "extend"]);
                let text = match what {
                    "insert0" => format!("{list}.insert(0, {item})"),
                    "set0" => format!("{list}[0] = {item}"),
                    "pop" => format!("{list}.append({list}.pop())"),
                    "reverse" => format!("{list}.reverse()"),
                    "extend" => format!("{list}.extend([{item}])"),
                    _ => format!("{list}.append({item})"),
                };
                self.line(depth, &text);
            }
            5 => {
                let (sign, value) = (self.pick(&["+=", "-=", "*="]), self.expr(Kind::Int, 1));
                let name = self.name(Kind::Int);
                self.line(depth, &format!("{name} {sign} {value}"));
            }
            6 => {
                let (sign, value) = (self.pick(&["+=", "-=", "*="]), self.expr(Kind::Tensor, 1));
                let name = self.name(Kind::Tensor);
                self.line(depth, &format!("{name} {sign} {value}"));
            }
            7 if in_loop => {
                let (condition, leave) = (self.expr(Kind::Bool, 1), self.pick(&["break", "continue"]));
                self.line(depth, &format!("if {condition}:"));
                self.line(depth + 1, leave);
            }
            7 => {
                let (condition, kind) = (self.expr(Kind::Bool, 1), [Kind::Int, Kind::Str][self.below(2)]);
                let name = self.name(kind);
                self.line(depth, &format!("print({name}, {condition})"));
            }
            8 | 9 => {
                let condition = self.expr(Kind::Bool, 2);
                self.line(depth, &format!("if {condition}:"));
                self.block(depth + 1, in_loop);
                if self.below(2) == 0 {
                    self.line(depth, "else:");
                    self.block(depth + 1, in_loop);
                }
            }
            10 => {
                let (count, name) = (self.below(4), format!("i{}", self.next));
                self.next += 1;
                self.line(depth, &format!("for {name} in range({count}):"));
                self.names.push((Kind::Int, name));
                self.block(depth + 1, true);
                self.names.pop();
            }
            _ => {
                let (count, name) = (self.below(4), format!("k{}", self.next));
                self.next += 1;
                let condition = self.expr(Kind::Bool, 1);
                self.line(depth, &format!("{name} = 0"));
                self.line(depth, &format!("while {name} < {count} and {condition}:"));
                self.line(depth + 1, &format!("{name} += 1"));
                self.block(depth + 1, true);
            }
        }
    }

    /// A variable of a kind; there is always one.
    fn name(&mut self, kind: Kind) -> String {
        let all = self.names.iter().filter(|(k, _)| *k == kind).count();
        let at = self.below(all.max(1));
        let of_kind = self.names.iter().filter(|(k, _)| *k == kind);
        of_kind.skip(at).map(|(_, name)| name.clone()).next().unwrap_or_default()
    }

    /// What writes to a tensor.
    fn write(&mut self) -> String {
        let value = self.expr(Kind::Tensor, 1);
        match self.below(8) {
            0 => format!(".add_({value})"),
            1 => format!(".mul_({value})"),
            2 => ".zero_()".to_string(),
            3 => format!("[0] = {value}[0]"),
            4 => format!("[:, 1:] = {value}[:, 1:]"),
            5 => format!(".copy_({value})"),
            6 => format!("[0].relu_().sub_({value}[1])"),
            _ => ".clamp_(-1, 2)".to_string(),
        }
    }

    fn expr(&mut self, kind: Kind, depth: usize) -> String {
        if depth == 0 || self.below(3) == 0 {
            return self.name(kind);
        }
        if self.below(9) == 0 {
            let (a, c, b) =
                (self.expr(kind, depth - 1), self.expr(Kind::Bool, depth - 1), self.expr(kind, depth - 1));
            return format!("({a} if {c} else {b})");
        }
        if self.rich && self.below(3) == 0 {
            return self.rich_expr(kind, depth);
        }
        let mut one = |kind| self.expr(kind, depth - 1);
        match kind {
            Kind::Floats | Kind::Dict => self.rich_expr(kind, depth),
            Kind::Int => {
                let (a, b, l, s) = (one(Kind::Int), one(Kind::Int), one(Kind::Ints), one(Kind::Str));
                match self.below(13) {
                    0 => format!("({a} + {b})"),
                    1 => format!("({a} * {b})"),
                    2 => format!("({a} - {b})"),
                    3 => format!("({a} // 3)"),
                    4 => format!("({a} % 4)"),
                    5 => format!("g({a}, {b})"),
                    6 => format!("len({l})"),
                    7 => format!("len({s})"),
                    8 => format!("{l}[0]"),
                    9 => format!("min({a}, {b})"),
                    10 => format!("({a} & {b})"),
                    11 => format!("(-{a})"),
                    _ => ["0", "1", "-1", "7", "9223372036854775807"][self.below(5)].to_string(),
                }
            }
            Kind::Float => {
                let (a, b, n) = (one(Kind::Float), one(Kind::Float), one(Kind::Int));
                match self.below(6) {
                    0 => format!("({a} + {b})"),
                    1 => format!("({a} * {b})"),
                    2 => format!("({a} - {b})"),
                    3 => format!("float({n})"),
                    4 => format!("max({a}, {b})"),
                    _ => ["0.5", "-2.0", "float('inf')", "float('nan')", "-0.0", "1e-40"][self.below(6)]
                        .to_string(),
                }
            }
            Kind::Bool => {
                let (a, b, p, q) = (one(Kind::Int), one(Kind::Int), one(Kind::Bool), one(Kind::Bool));
                let (l, s) = (one(Kind::Ints), one(Kind::Str));
                match self.below(9) {
                    0 => format!("({a} < {b})"),
                    1 => format!("({a} == {b})"),
                    2 => format!("({p} and {q})"),
                    3 => format!("({p} or {q})"),
                    4 => format!("(not {p})"),
                    5 => format!("({a} in {l})"),
                    6 => format!("({s} == 'ab')"),
                    7 => format!("(len({l}) > 2)"),
                    _ => format!("({a} != 2)"),
                }
            }
            Kind::Str => {
                let (a, n) = (one(Kind::Str), one(Kind::Int));
                match self.below(6) {
                    0 => format!("({a} + 'c')"),
                    1 => format!("str({n})"),
                    2 => format!("{a}.upper()"),
                    3 => format!("{a}[0:2]"),
                    4 => format!("'{{}}'.format({n})"),
                    _ => "'Ab'".to_string(),
                }
            }
            Kind::Ints => {
                let (l, n) = (one(Kind::Ints), one(Kind::Int));
                match self.below(6) {
                    0 => format!("[{n}, 1]"),
                    1 => format!("({l} + [{n}])"),
                    2 => format!("{l}[0:3]"),
                    3 => format!("[j + {n} for j in {l}]"),
                    4 => format!("list({l})"),
                    _ => format!("sorted({l})"),
                }
            }
            Kind::Tensors => {
                let (a, b) = (one(Kind::Tensor), one(Kind::Tensor));
                match self.below(4) {
                    0 => format!("[{a}, {b}]"),
                    1 => format!("list(torch.split({a}, 1))"),
                    2 => format!("[{a}]"),
                    _ => format!("list(torch.unbind(torch.stack([{a}, {b}])))"),
                }
            }
            Kind::Tensor => {
                let (a, b, n, r) = (one(Kind::Tensor), one(Kind::Tensor), one(Kind::Int), one(Kind::Float));
                let ts = one(Kind::Tensors);
                match self.below(24) {
                    0 => format!("({a} + {b})"),
                    1 => format!("({a} * {b})"),
                    2 => format!("({a} - {b})"),
                    3 => format!("torch.relu({a})"),
                    4 => format!("torch.neg({a})"),
                    5 => format!("torch.abs({a})"),
                    6 => format!("torch.where({a} > {b}, {a}, {b})"),
                    7 => format!("torch.minimum({a}, {b})"),
                    8 => format!("h({a}, {n})"),
                    9 => format!("{a}.view([2, 3])"),
                    10 => format!("{a}.clone()"),
                    11 => format!("({a} + {r})"),
                    12 => format!("({a} * {r})"),
                    13 => format!("torch.clamp({a}, -1.0, 1.0)"),
                    14 => format!("{a}.t().t()"),
                    15 => format!("torch.add({a}, {b}, alpha=2)"),
                    16 => format!("{ts}[0]"),
                    17 => format!("torch.cat([{a}[0:1], {b}[1:2]])"),
                    18 => format!("torch.zeros_like({a})"),
                    19 => format!("{a}.flip([0])"),
                    20 => format!("{a}.unsqueeze(0).squeeze(0)"),
                    21 => format!("({a} / {b})"),
                    22 => format!("({a} + {n})"),
                    _ => format!("torch.stack([{a}[0], {b}[1]])"),
                }
            }
        }
    }
}
