//! What rich programs have beyond the others: dictionaries, lists of floats, loops over numbers, early returns, exceptions,
//! extremes of numbers, writes through views.

use super::{Kind, MOST_DEPTH, Writer};

/// Types of the further results.
pub const RESULT_TYPES: &str = ", float, List[float], Dict[str, int]";
/// The further results.
pub const RESULTS: &str = ", r, fs, d";

const INTS: [&str; 10] =
    ["0", "1", "-1", "2", "3", "63", "-7", "4294967296", "9223372036854775807", "(-9223372036854775807 - 1)"];
const FLOATS: [&str; 12] = [
    "0.0",
    "-0.0",
    "1.0",
    "0.5",
    "-2.5",
    "1e-320",
    "1e308",
    "3.0000000000000004",
    "9007199254740993.0",
    "float('inf')",
    "-float('inf')",
    "float('nan')",
];

impl Writer<'_> {
    /// Variables that rich programs begin with.
    pub(super) fn rich_names(&mut self) {
        self.line(1, "fs = [0.5, -1.0, 2.0]");
        self.line(1, "d: Dict[str, int] = {'a': 1, 'b': n}");
        self.names.push((Kind::Floats, "fs".to_string()));
        self.names.push((Kind::Dict, "d".to_string()));
    }

    pub(super) fn rich_statement(&mut self, depth: usize, in_loop: bool) {
        match self.below(12) {
            0 => {
                let condition = self.expr(Kind::Bool, 1);
                let results = self.results();
                self.line(depth, &format!("if {condition}:"));
                self.line(depth + 1, &format!("return {results}"));
            }
            1 => self.raise(depth),
            2 | 3 => self.dict_statement(depth),
            4 => self.list_statement(depth),
            5 => self.view_statement(depth),
            6 | 7 if depth < MOST_DEPTH => self.number_loop(depth, 0),
            8 if depth < MOST_DEPTH => self.loop_over(depth),
            9 if depth < MOST_DEPTH => self.endless(depth),
            10 => self.more_statements(depth),
            _ => self.numbers(depth, in_loop),
        }
    }

    fn raise(&mut self, depth: usize) {
        let condition = self.expr(Kind::Bool, 1);
        let (value, kind) = (self.expr(Kind::Int, 1), self.pick(&["ValueError", "RuntimeError", "KeyError"]));
        if self.below(3) == 0 {
            return self.line(depth, &format!("assert {condition}, 'own {{}}'.format({value})"));
        }
        // Most conditions hold, and what is raised ends the program.
        let rare = self.pick(&["n == 3", "len(l) > 4", "r > 1.0", "len(s) < 2"]);
        self.line(depth, &format!("if {condition} and {rare}:"));
        self.line(depth + 1, &format!("raise {kind}('own {{}}'.format({value}))"));
    }

    fn key(&mut self) -> String {
        match self.below(4) {
            0 => self.expr(Kind::Str, 1),
            1 => "'b'".to_string(),
            2 => "'c'".to_string(),
            _ => "'a'".to_string(),
        }
    }

    fn dict_statement(&mut self, depth: usize) {
        let (dict, key, value) = (self.name(Kind::Dict), self.key(), self.expr(Kind::Int, 1));
        let text = match self.below(9) {
            0 | 1 => format!("{dict}[{key}] = {value}"),
            2 => {
                self.line(depth, &format!("if {key} in {dict}:"));
                return self.line(depth + 1, &format!("del {dict}[{key}]"));
            }
            3 => format!("{dict}.update({{{key}: {value}}})"),
            4 => {
                let name = self.name(Kind::Int);
                format!("{name} = {dict}.setdefault({key}, {value})")
            }
            5 => {
                let name = self.name(Kind::Int);
                format!("{name} = {dict}.pop({key})")
            }
            6 => {
                let other = self.expr(Kind::Dict, 1);
                format!("{dict} = {other}")
            }
            7 => format!("print({dict}, list({dict}.items()))"),
            _ => {
                self.line(depth, &format!("{dict}[{key}] = {value}"));
                format!("{dict}[{key}] += 1")
            }
        };
        self.line(depth, &text);
    }

    fn list_statement(&mut self, depth: usize) {
        let (list, at, value) = (self.name(Kind::Ints), self.place(), self.expr(Kind::Int, 1));
        let floats = self.name(Kind::Floats);
        let text = match self.below(12) {
            0 => format!("{list}[{at}] = {value}"),
            1 => format!("del {list}[{at}]"),
            2 => format!("{list}.insert({at}, {value})"),
            3 => format!("{list}.sort()"),
            4 => format!("{list}.remove({value})"),
            5 => {
                let name = self.name(Kind::Int);
                format!("{name} = {list}.pop({at})")
            }
            6 => format!("{list}[{at}] += {value}"),
            7 => format!("{list}.clear()"),
            8 => format!("{list}.extend({list}[{at}:])"),
            9 => {
                let float = self.expr(Kind::Float, 1);
                format!("{floats}.append({float})")
            }
            10 => {
                let float = self.expr(Kind::Float, 1);
                format!("{floats}[{at}] = {float}")
            }
            _ => format!("print({list}, {floats})"),
        };
        self.line(depth, &text);
    }

    /// A place in a list, mostly one that is there.
    fn place(&mut self) -> String {
        match self.below(5) {
            0 => self.expr(Kind::Int, 1),
            1 => "-1".to_string(),
            2 => "1".to_string(),
            _ => "0".to_string(),
        }
    }

    /// Writes to parts of tensors.
    fn view_statement(&mut self, depth: usize) {
        let (a, b, r) = (self.name(Kind::Tensor), self.expr(Kind::Tensor, 1), self.expr(Kind::Float, 1));
        let name = format!("w{}", self.next);
        self.next += 1;
        let view = match self.below(8) {
            0 => format!("{a}[0]"),
            1 => format!("{a}[:, 1]"),
            2 => format!("{a}.t()"),
            3 => format!("{a}.narrow(1, 0, 2)"),
            4 => format!("{a}.view([-1])"),
            5 => format!("{a}.unsqueeze(0)"),
            6 => format!("torch.chunk({a}, 2)[1]"),
            _ => format!("{a}[0:1]"),
        };
        self.line(depth, &format!("{name} = {view}"));
        let write = match self.below(9) {
            0 => format!("{name}.add_({r})"),
            1 => format!("{name}.mul_({name})"),
            2 => format!("{name}.copy_({name} * 2)"),
            3 => format!("{name} *= {r}"),
            4 => format!("{name}.fill_({r})"),
            5 => format!("{name}[0] = {r}"),
            6 => format!("{b}[0] = {name}.sum()"),
            7 => format!("{name}.masked_fill_({name} > 0, {r})"),
            _ => format!("{name}.clamp_(min={r})"),
        };
        self.line(depth, &write);
        let read = match self.below(4) {
            0 => format!("r = float({a}[0][0])"),
            1 => format!("m = int({a}.numel())"),
            2 => format!("c = bool(({a} > {r}).any())"),
            _ => format!("z = {a} + 1"),
        };
        self.line(depth, &read);
    }

    fn loop_over(&mut self, depth: usize) {
        let name = format!("e{}", self.next);
        self.next += 1;
        let (header, kind) = match self.below(5) {
            0 => {
                let list = self.expr(Kind::Ints, 1);
                (format!("for {name} in {list}[0:6]:"), Kind::Int)
            }
            1 => {
                let dict = self.name(Kind::Dict);
                (format!("for {name} in list({dict}.keys()):"), Kind::Str)
            }
            2 => {
                let list = self.name(Kind::Floats);
                (format!("for {name} in {list}[0:5]:"), Kind::Float)
            }
            3 => {
                let list = self.name(Kind::Tensors);
                (format!("for {name} in {list}[0:4]:"), Kind::Tensor)
            }
            _ => {
                let step = self.pick(&["1", "2", "-1", "n", "3"]);
                (format!("for {name} in range(n, 2 * n, {step}):"), Kind::Int)
            }
        };
        self.line(depth, &header);
        self.names.push((kind, name));
        self.block(depth + 1, true);
        self.names.pop();
    }

    /// A loop that only its body leaves.
    fn endless(&mut self, depth: usize) {
        let name = format!("k{}", self.next);
        self.next += 1;
        self.line(depth, &format!("{name} = 0"));
        self.line(depth, "while True:");
        self.line(depth + 1, &format!("{name} += 1"));
        let most = self.below(5);
        self.line(depth + 1, &format!("if {name} > {most}:"));
        if self.below(4) == 0 {
            let results = self.results();
            self.line(depth + 2, &format!("return {results}"));
        } else {
            self.line(depth + 2, "break");
        }
        self.block(depth + 1, true);
    }

    /// A loop that becomes a kernel.
    fn number_loop(&mut self, depth: usize, within: usize) {
        let name = format!("i{}", self.next);
        self.next += 1;
        let count = self.pick(&["n", "70", "5", "200", "len(l)", "2 * n + 1", "m % 90"]);
        match self.below(4) {
            0 => {
                let condition = self.truth(1);
                self.line(depth, &format!("{name} = 0"));
                self.line(depth, &format!("while {name} < {count} and {condition}:"));
                self.line(depth + 1, &format!("{name} += 1"));
            }
            1 => self.line(depth, &format!("for {name} in range({count}, -3, -2):")),
            _ => self.line(depth, &format!("for {name} in range({count}):")),
        }
        self.names.push((Kind::Int, name));
        for _ in 0..=self.below(3) {
            if within < 1 && depth + 1 < MOST_DEPTH && self.below(4) == 0 {
                self.number_loop(depth + 1, within + 1);
            } else {
                self.numbers(depth + 1, true);
            }
        }
        self.names.pop();
        self.line(depth + 1, "pass");
    }

    /// A statement of numbers and lists of them.
    fn numbers(&mut self, depth: usize, in_loop: bool) {
        let (int, float) = (self.name(Kind::Int), self.name(Kind::Float));
        let text = match self.below(13) {
            0 | 1 => {
                let value = self.number(2);
                format!("m = {value}")
            }
            2 => {
                let value = self.number(1);
                format!("m = ({int} + {value}) % 1000")
            }
            3 | 4 => {
                let value = self.real(2);
                format!("r = {value}")
            }
            5 => {
                let (at, value) = (self.number(1), self.number(1));
                format!("l[abs({at}) % max(len(l), 1)] = {value}")
            }
            6 => {
                let (at, value) = (self.number(0), self.real(1));
                format!("fs[{at} % 3] = {value}")
            }
            7 => {
                let condition = self.truth(1);
                format!("c = {condition}")
            }
            8 => {
                self.line(depth, "if len(l) < 40:");
                let value = self.number(1);
                return self.line(depth + 1, &format!("l.append({value})"));
            }
            9 if in_loop => {
                let condition = self.truth(1);
                let leave = self.pick(&["break", "continue"]);
                self.line(depth, &format!("if {condition}:"));
                return self.line(depth + 1, leave);
            }
            10 if depth < MOST_DEPTH => {
                let condition = self.truth(1);
                self.line(depth, &format!("if {condition}:"));
                self.numbers(depth + 1, in_loop);
                if self.below(2) == 0 {
                    self.line(depth, "else:");
                    self.numbers(depth + 1, in_loop);
                }
                return;
            }
            11 => {
                let condition = self.truth(1);
                self.line(depth, &format!("if {condition} and {float} > 1e300:"));
                return self.line(depth + 1, &format!("raise ValueError('own {{}}'.format({int}))"));
            }
            _ => {
                let value = self.real(1);
                format!("r = r * 0.5 + {value}")
            }
        };
        self.line(depth, &text);
    }

    fn truth(&mut self, depth: usize) -> String {
        let how = self.pick(&["<", "<=", ">", ">=", "==", "!="]);
        match self.below(4) {
            0 => format!("{} {how} {}", self.real(depth), self.real(depth)),
            1 => format!("not c and {} {how} {}", self.number(depth), self.number(depth)),
            2 => format!("(c or {} {how} {})", self.number(depth), self.real(depth)),
            _ => format!("{} {how} {}", self.number(depth), self.number(depth)),
        }
    }

    /// An int of numbers alone.
    fn number(&mut self, depth: usize) -> String {
        if depth == 0 || self.below(4) == 0 {
            return match self.below(4) {
                0 => INTS[self.below(INTS.len())].to_string(),
                1 => "len(l)".to_string(),
                _ => self.name(Kind::Int),
            };
        }
        let (a, b) = (self.number(depth - 1), self.number(depth - 1));
        match self.below(18) {
            0 | 1 => format!("({a} + {b})"),
            2 => format!("({a} - {b})"),
            3 => format!("({a} * {b})"),
            4 => format!("({a} // {b})"),
            5 => format!("({a} % {b})"),
            6 => format!("({a} & {b})"),
            7 => format!("({a} | {b})"),
            8 => format!("({a} ^ {b})"),
            9 => format!("({a} << {b})"),
            10 => format!("({a} >> {b})"),
            11 => format!("min({a}, {b})"),
            12 => format!("max({a}, {b})"),
            13 => format!("abs({a})"),
            14 => format!("int({})", self.real(depth - 1)),
            15 => format!("({a} // {})", self.pick(&["3", "-5", "7"])),
            16 => format!("({a} % {})", self.pick(&["3", "-5", "7"])),
            _ => format!("l[{a} % 3]"),
        }
    }

    /// A float of numbers alone.
    fn real(&mut self, depth: usize) -> String {
        if depth == 0 || self.below(4) == 0 {
            return match self.below(4) {
                0 => FLOATS[self.below(FLOATS.len())].to_string(),
                1 => format!("float({})", self.name(Kind::Int)),
                _ => self.name(Kind::Float),
            };
        }
        let (a, b) = (self.real(depth - 1), self.real(depth - 1));
        match self.below(16) {
            0 | 1 => format!("({a} + {b})"),
            2 => format!("({a} - {b})"),
            3 => format!("({a} * {b})"),
            4 => format!("({a} / {b})"),
            5 => format!("({a} % {b})"),
            6 => format!("({a} // {b})"),
            7 => format!("min({a}, {b})"),
            8 => format!("max({a}, {b})"),
            9 => format!("abs({a})"),
            10 => format!("float({})", self.number(depth - 1)),
            11 => format!("(-{a})"),
            12 => format!("({} / {})", self.number(depth - 1), self.number(depth - 1)),
            13 => format!("({} * {a})", self.number(depth - 1)),
            14 => format!("fs[{} % 3]", self.number(depth - 1)),
            _ => format!("({a} if {} else {b})", self.truth(0)),
        }
    }

    fn more_statements(&mut self, depth: usize) {
        let (a, b) = (self.name(Kind::Int), self.name(Kind::Tensor));
        let (value, text) = (self.expr(Kind::Tensor, 1), self.expr(Kind::Str, 1));
        let line = match self.below(8) {
            0 => format!("{a}, m = m, {a}"),
            1 => format!("z, {b} = {b}, z"),
            2 => format!("torch.add({value}, {value}, out={b})"),
            3 => format!("s = '-'.join([{text}, s[0:3]])"),
            4 => format!("print({text}, r, {a})"),
            5 => format!("s = s.replace('a', {text})[0:20]"),
            6 => format!("ts = [{value}, {b}]"),
            _ => format!("{b} = {value}.clone()"),
        };
        self.line(depth, &line);
    }

    pub(super) fn rich_expr(&mut self, kind: Kind, depth: usize) -> String {
        match kind {
            Kind::Int => match self.below(4) {
                0 => format!("len({})", self.name(Kind::Dict)),
                1 => {
                    let (dict, key) = (self.name(Kind::Dict), self.key());
                    format!("{dict}.get({key}, {})", self.number(0))
                }
                2 => {
                    let (dict, key) = (self.name(Kind::Dict), self.key());
                    format!("{dict}[{key}]")
                }
                _ => self.number(depth),
            },
            Kind::Float => match self.below(4) {
                0 => format!("float({}.sum())", self.name(Kind::Tensor)),
                1 => format!("{}[{}]", self.name(Kind::Floats), self.place()),
                _ => self.real(depth),
            },
            Kind::Bool => match self.below(4) {
                0 => format!("({} in {})", self.key(), self.name(Kind::Dict)),
                1 => format!("bool(({} > 0).all())", self.name(Kind::Tensor)),
                _ => format!("({})", self.truth(depth)),
            },
            Kind::Str => match self.below(4) {
                0 => format!("str({})", self.name(Kind::Float)),
                1 => format!("'{{}},{{}}'.format({}, {})", self.name(Kind::Int), self.name(Kind::Bool)),
                2 => format!("{}[{}:]", self.name(Kind::Str), self.place()),
                _ => "'a'".to_string(),
            },
            Kind::Ints => match self.below(4) {
                0 => format!("list({}.values())", self.name(Kind::Dict)),
                1 => format!("{}[::{}]", self.name(Kind::Ints), self.pick(&["2", "3", "1"])),
                2 => format!("[j * 2 for j in {}]", self.name(Kind::Ints)),
                _ => format!("[{}, {}, {}]", self.number(1), self.number(1), self.number(0)),
            },
            Kind::Floats => format!("[{}, {}, {}]", self.real(1), self.real(1), self.real(0)),
            Kind::Dict => match self.below(3) {
                0 => format!("{}.copy()", self.name(Kind::Dict)),
                1 => self.name(Kind::Dict),
                _ => format!("{{{}: {}, 'b': 2}}", self.key(), self.number(1)),
            },
            Kind::Tensors => format!("{}[0:2]", self.name(Kind::Tensors)),
            Kind::Tensor => self.rich_tensor(depth),
        }
    }

    fn rich_tensor(&mut self, depth: usize) -> String {
        let (a, b) = (self.expr(Kind::Tensor, depth - 1), self.expr(Kind::Tensor, depth - 1));
        match self.below(16) {
            0 => format!("torch.maximum({a}, {b})"),
            1 => format!("{a}.sum(dim=1, keepdim=True).expand_as({a})"),
            2 => format!("({a} > {b}).to({a}.dtype)"),
            3 => format!("torch.floor({a} * {})", self.real(0)),
            4 => format!("torch.fmod({a}, {b})"),
            5 => format!("({a} % {})", self.real(0)),
            6 => format!("torch.sign({a})"),
            7 => format!("{a}.masked_fill({b} > 0, {})", self.real(0)),
            8 => format!("({a} * {})", self.number(0)),
            9 => format!("{a}.to(torch.int64).to(torch.float32)"),
            10 => format!("({a} // {b})"),
            11 => format!("torch.cumsum({a}, 1)"),
            12 => format!("({} - {a})", self.real(1)),
            13 => format!("{a}.double().float()"),
            14 => format!("{a}.half().float()"),
            _ => format!("torch.clamp({a}, min={})", self.real(0)),
        }
    }
}
