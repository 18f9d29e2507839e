//! The parser against recorded programs: what PyTorch accepts parses, what its parser refuses is refused
//! in its words, and every place that its compile errors mark is the place of a node. Each holds for the cases of
//! tests/golden, and for the shared ones where scripts/conformance.sh says where they are.

use super::ast::*;
use super::parse_module;
use crate::diag::torch::{highlight, render};
use crate::diag::{Source, Span};
use std::path::Path;

/// The cases of a file whose source is plain TorchScript text.
fn read(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let all = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    all.filter(|case| case["how"] == "source").collect()
}

fn golden(file: &str) -> Vec<serde_json::Value> {
    let cases = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(file));
    assert!(cases.len() > 100, "{file} has few programs");
    cases
}

fn shared(file: &str) -> Vec<serde_json::Value> {
    let folder = std::env::var_os("FLAMBEAU_CONFORMANCE").expect("FLAMBEAU_CONFORMANCE names a folder");
    read(&Path::new(&folder).join(file))
}

#[test]
fn recorded_programs_that_run_parse() {
    parse_where_they_run(golden("programs.jsonl"));
    parse_where_they_run(golden("refusals.jsonl"));
}

#[test]
fn recorded_refusals_are_pytorchs() {
    refusals_are_pytorchs(golden("programs.jsonl"));
    refusals_are_pytorchs(golden("refusals.jsonl"));
}

#[test]
#[ignore = "reads the shared recorded cases; scripts/conformance.sh runs it"]
fn shared_programs_and_errors() {
    parse_where_they_run(shared("lang.jsonl"));
    refusals_are_pytorchs(shared("errors.jsonl"));
    every_marked_place_is_a_node(shared("errors.jsonl"));
    every_operation_begins_at_a_node(shared("lang.jsonl"));
}

fn parse_where_they_run(cases: Vec<serde_json::Value>) {
    for case in cases.iter().filter(|case| case["raises"].is_null()) {
        let source = Source::new("<string>", case["source"].as_str().unwrap());
        if let Err(error) = parse_module(&source) {
            panic!("{}: {}", case["name"], render(&error));
        }
    }
}

fn refusals_are_pytorchs(cases: Vec<serde_json::Value>) {
    for case in cases.iter().filter(|case| !case["raises"].is_null()) {
        let recorded = case["raises"]["message"].as_str().unwrap_or("");
        let by_parser = recorded.starts_with("expected ") || recorded.starts_with("invalid indent");
        let source = Source::new("<string>", case["source"].as_str().unwrap());
        match parse_module(&source) {
            Ok(_) => assert!(!by_parser, "{} should be refused: {recorded}", case["name"]),
            Err(error) => assert_eq!(render(&error), recorded, "{}", case["name"]),
        }
    }
}

fn every_marked_place_is_a_node(cases: Vec<serde_json::Value>) {
    for case in cases {
        let raises = &case["raises"];
        let source = Source::new("<string>", case["source"].as_str().unwrap());
        let Ok(module) = parse_module(&source) else { continue };
        if raises["when"] != "compile" {
            continue;
        }
        let message = raises["message"].as_str().unwrap();
        let places = places(&module);
        let known: Vec<String> = places.iter().map(highlight).collect();
        for (at, _) in message.match_indices("  File \"<string>\"") {
            let shown = &message[at..];
            assert!(known.iter().any(|k| shown.starts_with(k)), "{}: {shown}", case["name"]);
        }
    }
}

/// Places in PyTorch's own built-in functions, whose texts are named `<string>` too: `x.shape`, `x.T`,
/// `-x` and the like are calls of them, and appear inlined.
const BUILTIN: [&str; 9] = ["3:9", "5:9", "5:11", "5:26", "5:29", "5:44", "7:9", "11:9", "13:9"];

/// The start of every operation in a recorded graph is the start of some node.
fn every_operation_begins_at_a_node(cases: Vec<serde_json::Value>) {
    for case in cases {
        let (Some(graph), Some(text)) = (case["graph"].as_str(), case["source"].as_str()) else { continue };
        let module = parse_module(&Source::new("<string>", text)).unwrap();
        let starts: Vec<(usize, usize)> = places(&module).iter().map(Span::line_column).collect();
        let marks = graph.lines().filter_map(|line| line.split_once("# <string>:")).map(|(_, place)| place);
        for place in marks.filter(|place| !BUILTIN.contains(place)) {
            let (line, column) = place.split_once(':').unwrap();
            let start = (line.parse().unwrap(), column.parse().unwrap());
            assert!(starts.contains(&start), "{}: {place}", case["name"]);
        }
    }
}

/// The places of all nodes.
fn places(module: &Module) -> Vec<Span> {
    let mut all = Vec::new();
    for item in &module.items {
        match item {
            Item::Def(def) => places_of_def(def, &mut all),
            Item::Class(class) => class.body.iter().for_each(|s| places_of_stmt(s, &mut all)),
        }
    }
    all
}

fn places_of_def(def: &Def, all: &mut Vec<Span>) {
    all.extend([def.span.clone(), def.name.span.clone(), def.decl.span.clone()]);
    for param in &def.decl.params {
        all.extend([param.span.clone(), param.name.span.clone()]);
        param.annotation.iter().chain(&param.default).for_each(|e| places_of_expr(e, all));
    }
    def.decl.returns.iter().for_each(|e| places_of_expr(e, all));
    def.body.iter().for_each(|s| places_of_stmt(s, all));
}

fn places_of_stmt(stmt: &Stmt, all: &mut Vec<Span>) {
    all.push(stmt.span.clone());
    let (mut exprs, mut stmts): (Vec<&Expr>, Vec<&Stmt>) = (Vec::new(), Vec::new());
    match &stmt.kind {
        StmtKind::Expr(e) | StmtKind::Return(e) | StmtKind::Raise(e) => exprs.push(e),
        StmtKind::Assign { targets, annotation, value } => {
            exprs.extend(targets.iter().chain(annotation).chain(value));
        }
        StmtKind::AugAssign { target, value, .. } => exprs.extend([target, value]),
        StmtKind::If { cond, then, otherwise } => {
            exprs.push(cond);
            stmts.extend(then.iter().chain(otherwise));
        }
        StmtKind::While { cond, body } => {
            exprs.push(cond);
            stmts.extend(body);
        }
        StmtKind::For { targets, iters, body } => {
            exprs.extend(targets.iter().chain(iters));
            stmts.extend(body);
        }
        StmtKind::With { items, body } => {
            all.extend(items.iter().map(|i| i.span.clone()));
            all.extend(items.iter().filter_map(|i| i.target.as_ref()).map(|t| t.span.clone()));
            exprs.extend(items.iter().map(|i| &i.context));
            stmts.extend(body);
        }
        StmtKind::Assert { cond, message } => exprs.extend(std::iter::once(cond).chain(message)),
        StmtKind::Delete(targets) => exprs.extend(targets),
        StmtKind::Def(def) => places_of_def(def, all),
        StmtKind::Global(_) | StmtKind::Break | StmtKind::Continue | StmtKind::Pass => {}
    }
    exprs.into_iter().for_each(|e| places_of_expr(e, all));
    stmts.into_iter().for_each(|s| places_of_stmt(s, all));
}

fn places_of_expr(expr: &Expr, all: &mut Vec<Span>) {
    all.push(expr.span.clone());
    let mut parts: Vec<&Expr> = Vec::new();
    match &expr.kind {
        ExprKind::Attribute { value, name } => {
            all.push(name.span.clone());
            parts.push(value);
        }
        ExprKind::Call { callee, args, keywords, args_span } => {
            all.push(args_span.clone());
            all.extend(keywords.iter().map(|k| k.span.clone()));
            parts.push(callee);
            parts.extend(args.iter().chain(keywords.iter().map(|k| &k.value)));
        }
        ExprKind::Subscript { value, indices, indices_span } => {
            all.push(indices_span.clone());
            parts.push(value);
            parts.extend(indices);
        }
        ExprKind::Slice { start, stop, step } => {
            parts.extend([start, stop, step].into_iter().flatten().map(Box::as_ref));
        }
        ExprKind::Unary { operand, .. } | ExprKind::Starred(operand) => parts.push(operand),
        ExprKind::Binary { left, right, .. } => parts.extend([&**left, right]),
        ExprKind::Ternary { cond, then, otherwise } => parts.extend([&**cond, then, otherwise]),
        ExprKind::List(elements) | ExprKind::Tuple(elements) => parts.extend(elements),
        ExprKind::Dict { keys, values } => parts.extend(keys.iter().chain(values)),
        ExprKind::ListComp { element, target, iter } => parts.extend([&**element, target, iter]),
        ExprKind::DictComp { key, value, target, iter } => parts.extend([&**key, value, target, iter]),
        _ => {}
    }
    parts.into_iter().for_each(|e| places_of_expr(e, all));
}
