//! A session with the language server as an editor has it: the program is started, messages go over its standard
//! streams, answers are compared.

use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

/// All sessions.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("lsp::graph_text", graph_text),
        Trial::test("lsp::what_is_wrong_is_reported", what_is_wrong_is_reported),
        Trial::test("lsp::check_files_and_rules", check_files_and_rules),
        Trial::test("lsp::semantic_tokens", semantic_tokens),
        Trial::test("lsp::words_of_dialects_rules_and_checks", words_of_dialects_rules_and_checks),
        Trial::test("lsp::columns_and_hostile_messages", columns_and_hostile_messages),
        Trial::test("lsp::dialects_of_the_project_are_known", dialects_of_the_project_are_known),
    ]
}

struct Client {
    child: Child,
    out: BufReader<ChildStdout>,
    number: i64,
    folder: PathBuf,
    /// Diagnostics that came by themselves: address and list.
    published: Vec<(String, Value)>,
}

impl Client {
    /// Starts the server on a folder with files.
    fn start(name: &str, files: &[(&str, &str)], capabilities: Value) -> Result<Client, Failed> {
        let folder = crate::scratch::folder(&format!("lsp-{name}"));
        fs::create_dir_all(&folder)?;
        for (file, text) in files {
            fs::write(folder.join(file), text)?;
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_flambeau"))
            .args(["lsp", "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut client = Client { child, out, number: 0, folder, published: Vec::new() };
        let root = client.uri("");
        let folders = json!([{ "uri": root, "name": "project" }]);
        let params = json!({ "processId": null, "workspaceFolders": folders, "capabilities": capabilities });
        let answer = client.ask("initialize", params)?;
        if answer["capabilities"]["hoverProvider"] != json!(true) {
            return Err(format!("no hover: {answer}").into());
        }
        client.notify("initialized", json!({}))?;
        Ok(client)
    }

    fn uri(&self, file: &str) -> String {
        format!("file://{}", self.folder.join(file).display())
    }

    fn send(&mut self, message: &Value) -> Result<(), Failed> {
        let text = message.to_string();
        let stdin = self.child.stdin.as_mut().ok_or("no input")?;
        write!(stdin, "Content-Length: {}\r\n\r\n{text}", text.len())?;
        stdin.flush()?;
        Ok(())
    }

    fn receive(&mut self) -> Result<Value, Failed> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.out.read_line(&mut line)? == 0 {
                return Err("the server ended".into());
            }
            match line.trim() {
                "" => break,
                line => {
                    if let Some(value) = line.strip_prefix("Content-Length: ") {
                        length = value.parse()?;
                    }
                }
            }
        }
        let mut text = vec![0; length];
        self.out.read_exact(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }

    fn notify(&mut self, method: &str, params: Value) -> Result<(), Failed> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    /// Asks and waits; the error of an answer comes back as `{"error": ...}`.
    fn ask(&mut self, method: &str, params: Value) -> Result<Value, Failed> {
        self.number += 1;
        let id = self.number;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let message = self.receive()?;
            if message["id"] == json!(id) {
                return Ok(match message.get("error") {
                    Some(error) => json!({ "error": error }),
                    None => message["result"].clone(),
                });
            }
            self.note(message);
        }
    }

    fn note(&mut self, message: Value) {
        if message["method"] == "textDocument/publishDiagnostics" {
            let uri = message["params"]["uri"].as_str().unwrap_or_default().to_string();
            self.published.push((uri, message["params"]["diagnostics"].clone()));
        }
    }

    /// Opens a file and gives what is wrong with it.
    fn open(&mut self, file: &str, text: &str) -> Result<Value, Failed> {
        let uri = self.uri(file);
        let document = json!({ "uri": uri, "languageId": "", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }))?;
        self.wrong(&uri)
    }

    /// Waits for the next diagnostics of a file.
    fn wrong(&mut self, uri: &str) -> Result<Value, Failed> {
        loop {
            if let Some(at) = self.published.iter().position(|(known, _)| known == uri) {
                return Ok(self.published.remove(at).1);
            }
            let message = self.receive()?;
            self.note(message);
        }
    }

    fn at(&mut self, method: &str, file: &str, line: u32, character: u32) -> Result<Value, Failed> {
        let uri = self.uri(file);
        let position = json!({ "line": line, "character": character });
        let mut params = json!({ "textDocument": { "uri": uri }, "position": position });
        match method {
            "textDocument/references" => params["context"] = json!({ "includeDeclaration": true }),
            "textDocument/formatting" => params["options"] = json!({ "tabSize": 2, "insertSpaces": true }),
            _ => {}
        }
        self.ask(method, params)
    }

    fn labels(&mut self, file: &str, line: u32, character: u32) -> Result<Vec<String>, Failed> {
        let list = self.at("textDocument/completion", file, line, character)?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        Ok(items.iter().filter_map(|item| item["label"].as_str().map(String::from)).collect())
    }

    /// `line:column+length kind modifiers` of each token.
    fn tokens(&mut self, file: &str) -> Result<Vec<String>, Failed> {
        let answer = self.at("textDocument/semanticTokens/full", file, 0, 0)?;
        let data: Vec<u64> = serde_json::from_value(answer["data"].clone())?;
        let kinds = [
            "comment",
            "keyword",
            "string",
            "number",
            "variable",
            "parameter",
            "function",
            "type",
            "property",
            "macro",
            "class",
        ];
        let (mut line, mut column, mut found) = (0, 0, Vec::new());
        for token in data.chunks(5) {
            let [down, right, length, kind, modifiers] = token else { return Err("a token in parts".into()) };
            column = if *down == 0 { column + right } else { *right };
            line += down;
            let modifiers = ["", " declaration", " unknown"].get(*modifiers as usize).ok_or("modifiers")?;
            let kind = kinds.get(*kind as usize).ok_or("kind")?;
            found.push(format!("{line}:{column}+{length} {kind}{modifiers}"));
        }
        Ok(found)
    }

    fn stop(mut self) -> Result<(), Failed> {
        let answer = self.ask("shutdown", Value::Null)?;
        same("shutdown", &answer, &Value::Null)?;
        self.notify("exit", Value::Null)?;
        let status = self.child.wait()?;
        fs::remove_dir_all(&self.folder)?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // After a failure the server must not stay after.
        let _ = self.child.kill();
    }
}

fn same(what: &str, got: &Value, wanted: &Value) -> Result<(), Failed> {
    if got == wanted { Ok(()) } else { Err(format!("{what}: {got} is not {wanted}").into()) }
}

fn holds(what: &str, got: &Value, parts: &[&str]) -> Result<(), Failed> {
    let text = got.to_string();
    match parts.iter().find(|part| !text.contains(**part)) {
        Some(part) => Err(format!("{what} lacks {part:?}: {text}").into()),
        None => Ok(()),
    }
}

fn range(line: u32, from: u32, to: u32) -> Value {
    json!({ "start": { "line": line, "character": from }, "end": { "line": line, "character": to } })
}

const GRAPH: &str = "\
graph @f(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu),
         %flag : bool):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = prim::If(%flag)
    block0():
      %a = aten::add(%x, %x, %1)
      -> (%a)
    block1():
      -> (%x)
  %z : Tensor = aten::relu(%y)
  return (%z)

graph @g(%x : Tensor):
  %r : Tensor = prim::CallFunction[name=\"f\"](%x)
  return (%r)
";

fn graph_text() -> Result<(), Failed> {
    let mut client = Client::start("graph", &[], json!({}))?;
    let file = "a.ir";
    let wrong = client.open(file, GRAPH)?;
    same("problems", &wrong, &json!([]))?;
    // Hover: a value with its type, as written or as the schema gives it; an op with its row.
    let hover = client.at("textDocument/hover", file, 5, 21)?;
    holds(
        "hover on a use",
        &hover,
        &["%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)", "3 uses"],
    )?;
    same("its range", &hover["range"], &range(5, 21, 23))?;
    let hover = client.at("textDocument/hover", file, 6, 11)?;
    holds("hover on a value without a type", &hover, &["%a : Tensor", "aten::add(%x, %x, %1)"])?;
    let hover = client.at("textDocument/hover", file, 5, 14)?;
    holds(
        "hover on an op",
        &hover,
        &[
            "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
            "elementwise",
            "other overloads",
            "derivative",
        ],
    )?;
    same("hover on nothing", &client.at("textDocument/hover", file, 11, 0)?, &Value::Null)?;
    // Definition and uses. The two graphs have a %x each.
    let definition = client.at("textDocument/definition", file, 5, 21)?;
    same("definition", &definition["range"], &range(0, 9, 11))?;
    let uses = client.at("textDocument/references", file, 0, 10)?;
    let lines: Vec<&Value> =
        uses.as_array().map(|l| l.iter().map(|u| &u["range"]["start"]["line"]).collect()).unwrap_or_default();
    same("uses", &json!(lines), &json!([0, 5, 5, 8]))?;
    let function = client.at("textDocument/definition", file, 13, 41)?;
    same("definition of a function", &function["range"], &range(0, 6, 8))?;
    let marks = client.at("textDocument/documentHighlight", file, 9, 27)?;
    same("highlights", &json!(marks.as_array().map(Vec::len)), &json!(2))?;
    // Outline.
    let symbols = client.at("textDocument/documentSymbol", file, 0, 0)?;
    same("first graph", &symbols[0]["name"], &json!("f"))?;
    same("its values", &symbols[0]["children"][2]["name"], &json!("%a"))?;
    same("second graph", &symbols[1]["name"], &json!("g"))?;
    // Rename.
    let uri = client.uri(file);
    let params = |name: &str| json!({ "textDocument": { "uri": uri }, "position": { "line": 3, "character": 3 }, "newName": name });
    let edit = client.ask("textDocument/rename", params("%out"))?;
    let edits = &edit["changes"][&uri];
    same("renames", &json!(edits.as_array().map(Vec::len)), &json!(2))?;
    same("new name", &edits[1], &json!({ "range": range(9, 27, 29), "newText": "%out" }))?;
    holds("a taken name", &client.ask("textDocument/rename", params("z"))?, &["%z is given already"])?;
    holds("a bad name", &client.ask("textDocument/rename", params("a b"))?, &["is not a valid value name"])?;
    // Completion while an op is being written.
    let insert = |line: u32, text: &str| json!([{ "range": range(line, 0, 0), "text": text }]);
    let change = |version: i32, changes: Value| json!({ "textDocument": { "uri": uri, "version": version }, "contentChanges": changes });
    client.notify("textDocument/didChange", change(2, insert(9, "  %n : Tensor = aten::sigm\n  %m = aten::mul(%f, %\n  %c : int = prim::Constant[v\n  %t : Ten\n")))?;
    let wrong = client.wrong(&uri)?;
    holds("unfinished text", &wrong, &["\"severity\":1", "\"line\":11", "attributes are written"])?;
    let labels = client.labels(file, 9, 26)?;
    same("ops", &json!(labels.contains(&"aten::sigmoid".to_string())), &json!(true))?;
    same("only those", &json!(labels.iter().all(|l| l.starts_with("aten::sigm"))), &json!(true))?;
    let labels = client.labels(file, 10, 19)?;
    same("values by their beginning", &json!(labels), &json!(["flag"]))?;
    let labels = client.labels(file, 11, 29)?;
    same("attributes", &json!(labels), &json!(["value="]))?;
    let labels = client.labels(file, 12, 10)?;
    same("types", &json!(labels), &json!(["Tensor", "Tensor[]", "Tensor?"]))?;
    // Formatting sets indentation and keeps comments.
    client.notify("textDocument/didChange", change(3, json!([{ "text": "# RUN: x\ngraph(%x : Tensor,\n  %c : bool):\n # note\n %y : Tensor = prim::If(%c)  \n   block0():\n    -> (%x)\n  block1():\n  %b : Tensor = aten::relu(%x)\n -> (%b)\n return (%y)\n" }])))?;
    let edits = client.at("textDocument/formatting", file, 0, 0)?;
    let formatted = apply(
        "# RUN: x\ngraph(%x : Tensor,\n  %c : bool):\n # note\n %y : Tensor = prim::If(%c)  \n   block0():\n    -> (%x)\n  block1():\n  %b : Tensor = aten::relu(%x)\n -> (%b)\n return (%y)\n",
        &edits,
    );
    let wanted = "# RUN: x\ngraph(%x : Tensor,\n      %c : bool):\n  # note\n  %y : Tensor = prim::If(%c)\n    block0():\n      -> (%x)\n    block1():\n      %b : Tensor = aten::relu(%x)\n      -> (%b)\n  return (%y)\n";
    same("formatted", &json!(formatted), &json!(wanted))?;
    client.stop()
}

/// Applies edits that do not overlap, from the last to the first.
fn apply(text: &str, edits: &Value) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(String::from).collect();
    for edit in edits.as_array().into_iter().flatten().rev() {
        let at = |end: &str, part: &str| edit["range"][end][part].as_u64().unwrap_or(0) as usize;
        if let Some(line) = lines.get_mut(at("start", "line")) {
            let new = edit["newText"].as_str().unwrap_or_default();
            line.replace_range(at("start", "character")..at("end", "character"), new);
        }
    }
    lines.concat()
}

fn what_is_wrong_is_reported() -> Result<(), Failed> {
    let mut client = Client::start("wrong", &[], json!({}))?;
    let wrong =
        client.open("syntax.ir", "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x\n  return (%y)\n")?;
    holds("syntax", &wrong, &["\"code\":\"syntax\"", "\"source\":\"flambeau\""])?;
    let wrong = client
        .open("undefined.ir", "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%z)\n  return (%y)\n")?;
    holds("an undefined value", &wrong, &["%z", "\"severity\":1"])?;
    same("its place", &wrong[0]["range"]["start"]["line"], &json!(1))?;
    let wrong =
        client.open("op.ir", "graph(%x : Tensor):\n  %y : Tensor = aten::sigmod(%x)\n  return (%y)\n")?;
    holds("a misspelt op", &wrong, &["aten::sigmod", "aten::sigmoid", "\"severity\":2"])?;
    let wrong = client.open("bad.py", "def f(x: Tensor) -> Tensor:\n    return y\n")?;
    holds("source", &wrong, &["undefined value y", "\"line\":1"])?;
    // What was wrong is taken back when it is well.
    let uri = client.uri("bad.py");
    let change = json!([{ "text": "def f(x: Tensor) -> Tensor:\n    return x\n" }]);
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": change }),
    )?;
    same("well again", &client.wrong(&uri)?, &json!([]))?;
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }))?;
    same("closed", &client.wrong(&uri)?, &json!([]))?;
    client.stop()
}

fn check_files_and_rules() -> Result<(), Failed> {
    let mut client = Client::start("checks", &[], json!({}))?;
    let text = "# RUN: flambeau opt %s | FileCheck %s --check-prefixes=CHECK,OTHER\n# CHECK: a [[#N:]]\n# CHECK-NEXT: [[X\n# OTHER: b\n# CHECK-\n";
    let wrong = client.open("a.test", text)?;
    holds("a bad pattern", &wrong, &["\"source\":\"FileCheck\"", "\"line\":2"])?;
    let labels = client.labels("a.test", 4, 8)?;
    same(
        "kinds of checks",
        &json!(labels.contains(&"CHECK-NEXT:".to_string()) && labels.contains(&"CHECK-DAG:".to_string())),
        &json!(true),
    )?;
    let wrong = client
        .open("b.ir", "# RUN: flambeau opt %s | FileCheck %s --check-prefix=NONE\ngraph():\n  return ()\n")?;
    holds("no checks", &wrong, &["no check strings found with prefix NONE", "\"line\":0"])?;
    let wrong = client.open(
        "a.rules",
        "rule one exact aten::neg(aten::neg(?x: Tensor)) => ?x\nrule two exact aten::neg(?x =>\n",
    )?;
    holds("a bad rule", &wrong, &["\"line\":1", "\"severity\":1"])?;
    let hover = client.at("textDocument/hover", "a.rules", 0, 18)?;
    holds("an op in a rule", &hover, &["aten::neg(Tensor self) -> Tensor"])?;
    let labels = client.labels("a.rules", 1, 21)?;
    same("ops in a rule", &json!(labels.contains(&"aten::neg".to_string())), &json!(true))?;
    let symbols = client.at("textDocument/documentSymbol", "a.rules", 0, 0)?;
    same("rules by name", &symbols[1]["name"], &json!("two"))?;
    client.stop()
}

fn semantic_tokens() -> Result<(), Failed> {
    let mut client = Client::start("tokens", &[], json!({}))?;
    let text = "# RUN: flambeau opt %s | FileCheck %s\n# CHECK: return\ngraph(%x : Tensor):\n  %y : Tensor = aten::relu[a=1](%x)  # note\n  %z = foo::bar(%y)\n  return (%z)\n";
    client.open("a.ir", text)?;
    let found = client.tokens("a.ir")?;
    let wanted = [
        "0:2+4 macro",
        "1:2+6 macro",
        "2:0+5 keyword",
        "2:6+2 parameter declaration",
        "2:11+6 type",
        "3:2+2 variable declaration",
        "3:7+6 type",
        "3:16+10 function",
        "3:27+1 property",
        "3:29+1 number",
        "3:32+2 parameter",
        "3:37+6 comment",
        "4:7+8 function unknown",
        "4:16+2 variable",
        "5:2+6 keyword",
    ];
    let missing: Vec<_> = wanted.iter().filter(|token| !found.iter().any(|f| f == *token)).collect();
    same("tokens of a graph", &json!(missing), &json!([]))?;
    client.open(
        "a.rules",
        "# a law\nrule one exact aten::neg(aten::neg(?x: Tensor)) => ?x if is_float(?x)\n",
    )?;
    let found = client.tokens("a.rules")?;
    let wanted = [
        "0:0+7 comment",
        "1:0+4 keyword",
        "1:9+5 keyword",
        "1:15+9 function",
        "1:35+2 variable",
        "1:39+6 type",
    ];
    let missing: Vec<_> = wanted.iter().filter(|token| !found.iter().any(|f| f == *token)).collect();
    same("tokens of a rule", &json!(missing), &json!([]))?;
    client.open("a.dialect", DIALECT)?;
    let found = client.tokens("a.dialect")?;
    let wanted =
        ["0:0+7 keyword", "0:14+19 string", "2:3+11 function declaration", "3:4+7 keyword", "10:0+4 keyword"];
    let missing: Vec<_> = wanted.iter().filter(|token| !found.iter().any(|f| f == *token)).collect();
    same("tokens of a dialect", &json!(missing), &json!([]))?;
    client.open("a.py", "def f(x):\n    return x\n")?;
    same("none of source", &client.at("textDocument/semanticTokens/full", "a.py", 0, 0)?, &Value::Null)?;
    client.stop()
}

fn words_of_dialects_rules_and_checks() -> Result<(), Failed> {
    let mut client = Client::start("words", &[], json!({}))?;
    let files = [
        ("w.dialect", "dialect w\nop w::f(Ten\n  fa\n  facts id\n  effects wri\n  attribute n: in\n"),
        ("w.rules", "ru\nrule a e\nrule b exact aten::abs(?x: Tensor) => aten::neg(?x) if is_f\n"),
        (
            "w.test",
            "# RUN: cat %s | FileCheck %s\n# CHECK: [[ABC:x]] [[#%x,NUM:]]\n# CHECK: [[A\n# CHECK: [[#N\n",
        ),
    ];
    for (file, text) in files {
        client.open(file, text)?;
    }
    for (file, line, column, wanted) in [
        ("w.dialect", 1, 11, json!(["Tensor", "Tensor[]", "Tensor?"])),
        ("w.dialect", 3, 10, json!(["identity(", "idempotent"])),
        ("w.dialect", 4, 13, json!(["writes_world"])),
        ("w.dialect", 5, 17, json!(["int", "int[]"])),
        ("w.rules", 0, 2, json!(["rule "])),
        ("w.rules", 1, 8, json!(["exact "])),
        ("w.rules", 2, 60, json!(["is_float("])),
        ("w.test", 2, 12, json!(["ABC"])),
        ("w.test", 3, 13, json!(["NUM"])),
    ] {
        let labels = client.labels(file, line, column)?;
        same(&format!("{file}:{line}"), &json!(labels), &wanted)?;
    }
    let labels = client.labels("w.dialect", 2, 4)?;
    same("fields of an op", &json!(labels.first()), &json!("facts "))?;
    client.stop()
}

fn columns_and_hostile_messages() -> Result<(), Failed> {
    // Columns are units of 16 bits unless bytes are agreed on.
    let text = "graph(%x : Tensor):\n  %s : str = f::g[value=\"h\u{1F525}\u{e9}\"](%x)\n  return (%s)\n";
    for (known, column) in [(json!(["utf-16"]), 32), (json!(["utf-8", "utf-16"]), 35)] {
        let mut client = Client::start("columns", &[], json!({ "general": { "positionEncodings": known } }))?;
        client.open("a.ir", text)?;
        let uses = client.at("textDocument/references", "a.ir", 0, 7)?;
        same("a use behind letters of several bytes", &uses[1]["range"], &range(1, column, column + 2))?;
        let back = client.at("textDocument/definition", "a.ir", 1, column + 1)?;
        same("and back", &back["range"], &range(0, 6, 8))?;
        // Places that are not there, files that are not open, unknown methods.
        same("behind the end", &client.at("textDocument/hover", "a.ir", 900, 900)?, &Value::Null)?;
        same("not open", &client.at("textDocument/hover", "none.ir", 0, 0)?, &Value::Null)?;
        holds("unknown", &client.ask("textDocument/nonsense", json!({}))?, &["is not supported"])?;
        holds("bad words", &client.ask("textDocument/hover", json!({ "position": 1 }))?, &["error"])?;
        client.notify("textDocument/didOpen", json!({ "what": 1 }))?;
        let deep = format!("graph(%x : {}", "Dict(".repeat(50_000));
        holds("deep text", &client.open("deep.ir", &deep)?, &["\"severity\":1"])?;
        client.stop()?;
    }
    Ok(())
}

const DIALECT: &str = "\
dialect quant \"fake quantization\"

op quant::snap(Tensor self, float step) -> Tensor {
    summary \"round to the nearest multiple of step\"
    attribute bits: int = 8 where bits >= 1
    meaning
        def snap(self: Tensor, step: float, bits: int) -> Tensor:
            return torch.round(self / step) * step
}

type fixed<bits: int where bits in {4, 8}> \"few bits\"
";

fn dialects_of_the_project_are_known() -> Result<(), Failed> {
    let files = [("flambeau.toml", "dialects = [\"*.dialect\"]\n"), ("quant.dialect", DIALECT)];
    let mut client = Client::start("dialect", &files, json!({}))?;
    let text = "graph(%x : Tensor, %s : float):\n  %y = quant::snap[bits=4](%x, %s)\n  return (%y)\n";
    same("its ops are known", &client.open("a.ir", text)?, &json!([]))?;
    let hover = client.at("textDocument/hover", "a.ir", 1, 10)?;
    holds(
        "and published",
        &hover,
        &[
            "quant::snap(Tensor self, float step) -> Tensor",
            "round to the nearest multiple",
            "bits: int = 8 where bits >= 1",
            "torch.round",
        ],
    )?;
    let labels = client.labels("a.ir", 1, 14)?;
    same("offered", &json!(labels), &json!(["quant::snap"]))?;
    let labels = client.labels("a.ir", 1, 19)?;
    same("with attributes", &json!(labels), &json!(["bits="]))?;
    let wrong = client.open("b.ir", "graph(%x : Tensor):\n  %y = quant::snip(%x)\n  return (%y)\n")?;
    holds("misspelt", &wrong, &["quant::snip", "quant::snap", "\"severity\":2"])?;
    // From a use in graph text or a rule to the row.
    let op = client.at("textDocument/definition", "a.ir", 1, 10)?;
    same("file of the op", &op["uri"], &json!(client.uri("quant.dialect")))?;
    same("its row", &op["range"], &range(2, 3, 14))?;
    client.open(
        "a.rules",
        "rule twice exact quant::snap(quant::snap(?x: Tensor, ?s: float), ?s) => quant::snap(?x, ?s)\n",
    )?;
    let op = client.at("textDocument/definition", "a.rules", 0, 20)?;
    same("the same from a rule", &op["range"], &range(2, 3, 14))?;
    let ty = client.at("textDocument/definition", "c.ir", 0, 0)?;
    same("nothing that is not open", &ty, &Value::Null)?;
    client.open("d.ir", "graph(%x : quant.fixed<4>):\n  return (%x)\n")?;
    let ty = client.at("textDocument/definition", "d.ir", 0, 14)?;
    same("a type", &ty["range"], &range(10, 5, 10))?;
    // The dialect itself: well as it stands, wrong while it is written, wrong when it is saved.
    same("well", &client.open("quant.dialect", DIALECT)?, &json!([]))?;
    let uri = client.uri("quant.dialect");
    let bad = DIALECT.replace("attribute bits", "atribute bits");
    let change = json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "text": bad }] });
    client.notify("textDocument/didChange", change)?;
    holds("while written", &client.wrong(&uri)?, &["\"severity\":1", "\"line\":4"])?;
    let bad = DIALECT.replace("torch.round", "torch.rond");
    fs::write(client.folder.join("quant.dialect"), &bad)?;
    let change = json!({ "textDocument": { "uri": uri, "version": 3 }, "contentChanges": [{ "text": bad }] });
    client.notify("textDocument/didChange", change)?;
    same("well formed", &client.wrong(&uri)?, &json!([]))?;
    client.notify("textDocument/didSave", json!({ "textDocument": { "uri": uri } }))?;
    let mut wrong = client.wrong(&uri)?;
    if wrong == json!([]) {
        wrong = client.wrong(&uri)?;
    }
    holds("once saved", &wrong, &["the meaning of quant::snap does not compile", "\"line\":7"])?;
    let graph = client.uri("a.ir");
    holds("and its ops are not known", &client.wrong(&graph)?, &["quant"])?;
    client.stop()
}
