//! Models in bytecode only: what is refused, and with which messages.

use super::build::{build, int, item, text};
use crate::dialects::Registry;
use crate::frontend::archive::{Archive, load};

fn tuple(items: &[Vec<u8>]) -> Vec<u8> {
    [&b"("[..], &items.concat(), b"t"].concat()
}

/// What comes of a method `forward(self, x)` with these instructions, one operator (`aten::neg`) and the constants 0 and
/// True.
fn translated(instructions: &[(&str, i64, i64)]) -> Result<String, String> {
    let rows: Vec<Vec<u8>> =
        instructions.iter().map(|(name, x, n)| tuple(&[text(name), int(*x), int(*n)])).collect();
    let operators = tuple(&[tuple(&[text("aten::neg"), text(""), int(1)])]);
    let constants = tuple(&[int(0), b"\x88".to_vec()]);
    let table = |name: &str, content: Vec<u8>| tuple(&[text(name), content]);
    let tables = tuple(&[
        table("instructions", tuple(&rows)),
        table("operators", operators),
        table("constants", constants),
        table("types", tuple(&[])),
        table("register_size", int(9)),
    ]);
    let argument = |name: &str, ty: &str| {
        tuple(&[
            tuple(&[text("name"), text(name)]),
            tuple(&[text("type"), text(ty)]),
            tuple(&[text("default_value"), b"N".to_vec()]),
        ])
    };
    let signature = tuple(&[
        tuple(&[text("arguments"), tuple(&[argument("self", "__torch__.M"), argument("x", "Tensor")])]),
        tuple(&[text("returns"), tuple(&[argument("", "Tensor")])]),
    ]);
    let method = tuple(&[text("__torch__.M.forward"), tables, signature]);
    let bytecode = [&b"\x80\x02"[..], &tuple(&[int(8), method]), b"."].concat();
    let file = build(&[
        item("m/data.pkl", *b"\x80\x02c__torch__\nM\n)\x81}b."),
        item("m/bytecode.pkl", bytecode),
        item("m/version", "3\n"),
    ]);
    let archive = Archive::from_bytes(file.bytes).map_err(|error| error.message().to_string())?;
    let model = load(&Registry::builtin(), archive).map_err(|error| error.message().to_string())?;
    let function = model.module.functions.values().next().ok_or("no function")?;
    Ok(function.graph.to_text(&crate::ir::PrintOptions::bare()))
}

const START: (&str, i64, i64) = ("STOREN", 1, 2);
const END: [(&str, i64, i64); 2] = [("LOAD", 2, 0), ("RET", 0, 0)];

fn refused(body: &[(&str, i64, i64)], says: &str) {
    let error = translated(&[&[START], body, &END].concat()).expect_err(says);
    assert!(error.contains(says), "{error}");
}

#[test]
fn conditions_and_loops_are_found_again() {
    let body = [
        START,
        ("LOADC", 1, 0),
        ("JF", 4, 0),
        ("LOAD", 2, 0),
        ("OP", 0, 0),
        ("JMP", 2, 0),
        ("LOAD", 2, 0),
        ("STORE", 3, 0),
        ("LOADC", 0, 0),
        ("LOADC", 0, 0),
        ("LOADC", 1, 0),
        ("LOAD", 3, 0),
        ("LOOP", 6, 3),
        ("STOREN", 4, 2),
        ("LOADC", 1, 0),
        ("LOAD", 5, 0),
        ("OP", 0, 0),
        ("JMP", -5, 0),
        ("RET", 0, 0),
    ];
    let text = translated(&body).expect("a graph");
    assert_eq!(text.matches("prim::If").count(), 1, "{text}");
    assert_eq!(text.matches("prim::Loop").count(), 1, "{text}");
    assert_eq!(text.matches("aten::neg").count(), 2, "{text}");
}

#[test]
fn jumps_of_other_forms_are_refused() {
    refused(&[("JMP", 1, 0)], "belongs to no condition");
    refused(&[("LOADC", 1, 0), ("JF", 2, 0), ("DROP", 0, 0)], "not the start of an if");
    refused(&[("LOADC", 1, 0), ("JF", 900, 0)], "out of its block");
    refused(&[("LOADC", 1, 0), ("JF", i64::MAX, 0)], "out of its block");
    refused(&[("LOADC", 1, 0), ("JF", -1, 0)], "out of its block");
    refused(&[("LOADC", 0, 0), ("LOOP", 2, 2)], "does not end with a jump");
    refused(&[("LOOP", 2, 2), ("JMP", -1, 0)], "more values are taken");
    refused(&[("LOOP", 2, i64::MAX), ("JMP", -1, 0)], "more values are taken");
    refused(&[("RET", 0, 0)], "before the end");
}

#[test]
fn what_is_not_there_is_refused() {
    refused(&[("LOAD", 7, 0)], "register 7 is empty");
    refused(&[("LOADC", 2, 0)], "no constant 2");
    refused(&[("LOADC", -1, 0)], "no constant -1");
    refused(&[("OP", 1, 0)], "no operator 1");
    refused(&[("OP", 0, 0)], "more values are taken");
    refused(&[("DROP", 0, 0)], "empty stack");
    refused(&[("STOREN", i64::MAX, i64::MAX)], "more values are taken");
    refused(&[("LIST_CONSTRUCT", 0, 0)], "no type 0");
    refused(&[("LOAD", 1, 0), ("GET_ATTR", 3, 0)], "no attribute with the number 3");
    refused(&[("LOAD", 2, 0), ("GET_ATTR", 0, 0)], "no attribute");
    refused(&[("FORK", 0, 0)], "bytecode instruction FORK");
    refused(&[("LOAD", 2, 0), ("LIST_UNPACK", 2, 0)], "taking apart a value");
}

#[test]
fn deep_conditions_are_refused() {
    let depth = 5000;
    let mut body = Vec::new();
    for n in 0..depth {
        // Each holds those after it: a block of what is left but its own end.
        body.push(("LOADC", 1, 0));
        body.push(("JF", 3 * (depth - n) - 1, 0));
    }
    body.extend(vec![("JMP", 1, 0); depth as usize]);
    refused(&body, "nested more than");
}
