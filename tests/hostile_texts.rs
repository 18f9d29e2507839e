//! Texts that mean harm, run each in a process of its own under limits of steps, memory and time: TorchScript programs,
//! graphs, rules, dialects, check files, case files. A process must end by itself, with status 0 or 1 or 2, and small.

use std::fmt::Write as _;

/// One text and what is done with it.
#[derive(Clone)]
pub struct Text {
    /// The name of the test.
    pub name: String,
    /// The command; `FILE` stands for the file with the text.
    pub words: Vec<String>,
    /// What the message contains where the command must fail; empty where it may end either way.
    pub says: String,
    /// The text.
    pub text: String,
}

/// Limits that every command here is given.
const LIMITS: [&str; 6] = ["--max-memory", "400M", "--max-steps", "2000000", "--timeout", "20"];

/// Commands that take limits.
const LIMITED: [&str; 6] = ["run", "opt", "check", "rules", "dialect", "translate"];

/// All of them: those of the two tables, and those that are too long to be written down.
pub fn all() -> Vec<Text> {
    let mut all = sections(include_str!("hostile/programs.txt"), |head| {
        let (name, says) = head.split_once(':').expect("a colon behind the name");
        (name.to_string(), "run FILE --entry f".to_string(), says.trim().to_string())
    });
    all.extend(sections(include_str!("hostile/texts.txt"), |head| {
        let (name, rest) = head.split_once(':').expect("a colon behind the name");
        let (words, says) = rest.split_once("=>").expect("an arrow behind the command");
        (name.to_string(), words.trim().to_string(), says.trim().to_string())
    }));
    all.extend(long());
    all
}

fn sections(table: &str, read: impl Fn(&str) -> (String, String, String)) -> Vec<Text> {
    let mut all: Vec<Text> = Vec::new();
    for line in table.lines() {
        if let Some(head) = line.strip_prefix("==== ") {
            let (name, words, says) = read(head);
            all.push(text(&name, &words, &says, String::new()));
        } else if let Some(last) = all.last_mut() {
            last.text += line;
            last.text.push('\n');
        }
    }
    all
}

fn text(name: &str, words: &str, says: &str, text: String) -> Text {
    let mut words: Vec<String> = words.split_whitespace().map(String::from).collect();
    if LIMITED.contains(&words[0].as_str()) {
        // The checks of rules and dialects are commands below a command, which takes the limits.
        let at = if matches!(words[1].as_str(), "check") { 1 } else { words.len() };
        words.splice(at..at, LIMITS.map(String::from));
    }
    Text { name: name.to_string(), words, says: says.to_string(), text }
}

/// `n` lines that a function gives.
fn lines(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).fold(String::new(), |mut out, i| {
        writeln!(out, "{}", line(i)).expect("text grows");
        out
    })
}

fn program(body: &str) -> String {
    format!("def f(x: int = 1) -> int:\n{body}    return x\n")
}

/// Texts that grow with a number: each would take a reader or a pass with quadratic or exponential steps too long.
fn long() -> Vec<Text> {
    const RUN: &str = "run FILE --entry f";
    const OPT: &str = "opt FILE --passes default";
    let chain = |n: usize, op: &str| {
        let ops = lines(n, |i| format!("  %{} : Tensor = {op}(%{i})", i + 1));
        format!("graph(%0 : Tensor):\n{ops}  return (%{n})\n")
    };
    let doubling = lines(40, |i| format!("def g{}(x: int) -> int:\n    return g{i}(x) + g{i}(x)", i + 1));
    let nested = (0..200).fold(String::new(), |mut out, i| {
        writeln!(out, "{}if x == {i}:", "    ".repeat(i + 1)).expect("text grows");
        out
    });
    vec![
        text("long_names", RUN, "", program(&lines(20, |i| format!("    {}{i} = x", "a".repeat(100_000))))),
        text("long_line", RUN, "", program(&format!("    y = x{}\n", " + x".repeat(20_000)))),
        text("many_variables", RUN, "", program(&lines(5_000, |i| format!("    y{i} = x + {i}")))),
        text(
            "many_functions",
            RUN,
            "",
            lines(3_000, |i| format!("def g{i}(x: int) -> int:\n    return x")) + &program(""),
        ),
        text(
            "doubling_calls",
            RUN,
            "",
            format!(
                "def g0(x: int) -> int:\n    return x\n{doubling}def f(x: int = 1) -> int:\n    return g40(x)\n"
            ),
        ),
        text("deep_ifs", RUN, "", program(&format!("{nested}{}pass\n", "    ".repeat(201)))),
        text(
            "deep_lists",
            RUN,
            "",
            program(&format!("    y = {}{}\n", "[".repeat(50_000), "]".repeat(50_000))),
        ),
        text(
            "deep_calls",
            RUN,
            "",
            program(&format!("    y = {}x{}\n", "int(".repeat(50_000), ")".repeat(50_000))),
        ),
        text("deep_attributes", RUN, "", program(&format!("    y = x{}\n", ".a".repeat(50_000)))),
        text(
            "deep_types",
            RUN,
            "",
            format!("def f(x: {}int{}) -> int:\n    return 1\n", "List[".repeat(50_000), "]".repeat(50_000)),
        ),
        text(
            "deep_optionals",
            RUN,
            "",
            format!("def f(x: {}int{}) -> int:\n    return 1\n", "Optional[".repeat(500), "]".repeat(500)),
        ),
        text("deep_nots", RUN, "", program(&format!("    y = {}True\n", "not ".repeat(50_000)))),
        text("deep_minus", RUN, "", program(&format!("    y = {}1\n", "-".repeat(50_000)))),
        text("deep_lambdas", RUN, "", program(&format!("    y = {}x\n", "lambda x: ".repeat(50_000)))),
        text("many_comparisons", RUN, "", program(&format!("    y = x{}\n", " < x".repeat(5_000)))),
        text("long_text", RUN, "", program(&format!("    y = '{}'\n", "a".repeat(3_000_000)))),
        text("long_number", RUN, "", program(&format!("    y = {}\n", "9".repeat(1_000_000)))),
        text("long_format", RUN, "", program(&format!("    y = f'{}'\n", "{x}".repeat(5_000)))),
        text(
            "unrolled_nest",
            RUN,
            "",
            program(
                "    for a in (1, 2, 3, 4, 5, 6, 7, 8):\n        for b in (1, 2, 3, 4, 5, 6, 7, 8):\n            for c in (1, 2, 3, 4, 5, 6, 7, 8):\n                for d in (1, 2, 3, 4, 5, 6, 7, 8):\n                    for e in (1, 2, 3, 4, 5, 6, 7, 8):\n                        for g in (1, 2, 3, 4, 5, 6, 7, 8):\n                            for h in (1, 2, 3, 4, 5, 6, 7, 8):\n                                x += 1\n",
            ),
        ),
        text("chain_of_ops", OPT, "", chain(5_000, "aten::relu")),
        text("chain_of_neg", OPT, "", chain(5_000, "aten::neg")),
        text("wide_graph", OPT, "", {
            let ops = lines(3_000, |i| format!("  %y{i} : Tensor = aten::relu(%x)"));
            let names: Vec<String> = (0..3_000).map(|i| format!("%y{i}")).collect();
            format!(
                "graph(%x : Tensor):\n{ops}  %l : Tensor[] = prim::ListConstruct({})\n  return (%l)\n",
                names.join(", ")
            )
        }),
        text("deep_blocks", OPT, "", {
            let open = lines(5_000, |i| format!("  %{i} : int = prim::If(%c)\n    block0():"));
            format!("graph(%c : bool):\n{open}")
        }),
        text("nested_branches", OPT, "", within(2_000, "prim::If(%c)", "")),
        text("nested_loops", OPT, "", within(300, "prim::Loop(%n, %c, %x)", "%i : int, ")),
        text(
            "nested_loops_peeled",
            "opt FILE --passes peel-loops",
            "",
            within(300, "prim::Loop(%n, %c, %x)", "%i : int, "),
        ),
        text(
            "nested_loops_backward",
            "translate FILE --to backward",
            "",
            within(60, "prim::Loop(%n, %c, %x)", "%i : int, "),
        ),
        text("many_parameters", OPT, "", {
            let names: Vec<String> = (0..20_000).map(|i| format!("%p{i} : Tensor")).collect();
            format!("graph({}):\n  return (%p0)\n", names.join(", "))
        }),
        text(
            "long_attribute",
            OPT,
            "",
            format!(
                "graph():\n  %s : str = prim::Constant[value=\"{}\"]()\n  return (%s)\n",
                "a".repeat(3_000_000)
            ),
        ),
        text(
            "deep_type_text",
            OPT,
            "",
            format!("graph(%x : {}int{}):\n  return (%x)\n", "Dict(str, ".repeat(20_000), ")".repeat(20_000)),
        ),
        text(
            "same_rule_often",
            "rules check FILE",
            "",
            lines(200, |i| format!("rule r{i} exact aten::neg(aten::neg(?x: Tensor)) => ?x if is_float(?x)")),
        ),
        text(
            "deep_rule",
            "rules check FILE",
            "",
            format!("rule r exact {}?x: Tensor{} => ?x\n", "aten::neg(".repeat(5_000), ")".repeat(5_000)),
        ),
        text("long_check", "filecheck FILE", "", format!("CHECK: {}\n", "a".repeat(3_000_000))),
        text("many_checks", "filecheck FILE", "", lines(20_000, |i| format!("CHECK-DAG: {i}"))),
        text("long_alternatives", "filecheck FILE", "", format!("CHECK: {{{{{}a}}}}\n", "a|".repeat(50_000))),
        text("deep_json", "check FILE", "", format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))),
    ]
}

/// Ops within ops, each with one more dimension than the one around it.
fn within(depth: usize, op: &str, counter: &str) -> String {
    let is_loop = !counter.is_empty();
    let (condition, param) = if is_loop { ("%c, ", "%x : Tensor") } else { ("", "") };
    let mut text = String::from("graph(%c : bool, %n : int, %x : Float(2, 3)):\n");
    for i in 0..depth {
        let inner = format!("  %a{i} : Tensor = aten::unsqueeze(%x, %n)\n");
        let _ = write!(text, "  %{i} : Tensor = {op}\n    block0({counter}{param}):\n{inner}");
    }
    for i in (0..depth).rev() {
        let inner = if i + 1 == depth { format!("%a{i}") } else { format!("%{}", i + 1) };
        let other = if is_loop { "" } else { "    block1():\n      -> (%x)\n" };
        let _ = write!(text, "      -> ({condition}{inner})\n{other}");
    }
    text + "  return (%0)\n"
}
